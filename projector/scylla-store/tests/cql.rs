//! The store on a real CQL node: the contract, and what only a store that several processes share guarantees.

#![expect(clippy::unwrap_used, reason = "a test that cannot continue fails")]

use std::io::{Read, Write as _};
use std::net::{Shutdown, TcpListener, TcpStream};
use std::sync::{Arc, Condvar, Mutex};
use std::time::{Duration, Instant};

use bytes::Bytes;
use schemas::key;
use schemas::position::{LogOffset, Seq};
use schemas::tables::{Datum, Table, TableKind, ValueKind, ViewDef, Write, int, int_desc, text};
use scylla_store::{Options, ScyllaStore};
use view_store::store::Span;
use view_store::{Checkpoint, Error, Range, View, ViewStore, contract};

/// The longest time that a step may take. It is a guard against hangs only: a busy machine is slow.
const HANG_TIMEOUT: Duration = Duration::from_secs(300);

static ROWS: Table =
    Table { name: "tested_rows", key: &[text("part"), int("num")], partition_columns: 1, kind: TableKind::Current, value: ValueKind::Text };
static BYTES: Table = Table {
    name: "tested_bytes",
    key: &[text("topic"), text("name"), int_desc("num")],
    partition_columns: 2,
    kind: TableKind::Derived,
    value: ValueKind::Bytes,
};
static OLD: Table = Table {
    name: "tested_old",
    key: &[text("part"), int_desc("seq")],
    partition_columns: 1,
    kind: TableKind::History,
    value: ValueKind::Text,
};
static DEF: ViewDef = ViewDef { name: "tested", tables: &[&ROWS, &BYTES, &OLD], hides: &[] };

/// Waits for a future; panics with what it waited for after a time limit.
async fn within<F: Future>(what: &str, future: F) -> F::Output {
    tokio::time::timeout(HANG_TIMEOUT, future).await.unwrap_or_else(|_| panic!("{what} did not occur within {HANG_TIMEOUT:?}"))
}

/// Returns a node's address, or ends the test with a message why it did not run.
macro_rules! node {
    ($test:literal) => {
        match engines::or_skip(engines::cql(), $test) {
            Some(address) => address,
            None => return,
        }
    };
}

fn options(address: &str, keyspace: &str) -> Options {
    Options {
        contact_points: vec![address.to_owned()],
        keyspace: keyspace.to_owned(),
        // No reader of a replaced generation loses it because the machine is slow.
        drop_after: HANG_TIMEOUT,
        ..Options::default()
    }
}

async fn open(address: &str, keyspace: &str) -> Arc<ScyllaStore> {
    ScyllaStore::open(options(address, keyspace)).await.unwrap()
}

fn at_seq(seq: u64) -> Checkpoint {
    Checkpoint { seq: Seq(seq), hash: format!("{seq:064x}"), offset: LogOffset(seq), recorded_at_ms: 1_000, ..Checkpoint::default() }
}

fn row(num: i64, value: &str, at: i64) -> Write {
    Write::put(&ROWS, key!["p", num], Bytes::copy_from_slice(value.as_bytes())).at(at)
}

async fn value(view: &dyn View, num: i64) -> Option<String> {
    view.get(&ROWS, &key!["p", num]).await.unwrap().map(|value| String::from_utf8(value.to_vec()).unwrap())
}

/// Whether an error or one of its causes contains a text.
fn says(error: &(dyn std::error::Error + 'static), word: &str) -> bool {
    let mut next = Some(error);
    while let Some(error) = next {
        if error.to_string().contains(word) {
            return true;
        }
        next = error.source();
    }
    false
}

/// Proves that the store on CQL fulfils the contract, also when it is run again on the data that it left.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn fulfils_the_contract() {
    let address = node!("the contract on CQL");
    let keyspace = engines::unique("contract");
    for _ in 0..2 {
        let store: Arc<dyn ViewStore> = open(&address, &keyspace).await;
        contract::all(&store).await.unwrap();
        store.close().await.unwrap();
        assert!(matches!(store.live(&DEF).await, Err(Error::Unavailable { .. })), "a closed store answers nothing");
    }
}

