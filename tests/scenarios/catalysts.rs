//! The catalysts service over simulated upstreams: lists with and without a paid key, anchors, dates that move, watches, outages, rebuilds.

use std::collections::{BTreeMap, BTreeSet};
use std::path::Path;
use std::sync::Arc;

use catalysts::record::verify_hash;
use catalysts::rules::CatalystsRules;
use fold::records::Rules;
use jiff::civil::{Date, date};
use jiff::tz::TimeZone;
use projector::rebuild::Progress;
use schemas::clock::Clock;
use schemas::views::accounts::Tier;
use serde_json::{Value, json};

use crate::api::HttpApi;
use crate::commands::NOWHERE;
use crate::engine::{Engine, SimulatedUpstreams, fixed_clock};
use crate::process::{Server, highwater, send, try_send};

const FRIDAY: Date = date(2026, 11, 20);
const MONDAY: Date = date(2026, 11, 23);
/// The upstreams that the service is decided from.
const UPSTREAMS: [&str; 3] = ["clinical_trials", "edgar", "federal_register"];
const CALDERINIB: &str = "pdufa:0000960001:calderinib";

/// The engine and its API on one day.
struct OneDay {
    engine: Engine,
    api: HttpApi,
    key: String,
}

impl OneDay {
    /// Opens a directory on a day, and syncs the upstreams. Streams that fail are counted.
    async fn begin(dir: &Path, simulated: &SimulatedUpstreams, day: Date) -> (Self, usize) {
        simulated.sim.set_today(day);
        let clock = Clock::Fixed(day.at(12, 0, 0, 0).to_zoned(TimeZone::UTC).unwrap().timestamp());
        let engine = Engine::open(dir, clock).await;
        let mut failed = 0;
        for name in UPSTREAMS {
            failed += engine.run(name, &simulated.settings()).await.iter().filter(|outcome| outcome.is_err()).count();
        }
        engine.wait_for_view(CatalystsRules::TABLES.view, CatalystsRules::INPUTS).await;
        let api = HttpApi::start(&engine, clock, None);
        let key = api.key(Tier::Pro).await;
        (Self { engine, api, key }, failed)
    }

    fn ask(&self, method: &str, path: &str, key: &str, body: &Value) -> (u16, Value) {
        let body = if body.is_null() { String::new() } else { body.to_string() };
        let headers = [("x-api-key", key)];
        let headers: &[(&str, &str)] = if key.is_empty() { &[] } else { &headers };
        let answer = tokio::task::block_in_place(|| send(self.api.address, method, &format!("/catalysts{path}"), headers, &body));
        (answer.status, serde_json::from_slice(&answer.body).unwrap())
    }

    /// Reads a path without a key.
    fn free(&self, path: &str) -> Value {
        let (status, answer) = self.ask("GET", path, "", &Value::Null);
        assert_eq!(status, 200, "{path}: {answer}");
        answer
    }

    /// Reads a path with a key of tier pro.
    fn paid(&self, path: &str) -> Value {
        let (status, answer) = self.ask("GET", path, &self.key, &Value::Null);
        assert_eq!(status, 200, "{path}: {answer}");
        answer
    }

    /// Reads all changes with the paid key.
    fn changes(&self) -> Vec<Value> {
        let (mut all, mut start) = (Vec::new(), "start=earliest".to_owned());
        loop {
            let page = self.paid(&format!("/v1/changes?limit=200&{start}"));
            all.extend(page["changes"].as_array().unwrap().iter().cloned());
            if page["hasMore"] != true {
                return all;
            }
            start = format!("cursor={}", page["cursor"].as_str().unwrap());
        }
    }

    async fn end(self) {
        self.api.stop().await;
        self.engine.close().await;
    }
}

fn events(answer: &Value) -> Vec<&Value> {
    answer["catalysts"].as_array().unwrap().iter().collect()
}

fn ids(answer: &Value) -> Vec<String> {
    events(answer).iter().map(|event| event["id"].as_str().unwrap().to_owned()).collect()
}

fn text<'a>(event: &'a Value, field: &str) -> &'a str {
    event.pointer(&format!("/{field}")).and_then(Value::as_str).unwrap_or_else(|| panic!("{field} in {event}"))
}

