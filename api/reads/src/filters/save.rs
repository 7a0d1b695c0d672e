//! `POST /v1/filters`: saves a filter under a name.

use schemars::JsonSchema;
use schemas::error_code::ErrorCode;
use serde::Deserialize;
use serde_json::json;

use super::Saved;
use crate::unknown::note_of;
use access::saved_items::SavedItems;
use feed::filter::Filter;
use feed::watchable::WatchableFeed;
use operation::problem::Problem;
use operation::tiers::SAVED_ITEMS_MIN_TIER;
use operation::{Answer, Call, Definition, Method, Operation, Price};

/// Arguments of `save_filter`.
#[derive(Clone, Debug, Deserialize, JsonSchema)]
pub struct Arguments<F> {
    /// The name: any text of up to 100 characters, compared exactly.
    #[schemars(length(min = 1, max = 100))]
    pub name: String,
    /// The fields of the filter, named like the parameters of the feed.
    pub filter: F,
}

/// The operation for one service.
#[must_use]
pub fn operation<S: WatchableFeed>() -> Operation {
    let words = Definition {
        name: "save_filter",
        method: Method::Post,
        path: "/v1/filters",
        summary: "Saves a filter of the feed under a name.",
        description: "The filtered feed takes the name as `filter`; parameters of the request replace those of the filter. Saving under a name that \
            is in use replaces the filter: cursors that were made with the old one are then refused with `filter-changed`, or accepted with \
            `rebase=true`.",
        price: Price::Tier(SAVED_ITEMS_MIN_TIER),
        errors: &[ErrorCode::LimitReached, ErrorCode::IdempotencyMismatch, ErrorCode::NotFound],
        example: json!({ "name": "mine", "filter": S::example_filter() }),
        ..Definition::read()
    };
    Operation::define::<Arguments<S::Filter>, Saved<S::Filter>, _, _>(words, answer::<S>)
}

async fn answer<S: WatchableFeed>(call: Call, arguments: Arguments<S::Filter>) -> Result<Answer, Problem> {
    let name = arguments.name.trim();
    if name.is_empty() || name.chars().any(char::is_control) {
        return Err(Problem::parameter("name", "name: is empty, or holds control characters"));
    }
    let in_filter = |problem: Problem| problem.within("filter");
    let filter = arguments.filter.normalize().map_err(in_filter)?;
    S::check(&call.context, &filter).await.map_err(in_filter)?;
    let note = note_of::<S>(&call, &filter).await?;
    let kept = SavedItems::filters(&call, S::FEED.source.service).save(name, filter.canonical()).await?;
    Ok(Answer { status: 201, ..Answer::json(&Saved { note, ..Saved::<S::Filter>::of(kept)? })? })
}
