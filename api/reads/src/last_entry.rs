//! Entries of a term in the index of a service: the last one as of any position, and those of a term whose entries are numbered otherwise than by seq.

use feed::position::Position;
use operation::context::{store_problem, stored};
use operation::problem::Problem;
use schemas::key;
use schemas::tables::{Datum, Table};
use serde::de::DeserializeOwned;
use view_store::Range;

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
    let numbered = rows.iter().filter_map(|(key, value)| match key.get(2) {
        Some(Datum::Int(number)) => Some((*number, value)),
        _ => None,
    });
    numbered.map(|(number, value)| stored(terms, value).map(|entry| (number, entry))).collect()
}