/// Panics unless the five fields of the anchor have values and the hash can be computed again.
fn assert_anchored(event: &Value) {
    for field in ["source", "sourceUrl", "sourceField", "verifiedAsOf", "verifyHash"] {
        assert!(!text(event, field).is_empty(), "{field} in {event}");
    }
    let body: BTreeMap<String, String> = serde_json::from_value(event["verifyBody"].clone()).unwrap();
    assert_eq!(verify_hash(&body), text(event, "verifyHash"));
}

/// The properties of a component of a calendar, by name.
type Component = BTreeMap<String, String>;

/// Reads a calendar as a calendar program does (RFC 5545). Panics unless each line ends with CR and LF and has at most 75 bytes, a continued one begins with
/// a blank, components end in the order in which they began, and no property comes twice in one. Returns the calendar and its events.
fn read_calendar(bytes: &[u8]) -> (Component, Vec<Component>) {
    let text = std::str::from_utf8(bytes).expect("a line is cut within a character");
    let lines = text.strip_suffix("\r\n").expect("the last line has no end").split("\r\n");
    for line in lines {
        assert!((1..=75).contains(&line.len()) && !line.contains(['\r', '\n']), "{line:?}");
    }
    let whole = text.replace("\r\n ", "");
    let (mut calendar, mut planned, mut open) = (Component::new(), Vec::<Component>::new(), Vec::<&str>::new());
    for line in whole.split_terminator("\r\n") {
        let (name, value) = line.split_once(':').unwrap_or_else(|| panic!("{line:?} has no value"));
        match (name.split(';').next().unwrap(), open.last().copied()) {
            ("BEGIN", _) => {
                open.push(value);
                if value == "VEVENT" {
                    planned.push(Component::new());
                }
            }
            ("END", begun) => {
                assert_eq!(begun, Some(value), "another component ends");
                open.pop();
            }
            (name, begun) => {
                let component = if begun == Some("VEVENT") { planned.last_mut().unwrap() } else { &mut calendar };
                assert!(begun.is_some() && component.insert(name.to_owned(), unescaped(value)).is_none(), "{line:?} in {begun:?}");
            }
        }
    }
    assert!(open.is_empty(), "{open:?} do not end");
    (calendar, planned)
}

/// The value of a property without its escapes.
fn unescaped(value: &str) -> String {
    let (mut text, mut chars) = (String::new(), value.chars());
    while let Some(c) = chars.next() {
        text.push(match c {
            '\\' => match chars.next() {
                Some('n' | 'N') => '\n',
                Some(escaped @ ('\\' | ';' | ',')) => escaped,
                other => panic!("{other:?} is escaped in {value:?}"),
            },
            c => c,
        });
    }
    text
}

/// Panics unless the calendar over HTTP has the events of the lists, in their order, for a caller with a key in the address and for one without.
fn assert_calendar(day: &OneDay, paid: &Value, free: &Value) {
    let file_at = |query: &str| {
        let path = format!("/catalysts/v1/upcoming.ics{query}");
        let file = tokio::task::block_in_place(|| send(day.api.address, "GET", &path, &[], ""));
        assert_eq!((file.status, file.header("content-type")), (200, "text/calendar; charset=utf-8"), "{query}");
        assert!(file.header("content-disposition").contains("catalysts.ics"), "{}", file.head());
        file.body
    };
    let file = file_at(&format!("?days=365&limit=200&api_key={}", day.key));
    assert!(file.windows(3).any(|three| three == b"\r\n "), "no line is continued");
    let (calendar, planned) = read_calendar(&file);
    assert_eq!((calendar["VERSION"].as_str(), calendar["METHOD"].as_str()), ("2.0", "PUBLISH"));
    assert!(calendar["PRODID"].contains("Highwater") && calendar["X-WR-CALDESC"].contains(text(paid, "disclaimer")), "{calendar:?}");
    assert_eq!(planned.len(), events(paid).len());
    for (own, event) in planned.iter().zip(events(paid)) {
        let first = text(event, "window/from").replace('-', "");
        let after = text(event, "window/to").parse::<Date>().unwrap().tomorrow().unwrap().to_string().replace('-', "");
        assert_eq!((&own["DTSTART"], &own["DTEND"]), (&first, &after), "{event}");
        assert_eq!((&own["UID"], &own["SEQUENCE"]), (&format!("{}@catalysts.highwater", text(event, "id")), &event["slips"].to_string()));
        assert_eq!((own["STATUS"] == "CONFIRMED", own["CATEGORIES"].as_str()), (!text(event, "date").is_empty(), text(event, "kind")));
        assert!(own["DESCRIPTION"].contains(&format!("Hash: {}", text(event, "verifyHash"))) && !own["SUMMARY"].is_empty(), "{own:?}");
        assert!(own["DTSTAMP"].ends_with("T000000Z") && own.get("URL").is_none_or(|url| url == text(event, "sourceUrl")), "{own:?}");
    }
    let (calendar, planned) = read_calendar(&file_at("?days=365"));
    let own: Vec<&str> = planned.iter().map(|own| own["UID"].strip_suffix("@catalysts.highwater").unwrap()).collect();
    assert_eq!(own, ids(free));
    assert!(calendar["X-WR-CALDESC"].contains("the next 30 days only"), "{calendar:?}");
}

