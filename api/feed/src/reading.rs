//! The arguments that every feed has: where it goes on or starts, and how much of it is given.

use std::time::Duration;

use schemars::JsonSchema;
use serde::Deserialize;
use tokio::time::Instant;

use operation::problem::Problem;
use operation::{Call, Form};

/// Items that a page has at most.
pub const LIMIT_MAX: usize = 200;
/// Seconds that a page may be waited for at most.
const WAIT_S_MAX: u64 = 30;

/// Items of a page where none are asked for.
pub fn limit_default() -> usize {
    50
}

/// Where a feed goes on or starts, and how much of it is given.
#[derive(Clone, Debug, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct Reading {
    /// Where to go on: the `cursor` of an earlier answer. It never expires. Without it the feed starts at `start`.
    pub cursor: Option<String>,
    /// Where to start without a cursor: `earliest`, `latest` (only what comes from now on), or a date YYYY-MM-DD (changes recorded
    /// from that day on, in UTC). By default the last 7 days.
    pub start: Option<String>,
    /// How many changes to give at most.
    #[serde(default = "limit_default")]
    #[schemars(range(min = 1, max = 200))]
    pub limit: usize,
    /// Seconds to wait for something new when there is nothing.
    #[serde(default)]
    #[schemars(range(min = 0, max = 30))]
    pub wait: u64,
    /// Answer as of this time: a date YYYY-MM-DD (its end in UTC) or an RFC 3339 time, not later than now.
    pub as_of: Option<String>,
}

/// The same of a feed under a filter.
#[derive(Clone, Debug, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct Filtered {
    /// Where it goes on or starts.
    #[serde(flatten)]
    pub reading: Reading,
    /// Whether modified records come with what they were before.
    #[serde(default)]
    pub before: bool,
    /// Whether a cursor that was made under another filter is taken: then the answers first tell which records come in (`added`) and which
    /// go out (`removed`).
    #[serde(default)]
    pub rebase: bool,
}

impl Reading {
    /// What cannot be asked for, or not together.
    ///
    /// # Errors
    /// `parameter-invalid`, naming the parameter.
    pub(super) fn check(&self, call: &Call) -> Result<(), Problem> {
        let Self { cursor, start, limit, wait, as_of } = self;
        if *limit == 0 || *limit > LIMIT_MAX {
            return Err(Problem::parameter("limit", format!("{limit} is not between 1 and {LIMIT_MAX}")));
        }
        if *wait > WAIT_S_MAX {
            return Err(Problem::parameter("wait", format!("{wait} is not between 0 and {WAIT_S_MAX}")));
        }
        if as_of.is_some() && call.form == Form::Events {
            // It would end at once, again and again.
            return Err(Problem::parameter("asOf", "a stream tells what comes; what was is told in pages"));
        }
        if cursor.is_some() && start.is_some() {
            return Err(Problem::parameter("start", "give either a cursor or a start"));
        }
        Ok(())
    }

    /// How many items the caller gets of those asked for; if that is fewer, it is said.
    pub(super) fn limit_of(&self, call: &Call, notes: &mut Vec<String>) -> usize {
        let rows_max = call.context.settings.tiers.of(call.caller.tier).rows_max;
        if self.limit > rows_max {
            notes.push(format!("this tier gets at most {rows_max} items a page; a paid key gets up to {LIMIT_MAX}"));
        }
        self.limit.min(rows_max)
    }

    /// Until when it is waited for something new: nothing new comes of the past.
    pub(super) fn deadline(&self) -> Instant {
        Instant::now() + Duration::from_secs(if self.as_of.is_some() { 0 } else { self.wait })
    }
}
