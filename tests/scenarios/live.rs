//! What callers are told in the definitions, and what is asked of upstreams for them: over real HTTP, the upstreams played.

use operation::context::Part;
use operation::signing_state::SigningState;
use std::net::SocketAddr;
use std::path::Path;
use std::process::Command;
use std::sync::Arc;
use std::time::{Duration, Instant};

use operation::{Method, Operation};
use schemas::clock::{Clock, SimulatedClock};
use schemas::views::accounts::Tier;
use serde_json::{Value, json};
use services::receipts::memory::Memory;
use services::receipts::pubkey;
use services::receipts::signer::Signer;
use services::registration::{TaskContext, TaskRole};

use crate::engine::{Played, RECEIPT_SEED, fixed_clock, upstream_names};
use crate::fed::{Fed, Served};
use crate::process::{Answer, send, wait_for};

/// How long an upstream's answer is waited for; with it the whole answer must be there soon behind.
const DEADLINE: Duration = Duration::from_secs(10);

/// An engine that has read all upstreams once, served.
struct Story {
    fed: Fed,
    played: Played,
    served: Served,
    key: String,
    clock: &'static SimulatedClock,
}

impl Story {
    async fn begin(dir: &Path, seed: u64) -> Self {
        let played = Played::start(seed, 300, fixed_clock()).await;
        let mut fed = Fed::open(dir, fixed_clock(), None).await;
        let stop = crate::rivals::undecided(&mut fed.engine).await;
        let mut settings = played.settings();
        settings.window_days = 30;
        for name in upstream_names() {
            for outcome in fed.engine.run(name, &settings).await {
                outcome.unwrap();
            }
        }
        fed.decide().await;
        stop.send_replace(true);
        let projector = Arc::clone(&fed.engine.projector);
        fed.engine.start(projector, "projector");
        let clock = SimulatedClock::new(fixed_clock().now(), fixed_clock());
        let served = Served::start(&fed.engine, Clock::Simulated(clock), Some(&played.base_url));
        let key = served.key(Tier::Business).await;
        pubkey::name_first(&served.context, &fed.engine.receipt_key).await.unwrap();
        let memory = Memory::Store(Arc::clone(&fed.engine.store));
        SigningState::of(&served.context).keys().add(&RECEIPT_SEED);
        let signer = Arc::new(Signer::new(Arc::clone(&served.context), memory, fed.engine.receipt_key.clone()));
        let comparing = Arc::clone(&signer);
        tokio::spawn(async move { comparing.watch().await });
        let given = Arc::new(TaskContext { context: Arc::clone(&served.context), signer, holder: "seal".to_owned() });
        for task in services::tasks(TaskRole::Project, &given) {
            tokio::spawn(task);
        }
        Self { fed, played, served, key, clock }
    }

    async fn end(self) {
        self.served.stop().await;
        self.fed.close().await;
    }

    /// Lets time pass: upstreams are asked a few times a second at most.
    fn go_on(&self) {
        self.clock.move_to(Clock::Simulated(self.clock).now() + Duration::from_secs(2));
    }

    /// Ends what upstreams were told to be left alone for, as time does.
    async fn ask_again(&self) {
        let rows = self.fed.engine.store.coordination();
        for name in upstream_names() {
            let lease = upstreams::back_off_lease(name);
            if let Some(holder) = rows.holder(&lease).await.unwrap() {
                rows.release(&lease, &holder).await.unwrap();
            }
        }
    }
}

/// Sends a request from a thread where waiting holds nobody up.
async fn asked(address: SocketAddr, method: &str, path: String, key: &str, body: String) -> Answer {
    let (method, key) = (method.to_owned(), key.to_owned());
    tokio::task::spawn_blocking(move || send(address, &method, &path, &[("x-api-key", key.as_str())], &body)).await.unwrap()
}

/// Arguments as a query, after REST's manner.
fn query_of(arguments: &Value) -> String {
    let text = |value: &Value| match value {
        Value::Array(items) => items.iter().map(|item| item.as_str().unwrap()).collect::<Vec<_>>().join(","),
        Value::String(text) => text.clone(),
        value => value.to_string(),
    };
    let pairs: Vec<String> = arguments.as_object().unwrap().iter().map(|(name, value)| format!("{name}={}", text(value))).collect();
    pairs.join("&").replace(' ', "%20")
}

/// Asks an operation by GET; its answer, and how long it took.
async fn get(story: &Story, service: &str, operation: &Operation, arguments: &Value) -> (Value, Duration) {
    story.go_on();
    let (path, begun) = (format!("/{service}{}?{}", operation.path, query_of(arguments)), Instant::now());
    let answer = asked(story.served.address, "GET", path.clone(), &story.key, String::new()).await;
    let body: Value = serde_json::from_slice(&answer.body).unwrap();
    assert_eq!(answer.status, 200, "{path}: {body}");
    (body, begun.elapsed())
}

