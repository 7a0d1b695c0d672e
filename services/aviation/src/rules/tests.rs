//! What documents about directives become, in any order.

use super::*;
use fold::testing::{self, Folded};

/// The service in memory.
type Engine = Folded<Aviation>;

/// The fact of a document.
fn fact(data: DirectiveFact) -> Fact<DirectiveFact> {
    let key = format!("federal_register.ads/{}@{}", data.number, data.published);
    testing::fact(key, FactKind::Observed, 0, Some(data))
}

fn record(engine: &Engine, number: &str) -> AirworthinessDirective {
    engine.records()[number].clone()
}

/// All records and what is remembered, as JSON.
fn state(engine: &Engine) -> Vec<String> {
    let records = engine.records().into_values().map(|record| serde_json::to_string(&record).unwrap());
    let sources = engine.table(TABLES.state).map(|(key, value)| format!("{key:?} {}", String::from_utf8_lossy(value)));
    records.chain(sources).collect()
}

/// The text of a directive.
fn printed(number: &str, affected: &str, applicability: &str) -> String {
    directives::clean(&format!(
        "PART 39--AIRWORTHINESS DIRECTIVES\n\n{number} Piper Aircraft, Inc.: Amendment 39-23417; Docket No. FAA-2026-7223.\n\n\
         (a) Effective Date\n\nThis AD is effective August 24, 2026.\n\n(b) Affected ADs\n\n{affected}\n\n(c) Applicability\n\n{applicability}\n\n\
         (d) Subject\n\nJASC Code 5711, Wing Spar.\n\n(e) Unsafe Condition\n\nIt could lead to loss of control.\n\n(f) Compliance\n\nComply.\n\n\
         (g) Required Actions\n\nRepeat the inspection every 100 hours TIS or every 12 months, whichever occurs first.\n\n\
         (h) Related Information\n\nNone.\n\nIssued on July 20, 2026.\n"
    ))
}

const MODELS: &str = "This AD applies to all Piper Aircraft, Inc. Model PA-28-140 and PA-28-180 airplanes, certificated in any category.";

fn document(number: &str, published: &str, text: String) -> DirectiveFact {
    DirectiveFact {
        stream: "federal_register.ads".into(),
        number: number.into(),
        title: "Airworthiness Directives; Piper Aircraft, Inc. Airplanes".into(),
        action: "Final rule.".into(),
        published: published.into(),
        url: format!("https://www.federalregister.gov/documents/{published}/{number}"),
        text,
        ..DirectiveFact::default()
    }
}

/// A directive, its correction that prints it again, one that only changes words, and the directive that replaces it.
fn documents() -> Vec<DirectiveFact> {
    let corrected = MODELS.replace("PA-28-180", "PA-28-181");
    vec![
        document("2026-02415", "2026-02-10", printed("2026-03-06", "None.", MODELS)),
        DirectiveFact {
            action: "Final rule; correction.".into(),
            ..document("2026-04331", "2026-03-05", printed("2026-03-06", "None.", &corrected))
        },
        DirectiveFact {
            correction_of: "2026-02415".into(),
            ..document("C1-2026-02415", "2026-02-20", "In rule document 2026-02415, on page 8664, the word is changed.".into())
        },
        document("2026-17553", "2026-08-20", printed("2026-15-05", "This AD replaces AD 2026-03-06.", MODELS)),
        // The number of a document that was used on an earlier day.
        document("2026-02415", "2026-01-02", printed("2026-01-01", "None.", MODELS)),
    ]
}

/// Proves that a correction and its original are one directive with all documents, that a replaced directive says by which, and that the order of
/// the documents does not matter.
#[test]
fn any_order() {
    let mut engine = Engine::default();
    for document in documents() {
        engine.decide(&fact(document));
    }
    let old = record(&engine, "2026-03-06");
    assert_eq!((&*old.status, &*old.superseded_by, &*old.document_number), (SUPERSEDED, "2026-15-05", "2026-04331"));
    assert_eq!(old.documents.len(), 3);
    assert_eq!(old.models.iter().map(|model| model.name.as_str()).collect::<Vec<_>>(), ["PA-28-140", "PA-28-181"]);
    let new = record(&engine, "2026-15-05");
    assert_eq!((&*new.status, new.supersedes.as_slice(), &*new.effective_date), (CURRENT, &["2026-03-06".to_owned()][..], "2026-08-24"));
    assert_eq!((&*new.recurring, new.limits.len(), &*new.ata, !new.limits[0].quote.is_empty()), ("yes", 2, "57", true));
    // The number does not say which of its two documents is corrected, so the correction is listed with both.
    assert_eq!((record(&engine, "2026-01-01").status, record(&engine, "2026-01-01").documents.len()), (CORRECTED.to_owned(), 2));

    let expected = state(&engine);
    let all = documents();
    for first in 0..all.len() {
        for second in 0..all.len() {
            let mut order: Vec<usize> = (0..all.len()).collect();
            order.swap(0, first);
            order.swap(1, second);
            let mut engine = Engine::default();
            for at in order.iter().chain(&order) {
                engine.decide(&fact(all[*at].clone()));
            }
            assert_eq!(state(&engine), expected, "{order:?}");
        }
    }
    engine.assert_rebuilds();
}

