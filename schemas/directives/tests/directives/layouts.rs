//! The forms in which documents come: noise of printing, several directives, engines, propellers, appliances, supersession, older layouts.

use directives::{
    Aircraft, CannotDecide, Directive, Layout, Product, Publication, ReadError, Reason, Relation, ResolvedAircraft, StoredDirective,
    Verdict, clean, compare, read, record_of,
};
use schemas::views::aviation::AirworthinessDirective;

use crate::texts::Text;

fn aircraft(make: &str, model: &str) -> ResolvedAircraft {
    ResolvedAircraft::new(&Aircraft { make, model, ..Aircraft::default() })
}

/// Proves that the noise of printing changes nothing: hyphens at line ends, page breaks, NUL, entities, a wrapper, dashes after the number.
#[test]
fn noise_of_printing() {
    let applicability = "This AD applies to all Airbus SAS Model A321-111, -112, and -131 airplanes, certificated in any category.";
    let plain = Text { holder: "Airbus SAS", applicability, title: "Airworthiness Directives; Airbus SAS Airplanes", ..Text::default() };
    let (_, expected) = plain.read();
    let noisy = format!("<html><body><pre>\n{}\n</pre></body></html>", plain.printed())
        .replace("A321-111", "A321- 111")
        .replace("2026-15-05 Airbus", "2026-15-05--Airbus")
        .replace("(d) Subject", "[[Page 8664]]\n\n(d) Subject")
        .replace("certificated in", "certificated\0&#160;in")
        .replace("time-in-service", "time-\nin-service");
    let text = clean(&noisy);
    let found = read(&Publication { title: plain.title, text: &text, ..Publication::default() }).unwrap().remove(0);
    let names =
        |directive: &directives::Directive| directive.applicability.models.iter().map(|model| model.name.clone()).collect::<Vec<_>>();
    assert_eq!(names(&found), names(&expected));
    assert_eq!((found.compliance.limits.len(), found.effective.map(|(date, _)| date)), (1, expected.effective.map(|(date, _)| date)));
}

/// Proves that a document with two directives gives both, and that one without a header is refused.
#[test]
fn several_directives() {
    let first = Text::default().printed();
    let second = Text {
        number: "2026-15-06",
        holder: "Cessna Aircraft Company",
        applicability: "This AD applies to Cessna Aircraft Company Model 172S airplanes.",
        ..Text::default()
    }
    .printed();
    let body = |text: &str| text.split("airworthiness directive:\n\n").nth(1).unwrap().split("\n\nIssued").next().unwrap().to_owned();
    let text = clean(&format!("{}\n\n{}\n\nIssued on July 1, 2026.", body(&first), body(&second)));
    let found = read(&Publication { text: &text, ..Publication::default() }).unwrap();
    assert_eq!(found.iter().map(|one| one.number.as_str()).collect::<Vec<_>>(), ["2026-15-05", "2026-15-06"]);
    assert_eq!(found[0].applicability.models[0].name, "PA-28-140");
    assert_eq!(found[1].applicability.models[0].name, "172S");
    let correction = "Sec. 39.13 [Corrected]\n\nOn page 8664, in the first column, change the amendment number to 39-2.";
    assert_eq!(read(&Publication { text: correction, ..Publication::default() }), Err(ReadError::NoNumber));
}

/// Proves that superseded directives are named, with their revisions.
#[test]
fn supersession() {
    let (text, directive) = Text {
        affected: "(1) This AD replaces AD 2011-10-09, Amendment 39-16690.\n\n(2) This AD affects AD 87-20-03 R2.",
        ..Text::default()
    }
    .read();
    let affected: Vec<_> = directive.affected.iter().map(|one| (one.number.as_str(), one.relation, one.span.of(&text))).collect();
    assert_eq!(affected, [("2011-10-09", Relation::Replaces, "2011-10-09"), ("87-20-03 R2", Relation::Affects, "87-20-03 R2")]);
    // A directive of which only some actions end stays in force.
    let (_, directive) = Text {
        affected: "(1) This AD replaces the ADs in paragraphs (b)(1)(i) and (ii) of this AD.\n\n(i) AD 2019-20-09.\n\n(ii) AD 2018-05-02.\n\n\
            (2) Accomplishing this AD terminates certain requirements of AD 2016-07-10.",
        ..Text::default()
    }
    .read();
    let affected: Vec<_> = directive.affected.iter().map(|one| (one.number.as_str(), one.relation)).collect();
    assert_eq!(affected, [("2019-20-09", Relation::Replaces), ("2018-05-02", Relation::Replaces), ("2016-07-10", Relation::Affects)]);
}

