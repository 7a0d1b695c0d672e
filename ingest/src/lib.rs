//! Ingestion: turns what upstreams publish into facts. One sync loop serves all upstreams, on a schedule.
//!
//! Guarantees: a sync run appends only what changed. A crash repeats work, and no reader sees the repetition. Two ingestors of one upstream
//! do no harm. An outage, a bot-detection page or a truncated answer withdraws no record. A record that cannot be mapped is stored in the
//! topic `rejected` and never dropped silently.

pub mod facts;
pub mod metrics;
pub mod runner;
pub mod schedule;
pub mod snapshot;

pub use runner::{Outcome, Runner};
pub use schemas::reason::reason;

/// Why a sync run did not finish.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum Error {
    /// Another ingestor holds the upstream's lease.
    #[error("{stream} is being synced by another ingestor")]
    Busy {
        /// The stream.
        stream: &'static str,
    },
    /// The upstream asked this or another process to back off, and that time has not passed yet.
    #[error("{stream} is backing off, as the upstream asked")]
    BackingOff {
        /// The stream.
        stream: &'static str,
    },
    /// Another ingestor took the lease while this one was slow. The other ingestor appends what this one has not.
    #[error("{stream} was taken over by another ingestor")]
    Overtaken {
        /// The stream.
        stream: &'static str,
    },
    /// The request failed.
    #[error("{stream} could not be fetched")]
    Fetch {
        /// The stream.
        stream: &'static str,
        /// Why.
        #[source]
        source: upstreams::http::FetchError,
    },
    /// The upstream's answer was refused.
    #[error("the answer of {stream} was refused")]
    Upstream {
        /// The stream.
        stream: &'static str,
        /// Why; it names the field.
        #[source]
        source: upstreams::UpstreamError,
    },
    /// A downloaded file is damaged.
    #[error("a file of {stream} cannot be read: {reason}")]
    File {
        /// The stream.
        stream: &'static str,
        /// What is wrong with it.
        reason: String,
    },
    /// The stream downloads files, and the runner has no directory for them.
    #[error("{stream} downloads files, and there is no directory for them")]
    NoDownloadDirectory {
        /// The stream.
        stream: &'static str,
    },
    /// The HTTP client cannot be built from the configuration.
    #[error("the http client of {upstream} cannot be built")]
    Client {
        /// The upstream.
        upstream: &'static str,
        /// Why; it names the setting.
        #[source]
        source: upstreams::http::BuildError,
    },
    /// The log failed.
    #[error("the log failed")]
    Log(#[from] event_log::Error),
    /// The store failed.
    #[error("the view store failed")]
    Store(#[from] view_store::Error),
    /// A fact could not be encoded.
    #[error("a fact could not be encoded")]
    Value(#[from] schemas::avro::Error),
    /// A stored row does not have the form that this version writes.
    #[error("a stored row of a sync run cannot be read")]
    Row(#[from] serde_json::Error),
    /// One of our tasks panicked or was cancelled. This is a bug.
    #[error("a task panicked")]
    Task(#[from] tokio::task::JoinError),
    /// The process is stopping before the appended facts are projected. The next sync run continues from there.
    #[error("stopped while waiting for a projector to reach {topic}/{partition} offset {end}", end = .end.0)]
    Unprojected {
        /// The topic.
        topic: &'static str,
        /// The partition.
        partition: u32,
        /// The offset that the projector must reach.
        end: schemas::position::LogOffset,
    },
    /// The process is stopping. The next sync run continues at the stored cursor.
    #[error("stopped; the next sync run of {stream} continues at its cursor")]
    Stopped {
        /// The stream.
        stream: &'static str,
    },
}

impl Error {
    /// Whether the sync run ended because the process is stopping. That is no failure: the next run continues where this one ended.
    #[must_use]
    pub fn is_stop(&self) -> bool {
        matches!(self, Self::Stopped { .. } | Self::Unprojected { .. })
    }
}
