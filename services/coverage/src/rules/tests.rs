//! The fold over carriers and entities: the rows of the contract's table, leads of several sources, counts, and that the order of facts does not matter.

use std::collections::{BTreeMap, BTreeSet};

use crate::record::{Evidence, LastCounts, Mandate, counts_term, last_counts_term};
use schemas::facts::carriers::kind;
use schemas::tables::{Datum, Key};
use schemas::views::records::{Record, day_number};

use super::leads::MEMBERS_MAX;
use super::*;
use fold::random::Random;
use fold::testing::{self, Folded};

mod evidence;
mod merges;
mod rounds;

/// 2026-11-20 12:00 UTC.
const NOON: i64 = 1_795_176_000_000;

type Engine = Folded<Coverage>;

/// What the tests ask of the service in memory.
trait TestMethods {
    /// The leads that lists show.
    fn leads(&self) -> Vec<Lead>;
    /// The leads in short: line, basis, trigger, day, sources, amount.
    fn short(&self) -> Vec<String>;
    /// The last counts of a day in the index.
    fn counts(&self, day: &str) -> BTreeMap<String, i64>;
    /// Fails unless the counts are those of the leads.
    fn assert_counted(&self);
}

impl TestMethods for Engine {
    fn leads(&self) -> Vec<Lead> {
        self.records().into_values().filter(Record::is_listed).collect()
    }

    fn short(&self) -> Vec<String> {
        let short = |lead: Lead| {
            let amount = lead.mandate.amount.map_or_else(|| "-".to_owned(), |amount| amount.to_string());
            format!("{} {} {} {} {} {amount}", lead.coverage_line, lead.basis, lead.trigger, lead.trigger_date, lead.sources.join("+"))
        };
        let mut leads: Vec<String> = self.leads().into_iter().map(short).collect();
        leads.sort_unstable();
        leads
    }

    fn counts(&self, day: &str) -> BTreeMap<String, i64> {
        let bucket = day_number(day.parse().unwrap());
        let is_of = |key: &Key| key[0] == Datum::Text(counts_term()) && key[1] == Datum::Int(bucket);
        let last = self.table(TABLES.terms).rfind(|(key, _)| is_of(key));
        last.map(|(_, value)| serde_json::from_slice(value).unwrap()).unwrap_or_default()
    }

    fn assert_counted(&self) {
        let mut expected: BTreeMap<String, BTreeMap<String, i64>> = BTreeMap::new();
        for lead in self.leads() {
            *expected.entry(lead.trigger_date).or_default().entry(format!("{}/{}", lead.source, lead.coverage_line)).or_default() += 1;
        }
        let days: BTreeSet<String> = self.records().into_values().map(|lead| lead.trigger_date).collect();
        let is_last = |key: &Key| key[0] == Datum::Text(last_counts_term());
        let last: BTreeMap<&Datum, LastCounts> = self
            .table(TABLES.terms)
            .filter(|(key, _)| is_last(key))
            .map(|(key, value)| (&key[2], serde_json::from_slice(value).unwrap()))
            .collect();
        for day in days {
            let number = Datum::Int(day_number(day.parse().unwrap()));
            assert_eq!(last.get(&number).cloned().unwrap_or_default().counts, self.counts(&day), "{day}");
            assert_eq!(self.counts(&day), expected.remove(&day).unwrap_or_default(), "{day}");
        }
    }
}

fn engine(facts: &[Fact<CoverageFact>]) -> Engine {
    let mut engine = Engine::default();
    facts.iter().for_each(|fact| engine.decide(fact));
    engine.assert_counted();
    engine
}

fn fact(key: &str, kind: FactKind, data: Option<CoverageFact>) -> Fact<CoverageFact> {
    testing::fact(key, kind, NOON, data)
}

fn of_carrier(key: &str, data: CarrierFact) -> Fact<CoverageFact> {
    fact(key, FactKind::Observed, Some(CoverageFact::Carrier(Box::new(data))))
}

fn carrier() -> CarrierFact {
    CarrierFact {
        stream: "fmcsa.census".into(),
        kind: kind::CARRIER.into(),
        dot: "4312345".into(),
        docket: "MC1234567".into(),
        legal_name: "BLUE MESA FREIGHT LLC".into(),
        street: "312 E CARTER ST".into(),
        city: "DENVER".into(),
        state: "CO".into(),
        zip: "80202".into(),
        status: "A".into(),
        added: "2026-11-18".into(),
        carrier_operation: "A".into(),
        classdef: "AUTHORIZED FOR HIRE".into(),
        hm_ind: "N".into(),
        power_units: "2".into(),
        truck_units: "2".into(),
        total_drivers: "1".into(),
        ..CarrierFact::default()
    }
}

