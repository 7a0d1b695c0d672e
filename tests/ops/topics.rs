//! The reference page of the topics and its example program.

use std::collections::BTreeSet;

use schemas::avro;
use schemas::topics::{self, Topic, TopicKind};

use crate::text;

/// Proves that the page lists every public topic with its partitions and no private one, the change topics of all services in one row, and that it shows
/// the current fingerprint of a schema.
#[test]
fn guide() {
    let guide = text("ops/docs/reference/topics.md");
    let rows: Vec<&str> = guide.lines().filter(|line| line.starts_with("| `")).collect();
    let public = topics::ALL.iter().filter(|topic| !topic.private);
    let name = |topic: &Topic| if topic.kind == TopicKind::Changes { "changes.SERVICE" } else { topic.name };
    let wanted: BTreeSet<(&str, u32)> = public.map(|topic| (name(topic), topic.partitions)).collect();
    assert_eq!(rows.len(), wanted.len(), "{rows:?}");
    for (name, partitions) in wanted {
        let row = rows.iter().find(|row| row.starts_with(&format!("| `{name}` |"))).unwrap();
        assert!(row.contains(&format!(" | {partitions} | ")), "{row}");
    }
    let fingerprint = avro::fingerprint_hex("changes.recalls").unwrap();
    assert!(guide.contains(&format!("`/schemas/{fingerprint}`")), "the schema has changed: its fingerprint is {fingerprint}");
    let in_frame: Vec<&str> = (0..8).rev().map(|byte| &fingerprint[byte * 2..byte * 2 + 2]).collect();
    assert!(guide.contains(&format!("C3 01 | {} |", in_frame.join(" "))), "{in_frame:?}");
}

/// Proves that the page, the example and its check install the same packages.
#[test]
fn example_packages() {
    let packages = "confluent-kafka==2.16.1 fastavro==1.13.1";
    for path in ["ops/docs/reference/topics.md", "ops/examples/topics.py", "ops/checks/topics"] {
        assert!(text(path).contains(packages), "{path}");
    }
}
