//! The roles as separate processes, on a real Kafka broker and a real CQL node.

use std::path::PathBuf;
use std::process::Command;
use std::sync::Arc;
use std::time::Instant;

use event_log::kafka::{KafkaLog, Options};
use schemas::clock::Clock;
use scylla_store::{Options as ScyllaOptions, ScyllaStore};
use tempfile::TempDir;

use crate::cadence::with_stores;
use crate::child::{Child, within};
use crate::concurrent_processes::start_holding_proxy;
use crate::engine::{Engine, RECALL_UPSTREAMS, SimulatedUpstreams, ingest_of, moving_clock};
use crate::migration::{COMPARED, LISTS};
use crate::process::{Server, fix_clock, highwater, status_output, stdout, wait_for, with_default_call_times, with_services};
use crate::reader::Reader;

/// The services of a cluster, unless a test names fewer: those whose answers the tests read.
pub(crate) const CLUSTERED: &[&str] = &["cadence", "catalysts", "labs", "recalls", "receipts"];

/// A cluster with its own names on shared servers, and the directory of its processes' local files.
pub(crate) struct Cluster {
    dir: TempDir,
    kafka: String,
    cql: String,
    /// The prefix of the topics' names, which is also the keyspace.
    pub(crate) name: String,
    base_url: String,
    /// The fixed time of all processes; if empty, they use the moving clock.
    fixed: &'static str,
    /// Whether other tests use the servers too, so that topics and keyspace are removed at the end.
    shared: bool,
    /// The services that the processes open.
    services: &'static [&'static str],
    /// The setting `scylla.lease_s` of all processes; `None` is its default.
    lease_s: Option<u32>,
    /// Whether calls may take as long as they may by default.
    has_default_call_times: bool,
}

impl Cluster {
    pub(crate) fn new(test: &str, base_url: &str, fixed: &'static str) -> Option<Self> {
        let (kafka, cql) = (engines::or_skip(engines::kafka(), test)?, engines::or_skip(engines::cql(), test)?);
        let mut this = Self::on_servers(kafka, cql, base_url, fixed);
        this.shared = true;
        Some(this)
    }

    /// A cluster on servers of the test's own, given by their addresses.
    pub(crate) fn on_servers(kafka: String, cql: String, base_url: &str, fixed: &'static str) -> Self {
        let (dir, name) = (tempfile::tempdir().unwrap(), engines::unique("t"));
        let base_url = base_url.to_owned();
        Self { dir, kafka, cql, name, base_url, fixed, shared: false, services: CLUSTERED, lease_s: None, has_default_call_times: false }
    }

