//! The scores of contracts 180 days before their end, and what became of them.

use jiff::tz::TimeZone;
use schemas::event::{Fact, FactKind};
use schemas::facts::exclusions::ExclusionFact;
use schemas::facts::exclusions::classification::FIRM;
use schemas::tables::{Datum, Key};

use super::super::super::{ExclusionInput, Exclusions};
use super::super::tests::{award, modified};
use super::*;
use crate::record::outcomes::Counts;
use fold::testing::{self, Folded};

type Engine = Folded<Exclusions>;

/// A day on which the contract is recorded before it is scored, which is on 2024-08-04.
const EARLY: &str = "2024-06-01";
/// A day on which the next award is recorded.
const LATE: &str = "2024-12-15";

fn fact(key: &str, day: &str, input: ExclusionInput) -> Fact<ExclusionInput> {
    let at = day.parse::<Date>().unwrap().to_zoned(TimeZone::UTC).unwrap().timestamp().as_millisecond();
    testing::fact(key, FactKind::Observed, at, Some(input))
}

fn on(day: &str, award: &Award) -> Fact<ExclusionInput> {
    fact(&format!("changes.awards/{}", award.id), day, ExclusionInput::Award(Box::new(award.clone())))
}

fn excluded(since: &str, day: &str) -> Fact<ExclusionInput> {
    let (text, date) = (|text: &str| text.to_owned(), since.to_owned());
    let row = ExclusionFact {
        name: text("FIRM U1"),
        classification: text(FIRM),
        uei: text("U1"),
        active_date: date.clone(),
        creation_date: date,
        ..ExclusionFact::default()
    };
    fact("sam_exclusions/1", day, ExclusionInput::Exclusion(Box::new(row)))
}

/// An earlier award of the need, so that the contract can be bid again.
fn earlier() -> Award {
    award("A0", "U9", "2019-02-01")
}

/// A contract of three years that ends on 2025-01-31.
fn ending() -> Award {
    Award { end: "2025-01-31".into(), potential_end: "2025-01-31".into(), ..award("A1", "U1", "2022-02-01") }
}

/// The next award of the need.
fn next(uei: &str) -> Award {
    award("A2", uei, "2024-12-01")
}

/// The counts of January 2025 after facts.
fn counts(facts: &[Fact<ExclusionInput>]) -> Vec<(String, i64)> {
    let mut engine = Engine::default();
    facts.iter().for_each(|fact| engine.decide(fact));
    let bucket = month_number(Date::constant(2025, 1, 1));
    let is_of = |key: &Key| key[0] == Datum::Text(term()) && key[1] == Datum::Int(bucket);
    let last = engine.table(TABLES.terms).rfind(|(key, _)| is_of(key));
    let counts: Counts = last.map(|(_, value)| serde_json::from_slice(value).unwrap()).unwrap_or_default();
    counts.into_iter().collect()
}

fn of(cell: &str) -> Vec<(String, i64)> {
    vec![(cell.to_owned(), 1)]
}

/// Proves that the next award of the need decides what became of a contract: to another recipient it is lost, to the same one or its parent it is kept; and
/// that one of another size, need or time decides nothing.
#[test]
fn next_awards_decide() {
    let after = |next: Award| counts(&[on(EARLY, &earlier()), on(EARLY, &ending()), on(LATE, &next)]);
    assert_eq!(after(next("U2")), of("20/flip"));
    assert_eq!(after(next("U1")), of("20/kept"));
    for unknown in [
        Award { amount_cents: Some(500_000_000), ..next("U2") },
        Award { amount_cents: Some(5_000_000), ..next("U2") },
        Award { signed: "2024-08-03".into(), ..next("U2") },
        Award { signed: "2025-07-31".into(), ..next("U2") },
        Award { office: "BASE KODIAK".into(), ..next("U2") },
        Award { recipient_uei: String::new(), ..next("U2") },
    ] {
        assert_eq!(after(unknown.clone()), [], "{unknown:?}");
    }
    let parent = |award: Award| Award { parent_recipient_uei: "P1".into(), ..award };
    assert_eq!(counts(&[on(EARLY, &earlier()), on(EARLY, &parent(ending())), on(LATE, &parent(next("U2")))]), of("20/kept"));
    // The size of the next award becomes known later, or is corrected.
    let large = Award { amount_cents: Some(500_000_000), ..next("U2") };
    let begun = [on(EARLY, &earlier()), on(EARLY, &ending())];
    assert_eq!(counts(&[begun.as_slice(), &[on(LATE, &large), on(LATE, &next("U2"))]].concat()), of("20/flip"));
    assert_eq!(counts(&[begun.as_slice(), &[on(LATE, &next("U2")), on(LATE, &large)]].concat()), []);
}

/// Proves that the score is that of 180 days before the end, by what was recorded until then: neither a contract that was recorded later is counted, nor an
/// exclusion that began later.
#[test]
fn scores_are_of_180_days_before() {
    let begun = [on(EARLY, &earlier()), on(EARLY, &ending())];
    let with = |exclusion: Fact<ExclusionInput>| counts(&[begun.as_slice(), &[exclusion, on(LATE, &next("U2"))]].concat());
    assert_eq!(with(excluded("2024-07-01", "2024-07-02")), of("60/flip"));
    assert_eq!(with(excluded("2024-09-01", "2024-09-02")), of("20/flip"));
    for (recorded, counted) in [("2024-08-04", of("20/flip")), ("2024-08-05", vec![])] {
        assert_eq!(counts(&[on(EARLY, &earlier()), on(recorded, &ending()), on(LATE, &next("U2"))]), counted, "{recorded}");
    }
}

/// Proves that a contract that is terminated, or whose end moves, is counted no more.
#[test]
fn counts_follow_the_contract() {
    let begun = [on(EARLY, &earlier()), on(EARLY, &ending()), on(LATE, &next("U2"))];
    let then = |change: Award| counts(&[begun.as_slice(), &[on("2025-02-10", &change)]].concat());
    let own = ending();
    assert_eq!(then(modified(&own, "P00001", "2025-02-10", "C", 7, &own.end)), of("20/flip"));
    assert_eq!(then(modified(&own, "P00001", "2025-02-10", "E", 0, &own.end)), []);
    assert_eq!(then(modified(&own, "P00001", "2025-02-10", "B", 0, "2025-06-30")), []);
}