/// Proves that a directive for an engine is compared with the engine, and that without one it is only possible where the text names the
/// aircraft.
#[test]
fn engines_and_propellers() {
    let (_, directive) = Text {
        holder: "Lycoming Engines",
        applicability: "This AD applies to Lycoming Engines Model O-320-E2A and O-360-A4A reciprocating engines, installed on, but not limited to, Piper Model PA-28-140 airplanes.",
        title: "Airworthiness Directives; Lycoming Engines Reciprocating Engines",
        summary: "The FAA is adopting a new airworthiness directive (AD) for Lycoming O-320-E2A engines.",
        ..Text::default()
    }
    .read();
    assert_eq!(directive.product, Product::Engine);
    let with = |engine: Option<(&str, &str)>, model: &str| {
        compare(&directive, &ResolvedAircraft::new(&Aircraft { make: "Piper", model, engine, ..Aircraft::default() }))
    };
    assert_eq!(with(Some(("Textron Lycoming", "O320-E2A")), "PA-28-140").verdict, Verdict::Match);
    assert_eq!(with(Some(("Continental Motors", "O-200-A")), "PA-28-140").verdict, Verdict::None);
    // Without its make an engine is found by its model.
    assert_eq!(with(Some(("", "O320-E2A")), "PA-28-140").verdict, Verdict::Match);
    assert_eq!(with(Some(("", "O-320")), "PA-28-140").verdict, Verdict::Possible);
    assert_eq!(with(Some(("", "O-200-A")), "PA-28-140").verdict, Verdict::None);
    let unknown = with(None, "PA-28-140");
    assert_eq!((unknown.verdict, unknown.cannot_decide.as_slice()), (Verdict::Possible, &[CannotDecide::EngineUnknown][..]));
    assert_eq!(with(None, "PA-46-350P").verdict, Verdict::None);

    let (_, propeller) = Text {
        holder: "Hartzell Propeller Inc.",
        applicability: "This AD applies to Hartzell Propeller Inc. Model HC-C2YK-1 propellers.",
        title: "Airworthiness Directives; Hartzell Propeller Inc. Propellers",
        ..Text::default()
    }
    .read();
    let with_propeller =
        |propeller| ResolvedAircraft::new(&Aircraft { make: "Piper", model: "PA-28-140", propeller, ..Aircraft::default() });
    assert_eq!(compare(&propeller, &with_propeller(Some(("Hartzell", "HC-C2YK-1")))).verdict, Verdict::Match);
    assert_eq!(compare(&propeller, &with_propeller(None)).verdict, Verdict::None);

    // The question is about the engine or the propeller itself.
    let itself = |directive: &Directive, make: &str, model: &str| {
        compare(directive, &ResolvedAircraft::new(&Aircraft { make, model, ..Aircraft::default() })).verdict
    };
    assert_eq!(itself(&directive, "Lycoming", "O-320-E2A"), Verdict::Match);
    assert_eq!(itself(&directive, "Lycoming", "TIO-540-A2B"), Verdict::None);
    assert_eq!(itself(&propeller, "Hartzell", "HC-C2YK-1"), Verdict::Match);
    assert_eq!(itself(&propeller, "McCauley", "HC-C2YK-1"), Verdict::None);
}

