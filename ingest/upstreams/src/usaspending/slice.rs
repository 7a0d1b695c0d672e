//! Reads a slice completely: the run continues only when all counted rows were received.

use super::plan::{Cursor, Group, Order, Rows, Step};
use super::search::{LIMIT, PAGES_MAX};
use super::tie::Row;
use super::{Counts, Paging, outside};
use crate::{Stream, UpstreamError, json};

/// A slice with more rows is split, so that an error affects few pages.
const CUT_ABOVE: u64 = 20_000;
/// The most pages of one award's actions.
const ACTION_PAGES_MAX: u32 = 20;

/// The content of a page of rows.
#[derive(Debug, Default)]
pub(super) struct Read {
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
        return Err(json::later(stream.name, "counts instead of rows"));
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
    match cursor.clone().cut() {
        Some(part) => Ok(Some(part)),
        None if total <= u64::from(PAGES_MAX) * LIMIT as u64 => Ok(Some(cursor.first_page(Some(total)))),
        None => Err(too_many(stream, &cursor, &total.to_string())),
    }
}

/// Determines the cursor after a page of rows.
pub(super) fn read(
    stream: &Stream,
    mut cursor: Cursor,
    paging: &Paging,
    read: Read,
    warnings: &mut Vec<String>,
) -> Result<Option<Cursor>, UpstreamError> {
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
        warnings.push("the same page came again: the server does not page".to_owned());
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
                return cursor.clone().cut().map(Some).ok_or_else(|| too_many(stream, &cursor, "more"));
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
        return missing(stream, cursor, rows, total, warnings).map(Some);
    }
    rows.page = 0;
    Ok(cursor.with_awards(read.ids, rows))
}

/// Whether another page follows.
fn is_more(paging: &Paging, requested: u32, count: usize, warnings: &mut Vec<String>) -> bool {
    match paging.page {
        _ if !paging.has_next || count == 0 => false,
        Some(page) if page != requested => {
            warnings.push("another page came than was asked for: the server does not page".to_owned());
            false
        }
        _ => true,
    }
}

/// Determines the cursor when rows are missing: read backwards, then split, then give up.
fn missing(stream: &Stream, cursor: Cursor, rows: Rows, total: u64, warnings: &mut Vec<String>) -> Result<Cursor, UpstreamError> {
    let seen = rows.seen;
    if rows.order == Order::Asc {
        warnings.push("fewer rows came than are counted: a slice is read again backwards".to_owned());
        let rows = Rows { page: 1, order: Order::Desc, first: String::new(), ..rows };
        return Ok(Cursor { step: Step::Rows(rows), ..cursor });
    }
    let (from, to) = (cursor.slice.from, cursor.slice.to);
    if let Some(part) = cursor.cut() {
        warnings.push("fewer rows came than are counted, in both orders: a slice is read again in parts".to_owned());
        return Ok(part);
    }
    Err(json::later(stream.name, format!("{seen} rows of {from} to {to} came of {total} that are counted, in both orders")))
}

fn too_many(stream: &Stream, cursor: &Cursor, total: &str) -> UpstreamError {
    let rows = u64::from(PAGES_MAX) * LIMIT as u64;
    let reason = format!("{total} rows on {} in the finest slice there is; {rows} can be paged through", cursor.slice.from);
    UpstreamError::Stop { stream: stream.name, field: "page".to_owned(), reason }
}
