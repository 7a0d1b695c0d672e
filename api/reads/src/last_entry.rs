//! The last entry of a term in the index of a service, as of any position.

use feed::position::Position;
use operation::context::{store_problem, stored};
use operation::problem::Problem;
use schemas::key;
use schemas::tables::Table;
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
