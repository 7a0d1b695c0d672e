//! The fold over values, sales and cycles: the tiers of the contract, frozen medians, deltas, counts, and that the order of facts does not matter.

use std::collections::{BTreeMap, BTreeSet};

use crate::record::{CurrentCycle, DeltaCounts, RULE, current_cycle, delta_counts, id, township_counts};
use schemas::tables::Datum;
use schemas::views::records::Record;
use texts::cook;

use super::*;
use fold::random::Random;
use fold::testing::{self, Folded};

/// 2026-11-20 12:00 UTC.
const NOON: i64 = 1_795_176_000_000;
/// The peers in the neighbourhood.
const PEERS: usize = 40;

type Engine = Folded<Parcels>;
type ParcelsFactOf = Fact<ParcelsFact>;

/// What the tests ask of the service in memory.
trait TestMethods {
    fn parcel(&self, pin: &str) -> Parcel;
    /// The last row of the index of counts under a name.
    fn counted<T: serde::de::DeserializeOwned + Default>(&self, name: &str) -> T;
    /// The PINs of over-assessed commercial parcels.
    fn over(&self) -> BTreeSet<String>;
    /// The PINs that a cycle made over-assessed, or no more.
    fn delta(&self, cycle: &str, is_new: bool) -> BTreeSet<String>;
    /// Fails unless the counts in the index are those of the records.
    fn assert_counted(&self);
}

impl TestMethods for Engine {
    fn parcel(&self, pin: &str) -> Parcel {
        self.records().remove(&id(cook::COUNTY, pin)).unwrap()
    }

    fn counted<T: serde::de::DeserializeOwned + Default>(&self, name: &str) -> T {
        let last = self.table(TABLES.terms).rfind(|(key, _)| key[0] == Datum::Text(name.to_owned()));
        last.map(|(_, value)| serde_json::from_slice(value).unwrap()).unwrap_or_default()
    }

    fn over(&self) -> BTreeSet<String> {
        let records = self.records().into_values();
        records.filter(|parcel| parcel.is_over() && parcel.is_commercial()).map(|parcel| parcel.pin).collect()
    }

    fn delta(&self, cycle: &str, is_new: bool) -> BTreeSet<String> {
        let records = self.records().into_values();
        records.filter(|parcel| parcel.cycle == cycle && parcel.delta() == Some(is_new)).map(|parcel| parcel.pin).collect()
    }

    fn assert_counted(&self) {
        let mut expected: BTreeMap<String, i64> = BTreeMap::new();
        for parcel in self.records().into_values().filter(Parcel::is_over) {
            *expected.entry(format!("{}/{}", parcel.class, parcel.tier)).or_default() += 1;
        }
        assert_eq!(self.counted::<BTreeMap<String, i64>>(&township_counts(cook::COUNTY, "77")), expected);
        let cycles: BTreeSet<String> = self.records().into_values().map(|parcel| parcel.cycle).filter(|cycle| !cycle.is_empty()).collect();
        for cycle in cycles {
            let counts: DeltaCounts = self.counted(&delta_counts(cook::COUNTY, &cycle));
            let count_of = |is_new| self.delta(&cycle, is_new).len() as i64;
            assert_eq!((counts.new, counts.resolved), (count_of(true), count_of(false)), "{cycle}");
        }
    }
}

fn pin(number: usize) -> String {
    format!("16012160{number:02}0000")
}

/// The value of a parcel of class 517 in a year, with totals of the stages.
fn value(number: usize, year: i64, totals: [Option<i64>; 3]) -> ParcelsFactOf {
    let [mailed, certified, board] = totals;
    let data = ParcelFact {
        kind: parcels::VALUE.into(),
        pin: pin(number),
        year,
        class: "517".into(),
        township: "77".into(),
        neighborhood: "010".into(),
        mailed,
        certified,
        board,
        ..ParcelFact::default()
    };
    testing::fact(format!("cook.values/{}{year}", pin(number)), FactKind::Observed, NOON, Some(ParcelsFact::Parcel(Box::new(data))))
}

/// A sale of a parcel.
fn sale(number: usize, date: &str, price: i64) -> ParcelsFactOf {
    sale_with(number, date, price, |_| ())
}

