//! The exclusions service: one record per exclusion, one per entity that is excluded and has federal awards (a hit), one per contract that ends and
//! can be bid again (a candidate), and one per annual report that is compared with federal awards (a contradiction).
//!
//! An exclusion and an award are of one entity if their UEI is the same. An exclusion without a UEI is of the entity whose UEI another exclusion
//! gives with the same CAGE code. Names join nothing, and neither do parents of recipients: a wrong hit does more harm than a missing one. Which
//! awards are running depends on today, so it is computed when it is read, from the awards themselves.
//!
//! Promise: the same facts in any order give the same records, as long as the facts of one row or award keep their order, and no need has more awards
//! than are remembered. The counts of what became of contracts depend on the days on which facts were recorded, too.

mod contradiction;
mod recompete;
mod state;

use std::collections::{BTreeMap, BTreeSet};

use crate::person::PersonName;
use crate::record::{BY_CAGE, BY_UEI, EXCLUSION, Exclusion, HIT, TABLES, hit_id};
use matching::company::CompanyName;
use schemas::avro;
use schemas::clock::day_of;
use schemas::event::{Fact, FactKind};
use schemas::facts::company_facts::CompanyFact;
use schemas::facts::exclusions::ExclusionFact;
use schemas::facts::exclusions::classification::INDIVIDUAL;
use schemas::position::Seq;
use schemas::tables::Write;
use schemas::topics::{CHANGES_AWARDS, CHANGES_EXCLUSIONS, COMPANY_FACTS, EXCLUSIONS, Topic};
use schemas::views::awards::Award;
use schemas::views::records::RecordTables;

use fold::changes_read::read_change;
use fold::records::{DecisionRow, Records, Rules, State, read_variant};
use fold::service::Undecided;

pub use self::state::ExclusionsRules;
use self::state::{Cage, Decision, Entity, Remembered, cage_key, uei_key};
pub(crate) use contradiction::{FIRST_DAY, names_the_us};
pub(crate) use recompete::candidate_id;

/// The service's two folds.
pub type Exclusions = Records<ExclusionsRules>;

/// A fact of one of the service's topics.
#[derive(Clone)]
pub enum ExclusionInput {
    /// A row of the exclusion list.
    Exclusion(Box<ExclusionFact>),
    /// An award after a change of the awards service.
    Award(Box<Award>),
    /// An annual report of a company, or the obligations of a fiscal year.
    Company(Box<CompanyFact>),
}

/// The most exclusions that are remembered of one entity or CAGE code; those with the smallest ids are.
const EXCLUSIONS_MAX: usize = 100;
/// The most entities that are remembered of one CAGE code.
const ENTITIES_MAX: usize = 20;

impl Rules for ExclusionsRules {
    type Fact = ExclusionInput;
    type Record = Exclusion;

    const TABLES: &'static RecordTables = &TABLES;
    const INPUTS: &'static [Topic] = &[EXCLUSIONS, CHANGES_AWARDS, COMPANY_FACTS];
    const CHANGES: &'static Topic = &CHANGES_EXCLUSIONS;

    fn read(topic: &Topic, value: &[u8]) -> Result<Fact<ExclusionInput>, avro::Error> {
        if topic.name == CHANGES_AWARDS.name {
            read_change(topic, value).map(|fact: Fact<Award>| fact.map(|data| ExclusionInput::Award(Box::new(data))))
        } else if topic.name == COMPANY_FACTS.name {
            read_variant(topic, value, ExclusionInput::Company)
        } else {
            read_variant(topic, value, ExclusionInput::Exclusion)
        }
    }

    fn reads(fact: &Fact<ExclusionInput>) -> Vec<DecisionRow> {
        let of_uei = |uei: &str| [DecisionRow::State(uei_key(uei)), DecisionRow::Record(hit_id(uei))];
        match &fact.data {
            Some(ExclusionInput::Award(award)) => {
                let entity = (!award.recipient_uei.is_empty()).then(|| of_uei(&award.recipient_uei));
                recompete::reads(award).into_iter().chain(entity.into_iter().flatten()).collect()
            }
            Some(ExclusionInput::Exclusion(row)) => {
                let own = DecisionRow::Record(exclusion_id(&fact.key));
                let entity = (!row.uei.is_empty()).then(|| of_uei(&row.uei)).into_iter().flatten();
                let cage = (!row.cage.is_empty()).then(|| DecisionRow::State(cage_key(&row.cage)));
                [own].into_iter().chain(entity).chain(cage).collect()
            }
            Some(ExclusionInput::Company(company)) => contradiction::reads(company),
            None => vec![DecisionRow::Record(exclusion_id(&fact.key))],
        }
    }

    fn index(key: &str, value: &str, seq: Seq) -> Vec<Write> {
        recompete::index(key, value, seq)
    }

