//! The event log: topics of partitions of records, appended durably, read from any position.
//!
//! [`log`] holds the trait and its promises, [`contract`] the tests every implementation must pass, [`embedded`] the
//! implementation that lives in the data directory, [`kafka`] the one on a cluster, [`metered`] what is counted around any of them,
//! [`transfer`] what moves records from one log to another.

pub mod contract;
pub mod embedded;
mod headers;
pub mod kafka;
pub mod log;
pub mod metered;
pub mod transfer;

pub use headers::Headers;
pub use log::{Append, Error, EventLog, Record, Stored};
