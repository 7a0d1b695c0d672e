//! Isolation of accounts: what one account owns can be neither read, changed, used nor deleted by another, over REST, MCP and the pages of
//! the portal.

use serde_json::{Value, json};

use crate::commands::NOWHERE;
use crate::portal::{Visitor, text};
use crate::process::{Answer, Server, highwater, send, stdout};

/// A text in everything that the first account stores; no other account may see it. It can be a ticker.
const PLANTED: &str = "planted7f3";
/// The services that store saved filters: the service, a feed that takes a filter, a filter, and a target for a watch.
const FILTERED: [(&str, &str, &str, &str); 3] = [
    ("research", "whats_changed_since", "institution", "{\"entity\": {\"type\": \"pi\", \"value\": \"planted7f3\"}}"),
    ("filings", "whats_new_since", "ticker", "{\"cik\": \"320193\"}"),
    ("awards", "whats_changed_since", "recipient", "{\"contractor\": \"planted7f3\"}"),
];

/// A webhook or watch of the first account.
struct Owned {
    service: &'static str,
    /// The path that lists webhooks or watches of this kind.
    list_path: String,
    id: String,
    secret: String,
    /// A message that was sent to the webhook.
    message: String,
    /// The body of the request that created it.
    body: Value,
}

impl Owned {
    /// Registers a webhook or watch for an account and sends one message to it; nothing receives the message.
    fn make(server: &Server, key: &str, service: &'static str, list_path: String, body: Value) -> Self {
        let made = json_of(&ask(server, key, "POST", &list_path, &[("idempotency-key", &repeat_key(&list_path))], &body), 201);
        let id = made["id"].as_str().unwrap().to_owned();
        let pinged = json_of(&ask(server, key, "POST", &format!("{list_path}/{id}/ping"), &[], &json!({})), 200);
        let text = |value: &Value| value.as_str().unwrap().to_owned();
        Self { service, id, secret: text(&made["secret"]), message: text(&pinged["message"]), list_path, body }
    }

    /// Returns every operation on the webhook or watch except the list: method, rest of the path, body, and the equivalent MCP tool.
    fn attempts(&self) -> Vec<(&'static str, &'static str, Value, &'static str)> {
        let is_watch = self.list_path.ends_with("watchlist");
        let mut all = vec![
            ("GET", "/deliveries", Value::Null, "webhook_deliveries"),
            ("PATCH", "", json!({"rotateSecret": true}), "update_webhook"),
            ("PATCH", "", json!({"webhook": "http://127.0.0.1:9/other"}), "update_webhook"),
            ("POST", "/ping", json!({}), "ping_webhook"),
            ("POST", "/replay", json!({"after": 0}), "replay_webhook"),
            ("POST", "/resend", json!({"message": self.message}), "resend_message"),
            ("DELETE", "", Value::Null, if is_watch { "delete_watch" } else { "delete_webhook" }),
        ];
        if is_watch {
            all.push(("GET", "", Value::Null, "get_watch"));
        }
        all
    }
}

/// The `Idempotency-Key` of a request to create something: one for each path, because a key is for one request.
fn repeat_key(path: &str) -> String {
    format!("{PLANTED}{}", path.replace('/', "-"))
}

fn ask(server: &Server, key: &str, method: &str, path: &str, headers: &[(&str, &str)], body: &Value) -> Answer {
    let body = if body.is_null() { String::new() } else { body.to_string() };
    let headers = [&[("x-api-key", key)][..], headers].concat();
    send(server.address, method, path, &headers, &body)
}

fn json_of(answer: &Answer, status: u16) -> Value {
    assert_eq!(answer.status, status, "{}", String::from_utf8_lossy(&answer.body));
    serde_json::from_slice(&answer.body).unwrap()
}

