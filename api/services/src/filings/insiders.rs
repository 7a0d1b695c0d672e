//! `GET /v1/insider_activity`: the insider trades of the last days, and clusters among them.

use schemars::JsonSchema;
use schemas::views::filings::Filing;
use serde::{Deserialize, Serialize};
use serde_json::json;

use super::clusters::{Cluster, clusters, clusters_are};
use super::digest::{late_filings, of_days};
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

    const FILTER: &'static [&'static str] = &["ticker", "includeBackfill"];
    const LIMIT: Option<usize> = Some(50);
    const HAS_DAYS: bool = true;

    fn definition() -> Definition {
        Definition {
            name: "insider_activity",
            path: "/v1/insider_activity",
            summary: "Insider trades (forms 3, 4 and 5) of the last days, with clusters.",
            when: "Use it for who bought or sold shares of their own company.",
            description: concat!("Days are filing dates. ", late_filings!(), clusters_are!()),
            list: "trades",
            example: json!({ "days": 14 }),
            ..Definition::read()
        }
    }

    async fn answer(self, filter: Filter, reader: &mut Reader<Filings>) -> Result<Activity, Problem> {
        let window = reader.window(0).await?;
        let ticker = filter.ticker.clone().filter(|ticker| !ticker.is_empty());
        let criteria = ticker.as_deref().map_or_else(trades, trades_of_ticker);
        let changes = reader.count(criteria, window.before).await?;
        let changes = of_days(&filter, &window, changes, reader);
        let mut trades = reader.current(changes).await?;
        // The current state of a trade counts, also if it changed within the window.
        let is_of_ticker = |trade: &Filing| ticker.as_ref().is_none_or(|ticker| trade.ticker.eq_ignore_ascii_case(ticker));
        trades.retain(|trade| trade.filing_date >= window.period.from && is_of_ticker(trade));
        let (count, clusters) = (trades.len(), clusters(trades.iter()));
        trades.truncate(reader.limit());
        Ok(Activity { period: window.period, count, clusters, trades: trades.into_iter().map(Trade::from).collect() })
    }
}
