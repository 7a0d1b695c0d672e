//! How many changes a service recorded on each day.

use std::sync::Arc;

use jiff::ToSpan as _;
use operation::context::{Context, Part, store_problem};
use operation::problem::Problem;
use schemars::JsonSchema;
use serde::Serialize;

use crate::position::{Position, start_ms};
use crate::{Feeds, Source};

/// The most days that are counted.
pub const DAYS_MAX: i64 = 90;

/// How many changes were recorded on a day.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, JsonSchema)]
pub struct DayOfChanges {
    /// The day in UTC, YYYY-MM-DD.
    #[schemars(with = "proofs::json_type::Day")]
    pub day: String,
    /// The number of changes that were recorded on it. Internal changes, which no feed shows, count as well.
    pub changes: u64,
}

/// Counts the changes of each of the last `days` days, the day of the position included, the oldest first. The end of each day is looked for in the feed from
/// the end of the day after it backwards, so the time grows with the logarithm of the changes of a day, not with the history.
///
/// # Errors
/// When the feed cannot be read.
pub async fn changes_by_day(ctx: &Context, source: &Source, at: &Position, days: i64) -> Result<Vec<DayOfChanges>, Problem> {
    let reader = Feeds::of(ctx).reader(source, Arc::clone(&at.view));
    let (mut counted, mut upto) = (Vec::new(), at.seq);
    for ago in 0..days.clamp(0, DAYS_MAX) {
        let day = at.today().saturating_sub(ago.days());
        let before = match start_ms(day) {
            Some(start) => reader.recent_seq_at(start - 1, upto).await.map_err(store_problem)?,
            None => upto,
        };
        counted.push(DayOfChanges { day: day.to_string(), changes: upto.0.saturating_sub(before.0) });
        upto = before;
    }
    counted.reverse();
    Ok(counted)
}
