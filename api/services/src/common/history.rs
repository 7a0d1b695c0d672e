//! The operations over the recorded changes of a service: the feed of all changes, files of all records, the proof that the log of changes only grew,
//! and the health of the service.

use feed::{Source, changes};
use schemars::JsonSchema;
use schemas::details::ChangeRecord;
use serde::de::DeserializeOwned;

use super::exports::{self, RecordTable};
use super::health::{HealthFields, NoFields};
use super::{checkpoints, health};
use crate::registration::Bundle;

/// The operations of one service, whose records are `R`.
#[must_use]
pub fn operations<R: ChangeRecord + JsonSchema + DeserializeOwned + 'static>(source: Source) -> Bundle {
    operations_with_health::<R, NoFields>(source)
}

/// The operations of one service, whose records are `R` and whose health says more than that of every service.
#[must_use]
pub fn operations_with_health<R: ChangeRecord + JsonSchema + DeserializeOwned + 'static, F: HealthFields>(source: Source) -> Bundle {
    let table = RecordTable::of::<R>(source);
    let all = vec![
        changes::operation::<R>(source, changes::example()),
        exports::operation(table.clone()),
        checkpoints::operation(source),
        health::operation::<F>(source),
    ];
    Bundle::of_changes(all, source, table)
}
