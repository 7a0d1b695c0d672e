//! Puts the leads of several sources about one business together, and counts leads.
//!
//! Leads with the same name, state, line and family of trigger are in one row of decision state, at most [`MEMBERS_MAX`] of them. The groups of a row are
//! decided by `matching::same_business`, which depends on the leads alone and not on the order in which they came.

use std::collections::{BTreeMap, BTreeSet};

use crate::record::{
    Evidence, JoinedLead, Lead, NOT_COMPARED, TABLES, counts_term, counts_version, counts_versions_term, last_counts_term,
};
use bytes::Bytes;
use jiff::ToSpan;
use jiff::civil::Date;
use matching::address::Address;
use matching::mandates::Basis;
use matching::same_business::{self, Group, LeadKey};
use schemas::key;
use schemas::position::Seq;
use schemas::tables::Write;
use schemas::views::records::{Record, day_number};
use serde::{Deserialize, Serialize};

use super::carriers::{self, Carrier};
use super::entities::Entity;
use super::{Candidate, Candidates, CoverageRules, DecisionRow, Owner, State};
use fold::undecided::{Undecided, all};

/// The most leads of a row. A further one is a lead of its own, and its evidence says so.
pub(super) const MEMBERS_MAX: usize = 20;
/// In a full row, leads whose trigger is so many days older than that of a new one make room for it. They remain as they were decided.
const OLD_DAYS: i64 = 400;
/// What the keys of counts begin with.
const COUNTS: &str = "counts/";

/// A lead that may be about the same business as others of its row.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
struct Member {
    id: String,
    /// The carrier or entity from which it follows.
    owner: String,
    source: String,
    day: Date,
    address: Address,
    basis: Basis,
}

/// Changes the leads of a carrier or an entity from those before to those now.
pub(super) fn update(state: &mut State<'_, CoverageRules>, owner: &str, before: &Candidates, now: &Candidates) -> Result<(), Undecided> {
    let ids: BTreeSet<&String> = before.keys().chain(now.keys()).filter(|id| before.get(*id) != now.get(*id)).collect();
    let changed = ids.iter().flat_map(|id| [before.get(*id), now.get(*id)]).flatten();
    state.need(changed.flat_map(reads))?;
    let mut rows: BTreeSet<String> = BTreeSet::new();
    for id in ids {
        let (old, new) = (before.get(id), now.get(id));
        if new.is_none()
            && let Some(lead) = state.record(id)?
        {
            put(state, Lead { withdrawn: true, merged_into: String::new(), ..lead })?;
        }
        let row = |candidate: Option<&Candidate>| candidate.and_then(|candidate| candidate.row.clone());
        let (old_row, new_row) = (row(old), row(new));
        if let Some(candidate) = new.filter(|_| new_row.is_none()) {
            put(state, candidate.lead.clone())?;
        }
        if old_row.is_some() && old_row != new_row {
            let row = old_row.unwrap_or_default();
            change_row(state, &row, |members| members.retain(|member| member.id != *id))?;
            rows.insert(row);
        }
        if let (Some(row), Some(candidate)) = (new_row, new) {
            let member = Member {
                id: id.clone(),
                owner: owner.to_owned(),
                source: candidate.lead.source.clone(),
                day: candidate.day,
                address: candidate.address.clone(),
                basis: candidate.basis,
            };
            let (mut is_in, oldest) = (true, candidate.day.saturating_sub(OLD_DAYS.days()));
            change_row(state, &row, |members| {
                let was_in = members.iter().any(|known| known.id == *id);
                if !was_in && members.len() >= MEMBERS_MAX {
                    members.retain(|known| known.day >= oldest);
                }
                is_in = was_in || members.len() < MEMBERS_MAX;
                members.retain(|known| known.id != *id);
                members.extend(Some(member).filter(|_| is_in));
            })?;
            if is_in {
                rows.insert(row);
            } else {
                put(state, not_compared(&candidate.lead))?;
            }
        }
    }
    let rows: Vec<(String, Vec<Member>)> = all(rows.into_iter().map(|row| {
        let members: Vec<Member> = state.get(&row)?.unwrap_or_default();
        Ok((row, members))
    }))?;
    let members = rows.iter().flat_map(|(_, members)| members);
    state.need(members.flat_map(|Member { id, owner, day, .. }| {
        [DecisionRow::Record(id.clone()), DecisionRow::State(owner.clone()), DecisionRow::State(counts_key(&day.to_string()))]
    }))?;
    for (row, members) in rows {
        regroup(state, &row, &members, owner, now)?;
    }
    Ok(())
}

