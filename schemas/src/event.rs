//! The envelope of a fact: what an upstream published about one key, chained to the fact before it.
//!
//! Facts chain per key: `version` counts up from 1, `prevHash` is the id of the previous fact (zeros for the first), and the id is the hash
//! of topic, key, version, prevHash and contentHash. A reader takes the first fact that extends the chain and drops all others.

use serde::{Deserialize, Serialize};

use crate::canonical::{Order, canonical};
use crate::position::{LogOffset, UpstreamCursor};
use crate::topics::Topic;
use proofs::hash::Hash32;

/// The kind of a fact.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum FactKind {
    /// The full record, as the upstream published it.
    Observed,
    /// The record is gone from an upstream that publishes complete snapshots.
    Withdrawn,
    /// The upstream gave the record another number.
    Superseded,
    /// A sync run started. It fences off every earlier run of the upstream.
    RunStarted,
    /// All facts of a page are acknowledged; the run's cursor points after that page.
    RunMarked,
    /// A run read everything that it was to read.
    RunFinished,
    /// A run stopped; the fact carries the reason.
    RunFailed,
}

impl FactKind {
    /// The name of the kind in exports and headers.
    #[must_use]
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Observed => "observed",
            Self::Withdrawn => "withdrawn",
            Self::Superseded => "superseded",
            Self::RunStarted => "run_started",
            Self::RunMarked => "run_marked",
            Self::RunFinished => "run_finished",
            Self::RunFailed => "run_failed",
        }
    }

    /// Whether the fact is about a sync run, not about a record.
    #[must_use]
    pub fn is_run(self) -> bool {
        matches!(self, Self::RunStarted | Self::RunMarked | Self::RunFinished | Self::RunFailed)
    }
}

/// A request that the API appends to a command topic: the `data` of an envelope that has the shape of a fact.
pub trait Command: Serialize + Sized + Sync {
    /// The command topic. It has one partition.
    const TOPIC: &'static Topic;

    /// The verb: what the command requests.
    fn verb(&self) -> &str;

    /// The canonical form that is hashed into the content hash.
    fn canonical(&self) -> Vec<u8> {
        canonical(self, Order::Declared, &[])
    }
}

/// A fact whose record is a `D` and whose texts are `T`: owned strings, or strings borrowed from the bytes that are written or read.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct Fact<D, T = String> {
    /// Hash of (topic, key, version, prevHash, contentHash).
    pub id: Hash32,
    /// The kind of the fact.
    pub kind: FactKind,
    /// The natural identity of the record at its upstream and stream (`nhtsa.flat/26V400000`), or `@run/UPSTREAM` for runs.
    pub key: T,
    /// The version within the key: 1, 2, 3 …
    pub version: i64,
    /// Id of the previous fact of this key; zeros for the first.
    pub prev_hash: Hash32,
    /// Hash of the kind and the record, see [`content_hash`].
    pub content_hash: Hash32,
    /// The name of the upstream.
    pub upstream: T,
    /// When the ingestor read it: milliseconds since 1970.
    pub observed_at: i64,
    /// The key under which the upstream continues this record (`superseded` only, else empty).
    pub superseded_by: T,
    /// The record (`observed`); absent for `withdrawn` and `superseded`.
    pub data: Option<D>,
    /// The sync run (run kinds only).
    pub run: Option<Run>,
}

/// The state of a sync run.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct Run {
    /// The process that runs it: an id that is unique per process start.
    pub holder: String,
    /// Number of the run at this upstream: 1, 2, 3 …
    pub number: i64,
    /// When it started: milliseconds since 1970.
    pub started_at: i64,
    /// Whether the run reads everything that the upstream has, not only a recent window.
    pub full: bool,
    /// First day of the window that is read (`YYYY-MM-DD`, inclusive); empty for whole documents.
    pub window_from: String,
    /// Last day of that window (`YYYY-MM-DD`, inclusive).
    pub window_to: String,
    /// Pages read so far.
    pub pages: i64,
    /// Records seen so far.
    pub seen: i64,
    /// Facts appended so far.
    pub appended: i64,
    /// Records rejected so far.
    pub rejected: i64,
    /// The cursor to continue from; empty when the run is over.
    pub cursor: UpstreamCursor,
    /// The last day that the run covers completely.
    pub through_date: String,
    /// The end offset of each partition of the fact topic after the run's facts.
    pub ends: Vec<LogOffset>,
    /// Keys that a complete snapshot lacked in this run (the two-run rule reads them in the next).
    pub missing: Vec<String>,
    /// Why the run failed, or a note for the operator.
    pub reason: String,
    /// When the last finished run that read everything started: milliseconds since 1970, 0 if there is none.
    pub last_full_at: i64,
    /// How many of the rejected records were rejected before, with the same bytes.
    #[serde(default)]
    pub known_rejected: i64,
    /// The rejected records of a complete snapshot: of each the first 16 hex digits of the hash of its bytes, sorted (`run_finished` only).
    #[serde(default)]
    pub rejects: Vec<String>,
    /// Keys that a complete snapshot lacked and that may be among its rejected records: they were not seen since a record was rejected
    /// that had not been before. They are not withdrawn while records are rejected.
    #[serde(default)]
    pub withheld: Vec<String>,
    /// In how many documents of this run and the runs before each mapped field had a value (`run_finished` only).
    #[serde(default)]
    pub fields: Vec<FieldCount>,
}

