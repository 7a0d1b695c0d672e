//! The labs service as callers see it, over HTTP, with the awards of the simulator that have a part to play: each line of the contract's
//! acceptance list.

use std::collections::{BTreeMap, BTreeSet};
use std::net::Ipv4Addr;
use std::sync::Arc;

use access::suppression;
use fold::rows::Rows;
use fold::service::{Decided, Service};
use jiff::ToSpan;
use jiff::civil::{Date, date};
use labs::record::lexicon::{GENERAL, LEXICON};
use labs::rules::Labs;
use operation::{Body, Call, Caller, Form, Stage};
use projector::decider::Decider;
use projector::rebuild::{self, Progress};
use schemas::clock::{Clock, SimulatedClock};
use schemas::error_code::ErrorCode;
use schemas::event::Fact;
use schemas::facts::grants::GrantFact;
use schemas::position::Seq;
use schemas::views::accounts::Tier;
use schemas::views::deliveries::Delivery;
use schemas::views::watches::SavedItem;
use serde_json::{Value, json};
use tokio::sync::watch;

use crate::api::{HttpApi, LocalApi};
use crate::engine::{SimulatedUpstreams, noon};
use crate::other_rule::{OtherRule, Under};
use crate::process::{Answer, send};

const FIRST: Date = date(2026, 11, 20);
const AMENDED: &str = "Cryo-EM of an amended amount";
const GONE: &str = "Freezers of an award that vanishes";
const BACK: &str = "Freezers of an award that comes back";

/// A served engine that syncs grants, under a clock that the test moves.
struct Fixture {
    api: LocalApi,
    http_api: HttpApi,
    simulated: SimulatedUpstreams,
    clock: &'static SimulatedClock,
    key: String,
    stop: watch::Sender<bool>,
    _dir: tempfile::TempDir,
}

impl Fixture {
    /// Serves the state after the first sync of all grants.
    async fn begin() -> Self {
        let dir = tempfile::tempdir().unwrap();
        let clock = SimulatedClock::new(noon(FIRST), Clock::Fixed(noon(FIRST)));
        let simulated = SimulatedUpstreams::start(41, 60, Clock::Simulated(clock)).await;
        let api = LocalApi::open_with(dir.path(), Clock::Simulated(clock), &["labs", "research"]).await;
        let stop = crate::concurrent_processes::run_heads_only(&api.engine).await;
        let mut this = {
            let http_api = HttpApi::with_terms(&api.engine, Clock::Simulated(clock));
            Self { api, http_api, simulated, clock, key: String::new(), stop, _dir: dir }
        };
        this.sync(0).await;
        let projector = Arc::clone(&this.api.engine.projector);
        this.api.engine.start(projector, "projector");
        this.key = this.http_api.key(Tier::Pro).await;
        this
    }

    /// Syncs the grants so many days after the first sync, and decides them.
    async fn sync(&self, days: i64) {
        let day = FIRST.saturating_add(days.days());
        self.clock.move_to(noon(day));
        self.simulated.sim.set_today(day);
        let mut settings = self.simulated.settings();
        settings.window_days = 30;
        for outcome in self.api.engine.run("nih_reporter", &settings).await {
            outcome.unwrap();
        }
        self.api.decide().await;
    }

    async fn send(&self, method: &str, path: &str, headers: &[(&str, &str)], body: String) -> Answer {
        let (address, method, path) = (self.http_api.address, method.to_owned(), path.to_owned());
        let headers: Vec<(String, String)> = headers.iter().map(|(name, value)| ((*name).to_owned(), (*value).to_owned())).collect();
        let sent = move || {
            let headers: Vec<(&str, &str)> = headers.iter().map(|(name, value)| (name.as_str(), value.as_str())).collect();
            send(address, &method, &path, &headers, &body)
        };
        tokio::task::spawn_blocking(sent).await.unwrap()
    }

    /// Reads JSON that must come with a status.
    async fn get(&self, path: &str, key: &str, status: u16) -> Value {
        let answer = self.send("GET", path, &[("x-api-key", key)], String::new()).await;
        let body: Value = serde_json::from_slice(&answer.body).unwrap();
        assert_eq!(answer.status, status, "{path}: {body}");
        body
    }

    /// All leads of a query, page by page, and the totals that the pages state.
    async fn leads(&self, query: &str) -> (Vec<Value>, Vec<Value>) {
        let (mut leads, mut totals, mut after) = (Vec::new(), Vec::new(), String::new());
        loop {
            let page = self.get(&format!("/labs/v1/leads?{query}&limit=7{after}"), &self.key, 200).await;
            assert_eq!(page["count"], page["leads"].as_array().unwrap().len());
            leads.extend(page["leads"].as_array().unwrap().clone());
            totals.push(page["total"].clone());
            match page["next"].as_str() {
                Some(next) => after = format!("&after={next}"),
                None => return (leads, totals),
            }
        }
    }

