//! The command line as scripts see it: names, exit codes and standard output, with and without a running process.

use std::collections::BTreeSet;
use std::path::Path;
use std::process::Command;
use std::sync::{Arc, Mutex};

use serde_json::Value;

use crate::child::Child;
use crate::demo_history;
pub(crate) use crate::process::NOWHERE;
use crate::process::{Server, highwater, run, stderr_of_failure, stdout, wait_for, with_services};

fn assert_key(printed: &str) -> String {
    let key = printed.strip_suffix('\n').unwrap();
    let (prefix, rest) = key.split_at("hw_live_".len());
    assert_eq!(prefix, "hw_live_");
    assert!(rest.len() == 36 && rest.bytes().all(|byte| byte.is_ascii_alphanumeric()), "not just a key: {printed:?}");
    key.to_owned()
}

fn lines(text: &str) -> Vec<Value> {
    text.lines().map(|line| serde_json::from_str(line).unwrap()).collect()
}

/// Waits until the metrics say that every upstream of recalls was read, and that everything is projected.
fn wait_for_freshness(server: &Server) {
    wait_for("the freshness of every upstream", || {
        let metrics = server.metrics()?;
        let fresh = ["cpsc", "fsis", "nhtsa.flat", "openfda.food"].iter().all(|stream| {
            let line = metrics
                .lines()
                .find_map(|line| line.strip_prefix(&format!("ingest_run_finished_timestamp_seconds{{stream=\"{stream}\"}} ")));
            line.and_then(|at| at.parse::<u64>().ok()).is_some_and(|at| at > 0)
        });
        (fresh && metrics.contains("projector_lag_events{view=\"recalls\"} 0") && metrics.contains("engine_log_up 1")).then_some(())
    });
}

