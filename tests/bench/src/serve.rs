//! `highwater serve` with all services over one data directory: the time until it is ready, its memory, and the first byte of pages of the site. There is no
//! peer: the figures are compared with their limits alone. The binary is `highwater` next to this program, or that of `HIGHWATER_BIN`.
//!
//! The records are the facts of the other benchmarks, each service with its share. Receipts are of their time and have none.

use std::ffi::OsString;
use std::fs::File;
use std::net::{Ipv4Addr, SocketAddr, TcpListener};
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::sync::atomic::{AtomicU32, Ordering};
use std::time::{Duration, Instant};

use operation::secrets::Secrets;
use serde_json::{Value, json};

use crate::engine::Engine;
use crate::loads::Observed;
use crate::report::{figure, heading, latency, line, memory_mib, memory_now_mib, number, percentile, processor_of_s, ratio, run_child};
use crate::{
    Failure, Settings, aviation, cadence, catalysts, coverage, exclusions, facts, filters, ingest, labs, loads, parcels, phrases, register,
    webhooks,
};

/// The environment variable with the path of another binary.
const BINARY: &str = "HIGHWATER_BIN";
/// An address where nothing listens: upstreams are not read.
const NOWHERE: &str = "http://127.0.0.1:9";
/// The schedule of upstreams: on leap days only.
const SCHEDULE: &str = "0 0 0 29 2 *";
/// The shares of the services in all records, in thousandths. The register of trademarks has the most, as outside of the benchmark.
const MARKS: u64 = 250;
const PARCELS: u64 = 150;
const LEADS: u64 = 150;
const AWARDS_AND_FILINGS: u64 = 200;
const GRANTS: u64 = 80;
const TRIALS: u64 = 50;
const EXCLUSIONS: u64 = 40;
const STORIES: u64 = 40;
const RECALLS: u64 = 20;
const DIRECTIVES: u64 = 10;
const ITEMS: u64 = 10;
/// The least share of the wanted records: with fewer the other figures say nothing of so many.
const RECORDS_SHARE_MIN: f64 = 0.9;
const READY_S_MAX: f64 = 5.0;
/// 400 MB.
const MEMORY_MIB_MAX: f64 = 400e6 / (1024.0 * 1024.0);
const FIRST_BYTE_MS_MAX: f64 = 20.0;
/// How long a start may take before the benchmark gives up, and how often it asks whether the server is ready.
const START_TIMEOUT: Duration = Duration::from_secs(600);
const READY_POLL: Duration = Duration::from_millis(10);
/// A server has settled after so many seconds in a row in which it used less than this share of a core. One that never does is measured nevertheless.
const SETTLED_S: u32 = 3;
const IDLE_SHARE: f64 = 0.1;
const SETTLE_TIMEOUT: Duration = Duration::from_secs(900);
/// Requests for pages of each kind.
const REQUESTS: usize = 300;
/// Record pages of each service that are asked for.
const RECORDS_OF_SERVICE: usize = 10;
/// How many facts are appended at once.
const APPEND_RECORDS: usize = 2_000;
/// The address of the first visitor, and how many pages one asks for.
const FIRST_VISITOR: Ipv4Addr = Ipv4Addr::new(10, 0, 0, 1);
const PAGES_OF_VISITOR: u32 = 200;
/// Where the explorer of each service begins.
const EXPLORE: &str = "/explore/";
/// Searches over all services: for words of many records, of some, and of none, for which everything without an index is searched as well.
const SEARCHES: [&str; 3] = ["/explore?q=recall", "/explore?q=university", "/explore?q=zzyzx"];
/// The status page, pages of entities, and the page of receipts: each reads all or most services.
const STATUS: [&str; 1] = ["/status"];
const ENTITIES: [&str; 3] = ["/entities/company?name=Acme", "/entities/institution?name=University", "/entities/contractor?name=Federal"];
const RECEIPTS: [&str; 1] = ["/verify"];

/// The settings of a benchmark with a share of the records, in thousandths.
fn share(settings: &Settings, thousandths: u64) -> Settings {
    Settings { records: (settings.records * thousandths / 1_000).max(1), ..settings.clone() }
}

fn data_dir(settings: &Settings) -> PathBuf {
    settings.dir.join(format!("serve-{}", settings.records))
}

/// The file that says that the data is loaded.
fn marker(settings: &Settings) -> PathBuf {
    data_dir(settings).with_extension("complete")
}

