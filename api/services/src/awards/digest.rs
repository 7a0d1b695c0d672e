//! `GET /v1/delta_digest`: what the last days brought, and what expires in the next.

use feed::Feeds;
use operation::context::Part;
use std::collections::HashSet;

use jiff::ToSpan;
use jiff::civil::Date;
use jiff::tz::TimeZone;
use schemars::JsonSchema;
use schemas::error_code::ErrorCode;
use schemas::position::Seq;
use schemas::views::awards::{Award, Dollars};
use serde::{Deserialize, Serialize};
use serde_json::json;
use upstreams::live::AwardOrder;

use super::filter::{Codes, Filter};
use super::records::{Changed, Shown, day_told, event_of};
use super::search::{USASPENDING, question, shown};
use super::{Change, FEED, SOURCE};
use feed::filter::{self, TermQuery};
use feed::notes::notes;
use feed::position::{day_text, position};
use feed::query::{DIGEST_MAX, Item, newest, since_days};
use operation::problem::Problem;
use operation::{Answer, Call, Definition, Method, Operation, Price};

/// What was done so many days before the window counts in it: some departments publish 90 days late.
const LATE_DAYS: i64 = 90;
/// Contracts without an action for so many years are not asked for.
const TOUCHED_YEARS: i32 = 5;
/// Rows of each kind that are shown.
const SHOWN_MAX: usize = 50;

/// Arguments of `delta_digest`.
#[derive(Clone, Debug, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub struct Arguments {
    /// Beginnings of industry codes, two to six digits, separated by commas, or an array of them.
    #[serde(default)]
    pub naics: Codes,
    /// How many days back, today included.
    #[serde(default = "days_default")]
    #[schemars(range(min = 1, max = 90))]
    pub days: i64,
    /// Contracts that end within so many days from now: 90 and 180 are the usual windows.
    #[serde(default = "expiring_default")]
    #[schemars(range(min = 1, max = 365))]
    pub expiring_days: i64,
    /// Answer as of this time: a date YYYY-MM-DD (its end in UTC) or an RFC 3339 time, not later than now.
    pub as_of: Option<String>,
}

fn days_default() -> i64 {
    7
}

fn expiring_default() -> i64 {
    90
}

/// How many there were.
#[derive(Clone, Debug, Default, Serialize, JsonSchema)]
pub struct Counts {
    /// New awards.
    pub new: usize,
    /// Modifications of awards.
    pub modified: usize,
    /// Contracts that end within the window.
    pub expiring: usize,
}

/// What the last days brought.
#[derive(Clone, Debug, Serialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct Digest {
    /// The first day, YYYY-MM-DD.
    pub from: String,
    /// The last day.
    pub to: String,
    /// The last day of the window in which contracts expire.
    pub expiring_to: String,
    /// How many there were.
    pub counts: Counts,
    /// By how many dollars the obligations moved in all.
    pub amount_delta: f64,
    /// New awards, the largest first.
    pub new: Vec<Changed>,
    /// Modifications, those that move most dollars first.
    pub modified: Vec<Changed>,
    /// Contracts that end within the window, the next first.
    pub expiring: Vec<Shown>,
    /// Whether the upstream was asked for what expires; else it is what is recorded here.
    pub live: bool,
    /// The last day up to which every upstream has been read completely; empty before the first complete reading.
    pub through_date: String,
    /// How many complete readings of upstreams stand behind that.
    pub snapshot_count: u64,
    /// What to know about the answer.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub note: Option<String>,
}

/// Awards whose end lies within months.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
struct Expiring {
    filter: Filter,
    from: String,
    to: String,
    months: Vec<String>,
}

impl filter::Filter for Expiring {
    type Record = Award;

    fn matches(&self, change: &Change) -> bool {
        let end = change.record.end.as_str();
        !change.record.vehicle && self.from.as_str() <= end && end <= self.to.as_str() && self.filter.takes(&change.record)
    }

    fn term_queries(&self) -> Vec<TermQuery> {
        vec![TermQuery::Exact("end", self.months.clone())]
    }
}

/// The operation.
#[must_use]
pub fn operation() -> Operation {
    let words = Definition {
        name: "delta_digest",
        method: Method::Get,
        path: "/v1/delta_digest",
        summary: "New, modified and expiring contracts in one answer.",
        description: "New and modified are what was recorded within the days. Expiring are contracts, not vehicles for orders, whose exercised \
            periods end between now and `expiringDays`. Where more was recorded than is looked at, the note says so.",
        price: Price::Free,
        tool: true,
        counted: true,
        list: "",
        errors: &[ErrorCode::AsOfInvalid],
        example: json!({ "naics": "54", "days": 7, "expiringDays": 90 }),
        aliases: &[],
    };
    Operation::define::<Arguments, Digest, _, _>(words, answer)
}

