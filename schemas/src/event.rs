//! The envelope of a fact: what an upstream said about one key, chained to what it said before.
//!
//! Facts chain per key: `version` counts up from 1, `prevHash` is the id of the fact before (zeros for the first), and the id
//! is the hash of topic, key, version, prevHash and contentHash. A reader takes the first fact that chains and drops others.

use serde::{Deserialize, Serialize};

use crate::hash::Hash32;
use crate::position::UpstreamCursor;
use crate::topics::Topic;

/// What kind of thing a fact says.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum FactKind {
    /// The full record as the upstream shows it now.
    Observed,
    /// The record is gone from an upstream that publishes complete snapshots.
    Withdrawn,
    /// The upstream gave the record another number.
    Superseded,
    /// A run began: it fences off every earlier one.
    RunStarted,
    /// A page's facts are all acknowledged; the run's cursor stands after it.
    RunMarked,
    /// A run read all it wanted.
    RunFinished,
    /// A run stopped, with a reason.
    RunFailed,
}

impl FactKind {
    /// The word in exports and headers.
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

    /// Whether it speaks of a run, not of a record.
    #[must_use]
    pub fn is_run(self) -> bool {
        matches!(self, Self::RunStarted | Self::RunMarked | Self::RunFinished | Self::RunFailed)
    }
}

/// What the API may be asked to remember: the `data` of a fact-like envelope on a topic of commands.
pub trait Command: Serialize + Sync {
    /// Where it is appended. Of one partition.
    const TOPIC: &'static Topic;

    /// What it asks for.
    fn verb(&self) -> &str;

    /// The form that is hashed.
    fn canonical(&self) -> Vec<u8>;
}

/// A fact whose record type is `D` and whose texts are of type `T`: owned, or borrowed from what is written or read.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct Fact<D, T = String> {
    /// Hash of (topic, key, version, prevHash, contentHash).
    pub id: Hash32,
    /// What it says.
    pub kind: FactKind,
    /// The record's natural identity at its upstream and stream (`nhtsa.flat/26V400000`), or `@run/UPSTREAM` for runs.
    pub key: T,
    /// 1, 2, 3 … within the key.
    pub version: i64,
    /// Id of the key's fact before; zeros for the first.
    pub prev_hash: Hash32,
    /// Hash of what it says, see [`content_hash`].
    pub content_hash: Hash32,
    /// The upstream's name.
    pub upstream: T,
    /// When the ingestor saw it: milliseconds since 1970.
    pub observed_at: i64,
    /// The key under which the upstream goes on with this record (`superseded` only, else empty).
    pub superseded_by: T,
    /// The record (`observed`; for `withdrawn` and `superseded` nothing).
    pub data: Option<D>,
    /// The run (run kinds only).
    pub run: Option<Run>,
}

/// What is known of a run.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct Run {
    /// Who runs it: unique per process start.
    pub holder: String,
    /// Number of the run at this upstream: 1, 2, 3 …
    pub number: i64,
    /// When it started: milliseconds since 1970.
    pub started_at: i64,
    /// Whether it reads all the upstream has, not only a recent window.
    pub full: bool,
    /// The window read: first and last day (`YYYY-MM-DD`), inclusive; empty for whole documents.
    pub window_from: String,
    /// See `window_from`.
    pub window_to: String,
    /// Pages read so far.
    pub pages: i64,
    /// Records seen so far.
    pub seen: i64,
    /// Facts appended so far.
    pub appended: i64,
    /// Records set aside so far.
    pub rejected: i64,
    /// Where to go on; empty when the run is over.
    pub cursor: UpstreamCursor,
    /// The last day that the run covers completely.
    pub through_date: String,
    /// The end offset of each partition of the fact topic after the run's facts.
    pub ends: Vec<i64>,
    /// Keys that a complete snapshot lacked in this run (the two-run rule reads them in the next).
    pub missing: Vec<String>,
    /// Why it failed, or what it wants to be known.
    pub reason: String,
    /// When the last finished run that read everything started: milliseconds since 1970, 0 for never.
    pub last_full_at: i64,
}

/// The key under which an upstream's runs chain.
#[must_use]
pub fn run_key(upstream: &str) -> String {
    format!("@run/{upstream}")
}

/// The hash of what a fact says: its kind and its record in canonical form (the fields that hold something, each as its name and
/// values), so that a new optional field of the schema changes no hash until it holds something.
#[must_use]
pub fn content_hash(kind: FactKind, canonical_record: &[u8]) -> Hash32 {
    Hash32::of_parts(&[kind.as_str().as_bytes(), canonical_record])
}

/// The id of a fact.
#[must_use]
pub fn fact_id(topic: &str, key: &str, version: i64, prev_hash: &Hash32, content_hash: &Hash32) -> Hash32 {
    Hash32::of_parts(&[topic.as_bytes(), key.as_bytes(), &version.to_be_bytes(), &prev_hash.0, &content_hash.0])
}

/// The head of a key's chain: what the next fact must extend.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Head {
    /// The last version that chained; 0 for none.
    pub version: i64,
    /// Its id.
    pub id: Hash32,
    /// Its content hash.
    pub content_hash: Hash32,
}

impl<D, T> Fact<D, T> {
    /// The same fact with another record.
    pub fn map<E>(self, record: impl FnOnce(D) -> E) -> Fact<E, T> {
        let Self { id, kind, key, version, prev_hash, content_hash, upstream, observed_at, superseded_by, data, run } = self;
        let data = data.map(record);
        Fact { id, kind, key, version, prev_hash, content_hash, upstream, observed_at, superseded_by, data, run }
    }
}

impl<D, T: AsRef<str>> Fact<D, T> {
    /// Whether this fact extends that head, with an id that is its own.
    #[must_use]
    pub fn chains(&self, topic: &str, head: &Head) -> bool {
        self.version == head.version + 1
            && self.prev_hash == head.id
            && self.id == fact_id(topic, self.key.as_ref(), self.version, &self.prev_hash, &self.content_hash)
    }

    /// The head of the key after this fact.
    #[must_use]
    pub fn head(&self) -> Head {
        Head { version: self.version, id: self.id, content_hash: self.content_hash }
    }
}
