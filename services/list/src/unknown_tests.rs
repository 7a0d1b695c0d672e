//! What answers say about values that nothing recorded has.

use std::collections::BTreeSet;

use bytes::Bytes;
use feed::testing::{HOUR_MS, START_MS, World, call};
use names::record::{TABLES as TRADEMARKS, Trademark};
use operation::Method;
use research::record::{Funding, TABLES as RESEARCH};
use schemas::key;
use schemas::suppression::{PERSON, SuppressionRow};
use schemas::tables::Write;
use schemas::views::accounts::{SUPPRESSIONS, Tier, VIEW as ACCOUNTS};
use serde_json::{Value, json};

use crate::numbers_tests::filled;
use crate::registered;

/// For each field, a value that nothing has.
const UNKNOWN: [(&str, &str); 16] = [
    ("activity", "Q99"),
    ("agency", "Qqqqx"),
    ("cik", "999999"),
    ("contractor", "Qqqqx"),
    ("drug", "Qqqqx"),
    ("ic", "QQ"),
    ("institution", "Qqqqx"),
    ("item", "shop.example/999"),
    ("naics", "99"),
    ("org", "Qqqqx"),
    ("pi", "Qqqqx"),
    ("recipient", "Qqqqx"),
    ("sponsor", "Qqqqx"),
    ("ticker", "QQQQX"),
    ("trial", "NCT99999999"),
    ("value", "Qqqqx"),
];

/// Proves that every read of every service that takes a value answers one that nothing has with a note, or an error, that names it.
#[tokio::test]
async fn every_operation_names_unknown_values() {
    let world = World::new().await;
    let ctx = world.context(START_MS);
    let mut fields = BTreeSet::new();
    for registration in registered() {
        for operation in registration.service.operations.iter().filter(|operation| operation.method == Method::Get) {
            let required = operation.input["required"].as_array().cloned().unwrap_or_default();
            // Values of closed lists are refused by the schema, and an unknown niche before anything else.
            let schema = |field: &str| &operation.input["properties"][field];
            let is_open = |field: &str| schema(field).is_object() && schema(field)["enum"].is_null() && !required.contains(&json!("niche"));
            for (field, unknown) in UNKNOWN.into_iter().filter(|(field, _)| is_open(field)) {
                // Other fields of the example may be unknown as well.
                let mut arguments = operation.example.clone();
                arguments.as_object_mut().unwrap().retain(|name, _| required.contains(&json!(name)));
                arguments[field] = json!(unknown);
                let mut paid = call(&ctx);
                (paid.caller.tier, paid.caller.key_id) = (Tier::FleetPlus, "key_test".to_owned());
                let said = match (operation.run)(paid, arguments).await.map(|answer| answer.body) {
                    Ok(body) => body.into_value().unwrap()["note"].as_str().unwrap_or_default().to_owned(),
                    Err(problem) => problem.detail,
                };
                let name = format!("{} {} {field}", registration.service.name, operation.name);
                assert!(said.to_lowercase().contains(&unknown.to_lowercase()), "{name}: {said:?}");
                fields.insert(field);
            }
        }
    }
    assert_eq!(fields.len(), UNKNOWN.len(), "{fields:?}");
}

/// Proves that a note proposes no name that is hidden on request, whichever field of a filter finds it.
#[tokio::test]
async fn no_note_proposes_a_hidden_name() {
    let name = || "Ann Oakes".to_owned();
    let funding_of = |id: &str, kind: &str| Funding { id: id.into(), kind: kind.into(), ..Funding::default() };
    let trial = Funding { sponsor: name(), ..funding_of("trial/NCT00000001", "trial") };
    let grant = Funding { pi: name(), investigators: vec![name()], ..funding_of("grant/11223344", "grant") };
    let world = filled(&RESEARCH, &[trial, grant]).await;
    let ctx = world.context(START_MS + 24 * HOUR_MS);
    let research = registered().iter().find(|registration| registration.service.name == "research").unwrap();
    let operation = research.service.operations.iter().find(|operation| operation.name == "whats_changed_since").unwrap();
    let note = async |field: &str| {
        let (mut paid, mut arguments) = (call(&ctx), json!({}));
        (paid.caller.tier, paid.caller.key_id) = (Tier::FleetPlus, "key_test".to_owned());
        arguments[field] = json!("Ann Oaks");
        let answer = (operation.run)(paid, arguments).await.unwrap();
        answer.body.into_value().unwrap()["note"].as_str().unwrap_or_default().to_owned()
    };
    for field in ["institution", "sponsor", "pi"] {
        assert!(note(field).await.contains("the nearest known are \"ann oakes\""), "{field}");
    }
    let accounts = ctx.store.live(&ACCOUNTS).await.unwrap();
    let mut checkpoint = accounts.checkpoint().await.unwrap();
    checkpoint.seq = checkpoint.seq.next();
    let row = Bytes::from(serde_json::to_vec(&SuppressionRow::default()).unwrap());
    let hidden = Write::put(&SUPPRESSIONS, key![PERSON.name, PERSON.normalize(&name()).unwrap()], row);
    accounts.commit(vec![hidden], &checkpoint).await.unwrap();
    for field in ["institution", "sponsor", "pi"] {
        let said = note(field).await;
        assert!(said.contains("\"ann oaks\"") && !said.contains("oakes"), "{field}: {said}");
    }
}

