//! Two ingestors or deciders at the same time: there is one chain, and no change is lost or emitted twice.

use std::sync::{Arc, Mutex};
use std::time::Duration;

use event_log::{Append, EventLog, Stored};
use futures_util::future::join;
use projector::decider::Decider;
use projector::heads::Heads;
use projector::runtime::Projector;
use recalls::rules::Recalls;
use schemas::avro;
use schemas::change::Change;
use schemas::clock::Clock;
use schemas::position::LogOffset;
use schemas::topics::{CHANGES_RECALLS, RECALLS as FACTS, Topic};
use serde::de::IgnoredAny;
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::{TcpListener, TcpStream};
use tokio::sync::{oneshot, watch};

use crate::child::within;
use crate::engine::{Engine, RECALL_UPSTREAMS, SimulatedUpstreams, assert_chained, assert_shown_once, fixed_clock, settings};
use crate::expected_changes::Expected;

/// Which answer is held: the prefix of its path, and how many such answers pass first.
struct Hold {
    path: &'static str,
    pass: u32,
    held: Option<oneshot::Sender<()>>,
    release: Option<oneshot::Receiver<()>>,
}

/// Starts a proxy in front of the upstreams that holds one answer until it is released. Returns its address, a signal that the answer is
/// held, and the sender that releases it.
pub(crate) async fn start_holding_proxy(
    upstream: &str,
    path: &'static str,
    pass: u32,
) -> (String, oneshot::Receiver<()>, oneshot::Sender<()>) {
    let (held, is_held) = oneshot::channel();
    let (release, released) = oneshot::channel();
    let hold = Arc::new(Mutex::new(Hold { path, pass, held: Some(held), release: Some(released) }));
    let upstream = upstream.trim_start_matches("http://").to_owned();
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let address = listener.local_addr().unwrap();
    tokio::spawn(async move {
        while let Ok((stream, _)) = listener.accept().await {
            tokio::spawn(relay(stream, upstream.clone(), Arc::clone(&hold)));
        }
    });
    (format!("http://{address}"), is_held, release)
}

async fn relay(mut stream: TcpStream, upstream: String, hold: Arc<Mutex<Hold>>) {
    let mut head = Vec::new();
    while !head.ends_with(b"\r\n\r\n") {
        match stream.read_u8().await {
            Ok(byte) => head.push(byte),
            Err(_) => return,
        }
    }
    let text = String::from_utf8_lossy(&head).to_ascii_lowercase();
    let length = text.lines().find_map(|line| line.strip_prefix("content-length:")?.trim().parse().ok()).unwrap_or(0);
    let mut body = vec![0; length];
    if stream.read_exact(&mut body).await.is_err() {
        return;
    }
    head.truncate(head.len() - 2);
    head.extend_from_slice(b"connection: close\r\n\r\n");
    let mut server = TcpStream::connect(upstream).await.unwrap();
    server.write_all(&[head.as_slice(), &body].concat()).await.unwrap();
    let mut answer = Vec::new();
    server.read_to_end(&mut answer).await.unwrap();
    let wait = {
        let mut hold = hold.lock().unwrap();
        let fits = String::from_utf8_lossy(&head).split(' ').nth(1).is_some_and(|target| target.starts_with(hold.path));
        if fits && hold.pass > 0 {
            hold.pass -= 1;
            None
        } else if fits {
            if let Some(held) = hold.held.take() {
                held.send(()).unwrap();
            }
            hold.release.take()
        } else {
            None
        }
    };
    if let Some(wait) = wait {
        drop(wait.await);
    }
    // The client may be gone by now.
    drop(stream.write_all(&answer).await);
}

