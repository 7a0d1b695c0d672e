//! The operations of the service, one file each, and what they share.

pub(crate) mod addresses;
pub mod board;
pub mod calibration;
pub mod catalog;
pub mod filter;
pub mod health;
pub mod list_niches;
pub mod list_stores;
pub mod niches;
pub mod polled_through;
pub mod predict;
pub mod prediction;
pub mod report;
pub mod watchable_feed;
pub(crate) mod words;
