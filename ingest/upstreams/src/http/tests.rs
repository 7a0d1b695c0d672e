//! The HTTP client against a scripted server. Pauses run on tokio's paused clock.

mod downloads;

use std::io::{Cursor, Read, Write};
use std::net::SocketAddr;
use std::sync::Mutex;

use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::TcpListener;
use tokio::time::Instant;
use zip::write::SimpleFileOptions;

use super::attempt::{RETRY_AFTER_MAX, Verdict, backoff_bound, retry_after, verdict};
use bytes::Bytes;

use super::*;
use crate::upstream::BackOffRule;

const JSON: &[&str] = &["application/json"];
const STREAM: Stream = Stream {
    name: "test",
    topic: &schemas::topics::RECALLS,
    every: Duration::ZERO,
    snapshot: false,
    answer_bytes_max: 100_000,
    answer_timeout: Duration::from_secs(300),
};

/// How long the paused clock stands still before each second.
const QUIET: Duration = Duration::from_millis(50);

/// Slows down the paused clock: by itself it advances to the next timeout whenever all tasks wait for a socket, so that a packet that a busy machine
/// delivers late would be a timeout. It stands still while a blocking task runs.
async fn slow_down_paused_clock() {
    let mut seconds = tokio::time::interval(Duration::from_secs(1));
    loop {
        seconds.tick().await;
        drop(tokio::task::spawn_blocking(|| std::thread::sleep(QUIET)).await);
    }
}

/// One scripted answer: its bytes, and whether the connection then stays open without further data.
#[derive(Clone)]
struct Say {
    bytes: Vec<u8>,
    hang: bool,
}

fn say(status: &str, headers: &[&str], body: &[u8]) -> Say {
    let mut bytes = format!("HTTP/1.1 {status}\r\nconnection: close\r\ncontent-length: {}\r\n", body.len()).into_bytes();
    for header in headers {
        bytes.extend_from_slice(format!("{header}\r\n").as_bytes());
    }
    bytes.extend_from_slice(b"\r\n");
    bytes.extend_from_slice(body);
    Say { bytes, hang: false }
}

fn json(body: &str) -> Say {
    say("200 OK", &["content-type: application/json; charset=utf-8"], body.as_bytes())
}

fn raw(text: &str, hang: bool) -> Say {
    Say { bytes: text.as_bytes().to_vec(), hang }
}

/// A scripted server: one answer per request, the last one repeated. It records the heads and bodies of the requests.
struct Server {
    addr: SocketAddr,
    heads: Arc<Mutex<Vec<String>>>,
    bodies: Arc<Mutex<Vec<String>>>,
}

impl Server {
    async fn start(script: Vec<Say>) -> Self {
        tokio::spawn(slow_down_paused_clock());
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let addr = listener.local_addr().unwrap();
        let heads = Arc::new(Mutex::new(Vec::new()));
        let recorded = Arc::clone(&heads);
        let bodies = Arc::new(Mutex::new(Vec::new()));
        let recorded_bodies = Arc::clone(&bodies);
        tokio::spawn(async move {
            loop {
                let (mut stream, _) = listener.accept().await.unwrap();
                let (mut head, mut byte) = (Vec::new(), [0]);
                while !head.ends_with(b"\r\n\r\n") && stream.read(&mut byte).await.unwrap() == 1 {
                    head.push(byte[0]);
                }
                let head = String::from_utf8(head).unwrap();
                let length = head.to_ascii_lowercase().lines().find_map(|line| line.strip_prefix("content-length: ")?.parse().ok());
                let mut body = vec![0; length.unwrap_or(0)];
                stream.read_exact(&mut body).await.unwrap();
                recorded_bodies.lock().unwrap().push(String::from_utf8(body).unwrap());
                let number = {
                    let mut recorded = recorded.lock().unwrap();
                    recorded.push(head);
                    recorded.len() - 1
                };
                let say = script[number.min(script.len() - 1)].clone();
                tokio::spawn(async move {
                    // The client may have closed the connection; some tests prove that.
                    drop(stream.write_all(&say.bytes).await);
                    if say.hang {
                        std::future::pending::<()>().await;
                    }
                });
            }
        });
        Self { addr, heads, bodies }
    }

