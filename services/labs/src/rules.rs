//! Newly funded laboratories: one lead per new award to a laboratory. What a grant means is decided here, from the grant itself ([`lead`]),
//! the words that it uses ([`category`]) and the earlier projects of its investigator ([`signal`]).
//!
//! Promise: the same grants in any order give the same leads. A grant that arrives late changes the investigator's earlier projects, and the
//! investigator's leads are decided again.

pub mod category;
pub mod lead;
pub mod signal;

use std::collections::BTreeSet;

use crate::record::{Lead, TABLES};
use schemas::avro;
use schemas::details::{GRANT_SITES, LinkDetails};
use schemas::event::{Fact, FactKind};
use schemas::facts::grants::GrantFact;
use schemas::topics::{CHANGES_LABS, GRANTS, Topic};
use schemas::views::records::{RecordChange, RecordTables};

use self::signal::{History, Investigator, OwnLead};
use fold::records::{DecisionRow, Records, Rules, State};
use fold::service::Undecided;

/// The labs service.
pub type Labs = Records<LabsRules>;

/// The rules of the labs service.
pub struct LabsRules;

/// The key of the state that holds the first fiscal year of all grants.
const HISTORY: &str = "history";
/// The most investigators of a fiscal year that wait until earlier years are read. Leads of others are decided again by `redecide`.
const WAITING_MAX: usize = 256;

impl Rules for LabsRules {
    type Fact = GrantFact;
    type Record = Lead;

    const TABLES: &'static RecordTables = &TABLES;
    const INPUTS: &'static [Topic] = &[GRANTS];
    const CHANGES: &'static Topic = &CHANGES_LABS;

    fn read(topic: &Topic, value: &[u8]) -> Result<Fact<GrantFact>, avro::Error> {
        avro::decode(topic.name, value)
    }

    fn reads(fact: &Fact<GrantFact>) -> Vec<DecisionRow> {
        let id = id_of(&fact.key);
        let investigator =
            fact.data.iter().filter_map(|grant| signal::number(grant)).map(|number| DecisionRow::State(investigator_key(number)));
        [DecisionRow::State(HISTORY.to_owned()), DecisionRow::State(lead_key(&id))]
            .into_iter()
            .chain(investigator)
            .chain([DecisionRow::Record(id)])
            .collect()
    }

    fn change_details(record: &Lead, _change: &RecordChange<Lead>) -> LinkDetails {
        LinkDetails::new(&record.url, &GRANT_SITES)
    }

    fn decide(state: &mut State<'_, Self>, fact: &Fact<GrantFact>) -> Result<(), Undecided> {
        let id = id_of(&fact.key);
        match (fact.kind, &fact.data) {
            (FactKind::Observed, Some(grant)) => observe(state, id, grant),
            (FactKind::Withdrawn | FactKind::Superseded, _) => withdraw(state, &id),
            (FactKind::Observed, None) => Err(Undecided::Poison("an observed fact without its record".to_owned())),
            _ => Ok(()),
        }
    }
}

/// Returns the id of the lead of a grant.
fn id_of(key: &str) -> String {
    format!("nih:{}", key.split_once('/').map_or(key, |(_, number)| number))
}

/// The key of the projects and leads of an investigator.
fn investigator_key(number: &str) -> String {
    format!("pi/{number}")
}

/// The key of the number of a lead's investigator.
fn lead_key(id: &str) -> String {
    format!("lead/{id}")
}

/// The key of the investigators with leads of a fiscal year that wait until earlier years are read.
fn waiting_key(year: i64) -> String {
    format!("waiting/{year}")
}

/// Marks the lead of a grant that the funder took back.
fn withdraw(state: &mut State<'_, LabsRules>, id: &str) -> Result<(), Undecided> {
    match state.record(id)? {
        Some(before) => state.put(Lead { withdrawn: true, ..before }),
        None => Ok(()),
    }
}

