//! What `health` of the labs service says in addition: the number of leads.

use std::sync::Mutex;
use std::sync::PoisonError;

use crate::record::list;
use jiff::civil::Date;
use operation::context::{Context, Part, store_problem};
use operation::problem::Problem;
use schemars::JsonSchema;
use schemas::position::Seq;
use serde::Serialize;

use crate::rules::LabsRules;
use feed::RecordFeed;
use feed::places;
use feed::position::Position;
use reads::health::HealthFields;

/// The most leads that are counted.
const LEADS_MAX: usize = 1_000_000;
/// The first day of which grants are recorded.
const FIRST_DAY: Date = Date::constant(1985, 1, 1);
/// A day after all notices of award.
const LAST_DAY: Date = Date::constant(2099, 12, 31);

/// The number of leads.
#[derive(Clone, Debug, Serialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct Leads {
    /// The number of current leads. Null if it is not known: as of an earlier time, and in a view of an older version, they are counted up to a million.
    pub leads: Option<u64>,
}

/// The last count, with the generation and the seq that it belongs to.
#[derive(Default)]
struct LastCount(Mutex<Option<(u64, Seq, Option<u64>)>>);

impl Part for LastCount {}

impl HealthFields for Leads {
    async fn read(ctx: &Context, at: &Position) -> Result<Self, Problem> {
        if at.is_latest() {
            let checkpoint = at.view.checkpoint().await.map_err(store_problem)?;
            // The projection counts the records that are listed, which the leads are. To count their places takes longer with each lead.
            if checkpoint.seq == at.seq
                && let Some(records) = checkpoint.current_records()
            {
                return Ok(Self { leads: Some(records) });
            }
        }
        let last = LastCount::of(ctx);
        let known = *last.0.lock().unwrap_or_else(PoisonError::into_inner);
        let place = (at.view.generation(), at.seq);
        if let Some((generation, seq, leads)) = known
            && (generation, seq) == place
        {
            return Ok(Self { leads });
        }
        let part = places::Segment::newest_first(&(FIRST_DAY..=LAST_DAY));
        let leads = LabsRules::FEED.count_places(at, &list(None, None), &part, LEADS_MAX).await?;
        let mut known = last.0.lock().unwrap_or_else(PoisonError::into_inner);
        // A count as of an earlier time must not replace the current one, which most callers ask for.
        if known.is_none_or(|(generation, seq, _)| generation != place.0 || seq < place.1) {
            *known = Some((place.0, place.1, leads));
        }
        Ok(Self { leads })
    }
}

#[cfg(test)]
mod tests {
    use feed::position::latest;
    use feed::testing::{SOURCE, START_MS, World};

    use super::*;

    /// Proves that the leads are those that the projection has counted, without reading a place: the view of this test has none.
    #[tokio::test]
    async fn leads_are_counted_by_the_projection() {
        let mut world = World::new().await;
        world.through(START_MS, "cpsc", "2026-10-31");
        world.checkpoint.records = Some(7);
        world.commit().await;
        let ctx = world.context(START_MS);
        let (at, _) = latest(&ctx, &SOURCE).await.unwrap();
        assert_eq!(Leads::read(&ctx, &at).await.unwrap().leads, Some(7));
    }
}
