//! The aviation service over the simulated Federal Register: matches of a model, the assessment and the file of a stored fleet, and the watch of one.

use std::path::Path;
use std::sync::Arc;

use jiff::civil::{Date, date};
use schemas::clock::Clock;
use schemas::topics::DIRECTIVES;
use schemas::views::accounts::Tier;
use schemas::views::aviation::TABLES;
use serde_json::{Value, json};

use crate::api::HttpApi;
use crate::engine::{Engine, SimulatedUpstreams, fixed_clock, noon};
use crate::payments::backend::PaymentBackend;
use crate::process::{Answer, send, wait_for};
use crate::webhooks::receiver::{Message, Receiver};

const FRIDAY: Date = date(2026, 11, 20);
/// The day on which the simulated journal publishes a directive for the Piper PA-28-140, which replaces an earlier one.
const MONDAY: Date = date(2026, 11, 23);
const REPLACED: &str = "2026-15-05";
const REPLACING: &str = "2026-23-04";
const SEAT_RAILS: &str = "2011-10-09";
const HEADER: &str = "tail,make,model,serial,hoursTIS,ad_number,title,product,match,scope,effective_date,recurring,interval,last_done_date,last_done_hours,\
    next_due_hours,next_due_date,status,cannot_decide,superseded_by,url,as_of";

/// The engine and its API on one day.
struct OneDay {
    engine: Engine,
    api: HttpApi,
}

impl OneDay {
    /// Opens a directory on a day, and reads the journal.
    async fn begin(dir: &Path, simulated: &SimulatedUpstreams, backend: &PaymentBackend, day: Date) -> Self {
        simulated.sim.set_today(day);
        let clock = Clock::Fixed(noon(day));
        let engine = Engine::open(dir, clock).await;
        for outcome in engine.run("federal_register", &simulated.settings()).await {
            outcome.unwrap();
        }
        engine.wait_for_view(TABLES.view, std::slice::from_ref(&DIRECTIVES)).await;
        let api = HttpApi::with_payments(services::all, &engine, clock, backend);
        Self { engine, api }
    }

    fn send(&self, method: &str, path: &str, key: &str, body: &Value) -> Answer {
        let body = if body.is_null() { String::new() } else { body.to_string() };
        let headers = [("x-api-key", key), ("accept", "application/json, text/event-stream")];
        let headers = if path == "/mcp" { &headers[..] } else { &headers[..1] };
        tokio::task::block_in_place(|| send(self.api.address, method, &format!("/aviation{path}"), headers, &body))
    }

    /// Makes a request that must get the given status, and returns the JSON of its answer.
    fn ask(&self, status: u16, method: &str, path: &str, key: &str, body: &Value) -> Value {
        let answer = self.send(method, path, key, body);
        let json: Value = serde_json::from_slice(&answer.body).unwrap();
        assert_eq!(answer.status, status, "{method} {path} {body}: {json}");
        json
    }

    /// The directives that may apply to a make and model, with further parameters.
    fn matches(&self, query: &str) -> Vec<Value> {
        self.ask(200, "GET", &format!("/v1/match?{query}"), "", &Value::Null)["directives"].as_array().unwrap().clone()
    }

    async fn end(self) {
        self.api.stop().await;
        self.engine.close().await;
    }
}

fn numbers(directives: &[Value]) -> Vec<&str> {
    directives.iter().map(|directive| directive["adNumber"].as_str().unwrap()).collect()
}

fn directive<'a>(directives: &'a Value, number: &str) -> &'a Value {
    directives.as_array().unwrap().iter().find(|one| one["adNumber"] == number).unwrap_or_else(|| panic!("{number} in {directives}"))
}

/// The fleet: a Piper, and a Cessna whose seat rails were inspected.
fn fleet() -> Value {
    json!({ "aircraft": [
        { "tail": "N5432W", "make": "Piper", "model": "PA-28-140", "hoursTIS": 4000.5 },
        {
            "tail": "N172SP", "make": "Cessna", "model": "172S", "hoursTIS": 1262.5,
            "compliance": [{ "ad": SEAT_RAILS, "date": "2026-03-10", "hours": 1200.0 }],
        },
    ] })
}

