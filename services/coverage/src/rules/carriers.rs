//! The leads of carriers: new carriers, authorities that were granted, and filings of insurance that lapse.

use std::collections::BTreeMap;

use crate::record::{BusinessIds, Lead};
use jiff::civil::Date;
use matching::address::Address;
use matching::company::CompanyName;
use matching::mandates::{self, Fact as RuleFact};
use matching::same_business;
use schemas::facts::carriers::{CarrierFact, kind};
use serde::{Deserialize, Serialize};
use texts::values::US_STATES;

use super::insurance_filings::{self, Filing, Lapse, Subject};
use super::{Candidate, Candidates, Owner, is_recent, lead_of, rule_fact};

/// What the keys of carriers begin with.
pub(super) const OWNER: &str = "carrier/";
/// The source of the leads.
const SOURCE: &str = "fmcsa";
/// The stream of which the rows are new carriers. Rows that other streams look up are carriers of any age.
const CENSUS_STREAM: &str = "fmcsa.census";
const CENSUS: &str = "az4n-8mr2";
const AUTHORITIES: &str = "yu5v-wbh6";
const CANCELLATIONS: &str = "3uet-3z4i";
const ON_FILE: &str = "inys-ebih";
/// How the census names the country.
const DOMESTIC: &[&str] = &["AS", "GU", "MP", "PR", "UNITED STATES", "US", "USA", "VI"];
/// The most facts of a kind that are kept of a carrier: those with the latest days.
const KEPT_MAX: usize = 60;
/// A new carrier with more vehicles or drivers than this has reported nonsense. The number is read as this one, and the evidence says so.
const FLEET_MAX: u64 = 1_000;
/// The legal forms that only companies have. Others, such as `CO`, persons use too.
const COMPANY_FORMS: &[&str] = &["CORP", "INC", "LLC", "LLLP", "LLP", "LP", "PC", "PLLC"];
/// The stream that reads the amounts on file of dockets that were granted authority. What is on file later, its rows do not show.
const AUTHORITY_STREAM: &str = "fmcsa.authority";
/// The amounts of liability insurance that part 387 knows, in dollars. Another one is not read, since it can be in another unit.
const AMOUNTS: &[&str] = &["300000", "750000", "1000000", "1500000", "5000000"];
/// Words in the reason of an authority's change that make it no first grant.
const NO_GRANT: &[&str] = &["REINSTAT", "REVOK", "SUSPEND", "WITHDRAW", "TERMINAT", "CANCEL"];

/// The key of a carrier.
pub(super) fn owner(dot: &str) -> String {
    format!("{OWNER}{dot}")
}

/// All facts about a carrier, each by the key of its fact.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub(super) struct Carrier {
    #[serde(skip_serializing_if = "BTreeMap::is_empty")]
    profiles: BTreeMap<String, CarrierFactRow>,
    #[serde(skip_serializing_if = "BTreeMap::is_empty")]
    authorities: BTreeMap<String, CarrierFactRow>,
    #[serde(skip_serializing_if = "BTreeMap::is_empty")]
    cancellations: BTreeMap<String, CarrierFactRow>,
    #[serde(skip_serializing_if = "BTreeMap::is_empty")]
    filings: BTreeMap<String, CarrierFactRow>,
    #[serde(skip_serializing_if = "BTreeMap::is_empty")]
    on_file: BTreeMap<String, CarrierFactRow>,
}

/// A fact about a carrier.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
struct CarrierFactRow {
    /// When a fact of the key was first observed.
    seen: i64,
    /// When this one was.
    at: i64,
    #[serde(with = "filled")]
    fact: CarrierFact,
}

/// Writes only the fields of a fact that have a value, since each kind uses few of them.
mod filled {
    use schemas::facts::carriers::CarrierFact;
    use serde::{Deserialize, Deserializer, Serialize, Serializer};
    use serde_json::{Map, Value, json};