    /// All changes from a place on, and the place after them.
    async fn changes(&self, from: &str) -> (Vec<Value>, String) {
        let (mut changes, mut place) = (Vec::new(), from.to_owned());
        loop {
            let page = self.get(&format!("/labs/v1/changes?limit=200&{place}"), &self.key, 200).await;
            changes.extend(page["changes"].as_array().unwrap().clone());
            place = format!("cursor={}", page["cursor"].as_str().unwrap());
            if page["hasMore"] != true {
                return (changes, place);
            }
        }
    }

    async fn call_tool(&self, tool: &str, arguments: Value, key: &str) -> Value {
        let body = json!({"jsonrpc": "2.0", "id": 1, "method": "tools/call", "params": {"name": tool, "arguments": arguments}});
        let answer = self.send("POST", "/labs/mcp", &[("x-api-key", key)], body.to_string()).await;
        serde_json::from_slice::<Value>(&answer.body).unwrap()["result"].take()
    }

    async fn end(self) {
        self.stop.send_replace(true);
        self.http_api.stop().await;
        self.api.close().await;
    }
}

fn texts<'a>(items: &'a [Value], field: &str) -> BTreeSet<&'a str> {
    items.iter().map(|item| item[field].as_str().unwrap()).collect()
}

/// Proves that callers without a paid key see samples with four fields, of one category and state, and nothing that is hidden.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn free_callers_see_samples() {
    let fixture = Fixture::begin().await;
    let sample = fixture.get("/labs/sample", "", 200).await;
    let rows = sample["leads"].as_array().unwrap();
    assert_eq!((&sample["tier"], &sample["from"], &sample["to"]), (&json!("free"), &json!("2026-11-07"), &json!("2026-11-20")));
    assert!((1..=12).contains(&rows.len()) && sample["count"] == rows.len() && sample["note"].is_string(), "{sample}");
    for row in rows {
        let names: Vec<&String> = row.as_object().unwrap().keys().collect();
        assert_eq!(names, ["amountBand", "category", "month", "state"]);
    }
    let (whole, _) = fixture.leads("days=14").await;
    for query in ["", "?state=OH", "?category=Microscopy%20and%20imaging"] {
        let shown = fixture.get(&format!("/labs/sample{query}"), "", 200).await["leads"].to_string();
        for lead in &whole {
            for field in ["pi", "org", "title", "noticeDate"] {
                let value = lead[field].as_str().unwrap();
                assert!(value.is_empty() || !shown.contains(value), "{field} {value} in {shown}");
            }
        }
    }
    let of_category = fixture.get("/labs/sample?category=Microscopy%20and%20imaging", "", 200).await;
    assert_eq!(texts(of_category["leads"].as_array().unwrap(), "category"), BTreeSet::from(["Microscopy and imaging"]));
    let of_state = fixture.get("/labs/sample?state=oh", "", 200).await;
    assert_eq!(texts(of_state["leads"].as_array().unwrap(), "state"), BTreeSet::from(["OH"]));
    fixture.end().await;
}

/// Proves that leads answer 402 with terms and a preview, whatever is asked for.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn unpaid_leads_get_terms_and_a_preview() {
    let fixture = Fixture::begin().await;
    let unpaid = fixture.send("GET", "/labs/v1/leads", &[], String::new()).await;
    let terms: Value = serde_json::from_slice(&unpaid.body).unwrap();
    assert_eq!((unpaid.status, &terms["accepts"][0]["maxAmountRequired"]), (402, &json!("20000")));
    assert!(!unpaid.header("payment-required").is_empty());
    let preview = &terms["preview"];
    assert_eq!(preview["leads"].as_array().unwrap().len(), 3);
    let (_, totals) = fixture.leads("days=14").await;
    assert_eq!(preview["total"], totals[0]);
    assert_eq!(preview["leads"][0].as_object().unwrap().len(), 4, "{preview}");
    // Neither days nor amounts nor `asOf` select what a preview shows and counts.
    for query in ["days=1", "days=365", "min_amount=500000", "asOf=2026-11-01", "limit=1&days=3&min_amount=1000000"] {
        let unpaid = fixture.send("GET", &format!("/labs/v1/leads?{query}"), &[], String::new()).await;
        let shown = serde_json::from_slice::<Value>(&unpaid.body).unwrap()["preview"].take();
        assert_eq!((&shown["leads"], &shown["total"]), (&preview["leads"], &preview["total"]), "{query}");
        let note = shown["note"].as_str().unwrap_or_default();
        assert!(note.contains("by `category` and `state` alone"), "{query}: {note}");
        assert_eq!(note.contains("this preview is about now"), query.contains("asOf"), "{query}: {note}");
    }
    // A call that would be refused once it is paid has none.
    for query in ["days=0", "after=x"] {
        let wrong = fixture.send("GET", &format!("/labs/v1/leads?{query}"), &[], String::new()).await;
        assert_eq!((wrong.status, &serde_json::from_slice::<Value>(&wrong.body).unwrap()["preview"]), (402, &Value::Null), "{query}");
    }
    fixture.end().await;
}