/// Proves that a write with a lower position loses to one with a higher position, whenever it arrives, for rows and checkpoint: a writer
/// that was delayed does no harm, and repeated writes change nothing.
#[tokio::test]
async fn late_writes_lose() {
    let address = node!("late writes on CQL");
    let keyspace = engines::unique("late");
    let (awake, outdated) = (open(&address, &keyspace).await, open(&address, &keyspace).await);
    let (awake, outdated) = (awake.live(&DEF).await.unwrap(), outdated.live(&DEF).await.unwrap());
    let at = |seq: u64, position: u64| Checkpoint { positions: [("t/0".to_owned(), LogOffset(position))].into(), ..at_seq(seq) };
    awake.commit(vec![row(1, "new", 20), row(2, "new", 20), Write::delete(&ROWS, key!["p", 3]).at(20)], &at(20, 7)).await.unwrap();
    assert!(matches!(outdated.commit(vec![row(1, "old", 10)], &at(10, 3)).await, Err(Error::Behind { .. })), "the checkpoint shows it");
    // As a writer that checked before it was delayed: a commit with a higher checkpoint and rows with lower positions.
    outdated.commit(vec![row(1, "old", 10), row(2, "newer", 21), row(3, "old", 19), row(4, "old", 10)], &at(21, 8)).await.unwrap();
    let mut values = Vec::new();
    for num in 1..=4 {
        values.push(value(&*awake, num).await);
    }
    assert_eq!(values, [Some("new".to_owned()), Some("newer".to_owned()), None, Some("old".to_owned())]);
    assert_eq!(awake.checkpoint().await.unwrap(), at(21, 8));
}

/// Proves that a commit which fails has written whole tables up to one and none after it, history first, and no checkpoint.
#[tokio::test]
async fn an_interrupted_commit_leaves_history_first() {
    let address = node!("a cut commit on CQL");
    let store = open(&address, &engines::unique("cut")).await;
    let view = store.live(&DEF).await.unwrap();
    // More than the node accepts in one write.
    let huge = Write::put(&ROWS, key!["huge", 1], Bytes::from(vec![b'x'; 20 << 20])).at(1);
    let behind = Write::put(&BYTES, key!["t", "behind", 1], Bytes::new()).at(1);
    let old = Write::put(&OLD, key!["p", 1], Bytes::from_static(b"old")).at(1);
    assert!(view.commit(vec![huge, behind, old], &at_seq(1)).await.is_err());
    assert_eq!(view.get(&OLD, &key!["p", 1]).await.unwrap().as_deref(), Some(&b"old"[..]));
    assert_eq!(view.get(&BYTES, &key!["t", "behind", 1]).await.unwrap(), None);
    assert_eq!(view.checkpoint().await.unwrap(), Checkpoint::default());
}

