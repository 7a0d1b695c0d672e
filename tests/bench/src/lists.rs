//! What the benchmarks of lists share: the server of what was loaded, PostgreSQL with the same rows behind the same HTTP framework, and the load on
//! both in turn.

use std::convert::Infallible;
use std::fmt::Write as _;
use std::net::SocketAddr;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::{Duration, Instant};

use bytes::Bytes;
use serde_json::{Value, json};
use surfaces::server::Server;
use warp::Filter as _;

use crate::child_server::{ChildServer, SOCKET, api_context, json_response, mint_keys};
use crate::engine::Engine;
use crate::json_server::serve;
use crate::load::{Round, Target};
use crate::loads::Loaded;
use crate::report::{figure, line, median, ratio};
use crate::{Failure, Settings, loads, postgres};

/// The mode of `serve-child` for PostgreSQL's rows.
pub(crate) const PEER_MODE: &str = "lists_peer";
/// The environment variable with the queries, as a JSON list.
const QUERIES: &str = "BENCH_QUERIES";

/// How long each side takes items in a round.
const TAKING: Duration = Duration::from_secs(1);

/// A kind of requests: the name in the report of the server, a description, and the target of the 99th percentile in milliseconds.
pub(crate) struct Kind {
    pub(crate) name: &'static str,
    pub(crate) about: &'static str,
    pub(crate) p99_ms_max: f64,
}

/// Serves what was loaded until the process is killed, and prints the address, keys and the paths of each kind of requests first.
pub(crate) async fn serve_own(settings: &Settings, loaded: Loaded, paths: Vec<(&str, Vec<(String, String)>)>) -> Result<(), Failure> {
    let dir = loaded.dir(settings);
    let engine = Engine::open(&dir).await?;
    loaded.wait_decided(&engine).await?;
    let server = Server::bind(SocketAddr::from(([127, 0, 0, 1], 0)))?;
    let address = server.address();
    let context = api_context(&engine, &dir, address)?;
    let mut report = json!({ "address": address.to_string(), "keys": mint_keys(&context).await? });
    for (name, paths) in paths {
        let (own, peer): (Vec<String>, Vec<String>) = paths.into_iter().unzip();
        report[name] = json!(own);
        report[format!("{name} peer")] = json!(peer);
    }
    services::prepare(&context).await;
    line(&report.to_string());
    server.run(Arc::clone(&context), services::all(), Arc::new(|| Ok(())), std::future::pending()).await?;
    Ok(())
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

/// Fills a table of PostgreSQL. `rows` gives the columns of each row; `indexes` are statements for the indexes.
pub(crate) async fn fill_peer(
    socket: &Path,
    table: &str,
    definition: &str,
    rows: impl Iterator<Item = Vec<String>>,
    indexes: &[&str],
) -> Result<(), Failure> {
    let mut peer = PeerTable::create(socket, table, definition).await?;
    for row in rows {
        peer.add(&row)?;
    }
    peer.finish(indexes).await.map(drop)
}

/// A table of PostgreSQL that is being filled.
pub(crate) struct PeerTable {
    client: tokio_postgres::Client,
    name: String,
    file: PathBuf,
    out: std::io::BufWriter<std::fs::File>,
    text: String,
}

impl PeerTable {
    /// Creates a table without rows.
    pub(crate) async fn create(socket: &Path, name: &str, definition: &str) -> Result<Self, Failure> {
        let client = postgres::connect(socket).await?;
        client.batch_execute(&format!("create table {name} ({definition})")).await?;
        let file = socket.join(format!("{name}.tsv"));
        let out = std::io::BufWriter::new(std::fs::File::create(&file)?);
        Ok(Self { client, name: name.to_owned(), file, out, text: String::new() })
    }

    /// Adds a row. No column may contain a tab or a line break.
    pub(crate) fn add(&mut self, columns: &[String]) -> Result<(), Failure> {
        self.text.clear();
        for (at, column) in columns.iter().enumerate() {
            // COPY's text format: only the backslash is special in JSON and names.
            write!(self.text, "{}{}", if at > 0 { "\t" } else { "" }, column.replace('\\', "\\\\"))?;
        }
        self.text.push('\n');
        Ok(std::io::Write::write_all(&mut self.out, self.text.as_bytes())?)
    }

    /// Copies the rows into the table and makes its indexes. Returns the bytes of both on disk.
    pub(crate) async fn finish(self, indexes: &[&str]) -> Result<u64, Failure> {
        let Self { client, name, file, mut out, .. } = self;
        std::io::Write::flush(&mut out)?;
        client.batch_execute(&format!("copy {name} from '{}'", file.display())).await?;
        std::fs::remove_file(&file)?;
        for index in indexes {
            client.batch_execute(index).await?;
        }
        client.batch_execute(&format!("vacuum analyze {name}")).await?;
        client.batch_execute("checkpoint").await?;
        let bytes: i64 = client.query_one("select pg_total_relation_size($1::text::regclass)", &[&name]).await?.get(0);
        Ok(u64::try_from(bytes)?)
    }
}

/// The rows of the peer, and the queries that it answers.
pub(crate) struct PeerRows<'a> {
    pub(crate) table: &'a str,
    pub(crate) definition: &'a str,
    /// The columns of the row of a record; `None` if it has none.
    pub(crate) columns: &'a dyn Fn(&Value) -> Option<Vec<String>>,
    /// Statements for the indexes.
    pub(crate) indexes: &'a [&'a str],
    /// Further tables, whose rows are no records.
    pub(crate) also: &'a [MoreRows<'a>],
    pub(crate) queries: &'a [&'a str],
}

