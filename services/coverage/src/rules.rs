//! Coverage leads: which businesses have just come to need a line of insurance, from the facts of carriers ([`carriers`]) and of the registers of states
//! ([`entities`]).
//!
//! All facts about a carrier or an entity are kept together, and its leads follow from them, so the order of facts does not matter. Leads of several
//! sources about one business are then put together ([`leads`]). The lines that follow are those of the data file of rules (`matching::mandates`).
//! Nothing depends on today: a trigger is recent if it was when it was observed first.

pub mod carriers;
pub mod entities;
pub mod leads;

use std::collections::BTreeMap;

use crate::record::{Evidence, Lead, Mandate, TABLES};
use jiff::civil::Date;
use jiff::tz::TimeZone;
use jiff::{Timestamp, ToSpan};
use matching::address::Address;
use matching::mandates::{Basis, Fact as RuleFact, Line};
use matching::same_business;
use schemas::avro;
use schemas::event::{Fact, FactKind};
use schemas::facts::businesses::BusinessFact;
use schemas::facts::carriers::CarrierFact;
use schemas::position::Seq;
use schemas::tables::Write;
use schemas::topics::{BUSINESSES, CARRIERS, CHANGES_COVERAGE, Topic};
use schemas::views::records::RecordTables;

use self::carriers::Carrier;
use self::entities::Entity;
use fold::records::{Read, Records, Rules, State};
use fold::service::Undecided;

/// The coverage service.
pub type Coverage = Records<CoverageRules>;

/// The rules of the coverage service.
pub struct CoverageRules;

/// A fact of one of the service's topics.
#[derive(Clone)]
pub enum CoverageFact {
    /// A fact of the topic `carriers`.
    Carrier(Box<CarrierFact>),
    /// A fact of the topic `businesses`.
    Business(Box<BusinessFact>),
}

/// A trigger counts if it was at most so many days old when it was observed first.
const NEW_DAYS: i64 = 90;
/// A trigger counts if it was at most so many days ahead when it was observed first.
const AHEAD_DAYS: i64 = 366;

impl Rules for CoverageRules {
    type Fact = CoverageFact;
    type Record = Lead;

    const NAME: &'static str = "coverage";
    const TABLES: &'static RecordTables = &TABLES;
    const INPUTS: &'static [Topic] = &[CARRIERS, BUSINESSES];
    const CHANGES: &'static Topic = &CHANGES_COVERAGE;

    fn read(topic: &Topic, value: &[u8]) -> Result<Fact<CoverageFact>, avro::Error> {
        if topic.name == CARRIERS.name {
            avro::decode(topic.name, value).map(|fact: Fact<CarrierFact>| fact.map(|data| CoverageFact::Carrier(Box::new(data))))
        } else {
            avro::decode(topic.name, value).map(|fact: Fact<BusinessFact>| fact.map(|data| CoverageFact::Business(Box::new(data))))
        }
    }

    /// The facts about the business, and the rows of the leads that follow if nothing else is known of it, which is so for most facts.
    fn reads(fact: &Fact<CoverageFact>) -> Vec<Read> {
        let (owner, leads) = match &fact.data {
            Some(CoverageFact::Carrier(data)) => {
                let (owner, mut carrier) = (carriers::owner(&data.dot), Carrier::default());
                carrier.observe(&fact.key, data, fact.observed_at);
                let leads = carrier.candidates(&owner);
                (Some(owner), leads)
            }
            Some(CoverageFact::Business(data)) => {
                let (owner, mut entity) = (entities::owner(&data.stream, &data.entity), Entity::default());
                entity.observe(&fact.key, data, fact.observed_at);
                let leads = entity.candidates(&owner);
                (Some(owner), leads)
            }
            None => (None, Candidates::new()),
        };
        let facts = [owner_key(&fact.key)].into_iter().chain(owner).map(Read::Source);
        facts.chain(leads.values().flat_map(leads::reads)).collect()
    }

    fn index(key: &str, value: &str, seq: Seq) -> Vec<Write> {
        leads::index(key, value, seq)
    }

    fn index_by_day(key: &str, value: &str, seq: Seq, recorded: Date) -> Vec<Write> {
        leads::index_by_day(key, value, seq, recorded)
    }

    fn decide(state: &mut State<'_, Self>, fact: &Fact<CoverageFact>) -> Result<(), Undecided> {
        match (fact.kind, &fact.data) {
            (FactKind::Observed, Some(CoverageFact::Carrier(data))) => {
                let owner = remember_owner(state, &fact.key, carriers::owner(&data.dot))?;
                change(state, &owner, |carrier: &mut Carrier| carrier.observe(&fact.key, data, fact.observed_at))
            }
            (FactKind::Observed, Some(CoverageFact::Business(data))) => {
                let owner = entities::owner(&data.stream, &data.entity);
                if state.source::<Entity>(&owner)?.is_none() && !entities::is_trigger(data, fact.observed_at) {
                    return Ok(());
                }
                let owner = remember_owner(state, &fact.key, owner)?;
                change(state, &owner, |entity: &mut Entity| entity.observe(&fact.key, data, fact.observed_at))
            }
            (FactKind::Observed, None) => Err(Undecided::Poison("an observed fact without its record".to_owned())),
            (FactKind::Withdrawn | FactKind::Superseded, _) => {
                let Some(owner) = state.source::<String>(&owner_key(&fact.key))? else { return Ok(()) };
                match owner.starts_with(carriers::OWNER) {
                    true => change(state, &owner, |carrier: &mut Carrier| carrier.withdraw(&fact.key)),
                    false => change(state, &owner, |entity: &mut Entity| entity.withdraw(&fact.key)),
                }
            }
            _ => Ok(()),
        }
    }
}

