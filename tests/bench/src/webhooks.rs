//! Webhooks: the time from an upstream's answer to the delivery, by the simulator's clock, compared with a bare POST of the same size; and
//! the effect of dead and slow targets on the others. The servers are the real binary from the same build; upstreams and receivers are in
//! this process.

use std::collections::HashSet;
use std::io::{BufRead as _, BufReader};
use std::net::SocketAddr;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant};

use bytes::Bytes;
use futures_util::future::join_all;
use serde_json::{Value, json};
use simulator::{Kind, Options, Simulator};
use tokio::net::TcpListener;
use tokio::sync::mpsc::{UnboundedReceiver, UnboundedSender, unbounded_channel};
use tokio::task::JoinHandle;
use warp::Filter as _;
use warp::http::StatusCode;

use crate::report::{figure, heading, latency, memory_mib, percentile, ratio};
use crate::{Failure, Settings};

/// The upstream that changes, and its recalls at the beginning: few enough for one page.
const UPSTREAM: &str = "cpsc";
const RECALLS: u64 = 60;
/// Changes that are delivered to one target.
const SINGLES: usize = 200;
/// Targets, how many of them go bad, and the changes that are delivered to all, before and after.
const TARGETS: usize = 10_000;
const BAD: usize = 1_000;
const CHANGES: usize = 5;
/// The largest number of targets that the tier permits for a key.
const TARGETS_PER_KEY: usize = 200;
/// How long a slow target delays its answer: longer than the sender's timeout.
const SLOW_ANSWER_DELAY: Duration = Duration::from_secs(60);
/// The time after which a message counts as lost.
const DELIVERY_TIMEOUT: Duration = Duration::from_secs(120);
/// The target for the time from the upstream's answer to the delivery, in seconds, embedded and on servers.
const EMBEDDED_MAX_S: f64 = 1.0;
const SERVERS_MAX_S: f64 = 2.0;
/// After this time idle connections are closed.
const SETTLE_TIME: Duration = Duration::from_secs(30);
/// After this time slow targets have been given up, with all messages queued behind them.
const SETTLE_TIMEOUT: Duration = Duration::from_secs(180);
/// The permitted difference of open descriptors.
const DESCRIPTORS: usize = 50;
const MEMORY_MIB_MAX: f64 = 300.0;
const OTHERS_MAX: f64 = 1.1;

/// The environment of a run: its data, its upstreams, and further settings of its processes.
struct Environment {
    dir: PathBuf,
    simulator: Arc<Simulator>,
    base_url: String,
    variables: Vec<(String, String)>,
    binary: PathBuf,
}

impl Environment {
    async fn open(dir: &Path, variables: &[(&str, String)]) -> Result<Self, Failure> {
        let binary = std::env::current_exe()?.with_file_name("highwater");
        if !binary.exists() {
            return Err("the server is not built: cargo build --release".into());
        }
        let simulator = Simulator::new(Options { records: RECALLS, ..Options::default() });
        let (bound, serving) = Arc::clone(&simulator).bind(SocketAddr::from(([127, 0, 0, 1], 0)), std::future::pending()).await?;
        tokio::spawn(serving);
        let variables = variables.iter().map(|(name, value)| (format!("HIGHWATER_{name}"), value.clone())).collect();
        Ok(Self { dir: dir.to_owned(), simulator, base_url: format!("http://{bound}"), variables, binary })
    }

    fn command(&self, node: &str, arguments: &[&str]) -> Command {
        let mut command = Command::new(&self.binary);
        command.args(arguments).current_dir(&self.dir).stdin(Stdio::null());
        command.env("HIGHWATER_DATA_DIR", self.dir.join(node)).env("HIGHWATER_LISTEN", "127.0.0.1:0");
        command.env("HIGHWATER_CHECKPOINTS__MEMORY", self.dir.join("signer-memory"));
        command.env("HIGHWATER_MASTER_KEY_FILE", self.dir.join("master.key")).env("HIGHWATER_LOGGING__FORMAT", "json");
        command.env("HIGHWATER_WEBHOOKS__ALLOW_PRIVATE_TARGETS", "true").env("HIGHWATER_TIERS__BUSINESS__CALLS_PER_MINUTE", "0");
        for upstream in upstreams::ALL {
            let name = upstream.manifest().name.to_uppercase();
            command.env(format!("HIGHWATER_UPSTREAMS__{name}__BASE_URL"), &self.base_url);
            command.env(format!("HIGHWATER_UPSTREAMS__{name}__REQUESTS_PER_SECOND"), "10000.0");
            // No scheduled syncs, only those of the benchmark.
            command.env(format!("HIGHWATER_UPSTREAMS__{name}__ENABLED"), "false");
        }
        command.envs(self.variables.iter().map(|(name, value)| (name, value)));
        command
    }

