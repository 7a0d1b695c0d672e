//! Reads recalls as of a position: from the lists, newest first, or by id.

use std::cmp::Reverse;
use std::collections::VecDeque;
use std::ops::RangeInclusive;

use futures_util::future::try_join_all;
use schemas::key;
use schemas::position::Seq;
use schemas::tables::{Datum, Key};
use schemas::views::recalls::{AGENCIES, CATEGORIES, HISTORY, LISTS, ListEntry, RECALLS, Recall, Row, day_of, month_of};
use view_store::{Range, View};

use operation::context::{seq_column, store_problem, stored};
use operation::problem::Problem;
use serde::{Deserialize, Serialize};

/// The day of a record without a date, which is after all other days in lists.
pub(crate) const UNDATED: i64 = -1_000_000;
/// The first month that is searched, January of 1966. All recalls are later.
const MONTH_MIN: i64 = 1966 * 12;
/// The month of the lists' partition for records without a date.
const MONTH_NONE: i64 = 0;
/// How many months are read at the same time at most. A search begins with one month and reads four times as many in each further round.
const MONTHS_AT_ONCE: i64 = 48;
/// How many rows are read in addition to the limit, because some entries are outdated.
const SPARE_ROWS: usize = 32;

/// A filter of recalls.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Filter {
    /// The category in lower case; `None` for any.
    pub category: Option<&'static str>,
    /// The agency; `None` for any.
    pub agency: Option<&'static str>,
    /// The first date, `YYYY-MM-DD`, inclusive.
    pub from: Option<String>,
    /// The last date, inclusive.
    pub to: Option<String>,
}

impl Filter {
    /// The names of the lists that together hold the recalls of the category and agency.
    fn lists(&self) -> Vec<String> {
        match (self.category, self.agency) {
            (None, None) => vec!["*/*".to_owned()],
            (Some(category), Some(agency)) => vec![format!("{category}/{agency}")],
            (Some(category), None) => AGENCIES.iter().map(|agency| format!("{category}/{agency}")).collect(),
            (None, Some(agency)) => CATEGORIES.iter().map(|category| format!("{category}/{agency}")).collect(),
        }
    }

    /// Whether a record matches the filter and is shown in lists.
    #[must_use]
    pub fn matches(&self, record: &Recall) -> bool {
        record.is_listed()
            && self.category.is_none_or(|category| record.category == category)
            && self.agency.is_none_or(|agency| record.is_of(agency))
            && self.has_date(&record.date)
    }

    /// Whether a date is in the range. Dates of one form compare as texts; a record without a date is in no range.
    pub(crate) fn has_date(&self, date: &str) -> bool {
        let bounded = self.from.is_some() || self.to.is_some();
        (!bounded || !date.is_empty())
            && self.from.as_deref().is_none_or(|from| date >= from)
            && self.to.as_deref().is_none_or(|to| date <= to)
    }
}

/// The place of a recall in the order of lists: newest first, ties by identity.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct ListPlace {
    /// The date of the record; empty for one without a date.
    date: String,
    id: String,
}

impl ListPlace {
    /// The place of a record.
    #[must_use]
    pub fn of(record: &Recall) -> Self {
        Self { date: record.date.clone(), id: record.id.clone() }
    }

    /// The day of the place; [`UNDATED`] for a record without a date.
    pub(crate) fn day(&self) -> i64 {
        if self.date.is_empty() { UNDATED } else { day_of(&self.date) }
    }

    /// Whether a record of a day comes after this place; [`UNDATED`] is the day of a record without a date.
    #[must_use]
    pub fn is_before(&self, day: i64, id: &str) -> bool {
        (Reverse(self.day()), self.id.as_str()) < (Reverse(day), id)
    }
}

/// A page of recalls.
pub struct ListPage {
    /// The recalls as the filter shows them, newest first, ties by identity.
    pub recalls: Vec<Recall>,
    /// The place of the last one, if more follow.
    pub next: Option<ListPlace>,
}

