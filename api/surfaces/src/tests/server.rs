//! The listener, over real sockets.

use std::net::SocketAddr;
use std::time::Duration;

use feed::testing::time::{as_time_passes, stop_time};
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::TcpStream;
use tokio::sync::oneshot;
use tokio::task::JoinHandle;

use super::*;
use crate::server::{BindError, Server};

/// Far longer than anything takes, also on a busy machine; a test that needs it has failed.
const PATIENCE: Duration = Duration::from_secs(300);

struct Running {
    fixture: Fixture,
    address: SocketAddr,
    stop: oneshot::Sender<()>,
    task: JoinHandle<()>,
}

fn start(change: impl FnOnce(&mut Settings)) -> Running {
    let fixture = Fixture::new(change);
    let server = Server::bind("127.0.0.1:0".parse().unwrap()).unwrap();
    let address = server.address();
    let (stop, stopped) = oneshot::channel();
    let (context, services) = (Arc::clone(&fixture.context), fixture.services());
    let task = tokio::spawn(async move {
        let stopped = async { stopped.await.unwrap_or_default() };
        server.run(context, services, Arc::new(|| Ok(())), stopped).await.unwrap();
    });
    Running { fixture, address, stop, task }
}

/// Proves that metrics, which count the calls of readers, are at the listener for operators alone, without CORS, and that nothing for readers is there.
#[tokio::test]
async fn operators_have_a_listener_of_their_own() {
    let running = start(|_| {});
    let operators = Server::bind("127.0.0.1:0".parse().unwrap()).unwrap();
    let address = operators.address();
    tokio::spawn(operators.run_for_operators(Arc::clone(&running.fixture.context), Arc::new(|| Ok(()))));
    exchange(running.address, &request("/fake/api/items?limit=0", "")).await;
    let metrics = exchange(address, &request("/metrics", "Origin: https://other.example\r\n")).await;
    assert!(metrics.starts_with("HTTP/1.1 200") && metrics.contains("content-type: text/plain"), "{metrics}");
    assert!(!metrics.contains("access-control-"), "{metrics}");
    for line in [
        "api_requests_total{operation=\"find\",service=\"fake\",status=\"400\"}",
        "api_request_seconds_bucket{class=\"4xx\",operation=\"find\",service=\"fake\"",
        "api_ready 1",
    ] {
        assert!(metrics.contains(&format!("\n{line}")), "{line}: {metrics}");
    }
    for probe in ["/healthz", "/readyz"] {
        assert!(exchange(address, &request(probe, "")).await.starts_with("HTTP/1.1 200"), "{probe}");
    }
    for (address, path) in [(running.address, "/metrics"), (running.address, "/metrics/"), (address, "/"), (address, "/fake/api/items")] {
        let refused = exchange(address, &request(path, "")).await;
        assert!(refused.starts_with("HTTP/1.1 404") && !refused.contains("api_ready"), "{path}: {refused}");
    }
    let posted = exchange(address, "POST /metrics HTTP/1.1\r\nHost: localhost\r\nConnection: close\r\n\r\n").await;
    assert!(posted.starts_with("HTTP/1.1 405"), "{posted}");
    let named = async |host: &str| exchange(address, &format!("GET /metrics HTTP/1.1\r\nHost: {host}\r\nConnection: close\r\n\r\n")).await;
    for host in ["127.0.0.1", "127.0.0.1:9080", "[::1]:9080", "LOCALHOST:1", "highwater:9080", "other.example"] {
        assert!(named(host).await.starts_with("HTTP/1.1 200"), "{host}");
    }
    for host in ["rebinding.example", "rebinding.example:9080", "localhost.rebinding.example", "127.0.0.1.rebinding.example"] {
        let refused = named(host).await;
        assert!(refused.starts_with("HTTP/1.1 403") && !refused.contains("api_ready"), "{host}: {refused}");
    }
}

/// Sends bytes and reads until the server closes the connection.
async fn exchange(address: SocketAddr, bytes: &str) -> String {
    let mut stream = TcpStream::connect(address).await.unwrap();
    stream.write_all(bytes.as_bytes()).await.unwrap();
    read_all(&mut stream).await
}

