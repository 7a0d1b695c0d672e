//! The last complete sync run of a stream that a service reads, as of any position.

use feed::position::Position;
use operation::context::{seq_column, store_problem, stored};
use operation::problem::Problem;
use schemas::change::Through;
use schemas::key;
use schemas::position::Seq;
use schemas::views::records::RecordTables;
use view_store::Range;

/// Returns the last complete run of a stream at a position; `None` before the first.
///
/// # Errors
/// When rows cannot be read.
pub async fn last_run(at: &Position, tables: &RecordTables, stream: &str) -> Result<Option<Through>, Problem> {
    let range = Range { prefix: key![stream], after: None, from: Some(key![stream, at.seq]), limit: 1, reverse: false };
    let rows = at.view.range(tables.through, range).await.map_err(store_problem)?;
    let Some((key, value)) = rows.first() else { return Ok(None) };
    let seq: Seq = seq_column(tables.through, key, 1)?;
    if seq > at.seq { Ok(None) } else { stored(tables.through, value).map(Some) }
}