/// Proves that callers without a paid key see no changes and no record by its id, known or not.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn free_callers_see_no_record() {
    let fixture = Fixture::begin().await;
    // Ids are public numbers of awards: a record by its id would say which lead a row of a sample is. An unknown id is refused alike.
    let whole = fixture.get("/labs/v1/changes?start=earliest", &fixture.key, 200).await;
    assert!(whole["changes"][0]["record"]["id"].as_str().unwrap().starts_with("nih:"));
    let (leads, _) = fixture.leads("days=365").await;
    let free = fixture.http_api.key(Tier::Free).await;
    let refused = json!("tier-too-low");
    for id in [leads[0]["id"].as_str().unwrap(), leads.last().unwrap()["id"].as_str().unwrap(), "nih:0"] {
        let path = format!("/labs/v1/records/{}", id.replace(':', "%3A"));
        for path in
            [path.clone(), format!("{path}?asOf=2026-11-20"), format!("{path}/history"), "/labs/v1/changes?start=earliest".to_owned()]
        {
            for key in ["", free.as_str()] {
                assert_eq!(fixture.get(&path, key, 403).await["code"], refused, "{path}");
            }
        }
        for (tool, arguments) in [("record", json!({"id": id})), ("record", json!({"id": id, "history": true})), ("changes", json!({}))] {
            let result = fixture.call_tool(tool, arguments, &free).await;
            let problem: Value = serde_json::from_str(result["content"][0]["text"].as_str().unwrap()).unwrap();
            assert_eq!((&result["isError"], &problem["code"]), (&json!(true), &refused), "{tool}: {result}");
        }
        let wanted = if id == "nih:0" { 404 } else { 200 };
        fixture.get(&path, &fixture.key, wanted).await;
    }
    fixture.end().await;
}

/// Proves that what is wrong with arguments is named, over REST and MCP.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn wrong_arguments_are_named() {
    let fixture = Fixture::begin().await;
    for (query, parameter, part) in [
        ("state=Mass", "state", " MA,"),
        ("state=Colorado", "state", " CO,"),
        ("state=New%20York", "state", " NY,"),
        ("state=O", "state", " OH,"),
        ("state=ZZ", "state", "ZZ"),
        ("category=foo", "category", "Computing"),
        ("category=computin", "category", "did you mean"),
        ("days=0", "days", ""),
        ("days=400", "days", ""),
        ("min_amount=-1", "min_amount", ""),
        ("minAmount=-1", "min_amount", ""),
        ("limit=0", "limit", ""),
        ("limit=500", "limit", ""),
        ("category=Computing&category=Computing", "category", "twice"),
        ("after=x", "after", ""),
    ] {
        let problem = fixture.get(&format!("/labs/v1/leads?{query}"), &fixture.key, 400).await;
        assert_eq!(problem["parameter"], parameter, "{query}: {problem}");
        assert!(problem["detail"].as_str().unwrap().contains(part), "{query}: {problem}");
    }
    for (path, parameter) in [("/sample?state=ZZ", "state"), ("/sample?category=foo", "category"), ("/sample?days=3", "days")] {
        assert_eq!(fixture.get(&format!("/labs{path}"), "", 400).await["parameter"], parameter, "{path}");
    }
    for (tool, arguments, parameter) in [
        ("newly_funded_labs", json!({"category": "foo"}), "category"),
        ("lab_lead_feed", json!({"state": "ZZ"}), "state"),
        ("lab_lead_feed", json!({"days": 400}), "days"),
    ] {
        let result = fixture.call_tool(tool, arguments, &fixture.key).await;
        let problem: Value = serde_json::from_str(result["content"][0]["text"].as_str().unwrap()).unwrap();
        assert_eq!((&result["isError"], &problem["parameter"]), (&json!(true), &json!(parameter)), "{result}");
    }
    let watch = json!({"entity": {"type": "lab", "value": "oh"}}).to_string();
    let refused = fixture.send("POST", "/labs/v1/watchlist", &[("x-api-key", &fixture.key)], watch).await;
    let problem: Value = serde_json::from_slice(&refused.body).unwrap();
    assert_eq!((refused.status, &problem["parameter"]), (400, &json!("entity.type")), "{problem}");
    assert!(problem["detail"].as_str().unwrap().starts_with("entity.type: \"lab\" is not one of category, state, org, pi"), "{problem}");
    fixture.end().await;
}