/// Proves that a directive for an engine which names the aircraft in its abstract alone says with which words, from the text and from its record, and that one whose
/// text names the aircraft shows the words of the text.
#[test]
fn words_of_the_abstract() {
    let summary = "This AD was prompted by reports of cracks in Lycoming O-320-E2A engines, which are installed on Piper PA-28-140 and PA 28-150 airplanes.";
    for (place, is_of_summary) in [("", true), (", installed on, but not limited to, Piper Model PA-28-140 airplanes", false)] {
        let applicability = format!("This AD applies to Lycoming Engines Model O-320-E2A reciprocating engines{place}.");
        let title = "Airworthiness Directives; Lycoming Engines Reciprocating Engines";
        let (text, directive) =
            Text { holder: "Lycoming Engines", applicability: &applicability, title, summary, ..Text::default() }.read();
        let outcome = compare(&directive, &aircraft("Piper", "Cherokee 140"));
        assert_eq!((outcome.verdict, outcome.is_span_of_summary), (Verdict::Possible, is_of_summary), "{applicability}");
        assert_eq!(outcome.span.unwrap().of(if is_of_summary { summary } else { &text }), "PA-28-140");
        let record = record_of(&directive, &text, summary);
        let stored = StoredDirective::of(&record);
        assert_eq!(compare(&stored.directive, &aircraft("Piper", "Cherokee 140")).span.unwrap().of(&stored.text), "PA-28-140");
        // A record of earlier rules has no words of the abstract.
        let earlier = StoredDirective::of(&AirworthinessDirective { summary_spans: Vec::new(), ..record });
        assert_eq!(compare(&earlier.directive, &aircraft("Piper", "Cherokee 140")).verdict, Verdict::Possible);
    }
}

/// Proves that an appliance is possible for the aircraft that the text names, and for every aircraft unless the text says that it names all of them, whether it
/// is installed, and that a text without models of its own says where it was read.
#[test]
fn appliances() {
    let title = "Airworthiness Directives; Acme Scientific Company Seat Restraint Buckle Assemblies";
    let named = Text {
        holder: "Acme Scientific Company",
        title,
        applicability: "This AD applies to Acme Scientific Company rotary buckle assemblies, part number 1111475-01, installed on, but not limited to, the following airplanes:\n\n(1) Bell Model 206B helicopters.\n\n(2) Cessna Model 208B airplanes.",
        ..Text::default()
    };
    let (_, directive) = named.read();
    assert_eq!(directive.product, Product::Appliance);
    let outcome = compare(&directive, &aircraft("Cessna", "208B"));
    assert_eq!((outcome.verdict, outcome.cannot_decide.contains(&CannotDecide::Appliance)), (Verdict::Possible, true));
    assert_eq!(outcome.reasons, [Reason::InstalledOn]);
    for (applicability, verdict, reason) in [
        (named.applicability, Verdict::Possible, Reason::NoAircraftNamed),
        ("This AD applies to certain rotary buckle assemblies.", Verdict::Possible, Reason::NoAircraftNamed),
        ("This AD applies to rotary buckle assemblies, part number 1111475-01.", Verdict::Possible, Reason::NoAircraftNamed),
        ("This AD applies to Acme Scientific Model 1111475 buckles.", Verdict::Possible, Reason::NoAircraftNamed),
        (
            "This AD applies to buckles, installed on various airplanes such as the Bell Model 206B helicopters.",
            Verdict::Possible,
            Reason::NoAircraftNamed,
        ),
        ("This AD applies to buckles, installed on any airplane, except Cessna Model 150M airplanes.", Verdict::None, Reason::Excepted),
        ("This AD applies to buckles, installed on Bell Model 206B helicopters.", Verdict::None, Reason::OtherModel),
    ] {
        let (text, directive) = Text { applicability, ..named }.read();
        let outcome = compare(&directive, &aircraft("Cessna", "150M"));
        assert_eq!((outcome.verdict, outcome.reasons.as_slice()), (verdict, &[reason][..]), "{applicability}");
        if verdict == Verdict::Possible {
            assert_eq!(outcome.cannot_decide, [CannotDecide::InstalledPart, CannotDecide::Appliance], "{applicability}");
            assert!(!outcome.span.unwrap().of(&text).is_empty(), "{applicability}");
        }
    }
}

