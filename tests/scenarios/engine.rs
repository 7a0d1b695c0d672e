//! The engine in this process, with a clock and upstream faults that the test controls.

use std::collections::BTreeMap;
use std::net::SocketAddr;
use std::path::Path;
use std::sync::atomic::{AtomicU32, Ordering};
use std::sync::{Arc, LazyLock};
use std::time::Duration;

use event_log::EventLog;
use event_log::embedded::EmbeddedLog;
use ingest::{Error, Outcome, Runner};
use jiff::Timestamp;
use jiff::civil::Date;
use jiff::tz::TimeZone;
use projector::export;
use projector::rebuild::Parts;
use projector::runtime::{ProjectedService, Projector};
use proofs::receipt::SigningKeys;
use schemas::clock::Clock;
use schemas::event::FactKind;
use schemas::position::Seq;
use schemas::tables::ViewDef;
use schemas::topics::{self, CHANGES_RECALLS, RECALLS as FACTS, Topic};
use schemas::views::engine::VIEW as ENGINE_VIEW;
use schemas::views::recalls::{FEED, RECALLS, Row, VIEW};
use serde_json::Value;
use simulator::{ExpectedChange, Options, Simulator};
use table_file::Format;
use tokio::sync::{oneshot, watch};
use tokio::task::JoinHandle;
use upstreams::shopify::{Options as ShopifyOptions, Store};
use upstreams::{OwnOptions, Settings};
use view_store::embedded::EmbeddedStore;
use view_store::{View, ViewStore};

use crate::child::within;

/// How many directories for downloaded files were named.
static DOWNLOAD_DIRECTORIES: AtomicU32 = AtomicU32::new(0);

/// The most ordinary stories of a simulated day. A request is needed for each hour, so scenarios about other records have few.
const STORIES_A_DAY_MAX: u64 = 60;

/// The most articles of a simulated list of page views.
const ARTICLES_MAX: u64 = 100;

/// The seed of the key that signs receipts.
pub(crate) const RECEIPT_SEED: [u8; 32] = [5; 32];

/// The time of the scenarios' fixed clock.
pub(crate) const NOW: &str = "2026-11-20T12:00:00Z";

/// Returns a clock fixed at [`NOW`].
pub(crate) fn fixed_clock() -> Clock {
    Clock::Fixed(NOW.parse().unwrap())
}

/// Returns the clock of this test process, which began at [`NOW`] and moves. No test depends on the day on which it runs.
pub(crate) fn moving_clock() -> Clock {
    static CLOCK: LazyLock<Clock> = LazyLock::new(|| Clock::starting_at(NOW.parse().unwrap()));
    *CLOCK
}

/// Returns noon of a day in UTC.
pub(crate) fn noon(day: Date) -> Timestamp {
    day.at(12, 0, 0, 0).to_zoned(TimeZone::UTC).unwrap().timestamp()
}

/// The options of a simulation with few stories, on the day of the clock.
fn options(seed: u64, records: u64, clock: Clock) -> Options {
    let today = clock.now().to_zoned(TimeZone::UTC).date();
    Options { seed, records, today, clock, stories_a_day_max: STORIES_A_DAY_MAX, articles_max: ARTICLES_MAX, ..Options::default() }
}

/// The simulated upstreams, served on their own port until dropped.
pub(crate) struct SimulatedUpstreams {
    pub(crate) sim: Arc<Simulator>,
    pub(crate) base_url: String,
    _stop: oneshot::Sender<()>,
}

impl SimulatedUpstreams {
    /// Starts a simulation of `records` recalls and of few stories from a seed. Records change only by [`Simulator::advance`].
    pub(crate) async fn start(seed: u64, records: u64, clock: Clock) -> Self {
        Self::with_options(options(seed, records, clock)).await
    }

    /// Starts a simulation with at most `stories_a_day_max` ordinary stories a day.
    pub(crate) async fn with_stories(seed: u64, records: u64, clock: Clock, stories_a_day_max: u64) -> Self {
        Self::with_options(Options { stories_a_day_max, ..options(seed, records, clock) }).await
    }

