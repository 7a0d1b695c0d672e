//! `{prefix}/limits.json`: the limits of a service for programs. The numbers of tiers are those of the settings; bounds of arguments follow from the
//! definitions of the operations.

use operation::context::{ServiceSettings, Settings};
use operation::tiers::{
    CALLS_WITH_PAYMENT, FREE_KEY_UNUSED_DAYS_MAX, KEY_OVERLAP_HOURS_MAX, KEYS_EVER_MAX, KEYS_PER_ACCOUNT_MAX, MINTS_PER_ADDRESS_MAX,
    NEW_KEYS_PER_DAY_MAX, PAYMENTS_PER_ADDRESS, PAYMENTS_PER_PAYER, REPEATS, UNPAID, Window,
};
use operation::{Operation, Service};
use schemas::views::accounts::Tier;
use serde_json::{Map, Value, json};

use crate::wire::IDEMPOTENCY_KEY_CHARS_MAX;

/// The keywords of a schema that bound a value.
const BOUNDS: [&str; 7] = ["minimum", "maximum", "minLength", "maxLength", "minItems", "maxItems", "default"];

/// The document.
#[must_use]
pub fn document(service: &Service, own: &ServiceSettings, settings: &Settings) -> Value {
    let tiers: Map<String, Value> = Tier::ALL.into_iter().map(|tier| (tier.as_str().to_owned(), of_tier(tier, settings))).collect();
    let operations: Vec<Value> = service.operations.iter().map(|operation| of_operation(operation, own)).collect();
    json!({
        "service": service.name,
        "reference": format!("{}/docs", own.base_url),
        "tiers": tiers,
        "keys": {
            "freeKeysPerAddressAndDay": MINTS_PER_ADDRESS_MAX,
            "freeKeyDaysWithoutUse": FREE_KEY_UNUSED_DAYS_MAX,
            "workingKeysPerAccount": KEYS_PER_ACCOUNT_MAX,
            "newKeysPerAccountAndDay": NEW_KEYS_PER_DAY_MAX,
            "keysOfAnAccountEver": KEYS_EVER_MAX,
            "hoursOfARotatedKey": KEY_OVERLAP_HOURS_MAX,
            "paidKeys": {
                "from": "operator",
                "contact": (!settings.keys_contact.is_empty()).then_some(&settings.keys_contact),
            },
        },
        "payments": {
            "unpaidCallsPerAddress": window(UNPAID),
            "callsWithPaymentPerAddress": window(CALLS_WITH_PAYMENT),
            "unsettledPaymentsPerAddress": window(PAYMENTS_PER_ADDRESS),
            "unsettledPaymentsPerPayer": window(PAYMENTS_PER_PAYER),
            "repeatedAnswersPerPayment": window(REPEATS),
        },
        "requests": {
            "bodyBytes": settings.body_bytes_max,
            "secondsToSend": settings.request_timeout_s,
            "idempotencyKeyCharacters": IDEMPOTENCY_KEY_CHARS_MAX,
        },
        "operations": operations,
    })
}

/// The limits of a tier, as the settings have them; null for none. Those of anonymous callers are for one network address.
fn of_tier(tier: Tier, settings: &Settings) -> Value {
    let limits = settings.tiers.of(tier);
    json!({
        "countedBy": if tier == Tier::Anonymous { "address" } else { "account" },
        "callsPerDay": limits.day.calls_max,
        "callsPerMinute": limits.minute.map(|minute| minute.calls_max),
        "rowsOfAFeedPage": limits.rows_max,
        "savedFiltersPerService": limits.filters_max,
        "watchesPerService": limits.watches_max,
        "fleetsPerService": limits.fleets_max,
    })
}

fn window(window: Window) -> Value {
    json!({ "calls": window.calls_max, "seconds": window.length_s })
}

/// What an operation costs, and the bounds of its arguments.
fn of_operation(operation: &Operation, settings: &ServiceSettings) -> Value {
    let fields = operation.input.get("properties").and_then(Value::as_object).into_iter().flatten();
    let arguments: Map<String, Value> = fields.filter_map(|(name, schema)| Some((name.clone(), bounds(schema)?))).collect();
    let mut shown = json!({
        "name": operation.name,
        "path": operation.path,
        "tier": operation.price.least_tier().as_str(),
        "priceMicros": operation.price_micros(settings),
        "countsAgainstQuota": operation.counted,
        "arguments": arguments,
    });
    // What is sold by the value of an argument has a price for each; `priceMicros` is that of a call without the argument.
    let sold: Map<String, Value> = operation.prices_of_sold(settings).map(|(value, micros)| (value.to_owned(), json!(micros))).collect();
    if !sold.is_empty() {
        shown["soldBy"] = json!(operation.sold_by);
        shown["pricesMicros"] = Value::Object(sold);
    }
    shown
}

/// The bounds of an argument; `None` if it has none.
fn bounds(schema: &Value) -> Option<Value> {
    let found: Map<String, Value> = BOUNDS.iter().filter_map(|name| Some(((*name).to_owned(), schema.get(name)?.clone()))).collect();
    (!found.is_empty()).then_some(Value::Object(found))
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Proves that an operation that sells several things has the price of each, also one of the settings, and that others have one price.
    #[test]
    fn prices_by_what_is_sold() {
        let service = services::all().into_iter().find(|service| service.name == "parcels").unwrap();
        let mut settings = ServiceSettings::new(String::new(), String::new());
        settings.prices.insert("stalled_surety".to_owned(), 10_000);
        let limits_of = |name: &str| of_operation(service.operations.iter().find(|operation| operation.name == name).unwrap(), &settings);
        let paid = limits_of("x402_pay");
        assert_eq!((&paid["soldBy"], &paid["priceMicros"]), (&json!("tool"), &json!(200_000)));
        let expected = json!({
            "overassessment_leads": 200_000, "lien_bundle_report": 500_000, "exemption_flags": 20_000, "construction_window_leads": 20_000,
            "stalled_surety": 10_000,
        });
        assert_eq!(paid["pricesMicros"], expected);
        let liens = limits_of("lien_bundle_report");
        assert_eq!((&liens["priceMicros"], liens.get("pricesMicros")), (&json!(500_000), None));
    }

    /// Proves that an argument has the bounds of its schema, and none otherwise.
    #[test]
    fn bounds_of_arguments() {
        let schema = json!({ "type": "integer", "description": "How many.", "minimum": 1, "maximum": 200, "default": 50 });
        assert_eq!(bounds(&schema), Some(json!({ "minimum": 1, "maximum": 200, "default": 50 })));
        assert_eq!(bounds(&json!({ "type": "string" })), None);
    }
}
