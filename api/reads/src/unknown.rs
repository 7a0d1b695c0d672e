//! What the answers about a saved filter or a watch say about values that nothing recorded has: such a filter finds nothing until something does.

use feed::filter::Filter as _;
use feed::notes::notes;
use feed::position::position;
use feed::unknown::{Recorded, unknown_values};
use feed::watchable::WatchableFeed;
use operation::Call;
use operation::problem::Problem;

/// The note about a filter that is saved or watched; `None` if there is nothing to say.
///
/// # Errors
/// When rows cannot be read.
pub(crate) async fn note_of<S: WatchableFeed>(call: &Call, filter: &S::Filter) -> Result<Option<String>, Problem> {
    let (ctx, feed) = (&call.context, S::FEED);
    let at = position(ctx, &feed.source, None).await?;
    let after = notes(call, &feed.source, &at).await?.after;
    let mut notes: Vec<String> = filter.clone().look_up(ctx, &at, after).await?.into_iter().collect();
    let recorded = Recorded { ctx, source: &feed.source, tables: feed.tables, at: &at };
    notes.extend(unknown_values(call, &recorded, filter, true).await?);
    Ok(Some(notes.join("; ")).filter(|note| !note.is_empty()))
}
