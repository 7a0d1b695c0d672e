//! `GET /v1/watchlist`: the watches of an account.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use serde_json::json;

use super::{Watch, list};
use feed::watchable::WatchableFeed;
use operation::problem::Problem;
use operation::tiers::SAVED_ITEMS_MIN_TIER;
use operation::{Answer, Call, Definition, Method, Operation, Price, Surface};

/// Arguments of `list_watches`: none.
#[derive(Clone, Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct Arguments {}

/// The watches of an account.
#[derive(Clone, Debug, Serialize, JsonSchema)]
pub struct Watches<N> {
    /// All watches, the last created first.
    pub watches: Vec<Watch<N>>,
}

/// The operation for one service.
#[must_use]
pub fn operation<S: WatchableFeed>() -> Operation {
    let words = Definition {
        name: "list_watches",
        method: Method::Get,
        path: "/v1/watchlist",
        summary: "The watches of this account in this service, the last created first.",
        description: "All watches in one answer; the tier limits how many an account may have.",
        price: Price::Tier(SAVED_ITEMS_MIN_TIER),
        surface: Surface::Both,
        counted: true,
        list: "watches",
        errors: &[],
        example: json!({}),
        ..Definition::read()
    };
    Operation::define::<Arguments, Watches<S::WatchedEntity>, _, _>(words, answer::<S>)
}

async fn answer<S: WatchableFeed>(call: Call, _: Arguments) -> Result<Answer, Problem> {
    Answer::json(&Watches::<S::WatchedEntity> { watches: list(&call, S::FEED.source.service).await? })
}