/// Whether an answer holds any record.
fn says(answer: &Value) -> bool {
    answer.as_object().unwrap().values().any(|value| value.as_array().is_some_and(|items| !items.is_empty()))
}

/// Proves that the example of every operation of every service is answered over REST, and over MCP where it is a tool, with the same, also by
/// the official clients; and that none of them is an empty one.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn every_example_is_answered() {
    let dir = tempfile::tempdir().unwrap();
    let story = Story::begin(dir.path(), 71).await;
    // A tree that grew, for the proof that it did.
    for number in 0..2 {
        let issued = json!({ "action": "a", "agent_id": "a", "inputs": { "number": number }, "outputs": {} }).to_string();
        assert_eq!(asked(story.served.address, "POST", "/receipts/v1/issue".to_owned(), &story.key, issued).await.status, 201);
    }
    let address = story.served.address;
    let sealed = move || {
        wait_for("a checkpoint", || {
            String::from_utf8(crate::process::get(address, "/receipts/checkpoint", "")?.1).ok()?.contains("\n2\n").then_some(())
        });
        for service in services::registered().into_iter().filter(|own| own.checkpoints.is_some()).map(|own| own.service) {
            let path = format!("/{}/checkpoint", service.name);
            wait_for("a checkpoint of changes", || (crate::process::get(address, &path, "")?.0 == 200).then_some(()));
        }
    };
    tokio::task::spawn_blocking(sealed).await.unwrap();
    let (mut operations, mut tools, mut offered) = (0, 0, Vec::new());
    for service in services::all() {
        let mut calls = Vec::new();
        for operation in &service.operations {
            let shown = format!("{} {}", service.name, operation.name);
            if operation.path.contains('{') {
                // Of one thing that must be there first: the scenario of watches asks for those.
                continue;
            }
            let direct = match operation.method {
                Method::Get => get(&story, service.name, operation, &operation.example).await.0,
                Method::Post | Method::Patch | Method::Delete => {
                    let path = format!("/{}{}", service.name, operation.path);
                    let answer = asked(story.served.address, "POST", path, &story.key, operation.example.to_string()).await;
                    assert_eq!(answer.status, 201, "{shown}: {}", String::from_utf8_lossy(&answer.body));
                    serde_json::from_slice(&answer.body).unwrap()
                }
            };
            operations += 1;
            let is_read = operation.method == Method::Get;
            if is_read && operation.name != "health" && !operation.name.starts_with("list_") {
                assert!(says(&direct), "{shown}: {direct}");
            }
            if !operation.tool {
                continue;
            }
            tools += 1;
            let call = json!({"jsonrpc": "2.0", "id": 1, "method": "tools/call",
                "params": {"name": operation.name, "arguments": operation.example}});
            let answer = asked(story.served.address, "POST", format!("/{}/mcp", service.name), &story.key, call.to_string()).await;
            let result = serde_json::from_slice::<Value>(&answer.body).unwrap()["result"].take();
            assert_eq!((answer.status, result["isError"].as_bool().unwrap_or(false)), (200, false), "{shown}: {result}");
            assert!(!is_read || result["structuredContent"] == direct, "{shown}: {result} is not {direct}");
            if is_read {
                calls.push(json!({ "tool": operation.name, "arguments": operation.example, "answer": direct }));
            }
        }
        offered.push(json!({ "url": format!("http://{}/{}/mcp", story.served.address, service.name), "calls": calls }));
    }
    assert!(operations > tools && tools > 15, "{operations} operations, {tools} tools");
    print!("{}", official_clients(dir.path(), &story.key, &Value::Array(offered)).await);
    story.end().await;
}

/// Calls tools with the official MCP clients, where they are installed; answers what they say.
async fn official_clients(dir: &Path, key: &str, offered: &Value) -> String {
    let file = dir.join("calls.json");
    std::fs::write(&file, offered.to_string()).unwrap();
    let mut check = Command::new(Path::new(env!("CARGO_MANIFEST_DIR")).join("ops/checks/mcp"));
    check.arg(file).env("HIGHWATER_KEY", key);
    let output = tokio::task::spawn_blocking(move || check.output().unwrap()).await.unwrap();
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
    String::from_utf8_lossy(&output.stdout).into_owned()
}