/// The rows that are read for a lead as it follows from one source: its record, the leads with which it is compared, and the counts of its day.
pub(super) fn reads(candidate: &Candidate) -> Vec<DecisionRow> {
    let Candidate { lead, row, .. } = candidate;
    let sources = row.iter().cloned().chain([counts_key(&lead.trigger_date)]).map(DecisionRow::State);
    [DecisionRow::Record(lead.id.clone())].into_iter().chain(sources).collect()
}

/// The key of the counts of a day.
fn counts_key(day: &str) -> String {
    format!("{COUNTS}{day}")
}

/// A lead that has no room in its row.
fn not_compared(lead: &Lead) -> Lead {
    let value = format!(
        "{MEMBERS_MAX} leads of this name, state, line and kind of trigger are compared with each other, this one is not: another one can be about the \
         same business"
    );
    let mut lead = lead.clone();
    lead.evidence.push(Evidence { field: NOT_COMPARED.to_owned(), value, dataset: String::new() });
    lead
}

/// Changes the members of a row, which are kept in the order of their ids.
fn change_row(state: &mut State<'_, CoverageRules>, row: &str, change: impl FnOnce(&mut Vec<Member>)) -> Result<(), Undecided> {
    state.change(row, |members: &mut Vec<Member>| {
        change(members);
        members.sort_unstable_by(|one, other| one.id.cmp(&other.id));
    })
}

/// Decides again which leads of a row are about one business, and writes the leads of the row.
fn regroup(state: &mut State<'_, CoverageRules>, row: &str, members: &[Member], owner: &str, now: &Candidates) -> Result<(), Undecided> {
    let keys: Vec<LeadKey> = members
        .iter()
        .map(|member| LeadKey {
            id: member.id.clone(),
            source: member.source.clone(),
            same: row.to_owned(),
            day: member.day,
            address: member.address.clone(),
            basis: member.basis,
        })
        .collect();
    // A row is seldom more than one carrier and one entity.
    let candidates = all(members.iter().map(|member| {
        let found = if member.owner == owner { now.get(&member.id).cloned() } else { candidate(state, member)? };
        Ok(found.map(|candidate| (member.id.clone(), candidate)))
    }))?;
    let candidates: BTreeMap<String, Candidate> = candidates.into_iter().flatten().collect();
    for group in same_business::group(&keys) {
        for joined in &group.joined {
            if let Some(candidate) = candidates.get(&joined.id) {
                put(state, Lead { merged_into: group.first.clone(), ..candidate.lead.clone() })?;
            }
        }
        if let Some(lead) = merged(&group, &candidates) {
            put(state, lead)?;
        }
    }
    Ok(())
}

/// The lead of another carrier or entity as it follows from its facts.
fn candidate(state: &mut State<'_, CoverageRules>, member: &Member) -> Result<Option<Candidate>, Undecided> {
    let mut all = if member.owner.starts_with(carriers::OWNER) {
        state.get::<Carrier>(&member.owner)?.unwrap_or_default().candidates(&member.owner)
    } else {
        state.get::<Entity>(&member.owner)?.unwrap_or_default().candidates(&member.owner)
    };
    Ok(all.remove(&member.id))
}

