//! The plan of a sync run: what it reads, in which order, and its current position.

use std::iter;

use jiff::ToSpan;
use jiff::civil::Date;
use serde::{Deserialize, Serialize};

use super::tie::Ties;
use super::{AWARD_STATES, DETAILS, TRANSACTIONS};
use crate::Window;

/// The earliest date that can be searched.
const FIRST_DAY: Date = Date::constant(2007, 10, 1);
/// How late contracts of the Department of Defense are published, in days.
const LATE_DAYS: i64 = 90;
/// How far back a full read goes by modification date, unless every run reads further. Older data is in files, not in searches.
const FULL_DAYS: u32 = 30;
/// How far back a full read looks for new awards.
const NET_DAYS: i64 = 120;
/// Agencies' reports are published within this many days. Details are requested once, after that time.
const SETTLED_DAYS: i64 = 5;
/// For how many days of awards a run requests details, and a full read.
const DETAIL_DAYS: i64 = 2;
const DETAIL_FULL_DAYS: i64 = 8;

/// The date by which a search selects.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub(super) enum By {
    /// The date on which the agency last changed the (newest) action.
    LastModified,
    /// The date of the base action.
    NewAwards,
}

/// Days that are selected by one kind of date.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub(super) struct Span {
    pub(super) by: By,
    pub(super) from: Date,
    pub(super) to: Date,
}

/// The two groups of award types that one request must not mix.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub(super) enum Group {
    Contracts,
    Idvs,
}

impl Group {
    pub(super) fn codes(self) -> &'static [&'static str] {
        match self {
            Self::Contracts => &["A", "B", "C", "D"],
            Self::Idvs => &["IDV_A", "IDV_B", "IDV_B_A", "IDV_B_B", "IDV_B_C", "IDV_C", "IDV_D", "IDV_E"],
        }
    }
}

/// The sectors of the industry codes. One more slice reads awards without any of them.
pub(super) const SECTORS: &[&str] = &[
    "11", "21", "22", "23", "31", "32", "33", "42", "44", "45", "48", "49", "51", "52", "53", "54", "55", "56", "61", "62", "71", "72",
    "81", "92",
];

/// The rows of a span that are read together: some of its days; or one day's rows of one award type; or of one type and sector.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub(super) struct Slice {
    pub(super) group: Group,
    pub(super) from: Date,
    pub(super) to: Date,
    /// The award type, by its index in the group.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(super) code: Option<usize>,
    /// The sector, by its index; the index after the last one selects all others.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(super) sector: Option<usize>,
}

impl Slice {
    fn all(group: Group, span: &Span) -> Self {
        Self { group, from: span.from, to: span.to, code: None, sector: None }
    }

    fn days(&self) -> i32 {
        (self.to - self.from).get_days().saturating_add(1)
    }

    /// Returns the first part of this slice, if it can be split. The other parts follow through [`Self::next`].
    pub(super) fn cut(self) -> Option<Self> {
        if self.from < self.to {
            return Some(Self { to: self.from.saturating_add((self.days() / 2 - 1).days()), ..self });
        }
        match (self.code, self.sector) {
            (None, _) => Some(Self { code: Some(0), ..self }),
            (Some(_), None) => Some(Self { sector: Some(0), ..self }),
            (Some(_), Some(_)) => None,
        }
    }

    /// Returns the next slice in the same span and group.
    fn next(self, span: &Span) -> Option<Self> {
        if let Some(sector) = self.sector.filter(|sector| *sector < SECTORS.len()) {
            return Some(Self { sector: Some(sector + 1), ..self });
        }
        if let Some(code) = self.code.filter(|code| code + 1 < self.group.codes().len()) {
            return Some(Self { code: Some(code + 1), sector: None, ..self });
        }
        let from = self.to.saturating_add(1.day());
        // After a success the next slice has twice as many days.
        let to = from.saturating_add((self.days().saturating_mul(2) - 1).days()).min(span.to);
        (self.to < span.to).then_some(Self { from, to, code: None, sector: None, ..self })
    }
}

/// The direction in which a slice is read.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub(super) enum Order {
    #[default]
    Asc,
    Desc,
}

/// The position within a slice.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default)]
pub(super) struct Rows {
    /// The page number to request, from 1.
    pub(super) page: u32,
    pub(super) order: Order,
    /// The counted number of rows, if there is a count.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(super) total: Option<u64>,
    /// How many rows were received.
    pub(super) seen: usize,
    /// How many of them are outside the requested days.
    pub(super) outside: usize,
    /// The first row of the page before, which must not repeat.
    #[serde(skip_serializing_if = "String::is_empty")]
    pub(super) first: String,
    /// The position for continuing beyond the last numbered page.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(super) after: Option<(u64, String)>,
    /// Distinguishes repeated rows from new ones.
    #[serde(skip_serializing_if = "Ties::is_empty")]
    pub(super) ties: Ties,
}

/// The next request.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub(super) enum Step {
    /// The number of rows in the slice.
    Count,
    /// A page of the slice.
    Rows(Rows),
    /// The details of the first of these awards; the rows continue after the last one.
    Award { ids: Vec<String>, rows: Rows },
    /// A page of the first award's actions.
    Actions { ids: Vec<String>, page: u32, rows: Rows },
}

/// A finest slice of which the upstream sent fewer rows than it counts.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub(super) struct Missed {
    pub(super) by: By,
    pub(super) slice: Slice,
}

/// The most slices that are read again at the end of a run. If rows are missing in more slices, the upstream is broken, and the run fails.
pub(super) const MISSED_MAX: usize = 20;

