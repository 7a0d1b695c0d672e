//! `GET /v1/company_watch`: the filings of one company, the trades of its insiders, and how fast filings come.

use jiff::ToSpan;
use schemars::JsonSchema;
use schemas::position::Seq;
use schemas::views::filings::Filing;
use serde::{Deserialize, Serialize};
use serde_json::json;
use upstreams::live::Question;

use super::clusters::{Cluster, clusters};
use super::filter::{Filter, trades_of_company};
use super::followed::{Filings, WatchedEntity};
use super::records::{Filed, Trade};
use super::search::{EDGAR, filed};
use crate::common::read::{Read, Reader};
use feed::filter::Filter as _;
use operation::Definition;
use operation::problem::Problem;

/// How many changes of each kind are read at most.
const CHANGES_MAX: usize = 500;

/// Arguments of `company_watch`: the company.
#[derive(Clone, Debug, Deserialize, JsonSchema)]
#[serde(transparent)]
pub struct Arguments(WatchedEntity);

/// How many filings there were lately, and usually.
#[derive(Clone, Debug, Default, PartialEq, Serialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct Velocity {
    /// The number of filings in the last 30 days.
    pub last30_days: usize,
    /// The number of filings in the last 90 days.
    pub last90_days: usize,
    /// The average number of filings in 30 days over the last 90; null if there are none.
    pub usual30_days: Option<f64>,
}

/// A company.
#[derive(Clone, Debug, Serialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct Watch {
    /// The number (CIK) of the company: 10 digits.
    pub cik: String,
    /// The name in its latest filing; empty if none is known.
    pub company: String,
    /// The ticker in its insiders' latest filing.
    pub ticker: String,
    /// Filings, the last filed first.
    pub filings: Vec<Filed>,
    /// Insiders' trades, the last filed first.
    pub insider_activity: Vec<Trade>,
    /// Clusters of insiders who traded alike.
    pub clusters: Vec<Cluster>,
    /// How many filings there are in a month, compared with the usual number.
    pub velocity: Velocity,
    /// Whether the regulator's own list was read for this answer; otherwise it holds what is recorded here.
    pub live: bool,
}

impl Read for Arguments {
    type Service = Filings;
    type Answer = Watch;

    const LIMIT: Option<usize> = Some(25);

    fn definition() -> Definition {
        Definition {
            name: "company_watch",
            path: "/v1/company_watch",
            summary: "One company: recent filings, insiders' trades and how fast filings come.",
            when: "Use it for questions about one company.",
            description: "Reads the regulator's list of the company if it can be reached, and then says so with `live`; otherwise the answer holds what \
                is recorded here. `limit` applies to filings and to trades. With `asOf` the answer always holds what was recorded at that time.",
            list: "filings",
            example: json!({ "cik": "0000900001" }),
            ..Definition::read()
        }
    }

    fn filter(&self, given: Filter) -> Result<Filter, Problem> {
        Filter { cik: Some(self.0.cik.clone()), ..given }.normalize()
    }

    async fn answer(self, filter: Filter, reader: &mut Reader<Filings>) -> Result<Watch, Problem> {
        let recorded = reader.newest(filter.criteria(), Seq(0), CHANGES_MAX).await?;
        let recorded = newest_filed(reader.current(recorded.changes).await?);
        let cik = filter.cik.unwrap_or_default();
        let trades = reader.newest(trades_of_company(&cik), Seq(0), CHANGES_MAX).await?;
        reader.note(trades.sums_note());
        let trades = newest_filed(reader.current(trades.changes).await?);
        let listed = reader.ask(EDGAR, Question::Company { cik: cik.clone() }).await;
        let live = listed.is_some();
        let mut filings: Vec<Filed> = match listed {
            Some(facts) => facts.iter().filter_map(filed).collect(),
            None => recorded.into_iter().map(Filed::from).collect(),
        };
        let day = |days: i64| reader.today().checked_sub(days.days()).map(|day| day.to_string()).unwrap_or_default();
        let (last30, last90) = (day(29), day(89));
        let count = |from: &str| filings.iter().filter(|filing| filing.filing_date.as_str() >= from).count();
        let velocity = velocity(count(&last30), count(&last90));
        let clusters = clusters(trades.iter());
        let names = filings.iter().map(|filing| &filing.company).chain(trades.iter().map(|trade| &trade.company));
        let company = names.into_iter().find(|name| !name.is_empty()).cloned().unwrap_or_default();
        let ticker = trades.iter().map(|trade| &trade.ticker).find(|ticker| !ticker.is_empty()).cloned().unwrap_or_default();
        let limit = reader.limit();
        filings.truncate(limit);
        if company.is_empty() {
            reader.note("nothing is known of this company".to_owned());
        }
        let insider_activity = trades.into_iter().take(limit).map(Trade::from).collect();
        Ok(Watch { cik, company, ticker, filings, insider_activity, clusters, velocity, live })
    }
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

    /// Proves how the velocity follows from the numbers of filings.
    #[test]
    fn velocities() {
        assert_eq!(velocity(0, 0).usual30_days, None);
        assert_eq!(velocity(5, 8).usual30_days, Some(2.7));
    }
}
