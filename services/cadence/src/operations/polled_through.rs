//! How completely the stores have been polled, as answers say it.

use operation::problem::Problem;
use schemars::JsonSchema;
use serde::Serialize;

use super::watchable_feed::Cadence;
use reads::read::{Completeness, Reader};

/// How completely the stores have been polled.
#[derive(Clone, Debug, Serialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct PolledThrough {
    /// The last day for which every store has been polled; empty before the first complete run.
    pub through_date: String,
    /// The number of complete runs.
    pub snapshot_count: u64,
}

impl PolledThrough {
    /// How completely the stores had been polled at the position of a reader.
    ///
    /// # Errors
    /// When rows cannot be read.
    pub(crate) async fn read(reader: &Reader<Cadence>) -> Result<Self, Problem> {
        let Completeness { through_date, snapshot_count } = reader.completeness().await?;
        Ok(Self { through_date, snapshot_count })
    }
}