    fn decide(state: &mut State<'_, Self>, fact: &Fact<ExclusionInput>) -> Result<(), Undecided> {
        match (fact.kind, &fact.data) {
            (FactKind::Observed, Some(ExclusionInput::Exclusion(row))) => {
                let record = record_of(exclusion_id(&fact.key), row);
                decide_exclusion(state, record)
            }
            (FactKind::Observed, Some(ExclusionInput::Award(award))) => {
                recompete::decide(state, award, day_of(fact.observed_at))?;
                decide_award(state, award)
            }
            (FactKind::Observed, Some(ExclusionInput::Company(company))) => contradiction::decide(state, company, fact.observed_at),
            (FactKind::Observed, None) => Err(Undecided::Poison("an observed fact without its record".to_owned())),
            (FactKind::Withdrawn | FactKind::Superseded, _) => match state.record(&exclusion_id(&fact.key))? {
                Some(before) => decide_exclusion(state, Exclusion { withdrawn: true, ..before }),
                None => Ok(()),
            },
            _ => Ok(()),
        }
    }
}

/// The id of the record of a row, whose fact has this key.
fn exclusion_id(key: &str) -> String {
    format!("sam:{}", key.split_once('/').map_or(key, |(_, row)| row))
}

/// The keys by which a name is found: the whole name of a person, or the spellings of the name of anything else that match exactly.
fn name_keys(row: &ExclusionFact) -> Vec<String> {
    if row.classification == INDIVIDUAL {
        let name = PersonName::from_parts(&row.first, &row.middle, &row.last, &row.suffix);
        return name.or_else(|| PersonName::new(&row.name)).map(|name| format!("person/{}", name.key())).into_iter().collect();
    }
    CompanyName::new(&row.full_name()).map(|name| name.exact_keys()).unwrap_or_default()
}

/// The record of a row.
fn record_of(id: String, row: &ExclusionFact) -> Exclusion {
    Exclusion {
        id,
        kind: EXCLUSION.to_owned(),
        name: row.full_name(),
        classification: row.classification.clone(),
        uei: row.uei.clone(),
        cage: row.cage.clone(),
        excluding_agency: row.agency.clone(),
        exclusion_type: row.exclusion_type.clone(),
        active_date: row.active_date.clone(),
        creation_date: row.creation_date.clone(),
        termination_date: row.termination_date.clone(),
        program: row.program.clone(),
        comments: row.comments.clone(),
        other_names: row.cross_references.clone(),
        name_keys: name_keys(row),
        ..Exclusion::default()
    }
}

/// Decides what a row means: its record, and the hits of the entities that it excludes or that it no longer excludes.
fn decide_exclusion(state: Decision<'_, '_>, record: Exclusion) -> Result<(), Undecided> {
    let before = state.record(&record.id)?;
    let remembered = remembered(&record);
    let mut entities = BTreeSet::new();
    if let Some(before) = before.as_ref().filter(|before| before.cage != record.cage && !before.cage.is_empty()) {
        if before.uei.is_empty() {
            // The code of the row changed: it excludes none of the entities of the old one any more.
            state.change(&cage_key(&before.cage), |cage: &mut Cage| _ = cage.exclusions.remove(&record.id))?;
            for uei in cage_of(state, &before.cage)?.entities.into_keys() {
                state.change(&uei_key(&uei), |entity: &mut Entity| _ = entity.by_cage.remove(&record.id))?;
                entities.insert(uei);
            }
        } else {
            forget_cage(state, before)?;
        }
    }
    if !record.uei.is_empty() {
        state.change(&uei_key(&record.uei), |entity: &mut Entity| set(&mut entity.by_uei, &record.id, remembered.as_ref()))?;
        entities.insert(record.uei.clone());
        if !record.cage.is_empty() {
            learn_cage(state, &record)?;
        }
    } else if !record.cage.is_empty() {
        state.change(&cage_key(&record.cage), |cage: &mut Cage| set(&mut cage.exclusions, &record.id, remembered.as_ref()))?;
        for uei in cage_of(state, &record.cage)?.entities.into_keys() {
            state.change(&uei_key(&uei), |entity: &mut Entity| set(&mut entity.by_cage, &record.id, remembered.as_ref()))?;
            entities.insert(uei);
        }
    }
    state.put(record)?;
    entities.iter().try_for_each(|uei| decide_hit(state, uei))
}

/// Remembers that an exclusion gives a CAGE code as that of an entity. The exclusions with the code and without a UEI exclude it.
fn learn_cage(state: Decision<'_, '_>, record: &Exclusion) -> Result<(), Undecided> {
    state.change(&cage_key(&record.cage), |known: &mut Cage| {
        let rows = known.entities.entry(record.uei.clone()).or_default();
        rows.insert(record.id.clone());
        while rows.len() > EXCLUSIONS_MAX {
            rows.pop_last();
        }
        while known.entities.len() > ENTITIES_MAX {
            known.entities.pop_last();
        }
    })?;
    let known = cage_of(state, &record.cage)?;
    if !known.entities.contains_key(&record.uei) {
        return Ok(());
    }
    state.change(&uei_key(&record.uei), |entity: &mut Entity| {
        known.exclusions.iter().for_each(|(id, one)| set(&mut entity.by_cage, id, Some(one)));
    })
}