/// Loads the data unless an earlier run did, starts the server twice, and asks for pages.
pub(crate) fn run(settings: &Settings) -> Result<(), Failure> {
    heading(&format!("serve: all services with about {} records, one connection", settings.records));
    if !marker(settings).exists() {
        if data_dir(settings).exists() {
            std::fs::remove_dir_all(data_dir(settings))?;
        }
        // Here, because it prints what it does, and the child prints its result alone.
        ingest::prepare(&share(settings, RECALLS))?;
        let loaded = run_child(settings, "serve-load-child", &[])?;
        figure("facts loaded", number(&loaded, "facts"));
        figure("... and decided, s", format!("{:.0}", number(&loaded, "seconds")));
        let parked = number(&loaded, "parked");
        ratio("facts that could not be decided", parked, parked < 1.0, "0");
        std::fs::write(marker(settings), loaded.to_string())?;
    }
    let runtime = tokio::runtime::Builder::new_multi_thread().worker_threads(1).enable_all().build()?;
    runtime.block_on(async {
        let first = Served::start(settings).await?;
        figure("ready at the first start, s", format!("{:.2}", first.ready_s));
        // Indexes, signatures and checkpoints of what was loaded are work of the first start alone.
        figure("... until it had settled, s", format!("{:.0}", first.settle().await?));
        first.stop()?;
        let server = Served::start(settings).await?;
        ratio("ready, s", server.ready_s, server.ready_s <= READY_S_MAX, "<= 5");
        figure("memory when ready, MiB", format!("{:.0}", memory_now_mib(server.child.id())?));
        let share = server.records().await? / settings.records as f64;
        ratio("current records / --records", share, share >= RECORDS_SHARE_MIN, ">= 0.9");
        figure("settled after another, s", format!("{:.0}", server.settle().await?));
        pages(&server).await?;
        let peak = memory_mib(server.child.id())?;
        ratio("peak memory, MiB", peak, peak <= MEMORY_MIB_MAX, "<= 381 (400 MB)");
        server.stop()
    })
}

/// Asks for a page of each template in turn.
async fn pages(server: &Served) -> Result<(), Failure> {
    let home = server.page("/").await?;
    // Without links to records.
    let mut explorers = links(&home.body, EXPLORE);
    explorers.retain(|path| path.strip_prefix(EXPLORE).is_some_and(|name| !name.contains('/')));
    let mut records = Vec::new();
    for explorer in &explorers {
        let page = server.page(explorer).await?;
        records.extend(links(&page.body, &format!("{explorer}/")).into_iter().take(RECORDS_OF_SERVICE));
    }
    if explorers.is_empty() || records.is_empty() {
        return Err("the home page links to no explorer, or the explorers to no record".into());
    }
    figure("explorers / pages of records", format!("{} / {}", explorers.len(), records.len()));
    let fixed = |paths: &[&str]| paths.iter().map(|path| (*path).to_owned()).collect::<Vec<_>>();
    let kinds = [
        ("home", fixed(&["/"])),
        ("explorer", explorers),
        ("record", records),
        ("search", fixed(&SEARCHES)),
        ("status", fixed(&STATUS)),
        ("entity", fixed(&ENTITIES)),
        ("receipts", fixed(&RECEIPTS)),
    ];
    let mut seconds = kinds.each_ref().map(|_| Vec::new());
    for n in 0..REQUESTS {
        for ((_, paths), seconds) in kinds.iter().zip(&mut seconds) {
            let Some(path) = paths.get(n % paths.len().max(1)) else { continue };
            seconds.push(server.page(path).await?.first_s);
        }
    }
    for ((kind, _), seconds) in kinds.iter().zip(&seconds) {
        latency(&format!("first byte, {kind}"), seconds);
        let p99 = percentile(seconds.clone(), 0.99) * 1e3;
        ratio(&format!("first byte, {kind}, p99 ms"), p99, p99 <= FIRST_BYTE_MS_MAX, "<= 20");
    }
    Ok(())
}

/// The paths of a page's links that begin with a text, each once, without those with a query.
fn links(body: &str, beginning: &str) -> Vec<String> {
    let mut found: Vec<String> = Vec::new();
    for rest in body.split(&format!("href=\"{beginning}")).skip(1) {
        let path = rest.split('"').next().map(|rest| format!("{beginning}{rest}")).unwrap_or_default();
        let is_page = path.len() > beginning.len() && !path.contains(['?', '#', '&']);
        if is_page && !found.contains(&path) {
            found.push(path);
        }
    }
    found
}

/// A page of the site.
struct Page {
    first_s: f64,
    body: String,
}

/// A running `highwater serve`; killed when dropped.
struct Served {
    child: Child,
    address: SocketAddr,
    client: reqwest::Client,
    /// The seconds until it was ready.
    ready_s: f64,
    /// The number of pages that were asked for.
    pages: AtomicU32,
}

