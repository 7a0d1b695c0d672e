//! `GET /v1/company_watch`: the filings of one company, the trades of its insiders, and how fast filings come.

use std::collections::HashSet;

use crate::record::Filing;
use jiff::ToSpan;
use jiff::civil::Date;
use schemars::JsonSchema;
use schemas::position::Seq;
use serde::{Deserialize, Serialize};
use serde_json::json;
use upstreams::live::Question;

use super::clusters::{Cluster, clusters, clusters_are};
use super::filter::{Filter, trades_of_company};
use super::records::{Filed, Trade};
use super::search::{EDGAR, last_filed_first};
use super::watchable_feed::{Filings, WatchedEntity};
use feed::filter::Filter as _;
use operation::Definition;
use operation::problem::Problem;
use reads::read::pages::Taken;
use reads::read::{Read, Reader};

/// How many changes of each kind are read at most.
const CHANGES_MAX: usize = 500;

/// The last days, whose filings are compared with those before.
const LATELY_DAYS: i64 = 30;
/// All days that are compared.
const COMPARED_DAYS: i64 = 90;

/// Arguments of `company_watch`: the company.
#[derive(Clone, Debug, Deserialize, JsonSchema)]
#[serde(transparent)]
pub struct Arguments(WatchedEntity);

/// How many filings there were lately, and before.
#[derive(Clone, Debug, Default, PartialEq, Serialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct Velocity {
    /// The number of filings in the last 30 days.
    pub last30_days: usize,
    /// The number of filings in the last 90 days, as far as they are known; see `from`.
    pub last90_days: usize,
    /// The number of filings in 30 days, on average over the days before the last 30; null if fewer than 30 of them are known.
    pub usual30_days: Option<f64>,
    /// The first of the last 90 days from which on all filings are known, YYYY-MM-DD.
    #[schemars(with = "proofs::json_type::Day")]
    pub from: String,
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
    /// Filings, the last filed first: those that the regulator lists and those recorded here.
    pub filings: Vec<Filed>,
    /// The number of filings that are known; `filings` holds the last of them.
    pub filings_count: usize,
    /// Whether there are filings that are not counted, because they are older than those that the regulator lists or that are recorded here.
    pub truncated: bool,
    /// Insiders' trades, the last filed first.
    pub insider_activity: Vec<Trade>,
    /// Clusters of insiders who traded alike.
    pub clusters: Vec<Cluster>,
    /// How many filings there are in a month, compared with the usual number.
    pub velocity: Velocity,
    /// Whether the regulator's own list was read for this answer; otherwise it holds only what is recorded here.
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
            description: concat!(
                "Reads the regulator's list of the company if it can be reached, says so with `live`, and adds the filings recorded here; otherwise the answer \
                 holds only these. `limit` applies to filings and to trades. `velocity` compares the last 30 days with those before, as far back as all \
                 filings are known. With `asOf` the answer always holds what was recorded at that time. ",
                clusters_are!()
            ),
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
        let is_all_recorded = recorded.is_complete();
        let mut filings = reader.current(recorded.changes).await?;
        let cik = filter.cik.unwrap_or_default();
        let trades = reader.newest(trades_of_company(&cik), Seq(0), CHANGES_MAX).await?;
        reader.note(trades.sums_note());
        let mut trades = reader.current(trades.changes).await?;
        trades.sort_by(last_filed_first);
        // The first day from which on everything is recorded.
        let oldest = |filings: &[Filing]| filings.iter().map(|filing| filing.filing_date.clone()).min();
        let mut from = if is_all_recorded { reader.history_from().await? } else { oldest(&filings) };
        let mut truncated = true;
        let listed = reader.ask(EDGAR, &Question::Company { cik: cik.clone() }, usize::MAX).await;
        let live = listed.is_some();
        if let Some(listed) = listed {
            let Taken { items, is_truncated, .. } = listed.take(usize::MAX);
            let listed = reader.complete(items).await?;
            // The list goes back to the first filing, or else to its oldest one.
            from = if is_truncated { [from, oldest(&listed)].into_iter().flatten().min() } else { Some(String::new()) };
            truncated = is_truncated;
            let known: HashSet<String> = listed.iter().map(|filing| filing.id.clone()).collect();
            filings.retain(|filing| !known.contains(&filing.id));
            filings.extend(listed);
        }
        // Who sees only the last days does not see how many filings were before.
        if let Some(first) = reader.free_from() {
            from = from.map(|from| from.max(first.to_string()));
            truncated = true;
        }
        filings.sort_by(last_filed_first);
        let velocity = velocity(filings.iter().map(|filing| filing.filing_date.as_str()), reader.today(), from.as_deref());
        let clusters = clusters(trades.iter());
        let names = filings.iter().map(|filing| &filing.company).chain(trades.iter().map(|trade| &trade.company));
        let company = names.into_iter().find(|name| !name.is_empty()).cloned().unwrap_or_default();
        let ticker = trades.iter().map(|trade| &trade.ticker).find(|ticker| !ticker.is_empty()).cloned().unwrap_or_default();
        let limit = reader.limit();
        if company.is_empty() {
            reader.note("nothing is known of this company".to_owned());
        }
        let filings_count = filings.len();
        let filings = filings.into_iter().take(limit).map(Filed::from).collect();
        let insider_activity = trades.into_iter().take(limit).map(Trade::from).collect();
        Ok(Watch { cik, company, ticker, filings, filings_count, truncated, insider_activity, clusters, velocity, live })
    }
}