    /// Lets the processes open only these services: a node creates the tables of each, which takes most of its first start.
    pub(crate) fn with_only(mut self, services: &'static [&'static str]) -> Self {
        self.services = services;
        self
    }

    /// Sets after how many seconds the work of a process that died is taken over.
    pub(crate) fn with_lease_s(mut self, lease_s: u32) -> Self {
        self.lease_s = Some(lease_s);
        self
    }

    /// Leaves the times of calls at their defaults: servers that hang are what the test is about.
    pub(crate) fn with_default_call_times(mut self) -> Self {
        self.has_default_call_times = true;
        self
    }

    pub(crate) fn data(&self, node: &str) -> PathBuf {
        self.dir.path().join(node)
    }

    /// Returns a command that runs at a node.
    pub(crate) fn command(&self, node: &str, arguments: &[&str]) -> Command {
        let mut command = highwater(&self.data(node), &self.base_url, arguments);
        command
            .env("HIGHWATER_LOG", format!("kafka://{}", self.kafka))
            .env("HIGHWATER_STORE", format!("scylla://{}", self.cql))
            .env("HIGHWATER_KAFKA__TOPIC_PREFIX", self.prefix())
            .env("HIGHWATER_KAFKA__REPLICATION", "1")
            .env("HIGHWATER_KAFKA__IN_SYNC_MIN", "1")
            .env("HIGHWATER_SCYLLA__KEYSPACE", &self.name)
            .env("HIGHWATER_SCYLLA__REPLICATION", "1")
            .env("HIGHWATER_MASTER_KEY_FILE", self.data("master.key"))
            // Signer memory in the store, which is the default there.
            .env("HIGHWATER_CHECKPOINTS__MEMORY", "");
        with_services(&mut command, self.services);
        if let Some(lease_s) = self.lease_s {
            command.env("HIGHWATER_SCYLLA__LEASE_S", lease_s.to_string());
        }
        if !self.fixed.is_empty() {
            fix_clock(&mut command, self.fixed);
        }
        if self.has_default_call_times {
            with_default_call_times(&mut command);
        }
        command
    }

    /// Returns the address of the broker.
    pub(crate) fn kafka(&self) -> &str {
        &self.kafka
    }

    /// Returns the prefix of the topics' names on the broker.
    pub(crate) fn prefix(&self) -> String {
        format!("{}.", self.name)
    }

    /// Opens the cluster's log directly.
    pub(crate) async fn log(&self) -> Arc<KafkaLog> {
        KafkaLog::open(Options { prefix: self.prefix(), ..Options::new(&self.kafka) }).await.unwrap()
    }

    /// Opens an engine on the cluster in this process, which decides one service and those of the engine itself: the tables of all would take minutes.
    pub(crate) async fn engine(&self, clock: Clock, service: &str) -> Engine {
        let mut projected = projector::services::of_engine();
        projected.extend(services::projected_services().iter().copied().filter(|own| own.def.view.name == service));
        let store = ScyllaOptions { contact_points: vec![self.cql.clone()], keyspace: self.name.clone(), ..ScyllaOptions::default() };
        Engine::with_services(self.log().await, ScyllaStore::open(store).await.unwrap(), clock, &projected).await
    }

    /// Starts nodes, given by role and number, at the same time: whichever is first creates the topics and tables.
    pub(crate) fn start(&self, nodes: &[(&str, &str)]) -> Vec<Server> {
        std::thread::scope(|scope| {
            let starting: Vec<_> =
                nodes.iter().map(|(node, role)| scope.spawn(|| Server::start(self.command(node, &["serve", "--role", role])))).collect();
            starting.into_iter().map(|server| server.join().unwrap()).collect()
        })
    }

    /// Syncs the upstreams of recalls at a node; returns when the appended facts are projected. If the node does not run, the command opens everything by
    /// itself, which takes longer than what it does.
    pub(crate) fn ingest(&self, node: &str) {
        stdout(self.command(node, &ingest_of(RECALL_UPSTREAMS)));
    }
}

impl Drop for Cluster {
    fn drop(&mut self) {
        if !self.shared {
            return;
        }
        // A separate runtime: the test may run on one already.
        let removed = std::thread::scope(|scope| {
            let removing = scope.spawn(|| {
                tokio::runtime::Builder::new_current_thread().enable_all().build()?.block_on(async {
                    engines::remove_keyspace(&engines::driver(&self.cql).await?, &self.name).await?;
                    engines::remove_topics(&self.kafka, &self.prefix()).await
                })
            });
            removing.join().unwrap()
        });
        assert!(removed.is_ok() || std::thread::panicking(), "{removed:?}");
    }
}

/// The services of [`roles_equal_the_embedded_engine`], one of each kind. Each further one has eight tables or more, which the database creates and drops.
const EQUAL: &[&str] = &["cadence", "catalysts", "recalls"];

/// The services of [`roles_equal_the_embedded_engine_with_leads`]: those of a cluster, and the one whose API nodes build an index from the feed.
const EQUAL_WITH_LEADS: &[&str] = &["cadence", "catalysts", "labs", "names", "recalls", "receipts"];

/// Checks of names that are similar to marks of the simulated register.
const CHECKS: &[&str] = &[
    "/names/api/check?name=Veltraxon&limit=100",
    "/names/api/check?name=Vetlraxon&class=9,42",
    "/names/api/check?name=Tru%20One&class=9",
    "/names/api/check?name=Kestrolin%20Works",
];

/// Proves that several processes of each role produce from the same facts the same rows as the embedded log and store, byte for byte, and that a
/// cursor is valid at every node.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn roles_equal_the_embedded_engine() {
    let upstreams: Vec<&str> = COMPARED.iter().copied().filter(|upstream| *upstream != "nih_reporter").collect();
    assert_roles_equal("the roles on Kafka and CQL", EQUAL, &upstreams).await;
}

