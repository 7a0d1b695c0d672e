//! The operations of the service, one file each, and what they share.

pub(crate) mod addresses;
pub mod list;
pub(crate) mod notice;
pub mod rows;
pub mod search;
pub(crate) mod sources;
pub mod webhook;
