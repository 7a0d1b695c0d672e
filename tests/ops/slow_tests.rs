//! The list of slow tests in the documentation.

use std::collections::BTreeSet;
use std::path::Path;

use crate::{file, text};

/// Adds the names of slow tests in the sources of a folder.
fn collect(folder: &Path, names: &mut BTreeSet<String>) {
    for entry in std::fs::read_dir(folder).unwrap() {
        let path = entry.unwrap().path();
        if path.is_dir() {
            collect(&path, names);
        } else {
            let source = std::fs::read_to_string(&path).unwrap();
            let calls = source.split("is_slow_run(\"").skip(1);
            names.extend(calls.map(|rest| rest.split('"').next().unwrap().to_owned()));
        }
    }
}

/// Proves that the documentation lists exactly the scenarios that `ops/test` leaves out because they are slow.
#[test]
fn slow_tests_are_listed() {
    let page = text("ops/docs/contributing/tests.md");
    let (_, section) = page.split_once("## Slow tests").unwrap();
    let section = section.split("\n## ").next().unwrap();
    let listed: BTreeSet<String> =
        section.lines().filter_map(|line| Some(line.strip_prefix("| `")?.split('`').next()?.to_owned())).collect();
    let mut used = BTreeSet::new();
    collect(&file("tests/scenarios"), &mut used);
    assert!(used.len() > 10);
    assert_eq!(listed, used);
}
