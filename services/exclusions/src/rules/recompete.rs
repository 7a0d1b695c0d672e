//! Contracts that end and can be bid again (candidates), and what the data of awards shows about who may lose them.
//!
//! A need is what one office buys under one industry code and one service code. The awards of a need are compared with each other: an award of another
//! recipient shows momentum of a rival, an earlier one of the same recipient that it won before. Of a need the newest awards are remembered; older ones
//! remain candidates, and keep what was found when they changed last.

mod awards;
mod outcome;

use std::collections::btree_map::Entry;
use std::collections::{BTreeMap, BTreeSet};

use crate::record::{CANDIDATE, Contract, ContractSignal, Exclusion, signal};
use jiff::ToSpan;
use jiff::civil::Date;
use schemas::views::awards::Award;
use texts::dollars::Dollars;

use self::awards::{Action, KnownAward, Need, NeedAward, YEAR_DAYS, award_key, day, days_between, is_same};
pub(super) use self::outcome::index;
use self::outcome::{Step, is_near, rate};
use super::state::Decision;
use fold::records::DecisionRow;
use fold::undecided::{Undecided, all};

/// The most awards that are remembered of a need: those that were signed last.
const AWARDS_MAX: usize = 40;
/// The most actions that are remembered of an award: the newest.
const ACTIONS_MAX: usize = 12;
/// The types of awards that can be bid again, as the upstream words them.
const TYPES: [&str; 4] = ["BPA CALL", "PURCHASE ORDER", "DELIVERY ORDER", "DEFINITIVE CONTRACT"];
/// The smallest obligation of a candidate: 250,000 dollars.
const CENTS_MIN: i64 = 25_000_000;
/// The actions after which a contract is terminated.
const TERMINATIONS: [&str; 4] = ["E", "F", "X", "N"];
/// An exercised option.
const OPTION: &str = "G";
/// The actions that can extend a contract.
const EXTENSIONS: [&str; 3] = ["B", "M", OPTION];
/// The longest extension of a bridge, in days: six months.
const BRIDGE_DAYS_MAX: i32 = 184;
/// The actions that say that the recipient is part of another company: novation, and representation again after a merger.
const TRANSFERS: [&str; 2] = ["J", "P"];
/// The codes of awards without competition.
const NOT_COMPETED: [&str; 4] = ["B", "C", "G", "NDO"];
/// The part of the value with all options from which the ceiling is reached, in percent.
const CEILING_PERCENT: i128 = 95;

/// The id of the record of a contract that ends, given the id of its award.
pub(crate) fn candidate_id(award: &str) -> String {
    format!("contract:{award}")
}

/// The key of the need that an award serves; empty if what is bought, or by whom, is unknown.
fn need_key(award: &Award) -> String {
    let office = office(award);
    if award.vehicle || office.is_empty() || award.naics.is_empty() || award.psc.is_empty() {
        return String::new();
    }
    format!("need/{office}/{}/{}", award.naics, award.psc)
}

fn office(award: &Award) -> &str {
    if award.office.is_empty() { &award.sub_agency } else { &award.office }
}

/// The rows that [`decide`] will certainly read.
pub(super) fn reads(award: &Award) -> Vec<DecisionRow> {
    let need = Some(need_key(award)).filter(|key| !key.is_empty());
    [DecisionRow::State(award_key(&award.id)), DecisionRow::Record(candidate_id(&award.id))]
        .into_iter()
        .chain(need.map(DecisionRow::State))
        .collect()
}

