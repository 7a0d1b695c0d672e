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

use super::filter::Filter;
use super::records::{Changed, ShownAward, amount_delta, event_of};
use super::search::{USASPENDING, question};
use super::watchable_feed::Awards;
use feed::answer_changes::shown;
use feed::filter::{Criteria, Element, Filter as _, TermQuery};
use operation::Definition;
use operation::problem::Problem;
use reads::read::{Completeness, Period, Read, Reader};

/// The upstream is not asked for contracts without an action for this many years.
const MODIFIED_WITHIN_YEARS: i32 = 5;
/// How many contracts that expire the upstream is asked for at most.
const EXPIRING_MAX: usize = 300;
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
    /// Changes recorded within the days that report actions of more than 120 days before, or old awards that were not recorded before. They are
    /// among `new` and `modified` only with `includeBackfill`.
    pub backfill: usize,
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
    /// The sum of all known changes of amounts in dollars.
    pub amount_delta: f64,
    /// New awards, the largest first.
    pub new: Vec<Changed>,
    /// Modifications, those with the largest change of dollars first.
    pub modified: Vec<Changed>,
    /// Contracts that end within the window, the next first.
    pub expiring: Vec<ShownAward>,
    /// Whether more contracts expire than those that are counted here; a note says so then.
    pub truncated: bool,
    /// Whether the upstream was asked for the expiring contracts; otherwise they are those that are recorded here.
    pub live: bool,
    /// How complete the data is.
    #[serde(flatten)]
    pub completeness: Completeness,
}

impl Read for Arguments {
    type Service = Awards;
    type Answer = Digest;

    const FILTER: &'static [&'static str] = &["naics", "includeBackfill"];
    const HAS_DAYS: bool = true;

    fn definition() -> Definition {
        Definition {
            name: "delta_digest",
            path: "/v1/delta_digest",
            summary: "New, modified and expiring contracts in one answer.",
            when: "Use it for a summary of a period, or for contracts that end soon.",
            description: "New and modified contracts are those recorded within the days. Changes that report an action of more than 120 days before they \
                were recorded are counted in `counts.backfill` and left out; `includeBackfill=true` includes them. Expiring are contracts, not vehicles for orders, whose \
                exercised periods end between now and `expiringDays`. If more was recorded than is read, the note says so.",
            example: json!({ "naics": "54", "days": 7, "expiringDays": 90 }),
            ..Definition::read()
        }
    }

    async fn answer(self, filter: Filter, reader: &mut Reader<Awards>) -> Result<Digest, Problem> {
        let window = reader.window(0).await?;
        let mut changes = reader.count(filter.criteria(), window.before).await?;
        let backfill = changes.iter().filter(|change| change.is_backfill()).count();
        changes.retain(|change| filter.selects(change));
        let delta = |change: &Element<Award>| amount_delta(change).map_or(0, |dollars| dollars.cents);
        let cents = changes.iter().fold(0_i64, |sum, change| sum.saturating_add(delta(change)));
        let total = Dollars { cents }.as_f64();
        let (mut new, mut modified): (Vec<Element<Award>>, Vec<Element<Award>>) =
            changes.into_iter().partition(|change| event_of(change) == "new");
        let largest = |change: &Element<Award>| delta(change).unsigned_abs();
        for changes in [&mut new, &mut modified] {
            changes.sort_by(|a, b| largest(b).cmp(&largest(a)).then_with(|| a.seq.cmp(&b.seq)));
        }
        let last = reader.today().checked_add(self.expiring_days.days()).unwrap_or(Date::MAX);
        let Expiring { awards: mut expiring, live, truncated } = expiring(&filter, last, reader).await?;
        let counts = Counts { new: new.len(), modified: modified.len(), expiring: expiring.len(), backfill };
        let rows = reader.rows(ROWS_MAX);
        expiring.truncate(rows);
        Ok(Digest {
            period: window.period,
            expiring_to: last.to_string(),
            counts,
            amount_delta: total,
            new: shown(new.into_iter().take(rows)),
            modified: shown(modified.into_iter().take(rows)),
            expiring,
            truncated,
            live,
            completeness: reader.completeness().await?,
        })
    }
}

/// The contracts that end between two days.
struct Expiring {
    awards: Vec<ShownAward>,
    /// Whether the upstream was asked.
    live: bool,
    /// Whether there are more at the upstream.
    truncated: bool,
}

/// The contracts that end between today and `last`.
async fn expiring(filter: &Filter, last: Date, reader: &mut Reader<Awards>) -> Result<Expiring, Problem> {
    let today = reader.today();
    let (from, to) = (today.to_string(), last.to_string());
    let is_within = |end: &str| from.as_str() <= end && end <= to.as_str();
    let first = reader.live_from(today.saturating_sub(MODIFIED_WITHIN_YEARS.years()), today);
    let question = question(filter.naics.clone(), String::new(), Vec::new(), (first, today), AwardOrder::EndingAfter(today));
    let (mut found, mut truncated) = (None, false);
    if let Some(collected) = reader.ask(USASPENDING, &question, EXPIRING_MAX).await {
        let taken = collected.take(EXPIRING_MAX);
        // An upstream that lists only contracts that ended earlier did not understand the search.
        if taken.items.is_empty() || taken.items.iter().any(|award| award.end >= from) {
            // They come in the order of their ends, so one that ends later comes after all that are wanted.
            truncated = taken.is_truncated && taken.items.last().is_none_or(|award| award.end <= to);
            if truncated {
                reader.note(format!(
                    "{USASPENDING} has more contracts that expire; the next ones, and those recorded here, are in this answer"
                ));
            }
            let awards = taken.items.into_iter().filter(|award| is_within(&award.end)).collect();
            found = Some(reader.complete(awards).await?);
        } else {
            reader.note(format!("{USASPENDING}: its answer does not fit the question"));
        }
    }
    let live = found.is_some();
    let criteria = Criteria::new(vec![TermQuery::Exact("end", months(today, last))], |change: &Element<Award>| {
        !change.record.vehicle && is_within(&change.record.end) && filter.takes(&change.record)
    });
    let changes = reader.count(criteria, Seq(0)).await?;
    let recorded: Vec<Award> = reader.unchanged(changes).await?;
    // Recorded contracts are added: the upstream may have more than it was asked for, and its search may lag.
    let mut awards: Vec<Award> = found.unwrap_or_default();
    let known: HashSet<String> = awards.iter().map(|award| award.id.clone()).collect();
    awards.extend(recorded.into_iter().filter(|award| !known.contains(&award.id)));
    awards.sort_by(|a, b| (&a.end, &a.id).cmp(&(&b.end, &b.id)));
    Ok(Expiring { awards: awards.into_iter().map(ShownAward::from).collect(), live, truncated })
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
