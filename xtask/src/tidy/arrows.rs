//! The dependencies between crates: facts flow one way, and so do the dependencies. This file is the only list of what may depend on what;
//! a new crate is added here first.

use super::Finding;
use crate::Error;
use crate::tree::Tree;

/// Every crate of the workspace but those of the services: its folder, its name, and the other crates that it may depend on. The binary and the
/// benchmarks may depend on all of them.
const CRATES: &[(&str, &str, &[&str])] = &[
    (
        "",
        "highwater",
        &[
            "access",
            "arguments",
            "disk-files",
            "event-log",
            "feed",
            "fold",
            "ingest",
            "operation",
            "payments",
            "projector",
            "proofs",
            "reads",
            "schemas",
            "scylla-store",
            "services",
            "simulator",
            "surfaces",
            "table-file",
            "transparency",
            "upstreams",
            "view-store",
            "webhooks",
        ],
    ),
    ("api/access/", "access", &["event-log", "operation", "proofs", "schemas", "view-store"]),
    ("api/arguments/", "arguments", &["operation", "proofs", "schemas"]),
    ("api/clearance/", "clearance", &["marks", "operation"]),
    ("api/documents/", "documents", &["arguments", "operation", "pages", "payments", "proofs", "schemas", "site", "texts"]),
    ("api/feed/", "feed", &["event-log", "filter-values", "fold", "operation", "proofs", "schemas", "texts", "upstreams", "view-store"]),
    ("api/filter-values/", "filter-values", &["operation", "schemas", "texts"]),
    ("api/listener/", "listener", &["operation", "schemas"]),
    ("api/operation/", "operation", &["disk-files", "event-log", "proofs", "schemas", "texts", "view-store"]),
    ("api/pages/", "pages", &["proofs"]),
    ("api/payments/", "payments", &["access", "feed", "operation", "proofs", "schemas", "view-store"]),
    (
        "api/reads/",
        "reads",
        &[
            "access",
            "event-log",
            "feed",
            "operation",
            "proofs",
            "schemas",
            "table-file",
            "texts",
            "transparency",
            "upstreams",
            "view-store",
            "webhooks",
        ],
    ),
    ("api/site/", "site", &["operation", "pages", "schemas"]),
    (
        "api/surfaces/",
        "surfaces",
        &[
            "access",
            "arguments",
            "documents",
            "event-log",
            "feed",
            "listener",
            "operation",
            "pages",
            "payments",
            "proofs",
            "schemas",
            "site",
            "table-file",
            "texts",
            "transparency",
            "view-store",
        ],
    ),
    ("api/transparency/", "transparency", &["event-log", "feed", "operation", "proofs", "schemas", "view-store"]),
    ("api/webhooks/", "webhooks", &["access", "feed", "operation", "proofs", "schemas", "view-store"]),
    ("ingest/", "ingest", &["event-log", "proofs", "schemas", "texts", "upstreams", "view-store"]),
    ("ingest/disk-files/", "disk-files", &[]),
    ("ingest/log/", "event-log", &["disk-files", "proofs", "schemas"]),
    ("ingest/upstreams/", "upstreams", &["directives", "proofs", "schemas", "texts"]),
    ("projector/", "projector", &["event-log", "fold", "proofs", "schemas", "table-file", "view-store"]),
    ("projector/fold/", "fold", &["proofs", "schemas", "texts", "view-store"]),
    ("projector/scylla-store/", "scylla-store", &["schemas", "view-store"]),
    ("projector/store/", "view-store", &["disk-files", "schemas"]),
    ("projector/table-file/", "table-file", &[]),
    ("schemas/", "schemas", &["proofs", "texts"]),
    ("schemas/directives/", "directives", &["schemas", "texts"]),
    ("schemas/marks/", "marks", &["texts"]),
    ("schemas/matching/", "matching", &["texts"]),
    ("schemas/proofs/", "proofs", &[]),
    ("schemas/property/", "property", &["schemas", "texts"]),
    ("schemas/texts/", "texts", &[]),
    ("schemas/velocity/", "velocity", &["texts"]),
    (
        "services/list/",
        "services",
        &[
            "access",
            "clearance",
            "fold",
            "operation",
            "projector",
            "proofs",
            "reads",
            "schemas",
            "table-file",
            "texts",
            "transparency",
            "upstreams",
            "view-store",
            "webhooks",
        ],
    ),
    (
        "tests/bench/",
        "bench",
        &[
            "access",
            "directives",
            "engines",
            "event-log",
            "feed",
            "ingest",
            "marks",
            "matching",
            "operation",
            "payments",
            "projector",
            "proofs",
            "reads",
            "schemas",
            "scylla-store",
            "services",
            "simulator",
            "surfaces",
            "texts",
            "transparency",
            "upstreams",
            "velocity",
            "view-store",
            "webhooks",
        ],
    ),
    ("tests/engines/", "engines", &[]),
    ("tests/simulator/", "simulator", &["proofs", "schemas", "simulated-agencies", "simulated-world"]),
    ("tests/simulator/agencies/", "simulated-agencies", &["proofs", "simulated-world"]),
    ("tests/simulator/world/", "simulated-world", &["schemas"]),
    ("xtask/", "xtask", &[]),
];
/// Crates that the tests of every crate may use in addition: the servers, the store on one of them, a view that is filled change by change
/// (`feed::testing`), and the list of services.
const OF_TESTS: &[&str] = &["engines", "feed", "scylla-store", "services"];
/// What the crate of a service, `services/<name>/`, may depend on. No service depends on another.
const OF_A_SERVICE: &[&str] = &[
    "access",
    "clearance",
    "directives",
    "feed",
    "filter-values",
    "fold",
    "marks",
    "matching",
    "operation",
    "pages",
    "proofs",
    "property",
    "reads",
    "schemas",
    "table-file",
    "texts",
    "transparency",
    "upstreams",
    "velocity",
    "view-store",
    "webhooks",
];
/// The crates that may depend on services. The tests of all crates but services may, too.
const ON_SERVICES: &[&str] = &["bench", "highwater", "services"];

