//! The roles on a real broker and a real CQL node while servers and roles are killed, paused and disconnected: readers get what an
//! undisturbed embedded engine gives.
//!
//! `FAULT_ROUNDS=50 cargo test --test scenarios faults` runs 50 rounds; `FAULT_SEED` draws the faults of an earlier run again. The standard
//! error of the nodes is in `target/tmp/faults/logs`.

mod fault;
mod nodes;
mod proxy;

use std::path::Path;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::thread;
use std::time::{Duration, Instant};

use engines::own::{Own, Server};
use event_log::EventLog;
use event_log::kafka::{KafkaLog, Options};
use schemas::topics::{CHANGES_RECALLS, RECALLS as FACTS};
use serde_json::Value;
use tokio::runtime::Handle;

use self::fault::{After, Fault};
use self::nodes::{NODES, Nodes};
use self::proxy::Proxy;
use crate::cluster::Cluster;
use crate::engine::{Engine, NOW, RECALL_UPSTREAMS, SimulatedUpstreams, fixed_clock};
use crate::process::{ask, run_within, stdout, wait_for};
use crate::random::{self, Random};
use crate::reader::Reader;

/// The default number of rounds.
const ROUNDS: u64 = 3;
/// Recalls at the beginning.
const RECORDS: u64 = 300;
/// Changes at the upstreams between two rounds.
const CHANGES: u64 = 40;
/// The longest time that a sync may take under faults.
const SYNC_TIMEOUT: Duration = Duration::from_secs(300);
/// The pause before a failed sync is retried.
const SYNC_RETRY_PAUSE: Duration = Duration::from_secs(1);
/// The interval of reads by a reader that has reached the end.
const READ_INTERVAL: Duration = Duration::from_millis(250);
/// The interval at which the progress of a round is checked.
const POLL_INTERVAL: Duration = Duration::from_millis(20);
/// How long the broker may take to report the ends of its topics before it counts as unavailable.
const ANSWER_TIMEOUT: Duration = Duration::from_secs(1);

/// Counts of the unsuccessful answers that a round's reader got.
#[derive(Default)]
struct Answers {
    /// 503 with `Retry-After`.
    unavailable: AtomicU64,
    /// No answer, because the node was killed meanwhile.
    lost: AtomicU64,
}

/// Sets a flag when dropped, also by a panic, so that no thread waits for ever.
struct SetOnDrop<'a>(&'a AtomicBool);

impl Drop for SetOnDrop<'_> {
    fn drop(&mut self) {
        self.0.store(true, Ordering::Relaxed);
    }
}

/// The servers, proxies, nodes and upstreams of the test.
struct Fixture {
    // Fields are dropped in this order: the nodes before the servers that they need.
    nodes: Nodes,
    servers: Own,
    proxies: [(Server, Proxy); 2],
    simulated: SimulatedUpstreams,
    /// The log, not through the proxy.
    log: Arc<KafkaLog>,
    key: String,
    runtime: Handle,
}

impl Fixture {
    async fn set(simulated: SimulatedUpstreams) -> Option<Self> {
        let dir = Path::new(env!("CARGO_TARGET_TMPDIR")).join("faults");
        let proxies = [(Server::Kafka, Proxy::start().await), (Server::Cql, Proxy::start().await)];
        let started = Own::start(&dir.join("engines"), proxies[0].1.address.port());
        let servers = engines::or_skip(started, "faults on Kafka and CQL")?;
        for (server, proxy) in &proxies {
            proxy.forward_to(servers.behind_proxy(*server));
        }
        let [kafka, cql] = proxies.each_ref().map(|(_, proxy)| proxy.address.to_string());
        let cluster = Cluster::on_servers(kafka, cql, &simulated.base_url, NOW).with_default_call_times();
        let prefix = format!("{}.", cluster.name);
        let nodes = Nodes::start(cluster, dir.join("logs"));
        nodes.wait_ready();
        let log = KafkaLog::open(Options { prefix, ..Options::new(&servers.kafka()) }).await.unwrap();
        let key = stdout(nodes.cluster.command("a1", &["keys", "mint", "--tier", "fleet_plus"])).trim().to_owned();
        Some(Self { nodes, servers, proxies, simulated, log, key, runtime: Handle::current() })
    }

    /// Returns the number of records in the topics of facts and changes; `None` while the broker does not answer.
    fn appended(&self) -> Option<u64> {
        self.runtime.block_on(async { tokio::time::timeout(ANSWER_TIMEOUT, appended(&*self.log)).await.ok()?.ok() })
    }

    fn requests(&self) -> u64 {
        self.simulated.sim.stats().requests
    }

    /// Waits until a fault is due; false if all syncs have finished before.
    fn wait_due(&self, fault: &Fault, requests: u64, records: u64, finished: &AtomicBool) -> bool {
        let is_due = || match fault.after {
            After::Requests(n) => self.requests() > requests + n,
            After::Appended(n) => self.appended().is_some_and(|now| now > records + n),
        };
        while !finished.load(Ordering::Relaxed) {
            if is_due() {
                return true;
            }
            thread::sleep(POLL_INTERVAL);
        }
        false
    }

