//! Deliveries: how far each webhook target has received its service's feed, and the state of its current message. Private.
//!
//! A target is a watch with a webhook. Its messages are built from the feed of its service; therefore only the range of changes of a
//! message is stored.

use serde::{Deserialize, Serialize};

use super::records::Record;
use crate::details::{ChangeRecord, NoDetails};
use crate::event::Command;
use crate::facts::canonical::Canonical;
use crate::hash::{Hash32, hex};
use crate::topics::{self, Topic};

/// Fixes the range of changes of the next message, before the first attempt to send it.
pub const CLAIM: &str = "claim";
/// The target accepted the message.
pub const DELIVERED: &str = "delivered";
/// The target did not accept the message; it is due again later.
pub const FAILED: &str = "failed";
/// The target did not accept the message, and no further attempt is made: its range is skipped.
pub const SKIPPED: &str = "skipped";
/// The rest of a replayed range has no change for the target.
pub const PASSED: &str = "passed";
/// Deliveries stop until the target is resumed.
pub const DISABLED: &str = "disabled";
/// Deliveries continue from where they stopped.
pub const RESUME: &str = "resume";
/// Deliveries continue from another position in the feed, or a range of the feed is sent again.
pub const REPLAY: &str = "replay";

/// A command on the `deliveries` topic: the `data` of an envelope in the shape of a fact, whose key is the id of the target.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub struct DeliveryCommand {
    /// [`CLAIM`], [`DELIVERED`], [`FAILED`], [`SKIPPED`], [`DISABLED`], [`PASSED`], [`RESUME`] or [`REPLAY`].
    pub verb: String,
    /// The account that owns the target.
    pub account: String,
    /// The service whose changes the target receives.
    pub service: String,
    /// The id of the message; for [`CLAIM`] that of the new one, see [`message_id`].
    pub message: String,
    /// [`CLAIM`], [`REPLAY`]: seq of the change before the first one that is sent.
    pub after: i64,
    /// [`CLAIM`]: seq of the last change of the message. [`REPLAY`], [`PASSED`]: seq of the last change of the replayed range; 0 for no
    /// end.
    pub upto: i64,
    /// For an attempt: the HTTP status of the answer, 0 for none.
    pub status: i64,
    /// Why an attempt failed, or why the target is disabled.
    pub reason: String,
    /// [`FAILED`]: when the message is due again, milliseconds since 1970.
    pub due_at: i64,
    /// [`CLAIM`], [`PASSED`]: the [`Delivery::turn`] in which the command was sent, plus one; 0 if the command does not name it.
    pub turn: i64,
}

impl Command for DeliveryCommand {
    const TOPIC: &'static Topic = &topics::DELIVERIES;

    fn verb(&self) -> &str {
        &self.verb
    }

    fn canonical(&self) -> Vec<u8> {
        let Self { verb, account, service, message, after, upto, status, reason, due_at, turn } = self;
        let number = |number: i64| Some(number).filter(|number| *number != 0);
        Canonical::default()
            .text("verb", verb)
            .text("account", account)
            .text("service", service)
            .text("message", message)
            .number("after", number(*after))
            .number("upto", number(*upto))
            .number("status", number(*status))
            .text("reason", reason)
            .number("dueAt", number(*due_at))
            .number("turn", number(*turn))
            .bytes()
    }
}

/// What a target waits for.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum State {
    /// A change that matches its watch.
    #[default]
    Idle,
    /// Its current message to be sent, for the first time or again.
    Claimed,
    /// Its owner, who can resume it.
    Disabled,
}

/// The current state of a target. 0 and `""` mean none.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub struct Delivery {
    /// Id of the target: that of its watch.
    pub id: String,
    /// The account that owns the target.
    pub account: String,
    /// The service whose changes the target receives.
    pub service: String,
    /// What the target waits for.
    pub state: State,
    /// Seq of the last change that was delivered, was skipped, or does not match: the next message starts after it.
    pub done: i64,
    /// Seq of the last change of the current message.
    pub upto: i64,
    /// Id of the current message, or of the last one.
    pub message: String,
    /// When the current message was claimed, milliseconds since 1970.
    pub claimed_at: i64,
    /// The number of attempts to send the current message.
    pub attempts: i64,
    /// When the last attempt ended, milliseconds since 1970.
    pub attempted_at: i64,
    /// HTTP status of the last answer.
    pub status: i64,
    /// Why the last attempt failed, or why the target is disabled.
    pub reason: String,
    /// [`State::Claimed`]: when the message is due, milliseconds since 1970.
    pub due_at: i64,
    /// When the current series of failed attempts began, milliseconds since 1970; 0 if the last attempt succeeded.
    pub failing_since: i64,
    /// The number of messages that the target accepted.
    pub delivered: i64,
    /// The number of messages that were skipped.
    pub skipped: i64,
    /// Seq of the last change of the range that is replayed; 0 without a replay.
    pub range_end: i64,
    /// [`Self::done`] from before the replay, after which deliveries continue.
    pub range_done: i64,
    /// How often the target was resumed or replayed. A claim from an earlier turn that is decided in a later one has no effect.
    pub turn: i64,
}

/// How long after its last attempt a failed target counts as healthy again, in milliseconds. No pause between two attempts is this long.
const FAILURES_FORGOTTEN_AFTER_MS: i64 = 2 * 24 * 3600 * 1000;

impl Delivery {
    /// Returns the seq of the last change that was ever delivered, was skipped, or does not match.
    #[must_use]
    pub fn delivered_seq(&self) -> i64 {
        self.done.max(self.range_done)
    }

    /// Moves the position to `done`. At the end of a replayed range, the position from before the replay is restored.
    #[must_use]
    pub fn advance_to(self, done: i64) -> Self {
        if self.range_end != 0 && done >= self.range_end {
            Self { done: done.max(self.range_done), range_end: 0, range_done: 0, ..self }
        } else {
            Self { done, ..self }
        }
    }

    /// Returns since when every attempt has failed, given that one fails now.
    #[must_use]
    pub fn failing_at(&self, now_ms: i64) -> i64 {
        let is_new = self.failing_since == 0 || now_ms.saturating_sub(self.attempted_at) > FAILURES_FORGOTTEN_AFTER_MS;
        if is_new { now_ms } else { self.failing_since }
    }
}

impl ChangeRecord for Delivery {
    type Details = NoDetails;
}

impl Record for Delivery {
    fn id(&self) -> &str {
        &self.id
    }
}

/// Returns the id of the message to a target with the changes above `after` and up to `upto`. It depends on nothing else, so that every
/// sender gives the same message the same id.
#[must_use]
pub fn message_id(target: &str, after: i64, upto: i64) -> String {
    let hash = Hash32::of_parts(&[target.as_bytes(), &after.to_be_bytes(), &upto.to_be_bytes()]);
    format!("msg_{}", hex(&hash.0[..12]))
}

crate::record_tables!("deliveries");

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    /// Proves that every field of a command is hashed: changing it changes the canonical form.
    #[test]
    fn every_field_is_hashed() {
        let empty = serde_json::to_value(DeliveryCommand::default()).unwrap();
        for name in empty.as_object().unwrap().keys() {
            let mut changed = empty.clone();
            changed[name] = if empty[name].is_number() { json!(7) } else { json!("x") };
            let command: DeliveryCommand = serde_json::from_value(changed).unwrap();
            assert_ne!(command.canonical(), DeliveryCommand::default().canonical(), "{name}");
        }
    }
}
