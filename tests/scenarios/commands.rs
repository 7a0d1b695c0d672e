//! The command line as scripts see it: names, exit codes, standard output, beside a running process and alone.

use std::collections::BTreeSet;
use std::path::Path;

use serde_json::Value;

use crate::process::{Server, highwater, refusal, stdout, wait_for};

/// An address at which nothing is.
pub(crate) const NOWHERE: &str = "http://127.0.0.1:9";

fn assert_key(printed: &str) -> String {
    let key = printed.strip_suffix('\n').unwrap();
    let (prefix, rest) = key.split_at("hw_live_".len());
    assert_eq!(prefix, "hw_live_");
    assert!(rest.len() == 36 && rest.bytes().all(|byte| byte.is_ascii_alphanumeric()), "the key alone: {printed:?}");
    key.to_owned()
}

fn lines(text: &str) -> Vec<Value> {
    text.lines().map(|line| serde_json::from_str(line).unwrap()).collect()
}

/// Proves that a still demo shows all agencies and categories, that commands work beside it and by themselves with the same results, that
/// a key minted beside it works, and that it stops in order when told to.
#[test]
fn a_demo_and_the_commands_beside_it() {
    let dir = tempfile::tempdir().unwrap();
    let data = dir.path().join("data");
    let demo = || highwater(&data, NOWHERE, &["demo", "--still", "--records", "900"]);
    let ask = |arguments: &[&str]| stdout(highwater(&data, NOWHERE, arguments));
    let server = Server::ready(demo());

    let key = assert_key(&ask(&["keys", "mint", "--tier", "fleet_plus"]));
    // As anyone sees it, without a key.
    let feed = server.json("/recalls/api/recalls?limit=300", "");
    let of = |name: &str| -> BTreeSet<&str> {
        feed["recalls"].as_array().unwrap().iter().map(|recall| recall[name].as_str().unwrap()).collect()
    };
    assert_eq!(of("agency"), ["CPSC", "FDA", "NHTSA", "USDA"].into());
    assert_eq!(of("category"), ["baby", "drugs", "food", "products", "vehicles"].into());
    assert_eq!(server.get("/recalls/api/recalls", "hw_live_000000000000000000000000000000000000").unwrap().0, 401);

    // Beside the running demo.
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
    assert_eq!(runs, 8 * 29, "one a stream and day");
    assert_eq!(with_runs.iter().filter(|fact| !fact["kind"].as_str().unwrap().starts_with("run_")).count(), facts.len());
    assert_eq!(ask(&["export", "recalls", "--format", "csv"]).lines().next().unwrap().split(',').next(), Some("topic"));
    let status = ask(&["status"]);
    assert!(status.contains("upstream openfda.food\trun_finished") && status.contains("topic recalls\trecords"), "{status}");
    assert!(status.contains("view recalls\tlag 0\tseconds 0"), "{status}");
    wait_for("the freshness of every upstream", || {
        let metrics = String::from_utf8(server.get("/metrics", "")?.1).ok()?;
        let fresh = ["cpsc", "fsis", "nhtsa.flat", "openfda.food"].iter().all(|stream| {
            let line = metrics
                .lines()
                .find_map(|line| line.strip_prefix(&format!("ingest_run_finished_timestamp_seconds{{stream=\"{stream}\"}} ")));
            line.and_then(|at| at.parse::<u64>().ok()).is_some_and(|at| at > 0)
        });
        (fresh && metrics.contains("projector_lag_events{view=\"recalls\"} 0") && metrics.contains("engine_log_up 1")).then_some(())
    });
    let digest = ask(&["digest", "recalls"]);
    let history = ask(&["digest", "recalls", "--history"]);
    assert_eq!(digest.trim().len(), 64, "{digest}");
    assert_eq!(ask(&["replay", "recalls"]), "");
    assert_eq!(ask(&["redecide", "recalls"]), "");
    assert_eq!((ask(&["digest", "recalls"]), ask(&["digest", "recalls", "--history"])), (digest.clone(), history.clone()));
    assert_eq!(server.json("/recalls/api/recalls?limit=300", &key)["recalls"], feed["recalls"], "a replay changes nothing");
    let changes = server.get("/recalls/v1/changes?start=earliest&limit=100", &key).unwrap();

    // A second process does not get in.
    let error = refusal(highwater(&data, NOWHERE, &["serve"]));
    assert!(error.contains("in use by another process") && error.contains(data.to_str().unwrap()), "{error}");
    assert_eq!(server.terminate().code(), Some(0), "a clean stop");
    assert!(!data.join("control.sock").exists());

    // By themselves.
    assert_eq!((ask(&["digest", "recalls"]), ask(&["digest", "recalls", "--history"])), (digest.clone(), history));
    assert_eq!(ask(&["export", "recalls"]), exported);
    assert!(ask(&["status"]).contains("service recalls"));
    ask(&["replay", "all"]);
    assert_eq!(ask(&["digest", "recalls"]), digest);
    let other = assert_key(&ask(&["keys", "mint", "--tier", "pro"]));
    let error = refusal(highwater(&data, NOWHERE, &["serve"]));
    assert!(error.contains("holds simulated records"), "{error}");

    // And it goes on.
    let server = Server::ready(demo());
    for key in [&key, &other] {
        assert_eq!(server.json("/recalls/api/recalls?limit=300", key)["recalls"], feed["recalls"]);
    }
    let again = server.get("/recalls/v1/changes?start=earliest&limit=100", &key).unwrap();
    let page = |answer: &(u16, Vec<u8>)| serde_json::from_slice::<Value>(&answer.1).unwrap();
    assert_eq!((again.0, &page(&again)["changes"]), (changes.0, &page(&changes)["changes"]));
    assert_eq!(page(&again)["cursor"], page(&changes)["cursor"]);
    assert_eq!(server.terminate().code(), Some(0));
}

/// Proves that a stop in the middle of an ingest waits for nothing that has stopped already, several times over, and that the next start
/// goes on to the same records as one that was never stopped.
#[test]
fn a_stop_in_the_middle_of_an_ingest() {
    let dir = tempfile::tempdir().unwrap();
    let (data, other) = (dir.path().join("data"), dir.path().join("other"));
    let demo = |data: &Path| highwater(data, NOWHERE, &["demo", "--still", "--records", "3000"]);
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

/// Proves that unknown names are refused with exit code 1, the nearest known name, and nothing on standard output.
#[test]
fn unknown_names_are_refused() {
    let dir = tempfile::tempdir().unwrap();
    let data = dir.path().join("data");
    let cases: [(&[&str], &str); 7] = [
        (&["ingest", "openfd", "--once"], "openfda"),
        (&["replay", "recals"], "recalls"),
        (&["digest", "acounts"], "accounts"),
        (&["redecide", "recall"], "recalls"),
        (&["keys", "mint", "--tier", "fleetplus"], "fleet_plus"),
        (&["export", "change.recalls"], "changes.recalls"),
        (&["export", "recalls", "--format", "ndjsn"], "ndjson"),
    ];
    for (arguments, nearest) in cases {
        let error = refusal(highwater(&data, NOWHERE, arguments));
        assert!(error.contains(&format!("did you mean \"{nearest}\"?")), "{arguments:?}: {error}");
    }
    assert!(!data.exists(), "nothing was made");
}