/// Waits for a future; panics with what it waited for after a time limit.
async fn within<F: Future>(what: &str, future: F) -> F::Output {
    tokio::time::timeout(PATIENCE, future).await.unwrap_or_else(|_| panic!("{what} did not occur within {PATIENCE:?}"))
}

async fn read_all(stream: &mut TcpStream) -> String {
    let mut bytes = Vec::new();
    let outcome = within("the end of a connection", stream.read_to_end(&mut bytes)).await;
    if let Err(error) = outcome {
        assert_eq!(error.kind(), std::io::ErrorKind::ConnectionReset);
    }
    String::from_utf8(bytes).unwrap()
}

fn request(path: &str, headers: &str) -> String {
    format!("GET {path} HTTP/1.1\r\nHost: localhost\r\nConnection: close\r\n{headers}\r\n")
}

/// Proves that a client that never completes its head, and one that is idle between requests, are disconnected in time.
#[tokio::test]
async fn slow_heads() {
    let running = start(|settings| settings.request_timeout_s = 1);
    let _stopped = stop_time();
    let sent = async |bytes: &str| {
        let mut stream = TcpStream::connect(running.address).await.unwrap();
        stream.write_all(bytes.as_bytes()).await.unwrap();
        stream
    };
    for head in ["GET /healthz HTTP/1.1\r\nHost: lo", ""] {
        let (mut stream, mut answer) = (sent(head).await, String::new());
        as_time_passes(stream.read_to_string(&mut answer)).await.unwrap();
        assert_eq!(answer, "", "{head:?}");
    }
    let (mut kept, mut answer) = (sent("GET /healthz HTTP/1.1\r\nHost: localhost\r\n\r\n").await, [0; 12]);
    kept.read_exact(&mut answer).await.unwrap();
    assert_eq!(&answer, b"HTTP/1.1 200");
    as_time_passes(kept.read_to_end(&mut Vec::new())).await.unwrap();
}

/// Proves that an answer of more than a few kilobytes is compressed for a client that accepts it and for no other, with the same text and an ETag that
/// answers 304, and that a short answer is not.
#[tokio::test]
async fn answers_are_compressed() {
    let running = start(|_| {});
    // Answers of HTTP/1.0 end with the connection and have no chunks.
    let ask = async |path: &str, headers: &str| {
        let mut stream = TcpStream::connect(running.address).await.unwrap();
        stream.write_all(format!("GET {path} HTTP/1.0\r\nHost: localhost\r\n{headers}\r\n").as_bytes()).await.unwrap();
        let mut bytes = Vec::new();
        stream.read_to_end(&mut bytes).await.unwrap();
        let end = bytes.windows(4).position(|four| four == b"\r\n\r\n").unwrap();
        (String::from_utf8(bytes[..end].to_vec()).unwrap(), bytes[end + 4..].to_vec())
    };
    let (plain_head, plain) = ask("/fake/openapi.json", "").await;
    for refused in ["Accept-Encoding: identity\r\n", "Accept-Encoding: gzip;q=0\r\n", "Accept-Encoding: br\r\n"] {
        let (head, body) = ask("/fake/openapi.json", refused).await;
        assert!(body == plain && !head.contains("content-encoding"), "{refused}{head}");
    }
    let (head, body) = ask("/fake/openapi.json", "Accept-Encoding: br;q=0.9, gzip\r\n").await;
    assert!(head.contains("content-encoding: gzip") && head.contains("accept-encoding"), "{head}");
    let mut text = Vec::new();
    std::io::Read::read_to_end(&mut flate2::read::GzDecoder::new(&*body), &mut text).unwrap();
    assert!(text == plain && body.len() * 3 < plain.len(), "{} of {}", body.len(), plain.len());
    let etag = |head: &str| head.lines().find_map(|line| line.strip_prefix("etag: ")).unwrap().to_owned();
    assert_eq!(etag(&head), format!("W/{}", etag(&plain_head)));
    // A cache finds its compressed copy by the ETag of the 304, and gives it to clients who accept it alone.
    for known in [etag(&head), etag(&plain_head)] {
        let (head, body) = ask("/fake/openapi.json", &format!("Accept-Encoding: gzip\r\nIf-None-Match: {known}\r\n")).await;
        assert!(head.starts_with("HTTP/1.0 304") && body.is_empty() && head.to_lowercase().contains("vary: accept-encoding"), "{head}");
        assert_eq!(etag(&head), known);
    }
    let (head, _) = ask("/healthz", "Accept-Encoding: gzip\r\n").await;
    assert!(!head.contains("content-encoding"), "{head}");
}

