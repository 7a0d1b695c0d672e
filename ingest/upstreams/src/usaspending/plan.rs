//! What a run reads, in which order, and where it stands.

use std::iter;

use jiff::ToSpan;
use jiff::civil::Date;
use serde::{Deserialize, Serialize};

use super::tie::Ties;
use super::{AWARD_STATES, DETAILS, TRANSACTIONS};
use crate::Window;

/// Nothing older can be searched.
const FIRST_DAY: Date = Date::constant(2007, 10, 1);
/// How late contracts of the Department of Defense are published.
const LATE_DAYS: i64 = 90;
/// How far back a full run reads by day of modification, unless every run reads further. What is older stands in files, not in searches.
const FULL_DAYS: u32 = 30;
/// How far back a full run looks for new awards.
const NET_DAYS: i64 = 120;
/// Within so many days what agencies report is published. Details are asked for once, when that has passed.
const SETTLED_DAYS: i64 = 5;
/// How many days' awards are asked for their details in a run, and in a full one.
const DETAIL_DAYS: i64 = 2;
const DETAIL_FULL_DAYS: i64 = 8;

/// Which date a search goes by.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub(super) enum By {
    /// When the agency last touched the (newest) action.
    LastModified,
    /// The day of the base action.
    NewAwards,
}

/// Days that are read by one date.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub(super) struct Span {
    pub(super) by: By,
    pub(super) from: Date,
    pub(super) to: Date,
}

/// The two groups of award types that no request may mix.
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

/// The sectors of the industry codes. One more slice takes what has none of these.
pub(super) const SECTORS: &[&str] = &[
    "11", "21", "22", "23", "31", "32", "33", "42", "44", "45", "48", "49", "51", "52", "53", "54", "55", "56", "61", "62", "71", "72",
    "81", "92",
];

/// Which rows of a span are read at once: some of its days; of one day, where that is too much, one award type; of that, one sector.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub(super) struct Slice {
    pub(super) group: Group,
    pub(super) from: Date,
    pub(super) to: Date,
    /// The one type, by its place in the group.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(super) code: Option<usize>,
    /// The one sector, by its place; behind the last are all others.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(super) sector: Option<usize>,
}

impl Slice {
    fn whole(group: Group, span: &Span) -> Self {
        Self { group, from: span.from, to: span.to, code: None, sector: None }
    }

    fn days(&self) -> i32 {
        (self.to - self.from).get_days().saturating_add(1)
    }

    /// The first part of this slice, where it can be cut; the other parts follow by [`Self::next`].
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

    /// The slice behind this one, in the same span and group.
    fn next(self, span: &Span) -> Option<Self> {
        if let Some(sector) = self.sector.filter(|sector| *sector < SECTORS.len()) {
            return Some(Self { sector: Some(sector + 1), ..self });
        }
        if let Some(code) = self.code.filter(|code| code + 1 < self.group.codes().len()) {
            return Some(Self { code: Some(code + 1), sector: None, ..self });
        }
        let from = self.to.saturating_add(1.day());
        // What went well once may go well with twice as many days.
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

/// Where the reading of a slice stands.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default)]
pub(super) struct Rows {
    /// The page to ask for, from 1.
    pub(super) page: u32,
    pub(super) order: Order,
    /// How many rows there are by count, where there is one.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(super) total: Option<u64>,
    /// How many rows came.
    pub(super) seen: usize,
    /// How many of them lie outside the days asked for.
    pub(super) outside: usize,
    /// The first row of the page before, which must not come again.
    #[serde(skip_serializing_if = "String::is_empty")]
    pub(super) first: String,
    /// Where to go on beyond the last page that can be asked for by number.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(super) after: Option<(u64, String)>,
    /// What tells rows that came twice from rows that are new.
    #[serde(skip_serializing_if = "Ties::is_empty")]
    pub(super) ties: Ties,
}

/// What is asked next.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub(super) enum Step {
    /// How many rows the slice has.
    Count,
    /// A page of the slice.
    Rows(Rows),
    /// The first of these awards; then on with the rows.
    Award { ids: Vec<String>, rows: Rows },
    /// A page of the first one's actions.
    Actions { ids: Vec<String>, page: u32, rows: Rows },
}

/// Where a run stands.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub(super) struct Cursor {
    /// What is being read, and behind it what is still to be read.
    pub(super) plan: Vec<Span>,
    pub(super) slice: Slice,
    pub(super) step: Step,
    /// Whether slices are counted before they are read.
    pub(super) counts: bool,
}

