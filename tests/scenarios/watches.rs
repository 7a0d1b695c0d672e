//! Watches: used in feeds and matched against new changes.

use std::collections::BTreeSet;

use awards::rules::AwardsRules;
use feed::{RecordFeed, Source};
use filings::rules::FilingsRules;
use jiff::civil::date;
use research::rules::ResearchRules;
use schemas::clock::Clock;
use schemas::facts::FactData;
use schemas::facts::awards::{AwardFact, kind};
use schemas::facts::trials::TrialFact;
use schemas::views::accounts::Tier;
use serde_json::{Value, json};

use crate::api::{HttpApi, Writer};
use crate::engine::{Engine, SimulatedUpstreams, fixed_clock};
use crate::process::send;

/// The services with saved items.
const SOURCES: [Source; 3] = [ResearchRules::FEED.source, FilingsRules::FEED.source, AwardsRules::FEED.source];

/// An HTTP client of the API over an engine.
struct Client(HttpApi);

impl Client {
    /// Makes a request; the body may be null. Returns status and JSON.
    fn ask(&self, method: &str, path: &str, key: &str, body: &Value) -> (u16, Value) {
        let body = if body.is_null() { String::new() } else { body.to_string() };
        let answer = tokio::task::block_in_place(|| send(self.0.address, method, path, &[("x-api-key", key)], &body));
        (answer.status, serde_json::from_slice(&answer.body).unwrap())
    }

    /// Makes a request that must get the given status.
    fn want(&self, status: u16, method: &str, path: &str, key: &str, body: &Value) -> Value {
        let (found, answer) = self.ask(method, path, key, body);
        assert_eq!(found, status, "{method} {path} {body}: {answer}");
        answer
    }

    fn get(&self, path: &str, key: &str) -> Value {
        self.want(200, "GET", path, key, &Value::Null)
    }

    /// Reads all pages of a feed from a cursor on; returns the items and the last cursor.
    fn feed(&self, path: &str, list: &str, cursor: &str, key: &str) -> (Vec<Value>, String) {
        let (mut all, mut cursor) = (Vec::new(), cursor.to_owned());
        loop {
            let joint = if path.contains('?') { '&' } else { '?' };
            let page = self.get(&format!("{path}{joint}limit=200&cursor={cursor}"), key);
            all.extend(page[list].as_array().unwrap().iter().cloned());
            page["cursor"].as_str().unwrap().clone_into(&mut cursor);
            if page["hasMore"] != true {
                return (all, cursor);
            }
        }
    }

    /// Reads all matches of a watch, with pages of an odd size.
    fn matches(&self, service: &str, id: &str, key: &str) -> Vec<Value> {
        let (mut all, mut cursor) = (Vec::new(), String::new());
        loop {
            let page = self.get(&format!("/{service}/v1/watchlist/{id}?limit=7{cursor}"), key);
            all.extend(page["matches"].as_array().unwrap().iter().cloned());
            match page["cursor"].as_str() {
                Some(next) => cursor = format!("&cursor={next}"),
                None => return all,
            }
        }
    }
}

/// The services that the engine decides: those three, and recalls, for which it waits after each sync.
const SERVICES: &[&str] = &["awards", "filings", "recalls", "research"];

/// The upstreams of the three services.
const UPSTREAMS: &[&str] = &["clinical_trials", "edgar", "nih_reporter", "usaspending"];

/// Waits until the three services have processed all facts.
async fn wait_projected(engine: &Engine) {
    for source in SOURCES {
        engine.wait_for_view(source.view, source.facts).await;
    }
}

fn seqs(changes: &[Value]) -> Vec<u64> {
    changes.iter().map(|change| change["seq"].as_u64().unwrap()).collect()
}

/// Whether one of these fields of a change's record contains a text.
fn has(change: &Value, fields: &[&str], text: &str) -> bool {
    let has = |value: &Value| value.as_str().is_some_and(|value| value.to_lowercase().contains(text));
    fields.iter().map(|field| &change["record"][field]).any(|value| has(value) || value.as_array().is_some_and(|all| all.iter().any(has)))
}

