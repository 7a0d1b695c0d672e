//! `GET /v1/delta_digest`: the new and modified contracts of the last days, and those that expire in the next.

use std::collections::HashSet;

use jiff::ToSpan;
use jiff::civil::Date;
use schemars::JsonSchema;
use schemas::position::Seq;
use schemas::views::awards::{Award, Dollars};
use serde::{Deserialize, Serialize};
use serde_json::json;
use upstreams::live::AwardOrder;

use super::Change;
use super::filter::Filter;
use super::followed::Awards;
use super::records::{Changed, Shown, event_of, reported_day};
use super::search::{USASPENDING, listed, question};
use crate::common::read::{Completeness, Period, Read, Reader};
use feed::filter::{Criteria, Filter as _, TermQuery};
use feed::shown::shown;
use operation::Definition;
use operation::problem::Problem;

/// An action that happened at most this many days before the window counts in it: some departments publish 90 days late.
const LATE_DAYS: i64 = 90;
/// The upstream is not asked for contracts without an action for this many years.
const MODIFIED_WITHIN_YEARS: i32 = 5;
/// How many records of each kind an answer holds at most.
const ROWS_MAX: usize = 50;

/// Arguments of `delta_digest`, besides those of the filter.
#[derive(Clone, Debug, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub struct Arguments {
    /// Contracts that end within this many days from now: 90 and 180 are the usual windows.
    #[serde(default = "expiring_default")]
    #[schemars(range(min = 1, max = 365))]
    pub expiring_days: i64,
}

fn expiring_default() -> i64 {
    90
}

/// The numbers of contracts.
#[derive(Clone, Debug, Default, Serialize, JsonSchema)]
pub struct Counts {
    /// New awards.
    pub new: usize,
    /// Modifications of awards.
    pub modified: usize,
    /// Contracts that end within the window.
    pub expiring: usize,
}

/// The contracts of the last and the next days.
#[derive(Clone, Debug, Serialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct Digest {
    /// The days of new and modified contracts.
    #[serde(flatten)]
    pub period: Period,
    /// The last day of the window in which contracts expire.
    pub expiring_to: String,
    /// How many contracts there are.
    pub counts: Counts,
    /// The sum of all changes of obligations in dollars.
    pub amount_delta: f64,
    /// New awards, the largest first.
    pub new: Vec<Changed>,
    /// Modifications, those with the largest change of dollars first.
    pub modified: Vec<Changed>,
    /// Contracts that end within the window, the next first.
    pub expiring: Vec<Shown>,
    /// Whether the upstream was asked for the expiring contracts; otherwise they are those that are recorded here.
    pub live: bool,
    /// How complete the data is.
    #[serde(flatten)]
    pub completeness: Completeness,
}

impl Read for Arguments {
    type Service = Awards;
    type Answer = Digest;

