//! The worked examples of the service: matches by all spellings, next due hours and dates, and what cannot be decided.

use directives::{
    Aircraft, CannotDecide, Directive, DoneWork, DueStatus, Hours, Reason, Recurring, ResolvedAircraft, Scope, UnreadReason, Usage,
    Verdict, compare, due,
};
use jiff::civil::{Date, date};

use crate::texts::Text;

fn aircraft(make: &str, model: &str) -> ResolvedAircraft {
    ResolvedAircraft::new(&Aircraft { make, model, ..Aircraft::default() })
}

fn with_actions(actions: &str) -> Directive {
    Text { actions, ..Text::default() }.read().1
}

fn usage(hours: f64, date: Date) -> Usage {
    Usage { hours: Hours::new(hours), cycles: None, date }
}

fn record(hours: f64, date: Date) -> DoneWork {
    DoneWork { date: Some(date), hours: Hours::new(hours), ..DoneWork::default() }
}

const SEATS: &str =
    "Repetitively thereafter do the actions at intervals not to exceed every 100 hours TIS or every 12 months, whichever occurs first.";

/// Proves the first two worked examples: the nearer of hours and months rules.
#[test]
fn whichever_occurs_first() {
    let directive = with_actions(SEATS);
    let done = record(1_200.0, date(2026, 3, 10));
    let soon = due(&directive, Some(&done), &usage(1_262.5, date(2026, 11, 20)), false);
    assert_eq!((soon.by_hours.unwrap().as_f64(), soon.hours_left, soon.by_date), (1_300.0, Some(3_750), Some(date(2027, 3, 10))));
    assert_eq!(soon.status, DueStatus::DueSoon);
    let late = due(&directive, Some(&done), &usage(1_300.1, date(2026, 11, 20)), false);
    assert_eq!((late.status, late.hours_left), (DueStatus::Overdue, Some(-10)));
    let exact = due(&directive, Some(&done), &usage(1_300.0, date(2026, 11, 20)), false);
    assert_eq!(exact.status, DueStatus::DueSoon);
}

/// Proves that calendar months end with the month, and months on the same day.
#[test]
fn calendar_months_end_with_the_month() {
    let done = record(0.0, date(2026, 3, 10));
    let by = |actions: &str, now: Date| {
        let due = due(&with_actions(actions), Some(&done), &usage(0.0, now), false);
        (due.by_date.unwrap(), due.status)
    };
    assert_eq!(by("Repeat the inspection every 12 calendar months.", date(2026, 11, 20)), (date(2027, 3, 31), DueStatus::NotDue));
    assert_eq!(by("Repeat the inspection every 12 months.", date(2027, 2, 8)), (date(2027, 3, 10), DueStatus::DueSoon));
    assert_eq!(by("Repeat the inspection every 12 months.", date(2027, 2, 7)), (date(2027, 3, 10), DueStatus::NotDue));
    assert_eq!(by("Repeat the inspection every 12 months.", date(2027, 3, 11)), (date(2027, 3, 10), DueStatus::Overdue));
}

/// Proves the statuses without a record, of a directive without repetition, of a terminating action, and of a superseded directive.
#[test]
fn statuses() {
    let now = usage(1_000.0, date(2026, 11, 20));
    let once = with_actions("Within 6 months after the effective date of this AD, replace the bolt.");
    assert_eq!(once.compliance.recurring, Recurring::No);
    let unknown = due(&once, None, &now, false);
    assert_eq!((unknown.status, unknown.by_date), (DueStatus::DueUnknown, Some(date(2027, 2, 24))));
    let done = record(900.0, date(2026, 9, 1));
    assert_eq!(due(&once, Some(&done), &now, false).status, DueStatus::Done);
    assert_eq!(due(&once, Some(&done), &now, true).status, DueStatus::Closed);
    let terminated = DoneWork { is_terminated: true, ..done };
    assert_eq!(due(&with_actions(SEATS), Some(&terminated), &now, false).status, DueStatus::Terminated);
    assert_eq!(due(&with_actions(SEATS), None, &now, false).status, DueStatus::DueUnknown);
    // Without hours the date alone cannot say that nothing is due.
    let no_hours = Usage { hours: None, ..now };
    let partial = due(&with_actions(SEATS), Some(&record(900.0, date(2026, 9, 1))), &no_hours, false);
    assert_eq!((partial.status, partial.by_hours.unwrap().as_f64(), partial.hours_left), (DueStatus::DueUnknown, 1_000.0, None));
    let elsewhere = with_actions(
        "Comply with all required actions and compliance times specified in EASA AD 2026-0100. Repeat the inspection thereafter.",
    );
    assert_eq!(due(&elsewhere, Some(&done), &now, false).status, DueStatus::DueUnknown);
    assert!(compare(&elsewhere, &aircraft("Piper", "PA-28-140")).cannot_decide.contains(&CannotDecide::ReferencedDocument));
}

