//! Malformed, ambiguous, endless and slow requests are refused, and their connections closed.

use std::io::{ErrorKind, Read, Write};
use std::net::{SocketAddr, TcpStream};
use std::path::Path;
use std::thread;
use std::time::{Duration, Instant};

use crate::child::HANG_TIMEOUT;
use crate::commands::NOWHERE;
use crate::process::{Server, highwater, stdout, wait_for};

const JSON: &str = "{\"email\":\"a@example.org\"}";
/// The time that a server gives slow clients.
const TIMEOUT: Duration = Duration::from_secs(3);
/// The time that a server gives other clients, which a busy machine can delay.
const LONG_TIMEOUT: Duration = Duration::from_secs(60);

/// Returns a valid GET request with one more header.
fn get(header: &str) -> Vec<u8> {
    format!("GET /healthz HTTP/1.1\r\nHost: a\r\n{header}\r\n\r\n").into_bytes()
}

/// Returns a GET request with the given first line.
fn line(line: &str) -> Vec<u8> {
    format!("{line}\r\nHost: a\r\n\r\n").into_bytes()
}

/// Returns a POST request that would mint a key, with the given headers and body.
fn post(headers: &str, body: &str) -> Vec<u8> {
    format!("POST /recalls/api/keys HTTP/1.1\r\nHost: a\r\nContent-Type: application/json\r\n{headers}\r\n\r\n{body}").into_bytes()
}

/// Returns a POST request with the given chunks.
fn chunked(chunks: &str) -> Vec<u8> {
    post("Transfer-Encoding: chunked", chunks)
}