    /// Starts a simulation in which no upstream publishes what a reader must refuse.
    pub(crate) async fn without_bad_files(seed: u64, records: u64, clock: Clock) -> Self {
        Self::with_options(Options { has_bad_files: false, ..options(seed, records, clock) }).await
    }

    async fn with_options(options: Options) -> Self {
        let sim = Simulator::new(options);
        let (stop, stopped) = oneshot::channel::<()>();
        let shutdown = async move { drop(stopped.await) };
        let (bound, serving) = Arc::clone(&sim).bind(SocketAddr::from(([127, 0, 0, 1], 0)), shutdown).await.unwrap();
        tokio::spawn(serving);
        Self { sim, base_url: format!("http://{bound}"), _stop: stop }
    }

    /// Sets these faults and clears all others.
    pub(crate) fn faults(&self, faults: &[(&str, f64)], only: &str) {
        let mut all = simulator::Faults::default();
        for (name, value) in faults {
            all.set(name, *value).unwrap();
        }
        all.set_text("only", only).unwrap();
        self.sim.replace_faults(all);
    }

    /// Advances the upstreams until an expected change matches; returns it.
    pub(crate) fn advance_until(&self, fits: impl Fn(&ExpectedChange) -> bool) -> ExpectedChange {
        let from = self.sim.expected_changes().len() as u64;
        for _ in 0..5_000 {
            self.sim.advance(1);
            if let Some(entry) = self.sim.expected_changes_after(from).into_iter().find(|entry| fits(entry)) {
                return entry;
            }
        }
        panic!("no expected change matches");
    }

    pub(crate) fn settings(&self) -> Settings {
        // Each run of a later day polls all stores.
        let store = |(host, niche): &(&str, &str)| Store { host: (*host).to_owned(), niche: (*niche).to_owned(), interval_s: 86_400 };
        let stores = simulator::STORES.iter().map(store).collect();
        let own = OwnOptions::new(ShopifyOptions { stores, ..ShopifyOptions::default() });
        Settings { own, api_key: Some(simulator::KEY.to_owned()), ..settings(&self.base_url) }
    }
}

/// Returns settings for any upstream at an address.
pub(crate) fn settings(base_url: &str) -> Settings {
    Settings {
        base_url: Some(base_url.to_owned()),
        api_key: None,
        user_agent: "highwater-scenarios/0 (tests)".to_owned(),
        requests_per_second: 10_000.0,
        window_days: 365,
        backfill_days: 0,
        own: OwnOptions::default(),
    }
}

/// The upstreams from which the recalls service is decided.
pub(crate) const RECALL_UPSTREAMS: &[&str] = &["cpsc", "fsis", "nhtsa", "openfda"];

/// Returns the names of the simulated upstreams.
pub(crate) fn upstream_names() -> Vec<&'static str> {
    simulator::UPSTREAMS.to_vec()
}

/// Returns the arguments of a command that syncs some upstreams, one after another in one process.
pub(crate) fn ingest_of<'a>(upstreams: &[&'a str]) -> Vec<&'a str> {
    [&["ingest", "--once"], upstreams].concat()
}

/// An open engine. Its projector runs until [`Engine::close`].
pub(crate) struct Engine {
    pub(crate) log: Arc<dyn EventLog>,
    pub(crate) store: Arc<dyn ViewStore>,
    pub(crate) parts: Parts,
    pub(crate) projector: Arc<Projector>,
    pub(crate) runner: Runner,
    /// The public half of a key that receipts can be signed with; the log does not name a key yet.
    pub(crate) receipt_key: String,
    stop: watch::Sender<bool>,
    tasks: Vec<JoinHandle<()>>,
}

impl Engine {
    /// Opens the directories in the binary's layout, and starts the projector.
    pub(crate) async fn open(dir: &Path, clock: Clock) -> Self {
        let mut this = Self::open_without_projector(dir, clock).await;
        this.start(Arc::clone(&this.projector), "projector");
        this
    }

    /// Opens the directories without a running projector.
    pub(crate) async fn open_without_projector(dir: &Path, clock: Clock) -> Self {
        let (log, store) = backends(dir);
        Self::with_backends(log, store, clock).await
    }