/// Proves that two stores on one keyspace, like two processes, see each other's commits and swaps: a waiter is woken; a writer to a
/// replaced generation gets an error and then finds the live one; leases and counters are shared.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn two_processes_share_a_keyspace() {
    let address = node!("two processes on CQL");
    let keyspace = engines::unique("shared");
    let (one, two) = (open(&address, &keyspace).await, open(&address, &keyspace).await);
    let (ours, theirs) = (one.live(&DEF).await.unwrap(), two.live(&DEF).await.unwrap());
    assert_eq!(ours.generation(), theirs.generation());
    let nothing = Checkpoint::default();
    let first = at_seq(1);
    let (woken, committed) =
        tokio::join!(within("waking a waiting reader", theirs.wait_past(&nothing)), ours.commit(vec![row(1, "a", 1)], &first));
    committed.unwrap();
    assert_eq!(woken.unwrap(), at_seq(1), "a commit of another process wakes waiters");
    assert_eq!(value(&*theirs, 1).await.as_deref(), Some("a"));
    assert!(matches!(theirs.commit(vec![row(1, "b", 1)], &Checkpoint::default()).await, Err(Error::Behind { .. })));

    let rebuilt = one.begin_rebuild(&DEF).await.unwrap();
    rebuilt.commit(vec![row(1, "rebuilt", 1)], &at_seq(1)).await.unwrap();
    let (woken, swapped) = tokio::join!(within("waking a waiting reader", theirs.wait_past(&first)), one.swap(&rebuilt));
    swapped.unwrap();
    assert!(matches!(woken, Err(Error::Gone { .. })), "a swap by another process wakes waiters with Gone");
    assert_eq!(value(&*theirs, 1).await.as_deref(), Some("a"), "a reader of the old generation finishes on it");
    assert!(
        matches!(theirs.commit(vec![row(1, "late", 2)], &at_seq(2)).await, Err(Error::Gone { .. })),
        "a replaced generation accepts no commits"
    );
    let live = two.live(&DEF).await.unwrap();
    assert_eq!(value(&*live, 1).await.as_deref(), Some("rebuilt"), "the live generation is found again");

    // Of two concurrent rebuilds, the later one continues.
    let (left, next) = (one.begin_rebuild(&DEF).await.unwrap(), two.begin_rebuild(&DEF).await.unwrap());
    assert!(matches!(left.get(&ROWS, &key!["p", 1]).await, Err(Error::Gone { .. })), "the tables of the abandoned one are dropped");
    assert!(matches!(one.swap(&left).await, Err(Error::Gone { .. })));
    two.swap(&next).await.unwrap();

    let hour = Duration::from_secs(3_600);
    assert!(one.coordination().lease("decide", "one", hour).await.unwrap());
    assert!(!two.coordination().lease("decide", "two", hour).await.unwrap(), "a lease has one holder");
    assert_eq!(two.coordination().holder("decide").await.unwrap().as_deref(), Some("one"), "in every process");
    assert_eq!(one.coordination().add_to_counter("quota", 7, 10, 1_000, 9_000).await.unwrap(), 7);
    assert_eq!(two.coordination().add_to_counter("quota", 7, 10, 1_000, 9_000).await.unwrap(), 3, "a counter is shared");
}

/// Proves that the tables of a replaced generation are dropped after the configured time, and that a reader in another process gets `Gone`
/// and then finds the live one.
#[tokio::test]
async fn old_generations_are_dropped() {
    let address = node!("old generations on CQL");
    let keyspace = engines::unique("old");
    let swapper = ScyllaStore::open(Options { drop_after: Duration::ZERO, ..options(&address, &keyspace) }).await.unwrap();
    let reader = open(&address, &keyspace).await;
    let old = reader.live(&DEF).await.unwrap();
    old.commit(vec![row(1, "old", 1)], &at_seq(1)).await.unwrap();
    let rebuilt = swapper.begin_rebuild(&DEF).await.unwrap();
    rebuilt.commit(vec![row(1, "new", 1)], &at_seq(1)).await.unwrap();
    swapper.swap(&rebuilt).await.unwrap();
    let dropped = async { while !matches!(old.get(&ROWS, &key!["p", 1]).await, Err(Error::Gone { .. })) {} };
    within("the removal of old tables", dropped).await;
    assert!(matches!(old.scan(&ROWS, Span::default()).next(1).await, Err(Error::Gone { .. })));
    assert_eq!(value(&*reader.live(&DEF).await.unwrap(), 1).await.as_deref(), Some("new"));
}

