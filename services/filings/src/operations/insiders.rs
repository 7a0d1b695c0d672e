//! `GET /v1/insider_activity`: the insider trades of the last days, and clusters among them.

use crate::record::Filing;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use serde_json::json;

use super::clusters::{Cluster, clusters, clusters_are};
use super::digest::{late_filings, of_days};
use super::filter::{Filter, companies_of, trades, trades_of_companies};
use super::records::Trade;
use super::watchable_feed::Filings;
use operation::Definition;
use operation::problem::Problem;
use reads::read::{Period, Read, Reader};

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
            description: concat!(
                "Days are filing dates. With `ticker`: all trades in the securities of its issuer. ",
                late_filings!(),
                clusters_are!()
            ),
            list: "trades",
            example: json!({ "days": 14 }),
            ..Definition::read()
        }
    }

    async fn answer(self, filter: Filter, reader: &mut Reader<Filings>) -> Result<Activity, Problem> {
        let window = reader.window(0).await?;
        // The trades of an issuer belong together, however each filer writes its ticker.
        let companies = match &filter.ticker {
            Some(ticker) => Some(companies_of(reader.context(), &reader.at, reader.after(), ticker).await?),
            None => None,
        };
        let criteria = companies.as_deref().map_or_else(trades, trades_of_companies);
        let changes = reader.count(criteria, window.before).await?;
        let changes = of_days(&filter, &window, changes, reader);
        let mut trades = reader.current(changes).await?;
        // The current state of a trade counts, also if it changed within the window.
        let is_of_issuer = |trade: &Filing| companies.as_ref().is_none_or(|companies| companies.contains(&trade.cik));
        trades.retain(|trade| trade.filing_date >= window.period.from && is_of_issuer(trade));
        let (count, clusters) = (trades.len(), clusters(trades.iter()));
        trades.truncate(reader.limit());
        Ok(Activity { period: window.period, count, clusters, trades: trades.into_iter().map(Trade::from).collect() })
    }
}

#[cfg(test)]
mod tests {
    use crate::record::TABLES;
    use feed::testing::{START_MS, World, call, text, value};
    use schemas::facts::insider_trades::Owner;

    use super::*;
    use reads::read::operation;

    /// Proves that a ticker in any spelling finds all trades of its issuer, however each filer writes it, and that they are one cluster; that another class
    /// of shares is another ticker; and that the digest and the feed of filings follow the same rule.
    #[tokio::test]
    async fn trades_of_a_ticker() {
        let trade_of = |n: usize, cik: &str, ticker: &str| Filing {
            id: format!("trade/{n}"),
            kind: "trade".into(),
            form: "4".into(),
            base_form: "4".into(),
            cik: cik.into(),
            ticker: ticker.into(),
            code: "P".into(),
            trade_date: "2026-10-31".into(),
            filing_date: "2026-11-01".into(),
            owners: vec![Owner { cik: n.to_string(), name: format!("Owner {n}"), ..Owner::default() }],
            ..Filing::default()
        };
        let spelled = [
            ("0000000001", "BRK.B"),
            ("0000000001", "BRK-A, BRK-B"),
            ("0000000001", "NYSE: BRK/B"),
            ("0000000002", "(HEI)"),
            ("0000000003", "GOOG/GOOGL"),
            ("0000000004", "BRKB"),
        ];
        let trades: Vec<Filing> = spelled.iter().enumerate().map(|(n, (cik, ticker))| trade_of(n, cik, ticker)).collect();
        let world = World::new().await;
        world.fill_records(&TABLES, &trades).await;
        let (ctx, activity, digest) =
            (world.context(START_MS + 86_400_000), operation::<Arguments>(), operation::<crate::operations::digest::Arguments>());
        for (ticker, count, clusters) in [
            ("BRK-B", 3, 1),
            ("brk.b", 3, 1),
            ("NYSE: BRK B", 3, 1),
            ("BRK.A", 3, 1),
            ("$hei", 1, 0),
            ("GOOGL", 1, 0),
            ("HEI, GOOG", 2, 0),
            ("BRKB", 1, 0),
            ("BRK", 0, 0),
        ] {
            let found = value(&ctx, &activity, json!({ "ticker": ticker })).await;
            assert_eq!((&found["count"], found["clusters"].as_array().unwrap().len()), (&json!(count), clusters), "{ticker}: {found}");
            let found = value(&ctx, &digest, json!({ "ticker": ticker })).await;
            assert_eq!(found["counts"]["insiderActivity"], count, "{ticker}: {found}");
        }
        let mut keyed = call(&ctx);
        keyed.caller.key_id = "key_test".to_owned();
        let unknown = text((activity.run)(keyed, json!({ "ticker": "BRK" })).await.unwrap());
        let unknown: serde_json::Value = serde_json::from_str(&unknown).unwrap();
        let note = unknown["note"].as_str().unwrap();
        assert!(note.contains(r#"nothing recorded has the ticker "BRK", the nearest known are "#) && note.contains(r#""BRK.B""#), "{note}");
    }
}