    /// Opens the directories and starts the projector, which decides some services, next to those that every process decides.
    pub(crate) async fn open_with(dir: &Path, clock: Clock, served: &[&str]) -> Self {
        let mut this = Self::idle_with(dir, clock, served).await;
        this.start(Arc::clone(&this.projector), "projector");
        this
    }

    /// Opens the directories as [`Self::open_with`] does, without a running projector.
    pub(crate) async fn idle_with(dir: &Path, clock: Clock, served: &[&str]) -> Self {
        let (log, store) = backends(dir);
        let projected = services::selected(|name| served.contains(&name)).projected;
        Self::with_services(log, store, clock, &projected).await
    }

    /// Opens an engine without a running projector over any log and store.
    pub(crate) async fn with_backends(log: Arc<dyn EventLog>, store: Arc<dyn ViewStore>, clock: Clock) -> Self {
        Self::with_services(log, store, clock, services::projected_services()).await
    }

    /// Opens an engine as [`Self::with_backends`] does, which decides only some services.
    pub(crate) async fn with_services(
        log: Arc<dyn EventLog>,
        store: Arc<dyn ViewStore>,
        clock: Clock,
        projected: &[ProjectedService],
    ) -> Self {
        let engine = store.live(&ENGINE_VIEW).await.unwrap();
        let keys = SigningKeys::default();
        let receipt_key = keys.add(&RECEIPT_SEED);
        let keys = Arc::new(keys);
        let parts = Parts {
            log: Arc::clone(&log),
            store: Arc::clone(&store),
            engine,
            // As long as the process, like the list of all services.
            services: projected.iter().map(|service| service.def).collect::<Vec<_>>().leak(),
            projected: projected.iter().map(|service| service.def).collect(),
            clock,
            keys,
            signing_check: None,
        };
        let projector = Arc::new(Projector::open(parts.clone(), projected).await.unwrap());
        let (stop, stopping) = watch::channel(false);
        let runner = runner_of(&parts, clock, "runner", stopping);
        Self { log, store, parts, projector, runner, receipt_key, stop, tasks: Vec::new() }
    }

    /// Starts another projector in addition to those that run.
    pub(crate) fn start(&mut self, projector: Arc<Projector>, holder: &str) {
        self.tasks.push(tokio::spawn(projector.run(holder.to_owned(), self.stop.subscribe())));
    }

    /// Returns another runner over the same log and store.
    pub(crate) fn other_runner(&self, clock: Clock, holder: &str) -> Runner {
        runner_of(&self.parts, clock, holder, self.stop.subscribe())
    }

    /// Keeps the lease of a stream's upstream for an hour: leases run in real time, also while a test holds their holder.
    pub(crate) async fn extend_lease(&self, stream: &str) {
        let (rows, name) = (self.store.coordination(), ingest_lease(stream));
        let holder = rows.holder(&name).await.unwrap().unwrap();
        assert!(rows.lease(&name, &holder, Duration::from_secs(3_600)).await.unwrap());
    }

    /// Releases the lease of a stream's upstream, as if it had expired.
    pub(crate) async fn end_lease(&self, stream: &str) {
        let (rows, name) = (self.store.coordination(), ingest_lease(stream));
        if let Some(holder) = rows.holder(&name).await.unwrap() {
            rows.release(&name, &holder).await.unwrap();
        }
    }

    /// Syncs one upstream.
    pub(crate) async fn run(&self, name: &str, settings: &Settings) -> Vec<Result<Outcome, Error>> {
        self.runner.sync(upstreams::by_name(name).unwrap(), settings).await.unwrap()
    }

    /// Syncs all upstreams concurrently, asserts that all streams finish, and waits until the facts are projected.
    pub(crate) async fn run_all(&self, settings: &Settings) -> Vec<Outcome> {
        self.run_some(&upstream_names(), settings).await
    }

    /// Syncs some upstreams as [`Self::run_all`] does.
    pub(crate) async fn run_some(&self, names: &[&str], settings: &Settings) -> Vec<Outcome> {
        let runs = names.iter().map(|name| self.run(name, settings));
        let outcomes = futures_util::future::join_all(runs).await.into_iter().flatten().map(|outcome| outcome.unwrap()).collect();
        self.wait_projected().await;
        outcomes
    }