    /// Syncs an upstream at one of the nodes, retrying until it succeeds, as an operator would; returns the number of failures. `may_fail`
    /// says which failures are expected.
    fn ingest(&self, upstream: &str, first: usize, may_fail: impl Fn(&str) -> bool) -> u64 {
        let (begun, nodes) = (Instant::now(), Nodes::with_role("ingest"));
        for failures in 0.. {
            let at = nodes[(first + usize::try_from(failures).unwrap()) % nodes.len()];
            // Skips nodes that are down.
            let message = if self.nodes.address(at).0.is_none() {
                String::new()
            } else {
                let command = self.nodes.cluster.command(NODES[at].0, &["ingest", upstream, "--once"]);
                let output = run_within(command, SYNC_TIMEOUT.saturating_sub(begun.elapsed()));
                let message = String::from_utf8_lossy(&output.stderr).into_owned();
                assert!(!message.contains("panicked at"), "{message}");
                if output.status.success() {
                    return failures;
                }
                assert!(output.status.code() == Some(1) && may_fail(&message), "{message}");
                message
            };
            assert!(begun.elapsed() < SYNC_TIMEOUT, "{upstream} does not run: {message}");
            thread::sleep(SYNC_RETRY_PAUSE);
        }
        unreachable!("counted without end")
    }

    /// Reads the feed and a list at one of the nodes. Returns whether the feed has more, if it was read.
    fn read(&self, at: usize, reader: &mut Reader, answers: &Answers) -> Option<bool> {
        let mut more = None;
        for path in [reader.path(), "/recalls/api/recalls?limit=5".to_owned()] {
            let (Some(address), life) = self.nodes.address(at) else { return more };
            match ask(address, &path, &self.key) {
                None => {
                    assert!(self.nodes.address(at) != (Some(address), life), "{} did not answer {path}", NODES[at].0);
                    answers.lost.fetch_add(1, Ordering::Relaxed);
                }
                Some(answer) if answer.status == 503 => {
                    assert!(answer.header("retry-after").parse::<u64>().is_ok(), "{}", String::from_utf8_lossy(&answer.body));
                    answers.unavailable.fetch_add(1, Ordering::Relaxed);
                }
                Some(answer) if path.contains("/v1/changes") => more = reader.take(answer.status, &answer.body),
                Some(answer) => assert_eq!(answer.status, 200, "{}", String::from_utf8_lossy(&answer.body)),
            }
        }
        more
    }

    /// Runs a command at one of the nodes, which must succeed; returns its output.
    fn run_at(&self, at: usize, arguments: &[&str]) -> String {
        stdout(self.nodes.cluster.command(NODES[at].0, arguments))
    }

    /// Runs one round: syncs the upstreams of recalls while the faults are injected, then once more without faults. Returns a summary.
    fn round(&self, faults: &[Fault], random: &mut Random, reader: &mut Reader) -> String {
        let (requests, records) = (self.requests(), wait_for("the ends of the topics", || self.appended()));
        let (finished, over, answers) = (AtomicBool::new(false), AtomicBool::new(false), Answers::default());
        let first = usize::try_from(random.below(2)).unwrap();
        let (mut failures, mut during_syncs) = (0, 0);
        thread::scope(|scope| {
            let (reading_ends, runs_end) = (SetOnDrop(&over), SetOnDrop(&finished));
            let runs: Vec<_> =
                RECALL_UPSTREAMS.iter().map(|upstream| scope.spawn(move || self.ingest(upstream, first, |_| true))).collect();
            let reading = scope.spawn(|| {
                for at in Nodes::with_role("api").into_iter().cycle() {
                    if over.load(Ordering::Relaxed) {
                        return;
                    }
                    if self.read(at, reader, &answers) != Some(true) {
                        thread::sleep(READ_INTERVAL);
                    }
                }
            });
            let finished = &finished;
            let injected: Vec<_> = faults
                .iter()
                .map(|fault| {
                    scope.spawn(move || {
                        let is_during_sync = self.wait_due(fault, requests, records, finished);
                        fault.inject(&self.servers, &self.proxies, &self.nodes);
                        is_during_sync
                    })
                })
                .collect();
            failures = runs.into_iter().map(|run| run.join().unwrap()).sum();
            drop(runs_end);
            during_syncs = injected.into_iter().map(|fault| u8::from(fault.join().unwrap())).sum();
            self.nodes.wait_ready();
            drop(reading_ends);
            reading.join().unwrap();
        });
        // All faults have ended, so nothing may fail, except that a node may still be completing an interrupted run. Withdrawals take
        // effect in the second run.
        thread::scope(|scope| {
            for upstream in RECALL_UPSTREAMS {
                scope.spawn(move || self.ingest(upstream, first, |message| message.contains("is being synced by another ingestor")));
            }
        });
        let (unavailable, lost) = (answers.unavailable.into_inner(), answers.lost.into_inner());
        format!("{during_syncs} faults during syncs; {failures} syncs failed, {unavailable} answers were 503, {lost} were lost")
    }

