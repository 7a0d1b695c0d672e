//! What rows of the list and awards become, in any order.

use std::collections::BTreeMap;

use schemas::change::ChangeKind;
use schemas::facts::exclusions::classification::{FIRM, SPECIAL_ENTITY};

use super::*;
use fold::random::Random;
use fold::testing::{self, Folded};

/// The service in memory.
type Engine = Folded<Exclusions>;

fn fact(key: &str, kind: FactKind, data: Option<ExclusionInput>) -> Fact<ExclusionInput> {
    testing::fact(key, kind, 0, data)
}

/// What the tests ask of the service in memory.
trait TestMethods {
    fn row(&mut self, row: &ExclusionFact) -> String;
    fn lift(&mut self, row: &ExclusionFact);
    fn award(&mut self, award: &Award);
    fn listed(&self) -> BTreeMap<String, Exclusion>;
    fn hit(&self, uei: &str) -> Option<Exclusion>;
}

impl TestMethods for Engine {
    fn row(&mut self, row: &ExclusionFact) -> String {
        self.decide(&observed(row));
        format!("sam:{}", row.row_id())
    }

    fn lift(&mut self, row: &ExclusionFact) {
        self.decide(&fact(&key(row), FactKind::Withdrawn, None));
    }

    fn award(&mut self, award: &Award) {
        self.decide(&of_award(award));
    }

    fn listed(&self) -> BTreeMap<String, Exclusion> {
        self.records().into_iter().filter(|(_, record)| !record.withdrawn).collect()
    }

    fn hit(&self, uei: &str) -> Option<Exclusion> {
        self.listed().remove(&hit_id(uei))
    }
}

fn key(row: &ExclusionFact) -> String {
    format!("sam_exclusions/{}", row.row_id())
}

fn observed(row: &ExclusionFact) -> Fact<ExclusionInput> {
    fact(&key(row), FactKind::Observed, Some(ExclusionInput::Exclusion(Box::new(row.clone()))))
}

fn of_award(award: &Award) -> Fact<ExclusionInput> {
    fact(&format!("changes.awards/{}", award.id), FactKind::Observed, Some(ExclusionInput::Award(Box::new(award.clone()))))
}

const UEI: &str = "ABCDEF123456";
const OTHER: &str = "GHIJKL123456";

fn firm(name: &str, uei: &str, cage: &str, active: &str) -> ExclusionFact {
    ExclusionFact {
        classification: FIRM.into(),
        name: name.into(),
        uei: uei.into(),
        cage: cage.into(),
        agency: "EPA".into(),
        exclusion_type: "Ineligible (Proceedings Completed)".into(),
        active_date: active.into(),
        termination_date: "Indefinite".into(),
        ..ExclusionFact::default()
    }
}

fn award(id: &str, uei: &str, day: &str) -> Award {
    Award { id: id.into(), recipient_uei: uei.into(), recipient: "ACME LLC".into(), signed: day.into(), ..Award::default() }
}

/// Proves that an entity is a hit once it has an exclusion and an award with the same UEI, in either order, and no longer when the exclusion is lifted.
#[test]
fn hits_begin_and_end() {
    let (row, award) = (firm("ACME LLC", UEI, "", "2026-10-01"), award("A1", UEI, "2024-01-01"));
    for is_award_first in [true, false] {
        let mut engine = Engine::default();
        if is_award_first {
            engine.award(&award);
            assert_eq!(engine.listed().len(), 0);
        }
        let id = engine.row(&row);
        assert_eq!(engine.hit(UEI).is_some(), is_award_first);
        if !is_award_first {
            engine.award(&award);
        }
        let hit = engine.hit(UEI).unwrap();
        assert_eq!((hit.matched_by.as_str(), hit.active_date.as_str(), hit.latest_action.as_str()), (BY_UEI, "2026-10-01", "2024-01-01"));
        assert_eq!((hit.exclusions.clone(), hit.name.as_str()), (vec![id.clone()], "ACME LLC"));
        // A later action changes the hit, an earlier one does not.
        engine.award(&Award { id: "A2".into(), signed: "2026-11-02".into(), ..award.clone() });
        assert_eq!(engine.hit(UEI).unwrap().latest_action, "2026-11-02");
        let changes = engine.changes_of_records().count();
        engine.award(&Award { id: "A3".into(), signed: "2025-11-02".into(), ..award.clone() });
        assert_eq!(engine.changes_of_records().count(), changes);
        engine.lift(&row);
        assert_eq!(engine.listed().len(), 0);
        let last: Vec<ChangeKind> = engine.changes_of_records().rev().take(2).map(|change| change.event).collect();
        assert_eq!(last, [ChangeKind::Modified; 2]);
        // The row is on the list again.
        engine.row(&row);
        assert_eq!(engine.hit(UEI).unwrap().exclusions, [id]);
    }
}