/// Proves that a caller without a key gets the next 30 days, at most 25 rows and a note, whatever horizon is asked for; that a paid key gets
/// all of them in order, of which the free ones are the first; that the calendar has the same events; and that each event has an anchor whose hash can be
/// computed again.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn free_lists_are_the_beginning_of_paid_ones() {
    let dir = tempfile::tempdir().unwrap();
    let simulated = SimulatedUpstreams::start(21, 60, fixed_clock()).await;
    let (day, failed) = OneDay::begin(dir.path(), &simulated, FRIDAY).await;
    assert_eq!(failed, 0);
    let free = day.free("/v1/upcoming");
    assert!((1..=25).contains(&events(&free).len()) && free["count"] == events(&free).len());
    for event in events(&free) {
        assert!(text(event, "window/from") <= "2026-12-20" && text(event, "window/to") >= "2026-11-20", "{event}");
        assert_eq!(event["status"], "upcoming");
    }
    assert_eq!((&free["tier"], &free["from"], &free["to"]), (&json!("free"), &json!("2026-11-20"), &json!("2026-12-20")));
    let far = day.free("/v1/upcoming?days=365");
    assert_eq!(ids(&far), ids(&free));
    assert!(text(&far, "note").contains("serves the next 30 days only, capped"), "{}", far["note"]);

    let paid = day.paid("/v1/upcoming?days=365&limit=200");
    assert!(ids(&paid).starts_with(&ids(&free)) && ids(&paid).len() > ids(&free).len());
    let order: Vec<(&str, &str)> = events(&paid).iter().map(|event| (text(event, "window/from"), text(event, "id"))).collect();
    assert!(order.is_sorted(), "{order:?}");
    assert_eq!(paid["tier"], "pro");
    // By its id, a caller without a key gets the events of the next 30 days, and no other.
    let path = |event: &Value| format!("/v1/records/{}", text(event, "id").replace(':', "%3A"));
    let near = events(&free)[0];
    let record = day.free(&path(near));
    assert_eq!((&record["id"], &record["record"]["verifyHash"]), (&near["id"], &near["verifyHash"]));
    assert_eq!(day.free(&format!("{}/history", path(near)))["versions"][0]["record"]["id"], near["id"]);
    let far = events(&paid).into_iter().find(|event| text(event, "window/from") > "2026-12-20").unwrap();
    for path in [path(far), format!("{}/history", path(far))] {
        let (status, problem) = day.ask("GET", &path, "", &Value::Null);
        assert_eq!((status, &problem["code"], &problem["parameter"]), (403, &json!("tier-too-low"), &json!("id")), "{path}");
        day.paid(&path);
    }
    let kinds: BTreeSet<&str> = events(&paid).iter().map(|event| text(event, "kind")).collect();
    assert_eq!(kinds, ["adcom", "pdufa", "readout"].into());
    for event in events(&paid) {
        assert_anchored(event);
        assert_eq!(text(event, "date").is_empty(), text(event, "datePrecision") != "day", "{event}");
    }
    // Pages join to the whole list.
    let (mut joined, mut after) = (Vec::new(), String::new());
    loop {
        let page = day.paid(&format!("/v1/upcoming?days=365&limit=7{after}"));
        joined.extend(ids(&page));
        match page["next"].as_str() {
            Some(next) => after = format!("&after={next}"),
            None => break,
        }
    }
    assert_eq!(joined.len() as u64, paid["total"].as_u64().unwrap());
    assert_eq!(&joined[..ids(&paid).len()], ids(&paid));

    for (query, field, value) in [("kind=readout", "kind", "readout"), ("kind=pdufa", "kind", "pdufa"), ("phase=phase3", "phase", "PHASE3")]
    {
        let found = day.paid(&format!("/v1/upcoming?days=730&limit=200&{query}"));
        assert!(!events(&found).is_empty() && events(&found).iter().all(|event| text(event, field).contains(value)), "{query}: {found}");
    }
    assert_calendar(&day, &paid, &free);
    let both = day.paid("/v1/upcoming?days=730&limit=200&phase=PHASE2&kind=readout");
    assert!(!events(&both).is_empty() && events(&both).iter().all(|event| text(event, "phase").split('/').any(|phase| phase == "PHASE2")));
    day.end().await;
}