/// In how many documents a field of an upstream had a value.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct FieldCount {
    /// The name of the field, as the upstream names it.
    pub name: String,
    /// Documents in which it had a value.
    pub filled: i64,
    /// Documents in which it was looked for.
    pub records: i64,
    /// Of these, the last ones in a row that lack it.
    #[serde(default)]
    pub absent: i64,
}

impl FieldCount {
    /// Whether most documents had the field, without the last ones in a row that lack it: a run in which none has it stops.
    #[must_use]
    pub fn is_expected(&self) -> bool {
        self.filled.saturating_mul(2) > self.records - self.absent
    }
}

/// The key under which an upstream's runs chain.
#[must_use]
pub fn run_key(upstream: &str) -> String {
    format!("@run/{upstream}")
}

/// Returns the content hash of a fact: over its kind and the canonical form of its record. The canonical form holds only non-empty fields,
/// so that a new optional field of the schema changes no hash until it has a value.
#[must_use]
pub fn content_hash(kind: FactKind, canonical_record: &[u8]) -> Hash32 {
    Hash32::of_parts(&[kind.as_str().as_bytes(), canonical_record])
}

/// Returns the id of a fact.
#[must_use]
pub fn fact_id(topic: &str, key: &str, version: i64, prev_hash: &Hash32, content_hash: &Hash32) -> Hash32 {
    Hash32::of_parts(&[topic.as_bytes(), key.as_bytes(), &version.to_be_bytes(), &prev_hash.0, &content_hash.0])
}

/// The head of a key's chain: the fact that the next one must extend.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Head {
    /// The last version that chained; 0 for none.
    pub version: i64,
    /// The id of that fact.
    pub id: Hash32,
    /// The content hash of that fact.
    pub content_hash: Hash32,
}

impl<D, T> Fact<D, T> {
    /// Converts the record and keeps the envelope.
    pub fn map<E>(self, record: impl FnOnce(D) -> E) -> Fact<E, T> {
        let Self { id, kind, key, version, prev_hash, content_hash, upstream, observed_at, superseded_by, data, run } = self;
        let data = data.map(record);
        Fact { id, kind, key, version, prev_hash, content_hash, upstream, observed_at, superseded_by, data, run }
    }

    /// The record of a fact that observed one; `None` for a fact of another kind.
    #[must_use]
    pub fn observed(&self) -> Option<&D> {
        self.data.as_ref().filter(|_| self.kind == FactKind::Observed)
    }
}

impl<D, T: AsRef<str> + Default> Fact<D, T> {
    /// Returns a fact that extends the chain of its key after `head`. It still needs its upstream, the time, and its record or run.
    #[must_use]
    pub fn after(head: &Head, topic: &str, kind: FactKind, key: T, content_hash: Hash32) -> Self {
        let version = head.version + 1;
        Self {
            id: fact_id(topic, key.as_ref(), version, &head.id, &content_hash),
            kind,
            key,
            version,
            prev_hash: head.id,
            content_hash,
            upstream: T::default(),
            observed_at: 0,
            superseded_by: T::default(),
            data: None,
            run: None,
        }
    }
}

impl<D, T: AsRef<str>> Fact<D, T> {
    /// Whether this fact extends the chain after `head` and carries the id that its content gives.
    #[must_use]
    pub fn chains(&self, topic: &str, head: &Head) -> bool {
        self.version == head.version + 1
            && self.prev_hash == head.id
            && self.id == fact_id(topic, self.key.as_ref(), self.version, &self.prev_hash, &self.content_hash)
    }

    /// Returns the head of the key after this fact.
    #[must_use]
    pub fn head(&self) -> Head {
        Head { version: self.version, id: self.id, content_hash: self.content_hash }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Proves that only a fact that observed a record has one to decide, also if a fact of another kind carries one.
    #[test]
    fn only_observed_records_are_read() {
        for (kind, expected) in [(FactKind::Observed, Some(&7)), (FactKind::Withdrawn, None), (FactKind::RunMarked, None)] {
            let fact = Fact { data: Some(7), ..Fact::after(&Head::default(), "topic", kind, "key", Hash32::default()) };
            assert_eq!(fact.observed(), expected, "{kind:?}");
        }
    }
}
