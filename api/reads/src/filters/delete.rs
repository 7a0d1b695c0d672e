//! `DELETE /v1/filters/{name}`: deletes a saved filter.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use serde_json::json;

use access::saved_items::SavedItems;
use feed::watchable::WatchableFeed;
use operation::problem::Problem;
use operation::tiers::SAVED_ITEMS_MIN_TIER;
use operation::{Answer, Call, Definition, Method, Operation, Price};

/// Arguments of `delete_filter`.
#[derive(Clone, Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct Arguments {
    /// The name of the filter.
    #[schemars(length(min = 1, max = 100))]
    pub name: String,
}

/// The answer about a deleted filter.
#[derive(Clone, Debug, Serialize, JsonSchema)]
pub struct Deleted {
    /// The name of the deleted filter.
    pub deleted: String,
}

/// The operation for one service.
#[must_use]
pub fn operation<S: WatchableFeed>() -> Operation {
    let words = Definition {
        name: "delete_filter",
        method: Method::Delete,
        path: "/v1/filters/{name}",
        summary: "Deletes a saved filter.",
        description: "Cursors that were made with the filter still work with its parameters, given one by one.",
        price: Price::Tier(SAVED_ITEMS_MIN_TIER),
        errors: &[],
        example: json!({ "name": "mine" }),
        ..Definition::read()
    };
    Operation::define::<Arguments, Deleted, _, _>(words, answer::<S>)
}

async fn answer<S: WatchableFeed>(call: Call, arguments: Arguments) -> Result<Answer, Problem> {
    let saved = SavedItems::filters(&call, S::FEED.source.service);
    let kept = saved.filter(arguments.name.trim()).await.map_err(|problem| problem.about("name"))?;
    saved.delete(&kept).await?;
    Answer::json(&Deleted { deleted: kept.name })
}
