//! `DELETE /v1/watchlist/{id}`: deletes a watch.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use serde_json::json;

use super::delete;
use feed::watchable::WatchableFeed;
use operation::problem::Problem;
use operation::tiers::SAVED_ITEMS_MIN_TIER;
use operation::{Answer, Call, Definition, Method, Operation, Price};

/// Arguments of `delete_watch`.
#[derive(Clone, Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct Arguments {
    /// The id of the watch.
    #[schemars(length(min = 1, max = 64))]
    pub id: String,
}

/// The answer about a deleted watch.
#[derive(Clone, Debug, Serialize, JsonSchema)]
pub struct Deleted {
    /// The id of the deleted watch.
    pub deleted: String,
}

/// The operation for one service.
#[must_use]
pub fn operation<S: WatchableFeed>() -> Operation {
    let words = Definition {
        name: "delete_watch",
        method: Method::Delete,
        path: "/v1/watchlist/{id}",
        summary: "Deletes a watch.",
        description: "Its matches can no longer be read, and nothing more is delivered to its webhook. The changes themselves remain in the feed.",
        price: Price::Tier(SAVED_ITEMS_MIN_TIER),
        errors: &[],
        example: json!({ "id": "watch_0123456789abcdef01234567" }),
        ..Definition::read()
    };
    Operation::define::<Arguments, Deleted, _, _>(words, answer::<S>)
}

async fn answer<S: WatchableFeed>(call: Call, arguments: Arguments) -> Result<Answer, Problem> {
    Answer::json(&Deleted { deleted: delete(&call, S::FEED.source.service, &arguments.id).await? })
}
