//! The events of a company of catalysts, found by its name and by its number.

use std::collections::BTreeMap;

use catalysts::record::{Catalyst, TABLES, Window};
use catalysts::rules::CatalystsRules;
use catalysts::rules::companies::{Listed, Named, cik_key, name_key};
use feed::testing::{HOUR_MS, START_MS, World, call};
use fold::records::Rules as _;
use operation::problem::Problem;
use operation::{Answer, Operation};
use schemas::clock::rfc3339;
use schemas::error_code::ErrorCode;
use schemas::position::Seq;
use schemas::views::accounts::Tier;
use serde_json::{Value, json};
use view_store::ViewStore as _;

use crate::numbers_tests::{filled, put_sources};
use crate::registered;

/// The events: id, name of the company, CIK, and first day.
const EVENTS: [(&str, &str, &str, &str); 5] = [
    ("ctgov:NCT00000001", "Calder Bio, Inc.", "0000960001", "2026-11-20"),
    ("pdufa:0000960001:a", "CALDER BIOSCIENCE INC", "0000960001", "2027-02-01"),
    ("ctgov:NCT00000002", "Ostra Pharma GmbH", "", "2026-11-25"),
    ("pdufa:0000960004:b", "Ivory Therapeutics", "0000960004", "2026-12-24"),
    ("ctgov:NCT00000003", "Calder Biologics", "", "2026-11-21"),
];

/// An event that is expected on a day.
fn event((id, company, cik, day): (&str, &str, &str, &str)) -> Catalyst {
    Catalyst {
        id: id.into(),
        kind: if id.starts_with("pdufa") { "pdufa" } else { "readout" }.into(),
        company: company.into(),
        cik: cik.into(),
        window: Window { from: day.into(), to: day.into() },
        status: "upcoming".into(),
        ..Catalyst::default()
    }
}

/// A row of what is known under a name.
fn named(name: &str, named: &Named) -> (String, Value) {
    (name_key(name).unwrap(), json!(named))
}

/// A world with the events, and with what the decisions remember of their companies: the SEC's list has the first one.
async fn world() -> World {
    let world = filled(&TABLES, &EVENTS.map(event)).await;
    let ids = |id: &str| [id.to_owned()].into();
    let tickers = vec!["CLDB".to_owned()];
    let of_list = Listed { title: "CALDER BIO INC".into(), tickers: tickers.clone(), records: ids(EVENTS[1].0) };
    let rows = [
        named("Calder Bio", &Named { listed: [("0000960001".to_owned(), tickers)].into(), records: ids(EVENTS[0].0) }),
        named("Ostra Pharma", &Named { records: ids(EVENTS[2].0), ..Named::default() }),
        named("Calder Biologics", &Named { records: ids(EVENTS[4].0), ..Named::default() }),
        (cik_key("0000960001"), json!(of_list)),
        (cik_key("0000960004"), json!(Listed { records: ids(EVENTS[3].0), ..Listed::default() })),
    ];
    put_sources(&world, &TABLES, &rows).await;
    world
}

fn operation(name: &str) -> &'static Operation {
    let catalysts = registered().iter().find(|registration| registration.service.name == "catalysts").unwrap();
    catalysts.service.operations.iter().find(|operation| operation.name == name).unwrap()
}

/// Asks an operation as a caller of a tier.
async fn ask(world: &World, name: &str, tier: Tier, arguments: Value) -> Result<Answer, Problem> {
    let ctx = world.context(START_MS + 24 * HOUR_MS);
    let mut asked = call(&ctx);
    (asked.caller.tier, asked.caller.key_id) = (tier, if tier == Tier::Anonymous { String::new() } else { "key_test".to_owned() });
    (operation(name).run)(asked, arguments).await
}

/// Asks an operation; returns the answer and the ids of its events.
async fn found(world: &World, name: &str, tier: Tier, arguments: Value) -> (Value, Vec<String>) {
    let answer = ask(world, name, tier, arguments).await.unwrap().body.into_value().unwrap();
    let ids = answer["catalysts"].as_array().unwrap().iter().map(|event| event["id"].as_str().unwrap().to_owned()).collect();
    (answer, ids)
}

