//! Facts flow one way, and the crates depend so. What may depend on what stands here and nowhere else; a new crate is given its place here
//! first.

use super::Finding;
use crate::Error;
use crate::tree::Tree;

/// Every crate of ours: its folder, its name, and those of ours that it may depend on. The binary and the bench programs wire all together.
const CRATES: &[(&str, &str, &[&str])] = &[
    ("", "highwater", &["api", "event-log", "ingest", "projector", "schemas", "simulator", "upstreams", "view-store"]),
    ("api/", "api", &["event-log", "schemas", "upstreams", "view-store"]),
    ("ingest/", "ingest", &["event-log", "schemas", "upstreams", "view-store"]),
    ("ingest/log/", "event-log", &["schemas"]),
    ("ingest/upstreams/", "upstreams", &["schemas"]),
    ("projector/", "projector", &["event-log", "schemas", "view-store"]),
    ("projector/store/", "view-store", &["schemas"]),
    ("schemas/", "schemas", &[]),
    ("tests/bench/", "bench", &["api", "engines", "event-log", "ingest", "projector", "schemas", "simulator", "upstreams", "view-store"]),
    ("tests/engines/", "engines", &[]),
    ("tests/simulator/", "simulator", &["schemas"]),
    ("xtask/", "xtask", &[]),
];
/// What any crate's tests may use beside.
const OF_TESTS: &[&str] = &["engines"];

pub(super) fn check(tree: &Tree) -> Result<Vec<Finding>, Error> {
    let mut findings = Vec::new();
    for (path, text) in tree.files() {
        let Some(folder) = path.strip_suffix("Cargo.toml").filter(|folder| folder.is_empty() || folder.ends_with('/')) else { continue };
        match CRATES.iter().find(|(known, ..)| *known == folder) {
            Some((_, name, allowed)) => findings.extend(of_one(path, text, name, allowed)),
            None => findings.push(Finding::new(path, 1, "a crate without a place: say in xtask/src/tidy/arrows.rs what it may depend on")),
        }
    }
    for (folder, name, _) in CRATES {
        let path = format!("{folder}Cargo.toml");
        if !tree.must(&path)?.contains(&format!("name = \"{name}\"")) {
            findings.push(Finding::new(&path, 1, format!("is not called {name}")));
        }
    }
    Ok(findings)
}

fn of_one(path: &str, text: &str, name: &str, allowed: &[&str]) -> Vec<Finding> {
    let (mut findings, mut section) = (Vec::new(), "");
    for (at, line) in text.lines().enumerate() {
        if let Some(head) = line.strip_prefix('[') {
            section = head.trim_end_matches(']');
        }
        let key = line.split(['.', ' ', '=']).next().unwrap_or_default();
        let of_tests = section.ends_with("dev-dependencies") && OF_TESTS.contains(&key);
        let is_dependency = section.ends_with("dependencies") && !section.starts_with("workspace");
        if is_dependency && CRATES.iter().any(|(_, known, _)| *known == key) && !allowed.contains(&key) && !of_tests {
            findings.push(Finding::new(path, at + 1, format!("{name} must not depend on {key}: facts flow one way")));
        }
    }
    findings
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Proves that a step backwards is found, tests' own included, and that what is not ours is passed over.
    #[test]
    fn steps_backwards() {
        let text = "[dependencies]\nschemas.workspace = true\nserde.workspace = true\napi = { path = \"x\" }\n\n\
            [dev-dependencies]\nengines.workspace = true\nprojector.workspace = true\n\n[workspace.dependencies]\napi = { path = \"api\" }\n";
        let found = of_one("ingest/log/Cargo.toml", text, "event-log", &["schemas"]);
        assert_eq!(found.iter().map(|finding| finding.line).collect::<Vec<_>>(), [4, 8]);
        assert!(found[0].words.contains("must not depend on api"));
    }

    /// Proves that no crate may, by way of others, depend on itself.
    #[test]
    fn no_way_round() {
        fn reaches(from: &str, to: &str) -> bool {
            let (.., next) = CRATES.iter().find(|(_, name, _)| *name == from).unwrap();
            next.iter().any(|next| *next == to || reaches(next, to))
        }
        for (_, name, _) in CRATES {
            assert!(!reaches(name, name), "{name}");
        }
    }
}
