//! The cursor of a run: where the poll of each store is, and what is remembered of a store from one run to the next.

use std::collections::BTreeMap;

use jiff::Timestamp;
use serde::{Deserialize, Serialize};

/// How many products at the end of a page are remembered, to recognise them at the beginning of the next page.
pub(super) const TAIL_MAX: usize = 8;
const DAY_S: i64 = 86_400;

/// The polls of one run.
#[derive(Debug, Serialize, Deserialize)]
pub(super) struct Cursor {
    pub(super) polls: Vec<Poll>,
    /// The poll that the next request belongs to.
    pub(super) turn: usize,
    /// Whether the cursor is for rejected products.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub(super) is_replay: bool,
}

/// The poll of one store.
#[derive(Clone, Debug, Default, Serialize, Deserialize)]
#[serde(default)]
pub(super) struct Poll {
    pub(super) host: String,
    pub(super) niche: String,
    pub(super) interval_s: i64,
    pub(super) step: Step,
    /// 1 while the list is read a second time.
    pub(super) pass: u8,
    pub(super) pages: i64,
    pub(super) products: i64,
    pub(super) variants: i64,
    pub(super) rejected: i64,
    /// The newest edit of any variant that was seen, RFC 3339; empty before the first.
    pub(super) newest_edit: String,
    /// The last products of the last page.
    pub(super) tail: Vec<String>,
    pub(super) memory: Memory,
}

/// The next request of a poll.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub(super) enum Step {
    /// The rules for crawlers.
    Robots,
    /// A page of products, from 1.
    Page(i64),
    /// None: the poll is over, or not due.
    #[default]
    Done,
}

/// What is remembered of a store.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default)]
pub(super) struct Memory {
    /// When its last poll ended, in seconds since 1970.
    pub(super) last_s: i64,
    /// The products of its last complete poll.
    pub(super) products: i64,
    /// How many polls in a row it has refused.
    pub(super) refusals: u32,
    /// Until when it is not asked, in seconds since 1970.
    pub(super) until_s: i64,
    /// The day on which its rules for crawlers were read, in days since 1970.
    pub(super) robots_day: i64,
}

/// What is remembered of all stores, by host.
#[derive(Debug, Default, Serialize, Deserialize)]
#[serde(default)]
pub(super) struct Memories {
    pub(super) stores: BTreeMap<String, Memory>,
}

impl Step {
    /// The first request of a poll at a time.
    pub(super) fn first(memory: &Memory, at: Timestamp) -> Self {
        if memory.robots_day == day(at) { Self::Page(1) } else { Self::Robots }
    }
}

impl Poll {
    /// Begins an unfinished poll again.
    pub(super) fn restart(&mut self) {
        if let Step::Page(_) = self.step {
            let Self { host, niche, interval_s, memory, .. } = std::mem::take(self);
            *self = Self { host, niche, interval_s, memory, step: Step::Page(1), ..Self::default() };
        }
    }
}

impl Cursor {
    /// The poll that the next request belongs to; `None` if all are over.
    pub(super) fn open(&self) -> Option<&Poll> {
        self.polls.get(self.turn).filter(|poll| poll.step != Step::Done)
    }

    pub(super) fn open_mut(&mut self) -> Option<&mut Poll> {
        self.polls.get_mut(self.turn).filter(|poll| poll.step != Step::Done)
    }

    /// The cursor at the first unfinished poll from its turn on.
    pub(super) fn at_open_poll(mut self) -> Self {
        let polls = self.polls.len();
        let open = (self.turn..self.turn + polls)
            .map(|at| at % polls.max(1))
            .find(|at| self.polls.get(*at).is_some_and(|poll| poll.step != Step::Done));
        self.turn = open.unwrap_or(0);
        self
    }

    /// The cursor at the next unfinished poll after its turn.
    pub(super) fn after_turn(mut self) -> Self {
        self.turn += 1;
        self.at_open_poll()
    }
}

/// The day of a time, in days since 1970.
pub(super) fn day(at: Timestamp) -> i64 {
    at.as_second().div_euclid(DAY_S)
}
