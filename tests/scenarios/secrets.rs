//! Secrets: keys, payments, webhook URLs and the contents of receipts are planted, and searched for in everything that a server shows and
//! stores.

use std::path::{Path, PathBuf};
use std::process::Command;
use std::sync::{Arc, Mutex};

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use memchr::memmem;
use serde_json::json;

use crate::commands::NOWHERE;
use crate::payments::backend::PaymentBackend;
use crate::payments::{authorization, body, header, payment, with_payments};
use crate::process::{Answer, Server, highwater, stdout, try_send};

/// Texts that act as secrets of different owners.
const EMAIL: &str = "planted-mail@example.org";
const INPUT: &str = "planted-input-7f3a";
const OUTPUT: &str = "planted-output-7f3a";
const WEBHOOK: &str = "planted-hook-7f3a";
const UPSTREAM_KEY: &str = "planted-upstream-key-7f3a";
const FACILITATOR: &str = "planted-facilitator-7f3a";
const PLANTED_KEY: &str = "hw_live_planted0000000000000000000000000000";

/// Method, path, headers and body of a request.
type Request<'a> = (&'a str, String, &'a [(&'a str, &'a str)], String);

/// Lists all files below a directory except those that are secrets themselves.
fn files(dir: &Path) -> Vec<PathBuf> {
    let mut all = Vec::new();
    for entry in std::fs::read_dir(dir).unwrap() {
        let path = entry.unwrap().path();
        if path.is_dir() {
            all.extend(files(&path));
        } else if path.extension().is_none_or(|extension| extension != "key") {
            all.push(path);
        }
    }
    all
}

/// The exported topics and the files of a data directory, with their names.
fn stored(data: &Path, command: impl Fn(&[&str]) -> Command) -> Vec<(String, Vec<u8>)> {
    let topics = ["accounts", "changes.accounts", "changes.watches", "payments", "changes.payments", "receipts", "changes.receipts"];
    let exported = topics.map(|topic| {
        let exported = stdout(command(&["export", topic]));
        assert!(exported.lines().count() > 0, "{topic} is empty");
        (format!("topic {topic}"), exported.into_bytes())
    });
    let files = files(data).into_iter().map(|path| (path.display().to_string(), std::fs::read(&path).unwrap()));
    exported.into_iter().chain(files).collect()
}

/// Checks that no place, by its name, holds one of the secrets, whether in small letters or in capitals.
fn assert_absent(mut places: Vec<(String, Vec<u8>)>, secrets: Vec<String>) {
    places.iter_mut().for_each(|(_, bytes)| bytes.make_ascii_lowercase());
    for secret in secrets.iter().filter(|secret| !secret.is_empty()) {
        let finder = memmem::Finder::new(&secret.to_ascii_lowercase()).into_owned();
        for (place, bytes) in &places {
            let found = finder.find(bytes);
            let before = |at: usize| String::from_utf8_lossy(&bytes[at.saturating_sub(300)..at]).into_owned();
            assert_eq!(found.map(before), None, "{place} holds a secret: {}…", &secret[..12.min(secret.len())]);
        }
    }
}

