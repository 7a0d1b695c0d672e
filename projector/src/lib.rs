//! Turns facts into what readers see. [`heads`] determines which facts extend their key's chain, [`decider`] what a fact means for each
//! service, and [`fold::service::Service::apply`] the rows and feed pages that follow.
//!
//! Architecture invariants: `decide` and `apply` are pure (no clock, no randomness, no network). `apply` reads nothing, so that applying a
//! change twice changes nothing. Whatever depends on the order of inputs is decided once and recorded in the change. No service names an
//! upstream.

mod confirmations;
pub mod decider;
pub mod export;
pub mod follow;
pub mod fsck;
pub mod heads;
pub mod lag;
pub mod metrics;
pub mod rebuild;
pub mod runtime;
pub mod service_def;
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
    /// A file of an export cannot be written.
    #[error("the export cannot be written")]
    File(#[from] table_file::Error),
    /// A value on one of the engine's topics cannot be read or written.
    #[error("a value of topic {topic} cannot be read or written")]
    Value {
        /// The topic of the value.
        topic: String,
        /// The cause.
        #[source]
        source: schemas::avro::Error,
    },
    /// A stored position cannot be read, or a position cannot be stored.
    #[error("a position of {of} cannot be read or written")]
    Position {
        /// The topic or view of the position.
        of: &'static str,
        /// The cause.
        #[source]
        source: schemas::position::PositionError,
    },
    /// The hash in the checkpoint of a view cannot be read.
    #[error("the checkpoint of view {view} holds no hash of a change: \"{hash}\"")]
    CheckpointHash {
        /// The name of the view.
        view: &'static str,
        /// The text in place of the hash.
        hash: String,
    },
    /// A row does not have the form that this version writes.
    #[error("a row of table {table} cannot be read")]
    Row {
        /// The table of the row.
        table: &'static str,
        /// The cause.
        #[source]
        source: serde_json::Error,
    },
    /// The task of a commit ended without a result.
    #[error("a commit of {service} was lost")]
    Lost {
        /// The service whose rows were committed.
        service: &'static str,
        /// The cause.
        #[source]
        source: tokio::task::JoinError,
    },
    /// Another decider appended changes of the same service; this one must load them first.
    #[error("another decider appended changes of {service}")]
    Overtaken {
        /// The service that both decide for.
        service: &'static str,
    },
    /// A row, or the position of a view, is not what the log says. The view is rebuilt, if its store can do that.
    #[error("view {view} contradicts the log: {reason}")]
    Contradicted {
        /// The name of the view.
        view: &'static str,
        /// What differs.
        reason: String,
    },
    /// The request cannot be executed, for this reason.
    #[error("{0}")]
    Refused(String),
}