fn census(data: CarrierFact) -> Fact<CoverageFact> {
    of_carrier(&format!("fmcsa.census/{}", data.dot), data)
}

/// The row of a carrier of any age that another stream looked up.
fn looked_up() -> Fact<CoverageFact> {
    let data = CarrierFact { stream: "fmcsa.cancellations".into(), added: "2019-01-01".into(), ..carrier() };
    of_carrier("fmcsa.cancellations/carrier/4312345", data)
}

fn cancellation(cancelled: &str) -> Fact<CoverageFact> {
    cancellation_of("S-LHMI2518-00", cancelled)
}

fn cancellation_of(policy: &str, cancelled: &str) -> Fact<CoverageFact> {
    let data = CarrierFact {
        stream: "fmcsa.cancellations".into(),
        kind: kind::CANCELLATION.into(),
        dot: "4312345".into(),
        docket: "MC1234567".into(),
        form: "BMC-91X".into(),
        policy: policy.into(),
        effective: "2025-11-25".into(),
        cancelled: cancelled.into(),
        ..CarrierFact::default()
    };
    of_carrier(&format!("fmcsa.cancellations/4312345|BMC-91X|{}|{cancelled}", insurance_filings::policy_key(policy)), data)
}

fn filing(policy: &str, effective: &str) -> Fact<CoverageFact> {
    let data = CarrierFact {
        stream: "fmcsa.cancellations".into(),
        kind: kind::FILING.into(),
        dot: "4312345".into(),
        form: "BMC-91X".into(),
        policy: policy.into(),
        effective: effective.into(),
        ..CarrierFact::default()
    };
    of_carrier(&format!("fmcsa.cancellations/filing/4312345|BMC-91X|{policy}|{effective}"), data)
}

fn on_file(bipd: &str) -> Fact<CoverageFact> {
    let data = CarrierFact {
        stream: "fmcsa.cancellations".into(),
        kind: kind::ON_FILE.into(),
        dot: "4312345".into(),
        docket: "MC1234567".into(),
        bipd_required: "750000".into(),
        bipd_on_file: bipd.into(),
        ..CarrierFact::default()
    };
    of_carrier("fmcsa.cancellations/on_file/4312345|MC1234567|Motor Carrier of Property", data)
}

fn authority(kind_of: &str, status: &str, reason: &str) -> Fact<CoverageFact> {
    authority_on("2026-11-19", kind_of, status, reason)
}

fn authority_on(changed: &str, kind_of: &str, status: &str, reason: &str) -> Fact<CoverageFact> {
    let data = CarrierFact {
        stream: "fmcsa.authority".into(),
        kind: kind::AUTHORITY.into(),
        dot: "4312345".into(),
        docket: "MC1234567".into(),
        authority_type: kind_of.into(),
        authority_status: status.into(),
        reason: reason.into(),
        changed: changed.into(),
        ..CarrierFact::default()
    };
    of_carrier(&format!("fmcsa.authority/MC1234567|{kind_of}"), data)
}

fn of_entity(key: &str, data: BusinessFact) -> Fact<CoverageFact> {
    fact(key, FactKind::Observed, Some(CoverageFact::Business(Box::new(data))))
}

fn colorado(entity: &str, name: &str, day: &str) -> BusinessFact {
    BusinessFact {
        stream: "sos.co".into(),
        entity: entity.into(),
        name: name.into(),
        entity_type: "DLLC".into(),
        status: "Good Standing".into(),
        jurisdiction: "CO".into(),
        day: day.into(),
        street: "312 East Carter Street".into(),
        city: "Denver".into(),
        state: "CO".into(),
        zip: "80202".into(),
        ..BusinessFact::default()
    }
}

fn co(data: BusinessFact) -> Fact<CoverageFact> {
    of_entity(&format!("sos.co/{}", data.entity), data)
}

fn new_york(event: &str, filing_type: &str) -> Fact<CoverageFact> {
    let data = BusinessFact {
        stream: "sos.ny".into(),
        entity: "7000001".into(),
        event: event.into(),
        name: "HUDSON GOODS LLC".into(),
        entity_type: "DOMESTIC LIMITED LIABILITY COMPANY".into(),
        filing_type: filing_type.into(),
        day: "2026-11-18".into(),
        ..BusinessFact::default()
    };
    of_entity(&format!("sos.ny/{event}"), data)
}

