//! The text files of the repository, and plans of files to write.

use std::collections::BTreeMap;
use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;

use crate::Error;

/// All text files that are checked in or not ignored, by their path from the root.
#[derive(Debug, Default)]
pub struct Tree {
    root: PathBuf,
    files: BTreeMap<String, String>,
}

impl Tree {
    /// Reads the repository around the current directory.
    ///
    /// # Errors
    /// When there is none, or it cannot be read.
    pub fn here() -> Result<Self, Error> {
        let here = std::env::current_dir().map_err(|source| Error::File { path: PathBuf::from("."), source })?;
        let root = here.ancestors().find(|dir| dir.join("xtask/Cargo.toml").is_file());
        Self::read(root.ok_or_else(|| Error::Refused("not inside the repository".to_owned()))?)
    }

    /// Reads the repository at a root: the files that git tracks or does not ignore. Without git every file except those of builds.
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
            // A file may be in the index but deleted from the disk. Links are followed.
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

    /// Makes a tree of the given files, for tests.
    #[must_use]
    pub fn of(files: &[(&str, &str)]) -> Self {
        let files = files.iter().map(|(path, text)| ((*path).to_owned(), (*text).to_owned())).collect();
        Self { root: PathBuf::new(), files }
    }

    /// The root directory.
    #[must_use]
    pub fn root(&self) -> &Path {
        &self.root
    }

    /// Returns the text of a file.
    #[must_use]
    pub fn text(&self, path: &str) -> Option<&str> {
        self.files.get(path).map(String::as_str)
    }

    /// Returns the text of a required file.
    ///
    /// # Errors
    /// When the file does not exist.
    pub fn must(&self, path: &str) -> Result<&str, Error> {
        self.text(path).ok_or_else(|| Error::Form { path: path.to_owned(), reason: "does not exist".to_owned() })
    }

    /// All files with path and text, sorted by path.
    pub fn files(&self) -> impl Iterator<Item = (&str, &str)> {
        self.files.iter().map(|(path, text)| (path.as_str(), text.as_str()))
    }

    /// Whether a file or a folder exists.
    #[must_use]
    pub fn has(&self, path: &str) -> bool {
        let folder = format!("{path}/");
        self.files.contains_key(path) || self.files.range(folder.clone()..).next().is_some_and(|(first, _)| first.starts_with(&folder))
    }
}

/// Lists the files with git; `None` without git, outside a repository, and when git refuses.
fn of_git(root: &Path) -> Option<Vec<String>> {
    if !root.join(".git").exists() {
        return None;
    }
    let listed = Command::new("git").args(["ls-files", "-z", "--cached", "--others", "--exclude-standard"]).current_dir(root).output();
    let output = listed.ok().filter(|output| output.status.success())?;
    let mut paths: Vec<String> = String::from_utf8_lossy(&output.stdout).split_terminator('\0').map(str::to_owned).collect();
    // During a merge a file is in the index more than once.
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

/// Files to write: new files, and existing files with their new content.
pub struct Plan<'a> {
    tree: &'a Tree,
    files: BTreeMap<String, String>,
}

impl<'a> Plan<'a> {
    /// Makes an empty plan.
    #[must_use]
    pub fn new(tree: &'a Tree) -> Self {
        Self { tree, files: BTreeMap::new() }
    }

    /// Adds a new file.
    ///
    /// # Errors
    /// When the file exists already.
    pub fn create(&mut self, path: impl Into<String>, text: impl Into<String>) -> Result<(), Error> {
        let path = path.into();
        if self.tree.has(&path) || self.tree.root.join(&path).exists() {
            return Err(Error::Refused(format!("{path} exists already")));
        }
        self.files.insert(path, text.into());
        Ok(())
    }

    /// Changes an existing file.
    ///
    /// # Errors
    /// When the file does not exist, or does not have the form that `change` can extend.
    pub fn edit(&mut self, path: &str, change: impl FnOnce(&str) -> Result<String, String>) -> Result<(), Error> {
        let before = match self.files.get(path) {
            Some(text) => text,
            None => self.tree.must(path)?,
        };
        let after = change(before).map_err(|reason| Error::Form { path: path.to_owned(), reason })?;
        self.files.insert(path.to_owned(), after);
        Ok(())
    }

    /// The files: path, and whether the file is new.
    pub fn files(&self) -> impl Iterator<Item = (&str, bool)> {
        self.files.keys().map(|path| (path.as_str(), self.tree.text(path).is_none()))
    }

    /// Writes all files below a root.
    ///
    /// # Errors
    /// When a file cannot be written.
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
