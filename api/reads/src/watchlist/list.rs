//! `GET /v1/watchlist`: the watches of an account.

use futures_util::future::try_join_all;
use schemars::JsonSchema;
use serde::Serialize;
use serde_json::json;

use super::{Watch, list};
use crate::list_page::ListPage;
use feed::watchable::WatchableFeed;
use operation::problem::Problem;
use operation::tiers::SAVED_ITEMS_MIN_TIER;
use operation::{Answer, Call, Definition, Operation, Price};

/// The watches of an account.
#[derive(Clone, Debug, Serialize, JsonSchema)]
pub struct Watches<N> {
    /// The watches, the last created first.
    pub watches: Vec<Watch<N>>,
    /// Send it as `after` to get the watches created before these; null if there are no more.
    pub next: Option<String>,
}

/// The operation for one service.
#[must_use]
pub fn operation<S: WatchableFeed>() -> Operation {
    let words = Definition {
        name: "list_watches",
        path: "/v1/watchlist",
        summary: "The watches of this account in this service, the last created first.",
        description: "The tier limits how many an account may have.",
        price: Price::Tier(SAVED_ITEMS_MIN_TIER),
        list: "watches",
        errors: &[],
        example: json!({}),
        ..Definition::read()
    };
    Operation::define::<ListPage, Watches<S::WatchedEntity>, _, _>(words, answer::<S>)
}

async fn answer<S: WatchableFeed>(call: Call, page: ListPage) -> Result<Answer, Problem> {
    let (stored, next) = list::<S::WatchedEntity>(&call, S::FEED.source.service, &page).await?;
    let watches = try_join_all(stored.into_iter().map(|watch| watch.shown::<S>(&call))).await?;
    Answer::json(&Watches::<S::WatchedEntity> { watches, next })
}
