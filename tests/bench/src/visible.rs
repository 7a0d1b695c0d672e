//! The time from the append of a fact to its change in the feed. First many facts are appended at once, for the throughput of one
//! projector, then single ones, for the latency. With the embedded log and store everything is in one process; with Kafka and CQL the
//! projector is a separate process that shares only the servers with reader and ingestor.

use std::io::{BufRead as _, Read as _, Write as _};
use std::process::{Child, ChildStdout};
use std::sync::Arc;
use std::time::{Duration, Instant};

use event_log::kafka::KafkaLog;
use event_log::{Append, EventLog};
use rdkafka::consumer::{BaseConsumer, Consumer};
use rdkafka::producer::{FutureProducer, FutureRecord};
use rdkafka::topic_partition_list::{Offset, TopicPartitionList};
use schemas::position::{LogOffset, Seq};
use schemas::topics::{self, RECALLS, Topic, TopicKind};
use schemas::views::recalls::{self, FEED};
use scylla::client::session::Session;
use scylla::statement::prepared::PreparedStatement;
use scylla_store::ScyllaStore;
use serde_json::{Value, json};
use tokio::sync::mpsc;
use view_store::feed::read_page;
use view_store::{View, ViewStore};

use crate::engine::Engine;
use crate::report::{figure, heading, latency, line, memory_mib, number, processor_s, spawn};
use crate::{Failure, Settings, facts, servers};

/// Facts appended at once, before the single ones.
const BULK: usize = 20_000;
/// Facts in a batch.
const BATCH: usize = 500;
/// Single facts for each kind of reader.
const SINGLES: usize = 500;
/// The interval of a reader that polls.
const READER_POLL_INTERVAL: Duration = Duration::from_millis(2);
/// Changes a reader asks for.
const PAGE_CHANGES: usize = 200;
/// The time after which a fact counts as lost.
const VISIBILITY_TIMEOUT: Duration = Duration::from_secs(60);

const KAFKA: &str = "BENCH_KAFKA";
const CQL: &str = "BENCH_CQL";
const NAME: &str = "BENCH_NAME";
const REPLICATION: &str = "BENCH_REPLICATION";

/// How a reader notices a change.
#[derive(Clone, Copy)]
enum Reader {
    /// It polls the feed every few milliseconds.
    Polls,
    /// It waits on the view, as the API does for a cursor that is ahead of it.
    Waits,
}

/// The seconds of each single fact.
#[derive(Default)]
struct Seconds {
    /// From the call of append to its return.
    appended: Vec<f64>,
    /// From the call of append until a polling reader has the page with the change.
    polled: Vec<f64>,
    /// From the call of append until a waiting reader has the page with the change.
    waited: Vec<f64>,
}

impl Seconds {
    fn show(&self) {
        latency("one fact: appended", &self.appended);
        latency("... visible to a reader that polls every 2 ms", &self.polled);
        latency("... visible to a reader that waits", &self.waited);
    }
}

/// Runs `visible` with the embedded log and store.
pub(crate) fn embedded(settings: &Settings) -> Result<(), Failure> {
    heading("visible: from append to the feed, embedded log and store in one process");
    let runtime = tokio::runtime::Builder::new_multi_thread().enable_all().build()?;
    runtime.block_on(async {
        let facts = facts::of(settings, BULK + 2 * SINGLES).await?;
        let (bulk, singles) = facts.split_at(facts.len().saturating_sub(2 * SINGLES));
        let dir = tempfile::tempdir_in(&settings.dir)?;
        let engine = Engine::open(&dir.path().join("data")).await?;
        let view = engine.store.live(&recalls::VIEW).await?;
        append_bulk(&engine.log, &view, bulk).await?;
        let mut file = std::fs::File::create(dir.path().join("plain"))?;
        let (mut seconds, mut floor) = (Seconds::default(), Vec::new());
        for (turn, pair) in singles.chunks(2).enumerate() {
            single(&engine.log, &view, pair, turn, &mut seconds).await?;
            let started = Instant::now();
            file.write_all(&pair[0].record.value)?;
            file.sync_data()?;
            floor.push(started.elapsed().as_secs_f64());
        }
        seconds.show();
        latency("floor: write and fdatasync of the fact", &floor);
        engine.close().await
    })
}

/// Runs `visible` with Kafka and CQL.
pub(crate) fn on_servers(settings: &Settings, brokers: &str, node: &str) -> Result<(), Failure> {
    heading(&format!(
        "visible: from append to the feed, Kafka ({} brokers, replication {}) and CQL, the projector in a separate process",
        brokers.split(',').count(),
        settings.replication
    ));
    let runtime = tokio::runtime::Builder::new_multi_thread().enable_all().build()?;
    runtime.block_on(async {
        let facts = facts::of(settings, BULK + 2 * SINGLES).await?;
        let name = engines::unique("bench");
        let driver = engines::driver(node).await?;
        let measured = measure(settings, brokers, node, &name, &driver, &facts).await;
        // Keeps the data on the servers for inspection.
        if std::env::var_os("BENCH_KEEP").is_some() {
            figure("kept: prefix of topics, and keyspace", name);
            return measured;
        }
        engines::remove_topics(brokers, &format!("{name}.")).await?;
        engines::remove_keyspace(&driver, &name).await?;
        measured
    })
}

