//! Following a feed over HTTP: server-sent events that are interrupted and resumed, and long polls.

use access::Access;
use operation::context::Part;
use std::io::{BufRead, BufReader, Read, Write};
use std::net::{SocketAddr, TcpStream};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant};

use event_log::EventLog;
use schemas::facts::FactData;
use schemas::facts::awards::{AwardFact, kind};
use schemas::views::accounts::Tier;
use serde_json::{Value, json};

use crate::api::{HttpApi, LocalApi, Writer};
use crate::child::HANG_TIMEOUT;
use crate::engine::{fixed_clock, moving_clock};
use crate::process::ask;
use crate::random::{Random, number};

/// How often the reader is killed by default.
const KILLS: u64 = 150;
/// The positions in a row after which a stream counts as one that does not end. The server sends one every 20 seconds without a change.
const POSITIONS_MAX: usize = 15;
/// After how long without a byte a reader cuts its connection.
const PAUSE: Duration = Duration::from_millis(50);
/// The most bytes that a reader takes before it cuts its connection: a few changes.
const CUT_BYTES_MAX: usize = 3_000;
/// How often the connection of a reader is cut at some byte by default.
const BYTE_CUTS: u64 = 25;
const AWARDS: u64 = 50;

/// Makes a fact with a unique state of an award.
fn fact(writer: &mut Writer, random: &mut Random, n: u64) -> event_log::Append {
    let award = format!("CONT_AWD_{:03}_8000_-NONE-_-NONE-", random.below(AWARDS));
    let data = FactData::Award(Box::new(AwardFact {
        stream: "usaspending.awards".to_owned(),
        kind: kind::AWARD.to_owned(),
        naics: random.pick(&["541511", "336411"]).to_owned(),
        amount_cents: Some(i64::try_from(n).unwrap()),
        award_id: award.clone(),
        ..AwardFact::default()
    }));
    writer.observe(&format!("usaspending.awards/{award}"), &data, 0)
}

/// An event of a stream.
#[derive(Debug, Default)]
struct Event {
    /// The name; empty for a change.
    name: String,
    id: String,
    data: Value,
    /// Whether a line of the event sets the time after which a client reconnects.
    has_retry: bool,
}

impl Event {
    /// Takes a line.
    fn add(&mut self, line: &str) {
        match line.split_once(": ") {
            Some(("event", value)) => value.clone_into(&mut self.name),
            Some(("id", value)) => value.clone_into(&mut self.id),
            Some(("data", value)) => self.data = serde_json::from_str(value).unwrap(),
            Some(("retry", _)) => self.has_retry = true,
            _ => {}
        }
    }
}

/// Sends a request for a stream after the last event that the reader has, in HTTP/1.0, which has no chunks.
fn request(address: SocketAddr, path: &str, key: &str, last: &str) -> TcpStream {
    let mut stream = TcpStream::connect(address).unwrap();
    stream.set_read_timeout(Some(HANG_TIMEOUT)).unwrap();
    let last = if last.is_empty() { String::new() } else { format!("last-event-id: {last}\r\n") };
    let head = format!("GET {path} HTTP/1.0\r\nhost: {address}\r\naccept: text/event-stream\r\nx-api-key: {key}\r\n{last}\r\n");
    stream.write_all(head.as_bytes()).unwrap();
    stream
}

/// An event stream over its own connection, which is closed when this is dropped.
struct Events(BufReader<TcpStream>);

impl Events {
    /// Opens a stream after the last event that the reader has; returns the status and the lines of the head.
    fn open(address: SocketAddr, path: &str, key: &str, last: &str) -> (u16, String, Self) {
        let (mut reader, mut head) = (BufReader::new(request(address, path, key, last)), String::new());
        while !head.ends_with("\r\n\r\n") && reader.read_line(&mut head).unwrap() > 0 {}
        (head.split(' ').nth(1).unwrap().parse().unwrap(), head, Self(reader))
    }

