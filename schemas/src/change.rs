//! The envelope of a change: what a fact means for one service. The changes of a service have one order.
//!
//! A change topic is a hash chain: a reader takes the record whose `seq` is one above that of the last record it took and whose `prevHash`
//! is that record's hash, and drops all others. The hash of a change is SHA-256 over its Avro datum as stored in the log, without framing.

use serde::{Deserialize, Serialize};

use crate::position::{LogOffset, Seq};
use proofs::hash::Hash32;

/// What a change did.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum ChangeKind {
    /// The record is new.
    New,
    /// The record changed.
    Modified,
    /// The service remembers something that changes no record. Feeds leave it out.
    Noted,
    /// All facts up to the end of a sync run have been decided. Feeds leave it out.
    Through,
    /// An input could not be decided and was parked with its reason. Feeds leave it out.
    Parked,
}

impl ChangeKind {
    /// The name of the kind in feeds and exports.
    #[must_use]
    pub fn as_str(self) -> &'static str {
        match self {
            Self::New => "new",
            Self::Modified => "modified",
            Self::Noted => "noted",
            Self::Through => "through",
            Self::Parked => "parked",
        }
    }

    /// Whether feeds contain changes of this kind.
    #[must_use]
    pub fn is_shown(self) -> bool {
        matches!(self, Self::New | Self::Modified)
    }
}

/// The position of the input that a change was decided from.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Input {
    /// The topic of the input.
    pub topic: String,
    /// The partition of the input.
    pub partition: i32,
    /// The offset of the input. `None`: the change was not decided from an input, but by deciding the service again.
    #[serde(with = "crate::position::or_none")]
    pub offset: Option<LogOffset>,
}

impl Input {
    /// Returns the offset in the form of stored keys and exports: -1 for none.
    #[must_use]
    pub fn stored_offset(&self) -> i64 {
        self.offset.map_or(-1, LogOffset::stored)
    }
}

/// A change whose record is an `R` and whose decision state is an `N`.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct Change<R, N> {
    /// The number of the change within the service: 1, 2, 3 …
    pub seq: Seq,
    /// Hash of the previous change; zeros for the first.
    pub prev_hash: Hash32,
    /// What the change did.
    pub event: ChangeKind,
    /// The id of the record; empty if the change has no record.
    pub id: String,
    /// When the change was decided: milliseconds since 1970. It never decreases.
    pub recorded_at: i64,
    /// The position of the input that the change was decided from.
    pub input: Input,
    /// How many more changes follow that were decided from the same input. If a crash cuts such a group, it is completed before anything
    /// else is decided.
    pub following: i32,
    /// Seq of the change that wrote the previous version of the record; 0 for none.
    pub before_seq: Seq,
    /// Seq since which the previous version of the record held its position in lists; 0 if it was in none.
    pub before_since: Seq,
    /// The record after the change.
    pub after: Option<R>,
    /// The record before the change.
    pub before: Option<R>,
    /// What the service remembers for later decisions. No answer contains it.
    pub note: Option<N>,
    /// For `through`: the upstream and the day up to which it is complete.
    pub through: Option<Through>,
    /// For `parked`: why the input could not be decided.
    pub reason: String,
}

impl<R, N> Change<R, N> {
    /// Whether the change extends the chain after the change `seq` with that hash; the first one extends change 0 with a hash of zeros.
    #[must_use]
    pub fn extends(&self, seq: Seq, hash: Hash32) -> bool {
        ChainLink { seq: self.seq, prev_hash: self.prev_hash }.extends(seq, hash)
    }
}

/// The fields of a change that link it to the change before it, for readers that follow the chain and need nothing else.
#[derive(Clone, Copy, Debug, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct ChainLink {
    /// See [`Change::seq`].
    pub seq: Seq,
    /// See [`Change::prev_hash`].
    pub prev_hash: Hash32,
}

impl ChainLink {
    /// As [`Change::extends`].
    #[must_use]
    pub fn extends(self, seq: Seq, hash: Hash32) -> bool {
        self.seq == seq.next() && self.prev_hash == hash
    }
}

/// The content of a `through` change.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct Through {
    /// The upstream whose run ended.
    pub upstream: String,
    /// The last day that is complete, `YYYY-MM-DD`.
    pub through_date: String,
    /// When the run ended: milliseconds since 1970.
    pub finished_at: i64,
}
