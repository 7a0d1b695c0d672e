//! Proves what the operations of entities ask, and what they answer if a service is silent.

use std::collections::BTreeSet;

use feed::testing::{START_MS, World, call};
use operation::Body;
use schemas::views::accounts::Tier;

use super::*;

async fn asked(service: &str, arguments: Value) -> Value {
    let world = World::new().await;
    let ctx = world.context(START_MS);
    let operation = operations_of(service, crate::registered).remove(0);
    match (operation.run)(call(&ctx), arguments).await.unwrap().body {
        Body::Json(answer) => answer,
        body => panic!("{body:?}"),
    }
}

/// Proves that a service that is not served, or that cannot answer, is a section with its reason, and that the other sections are there.
#[tokio::test]
async fn silent_services_fail_nothing() {
    let company = asked("filings", json!({ "name": "Acme Industries, Inc.", "cik": "900001" })).await;
    let topics: Vec<&str> = company["sections"].as_array().unwrap().iter().map(|section| section["topic"].as_str().unwrap()).collect();
    assert_eq!(topics, ["filings", "insider trades", "awards", "exclusions", "recalls", "catalysts", "trials", "trademarks"]);
    for section in company["sections"].as_array().unwrap() {
        assert!(section["problem"].is_string() || section["rows"].is_array(), "{section}");
    }
    let text_of = |topic: usize, field: &str| company["sections"][topic][field].as_str().unwrap_or_default();
    assert_eq!((text_of(5, "problem"), text_of(5, "foundBy")), ("this server does not serve catalysts", "the CIK"));
    assert_eq!(company["sections"][2]["arguments"]["contractor"], "ACME INDUSTRIES");
    assert!(company["sections"][2]["arguments"]["asOf"].is_null());
    let note = company["note"].as_str().unwrap();
    assert!(note.contains("the CIK 900001") && note.contains("another party of that name"), "{note}");
}

/// Proves that catalysts are asked for by the ticker that is given or known, else by the CIK, else by the name.
#[tokio::test]
async fn catalysts_are_found_by_what_is_known() {
    for (arguments, asked_with, found_by) in [
        (json!({ "name": "Calder Bio", "ticker": "CLDB", "cik": "960001" }), json!({ "ticker": "CLDB" }), "the ticker"),
        (json!({ "name": "Janssen Research & Development, LLC" }), json!({ "ticker": "JNJ" }), "the ticker"),
        (json!({ "name": "Calder Bio", "cik": " 960001 " }), json!({ "cik": "960001" }), "the CIK"),
        (json!({ "name": "Calder Bio, Inc." }), json!({ "company": "Calder Bio, Inc." }), "the whole name without its legal form"),
    ] {
        let company = asked("filings", arguments.clone()).await;
        let section = company["sections"].as_array().unwrap().iter().find(|section| section["service"] == "catalysts").unwrap();
        let mut own = section["arguments"].clone();
        own.as_object_mut().unwrap().remove("limit");
        assert_eq!((&own, &section["foundBy"]), (&asked_with, &json!(found_by)), "{arguments}");
        assert_eq!(section["filter"].get("ticker"), asked_with.get("ticker"), "{arguments}");
    }
}

/// Proves that each operation needs a name, and that those which take an identifier say that it is given in addition.
#[test]
fn names_are_needed() {
    for (service, has_identifier) in [("filings", true), ("research", false), ("awards", true)] {
        let operation = operations_of(service, crate::registered).remove(0);
        assert_eq!(operation.input["required"], json!(["name"]), "{service}");
        let words = operation.input["properties"]["name"]["description"].as_str().unwrap_or_default();
        assert_eq!(words.contains("in addition"), has_identifier, "{service}: {words}");
    }
}

