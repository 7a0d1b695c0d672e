//! The fold over floor areas: parcels without a sale are compared by their value per square foot, with medians that are frozen, and are decided in parts.

use std::collections::{BTreeMap, BTreeSet};

use crate::record::{Basis, DeltaCounts, PER_SQFT, SQFT_RULE, delta_counts, township_counts};
use fold::testing;
use texts::allegheny::COUNTY;

use super::allegheny_tests::{self, Engine, FactOf, NOON, assessment, counted, ends, engine, pin, sale};
use super::*;

/// The sold parcels that others are compared with.
const PEERS: usize = 32;
/// A parcel without a sale: 125 dollars a square foot.
const UNSOLD: usize = 100;

/// The assessment of a parcel with a floor area in square feet.
fn measured(number: usize, year: i64, total: i64, area: Option<i64>) -> FactOf {
    let mut fact = assessment(number, year, total);
    if let Some(ParcelsFact::Parcel(data)) = &mut fact.data {
        data.floor_area = area;
    }
    fact
}

fn unsold(year: i64) -> FactOf {
    measured(UNSOLD, year, 200_000, Some(1_600))
}

/// The value of a peer: of its 1,000 square feet each has, in turn, 90, 100 and 110 dollars.
fn value(at: usize) -> i64 {
    90_000 + 10_000 * (at as i64 % 3)
}

/// Peers of which the first so many have a floor area, sold at twice their values. Of 32, which have 11 times 90, 11 times 100 and 10 times 110 dollars a
/// square foot, one is left out at each end. The median of the others is 100; and they differ from it by (10 * 10 + 9 * 10) / 30 = 6.3333 percent of it.
fn peers(count: usize, with_area: usize, year: i64) -> Vec<FactOf> {
    let facts_at = |at: usize| {
        let area = Some(1_000).filter(|_| at < with_area);
        [measured(at, year, value(at), area), sale(at, 2 * value(at), "VALID SALE")]
    };
    (0..count).flat_map(facts_at).collect()
}

/// The facts of the parts of the ward, which follow its cycle.
fn parts(year: i64) -> Vec<FactOf> {
    let part = |part: i64| {
        let data = ParcelFact {
            kind: parcels::PART.into(),
            year,
            township: "104".into(),
            stage: "certified".into(),
            part: Some(part),
            ..ParcelFact::default()
        };
        let key = format!("allegheny.assessments/cycle/104/part/{part}");
        testing::fact(key, FactKind::Observed, NOON, Some(ParcelsFact::Parcel(Box::new(data))))
    };
    (0..parcels::PARTS).map(part).collect()
}

/// The facts of the parts of the ward, which follow the one that its sales were read.
fn parts_of_sales() -> Vec<FactOf> {
    let part = |part: i64| {
        let data = SaleFact { kind: parcels::PART.into(), township: "104".into(), part: Some(part), ..SaleFact::default() };
        testing::fact(format!("allegheny.sales/read/104/part/{part}"), FactKind::Observed, NOON, Some(ParcelsFact::Sale(Box::new(data))))
    };
    (0..parcels::PARTS).map(part).collect()
}

/// A ward with its peers and some parcels without a sale, whose cycle has closed.
fn ward(others: Vec<FactOf>) -> Vec<FactOf> {
    peers(PEERS, PEERS, 2026).into_iter().chain(others).chain(ends(2026)).chain(parts(2026)).collect()
}

fn parcel(engine: &Engine, number: usize) -> Parcel {
    allegheny_tests::parcel(engine, number)
}

fn decide(engine: &mut Engine, facts: Vec<FactOf>) {
    facts.iter().for_each(|fact| engine.decide(fact));
}