    /// Returns the next event of any kind; `None` at the end of the stream.
    fn next_of_any(&mut self) -> Option<Event> {
        let mut event = Event::default();
        loop {
            let mut line = String::new();
            if self.0.read_line(&mut line).unwrap() == 0 {
                return None;
            }
            if line == "\n" {
                return Some(event);
            }
            event.add(line.trim_end());
        }
    }

    /// Returns the next change; `None` at the end of the stream. Panics if neither comes.
    fn next(&mut self) -> Option<Event> {
        for _ in 0..POSITIONS_MAX {
            match self.next_of_any()? {
                event if event.name.is_empty() => return Some(event),
                event => assert!(["position", "reset", "end"].contains(&event.name.as_str()), "{event:?}"),
            }
        }
        panic!("neither a change nor the end of the stream came after {POSITIONS_MAX} positions");
    }

    /// Returns the event that ends the stream, after any changes and positions; panics if it is not the last one.
    fn last(&mut self) -> Event {
        loop {
            let event = self.next_of_any().unwrap();
            if matches!(event.name.as_str(), "reset" | "end") {
                assert!(self.next_of_any().is_none());
                return event;
            }
        }
    }
}

/// A reader as a browser is one: it takes events that arrived whole, and keeps the id of the last one.
#[derive(Default)]
struct CutReader {
    last: String,
    seqs: Vec<u64>,
}

impl CutReader {
    /// Reads at most so many bytes of a stream, or what arrives before a pause, and cuts the connection.
    fn read(&mut self, address: SocketAddr, path: &str, key: &str, bytes_max: usize) {
        let mut stream = request(address, path, key, &self.last);
        let (mut head, mut byte) = (Vec::new(), [0]);
        while !head.ends_with(b"\r\n\r\n") {
            stream.read_exact(&mut byte).unwrap();
            head.extend(byte);
        }
        assert!(head.starts_with(b"HTTP/1.0 200"), "{}", String::from_utf8_lossy(&head));
        stream.set_read_timeout(Some(PAUSE)).unwrap();
        let mut read = Vec::new();
        while read.len() < bytes_max && stream.read_exact(&mut byte).is_ok() {
            read.extend(byte);
        }
        let read = String::from_utf8(read).unwrap();
        let whole = read.rfind("\n\n").map_or("", |end| &read[..end]);
        for (n, block) in whole.split("\n\n").filter(|block| !block.is_empty()).enumerate() {
            let mut event = Event::default();
            block.lines().for_each(|line| event.add(line));
            assert!(!event.id.is_empty(), "an event has no id: {block}");
            assert!(n > 0 || event.name == "position", "the first event is another one: {block}");
            self.last = event.id;
            if event.name.is_empty() {
                self.seqs.push(event.data["seq"].as_u64().unwrap());
            }
        }
    }
}

/// Appends facts in small batches until it is stopped; returns their number.
async fn append_until(log: Arc<dyn EventLog>, stop: Arc<AtomicBool>) -> u64 {
    let (mut writer, mut random, mut n) = (Writer::default(), Random(81), 0);
    while !stop.load(Ordering::Relaxed) {
        let batch = (0..=random.below(6)).map(|_| {
            n += 1;
            fact(&mut writer, &mut random, n)
        });
        let batch = batch.collect();
        log.append(batch).await.unwrap();
        tokio::time::sleep(Duration::from_millis(2)).await;
    }
    n
}

