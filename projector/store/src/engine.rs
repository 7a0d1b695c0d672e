//! Reads the engine's own view: positions of fact topics, and dropped facts.

use schemas::key;
use schemas::position::{LogOffset, PositionError, Seq};
use schemas::tables::Datum;
use schemas::topics::Topic;
use schemas::views::engine::DROPPED;

use crate::store::{Awaited, Checkpoint, Error, Range, View};

/// The number of rows that are read at once.
const PAGE_ROWS: usize = 1_000;

/// Returns the name of a partition among the positions of a checkpoint.
fn position_name(topic: &Topic, partition: u32) -> String {
    format!("{}/{partition}", topic.name)
}

impl Awaited {
    /// Awaits that a position reaches an offset.
    #[must_use]
    pub fn new(topic: &Topic, partition: u32, next: LogOffset) -> Self {
        Self { partition: position_name(topic, partition), next }
    }
}

impl Checkpoint {
    /// Returns the next offset of a partition, the first that this checkpoint does not cover.
    #[must_use]
    pub fn position(&self, topic: &Topic, partition: u32) -> LogOffset {
        self.positions.get(&position_name(topic, partition)).copied().unwrap_or_default()
    }

    /// Whether one of the positions is reached.
    #[must_use]
    pub fn has_reached_any(&self, awaited: &[Awaited]) -> bool {
        awaited.iter().any(|Awaited { partition, next }| self.positions.get(partition).copied().unwrap_or_default() >= *next)
    }

    /// Raises the position of a partition. A lower offset changes nothing.
    pub fn raise_position(&mut self, topic: &Topic, partition: u32, next: LogOffset) {
        self.raise(position_name(topic, partition), next);
    }

    /// Raises all positions to those of another checkpoint, where these are higher.
    pub fn raise_positions(&mut self, other: &Self) {
        for (position, next) in &other.positions {
            self.raise(position.clone(), *next);
        }
    }

    /// Returns the number of current records; `None` if it is not known, see [`Self::records`].
    #[must_use]
    pub fn current_records(&self) -> Option<u64> {
        if self.seq == Seq(0) { Some(0) } else { self.records }
    }

    fn raise(&mut self, position: String, next: LogOffset) {
        let known = self.positions.entry(position).or_default();
        *known = (*known).max(next);
    }
}

/// Returns the offsets from `from` to `to` (exclusive) whose records do not extend their chain and were dropped.
///
/// # Errors
/// When the store fails, or a row holds no valid offset.
pub async fn dropped(engine: &dyn View, topic: &Topic, partition: u32, from: LogOffset, to: LogOffset) -> Result<Vec<LogOffset>, Error> {
    let damaged = |error: PositionError| Error::Damaged { table: DROPPED.name.to_owned(), reason: error.to_string() };
    let prefix = key![topic.name, i64::from(partition)];
    let start = key![topic.name, i64::from(partition), i64::try_from(from).map_err(damaged)?];
    let (mut out, mut after) = (Vec::new(), None);
    loop {
        let range = Range { prefix: prefix.clone(), after: after.take(), from: Some(start.clone()), limit: PAGE_ROWS, reverse: false };
        let rows = engine.range(&DROPPED, range).await?;
        let full = rows.len() == PAGE_ROWS;
        for (key, _) in rows {
            if let Some(Datum::Int(offset)) = key.get(2) {
                let offset = LogOffset::try_from(*offset).map_err(damaged)?;
                if offset >= to {
                    return Ok(out);
                }
                out.push(offset);
            }
            after = Some(key);
        }
        if !full {
            return Ok(out);
        }
    }
}

/// Waits until a view has passed `end` of a partition. Cancel-safe.
///
/// # Errors
/// When the store fails.
pub async fn wait_past(view: &dyn View, topic: &Topic, partition: u32, end: LogOffset) -> Result<(), Error> {
    let awaited = [Awaited::new(topic, partition, end)];
    if view.checkpoint().await?.has_reached_any(&awaited) { Ok(()) } else { view.wait_for_any(&awaited).await }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Proves that a checkpoint of a version that did not count records reads as one whose count is not known, and is written as that version wrote it;
    /// that a count reads back; and that there are no records before the first change.
    #[test]
    fn older_checkpoints_have_no_count() {
        let json = r#"{"seq":7,"hash":"ab","offset":9,"recordedAtMs":1,"positions":{"t/0":3}}"#;
        let older: Checkpoint = serde_json::from_str(json).unwrap();
        assert_eq!((older.seq, older.current_records()), (Seq(7), None));
        assert_eq!(serde_json::to_string(&older).unwrap(), json);
        let counted = Checkpoint { records: Some(5), ..older };
        let read: Checkpoint = serde_json::from_str(&serde_json::to_string(&counted).unwrap()).unwrap();
        assert_eq!((read.current_records(), read), (Some(5), counted));
        assert_eq!(Checkpoint::default().current_records(), Some(0));
    }
}