/// The velocity on a day, given the filing dates that are known, and the day from which on all are known; `None` if no day is.
fn velocity<'a>(dates: impl Iterator<Item = &'a str>, today: Date, known_from: Option<&str>) -> Velocity {
    let back = |days: i64| today.saturating_sub(days.days());
    let (first30, first90) = (back(LATELY_DAYS - 1), back(COMPARED_DAYS - 1));
    let known = known_from.map_or(today, |from| from.parse().unwrap_or(Date::MIN)).clamp(first90, today);
    let (mut last30_days, mut before) = (0, 0);
    for date in dates.filter_map(|date| date.parse::<Date>().ok()).filter(|date| *date >= known) {
        if date >= first30 { last30_days += 1 } else { before += 1 }
    }
    let days_before = i64::from(known.until(first30).map_or(0, |span| span.get_days()));
    #[expect(clippy::cast_precision_loss, reason = "a company files far below 2^53 times")]
    let usual30_days =
        (days_before >= LATELY_DAYS).then(|| (before as f64 / days_before as f64 * LATELY_DAYS as f64 * 10.0).round() / 10.0);
    Velocity { last30_days, last90_days: last30_days + before, usual30_days, from: known.to_string() }
}

#[cfg(test)]
mod tests {
    use jiff::civil::date;

    use super::*;

    /// Proves that the velocity compares 30 days with the days before as far as all filings are known, and with none if too few are.
    #[test]
    fn velocities() {
        let dates = ["2026-11-24", "2026-10-26", "2026-10-25", "2026-10-01", "2026-09-01", "2026-08-27", "2026-08-26", "2025-01-01"];
        let velocity_from = |from: Option<&str>| {
            let Velocity { last30_days, last90_days, usual30_days, from } = velocity(dates.into_iter(), date(2026, 11, 24), from);
            (last30_days, last90_days, usual30_days, from)
        };
        assert_eq!(velocity_from(Some("")), (2, 6, Some(2.0), "2026-08-27".to_owned()));
        assert_eq!(velocity_from(Some("2026-09-26")), (2, 4, Some(2.0), "2026-09-26".to_owned()));
        assert_eq!(velocity_from(Some("2026-09-27")), (2, 4, None, "2026-09-27".to_owned()));
        assert_eq!(velocity_from(Some("2026-11-20")), (1, 1, None, "2026-11-20".to_owned()));
        assert_eq!(velocity_from(None), (1, 1, None, "2026-11-24".to_owned()));
    }
}
