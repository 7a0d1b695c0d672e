//! The operations of the service, one file each, and what they share.

pub(crate) mod addresses;
pub mod calendar;
pub mod company;
pub mod drug;
pub mod filter;
pub mod horizon;
pub(crate) mod known_company;
pub(crate) mod list;
pub mod pay;
pub mod upcoming;
pub mod watchable_feed;
