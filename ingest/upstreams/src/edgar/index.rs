//! `edgar.index`: the index of each business day of the window and, once a week before them, the index of the quarter, which repairs gaps.
//!
//! A quarterly index has several hundred thousand rows. It is requested several times, and each pass takes the filings whose number belongs
//! to it. So only a part is in memory at once, and rows that are added meanwhile shift nothing.

use jiff::ToSpan;
use jiff::civil::Date;
use serde::{Deserialize, Serialize};

use super::{business_day, file, filing, is_missing, master, next_business_day, observed, through};
use crate::drift::FieldCounts;
use crate::{Answer, Page, Request, Stream, UpstreamError, drift, json, xml};

/// In how many passes a quarterly index is read.
const PASSES: u8 = 8;
/// The index of the previous quarter is read too if the quarter ended within this many days.
const HEALED_DAYS: i64 = 14;

#[derive(Clone, Copy, Debug, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
enum At {
    Quarter {
        year: i16,
        quarter: i8,
        #[serde(rename = "turn")]
        pass: u8,
    },
    Day(Date),
}

/// The position of a sync run.
#[derive(Clone, Copy, Debug, Serialize, Deserialize)]
pub(super) struct Cursor {
    at: At,
    /// The first and the last day to read.
    from: Date,
    to: Date,
    /// The last complete day.
    through: Date,
}

impl Cursor {
    pub(super) fn new(from: Date, to: Date, heals: bool) -> Self {
        let from = business_day(from, true);
        let (year, quarter) = master::quarter_of(to.saturating_sub(HEALED_DAYS.days()));
        let at = if heals { At::Quarter { year, quarter, pass: 0 } } else { At::Day(from) };
        Self { at, from, to, through: from.saturating_sub(1.day()) }
    }

    pub(super) fn request(&self) -> Request {
        match self.at {
            At::Quarter { year, quarter, .. } => file(format!("/Archives/edgar/full-index/{year}/QTR{quarter}/master.idx")),
            At::Day(day) => master::daily(day),
        }
    }

    /// Determines the next cursor. A quarter without an index is skipped at once.
    fn next(self, is_missing: bool) -> Option<Self> {
        let at = match self.at {
            At::Quarter { year, quarter, pass } if pass + 1 < PASSES && !is_missing => At::Quarter { year, quarter, pass: pass + 1 },
            At::Quarter { year, quarter, .. } if (year, quarter) < master::quarter_of(self.to) => {
                let (year, quarter) = if quarter < 4 { (year, quarter + 1) } else { (year + 1, 1) };
                At::Quarter { year, quarter, pass: 0 }
            }
            At::Quarter { .. } => At::Day(self.from),
            At::Day(day) => At::Day(Some(next_business_day(day)).filter(|next| *next > day && *next <= self.to)?),
        };
        Some(Self { at, ..self })
    }
}

pub(super) fn map(stream: &Stream, mut cursor: Cursor, answer: &Answer, today: Date) -> Result<Page, UpstreamError> {
    let is_missing = is_missing(stream.name, answer)?;
    let (mut observations, mut rejects, mut warnings, mut fields) = (Vec::new(), Vec::new(), Vec::new(), FieldCounts::default());
    if !is_missing {
        let text = xml::decoded(&answer.body);
        let (mut outside, mut total) = (0, 0);
        let rows = master::read(stream.name, &text, today, |row| match cursor.at {
            At::Quarter { pass, .. } => pass_of(row.accession) == pass,
            At::Day(day) => {
                total += 1;
                outside += usize::from(row.filed != day);
                true
            }
        })?;
        warnings.extend(drift::outside(stream.name, "day", outside, total)?);
        rows.rows.iter().for_each(|row| fields.count([("Company Name", !row.company.is_empty())]));
        let filings = rows.rows.into_iter().map(|row| filing(stream, row.accession, row.cik, row.form, row.company, row.filed));
        observations.extend(filings.map(|fact| observed(stream, fact)));
        // Rows that cannot be parsed belong to no pass.
        if !matches!(cursor.at, At::Quarter { pass: 1.., .. }) {
            rejects = rows.rejects;
        }
        if let At::Day(day) = cursor.at {
            cursor.through = through(day, cursor.to);
        }
    } else if let At::Quarter { year, quarter, .. } = cursor.at {
        warnings.push(format!("there is no index of quarter {quarter} of {year}"));
    }
    let next = cursor.next(is_missing).map(json::write_cursor);
    Ok(Page { observations, rejects, next, through: Some(cursor.through), warnings, fields, ..Page::default() })
}

/// Returns the pass of a filing. Filing numbers count up, so passes have similar sizes.
fn pass_of(accession: &str) -> u8 {
    let last = accession.bytes().rev().take(2).zip([1, 10]).map(|(digit, weight)| (digit - b'0') * weight).sum::<u8>();
    last % PASSES
}