/// Proves what a paid key sees: whole leads with evidence, filtered, sorted and paged to an exact total, none of an award that is no lead;
/// categories; tools; and the listing of prices.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn paid_callers_see_whole_leads() {
    let fixture = Fixture::begin().await;
    let (leads, totals) = fixture.leads("days=365").await;
    assert!(leads.len() > 20 && totals.iter().all(|total| *total == leads.len()), "{} {totals:?}", leads.len());
    assert_eq!(texts(&leads, "id").len(), leads.len());
    let order: Vec<(&str, &str)> = leads.iter().map(|lead| (lead["noticeDate"].as_str().unwrap(), lead["id"].as_str().unwrap())).collect();
    assert!(order.is_sorted_by(|one, other| (other.0, one.1) < (one.0, other.1) || other.0 < one.0), "{order:?}");
    let names: Vec<&str> = LEXICON.entries.iter().map(|category| category.name.as_str()).collect();
    for lead in &leads {
        let evidence = lead["categoryEvidence"].as_array().unwrap();
        assert_eq!(evidence.is_empty(), lead["category"] == GENERAL, "{lead}");
        assert!(names.contains(&lead["category"].as_str().unwrap()) && lead["withdrawn"] == false, "{lead}");
        assert!(lead["spendWindow"]["from"].as_str() <= lead["spendWindow"]["peakTo"].as_str());
    }
    let titles = texts(&leads, "title");
    for title in [
        "Intramural imaging of everything",
        "A company's microscope",
        "Training in flow cytometry",
        "A fellowship in microscopy",
        "Supplement of the aging lens",
        "Renewal of a known laboratory",
        "Continuation of a known laboratory",
        "An award without an organisation",
        "An award without an amount",
    ] {
        assert!(!titles.contains(title), "{title}");
    }
    let lead_titled =
        |title: &str| leads.iter().find(|lead| lead["title"] == title).unwrap_or_else(|| panic!("{title} is missing: {titles:?}"));
    for (title, signal) in [
        ("Single-cell RNA sequencing of papilloma", "new_lab"),
        ("Proteomics of the aging lens by mass spectrometry", "new_project"),
        ("Confocal microscope for the imaging core", "instrument"),
        ("New innovator of tissue engineering with hydrogels", "new_lab"),
        ("A career in electrophysiology with patch clamp", "new_project"),
        ("An award without investigators, on zebrafish", "unknown_pi"),
        ("MRI scanner under a second number", "new_lab"),
    ] {
        assert_eq!(lead_titled(title)["signal"], signal, "{}", lead_titled(title));
    }
    assert_eq!(lead_titled("Crystallography with blanks in a name")["pi"], "Dorit Lindqvale");
    let late = lead_titled("Chromatography noticed late");
    assert_eq!((&late["noticeDate"], &late["spendWindow"]["from"]), (&json!("2026-11-17"), &json!("2026-11-17")));
    assert_eq!(lead_titled("Bioreactors without a notice of award")["noticeDate"], "2026-11-19");

    for (state, least) in [("OH", 310_000), ("OH", 500_000), ("CA", 500_000), ("CA", 0)] {
        let (few, totals) = fixture.leads(&format!("days=7&state={state}&min_amount={least}")).await;
        let obeys = |lead: &&Value| {
            let is_recent = ("2026-11-14".."2026-11-21").contains(&lead["noticeDate"].as_str().unwrap());
            lead["state"] == state && lead["amount"].as_i64().unwrap() >= least && is_recent
        };
        let expected: Vec<Value> = leads.iter().filter(obeys).cloned().collect();
        assert_eq!(few, expected, "{state} {least}");
        assert!(totals.iter().all(|total| *total == few.len()) && (state == "CA" || !few.is_empty()), "{state} {least}: {totals:?}");
    }
    let headers = [("x-api-key", fixture.key.as_str()), ("accept", "application/x-ndjson")];
    let lines = fixture.send("GET", "/labs/v1/leads?limit=5", &headers, String::new()).await;
    assert_eq!(lines.body.split(|byte| *byte == b'\n').filter(|line| !line.is_empty()).count(), 5);
    assert!(!lines.header("next-cursor").is_empty());

    let categories = fixture.get("/labs/categories", "", 200).await;
    assert_eq!((&categories["count"], &categories["version"]), (&json!(15), &json!(LEXICON.version)));
    let listed = categories["categories"].as_array().unwrap();
    assert_eq!(listed.iter().map(|category| category["name"].as_str().unwrap()).collect::<Vec<_>>(), names);
    let (month, _) = fixture.leads("days=30").await;
    assert_eq!(listed.iter().map(|category| category["leads30d"].as_u64().unwrap()).sum::<u64>(), month.len() as u64);
    let health = fixture.get("/labs/health", "", 200).await;
    assert!(health["leads"].as_u64().unwrap() >= leads.len() as u64 && health["throughDate"] == "2026-11-20", "{health}");

    let result = fixture.call_tool("newly_funded_labs", json!({"days": 30}), "").await;
    assert_eq!(result["isError"], true);
    assert!(result["content"][0]["text"].as_str().unwrap().contains("\"parameter\":\"days\""), "{result}");
    let result = fixture.call_tool("newly_funded_labs", json!({"days": 14}), "").await;
    assert_eq!(result["structuredContent"]["leads"][0].as_object().unwrap().len(), 4, "{result}");
    let result = fixture.call_tool("lab_lead_feed", json!({"state": "OH"}), "").await;
    assert_eq!((&result["isError"], &result["structuredContent"]["accepts"][0]["amount"]), (&json!(true), &json!("20000")), "{result}");
    assert_eq!(result["structuredContent"]["preview"]["leads"].as_array().unwrap().len(), 3);
    let result = fixture.call_tool("lab_lead_feed", json!({"state": "OH", "limit": 1}), &fixture.key).await;
    assert_eq!(result["structuredContent"]["count"], 1);

    let document = fixture.get("/.well-known/x402", "", 200).await;
    let items: Vec<&Value> =
        document["items"].as_array().unwrap().iter().filter(|item| item["resource"].to_string().contains("/labs/")).collect();
    assert_eq!(items.iter().map(|item| item["type"].as_str().unwrap()).collect::<Vec<_>>(), ["http", "mcp"], "{items:?}");
    assert!(items.iter().all(|item| item["acceptsV1"][0]["maxAmountRequired"] == "20000" || item["accepts"][0]["amount"] == "20000"));
    assert!(
        items[0]["resource"].as_str().unwrap().ends_with("/labs/v1/leads") && items[1]["call"]["body"]["params"]["name"] == "lab_lead_feed"
    );

    let watch = json!({"entity": {"type": "state", "value": "oh"}}).to_string();
    let made = fixture.send("POST", "/labs/v1/watchlist", &[("x-api-key", &fixture.key)], watch).await;
    assert_eq!(made.status, 201, "{}", String::from_utf8_lossy(&made.body));
    fixture.end().await;
}