/// A table of the peer whose rows are generated.
pub(crate) struct MoreRows<'a> {
    pub(crate) table: &'a str,
    pub(crate) definition: &'a str,
    pub(crate) rows: &'a dyn Fn() -> Box<dyn Iterator<Item = Vec<String>> + 'a>,
    pub(crate) indexes: &'a [&'a str],
}

/// The API with what was loaded, and the peer with the same records.
pub(crate) struct Sides {
    pub(crate) api: ChildServer,
    /// `None` if PostgreSQL is not installed.
    pub(crate) peer: Option<ChildServer>,
    /// Runs as long as the peer.
    pub(crate) cluster: Option<postgres::Cluster>,
}

/// Copies the records of a service to PostgreSQL, if that is installed, prints the disk of a record, and starts both sides. `times` is what the load
/// printed, `mode` that of `serve-child`.
pub(crate) fn start_sides(settings: &Settings, loaded: Loaded, times: &Value, mode: &str, rows: &PeerRows<'_>) -> Result<Sides, Failure> {
    let cluster = if postgres::is_installed() { Some(postgres::Cluster::start()?) } else { None };
    if cluster.is_none() {
        line("  PostgreSQL is not installed: the API is measured without a peer");
    }
    let runtime = tokio::runtime::Builder::new_multi_thread().worker_threads(1).enable_all().build()?;
    let (records, bytes) = runtime.block_on(async {
        let mut table = match &cluster {
            Some(cluster) => Some(PeerTable::create(cluster.socket(), rows.table, rows.definition).await?),
            None => None,
        };
        let take = |record: &Value| match (table.as_mut(), (rows.columns)(record)) {
            (Some(table), Some(columns)) => table.add(&columns),
            _ => Ok(()),
        };
        let records = loaded.each_record(settings, take).await?;
        let bytes = match table {
            Some(table) => Some(table.finish(rows.indexes).await?),
            None => None,
        };
        if let Some(cluster) = &cluster {
            for MoreRows { table, definition, rows, indexes } in rows.also {
                fill_peer(cluster.socket(), table, definition, rows(), indexes).await?;
            }
        }
        Ok::<_, Failure>((records, bytes))
    })?;
    loads::report_disk(times, records, bytes);
    let api = ChildServer::start(settings, mode, &[])?;
    let peer = match &cluster {
        Some(cluster) => Some(start_peer(settings, cluster.socket(), rows.queries)?),
        None => None,
    };
    Ok(Sides { api, peer, cluster })
}

/// A text of a record; empty if it has none.
pub(crate) fn text(record: &Value, name: &str) -> String {
    record.get(name).and_then(Value::as_str).unwrap_or_default().to_owned()
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

/// Loads the API and the peer in turn over one connection, for each kind of requests, and prints both and their ratio. Without a peer, prints the API
/// alone.
pub(crate) fn compare(settings: &Settings, kinds: &[Kind], api: &ChildServer, peer: Option<&ChildServer>) -> Result<(), Failure> {
    let keys = api.texts("keys");
    let sides = if peer.is_some() { "API / PostgreSQL" } else { "API" };
    for Kind { name, about, p99_ms_max } in kinds {
        let dir = tempfile::tempdir()?;
        let own: Vec<String> = api.texts(name).into_iter().zip(keys.iter().cycle()).map(|(path, key)| format!("{path} {key}")).collect();
        let mut targets = vec![Target::new("api", api.address(), dir.path(), &own)?];
        let peer_paths = api.texts(&format!("{name} peer"));
        if let Some(peer) = peer.filter(|_| peer_paths.iter().any(|path| !path.is_empty())) {
            targets.push(Target::new("postgres", peer.address(), dir.path(), &peer_paths)?);
        }
        let mut rounds: Vec<Vec<Round>> = targets.iter().map(|_| Vec::new()).collect();
        for target in &targets {
            target.load(dir.path(), 1, 1)?;
        }
        for _ in 0..settings.rounds {
            for (target, rounds) in targets.iter().zip(&mut rounds) {
                rounds.push(target.load(dir.path(), 1, settings.seconds)?);
            }
        }
        line(&format!("  {name}: {about}"));
        let medians_of =
            |field: fn(&Round) -> f64| rounds.iter().map(|rounds| median(rounds.iter().map(field).collect())).collect::<Vec<f64>>();
        let show = |what: &str, decimals: usize, values: &[f64]| {
            let values: Vec<String> = values.iter().map(|value| format!("{value:.decimals$}")).collect();
            figure(&format!("{name}: {what}, {sides}"), values.join(" / "));
        };
        let (p99, rates) = (medians_of(|round| round.p99_ms), medians_of(|round| round.answers_per_s));
        show("bytes of an answer", 0, &medians_of(|round| round.bytes_per_answer));
        show("p50 ms", 2, &medians_of(|round| round.p50_ms));
        show("p99 ms", 2, &p99);
        if let [own, theirs] = rates[..] {
            figure(&format!("{name}: answers a second, {sides}"), format!("{:.2}", own / theirs));
        }
        let own = p99.first().copied().unwrap_or_default();
        ratio(&format!("{name}: p99 ms"), own, own <= *p99_ms_max, &format!("<= {p99_ms_max}"));
    }
    Ok(())
}
