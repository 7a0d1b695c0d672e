//! What operations say of an `after` that no answer gave.

use std::collections::BTreeSet;

use feed::testing::{START_MS, World, call};
use operation::{Call, Method, Price, Stage};
use schemas::error_code::ErrorCode;
use serde_json::json;

use crate::registered;

/// Proves that every read refuses an `after` that no answer gave, also without a key and in the preview of an unpaid call: the first page again would look like
/// the next one, and a preview like an answer that is for sale.
#[tokio::test]
async fn every_read_refuses_a_place_of_no_answer() {
    let world = World::new().await;
    let ctx = world.context(START_MS);
    let mut previews = BTreeSet::new();
    for registration in registered() {
        for operation in registration.service.operations.iter().filter(|operation| operation.method == Method::Get) {
            if operation.input["properties"]["after"].is_null() || !operation.errors.contains(&ErrorCode::CursorInvalid) {
                continue;
            }
            let mut arguments = operation.example.clone();
            arguments["after"] = json!("xx");
            let is_sold = matches!(operation.price, Price::PerCall { .. });
            let stage = if is_sold { Stage::Preview } else { Stage::Whole };
            let name = format!("{} {}", registration.service.name, operation.name);
            assert!((operation.run)(Call { stage, ..call(&ctx) }, arguments).await.is_err(), "{name}");
            previews.extend(is_sold.then_some(name));
        }
    }
    for name in ["catalysts x402_pay", "coverage coverage_feed", "exclusions scan", "labs lab_lead_feed", "parcels x402_pay"] {
        assert!(previews.contains(name), "{name}: {previews:?}");
    }
}
