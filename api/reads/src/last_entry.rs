//! Entries of a term in the index of a service: the last one as of any position, and those of a term whose entries are numbered otherwise than by seq.

use std::ops::RangeInclusive;

use feed::position::Position;
use operation::context::{store_problem, stored};
use operation::problem::Problem;
use schemas::key;
use schemas::tables::{Datum, Table};
use serde::de::DeserializeOwned;
use view_store::Range;

/// The most entries that are read at a time.
const ENTRIES_AT_ONCE: usize = 2_000;

/// Returns the last entry of a term in a bucket up to a position, decoded from JSON; `None` if there is none.
///
/// # Errors
/// When rows cannot be read.
pub async fn last_entry<T: DeserializeOwned>(at: &Position, terms: &'static Table, term: &str, bucket: i64) -> Result<Option<T>, Problem> {
    let range = Range { prefix: key![term, bucket], after: None, from: Some(key![term, bucket, at.seq]), limit: 1, reverse: true };
    let rows = at.view.range(terms, range).await.map_err(store_problem)?;
    rows.first().map(|(_, value)| stored(terms, value)).transpose()
}

/// Returns the entries of a term in a bucket from a number on, decoded from JSON, with their numbers in ascending order; at most `most`. They are those of the
/// last change that the view holds, so that each must say since which seq it is.
///
/// # Errors
/// When rows cannot be read.
pub async fn numbered_entries<T: DeserializeOwned>(
    at: &Position,
    terms: &'static Table,
    (term, bucket): (&str, i64),
    from: i64,
    most: usize,
) -> Result<Vec<(i64, T)>, Problem> {
    let range = Range { prefix: key![term, bucket], after: None, from: Some(key![term, bucket, from]), limit: most, reverse: false };
    let rows = at.view.range(terms, range).await.map_err(store_problem)?;
    let numbered = rows.iter().filter_map(|(key, value)| number_of(key).map(|number| (number, value)));
    numbered.map(|(number, value)| stored(terms, value).map(|entry| (number, entry))).collect()
}

/// Returns all entries of a term in a bucket with some numbers, as [`numbered_entries`] does.
///
/// # Errors
/// When rows cannot be read.
pub async fn all_numbered_entries<T: DeserializeOwned>(
    at: &Position,
    terms: &'static Table,
    (term, bucket): (&str, i64),
    numbers: RangeInclusive<i64>,
) -> Result<Vec<(i64, T)>, Problem> {
    let (mut entries, mut after) = (Vec::new(), None);
    loop {
        let from = Some(key![term, bucket, *numbers.start()]);
        let range = Range { prefix: key![term, bucket], after, from, limit: ENTRIES_AT_ONCE, reverse: false };
        let rows = at.view.range(terms, range).await.map_err(store_problem)?;
        for (key, value) in &rows {
            let Some(number) = number_of(key) else { continue };
            if number > *numbers.end() {
                return Ok(entries);
            }
            entries.push((number, stored(terms, value)?));
        }
        if rows.len() < ENTRIES_AT_ONCE {
            return Ok(entries);
        }
        after = rows.last().map(|(key, _)| key.clone());
    }
}

/// The number of an entry.
fn number_of(key: &[Datum]) -> Option<i64> {
    match key.get(2) {
        Some(Datum::Int(number)) => Some(*number),
        _ => None,
    }
}
