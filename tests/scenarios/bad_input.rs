//! Bad input from clients, operators and damaged files is refused with an error that names the cause, and no data is lost.

use std::collections::HashSet;
use std::fs::{self, File};
use std::net::TcpListener;
use std::path::{Path, PathBuf};
use std::process::Command;

use serde_json::{Value, json};

use crate::commands::NOWHERE;
use crate::engine::{NOW, RECALL_UPSTREAMS, SimulatedUpstreams, fixed_clock, ingest_of};
use crate::process::{Answer, Server, copy_dir, fix_clock, highwater, run, stderr_of_failure, stdout, with_services};
use crate::random::{Random, seed};

/// The largest file of a log without records.
const SMALL_BYTES_MAX: u64 = 1_024;

/// Sets the clock of a command to that of the simulated upstreams.
fn at_noon(mut command: Command) -> Command {
    fix_clock(&mut command, NOW);
    command
}

/// Asserts that an answer is a complete problem document; returns its `detail`.
pub(crate) fn problem(answer: &Answer, status: u16, code: &str, parameter: &str) -> String {
    let document: Value = serde_json::from_slice(&answer.body).unwrap();
    assert_eq!((answer.status, answer.header("content-type")), (status, "application/problem+json"), "{document}");
    let type_of = document["type"].as_str().unwrap();
    assert!(type_of.ends_with(&format!("/docs/errors#{code}")), "{document}");
    assert_eq!((document["status"].as_u64(), document["code"].as_str()), (Some(u64::from(status)), Some(code)), "{document}");
    assert_eq!(document["parameter"].as_str().unwrap_or_default(), parameter, "{document}");
    assert!(document["title"].as_str().is_some_and(|title| !title.is_empty()), "{document}");
    document["detail"].as_str().unwrap().to_owned()
}

/// Proves that bad parameters and bodies are refused over REST and MCP with the right status and a problem document that names the field,
/// that a second process on the same data directory is refused while the server runs, and that records, keys and log are unchanged
/// afterwards.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn bad_requests_are_refused_without_data_loss() {
    let dir = tempfile::tempdir().unwrap();
    let data = dir.path().join("data");
    let simulated = SimulatedUpstreams::start(42, 300, fixed_clock()).await;
    let ask = |arguments: &[&str]| stdout(at_noon(highwater(&data, &simulated.base_url, arguments)));
    ask(&ingest_of(RECALL_UPSTREAMS));
    let key = ask(&["keys", "mint", "--tier", "pro"]).trim().to_owned();
    let exported = |name: &str| lines_of_records(&ask(&["export", name]));
    let (facts, changes) = (exported("recalls"), exported("changes.recalls"));
    let server = Server::ready(at_noon(highwater(&data, NOWHERE, &["serve"])));
    let (list, feed) = ("/recalls/api/recalls?limit=300", "/recalls/v1/changes?start=earliest&limit=200");
    let before = (server.json(list, &key)["recalls"].take(), server.json(feed, &key)["changes"].take());
    assert!(!before.0.as_array().unwrap().is_empty());

    let queries = [
        ("category=toys", "category", "food, drugs, vehicles, products, baby"),
        ("limit=0", "limit", "0 is less than 1"),
        ("limit=301", "limit", "301 is more than 300"),
        ("limit=ten", "limit", "whole number"),
        ("from=2026-05-02&to=2026-05-01", "from", "2026-05-02 is after 2026-05-01"),
        ("from=2026-13-01", "from", "YYYY-MM-DD"),
        ("to=2026-02-30", "to", "YYYY-MM-DD"),
        ("agency=FDAA", "agency", "did you mean \"FDA\"?"),
        ("categry=food", "categry", "did you mean \"category\"?"),
        ("category=food&category=drugs", "category", "given twice"),
        ("keyword=", "keyword", "empty"),
    ];
    for (query, parameter, message) in queries {
        let detail = problem(&server.send("GET", &format!("/recalls/api/recalls?{query}"), &key, ""), 400, "parameter-invalid", parameter);
        assert!(detail.contains(message), "{query}: {detail}");
        // MCP returns the same document in a result that is marked as an error.
        let given = form(query);
        if given.as_object().unwrap().len() == query.split('&').count() {
            let call = json!({"jsonrpc": "2.0", "id": 1, "method": "tools/call", "params": {"name": "search_recalls", "arguments": given}});
            let answer = server.send("POST", "/recalls/mcp", &key, &call.to_string());
            let result = serde_json::from_slice::<Value>(&answer.body).unwrap()["result"].take();
            assert_eq!((answer.status, &result["isError"]), (200, &json!(true)), "{query}: {result}");
            let document: Value = serde_json::from_str(result["content"][0]["text"].as_str().unwrap()).unwrap();
            assert_eq!(
                (&document["code"], &document["parameter"]),
                (&json!("parameter-invalid"), &json!(parameter)),
                "{query}: {document}"
            );
        }
    }
    problem(&server.send("GET", "/recalls/api/recalls?asOf=soon", &key, ""), 400, "as-of-invalid", "asOf");
    problem(&server.send("GET", "/recalls/v1/changes?cursor=nonsense", &key, ""), 400, "cursor-invalid", "cursor");
    problem(&server.send("GET", "/recalls/api/recals", &key, ""), 404, "not-found", "");
    problem(&server.send("POST", "/recalls/api/recalls", &key, "{}"), 405, "method-not-allowed", "");
    problem(&server.send("GET", "/recalls/api/recalls", "hw_live_nonsense", ""), 401, "key-invalid", "");

    let bodies = [
        ("{\"email\": \"a@example.org\"", "", "EOF"),
        ("{\"email\": 5}", "email", "email"),
        ("{}", "email", "email is missing"),
        ("{\"emial\": \"a@example.org\"}", "emial", "did you mean \"email\"?"),
        ("[]", "email", "email is missing"),
        ("[1]", "", "a JSON object"),
    ];
    for (body, parameter, message) in bodies {
        let detail = problem(&server.send("POST", "/recalls/api/keys", "", body), 400, "body-invalid", parameter);
        assert!(detail.contains(message), "{body}: {detail}");
    }
    let large = format!("{{\"email\": \"{}\"}}", "a".repeat(2 << 20));
    for path in ["/recalls/api/keys", "/recalls/mcp"] {
        let detail = problem(&server.send("POST", path, "", &large), 413, "body-too-large", "");
        assert!(detail.contains("bytes"), "{detail}");
    }
    let error = stderr_of_failure(highwater(&data, NOWHERE, &["serve"]));
    assert!(error.contains("in use by another process") && error.contains(data.to_str().unwrap()), "{error}");

    let after = (server.json(list, &key)["recalls"].take(), server.json(feed, &key)["changes"].take());
    assert!(before == after, "the answers changed");
    assert_eq!(server.terminate().code(), Some(0));
    assert!((exported("recalls"), exported("changes.recalls")) == (facts, changes), "the log changed");
    let keys = ask(&["keys", "list"]);
    assert!(keys.contains("pro") && !keys.contains("free"), "a refused request created a key: {keys}");
}

