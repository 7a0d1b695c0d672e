//! MCP in both shapes of its protocol, as raw JSON-RPC.

use access::Open;

use super::*;

fn message(body: &Value) -> Ask {
    raw(&body.to_string())
}

fn raw(body: &str) -> Ask {
    let request = ask().method("POST").path("/fake/mcp").header("host", "localhost:4711");
    request.header("content-type", "application/json").body(body.to_owned())
}

/// A request of protocol version 2025-11-25.
fn old(method: &str, params: Value) -> Ask {
    message(&json!({"jsonrpc": "2.0", "id": 1, "method": method, "params": params})).header("mcp-protocol-version", "2025-11-25")
}

/// A request of protocol version 2026-07-28, which is self-contained.
fn new(method: &str, name: &str, mut params: Value) -> Ask {
    params["_meta"] = json!({
        "io.modelcontextprotocol/protocolVersion": "2026-07-28",
        "io.modelcontextprotocol/clientCapabilities": {},
        "io.modelcontextprotocol/clientInfo": {"name": "test", "version": "1"},
    });
    let request = message(&json!({"jsonrpc": "2.0", "id": 1, "method": method, "params": params}));
    let request = request.header("mcp-protocol-version", "2026-07-28").header("mcp-method", method);
    if name.is_empty() { request } else { request.header("mcp-name", name) }
}

async fn result(fixture: &Fixture, request: Ask) -> Value {
    let read = send(fixture, request).await;
    assert_eq!((read.status.as_u16(), read.header("content-type")), (200, "application/json"), "{}", read.body);
    read.json()["result"].clone()
}

/// Proves that clients of 2025-11-25 can initialize, list and call without a session.
#[tokio::test]
async fn protocol_2025() {
    let fixture = Fixture::new(|_| {});
    let hello = json!({"protocolVersion": "2025-11-25", "capabilities": {}, "clientInfo": {"name": "test", "version": "1"}});
    let hello = result(&fixture, message(&json!({"jsonrpc": "2.0", "id": 1, "method": "initialize", "params": hello}))).await;
    assert_eq!((&hello["protocolVersion"], &hello["serverInfo"]["name"]), (&json!("2025-11-25"), &json!("fake")));
    assert_eq!(hello["capabilities"], json!({"tools": {}}));
    let ready = message(&json!({"jsonrpc": "2.0", "method": "notifications/initialized"})).header("mcp-protocol-version", "2025-11-25");
    assert_eq!(send(&fixture, ready).await.status, 202);
    let tools = result(&fixture, old("tools/list", json!({}))).await;
    assert_eq!(tools["tools"].as_array().unwrap().len(), 8);
    let called = result(&fixture, old("tools/call", json!({"name": "find", "arguments": {"q": "ab", "limit": 3.0}}))).await;
    assert_eq!(called["structuredContent"]["echo"], json!({"keyword": "ab", "limit": 3}));
    assert_eq!(called["isError"], false);
}

/// Proves that clients of 2026-07-28 can discover, list and call with independent requests.
#[tokio::test]
async fn protocol_2026() {
    let fixture = Fixture::new(|_| {});
    let found = result(&fixture, new("server/discover", "", json!({}))).await;
    let versions = found["supportedVersions"].as_array().unwrap();
    assert!(versions.contains(&json!("2026-07-28")) && versions.contains(&json!("2025-11-25")), "{found}");
    assert_eq!((&found["cacheScope"], found["ttlMs"].as_u64().unwrap() > 0), (&json!("public"), true));
    let tools = result(&fixture, new("tools/list", "", json!({}))).await;
    assert_eq!((&tools["resultType"], &tools["cacheScope"]), (&json!("complete"), &json!("public")));
    assert!(tools["ttlMs"].as_u64().unwrap() > 0);
    assert_eq!(tools, result(&fixture, new("tools/list", "", json!({}))).await, "the list is stable");
    let called = result(&fixture, new("tools/call", "page", json!({"name": "page", "arguments": {}}))).await;
    assert_eq!(called["structuredContent"], json!({"changes": [{"seq": 1}, {"seq": 2}]}));
    assert_eq!(serde_json::from_str::<Value>(called["content"][0]["text"].as_str().unwrap()).unwrap(), called["structuredContent"]);
    assert_eq!(called["resultType"], "complete");
    let hashed = result(&fixture, new("tools/call", "one", json!({"name": "one", "arguments": {"id": "hashed"}}))).await;
    assert_eq!(hashed["structuredContent"], json!({"id": "hashed", "artifactHash": "sha256:00"}), "its note is next to it");
    let texts: Vec<&str> = hashed["content"].as_array().unwrap().iter().map(|block| block["text"].as_str().unwrap()).collect();
    assert_eq!((texts.len(), texts[1]), (2, "Note: a short history (\u{2026})"));
    let torn = new("tools/call", "find", json!({"name": "page", "arguments": {}}));
    let read = send(&fixture, torn).await;
    assert_eq!((read.status.as_u16(), &read.json()["error"]["code"]), (400, &json!(-32020)), "header and body differ");
}

