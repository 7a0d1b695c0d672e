//! Clusters: several insiders of one issuer who trade alike within days.
//!
//! The rule: at least three different owners with code `P` (or, separately, `S`) at one issuer within ten calendar days. Several owners of one filing,
//! such as a fund and its manager, count once. Sales under an earlier plan do not count.

use std::collections::{BTreeMap, BTreeSet};

use schemars::JsonSchema;
use schemas::dollars::Dollars;
use schemas::views::filings::Filing;
use schemas::views::recalls::day_of;
use serde::Serialize;

/// How many owners a cluster has at least.
const OWNERS_MIN: usize = 3;
/// The calendar days within which the trades of a cluster happen.
const WINDOW_DAYS: i64 = 10;

/// Several insiders of one issuer who traded alike within days.
#[derive(Clone, Debug, PartialEq, Serialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct Cluster {
    /// The number (CIK) of the issuer: 10 digits.
    pub cik: String,
    /// The name of the issuer.
    pub company: String,
    /// The ticker of the issuer.
    pub ticker: String,
    /// `buy` or `sell`.
    pub side: &'static str,
    /// The number of insiders; those of one filing count once.
    pub insiders: usize,
    /// The names of the insiders, sorted.
    pub names: Vec<String>,
    /// Day of the first trade, YYYY-MM-DD.
    #[schemars(with = "schemas::json_type::DayOrEmpty")]
    pub from: String,
    /// Day of the last trade.
    #[schemars(with = "schemas::json_type::DayOrEmpty")]
    pub to: String,
    /// The number of trades.
    pub trades: usize,
    /// The total in dollars of the trades with a known price.
    pub value: Dollars,
}

/// The clusters among some trades, those with most insiders first. For an issuer and side only the largest window counts.
#[must_use]
pub fn clusters<'a>(trades: impl Iterator<Item = &'a Filing>) -> Vec<Cluster> {
    let mut by_issuer: BTreeMap<(&str, &'static str), Vec<(i64, &Filing)>> = BTreeMap::new();
    for trade in trades {
        let side = match trade.code.as_str() {
            "P" => "buy",
            "S" if !trade.planned => "sell",
            _ => continue,
        };
        by_issuer.entry((&trade.cik, side)).or_default().push((day_of(&trade.trade_date), trade));
    }
    let mut out: Vec<Cluster> = by_issuer
        .into_iter()
        .filter_map(|((_, side), mut trades)| {
            trades.sort_by(|a, b| (a.0, &a.1.id).cmp(&(b.0, &b.1.id)));
            let windows = (0..trades.len()).map(|first| {
                let begin = trades[first].0;
                let within = trades[first..].iter().take_while(|(day, _)| *day < begin + WINDOW_DAYS).count();
                &trades[first..first + within]
            });
            windows.filter_map(|window| cluster(side, window)).max_by_key(|cluster| (cluster.insiders, cluster.trades))
        })
        .collect();
    out.sort_by(|a, b| (b.insiders, b.trades, &a.cik).cmp(&(a.insiders, a.trades, &b.cik)));
    out
}

fn cluster(side: &'static str, trades: &[(i64, &Filing)]) -> Option<Cluster> {
    // Owners that share a filing count as one.
    let mut groups: Vec<BTreeSet<&str>> = Vec::new();
    for (_, trade) in trades {
        let mut owners: BTreeSet<&str> = trade.owners.iter().map(|owner| owner.cik.as_str()).collect();
        let (shared, apart): (Vec<_>, Vec<_>) = groups.into_iter().partition(|group| !group.is_disjoint(&owners));
        groups = apart;
        owners.extend(shared.into_iter().flatten());
        groups.push(owners);
    }
    let (_, first) = trades.first()?;
    let (_, last) = trades.last()?;
    if groups.len() < OWNERS_MIN {
        return None;
    }
    let names: BTreeSet<&str> = trades.iter().flat_map(|(_, trade)| &trade.owners).map(|owner| owner.name.as_str()).collect();
    let amounts = trades.iter().filter_map(|(_, trade)| Dollars::product(&trade.shares, &trade.price));
    Some(Cluster {
        cik: first.cik.clone(),
        company: first.company.clone(),
        ticker: first.ticker.clone(),
        side,
        insiders: groups.len(),
        names: names.into_iter().map(str::to_owned).collect(),
        from: first.trade_date.clone(),
        to: last.trade_date.clone(),
        trades: trades.len(),
        value: Dollars::total(amounts),
    })
}

#[cfg(test)]
mod tests {
    use schemas::facts::insider_trades::Owner;

    use super::*;

    fn trade(n: u32, code: &str, date: &str, owners: &[&str]) -> Filing {
        Filing {
            id: format!("trade/{n}"),
            kind: "trade".into(),
            cik: "0000000007".into(),
            code: code.into(),
            trade_date: date.into(),
            shares: "10".into(),
            price: "2".into(),
            owners: owners.iter().map(|owner| Owner { cik: (*owner).into(), name: format!("N{owner}"), ..Owner::default() }).collect(),
            ..Filing::default()
        }
    }

    /// Proves that three owners who buy within ten days are a cluster, and that two, three over eleven days, or three of one filing are not.
    #[test]
    fn the_rule() {
        let three = [trade(1, "P", "2026-11-01", &["a"]), trade(2, "P", "2026-11-05", &["b"]), trade(3, "P", "2026-11-10", &["c"])];
        let found = clusters(three.iter());
        assert_eq!(found.len(), 1);
        assert_eq!((found[0].insiders, found[0].side, found[0].trades, found[0].value), (3, "buy", 3, Dollars { cents: 6_000 }));
        assert_eq!((found[0].from.as_str(), found[0].to.as_str(), found[0].names.len()), ("2026-11-01", "2026-11-10", 3));
        let late = [three[0].clone(), three[1].clone(), trade(3, "P", "2026-11-11", &["c"])];
        assert_eq!(clusters(late.iter()), []);
        let together = [trade(1, "P", "2026-11-01", &["a", "b", "c"]), trade(2, "P", "2026-11-02", &["d"])];
        assert_eq!(clusters(together.iter()), []);
        let shared =
            [trade(1, "P", "2026-11-01", &["a", "b"]), trade(2, "P", "2026-11-02", &["b", "c"]), trade(3, "P", "2026-11-02", &["c"])];
        assert_eq!(clusters(shared.iter()), []);
    }

    /// Proves that sales form their own cluster, and that planned sales and other codes do not count.
    #[test]
    fn sales() {
        let mut sales = vec![trade(1, "S", "2026-11-01", &["a"]), trade(2, "S", "2026-11-01", &["b"]), trade(3, "S", "2026-11-02", &["c"])];
        sales.extend([trade(4, "P", "2026-11-02", &["d"]), trade(5, "F", "2026-11-02", &["e"])]);
        assert_eq!(clusters(sales.iter()).iter().map(|cluster| (cluster.side, cluster.insiders)).collect::<Vec<_>>(), [("sell", 3)]);
        sales[0].planned = true;
        assert_eq!(clusters(sales.iter()), []);
    }
}