/// Proves that all spellings of a model get the same directives, each match with the text that names it; that a text which cannot be read is possible for
/// every model of its make; that the tool shows recurring directives only; and that a directive with a correction is one with two documents.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn directives_of_a_model() {
    let (dir, backend) = (tempfile::tempdir().unwrap(), PaymentBackend::open());
    let simulated = SimulatedUpstreams::start(21, 60, fixed_clock()).await;
    let day = OneDay::begin(dir.path(), &simulated, &backend, MONDAY).await;

    let found = day.matches("make=Piper&model=PA-28-140");
    assert!(numbers(&found).contains(&REPLACING) && !numbers(&found).contains(&REPLACED), "{:?}", numbers(&found));
    for spelling in
        ["make=Piper&model=PA28-140", "make=Piper&model=Cherokee%20140", "make=The%20New%20Piper%20Aircraft,%20Inc.&model=pa%2028%20140"]
    {
        assert_eq!(numbers(&day.matches(spelling)), numbers(&found), "{spelling}");
    }
    for one in found.iter().filter(|one| one["match"] == "MATCH") {
        assert!(one["span"].as_str().unwrap().contains("28"), "{one}");
    }
    let all = json!(day.matches("make=Piper&model=PA-28-140&status=all"));
    let replaced = directive(&all, REPLACED);
    assert_eq!((&replaced["status"], &replaced["supersededBy"]), (&json!("superseded"), &json!(REPLACING)));
    let unread = json!(day.matches("make=Piper&model=PA-46-350P"));
    assert_eq!(directive(&unread, "96-10-12")["match"], "POSSIBLE");
    let problem = day.ask(400, "GET", "/v1/match?make=Piper", "", &Value::Null);
    assert_eq!(problem["parameter"], "model", "{problem}");
    let unknown = day.ask(200, "GET", "/v1/match?make=Pipper&model=PA-28-140", "", &Value::Null);
    assert_eq!((&unknown["total"], &unknown["directives"]), (&json!(0), &json!([])), "{unknown}");
    assert!(unknown["note"].as_str().unwrap().contains("nearest known makes are PIPER"), "{unknown}");
    let unknown = day.ask(200, "GET", "/v1/match?make=Piper&model=PA-28-14O", "", &Value::Null);
    assert!(
        unknown["note"].as_str().unwrap().contains("names the model \"PA-28-14O\"; the nearest known models of the make are PA-28-140"),
        "{unknown}"
    );

    let record = day.ask(200, "GET", "/v1/records/2026-20-12", "", &Value::Null);
    assert_eq!((record["record"]["documents"].as_array().unwrap().len(), &record["record"]["status"]), (2, &json!("corrected")));

    let arguments = json!({ "make": "Cessna", "model": "172S", "hoursTIS": 1300.1, "lastDone": [{ "ad": SEAT_RAILS, "hours": 1200.0, "date": "2026-03-10" }] });
    let call = json!({ "jsonrpc": "2.0", "id": 1, "method": "tools/call", "params": { "name": "recurring_due", "arguments": arguments } });
    let answer = day.ask(200, "POST", "/mcp", "", &call);
    let due = &answer["result"]["structuredContent"];
    assert!(due["directives"].as_array().unwrap().iter().all(|one| one["recurring"] == "yes"), "{due}");
    assert_eq!(directive(&due["directives"], SEAT_RAILS)["due"]["status"], "OVERDUE");
    // A day is named by a time of it, too.
    let on = |date: &str| {
        let mut call = call.clone();
        call["params"]["arguments"]["date"] = json!(date);
        day.ask(200, "POST", "/mcp", "", &call)["result"]["structuredContent"]["directives"].clone()
    };
    let due = on("2026-11-20");
    assert!(!due.as_array().unwrap().is_empty(), "{due}");
    assert_eq!((&on("2026-11-20T23:30:00Z"), &on("2026-11-21T00:30:00+02:00")), (&due, &due));
    day.end().await;
}

