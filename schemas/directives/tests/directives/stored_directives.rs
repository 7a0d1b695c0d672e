//! Stored directives: comparing a directive that was read back from its record gives what the text gives, and its keys find it.

use directives::{Aircraft, ResolvedAircraft, StoredDirective, Verdict, compare, due, keys_for, keys_of, record_of};
use directives::{DoneWork, Hours, Usage};
use jiff::civil::date;

use crate::texts::Text;

/// Applicability paragraphs of many forms, with the holder and the title.
const PARAGRAPHS: &[(&str, &str, &str)] = &[
    (
        "Piper Aircraft, Inc.",
        "Piper Aircraft, Inc. Airplanes",
        "This AD applies to all Piper Aircraft, Inc. Model PA-28-140 and PA-32-300 airplanes.",
    ),
    (
        "Airbus SAS",
        "Airbus SAS Airplanes",
        "This AD applies to Airbus SAS Model A319-111, -112, and -115 airplanes, except those with modification 1.",
    ),
    (
        "The Boeing Company",
        "The Boeing Company Airplanes",
        "This AD applies to all The Boeing Company Model 737-600, -700, and -800 series airplanes.",
    ),
    (
        "Textron Aviation Inc.",
        "Textron Aviation Inc. Airplanes",
        "This AD applies to Textron Aviation Inc. Model 172R, serial numbers 17280001 through 17281000, and 172S airplanes.",
    ),
    (
        "Lycoming Engines",
        "Lycoming Engines Reciprocating Engines",
        "This AD applies to Lycoming Engines Model O-320-E3D engines, installed on Piper Aircraft, Inc. Model PA-28-140 airplanes.",
    ),
    (
        "Hartzell Propeller Inc.",
        "Hartzell Propeller Inc. Propellers",
        "This AD applies to Hartzell Propeller Inc. Model HC-C2YK-1 propellers.",
    ),
    (
        "Kidde",
        "Portable Fire Extinguishers",
        "This AD applies to portable fire extinguishers, installed on, but not limited to, Airbus SAS Model A319-111 airplanes.",
    ),
    (
        "Kidde",
        "Portable Fire Extinguishers",
        "This AD applies to portable fire extinguishers, installed on Airbus SAS Model A319-111 airplanes.",
    ),
    ("Acme", "Seat Belts", "This AD applies to seat belts, part number 1111475-01."),
    ("Various Airplanes", "Various Airplanes", "This AD applies to airplanes that are equipped with a radio altimeter."),
    ("Piper Aircraft, Inc.", "Piper Aircraft, Inc. Airplanes", "This AD applies to the airplanes that the manufacturer lists."),
    (
        "Airbus Helicopters",
        "Airbus Helicopters",
        "This AD applies to all Airbus Helicopters Model AS355E, AS355F1, and EC135P2+ helicopters.",
    ),
    (
        "Airbus Helicopters Deutschland GmbH",
        "Airbus Helicopters Deutschland GmbH Helicopters",
        "This AD applies to all Airbus Helicopters Deutschland GmbH MBB-BK 117 A-1, MBB-BK 117 A-3, and MBB-BK 117 C-1 helicopters.",
    ),
    ("Embraer S.A.", "Embraer S.A. Airplanes", "This AD applies to Embraer S.A. Model ERJ 190-100 STD and -100 LR airplanes."),
    ("Acme Winglet Group", "Acme Winglet Group Airplanes", "This AD applies to Model 172S airplanes modified by STC SA1A."),
    (
        "Bombardier, Inc.",
        "Bombardier, Inc., Airplanes",
        "This AD applies to Bombardier, Inc., Model CL-600-2B19 (Regional Jet Series 100 & 440) airplanes.",
    ),
];

/// Aircraft of many makes.
const AIRCRAFT: &[(&str, &str)] = &[
    ("Piper", "PA-28-140"),
    ("Piper", "Cherokee 140"),
    ("Piper", "PA-28"),
    ("Piper", "PA-46-350P"),
    ("Piper", "Cherokee"),
    ("Cessna", "C172S"),
    ("Airbus", "319"),
    ("Airbus", "A320 family"),
    ("Airbus", "A319-112"),
    ("Airbus", "A319"),
    ("Boeing", "737-8H4"),
    ("Boeing", "737-800"),
    ("Boeing", "747-400"),
    ("Cessna", "172S"),
    ("Cessna", "172"),
    ("Eurocopter France", "AS 355 F1"),
    ("Airbus Helicopters", "EC135P2+"),
    ("Airbus Helicopters", "MBB-BK 117 A-1"),
    ("Eurocopter", "117 C-1"),
    ("Embraer", "190-100 STD"),
    ("Bombardier", "CL-600-2B19"),
    ("Canadair", "Regional Jet Series 100"),
    ("Unknown Maker", "X"),
];

/// Proves that the stored form loses nothing that a comparison or a due date needs, and that a directive which is possible for an aircraft has a
/// key in common with it.
#[test]
fn stored_directives_compare_like_their_texts() {
    let (mut found, usage) = (0, Usage { hours: Hours::new(1_262.5), cycles: Some(7), date: date(2026, 11, 20) });
    let done = DoneWork { date: Some(date(2026, 3, 10)), hours: Hours::new(1_200.0), ..DoneWork::default() };
    let engines = [None, Some(("Lycoming Engines", "O-320-E3D")), Some(("Lycoming", "IO-540")), Some(("", "O-320"))];
    for (holder, title, applicability) in PARAGRAPHS {
        let title = format!("Airworthiness Directives; {title}");
        let actions = "Within 50 hours TIS after the effective date, inspect the spar. Repeat the inspection thereafter at intervals not to exceed 100 \
            hours TIS or 12 calendar months, whichever occurs first. Replacing the spar is terminating action for the inspections.";
        let summary = "It applies to engines of PA-28-140 airplanes.";
        let (text, directive) = Text { holder, title: &title, applicability, actions, summary, ..Text::default() }.read();
        let record = record_of(&directive, &text, summary);
        let stored = StoredDirective::of(&record);
        assert_eq!(record_of(&stored.directive, &stored.text, &stored.text).models, record.models);
        assert_eq!(due(&stored.directive, Some(&done), &usage, false), due(&directive, Some(&done), &usage, false));
        for (make, model) in AIRCRAFT {
            for engine in engines {
                let propeller = engine.map(|_| ("Hartzell", "HC-C2YK-1"));
                let aircraft = ResolvedAircraft::new(&Aircraft { make, model, serial: Some("17280500"), engine, propeller });
                let (of_text, of_record) = (compare(&directive, &aircraft), compare(&stored.directive, &aircraft));
                let shown = |span: Option<directives::Span>, text: &str| span.map(|span| span.of(text).to_owned());
                let name = format!("{make} {model} and {holder}");
                assert_eq!((of_record.verdict, &of_record.reasons), (of_text.verdict, &of_text.reasons), "{name}");
                assert_eq!(of_record.cannot_decide, of_text.cannot_decide, "{name}");
                if of_text.verdict > Verdict::None {
                    found += 1;
                    let keys = keys_of(&directive);
                    assert!(keys_for(&aircraft).iter().any(|key| keys.contains(key)), "{name}: {keys:?}");
                    let (whole, kept) = (
                        shown(of_text.span, if of_text.is_span_of_summary { summary } else { &text }),
                        shown(of_record.span, &stored.text),
                    );
                    assert!(
                        whole.as_deref().unwrap_or_default().starts_with(kept.as_deref().unwrap_or_default()),
                        "{name}: {whole:?} {kept:?}"
                    );
                }
            }
        }
    }
    assert!(found > 40, "{found} pairs");
}
