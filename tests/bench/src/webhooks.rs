//! Webhooks: how soon what an upstream answered has been posted, by the clock of the simulator, beside a bare post of the same size; and what targets that are dead or slow do to the
//! others. The servers are the real binary, built beside this program; upstreams and receivers are here.

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

/// The upstream whose changes are told, and its recalls at the beginning: so few that one page has them.
const UPSTREAM: &str = "cpsc";
const RECALLS: u64 = 60;
/// Changes that are told to one target.
const SINGLES: usize = 200;
/// Targets, how many of them go bad, and changes that all are told, before and after.
const TARGETS: usize = 10_000;
const BAD: usize = 1_000;
const TOLD: usize = 5;
/// What the tier may have.
const TARGETS_A_KEY: usize = 200;
/// How long a slow target waits with its answer: longer than is waited for it.
const SLOW: Duration = Duration::from_secs(60);
/// Nothing takes longer than this but by a fault.
const TOLD_MAX: Duration = Duration::from_secs(120);
/// How long a message may take from the upstream's answer on, in seconds: 1 on the embedded pair, 2 on servers.
const EMBEDDED_MAX_S: f64 = 1.0;
const SERVERS_MAX_S: f64 = 2.0;
/// What is idle is closed by then.
const SETTLED: Duration = Duration::from_secs(30);
/// And by then what is slow has been given up, with all that stood in line behind it.
const SETTLED_MAX: Duration = Duration::from_secs(180);
/// Descriptors that may come and go by themselves.
const DESCRIPTORS: usize = 50;
const MEMORY_MIB_MAX: f64 = 300.0;
const OTHERS_MAX: f64 = 1.1;

/// Where a run is: its data, its upstreams, and what else its processes are told.
struct Place {
    dir: PathBuf,
    simulator: Arc<Simulator>,
    base_url: String,
    variables: Vec<(String, String)>,
    binary: PathBuf,
}

impl Place {
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
            // Nothing runs but what is run here.
            command.env(format!("HIGHWATER_UPSTREAMS__{name}__ENABLED"), "false");
        }
        command.envs(self.variables.iter().map(|(name, value)| (name, value)));
        command
    }

    /// Runs a command to its end; answers what it prints.
    fn run(&self, node: &str, arguments: &[&str]) -> Result<String, Failure> {
        let output = self.command(node, arguments).output()?;
        if !output.status.success() {
            return Err(String::from_utf8_lossy(&output.stderr).into_owned().into());
        }
        Ok(String::from_utf8(output.stdout)?.trim().to_owned())
    }

    /// Changes the upstream until it has a new recall, and has it looked at; answers when the upstream was asked for it.
    fn change(&self, node: &str) -> Result<Instant, Failure> {
        let seen = self.simulator.expected_changes().len() as u64;
        while !self.simulator.expected_changes_after(seen).iter().any(|entry| entry.upstream == UPSTREAM && entry.kind == Kind::New) {
            self.simulator.advance(1);
        }
        self.run(node, &["ingest", UPSTREAM, "--once"])?;
        Ok(self.simulator.last_request_at())
    }
}

/// A server.
struct Node {
    child: Child,
    address: SocketAddr,
}

impl Node {
    fn start(place: &Place, node: &str, role: &str) -> Result<Self, Failure> {
        let mut child = place.command(node, &["serve", "--role", role]).stderr(Stdio::piped()).stdout(Stdio::null()).spawn()?;
        let (told, address) = std::sync::mpsc::channel();
        let lines = BufReader::new(child.stderr.take().ok_or("the server has no pipe")?).lines();
        // It is read to its end: a server whose pipe is full would wait.
        std::thread::spawn(move || {
            for line in lines.map_while(Result::ok) {
                let said: Value = serde_json::from_str(&line).unwrap_or_default();
                if said["fields"]["message"] == "listening" {
                    let _ = told.send(said["fields"]["address"].as_str().and_then(|address| address.parse().ok()));
                }
            }
        });
        let this = |child, address| Self { child, address };
        match address.recv_timeout(TOLD_MAX) {
            Ok(Some(address)) => Ok(this(child, address)),
            _ => {
                drop(this(child, SocketAddr::from(([127, 0, 0, 1], 0))));
                Err("the server does not listen".into())
            }
        }
    }

    /// Waits until few more file descriptors are open than there were before, for a while at most; answers how many are. What leaks
    /// stays open: no more can have leaked than is open at any time.
    async fn settled(&self, before: Option<&usize>) -> Result<usize, Failure> {
        tokio::time::sleep(SETTLED).await;
        let begun = Instant::now();
        loop {
            let open = self.descriptors()?;
            if before.is_none_or(|before| open <= before + DESCRIPTORS) || begun.elapsed() > SETTLED_MAX {
                return Ok(open);
            }
            tokio::time::sleep(SETTLED / 30).await;
        }
    }

