//! The operations of the service, one file each, and what they share.

pub(crate) mod addresses;
pub(crate) mod counts;
pub mod feed_page;
pub mod filter;
mod hidden_leads;
pub mod pulse;
pub mod sample;
pub mod sources;
pub mod watchable_feed;
