//! `GET /v1/whats_new_since`: the feed of filings under a filter.

use schemars::JsonSchema;
use schemas::error_code::ErrorCode;
use serde::{Deserialize, Serialize};
use serde_json::json;

use super::FEED;
use super::filter::Filter;
use super::followed;
use super::records::Changed;
use crate::common::filters::merged;
use feed::page::PageInfo;
use feed::page_request::FilteredPageRequest;
use feed::query::Query;
use operation::problem::Problem;
use operation::{Answer, Call, Definition, Method, Operation, Price};

/// Arguments of `whats_new_since`.
#[derive(Clone, Debug, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct Arguments {
    /// Where the feed goes on or starts, and what comes with its changes.
    #[serde(flatten)]
    pub request: FilteredPageRequest,
    /// Form types, separated by commas: `8-K,10-K`. `8-K` takes `8-K/A` as well.
    #[schemars(length(min = 1, max = 200), regex(pattern = "[A-Za-z0-9]"))]
    pub form: Option<String>,
    /// Ticker, exact. Tickers are learnt from insiders' filings.
    #[schemars(length(min = 1, max = 12))]
    pub ticker: Option<String>,
    /// The filer, exact, with or without leading zeros.
    #[schemars(length(min = 1, max = 10))]
    pub cik: Option<String>,
    /// Item code of an 8-K: 5.02.
    #[schemars(length(min = 1, max = 5))]
    pub item: Option<String>,
    /// The least event score: 0 to 100.
    #[schemars(range(min = 0, max = 100))]
    pub min_event_score: Option<i64>,
    /// The name of a saved filter. Parameters given beside it count instead of the filter's.
    #[schemars(length(min = 1, max = 100))]
    pub filter: Option<String>,
}

/// A page of filings.
#[derive(Clone, Debug, Serialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct Filings {
    /// Filings, oldest change first.
    pub filings: Vec<Changed>,
    /// Where the page stands.
    #[serde(flatten)]
    pub page: PageInfo,
}

/// The operation.
#[must_use]
pub fn operation() -> Operation {
    let words = Definition {
        name: "whats_new_since",
        method: Method::Get,
        path: "/v1/whats_new_since",
        summary: "Fresh filings since a cursor, oldest first.",
        description: "Keep the `cursor` of each answer and send it with the next call: every filing that fits comes exactly once, and again when \
            more is known of it (its items, an amendment). A cursor belongs to its filter: under another one it is refused with \
            `filter-changed`, or, with `rebase=true`, the answers first tell what the new filter adds and removes. A page may be shorter than \
            `limit`, or empty, while `hasMore` is true.",
        price: Price::Free,
        tool: true,
        counted: true,
        list: "filings",
        errors: &[ErrorCode::CursorInvalid, ErrorCode::FilterChanged, ErrorCode::AsOfInvalid, ErrorCode::TierTooLow, ErrorCode::NotFound],
        example: json!({ "start": "earliest", "form": "8-K", "limit": 10 }),
        aliases: &[],
    };
    Operation::define::<Arguments, Filings, _, _>(words, answer)
}

async fn answer(call: Call, arguments: Arguments) -> Result<Answer, Problem> {
    let Arguments { request, form, ticker, cik, item, min_event_score, filter } = arguments;
    let form = form.iter().flat_map(|forms| forms.split(',')).map(str::to_owned).collect();
    let given = Filter { form, ticker, cik, item, min_event_score, companies: Vec::new() }.checked()?;
    let filter = merged::<followed::Filings>(&call, filter.as_deref(), given).await?;
    let query = Query { request, filter };
    FEED.answer(&call, query, Changed::from).await
}
