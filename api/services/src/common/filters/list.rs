//! `GET /v1/filters`: the saved filters of an account.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use serde_json::json;

use super::Saved;
use access::saved::SavedItems;
use feed::watchable::WatchableFeed;
use operation::problem::Problem;
use operation::tiers::SAVED_ITEMS_MIN_TIER;
use operation::{Answer, Call, Definition, Method, Operation, Price, Surface};

/// Arguments of `list_filters`: none.
#[derive(Clone, Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct Arguments {}

/// The saved filters of an account.
#[derive(Clone, Debug, Serialize, JsonSchema)]
pub struct Filters<F> {
    /// All saved filters, sorted by name.
    pub filters: Vec<Saved<F>>,
}

/// The operation for one service.
#[must_use]
pub fn operation<S: WatchableFeed>() -> Operation {
    let words = Definition {
        name: "list_filters",
        method: Method::Get,
        path: "/v1/filters",
        summary: "The saved filters of this account in this service, sorted by name.",
        description: "All filters in one answer; the tier limits how many an account may have.",
        price: Price::Tier(SAVED_ITEMS_MIN_TIER),
        surface: Surface::Both,
        counted: true,
        list: "filters",
        errors: &[],
        example: json!({}),
        ..Definition::read()
    };
    Operation::define::<Arguments, Filters<S::Filter>, _, _>(words, answer::<S>)
}

async fn answer<S: WatchableFeed>(call: Call, _: Arguments) -> Result<Answer, Problem> {
    let all = SavedItems::filters(&call, S::FEED.source.service).list().await?;
    let mut filters = all.into_iter().map(Saved::of).collect::<Result<Vec<Saved<S::Filter>>, Problem>>()?;
    filters.sort_by(|a, b| a.name.cmp(&b.name));
    Answer::json(&Filters { filters })
}