    /// Waits until the recalls service has processed all facts.
    pub(crate) async fn wait_projected(&self) {
        for partition in 0..FACTS.partitions {
            let end = self.log.end(&FACTS, partition).await.unwrap();
            loop {
                let view = self.view().await;
                let projected = view_store::engine::wait_past(&*view, &FACTS, partition, end);
                match within("the projection of the facts", projected).await {
                    Err(view_store::Error::Gone { .. }) => {}
                    result => break result.unwrap(),
                }
            }
        }
    }

    /// Waits until a view has all facts of some topics.
    pub(crate) async fn wait_for_view(&self, def: &'static ViewDef, topics: &'static [Topic]) {
        let view = self.store.live(def).await.unwrap();
        for topic in topics {
            for partition in 0..topic.partitions {
                let end = self.log.end(topic, partition).await.unwrap();
                let projected = view_store::engine::wait_past(&*view, topic, partition, end);
                within(&format!("the projection of {} to {}", topic.name, def.name), projected).await.unwrap();
            }
        }
    }

    /// Returns the live view of the recalls.
    pub(crate) async fn view(&self) -> Arc<dyn View> {
        self.store.live(&VIEW).await.unwrap()
    }

    /// Returns a topic's export, parsed.
    pub(crate) async fn export(&self, topic: &str, all: bool) -> Vec<Value> {
        let mut out = Vec::new();
        let mut write = |bytes: &[u8]| {
            out.extend_from_slice(bytes);
            true
        };
        export::export(&self.parts, topics::by_name(topic).unwrap(), Format::Ndjson, all, |_, _| (), &mut write).await.unwrap();
        out.split(|byte| *byte == b'\n').filter(|line| !line.is_empty()).map(|line| serde_json::from_slice(line).unwrap()).collect()
    }

    /// Returns the facts about records, in log order.
    pub(crate) async fn facts(&self) -> Vec<Value> {
        self.export(FACTS.name, false).await
    }

    /// Returns the visible changes of the recalls, as exported from the log.
    pub(crate) async fn changes(&self) -> Vec<Value> {
        self.export(CHANGES_RECALLS.name, false).await
    }

    /// Returns the whole feed as readers get it, page by page, as bytes.
    pub(crate) async fn feed_bytes(&self, limit: usize) -> Vec<u8> {
        let view = self.view().await;
        let upto = view.checkpoint().await.unwrap().seq;
        let (mut after, mut out) = (Seq(0), Vec::new());
        while after < upto {
            let page = view_store::feed::read_page(&*view, &FEED, after, upto, limit).await.unwrap();
            assert_eq!(page.from, after.next(), "pages must be contiguous");
            assert!(page.to > after, "a page must advance");
            for part in page.parts {
                if !out.is_empty() {
                    out.push(b',');
                }
                out.extend_from_slice(&part);
            }
            after = page.to;
        }
        out
    }

    /// Returns the whole feed, parsed.
    pub(crate) async fn feed(&self) -> Vec<Value> {
        let bytes = self.feed_bytes(200).await;
        serde_json::from_slice(&[b"[", bytes.as_slice(), b"]"].concat()).unwrap()
    }

    /// Returns the current records, by id.
    pub(crate) async fn records(&self) -> BTreeMap<String, Row> {
        let view = self.view().await;
        let (mut out, mut scan) = (BTreeMap::new(), view.scan(&RECALLS, view_store::store::Span::default()));
        loop {
            let rows = scan.next(1_000).await.unwrap();
            if rows.is_empty() {
                return out;
            }
            for (_, value) in rows {
                let row: Row = serde_json::from_slice(&value).unwrap();
                out.insert(row.record.id.clone(), row);
            }
        }
    }

    /// Returns the digest of the recalls.
    pub(crate) async fn digest(&self, history: bool) -> String {
        self.digest_of(&self.projector, history).await
    }

    /// Returns the digest of the recalls in another projector's view.
    pub(crate) async fn digest_of(&self, projector: &Projector, history: bool) -> String {
        projector.service("recalls").unwrap().digest(history, None).await.unwrap().to_string()
    }