/// Returns the lines of an export that hold records.
fn lines_of_records(export: &str) -> Vec<String> {
    export.lines().map(str::to_owned).collect()
}

/// Converts a query to the equivalent MCP arguments.
fn form(query: &str) -> Value {
    let pairs = query.split('&').filter_map(|pair| pair.split_once('='));
    pairs.map(|(name, text)| (name.to_owned(), text.parse::<i64>().map_or_else(|_| json!(text), |number| json!(number)))).collect()
}

/// Proves that each cause that prevents a start is named in one line, with exit code 1.
#[test]
fn startup_errors_name_their_cause() {
    let dir = tempfile::tempdir().unwrap();
    let data = dir.path().join("data");
    let serve = || highwater(&data, NOWHERE, &["serve"]);

    let mut command = serve();
    command.env("HIGHWATER_LISTN", "127.0.0.1:0");
    let error = stderr_of_failure(command);
    assert!(error.contains("listn") && error.contains("did you mean \"listen\"?"), "{error}");
    let file = dir.path().join("own.toml");
    fs::write(&file, "[upstreams.cpsc]\nwindow_day = 3\n").unwrap();
    let error = stderr_of_failure(highwater(&data, NOWHERE, &["serve", "--config", file.to_str().unwrap()]));
    assert!(error.contains("upstreams.cpsc.window_day") && error.contains("own.toml") && error.contains("\"window_days\""), "{error}");

    let taken = TcpListener::bind("127.0.0.1:0").unwrap();
    let address = taken.local_addr().unwrap().to_string();
    let mut command = serve();
    command.env("HIGHWATER_LISTEN", &address);
    let error = stderr_of_failure(command);
    assert!(error.contains(&address) && error.to_lowercase().contains("in use"), "{error}");

    // Even the superuser cannot create a directory below a file.
    let below = file.join("data");
    let mut command = highwater(&data, NOWHERE, &["serve"]);
    command.env("HIGHWATER_DATA_DIR", &below);
    let error = stderr_of_failure(command);
    assert!(error.contains("cannot be written") && error.contains(below.to_str().unwrap()), "{error}");

    // Directories cannot be created in /proc either.
    if Path::new("/proc/self").exists() {
        let mut command = highwater(&data, NOWHERE, &["serve"]);
        command.env("HIGHWATER_DATA_DIR", "/proc/highwater");
        let error = stderr_of_failure(command);
        assert!(error.contains("cannot be written") && error.contains("/proc/highwater"), "{error}");
    }

    fs::create_dir_all(&data).unwrap();
    let lock = File::create(data.join("lock")).unwrap();
    lock.try_lock().unwrap();
    for arguments in [&["serve"][..], &["status"], &["export", "recalls"]] {
        let error = stderr_of_failure(highwater(&data, NOWHERE, arguments));
        assert!(error.contains("in use by another process") && error.contains(data.to_str().unwrap()), "{error}");
    }
    drop(lock);

    let error = stderr_of_failure(highwater(&data, NOWHERE, &["serve", "--role", "ingest"]));
    assert!(error.contains("embedded"), "{error}");
    let mut command = serve();
    command.env("HIGHWATER_UPSTREAMS__CPSC__SCHEDULE", "now and then");
    let error = stderr_of_failure(command);
    assert!(error.contains("upstreams.cpsc.schedule") && error.contains("now and then"), "{error}");
}

