//! `GET /v1/search_awards`: contract awards, asked of the upstream now.

use jiff::ToSpan;
use jiff::civil::Date;
use jiff::tz::TimeZone;
use schemars::JsonSchema;
use schemas::error_code::ErrorCode;
use schemas::facts::FactData;
use schemas::views::awards::Award;
use serde::{Deserialize, Serialize};
use serde_json::json;
use upstreams::live::{AwardOrder, Question};

use super::filter::{Codes, Filter};
use super::records::{Shown, date_of};
use super::{Change, FEED, SOURCE};
use feed::filter::{self, TermQuery, contains};
use feed::notes::notes;
use feed::position::{parse_date, position};
use feed::query::{DIGEST_MAX, newest};
use operation::problem::Problem;
use operation::{Answer, Call, Definition, Method, Operation, Price};

/// What the upstream is called.
pub(super) const USASPENDING: &str = "USAspending";
/// Days back without a start.
const DAYS_DEFAULT: i64 = 30;

/// Arguments of `search_awards`.
#[derive(Clone, Debug, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub struct Arguments {
    /// Beginnings of industry codes, two to six digits, separated by commas, or an array of them.
    #[serde(default)]
    pub naics: Codes,
    /// Part of the name of the awarding department, or of the agency within it.
    #[schemars(length(min = 2, max = 200))]
    pub agency: Option<String>,
    /// The first day of an action, YYYY-MM-DD, inclusive. By default 30 days ago.
    pub start: Option<String>,
    /// How many awards to give at most.
    #[serde(default = "feed::page_request::limit_default")]
    #[schemars(range(min = 1, max = 200))]
    pub limit: usize,
    /// Answer as of this time, from what was recorded then: a date YYYY-MM-DD (its end in UTC) or an RFC 3339 time, not later than now.
    pub as_of: Option<String>,
}

/// What was found.
#[derive(Clone, Debug, Serialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct Found {
    /// Awards, those touched last first.
    pub awards: Vec<Shown>,
    /// How many are in this answer.
    pub count: usize,
    /// The first day of an action looked for.
    pub start: String,
    /// Whether the upstream was asked for this answer; else it is what is recorded here.
    pub live: bool,
    /// What to know about the answer.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub note: Option<String>,
}

/// Awards with an action from a day on.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
struct Since {
    filter: Filter,
    start: String,
}

impl filter::Filter for Since {
    type Record = Award;

    fn matches(&self, change: &Change) -> bool {
        date_of(&change.record) >= self.start.as_str() && self.filter.takes(&change.record)
    }

    fn term_queries(&self) -> Vec<TermQuery> {
        filter::Filter::term_queries(&self.filter)
    }
}

/// The operation.
#[must_use]
pub fn operation() -> Operation {
    let words = Definition {
        name: "search_awards",
        method: Method::Get,
        path: "/v1/search_awards",
        summary: "Contract awards by industry code, agency and day, asked of USAspending now.",
        description: "One page of USAspending's search, of 100 contracts touched last; an agency is looked for among these. Answers are kept for \
            five minutes. Where USAspending does not answer in time, `live` is false, the note says why, and the answer holds what is recorded \
            here. With `asOf` it is always of what was recorded then.",
        price: Price::Free,
        tool: true,
        counted: true,
        list: "awards",
        errors: &[ErrorCode::AsOfInvalid],
        example: json!({ "naics": "54", "limit": 5 }),
        aliases: &[],
    };
    Operation::define::<Arguments, Found, _, _>(words, answer)
}

async fn answer(call: Call, arguments: Arguments) -> Result<Answer, Problem> {
    let ctx = &call.context;
    let filter = Filter { naics: arguments.naics.0, agency: arguments.agency, ..Filter::default() }.checked()?;
    let at = position(ctx, &SOURCE, arguments.as_of.as_deref()).await?;
    let mut told = notes(&call, &SOURCE, &at).await?;
    let limit = told.limit(arguments.limit);
    let today = at.now.to_zoned(TimeZone::UTC).date();
    let start = match arguments.start.as_deref() {
        Some(text) => parse_date(text)
            .filter(|start| *start <= today)
            .ok_or_else(|| Problem::parameter("start", format!("{text:?} is no date of the form YYYY-MM-DD that has come")))?,
        None => today.saturating_sub(DAYS_DEFAULT.days()),
    };
    let since = Since { filter, start: start.to_string() };
    let mut awards: Option<Vec<Shown>> = None;
    if arguments.as_of.is_none() {
        let question = question(&since.filter.naics, "", start, today, AwardOrder::Newest);
        let agency = since.filter.agency.as_deref();
        let is_of = |shown: &Shown| agency.is_none_or(|part| contains(&shown.agency, part) || contains(&shown.more.sub_agency, part));
        awards = told.look_up(&call, USASPENDING, question, &at).await.map(|facts| shown(&facts).filter(is_of).collect());
    }
    let live = awards.is_some();
    let mut awards = match awards {
        Some(awards) => awards,
        None => {
            let found = newest(ctx, &FEED, &at, &since, told.after, DIGEST_MAX).await?;
            told.add(found.list_note());
            FEED.still_current(&at, found.changes).await?.into_iter().map(Shown::from).collect()
        }
    };
    awards.truncate(limit);
    Answer::json(&Found { count: awards.len(), awards, start: since.start, live, note: told.note() })
}

/// A question for awards.
pub(super) fn question(naics: &[String], recipient: &str, start: Date, end: Date, order: AwardOrder) -> Question {
    Question::Awards { naics: naics.to_vec(), recipient: recipient.to_owned(), start, end, order }
}

/// The awards that an upstream told.
pub(super) fn shown(facts: &[FactData]) -> impl Iterator<Item = Shown> {
    facts.iter().filter_map(|fact| match fact {
        FactData::Award(award) => Some(Shown::from(&**award)),
        _ => None,
    })
}
