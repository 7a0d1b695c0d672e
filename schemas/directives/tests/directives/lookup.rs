//! Keys of directives and of aircraft: a directive that may apply is found by them.

use directives::{Aircraft, ResolvedAircraft, Verdict, compare, keys_for, keys_of};

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
    ("Piper Aircraft, Inc.", "Piper Aircraft, Inc. Airplanes", "This AD applies to the airplanes that the manufacturer lists."),
    (
        "Airbus Helicopters",
        "Airbus Helicopters",
        "This AD applies to all Airbus Helicopters Model AS355E, AS355F1, and EC135P2+ helicopters.",
    ),
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
    ("Airbus", "A319-112"),
    ("Airbus", "A319"),
    ("Boeing", "737-8H4"),
    ("Boeing", "737-800"),
    ("Boeing", "747-400"),
    ("Cessna", "172S"),
    ("Cessna", "172"),
    ("Eurocopter France", "AS 355 F1"),
    ("Airbus Helicopters", "EC135P2+"),
    ("Bombardier", "CL-600-2B19"),
    ("Canadair", "Regional Jet Series 100"),
    ("Unknown Maker", "X"),
];

/// Proves that a directive which is possible for an aircraft has a key in common with it.
#[test]
fn possible_directives_have_a_key_of_the_aircraft() {
    let mut found = 0;
    let engines = [None, Some(("Lycoming Engines", "O-320-E3D")), Some(("Lycoming", "IO-540"))];
    for (holder, title, applicability) in PARAGRAPHS {
        let title = format!("Airworthiness Directives; {title}");
        let summary = "It applies to engines of PA-28-140 airplanes.";
        let (_, directive) = Text { holder, title: &title, applicability, summary, ..Text::default() }.read();
        let keys = keys_of(&directive);
        for (make, model) in AIRCRAFT {
            for engine in engines {
                let propeller = engine.map(|_| ("Hartzell", "HC-C2YK-1"));
                let aircraft = ResolvedAircraft::new(&Aircraft { make, model, serial: Some("17280500"), engine, propeller });
                if compare(&directive, &aircraft).verdict > Verdict::None {
                    found += 1;
                    assert!(keys_for(&aircraft).iter().any(|key| keys.contains(key)), "{make} {model} and {holder}: {keys:?}");
                }
            }
        }
    }
    assert!(found > 40, "{found} pairs");
}
