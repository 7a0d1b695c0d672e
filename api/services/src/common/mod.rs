//! Operations that every service has in the same form, and those of every service whose feed is filtered.

pub mod agency_url;
pub mod checkpoints;
pub mod consistency;
pub mod filters;
pub mod followed;
pub mod health;
pub mod keys;
pub mod watchlist;
pub mod witness;
