//! `GET /v1/competitor_watch`: what one contractor has, wins and loses.

use std::cmp::Reverse;
use std::collections::{BTreeMap, BTreeSet, HashSet};

use jiff::ToSpan;
use jiff::tz::TimeZone;
use schemars::JsonSchema;
use schemas::error_code::ErrorCode;
use schemas::facts::FactData;
use schemas::facts::awards::AwardFact;
use schemas::views::awards::Award;
use serde::{Deserialize, Serialize};
use serde_json::json;
use upstreams::live::AwardOrder;

use super::filter::Filter;
use super::records::{Changed, Shown, dollars};
use super::search::{USASPENDING, question};
use super::{FEED, SOURCE};
use feed::notes::notes;
use feed::position::position;
use feed::query::{DIGEST_MAX, Item, newest};
use operation::problem::Problem;
use operation::{Answer, Call, Definition, Method, Operation, Price};

/// How far back the upstream is asked for awards.
const BACKFILL_YEARS: i32 = 3;
/// Agencies and industry codes that are named.
const NAMED_MAX: usize = 10;

/// Arguments of `competitor_watch`.
#[derive(Clone, Debug, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub struct Arguments {
    /// Part of the name of the contractor, or of its parent.
    #[schemars(length(min = 2, max = 200))]
    pub contractor: String,
    /// How many changes and awards to give at most, of each.
    #[serde(default = "limit_default")]
    #[schemars(range(min = 1, max = 200))]
    pub limit: usize,
    /// Answer as of this time: a date YYYY-MM-DD (its end in UTC) or an RFC 3339 time, not later than now.
    pub as_of: Option<String>,
}

fn limit_default() -> usize {
    25
}

/// Who a name stands for.
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

/// Dollars by agency or industry code.
#[derive(Clone, Debug, Serialize, JsonSchema)]
pub struct Sum {
    /// The agency, or the code.
    pub name: String,
    /// Awards.
    pub awards: usize,
    /// Dollars obligated in total.
    pub amount: f64,
}

/// A contractor.
#[derive(Clone, Debug, Serialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct Watch {
    /// As asked for.
    pub contractor: String,
    /// Whom the name stands for.
    pub recipients: Vec<Recipient>,
    /// How many awards are known.
    pub awards_count: usize,
    /// Dollars obligated on them in total.
    pub amount: f64,
    /// The agencies that buy most.
    pub agencies: Vec<Sum>,
    /// The industry codes with most.
    pub naics: Vec<Sum>,
    /// The latest changes, the last recorded first.
    pub changes: Vec<Changed>,
    /// The largest awards.
    pub awards: Vec<Shown>,
    /// Whether the upstream was asked for older awards; else the awards are those recorded here.
    pub live: bool,
    /// What to know about the answer.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub note: Option<String>,
}

/// The operation.
#[must_use]
pub fn operation() -> Operation {
    let words = Definition {
        name: "competitor_watch",
        method: Method::Get,
        path: "/v1/competitor_watch",
        summary: "One contractor: its awards, who buys them, and the latest changes.",
        description: "Names are matched by part, in any case, for recipients and their parents; `recipients` says whom that takes in, with their \
            unique entity ids.",
        price: Price::Free,
        tool: true,
        counted: true,
        list: "changes",
        errors: &[ErrorCode::AsOfInvalid],
        example: json!({ "contractor": "federal" }),
        aliases: &[],
    };
    Operation::define::<Arguments, Watch, _, _>(words, answer)
}

async fn answer(call: Call, arguments: Arguments) -> Result<Answer, Problem> {
    let ctx = &call.context;
    let at = position(ctx, &SOURCE, arguments.as_of.as_deref()).await?;
    let mut told = notes(&call, &SOURCE, &at).await?;
    let filter = Filter { recipient: Some(arguments.contractor.clone()), ..Filter::default() };
    let found = newest(ctx, &FEED, &at, &filter, told.after, DIGEST_MAX).await?;
    told.add(found.sums_note());
    let changes = found.changes;
    let mut awards = FEED.still_current(&at, changes.clone()).await?;
    let mut live = false;
    if arguments.as_of.is_none() {
        // Older awards, which no action has brought here yet.
        let today = at.now.to_zoned(TimeZone::UTC).date();
        let first = today.saturating_sub(BACKFILL_YEARS.years());
        let question = question(&[], &arguments.contractor, first, today, AwardOrder::Largest);
        if let Some(facts) = told.look_up(&call, USASPENDING, question, &at).await {
            live = true;
            let known: HashSet<String> = awards.iter().map(|award| award.id.clone()).collect();
            awards.extend(facts.iter().filter_map(|fact| match fact {
                FactData::Award(award) if !known.contains(&award.award_id) => Some(of_fact(award)),
                _ => None,
            }));
        }
    }
    awards.sort_by(|a, b| b.amount_cents.cmp(&a.amount_cents).then_with(|| a.id.cmp(&b.id)));
    let recipients: BTreeSet<Recipient> = awards
        .iter()
        .map(|award| Recipient {
            name: award.recipient.clone(),
            uei: award.recipient_uei.clone(),
            parent: award.parent_recipient.clone(),
            parent_uei: award.parent_recipient_uei.clone(),
        })
        .collect();
    let cents = awards.iter().filter_map(|award| award.amount_cents).fold(0, i64::saturating_add);
    let (agencies, naics) = (sums(&awards, |award| &award.agency), sums(&awards, |award| &award.naics));
    let (limit, awards_count) = (told.limit(arguments.limit), awards.len());
    let shown = changes.into_iter().take(limit);
    Answer::json(&Watch {
        contractor: arguments.contractor,
        recipients: recipients.into_iter().collect(),
        awards_count,
        amount: dollars(cents),
        agencies,
        naics,
        changes: shown.map(|change| Item { change, before: None }.into()).collect(),
        awards: awards.into_iter().take(limit).map(Shown::from).collect(),
        live,
        note: told.note(),
    })
}

/// An award as the upstream has it now, as far as a watch needs it.
fn of_fact(fact: &AwardFact) -> Award {
    Award {
        id: fact.award_id.clone(),
        piid: fact.piid.clone(),
        description: fact.description.clone(),
        recipient: fact.recipient.clone(),
        recipient_uei: fact.recipient_uei.clone(),
        agency: fact.agency.clone(),
        sub_agency: fact.sub_agency.clone(),
        naics: fact.naics.clone(),
        naics_description: fact.naics_description.clone(),
        psc: fact.psc.clone(),
        amount_cents: fact.amount_cents,
        signed: fact.signed.clone(),
        start: fact.start.clone(),
        end: fact.end.clone(),
        place_state: fact.place_state.clone(),
        url: fact.url.clone(),
        ..Award::default()
    }
}

/// Awards and dollars by what `of` says, those with most dollars first.
fn sums(awards: &[Award], of: impl Fn(&Award) -> &String) -> Vec<Sum> {
    let mut all: BTreeMap<&String, (usize, i64)> = BTreeMap::new();
    for award in awards.iter().filter(|award| !of(award).is_empty()) {
        let (count, cents) = all.entry(of(award)).or_default();
        *count += 1;
        *cents = cents.saturating_add(award.amount_cents.unwrap_or(0));
    }
    let mut all: Vec<(&String, (usize, i64))> = all.into_iter().collect();
    all.sort_by_key(|(_, (awards, cents))| Reverse((*cents, *awards)));
    all.into_iter().take(NAMED_MAX).map(|(name, (awards, cents))| Sum { name: name.clone(), awards, amount: dollars(cents) }).collect()
}