/// Proves that an ingestor that is paused during a run, overtaken by another for two whole runs, and then continued appends nothing: there
/// is one chain, each change occurs once, and old data does not reappear.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn overtaken_ingestor_appends_nothing() {
    for (seed, name, path, pass) in
        [(21, "openfda", "/food/", 0), (22, "openfda", "/food/", 1), (23, "fsis", "/fsis/", 0), (24, "nhtsa", "/odi/", 0)]
    {
        let dir = tempfile::tempdir().unwrap();
        let simulated = SimulatedUpstreams::start(seed, 600, fixed_clock()).await;
        let engine = Engine::open_with(dir.path(), fixed_clock(), &["recalls"]).await;
        engine.run_some(RECALL_UPSTREAMS, &simulated.settings()).await;
        let mut expected = Expected::at_first(simulated.sim.current(None));
        let upstream = upstreams::by_name(name).unwrap();

        simulated.sim.advance(25);
        let first = simulated.sim.expected_changes();
        let (address, held, release) = start_holding_proxy(&simulated.base_url, path, pass).await;
        let slow_settings = settings(&address);
        let slow = engine.other_runner(fixed_clock(), "slow");
        let quick = engine.other_runner(Clock::Fixed(fixed_clock().now() + Duration::from_secs(120)), "quick");
        let fixture = async {
            within("the request whose answer is held", held).await.unwrap();
            for stream in upstream.manifest().streams {
                engine.end_lease(stream.name).await;
            }
            for _ in 0..2 {
                for result in quick.sync(upstream, &simulated.settings()).await.unwrap() {
                    result.unwrap();
                }
            }
            simulated.sim.advance(25);
            for _ in 0..2 {
                for result in quick.sync(upstream, &simulated.settings()).await.unwrap() {
                    result.unwrap();
                }
            }
            release.send(()).unwrap();
        };
        let (results, ()) = join(slow.sync(upstream, &slow_settings), fixture).await;
        let overtaken = results.unwrap().iter().filter(|result| matches!(result, Err(ingest::Error::Overtaken { .. }))).count();
        assert_eq!(overtaken, 1, "{name} {path} after {pass}");

        let own = |entries: Vec<simulator::ExpectedChange>| entries.into_iter().filter(|entry| entry.upstream == name).collect::<Vec<_>>();
        expected.take(1, own(first.clone()));
        expected.take(2, own(simulated.sim.expected_changes_after(first.len() as u64)));
        let facts = engine.facts().await;
        expected.assert_facts(&facts);
        engine.wait_projected().await;
        expected.assert_feed(&engine.feed().await, &[]);
        for result in engine.run(name, &simulated.settings()).await {
            assert_eq!(result.unwrap().run.appended, 0, "a further run must append nothing");
        }
        engine.close().await;
    }
}

/// Proves that two ingestors that start at the same time sync an upstream once.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn concurrent_ingestors_make_one_chain() {
    let dir = tempfile::tempdir().unwrap();
    let simulated = SimulatedUpstreams::start(25, 400, fixed_clock()).await;
    let engine = Engine::open_with(dir.path(), fixed_clock(), &["recalls"]).await;
    let upstream = upstreams::by_name("openfda").unwrap();
    let (one, other) = (engine.other_runner(fixed_clock(), "one"), engine.other_runner(fixed_clock(), "other"));
    let play = simulated.settings();
    let (one, other) = join(one.sync(upstream, &play), other.sync(upstream, &play)).await;
    for (one, other) in one.unwrap().into_iter().zip(other.unwrap()) {
        let busy = |result: &Result<_, _>| matches!(result, Err(ingest::Error::Busy { .. } | ingest::Error::Overtaken { .. }));
        assert!(one.is_ok() || busy(&one), "{one:?}");
        assert!(other.is_ok() || busy(&other), "{other:?}");
        assert!(one.is_ok() || other.is_ok());
    }
    let facts = engine.facts().await;
    assert_chained(&facts);
    let fda = simulated.sim.current(None).into_iter().filter(|entry| entry.upstream == "openfda").count();
    assert_eq!(facts.len(), fda);
    engine.close().await;
}