/// Forgets that an exclusion gave a CAGE code. If no other one gives it with the same UEI, the exclusions with the code exclude the entity no more.
fn forget_cage(state: Decision<'_, '_>, before: &Exclusion) -> Result<(), Undecided> {
    state.change(&cage_key(&before.cage), |known: &mut Cage| {
        if let Some(rows) = known.entities.get_mut(&before.uei) {
            rows.remove(&before.id);
        }
        known.entities.retain(|_, rows| !rows.is_empty());
    })?;
    let known = cage_of(state, &before.cage)?;
    if known.entities.contains_key(&before.uei) {
        return Ok(());
    }
    state.change(&uei_key(&before.uei), |entity: &mut Entity| entity.by_cage.retain(|id, _| !known.exclusions.contains_key(id)))
}

/// Remembers the day of the latest action on an award of an entity, or forgets a withdrawn award.
fn decide_award(state: Decision<'_, '_>, award: &Award) -> Result<(), Undecided> {
    let (uei, day) = (&award.recipient_uei, if award.last_day().is_empty() { &award.start } else { award.last_day() });
    let day = Some(day).filter(|day| !award.withdrawn && !day.is_empty());
    if uei.is_empty() || day.is_none() && !award.withdrawn {
        return Ok(());
    }
    let mut is_moved = false;
    state.change(&uei_key(uei), |entity: &mut Entity| {
        let before = entity.latest_action().to_owned();
        entity.set_award(&award.id, day);
        is_moved = entity.latest_action() != before;
    })?;
    if is_moved { decide_hit(state, uei) } else { Ok(()) }
}

/// What is remembered of an exclusion; `None` if it can be no hit.
fn remembered(record: &Exclusion) -> Option<Remembered> {
    (!record.withdrawn && record.can_signal()).then(|| Remembered {
        name: record.name.clone(),
        classification: record.classification.clone(),
        cage: record.cage.clone(),
        agency: record.excluding_agency.clone(),
        exclusion_type: record.exclusion_type.clone(),
        active_date: record.active_date.clone(),
        creation_date: record.creation_date.clone(),
        termination_date: record.termination_date.clone(),
    })
}

fn set(all: &mut BTreeMap<String, Remembered>, id: &str, value: Option<&Remembered>) {
    match value {
        Some(value) => {
            all.insert(id.to_owned(), value.clone());
            while all.len() > EXCLUSIONS_MAX {
                all.pop_last();
            }
        }
        None => drop(all.remove(id)),
    }
}

fn cage_of(state: Decision<'_, '_>, cage: &str) -> Result<Cage, Undecided> {
    Ok(state.get(&cage_key(cage))?.unwrap_or_default())
}

/// Decides whether an entity is a hit, and which exclusion it shows: the earliest of those with its UEI, or else of those with its CAGE code. It lists both,
/// since on a day those with its UEI may have ended.
fn decide_hit(state: Decision<'_, '_>, uei: &str) -> Result<(), Undecided> {
    let entity: Entity = state.get(&uei_key(uei))?.unwrap_or_default();
    let before = state.record(&hit_id(uei))?;
    let by = if entity.by_uei.is_empty() { BY_CAGE } else { BY_UEI };
    let own = entity.by_uei.iter().map(|exclusion| (false, exclusion));
    let mut sorted: Vec<(bool, (&String, &Remembered))> = own.chain(entity.by_cage.iter().map(|exclusion| (true, exclusion))).collect();
    sorted.sort_by_key(|(is_by_cage, (id, one))| {
        let since = if one.active_date.is_empty() { &one.creation_date } else { &one.active_date };
        (*is_by_cage, since.is_empty(), since.clone(), (*id).clone())
    });
    let Some((_, (_, first))) = sorted.first().filter(|_| !entity.latest_action().is_empty()) else {
        return match before.filter(|before| !before.withdrawn) {
            Some(before) => state.put(Exclusion { withdrawn: true, ..before }),
            None => Ok(()),
        };
    };
    state.put(Exclusion {
        id: hit_id(uei),
        kind: HIT.to_owned(),
        name: first.name.clone(),
        classification: first.classification.clone(),
        uei: uei.to_owned(),
        cage: first.cage.clone(),
        excluding_agency: first.agency.clone(),
        exclusion_type: first.exclusion_type.clone(),
        active_date: first.active_date.clone(),
        creation_date: first.creation_date.clone(),
        termination_date: first.termination_date.clone(),
        name_keys: CompanyName::new(&first.name).map(|name| name.exact_keys()).unwrap_or_default(),
        matched_by: by.to_owned(),
        exclusions: sorted.iter().map(|(_, (id, _))| (*id).clone()).collect(),
        latest_action: entity.latest_action().to_owned(),
        ..Exclusion::default()
    })
}

#[cfg(test)]
mod tests;
