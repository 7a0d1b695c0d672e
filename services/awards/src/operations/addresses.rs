//! The address of an award: the agency's own number (PIID), or its id in any case.

use schemas::views::awards::Award;
use texts::numbers::{compact, number_of};

use crate::rules::AwardsRules;
use feed::RecordFeed;
use feed::filter::TermQuery;
use feed::position::Position;
use operation::context::Context;
use operation::problem::Problem;
use reads::numbers::only_id;

/// The ids that a text can mean: that of an award in capitals, or that of the award with the agency's own number (PIID).
///
/// # Errors
/// `not-found`, naming them, if several awards have the number; when rows cannot be read.
pub(crate) async fn ids_of(ctx: &Context, at: &Position, text: &str) -> Result<Vec<String>, Problem> {
    let id = text.trim().to_uppercase();
    let Some(number) = number_of(text) else { return Ok(vec![id]) };
    let query = TermQuery::Exact("piid", vec![number.clone()]);
    let has_number = |award: &Award| compact(&award.piid) == number;
    let found = only_id(ctx, &AwardsRules::FEED, at, query, has_number, &format!("several awards have the number {text:?}")).await?;
    Ok(std::iter::once(id).chain(found).collect())
}