/// Proves that the tools are the operations that are marked as tools, with schemas and hints that clients accept.
#[tokio::test]
async fn tools() {
    let fixture = Fixture::new(|_| {});
    let tools = result(&fixture, old("tools/list", json!({}))).await["tools"].clone();
    let names: Vec<&str> = tools.as_array().unwrap().iter().map(|tool| tool["name"].as_str().unwrap()).collect();
    assert_eq!(names, ["find", "one", "make", "page", "paid", "drop", "address", "manage"]);
    for tool in tools.as_array().unwrap().iter().take(7) {
        for schema in ["inputSchema", "outputSchema"] {
            assert_eq!(tool[schema]["type"], "object", "{tool}");
            assert!(tool[schema]["properties"].is_object(), "{tool}");
        }
        assert_eq!(tool["inputSchema"]["additionalProperties"], false);
        let (makes, drops) = (tool["name"] == "make", tool["name"] == "drop");
        let hints = json!({"readOnlyHint": !makes && !drops, "destructiveHint": drops, "idempotentHint": !makes, "openWorldHint": false});
        assert_eq!(tool["annotations"], hints, "{tool}");
    }
    assert!(tools[4]["description"].as_str().unwrap().contains("business"), "what a tool needs stands in its words");
}

/// Proves that one tool runs all managed operations, with the validation, access control and answers that each has over REST.
#[tokio::test]
async fn manage() {
    let fixture = Fixture::new(|_| {});
    let tools = result(&fixture, old("tools/list", json!({}))).await["tools"].clone();
    let tool = tools.as_array().unwrap().iter().find(|tool| tool["name"] == "manage").unwrap();
    assert_eq!(tool["inputSchema"]["properties"]["action"]["enum"], json!(["keep", "set", "describe"]));
    let words = tool["inputSchema"]["properties"]["arguments"]["description"].as_str().unwrap();
    assert_eq!(words, "By action: keep(name, size?), set(name, size?).");
    assert_eq!((&tool["annotations"]["readOnlyHint"], &tool["annotations"]["destructiveHint"]), (&json!(false), &json!(true)));
    let call = async |arguments: Value| result(&fixture, old("tools/call", json!({"name": "manage", "arguments": arguments}))).await;
    let kept = call(json!({"action": "keep", "arguments": {"name": "a"}})).await;
    assert_eq!((&kept["structuredContent"], &kept["isError"]), (&json!({"kept": "a"}), &json!(false)));
    let described = call(json!({"action": "describe"})).await["structuredContent"]["actions"].clone();
    assert_eq!((&described[0]["action"], &described[0]["arguments"]["required"]), (&json!("keep"), &json!(["name"])));
    for (arguments, code, parameter) in [
        (json!({}), "parameter-invalid", json!("action")),
        (json!({"action": 1}), "parameter-invalid", json!("action")),
        (json!({"action": "kep"}), "parameter-invalid", json!("action")),
        (json!({"action": "find", "arguments": {}}), "parameter-invalid", json!("action")),
        (json!({"action": "keep"}), "parameter-invalid", json!("name")),
        (json!({"action": "keep", "name": "a"}), "parameter-invalid", json!("name")),
        (json!({"action": "keep", "arguments": [1]}), "parameter-invalid", json!("arguments")),
        (json!({"action": "keep", "arguments": {"name": "a", "sise": 1}}), "parameter-invalid", json!("sise")),
        (json!({"action": "set", "arguments": {"name": "a"}}), "tier-too-low", Value::Null),
    ] {
        let called = call(arguments.clone()).await;
        assert_eq!(called["isError"], true, "{arguments}: {called}");
        let document: Value = serde_json::from_str(called["content"][0]["text"].as_str().unwrap()).unwrap();
        assert_eq!((&document["code"], &document["parameter"]), (&json!(code), &parameter), "{arguments}: {document}");
        if arguments["action"] == "kep" {
            assert!(document["detail"].as_str().unwrap().contains("did you mean \"keep\""), "{document}");
        }
    }
    let read = send(&fixture, old("tools/call", json!({"name": "keep", "arguments": {"name": "a"}}))).await;
    assert_eq!(read.json()["error"]["code"], -32602, "a managed operation is not a tool of its own");
}

