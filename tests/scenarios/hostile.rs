//! Hostile load: whether a well-behaved reader is served while many connections waste the server's time, connection slots and memory.
//!
//! `HOSTILE_CONNECTIONS` sets the number of connections of each kind, `HOSTILE_KINDS` names the kinds (comma-separated), and
//! `HOSTILE_READS` sets the number of reads. Each kind prints a line of figures. Times and memory are asserted only for an optimised binary
//! (`HIGHWATER_BIN`).

use std::net::{Ipv4Addr, SocketAddr};
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::{Duration, Instant};

use serde_json::json;
use tokio::task::JoinSet;

use crate::commands::NOWHERE;
use crate::connection::Connection;
use crate::demo_history;
use crate::payments::refusing_facilitator::RefusingFacilitator;
use crate::payments::{body, header, payment};
use crate::process::{Server, highwater, is_timed, stdout, wait_for, with_default_call_times};
use crate::random::number;

/// The default number of hostile connections of each kind.
const CONNECTIONS: u64 = 50;
/// The default number of reads by the well-behaved reader.
const READS: u64 = 300;
/// The longest permitted time of a read at the 99th percentile.
const P99_MAX: Duration = Duration::from_millis(50);
/// The largest permitted resident memory of the server, in bytes.
const RESIDENT_BYTES_MAX: u64 = 400_000_000;
/// The interval between two steps of a hostile connection: a byte, a read, a request, or a new connection after the server closed one.
const STEP_INTERVAL: Duration = Duration::from_secs(1);
/// The pause between two reads.
const READ_INTERVAL: Duration = Duration::from_millis(5);
/// The number of reads over one connection.
const READS_PER_CONNECTION: u64 = 10;
/// How long a read may wait for an answer before the test fails.
const READ_TIME_MAX: Duration = Duration::from_secs(60);
/// The time budget of each read; reads beyond the sum count as failed. A debug binary next to other tests gets five times as long.
const READ_TIME_BUDGET: Duration = Duration::from_millis(200);
/// Hostile connections from one address. It is small, so that limits by address are not the only defence under test.
const CONNECTIONS_PER_ADDRESS: u64 = 20;
/// The length of an unknown path, in bytes: near the largest head that the server reads.
const PATH_BYTES: usize = 30_000;
/// The receive buffer of a slow reader and the size of each of its reads, in bytes.
const SLOW_BUFFER_BYTES: u32 = 4_096;
const SLOW_READ_BYTES: usize = 512;
/// The number of requests that a slow reader sends before it reads.
const SLOW_REQUESTS: usize = 8;

/// What a hostile connection does.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Kind {
    /// Sends nothing.
    Idle,
    /// Sends the head of a request byte by byte.
    SlowHeaders,
    /// Asks for a large answer several times and reads it slowly.
    SlowReading,
    /// Asks for long paths that do not exist.
    LargePaths,
    /// Sends payments that cannot be settled, each with a valid signature of its own.
    ForgedPayments,
    /// Sends keys that were never issued.
    WrongKeys,
}

impl Kind {
    const ALL: [(&'static str, Self); 6] = [
        ("idle", Self::Idle),
        ("slow-headers", Self::SlowHeaders),
        ("slow-reading", Self::SlowReading),
        ("large-paths", Self::LargePaths),
        ("forged-payments", Self::ForgedPayments),
        ("wrong-keys", Self::WrongKeys),
    ];
}

/// The shared state of all hostile connections of a kind.
struct Attack {
    kind: Kind,
    server: SocketAddr,
    /// The request for a large answer, as slow readers send it.
    large: Vec<u8>,
    /// Connections that were opened, and those that the server refused or closed.
    opened: AtomicU64,
    closed: AtomicU64,
    /// Answers, and those of them with status 429.
    answered: AtomicU64,
    limited: AtomicU64,
}

impl Attack {
    /// Runs one hostile connection and opens it again when the server closes it, until the task is aborted.
    async fn run(self: Arc<Self>, number: u64) {
        let [_, _, high, low] = u32::try_from(number / CONNECTIONS_PER_ADDRESS + 2).unwrap().to_be_bytes();
        let (from, mut turn) = (Ipv4Addr::new(127, 0, high + 1, low), 0);
        // Spreads the steps of the connections over the interval.
        let mut pause = STEP_INTERVAL.mul_f64(f64::from(u32::try_from(number % 1_000).unwrap()) / 1_000.0);
        loop {
            tokio::time::sleep(pause).await;
            pause = STEP_INTERVAL;
            let buffer = if self.kind == Kind::SlowReading { SLOW_BUFFER_BYTES } else { 0 };
            if let Ok(mut connection) = Connection::open(from, self.server, buffer).await {
                self.opened.fetch_add(1, Ordering::Relaxed);
                // Any error means that the server closed the connection.
                drop(self.abuse(&mut connection, number, &mut turn).await);
            }
            self.closed.fetch_add(1, Ordering::Relaxed);
        }
    }

