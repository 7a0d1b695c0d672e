//! The operations of the service, one file each, and what they share.

pub mod add_writer;
pub mod chain;
pub mod consistency;
pub mod document;
pub mod issue;
pub mod list;
pub(crate) mod page;
pub mod pubkey;
pub mod remove_writer;
pub(crate) mod rows;
pub mod seal;
pub mod shared_refusals;
pub mod signer;
pub(crate) mod tree;
pub mod verify;