/// Proves that serial numbers and installed parts are both named where a text limits a directive by both, for the models that it names, for others of their
/// series and where its models cannot be read, and that neither is named where the text has none of it.
#[test]
fn serial_numbers_and_installed_parts() {
    use CannotDecide::{InstalledPart, SerialRange, Unparsed};
    const SERIALS: &str = "serial numbers 28-20001 through 28-26946";
    let models = "This AD applies to Piper Aircraft, Inc. Model PA-28-140 airplanes";
    for (applicability, expected) in [
        (format!("{models}, {SERIALS}, if part number 66-1 is installed."), &[SerialRange, InstalledPart][..]),
        (format!("{models}, {SERIALS}, part number 66-1 installed on the left wing."), &[SerialRange, InstalledPart]),
        (format!("{models}, {SERIALS}, with part number 66-1 installed."), &[SerialRange, InstalledPart]),
        (format!("{models} with {SERIALS}, on which part number 66-1 is installed."), &[SerialRange, InstalledPart]),
        (format!("{models}, {SERIALS}, certificated in any category."), &[SerialRange]),
        (format!("{models} having {SERIALS}."), &[SerialRange]),
        (format!("{models} with part number 66-1 installed."), &[InstalledPart]),
        (format!("{models}, all serial numbers."), &[]),
    ] {
        let (_, directive) = Text { applicability: &applicability, ..Text::default() }.read();
        for (model, verdict) in [("PA-28-140", Verdict::Match), ("PA-28-180", Verdict::Possible)] {
            let outcome = compare(&directive, &aircraft("Piper", model));
            assert_eq!((outcome.verdict, outcome.cannot_decide.as_slice()), (verdict, expected), "{model}: {applicability}");
        }
    }
    let applicability = format!("This AD applies to Piper airplanes, {SERIALS}, if part number 66-1 is installed.");
    let outcome = compare(&Text { applicability: &applicability, ..Text::default() }.read().1, &aircraft("Piper", "PA-28-140"));
    assert_eq!((outcome.verdict, outcome.cannot_decide), (Verdict::Possible, vec![SerialRange, InstalledPart, Unparsed]));
}

/// Proves that a maker whose designations begin with its name is found under each spelling of a model, and that the text's own spelling does not matter.
#[test]
fn designations_that_begin_with_the_name_of_the_maker() {
    let holder = "ATR-GIE Avions de Transport R\u{e9}gional";
    for named in ["ATR72-212A", "ATR 72-212A", "72-212A"] {
        let applicability = format!("This AD applies to all {holder} Model {named} airplanes, certificated in any category.");
        let title = format!("Airworthiness Directives; {holder} Airplanes");
        let (_, directive) = Text { holder, title: &title, applicability: &applicability, ..Text::default() }.read();
        for (make, model) in
            [("ATR", "72-212A"), ("ATR", "ATR 72-212A"), ("ATR", "ATR-72-212A"), ("Avions de Transport Regional", "ATR72-212A")]
        {
            let resolved = aircraft(make, model);
            assert_eq!(compare(&directive, &resolved).verdict, Verdict::Match, "{make} {model} and {named}");
            let airframe = &resolved.airframe;
            assert_eq!((airframe.designation.as_str(), airframe.series.iter().any(|series| series == "ATR72")), ("ATR72212A", true));
        }
        assert_eq!(compare(&directive, &aircraft("ATR", "42-500")).verdict, Verdict::None);
    }
}

/// Proves that each of several former holders finds a directive.
#[test]
fn several_former_holders() {
    let holder = "Gulfstream Aerospace LP (Type Certificate Previously Held by Israel Aircraft Industries, Ltd., Piper Aircraft, Inc. and Stemme GmbH; Mooney)";
    let title = format!("Airworthiness Directives; {holder} Airplanes");
    let applicability = "This AD applies to all Gulfstream Aerospace LP Model Gulfstream G150 airplanes, certificated in any category.";
    let (_, directive) = Text { holder, title: &title, applicability, ..Text::default() }.read();
    for make in ["Gulfstream", "Israel Aircraft Industries", "IAI", "Piper", "Stemme", "Mooney"] {
        assert_eq!(compare(&directive, &aircraft(make, "G150")).verdict, Verdict::Match, "{make} in {:?}", directive.makes);
    }
    assert_eq!(compare(&directive, &aircraft("Cessna", "G150")).verdict, Verdict::None);
}

