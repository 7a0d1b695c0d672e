//! What the benchmarks share that load a service: facts go through the log, `decide` and `apply`, as in operation; then the times, the memory, the
//! disk and the records of the service are known.

use std::collections::HashMap;
use std::collections::hash_map::Entry;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::Instant;

use event_log::Append;
use projector::rebuild::Progress;
use schemas::avro::Encoder;
use schemas::clock::Clock;
use schemas::event::Head;
use schemas::facts::FactData;
use schemas::position::LogOffset;
use schemas::tables::ViewDef;
use schemas::topics::Topic;
use schemas::views::records::RecordTables;
use serde_json::{Value, json};
use view_store::ViewStore as _;
use view_store::embedded::{EmbeddedStore, Options};
use view_store::store::Span;

use crate::engine::Engine;
use crate::report::{figure, line, memory_mib, number, ratio};
use crate::{Failure, Settings, facts};

const APPEND_RECORDS: usize = 2_000;
/// The largest read of a topic or table, as in the projector.
const READ_RECORDS: usize = 2_000;
const READ_BYTES: usize = 4 << 20;
/// The most memory of a process that loads or serves a service, in MiB.
const MEMORY_MIB_MAX: f64 = 500.0;

/// A service that is loaded.
#[derive(Clone, Copy)]
pub(crate) struct Loaded {
    /// The name of the service.
    pub(crate) service: &'static str,
    /// The tables of the service.
    pub(crate) tables: &'static RecordTables,
    /// The topics of the facts.
    pub(crate) topics: &'static [Topic],
    /// The topics that the service decides from.
    pub(crate) inputs: &'static [Topic],
    /// The services whose changes it decides from.
    pub(crate) before: &'static [&'static str],
}

/// A fact to load.
pub(crate) struct Observed {
    pub(crate) key: String,
    pub(crate) data: FactData,
    /// When it was observed, in milliseconds since 1970.
    pub(crate) at_ms: i64,
    /// Whether there are further facts of the key. The heads of such keys are remembered, so that their facts form chains.
    pub(crate) is_one_of_many: bool,
}

impl Observed {
    /// The only fact of a key, which is observed now.
    pub(crate) fn now(key: String, data: FactData) -> Self {
        Self::at(key, data, Clock::System.now().as_millisecond())
    }

    /// The only fact of a key.
    pub(crate) fn at(key: String, data: FactData, at_ms: i64) -> Self {
        Self { key, data, at_ms, is_one_of_many: false }
    }

    /// One of several facts of the key.
    pub(crate) fn one_of_many(self) -> Self {
        Self { is_one_of_many: true, ..self }
    }
}

/// Facts that are made when they are loaded, so that they are no part of the memory before.
pub(crate) type LaterFacts = Box<dyn Iterator<Item = Observed>>;

/// What is loaded.
pub(crate) struct Plan<I> {
    /// The facts, in their order.
    pub(crate) facts: I,
    /// Facts that come after all others are decided, in batches whose time is measured, each with the name of its seconds in the report.
    pub(crate) later: Vec<(&'static str, LaterFacts)>,
    /// Whether to decide everything again.
    pub(crate) redecides: bool,
}

impl Loaded {
    /// The directory of the data.
    pub(crate) fn dir(&self, settings: &Settings) -> PathBuf {
        settings.dir.join(format!("{}-{}", self.service, settings.records))
    }

    /// Lets the service decide everything.
    async fn decide(&self, engine: &Engine) -> Result<(), Failure> {
        for name in self.before.iter().chain([&self.service]) {
            engine.projector.service(name)?.catch_up().await?;
        }
        Ok(())
    }

    /// Waits until the service has processed all facts.
    pub(crate) async fn wait_decided(&self, engine: &Engine) -> Result<(), Failure> {
        wait_projected(engine, self.tables.view, self.inputs).await
    }

    /// The number of facts.
    async fn facts(&self, engine: &Engine) -> Result<u64, Failure> {
        let mut facts = 0;
        for topic in self.topics {
            for partition in 0..topic.partitions {
                facts += engine.log.end(topic, partition).await?.0;
            }
        }
        Ok(facts)
    }

    /// Reads the topics, and discards what is read. Returns the seconds.
    async fn read_alone(&self, engine: &Engine) -> Result<f64, Failure> {
        let started = Instant::now();
        for topic in self.topics {
            for partition in 0..topic.partitions {
                let mut next = LogOffset(0);
                while let Some(last) = engine.log.read(topic, partition, next, READ_RECORDS, READ_BYTES).await?.last() {
                    next = last.offset.next();
                }
            }
        }
        Ok(started.elapsed().as_secs_f64())
    }