    fn heads(&self) -> Vec<String> {
        self.heads.lock().unwrap().clone()
    }

    fn client(&self) -> Client {
        self.client_under("")
    }

    fn client_under(&self, prefix: &str) -> Client {
        Client::new(&settings(Some(format!("http://{}{prefix}", self.addr)))).unwrap()
    }
}

fn settings(base_url: Option<String>) -> Settings {
    Settings {
        base_url,
        user_agent: "highwater-test/1 (+mailto:ops@example.org)".into(),
        requests_per_second: 1000.0,
        ..Settings::default()
    }
}

fn request() -> Request {
    Request {
        origin: "https://api.example.org".into(),
        path: "/food.json?search=a:[1+TO+2]&api_key=hush".into(),
        media_types: JSON,
        ..Request::default()
    }
}

async fn get(client: &Client) -> Result<Fetched, FetchError> {
    client.fetch(&STREAM, &request(), None).await
}

fn body(fetched: Fetched) -> Bytes {
    match fetched {
        Fetched::Answer { answer, .. } => answer.body,
        Fetched::NotModified => panic!("not modified"),
    }
}

/// The messages of an error and of all its causes.
fn words(error: &FetchError) -> String {
    let mut out = format!("{error} {error:?}");
    let mut cause = std::error::Error::source(error);
    while let Some(error) = cause {
        out.push_str(&format!(" / {error} {error:?}"));
        cause = error.source();
    }
    out
}

/// Builds a gzip member from the deflate stream of a zip.
fn gzipped(body: &[u8]) -> Vec<u8> {
    let mut writer = zip::ZipWriter::new(Cursor::new(Vec::new()));
    writer.start_file("x", SimpleFileOptions::default().compression_method(zip::CompressionMethod::Deflated)).unwrap();
    writer.write_all(body).unwrap();
    let mut archive = zip::ZipArchive::new(writer.finish().unwrap()).unwrap();
    let mut file = archive.by_index_raw(0).unwrap();
    let mut out = vec![0x1f, 0x8b, 8, 0, 0, 0, 0, 0, 0, 255];
    file.read_to_end(&mut out).unwrap();
    out.extend_from_slice(&file.crc32().to_le_bytes());
    out.extend_from_slice(&u32::try_from(body.len()).unwrap().to_le_bytes());
    out
}

/// Proves that `base_url` replaces scheme and host and that its own path and that of the request are joined, and which headers are sent.
#[tokio::test]
async fn base_url_replaces_the_host_and_keeps_the_path() {
    let mut answer = json("[1]");
    answer.bytes = String::from_utf8(answer.bytes)
        .unwrap()
        .replace("\r\n\r\n", "\r\nlink: <next>; rel=\"next\"\r\netag: W/\"7\"\r\n\r\n")
        .into_bytes();
    let server = Server::start(vec![answer]).await;
    let mut request = request();
    request.headers = vec![("X-App-Token", "token".into())];
    let fetched = server.client_under("/sim/").fetch(&STREAM, &request, None).await.unwrap();
    let Fetched::Answer { answer, validators } = fetched else { panic!() };
    assert_eq!((answer.status, answer.link.as_deref(), &answer.body[..]), (200, Some("<next>; rel=\"next\""), &b"[1]"[..]));
    assert_eq!(validators, Validators { etag: Some("W/\"7\"".into()), last_modified: None });
    let head = server.heads()[0].to_ascii_lowercase();
    assert!(head.starts_with("get /sim/food.json?search=a:[1+to+2]&api_key=hush http/1.1\r\n"), "{head}");
    for line in [
        "accept: application/json",
        "accept-encoding: gzip",
        "x-app-token: token",
        "user-agent: highwater-test/1 (+mailto:ops@example.org)",
    ] {
        assert!(head.contains(&format!("\r\n{line}\r\n")), "{line} in {head}");
    }
}

/// Proves that a 429 is retried after its pause, and that pauses are counted.
#[tokio::test(start_paused = true)]
async fn too_many_requests_waits_for_the_requested_pause() {
    let server = Server::start(vec![say("429 Too Many Requests", &["retry-after: 7"], b""), json("[]")]).await;
    let client = server.client();
    let begun = Instant::now();
    assert_eq!(body(get(&client).await.unwrap()), "[]");
    assert!(begun.elapsed() >= Duration::from_secs(7), "{:?}", begun.elapsed());
    assert_eq!((client.stats().requests(), client.stats().retries(), client.stats().failures(), client.stats().bytes()), (2, 1, 0, 2));
}

