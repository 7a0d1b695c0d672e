//! What `edgar.ownership` and `edgar.submissions` share: the index of each business day names filings, and what is not known of them yet is
//! asked for one by one.
//!
//! The cursor holds at most [`PENDING_MAX`] of them. When they are done, the index of the same day is read again from there on.

use std::collections::BTreeSet;

use jiff::ToSpan;
use jiff::civil::Date;
use serde::{Deserialize, Serialize};

use super::{business_day, is_missing, master, next_business_day, through};
use crate::{Answer, Door, Page, UpstreamError, json, xml};

/// What a cursor may hold that is to be asked for.
pub(super) const PENDING_MAX: usize = 100;

/// Where a run is.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub(super) struct Cursor {
    /// The first day.
    pub(super) from: Date,
    /// The day whose filings are read.
    pub(super) day: Date,
    /// The last day to read.
    to: Date,
    /// The last day that is complete.
    through: Date,
    /// The pair up to which the day's index has been taken; empty when all of it has.
    after: String,
    /// The pairs (`accession/cik`) were just listed: which of them are known is not yet looked up.
    fresh: bool,
    /// What is to be asked for now.
    pub(super) pending: Vec<String>,
}

impl Cursor {
    pub(super) fn new(from: Date, to: Date) -> Self {
        let from = business_day(from, true);
        let through = from.saturating_sub(1.day());
        Self { from, day: from, to, through, after: String::new(), fresh: false, pending: Vec::new() }
    }

    /// The pairs just listed.
    pub(super) fn listed(&self) -> impl Iterator<Item = &str> {
        self.pending.iter().filter(|_| self.fresh).map(String::as_str)
    }

    /// What was just listed, without what is known: as much as a cursor may hold.
    pub(super) fn narrow(mut self, is_known: impl Fn(&str) -> bool, one_for: impl Fn(&str) -> String) -> Option<Self> {
        if !self.fresh {
            return Some(self);
        }
        self.fresh = false;
        let mut asked = BTreeSet::new();
        for pair in std::mem::take(&mut self.pending) {
            if is_known(&pair) {
                continue;
            }
            asked.insert(one_for(&pair));
            if asked.len() == PENDING_MAX {
                self.after = pair;
                break;
            }
        }
        self.pending = asked.into_iter().collect();
        if self.pending.is_empty() { self.after_day() } else { Some(self) }
    }

    /// Where to go on after what was asked for first.
    pub(super) fn advance(mut self) -> Option<Self> {
        if !self.pending.is_empty() {
            self.pending.remove(0);
        }
        if self.pending.is_empty() { self.after_day() } else { Some(self) }
    }

    /// Where to go on when nothing is pending: at the same index, or the next day's.
    fn after_day(mut self) -> Option<Self> {
        self.fresh = false;
        if self.after.is_empty() {
            self.day = Some(next_business_day(self.day)).filter(|next| *next > self.day && *next <= self.to)?;
        }
        Some(self)
    }

    /// The page of an index: nothing but what to ask for next.
    pub(super) fn list(
        mut self,
        door: &Door,
        answer: &Answer,
        today: Date,
        one_a_filing: bool,
        is_wanted: impl Fn(&master::Row<'_>) -> bool,
    ) -> Result<Page, UpstreamError> {
        if !is_missing(door.name, answer)? {
            let text = xml::decoded(&answer.body);
            let rows = master::read(door.name, &text, today, |row| is_wanted(row))?.rows;
            let pairs: BTreeSet<String> = rows.into_iter().map(|row| format!("{}/{}", row.accession, row.cik)).collect();
            let mut pairs: Vec<String> = pairs.into_iter().collect();
            if one_a_filing {
                pairs.dedup_by(|pair, before| pair.split('/').next() == before.split('/').next());
            }
            pairs.retain(|pair| *pair > self.after);
            self.pending = pairs;
            // Counts only when the run ends, and then all that is pending is done.
            self.through = through(self.day, self.to);
        }
        self.after.clear();
        let through = Some(self.through);
        let next = if self.pending.is_empty() { self.after_day() } else { Some(Self { fresh: true, ..self }) };
        // Rows that cannot be read are put aside by the door that reads indexes for their own sake.
        Ok(Page { next: next.map(json::write_cursor), through, ..Page::default() })
    }
}