/// Proves that two programmes of one filing are two events and one date in two exhibits is one, that device panels, tobacco, charters and
/// renewals are none, and that an event is found by its company and by its drug.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn events_of_companies_and_drugs() {
    let dir = tempfile::tempdir().unwrap();
    let simulated = SimulatedUpstreams::start(21, 60, fixed_clock()).await;
    let (day, _) = OneDay::begin(dir.path(), &simulated, FRIDAY).await;
    let all = day.paid("/v1/upcoming?days=730&limit=200&kind=pdufa");
    let found: BTreeSet<String> = ids(&all).into_iter().collect();
    for id in [
        CALDERINIB,
        "pdufa:0000960002:rowanlimab",
        "pdufa:0000960002:garnetumab",
        "pdufa:0000960003:heathicitinib",
        "pdufa:0000960003:ternavir",
    ] {
        assert!(found.contains(id), "{id} in {found:?}");
    }
    assert_eq!(found.len(), 7, "{found:?}");
    let event = |id: &str| events(&all).into_iter().find(|event| event["id"] == id).unwrap().clone();
    let calderinib = event(CALDERINIB);
    assert_eq!((text(&calderinib, "date"), text(&calderinib, "ticker"), text(&calderinib, "drug")), ("2027-01-04", "CLDB", "calderinib"));
    assert_eq!(text(&event("pdufa:0000960002:garnetumab"), "datePrecision"), "half");
    assert_eq!(text(&event("pdufa:0000960003:heathicitinib"), "datePrecision"), "quarter");
    // Of 27 tickers the shortest without a dash; a company that the list does not have has none.
    assert_eq!(text(&event("pdufa:0000960002:rowanlimab"), "ticker"), "ROWN");
    assert_eq!(text(&event("pdufa:0000960004:ivorynemab"), "ticker"), "");

    let meetings = day.paid("/v1/upcoming?days=730&limit=200&kind=adcom");
    assert_eq!(ids(&meetings), ["adcom:FDA-2026-N-4301", "adcom:FDA-2026-N-4302", "adcom:2026-16202"]);
    assert_eq!(text(events(&meetings)[0], "ticker"), "CLDB");
    assert_eq!(text(events(&meetings)[1], "window/to"), "2026-12-31");

    let company = day.paid("/v1/company?ticker=rown");
    assert!(ids(&company).contains(&"pdufa:0000960002:rowanlimab".to_owned()), "{company}");
    // Its name in any form and its number find the same; they find a company that the list does not have, too.
    for query in ["company=rowanfield+pharmaceuticals", "company=ROWANFIELD+PHARMACEUTICALS,+LTD.", "cik=960002"] {
        assert_eq!(ids(&day.paid(&format!("/v1/company?{query}"))), ids(&company), "{query}");
    }
    for query in ["cik=0000960004", "company=Ivorygate+Biosciences"] {
        assert!(ids(&day.paid(&format!("/v1/company?{query}"))).contains(&"pdufa:0000960004:ivorynemab".to_owned()), "{query}");
    }
    let misspelled = day.paid("/v1/company?company=Rowanfeild+Pharmaceuticals");
    assert!(text(&misspelled, "note").contains("the nearest known are \"rowanfield pharmaceuticals\""), "{misspelled}");
    let drug = day.paid("/v1/drug?name=ROWANL");
    let shared = |answer: &Value| events(answer).into_iter().find(|event| event["id"] == "pdufa:0000960002:rowanlimab").cloned();
    assert!(shared(&company).is_some() && shared(&company) == shared(&drug));
    // What is over comes last and is marked; without a paid key it is not shown.
    let over = day.paid("/v1/drug?name=larchazine");
    assert!(events(&over).iter().any(|event| event["status"] == "met"), "{over}");
    assert!(events(&day.free("/v1/drug?name=larchazine")).iter().all(|event| event["status"] == "upcoming"));
    // The free tools show at most five rows of the next 30 days, and how many they are.
    for (tool, arguments, path) in [
        ("catalyst_for_company", json!({"ticker": "CLDB"}), "/v1/company?ticker=CLDB&limit=200"),
        ("catalyst_for_drug", json!({"drug": "calderinib"}), "/v1/drug?name=calderinib&limit=200"),
    ] {
        let call = json!({ "jsonrpc": "2.0", "id": 1, "method": "tools/call", "params": { "name": tool, "arguments": arguments } });
        let (_, answer) = day.ask("POST", "/mcp", "", &call);
        let shown = &answer["result"]["structuredContent"];
        assert!((1..=5).contains(&events(shown).len()) && shown["count"] == events(shown).len(), "{answer}");
        assert!(events(shown).iter().all(|event| text(event, "window/from") <= "2026-12-20"), "{shown}");
        assert_eq!(shown["total"], day.free(path)["total"], "{tool}");
    }
    let nobody = day.paid("/v1/company?ticker=ZZZZ");
    assert_eq!((&nobody["count"], &nobody["total"]), (&json!(0), &json!(0)));
    assert!(text(&nobody, "note").contains("nothing recorded has the ticker \"ZZZZ\", the nearest known are"), "{nobody}");
    day.end().await;
}