/// Proves that a withdrawn award leaves the day of the latest action on another one, that an entity without any other award is no hit until it has
/// one again, and that of awards that are not among the latest the day remains.
#[test]
fn withdrawn_awards() {
    let mut engine = Engine::default();
    engine.row(&firm("ACME LLC", UEI, "", "2026-10-01"));
    let award_in = |month: usize| award(&format!("A{month}"), UEI, &format!("2025-{month:02}-01"));
    let withdrawn = |month: usize| Award { withdrawn: true, ..award_in(month) };
    let latest = |engine: &Engine| engine.hit(UEI).map(|hit| hit.latest_action);
    engine.award(&award_in(1));
    engine.award(&award_in(2));
    engine.award(&withdrawn(2));
    assert_eq!(latest(&engine).as_deref(), Some("2025-01-01"));
    engine.award(&withdrawn(1));
    assert_eq!(latest(&engine), None);
    (1..=9).rev().for_each(|month| engine.award(&award_in(month)));
    let moved = Award { action_date: "2025-10-01".into(), ..award_in(3) };
    engine.award(&moved);
    engine.award(&Award { withdrawn: true, ..moved });
    for month in (5..=9).rev() {
        assert_eq!(latest(&engine), Some(format!("2025-{month:02}-01")));
        engine.award(&withdrawn(month));
    }
    // That award was not among the five latest when the third one had moved, so that its day remains.
    assert_eq!(latest(&engine).as_deref(), Some("2025-05-01"));
}

/// Proves what joins no exclusion with an award: the same name, the UEI of a parent, a person, a ship, a row without a class, and an entity that is not
/// itself excluded.
#[test]
fn what_joins_nothing() {
    let hits_of = |row: ExclusionFact, award: Award| {
        let mut engine = Engine::default();
        engine.row(&row);
        engine.award(&award);
        engine.listed().values().filter(|record| record.kind == HIT).count()
    };
    let row = firm("ACME LLC", UEI, "", "2026-10-01");
    let award = award("A1", UEI, "2024-01-01");
    assert_eq!(hits_of(row.clone(), award.clone()), 1);
    assert_eq!(hits_of(ExclusionFact { classification: SPECIAL_ENTITY.into(), ..row.clone() }, award.clone()), 1);
    assert_eq!(hits_of(ExclusionFact { uei: String::new(), ..row.clone() }, award.clone()), 0);
    let of_parent = Award { recipient_uei: OTHER.into(), parent_recipient_uei: UEI.into(), ..award.clone() };
    assert_eq!(hits_of(row.clone(), of_parent), 0);
    for classification in [INDIVIDUAL, "Vessel", ""] {
        assert_eq!(hits_of(ExclusionFact { classification: classification.into(), ..row.clone() }, award.clone()), 0, "{classification}");
    }
    assert_eq!(hits_of(ExclusionFact { comments: "The entity is not itself excluded".into(), ..row.clone() }, award.clone()), 0);
    assert_eq!(hits_of(row, Award { withdrawn: true, ..award }), 0);
}

/// Proves that an exclusion without a UEI is of the entity that another row names with the same CAGE code, also if that row comes later or is lifted,
/// and that an exclusion with the UEI goes before it and does not hide it.
#[test]
fn cage_codes() {
    let (with, without) = (firm("ACME LLC", UEI, "1A2B3", "2026-10-01"), firm("ACME", "", "1A2B3", "2025-01-01"));
    for order in [[&with, &without], [&without, &with]] {
        let mut engine = Engine::default();
        engine.award(&award("A1", UEI, "2024-01-01"));
        let ids = order.map(|row| engine.row(row));
        let both = if order[0].uei.is_empty() { [&ids[1], &ids[0]] } else { [&ids[0], &ids[1]] };
        let hit = engine.hit(UEI).unwrap();
        assert_eq!((hit.matched_by.as_str(), hit.exclusions.iter().collect::<Vec<_>>()), (BY_UEI, both.to_vec()));
        assert_eq!(hit.active_date, "2026-10-01");
        engine.lift(&with);
        let hit = engine.hit(UEI).unwrap();
        assert_eq!((hit.matched_by.as_str(), hit.active_date.as_str()), (BY_CAGE, "2025-01-01"));
        engine.lift(&without);
        assert_eq!(engine.hit(UEI), None);
    }
    // The code of a row is corrected.
    let mut engine = Engine::default();
    engine.award(&award("A1", UEI, "2024-01-01"));
    engine.row(&with);
    engine.lift(&with);
    engine.row(&without);
    assert!(engine.hit(UEI).is_some());
    engine.row(&ExclusionFact { cage: "9Z9Z9".into(), ..without.clone() });
    assert_eq!(engine.hit(UEI), None);
    // The code of the row with the UEI is corrected: the other firm's exclusion was never one of the entity. Unless another row still gives the code.
    for is_given_twice in [false, true] {
        let mut engine = Engine::default();
        engine.award(&award("A1", UEI, "2024-01-01"));
        engine.row(&without);
        engine.row(&with);
        let second = ExclusionFact { agency: "HHS".into(), ..with.clone() };
        if is_given_twice {
            engine.row(&second);
        }
        engine.row(&ExclusionFact { cage: "2B3C4".into(), ..with.clone() });
        engine.lift(&with);
        engine.lift(&second);
        assert_eq!(engine.hit(UEI).is_some(), is_given_twice);
    }
}

