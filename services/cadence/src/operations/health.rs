//! `GET /health`: liveness, and the depth of the archive.

use feed::position::Position;
use operation::context::{Context, Part};
use operation::problem::Problem;
use schemars::JsonSchema;
use schemas::clock::rfc3339;
use serde::Serialize;

use super::niches::{Niches, stores};
use reads::health::HealthFields;

/// The depth of the archive.
#[derive(Clone, Debug, Default, Serialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct Depth {
    /// The number of stores.
    pub stores: usize,
    /// How many of them the last poll did not read completely.
    pub stores_failing: usize,
    /// The number of polls, complete or not.
    pub polls: i64,
    /// When the first poll ended, RFC 3339; empty before it.
    pub first_poll: String,
    /// When the last poll ended, RFC 3339; empty before the first.
    pub last_poll: String,
    /// How often a variant was observed.
    pub observations: i64,
    /// The number of restocks of items that were observed.
    pub restocks: i64,
}

impl HealthFields for Depth {
    async fn read(ctx: &Context, at: &Position) -> Result<Self, Problem> {
        depth(ctx, at).await
    }
}

async fn depth(ctx: &Context, at: &Position) -> Result<Depth, Problem> {
    let configured = Niches::of(ctx);
    let now_ms = at.now.as_millisecond();
    let mut depth = Depth::default();
    let (mut first_ms, mut last_ms) = (i64::MAX, i64::MIN);
    for (host, state) in stores(ctx, at).await? {
        // Not yet polled then.
        let Some(first) = state.first_ms().filter(|first| *first <= now_ms) else { continue };
        let counts = state.counts_until(now_ms);
        depth.polls += counts.polls;
        depth.observations += counts.variants;
        depth.restocks += counts.restocks;
        let last = state.last_until(now_ms);
        first_ms = first_ms.min(first);
        last_ms = last_ms.max(last.map_or(i64::MIN, |poll| poll.at_ms));
        if configured.has_store(&host) {
            depth.stores += 1;
            depth.stores_failing += usize::from(last.is_some_and(|poll| !poll.is_complete));
        }
    }
    let time = |at_ms: i64| if at_ms > i64::MIN && at_ms <= now_ms { rfc3339(at_ms) } else { String::new() };
    (depth.first_poll, depth.last_poll) = (time(first_ms), time(last_ms));
    Ok(depth)
}