async fn measure(settings: &Settings, brokers: &str, node: &str, name: &str, driver: &Session, facts: &[Append]) -> Result<(), Failure> {
    let (bulk, singles) = facts.split_at(facts.len().saturating_sub(2 * SINGLES));
    let log: Arc<dyn EventLog> = KafkaLog::open(servers::log_options(brokers, name, topics::ALL, settings.replication)).await?;
    let store = ScyllaStore::open(servers::store_options(node, name)).await?;
    let view = store.live(&recalls::VIEW).await?;
    let projecting = Projecting::start(settings, brokers, node, name)?;
    append_bulk(&log, &view, bulk).await?;
    let mut floor = Floor::open(settings, brokers, name, driver).await?;
    let mut seconds = Seconds::default();
    for (turn, pair) in singles.chunks(2).enumerate() {
        single(&log, &view, pair, turn, &mut seconds).await?;
        floor.measure(turn, &pair[0]).await?;
    }
    seconds.show();
    floor.show();
    engines::remove_topics(brokers, &floor.options.prefix).await?;
    let report = projecting.stop()?;
    let cpu = report.get("cpu").cloned().unwrap_or_default();
    figure("projector's process: processor time, s", format!("{:.1}", number(&cpu, "total")));
    figure("... peak memory, MiB", format!("{:.0}", number(&report, "memory_mib")));
    store.close().await?;
    log.close().await?;
    Ok(())
}

/// Appends many facts and waits until the view has processed them.
async fn append_bulk(log: &Arc<dyn EventLog>, view: &Arc<dyn View>, facts: &[Append]) -> Result<(), Failure> {
    let started = Instant::now();
    for batch in facts.chunks(BATCH) {
        log.append(batch.to_vec()).await?;
    }
    let appended_s = started.elapsed().as_secs_f64();
    for partition in 0..RECALLS.partitions {
        let end = log.end(&RECALLS, partition).await?;
        view_store::engine::wait_past(&**view, &RECALLS, partition, end).await?;
    }
    let (visible_s, changes) = (started.elapsed().as_secs_f64(), view.checkpoint().await?.seq);
    figure("facts at once", facts.len());
    figure("changes decided", changes);
    figure("facts appended per second", format!("{:.0}", facts.len() as f64 / appended_s));
    figure("facts visible per second", format!("{:.0}", facts.len() as f64 / visible_s));
    Ok(())
}

/// Appends two facts, one after the other, each followed by a read of its page.
async fn single(log: &Arc<dyn EventLog>, view: &Arc<dyn View>, pair: &[Append], turn: usize, seconds: &mut Seconds) -> Result<(), Failure> {
    for (fact, reader) in pair.iter().zip([Reader::Polls, Reader::Waits]) {
        // Waits until the projector is idle, for a time that is not in step with any timer.
        tokio::time::sleep(Duration::from_millis(20 + turn as u64 * 7 % 53)).await;
        let seen = view.checkpoint().await?;
        let started = Instant::now();
        let offset = *log.append(vec![fact.clone()]).await?.first().ok_or("no offset was answered")?;
        seconds.appended.push(started.elapsed().as_secs_f64());
        let read = tokio::time::timeout(VISIBILITY_TIMEOUT, read_change(&**view, fact, offset, seen.seq, reader)).await;
        read.map_err(|_| format!("a fact was not visible after {VISIBILITY_TIMEOUT:?}"))??;
        match reader {
            Reader::Polls => seconds.polled.push(started.elapsed().as_secs_f64()),
            Reader::Waits => seconds.waited.push(started.elapsed().as_secs_f64()),
        }
    }
    Ok(())
}

/// Reads the page after `after` once the view has processed a fact.
async fn read_change(view: &dyn View, fact: &Append, offset: LogOffset, after: Seq, reader: Reader) -> Result<(), Failure> {
    let end = offset.next();
    let now = match reader {
        Reader::Polls => loop {
            let now = view.checkpoint().await?;
            if now.position(&RECALLS, fact.partition) >= end {
                break now;
            }
            tokio::time::sleep(READER_POLL_INTERVAL).await;
        },
        Reader::Waits => {
            view_store::engine::wait_past(view, &RECALLS, fact.partition, end).await?;
            view.checkpoint().await?
        }
    };
    let page = read_page(view, &FEED, after, now.seq, PAGE_CHANGES).await?;
    if page.to == now.seq { Ok(()) } else { Err("a page is short".into()) }
}

/// The lower limit of a reader's latency: one send with the client alone until a consumer has it, then one row written and read with the
/// driver alone.
struct Floor<'a> {
    options: event_log::kafka::Options,
    producer: FutureProducer,
    arrived: mpsc::UnboundedReceiver<()>,
    driver: &'a Session,
    insert: PreparedStatement,
    select: PreparedStatement,
    log: Vec<f64>,
    store: Vec<f64>,
    all: Vec<f64>,
}

