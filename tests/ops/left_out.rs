//! The list of tests that `ops/test` leaves out, in .config/nextest.toml.

use std::collections::BTreeSet;

use crate::{file, text};

/// Returns the names that a filter contains in the form `prefixNAMEsuffix`.
fn names(filter: &str, prefix: &str, suffix: char) -> BTreeSet<String> {
    filter.split(prefix).skip(1).map(|rest| rest.split(suffix).next().unwrap().to_owned()).collect()
}

/// Proves that every test that the filter names exists: nextest ignores names without a test, so a renamed test would silently run again.
#[test]
fn tests_that_are_left_out_exist() {
    let config: toml::Table = text(".config/nextest.toml").parse().unwrap();
    let filter = config["profile"]["default"]["default-filter"].as_str().unwrap();
    let (scenarios, crates) = filter.split_once("\n  )\n").unwrap();
    let scenarios = names(scenarios, "test(=", ')');
    assert!(scenarios.len() > 10, "{scenarios:?}");
    for scenario in scenarios {
        let (module, name) = scenario.rsplit_once("::").unwrap();
        let path = format!("tests/scenarios/{}", module.replace("::", "/"));
        let path = [format!("{path}.rs"), format!("{path}/mod.rs")].into_iter().find(|path| file(path).exists());
        let path = path.unwrap_or_else(|| panic!("{scenario}: no such module"));
        assert!(text(&path).contains(&format!("fn {name}(")), "{scenario} is not in {path}");
    }
    let crates: Vec<String> = names(crates, "test(=", ')').into_iter().collect();
    assert_eq!(crates, ["tests::topics::asyncapi_official"]);
    assert!(text("api/surfaces/src/tests/topics.rs").contains("fn asyncapi_official("));
}