/// Calls a feed's tool, or an action of the tool `manage`, that must fail; returns its problem document.
fn refusal_of_tool(server: &Server, key: &str, service: &str, tool: &str, arguments: &Value) -> Value {
    let is_feed = FILTERED.iter().any(|(_, feed, ..)| *feed == tool);
    let managed = json!({"name": "manage", "arguments": {"action": tool, "arguments": arguments}});
    let params = if is_feed { json!({"name": tool, "arguments": arguments}) } else { managed };
    let call = json!({"jsonrpc": "2.0", "id": 1, "method": "tools/call", "params": params});
    let answer = json_of(&ask(server, key, "POST", &format!("/{service}/mcp"), &[], &call), 200);
    assert_eq!(answer["result"]["isError"], true, "{service} {tool} {arguments}: {answer}");
    serde_json::from_str(answer["result"]["content"][0]["text"].as_str().unwrap()).unwrap()
}

/// Reads everything that an account can see of its own.
fn all_of(server: &Server, key: &str, owned: &[Owned]) -> Vec<Value> {
    let get = |path: String| json_of(&ask(server, key, "GET", &path, &[], &Value::Null), 200);
    let lists = owned.iter().map(|thing| get(thing.list_path.clone()));
    let deliveries = owned.iter().map(|thing| get(format!("{}/{}/deliveries", thing.list_path, thing.id)));
    let filters = FILTERED.iter().map(|(service, ..)| get(format!("/{service}/v1/filters")));
    lists.chain(deliveries).chain(filters).collect()
}

/// Checks that an idempotency key is scoped to the account: the request of another account is independent, whether its body is the same or not.
fn assert_idempotency_keys_are_scoped(server: &Server, owner: &str, other: &str) {
    let issue = |key: &str, agent: &str| {
        let body = json!({"action": "pay", "agent_id": agent, "inputs": {"card": PLANTED}, "outputs": {}});
        json_of(&ask(server, key, "POST", "/receipts/v1/issue", &[("idempotency-key", PLANTED)], &body), 201)
    };
    let (first, second) = (issue(owner, "agent-a"), issue(other, "agent-b"));
    assert_ne!(first["receipt"]["id"], second["receipt"]["id"]);
    assert_eq!((&second["receipt"]["body"]["seq"], &issue(owner, "agent-a")["receipt"]["id"]), (&json!(1), &first["receipt"]["id"]));
}