/// Proves that an engine without its make is possible for a directive that names its model if several makers have the model, and a match with its make.
#[test]
fn engines_of_several_makers() {
    let applicability = "This AD applies to Lycoming Engines Model IO-360-A1B and O-320-E2A reciprocating engines.";
    let title = "Airworthiness Directives; Lycoming Engines Reciprocating Engines";
    let (_, directive) = Text { holder: "Lycoming Engines", applicability, title, ..Text::default() }.read();
    let with = |make: &str, model: &str| {
        let engine = Some((make, model));
        let found =
            compare(&directive, &ResolvedAircraft::new(&Aircraft { make: "Piper", model: "PA-28-180", engine, ..Aircraft::default() }));
        (found.verdict, found.cannot_decide.contains(&CannotDecide::EngineUnknown))
    };
    assert_eq!(with("Lycoming", "IO-360-A1B"), (Verdict::Match, false));
    assert_eq!(with("", "IO-360-A1B"), (Verdict::Possible, true));
    assert_eq!(with("", "Lycoming IO-360-A1B"), (Verdict::Match, false));
    assert_eq!(with("", "O-320-E2A"), (Verdict::Match, false));
}

/// Proves that the models of several holders of one document match under each of them, and that a document about aircraft and engines is possible for the
/// engine that it names.
#[test]
fn several_holders() {
    let directive_of = |holder: &str, applicability: &str| {
        let title = format!("Airworthiness Directives; {holder}");
        Text { holder, title: &title, applicability, ..Text::default() }.read().1
    };
    let superior =
        "Superior Air Parts, Inc. (SAP) Engines and Lycoming Engines Reciprocating Engines With a Certain SAP Crankshaft Assembly";
    let text = "This AD applies to SAP Model IO-360-series and O-360-series engines and Lycoming Engines Model AEIO-360-, IO-360-, and O-360-series engines.";
    let directive = directive_of(superior, text);
    for (make, model) in
        [("Lycoming", "O-360-A4A"), ("Superior Air Parts", "IO-360-B1B"), ("Textron Lycoming", "AEIO-360-A1A"), ("Lycoming", "IO-360")]
    {
        let aircraft =
            ResolvedAircraft::new(&Aircraft { make: "Piper", model: "PA-28-180", engine: Some((make, model)), ..Aircraft::default() });
        assert_eq!(compare(&directive, &aircraft).verdict, Verdict::Match, "{make} {model}");
    }
    let continental = "Continental Aerospace Technologies, Inc., Lycoming Engines, and Textron Lycoming/Subsidiary of Textron, Inc. Reciprocating Engines";
    let directive = directive_of(continental, "This AD applies to Model O-200-A and O-320-E2A engines.");
    let gliders = directive_of(
        "DG Flugzeugbau GmbH and Schempp-Hirth Flugzeugbau GmbH Gliders",
        "This AD applies to Model DG-500MB and Nimbus-4M gliders.",
    );
    for (directive, make) in [(&directive, "CONTINENTAL"), (&directive, "LYCOMING"), (&gliders, "DG FLUGZEUGBAU"), (&gliders, "SCHEMPP")] {
        assert!(directive.makes.iter().any(|own| own == make), "{make} in {:?}", directive.makes);
    }
    let both = directive_of(
        "General Electric Company Engines, and Various Restricted Category Rotorcraft",
        "This AD applies to General Electric Company Model CT7-8A engines, and various restricted category helicopters.",
    );
    let engine = Some(("GE", "CT7-8A"));
    let aircraft = ResolvedAircraft::new(&Aircraft { make: "Sikorsky", model: "S-92A", engine, ..Aircraft::default() });
    assert_eq!(compare(&both, &aircraft).verdict, Verdict::Possible);
}