fn sale_with(number: usize, date: &str, price: i64, change: impl FnOnce(&mut SaleFact)) -> ParcelsFactOf {
    let mut data = SaleFact {
        kind: sales::SALE.into(),
        sale: format!("{number}-{date}"),
        pin: pin(number),
        township: "77".into(),
        date: date.into(),
        price: Some(price),
        document: format!("D{number}"),
        ..SaleFact::default()
    };
    change(&mut data);
    testing::fact(format!("cook.sales/{}", data.sale), FactKind::Observed, NOON, Some(ParcelsFact::Sale(Box::new(data))))
}

/// Proves how much memory the row of a sold parcel takes when its township closes, for which all of these are read: with as many years and sales as are kept.
#[test]
fn rows_of_sold_parcels_are_small() {
    let mut engine = Engine::default();
    for year in 2023..=2026 {
        engine.decide(&value(1, year, [Some(12_345_678); 3]));
    }
    for month in 1..=9 {
        engine.decide(&sale_with(1, &format!("2025-0{month}-01"), 123_456_789, |sale| sale.document = "2512345678".into()));
    }
    let key = Datum::Text(state::roll_key(&pin(1)));
    let (_, row) = engine.table(TABLES.state).find(|(row, _)| row[0] == key).unwrap();
    assert!(row.len() < 1_500, "{} bytes: {row:?}", row.len());
}

fn cycle(neighborhood: &str, year: i64, stage: &str) -> ParcelsFactOf {
    let data = ParcelFact {
        kind: parcels::CYCLE.into(),
        year,
        township: "77".into(),
        neighborhood: neighborhood.into(),
        stage: stage.into(),
        ..ParcelFact::default()
    };
    let key = format!("cook.values/cycle/77/{neighborhood}");
    testing::fact(key, FactKind::Observed, NOON, Some(ParcelsFact::Parcel(Box::new(data))))
}

fn sales_read() -> ParcelsFactOf {
    let data = SaleFact { kind: sales::READ.into(), township: "77".into(), ..SaleFact::default() };
    testing::fact("cook.sales/read/77", FactKind::Observed, NOON, Some(ParcelsFact::Sale(Box::new(data))))
}

/// The facts about parcels whose ratios are around 1.02: each is assessed at 25 percent of 160,000 to 167,200 dollars, and was sold for 160,000.
fn peers(count: usize, year: i64) -> Vec<ParcelsFactOf> {
    let facts_at = |at: usize| {
        let at_i64 = at as i64;
        let total = 40_800 + (at_i64 - count as i64 / 2) * 40;
        [value(at, year, [Some(total), Some(total), None]), sale(at, "2025-03-01", 160_000)]
    };
    (0..count).flat_map(facts_at).collect()
}

fn engine(facts: impl IntoIterator<Item = ParcelsFactOf>) -> Engine {
    let mut engine = Engine::default();
    facts.into_iter().for_each(|fact| engine.decide(&fact));
    engine.assert_counted();
    engine
}

/// The facts of a neighbourhood with 40 peers and a parcel with a board total of 50,000, and its cycle.
fn neighborhood(price: i64) -> Vec<ParcelsFactOf> {
    let mut facts = peers(PEERS, 2026);
    facts.extend([value(90, 2026, [Some(60_000), Some(55_000), Some(50_000)]), sale(90, "2025-05-02", price)]);
    facts.extend([sales_read(), cycle("010", 2026, "certified")]);
    facts
}

/// Proves the worked example over all facts: the board total counts, the ratio is that to the own sale, and the tier follows from the frozen median.
#[test]
fn a_parcel_is_compared_with_its_peers() {
    let engine = engine(neighborhood(150_000));
    let parcel = engine.parcel(&pin(90));
    assert_eq!((parcel.stage.as_str(), parcel.assessed, parcel.implied_market_value), ("board", Some(50_000), Some(200_000)));
    assert_eq!((parcel.ratio, parcel.peer_median, parcel.r, parcel.peer_n), (Some(1.3333), Some(1.02), Some(1.3072), 37));
    assert_eq!((parcel.tier.as_str(), parcel.peer_level.as_str(), parcel.cycle.as_str()), ("high", "neighborhood", "2026-certified"));
    assert_eq!((parcel.basis.sale_price, parcel.basis.doc_no.as_str()), (Some(150_000), "D90"));
    assert!(parcel.method.starts_with(&format!("{RULE}: ")), "{}", parcel.method);
    assert_eq!(engine.over(), BTreeSet::from([pin(90)]));
    let medium = self::engine(neighborhood(160_000)).parcel(&pin(90));
    assert_eq!((medium.ratio, medium.r, medium.tier.as_str()), (Some(1.25), Some(1.2255), "medium"));
    let current: CurrentCycle = engine.counted(&current_cycle(cook::COUNTY));
    assert_eq!((current.cycle.as_str(), current.since.as_str()), ("2026-certified", "2026-11-20"));
}

