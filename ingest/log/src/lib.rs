//! The event log: topics of partitions of records, appended durably, read from any position.
//!
//! [`log`] holds the trait and its guarantees, [`contract`] the tests that every implementation must pass, [`embedded`] the implementation
//! in the data directory, [`kafka`] the one on a Kafka cluster, [`metered_log`] metrics around any of them, [`clock_guard`] the refusal of appends
//! under a wrong clock, [`transfer`] export and import between logs, [`backup`] backup and restore, and [`volume`] estimates of sizes.

pub mod backup;
pub mod clock_guard;
pub mod contract;
pub mod embedded;
mod headers;
pub mod kafka;
pub mod log;
pub mod metered_log;
pub mod transfer;
pub mod volume;

pub use headers::Headers;
pub use log::{Append, Error, EventLog, READY_TIME_MAX, Record, Stored};
