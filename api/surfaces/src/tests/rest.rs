//! Routes, answers, validators and problems over REST.

use std::net::{IpAddr, Ipv4Addr};

use access::{Access, Open};
use operation::context::Part as _;

use super::*;

fn post(body: &str) -> Ask {
    ask().method("POST").path("/fake/api/items").header("content-type", "application/json; charset=utf-8").body(body.to_owned())
}

/// Proves that an unknown path is a page for a browser, and a problem document for any other caller.
#[tokio::test]
async fn unknown_paths_in_a_browser() {
    let fixture = Fixture::new(|_| {});
    let browser = "text/html,application/xhtml+xml,application/xml;q=0.9,*/*;q=0.8";
    for path in ["/fake/verify/none", "/fake/dosc", "/nowhere"] {
        let read = send(&fixture, ask().path(path).header("accept", browser)).await;
        assert_eq!((read.status.as_u16(), read.header("content-type")), (404, "text/html; charset=utf-8"), "{path}");
        assert!(read.body.contains("<h1>Nothing here</h1>"), "{}", read.body);
        let read = send(&fixture, ask().path(path).header("accept", "*/*")).await;
        assert_eq!((read.status.as_u16(), read.problem().0.as_str()), (404, "not-found"), "{path}");
    }
}

/// Proves that any refusal outside of the API is a page for a browser, with the status and headers that a program gets, and that operations answer with
/// problem documents whatever the caller accepts, as long as no browser shows the answer in its window.
#[tokio::test]
async fn refusals_in_a_browser() {
    let fixture = Fixture::new(|_| {});
    let browser = "text/html,application/xhtml+xml,application/xml;q=0.9,*/*;q=0.8";
    for path in ["/explore", "/llms.txt", "/status", "/fake/docs"] {
        let read = send(&fixture, ask().method("DELETE").path(path).header("accept", browser)).await;
        assert_eq!((read.status.as_u16(), read.header("content-type")), (405, "text/html; charset=utf-8"), "{path}");
        assert_eq!((read.header("allow"), read.header("cache-control"), read.header("vary")), ("GET, HEAD, OPTIONS", "no-store", "Accept"));
        assert!(read.body.contains("<h1>This address cannot do that</h1>") && read.header("content-security-policy").contains("'none'"));
        for program in ["*/*", "application/json", "application/json, text/html", "text/html;q=0, application/json"] {
            let read = send(&fixture, ask().method("DELETE").path(path).header("accept", program)).await;
            assert_eq!((read.status.as_u16(), read.header("content-type")), (405, "application/problem+json"), "{path} {program}");
        }
    }
    let read = send(&fixture, ask().method("DELETE").path("/fake/api/items").header("accept", browser)).await;
    assert_eq!((read.status.as_u16(), read.header("content-type")), (405, "application/problem+json"));
}

/// Proves that a refusal of the API is a page that says what to do where a browser shows the answer in its window, with the status and headers that a
/// program gets; that scripts of pages and other programs get the problem document; and that an answer is the same for all of them.
#[tokio::test]
async fn refusals_of_operations_that_a_browser_opens() {
    let fixture = Fixture::new(|_| {});
    let read = |path: &str, mode: &str, accept: &str| ask().path(path).header("accept", accept).header("sec-fetch-mode", mode);
    let browser = "text/html,application/xhtml+xml,application/xml;q=0.9,*/*;q=0.8";
    for (path, status, code) in [
        ("/fake/api/items?limit=0", 400, "parameter-invalid"),
        ("/fake/api/items/gone", 404, "not-found"),
        ("/fake/mcp", 405, "method-not-allowed"),
    ] {
        let opened = send(&fixture, read(path, "navigate", browser)).await;
        assert_eq!((opened.status.as_u16(), opened.header("content-type")), (status, "text/html; charset=utf-8"), "{path}");
        assert!(opened.body.contains("<h1>") && opened.body.contains(&format!("/docs/errors#{code}")), "{}", opened.body);
        assert!(opened.header("content-security-policy").contains("default-src 'none'"), "{path}");
        for (mode, accept) in [("cors", browser), ("navigate", "*/*"), ("navigate", "application/json, text/html")] {
            let program = send(&fixture, read(path, mode, accept)).await;
            assert_eq!((program.status.as_u16(), program.problem().0.as_str()), (status, code), "{path} {mode} {accept}");
            assert_eq!(
                (program.header("allow"), program.header("cache-control")),
                (opened.header("allow"), opened.header("cache-control"))
            );
        }
    }
    let [opened, program] = ["navigate", "cors"].map(|mode| read("/fake/api/items?limit=2", mode, browser));
    let (opened, program) = (send(&fixture, opened).await, send(&fixture, program).await);
    assert_eq!((opened.status.as_u16(), opened.header("content-type")), (200, "application/json"));
    assert_eq!(opened.body, program.body);
}

