//! The roles on a real broker and a real CQL node while these are killed, paused and cut off, and the roles with them: what readers get
//! is what an undisturbed embedded engine gives.
//!
//! `FAULT_ROUNDS=50 cargo test --test scenarios faults` runs as many rounds; `FAULT_SEED` draws the same faults again. What the nodes
//! said is in `target/tmp/faults/logs`.

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
use crate::chance::{self, Chance};
use crate::cluster::Cluster;
use crate::engine::{Engine, NOW, Played, fixed_clock, upstream_names};
use crate::process::{ask, run_within, stdout, wait_for};
use crate::reader::Reader;

/// Rounds when none are asked for: in CI, and on a desk.
const ROUNDS_CI: u64 = 10;
const ROUNDS: u64 = 3;
/// Recalls at the beginning.
const RECORDS: u64 = 300;
/// Changes at the upstreams between two rounds.
const CHANGES: u64 = 40;
/// How long a run may take with everything that goes wrong.
const RUN_MAX: Duration = Duration::from_secs(180);
/// The pause before a run that failed is asked for again.
const RUN_PAUSE: Duration = Duration::from_secs(1);
/// Between two pages of a reader that has read all.
const READ_EVERY: Duration = Duration::from_millis(250);
/// Between two looks at how far a round has come.
const LOOK_EVERY: Duration = Duration::from_millis(20);
/// How long the broker may take to tell where its topics end, before it counts as away.
const ANSWER_MAX: Duration = Duration::from_secs(1);

/// What answers other than the wanted ones a round's reader got.
#[derive(Default)]
struct Answers {
    /// 503 with `Retry-After`.
    unavailable: AtomicU64,
    /// None, from a node that was killed meanwhile.
    lost: AtomicU64,
}

/// Says at its end that something is over, also when a panic ends it: nobody waits for ever.
struct Ending<'a>(&'a AtomicBool);

impl Drop for Ending<'_> {
    fn drop(&mut self) {
        self.0.store(true, Ordering::Relaxed);
    }
}

/// Everything that runs.
struct Stage {
    // The nodes end before what they need.
    nodes: Nodes,
    servers: Own,
    proxies: [(Server, Proxy); 2],
    played: Played,
    /// Not through the proxy.
    log: Arc<KafkaLog>,
    key: String,
    runtime: Handle,
}

impl Stage {
    async fn set(played: Played) -> Option<Self> {
        let dir = Path::new(env!("CARGO_TARGET_TMPDIR")).join("faults");
        let proxies = [(Server::Kafka, Proxy::start().await), (Server::Cql, Proxy::start().await)];
        let started = Own::start(&dir.join("engines"), proxies[0].1.address.port());
        let servers = engines::or_skip(started, "faults on Kafka and CQL")?;
        for (server, proxy) in &proxies {
            proxy.forward_to(servers.behind_proxy(*server));
        }
        let [kafka, cql] = proxies.each_ref().map(|(_, proxy)| proxy.address.to_string());
        let cluster = Cluster::on(kafka, cql, &played.base_url, NOW);
        let prefix = format!("{}.", cluster.name);
        let nodes = Nodes::start(cluster, dir.join("logs"));
        nodes.wait_ready();
        let log = KafkaLog::open(Options { prefix, ..Options::new(&servers.kafka()) }).await.unwrap();
        let key = stdout(nodes.cluster.command("a1", &["keys", "mint", "--tier", "fleet_plus"])).trim().to_owned();
        Some(Self { nodes, servers, proxies, played, log, key, runtime: Handle::current() })
    }

    /// Records in the topics that matter here; `None` while the broker does not answer.
    fn appended(&self) -> Option<u64> {
        self.runtime.block_on(async { tokio::time::timeout(ANSWER_MAX, appended(&*self.log)).await.ok()?.ok() })
    }

    fn requests(&self) -> u64 {
        self.played.sim.stats().requests
    }

