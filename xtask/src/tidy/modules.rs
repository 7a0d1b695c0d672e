//! No circle of files within a crate: files that import each other, directly or through others, cannot be understood or tested one at a time.
//! Nor a circle of a crate's first folders, which its files can form although they form none themselves. A file next to these folders counts
//! as one of its name: `one.rs` belongs to `one/`.
//!
//! An arrow from file A to file B means that A names something that B defines, in a `use` or in a path. A re-export is followed to the file
//! that defines the item. Three things are no arrows: a `mod` declaration, code under `#[cfg(test)]`, and a re-export of a child module's items,
//! because a module is made of its children. A module that uses its children otherwise has an arrow to them: they must not use what it defines. Move that
//! to a child of its own, as `tidy/finding.rs`.

use std::collections::{BTreeMap, BTreeSet};

use syn::visit::{self, Visit};

use super::Finding;
use super::module_tree::Crate;
use crate::Error;
use crate::tree::Tree;

/// The arrows of a crate: from file to file, with the names that are used.
type Arrows = BTreeMap<String, BTreeMap<String, BTreeSet<String>>>;

pub(super) fn check(tree: &Tree) -> Result<Vec<Finding>, Error> {
    let mut findings = Vec::new();
    for root in roots(tree) {
        let arrows = arrows_of(tree, &root)?;
        let circles = circles_of(&arrows);
        for circle in &circles {
            findings.push(Finding::new(&circle[0], 1, format!("circle of {} files: {}", circle.len(), described(circle, &arrows))));
        }
        // A circle of files is reported alone: its folders would only repeat it.
        let folders = if circles.is_empty() { between_folders(&arrows, &root) } else { Arrows::new() };
        for circle in circles_of(&folders) {
            findings.push(Finding::new(&root, 1, format!("circle of {} folders: {}", circle.len(), described(&circle, &folders))));
        }
    }
    Ok(findings)
}

/// The root files of all crates and programs: `src/lib.rs` and `src/main.rs` of every folder with a `Cargo.toml`.
fn roots(tree: &Tree) -> Vec<String> {
    let folders = tree.files().filter_map(|(path, _)| path.strip_suffix("Cargo.toml"));
    let roots = folders.flat_map(|folder| ["lib", "main"].map(|name| format!("{folder}src/{name}.rs")));
    roots.filter(|root| tree.text(root).is_some()).collect()
}

/// Reads a crate and collects its arrows.
fn arrows_of(tree: &Tree, root: &str) -> Result<Arrows, Error> {
    let krate = Crate::read(tree, root)?;
    let mut arrows = Arrows::new();
    for (module, items) in krate.modules() {
        let mut paths = Paths::default();
        items.iter().for_each(|item| paths.visit_item(item));
        let reexported = paths.reexported.iter().map(|path| (path, true));
        for (path, is_reexport) in paths.found.iter().map(|path| (path, false)).chain(reexported) {
            let Some(target) = krate.resolve(module, path) else { continue };
            let (from, to, is_child) = (krate.file(module), krate.file(target), krate.is_ancestor(module, target));
            if from == to || is_reexport && is_child {
                continue;
            }
            let name = path.last().cloned().unwrap_or_default();
            arrows.entry(from.to_owned()).or_default().entry(to.to_owned()).or_default().insert(name);
        }
    }
    Ok(arrows)
}

/// The arrows between the first folders of a crate, with the names that their files use.
fn between_folders(arrows: &Arrows, root: &str) -> Arrows {
    let src = root.rsplit_once('/').map_or("", |(src, _)| src);
    let folder_of = |file: &str| {
        let inside = file.strip_prefix(src).and_then(|rest| rest.strip_prefix('/'));
        let first = inside.and_then(|rest| rest.split('/').next()).unwrap_or(file);
        first.trim_end_matches(".rs").to_owned()
    };
    let mut between = Arrows::new();
    for (file, targets) in arrows {
        for (target, names) in targets {
            let (from, to) = (folder_of(file), folder_of(target));
            if from != to {
                between.entry(from).or_default().entry(to).or_default().extend(names.iter().cloned());
            }
        }
    }
    between
}

/// Collects every path of a module's own items, in `use` declarations, code and the arguments of macros.
#[derive(Default)]
struct Paths {
    found: Vec<Vec<String>>,
    /// The paths of re-exports.
    reexported: Vec<Vec<String>>,
}

