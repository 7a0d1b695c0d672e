//! Operations and shells that services share. Some operations are the same in every service, others in every service whose feed is filtered.

pub mod changes_since;
pub mod exports;
pub mod files;
pub mod filters;
pub mod health;
pub mod history;
pub mod keys;
pub mod last_entry;
pub mod last_run;
pub mod list_page;
pub mod live;
mod lookup_cache;
pub mod number;
pub mod numbers;
pub mod read;
pub mod records;
pub mod registration;
mod unknown;
pub mod watchable_feed;
pub mod watchlist;
pub mod yearly;
