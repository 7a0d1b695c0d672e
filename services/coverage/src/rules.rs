//! Coverage leads: which businesses have just come to need a line of insurance, from the facts of carriers ([`carriers`]) and of the registers of states
//! ([`entities`]).
//!
//! All facts about a carrier or an entity are kept together, and its leads follow from them, so the order of facts does not matter. Leads of several
//! sources about one business are then put together ([`leads`]). The lines that follow are those of the data file of rules (`matching::mandates`).
//! Nothing depends on today: a trigger is recent if it was when it was observed first.

mod candidate;
pub mod carriers;
pub mod entities;
mod insurance_filings;
pub mod leads;

use crate::record::{Lead, TABLES};
use jiff::civil::Date;
use schemas::avro;
use schemas::event::{Fact, FactKind};
use schemas::facts::businesses::BusinessFact;
use schemas::facts::carriers::CarrierFact;
use schemas::position::Seq;
use schemas::tables::Write;
use schemas::topics::{BUSINESSES, CARRIERS, CHANGES_COVERAGE, Topic};
use schemas::views::records::RecordTables;

pub use self::candidate::CoverageRules;
use self::candidate::{Candidate, Candidates, Owner, is_recent, lead_of, rule_fact};
use self::carriers::Carrier;
use self::entities::Entity;
use fold::records::{DecisionRow, Records, Rules, State, read_variant};
use fold::service::Undecided;

/// The coverage service.
pub type Coverage = Records<CoverageRules>;

/// A fact of one of the service's topics.
#[derive(Clone)]
pub enum CoverageFact {
    /// A fact of the topic `carriers`.
    Carrier(Box<CarrierFact>),
    /// A fact of the topic `businesses`.
    Business(Box<BusinessFact>),
}

impl Rules for CoverageRules {
    type Fact = CoverageFact;
    type Record = Lead;

    const TABLES: &'static RecordTables = &TABLES;
    const INPUTS: &'static [Topic] = &[CARRIERS, BUSINESSES];
    const CHANGES: &'static Topic = &CHANGES_COVERAGE;

    fn read(topic: &Topic, value: &[u8]) -> Result<Fact<CoverageFact>, avro::Error> {
        if topic.name == CARRIERS.name {
            read_variant(topic, value, CoverageFact::Carrier)
        } else {
            read_variant(topic, value, CoverageFact::Business)
        }
    }

    /// The facts about the business, and the rows of the leads that follow if nothing else is known of it, which is so for most facts.
    fn reads(fact: &Fact<CoverageFact>) -> Vec<DecisionRow> {
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
        let facts = [owner_key(&fact.key)].into_iter().chain(owner).map(DecisionRow::State);
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
                if state.get::<Entity>(&owner)?.is_none() && !entities::is_trigger(data, fact.observed_at) {
                    return Ok(());
                }
                let owner = remember_owner(state, &fact.key, owner)?;
                change(state, &owner, |entity: &mut Entity| entity.observe(&fact.key, data, fact.observed_at))
            }
            (FactKind::Observed, None) => Err(Undecided::Poison("an observed fact without its record".to_owned())),
            (FactKind::Withdrawn | FactKind::Superseded, _) => {
                let Some(owner) = state.get::<String>(&owner_key(&fact.key))? else { return Ok(()) };
                match owner.starts_with(carriers::OWNER) {
                    true => change(state, &owner, |carrier: &mut Carrier| carrier.withdraw(&fact.key)),
                    false => change(state, &owner, |entity: &mut Entity| entity.withdraw(&fact.key)),
                }
            }
            _ => Ok(()),
        }
    }
}

/// The key of the owner of a fact.
fn owner_key(key: &str) -> String {
    format!("owner/{key}")
}

/// Remembers which carrier or entity a fact is about, since a fact that withdraws it does not say so.
fn remember_owner(state: &mut State<'_, CoverageRules>, key: &str, owner: String) -> Result<String, Undecided> {
    let row = owner_key(key);
    let before: Option<String> = state.get(&row)?;
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
    let before: O = state.get(owner)?.unwrap_or_default();
    let mut now = before.clone();
    change(&mut now);
    if now == before {
        return Ok(());
    }
    state.remember(owner, Some(&now).filter(|now| !now.is_empty()))?;
    leads::update(state, owner, &before.candidates(owner), &now.candidates(owner))
}

#[cfg(test)]
mod tests;