    pub(super) fn serialize<S: Serializer>(fact: &CarrierFact, serializer: S) -> Result<S::Ok, S::Error> {
        let value = serde_json::to_value(fact).map_err(serde::ser::Error::custom)?;
        let is_empty = |value: &Value| [json!(""), json!(false), json!([])].contains(value);
        let fields: Map<String, Value> = match value {
            Value::Object(fields) => fields.into_iter().filter(|(_, value)| !is_empty(value)).collect(),
            _ => Map::new(),
        };
        fields.serialize(serializer)
    }

    pub(super) fn deserialize<'de, D: Deserializer<'de>>(deserializer: D) -> Result<CarrierFact, D::Error> {
        CarrierFact::deserialize(deserializer)
    }
}

impl Carrier {
    /// Takes over a fact.
    pub(super) fn observe(&mut self, key: &str, fact: &CarrierFact, at: i64) {
        let facts = match fact.kind.as_str() {
            kind::CARRIER => &mut self.profiles,
            kind::AUTHORITY => &mut self.authorities,
            kind::CANCELLATION => &mut self.cancellations,
            kind::FILING => &mut self.filings,
            kind::ON_FILE => &mut self.on_file,
            _ => return,
        };
        // A run reads the days of its window again, older rows of an authority before newer ones: an older row than the known one changes nothing.
        if fact.kind == kind::AUTHORITY && facts.get(key).is_some_and(|known| known.fact.changed > fact.changed) {
            return;
        }
        let seen = facts.get(key).map_or(at, |known| known.seen.min(at));
        facts.insert(key.to_owned(), CarrierFactRow { seen, at, fact: fact.clone() });
        while facts.len() > KEPT_MAX {
            let oldest = facts.iter().min_by_key(|(key, known)| (day_text(&known.fact), (*key).clone())).map(|(key, _)| key.clone());
            let Some(oldest) = oldest else { break };
            facts.remove(&oldest);
        }
    }

    /// Forgets a fact.
    pub(super) fn withdraw(&mut self, key: &str) {
        for facts in [&mut self.profiles, &mut self.authorities, &mut self.cancellations, &mut self.filings, &mut self.on_file] {
            facts.remove(key);
        }
    }

    /// The row of the census that was read last, by whichever stream.
    fn profile(&self) -> Option<&CarrierFact> {
        self.profiles.iter().max_by_key(|(key, known)| (known.at, *key)).map(|(_, known)| &known.fact)
    }

    fn new_carrier(&self, into: &mut Vec<Trigger>) {
        let census = self.profiles.values().filter(|known| known.fact.stream == CENSUS_STREAM && known.fact.status != "I");
        for CarrierFactRow { seen, fact, .. } in census {
            let Some(day) = recent(&fact.added, *seen) else { continue };
            let (mut facts, record) = facts_of_carrier(fact);
            if let Some(row) = self.required(&fact.docket, "") {
                let required = [("op_auth_type", &row.authority_type), ("min_cov_amount", &row.bipd_required)];
                facts.extend(required.into_iter().filter_map(|(field, value)| rule_fact(ON_FILE, field, value)));
            }
            into.push(Trigger { name: "new_carrier", day, facts, record, docket: fact.docket.clone(), url: census_url(&fact.dot) });
        }
    }

