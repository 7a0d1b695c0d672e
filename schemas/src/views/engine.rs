//! The engine's own tables: the latest-version index (`heads`) of all fact topics, dropped facts, rejected records, and the newest runs.

use serde::{Deserialize, Serialize};

use crate::event::{Head, Run};
use crate::hash::Hash32;
use crate::position::LogOffset;
use crate::tables::{Table, TableKind, ValueKind, ViewDef, int, text};

/// The latest-version index: (topic, key) to [`HeadRow`] as packed bytes.
pub const HEADS: Table =
    Table { name: "heads", key: &[text("topic"), text("key")], partition_columns: 2, kind: TableKind::Derived, value: ValueKind::Bytes };
/// Facts that do not extend their key's chain and are ignored: (topic, partition, offset) to nothing.
pub const DROPPED: Table = Table {
    name: "dropped",
    key: &[text("topic"), int("partition"), int("offset")],
    partition_columns: 2,
    kind: TableKind::Derived,
    value: ValueKind::Bytes,
};
/// The rejected records: (stream, name) to nothing. Each has two names, [`rejected_bytes`] and [`rejected_reference`].
pub const REJECTS: Table = Table {
    name: "rejects",
    key: &[text("stream"), text("name")],
    partition_columns: 2,
    kind: TableKind::Derived,
    value: ValueKind::Bytes,
};
/// The newest run of each upstream: (upstream) to [`RunRow`] as JSON.
pub const RUNS: Table =
    Table { name: "runs", key: &[text("upstream")], partition_columns: 1, kind: TableKind::Derived, value: ValueKind::Text };

/// The engine's view. It is derived from facts, not from changes.
pub const VIEW: ViewDef = ViewDef { name: "engine", tables: &[&HEADS, &DROPPED, &REJECTS, &RUNS], hides: &[] };

/// Returns the name of a rejected record in [`REJECTS`] by its stored bytes, which are the same whenever the record is rejected again.
#[must_use]
pub fn rejected_bytes(raw: &[u8]) -> String {
    format!("raw/{}", Hash32::of(raw))
}

/// Returns the name of a rejected record in [`REJECTS`] by its reference, for streams whose references are the keys of their records.
#[must_use]
pub fn rejected_reference(reference: &str) -> String {
    format!("reference/{reference}")
}

/// The head of a key, and whether the record is gone.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct HeadRow {
    /// The head of the key.
    pub head: Head,
    /// Whether the record was withdrawn or superseded, so that the upstream no longer has it.
    pub gone: bool,
    /// When the newest fact of the key was observed: milliseconds since 1970.
    pub observed_at: i64,
    /// The offset after the newest fact of the key. Facts of the key before it are included in this row: applying them again, after a crash
    /// between rows and checkpoint, changes nothing.
    pub next: LogOffset,
}

impl HeadRow {
    /// Encodes the row as 89 bytes: gone (1), version (8, big endian), observed at (8), next (8), id (32), content hash (32).
    #[must_use]
    pub fn to_bytes(&self) -> Vec<u8> {
        let mut out = Vec::with_capacity(89);
        out.push(u8::from(self.gone));
        out.extend_from_slice(&self.head.version.to_be_bytes());
        out.extend_from_slice(&self.observed_at.to_be_bytes());
        out.extend_from_slice(&self.next.stored().to_be_bytes());
        out.extend_from_slice(&self.head.id.0);
        out.extend_from_slice(&self.head.content_hash.0);
        out
    }

    /// Decodes the bytes of [`Self::to_bytes`]; `None` for anything else.
    #[must_use]
    pub fn from_bytes(bytes: &[u8]) -> Option<Self> {
        let (gone, rest) = bytes.split_first()?;
        let (version, rest) = rest.split_first_chunk::<8>()?;
        let (observed_at, rest) = rest.split_first_chunk::<8>()?;
        let (next, rest) = rest.split_first_chunk::<8>()?;
        let (id, rest) = rest.split_first_chunk::<32>()?;
        let content: &[u8; 32] = rest.try_into().ok()?;
        Some(Self {
            gone: *gone != 0,
            observed_at: i64::from_be_bytes(*observed_at),
            next: LogOffset::try_from(i64::from_be_bytes(*next)).ok()?,
            head: Head { version: i64::from_be_bytes(*version), id: Hash32(*id), content_hash: Hash32(*content) },
        })
    }
}

/// The newest run event of an upstream, as stored in [`RUNS`].
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct RunRow {
    /// `run_started`, `run_marked`, `run_finished` or `run_failed`.
    pub kind: String,
    /// When that event was observed: milliseconds since 1970.
    pub at_ms: i64,
    /// The run of that event.
    pub run: Run,
    /// The last run that finished, if any.
    pub last_finished: Option<Run>,
    /// When the last finished run ended: milliseconds since 1970.
    pub last_finished_at_ms: i64,
    /// How many runs have finished.
    pub finished: i64,
    /// The offset after that event. Events before it are included in this row.
    #[serde(default)]
    pub next: LogOffset,
    /// The first day of the finished full reads, the earliest of them (`YYYY-MM-DD`); empty if they recorded none.
    #[serde(default)]
    pub full_from: String,
}

impl RunRow {
    /// Whether the run has started and has neither finished nor failed.
    #[must_use]
    pub fn is_under_way(&self) -> bool {
        matches!(self.kind.as_str(), "run_started" | "run_marked")
    }
}