/// Proves that a table larger than one answer is scanned completely and in key order, that bytes and empty values are read as written, that
/// a partition of many rows is written in batches, and that a range longer than one answer is complete.
#[tokio::test]
async fn large_tables_come_in_order() {
    let address = node!("large tables on CQL");
    let store = open(&address, &engines::unique("large")).await;
    let view = store.live(&DEF).await.unwrap();
    let mut writes: Vec<Write> = (0..1_500)
        .map(|num| {
            Write::put(&BYTES, key!["t", format!("name{num}"), num], Bytes::from(vec![0xFF; usize::try_from(num % 3).unwrap()])).at(1)
        })
        .collect();
    writes.extend((0..1_200).map(|num| row(num, &"x".repeat(if num == 7 { 60_000 } else { 30 }), 1)));
    view.commit(writes, &at_seq(1)).await.unwrap();
    let mut names: Vec<String> = (0..1_500).map(|num| format!("name{num}")).collect();
    names.sort();
    let (mut scan, mut found) = (view.scan(&BYTES, Span::default()), Vec::new());
    loop {
        let rows = scan.next(400).await.unwrap();
        if rows.is_empty() {
            break;
        }
        for (key, value) in rows {
            let [_, Datum::Text(name), Datum::Int(num)] = &key[..] else { panic!("{key:?}") };
            assert_eq!(value.len() as i64, num % 3);
            found.push(name.clone());
        }
    }
    assert_eq!(found, names);
    let range = |reverse| Range { prefix: key!["p"], after: Some(key!["p", 600]), from: None, limit: 550, reverse };
    let numbers = |rows: Vec<(schemas::tables::Key, Bytes)>| rows.into_iter().map(|(key, _)| key[1].clone()).collect::<Vec<_>>();
    let up = numbers(view.range(&ROWS, range(false)).await.unwrap());
    let down = numbers(view.range(&ROWS, range(true)).await.unwrap());
    assert_eq!(up, (601..1_151).map(Datum::Int).collect::<Vec<_>>());
    assert_eq!(down, (50..600).rev().map(Datum::Int).collect::<Vec<_>>());
    assert_eq!(view.get(&ROWS, &key!["p", 7]).await.unwrap().unwrap().len(), 60_000);
}

/// Proves that keys and values that CQL cannot store are refused before anything is written, and that reading such a key returns nothing.
#[tokio::test]
async fn invalid_keys_and_values_are_refused() {
    let address = node!("refusals on CQL");
    let store = open(&address, &engines::unique("refused")).await;
    let view = store.live(&DEF).await.unwrap();
    let good = row(1, "good", 1);
    for bad in [
        Write::put(&ROWS, key!["", 1], Bytes::from_static(b"x")),
        Write::put(&ROWS, key!["p", 2], Bytes::from_static(b"\xFF")),
        Write::put(&ROWS, key!["x".repeat(70_000), 1], Bytes::from_static(b"x")),
    ] {
        assert!(view.commit(vec![good.clone(), bad], &at_seq(1)).await.is_err());
    }
    assert_eq!(value(&*view, 1).await, None);
    assert_eq!(view.checkpoint().await.unwrap(), Checkpoint::default());
    assert_eq!(view.get(&ROWS, &key!["", 1]).await.unwrap(), None);
    let empty = Range { prefix: key![""], after: None, from: None, limit: 5, reverse: false };
    assert!(view.range(&ROWS, empty).await.unwrap().is_empty());
    let unbound = Range { prefix: key!["t"], after: None, from: None, limit: 5, reverse: false };
    assert!(view.range(&BYTES, unbound).await.is_err(), "a range that names no partition is refused");
}

/// Proves that a keyspace of a newer program is refused with both versions in the message, and is not changed.
#[tokio::test]
async fn a_newer_keyspace_is_refused() {
    let address = node!("a newer keyspace on CQL");
    let keyspace = engines::unique("newer");
    open(&address, &keyspace).await.close().await.unwrap();
    let session = scylla::client::session_builder::SessionBuilder::new().known_node(&address).build().await.unwrap();
    let update = format!("UPDATE {keyspace}.meta SET value = '99' WHERE name = 'schema_version' IF EXISTS");
    session.query_unpaged(update, ()).await.unwrap();
    let error = ScyllaStore::open(options(&address, &keyspace)).await.err().unwrap();
    assert!(says(&error, "schema version 99, this program knows 1"), "{error}");
}

