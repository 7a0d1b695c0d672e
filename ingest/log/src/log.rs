//! What a log is, and what each call promises.
//!
//! ```text
//! partition:   0   1   2   3   4  |
//!              first ...     last   end (the offset the next record gets)
//! ```
//!
//! - **Durable.** `append` answers after every record of the batch is synced (embedded) or replicated (Kafka).
//! - **Order.** Records of one partition keep the order in which one `append` named them. On the embedded log one
//!   `append` is atomic, over all its partitions. Nothing may rest on that: readers drop what does not chain.
//! - **Reads** see only durable records, each with the bytes that were appended, or an error that says where they are broken.
//! - **Never** re-ordered, changed or removed.

use async_trait::async_trait;
use bytes::Bytes;
use schemas::position::LogOffset;
use schemas::topics::Topic;

use crate::Headers;

/// A record as appended.
#[derive(Clone, Debug, PartialEq, Eq, Default)]
pub struct Record {
    /// The key, which chose the partition.
    pub key: Bytes,
    /// The framed Avro value.
    pub value: Bytes,
    /// CloudEvents attributes (`ce_specversion`, `ce_id`, `ce_type`, `ce_source`, `ce_time`) and others, in order.
    pub headers: Headers,
    /// When it was appended, by the appender's clock: milliseconds since 1970, 1 or more (a broker takes 0 for "now").
    pub at_ms: i64,
}

/// A record to append, and where.
#[derive(Clone, Debug)]
pub struct Append {
    /// The topic.
    pub topic: &'static Topic,
    /// The partition, below `topic.partitions`.
    pub partition: u32,
    /// The record.
    pub record: Record,
}

/// A record as read.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Stored {
    /// Where it stands.
    pub offset: LogOffset,
    /// The record.
    pub record: Record,
}

/// Why a call failed.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum Error {
    /// The partition does not exist.
    #[error("topic {topic} has no partition {partition}")]
    NoPartition {
        /// The topic asked for.
        topic: &'static str,
        /// The partition asked for.
        partition: u32,
    },
    /// A record is larger than the log takes; nothing of the batch was appended.
    #[error("a record of {bytes} bytes is over the limit of {bytes_max}")]
    TooLarge {
        /// Its size.
        bytes: usize,
        /// The limit.
        bytes_max: usize,
    },
    /// Stored bytes are not what was appended.
    #[error("the log is damaged at {topic}/{partition} offset {offset}: {reason}")]
    Damaged {
        /// The topic.
        topic: String,
        /// The partition.
        partition: u32,
        /// Where.
        offset: u64,
        /// In which way.
        reason: String,
    },
    /// The log cannot be opened or used; the reason names the file or the server.
    #[error("{what}")]
    Unavailable {
        /// What was tried, and on what.
        what: String,
        /// Why it failed.
        #[source]
        source: Option<Box<dyn std::error::Error + Send + Sync>>,
    },
}

/// An event log. Cheap to share behind an `Arc`.
#[async_trait]
pub trait EventLog: Send + Sync + 'static {
    /// Appends a batch; answers each record's offset, in the batch's order, once all are durable.
    async fn append(&self, batch: Vec<Append>) -> Result<Vec<LogOffset>, Error>;

    /// Reads records of one partition from `from` on, oldest first: at least one if there is one, then until
    /// `records_max` or `bytes_max` (of keys and values) is reached. Empty at the end.
    async fn read(
        &self,
        topic: &'static Topic,
        partition: u32,
        from: LogOffset,
        records_max: usize,
        bytes_max: usize,
    ) -> Result<Vec<Stored>, Error>;

    /// The offset that the partition's next record gets.
    async fn end(&self, topic: &'static Topic, partition: u32) -> Result<LogOffset, Error>;

    /// Waits until the partition's end is above `end`. Cancel-safe.
    async fn wait_past(&self, topic: &'static Topic, partition: u32, end: LogOffset) -> Result<(), Error>;

    /// Whether the log answers now; why not, if it does not. May be asked every second.
    async fn ready(&self) -> Result<(), Error> {
        Ok(())
    }

    /// Syncs and closes; nothing can be appended afterwards. Calling it again does nothing.
    async fn close(&self) -> Result<(), Error>;
}