/// Proves that a directive whose actions recur at an interval that is not in its text says that the interval is in another document, in every comparison,
/// whether or not the text states a first limit and names the document; and that one with an interval, or without repetition, does not.
#[test]
fn intervals_of_other_documents() {
    for (actions, summary, expected) in [
        ("Repeat the inspection thereafter at the intervals in the manual.", "", true),
        ("Within 50 hours TIS after the effective date of this AD, inspect the spar, and repeat the inspection thereafter.", "", true),
        ("Comply with all actions specified in EASA AD 2026-0100.", "This AD requires repetitive inspections of the bolts.", true),
        ("Comply with all required actions and compliance times specified in EASA AD 2026-0100.", "", true),
        (SEATS, "", false),
        ("Within 6 months after the effective date of this AD, replace the bolt.", "", false),
    ] {
        let (_, directive) = Text { actions, summary, ..Text::default() }.read();
        let outcome = compare(&directive, &aircraft("Piper", "PA-28-140"));
        assert_eq!(outcome.cannot_decide.contains(&CannotDecide::ReferencedDocument), expected, "{actions}");
        assert!(!compare(&directive, &aircraft("Cessna", "172S")).cannot_decide.contains(&CannotDecide::ReferencedDocument));
    }
}

/// Proves that "whichever occurs later" is overdue only when both limits have passed, and due soon only when both are near.
#[test]
fn whichever_occurs_later() {
    let directive =
        with_actions("Repeat the inspection thereafter at intervals not to exceed 100 hours TIS or 12 months, whichever occurs later.");
    let done = record(1_000.0, date(2026, 1, 10));
    for (hours, now, status) in [
        (1_200.0, date(2026, 6, 1), DueStatus::NotDue),
        (1_200.0, date(2026, 12, 20), DueStatus::DueSoon),
        (1_010.0, date(2027, 6, 1), DueStatus::NotDue),
        (1_060.0, date(2027, 6, 1), DueStatus::DueSoon),
        (1_100.1, date(2027, 1, 11), DueStatus::Overdue),
    ] {
        assert_eq!(due(&directive, Some(&done), &usage(hours, now), false).status, status, "{hours} {now}");
    }
}

/// Proves the example of helicopters: five models, all of them, effective on the day of the text.
#[test]
fn five_helicopters() {
    let (text, directive) = Text {
        number: "2026-20-08",
        holder: "Airbus Helicopters",
        effective: "November 5, 2026",
        applicability: "This AD applies to all Airbus Helicopters Model AS355E, AS355F, AS355F1, AS355F2, and AS355N helicopters, certificated in any category.",
        title: "Airworthiness Directives; Airbus Helicopters",
        ..Text::default()
    }
    .read();
    let names: Vec<&str> = directive.applicability.models.iter().map(|model| model.name.as_str()).collect();
    assert_eq!(names, ["AS355E", "AS355F", "AS355F1", "AS355F2", "AS355N"]);
    assert_eq!((directive.applicability.scope, directive.number.as_str()), (Scope::All, "2026-20-08"));
    assert_eq!(directive.effective.map(|(date, _)| date), Some(date(2026, 11, 5)));
    let outcome = compare(&directive, &aircraft("Eurocopter France", "AS 355 F1"));
    assert_eq!((outcome.verdict, outcome.span.unwrap().of(&text)), (Verdict::Match, "AS355F1"));
    assert_eq!(compare(&directive, &aircraft("Airbus Helicopters", "AS355NP")).verdict, Verdict::Possible);
    assert_eq!(compare(&directive, &aircraft("Airbus Helicopters", "EC130T2")).verdict, Verdict::None);
    assert_eq!(compare(&directive, &aircraft("Bell", "AS355E")).verdict, Verdict::None);
}