/// Proves the same as [`roles_equal_the_embedded_engine`], with leads and with checks of names.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn roles_equal_the_embedded_engine_with_leads() {
    let upstreams = [COMPARED, &["uspto_trademarks"]].concat();
    assert_roles_equal("the roles with leads and names on Kafka and CQL", EQUAL_WITH_LEADS, &upstreams).await;
}

/// Asserts the above for some services and the upstreams that they are decided from.
async fn assert_roles_equal(test: &str, services: &'static [&'static str], upstreams: &[&str]) {
    const FIXED: &str = "2026-11-20T12:00:00Z";
    let simulated = SimulatedUpstreams::start(11, 120, Clock::Fixed(FIXED.parse().unwrap())).await;
    let Some(cluster) = Cluster::new(test, &simulated.base_url, FIXED) else { return };
    // No process dies: on a machine that is busy with other work, none takes over from one that is slow.
    let cluster = cluster.with_only(services).with_lease_s(60);
    // The first node creates all topics and tables. Several at once, as in the test below, would each ask the servers for all of them.
    let _first = cluster.start(&[("p1", "project")]);
    // Stores are polled only if they are configured.
    let _with_stores = Server::start(with_stores(cluster.command("i2", &["serve", "--role", "ingest"])));
    let servers = cluster.start(&[("p2", "project"), ("i1", "ingest"), ("a1", "api"), ("a2", "api")]);
    let readers = &servers[2..];
    let with_shop = ingest_of(&[upstreams, &["shopify"]].concat());
    stdout(cluster.command("i1", &ingest_of(upstreams)));
    // A second ingestor finds nothing new but stores.
    stdout(with_stores(cluster.command("i2", &with_shop)));

    let embedded = |arguments: &[&str]| {
        let mut command = highwater(&cluster.data("embedded"), &simulated.base_url, arguments);
        fix_clock(with_services(&mut command, services), FIXED);
        command
    };
    stdout(with_stores(embedded(&with_shop)));
    let alone = Server::ready(embedded(&["serve"]));
    for service in services.iter().copied().filter(|service| *service != "receipts") {
        let digest = stdout(embedded(&["digest", service]));
        // All nodes read the same rows: one service shows that each of them finds them.
        let nodes: &[&str] = if service == "recalls" { &["p1", "p2", "a2"] } else { &["a2"] };
        for node in nodes {
            assert_eq!(stdout(cluster.command(node, &["digest", service])), digest, "the digest of {service} at {node}");
        }
    }
    // Each backend has its own accounts.
    let own_key = |command: Command| stdout(command).trim().to_owned();
    let mint: &[&str] = &["keys", "mint", "--tier", "pro"];
    let (key, key_alone) = (own_key(cluster.command("a1", mint)), own_key(embedded(mint)));
    let answer = |(status, body): (u16, Vec<u8>)| {
        assert_eq!(status, 200, "{}", String::from_utf8_lossy(&body));
        // Places of pages are signed with each backend's own key, and name its own seqs. Two ingestors made two runs.
        let mut body: serde_json::Value = serde_json::from_slice(&body).unwrap();
        for own in ["next", "snapshotCount"] {
            body.as_object_mut().unwrap().remove(own);
        }
        body
    };
    // 503 comes while an index is being built.
    let read = |server: &Server, path: &str, key: &str| wait_for(path, || server.get(path, key).filter(|(status, _)| *status != 503));
    for server in readers {
        server.wait_until_ready();
    }
    let mut compared = 0;
    for path in LISTS.iter().chain(CHECKS).filter(|path| services.iter().any(|service| path.starts_with(&format!("/{service}/")))) {
        let wanted = answer(read(&alone, path, &key_alone));
        for server in readers {
            assert_eq!(answer(read(server, path, &key)), wanted, "{path} has another answer");
        }
        compared += 1;
    }
    assert!(compared > services.len(), "{compared} lists of {services:?}");

    // Without a key, whose pages have fewer rows.
    let mut reader = Reader::default();
    for server in readers.iter().cycle() {
        if !wait_for("a page of the feed", || reader.step(server, "")) {
            break;
        }
    }
    assert!(reader.read.len() >= 100, "one cursor over all nodes read {} changes", reader.read.len());
}