    /// Gives each current record to a function, in the order of their ids. Returns how many there are. No process may have the store open.
    pub(crate) async fn each_record(
        &self,
        settings: &Settings,
        mut take: impl FnMut(&Value) -> Result<(), Failure>,
    ) -> Result<u64, Failure> {
        let store = EmbeddedStore::open(&self.dir(settings).join("views"), Options::default())?;
        let view = store.live(self.tables.view).await?;
        let mut scan = view.scan(self.tables.records, Span::default());
        let mut records = 0;
        loop {
            let rows = scan.next(READ_RECORDS).await?;
            if rows.is_empty() {
                break;
            }
            for (_, row) in rows {
                let row: Value = serde_json::from_slice(&row)?;
                take(row.get("record").ok_or("a row without its record")?)?;
                records += 1;
            }
        }
        drop((scan, view));
        store.close().await?;
        Ok(records)
    }
}

/// Waits until a view has processed everything in some topics.
async fn wait_projected(engine: &Engine, view: &'static ViewDef, topics: &'static [Topic]) -> Result<(), Failure> {
    let live = engine.store.live(view).await?;
    for topic in topics {
        for partition in 0..topic.partitions {
            view_store::engine::wait_past(&*live, topic, partition, engine.log.end(topic, partition).await?).await?;
        }
    }
    Ok(())
}

/// Makes records of facts.
#[derive(Default)]
struct Appender {
    encoders: HashMap<&'static str, Encoder>,
    /// The heads of keys with several facts.
    heads: HashMap<String, Head>,
}

impl Appender {
    fn record(&mut self, Observed { key, data, at_ms, is_one_of_many }: &Observed) -> Result<Append, Failure> {
        let topic = data.topic().name;
        let encoder = match self.encoders.entry(topic) {
            Entry::Occupied(known) => known.into_mut(),
            Entry::Vacant(free) => free.insert(Encoder::new(topic)?),
        };
        let mut alone = Head::default();
        let head = if *is_one_of_many { self.heads.entry(key.clone()).or_default() } else { &mut alone };
        facts::observe(encoder, head, key, data, *at_ms)
    }

