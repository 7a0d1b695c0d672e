//! What the benchmarks of lists share: filling a topic and deciding it, PostgreSQL with the same rows behind the same HTTP framework, and the
//! load on both in turn.

use std::convert::Infallible;
use std::fmt::Write as _;
use std::net::SocketAddr;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::{Duration, Instant};

use bytes::Bytes;
use event_log::Append;
use projector::rebuild::Progress;
use schemas::avro::Encoder;
use schemas::clock::Clock;
use schemas::event::Head;
use schemas::facts::FactData;
use schemas::position::LogOffset;
use schemas::tables::ViewDef;
use schemas::topics::Topic;
use serde_json::json;
use surfaces::server::Server;
use warp::Filter as _;

use crate::child_server::{ChildServer, SOCKET, api_context, json_response, mint_keys};
use crate::engine::Engine;
use crate::json_server::serve;
use crate::load::{Round, Target};
use crate::report::{figure, line, median, ratio};
use crate::{Failure, Settings, facts, postgres};

/// The mode of `serve-child` for PostgreSQL's rows.
pub(crate) const PEER_MODE: &str = "lists_peer";
/// The environment variable with the queries, as a JSON list.
const QUERIES: &str = "BENCH_QUERIES";
const APPEND_RECORDS: u64 = 2_000;
/// The largest read of a topic, as in the projector.
const READ_RECORDS: usize = 2_000;
const READ_BYTES: usize = 4 << 20;

/// How long each side takes items in a round.
const TAKING: Duration = Duration::from_secs(1);

/// A kind of requests: the name in the report of the server, a description, and the target of the 99th percentile in milliseconds.
pub(crate) struct Kind {
    pub(crate) name: &'static str,
    pub(crate) about: &'static str,
    pub(crate) p99_ms_max: f64,
}

/// Appends the facts of a topic that are missing, without waiting for their projection. Returns how many facts there are.
async fn append_missing(
    engine: &Engine,
    topic: &'static Topic,
    records: u64,
    fact: impl Fn(u64) -> (String, FactData),
) -> Result<u64, Failure> {
    let mut n = 0;
    for partition in 0..topic.partitions {
        n += engine.log.end(topic, partition).await?.0;
    }
    let mut encoder = Encoder::new(topic.name)?;
    while n < records {
        let upto = records.min(n + APPEND_RECORDS);
        let batch: Result<Vec<Append>, Failure> = (n..upto)
            .map(|n| {
                let (key, data) = fact(n);
                facts::observe(&mut encoder, &mut Head::default(), &key, &data, Clock::System.now().as_millisecond())
            })
            .collect();
        engine.log.append(batch?).await?;
        n = upto;
    }
    Ok(n)
}

/// Waits until a view has processed everything in a topic.
async fn wait_projected(engine: &Engine, view: &'static ViewDef, topic: &'static Topic) -> Result<(), Failure> {
    let live = engine.store.live(view).await?;
    for partition in 0..topic.partitions {
        view_store::engine::wait_past(&*live, topic, partition, engine.log.end(topic, partition).await?).await?;
    }
    Ok(())
}

/// The times of a service with a filled topic, in seconds.
struct Times {
    /// Reading the topic and discarding it.
    raw_s: f64,
    /// Deciding everything from nothing; 0 if it was decided before.
    decide_s: f64,
    /// Deciding everything again.
    redecide_s: f64,
}

/// What a hidden command does that fills a topic: appends the facts that are missing, lets a service decide them, and decide them again; prints the times
/// and the number of changes.
pub(crate) fn child(
    settings: &Settings,
    (service, view, topic): (&str, &'static ViewDef, &'static Topic),
    fact: impl Fn(u64) -> (String, FactData),
) -> Result<(), Failure> {
    let runtime = tokio::runtime::Builder::new_multi_thread().enable_all().build()?;
    let result = runtime.block_on(async {
        let engine = Engine::open_with(&data_dir(settings, service), false).await?;
        let before = engine.store.live(view).await?.checkpoint().await?.seq.0;
        append_missing(&engine, topic, settings.records, fact).await?;
        let Times { raw_s, decide_s, redecide_s } = decide(&engine, service, topic).await?;
        let after = engine.store.live(view).await?.checkpoint().await?.seq.0;
        engine.close().await?;
        Ok::<_, Failure>(json!({ "raw_s": raw_s, "decide_s": decide_s, "redecide_s": redecide_s, "decided": after - before }))
    })?;
    line(&result.to_string());
    Ok(())
}