/// Proves who may assess how many aircraft and store a fleet; that the answer has the worked dates; that the file has its columns and lines; and that
/// nothing is left of a deleted fleet.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_stored_fleet() {
    let (dir, backend) = (tempfile::tempdir().unwrap(), PaymentBackend::open());
    let simulated = SimulatedUpstreams::start(21, 60, fixed_clock()).await;
    let day = OneDay::begin(dir.path(), &simulated, &backend, FRIDAY).await;
    let (pro, plus) = (day.api.key(Tier::Pro).await, day.api.key(Tier::FleetPlus).await);

    let terms = day.ask(402, "POST", "/v1/assess", "", &fleet());
    assert_eq!((&terms["preview"]["count"], terms["preview"].get("aircraft")), (&json!(2), None), "{terms}");
    let call = json!({ "jsonrpc": "2.0", "id": 1, "method": "tools/call", "params": { "name": "assess_fleet", "arguments": fleet() } });
    let answer = day.ask(200, "POST", "/mcp", "", &call);
    let offered = &answer["result"]["structuredContent"];
    assert!(offered["accepts"].as_array().is_some_and(|accepts| !accepts.is_empty()), "{offered}");
    assert_eq!((&offered["preview"], offered.get("aircraft")), (&terms["preview"], None), "the tool shows the counts of the route");
    let six: Vec<Value> = (1..=6).map(|number| json!({ "tail": format!("N{number}"), "make": "Piper", "model": "PA-28-140" })).collect();
    let problem = day.ask(400, "POST", "/v1/assess", &pro, &json!({ "aircraft": six }));
    assert!(problem["detail"].as_str().unwrap().contains("at most 5"), "{problem}");
    let formula = json!({ "aircraft": [{ "tail": "=1+1", "make": "Piper", "model": "PA-28-140" }] });
    assert_eq!(day.ask(400, "POST", "/v1/assess", &plus, &formula)["code"], "body-invalid");

    assert_eq!(day.ask(403, "GET", "/v1/audit.csv", &pro, &Value::Null)["code"], "tier-too-low");
    assert_eq!(day.ask(404, "GET", "/v1/audit.csv", &plus, &Value::Null)["code"], "not-found");
    let assessed = day.ask(200, "POST", "/v1/assess", &plus, &fleet());
    assert_eq!((&assessed["stored"], &assessed["fleet"], &assessed["count"]), (&json!(true), &json!("default"), &json!(2)));
    let rails = &directive(&assessed["aircraft"][1]["directives"], SEAT_RAILS)["due"];
    assert_eq!((&rails["status"], &rails["byDate"]), (&json!("DUE_SOON"), &json!("2027-03-10")));
    assert_eq!((rails["byHours"].as_f64(), rails["hoursLeft"].as_f64()), (Some(1300.0), Some(37.5)));
    assert_eq!(directive(&assessed["aircraft"][0]["directives"], REPLACED)["due"]["status"], "DUE_UNKNOWN");

    let file = day.send("GET", "/v1/audit.csv", &plus, &Value::Null);
    assert_eq!((file.status, file.header("content-type")), (200, "text/csv; charset=utf-8"));
    assert_eq!((file.header("transfer-encoding"), file.header("accept-ranges"), file.header("content-length")), ("chunked", "none", ""));
    assert_eq!(file.header("answer-note"), assessed["note"].as_str().unwrap_or_default());
    let text = String::from_utf8(file.body).unwrap();
    let lines: Vec<&str> = text.strip_suffix("\r\n").unwrap().split("\r\n").collect();
    let rows: usize = assessed["aircraft"].as_array().unwrap().iter().map(|one| one["directives"].as_array().unwrap().len()).sum();
    assert_eq!((lines[0], lines.len()), (HEADER, rows + 1));
    let rails = lines.iter().find(|line| line.starts_with("N172SP,") && line.contains(SEAT_RAILS)).unwrap();
    assert!(rails.contains(",2026-03-10,") && rails.contains(",2027-03-10,DUE_SOON,"), "{rails}");

    // What the answer with a misspelt make notes is next to its file, too.
    let misspelt = json!({ "aircraft": [{ "tail": "N1", "make": "Pipper", "model": "PA-28-140" }], "fleet": "misspelt" });
    let assessed = day.ask(200, "POST", "/v1/assess", &plus, &misspelt);
    let file = day.send("GET", "/v1/audit.csv?fleet=misspelt", &plus, &Value::Null);
    assert!(file.header("answer-note").contains("N1: the make \"Pipper\" is not known"), "{assessed}");
    assert_eq!(file.header("answer-note"), assessed["note"]);
    day.ask(200, "DELETE", "/v1/fleet/misspelt", &plus, &Value::Null);

    let fleets = day.ask(200, "GET", "/v1/fleet", &plus, &Value::Null);
    assert_eq!((&fleets["fleets"][0]["name"], &fleets["fleets"][0]["count"]), (&json!("default"), &json!(2)));
    day.ask(200, "DELETE", "/v1/fleet/default", &plus, &Value::Null);
    day.ask(404, "GET", "/v1/audit.csv", &plus, &Value::Null);
    day.ask(404, "DELETE", "/v1/fleet/default", &plus, &Value::Null);
    day.end().await;
}

