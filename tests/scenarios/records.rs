//! Records, lists, repeated requests and arguments, over all registered services: what holds in one holds in every one.

use std::collections::{BTreeMap, BTreeSet};
use std::path::Path;

use operation::Method;
use serde_json::{Map, Value, json};

use crate::commands::NOWHERE;
use crate::demo_history;
use crate::process::{Answer, Server, highwater, send, stdout};

/// The demo with its data at rest, and keys of two tiers.
struct Demo {
    server: Server,
    /// A key of the highest tier.
    key: String,
    /// A free key.
    free: String,
}

impl Demo {
    /// Starts a demo on a copy of the shared history in a directory.
    fn start(dir: &Path) -> Self {
        let data = &demo_history::copy_to(dir);
        let mut command = highwater(data, NOWHERE, demo_history::STILL);
        for tier in ["FREE", "FLEET_PLUS"] {
            command.env(format!("HIGHWATER_TIERS__{tier}__CALLS_PER_DAY"), "1000000000");
        }
        command.env("HIGHWATER_WEBHOOKS__ALLOW_PRIVATE_TARGETS", "true");
        let server = Server::signing(command);
        let mint = |tier: &str| stdout(highwater(data, NOWHERE, &["keys", "mint", "--tier", tier])).trim().to_owned();
        Self { key: mint("fleet_plus"), free: mint("free"), server }
    }

    fn ask(&self, method: &str, path: &str, headers: &[(&str, &str)], body: &Value) -> (u16, Value) {
        let body = if body.is_null() { String::new() } else { body.to_string() };
        let answer = send(self.server.address, method, path, headers, &body);
        (answer.status, serde_json::from_slice(&answer.body).unwrap_or_default())
    }

    /// Reads with the key of the highest tier.
    fn get(&self, path: &str) -> Value {
        self.server.json(path, &self.key)
    }

    /// Calls a tool; returns its structured content, or its problem document.
    fn tool(&self, key: &str, service: &str, tool: &str, arguments: &Value) -> Value {
        self.raw_tool(key, service, tool, &arguments.to_string())
    }

    /// Calls a tool with the text of its arguments.
    fn raw_tool(&self, key: &str, service: &str, tool: &str, arguments: &str) -> Value {
        let call = format!(
            "{{\"jsonrpc\": \"2.0\", \"id\": 1, \"method\": \"tools/call\", \"params\": {{\"name\": \"{tool}\", \"arguments\": {arguments}}}}}"
        );
        let answer = send(self.server.address, "POST", &format!("/{service}/mcp"), &[("x-api-key", key)], &call);
        let mut result: Value = serde_json::from_slice(&answer.body).unwrap();
        let result = result["result"].take();
        if result["isError"] == true {
            return serde_json::from_str(result["content"][0]["text"].as_str().unwrap()).unwrap();
        }
        result["structuredContent"].clone()
    }

    /// Reads all pages of a list with `after` and `next`.
    fn pages(&self, path: &str, list: &str) -> Vec<Value> {
        let (mut all, mut after) = (Vec::new(), String::new());
        loop {
            let joint = if path.contains('?') { '&' } else { '?' };
            let page = self.get(&format!("{path}{joint}limit=3{after}"));
            let items = page[list].as_array().unwrap();
            assert!(items.len() <= 3, "{path}: {page}");
            all.extend(items.iter().cloned());
            match &page["next"] {
                Value::Null => return all,
                Value::String(next) => after = format!("&after={}", encoded(next)),
                next => after = format!("&after={next}"),
            }
            assert!(all.len() < 10_000, "{path} does not end");
        }
    }

    /// Issues a receipt.
    fn issue(&self, agent: &str, inputs: &Value) -> Value {
        let body = json!({"action": "test", "agent_id": agent, "inputs": inputs, "outputs": {}});
        let (status, mut issued) = self.ask("POST", "/receipts/v1/issue", &[("x-api-key", &self.key)], &body);
        assert_eq!(status, 201, "{issued}");
        issued["receipt"].take()
    }
}

