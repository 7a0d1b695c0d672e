//! Moves topics from one log to another with every record unchanged and at the same offset.
//!
//! ```text
//! log A -> export -> file (Avro object container) -> import -> log B
//! ```
//!
//! Guarantees:
//! - An archive holds each of its partitions from offset 0 up to its end at one instant, including records that do not chain. The header
//!   names the number of records, so that a truncated archive is noticed.
//! - An import appends the records that are missing and skips those that are already there and equal. An interrupted import can be
//!   repeated. It stops before it would append a record at another offset or one that differs.
//! - From the first to the last record of an import, the topic `imports` marks the log as incomplete ([`unfinished`]). No process may use a
//!   log that has changes without the facts that they name, or decide on facts whose changes are still missing.
//!
//! Not provided: preventing other processes from appending during an import. A log cannot do that. The importing process holds all leases,
//! and the operator stops the other processes.

pub(crate) mod archive;
mod export;
mod import;

use std::collections::BTreeMap;

use schemas::position::LogOffset;
use schemas::topics::{self, Topic, TopicKind};
use serde::{Deserialize, Serialize};

use crate::EventLog;

pub use self::archive::Archive;
pub use self::export::export;
pub use self::import::{Outcome, import, unfinished};

/// How many records are processed at once.
const BATCH_RECORDS: usize = 1_000;
/// How many bytes of keys and values are processed at once.
const BATCH_BYTES: usize = 4 << 20;

/// The topics that can be moved, in the order in which an archive holds them. Changes come first: a process that uses an incomplete copy by
/// mistake then finds existing decisions instead of deciding again.
pub fn topics() -> impl Iterator<Item = &'static Topic> + Clone {
    let of_kinds = |is_of: fn(TopicKind) -> bool| topics::ALL.iter().filter(move |topic| is_of(topic.kind));
    of_kinds(|kind| kind == TopicKind::Changes).chain(of_kinds(|kind| !matches!(kind, TopicKind::Changes | TopicKind::Imports)))
}

/// The end offset of each partition of some topics.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Ends(BTreeMap<String, Vec<LogOffset>>);

impl Ends {
    /// The total number of records below these offsets.
    #[must_use]
    pub fn records(&self) -> u64 {
        self.0.values().flatten().map(|end| end.0).sum()
    }

    /// The end offset of one partition; 0 for the others of its topic.
    pub(crate) fn only(topic: &Topic, partition: u32, end: LogOffset) -> Self {
        let of_topic = (0..topic.partitions).map(|own| if own == partition { end } else { LogOffset(0) });
        Self(BTreeMap::from([(topic.name.to_owned(), of_topic.collect())]))
    }

    /// Reads the end offsets of one moment.
    pub(crate) async fn read(log: &dyn EventLog, topics: &[&'static Topic]) -> Result<Self, crate::Error> {
        let ends = log.ends(topics).await?;
        Ok(Self(topics.iter().map(|topic| topic.name.to_owned()).zip(ends).collect()))
    }

    /// The end offset of a partition; 0 if it is not named.
    pub(crate) fn of(&self, topic: &str, partition: u32) -> LogOffset {
        let end = self.0.get(topic).and_then(|ends| ends.get(usize::try_from(partition).ok()?));
        end.copied().unwrap_or_default()
    }

    /// Merges other end offsets; the higher one counts.
    fn raise(&mut self, others: &Self) {
        for (topic, others) in &others.0 {
            let ends = self.0.entry(topic.clone()).or_default();
            ends.resize(ends.len().max(others.len()), LogOffset(0));
            for (end, other) in ends.iter_mut().zip(others) {
                *end = (*end).max(*other);
            }
        }
    }
}

/// Why topics were not moved.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum Error {
    /// A log failed.
    #[error(transparent)]
    Log(#[from] crate::Error),
    /// The archive cannot be written.
    #[error("the records cannot be written")]
    Write(#[source] serde_avro_fast::ser::SerError),
    /// The file cannot be opened or is not an archive of records.
    #[error("{file} is not an archive of records: {reason}")]
    NoArchive {
        /// The file.
        file: String,
        /// What is wrong.
        reason: String,
    },
    /// A part of the archive cannot be read.
    #[error("{file} is damaged")]
    DamagedFile {
        /// The file.
        file: String,
        /// How it is damaged.
        #[source]
        source: serde_avro_fast::de::DeError,
    },
    /// The archive names a topic that this version does not have, or one with another number of partitions.
    #[error("{file}: {reason}")]
    Topic {
        /// The file.
        file: String,
        /// What does not match.
        reason: String,
    },
    /// The records of a partition are not consecutive.
    #[error("{file} has offset {found} of {topic}/{partition} where {expected} must come")]
    Hole {
        /// The file.
        file: String,
        /// The topic.
        topic: &'static str,
        /// The partition.
        partition: u32,
        /// The expected offset.
        expected: LogOffset,
        /// The offset that was found.
        found: i64,
    },
    /// The archive ends before the offsets that its header names.
    #[error("{file} is truncated: it ends at offset {found} of {topic}/{partition}, and was written up to {expected}")]
    Cut {
        /// The file.
        file: String,
        /// The topic.
        topic: &'static str,
        /// The partition.
        partition: u32,
        /// The offset at which it should end.
        expected: LogOffset,
        /// The offset at which it ends.
        found: LogOffset,
    },
    /// The log has a different record at that offset.
    #[error("the log has another record at {topic}/{partition} offset {offset}: this is another log; nothing was appended after it")]
    Differs {
        /// The topic.
        topic: &'static str,
        /// The partition.
        partition: u32,
        /// The offset.
        offset: LogOffset,
    },
    /// A record is larger than the log accepts.
    #[error("the record at {topic}/{partition} offset {offset} is too large for the log")]
    TooLarge {
        /// The topic.
        topic: &'static str,
        /// The partition.
        partition: u32,
        /// The offset.
        offset: LogOffset,
        /// Both sizes.
        #[source]
        source: crate::Error,
    },
    /// A record was appended at another offset than in the archive.
    #[error(
        "another process appended to {topic}/{partition} meanwhile, so the record of offset {expected} got offset {found}: empty this log, stop the other processes, and import again"
    )]
    Displaced {
        /// The topic.
        topic: &'static str,
        /// The partition.
        partition: u32,
        /// The offset in the archive.
        expected: LogOffset,
        /// The offset in the log.
        found: LogOffset,
    },
    /// An earlier import is still unfinished.
    #[error("{topic}/{partition} ends at offset {end}, but an unfinished import needs it up to {wanted}: import its archives too")]
    Unfinished {
        /// The topic.
        topic: String,
        /// The partition.
        partition: u32,
        /// The current end.
        end: LogOffset,
        /// The end that the unfinished import needs.
        wanted: LogOffset,
    },
    /// The event that marks an import cannot be encoded.
    #[error("the import cannot be recorded in the log")]
    Note(#[source] schemas::avro::Error),
}
