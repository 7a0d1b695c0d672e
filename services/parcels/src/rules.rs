//! Parcels: how each is assessed compared to its peers, and the permits for construction on it.
//!
//! All facts about a parcel are kept together ([`roll`]), and its record follows from them and from the statistics of its neighbourhood and township.
//! These are frozen when a cycle closes ([`cycle`]): when nearly all parcels have the values of a stage. So a sale or a corrected value decides its own
//! parcel again and no other. A parcel without a sale that counts is compared by its value per square foot, where its floor area is published. Nothing depends
//! on today.

mod cook_exemptions;
mod cycle;
mod exemptions;
mod liens;
mod parcel;
mod permits;
mod projects;
mod roll;
mod state;

use crate::record::flag::Flag;
use crate::record::{COUNTS, Parcel, TABLES};
use bytes::Bytes;
use schemas::avro;
use schemas::event::{Fact, FactKind};
use schemas::facts::liens::LienFact;
use schemas::facts::parcels::{self, ParcelFact};
use schemas::facts::permits::PermitFact;
use schemas::facts::sales::{self, SaleFact};
use schemas::key;
use schemas::position::Seq;
use schemas::tables::Write;
use schemas::topics::{CHANGES_PARCELS, LIENS, PARCELS, PERMITS, SALES, Topic};
use schemas::views::records::RecordTables;

use self::cycle::Closing;
use self::parcel::change;
use self::roll::{Area, Roll};
pub use self::state::ParcelsRules;
use self::state::{measured_key, record_id, roll_key, stats_key, township_key};
use fold::records::{DecisionRow, Records, Rules, State, read_variant};
use fold::service::Undecided;

/// The parcels service.
pub type Parcels = Records<ParcelsRules>;

/// A fact of one of the service's topics.
#[derive(Clone)]
pub enum ParcelsFact {
    /// A fact of the topic `parcels`.
    Parcel(Box<ParcelFact>),
    /// A fact of the topic `permits`.
    Permit(Box<PermitFact>),
    /// A fact of the topic `sales`.
    Sale(Box<SaleFact>),
    /// A fact of the topic `liens`.
    Lien(Box<LienFact>),
}

impl Rules for ParcelsRules {
    type Fact = ParcelsFact;
    type Record = Parcel;

    const TABLES: &'static RecordTables = &TABLES;
    const INPUTS: &'static [Topic] = &[PARCELS, SALES, LIENS, PERMITS];
    const CHANGES: &'static Topic = &CHANGES_PARCELS;

    fn read(topic: &Topic, value: &[u8]) -> Result<Fact<ParcelsFact>, avro::Error> {
        if topic.name == PARCELS.name {
            read_variant(topic, value, ParcelsFact::Parcel)
        } else if topic.name == PERMITS.name {
            read_variant(topic, value, ParcelsFact::Permit)
        } else if topic.name == LIENS.name {
            read_variant(topic, value, ParcelsFact::Lien)
        } else {
            read_variant(topic, value, ParcelsFact::Sale)
        }
    }

    fn reads(fact: &Fact<ParcelsFact>) -> Vec<DecisionRow> {
        let of_parcel = |pin: &str| vec![DecisionRow::State(roll_key(pin)), DecisionRow::Record(record_id(pin))];
        match &fact.data {
            Some(ParcelsFact::Parcel(data)) if data.kind == parcels::CYCLE => {
                let area = Area { township: data.township.clone(), neighborhood: data.neighborhood.clone() };
                vec![DecisionRow::State(township_key(&data.township)), DecisionRow::State(stats_key(&area))]
            }
            Some(ParcelsFact::Parcel(data)) if data.kind == parcels::EXEMPTION => cook_exemptions::reads(&data.pin),
            // Decisions ignore it.
            Some(ParcelsFact::Parcel(data)) if data.kind == parcels::UNIVERSE => Vec::new(),
            Some(ParcelsFact::Parcel(data)) if data.kind == parcels::PART => cycle::reads_of_part(&data.township, data.part),
            Some(ParcelsFact::Parcel(data)) => {
                let area = Area { township: data.township.clone(), neighborhood: data.neighborhood.clone() };
                let township = Area { neighborhood: String::new(), ..area.clone() };
                let stats = [&area, &township].map(|area| DecisionRow::State(stats_key(area)));
                let waiting = (data.kind == parcels::ASSESSMENT).then(|| DecisionRow::State(liens::waiting_key(&data.pin)));
                let shared = (!data.mailing_hash.is_empty()).then(|| DecisionRow::State(exemptions::shared_key(&data.mailing_hash)));
                let measured = data.floor_area.map(|_| DecisionRow::State(measured_key(&data.township, &data.pin)));
                of_parcel(&data.pin).into_iter().chain(stats).chain(waiting).chain(shared).chain(measured).collect()
            }
            Some(ParcelsFact::Permit(data)) if data.pin.is_empty() => Vec::new(),
            Some(ParcelsFact::Permit(data)) => of_parcel(&data.pin).into_iter().chain([projects::read(data)]).collect(),
            Some(ParcelsFact::Sale(data)) if data.kind == sales::SALE => {
                of_parcel(&data.pin).into_iter().chain([DecisionRow::State(owner_key(&fact.key))]).collect()
            }
            Some(ParcelsFact::Lien(_)) => liens::reads(&fact.key),
            Some(ParcelsFact::Sale(data)) if data.kind == parcels::PART => cycle::reads_of_part(&data.township, data.part),
            Some(ParcelsFact::Sale(data)) => vec![DecisionRow::State(township_key(&data.township))],
            None => match projects::pin_of(&fact.key) {
                Some(pin) => of_parcel(pin),
                None => vec![DecisionRow::State(owner_key(&fact.key))],
            },
        }
    }

