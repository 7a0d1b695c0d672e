//! A scaffolded service end to end. `ops/checks/scaffolds` adds this scenario to its copy of the repository, in which `cargo xtask new service aaa_first
//! --topic grants` was run and nothing else was edited.

use jiff::SignedDuration;
use jiff::tz::TimeZone;
use schemas::clock::Clock;
use serde_json::json;

use super::Target;
use super::receiver::Receiver;
use crate::engine::{SimulatedUpstreams, moving_clock};
use crate::process::{Server, highwater, stdout, wait_for};

/// Proves that a scaffolded service is in the documents of its API, and that a watch of it posts new records to its webhook, signed.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_scaffolded_service_posts_its_changes() {
    // Daily records are dated within the days before the day of the simulation.
    let now = moving_clock().now();
    let days_ago = |days: i64| now - SignedDuration::from_hours(24 * days);
    let simulated = SimulatedUpstreams::start(71, 300, Clock::Fixed(days_ago(8))).await;
    let dir = tempfile::tempdir().unwrap();
    let command = |arguments: &[&str]| {
        let mut command = highwater(&dir.path().join("data"), &simulated.base_url, arguments);
        command.env("HIGHWATER_WEBHOOKS__ALLOW_PRIVATE_TARGETS", "true");
        command
    };
    stdout(command(&["ingest", "nih_reporter", "--once"]));
    let key = stdout(command(&["keys", "mint", "--tier", "business"])).trim().to_owned();
    let server = Server::ready(command(&["serve"]));
    let paths = server.json("/aaa_first/openapi.json", "")["paths"].clone();
    for path in ["/v1/whats_changed_since", "/v1/watchlist", "/v1/changes"] {
        assert!(paths.as_object().unwrap().keys().any(|known| known.ends_with(path)), "{path} is not in {paths}");
    }
    let receiver = Receiver::open(|_, _| 204);
    let watch = Target::register(&server, &key, &receiver, "scaffolded", "/aaa_first/v1/watchlist", json!({"stream": "nih_reporter"}));
    simulated.sim.set_today(now.to_zoned(TimeZone::UTC).date());
    simulated.sim.advance(60);
    stdout(command(&["ingest", "nih_reporter", "--once"]));
    let messages = wait_for("a message of the scaffolded service", || {
        let messages = receiver.accepted(&watch.path, &watch.secret);
        (!messages.is_empty()).then_some(messages)
    });
    let body = messages[0].json();
    assert_eq!((&body["event"], &body["stream"]), (&json!("aaa_first_changed"), &json!("nih_reporter")));
    let change = &body["changes"][0];
    assert!(change["seq"].as_u64().unwrap() > watch.after && change["id"].as_str().unwrap().starts_with("nih_reporter/"), "{change}");
    assert_eq!(server.terminate().code(), Some(0));
}
