//! The operations of the service, one file each, and what they share.

pub(crate) mod addresses;
pub mod check;
pub mod clearance;
pub mod filter;
pub mod health;
pub mod name_arguments;
pub mod register;
pub mod similar;
pub mod watch;
pub mod watchable_feed;
