//! Texts that must not be in any file: tabs, paths of one machine, and names of package registries. Builds fetch the packages of the lock file
//! from the registry that their machine is configured for.

use super::{Finding, line_of};
use crate::tree::Tree;

/// Answers of upstreams, which may contain any text.
const FIXTURES: &str = "tests/fixtures/";
/// Files of Go, whose formatter indents with tabs.
const GO_FILES: [&str; 2] = [".go", "go.mod"];
/// The beginnings of paths that exist on one machine. Written in parts, because this file must not contain them either.
const PLACES: &[&str] =
    &[concat!("/ho", "me/"), concat!("/ro", "ot/"), concat!("/Us", "ers/"), concat!("/wo", "rk/"), concat!("/m", "nt/")];
/// Package registries, by host or by setting.
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
/// The only source that a lock file may name. Cargo writes it for every mirror.
const LOCKED: &str = concat!("source = \"registry+https://github.com/rust-lang/crates", ".io-index\"");

pub(super) fn check(tree: &Tree) -> Vec<Finding> {
    tree.files().flat_map(|(path, text)| of_one(path, text)).collect()
}

fn of_one(path: &str, text: &str) -> Vec<Finding> {
    if path == "Cargo.lock" {
        let others = text.lines().enumerate().filter(|(_, line)| line.starts_with("source = ") && *line != LOCKED);
        return others.map(|(at, _)| Finding::new(path, at + 1, "a package from another source")).collect();
    }
    let mut findings = Vec::new();
    if !path.starts_with(FIXTURES) && !GO_FILES.iter().any(|end| path.ends_with(end)) {
        findings.extend(text.match_indices('\t').map(|(at, _)| Finding::new(path, line_of(text, at), "a tab")));
    }
    for place in PLACES {
        // After a host or a folder it is part of another path.
        let is_first = |at: usize| {
            !text.get(..at).and_then(|before| before.chars().next_back()).is_some_and(|c| c.is_alphanumeric() || "._-~}>/".contains(c))
        };
        let found = text.match_indices(place).filter(|(at, _)| is_first(*at));
        findings.extend(found.map(|(at, _)| Finding::new(path, line_of(text, at), format!("{place} is a path of one machine"))));
    }
    for host in REGISTRIES {
        findings.extend(
            text.match_indices(host)
                .map(|(at, _)| Finding::new(path, line_of(text, at), format!("{host}: package registries must not be named"))),
        );
    }
    findings
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Proves that each forbidden text is reported with its line, and that similar texts are not.
    #[test]
    fn forbidden_texts() {
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
