//! Deliveries: how far each webhook target has received its service's feed, and the state of its current message. Private.
//!
//! A target is a watch with a webhook. Its messages are built from the feed of its service; therefore only the range of changes of a
//! message is stored.

use serde::{Deserialize, Serialize};

use super::records::Record;
use crate::details::{ChangeRecord, NoDetails};
use crate::event::Command;
use crate::position::{PositionError, Seq};
use crate::topics::{self, Topic};
use proofs::hash::{Hash32, hex};

/// A command on the `deliveries` topic: the `data` of an envelope in the shape of a fact, whose key is the id of the target.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(try_from = "StoredCommand", into = "StoredCommand")]
pub struct DeliveryCommand {
    /// The account that owns the target.
    pub account: String,
    /// The service whose changes the target receives.
    pub service: String,
    /// What the command requests.
    pub request: DeliveryRequest,
}

/// What a delivery command requests.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum DeliveryRequest {
    /// Fixes the range of changes of the next message, before the first attempt to send it.
    Claim {
        /// The id of the message, see [`message_id`].
        message: String,
        /// The change before the first one of the message.
        after: Seq,
        /// The last change of the message.
        upto: Seq,
        /// The [`Delivery::turn`] in which the command was made, if it is named.
        turn: Option<i64>,
    },
    /// The target accepted the message.
    Delivered(Attempt),
    /// The target did not accept the message; it is due again later.
    Failed {
        /// The failed attempt.
        attempt: Attempt,
        /// When the message is due again, milliseconds since 1970.
        due_at: i64,
    },
    /// The target did not accept the message, and no further attempt is made: its range is skipped.
    Skipped(Attempt),
    /// Deliveries stop until the target is resumed.
    Disabled(Attempt),
    /// The rest of a replayed range has no change for the target.
    Passed {
        /// The last change of the range.
        upto: Seq,
        /// The [`Delivery::turn`] in which the command was made, if it is named.
        turn: Option<i64>,
    },
    /// Deliveries continue from where they stopped.
    Resume,
    /// Deliveries continue from another position in the feed, or a range of the feed is sent again.
    Replay {
        /// The change after which changes are sent again.
        after: Seq,
        /// The last change that is sent again; `None` for all.
        upto: Option<Seq>,
    },
    /// A request of a newer version, which this version cannot apply.
    Unknown {
        /// Its verb.
        verb: String,
    },
}

impl DeliveryRequest {
    /// Returns the verb of the request, as it is stored.
    #[must_use]
    pub fn verb(&self) -> &str {
        match self {
            Self::Claim { .. } => "claim",
            Self::Delivered(_) => "delivered",
            Self::Failed { .. } => "failed",
            Self::Skipped(_) => "skipped",
            Self::Disabled(_) => "disabled",
            Self::Passed { .. } => "passed",
            Self::Resume => "resume",
            Self::Replay { .. } => "replay",
            Self::Unknown { verb } => verb,
        }
    }

    /// Returns the attempt that the request reports, if it reports one.
    #[must_use]
    pub fn attempt(&self) -> Option<&Attempt> {
        match self {
            Self::Delivered(attempt) | Self::Failed { attempt, .. } | Self::Skipped(attempt) | Self::Disabled(attempt) => Some(attempt),
            _ => None,
        }
    }
}

/// An attempt to send a message.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Attempt {
    /// The id of the message.
    pub message: String,
    /// The HTTP status of the response, 0 without one.
    pub status: i64,
    /// Why the attempt failed, and why the target is skipped or disabled; empty if it succeeded.
    pub reason: String,
}

impl Command for DeliveryCommand {
    const TOPIC: &'static Topic = &topics::DELIVERIES;

    fn verb(&self) -> &str {
        self.request.verb()
    }
}

/// The stored form of a command: one record with the fields of all requests. 0 and `""` mean none.
#[derive(Clone, Debug, Default, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", default)]
struct StoredCommand {
    verb: String,
    account: String,
    service: String,
    message: String,
    after: i64,
    upto: i64,
    status: i64,
    reason: String,
    due_at: i64,
    /// One more than the turn in which the command was made.
    turn: i64,
}

impl TryFrom<StoredCommand> for DeliveryCommand {
    type Error = PositionError;

    fn try_from(stored: StoredCommand) -> Result<Self, PositionError> {
        let StoredCommand { verb, account, service, message, after, upto, status, reason, due_at, turn } = stored;
        let (after, upto) = (Seq::try_from(after)?, Seq::try_from(upto)?);
        let turn = (turn != 0).then(|| turn - 1);
        let attempt = || Attempt { message: message.clone(), status, reason };
        let request = match verb.as_str() {
            "claim" => DeliveryRequest::Claim { message, after, upto, turn },
            "delivered" => DeliveryRequest::Delivered(attempt()),
            "failed" => DeliveryRequest::Failed { attempt: attempt(), due_at },
            "skipped" => DeliveryRequest::Skipped(attempt()),
            "disabled" => DeliveryRequest::Disabled(attempt()),
            "passed" => DeliveryRequest::Passed { upto, turn },
            "resume" => DeliveryRequest::Resume,
            "replay" => DeliveryRequest::Replay { after, upto: Some(upto).filter(|upto| *upto != Seq(0)) },
            _ => DeliveryRequest::Unknown { verb },
        };
        Ok(Self { account, service, request })
    }
}

