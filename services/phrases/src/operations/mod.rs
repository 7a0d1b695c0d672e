//! The operations of the service, one file each, and what they share.

pub(crate) mod addresses;
pub mod answer;
pub mod clearance;
pub(crate) mod counting;
pub mod filter;
pub mod health;
pub(crate) mod index;
pub(crate) mod ledger;
pub(crate) mod measured_phrases;
pub(crate) mod newest;
pub mod question;
pub mod radar;
pub mod rising;
pub(crate) mod samples;
pub(crate) mod survey;
pub mod velocity;
pub mod watchable_feed;
