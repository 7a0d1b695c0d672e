//! The list of tests that `ops/test` leaves out, in .config/nextest.toml.

use std::collections::BTreeSet;

use crate::{file, text};

/// Returns the names that a filter contains in the form `prefixNAMEsuffix`.
fn names(filter: &str, prefix: &str, suffix: char) -> BTreeSet<String> {
    filter.split(prefix).skip(1).map(|rest| rest.split(suffix).next().unwrap().to_owned()).collect()
}

/// Returns the table of tests in quarantine: its head, a line, and a row for each test.
fn quarantine(page: &str) -> Vec<Vec<&str>> {
    page.lines().filter(|line| line.starts_with('|')).map(cells).collect()
}

/// Returns the names of the tests in quarantine.
fn quarantined() -> BTreeSet<String> {
    let page = text("ops/docs/contributing/quarantine.md");
    quarantine(&page).iter().skip(2).map(|row| row[0].trim_matches('`').to_owned()).collect()
}

/// Proves that every test that the filter names exists: nextest ignores names without a test, so a renamed test would silently run again. Whether a test of a
/// crate exists that is in quarantine is noticed by `ops/test --all`, which runs it.
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
    let crates: Vec<String> = names(crates, "test(=", ')').difference(&quarantined()).cloned().collect();
    let expected = [
        "index::tests::answers_equal_a_comparison_with_100_000_marks",
        "rules::tests::ninety_days_are_bounded",
        "tests::topics::asyncapi_official",
    ];
    assert_eq!(crates, expected);
    assert!(text("services/phrases/src/rules/tests.rs").contains("fn ninety_days_are_bounded("));
    assert!(text("schemas/marks/src/index/tests.rs").contains("fn answers_equal_a_comparison_with_100_000_marks("));
    assert!(text("api/surfaces/src/tests/topics.rs").contains("fn asyncapi_official("));
}

/// Proves that every scenario that the page on tests names for a promise exists, that CI runs those of the promises of CI, and that each
/// scenario that CI leaves out has a promise. A test in quarantine is soon mended, so the page need not say that CI does not run it now.
#[test]
fn promises_name_tests() {
    let page = text("ops/docs/contributing/tests.md");
    let config: toml::Table = text(".config/nextest.toml").parse().unwrap();
    let left_out = config["profile"]["default"]["default-filter"].as_str().unwrap();
    let (scenarios, _) = left_out.split_once("\n  )\n").unwrap();
    let left_out = &names(left_out, "test(=", ')') - &quarantined();
    let (_, rest) = page.split_once("\n## What CI proves\n").unwrap();
    let (of_ci, rest) = rest.split_once("\n## What only `ops/test --all` proves\n").unwrap();
    let (of_all, _) = rest.split_once("\n## ").unwrap();
    for (table, is_of_ci) in [(of_ci, true), (of_all, false)] {
        // Rows that name a crate name tests of it, which are not looked for.
        let rows = table.lines().filter(|line| line.starts_with("| ") && !line.contains("crate"));
        let named: Vec<&str> = rows.flat_map(|row| row.split('`').skip(1).step_by(2)).filter(|name| name.contains("::")).collect();
        assert!(named.len() > 10, "{named:?}");
        for name in &named {
            let (module, test) = name.rsplit_once("::").unwrap();
            let path = format!("tests/scenarios/{}", module.replace("::", "/"));
            let path = [format!("{path}.rs"), format!("{path}/mod.rs")].into_iter().find(|path| file(path).exists());
            let path = path.unwrap_or_else(|| panic!("{name}: no such module"));
            assert!(test == "*" || text(&path).contains(&format!("fn {test}(")), "{name} is not in {path}");
            assert!(!is_of_ci || !left_out.contains(*name), "CI does not run {name}");
        }
        for name in names(scenarios, "test(=", ')').intersection(&left_out).filter(|_| !is_of_ci) {
            let of_module = format!("{}::*", name.rsplit_once("::").unwrap().0);
            assert!(named.iter().any(|of_page| of_page == name || *of_page == of_module), "the page does not say what {name} proves");
        }
    }
}

/// Proves that at most five tests are in quarantine, that each is left out of `ops/test`, and that its row has what the page asks for.
#[test]
fn tests_in_quarantine_are_left_out() {
    let page = text("ops/docs/contributing/quarantine.md");
    let rows = quarantine(&page);
    let (head, rows) = (&rows[0], &rows[2..]);
    assert_eq!(head, &["name", "date", "seed", "output", "cause"]);
    assert!(rows.len() <= 5, "{} tests are in quarantine", rows.len());
    let config = text(".config/nextest.toml");
    for row in rows {
        let [name, date, seed, output, cause] = row.as_slice() else { panic!("{row:?}") };
        let name = name.strip_prefix('`').and_then(|name| name.strip_suffix('`')).unwrap_or_else(|| panic!("{row:?}: no name"));
        assert!(config.contains(&format!("test(={name})")), "{name} is not in default-filter");
        assert!(date.parse::<jiff::civil::Date>().is_ok(), "{row:?}: no date");
        assert!([seed, output, cause].iter().all(|cell| !cell.is_empty()), "{row:?}: an empty cell");
    }
}

/// Returns the cells of a row of a table.
fn cells(row: &str) -> Vec<&str> {
    row.trim_matches('|').split('|').map(str::trim).collect()
}