    /// Abuses a connection in the way of this kind until the server closes it.
    async fn abuse(&self, connection: &mut Connection, number: u64, turn: &mut u64) -> std::io::Result<()> {
        match self.kind {
            Kind::Idle => while !connection.read(1_024).await?.is_empty() {},
            Kind::SlowHeaders => {
                connection.send(b"GET /healthz HTTP/1.1\r\nHost: a\r\nX-Slow: ").await?;
                loop {
                    connection.send(b"a").await?;
                    tokio::time::sleep(STEP_INTERVAL).await;
                }
            }
            Kind::SlowReading => {
                for _ in 0..SLOW_REQUESTS {
                    connection.send(&self.large).await?;
                }
                while !connection.read(SLOW_READ_BYTES).await?.is_empty() {
                    tokio::time::sleep(STEP_INTERVAL).await;
                }
            }
            Kind::LargePaths | Kind::ForgedPayments | Kind::WrongKeys => loop {
                *turn += 1;
                connection.send(&self.request(number, *turn)).await?;
                let Some(answer) = connection.answer(false).await? else { break };
                self.answered.fetch_add(1, Ordering::Relaxed);
                self.limited.fetch_add(u64::from(answer.status == 429), Ordering::Relaxed);
                assert!(answer.status < 500 || answer.status == 503, "{:?}: {}", self.kind, answer.head());
                assert!(answer.status >= 400, "{:?} is refused: {}", self.kind, answer.head());
                tokio::time::sleep(STEP_INTERVAL).await;
            },
        }
        Ok(())
    }

    /// Returns a hostile request; no two are the same.
    fn request(&self, number: u64, turn: u64) -> Vec<u8> {
        let host = "Host: 127.0.0.1\r\n";
        match self.kind {
            Kind::LargePaths => {
                let path = format!("recalls/api/recals-{number}-{turn}-");
                format!("GET /{path:x<PATH_BYTES$} HTTP/1.1\r\n{host}\r\n").into_bytes()
            }
            Kind::ForgedPayments => {
                let (paid, body) = (header(&payment(number * 1_000_000 + turn)), body(&format!("agent-{number}"), turn));
                let length = body.len();
                let head =
                    format!("POST /receipts/v1/issue HTTP/1.1\r\n{host}Content-Type: application/json\r\nContent-Length: {length}\r\n");
                format!("{head}X-PAYMENT: {paid}\r\n\r\n{body}").into_bytes()
            }
            _ => {
                let key = format!("hw_live_{number:015}{turn:015}000000");
                format!("GET /recalls/api/recalls?limit=1 HTTP/1.1\r\n{host}X-API-Key: {key}\r\n\r\n").into_bytes()
            }
        }
    }
}

/// The results of the well-behaved reader.
struct HonestReader {
    times: Vec<Duration>,
    /// Reads that were not answered with 200, or not made within the time budget.
    failed: u64,
}

impl HonestReader {
    /// Makes cheap reads and measures them.
    async fn read(server: SocketAddr, key: &str, reads: u64) -> Self {
        let request = format!("GET /recalls/api/recalls?limit=5 HTTP/1.1\r\nHost: 127.0.0.1\r\nX-API-Key: {key}\r\n\r\n").into_bytes();
        let mut honest = Self { times: Vec::new(), failed: 0 };
        let (mut connection, since) = (None, Instant::now());
        let time_max = READ_TIME_BUDGET * u32::try_from(reads).unwrap() * if is_timed() { 1 } else { 5 };
        for number in 0..reads {
            if since.elapsed() > time_max {
                honest.failed += reads - number;
                break;
            }
            if number % READS_PER_CONNECTION == 0 {
                connection = None;
            }
            let started = Instant::now();
            let reading = async {
                let mut open = match connection.take() {
                    Some(open) => open,
                    None => Connection::open(Ipv4Addr::LOCALHOST, server, 0).await?,
                };
                open.send(&request).await?;
                let answer = open.answer(false).await?;
                Ok::<_, std::io::Error>((open, answer))
            };
            match tokio::time::timeout(READ_TIME_MAX, reading).await {
                Ok(Ok((open, Some(answer)))) if answer.status == 200 => connection = Some(open),
                _ => honest.failed += 1,
            }
            honest.times.push(started.elapsed());
            tokio::time::sleep(READ_INTERVAL).await;
        }
        honest.times.sort();
        honest
    }

