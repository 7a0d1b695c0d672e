//! How far back the history of a service goes.

use std::sync::Arc;

use operation::context::{Context, Part, store_problem};
use operation::problem::Problem;
use operation::{Call, Form};
use schemas::clock::rfc3339;
use schemas::position::Seq;
use view_store::View;

use super::position::Position;
use crate::{Feeds, Source};

/// When the first change was recorded, in milliseconds since 1970; `None` if there is no change yet.
///
/// # Errors
/// When the feed cannot be read.
pub async fn history_from(ctx: &Context, source: &Source, view: &Arc<dyn View>, last: Seq) -> Result<Option<i64>, Problem> {
    if last == Seq(0) {
        return Ok(None);
    }
    let known = Feeds::of(ctx).completeness_cache(source, &**view);
    if let Some(first_ms) = known.first_ms.get() {
        return Ok(Some(*first_ms));
    }
    let block = Feeds::of(ctx).reader(source, Arc::clone(view)).block(Seq(1)).await.map_err(store_problem)?;
    Ok(Some(*known.first_ms.get_or_init(|| block.recorded_at(0))))
}

/// When the last change up to `upto` was recorded, RFC 3339 in UTC, for an Atom document; `None` in other forms, and if there is no change.
///
/// # Errors
/// When the feed cannot be read.
pub(crate) async fn last_recorded(call: &Call, source: &Source, at: &Position, upto: Seq) -> Result<Option<String>, Problem> {
    // With `asOf`, a cursor may be after the requested position.
    let upto = upto.min(at.last);
    if call.form != Form::Atom || upto == Seq(0) {
        return Ok(None);
    }
    let block = Feeds::of(&call.context).reader(source, Arc::clone(&at.view)).block(upto).await.map_err(store_problem)?;
    Ok(block.recorded_at_seq(upto).map(rfc3339))
}

/// The note for a service whose history is shorter than a week; `None` once it is longer.
#[must_use]
pub fn shallow_note(history_from_ms: Option<i64>, now_ms: i64) -> Option<&'static str> {
    const WEEK_MS: i64 = 7 * 86_400_000;
    match history_from_ms {
        None => Some("nothing is recorded yet"),
        Some(from) if now_ms - from < WEEK_MS => Some(
            "history is shallow: changes have been recorded for less than 7 days, and older records were imported in their current state",
        ),
        Some(_) => None,
    }
}