/// Proves that a 429 without a pause and 5xx are retried, and given up after five attempts.
#[tokio::test(start_paused = true)]
async fn server_errors_are_retried_five_times() {
    let (busy, down) = (say("429 Too Many Requests", &[], b""), say("503 Service Unavailable", &[], b"<html>"));
    let server = Server::start(vec![busy, down.clone(), json("[]")]).await;
    assert_eq!(body(get(&server.client()).await.unwrap()), "[]");
    let server = Server::start(vec![down]).await;
    let client = server.client();
    let error = get(&client).await.unwrap_err();
    assert!(matches!(error, FetchError::Status { status: 503, attempts: 5, .. }), "{error:?}");
    assert_eq!((server.heads().len(), client.stats().failures()), (5, 1));
}

/// Proves that a pause beyond the limit is returned as an error instead of being waited for, in seconds and as a date.
#[tokio::test(start_paused = true)]
async fn long_pauses_are_handed_up() {
    let dated = ["date: Fri, 20 Nov 2026 12:00:00 GMT", "retry-after: Fri, 20 Nov 2026 13:00:00 GMT"];
    for headers in [&["retry-after: 3600"][..], &dated[..]] {
        let server = Server::start(vec![say("503 Service Unavailable", headers, b"")]).await;
        let error = get(&server.client()).await.unwrap_err();
        let FetchError::Later { pause, status: 503, .. } = error else { panic!("{error:?}") };
        assert_eq!(pause, Duration::from_secs(3600));
        assert_eq!(server.heads().len(), 1);
    }
}

/// Proves that a refusal is not retried.
#[tokio::test]
async fn forbidden_is_not_retried() {
    let server = Server::start(vec![say("403 Forbidden", &["retry-after: 1"], b"")]).await;
    let error = get(&server.client()).await.unwrap_err();
    assert!(matches!(error, FetchError::Status { status: 403, attempts: 1, .. }), "{error:?}");
    assert_eq!(server.heads().len(), 1);
}

/// Proves that an HTML page is never accepted, by its type or by its first byte, and that it is retried a few times.
#[tokio::test(start_paused = true)]
async fn a_bot_wall_is_no_answer() {
    let rule = b"\n <html>Access Denied</html>";
    for headers in [&["content-type: text/html"][..], &["content-type: text/plain"], &["content-type: application/json"], &[]] {
        let server = Server::start(vec![say("200 OK", headers, rule)]).await;
        let error = get(&server.client()).await.unwrap_err();
        assert!(matches!(error, FetchError::UnexpectedContent { attempts: 3, .. }), "{headers:?}: {error:?}");
        let server = Server::start(vec![say("200 OK", headers, rule), json("[2]")]).await;
        assert_eq!(body(get(&server.client()).await.unwrap()), "[2]");
    }
    let (busy, page) = (say("503 Oh", &[], b""), say("200 OK", &["content-type: text/html"], rule));
    let server = Server::start(vec![busy.clone(), busy, page.clone(), page, json("[4]")]).await;
    assert_eq!(body(get(&server.client()).await.unwrap()), "[4]", "walls are counted by themselves");
    let server = Server::start(vec![say("200 OK", &["content-type: text/plain"], b"[3]")]).await;
    assert_eq!(body(get(&server.client()).await.unwrap()), "[3]");
}

