//! Readers of server-sent events who wait, thousands at one node: the memory that they cost it while nothing happens, and the time from the
//! append of a fact until its change has reached the last of them. The node is a process of its own; append and arrival are told by the
//! machine's one clock.

use access::Access;
use operation::context::Part;
use std::io::{BufRead as _, BufReader, Write as _};
use std::net::SocketAddr;
use std::process::{Child, ChildStdin, ChildStdout};
use std::sync::Arc;
use std::time::Duration;

use event_log::Append;
use schemas::clock::Clock;
use schemas::views::accounts::Tier;
use serde_json::{Value, json};
use surfaces::server::Server;
use tokio::io::{AsyncBufReadExt as _, AsyncWriteExt as _};
use tokio::net::TcpStream;
use tokio::sync::mpsc;

use crate::engine::Engine;
use crate::page::api_context;
use crate::report::{figure, heading, line, median, memory_now_mib, ratio, spawn};
use crate::{Failure, Settings, facts, ingest};

/// Readers at once.
const READERS: usize = 2_000;
/// Changes that are waited for.
const CHANGES: usize = 20;
/// Connections that are opened at a time.
const OPENED_AT_ONCE: usize = 100;
/// Nothing takes longer than this but by a fault.
const ARRIVED_MAX: Duration = Duration::from_secs(60);
const MEMORY_MIB_MAX: f64 = 200.0;

/// The node; ended when dropped.
struct Node {
    child: Child,
    input: ChildStdin,
    output: BufReader<ChildStdout>,
}

impl Node {
    fn start(settings: &Settings) -> Result<Self, Failure> {
        let mut child = spawn(settings, "stream-child", &[])?;
        let (Some(input), Some(output)) = (child.stdin.take(), child.stdout.take()) else { return Err("the node has no pipes".into()) };
        Ok(Self { child, input, output: BufReader::new(output) })
    }

    /// The next line that it says.
    fn says(&mut self) -> Result<Value, Failure> {
        let mut said = String::new();
        self.output.read_line(&mut said)?;
        Ok(serde_json::from_str(&said)?)
    }

    /// Has it append a fact; when that was handed over, in milliseconds since 1970.
    fn append(&mut self) -> Result<f64, Failure> {
        writeln!(self.input, "append")?;
        self.says()?.as_f64().ok_or_else(|| "the node appended nothing".into())
    }
}

