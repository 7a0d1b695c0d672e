//! `GET /v1/delta_digest`: the new grants and trials of the last days.

use std::cmp::Reverse;
use std::collections::BTreeMap;

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use serde_json::json;
use texts::folding::reading_order;

use super::filter::Filter;
use super::new_funding::{Counts, Fundings};
use super::records::{Grant, Trial};
use super::watchable_feed::Research;
use feed::query::DIGEST_MAX;
use operation::Definition;
use operation::problem::Problem;
use reads::read::{Completeness, Period, Read, Reader};

/// A record that was published at most this many days before the window counts as new in it: upstreams are polled daily, and some publish late.
const LATE_DAYS: i64 = 7;
/// How many records of each kind an answer holds at most.
const ROWS_MAX: usize = 25;
/// How many institutions and topics an answer names at most.
const NAMED_MAX: usize = 10;

/// Arguments of `delta_digest`: those of the filter.
#[derive(Clone, Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct Arguments {}

/// The share of one institution or topic in a digest.
#[derive(Clone, Debug, Default, Serialize, JsonSchema)]
pub struct Named {
    /// The institution, or the slug of the topic.
    pub name: String,
    /// The number of its new grants.
    pub grants: usize,
    /// The number of its new trials.
    pub trials: usize,
    /// The total of these grants in dollars.
    pub amount: i64,
}

/// The new grants and trials of the last days.
#[derive(Clone, Debug, Serialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct Digest {
    /// The days of the digest.
    #[serde(flatten)]
    pub period: Period,
    /// How many grants and trials are new.
    pub counts: Counts,
    /// The number of records that were first recorded within the days and published more than a week before them; they are left out.
    pub older: usize,
    /// The total of the new grants in dollars.
    pub total_amount: i64,
    /// The institutions with most, by dollars, then by number.
    pub institutions: Vec<Named>,
    /// The topics with most.
    pub topics: Vec<Named>,
    /// The new grants, the largest first.
    pub grants: Vec<Grant>,
    /// The new trials, the last recorded first.
    pub trials: Vec<Trial>,
    /// How complete the data is.
    #[serde(flatten)]
    pub completeness: Completeness,
}

impl Read for Arguments {
    type Service = Research;
    type Answer = Digest;

    const FILTER: &'static [&'static str] = &["institution"];
    const HAS_DAYS: bool = true;

    fn definition() -> Definition {
        Definition {
            name: "delta_digest",
            path: "/v1/delta_digest",
            summary: "New grants and trials of the last days in one answer: counts, dollars, who has most, the largest.",
            when: "Use it for a summary of a period; for the single records use `new_funding`.",
            description: "A record is new if it was first recorded within the days and published at most a week before them. This excludes old \
                records that the first sync run took over; `older` counts them. With a large window and no institution only the newest few thousand changes are \
                read, and the note says so.",
            example: json!({ "days": 7 }),
            ..Definition::read()
        }
    }

    async fn answer(self, filter: Filter, reader: &mut Reader<Research>) -> Result<Digest, Problem> {
        let window = reader.window(LATE_DAYS).await?;
        let new = reader.new_records(&filter, window.before, DIGEST_MAX).await?;
        let mut records = new.records;
        let all = records.len();
        records.retain(|record| record.published >= window.earliest);
        let older = new.backfill + all - records.len();
        let (mut institutions, mut topics) = (BTreeMap::new(), BTreeMap::new());
        for record in &records {
            let is_grant = record.kind == "grant";
            add(&mut institutions, if is_grant { &record.org } else { &record.sponsor }, is_grant, record.amount);
            for topic in &record.topics {
                add(&mut topics, &topic.slug, is_grant, record.amount);
            }
        }
        let total_amount = records.iter().filter_map(|record| record.amount).fold(0, i64::saturating_add);
        let Fundings { mut grants, mut trials, counts } = Fundings::of(records);
        grants.sort_by(|a, b| b.amount.cmp(&a.amount).then_with(|| a.id.cmp(&b.id)));
        let rows = reader.rows(ROWS_MAX);
        grants.truncate(rows);
        trials.truncate(rows);
        let (institutions, topics, completeness) = (most(institutions), most(topics), reader.completeness().await?);
        Ok(Digest { period: window.period, counts, older, total_amount, institutions, topics, grants, trials, completeness })
    }
}

fn add(all: &mut BTreeMap<String, Named>, name: &str, is_grant: bool, amount: Option<i64>) {
    if name.is_empty() {
        return;
    }
    let named = all.entry(name.to_owned()).or_insert_with(|| Named { name: name.to_owned(), ..Named::default() });
    named.grants += usize::from(is_grant);
    named.trials += usize::from(!is_grant);
    named.amount = named.amount.saturating_add(amount.unwrap_or(0));
}

/// The names with the most funding: by dollars, then by number, then by name.
fn most(all: BTreeMap<String, Named>) -> Vec<Named> {
    let mut all: Vec<Named> = all.into_values().collect();
    let place = |named: &Named| Reverse((named.amount, named.grants + named.trials));
    all.sort_by(|a, b| place(a).cmp(&place(b)).then_with(|| reading_order(&a.name).cmp(&reading_order(&b.name))));
    all.truncate(NAMED_MAX);
    all
}