/// Proves that a wrong path is answered with the nearest existing one, one with an id that has slashes with the same path with these escaped, and a wrong
/// method with the supported ones.
#[tokio::test]
async fn wrong_addresses() {
    let fixture = Fixture::new(|_| {});
    for (path, hint) in [
        ("/fake/api/itms", "there is nothing at \"/fake/api/itms\", did you mean \"/fake/api/items\"?"),
        ("/fake/api/itms/", "did you mean \"/fake/api/items\"?"),
        ("/fake/openapi.jsn", "\"/fake/openapi.json\""),
        ("/fake/api/items/a/b", "did you mean \"/fake/api/items/a%2Fb\"? A slash within an id is written %2F"),
        ("/fakes", "did you mean \"/fake\"?"),
        ("/healtz", "did you mean \"/healthz\"?"),
    ] {
        let read = get(&fixture, path).await;
        assert_eq!((read.status.as_u16(), read.problem().0.as_str()), (404, "not-found"), "{path}");
        assert!(read.json()["detail"].as_str().unwrap().contains(hint), "{path}: {}", read.body);
    }
    for (method, path, allow) in [
        ("DELETE", "/fake/api/items", "GET, HEAD, POST, OPTIONS"),
        ("POST", "/fake/api/paid", "GET, HEAD, OPTIONS"),
        ("PUT", "/fake/api/items/7", "GET, HEAD, DELETE, OPTIONS"),
        ("GET", "/fake/mcp", "POST, OPTIONS"),
        ("DELETE", "/fake/mcp", "POST, OPTIONS"),
        ("POST", "/fake/docs", "GET, HEAD, OPTIONS"),
        ("POST", "/healthz", "GET, HEAD, OPTIONS"),
    ] {
        let read = send(&fixture, ask().method(method).path(path)).await;
        assert_eq!(
            (read.status.as_u16(), read.problem().0.as_str(), read.header("allow")),
            (405, "method-not-allowed", allow),
            "{method} {path}"
        );
    }
}

/// Proves that a deleted resource is named by the path, that the query must be empty, and that the response is not cached.
#[tokio::test]
async fn deleting() {
    let fixture = Fixture::new(|_| {});
    let read = send(&fixture, ask().method("DELETE").path("/fake/api/items/a%20b")).await;
    assert_eq!((read.status.as_u16(), read.json(), read.header("cache-control")), (200, json!({"deleted": "a b"}), "no-store"));
    let read = send(&fixture, ask().method("DELETE").path("/fake/api/items/7?force=1")).await;
    assert_eq!(read.problem(), ("parameter-invalid".to_owned(), "force".to_owned()));
    let read = send(&fixture, ask().method("OPTIONS").path("/fake/api/items/7")).await;
    assert_eq!(
        (read.header("allow"), read.header("access-control-allow-methods")),
        ("GET, HEAD, DELETE, OPTIONS", "GET, HEAD, DELETE, OPTIONS")
    );
    let entry = get(&fixture, "/fake/openapi.json").await.json()["paths"]["/api/items/{id}"]["delete"].clone();
    assert_eq!((&entry["operationId"], &entry["parameters"][0]["in"]), (&json!("drop"), &json!("path")));
    assert!(
        entry.get("requestBody").is_none() && entry["responses"].get("201").is_none() && entry["responses"].get("404").is_some(),
        "{entry}"
    );
    assert!(get(&fixture, "/fake/docs").await.body.contains("curl -X DELETE"), "the reference shows how");
}

