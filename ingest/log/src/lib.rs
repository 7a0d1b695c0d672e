//! The event log: topics of partitions of records, appended durably, read from any position.
//!
//! [`log`] holds the trait and its promises, [`contract`] the tests every implementation must pass, [`embedded`] the
//! implementation that lives in the data directory, [`kafka`] the one on a cluster, [`metered`] what is counted around any of them.

pub mod contract;
pub mod embedded;
mod headers;
pub mod kafka;
pub mod log;
pub mod metered;

pub use headers::Headers;
pub use log::{Append, Error, EventLog, Record, Stored};
