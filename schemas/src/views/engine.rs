//! The engine's own tables: the latest-version index (`heads`) of all fact topics, dropped facts, rejected records, and the newest runs.

use serde::{Deserialize, Serialize};

use crate::clock::day_of;
use crate::event::{FactKind, Head, Run};
use crate::position::LogOffset;
use crate::tables::{Table, TableKind, ValueKind, ViewDef, int, text};
use proofs::hash::Hash32;

/// How many days [`RunRow::days`] has at most.
pub const RUN_DAYS_MAX: usize = 90;
/// How many outages [`RunRow::outages`] has at most.
pub const OUTAGES_MAX: usize = 20;

/// The latest-version index: (topic, key) to [`HeadRow`] as packed bytes.
pub const HEADS: Table =
    Table { name: "heads", key: &[text("topic"), text("key")], partition_columns: 2, kind: TableKind::Derived, value: ValueKind::Bytes };
/// Facts that do not extend their key's chain and are ignored: (topic, partition, offset) to nothing.
pub const DROPPED: Table = Table {
    name: "dropped",
    key: &[text("topic"), int("partition"), int("offset")],
    partition_columns: 2,
    kind: TableKind::Derived,
    value: ValueKind::Bytes,
};
/// The rejected records: (stream, name) to nothing. Each has two names, [`rejected_bytes`] and [`rejected_reference`].
pub const REJECTS: Table = Table {
    name: "rejects",
    key: &[text("stream"), text("name")],
    partition_columns: 2,
    kind: TableKind::Derived,
    value: ValueKind::Bytes,
};
/// The newest run of each upstream: (upstream) to [`RunRow`] as JSON.
pub const RUNS: Table =
    Table { name: "runs", key: &[text("upstream")], partition_columns: 1, kind: TableKind::Derived, value: ValueKind::Text };

/// The engine's view. It is derived from facts, not from changes.
pub const VIEW: ViewDef = ViewDef { name: "engine", tables: &[&HEADS, &DROPPED, &REJECTS, &RUNS], hides: &[] };

/// Returns the name of a rejected record in [`REJECTS`] by its stored bytes, which are the same whenever the record is rejected again.
#[must_use]
pub fn rejected_bytes(raw: &[u8]) -> String {
    format!("raw/{}", Hash32::of(raw))
}

/// Returns the name of a rejected record in [`REJECTS`] by its reference, for streams whose references are the keys of their records.
#[must_use]
pub fn rejected_reference(reference: &str) -> String {
    format!("reference/{reference}")
}

/// The head of a key, and whether the record is gone.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct HeadRow {
    /// The head of the key.
    pub head: Head,
    /// Whether the record was withdrawn or superseded, so that the upstream no longer has it.
    pub gone: bool,
    /// When the newest fact of the key was observed: milliseconds since 1970.
    pub observed_at: i64,
    /// The offset after the newest fact of the key. Facts of the key before it are included in this row: applying them again, after a crash
    /// between rows and checkpoint, changes nothing.
    pub next: LogOffset,
}

impl HeadRow {
    /// Encodes the row as 89 bytes: gone (1), version (8, big endian), observed at (8), next (8), id (32), content hash (32).
    #[must_use]
    pub fn to_bytes(&self) -> Vec<u8> {
        let mut out = Vec::with_capacity(89);
        out.push(u8::from(self.gone));
        out.extend_from_slice(&self.head.version.to_be_bytes());
        out.extend_from_slice(&self.observed_at.to_be_bytes());
        out.extend_from_slice(&self.next.stored().to_be_bytes());
        out.extend_from_slice(&self.head.id.0);
        out.extend_from_slice(&self.head.content_hash.0);
        out
    }

    /// Decodes the bytes of [`Self::to_bytes`]; `None` for anything else.
    #[must_use]
    pub fn from_bytes(bytes: &[u8]) -> Option<Self> {
        let (gone, rest) = bytes.split_first()?;
        let (version, rest) = rest.split_first_chunk::<8>()?;
        let (observed_at, rest) = rest.split_first_chunk::<8>()?;
        let (next, rest) = rest.split_first_chunk::<8>()?;
        let (id, rest) = rest.split_first_chunk::<32>()?;
        let content: &[u8; 32] = rest.try_into().ok()?;
        Some(Self {
            gone: *gone != 0,
            observed_at: i64::from_be_bytes(*observed_at),
            next: LogOffset::try_from(i64::from_be_bytes(*next)).ok()?,
            head: Head { version: i64::from_be_bytes(*version), id: Hash32(*id), content_hash: Hash32(*content) },
        })
    }
}

