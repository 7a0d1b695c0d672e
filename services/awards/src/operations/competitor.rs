//! `GET /v1/competitor_watch`: the awards of one contractor, and their latest changes.

use std::cmp::Reverse;
use std::collections::{BTreeMap, BTreeSet, HashSet};

use jiff::ToSpan;
use schemars::JsonSchema;
use schemas::position::Seq;
use schemas::views::awards::Award;
use serde::{Deserialize, Serialize};
use serde_json::json;
use texts::folding::reading_order;
use upstreams::live::AwardOrder;

use super::filter::Filter;
use super::records::{Changed, ShownAward, dollars};
use super::search::{USASPENDING, question};
use super::watchable_feed::{Awards, WatchedEntity};
use feed::answer_changes::shown;
use feed::filter::Filter as _;
use feed::query::DIGEST_MAX;
use operation::Definition;
use operation::problem::Problem;
use reads::read::{Read, Reader};

/// How many years back the upstream is asked for awards.
const BACKFILL_YEARS: i32 = 3;
/// How many awards the upstream is asked for at most.
const AWARDS_MAX: usize = 300;
/// How many agencies and industry codes an answer names at most.
const NAMED_MAX: usize = 10;

/// Arguments of `competitor_watch`: the contractor.
#[derive(Clone, Debug, Deserialize, JsonSchema)]
#[serde(transparent)]
pub struct Arguments(WatchedEntity);

/// A recipient whose name, or whose parent's name, matches.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct Recipient {
    /// Legal name.
    pub name: String,
    /// Unique entity id.
    pub uei: String,
    /// Legal name of its parent.
    pub parent: String,
    /// Unique entity id of the parent.
    pub parent_uei: String,
}

/// The awards of one agency or industry code.
#[derive(Clone, Debug, Serialize, JsonSchema)]
pub struct Sum {
    /// The agency or the code.
    pub name: String,
    /// The number of awards.
    pub awards: usize,
    /// The total obligation in dollars.
    pub amount: f64,
}

/// A contractor.
#[derive(Clone, Debug, Serialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct Watch {
    /// The contractor, as given.
    pub contractor: String,
    /// The recipients that match.
    pub recipients: Vec<Recipient>,
    /// The number of awards that are known.
    pub awards_count: usize,
    /// The total obligation of these awards in dollars.
    pub amount: f64,
    /// The agencies with the largest obligations.
    pub agencies: Vec<Sum>,
    /// The industry codes with the largest obligations.
    pub naics: Vec<Sum>,
    /// The latest changes, the last recorded first.
    pub changes: Vec<Changed>,
    /// The largest awards.
    pub awards: Vec<ShownAward>,
    /// Whether there are more awards than those that are counted here; a note says so then.
    pub truncated: bool,
    /// Whether the upstream was asked for older awards; otherwise the awards are those recorded here.
    pub live: bool,
}

impl Read for Arguments {
    type Service = Awards;
    type Answer = Watch;

    const LIMIT: Option<usize> = Some(25);

    fn definition() -> Definition {
        Definition {
            name: "competitor_watch",
            path: "/v1/competitor_watch",
            summary: "One contractor: its awards, who buys them, and the latest changes.",
            when: "Use it for questions about one company.",
            description: "Names of recipients and of their parents are matched by part, in any case. `recipients` lists the names that match, with \
                their unique entity ids. `changes` has changes that report an action of more than 120 days before they were recorded only with \
                `includeBackfill`; their awards count in any case. `limit` applies to changes and to awards. Counts and sums cover the awards recorded here and the \
                300 largest that USAspending lists; `truncated` says whether there are more.",
            list: "changes",
            example: json!({ "contractor": "federal" }),
            ..Definition::read()
        }
    }

    fn filter(&self, given: Filter) -> Result<Filter, Problem> {
        Ok(Filter { recipient: Some(self.0.contractor.clone()), include_backfill: self.0.include_backfill, ..given })
    }

    async fn answer(self, filter: Filter, reader: &mut Reader<Awards>) -> Result<Watch, Problem> {
        let contractor = self.0.contractor;
        let found = reader.newest(filter.criteria(), Seq(0), DIGEST_MAX).await?;
        let is_all_read = found.is_complete();
        reader.note(found.sums_note());
        let mut changes = found.changes;
        let mut awards = reader.unchanged(changes.clone()).await?;
        changes.retain(|change| filter.selects(change));
        // Older awards, of which no action was recorded here.
        let today = reader.today();
        let first = reader.live_from(today.saturating_sub(BACKFILL_YEARS.years()), today);
        let question = question(Vec::new(), contractor.clone(), Vec::new(), (first, today), AwardOrder::Largest);
        let listed = reader.ask(USASPENDING, &question, AWARDS_MAX).await;
        let (live, mut truncated) = (listed.is_some(), !is_all_read);
        if let Some(listed) = listed {
            let taken = listed.take(AWARDS_MAX);
            if taken.is_truncated {
                truncated = true;
                reader.note(format!("{USASPENDING} has more awards of the contractor; those with the largest amounts are here"));
            }
            let known: HashSet<String> = awards.iter().map(|award| award.id.clone()).collect();
            awards.extend(taken.items.into_iter().filter(|award| !known.contains(&award.id)));
        }
        awards.sort_by(|a, b| b.amount_cents.cmp(&a.amount_cents).then_with(|| a.id.cmp(&b.id)));
        let recipients: BTreeSet<Recipient> = awards.iter().map(Recipient::of).collect();
        let cents = awards.iter().filter_map(|award| award.amount_cents).fold(0, i64::saturating_add);
        let (agencies, naics) = (sums(&awards, |award| &award.agency), sums(&awards, |award| &award.naics));
        let (limit, awards_count) = (reader.limit(), awards.len());
        Ok(Watch {
            contractor,
            recipients: recipients.into_iter().collect(),
            awards_count,
            amount: dollars(cents),
            agencies,
            naics,
            changes: shown(changes.into_iter().take(limit)),
            awards: awards.into_iter().take(limit).map(ShownAward::from).collect(),
            truncated,
            live,
        })
    }
}

impl Recipient {
    fn of(award: &Award) -> Self {
        Self {
            name: award.recipient.clone(),
            uei: award.recipient_uei.clone(),
            parent: award.parent_recipient.clone(),
            parent_uei: award.parent_recipient_uei.clone(),
        }
    }
}

/// The awards and dollars by the field that `name_of` returns, the largest sum first.
fn sums(awards: &[Award], name_of: impl Fn(&Award) -> &String) -> Vec<Sum> {
    let mut all: BTreeMap<&String, (usize, i64)> = BTreeMap::new();
    for award in awards.iter().filter(|award| !name_of(award).is_empty()) {
        let (count, cents) = all.entry(name_of(award)).or_default();
        *count += 1;
        *cents = cents.saturating_add(award.amount_cents.unwrap_or(0));
    }
    let mut all: Vec<(&String, (usize, i64))> = all.into_iter().collect();
    let place = |(_, (awards, cents)): &(&String, (usize, i64))| Reverse((*cents, *awards));
    all.sort_by(|a, b| place(a).cmp(&place(b)).then_with(|| reading_order(a.0).cmp(&reading_order(b.0))));
    all.into_iter().take(NAMED_MAX).map(|(name, (awards, cents))| Sum { name: name.clone(), awards, amount: dollars(cents) }).collect()
}
