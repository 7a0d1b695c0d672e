//! Webhooks: what a service's feed tells a target is posted to it, signed, in order, until the target takes it.
//!
//! ```text
//!  idle --claim--> claimed --delivered--> idle          claim      what the message spans is fixed, then sent for the first time
//!                   |  ^ \--skipped----> idle           delivered  answered with 2xx
//!            failed |  |                                failed     any other answer, or none: due again later (see `schedule`)
//!                   +--+ \--disabled---> disabled       skipped    failed for three days: passed over, the next one goes on
//!                                           |           disabled   answered with 410, or nothing taken for five days
//!              idle <-------resume----------+           resume     by its owner, from where it stood or from elsewhere in the feed
//! ```
//!
//! Promises: every change that a target's watch lets pass is posted to it, or passed over after three days, in the order of the feed and one message
//! at a time; each move is in the log before anything rests on it, so that a crash, a rebuild or another sender repeats at most the message under
//! way, with the same id and the same body; a target that is slow or dead delays no other; one process at a time sends, by a lease. Nothing of a
//! message is kept but which changes it spans: it is made of the feed each time.

pub mod matchers;
pub mod operate;
pub mod operations;
mod post;
pub mod requested;
mod schedule;
pub mod sender;
mod targets;

pub use matchers::{Matchers, NewMatcher};
pub(crate) use post::Said;
pub use post::poster;
