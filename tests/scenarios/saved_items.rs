//! Saved filters and watches over HTTP: who may save them, what they say about an error, and that only their own account sees them.

use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex};

use serde_json::{Value, json};
use tempfile::TempDir;

use crate::commands::NOWHERE;
use crate::process::{Answer, Server, highwater, send, stdout, wait_for};

/// A webhook whose path and query are secret.
const WEBHOOK: &str = "https://hooks.example.org/in/s3cr3t-path?token=s3cr3t-token";

/// A running server without upstreams, with keys of three accounts.
struct Accounts {
    server: Server,
    log_lines: Arc<Mutex<Vec<String>>>,
    /// Every answer of [`Self::ask`].
    answers: Mutex<Vec<String>>,
    data: PathBuf,
    free: String,
    pro: String,
    other: String,
    /// Dropped last, after the server has ended.
    dir: TempDir,
}

impl Accounts {
    fn open() -> Self {
        let dir = tempfile::tempdir().unwrap();
        let data = dir.path().join("data");
        let (server, log_lines) = start(&data);
        let mint = |tier| stdout(highwater(&data, NOWHERE, &["keys", "mint", "--tier", tier])).trim().to_owned();
        let [free, pro, other] = ["free", "pro", "business"].map(mint);
        Self { server, log_lines, answers: Mutex::default(), data, free, pro, other, dir }
    }

    fn run(&self, arguments: &[&str]) -> String {
        stdout(highwater(&self.data, NOWHERE, arguments))
    }

    fn send(&self, method: &str, path: &str, headers: &[(&str, &str)], body: &Value) -> (u16, Value) {
        let body = if body.is_null() { String::new() } else { body.to_string() };
        let Answer { status, body, .. } = send(self.server.address, method, path, headers, &body);
        (status, serde_json::from_slice(&body).unwrap())
    }

    /// Sends a request with a key; the body may be null. Returns status and JSON.
    fn ask(&self, key: &str, method: &str, path: &str, body: &Value) -> (u16, Value) {
        let (status, answer) = self.send(method, path, &[("x-api-key", key)], body);
        self.answers.lock().unwrap().push(answer.to_string());
        (status, answer)
    }

    /// As [`Self::ask`]. Returns status and error code.
    fn code(&self, key: &str, method: &str, path: &str, body: &Value) -> (u16, String) {
        let (status, answer) = self.ask(key, method, path, body);
        (status, answer["code"].as_str().unwrap_or_default().to_owned())
    }

    /// Saves a filter and creates a watch for the account `pro`. Returns them as lists show them.
    fn save(&self, case: &Case) -> (Value, Value) {
        let (status, mut saved) = self.ask(&self.pro, "POST", &case.at("filters"), &case.mine());
        assert_eq!((status, &saved["name"], &saved["filter"]), (201, &json!("mine"), &case.filter));
        let (status, mut made) = self.ask(&self.pro, "POST", &case.at("watchlist"), &case.watch(json!(WEBHOOK)));
        assert_eq!((status, &made["webhookHost"]), (201, &json!("hooks.example.org")), "{made}");
        assert!(made.as_object_mut().unwrap().remove("secret").is_some_and(|secret| secret.as_str().unwrap().starts_with("whsec_")));
        // Only the answer to the request that made one says what is not recorded.
        [&mut saved, &mut made].into_iter().for_each(|one| drop(one.as_object_mut().unwrap().remove("note")));
        (saved, made)
    }
}

/// Starts a server that logs as much as it can. Returns it when it is ready, with the lines of its log.
fn start(data: &Path) -> (Server, Arc<Mutex<Vec<String>>>) {
    let mut command = highwater(data, NOWHERE, &["serve"]);
    command.env("HIGHWATER_LOGGING__LEVEL", "debug");
    let log_lines = Arc::new(Mutex::new(Vec::new()));
    let heard = Arc::clone(&log_lines);
    let server = Server::try_start(command, move |line| heard.lock().unwrap().push(line.to_owned())).unwrap();
    wait_for("readiness", || (server.get("/readyz", "")?.0 == 200).then_some(()));
    (server, log_lines)
}

/// A service with saved items.
struct Case {
    service: &'static str,
    feed: &'static str,
    filter: Value,
    /// What a watch names.
    named: Value,
}