/// The newest run event of an upstream, as stored in [`RUNS`].
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct RunRow {
    /// `run_started`, `run_marked`, `run_finished` or `run_failed`.
    pub kind: String,
    /// When that event was observed: milliseconds since 1970.
    pub at_ms: i64,
    /// The run of that event.
    pub run: Run,
    /// The last run that finished, if any.
    pub last_finished: Option<Run>,
    /// When the last finished run ended: milliseconds since 1970.
    pub last_finished_at_ms: i64,
    /// How many runs have finished.
    pub finished: i64,
    /// The offset after that event. Events before it are included in this row.
    #[serde(default)]
    pub next: LogOffset,
    /// The first day of the finished full reads, the earliest of them (`YYYY-MM-DD`); empty if they recorded none.
    #[serde(default)]
    pub full_from: String,
    /// How the runs of the last days ended, the oldest day first: at most [`RUN_DAYS_MAX`] days, without those on which none ended.
    #[serde(default)]
    pub days: Vec<RunDay>,
    /// The last times during which runs failed, the oldest first: at most [`OUTAGES_MAX`].
    #[serde(default)]
    pub outages: Vec<Outage>,
}

/// How the runs of a stream ended on one day in UTC.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct RunDay {
    /// The day, `YYYY-MM-DD`.
    pub day: String,
    /// How many runs finished.
    pub finished: u32,
    /// How many runs failed.
    pub failed: u32,
}

/// A time from the first run that failed until the first one after it that finished.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct Outage {
    /// When the first run failed: milliseconds since 1970.
    pub from_ms: i64,
    /// When a run finished again: milliseconds since 1970; 0 while none has.
    pub until_ms: i64,
}

impl RunRow {
    /// Counts a run that ended at a time in milliseconds since 1970. An event that is not the end of a run changes nothing.
    pub fn count_end(&mut self, kind: FactKind, at_ms: i64) {
        let (finished, failed) = match kind {
            FactKind::RunFinished => (1, 0),
            FactKind::RunFailed => (0, 1),
            _ => return,
        };
        let day = day_of(at_ms).to_string();
        // Processes whose clocks differ may observe an earlier day later.
        match self.days.iter_mut().rev().find(|known| known.day == day) {
            Some(known) => {
                known.finished = known.finished.saturating_add(finished);
                known.failed = known.failed.saturating_add(failed);
            }
            None => self.days.push(RunDay { day, finished, failed }),
        }
        self.days.sort_by(|one, other| one.day.cmp(&other.day));
        keep_last(&mut self.days, RUN_DAYS_MAX);
        let open = self.outages.last_mut().filter(|outage| outage.until_ms == 0);
        match (open, failed > 0) {
            (Some(outage), false) => outage.until_ms = at_ms,
            (None, true) => self.outages.push(Outage { from_ms: at_ms, until_ms: 0 }),
            _ => {}
        }
        keep_last(&mut self.outages, OUTAGES_MAX);
    }

    /// Whether the run has started and has neither finished nor failed.
    #[must_use]
    pub fn is_under_way(&self) -> bool {
        matches!(self.kind.as_str(), "run_started" | "run_marked")
    }
}

/// Removes the first items of a list that has too many.
fn keep_last<T>(items: &mut Vec<T>, items_max: usize) {
    items.drain(..items.len().saturating_sub(items_max));
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::clock::{DAY_MS, HOUR_MS};

    /// Proves that ends of runs are counted by day, that an outage lasts from the first failed run until one finishes, and that starts and checkpoints
    /// count nothing.
    #[test]
    fn ends_are_counted() {
        let mut row = RunRow::default();
        for (kind, at_ms) in [
            (FactKind::RunStarted, 0),
            (FactKind::RunFinished, HOUR_MS),
            (FactKind::RunFailed, 2 * HOUR_MS),
            (FactKind::RunMarked, 3 * HOUR_MS),
            (FactKind::RunFailed, DAY_MS),
            (FactKind::RunFinished, DAY_MS + HOUR_MS),
            (FactKind::RunFinished, 3 * DAY_MS),
            (FactKind::RunFailed, 4 * DAY_MS),
        ] {
            row.count_end(kind, at_ms);
        }
        let day = |day: &str, finished, failed| RunDay { day: day.to_owned(), finished, failed };
        let days = [day("1970-01-01", 1, 1), day("1970-01-02", 1, 1), day("1970-01-04", 1, 0), day("1970-01-05", 0, 1)];
        assert_eq!(row.days, days);
        let outages = [Outage { from_ms: 2 * HOUR_MS, until_ms: DAY_MS + HOUR_MS }, Outage { from_ms: 4 * DAY_MS, until_ms: 0 }];
        assert_eq!(row.outages, outages);
    }

    /// Proves that the days and outages of a row are bounded and that the newest remain, and that a row of an earlier version can be read.
    #[test]
    fn days_and_outages_are_bounded() {
        let mut row = RunRow::default();
        for day in 0..200 {
            row.count_end(FactKind::RunFailed, day * DAY_MS);
            row.count_end(FactKind::RunFinished, day * DAY_MS + 1);
        }
        assert_eq!((row.days.len(), row.days[0].day.as_str()), (RUN_DAYS_MAX, "1970-04-21"));
        assert_eq!((row.outages.len(), row.outages[0].from_ms), (OUTAGES_MAX, 180 * DAY_MS));
        let mut stored = serde_json::to_value(&row).unwrap();
        for name in ["days", "outages"] {
            stored.as_object_mut().unwrap().remove(name);
        }
        let read: RunRow = serde_json::from_value(stored).unwrap();
        assert_eq!((read.days.len(), read.outages.len(), read.kind), (0, 0, row.kind));
    }
}
