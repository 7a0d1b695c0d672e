//! The table of metrics in ops/docs/reference/metrics.md.

use std::collections::BTreeMap;

/// Every metric that the code defines: name, and its row in the table.
pub(crate) fn defined() -> BTreeMap<String, String> {
    let described = [
        ingest::metrics::described(),
        event_log::metered_log::described(),
        projector::metrics::descriptions(),
        operation::metrics::descriptions(),
    ];
    let rows = described.concat().into_iter().map(|desc| {
        let labels: Vec<String> = desc.variable_labels.iter().map(|label| format!("`{label}`")).collect();
        let row = format!("| `{}` | {} | {} |", desc.fq_name, labels.join(" "), desc.help);
        (desc.fq_name, row)
    });
    rows.collect()
}

/// Proves that the table has one row for each metric of the code, with its labels and its words, and no other.
#[test]
fn table() {
    let page = crate::text("ops/docs/reference/metrics.md");
    let mut rows: Vec<&str> = page.lines().filter(|line| line.starts_with("| `")).collect();
    rows.sort_unstable();
    let mut wanted: Vec<String> = defined().into_values().collect();
    wanted.sort_unstable();
    assert_eq!(rows, wanted, "ops/docs/reference/metrics.md should hold:\n{}", wanted.join("\n"));
}

/// Proves that names follow the conventions: lower case; what only grows ends in `_total`, and nothing else does; a room of ours comes first.
#[test]
fn names() {
    for name in defined().keys() {
        assert!(name.bytes().all(|byte| byte.is_ascii_lowercase() || byte == b'_'), "{name}");
        let room = name.split('_').next().unwrap();
        assert!(["ingest", "log", "projector", "api", "engine", "runtime"].contains(&room), "{name}");
        assert!(!name.ends_with("_count") && !name.ends_with("_sum") && !name.ends_with("_bucket"), "{name} is a histogram's own word");
    }
    let totals: Vec<String> = defined().into_keys().filter(|name| name.ends_with("_total")).collect();
    assert!(totals.len() > 10, "{totals:?}");
}