/// Proves that a request of HTTP/1.1 without a Host is refused for any path, as a page if a browser asks for a page, and that one of HTTP/1.0 is not.
#[tokio::test]
async fn hosts() {
    let running = start(|_| {});
    for path in ["/healthz", "/fake/api/items"] {
        let ask = |version: &str| exchange_owned(running.address, format!("GET {path} HTTP/{version}\r\nConnection: close\r\n\r\n"));
        let refused = ask("1.1").await;
        assert!(refused.starts_with("HTTP/1.1 400") && refused.contains("request-invalid"), "{refused}");
        assert!(ask("1.0").await.starts_with("HTTP/1.0 200"), "{path}");
        let browser = format!("GET {path} HTTP/1.1\r\nAccept: text/html\r\nConnection: close\r\n\r\n");
        let refused = exchange_owned(running.address, browser).await;
        assert!(refused.starts_with("HTTP/1.1 400"), "{refused}");
        assert_eq!(refused.contains("<h1>This cannot be shown</h1>"), path == "/healthz", "{refused}");
    }
}

/// The head of a request with a body of so many bytes, without its end.
fn head_of_body(length: usize) -> String {
    format!("POST /fake/api/items HTTP/1.1\r\nHost: localhost\r\nContent-Type: application/json\r\nContent-Length: {length}\r\n")
}

/// Proves that a body that is not complete in time gets 408, and that the connection is closed.
#[tokio::test]
async fn slow_bodies() {
    let running = start(|settings| settings.request_timeout_s = 1);
    let _stopped = stop_time();
    let mut stream = TcpStream::connect(running.address).await.unwrap();
    stream.write_all(format!("{}Expect: 100-continue\r\n\r\n{{\"name\"", head_of_body(100)).as_bytes()).await.unwrap();
    // Sent once the body is read: earlier, the time for the head would pass.
    let mut reading = [0; 25];
    stream.read_exact(&mut reading).await.unwrap();
    assert_eq!(&reading, b"HTTP/1.1 100 Continue\r\n\r\n");
    let mut slow = String::new();
    as_time_passes(stream.read_to_string(&mut slow)).await.unwrap();
    assert!(slow.starts_with("HTTP/1.1 408") && slow.contains("request-timeout") && slow.contains("connection: close"), "{slow}");
}

/// Proves that a body with a too large length gets 413 and a too large head 431, and that both close the connection.
#[tokio::test]
async fn large_bodies_and_heads() {
    let running = start(|_| {});
    let large = exchange(running.address, &format!("{}\r\n", head_of_body(1001))).await;
    assert!(large.starts_with("HTTP/1.1 413") && large.contains("body-too-large"), "{large}");
    let chunked = "POST /fake/mcp HTTP/1.1\r\nHost: localhost\r\nContent-Type: application/json\r\nTransfer-Encoding: chunked\r\n\r\n";
    let large = exchange(running.address, &format!("{chunked}7d0\r\n{}", "x".repeat(2000))).await;
    assert!(large.starts_with("HTTP/1.1 413"), "{large}");
    let head = exchange(running.address, &request("/healthz", &format!("X-Long: {}\r\n", "x".repeat(40_000)))).await;
    assert!(head.starts_with("HTTP/1.1 431") && head.contains("head-too-large") && head.contains("connection: close"), "{head}");
    let larger = exchange(running.address, &request("/healthz", &format!("X-Long: {}\r\n", "x".repeat(100_000)))).await;
    assert!(larger.starts_with("HTTP/1.1 431"), "{larger}");
}

