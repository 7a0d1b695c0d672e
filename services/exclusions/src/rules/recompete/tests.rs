//! Which contracts are candidates, and what the data of awards shows about them.

use crate::record::TABLES;
use schemas::event::{Fact, FactKind};

use super::super::{ExclusionInput, Exclusions};
use super::*;
use fold::random::Random;
use fold::testing::{self, Folded};

/// The service in memory.
type Engine = Folded<Exclusions>;

fn fact(award: &Award) -> Fact<ExclusionInput> {
    testing::fact(format!("changes.awards/{}", award.id), FactKind::Observed, 0, Some(ExclusionInput::Award(Box::new(award.clone()))))
}

fn engine(awards: &[Award]) -> Engine {
    let mut engine = Engine::default();
    awards.iter().for_each(|award| engine.decide(&fact(award)));
    engine
}

/// A contract of two years with one option year, as its base action made it.
pub(super) fn award(id: &str, uei: &str, signed: &str) -> Award {
    Award {
        id: id.into(),
        award_type: "DEFINITIVE CONTRACT".into(),
        recipient: format!("FIRM {uei}"),
        recipient_uei: uei.into(),
        agency: "Environmental Protection Agency".into(),
        office: "HEADQUARTERS".into(),
        naics: "541512".into(),
        psc: "D399".into(),
        amount_cents: Some(50_000_000),
        ceiling_cents: Some(90_000_000),
        signed: signed.into(),
        start: signed.into(),
        end: "2027-01-31".into(),
        potential_end: "2028-01-31".into(),
        action_date: signed.into(),
        modification: "0".into(),
        action_cents: Some(50_000_000),
        ..Award::default()
    }
}

/// An action on an award.
pub(super) fn modified(award: &Award, number: &str, date: &str, kind: &str, cents: i64, end: &str) -> Award {
    Award {
        modification: number.into(),
        action_date: date.into(),
        action_type: kind.into(),
        action_cents: Some(cents),
        end: end.into(),
        amount_cents: award.amount_cents.map(|sum| sum + cents),
        ..award.clone()
    }
}

fn candidate(engine: &Engine, id: &str) -> Option<Exclusion> {
    engine.records().remove(&candidate_id(id)).filter(|record| !record.withdrawn)
}

/// The signals of a candidate: kind, award and day.
fn signals(engine: &Engine, id: &str) -> Vec<(String, String, String)> {
    let contract = candidate(engine, id).unwrap().contract.unwrap();
    contract.signals.into_iter().map(|one| (one.kind, one.award_id, one.date)).collect()
}

fn found(kind: &str, award: &str, date: &str) -> (String, String, String) {
    (kind.to_owned(), award.to_owned(), date.to_owned())
}

/// Proves what a candidate needs: a type that is bid again, the amount, the time, an industry, and options or a repeated need; and that one that is
/// terminated is none any more, with a change that says so.
#[test]
fn what_a_candidate_is() {
    let whole = award("A1", "U1", "2025-02-01");
    let record = candidate(&engine(std::slice::from_ref(&whole)), "A1").unwrap();
    let contract = record.contract.clone().unwrap();
    assert_eq!((record.name.as_str(), record.uei.as_str(), contract.end()), ("FIRM U1", "", "2028-01-31"));
    for wrong in [
        Award { award_type: "BPA".into(), ..whole.clone() },
        Award { vehicle: true, ..whole.clone() },
        Award { amount_cents: Some(24_999_999), ..whole.clone() },
        Award { amount_cents: None, ..whole.clone() },
        Award { end: "2025-12-01".into(), potential_end: "2026-01-30".into(), ..whole.clone() },
        Award { naics: String::new(), ..whole.clone() },
        Award { potential_end: whole.end.clone(), ..whole.clone() },
        Award { end: "soon".into(), potential_end: String::new(), ..whole.clone() },
    ] {
        assert_eq!(candidate(&engine(std::slice::from_ref(&wrong)), "A1"), None, "{wrong:?}");
    }
    // From the first of February to the last of January are twelve months.
    let year = Award { end: "2025-12-01".into(), potential_end: "2026-01-31".into(), ..whole.clone() };
    assert!(candidate(&engine(&[year]), "A1").is_some());
    // Without options the need must be an old one.
    let plain = Award { potential_end: String::new(), ..whole.clone() };
    let earlier = Award { amount_cents: Some(1), ..award("A0", "U2", "2022-02-01") };
    for order in [[&plain, &earlier], [&earlier, &plain]] {
        assert!(candidate(&engine(&order.map(Clone::clone)), "A1").is_some());
    }
    let later = Award { signed: "2026-02-01".into(), ..earlier };
    assert_eq!(candidate(&engine(&[plain, later]), "A1"), None);
    for kind in TERMINATIONS {
        let terminated = modified(&whole, "P00001", "2026-03-01", kind, 0, &whole.end);
        let engine = engine(&[whole.clone(), terminated]);
        assert_eq!(candidate(&engine, "A1"), None);
        assert!(engine.records()[&candidate_id("A1")].withdrawn, "{kind}");
    }
    // Also after many further actions.
    let mut all = vec![whole.clone(), modified(&whole, "P00001", "2026-03-01", "F", 0, &whole.end)];
    all.extend((2..30).map(|number| modified(&whole, &format!("P{number:05}"), "2026-04-01", "M", 0, &whole.end)));
    assert_eq!(candidate(&engine(&all), "A1"), None);
}

