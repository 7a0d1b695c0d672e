//! Saved filters and watches: stored through the log, used in feeds, matched against new changes, and visible to their own account only.

use std::collections::BTreeSet;
use std::sync::{Arc, Mutex};

use feed::Source;
use jiff::civil::date;
use schemas::clock::Clock;
use schemas::views::accounts::Tier;
use serde_json::{Value, json};

use crate::api::HttpApi;
use crate::commands::NOWHERE;
use crate::engine::{Engine, SimulatedUpstreams, fixed_clock};
use crate::process::{Answer, Server, highwater, send, stdout};

/// The services with saved items.
const SOURCES: [Source; 3] = [research::SOURCE, filings::SOURCE, awards::SOURCE];

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
        for topic in source.facts {
            for partition in 0..topic.partitions {
                let end = engine.log.end(topic, partition).await.unwrap();
                let view = engine.store.live(source.view).await.unwrap();
                view_store::engine::wait_past(&*view, topic, partition, end).await.unwrap();
            }
        }
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
/// newest first and by pages; that earlier changes do not match; and that a saved filter gives the same feed as its fields.
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
    let latest = |service: &str| api.get(&format!("/{service}/v1/changes?start=latest"), &key)["cursor"].as_str().unwrap().to_owned();
    let cursors = SOURCES.map(|source| latest(source.service));

    // A saved filter is equivalent to its fields; fields in the request override its own.
    api.want(201, "POST", "/awards/v1/filters", &key, &json!({"name": "my codes", "filter": {"naics": ["54", "23"], "minAmount": 1}}));
    let feed = |query: &str| api.get(&format!("/awards/v1/whats_changed_since?start=earliest&limit=200{query}"), &key);
    let by_fields = feed("&naics=54,23&minAmount=1");
    assert_eq!(feed("&filter=my%20codes"), by_fields);
    assert!(!by_fields["changes"].as_array().unwrap().is_empty());
    assert_eq!(feed("&filter=my%20codes&naics=33"), feed("&naics=33&minAmount=1"));
    let cursor = by_fields["cursor"].as_str().unwrap();
    let on = |query: &str| api.ask("GET", &format!("/awards/v1/whats_changed_since?cursor={cursor}{query}"), &key, &Value::Null);
    assert_eq!((on("&filter=my%20codes").0, on("&naics=23,54&minAmount=1").0), (200, 200));
    api.want(201, "POST", "/awards/v1/filters", &key, &json!({"name": "my codes", "filter": {"naics": ["54"]}}));
    assert_eq!(on("&filter=my%20codes").1["code"], "filter-changed");
    assert_eq!(on("&filter=my%20codes&rebase=true").0, 200);
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

/// A running server without upstreams, and its log lines.
struct IdleServer {
    server: Server,
    log_lines: Arc<Mutex<Vec<String>>>,
}

impl IdleServer {
    fn start(data: &std::path::Path) -> Self {
        let mut command = highwater(data, NOWHERE, &["serve"]);
        command.env("HIGHWATER_LOGGING__LEVEL", "debug");
        let log_lines = Arc::new(Mutex::new(Vec::new()));
        let heard = Arc::clone(&log_lines);
        let server = Server::try_start(command, move |line| heard.lock().unwrap().push(line.to_owned())).unwrap();
        crate::process::wait_for("readiness", || (server.get("/readyz", "")?.0 == 200).then_some(()));
        Self { server, log_lines }
    }

    fn send(&self, method: &str, path: &str, headers: &[(&str, &str)], body: &Value) -> (u16, Value) {
        let body = if body.is_null() { String::new() } else { body.to_string() };
        let Answer { status, body, .. } = send(self.server.address, method, path, headers, &body);
        (status, serde_json::from_slice(&body).unwrap())
    }
}