    /// Appends facts without waiting for their projection, but for the first `known` ones, which are in the log already. Returns how many facts there are,
    /// and how many of them were appended.
    async fn append(&mut self, engine: &Engine, known: u64, facts: impl Iterator<Item = Observed>) -> Result<(u64, u64), Failure> {
        let mut batch: Vec<Append> = Vec::with_capacity(APPEND_RECORDS);
        let (mut planned, mut appended) = (0, 0);
        for fact in facts {
            planned += 1;
            if planned <= known {
                if fact.is_one_of_many {
                    self.record(&fact)?;
                }
                continue;
            }
            batch.push(self.record(&fact)?);
            appended += 1;
            if batch.len() >= APPEND_RECORDS {
                engine.log.append(std::mem::take(&mut batch)).await?;
            }
        }
        if !batch.is_empty() {
            engine.log.append(batch).await?;
        }
        Ok((planned, appended))
    }
}

/// Appends facts to an engine. Returns how many there are.
pub(crate) async fn append(engine: &Engine, facts: impl Iterator<Item = Observed>) -> Result<u64, Failure> {
    Ok(Appender::default().append(engine, 0, facts).await?.1)
}

/// Runs a hidden load command: appends the facts that are missing, lets the service decide them, then each later batch; prints the times, memory and
/// disk. An interrupted load is continued.
pub(crate) fn child(settings: &Settings, loaded: Loaded, plan: Plan<impl Iterator<Item = Observed>>) -> Result<(), Failure> {
    let runtime = tokio::runtime::Builder::new_multi_thread().enable_all().build()?;
    let mut result = runtime.block_on(load(settings, loaded, plan))?;
    let dir = loaded.dir(settings);
    result["log_bytes"] = json!(bytes_of(&dir.join("log"))?);
    result["view_bytes"] = json!(bytes_of(&dir.join("views"))?);
    result["memory_mib"] = json!(memory_mib(std::process::id())?);
    line(&result.to_string());
    Ok(())
}

async fn load(settings: &Settings, loaded: Loaded, plan: Plan<impl Iterator<Item = Observed>>) -> Result<Value, Failure> {
    let engine = Engine::open_with(&loaded.dir(settings), false).await?;
    let service = engine.projector.service(loaded.service)?;
    let changes_before = service.checkpoint().await?.seq.0;
    let known = loaded.facts(&engine).await?;
    let started = Instant::now();
    let mut appender = Appender::default();
    let (planned, appended) = appender.append(&engine, known, plan.facts).await?;
    let append_s = started.elapsed().as_secs_f64();
    wait_projected(&engine, &schemas::views::engine::VIEW, loaded.topics).await?;
    let heads_s = started.elapsed().as_secs_f64();
    let raw_s = loaded.read_alone(&engine).await?;
    let started = Instant::now();
    loaded.decide(&engine).await?;
    let decide_s = started.elapsed().as_secs_f64();
    let mut result = json!({
        "facts": loaded.facts(&engine).await?,
        "appended": appended,
        "append_s": append_s,
        "heads_s": heads_s,
        "raw_s": raw_s,
        "decide_s": decide_s,
        "decided": service.checkpoint().await?.seq.0 - changes_before,
    });
    let mut known_later = known.saturating_sub(planned);
    for (name, batch) in plan.later {
        let batch: Vec<Observed> = batch.collect();
        let started = Instant::now();
        let (planned, appended) = appender.append(&engine, known_later, batch.into_iter()).await?;
        known_later = known_later.saturating_sub(planned);
        if appended == 0 {
            continue;
        }
        wait_projected(&engine, &schemas::views::engine::VIEW, loaded.topics).await?;
        loaded.decide(&engine).await?;
        // A batch of which an earlier run appended a part is not measured.
        if appended == planned {
            result[name] = json!(started.elapsed().as_secs_f64());
        }
    }
    if plan.redecides {
        let quiet: Progress = Arc::new(|_, _| ());
        let started = Instant::now();
        let moved = service.redecide(&quiet).await?;
        if moved > 0 {
            return Err(format!("deciding again by the same rules moved {moved} records").into());
        }
        result["redecide_s"] = json!(started.elapsed().as_secs_f64());
    }
    result["changes"] = json!(service.checkpoint().await?.seq.0);
    let parked = service.parked().await?;
    if parked > 0 {
        return Err(format!("{parked} facts could not be decided").into());
    }
    engine.close().await?;
    Ok(result)
}

/// Prints what a load took, next to reading the same facts alone.
pub(crate) fn report(result: &Value) {
    let number_of = |name| number(result, name);
    let facts = number_of("facts");
    figure("raw read, facts a second", format!("{:.0}", facts / number_of("raw_s")));
    if number_of("appended") > 0.0 {
        figure("facts appended a second", format!("{:.0}", number_of("appended") / number_of("append_s")));
        figure("... with the latest-version index", format!("{:.0}", number_of("appended") / number_of("heads_s")));
        figure("deciding from nothing, facts a second", format!("{:.0}", facts / number_of("decide_s")));
        figure("deciding from nothing, changes a second", format!("{:.0}", number_of("decided") / number_of("decide_s")));
        figure("deciding / raw read", format!("{:.4}", number_of("raw_s") / number_of("decide_s")));
        memory("peak memory of the load, MiB", number_of("memory_mib"));
    }
}

/// Prints the seconds of a later batch with their limit, if it was measured in this run.
pub(crate) fn report_later(result: &Value, name: &str, about: &str, seconds_max: f64) {
    let seconds = number(result, name);
    if seconds > 0.0 {
        ratio(about, seconds, seconds <= seconds_max, &format!("<= {seconds_max}"));
    }
}

/// Prints the bytes on disk of a record: of the log, of the view, and of the peer's table with its indexes.
pub(crate) fn report_disk(result: &Value, records: u64, peer_bytes: Option<u64>) {
    let per_record = |bytes: f64| bytes / records.max(1) as f64;
    let facts = number(result, "facts").max(1.0);
    let bytes = number(result, "log_bytes") + number(result, "view_bytes");
    figure("disk of a fact, log and view, bytes", format!("{:.0}", bytes / facts));
    figure("current records", records);
    figure("disk of a record, log, bytes", format!("{:.0}", per_record(number(result, "log_bytes"))));
    figure("disk of a record, view, bytes", format!("{:.0}", per_record(number(result, "view_bytes"))));
    if let Some(bytes) = peer_bytes {
        figure("disk of a record, PostgreSQL, bytes", format!("{:.0}", per_record(bytes as f64)));
    }
}

/// Prints the memory of a process with its limit.
pub(crate) fn memory(about: &str, mib: f64) {
    ratio(about, mib, mib <= MEMORY_MIB_MAX, "<= 500");
}

/// The bytes of all files of a directory, with those of the directories in it.
fn bytes_of(dir: &Path) -> Result<u64, Failure> {
    let mut bytes = 0;
    for entry in std::fs::read_dir(dir)? {
        let entry = entry?;
        let is_dir = entry.file_type()?.is_dir();
        bytes += if is_dir { bytes_of(&entry.path())? } else { entry.metadata()?.len() };
    }
    Ok(bytes)
}