/// The lead of a group: the earliest one, with the rule of the strongest, and the facts and numbers of all.
fn merged(group: &Group, candidates: &BTreeMap<String, Candidate>) -> Option<Lead> {
    let first = candidates.get(&group.first)?;
    let others: Vec<(&str, &Candidate)> =
        group.joined.iter().filter_map(|joined| Some((joined.reason.as_str(), candidates.get(&joined.id)?))).collect();
    let mut lead = first.lead.clone();
    lead.sources.clone_from(&group.sources);
    let all = std::iter::once(first).chain(others.iter().map(|(_, candidate)| *candidate));
    let strongest = all.clone().min_by_key(|candidate| candidate.basis)?;
    lead.basis.clone_from(&strongest.lead.basis);
    lead.mandate.clone_from(&strongest.lead.mandate);
    lead.evidence.clone_from(&strongest.lead.evidence);
    for candidate in all {
        for fact in &candidate.lead.evidence {
            if !lead.evidence.contains(fact) {
                lead.evidence.push(fact.clone());
            }
        }
        let own = &candidate.lead;
        for (text, other) in [
            (&mut lead.dba, &own.dba),
            (&mut lead.city, &own.city),
            (&mut lead.zip, &own.zip),
            (&mut lead.ids.dot, &own.ids.dot),
            (&mut lead.ids.mc, &own.ids.mc),
            (&mut lead.ids.entity_id, &own.ids.entity_id),
        ] {
            if text.is_empty() {
                text.clone_from(other);
            }
        }
    }
    let joined = |(reason, candidate): &(&str, &Candidate)| JoinedLead {
        id: candidate.lead.id.clone(),
        source: candidate.lead.source.clone(),
        reason: (*reason).to_owned(),
    };
    lead.joined = others.iter().map(joined).collect();
    Some(lead)
}

/// Sets a lead, and counts it under its first source on the day of its trigger while it is in lists.
fn put(state: &mut State<'_, CoverageRules>, lead: Lead) -> Result<(), Undecided> {
    let before = state.record(&lead.id)?;
    let place = |lead: &Lead| lead.is_listed().then(|| (lead.trigger_date.clone(), format!("{}/{}", lead.source, lead.coverage_line)));
    let (old, new) = (before.as_ref().and_then(place), place(&lead));
    if old != new {
        for (place, change) in [(old, -1), (new, 1)] {
            let Some((day, cell)) = place else { continue };
            state.count(&counts_key(&day), [(cell, change)])?;
        }
    }
    state.put(lead)
}

/// The entries of the index that a row of decision state writes: the counts of a day from a seq on, and as its last ones.
pub(super) fn index(key: &str, value: &str, seq: Seq) -> Vec<Write> {
    let Some(day) = counted_day(key) else { return Vec::new() };
    vec![
        Write::put(TABLES.terms, key![counts_term(), day, seq], Bytes::from(counts_json(value).to_owned())),
        Write::put(TABLES.terms, key![last_counts_term(), 0_i64, day], last_counts(value, seq)),
    ]
}

/// The entries of the index that a row of decision state writes for a day on which changes are recorded: the counts of a day of triggers at its end.
pub(super) fn index_by_day(key: &str, value: &str, seq: Seq, recorded: Date) -> Vec<Write> {
    let Some(day) = counted_day(key) else { return Vec::new() };
    let number = counts_version(day, day_number(recorded));
    vec![Write::put(TABLES.terms, key![counts_versions_term(), 0_i64, number], last_counts(value, seq))]
}

/// The number of the day of which a row of decision state is the counts; `None` for another row.
fn counted_day(key: &str) -> Option<i64> {
    key.strip_prefix(COUNTS)?.parse().ok().map(day_number)
}

/// Counts of a day, which a row of decision state has as JSON, as [`crate::record::LastCounts`].
fn last_counts(value: &str, seq: Seq) -> Bytes {
    Bytes::from(format!("{{\"seq\":{seq},\"counts\":{}}}", counts_json(value)))
}

/// Counts of a day as JSON. A row that was deleted has none.
fn counts_json(value: &str) -> &str {
    if value.is_empty() { "{}" } else { value }
}