/// Proves that a directive that the journal publishes for an aircraft of a watched fleet is a match of the watch and is delivered, signed, under the name of
/// the fleet; that other directives are not; and that an answer as of the day before shows the replaced directive as it was.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn the_watch_of_a_fleet() {
    let (dir, backend, receiver) = (tempfile::tempdir().unwrap(), PaymentBackend::open(), Receiver::open(|_, _| 204));
    let simulated = SimulatedUpstreams::start(21, 60, fixed_clock()).await;
    let day = OneDay::begin(dir.path(), &simulated, &backend, FRIDAY).await;
    let key = day.api.key(Tier::FleetPlus).await;
    let wanted = json!({ "fleet": "default", "webhook": receiver.url("hook") });
    assert_eq!(day.ask(404, "POST", "/v1/watchlist", &key, &wanted)["parameter"], "fleet", "a fleet that is not stored cannot be watched");
    day.ask(200, "POST", "/v1/assess", &key, &fleet());
    let made = day.ask(201, "POST", "/v1/watchlist", &key, &wanted);
    let (id, secret) = (made["id"].as_str().unwrap(), made["secret"].as_str().unwrap());
    day.end().await;

    let day = OneDay::begin(dir.path(), &simulated, &backend, MONDAY).await;
    let matchers = services::matchers(&day.api.context.settings);
    let sending = tokio::spawn(webhooks::sender::run(Arc::clone(&day.api.context), matchers, "test".to_owned()));
    let watch = day.ask(200, "GET", &format!("/v1/watchlist/{id}?limit=200"), &key, &Value::Null);
    let matched: Vec<&str> = watch["matches"].as_array().unwrap().iter().map(|one| one["adNumber"].as_str().unwrap()).collect();
    assert!(matched.contains(&REPLACING) && !matched.contains(&SEAT_RAILS), "{matched:?}");
    let find = || {
        let messages: Vec<Value> = receiver.accepted("hook", secret).iter().map(Message::json).collect();
        messages.into_iter().find(|message| message["changes"].as_array().unwrap().iter().any(|one| one["adNumber"] == REPLACING))
    };
    let message = tokio::task::block_in_place(|| wait_for("the message of the watch", find));
    assert_eq!((&message["event"], &message["fleet"]), (&json!("aviation.directive"), &json!("default")));
    assert!(message["disclaimer"].is_string(), "{message}");

    let before = json!(day.matches("make=Piper&model=PA-28-140&asOf=2026-11-20"));
    assert_eq!(directive(&before, REPLACED)["status"], "current");
    sending.abort();
    day.end().await;
}