/// Proves that a body that is said to be compressed, and an expectation that is not known, are refused by name, and that an encoding that changes nothing
/// and the known expectation are not.
#[tokio::test]
async fn encoded_bodies_and_expectations() {
    let running = start(|_| {});
    let post = |path: &str, headers: &str| {
        let body = "{\"jsonrpc\": \"2.0\", \"id\": 1, \"method\": \"ping\"}";
        let head = "Host: localhost\r\nContent-Type: application/json\r\nConnection: close";
        exchange_owned(
            running.address,
            format!("POST {path} HTTP/1.1\r\n{head}\r\nContent-Length: {}\r\n{headers}\r\n\r\n{body}", body.len()),
        )
    };
    for encoding in ["gzip", "br", "GZIP, identity", "identity\r\nContent-Encoding: deflate"] {
        for path in ["/fake/mcp", "/fake/api/items"] {
            let refused = post(path, &format!("Content-Encoding: {encoding}")).await;
            assert!(refused.starts_with("HTTP/1.1 415") && refused.contains("must not be compressed"), "{path} {encoding}: {refused}");
        }
    }
    for expectation in ["200-maybe", "100-continue\r\nExpect: more", "100"] {
        let refused = post("/fake/mcp", &format!("Expect: {expectation}")).await;
        assert!(refused.contains("HTTP/1.1 400") && refused.contains("\"parameter\":\"Expect\""), "{expectation}: {refused}");
    }
    for header in ["Content-Encoding: identity", "Expect: 100-continue", "Expect: 100-Continue", "X: y"] {
        let taken = post("/fake/mcp", header).await;
        assert!(taken.contains("HTTP/1.1 200") && taken.contains("\"result\":{}"), "{header}: {taken}");
    }
}

/// Proves that requests for a proxy, whose URLs have no path, are refused with a document before routing.
#[tokio::test]
async fn proxy_requests() {
    let running = start(|_| {});
    for line in ["CONNECT example.org:443 HTTP/1.1", "CONNECT /healthz HTTP/1.1"] {
        let refused = exchange(running.address, &format!("{line}\r\nHost: localhost\r\nConnection: close\r\n\r\n")).await;
        assert!(refused.starts_with("HTTP/1.1 400"), "{line}: {refused}");
    }
    let refused = exchange(running.address, "CONNECT example.org:443 HTTP/1.1\r\nHost: localhost\r\n\r\n").await;
    assert!(refused.contains("request-invalid") && refused.contains("connection: close"), "{refused}");
}

/// Proves that an address with more connections than its share loses the longest idle ones, and that a new connection is still answered.
#[tokio::test]
async fn connections_of_one_address() {
    let running = start(|settings| settings.connections_per_address_max = 3);
    let mut idle = Vec::new();
    for _ in 0..3 {
        let mut stream = TcpStream::connect(running.address).await.unwrap();
        // Answered once, so that the server has surely taken it.
        stream.write_all(b"GET /healthz HTTP/1.1\r\nHost: localhost\r\n\r\n").await.unwrap();
        let mut answer = [0; 12];
        stream.read_exact(&mut answer).await.unwrap();
        assert_eq!(&answer, b"HTTP/1.1 200");
        idle.push(stream);
    }
    let answer = exchange(running.address, &request("/healthz", "")).await;
    assert!(answer.starts_with("HTTP/1.1 200"), "{answer}");
    let rest = read_all(&mut idle[0]).await;
    assert!(rest.ends_with("ok\n"), "the one that waited longest is closed after its answer: {rest}");
    idle[2].write_all(b"GET /healthz HTTP/1.1\r\nHost: localhost\r\nConnection: close\r\n\r\n").await.unwrap();
    assert_eq!(read_all(&mut idle[2]).await.matches("HTTP/1.1 200").count(), 1, "the others continue");
}

/// Proves that a page of several pieces arrives complete with its length, and that HEAD sends only the same head.
#[tokio::test]
async fn pages_over_the_wire() {
    let running = start(|_| {});
    let page = exchange(running.address, &request("/fake/v1/page", "")).await;
    let (head, body) = page.split_once("\r\n\r\n").unwrap();
    assert_eq!(body, "{\"changes\":[{\"seq\":1},{\"seq\":2}]}");
    assert!(head.contains("content-length: 33") && !head.contains("chunked"), "{head}");
    let alone = exchange(running.address, &request("/fake/v1/page", "").replace("GET", "HEAD")).await;
    let (head, body) = alone.split_once("\r\n\r\n").unwrap();
    assert!(head.contains("content-length: 33") && body.is_empty(), "{alone}");
}

