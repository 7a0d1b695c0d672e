//! What answers say about values that nothing recorded has.

use std::collections::BTreeSet;

use feed::testing::{START_MS, World, call};
use operation::Method;
use schemas::views::accounts::Tier;
use serde_json::{Value, json};

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