/// Maintains the latest-version index of an engine whose services do not decide. Returns the sender that stops this.
pub(crate) async fn run_heads_only(engine: &Engine) -> watch::Sender<bool> {
    let (stop, stopping) = watch::channel(false);
    let heads = Heads::new(Arc::clone(&engine.log), Arc::clone(&engine.parts.engine), engine.parts.services);
    tokio::spawn(crate::engine::run_heads(heads, stopping));
    stop
}

async fn read_all(engine: &Engine, simulated: &SimulatedUpstreams) {
    for name in crate::engine::RECALL_UPSTREAMS {
        for result in engine.run(name, &simulated.settings()).await {
            result.unwrap();
        }
    }
}

/// Opens two projectors that decide recalls.
async fn two_projectors(engine: &Engine) -> [Projector; 2] {
    let projected = services::selected(|name| name == "recalls").projected;
    let open = async || Projector::open(engine.parts.clone(), &projected).await.unwrap();
    [open().await, open().await]
}

/// Proves that deciders that alternate without knowledge of each other, each continuing from its own position, emit every change once.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn alternating_deciders_emit_every_change_once() {
    let dir = tempfile::tempdir().unwrap();
    let simulated = SimulatedUpstreams::start(26, 900, fixed_clock()).await;
    let engine = Engine::idle_with(dir.path(), fixed_clock(), &["recalls"]).await;
    let stop = run_heads_only(&engine).await;
    let deciders = two_projectors(&engine).await;
    read_all(&engine, &simulated).await;
    let mut expected = Expected::at_first(simulated.sim.current(None));
    for round in 1..=6 {
        deciders[round % 2].service("recalls").unwrap().catch_up().await.unwrap();
        let upto = engine.feed().await.len();
        let known = simulated.sim.expected_changes().len() as u64;
        simulated.sim.advance(10);
        expected.take(round, simulated.sim.expected_changes_after(known));
        read_all(&engine, &simulated).await;
        read_all(&engine, &simulated).await;
        assert_eq!(engine.feed().await.len(), upto, "changes were shown before they were decided");
    }
    deciders[0].service("recalls").unwrap().catch_up().await.unwrap();
    expected.assert_facts(&engine.facts().await);
    expected.assert_feed(&engine.feed().await, &[]);
    stop.send_replace(true);
    engine.close().await;
}

/// Proves that two deciders that run at the same time, as when one was paused beyond its lease, emit every change once, and leave rows and
/// pages that equal those of a replay.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn concurrent_deciders_emit_every_change_once() {
    let dir = tempfile::tempdir().unwrap();
    let simulated = SimulatedUpstreams::start(27, 900, fixed_clock()).await;
    let engine = Engine::idle_with(dir.path(), fixed_clock(), &["recalls"]).await;
    let stop = run_heads_only(&engine).await;
    let deciders = two_projectors(&engine).await;
    let mut expected = Expected::at_first(simulated.sim.current(None));
    for round in 1..=5 {
        let (ended, mut end) = watch::channel(false);
        let reading = async {
            read_all(&engine, &simulated).await;
            read_all(&engine, &simulated).await;
            ended.send_replace(true);
        };
        let deciding = deciders.each_ref().map(|rival| {
            let end = end.clone();
            async move {
                while !*end.borrow() {
                    rival.service("recalls").unwrap().catch_up().await.unwrap();
                    tokio::task::yield_now().await;
                }
            }
        });
        let [one, other] = deciding;
        // On separate tasks, so that they run at the same time.
        join(reading, join(one, other)).await;
        end.mark_unchanged();
        let known = simulated.sim.expected_changes().len() as u64;
        simulated.sim.advance(10);
        expected.take(round, simulated.sim.expected_changes_after(known));
    }
    read_all(&engine, &simulated).await;
    read_all(&engine, &simulated).await;
    for rival in &deciders {
        rival.service("recalls").unwrap().catch_up().await.unwrap();
    }
    expected.assert_facts(&engine.facts().await);
    let (feed, rows) = (engine.feed().await, engine.digest(true).await);
    expected.assert_feed(&feed, &[]);
    let logged = engine.changes().await.len();
    assert_eq!(logged, feed.len());
    deciders[1].service("recalls").unwrap().replay(&(Arc::new(|_, _| ()) as projector::rebuild::Progress)).await.unwrap();
    assert_eq!(engine.digest_of(&deciders[1], true).await, rows, "the rows must equal those of a replay");
    assert_eq!(engine.feed().await, feed);
    stop.send_replace(true);
    engine.close().await;
}