/// Proves that no secret is in the logs (at their finest level), the metrics, the answers (except the one that issues a key), the exported
/// topics, or the files of a server that got valid and invalid requests with keys in every place where one may be put by mistake.
#[test]
fn secrets_are_never_shown_or_stored() {
    let dir = tempfile::tempdir().unwrap();
    let (data, backend) = (dir.path().join("data"), PaymentBackend::open());
    let with_secrets = |mut command: Command| {
        command.env("HIGHWATER_LOGGING__LEVEL", "trace").env("HIGHWATER_UPSTREAMS__OPENFDA__API_KEY", UPSTREAM_KEY);
        command.env("HIGHWATER_PAYMENTS__FACILITATOR_URL", format!("http://{}/{FACILITATOR}", backend.address()));
        command.env("HIGHWATER_WEBHOOKS__ALLOW_PRIVATE_TARGETS", "true");
        command
    };
    let command = |arguments: &[&str]| with_secrets(with_payments(highwater(&data, NOWHERE, arguments), &backend));
    let heard = Arc::new(Mutex::new(String::new()));
    let log = Arc::clone(&heard);
    let server = Server::try_start(command(&["serve"]), move |line| *log.lock().unwrap() += &format!("{line}\n")).unwrap();
    server.wait_until_it_signs();
    let key = stdout(command(&["keys", "mint", "--tier", "pro"])).trim().to_owned();
    let answers = Mutex::new(Vec::new());
    let ask = |method: &str, path: &str, headers: &[(&str, &str)], body: &str| -> Answer {
        let answer = try_send(server.address, method, path, headers, body).unwrap();
        let mut answers = answers.lock().unwrap();
        answers.extend_from_slice(answer.head().as_bytes());
        answers.extend_from_slice(&STANDARD.decode(answer.header("payment-required")).unwrap());
        answers.extend_from_slice(&answer.body);
        answer
    };
    let issue =
        |inputs: &str| json!({ "action": "pay", "agent_id": "a", "inputs": { "card": inputs }, "outputs": { "pin": OUTPUT } }).to_string();

    // Valid requests.
    let minted = try_send(server.address, "POST", "/recalls/api/keys", &[], &json!({ "email": EMAIL }).to_string()).unwrap();
    assert_eq!(minted.status, 201);
    let own = serde_json::from_slice::<serde_json::Value>(&minted.body).unwrap()["api_key"].as_str().unwrap().to_owned();
    assert_eq!(ask("POST", "/receipts/v1/issue", &[("x-api-key", &key)], &issue(INPUT)).status, 201);
    assert_eq!(ask("POST", "/receipts/v1/issue", &[("x-payment", &header(&payment(1)))], &body("b", 1)).status, 201);
    let watch = json!({ "contractor": "acme", "webhook": format!("http://127.0.0.1:9/{WEBHOOK}") }).to_string();
    assert_eq!(ask("POST", "/awards/v1/watchlist", &[("x-api-key", &key)], &watch).status, 201);
    assert_eq!(ask("GET", &format!("/awards/v1/watchlist?api_key={key}"), &[], "").status, 200);
    let bearer = format!("Bearer {key}");
    assert_eq!(ask("GET", "/awards/v1/whats_changed_since", &[("authorization", &bearer)], "").status, 200);
    stdout(command(&["keys", "list"]));

    // Invalid requests: secrets are in the wrong places.
    let meta = json!({ "jsonrpc": "2.0", "id": 1, "method": "tools/call", "params": { "name": "issue_receipt", "arguments": { "card": INPUT, "key": key }, "_meta": { "x402/payment": payment(2) } } });
    let accept = [("accept", "application/json, text/event-stream"), ("x-api-key", key.as_str())];
    let wrong: [Request<'_>; 12] = [
        ("GET", "/awards/v1/watchlist".to_owned(), &[("x-api-key", PLANTED_KEY)], String::new()),
        ("GET", format!("/awards/v1/watchlist?apikey={key}"), &[], String::new()),
        ("GET", format!("/awards/v1/watchlist/{key}?key={key}"), &[], String::new()),
        ("GET", format!("/{key}"), &[], String::new()),
        ("GET", format!("/recalls/api/recalls?limit={key}"), &[], String::new()),
        ("GET", format!("/recalls/v1/changes?cursor={key}"), &[], String::new()),
        ("POST", "/receipts/v1/issue".to_owned(), &[("x-api-key", &key)], format!("{{\"inputs\": \"{INPUT}\"")),
        (
            "POST",
            "/receipts/v1/issue".to_owned(),
            &[("x-api-key", &key)],
            json!({ "agent_id": "a", "inputs": INPUT, "outputs": OUTPUT }).to_string(),
        ),
        ("POST", "/receipts/v1/issue".to_owned(), &[("x-api-key", &key), ("idempotency-key", "x y")], issue(INPUT)),
        ("POST", "/receipts/mcp".to_owned(), &accept, meta.to_string()),
        (
            "POST",
            "/awards/v1/watchlist".to_owned(),
            &[("x-api-key", &key)],
            json!({ "contractor": "acme", "webhook": format!("ftp://u:{WEBHOOK}@x/{WEBHOOK}") }).to_string(),
        ),
        ("POST", "/recalls/api/keys".to_owned(), &[], json!({ "email": EMAIL, "more": EMAIL }).to_string()),
    ];
    for (method, path, headers, body) in &wrong {
        let answer = ask(method, path, headers, body);
        assert!((400..500).contains(&answer.status) || path.ends_with("/mcp"), "{method} {path}: {}", answer.status);
    }
    for (odd, status) in [(json!({ "x402Version": key }), 402), (json!({ "x402Version": 1, "scheme": key }), 402), (json!(key), 400)] {
        assert_eq!(ask("POST", "/receipts/v1/issue", &[("x-payment", &header(&odd))], &body("b", 3)).status, status, "{odd}");
    }
    let mut lying = payment(3);
    lying["payload"]["authorization"]["value"] = json!("1");
    assert_eq!(ask("POST", "/receipts/v1/issue", &[("x-payment", &header(&lying))], &body("b", 3)).status, 402);
    let metrics = server.metrics().unwrap();
    assert!(metrics.contains("api_payments_total"));
    answers.lock().unwrap().extend(metrics.into_bytes());
    ask("GET", "/readyz", &[], "");
    assert_eq!(server.terminate().code(), Some(0));

    let mut places =
        vec![("the log".to_owned(), heard.lock().unwrap().clone().into_bytes()), ("an answer".to_owned(), answers.into_inner().unwrap())];
    assert!(places[0].1.len() > 1_000, "the log is almost empty");
    places.extend(stored(&data, command));
    let signature = |number: u64| authorization(number, 10_000)["signature"].as_str().unwrap()[2..].to_owned();
    let keys = ["receipt-keys/first.key", "master.key"].map(|name| hex_of(&std::fs::read(data.join(name)).unwrap()));
    let issued = [key, own, signature(1), signature(2), signature(3)];
    let planted = [EMAIL, INPUT, OUTPUT, WEBHOOK, UPSTREAM_KEY, FACILITATOR, PLANTED_KEY].map(str::to_owned);
    assert_absent(places, issued.into_iter().chain(planted).chain(keys).collect());
}

/// Returns the text form of a key file.
fn hex_of(bytes: &[u8]) -> String {
    String::from_utf8_lossy(bytes).trim().to_owned()
}