/// Proves what the data of an award itself shows: extensions in a row, money taken back, a reached ceiling, another parent, one offer without
/// competition and growth; and the exercised option.
#[test]
fn own_signals() {
    let base = award("A1", "U1", "2024-02-01");
    let first = modified(&base, "P00001", "2026-01-20", "B", 0, "2027-04-30");
    let second = modified(&first, "P00002", "2026-04-20", "M", -1_000, "2027-07-31");
    let one = engine(&[base.clone(), first.clone()]);
    assert_eq!(signals(&one, "A1"), []);
    let two = engine(&[base.clone(), first.clone(), second.clone()]);
    assert_eq!(
        signals(&two, "A1"),
        [found(signal::BRIDGE, "A1", "2026-04-20"), found(signal::DEOBLIGATION, "A1", "2026-04-20")],
        "two extensions of three months"
    );
    let long = modified(&second, "P00003", "2026-05-20", "G", 0, "2028-07-31");
    let three = engine(&[base.clone(), first, second, long]);
    assert_eq!(signals(&three, "A1"), [found(signal::DEOBLIGATION, "A1", "2026-04-20")], "the last one is a year");
    assert_eq!(candidate(&three, "A1").unwrap().contract.unwrap().last_option, "2026-05-20");

    let full = Award { amount_cents: Some(85_500_000), ..base.clone() };
    assert_eq!(signals(&engine(&[full]), "A1"), [found(signal::CEILING, "A1", "2024-02-01")]);
    assert_eq!(signals(&engine(&[Award { amount_cents: Some(85_499_999), ..base.clone() }]), "A1"), []);
    let real = Contract { obligated_cents: 17_221_341_967, ceiling_cents: Some(17_227_241_967), ..Contract::default() };
    assert_eq!(ceiling(&real).unwrap().2, "99.97 % of the value with all options is obligated");
    let alone = Award { offers: "1".into(), extent_competed: "C".into(), ..base.clone() };
    assert_eq!(signals(&engine(std::slice::from_ref(&alone)), "A1"), [found(signal::SOLE_SOURCE, "A1", "2024-02-01")]);
    assert_eq!(signals(&engine(&[Award { extent_competed: "A".into(), ..alone }]), "A1"), []);

    let parent = |uei: &str| Award { parent_recipient_uei: uei.into(), ..modified(&base, "P1", "2025-05-05", "C", 0, &base.end) };
    assert_eq!(signals(&engine(&[base.clone(), parent("P1"), parent("P1")]), "A1"), [], "it was not known before");
    assert_eq!(signals(&engine(&[parent("P1"), parent("P2")]), "A1"), [found(signal::PARENT_CHANGED, "A1", "2025-05-05")]);

    let grown = |cents: i64| {
        let last = modified(&base, "P00001", "2026-03-01", "C", cents, &base.end);
        signals(&engine(&[Award { action_cents: Some(10_000_000), ..base.clone() }, last]), "A1")
    };
    assert_eq!(grown(15_000_000), [found(signal::GROWTH, "A1", "2026-03-01")]);
    assert_eq!(grown(13_000_000), []);
}

