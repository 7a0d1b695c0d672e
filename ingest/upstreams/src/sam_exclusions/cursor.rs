//! Where a sync run is.

use jiff::civil::Date;
use serde::{Deserialize, Serialize};

use crate::Incomplete;

/// A file that has less than this percentage of the rows of the last one is doubted.
const ROWS_PERCENT_MIN: u64 = 95;
/// Two doubted files whose numbers of rows differ by at most this percentage confirm each other.
const ROWS_PERCENT_EQUAL: u64 = 5;

/// The position within a file, and the sizes of the files before.
#[derive(Clone, Debug, Default, Serialize, Deserialize)]
#[serde(default)]
pub(super) struct Cursor {
    /// The day of the run, which names the file on disk.
    pub(super) day: Option<Date>,
    /// How many rows have been read.
    pub(super) row: u64,
    /// Whether the file has been read.
    pub(super) is_read: bool,
    /// The rows of the last file that was not doubted; 0 if there is none.
    pub(super) rows: u64,
    /// The rows of the last file, if it was doubted.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(super) doubted: Option<u64>,
}

impl Cursor {
    /// The cursor after a file with so many rows, and what an operator should know about the file.
    pub(super) fn finished(self, rows: u64) -> (Self, Option<Incomplete>) {
        let is_short = rows.saturating_mul(100) < self.rows.saturating_mul(ROWS_PERCENT_MIN);
        let is_confirmed = self.doubted.is_some_and(|before| {
            before.abs_diff(rows).saturating_mul(100) <= before.max(rows).saturating_mul(ROWS_PERCENT_EQUAL) && rows > 0
        });
        let read = Self { row: 0, is_read: true, ..self };
        if !is_short || is_confirmed {
            return (Self { rows, doubted: None, ..read }, None);
        }
        let what = format!("the file has {rows} rows, more than 5 % fewer than the {} of the last one: none is withdrawn", read.rows);
        (Self { doubted: Some(rows), ..read }, Some(Incomplete { what, from: None }))
    }
}
