//! What must not stand in any file: tabs, places of somebody's machine, and where packages were fetched from. Builds take what the lock
//! file names from wherever their machine is set to look.

use super::{Finding, line_of};
use crate::tree::Tree;

/// Answers of upstreams, in which anything may stand.
const FIXTURES: &str = "tests/fixtures/";
/// Files of Go, whose formatter indents with tabs.
const GO_FILES: [&str; 2] = [".go", "go.mod"];
/// What only makes sense on one machine. Written in parts, or this file would break its own rule.
const PLACES: &[&str] =
    &[concat!("/ho", "me/"), concat!("/ro", "ot/"), concat!("/Us", "ers/"), concat!("/wo", "rk/"), concat!("/m", "nt/")];
/// Where packages come from, by host or by setting.
const REGISTRIES: &[&str] = &[
    concat!("crates", ".io"),
    concat!("npm", "js."),
    concat!("pypi", ".org"),
    concat!("python", "hosted.org"),
    concat!("repo.maven", ".apache.org"),
    concat!("repo1.maven", ".org"),
    concat!("proxy.golang", ".org"),
    concat!("rubygems", ".org"),
    concat!("replace", "-with"),
    concat!("index", "-url"),
    concat!("[regis", "tries"),
];
/// The one source that a lock file may name; cargo writes it whatever it was fetched from.
const LOCKED: &str = concat!("source = \"registry+https://github.com/rust-lang/crates", ".io-index\"");

pub(super) fn check(tree: &Tree) -> Vec<Finding> {
    tree.files().flat_map(|(path, text)| of_one(path, text)).collect()
}

fn of_one(path: &str, text: &str) -> Vec<Finding> {
    if path == "Cargo.lock" {
        let others = text.lines().enumerate().filter(|(_, line)| line.starts_with("source = ") && *line != LOCKED);
        return others.map(|(at, _)| Finding::new(path, at + 1, "a package from elsewhere")).collect();
    }
    let mut findings = Vec::new();
    if !path.starts_with(FIXTURES) && !GO_FILES.iter().any(|end| path.ends_with(end)) {
        findings.extend(text.match_indices('\t').map(|(at, _)| Finding::new(path, line_of(text, at), "a tab")));
    }
    for place in PLACES {
        // Behind a host or a folder it is part of another path.
        let is_first = |at: usize| {
            !text.get(..at).and_then(|before| before.chars().next_back()).is_some_and(|c| c.is_alphanumeric() || "._-~}>/".contains(c))
        };
        let found = text.match_indices(place).filter(|(at, _)| is_first(*at));
        findings.extend(found.map(|(at, _)| Finding::new(path, line_of(text, at), format!("{place} is of one machine"))));
    }
    for host in REGISTRIES {
        findings.extend(
            text.match_indices(host).map(|(at, _)| Finding::new(path, line_of(text, at), format!("{host}: no package registry is named"))),
        );
    }
    findings
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Proves that each is told with its line, and that what only looks like it is not.
    #[test]
    fn what_must_not_stand() {
        let found = |path: &str, text: &str| of_one(path, text).into_iter().map(|finding| finding.line).collect::<Vec<_>>();
        assert_eq!(found("a.md", "x\n\ty\n"), [2]);
        assert!(found("tests/fixtures/nhtsa/flat.txt", "x\ty\n").is_empty());
        assert!(found("tests/witness/main.go", "\tx\n").is_empty() && found("tests/witness/go.mod", "\tx\n").is_empty());
        assert_eq!(found("a.md", &format!("x\nsee {}x/y\n", PLACES[0])), [2]);
        assert!(found("a.md", &format!("https://example.org{}x and target{}y\n", PLACES[0], PLACES[3])).is_empty());
        assert_eq!(found("a.toml", &format!("\nurl = \"https://static.{}\"\n", REGISTRIES[0])), [2]);
        assert!(found("Cargo.lock", &format!("{LOCKED}\n")).is_empty());
        assert_eq!(found("Cargo.lock", "name = \"x\"\nsource = \"git+https://example.org\"\n"), [2]);
    }
}