/// Proves what other awards of the same need show, whichever is known first: a later one of another recipient, and an earlier one of the same recipient
/// or of the same parent; and that those of another need show nothing.
#[test]
fn signals_of_the_need() {
    let own = Award { parent_recipient_uei: "P1".into(), ..award("A1", "U1", "2025-02-01") };
    let renewed = award("A0", "U1", "2022-02-01");
    let sibling = Award { parent_recipient_uei: "P1".into(), ..award("A0", "U5", "2022-02-01") };
    let rival = award("A2", "U2", "2026-06-01");
    for earlier in [&renewed, &sibling] {
        for order in [[&own, earlier, &rival], [&rival, earlier, &own], [earlier, &rival, &own]] {
            let engine = engine(&order.map(Clone::clone));
            let expected = [found(signal::RIVAL, "A2", "2026-06-01"), found(signal::RENEWED, "A0", "2022-02-01")];
            assert_eq!(signals(&engine, "A1"), expected);
        }
    }
    for other in [
        Award { office: "BASE KODIAK".into(), ..rival.clone() },
        Award { naics: "541511".into(), ..rival.clone() },
        Award { psc: "R425".into(), ..rival.clone() },
        Award { recipient_uei: String::new(), ..rival.clone() },
        Award { recipient_uei: "U1".into(), ..rival.clone() },
        Award { signed: "2025-02-01".into(), ..rival.clone() },
    ] {
        assert_eq!(signals(&engine(&[own.clone(), other.clone()]), "A1"), [], "{other:?}");
    }
    // The office of the rival becomes known: it is another one.
    let moved = Award { office: "BASE KODIAK".into(), ..rival.clone() };
    assert_eq!(signals(&engine(&[own, rival, moved]), "A1"), []);
}

/// Proves that the same awards in any order give the same candidates, and that a change of what nobody compares changes no other candidate.
#[test]
fn order_of_awards() {
    let mut awards = Vec::new();
    for number in 0..30_usize {
        let day = format!("202{}-{:02}-11", 2 + number % 4, 1 + number % 12);
        let mut one = award(&format!("A{number}"), &format!("U{}", number % 7), &day);
        one.psc = ["D399", "R425", "Z1AA"][number % 3].into();
        awards.push(one);
    }
    let mut expected = None;
    for seed in 0..20 {
        let mut random = Random::new(seed);
        for at in (1..awards.len()).rev() {
            awards.swap(at, random.below(at + 1));
        }
        let records = engine(&awards).records();
        assert!(records.len() == 30 && records.values().any(|record| record.contract.as_ref().unwrap().signals.len() > 1));
        match &expected {
            None => expected = Some(records),
            Some(expected) => assert_eq!(&records, expected, "seed {seed}"),
        }
    }
    let mut engine = engine(&awards);
    let changes = engine.changes_of_records().count();
    engine.decide(&fact(&modified(&awards[0], "P00001", "2026-08-01", "C", 7, &awards[0].end)));
    // Its own candidate, and nothing of the others.
    assert_eq!(engine.changes_of_records().count(), changes + 1);
}

/// Proves that a need remembers the awards that were signed last, and that the others remain candidates.
#[test]
fn many_awards_of_a_need() {
    let awards: Vec<Award> =
        (0..AWARDS_MAX + 20).map(|n| award(&format!("A{n:03}"), &format!("U{n}"), &format!("20{:02}-01-01", 10 + n % 15))).collect();
    let engine = engine(&awards);
    let key = need_key(&awards[0]);
    let (_, need) = engine.table(TABLES.state).find(|(row, _)| format!("{row:?}").contains(&key)).unwrap();
    let need: Need = serde_json::from_slice(need).unwrap();
    assert_eq!(need.len(), AWARDS_MAX);
    assert!(need.values().all(|one| one.signed.as_str() >= "2015-01-01"), "{need:?}");
    assert_eq!(engine.records().len(), awards.len());
}