/// Proves that a paused projector and a dead one are replaced, that the paused one does no harm when it continues, and is the one that replaces the dead one
/// then, that a reader by cursor sees one feed without a gap, and that duplicates in the log change nothing.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn dead_and_paused_projectors_are_replaced() {
    let simulated = SimulatedUpstreams::start(12, 200, moving_clock()).await;
    let Some(cluster) = Cluster::new("replaced projectors on Kafka and CQL", &simulated.base_url, "") else { return };
    // The shortest lease: nothing but a takeover waits for its end. A projector that is slow and loses it does no harm, as a paused one does none.
    let cluster = cluster.with_only(&["recalls"]).with_lease_s(6);
    let mut first = cluster.start(&[("p1", "project"), ("i1", "ingest"), ("a1", "api")]);
    let (api, ingest, paused) = (first.pop().unwrap(), first.pop().unwrap(), first.pop().unwrap());
    let mut reader = Reader::default();
    cluster.ingest("i1");
    api.wait_until_ready();
    reader.read_on(&api, "");
    let before = reader.read.len();
    assert!(before >= 200, "{before} changes");

    paused.signal("STOP");
    let second = cluster.start(&[("p2", "project")]).pop().unwrap();
    simulated.sim.advance(20);
    cluster.ingest("i1");
    reader.read_on(&api, "");
    assert!(reader.read.len() > before, "the second projector adds no changes");
    paused.signal("CONT");
    simulated.sim.advance(20);
    cluster.ingest("i1");
    reader.read_on(&api, "");

    let by_both = reader.read.len();
    second.kill();
    simulated.sim.advance(20);
    cluster.ingest("i1");
    reader.read_on(&api, "");
    assert!(reader.read.len() > by_both, "the projector that was paused adds no changes");

    ingest.kill();
    let other = cluster.start(&[("i2", "ingest")]).pop().unwrap();
    simulated.sim.advance(20);
    cluster.ingest("i2");
    reader.read_on(&api, "");
    let seqs: Vec<u64> = reader.read.iter().map(|change| change["seq"].as_u64().unwrap()).collect();
    assert!(seqs.windows(2).all(|pair| pair[0] < pair[1]), "changes must be unique and in order");

    // Applying the changes again gives the stored rows.
    let digest = stdout(cluster.command("p1", &["digest", "recalls", "--history"]));
    stdout(cluster.command("p1", &["replay", "recalls"]));
    assert_eq!(stdout(cluster.command("p1", &["digest", "recalls", "--history"])), digest);
    reader.read_on(&api, "");
    for server in [paused, other, api] {
        assert_eq!(server.terminate().code(), Some(0));
    }
}

/// Proves that a sync run whose process died is resumed by another process without a command, and that the streams that the dead process
/// had not started are synced.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn orphaned_run_is_resumed() {
    let simulated = SimulatedUpstreams::start(13, 600, moving_clock()).await;
    let Some(cluster) = Cluster::new("an orphaned run on Kafka and CQL", &simulated.base_url, "") else { return };
    let _others = cluster.start(&[("p1", "project"), ("i2", "ingest")]);
    let (address, held, release) = start_holding_proxy(&simulated.base_url, "/food/", 1).await;
    let mut command = cluster.command("i1", &["serve", "--role", "ingest"]);
    command.env("HIGHWATER_UPSTREAMS__OPENFDA__BASE_URL", &address);
    let dying = Server::start(command);
    let mut killed = Child::start(cluster.command("i1", &["ingest", "openfda", "--once"]));
    within("the second request for food", held).await.unwrap();
    dying.kill();
    assert!(!killed.wait().success(), "a killed command must not succeed");
    drop(release);
    let started = Instant::now();
    wait_for("the end of the orphaned run", || {
        let status = status_output(cluster.command("i2", &["status"]));
        let streams: Vec<&str> = status.lines().filter(|line| line.starts_with("upstream openfda.")).collect();
        assert!(!streams.is_empty(), "{status}");
        streams.iter().all(|stream| stream.contains("\trun_finished ")).then_some(())
    });
    println!("resumed and finished {:.1} s after the death", started.elapsed().as_secs_f64());
}

