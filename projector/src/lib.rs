//! From facts to what readers see: which facts chain ([`heads`]), what they mean for each service ([`decider`]), and the rows
//! and pages that follow ([`service::Service::apply`]).
//!
//! Architecture invariants: `decide` and `apply` are pure (no clock, no chance, no network); `apply` reads nothing, so that
//! applying a change twice changes nothing; what depends on order is decided once and stands in the change. No service
//! names an upstream.

pub mod decider;
pub mod export;
pub mod follow;
pub mod heads;
pub mod lag;
pub mod metrics;
pub mod rebuild;
pub mod rows;
pub mod runtime;
pub mod service;
pub mod services;

/// Why a projector stopped.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum Error {
    /// The log failed.
    #[error("the log failed")]
    Log(#[from] event_log::Error),
    /// The store failed.
    #[error("the view store failed")]
    Store(#[from] view_store::Error),
    /// A value on a topic of ours cannot be read or written.
    #[error("a value of topic {topic} cannot be read or written")]
    Value {
        /// The topic.
        topic: String,
        /// Why.
        #[source]
        source: schemas::avro::Error,
    },
    /// A row is not what this version writes.
    #[error("a row of table {table} cannot be read")]
    Row {
        /// The table.
        table: &'static str,
        /// Why.
        #[source]
        source: serde_json::Error,
    },
    /// A commit ended without an answer: its task was lost.
    #[error("a commit of {service} was lost")]
    Lost {
        /// The service.
        service: &'static str,
        /// How.
        #[source]
        source: tokio::task::JoinError,
    },
    /// Another decider appends to the same change topic; this one lets it.
    #[error("another decider works on {service}")]
    Overtaken {
        /// The service.
        service: &'static str,
    },
    /// What was asked for cannot be done, with the reason.
    #[error("{0}")]
    Refused(String),
}