    /// Runs a command to its end; returns its output.
    fn run(&self, node: &str, arguments: &[&str]) -> Result<String, Failure> {
        let output = self.command(node, arguments).output()?;
        if !output.status.success() {
            return Err(String::from_utf8_lossy(&output.stderr).into_owned().into());
        }
        Ok(String::from_utf8(output.stdout)?.trim().to_owned())
    }

    /// Changes the upstream until it has a new recall, and syncs it; returns the time of the last request to the upstream.
    fn change(&self, node: &str) -> Result<Instant, Failure> {
        let seen = self.simulator.expected_changes().len() as u64;
        while !self.simulator.expected_changes_after(seen).iter().any(|entry| entry.upstream == UPSTREAM && entry.kind == Kind::New) {
            self.simulator.advance(1);
        }
        self.run(node, &["ingest", UPSTREAM, "--once"])?;
        Ok(self.simulator.last_request_at())
    }
}

/// A running server.
struct Node {
    child: Child,
    address: SocketAddr,
}

impl Node {
    fn start(environment: &Environment, node: &str, role: &str) -> Result<Self, Failure> {
        let mut child = environment.command(node, &["serve", "--role", role]).stderr(Stdio::piped()).stdout(Stdio::null()).spawn()?;
        let (sender, address) = std::sync::mpsc::channel();
        let lines = BufReader::new(child.stderr.take().ok_or("the server has no pipe")?).lines();
        // All of standard error is read: the server would block on a full pipe.
        std::thread::spawn(move || {
            for line in lines.map_while(Result::ok) {
                let report: Value = serde_json::from_str(&line).unwrap_or_default();
                if report["fields"]["message"] == "listening" {
                    let _ = sender.send(report["fields"]["address"].as_str().and_then(|address| address.parse().ok()));
                }
            }
        });
        let this = |child, address| Self { child, address };
        match address.recv_timeout(DELIVERY_TIMEOUT) {
            Ok(Some(address)) => Ok(this(child, address)),
            _ => {
                drop(this(child, SocketAddr::from(([127, 0, 0, 1], 0))));
                Err("the server does not listen".into())
            }
        }
    }

    /// Waits until few more file descriptors are open than before, or until a timeout; returns their number. Leaked descriptors stay open,
    /// so the smallest number is an upper limit for leaks.
    async fn wait_settled(&self, before: Option<&usize>) -> Result<usize, Failure> {
        tokio::time::sleep(SETTLE_TIME).await;
        let started = Instant::now();
        loop {
            let open = self.descriptors()?;
            if before.is_none_or(|before| open <= before + DESCRIPTORS) || started.elapsed() > SETTLE_TIMEOUT {
                return Ok(open);
            }
            tokio::time::sleep(SETTLE_TIME / 30).await;
        }
    }

    /// Returns the number of open file descriptors.
    fn descriptors(&self) -> Result<usize, Failure> {
        Ok(std::fs::read_dir(format!("/proc/{}/fd", self.child.id()))?.count())
    }
}