/// Proves that a page of a filtered feed without changes says so if it leaves out late news that matches, wherever it starts, and that other pages do not.
#[tokio::test]
async fn late_news_is_noted() {
    let trademark_of = |serial: &str, owner: &str, filing_date: &str| Trademark {
        id: serial.into(),
        serial: serial.into(),
        owner: owner.into(),
        status: "live".into(),
        filing_date: filing_date.into(),
        ..Trademark::default()
    };
    let marks = [trademark_of("76000001", "Amberline LLC", "2001-01-31"), trademark_of("97000001", "Hill Foods LLC", "2026-10-01")];
    let world = filled(&TRADEMARKS, &marks).await;
    let ctx = world.context(START_MS + 24 * HOUR_MS);
    let names = registered().iter().find(|registration| registration.service.name == "names").unwrap();
    let feed = names.service.operations.iter().find(|operation| operation.name == "whats_changed_since").unwrap();
    for (arguments, rows, is_noted) in [
        (json!({ "start": "earliest", "owner": "amberline" }), 0, true),
        (json!({ "start": "newest", "owner": "amberline" }), 0, true),
        (json!({ "start": "latest", "owner": "amberline" }), 0, false),
        (json!({ "start": "earliest", "owner": "amberline", "status": "dead" }), 0, false),
        (json!({ "start": "earliest", "owner": "amberline", "includeBackfill": true }), 1, false),
        (json!({ "start": "earliest", "owner": "llc" }), 1, false),
    ] {
        let mut paid = call(&ctx);
        (paid.caller.tier, paid.caller.key_id) = (Tier::FleetPlus, "key_test".to_owned());
        let page = (feed.run)(paid, arguments.clone()).await.unwrap().body.into_value().unwrap();
        assert_eq!(page["changes"].as_array().unwrap().len(), rows, "{arguments}: {page}");
        assert_eq!(page["note"].as_str().unwrap_or_default().contains("`includeBackfill=true`"), is_noted, "{arguments}: {page}");
    }
}

/// Proves that the feed of a service notes a filter whose fields exclude each other.
#[tokio::test]
async fn feeds_note_contradictions() {
    let world = World::new().await;
    let ctx = world.context(START_MS);
    for (service, arguments, expected) in [
        ("parcels", json!({ "county": "allegheny-pa", "township": "West Chicago" }), "`township` 77 is of cook-il"),
        ("parcels", json!({ "pin": "16012160690000", "county": "allegheny-pa" }), "`pin` 16012160690000 is of cook-il"),
        ("names", json!({ "name": "Turcool", "status": "dead" }), "no mark can match"),
        ("exclusions", json!({ "kind": "candidate", "agency": "EPA" }), "no record can match"),
        ("catalysts", json!({ "kind": "pdufa", "phase": "PHASE3" }), "no event can match"),
    ] {
        let registration = registered().iter().find(|registration| registration.service.name == service).unwrap();
        let feed = registration.service.operations.iter().find(|operation| operation.name == "whats_changed_since").unwrap();
        let mut paid = call(&ctx);
        (paid.caller.tier, paid.caller.key_id) = (Tier::FleetPlus, "key_test".to_owned());
        let page = (feed.run)(paid, arguments.clone()).await.unwrap().body.into_value().unwrap();
        assert!(page["note"].as_str().unwrap_or_default().contains(expected), "{service} {arguments}: {page}");
    }
}

/// Proves that a filter whose fields exclude each other says so, and that others do not.
#[test]
fn contradictions() {
    use feed::filter::Filter;

    fn of<F: Filter>(filter: Value) -> bool {
        serde_json::from_value::<F>(filter).unwrap().contradiction().is_some()
    }
    for (filter, excluded) in [
        (json!({ "pi": "ada", "phase": "PHASE1" }), true),
        (json!({ "minAmount": 5, "sponsor": "acme" }), true),
        (json!({ "ic": "NCI", "pi": "ada", "institution": "rice" }), false),
        (json!({ "sponsor": "acme", "phase": "PHASE1" }), false),
    ] {
        assert_eq!(of::<research::operations::filter::Filter>(filter.clone()), excluded, "{filter}");
    }
    for (filter, excluded) in [
        (json!({ "form": ["10-K"], "item": "5.02" }), true),
        (json!({ "form": ["10-K", "8-K/A"], "item": "5.02" }), false),
        (json!({ "item": "5.02" }), false),
    ] {
        assert_eq!(of::<filings::operations::filter::Filter>(filter.clone()), excluded, "{filter}");
    }
}