impl From<DeliveryCommand> for StoredCommand {
    fn from(DeliveryCommand { account, service, request }: DeliveryCommand) -> Self {
        let common = Self { verb: request.verb().to_owned(), account, service, ..Self::default() };
        let attempted = |Attempt { message, status, reason }: Attempt| Self { message, status, reason, ..common.clone() };
        let stored_turn = |turn: Option<i64>| turn.map_or(0, |turn| turn + 1);
        match request {
            DeliveryRequest::Claim { message, after, upto, turn } => {
                Self { message, after: after.stored(), upto: upto.stored(), turn: stored_turn(turn), ..common }
            }
            DeliveryRequest::Delivered(attempt) | DeliveryRequest::Skipped(attempt) | DeliveryRequest::Disabled(attempt) => {
                attempted(attempt)
            }
            DeliveryRequest::Failed { attempt, due_at } => Self { due_at, ..attempted(attempt) },
            DeliveryRequest::Passed { upto, turn } => Self { upto: upto.stored(), turn: stored_turn(turn), ..common },
            DeliveryRequest::Replay { after, upto } => Self { after: after.stored(), upto: upto.map_or(0, Seq::stored), ..common },
            DeliveryRequest::Resume | DeliveryRequest::Unknown { .. } => common,
        }
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
    pub done: Seq,
    /// Seq of the last change of the current message.
    pub upto: Seq,
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
    pub range_end: Seq,
    /// [`Self::done`] from before the replay, after which deliveries continue.
    pub range_done: Seq,
    /// How often the target was resumed or replayed. A claim from an earlier turn that is decided in a later one has no effect.
    pub turn: i64,
}

/// How long after its last attempt a failed target counts as healthy again, in milliseconds. No pause between two attempts is this long.
const FAILURES_FORGOTTEN_AFTER_MS: i64 = 2 * 24 * 3600 * 1000;

impl Delivery {
    /// Returns the seq of the last change that was ever delivered, was skipped, or does not match.
    #[must_use]
    pub fn delivered_seq(&self) -> Seq {
        self.done.max(self.range_done)
    }

    /// Moves the position to `done`. At the end of a replayed range, the position from before the replay is restored.
    #[must_use]
    pub fn advance_to(self, done: Seq) -> Self {
        if self.range_end != Seq(0) && done >= self.range_end {
            Self { done: done.max(self.range_done), range_end: Seq(0), range_done: Seq(0), ..self }
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
pub fn message_id(target: &str, after: Seq, upto: Seq) -> String {
    let hash = Hash32::of_parts(&[target.as_bytes(), &after.0.to_be_bytes(), &upto.0.to_be_bytes()]);
    format!("msg_{}", hex(&hash.0[..12]))
}

crate::record_tables!("deliveries");

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;
    use crate::views::testing::assert_own_fields;

    fn stored(verb: &str) -> serde_json::Value {
        json!({
            "verb": verb, "account": "a", "service": "awards", "message": "msg_1", "after": 3, "upto": 9, "status": 500, "reason": "r", "dueAt": 7, "turn": 5
        })
    }

    /// Proves that each request keeps its own fields in the stored form, and that every stored field is hashed.
    #[test]
    fn requests_are_stored_with_their_fields() {
        for (verb, own) in [
            ("claim", &["message", "after", "upto", "turn"][..]),
            ("delivered", &["message", "status", "reason"]),
            ("failed", &["message", "status", "reason", "dueAt"]),
            ("skipped", &["message", "status", "reason"]),
            ("disabled", &["message", "status", "reason"]),
            ("passed", &["upto", "turn"]),
            ("resume", &[]),
            ("replay", &["after", "upto"]),
            ("dance", &[]),
        ] {
            assert_own_fields::<DeliveryCommand>(&stored(verb), &[&["account", "service"][..], own].concat());
        }
    }

    /// Proves that a negative position is an error, and that 0 means no turn and no end.
    #[test]
    fn positions_are_checked() {
        let mut negative = stored("claim");
        negative["after"] = json!(-1);
        assert!(serde_json::from_value::<DeliveryCommand>(negative).is_err());
        let command =
            |verb: &str| serde_json::from_value::<DeliveryCommand>(json!({ "verb": verb, "upto": 0, "turn": 0 })).unwrap().request;
        assert_eq!(command("passed"), DeliveryRequest::Passed { upto: Seq(0), turn: None });
        assert_eq!(command("replay"), DeliveryRequest::Replay { after: Seq(0), upto: None });
    }
}