/// Proves that a wrong address, a wrong keyspace name and a missing address are reported with the wrong value, in optimised builds within 25
/// seconds.
#[tokio::test]
async fn wrong_options_are_reported() {
    // Nothing listens on this port, which is below those that the system gives to others.
    let begun = Instant::now();
    for address in ["127.0.0.1:1", "no-such-host.invalid:9042"] {
        let error = ScyllaStore::open(options(address, "k")).await.err().unwrap();
        assert!(says(&error, address), "{error}");
    }
    for (options, word) in [
        (options("127.0.0.1:1", "Bad-Name"), "Bad-Name"),
        (Options { contact_points: Vec::new(), ..Options::default() }, "contact point"),
        (Options { replication_factor: 0, ..Options::default() }, "replication factor"),
    ] {
        let error = ScyllaStore::open(options).await.err().unwrap();
        assert!(says(&error, word), "{error}");
    }
    assert!(cfg!(debug_assertions) || begun.elapsed() < Duration::from_secs(25), "{:?}", begun.elapsed());
}

/// Proves that refused and missing credentials are reported as such, by a test server that requires some.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn wrong_credentials_are_reported() {
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let address = listener.local_addr().unwrap().to_string();
    std::thread::spawn(move || {
        for stream in listener.incoming().flatten() {
            std::thread::spawn(move || refuse(stream));
        }
    });
    let given = Options { credentials: Some(("someone".to_owned(), "wrong".to_owned())), ..options(&address, "k") };
    for (options, word) in [(given, "refuses the user name or the password"), (options(&address, "k"), "requires a user name")] {
        let error = ScyllaStore::open(options).await.err().unwrap();
        assert!(says(&error, word), "{error:?}");
        assert!(!format!("{error:?}").contains("wrong"), "the password is in no error");
    }
}

/// A server of protocol 4 that accepts nobody: it answers OPTIONS with nothing supported, STARTUP with AUTHENTICATE, and AUTH_RESPONSE with
/// an error of bad credentials.
fn refuse(mut stream: TcpStream) -> Option<()> {
    let text = |text: &str| [&u16::try_from(text.len()).unwrap().to_be_bytes()[..], text.as_bytes()].concat();
    loop {
        let mut head = [0; 9];
        stream.read_exact(&mut head).ok()?;
        let mut body = vec![0; u32::from_be_bytes(head[5..].try_into().unwrap()) as usize];
        stream.read_exact(&mut body).ok()?;
        let (code, body) = match head[4] {
            0x05 => (0x06, vec![0, 0]),
            0x01 => (0x03, text("org.apache.cassandra.auth.PasswordAuthenticator")),
            _ => (0x00, [&0x0100_u32.to_be_bytes()[..], &text("Provided username someone and/or password are incorrect")].concat()),
        };
        let length = u32::try_from(body.len()).unwrap().to_be_bytes();
        stream.write_all(&[&[0x84, 0, head[2], head[3], code][..], &length, &body].concat()).ok()?;
    }
}

/// What a proxy does with traffic.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Traffic {
    All,
    /// Connections are closed, new ones too.
    Nothing,
    /// Connections remain open, but nothing is forwarded until later: a stopped node, or a network that drops packets.
    Delayed,
}

/// A proxy to the node that can be interrupted.
struct Proxy {
    address: String,
    traffic: Arc<(Mutex<Traffic>, Condvar)>,
    streams: Arc<Mutex<Vec<TcpStream>>>,
}