impl Drop for Node {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

fn now_ms() -> f64 {
    Clock::System.now().as_microsecond() as f64 / 1e3
}

/// Opens the readers, waits, and has facts appended.
pub(crate) fn run(settings: &Settings) -> Result<(), Failure> {
    heading(&format!("stream: {READERS} readers of events at one node, one worker thread"));
    ingest::prepare(settings)?;
    let mut node = Node::start(settings)?;
    let says = node.says()?;
    let text = |name: &str| says.get(name).and_then(Value::as_str).unwrap_or_default().to_owned();
    let (address, key): (SocketAddr, _) = (text("address").parse()?, text("key"));
    let runtime = tokio::runtime::Builder::new_multi_thread().worker_threads(1).enable_all().build()?;
    runtime.block_on(async {
        let (arrived, mut arrivals) = mpsc::unbounded_channel();
        // What a first reader and a first change cost is no reader's own.
        tokio::spawn(follow(address, key.clone(), arrived.clone()));
        taken(&mut arrivals, 1).await?;
        node.append()?;
        taken(&mut arrivals, 1).await?;
        let before = memory_now_mib(node.child.id())?;
        for _ in 0..READERS / OPENED_AT_ONCE {
            for _ in 0..OPENED_AT_ONCE {
                tokio::spawn(follow(address, key.clone(), arrived.clone()));
            }
            taken(&mut arrivals, OPENED_AT_ONCE).await?;
        }
        let idle = memory_now_mib(node.child.id())? - before;
        let (mut last, mut first, mut most) = (Vec::new(), Vec::new(), idle);
        for _ in 0..CHANGES {
            let handed_over = node.append()?;
            let times = taken(&mut arrivals, READERS + 1).await?;
            let after = times.into_iter().map(|at| at - handed_over);
            let (least, greatest) = after.fold((f64::MAX, 0.0_f64), |(least, greatest), ms| (least.min(ms), greatest.max(ms)));
            first.push(least);
            last.push(greatest);
            most = most.max(memory_now_mib(node.child.id())? - before);
        }
        figure("memory of a node without readers, MiB", format!("{before:.0}"));
        figure("a change has reached the first, p50 ms", format!("{:.1}", median(first)));
        figure("... and all, p50 ms", format!("{:.1}", median(last.clone())));
        let slowest = last.into_iter().fold(0.0, f64::max);
        ratio("... and all, the slowest of the changes, s", slowest / 1e3, slowest < 1e3, "< 1");
        ratio("memory of the readers while idle, MiB", idle, idle < MEMORY_MIB_MAX, "< 200");
        ratio("... and while changes come, MiB", most, most < MEMORY_MIB_MAX, "< 200");
        Ok(())
    })
}

/// When the next so many events arrived.
async fn taken(arrivals: &mut mpsc::UnboundedReceiver<Result<f64, String>>, count: usize) -> Result<Vec<f64>, Failure> {
    let taking = async {
        let mut times = Vec::with_capacity(count);
        while times.len() < count {
            times.push(arrivals.recv().await.ok_or("no reader is left")??);
        }
        Ok(times)
    };
    tokio::time::timeout(ARRIVED_MAX, taking).await.map_err(|_| "a change did not reach all readers")?
}

/// A reader: tells when its stream began, then when each event arrived.
async fn follow(address: SocketAddr, key: String, arrived: mpsc::UnboundedSender<Result<f64, String>>) {
    let followed = async {
        let mut stream = TcpStream::connect(address).await?;
        let head = "accept: text/event-stream\r\nhost: bench\r\n";
        let request = format!("GET /recalls/v1/changes?start=latest HTTP/1.1\r\n{head}x-api-key: {key}\r\n\r\n");
        stream.write_all(request.as_bytes()).await?;
        let mut lines = tokio::io::BufReader::new(stream).lines();
        while let Some(line) = lines.next_line().await? {
            if line.starts_with("retry:") || line.starts_with("data:") {
                let _ = arrived.send(Ok(now_ms()));
            }
        }
        Ok::<_, std::io::Error>(())
    };
    let words = match followed.await {
        Ok(()) => "a stream ended".to_owned(),
        Err(error) => format!("a stream broke: {error}"),
    };
    let _ = arrived.send(Err(words));
}

/// `stream-child`: serves, and appends a fact for each line that it is given, until its input ends.
pub(crate) fn child(settings: &Settings) -> Result<(), Failure> {
    let runtime = tokio::runtime::Builder::new_multi_thread().worker_threads(1).enable_all().build()?;
    runtime.block_on(async {
        let mut facts = facts::of(settings, CHANGES + 1).await?.into_iter();
        let dir = tempfile::tempdir_in(&settings.dir)?;
        let engine = Engine::open(dir.path()).await?;
        let server = Server::bind(SocketAddr::from(([127, 0, 0, 1], 0)))?;
        let address = server.address();
        let context = api_context(&engine, dir.path(), address)?;
        let minted = Access::of(&context).mint(&context, Tier::FleetPlus, "bench@example.com").await;
        let key = minted.map_err(|problem| format!("no key: {problem:?}"))?.key.reveal().to_owned();
        line(&json!({ "address": address.to_string(), "key": key }).to_string());
        let serving = server.run(Arc::clone(&context), services::all(), Arc::new(|| Ok(())), std::future::pending());
        let appending = async {
            let (asked, mut asks) = mpsc::unbounded_channel();
            std::thread::spawn(move || std::io::stdin().lines().map_while(Result::ok).all(|_| asked.send(()).is_ok()));
            while asks.recv().await.is_some() {
                let fact: Append = facts.next().ok_or("no fact is left")?;
                let handed_over = now_ms();
                engine.log.append(vec![fact]).await?;
                line(&json!(handed_over).to_string());
            }
            Ok::<_, Failure>(())
        };
        tokio::select! {
            served = serving => served.map_err(Failure::from),
            appended = appending => appended,
        }
    })
}