    /// Stops the projector and closes log and store.
    pub(crate) async fn close(self) {
        self.stop.send_replace(true);
        for task in self.tasks {
            within("the end of a projector", task).await.unwrap();
        }
        self.store.close().await.unwrap();
        self.log.close().await.unwrap();
    }
}

/// Opens the embedded log and store of a directory.
fn backends(dir: &Path) -> (Arc<dyn EventLog>, Arc<dyn ViewStore>) {
    std::fs::create_dir_all(dir).unwrap();
    let log: Arc<dyn EventLog> = EmbeddedLog::open(&dir.join("log"), event_log::embedded::Options::default()).unwrap();
    let store: Arc<dyn ViewStore> = EmbeddedStore::open(&dir.join("views"), view_store::embedded::Options::default()).unwrap();
    (log, store)
}

/// Returns the name of the lease of a stream's upstream.
fn ingest_lease(stream: &str) -> String {
    format!("ingest/{}", stream.split('.').next().unwrap_or(stream))
}

/// Returns a runner over the parts of an engine.
pub(crate) fn runner_of(parts: &Parts, clock: Clock, holder: &str, stop: watch::Receiver<bool>) -> Runner {
    let Parts { log, store, engine, .. } = parts.clone();
    // Two engines of a test must not share downloaded files.
    let number = DOWNLOAD_DIRECTORIES.fetch_add(1, Ordering::Relaxed);
    let downloads = std::env::temp_dir().join(format!("highwater-downloads-{}-{number}", std::process::id()));
    Runner::new(log, store, engine, clock, holder.to_owned(), stop).with_downloads(downloads)
}

/// Filters facts by kind.
pub(crate) fn of_kind(facts: &[Value], kind: FactKind) -> Vec<&Value> {
    facts.iter().filter(|fact| fact["kind"] == kind.as_str()).collect()
}

/// Returns the keys that are at the upstreams according to the facts: observed and not withdrawn.
pub(crate) fn current_records(facts: &[Value]) -> BTreeMap<String, &Value> {
    let mut out = BTreeMap::new();
    for fact in facts {
        let key = fact["key"].as_str().unwrap().to_owned();
        if fact["kind"] == FactKind::Observed.as_str() {
            out.insert(key, fact);
        } else {
            out.remove(&key);
        }
    }
    out
}

/// Panics unless every key's facts have versions from 1 upwards, each linked to the one before.
pub(crate) fn assert_chained(facts: &[Value]) {
    let mut heads: BTreeMap<&str, (i64, &str)> = BTreeMap::new();
    for fact in facts {
        let key = fact["key"].as_str().unwrap();
        let (version, id) = heads.get(key).copied().unwrap_or((0, "0000000000000000000000000000000000000000000000000000000000000000"));
        let own = (fact["version"].as_i64().unwrap(), fact["prevHash"].as_str().unwrap().trim_start_matches("sha256:"));
        assert_eq!(own, (version + 1, id.trim_start_matches("sha256:")), "{key} chains");
        heads.insert(key, (own.0, fact["id"].as_str().unwrap()));
    }
}

/// Panics unless the changes' seqs rise and no record is shown twice in a row in the same state.
pub(crate) fn assert_shown_once(feed: &[Value]) {
    let (mut seq, mut last) = (0, BTreeMap::new());
    for change in feed {
        let own = change["seq"].as_i64().unwrap();
        assert!(own > seq, "seq {own} after {seq}");
        seq = own;
        let record = &change["record"];
        let id = record["id"].as_str().unwrap();
        let before = last.insert(id, record);
        assert_ne!(before, Some(record), "{id} is shown twice in the same state");
        let event = if before.is_none() { "new" } else { "modified" };
        assert_eq!(change["event"], event, "{id} at {own}");
    }
}

/// Maintains the latest-version index (`heads`) without a lease until it is stopped.
pub(crate) async fn run_heads(heads: projector::heads::Heads, mut stop: tokio::sync::watch::Receiver<bool>) {
    loop {
        heads.catch_up().await.unwrap();
        tokio::select! {
            _ = stop.changed() => return,
            waited = heads.wait() => waited.unwrap(),
        }
    }
}
