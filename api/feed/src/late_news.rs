//! The note of a page without changes that leaves out late news: an empty page must not look as if nothing that matches was recorded.

use operation::problem::Problem;
use schemas::position::Seq;

use super::filter::{Element, Field, Filter, includes_backfill};
use super::select::{Direction, Selection};
use super::unknown::Recorded;

/// What such a page says.
const NOTE: &str =
    "changes that match are left out because they were recorded long after their own day; `includeBackfill=true` includes them";

/// The note of a page that has no changes above `after` and up to `upto`; `None` if the filter includes late news or cannot, or if no late news that matches is
/// found. The search reads a bounded number of changes, as that for a page does.
///
/// # Errors
/// When rows cannot be read.
pub(crate) async fn late_news_note<F: Filter>(
    recorded: &Recorded<'_>,
    filter: &F,
    after: Seq,
    upto: Seq,
) -> Result<Option<String>, Problem> {
    if includes_backfill(filter) || !F::FIELDS.iter().any(Field::is_for_backfill) {
        return Ok(None);
    }
    let Recorded { ctx, source, tables, at } = *recorded;
    let selection = Selection::new(ctx, source, tables, at, vec![filter.criteria().and(Element::is_backfill)]).await?;
    let found = selection.find(after, upto, 1, Direction::Backwards).await?;
    Ok((!found.changes.is_empty()).then(|| NOTE.to_owned()))
}
