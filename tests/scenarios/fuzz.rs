//! Random requests to every operation and document of every service, and checks of each answer.
//!
//! `FUZZ_REQUESTS` sets the number of requests, `FUZZ_SEED` repeats the requests of an earlier run, and `FUZZ_FIRST` sets the number of the
//! first request. A failure is repeated with its seed, its number and `FUZZ_REQUESTS=1`.

mod generate;
mod texts;

use std::collections::{BTreeMap, BTreeSet};
use std::net::Ipv4Addr;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::{Arc, Mutex};
use std::time::{Duration, Instant};

use schemas::error_code::ErrorCode;
use serde_json::{Value, json};

use self::generate::{Generator, Material, Operation, Request};
use self::texts::UNKNOWN_KEY;
use crate::commands::NOWHERE;
use crate::connection::{Connection, is_event_stream};
use crate::demo_history;
use crate::payments::refusing_facilitator::RefusingFacilitator;
use crate::process::{Answer, Server, highwater, is_timed, send, stdout, with_default_call_times};
use crate::random::{number, seed};

/// The default number of requests.
const REQUESTS: u64 = 1_500;
/// Requests that failed once, by seed and number, which every run makes again: a key in the query of a page for an account. They do not depend on the
/// operations, so they are still the same.
const FAILED_ONCE: [(u64, u64); 1] = [(1_795_946_921_183, 1_147)];
/// Connections that are open at the same time.
const CONNECTIONS: u8 = 4;
/// The longest permitted time of an answer in timed runs. A long poll waits for one second at most.
const ANSWER_TIME_MAX: Duration = Duration::from_secs(3);
/// The same for answers that look something up at an upstream: they wait up to ten seconds, because upstreams are sent only a few look-ups a second.
const LOOKUP_TIME_MAX: Duration = Duration::from_secs(13);
/// The time after which a request counts as never answered, on any machine.
const HANG_TIME: Duration = Duration::from_secs(60);
/// The largest number of failures that are printed.
const FAILURES_MAX: usize = 20;
/// The number of requests between two requests to `/healthz`.
const HEALTH_INTERVAL: u64 = 200;
/// Statuses that any address may answer with, in addition to those of an operation: malformed request, not found, wrong method, too large,
/// unsupported type, or too many requests.
const COMMON_STATUSES: [u16; 12] = [200, 204, 304, 400, 404, 405, 408, 413, 414, 415, 429, 431];
/// Further statuses of requests that do not use an operation's own method.
const OTHER_STATUSES: [u16; 8] = [201, 202, 303, 401, 402, 403, 406, 409];

/// The results of all requests.
#[derive(Default)]
struct Figures {
    by_status: BTreeMap<u16, u64>,
    /// Malformed requests whose connection was closed without an answer.
    closed: u64,
    /// Answers with a known fault.
    known: u64,
    slowest: Duration,
    /// The request that took the longest.
    slowest_request: String,
    failures: Vec<String>,
}

/// Starts the demo with limits that the fuzzer does not reach, except those of time, after which it accepts 503.
fn start(data: &std::path::Path, facilitator: &RefusingFacilitator, panics: &Arc<Mutex<Vec<String>>>) -> Server {
    let mut command = highwater(data, NOWHERE, demo_history::STILL);
    facilitator.configure(with_default_call_times(&mut command));
    for tier in ["FREE", "PRO", "FLEET_PLUS"] {
        command.env(format!("HIGHWATER_TIERS__{tier}__CALLS_PER_DAY"), "1000000000");
    }
    // Webhooks lead to a closed port of this machine, and no name server is queried.
    command.env("HIGHWATER_WEBHOOKS__ALLOW_PRIVATE_TARGETS", "true").env("HIGHWATER_WEBHOOKS__NAMESERVER", "127.0.0.1:9");
    let panics = Arc::clone(panics);
    let heard = move |line: &str| {
        if line.contains("panicked") {
            panics.lock().unwrap().push(line.to_owned());
        }
    };
    let server = Server::try_start(command, heard).unwrap();
    server.wait_until_it_signs();
    server
}