impl Case {
    fn all() -> [Self; 3] {
        let entity = json!({"entity": {"type": "pi", "value": "Ada"}});
        let forms = json!({"form": ["8-K"], "minEventScore": 50});
        let codes = json!({"naics": ["5415"], "agency": "energy"});
        [
            Self { service: "research", feed: "whats_changed_since", filter: json!({"topic": "oncology"}), named: entity },
            Self { service: "filings", feed: "whats_new_since", filter: forms, named: json!({"cik": "320193"}) },
            Self { service: "awards", feed: "whats_changed_since", filter: codes, named: json!({"contractor": "federal"}) },
        ]
    }

    fn at(&self, path: &str) -> String {
        format!("/{}/v1/{path}", self.service)
    }

    /// The feed with the filter that is saved as `mine`.
    fn feed_of_mine(&self) -> String {
        self.at(&format!("{}?filter=mine", self.feed))
    }

    fn mine(&self) -> Value {
        json!({"name": "mine", "filter": self.filter})
    }

    fn watch(&self, webhook: Value) -> Value {
        let mut watch = self.named.clone();
        watch["webhook"] = webhook;
        watch
    }
}

/// Proves that only callers of paid tiers save items, list them or use them in a feed.
#[test]
fn only_paid_tiers_save_items() {
    let accounts = Accounts::open();
    for case in Case::all() {
        for key in ["", accounts.free.as_str()] {
            for (method, path, body) in
                [("POST", "filters", case.mine()), ("GET", "filters", Value::Null), ("POST", "watchlist", case.watch(json!(WEBHOOK)))]
            {
                assert_eq!(
                    accounts.code(key, method, &case.at(path), &body),
                    (403, "tier-too-low".into()),
                    "{} {method} {path}",
                    case.service
                );
            }
            assert_eq!(accounts.code(key, "GET", &case.feed_of_mine(), &Value::Null), (403, "tier-too-low".into()), "{}", case.service);
        }
    }
}

/// Proves that the error of a refused item names the field and what is wrong with it.
#[test]
fn errors_name_the_field() {
    let accounts = Accounts::open();
    for case in Case::all() {
        let bad = |path: &str, body: Value, parameter: &str, message: &str| {
            let (status, answer) = accounts.ask(&accounts.pro, "POST", &case.at(path), &body);
            assert_eq!((status, answer["parameter"].as_str()), (400, Some(parameter)), "{} {body}: {answer}", case.service);
            assert!(answer["detail"].as_str().unwrap().contains(message), "{} {body}: {answer}", case.service);
        };
        bad("filters", json!({"name": "x", "filter": {"colour": "red"}}), "filter.colour", "unknown field \"colour\"");
        bad("filters", json!({"name": " ", "filter": {}}), "name", "empty");
        bad("filters", json!({"name": true, "filter": {}}), "name", "not of type string");
        bad("watchlist", json!({"webhook": WEBHOOK}), case.named.as_object().unwrap().keys().next().unwrap(), "missing");
        for (webhook, message) in [
            (json!("http://example.org/s3cr3t"), "must be https"),
            (json!("https://10.0.0.1/s3cr3t"), "public"),
            (json!("s3cr3t"), "not a URL"),
            (json!([WEBHOOK]), "the value is not of type string"),
        ] {
            bad("watchlist", case.watch(webhook), "webhook", message);
        }
    }
}

/// Proves that items are listed and used by the account that saved them, and are unknown to another one.
#[test]
fn items_belong_to_one_account() {
    let accounts = Accounts::open();
    let (pro, other, none) = (accounts.pro.as_str(), accounts.other.as_str(), Value::Null);
    for case in Case::all() {
        let (saved, made) = accounts.save(&case);
        let watch = case.at(&format!("watchlist/{}", made["id"].as_str().unwrap()));
        let listed = |key: &str| ["filters", "watchlist"].map(|path| accounts.ask(key, "GET", &case.at(path), &none).1);
        let [filters, watches] = listed(pro);
        assert_eq!((&filters["filters"], &watches["watches"]), (&json!([saved]), &json!([made])));
        assert_eq!(accounts.ask(pro, "GET", &case.feed_of_mine(), &none).0, 200);
        assert_eq!(accounts.ask(pro, "GET", &watch, &none).1["matches"], json!([]));
        assert_eq!(listed(other), [json!({"filters": [], "next": null}), json!({"watches": [], "next": null})]);
        for (method, path) in
            [("GET", watch.clone()), ("DELETE", watch.clone()), ("DELETE", case.at("filters/mine")), ("GET", case.feed_of_mine())]
        {
            assert_eq!(accounts.code(other, method, &path, &none), (404, "not-found".into()), "{method} {path}");
        }
    }
}