impl ListPage {
    /// The first `limit` recalls of those that were found, which are in the order of lists.
    pub(crate) fn of(mut found: Vec<(ListPlace, Recall)>, filter: &Filter, limit: usize) -> Self {
        let has_more = found.len() > limit;
        found.truncate(limit);
        let next = found.last().filter(|_| has_more).map(|(place, _)| place.clone());
        let mut recalls: Vec<Recall> = found.into_iter().map(|(_, recall)| recall).collect();
        filter.sort(&mut recalls);
        Self { recalls, next }
    }
}

/// A page of the matching recalls as of `seq`: those after a place, if one is given. The search starts at `month_max` at the latest.
///
/// # Errors
/// When rows cannot be read.
pub async fn listed(
    view: &dyn View,
    filter: &Filter,
    seq: Seq,
    after: Option<&ListPlace>,
    limit: usize,
    month_max: i64,
) -> Result<ListPage, Problem> {
    let by_record = filter.by_record_date();
    let oldest = by_record.from.as_deref().map_or(MONTH_MIN, |from| month_of(from).max(MONTH_MIN));
    let mut newest = by_record.to.as_deref().map_or(month_max, |to| month_of(to).min(month_max));
    // Later months come before the place.
    newest = after.map_or(newest, |after| month_of(&after.date).min(newest));
    let search = MonthSearch { view, filter, seq, after, wanted: limit.saturating_add(1) };
    let mut out = Vec::new();
    let mut months = 1;
    while out.len() < search.wanted && oldest <= newest {
        search.read((newest - months + 1).max(oldest)..=newest, &mut out).await?;
        newest -= months;
        months = (months * 4).min(MONTHS_AT_ONCE);
    }
    if out.len() < search.wanted && filter.from.is_none() && filter.to.is_none() {
        search.read(MONTH_NONE..=MONTH_NONE, &mut out).await?;
    }
    Ok(ListPage::of(out, filter, limit))
}

/// A search of recalls in months.
struct MonthSearch<'a> {
    view: &'a dyn View,
    filter: &'a Filter,
    seq: Seq,
    after: Option<&'a ListPlace>,
    wanted: usize,
}

impl MonthSearch<'_> {
    /// Adds recalls from the partitions of some months, until there are as many as wanted.
    async fn read(&self, months: RangeInclusive<i64>, out: &mut Vec<(ListPlace, Recall)>) -> Result<(), Problem> {
        let Self { view, filter, seq, after, wanted } = *self;
        let (names, by_record) = (filter.lists(), filter.by_record_date());
        let list = |month: i64| names.iter().map(move |name| (name, month));
        let mut lists: Vec<Listing> =
            months.flat_map(list).map(|(name, month)| Listing::new(name, &by_record, month, after.cloned())).collect();
        let rows_max = wanted.saturating_sub(out.len()) / lists.len() + SPARE_ROWS;
        try_join_all(lists.iter_mut().map(|list| list.fill(view, seq, rows_max))).await?;
        let mut last = String::new();
        while out.len() < wanted {
            let mut ids = Vec::new();
            while out.len() + ids.len() < wanted {
                for list in &mut lists {
                    list.fill(view, seq, rows_max).await?;
                }
                let newest =
                    lists.iter_mut().filter(|list| !list.entries.is_empty()).min_by(|a, b| a.entries.front().cmp(&b.entries.front()));
                let Some((_, id)) = newest.and_then(|list| list.entries.pop_front()) else { break };
                // A recall of several agencies is in the list of each.
                if id != last {
                    last.clone_from(&id);
                    ids.push(id);
                }
            }
            if ids.is_empty() {
                break;
            }
            for (id, row) in ids.iter().zip(rows_at(view, &ids, seq).await?) {
                match row.filter(|row| by_record.matches(&row.record)) {
                    Some(row) => {
                        let place = ListPlace::of(&row.record);
                        out.extend(filter.shown(view, row.record, seq).await?.map(|recall| (place, recall)));
                    }
                    None => tracing::error!(id, seq = seq.0, "a list names a recall that has no matching row"),
                }
            }
        }
        Ok(())
    }
}