/// Proves that watches made on a Friday match, on each service, exactly the changes of the next business day that concern their targets,
/// newest first and by pages; and that earlier changes do not match.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn watches_match_later_changes() {
    let dir = tempfile::tempdir().unwrap();
    let simulated = SimulatedUpstreams::start(21, 60, fixed_clock()).await;
    let engine = Engine::open_with(dir.path(), fixed_clock(), SERVICES).await;
    engine.run_some(UPSTREAMS, &simulated.settings()).await;
    wait_projected(&engine).await;
    let api = Client(HttpApi::start(&engine, fixed_clock(), None));
    let key = api.0.key(Tier::Pro).await;

    let make = |service: &str, body: Value| -> String {
        let watch = api.want(201, "POST", &format!("/{service}/v1/watchlist"), &key, &body);
        assert!(watch["after"].as_u64().unwrap() > 0 && watch.get("webhook").is_none(), "{watch}");
        // A contractor of that name may come on the next day only.
        assert!(service == "awards" || watch.get("note").is_none(), "what is watched is recorded: {watch}");
        let shown = api.get(&format!("/{service}/v1/watchlist/{}", watch["id"].as_str().unwrap()), &key);
        assert_eq!(
            (&shown["matches"], &shown["hasMore"], &shown["id"]),
            (&json!([]), &json!(false), &watch["id"]),
            "earlier changes must not match"
        );
        watch["id"].as_str().unwrap().to_owned()
    };
    let university =
        make("research", json!({"entity": {"type": "Institution", "value": "University"}, "webhook": "https://example.org/x"}));
    let (before, _) = api.feed(
        "/filings/v1/changes",
        "changes",
        api.get("/filings/v1/changes?start=earliest&limit=1", &key)["cursor"].as_str().unwrap(),
        &key,
    );
    let companies: BTreeSet<String> = before.iter().map(|change| change["record"]["cik"].as_str().unwrap().to_owned()).collect();
    let companies: Vec<(String, String)> = companies.into_iter().take(40).map(|cik| (make("filings", json!({"cik": cik})), cik)).collect();
    let federal = make("awards", json!({"contractor": "federal", "webhook": "https://example.org/y"}));
    // A watch of what nothing recorded has is created, and says so with the recorded spellings that are nearest.
    for (service, body, unknown) in [
        (
            "research",
            json!({"entity": {"type": "institution", "value": "Universty"}}),
            "the institution \"universty\", the nearest known are \"",
        ),
        ("filings", json!({"cik": "9999999998"}), "the cik \"9999999998\", the nearest known are \""),
        ("awards", json!({"contractor": "Fedral"}), "the recipient \"fedral\""),
    ] {
        let watch = api.want(201, "POST", &format!("/{service}/v1/watchlist"), &key, &body);
        let note = watch["note"].as_str().unwrap_or_default().to_lowercase();
        assert!(note.starts_with(&format!("nothing recorded has {unknown}")), "{watch}");
        api.want(200, "DELETE", &format!("/{service}/v1/watchlist/{}", watch["id"].as_str().unwrap()), &key, &Value::Null);
    }
    let latest = |service: &str| api.get(&format!("/{service}/v1/changes?start=latest"), &key)["cursor"].as_str().unwrap().to_owned();
    let cursors = SOURCES.map(|source| latest(source.service));
    api.0.stop().await;
    engine.close().await;

    // From a Friday to the next Monday.
    simulated.sim.set_today(date(2026, 11, 23));
    let monday = Clock::Fixed("2026-11-23T12:00:00Z".parse().unwrap());
    let engine = Engine::open_with(dir.path(), monday, SERVICES).await;
    engine.run_some(UPSTREAMS, &simulated.settings()).await;
    wait_projected(&engine).await;
    let api = Client(HttpApi::start(&engine, monday, None));
    let [research, filings, awards] = SOURCES
        .map(|source| source.service)
        .iter()
        .zip(&cursors)
        .map(|(service, cursor)| {
            let mut new = api.feed(&format!("/{service}/v1/changes"), "changes", cursor, &key).0;
            new.reverse();
            new
        })
        .collect::<Vec<_>>()
        .try_into()
        .unwrap_or_else(|_| panic!("the services are shared"));
    let wanted = |changes: &[Value], fits: &dyn Fn(&Value) -> bool| -> Vec<u64> {
        seqs(&changes.iter().filter(|change| fits(change)).cloned().collect::<Vec<_>>())
    };
    let found = api.matches("research", &university, &key);
    assert_eq!(seqs(&found), wanted(&research, &|change| has(change, &["org", "sponsor", "institutions"], "university")));
    assert!(!found.is_empty() && found.len() < research.len(), "{} of {}", found.len(), research.len());
    let found = api.matches("awards", &federal, &key);
    assert_eq!(seqs(&found), wanted(&awards, &|change| has(change, &["recipient", "parentRecipient"], "federal")));
    assert!(!found.is_empty() && found.len() < awards.len(), "{} of {}", found.len(), awards.len());
    let mut matched = 0;
    for (id, cik) in &companies {
        let found = api.matches("filings", id, &key);
        let fits = |change: &Value| change["record"]["kind"] == "filing" && change["record"]["cik"] == cik.as_str();
        assert_eq!(seqs(&found), wanted(&filings, &fits), "{cik}");
        matched += found.len();
    }
    assert!(matched > 0, "no company filed");
    // A cursor of a watch is not valid for another watch or a feed.
    let (first, second) = (&companies[0].0, &companies[1].0);
    let feed_cursor = &cursors[1];
    let answer = api.ask("GET", &format!("/filings/v1/watchlist/{first}?cursor={feed_cursor}"), &key, &Value::Null);
    assert_eq!((answer.0, &answer.1["code"]), (400, &json!("cursor-invalid")));
    api.want(200, "DELETE", &format!("/filings/v1/watchlist/{second}"), &key, &Value::Null);
    assert_eq!(api.get("/filings/v1/watchlist", &key)["watches"].as_array().unwrap().len(), companies.len() - 1);
    api.0.stop().await;
    engine.close().await;
}

