//! The view store: rows and feed pages, which can all be dropped and rebuilt from the log, and coordination rows, which expire.
//!
//! [`store`] defines the traits and their guarantees, [`contract`] the tests that every implementation must pass, [`feed`] how pages of
//! changes are packed, [`following_view`] a view that is always the live generation, and [`lease`] how processes share work. [`embedded`] is the implementation in
//! the data directory; that on a CQL database is a crate of its own, `scylla-store`, which shares [`counter`] and [`key`].

pub mod contract;
pub mod counter;
pub mod embedded;
pub mod engine;
pub mod feed;
pub mod following_view;
pub mod key;
pub mod lease;
pub mod store;
pub mod suppression;

pub use embedded::EmbeddedStore;
pub use store::{Awaited, Checkpoint, Coordination, Error, Range, View, ViewStore};