/// Proves that bad values are refused with the name of their parameter and the nearest known value.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn bad_values_are_refused() {
    let dir = tempfile::tempdir().unwrap();
    let simulated = SimulatedUpstreams::start(21, 60, fixed_clock()).await;
    let (day, _) = OneDay::begin(dir.path(), &simulated, FRIDAY).await;
    for (path, parameter, part) in [
        ("/v1/upcoming?days=0", "days", "1"),
        ("/v1/upcoming?days=731", "days", "730"),
        ("/v1/upcoming?limit=201", "limit", "200"),
        ("/v1/upcoming?kind=readot", "kind", "readout"),
        ("/v1/upcoming?phase=PHASE33", "phase", "PHASE3"),
        ("/v1/upcoming?after=xyz", "after", "next"),
        ("/v1/company?ticker=", "ticker", ""),
        ("/v1/company?ticker=A%5EB", "ticker", "ticker"),
        ("/v1/drug?name=ab", "name", ""),
        ("/v1/drug?name=a+b+c", "name", "3 letters"),
        ("/v1/company", "ticker", "missing"),
        ("/v1/company?ticker=CLDB&cik=960001", "ticker", "either"),
        ("/v1/company?cik=CLDB", "cik", "10 digits"),
        ("/v1/company?company=--", "company", "neither letters nor digits"),
        ("/v1/company?ticker=ABCDEFGHIJK", "ticker", "10"),
        ("/v1/upcoming?days=soon", "days", "whole number"),
        ("/v1/upcoming?kind=pdufa&kind=adcom", "kind", "twice"),
    ] {
        let (status, problem) = day.ask("GET", path, &day.key, &Value::Null);
        assert_eq!((status, problem["parameter"].as_str()), (400, Some(parameter)), "{path}: {problem}");
        assert!(text(&problem, "detail").contains(part), "{path}: {problem}");
    }
    for (tool, arguments, parameter) in [
        ("upcoming_catalysts", json!({"days": 731}), "days"),
        ("upcoming_catalysts", json!({"kind": "earnings"}), "kind"),
        ("catalyst_for_company", json!({"ticker": ""}), "ticker"),
        ("catalyst_for_drug", json!({"drug": "ab"}), "drug"),
        ("catalyst_for_drug", json!({"drug": "a b c"}), "drug"),
    ] {
        let call = json!({ "jsonrpc": "2.0", "id": 1, "method": "tools/call", "params": { "name": tool, "arguments": arguments } });
        let (status, answer) = day.ask("POST", "/mcp", &day.key, &call);
        let document: Value = serde_json::from_str(text(&answer, "result/content/0/text")).unwrap();
        assert_eq!((status, &answer["result"]["isError"], text(&document, "parameter")), (200, &json!(true), parameter), "{answer}");
    }
    for (entity, path, detail) in [
        (json!({"type": "tickr", "value": "CLDB"}), "entity.type", "entity.type: \"tickr\""),
        (json!({"type": "kind", "value": "earnings"}), "entity.value", "entity.value: kind: \"earnings\" is not one of"),
    ] {
        let (status, problem) = day.ask("POST", "/v1/watchlist", &day.key, &json!({ "entity": entity }));
        assert_eq!((status, text(&problem, "parameter")), (400, path), "{problem}");
        assert!(text(&problem, "detail").starts_with(detail), "{problem}");
    }
    let (status, problem) = day.ask("POST", "/v1/watchlist", "", &json!({"entity": {"type": "ticker", "value": "CLDB"}}));
    assert!(matches!(status, 401..=403), "{status}: {problem}");
    day.end().await;
}

