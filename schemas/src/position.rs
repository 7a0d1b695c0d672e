//! Positions in the logs. Each kind of position has its own type, so that one cannot be passed for another.

use serde::{Deserialize, Serialize};

/// The offset of a record in one partition of a topic. It starts at 0; it has no gaps on the embedded log and only grows on Kafka.
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

/// The number of a change within its service: 1, 2, 3 …; 0 is the position before the first change.
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

/// One partition of a topic.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
pub struct PartitionId {
    /// The name of the topic.
    pub topic: String,
    /// The number of the partition, from 0.
    pub partition: u32,
}

/// How far an upstream has been read: JSON that only the code of that upstream interprets. Empty before the first page.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(transparent)]
pub struct UpstreamCursor(pub String);
