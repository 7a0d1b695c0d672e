//! The files of the repository as texts, and what is to be written into it.

use std::collections::BTreeMap;
use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;

use crate::Error;

/// What is checked in, or would be: every text file, by its path from the root on.
#[derive(Debug, Default)]
pub struct Tree {
    root: PathBuf,
    files: BTreeMap<String, String>,
}

impl Tree {
    /// The tree around the current directory.
    ///
    /// # Errors
    /// When there is none, or it cannot be read.
    pub fn here() -> Result<Self, Error> {
        let here = std::env::current_dir().map_err(|source| Error::File { path: PathBuf::from("."), source })?;
        let root = here.ancestors().find(|dir| dir.join("xtask/Cargo.toml").is_file());
        Self::read(root.ok_or_else(|| Error::Refused("not inside the repository".to_owned()))?)
    }

    /// The tree at a root: what git knows or would take, and where git does not say, every file but those of builds.
    ///
    /// # Errors
    /// When it cannot be read.
    pub fn read(root: &Path) -> Result<Self, Error> {
        let paths = match of_git(root) {
            Some(paths) => paths,
            None => walk(root)?,
        };
        let mut files = BTreeMap::new();
        for path in paths {
            let file = root.join(&path);
            // A file that is in the index and no longer on the disk is on its way out; a link is read where it leads.
            if !file.is_file() {
                continue;
            }
            let bytes = fs::read(&file).map_err(|source| Error::File { path: file, source })?;
            if let Ok(text) = String::from_utf8(bytes) {
                files.insert(path, text);
            }
        }
        Ok(Self { root: root.to_owned(), files })
    }

    /// A tree of these files, for tests.
    #[must_use]
    pub fn of(files: &[(&str, &str)]) -> Self {
        let files = files.iter().map(|(path, text)| ((*path).to_owned(), (*text).to_owned())).collect();
        Self { root: PathBuf::new(), files }
    }

    /// Where it is.
    #[must_use]
    pub fn root(&self) -> &Path {
        &self.root
    }

    /// A file's text.
    #[must_use]
    pub fn text(&self, path: &str) -> Option<&str> {
        self.files.get(path).map(String::as_str)
    }

    /// The text of a file that must be there.
    ///
    /// # Errors
    /// When it is not.
    pub fn must(&self, path: &str) -> Result<&str, Error> {
        self.text(path).ok_or_else(|| Error::Form { path: path.to_owned(), reason: "is not there".to_owned() })
    }

    /// All files: path and text, in the order of their paths.
    pub fn files(&self) -> impl Iterator<Item = (&str, &str)> {
        self.files.iter().map(|(path, text)| (path.as_str(), text.as_str()))
    }

    /// Whether a file or a folder is there.
    #[must_use]
    pub fn has(&self, path: &str) -> bool {
        let folder = format!("{path}/");
        self.files.contains_key(path) || self.files.range(folder.clone()..).next().is_some_and(|(first, _)| first.starts_with(&folder))
    }
}

/// What git says; `None` without git, in a copy that is no repository, and where git refuses to look.
fn of_git(root: &Path) -> Option<Vec<String>> {
    if !root.join(".git").exists() {
        return None;
    }
    let asked = Command::new("git").args(["ls-files", "-z", "--cached", "--others", "--exclude-standard"]).current_dir(root).output();
    let output = asked.ok().filter(|output| output.status.success())?;
    let mut paths: Vec<String> = String::from_utf8_lossy(&output.stdout).split_terminator('\0').map(str::to_owned).collect();
    // During a merge a file stands in the index more than once.
    paths.sort_unstable();
    paths.dedup();
    Some(paths)
}

fn walk(root: &Path) -> Result<Vec<String>, Error> {
    let (mut paths, mut folders) = (Vec::new(), vec![root.to_owned()]);
    while let Some(folder) = folders.pop() {
        let wrong = |source| Error::File { path: folder.clone(), source };
        for entry in fs::read_dir(&folder).map_err(wrong)? {
            let path = entry.map_err(wrong)?.path();
            let Ok(name) = path.strip_prefix(root).map(|name| name.to_string_lossy().into_owned()) else { continue };
            if path.is_dir() && !["target", "data"].contains(&name.as_str()) {
                folders.push(path);
            } else if path.is_file() {
                paths.push(name);
            }
        }
    }
    Ok(paths)
}

/// Files to be written: new ones, and others as they will read.
pub struct Plan<'a> {
    tree: &'a Tree,
    files: BTreeMap<String, String>,
}

impl<'a> Plan<'a> {
    /// A plan that writes nothing yet.
    #[must_use]
    pub fn new(tree: &'a Tree) -> Self {
        Self { tree, files: BTreeMap::new() }
    }

    /// Adds a new file.
    ///
    /// # Errors
    /// When there is one.
    pub fn create(&mut self, path: impl Into<String>, text: impl Into<String>) -> Result<(), Error> {
        let path = path.into();
        if self.tree.has(&path) || self.tree.root.join(&path).exists() {
            return Err(Error::Refused(format!("{path} is there already")));
        }
        self.files.insert(path, text.into());
        Ok(())
    }

    /// Adds to a file.
    ///
    /// # Errors
    /// When it is not there, or has not the form in which it can be added to.
    pub fn edit(&mut self, path: &str, change: impl FnOnce(&str) -> Result<String, String>) -> Result<(), Error> {
        let before = match self.files.get(path) {
            Some(text) => text,
            None => self.tree.must(path)?,
        };
        let after = change(before).map_err(|reason| Error::Form { path: path.to_owned(), reason })?;
        self.files.insert(path.to_owned(), after);
        Ok(())
    }

    /// The files: path, and whether it is a new one.
    pub fn files(&self) -> impl Iterator<Item = (&str, bool)> {
        self.files.keys().map(|path| (path.as_str(), self.tree.text(path).is_none()))
    }

    /// Writes them all below a root.
    ///
    /// # Errors
    /// When one cannot be written.
    pub fn write(&self, root: &Path) -> Result<(), Error> {
        for (path, text) in &self.files {
            let path = root.join(path);
            let wrong = |source| Error::File { path: path.clone(), source };
            fs::create_dir_all(path.parent().unwrap_or(root)).map_err(wrong)?;
            fs::write(&path, text).map_err(wrong)?;
        }
        Ok(())
    }
}
