//! The view store: rows and feed pages that can all be dropped and rebuilt from the log, and coordination rows that expire.
//!
//! [`store`] holds the traits and their promises, [`contract`] the tests every implementation must pass, [`feed`] how
//! pages of changes are packed, [`lease`] how work is shared out, [`embedded`] the implementation that lives in the data directory,
//! [`scylla`](mod@scylla) the one on a CQL database.

pub mod contract;
mod counter;
pub mod embedded;
pub mod engine;
pub mod feed;
mod key;
pub mod lease;
pub mod scylla;
pub mod store;

pub use self::scylla::ScyllaStore;
pub use embedded::EmbeddedStore;
pub use store::{Checkpoint, Coordination, Error, Range, View, ViewStore};
