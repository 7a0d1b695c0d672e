//! `GET /v1/whats_changed_since`: the feed of awards under a filter.

use schemars::JsonSchema;
use schemas::error_code::ErrorCode;
use serde::{Deserialize, Serialize};
use serde_json::json;

use super::FEED;
use super::filter::{Codes, Filter};
use super::followed::Awards;
use super::records::Changed;
use crate::common::filters::merged;
use feed::page::PageInfo;
use feed::page_request::FilteredPageRequest;
use feed::query::Query;
use operation::problem::Problem;
use operation::{Answer, Call, Definition, Method, Operation, Price};

/// Arguments of `whats_changed_since`.
#[derive(Clone, Debug, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct Arguments {
    /// Where the feed goes on or starts, and what comes with its changes.
    #[serde(flatten)]
    pub request: FilteredPageRequest,
    /// Beginnings of industry codes, two to six digits, separated by commas, or an array of them.
    #[serde(default)]
    pub naics: Codes,
    /// Part of the name of the awarding department, or of the agency within it.
    #[schemars(length(min = 2, max = 200))]
    pub agency: Option<String>,
    /// Part of the name of the recipient, or of its parent.
    #[schemars(length(min = 2, max = 200))]
    pub recipient: Option<String>,
    /// Words that must all occur in what is bought, what the action says or the words of its codes, each as a word or the beginning of one.
    #[schemars(length(min = 1, max = 200))]
    pub keyword: Option<String>,
    /// At least so many dollars obligated in total.
    pub min_amount: Option<f64>,
    /// At most so many dollars obligated in total.
    pub max_amount: Option<f64>,
    /// The name of a saved filter. Parameters given beside it count instead of the filter's.
    #[schemars(length(min = 1, max = 100))]
    pub filter: Option<String>,
}

/// A page of changes.
#[derive(Clone, Debug, Serialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct Changes {
    /// Changes of awards, oldest first.
    pub changes: Vec<Changed>,
    /// Where the page stands.
    #[serde(flatten)]
    pub page: PageInfo,
}

/// The operation.
#[must_use]
pub fn operation() -> Operation {
    let words = Definition {
        name: "whats_changed_since",
        method: Method::Get,
        path: "/v1/whats_changed_since",
        summary: "New and modified contract awards since a cursor, oldest first.",
        description: "Keep the `cursor` of each answer and send it with the next call: every change that fits comes exactly once. `amount` is what \
            is obligated in total as last read, `amountDelta` what the action of this change adds. A cursor belongs to its filter: under another \
            one it is refused with `filter-changed`, or, with `rebase=true`, the answers first tell what the new filter adds and removes. A page \
            may be shorter than `limit`, or empty, while `hasMore` is true.",
        price: Price::Free,
        tool: true,
        counted: true,
        list: "changes",
        errors: &[ErrorCode::CursorInvalid, ErrorCode::FilterChanged, ErrorCode::AsOfInvalid, ErrorCode::TierTooLow, ErrorCode::NotFound],
        example: json!({ "start": "earliest", "naics": "54", "limit": 10 }),
        aliases: &[],
    };
    Operation::define::<Arguments, Changes, _, _>(words, answer)
}

async fn answer(call: Call, arguments: Arguments) -> Result<Answer, Problem> {
    let Arguments { request, naics, agency, recipient, keyword, min_amount, max_amount, filter } = arguments;
    let given = Filter { naics: naics.0, agency, recipient, keyword, min_amount, max_amount }.checked()?;
    let filter = merged::<Awards>(&call, filter.as_deref(), given).await?;
    let query = Query { request, filter };
    FEED.answer(&call, query, Changed::from).await
}
