//! Facts in any order, and what becomes of leads: their places, their signals, and when they are withdrawn.

use std::collections::BTreeSet;

use crate::record::lexicon::{GENERAL, LEXICON};
use schemas::change::ChangeKind;
use schemas::position::Seq;
use schemas::tables::{Datum, Key};
use schemas::views::records::{PlaceRow, Record};

use super::*;
use fold::random::Random;
use fold::testing::{self, Folded};
use texts::phrases::words;

type World = Folded<Labs>;

/// What the tests ask of the service in memory.
trait TestMethods {
    fn observe(&mut self, grant: &GrantFact);
    fn take(&mut self, kind: FactKind, number: &str, data: Option<GrantFact>);
    /// The places, each with the seq until which it holds.
    fn places(&self) -> impl Iterator<Item = (&Key, Seq)>;
    /// The ids in a list as of a seq.
    fn list(&self, list: &str, seq: Seq) -> Vec<&str>;
    fn lists(&self) -> BTreeSet<String>;
}

impl TestMethods for World {
    fn observe(&mut self, grant: &GrantFact) {
        self.take(FactKind::Observed, &grant.number, Some(grant.clone()));
    }

    fn take(&mut self, kind: FactKind, number: &str, data: Option<GrantFact>) {
        self.decide(&testing::fact(format!("nih_reporter/{number}"), kind, 0, data));
    }

    fn places(&self) -> impl Iterator<Item = (&Key, Seq)> {
        self.table(TABLES.places.unwrap()).map(|(key, value)| (key, serde_json::from_slice::<PlaceRow>(value).unwrap().until))
    }

    fn list(&self, list: &str, seq: Seq) -> Vec<&str> {
        let mut ids = Vec::new();
        for (key, until) in self.places() {
            let [Datum::Text(name), _, _, Datum::Text(id), Datum::Int(since)] = key.as_slice() else { panic!("{key:?}") };
            if name == list && Seq::try_from(*since).unwrap() <= seq && (until == Seq(0) || until > seq) {
                ids.push(id.as_str());
            }
        }
        ids
    }

    fn lists(&self) -> BTreeSet<String> {
        let name = |key: &Key| match key.first() {
            Some(Datum::Text(name)) => name.clone(),
            _ => String::new(),
        };
        self.places().map(|(key, _)| name(key)).collect()
    }
}

fn grant(number: &str, activity: &str, pi: &str, core: &str, year: i64) -> GrantFact {
    GrantFact {
        number: number.into(),
        award_type: "1".into(),
        activity_code: activity.into(),
        mechanism: "Non-SBIR/STTR".into(),
        country: "UNITED STATES".into(),
        state: "OH".into(),
        amount: Some(250_000),
        notice_date: format!("{year}-05-0{}", 1 + number.len() % 9),
        fiscal_year: Some(year),
        core_project: core.into(),
        pi_number: pi.into(),
        title: "Confocal microscope".into(),
        ..GrantFact::default()
    }
}

fn random_grants(random: &mut Random, count: usize) -> Vec<GrantFact> {
    let phrases: Vec<&str> = LEXICON.entries.iter().flat_map(|category| category.words.iter().map(String::as_str)).collect();
    let text =
        |random: &mut Random| format!("The {} of {} and {}", random.one(&phrases), random.one(&["sleep", "mice"]), random.one(&phrases));
    let one = |random: &mut Random, n: usize| GrantFact {
        award_type: random.one(&["1", "1", "1", "2", "3", "5"]).into(),
        state: random.one(&["OH", "CA", "TX", ""]).into(),
        amount: [None, Some(90_000), Some(600_000)][random.below(3)],
        pi: format!("Investigator {}", random.below(40)),
        org: format!("UNIVERSITY {}", random.below(9)),
        title: text(random),
        terms: (0..random.below(4)).map(|_| random.one(&phrases).to_owned()).collect(),
        summary: text(random),
        notice_date: format!("20{}-0{}-1{}", 20 + random.below(7), 1 + random.below(9), random.below(10)),
        ..grant(
            &n.to_string(),
            random.one(&["R01", "R01", "R21", "R35", "U01", "S10", "K99", "DP2", "F31", "ZIA"]),
            random.one(&["1", "2", "3", "4", ""]),
            &format!("R01CA{}", random.below(9)),
            2019 + i64::try_from(random.below(8)).unwrap(),
        )
    };
    (0..count).map(|n| one(random, n)).collect()
}

/// Proves that the same grants in any order give the same leads and lists.
#[test]
fn the_order_of_arrival_changes_nothing() {
    for seed in 0..30 {
        let mut random = Random::new(seed);
        let grants = random_grants(&mut random, 60);
        let mut worlds = Vec::new();
        for _ in 0..3 {
            let mut order: Vec<&GrantFact> = grants.iter().collect();
            for at in (1..order.len()).rev() {
                order.swap(at, random.below(at + 1));
            }
            let mut world = World::default();
            order.into_iter().for_each(|grant| world.observe(grant));
            worlds.push(world);
        }
        for other in &worlds[1..] {
            assert_eq!(worlds[0].records(), other.records(), "seed {seed}");
            for list in worlds[0].lists().union(&other.lists()) {
                assert_eq!(worlds[0].list(list, Seq(u64::MAX)), other.list(list, Seq(u64::MAX)), "seed {seed}: {list}");
            }
        }
    }
}