    /// Waits until a fault is due; false if all runs have finished before.
    fn wait_due(&self, fault: &Fault, requests: u64, records: u64, finished: &AtomicBool) -> bool {
        let is_due = || match fault.after {
            After::Requests(n) => self.requests() > requests + n,
            After::Appended(n) => self.appended().is_some_and(|now| now > records + n),
        };
        while !finished.load(Ordering::Relaxed) {
            if is_due() {
                return true;
            }
            thread::sleep(LOOK_EVERY);
        }
        false
    }

    /// Has an upstream run at one of the nodes until it succeeds, as an operator would; answers how often it failed, as it may.
    fn ingest(&self, upstream: &str, first: usize, may_fail: impl Fn(&str) -> bool) -> u64 {
        let (begun, nodes) = (Instant::now(), Nodes::of("ingest"));
        for failures in 0.. {
            let at = nodes[(first + usize::try_from(failures).unwrap()) % nodes.len()];
            // Nobody asks a node that is down.
            let words = if self.nodes.address(at).0.is_none() {
                String::new()
            } else {
                let command = self.nodes.cluster.command(NODES[at].0, &["ingest", upstream, "--once"]);
                let output = run_within(command, RUN_MAX.saturating_sub(begun.elapsed()));
                let words = String::from_utf8_lossy(&output.stderr).into_owned();
                assert!(!words.contains("panicked at"), "{words}");
                if output.status.success() {
                    return failures;
                }
                assert!(output.status.code() == Some(1) && may_fail(&words), "{words}");
                words
            };
            assert!(begun.elapsed() < RUN_MAX, "{upstream} does not run: {words}");
            thread::sleep(RUN_PAUSE);
        }
        unreachable!("counted without end")
    }

    /// Reads at one of the nodes: the feed, and a list as anybody would. Answers whether the feed has more, if it was read.
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

    /// A command at one of the nodes; it must succeed.
    fn told(&self, at: usize, arguments: &[&str]) -> String {
        stdout(self.nodes.cluster.command(NODES[at].0, arguments))
    }

    /// One round: all upstreams run while the faults strike, then once more undisturbed. Answers what happened.
    fn round(&self, faults: &[Fault], chance: &mut Chance, reader: &mut Reader) -> String {
        let (requests, records) = (self.requests(), wait_for("the ends of the topics", || self.appended()));
        let (finished, over, answers) = (AtomicBool::new(false), AtomicBool::new(false), Answers::default());
        let first = usize::try_from(chance.below(2)).unwrap();
        let (mut failures, mut amid) = (0, 0);
        thread::scope(|scope| {
            let (reading_ends, runs_end) = (Ending(&over), Ending(&finished));
            let runs: Vec<_> =
                upstream_names().into_iter().map(|upstream| scope.spawn(move || self.ingest(upstream, first, |_| true))).collect();
            let reading = scope.spawn(|| {
                for at in Nodes::of("api").into_iter().cycle() {
                    if over.load(Ordering::Relaxed) {
                        return;
                    }
                    if self.read(at, reader, &answers) != Some(true) {
                        thread::sleep(READ_EVERY);
                    }
                }
            });
            let finished = &finished;
            let struck: Vec<_> = faults
                .iter()
                .map(|fault| {
                    scope.spawn(move || {
                        let is_amid = self.wait_due(fault, requests, records, finished);
                        fault.strike(&self.servers, &self.proxies, &self.nodes);
                        is_amid
                    })
                })
                .collect();
            failures = runs.into_iter().map(|run| run.join().unwrap()).sum();
            drop(runs_end);
            amid = struck.into_iter().map(|fault| u8::from(fault.join().unwrap())).sum();
            self.nodes.wait_ready();
            drop(reading_ends);
            reading.join().unwrap();
        });
        // All is well again, so that nothing fails; at most a node is still at a run that was cut. What was withdrawn is believed the
        // second time.
        thread::scope(|scope| {
            for upstream in upstream_names() {
                scope.spawn(move || self.ingest(upstream, first, |words| words.contains("is being synced by another ingestor")));
            }
        });
        let (unavailable, lost) = (answers.unavailable.into_inner(), answers.lost.into_inner());
        format!("{amid} struck amid runs; {failures} runs failed, {unavailable} answers were 503, {lost} did not come")
    }