/// Serves what [`child`] decided until it is killed, and prints the address, keys and the paths of each kind of requests first.
pub(crate) async fn serve_own(
    settings: &Settings,
    (service, view, topic): (&str, &'static ViewDef, &'static Topic),
    paths: Vec<(&str, Vec<(String, String)>)>,
) -> Result<(), Failure> {
    let dir = data_dir(settings, service);
    let engine = Engine::open(&dir).await?;
    wait_projected(&engine, view, topic).await?;
    let server = Server::bind(SocketAddr::from(([127, 0, 0, 1], 0)))?;
    let address = server.address();
    let context = api_context(&engine, &dir, address)?;
    let mut report = json!({ "address": address.to_string(), "keys": mint_keys(&context).await? });
    for (name, paths) in paths {
        let (own, peer): (Vec<String>, Vec<String>) = paths.into_iter().unzip();
        report[name] = json!(own);
        report[format!("{name} peer")] = json!(peer);
    }
    line(&report.to_string());
    server.run(Arc::clone(&context), services::all(), Arc::new(|| Ok(())), std::future::pending()).await?;
    Ok(())
}

fn data_dir(settings: &Settings, service: &str) -> PathBuf {
    settings.dir.join(format!("{service}-{}", settings.records))
}

/// Returns how many items a second are taken on one core.
pub(crate) fn per_second<T>(items: &[T], mut take: impl FnMut(&T)) -> f64 {
    let (started, mut taken) = (Instant::now(), 0_u32);
    while started.elapsed() < TAKING {
        for item in items {
            take(item);
            taken += 1;
        }
    }
    f64::from(taken) / started.elapsed().as_secs_f64()
}

/// Reads a topic, lets a service decide it, and decide it again. The engine runs no deciders of its own.
async fn decide(engine: &Engine, service: &str, topic: &'static Topic) -> Result<Times, Failure> {
    wait_projected(engine, &schemas::views::engine::VIEW, topic).await?;
    let started = Instant::now();
    for partition in 0..topic.partitions {
        let mut next = LogOffset(0);
        while let Some(last) = engine.log.read(topic, partition, next, READ_RECORDS, READ_BYTES).await?.last() {
            next = last.offset.next();
        }
    }
    let raw_s = started.elapsed().as_secs_f64();
    let service = engine.projector.service(service)?;
    let started = Instant::now();
    service.catch_up().await?;
    let decide_s = started.elapsed().as_secs_f64();
    let quiet: Progress = Arc::new(|_, _| ());
    let started = Instant::now();
    let moved = service.redecide(&quiet).await?;
    if moved > 0 {
        return Err(format!("deciding again by the same rules moved {moved} records").into());
    }
    Ok(Times { raw_s, decide_s, redecide_s: started.elapsed().as_secs_f64() })
}

/// Fills a table of PostgreSQL. `rows` gives the columns of each row; `after` are statements for the indexes.
pub(crate) async fn fill_peer(
    socket: &Path,
    table: &str,
    definition: &str,
    rows: impl Iterator<Item = Vec<String>>,
    indexes: &[&str],
) -> Result<(), Failure> {
    let client = postgres::connect(socket).await?;
    client.batch_execute(&format!("create table {table} ({definition})")).await?;
    let file = socket.join(format!("{table}.tsv"));
    let mut out = std::io::BufWriter::new(std::fs::File::create(&file)?);
    let mut text = String::new();
    for row in rows {
        text.clear();
        for (at, column) in row.iter().enumerate() {
            // COPY's text format: only the backslash is special in JSON and names.
            write!(text, "{}{}", if at > 0 { "\t" } else { "" }, column.replace('\\', "\\\\"))?;
        }
        text.push('\n');
        std::io::Write::write_all(&mut out, text.as_bytes())?;
    }
    std::io::Write::flush(&mut out)?;
    client.batch_execute(&format!("copy {table} from '{}'", file.display())).await?;
    std::fs::remove_file(&file)?;
    for index in indexes {
        client.batch_execute(index).await?;
    }
    client.batch_execute(&format!("vacuum analyze {table}")).await?;
    client.batch_execute("checkpoint").await?;
    Ok(())
}

/// Starts the peer: a process that serves queries, given by their SQL, whose parameters are texts and whose first column is JSON.
pub(crate) fn start_peer(settings: &Settings, socket: &Path, queries: &[&str]) -> Result<ChildServer, Failure> {
    let variables = [(SOCKET, socket.display().to_string()), (QUERIES, json!(queries).to_string())];
    ChildServer::start(settings, PEER_MODE, &variables)
}