/// Proves for random grants: evidence occurs in the named field and has a sum of 2 or more, the window is in order, no supplement and no
/// grant of another rule is a lead, the lists of categories together are the list of all, and the redacted form contains no value of a
/// protected field.
#[test]
fn invariants_of_leads() {
    let mut random = Random::new(77);
    let grants = random_grants(&mut random, 600);
    let mut world = World::default();
    grants.iter().for_each(|grant| world.observe(grant));
    let leads = world.records();
    assert!(leads.len() > 100, "{}", leads.len());
    for grant in &grants {
        let lead = leads.get(&format!("nih:{}", grant.number));
        assert_eq!(lead.is_some(), lead::is_lead(grant), "{grant:?}");
        let Some(lead) = lead else { continue };
        let terms = grant.terms.join("\n");
        for evidence in &lead.category_evidence {
            let field = match evidence.field.as_str() {
                "title" => &grant.title,
                "terms" => &terms,
                _ => &grant.summary,
            };
            assert!(words(field).contains(&words(&evidence.phrase)), "{evidence:?} in {field}");
        }
        let sum: i64 = lead.category_evidence.iter().map(|evidence| evidence.weight).sum();
        assert_eq!(sum >= 2, lead.category != GENERAL, "{lead:?}");
        assert!(LEXICON.entries.iter().any(|category| category.name == lead.category));
        let window = &lead.spend_window;
        assert!(window.from <= window.peak_to && window.peak_to <= window.to, "{window:?}");
        let sample = serde_json::to_string(&schemas::views::records::Redact::redacted(lead)).unwrap();
        for protected in [&lead.id, &lead.pi, &lead.org, &lead.title, &lead.notice_date, &lead.amount.to_string()] {
            assert!(!sample.contains(protected.as_str()), "{protected} in {sample}");
        }
    }
    let mut by_category: Vec<&str> =
        LEXICON.entries.iter().flat_map(|category| world.list(&format!("category/{}", category.name), Seq(u64::MAX))).collect();
    let mut all = world.list("all", Seq(u64::MAX));
    all.sort_unstable();
    by_category.sort_unstable();
    assert_eq!(all, by_category);
    assert_eq!(all.len(), leads.len());
    world.assert_rebuilds();
}

/// Proves that a grant of an earlier year that arrives late makes a new laboratory an old one, and that the lead is decided again when the
/// years before it are read.
#[test]
fn late_grants_change_signals() {
    let mut world = World::default();
    world.observe(&grant("9", "R01", "7", "R01CA9", 2026));
    let signal = |world: &World| world.records()["nih:9"].signal.clone();
    assert_eq!(signal(&world), "unknown_pi");
    world.observe(&grant("1", "R01", "8", "R01CA1", 2024));
    assert_eq!(signal(&world), "unknown_pi");
    world.observe(&grant("2", "R01", "8", "R01CA1", 2023));
    assert_eq!(signal(&world), "new_lab");
    world.observe(&GrantFact { award_type: "5".into(), ..grant("3", "R21", "7", "R21CA5", 2025) });
    let lead = &world.records()["nih:9"];
    assert_eq!((lead.signal.as_str(), lead.signal_evidence.as_str()), ("new_project", "earlier core project R21CA5"));
    assert!(!world.records().contains_key("nih:3"));
    // The investigator is corrected: the lead follows.
    world.observe(&grant("9", "R01", "6", "R01CA9", 2026));
    assert_eq!(signal(&world), "new_lab");
    world.observe(&GrantFact { award_type: "5".into(), ..grant("4", "R21", "7", "R21CA6", 2020) });
    assert_eq!(signal(&world), "new_lab");
}

/// Proves that a lead is modified by a new amount, withdrawn with its grant or when its grant is no lead any more, out of the lists and the count then, and
/// back when the grant is; and that lists as of an earlier change still hold it.
#[test]
fn leads_are_withdrawn_and_come_back() {
    let (mut world, first) = (World::default(), grant("9", "S10", "", "", 2026));
    let list = "category+state/Microscopy and imaging/OH";
    world.observe(&first);
    let since = world.seq();
    assert_eq!(world.counted_records(), 1);
    assert_eq!((world.list(list, world.seq()), world.list("all", world.seq())), (vec!["nih:9"], vec!["nih:9"]));
    world.observe(&GrantFact { amount: Some(300_000), ..first.clone() });
    assert_eq!((world.records()["nih:9"].amount, world.list(list, world.seq()).len(), world.counted_records()), (300_000, 1, 1));
    world.take(FactKind::Withdrawn, "9", None);
    assert!(world.records()["nih:9"].withdrawn && !world.records()["nih:9"].is_listed() && world.counted_records() == 0);
    assert_eq!(
        (world.list(list, world.seq()).len(), world.list(list, since), world.list(list, since.previous()).len()),
        (0, vec!["nih:9"], 0)
    );
    world.observe(&first);
    assert!(!world.records()["nih:9"].withdrawn && world.list("all", world.seq()).len() == 1 && world.counted_records() == 1);
    world.observe(&GrantFact { amount: None, ..first.clone() });
    assert!(world.records()["nih:9"].withdrawn && world.list("all", world.seq()).is_empty());
    let kinds: Vec<ChangeKind> = world.changes_of_records().map(|change| change.event).collect();
    assert_eq!(kinds, [ChangeKind::New, ChangeKind::Modified, ChangeKind::Modified, ChangeKind::Modified, ChangeKind::Modified]);
    world.observe(&GrantFact { award_type: "3".into(), ..grant("10", "R01", "", "", 2026) });
    world.take(FactKind::Withdrawn, "11", None);
    assert_eq!((world.records().len(), world.counted_records()), (1, 0), "a supplement, or a grant that was never seen, is no lead");
}