/// Proves that the caller's address is that of the peer, unless the peer is a trusted proxy.
#[tokio::test]
async fn addresses() {
    let plain = start(|_| {});
    let ask = request("/fake/api/address", "X-Forwarded-For: 198.51.100.1\r\n");
    assert!(exchange(plain.address, &ask).await.contains("{\"address\":\"127.0.0.1\"}"));
    let behind = start(|settings| settings.trusted_proxies = vec![("127.0.0.0".parse().unwrap(), 8)]);
    assert!(exchange(behind.address, &ask).await.contains("{\"address\":\"198.51.100.1\"}"));
}

/// Proves that shutdown completes requests in flight, closes idle connections and accepts no new ones.
#[tokio::test]
async fn graceful_stop() {
    let running = start(|_| {});
    let gate = Arc::clone(&running.fixture.gate);
    let mut idle = TcpStream::connect(running.address).await.unwrap();
    let begun = tokio::spawn(exchange_owned(running.address, request("/fake/api/wait", "").replace("Connection: close\r\n", "")));
    within("the start of a request", gate.notified()).await;
    running.stop.send(()).unwrap();
    assert_eq!(read_all(&mut idle).await, "", "an idle connection is closed");
    assert!(TcpStream::connect(running.address).await.is_err(), "nothing new is taken");
    assert!(!running.task.is_finished(), "the server waits for what was begun");
    gate.notify_one();
    let answer = within("the answer to a request in flight", begun).await.unwrap();
    assert!(answer.starts_with("HTTP/1.1 200") && answer.ends_with("{\"waited\":true}"), "{answer}");
    within("the stop of the server", running.task).await.unwrap();
}

/// Proves that at shutdown a connection that has sent a part of a head is closed while a request in flight continues, and is completed.
#[tokio::test]
async fn unfinished_heads_do_not_delay_a_stop() {
    let running = start(|_| {});
    let gate = Arc::clone(&running.fixture.gate);
    let mut parts = Vec::new();
    for part in ["GET /healthz HTTP/1.1\r\nHost: lo", "G", "GET /healthz HTTP/1.1\r\nHost: localhost\r\n\r\nGET /heal"] {
        let mut stream = TcpStream::connect(running.address).await.unwrap();
        stream.write_all(part.as_bytes()).await.unwrap();
        parts.push(stream);
    }
    let begun = tokio::spawn(exchange_owned(running.address, request("/fake/api/wait", "").replace("Connection: close\r\n", "")));
    within("the start of a request", gate.notified()).await;
    running.stop.send(()).unwrap();
    for (number, mut stream) in parts.into_iter().enumerate() {
        let rest = read_all(&mut stream).await;
        assert_eq!(rest.is_empty(), number < 2, "{rest}");
    }
    gate.notify_one();
    let answer = within("the answer to a request in flight", begun).await.unwrap();
    assert!(answer.ends_with("{\"waited\":true}"), "the parts were closed before the request in flight: {answer}");
    within("the stop of the server", running.task).await.unwrap();
}

async fn exchange_owned(address: SocketAddr, bytes: String) -> String {
    exchange(address, &bytes).await
}

/// Proves that the error for a port in use names the port.
#[tokio::test]
async fn port_in_use() {
    let server = Server::bind("127.0.0.1:0".parse().unwrap()).unwrap();
    let error = Server::bind(server.address()).unwrap_err();
    assert!(matches!(error, BindError::InUse { address } if address == server.address()));
    assert!(error.to_string().contains("in use by another program"), "{error}");
}

/// Proves that connections of a loopback listener are not paced, whatever the system's congestion control is.
#[cfg(target_os = "linux")]
#[tokio::test]
async fn loopback_is_not_paced() {
    let listener = crate::server::listen(SocketAddr::from(([127, 0, 0, 1], 0))).unwrap();
    let (caller, accepted) = tokio::join!(TcpStream::connect(listener.local_addr().unwrap()), listener.accept());
    let way = socket2::SockRef::from(&accepted.unwrap().0).tcp_congestion().unwrap();
    assert!(way.starts_with(b"reno"), "{way:?}");
    drop(caller.unwrap());
}
