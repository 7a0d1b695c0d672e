//! The guide to the topics and its example.

use schemas::{avro, topics};

use crate::text;

/// Proves that the guide names every public topic with its partitions and no private one as readable, and shows a fingerprint that is served.
#[test]
fn guide() {
    let guide = text("ops/docs/reference/topics.md");
    let rows: Vec<&str> = guide.lines().filter(|line| line.starts_with("| `")).collect();
    let public: Vec<_> = topics::ALL.iter().filter(|topic| !topic.private).collect();
    assert_eq!(rows.len(), public.len(), "{rows:?}");
    for topic in public {
        let row = rows.iter().find(|row| row.starts_with(&format!("| `{}` |", topic.name))).unwrap();
        assert!(row.contains(&format!(" | {} | ", topic.partitions)), "{row}");
    }
    let fingerprint = avro::fingerprint_hex("changes.recalls").unwrap();
    assert!(guide.contains(&format!("`/schemas/{fingerprint}`")), "the schema has changed: its fingerprint is {fingerprint}");
    let in_frame: Vec<&str> = (0..8).rev().map(|byte| &fingerprint[byte * 2..byte * 2 + 2]).collect();
    assert!(guide.contains(&format!("C3 01 | {} |", in_frame.join(" "))), "{in_frame:?}");
}

/// Proves that the guide, the example and its check ask for the same packages.
#[test]
fn example_packages() {
    let packages = "confluent-kafka==2.16.1 fastavro==1.13.1";
    for path in ["ops/docs/reference/topics.md", "ops/examples/topics.py", "ops/checks/topics"] {
        assert!(text(path).contains(packages), "{path}");
    }
}
