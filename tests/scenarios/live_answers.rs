//! The examples of all operations, and answers that query upstreams: over real HTTP, with simulated upstreams.

use operation::context::Part;
use operation::signing_state::SigningState;
use std::collections::BTreeMap;
use std::net::SocketAddr;
use std::path::Path;
use std::process::Command;
use std::sync::Arc;
use std::time::Duration;

use operation::{Method, Operation, Service};
use reads::registration::{TaskContext, TaskRole};
use receipts::operations::pubkey;
use receipts::operations::signer::Signer;
use schemas::clock::{Clock, SimulatedClock};
use schemas::views::accounts::Tier;
use serde_json::{Value, json};
use transparency::memory::Memory;

use crate::api::{HttpApi, LocalApi};
use crate::child::run_check;
use crate::engine::{RECEIPT_SEED, SimulatedUpstreams, fixed_clock, upstream_names};
use crate::process::{Answer, send, wait_for};

/// How late a slow upstream answers: long after the deadline of the server that queries it.
const SLOW_MS: f64 = 200_000.0;
/// The deadline of queries to slow upstreams. Other queries have time enough for a busy machine.
const SLOW_DEADLINE: Duration = Duration::from_secs(1);

/// The upstreams that live operations query.
const LIVE_UPSTREAMS: &[&str] = &["clinical_trials", "edgar", "nih_reporter", "usaspending"];

/// A served engine that has synced some upstreams once.
struct Fixture {
    api: LocalApi,
    simulated: SimulatedUpstreams,
    http_api: HttpApi,
    key: String,
    clock: &'static SimulatedClock,
}

impl Fixture {
    async fn begin(dir: &Path, seed: u64, upstreams: &[&str]) -> Self {
        let simulated = SimulatedUpstreams::start(seed, 300, fixed_clock()).await;
        let days_ago = |days: u64| fixed_clock().now() - Duration::from_secs(days * 86_400);
        let past = SimulatedClock::new(days_ago(20), fixed_clock());
        let mut api = LocalApi::open(dir, Clock::Simulated(past), None).await;
        let stop = crate::concurrent_processes::run_heads_only(&api.engine).await;
        if upstreams.contains(&"shopify") {
            // Items of stores are ranked after 14 days.
            let stores = SimulatedUpstreams::start(seed, 20, Clock::Simulated(past)).await;
            for days in [20, 10] {
                past.move_to(days_ago(days));
                for outcome in api.engine.run("shopify", &stores.settings()).await {
                    outcome.unwrap();
                }
            }
        }
        past.end();
        let mut settings = simulated.settings();
        settings.window_days = 30;
        for name in upstreams {
            for outcome in api.engine.run(name, &settings).await {
                outcome.unwrap();
            }
        }
        api.decide().await;
        stop.send_replace(true);
        let projector = Arc::clone(&api.engine.projector);
        api.engine.start(projector, "projector");
        let clock = SimulatedClock::new(fixed_clock().now(), fixed_clock());
        let http_api = HttpApi::start(&api.engine, Clock::Simulated(clock), Some(&simulated.base_url));
        let key = http_api.key(Tier::FleetPlus).await;
        pubkey::name_first(&http_api.context, &api.engine.receipt_key).await.unwrap();
        let memory = Memory::Store(Arc::clone(&api.engine.store));
        SigningState::of(&http_api.context).keys().add(&RECEIPT_SEED);
        let signer = Arc::new(Signer::new(Arc::clone(&http_api.context), memory, api.engine.receipt_key.clone()));
        let comparing = Arc::clone(&signer);
        tokio::spawn(async move { comparing.watch().await });
        let task_context = Arc::new(TaskContext { context: Arc::clone(&http_api.context), signer, holder: "seal".to_owned() });
        for task in [TaskRole::Project, TaskRole::Api].into_iter().flat_map(|role| services::tasks(role, &task_context)) {
            tokio::spawn(task);
        }
        Self { api, simulated, http_api, key, clock }
    }

    async fn end(self) {
        self.http_api.stop().await;
        self.api.close().await;
    }

    /// Advances the clock, because queries to upstreams are limited to a few per second.
    fn advance_clock(&self) {
        self.clock.move_to(Clock::Simulated(self.clock).now() + Duration::from_secs(2));
    }

    /// Ends the back-off of all upstreams, as time would.
    async fn end_back_off(&self) {
        let rows = self.api.engine.store.coordination();
        for name in upstream_names() {
            let lease = upstreams::back_off_lease(name);
            if let Some(holder) = rows.holder(&lease).await.unwrap() {
                rows.release(&lease, &holder).await.unwrap();
            }
        }
    }
}

