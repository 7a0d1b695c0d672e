//! Webhooks: posts the changes that a watch selects to the watch's URL, signed, in the order of the feed, and retries until the receiver accepts them.
//!
//! # The life of a webhook
//!
//! It begins when an account makes a watch with a URL, which is stored encrypted (crate `access`): idle, at the newest change of the service. For each message
//! with changes that the watch selects, it goes through these states:
//!
//! ```text
//!  idle --claim--> claimed --delivered--> idle          claim      the range of changes of the message is fixed, then the first attempt is made
//!                   |  ^ \--skipped----> idle           delivered  the receiver answered with 2xx
//!            failed |  |                                failed     any other response, or none: retried later (see `schedule`)
//!                   +--+ \--disabled---> disabled       skipped    failed for three days: the message is dropped and delivery continues with the next
//!                                           |           disabled   the receiver answered 410, or accepted nothing for five days
//!              idle <-------resume----------+           resume     by its owner, from the current position or from elsewhere in the feed
//! ```
//!
//! It ends when the watch is deleted: messages that are queued are not sent any more. A watch with an end selects no change that is recorded after it.
//!
//! Promises: every change that a watch selects is either delivered or, after three days of failures, skipped; in feed order and one message at a
//! time. Each state transition is in the log before anything depends on it, so a crash, a rebuild or a change of sender repeats at most the message
//! in flight, with the same id and the same body. A slow or dead receiver does not delay other receivers. A lease ensures that only one process
//! sends. Only the range of changes of a message is stored; its body is rendered from the feed for each attempt.

pub mod matchers;
pub mod operate;
pub mod operations;
pub mod parse;
mod post;
mod schedule;
pub mod sender;
mod targets;

pub use matchers::{Matchers, NewMatcher};
pub(crate) use post::DeliveryOutcome;
pub use post::poster;
