//! What a service's decide and apply are made of: the interface of a service to the projector, the rows that a decision sees, and the common part
//! of services with one kind of record.
//!
//! Architecture invariants: everything here is pure, except that [`rows::Rows::fetch`] reads the store. No service is named.

pub mod aliases;
pub mod changes_read;
#[cfg(feature = "testing")]
pub mod random;
pub mod records;
pub mod rows;
pub mod service;
#[cfg(feature = "testing")]
pub mod testing;
pub mod transfers;
pub mod undecided;
