//! Reads a slice completely. A slice of which rows are missing is read backwards, then in parts. If rows of a finest slice are still missing,
//! the run takes those that came, continues, and reads that slice again at its end; what is missing then is recorded with the run.

use jiff::ToSpan;
use jiff::civil::Date;

use super::plan::{Cursor, Group, MISSED_MAX, Order, Rows, Step};
use super::search::{LIMIT, PAGES_MAX};
use super::tie::Row;
use super::{Counts, Paging};
use crate::{Incomplete, Page, Stream, UpstreamError, drift, json};

/// Judges the days outside the requested ones, over all pages of a slice.
fn outside(stream: &Stream, cursor: &Cursor) -> Result<Option<String>, UpstreamError> {
    let Step::Rows(rows) = &cursor.step else { return Ok(None) };
    drift::outside(stream.name, "time_period", rows.outside, rows.seen)
}

/// A slice with more rows is split, so that an error affects few pages.
const CUT_ABOVE: u64 = 20_000;
/// An incomplete slice within this many days lowers the day up to which a run is complete.
const RECENT_DAYS: i64 = 45;
/// The most pages of one award's actions.
const ACTION_PAGES_MAX: u32 = 20;

/// The content of a page of rows.
#[derive(Debug, Default)]
pub(super) struct RowsOfPage {
    /// The number of rows, including those that cannot be parsed.
    pub(super) count: usize,
    /// The rows that were parsed, in order.
    pub(super) rows: Vec<Row>,
    /// How many of them are outside the requested days.
    pub(super) outside: usize,
    /// The awards whose details are to be requested.
    pub(super) ids: Vec<String>,
}

/// Determines the cursor after a slice was counted.
pub(super) fn counted(
    stream: &Stream,
    cursor: Cursor,
    counts: Counts<'_>,
    warnings: &mut Vec<String>,
) -> Result<Option<Cursor>, UpstreamError> {
    if cursor.step != Step::Count {
        return Err(json::later(stream.name, "the response has counts instead of rows"));
    }
    let count = match cursor.slice.group {
        Group::Contracts => counts.contracts,
        Group::Idvs => counts.idvs,
    };
    let Ok(total) = count.text().parse::<u64>() else {
        warnings.push("there are no counts of this group: what is read cannot be checked against them".to_owned());
        return Ok(Some(cursor.first_page(None)));
    };
    if total == 0 {
        return Ok(cursor.next_slice());
    }
    if total <= CUT_ABOVE {
        return Ok(Some(cursor.first_page(Some(total))));
    }
    // Of a finest slice that is too large to page through, the rows that can be reached are read.
    Ok(Some(cursor.clone().cut().unwrap_or_else(|| cursor.first_page(Some(total)))))
}