/// Sends a request from a blocking thread.
async fn send_async(address: SocketAddr, method: &str, path: String, key: &str, body: String) -> Answer {
    let (method, key) = (method.to_owned(), key.to_owned());
    tokio::task::spawn_blocking(move || send(address, &method, &path, &[("x-api-key", key.as_str())], &body)).await.unwrap()
}

/// Writes arguments as a REST query.
fn query_of(arguments: &Value) -> String {
    let one = |value: &Value| value.as_str().map_or_else(|| value.to_string(), str::to_owned);
    let text = |value: &Value| match value {
        Value::Array(items) => items.iter().map(one).collect::<Vec<_>>().join(","),
        value => one(value),
    };
    let pairs: Vec<String> = arguments.as_object().unwrap().iter().map(|(name, value)| format!("{name}={}", text(value))).collect();
    pairs.join("&").replace(' ', "%20")
}

/// Calls an operation by GET. An `id` belongs into the path.
async fn get(fixture: &Fixture, service: &str, operation: &Operation, arguments: &Value) -> Value {
    get_from(fixture, fixture.http_api.address, service, operation, arguments).await
}

/// Calls an operation of a server of the fixture's engine by GET.
async fn get_from(fixture: &Fixture, address: SocketAddr, service: &str, operation: &Operation, arguments: &Value) -> Value {
    fixture.advance_clock();
    let id: String = arguments["id"].as_str().unwrap_or_default().bytes().map(|byte| format!("%{byte:02X}")).collect();
    let mut others = arguments.clone();
    if operation.path.contains("{id}") {
        others.as_object_mut().unwrap().remove("id");
    }
    let path = format!("/{service}{}?{}", operation.path.replace("{id}", &id), query_of(&others));
    let answer = send_async(address, "GET", path.clone(), &fixture.key, String::new()).await;
    let body: Value = serde_json::from_slice(&answer.body).unwrap();
    assert_eq!(answer.status, 200, "{path}: {body}");
    body
}

/// The arguments with which an operation is called: its example, and for `record` the id of a record of the service. `None` if it needs an item that must
/// be created first, or a record and there is none yet.
async fn arguments_of(fixture: &Fixture, service: &Service, operation: &Operation) -> Option<Value> {
    // A tool without a route takes an `id` in its arguments.
    let needs_item = operation.path.contains('{') || (!operation.has_route() && operation.example["id"].is_string());
    if !needs_item {
        return Some(operation.example.clone());
    }
    let changes = service.operations.iter().find(|other| operation.name == "record" && other.name == "changes")?;
    let page = get(fixture, service.name, changes, &json!({ "start": "earliest", "limit": 1 })).await;
    Some(json!({ "id": page["changes"][0]["record"]["id"].as_str()? }))
}

/// Whether an answer is about any record: one of its lists has items, or it has no list and counts records.
fn has_records(answer: &Value) -> bool {
    let fields = answer.as_object().into_iter().flat_map(|fields| fields.values());
    let mut lists = std::iter::once(answer).chain(fields).filter_map(Value::as_array).peekable();
    if lists.peek().is_none() {
        return answer["total"].as_i64().is_some_and(|total| total > 0);
    }
    lists.any(|items| !items.is_empty())
}

