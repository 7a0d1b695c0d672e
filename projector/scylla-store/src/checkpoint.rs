//! Checkpoints as rows: one for the changes, and one for each position, all of a generation in one partition.
//!
//! Each row is written with its seq or offset as its timestamp. A write that is late or repeated thus does not overwrite a later one: a
//! checkpoint never goes back, and this needs no lock.

use schemas::position::{LogOffset, PositionError, Seq};
use scylla::statement::batch::{Batch, BatchType};
use serde::{Deserialize, Serialize};
use view_store::store::{Checkpoint, Error};

use crate::session::{Cell, Cql, Failure, text_of};

/// The name of the row for the changes. Names of positions contain a `/`, so that none is equal.
const CHANGES: &str = "changes";

/// The content of the row for the changes, as JSON.
#[derive(Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
struct Changes {
    seq: Seq,
    hash: String,
    offset: LogOffset,
    recorded_at_ms: i64,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    records: Option<u64>,
}

/// Returns the stored checkpoint of a generation; the default if there is none.
pub(crate) async fn read(cql: &Cql, view: &str, generation: u64) -> Result<Checkpoint, Error> {
    let select = format!("SELECT name, value FROM {}.checkpoints WHERE view_name = ? AND generation = ?", cql.keyspace());
    let mut checkpoint = Checkpoint::default();
    for row in cql.rows(&select, &[Cell::Text(view), number(generation)?], usize::MAX).await? {
        let mut columns = row.columns.into_iter();
        let (name, value) = (columns.next().and_then(text_of), columns.next().and_then(text_of));
        let (Some(name), Some(value)) = (name, value) else { return Err(damaged("a row is incomplete")) };
        if name == CHANGES {
            let changes: Changes = serde_json::from_str(&value).map_err(|error| damaged(&error.to_string()))?;
            let Changes { seq, hash, offset, recorded_at_ms, records } = changes;
            checkpoint = Checkpoint { seq, hash, offset, recorded_at_ms, positions: checkpoint.positions, records };
        } else {
            let offset = value.parse().map_err(|_| damaged(&format!("the position of {name} is \"{value}\"")))?;
            checkpoint.positions.insert(name, offset);
        }
    }
    Ok(checkpoint)
}

/// Writes the differences from the checkpoint that is known to be stored.
pub(crate) async fn write(cql: &Cql, view: &str, generation: u64, known: &Checkpoint, new: &Checkpoint) -> Result<(), Failure> {
    let too_large = |error: PositionError| Failure::Other(damaged(&error.to_string()));
    let mut rows: Vec<(&str, String, i64)> = Vec::new();
    let Checkpoint { seq, hash, offset, recorded_at_ms, positions, records } = new;
    if (seq, hash, offset, recorded_at_ms, records) != (&known.seq, &known.hash, &known.offset, &known.recorded_at_ms, &known.records) {
        let changes = Changes { seq: *seq, hash: hash.clone(), offset: *offset, recorded_at_ms: *recorded_at_ms, records: *records };
        let json = serde_json::to_string(&changes).map_err(|error| Failure::Other(damaged(&error.to_string())))?;
        rows.push((CHANGES, json, stamp(i64::try_from(*seq).map_err(too_large)?)));
    }
    for (name, next) in positions.iter().filter(|(name, next)| known.positions.get(*name) != Some(next)) {
        rows.push((name, next.to_string(), stamp(i64::try_from(*next).map_err(too_large)?)));
    }
    if rows.is_empty() {
        return Ok(());
    }
    let insert =
        format!("INSERT INTO {}.checkpoints (view_name, generation, name, value) VALUES (?, ?, ?, ?) USING TIMESTAMP ?", cql.keyspace());
    let prepared = cql.prepared(&insert).await?;
    let mut batch = Batch::new(BatchType::Unlogged);
    batch.set_is_idempotent(true);
    let mut values = Vec::with_capacity(rows.len());
    for (name, value, at) in &rows {
        batch.append_statement(prepared.clone());
        values.push(vec![
            Cell::Text(view),
            number(generation).map_err(Failure::Other)?,
            Cell::Text(name),
            Cell::Text(value),
            Cell::Int(*at),
        ]);
    }
    cql.batch(&batch, values).await
}

/// Deletes the checkpoint of a dropped generation.
pub(crate) async fn forget(cql: &Cql, view: &str, generation: u64) -> Result<(), Failure> {
    let delete = format!("DELETE FROM {}.checkpoints WHERE view_name = ? AND generation = ?", cql.keyspace());
    cql.execute(&delete, &[Cell::Text(view), number(generation).map_err(Failure::Other)?]).await.map(|_| ())
}

/// Whether a checkpoint is ahead of another, in seq or in any position.
pub(crate) fn is_past(now: &Checkpoint, seen: &Checkpoint) -> bool {
    now.seq > seen.seq || now.positions.iter().any(|(partition, offset)| seen.positions.get(partition).is_none_or(|before| offset > before))
}

/// Raises `known` to what is higher in `stored`, and returns whether anything was.
pub(crate) fn raise(known: &mut Checkpoint, stored: &Checkpoint) -> bool {
    let before = known.clone();
    let mut positions = std::mem::take(&mut known.positions);
    for (name, next) in &stored.positions {
        let position = positions.entry(name.clone()).or_default();
        *position = (*position).max(*next);
    }
    if stored.seq >= known.seq {
        *known = stored.clone();
    }
    known.positions = positions;
    *known != before
}

/// Returns a write timestamp: CQL requires more than 0.
pub(crate) fn stamp(at: i64) -> i64 {
    at.max(1)
}

/// Returns a generation as a bound value.
pub(crate) fn number(generation: u64) -> Result<Cell<'static>, Error> {
    i64::try_from(generation).map(Cell::Int).map_err(|_| damaged(&format!("{generation} is too large for a column")))
}

fn damaged(reason: &str) -> Error {
    Error::Damaged { table: "checkpoints".to_owned(), reason: reason.to_owned() }
}
