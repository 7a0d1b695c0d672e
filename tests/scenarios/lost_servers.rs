//! Processes that lose the broker or the database: what they answer meanwhile, and that they go on by themselves.

use std::time::{Duration, Instant};

use engines::own::{Own, Server as Lost};
use schemas::clock::{Clock, rfc3339};
use schemas::topics::RECALLS;
use serde_json::{Value, json};

use crate::bad_input::problem;
use crate::cluster::Cluster;
use crate::engine::Played;
use crate::process::{Server, refusal, run, stdout, wait_for};
use crate::reader::Reader;

/// How long any answer may take: what the server allows itself for a command, and a busy machine's share.
const ANSWER_MAX: Duration = Duration::from_secs(20);

/// How a server is lost.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum How {
    /// It stands, its connections too, and it answers nothing.
    Paused,
    /// It is gone; connections are refused.
    Killed,
}

/// Asks, and asserts that an answer comes in time.
fn ask(server: &Server, method: &str, path: &str, key: &str, body: &str) -> crate::process::Answer {
    let begun = Instant::now();
    let answer = server.send(method, path, key, body);
    assert!(begun.elapsed() < ANSWER_MAX, "{method} {path} was answered after {:?}", begun.elapsed());
    answer
}

/// What reads are answered while all is well: these need the view store alone.
const READS: [&str; 5] = [
    "/recalls/api/recalls?limit=20",
    "/recalls/api/recalls?category=food&limit=5",
    "/recalls/api/recalls?keyword=recall&limit=5",
    "/recalls/v1/changes?start=earliest&limit=20",
    // Long before the last change: what comes can add nothing to it.
    "/recalls/api/recalls?asOf=2020-01-01",
];

/// One call of a tool.
fn call_tool(server: &Server, key: &str) -> Value {
    let call = json!({"jsonrpc": "2.0", "id": 1, "method": "tools/call", "params": {"name": "search_recalls", "arguments": {"limit": 3}}});
    let answer = ask(server, "POST", "/recalls/mcp", key, &call.to_string());
    assert_eq!(answer.status, 200);
    serde_json::from_slice::<Value>(&answer.body).unwrap()["result"].take()
}

/// Asserts that something is refused as unavailable for now, with a pause to keep.
fn unavailable(answer: &crate::process::Answer) {
    problem(answer, 503, "unavailable", "");
    assert!(answer.header("retry-after").parse::<u64>().is_ok_and(|pause_s| pause_s > 0));
}

/// Proves that every role outlives a broker and a database that are paused and killed: each says on /readyz which one is lost and stays
/// alive; each call is answered in bounded time, rightly or as unavailable with a pause, over REST and MCP; reads that need no log go on
/// without one; and when the server is back all answer again without being started anew, what was appended is there, and the runs go on.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn roles_outlive_their_servers() {
    let played = Played::start(21, 120, Clock::System).await;
    let dir = tempfile::tempdir().unwrap();
    let Some(servers) = engines::or_skip(Own::start(dir.path(), 0), "losing servers") else { return };
    let cluster = Cluster::on(servers.kafka(), servers.cql(), &played.base_url, "");
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
            let said = wait_for("a node that says what it lost", || {
                let answer = ask(node, "GET", "/readyz", "", "");
                (answer.status == 503)
                    .then(|| {
                        unavailable(&answer);
                        problem(&answer, 503, "unavailable", "")
                    })
                    .filter(|said| said.contains(words))
            });
            assert!(said.contains(&address), "{lost:?} {how:?}: {said}");
            assert_eq!(ask(node, "GET", "/healthz", "", "").status, 200);
        }
        for path in READS {
            let answer = ask(api, "GET", path, &key, "");
            if is_log { assert_eq!(answer.status, 200, "{path} needs no log") } else { unavailable(&answer) }
        }
        let result = call_tool(api, &key);
        assert_eq!(result["isError"], !is_log, "{result}");
        if !is_log {
            let document: Value = serde_json::from_str(result["content"][0]["text"].as_str().unwrap()).unwrap();
            assert_eq!((&document["code"], &document["status"]), (&json!("unavailable"), &json!(503)));
        }
        // What must be appended, and what must know where the log ends.
        unavailable(&ask(api, "POST", "/recalls/api/keys", "", "{\"email\": \"dev@example.org\"}"));
        let now = rfc3339(Clock::System.now_ms());
        unavailable(&ask(api, "GET", &format!("/recalls/api/recalls?asOf={now}"), &key, ""));
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
        played.sim.advance(10);
        let manifests = upstreams::ALL.iter().map(|upstream| upstream.manifest());
        for manifest in manifests.filter(|manifest| manifest.streams.iter().any(|stream| stream.topic == &RECALLS)) {
            let name = manifest.name;
            wait_for("a run that finishes", || run(cluster.command("i", &["ingest", name, "--once"])).status.success().then_some(()));
        }
        let before = reader.read.len();
        reader.read_on(api, &key);
        assert!(reader.read.len() > before, "the feed goes on after {lost:?} {how:?}");
    }
    let digest = stdout(cluster.command("p", &["digest", "recalls", "--history"]));
    stdout(cluster.command("p", &["replay", "recalls"]));
    assert_eq!(stdout(cluster.command("p", &["digest", "recalls", "--history"])), digest, "nothing is lost, nothing is twice");

    // Nor does a lost server hold up an end.
    for lost in [Lost::Kafka, Lost::Cql] {
        servers.signal(lost, "STOP").unwrap();
    }
    for node in nodes {
        assert!(node.terminate().code().is_some(), "it ends by itself");
    }
}

/// Proves that a process whose broker or database is not there when it starts ends soon, with exit code 1 and one line that names the
/// setting and the address: whoever supervises it starts it again.
#[test]
fn a_start_without_servers_fails_soon() {
    let cluster = Cluster::on("127.0.0.1:1".to_owned(), "127.0.0.1:1".to_owned(), crate::commands::NOWHERE, "");
    let refused = |log: &str, store: &str, words: [&str; 2]| {
        let begun = Instant::now();
        let mut command = cluster.command("a", &["serve"]);
        command.env("HIGHWATER_LOG", log).env("HIGHWATER_STORE", store).env("HIGHWATER_LOGGING__LEVEL", "off");
        let said = refusal(command);
        assert!(begun.elapsed() < Duration::from_secs(30), "{:?}", begun.elapsed());
        assert_eq!(said.lines().count(), 1, "{said}");
        assert!(words.iter().all(|word| said.contains(word)), "{said}");
    };
    refused("kafka://127.0.0.1:1", "embedded", ["log = \"kafka://127.0.0.1:1\"", "Connection refused"]);
    refused("kafka://no-such-host.invalid:9092", "embedded", ["log = \"kafka://no-such-host.invalid:9092\"", "resolve"]);
    refused("embedded", "scylla://127.0.0.1:1", ["store = \"scylla://127.0.0.1:1\"", "127.0.0.1:1"]);
    refused("embedded", "scylla://user:secret@127.0.0.1:1", ["store", "settings of their own"]);
}