/// Collects what requests are made from: the OpenAPI documents, keys, and ids of some existing items.
fn material(server: &Server, keys: Vec<String>) -> Material {
    let listed = server.json("/.well-known/x402", "");
    assert!(listed.is_object(), "there is no listing of services");
    let services: Vec<String> = services::all().iter().map(|service| service.name.to_owned()).collect();
    let documents = services.iter().map(|service| (service, server.json(&format!("/{service}/openapi.json"), "")));
    let operations: Vec<Operation> = documents.flat_map(|(service, document)| Operation::all_of(service, &document)).collect();
    let make = |path: &str, body: Value| -> Value {
        let answer = server.send("POST", path, &keys[0], &body.to_string());
        assert_eq!(answer.status, 201, "{path}: {}", String::from_utf8_lossy(&answer.body));
        serde_json::from_slice(&answer.body).unwrap()
    };
    let mut known: BTreeMap<&'static str, Vec<String>> = BTreeMap::new();
    let mut know = |name: &'static str, value: &Value| known.entry(name).or_default().push(value.as_str().unwrap().to_owned());
    for operation in operations.iter().filter(|operation| operation.name == "changes") {
        let page = server.json(&format!("/{}/v1/changes?start=earliest&limit=1", operation.service), &keys[0]);
        know("cursor", &page["cursor"]);
    }
    know("id", &make("/recalls/api/webhook", json!({"webhook_url": "http://127.0.0.1:9/in"}))["id"]);
    know("id", &make("/awards/v1/watchlist", json!({"contractor": "federal", "webhook": "http://127.0.0.1:9/in"}))["id"]);
    know("id", &make("/research/v1/watchlist", json!({"entity": {"type": "pi", "value": "Ada"}}))["id"]);
    know("id", &make("/filings/v1/watchlist", json!({"cik": "320193"}))["id"]);
    for service in ["research", "filings", "awards"] {
        make(&format!("/{service}/v1/filters"), json!({"name": "mine", "filter": {}}));
    }
    for name in ["name", "filter"] {
        know(name, &json!("mine"));
    }
    let etag = |path: &str| (path.to_owned(), server.send("GET", path, "", "").header("etag").to_owned());
    let etags = ["/llms.txt", "/asyncapi.json", "/recalls/openapi.json", "/recalls/docs"].map(etag).to_vec();
    let issued = make("/receipts/v1/issue", json!({"action": "fuzz", "agent_id": "agent", "inputs": {}, "outputs": {}}));
    know("receipt_id", &issued["receipt"]["id"]);
    know("agent_id", &json!("agent"));
    Material { services, operations, keys, known, etags }
}

/// Whether the answer can wait for a look-up at an upstream. A request over MCP names the operation as a tool.
fn may_look_up(material: &Material, request: &Request) -> bool {
    let mut lookups = material.operations.iter().enumerate().filter(|(_, operation)| operation.may_look_up);
    lookups.any(|(index, operation)| {
        let name = operation.name.as_bytes();
        request.operation == Some(index) || request.bytes.windows(name.len()).any(|part| part == name)
    })
}

