//! The addresses of exclusions, hits, candidates and contradictions: the UEI of an entity, the id of an award, or an id in any case.

use std::collections::BTreeSet;

use schemas::error_code::ErrorCode;
use schemas::position::Seq;

use super::filter::uei;
use crate::record::{Exclusion, hit_id};
use crate::rules::candidate_id;
use crate::{Change, FEED, SOURCE};
use feed::filter::{Criteria, TermQuery};
use feed::position::Position;
use feed::query::newest;
use feed::versions::version_at;
use operation::context::Context;
use operation::problem::Problem;

/// The most changes that are read to find the records with a UEI.
const CHANGES_OF_UEI_MAX: usize = 50;

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
    if version_at::<Exclusion>(ctx, &SOURCE, at, &hit).await?.is_some() {
        return Ok(vec![hit]);
    }
    let with_uei = Criteria::new(vec![TermQuery::Exact("uei", vec![uei.clone()])], |change: &Change| change.record.uei == uei);
    let found = newest(ctx, &FEED, at, with_uei, Seq(0), CHANGES_OF_UEI_MAX).await?;
    let ids: Vec<String> = found.changes.into_iter().map(|change| change.record.id).collect::<BTreeSet<_>>().into_iter().collect();
    if ids.len() > 1 {
        let detail = format!("several records have the UEI {uei}: {}", ids.join(", "));
        return Err(Problem::new(ErrorCode::NotFound, detail).about("id"));
    }
    Ok(ids)
}