/// An award of a contractor, with its key.
fn award(number: usize, contractor: &str) -> (String, FactData) {
    let fact = AwardFact {
        stream: "usaspending.awards".to_owned(),
        kind: kind::AWARD.to_owned(),
        award_id: format!("A{number}"),
        recipient: contractor.to_owned(),
        amount_cents: Some(100),
        ..AwardFact::default()
    };
    (format!("usaspending.awards/A{number}"), FactData::Award(Box::new(fact)))
}

/// A trial of a sponsor, with its key.
fn trial(number: usize, sponsor: &str) -> (String, FactData) {
    let trial = format!("NCT0000000{number}");
    let key = format!("clinical_trials/{trial}");
    let fact = TrialFact { stream: "clinical_trials".to_owned(), number: trial, sponsor: sponsor.to_owned(), ..TrialFact::default() };
    (key, FactData::Trial(Box::new(fact)))
}

/// Proves that watches and saved filters of a name match the later changes that spell it with or without its accents, however it was saved, and no others.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn accents_do_not_matter() {
    let dir = tempfile::tempdir().unwrap();
    let engine = Engine::open_with(dir.path(), fixed_clock(), SERVICES).await;
    let api = Client(HttpApi::start(&engine, fixed_clock(), None));
    let key = api.0.key(Tier::Pro).await;
    let mut saved = Vec::new();
    // The accent of the last one is a character of its own.
    for (name, spelling) in [("composed", "Nestl\u{e9}"), ("plain", "NESTLE"), ("decomposed", "nestle\u{301}")] {
        for (service, field, watched) in [
            ("awards", "recipient", json!({ "contractor": spelling })),
            ("research", "sponsor", json!({ "entity": { "type": "sponsor", "value": spelling } })),
        ] {
            let watch = api.want(201, "POST", &format!("/{service}/v1/watchlist"), &key, &watched);
            let filter = json!({ "name": name, "filter": { field: spelling } });
            api.want(201, "POST", &format!("/{service}/v1/filters"), &key, &filter);
            saved.push((service, field, name, watch["id"].as_str().unwrap().to_owned()));
        }
    }

    let names = ["Nestl\u{e9} Waters", "NESTLE PURINA", "Nestle\u{301} Health", "NESTOR PAVING"];
    let (mut writer, at_ms) = (Writer::default(), fixed_clock().now_ms());
    let facts = names.iter().enumerate().flat_map(|(number, name)| [award(number, name), trial(number, name)]);
    let facts = facts.map(|(key, fact)| writer.observe(&key, &fact, at_ms)).collect();
    engine.log.append(facts).await.unwrap();
    wait_projected(&engine).await;

    let expected = names[..3].iter().copied().collect::<BTreeSet<&str>>();
    for (service, field, name, watch) in &saved {
        // Services show a record next to the members of its change, or as one of them.
        let name_of = |change: &Value| change.get("record").unwrap_or(change)[*field].as_str().unwrap().to_owned();
        let names_of = |changes: &[Value]| -> Vec<String> { changes.iter().map(name_of).collect() };
        let matched = names_of(&api.matches(service, watch, &key));
        let page = api.get(&format!("/{service}/v1/whats_changed_since?start=earliest&limit=200&filter={name}"), &key);
        let listed = names_of(page["changes"].as_array().unwrap());
        for found in [&matched, &listed] {
            assert_eq!(found.len(), expected.len(), "{service} {name}: {found:?}");
            assert_eq!(found.iter().map(String::as_str).collect::<BTreeSet<_>>(), expected, "{service} {name}");
        }
    }
    api.0.stop().await;
    engine.close().await;
}