/// Calls the example of every operation of every service, which must have a non-empty answer over REST, and the same answer over MCP if the operation is
/// a tool. Returns the tools that read with their answers, by the URL of their service.
async fn call_every_example(fixture: &Fixture) -> Value {
    // The tree must have grown before its consistency can be proven.
    for number in 0..2 {
        let issued = json!({ "action": "a", "agent_id": "a", "inputs": { "number": number }, "outputs": {} }).to_string();
        assert_eq!(send_async(fixture.http_api.address, "POST", "/receipts/v1/issue".to_owned(), &fixture.key, issued).await.status, 201);
    }
    let address = fixture.http_api.address;
    let has_checkpoint_of = move |receipts: usize| {
        wait_for("a checkpoint", || {
            String::from_utf8(crate::process::get(address, "/receipts/checkpoint", "")?.1)
                .ok()?
                .contains(&format!("\n{receipts}\n"))
                .then_some(())
        })
    };
    let sealed = move || {
        has_checkpoint_of(2);
        for service in services::registered().iter().filter(|own| own.checkpoints.is_some()).map(|own| &own.service) {
            let path = format!("/{}/checkpoint", service.name);
            wait_for("a checkpoint of changes", || (crate::process::get(address, &path, "")?.0 == 200).then_some(()));
        }
    };
    tokio::task::spawn_blocking(sealed).await.unwrap();
    let (mut operations, mut tools, mut calls, mut reads) = (0, 0, BTreeMap::<_, Vec<Value>>::new(), false);
    let services = services::all();
    let mut examples: Vec<_> =
        services.iter().flat_map(|service| service.operations.iter().map(move |operation| (service, operation))).collect();
    // What is written is written first: two answers are the same only while nothing is written between them.
    examples.sort_by_key(|(_, operation)| operation.method == Method::Get);
    for (service, operation) in examples {
        let shown = format!("{} {}", service.name, operation.name);
        // Files are read by scenarios of their own.
        if !operation.files.is_empty() {
            continue;
        }
        // The scenario of watches calls the operations that are left out.
        let Some(given) = arguments_of(fixture, service, operation).await else { continue };
        let is_read = operation.method == Method::Get;
        if is_read && !reads {
            tokio::task::spawn_blocking(move || has_checkpoint_of(4)).await.unwrap();
            reads = true;
        }
        let direct = match operation.method {
            _ if !operation.has_route() => Value::Null,
            Method::Get => get(fixture, service.name, operation, &given).await,
            Method::Post | Method::Patch | Method::Delete => {
                let path = format!("/{}{}", service.name, operation.path);
                let answer = send_async(fixture.http_api.address, "POST", path, &fixture.key, operation.example.to_string()).await;
                // 201 where something was created.
                assert!([200, 201].contains(&answer.status), "{shown}: {} {}", answer.status, String::from_utf8_lossy(&answer.body));
                serde_json::from_slice(&answer.body).unwrap()
            }
        };
        operations += 1;
        let validator = jsonschema::options().should_validate_formats(true).build(&operation.output).unwrap();
        let wrong: Vec<String> = validator.iter_errors(&direct).map(|error| format!("{}: {error}", error.instance_path())).collect();
        // A tool without a route is called below.
        assert!(wrong.is_empty() || !operation.has_route(), "{shown}: {wrong:?}");
        let is_list = !matches!(operation.name, "health" | "record") && !operation.name.starts_with("list_");
        // Phrases have labels after five days of stories; this scenario has one, and the scenarios of phrases have a demo's.
        if is_read && operation.has_route() && is_list && service.name != "phrases" {
            assert!(has_records(&direct), "{shown}: {direct}");
        }
        let (tool, mut arguments) = match (operation.is_managed, operation.has_tool()) {
            (true, _) => ("manage", json!({"action": operation.name, "arguments": operation.example})),
            (false, true) => (operation.name, given),
            (false, false) => continue,
        };
        let is_compared = is_read && operation.has_route();
        // Official clients ask later: a tool whose answer names its time gives the same answer as of that time only.
        if is_read && !is_compared && operation.input.pointer("/properties/asOf").is_some() {
            arguments["asOf"] = json!(format!("{:.3}", Clock::Simulated(fixture.clock).now()));
        }
        tools += 1;
        let call = json!({"jsonrpc": "2.0", "id": 1, "method": "tools/call", "params": {"name": tool, "arguments": arguments}});
        let answer = send_async(fixture.http_api.address, "POST", format!("/{}/mcp", service.name), &fixture.key, call.to_string()).await;
        let result = serde_json::from_slice::<Value>(&answer.body).unwrap()["result"].take();
        assert_eq!((answer.status, result["isError"].as_bool().unwrap_or(false)), (200, false), "{shown}: {result}");
        assert!(!is_compared || result["structuredContent"] == direct, "{shown}: {result} is not {direct}");
        // A tool without a route answers the official clients as it answered here.
        let answer = if is_compared { direct } else { result["structuredContent"].clone() };
        if is_read {
            calls.entry(service.name).or_default().push(json!({ "tool": tool, "arguments": arguments, "answer": answer }));
        }
    }
    let url = |service: &str| format!("http://{address}/{service}/mcp");
    let offered: Vec<Value> = calls.into_iter().map(|(service, calls)| json!({ "url": url(service), "calls": calls })).collect();
    assert!(operations > tools && tools > 15, "{operations} operations, {tools} tools");
    Value::Array(offered)
}

/// Proves that the example of every operation of every service has a non-empty answer over REST, and the same answer over MCP if the
/// operation is a tool.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn every_example_is_answered() {
    let dir = tempfile::tempdir().unwrap();
    let fixture = Fixture::begin(dir.path(), 71, &upstream_names()).await;
    call_every_example(&fixture).await;
    fixture.end().await;
}

