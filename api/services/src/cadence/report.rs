//! How well past forecasts for the items of a niche fitted, as a process keeps it.

use schemas::calibration::Tallies;

use super::prediction::Confidence;

/// How well the forecasts for the items of a niche fitted.
#[derive(Clone, Debug, Default)]
pub struct Report {
    /// The scores by confidence.
    pub tallies: Tallies<Confidence>,
    /// The first and the last restock that a forecast was scored by, in milliseconds since 1970.
    pub span: Option<(i64, i64)>,
}
