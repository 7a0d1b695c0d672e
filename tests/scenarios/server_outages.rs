//! Processes that lose the broker or the database: what they answer meanwhile, and that they recover without a restart.

use std::time::{Duration, Instant};

use engines::own::{Own, Server as Lost};
use jiff::Timestamp;
use schemas::clock::rfc3339;
use schemas::topics::RECALLS;
use serde_json::{Value, json};

use crate::bad_input::problem;
use crate::child::HANG_TIMEOUT;
use crate::cluster::Cluster;
use crate::engine::{SimulatedUpstreams, moving_clock};
use crate::process::{Server, is_timed, run, stderr_of_failure, stdout, wait_for};
use crate::reader::Reader;

/// The longest permitted time of an answer where times are measured: the server's limit for a command, 15 seconds, and as long again for a busy machine.
const ANSWER_TIMEOUT: Duration = Duration::from_secs(30);

/// How a server is lost.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum How {
    /// It keeps its connections and answers nothing.
    Paused,
    /// It is gone; connections are refused.
    Killed,
}

/// Sends a request and asserts that the answer comes: in time where times are measured, and before the test would hang elsewhere.
fn ask(server: &Server, method: &str, path: &str, key: &str, body: &str) -> crate::process::Answer {
    let started = Instant::now();
    let answer = server.send(method, path, key, body);
    let time_max = if is_timed() { ANSWER_TIMEOUT } else { HANG_TIMEOUT };
    assert!(started.elapsed() < time_max, "{method} {path} was answered after {:?}", started.elapsed());
    answer
}

/// Reads that need only the view store.
const READS: [&str; 5] = [
    "/recalls/api/recalls?limit=20",
    "/recalls/api/recalls?category=food&limit=5",
    "/recalls/api/recalls?keyword=recall&limit=5",
    "/recalls/v1/changes?start=earliest&limit=20",
    // Up to long before the last change, so that new changes add nothing.
    "/recalls/api/recalls?asOf=2020-01-01",
];

/// Calls a tool over MCP.
fn call_tool(server: &Server, key: &str) -> Value {
    let call = json!({"jsonrpc": "2.0", "id": 1, "method": "tools/call", "params": {"name": "search_recalls", "arguments": {"limit": 3}}});
    let answer = ask(server, "POST", "/recalls/mcp", key, &call.to_string());
    assert_eq!(answer.status, 200);
    serde_json::from_slice::<Value>(&answer.body).unwrap()["result"].take()
}

/// Asserts that a request is refused as temporarily unavailable, with `Retry-After`.
fn assert_unavailable(answer: &crate::process::Answer) {
    problem(answer, 503, "unavailable", "");
    assert!(answer.header("retry-after").parse::<u64>().is_ok_and(|pause_s| pause_s > 0));
}

/// Asks for recalls as of a time after the last change that the node knows, which nobody can answer without the end of the log. Changes can have been recorded
/// since the reader read, so the time is moved until it is late enough; and that of this process can be ahead of the clocks of the nodes.
fn ask_after_the_last(api: &Server, key: &str, reader: &Reader) -> crate::process::Answer {
    let last: Timestamp = reader.read.last().unwrap()["recordedAt"].as_str().unwrap().parse().unwrap();
    let mut at_ms = last.as_millisecond() + 1;
    wait_for("an answer that needs the end of the log", || {
        let answer = ask(api, "GET", &format!("/recalls/api/recalls?asOf={}", rfc3339(at_ms)), key, "");
        match answer.status {
            200 => at_ms += 1_000,
            // Still in the future of the node.
            400 => {}
            _ => return Some(answer),
        }
        None
    })
}