    /// Its open file descriptors.
    fn descriptors(&self) -> Result<usize, Failure> {
        Ok(std::fs::read_dir(format!("/proc/{}/fd", self.child.id()))?.count())
    }
}

impl Drop for Node {
    fn drop(&mut self) {
        // One that has ended is only waited for.
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

/// Whoever is posted to, on every address of this machine's loopback: target `n` at `/n`.
struct Receiver {
    port: u16,
    /// Each message, by its target.
    came: UnboundedReceiver<(usize, Instant)>,
    /// Where bad targets are that are dead: nobody listens there any more once it is dropped.
    dead: JoinHandle<()>,
    dead_port: u16,
    is_bad: Arc<AtomicBool>,
}

impl Receiver {
    async fn open() -> Result<Self, Failure> {
        let (arriving, came) = unbounded_channel();
        let is_bad = Arc::new(AtomicBool::new(false));
        let serve = async |arriving: UnboundedSender<(usize, Instant)>, is_bad: Arc<AtomicBool>| {
            let listener = TcpListener::bind(("0.0.0.0", 0)).await?;
            let port = listener.local_addr()?.port();
            #[expect(clippy::disallowed_methods, reason = "who posts is the server that is measured")]
            let posted = warp::post().and(warp::path!(usize)).and(warp::body::bytes()).then(move |target: usize, _: Bytes| {
                let (arriving, is_bad) = (arriving.clone(), is_bad.load(Ordering::Relaxed) && target < BAD);
                async move {
                    let _ = arriving.send((target, Instant::now()));
                    if is_bad && target % 3 == 1 {
                        tokio::time::sleep(SLOW).await;
                    }
                    if is_bad { StatusCode::INTERNAL_SERVER_ERROR } else { StatusCode::NO_CONTENT }
                }
            });
            let serving = tokio::spawn(warp::serve(posted).incoming(listener).run());
            Ok::<_, Failure>((port, serving))
        };
        let (port, _) = serve(arriving.clone(), Arc::clone(&is_bad)).await?;
        let (dead_port, dead) = serve(arriving, Arc::clone(&is_bad)).await?;
        Ok(Self { port, came, dead, dead_port, is_bad })
    }

    /// Targets are spread over many hosts, as they are in the world.
    fn url(&self, target: usize) -> String {
        let port = if target < BAD && target.is_multiple_of(3) { self.dead_port } else { self.port };
        format!("http://127.0.{}.{}:{port}/{target}", target % 5, 1 + target / 5 % 200)
    }

    /// Lets the bad targets go bad: a third of them is dead, a third slow, a third refuses.
    fn go_bad(&self) {
        self.is_bad.store(true, Ordering::Relaxed);
        self.dead.abort();
    }

    /// Lets those that still listen recover.
    fn recover(&self) {
        self.is_bad.store(false, Ordering::Relaxed);
    }

    /// Waits until a change has come to all of some targets; answers how long each took, in seconds.
    async fn told(&mut self, from: usize, to: usize, since: Instant) -> Result<Vec<f64>, Failure> {
        let (mut seconds, mut told) = (Vec::with_capacity(to - from), HashSet::new());
        while seconds.len() < to - from {
            let next = tokio::time::timeout(TOLD_MAX, self.came.recv()).await;
            let (target, at) = next.map_err(|_| format!("{} of {} targets were told", seconds.len(), to - from))?.ok_or("no receiver")?;
            if (from..to).contains(&target) && told.insert(target) {
                seconds.push(at.duration_since(since).as_secs_f64());
            }
        }
        Ok(seconds)
    }
}

/// Asks and posts as any client does.
fn client() -> Result<reqwest::Client, Failure> {
    // Installed twice is an error that says it is installed already, which is all we want.
    drop(rustls::crypto::ring::default_provider().install_default());
    Ok(reqwest::Client::builder().no_proxy().build()?)
}

async fn register(client: &reqwest::Client, node: &Node, key: &str, url: &str) -> Result<(), Failure> {
    let asked = client.post(format!("http://{}/recalls/api/webhook", node.address)).header("x-api-key", key);
    let body = json!({ "webhook_url": url }).to_string();
    let answer = asked.header("content-type", "application/json").body(body).send().await?;
    if answer.status() == StatusCode::CREATED { Ok(()) } else { Err(answer.text().await?.into()) }
}

/// One change after another to one target, and a bare post of the same size to the same receiver.
async fn singles(place: &Place, node: &Node, command: &str, max_s: f64) -> Result<(), Failure> {
    let mut receiver = Receiver::open().await?;
    let client = client()?;
    let key = place.run(command, &["keys", "mint", "--tier", "business"])?;
    let target = BAD;
    register(&client, node, &key, &receiver.url(target)).await?;
    let (mut posted, mut bare) = (Vec::new(), Vec::new());
    for _ in 0..SINGLES {
        let came = place.change(command)?;
        posted.extend(receiver.told(target, target + 1, came).await?);
        let begun = Instant::now();
        client.post(receiver.url(target)).body(vec![b'x'; 900]).send().await?;
        bare.extend(receiver.told(target, target + 1, begun).await?);
    }
    latency("from the upstream's answer to the post", &posted);
    latency("... a bare post", &bare);
    let p99 = percentile(posted, 0.99);
    ratio("p99 from answer to post, s", p99, p99 <= max_s, &max_s.to_string());
    Ok(())
}

/// Many targets, of which some go bad.
async fn crowd(place: &Place, node: &Node, command: &str) -> Result<(), Failure> {
    let mut receiver = Receiver::open().await?;
    let client = client()?;
    let begun = Instant::now();
    let keys = (0..TARGETS / TARGETS_A_KEY).map(|_| place.run(command, &["keys", "mint", "--tier", "business"]));
    let keys = keys.collect::<Result<Vec<String>, Failure>>()?;
    let registered = join_all(keys.iter().enumerate().map(|(number, key)| {
        let (client, receiver) = (&client, &receiver);
        async move {
            for target in number * TARGETS_A_KEY..(number + 1) * TARGETS_A_KEY {
                register(client, node, key, &receiver.url(target)).await?;
            }
            Ok::<(), Failure>(())
        }
    }));
    registered.await.into_iter().collect::<Result<(), Failure>>()?;
    figure("targets registered, a second", format!("{:.0}", TARGETS as f64 / begun.elapsed().as_secs_f64()));
    let mut p99s = Vec::new();
    let mut descriptors = Vec::new();
    for bad in [0, BAD] {
        if bad > 0 {
            receiver.go_bad();
        }
        let mut seconds = Vec::new();
        for turn in 0..TOLD {
            let came = place.change(command)?;
            let told = receiver.told(BAD, TARGETS, came).await?;
            let last = told.iter().copied().fold(0.0, f64::max);
            figure(&format!("{bad} bad ones, change {}: others a second", turn + 1), format!("{:.0}", told.len() as f64 / last));
            seconds.extend(told);
        }
        latency(&format!("{bad} bad ones: the others are told"), &seconds);
        p99s.push(percentile(seconds, 0.99));
        receiver.recover();
        let open = node.settled(descriptors.first()).await?;
        descriptors.push(open);
    }
    let beside = p99s[1] / p99s[0];
    ratio("p99 of the others beside bad ones", beside, beside <= OTHERS_MAX, "1.1");
    let memory_mib = memory_mib(node.child.id())?;
    ratio("the server's memory, MiB", memory_mib, memory_mib <= MEMORY_MIB_MAX, "300");
    figure("descriptors before and after", format!("{} / {}", descriptors[0], descriptors[1]));
    ratio("descriptors left open", descriptors[1] as f64 - descriptors[0] as f64, descriptors[1] <= descriptors[0] + DESCRIPTORS, "50");
    Ok(())
}

async fn both(place: &Place, node: &Node, command: &str, max_s: f64, only: Option<&str>) -> Result<(), Failure> {
    place.run(command, &["ingest", UPSTREAM, "--once"])?;
    if only != Some("crowd") {
        singles(place, node, command, max_s).await?;
    }
    if only != Some("singles") {
        crowd(place, node, command).await?;
    }
    Ok(())
}

/// On the embedded pair.
pub(crate) fn embedded(settings: &Settings) -> Result<(), Failure> {
    heading("webhooks: the embedded pair");
    tokio::runtime::Builder::new_multi_thread().enable_all().build()?.block_on(async {
        let dir = tempfile::tempdir_in(&settings.dir)?;
        let place = Place::open(dir.path(), &[]).await?;
        let node = Node::start(&place, "node", "all")?;
        both(&place, &node, "node", EMBEDDED_MAX_S, settings.only.as_deref()).await
    })
}

/// On Kafka and CQL, roles in processes of their own.
pub(crate) fn on_servers(settings: &Settings, brokers: &str, cql: &str) -> Result<(), Failure> {
    heading("webhooks: Kafka and CQL, projector and API in processes of their own");
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
        let place = Place::open(dir.path(), &variables).await?;
        let projector = Node::start(&place, "projector", "project")?;
        let api = Node::start(&place, "api", "api")?;
        let measured = both(&place, &api, "ingestor", SERVERS_MAX_S, settings.only.as_deref()).await;
        drop((projector, api));
        engines::remove_topics(brokers, &format!("{name}.")).await?;
        engines::remove_keyspace(&engines::driver(cql).await?, &name).await?;
        measured
    })
}