/// Proves that a still demo shows all agencies and categories, that commands give the same results while it runs and without it, that a key
/// minted while it runs is accepted, that it stops cleanly on request, and that a second start logs no warning.
#[test]
fn commands_work_with_and_without_a_running_demo() {
    let dir = tempfile::tempdir().unwrap();
    let data = demo_history::copy_to(dir.path());
    let demo = || highwater(&data, NOWHERE, demo_history::STILL);
    let ask = |arguments: &[&str]| stdout(highwater(&data, NOWHERE, arguments));
    let server = Server::ready(demo());

    let key = assert_key(&ask(&["keys", "mint", "--tier", "fleet_plus"]));
    // Without a key.
    let feed = server.json("/recalls/api/recalls?limit=300", "");
    let values_of = |name: &str| -> BTreeSet<&str> {
        feed["recalls"].as_array().unwrap().iter().map(|recall| recall[name].as_str().unwrap()).collect()
    };
    assert_eq!(values_of("agency"), ["CPSC", "FDA", "NHTSA", "USDA"].into());
    assert_eq!(values_of("category"), ["baby", "drugs", "food", "products", "vehicles"].into());
    assert_eq!(server.get("/recalls/api/recalls", "hw_live_000000000000000000000000000000000000").unwrap().0, 401);

    // While the demo runs.
    assert!(ask(&["keys", "list"]).contains("fleet_plus"));
    let exported = ask(&["export", "recalls", "--format", "ndjson"]);
    let facts = lines(&exported);
    let names =
        ["topic", "partition", "offset", "id", "kind", "key", "version", "observedAt", "upstream", "contentHash", "prevHash", "data"];
    for fact in &facts {
        assert!(names.iter().all(|name| fact.get(name).is_some()), "{fact}");
        let kind = fact["kind"].as_str().unwrap();
        assert!(["observed", "superseded", "withdrawn"].contains(&kind), "{fact}");
        assert_eq!(kind == "observed", fact["data"]["number"].as_str().is_some_and(|number| !number.is_empty()), "{fact}");
    }
    let with_runs = lines(&ask(&["export", "recalls", "--all"]));
    let runs = with_runs.iter().filter(|fact| fact["kind"] == "run_finished").count();
    assert_eq!(runs, 8 * 30, "there is one run for each stream and day, and one more since the demo started on its history");
    assert_eq!(with_runs.iter().filter(|fact| !fact["kind"].as_str().unwrap().starts_with("run_")).count(), facts.len());
    assert_eq!(ask(&["export", "recalls", "--format", "csv"]).lines().next().unwrap().split(',').next(), Some("topic"));
    let status = ask(&["status"]);
    assert!(status.starts_with("summary ok\tstreams ") && status.contains("\tfailed 0\t") && status.contains("\tparked 0\t"), "{status}");
    let json: Value = serde_json::from_str(&ask(&["status", "--json"])).unwrap();
    assert_eq!((&json["ok"], &json["problems"]), (&true.into(), &Value::Array(Vec::new())));
    assert!(json["upstreams"].as_array().unwrap().iter().any(|stream| stream["stream"] == "cpsc" && stream["state"] == "run_finished"));
    assert!(status.contains("upstream openfda.food\trun_finished") && status.contains("topic recalls\trecords"), "{status}");
    assert!(status.contains("view recalls\tlag 0\tseconds 0"), "{status}");
    wait_for_freshness(&server);
    let digest = ask(&["digest", "recalls"]);
    let history = ask(&["digest", "recalls", "--history"]);
    assert_eq!(digest.trim().len(), 64, "{digest}");
    // Standard error is no terminal, so it has the result and no progress bar.
    for (arguments, note) in [(["replay", "recalls"], "changes applied"), (["redecide", "recalls"], "changes appended")] {
        let output = run(highwater(&data, NOWHERE, &arguments));
        assert_eq!((output.status.code(), output.stdout.len()), (Some(0), 0));
        let message = String::from_utf8(output.stderr).unwrap();
        assert!(message.lines().count() == 1 && message.contains(note) && !message.contains(['\r', '\x1b']), "{message:?}");
    }
    assert_eq!((ask(&["digest", "recalls"]), ask(&["digest", "recalls", "--history"])), (digest.clone(), history.clone()));
    assert_eq!(server.json("/recalls/api/recalls?limit=300", &key)["recalls"], feed["recalls"], "a replay changes nothing");
    let changes = server.get("/recalls/v1/changes?start=earliest&limit=100", &key).unwrap();

    // A second process is refused.
    let error = stderr_of_failure(highwater(&data, NOWHERE, &["serve"]));
    assert!(error.contains("in use by another process") && error.contains(data.to_str().unwrap()), "{error}");
    assert_eq!(server.terminate().code(), Some(0), "a clean stop");
    assert!(!data.join("control.sock").exists());

    // Without a running process. Each command opens the services by itself, therefore only one.
    let ask = |arguments: &[&str]| {
        let mut command = highwater(&data, NOWHERE, arguments);
        with_services(&mut command, &["recalls"]);
        stdout(command)
    };
    assert_eq!((ask(&["digest", "recalls"]), ask(&["digest", "recalls", "--history"])), (digest.clone(), history));
    assert_eq!(ask(&["export", "recalls"]), exported);
    assert!(ask(&["status"]).contains("service recalls"));
    ask(&["replay", "all"]);
    assert_eq!(ask(&["digest", "recalls"]), digest);
    let other = assert_key(&ask(&["keys", "mint", "--tier", "pro"]));
    let error = stderr_of_failure(highwater(&data, NOWHERE, &["serve"]));
    assert!(error.contains("holds simulated records"), "{error}");

    // The demo starts again, without a warning.
    let logged: Arc<Mutex<Vec<String>>> = Arc::default();
    let heard = Arc::clone(&logged);
    let server = Server::try_start(demo(), move |line| heard.lock().unwrap().push(line.to_owned())).unwrap();
    wait_for("readiness", || (server.get("/readyz", "")?.0 == 200).then_some(()));
    for key in [&key, &other] {
        assert_eq!(server.json("/recalls/api/recalls?limit=300", key)["recalls"], feed["recalls"]);
    }
    let again = server.get("/recalls/v1/changes?start=earliest&limit=100", &key).unwrap();
    let page = |answer: &(u16, Vec<u8>)| serde_json::from_slice::<Value>(&answer.1).unwrap();
    assert_eq!((again.0, &page(&again)["changes"]), (changes.0, &page(&changes)["changes"]));
    assert_eq!(page(&again)["cursor"], page(&changes)["cursor"]);
    assert_eq!(server.terminate().code(), Some(0));
    let logged = logged.lock().unwrap();
    let is_info = |line: &String| serde_json::from_str::<Value>(line).is_ok_and(|line| line["level"] == "INFO");
    let (quiet, warnings): (Vec<&String>, Vec<&String>) = logged.iter().partition(|line| is_info(line));
    assert!(quiet.len() > 2 && warnings.is_empty(), "{warnings:?}");
}