/// Proves that a whole series named with a hyphen, names with a number and the name that ends a list are read or noted.
#[test]
fn unusual_names() {
    let verdict_of = |applicability: &str, make: &str, model: &str| {
        let title = format!("Airworthiness Directives; {make} Airplanes");
        let (_, directive) = Text { holder: make, title: &title, applicability, ..Text::default() }.read();
        compare(&directive, &aircraft(make, model)).verdict
    };
    let airbus = "This AD applies to Airbus SAS Model A318, A319, A320, and A321-series airplanes, and Model A330-841 airplanes.";
    assert_eq!([verdict_of(airbus, "Airbus SAS", "A321-211"), verdict_of(airbus, "Airbus SAS", "A320-214")], [Verdict::Match; 2]);
    assert_eq!(verdict_of(airbus, "Airbus SAS", "A340-541"), Verdict::None);
    let gliders = "This AD applies to Schempp-Hirth Flugzeugbau GmbH Model Janus, Mini-Nimbus HS-7, Nimbus-2, and Standard Cirrus gliders.";
    for model in ["Janus", "Mini-Nimbus HS-7", "Nimbus-2", "Standard Cirrus"] {
        assert!(verdict_of(gliders, "Schempp-Hirth Flugzeugbau GmbH", model) >= Verdict::Possible, "{model}");
    }
    assert_eq!(verdict_of(gliders, "Schempp-Hirth Flugzeugbau GmbH", "Ventus-2a"), Verdict::None);
}

/// Proves what a title and an applicability say about the kind of product: parts whose maker has a noun in its name, products with a certain part, and
/// titles that are only the name of a maker. The titles are those of real documents.
#[test]
fn kinds_of_products() {
    let airplanes = "This AD applies to all Viking Air Limited Model DHC-2 airplanes, certificated in any category.";
    let engines = "This AD applies to Rolls-Royce Deutschland Ltd & Co KG BR700-715A1-30 model turbofan engines.";
    let installed = "This AD applies to cylinders, part number 1-2, installed on, but not limited to, Piper Model PA-28-140 airplanes.";
    for (title, applicability, expected) in [
        ("Cameron Balloons Ltd. Fuel Cylinders", installed, Product::Appliance),
        ("Cameron Balloons Ltd. Burners", installed, Product::Appliance),
        ("Boeing Model 747 Series Airplanes Equipped With General Electric CF6-80C2 Series Engines", airplanes, Product::Aircraft),
        ("Various Aircraft Equipped With Rotax Aircraft Engines 912 A Series Engine", airplanes, Product::Aircraft),
        ("McCauley Propeller Systems Governors", installed, Product::Appliance),
        ("Thommen Aircraft Equipment AG Digital Air Data Computers", installed, Product::Appliance),
        (
            "AVOX Systems Inc. (Formerly Scott Aviation) Oxygen Cylinder and Valve Assemblies; and Oxygen Valve Assemblies",
            installed,
            Product::Appliance,
        ),
        ("Kidde Aerospace & Defense", installed, Product::Appliance),
        ("Aerospace & Defense Oxygen Systems SaS (Part of Safran Aerosystems)", installed, Product::Appliance),
        ("Ipeco Pilot and Co-Pilot Seats", "This AD applies to pilot seats.", Product::Appliance),
        ("Viking Air Limited (Type Certificate Previously Held by Bombardier Inc. and de Havilland, Inc.)", airplanes, Product::Aircraft),
        ("AIRBUS", airplanes, Product::Aircraft),
        ("Various Airplanes, Helicopters, and Engines", engines, Product::Aircraft),
        (
            "Aerospace & Defense Oxygen Systems SaS",
            "This AD applies to all aircraft equipped with certain portable breathing equipment.",
            Product::Appliance,
        ),
        ("BAE Systems (Operations) Limited Airplanes; Correction", airplanes, Product::Aircraft),
        ("BAE Systems (Operations) Limited", airplanes, Product::Aircraft),
        ("MD Helicopters, LLC", airplanes, Product::Aircraft),
        ("Rolls-Royce Deutschland Ltd & Co KG", engines, Product::Engine),
        ("International Aero Engines, LLC", engines, Product::Engine),
        (
            "Superior Air Parts, Inc. (SAP) Engines and Lycoming Engines Reciprocating Engines With a Certain SAP Crankshaft Assembly",
            engines,
            Product::Engine,
        ),
    ] {
        let title = format!("Airworthiness Directives; {title}");
        let (_, directive) = Text { title: &title, applicability, ..Text::default() }.read();
        assert_eq!(directive.product, expected, "{title}");
    }
}

