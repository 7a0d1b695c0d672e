//! `GET /v1/delta_digest`: what the last days brought.

use feed::Feeds;
use operation::context::Part;
use std::cmp::Reverse;
use std::collections::BTreeMap;

use schemars::JsonSchema;
use schemas::error_code::ErrorCode;
use schemas::position::Seq;
use serde::{Deserialize, Serialize};
use serde_json::json;

use super::filter::Filter;
use super::new_funding::{Counts, New, split};
use super::records::{Grant, Trial};
use super::{FEED, SOURCE};
use feed::notes::notes;
use feed::position::{day_text, position};
use feed::query::{DIGEST_MAX, newest, since_days};
use operation::problem::Problem;
use operation::{Answer, Call, Definition, Method, Operation, Price};

/// What was made public so many days before the window counts as new in it: upstreams are read daily, and some publish late.
const LATE_DAYS: i64 = 7;
/// Rows of each kind that are shown.
const SHOWN_MAX: usize = 25;
/// Institutions and topics that are named.
const NAMED_MAX: usize = 10;

/// Arguments of `delta_digest`.
#[derive(Clone, Debug, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub struct Arguments {
    /// Part of the name of a grant's organisation, a trial's sponsor or one of its sites.
    #[schemars(length(min = 2, max = 200))]
    pub institution: Option<String>,
    /// How many days back, today included.
    #[serde(default = "days_default")]
    #[schemars(range(min = 1, max = 90))]
    pub days: i64,
    /// Answer as of this time: a date YYYY-MM-DD (its end in UTC) or an RFC 3339 time, not later than now.
    pub as_of: Option<String>,
}

fn days_default() -> i64 {
    7
}

/// Something that stands out in a digest.
#[derive(Clone, Debug, Serialize, JsonSchema)]
pub struct Named {
    /// The institution, or the topic's slug.
    pub name: String,
    /// Its new grants.
    pub grants: usize,
    /// Its new trials.
    pub trials: usize,
    /// Dollars of these grants.
    pub amount: i64,
}

/// What the last days brought.
#[derive(Clone, Debug, Serialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct Digest {
    /// The first day, YYYY-MM-DD.
    pub from: String,
    /// The last day.
    pub to: String,
    /// New grants and trials.
    pub counts: Counts,
    /// Dollars of the new grants.
    pub total_amount: i64,
    /// The institutions with most, by dollars, then by number.
    pub institutions: Vec<Named>,
    /// The topics with most.
    pub topics: Vec<Named>,
    /// The largest of the new grants.
    pub grants: Vec<Grant>,
    /// The last of the new trials.
    pub trials: Vec<Trial>,
    /// The last day up to which every upstream has been read completely; empty before the first complete reading.
    pub through_date: String,
    /// How many complete readings of upstreams stand behind that.
    pub snapshot_count: u64,
    /// What to know about the answer.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub note: Option<String>,
}

/// The operation.
#[must_use]
pub fn operation() -> Operation {
    let words = Definition {
        name: "delta_digest",
        method: Method::Get,
        path: "/v1/delta_digest",
        summary: "New grants and trials of the last days in one answer: counts, dollars, who has most, the largest.",
        description: "New is what was recorded as new within the days and made public at most a week before them, so that what was taken over \
            at the first reading is left out. With a large window and no institution the newest few thousand changes are looked at, and the \
            note says so.",
        price: Price::Free,
        tool: true,
        counted: true,
        list: "",
        errors: &[ErrorCode::AsOfInvalid],
        example: json!({ "days": 7 }),
        aliases: &[],
    };
    Operation::define::<Arguments, Digest, _, _>(words, answer)
}

async fn answer(call: Call, arguments: Arguments) -> Result<Answer, Problem> {
    let ctx = &call.context;
    let at = position(ctx, &SOURCE, arguments.as_of.as_deref()).await?;
    let mut told = notes(&call, &SOURCE, &at).await?;
    let (from, before) = since_days(ctx, &SOURCE, &at, arguments.days - 1).await?;
    let (earliest, _) = since_days(ctx, &SOURCE, &at, arguments.days - 1 + LATE_DAYS).await?;
    let filter = New(Filter { institution: arguments.institution, ..Filter::default() });
    let found = newest(ctx, &FEED, &at, &filter, Seq(before.0.max(told.after.0)), DIGEST_MAX).await?;
    told.add(found.sums_note());
    let mut records = FEED.records_at(&at, found.changes).await?;
    records.retain(|record| record.published >= earliest);
    let (mut institutions, mut topics) = (BTreeMap::new(), BTreeMap::new());
    for record in &records {
        let institution = if record.kind == "grant" { &record.org } else { &record.sponsor };
        add(&mut institutions, institution, record.kind == "grant", record.amount);
        for topic in &record.topics {
            add(&mut topics, &topic.slug, record.kind == "grant", record.amount);
        }
    }
    let total_amount = records.iter().filter_map(|record| record.amount).fold(0, i64::saturating_add);
    let (mut grants, mut trials) = split(records.into_iter());
    let counts = Counts { grants: grants.len(), trials: trials.len() };
    grants.sort_by(|a, b| b.amount.cmp(&a.amount).then_with(|| a.id.cmp(&b.id)));
    let shown = told.limit(SHOWN_MAX);
    grants.truncate(shown);
    trials.truncate(shown);
    let standing = Feeds::of(ctx).completeness(&SOURCE, at.view.as_ref(), at.seq, at.last).await?;
    Answer::json(&Digest {
        from,
        to: day_text(at.now.as_millisecond()),
        counts,
        total_amount,
        institutions: most(institutions),
        topics: most(topics),
        grants,
        trials,
        through_date: standing.through_date,
        snapshot_count: standing.snapshot_count,
        note: told.note(),
    })
}

fn add(all: &mut BTreeMap<String, Named>, name: &str, is_grant: bool, amount: Option<i64>) {
    if name.is_empty() {
        return;
    }
    let named = all.entry(name.to_owned()).or_insert_with(|| Named { name: name.to_owned(), grants: 0, trials: 0, amount: 0 });
    named.grants += usize::from(is_grant);
    named.trials += usize::from(!is_grant);
    named.amount = named.amount.saturating_add(amount.unwrap_or(0));
}

/// Those with most, by dollars, then by number, then by name.
fn most(all: BTreeMap<String, Named>) -> Vec<Named> {
    let mut all: Vec<Named> = all.into_values().collect();
    all.sort_by_key(|named| Reverse((named.amount, named.grants + named.trials)));
    all.truncate(NAMED_MAX);
    all
}