/// Proves that a reader of events that is killed repeatedly, and resumes each time with the id of its last event, gets each change once and
/// in order, with and without a filter, while changes are added; and that a stream ends when the server stops.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn resumed_streams_miss_and_repeat_nothing() {
    let dir = tempfile::tempdir().unwrap();
    let mut api = LocalApi::open_with(dir.path(), moving_clock(), &["awards"]).await;
    let projector = Arc::clone(&api.engine.projector);
    api.engine.start(projector, "projector");
    let http_api = HttpApi::start(&api.engine, moving_clock(), None);
    let (address, key) = (http_api.address, http_api.key(Tier::FleetPlus).await);
    let stop = Arc::new(AtomicBool::new(false));
    let writing = tokio::spawn(append_until(Arc::clone(&api.engine.log), Arc::clone(&stop)));
    let cuts = number("STREAM_CUTS").unwrap_or(KILLS);
    let readers = ["/awards/v1/changes?start=earliest", "/awards/v1/whats_changed_since?start=earliest&naics=54&limit=7"].map(|path| {
        let key = key.clone();
        tokio::task::spawn_blocking(move || {
            let (mut random, mut last, mut got) = (Random(82), String::new(), Vec::new());
            for _ in 0..cuts {
                let (status, head, mut events) = Events::open(address, path, &key, &last);
                assert_eq!(status, 200, "{head}");
                assert!(head.to_lowercase().contains("content-type: text/event-stream; charset=utf-8"), "{head}");
                for _ in 0..random.below(12) {
                    let event = events.next().unwrap();
                    got.push(event.data);
                    last = event.id;
                }
            }
            (path, key, last, got)
        })
    });
    let mut ends = Vec::new();
    for reader in readers {
        ends.push(reader.await.unwrap());
    }
    stop.store(true, Ordering::Relaxed);
    // No two facts of an award are alike, so each is a change.
    let written = writing.await.unwrap();
    let streams = tokio::task::spawn_blocking(move || {
        let finish = |(path, key, last, mut got): (&str, String, String, Vec<Value>)| {
            let expected = read_on(address, path, &key, written);
            let (_, _, mut events) = Events::open(address, path, &key, &last);
            while got.len() < expected.len() {
                got.push(events.next().unwrap().data);
            }
            assert_eq!(got, expected, "{path}");
            (expected.len(), events)
        };
        ends.into_iter().map(finish).collect::<Vec<_>>()
    })
    .await
    .unwrap();
    assert_eq!(u64::try_from(streams[0].0).unwrap(), written);
    assert!(streams[1].0 > 0 && streams[1].0 < streams[0].0);

    // Open streams get an event at the end.
    let ended = tokio::task::spawn_blocking(move || {
        for (_, mut events) in streams {
            let end = events.last();
            assert_eq!((end.name.as_str(), &end.data["reason"]), ("end", &json!("server-stopping")));
            assert_eq!(end.data["cursor"], end.id);
        }
    });
    http_api.stop().await;
    ended.await.unwrap();
    api.close().await;
}