/// What the categories would be by a lexicon of one word.
struct OneWord;

impl OtherRule<Labs> for OneWord {
    fn decide(rows: &mut Rows, fact: &Fact<GrantFact>) -> Decided<Labs> {
        let mut drafts = Labs::decide(rows, fact)?;
        for lead in drafts.iter_mut().filter_map(|draft| draft.after.as_mut()) {
            let has_word = lead.title.to_lowercase().contains("confocal");
            lead.category = if has_word { "Microscopy and imaging" } else { GENERAL }.to_owned();
            lead.category_evidence.clear();
            lead.other_categories.clear();
        }
        Ok(drafts)
    }
}

/// Proves that an amended amount is one change and that `asOf` shows the old one before it; that an award that two full reads lack is
/// withdrawn, and one that only one lacks is not; that lists as of a time still hold it; and that a replay gives the same digest.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn leads_change_and_go() {
    let fixture = Fixture::begin().await;
    let begin = fixture.get("/labs/v1/changes?start=latest", &fixture.key, 200).await["cursor"].as_str().unwrap().to_owned();
    for days in [2, 8, 16] {
        fixture.sync(days).await;
    }
    let find = async |title: &str, as_of: &str| -> Option<Value> {
        let (leads, _) = fixture.leads(&format!("days=60&state=OH{as_of}")).await;
        leads.into_iter().find(|lead| lead["title"] == title)
    };
    assert_eq!(find(AMENDED, "&asOf=2026-11-21").await.unwrap()["amount"], 400_000);
    assert_eq!(find(AMENDED, "&asOf=2026-11-23").await.unwrap()["amount"], 650_000);
    assert_eq!(find(AMENDED, "").await.unwrap()["amountBand"], "500k-1M");
    assert!(find(GONE, "").await.is_none() && find(BACK, "").await.is_some());
    assert!(find(GONE, "&asOf=2026-12-05").await.is_some(), "one full read that lacks it is not enough");

    let (changes, _) = fixture.changes(&format!("cursor={begin}")).await;
    let changes_titled = |title: &str| -> Vec<&Value> { changes.iter().filter(|change| change["record"]["title"] == title).collect() };
    assert_eq!(changes_titled(AMENDED).len(), 1);
    assert_eq!(
        (&changes_titled(AMENDED)[0]["event"], &changes_titled(AMENDED)[0]["record"]["amount"]),
        (&json!("modified"), &json!(650_000))
    );
    assert_eq!(changes_titled(GONE).len(), 1);
    assert_eq!((&changes_titled(GONE)[0]["event"], &changes_titled(GONE)[0]["record"]["withdrawn"]), (&json!("modified"), &json!(true)));
    assert!(changes_titled(BACK).is_empty());

    let labs = fixture.api.engine.projector.service("labs").unwrap();
    let before = (labs.digest(false, None).await.unwrap(), labs.digest(true, None).await.unwrap());
    let (leads, _) = fixture.leads("days=365").await;
    let progress: Progress = Arc::new(|_, _| ());
    assert!(labs.replay(&progress).await.unwrap() > 0);
    assert_eq!((labs.digest(false, None).await.unwrap(), labs.digest(true, None).await.unwrap()), before);
    assert_eq!(fixture.leads("days=365").await.0, leads);
    assert_eq!(labs.redecide(&progress).await.unwrap(), 0, "the same lexicon decides the same");

    fixture.end().await;
}