    fn authority_granted(&self, into: &mut Vec<Trigger>) {
        for CarrierFactRow { seen, fact, .. } in self.authorities.values() {
            let reason = fact.reason.to_ascii_uppercase();
            let is_granted = fact.authority_status.eq_ignore_ascii_case("active") && !NO_GRANT.iter().any(|word| reason.contains(word));
            let Some(day) = recent(&fact.changed, *seen).filter(|_| is_granted) else { continue };
            // Whether the carrier reports hazardous materials decides the amount, and what the register requires of the docket.
            let hazmat = self.profile().and_then(|profile| rule_fact(CENSUS, "hm_ind", &profile.hm_ind));
            let required = self.required(&fact.docket, &fact.authority_type);
            let required = required.and_then(|row| rule_fact(ON_FILE, "min_cov_amount", &row.bipd_required));
            let authority = rule_fact(AUTHORITIES, "op_auth_type", &fact.authority_type);
            let facts: Vec<RuleFact> = authority.into_iter().chain(hazmat).chain(required).collect();
            let record = [
                ("usdot_number", &fact.dot),
                ("docket_number", &fact.docket),
                ("op_auth_status", &fact.authority_status),
                ("reason", &fact.reason),
                ("status_change_date", &fact.changed),
            ];
            let record = record.into_iter().filter_map(|(field, value)| rule_fact(AUTHORITIES, field, value)).collect();
            into.push(Trigger {
                name: "authority_granted",
                day,
                facts,
                record,
                docket: fact.docket.clone(),
                url: url(AUTHORITIES, &fact.dot),
            });
        }
    }

    fn insurance_lapse(&self, into: &mut Vec<Trigger>) {
        let filings_in =
            |facts: &BTreeMap<String, CarrierFactRow>| facts.values().filter_map(|known| filing(&known.fact)).collect::<Vec<Filing>>();
        // A filing that was cancelled stays known as it was filed, so another one that is cancelled later would seem to be replaced by it.
        let filings = insurance_filings::with_cancellations(&filings_in(&self.filings), &filings_in(&self.cancellations));
        for CarrierFactRow { seen, fact, .. } in self.cancellations.values() {
            let (Some(day), Some(cancelled)) = (recent(&fact.cancelled, *seen), filing(fact)) else { continue };
            let (on_file, required) = self.amounts(&fact.docket, cancelled.subject);
            // A docket of which no liability insurance is required, such as that of a broker, has nothing to lapse.
            if insurance_filings::lapse(&cancelled, &filings, on_file) != Lapse::Lapsed || required == Some(0) {
                continue;
            }
            let form = rule_fact(CANCELLATIONS, "ins_form_code", &fact.form);
            let required_text = required.map(|dollars| dollars.to_string()).unwrap_or_default();
            let facts: Vec<RuleFact> = form
                .into_iter()
                .chain(rule_fact(ON_FILE, "min_cov_amount", &required_text))
                .chain(self.of_docket(&fact.docket).filter_map(|row| rule_fact(ON_FILE, "op_auth_type", &row.authority_type)))
                .collect();
            let on_file_field = match cancelled.subject {
                Subject::Liability => ("bipd_file", "0"),
                Subject::Cargo => ("cargo_file", "N"),
                Subject::Bond => ("bond_file", "N"),
            };
            let record = [("usdot_number", &fact.dot), ("policy_no", &fact.policy), ("cancl_effective_date", &fact.cancelled)];
            let record = record.into_iter().filter_map(|(field, value)| rule_fact(CANCELLATIONS, field, value));
            let record = record.chain(rule_fact(ON_FILE, on_file_field.0, on_file_field.1)).collect();
            into.push(Trigger {
                name: "insurance_lapse",
                day,
                facts,
                record,
                docket: fact.docket.clone(),
                url: url(CANCELLATIONS, &fact.dot),
            });
        }
    }

    /// The amounts on file of a docket if they are known, else of the carrier, as they were read with cancelled filings.
    fn of_docket(&self, docket: &str) -> impl Iterator<Item = &CarrierFact> + Clone {
        let of_docket = move |fact: &CarrierFact| !docket.is_empty() && fact.docket == docket;
        let rows = self.on_file.values().map(|known| &known.fact).filter(|fact| fact.stream != AUTHORITY_STREAM);
        let is_known = rows.clone().any(of_docket);
        rows.filter(move |fact| !is_known || of_docket(fact))
    }