/// Proves that an upstream's own back-off signal is recognised by status and by page, is not retried, and returns its pause or the longer
/// one of `Retry-After`; and that a valid answer with such a status is accepted.
#[tokio::test(start_paused = true)]
async fn a_block_page_backs_off() {
    static BACK_OFF: BackOffRule =
        BackOffRule { statuses: &[403, 429], markers: &["Rate Threshold Exceeded"], pause: Duration::from_secs(660) };
    const XML: &[&str] = &["text/plain", "application/xml"];
    let page = b"\xef\xbb\xbf\n<!DOCTYPE html PUBLIC \"x\">\n<title>Request Rate Threshold Exceeded</title>";
    let html = "content-type: text/html";
    for (status, headers, body, pause_s) in [
        ("403 Forbidden", &[html][..], &page[..], 660),
        ("403 Forbidden", &["content-type: text/html", "retry-after: 3600"], b"<html>no</html>", 3_600),
        ("429 Too Many Requests", &["retry-after: 1"], b"", 660),
        ("200 OK", &[html], page, 660),
        ("200 OK", &["content-type: text/plain"], page, 660),
        ("503 Service Unavailable", &[html], page, 660),
    ] {
        let server = Server::start(vec![say(status, headers, body)]).await;
        let request = Request { back_off: Some(&BACK_OFF), media_types: XML, accepts_statuses: &[403], ..request() };
        let error = server.client().fetch(&STREAM, &request, None).await.unwrap_err();
        assert!(matches!(error, FetchError::Later { pause, .. } if pause.as_secs() == pause_s), "{status} {headers:?}: {error:?}");
        assert_eq!(server.heads().len(), 1, "{status} is requested once");
    }
    let nothing = say("403 Forbidden", &["content-type: application/xml"], b"<Error><Code>AccessDenied</Code></Error>");
    let quoting = say("200 OK", &["content-type: text/plain"], b"<SEC-DOCUMENT>\n<html>Rate Threshold Exceeded");
    let server = Server::start(vec![nothing, quoting, say("503 Oh", &[html], b"<html>File Unavailable"), json("[]")]).await;
    let request = Request { back_off: Some(&BACK_OFF), media_types: XML, accepts_statuses: &[403], ..request() };
    let client = server.client();
    for expected in [403, 200] {
        let Fetched::Answer { answer, .. } = client.fetch(&STREAM, &request, None).await.unwrap() else { panic!() };
        assert_eq!(answer.status, expected);
    }
    let plain = Request { media_types: JSON, ..request };
    assert_eq!(body(client.fetch(&STREAM, &plain, None).await.unwrap()), "[]", "an outage is no rule");
}

/// Proves that accepted statuses are answers if their content has the expected type, and that other statuses are errors.
#[tokio::test]
async fn accepted_statuses_are_answers() {
    let nothing = say("404 Not Found", &["content-type: application/json"], b"{}");
    let server = Server::start(vec![nothing.clone(), say("404 Not Found", &["content-type: text/html"], b"<p>"), nothing]).await;
    let client = server.client();
    let accepting = Request { accepts_statuses: &[404], ..request() };
    let Fetched::Answer { answer, .. } = client.fetch(&STREAM, &accepting, None).await.unwrap() else { panic!() };
    assert_eq!((answer.status, &answer.body[..]), (404, &b"{}"[..]));
    for request in [accepting, request()] {
        let error = client.fetch(&STREAM, &request, None).await.unwrap_err();
        assert!(matches!(error, FetchError::Status { status: 404, attempts: 1, .. }), "{error:?}");
    }
}

/// Proves that a body shorter than announced is refused.
#[tokio::test(start_paused = true)]
async fn a_truncated_body_is_retried() {
    let cut = raw("HTTP/1.1 200 OK\r\ncontent-type: application/json\r\ncontent-length: 100\r\n\r\n[1,2]", false);
    let server = Server::start(vec![cut.clone(), json("[1,2,3]")]).await;
    assert_eq!(body(get(&server.client()).await.unwrap()), "[1,2,3]");
    let server = Server::start(vec![cut]).await;
    let error = get(&server.client()).await.unwrap_err();
    assert!(matches!(error, FetchError::Connection { attempts: 5, .. }), "{error:?}");
}

/// Proves that a stalled body ends an attempt, by the idle timeout and by the timeout of the whole answer.
#[tokio::test(start_paused = true)]
async fn a_silent_body_is_given_up() {
    let silent = raw("HTTP/1.1 200 OK\r\ncontent-type: application/json\r\ncontent-length: 100\r\n\r\n[1,2", true);
    let server = Server::start(vec![silent.clone(), json("[]")]).await;
    let begun = Instant::now();
    assert_eq!(body(get(&server.client()).await.unwrap()), "[]");
    assert!(begun.elapsed() >= LIMITS.idle_timeout && begun.elapsed() < STREAM.answer_timeout, "{:?}", begun.elapsed());

    let server = Server::start(vec![silent]).await;
    let hasty = Stream { answer_timeout: Duration::from_secs(5), ..STREAM };
    let error = server.client().fetch(&hasty, &request(), None).await.unwrap_err();
    assert!(matches!(error, FetchError::TooSlow { attempts: 5, .. }), "{error:?}");
}

