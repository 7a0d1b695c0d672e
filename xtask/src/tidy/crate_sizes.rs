//! The size of crates. A change of a crate compiles all of it again, and its tests, so a large one is split.

use std::collections::BTreeMap;

use super::Finding;
use crate::tree::Tree;

/// The most lines of Rust in a crate, its tests included.
const LINES_MAX: usize = 9_000;
/// The folders of the crates that may be larger: the program, whose scenarios are its tests, and the upstreams, each of which is a module that no other
/// one uses.
const LARGER: &[&str] = &["", "ingest/upstreams/"];

pub(super) fn check(tree: &Tree) -> Vec<Finding> {
    let folders: Vec<&str> = tree.files().filter_map(|(path, _)| path.strip_suffix("Cargo.toml")).collect();
    let mut lines: BTreeMap<&str, usize> = BTreeMap::new();
    for (path, text) in tree.files().filter(|(path, _)| path.ends_with(".rs")) {
        // The folder of a crate may be within that of another one.
        let folder = folders.iter().filter(|folder| path.starts_with(**folder)).max_by_key(|folder| folder.len());
        if let Some(folder) = folder {
            *lines.entry(*folder).or_default() += text.lines().count();
        }
    }
    let large = lines.into_iter().filter(|(folder, lines)| *lines > LINES_MAX && !LARGER.contains(folder));
    large.map(|(folder, lines)| Finding::new(&format!("{folder}Cargo.toml"), 1, message(lines))).collect()
}

fn message(lines: usize) -> String {
    format!("the crate has {lines} lines, more than {LINES_MAX}: split it")
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Proves that a crate of too many lines in all its files is reported, and that the crates within its folder are counted on their own.
    #[test]
    fn large_crates() {
        let half = "\n".repeat(LINES_MAX / 2);
        let more = format!("{half}\n");
        let half = half.as_str();
        let found = |second: &str, inner: &str| {
            let files =
                [("a/Cargo.toml", ""), ("a/src/lib.rs", half), ("a/tests/x.rs", second), ("a/b/Cargo.toml", ""), ("a/b/src/lib.rs", inner)];
            check(&Tree::of(&files)).iter().map(ToString::to_string).collect::<Vec<_>>()
        };
        assert_eq!(found(half, &more), Vec::<String>::new());
        assert_eq!(found(&more, ""), [format!("a/Cargo.toml:1: the crate has 9001 lines, more than {LINES_MAX}: split it")]);
        let (all, program) = ("\n".repeat(LINES_MAX + 1), ("Cargo.toml", ""));
        assert_eq!(check(&Tree::of(&[program, ("tests/scenarios/x.rs", all.as_str())])), []);
    }
}