/// Determines the cursor after a page of rows. Adds warnings, and what stays incomplete, to the page.
pub(super) fn read(
    stream: &Stream,
    mut cursor: Cursor,
    paging: &Paging,
    read: RowsOfPage,
    today: Date,
    report: &mut Page,
) -> Result<Option<Cursor>, UpstreamError> {
    let warnings = &mut report.warnings;
    let mut rows = match cursor.step {
        Step::Rows(rows) => rows,
        // Rows in the answer to a count request are the first page of rows.
        Step::Count => Rows { page: 1, ..Rows::default() },
        Step::Award { .. } => return Ok(cursor.after_actions()),
        Step::Actions { ids, page, rows } => {
            let is_more = is_more(paging, page, read.count, warnings) && page < ACTION_PAGES_MAX;
            let actions = |page| Cursor { step: Step::Actions { ids, page, rows }, ..cursor };
            return Ok(if is_more { Some(actions(page + 1)) } else { actions(page).after_actions() });
        }
    };
    let is_counted = rows.total.is_some();
    rows.outside += read.outside;
    rows.seen += match (is_counted, rows.order) {
        (false, _) => read.count,
        // A row that cannot be parsed still counts.
        (true, Order::Asc) => rows.ties.forwards(&read.rows) + (read.count - read.rows.len()),
        (true, Order::Desc) => rows.ties.backwards(&read.rows),
    };
    let first = read.rows.first().map(|(_, row)| row.clone()).unwrap_or_default();
    let mut is_more = is_more(paging, rows.page, read.count, warnings);
    if is_more && !first.is_empty() && first == rows.first {
        warnings.push("the same page was sent again: the server does not page".to_owned());
        is_more = false;
    }
    rows.first = first;
    if rows.order == Order::Desc && rows.page == 1 && !is_more {
        // A single answer with the whole slice proves that no row is missing.
        rows.seen = rows.seen.max(read.count);
    }
    cursor.step = Step::Rows(rows.clone());
    warnings.extend(outside(stream, &cursor)?);
    if is_more {
        if rows.page >= PAGES_MAX {
            // Transactions cannot be paged beyond the last numbered page; awards can.
            if cursor.counts {
                let total = rows.total.unwrap_or(u64::from(PAGES_MAX) * LIMIT as u64 + 1);
                return missing(stream, cursor, rows, total, today, report);
            }
            if paging.after.is_none() {
                let reason = format!("absent on page {}, beyond which there are no page numbers", rows.page);
                return Err(UpstreamError::Stop { stream: stream.name, field: "page_metadata.last_record_unique_id".to_owned(), reason });
            }
        }
        rows.after = paging.after.clone();
        rows.page += 1;
        return Ok(cursor.with_awards(read.ids, rows));
    }
    if let Some(total) = rows.total.filter(|total| (rows.seen as u64) < *total) {
        return missing(stream, cursor, rows, total, today, report);
    }
    rows.page = 0;
    Ok(cursor.with_awards(read.ids, rows))
}

/// Whether another page follows.
fn is_more(paging: &Paging, requested: u32, count: usize, warnings: &mut Vec<String>) -> bool {
    match paging.page {
        _ if !paging.has_next || count == 0 => false,
        Some(page) if page != requested => {
            warnings.push("another page was sent than was requested: the server does not page".to_owned());
            false
        }
        _ => true,
    }
}

/// Determines the cursor when rows are missing: read backwards, then split, then continue and read the slice again at the end of the run.
///
/// # Errors
/// `Later` if rows are missing in too many slices.
fn missing(
    stream: &Stream,
    mut cursor: Cursor,
    rows: Rows,
    total: u64,
    today: Date,
    report: &mut Page,
) -> Result<Option<Cursor>, UpstreamError> {
    let (seen, warnings) = (rows.seen, &mut report.warnings);
    // A slice that is too large to page through is rather split, as long as it can be. Pages in an order that is not unique hide rows every day, and reading
    // backwards finds them: that is no warning.
    if rows.order == Order::Asc && (rows.page < PAGES_MAX || cursor.slice.cut().is_none()) {
        let rows = Rows { page: 1, order: Order::Desc, first: String::new(), ..rows };
        return Ok(Some(Cursor { step: Step::Rows(rows), ..cursor }));
    }
    let (from, to) = (cursor.slice.from, cursor.slice.to);
    if let Some(part) = cursor.clone().cut() {
        warnings.push("the upstream sent fewer rows than it counts, in both orders: a slice is read again in parts".to_owned());
        return Ok(Some(part));
    }
    let missed = format!("the upstream counts {total} rows of {from} to {to} but sent {seen}, in both orders");
    if !cursor.is_retry {
        if cursor.missed.len() >= MISSED_MAX {
            return Err(json::later(stream.name, format!("{missed}; rows are missing in {MISSED_MAX} other slices, too")));
        }
        cursor.note_missed();
        warnings.push(format!("{missed}; the slice is read again at the end of the run"));
    } else {
        warnings.push(format!("{missed}; the next run that covers these days reads the slice again"));
        // Late days say nothing about how far the newest days are complete.
        let from = Some(from).filter(|from| from.saturating_add(RECENT_DAYS.days()) >= today);
        report.incomplete = Some(Incomplete { what: missed, from });
    }
    Ok(cursor.next_slice())
}