/// Proves that every JSON answer to a read has an ETag, which differs between answers and forms, and by which it is revalidated; and that an answer to a
/// write has none.
#[tokio::test]
async fn lists_are_revalidated() {
    let fixture = Fixture::new(|_| {});
    let (one, lines) = ("/fake/api/items?limit=1", "application/x-ndjson");
    let read = get(&fixture, one).await;
    let other = get(&fixture, "/fake/api/items?limit=2").await;
    let as_lines = send(&fixture, ask().path(one).header("accept", lines)).await;
    assert!(read.header("etag").len() > 10 && read.header("cache-control") == "no-cache", "{:?}", read.headers);
    assert_eq!(get(&fixture, one).await.header("etag"), read.header("etag"));
    assert!(other.header("etag") != read.header("etag") && as_lines.header("etag") != read.header("etag"));
    for (accept, tag, status) in [
        ("application/json", read.header("etag"), 304),
        (lines, as_lines.header("etag"), 304),
        (lines, read.header("etag"), 200),
        ("application/json", other.header("etag"), 200),
    ] {
        let again = send(&fixture, ask().path(one).header("accept", accept).header("if-none-match", tag)).await;
        assert_eq!((again.status.as_u16(), again.body.is_empty()), (status, status == 304), "{accept} {tag}");
    }
}

/// Proves that spliced pages and lines are sent unchanged, with their length, and that a caller who has them gets 304.
#[tokio::test]
async fn pages_and_validators() {
    let fixture = Fixture::new(|_| {});
    let read = get(&fixture, "/fake/v1/page").await;
    assert_eq!((read.status.as_u16(), read.body.as_str()), (200, "{\"changes\":[{\"seq\":1},{\"seq\":2}]}"));
    assert_eq!((read.header("content-type"), read.header("content-length")), ("application/json", "33"));
    assert_eq!((read.header("etag"), read.header("cache-control")), ("\"7\"", "no-cache"));
    for (tags, status) in [("\"7\"", 304), ("\"6\", W/\"7\"", 304), ("*", 304), ("\"early\"", 304), ("\"6\"", 200), ("7", 200)] {
        let read = send(&fixture, ask().path("/fake/v1/page").header("if-none-match", tags)).await;
        assert_eq!(read.status, status, "{tags}");
        assert!(!read.header("etag").is_empty() && read.header("cache-control") == "no-cache", "{tags}");
        assert_eq!(read.body.is_empty(), status == 304, "{tags}");
    }
    for (first, second, status) in [("\"6\"", "\"7\"", 304), ("\"7\"", "\"6\"", 304), ("\"5\"", "\"6\"", 200)] {
        for path in ["/fake/v1/page", "/fake/v1/page/"] {
            let read = send(&fixture, ask().path(path).header("if-none-match", first).header("if-none-match", second)).await;
            assert_eq!(read.status, status, "{path}: {first}, {second}");
        }
    }
    for path in [
        "/fake/api/items/?limit=2",
        "/fake/api/items//",
        "/fake/api/items/7/",
        "/fake//api/items?limit=2",
        "/fake/api///items//7",
        "/fake/openapi.json/",
        "/fake//openapi.json",
        "/fake/",
        "/healthz/",
    ] {
        assert_eq!(get(&fixture, path).await.status, 200, "{path}");
    }
    // Only files have parts: elsewhere the headers are ignored, whatever they are.
    let twice = ["range", "if-range"].into_iter().fold(ask().path("/fake/v1/page"), |ask, name| ask.header(name, "a").header(name, "b"));
    assert_eq!(send(&fixture, twice).await.status, 200);
    let lines = |accept: &'static str| ask().path("/fake/v1/page").header("accept", accept);
    let read = send(&fixture, lines("text/html, application/x-ndjson;q=0.9")).await;
    assert_eq!((read.header("content-type"), read.body.as_str()), ("application/x-ndjson", "{\"seq\":1}\n{\"seq\":2}\n"));
    assert_eq!((read.header("next-cursor"), read.header("etag"), read.header("content-length")), ("next", "\"7-lines\"", "20"));
    let read = send(&fixture, lines("application/x-ndjson;q=0, application/json")).await;
    assert_eq!(read.header("content-type"), "application/json");
}

