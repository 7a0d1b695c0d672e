//! The demo as a newcomer meets it.

use std::path::Path;
use std::process::{Command, Stdio};
use std::sync::{Arc, Mutex};

use serde_json::Value;

use crate::commands::NOWHERE;
use crate::process::{Server, highwater, run, stdout, use_system_clock, wait_for};

/// Proves that a demo limits no calls from this machine, has a receipt and signed checkpoints when it is ready, changes every service while it runs, logs no line
/// for each of its frequent syncs, and that the example for webhooks receives messages and deletes what it registered.
#[test]
fn a_newcomer_meets_a_complete_and_quiet_demo() {
    let dir = tempfile::tempdir().unwrap();
    let data = dir.path().join("data");
    let logged: Arc<Mutex<Vec<String>>> = Arc::default();
    let heard = Arc::clone(&logged);
    let mut command = highwater(&data, NOWHERE, &["demo", "--records", "300"]);
    // The example for webhooks refuses messages that are old by its clock.
    use_system_clock(&mut command).env("HIGHWATER_WEBHOOKS__ALLOW_PRIVATE_TARGETS", "true").env_remove("HIGHWATER_CHECKPOINTS__MEMORY");
    let server = Server::try_start(command, move |line| heard.lock().unwrap().push(line.to_owned())).unwrap();
    wait_for("readiness", || (server.get("/readyz", "")?.0 == 200).then_some(()));

    // From the first moment.
    for service in services::all() {
        let health = server.json(&format!("/{}/health", service.name), "");
        let is_empty = health["changes"].as_u64() == Some(0);
        assert!(
            is_empty || server.get(&format!("/{}/checkpoint", service.name), "").unwrap().0 == 200,
            "{} has no checkpoint",
            service.name
        );
    }
    let listed = server.json("/receipts/v1/list?agent_id=demo-agent", "");
    let receipt = &listed["receipts"][0];
    assert_eq!((&receipt["body"]["seq"], listed["receipts"].as_array().unwrap().len()), (&1.into(), 1), "{listed}");
    let file = dir.path().join("receipt.json");
    std::fs::write(&file, receipt.to_string()).unwrap();
    stdout(highwater(&data, NOWHERE, &["verify", file.to_str().unwrap()]));
    for call in 0..130 {
        assert_eq!(server.get("/recalls/api/recalls?limit=1", "").unwrap().0, 200, "call {call}");
    }

    let key = stdout(highwater(&data, NOWHERE, &["keys", "mint", "--tier", "business"]));
    let example = Path::new(env!("CARGO_MANIFEST_DIR")).join("ops/examples/webhooks.py");
    let address = format!("http://{}", server.address);
    let output = run({
        let mut command = Command::new("python3");
        command.arg(example).args([key.trim(), &address, "1"]).stdin(Stdio::null());
        command
    });
    let (printed, message) = (String::from_utf8_lossy(&output.stdout), String::from_utf8_lossy(&output.stderr));
    assert!(output.status.success() && message.is_empty(), "{printed}{message}");
    assert!(printed.contains("webhooks are registered") && printed.contains(" webhooks are deleted"), "{printed}");
    assert_eq!(stdout(highwater(&data, NOWHERE, &["webhooks", "list"])), "", "the example leaves webhooks behind");

    // Every service changes while the demo runs: how soon is proved by a test of the demo's pace (src/demo/tests.rs).
    let changes = |name: &str| {
        let (_, health) = server.get(&format!("/{name}/health"), "")?;
        serde_json::from_slice::<Value>(&health).ok()?["changes"].as_u64()
    };
    let before: Vec<(&str, u64)> = services::names().map(|name| (name, changes(name).unwrap())).collect();
    for (name, before) in before {
        wait_for(&format!("a change of {name}"), || (changes(name)? > before).then_some(()));
    }

    assert_eq!(server.terminate().code(), Some(0));
    // Without the demo, commands find what its signer remembers.
    let mut status = highwater(&data, NOWHERE, &["status"]);
    // By the clock of the demo: the guard of clocks refuses data that are later than the clock.
    use_system_clock(&mut status).env_remove("HIGHWATER_CHECKPOINTS__MEMORY").env("HOME", dir.path()).env_remove("XDG_STATE_HOME");
    assert!(stdout(status).starts_with("summary ok\t"));
    let logged = logged.lock().unwrap();
    let messages = logged.iter().filter_map(|line| serde_json::from_str::<Value>(line).ok());
    let messages: Vec<(String, String)> =
        messages.map(|line| [&line["level"], &line["fields"]["message"]].map(|text| text.as_str().unwrap().to_owned()).into()).collect();
    let ready = messages.iter().position(|(_, message)| message == "the demo is ready").unwrap();
    let is_of_sync = |message: &str| message.contains("sync");
    assert!(messages.iter().all(|(level, message)| level != "INFO" || !is_of_sync(message)), "{messages:?}");
    assert!(logged.iter().all(|line| !line.contains("tokio_cron_scheduler")), "the log has the steps of the scheduler");
    let is_day = |(_, message): &&(String, String)| message == "simulated a day of the demo's history";
    let (days, others): (Vec<_>, Vec<_>) = messages[..ready].iter().partition(is_day);
    assert!(days.len() > 20 && others.len() < 12, "{others:?}");
    assert!(messages.iter().all(|(level, _)| level == "INFO"), "{messages:?}");
}