/// Proves that the events of a company are found by its name in any form and by its number, over the route and the tool, also if it has no ticker or is in no
/// list; that a name which is only similar finds nothing, and that a note names the nearest ones; and that pages join.
#[tokio::test]
async fn names_and_numbers_find_a_company() {
    let world = world().await;
    let calder = &[EVENTS[0].0, EVENTS[1].0][..];
    for (arguments, expected, note) in [
        (json!({ "company": "Calder Bio" }), calder, ""),
        (json!({ "company": "CALDER BIO, INC." }), calder, ""),
        (json!({ "company": " calder  bio inc " }), calder, ""),
        (json!({ "cik": "960001" }), calder, ""),
        (json!({ "cik": "0000960001" }), calder, ""),
        (json!({ "company": "ostra pharma gmbh" }), &[EVENTS[2].0], ""),
        (json!({ "company": "Ostra Pharma" }), &[EVENTS[2].0], ""),
        (json!({ "cik": "960004" }), &[EVENTS[3].0], ""),
        (json!({ "company": "Calder Biologics" }), &[EVENTS[4].0], ""),
        (json!({ "company": "Ivory Therapeutics, Inc." }), &[EVENTS[3].0], ""),
        (json!({ "company": "CALDER BIOSCIENCE" }), &[EVENTS[1].0], ""),
        (
            json!({ "company": "Calder" }),
            &[],
            "nothing recorded has the company \"Calder\", the nearest known are \"calder bio\", \"calder biologics\", \"calder bioscience\"",
        ),
        (
            json!({ "company": "Calder Bios GmbH" }),
            &[],
            "the company \"Calder Bios GmbH\", the nearest known are \"calder bioscience\", \"calder bio\", \"calder biologics\"",
        ),
        (json!({ "cik": "7" }), &[], "nothing recorded has the cik \"0000000007\""),
    ] {
        for name in ["company", "catalyst_for_company"] {
            let (answer, ids) = found(&world, name, Tier::FleetPlus, arguments.clone()).await;
            assert_eq!(
                (ids, answer["total"].as_u64()),
                (expected.iter().map(|id| (*id).to_owned()).collect(), Some(expected.len() as u64)),
                "{name} {arguments}"
            );
            let noted = answer["note"].as_str().unwrap_or_default();
            assert!(noted.contains(note) && (!note.is_empty() || !noted.contains("nothing recorded")), "{name} {arguments}: {noted}");
        }
    }
    let (first, ids) = found(&world, "company", Tier::FleetPlus, json!({ "company": "Calder Bio", "limit": 1 })).await;
    assert_eq!(ids, calder[..1]);
    let next = json!({ "company": "Calder Bio", "limit": 1, "after": first["next"] });
    let (last, ids) = found(&world, "company", Tier::FleetPlus, next).await;
    assert_eq!((ids, &last["next"]), (vec![calder[1].to_owned()], &Value::Null));
    let of_another = json!({ "cik": "960001", "limit": 1, "after": first["next"] });
    assert_eq!(ask(&world, "company", Tier::FleetPlus, of_another).await.unwrap_err().code, ErrorCode::CursorInvalid);
}