/// Proves that a stop in the middle of an ingest, several times in a row, does not wait for anything that has already stopped, and that the
/// next start produces the same records as a process that was never stopped.
#[test]
fn interrupted_ingest_is_completed_after_restart() {
    let dir = tempfile::tempdir().unwrap();
    let (data, other) = (dir.path().join("data"), dir.path().join("other"));
    let demo = |data: &Path| {
        let mut command = highwater(data, NOWHERE, &["demo", "--still", "--records", "900"]);
        with_services(&mut command, &["recalls"]);
        command
    };
    for pages in [1, 4, 12] {
        let server = Server::start(demo(&data));
        wait_for("a page", || {
            let (_, metrics) = server.get("/recalls/health", "")?;
            let changes = serde_json::from_slice::<Value>(&metrics).ok()?["changes"].as_u64()?;
            (changes >= pages).then_some(())
        });
        assert_eq!(server.terminate().code(), Some(0));
    }
    for data in [&data, &other] {
        assert_eq!(Server::ready(demo(data)).terminate().code(), Some(0));
    }
    let digest = |data: &Path| stdout(highwater(data, NOWHERE, &["digest", "recalls"]));
    assert_eq!(digest(&data), digest(&other));
}

/// Proves that a command that reads refuses a data directory that does not exist or holds something else, and creates nothing, whether the setting or the flag
/// names it; and that a command that may create one says so.
#[test]
fn only_some_commands_create_a_data_directory() {
    let dir = tempfile::tempdir().unwrap();
    let (missing, other) = (dir.path().join("missing"), dir.path().join("other"));
    std::fs::create_dir(&other).unwrap();
    std::fs::write(other.join("notes.txt"), "not ours").unwrap();
    let cases: [&[&str]; 11] = [
        &["status"],
        &["status", "--json"],
        &["export", "recalls"],
        &["digest", "recalls"],
        &["replay", "all"],
        &["replay", "--parked"],
        &["redecide", "recalls"],
        &["accounts", "export-secrets"],
        &["receipts", "assign-owner", "--all-paid"],
        &["receipt-keys", "list"],
        &["webhooks", "list"],
    ];
    for arguments in cases {
        for data in [&missing, &other] {
            let with_flag = [arguments, &["--data-dir", data.to_str().unwrap()]].concat();
            for command in [highwater(data, NOWHERE, arguments), highwater(&dir.path().join("elsewhere"), NOWHERE, &with_flag)] {
                let error = stderr_of_failure(command);
                assert!(error.contains(data.to_str().unwrap()) && error.contains("is not a data directory"), "{arguments:?}: {error}");
            }
        }
    }
    assert!(!missing.exists());
    assert_eq!(std::fs::read_dir(&other).unwrap().count(), 1, "a refused command wrote into another directory");
    let arguments = ["keys", "mint", "--tier", "pro", "--data-dir", missing.to_str().unwrap()];
    let output = run(highwater(&dir.path().join("elsewhere"), NOWHERE, &arguments));
    assert_key(&String::from_utf8(output.stdout).unwrap());
    let message = String::from_utf8(output.stderr).unwrap();
    assert!(message.contains("created the data directory") && message.contains(missing.to_str().unwrap()), "{message}");
    let output = run(highwater(&missing, NOWHERE, &["keys", "list"]));
    assert!(output.status.success() && !String::from_utf8(output.stderr).unwrap().contains("created"));
    assert!(stdout(highwater(&missing, NOWHERE, &["status"])).starts_with("summary ok\t"));
}

/// Proves that a disabled service has no view, which the status and the commands that need it say; that one whose changes another service decides from is
/// projected all the same; and that a view is filled from the log when its service is enabled again.
#[test]
fn disabled_services_have_no_views() {
    let dir = tempfile::tempdir().unwrap();
    let data = dir.path().join("data");
    let disabled = |arguments: &[&str]| {
        let mut command = highwater(&data, NOWHERE, arguments);
        for service in ["AWARDS", "LABS", "RECEIPTS"] {
            command.env(format!("HIGHWATER_SERVICES__{service}__ENABLED"), "false");
        }
        command
    };
    stdout(disabled(&["keys", "mint", "--tier", "pro"]));
    let status = stdout(disabled(&["status"]));
    let has = |start: &str| status.lines().any(|line| line.starts_with(start));
    assert!(has("service awards\t") && has("disabled awards\tneeded by exclusions"), "{status}");
    assert!(has("service receipts\t") && !has("disabled receipts"), "{status}");
    assert!(has("disabled labs") && !has("service labs\t") && !has("view labs\t"), "{status}");
    let error = stderr_of_failure(disabled(&["digest", "labs"]));
    assert!(error.contains("services.labs.enabled"), "{error}");
    assert_eq!(stdout(highwater(&data, NOWHERE, &["digest", "labs"])).trim().len(), 64);
}

