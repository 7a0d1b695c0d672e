//! The pages of public errors under `ops/docs/errors/`: each code has one that agrees with the table, and no page has no code.

use std::collections::BTreeSet;
use std::fs;
use std::path::PathBuf;

use schemas::error_code::ErrorCode;

fn folder() -> PathBuf {
    PathBuf::from(concat!(env!("CARGO_MANIFEST_DIR"), "/../ops/docs/errors"))
}

/// Proves that each code has a page that starts with the table's code, meaning, status and retry advice.
#[test]
fn each_code_has_its_page() {
    for code in ErrorCode::ALL {
        let path = folder().join(format!("{}.md", code.as_str()));
        let page = fs::read_to_string(&path).unwrap_or_else(|error| panic!("{}: {error}", path.display()));
        let retry = if code.may_retry() { "may succeed later" } else { "fails again" };
        let head = format!("# {}\n\n{} Status {}. The same request {retry}.\n", code.as_str(), code.title().trim(), code.status());
        assert!(page.starts_with(&head), "{} does not begin with:\n{head}", path.display());
        let advice = code.advice();
        assert!(!advice.is_empty() && page.contains(&format!("\nWhat to do: {advice}\n")), "{} does not say what to do", path.display());
        assert!(!advice.contains("]("), "{}: served pages show no links in what to do", path.display());
    }
}

/// Proves that no page remains of a code that was removed from the table.
#[test]
fn no_page_without_a_code() {
    let pages: BTreeSet<String> = fs::read_dir(folder()).unwrap().map(|entry| entry.unwrap().file_name().into_string().unwrap()).collect();
    let codes: BTreeSet<String> = ErrorCode::ALL.iter().map(|code| format!("{}.md", code.as_str())).collect();
    assert_eq!(pages, codes);
}

/// Proves that the list of errors in the reference has one row for each code, in the order of the table.
#[test]
fn the_reference_lists_every_code() {
    let page = fs::read_to_string(folder().join("../reference/errors.md")).unwrap();
    let rows: Vec<&str> = page.lines().filter(|line| line.starts_with("| [")).collect();
    let expected = ErrorCode::ALL.iter().map(|code| {
        let (name, retry) = (code.as_str(), if code.may_retry() { "yes" } else { "no" });
        format!("| [`{name}`](../errors/{name}.md) | {} | {retry} | {} |", code.status(), code.title().trim())
    });
    assert_eq!(rows, expected.collect::<Vec<_>>());
}