const LIABILITY: &str = "AUTO_LIABILITY_BIPD MANDATED new_carrier 2026-11-18 fmcsa 750000";

/// Proves the rows of the contract's table about carriers: for hire, household goods, hazardous materials, private.
#[test]
fn new_carriers() {
    let leads_of = |data: CarrierFact| engine(&[census(data)]).short();
    assert_eq!(leads_of(carrier()), [LIABILITY, "CARGO LIKELY new_carrier 2026-11-18 fmcsa -"]);
    let household = CarrierFact { cargo: vec!["crgo_household".into()], ..carrier() };
    assert_eq!(leads_of(household), [LIABILITY, "CARGO MANDATED new_carrier 2026-11-18 fmcsa 5000"]);
    let hazardous = engine(&[census(CarrierFact { hm_ind: "Y".into(), ..carrier() })]);
    assert_eq!(hazardous.short()[0], "AUTO_LIABILITY_BIPD MANDATED new_carrier 2026-11-18 fmcsa -");
    assert!(hazardous.leads()[0].mandate.rule.contains("1,000,000 to 5,000,000 by class"));
    let private = leads_of(CarrierFact { classdef: "PRIVATE PROPERTY".into(), ..carrier() });
    assert_eq!(private, ["AUTO_LIABILITY_BIPD POSSIBLE new_carrier 2026-11-18 fmcsa -"]);
    // No lead: an inactive carrier, one of another country, one that was registered long before it was seen.
    for none in [
        CarrierFact { status: "I".into(), ..carrier() },
        CarrierFact { state: "ON".into(), ..carrier() },
        CarrierFact { added: "2026-08-01".into(), ..carrier() },
    ] {
        assert!(leads_of(none).is_empty());
    }
    assert!(engine(&[looked_up()]).short().is_empty(), "a look-up is no new carrier");
}

/// Proves the lead of the contract's example, and that its rule is worded neutrally.
#[test]
fn a_whole_lead() {
    let lead = engine(&[census(carrier())]).leads().remove(0);
    assert_eq!(lead.id, "fmcsa:4312345:AUTO_LIABILITY_BIPD:new_carrier:2026-11-18");
    assert_eq!((&*lead.business, &*lead.state, &*lead.city, &*lead.zip), ("BLUE MESA FREIGHT LLC", "CO", "DENVER", "80202"));
    assert_eq!((&*lead.source, &*lead.ids.dot, &*lead.ids.mc), ("fmcsa", "4312345", "MC1234567"));
    let Mandate { rule, citation, amount, form, follows, .. } = &lead.mandate;
    assert_eq!((&**rule, &**citation), ("for-hire interstate property, 10,001 lb or more", "49 CFR 387.9; 387.303"));
    assert_eq!((*amount, &**form), (Some(750_000), "BMC-91/91X"));
    assert!(
        follows.starts_with("AUTO_LIABILITY_BIPD follows from 49 CFR 387.9; 387.303 (for-hire")
            && follows.contains("classdef AUTHORIZED FOR HIRE")
    );
    assert!(lead.evidence.contains(&Evidence {
        field: "classdef".into(),
        value: "AUTHORIZED FOR HIRE".into(),
        dataset: "az4n-8mr2".into()
    }));
    assert_eq!(lead.url, "https://data.transportation.gov/resource/az4n-8mr2.json?dot_number=4312345");
}

/// Proves that a fleet of nonsense is capped and flagged in the evidence, and that an earlier revoked number is evidence.
#[test]
fn nonsense_and_earlier_numbers_are_evidence() {
    let data = CarrierFact { power_units: "92901".into(), truck_units: "92901".into(), prior_revoked: true, ..carrier() };
    let lead = engine(&[census(data)]).leads().remove(0);
    let evidence_of =
        |field: &str| lead.evidence.iter().filter(|fact| fact.field == field).map(|fact| fact.value.clone()).collect::<Vec<_>>();
    assert_eq!(evidence_of("truck_units"), ["1000", "92901 is implausible for a new carrier and was read as 1000"]);
    assert_eq!((evidence_of("power_units").len(), evidence_of("prior_revoke_flag")), (1, vec!["Y".to_owned()]));
}

