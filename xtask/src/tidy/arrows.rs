//! The dependencies between crates: facts flow one way, and so do the dependencies. This file is the only list of what may depend on what;
//! a new crate is added here first.

use super::Finding;
use crate::Error;
use crate::tree::Tree;

/// Every crate of the workspace: its folder, its name, and the other crates that it may depend on. The binary and the benchmarks may depend
/// on all of them.
const CRATES: &[(&str, &str, &[&str])] = &[
    (
        "",
        "highwater",
        &[
            "access",
            "disk-files",
            "event-log",
            "feed",
            "ingest",
            "operation",
            "payments",
            "projector",
            "schemas",
            "services",
            "simulator",
            "surfaces",
            "table-file",
            "upstreams",
            "view-store",
            "webhooks",
        ],
    ),
    ("api/access/", "access", &["event-log", "operation", "schemas", "view-store"]),
    ("api/feed/", "feed", &["event-log", "operation", "schemas", "upstreams", "view-store"]),
    ("api/operation/", "operation", &["disk-files", "event-log", "schemas", "view-store"]),
    ("api/pages/", "pages", &["schemas"]),
    ("api/payments/", "payments", &["access", "feed", "operation", "schemas", "view-store"]),
    (
        "api/services/",
        "services",
        &[
            "access",
            "directives",
            "event-log",
            "feed",
            "marks",
            "matching",
            "operation",
            "pages",
            "schemas",
            "table-file",
            "upstreams",
            "velocity",
            "view-store",
            "webhooks",
        ],
    ),
    ("api/site/", "site", &["operation", "pages", "schemas"]),
    (
        "api/surfaces/",
        "surfaces",
        &["access", "event-log", "feed", "operation", "pages", "payments", "schemas", "services", "site", "view-store"],
    ),
    ("api/webhooks/", "webhooks", &["access", "feed", "operation", "schemas", "view-store"]),
    ("ingest/", "ingest", &["event-log", "schemas", "upstreams", "view-store"]),
    ("ingest/disk-files/", "disk-files", &[]),
    ("ingest/log/", "event-log", &["disk-files", "schemas"]),
    ("ingest/upstreams/", "upstreams", &["directives", "schemas"]),
    ("projector/", "projector", &["directives", "event-log", "marks", "matching", "schemas", "table-file", "velocity", "view-store"]),
    ("projector/store/", "view-store", &["disk-files", "schemas"]),
    ("projector/table-file/", "table-file", &[]),
    ("schemas/", "schemas", &[]),
    ("schemas/directives/", "directives", &["schemas"]),
    ("schemas/marks/", "marks", &["schemas"]),
    ("schemas/matching/", "matching", &["schemas"]),
    ("schemas/velocity/", "velocity", &["schemas"]),
    (
        "tests/bench/",
        "bench",
        &[
            "access",
            "engines",
            "event-log",
            "feed",
            "ingest",
            "marks",
            "operation",
            "payments",
            "projector",
            "schemas",
            "services",
            "simulator",
            "surfaces",
            "upstreams",
            "view-store",
            "webhooks",
        ],
    ),
    ("tests/engines/", "engines", &[]),
    ("tests/simulator/", "simulator", &["schemas"]),
    ("xtask/", "xtask", &[]),
];
/// Crates that the tests of every crate may use in addition: the servers, and a view that is filled change by change (`feed::testing`).
const OF_TESTS: &[&str] = &["engines", "feed"];

pub(super) fn check(tree: &Tree) -> Result<Vec<Finding>, Error> {
    let mut findings = Vec::new();
    for (path, text) in tree.files() {
        let Some(folder) = path.strip_suffix("Cargo.toml").filter(|folder| folder.is_empty() || folder.ends_with('/')) else { continue };
        match CRATES.iter().find(|(known, ..)| *known == folder) {
            Some((_, name, allowed)) => findings.extend(of_one(path, text, name, allowed)),
            None => {
                findings.push(Finding::new(path, 1, "an unknown crate: list it in xtask/src/tidy/arrows.rs with what it may depend on"))
            }
        }
    }
    for (folder, name, _) in CRATES {
        let path = format!("{folder}Cargo.toml");
        if !tree.must(&path)?.contains(&format!("name = \"{name}\"")) {
            findings.push(Finding::new(&path, 1, format!("is not named {name}")));
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

    /// Proves that a forbidden dependency is found, in tests too, and that crates from elsewhere are ignored.
    #[test]
    fn forbidden_dependencies() {
        let text = "[dependencies]\nschemas.workspace = true\nserde.workspace = true\nfeed = { path = \"x\" }\n\n\
            [dev-dependencies]\nengines.workspace = true\nprojector.workspace = true\n\n[workspace.dependencies]\nfeed = { path = \"api\" }\n";
        let found = of_one("ingest/log/Cargo.toml", text, "event-log", &["schemas"]);
        assert_eq!(found.iter().map(|finding| finding.line).collect::<Vec<_>>(), [4, 8]);
        assert!(found[0].message.contains("must not depend on feed"));
    }

    /// Proves that the list has no circle of dependencies.
    #[test]
    fn no_circle_of_crates() {
        fn reaches(from: &str, to: &str) -> bool {
            let (.., next) = CRATES.iter().find(|(_, name, _)| *name == from).unwrap();
            next.iter().any(|next| *next == to || reaches(next, to))
        }
        for (_, name, _) in CRATES {
            assert!(!reaches(name, name), "{name}");
        }
    }
}