/// Proves that a directive for a whole kind of aircraft, which names no maker and no model, is possible for every aircraft, and one of a maker for that maker
/// only.
#[test]
fn kinds_of_aircraft() {
    for (holder, is_for_all) in [
        ("Transport and Commuter Category Airplanes", true),
        ("Various Aircraft", true),
        ("Various Helicopters", true),
        ("Certain Small Airplanes", true),
        ("Piper Aircraft, Inc.", false),
        ("General Dynamics Airplanes", false),
    ] {
        let title = format!("Airworthiness Directives; {holder}");
        let applicability = "This AD applies to all airplanes equipped with a radio altimeter, certificated in any category.";
        let (_, directive) = Text { holder, title: &title, applicability, ..Text::default() }.read();
        let outcome = compare(&directive, &aircraft("Cessna", "172S"));
        assert_eq!((directive.makes.is_empty(), outcome.verdict == Verdict::Possible), (is_for_all, is_for_all), "{holder}");
        if is_for_all {
            assert_eq!(outcome.cannot_decide, [CannotDecide::InstalledPart, CannotDecide::Unparsed], "{holder}");
        }
    }
    // A model without a maker is possible for that model of every maker.
    let holder = "Restricted Category Model CH-47D Helicopters";
    let applicability = "This AD applies to restricted category Model CH-47D helicopters, certificated in any category.";
    let (_, directive) = Text { holder, title: holder, applicability, ..Text::default() }.read();
    assert_eq!(compare(&directive, &aircraft("Boeing", "CH-47D")).verdict, Verdict::Possible);
    assert_eq!(compare(&directive, &aircraft("Cessna", "172S")).verdict, Verdict::None);
}

/// Proves that a directive of an unknown holder that names no model is possible for aircraft of every maker, unless its text names aircraft of the holder,
/// wherever in the text.
#[test]
fn aircraft_of_the_holder() {
    let far = format!("all airplanes, certificated in any category, {}with a winch of Acme installed.", "or in none, ".repeat(40));
    let far_aircraft = format!("airplanes, certificated in any category, {}that are Acme airplanes.", "or in none, ".repeat(40));
    for (applies_to, is_for_all) in [
        ("all airplanes, certificated in any category, with a winch of Acme installed.", true),
        ("all airplanes, with an Acme winch installed.", true),
        ("all airplanes equipped with a winch manufactured by Acme Aircraft, Inc.", true),
        ("all aircraft with an Acme airplane parachute.", true),
        ("all aircraft with Acme Aircraft, Inc. winches.", true),
        (far.as_str(), true),
        ("all Acme airplanes, certificated in any category.", false),
        ("all Acme Aviation, Inc. airplanes.", false),
        ("all Acme-Lift restricted category aircraft.", false),
        ("all airplanes manufactured by Acme, with a winch installed.", false),
        (far_aircraft.as_str(), false),
    ] {
        let applicability = format!("This AD applies to {applies_to}");
        let text =
            Text { holder: "Acme", title: "Airworthiness Directives; Acme Airplanes", applicability: &applicability, ..Text::default() };
        let (_, directive) = text.read();
        let verdict = compare(&directive, &aircraft("Cessna", "172S")).verdict;
        assert_eq!((directive.makes.is_empty(), verdict == Verdict::Possible), (is_for_all, is_for_all), "{applicability}");
        assert_eq!(compare(&directive, &aircraft("Acme", "A1")).verdict, Verdict::Possible, "{applicability}");
    }
}