    const FILTER: &'static [&'static str] = &["naics"];
    const HAS_DAYS: bool = true;

    fn definition() -> Definition {
        Definition {
            name: "delta_digest",
            path: "/v1/delta_digest",
            summary: "New, modified and expiring contracts in one answer.",
            when: "Use it for a summary of a period, or for contracts that end soon.",
            description: "New and modified contracts are those recorded within the days. Expiring are contracts, not vehicles for orders, whose \
                exercised periods end between now and `expiringDays`. If more was recorded than is read, the note says so.",
            example: json!({ "naics": "54", "days": 7, "expiringDays": 90 }),
            ..Definition::read()
        }
    }

    async fn answer(self, filter: Filter, reader: &mut Reader<Awards>) -> Result<Digest, Problem> {
        let window = reader.window(LATE_DAYS).await?;
        // An action of long ago that is recorded only now is no news of these days.
        let mut changes = reader.count(filter.criteria(), window.before).await?;
        changes.retain(|change| reported_day(change) >= window.earliest.as_str());
        let cents = changes.iter().fold(0_i64, |sum, change| sum.saturating_add(change.details.amount_delta.cents));
        let amount_delta = Dollars { cents }.as_f64();
        let (mut new, mut modified): (Vec<Change>, Vec<Change>) = changes.into_iter().partition(|change| event_of(change) == "new");
        let largest = |change: &Change| change.details.amount_delta.cents.unsigned_abs();
        for changes in [&mut new, &mut modified] {
            changes.sort_by(|a, b| largest(b).cmp(&largest(a)).then_with(|| a.seq.cmp(&b.seq)));
        }
        let last = reader.today().checked_add(self.expiring_days.days()).unwrap_or(Date::MAX);
        let (mut expiring, live) = expiring(&filter, last, reader).await?;
        let counts = Counts { new: new.len(), modified: modified.len(), expiring: expiring.len() };
        let rows = reader.rows(ROWS_MAX);
        expiring.truncate(rows);
        Ok(Digest {
            period: window.period,
            expiring_to: last.to_string(),
            counts,
            amount_delta,
            new: shown(new.into_iter().take(rows)),
            modified: shown(modified.into_iter().take(rows)),
            expiring,
            live,
            completeness: reader.completeness().await?,
        })
    }
}

/// The contracts that end between today and `last`, and whether the upstream was asked for them.
async fn expiring(filter: &Filter, last: Date, reader: &mut Reader<Awards>) -> Result<(Vec<Shown>, bool), Problem> {
    let today = reader.today();
    let (from, to) = (today.to_string(), last.to_string());
    let is_within = |end: &str| from.as_str() <= end && end <= to.as_str();
    let first = today.saturating_sub(MODIFIED_WITHIN_YEARS.years());
    let question = question(&filter.naics, "", first, today, AwardOrder::EndingAfter(today));
    let mut found: Option<Vec<Shown>> = None;
    if let Some(facts) = reader.ask(USASPENDING, question).await {
        let awards: Vec<Shown> = facts.iter().filter_map(listed).collect();
        // An upstream that lists only contracts that ended earlier did not understand the search.
        if facts.is_empty() || awards.iter().any(|award| award.end >= from) {
            found = Some(awards.into_iter().filter(|award| is_within(&award.end)).collect());
        } else {
            reader.note(format!("{USASPENDING}: its answer does not fit the question"));
        }
    }
    let live = found.is_some();
    let criteria = Criteria::new(vec![TermQuery::Exact("end", months(today, last))], |change: &Change| {
        !change.record.vehicle && is_within(&change.record.end) && filter.takes(&change.record)
    });
    let changes = reader.count(criteria, Seq(0)).await?;
    let recorded: Vec<Award> = reader.unchanged(changes).await?;
    // Recorded contracts are added, because the upstream gives one page.
    let mut expiring = found.unwrap_or_default();
    let known: HashSet<String> = expiring.iter().map(|award| award.id.clone()).collect();
    expiring.extend(recorded.into_iter().filter(|award| !known.contains(&award.id)).map(Shown::from));
    expiring.sort_by(|a, b| (&a.end, &a.id).cmp(&(&b.end, &b.id)));
    Ok((expiring, live))
}

/// The months between two days, as the index of terms writes them.
fn months(from: Date, to: Date) -> Vec<String> {
    let mut out = Vec::new();
    let mut month = from.first_of_month();
    while month <= to {
        out.push(month.strftime("%Y-%m").to_string());
        let Ok(next) = month.checked_add(1.month()) else { break };
        month = next;
    }
    out
}

#[cfg(test)]
mod tests {
    use jiff::civil::date;

    use super::*;

    /// Proves that a window has all its months, including those of its first and last day.
    #[test]
    fn windows() {
        assert_eq!(months(date(2026, 11, 30), date(2027, 2, 1)), ["2026-11", "2026-12", "2027-01", "2027-02"]);
        assert_eq!(months(date(2026, 11, 1), date(2026, 11, 1)), ["2026-11"]);
    }
}