/// Proves that a caller without a paid key sees the events of a company in the next 30 days only, also as of an earlier time, and does not learn whether it has
/// others; and that a company is named by one argument, in its form.
#[tokio::test]
async fn companies_are_capped_and_named_once() {
    let world = world().await;
    for (arguments, expected) in [
        (json!({ "company": "Calder Bio" }), &[EVENTS[0].0][..]),
        (json!({ "cik": "960001", "asOf": "2026-11-01" }), &[EVENTS[0].0]),
        (json!({ "cik": "960004" }), &[]),
        (json!({ "cik": "7" }), &[]),
        (json!({ "company": "Calder Bios" }), &[]),
    ] {
        let (answer, ids) = found(&world, "company", Tier::Anonymous, arguments.clone()).await;
        assert_eq!(
            (&ids, answer["total"].as_u64()),
            (&expected.iter().map(|id| (*id).to_owned()).collect(), Some(expected.len() as u64)),
            "{arguments}"
        );
        let note = answer["note"].as_str().unwrap_or_default();
        assert_eq!(note.contains("this tier is shown nothing with the c"), expected.is_empty(), "{answer}");
        assert!(!note.contains("nearest"), "{answer}");
    }
    for (arguments, parameter, words) in [
        (json!({}), "ticker", "ticker is missing: give `ticker`, `company` or `cik`"),
        (json!({ "ticker": "CLDB", "cik": "960001" }), "ticker", "give either"),
        (json!({ "ticker": "CLDB", "company": "Calder Bio" }), "ticker", "give either"),
        (json!({ "company": "Calder Bio", "cik": "960001" }), "company", "give either"),
        (json!({ "company": " -- " }), "company", "neither letters nor digits"),
        (json!({ "cik": "CLDB" }), "cik", "not a number of up to 10 digits"),
        (json!({ "cik": "12345678901" }), "cik", "not a number of up to 10 digits"),
    ] {
        for name in ["company", "catalyst_for_company"] {
            let problem = ask(&world, name, Tier::FleetPlus, arguments.clone()).await.unwrap_err();
            assert_eq!((problem.code, problem.parameter.as_str()), (ErrorCode::ParameterInvalid, parameter), "{name} {arguments}");
            assert!(problem.detail.contains(words), "{name} {arguments}: {}", problem.detail);
        }
    }
}

/// A world in which the trial of one company went to another, and a company of the SEC's list took the name of a third. `is_whole`: a version that indexes
/// companies wrote all of it.
async fn renamed(is_whole: bool) -> World {
    const CIK: &str = "0000960001";
    const DAY: &str = "2026-12-20";
    let trial = |number: &str, company: &str, cik: &str| event((format!("ctgov:NCT0000000{number}").as_str(), company, cik, DAY));
    let records = [
        trial("1", "Calder Bio, Inc.", ""),
        trial("2", "Ostra Pharma GmbH", ""),
        trial("2", "Dovetail Bio", ""),
        event(("pdufa:0000960001:a", "HARTWELL LABS INC", CIK, DAY)),
        trial("1", "Calder Bio, Inc.", CIK),
    ];
    let world = filled(&TABLES, &records).await;
    let row = |ids: &[&str], ciks: &[&str]| Named {
        records: ids.iter().map(|id| (*id).to_owned()).collect(),
        listed: ciks.iter().map(|cik| ((*cik).to_owned(), vec!["CLDB".to_owned()])).collect(),
    };
    let listed = |title: &str| {
        let (tickers, records) = (vec!["CLDB".to_owned()], [records[3].id.clone()].into());
        (cik_key(CIK), json!(Listed { title: title.into(), tickers, records }))
    };
    let (first, second) = (records[0].id.as_str(), records[1].id.as_str());
    let rows = [
        (1, named("Calder Bio", &row(&[first], &[]))),
        (2, named("Ostra Pharma", &row(&[second], &[]))),
        (3, (name_key("Ostra Pharma").unwrap(), Value::Null)),
        (3, named("Dovetail Bio", &row(&[second], &[]))),
        (4, named("Hartwell Labs", &row(&[], &[CIK]))),
        (4, listed("HARTWELL LABS INC")),
        (5, (name_key("Hartwell Labs").unwrap(), Value::Null)),
        (5, named("Calder Bio", &row(&[first], &[CIK]))),
        (5, listed("CALDER BIO INC")),
    ];
    let view = world.store.live(TABLES.view).await.unwrap();
    let mut checkpoint = view.checkpoint().await.unwrap();
    checkpoint.records = is_whole.then_some(3);
    let (mut entries, mut current) = (Vec::new(), BTreeMap::new());
    for (seq, (key, value)) in rows {
        if is_whole {
            let text = if value.is_null() { String::new() } else { value.to_string() };
            entries.extend(CatalystsRules::index(&key, &text, Seq(seq)));
        }
        current.insert(key, value);
    }
    view.commit(entries, &checkpoint).await.unwrap();
    // A row that was deleted is none.
    current.retain(|_, value| !value.is_null());
    put_sources(&world, &TABLES, &current.into_iter().collect::<Vec<_>>()).await;
    world
}

