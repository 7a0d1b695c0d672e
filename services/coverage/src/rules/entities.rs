//! The leads of entities: businesses that were formed, and businesses of another state that begin to do business.

use std::collections::BTreeMap;

use crate::record::{BusinessIds, Lead};
use jiff::civil::Date;
use matching::address::Address;
use matching::mandates::{self, Fact as RuleFact};
use matching::same_business;
use schemas::facts::businesses::BusinessFact;
use serde::{Deserialize, Serialize};

use super::{Candidate, Candidates, Owner, is_recent, lead_of, rule_fact};

/// What the keys of entities begin with.
pub(super) const OWNER: &str = "entity/";
/// The most events that are kept of an entity: the earliest ones.
const EVENTS_MAX: usize = 20;
/// What is filed when an entity is formed.
const FORMATIONS: &[&str] =
    &["ARTICLES OF ORGANIZATION", "CERTIFICATE OF INCORPORATION", "CERTIFICATE OF LIMITED PARTNERSHIP", "ARTICLES OF INCORPORATION"];
/// What is filed when an entity of another state begins to do business.
const FOREIGN_REGISTRATIONS: &[&str] = &["APPLICATION OF AUTHORITY", "APPLICATION FOR AUTHORITY"];
/// Types that are names, not entities.
const NAMES: &[&str] =
    &["ASSUMED BUSINESS NAME", "ASSUMED NAME", "FICTITIOUS", "REGISTERED NAME", "RESERVED NAME", "TRADE NAME", "TRADENAME"];
/// Words in the status of an entity that ended.
const ENDED: &[&str] = &["CANCEL", "DISSOLV", "EXPIRED", "FORFEIT", "MERGED", "REVOK", "TERMINAT", "WITHDRAWN"];

/// A register whose records are leads.
struct Register {
    stream: &'static str,
    source: &'static str,
    state: &'static str,
    dataset: &'static str,
    /// The name of the field with the type of entity.
    type_field: &'static str,
    /// The name of the field with the number of the entity.
    number_field: &'static str,
    /// The name of the field with the day of the registration.
    day_field: &'static str,
    /// The name of the field with the state or country of formation; empty if the register has none.
    place_field: &'static str,
    /// The address of the record of an entity, without its number.
    url: &'static str,
}

impl Register {
    /// The facts that identify a record: its type and what was filed, where a company of another state was formed, its numbers and its day.
    fn facts_of_record(&self, fact: &BusinessFact) -> Vec<RuleFact> {
        let place = if fact.is_foreign { fact.jurisdiction.as_str() } else { "" };
        let fields = [
            (self.type_field, fact.entity_type.as_str()),
            ("filing_type", fact.filing_type.as_str()),
            (self.place_field, place),
            (self.number_field, fact.entity.as_str()),
            ("film_num", fact.event.as_str()),
            (self.day_field, fact.day.as_str()),
        ];
        fields.into_iter().filter_map(|(field, value)| rule_fact(self.dataset, field, value)).collect()
    }
}

const REGISTERS: &[Register] = &[
    Register {
        stream: "sos.co",
        source: "sos-co",
        state: "CO",
        dataset: "4ykn-tg5h",
        type_field: "entitytype",
        number_field: "entityid",
        day_field: "entityformdate",
        place_field: "jurisdictonofformation",
        url: "https://data.colorado.gov/resource/4ykn-tg5h.json?entityid=",
    },
    Register {
        stream: "sos.ct",
        source: "sos-ct",
        state: "CT",
        dataset: "n7gp-d28j",
        type_field: "business_type",
        number_field: "accountnumber",
        day_field: "date_registration",
        place_field: "formation_place",
        url: "https://data.ct.gov/resource/n7gp-d28j.json?accountnumber=",
    },
    Register {
        stream: "sos.ia",
        source: "sos-ia",
        state: "IA",
        dataset: "554",
        type_field: "corporation_type",
        number_field: "corp_number",
        day_field: "effective_date",
        place_field: "",
        // The register has one address for all of its records, and a record is found in it by its number.
        url: "https://idh-be.iowa.gov/api/v1/datasets/554/rows.json#corp_number=",
    },
    Register {
        stream: "sos.ny",
        source: "sos-ny",
        state: "NY",
        dataset: "k4vb-judh",
        type_field: "entity_type",
        number_field: "dos_id",
        day_field: "filing_date",
        place_field: "",
        url: "https://data.ny.gov/resource/k4vb-judh.json?dos_id=",
    },
    Register {
        stream: "sos.or",
        source: "sos-or",
        state: "OR",
        dataset: "esjy-u4fc",
        type_field: "entity_type",
        number_field: "registry_number",
        day_field: "registry_date",
        place_field: "",
        url: "https://data.oregon.gov/resource/esjy-u4fc.json?registry_number=",
    },
];

