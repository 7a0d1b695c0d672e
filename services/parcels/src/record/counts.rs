//! Counts of the decision state that readers see: by township, by cycle, and the current cycle of a county.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// What the names of counts in the decision state, and of their terms in the index, begin with.
pub const COUNTS: &str = "counts/";

/// The name of the counts of a township: a map from `CLASS/TIER` to a number, as JSON.
#[must_use]
pub fn township_counts(county: &str, township: &str) -> String {
    format!("{COUNTS}{county}/{township}")
}

/// The name of the counts of a cycle, see [`DeltaCounts`].
#[must_use]
pub fn delta_counts(county: &str, cycle: &str) -> String {
    format!("{COUNTS}delta/{county}/{cycle}")
}

/// The name of the current cycle of a county, see [`CurrentCycle`].
#[must_use]
pub fn current_cycle(county: &str) -> String {
    format!("{COUNTS}cycle/{county}")
}

/// How many parcels a cycle made over-assessed, and how many no more.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase", default)]
#[schemars(rename = "ParcelDeltaCounts")]
pub struct DeltaCounts {
    /// Parcels that are over-assessed now and were not when the cycle before closed.
    pub new: i64,
    /// Parcels that were over-assessed when the cycle before closed and are not now.
    pub resolved: i64,
}

/// The latest cycle of a county.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub struct CurrentCycle {
    /// Year and stage: `2026-mailed`.
    pub cycle: String,
    /// The day on which the first neighbourhood reached it.
    pub since: String,
}