/// Proves that a reader whose connection is cut at any byte, also before the first change, gets each change once: from `latest`, from `earliest` and from a
/// cursor, with and without a filter, while changes are added between its connections.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn cut_readers_miss_and_repeat_nothing() {
    const BEFORE: u64 = 5;
    let dir = tempfile::tempdir().unwrap();
    let mut api = LocalApi::open_with(dir.path(), moving_clock(), &["awards"]).await;
    let projector = Arc::clone(&api.engine.projector);
    api.engine.start(projector, "projector");
    let http_api = HttpApi::start(&api.engine, moving_clock(), None);
    let (address, key) = (http_api.address, http_api.key(Tier::FleetPlus).await);
    let (mut writer, mut random) = (Writer::default(), Random(86));
    api.append((1..=BEFORE).map(|n| fact(&mut writer, &mut random, n)).collect()).await;
    api.decide().await;
    let (mut readers, mut n) = (Vec::new(), BEFORE);
    for feed in ["changes", "whats_changed_since"] {
        let first = format!("/awards/v1/{feed}?start=earliest&limit=2");
        let page: Value = serde_json::from_slice(&ask(address, &first, &key).unwrap().body).unwrap();
        let cursor = page["cursor"].as_str().unwrap();
        let starts = [("start=latest".to_owned(), BEFORE), ("start=earliest".to_owned(), 0), (format!("cursor={cursor}"), 2)];
        readers.extend(starts.map(|(start, after)| (format!("/awards/v1/{feed}?{start}&limit=3"), after, CutReader::default())));
    }
    // Cut before any change: `latest` has an id all the same.
    for (path, after, reader) in &mut readers {
        let bytes_max = if *after == BEFORE { usize::MAX } else { 0 };
        reader.read(address, path, &key, bytes_max);
        assert!(reader.seqs.is_empty() && (*after != BEFORE || !reader.last.is_empty()), "{path}");
    }
    for _ in 0..number("STREAM_BYTE_CUTS").unwrap_or(BYTE_CUTS) {
        let more = random.below(3);
        api.append((0..more).map(|more| fact(&mut writer, &mut random, n + more + 1)).collect()).await;
        n += more;
        for (path, _, reader) in &mut readers {
            reader.read(address, path, &key, usize::try_from(random.below(CUT_BYTES_MAX as u64)).unwrap());
        }
    }
    api.decide().await;
    for (path, after, mut reader) in readers {
        let since = Instant::now();
        while reader.seqs.last() != Some(&n) {
            assert!(since.elapsed() < HANG_TIMEOUT, "{path}: {:?} of {n}", reader.seqs);
            reader.read(address, &path, &key, usize::MAX);
        }
        assert_eq!(reader.seqs, (after + 1..=n).collect::<Vec<_>>(), "{path}");
    }
    http_api.stop().await;
    api.close().await;
}

/// Proves that a stream that cannot continue from its cursor is answered so that a browser survives, without that cursor, and JSON with a status; that a
/// problem which no later attempt overcomes has its status in both; and which headers a stream has.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn refused_streams_say_why() {
    let dir = tempfile::tempdir().unwrap();
    let mut api = LocalApi::open_with(dir.path(), moving_clock(), &["awards"]).await;
    let projector = Arc::clone(&api.engine.projector);
    api.engine.start(projector, "projector");
    let http_api = HttpApi::start(&api.engine, moving_clock(), None);
    let (address, key) = (http_api.address, http_api.key(Tier::FleetPlus).await);
    let page = ask(address, "/awards/v1/whats_changed_since?start=latest&naics=54", &key).unwrap();
    let of_filter = serde_json::from_slice::<Value>(&page.body).unwrap()["cursor"].as_str().unwrap().to_owned();
    for (path, cursor, status, code) in [
        ("/awards/v1/changes", "nonsense", 400, "cursor-invalid"),
        ("/awards/v1/whats_changed_since?naics=61", of_filter.as_str(), 409, "filter-changed"),
    ] {
        let (stream_status, head, mut events) = Events::open(address, path, &key, cursor);
        let reset = events.last();
        assert_eq!(
            (stream_status, reset.name.as_str(), &reset.data["code"], &reset.data["cursor"]),
            (200, "reset", &json!(code), &Value::Null)
        );
        assert!(reset.has_retry && head.contains("text/event-stream"), "{head}");
        let joint = if path.contains('?') { '&' } else { '?' };
        assert_eq!(ask(address, &format!("{path}{joint}cursor={cursor}"), &key).unwrap().status, status);
    }
    assert_eq!(Events::open(address, "/awards/v1/changes?limit=0", &key, "").0, 400);
    assert_eq!(Events::open(address, "/awards/v1/changes", "hw_unknown", "").0, 401);
    let (_, head, _) = Events::open(address, "/awards/v1/changes?start=latest", &key, "");
    let head = head.to_lowercase();
    assert!(head.contains("x-accel-buffering: no") && head.contains("cache-control: no-store, no-transform"), "{head}");
    http_api.stop().await;
    api.close().await;
}

