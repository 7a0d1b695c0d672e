//! The columns of the export of a topic.

use schemas::topics::{Topic, TopicKind};
use table_file::{Column, Kind};

/// The columns that hold integers.
const INTS: [&str; 4] = ["partition", "offset", "version", "seq"];
/// The columns that hold points in time.
const TIMES: [&str; 3] = ["observedAt", "recordedAt", "rejectedAt"];
/// The columns that hold nested values.
const NESTED: [&str; 5] = ["data", "run", "input", "record", "before"];

/// The columns of a topic's export, in their order. `run` is empty unless run events are exported.
pub(super) fn of_topic(topic: &Topic, with_runs: bool) -> Vec<Column> {
    let names: &[&str] = match topic.kind {
        TopicKind::Facts | TopicKind::Commands => &[
            "topic",
            "partition",
            "offset",
            "id",
            "kind",
            "key",
            "version",
            "observedAt",
            "upstream",
            "contentHash",
            "prevHash",
            "supersededBy",
            "data",
            "run",
        ],
        TopicKind::Changes => {
            &["topic", "partition", "offset", "seq", "hash", "prevHash", "event", "id", "recordedAt", "input", "record", "before", "reason"]
        }
        TopicKind::Rejects => &["topic", "partition", "offset", "upstream", "stream", "reference", "reason", "rejectedAt", "truncated"],
        TopicKind::Imports => &[],
    };
    let kind = |name: &str| match name {
        name if INTS.contains(&name) => Kind::Int,
        name if TIMES.contains(&name) => Kind::Time,
        name if NESTED.contains(&name) => Kind::Json,
        "truncated" => Kind::Bool,
        _ => Kind::Text,
    };
    names.iter().filter(|name| with_runs || **name != "run").map(|name| Column::new(*name, kind(name))).collect()
}