/// Proves that a list in a single JSON value is split into lines if NDJSON is requested, and never if the operation has no list.
#[tokio::test]
async fn lines_of_values() {
    let fixture = Fixture::new(|_| {});
    let ask = |path: &str| super::ask().path(path).header("accept", "application/x-ndjson");
    let read = send(&fixture, ask("/fake/api/items")).await;
    assert_eq!((read.body.as_str(), read.header("next-cursor")), ("\"a\"\n\"b\"\n", "c2"));
    assert_eq!(send(&fixture, ask("/fake/api/items/7")).await.header("content-type"), "application/json");
}

/// Proves that a list is a table if the caller prefers one, with the next cursor and an ETag of its own, and never if the operation has no list.
#[tokio::test]
async fn tables_of_lists() {
    let fixture = Fixture::new(|_| {});
    let ask = |path: &str, accept: &str| super::ask().path(path).header("accept", accept);
    let read = send(&fixture, ask("/fake/api/items", "text/csv")).await;
    assert_eq!((read.header("content-type"), read.body.as_str()), ("text/csv; charset=utf-8", "value\r\na\r\nb\r\n"));
    assert_eq!(read.header("next-cursor"), "c2");
    let lines = send(&fixture, ask("/fake/api/items", "application/x-ndjson")).await;
    for (tag, status) in [(read.header("etag"), 304), (lines.header("etag"), 200)] {
        let again = send(&fixture, ask("/fake/api/items", "text/csv").header("if-none-match", tag)).await;
        assert_eq!(again.status, status, "{tag}");
    }
    let page = send(&fixture, ask("/fake/v1/page", "application/json;q=0.5, text/csv")).await;
    let rows = "value\r\n\"{\"\"seq\"\":1}\"\r\n\"{\"\"seq\"\":2}\"\r\n";
    assert_eq!((page.body.as_str(), page.header("etag")), (rows, "\"7-lines-csv\""));
    let objects =
        ["text/csv", "application/x-ndjson", "application/vnd.apache.parquet, */*;q=0.1"].map(|accept| ("/fake/api/items/7", accept));
    for (path, accept) in [("/fake/api/items", "text/csv;q=0.1, application/json")].into_iter().chain(objects) {
        assert_eq!(send(&fixture, ask(path, accept)).await.header("content-type"), "application/json", "{path} {accept}");
    }
}

/// Proves that a creating request is answered with 201 and not cached, and that its idempotency key is validated and forwarded.
#[tokio::test]
async fn making() {
    let fixture = Fixture::new(|_| {});
    let read = send(&fixture, post("{\"name\": \"a\"}").header("idempotency-key", "k-1")).await;
    assert_eq!((read.status.as_u16(), read.json()), (201, json!({"made": "a", "idempotencyKey": "k-1"})));
    assert_eq!(read.header("cache-control"), "no-store");
    let long = "k".repeat(201);
    for key in ["", "a b", long.as_str()] {
        let read = send(&fixture, post("{\"name\": \"a\"}").header("idempotency-key", key)).await;
        assert_eq!(read.problem(), ("parameter-invalid".to_owned(), "Idempotency-Key".to_owned()), "{key}");
    }
}

/// Proves that a byte order mark before a body is no part of it, and that a body in another encoding is refused with its name.
#[tokio::test]
async fn encodings_of_bodies() {
    let fixture = Fixture::new(|_| {});
    for body in ["\u{feff}{\"name\": \"a\"}", "\u{feff}\r\n{\"name\": \"a\"}\r\n", "{\"name\": \"a\"}"] {
        assert_eq!(send(&fixture, post(body)).await.status, 201, "{body:?}");
    }
    let wide = |bytes: fn(u16) -> [u8; 2], mark: &str| -> Vec<u8> {
        format!("{mark}{{\"name\": \"a\"}}").encode_utf16().flat_map(bytes).collect()
    };
    for body in
        [wide(u16::to_le_bytes, "\u{feff}"), wide(u16::to_be_bytes, "\u{feff}"), wide(u16::to_le_bytes, ""), wide(u16::to_be_bytes, "")]
    {
        let read = send(&fixture, post("").body(body)).await;
        assert_eq!((read.status.as_u16(), read.problem().0.as_str()), (400, "body-invalid"));
        assert!(read.body.contains("JSON is sent as UTF-8"), "{}", read.body);
    }
    for body in ["\u{feff}\u{feff}{}", "\u{feff}", "\u{feff}[]", "{\u{feff}}"] {
        let read = send(&fixture, post(body)).await;
        assert!(read.status == 400 && !read.body.contains("UTF-16"), "{body:?}: {}", read.body);
    }
}