    fn index(key: &str, value: &str, seq: Seq) -> Vec<Write> {
        // Counts as of an earlier time are the last ones up to its seq.
        let is_counts = key.starts_with(COUNTS);
        // Counts that were deleted, which only deciding again does, are counts without cells.
        let counts = if value.is_empty() { "{}" } else { value };
        let write = || Write::put(TABLES.terms, key![key, 0_i64, seq], Bytes::from(counts.to_owned()));
        is_counts.then(write).into_iter().collect()
    }

    fn no_longer_created(record: &Parcel) -> Option<Parcel> {
        // A flag is a conclusion of the rules alone: rules that do not draw it end it.
        let flag = record.flag.as_deref()?.clone();
        Some(Parcel { flag: Some(Box::new(Flag { is_over: true, ..flag })), ..record.clone() })
    }

    fn decide(state: &mut State<'_, Self>, fact: &Fact<ParcelsFact>) -> Result<(), Undecided> {
        match (fact.kind, &fact.data) {
            (FactKind::Observed, Some(ParcelsFact::Parcel(data))) => match data.kind.as_str() {
                parcels::VALUE => change(state, &data.pin, |roll| {
                    roll.assess(data);
                    roll.permits.build(data);
                }),
                parcels::ASSESSMENT => assess(state, data, fact.observed_at),
                parcels::ADDRESS => change(state, &data.pin, |roll| roll.locate(data)),
                parcels::APPEAL => change(state, &data.pin, |roll| roll.appeal(data)),
                parcels::EXEMPT => change(state, &data.pin, |roll| roll.exempt_year = roll.exempt_year.max(Some(data.year))),
                parcels::EXEMPTION => cook_exemptions::decide(state, data, fact.observed_at),
                parcels::CYCLE => match Closing::read(data) {
                    Some(closing) => cycle::close(state, closing, fact.observed_at),
                    None => Err(Undecided::Poison(format!("a cycle of the stage {:?}", data.stage))),
                },
                parcels::PART => cycle::decide_part(state, &data.township, data.part, Closing::read(data).as_ref()),
                // The class and the tax code of a year say nothing that the values do not.
                parcels::UNIVERSE => Ok(()),
                kind => Err(Undecided::Poison(format!("a record of the kind {kind:?}"))),
            },
            (FactKind::Observed, Some(ParcelsFact::Permit(data))) => observe_permit(state, &fact.key, data),
            (FactKind::Observed, Some(ParcelsFact::Sale(data))) if data.kind == sales::READ => {
                cycle::sales_read(state, &data.township, fact.observed_at)
            }
            (FactKind::Observed, Some(ParcelsFact::Sale(data))) if data.kind == parcels::PART => {
                cycle::decide_part(state, &data.township, data.part, None)
            }
            (FactKind::Observed, Some(ParcelsFact::Sale(data))) => {
                let owner = owner_key(&fact.key);
                match state.get::<Owner>(&owner)? {
                    Some(before) if before.pin != data.pin => {
                        change(state, &before.pin, |roll| _ = roll.sales.remove(&data.sale))?;
                    }
                    _ => {}
                }
                state.remember(&owner, Some(&Owner { pin: data.pin.clone(), sale: data.sale.clone() }))?;
                change(state, &data.pin, |roll| roll.sell(data))
            }
            (FactKind::Observed, Some(ParcelsFact::Lien(data))) => liens::decide(state, &fact.key, data),
            (FactKind::Observed, None) => Err(Undecided::Poison("an observed fact without its record".to_owned())),
            (FactKind::Withdrawn | FactKind::Superseded, _) => {
                if let Some(pin) = projects::pin_of(&fact.key) {
                    return change(state, pin, |roll| roll.permits.remove(&fact.key));
                }
                let owner = owner_key(&fact.key);
                let Some(Owner { pin, sale }) = state.get(&owner)? else { return Ok(()) };
                state.remember::<Owner>(&owner, None)?;
                change(state, &pin, |roll| _ = roll.sales.remove(&sale))
            }
            _ => Ok(()),
        }
    }
}

/// The parcel that a sale is about.
#[derive(Clone, Debug, PartialEq, Eq, serde::Serialize, serde::Deserialize)]
struct Owner {
    pin: String,
    sale: String,
}

fn owner_key(key: &str) -> String {
    format!("owner/{key}")
}

/// Takes a fact about a permit. One without a parcel is in no record.
fn observe_permit(state: &mut State<'_, ParcelsRules>, key: &str, fact: &PermitFact) -> Result<(), Undecided> {
    if fact.pin.is_empty() {
        return Ok(());
    }
    change(state, &fact.pin, |roll| roll.permits.take(key, fact))
}

/// Takes a row of Allegheny County: the record of the parcel, the liens that waited for its PIN, and what its exemption is flagged for.
fn assess(state: &mut State<'_, ParcelsRules>, fact: &ParcelFact, at_ms: i64) -> Result<(), Undecided> {
    let before: Roll = state.get(&roll_key(&fact.pin))?.unwrap_or_default();
    change(state, &fact.pin, |roll| roll.assess_with_details(fact, &schemas::clock::day_of(at_ms).to_string()))?;
    if before.details.is_none() {
        liens::decide_waiting(state, &fact.pin)?;
    }
    exemptions::decide(state, &fact.pin, before.details.as_deref())
}

#[cfg(test)]
mod allegheny_tests;
#[cfg(test)]
mod measured_tests;
#[cfg(test)]
mod tests;