    /// The row with the amount of liability insurance that the register requires of a docket: for an authority of a type if there is one, else the highest
    /// amount. `None` if no amount that the regulation knows is required.
    fn required(&self, docket: &str, authority_type: &str) -> Option<&CarrierFact> {
        let mut rows: BTreeMap<&str, &CarrierFactRow> = BTreeMap::new();
        for known in self.on_file.values().filter(|known| !docket.is_empty() && known.fact.docket == docket) {
            // Two streams can read one row: what was read last counts.
            match rows.get(known.fact.authority_type.as_str()) {
                Some(other) if other.at > known.at => {}
                _ => _ = rows.insert(&known.fact.authority_type, known),
            }
        }
        let is_required =
            |fact: &&CarrierFact| !fact.authority_status.eq_ignore_ascii_case("inactive") && AMOUNTS.contains(&fact.bipd_required.as_str());
        rows.into_values()
            .map(|known| &known.fact)
            .filter(is_required)
            .max_by_key(|fact| (fact.authority_type.eq_ignore_ascii_case(authority_type), fact.bipd_required.parse::<u64>().unwrap_or(0)))
    }

    /// The dollars on file and required of a kind of insurance, for a docket if its amounts are known, else for the carrier. A bond or cargo insurance
    /// that is on file counts as 1 dollar. `None` if nothing is known.
    fn amounts(&self, docket: &str, subject: Subject) -> (Option<u64>, Option<u64>) {
        let rows = self.of_docket(docket);
        let on_file = |fact: &CarrierFact| {
            let flag = |text: &str| match text {
                "Y" => Some(1),
                "N" => Some(0),
                _ => None,
            };
            match subject {
                Subject::Liability => fact.bipd_on_file.parse().ok(),
                Subject::Cargo => flag(&fact.cargo_on_file),
                Subject::Bond => flag(&fact.bond_on_file),
            }
        };
        let required = rows.clone().filter_map(|fact| fact.bipd_required.parse().ok());
        let required = required.max().filter(|_| subject == Subject::Liability);
        (rows.filter_map(on_file).max(), required)
    }
}

/// The day by which facts of a kind are kept.
fn day_text(fact: &CarrierFact) -> String {
    [&fact.cancelled, &fact.changed, &fact.effective, &fact.added].into_iter().max().cloned().unwrap_or_default()
}

/// A trigger of leads: its day, and the facts that the rules read.
struct Trigger {
    name: &'static str,
    day: Date,
    facts: Vec<RuleFact>,
    /// The facts of the record that is the trigger: its number and its day, and what else is evidence.
    record: Vec<RuleFact>,
    docket: String,
    url: String,
}

/// A day that was recent when it was observed first.
fn recent(text: &str, seen: i64) -> Option<Date> {
    text.parse().ok().filter(|day| is_recent(*day, seen))
}

fn filing(fact: &CarrierFact) -> Option<Filing> {
    // A filing without a day of beginning cannot be in force on the day on which another is cancelled; of a cancelled one the day is not needed.
    let effective = fact.effective.parse().ok().or_else(|| fact.cancelled.parse().ok())?;
    let subject = Subject::of_form(&fact.form)?;
    Some(Filing { subject, policy: fact.policy.clone(), effective, cancelled: fact.cancelled.parse().ok() })
}

/// The facts of a carrier that rules read, and those of its record that are evidence only: its number and its day, what is implausible, and an earlier
/// number that was revoked.
fn facts_of_carrier(fact: &CarrierFact) -> (Vec<RuleFact>, Vec<RuleFact>) {
    let record = [("dot_number", &fact.dot), ("add_date", &fact.added)];
    let mut record: Vec<RuleFact> = record.into_iter().filter_map(|(field, value)| rule_fact(CENSUS, field, value)).collect();
    let texts = [("carrier_operation", &fact.carrier_operation), ("classdef", &fact.classdef), ("hm_ind", &fact.hm_ind)];
    let mut facts: Vec<RuleFact> = texts.into_iter().filter_map(|(field, value)| rule_fact(CENSUS, field, value)).collect();
    let numbers = [
        ("power_units", &fact.power_units),
        ("truck_units", &fact.truck_units),
        ("bus_units", &fact.bus_units),
        ("total_drivers", &fact.total_drivers),
    ];
    for (field, value) in numbers {
        let capped = value.parse::<u64>().ok().filter(|number| *number > FLEET_MAX);
        let read = capped.map_or_else(|| value.clone(), |_| FLEET_MAX.to_string());
        facts.extend(rule_fact(CENSUS, field, &read));
        if capped.is_some() {
            record.extend(rule_fact(CENSUS, field, &format!("{value} is implausible for a new carrier and was read as {FLEET_MAX}")));
        }
    }
    facts.extend(fact.cargo.iter().filter_map(|name| rule_fact(CENSUS, name, "X")));
    if fact.prior_revoked {
        record.extend(rule_fact(CENSUS, "prior_revoke_flag", "Y"));
    }
    (facts, record)
}