/// Proves the rows about authority: a broker needs a bond. A reinstatement and a revocation are no grant, and an authority that is revoked withdraws its
/// lead. Before the carrier is known there is no lead.
#[test]
fn authorities() {
    const BROKER: &str = "Broker of Property (Except Household Goods)";
    let bond = ["SURETY_BOND MANDATED authority_granted 2026-11-19 fmcsa 75000"];
    assert_eq!(engine(&[looked_up(), authority(BROKER, "Active", "GRANTED")]).short(), bond);
    assert_eq!(engine(&[authority(BROKER, "Active", "GRANTED"), looked_up()]).short(), bond);
    assert!(engine(&[authority(BROKER, "Active", "GRANTED")]).short().is_empty());
    for (status, reason) in [("Active", "REINSTATED AFTER GRANT"), ("Inactive", "REVOKED"), ("Pending", "")] {
        assert!(engine(&[looked_up(), authority(BROKER, status, reason)]).short().is_empty(), "{status} {reason}");
    }
    // The application of two days earlier is read again with the next run.
    let read_again =
        engine(&[looked_up(), authority(BROKER, "Active", "GRANTED"), authority_on("2026-11-17", BROKER, "Inactive", "PENDING")]);
    assert_eq!(read_again.short(), bond);
    let revoked = engine(&[looked_up(), authority(BROKER, "Active", "GRANTED"), authority(BROKER, "Inactive", "REVOKED")]);
    assert!(revoked.short().is_empty());
    assert!(revoked.records().into_values().all(|lead| lead.withdrawn && lead.business == "BLUE MESA FREIGHT LLC"));
    // A withdrawn fact names its carrier only by its key.
    let key = format!("fmcsa.authority/MC1234567|{BROKER}");
    let gone = engine(&[looked_up(), authority(BROKER, "Active", "GRANTED"), fact(&key, FactKind::Withdrawn, None)]);
    assert!(gone.short().is_empty() && gone.records().len() == 1);
}

/// Proves the rows about cancelled filings: a lapse only where no other filing is in force and the amount on file is known to be zero, in whatever order
/// this becomes known.
#[test]
fn lapses() {
    let lapse = ["AUTO_LIABILITY_BIPD MANDATED insurance_lapse 2026-11-25 fmcsa 750000"];
    let leads_after = |more: Vec<Fact<CoverageFact>>| {
        let facts: Vec<Fact<CoverageFact>> = [looked_up(), cancellation("2026-11-25")].into_iter().chain(more).collect();
        engine(&facts).short()
    };
    assert_eq!(leads_after(vec![on_file("0")]), lapse);
    assert_eq!(leads_after(vec![on_file("0"), filing("SLHMI251800", "2025-11-25")]), lapse, "the cancelled filing in another spelling");
    assert!(leads_after(vec![on_file("0"), filing("B-1", "2026-11-20")]).is_empty(), "another filing is in force");
    assert!(leads_after(vec![on_file("750000")]).is_empty() && leads_after(vec![on_file("")]).is_empty() && leads_after(vec![]).is_empty());
    let lead = engine(&[on_file("0"), cancellation("2026-11-25"), looked_up()]).leads().remove(0);
    assert!(lead.evidence.contains(&Evidence { field: "bipd_file".into(), value: "0".into(), dataset: "inys-ebih".into() }));
    assert!(!serde_json::to_string(&lead).unwrap().to_lowercase().contains("uninsured"));
    // A replacement that arrives later withdraws the lead.
    let replaced = engine(&[looked_up(), cancellation("2026-11-25"), on_file("0"), filing("B-1", "2026-11-25")]);
    assert!(replaced.short().is_empty() && replaced.records().into_values().all(|lead| lead.withdrawn));
}

