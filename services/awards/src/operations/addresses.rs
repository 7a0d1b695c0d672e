//! The address of an award: the agency's own number (PIID), or its id in any case.

use std::collections::BTreeSet;

use schemas::error_code::ErrorCode;
use schemas::position::Seq;
use texts::numbers::{compact, number_of};

use crate::{Change, FEED};
use feed::filter::{Criteria, TermQuery};
use feed::position::Position;
use feed::query::newest;
use operation::context::Context;
use operation::problem::Problem;

/// The most awards that a number is looked up for.
const AWARDS_OF_NUMBER_MAX: usize = 10;

/// The ids that a text can mean: that of an award in capitals, or that of the award with the agency's own number (PIID).
///
/// # Errors
/// `not-found`, naming them, if several awards have the number; when rows cannot be read.
pub(crate) async fn ids_of(ctx: &Context, at: &Position, text: &str) -> Result<Vec<String>, Problem> {
    let id = text.trim().to_uppercase();
    let Some(number) = number_of(text) else { return Ok(vec![id]) };
    let with_number =
        Criteria::new(vec![TermQuery::Exact("piid", vec![number.clone()])], |change: &Change| compact(&change.record.piid) == number);
    let found = newest(ctx, &FEED, at, with_number, Seq(0), AWARDS_OF_NUMBER_MAX).await?;
    let ids: BTreeSet<String> = found.changes.into_iter().map(|change| change.record.id).collect();
    if ids.len() > 1 {
        let all: Vec<String> = ids.into_iter().collect();
        let detail = format!("several awards have the number {text:?}: {}", all.join(", "));
        return Err(Problem::new(ErrorCode::NotFound, detail).about("id"));
    }
    Ok(std::iter::once(id).chain(ids).collect())
}
