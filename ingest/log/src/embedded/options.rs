//! The limits of the log, and its topics.

use std::sync::Arc;

use disk_files::space::SpaceWatch;
use schemas::topics::{self, Topic};

use super::packed_values::PackLimits;

/// Limits of the log, and its topics.
#[derive(Clone, Debug)]
pub struct Options {
    /// The topics; [`topics::ALL`] except in tests. A topic that is no longer named keeps its records.
    pub topics: &'static [Topic],
    /// The largest record accepted, in bytes of its key, value and headers; at most 256 MiB.
    pub record_bytes_max: usize,
    /// The size of the store's cache, in bytes.
    pub cache_bytes: u64,
    /// The largest size of the store's journals on disk, in bytes; at least 64 MiB. They are replayed when the log is opened after a crash.
    pub journal_bytes_max: u64,
    /// The size of a topic's write buffer in memory, in bytes. When it is full it is written to a table. The size is fixed when the topic
    /// is created.
    pub memtable_bytes: u64,
    /// How many files the store keeps open; at least 10.
    pub files_open_max: usize,
    /// How many bytes of encoded records may wait for the committer; further appends wait. At most 4 GiB.
    pub queue_bytes_max: usize,
    /// How many bytes of encoded records are written with one sync. A single larger append is still written in one commit.
    pub commit_bytes_max: usize,
    /// The largest packed value, in bytes of encoded records; at most 256 MiB.
    pub packed_bytes_max: usize,
    /// The most records in one packed value.
    pub packed_records_max: usize,
    /// Measures the free space of the disk. While it is full, appends fail.
    pub space: Option<Arc<SpaceWatch>>,
}

impl Default for Options {
    fn default() -> Self {
        const MIB: usize = 1024 * 1024;
        Self {
            topics: topics::ALL,
            record_bytes_max: MIB,
            cache_bytes: 16 * MIB as u64,
            journal_bytes_max: 128 * MIB as u64,
            memtable_bytes: 8 * MIB as u64,
            files_open_max: 128,
            queue_bytes_max: 32 * MIB,
            commit_bytes_max: 8 * MIB,
            packed_bytes_max: MIB,
            packed_records_max: 2000,
            space: None,
        }
    }
}

impl Options {
    pub(super) fn limits(&self) -> PackLimits {
        PackLimits { bytes_max: self.packed_bytes_max, records_max: self.packed_records_max.max(1) }
    }
}