/// The name by which a carrier is compared with companies: its legal name; that of a company if a person does business under it.
fn compared_name(profile: &CarrierFact) -> &str {
    let is_company = |name: &str| CompanyName::new(name).is_some_and(|name| name.forms().any(|form| COMPANY_FORMS.contains(&form)));
    let is_under_company = profile.is_person && !is_company(&profile.legal_name) && is_company(&profile.dba_name);
    if is_under_company { &profile.dba_name } else { &profile.legal_name }
}

fn census_url(dot: &str) -> String {
    format!("https://data.transportation.gov/resource/{CENSUS}.json?dot_number={dot}")
}

fn url(dataset: &str, dot: &str) -> String {
    format!("https://data.transportation.gov/resource/{dataset}.json?usdot_number={dot}")
}

impl Owner for Carrier {
    fn candidates(&self, owner: &str) -> Candidates {
        let Some(profile) = self.profile() else { return Candidates::new() };
        let is_domestic = profile.country.is_empty() || DOMESTIC.contains(&profile.country.to_ascii_uppercase().as_str());
        // Letters of a state of Mexico can be those of a state here.
        let Some(state) = US_STATES.into_iter().find(|state| is_domestic && *state == profile.state) else { return Candidates::new() };
        let dot = owner.strip_prefix(OWNER).unwrap_or_default();
        let address = Address::new(&profile.street, &profile.city, state, &profile.zip);
        let mut triggers = Vec::new();
        self.new_carrier(&mut triggers);
        self.authority_granted(&mut triggers);
        self.insurance_lapse(&mut triggers);
        let mut candidates = Candidates::new();
        // Most carriers that are looked up have no trigger.
        let company = if triggers.is_empty() { None } else { same_business::name_key(compared_name(profile)) };
        for Trigger { name, day, facts, record, docket, url } in triggers {
            for line in mandates::lines(name, state, &facts) {
                let (parts, basis) = lead_of(line, record.clone());
                let docket = if docket.is_empty() { &profile.docket } else { &docket };
                let lead = Lead {
                    id: format!("{SOURCE}:{dot}:{}:{name}:{day}", parts.coverage_line),
                    business: profile.legal_name.clone(),
                    dba: if profile.dba_name == profile.legal_name { String::new() } else { profile.dba_name.clone() },
                    state: state.to_owned(),
                    city: profile.city.clone(),
                    zip: address.zip().to_owned(),
                    trigger: name.to_owned(),
                    trigger_date: day.to_string(),
                    source: SOURCE.to_owned(),
                    sources: vec![SOURCE.to_owned()],
                    ids: BusinessIds { dot: dot.to_owned(), mc: docket.clone(), entity_id: String::new() },
                    url: url.clone(),
                    ..parts
                };
                let candidate = Candidate::new(lead, company.as_deref(), &address, day, basis);
                // Two authorities of one day can demand the same line: the stronger counts.
                match candidates.get(&candidate.lead.id) {
                    Some(known) if known.basis <= candidate.basis => {}
                    _ => drop(candidates.insert(candidate.lead.id.clone(), candidate)),
                }
            }
        }
        candidates
    }

    fn is_empty(&self) -> bool {
        *self == Self::default()
    }
}
