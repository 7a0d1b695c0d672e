//! The numbers of the changes that made the versions of a record.

use operation::context::{store_problem, stored};
use operation::problem::Problem;
use schemas::key;
use schemas::position::Seq;
use schemas::tables::Datum;
use schemas::views::records::Row;
use serde::de::IgnoredAny;
use view_store::Range;

use crate::Source;
use crate::position::Position;

/// The `seq` of the version of a record before a change of it; `None` if there is none.
pub(crate) async fn previous_version(source: &Source, at: &Position, id: &str, seq: Seq) -> Result<Option<Seq>, Problem> {
    Ok(seqs_of(source, at, id, seq.previous(), 1).await?.first().copied())
}

/// The `seq` of each version of a record up to `upto`, newest first, at most `limit`.
pub(crate) async fn seqs_of(source: &Source, at: &Position, id: &str, upto: Seq, limit: usize) -> Result<Vec<Seq>, Problem> {
    let current = at.view.get(source.records, &key![id]).await.map_err(store_problem)?;
    let Some(current) = current.map(|bytes| stored::<Row<IgnoredAny>>(source.records, &bytes)).transpose()? else {
        return Ok(Vec::new());
    };
    let mut seqs: Vec<Seq> = Some(current.seq).filter(|seq| *seq <= upto).into_iter().collect();
    if seqs.len() < limit {
        let from = Some(key![id, upto.stored()]);
        // The current version may be in the history as well.
        let range = Range { prefix: key![id], after: None, from, limit: limit + 1, reverse: false };
        let rows = at.view.range(source.history, range).await.map_err(store_problem)?;
        seqs.extend(rows.iter().filter_map(|(key, _)| match key.get(1) {
            Some(Datum::Int(seq)) => Seq::try_from(*seq).ok(),
            _ => None,
        }));
        seqs.dedup();
        seqs.truncate(limit);
    }
    Ok(seqs)
}