/// Proves that a date that moves by three months is one change with both dates, both windows and the number of days; that `asOf` before it
/// shows the old date and hash; that a watch on the company gets the change once; and that a replay gives the same digest.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_moved_date_is_one_change() {
    let dir = tempfile::tempdir().unwrap();
    let simulated = SimulatedUpstreams::start(21, 60, fixed_clock()).await;
    let (day, _) = OneDay::begin(dir.path(), &simulated, FRIDAY).await;
    let company = |day: &OneDay, query: &str| {
        let answer = day.paid(&format!("/v1/company?ticker=CLDB&days=730{query}"));
        events(&answer).into_iter().find(|event| event["id"] == CALDERINIB).unwrap().clone()
    };
    let before = company(&day, "");
    let watch = json!({"entity": {"type": "ticker", "value": "cldb"}});
    let (status, watch) = day.ask("POST", "/v1/watchlist", &day.key, &watch);
    assert_eq!(status, 201, "{watch}");
    let key = day.key.clone();
    day.end().await;

    let (day, _) = OneDay::begin(dir.path(), &simulated, MONDAY).await;
    let own = |changes: &[Value]| changes.iter().filter(|change| change["record"]["id"] == CALDERINIB).cloned().collect::<Vec<_>>();
    let changes = own(&day.changes());
    assert_eq!(changes.iter().map(|change| text(change, "event")).collect::<Vec<_>>(), ["new", "modified"], "{changes:?}");
    let moved = &changes[1];
    assert_eq!((text(moved, "dateBefore"), text(moved, "dateAfter")), ("2027-01-04", "2027-04-04"));
    assert_eq!((text(moved, "windowBefore/to"), text(moved, "windowAfter/from")), ("2027-01-04", "2027-04-04"));
    assert!((89..=92).contains(&moved["slipDays"].as_i64().unwrap()), "{moved}");
    assert_eq!(moved["record"]["slips"], 1);
    assert!(changes[0].get("dateBefore").is_none());

    let after = company(&day, "");
    assert_eq!((text(&after, "date"), text(&before, "date")), ("2027-04-04", "2027-01-04"));
    assert_ne!(after["verifyHash"], before["verifyHash"]);
    assert_eq!(company(&day, "&asOf=2026-11-22"), before);

    let path = format!("/v1/watchlist/{}?limit=200", text(&watch, "id"));
    let (status, matches) = day.ask("GET", &path, &key, &Value::Null);
    assert_eq!(status, 200, "{matches}");
    let matched: Vec<&Value> = matches["matches"].as_array().unwrap().iter().filter(|change| change["id"] == CALDERINIB).collect();
    assert_eq!(matched.len(), 1, "{matches}");

    // The meeting of two days moved, too, and the approved drug is over.
    let all = day.changes();
    let last = |id: &str| all.iter().rev().find(|change| change["record"]["id"] == id).unwrap().clone();
    assert_eq!(text(&last("adcom:FDA-2026-N-4302"), "dateAfter"), "2027-01-27");
    assert_eq!(text(&last("pdufa:0000960003:mossimycin"), "record/status"), "met");

    let catalysts = day.engine.projector.service("catalysts").unwrap();
    let digests = |history: bool| async move { catalysts.digest(history, None).await.unwrap().to_string() };
    let known = [digests(false).await, digests(true).await];
    let silent: Progress = Arc::new(|_, _| ());
    assert!(catalysts.replay(&silent).await.unwrap() > 0);
    assert_eq!([digests(false).await, digests(true).await], known);
    day.end().await;
}