/// Checks an answer; the error says what is wrong with it.
fn judge(material: &Material, request: &Request, answer: &Answer, took: Duration) -> Result<(), String> {
    let status = answer.status;
    let body = String::from_utf8_lossy(&answer.body);
    if let Some(key) = material.keys.iter().find(|key| answer.head().contains(*key) || body.contains(*key)) {
        return Err(format!("the answer repeats the key {}…", &key[..12]));
    }
    if status >= 500 && (status != 503 || answer.header("retry-after").is_empty()) {
        return Err("a failure of the server".to_owned());
    }
    let time_max = if may_look_up(material, request) { LOOKUP_TIME_MAX } else { ANSWER_TIME_MAX };
    if is_timed() && took > time_max {
        return Err(format!("it took {took:?}"));
    }
    if request.is_malformed && (400..500).contains(&status) {
        return Ok(());
    }
    let documented = request.operation.map(|at| &material.operations[at].statuses);
    let is_allowed = status == 503
        || COMMON_STATUSES.contains(&status)
        || documented.map_or(OTHER_STATUSES.contains(&status), |statuses| statuses.contains(&status) || request.is_malformed);
    if !is_allowed {
        return Err(format!("status {status} is not documented: {documented:?}"));
    }
    if request.method == "HEAD" || matches!(status, 204 | 304) || is_event_stream(answer) {
        return Ok(());
    }
    let media_type = answer.header("content-type").split(';').next().unwrap_or_default().trim();
    let document = || serde_json::from_slice::<Value>(&answer.body).map_err(|error| format!("no JSON: {error}"));
    if status < 400 {
        match media_type {
            "application/json" => drop(document()?),
            "application/x-ndjson" => {
                for line in body.lines() {
                    serde_json::from_str::<Value>(line).map_err(|error| format!("no JSON line: {error}"))?;
                }
            }
            _ => {}
        }
        return Ok(());
    }
    // Errors of MCP's own messages have MCP's own form.
    if request.target.contains("/mcp") && media_type == "application/json" && document()?["error"]["code"].is_i64() {
        return Ok(());
    }
    if media_type == "text/html" && accepts_pages(request) {
        return Ok(());
    }
    let is_challenge = status == 402 && media_type == "application/json";
    if media_type != "application/problem+json" && !is_challenge {
        return Err(format!("the error is of type {media_type:?}"));
    }
    let document = document()?;
    let code = ErrorCode::ALL.iter().find(|code| document["code"] == code.as_str()).ok_or("its code is not in the table")?;
    let text = |name: &str| document[name].as_str().unwrap_or_default();
    let is_whole = document["status"] == status
        && code.status() == status
        && text("type").ends_with(&format!("/docs/errors#{}", code.as_str()))
        && ["title", "detail"].iter().all(|name| !text(name).is_empty());
    if is_whole { Ok(()) } else { Err("its problem document is not whole".to_owned()) }
}

/// Whether a header of the request asks for a page.
fn accepts_pages(request: &Request) -> bool {
    let text = String::from_utf8_lossy(&request.bytes).to_lowercase();
    let head = text.split("\r\n\r\n").next().unwrap_or_default();
    head.lines().any(|line| line.starts_with("accept:") && line.contains("text/html"))
}

/// Whether the request is about saved filters or watches.
fn is_about_saved_items(request: &Request) -> bool {
    ["/v1/watchlist", "/v1/filters"].iter().any(|path| request.target.contains(path))
}

/// Whether the fault of an answer is known and accepted, for the reason given with each case. `has_saved_key` says whether an earlier request may have
/// saved a key as an argument.
fn is_known(request: &Request, answer: &Answer, has_saved_key: bool) -> bool {
    // An answer repeats its input, such as the name that is searched for; the caller put a key there.
    let is_argument = request.has_key_argument && answer.status < 400;
    // The lists of saved items repeat what an earlier request saved.
    let is_saved = has_saved_key && is_about_saved_items(request) && answer.status == 200;
    is_argument || is_saved
}

/// Sends one request over a connection. Opens one if there is none, and keeps it open if possible.
async fn exchange(
    connection: &mut Option<Connection>,
    from: Ipv4Addr,
    server: &Server,
    request: &Request,
) -> Result<Option<Answer>, String> {
    let was_open = connection.is_some();
    let attempt = async {
        let mut open = match connection.take() {
            Some(open) => open,
            None => Connection::open(from, server.address, 0).await?,
        };
        // A server that refuses a request may close before it has read all of it; its answer can still be read.
        drop(open.send(&request.bytes).await);
        let answer = open.answer(request.method == "HEAD").await?;
        Ok::<_, std::io::Error>((open, answer))
    };
    let (open, answer) = match tokio::time::timeout(HANG_TIME, attempt).await {
        Err(_) => return Err("no answer comes".to_owned()),
        Ok(Err(error)) if was_open || request.is_malformed => {
            drop(error);
            return Ok(None);
        }
        Ok(Err(error)) => return Err(format!("the answer is cut off: {error}")),
        Ok(Ok(answered)) => answered,
    };
    if let Some(answer) = &answer
        && !answer.header("connection").eq_ignore_ascii_case("close")
        && !is_event_stream(answer)
        && !request.is_malformed
    {
        *connection = Some(open);
    }
    Ok(answer)
}