impl Served {
    /// Starts a server and waits until it is ready.
    async fn start(settings: &Settings) -> Result<Self, Failure> {
        let (address, started) = (free_address()?, Instant::now());
        let child = command(settings, address)?.spawn()?;
        let mut server = Self { child, address, client: webhooks::client()?, ready_s: 0.0, pages: AtomicU32::new(0) };
        loop {
            let answer = server.client.get(format!("http://{address}/readyz")).send().await;
            if answer.is_ok_and(|answer| answer.status().is_success()) {
                server.ready_s = started.elapsed().as_secs_f64();
                return Ok(server);
            }
            if let Some(status) = server.child.try_wait()? {
                return Err(format!("the server ended with {status}; see {}", log_file(settings).display()).into());
            }
            if started.elapsed() > START_TIMEOUT {
                return Err(format!("the server is not ready; see {}", log_file(settings).display()).into());
            }
            tokio::time::sleep(READY_POLL).await;
        }
    }

    /// Waits until the server does nothing but to answer. Returns the seconds.
    async fn settle(&self) -> Result<f64, Failure> {
        let (started, mut idle_s) = (Instant::now(), 0);
        let mut before = processor_of_s(self.child.id())?;
        while idle_s < SETTLED_S && started.elapsed() < SETTLE_TIMEOUT {
            tokio::time::sleep(Duration::from_secs(1)).await;
            let now = processor_of_s(self.child.id())?;
            idle_s = if now - before < IDLE_SHARE { idle_s + 1 } else { 0 };
            before = now;
        }
        Ok(started.elapsed().as_secs_f64())
    }

    /// Gets a page as a browser does.
    async fn page(&self, path: &str) -> Result<Page, Failure> {
        let started = Instant::now();
        // One address gets 300 pages in a minute, so each of these visitors asks for fewer.
        let visitor = Ipv4Addr::from_bits(FIRST_VISITOR.to_bits() + self.pages.fetch_add(1, Ordering::Relaxed) / PAGES_OF_VISITOR);
        let request = self.client.get(format!("http://{}{path}", self.address)).header("accept", "text/html");
        let request = request.header("x-forwarded-for", visitor.to_string());
        let mut answer = request.send().await?;
        let (status, mut first_s, mut body) = (answer.status(), 0.0, Vec::new());
        while let Some(part) = answer.chunk().await? {
            if body.is_empty() {
                first_s = started.elapsed().as_secs_f64();
            }
            body.extend_from_slice(&part);
        }
        let body = String::from_utf8_lossy(&body).into_owned();
        if status.is_success() { Ok(Page { first_s, body }) } else { Err(format!("{path}: {status} {body}").into()) }
    }

    /// The current records of all services.
    async fn records(&self) -> Result<f64, Failure> {
        let mut records = 0.0;
        for name in services::names() {
            let answer = self.client.get(format!("http://{}/{name}/health", self.address)).send().await?;
            let health: Value = serde_json::from_str(&answer.text().await?)?;
            records += number(&health, "records");
        }
        Ok(records)
    }

    /// Stops it as an operator does, so that it leaves what the next start reads.
    fn stop(mut self) -> Result<(), Failure> {
        Command::new("kill").arg("-TERM").arg(self.child.id().to_string()).status()?;
        let status = self.child.wait()?;
        if status.success() { Ok(()) } else { Err(format!("the server ended with {status}").into()) }
    }
}