/// Decides what a grant means: its own lead, and the signals of other leads that it changes.
fn observe(state: &mut State<'_, LabsRules>, id: String, grant: &GrantFact) -> Result<(), Undecided> {
    let (number, year) = (signal::number(grant), lead::fiscal_year(grant));
    let lead = lead::lead(id.clone(), grant);
    let own = lead.as_ref().zip(year).filter(|_| signal::depends_on_history(&grant.activity_code)).map(|(_, fiscal_year)| OwnLead {
        id: id.clone(),
        core_project: grant.core_project.clone(),
        fiscal_year,
        activity_code: grant.activity_code.clone(),
    });
    let mut again = BTreeSet::new();
    let history = learn_year(state, year, &mut again)?;

    let owner = own.as_ref().and(number).map(str::to_owned);
    let owner_before: Option<String> = state.get(&lead_key(&id))?;
    if owner != owner_before {
        if let Some(before) = owner_before {
            change_investigator(state, &before, |investigator| investigator.remove_lead(&id))?;
        }
        state.remember(&lead_key(&id), owner.as_ref())?;
    }
    if let Some(number) = number {
        let has_new_project = change_investigator(state, number, |investigator| {
            let has_new_project = year.is_some_and(|year| investigator.add_project(&grant.core_project, year));
            match &own {
                Some(own) => investigator.set_lead(own.clone()),
                None => investigator.remove_lead(&id),
            }
            has_new_project
        })?;
        if has_new_project {
            again.insert(number.to_owned());
        }
        if let Some(own) = own.as_ref().filter(|own| !history.covers(own.fiscal_year)) {
            wait_for_earlier_years(state, own.fiscal_year, number)?;
        }
    }

    match lead {
        Some(lead) => {
            let investigator = match number {
                Some(number) => Some(state.get::<Investigator>(&investigator_key(number))?.unwrap_or_default()),
                None => None,
            };
            let (signal, signal_evidence) = signal::signal(&grant.activity_code, &grant.core_project, year, investigator.as_ref(), history);
            state.put(Lead { signal, signal_evidence, ..lead })?;
        }
        None => withdraw(state, &id)?,
    }
    for number in again {
        decide_signals_again(state, &number, history, &id)?;
    }
    Ok(())
}

/// Remembers the fiscal year of a grant if it is the first one. Adds the investigators whose leads wait for it to `again`.
fn learn_year(state: &mut State<'_, LabsRules>, year: Option<i64>, again: &mut BTreeSet<String>) -> Result<History, Undecided> {
    let before: Option<History> = state.get(HISTORY)?;
    let Some(year) = year.filter(|year| before.is_none_or(|before| *year < before.first_fiscal_year)) else {
        return Ok(before.unwrap_or_default());
    };
    let now = History { first_fiscal_year: year };
    state.remember(HISTORY, Some(&now))?;
    let covered = before.map_or(0..0, |before| now.first_covered()..before.first_covered());
    for year in covered {
        if let Some(waiting) = state.get::<Vec<String>>(&waiting_key(year))? {
            again.extend(waiting);
            state.remember::<Vec<String>>(&waiting_key(year), None)?;
        }
    }
    Ok(now)
}

/// Changes the projects and leads of an investigator. Returns what the change returns.
fn change_investigator<T>(
    state: &mut State<'_, LabsRules>,
    number: &str,
    change: impl FnOnce(&mut Investigator) -> T,
) -> Result<T, Undecided> {
    let key = investigator_key(number);
    let before: Investigator = state.get(&key)?.unwrap_or_default();
    let mut now = before.clone();
    let result = change(&mut now);
    if now != before {
        state.remember(&key, Some(&now))?;
    }
    Ok(result)
}

/// Remembers that an investigator has a lead of a fiscal year that is decided again when earlier years are read.
fn wait_for_earlier_years(state: &mut State<'_, LabsRules>, year: i64, number: &str) -> Result<(), Undecided> {
    let mut waiting: Vec<String> = state.get(&waiting_key(year))?.unwrap_or_default();
    if let Err(at) = waiting.binary_search_by(|one| one.as_str().cmp(number))
        && waiting.len() < WAITING_MAX
    {
        waiting.insert(at, number.to_owned());
        state.remember(&waiting_key(year), Some(&waiting))?;
    }
    Ok(())
}

/// Decides the signals of an investigator's leads again, except of the one with the id `decided`.
fn decide_signals_again(state: &mut State<'_, LabsRules>, number: &str, history: History, decided: &str) -> Result<(), Undecided> {
    let investigator: Investigator = state.get(&investigator_key(number))?.unwrap_or_default();
    for own in investigator.leads.iter().filter(|own| own.id != decided) {
        let Some(before) = state.record(&own.id)?.filter(|before| !before.withdrawn) else { continue };
        let (signal, signal_evidence) =
            signal::signal(&own.activity_code, &own.core_project, Some(own.fiscal_year), Some(&investigator), history);
        state.put(Lead { signal, signal_evidence, ..before })?;
    }
    Ok(())
}

#[cfg(test)]
mod tests;
#[cfg(test)]
mod yardstick;