/// Proves that deciding again under another lexicon appends each lead that moves once, as `modified`: readers with a cursor at the end and
/// with an old one get it after the changes that were there before, whose bytes stay; lists follow, lists as of the day before do not; and
/// the lexicon of before moves the leads back.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn another_lexicon_moves_leads_once() {
    let fixture = Fixture::begin().await;
    let (before, cursor) = fixture.changes("start=earliest").await;
    let first = fixture.get("/labs/v1/changes?start=earliest&limit=5", &fixture.key, 200).await;
    let old_cursor = format!("cursor={}", first["cursor"].as_str().unwrap());
    let (leads, _) = fixture.leads("days=365").await;
    fixture.clock.move_to(noon(FIRST.tomorrow().unwrap()));

    let progress: Progress = Arc::new(|_, _| ());
    let parts = &fixture.api.engine.parts;
    let view = fixture.api.engine.store.live(labs::record::TABLES.view).await.unwrap();
    let decider: Decider<Under<Labs, OneWord>> =
        Decider::open(Arc::clone(&parts.log), Arc::clone(&parts.engine), view, parts.clock).await.unwrap();
    let live = tokio::sync::Mutex::new(decider);
    let moved = rebuild::redecide::<Under<Labs, OneWord>>(parts, &live, &progress).await.unwrap();
    assert_eq!(rebuild::redecide::<Under<Labs, OneWord>>(parts, &live, &progress).await.unwrap(), 0, "once");

    let (after, end) = fixture.changes(&cursor).await;
    let ids: BTreeSet<&str> = after.iter().map(|change| change["record"]["id"].as_str().unwrap()).collect();
    assert!(moved > 20 && after.len() as u64 == moved && ids.len() == after.len(), "{moved} of {}", after.len());
    for change in &after {
        let record = &change["record"];
        assert_eq!(change["event"], "modified", "{change}");
        let has_word = record["title"].as_str().unwrap().to_lowercase().contains("confocal");
        assert_eq!(record["category"], if has_word { "Microscopy and imaging" } else { GENERAL });
    }
    assert_eq!(fixture.changes(&old_cursor).await.0, [&before[5..], &after].concat());
    let listed = |leads: &[Value]| -> BTreeMap<String, Value> {
        leads.iter().map(|lead| (lead["id"].as_str().unwrap().to_owned(), lead["category"].clone())).collect()
    };
    let mut followed = listed(&leads);
    followed.extend(listed(&after.iter().map(|change| change["record"].clone()).collect::<Vec<_>>()));
    let now = listed(&fixture.leads("days=365").await.0);
    assert!(now.iter().all(|(id, category)| followed[id] == *category), "a reader by cursor has other categories");
    assert_eq!(listed(&fixture.leads("days=365&asOf=2026-11-20").await.0), listed(&leads));
    let (confocal, _) = fixture.leads("days=365&category=Microscopy%20and%20imaging").await;
    assert!(!confocal.is_empty() && confocal.len() < leads.len());

    let labs = fixture.api.engine.projector.service("labs").unwrap();
    assert_eq!(labs.redecide(&progress).await.unwrap(), moved, "the lexicon of before");
    assert_eq!(fixture.changes(&end).await.0.len() as u64, moved);
    assert_eq!(listed(&fixture.leads("days=365").await.0), listed(&leads));
    fixture.end().await;
}

/// A person of the simulated awards, and the title of that person's lead.
const PERSON: (&str, &str) = ("Dorit Lindqvale", "Crystallography with blanks in a name");

