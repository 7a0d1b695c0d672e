//! The operations of the service, one file each, and what they share.

pub(crate) mod addresses;
pub mod digest;
pub mod entity;
pub mod filter;
pub mod new_funding;
pub mod records;
pub mod search;
pub mod watchable_feed;
