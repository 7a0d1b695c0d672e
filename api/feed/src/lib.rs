//! Reading a service's changes: cursors, positions in time, completeness, and the operation `changes` that every service has.
//!
//! Promise: an answer is taken at one position (a seq), so it is the same whatever is written in the meantime.

pub mod answer_changes;
mod cache;
pub mod changes;
pub mod cursor;
pub mod days;
pub mod derived_lists;
pub mod etag;
pub mod filter;
#[cfg(test)]
mod filtered_tests;
pub mod follower;
pub mod free;
pub mod history;
pub mod internal;
mod late_news;
pub mod latest;
pub mod names;
pub mod notes;
pub mod page;
pub mod page_request;
pub mod places;
pub mod position;
pub mod query;
#[cfg(test)]
mod ranked_tests;
mod record_feed;
pub mod redaction;
pub mod select;
mod source;
mod start;
pub mod stream;
pub mod streams;
pub mod suppression;
#[cfg(any(test, feature = "testing"))]
pub mod testing;
#[cfg(test)]
mod tests;
#[cfg(test)]
mod things;
pub mod through;
pub mod unknown;
pub mod unseen_versions;
mod version_seqs;
pub mod versions;
pub mod watchable;

pub use cache::Feeds;
pub use record_feed::RecordFeed;
pub use source::Source;