async fn answer(call: Call, arguments: Arguments) -> Result<Answer, Problem> {
    let ctx = &call.context;
    let filter = Filter { naics: arguments.naics.0, ..Filter::default() }.checked()?;
    let at = position(ctx, &SOURCE, arguments.as_of.as_deref()).await?;
    let mut told = notes(&call, &SOURCE, &at).await?;
    let (from, before) = since_days(ctx, &SOURCE, &at, arguments.days - 1).await?;
    let found = newest(ctx, &FEED, &at, &filter, Seq(before.0.max(told.after.0)), DIGEST_MAX).await?;
    told.add(found.sums_note());
    // What was done long ago and is only now known here is no news of these days.
    let (oldest, _) = since_days(ctx, &SOURCE, &at, arguments.days - 1 + LATE_DAYS).await?;
    let changes: Vec<Change> = found.changes.into_iter().filter(|change| day_told(change) >= oldest.as_str()).collect();
    let cents = changes.iter().fold(0_i64, |sum, change| sum.saturating_add(change.details.amount_delta.cents));
    let amount_delta = Dollars { cents }.as_f64();
    let (mut new, mut modified): (Vec<Change>, Vec<Change>) = changes.into_iter().partition(|change| event_of(change) == "new");
    let largest = |change: &Change| change.details.amount_delta.cents.unsigned_abs();
    for changes in [&mut new, &mut modified] {
        changes.sort_by(|a, b| largest(b).cmp(&largest(a)).then_with(|| a.seq.cmp(&b.seq)));
    }
    let today = at.now.to_zoned(TimeZone::UTC).date();
    let last = today.checked_add(arguments.expiring_days.days()).unwrap_or(Date::MAX);
    let expiring = Expiring { filter, from: today.to_string(), to: last.to_string(), months: months(today, last) };
    let mut asked: Option<Vec<Shown>> = None;
    if arguments.as_of.is_none() {
        let first = today.saturating_sub(TOUCHED_YEARS.years());
        let question = question(&expiring.filter.naics, "", first, today, AwardOrder::EndingAfter(today));
        if let Some(facts) = told.look_up(&call, USASPENDING, question, &at).await {
            let is_within = |award: &Shown| expiring.from <= award.end && award.end <= expiring.to;
            // One that goes on elsewhere than it was told to is not believed.
            let is_right = facts.is_empty() || shown(&facts).any(|award| award.end >= expiring.from);
            asked = is_right.then(|| shown(&facts).filter(is_within).collect());
            if !is_right {
                told.add(Some(format!("{USASPENDING}: its answer does not fit the question")));
            }
        }
    }
    let live = asked.is_some();
    let found = newest(ctx, &FEED, &at, &expiring, told.after, DIGEST_MAX).await?;
    told.add(found.sums_note());
    let recorded = FEED.still_current(&at, found.changes).await?;
    // What is recorded here is in, too: the upstream gives one page.
    let mut expiring = asked.unwrap_or_default();
    let known: HashSet<String> = expiring.iter().map(|award| award.id.clone()).collect();
    expiring.extend(recorded.into_iter().filter(|award| !known.contains(&award.id)).map(Shown::from));
    expiring.sort_by(|a, b| (&a.end, &a.id).cmp(&(&b.end, &b.id)));
    let counts = Counts { new: new.len(), modified: modified.len(), expiring: expiring.len() };
    let rows = told.limit(SHOWN_MAX);
    expiring.truncate(rows);
    let show = |changes: Vec<Change>| changes.into_iter().take(rows).map(|change| Item { change, before: None }.into()).collect();
    let standing = Feeds::of(ctx).completeness(&SOURCE, at.view.as_ref(), at.seq, at.last).await?;
    Answer::json(&Digest {
        from,
        to: day_text(at.now.as_millisecond()),
        expiring_to: last.to_string(),
        counts,
        amount_delta,
        new: show(new),
        modified: show(modified),
        expiring,
        live,
        through_date: standing.through_date,
        snapshot_count: standing.snapshot_count,
        note: told.note(),
    })
}

/// The months between two days, as terms have them.
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

    /// Proves that the months of a window are all there, its ends included.
    #[test]
    fn windows() {
        assert_eq!(months(date(2026, 11, 30), date(2027, 2, 1)), ["2026-11", "2026-12", "2027-01", "2027-02"]);
        assert_eq!(months(date(2026, 11, 1), date(2026, 11, 1)), ["2026-11"]);
    }
}
