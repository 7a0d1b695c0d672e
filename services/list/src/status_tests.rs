//! The status of an event of catalysts, which depends on the day of the answer.

use std::collections::BTreeMap;

use catalysts::record::{Catalyst, TABLES, Window};
use feed::testing::{HOUR_MS, START_MS, call};
use schemas::views::accounts::Tier;
use serde_json::{Value, json};

use crate::numbers_tests::filled;
use crate::registered;

/// The events: a day that comes first, one that comes later, and one that a document says is met.
const EVENTS: [(&str, &str, &str); 3] =
    [("pdufa:1:a", "2026-11-03", "upcoming"), ("pdufa:1:b", "2026-11-20", "upcoming"), ("pdufa:1:c", "2026-11-10", "met")];

/// Proves that an event has one status in every read of its record on a day, by id, in its history, by its company and by its drug, and as of that day later;
/// that the list of upcoming events has those of them that are; and that changes show what was decided.
#[tokio::test]
async fn events_have_one_status() {
    let event = |(id, day, status): (&str, &str, &str)| Catalyst {
        id: id.into(),
        kind: "pdufa".into(),
        date: day.into(),
        window: Window { from: day.into(), to: day.into() },
        ticker: "CLDB".into(),
        drug: "calderinib".into(),
        status: status.into(),
        ..Catalyst::default()
    };
    let world = filled(&TABLES, &EVENTS.map(event)).await;
    let catalysts = registered().iter().find(|registration| registration.service.name == "catalysts").unwrap();
    // Days after 2026-11-01, the first days after which an event is over among them.
    for (days, expected) in [
        (1, ["upcoming", "upcoming", "met"]),
        (2, ["upcoming", "upcoming", "met"]),
        (3, ["passed", "upcoming", "met"]),
        (20, ["passed", "passed", "met"]),
    ] {
        let then = format!("2026-11-{:02}", days + 1);
        for (now, as_of) in [(days, Value::Null), (25, json!(then))] {
            let ctx = world.context(START_MS + now * 24 * HOUR_MS + HOUR_MS * 12);
            let ask = async |name: &str, mut arguments: Value| {
                let operation = catalysts.service.operations.iter().find(|one| one.name == name && one.has_route()).unwrap();
                let mut paid = call(&ctx);
                (paid.caller.tier, paid.caller.key_id) = (Tier::FleetPlus, "key_test".to_owned());
                arguments["asOf"] = as_of.clone();
                (operation.run)(paid, arguments).await.unwrap().body.into_value().unwrap()
            };
            let statuses = |answer: &Value| -> BTreeMap<String, String> {
                let rows = answer["catalysts"].as_array().unwrap().iter();
                rows.map(|row| (row["id"].as_str().unwrap().to_owned(), row["status"].as_str().unwrap().to_owned())).collect()
            };
            let wanted: BTreeMap<String, String> =
                EVENTS.iter().zip(expected).map(|((id, ..), status)| ((*id).to_owned(), status.to_owned())).collect();
            assert_eq!(statuses(&ask("company", json!({ "ticker": "CLDB" })).await), wanted, "{then} {as_of}");
            assert_eq!(statuses(&ask("drug", json!({ "name": "calderinib" })).await), wanted, "{then} {as_of}");
            let mut upcoming = wanted.clone();
            upcoming.retain(|_, status| status == "upcoming");
            assert_eq!(statuses(&ask("upcoming", json!({ "days": 365 })).await), upcoming, "{then} {as_of}");
            for (id, status) in &wanted {
                let record = ask("record", json!({ "id": id })).await;
                assert_eq!(record["record"]["status"], status.as_str(), "{then} {as_of} {id}");
                let history = ask("record_history", json!({ "id": id })).await;
                assert_eq!(history["versions"][0]["record"]["status"], status.as_str(), "{then} {as_of} {id}");
            }
            let changes = ask("changes", json!({ "start": "earliest" })).await;
            let decided = changes["changes"].as_array().unwrap().iter().map(|change| change["record"]["status"].clone());
            assert!(decided.eq(EVENTS.iter().map(|(.., status)| json!(status))), "{changes}");
        }
    }
}
