//! Reading a service's changes: cursors, positions in time, completeness, and the operation `changes` that every service has.
//!
//! Promise: what an answer says is taken at one position (a seq), so that it reads the same whatever is written meanwhile.

mod cache;
pub mod changes;
pub mod cursor;
pub mod etag;
pub mod filter;
#[cfg(test)]
mod filtered;
pub mod followed;
pub mod history;
pub mod live;
pub mod names;
pub mod notes;
pub mod page;
pub mod position;
pub mod private;
pub mod query;
pub mod reading;
pub mod select;
mod source;
mod start;
#[cfg(any(test, feature = "testing"))]
pub mod testing;
#[cfg(test)]
mod tests;
#[cfg(test)]
mod things;
pub mod through;

pub use cache::Feeds;
pub use source::Source;