impl Drop for Node {
    fn drop(&mut self) {
        // A process that has ended is only waited for.
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

/// A receiver on every loopback address of this machine: target `n` is at `/n`.
struct Receiver {
    port: u16,
    /// The arrival of each message, by target.
    changed_at: UnboundedReceiver<(usize, Instant)>,
    /// The server of bad targets that die; after the abort nothing listens there.
    dead: JoinHandle<()>,
    dead_port: u16,
    is_bad: Arc<AtomicBool>,
}

impl Receiver {
    async fn open() -> Result<Self, Failure> {
        let (arriving, changed_at) = unbounded_channel();
        let is_bad = Arc::new(AtomicBool::new(false));
        let serve = async |arriving: UnboundedSender<(usize, Instant)>, is_bad: Arc<AtomicBool>| {
            let listener = TcpListener::bind(("0.0.0.0", 0)).await?;
            let port = listener.local_addr()?.port();
            #[expect(clippy::disallowed_methods, reason = "only the measured server posts here")]
            let posted = warp::post().and(warp::path!(usize)).and(warp::body::bytes()).then(move |target: usize, _: Bytes| {
                let (arriving, is_bad) = (arriving.clone(), is_bad.load(Ordering::Relaxed) && target < BAD);
                async move {
                    let _ = arriving.send((target, Instant::now()));
                    if is_bad && target % 3 == 1 {
                        tokio::time::sleep(SLOW_ANSWER_DELAY).await;
                    }
                    if is_bad { StatusCode::INTERNAL_SERVER_ERROR } else { StatusCode::NO_CONTENT }
                }
            });
            let serving = tokio::spawn(warp::serve(posted).incoming(listener).run());
            Ok::<_, Failure>((port, serving))
        };
        let (port, _) = serve(arriving.clone(), Arc::clone(&is_bad)).await?;
        let (dead_port, dead) = serve(arriving, Arc::clone(&is_bad)).await?;
        Ok(Self { port, changed_at, dead, dead_port, is_bad })
    }

    /// Returns the URL of a target. Targets are spread over many hosts.
    fn url(&self, target: usize) -> String {
        let port = if target < BAD && target.is_multiple_of(3) { self.dead_port } else { self.port };
        format!("http://127.0.{}.{}:{port}/{target}", target % 5, 1 + target / 5 % 200)
    }

    /// Makes the bad targets fail: a third of them is dead, a third is slow, and a third refuses.
    fn go_bad(&self) {
        self.is_bad.store(true, Ordering::Relaxed);
        self.dead.abort();
    }

    /// Makes those that still listen recover.
    fn recover(&self) {
        self.is_bad.store(false, Ordering::Relaxed);
    }

    /// Waits until a change has reached all targets of a range; returns the seconds of each.
    async fn wait_delivered(&mut self, from: usize, to: usize, since: Instant) -> Result<Vec<f64>, Failure> {
        let (mut seconds, mut reached) = (Vec::with_capacity(to - from), HashSet::new());
        while seconds.len() < to - from {
            let next = tokio::time::timeout(DELIVERY_TIMEOUT, self.changed_at.recv()).await;
            let (target, at) = next.map_err(|_| format!("{} of {} targets got it", seconds.len(), to - from))?.ok_or("no receiver")?;
            if (from..to).contains(&target) && reached.insert(target) {
                seconds.push(at.duration_since(since).as_secs_f64());
            }
        }
        Ok(seconds)
    }
}

/// Returns an HTTP client without proxies.
pub(crate) fn client() -> Result<reqwest::Client, Failure> {
    // A second installation fails, which is fine.
    drop(rustls::crypto::ring::default_provider().install_default());
    Ok(reqwest::Client::builder().no_proxy().build()?)
}

async fn register(client: &reqwest::Client, node: &Node, key: &str, url: &str) -> Result<(), Failure> {
    let request = client.post(format!("http://{}/recalls/api/webhook", node.address)).header("x-api-key", key);
    let body = json!({ "webhook_url": url }).to_string();
    let answer = request.header("content-type", "application/json").body(body).send().await?;
    if answer.status() == StatusCode::CREATED { Ok(()) } else { Err(answer.text().await?.into()) }
}

/// Delivers one change after another to one target, and a bare POST of the same size to the same receiver.
async fn singles(environment: &Environment, node: &Node, command: &str, max_s: f64) -> Result<(), Failure> {
    let mut receiver = Receiver::open().await?;
    let client = client()?;
    let key = environment.run(command, &["keys", "mint", "--tier", "business"])?;
    let target = BAD;
    register(&client, node, &key, &receiver.url(target)).await?;
    let (mut posted, mut bare) = (Vec::new(), Vec::new());
    for _ in 0..SINGLES {
        let changed_at = environment.change(command)?;
        posted.extend(receiver.wait_delivered(target, target + 1, changed_at).await?);
        let started = Instant::now();
        client.post(receiver.url(target)).body(vec![b'x'; 900]).send().await?;
        bare.extend(receiver.wait_delivered(target, target + 1, started).await?);
    }
    latency("from the upstream's answer to the post", &posted);
    latency("... a bare post", &bare);
    let p99 = percentile(posted, 0.99);
    ratio("p99 from answer to post, s", p99, p99 <= max_s, &max_s.to_string());
    Ok(())
}

/// Delivers changes to many targets, some of which go bad.
async fn crowd(environment: &Environment, node: &Node, command: &str) -> Result<(), Failure> {
    let mut receiver = Receiver::open().await?;
    let client = client()?;
    let started = Instant::now();
    let keys = (0..TARGETS / TARGETS_PER_KEY).map(|_| environment.run(command, &["keys", "mint", "--tier", "business"]));
    let keys = keys.collect::<Result<Vec<String>, Failure>>()?;
    let registered = join_all(keys.iter().enumerate().map(|(number, key)| {
        let (client, receiver) = (&client, &receiver);
        async move {
            for target in number * TARGETS_PER_KEY..(number + 1) * TARGETS_PER_KEY {
                register(client, node, key, &receiver.url(target)).await?;
            }
            Ok::<(), Failure>(())
        }
    }));
    registered.await.into_iter().collect::<Result<(), Failure>>()?;
    figure("targets registered per second", format!("{:.0}", TARGETS as f64 / started.elapsed().as_secs_f64()));
    let mut p99s = Vec::new();
    let mut descriptors = Vec::new();
    for bad in [0, BAD] {
        if bad > 0 {
            receiver.go_bad();
        }
        let mut seconds = Vec::new();
        for turn in 0..CHANGES {
            let changed_at = environment.change(command)?;
            let delivered = receiver.wait_delivered(BAD, TARGETS, changed_at).await?;
            let last = delivered.iter().copied().fold(0.0, f64::max);
            figure(
                &format!("{bad} bad targets, change {}: deliveries to the others per second", turn + 1),
                format!("{:.0}", delivered.len() as f64 / last),
            );
            seconds.extend(delivered);
        }
        latency(&format!("{bad} bad targets: deliveries to the others"), &seconds);
        p99s.push(percentile(seconds, 0.99));
        receiver.recover();
        let open = node.wait_settled(descriptors.first()).await?;
        descriptors.push(open);
    }
    let slowdown = p99s[1] / p99s[0];
    ratio("p99 of the others with bad targets", slowdown, slowdown <= OTHERS_MAX, "1.1");
    let memory_mib = memory_mib(node.child.id())?;
    ratio("the server's memory, MiB", memory_mib, memory_mib <= MEMORY_MIB_MAX, "300");
    figure("descriptors before and after", format!("{} / {}", descriptors[0], descriptors[1]));
    ratio("descriptors left open", descriptors[1] as f64 - descriptors[0] as f64, descriptors[1] <= descriptors[0] + DESCRIPTORS, "50");
    Ok(())
}

async fn run_parts(environment: &Environment, node: &Node, command: &str, max_s: f64, only: Option<&str>) -> Result<(), Failure> {
    environment.run(command, &["ingest", UPSTREAM, "--once"])?;
    if only != Some("crowd") {
        singles(environment, node, command, max_s).await?;
    }
    if only != Some("singles") {
        crowd(environment, node, command).await?;
    }
    Ok(())
}

/// Runs `webhooks` with the embedded log and store.
pub(crate) fn embedded(settings: &Settings) -> Result<(), Failure> {
    heading("webhooks: embedded log and store");
    tokio::runtime::Builder::new_multi_thread().enable_all().build()?.block_on(async {
        let dir = tempfile::tempdir_in(&settings.dir)?;
        let environment = Environment::open(dir.path(), &[]).await?;
        let node = Node::start(&environment, "node", "all")?;
        run_parts(&environment, &node, "node", EMBEDDED_MAX_S, settings.only.as_deref()).await
    })
}

/// Runs `webhooks` with Kafka and CQL, and with the roles in separate processes.
pub(crate) fn on_servers(settings: &Settings, brokers: &str, cql: &str) -> Result<(), Failure> {
    heading("webhooks: Kafka and CQL, projector and API in separate processes");
    tokio::runtime::Builder::new_multi_thread().enable_all().build()?.block_on(async {
        let (dir, name) = (tempfile::tempdir_in(&settings.dir)?, engines::unique("bench"));
        let variables = [
            ("LOG", format!("kafka://{brokers}")),
            ("STORE", format!("scylla://{cql}")),
            ("KAFKA__TOPIC_PREFIX", format!("{name}.")),
            ("KAFKA__REPLICATION", "1".to_owned()),
            ("KAFKA__IN_SYNC_MIN", "1".to_owned()),
            ("SCYLLA__KEYSPACE", name.clone()),
            ("SCYLLA__REPLICATION", "1".to_owned()),
        ];
        let environment = Environment::open(dir.path(), &variables).await?;
        let projector = Node::start(&environment, "projector", "project")?;
        let api = Node::start(&environment, "api", "api")?;
        let measured = run_parts(&environment, &api, "ingestor", SERVERS_MAX_S, settings.only.as_deref()).await;
        drop((projector, api));
        engines::remove_topics(brokers, &format!("{name}.")).await?;
        engines::remove_keyspace(&engines::driver(cql).await?, &name).await?;
        measured
    })
}
