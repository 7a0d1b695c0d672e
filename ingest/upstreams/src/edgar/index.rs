//! `edgar.index`: the index of each business day of the window, and once a week before them that of the quarter, which heals gaps.
//!
//! A quarter's index holds several hundred thousand rows. It is asked for in turns, each of which takes those filings whose number
//! belongs to it, so that no more than a part is held at once and rows that come meanwhile move nothing.

use jiff::ToSpan;
use jiff::civil::Date;
use serde::{Deserialize, Serialize};

use super::{business_day, file, filing, is_missing, master, next_business_day, observed, through};
use crate::{Answer, Door, Page, Request, UpstreamError, drift, json, xml};

/// In how many turns a quarter is read.
const TURNS: u8 = 8;
/// The quarters of so many days before the last are read, so that one that just ended is.
const HEALED_DAYS: i64 = 14;

#[derive(Clone, Copy, Debug, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
enum At {
    Quarter { year: i16, quarter: i8, turn: u8 },
    Day(Date),
}

/// Where a run is.
#[derive(Clone, Copy, Debug, Serialize, Deserialize)]
pub(super) struct Cursor {
    at: At,
    /// The first day and the last one to read.
    from: Date,
    to: Date,
    /// The last day that is complete.
    through: Date,
}

impl Cursor {
    pub(super) fn new(from: Date, to: Date, heals: bool) -> Self {
        let from = business_day(from, true);
        let (year, quarter) = master::quarter_of(to.saturating_sub(HEALED_DAYS.days()));
        let at = if heals { At::Quarter { year, quarter, turn: 0 } } else { At::Day(from) };
        Self { at, from, to, through: from.saturating_sub(1.day()) }
    }

    pub(super) fn request(&self) -> Request {
        match self.at {
            At::Quarter { year, quarter, .. } => file(format!("/Archives/edgar/full-index/{year}/QTR{quarter}/master.idx")),
            At::Day(day) => master::daily(day),
        }
    }

    /// Where to go on. A quarter without an index is left at once.
    fn next(self, is_missing: bool) -> Option<Self> {
        let at = match self.at {
            At::Quarter { year, quarter, turn } if turn + 1 < TURNS && !is_missing => At::Quarter { year, quarter, turn: turn + 1 },
            At::Quarter { year, quarter, .. } if (year, quarter) < master::quarter_of(self.to) => {
                let (year, quarter) = if quarter < 4 { (year, quarter + 1) } else { (year + 1, 1) };
                At::Quarter { year, quarter, turn: 0 }
            }
            At::Quarter { .. } => At::Day(self.from),
            At::Day(day) => At::Day(Some(next_business_day(day)).filter(|next| *next > day && *next <= self.to)?),
        };
        Some(Self { at, ..self })
    }
}

pub(super) fn map(door: &Door, mut cursor: Cursor, answer: &Answer, today: Date) -> Result<Page, UpstreamError> {
    let is_missing = is_missing(door.name, answer)?;
    let (mut observations, mut rejects, mut warnings) = (Vec::new(), Vec::new(), Vec::new());
    if !is_missing {
        let text = xml::decoded(&answer.body);
        let (mut outside, mut total) = (0, 0);
        let rows = master::read(door.name, &text, today, |row| match cursor.at {
            At::Quarter { turn, .. } => turn_of(row.accession) == turn,
            At::Day(day) => {
                total += 1;
                outside += usize::from(row.filed != day);
                true
            }
        })?;
        warnings.extend(drift::outside(door.name, "day", outside, total)?);
        let filings = rows.rows.into_iter().map(|row| filing(door, row.accession, row.cik, row.form, row.company, row.filed));
        observations.extend(filings.map(|fact| observed(door, fact)));
        // What cannot be read belongs to no turn.
        if !matches!(cursor.at, At::Quarter { turn: 1.., .. }) {
            rejects = rows.rejects;
        }
        if let At::Day(day) = cursor.at {
            cursor.through = through(day, cursor.to);
        }
    } else if let At::Quarter { year, quarter, .. } = cursor.at {
        warnings.push(format!("there is no index of quarter {quarter} of {year}"));
    }
    let next = cursor.next(is_missing).map(json::write_cursor);
    Ok(Page { observations, rejects, next, through: Some(cursor.through), warnings })
}

/// The turn that a filing belongs to: its number counts up, so that turns are alike in size.
fn turn_of(accession: &str) -> u8 {
    let last = accession.bytes().rev().take(2).zip([1, 10]).map(|(digit, weight)| (digit - b'0') * weight).sum::<u8>();
    last % TURNS
}