/// One month of one list, read in pieces.
struct Listing {
    prefix: Key,
    /// The start of the first piece. Later pieces start after the last row that was read.
    from: Option<Key>,
    /// Only entries after this place count.
    place: Option<ListPlace>,
    /// Whether the entries have no date.
    is_undated: bool,
    after: Option<Key>,
    /// The last day of the search.
    day_min: Option<i64>,
    /// Day (newest first) and id of the entries that were valid at the position, in order.
    entries: VecDeque<(Reverse<i64>, String)>,
    is_read: bool,
}

impl Listing {
    fn new(name: &str, filter: &Filter, month: i64, place: Option<ListPlace>) -> Self {
        let of_month = |date: &str| Some(date).filter(|date| month_of(date) == month).map(day_of);
        let place = place.filter(|place| month_of(&place.date) == month);
        let newest = filter.to.as_deref().and_then(of_month).into_iter().chain(place.as_ref().map(|place| day_of(&place.date))).min();
        let from = newest.map(|day| key![name, month, day]);
        let day_min = filter.from.as_deref().and_then(of_month);
        Self {
            prefix: key![name, month],
            from,
            place,
            is_undated: month == MONTH_NONE,
            after: None,
            day_min,
            entries: VecDeque::new(),
            is_read: false,
        }
    }

    /// Reads until there is an entry, or until the list ends.
    async fn fill(&mut self, view: &dyn View, seq: Seq, rows_max: usize) -> Result<(), Problem> {
        while self.entries.is_empty() && !self.is_read {
            let (prefix, from) = (self.prefix.clone(), self.from.clone());
            let range = Range { prefix, after: self.after.take(), from, limit: rows_max, reverse: false };
            let rows = view.range(&LISTS, range).await.map_err(store_problem)?;
            self.is_read = rows.len() < rows_max;
            self.after = rows.last().map(|(key, _)| key.clone());
            for (key, value) in rows {
                let [_, _, Datum::Int(day), Datum::Text(id), _] = key.as_slice() else { continue };
                if self.day_min.is_some_and(|least| *day < least) {
                    self.is_read = true;
                    break;
                }
                let day_in_order = if self.is_undated { UNDATED } else { *day };
                if self.place.as_ref().is_some_and(|place| !place.is_before(day_in_order, id)) {
                    continue;
                }
                let until = stored::<ListEntry>(&LISTS, &value)?.until;
                if seq_column(&LISTS, &key, 4)? <= seq && (until == Seq(0) || until > seq) {
                    self.entries.push_back((Reverse(*day), id.clone()));
                }
            }
        }
        Ok(())
    }
}

/// The rows of some ids as of `seq`, in the same order; `None` if there was none.
///
/// # Errors
/// When rows cannot be read.
pub async fn rows_at(view: &dyn View, ids: &[String], seq: Seq) -> Result<Vec<Option<Row>>, Problem> {
    let keys: Vec<Key> = ids.iter().map(|id| key![id.as_str()]).collect();
    let mut out = Vec::with_capacity(ids.len());
    for (id, bytes) in ids.iter().zip(view.get_many(&RECALLS, &keys).await.map_err(store_problem)?) {
        let row = match bytes {
            Some(bytes) => Some(read_row(&bytes)?),
            None => None,
        };
        out.push(match row {
            Some(row) if row.seq <= seq => Some(row),
            _ => row_before(view, id, seq).await?,
        });
    }
    Ok(out)
}

/// The row as of `seq`, from the history.
async fn row_before(view: &dyn View, id: &str, seq: Seq) -> Result<Option<Row>, Problem> {
    let from = Some(key![id, seq]);
    let range = Range { prefix: key![id], after: None, from, limit: 1, reverse: false };
    let rows = view.range(&HISTORY, range).await.map_err(store_problem)?;
    rows.first().map(|(_, bytes)| read_row(bytes)).transpose()
}

fn read_row(bytes: &[u8]) -> Result<Row, Problem> {
    stored(&RECALLS, bytes)
}
