//! The addresses of exclusions, hits, candidates and contradictions: the UEI of an entity, the id of an award, or an id in any case.

use super::filter::uei;
use crate::record::{Exclusion, hit_id};
use crate::rules::{ExclusionsRules, candidate_id};
use feed::RecordFeed;
use feed::filter::TermQuery;
use feed::position::Position;
use feed::versions::version_at;
use operation::context::Context;
use operation::problem::Problem;
use reads::numbers::only_id;

/// The ids that a text can mean. A UEI means the hit of the entity; without a hit, the only record with the UEI.
///
/// # Errors
/// `not-found`, naming them, if there is no hit and several records have the UEI; when rows cannot be read.
pub(crate) async fn ids_of(ctx: &Context, at: &Position, text: &str) -> Result<Vec<String>, Problem> {
    let text = text.trim();
    if let Some((kind, number)) = text.split_once(':') {
        // The rows of the list have hashes, everything else has numbers with capitals.
        let kind = kind.to_lowercase();
        let number = if kind == "sam" { number.to_lowercase() } else { number.to_uppercase() };
        return Ok(vec![format!("{kind}:{number}")]);
    }
    let Ok(uei) = uei("id", text) else { return Ok(vec![candidate_id(&text.to_uppercase())]) };
    let hit = hit_id(&uei);
    if version_at::<Exclusion>(ctx, &ExclusionsRules::FEED.source, at, &hit).await?.is_some() {
        return Ok(vec![hit]);
    }
    let query = TermQuery::Exact("uei", vec![uei.clone()]);
    let has_uei = |record: &Exclusion| record.uei == uei;
    let found = only_id(ctx, &ExclusionsRules::FEED, at, query, has_uei, &format!("several records have the UEI {uei}")).await?;
    Ok(found.into_iter().collect())
}