/// The operations that ask upstreams, each with the upstreams, and with arguments that are asked for the n-th time.
fn live(n: usize) -> Vec<(&'static str, &'static str, &'static [&'static str], Value)> {
    // Each time other ones: answers are kept.
    let limit = 20 + n;
    let day = format!("2026-11-{:02}", 2 + n);
    let parts = ["inc", "llc", "corp", "systems"];
    let codes = [["54"], ["23"], ["33"], ["5415"]];
    vec![
        ("research", "search_records", &["nih_reporter", "clinical_trials"], json!({ "keyword": "study", "limit": limit })),
        ("filings", "search_filings", &["edgar"], json!({ "form": "8-K", "start": day, "limit": limit })),
        ("filings", "company_watch", &["edgar"], json!({ "cik": format!("{:010}", 900_001 + n), "limit": limit })),
        ("awards", "search_awards", &["usaspending"], json!({ "start": day, "limit": limit })),
        ("awards", "competitor_watch", &["usaspending"], json!({ "contractor": parts[n], "limit": limit })),
        ("awards", "delta_digest", &["usaspending"], json!({ "naics": codes[n], "days": 30, "expiringDays": 365 })),
    ]
}

/// Proves that every operation that asks upstreams says so, and gives what they say; and that it gives what is recorded here, with the
/// reason, when they fail or say nothing in time, within its deadline.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn live_answers_and_their_absence() {
    let dir = tempfile::tempdir().unwrap();
    let story = Story::begin(dir.path(), 72).await;
    let services = services::all();
    let find = |service: &str, name: &str| -> &Operation {
        let service = services.iter().find(|own| own.name == service).unwrap();
        service.operations.iter().find(|operation| operation.name == name).unwrap()
    };
    let all = services.iter().flat_map(|service| service.operations.iter().map(move |operation| (service.name, operation)));
    let own: Vec<_> = all.filter(|(_, operation)| operation.is_live()).map(|(service, operation)| (service, operation.name)).collect();
    let mut known: Vec<_> = live(0).into_iter().map(|(service, name, ..)| (service, name)).collect();
    known.sort_unstable();
    let mut wanted = own.clone();
    wanted.sort_unstable();
    assert_eq!(known, wanted, "all that are live are asked here");

    for (service, name, _, arguments) in live(0) {
        let (answer, _) = get(&story, service, find(service, name), &arguments).await;
        assert_eq!(answer["live"], true, "{service} {name}: {}", answer["note"]);
        assert!(says(&answer), "{service} {name}: {answer}");
    }
    let faults: [&[(&str, f64)]; 3] = [&[("truncated_length", 1.0)], &[("slow", 1.0), ("slow_ms", 60_000.0)], &[("500", 1.0)]];
    for (n, faults) in faults.into_iter().enumerate() {
        story.played.faults(faults, "");
        let (first, second): (Vec<_>, Vec<_>) = live(n + 1).into_iter().enumerate().partition(|(at, _)| [0, 1, 3].contains(at));
        // Two at once of each upstream: more would be put off.
        for calls in [first, second] {
            story.ask_again().await;
            let calls = calls.into_iter().map(|(_, (service, name, upstreams, arguments))| {
                let (story, operation) = (&story, find(service, name));
                async move { assert_recorded(faults, upstreams, service, name, get(story, service, operation, &arguments).await) }
            });
            futures_util::future::join_all(calls).await;
        }
    }
    story.played.faults(&[], "");
    // What was asked before is still known.
    for (service, name, _, arguments) in live(0) {
        let (answer, _) = get(&story, service, find(service, name), &arguments).await;
        assert_eq!(answer["live"], true, "{service} {name}: {}", answer["note"]);
    }
    story.end().await;
}

/// Panics unless an answer says that upstreams did not answer, and gives what is recorded, in time.
fn assert_recorded(faults: &[(&str, f64)], upstreams: &[&str], service: &str, name: &str, (answer, took): (Value, Duration)) {
    let shown = format!("{service} {name} under {faults:?}");
    assert_eq!(answer["live"], false, "{shown}");
    let note = answer["note"].as_str().unwrap_or_else(|| panic!("{shown} gives no reason"));
    let title = |name: &&str| match *name {
        "nih_reporter" => "NIH RePORTER: ",
        "clinical_trials" => "ClinicalTrials.gov: ",
        "edgar" => "EDGAR: ",
        _ => "USAspending: ",
    };
    assert!(upstreams.iter().map(title).all(|title| note.contains(title)), "{shown}: {note}");
    assert!(!note.contains("too many") && !note.contains("not enabled"), "{shown}: {note}");
    assert!(says(&answer), "{shown} gives what is recorded: {answer}");
    assert!(took < DEADLINE + Duration::from_secs(5), "{shown} took {took:?}");
}