/// A text as one segment of a path, or a value of a query.
fn encoded(text: &str) -> String {
    text.bytes().map(|byte| if byte.is_ascii_alphanumeric() { char::from(byte).to_string() } else { format!("%{byte:02X}") }).collect()
}

fn json_of(answer: &Answer) -> Value {
    serde_json::from_slice(&answer.body).unwrap_or_default()
}

/// The names of all services that have an operation with this method and path.
fn services_with(method: Method, path: &str) -> Vec<&'static str> {
    let has = |service: &&operation::Service| service.operations.iter().any(|own| own.method == method && own.path == path);
    let all: Vec<operation::Service> = services::all();
    all.iter().filter(has).map(|service| service.name).collect()
}

/// Proves that in every service a record and its history are found under its percent-encoded id, over REST and MCP: the record is that of its last
/// change, the history holds every change of it with the fields that changed; that a read is revalidated by its ETag; and that an unknown id is not
/// found.
#[test]
fn every_record_has_an_address() {
    let dir = tempfile::tempdir().unwrap();
    let demo = Demo::start(dir.path());
    demo.issue("records", &json!({"n": 1}));
    let services = services_with(Method::Get, "/v1/records/{id}");
    assert_eq!(services.len(), services::all().len(), "a service has records without an address");
    assert_eq!(services_with(Method::Get, "/v1/changes"), services);
    let mut with_slashes = 0;
    for service in services {
        let mut changes: BTreeMap<String, Vec<Value>> = BTreeMap::new();
        let mut cursor = "start=earliest".to_owned();
        loop {
            let page = demo.get(&format!("/{service}/v1/changes?limit=200&{cursor}"));
            for change in page["changes"].as_array().unwrap() {
                changes.entry(change["record"]["id"].as_str().unwrap().to_owned()).or_default().push(change.clone());
            }
            cursor = format!("cursor={}", page["cursor"].as_str().unwrap());
            if page["hasMore"] == false {
                break;
            }
        }
        assert!(!changes.is_empty(), "{service} has no record");
        // The records with the longest histories.
        let mut ids: Vec<&String> = changes.keys().collect();
        ids.sort_by_key(|id| std::cmp::Reverse(changes[*id].len()));
        for id in ids.into_iter().take(5) {
            with_slashes += usize::from(id.contains('/'));
            let path = format!("/{service}/v1/records/{}", encoded(id));
            let mut expected = changes[id].last().unwrap().clone();
            expected["id"] = json!(id);
            let mut record = demo.get(&path);
            record.as_object_mut().unwrap().remove("note");
            assert_eq!(record, expected, "{service} {id}");
            let mut over_mcp = demo.tool(&demo.key, service, "record", &json!({"id": id}));
            over_mcp.as_object_mut().unwrap().remove("note");
            assert_eq!(over_mcp, expected, "{service} {id}");

            let mut versions = demo.pages(&format!("{path}/history"), "versions");
            let whole = demo.tool(&demo.key, service, "record", &json!({"id": id, "history": true, "limit": 200}));
            assert_eq!(whole["versions"], json!(versions), "{service} {id}");
            versions.reverse();
            for (at, version) in versions.iter_mut().enumerate() {
                let changed = version.as_object_mut().unwrap().remove("changed").unwrap();
                assert_eq!(changed.as_array().unwrap().is_empty(), at == 0, "{service} {id}: {changed}");
            }
            assert_eq!(json!(versions), json!(changes[id]), "{service} {id}");
            let first = &changes[id][0];
            let then = demo.get(&format!("{path}?asOf={}", encoded(first["recordedAt"].as_str().unwrap())));
            assert!(then["seq"].as_u64() >= first["seq"].as_u64(), "{then}");

            for path in [path.clone(), format!("{path}/history")] {
                let key = ("x-api-key", demo.key.as_str());
                let first = send(demo.server.address, "GET", &path, &[key], "");
                let again = send(demo.server.address, "GET", &path, &[key, ("if-none-match", first.header("etag"))], "");
                assert_eq!((first.status, again.status, again.body.len()), (200, 304, 0), "{path}");
            }
        }
        for path in ["/v1/records/no%2Fsuch%3Aid", "/v1/records/no%2Fsuch%3Aid/history"] {
            let answer = send(demo.server.address, "GET", &format!("/{service}{path}"), &[("x-api-key", &demo.key)], "");
            let problem = json_of(&answer);
            assert_eq!((answer.status, &problem["code"], &problem["parameter"]), (404, &json!("not-found"), &json!("id")), "{problem}");
            assert_eq!(answer.header("content-type"), "application/problem+json");
        }
        // A free key sees what the lists show it: whole records, or redacted ones within the free window. The first pages may be empty. Where ids are
        // public numbers, it sees no changes and no record by its id.
        if demo.server.get(&format!("/{service}/v1/changes"), &demo.free).unwrap().0 == 403 {
            let path = format!("/{service}/v1/records/{}", encoded(changes.keys().next().unwrap()));
            assert_eq!(demo.server.get(&path, &demo.free).unwrap().0, 403, "{service}");
            continue;
        }
        let mut page = demo.server.json(&format!("/{service}/v1/changes?start=earliest&limit=1"), &demo.free);
        while page["changes"] == json!([]) && page["hasMore"] == true {
            page = demo.server.json(&format!("/{service}/v1/changes?limit=1&cursor={}", page["cursor"].as_str().unwrap()), &demo.free);
        }
        let shown = page["changes"][0]["record"]["id"].as_str();
        let id = shown.unwrap_or_else(|| changes.keys().next().unwrap());
        let status = demo.server.get(&format!("/{service}/v1/records/{}", encoded(id)), &demo.free).unwrap().0;
        assert!(status == 200 || (shown.is_none() && status == 403), "{service}: {status}");
    }
    assert!(with_slashes > 0, "an id with slashes must be among them");
}