/// Proves that reading stops at the limit: announced, streamed without length, and decompressed from a small gzip.
#[tokio::test]
async fn answers_are_capped_after_decompression() {
    let big = "[".repeat(STREAM.answer_bytes_max + 1);
    let bomb = gzipped("[".repeat(20_000_000).as_bytes());
    assert!(bomb.len() < STREAM.answer_bytes_max);
    let unmeasured = format!("HTTP/1.1 200 OK\r\ncontent-type: application/json\r\nconnection: close\r\n\r\n{big}");
    let script =
        vec![json(&big), raw(&unmeasured, false), say("200 OK", &["content-type: application/json", "content-encoding: gzip"], &bomb)];
    let server = Server::start(script).await;
    let client = server.client();
    for number in 1..=3 {
        let error = get(&client).await.unwrap_err();
        assert!(matches!(error, FetchError::TooLarge { bytes_max: 100_000, .. }), "{error:?}");
        assert_eq!(server.heads().len(), number, "requested once");
    }
    assert!(client.stats().bytes() < 1_000_000, "stopped early: {}", client.stats().bytes());
}

/// Proves that a gzip answer is decompressed.
#[tokio::test]
async fn gzip_is_undone() {
    let server =
        Server::start(vec![say("200 OK", &["content-type: application/json", "content-encoding: gzip"], &gzipped(b"[\"inflated\"]"))])
            .await;
    assert_eq!(body(get(&server.client()).await.unwrap()), "[\"inflated\"]");
}

/// Proves that no redirect leads to another origin, that one within the origin is followed, and that a cycle ends.
#[tokio::test]
async fn redirects_stay_on_the_origin() {
    let other = Server::start(vec![json("[\"stolen\"]")]).await;
    let away = format!("location: http://{}/food.json", other.addr);
    let server = Server::start(vec![say("302 Found", &[&away], b"")]).await;
    let error = get(&server.client()).await.unwrap_err();
    assert!(matches!(error, FetchError::Redirect { status: 302, .. }), "{error:?}");
    assert!(other.heads().is_empty());

    let within = say("301 Moved Permanently", &["location: /elsewhere"], b"");
    let server = Server::start(vec![within.clone(), json("[]")]).await;
    assert_eq!(body(get(&server.client()).await.unwrap()), "[]");
    assert!(server.heads()[1].starts_with("GET /elsewhere "));

    let server = Server::start(vec![within]).await;
    let error = get(&server.client()).await.unwrap_err();
    assert!(matches!(error, FetchError::Redirect { .. }), "{error:?}");
    assert_eq!(server.heads().len(), 1 + REDIRECTS_MAX);
}

/// Proves that validators are sent only with a conditional request, and that a 304 is reported as unchanged.
#[tokio::test]
async fn unchanged_answers_are_not_sent_again() {
    let server = Server::start(vec![say("304 Not Modified", &[], b"")]).await;
    let client = server.client();
    let known = Validators { etag: Some("\"v1\"".into()), last_modified: Some("Fri, 20 Nov 2026 07:04:00 GMT".into()) };
    let conditional = Request { conditional: true, ..request() };
    assert_eq!(client.fetch(&STREAM, &conditional, Some(&known)).await.unwrap(), Fetched::NotModified);
    let head = server.heads()[0].to_ascii_lowercase();
    assert!(head.contains("if-none-match: \"v1\"") && head.contains("if-modified-since: fri, 20 nov 2026 07:04:00 gmt"), "{head}");
    let error = client.fetch(&STREAM, &request(), Some(&known)).await.unwrap_err();
    assert!(matches!(error, FetchError::Status { status: 304, .. }), "{error:?}");
    assert!(!server.heads()[1].contains("if-none-match"));
}

