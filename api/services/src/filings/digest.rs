//! `GET /v1/filing_digest`: what the last days brought of a company, or of all.

use feed::Feeds;
use operation::context::Part;
use schemars::JsonSchema;
use schemas::error_code::ErrorCode;
use schemas::position::Seq;
use schemas::views::filings::Filing;
use serde::{Deserialize, Serialize};
use serde_json::json;

use super::clusters::{Cluster, clusters};
use super::filter::{companies_of, unknown_ticker};
use super::records::{Filed, Trade};
use super::{Change, FEED, SOURCE};
use feed::filter::{self, TermQuery};
use feed::notes::notes;
use feed::position::{day_text, position};
use feed::query::{DIGEST_MAX, newest, since_days};
use operation::problem::Problem;
use operation::{Answer, Call, Definition, Method, Operation, Price};

/// Forms that register securities, without their amendment marks.
const REGISTRATIONS: &[&str] =
    &["S-1", "S-3", "S-4", "S-8", "S-11", "F-1", "F-3", "F-4", "F-10", "10-12B", "10-12G", "20FR12B", "8-A12B", "8-A12G", "N-2"];
/// Rows of each kind that are shown.
const SHOWN_MAX: usize = 25;

/// Arguments of `filing_digest`.
#[derive(Clone, Debug, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub struct Arguments {
    /// Ticker, exact; without it all companies. Tickers are learnt from insiders' filings.
    #[schemars(length(min = 1, max = 12))]
    pub ticker: Option<String>,
    /// How many days back, today included.
    #[serde(default = "days_default")]
    #[schemars(range(min = 1, max = 90))]
    pub days: i64,
    /// Answer as of this time: a date YYYY-MM-DD (its end in UTC) or an RFC 3339 time, not later than now.
    pub as_of: Option<String>,
}

fn days_default() -> i64 {
    7
}

/// How many there were.
#[derive(Clone, Debug, Default, Serialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct Counts {
    /// Current reports (8-K).
    pub material_events: usize,
    /// Trades and other reports of insiders.
    pub insider_activity: usize,
    /// Registrations of securities.
    pub registrations: usize,
}

/// What the last days brought.
#[derive(Clone, Debug, Serialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct Digest {
    /// The ticker asked for, or empty.
    pub ticker: String,
    /// The first filing date, YYYY-MM-DD.
    pub from: String,
    /// The last one.
    pub to: String,
    /// How many there were.
    pub counts: Counts,
    /// Current reports (8-K), those that weigh most first.
    pub material_events: Vec<Filed>,
    /// Insiders' trades, the last first.
    pub insider_activity: Vec<Trade>,
    /// Several insiders of one issuer who decided alike.
    pub clusters: Vec<Cluster>,
    /// New registrations of securities, the last first.
    pub registrations: Vec<Filed>,
    /// The last day up to which every upstream has been read completely; empty before the first complete reading.
    pub through_date: String,
    /// How many complete readings of upstreams stand behind that.
    pub snapshot_count: u64,
    /// What to know about the answer.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub note: Option<String>,
}

/// What a digest looks at.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
struct Material {
    companies: Option<Vec<String>>,
}

impl filter::Filter for Material {
    type Record = Filing;

    fn matches(&self, change: &Change) -> bool {
        let record = &change.record;
        self.companies.as_ref().is_none_or(|companies| companies.contains(&record.cik))
            && (record.kind == "trade" || record.base_form == "8-K" || REGISTRATIONS.contains(&record.base_form.as_str()))
    }

    fn term_queries(&self) -> Vec<TermQuery> {
        if let Some(companies) = &self.companies {
            return vec![TermQuery::Exact("cik", companies.clone())];
        }
        let forms = ["8-K", "3", "4", "5"].iter().chain(REGISTRATIONS).map(|form| (*form).to_owned());
        vec![TermQuery::Exact("base", forms.collect())]
    }
}

/// The operation.
#[must_use]
pub fn operation() -> Operation {
    let words = Definition {
        name: "filing_digest",
        method: Method::Get,
        path: "/v1/filing_digest",
        summary: "Material events (8-K), insider trades with clusters and new registrations of the last days.",
        description: "By filing date. Clusters: at least three insiders of one issuer with market purchases (or, apart, sales without a plan) within \
            ten calendar days; insiders of one filing count once. Without a ticker the newest few thousand filings are looked at, and the note \
            says so where that is not all.",
        price: Price::Free,
        tool: true,
        counted: true,
        list: "",
        errors: &[ErrorCode::AsOfInvalid],
        example: json!({ "days": 7 }),
        aliases: &[],
    };
    Operation::define::<Arguments, Digest, _, _>(words, answer)
}

async fn answer(call: Call, arguments: Arguments) -> Result<Answer, Problem> {
    let ctx = &call.context;
    let at = position(ctx, &SOURCE, arguments.as_of.as_deref()).await?;
    let mut told = notes(&call, &SOURCE, &at).await?;
    let (from, before) = since_days(ctx, &SOURCE, &at, arguments.days - 1).await?;
    let ticker = arguments.ticker.map(|ticker| ticker.trim().to_uppercase()).unwrap_or_default();
    let companies = if ticker.is_empty() {
        None
    } else {
        let companies = companies_of(ctx, &at, &ticker).await?;
        if companies.is_empty() {
            told.add(Some(unknown_ticker(&ticker)));
        }
        Some(companies)
    };
    let found = newest(ctx, &FEED, &at, &Material { companies }, Seq(before.0.max(told.after.0)), DIGEST_MAX).await?;
    told.add(found.sums_note());
    // Of a filing that changed since, the last state counts; the newest come first.
    let mut records: Vec<Filing> = FEED.records_at(&at, found.changes).await?;
    records.retain(|record| record.filing_date >= from);
    let (trades, filings): (Vec<Filing>, Vec<Filing>) = records.into_iter().partition(|record| record.kind == "trade");
    let clusters = clusters(trades.iter());
    let (mut events, registrations): (Vec<Filing>, Vec<Filing>) = filings.into_iter().partition(|record| record.base_form == "8-K");
    events.sort_by(|a, b| (b.event_score, &b.filing_date, &a.id).cmp(&(a.event_score, &a.filing_date, &b.id)));
    let counts = Counts { material_events: events.len(), insider_activity: trades.len(), registrations: registrations.len() };
    let shown = told.limit(SHOWN_MAX);
    let standing = Feeds::of(ctx).completeness(&SOURCE, at.view.as_ref(), at.seq, at.last).await?;
    Answer::json(&Digest {
        ticker,
        from,
        to: day_text(at.now.as_millisecond()),
        counts,
        material_events: events.into_iter().take(shown).map(Filed::from).collect(),
        insider_activity: trades.into_iter().take(shown).map(Trade::from).collect(),
        clusters,
        registrations: registrations.into_iter().take(shown).map(Filed::from).collect(),
        through_date: standing.through_date,
        snapshot_count: standing.snapshot_count,
        note: told.note(),
    })
}
