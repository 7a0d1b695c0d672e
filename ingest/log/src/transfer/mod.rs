//! Moving topics from one log to another: every record as it stands, at the same offsets.
//!
//! ```text
//! log A -> export -> file (Avro object container) -> import -> log B
//! ```
//!
//! Promises:
//! - A file holds each of its partitions from offset 0 on, up to where it stood at one instant, what does not chain included; its
//!   header says how many records those are, so that a file that was cut is known.
//! - An import appends what is missing and passes what is there already and the same: one that was cut is run again. It stops
//!   before anything that would stand at another offset or differ.
//! - From an import's first record until its last one, the topic `imports` says so ([`unfinished`]): nobody may go by a log that has
//!   changes without the facts that they name, or decide for facts whose changes are still to come.
//!
//! Left out on purpose: keeping others from appending meanwhile. A log cannot; whoever imports holds all leases and stops the rest.

mod archive;
mod export;
mod import;

use std::collections::BTreeMap;

use schemas::topics::{self, Topic, TopicKind};
use serde::{Deserialize, Serialize};

pub use self::archive::Archive;
pub use self::export::export;
pub use self::import::{Outcome, import, unfinished};

/// Records handled at once.
const BATCH_RECORDS: usize = 1_000;
/// Bytes of keys and values handled at once.
const BATCH_BYTES: usize = 4 << 20;

/// The topics that can be moved, in the order of a file: changes first, so that whoever goes by half a copy in spite of all finds
/// what was decided before what it could decide anew.
pub fn topics() -> impl Iterator<Item = &'static Topic> + Clone {
    let of = |is_of: fn(TopicKind) -> bool| topics::ALL.iter().filter(move |topic| is_of(topic.kind));
    of(|kind| kind == TopicKind::Changes).chain(of(|kind| !matches!(kind, TopicKind::Changes | TopicKind::Imports)))
}

/// Where each partition of some topics ends.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Ends(BTreeMap<String, Vec<i64>>);

impl Ends {
    /// How many records are below them.
    #[must_use]
    pub fn records(&self) -> u64 {
        self.0.values().flatten().map(|end| u64::try_from(*end).unwrap_or(0)).sum()
    }

    fn of(&self, topic: &str, partition: u32) -> u64 {
        let end = self.0.get(topic).and_then(|ends| ends.get(usize::try_from(partition).ok()?));
        end.and_then(|end| u64::try_from(*end).ok()).unwrap_or(0)
    }

    /// Takes in others: the further end counts.
    fn raise(&mut self, others: &Self) {
        for (topic, others) in &others.0 {
            let ends = self.0.entry(topic.clone()).or_default();
            ends.resize(ends.len().max(others.len()), 0);
            for (end, other) in ends.iter_mut().zip(others) {
                *end = (*end).max(*other);
            }
        }
    }
}

/// Why records were not moved.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum Error {
    /// A log does not answer or refuses.
    #[error(transparent)]
    Log(#[from] crate::Error),
    /// The log changed during every look at its ends.
    #[error("the log is being appended to: stop the ingestors, so that the file is of one instant")]
    Moving,
    /// The file cannot be written.
    #[error("the records cannot be written")]
    Write(#[source] serde_avro_fast::ser::SerError),
    /// The file cannot be opened, is no container, or is one of something else.
    #[error("{file} is no file of records: {reason}")]
    NoArchive {
        /// The file.
        file: String,
        /// What is wrong.
        reason: String,
    },
    /// A part of the file cannot be read.
    #[error("{file} is damaged")]
    DamagedFile {
        /// The file.
        file: String,
        /// In which way.
        #[source]
        source: serde_avro_fast::de::DeError,
    },
    /// The file names a topic that this version does not have, or has otherwise.
    #[error("{file}: {reason}")]
    Topic {
        /// The file.
        file: String,
        /// What does not fit.
        reason: String,
    },
    /// A record of a partition is not where the one before ends.
    #[error("{file} has offset {found} of {topic}/{partition} where {expected} must come")]
    Hole {
        /// The file.
        file: String,
        /// The topic.
        topic: &'static str,
        /// The partition.
        partition: u32,
        /// The next offset.
        expected: u64,
        /// The one that came.
        found: i64,
    },
    /// The file ends before what its header promises.
    #[error("{file} was cut: it ends at offset {found} of {topic}/{partition}, and was written up to {expected}")]
    Cut {
        /// The file.
        file: String,
        /// The topic.
        topic: &'static str,
        /// The partition.
        partition: u32,
        /// Where it should end.
        expected: u64,
        /// Where it ends.
        found: u64,
    },
    /// Another record stands at that offset of the log.
    #[error("the log has another record at {topic}/{partition} offset {offset}: this is another log; nothing was appended after it")]
    Differs {
        /// The topic.
        topic: &'static str,
        /// The partition.
        partition: u32,
        /// Where.
        offset: u64,
    },
    /// A record is larger than the log takes.
    #[error("the record at {topic}/{partition} offset {offset} is too large for the log")]
    TooLarge {
        /// The topic.
        topic: &'static str,
        /// The partition.
        partition: u32,
        /// Where.
        offset: u64,
        /// The sizes.
        #[source]
        source: crate::Error,
    },
    /// A record came to stand elsewhere.
    #[error(
        "another process appended to {topic}/{partition} meanwhile, so that offset {expected} came to stand at {found}: empty this log, stop whoever appends, and import again"
    )]
    Displaced {
        /// The topic.
        topic: &'static str,
        /// The partition.
        partition: u32,
        /// Where it belongs.
        expected: u64,
        /// Where it stands.
        found: u64,
    },
    /// An import that began before is still not whole.
    #[error("{topic}/{partition} ends at offset {end}, and an import that began wanted it up to {wanted}: import its files, too")]
    Unfinished {
        /// The topic.
        topic: String,
        /// The partition.
        partition: u32,
        /// Where it ends.
        end: u64,
        /// Where it should.
        wanted: u64,
    },
    /// What is written about imports cannot be encoded.
    #[error("the import cannot be noted in the log")]
    Note(#[source] schemas::avro::Error),
}