/// The status that a request must get; its method, path, headers and body.
type Fixed<'a> = (u16, &'a str, &'a str, &'a [(&'a str, &'a str)], &'a str);

/// Asserts that the usual statuses occur, each for a fixed request, whichever of them the random requests get.
fn assert_each_status_occurs(server: &Server, material: &Material) {
    let (path, etag) = &material.etags[0];
    let webhook = r#"{"webhook_url": "http://127.0.0.1:9/fixed"}"#;
    let writer = r#"{"writer": "acct_none"}"#;
    let key = ("x-api-key", material.keys[0].as_str());
    let requests: [Fixed<'_>; 10] = [
        (200, "GET", "/recalls/api/recalls", &[key], ""),
        (201, "POST", "/recalls/api/webhook", &[key], webhook),
        (304, "GET", path, &[("if-none-match", etag)], ""),
        (400, "GET", "/recalls/api/recalls?limit=0", &[key], ""),
        (401, "GET", "/recalls/api/recalls", &[("x-api-key", UNKNOWN_KEY)], ""),
        (402, "POST", "/receipts/v1/issue", &[], ""),
        (403, "POST", "/receipts/v1/chains/agent/writers", &[], writer),
        (404, "GET", "/recalls/api/recals", &[key], ""),
        (405, "POST", "/recalls/api/recalls", &[key], "{}"),
        (415, "POST", "/recalls/api/keys", &[("content-type", "text/plain")], "a"),
    ];
    for (status, method, path, headers, body) in requests {
        let answer = send(server.address, method, path, headers, body);
        assert_eq!(answer.status, status, "{method} {path}: {}", String::from_utf8_lossy(&answer.body));
    }
}

/// The shared state of all connections of a run.
struct Run<'a> {
    server: &'a Server,
    material: &'a Material,
    seed: u64,
    /// The number of the next request.
    next: AtomicU64,
    /// The number after the last request.
    end: u64,
    figures: &'a Mutex<Figures>,
    /// Whether a request was sent that may save a key as an argument of a filter or watch.
    has_saved_key: &'a AtomicBool,
    stop: &'a AtomicBool,
}

/// Sends the requests of one connection until all numbers are taken.
async fn work(worker: u8, run: &Run<'_>) {
    let Run { server, material, seed, next, end, figures, has_saved_key, stop } = run;
    let (seed, end) = (*seed, *end);
    let from = Ipv4Addr::new(127, 0, 7, worker + 1);
    let mut connection = None;
    loop {
        let number = next.fetch_add(1, Ordering::Relaxed);
        if number >= end || stop.load(Ordering::Relaxed) {
            return;
        }
        let request = Generator::new(material, seed, number).request();
        if request.has_key_argument && is_about_saved_items(&request) {
            has_saved_key.store(true, Ordering::Relaxed);
        }
        let started = Instant::now();
        let was_open = connection.is_some();
        let mut found = exchange(&mut connection, from, server, &request).await;
        if matches!(found, Ok(None)) && was_open && !request.is_malformed {
            // The server may close an idle connection at any time, but not a new one.
            found = exchange(&mut connection, from, server, &request).await;
        }
        let took = started.elapsed();
        let mut figures = figures.lock().unwrap();
        if took > figures.slowest {
            figures.slowest = took;
            figures.slowest_request = format!("{} {}", request.method, request.target.chars().take(200).collect::<String>());
        }
        let verdict = match &found {
            Err(reason) => Err(reason.clone()),
            Ok(None) if request.is_malformed => {
                figures.closed += 1;
                Ok(())
            }
            Ok(None) => Err("the connection is closed without an answer".to_owned()),
            Ok(Some(answer)) => {
                *figures.by_status.entry(answer.status).or_default() += 1;
                let verdict = judge(material, &request, answer, took);
                if verdict.is_err() && is_known(&request, answer, has_saved_key.load(Ordering::Relaxed)) {
                    figures.known += 1;
                    Ok(())
                } else {
                    verdict
                }
            }
        };
        if let Err(reason) = verdict {
            let shown = |bytes: &[u8]| String::from_utf8_lossy(&bytes[..bytes.len().min(1_500)]).into_owned();
            let answered = found.ok().flatten().map(|answer| format!("{}{}", answer.head(), shown(&answer.body))).unwrap_or_default();
            figures
                .failures
                .push(format!("request {number} of FUZZ_SEED={seed}: {reason}\n{}\n--- answered:\n{answered}\n", shown(&request.bytes)));
            if figures.failures.len() >= FAILURES_MAX {
                stop.store(true, Ordering::Relaxed);
            }
        }
        drop(figures);
        if number.is_multiple_of(HEALTH_INTERVAL) {
            let health = tokio::task::block_in_place(|| server.get("/healthz", "")).map(|(status, _)| status);
            assert_eq!(health, Some(200), "/healthz after request {number} of FUZZ_SEED={seed}");
        }
    }
}

