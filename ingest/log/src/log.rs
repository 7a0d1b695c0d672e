//! The trait [`EventLog`], its record types, and the guarantees that every log gives.
//!
//! ```text
//! partition:   0   1   2   3   4  |
//!              first ...     last   end (the offset the next record gets)
//! ```
//!
//! - **Durable.** `append` returns after every record of the batch is synced (embedded) or replicated (Kafka).
//! - **Order.** Records of one partition keep the order that they have in the batch. On the embedded log one `append` is atomic over all
//!   its partitions. No code may rely on that atomicity: readers drop records that do not chain.
//! - **Reads** return only durable records, each with the bytes that were appended, or an error that names the damaged offset.
//! - **Immutable.** Records are never reordered, changed or removed.

use std::time::Duration;

use async_trait::async_trait;
use bytes::Bytes;
use schemas::position::LogOffset;
use schemas::topics::{self, Topic};

use crate::Headers;

/// How long [`EventLog::ready`] takes at most, also while it waits for other requests. A caller that waits longer reads in the error which servers do not answer.
pub const READY_TIME_MAX: Duration = Duration::from_secs(4);
/// How many times the ends of all partitions are read at most until two consecutive reads agree.
const END_READS_MAX: usize = 50;

/// A record as it is appended.
#[derive(Clone, Debug, PartialEq, Eq, Default)]
pub struct Record {
    /// The key. It determines the partition.
    pub key: Bytes,
    /// The framed Avro value.
    pub value: Bytes,
    /// CloudEvents attributes (`ce_specversion`, `ce_id`, `ce_type`, `ce_source`, `ce_time`) and others, in order.
    pub headers: Headers,
    /// The time of the append by the appender's clock, in milliseconds since 1970; 1 or more, because a broker replaces 0 with its own
    /// time.
    pub at_ms: i64,
}

/// A record to append, with its topic and partition.
#[derive(Clone, Debug)]
pub struct Append {
    /// The topic.
    pub topic: &'static Topic,
    /// The partition, below `topic.partitions`.
    pub partition: u32,
    /// The record.
    pub record: Record,
}

/// A record that was read from the log.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Stored {
    /// The record's offset in its partition.
    pub offset: LogOffset,
    /// The record.
    pub record: Record,
}

/// Why a call failed.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum Error {
    /// The topic has no such partition.
    #[error("topic {topic} has no partition {partition}")]
    NoPartition {
        /// The topic asked for.
        topic: &'static str,
        /// The partition asked for.
        partition: u32,
    },
    /// A record is larger than the log accepts. No record of the batch was appended.
    #[error("a record of {bytes} bytes is over the limit of {bytes_max}")]
    TooLarge {
        /// The size of the record, in bytes.
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
        /// The offset of the damaged record.
        offset: LogOffset,
        /// How the record is damaged.
        reason: String,
    },
    /// The end offsets changed between every two reads.
    #[error("the log is being appended to: stop the ingestors, so that what is read is of one moment")]
    Moving,
    /// The log cannot be opened or used. The text names the file or the server.
    #[error("{what}")]
    Unavailable {
        /// What failed, with the name of the file or the server.
        what: String,
        /// Why it failed.
        #[source]
        source: Option<Box<dyn std::error::Error + Send + Sync>>,
    },
}

/// An event log. Cheap to share behind an `Arc`.
#[async_trait]
pub trait EventLog: Send + Sync + 'static {
    /// Appends a batch. Returns the offset of each record, in the order of the batch, once all records are durable.
    async fn append(&self, batch: Vec<Append>) -> Result<Vec<LogOffset>, Error>;

    /// Reads records of one partition, starting at offset `from`, oldest first. Returns at least one record if there is one, then further
    /// records until `records_max` or `bytes_max` (bytes of keys and values) is reached. Returns none at the end of the partition.
    async fn read(
        &self,
        topic: &'static Topic,
        partition: u32,
        from: LogOffset,
        records_max: usize,
        bytes_max: usize,
    ) -> Result<Vec<Stored>, Error>;

    /// Returns the partition's end: the offset that its next record will get.
    async fn end(&self, topic: &'static Topic, partition: u32) -> Result<LogOffset, Error>;

    /// Returns the latest time of the last records of all partitions, in milliseconds since 1970; 0 in an empty log.
    async fn last_at_ms(&self) -> Result<i64, Error> {
        let mut last_ms = 0;
        for (topic, partition) in topics::ALL.iter().flat_map(|topic| (0..topic.partitions).map(move |partition| (topic, partition))) {
            let end = self.end(topic, partition).await?;
            if end > LogOffset(0) {
                let last = self.read(topic, partition, end.previous(), 1, 1).await?;
                last_ms = last.iter().map(|stored| stored.record.at_ms).fold(last_ms, i64::max);
            }
        }
        Ok(last_ms)
    }

    /// Returns the ends of all partitions of some topics at one moment, in the order of the topics: no record below them was appended later than a
    /// record above them. On the embedded log this is a moment between two commits, also while others append.
    ///
    /// # Errors
    /// [`Error::Moving`] when the log cannot tell, because others append all the time.
    async fn ends(&self, topics: &[&'static Topic]) -> Result<Vec<Vec<LogOffset>>, Error> {
        let mut before = None;
        for _ in 0..END_READS_MAX {
            let mut ends = Vec::with_capacity(topics.len());
            for topic in topics {
                let mut of_topic = Vec::with_capacity(topic.partitions as usize);
                for partition in 0..topic.partitions {
                    of_topic.push(self.end(topic, partition).await?);
                }
                ends.push(of_topic);
            }
            if before.as_ref() == Some(&ends) {
                return Ok(ends);
            }
            before = Some(ends);
        }
        Err(Error::Moving)
    }

    /// Waits until the partition's end is above `end`. Cancel-safe.
    async fn wait_past(&self, topic: &'static Topic, partition: u32, end: LogOffset) -> Result<(), Error>;

    /// Checks whether the log can be used now, and returns the reason if it cannot. May be called every second.
    async fn ready(&self) -> Result<(), Error> {
        Ok(())
    }

    /// Syncs and closes the log; later appends fail. Closing it again does nothing.
    async fn close(&self) -> Result<(), Error>;
}