/// Decides on a day what an award means: its own candidate, and those of the same need.
pub(super) fn decide(state: Decision<'_, '_>, award: &Award, today: Date) -> Result<(), Undecided> {
    let before: KnownAward = state.get(&award_key(&award.id))?.unwrap_or_default();
    let mut now = before.clone();
    now.observe(award);
    let mut changed = BTreeSet::from([award.id.clone()]);
    if before.need != now.need && !before.need.is_empty() {
        changed.extend(change_need(state, &before.need, &award.id, None)?);
    }
    if !now.need.is_empty() {
        let entry = NeedAward {
            signed: award.signed.clone(),
            uei: award.recipient_uei.clone(),
            parent_uei: award.parent_recipient_uei.clone(),
            is_contract: now.contract.is_some(),
            rate: rate(award),
            end: now.contract.as_ref().map(|contract| contract.end().to_owned()).unwrap_or_default(),
        };
        changed.extend(change_need(state, &now.need, &award.id, Some(entry))?);
    }
    if now != before {
        state.remember(&award_key(&award.id), Some(&now))?;
    }
    let rows = all(changed.into_iter().map(|id| {
        let (known, record) = (state.get::<KnownAward>(&award_key(&id)), state.record(&candidate_id(&id)));
        Ok((known?.unwrap_or_default(), record?, id))
    }))?;
    let mut needs: BTreeMap<String, Need> = BTreeMap::new();
    for (known, record, id) in rows {
        let need = match needs.entry(known.need.clone()) {
            Entry::Occupied(read) => read.into_mut(),
            Entry::Vacant(place) if place.key().is_empty() => place.insert(Need::new()),
            Entry::Vacant(place) => {
                let need = state.get(place.key())?.unwrap_or_default();
                place.insert(need)
            }
        };
        let candidate = known.candidate(&id, need);
        Step { id: &id, before: record.as_ref(), now: candidate.as_ref(), need, today }.take(state, &known)?;
        match (candidate, record) {
            (Some(candidate), _) => state.put(candidate)?,
            (None, Some(record)) => state.put(Exclusion { withdrawn: true, ..record })?,
            (None, None) => {}
        }
    }
    Ok(())
}

/// Sets or removes an award of a need. Returns the contracts among the others if that changes anything for them.
fn change_need(state: Decision<'_, '_>, key: &str, id: &str, entry: Option<NeedAward>) -> Result<Vec<String>, Undecided> {
    let mut need: Need = state.get(key)?.unwrap_or_default();
    let before = need.clone();
    match entry {
        Some(entry) => _ = need.insert(id.to_owned(), entry),
        None => _ = need.remove(id),
    }
    while need.len() > AWARDS_MAX {
        let oldest = need.iter().min_by(|(a, one), (b, other)| (&one.signed, a).cmp(&(&other.signed, b))).map(|(id, _)| id.clone());
        oldest.map(|id| need.remove(&id));
    }
    if need == before {
        return Ok(Vec::new());
    }
    state.remember(key, Some(&need).filter(|need| !need.is_empty()))?;
    // What others compare did not change if only the award's own part did.
    let compared = |need: &Need| need.get(id).map(|one| NeedAward { is_contract: false, rate: None, end: String::new(), ..one.clone() });
    let size = |need: &Need| need.get(id).and_then(|one| one.rate);
    let (is_compared, is_resized) = (compared(&need) != compared(&before), size(&need) != size(&before));
    let signed = need.get(id).map(|one| one.signed.clone()).unwrap_or_default();
    // The size of an award decides what became of the contracts that end about when it was signed.
    let is_concerned = |other: &NeedAward| is_compared || is_resized && is_near(&signed, &other.end);
    Ok(need.into_iter().filter(|(other, one)| other != id && one.is_contract && is_concerned(one)).map(|(other, _)| other).collect())
}

