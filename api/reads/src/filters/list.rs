//! `GET /v1/filters`: the saved filters of an account.

use schemars::JsonSchema;
use serde::Serialize;
use serde_json::json;

use super::Saved;
use crate::list_page::ListPage;
use access::saved_items::SavedItems;
use feed::watchable::WatchableFeed;
use operation::problem::Problem;
use operation::tiers::SAVED_ITEMS_MIN_TIER;
use operation::{Answer, Call, Definition, Operation, Price};

/// The saved filters of an account.
#[derive(Clone, Debug, Serialize, JsonSchema)]
#[serde(bound(serialize = "F: Serialize + JsonSchema"))]
pub struct Filters<F> {
    /// The saved filters, sorted by name in any case and spelling.
    pub filters: Vec<Saved<F>>,
    /// Send it as `after` to get the filters after these; null if there are no more.
    pub next: Option<String>,
}

/// The operation for one service.
#[must_use]
pub fn operation<S: WatchableFeed>() -> Operation {
    let words = Definition {
        name: "list_filters",
        path: "/v1/filters",
        summary: "The saved filters of this account in this service, sorted by name.",
        description: "The tier limits how many an account may have.",
        price: Price::Tier(SAVED_ITEMS_MIN_TIER),
        list: "filters",
        errors: &[],
        example: json!({}),
        ..Definition::read()
    };
    Operation::define::<ListPage, Filters<S::Filter>, _, _>(words, answer::<S>)
}

async fn answer<S: WatchableFeed>(call: Call, page: ListPage) -> Result<Answer, Problem> {
    let all = SavedItems::filters(&call, S::FEED.source.service).list().await?;
    let filters = all.into_iter().map(Saved::of).collect::<Result<Vec<Saved<S::Filter>>, Problem>>()?;
    let (filters, next) = page.by_name(filters, |saved| &saved.name)?;
    Answer::json(&Filters { filters, next })
}
