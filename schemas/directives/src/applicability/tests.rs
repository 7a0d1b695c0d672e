//! Tests of reading applicability paragraphs.

use super::*;
use crate::designations::last_noun;

fn read_text(make: &str, text: &str) -> (Applicability, Vec<Unread>) {
    let tokens = Tokens::of(text, 0..text.len());
    read(&tokens, Span::new(0, text.len()), &resolve_makes(make), Product::Aircraft)
}

fn names(applicability: &Applicability, role: Role) -> Vec<&str> {
    applicability.models.iter().filter(|model| model.role == role).map(|model| model.name.as_str()).collect()
}

/// Proves the wordings in which models are named, and that other numbers are no models.
#[test]
fn wordings() {
    for (make, text, expected) in [
        (
            "Airbus",
            "This AD applies to all Airbus SAS Model A319-111, -112, and -115 airplanes, certificated in any category.",
            &["A319-111", "A319-112", "A319-115"][..],
        ),
        (
            "Airbus",
            "This AD applies to all Airbus SAS Model A318 series airplanes; A319 series airplanes; A320-211 and -212 airplanes; and A321 series airplanes.",
            &["A318", "A319", "A320-211", "A320-212", "A321"],
        ),
        (
            "Boeing",
            "The Boeing Company Model 737-600, -700, and -800 series airplanes as identified in Boeing Alert Requirements Bulletin 737-57A1338 RB, dated May 1, 2026.",
            &["737-600", "737-700", "737-800"],
        ),
        (
            "Airbus",
            "the airplanes identified in paragraphs (c)(1) through (c)(3) of this AD, certificated in any category.\n\n(1) Model A318-111 airplanes.\n\n(2) Model A319-111 and -112 airplanes, MSN 1234.\n\n(3) A320-214.",
            &["A318-111", "A319-111", "A319-112", "A320-214"],
        ),
        (
            "GE",
            "General Electric Company (GE) CF34-8C and CF34-8E model turbofan engines with high-pressure turbine disk, part number 4123T71P01 or 4123T71P02, installed.",
            &["CF34-8C", "CF34-8E"],
        ),
        (
            "Cessna",
            "Cessna Aircraft Company Models 172R and 172S airplanes, serial numbers 17280001 through 17281000, that are certificated in any category.",
            &["172R", "172S"],
        ),
        (
            "Piper",
            "Piper Aircraft, Inc. model airplanes that are certificated in any category:\n\nModel | Serial numbers\nPA-28-140 | 28-20001 through 28-26946, and 28-7125001 through 28-7725290\nPA-28-150 and PA-28-160 | 28-1 through 28-4377",
            &["PA-28-140", "PA-28-150", "PA-28-160"],
        ),
        (
            "Beech",
            "Models F33A (S/N CE-1 through CE-1000), V35B (S/N D-9000 through D-10400) and A36 (S/N E-1 and E-2) airplanes certificated in any category.",
            &["F33A", "V35B", "A36"],
        ),
        (
            "Various",
            "All aircraft listed in the table.\n\nType certificate holder | Model | Engine\nDiamond Aircraft Industries GmbH | DA20-A1 | 912 A3\nPiper Aircraft, Inc. | PA-28-140 | O-320",
            &["DA20-A1", "PA-28-140"],
        ),
        ("Airbus", "certain Airbus SAS Model Airbus SAS Model A318 series airplanes", &["A318"]),
        (
            "Continental",
            "This AD applies to Technify Motors GmbH TAE 125-02-99 and TAE 125-02-114 reciprocating engines.",
            &["TAE 125-02-99", "TAE 125-02-114"],
        ),
        ("Dassault", "Dassault Aviation Model FALCON 900EX airplanes, except Model FALCON 2000 airplanes.", &["FALCON 900EX"]),
        (
            "Bell",
            "Bell Textron Inc. Model 204B, 205A, 205A-1, and 212 helicopters with main rotor hub strap pin P/N 204-012-104-005 installed.",
            &["204B", "205A", "205A-1", "212"],
        ),
        ("Boeing", "This AD applies to Boeing Model 767-300 airplanes equipped with Pratt & Whitney PW4000 engines.", &["767-300"]),
    ] {
        let (read, _) = read_text(make, text);
        assert_eq!(names(&read, Role::Applies), expected, "{text}");
    }
}

/// Proves that exceptions are read, that an exception under a condition is one, and that equipment is no model.
#[test]
fn exceptions() {
    let (read, unread) = read_text(
        "Airbus",
        "This AD applies to all Airbus SAS Model A330 series airplanes (except Model A330-841 airplanes), and Model A340-541 airplanes.",
    );
    assert_eq!((names(&read, Role::Excepted), names(&read, Role::Applies)), (vec!["A330-841"], vec!["A330", "A340-541"]));
    assert_eq!((read.scope, unread.len()), (Scope::All, 0));
    let (read, _) = read_text(
        "Airbus",
        "This AD applies to Airbus SAS Model A320-214 airplanes, except Model A320-214 airplanes on which modification 24591 is embodied.",
    );
    assert_eq!((names(&read, Role::ExceptedIf), names(&read, Role::Excepted).len()), (vec!["A320-214"], 0));
    for (exception, is_condition) in [
        ("except those with modification 160500", true),
        ("except airplanes on which modification 24591 is embodied", true),
        ("except those having a placard", true),
        ("except Model A320-216 airplanes", false),
    ] {
        let text = format!("This AD applies to all Airbus SAS Model A320-214 and A320-216 airplanes, {exception}.");
        let (read, _) = read_text("Airbus", &text);
        assert_eq!(read.condition.is_some(), is_condition, "{exception}");
    }
}

/// Proves the scope, and that serial numbers belong to the models before them.
#[test]
fn scope_and_serials() {
    let (read, _) = read_text(
        "Piper",
        "(1) Model PA-28-140 airplanes, serial numbers 28-20001 through 28-26946; and\n\n(2) Model PA-28-150 airplanes, all serial numbers.",
    );
    assert_eq!((read.scope, read.serials.len()), (Scope::Certain, 2));
    assert_eq!((read.serials[0].models.clone(), read.serials[1].models.clone(), read.serials[1].is_all), (vec![0], vec![1], true));
    let (read, unread) = read_text("Acme", "This AD applies to certain seat belts.");
    assert_eq!((read.scope, unread[0].reason), (Scope::Unknown, UnreadReason::NoModels));
    assert_eq!(last_noun("Rolls-Royce Turbofan Engines"), Some("engines"));
}