/// Proves that another account, whatever its tier, and a caller without a key get 404 or 403 from every operation on webhooks, watches,
/// deliveries and saved filters of an account, over REST and MCP; that none of them appears in the other account's lists, repeated requests
/// and portal; and that all of them are unchanged afterwards.
#[test]
fn resources_of_other_accounts_are_unreachable() {
    let dir = tempfile::tempdir().unwrap();
    let data = dir.path().join("data");
    let command = |arguments: &[&str]| {
        let mut command = highwater(&data, NOWHERE, arguments);
        command.env("HIGHWATER_WEBHOOKS__ALLOW_PRIVATE_TARGETS", "true");
        command
    };
    let [owner, other, free] =
        ["business", "fleet", "free"].map(|tier| stdout(command(&["keys", "mint", "--tier", tier])).trim().to_owned());
    let server = Server::signing(command(&["serve"]));
    let keys = stdout(command(&["keys", "list"]));
    let line = keys.lines().find(|line| line.contains("business")).unwrap();
    let account = line.split("of ").nth(1).unwrap().split_whitespace().next().unwrap().to_owned();

    let url = format!("http://127.0.0.1:9/{PLANTED}");
    let recalls = json!({"webhook_url": url});
    let mut owned = vec![Owned::make(&server, &owner, "recalls", "/recalls/api/webhook".to_owned(), recalls)];
    for (service, _, field, watch) in FILTERED {
        let mut watch: Value = serde_json::from_str(watch).unwrap();
        watch["webhook"] = json!(url);
        owned.push(Owned::make(&server, &owner, service, format!("/{service}/v1/watchlist"), watch));
        let filter = json!({"name": "mine", "filter": {field: PLANTED}});
        json_of(&ask(&server, &owner, "POST", &format!("/{service}/v1/filters"), &[], &filter), 201);
    }
    let before = all_of(&server, &owner, &owned);
    assert!(before.iter().any(|list| list.to_string().contains(PLANTED)));

    let portal = Visitor::signed_in(&server, &other);
    // All answers to the other account; they may contain nothing of the owner's.
    let mut answers: Vec<String> = Vec::new();
    let mut refused = 0;
    for thing in &owned {
        for (method, rest, body, tool) in thing.attempts() {
            for (key, status) in [(other.as_str(), 404), (free.as_str(), 403), ("", 403)] {
                let path = format!("{}/{}{rest}", thing.list_path, thing.id);
                let answer = ask(&server, key, method, &path, &[], &body);
                assert_eq!(answer.status, status, "{method} {path}: {}", String::from_utf8_lossy(&answer.body));
                let mut arguments = if body.is_object() { body.clone() } else { json!({}) };
                arguments["id"] = json!(thing.id);
                let problem = refusal_of_tool(&server, key, thing.service, tool, &arguments);
                assert_eq!(problem["status"], status, "{} {tool}: {problem}", thing.service);
                answers.extend([String::from_utf8_lossy(&answer.body).into_owned(), problem.to_string()]);
                refused += 2;
            }
        }
        // The list, and anything that a repeated request creates, belongs to the caller.
        let list = json_of(&ask(&server, &other, "GET", &thing.list_path, &[], &Value::Null), 200);
        assert!(!list.to_string().contains(&thing.id), "{list}");
        let mut mine = thing.body.clone();
        mine[if thing.service == "recalls" { "webhook_url" } else { "webhook" }] = json!("http://127.0.0.1:9/other");
        for (path, body) in [(thing.list_path.clone(), &thing.body), (format!("{}-other", thing.list_path), &mine)] {
            let made = ask(&server, &other, "POST", &thing.list_path, &[("idempotency-key", &repeat_key(&path))], body);
            let made = json_of(&made, 201);
            assert!(made["id"] != thing.id.as_str() && made["secret"] != thing.secret.as_str(), "{made}");
        }
        // The portal has the same access rules as the operations.
        for (act, status) in [("ping", 404), ("resume", 404), ("resend", 404), ("rotate", 404), ("delete", 404), ("none", 400)] {
            let shown =
                portal.post(&format!("/account/webhooks/{}/{}", thing.service, thing.id), &format!("act={act}&message={}", thing.message));
            assert_eq!(shown.status, status, "{act}: {}", text(&shown));
            answers.push(text(&shown));
        }
        assert_eq!(portal.get(&format!("/account/webhooks/{}/{}", thing.service, thing.id)).status, 404);
    }
    for (service, feed, field, _) in FILTERED {
        for (key, status) in [(other.as_str(), 404), (free.as_str(), 403), ("", 403)] {
            for (method, path, tool, arguments) in [
                ("GET", format!("/{service}/v1/{feed}?filter=mine"), feed, json!({"filter": "mine"})),
                ("DELETE", format!("/{service}/v1/filters/mine"), "delete_filter", json!({"name": "mine"})),
            ] {
                let answer = ask(&server, key, method, &path, &[], &Value::Null);
                assert_eq!(answer.status, status, "{method} {path}: {}", String::from_utf8_lossy(&answer.body));
                let problem = refusal_of_tool(&server, key, service, tool, &arguments);
                assert_eq!(problem["status"], status, "{service} {tool}: {problem}");
                answers.extend([String::from_utf8_lossy(&answer.body).into_owned(), problem.to_string()]);
                refused += 2;
            }
        }
        // A filter with the same name in another account is another filter.
        let filters = format!("/{service}/v1/filters");
        assert_eq!(json_of(&ask(&server, &other, "GET", &filters, &[], &Value::Null), 200), json!({"filters": [], "next": null}));
        json_of(&ask(&server, &other, "POST", &filters, &[], &json!({"name": "mine", "filter": {field: "other"}})), 201);
    }

    assert_idempotency_keys_are_scoped(&server, &owner, &other);
    assert_eq!(all_of(&server, &owner, &owned), before, "the owner's resources changed");
    for answer in &answers {
        let leaks = |secret: &str| answer.to_lowercase().contains(&secret.to_lowercase());
        assert!(!leaks(&owner) && !leaks(&account) && !owned.iter().any(|thing| leaks(&thing.secret)), "{answer}");
        assert!(!leaks(PLANTED), "{answer}");
    }
    println!("{refused} attempts refused");
    assert_eq!(server.terminate().code(), Some(0));
}
