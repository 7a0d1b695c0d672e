//! What the engine keeps for itself: the heads of all keys of all fact topics, and which facts do not chain.

use serde::{Deserialize, Serialize};

use crate::event::{Head, Run};
use crate::hash::Hash32;
use crate::tables::{Table, TableKind, ValueKind, ViewDef, int, text};

/// Head of every key: (topic, key) to [`HeadRow`] as packed bytes.
pub const HEADS: Table =
    Table { name: "heads", key: &[text("topic"), text("key")], partition_columns: 2, kind: TableKind::Derived, value: ValueKind::Bytes };
/// Facts that do not chain and thus are not there: (topic, partition, offset) to nothing.
pub const DROPPED: Table = Table {
    name: "dropped",
    key: &[text("topic"), int("partition"), int("offset")],
    partition_columns: 2,
    kind: TableKind::Derived,
    value: ValueKind::Bytes,
};
/// The newest run of each upstream: (upstream) to [`Run`] as JSON.
pub const RUNS: Table =
    Table { name: "runs", key: &[text("upstream")], partition_columns: 1, kind: TableKind::Derived, value: ValueKind::Text };

/// The engine's view: filled from facts, not from changes.
pub const VIEW: ViewDef = ViewDef { name: "engine", tables: &[&HEADS, &DROPPED, &RUNS] };

/// A key's head and whether the record is gone.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct HeadRow {
    /// The head.
    pub head: Head,
    /// Withdrawn or superseded: the record is no longer at the upstream.
    pub gone: bool,
    /// When that was observed: milliseconds since 1970.
    pub observed_at: i64,
    /// The offset after the fact that made it so. Facts of the key before it are in this row already: folding them again, after
    /// a crash between rows and checkpoint, changes nothing.
    pub next: i64,
}

impl HeadRow {
    /// 89 bytes: gone (1), version (8, big endian), observed at (8), next (8), id (32), content hash (32).
    #[must_use]
    pub fn to_bytes(&self) -> Vec<u8> {
        let mut out = Vec::with_capacity(89);
        out.push(u8::from(self.gone));
        out.extend_from_slice(&self.head.version.to_be_bytes());
        out.extend_from_slice(&self.observed_at.to_be_bytes());
        out.extend_from_slice(&self.next.to_be_bytes());
        out.extend_from_slice(&self.head.id.0);
        out.extend_from_slice(&self.head.content_hash.0);
        out
    }

    /// Reads what [`Self::to_bytes`] wrote; `None` for anything else.
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
            next: i64::from_be_bytes(*next),
            head: Head { version: i64::from_be_bytes(*version), id: Hash32(*id), content_hash: Hash32(*content) },
        })
    }
}

/// The newest run event of an upstream, as kept in [`RUNS`].
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct RunRow {
    /// `run_started`, `run_marked`, `run_finished` or `run_failed`.
    pub kind: String,
    /// When that was: milliseconds since 1970.
    pub at_ms: i64,
    /// The run.
    pub run: Run,
    /// The last run that finished, if any.
    pub last_finished: Option<Run>,
    /// When that was.
    pub last_finished_at_ms: i64,
    /// How many runs finished.
    pub finished: i64,
    /// The offset after that run event; events before it are in this row already.
    #[serde(default)]
    pub next: i64,
}

impl RunRow {
    /// Whether the run was begun and has neither finished nor failed.
    #[must_use]
    pub fn is_under_way(&self) -> bool {
        matches!(self.kind.as_str(), "run_started" | "run_marked")
    }
}
