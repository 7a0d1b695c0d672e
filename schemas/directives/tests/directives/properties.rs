//! Properties that hold for every generated directive and aircraft.

use directives::{Aircraft, DoneWork, Due, Hours, ResolvedAircraft, Usage, Verdict, compact_form, compare, due};
use jiff::ToSpan;
use jiff::civil::{Date, date};
use rand::rngs::StdRng;
use rand::{RngExt, SeedableRng};

use crate::texts::Text;

/// Makes with models of different forms.
const MAKES: &[(&str, &[&str])] = &[
    ("Piper Aircraft, Inc.", &["PA-28-140", "PA-28-180", "PA-28R-201", "PA-32-300", "PA-46-350P"]),
    ("Airbus SAS", &["A319-111", "A319-112", "A320-214", "A320-271N", "A321-211"]),
    ("Cessna Aircraft Company", &["150M", "172R", "172S", "182T", "T206H"]),
    ("Dassault Aviation", &["FALCON 900EX", "FALCON 2000", "MYSTERE-FALCON 50"]),
    ("Bombardier, Inc.", &["BD-100-1A10", "BD-700-1A10", "BD-700-1A11", "CL-600-2B16"]),
    ("Airbus Helicopters", &["AS355E", "AS355F1", "EC130T2", "EC135P2+", "AS 365 N3"]),
];

/// Writes models as a list: in full, or with the first part left out where it is shared.
fn listed(models: &[&str], is_short: bool) -> String {
    let mut out = String::new();
    for (at, model) in models.iter().enumerate() {
        if at > 0 {
            out.push_str(if at + 1 == models.len() { ", and " } else { ", " });
        }
        let before = at.checked_sub(1).map(|before| models[before]);
        let shared = before.and_then(|before| before.rfind('-').filter(|cut| before[..*cut] == model[..model.rfind('-').unwrap_or(0)]));
        out.push_str(shared.filter(|_| is_short).map_or(model, |cut| &model[cut..]));
    }
    out
}

fn aircraft(make: &str, model: &str) -> ResolvedAircraft {
    ResolvedAircraft::new(&Aircraft { make, model, ..Aircraft::default() })
}

/// A spelling of a model: separators changed, removed or added, letters in any case.
fn spelling(random: &mut StdRng, model: &str) -> String {
    let mut out = String::new();
    for c in model.chars() {
        match c {
            '-' | ' ' => out.push_str(["-", " ", "", "/", "."][random.random_range(0..5)]),
            c if random.random_bool(0.5) => out.extend(c.to_lowercase()),
            c => out.push(c),
        }
    }
    out
}

/// Proves that every model of a list matches in every spelling, that the span holds its digits, that models of other makes do not match, and that
/// a model that was named is never lost.
#[test]
fn named_models_match_in_every_spelling() {
    let mut random = StdRng::seed_from_u64(27);
    for round in 0..600 {
        let (make, all) = MAKES[random.random_range(0..MAKES.len())];
        let count = random.random_range(1..=all.len());
        let models = &all[..count];
        let scope = ["all ", "certain ", ""][random.random_range(0..3)];
        let applicability = format!(
            "This AD applies to {scope}{make} Model {} airplanes, certificated in any category.",
            listed(models, random.random_bool(0.5))
        );
        let title = format!("Airworthiness Directives; {make} Airplanes");
        let (text, directive) = Text { holder: make, applicability: &applicability, title: &title, ..Text::default() }.read();
        for model in models {
            let expected = compare(&directive, &aircraft(make, model));
            assert_eq!(expected.verdict, Verdict::Match, "round {round}: {model} in {applicability}");
            let span = compact_form(expected.span.unwrap().of(&text).replace(", and ", " ").as_str());
            let digits = model.chars().filter(char::is_ascii_digit);
            let mut rest = span.chars();
            assert!(digits.clone().all(|digit| rest.any(|c| c == digit)), "{span} holds the digits of {model}");
            let spelled = spelling(&mut random, model);
            assert_eq!(compare(&directive, &aircraft(make, &spelled)), expected, "{spelled}");
            assert_eq!(compare(&directive, &aircraft("Mooney International", model)).verdict, Verdict::None);
        }
        for (other, _) in MAKES.iter().filter(|(other, _)| *other != make) {
            assert_eq!(compare(&directive, &aircraft(other, "XQ-77")).verdict, Verdict::None);
        }
    }
}

fn due_of(actions: &str, hours: i64, day: Date, now: (i64, Date)) -> Due {
    let (_, directive) = Text { actions, ..Text::default() }.read();
    let record = DoneWork { date: Some(day), hours: Hours::new(hours as f64 / 100.0), cycles: Some(10), is_terminated: false };
    due(&directive, Some(&record), &Usage { hours: Hours::new(now.0 as f64 / 100.0), cycles: Some(20), date: now.1 }, false)
}

/// Proves that the next due hours and day move by exactly as much as the record, and that they follow the record by exactly the interval.
#[test]
fn due_moves_with_the_record() {
    let mut random = StdRng::seed_from_u64(28);
    for _ in 0..300 {
        let (hours, days) = (random.random_range(1..5_000_i64), random.random_range(1..2_000_i64));
        let actions = format!(
            "Repeat the inspection thereafter at intervals not to exceed {hours} hours TIS or {days} days, whichever occurs first."
        );
        let (done, moved) = (random.random_range(0..1_000_000_i64), random.random_range(0..100_000_i64));
        let day = date(2020, 1, 1).checked_add(random.random_range(0..2_000_i64).days()).unwrap();
        let later = day.checked_add((moved % 500).days()).unwrap();
        let now = (done + moved, later);
        let (one, other) = (due_of(&actions, done, day, now), due_of(&actions, done + moved, later, now));
        assert_eq!(one.by_hours.unwrap().hundredths(), done + hours * 100);
        assert_eq!(other.by_hours.unwrap().hundredths() - one.by_hours.unwrap().hundredths(), moved);
        assert_eq!(one.by_date.unwrap(), day.checked_add(days.days()).unwrap());
        assert_eq!(other.by_date.unwrap(), later.checked_add(days.days()).unwrap());
        assert_eq!(one.hours_left.unwrap(), hours * 100 - moved);
    }
}

/// Proves that with one more hour or day the status never gets better.
#[test]
fn status_never_improves_with_use() {
    let actions = "Repeat the inspection thereafter at intervals not to exceed 100 hours TIS or 60 days, whichever occurs later.";
    let day = date(2026, 1, 1);
    for hours in (0..12_000_i64).step_by(950) {
        for days in (0..90_i64).step_by(7) {
            let at = |hours: i64, days: i64| due_of(actions, 0, day, (hours, day.checked_add(days.days()).unwrap())).status;
            assert!(at(hours, days) <= at(hours + 950, days) && at(hours, days) <= at(hours, days + 7), "{hours} {days}");
        }
    }
}