/// Proves that the amount of an authority depends on the carrier's hazardous materials, that letters of another country's state are no state here, that a
/// docket of which no liability insurance is required has nothing to lapse, and that cargo insurance is demanded of carriers of household goods only.
#[test]
fn facts_of_other_rows_decide() {
    const PROPERTY: &str = "Motor Carrier of Property (Except Household Goods)";
    let row = |hm_ind: &str| {
        let data = CarrierFact { stream: "fmcsa.authority".into(), added: "2019-01-01".into(), hm_ind: hm_ind.into(), ..carrier() };
        of_carrier("fmcsa.authority/carrier/4312345", data)
    };
    let granted = |hm_ind: &str| engine(&[authority(PROPERTY, "Active", "GRANTED"), row(hm_ind)]).short();
    assert!(granted("Y").contains(&"AUTO_LIABILITY_BIPD MANDATED authority_granted 2026-11-19 fmcsa -".to_owned()));
    assert!(granted("N").contains(&"AUTO_LIABILITY_BIPD MANDATED authority_granted 2026-11-19 fmcsa 750000".to_owned()));
    assert!(engine(&[census(CarrierFact { country: "MX".into(), ..carrier() })]).leads().is_empty());
    assert!(!engine(&[census(CarrierFact { country: "US".into(), ..carrier() })]).leads().is_empty());

    let on_file = |kind_of: &str, required: &str| {
        let data = CarrierFact {
            stream: "fmcsa.cancellations".into(),
            kind: kind::ON_FILE.into(),
            dot: "4312345".into(),
            docket: "MC1234567".into(),
            authority_type: kind_of.into(),
            bipd_required: required.into(),
            bipd_on_file: "0".into(),
            cargo_on_file: "N".into(),
            ..CarrierFact::default()
        };
        of_carrier(&format!("fmcsa.cancellations/on_file/4312345|MC1234567|{kind_of}"), data)
    };
    let lapsed = |facts: [Fact<CoverageFact>; 2]| engine(&[vec![looked_up()], facts.to_vec()].concat()).short();
    assert!(lapsed([cancellation("2026-11-25"), on_file("Broker of Property", "0")]).is_empty());
    let cargo = || {
        let Some(CoverageFact::Carrier(mut data)) = cancellation("2026-11-25").data else { panic!("no carrier") };
        data.form = "BMC-34".into();
        of_carrier("fmcsa.cancellations/4312345|BMC-34|SLHMI251800|2026-11-25", *data)
    };
    let line = |basis: &str| [format!("CARGO {basis} insurance_lapse 2026-11-25 fmcsa 5000")];
    assert_eq!(lapsed([cargo(), on_file("Motor Carrier of Household Goods", "750000")]), line("MANDATED"));
    assert_eq!(lapsed([cargo(), on_file(PROPERTY, "750000")]), line("CONDITIONAL"));
}

/// Proves that the amount that the register requires of a docket decides, that of the authority itself before another one of the docket; that one of another
/// docket, of no paragraph or of an inactive authority does not; and that rows that are read with authorities say nothing of a lapse.
#[test]
fn amounts_that_dockets_require() {
    const PROPERTY: &str = "Motor Carrier of Property (Except Household Goods)";
    const DOCKET: &str = "MC1234567";
    let authority_on_file = |docket: &str, kind_of: &str, required: &str, status: &str| {
        let data = CarrierFact {
            stream: "fmcsa.authority".into(),
            kind: kind::ON_FILE.into(),
            dot: "4312345".into(),
            docket: docket.into(),
            authority_type: kind_of.into(),
            authority_status: status.into(),
            bipd_required: required.into(),
            bipd_on_file: "750000".into(),
            ..CarrierFact::default()
        };
        of_carrier(&format!("fmcsa.authority/on_file/4312345|{docket}|{kind_of}"), data)
    };
    let granted = |rows: Vec<Fact<CoverageFact>>| {
        let facts = [vec![looked_up(), authority(PROPERTY, "Active", "GRANTED")], rows].concat();
        let mandate = engine(&facts).leads().into_iter().find(|lead| lead.coverage_line == "AUTO_LIABILITY_BIPD").unwrap().mandate;
        (mandate.amount, mandate.citation)
    };
    let small = (Some(300_000), "49 CFR 387.303(b)(1)".to_owned());
    assert_eq!(granted(vec![authority_on_file(DOCKET, PROPERTY, "300000", "Active")]), small);
    let of_two = vec![
        authority_on_file(DOCKET, "Motor Carrier of Household Goods", "750000", "Active"),
        authority_on_file(DOCKET, PROPERTY, "300000", "Active"),
    ];
    assert_eq!(granted(of_two), small);
    let whole = |dollars: i64| (Some(dollars), "49 CFR 387.9; 387.303".to_owned());
    assert_eq!(granted(vec![authority_on_file(DOCKET, PROPERTY, "1000000", "Active")]), whole(1_000_000));
    for row in [
        authority_on_file("MC7", PROPERTY, "300000", "Active"),
        authority_on_file("", PROPERTY, "300000", "Active"),
        authority_on_file(DOCKET, PROPERTY, "300", "Active"),
        authority_on_file(DOCKET, PROPERTY, "300000", "Inactive"),
    ] {
        assert_eq!(granted(vec![row]), whole(750_000));
    }

    let new = engine(&[census(carrier()), authority_on_file(DOCKET, PROPERTY, "300000", "Active")]);
    assert_eq!(new.short()[0], "AUTO_LIABILITY_BIPD MANDATED new_carrier 2026-11-18 fmcsa 300000");
    let evidence = Evidence { field: "min_cov_amount".into(), value: "300000".into(), dataset: "inys-ebih".into() };
    assert!(new.leads()[0].evidence.contains(&evidence), "{:?}", new.leads()[0].evidence);

    let lapsed = engine(&[looked_up(), cancellation("2026-11-25"), on_file("0"), authority_on_file(DOCKET, PROPERTY, "750000", "Active")]);
    assert_eq!(lapsed.short(), ["AUTO_LIABILITY_BIPD MANDATED insurance_lapse 2026-11-25 fmcsa 750000"]);
}

