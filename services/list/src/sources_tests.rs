//! Which notices gave the values of a record.

use feed::testing::{HOUR_MS, START_MS, ask, value};
use operation::Operation;
use schemas::error_code::ErrorCode;
use schemas::views::awards::{self, Award};
use serde_json::{Value, json};

use crate::numbers_tests::{filled, put_sources};
use crate::registered;

/// The operation of each service that has it.
fn operations() -> Vec<(&'static str, &'static Operation)> {
    let operation_of = |name: &'static str, operations: &'static [Operation]| {
        operations.iter().find(|operation| operation.name == "record_sources").map(|operation| (name, operation))
    };
    registered().iter().filter_map(|registration| operation_of(registration.service.name, &registration.service.operations)).collect()
}

/// Proves that each value of an award is of the first notice that states it, in the order of the rule; that a sum and an award without decision state have
/// none; that the answer keeps to the free window; and that an unknown award is not found.
#[tokio::test]
async fn values_of_an_award() {
    let named: Vec<&str> = operations().into_iter().map(|(name, _)| name).collect();
    assert_eq!(named, ["awards", "recalls"]);
    let (_, operation) = operations()[0];
    let award = Award {
        id: "CONT_AWD_1".into(),
        recipient: "Acme".into(),
        agency: "Navy".into(),
        description: "Hulls".into(),
        amount_cents: Some(500),
        action_date: "2026-10-02".into(),
        modification: "P00001".into(),
        actions_cents: 500,
        ..Award::default()
    };
    let world = filled(&awards::TABLES, &[award.clone(), Award { id: "CONT_AWD_2".into(), ..award }]).await;
    let state = json!({
        "states": {
            "usaspending.awards": {
                "door": "usaspending.awards", "kind": "award", "awardId": "CONT_AWD_1", "recipient": "Acme", "agency": "Navy", "description": "Hulls",
                "url": "https://spending.example/1",
            },
            "usaspending.details": { "door": "usaspending.details", "kind": "award", "awardId": "CONT_AWD_1", "recipient": "Acme" },
        },
        "actions": [
            { "door": "usaspending.transactions", "kind": "action", "awardId": "CONT_AWD_1", "modification": "0", "actionDate": "2026-09-01" },
            { "door": "usaspending.transactions", "kind": "action", "awardId": "CONT_AWD_1", "modification": "P00001", "actionDate": "2026-10-02" },
        ],
        "sumCents": 500, "base": true,
    });
    put_sources(&world, &awards::TABLES, &[("award/CONT_AWD_1".to_owned(), state)]).await;
    let ctx = world.context(START_MS + 24 * HOUR_MS);
    let answer = value(&ctx, operation, json!({ "id": "CONT_AWD_1" })).await;
    let notices: Vec<Value> = answer["notices"]
        .as_array()
        .unwrap()
        .iter()
        .map(|notice| json!([notice["number"], notice["stream"], notice["url"], notice["fields"]]))
        .collect();
    assert_eq!(
        notices,
        [
            json!(["CONT_AWD_1", "usaspending.details", "", ["recipient"]]),
            json!(["CONT_AWD_1", "usaspending.awards", "https://spending.example/1", ["agency", "description"]]),
            json!(["CONT_AWD_1/P00001", "usaspending.transactions", "", ["actionDate", "modification"]]),
            json!(["CONT_AWD_1/0", "usaspending.transactions", "", []]),
        ],
        "{answer}"
    );
    assert!(answer["rule"].as_str().unwrap().contains("first notice that states it"), "{answer}");
    assert_eq!(value(&ctx, operation, json!({ "id": "CONT_AWD_2" })).await["notices"], json!([]));
    let late = world.context(START_MS + 9 * 24 * HOUR_MS);
    assert_eq!(ask(&late, operation, json!({ "id": "CONT_AWD_1" })).await.unwrap_err().code, ErrorCode::TierTooLow);
    assert_eq!(ask(&ctx, operation, json!({ "id": "CONT_AWD_3" })).await.unwrap_err().code, ErrorCode::NotFound);
}
