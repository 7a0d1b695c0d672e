//! `GET /v1/insider_activity`: insiders' trades of the last days, and clusters among them.

use schemars::JsonSchema;
use schemas::error_code::ErrorCode;
use schemas::position::Seq;
use serde::{Deserialize, Serialize};
use serde_json::json;

use super::clusters::{Cluster, clusters};
use super::filter::Trades;
use super::records::Trade;
use super::{FEED, SOURCE};
use feed::notes::notes;
use feed::position::{day_text, position};
use feed::query::{DIGEST_MAX, newest, since_days};
use operation::problem::Problem;
use operation::{Answer, Call, Definition, Method, Operation, Price};

/// Arguments of `insider_activity`.
#[derive(Clone, Debug, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub struct Arguments {
    /// How many days back, today included, by filing date.
    #[serde(default = "days_default")]
    #[schemars(range(min = 1, max = 90))]
    pub days: i64,
    /// Ticker, exact; without it all issuers.
    #[schemars(length(min = 1, max = 12))]
    pub ticker: Option<String>,
    /// How many trades to give at most.
    #[serde(default = "feed::page_request::limit_default")]
    #[schemars(range(min = 1, max = 200))]
    pub limit: usize,
    /// Answer as of this time: a date YYYY-MM-DD (its end in UTC) or an RFC 3339 time, not later than now.
    pub as_of: Option<String>,
}

fn days_default() -> i64 {
    7
}

/// Insiders' trades.
#[derive(Clone, Debug, Serialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct Activity {
    /// The first filing date, YYYY-MM-DD.
    pub from: String,
    /// The last one.
    pub to: String,
    /// How many trades there were; `trades` shows the last of them.
    pub count: usize,
    /// Several insiders of one issuer who decided alike.
    pub clusters: Vec<Cluster>,
    /// Forms 3, 4 and 5, one row a trade, the last recorded first.
    pub trades: Vec<Trade>,
    /// What to know about the answer.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub note: Option<String>,
}

/// The operation.
#[must_use]
pub fn operation() -> Operation {
    let words = Definition {
        name: "insider_activity",
        method: Method::Get,
        path: "/v1/insider_activity",
        summary: "Insiders' trades (forms 3, 4 and 5) of the last days, with clusters.",
        description: "A cluster is at least three insiders of one issuer with code `P` (or, apart, code `S` without a plan of before) within ten \
            calendar days; insiders of one filing, such as a fund and its manager, count once.",
        price: Price::Free,
        tool: true,
        counted: true,
        list: "trades",
        errors: &[ErrorCode::AsOfInvalid],
        example: json!({ "days": 14 }),
        aliases: &[],
    };
    Operation::define::<Arguments, Activity, _, _>(words, answer)
}

async fn answer(call: Call, arguments: Arguments) -> Result<Answer, Problem> {
    let ctx = &call.context;
    let at = position(ctx, &SOURCE, arguments.as_of.as_deref()).await?;
    let mut told = notes(&call, &SOURCE, &at).await?;
    let (from, before) = since_days(ctx, &SOURCE, &at, arguments.days - 1).await?;
    let ticker = arguments.ticker.map(|ticker| ticker.trim().to_uppercase()).unwrap_or_default();
    let filter = Trades { ticker, ..Trades::default() };
    let found = newest(ctx, &FEED, &at, &filter, Seq(before.0.max(told.after.0)), DIGEST_MAX).await?;
    told.add(found.sums_note());
    let mut trades = FEED.records_at(&at, found.changes).await?;
    trades.retain(|record| record.filing_date >= from);
    let (count, clusters) = (trades.len(), clusters(trades.iter()));
    trades.truncate(told.limit(arguments.limit));
    Answer::json(&Activity {
        from,
        to: day_text(at.now.as_millisecond()),
        count,
        clusters,
        trades: trades.into_iter().map(Trade::from).collect(),
        note: told.note(),
    })
}