/// Proves that a file supports reads only, says so to other methods, and that a path without a file stays unknown to every method.
#[tokio::test]
async fn methods_of_files() {
    let fixture = Fixture::new(|_| {});
    let files: operation::Files = Arc::new(|_, path: String| {
        let tile = || operation::File {
            bytes: Bytes::from_static(b"tile"),
            content_type: "application/octet-stream",
            is_immutable: true,
            policy: "",
        };
        Box::pin(async move { Ok((path == "tile/0/000").then(tile)) })
    });
    let services = fixture.services().into_iter().map(|service| Service { files: Some(Arc::clone(&files)), ..service }).collect();
    let site = Arc::new(Site::new(Arc::clone(&fixture.context), services, Arc::new(|| Ok(()))).unwrap());
    for (method, status, body) in [("GET", 200, "tile"), ("HEAD", 200, "tile"), ("OPTIONS", 204, "")] {
        let read = ask().method(method).path("/fake/tile/0/000").reply(Arc::clone(&site)).await;
        assert_eq!((read.status.as_u16(), read.body.as_str()), (status, body), "{method}");
        if method == "OPTIONS" {
            assert_eq!((read.header("allow"), read.header("access-control-allow-origin")), ("GET, HEAD, OPTIONS", "*"));
        }
    }
    for method in ["POST", "PUT", "PATCH", "DELETE"] {
        let read = ask().method(method).path("/fake/tile/0/000").reply(Arc::clone(&site)).await;
        let found = (read.status.as_u16(), read.problem().0, read.header("allow").to_owned());
        assert_eq!(found, (405, "method-not-allowed".to_owned(), "GET, HEAD, OPTIONS".to_owned()), "{method}");
    }
    for method in ["GET", "OPTIONS", "POST", "DELETE"] {
        assert_eq!(ask().method(method).path("/fake/tile/0/001").reply(Arc::clone(&site)).await.status, 404, "{method}");
    }
}

/// Proves that the future of a request stays small, whatever some operations need: the layers of the server move it several times.
#[tokio::test]
async fn futures_are_small() {
    let site = Fixture::new(|_| {}).site(Arc::new(|| Ok(())));
    let (method, headers, address) = (http::Method::GET, http::HeaderMap::new(), IpAddr::V4(Ipv4Addr::LOCALHOST));
    let request = crate::Request { method: &method, path: "/", below: "", query: "", headers, address };
    let bytes = size_of_val(&site.answer(request, futures_util::stream::empty::<Result<Bytes, warp::Error>>()));
    assert!(bytes < 8_000, "{bytes}");
}

/// Proves that a handler's problem keeps its status, pause and headers, and that a panic becomes a problem, too.
#[tokio::test]
async fn problems() {
    let fixture = Fixture::new(|_| {});
    let read = send(&fixture, post("{\"name\": \"busy\"}")).await;
    assert_eq!((read.status.as_u16(), read.problem().0.as_str()), (429, "rate-limited"));
    assert_eq!((read.header("retry-after"), read.header("ratelimit")), ("7", "\"day\";r=0;t=7"));
    assert_eq!(read.json()["type"], format!("{BASE}/docs/errors#rate-limited"));
    let read = get(&fixture, "/fake/api/items/gone").await;
    assert_eq!((read.status.as_u16(), read.problem()), (404, ("not-found".to_owned(), "id".to_owned())));
    let read = get(&fixture, "/fake/api/broken").await;
    assert_eq!((read.status.as_u16(), read.problem().0.as_str()), (500, "internal"));
    assert!(!read.body.contains("on purpose"), "what is for us alone stays here");
}