static FLOOR: &[Topic] = &[Topic { name: "floor", kind: TopicKind::Facts, partitions: 1, private: false }];

impl<'a> Floor<'a> {
    async fn open(settings: &Settings, brokers: &str, name: &str, driver: &'a Session) -> Result<Self, Failure> {
        let options = servers::log_options(brokers, name, FLOOR, settings.replication);
        // Creates the topic.
        KafkaLog::open(options.clone()).await?.close().await?;
        let producer = options.producer().set("linger.ms", "0").create()?;
        let consumer: BaseConsumer = options.consumer().create()?;
        let mut list = TopicPartitionList::new();
        list.add_partition_offset(&options.name_of(&FLOOR[0]), 0, Offset::Offset(0))?;
        consumer.assign(&list)?;
        let (arriving, arrived) = mpsc::unbounded_channel();
        std::thread::spawn(move || {
            while !arriving.is_closed() {
                if let Some(Ok(message)) = consumer.poll(Duration::from_millis(100))
                    && message.payload_len() > 0
                    && arriving.send(()).is_err()
                {
                    return;
                }
            }
        });
        driver.query_unpaged(format!("CREATE TABLE {name}.floor (id bigint PRIMARY KEY, value blob)"), ()).await?;
        let insert = driver.prepare(format!("INSERT INTO {name}.floor (id, value) VALUES (?, ?)")).await?;
        let select = driver.prepare(format!("SELECT value FROM {name}.floor WHERE id = ?")).await?;
        Ok(Self { options, producer, arrived, driver, insert, select, log: Vec::new(), store: Vec::new(), all: Vec::new() })
    }

    async fn measure(&mut self, turn: usize, fact: &Append) -> Result<(), Failure> {
        let (started, id, name) = (Instant::now(), i64::try_from(turn)?, self.options.name_of(&FLOOR[0]));
        let message: FutureRecord<'_, [u8], [u8]> = FutureRecord::to(&name).partition(0).payload(&fact.record.value[..]);
        self.producer.send_result(message).map_err(|(error, _)| error)?.await?.map_err(|(error, _)| error)?;
        self.arrived.recv().await.ok_or("the consumer ended")?;
        let log = started.elapsed().as_secs_f64();
        self.driver.execute_unpaged(&self.insert, (id, &fact.record.value[..])).await?;
        self.driver.execute_unpaged(&self.select, (id,)).await?.into_rows_result()?.first_row::<(Vec<u8>,)>()?;
        let all = started.elapsed().as_secs_f64();
        self.log.push(log);
        self.store.push(all - log);
        self.all.push(all);
        Ok(())
    }

    fn show(&self) {
        latency("floor: sent and received, written and read", &self.all);
        latency("... sent and received by rdkafka alone", &self.log);
        latency("... written and read by the driver alone", &self.store);
    }
}

/// The projector's process.
struct Projecting {
    child: Child,
    output: std::io::BufReader<ChildStdout>,
}

impl Projecting {
    fn start(settings: &Settings, brokers: &str, node: &str, name: &str) -> Result<Self, Failure> {
        let variables =
            [(KAFKA, brokers.to_owned()), (CQL, node.to_owned()), (NAME, name.to_owned()), (REPLICATION, settings.replication.to_string())];
        let mut child = spawn(settings, "project-child", &variables)?;
        let output = child.stdout.take().ok_or("the projector has no output")?;
        let mut this = Self { child, output: std::io::BufReader::new(output) };
        let mut first = String::new();
        this.output.read_line(&mut first)?;
        if first.trim() == "projecting" { Ok(this) } else { Err("the projector did not start".into()) }
    }

    /// Stops the process cleanly; returns its report.
    fn stop(mut self) -> Result<Value, Failure> {
        drop(self.child.stdin.take());
        let mut last = String::new();
        self.output.read_line(&mut last)?;
        Ok(serde_json::from_str(&last)?)
    }
}

impl Drop for Projecting {
    fn drop(&mut self) {
        // A process that has ended is only waited for.
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

/// `project-child`: projects until its input ends.
pub(crate) fn child() -> Result<(), Failure> {
    let runtime = tokio::runtime::Builder::new_multi_thread().enable_all().build()?;
    runtime.block_on(async {
        let (brokers, node, name) = (std::env::var(KAFKA)?, std::env::var(CQL)?, std::env::var(NAME)?);
        let replication = std::env::var(REPLICATION)?.parse()?;
        let log = KafkaLog::open(servers::log_options(&brokers, &name, topics::ALL, replication)).await?;
        let store = ScyllaStore::open(servers::store_options(&node, &name)).await?;
        let engine = Engine::with_backends(log, store, true).await?;
        line("projecting");
        tokio::task::spawn_blocking(|| std::io::stdin().read_to_end(&mut Vec::new())).await??;
        let (memory_mib, cpu) = (memory_mib(std::process::id())?, processor_s());
        engine.close().await?;
        line(&json!({ "memory_mib": memory_mib, "cpu": cpu }).to_string());
        Ok(())
    })
}
