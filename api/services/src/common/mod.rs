//! Operations that every service has in the same form, and those of every service whose feed is filtered.

mod change_tree;
pub mod checkpoints;
pub mod consistency;
pub mod filters;
pub mod followed;
pub mod health;
pub mod keys;
pub(crate) mod prover;
pub mod watchlist;
pub mod witness;