/// Reads the whole feed by pages, up to a change that may not be there yet.
fn read_on(address: SocketAddr, path: &str, key: &str, upto: u64) -> Vec<Value> {
    let (mut out, mut asked) = (Vec::new(), path.replace("&limit=7", ""));
    let bare = asked.replace("start=earliest", "");
    loop {
        let answer = ask(address, &asked, key).unwrap();
        let page: Value = serde_json::from_slice(&answer.body).unwrap();
        assert_eq!(answer.status, 200, "{page}");
        out.extend(page["changes"].as_array().unwrap().iter().cloned());
        if page["to"].as_u64().unwrap() >= upto {
            return out;
        }
        asked = format!("{bare}&limit=200&wait=1&cursor={}", page["cursor"].as_str().unwrap());
        asked = asked.replace("?&", "?");
    }
}

/// Proves that a reader that waits at the end of a feed gets a change soon after it is appended, long before the wait expires, and that a
/// wait without changes ends with an empty answer.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn long_poll_returns_when_a_change_is_appended() {
    let dir = tempfile::tempdir().unwrap();
    let mut api = LocalApi::open_with(dir.path(), moving_clock(), &["awards"]).await;
    let projector = Arc::clone(&api.engine.projector);
    api.engine.start(projector, "projector");
    let http_api = HttpApi::start(&api.engine, moving_clock(), None);
    let (address, key) = (http_api.address, http_api.key(Tier::Pro).await);
    let (mut writer, mut random) = (Writer::default(), Random(83));
    let poll = |cursor: &str, wait: u64| {
        let at = if cursor.is_empty() { "start=earliest".to_owned() } else { format!("cursor={cursor}") };
        let (path, key) = (format!("/awards/v1/whats_changed_since?wait={wait}&{at}"), key.clone());
        tokio::task::spawn_blocking(move || {
            let (started, answer) = (Instant::now(), ask(address, &path, &key).unwrap());
            let page: Value = serde_json::from_slice(&answer.body).unwrap();
            assert_eq!(answer.status, 200, "{page}");
            (page, started.elapsed())
        })
    };
    let (mut cursor, mut times) = (String::new(), Vec::new());
    for n in 1..=20 {
        let waiting = poll(&cursor, 30);
        api.append(vec![fact(&mut writer, &mut random, n)]).await;
        let (page, took) = waiting.await.unwrap();
        assert_eq!((&page["from"], &page["to"], page["changes"].as_array().unwrap().len()), (&n.into(), &n.into(), 1), "{page}");
        times.push(took);
        page["cursor"].as_str().unwrap().clone_into(&mut cursor);
    }
    // A busy machine can delay some of them.
    times.sort_unstable();
    assert!(times[times.len() / 2] < Duration::from_secs(20), "{times:?}");
    let (page, took) = poll(&cursor, 1).await.unwrap();
    assert_eq!(page["changes"].as_array().unwrap().len(), 0);
    assert!(took >= Duration::from_secs(1));
    http_api.stop().await;
    api.close().await;
}