/// Proves that the official MCP clients get the same answers to the examples.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn official_clients_call_every_example() {
    let dir = tempfile::tempdir().unwrap();
    let fixture = Fixture::begin(dir.path(), 71, &upstream_names()).await;
    let offered = call_every_example(&fixture).await;
    print!("{}", official_clients(dir.path(), &fixture.key, &offered).await);
    fixture.end().await;
}

/// Calls tools with the official MCP clients, if they are installed; returns what they print.
async fn official_clients(dir: &Path, key: &str, offered: &Value) -> String {
    let file = dir.join("calls.json");
    std::fs::write(&file, offered.to_string()).unwrap();
    let mut check = Command::new(Path::new(env!("CARGO_MANIFEST_DIR")).join("ops/checks/mcp"));
    check.arg(file).env("HIGHWATER_KEY", key);
    tokio::task::spawn_blocking(move || run_check(check)).await.unwrap()
}

/// Returns the operations that query upstreams, each with the upstreams and with the arguments of the n-th call.
fn live_operations(n: usize) -> Vec<(&'static str, &'static str, &'static [&'static str], Value)> {
    // The arguments differ in each call, because answers are cached.
    let limit = 20 + n;
    let day = format!("2026-11-{:02}", 2 + n);
    let parts = ["inc", "llc", "corp", "systems"];
    let codes = [["54"], ["23"], ["33"], ["5415"]];
    let words = ["study", "cancer", "cell", "of"];
    vec![
        ("research", "search_records", &["nih_reporter", "clinical_trials"], json!({ "keyword": words[n], "limit": limit })),
        ("filings", "search_filings", &["edgar"], json!({ "form": "8-K", "start": day, "limit": limit })),
        ("filings", "company_watch", &["edgar"], json!({ "cik": format!("{:010}", 900_001 + n), "limit": limit })),
        ("awards", "search_awards", &["usaspending"], json!({ "start": day, "limit": limit })),
        ("awards", "competitor_watch", &["usaspending"], json!({ "contractor": parts[n], "limit": limit })),
        ("awards", "delta_digest", &["usaspending"], json!({ "naics": codes[n], "days": 30, "expiringDays": 365 })),
    ]
}

/// Proves that every operation that queries upstreams says so and includes their data; and that it returns the recorded data with the
/// reason when the upstreams fail, and before they answer when they are slow.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn live_operations_fall_back_to_recorded_data() {
    let dir = tempfile::tempdir().unwrap();
    let fixture = Fixture::begin(dir.path(), 72, LIVE_UPSTREAMS).await;
    let services = services::all();
    let find = |service: &str, name: &str| -> &Operation {
        let service = services.iter().find(|own| own.name == service).unwrap();
        service.operations.iter().find(|operation| operation.name == name).unwrap()
    };
    let all = services.iter().flat_map(|service| service.operations.iter().map(move |operation| (service.name, operation)));
    let own: Vec<_> = all.filter(|(_, operation)| operation.is_live()).map(|(service, operation)| (service, operation.name)).collect();
    let mut known: Vec<_> = live_operations(0).into_iter().map(|(service, name, ..)| (service, name)).collect();
    known.sort_unstable();
    let mut wanted = own.clone();
    wanted.sort_unstable();
    assert_eq!(known, wanted, "the list of live operations is incomplete");

    for (service, name, _, arguments) in live_operations(0) {
        let answer = get(&fixture, service, find(service, name), &arguments).await;
        assert_eq!(answer["live"], true, "{service} {name}: {}", answer["note"]);
        assert!(has_records(&answer), "{service} {name}: {answer}");
    }
    let clock = Clock::Simulated(fixture.clock);
    let impatient = HttpApi::with_lookup_deadline(&fixture.api.engine, clock, &fixture.simulated.base_url, SLOW_DEADLINE);
    let faults: [&[(&str, f64)]; 3] = [&[("truncated_length", 1.0)], &[("slow", 1.0), ("slow_ms", SLOW_MS)], &[("500", 1.0)]];
    for (n, faults) in faults.into_iter().enumerate() {
        fixture.simulated.faults(faults, "");
        let address = if faults[0].0 == "slow" { impatient.address } else { fixture.http_api.address };
        let (first, second): (Vec<_>, Vec<_>) = live_operations(n + 1).into_iter().enumerate().partition(|(at, _)| [0, 1, 3].contains(at));
        // At most two concurrent calls of each upstream; further ones would be postponed.
        for calls in [first, second] {
            fixture.end_back_off().await;
            let calls = calls.into_iter().map(|(_, (service, name, upstreams, arguments))| {
                let (fixture, operation) = (&fixture, find(service, name));
                async move {
                    let answer = get_from(fixture, address, service, operation, &arguments).await;
                    assert_recorded(faults, upstreams, service, name, &answer);
                }
            });
            futures_util::future::join_all(calls).await;
        }
    }
    impatient.stop().await;
    fixture.simulated.faults(&[], "");
    // Earlier answers are still cached.
    for (service, name, _, arguments) in live_operations(0) {
        let answer = get(&fixture, service, find(service, name), &arguments).await;
        assert_eq!(answer["live"], true, "{service} {name}: {}", answer["note"]);
    }
    fixture.end().await;
}