/// Proves that a request with a body is a POST of JSON below `base_url`, is retried completely after an error, and is never conditional.
#[tokio::test(start_paused = true)]
async fn a_body_is_posted_and_posted_again() {
    let server = Server::start(vec![say("503 Service Unavailable", &[], b""), json("{}")]).await;
    let text = r#"{"criteria":{"pi_names":[{"any_name":"Ã"}]},"limit":500}"#;
    let post = Request { path: "/v2/projects/search".into(), body: Some(text.into()), conditional: true, ..request() };
    let known = Validators { etag: Some("\"v1\"".into()), last_modified: None };
    assert_eq!(body(server.client_under("/sim").fetch(&STREAM, &post, Some(&known)).await.unwrap()), "{}");
    assert_eq!(server.bodies.lock().unwrap()[..], [text, text]);
    for head in server.heads() {
        let head = head.to_ascii_lowercase();
        assert!(head.starts_with("post /sim/v2/projects/search http/1.1\r\n"), "{head}");
        assert!(head.contains("\r\ncontent-type: application/json\r\n") && head.contains("\r\naccept: application/json\r\n"), "{head}");
        assert!(!head.contains("if-none-match"), "{head}");
    }
}

/// Proves that a redirect of a POST is never followed: to another address, to itself, and with the method preserved.
#[tokio::test]
async fn a_redirected_post_is_no_answer() {
    let post = Request { path: "/search".into(), body: Some("{}".into()), ..request() };
    for (status, to) in [("302 Found", "/elsewhere"), ("303 See Other", "/search"), ("307 Temporary Redirect", "/elsewhere")] {
        let away = say(status, &[&format!("location: {to}")], b"");
        let server = Server::start(vec![away, json("[\"another\"]")]).await;
        let error = server.client().fetch(&STREAM, &post, None).await.unwrap_err();
        assert!(matches!(error, FetchError::Redirect { .. }), "{status}: {error:?}");
    }
}

/// Proves that neither the query nor the user part of `base_url` appears in any error or its causes.
#[tokio::test(start_paused = true)]
async fn errors_hold_no_secret() {
    // Nothing listens on this port, which is below those that the system gives to others.
    let nobody = Client::new(&settings(Some("http://me:hush@127.0.0.1:1/sim".to_owned()))).unwrap();
    let cut = Server::start(vec![raw("HTTP/1.1 200 OK\r\ncontent-type: application/json\r\ncontent-length: 9\r\n\r\n[", false)]).await;
    let down = Server::start(vec![say("500 Oh", &[], b"")]).await;
    for client in [nobody, cut.client(), down.client()] {
        let error = get(&client).await.unwrap_err();
        let words = words(&error);
        assert!(!words.contains("hush") && !words.contains("api_key"), "{words}");
        assert!(words.contains("/food.json"), "{words}");
    }
    let mut request = request();
    request.headers = vec![("X-Api-Key", "hush\n".into())];
    let error = down.client().fetch(&STREAM, &request, None).await.unwrap_err();
    assert!(matches!(error, FetchError::Header { .. }) && !words(&error).contains("hush"), "{}", words(&error));
}

/// Proves that plain http requires a `base_url` with http, and that a path cannot change the host.
#[tokio::test]
async fn only_https_and_only_the_requested_host() {
    let client = Client::new(&settings(Some("http://127.0.0.1:1".into()))).unwrap();
    let request = Request { path: "@evil.example/".into(), ..request() };
    assert!(matches!(client.fetch(&STREAM, &request, None).await.unwrap_err(), FetchError::Url { .. }));
    let plain = Inner {
        library: client.inner.library.clone(),
        user_agent: String::new(),
        base_url: None,
        pace: Pace::new(1.0).unwrap(),
        stats: FetchStats::default(),
        limits: LIMITS,
    };
    let request = Request { origin: "http://api.example.org".into(), path: "/".into(), ..request };
    assert!(matches!(plain.url(&request), Err(FetchError::NotHttps { .. })));
}

