//! The envelope of a change: what a fact meant for one service, in that service's one order.
//!
//! A change topic is a hash chain: a reader takes the record whose `seq` is one above, and whose `prevHash` is the hash of, the
//! last record it took, and drops the others. A change's hash is SHA-256 of its Avro datum as it stands in the log (without framing).

use serde::{Deserialize, Serialize};

use crate::hash::Hash32;

/// What happened.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum ChangeKind {
    /// A record that readers did not know.
    New,
    /// A record that readers know reads otherwise now.
    Modified,
    /// The service remembers something that changes no record; not shown in feeds.
    Noted,
    /// Everything up to a run's end has been decided; not shown in feeds.
    Through,
    /// An input could not be decided and was parked with its reason; not shown in feeds.
    Parked,
}

impl ChangeKind {
    /// The word in feeds and exports.
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

    /// Whether feeds show it.
    #[must_use]
    pub fn is_shown(self) -> bool {
        matches!(self, Self::New | Self::Modified)
    }
}

/// Where the input of a change stands.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Input {
    /// The topic.
    pub topic: String,
    /// The partition.
    pub partition: i32,
    /// The offset.
    pub offset: i64,
}

/// A change whose record type is `R` and whose decision state is `N`.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct Change<R, N> {
    /// 1, 2, 3 … within the service.
    pub seq: i64,
    /// Hash of the change before; zeros for the first.
    pub prev_hash: Hash32,
    /// What happened.
    pub event: ChangeKind,
    /// The record's id (empty where there is none).
    pub id: String,
    /// When it was decided: milliseconds since 1970; never goes back.
    pub recorded_at: i64,
    /// What it was decided from.
    pub input: Input,
    /// How many changes decided from the same input follow this one. A crash may cut such a group; it is completed before anything else.
    pub following: i32,
    /// Seq of the change that wrote the record before; 0 for none.
    pub before_seq: i64,
    /// Seq since which the record stood at its place in lists before; 0 for nowhere.
    pub before_since: i64,
    /// The record after it.
    pub after: Option<R>,
    /// The record before it.
    pub before: Option<R>,
    /// What the service remembers for later decisions; in no answer.
    pub note: Option<N>,
    /// For `through`: the upstream, the day that is complete, and its runs so far.
    pub through: Option<Through>,
    /// For `parked`: why.
    pub reason: String,
}

/// What a `through` change says.
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