/// Proves that a live search continues until its end: every page says whether it is cut, no record comes twice, and an agency is asked for at the
/// upstream, so that every award of it is found; that the view of a company has what is recorded as well; and that live and recorded records have the
/// same fields.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn live_searches_continue() {
    let dir = tempfile::tempdir().unwrap();
    let fixture = Fixture::begin(dir.path(), 73, LIVE_UPSTREAMS).await;
    let services = services::all();
    let find = |service: &str, name: &str| -> &Operation {
        let service = services.iter().find(|own| own.name == service).unwrap();
        service.operations.iter().find(|operation| operation.name == name).unwrap()
    };
    for (service, name, list, id, arguments) in [
        ("awards", "search_awards", "awards", "id", json!({ "start": "2026-06-01", "agency": "defense", "limit": 10 })),
        ("awards", "search_awards", "awards", "id", json!({ "start": "2026-06-01", "limit": 20 })),
        ("filings", "search_filings", "filings", "accession", json!({ "form": "8-K", "start": "2026-10-25", "limit": 10 })),
        ("research", "search_records", "trials", "id", json!({ "keyword": "study", "limit": 10 })),
    ] {
        let (mut seen, mut pages, mut arguments) = (Vec::new(), 0, arguments);
        loop {
            let page = get(&fixture, service, find(service, name), &arguments).await;
            assert_eq!(page["live"], true, "{name}: {}", page["note"]);
            let items = page[list].as_array().unwrap();
            seen.extend(items.iter().map(|item| item[id].as_str().unwrap().to_owned()));
            assert_eq!(page["truncated"], !page["next"].is_null(), "{name}: {}", page["note"]);
            if arguments["agency"] == "defense" {
                assert!(items.iter().all(|item| item["agency"] == "Department of Defense"), "{page}");
            }
            pages += 1;
            match page["next"].as_str() {
                Some(next) => arguments["after"] = json!(next),
                None => break,
            }
        }
        let distinct: std::collections::BTreeSet<&String> = seen.iter().collect();
        assert_eq!(distinct.len(), seen.len(), "{name} lists a record twice");
        assert!(pages > 1 && pages < 60, "{name} has {pages} pages with {} records", seen.len());
        println!("{name}: {} records on {pages} pages", seen.len());
    }
    let company = find("filings", "company_watch");
    for n in 1..4 {
        let arguments = json!({ "cik": format!("{:010}", 900_000 + n), "limit": 200 });
        let live = get(&fixture, "filings", company, &arguments).await;
        let recorded =
            get(&fixture, "filings", company, &json!({ "cik": arguments["cik"], "limit": 200, "asOf": crate::engine::NOW })).await;
        assert_eq!((&live["live"], &recorded["live"]), (&json!(true), &json!(false)), "{live}");
        let filings_of = |answer: &Value| -> std::collections::BTreeMap<String, Value> {
            let filings = answer["filings"].as_array().unwrap().iter();
            filings.map(|filing| (filing["accession"].as_str().unwrap().to_owned(), filing["roles"].clone())).collect()
        };
        let (live, recorded) = (filings_of(&live), filings_of(&recorded));
        assert!(recorded.iter().all(|(number, roles)| live.get(number) == Some(roles)), "{recorded:?} is not in {live:?}");
    }
    fixture.end().await;
}

/// Panics unless an answer says that upstreams did not answer, and contains the recorded data.
fn assert_recorded(faults: &[(&str, f64)], upstreams: &[&str], service: &str, name: &str, answer: &Value) {
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
    assert!(has_records(answer), "{shown} lacks the recorded data: {answer}");
}