/// Proves that invalid settings are refused with their names.
#[test]
fn invalid_settings_are_refused() {
    let with = |change: fn(&mut Settings)| {
        let mut settings = settings(Some("http://127.0.0.1:1".into()));
        change(&mut settings);
        Client::new(&settings).map(|_| ()).unwrap_err().to_string()
    };
    assert!(with(|s| s.base_url = Some("ftp://x".into())).contains("base_url"));
    assert!(with(|s| s.base_url = Some("http://x/?a=1".into())).contains("base_url"));
    assert!(with(|s| s.user_agent = " ".into()).contains("user_agent"));
    assert!(with(|s| s.requests_per_second = 0.0).contains("requests_per_second"));
}

/// Proves the bounds of the back-off: doubling from half a second to a minute.
#[test]
fn backoff_doubles_to_its_bound() {
    let bounds: Vec<_> = [1, 2, 3, 4, 8, 1000].map(|attempts| backoff_bound(&LIMITS, attempts).as_millis()).into();
    assert_eq!(bounds, [500, 1000, 2000, 4000, 60_000, 60_000]);
}

/// Proves that a client that may send many requests retries sooner, and that any other one begins with half a second.
#[test]
fn first_pause_follows_the_rate() {
    assert_eq!([0.001, 1.0, 100.0, 1000.0, 10_000.0].map(|rate| backoff_first(rate).as_millis()), [500, 500, 500, 50, 5]);
}

/// Proves that `Retry-After` is parsed in both forms, that a date in the past means now, and that invalid values are ignored.
#[test]
fn retry_after_is_read_in_both_forms() {
    let read = |value: &str| {
        let mut headers = reqwest::header::HeaderMap::new();
        headers.insert("retry-after", value.parse().unwrap());
        headers.insert("date", "Fri, 20 Nov 2026 12:00:00 GMT".parse().unwrap());
        retry_after(&headers)
    };
    assert_eq!(read(" 120 "), Some(Duration::from_secs(120)));
    assert_eq!(read("Fri, 20 Nov 2026 12:00:30 GMT"), Some(Duration::from_secs(30)));
    assert_eq!(read("Fri, 20 Nov 2026 11:00:00 GMT"), Some(Duration::ZERO));
    assert_eq!(read("soon"), None);
}

/// Proves that a `Retry-After` of any size is a pause of a day at most, or none, and that a request which gets it ends normally.
#[tokio::test(start_paused = true)]
async fn extreme_retry_after_is_capped() {
    let nines = "9".repeat(5_000);
    let long = [
        "86401",
        "4294967296",
        "9223372036854775807",
        "18446744073709551615",
        "18446744073709551616",
        "Fri, 31 Dec 9999 23:59:59 GMT",
        nines.as_str(),
    ];
    for value in long {
        let header = format!("retry-after: {value}");
        let server = Server::start(vec![say("503 Service Unavailable", &[&header], b"")]).await;
        let error = get(&server.client()).await.unwrap_err();
        assert!(matches!(error, FetchError::Later { pause, .. } if pause == RETRY_AFTER_MAX), "{value:.40}: {error:?}");
    }
    let read = |value: &str| {
        let mut headers = reqwest::header::HeaderMap::new();
        headers.insert("retry-after", value.parse().unwrap());
        retry_after(&headers)
    };
    for value in ["-1", "+1", "1.5", "1e9", "", "0x10", "١٢", "NaN", "inf", "Fri, 31 Dec 99999 23:59:59 GMT"] {
        assert_eq!(reqwest::header::HeaderValue::from_str(value).ok().and_then(|_| read(value)), None, "{value}");
    }
    assert_eq!(read("Thu, 01 Jan 1970 00:00:00 GMT"), Some(Duration::ZERO));
}

/// Proves which media types are accepted, inspected, and refused.
#[test]
fn media_types_are_compared() {
    assert_eq!(verdict("application/zip", &["application/zip", "application/x-zip-compressed"]), Verdict::Taken);
    assert_eq!(verdict("application/json", JSON), Verdict::ByFirstByte);
    assert_eq!(verdict("", JSON), Verdict::ByFirstByte);
    assert_eq!(verdict("text/plain", &["application/json", "text/plain"]), Verdict::ByFirstByte);
    assert_eq!(verdict("text/html", &["application/zip", "application/json", "text/html"]), Verdict::Taken);
    assert_eq!(verdict("text/xml", JSON), Verdict::Refused);
    assert_eq!(verdict("text/html", &["application/zip"]), Verdict::Refused);
}