/// Proves a worked example: 200,000 dollars on 1,600 square feet are 125 dollars, 1.25 times the median of 100; the tiers of other values; that a parcel
/// without a floor area, or with one that is a mistake, is compared with nothing; and what records and counts say.
#[test]
fn values_per_square_foot() {
    let measured_with = |number: usize, total: i64, area: Option<i64>| measured(number, 2026, total, area);
    let area = Some(1_600);
    let others = vec![
        unsold(2026),
        measured_with(101, 184_000, area),
        measured_with(102, 170_400, area),
        measured_with(103, 160_000, area),
        measured_with(104, 200_000, None),
    ];
    let engine = engine(ward([others, vec![measured_with(105, 200_000, Some(99))]].concat()));
    let high = parcel(&engine, UNSOLD);
    assert_eq!((high.ratio, high.peer_median, high.r, high.tier.as_str()), (Some(1.25), Some(1.0), Some(1.25), "high"));
    assert_eq!((high.peer_n, high.cod, high.peer_level.as_str()), (30, Some(6.3333), "township"));
    assert_eq!((high.implied_market_value, high.cycle.as_str()), (Some(200_000), "2026-certified"));
    let basis = Basis {
        kind: PER_SQFT.into(),
        floor_area: Some(1_600),
        value_per_sqft: Some(125.0),
        peer_value_per_sqft: Some(100.0),
        ..Basis::default()
    };
    assert_eq!(high.basis, basis);
    assert!(high.method.starts_with(&format!("{SQFT_RULE}: ")) && high.method.contains("base year 2012"), "{}", high.method);
    assert_eq!(
        high.reasons,
        [
            "its value per square foot is 1.25 times the median of 30 sold parcels of class C411 in its township",
            "no arm's-length sale of the parcel since 2023-01-01, so its value per square foot is compared",
        ]
    );
    for (number, r, tier) in [(101, Some(1.15), "medium"), (102, Some(1.065), "low"), (103, Some(1.0), "none")] {
        let found = parcel(&engine, number);
        assert_eq!((found.r, found.ratio, found.tier.as_str()), (r, r, tier), "{number}");
    }
    for number in [104, 105] {
        let found = parcel(&engine, number);
        assert_eq!((found.tier.as_str(), found.basis.kind.as_str(), found.cycle.as_str()), ("insufficient", "", ""), "{number}");
        assert!(found.reasons.iter().any(|reason| reason.contains("no floor area to compare instead")), "{:?}", found.reasons);
    }
    let peer = parcel(&engine, 0);
    assert_eq!((peer.basis.kind.as_str(), peer.ratio, peer.peer_median, peer.tier.as_str()), ("own_sale", Some(0.5), Some(0.5), "none"));
    let counts: BTreeMap<String, i64> = counted(&engine, &township_counts(COUNTY, "104"));
    assert_eq!(counts, BTreeMap::from(["high", "low", "medium"].map(|tier| (format!("C411/{tier}"), 1))));
    let delta: DeltaCounts = counted(&engine, &delta_counts(COUNTY, "2026-certified"));
    assert_eq!((delta.new, delta.resolved), (3, 0));
}

/// Proves that a parcel with a sale that counts is compared by the sale, and by its value per square foot once the sale is gone.
#[test]
fn an_own_sale_comes_first() {
    let sold = sale(UNSOLD, 400_000, "VALID SALE");
    let mut engine = engine(ward(vec![unsold(2026), sold.clone()]));
    let found = parcel(&engine, UNSOLD);
    assert_eq!((found.basis.kind.as_str(), found.ratio, found.r, found.tier.as_str()), ("own_sale", Some(0.5), Some(1.0), "none"));
    assert!(!found.method.contains("square foot") && found.basis.floor_area.is_none(), "{found:?}");
    engine.decide(&Fact { kind: FactKind::Withdrawn, data: None, ..sold });
    let found = parcel(&engine, UNSOLD);
    assert_eq!((found.basis.kind.as_str(), found.r, found.tier.as_str()), (PER_SQFT, Some(1.25), "high"));
}

/// Proves that 29 peers with a floor area are too few, however many have a ratio: of 31 one is left out at each end.
#[test]
fn few_peers_with_a_floor_area() {
    let facts = peers(40, 31, 2026).into_iter().chain([unsold(2026)]).chain(ends(2026)).chain(parts(2026));
    let engine = engine(facts.collect());
    let found = parcel(&engine, UNSOLD);
    assert_eq!((found.tier.as_str(), found.peer_n, found.r, found.ratio), ("insufficient", 29, None, None));
    assert_eq!((found.basis.value_per_sqft, found.basis.peer_value_per_sqft), (Some(125.0), Some(100.0)));
    let reason = "29 sold parcels of class C411 with a floor area count in its township, fewer than 30";
    assert!(found.reasons.iter().any(|found| found == reason), "{:?}", found.reasons);
    assert_eq!((parcel(&engine, 0).tier.as_str(), parcel(&engine, 0).peer_n), ("none", 36));
}

/// Proves that medians of values per square foot are frozen: another value of a peer decides the peer again and no other, and a value of the parcel itself is
/// compared with the same median.
#[test]
fn medians_per_square_foot_are_frozen() {
    let mut engine = engine(ward(vec![unsold(2026)]));
    let before = parcel(&engine, UNSOLD);
    decide(&mut engine, (0..PEERS).map(|at| measured(at, 2026, 3 * value(at), Some(1_000))).collect());
    decide(&mut engine, parts(2026));
    assert_eq!((parcel(&engine, UNSOLD), parcel(&engine, 0).r), (before, Some(3.0)));
    engine.decide(&measured(UNSOLD, 2026, 160_000, Some(1_600)));
    let now = parcel(&engine, UNSOLD);
    assert_eq!((now.r, now.tier.as_str(), now.basis.peer_value_per_sqft), (Some(1.0), "none", Some(100.0)));
}