impl KnownAward {
    /// Takes over the state of the award after a change.
    fn observe(&mut self, award: &Award) {
        self.need = need_key(award);
        self.recipient.clone_from(&award.recipient);
        let is_other =
            !self.parent_uei.is_empty() && self.parent_uei != award.parent_recipient_uei && !award.parent_recipient_uei.is_empty();
        if is_other || TRANSFERS.contains(&award.action_type.as_str()) {
            award.last_day().clone_into(&mut self.parent_changed);
        }
        if !award.parent_recipient_uei.is_empty() {
            self.parent_uei.clone_from(&award.parent_recipient_uei);
        }
        if !award.action_date.is_empty() {
            self.actions.retain(|action| (&action.date, &action.number) != (&award.action_date, &award.modification));
            self.actions.push(Action {
                date: award.action_date.clone(),
                number: award.modification.clone(),
                kind: award.action_type.clone(),
                cents: award.action_cents.unwrap_or(0),
                end: award.end.clone(),
            });
            self.actions.sort_by(|one, other| (&one.date, &one.number).cmp(&(&other.date, &other.number)));
            if self.actions.len() > ACTIONS_MAX {
                // A termination is never forgotten.
                let oldest = self.actions.iter().position(|action| !TERMINATIONS.contains(&action.kind.as_str())).unwrap_or(0);
                self.actions.remove(oldest);
            }
        }
        let is_terminated = self.actions.iter().any(|action| TERMINATIONS.contains(&action.kind.as_str()));
        self.contract = Some(self.contract_of(award)).filter(|contract| {
            let start = day(if contract.start.is_empty() { &contract.signed } else { &contract.start });
            // Both days are part of the time.
            let is_long =
                start.zip(day(contract.end())).is_some_and(|(start, end)| start.saturating_add(1.year()) <= end.saturating_add(1.day()));
            TYPES.iter().any(|known| award.award_type.eq_ignore_ascii_case(known))
                && !award.vehicle
                && !award.withdrawn
                && !is_terminated
                && contract.obligated_cents >= CENTS_MIN
                && is_long
                && !contract.naics.is_empty()
        });
    }

    fn contract_of(&self, award: &Award) -> Contract {
        let last_option = self.actions.iter().rfind(|action| action.kind == OPTION);
        let mut contract = Contract {
            award_id: award.id.clone(),
            recipient_uei: award.recipient_uei.clone(),
            parent_uei: self.parent_uei.clone(),
            agency: award.agency.clone(),
            office: office(award).to_owned(),
            naics: award.naics.clone(),
            psc: award.psc.clone(),
            signed: award.signed.clone(),
            start: award.start.clone(),
            current_end: award.end.clone(),
            potential_end: award.potential_end.clone(),
            obligated_cents: award.amount_cents.unwrap_or(0),
            ceiling_cents: award.ceiling_cents,
            last_option: last_option.map(|action| action.date.clone()).unwrap_or_default(),
            last_action: award.last_day().to_owned(),
            signals: Vec::new(),
        };
        let own = [
            self.bridge(),
            (!self.parent_changed.is_empty()).then(|| (signal::PARENT_CHANGED, self.parent_changed.clone(), "another parent".to_owned())),
            ceiling(&contract),
            self.deobligation(),
            sole_source(award),
            self.growth(),
        ];
        let of_award = |(kind, date, detail): OwnSignal| ContractSignal { kind: kind.to_owned(), award_id: award.id.clone(), date, detail };
        contract.signals = own.into_iter().flatten().map(of_award).collect();
        contract
    }

    /// At least two extensions in a row of at most six months each, up to the latest action that moved the end.
    fn bridge(&self) -> Option<OwnSignal> {
        let moved = self.actions.windows(2).filter_map(|pair| {
            let [before, action] = pair else { return None };
            let days = days_between(&before.end, &action.end)?;
            (days != 0).then_some((&action.date, days, EXTENSIONS.contains(&action.kind.as_str())))
        });
        let moved: Vec<(&String, i32, bool)> = moved.collect();
        let is_short = |(_, days, can_extend): &&(&String, i32, bool)| *can_extend && (1..=BRIDGE_DAYS_MAX).contains(days);
        let count = moved.iter().rev().take_while(is_short).count();
        let (date, ..) = moved.last().filter(|_| count >= 2)?;
        Some((signal::BRIDGE, (*date).clone(), format!("{count} extensions in a row of at most six months each")))
    }

    fn deobligation(&self) -> Option<OwnSignal> {
        let action = self.actions.iter().rfind(|action| action.cents < 0)?;
        Some((signal::DEOBLIGATION, action.date.clone(), format!("{} dollars", Dollars { cents: action.cents })))
    }