impl Proxy {
    fn to(node: String) -> Self {
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        let address = listener.local_addr().unwrap().to_string();
        let (traffic, streams) = (Arc::new((Mutex::new(Traffic::All), Condvar::new())), Arc::new(Mutex::new(Vec::new())));
        let (state, all) = (Arc::clone(&traffic), Arc::clone(&streams));
        std::thread::spawn(move || {
            for near in listener.incoming().flatten() {
                if *state.0.lock().unwrap() == Traffic::Nothing {
                    continue;
                }
                let Ok(far) = TcpStream::connect(&node) else { continue };
                for (from, to) in [(&near, &far), (&far, &near)] {
                    let (from, to, state) = (from.try_clone().unwrap(), to.try_clone().unwrap(), Arc::clone(&state));
                    std::thread::spawn(move || forward(from, to, &state));
                }
                all.lock().unwrap().extend([near, far]);
            }
        });
        Self { address, traffic, streams }
    }

    fn set(&self, traffic: Traffic) {
        *self.traffic.0.lock().unwrap() = traffic;
        self.traffic.1.notify_all();
        if traffic == Traffic::Nothing {
            for stream in self.streams.lock().unwrap().drain(..) {
                let _ = stream.shutdown(Shutdown::Both);
            }
        }
    }
}

fn forward(mut from: TcpStream, mut to: TcpStream, state: &(Mutex<Traffic>, Condvar)) {
    let mut bytes = [0; 16_384];
    while let Ok(read) = from.read(&mut bytes) {
        drop(state.1.wait_while(state.0.lock().unwrap(), |traffic| *traffic == Traffic::Delayed).unwrap());
        if read == 0 || to.write_all(&bytes[..read]).is_err() {
            break;
        }
    }
    let _ = to.shutdown(Shutdown::Both);
}

/// Proves that while the node is unreachable, with broken or with silent connections, each call fails as unavailable (in optimised builds within
/// 15 seconds) and waits continue, and that all calls work again afterwards without reopening the store.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn an_unreachable_node_is_found_again() {
    let address = node!("a node that goes away");
    let proxy = Proxy::to(address.clone());
    let store = open(&proxy.address, &engines::unique("away")).await;
    let view = store.live(&DEF).await.unwrap();
    let (mut seq, mut checkpoint) = (1, at_seq(1));
    view.commit(vec![row(1, "before", 1)], &checkpoint).await.unwrap();
    for traffic in [Traffic::Nothing, Traffic::Delayed] {
        proxy.set(traffic);
        let waiting = tokio::spawn({
            let (view, checkpoint) = (Arc::clone(&view), checkpoint.clone());
            async move { view.wait_past(&checkpoint).await }
        });
        let key = key!["p", 1];
        let begun = Instant::now();
        let failing = async {
            tokio::join!(
                async { assert!(matches!(view.get(&ROWS, &key).await, Err(Error::Unavailable { .. }))) },
                async { assert!(matches!(view.commit(vec![row(1, "lost", 2)], &at_seq(99)).await, Err(Error::Unavailable { .. }))) },
                async { assert!(matches!(store.coordination().add_to_counter("c", 1, 9, 0, 9).await, Err(Error::Unavailable { .. }))) },
                // A statement that has not been prepared yet.
                async { assert!(matches!(view.scan(&OLD, Span::default()).next(1).await, Err(Error::Unavailable { .. }))) },
            )
        };
        within("the failure of calls to an unreachable node", failing).await;
        assert!(cfg!(debug_assertions) || begun.elapsed() < Duration::from_secs(15), "{:?}", begun.elapsed());
        proxy.set(Traffic::All);
        seq += 1;
        checkpoint = at_seq(seq);
        let after = format!("after {seq}");
        let back = async {
            while view.commit(vec![row(1, &after, i64::try_from(seq).unwrap())], &checkpoint).await.is_err() {
                tokio::task::yield_now().await;
            }
        };
        within("a commit to a node that is reachable again", back).await;
        assert_eq!(value(&*view, 1).await, Some(after));
        assert_eq!(within("waking a waiting reader", waiting).await.unwrap().unwrap(), checkpoint);
    }
}