/// Proves, on each service, who may save items: the tiers, errors that name the field, that other accounts' items are invisible, that a
/// repeated request creates nothing, and the limits of each tier. Also proves that webhook URLs are in no answer, export or log line, and
/// that a rebuild restores all items.
#[test]
fn saved_items_belong_to_one_account() {
    let dir = tempfile::tempdir().unwrap();
    let data = dir.path().join("data");
    let idle = IdleServer::start(&data);
    let run = |arguments: &[&str]| stdout(highwater(&data, NOWHERE, arguments));
    let [free, pro, other] = ["free", "pro", "business"].map(|tier| run(&["keys", "mint", "--tier", tier]).trim().to_owned());
    let secret = "https://hooks.example.org/in/s3cr3t-path?token=s3cr3t-token";
    let cases = [
        ("research", "whats_changed_since", json!({"topic": "oncology"}), json!({"entity": {"type": "pi", "value": "Ada"}})),
        ("filings", "whats_new_since", json!({"form": ["8-K"], "minEventScore": 50}), json!({"cik": "320193"})),
        ("awards", "whats_changed_since", json!({"naics": ["5415"], "agency": "energy"}), json!({"contractor": "federal"})),
    ];
    let mut answers = Vec::new();
    for (service, feed, filter, named) in &cases {
        let at = |path: &str| format!("/{service}/v1/{path}");
        let mut ask = |key: &str, method: &str, path: &str, body: &Value| -> (u16, String, Value) {
            let (status, answer) = idle.send(method, &at(path), &[("x-api-key", key)], body);
            answers.push(answer.to_string());
            (status, answer["code"].as_str().unwrap_or_default().to_owned(), answer)
        };
        let code = |(status, code, _): (u16, String, Value)| (status, code);
        let (save, none) = (json!({"name": "mine", "filter": filter}), Value::Null);
        let mut watch = named.clone();
        watch["webhook"] = secret.into();

        // Only paid tiers.
        for key in ["", free.as_str()] {
            for (method, path, body) in [("POST", "filters", &save), ("GET", "filters", &none), ("POST", "watchlist", &watch)] {
                assert_eq!(code(ask(key, method, path, body)), (403, "tier-too-low".into()), "{service} {method} {path}");
            }
            assert_eq!(code(ask(key, "GET", &format!("{feed}?filter=mine"), &none)), (403, "tier-too-low".into()), "{service}");
        }

        // Errors name the field.
        let mut bad = |path: &str, body: Value, parameter: &str, message: &str| {
            let (status, _, answer) = ask(&pro, "POST", path, &body);
            assert_eq!((status, answer["parameter"].as_str()), (400, Some(parameter)), "{service} {body}: {answer}");
            assert!(answer["detail"].as_str().unwrap().contains(message), "{service} {body}: {answer}");
        };
        bad("filters", json!({"name": "x", "filter": {"colour": "red"}}), "filter", "unknown field \"colour\"");
        bad("filters", json!({"name": " ", "filter": {}}), "name", "empty");
        bad("filters", json!({"name": true, "filter": {}}), "name", "not of type string");
        bad("watchlist", json!({"webhook": secret}), named.as_object().unwrap().keys().next().unwrap(), "missing");
        for (url, message) in
            [("http://example.org/s3cr3t", "must be https"), ("https://10.0.0.1/s3cr3t", "public"), ("s3cr3t", "not a URL")]
        {
            let mut body = named.clone();
            body["webhook"] = url.into();
            bad("watchlist", body, "webhook", message);
        }
        bad(
            "watchlist",
            {
                let mut body = named.clone();
                body["webhook"] = json!([secret]);
                body
            },
            "webhook",
            "the value is not of type string",
        );

        // Stored, listed and used; invisible to others.
        let (status, _, mut saved) = ask(&pro, "POST", "filters", &save);
        assert_eq!((status, &saved["name"], &saved["filter"]), (201, &json!("mine"), filter));
        let (status, _, mut made) = ask(&pro, "POST", "watchlist", &watch);
        assert_eq!((status, &made["webhookHost"]), (201, &json!("hooks.example.org")), "{made}");
        assert!(made.as_object_mut().unwrap().remove("secret").is_some_and(|secret| secret.as_str().unwrap().starts_with("whsec_")));
        // Only the answer to the request that made one says what is not recorded.
        [&mut saved, &mut made].into_iter().for_each(|one| drop(one.as_object_mut().unwrap().remove("note")));
        let id = format!("watchlist/{}", made["id"].as_str().unwrap());
        assert_eq!(ask(&pro, "GET", "filters", &none).2["filters"], json!([saved]));
        assert_eq!(ask(&pro, "GET", "watchlist", &none).2["watches"], json!([made]));
        assert_eq!(ask(&pro, "GET", &format!("{feed}?filter=mine"), &none).0, 200);
        assert_eq!(ask(&pro, "GET", &id, &none).2["matches"], json!([]));
        assert_eq!(
            (ask(&other, "GET", "filters", &none).2, ask(&other, "GET", "watchlist", &none).2),
            (json!({"filters": [], "next": null}), json!({"watches": [], "next": null}))
        );
        for (method, path) in
            [("GET", id.as_str()), ("DELETE", id.as_str()), ("DELETE", "filters/mine"), ("GET", &format!("{feed}?filter=mine"))]
        {
            assert_eq!(code(ask(&other, method, path, &none)), (404, "not-found".into()), "{service} {method} {path}");
        }

        // The limit of the tier; a deletion makes room.
        for n in 1..20 {
            assert_eq!(ask(&pro, "POST", "filters", &json!({"name": format!("n{n}"), "filter": {}})).0, 201);
        }
        let more = json!({"name": "one more", "filter": {}});
        assert_eq!(code(ask(&pro, "POST", "filters", &more)), (409, "limit-reached".into()));
        assert_eq!(ask(&pro, "POST", "filters", &save).0, 201, "replacing a filter needs no room");
        assert_eq!(ask(&pro, "DELETE", "filters/n1", &none), (200, String::new(), json!({"deleted": "n1"})));
        assert_eq!(code(ask(&pro, "DELETE", "filters/n1", &none)), (404, "not-found".into()));
        assert_eq!(ask(&pro, "POST", "filters", &more).0, 201);

        // Repeated requests.
        let once = |path: &str, body: &Value| idle.send("POST", &at(path), &[("x-api-key", &pro), ("idempotency-key", "k1")], body);
        let (first, second) = (once("watchlist", &watch), once("watchlist", &watch));
        assert_eq!((first.0, &first.1["id"]), (201, &second.1["id"]));
        assert!(first.1["secret"].is_string() && second.1.get("secret").is_none(), "a secret is shown once: {}", second.1);
        assert!(second.1["note"].as_str().unwrap().contains("the secret was shown once"), "{}", second.1);
        assert_ne!(first.1["id"], made["id"]);
        let arguments = json!({"action": "delete_watch", "arguments": {"id": first.1["id"]}});
        let tool = json!({"jsonrpc": "2.0", "id": 1, "method": "tools/call", "params": {"name": "manage", "arguments": arguments}});
        let (_, called) =
            idle.send("POST", &format!("/{service}/mcp"), &[("x-api-key", &pro), ("accept", "application/json, text/event-stream")], &tool);
        assert_eq!(called["result"]["structuredContent"]["deleted"], first.1["id"], "{called}");
        assert_eq!(once("watchlist", &watch).0, 404, "a repeated request must not restore a deleted item");
        let (old, new) = (json!({"name": "turn", "filter": {}}), json!({"name": "turn", "filter": filter}));
        ask(&pro, "DELETE", "filters/n2", &none);
        assert_eq!(once("filters", &old).0, 201);
        assert_eq!(ask(&pro, "POST", "filters", &new).0, 201);
        assert_eq!(once("filters", &old).1["filter"], *filter, "a repeated old request must not undo a later one");
    }

    let listed = |idle: &IdleServer| {
        cases.each_ref().map(|(service, ..)| {
            ["filters", "watchlist"].map(|path| idle.send("GET", &format!("/{service}/v1/{path}"), &[("x-api-key", &pro)], &Value::Null).1)
        })
    };
    let (kept, digest) = (listed(&idle), run(&["digest", "watches", "--history"]));
    run(&["replay", "watches"]);
    run(&["redecide", "watches"]);
    assert_eq!((listed(&idle), run(&["digest", "watches", "--history"])), (kept, digest));

    let exports = ["accounts", "changes.accounts", "changes.watches"].map(|topic| run(&["export", topic, "--all"]));
    assert!(exports[0].contains("\"webhook\"") && exports[2].contains("\"webhook\""));

    // An account is erased: its key ends, its items are removed, and no rebuild and no imported secret restores its webhook URLs.
    let status = |key: &str| idle.send("GET", "/research/v1/watchlist", &[("x-api-key", key)], &Value::Null).0;
    let (secrets, file) = (run(&["accounts", "export-secrets"]), dir.path().join("secrets"));
    std::fs::write(&file, &secrets).unwrap();
    let keys = run(&["keys", "list"]);
    let line: Vec<&str> = keys.lines().map(|line| line.split('\t').collect::<Vec<_>>()).find(|line| line[1] == "pro").unwrap();
    let (id, account) = (line[0], line[5].strip_prefix("of ").unwrap());
    assert!(secrets.lines().any(|line| line.strip_prefix(account).is_some_and(|secret| secret.len() == 65)), "{account}: {secrets}");
    let erase = |name: &str| {
        let output = crate::process::run(highwater(&data, NOWHERE, &["accounts", "erase", name]));
        (output.status.code(), String::from_utf8(output.stderr).unwrap().trim().to_owned())
    };
    assert_eq!(erase("acct_none"), (Some(1), "highwater: there is no account or key acct_none".to_owned()));
    assert_eq!((status(&pro), status(&other)), (200, 200));
    let (code, message) = erase(id);
    assert!(
        code == Some(0) && message.starts_with(&format!("{account} is erased: 1 keys, ")) && !message.contains(" 0 filters"),
        "{message}"
    );
    assert_eq!((status(&pro), status(&other)), (401, 200));
    assert_eq!(erase(account), (Some(0), format!("{account} is erased: 0 keys, 0 filters and watches")));
    run(&["replay", "all"]);
    run(&["accounts", "import-secrets", file.to_str().unwrap()]);
    assert_eq!(run(&["accounts", "export-secrets"]), format!("{account}\t\n"));

    assert_eq!(idle.server.terminate().code(), Some(0));
    let log_lines = idle.log_lines.lock().unwrap().clone();
    assert!(log_lines.iter().any(|line| line.contains("answered")), "the log is almost empty");
    for text in log_lines.iter().chain(&exports).chain(&answers) {
        assert!(!text.contains("s3cr3t"), "{text}");
    }
}
