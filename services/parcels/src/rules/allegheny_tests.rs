//! The fold over assessments, sales and liens of Allegheny County: peers by municipality and use, counts of the county, and block-lots that become PINs.

use std::collections::{BTreeMap, BTreeSet};

use crate::record::{CurrentCycle, DeltaCounts, current_cycle, delta_counts, id, township_counts};
use schemas::tables::Datum;
use schemas::views::records::Record;
use texts::allegheny::COUNTY;

use super::*;
use fold::testing::{self, Folded};

pub(super) const NOON: i64 = 1_795_176_000_000;
const PEERS: usize = 40;

pub(super) type Engine = Folded<Parcels>;
pub(super) type FactOf = Fact<ParcelsFact>;

pub(super) fn pin(number: usize) -> String {
    format!("0028F{number:05}000000")
}

pub(super) fn assessment(number: usize, year: i64, total: i64) -> FactOf {
    let data = ParcelFact {
        kind: parcels::ASSESSMENT.into(),
        pin: pin(number),
        year,
        class: "C411".into(),
        township: "104".into(),
        township_name: "4th Ward - PITTSBURGH".into(),
        neighborhood: "51C34".into(),
        certified: Some(total),
        street: "3343 FORBES AVE".into(),
        use_class: "COMMERCIAL".into(),
        use_label: "RETL/STOR OVER".into(),
        ..ParcelFact::default()
    };
    testing::fact(format!("allegheny.assessments/{}", pin(number)), FactKind::Observed, NOON, Some(ParcelsFact::Parcel(Box::new(data))))
}

pub(super) fn sale(number: usize, price: i64, kind: &str) -> FactOf {
    let data = SaleFact {
        kind: sales::SALE.into(),
        sale: format!("{number}-{kind}"),
        pin: pin(number),
        township: "104".into(),
        date: "2025-03-01".into(),
        price: Some(price),
        sale_type: kind.into(),
        ..SaleFact::default()
    };
    testing::fact(format!("allegheny.sales/{number}-{kind}"), FactKind::Observed, NOON, Some(ParcelsFact::Sale(Box::new(data))))
}

/// The fact that the sales were read, and the cycle of a year.
pub(super) fn ends(year: i64) -> [FactOf; 2] {
    let read = SaleFact { kind: sales::READ.into(), township: "104".into(), ..SaleFact::default() };
    let cycle =
        ParcelFact { kind: parcels::CYCLE.into(), year, township: "104".into(), stage: "certified".into(), ..ParcelFact::default() };
    [
        testing::fact("allegheny.sales/read/104", FactKind::Observed, NOON, Some(ParcelsFact::Sale(Box::new(read)))),
        testing::fact("allegheny.assessments/cycle/104", FactKind::Observed, NOON, Some(ParcelsFact::Parcel(Box::new(cycle)))),
    ]
}

/// Parcels around a ratio of 0.6, as values of an old base year are, and one with 0.84.
fn ward(peers: usize, year: i64) -> Vec<FactOf> {
    let facts_at = |at: usize| {
        let total = 96_000 + (at as i64 - peers as i64 / 2) * 80;
        [assessment(at, year, total), sale(at, 160_000, "VALID SALE")]
    };
    let mut facts: Vec<FactOf> = (0..peers).flat_map(facts_at).collect();
    facts.extend([assessment(90, year, 134_400), sale(90, 160_000, "VALID SALE")]);
    facts.extend(ends(year));
    facts
}

pub(super) fn engine(facts: Vec<FactOf>) -> Engine {
    let mut engine = Engine::default();
    facts.iter().for_each(|fact| engine.decide(fact));
    engine
}

pub(super) fn parcel(engine: &Engine, number: usize) -> Parcel {
    engine.records().remove(&id(COUNTY, &pin(number))).unwrap()
}

pub(super) fn counted<T: serde::de::DeserializeOwned + Default>(engine: &Engine, name: &str) -> T {
    let last = engine.table(TABLES.terms).rfind(|(key, _)| key[0] == Datum::Text(name.to_owned()));
    last.map(|(_, value)| serde_json::from_slice(value).unwrap()).unwrap_or_default()
}

/// Another valid sale of the parcel 90.
fn again(date: &str, price: i64) -> FactOf {
    let mut fact = sale(90, price, "VALID SALE");
    fact.key = format!("{} {date}", fact.key);
    if let Some(ParcelsFact::Sale(data)) = &mut fact.data {
        (data.sale, data.date) = (format!("{} {date}", data.sale), date.to_owned());
    }
    fact
}

