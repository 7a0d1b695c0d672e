//! `GET /v1/new_funding`: the newest grants and trials of a territory.

use schemars::JsonSchema;
use schemas::error_code::ErrorCode;
use schemas::views::research::Funding;
use serde::{Deserialize, Serialize};
use serde_json::json;

use super::filter::{Filter, SponsorClass};
use super::records::{Either, Grant, Trial};
use super::{Change, FEED, SOURCE};
use feed::filter::{self, TermQuery};
use feed::notes::notes;
use feed::position::position;
use feed::query::newest;
use operation::problem::Problem;
use operation::{Answer, Call, Definition, Method, Operation, Price};

/// Arguments of `new_funding`.
#[derive(Clone, Debug, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub struct Arguments {
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
    /// Grants of at least so many dollars (then no trials).
    #[schemars(range(min = 0))]
    pub min_amount: Option<f64>,
    /// Grants of at most so many dollars (then no trials).
    #[schemars(range(min = 0))]
    pub max_amount: Option<f64>,
    /// Part of the name of a grant's investigator (then no trials).
    #[schemars(length(min = 2, max = 200))]
    pub pi: Option<String>,
    /// Code of the institute or centre that administers a grant: NCI (then no trials).
    #[schemars(length(min = 1, max = 20))]
    pub ic: Option<String>,
    /// Phase of a trial: PHASE2 (then no grants).
    #[schemars(length(min = 1, max = 30))]
    pub phase: Option<String>,
    /// How many grants and trials to give at most, together.
    #[serde(default = "feed::page_request::limit_default")]
    #[schemars(range(min = 1, max = 200))]
    pub limit: usize,
    /// Answer as of this time: a date YYYY-MM-DD (its end in UTC) or an RFC 3339 time, not later than now.
    pub as_of: Option<String>,
}

/// How many there are in the answer.
#[derive(Clone, Debug, Default, Serialize, JsonSchema)]
pub struct Counts {
    /// Grants.
    pub grants: usize,
    /// Trials.
    pub trials: usize,
}

/// The newest grants and trials.
#[derive(Clone, Debug, Serialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct NewFunding {
    /// Grants, the last recorded first.
    pub grants: Vec<Grant>,
    /// Trials, the last recorded first.
    pub trials: Vec<Trial>,
    /// How many are in this answer.
    pub counts: Counts,
    /// What to know about the answer.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub note: Option<String>,
}

/// New ones only.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub(super) struct New(pub(super) Filter);

impl filter::Filter for New {
    type Record = Funding;

    fn matches(&self, change: &Change) -> bool {
        change.event == "new" && self.0.takes(&change.record)
    }

    fn term_queries(&self) -> Vec<TermQuery> {
        filter::Filter::term_queries(&self.0)
    }

    fn wildcard(&self, dimension: &str) -> Option<&'static str> {
        filter::Filter::wildcard(&self.0, dimension)
    }
}

/// The operation.
#[must_use]
pub fn operation() -> Operation {
    let words = Definition {
        name: "new_funding",
        method: Method::Get,
        path: "/v1/new_funding",
        summary: "Newly awarded grants and new clinical trials, the last recorded first.",
        description: "Filters narrow by topic, state, institution, sponsor class, investigator, institute, phase and dollars; all that are \
            given must hold. A filter that only grants can fit (dollars, `pi`, `ic`) leaves trials out, `phase` leaves grants out.",
        price: Price::Free,
        tool: true,
        counted: true,
        list: "",
        errors: &[ErrorCode::AsOfInvalid],
        example: json!({ "topic": "oncology", "limit": 5 }),
        aliases: &[],
    };
    Operation::define::<Arguments, NewFunding, _, _>(words, answer)
}

async fn answer(call: Call, arguments: Arguments) -> Result<Answer, Problem> {
    let ctx = &call.context;
    let Arguments { topic, state, institution, sponsor_class, min_amount, max_amount, pi, ic, phase, limit, as_of } = arguments;
    let filter = New(Filter { topic, state, institution, sponsor_class, sponsor: None, pi, ic, phase, min_amount, max_amount });
    let at = position(ctx, &SOURCE, as_of.as_deref()).await?;
    let mut told = notes(&call, &SOURCE, &at).await?;
    let found = newest(ctx, &FEED, &at, &filter, told.after, told.limit(limit)).await?;
    told.add(found.list_note());
    let (grants, trials) = split(FEED.records_at(&at, found.changes).await?.into_iter());
    let counts = Counts { grants: grants.len(), trials: trials.len() };
    Answer::json(&NewFunding { grants, trials, counts, note: told.note() })
}

/// Grants and trials, each by themselves, in their order.
pub(super) fn split(records: impl Iterator<Item = Funding>) -> (Vec<Grant>, Vec<Trial>) {
    let (mut grants, mut trials) = (Vec::new(), Vec::new());
    for record in records {
        match Either::from(record) {
            Either::Grant(grant) => grants.push(*grant),
            Either::Trial(trial) => trials.push(*trial),
        }
    }
    (grants, trials)
}
