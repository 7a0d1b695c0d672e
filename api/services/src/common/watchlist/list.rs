//! `GET /v1/watchlist`: the watches of an account.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use serde_json::json;

use super::Watch;
use access::saved::SavedItems;
use feed::watchable::WatchableFeed;
use operation::problem::Problem;
use operation::tiers::SAVED_ITEMS_MIN_TIER;
use operation::{Answer, Call, Definition, Method, Operation, Price};

/// Arguments of `list_watches`: none.
#[derive(Clone, Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct Arguments {}

/// The watches of an account.
#[derive(Clone, Debug, Serialize, JsonSchema)]
pub struct Watches<N> {
    /// All of them, the last made first.
    pub watches: Vec<Watch<N>>,
}

/// The operation for one service.
#[must_use]
pub fn operation<S: WatchableFeed>() -> Operation {
    let words = Definition {
        name: "list_watches",
        method: Method::Get,
        path: "/v1/watchlist",
        summary: "The watches of this account in this service, the last made first.",
        description: "All in one answer: a tier bounds how many there are.",
        price: Price::Tier(SAVED_ITEMS_MIN_TIER),
        tool: true,
        counted: true,
        list: "watches",
        errors: &[],
        example: json!({}),
        aliases: &[],
    };
    Operation::define::<Arguments, Watches<S::WatchedEntity>, _, _>(words, answer::<S>)
}

async fn answer<S: WatchableFeed>(call: Call, _: Arguments) -> Result<Answer, Problem> {
    let shelf = SavedItems::watches(&call, S::FEED.source.service);
    let (all, sealing) = (shelf.list().await?, shelf.sealing().await?);
    let watches =
        all.iter().rev().map(|kept| Watch::of(kept, sealing.as_ref())).collect::<Result<Vec<Watch<S::WatchedEntity>>, Problem>>()?;
    Answer::json(&Watches { watches })
}