/// Reads all records of a partition.
pub(crate) async fn read_partition(log: &dyn EventLog, topic: &'static Topic, partition: u32) -> Vec<Stored> {
    let (mut out, mut from) = (Vec::new(), LogOffset(0));
    loop {
        let batch = log.read(topic, partition, from, 1_000, 4 << 20).await.unwrap();
        let Some(last) = batch.last() else { return out };
        from = last.offset.next();
        out.extend(batch);
    }
}

/// Appends records unchanged.
pub(crate) async fn copy(log: &dyn EventLog, topic: &'static Topic, partition: u32, records: &[Stored]) {
    for some in records.chunks(500) {
        log.append(some.iter().map(|stored| Append { topic, partition, record: stored.record.clone() }).collect()).await.unwrap();
    }
}

/// Proves that changes of one input of which a dead decider appended only some are completed by the next decider, byte for byte, before
/// anything else.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn partial_group_of_changes_is_completed() {
    let dirs = [tempfile::tempdir().unwrap(), tempfile::tempdir().unwrap()];
    let simulated = SimulatedUpstreams::start(28, 1_500, fixed_clock()).await;
    let engine = Engine::open_with(dirs[0].path(), fixed_clock(), &["recalls"]).await;
    engine.run_some(RECALL_UPSTREAMS, &simulated.settings()).await;
    let changes = read_partition(&*engine.log, &CHANGES_RECALLS, 0).await;
    let following = |stored: &Stored| -> i32 {
        avro::decode::<Change<IgnoredAny, IgnoredAny>>(CHANGES_RECALLS.name, &stored.record.value).unwrap().following
    };
    let cut = 1 + changes
        .iter()
        .rposition(|stored| following(stored) > 0)
        .expect("no fact led to two changes, as a merge of two agencies' recalls does");

    let other = Engine::idle_with(dirs[1].path(), fixed_clock(), &["recalls"]).await;
    for partition in 0..FACTS.partitions {
        copy(&*other.log, &FACTS, partition, &read_partition(&*engine.log, &FACTS, partition).await).await;
    }
    copy(&*other.log, &CHANGES_RECALLS, 0, &changes[..cut]).await;
    other.projector.catch_up().await.unwrap();
    let healed = read_partition(&*other.log, &CHANGES_RECALLS, 0).await;
    let group = cut + following(&changes[cut - 1]) as usize;
    assert!(group > cut && group <= changes.len());
    for at in 0..group {
        assert_eq!(healed[at].record.value, changes[at].record.value, "change {at}");
    }
    assert_shown_once(&other.feed().await);
    assert_eq!(other.digest(false).await, engine.digest(false).await);
    assert_eq!(other.changes().await.len(), other.feed().await.len());

    // A third decider, opened after the second, finds nothing to do.
    let view = other.view().await;
    let mut third: Decider<Recalls> =
        Decider::open(Arc::clone(&other.log), Arc::clone(&other.parts.engine), view, fixed_clock()).await.unwrap();
    third.catch_up().await.unwrap();
    assert_eq!(read_partition(&*other.log, &CHANGES_RECALLS, 0).await.len(), healed.len());
    other.close().await;
    engine.close().await;
}
