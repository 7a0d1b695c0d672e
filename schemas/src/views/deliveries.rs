//! Deliveries: how far each target of a webhook has been told, and what became of the message under way. Private.
//!
//! A target is a watch with a webhook. What it is told is its service's feed: so nothing of a message is kept but which changes it spans.

use serde::{Deserialize, Serialize};

use super::records::Record;
use crate::event::Command;
use crate::facts::canonical::Canonical;
use crate::hash::{Hash32, hex};
use crate::topics::{self, Topic};

/// Fixes what the next message spans, before it is sent for the first time.
pub const CLAIM: &str = "claim";
/// The target took the message.
pub const DELIVERED: &str = "delivered";
/// It did not; the message is due again later.
pub const FAILED: &str = "failed";
/// It did not, for the last time: what the message spans is passed over.
pub const SKIPPED: &str = "skipped";
/// Nothing more of the range that is told again is for the target.
pub const PASSED: &str = "passed";
/// Nothing more is sent until it is resumed.
pub const DISABLED: &str = "disabled";
/// Sends go on from where they stood.
pub const RESUME: &str = "resume";
/// Sends go on from another place in the feed, or a range of it is told again.
pub const REPLAY: &str = "replay";

/// A command about a target, kept on the `deliveries` topic as `data` of a fact-like envelope whose key is the target's id.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub struct DeliveryCommand {
    /// [`CLAIM`], [`DELIVERED`], [`FAILED`], [`SKIPPED`], [`DISABLED`], [`PASSED`], [`RESUME`] or [`REPLAY`].
    pub verb: String,
    /// Whose target it is.
    pub account: String,
    /// The service whose changes it is told.
    pub service: String,
    /// The message that it is about; on [`CLAIM`] the new one, see [`message_id`].
    pub message: String,
    /// [`CLAIM`], [`REPLAY`]: the change before the first that is told.
    pub after: i64,
    /// [`CLAIM`]: the last change that the message tells. [`REPLAY`], [`PASSED`]: the last change of the range that is told
    /// again; 0 for all.
    pub upto: i64,
    /// Of an attempt: the HTTP status answered, 0 for none.
    pub status: i64,
    /// Of an attempt that failed, of being disabled: why.
    pub reason: String,
    /// [`FAILED`]: when the message is due again, milliseconds since 1970.
    pub due_at: i64,
    /// [`CLAIM`], [`PASSED`]: the [`Delivery::turn`] that it was made in, plus one; 0 where that is not said.
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
    /// A change that it is to be told.
    #[default]
    Idle,
    /// A message to be sent, for the first time or again.
    Claimed,
    /// Its owner, to resume it.
    Disabled,
}

/// A target as it stands; 0 and `""` stand for none.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub struct Delivery {
    /// The target: id of its watch.
    pub id: String,
    /// Whose it is.
    pub account: String,
    /// The service whose changes it is told.
    pub service: String,
    /// What it waits for.
    pub state: State,
    /// The last change that it has been told, that was passed over, or that is not for it: the next message begins behind it.
    pub done: i64,
    /// The last change that the message tells.
    pub upto: i64,
    /// The message under way, or the last one.
    pub message: String,
    /// When it was claimed, milliseconds since 1970.
    pub claimed_at: i64,
    /// Attempts that this message has had.
    pub attempts: i64,
    /// When the last attempt ended, milliseconds since 1970.
    pub attempted_at: i64,
    /// Status that it was answered with.
    pub status: i64,
    /// Why it failed, or why the target is disabled.
    pub reason: String,
    /// [`State::Claimed`]: when the message is due, milliseconds since 1970.
    pub due_at: i64,
    /// Since when every attempt has failed.
    pub failing_since: i64,
    /// Messages that it took.
    pub delivered: i64,
    /// Messages that it never took and that were passed over.
    pub skipped: i64,
    /// The last change of the range that is told again.
    pub range_end: i64,
    /// What it had been told before that range, behind which it goes on.
    pub range_done: i64,
    /// How often it was resumed or replayed: what was claimed before the last time, and is decided after it, moves nothing.
    pub turn: i64,
}

/// How long after the last attempt it no longer counts that it failed, in milliseconds: no pause between attempts is as long.
const FORGIVEN_AFTER_MS: i64 = 2 * 24 * 3600 * 1000;

impl Delivery {
    /// The last change that it has ever been told, that was passed over, or that is not for it.
    #[must_use]
    pub fn told(&self) -> i64 {
        self.done.max(self.range_done)
    }

    /// The same behind a change; behind the last one of a range it goes on where it stood before.
    #[must_use]
    pub fn behind(self, done: i64) -> Self {
        if self.range_end != 0 && done >= self.range_end {
            Self { done: done.max(self.range_done), range_end: 0, range_done: 0, ..self }
        } else {
            Self { done, ..self }
        }
    }

    /// Since when every attempt has failed, if one fails now.
    #[must_use]
    pub fn failing_at(&self, now_ms: i64) -> i64 {
        let is_new = self.failing_since == 0 || now_ms.saturating_sub(self.attempted_at) > FORGIVEN_AFTER_MS;
        if is_new { now_ms } else { self.failing_since }
    }
}

impl Record for Delivery {
    fn id(&self) -> &str {
        &self.id
    }
}

/// The id of the message that tells a target the changes above `after` and up to `upto`, the first and the last of which are for it: the same whoever
/// sends it, and how often.
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

    /// Proves that every field of a command counts: changing any one of them changes the canonical form.
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
