//! The arguments of `upcoming`, `company` and `drug` next to what they search.

use schemars::JsonSchema;
use serde::Deserialize;

/// How far ahead a search looks, and which page of its events is wanted. Arguments flatten it.
#[derive(Clone, Debug, Deserialize, JsonSchema)]
pub struct Horizon {
    /// How many days ahead an upcoming event's window may begin. Without a paid key at most 30 are served.
    #[serde(default = "days_default")]
    #[schemars(range(min = 1, max = 730))]
    pub days: i64,
    /// How many events to return at most.
    #[serde(default = "limit_default")]
    #[schemars(range(min = 1, max = 200))]
    pub limit: usize,
    /// Where to continue: the `next` of the answer before, with the same other arguments.
    #[schemars(length(min = 1, max = 2000))]
    pub after: Option<String>,
}

fn days_default() -> i64 {
    365
}

fn limit_default() -> usize {
    50
}
