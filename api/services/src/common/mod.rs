//! Operations and shells that services share. Some operations are the same in every service, others in every service whose feed is filtered.

pub(crate) mod change_tree;
pub mod changes_since;
pub mod checkpoints;
pub mod consistency;
pub mod exports;
#[cfg(test)]
mod exports_tests;
pub mod files;
pub mod filters;
pub mod followed;
pub mod health;
pub mod history;
pub mod keys;
pub(crate) mod last_entry;
pub(crate) mod last_run;
pub mod list_page;
pub mod number;
pub mod numbers;
pub mod prover;
pub mod read;
pub mod records;
pub(crate) mod unknown;
pub mod watchlist;
pub mod witness;
pub mod yearly;
