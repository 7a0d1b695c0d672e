//! How well past forecasts for the items of a niche fitted, as a process keeps it.

use crate::scores::Tallies;

use super::prediction::Confidence;

/// How well the forecasts for the items of a niche fitted.
#[derive(Clone, Debug, Default)]
pub struct Report {
    /// The scores by confidence.
    pub tallies: Tallies<Confidence>,
    /// The day until whose end forecasts are scored, in days since 1970.
    pub day: i64,
}
