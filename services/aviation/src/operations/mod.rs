//! The operations of the service, one file each, and what they share.

pub(crate) mod addresses;
pub mod assess;
pub mod audit;
pub mod basis;
pub mod comparisons;
pub mod directive_match;
pub mod filter;
pub mod fleet;
pub mod fleet_watch;
pub mod match_ads;
pub mod next_due;
mod pieces;
pub mod recurring;
pub mod shared_directive;
pub mod stored_fleets;
pub mod watchable_feed;