/// Proves that a failed call is a result with `isError` and the problem document, and without content that clients would validate.
#[tokio::test]
async fn failures() {
    let fixture = Fixture::new(|_| {});
    let call = |name: &str, arguments: Value| old("tools/call", json!({"name": name, "arguments": arguments}));
    for (request, code, parameter) in [
        (call("find", json!({"limit": 0})), "parameter-invalid", json!("limit")),
        (call("find", json!({"limti": 1})), "parameter-invalid", json!("limti")),
        (call("one", json!({})), "parameter-invalid", json!("id")),
        (call("one", json!({"id": "gone"})), "not-found", json!("id")),
        (call("paid", json!({})), "tier-too-low", Value::Null),
        (call("address", json!({})), "tier-too-low", Value::Null),
        (call("find", json!({})).header("x-api-key", "nonsense"), "key-invalid", Value::Null),
        (call("find", json!({})).header("authorization", "Bearer a").header("x-api-key", "b"), "request-invalid", json!("Authorization")),
    ] {
        let called = result(&fixture, request).await;
        assert_eq!(called["isError"], true, "{called}");
        assert!(called.get("structuredContent").is_none(), "{called}");
        let document: Value = serde_json::from_str(called["content"][0]["text"].as_str().unwrap()).unwrap();
        assert_eq!((&document["code"], &document["parameter"]), (&json!(code), &parameter), "{document}");
    }
    let read = send(&fixture, call("fnd", json!({}))).await;
    assert_eq!(read.json()["error"]["code"], -32602);
    assert!(read.json()["error"]["message"].as_str().unwrap().contains("find"), "{}", read.body);
    let read = send(&fixture, call("broken", json!({}))).await;
    assert_eq!(read.json()["error"]["code"], -32602, "what is no tool cannot be called");
}

/// Proves that arguments that are not I-JSON are refused with the path of the field, that a message with a field twice is not a valid one, and that a
/// large number is refused in arguments only.
#[tokio::test]
async fn arguments_are_i_json() {
    let fixture = Fixture::new(|_| {});
    let message = |id: &str, arguments: &str, more: &str| {
        raw(&format!(
            "{{\"jsonrpc\": \"2.0\", \"id\": {id}, \"method\": \"tools/call\", \"params\": {{\"name\": \"find\", \"arguments\": {arguments}{more}}}}}"
        ))
        .header("mcp-protocol-version", "2025-11-25")
    };
    for (arguments, parameter, detail) in [
        ("{\"q\": \"a\", \"q\": \"b\"}", "q", "q: the field is given twice"),
        ("{\"q\": {\"a\": [{\"b\": 1, \"\\u0062\": 2}]}}", "q.a.0.b", "q.a.0.b: the field is given twice"),
        ("{\"limit\": 9007199254740992}", "limit", "limit: the number is beyond"),
    ] {
        let called = result(&fixture, message("1", arguments, "")).await;
        let document: Value = serde_json::from_str(called["content"][0]["text"].as_str().unwrap()).unwrap();
        assert_eq!((&document["code"], &document["parameter"]), (&json!("parameter-invalid"), &json!(parameter)), "{document}");
        assert!(document["detail"].as_str().unwrap().starts_with(detail), "{document}");
    }
    let read = send(&fixture, message("1", "{}", ", \"name\": \"page\"")).await;
    assert_eq!((read.status.as_u16(), &read.json()["error"]["code"]), (400, &json!(-32600)), "{}", read.body);
    let called = result(&fixture, message("9007199254740993", "{\"q\": \"ab\"}", "")).await;
    assert_eq!(called["structuredContent"]["echo"]["keyword"], "ab");
}