/// The leads that follow from all facts about a carrier or an entity, each as if there were no other source, by their ids.
type Candidates = BTreeMap<String, Candidate>;

/// A lead as it follows from one source.
#[derive(Clone, Debug, PartialEq)]
struct Candidate {
    lead: Lead,
    /// The row of the leads with which it is compared; `None` if its name cannot be compared.
    row: Option<String>,
    address: Address,
    day: Date,
    basis: Basis,
}

impl Candidate {
    /// `name` is the key of the name of the business, see [`same_business::name_key`].
    fn new(lead: Lead, name: Option<&str>, address: &Address, day: Date, basis: Basis) -> Self {
        let key = |name| same_business::same_key_of(name, &lead.state, &lead.coverage_line, &lead.trigger);
        let row = name.map(|name| format!("same/{}", key(name)));
        Self { row, lead, address: address.clone(), day, basis }
    }
}

/// All facts about a carrier or an entity.
trait Owner: serde::Serialize + serde::de::DeserializeOwned + Default + Clone + PartialEq {
    /// The leads that follow. `owner` is the key of the facts.
    fn candidates(&self, owner: &str) -> Candidates;

    /// Whether nothing is known any more.
    fn is_empty(&self) -> bool;
}

/// The key of the owner of a fact.
fn owner_key(key: &str) -> String {
    format!("owner/{key}")
}

/// Remembers which carrier or entity a fact is about, since a fact that withdraws it does not say so.
fn remember_owner(state: &mut State<'_, CoverageRules>, key: &str, owner: String) -> Result<String, Undecided> {
    let row = owner_key(key);
    let before: Option<String> = state.source(&row)?;
    if before.as_ref() != Some(&owner) {
        if let Some(before) = before {
            // The record of a key is about another business now.
            match before.starts_with(carriers::OWNER) {
                true => change(state, &before, |carrier: &mut Carrier| carrier.withdraw(key))?,
                false => change(state, &before, |entity: &mut Entity| entity.withdraw(key))?,
            }
        }
        state.remember(&row, Some(&owner))?;
    }
    Ok(owner)
}

/// Changes the facts about a carrier or an entity, and decides its leads again.
fn change<O: Owner>(state: &mut State<'_, CoverageRules>, owner: &str, change: impl FnOnce(&mut O)) -> Result<(), Undecided> {
    let before: O = state.source(owner)?.unwrap_or_default();
    let mut now = before.clone();
    change(&mut now);
    if now == before {
        return Ok(());
    }
    state.remember(owner, Some(&now).filter(|now| !now.is_empty()))?;
    leads::update(state, owner, &before.candidates(owner), &now.candidates(owner))
}

/// The day of a time, in UTC.
fn day_of(ms: i64) -> Date {
    Timestamp::from_millisecond(ms).map(|at| at.to_zoned(TimeZone::UTC).date()).unwrap_or_default()
}

/// Whether a trigger's day was recent, or not far ahead, when the trigger was observed first.
fn is_recent(day: Date, seen_ms: i64) -> bool {
    let seen = day_of(seen_ms);
    (seen.saturating_sub(NEW_DAYS.days())..=seen.saturating_add(AHEAD_DAYS.days())).contains(&day)
}

/// A fact as the rules read it; `None` for an empty value, since a dataset leaves such fields out.
fn rule_fact(dataset: &str, field: &str, value: &str) -> Option<RuleFact> {
    (!value.is_empty()).then(|| RuleFact { field: field.to_owned(), value: value.to_owned(), dataset: dataset.to_owned() })
}

/// The parts of a lead that follow from a line: the line, the rule and its evidence, with more facts after those that the rule read.
fn lead_of(line: Line, more: Vec<RuleFact>) -> (Lead, Basis) {
    let Line { line, basis, mandate, rule_id, evidence } = line;
    let law = if mandate.citation.is_empty() { mandate.rule.clone() } else { format!("{} ({})", mandate.citation, mandate.rule) };
    let shown = |fact: &RuleFact| format!("{} {}", fact.field, fact.value);
    let facts: Vec<String> = evidence.iter().map(shown).collect();
    let facts = if facts.is_empty() { "the registration".to_owned() } else { facts.join(", ") };
    let mandate = Mandate {
        follows: format!("{line} follows from {law} and {facts}"),
        rule: mandate.rule,
        rule_id: rule_id.to_owned(),
        citation: mandate.citation,
        amount: mandate.amount.and_then(|amount| i64::try_from(amount).ok()),
        form: mandate.form,
        url: mandate.url,
    };
    let own = |fact: RuleFact| Evidence { field: fact.field, value: fact.value, dataset: fact.dataset };
    let evidence = evidence.into_iter().chain(more).map(own).collect();
    let lead = Lead { coverage_line: line.to_owned(), mandate, basis: basis.as_str().to_owned(), evidence, ..Lead::default() };
    (lead, basis)
}

#[cfg(test)]
mod tests;
