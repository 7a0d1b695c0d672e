//! The operations of the service, one file each, and what they share.

pub(crate) mod addresses;
pub mod clusters;
pub mod company;
pub mod digest;
pub mod filter;
pub mod insiders;
pub mod records;
pub mod search;
pub mod watchable_feed;