/// Proves that an empty list is taken where the protocol has an object, at the path with a slash at its end, too.
#[tokio::test]
async fn empty_lists() {
    let fixture = Fixture::new(|_| {});
    let hello = json!({"protocolVersion": "2025-11-25", "capabilities": [], "clientInfo": {"name": "php", "version": "1"}});
    let at_slash = |body: Value| message(&body).path("/fake/mcp/");
    let hello = result(&fixture, at_slash(json!({"jsonrpc": "2.0", "id": 1, "method": "initialize", "params": hello}))).await;
    assert_eq!(hello["serverInfo"]["name"], "fake");
    for capabilities in [
        json!({"roots": [], "sampling": []}),
        json!({"elicitation": {"form": [], "url": []}, "experimental": {"ours": []}}),
        json!({"tasks": {"requests": {"sampling": []}}, "extensions": {"io.example/ui": []}}),
    ] {
        let nested = json!({"protocolVersion": "2025-11-25", "capabilities": capabilities, "clientInfo": {"name": "php", "version": "1"}});
        assert_eq!(result(&fixture, old("initialize", nested)).await["serverInfo"]["name"], "fake");
    }
    for method in ["tools/list", "ping"] {
        assert!(result(&fixture, old(method, json!([]))).await.is_object(), "{method}");
    }
    for arguments in [json!([]), json!({}), json!("{}"), json!("[]"), json!(" [ ] "), Value::Null] {
        let called = result(&fixture, old("tools/call", json!({"name": "find", "arguments": arguments}))).await;
        assert_eq!(called["structuredContent"]["echo"], json!({}), "{arguments}");
    }
    let called = result(&fixture, old("tools/call", json!({"name": "find", "arguments": "{\"limit\":\"3\"}", "_meta": []}))).await;
    assert_eq!(called["structuredContent"]["echo"], json!({"limit": 3}));
    let hosted = json!({"name": "manage", "arguments": {"action": "keep", "arguments": "{\"name\":\"a\"}", "sessionId": "s"}});
    assert_eq!(result(&fixture, old("tools/call", hosted)).await["structuredContent"], json!({"kept": "a"}));
    for arguments in [json!([]), json!("[]"), json!("{}")] {
        let described = json!({"name": "manage", "arguments": {"action": "describe", "arguments": arguments}});
        assert!(result(&fixture, old("tools/call", described)).await["structuredContent"]["actions"].is_array(), "{arguments}");
    }
}

/// Proves that malformed parameters of a known method are refused with the field and the id of the request.
#[tokio::test]
async fn malformed_parameters() {
    let fixture = Fixture::new(|_| {});
    let client = json!({"name": "a", "version": "1"});
    for (method, params, words) in [
        ("initialize", Value::Null, "params.protocolVersion is missing"),
        ("initialize", json!("x"), "params: \"x\" is not an object"),
        ("initialize", json!([1]), "params: [1] is not an object"),
        ("initialize", json!({"capabilities": {}, "clientInfo": client}), "params.protocolVersion is missing"),
        ("initialize", json!({"protocolVersion": 1, "capabilities": {}, "clientInfo": client}), "params.protocolVersion: 1 is not a text"),
        ("initialize", json!({"protocolVersion": "2025-11-25", "clientInfo": client}), "params.capabilities is missing"),
        (
            "initialize",
            json!({"protocolVersion": "2025-11-25", "capabilities": [1], "clientInfo": client}),
            "params.capabilities: [1] is not",
        ),
        (
            "initialize",
            json!({"protocolVersion": "2025-11-25", "capabilities": {}, "clientInfo": {"name": "a"}}),
            "clientInfo.version is missing",
        ),
        ("initialize", json!({"protocolVersion": "2025-11-25", "capabilities": {"roots": 5}, "clientInfo": client}), "params.capabilities"),
        ("tools/call", json!({}), "params.name is missing"),
        ("tools/call", json!({"name": 5}), "params.name: 5 is not a text"),
        ("tools/call", json!({"name": "find", "arguments": [1]}), "params.arguments: [1] is not an object"),
        ("tools/call", json!({"name": "find", "arguments": "limit=3"}), "params.arguments: \"limit=3\" is not an object"),
        ("tools/list", json!({"cursor": 5}), "params.cursor: 5 is not a text"),
        ("tools/list", json!(5), "params: 5 is not an object"),
        ("ping", json!("x"), "params: \"x\" is not an object"),
    ] {
        for id in [json!(7), json!("seven")] {
            let body = json!({"jsonrpc": "2.0", "id": id, "method": method, "params": params});
            let read = send(&fixture, message(&body).header("mcp-protocol-version", "2025-11-25")).await;
            let answer = read.json();
            assert_eq!((&answer["id"], &answer["error"]["code"]), (&id, &json!(-32602)), "{body}: {answer}");
            assert!(answer["error"]["message"].as_str().unwrap().contains(words), "{body}: {answer}");
        }
    }
    let read = send(&fixture, old("tools/unknown", json!("x"))).await;
    assert_ne!(read.json()["error"]["code"], -32602, "an unknown method has no parameters");
}

