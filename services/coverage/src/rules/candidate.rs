//! A business that may become a lead, and what leads of every source share.

use std::collections::BTreeMap;

use jiff::civil::Date;
use jiff::tz::TimeZone;
use jiff::{Timestamp, ToSpan};
use matching::address::Address;
use matching::mandates::{Basis, Fact as RuleFact, Line};
use matching::same_business;

use crate::record::{Evidence, Lead, Mandate};

/// The rules of the coverage service.
pub struct CoverageRules;

/// A trigger counts if it was at most so many days old when it was observed first.
const NEW_DAYS: i64 = 90;

/// A trigger counts if it was at most so many days ahead when it was observed first.
const AHEAD_DAYS: i64 = 366;

/// The leads that follow from all facts about a carrier or an entity, each as if there were no other source, by their ids.
pub(super) type Candidates = BTreeMap<String, Candidate>;

/// A lead as it follows from one source.
#[derive(Clone, Debug, PartialEq)]
pub(super) struct Candidate {
    pub(super) lead: Lead,
    /// The row of the leads with which it is compared; `None` if its name cannot be compared.
    pub(super) row: Option<String>,
    pub(super) address: Address,
    pub(super) day: Date,
    pub(super) basis: Basis,
}

impl Candidate {
    /// `name` is the key of the name of the business, see [`same_business::name_key`].
    pub(super) fn new(lead: Lead, name: Option<&str>, address: &Address, day: Date, basis: Basis) -> Self {
        let key = |name| same_business::same_key_of(name, &lead.state, &lead.coverage_line, &lead.trigger);
        let row = name.map(|name| format!("same/{}", key(name)));
        Self { row, lead, address: address.clone(), day, basis }
    }
}

/// All facts about a carrier or an entity.
pub(super) trait Owner: serde::Serialize + serde::de::DeserializeOwned + Default + Clone + PartialEq {
    /// The leads that follow. `owner` is the key of the facts.
    fn candidates(&self, owner: &str) -> Candidates;

    /// Whether nothing is known any more.
    fn is_empty(&self) -> bool;
}

/// The day of a time, in UTC.
fn day_of(ms: i64) -> Date {
    Timestamp::from_millisecond(ms).map(|at| at.to_zoned(TimeZone::UTC).date()).unwrap_or_default()
}

/// Whether a trigger's day was recent, or not far ahead, when the trigger was observed first.
pub(super) fn is_recent(day: Date, seen_ms: i64) -> bool {
    let seen = day_of(seen_ms);
    (seen.saturating_sub(NEW_DAYS.days())..=seen.saturating_add(AHEAD_DAYS.days())).contains(&day)
}

/// A fact as the rules read it; `None` for an empty value, since a dataset leaves such fields out.
pub(super) fn rule_fact(dataset: &str, field: &str, value: &str) -> Option<RuleFact> {
    (!value.is_empty()).then(|| RuleFact { field: field.to_owned(), value: value.to_owned(), dataset: dataset.to_owned() })
}

/// The parts of a lead that follow from a line: the line, the rule and its evidence, with the facts of the record that is the trigger after those that
/// the rule read. A rule for every record of a kind reads none, so the line follows from the record itself.
pub(super) fn lead_of(line: Line, record: Vec<RuleFact>) -> (Lead, Basis) {
    let Line { line, basis, mandate, rule_id, mut evidence } = line;
    let law = match mandate.citation.as_str() {
        "" => format!("the rule \"{}\"", mandate.rule),
        citation => format!("{citation} ({})", mandate.rule),
    };
    let shown = |fact: &RuleFact| format!("{} {}", fact.field, fact.value);
    let read = if evidence.is_empty() { &record } else { &evidence };
    let facts: Vec<String> = read.iter().map(shown).collect();
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
    for fact in record {
        if !evidence.contains(&fact) {
            evidence.push(fact);
        }
    }
    let evidence = evidence.into_iter().map(own).collect();
    let lead = Lead { coverage_line: line.to_owned(), mandate, basis: basis.as_str().to_owned(), evidence, ..Lead::default() };
    (lead, basis)
}