/// Returns the service whose crate is in a folder.
fn service(folder: &str) -> Option<&str> {
    folder.strip_prefix("services/")?.strip_suffix('/').filter(|name| *name != "list" && !name.contains('/'))
}

pub(super) fn check(tree: &Tree) -> Result<Vec<Finding>, Error> {
    let mut findings = Vec::new();
    let is_folder = |folder: &&str| folder.is_empty() || folder.ends_with('/');
    let folders = || tree.files().filter_map(|(path, text)| Some((path, text, path.strip_suffix("Cargo.toml").filter(is_folder)?)));
    let services: Vec<&str> = folders().filter_map(|(.., folder)| service(folder)).collect();
    for (path, text, folder) in folders() {
        match (CRATES.iter().find(|(known, ..)| *known == folder), service(folder)) {
            (Some((_, name, allowed)), _) => findings.extend(of_one(path, text, name, allowed, &services)),
            (None, Some(name)) => findings.extend(of_one(path, text, name, OF_A_SERVICE, &services)),
            (None, None) => {
                findings.push(Finding::new(path, 1, "an unknown crate: list it in xtask/src/tidy/arrows.rs with what it may depend on"))
            }
        }
    }
    let of_services = services.iter().map(|name| (format!("services/{name}/"), *name));
    for (folder, name) in CRATES.iter().map(|(folder, name, _)| ((*folder).to_owned(), *name)).chain(of_services) {
        let path = format!("{folder}Cargo.toml");
        if !tree.must(&path)?.contains(&format!("name = \"{name}\"")) {
            findings.push(Finding::new(&path, 1, format!("is not named {name}")));
        }
    }
    Ok(findings)
}

fn of_one(path: &str, text: &str, name: &str, allowed: &[&str], services: &[&str]) -> Vec<Finding> {
    let (mut findings, mut section) = (Vec::new(), "");
    for (at, line) in text.lines().enumerate() {
        if let Some(head) = line.strip_prefix('[') {
            section = head.trim_end_matches(']');
        }
        let key = line.split(['.', ' ', '=']).next().unwrap_or_default();
        let is_test = section.ends_with("dev-dependencies");
        let is_service = services.contains(&key);
        let may = match is_service {
            true => ON_SERVICES.contains(&name) || is_test && !services.contains(&name),
            false => allowed.contains(&key) || is_test && OF_TESTS.contains(&key),
        };
        let is_dependency = section.ends_with("dependencies") && !section.starts_with("workspace");
        if is_dependency && (is_service || CRATES.iter().any(|(_, known, _)| *known == key)) && !may {
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
        let found = of_one("ingest/log/Cargo.toml", text, "event-log", &["schemas"], &[]);
        assert_eq!(found.iter().map(|finding| finding.line).collect::<Vec<_>>(), [4, 8]);
        assert!(found[0].message.contains("must not depend on feed"));
    }

    /// Proves that a service depends on no other one, and that the list, and the tests of other crates, may name services.
    #[test]
    fn services_do_not_know_each_other() {
        let text = "[dependencies]\nlabs = { path = \"../labs\" }\n\n[dev-dependencies]\nlabs = { path = \"../labs\" }\n";
        let lines =
            |name: &str| of_one("Cargo.toml", text, name, OF_A_SERVICE, &["labs", "names"]).iter().map(|finding| finding.line).collect();
        let (of_service, of_list, of_engine): (Vec<usize>, Vec<usize>, Vec<usize>) =
            (lines("names"), lines("services"), lines("projector"));
        assert_eq!((of_service, of_list, of_engine), (vec![2, 5], Vec::new(), vec![2]));
        assert_eq!((service("services/labs/"), service("services/list/"), service("api/feed/")), (Some("labs"), None, None));
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
