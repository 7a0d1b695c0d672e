//! `GET /v1/insider_activity`: the insider trades of the last days, and clusters among them.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use serde_json::json;

use super::clusters::{Cluster, clusters};
use super::filter::{Filter, trades, trades_of_ticker};
use super::followed::Filings;
use super::records::Trade;
use crate::common::read::{Period, Read, Reader};
use operation::Definition;
use operation::problem::Problem;

/// Arguments of `insider_activity`: those of the filter. Without a ticker the answer covers all issuers.
#[derive(Clone, Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct Arguments {}

/// The insider trades of the last days.
#[derive(Clone, Debug, Serialize, JsonSchema)]
pub struct Activity {
    /// The filing dates of the trades.
    #[serde(flatten)]
    pub period: Period,
    /// The number of trades; `trades` holds the latest of them.
    pub count: usize,
    /// Clusters of insiders of one issuer who traded alike.
    pub clusters: Vec<Cluster>,
    /// Forms 3, 4 and 5, one row a trade, the last recorded first.
    pub trades: Vec<Trade>,
}

impl Read for Arguments {
    type Service = Filings;
    type Answer = Activity;

    const FILTER: &'static [&'static str] = &["ticker"];
    const LIMIT: Option<usize> = Some(50);
    const HAS_DAYS: bool = true;

    fn definition() -> Definition {
        Definition {
            name: "insider_activity",
            path: "/v1/insider_activity",
            summary: "Insider trades (forms 3, 4 and 5) of the last days, with clusters.",
            when: "Use it for who bought or sold shares of their own company.",
            description: "Days are filing dates. A cluster is at least three insiders of one issuer with code `P` (or, separately, code `S` without an \
                earlier plan) within ten calendar days; insiders of one filing, such as a fund and its manager, count once.",
            list: "trades",
            example: json!({ "days": 14 }),
            ..Definition::read()
        }
    }

    async fn answer(self, filter: Filter, reader: &mut Reader<Filings>) -> Result<Activity, Problem> {
        let window = reader.window(0).await?;
        let criteria = match filter.ticker.as_deref() {
            None | Some("") => trades(),
            Some(ticker) => trades_of_ticker(ticker),
        };
        let changes = reader.count(criteria, window.before).await?;
        let mut trades = reader.current(changes).await?;
        trades.retain(|record| record.filing_date >= window.period.from);
        let (count, clusters) = (trades.len(), clusters(trades.iter()));
        trades.truncate(reader.limit());
        Ok(Activity { period: window.period, count, clusters, trades: trades.into_iter().map(Trade::from).collect() })
    }
}
