//! What every read has: the types of its service, and the arguments that the shell declares.

use feed::filter::Filter;
use feed::watchable::WatchableFeed;
use schemars::JsonSchema;
use serde::Deserialize;

/// The filter of a service.
pub type FilterOf<S> = <S as WatchableFeed>::Filter;

/// The record of a service.
pub type RecordOf<S> = <FilterOf<S> as Filter>::Record;

/// The arguments that the shell declares.
#[derive(Clone, Debug, Default, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub(super) struct Shared {
    /// How many items to return at most.
    #[schemars(range(min = 1, max = 200))]
    pub(super) limit: Option<usize>,
    /// The number of days to look back, including today.
    #[serde(default = "days_default")]
    #[schemars(range(min = 1, max = 90))]
    pub(super) days: i64,
    /// Where to continue: the `next` of an earlier answer to the same arguments.
    pub(super) after: Option<String>,
    /// Answer as of this time, from what was recorded then: a date YYYY-MM-DD (its end in UTC) or an RFC 3339 time, not later than now.
    pub(super) as_of: Option<String>,
}

fn days_default() -> i64 {
    7
}