    /// Returns the time within which the given share of the reads, in thousandths, was answered.
    fn within(&self, thousandths: usize) -> Duration {
        self.times[(self.times.len() * thousandths / 1_000).min(self.times.len() - 1)]
    }
}

fn milliseconds(time: Duration) -> String {
    format!("{:.1}", time.as_secs_f64() * 1_000.0)
}

/// Runs one kind of load with a well-behaved reader; returns its figures and whether they are within the limits.
fn load(server: &Server, name: &str, kind: Kind, key: &str) -> (String, bool) {
    let connections = number("HOSTILE_CONNECTIONS").unwrap_or(CONNECTIONS);
    let reads = number("HOSTILE_READS").unwrap_or(READS);
    let target = format!("/recalls/v1/changes?start=earliest&limit=200&key={key}");
    let large = format!("GET {target} HTTP/1.1\r\nHost: 127.0.0.1\r\n\r\n").into_bytes();
    let counts = || AtomicU64::new(0);
    let (opened, closed, answered, limited) = (counts(), counts(), counts(), counts());
    let attack = Arc::new(Attack { kind, server: server.address, large, opened, closed, answered, limited });
    let (started, before) = (Instant::now(), server.resident_bytes());
    // The hostile connections have their own thread, so that they do not distort the reader's times.
    let runtime = tokio::runtime::Builder::new_multi_thread().worker_threads(1).enable_all().build().unwrap();
    let mut hostile = JoinSet::new();
    for number in 0..connections {
        hostile.spawn_on(Arc::clone(&attack).run(number), runtime.handle());
    }
    wait_for("the hostile connections", || {
        (attack.opened.load(Ordering::Relaxed) + attack.closed.load(Ordering::Relaxed) >= connections).then_some(())
    });
    let honest = tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap();
    let mut resident = before;
    let honest = honest.block_on(async {
        let mut reading = std::pin::pin!(HonestReader::read(server.address, key, reads));
        loop {
            tokio::select! {
                honest = &mut reading => return honest,
                () = tokio::time::sleep(STEP_INTERVAL) => resident = resident.max(server.resident_bytes()),
            }
        }
    });
    resident = resident.max(server.resident_bytes());
    // A task that ended by itself got an answer that no hostile request may get.
    runtime.block_on(async {
        hostile.abort_all();
        while let Some(ended) = hostile.join_next().await {
            if let Err(error) = ended {
                assert!(error.is_cancelled(), "{name}: {error}");
            }
        }
    });
    let count_of = |count: &AtomicU64| count.load(Ordering::Relaxed);
    let is_served = honest.failed == 0;
    let is_good = is_served && (!is_timed() || honest.within(990) < P99_MAX && resident < RESIDENT_BYTES_MAX);
    let figures = format!(
        "hostile kind={name} connections={connections} reads={reads} p50_ms={} p99_ms={} max_ms={} rss_mb={} failed={} opened={} closed={} answered={} \
         limited={} seconds={:.0} verdict={}",
        milliseconds(honest.within(500)),
        milliseconds(honest.within(990)),
        milliseconds(honest.within(1_000)),
        resident / 1_000_000,
        honest.failed,
        count_of(&attack.opened),
        count_of(&attack.closed),
        count_of(&attack.answered),
        count_of(&attack.limited),
        started.elapsed().as_secs_f64(),
        match (is_good, is_timed()) {
            (true, true) => "pass",
            (true, false) => "served (not optimised: times and memory are not judged)",
            (false, _) => "fail",
        },
    );
    (figures, is_good)
}

/// Proves that a well-behaved reader gets 200 for every read while many connections of each hostile kind are open; and, with an optimised
/// binary, that answers are fast and the server's memory stays within its limit.
#[test]
fn honest_reader_is_served_under_hostile_load() {
    let dir = tempfile::tempdir().unwrap();
    let data = demo_history::copy_to(dir.path());
    let facilitator = RefusingFacilitator::open();
    let mut command = highwater(&data, NOWHERE, demo_history::STILL);
    // Limits of time are a part of the defence.
    facilitator.configure(with_default_call_times(&mut command));
    command.env("HIGHWATER_TIERS__FLEET_PLUS__CALLS_PER_DAY", "1000000000");
    let server = Server::ready(command);
    let key = stdout(highwater(&data, NOWHERE, &["keys", "mint", "--tier", "fleet_plus"])).trim().to_owned();
    let page = server.json("/recalls/v1/changes?start=earliest&limit=200", &key);
    assert!(page.to_string().len() > 64 * 1_024, "the answer for slow readers is too small");
    assert_eq!(server.send("GET", "/recalls/api/recalls?limit=5", &key, "").status, 200);
    assert_eq!(server.send("POST", "/receipts/v1/issue", "", &json!({}).to_string()).status, 402, "payments are not accepted");
    let wanted = std::env::var("HOSTILE_KINDS").unwrap_or_default();
    let chosen = |name: &str| wanted.is_empty() || wanted.split(',').any(|other| other == name);
    let kinds: Vec<(&str, Kind)> = Kind::ALL.into_iter().filter(|(name, _)| chosen(name)).collect();
    assert!(!kinds.is_empty(), "HOSTILE_KINDS={wanted} names no kind");
    let mut bad = Vec::new();
    for (name, kind) in kinds {
        let (figures, is_good) = load(&server, name, kind, &key);
        println!("{figures}");
        if !is_good {
            bad.push(name);
        }
    }
    assert!(bad.is_empty(), "{bad:?}");
    assert_eq!(server.get("/healthz", "").unwrap().0, 200);
    assert_eq!(server.terminate().code(), Some(0));
}
