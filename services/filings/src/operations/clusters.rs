//! Clusters: several insiders of one issuer who trade alike within days.
//!
//! The rule: at least three different owners with code `P` (or, separately, `S`) at one issuer within ten calendar days. Several owners of one filing,
//! such as a fund and its manager, count once. Sales under an earlier plan do not count.
//!
//! A window is the trades of ten calendar days, counted from the day of a trade. Every window that meets the rule is a cluster, unless all its trades
//! are in another cluster of the issuer and side.

use std::collections::{BTreeMap, BTreeSet};

use crate::record::Filing;
use schemars::JsonSchema;
use schemas::views::recalls::day_of;
use serde::Serialize;
use texts::dollars::Dollars;

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
    #[schemars(with = "proofs::json_type::DayOrEmpty")]
    pub from: String,
    /// Day of the last trade.
    #[schemars(with = "proofs::json_type::DayOrEmpty")]
    pub to: String,
    /// The number of trades.
    pub trades: usize,
    /// The total in dollars of the trades with a known price.
    pub value: Dollars,
}

/// What descriptions of operations say about clusters.
macro_rules! clusters_are {
    () => {
        "A cluster is at least three insiders of one issuer with code `P` (or, separately, code `S` without an earlier plan) within ten calendar days; \
         insiders of one filing, such as a fund and its manager, count once. Every ten days that meet this, counted from the day of a trade, are listed, \
         unless all their trades are in another cluster of the issuer and side."
    };
}
pub(crate) use clusters_are;

/// The clusters among some trades, those with most insiders first: all windows that meet the rule and are not part of another.
#[must_use]
pub fn clusters<'a>(trades: impl Iterator<Item = &'a Filing>) -> Vec<Cluster> {
    let mut by_issuer: BTreeMap<(&str, &'static str), Vec<(i64, &Filing)>> = BTreeMap::new();
    for trade in trades {
        let side = match trade.code.as_str() {
            "P" => "buy",
            "S" if !trade.planned => "sell",
            _ => continue,
        };
        let day = day_of(&trade.trade_date);
        // A trade without a day is in no window.
        if day >= 0 {
            by_issuer.entry((&trade.cik, side)).or_default().push((day, trade));
        }
    }
    let mut out = Vec::new();
    for ((_, side), mut trades) in by_issuer {
        trades.sort_by(|a, b| (a.0, &a.1.id).cmp(&(b.0, &b.1.id)));
        // The end of the last window that is a cluster. A later window that ends there as well is part of it.
        let mut covered = 0;
        let mut day_before = None;
        for (first, (begin, _)) in trades.iter().enumerate() {
            // A window that begins with another trade of the same day is part of the one before.
            if day_before.replace(*begin) == Some(*begin) {
                continue;
            }
            let end = trades.partition_point(|(day, _)| *day < begin + WINDOW_DAYS);
            if end > covered
                && let Some(cluster) = trades.get(first..end).and_then(|window| cluster(side, window))
            {
                covered = end;
                out.push(cluster);
            }
        }
    }
    out.sort_by(|a, b| (b.insiders, b.trades, &a.cik, a.side, &a.from).cmp(&(a.insiders, a.trades, &b.cik, b.side, &b.from)));
    out
}

fn cluster(side: &'static str, trades: &[(i64, &Filing)]) -> Option<Cluster> {
    // Owners that share a filing count as one.
    let mut groups: Vec<BTreeSet<&str>> = Vec::new();
    for (_, trade) in trades {
        // Owners who are hidden on request have no number. Whether they are one or several cannot be said, so they do not count.
        let mut owners: BTreeSet<&str> = trade.owners.iter().map(|owner| owner.cik.as_str()).filter(|cik| !cik.is_empty()).collect();
        if owners.is_empty() {
            continue;
        }
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
    let names: BTreeSet<&str> =
        trades.iter().flat_map(|(_, trade)| &trade.owners).map(|owner| owner.name.as_str()).filter(|name| !name.is_empty()).collect();
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

    /// Proves that every largest window is listed, also two of one issuer, that parts of them are not, and that a longer period shows each cluster of a
    /// shorter one.
    #[test]
    fn all_windows() {
        let day = |n: u32, day: &str, owner: &str| trade(n, "P", day, &[owner]);
        let early = [day(1, "2026-10-01", "a"), day(2, "2026-10-02", "b"), day(3, "2026-10-03", "c"), day(4, "2026-10-03", "d")];
        let late = [day(5, "2026-11-01", "a"), day(6, "2026-11-05", "b"), day(7, "2026-11-10", "c"), day(8, "2026-11-12", "d")];
        let clusters_of = |trades: &[&Filing]| -> Vec<(String, String, usize)> {
            clusters(trades.iter().copied()).into_iter().map(|cluster| (cluster.from, cluster.to, cluster.insiders)).collect()
        };
        let window = |from: &str, to: &str, insiders: usize| (from.to_owned(), to.to_owned(), insiders);
        let all: Vec<&Filing> = early.iter().chain(&late).collect();
        let short: Vec<&Filing> = late.iter().collect();
        let in_november = [window("2026-11-01", "2026-11-10", 3), window("2026-11-05", "2026-11-12", 3)];
        assert_eq!(clusters_of(&short), in_november);
        assert_eq!(clusters_of(&all), [&[window("2026-10-01", "2026-10-03", 4)], in_november.as_slice()].concat());
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