impl Paths {
    fn add_use(&mut self, before: &[String], tree: &syn::UseTree) {
        match tree {
            syn::UseTree::Path(path) => {
                let before = [before, &[path.ident.to_string()]].concat();
                self.add_use(&before, &path.tree);
            }
            syn::UseTree::Name(name) if name.ident == "self" => self.found.push(before.to_vec()),
            syn::UseTree::Name(name) => self.found.push([before, &[name.ident.to_string()]].concat()),
            syn::UseTree::Rename(rename) if rename.ident == "self" => self.found.push(before.to_vec()),
            syn::UseTree::Rename(rename) => self.found.push([before, &[rename.ident.to_string()]].concat()),
            syn::UseTree::Glob(_) => self.found.push(before.to_vec()),
            syn::UseTree::Group(group) => group.items.iter().for_each(|tree| self.add_use(before, tree)),
        }
    }

    /// Adds the paths in the tokens of a macro: identifiers joined by `::`.
    fn add_tokens(&mut self, tokens: proc_macro2::TokenStream) {
        use proc_macro2::TokenTree;
        let (mut path, mut colons): (Vec<String>, u32) = (Vec::new(), 0);
        for token in tokens {
            match token {
                TokenTree::Ident(ident) if !path.is_empty() && colons == 2 => path.push(ident.to_string()),
                TokenTree::Ident(ident) => {
                    self.found.extend((path.len() > 1).then(|| std::mem::take(&mut path)));
                    path = vec![ident.to_string()];
                }
                TokenTree::Punct(punct) if punct.as_char() == ':' => {
                    colons += 1;
                    continue;
                }
                TokenTree::Group(group) => {
                    self.found.extend((path.len() > 1).then(|| std::mem::take(&mut path)));
                    path.clear();
                    self.add_tokens(group.stream());
                }
                _ => {
                    self.found.extend((path.len() > 1).then(|| std::mem::take(&mut path)));
                    path.clear();
                }
            }
            colons = 0;
        }
        self.found.extend((path.len() > 1).then_some(path));
    }
}