/// Proves that all spellings of a model, and its marketing name, give the same answer.
#[test]
fn spellings() {
    let (_, directive) = Text::default().read();
    let expected = compare(&directive, &aircraft("Piper", "PA-28-140"));
    assert_eq!((expected.verdict, expected.reasons.as_slice()), (Verdict::Match, &[Reason::ModelNamed][..]));
    for (make, model) in [
        ("PIPER AIRCRAFT, INC.", "PA28-140"),
        ("The New Piper Aircraft, Inc.", "pa28140"),
        ("piper", "Cherokee 140"),
        ("Piper", "Piper PA 28 140"),
    ] {
        assert_eq!(compare(&directive, &aircraft(make, model)), expected, "{make} {model}");
    }
}

/// Proves that a model is possible where the text or the owner leaves out the first part of its name, and that the end of a number is no model.
#[test]
fn names_without_their_first_part() {
    let directive_of = |holder: &str, applicability: &str| {
        let title = format!("Airworthiness Directives; {holder}");
        Text { holder, title: &title, applicability, ..Text::default() }.read().1
    };
    let helicopters = directive_of(
        "Airbus Helicopters Deutschland GmbH Helicopters",
        "This AD applies to all Airbus Helicopters Deutschland GmbH MBB-BK 117 A-1, MBB-BK 117 A-3, and MBB-BK 117 C-1 helicopters.",
    );
    for model in ["MBB-BK 117 A-1", "BK117 A-3", "BK 117C-1", "117 C-1"] {
        assert!(compare(&helicopters, &aircraft("Airbus Helicopters", model)).verdict >= Verdict::Possible, "{model}");
    }
    let airplanes = directive_of("Embraer S.A. Airplanes", "This AD applies to Embraer S.A. Model ERJ 190-100 STD and -100 LR airplanes.");
    for (model, verdict) in
        [("ERJ 190-100 STD", Verdict::Match), ("190-100 STD", Verdict::Match), ("100 STD", Verdict::None), ("EMB-120", Verdict::None)]
    {
        assert_eq!(compare(&airplanes, &aircraft("Embraer", model)).verdict, verdict, "{model}");
    }
}

/// Proves that a directive whose applicability cannot be read is possible for its make, and for no other.
#[test]
fn unread_is_possible() {
    let (_, directive) = Text { applicability: "This AD applies to the airplanes that the manufacturer lists.", ..Text::default() }.read();
    assert!(directive.has_unread(UnreadReason::NoModels));
    let outcome = compare(&directive, &aircraft("Piper", "PA-28-140"));
    assert_eq!((outcome.verdict, outcome.cannot_decide.as_slice()), (Verdict::Possible, &[CannotDecide::Unparsed][..]));
    assert_eq!(compare(&directive, &aircraft("Cessna", "172S")).verdict, Verdict::None);
}

/// Proves that serial numbers never exclude an aircraft: one that is not listed is possible.
#[test]
fn serial_numbers() {
    let applicability = "This AD applies to Piper Aircraft, Inc. Model PA-28-140 airplanes, serial numbers 28-20001 through 28-26946, certificated in any category.";
    let (_, directive) = Text { applicability, ..Text::default() }.read();
    assert_eq!(directive.applicability.scope, Scope::Certain);
    for (serial, verdict, reason) in [
        (None, Verdict::Match, None),
        (Some("28-21000"), Verdict::Match, Some(Reason::SerialListed)),
        (Some("28-7725290"), Verdict::Possible, Some(Reason::SerialNotListed)),
    ] {
        let aircraft = Aircraft { make: "Piper", model: "PA-28-140", serial, ..Aircraft::default() };
        let outcome = compare(&directive, &ResolvedAircraft::new(&aircraft));
        assert_eq!((outcome.verdict, outcome.cannot_decide.contains(&CannotDecide::SerialRange)), (verdict, true), "{serial:?}");
        assert!(reason.is_none_or(|reason| outcome.reasons.contains(&reason)), "{serial:?} {:?}", outcome.reasons);
    }
}
