//! The arguments that every feed has: where to start, and how many changes to return.

use std::time::Duration;

use operation::feed_start::{NEWEST, is_start};
use operation::problem::Problem;
use operation::{Call, Form};
use schemars::JsonSchema;
use serde::Deserialize;
use tokio::time::Instant;

/// The most items of a page.
pub const LIMIT_MAX: usize = 200;
/// The longest time that a request may wait for new changes, in seconds.
const WAIT_S_MAX: u64 = 30;

/// The default number of items of a page.
pub fn limit_default() -> usize {
    50
}

/// Where to start reading a feed, and how many changes to return.
#[derive(Clone, Debug, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct PageRequest {
    /// Where to continue: the `cursor` of an earlier answer. It never expires. Without it the feed starts at `start`.
    pub cursor: Option<String>,
    /// Where to start without a cursor: `earliest`, `newest` (the last `limit` changes), `latest` (from now on), or from a date YYYY-MM-DD in UTC or an
    /// RFC 3339 time on. By default the last 7 days.
    pub start: Option<String>,
    /// The most changes to return.
    #[serde(default = "limit_default")]
    #[schemars(range(min = 1, max = 200))]
    pub limit: usize,
    /// Seconds to wait for new changes if there are none.
    #[serde(default)]
    #[schemars(range(min = 0, max = 30))]
    pub wait: u64,
    /// Answer as of this time: a date YYYY-MM-DD (its end in UTC) or an RFC 3339 time, not in the future.
    pub as_of: Option<String>,
}

/// The arguments of a feed that can be filtered.
#[derive(Clone, Debug, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct FilteredPageRequest {
    /// Where to start, and how many changes to return.
    #[serde(flatten)]
    pub page: PageRequest,
    /// Whether to include the previous version of modified records.
    #[serde(default)]
    pub before: bool,
    /// Whether to accept a cursor of another filter. The answers then first return which records enter (`added`) and leave (`removed`) the filtered set.
    #[serde(default)]
    pub rebase: bool,
}

impl PageRequest {
    /// Checks the values, and that they can be combined.
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
            // A stream would end immediately, again and again.
            return Err(Problem::parameter("asOf", "a stream of server-sent events cannot use `asOf`; request pages instead"));
        }
        let ends_at_cursor = start.is_some() && self.is_newest(call);
        if ends_at_cursor && cursor.is_some() && (*wait > 0 || call.form == Form::Events) {
            return Err(Problem::parameter("start", "a page that ends at a cursor has no later changes to wait for"));
        }
        if cursor.is_some() && start.is_some() && !ends_at_cursor {
            return Err(Problem::parameter("start", "give `cursor` or `start`, not both"));
        }
        Ok(())
    }

    /// Whether the page has the last changes.
    pub(super) fn is_newest(&self, call: &Call) -> bool {
        match &self.start {
            Some(start) => is_start(start, NEWEST),
            None => call.form == Form::Atom,
        }
    }

    /// How many items a page has at most: the argument `limit`, or fewer if the tier allows fewer.
    pub(super) fn limit_of(&self, call: &Call) -> usize {
        self.limit.min(call.context.settings.tiers.of(call.caller.tier).rows_max)
    }

    /// What a page says that the tier cut: it has more items than the tier allows, and more were requested.
    pub(super) fn limit_note(&self, call: &Call, has_more: bool) -> Option<String> {
        let rows_max = call.context.settings.tiers.of(call.caller.tier).rows_max;
        (has_more && self.limit > rows_max)
            .then(|| format!("this tier is limited to {rows_max} items per page; a paid key allows up to {LIMIT_MAX}"))
    }

    /// Until when the request waits for new changes. With `asOf` there are none to wait for.
    pub(super) fn deadline(&self) -> Instant {
        Instant::now() + Duration::from_secs(if self.as_of.is_some() { 0 } else { self.wait })
    }
}
