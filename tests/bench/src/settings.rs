//! What a run measures, and how it fails.

use std::error::Error as StdError;
use std::path::PathBuf;

/// The error of any part of a benchmark; it is printed and ends the run.
pub(super) type Failure = Box<dyn StdError + Send + Sync>;

/// Records of a quick run.
pub(super) const QUICK_RECORDS: u64 = 20_000;

/// The settings of every benchmark.
#[derive(Clone)]
pub(super) struct Settings {
    pub(super) records: u64,
    pub(super) dir: PathBuf,
    pub(super) seconds: u64,
    pub(super) rounds: usize,
    pub(super) partitions: Vec<u32>,
    pub(super) replication: i32,
    pub(super) only: Option<String>,
    pub(super) is_quick: bool,
}

impl Settings {
    /// The settings of a benchmark of which a quick run takes fewer records.
    pub(super) fn with_quick_records(&self, records: u64) -> Self {
        Self { records: if self.is_quick { records } else { self.records }, ..self.clone() }
    }
}