/// Proves that a filing counts as a replacement only until its own cancellation: of two policies that are cancelled one after the other the later
/// cancellation is the lapse, of two on one day that day, and a renewal under the same number is none. The order of the facts does not matter.
#[test]
fn lapses_after_earlier_cancellations() {
    let lapses = |facts: &[Fact<CoverageFact>]| {
        let mut reversed = facts.to_vec();
        reversed.reverse();
        let short = engine(facts).short();
        assert_eq!(engine(&reversed).short(), short);
        short.iter().map(|lead| lead.split(' ').nth(3).unwrap().to_owned()).collect::<Vec<_>>()
    };
    let known = |more: &[Fact<CoverageFact>]| {
        let begun = [looked_up(), on_file("0"), filing("SLHMI251800", "2025-11-25"), filing("B-1", "2026-01-01")];
        [begun.as_slice(), more].concat()
    };
    let first = cancellation("2026-11-25");
    let second = |day: &str| cancellation_of("B1", day);
    assert_eq!(lapses(&known(std::slice::from_ref(&first))), [""; 0], "B-1 is in force");
    assert_eq!(lapses(&known(&[first.clone(), second("2026-11-24")])), ["2026-11-25"], "the day after");
    assert_eq!(lapses(&known(&[first.clone(), second("2026-11-25")])), ["2026-11-25"], "the same day");
    assert_eq!(lapses(&known(&[first.clone(), second("2026-11-26")])), ["2026-11-26"], "the day before");
    let renewed = filing("B-1", "2026-11-26");
    assert_eq!(lapses(&known(&[first, second("2026-11-26"), renewed])), [""; 0], "renewed on the day of its cancellation");
}

/// Proves the rows about registers: a new company, a word of a name as evidence, a company of another state, one that ended, and a name that is no entity.
#[test]
fn registers() {
    let leads_of = |data: BusinessFact| engine(&[co(data)]).short();
    let plain =
        ["GENERAL_LIABILITY LIKELY entity_formed 2026-11-16 sos-co -", "WORKERS_COMP CONDITIONAL entity_formed 2026-11-16 sos-co -"];
    assert_eq!(leads_of(colorado("1", "Blue Mesa LLC", "2026-11-16")), plain);
    let brewery = engine(&[co(colorado("1", "Copper Mug Brewery LLC", "2026-11-16"))]);
    assert_eq!(brewery.short().len(), 3);
    let liquor = brewery.leads().into_iter().find(|lead| lead.coverage_line == "LIQUOR_LIABILITY").unwrap();
    assert_eq!((&*liquor.basis, &*liquor.evidence[0].value), ("LIKELY", "brewery"));
    let foreign = BusinessFact { is_foreign: true, jurisdiction: "DE".into(), ..colorado("1", "Far LLC", "2026-11-16") };
    assert_eq!(leads_of(foreign), ["GENERAL_LIABILITY POSSIBLE foreign_registration 2026-11-16 sos-co -"]);
    for none in [
        BusinessFact { ended: "2026-11-17".into(), ..colorado("1", "Gone LLC", "2026-11-16") },
        BusinessFact { status: "Voluntarily Dissolved".into(), ..colorado("1", "Gone LLC", "2026-11-16") },
        BusinessFact { entity_type: "ASSUMED BUSINESS NAME".into(), ..colorado("1", "HOME CRAFTS", "2026-11-16") },
        colorado("1", "Old LLC", "2026-08-01"),
        colorado("1", "Far ahead LLC", "2027-12-01"),
    ] {
        assert!(leads_of(none).is_empty());
    }
    // A company whose formation is recent is kept, so that its end withdraws its leads.
    let ended = BusinessFact { status: "Voluntarily Dissolved".into(), ..colorado("1", "Blue Mesa LLC", "2026-11-16") };
    let ended = engine(&[co(colorado("1", "Blue Mesa LLC", "2026-11-16")), co(ended)]);
    assert!(ended.short().is_empty() && ended.records().len() == 2);
}