/// Proves that a parcel without a sale of its own, with too few peers, or before a cycle is complete, is `insufficient` and says why.
#[test]
fn what_cannot_be_compared_says_why() {
    let mut facts = neighborhood(150_000);
    facts.push(value(91, 2026, [Some(50_000), None, None]));
    let all = engine(facts.clone());
    let unsold = all.parcel(&pin(91));
    assert_eq!((unsold.tier.as_str(), unsold.r), ("insufficient", None));
    assert!(unsold.reasons.iter().any(|reason| reason.contains("no arm's-length sale")), "{:?}", unsold.reasons);
    assert_eq!(unsold.method, all.parcel(&pin(90)).method);
    facts.retain(|fact| !fact.key.contains("cycle"));
    let open = engine(facts).parcel(&pin(90));
    assert!(open.tier == "insufficient" && open.reasons.iter().any(|reason| reason.contains("no cycle")), "{:?}", open.reasons);
    let few = peers(28, 2026).into_iter().chain([sales_read(), cycle("010", 2026, "mailed"), cycle("", 2026, "mailed")]);
    let few = engine(few).parcel(&pin(0));
    assert_eq!((few.tier.as_str(), few.peer_level.as_str(), few.peer_n), ("insufficient", "township", 26));
    assert!(few.reasons.iter().any(|reason| reason.contains("fewer than 30")), "{:?}", few.reasons);
}

/// Moves the values of a parcel to the neighbourhood 020.
fn move_to_020(facts: &mut [ParcelsFactOf], number: usize) {
    for fact in facts {
        if let Some(ParcelsFact::Parcel(data)) = &mut fact.data
            && data.kind == parcels::VALUE
            && data.pin == pin(number)
        {
            data.neighborhood = "020".into();
        }
    }
}

/// Proves that the peers of the township count where a neighbourhood has too few, once the township has closed.
#[test]
fn a_township_replaces_a_small_neighborhood() {
    let mut facts = neighborhood(150_000);
    move_to_020(&mut facts, 90);
    facts.push(cycle("020", 2026, "certified"));
    assert_eq!(engine(facts.clone()).parcel(&pin(90)).tier, "insufficient");
    facts.push(cycle("", 2026, "certified"));
    let mut engine = engine(facts);
    let parcel = engine.parcel(&pin(90));
    assert_eq!((parcel.tier.as_str(), parcel.peer_level.as_str(), parcel.peer_n), ("high", "township", 37));
    assert_eq!(engine.delta("2026-certified", true), BTreeSet::from([pin(90)]));
    // It is new once: the next cycle of its township finds it in the list.
    for area in ["010", "020", ""] {
        engine.decide(&cycle(area, 2026, "board"));
        engine.assert_counted();
    }
    let parcel = engine.parcel(&pin(90));
    assert_eq!((parcel.cycle.as_str(), parcel.tier_before.as_str(), parcel.delta()), ("2026-board", "high", None));
}

/// Proves which sales do not count.
#[test]
fn sales_that_do_not_count() {
    let with = |sale: ParcelsFactOf| {
        let mut facts = neighborhood(150_000);
        facts.retain(|fact| !fact.key.starts_with("cook.sales/90-"));
        facts.push(sale);
        engine(facts).parcel(&pin(90)).tier
    };
    let changed = |change: fn(&mut SaleFact)| with(sale_with(90, "2025-05-02", 150_000, change));
    assert_eq!(changed(|_| ()), "high");
    for change in [
        |sale: &mut SaleFact| sale.price = Some(9_999),
        |sale: &mut SaleFact| sale.price = None,
        |sale: &mut SaleFact| sale.is_low = true,
        |sale: &mut SaleFact| sale.is_multisale = true,
        |sale: &mut SaleFact| sale.parcels = Some(2),
        |sale: &mut SaleFact| sale.is_resale = true,
        |sale: &mut SaleFact| sale.is_other_deed = true,
        |sale: &mut SaleFact| sale.deed_type = "Quit claim".into(),
        |sale: &mut SaleFact| sale.deed_type = "Executor's deed".into(),
    ] {
        assert_eq!(changed(change), "insufficient");
    }
    assert_eq!(with(sale(90, "2022-12-31", 150_000)), "insufficient");
    assert_eq!(with(sale(90, "2023-01-01", 150_000)), "high");
}

