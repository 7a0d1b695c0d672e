//! From upstreams to facts: one loop for all of them, and the schedule on which it runs.
//!
//! Promises: a run appends only what changed; a crash repeats work that no reader sees; two ingestors of one upstream do no
//! harm; an outage, a bot wall or a shrunken answer withdraws nothing; what cannot be mapped is kept aside, never lost.

pub mod facts;
pub mod metrics;
pub mod runner;
pub mod schedule;
pub mod snapshot;

pub use runner::{Outcome, Runner};
pub use schemas::reason::reason;

/// Why a run of a door did not finish.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum Error {
    /// Another ingestor holds the upstream's lease.
    #[error("{door} is being read by another ingestor")]
    Busy {
        /// The door.
        door: &'static str,
    },
    /// The upstream asked to be left alone, of this process or another, and that time is not over.
    #[error("{door} is left alone, as the upstream asked")]
    HeldOff {
        /// The door.
        door: &'static str,
    },
    /// Another ingestor took over while this one was slow; what this one had not appended, the other did.
    #[error("{door} was taken over by another ingestor")]
    Overtaken {
        /// The door.
        door: &'static str,
    },
    /// The upstream did not answer as it should.
    #[error("{door} could not be fetched")]
    Fetch {
        /// The door.
        door: &'static str,
        /// Why.
        #[source]
        source: upstreams::http::FetchError,
    },
    /// The upstream's answer could not be taken.
    #[error("the answer of {door} could not be taken")]
    Upstream {
        /// The door.
        door: &'static str,
        /// Why, naming the field.
        #[source]
        source: upstreams::UpstreamError,
    },
    /// The client could not be made from the configuration.
    #[error("the client of {upstream} cannot be made")]
    Client {
        /// The upstream.
        upstream: &'static str,
        /// Why, naming the setting.
        #[source]
        source: upstreams::http::BuildError,
    },
    /// The log failed.
    #[error("the log failed")]
    Log(#[from] event_log::Error),
    /// The store failed.
    #[error("the view store failed")]
    Store(#[from] view_store::Error),
    /// A fact could not be written.
    #[error("a fact could not be written")]
    Value(#[from] schemas::avro::Error),
    /// A row of the engine is not what this version writes.
    #[error("a row of the engine's runs cannot be read")]
    Row(#[from] serde_json::Error),
    /// A task of ours ended by itself: a bug.
    #[error("a task ended by itself")]
    Task(#[from] tokio::task::JoinError),
    /// The process is stopping, and what was appended is not projected yet; the next run goes on from there.
    #[error("stopped while waiting for a projector to pass {topic}/{partition} up to offset {end}", end = .end.0)]
    Unprojected {
        /// The topic.
        topic: &'static str,
        /// The partition.
        partition: u32,
        /// Where it is to come.
        end: schemas::position::LogOffset,
    },
    /// The process is stopping; the run goes on at its cursor at the next start.
    #[error("stopped; {door} goes on where it is at the next run")]
    Stopped {
        /// The door.
        door: &'static str,
    },
}