/// Proves that in every service an idempotency key is refused with 409 for another request than its first, for every POST that makes something, and
/// that this and the first answer survive a restart.
#[test]
fn an_idempotency_key_is_for_one_request() {
    let dir = tempfile::tempdir().unwrap();
    let data = dir.path().join("data");
    let command = |arguments: &[&str]| {
        let mut command = highwater(&data, NOWHERE, arguments);
        command.env("HIGHWATER_WEBHOOKS__ALLOW_PRIVATE_TARGETS", "true");
        // The examples of cadence name this niche.
        command.env("HIGHWATER_UPSTREAMS__SHOPIFY__NICHES", r#"[{ key = "sneakers", label = "Sneakers" }]"#);
        command
    };
    let key = stdout(command(&["keys", "mint", "--tier", "fleet_plus"])).trim().to_owned();
    let mut server = Server::ready(command(&["serve"]));
    // Two different requests to each path: the example of the operation, and the example with another field.
    let other = |path: &str, body: &Value| {
        let mut body = body.clone();
        match path {
            "/api/keys" => body["email"] = json!("mallory@example.org"),
            "/v1/filters" => body["name"] = json!("another"),
            "/v1/watchlist" => body["webhook"] = json!("http://127.0.0.1:9/another"),
            "/api/webhook" => body["webhook_url"] = json!("http://127.0.0.1:9/another"),
            "/v1/issue" => body["inputs"] = json!({"another": 1}),
            _ => return None,
        }
        Some(body)
    };
    let mut requests = Vec::new();
    for service in services::all() {
        for operation in service.operations.iter().filter(|operation| operation.method == Method::Post) {
            if let Some(second) = other(operation.path, &operation.example) {
                let mut first = operation.example.clone();
                for name in ["webhook", "webhook_url"] {
                    if first.get(name).is_some() {
                        first[name] = json!("http://127.0.0.1:9/in");
                    }
                }
                requests.push((format!("/{}{}", service.name, operation.path), first, second));
            }
        }
    }
    for name in ["/api/keys", "/v1/filters", "/v1/watchlist", "/api/webhook", "/v1/issue"] {
        assert!(requests.iter().any(|(path, ..)| path.ends_with(name)), "{name} was not tried");
    }
    let ask = |server: &Server, number: usize, path: &str, body: &Value| {
        // Keys are one namespace for all services.
        let once = format!("once-{number}");
        let headers = [("x-api-key", key.as_str()), ("idempotency-key", once.as_str())];
        let answer = send(server.address, "POST", path, &headers, &body.to_string());
        (answer.status, json_of(&answer))
    };
    let identity = |made: &Value| -> String {
        let text_at = |pointer: &str| made.pointer(pointer).and_then(Value::as_str).map(str::to_owned);
        ["/key_id", "/id", "/receipt/id", "/madeAt"].into_iter().find_map(text_at).unwrap_or_else(|| panic!("{made}"))
    };
    let mut made = Vec::new();
    for round in ["first", "again", "after a restart"] {
        if round == "after a restart" {
            assert_eq!(server.terminate().code(), Some(0));
            server = Server::ready(command(&["serve"]));
        }
        for (number, (path, first, second)) in requests.iter().enumerate() {
            let (status, answer) = ask(&server, number, path, first);
            assert!(matches!(status, 200 | 201), "{round}: {path}: {answer}");
            if round == "first" {
                made.push(identity(&answer));
            }
            assert_eq!(identity(&answer), made[number], "{round}: {path}");
            let (status, problem) = ask(&server, number, path, second);
            assert_eq!((status, &problem["code"]), (409, &json!("idempotency-mismatch")), "{round}: {path}: {problem}");
        }
    }
    // A change of a webhook is a request of its own: the same again changes nothing, another one is refused.
    let (_, watch) = ask(&server, 900, "/recalls/api/webhook", &json!({"webhook_url": "http://127.0.0.1:9/in"}));
    let path = format!("/recalls/api/webhook/{}", watch["id"].as_str().unwrap());
    let patch = |body: &Value| {
        let answer = send(server.address, "PATCH", &path, &[("x-api-key", &key), ("idempotency-key", "patch")], &body.to_string());
        (answer.status, json_of(&answer))
    };
    let [rotated, again] = [(); 2].map(|()| patch(&json!({"rotateSecret": true})));
    assert_eq!((rotated.0, again.0, &again.1["id"]), (200, 200, &rotated.1["id"]));
    assert!(rotated.1["secret"].is_string() && again.1.get("secret").is_none(), "a secret is shown once: {}", again.1);
    let (status, problem) = patch(&json!({"webhook": "http://127.0.0.1:9/moved"}));
    assert_eq!((status, &problem["code"]), (409, &json!("idempotency-mismatch")), "{problem}");
    let (status, filters) = (200, server.json("/awards/v1/filters", &key));
    assert_eq!((status, filters["filters"].as_array().unwrap().len()), (200, 1), "a refused request made something: {filters}");
}

/// Proves that lists have one style of pages: `after` takes `next`, pages join to the whole list, and `next` is null at the end; and that the earlier
/// name of `after` still works.
#[test]
fn lists_have_one_style_of_pages() {
    let dir = tempfile::tempdir().unwrap();
    let demo = Demo::start(dir.path());
    let key = ("x-api-key", demo.key.as_str());
    // Saved filters, watches and webhooks.
    let make = |path: &str, body: Value| {
        let (status, made) = demo.ask("POST", path, &[key], &body);
        assert_eq!(status, 201, "{path}: {made}");
    };
    let filters = services_with(Method::Get, "/v1/filters");
    assert!(filters.len() >= 3);
    for service in filters {
        for n in [3, 1, 4, 2, 5] {
            make(&format!("/{service}/v1/filters"), json!({"name": format!("filter {n}"), "filter": {}}));
        }
        let names: Vec<Value> =
            demo.pages(&format!("/{service}/v1/filters"), "filters").iter().map(|saved| saved["name"].clone()).collect();
        assert_eq!(json!(names), json!(["filter 1", "filter 2", "filter 3", "filter 4", "filter 5"]), "{service}");
    }
    for _ in 0..5 {
        make("/awards/v1/watchlist", json!({"contractor": "inc"}));
        make("/recalls/api/webhook", json!({"webhook_url": "http://127.0.0.1:9/in"}));
    }
    for (path, list) in [("/awards/v1/watchlist", "watches"), ("/recalls/api/webhook", "webhooks")] {
        let all = demo.pages(path, list);
        assert_eq!((all.len(), json!(all)), (5, demo.get(path)[list].clone()), "{path}");
        let (status, problem) = demo.ask("GET", &format!("{path}?after=nonsense"), &[key], &Value::Null);
        assert_eq!((status, &problem["parameter"]), (400, &json!("after")), "{problem}");
    }
    // Receipts, newest first; `before` is an earlier name of `after`.
    for n in 1..=7 {
        demo.issue("pages", &json!({"n": n}));
    }
    let all = demo.pages("/receipts/v1/list?agent_id=pages", "receipts");
    let seqs: Vec<u64> = all.iter().map(|receipt| receipt["body"]["seq"].as_u64().unwrap()).collect();
    assert_eq!(seqs, [7, 6, 5, 4, 3, 2, 1]);
    let [after, before] = ["after", "before"].map(|name| demo.get(&format!("/receipts/v1/list?agent_id=pages&limit=2&{name}=5")));
    assert_eq!((&after, after["receipts"].as_array().unwrap().len()), (&before, 2));
    let (status, problem) = demo.ask("GET", "/receipts/v1/list?agent_id=pages&after=3&before=3", &[key], &Value::Null);
    assert_eq!((status, &problem["parameter"]), (400, &json!("after")), "{problem}");
}

/// Proves that, in every feed with a filter, a list is given as one parameter with commas, as several, as a JSON array or as one text over MCP, and in
/// a saved filter, with the same answer; that a single value given twice and a range that ends before it begins are refused everywhere.
#[test]
fn lists_and_ranges_in_arguments() {
    let dir = tempfile::tempdir().unwrap();
    let demo = Demo::start(dir.path());
    let key = ("x-api-key", demo.key.as_str());
    let (mut lists, mut ranges) = (BTreeSet::new(), BTreeSet::new());
    for service in services::all() {
        for operation in service.operations.iter().filter(|operation| operation.method == Method::Get && !operation.is_live()) {
            let properties = operation.input["properties"].as_object().unwrap();
            let path = format!("/{}{}", service.name, operation.path);
            let is_list = |schema: &Value| schema["type"].as_array().is_some_and(|types| types.contains(&json!("array")));
            for (name, _) in properties.iter().filter(|(_, schema)| is_list(schema)) {
                let values = match name.as_str() {
                    "naics" => ["54", "33"],
                    "class" => ["9", "25"],
                    _ => ["8-K", "10-Q"],
                };
                let [one, other] = values;
                let required = operation.input["required"].as_array().into_iter().flatten().filter_map(Value::as_str);
                let mut further: Map<String, Value> = required.map(|name| (name.to_owned(), operation.example[name].clone())).collect();
                if operation.is_feed() {
                    further.insert("start".to_owned(), json!("earliest"));
                }
                let read = |query: String| {
                    let further: String = further.iter().map(|(name, value)| format!("&{name}={}", value.as_str().unwrap())).collect();
                    demo.get(&format!("{path}?{query}{further}"))
                };
                let expected = read(format!("{name}={one},{other}"));
                assert_eq!(read(format!("{name}={one}&{name}={other}")), expected, "{path}");
                if operation.has_tool() {
                    for given in [json!(values), json!(format!("{one},{other}"))] {
                        let mut arguments = further.clone();
                        arguments.insert(name.clone(), given);
                        let arguments = Value::Object(arguments);
                        assert_eq!(demo.tool(&demo.key, service.name, operation.name, &arguments), expected, "{path} {arguments}");
                    }
                }
                if operation.is_feed() {
                    for given in [json!(values), json!(format!("{one},{other}"))] {
                        let saved = json!({"name": "listed", "filter": {name: given}});
                        let (status, saved) = demo.ask("POST", &format!("/{}/v1/filters", service.name), &[key], &saved);
                        assert_eq!((status, saved["filter"][name].as_array().map(Vec::len)), (201, Some(2)), "{saved}");
                        assert_eq!(read("filter=listed".to_owned())[operation.list], expected[operation.list], "{path}");
                    }
                }
                lists.insert(format!("{} {name}", service.name));
            }
            for (low, high) in [("minAmount", "maxAmount"), ("from", "to"), ("start", "end")] {
                if properties.contains_key(low) && properties.contains_key(high) {
                    let values = if low == "minAmount" {
                        ["2.5", "1"]
                    } else if path.ends_with("consistency") {
                        ["2", "1"]
                    } else {
                        ["2026-02-02", "2026-02-01"]
                    };
                    let query = format!("{low}={}&{high}={}", values[0], values[1]);
                    let (status, problem) = demo.ask("GET", &format!("{path}?{query}"), &[key], &Value::Null);
                    assert_eq!((status, &problem["parameter"]), (400, &json!(low)), "{path}?{query}: {problem}");
                    ranges.insert(format!("{} {low}", service.name));
                    if operation.is_feed() {
                        // One end is the saved filter's, the other the request's.
                        let made = demo.ask(
                            "POST",
                            &format!("/{}/v1/filters", service.name),
                            &[key],
                            &json!({"name": "least", "filter": {low: 2.5}}),
                        );
                        assert_eq!(made.0, 201, "{}", made.1);
                        let (status, problem) = demo.ask("GET", &format!("{path}?filter=least&{high}=1"), &[key], &Value::Null);
                        assert_eq!((status, &problem["parameter"]), (400, &json!(low)), "{path}: {problem}");
                        let wrong = json!({"name": "wrong", "filter": {low: 2.5, high: 1}});
                        let (status, problem) = demo.ask("POST", &format!("/{}/v1/filters", service.name), &[key], &wrong);
                        assert_eq!((status, &problem["parameter"]), (400, &json!(format!("filter.{low}"))), "{problem}");
                        assert!(problem["detail"].as_str().unwrap().contains(low), "{problem}");
                    }
                }
            }
            if properties.contains_key("limit") && operation.has_route() && !operation.path.contains('{') {
                let (status, problem) = demo.ask("GET", &format!("{path}?limit=5&limit=5"), &[key], &Value::Null);
                assert_eq!((status, &problem["parameter"]), (400, &json!("limit")), "{path}: {problem}");
            }
        }
    }
    assert!(lists.contains("awards naics") && lists.contains("filings form"), "{lists:?}");
    assert!(ranges.contains("awards minAmount") && ranges.contains("research minAmount") && ranges.contains("recalls from"), "{ranges:?}");
}

/// Proves that inputs, outputs and metadata of a receipt that are not I-JSON are refused with the path of the field, over REST and MCP, and make no
/// receipt; that `inputs_hash` is the same with and without metadata; and that a receipt with metadata is valid online and offline.
#[test]
fn receipts_commit_to_one_text() {
    let dir = tempfile::tempdir().unwrap();
    let demo = Demo::start(dir.path());
    let data = dir.path().join("data");
    let issue = |body: &str| {
        let answer = send(demo.server.address, "POST", "/receipts/v1/issue", &[("x-api-key", &demo.key)], body);
        (answer.status, json_of(&answer))
    };
    for (fields, path) in [
        (r#""inputs": {"n": 9007199254740993}, "outputs": {}"#, "inputs.n"),
        (r#""inputs": {"a": [{"n": -9007199254740992}]}, "outputs": {}"#, "inputs.a.0.n"),
        (r#""inputs": {"n": 1e16}, "outputs": {}"#, "inputs.n"),
        (r#""inputs": {"n": 3.14159265358979323846}, "outputs": {}"#, "inputs.n"),
        (r#""inputs": {"k": 1, "k": 2}, "outputs": {}"#, "inputs.k"),
        (r#""inputs": {}, "outputs": {"x": {"k": 1, "\u006b": 1}}"#, "outputs.x.k"),
        (r#""inputs": {}, "outputs": {}, "metadata": {"n": 18446744073709551616}"#, "metadata.n"),
        (r#""inputs": {}, "outputs": {}, "metadata": {"k": [], "k": []}"#, "metadata.k"),
        (r#""inputs": {}, "outputs": {}, "inputs": {}"#, "inputs"),
    ] {
        let body = format!("{{\"action\": \"a\", \"agent_id\": \"i-json\", {fields}}}");
        let (status, over_rest) = issue(&body);
        assert_eq!(
            (status, &over_rest["code"], &over_rest["parameter"]),
            (400, &json!("body-invalid"), &json!(path)),
            "{body}: {over_rest}"
        );
        let over_mcp = demo.raw_tool(&demo.key, "receipts", "issue_receipt", &body);
        assert_eq!((&over_mcp["status"], &over_mcp["parameter"]), (&json!(400), &json!(path)), "{body}: {over_mcp}");
        for problem in [over_rest, over_mcp] {
            assert!(problem["detail"].as_str().unwrap().starts_with(&format!("{path}: ")), "{body}: {problem}");
        }
    }
    assert_eq!(demo.get("/receipts/v1/list?agent_id=i-json")["receipts"], json!([]));
    let plain = demo.issue("metadata", &json!({"a": 0.12345678901234566, "n": 9_007_199_254_740_991_u64}));
    let body = json!({"action": "test", "agent_id": "metadata", "inputs": {"a": 0.12345678901234566, "n": 9_007_199_254_740_991_u64}, "outputs": {},
        "metadata": {"run": 7}});
    let (status, issued) = issue(&body.to_string());
    assert_eq!(status, 201, "{issued}");
    let receipt = &issued["receipt"];
    let hashed = |text: &str| format!("sha256:{}", proofs::hash::Hash32::of(text.as_bytes()));
    assert_eq!(receipt["body"]["inputs_hash"], hashed(r#"{"a":0.12345678901234566,"n":9007199254740991}"#));
    assert_eq!(receipt["body"]["inputs_hash"], plain["body"]["inputs_hash"]);
    assert_eq!((&receipt["body"]["metadata_hash"], plain["body"].get("metadata_hash")), (&json!(hashed(r#"{"run":7}"#)), None));
    let verified = demo.get(&format!("/receipts/v1/verify/{}", receipt["id"].as_str().unwrap()));
    assert_eq!(verified["valid"], true, "{verified}");
    let file = dir.path().join("receipt.json");
    std::fs::write(&file, receipt.to_string()).unwrap();
    assert!(stdout(highwater(&data, NOWHERE, &["verify", file.to_str().unwrap()])).contains("valid"));
    let doubled = receipt.to_string().replacen("\"action\":", "\"action\":\"other\",\"action\":", 1);
    std::fs::write(&file, doubled).unwrap();
    let output = crate::process::run(highwater(&data, NOWHERE, &["verify", file.to_str().unwrap()]));
    assert!(String::from_utf8_lossy(&output.stderr).contains("body.action: the field is given twice"), "{output:?}");
    assert_eq!(output.status.code(), Some(1));
}

/// Proves that streams and texts name their character set, that the page of an unknown receipt is a page for a browser, and that the served page of
/// errors says what to do.
#[test]
fn texts_name_their_character_set() {
    let dir = tempfile::tempdir().unwrap();
    let demo = Demo::start(dir.path());
    for path in
        ["/healthz", "/readyz", "/llms.txt", "/recalls/llms.txt", "/recalls/docs", "/docs/errors", "/recalls/checkpoint", "/account"]
    {
        let answer = send(demo.server.address, "GET", path, &[], "");
        let content_type = answer.header("content-type");
        assert!(
            answer.status == 200 && content_type.starts_with("text/") && content_type.contains("charset=utf-8"),
            "{path}: {content_type}"
        );
    }
    let browser = ("accept", "text/html,application/xhtml+xml;q=0.9,*/*;q=0.8");
    let unknown = "/receipts/verify/rcpt_00000000000000000000000000000000";
    let page = send(demo.server.address, "GET", unknown, &[browser], "");
    assert_eq!((page.status, page.header("content-type")), (404, "text/html; charset=utf-8"));
    assert_eq!(send(demo.server.address, "GET", unknown, &[], "").header("content-type"), "application/problem+json");
    let errors = String::from_utf8(send(demo.server.address, "GET", "/recalls/docs/errors", &[], "").body).unwrap();
    assert!(errors.contains("What to do: send each new request with a new key."), "{errors}");
}