/// Proves that of several exclusions the earliest is shown, and one without any day last.
#[test]
fn the_earliest_exclusion_is_shown() {
    let mut engine = Engine::default();
    engine.award(&award("A1", UEI, "2024-01-01"));
    let late = engine.row(&firm("ACME", UEI, "", "2026-10-01"));
    let undated = engine.row(&firm("ACME", UEI, "", ""));
    let early = engine.row(&ExclusionFact { agency: "HHS".into(), ..firm("ACME", UEI, "", "2026-01-01") });
    let entered =
        engine.row(&ExclusionFact { creation_date: "2026-05-05".into(), active_date: String::new(), ..firm("ACME", UEI, "", "") });
    let hit = engine.hit(UEI).unwrap();
    assert_eq!(hit.exclusions, [early, entered, late, undated]);
    assert_eq!((hit.excluding_agency.as_str(), hit.active_date.as_str()), ("HHS", "2026-01-01"));
}

/// Proves by which keys names are found: persons by the whole name only, anything else by the spellings that match exactly.
#[test]
fn keys_of_names() {
    let person = ExclusionFact {
        classification: INDIVIDUAL.into(),
        prefix: "DR".into(),
        first: "ANN".into(),
        middle: "B".into(),
        last: "LEE".into(),
        suffix: "JR".into(),
        ..ExclusionFact::default()
    };
    let record = record_of("sam:1".into(), &person);
    assert_eq!((record.name.as_str(), record.name_keys), ("DR ANN B LEE JR", vec!["person/ANN B LEE, JR".to_owned()]));
    let company = record_of("sam:2".into(), &firm("Siemens Aktiengesellschaft", "", "", ""));
    assert!(company.name_keys.contains(&"words/SIEMENS".to_owned()), "{company:?}");
    assert_eq!(record_of("sam:3".into(), &firm("--", "", "", "")).name_keys, Vec::<String>::new());
}

/// Proves that the same facts in any order give the same records.
#[test]
fn order_of_facts() {
    let mut facts: Vec<ExclusionFact> = Vec::new();
    let ueis = [UEI, OTHER, ""];
    for number in 0..24_usize {
        let (uei, cage) = (ueis[number % 3], ["1A2B3", "", "9Z9Z9"][number / 3 % 3]);
        facts.push(firm(&format!("FIRM {number}"), uei, cage, &format!("2026-01-{:02}", 1 + number)));
    }
    let awards = [award("A1", UEI, "2024-01-01"), award("A2", OTHER, "2025-01-01"), award("A3", UEI, "2026-01-01")];
    let mut expected = None;
    for seed in 0..20 {
        let mut random = Random::new(seed);
        let mut all: Vec<Fact<ExclusionInput>> = facts.iter().map(observed).chain(awards.iter().map(of_award)).collect();
        for at in (1..all.len()).rev() {
            all.swap(at, random.below(at + 1));
        }
        let mut engine = Engine::default();
        all.iter().for_each(|fact| engine.decide(fact));
        // Some rows are lifted at the end.
        facts.iter().step_by(4).for_each(|row| engine.lift(row));
        let records = engine.listed();
        assert!(records.values().filter(|record| record.kind == HIT).count() == 2);
        match &expected {
            None => {
                engine.assert_rebuilds();
                expected = Some(records);
            }
            Some(expected) => assert_eq!(&records, expected, "seed {seed}"),
        }
    }
}