impl<'ast> Visit<'ast> for Paths {
    /// Child modules are read as modules of their own.
    fn visit_item_mod(&mut self, _: &'ast syn::ItemMod) {}

    fn visit_item_use(&mut self, item: &'ast syn::ItemUse) {
        if item.leading_colon.is_some() {
            return;
        }
        let before = self.found.len();
        self.add_use(&[], &item.tree);
        if !matches!(item.vis, syn::Visibility::Inherited) {
            self.reexported.extend(self.found.drain(before..));
        }
    }

    fn visit_path(&mut self, path: &'ast syn::Path) {
        if path.leading_colon.is_none() && path.segments.len() > 1 {
            self.found.push(path.segments.iter().map(|segment| segment.ident.to_string()).collect());
        }
        visit::visit_path(self, path);
    }

    fn visit_visibility(&mut self, _: &'ast syn::Visibility) {}

    fn visit_macro(&mut self, item: &'ast syn::Macro) {
        self.visit_path(&item.path);
        self.add_tokens(item.tokens.clone());
    }
}

/// The circles of a crate: its strongly connected components of two files or more, each sorted by path.
fn circles_of(arrows: &Arrows) -> Vec<Vec<String>> {
    let reaches = |from: &str| {
        let (mut seen, mut open) = (BTreeSet::new(), vec![from.to_owned()]);
        while let Some(file) = open.pop() {
            for next in arrows.get(&file).into_iter().flat_map(BTreeMap::keys) {
                if seen.insert(next.clone()) {
                    open.push(next.clone());
                }
            }
        }
        seen
    };
    let reached: BTreeMap<&String, BTreeSet<String>> = arrows.keys().map(|file| (file, reaches(file))).collect();
    let mut circles: Vec<Vec<String>> = Vec::new();
    for (file, targets) in &reached {
        if !targets.contains(*file) || circles.iter().any(|circle| circle.contains(file)) {
            continue;
        }
        let is_back = |other: &&String| reached.get(other).is_some_and(|targets| targets.contains(*file));
        circles.push(targets.iter().filter(is_back).cloned().collect());
    }
    circles
}

/// The arrows within a circle, with the names that tie it.
fn described(circle: &[String], arrows: &Arrows) -> String {
    let within = circle.iter().flat_map(|from| {
        let targets = arrows.get(from).into_iter().flatten().filter(|(to, _)| circle.contains(to));
        targets.map(move |(to, names)| format!("{from} -> {to} ({})", names.iter().map(String::as_str).collect::<Vec<_>>().join(", ")))
    });
    within.collect::<Vec<_>>().join("; ")
}

#[cfg(test)]
mod tests {
    use super::*;

    fn circles(files: &[(&str, &str)]) -> Vec<Vec<String>> {
        circles_of(&arrows_of(&Tree::of(files), "a/src/lib.rs").unwrap())
    }

    /// Proves that two files which name each other are a circle, whether by `use`, by a path or in a macro, and that its names are reported.
    #[test]
    fn files_that_name_each_other() {
        for back in ["use crate::one::One;", "fn f() { crate::one::f() }", "fn f() { println!(\"{}\", super::one::N) }", "use super::one;"]
        {
            let files = [("a/src/lib.rs", "mod one; mod two;"), ("a/src/one.rs", "use crate::two::Two;"), ("a/src/two.rs", back)];
            assert_eq!(circles(&files), [["a/src/one.rs", "a/src/two.rs"]], "{back}");
        }
        let files =
            [("a/src/lib.rs", "mod one; mod two;"), ("a/src/one.rs", "use crate::two::{A, B};"), ("a/src/two.rs", "use crate::one::C;")];
        let tree = Tree::of(&[&files[..], &[("a/Cargo.toml", "")]].concat());
        let found = check(&tree).unwrap();
        let words = "a/src/one.rs:1: circle of 2 files: a/src/one.rs -> a/src/two.rs (A, B); a/src/two.rs -> a/src/one.rs (C)";
        assert!(found.iter().any(|finding| finding.to_string() == words), "{found:?}");
    }

    /// Proves that a circle through a third file is found, and that a chain is not one.
    #[test]
    fn circles_of_three() {
        let files = |last: &'static str| {
            [
                ("a/src/lib.rs", "mod one; mod two; mod three;"),
                ("a/src/one.rs", "use crate::two::Two; pub struct One;"),
                ("a/src/two.rs", "use crate::three::Three; pub struct Two;"),
                ("a/src/three.rs", last),
            ]
        };
        assert_eq!(circles(&files("use crate::one::One; pub struct Three;")), [["a/src/one.rs", "a/src/three.rs", "a/src/two.rs"]]);
        assert!(circles(&files("use std::fmt;")).is_empty());
    }

    /// Proves that two first folders whose files name each other are a circle although no two files are, and that one direction is none. A file belongs
    /// to the folder of its name.
    #[test]
    fn folders_that_name_each_other() {
        let found = |back: &str| {
            let files = [
                ("a/Cargo.toml", ""),
                ("a/src/lib.rs", "mod one; mod two;"),
                ("a/src/one/mod.rs", "pub mod first; pub mod second;"),
                ("a/src/one/first.rs", "use crate::two::third::Third;"),
                ("a/src/one/second.rs", "pub struct Second;"),
                ("a/src/two.rs", "pub mod third; pub mod fourth;"),
                ("a/src/two/third.rs", "pub struct Third;"),
                ("a/src/two/fourth.rs", back),
            ];
            check(&Tree::of(&files)).unwrap().iter().map(ToString::to_string).collect::<Vec<_>>()
        };
        let words = "a/src/lib.rs:1: circle of 2 folders: one -> two (Third); two -> one (Second)";
        assert_eq!(found("use crate::one::second::Second;"), [words]);
        assert_eq!(found("use super::third::Third;"), Vec::<String>::new());
    }

    /// Proves that a module and a child that use each other are a circle, whichever way the module names the child.
    #[test]
    fn modules_and_children_that_use_each_other() {
        for uses in ["use child::f;", "use self::child::f as g;", "fn g() { child::f() }", "fn g() { vec![self::child::f()] }"] {
            let parent = format!("mod child; {uses} pub struct Own;");
            let files = [
                ("a/src/lib.rs", "mod one;"),
                ("a/src/one.rs", parent.as_str()),
                ("a/src/one/child.rs", "use super::Own; pub fn f() -> Own {}"),
            ];
            assert_eq!(circles(&files), [["a/src/one.rs", "a/src/one/child.rs"]], "{uses}");
        }
    }

    /// Proves that declarations, tests, and a module that re-exports items of its own children are no circles, and that a re-export leads to the
    /// file that defines the item.
    #[test]
    fn what_is_no_arrow() {
        let parent = ("a/src/one/mod.rs", "mod child; pub use self::child::Child; pub(crate) use child::f; pub struct Own;");
        for child in
            ["use super::Own; pub struct Child; pub fn f() {}", "pub struct Child; #[cfg(test)] mod tests { use crate::two::Two; }"]
        {
            let files =
                [("a/src/lib.rs", "mod one; mod two;"), parent, ("a/src/one/child.rs", child), ("a/src/two.rs", "use crate::one::Child;")];
            assert!(circles(&files).is_empty(), "{child}");
        }
        let child = "use crate::two::Two; pub struct Child;";
        let files =
            [("a/src/lib.rs", "mod one; mod two;"), parent, ("a/src/one/child.rs", child), ("a/src/two.rs", "use crate::one::Child;")];
        assert_eq!(circles(&files), [["a/src/one/child.rs", "a/src/two.rs"]]);
    }
}