/// Proves that entities of Iowa lead to leads as those of other states do, by the types of its register.
#[test]
fn entities_of_iowa() {
    let leads_named = |entity_type: &str, name: &str| {
        let is_foreign = entity_type.contains("FOREIGN");
        let data = BusinessFact {
            stream: "sos.ia".into(),
            entity_type: entity_type.into(),
            is_foreign,
            state: "IA".into(),
            zip: "50309".into(),
            ..colorado("812345", name, "2026-11-12")
        };
        engine(&[of_entity("sos.ia/812345", data)])
    };
    let formed = leads_named("DOMESTIC LIMITED LIABILITY COMPANY", "HAWKEYE GOODS LLC");
    let plain =
        ["GENERAL_LIABILITY LIKELY entity_formed 2026-11-12 sos-ia -", "WORKERS_COMP CONDITIONAL entity_formed 2026-11-12 sos-ia -"];
    assert_eq!(formed.short(), plain);
    let lead = &formed.leads()[0];
    assert_eq!((&*lead.state, &*lead.ids.entity_id, &*lead.business), ("IA", "812345", "HAWKEYE GOODS LLC"));
    assert_eq!(lead.id, "sos-ia:812345:GENERAL_LIABILITY:entity_formed:2026-11-12");
    let nonprofit = leads_named("DOMESTIC NON PROFIT", "CEDAR CHOIR");
    assert!(nonprofit.short().contains(&"DIRECTORS_OFFICERS POSSIBLE entity_formed 2026-11-12 sos-ia -".to_owned()));
    assert_eq!(leads_named("FOREIGN PROFIT", "FAR INC").short(), ["GENERAL_LIABILITY POSSIBLE foreign_registration 2026-11-12 sos-ia -"]);
}

/// Proves that two events of one entity of New York are one lead, whichever comes first, and that an amendment alone is none.
#[test]
fn events_of_one_entity() {
    let (formed, published) = (new_york("1", "ARTICLES OF ORGANIZATION"), new_york("2", "CERTIFICATE OF PUBLICATION"));
    let expected =
        ["GENERAL_LIABILITY LIKELY entity_formed 2026-11-18 sos-ny -", "WORKERS_COMP CONDITIONAL entity_formed 2026-11-18 sos-ny -"];
    let facts = |first: &str, second: &str| [new_york("1", first), new_york("2", second)];
    assert_eq!(engine(&[formed, published]).short(), expected);
    assert_eq!(engine(&facts("CERTIFICATE OF PUBLICATION", "ARTICLES OF ORGANIZATION")).short(), expected);
    assert!(engine(&facts("CERTIFICATE OF AMENDMENT", "CERTIFICATE OF ASSUMED NAME")).records().is_empty());
    let authority = ["GENERAL_LIABILITY POSSIBLE foreign_registration 2026-11-18 sos-ny -"];
    assert_eq!(engine(&[new_york("1", "APPLICATION OF AUTHORITY")]).short(), authority);
}

/// Proves that a business in two sources is one lead for each line, with both sources, both numbers and the stronger rule; that it is led by the earliest;
/// and that a change that takes it apart gives two leads again.
#[test]
fn one_business_in_two_sources() {
    let formed = || co(colorado("20261812345", "Blue Mesa Freight, L.L.C.", "2026-11-16"));
    let both = engine(&[census(carrier()), formed()]);
    let lead = both.leads().into_iter().find(|lead| lead.coverage_line == "AUTO_LIABILITY_BIPD").unwrap();
    assert_eq!((&*lead.source, &lead.sources), ("sos-co", &vec!["sos-co".to_owned(), "fmcsa".to_owned()]));
    assert_eq!((&*lead.basis, lead.mandate.amount, &*lead.trigger_date), ("MANDATED", Some(750_000), "2026-11-16"));
    assert_eq!((&*lead.ids.dot, &*lead.ids.entity_id), ("4312345", "20261812345"));
    assert_eq!(lead.joined[0].reason, "the same name and state, 2 days apart; the same house number, street and ZIP code");
    let merged: Vec<Lead> = both.records().into_values().filter(|lead| !lead.merged_into.is_empty()).collect();
    assert_eq!((merged.len(), &merged[0].merged_into), (1, &lead.id));
    assert_eq!(engine(&[formed(), census(carrier())]).leads(), both.leads());

    let moved = BusinessFact {
        street: "9 Locust Ave".into(),
        zip: "80299".into(),
        ..colorado("20261812345", "Blue Mesa Freight, L.L.C.", "2026-11-16")
    };
    let apart = engine(&[census(carrier()), formed(), co(moved)]);
    let liability: Vec<Lead> = apart.leads().into_iter().filter(|lead| lead.coverage_line == "AUTO_LIABILITY_BIPD").collect();
    assert_eq!(liability.iter().map(|lead| lead.sources.join("+")).collect::<Vec<_>>(), ["fmcsa", "sos-co"]);
    assert!(liability.iter().all(|lead| lead.joined.is_empty() && lead.merged_into.is_empty()));
}