/// Proves that unknown methods and unsupported features are refused in words, instead of returning empty lists.
#[tokio::test]
async fn undeclared() {
    let fixture = Fixture::new(|_| {});
    for method in ["prompts/list", "resources/list", "resources/templates/list", "logging/setLevel", "foo/bar"] {
        let params = if method == "logging/setLevel" { json!({"level": "info"}) } else { json!({}) };
        let read = send(&fixture, old(method, params)).await;
        assert_eq!(read.json()["error"], json!({"code": -32601, "message": format!("Method not found: {method}")}), "{}", read.body);
    }
    assert_eq!(send(&fixture, new("prompts/list", "", json!({}))).await.status, 404);
}

/// Proves that bodies that are not JSON-RPC messages get JSON-RPC errors, and that plain clients need no special headers.
#[tokio::test]
async fn bodies() {
    let fixture = Fixture::new(|_| {});
    for (body, code) in [("{\"jsonrpc\": ", -32700), ("", -32700), ("[]", -32600), ("{\"a\": 1}", -32600), ("5", -32600)] {
        let read = send(&fixture, raw(body)).await;
        assert_eq!((read.status.as_u16(), &read.json()["error"]["code"]), (400, &json!(code)), "{body}: {}", read.body);
    }
    for accept in ["*/*", "application/json", "text/html"] {
        let request = old("tools/list", json!({})).header("accept", accept);
        assert_eq!(send(&fixture, request).await.status, 200, "{accept}");
    }
    let text = super::ask().method("POST").path("/fake/mcp").header("host", "localhost").header("content-type", "text/plain").body("{}");
    let read = send(&fixture, text).await;
    assert_eq!((read.status.as_u16(), read.problem().0.as_str()), (415, "media-type-unsupported"));
    let long = old("tools/call", json!({"name": "find", "arguments": {"q": "x".repeat(2000)}}));
    assert_eq!(send(&fixture, long).await.status, 413);
}

/// Proves that a batch of the version that has them is answered in one list, by the ids of its requests and without the notifications; that each message
/// is answered as it is alone; and that other versions, and long batches, are refused.
#[tokio::test]
async fn batches() {
    let fixture = Fixture::new(|_| {});
    let request = |id: Value, method: &str, params: Value| json!({"jsonrpc": "2.0", "id": id, "method": method, "params": params});
    let ready = json!({"jsonrpc": "2.0", "method": "notifications/initialized"});
    let batch = json!([
        request(json!(1), "ping", json!({})),
        ready,
        request(json!("two"), "tools/call", json!({"name": "find", "arguments": {"limit": "3"}})),
        request(json!(3), "tools/call", json!({"name": 5})),
        request(json!(4), "no/such", json!({})),
        {"a": 1},
    ]);
    for version in ["", "2025-03-26"] {
        let ask = raw(&format!(" \n{batch}"));
        let read = send(&fixture, if version.is_empty() { ask } else { ask.header("mcp-protocol-version", version) }).await;
        assert_eq!((read.status.as_u16(), read.header("content-type")), (200, "application/json"), "{version}: {}", read.body);
        let answers = read.json();
        let ids: Vec<&Value> = answers.as_array().unwrap().iter().map(|answer| &answer["id"]).collect();
        assert_eq!(ids, [&json!(1), &json!("two"), &json!(3), &json!(4), &Value::Null]);
        assert_eq!((&answers[0]["result"], &answers[1]["result"]["structuredContent"]["echo"]), (&json!({}), &json!({"limit": 3})));
        let codes: Vec<&Value> = answers.as_array().unwrap()[2..].iter().map(|answer| &answer["error"]["code"]).collect();
        assert_eq!(codes, [-32602, -32601, -32600]);
    }
    assert_eq!(send(&fixture, raw("[9007199254740993]")).await.json()[0]["error"]["code"], -32600);
    let large = send(&fixture, raw("[{\"jsonrpc\":\"2.0\",\"id\":9007199254740993,\"method\":\"ping\"}]")).await;
    assert!(large.body.contains("\"id\":9007199254740993"), "ids stay as they are written: {}", large.body);
    let silent = send(&fixture, message(&json!([ready, ready]))).await;
    assert_eq!((silent.status.as_u16(), silent.body.as_str()), (202, ""));
    let long: Vec<&Value> = std::iter::repeat_n(&ready, 21).collect();
    // Longer than this fixture takes otherwise.
    let roomy = Fixture::new(|settings| settings.body_bytes_max = 100_000);
    let other = message(&batch).header("mcp-protocol-version", "2025-11-25");
    for (fixture, refused) in [(&roomy, message(&json!(long))), (&fixture, other), (&fixture, raw("[]"))] {
        let read = send(fixture, refused).await;
        assert_eq!((read.status.as_u16(), &read.json()["error"]["code"]), (400, &json!(-32600)), "{}", read.body);
    }
    let foreign = super::ask().method("POST").path("/fake/mcp").header("host", "evil.example").header("content-type", "application/json");
    assert_eq!(send(&fixture, foreign.body(batch.to_string())).await.status, 403);
}

