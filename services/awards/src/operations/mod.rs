//! The operations of the service, one file each, and what they share.

pub(crate) mod addresses;
pub mod competitor;
pub mod digest;
pub mod filter;
pub mod records;
pub mod search;
pub(crate) mod sources;
pub mod watchable_feed;
