//! Thousands of idle readers of server-sent events at one node: the memory that they cost, and the time from the append of a fact until its
//! change has reached the last of them. The node is a separate process; both times come from the same clock.

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

use crate::child_server::api_context;
use crate::engine::Engine;
use crate::report::{figure, heading, line, median, memory_now_mib, ratio, spawn};
use crate::{Failure, Settings, facts, ingest};

/// Concurrent readers.
const READERS: usize = 2_000;
/// The number of changes that are appended.
const CHANGES: usize = 20;
/// Connections that are opened at a time.
const OPENED_AT_ONCE: usize = 100;
/// The time after which a change counts as lost.
const ARRIVAL_TIMEOUT: Duration = Duration::from_secs(60);
const MEMORY_MIB_MAX: f64 = 200.0;

/// The node; killed when dropped.
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

    /// Reads the next line of the node's output.
    fn read_line(&mut self) -> Result<Value, Failure> {
        let mut report = String::new();
        self.output.read_line(&mut report)?;
        Ok(serde_json::from_str(&report)?)
    }

    /// Makes the node append a fact; returns the time just before the append, in milliseconds since 1970.
    fn append(&mut self) -> Result<f64, Failure> {
        writeln!(self.input, "append")?;
        self.read_line()?.as_f64().ok_or_else(|| "the node appended nothing".into())
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
    let report = node.read_line()?;
    let text = |name: &str| report.get(name).and_then(Value::as_str).unwrap_or_default().to_owned();
    let (address, key): (SocketAddr, _) = (text("address").parse()?, text("key"));
    let runtime = tokio::runtime::Builder::new_multi_thread().worker_threads(1).enable_all().build()?;
    runtime.block_on(async {
        let (arrived, mut arrivals) = mpsc::unbounded_channel();
        // The one-time costs of the first reader and the first change are not part of the cost of a reader.
        tokio::spawn(follow(address, key.clone(), arrived.clone()));
        arrival_times(&mut arrivals, 1).await?;
        node.append()?;
        arrival_times(&mut arrivals, 1).await?;
        let before = memory_now_mib(node.child.id())?;
        for _ in 0..READERS / OPENED_AT_ONCE {
            for _ in 0..OPENED_AT_ONCE {
                tokio::spawn(follow(address, key.clone(), arrived.clone()));
            }
            arrival_times(&mut arrivals, OPENED_AT_ONCE).await?;
        }
        let idle = memory_now_mib(node.child.id())? - before;
        let (mut last, mut first, mut most) = (Vec::new(), Vec::new(), idle);
        for _ in 0..CHANGES {
            let handed_over = node.append()?;
            let times = arrival_times(&mut arrivals, READERS + 1).await?;
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
        ratio("memory of idle readers, MiB", idle, idle < MEMORY_MIB_MAX, "< 200");
        ratio("... and during changes, MiB", most, most < MEMORY_MIB_MAX, "< 200");
        Ok(())
    })
}

/// Waits for the given number of events; returns their arrival times.
async fn arrival_times(arrivals: &mut mpsc::UnboundedReceiver<Result<f64, String>>, count: usize) -> Result<Vec<f64>, Failure> {
    let taking = async {
        let mut times = Vec::with_capacity(count);
        while times.len() < count {
            times.push(arrivals.recv().await.ok_or("no reader is left")??);
        }
        Ok(times)
    };
    tokio::time::timeout(ARRIVAL_TIMEOUT, taking).await.map_err(|_| "a change did not reach all readers")?
}

/// Runs a reader, which reports when its stream began and when each event arrived.
async fn follow(address: SocketAddr, key: String, arrived: mpsc::UnboundedSender<Result<f64, String>>) {
    let followed = async {
        let mut stream = TcpStream::connect(address).await?;
        let head = "accept: text/event-stream\r\nhost: bench\r\n";
        let request = format!("GET /recalls/v1/changes?start=latest HTTP/1.1\r\n{head}x-api-key: {key}\r\n\r\n");
        stream.write_all(request.as_bytes()).await?;
        let (mut lines, mut is_named) = (tokio::io::BufReader::new(stream).lines(), false);
        while let Some(line) = lines.next_line().await? {
            // The first block has `retry`; a change has no name.
            match line.split(':').next() {
                Some("event") => is_named = true,
                Some("") => is_named &= !line.is_empty(),
                _ => {}
            }
            if line.starts_with("retry:") || (line.starts_with("data:") && !is_named) {
                let _ = arrived.send(Ok(now_ms()));
            }
        }
        Ok::<_, std::io::Error>(())
    };
    let message = match followed.await {
        Ok(()) => "a stream ended".to_owned(),
        Err(error) => format!("a stream broke: {error}"),
    };
    let _ = arrived.send(Err(message));
}

/// `stream-child`: serves, and appends a fact for each line of its input, until the input ends.
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