/// Proves that the events of a company as of an earlier time are those of the name and the number that it had then, also if a trial went to another company or
/// the SEC's list renamed it since.
#[tokio::test]
async fn companies_as_of_an_earlier_time() {
    let world = renamed(true).await;
    let (calder, ostra, decision) = ("ctgov:NCT00000001", "ctgov:NCT00000002", "pdufa:0000960001:a");
    for (seq, arguments, expected) in [
        (2, json!({ "company": "Ostra Pharma" }), &[ostra][..]),
        (5, json!({ "company": "Ostra Pharma" }), &[]),
        (2, json!({ "company": "Dovetail Bio" }), &[]),
        (3, json!({ "company": "Dovetail Bio" }), &[ostra]),
        (4, json!({ "company": "Calder Bio" }), &[calder]),
        (5, json!({ "company": "Calder Bio" }), &[calder, decision]),
        (3, json!({ "company": "Hartwell Labs" }), &[]),
        (4, json!({ "company": "Hartwell Labs" }), &[decision]),
        (4, json!({ "cik": "960001" }), &[decision]),
        (5, json!({ "cik": "960001" }), &[calder, decision]),
    ] {
        let mut asked = arguments;
        asked["asOf"] = json!(rfc3339(START_MS + (seq - 1) * HOUR_MS + HOUR_MS / 2));
        let (answer, ids) = found(&world, "company", Tier::FleetPlus, asked.clone()).await;
        assert_eq!(ids, expected, "{asked}");
        assert!(!answer["note"].as_str().unwrap_or_default().contains("names and numbers that they have now"), "{asked}: {answer}");
    }
}

/// Proves that an answer as of an earlier time says so if an older version wrote a part of the data, so that earlier names are not known; and that an answer of
/// now does not.
#[tokio::test]
async fn unknown_earlier_names_are_noted() {
    let world = renamed(false).await;
    for (as_of, is_noted) in [(Some(rfc3339(START_MS + HOUR_MS)), true), (None, false)] {
        let (answer, ids) = found(&world, "company", Tier::FleetPlus, json!({ "company": "Ostra Pharma", "asOf": as_of })).await;
        assert!(ids.is_empty(), "{ids:?}");
        assert_eq!(answer["note"].as_str().unwrap_or_default().contains("names and numbers that they have now"), is_noted, "{answer}");
    }
}

/// Proves that the names which a note proposes are those that find something at the position of the answer.
#[tokio::test]
async fn proposed_names_find_something() {
    let world = renamed(true).await;
    for (seq, company, proposed) in [
        (2, "Ostra Pharmas", ", the nearest known are \"ostra pharma\""),
        (5, "Ostra Pharmas", ""),
        (2, "Dovetail Bios", ", the nearest known are \"calder bio\""),
        (3, "Dovetail Bios", ", the nearest known are \"dovetail bio\", \"calder bio\""),
    ] {
        let as_of = rfc3339(START_MS + (seq - 1) * HOUR_MS + HOUR_MS / 2);
        let (answer, _) = found(&world, "company", Tier::FleetPlus, json!({ "company": company, "asOf": as_of })).await;
        let note = answer["note"].as_str().unwrap_or_default();
        let expected = format!("nothing recorded has the company {company:?}{proposed}");
        assert!(note.split("; ").any(|part| part == expected), "{seq}: {note}");
    }
}

/// Proves that an answer of now about an unknown name says so if an older version wrote a part of the data, so that a company in no list is not found by its
/// name; and that it does not else.
#[tokio::test]
async fn unknown_filers_are_noted() {
    for is_whole in [false, true] {
        let (answer, _) = found(&renamed(is_whole).await, "company", Tier::FleetPlus, json!({ "company": "Nobody" })).await;
        assert_eq!(answer["note"].as_str().unwrap_or_default().contains("are found by its CIK only"), !is_whole, "{answer}");
    }
}
