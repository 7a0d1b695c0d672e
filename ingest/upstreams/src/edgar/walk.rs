//! The part that `edgar.ownership` and `edgar.submissions` share: the index of each business day names filings, and those that are not
//! known yet are requested one by one.
//!
//! The cursor holds at most [`PENDING_MAX`] of them. When they are done, the index of the same day is read again from that position.

use std::collections::BTreeSet;

use jiff::ToSpan;
use jiff::civil::Date;
use serde::{Deserialize, Serialize};

use super::{business_day, is_missing, master, next_business_day, through};
use crate::{Answer, Page, Stream, UpstreamError, json, xml};

/// How many pending requests a cursor may hold.
pub(super) const PENDING_MAX: usize = 100;

/// The position of a sync run.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub(super) struct Cursor {
    /// The first day.
    pub(super) from: Date,
    /// The day whose filings are read.
    pub(super) day: Date,
    /// The last day to read.
    to: Date,
    /// The last complete day.
    through: Date,
    /// The last pair of the day's index that was taken; empty when the whole index was taken.
    after: String,
    /// Whether the pairs (`accession/cik`) were just listed, so that it is still unknown which of them are new.
    fresh: bool,
    /// The pairs to request now.
    pub(super) pending: Vec<String>,
}

impl Cursor {
    pub(super) fn new(from: Date, to: Date) -> Self {
        let from = business_day(from, true);
        let through = from.saturating_sub(1.day());
        Self { from, day: from, to, through, after: String::new(), fresh: false, pending: Vec::new() }
    }

    /// The pairs that were just listed.
    pub(super) fn listed(&self) -> impl Iterator<Item = &str> {
        self.pending.iter().filter(|_| self.fresh).map(String::as_str)
    }

    /// Removes the known pairs from the listed ones, and keeps as many as a cursor may hold.
    pub(super) fn narrow(mut self, is_known: impl Fn(&str) -> bool, one_for: impl Fn(&str) -> String) -> Option<Self> {
        if !self.fresh {
            return Some(self);
        }
        self.fresh = false;
        let mut requested = BTreeSet::new();
        for pair in std::mem::take(&mut self.pending) {
            if is_known(&pair) {
                continue;
            }
            requested.insert(one_for(&pair));
            if requested.len() == PENDING_MAX {
                self.after = pair;
                break;
            }
        }
        self.pending = requested.into_iter().collect();
        if self.pending.is_empty() { self.after_day() } else { Some(self) }
    }

    /// Determines the cursor after the first pending request.
    pub(super) fn advance(mut self) -> Option<Self> {
        if !self.pending.is_empty() {
            self.pending.remove(0);
        }
        if self.pending.is_empty() { self.after_day() } else { Some(self) }
    }

    /// Determines the cursor when nothing is pending: the same index, or that of the next day.
    fn after_day(mut self) -> Option<Self> {
        self.fresh = false;
        if self.after.is_empty() {
            self.day = Some(next_business_day(self.day)).filter(|next| *next > self.day && *next <= self.to)?;
        }
        Some(self)
    }

    /// Builds the page of an index, which has no records and only names the next requests.
    pub(super) fn list(
        mut self,
        stream: &Stream,
        answer: &Answer,
        today: Date,
        one_a_filing: bool,
        is_wanted: impl Fn(&master::Row<'_>) -> bool,
    ) -> Result<Page, UpstreamError> {
        if !is_missing(stream.name, answer)? {
            let text = xml::decoded(&answer.body);
            let rows = master::read(stream.name, &text, today, |row| is_wanted(row))?.rows;
            let pairs: BTreeSet<String> = rows.into_iter().map(|row| format!("{}/{}", row.accession, row.cik)).collect();
            let mut pairs: Vec<String> = pairs.into_iter().collect();
            if one_a_filing {
                pairs.dedup_by(|pair, before| pair.split('/').next() == before.split('/').next());
            }
            pairs.retain(|pair| *pair > self.after);
            self.pending = pairs;
            // This counts only at the end of the run, when nothing is pending.
            self.through = through(self.day, self.to);
        }
        self.after.clear();
        let through = Some(self.through);
        let next = if self.pending.is_empty() { self.after_day() } else { Some(Self { fresh: true, ..self }) };
        // Rows that cannot be parsed are rejected by the stream `edgar.index`.
        Ok(Page { next: next.map(json::write_cursor), through, ..Page::default() })
    }
}