/// Proves that a page under a saved filter says which of its fields the request replaced, and only those.
#[test]
fn pages_say_what_replaced_the_saved_filter() {
    let accounts = Accounts::open();
    let [_, filings, _] = Case::all();
    accounts.save(&filings);
    let note = |more: &str| {
        let (status, page) = accounts.ask(&accounts.pro, "GET", &format!("{}&start=earliest{more}", filings.feed_of_mine()), &Value::Null);
        assert_eq!(status, 200, "{page}");
        page["note"].as_str().unwrap_or_default().to_owned()
    };
    let words = "parameters of this request that replace those of the saved filter: form";
    for (more, is_replaced) in [("", false), ("&form=8-k", false), ("&minEventScore=50&form=10-K", true)] {
        let note = note(more);
        assert_eq!(note.split("; ").any(|part| part == words), is_replaced, "{more}: {note}");
        assert!(is_replaced || !note.contains("replace"), "{more}: {note}");
    }
}

/// Proves that a tier limits the filters of an account, that replacing one needs no room, and that a deletion makes room.
#[test]
fn tiers_limit_filters() {
    let accounts = Accounts::open();
    let pro = accounts.pro.as_str();
    for case in Case::all() {
        let filters = case.at("filters");
        assert_eq!(accounts.ask(pro, "POST", &filters, &case.mine()).0, 201);
        for n in 1..20 {
            assert_eq!(accounts.ask(pro, "POST", &filters, &json!({"name": format!("n{n}"), "filter": {}})).0, 201);
        }
        let more = json!({"name": "one more", "filter": {}});
        assert_eq!(accounts.code(pro, "POST", &filters, &more), (409, "limit-reached".into()));
        assert_eq!(accounts.ask(pro, "POST", &filters, &case.mine()).0, 201, "replacing a filter needs no room");
        let first = case.at("filters/n1");
        assert_eq!(accounts.ask(pro, "DELETE", &first, &Value::Null), (200, json!({"deleted": "n1"})));
        assert_eq!(accounts.code(pro, "DELETE", &first, &Value::Null), (404, "not-found".into()));
        assert_eq!(accounts.ask(pro, "POST", &filters, &more).0, 201);
    }
}

/// Proves that a repeated request creates nothing, restores nothing that was deleted, and undoes nothing that was saved later.
#[test]
fn repeated_requests_create_nothing() {
    let accounts = Accounts::open();
    let pro = accounts.pro.as_str();
    for case in Case::all() {
        let once = |path: &str, body: &Value| accounts.send("POST", &case.at(path), &[("x-api-key", pro), ("idempotency-key", "k1")], body);
        let (_, made) = accounts.save(&case);
        let watch = case.watch(json!(WEBHOOK));
        let (first, second) = (once("watchlist", &watch), once("watchlist", &watch));
        assert_eq!((first.0, &first.1["id"]), (201, &second.1["id"]));
        assert!(first.1["secret"].is_string() && second.1.get("secret").is_none(), "a secret is shown once: {}", second.1);
        assert!(second.1["note"].as_str().unwrap().contains("the secret was shown once"), "{}", second.1);
        assert_ne!(first.1["id"], made["id"]);
        let arguments = json!({"action": "delete_watch", "arguments": {"id": first.1["id"]}});
        let tool = json!({"jsonrpc": "2.0", "id": 1, "method": "tools/call", "params": {"name": "manage", "arguments": arguments}});
        let accept = [("x-api-key", pro), ("accept", "application/json, text/event-stream")];
        let (_, called) = accounts.send("POST", &format!("/{}/mcp", case.service), &accept, &tool);
        assert_eq!(called["result"]["structuredContent"]["deleted"], first.1["id"], "{called}");
        assert_eq!(once("watchlist", &watch).0, 404, "a repeated request must not restore a deleted item");
        let (old, new) = (json!({"name": "turn", "filter": {}}), json!({"name": "turn", "filter": case.filter}));
        assert_eq!(once("filters", &old).0, 201);
        assert_eq!(accounts.ask(pro, "POST", &case.at("filters"), &new).0, 201);
        assert_eq!(once("filters", &old).1["filter"], case.filter, "a repeated old request must not undo a later one");
    }
}

