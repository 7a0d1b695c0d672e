//! Readouts: the day on which a company's trial of phase 2 or 3 has taken its last data. The announcement follows later.

use std::cmp::Reverse;

use crate::record::{Catalyst, READOUT};
use schemas::facts::trials::TrialFact;
use texts::dates::registry_date;
use texts::phrases::words;

use super::{Decision, forget_name, set_anchor, set_dates, set_ticker_by_name, withdraw};
use fold::aliases;
use fold::service::Undecided;

/// The field of the registry that holds the date.
const FIELD: &str = "protocolSection.statusModule.primaryCompletionDateStruct";
/// The types of interventions that count as drugs.
const DRUGS: [&str; 4] = ["DRUG", "BIOLOGICAL", "GENETIC", "COMBINATION_PRODUCT"];
/// Names of what a drug is compared with, in lower case.
const COMPARATORS: [&str; 7] = ["placebo", "placebos", "sham", "vehicle", "standard of care", "standard care", "saline"];
/// How many conditions a record names.
const CONDITIONS_MAX: usize = 3;

/// Returns the id of a trial's record.
pub(super) fn id(key: &str) -> String {
    format!("ctgov:{}", key.rsplit('/').next().unwrap_or(key))
}

/// Whether a trial may have a readout: a company's trial of a drug in phase 2 or 3, with a date.
pub(super) fn is_candidate(trial: &TrialFact) -> bool {
    trial.sponsor_class == "INDUSTRY"
        && trial.phase.split('/').any(|phase| matches!(phase, "PHASE2" | "PHASE3"))
        && drugs(trial).next().is_some()
        && registry_date(&trial.primary_completion).is_some()
}

/// Returns what the registry's status means for the readout.
fn status(trial: &TrialFact) -> &'static str {
    match trial.status.as_str() {
        "COMPLETED" if trial.primary_completion_type == "ACTUAL" => "met",
        "TERMINATED" | "WITHDRAWN" | "SUSPENDED" | "UNKNOWN" => "cancelled",
        _ => "upcoming",
    }
}

/// Returns the names of the interventions that count as drugs.
fn drugs(trial: &TrialFact) -> impl Iterator<Item = &str> {
    let of_drugs = trial.interventions.iter().filter(|one| DRUGS.contains(&one.kind.as_str()) && !one.name.is_empty());
    of_drugs.map(|one| one.name.as_str())
}

/// Returns the drug that the title names, the first one of several; else the first by name. A comparator is none: empty if there is nothing else.
/// The registry's order is not kept in facts.
fn drug(trial: &TrialFact) -> &str {
    let is_comparator = |name: &&str| COMPARATORS.iter().any(|one| words(name).contains(&words(one)));
    // A name of signs alone would be found in every title.
    let mut names: Vec<&str> = drugs(trial).filter(|name| !words(name).trim().is_empty() && !is_comparator(name)).collect();
    names.sort_by_key(|name| (name.to_lowercase(), *name));
    let title = words(&trial.title);
    // Of two names that begin at the same word the longer one.
    let titled = names.iter().filter_map(|name| Some((title.find(&words(name))?, Reverse(name.len()), *name))).min();
    titled.map(|(_, _, name)| name).or_else(|| names.first().copied()).unwrap_or_default()
}

/// Decides the readout of a trial. A trial that was never expected to read out gets no record.
pub(super) fn decide(state: Decision<'_, '_>, id: &str, trial: &TrialFact, day: &str) -> Result<(), Undecided> {
    let before = state.record(id)?;
    if !is_candidate(trial) {
        if let Some(before) = &before {
            forget_name(state, &before.company, id)?;
        }
        return withdraw(state, id);
    }
    let status = status(trial);
    if before.is_none() && status != "upcoming" {
        return Ok(());
    }
    aliases::remember(state, &trial.number, &trial.aliases)?;
    let mut record = readout(id, trial, status, day);
    if let Some(before) = &before {
        record.first_seen.clone_from(&before.first_seen);
        record.slips = before.slips + i64::from(before.window != record.window);
        if before.company != record.company {
            forget_name(state, &before.company, id)?;
        }
    }
    set_ticker_by_name(state, &mut record)?;
    // A reading that finds the event as it was is no change.
    if let Some(before) = before {
        let verified = before.verified_as_of.clone();
        if record == (Catalyst { verified_as_of: record.verified_as_of.clone(), ..before }) {
            record.verified_as_of = verified;
        }
    }
    state.put(record)
}

fn readout(id: &str, trial: &TrialFact, status: &str, day: &str) -> Catalyst {
    let mut record = Catalyst {
        id: id.to_owned(),
        kind: READOUT.to_owned(),
        date_type: trial.primary_completion_type.clone(),
        company: trial.sponsor.clone(),
        drug: drug(trial).to_owned(),
        indication: trial.conditions.iter().take(CONDITIONS_MAX).cloned().collect::<Vec<_>>().join("; "),
        phase: trial.phase.clone(),
        trial_id: trial.number.clone(),
        title: trial.title.clone(),
        status: status.to_owned(),
        first_seen: day.to_owned(),
        source: "clinicaltrials.gov".to_owned(),
        source_url: format!("https://clinicaltrials.gov/study/{}", trial.number),
        source_field: FIELD.to_owned(),
        verified_as_of: day.to_owned(),
        ..Catalyst::default()
    };
    if let Some((from, to, precision)) = registry_date(&trial.primary_completion) {
        set_dates(&mut record, from, to, precision);
    }
    let parts = [
        ("date", trial.primary_completion.as_str()),
        ("field", FIELD),
        ("id", trial.number.as_str()),
        ("source", "clinicaltrials.gov"),
        ("type", trial.primary_completion_type.as_str()),
    ];
    set_anchor(&mut record, &parts);
    record
}
