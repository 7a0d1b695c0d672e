//! `GET /v1/whats_changed_since`: the feed of grants and trials under a filter.

use schemars::JsonSchema;
use schemas::error_code::ErrorCode;
use serde::{Deserialize, Serialize};
use serde_json::json;

use super::FEED;
use super::filter::{Filter, SponsorClass};
use super::followed::Research;
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
    /// Topic slug: oncology, neuroscience, cardiology, immunology, infectious-disease, metabolism-diabetes, mental-health, rare-disease,
    /// genomics, aging, pediatrics, respiratory.
    #[schemars(length(min = 1, max = 40))]
    pub topic: Option<String>,
    /// Two-letter state: of a grant's organisation, or of a trial's sites.
    #[schemars(length(min = 2, max = 2))]
    pub state: Option<String>,
    /// Part of the name of a grant's organisation, a trial's sponsor or one of its sites.
    #[schemars(length(min = 2, max = 200))]
    pub institution: Option<String>,
    /// Class of the sponsor.
    pub sponsor_class: Option<SponsorClass>,
    /// Part of the name of a trial's lead sponsor.
    #[schemars(length(min = 2, max = 200))]
    pub sponsor: Option<String>,
    /// Part of the name of a grant's investigator.
    #[schemars(length(min = 2, max = 200))]
    pub pi: Option<String>,
    /// Code of the institute or centre that administers a grant: NCI.
    #[schemars(length(min = 1, max = 20))]
    pub ic: Option<String>,
    /// Phase of a trial: PHASE2.
    #[schemars(length(min = 1, max = 30))]
    pub phase: Option<String>,
    /// Grants of at least so many dollars.
    #[schemars(range(min = 0))]
    pub min_amount: Option<f64>,
    /// Grants of at most so many dollars.
    #[schemars(range(min = 0))]
    pub max_amount: Option<f64>,
    /// The name of a saved filter. Parameters given beside it count instead of the filter's.
    #[schemars(length(min = 1, max = 100))]
    pub filter: Option<String>,
}

/// A page of changes.
#[derive(Clone, Debug, Serialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct Changes {
    /// Changes of grants and trials, oldest first.
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
        summary: "New and modified grants and trials since a cursor, oldest first.",
        description: "Keep the `cursor` of each answer and send it with the next call: every change that fits comes exactly once. A cursor \
            belongs to its filter: under another one it is refused with `filter-changed`, or, with `rebase=true`, the answers first tell what \
            the new filter adds and removes. A page may be shorter than `limit`, or empty, while `hasMore` is true.",
        price: Price::Free,
        tool: true,
        counted: true,
        list: "changes",
        errors: &[ErrorCode::CursorInvalid, ErrorCode::FilterChanged, ErrorCode::AsOfInvalid, ErrorCode::TierTooLow, ErrorCode::NotFound],
        example: json!({ "start": "earliest", "topic": "oncology", "limit": 10 }),
        aliases: &[],
    };
    Operation::define::<Arguments, Changes, _, _>(words, answer)
}

async fn answer(call: Call, arguments: Arguments) -> Result<Answer, Problem> {
    let Arguments { request, topic, state, institution, sponsor_class, sponsor, pi, ic, phase, min_amount, max_amount, filter } = arguments;
    let given = Filter { topic, state, institution, sponsor_class, sponsor, pi, ic, phase, min_amount, max_amount }.checked();
    let filter = merged::<Research>(&call, filter.as_deref(), given).await?;
    let query = Query { request, filter };
    FEED.answer(&call, query, Changed::from).await
}