/// Proves that the layout before lettered paragraphs is read where it names a model, and stays possible for the rest of the make.
#[test]
fn older_layout() {
    let text = "95-12-05 Piper Aircraft Corporation: Amendment 39-9254. Docket 94-CE-10-AD. Supersedes AD 91-02-03, Amendment 39-6800.\n\n\
        Applicability: Models PA-28-140 and PA-28-150 airplanes, certificated in any category.\n\n\
        Compliance: Required within 50 hours time-in-service after the effective date, and thereafter at intervals not to exceed 100 hours TIS.";
    let directive =
        read(&Publication { title: "Airworthiness Directives; Piper Aircraft Corporation Airplanes", text, ..Publication::default() })
            .unwrap()
            .remove(0);
    assert_eq!((directive.layout, directive.affected[0].number.as_str()), (Layout::Older, "91-02-03"));
    assert_eq!(compare(&directive, &aircraft("Piper", "PA-28-150")).verdict, Verdict::Match);
    let other = compare(&directive, &aircraft("Piper", "PA-46-350P"));
    assert_eq!((other.verdict, other.cannot_decide.as_slice()), (Verdict::Possible, &[CannotDecide::Unparsed][..]));
    assert_eq!(compare(&directive, &aircraft("Mooney", "M20J")).verdict, Verdict::None);
    assert_eq!(directive.compliance.limits.len(), 2);
}

/// Proves that codes of customers, exceptions and designations in parentheses are understood.
#[test]
fn special_designations() {
    let boeing = |applicability: &str| {
        Text {
            holder: "The Boeing Company",
            title: "Airworthiness Directives; The Boeing Company Airplanes",
            applicability,
            ..Text::default()
        }
        .read()
        .1
    };
    let directive =
        boeing("This AD applies to all The Boeing Company Model 737-700 and -800 series airplanes, certificated in any category.");
    for (model, verdict) in [
        ("737-8H4", Verdict::Match),
        ("737-800", Verdict::Match),
        ("737-8", Verdict::Possible),
        ("737-924ER", Verdict::Possible),
        ("777-300ER", Verdict::None),
    ] {
        assert_eq!(compare(&directive, &aircraft("Boeing", model)).verdict, verdict, "{model}");
    }
    let directive = boeing(
        "This AD applies to all The Boeing Company Model DC-9-81 (MD-81) and DC-9-82 (MD-82) airplanes, certificated in any category.",
    );
    assert_eq!(compare(&directive, &aircraft("McDonnell Douglas", "MD-82")).verdict, Verdict::Match);
    let (_, directive) = Text {
        holder: "Airbus SAS",
        title: "Airworthiness Directives; Airbus SAS Airplanes",
        applicability: "This AD applies to all Airbus SAS Model A330 series airplanes, except Model A330-841 airplanes.",
        ..Text::default()
    }
    .read();
    assert_eq!(compare(&directive, &aircraft("Airbus", "A330-841")).reasons, [Reason::Excepted]);
    assert_eq!(compare(&directive, &aircraft("Airbus", "A330-243")).verdict, Verdict::Match);
}

/// Proves that holders of today, former holders and short names of a make match.
#[test]
fn former_holders() {
    let (_, directive) = Text {
        holder: "MHI RJ Aviation ULC (Type Certificate Previously Held by Bombardier, Inc.)",
        title: "Airworthiness Directives; MHI RJ Aviation ULC (Type Certificate Previously Held by Bombardier, Inc.) Airplanes",
        applicability: "This AD applies to MHI RJ Aviation ULC Model CL-600-2B19 (Regional Jet Series 100 & 440) airplanes, certificated in any category.",
        ..Text::default()
    }
    .read();
    for (make, model) in
        [("Bombardier", "CL-600-2B19"), ("Bombardier", "CRJ200"), ("MHI RJ Aviation ULC", "CL600-2B19"), ("Canadair", "CL-600-2B19")]
    {
        assert_eq!(compare(&directive, &aircraft(make, model)).verdict, Verdict::Match, "{make} {model}");
    }
}
