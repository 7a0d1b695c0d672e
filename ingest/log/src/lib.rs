//! The event log: topics of partitions of records, appended durably, read from any position.
//!
//! [`log`] holds the trait and its guarantees, [`contract`] the tests that every implementation must pass, [`embedded`] the implementation
//! in the data directory, [`kafka`] the one on a Kafka cluster, [`metered`] metrics around any of them, and [`transfer`] export and import
//! between logs. [`durable_file`] writes small files next to a log.

pub mod contract;
pub mod durable_file;
pub mod embedded;
mod headers;
pub mod kafka;
pub mod log;
pub mod metered;
pub mod transfer;

pub use headers::Headers;
pub use log::{Append, Error, EventLog, Record, Stored};