/// Proves that the status names an upstream whose newest run failed before everything else, and fails then.
#[test]
fn status_fails_while_an_upstream_is_stopped() {
    let dir = tempfile::tempdir().unwrap();
    let data = dir.path().join("data");
    stderr_of_failure(highwater(&data, NOWHERE, &["ingest", "cpsc"]));
    let output = run(highwater(&data, NOWHERE, &["status"]));
    let (lines, message) = (String::from_utf8(output.stdout).unwrap(), String::from_utf8(output.stderr).unwrap());
    assert_eq!(output.status.code(), Some(1));
    let mut lines = lines.lines();
    assert!(lines.next().unwrap().starts_with("summary attention\t"));
    assert!(lines.next().unwrap().starts_with("problem\tthe newest run of cpsc failed: "));
    assert!(lines.any(|line| line.starts_with("upstream cpsc\trun_failed ")));
    assert!(message.contains("needs attention: the newest run of cpsc failed"), "{message}");
    let output = run(highwater(&data, NOWHERE, &["status", "--json"]));
    assert_eq!((output.status.code(), serde_json::from_slice::<Value>(&output.stdout).unwrap()["ok"].clone()), (Some(1), false.into()));
}

/// Proves that completions and man pages need no settings, know the commands and the values of their arguments, and that offline verification does not read the
/// configuration either.
#[test]
fn generated_documents_need_no_settings() {
    let dir = tempfile::tempdir().unwrap();
    let command = |arguments: &[&str]| {
        let mut command = highwater(&dir.path().join("data"), NOWHERE, arguments);
        command.env("HIGHWATER_NO_SUCH_KEY", "1");
        command
    };
    for shell in ["bash", "zsh", "fish", "elvish", "powershell"] {
        let script = stdout(command(&["completions", shell]));
        assert!(script.contains("redecide") && script.contains("receipt-keys"), "{shell}");
        // The script of elvish completes no values.
        assert!(shell == "elvish" || shell == "powershell" || script.contains("fleet_plus"), "{shell}");
    }
    assert!(stdout(command(&["man"])).starts_with(".ie") && stdout(command(&["man"])).contains("redecide"));
    let page = stdout(command(&["man", "keys", "mint"]));
    assert!(page.contains("highwater\\-keys\\-mint") && page.contains("fleet_plus") && page.contains("Examples:"), "{page}");
    assert!(stderr_of_failure(command(&["man", "kys"])).contains("did you mean \"keys\"?"));
    let pages = dir.path().join("man1");
    stdout(command(&["man", "--dir", pages.to_str().unwrap()]));
    assert!(pages.join("highwater.1").exists() && pages.join("highwater-keys-mint.1").exists());
    assert!(stderr_of_failure(command(&["verify", "nothing.json"])).contains("nothing.json"));
    assert!(stderr_of_failure(command(&["man", "--data-dir", "x"])).contains("no effect"));
    assert!(stderr_of_failure(command(&["status"])).contains("no_such_key"));
    assert!(!dir.path().join("data").exists());
}

/// Proves that unknown names are refused with exit code 1, the nearest known name, and nothing on standard output.
#[test]
fn unknown_names_are_refused() {
    let dir = tempfile::tempdir().unwrap();
    let data = dir.path().join("data");
    let cases: [(&[&str], &str); 8] = [
        (&["ingest", "openfd", "--once"], "openfda"),
        (&["ingest", "openfd"], "openfda"),
        (&["replay", "recals"], "recalls"),
        (&["digest", "acounts"], "accounts"),
        (&["redecide", "recall"], "recalls"),
        (&["keys", "mint", "--tier", "fleetplus"], "fleet_plus"),
        (&["export", "change.recalls"], "changes.recalls"),
        (&["export", "recalls", "--format", "ndjsn"], "ndjson"),
    ];
    for (arguments, nearest) in cases {
        let error = stderr_of_failure(highwater(&data, NOWHERE, arguments));
        assert!(error.contains(&format!("did you mean \"{nearest}\"?")), "{arguments:?}: {error}");
    }
    assert!(!data.exists(), "a refused command created the data directory");
}

/// Proves that a simulator stops in order when it gets SIGTERM or SIGINT, also at once after it has printed its address.
#[test]
fn a_simulator_stops_in_order() {
    let dir = tempfile::tempdir().unwrap();
    for signal in ["TERM", "INT"] {
        let mut simulator = Child::start(highwater(&dir.path().join("data"), NOWHERE, &["simulate", "--listen", "127.0.0.1:0"]));
        wait_for("the address", || simulator.stdout().ends_with('\n').then_some(()));
        let sent = Command::new("kill").args([&format!("-{signal}"), &simulator.id().to_string()]).status().unwrap();
        assert!(sent.success());
        assert_eq!(simulator.wait().code(), Some(0), "SIG{signal}");
    }
}