/// Proves that a sale at the same price within 365 days of another one does not count, in any order of the facts; one at another price, or later, does.
#[test]
fn repeated_sales_do_not_count() {
    for (date, price, day) in
        [("2026-03-01", 160_000, "2025-03-01"), ("2026-03-02", 160_000, "2026-03-02"), ("2025-06-01", 170_000, "2025-06-01")]
    {
        for facts in [[ward(PEERS, 2026), vec![again(date, price)]], [vec![again(date, price)], ward(PEERS, 2026)]] {
            let found = parcel(&engine(facts.concat()), 90);
            assert_eq!(found.basis.sale_date, day, "{date} {price}");
            assert_eq!(found.reasons.iter().any(|reason| reason.contains("same price")), day == "2025-03-01", "{:?}", found.reasons);
        }
    }
}

/// Proves that a sale is compared with the last one at its price that counts, not with one that is a repeat itself, in any order of the facts.
#[test]
fn a_repeat_makes_no_later_sale_a_repeat() {
    for (dates, day, repeats) in [
        (vec!["2026-01-01", "2026-08-01"], "2026-08-01", vec!["2026-01-01"]),
        (vec!["2025-09-01", "2026-02-28"], "2025-03-01", vec!["2025-09-01", "2026-02-28"]),
        (vec!["2025-12-01", "2026-03-02", "2026-12-01"], "2026-03-02", vec!["2025-12-01", "2026-12-01"]),
    ] {
        let more: Vec<FactOf> = dates.iter().map(|date| again(date, 160_000)).collect();
        let backwards: Vec<FactOf> = more.iter().rev().cloned().collect();
        for facts in [[ward(PEERS, 2026), more.clone()], [more, ward(PEERS, 2026)], [backwards, ward(PEERS, 2026)]] {
            let found = parcel(&engine(facts.concat()), 90);
            let reasons: Vec<&str> = found.reasons.iter().filter(|reason| reason.contains("same price")).map(String::as_str).collect();
            assert_eq!((found.basis.sale_date.as_str(), reasons.len()), (day, repeats.len()), "{dates:?}: {reasons:?}");
            assert!(repeats.iter().all(|date| reasons.iter().any(|reason| reason.contains(*date))), "{dates:?}: {reasons:?}");
        }
    }
}

/// Proves that only the ratio to the peers of the municipality and use counts, never that to 1; and that the county and the municipality count the parcel.
#[test]
fn parcels_are_compared_with_their_use() {
    let engine = engine(ward(PEERS, 2026));
    let high = parcel(&engine, 90);
    assert_eq!((high.ratio, high.peer_median, high.r, high.tier.as_str()), (Some(0.84), Some(0.6), Some(1.4), "high"));
    assert_eq!((high.level, high.implied_market_value, high.stage.as_str()), (Some(1.0), Some(134_400), "certified"));
    assert_eq!(
        (high.peer_level.as_str(), high.township.as_str(), high.township_code.as_str()),
        ("township", "4th Ward - PITTSBURGH", "104")
    );
    assert_eq!((high.county.as_str(), high.class.as_str(), high.class_label.as_str()), (COUNTY, "C411", "RETL/STOR OVER"));
    assert!(high.method.contains("base year 2012") && high.url.contains(&pin(90)), "{}", high.method);
    let lists: BTreeSet<String> = high.places().into_iter().map(|place| place.list).collect();
    for list in ["over", "over/county/allegheny-pa", "high/county/allegheny-pa/township/104", "new/allegheny-pa/2026-certified"] {
        assert!(lists.contains(list), "{list} in {lists:?}");
    }
    assert_eq!(parcel(&engine, 0).tier, "none");
    for township in ["104", ""] {
        let counts: BTreeMap<String, i64> = counted(&engine, &township_counts(COUNTY, township));
        assert_eq!(counts, BTreeMap::from([("C411/high".to_owned(), 1)]), "{township:?}");
    }
    let current: CurrentCycle = counted(&engine, &current_cycle(COUNTY));
    let delta: DeltaCounts = counted(&engine, &delta_counts(COUNTY, "2026-certified"));
    assert_eq!((current.cycle.as_str(), delta.new, delta.resolved), ("2026-certified", 1, 0));
}

/// Proves that only sales that the publisher marks as valid count, that 29 peers are too few, and that a new year resolves a parcel which is no longer high.
#[test]
fn invalid_sales_and_small_groups() {
    let mut facts = ward(PEERS, 2026);
    facts.retain(|fact| !fact.key.starts_with("allegheny.sales/90-"));
    facts.insert(0, sale(90, 160_000, "MULTI-PARCEL SA"));
    let unsold = parcel(&engine(facts), 90);
    assert_eq!((unsold.tier.as_str(), unsold.r), ("insufficient", None));
    assert!(unsold.reasons.iter().any(|reason| reason.contains("does not mark it as a valid sale")), "{:?}", unsold.reasons);
    // Of 30 sales one is left out at each end.
    let few = parcel(&engine(ward(29, 2026)), 90);
    assert_eq!((few.tier.as_str(), few.peer_n), ("insufficient", 28));
    let mut engine = engine(ward(PEERS, 2026));
    let next = (0..PEERS).map(|at| assessment(at, 2027, 96_000)).chain([assessment(90, 2027, 96_000)]).chain(ends(2027));
    next.for_each(|fact| engine.decide(&fact));
    let resolved = parcel(&engine, 90);
    assert_eq!((resolved.tier.as_str(), resolved.delta()), ("none", Some(false)));
    let counts: BTreeMap<String, i64> = counted(&engine, &township_counts(COUNTY, ""));
    assert!(counts.is_empty(), "{counts:?}");
}