/// Proves that a trial that is terminated, withdrawn or suspended leaves the list and is `cancelled` in one change, that a completed one is
/// `met`, that a postponed one is one change with both dates, that a month is no day, and that lists as of the day before still hold all.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn stopped_trials_leave_the_list() {
    let dir = tempfile::tempdir().unwrap();
    let simulated = SimulatedUpstreams::start(21, 60, fixed_clock()).await;
    let (day, _) = OneDay::begin(dir.path(), &simulated, FRIDAY).await;
    let listed = |day: &OneDay, query: &str| -> BTreeMap<String, Value> {
        let answer = day.paid(&format!("/v1/upcoming?days=730&limit=200&kind=readout{query}"));
        assert_eq!(answer["total"], answer["count"], "one page holds all");
        let own = events(&answer).into_iter().filter(|event| text(event, "title").starts_with("Calderinib in a Trial That"));
        own.map(|event| (text(event, "title").rsplit(' ').next().unwrap().to_owned(), event.clone())).collect()
    };
    let before = listed(&day, "");
    assert_eq!(before.keys().collect::<Vec<_>>(), ["Completed", "Enrolls", "Month", "Paused", "Postponed", "Soon", "Stopped"]);
    let month = &before["Month"];
    assert_eq!((text(month, "date"), text(month, "datePrecision")), ("", "month"));
    assert_eq!((text(month, "window/from"), text(month, "window/to")), ("2027-06-01", "2027-06-30"));
    assert_eq!((text(month, "verifyBody/date"), text(month, "ticker"), text(month, "drug")), ("2027-06", "CLDB", "Calderinib"));
    // Its month begins within 30 days, but not within 10.
    let soon = text(&before["Soon"], "id").to_owned();
    assert_eq!((text(&before["Soon"], "window/from"), text(&before["Soon"], "date")), ("2026-12-01", ""));
    assert!(ids(&day.paid("/v1/upcoming?days=30&limit=200")).contains(&soon));
    assert!(!ids(&day.paid("/v1/upcoming?days=10&limit=200")).contains(&soon));
    // A trial that was stopped before it was first read has no record.
    assert!(day.changes().iter().all(|change| change["record"]["title"] != "Calderinib in a Trial That Was Stopped"));
    day.end().await;

    let (day, failed) = OneDay::begin(dir.path(), &simulated, MONDAY).await;
    assert_eq!(failed, 0);
    let after = listed(&day, "");
    assert_eq!(after.keys().collect::<Vec<_>>(), ["Month", "Postponed", "Soon"]);
    assert_eq!(listed(&day, "&asOf=2026-11-22"), before);
    assert_eq!(after["Month"], before["Month"], "a reading that finds the event as it was is no change");
    let changes = day.changes();
    let changes_of = |id: &str| changes.iter().filter(|change| change["record"]["id"] == id).collect::<Vec<_>>();
    for (name, status) in
        [("Stopped", "cancelled"), ("Enrolls", "cancelled"), ("Paused", "cancelled"), ("Completed", "met"), ("Postponed", "upcoming")]
    {
        let own = changes_of(text(&before[name], "id"));
        // Before, the list of tickers may have come after the trial.
        let (last, earlier) = own.split_last().unwrap();
        assert_eq!((text(last, "event"), text(last, "record/status")), ("modified", status), "{name}");
        assert!(earlier.iter().all(|change| change["record"]["verifyHash"] == before[name]["verifyHash"]), "{name}: {own:?}");
        assert_eq!(earlier.last().map(|change| &change["record"]), Some(&before[name]), "{name}");
        assert_anchored(&last["record"]);
    }
    let last = |name: &str| *changes_of(text(&before[name], "id")).last().unwrap();
    let moved = last("Postponed");
    assert_eq!((text(moved, "dateBefore"), text(moved, "dateAfter")), ("2027-02-03", "2027-05-03"));
    assert_eq!((moved["slipDays"].as_i64(), moved["record"]["slips"].as_i64()), (Some(89), Some(1)));
    let completed = last("Completed");
    assert_eq!((text(completed, "record/dateType"), text(completed, "record/verifyBody/type")), ("ACTUAL", "ACTUAL"));
    // What is over is found by its company, after what is ahead.
    let company = day.paid("/v1/company?ticker=CLDB&days=730&limit=200");
    let statuses: Vec<bool> = events(&company).iter().map(|event| event["status"] == "upcoming").collect();
    assert!(statuses.is_sorted_by(|one, other| one >= other) && statuses.contains(&false), "{statuses:?}");
    day.end().await;
}