/// Proves that a saved filter gives the same feed as its fields, that fields of a request replace its own, and that a cursor is valid under an equal filter and
/// not after the filter was changed.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn saved_filters_equal_their_fields() {
    let dir = tempfile::tempdir().unwrap();
    let simulated = SimulatedUpstreams::start(21, 60, fixed_clock()).await;
    let engine = Engine::open_with(dir.path(), fixed_clock(), SERVICES).await;
    engine.run_some(&["usaspending"], &simulated.settings()).await;
    wait_projected(&engine).await;
    let api = Client(HttpApi::start(&engine, fixed_clock(), None));
    let key = api.0.key(Tier::Pro).await;

    api.want(201, "POST", "/awards/v1/filters", &key, &json!({"name": "my codes", "filter": {"naics": ["54", "23"], "minAmount": 1}}));
    let feed = |query: &str| api.get(&format!("/awards/v1/whats_changed_since?start=earliest&limit=200{query}"), &key);
    let by_fields = feed("&naics=54,23&minAmount=1");
    assert_eq!(feed("&filter=my%20codes"), by_fields);
    assert!(!by_fields["changes"].as_array().unwrap().is_empty());
    let (mut replaced, by_fields_alone) = (feed("&filter=my%20codes&naics=33"), feed("&naics=33&minAmount=1"));
    let words = "parameters of this request that replace those of the saved filter: naics";
    assert!(replaced["note"].as_str().is_some_and(|note| note.starts_with(words)), "{}", replaced["note"]);
    replaced["note"] = by_fields_alone["note"].clone();
    assert_eq!(replaced, by_fields_alone);
    let cursor = by_fields["cursor"].as_str().unwrap();
    let on = |query: &str| api.ask("GET", &format!("/awards/v1/whats_changed_since?cursor={cursor}{query}"), &key, &Value::Null);
    assert_eq!((on("&filter=my%20codes").0, on("&naics=23,54&minAmount=1").0), (200, 200));
    api.want(201, "POST", "/awards/v1/filters", &key, &json!({"name": "my codes", "filter": {"naics": ["54"]}}));
    assert_eq!(on("&filter=my%20codes").1["code"], "filter-changed");
    assert_eq!(on("&filter=my%20codes&rebase=true").0, 200);
    api.0.stop().await;
    engine.close().await;
}