    /// Reads on at both nodes until the last change.
    fn read_to(&self, last: u64, reader: &mut Reader) {
        let (answers, mut at) = (Answers::default(), Nodes::of("api").into_iter().cycle());
        wait_for("the end of the feed", || {
            self.read(at.next().unwrap(), reader, &answers);
            (reader.to >= last).then_some(())
        });
        assert_eq!((answers.unavailable.into_inner(), answers.lost.into_inner()), (0, 0), "nothing is wrong any more");
    }
}

/// Records in the topics of facts and changes.
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

/// Proves that whatever of broker, database, connections and roles is killed, paused or cut off in the middle of runs, the records that
/// stand at the end are those of an undisturbed embedded engine that read the same upstreams at the same states, and that a reader by
/// cursor who goes from node to node sees each change once, in order, and meanwhile nothing worse than 503.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn faults_lose_and_repeat_nothing() {
    let is_ci = std::env::var("CI").is_ok();
    let rounds = chance::number("FAULT_ROUNDS").unwrap_or(if is_ci { ROUNDS_CI } else { ROUNDS });
    let seed = chance::seed("FAULT_SEED");
    println!("FAULT_ROUNDS={rounds} FAULT_SEED={seed}");
    let mut chance = Chance(seed);
    let Some(stage) = Stage::set(Played::start(seed % 1_000, RECORDS, fixed_clock()).await).await else { return };
    let dir = tempfile::tempdir().unwrap();
    let (embedded, settings) = (Engine::open(dir.path(), fixed_clock()).await, stage.played.settings());
    let mut reader = Reader::default();
    for round in 1..=usize::try_from(rounds).unwrap() {
        if round > 1 {
            stage.played.sim.advance(CHANGES);
        }
        let (requests, records) = (stage.requests(), appended(&*embedded.log).await.unwrap());
        embedded.run_all(&settings).await;
        let (requests, records) = (stage.requests() - requests, appended(&*embedded.log).await.unwrap() - records);
        embedded.run_all(&settings).await;
        let faults = Fault::draw(&mut chance, requests, records);
        let words: Vec<String> = faults.iter().map(Fault::to_string).collect();
        println!("round {round}: {}", words.join("; "));
        let (begun, wanted) = (Instant::now(), embedded.digest(false).await);
        let outcome = tokio::task::block_in_place(|| {
            let outcome = stage.round(&faults, &mut chance, &mut reader);
            let at = usize::try_from(chance.below(NODES.len() as u64)).unwrap();
            assert_eq!(stage.told(at, &["digest", "recalls"]).trim(), wanted, "round {round}: the digest at {}", NODES[at].0);
            let changes = lines(&stage.told(at, &["export", "changes.recalls"]));
            stage.read_to(changes.last().unwrap()["seq"].as_u64().unwrap(), &mut reader);
            assert_told(&reader.read, &changes);
            outcome
        });
        stage.nodes.assert_none_panicked();
        println!("round {round}: {outcome}; {:.1} s", begun.elapsed().as_secs_f64());
    }
    tokio::task::block_in_place(|| {
        // Those that no reader sees have a number, too.
        let seqs: Vec<u64> = lines(&stage.told(0, &["export", CHANGES_RECALLS.name, "--all"]))
            .iter()
            .map(|change| change["seq"].as_u64().unwrap())
            .collect();
        assert!(seqs.iter().copied().eq(1..=seqs.len() as u64), "the changes are numbered one by one");
    });
    stage.nodes.terminate();
    stage.log.close().await.unwrap();
    embedded.close().await;
}

/// Panics unless a reader was told each change of the log once, in its order.
fn assert_told(read: &[Value], logged: &[Value]) {
    let told = |changes: &[Value]| -> Vec<(u64, Value)> {
        changes.iter().map(|change| (change["seq"].as_u64().unwrap(), change["record"].clone())).collect()
    };
    let (read, logged) = (told(read), told(logged));
    let differs = read.iter().zip(&logged).find(|(read, logged)| read != logged);
    assert!(differs.is_none() && read.len() == logged.len(), "{} changes read, {} logged; {differs:?}", read.len(), logged.len());
}