/// Proves that a replacement which a correction takes back no longer counts, and that the record of a document read twice does not change.
#[test]
fn a_replacement_taken_back() {
    let mut engine = Engine::default();
    for document in [
        document("1", "2026-02-10", printed("2026-03-06", "None.", MODELS)),
        document("2", "2026-08-20", printed("2026-15-05", "This AD replaces AD 2026-03-06.", MODELS)),
    ] {
        engine.decide(&fact(document));
    }
    assert_eq!(record(&engine, "2026-03-06").status, SUPERSEDED);
    let correction = document("3", "2026-08-30", printed("2026-15-05", "None.", MODELS));
    let correction = DirectiveFact { action: "Final rule; correction.".into(), ..correction };
    engine.decide(&fact(correction.clone()));
    assert_eq!((record(&engine, "2026-03-06").status, record(&engine, "2026-15-05").status), (CURRENT.to_owned(), CORRECTED.to_owned()));
    let changes = engine.changes.len();
    engine.decide(&fact(correction));
    assert_eq!(engine.changes.len(), changes);
}

/// Proves that a text which is cut, or in which no models can be read, stays possible for every model of its make, and that a text without a
/// number is not decided.
#[test]
fn nothing_is_lost() {
    let mut engine = Engine::default();
    let unreadable = "This AD applies to the airplanes that the manufacturer lists.";
    engine.decide(&fact(document("1", "2026-02-10", printed("2026-03-06", "None.", unreadable))));
    engine.decide(&fact(DirectiveFact { is_cut: true, ..document("2", "2026-02-11", printed("2026-03-07", "None.", MODELS)) }));
    let asked = directives::Aircraft { make: "Piper", model: "PA-46-350P", ..directives::Aircraft::default() };
    let asked = directives::ResolvedAircraft::new(&asked);
    for number in ["2026-03-06", "2026-03-07"] {
        let record = record(&engine, number);
        let stored = directives::StoredDirective::of(&record);
        assert_eq!(directives::compare(&stored.directive, &asked).verdict, directives::Verdict::Possible, "{number}");
        assert!(directives::keys_for(&asked).iter().any(|key| record.keys.contains(key)), "{number}");
    }
    assert!(engine.try_decide(&fact(document("3", "2026-02-12", "No directive.".into()))).is_err());
    assert_eq!((last_of(&["87-20-03".to_owned(), "2011-10-09".to_owned()].into())).as_str(), "2011-10-09");
}

/// Proves that a replacement which a later version of a directive's own document takes back no longer counts, unless the other directive says so itself.
#[test]
fn a_replacement_that_the_upstream_takes_back() {
    let listed = |by: &str| DirectiveFact {
        stream: "faa_drs".into(),
        makes: vec!["Piper Aircraft, Inc.".into()],
        models: vec!["PA-28-140".into()],
        product_types: vec!["Aircraft".into()],
        superseded_by: by.into(),
        ..document("2011-10-09", "2011-05-10", String::new())
    };
    let mut engine = Engine::default();
    let mut replaced_by = |document: DirectiveFact| {
        engine.decide(&fact(document));
        record(&engine, "2011-10-09").superseded_by
    };
    assert_eq!(replaced_by(listed("2026-15-05")), "2026-15-05");
    assert_eq!(replaced_by(listed("2026-03-06")), "2026-03-06", "the later number is taken back");
    assert_eq!(replaced_by(listed("")), "");
    assert_eq!(replaced_by(document("2", "2026-08-20", printed("2026-15-05", "This AD replaces AD 2011-10-09.", MODELS))), "2026-15-05");
    assert_eq!(replaced_by(listed("2026-03-06")), "2026-15-05", "both are said, and the later one is shown");
    assert_eq!(replaced_by(listed("")), "2026-15-05", "the directive itself says so");
    assert_eq!(record(&engine, "2011-10-09").status, SUPERSEDED);
}

/// Proves that a directive of which the upstream lists makes and models is found by them, where its text prints no header or names no model, with the limits
/// of the text and the directive that replaces it; and that a text that names models is read as it is.
#[test]
fn makes_and_models_of_lists() {
    let listed = |number: &str, text: &str| DirectiveFact {
        stream: "faa_drs".into(),
        number: number.into(),
        title: "Control wheel shaft".into(),
        published: "1978-05-11".into(),
        text: text.into(),
        makes: vec!["Piper Aircraft, Inc.".into()],
        models: vec!["PA-28-140".into(), "A45 (T-34A".into(), "B-45)".into(), "D45 (T-34B)".into()],
        product_types: vec!["Aircraft".into()],
        superseded_by: "2011-10-09".into(),
        ..DirectiveFact::default()
    };
    let mut engine = Engine::default();
    engine.decide(&fact(listed(
        "78-10-03",
        "Inspect the shaft within 25 hours time in service, and thereafter at intervals not to exceed 100 hours.",
    )));
    engine.decide(&fact(listed("78-10-04", "")));
    engine.decide(&fact(listed(
        "78-10-05",
        "78-10-05 PIPER: Amendment 39-1. Applies to Models PA-23 airplanes. Compliance required as indicated.",
    )));
    let names = |number: &str| record(&engine, number).models.into_iter().map(|model| model.name).collect::<Vec<_>>();
    for number in ["78-10-03", "78-10-04"] {
        assert_eq!(names(number), ["PA-28-140", "A45", "D45"]);
        let found = record(&engine, number);
        assert_eq!(
            (&*found.product, &*found.title, &*found.status, &*found.superseded_by),
            ("aircraft", "Control wheel shaft", SUPERSEDED, "2011-10-09")
        );
        assert!(found.makes.iter().any(|make| make == "PIPER"), "{:?}", found.makes);
    }
    assert_eq!(
        (names("78-10-05"), record(&engine, "78-10-03").limits.len(), record(&engine, "78-10-04").limits.len()),
        (vec!["PA-23".to_owned()], 2, 0)
    );
}