/// Proves that no request causes an internal error, a panic, a connection without an answer, an error of another form than the documented
/// one, an undocumented status, or an answer that repeats a key; and that the server stays healthy.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn no_request_breaks_the_server() {
    let (seed, first) = (seed("FUZZ_SEED", 1), number("FUZZ_FIRST").unwrap_or(0));
    let requests = number("FUZZ_REQUESTS").unwrap_or(REQUESTS);
    let dir = tempfile::tempdir().unwrap();
    let data = demo_history::copy_to(dir.path());
    let (facilitator, panics) = (RefusingFacilitator::open(), Arc::new(Mutex::new(Vec::new())));
    let server = start(&data, &facilitator, &panics);
    let mint = |tier: &str| stdout(highwater(&data, NOWHERE, &["keys", "mint", "--tier", tier])).trim().to_owned();
    let material = material(&server, ["fleet_plus", "pro", "free"].map(mint).to_vec());
    assert_each_status_occurs(&server, &material);
    let started = Instant::now();
    let (figures, has_saved_key, stop) = (Mutex::default(), AtomicBool::new(false), AtomicBool::new(false));
    let once = FAILED_ONCE.into_iter().map(|(seed, number)| (seed, number, 1));
    for (seed, first, requests) in once.chain([(seed, first, requests)]) {
        let run = Run {
            server: &server,
            material: &material,
            seed,
            next: AtomicU64::new(first),
            end: first + requests,
            figures: &figures,
            has_saved_key: &has_saved_key,
            stop: &stop,
        };
        let workers = (0..CONNECTIONS).map(|worker| work(worker, &run));
        futures_util::future::join_all(workers).await;
    }
    let Figures { by_status, closed, known, slowest, slowest_request, failures } = figures.into_inner().unwrap();
    let health = server.get("/healthz", "").map(|(status, _)| status);
    assert_eq!(server.terminate().code(), Some(0));
    let panics = panics.lock().unwrap().clone();
    let statuses: Vec<String> = by_status.iter().map(|(status, count)| format!("{status}:{count}")).collect();
    let is_good = failures.is_empty() && panics.is_empty() && health == Some(200);
    let verdict = if is_good { "pass" } else { "fail" };
    println!(
        "fuzz requests={requests} seed={seed} seconds={:.0} slowest_ms={} statuses={} closed={closed} known={known} failures={} panics={} verdict={verdict}",
        started.elapsed().as_secs_f64(),
        slowest.as_millis(),
        statuses.join(","),
        failures.len(),
        panics.len(),
    );
    println!("slowest: {slowest_request}");
    let reasons: BTreeSet<&str> = failures.iter().filter_map(|failure| failure.lines().next()).collect();
    assert!(is_good, "FUZZ_SEED={seed} {reasons:#?}\n{}\n{panics:#?}", failures.join("\n"));
}
