//! The roles of a process.

use clap::ValueEnum;

/// What a process does. Any number of processes of each role may share a log and a store.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub(crate) enum Role {
    /// Runs all roles.
    All,
    /// Polls upstreams and appends facts to the log.
    Ingest,
    /// Decides facts, appends changes, and updates the views.
    Project,
    /// Serves the API. Holds only caches.
    Api,
}

impl Role {
    /// Whether a process of this role also does the work of `other`.
    pub(crate) fn includes(self, other: Self) -> bool {
        self == Self::All || self == other
    }
}
