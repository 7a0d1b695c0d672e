//! Places in the logs. Each stage has its own type, so that none is taken for another.

use serde::{Deserialize, Serialize};

/// Where a record stands in one partition of a log: 0, 1, 2 … without a gap on the embedded log, rising on Kafka.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(transparent)]
pub struct LogOffset(pub u64);

impl LogOffset {
    /// The offset after this one.
    #[must_use]
    pub fn next(self) -> Self {
        Self(self.0 + 1)
    }
}

/// The number of a change within its service: 1, 2, 3 …; 0 stands before the first.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(transparent)]
pub struct Seq(pub u64);

impl Seq {
    /// The seq after this one.
    #[must_use]
    pub fn next(self) -> Self {
        Self(self.0 + 1)
    }
}

/// One partition of one topic.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
pub struct PartitionId {
    /// The topic's name.
    pub topic: String,
    /// Its partition, from 0.
    pub partition: u32,
}

/// How far an upstream has been read: JSON that only the upstream's own code reads. Empty before the first page.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(transparent)]
pub struct UpstreamCursor(pub String);
