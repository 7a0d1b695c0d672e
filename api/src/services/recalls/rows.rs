//! Reading recalls as they stood at a position: from the lists, newest first, or by id.

use schemas::error_code::ErrorCode;
use schemas::key;
use schemas::position::Seq;
use schemas::tables::{Datum, Key};
use schemas::views::recalls::{HISTORY, LISTS, Listed, RECALLS, Recall, Row, day_of, year_of};
use view_store::{Range, View};

use crate::context::store_problem;
use crate::problem::Problem;

/// The first year that is looked for: the oldest recall of any agency is younger.
const YEAR_MIN: i64 = 1966;
/// The year of the lists' partition for records without a date.
const YEAR_NONE: i64 = 0;
/// Rows read beyond the limit, for entries that no longer count.
const SPARE_ROWS: usize = 32;

/// Which recalls are wanted.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Filter {
    /// Category in lower case; any if `None`.
    pub category: Option<&'static str>,
    /// Agency; any if `None`.
    pub agency: Option<&'static str>,
    /// The first date, `YYYY-MM-DD`, inclusive.
    pub from: Option<String>,
    /// The last date, inclusive.
    pub to: Option<String>,
}

impl Filter {
    /// The name of the list that holds what category and agency ask for.
    fn list(&self) -> String {
        format!("{}/{}", self.category.unwrap_or("*"), self.agency.unwrap_or("*"))
    }

    /// Whether a record fits and is to be shown in lists.
    #[must_use]
    pub fn fits(&self, record: &Recall) -> bool {
        record.is_listed()
            && self.category.is_none_or(|category| record.category == category)
            && self.agency.is_none_or(|agency| record.is_of(agency))
            && self.has_date(&record.date)
    }

    /// Whether a date lies within. Days of one form compare as texts; a record without a date lies in no range.
    fn has_date(&self, date: &str) -> bool {
        let bounded = self.from.is_some() || self.to.is_some();
        (!bounded || !date.is_empty())
            && self.from.as_deref().is_none_or(|from| date >= from)
            && self.to.as_deref().is_none_or(|to| date <= to)
    }
}

/// The recalls that fit, as they stood at `seq`, newest first, ties by identity; `year_max` bounds where the search begins.
///
/// # Errors
/// When rows cannot be read.
pub async fn listed(view: &dyn View, filter: &Filter, seq: Seq, limit: usize, year_max: i64) -> Result<Vec<Recall>, Problem> {
    let newest = filter.to.as_deref().map_or(year_max, |to| year_of(to).min(year_max));
    let oldest = filter.from.as_deref().map_or(YEAR_MIN, |from| year_of(from).max(YEAR_MIN));
    let undated = (filter.from.is_none() && filter.to.is_none()).then_some(YEAR_NONE);
    let mut out = Vec::new();
    for year in (oldest..=newest).rev().chain(undated) {
        read_year(view, filter, seq, limit, year, &mut out).await?;
        if out.len() >= limit {
            break;
        }
    }
    out.truncate(limit);
    Ok(out)
}

/// Adds what one year's partition holds, until there are `limit`.
async fn read_year(view: &dyn View, filter: &Filter, seq: Seq, limit: usize, year: i64, out: &mut Vec<Recall>) -> Result<(), Problem> {
    let list = filter.list();
    let day_min = filter.from.as_deref().filter(|from| year_of(from) == year).map(day_of);
    let from = filter.to.as_deref().filter(|to| year_of(to) == year).map(|to| key![list.as_str(), year, day_of(to)]);
    let mut after: Option<Key> = None;
    while out.len() < limit {
        let wanted = limit - out.len() + SPARE_ROWS;
        let range = Range { prefix: key![list.as_str(), year], after: after.take(), from: from.clone(), limit: wanted, reverse: false };
        let rows = view.range(&LISTS, range).await.map_err(store_problem)?;
        let mut is_last = rows.len() < wanted;
        after = rows.last().map(|(key, _)| key.clone());
        let mut ids = Vec::new();
        for (key, value) in rows {
            let [_, _, Datum::Int(day), Datum::Text(id), Datum::Int(since)] = key.as_slice() else { continue };
            if day_min.is_some_and(|least| *day < least) {
                is_last = true;
                break;
            }
            let until = serde_json::from_slice::<Listed>(&value).map_err(|error| unreadable(LISTS.name, &error))?.until;
            let stood = |at: i64| u64::try_from(at).unwrap_or(0);
            if stood(*since) <= seq.0 && (until == 0 || stood(until) > seq.0) {
                ids.push(id.clone());
            }
        }
        for (id, row) in ids.iter().zip(rows_at(view, &ids, seq).await?) {
            match row.filter(|row| filter.fits(&row.record)) {
                Some(row) => out.push(row.record),
                None => tracing::error!(id, seq = seq.0, list, "a list names a recall that does not stand there"),
            }
        }
        if is_last {
            break;
        }
    }
    Ok(())
}

/// The rows of these ids as they stood at `seq`, in the same order; `None` where there was none.
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
            Some(row) if u64::try_from(row.seq).is_ok_and(|since| since <= seq.0) => Some(row),
            _ => row_before(view, id, seq).await?,
        });
    }
    Ok(out)
}

/// The row that stood at `seq`, from the history.
async fn row_before(view: &dyn View, id: &str, seq: Seq) -> Result<Option<Row>, Problem> {
    let from = Some(key![id, i64::try_from(seq.0).unwrap_or(i64::MAX)]);
    let range = Range { prefix: key![id], after: None, from, limit: 1, reverse: false };
    let rows = view.range(&HISTORY, range).await.map_err(store_problem)?;
    rows.first().map(|(_, bytes)| read_row(bytes)).transpose()
}

fn read_row(bytes: &[u8]) -> Result<Row, Problem> {
    serde_json::from_slice(bytes).map_err(|error| unreadable(RECALLS.name, &error))
}

fn unreadable(table: &str, error: &serde_json::Error) -> Problem {
    tracing::error!(%error, table, "a row cannot be read");
    Problem::new(ErrorCode::Internal, "a stored row cannot be read")
}