/// Proves that the medians of a cycle are frozen: a later sale or a corrected value decides its own parcel again and no other.
#[test]
fn medians_are_frozen() {
    let mut engine = engine(neighborhood(150_000));
    let before = engine.records();
    engine.decide(&sale(90, "2026-02-01", 300_000));
    engine.decide(&sale(0, "2026-02-01", 60_000));
    engine.assert_counted();
    let mut after = engine.records();
    assert_eq!((after[&id(cook::COUNTY, &pin(90))].tier.as_str(), after[&id(cook::COUNTY, &pin(0))].tier.as_str()), ("none", "high"));
    for changed in [90, 0] {
        let key = id(cook::COUNTY, &pin(changed));
        assert_eq!(after[&key].peer_median, before[&key].peer_median);
        after.insert(key.clone(), before[&key].clone());
    }
    assert_eq!(after, before);
}

/// Closes a cycle, and fails unless what is new and what is resolved have no parcel in common, and the parcels of the cycle before as it closed, with the new
/// ones and without the resolved ones, are those after it. Returns the new and the resolved ones.
fn close(engine: &mut Engine, before: &BTreeSet<String>, fact: &ParcelsFactOf, name: &str) -> [BTreeSet<String>; 2] {
    engine.decide(fact);
    engine.assert_counted();
    let (new, resolved) = (engine.delta(name, true), engine.delta(name, false));
    assert!(new.is_disjoint(&resolved));
    let expected: BTreeSet<String> = before.union(&new).filter(|pin| !resolved.contains(*pin)).cloned().collect();
    assert_eq!(engine.over(), expected);
    [new, resolved]
}

/// Proves that a cycle moves parcels into the lists of what is new and what is resolved, also those whose values changed before it closed, that these have no
/// parcel in common, and that they add up.
#[test]
fn deltas_are_disjoint_and_complete() {
    let mut engine = engine(neighborhood(150_000));
    let first = engine.over();
    assert_eq!((engine.delta("2026-certified", true), first.clone()), (first.clone(), BTreeSet::from([pin(90)])));
    // The next stage lowers most parcels. Those that stay as they were are over-assessed when the medians follow.
    let raised: BTreeSet<String> = (36..PEERS).map(pin).collect();
    for at in 0..36 {
        engine.decide(&value(at, 2026, [Some(40_800), Some(40_800), Some(30_600 + at as i64)]));
    }
    engine.decide(&value(90, 2026, [Some(60_000), Some(55_000), Some(28_700)]));
    assert!(engine.over().is_empty());
    let closed = close(&mut engine, &first, &cycle("010", 2026, "board"), "2026-board");
    assert_eq!(closed, [raised.clone(), first]);
    // The next year brings all to one level.
    for at in 0..PEERS {
        engine.decide(&value(at, 2027, [Some(38_000), None, None]));
    }
    engine.decide(&value(90, 2027, [Some(36_000), None, None]));
    let closed = close(&mut engine, &raised, &cycle("010", 2027, "mailed"), "2027-mailed");
    assert_eq!(closed, [BTreeSet::new(), raised]);
    // An older cycle that is published late changes nothing.
    let before = engine.records();
    engine.decide(&cycle("010", 2026, "mailed"));
    assert_eq!(engine.records(), before);
    engine.assert_rebuilds();
}

/// Proves that a township that closes also decides parcels that have no ratio in the new year: one that was over-assessed by its township is resolved.
#[test]
fn a_township_resolves_parcels_without_a_ratio() {
    let mut facts = neighborhood(150_000);
    move_to_020(&mut facts, 90);
    facts.extend([cycle("020", 2026, "certified"), cycle("", 2026, "certified")]);
    let mut engine = engine(facts);
    let first = engine.over();
    assert_eq!(first, BTreeSet::from([pin(90)]));
    // The parcel has no value of the next year.
    for at in 0..PEERS {
        engine.decide(&value(at, 2027, [Some(40_800), None, None]));
    }
    for area in ["010", "020"] {
        engine.decide(&cycle(area, 2027, "mailed"));
    }
    let closed = close(&mut engine, &first, &cycle("", 2027, "mailed"), "2027-mailed");
    assert_eq!(closed, [BTreeSet::new(), first]);
    let parcel = engine.parcel(&pin(90));
    assert_eq!((parcel.cycle.as_str(), parcel.tier.as_str(), parcel.tier_before.as_str()), ("2027-mailed", "insufficient", "high"));
}