/// Proves that projectors whose clocks differ by hours, one after another and at the same time, make one feed without gaps whose recorded
/// times never go back.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn feed_stays_ordered_under_clock_skew() {
    const ON_TIME: &str = "2026-11-20T12:00:00Z";
    let simulated = SimulatedUpstreams::start(13, 120, Clock::Fixed(ON_TIME.parse().unwrap())).await;
    let Some(cluster) = Cluster::new("clocks hours apart on Kafka and CQL", &simulated.base_url, ON_TIME) else { return };
    let projector = |node: &str, fixed: &str| {
        let mut command = cluster.command(node, &["serve", "--role", "project"]);
        // A clock that is hours before the last record would append nothing.
        fix_clock(&mut command, fixed).env("HIGHWATER_CLOCK__BEHIND_MAX_S", "43200");
        Server::start(command)
    };
    let readers = cluster.start(&[("i1", "ingest"), ("a1", "api")]);
    let on_time = projector("on time", ON_TIME);
    cluster.ingest("i1");
    let ahead = projector("ahead", "2026-11-20T17:00:00Z");
    // The projectors take turns; each new one is hours ahead or behind.
    assert_eq!(on_time.terminate().code(), Some(0));
    simulated.sim.advance(20);
    cluster.ingest("i1");
    let behind = projector("behind", "2026-11-20T07:00:00Z");
    assert_eq!(ahead.terminate().code(), Some(0));
    simulated.sim.advance(20);
    cluster.ingest("i1");
    let again = projector("again", ON_TIME);
    assert_eq!(behind.terminate().code(), Some(0));
    simulated.sim.advance(20);
    cluster.ingest("i1");

    let exported = stdout(cluster.command("i1", &["export", "changes.recalls", "--all"]));
    let changes: Vec<serde_json::Value> = exported.lines().map(|line| serde_json::from_str(line).unwrap()).collect();
    let seqs: Vec<u64> = changes.iter().map(|change| change["seq"].as_u64().unwrap()).collect();
    assert_eq!(seqs, (1..=seqs.len() as u64).collect::<Vec<_>>(), "the feed has a gap");
    let times: Vec<&str> = changes.iter().map(|change| change["recordedAt"].as_str().unwrap()).collect();
    assert!(times.is_sorted(), "a recorded time goes back");
    let mut distinct = times.clone();
    distinct.dedup();
    assert_eq!(
        distinct,
        ["2026-11-20T12:00:00.000Z", "2026-11-20T17:00:00.000Z"],
        "a projector with a slow clock must continue at the latest recorded time"
    );

    let digest = stdout(cluster.command("again", &["digest", "recalls", "--history"]));
    stdout(cluster.command("again", &["replay", "recalls"]));
    assert_eq!(stdout(cluster.command("again", &["digest", "recalls", "--history"])), digest);
    let mut reader = Reader::default();
    reader.read_on(&readers[1], "");
    assert!(reader.read.len() >= 120, "{} changes", reader.read.len());
    assert_eq!(again.terminate().code(), Some(0));
}

/// Proves that a command that needs a projection says what it waits for while no projector runs, and succeeds when one starts.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn command_reports_a_missing_projector() {
    let simulated = SimulatedUpstreams::start(14, 20, moving_clock()).await;
    let Some(cluster) = Cluster::new("waiting for a projector on Kafka and CQL", &simulated.base_url, "") else { return };
    let _ingest = cluster.start(&[("i1", "ingest")]);
    let mut waiting = Child::start(cluster.command("i1", &["ingest", "cpsc", "--once"]));
    let first = wait_for("a line of the command", || waiting.stderr().split_once('\n').map(|(first, _)| first.to_owned()));
    assert!(first.starts_with("waiting for a projector: view engine is "), "{first}");
    let _project = cluster.start(&[("p1", "project")]);
    assert!(waiting.wait().success());
    let printed = waiting.stderr();
    assert!(printed.lines().last().unwrap().starts_with("cpsc: "), "{printed}");
}