/// Proves that the close of a township decides none of the parcels without a sale, and that its parts decide each of them once, none of the parts many.
#[test]
fn parcels_without_a_sale_are_decided_in_parts() {
    const ALL: usize = 400;
    let others = (0..ALL).map(|at| measured(200 + at, 2026, 200_000, Some(1_600)));
    let mut engine = engine(peers(PEERS, PEERS, 2026).into_iter().chain(others).chain(ends(2026)).collect());
    let high = |engine: &Engine| engine.records().into_values().filter(|parcel| parcel.tier == "high").count();
    assert_eq!(high(&engine), 0);
    let mut decided = BTreeSet::new();
    for part in parts(2026) {
        let before = engine.changes_of_records().count();
        engine.decide(&part);
        let changed: Vec<String> = engine.changes_of_records().skip(before).map(|change| change.id.clone()).collect();
        assert!((1..=ALL / 4).contains(&changed.len()), "{}: {}", part.key, changed.len());
        assert!(changed.into_iter().all(|id| decided.insert(id)), "{}", part.key);
    }
    assert_eq!((decided.len(), high(&engine)), (ALL, ALL));
    let before = engine.changes.len();
    decide(&mut engine, [parts(2026), parts_of_sales()].concat());
    assert_eq!(engine.changes.len(), before);
}

/// Proves that the topics of values and of sales can be read in any order: parts that come before the sales wait for those of the sales.
#[test]
fn parts_wait_for_sales() {
    let facts = ward(vec![unsold(2026)]).into_iter().chain(parts_of_sales());
    let (of_sales, values): (Vec<FactOf>, Vec<FactOf>) = facts.partition(|fact| fact.key.starts_with("allegheny.sales"));
    let shown = |engine: &Engine| {
        let records = engine.records().into_values();
        records.map(|parcel| (parcel.pin, parcel.tier, parcel.r, parcel.basis, parcel.cycle, parcel.tier_before)).collect::<Vec<_>>()
    };
    let mut values_first = engine(values.clone());
    assert_eq!(parcel(&values_first, UNSOLD).cycle, "");
    decide(&mut values_first, of_sales.clone());
    assert_eq!(parcel(&values_first, UNSOLD).tier, "high");
    assert_eq!(shown(&values_first), shown(&engine([of_sales, values].concat())));
}

/// Proves that a cycle that closed before floor areas were read gets their medians with its first part, and keeps the others.
#[test]
fn an_earlier_cycle_gets_its_medians() {
    let without = peers(PEERS, 0, 2026).into_iter().chain([measured(UNSOLD, 2026, 200_000, None)]).chain(ends(2026));
    let mut engine = engine(without.collect());
    let median = parcel(&engine, 0).peer_median;
    decide(&mut engine, peers(PEERS, PEERS, 2026).into_iter().chain([unsold(2026)]).collect());
    assert_eq!(parcel(&engine, UNSOLD).tier, "insufficient");
    decide(&mut engine, parts(2026));
    let found = parcel(&engine, UNSOLD);
    assert_eq!((found.tier.as_str(), found.basis.peer_value_per_sqft, found.peer_n), ("high", Some(100.0), 30));
    assert_eq!((parcel(&engine, 0).peer_median, median), (Some(0.5), Some(0.5)));
}

/// Proves that a parcel whose floor area is no longer published is not compared any more, and that the next cycle resolves it.
#[test]
fn a_parcel_without_its_floor_area_is_resolved() {
    let mut engine = engine(ward(vec![unsold(2026)]));
    engine.decide(&measured(UNSOLD, 2026, 200_000, None));
    assert_eq!(parcel(&engine, UNSOLD).tier, "insufficient");
    let next = peers(PEERS, PEERS, 2027).into_iter().chain([measured(UNSOLD, 2027, 200_000, None)]).chain(ends(2027)).chain(parts(2027));
    decide(&mut engine, next.collect());
    let found = parcel(&engine, UNSOLD);
    assert_eq!((found.cycle.as_str(), found.tier.as_str(), found.tier_before.as_str()), ("2027-certified", "insufficient", "high"));
    let delta: DeltaCounts = counted(&engine, &delta_counts(COUNTY, "2027-certified"));
    assert_eq!((found.delta(), delta.new, delta.resolved), (Some(false), 0, 1));
    assert!(engine.records().contains_key(&format!("{COUNTY}/{}", pin(UNSOLD))));
}