/// The position of a sync run.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub(super) struct Cursor {
    /// The current span and the spans that follow.
    pub(super) plan: Vec<Span>,
    pub(super) slice: Slice,
    pub(super) step: Step,
    /// Whether slices are counted before they are read.
    pub(super) counts: bool,
    /// The slices to read again when the plan is done.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub(super) missed: Vec<Missed>,
    /// Whether the plan is done and such a slice is being read again.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub(super) is_retry: bool,
}

impl Cursor {
    /// Returns the first cursor for a window. `window_days` is how far back each run reads; a full read goes back at least as far.
    pub(super) fn start(stream: &str, window: &Window, window_days: u32) -> Self {
        let back = |days: i64| window.to.saturating_sub(days.days());
        let from = window.from.unwrap_or_else(|| back(FULL_DAYS.max(window_days).into())).min(window.to);
        let span = |by, from: Date, to: Date| Span { by, from: from.max(FIRST_DAY), to };
        let with_late = |from: Date, to: Date| {
            let late_to = to.saturating_sub(LATE_DAYS.days()).min(from.saturating_sub(1.day()));
            [span(By::LastModified, from, to), span(By::LastModified, from.saturating_sub(LATE_DAYS.days()), late_to)]
        };
        let plan: Vec<Span> = match stream {
            DETAILS => {
                let days = if window.from.is_some() { DETAIL_DAYS } else { DETAIL_FULL_DAYS };
                with_late(back(SETTLED_DAYS + days - 1), back(SETTLED_DAYS)).into()
            }
            AWARD_STATES if window.from.is_none() => {
                with_late(from, window.to).into_iter().chain(iter::once(span(By::NewAwards, back(NET_DAYS), window.to))).collect()
            }
            _ => with_late(from, window.to).into(),
        };
        let mut plan: Vec<Span> = plan.into_iter().filter(|span| span.from <= span.to).collect();
        if plan.is_empty() {
            // Nothing can be searched before that date; the first possible day is requested, so that there is an answer.
            plan.push(Span { by: By::LastModified, from: FIRST_DAY, to: FIRST_DAY });
        }
        let slice = Slice::all(Group::Contracts, &plan[0]);
        let (missed, is_retry) = (Vec::new(), false);
        Self { plan, slice, step: Step::Count, counts: stream == TRANSACTIONS, missed, is_retry }.begun()
    }

    /// Moves to the first request of the slice.
    fn begun(self) -> Self {
        if self.counts { Self { step: Step::Count, ..self } } else { self.first_page(None) }
    }

    /// Moves to the first page of the slice.
    pub(super) fn first_page(self, total: Option<u64>) -> Self {
        Self { step: Step::Rows(Rows { page: 1, total, ..Rows::default() }), ..self }
    }

    /// Moves to the first part of the slice, if it can be split.
    pub(super) fn cut(self) -> Option<Self> {
        let slice = self.slice.cut()?;
        Some(Self { slice, ..self }.begun())
    }

    /// Moves to the next slice.
    pub(super) fn next_slice(mut self) -> Option<Self> {
        let span = self.plan.first().copied()?;
        if self.is_retry {
            return self.next_missed();
        }
        let slice = match (self.slice.next(&span), self.slice.group) {
            (Some(slice), _) => slice,
            (None, Group::Contracts) => Slice::all(Group::Idvs, &span),
            (None, Group::Idvs) => {
                self.plan.remove(0);
                match self.plan.first() {
                    Some(span) => Slice::all(Group::Contracts, span),
                    None => return self.next_missed(),
                }
            }
        };
        Some(Self { slice, ..self }.begun())
    }

    /// Notes that rows of this slice are missing, so that it is read again when the plan is done.
    pub(super) fn note_missed(&mut self) {
        let by = self.plan.first().map_or(By::LastModified, |span| span.by);
        self.missed.push(Missed { by, slice: self.slice });
    }

    /// Moves to the next slice to read again.
    fn next_missed(mut self) -> Option<Self> {
        if self.missed.is_empty() {
            return None;
        }
        let Missed { by, slice } = self.missed.remove(0);
        let plan = vec![Span { by, from: slice.from, to: slice.to }];
        Some(Self { plan, slice, is_retry: true, ..self }.begun())
    }

    /// Moves on after the first award: to its actions, or to the next award.
    pub(super) fn after_award(self, with_actions: bool) -> Option<Self> {
        match self.step {
            Step::Award { ids, rows } if with_actions && !ids.is_empty() => {
                Some(Self { step: Step::Actions { ids, page: 1, rows }, ..self })
            }
            _ => self.after_actions(),
        }
    }

    /// Moves on after the first award and its actions: to the next award, or to the next page.
    pub(super) fn after_actions(mut self) -> Option<Self> {
        let (mut ids, rows) = match std::mem::replace(&mut self.step, Step::Count) {
            Step::Award { ids, rows } | Step::Actions { ids, rows, .. } => (ids, rows),
            // An award arrived where none was requested.
            Step::Count | Step::Rows(_) => return self.next_slice(),
        };
        if !ids.is_empty() {
            ids.remove(0);
        }
        self.with_awards(ids, rows)
    }

    /// Moves to the first of these awards or, without any, to the next page; page 0 means there is none.
    pub(super) fn with_awards(self, ids: Vec<String>, rows: Rows) -> Option<Self> {
        match (ids.is_empty(), rows.page) {
            (false, _) => Some(Self { step: Step::Award { ids, rows }, ..self }),
            (true, 0) => self.next_slice(),
            (true, _) => Some(Self { step: Step::Rows(rows), ..self }),
        }
    }
}