/// Proves that every role survives a paused and a killed broker and database: /readyz names the lost server while /healthz is fine; each
/// call is answered in bounded time, correctly or as unavailable with `Retry-After`, over REST and MCP; reads that do not need the log work
/// without it; and after the outage all calls work again without a restart, appended data is there, and the syncs continue.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn roles_survive_server_outages() {
    let simulated = SimulatedUpstreams::start(21, 120, moving_clock()).await;
    let dir = tempfile::tempdir().unwrap();
    let Some(servers) = engines::or_skip(Own::start(dir.path(), 0), "losing servers") else { return };
    let cluster = Cluster::on_servers(servers.kafka(), servers.cql(), &simulated.base_url, "").with_default_call_times();
    let nodes = cluster.start(&[("p", "project"), ("i", "ingest"), ("a", "api")]);
    let api = &nodes[2];
    cluster.ingest("i");
    let key = stdout(cluster.command("a", &["keys", "mint", "--tier", "business"])).trim().to_owned();
    let mut reader = Reader::default();
    reader.read_on(api, &key);
    let all_ready = || {
        for node in &nodes {
            wait_for("readiness", || (ask(node, "GET", "/readyz", "", "").status == 200).then_some(()));
        }
    };
    all_ready();

    for (lost, how) in [(Lost::Kafka, How::Paused), (Lost::Cql, How::Paused), (Lost::Kafka, How::Killed), (Lost::Cql, How::Killed)] {
        servers.signal(lost, if how == How::Paused { "STOP" } else { "KILL" }).unwrap();
        let (is_log, address) = (lost == Lost::Kafka, if lost == Lost::Kafka { servers.kafka() } else { servers.cql() });
        let words = if is_log { "the log does not answer" } else { "the view store does not answer" };
        for node in &nodes {
            let message = wait_for("a node that says what it lost", || {
                let answer = ask(node, "GET", "/readyz", "", "");
                (answer.status == 503)
                    .then(|| {
                        assert_unavailable(&answer);
                        problem(&answer, 503, "unavailable", "")
                    })
                    .filter(|message| message.contains(words))
            });
            assert!(message.contains(&address), "{lost:?} {how:?}: {message}");
            assert_eq!(ask(node, "GET", "/healthz", "", "").status, 200);
        }
        for path in READS {
            let answer = ask(api, "GET", path, &key, "");
            if is_log { assert_eq!(answer.status, 200, "{path} needs no log") } else { assert_unavailable(&answer) }
        }
        let result = call_tool(api, &key);
        assert_eq!(result["isError"], !is_log, "{result}");
        if !is_log {
            let document: Value = serde_json::from_str(result["content"][0]["text"].as_str().unwrap()).unwrap();
            assert_eq!((&document["code"], &document["status"]), (&json!("unavailable"), &json!(503)));
        }
        // Calls that append, and calls that need the end of the log.
        assert_unavailable(&ask(api, "POST", "/recalls/api/keys", "", "{\"email\": \"dev@example.org\"}"));
        assert_unavailable(&ask_after_the_last(api, &key, &reader));
        assert_eq!(ask(api, "GET", "/recalls/openapi.json", "", "").status, 200, "documents need neither");

        if how == How::Paused {
            servers.signal(lost, "CONT").unwrap()
        } else {
            servers.up(lost).unwrap()
        }
        all_ready();
        for path in READS {
            wait_for("a right answer", || (ask(api, "GET", path, &key, "").status == 200).then_some(()));
        }
        simulated.sim.advance(10);
        let manifests = upstreams::ALL.iter().map(|upstream| upstream.manifest());
        for manifest in manifests.filter(|manifest| manifest.streams.iter().any(|stream| stream.topic == &RECALLS)) {
            let name = manifest.name;
            wait_for("a run that finishes", || run(cluster.command("i", &["ingest", name, "--once"])).status.success().then_some(()));
        }
        let before = reader.read.len();
        reader.read_on(api, &key);
        assert!(reader.read.len() > before, "no new changes after {lost:?} {how:?}");
    }
    let digest = stdout(cluster.command("p", &["digest", "recalls", "--history"]));
    stdout(cluster.command("p", &["replay", "recalls"]));
    assert_eq!(stdout(cluster.command("p", &["digest", "recalls", "--history"])), digest, "changes were lost or duplicated");

    // A lost server does not delay a shutdown.
    for lost in [Lost::Kafka, Lost::Cql] {
        servers.signal(lost, "STOP").unwrap();
    }
    for node in nodes {
        assert!(node.terminate().code().is_some(), "a node had to be killed");
    }
}

/// Proves that a process whose broker or database is unavailable at its start exits soon, with code 1 and one line that names the setting
/// and the address, so that its supervisor can restart it.
#[test]
fn start_without_servers_fails_quickly() {
    let cluster = Cluster::on_servers("127.0.0.1:1".to_owned(), "127.0.0.1:1".to_owned(), crate::commands::NOWHERE, "");
    let refused = |node: &str, log: &str, store: &str, words: [&str; 2]| {
        let started = Instant::now();
        let mut command = cluster.command(node, &["serve"]);
        command.env("HIGHWATER_LOG", log).env("HIGHWATER_STORE", store).env("HIGHWATER_LOGGING__LEVEL", "off");
        let message = stderr_of_failure(command);
        assert!(!is_timed() || started.elapsed() < Duration::from_secs(30), "{:?}", started.elapsed());
        assert_eq!(message.lines().count(), 1, "{message}");
        assert!(words.iter().all(|word| message.contains(word)), "{message}");
    };
    // At the same time, because each of the first three waits for its servers.
    std::thread::scope(|scope| {
        for (node, log, store, words) in [
            ("a", "kafka://127.0.0.1:1", "embedded", ["log = \"kafka://127.0.0.1:1\"", "Connection refused"]),
            ("b", "kafka://no-such-host.invalid:9092", "embedded", ["log = \"kafka://no-such-host.invalid:9092\"", "resolve"]),
            ("c", "embedded", "scylla://127.0.0.1:1", ["store = \"scylla://127.0.0.1:1\"", "127.0.0.1:1"]),
            ("d", "embedded", "scylla://user:secret@127.0.0.1:1", ["store", "settings of their own"]),
        ] {
            scope.spawn(move || refused(node, log, store, words));
        }
    });
}