/// Proves that the sold parcels of a neighbourhood that has not closed count among the peers of its township, and are compared with these, whether the
/// sales or the cycle come first.
#[test]
fn an_unclosed_neighborhood_counts_in_its_township() {
    let mut facts = neighborhood(150_000);
    facts.retain(|fact| !fact.key.contains("cycle"));
    // Without this value the neighbourhood does not close.
    facts.push(value(91, 2026, [None, None, None]));
    let township = cycle("", 2026, "certified");
    let sales_first = facts.iter().cloned().chain([township.clone()]);
    let (values, of_sales): (Vec<_>, Vec<_>) = facts.iter().cloned().partition(|fact| fact.key.starts_with("cook.values"));
    let cycle_first = values.into_iter().chain([township.clone()]).chain(of_sales);
    for engine in [engine(sales_first), engine(cycle_first)] {
        let parcel = engine.parcel(&pin(90));
        assert_eq!((parcel.tier.as_str(), parcel.peer_level.as_str(), parcel.peer_n), ("high", "township", 37), "{:?}", parcel.reasons);
        assert_eq!((parcel.peer_median, parcel.cycle.as_str()), (Some(1.02), "2026-certified"));
        let peer = engine.parcel(&pin(0));
        assert_eq!((peer.tier.as_str(), peer.peer_level.as_str()), ("none", "township"), "{:?}", peer.reasons);
    }
}

/// Proves that an over-assessed parcel whose only sale stops counting, or is gone, between two cycles is resolved by the next cycle, and once.
#[test]
fn a_parcel_without_its_sale_is_resolved() {
    let gone = Fact { kind: FactKind::Withdrawn, data: None, ..sale(90, "2025-05-02", 150_000) };
    for fact in [sale_with(90, "2025-05-02", 150_000, |sale| sale.is_multisale = true), gone] {
        let mut engine = engine(neighborhood(150_000));
        let first = engine.over();
        engine.decide(&fact);
        assert!(engine.over().is_empty());
        let closed = close(&mut engine, &first, &cycle("010", 2026, "board"), "2026-board");
        assert_eq!(closed, [BTreeSet::new(), first]);
        (0..PEERS).for_each(|at| engine.decide(&value(at, 2027, [Some(40_800), None, None])));
        let closed = close(&mut engine, &BTreeSet::new(), &cycle("010", 2027, "mailed"), "2027-mailed");
        assert_eq!(closed, [BTreeSet::new(), BTreeSet::new()]);
    }
}

/// Proves that an over-assessed parcel that becomes commercial is new in that cycle, and one that becomes residential is resolved, so that the delta adds up to the
/// change of the over-assessed commercial parcels, also where the class is corrected within a cycle.
#[test]
fn a_parcel_that_changes_its_class_is_in_the_delta() {
    let of_class = |number: usize, year: i64, class: &str, total: i64| {
        let mut fact = value(number, year, [Some(total), None, None]);
        if let Some(ParcelsFact::Parcel(data)) = &mut fact.data {
            data.class = class.into();
        }
        fact
    };
    // Peers of both classes at their levels of assessment, 25 and 10 percent, of about 160,000 dollars.
    let peers = |year: i64| {
        let commercial = (0..PEERS).map(move |at| of_class(at, year, "517", 40_800 + at as i64));
        commercial.chain((PEERS..2 * PEERS).map(move |at| of_class(at, year, "211", 16_320 + at as i64)))
    };
    let of_90 =
        |year: i64, is_commercial: bool| if is_commercial { of_class(90, year, "517", 60_000) } else { of_class(90, year, "211", 24_000) };
    let sold = (0..2 * PEERS).map(|at| sale(at, "2025-03-01", 160_000)).chain([sale(90, "2025-05-02", 150_000), sales_read()]);
    let mut engine = engine(peers(2026).chain(sold).chain([of_90(2026, false), cycle("010", 2026, "mailed")]));
    assert_eq!((engine.parcel(&pin(90)).tier.as_str(), engine.over()), ("high", BTreeSet::new()));
    let (none, only) = (BTreeSet::new(), BTreeSet::from([pin(90)]));
    let mut over = none.clone();
    for (year, is_commercial, expected) in [(2027, true, [&only, &none]), (2028, false, [&none, &only])] {
        peers(year).chain([of_90(year, is_commercial)]).for_each(|fact| engine.decide(&fact));
        let closed = close(&mut engine, &over, &cycle("010", year, "mailed"), &format!("{year}-mailed"));
        assert_eq!(closed.each_ref(), expected, "{year}");
        over = engine.over();
        assert_eq!(engine.parcel(&pin(90)).tier, "high", "{year}");
    }
    // The class is corrected: the delta of the cycle follows.
    engine.decide(&of_90(2028, true));
    engine.assert_counted();
    assert_eq!((engine.over(), engine.delta("2028-mailed", false)), (only, none));
}