fn files(dir: &Path) -> Vec<PathBuf> {
    let mut out = Vec::new();
    for entry in fs::read_dir(dir).unwrap().map(Result::unwrap) {
        if entry.file_type().unwrap().is_dir() {
            out.extend(files(&entry.path()));
        } else if entry.metadata().unwrap().len() > 0 {
            out.push(entry.path());
        }
    }
    out.sort();
    out
}

/// Proves that a log with a flipped byte or a truncated file is either read unchanged or refused with an error that names the damage, and
/// that the exit code says which: for each large file, and for a random third of the small ones.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn damaged_log_is_read_unchanged_or_refused() {
    let dir = tempfile::tempdir().unwrap();
    let data = dir.path().join("data");
    let simulated = SimulatedUpstreams::start(41, 400, fixed_clock()).await;
    let ask = |data: &Path, arguments: &[&str]| {
        let mut command = highwater(data, &simulated.base_url, arguments);
        with_services(&mut command, &["recalls"]);
        at_noon(command)
    };
    for name in ["fsis", "cpsc"] {
        assert_eq!(stdout(ask(&data, &["ingest", name, "--once"])), "");
    }
    simulated.faults(&[("schema_missing", 1.0)], "cpsc");
    // The next upstream is synced all the same.
    let error = stderr_of_failure(ask(&data, &["ingest", "cpsc", "fsis"]));
    assert!(error.contains("RecallDate") && error.contains("fsis: "), "{error}");
    let whole = stdout(ask(&data, &["export", "recalls", "--all"]));
    assert!(whole.lines().count() > 100);

    // Large, and created again where it is missing.
    fs::remove_file(data.join("reserve")).unwrap();
    let mut refused = [0, 0];
    let mut log_files = files(&data.join("log"));
    // The files of topics without records are alike.
    let mut contents = HashSet::new();
    log_files.retain(|file| contents.insert((file.file_name().map(ToOwned::to_owned), fs::read(file).unwrap())));
    // Small files name what a topic consists of, and differ in little more than their numbers.
    let seed = seed("DAMAGED_LOG_SEED", 1);
    let mut random = Random::of(seed, 0);
    log_files.retain(|file| fs::metadata(file).unwrap().len() > SMALL_BYTES_MAX || random.below(3) == 0);
    for (number, file) in log_files.iter().enumerate() {
        let found = fs::read(file).unwrap();
        let middle = found.len() / 2;
        let flipped = |at: usize| found.iter().enumerate().map(|(i, byte)| if i == at { byte ^ 0x10 } else { *byte }).collect();
        let harms: [Vec<u8>; 3] = [flipped(middle), flipped(found.len() / 7), found[..middle].to_vec()];
        for (harm, bytes) in harms.into_iter().enumerate() {
            let copy = dir.path().join(format!("copy-{number}-{harm}"));
            copy_dir(&data, &copy);
            let target = copy.join(file.strip_prefix(&data).unwrap());
            let what = format!("harm {harm} of {}", target.display());
            fs::write(&target, bytes).unwrap();
            let output = run(ask(&copy, &["export", "recalls", "--all"]));
            let message = String::from_utf8_lossy(&output.stderr).into_owned();
            let read = String::from_utf8(output.stdout).unwrap();
            if output.status.success() {
                assert_eq!(read, whole, "{what}");
                fs::remove_dir_all(&copy).unwrap();
                continue;
            }
            refused[usize::from(harm >= 2)] += 1;
            assert_eq!(output.status.code(), Some(1), "{what}: {message}");
            assert!(whole.starts_with(&read), "{what}");
            assert!(message.contains("log") && !message.contains("panicked"), "{what}: {message}");
            fs::write(&target, &found).unwrap();
            assert_eq!(stdout(ask(&copy, &["export", "recalls", "--all"])), whole, "{what}: after the repair the records must be complete");
            fs::remove_dir_all(&copy).unwrap();
        }
    }
    println!("{refused:?} of {} files refused", log_files.len());
    assert!(refused.iter().all(|times| *times > 0), "damage in the middle of a file must be refused: {refused:?}");
}
