//! The operations over the recorded changes of a service: one record and its versions, the feed of all changes, files of all records, the proof that
//! the log of changes only grew, and the health of the service.

use feed::{Source, changes, stream};

use super::exports::{self, RecordTable};
use super::health;
use super::health::{HealthFields, NoFields};
use super::numbers::FindIds;
use super::records::{self, Addressed};
use crate::registration::Bundle;
use transparency::checkpoints;

/// The operations of one service, whose records `R` are found by numbers that people know.
#[must_use]
pub fn with_numbers<R: Addressed>(source: Source, find_ids: FindIds) -> Bundle {
    with_numbers_and_health::<R, NoFields>(source, find_ids)
}

/// The operations of one service, whose records `R` are found by numbers that people know, and whose health says more than that of every service.
#[must_use]
pub fn with_numbers_and_health<R: Addressed, F: HealthFields>(source: Source, find_ids: FindIds) -> Bundle {
    let table = RecordTable::of::<R>(source);
    let mut all = records::operations::<R>(source, find_ids);
    all.extend([
        changes::operation::<R>(source, changes::example()),
        stream::operation::<R>(source),
        exports::operation(table.clone()),
        checkpoints::operation(source),
        health::operation::<F>(source),
    ]);
    Bundle::of_changes(all, source, table)
}