fn lien(block_lot: &str) -> FactOf {
    let data = LienFact { docket: "DTD-08-1".into(), description: "County".into(), block_lot: block_lot.into(), ..LienFact::default() };
    testing::fact(
        format!("allegheny.liens/DTD-08-1|County||{block_lot}|"),
        FactKind::Observed,
        NOON,
        Some(ParcelsFact::Lien(Box::new(data))),
    )
}

/// The assessment of a parcel.
fn assessed(pin: &str) -> FactOf {
    let mut fact = assessment(1, 2026, 1);
    fact.key = format!("allegheny.assessments/{pin}");
    if let Some(ParcelsFact::Parcel(data)) = &mut fact.data {
        data.pin = pin.to_owned();
    }
    fact
}

/// Proves that a lien which an older version remembered with names of persons is decided without them when its parcel is known.
#[test]
fn remembered_names_are_not_published() {
    let mut fact = lien("233J211 2");
    if let Some(ParcelsFact::Lien(data)) = &mut fact.data {
        data.last_entry = "Satisfaction, John Kowalski".to_owned();
    }
    let mut engine = engine(vec![fact]);
    let mut remembered = 0;
    for (_, value) in engine.rows.iter_mut().filter(|((table, _), _)| *table == TABLES.state.name) {
        let text = String::from_utf8(value.to_vec()).unwrap();
        remembered += text.matches("J. K.").count();
        *value = Bytes::from(text.replace("J. K.", "John Kowalski"));
    }
    assert_eq!(remembered, 2, "the entry that satisfied the lien, and the lien itself");
    engine.decide(&assessed("0233J00211000002"));
    let record = engine.records().into_values().find(|record| record.lien.is_some()).unwrap();
    let lien = record.lien.unwrap();
    assert_eq!((record.pin.as_str(), lien.last_entry.as_str()), ("0233J00211000002", "Satisfaction, J. K."));
    assert!(!lien.why.contains("Kowalski"), "{}", lien.why);
}

/// Proves that a lien without a PIN gets the only one of a known parcel which its block-lot can mean, whether the lien or the parcel comes first, and none
/// while two parcels are known.
#[test]
fn block_lots_become_pins() {
    let found = |facts: Vec<FactOf>| engine(facts).records().into_values().find(|record| record.lien.is_some()).unwrap().pin;
    let (fourth, fifth) = ("0233J00211000200", "0233J00211000002");
    assert_eq!(found(vec![lien("233J211 2")]), "");
    assert_eq!(found(vec![lien("233J211 2"), assessed(fifth)]), fifth);
    assert_eq!(found(vec![assessed(fifth), lien("233J211 2")]), fifth);
    assert_eq!(found(vec![lien("233J211 2"), assessed(fourth)]), fourth);
    assert_eq!(found(vec![lien("233J211 2"), assessed(fifth), assessed(fourth)]), "");
    assert_eq!(found(vec![assessed(fourth), assessed(fifth), lien("233J211 2")]), "");
}

/// Proves that an address that was kept with the names of who receives the mail, before these were removed from facts, is shown without them, and that others
/// stay as they are.
#[test]
fn kept_addresses_are_shown_without_recipients() {
    for (kept, shown) in [
        ("3343 FORBES AVE, PITTSBURGH 15213", "3343 FORBES AVE, PITTSBURGH 15213"),
        ("3343 FORBES AVE", "3343 FORBES AVE"),
        ("C/O JOHN SMITH 3343 FORBES AVE, PITTSBURGH 15213", "3343 FORBES AVE, PITTSBURGH 15213"),
        ("3343 FORBES AVE, C/O JOHN SMITH", "3343 FORBES AVE"),
        ("3343 FORBES AVE, C/O JOHN SMITH, PITTSBURGH 15213", "3343 FORBES AVE, PITTSBURGH 15213"),
        ("C/O JOHN SMITH, PITTSBURGH 15213", "PITTSBURGH 15213"),
        ("12 MAIN ST C/O SMITH, JOHN", "12 MAIN ST"),
        ("", ""),
    ] {
        let roll = roll::Roll { address: (2026, kept.to_owned()), ..roll::Roll::default() };
        assert_eq!(roll.shown_address(), shown, "{kept}");
    }
}