/// The key of an entity.
pub(super) fn owner(stream: &str, entity: &str) -> String {
    format!("{OWNER}{stream}/{entity}")
}

/// Whether a fact can lead to anything: an entity is formed or registered, and that is recent. Facts about other entities are not kept.
pub(super) fn is_trigger(fact: &BusinessFact, observed_at: i64) -> bool {
    trigger_of(fact).is_some() && fact.day.parse().is_ok_and(|day| is_recent(day, observed_at))
}

/// All facts about an entity, each by the key of its fact.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub(super) struct Entity {
    events: BTreeMap<String, Event>,
}

/// What a fact says about an entity.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
struct Event {
    /// When a fact of the key was first observed.
    seen: i64,
    fact: BusinessFact,
}

impl Entity {
    /// Takes over a fact.
    pub(super) fn observe(&mut self, key: &str, fact: &BusinessFact, at: i64) {
        let seen = self.events.get(key).map_or(at, |event| event.seen.min(at));
        self.events.insert(key.to_owned(), Event { seen, fact: fact.clone() });
        while self.events.len() > EVENTS_MAX {
            let last = self.events.iter().max_by_key(|(key, event)| (rank(event), (*key).clone())).map(|(key, _)| key.clone());
            let Some(last) = last else { break };
            self.events.remove(&last);
        }
    }

    /// Forgets a fact.
    pub(super) fn withdraw(&mut self, key: &str) {
        self.events.remove(key);
    }
}

/// The trigger of a fact; `None` for an amendment, a name and an entity that ended.
fn trigger_of(fact: &BusinessFact) -> Option<&'static str> {
    let (filed, kind, status) =
        (fact.filing_type.to_ascii_uppercase(), fact.entity_type.to_ascii_uppercase(), fact.status.to_ascii_uppercase());
    let has_ended = !fact.ended.is_empty() || ENDED.iter().any(|word| status.contains(word));
    if has_ended || NAMES.iter().any(|name| kind.contains(name)) {
        return None;
    }
    if fact.event.is_empty() {
        return Some(if fact.is_foreign { "foreign_registration" } else { "entity_formed" });
    }
    if FOREIGN_REGISTRATIONS.contains(&&*filed) {
        Some("foreign_registration")
    } else if FORMATIONS.contains(&&*filed) {
        Some(if fact.is_foreign { "foreign_registration" } else { "entity_formed" })
    } else {
        None
    }
}

/// The order in which events of an entity are believed: a formation first, then a registration, then others; of equals the earliest.
fn rank(event: &Event) -> (usize, &str) {
    let rank = match trigger_of(&event.fact) {
        Some("entity_formed") => 0,
        Some(_) => 1,
        None => 2,
    };
    (rank, &event.fact.day)
}

impl Owner for Entity {
    fn candidates(&self, owner: &str) -> Candidates {
        let first = self.events.iter().min_by_key(|(key, event)| (rank(event), *key));
        let Some((_, Event { seen, fact })) = first else { return Candidates::new() };
        let register = REGISTERS.iter().find(|register| owner.strip_prefix(OWNER).is_some_and(|rest| rest.starts_with(register.stream)));
        let day: Option<Date> = fact.day.parse().ok().filter(|day| is_recent(*day, *seen));
        let (Some(register), Some(trigger), Some(day)) = (register, trigger_of(fact), day) else { return Candidates::new() };
        let fields = [("name", &fact.name), (register.type_field, &fact.entity_type)];
        let facts: Vec<RuleFact> = fields.into_iter().filter_map(|(field, value)| rule_fact(register.dataset, field, value)).collect();
        let record = register.facts_of_record(fact);
        // The lead is of the state of the register; an address elsewhere is that of an office.
        let address = Address::new(&fact.street, &fact.city, if fact.state.is_empty() { register.state } else { &fact.state }, &fact.zip);
        let company = same_business::name_key(&fact.name);
        let mut candidates = Candidates::new();
        for line in mandates::lines(trigger, register.state, &facts) {
            let (parts, basis) = lead_of(line, record.clone());
            let lead = Lead {
                id: format!("{}:{}:{}:{trigger}:{day}", register.source, fact.entity, parts.coverage_line),
                business: fact.name.clone(),
                state: register.state.to_owned(),
                city: fact.city.clone(),
                zip: address.zip().to_owned(),
                trigger: trigger.to_owned(),
                trigger_date: day.to_string(),
                source: register.source.to_owned(),
                sources: vec![register.source.to_owned()],
                ids: BusinessIds { entity_id: fact.entity.clone(), ..BusinessIds::default() },
                url: format!("{}{}", register.url, fact.entity),
                ..parts
            };
            candidates.insert(lead.id.clone(), Candidate::new(lead, company.as_deref(), &address, day, basis));
        }
        candidates
    }

    fn is_empty(&self) -> bool {
        self.events.is_empty()
    }
}
