//! The operations of the service, one file each, and what they share.

pub(crate) mod addresses;
pub mod artifact;
pub mod calibration;
pub mod check;
pub mod contradiction;
pub mod entity_watch;
pub mod filter;
pub mod findings;
pub mod permalink;
pub(crate) mod recipients;
pub mod recompete;
pub mod sample;
pub mod scan;
mod scan_rows;
pub(crate) mod unrecorded_contracts;
pub mod watchable_feed;