/// Proves that each message of a batch counts against the limit of its address.
#[tokio::test]
async fn batches_are_limited_by_address() {
    let site = Fixture::new(|_| {}).site(Arc::new(|| Ok(())));
    let ping = json!({"jsonrpc": "2.0", "id": 1, "method": "ping"});
    let batch = Value::from(vec![ping; 10]);
    for _ in 0..Open::Message.per_minute_max() / 10 {
        assert_eq!(message(&batch).reply(Arc::clone(&site)).await.json().as_array().unwrap().len(), 10);
    }
    let limited = message(&batch).reply(site).await;
    assert_eq!((limited.status.as_u16(), limited.problem().0.as_str()), (429, "rate-limited"));
}

/// Proves that a byte order mark before a message is no part of it, and that another encoding is named.
#[tokio::test]
async fn encodings_of_messages() {
    let fixture = Fixture::new(|_| {});
    let ping = "{\"jsonrpc\":\"2.0\",\"id\":1,\"method\":\"ping\"}";
    for body in [format!("\u{feff}{ping}"), format!("\u{feff}\r\n[{ping}]")] {
        let read = send(&fixture, raw(&body)).await;
        assert!(read.status == 200 && read.body.contains("\"result\":{}"), "{}", read.body);
    }
    let wide: Vec<u8> = ping.encode_utf16().flat_map(u16::to_le_bytes).collect();
    let read = send(&fixture, raw("").body(wide)).await;
    assert_eq!(read.json()["error"]["code"], -32700);
    assert!(read.body.contains("JSON is sent as UTF-8"), "{}", read.body);
}

