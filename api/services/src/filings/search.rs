//! `GET /v1/search_filings`: filings by form and days, asked of the regulator now.

use jiff::ToSpan;
use jiff::civil::Date;
use jiff::tz::TimeZone;
use schemars::JsonSchema;
use schemas::error_code::ErrorCode;
use schemas::facts::FactData;
use schemas::views::filings::Filing;
use serde::{Deserialize, Serialize};
use serde_json::json;
use upstreams::live::Question;

use super::filter::Filter;
use super::records::Filed;
use super::{Change, FEED, SOURCE};
use feed::filter::{self, TermQuery};
use feed::notes::notes;
use feed::position::{parse_date, position};
use feed::query::{DIGEST_MAX, newest};
use operation::problem::Problem;
use operation::{Answer, Call, Definition, Method, Operation, Price};

/// Days back without a start.
const DAYS_DEFAULT: i64 = 30;

/// Arguments of `search_filings`.
#[derive(Clone, Debug, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub struct Arguments {
    /// Form types, separated by commas: `8-K,10-K`.
    #[schemars(length(min = 1, max = 200))]
    pub form: Option<String>,
    /// The first filing date, YYYY-MM-DD, inclusive. By default 30 days before `end`.
    pub start: Option<String>,
    /// The last filing date, YYYY-MM-DD, inclusive. By default today.
    pub end: Option<String>,
    /// How many filings to give at most.
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
    /// Filings, the last filed first.
    pub filings: Vec<Filed>,
    /// How many are in this answer.
    pub count: usize,
    /// The first filing date looked for.
    pub start: String,
    /// The last filing date looked for.
    pub end: String,
    /// Whether the regulator was asked for this answer; else it is what is recorded here.
    pub live: bool,
    /// What to know about the answer.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub note: Option<String>,
}

/// Filings of some days.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
struct Within {
    filter: Filter,
    start: String,
    end: String,
}

impl filter::Filter for Within {
    type Record = Filing;

    fn matches(&self, change: &Change) -> bool {
        let filed = change.record.filing_date.as_str();
        self.start.as_str() <= filed && filed <= self.end.as_str() && self.filter.takes(&change.record)
    }

    fn term_queries(&self) -> Vec<TermQuery> {
        filter::Filter::term_queries(&self.filter)
    }
}

/// The operation.
#[must_use]
pub fn operation() -> Operation {
    let words = Definition {
        name: "search_filings",
        method: Method::Get,
        path: "/v1/search_filings",
        summary: "Filings by form and days, asked of EDGAR now.",
        description: "EDGAR's full-text search gives up to 100 documents a question; a filing with several is shown once. Answers are kept for \
            five minutes. Where EDGAR does not answer in time, `live` is false, the note says why, and the answer holds what is recorded here. \
            With `asOf` it is always of what was recorded then.",
        price: Price::Free,
        tool: true,
        counted: true,
        list: "filings",
        errors: &[ErrorCode::AsOfInvalid],
        example: json!({ "form": "8-K", "limit": 5 }),
        aliases: &[],
    };
    Operation::define::<Arguments, Found, _, _>(words, answer)
}

async fn answer(call: Call, arguments: Arguments) -> Result<Answer, Problem> {
    let ctx = &call.context;
    let at = position(ctx, &SOURCE, arguments.as_of.as_deref()).await?;
    let mut told = notes(&call, &SOURCE, &at).await?;
    let limit = told.limit(arguments.limit);
    let today = at.now.to_zoned(TimeZone::UTC).date();
    let end = day("end", arguments.end.as_deref())?.unwrap_or(today);
    let start = day("start", arguments.start.as_deref())?.unwrap_or_else(|| end.saturating_sub(DAYS_DEFAULT.days()));
    if start > end {
        return Err(Problem::parameter("start", format!("{start} is after {end}, which is the end")));
    }
    let forms = arguments.form.iter().flat_map(|forms| forms.split(',')).map(str::to_owned).collect();
    let filter = Filter { form: forms, ..Filter::default() }.checked()?;
    let within = Within { filter, start: start.to_string(), end: end.to_string() };
    let mut filings: Option<Vec<Filed>> = None;
    if arguments.as_of.is_none() {
        let question = Question::Filings { forms: within.filter.form.clone(), start, end };
        let is_within = |filing: &Filed| within.start <= filing.filing_date && filing.filing_date <= within.end;
        filings = told.look_up(&call, EDGAR, question, &at).await.map(|facts| filed(&facts).filter(is_within).collect());
    }
    let live = filings.is_some();
    let mut filings = match filings {
        Some(filings) => filings,
        None => {
            let found = newest(ctx, &FEED, &at, &within, told.after, DIGEST_MAX).await?;
            told.add(found.list_note());
            FEED.still_current(&at, found.changes).await?.into_iter().map(Filed::from).collect()
        }
    };
    filings.sort_by(|a, b| (&b.filing_date, &b.accession).cmp(&(&a.filing_date, &a.accession)));
    filings.truncate(limit);
    Answer::json(&Found { count: filings.len(), filings, start: within.start, end: within.end, live, note: told.note() })
}

/// What the upstream is called.
pub(super) const EDGAR: &str = "EDGAR";

/// The filings that an upstream told.
pub(super) fn filed(facts: &[FactData]) -> impl Iterator<Item = Filed> {
    facts.iter().filter_map(|fact| match fact {
        FactData::Filing(filing) => Some(Filed::from(&**filing)),
        _ => None,
    })
}

/// A day that was given.
fn day(name: &'static str, text: Option<&str>) -> Result<Option<Date>, Problem> {
    let wrong = |text: &str| Problem::parameter(name, format!("{text:?} is no date of the form YYYY-MM-DD"));
    text.map(|text| parse_date(text).ok_or_else(|| wrong(text))).transpose()
}