/// Proves that an operation that the caller's key does not include is not asked, and that the section names the tier.
#[tokio::test]
async fn paid_operations_need_their_key() {
    let world = World::new().await;
    let ctx = world.context(START_MS);
    let leads = crate::registered().iter().find(|registration| registration.service.name == "labs").unwrap();
    let leads = leads.service.operations.iter().find(|operation| operation.name == "lab_lead_feed" && operation.has_route()).unwrap();
    let mut caller = call(&ctx);
    caller.caller.tier = Tier::Anonymous;
    let refused = sections::check_tier(&caller, leads).unwrap_err();
    assert!(refused.detail.contains("lab_lead_feed needs a key of the tier "), "{}", refused.detail);
    caller.caller.tier = Tier::FleetPlus;
    assert!(sections::check_tier(&caller, leads).is_ok());
}

/// Proves that the newest leads of an institution, late news included, are read with one call of a few rows, whatever the number of its leads.
#[tokio::test]
async fn leads_are_read_once() {
    let institution = asked("research", json!({ "name": "Northford University", "limit": 5 })).await;
    let section = institution["sections"].as_array().unwrap().iter().find(|section| section["service"] == "labs").unwrap();
    assert_eq!((&section["arguments"]["start"], &section["arguments"]["limit"]), (&json!("newest"), &json!(6)), "{section}");
    assert_eq!(section["arguments"]["includeBackfill"], true, "{section}");
}

/// Proves that each argument that another service is asked with is one that its operation takes.
#[tokio::test]
async fn arguments_are_known() {
    let cases = [
        ("filings", json!({ "name": "Acme", "ticker": "ACME" })),
        ("filings", json!({ "name": "Acme", "cik": "900001" })),
        ("research", json!({ "name": "Northford University" })),
        ("awards", json!({ "name": "Acme", "uei": "ABCDEFGHJKL1" })),
    ];
    let mut asked_of = BTreeSet::new();
    for (service, arguments) in cases {
        for section in asked(service, arguments).await["sections"].as_array().unwrap() {
            let (service, name) = (section["service"].as_str().unwrap(), section["operation"].as_str().unwrap());
            if name.is_empty() {
                continue;
            }
            let registration = crate::registered().iter().find(|registration| registration.service.name == service).unwrap();
            let operation =
                registration.service.operations.iter().find(|operation| operation.name == name && operation.has_route()).unwrap();
            for argument in section["arguments"].as_object().unwrap().keys() {
                assert!(operation.input["properties"].get(argument).is_some(), "{service} {name} {argument}");
            }
            let takes = |field: &String| registration.service.operations.iter().any(|one| one.input["properties"].get(field).is_some());
            assert!(section["filter"].as_object().unwrap().keys().all(takes), "{section}");
            assert!(operation.input["properties"].get("asOf").is_some(), "{service} {name}");
            asked_of.insert(format!("{service} {name}"));
        }
    }
    let expected = [
        "awards competitor_watch",
        "catalysts company",
        "exclusions exclusion_check",
        "filings company_watch",
        "filings insider_activity",
        "labs whats_changed_since",
        "names whats_changed_since",
        "recalls search_recalls",
        "research entity_watch",
    ];
    assert_eq!(asked_of, BTreeSet::from(expected.map(str::to_owned)));
}

/// Proves that each link of a record leads to an operation that takes its arguments, and that each service with such links has the fields in its records.
#[test]
fn links_fit_their_operations() {
    let operations: Vec<&Operation> = crate::registered()
        .iter()
        .flat_map(|registration| &registration.service.operations)
        .filter(|operation| operation.has_route())
        .collect();
    let mut linked = 0;
    for registration in crate::registered() {
        for link in registration.service.entities {
            let is_entity =
                |operation: &&&Operation| operation.name == link.kind && operation.output.pointer("/properties/sections").is_some();
            let operation = operations.iter().find(is_entity).unwrap();
            let record = registration.service.operations.iter().find(|operation| operation.name == "record").unwrap();
            let text = record.output.to_string();
            for (argument, field) in link.arguments {
                assert!(operation.input["properties"].get(argument).is_some(), "{} {argument}", link.kind);
                assert!(text.contains(&format!("\"{field}\"")), "{} {field}", registration.service.name);
                linked += 1;
            }
        }
    }
    assert!(linked >= 15, "{linked}");
}