    /// Reads on at both nodes until the last change.
    fn read_to(&self, last: u64, reader: &mut Reader) {
        let (answers, mut at) = (Answers::default(), Nodes::with_role("api").into_iter().cycle());
        wait_for("the end of the feed", || {
            self.read(at.next().unwrap(), reader, &answers);
            (reader.to >= last).then_some(())
        });
        assert_eq!((answers.unavailable.into_inner(), answers.lost.into_inner()), (0, 0), "reads failed after all faults had ended");
    }
}

/// Returns the number of records in the topics of facts and changes.
async fn appended(log: &dyn EventLog) -> Result<u64, event_log::Error> {
    let mut records = 0;
    for topic in [&FACTS, &CHANGES_RECALLS] {
        for partition in 0..topic.partitions {
            records += log.end(topic, partition).await?.0;
        }
    }
    Ok(records)
}

fn lines(text: &str) -> Vec<Value> {
    text.lines().map(|line| serde_json::from_str(line).unwrap()).collect()
}

/// Proves that whatever of broker, database, connections and roles is killed, paused or disconnected during syncs, the final records are
/// those of an undisturbed embedded engine that read the same states of the upstreams, and that a reader by cursor who alternates between
/// nodes sees each change once and in order, and at worst a 503 meanwhile.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn faults_lose_and_duplicate_nothing() {
    let rounds = random::number("FAULT_ROUNDS").unwrap_or(ROUNDS);
    let seed = random::seed("FAULT_SEED", 1);
    println!("FAULT_ROUNDS={rounds}");
    let mut random = Random(seed);
    let Some(fixture) = Fixture::set(SimulatedUpstreams::start(seed % 1_000, RECORDS, fixed_clock()).await).await else { return };
    let dir = tempfile::tempdir().unwrap();
    let (embedded, settings) = (Engine::open_with(dir.path(), fixed_clock(), &["recalls"]).await, fixture.simulated.settings());
    let mut reader = Reader::default();
    for round in 1..=usize::try_from(rounds).unwrap() {
        if round > 1 {
            fixture.simulated.sim.advance(CHANGES);
        }
        let (requests, records) = (fixture.requests(), appended(&*embedded.log).await.unwrap());
        embedded.run_some(RECALL_UPSTREAMS, &settings).await;
        let (requests, records) = (fixture.requests() - requests, appended(&*embedded.log).await.unwrap() - records);
        embedded.run_some(RECALL_UPSTREAMS, &settings).await;
        let faults = Fault::draw(&mut random, requests, records);
        let drawn: Vec<String> = faults.iter().map(Fault::to_string).collect();
        println!("round {round}: {}", drawn.join("; "));
        let (begun, wanted) = (Instant::now(), embedded.digest(false).await);
        let outcome = tokio::task::block_in_place(|| {
            let outcome = fixture.round(&faults, &mut random, &mut reader);
            let at = usize::try_from(random.below(NODES.len() as u64)).unwrap();
            assert_eq!(fixture.run_at(at, &["digest", "recalls"]).trim(), wanted, "round {round}: the digest at {}", NODES[at].0);
            let changes = lines(&fixture.run_at(at, &["export", "changes.recalls"]));
            fixture.read_to(changes.last().unwrap()["seq"].as_u64().unwrap(), &mut reader);
            assert_read_once(&reader.read, &changes);
            outcome
        });
        fixture.nodes.assert_none_panicked();
        println!("round {round}: {outcome}; {:.1} s", begun.elapsed().as_secs_f64());
    }
    tokio::task::block_in_place(|| {
        // Changes that are hidden from readers are numbered, too.
        let seqs: Vec<u64> = lines(&fixture.run_at(0, &["export", CHANGES_RECALLS.name, "--all"]))
            .iter()
            .map(|change| change["seq"].as_u64().unwrap())
            .collect();
        assert!(seqs.iter().copied().eq(1..=seqs.len() as u64), "the changes are not numbered consecutively");
    });
    fixture.nodes.terminate();
    fixture.log.close().await.unwrap();
    embedded.close().await;
}

/// Panics unless a reader got each change of the log once and in order.
fn assert_read_once(read: &[Value], logged: &[Value]) {
    let seqs_and_records = |changes: &[Value]| -> Vec<(u64, Value)> {
        changes.iter().map(|change| (change["seq"].as_u64().unwrap(), change["record"].clone())).collect()
    };
    let (read, logged) = (seqs_and_records(read), seqs_and_records(logged));
    let differs = read.iter().zip(&logged).find(|(read, logged)| read != logged);
    assert!(differs.is_none() && read.len() == logged.len(), "{} changes read, {} logged; {differs:?}", read.len(), logged.len());
}