/// Proves that a stream costs as much as polling: each page counts as one call and has the same limit of rows, waiting is free, and the
/// stream ends when the daily calls are used up.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn stream_pages_count_as_calls() {
    let dir = tempfile::tempdir().unwrap();
    // No day ends, with its calls, while the test runs.
    let mut api = LocalApi::open_with(dir.path(), fixed_clock(), &["awards"]).await;
    let projector = Arc::clone(&api.engine.projector);
    api.engine.start(projector, "projector");
    let http_api = HttpApi::start(&api.engine, fixed_clock(), None);
    let (address, key) = (http_api.address, http_api.key(Tier::Free).await);
    let limits = http_api.context.settings.tiers.of(Tier::Free);
    let (mut writer, mut random) = (Writer::default(), Random(84));
    let rows = limits.rows_max as u64 * 2 + 1;
    api.append((1..=rows).map(|n| fact(&mut writer, &mut random, n)).collect()).await;
    api.decide().await;
    let path = "/awards/v1/changes?start=earliest";
    let remaining = || {
        let answer = ask(address, "/awards/v1/changes?limit=1", &key).unwrap();
        let rest = answer.header("ratelimit").split("r=").nth(1).and_then(|rest| rest.split(';').next()).map(str::to_owned);
        (answer.status, rest.map(|rest| rest.parse::<i64>().unwrap()))
    };
    let (_, _, mut events) = Events::open(address, path, &key, "");
    for _ in 0..rows {
        events.next().unwrap();
    }
    // Three pages and the call that reads the limit.
    let (status, mut rest) = remaining();
    assert_eq!((status, rest), (200, Some(limits.day.calls_max - 4)));
    let mut n = rows;
    let reset = loop {
        n += 1;
        api.append(vec![fact(&mut writer, &mut random, n)]).await;
        let event = loop {
            let event = events.next_of_any().unwrap();
            if event.name != "position" {
                break event;
            }
        };
        if event.name == "reset" {
            break event;
        }
        rest = rest.map(|rest| rest - 1);
        assert!(rest >= Some(0), "there were more pages than calls");
    };
    // A browser survives the end: it learns why, keeps the id that it has, and comes back when there are calls again.
    assert_eq!((&reset.data["code"], reset.id.as_str(), reset.has_retry), (&json!("rate-limited"), "", true));
    assert!(reset.data["cursor"].is_string() && events.next_of_any().is_none());
    assert_eq!(rest, Some(0));
    assert_eq!(remaining().0, 429);
    let (status, _, mut events) = Events::open(address, path, &key, "");
    let reset = events.last();
    assert_eq!((status, &reset.data["code"], &reset.data["status"]), (200, &json!("rate-limited"), &json!(429)));
    http_api.stop().await;
    api.close().await;
}

/// Proves that a revoked key ends the streams and long polls that are open under it, before they would end by themselves, also at another node.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn revoked_key_ends_its_streams_and_long_polls() {
    let dir = tempfile::tempdir().unwrap();
    let mut api = LocalApi::open_with(dir.path(), moving_clock(), &["awards"]).await;
    let projector = Arc::clone(&api.engine.projector);
    api.engine.start(projector, "projector");
    let nodes = [(); 2].map(|()| HttpApi::start(&api.engine, moving_clock(), None));
    let own = &nodes[0].context;
    let minted = Access::of(own).mint(own, Tier::Pro, "").await.unwrap();
    let other_key = nodes[0].key(Tier::Pro).await;
    let key = minted.key.reveal().to_owned();
    let mut waiting = Vec::new();
    for address in nodes.each_ref().map(|node| node.address) {
        let (status, _, mut events) = Events::open(address, "/awards/v1/changes", &key, "");
        assert_eq!(status, 200);
        waiting.push(tokio::task::spawn_blocking(move || events.next().is_none()));
        let poll = get_in_thread(address, "/awards/v1/changes?start=latest&wait=30", &key);
        waiting.push(tokio::task::spawn_blocking(move || poll.join().unwrap() == 401));
    }
    let (status, _, unrelated) = Events::open(nodes[0].address, "/awards/v1/changes", &other_key, "");
    assert_eq!(status, 200);
    Access::of(own).revoke(own, &minted.row.id).await.unwrap();
    // A long poll that ended by itself would be answered with 200, and a stream would continue with comments.
    for waiting in waiting {
        assert!(waiting.await.unwrap());
    }
    // Streams of another key continue.
    api.append(vec![fact(&mut Writer::default(), &mut Random(85), 1)]).await;
    let next = tokio::task::spawn_blocking(move || {
        let mut unrelated = unrelated;
        unrelated.next().is_some()
    });
    assert!(next.await.unwrap());
    for node in nodes {
        node.stop().await;
    }
    api.close().await;
}

/// Sends a request in a separate thread, which returns the status.
fn get_in_thread(address: SocketAddr, path: &'static str, key: &str) -> std::thread::JoinHandle<u16> {
    let key = key.to_owned();
    std::thread::spawn(move || ask(address, path, &key).unwrap().status)
}