/// Proves that a search that fails withdraws nothing and is stated after days, that reading continues when it works again, and that
/// the list of readouts holds upcoming ones only.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn an_outage_is_not_an_absence() {
    let dir = tempfile::tempdir().unwrap();
    let simulated = SimulatedUpstreams::start(21, 60, fixed_clock()).await;
    let (day, _) = OneDay::begin(dir.path(), &simulated, FRIDAY).await;
    let before = ids(&day.paid("/v1/upcoming?days=730&limit=200&kind=pdufa"));
    day.end().await;

    simulated.faults(&[("html", 1.0)], "edgar.search");
    let (day, failed) = OneDay::begin(dir.path(), &simulated, date(2026, 11, 24)).await;
    assert_eq!(failed, 1);
    let during = day.paid("/v1/upcoming?days=730&limit=200&kind=pdufa");
    let still: BTreeSet<String> = ids(&during).into_iter().collect();
    // One date passed meanwhile; nothing was withdrawn.
    assert!(before.iter().filter(|id| !still.contains(*id)).all(|id| id.ends_with(":mossimycin")), "{before:?} {still:?}");
    assert!(day.changes().iter().all(|change| change["record"]["kind"] != "pdufa" || change["record"]["status"] != "withdrawn"));
    assert!(text(&during, "note").contains("has not been read completely since 2026-11-20"), "{}", during["note"]);
    day.end().await;

    simulated.faults(&[], "");
    let (day, failed) = OneDay::begin(dir.path(), &simulated, date(2027, 1, 29)).await;
    assert_eq!(failed, 0);
    let changes = day.changes();
    assert!(changes.iter().any(|change| change["record"]["id"] == CALDERINIB && change["dateAfter"] == "2027-04-04"));
    let listed = day.paid("/v1/upcoming?days=730&limit=200&kind=readout");
    let current: BTreeMap<&str, &Value> = changes.iter().map(|change| (text(change, "record/id"), &change["record"])).collect();
    for id in ids(&listed) {
        assert_eq!(current[id.as_str()]["status"], "upcoming", "{id}");
    }
    day.end().await;
}

/// Proves that the tool with the full horizon costs 20,000 units of the token and says so in its result, with a preview, and that the tools
/// for a company and a drug are free and show at most five events.
#[test]
fn the_full_horizon_is_sold_as_a_tool() {
    let dir = tempfile::tempdir().unwrap();
    let mut command = highwater(&dir.path().join("data"), NOWHERE, &["serve"]);
    command.env("HIGHWATER_PAYMENTS__PAY_TO", "0x209693Bc6afc0C5328bA36FaF03C514EF312287C");
    let server = Server::ready(command);
    let call = |name: &str, arguments: Value| -> (u16, Value) {
        let call = json!({ "jsonrpc": "2.0", "id": 1, "method": "tools/call", "params": { "name": name, "arguments": arguments } });
        let accept = ("accept", "application/json, text/event-stream");
        let answer = try_send(server.address, "POST", "/catalysts/mcp", &[accept], &call.to_string()).unwrap();
        (answer.status, serde_json::from_slice::<Value>(&answer.body).unwrap()["result"].take())
    };
    let (status, unpaid) = call("upcoming_catalysts", json!({"days": 365}));
    assert_eq!((status, &unpaid["isError"]), (200, &json!(true)), "{unpaid}");
    assert_eq!(unpaid["structuredContent"]["accepts"][0]["amount"], "20000", "{unpaid}");
    assert!(unpaid["structuredContent"]["preview"].is_object(), "{unpaid}");
    for (name, arguments) in [("catalyst_for_company", json!({"ticker": "CLDB"})), ("catalyst_for_drug", json!({"drug": "calderinib"}))] {
        let (status, answer) = call(name, arguments);
        assert_eq!((status, answer["isError"].as_bool().unwrap_or(false)), (200, false), "{answer}");
        assert!(answer["structuredContent"]["count"].as_u64().unwrap() <= 5);
    }
}
