//! `DELETE /v1/watchlist/{id}`: ends a watch.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use serde_json::json;

use access::saved::SavedItems;
use feed::watchable::WatchableFeed;
use operation::problem::Problem;
use operation::tiers::SAVED_ITEMS_MIN_TIER;
use operation::{Answer, Call, Definition, Method, Operation, Price};

/// Arguments of `delete_watch`.
#[derive(Clone, Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct Arguments {
    /// The watch's id.
    #[schemars(length(min = 1, max = 64))]
    pub id: String,
}

/// A watch that is gone.
#[derive(Clone, Debug, Serialize, JsonSchema)]
pub struct Deleted {
    /// The id it had.
    pub deleted: String,
}

/// The operation for one service.
#[must_use]
pub fn operation<S: WatchableFeed>() -> Operation {
    let words = Definition {
        name: "delete_watch",
        method: Method::Delete,
        path: "/v1/watchlist/{id}",
        summary: "Ends a watch.",
        description: "What it matched is asked for no more; the changes themselves stay in the feed.",
        price: Price::Tier(SAVED_ITEMS_MIN_TIER),
        tool: true,
        counted: true,
        list: "",
        errors: &[],
        example: json!({ "id": "watch_0123456789abcdef01234567" }),
        aliases: &[],
    };
    Operation::define::<Arguments, Deleted, _, _>(words, answer::<S>)
}

async fn answer<S: WatchableFeed>(call: Call, arguments: Arguments) -> Result<Answer, Problem> {
    delete(&call, S::FEED.source.service, &arguments.id).await
}

/// Deletes a watch of the caller's, and tells so.
///
/// # Errors
/// `not-found` when the account has no such watch in the service; `unavailable` when it is not projected in time.
pub(crate) async fn delete(call: &Call, service: &'static str, id: &str) -> Result<Answer, Problem> {
    let shelf = SavedItems::watches(call, service);
    let kept = shelf.watch(id).await?;
    shelf.delete(&kept).await?;
    Answer::json(&Deleted { deleted: kept.id })
}