    /// What was obligated in the year up to the latest action, against the average year before. The base action must be known.
    fn growth(&self) -> Option<OwnSignal> {
        let (first, last) = (self.actions.first()?, &self.actions.last()?.date);
        let days_before = i128::from(days_between(&first.date, last)? - YEAR_DAYS);
        if first.number != "0" || days_before < i128::from(YEAR_DAYS) {
            return None;
        }
        let is_recent = |date: &str| days_between(date, last).is_some_and(|days| days < YEAR_DAYS);
        let sum = |recent: bool| -> i128 {
            self.actions.iter().filter(|action| is_recent(&action.date) == recent).map(|action| i128::from(action.cents)).sum()
        };
        let (now, before) = (sum(true), sum(false));
        // now >= 1.5 * before / (days_before / 365)
        let is_growth = before > 0 && now * days_before * 2 >= 3 * before * i128::from(YEAR_DAYS);
        is_growth.then(|| (signal::GROWTH, last.clone(), "at least half as much again as in the average year before".to_owned()))
    }

    /// The candidate that the award is, among the awards of its need.
    fn candidate(&self, id: &str, need: &Need) -> Option<Exclusion> {
        let mut contract = self.contract.clone()?;
        let others = || need.iter().filter(|(other, _)| *other != id);
        let is_same = |other: &NeedAward| is_same(&contract, other);
        let is_known = !contract.recipient_uei.is_empty();
        let earlier = || others().filter(|(_, other)| other.signed < contract.signed);
        let has_options = contract.potential_end > contract.current_end || !contract.last_option.is_empty();
        if earlier().next().is_none() && !has_options {
            return None;
        }
        let rivals = others().filter(|(_, other)| is_known && !other.uei.is_empty() && !is_same(other) && other.signed > contract.signed);
        let rival = rivals.max_by_key(|(id, other)| (other.signed.clone(), (*id).clone()));
        let own = earlier().filter(|(_, other)| is_known && is_same(other)).max_by_key(|(id, other)| (other.signed.clone(), (*id).clone()));
        let from_need = |kind: &str, found: (&String, &NeedAward), detail: &str| ContractSignal {
            kind: kind.to_owned(),
            award_id: found.0.clone(),
            date: found.1.signed.clone(),
            detail: detail.to_owned(),
        };
        let rival = rival.map(|found| from_need(signal::RIVAL, found, "a new award of another recipient for the same need"));
        let own = own.map(|found| from_need(signal::RENEWED, found, "an earlier award of the recipient for the same need"));
        contract.signals.extend(rival.into_iter().chain(own));
        let order = |one: &ContractSignal| signal::ALL.iter().position(|kind| *kind == one.kind);
        contract.signals.sort_by_key(order);
        Some(Exclusion {
            id: candidate_id(id),
            kind: CANDIDATE.to_owned(),
            name: self.recipient.clone(),
            contract: Some(Box::new(contract)),
            ..Exclusion::default()
        })
    }
}

/// A signal of an award's own data: its kind, its day and what the data says.
type OwnSignal = (&'static str, String, String);

fn ceiling(contract: &Contract) -> Option<OwnSignal> {
    let ceiling = contract.ceiling_cents.filter(|cents| *cents > 0)?;
    let is_reached = i128::from(contract.obligated_cents) * 100 >= i128::from(ceiling) * CEILING_PERCENT;
    let detail = || {
        let hundredths = (i128::from(contract.obligated_cents) * 10_000 + i128::from(ceiling) / 2) / i128::from(ceiling);
        format!("{}.{:02} % of the value with all options is obligated", hundredths / 100, hundredths % 100)
    };
    is_reached.then(|| (signal::CEILING, contract.last_action.clone(), detail()))
}

fn sole_source(award: &Award) -> Option<OwnSignal> {
    let is_alone = award.offers.trim() == "1" && NOT_COMPETED.contains(&award.extent_competed.as_str());
    is_alone.then(|| (signal::SOLE_SOURCE, award.signed.clone(), "one offer, not competed".to_owned()))
}

#[cfg(test)]
mod tests;