/// Proves that facts that decisions ignore read no rows.
#[test]
fn ignored_facts_read_nothing() {
    let mut fact = value(90, 2026, [None, None, None]);
    if let Some(ParcelsFact::Parcel(data)) = &mut fact.data {
        data.kind = parcels::UNIVERSE.into();
    }
    assert!(ParcelsRules::reads(&fact).is_empty());
    let mut engine = Engine::default();
    engine.decide(&fact);
    assert!(engine.changes.is_empty());
}

/// Proves that the order of the facts within a cycle changes nothing, and that a cycle waits for the sales of its township.
#[test]
fn any_order_gives_the_same() {
    let facts = neighborhood(150_000);
    let (cycle_at, sales_at) = (facts.len() - 1, facts.len() - 2);
    let expected = engine(facts.clone()).records();
    let mut random = Random::new(7);
    for _ in 0..5 {
        let mut order: Vec<usize> = (0..sales_at).collect();
        (1..order.len()).rev().for_each(|at| order.swap(at, random.below(at + 1)));
        let in_order = order.into_iter().chain([sales_at, cycle_at]).map(|at| facts[at].clone());
        assert_eq!(engine(in_order).records(), expected);
    }
    // Values and their cycle first, then the sales.
    let (values, of_sales): (Vec<_>, Vec<_>) = facts.into_iter().partition(|fact| fact.key.starts_with("cook.values"));
    let records = engine(values.into_iter().chain(of_sales)).records();
    let shown = |records: &BTreeMap<String, Parcel>| {
        records.values().map(|parcel| (parcel.pin.clone(), parcel.tier.clone(), parcel.r, parcel.peer_median)).collect::<Vec<_>>()
    };
    assert_eq!(shown(&records), shown(&expected));
}

/// Proves that the last appeal with a result is shown, in any order, and a corrected result of it.
#[test]
fn the_last_appeal_is_shown() {
    let appeal = |number: &str, year: i64, result: &str| {
        let data = ParcelFact {
            kind: parcels::APPEAL.into(),
            pin: pin(90),
            year,
            appeal: number.into(),
            result: result.into(),
            ..ParcelFact::default()
        };
        testing::fact(format!("cook.appeals/{number}"), FactKind::Observed, NOON, Some(ParcelsFact::Parcel(Box::new(data))))
    };
    let appeals = [appeal("a1", 2024, "change"), appeal("a2", 2025, "no change"), appeal("a3", 2026, "")];
    let shown = |order: [usize; 3]| {
        let facts = neighborhood(150_000).into_iter().chain(order.map(|at| appeals[at].clone()));
        let last = engine(facts).parcel(&pin(90)).last_appeal;
        (last.year, last.result)
    };
    for order in [[0, 1, 2], [2, 1, 0], [1, 2, 0]] {
        assert_eq!(shown(order), (Some(2025), "no change".to_owned()));
    }
    let mut engine = engine(neighborhood(150_000));
    for fact in [appeal("a2", 2025, "no change"), appeal("a2", 2025, "change")] {
        engine.decide(&fact);
    }
    assert_eq!(engine.parcel(&pin(90)).last_appeal.result, "change");
}

/// Proves that a sale that names another parcel now, or is gone, no longer counts for the first one.
#[test]
fn a_sale_moves_to_another_parcel() {
    let mut engine = engine(neighborhood(150_000));
    let mut moved = sale(90, "2025-05-02", 150_000);
    if let Some(ParcelsFact::Sale(data)) = &mut moved.data {
        data.pin = pin(91);
    }
    engine.decide(&value(91, 2026, [Some(50_000), None, None]));
    engine.decide(&moved);
    engine.assert_counted();
    assert_eq!((engine.parcel(&pin(90)).tier.as_str(), engine.parcel(&pin(91)).tier.as_str()), ("insufficient", "high"));
    engine.decide(&Fact { kind: FactKind::Withdrawn, data: None, ..moved });
    engine.assert_counted();
    assert_eq!(engine.parcel(&pin(91)).tier, "insufficient");
    assert!(engine.parcel(&pin(91)).places().is_empty());
}