/// Serves the queries of the peer: `/0?FIRST&SECOND` runs the first one with two parameters.
pub(crate) async fn serve_peer() -> Result<(), Failure> {
    let (socket, queries): (String, Vec<String>) = (std::env::var(SOCKET)?, serde_json::from_str(&std::env::var(QUERIES)?)?);
    let mut pool = Vec::new();
    for _ in 0..postgres::POOL {
        let client = postgres::connect(socket.as_ref()).await?;
        let mut statements = Vec::new();
        for query in &queries {
            statements.push(client.prepare(query).await?);
        }
        pool.push((client, statements));
    }
    let (pool, next) = (Arc::new(pool), Arc::new(AtomicUsize::new(0)));
    let route = warp::path::param().and(warp::query::raw()).and_then(move |query: usize, raw: String| {
        let (pool, at) = (Arc::clone(&pool), next.fetch_add(1, Ordering::Relaxed));
        async move {
            let parameters: Vec<String> = raw.split('&').map(|text| text.replace("%20", " ")).collect();
            let (client, statements) = &pool[at % postgres::POOL];
            let parameters: Vec<&(dyn tokio_postgres::types::ToSql + Sync)> = parameters.iter().map(|text| text as _).collect();
            let rows = match statements.get(query) {
                Some(statement) => client.query(statement, &parameters).await,
                None => Ok(Vec::new()),
            };
            let mut body = b"{\"items\":[".to_vec();
            // A query that fails gives no JSON, so that the load reports it.
            for (at, row) in rows.as_deref().unwrap_or_default().iter().enumerate() {
                if at > 0 {
                    body.push(b',');
                }
                body.extend_from_slice(row.get::<_, &str>(0).as_bytes());
            }
            body.extend_from_slice(b"]}");
            let mut response = json_response(Bytes::from(body));
            if rows.is_err() {
                *response.status_mut() = http::StatusCode::INTERNAL_SERVER_ERROR;
            }
            Ok::<_, Infallible>(response)
        }
    });
    serve(route).await
}

/// Loads the API and the peer in turn over one connection, for each kind of requests, and prints both and their ratio.
pub(crate) fn compare(settings: &Settings, kinds: &[Kind], api: &ChildServer, peer: &ChildServer) -> Result<(), Failure> {
    let keys = api.texts("keys");
    for Kind { name, about, p99_ms_max } in kinds {
        let dir = tempfile::tempdir()?;
        let own: Vec<String> = api.texts(name).into_iter().zip(keys.iter().cycle()).map(|(path, key)| format!("{path} {key}")).collect();
        let targets = [
            Target::new("api", api.address(), dir.path(), &own)?,
            Target::new("postgres", peer.address(), dir.path(), &api.texts(&format!("{name} peer")))?,
        ];
        let mut rounds: [Vec<Round>; 2] = [Vec::new(), Vec::new()];
        for target in &targets {
            target.load(dir.path(), 1, 1)?;
        }
        for _ in 0..settings.rounds {
            for (target, rounds) in targets.iter().zip(&mut rounds) {
                rounds.push(target.load(dir.path(), 1, settings.seconds)?);
            }
        }
        let of = |at: usize, field: fn(&Round) -> f64| median(rounds[at].iter().map(field).collect());
        line(&format!("  {name}: {about}"));
        let (bytes, p50, p99) = (|round: &Round| round.bytes_per_answer, |round: &Round| round.p50_ms, |round: &Round| round.p99_ms);
        figure(&format!("{name}: bytes of an answer, API / PostgreSQL"), format!("{:.0} / {:.0}", of(0, bytes), of(1, bytes)));
        figure(&format!("{name}: p50 ms, API / PostgreSQL"), format!("{:.2} / {:.2}", of(0, p50), of(1, p50)));
        figure(&format!("{name}: p99 ms, API / PostgreSQL"), format!("{:.2} / {:.2}", of(0, p99), of(1, p99)));
        figure(&format!("{name}: answers a second, API / PostgreSQL"), {
            let rate = |round: &Round| round.answers_per_s;
            format!("{:.2}", of(0, rate) / of(1, rate))
        });
        ratio(&format!("{name}: p99 ms"), of(0, p99), of(0, p99) <= *p99_ms_max, &format!("<= {p99_ms_max}"));
    }
    Ok(())
}
