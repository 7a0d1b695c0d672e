//! The operations of the service, one file each, and what they share.

pub(crate) mod addresses;
pub mod categories;
pub mod filter;
pub mod health;
pub mod leads;
pub mod sample;
pub mod watchable_feed;