impl Cursor {
    /// The first cursor for a window; `window_days` is how far back each run reads, of which a full one must not fall short.
    pub(super) fn start(door: &str, window: &Window, window_days: u32) -> Self {
        let back = |days: i64| window.to.saturating_sub(days.days());
        let from = window.from.unwrap_or_else(|| back(FULL_DAYS.max(window_days).into())).min(window.to);
        let span = |by, from: Date, to: Date| Span { by, from: from.max(FIRST_DAY), to };
        let with_late = |from: Date, to: Date| {
            let late_to = to.saturating_sub(LATE_DAYS.days()).min(from.saturating_sub(1.day()));
            [span(By::LastModified, from, to), span(By::LastModified, from.saturating_sub(LATE_DAYS.days()), late_to)]
        };
        let plan: Vec<Span> = match door {
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
            // Nothing can be searched by then; the first day that can be is asked for, so that there is an answer.
            plan.push(Span { by: By::LastModified, from: FIRST_DAY, to: FIRST_DAY });
        }
        let slice = Slice::whole(Group::Contracts, &plan[0]);
        Self { plan, slice, step: Step::Count, counts: door == TRANSACTIONS }.begun()
    }

    /// At the first question for the slice.
    fn begun(self) -> Self {
        if self.counts { Self { step: Step::Count, ..self } } else { self.first_page(None) }
    }

    /// At the slice's first page.
    pub(super) fn first_page(self, total: Option<u64>) -> Self {
        Self { step: Step::Rows(Rows { page: 1, total, ..Rows::default() }), ..self }
    }

    /// At the first part of the slice, where it can be cut.
    pub(super) fn cut(self) -> Option<Self> {
        let slice = self.slice.cut()?;
        Some(Self { slice, ..self }.begun())
    }

    /// Behind the slice.
    pub(super) fn next_slice(mut self) -> Option<Self> {
        let span = self.plan.first().copied()?;
        let slice = match (self.slice.next(&span), self.slice.group) {
            (Some(slice), _) => slice,
            (None, Group::Contracts) => Slice::whole(Group::Idvs, &span),
            (None, Group::Idvs) => {
                self.plan.remove(0);
                Slice::whole(Group::Contracts, self.plan.first()?)
            }
        };
        Some(Self { slice, ..self }.begun())
    }

    /// Behind the first award: at its actions, or at the next one.
    pub(super) fn after_award(self, with_actions: bool) -> Option<Self> {
        match self.step {
            Step::Award { ids, rows } if with_actions && !ids.is_empty() => {
                Some(Self { step: Step::Actions { ids, page: 1, rows }, ..self })
            }
            _ => self.after_actions(),
        }
    }

    /// Behind the first award and its actions: at the next one, or at the page behind.
    pub(super) fn after_actions(self) -> Option<Self> {
        let (mut ids, rows) = match self.step {
            Step::Award { ids, rows } | Step::Actions { ids, rows, .. } => (ids, rows),
            // An award that turned up where none was asked for.
            Step::Count | Step::Rows(_) => return self.next_slice(),
        };
        if !ids.is_empty() {
            ids.remove(0);
        }
        let cursor = Self { plan: self.plan, slice: self.slice, step: Step::Count, counts: self.counts };
        cursor.with_awards(ids, rows)
    }

    /// At the first of these awards; without any, at the page behind, which is page 0 where there is none.
    pub(super) fn with_awards(self, ids: Vec<String>, rows: Rows) -> Option<Self> {
        match (ids.is_empty(), rows.page) {
            (false, _) => Some(Self { step: Step::Award { ids, rows }, ..self }),
            (true, 0) => self.next_slice(),
            (true, _) => Some(Self { step: Step::Rows(rows), ..self }),
        }
    }
}