/// Proves that many leads of one name from long ago do not keep two new ones of one business apart, and that they remain as they were.
#[test]
fn leads_of_long_ago_make_room() {
    const LONG_AGO: i64 = NOON - 500 * 24 * 3_600_000;
    let mut engine = Engine::default();
    for number in 0..MEMBERS_MAX {
        let street = format!("{} Oak St", 1_000 + number);
        let data = BusinessFact { street, ..colorado(&number.to_string(), "Blue Mesa Freight, L.L.C.", "2025-07-01") };
        let data = Some(CoverageFact::Business(Box::new(data)));
        engine.decide(&testing::fact(format!("sos.co/{number}"), FactKind::Observed, LONG_AGO, data));
    }
    let before = engine.leads();
    engine.decide(&co(colorado("20261812345", "Blue Mesa Freight, L.L.C.", "2026-11-16")));
    engine.decide(&census(carrier()));
    let leads = engine.leads();
    assert!(leads.iter().any(|lead| lead.sources == ["sos-co", "fmcsa"]), "{:?}", engine.short());
    assert!(before.iter().all(|lead| leads.contains(lead)));
    engine.assert_counted();
}

/// Proves that facts in any order give the same leads and counts, and that each demand has a citation.
#[test]
fn the_order_of_facts_does_not_matter() {
    let mut facts = vec![
        census(carrier()),
        looked_up(),
        cancellation("2026-11-25"),
        cancellation("2026-11-10"),
        on_file("0"),
        filing("B-1", "2026-11-24"),
        authority("Broker of Property (Except Household Goods)", "Active", "GRANTED"),
        authority("Motor Carrier of Household Goods", "Active", "GRANTED"),
        co(colorado("1", "Blue Mesa Freight LLC", "2026-11-16")),
        co(BusinessFact { street: String::new(), zip: String::new(), ..colorado("2", "Blue Mesa Freight Inc", "2026-11-12") }),
        co(BusinessFact { street: "9 Locust Ave".into(), ..colorado("3", "BLUE MESA FREIGHT", "2026-11-14") }),
        new_york("1", "ARTICLES OF ORGANIZATION"),
        new_york("2", "CERTIFICATE OF PUBLICATION"),
    ];
    let expected = engine(&facts);
    assert!(expected.leads().iter().all(|lead| lead.basis != "MANDATED" || !lead.mandate.citation.is_empty()));
    assert!(expected.leads().iter().any(|lead| lead.sources.len() == 2));
    let mut random = Random::new(5);
    for _ in 0..40 {
        for at in (1..facts.len()).rev() {
            facts.swap(at, random.below(at + 1));
        }
        let got = engine(&facts);
        assert_eq!(got.leads(), expected.leads());
    }
    expected.assert_rebuilds();
}

/// Proves that many companies of one name in one state are all leads, although only some are compared, and that those that are not say so.
#[test]
fn many_businesses_of_one_name() {
    let facts: Vec<Fact<CoverageFact>> = (0..30)
        .map(|number: u32| {
            let data = BusinessFact { street: format!("{number} Main St"), ..colorado(&number.to_string(), "Acme LLC", "2026-11-16") };
            co(data)
        })
        .collect();
    let mut leads = engine(&facts).leads();
    leads.retain(|lead| lead.coverage_line == "GENERAL_LIABILITY");
    let not_compared = leads.iter().filter(|lead| !lead.is_compared()).count();
    assert_eq!((leads.len(), not_compared), (30, 30 - MEMBERS_MAX));
}