impl Drop for Served {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

/// An address that is free now.
fn free_address() -> Result<SocketAddr, Failure> {
    Ok(TcpListener::bind(("127.0.0.1", 0))?.local_addr()?)
}

fn log_file(settings: &Settings) -> PathBuf {
    data_dir(settings).with_extension("log")
}

/// The command that serves the data directory, without any setting of the caller's environment.
fn command(settings: &Settings, address: SocketAddr) -> Result<Command, Failure> {
    let own_directory = || std::env::current_exe().map(|this| this.with_file_name("highwater").into_os_string());
    let binary: OsString = std::env::var_os(BINARY).map_or_else(own_directory, Ok)?;
    // The server runs in another directory.
    let path = std::path::absolute(Path::new(&binary))?;
    if !path.exists() {
        return Err(format!("{} does not exist: run cargo build --release, or set {BINARY}", path.display()).into());
    }
    let mut command = Command::new(&path);
    command.arg("serve").stdin(Stdio::null()).stdout(Stdio::null()).stderr(File::create(log_file(settings))?);
    for (name, _) in std::env::vars_os().filter(|(name, _)| name.as_encoded_bytes().starts_with(b"HIGHWATER_")) {
        command.env_remove(name);
    }
    // A directory without configuration files.
    command.current_dir(&settings.dir);
    command.env("HIGHWATER_DATA_DIR", std::path::absolute(data_dir(settings))?).env("HIGHWATER_LISTEN", address.to_string());
    command.env("HIGHWATER_CHECKPOINTS__MEMORY", std::path::absolute(data_dir(settings).with_extension("signer"))?);
    // Visitors are distinguished by the header of a proxy.
    command.env("HIGHWATER_API__TRUSTED_PROXIES", "[\"127.0.0.1/32\"]");
    command.env("HIGHWATER_UPSTREAMS_BASE_URL", NOWHERE).env("HIGHWATER_TIERS__FREE__CALLS_PER_DAY", "1000000000");
    for upstream in upstreams::ALL {
        let name = upstream.manifest().name.to_uppercase();
        command.env(format!("HIGHWATER_UPSTREAMS__{name}__SCHEDULE"), SCHEDULE);
    }
    for name in simulator::UPSTREAMS_WITH_KEY {
        command.env(format!("HIGHWATER_UPSTREAMS__{}__API_KEY", name.to_uppercase()), simulator::KEY);
    }
    Ok(command)
}

/// `serve-load-child`: loads the share of each service, and lets all services decide.
pub(crate) fn load_child(settings: &Settings) -> Result<(), Failure> {
    let runtime = tokio::runtime::Builder::new_multi_thread().enable_all().build()?;
    let result = runtime.block_on(load(settings))?;
    line(&result.to_string());
    Ok(())
}

async fn load(settings: &Settings) -> Result<Value, Failure> {
    let (dir, started) = (data_dir(settings), Instant::now());
    // Recalls come from the log that the simulated pages of `ingest` gave.
    let recalls = share(settings, RECALLS);
    let recalls = facts::of(&recalls, usize::try_from(recalls.records)?).await?;
    let engine = Engine::open(&dir).await?;
    // The server refuses a log without the master key that it was made with.
    Secrets::load_or_create(&dir.join("master.key"))?;
    let mut count = recalls.len() as u64;
    for batch in recalls.chunks(APPEND_RECORDS) {
        engine.log.append(batch.to_vec()).await?;
    }
    let services: [Box<dyn Iterator<Item = Observed>>; 9] = [
        Box::new(filters::awards_and_filings(&share(settings, AWARDS_AND_FILINGS))),
        Box::new(labs::facts(&share(settings, GRANTS))),
        Box::new(catalysts::facts(&share(settings, TRIALS))),
        Box::new(exclusions::facts(&share(settings, EXCLUSIONS))?),
        Box::new(phrases::facts(&share(settings, STORIES))),
        Box::new(aviation::facts(&share(settings, DIRECTIVES))),
        Box::new(register::facts(&share(settings, MARKS))),
        Box::new(parcels::facts(&share(settings, PARCELS))),
        Box::new(coverage::facts(&share(settings, LEADS))),
    ];
    for facts in services {
        count += loads::append(&engine, facts).await?;
    }
    let marker_dir = dir.with_extension("cadence");
    // Left by a load that was interrupted.
    if marker_dir.exists() {
        std::fs::remove_dir_all(&marker_dir)?;
    }
    std::fs::create_dir_all(&marker_dir)?;
    count += cadence::load(&engine, &share(settings, ITEMS), &marker_dir).await?;
    // Some services decide from the changes of others, and the engine decides at the same time: what it decided during one round counts in none.
    let mut quiet_rounds = 0;
    while quiet_rounds < 2 {
        quiet_rounds = if decide_all(&engine).await? == 0 { quiet_rounds + 1 } else { 0 };
    }
    let seconds = started.elapsed().as_secs_f64();
    let mut parked = 0;
    for service in engine.projector.services() {
        parked += service.parked().await?;
    }
    engine.close().await?;
    Ok(json!({ "facts": count, "parked": parked, "seconds": seconds }))
}

/// Lets each service decide what there is. Returns how many facts and changes were new to them.
async fn decide_all(engine: &Engine) -> Result<u64, Failure> {
    let mut decided = 0;
    for service in engine.projector.services() {
        decided += service.catch_up().await?;
    }
    Ok(decided)
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Proves which links of a page are followed: those to paths below the beginning, each once, without queries.
    #[test]
    fn links_of_pages() {
        let body = r#"<a href="/explore/awards">A</a><a href="/explore/awards/1">1</a><a href="/explore/awards?x=1">x</a><a href="/explore/awards">A</a>"#;
        assert_eq!(links(body, "/explore/awards/"), ["/explore/awards/1"]);
        assert_eq!(links(body, EXPLORE), ["/explore/awards", "/explore/awards/1"]);
        assert_eq!(links("", EXPLORE), Vec::<String>::new());
    }
}