/// Proves that the endpoint accepts its public host, configured hosts and loopback, and no other host or origin, for messages and for preflights alike.
#[tokio::test]
async fn hosts_and_origins() {
    let fixture = Fixture::new(|_| {});
    let ask = |host: &str, origin: &str| {
        let body = json!({"jsonrpc": "2.0", "id": 1, "method": "tools/list", "params": {}}).to_string();
        let request = super::ask().method("POST").path("/fake/mcp").header("host", host).header("content-type", "application/json");
        let request = if origin.is_empty() { request } else { request.header("origin", origin) };
        request.body(body)
    };
    for (host, origin, status) in [
        ("fake.example", "", 200),
        ("fake.example:443", "https://fake.example", 200),
        ("other.example", "http://other.example:81", 200),
        ("localhost:9", "http://localhost:1234", 200),
        ("127.0.0.1:9", "http://127.0.0.1:9", 200),
        ("[::1]:9", "http://[::1]:9", 200),
        ("host.docker.internal:8080", "", 200),
        ("highwater:8080", "http://highwater:8080", 200),
        ("192.168.1.20:8080", "", 200),
        ("localhost.:8080", "", 200),
        ("fake.example.", "", 200),
        ("fake.example.:443", "https://fake.example.", 200),
        ("localhost.:8080", "http://localhost.:8080", 200),
        ("records.test.:8080", "http://records.test.:8080", 200),
        ("fake.example.", "https://evil.example.", 403),
        ("records.test:8080", "http://records.test:8080", 200),
        ("evil.example.", "", 403),
        ("highwater:8080", "http://evil.example", 403),
        ("highwater:8080", "http://other:8080", 403),
        ("evil.example", "", 403),
        ("fake.example.evil.example", "", 403),
        ("fake.example", "https://evil.example", 403),
        ("fake.example", "http://fake.example", 403),
        ("fake.example", "null", 403),
    ] {
        let preflight =
            super::ask().method("OPTIONS").path("/fake/mcp").header("host", host).header("access-control-request-method", "POST");
        let preflight = if origin.is_empty() { preflight } else { preflight.header("origin", origin) };
        let verdict = send(&fixture, preflight).await;
        assert_eq!(verdict.status, if status == 200 { 204 } else { status }, "a preflight of {host} {origin}");
        let read = send(&fixture, ask(host, origin)).await;
        assert_eq!(read.status, status, "{host} {origin}");
        if status == 403 {
            assert_eq!((read.header("content-type"), read.problem().0.as_str()), ("application/problem+json", "origin-refused"));
        }
    }
}

/// Proves that `*` among the configured hosts means every host and origin.
#[tokio::test]
async fn any_host() {
    let fixture = Fixture::new(|settings| settings.allowed_hosts = vec!["*".to_owned()]);
    let body = json!({"jsonrpc": "2.0", "id": 1, "method": "tools/list", "params": {}}).to_string();
    let request = super::ask().method("POST").path("/fake/mcp").header("content-type", "application/json");
    let read = send(&fixture, request.header("host", "any.example").header("origin", "https://pages.example").body(body)).await;
    assert_eq!(read.status, 200, "{}", read.body);
}

/// A call that has no id.
fn call_as_notification(call: Value) -> Ask {
    message(&call).header("mcp-protocol-version", "2025-11-25")
}

/// Proves that messages that call no operation are limited by address, whatever they are: known methods, malformed and refused ones, calls of unknown
/// tools, descriptions, calls without an id; and that calls of operations then continue.
#[tokio::test]
async fn messages_are_limited_by_address() {
    let hello = json!({"protocolVersion": "2025-11-25", "capabilities": {}, "clientInfo": {"name": "test", "version": "1"}});
    let kinds: [fn(&Value) -> Ask; 11] = [
        |hello| message(&json!({"jsonrpc": "2.0", "id": 1, "method": "initialize", "params": hello})),
        |_| message(&json!({"jsonrpc": "2.0", "method": "notifications/initialized"})).header("mcp-protocol-version", "2025-11-25"),
        |_| old("tools/list", json!({})),
        |_| old("ping", json!({})),
        |_| old("no/such", json!({})),
        |_| raw("{"),
        |_| old("tools/call", json!({"arguments": {}})),
        |_| old("tools/call", json!({"name": "no_such", "arguments": {}})),
        |_| old("tools/call", json!({"name": "manage", "arguments": {"action": "describe"}})),
        |_| call_as_notification(json!({"jsonrpc": "2.0", "method": "tools/call", "params": {"name": "find"}})),
        |_| call_as_notification(json!({"jsonrpc": "2.0", "id": null, "method": "tools/call", "params": {"name": "find"}})),
    ];
    let site = Fixture::new(|_| {}).site(Arc::new(|| Ok(())));
    let is_limited = async |kind: fn(&Value) -> Ask| {
        let read = kind(&hello).reply(Arc::clone(&site)).await;
        read.status == 429 || read.body.contains("rate-limited")
    };
    for kind in kinds.iter().cycle().take(usize::try_from(Open::Message.per_minute_max()).unwrap()) {
        assert!(!is_limited(*kind).await);
    }
    for (number, kind) in kinds.into_iter().enumerate() {
        assert!(is_limited(kind).await, "kind {number}");
    }
    let call = old("tools/call", json!({"name": "find", "arguments": {"q": "ab"}})).reply(site).await;
    assert_eq!((call.status.as_u16(), &call.json()["result"]["isError"]), (200, &json!(false)), "{}", call.body);
}
