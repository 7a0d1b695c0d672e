//! `GET /v1/company_watch`: what one company filed, what its insiders did, and how fast filings come.

use jiff::ToSpan;
use jiff::tz::TimeZone;
use schemars::JsonSchema;
use schemas::error_code::ErrorCode;
use schemas::views::filings::Filing;
use serde::{Deserialize, Serialize};
use serde_json::json;
use upstreams::live::Question;

use super::clusters::{Cluster, clusters};
use super::filter::{Filter, Trades, padded};
use super::records::{Filed, Trade};
use super::search::{EDGAR, filed};
use super::{FEED, SOURCE};
use feed::notes::notes;
use feed::position::position;
use feed::query::newest;
use operation::problem::Problem;
use operation::{Answer, Call, Definition, Method, Operation, Price};

/// Changes of each kind that are looked at.
const LOOKED_AT_MAX: usize = 500;

/// Arguments of `company_watch`.
#[derive(Clone, Debug, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub struct Arguments {
    /// The company, with or without leading zeros.
    #[schemars(length(min = 1, max = 10))]
    pub cik: String,
    /// How many filings and trades to give at most, of each.
    #[serde(default = "limit_default")]
    #[schemars(range(min = 1, max = 200))]
    pub limit: usize,
    /// Answer as of this time: a date YYYY-MM-DD (its end in UTC) or an RFC 3339 time, not later than now.
    pub as_of: Option<String>,
}

fn limit_default() -> usize {
    25
}

/// How fast filings come.
#[derive(Clone, Debug, Default, PartialEq, Serialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct Velocity {
    /// Filings of the last 30 days.
    pub last30_days: usize,
    /// Filings of the last 90 days.
    pub last90_days: usize,
    /// Filings of 30 days on average over those 90; null before there are any.
    pub usual30_days: Option<f64>,
}

/// A company.
#[derive(Clone, Debug, Serialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct Watch {
    /// The company: 10 digits.
    pub cik: String,
    /// Its name, as its last filing has it; empty where none is known.
    pub company: String,
    /// Its ticker, as its insiders' last filing has it.
    pub ticker: String,
    /// Filings, the last filed first.
    pub filings: Vec<Filed>,
    /// Insiders' trades, the last filed first.
    pub insider_activity: Vec<Trade>,
    /// Several insiders who decided alike.
    pub clusters: Vec<Cluster>,
    /// How fast filings come.
    pub velocity: Velocity,
    /// Whether the regulator's own list was read for this answer; else it is what is recorded here.
    pub live: bool,
    /// What to know about the answer.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub note: Option<String>,
}

/// The operation.
#[must_use]
pub fn operation() -> Operation {
    let words = Definition {
        name: "company_watch",
        method: Method::Get,
        path: "/v1/company_watch",
        summary: "One company: recent filings, insiders' trades and how fast filings come.",
        description: "Reads the regulator's list of the company where it can be reached, and says so with `live`; else the answer is of what is \
            recorded here. With `asOf` it is always of what was recorded then.",
        price: Price::Free,
        tool: true,
        counted: true,
        list: "filings",
        errors: &[ErrorCode::AsOfInvalid],
        example: json!({ "cik": "0000900001" }),
        aliases: &[],
    };
    Operation::define::<Arguments, Watch, _, _>(words, answer)
}

async fn answer(call: Call, arguments: Arguments) -> Result<Answer, Problem> {
    let ctx = &call.context;
    let cik = padded(&arguments.cik)?;
    let at = position(ctx, &SOURCE, arguments.as_of.as_deref()).await?;
    let mut told = notes(&call, &SOURCE, &at).await?;
    let filter = Filter { cik: Some(cik.clone()), ..Filter::default() };
    let found = newest(ctx, &FEED, &at, &filter, told.after, LOOKED_AT_MAX).await?;
    let recorded = newest_filed(FEED.records_at(&at, found.changes).await?);
    let trades = Trades { companies: vec![cik.clone()], ..Trades::default() };
    let found = newest(ctx, &FEED, &at, &trades, told.after, LOOKED_AT_MAX).await?;
    told.add(found.sums_note());
    let trades = newest_filed(FEED.records_at(&at, found.changes).await?);
    let today = at.now.to_zoned(TimeZone::UTC).date();
    let mut listed: Option<Vec<Filed>> = None;
    if arguments.as_of.is_none() {
        let question = Question::Company { cik: cik.clone() };
        listed = told.look_up(&call, EDGAR, question, &at).await.map(|facts| filed(&facts).collect());
    }
    let live = listed.is_some();
    let mut filings = listed.unwrap_or_else(|| recorded.into_iter().map(Filed::from).collect());
    let day = |days: i64| today.checked_sub(days.days()).map(|day| day.to_string()).unwrap_or_default();
    let (last30, last90) = (day(29), day(89));
    let count = |from: &str| filings.iter().filter(|filing| filing.filing_date.as_str() >= from).count();
    let velocity = velocity(count(&last30), count(&last90));
    let clusters = clusters(trades.iter());
    let names = filings.iter().map(|filing| &filing.company).chain(trades.iter().map(|trade| &trade.company));
    let company = names.into_iter().find(|name| !name.is_empty()).cloned().unwrap_or_default();
    let ticker = trades.iter().map(|trade| &trade.ticker).find(|ticker| !ticker.is_empty()).cloned().unwrap_or_default();
    let limit = told.limit(arguments.limit);
    filings.truncate(limit);
    if company.is_empty() {
        told.add(Some("nothing is known of this company".to_owned()));
    }
    Answer::json(&Watch {
        cik,
        company,
        ticker,
        filings,
        insider_activity: trades.into_iter().take(limit).map(Trade::from).collect(),
        clusters,
        velocity,
        live,
        note: told.note(),
    })
}

/// The last filed first.
fn newest_filed(mut records: Vec<Filing>) -> Vec<Filing> {
    records.sort_by(|a, b| (&b.filing_date, &b.id).cmp(&(&a.filing_date, &a.id)));
    records
}

fn velocity(last30_days: usize, last90_days: usize) -> Velocity {
    #[expect(clippy::cast_precision_loss, reason = "a company files far below 2^53 times")]
    let usual30_days = (last90_days > 0).then(|| (last90_days as f64 / 3.0 * 10.0).round() / 10.0);
    Velocity { last30_days, last90_days, usual30_days }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Proves what is said of how fast filings come.
    #[test]
    fn velocities() {
        assert_eq!(velocity(0, 0).usual30_days, None);
        assert_eq!(velocity(5, 8).usual30_days, Some(2.7));
    }
}