impl Fixture {
    /// The changes of labs as server-sent events, as a caller with the key gets them.
    async fn events(&self) -> String {
        let registered = services::all();
        let labs = registered.iter().find(|service| service.name == "labs").unwrap();
        let changes = labs.operations.iter().find(|operation| operation.name == "changes").unwrap();
        let caller = Caller { tier: Tier::Pro, key_id: "key".into(), account: String::new(), address: Ipv4Addr::LOCALHOST.into() };
        let context = Arc::clone(&self.http_api.context);
        let call = Call {
            context,
            caller,
            form: Form::Events,
            idempotency_key: None,
            watch_token: None,
            stage: Stage::Whole,
            if_none_match: None,
        };
        let arguments = json!({"start": "earliest", "limit": 200, "wait": 0});
        let Body::Events { items: events, .. } = (changes.run)(call, arguments).await.unwrap().body else { panic!() };
        events.iter().map(|event| String::from_utf8_lossy(&event.data).into_owned()).collect()
    }

    /// The message that a webhook of a watch of everything gets for a lead.
    async fn message(&self, seq: u64) -> String {
        let labs = services::registered().iter().find(|registration| registration.service.name == "labs").unwrap();
        let entity = json!({"entity": {"type": "state", "value": "OH"}}).to_string();
        let watch = SavedItem { id: "watch_1".into(), service: "labs".into(), filter: "{}".into(), entity, ..SavedItem::default() };
        let message = Delivery { done: Seq(seq - 1), upto: Seq(seq), ..Delivery::default() };
        let body = (labs.matcher.unwrap())().body(&self.http_api.context, &watch, &message).await.unwrap();
        String::from_utf8_lossy(&body.unwrap()).into_owned()
    }

    /// What each reader's surface shows of a lead, by the name of the surface.
    async fn surfaces(&self, id: &str, watch: &str, seq: u64) -> Vec<(&'static str, String)> {
        let after = seq - 1;
        let coded = id.replace(':', "%3A");
        let paths = [
            ("list", "/labs/v1/leads?days=365&limit=200".to_owned()),
            ("list as of a day", "/labs/v1/leads?days=365&limit=200&asOf=2026-11-20".to_owned()),
            ("record", format!("/labs/v1/records/{coded}")),
            ("record as of a day", format!("/labs/v1/records/{coded}?asOf=2026-11-20")),
            ("history", format!("/labs/v1/records/{coded}/history")),
            ("changes", "/labs/v1/changes?start=earliest&limit=200".to_owned()),
            ("filtered changes", "/labs/v1/whats_changed_since?start=earliest&limit=200&before=true".to_owned()),
            ("matches of a watch", format!("/labs/v1/watchlist/{watch}")),
            ("export", "/labs/v1/exports/2026-11-20.ndjson".to_owned()),
            ("changes of research", "/research/v1/changes?start=earliest&limit=200".to_owned()),
            ("search of research", "/research/v1/search_grants?q=crystallography".to_owned()),
        ];
        let mut out = Vec::new();
        for (name, path) in paths {
            let answer = self.send("GET", &path, &[("x-api-key", &self.key)], String::new()).await;
            assert!(answer.status == 200 || name == "search of research", "{path}: {}", String::from_utf8_lossy(&answer.body));
            out.push((name, String::from_utf8_lossy(&answer.body).into_owned()));
        }
        let headers = [("x-api-key", self.key.as_str()), ("accept", "application/x-ndjson")];
        for (name, path) in
            [("lines of leads", "/labs/v1/leads?days=365&limit=200"), ("lines", "/labs/v1/changes?start=earliest&limit=200")]
        {
            let answer = self.send("GET", path, &headers, String::new()).await;
            out.push((name, String::from_utf8_lossy(&answer.body).into_owned()));
        }
        for (tool, arguments) in [
            ("lab_lead_feed", json!({"days": 365, "limit": 200})),
            ("record", json!({"id": id, "history": true})),
            ("changes", json!({"start": "earliest", "limit": 200})),
        ] {
            out.push((tool, self.call_tool(tool, arguments, &self.key).await.to_string()));
        }
        out.push(("events", self.events().await));
        out.push(("webhook", self.message(after + 1).await));
        let labs = services::registered().iter().find(|registration| registration.service.name == "labs").unwrap();
        let mut rows =
            labs.table.as_ref().unwrap().current(&*self.http_api.context.store, self.http_api.context.clock.today()).await.unwrap();
        let mut table = String::new();
        loop {
            let batch = rows.next().await.unwrap();
            if batch.is_empty() {
                break;
            }
            table += &json!(batch).to_string();
        }
        out.push(("table of current records", table));
        out
    }
}