/// Proves that a key is found in all four places, and that an invalid, empty or second key is refused.
#[tokio::test]
async fn keys() {
    let fixture = Fixture::new(|_| {});
    let ask = |path: &str, headers: &[(&'static str, &str)]| {
        headers.iter().fold(super::ask().path(path), |request, (name, value)| request.header(name, value))
    };
    // None of these keys exists, which is how they are seen to have been found.
    for request in [
        ask("/fake/api/items?api_key=a", &[]),
        ask("/fake/api/items?key=a&limit=2", &[]),
        ask("/fake/api/items", &[("x-api-key", "a")]),
        ask("/fake/api/items", &[("authorization", "bearer a")]),
        ask("/fake/api/items?key=a&api_key=a", &[("authorization", "Bearer a"), ("x-api-key", "a")]),
        ask("/fake/api/items", &[("authorization", "Basic YTpi")]),
    ] {
        let read = send(&fixture, request).await;
        assert_eq!((read.status.as_u16(), read.problem().0.as_str()), (401, "key-invalid"), "{}", read.body);
        assert_eq!(read.header("www-authenticate"), "Bearer");
    }
    for (request, code, parameter) in [
        (ask("/fake/api/items?api_key=", &[]), "parameter-invalid", "api_key"),
        (ask("/fake/api/items?key=a&key=a", &[]), "parameter-invalid", "key"),
        (ask("/fake/api/items", &[("x-api-key", "")]), "parameter-invalid", "X-API-Key"),
        (ask("/fake/api/items?key=b", &[("x-api-key", "a")]), "request-invalid", "key"),
        (ask("/fake/api/items?key=b&api_key=a", &[]), "request-invalid", "key"),
    ] {
        let read = send(&fixture, request).await;
        assert_eq!((read.status.as_u16(), read.problem()), (400, (code.to_owned(), parameter.to_owned())), "{}", read.body);
    }
    let read = get(&fixture, "/fake/api/paid").await;
    assert_eq!((read.status.as_u16(), read.problem().0.as_str()), (403, "tier-too-low"));
}

/// Proves that a script of another origin can read each header of an answer, but those that only the browser needs.
#[tokio::test]
async fn headers_are_exposed() {
    const OF_BROWSERS: [&str; 7] = [
        "cache-control",
        "content-security-policy",
        "content-type",
        "referrer-policy",
        "vary",
        "x-accel-buffering",
        "x-content-type-options",
    ];
    let fixture = Fixture::new(|_| {});
    let of_type = |path: &str, accept: &str| ask().path(path).header("accept", accept);
    let mut found = std::collections::BTreeSet::new();
    for (request, status) in [
        (ask().path("/fake/api/items"), 200),
        (of_type("/fake/v1/page", "application/x-ndjson"), 200),
        (ask().path("/fake/v1/page").header("if-none-match", "\"7\""), 304),
        (ask().path("/fake/api/items").header("x-api-key", "a"), 401),
        (ask().path("/fake/api/paid"), 403),
        (ask().path("/fake/nothing"), 404),
        (ask().method("DELETE").path("/fake/api/items"), 405),
        (ask().method("POST").path("/fake/api/items").header("content-type", "text/plain").body("{}"), 415),
        (ask().method("OPTIONS").path("/fake/api/items"), 204),
        (ask().path("/fake/openapi.json"), 200),
        (ask().path("/healthz"), 200),
    ] {
        let read = send(&fixture, request).await;
        assert_eq!(read.status, status, "{}", read.body);
        let exposed = read.header("access-control-expose-headers").to_ascii_lowercase();
        for name in read.headers.keys().map(http::HeaderName::as_str) {
            let is_exposed = exposed.split(", ").any(|other| other == name);
            assert!(is_exposed || name.starts_with("access-control-") || OF_BROWSERS.contains(&name), "{status}: {name}");
            found.insert(name.to_owned());
        }
    }
    for name in ["accept", "allow", "etag", "next-cursor", "www-authenticate"] {
        assert!(found.contains(name), "{name} was not tried: {found:?}");
    }
}

/// Proves that the note of an answer that states its own hash is a header, so that it is no part of what is hashed.
#[tokio::test]
async fn notes_of_hashed_answers() {
    let fixture = Fixture::new(|_| {});
    let read = get(&fixture, "/fake/api/items/hashed").await;
    assert_eq!(read.json(), json!({"id": "hashed", "artifactHash": "sha256:00"}));
    assert_eq!(read.header("answer-note"), "a short history (...)");
    assert_eq!(get(&fixture, "/fake/api/items/7").await.header("answer-note"), "");
}

/// Proves that scripts of any origin may read, and may send preflight requests.
#[tokio::test]
async fn cross_origin() {
    let fixture = Fixture::new(|_| {});
    let read = get(&fixture, "/fake/api/items").await;
    assert_eq!(read.header("access-control-allow-origin"), "*");
    for exposed in [
        "RateLimit",
        "RateLimit-Policy",
        "Retry-After",
        "ETag",
        "Next-Cursor",
        "Answer-Note",
        "PAYMENT-REQUIRED",
        "PAYMENT-RESPONSE",
        "X-PAYMENT-RESPONSE",
        "Payment-Repeat-Token",
        "Content-Disposition",
        "Content-Range",
        "Accept-Ranges",
        "Allow",
        "WWW-Authenticate",
    ] {
        assert!(read.header("access-control-expose-headers").contains(exposed), "{exposed}");
    }
    assert_eq!(get(&fixture, "/nowhere").await.header("access-control-allow-origin"), "*");
    let read = send(&fixture, ask().method("OPTIONS").path("/fake/api/items")).await;
    assert_eq!((read.status.as_u16(), read.header("access-control-allow-methods")), (204, "GET, HEAD, POST, OPTIONS"));
    for allowed in
        ["X-API-Key", "Authorization", "X-PAYMENT", "PAYMENT-SIGNATURE", "Idempotency-Key", "X-Watch-Token", "If-None-Match", "Mcp-Method"]
    {
        assert!(read.header("access-control-allow-headers").contains(allowed), "{allowed}");
    }
    // Some payment clients send this header of responses with their requests.
    for (requested, expected) in [
        ("access-control-expose-headers,content-type", Some("access-control-expose-headers")),
        ("x-trace-id , x-payment", Some("x-trace-id")),
        ("not a name, x\u{e9}", None),
        ("", None),
    ] {
        for path in ["/fake/api/items", "/fake/mcp", "/healthz", "/"] {
            let read = send(&fixture, ask().method("OPTIONS").path(path).header("access-control-request-headers", requested)).await;
            let allowed = read.header("access-control-allow-headers");
            let further: Vec<&str> = allowed.split(", ").filter(|name| name.chars().all(|c| !c.is_uppercase())).collect();
            assert_eq!(further, Vec::from_iter(expected), "{path} {requested}: {allowed}");
        }
    }
}

/// Proves that requests for unknown paths count against the address, and that other paths are still answered.
#[tokio::test]
async fn unknown_paths_are_limited() {
    let fixture = Fixture::new(|_| {});
    let site = fixture.site(Arc::new(|| Ok(())));
    let calls_max = Open::UnknownPath.per_minute_max();
    for _ in 0..calls_max {
        assert_eq!(ask().path("/fake/nowhere").reply(Arc::clone(&site)).await.status, 404);
    }
    let limited = ask().path("/fake/nowhere").reply(Arc::clone(&site)).await;
    assert_eq!((limited.status.as_u16(), limited.problem().0.as_str()), (429, "rate-limited"));
    assert!(!limited.header("retry-after").is_empty());
    for other in ["/elsewhere", "/fake/nowhere/else"] {
        assert_eq!(ask().path(other).reply(Arc::clone(&site)).await.status, 429, "{other}");
    }
    for known in ["/healthz", "/fake/openapi.json"] {
        assert_eq!(ask().path(known).reply(Arc::clone(&site)).await.status, 200, "{known}");
    }
}

/// Proves that a long unknown path is answered without a suggestion: it is not compared with known paths.
#[tokio::test]
async fn long_paths_get_no_hint() {
    let fixture = Fixture::new(|_| {});
    let near = get(&fixture, "/fake/openapi.jsom").await;
    assert!(near.json()["detail"].as_str().unwrap().contains("did you mean"), "{}", near.body);
    let long = get(&fixture, &format!("/fake/openapi.json{}", "m".repeat(30_000))).await;
    assert_eq!(long.status, 404);
    assert!(!long.body.contains("did you mean") && long.body.len() < 1_000, "{}", long.body);
}

/// Proves that each answer that needs no key has a limit by address: when that of one kind is reached, all its answers are refused, and no others.
#[tokio::test]
async fn answers_without_a_key_are_limited_by_address() {
    let call =
        json!({"jsonrpc": "2.0", "id": 1, "method": "tools/call", "params": {"name": "find", "arguments": {"limit": 0}}}).to_string();
    let tool = || {
        let request = ask().method("POST").path("/fake/mcp").header("host", "localhost").header("content-type", "application/json");
        request.header("mcp-protocol-version", "2025-11-25").body(call.clone())
    };
    let get = |path: &str| ask().path(path);
    let requests = || {
        let documents = ["/", "/docs/errors", "/llms.txt", "/.well-known/x402", "/fake", "/fake/docs", "/fake/openapi.json"];
        let mut all: Vec<(Open, Ask)> = documents.map(|path| (Open::Document, get(path))).into();
        all.push((Open::Page, get("/").header("accept", "text/html")));
        all.extend(
            [
                "/explore",
                "/explore/fake",
                "/explore/fake/1",
                "/status",
                "/guides",
                "/guides/webhooks.md",
                "/account",
                "/account/none",
                "/webhooks",
            ]
            .map(|path| (Open::Page, get(path))),
        );
        all.extend(["/healthz", "/readyz"].map(|path| (Open::Probe, get(path))));
        all.extend(["/nothing", "/fake/nothing", "/metrics"].map(|path| (Open::UnknownPath, get(path))));
        all.extend(["/fake/api/items", "/fake/api/past"].map(|path| (Open::Call, get(path))));
        all.push((Open::PastCall, get("/fake/api/past?asOf=2026-01-01")));
        all.extend(["/fake/api/items?limit=0", "/fake/api/items?no=1"].map(|path| (Open::Refusal, get(path))));
        all.push((Open::Refusal, get("/fake/api/items").header("x-api-key", "no key")));
        all.push((Open::Refusal, tool()));
        all
    };
    for kind in [Open::Document, Open::Page, Open::Probe, Open::UnknownPath, Open::Call, Open::PastCall, Open::Refusal] {
        let fixture = Fixture::new(|_| {});
        let address = IpAddr::V4(Ipv4Addr::UNSPECIFIED);
        for _ in 0..kind.per_minute_max() {
            Access::of(&fixture.context).admit_open(&fixture.context, kind, address).unwrap();
        }
        let site = fixture.site(Arc::new(|| Ok(())));
        for (own, request) in requests() {
            let shown = format!("{request:?}");
            let read = request.reply(Arc::clone(&site)).await;
            // A tool refuses in its result; documents name the code, too.
            let is_limited = read.status == 429 || shown.contains("/fake/mcp") && read.body.contains("rate-limited");
            assert_eq!(is_limited, own == kind, "{kind:?}: {shown}: {}", read.body);
        }
    }
}

/// Proves that several slashes in a row are one for a direct caller, and nothing behind a proxy, whose rules by literal path do not see them as one; the
/// refusal names the path.
#[tokio::test]
async fn slashes_in_a_row() {
    let direct = Fixture::new(|_| {});
    let behind = Fixture::new(|settings| settings.trusted_proxies = vec![("127.0.0.0".parse().unwrap(), 8)]);
    for (path, single) in [
        ("/fake//openapi.json", "/fake/openapi.json"),
        ("//healthz", "/healthz"),
        ("/fake///api//echo", "/fake/api/echo"),
        ("//account", "/account"),
        ("/fake/docs//", "/fake/docs"),
    ] {
        let (doubled, plain) = (get(&direct, path).await, get(&direct, single).await);
        assert_eq!((doubled.status, doubled.header("content-type")), (plain.status, plain.header("content-type")), "{path}");
        let refused = get(&behind, path).await;
        assert_eq!((refused.status.as_u16(), refused.problem().0.as_str()), (404, "not-found"), "{path}");
        assert!(refused.body.contains(&format!("ask for \\\"{single}\\\"")), "{}", refused.body);
        assert_eq!(get(&behind, &format!("{single}/")).await.status, plain.status, "{single}");
    }
}