/// Returns requests that must not be accepted.
fn malformed() -> Vec<(&'static str, Vec<u8>)> {
    let whole = format!("19\r\n{JSON}\r\n0\r\n\r\n");
    vec![
        // The length of the body.
        ("two lengths", post("Content-Length: 25\r\nContent-Length: 26", JSON)),
        ("a list of lengths", post("Content-Length: 25, 26", JSON)),
        ("a length with chunks", post("Content-Length: 25\r\nTransfer-Encoding: chunked", &whole)),
        ("chunks with a length", post("transfer-encoding: chunked\r\ncontent-length:25", &whole)),
        ("a length below 0", post("Content-Length: -1", JSON)),
        ("a length with a sign", post("Content-Length: +25", JSON)),
        ("a length in hexadecimal", post("Content-Length: 0x19", JSON)),
        ("a length that is no number", post("Content-Length: 25.0", JSON)),
        ("a length beyond numbers", post("Content-Length: 99999999999999999999999", JSON)),
        ("an empty length", post("Content-Length: ", JSON)),
        ("an encoding that does not end", post("Transfer-Encoding: gzip", JSON)),
        ("chunks inside another encoding", post("Transfer-Encoding: chunked, gzip", JSON)),
        ("an unknown encoding", post("Transfer-Encoding: xchunked", JSON)),
        ("two encodings", post("Transfer-Encoding: chunked\r\nTransfer-Encoding: identity", &whole)),
        ("the same encoding twice", post("Transfer-Encoding: chunked\r\nTransfer-Encoding: chunked", &whole)),
        ("an unreadable length with chunks", post("Transfer-Encoding: chunked\r\nContent-Length: 4, 4", &whole)),
        ("a bare LF in an extension", chunked(&format!("19;x\n\r\n{JSON}\r\n0\r\n\r\n"))),
        ("a space before an encoding's colon", post("Transfer-Encoding : chunked", &whole)),
        // Chunks.
        ("a blank after a size", chunked(&format!("19 \r\n{JSON}\r\n0\r\n\r\n"))),
        ("a size that is no number", chunked(&format!("zz\r\n{JSON}\r\n0\r\n\r\n"))),
        ("a size below 0", chunked(&format!("-1\r\n{JSON}\r\n0\r\n\r\n"))),
        ("a size beyond numbers", chunked(&format!("ffffffffffffffffff\r\n{JSON}"))),
        ("an empty size", chunked(&format!("\r\n{JSON}\r\n0\r\n\r\n"))),
        ("a chunk longer than it says", chunked(&format!("3\r\n{JSON}\r\n0\r\n\r\n"))),
        ("a chunk without its end", chunked(&format!("19\r\n{JSON}0\r\n\r\n"))),
        ("a bare LF after a size", chunked(&format!("19\n{JSON}\r\n0\r\n\r\n"))),
        ("a bare LF after a chunk", chunked(&format!("19\r\n{JSON}\n0\r\n\r\n"))),
        ("an endless extension of a chunk", chunked(&format!("19;{}\r\n{JSON}\r\n0\r\n\r\n", "a".repeat(70_000)))),
        ("countless trailers", chunked(&format!("19\r\n{JSON}\r\n0\r\n{}\r\n", "x: y\r\n".repeat(20_000)))),
        // Lines.
        ("bare LFs", b"GET /healthz HTTP/1.1\nHost: a\n\n".to_vec()),
        ("a bare LF after a header", b"GET /healthz HTTP/1.1\r\nHost: a\nX: b\r\n\r\n".to_vec()),
        ("a bare LF for the end", b"GET /healthz HTTP/1.1\r\nHost: a\r\n\n".to_vec()),
        ("bare LFs behind a good request", [get("X: a"), b"GET /healthz HTTP/1.1\nHost: a\n\n".to_vec()].concat()),
        ("bare CRs", b"GET /healthz HTTP/1.1\rHost: a\r\r".to_vec()),
        ("a CR in a value", get("X: a\rb")),
        ("a zero in a value", get("X: a\0b")),
        ("a zero in a name", get("X\0: a")),
        ("a space in a name", get("X y: a")),
        ("a space before a colon", get("X : a")),
        ("a folded header", get("X: a\r\n b")),
        ("a header without a colon", get("Xab")),
        ("a header without a name", get(": a")),
        ("a first header that is folded", b"GET /healthz HTTP/1.1\r\n Host: a\r\n\r\n".to_vec()),
        ("an endless header", get(&format!("X: {}", "a".repeat(1_000_000)))),
        ("countless headers", get(&(0..5_000).map(|n| format!("x{n}: a\r\n")).collect::<String>())),
        // The request line and the host.
        ("an endless address", line(&format!("GET /{} HTTP/1.1", "a".repeat(1_000_000)))),
        ("no host", b"GET /healthz HTTP/1.1\r\n\r\n".to_vec()),
        ("two hosts", get("Host: b")),
        ("a host with a space", b"GET /healthz HTTP/1.1\r\nHost: a b\r\n\r\n".to_vec()),
        ("a host with a user", b"GET /healthz HTTP/1.1\r\nHost: u@a\r\n\r\n".to_vec()),
        ("an empty host", b"GET /healthz HTTP/1.1\r\nHost:\r\n\r\n".to_vec()),
        ("no version", line("GET /healthz")),
        ("an unknown minor version", line("GET /healthz HTTP/1.2")),
        ("version 2 by its name", line("GET /healthz HTTP/2.0")),
        ("an unknown version", line("GET /healthz HTTP/9")),
        ("another protocol", line("GET /healthz XTTP/1.1")),
        ("two spaces", line("GET  /healthz HTTP/1.1")),
        ("tabs", line("GET\t/healthz\tHTTP/1.1")),
        ("a space in the address", line("GET /heal thz HTTP/1.1")),
        ("a zero in the address", line("GET /heal\0thz HTTP/1.1")),
        ("a control character in the address", line("GET /heal\u{1}thz HTTP/1.1")),
        ("an address without a slash", line("GET healthz HTTP/1.1")),
        ("a tunnel", line("CONNECT a:443 HTTP/1.1")),
        ("a method that is none", line("G(T /healthz HTTP/1.1")),
        ("no method", line(" /healthz HTTP/1.1")),
        ("TLS", [b"\x16\x03\x01\x02\x00\x01\x00\x01\xfc\x03\x03".as_slice(), &[0; 100]].concat()),
        ("zeros", vec![0; 1_000]),
        ("HTTP/2 by its preface", b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n\xff\xff\xff\xff".to_vec()),
    ]
}

/// Sends bytes in pieces, then one more whenever the server has been silent for a while; returns what the server sends until it closes.
fn exchange(address: SocketAddr, bytes: &[u8], piece: usize, more: Option<u8>) -> String {
    let mut stream = TcpStream::connect(address).unwrap();
    stream.set_read_timeout(Some(Duration::from_millis(100))).unwrap();
    // The server may close before everything is sent.
    stream.set_nodelay(true).unwrap();
    drop(bytes.chunks(piece).try_for_each(|piece| stream.write_all(piece)));
    let (started, mut answer, mut buffer) = (Instant::now(), Vec::new(), [0; 4_096]);
    loop {
        assert!(started.elapsed() < HANG_TIMEOUT, "still open: {}", String::from_utf8_lossy(&answer));
        match stream.read(&mut buffer) {
            Ok(0) => break,
            Ok(read) => answer.extend_from_slice(&buffer[..read]),
            Err(error) if matches!(error.kind(), ErrorKind::WouldBlock | ErrorKind::TimedOut) => {
                if let Some(byte) = more {
                    drop(stream.write_all(&[byte]));
                }
            }
            Err(_) => break,
        }
    }
    String::from_utf8_lossy(&answer).into_owned()
}

/// Starts a server that gives clients a time.
fn serve(data: &Path, timeout: Duration) -> Server {
    let mut command = highwater(data, NOWHERE, &["serve"]);
    command.env("HIGHWATER_API__REQUEST_TIMEOUT_S", timeout.as_secs().to_string());
    Server::ready(command)
}

/// Returns how many keys a server has.
fn keys(data: &Path) -> usize {
    stdout(highwater(data, NOWHERE, &["keys", "list"])).lines().count()
}

/// Proves that each malformed request is refused or not answered, has no effect, and loses its connection; and that valid requests are answered meanwhile.
#[test]
fn malformed_requests_are_refused_and_closed() {
    let dir = tempfile::tempdir().unwrap();
    let data = dir.path().join("data");
    let server = serve(&data, LONG_TIMEOUT);
    let all = malformed();
    assert!(all.len() >= 60);
    for (name, bytes) in all {
        // In one piece, and short ones byte by byte.
        let mut answer = exchange(server.address, &bytes, bytes.len(), None);
        if bytes.len() < 1_000 {
            let apart = exchange(server.address, &bytes, 1, None);
            // If the server notices the error late it closes without an answer, and an answer may be lost if more bytes arrived than were
            // read.
            let silent = apart.is_empty() || answer.is_empty();
            assert!(silent || apart.get(..12) == answer.get(..12), "{name}, byte by byte: {apart}");
            answer = apart;
        }
        let mut answers: Vec<&str> = answer.match_indices("HTTP/1.1 ").filter_map(|(at, _)| answer.get(at + 9..at + 12)).collect();
        if name.contains("behind a good request") {
            assert_eq!(answers.remove(0), "200", "{name}");
        }
        assert!(answers.iter().all(|status| status.starts_with('4')) && answers.len() <= 1, "{name}: {answer}");
        assert_eq!(server.get("/healthz", "").unwrap().0, 200, "after {name}");
    }

    // Unusual but valid requests are accepted.
    assert_eq!(keys(&data), 0, "a malformed request had an effect");
    let plain = [
        post("Content-Length: 25\r\nContent-Length: 25\r\nConnection: close", JSON),
        post("Transfer-Encoding: chunked\r\nConnection: close", &format!("19;x=y\r\n{JSON}\r\n0\r\nX: y\r\n\r\n")),
    ];
    for bytes in plain {
        assert!(exchange(server.address, &bytes, 1, None).starts_with("HTTP/1.1 201"));
    }
    assert_eq!(keys(&data), 2);
}

/// Proves that requests which come byte by byte end when their time is over, not earlier, and have no effect.
#[test]
fn slow_requests_end_in_time() {
    let dir = tempfile::tempdir().unwrap();
    let data = dir.path().join("data");
    let server = serve(&data, TIMEOUT);
    let slow = [
        ("a slow head", b"GET /healthz HTTP/1.1\r\nHost: a\r\nX: ".to_vec()),
        ("a slow length", post("Content-Length: 2000", "{")),
        ("slow chunks", chunked("7d0\r\n{")),
        ("silence", Vec::new()),
    ];
    thread::scope(|scope| {
        for (name, bytes) in slow {
            let address = server.address;
            scope.spawn(move || {
                let started = Instant::now();
                let answer = exchange(address, &bytes, bytes.len().max(1), (name != "silence").then_some(b'a'));
                assert!(answer.is_empty() || answer.starts_with("HTTP/1.1 4"), "{name}: {answer}");
                assert!(started.elapsed() >= TIMEOUT, "{name} was closed too early");
            });
        }
    });
    wait_for("an answer after slow requests", || (server.get("/healthz", "")?.0 == 200).then_some(()));
    assert_eq!(keys(&data), 0, "a slow request had an effect");
}