/// Proves that the name of a suppressed person is on no surface of a reader, now and as of earlier days, that the rest of the lead and its
/// hashes stay, that searches do not find it, that ETags change, and that everything is back when the
/// suppression is taken back.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn suppressed_persons_are_on_no_surface() {
    let fixture = Fixture::begin().await;
    fixture.clock.move_to(noon(FIRST.saturating_add(1.day())));
    let (context, (name, title)) = (&fixture.http_api.context, PERSON);
    let everything = json!({"entity": {"type": "pi", "value": "lindqvale"}}).to_string();
    let made = fixture.send("POST", "/labs/v1/watchlist", &[("x-api-key", &fixture.key)], everything).await;
    let watch = serde_json::from_slice::<Value>(&made.body).unwrap()["id"].as_str().unwrap().to_owned();
    let (leads, _) = fixture.leads("days=365").await;
    let lead = leads.iter().find(|lead| lead["title"] == title).unwrap().clone();
    let id = lead["id"].as_str().unwrap();
    let record = fixture.get(&format!("/labs/v1/records/{}", id.replace(':', "%3A")), &fixture.key, 200).await;
    let seq = record["seq"].as_u64().unwrap();
    let digest = async || fixture.api.engine.projector.service("labs").unwrap().digest(true, None).await.unwrap();
    let (before, digest_before) = (fixture.surfaces(id, &watch, seq).await, digest().await);
    for (surface, shown) in &before {
        let is_empty = matches!(*surface, "matches of a watch" | "search of research");
        assert_eq!(shown.contains(name), !is_empty, "{surface}: {shown}");
    }
    let found = "/labs/v1/whats_changed_since?start=earliest&pi=lindqvale";
    assert_eq!(fixture.get(found, &fixture.key, 200).await["changes"].as_array().unwrap().len(), 1);
    let changes = "/labs/v1/changes?start=earliest&limit=200";
    let etag = fixture.send("GET", changes, &[("x-api-key", &fixture.key)], String::new()).await.header("etag").to_owned();

    let wrong = suppression::suppress(context, "persons", name, "on request").await.unwrap_err();
    assert_eq!(wrong.parameter, "kind");
    suppression::suppress(context, "person", "LINDQVALE, DORIT", "on request").await.unwrap();
    let listed = suppression::list(context).await.unwrap();
    assert_eq!((listed.len(), listed[0].row.key.as_str(), listed[0].row.reason.as_str()), (1, "LINDQVALE, DORIT", "on request"));
    for ((surface, hidden), (_, shown)) in fixture.surfaces(id, &watch, seq).await.iter().zip(&before) {
        assert!(!hidden.contains("Lindqvale"), "{surface}: {hidden}");
        let is_empty = matches!(*surface, "matches of a watch" | "search of research");
        let says_so = hidden.contains("\"suppressed\":true") || *surface == "table of current records";
        assert!(says_so || is_empty, "{surface}: {hidden}");
        assert_eq!(hidden.contains(title), shown.contains(title), "{surface}");
    }
    let hidden = fixture.get(&format!("/labs/v1/records/{}", id.replace(':', "%3A")), &fixture.key, 200).await;
    let mut expected = record.clone();
    (expected["record"]["pi"], expected["record"]["suppressed"]) = (json!(""), json!(true));
    assert_eq!(hidden, expected);
    assert_eq!(fixture.get(found, &fixture.key, 200).await["changes"], json!([]), "a search does not find what is hidden");
    let headers = [("x-api-key", fixture.key.as_str()), ("if-none-match", etag.as_str())];
    assert_eq!(fixture.send("GET", changes, &headers, String::new()).await.status, 200);
    assert_eq!(digest().await, digest_before);

    suppression::unsuppress(context, "person", "dorit lindqvale", "by mistake").await.unwrap();
    assert_eq!(fixture.surfaces(id, &watch, seq).await, before);
    assert_eq!(suppression::unsuppress(context, "person", name, "again").await.unwrap_err().code, ErrorCode::NotFound);
    suppression::suppress(context, "record", &format!("labs/{id}"), "another spelling").await.unwrap();
    let (leads, _) = fixture.leads("days=365").await;
    let hidden: Vec<&Value> = leads.iter().filter(|lead| lead["suppressed"] == true).collect();
    assert_eq!((hidden.len(), &hidden[0]["id"], &hidden[0]["pi"]), (1, &json!(id), &json!("")));
    // A rebuild reads the same commands.
    let progress: Progress = Arc::new(|_, _| ());
    fixture.api.engine.projector.service("accounts").unwrap().replay(&progress).await.unwrap();
    assert_eq!(suppression::list(context).await.unwrap().len(), 1);
    fixture.end().await;
}