/// Proves that a rebuild and a new decision restore all items.
#[test]
fn rebuilds_restore_items() {
    let accounts = Accounts::open();
    let cases = Case::all();
    cases.iter().for_each(|case| drop(accounts.save(case)));
    let listed = || {
        cases.each_ref().map(|case| ["filters", "watchlist"].map(|path| accounts.ask(&accounts.pro, "GET", &case.at(path), &Value::Null)))
    };
    let digest = || accounts.run(&["digest", "watches", "--history"]);
    let before = (listed(), digest());
    accounts.run(&["replay", "watches"]);
    accounts.run(&["redecide", "watches"]);
    assert_eq!((listed(), digest()), before);
}

/// Proves that the key of an erased account ends, that its items are removed, and that no rebuild and no imported secret restores its webhook URLs.
#[test]
fn erased_accounts_are_not_restored() {
    let accounts = Accounts::open();
    Case::all().iter().for_each(|case| drop(accounts.save(case)));
    let (pro, other) = (accounts.pro.as_str(), accounts.other.as_str());
    let status = |key: &str| accounts.ask(key, "GET", "/research/v1/watchlist", &Value::Null).0;
    let (secrets, file) = (accounts.run(&["accounts", "export-secrets"]), accounts.dir.path().join("secrets"));
    std::fs::write(&file, &secrets).unwrap();
    let keys = accounts.run(&["keys", "list"]);
    let line: Vec<&str> = keys.lines().map(|line| line.split('\t').collect::<Vec<_>>()).find(|line| line[1] == "pro").unwrap();
    let (id, account) = (line[0], line[5].strip_prefix("of ").unwrap());
    assert!(secrets.lines().any(|line| line.strip_prefix(account).is_some_and(|secret| secret.len() == 65)), "{account}: {secrets}");
    let erase = |name: &str| {
        let output = crate::process::run(highwater(&accounts.data, NOWHERE, &["accounts", "erase", name]));
        (output.status.code(), String::from_utf8(output.stderr).unwrap().trim().to_owned())
    };
    assert_eq!(erase("acct_none"), (Some(1), "highwater: there is no account or key acct_none".to_owned()));
    assert_eq!((status(pro), status(other)), (200, 200));
    let (code, message) = erase(id);
    assert!(
        code == Some(0) && message.starts_with(&format!("{account} is erased: 1 keys, ")) && !message.contains(" 0 filters"),
        "{message}"
    );
    assert_eq!((status(pro), status(other)), (401, 200));
    assert_eq!(erase(account), (Some(0), format!("{account} is erased: 0 keys, 0 filters and watches")));
    accounts.run(&["replay", "all"]);
    accounts.run(&["accounts", "import-secrets", file.to_str().unwrap()]);
    assert_eq!(accounts.run(&["accounts", "export-secrets"]), format!("{account}\t\n"));
}

/// Proves that webhook URLs, accepted and refused, are in no answer, export or log line.
#[test]
fn webhook_urls_are_never_shown() {
    let accounts = Accounts::open();
    let none = Value::Null;
    for case in Case::all() {
        for webhook in [json!("http://example.org/s3cr3t"), json!("https://10.0.0.1/s3cr3t"), json!("s3cr3t"), json!([WEBHOOK])] {
            assert_eq!(accounts.ask(&accounts.pro, "POST", &case.at("watchlist"), &case.watch(webhook)).0, 400);
        }
        assert_eq!(accounts.ask(&accounts.free, "POST", &case.at("watchlist"), &case.watch(json!(WEBHOOK))).0, 403);
        let (_, made) = accounts.save(&case);
        let watch = case.at(&format!("watchlist/{}", made["id"].as_str().unwrap()));
        assert_eq!(accounts.ask(&accounts.pro, "GET", &watch, &none).0, 200);
        assert_eq!(accounts.ask(&accounts.pro, "GET", &case.at("watchlist"), &none).0, 200);
        assert_eq!(accounts.ask(&accounts.other, "GET", &watch, &none).0, 404);
    }
    accounts.run(&["replay", "watches"]);
    let exports = ["accounts", "changes.accounts", "changes.watches"].map(|topic| accounts.run(&["export", topic, "--all"]));
    assert!(exports[0].contains("\"webhook\"") && exports[2].contains("\"webhook\""));
    assert_eq!(accounts.server.terminate().code(), Some(0));
    let (log_lines, answers) = (accounts.log_lines.lock().unwrap(), accounts.answers.lock().unwrap());
    assert!(log_lines.iter().any(|line| line.contains("answered")), "the log is almost empty");
    for text in log_lines.iter().chain(&exports).chain(answers.iter()) {
        assert!(!text.contains("s3cr3t"), "{text}");
    }
}
