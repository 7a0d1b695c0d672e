//! Pages of 200 changes at random cursors over HTTP: the API's server, also for clients that accept gzip, the same HTTP framework with a ready-made body of
//! the same size, and the same framework in front of PostgreSQL. Each server is a process with one worker thread.

use std::collections::BTreeMap;
use std::convert::Infallible;
use std::net::SocketAddr;
use std::path::Path;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

use bytes::Bytes;
use feed::cursor;
use schemas::position::Seq;
use schemas::views::recalls;
use serde_json::json;
use surfaces::server::Server;
use warp::Filter;

use crate::child_server::{ChildServer, MODE, SOCKET, api_context, json_response, mint_keys};
use crate::engine::Engine;
use crate::json_server::serve;
use crate::load::{Round, Target};
use crate::report::{figure, heading, line, median, number, ratio};
use crate::{
    Failure, Settings, aviation, cadence, catalysts, coverage, exclusions, filters, ingest, labs, lists, parcels, phrases, postgres,
};

const BODY_BYTES: &str = "BENCH_BODY_BYTES";
const LIMIT: u64 = 200;
/// The number of different cursors.
const CURSORS: u64 = 4_000;
/// The range of the recent cursors, in changes before the end of the feed, as readers who follow a feed use them.
const RECENT: u64 = 20_000;
/// The size of an answer's head with a ready-made body, in bytes.
const READY_HEAD_BYTES: f64 = 112.0;
const CONNECTIONS: usize = 16;
const CONNECTIONS_FEW: usize = 4;

/// Loads the servers in turn.
pub(crate) fn run(settings: &Settings) -> Result<(), Failure> {
    heading(&format!("page: {LIMIT} changes after a random cursor of {} records, one worker thread, wrk -t1", settings.records));
    ingest::prepare(settings)?;
    let cluster = postgres::Cluster::start()?;
    let runtime = tokio::runtime::Builder::new_multi_thread().worker_threads(1).enable_all().build()?;
    figure("rows in PostgreSQL", runtime.block_on(postgres::fill(settings, cluster.socket()))?);
    let api = ChildServer::start(settings, "api", &[])?;
    let peer = ChildServer::start(settings, "postgres", &[(SOCKET, cluster.socket().display().to_string())])?;
    let dir = tempfile::tempdir()?;
    let keys = api.texts("keys");
    let paths = |cursors: &str| -> Vec<String> {
        let cursors = api.texts(cursors).into_iter().zip(keys.iter().cycle());
        cursors.map(|(cursor, key)| format!("/recalls/v1/changes?limit={LIMIT}&cursor={cursor} {key}")).collect()
    };
    let last = number(&api.report, "last") as u64;
    let after = |seqs: Vec<u64>| -> Vec<String> { seqs.into_iter().map(|seq| format!("/changes?after={seq}")).collect() };
    let anywhere = Target::new("api", api.address(), dir.path(), &paths("cursors"))?;
    let recent = Target::new("api_recent", api.address(), dir.path(), &paths("recent"))?;
    let packed = |cursors: &str| -> Vec<String> { paths(cursors).iter().map(|path| format!("{path} gzip")).collect() };
    let anywhere_packed = Target::new("api_gzip", api.address(), dir.path(), &packed("cursors"))?;
    let recent_packed = Target::new("api_recent_gzip", api.address(), dir.path(), &packed("recent"))?;
    // Warms up the API and measures its answers: recent changes are shorter than others.
    let mut sizes = Vec::new();
    let mut ready = Vec::new();
    for (name, like) in [("ready", &anywhere), ("ready_recent", &recent)] {
        let warm = like.load(dir.path(), CONNECTIONS, settings.seconds)?;
        let body_bytes = (warm.bytes_per_answer - READY_HEAD_BYTES).max(1.0) as usize;
        let server = ChildServer::start(settings, "ready", &[(BODY_BYTES, body_bytes.to_string())])?;
        ready.push((Target::new(name, server.address(), dir.path(), &["/".to_owned()])?, server));
        sizes.push(format!("{:.0}", warm.bytes_per_answer));
    }
    let peers = Target::new("postgres", peer.address(), dir.path(), &after(seqs(last, last)))?;
    let peers_recent = Target::new("postgres_recent", peer.address(), dir.path(), &after(seqs(last, RECENT)))?;
    let targets: Vec<&Target> = ready
        .iter()
        .map(|(target, _)| target)
        .chain([&anywhere, &recent, &anywhere_packed, &recent_packed, &peers, &peers_recent])
        .collect();
    for target in &targets {
        target.load(dir.path(), CONNECTIONS, 1)?;
    }
    let mut rounds: BTreeMap<&str, Vec<Round>> = BTreeMap::new();
    let mut few: BTreeMap<&str, Vec<Round>> = BTreeMap::new();
    for _ in 0..settings.rounds {
        for target in &targets {
            rounds.entry(target.name).or_default().push(target.load(dir.path(), CONNECTIONS, settings.seconds)?);
        }
        few.entry(anywhere.name).or_default().push(anywhere.load(dir.path(), CONNECTIONS_FEW, settings.seconds.div_ceil(2))?);
        few.entry(recent.name).or_default().push(recent.load(dir.path(), CONNECTIONS_FEW, settings.seconds.div_ceil(2))?);
    }
    let median_of = |rounds: &BTreeMap<&str, Vec<Round>>, name: &str, field: fn(&Round) -> f64| {
        median(rounds.get(name).into_iter().flatten().map(field).collect())
    };
    figure("bytes of an answer", sizes.join(" / "));
    for target in &targets {
        let (pages, p50, p99) = (
            median_of(&rounds, target.name, |round| round.answers_per_s),
            median_of(&rounds, target.name, |round| round.p50_ms),
            median_of(&rounds, target.name, |round| round.p99_ms),
        );
        figure(&format!("{}, pages a second", target.name), format!("{pages:.0}"));
        figure(&format!("... p50 / p99 ms, {CONNECTIONS} connections"), format!("{p50:.2} / {p99:.2}"));
    }
    for name in [anywhere.name, recent.name] {
        let (p50, p99) = (median_of(&few, name, |round| round.p50_ms), median_of(&few, name, |round| round.p99_ms));
        figure(&format!("{name}, p50 / p99 ms, {CONNECTIONS_FEW} connections"), format!("{p50:.2} / {p99:.2}"));
    }
    for (plain, packed) in [(&anywhere, &anywhere_packed), (&recent, &recent_packed)] {
        let share =
            |field: fn(&Round) -> f64| format!("{:.2}", median_of(&rounds, packed.name, field) / median_of(&rounds, plain.name, field));
        figure(&format!("{} / {}, bytes of an answer", packed.name, plain.name), share(|round| round.bytes_per_answer));
        figure(&format!("{} / {}, pages a second", packed.name, plain.name), share(|round| round.answers_per_s));
    }
    figure("peak memory of the API's process, MiB", format!("{:.0}", api.memory_mib()?));
    let pages = |name: &str| median_of(&rounds, name, |round| round.answers_per_s);
    let compared = [("anywhere", "api", "ready", "postgres"), ("the newest 20,000", "api_recent", "ready_recent", "postgres_recent")];
    for (what, ours, ready, theirs) in compared {
        let (ready, peer) = (pages(ours) / pages(ready), pages(ours) / pages(theirs));
        let p99 = median_of(&rounds, ours, |round| round.p99_ms);
        ratio(&format!("{what}: API / ready-made body"), ready, ready >= 0.75, ">= 0.75");
        ratio(&format!("{what}: API / PostgreSQL"), peer, peer >= 6.0, ">= 6");
        ratio(&format!("{what}: API, p99 ms"), p99, p99 < 1.0, "< 1");
    }
    Ok(())
}

/// Returns seqs spread over the last `among` of `last` changes, each with a whole page after it; the same in every run.
fn seqs(last: u64, among: u64) -> Vec<u64> {
    let among = among.min(last).saturating_sub(LIMIT).max(1);
    let begin = last.saturating_sub(LIMIT + among);
    (0..CURSORS).map(|i| begin + i.wrapping_mul(0x9e37_79b9_7f4a_7c15).rotate_left(17) % among).collect()
}

/// `serve-child`: serves until it is killed.
pub(crate) fn child(settings: &Settings) -> Result<(), Failure> {
    let runtime = tokio::runtime::Builder::new_multi_thread().worker_threads(1).enable_all().build()?;
    runtime.block_on(async {
        match std::env::var(MODE)?.as_str() {
            "api" => serve_api(settings).await,
            cadence::MODE => cadence::serve(settings).await,
            cadence::PEER_MODE => cadence::serve_peer().await,
            filters::MODE => filters::serve(settings).await,
            labs::MODE => labs::serve(settings).await,
            catalysts::MODE => catalysts::serve(settings).await,
            coverage::MODE => coverage::serve(settings).await,
            parcels::MODE => parcels::serve(settings).await,
            aviation::MODE => aviation::serve(settings).await,
            exclusions::MODE => exclusions::serve(settings).await,
            phrases::MODE => phrases::serve(settings).await,
            lists::PEER_MODE => lists::serve_peer().await,
            "ready" => serve_ready(std::env::var(BODY_BYTES)?.parse()?).await,
            _ => serve_postgres(Path::new(&std::env::var(SOCKET)?)).await,
        }
    })
}

async fn serve_api(settings: &Settings) -> Result<(), Failure> {
    let dir = ingest::data_dir(settings);
    let engine = Engine::open(&dir).await?;
    let server = Server::bind(SocketAddr::from(([127, 0, 0, 1], 0)))?;
    let address = server.address();
    let context = api_context(&engine, &dir, address)?;
    let keys = mint_keys(&context).await?;
    let last = engine.store.live(&recalls::VIEW).await?.checkpoint().await?.seq.0;
    let cursors = |among| -> Vec<String> {
        seqs(last, among).into_iter().map(|seq| cursor::encode(&context.secrets, "recalls", Seq(seq), "")).collect()
    };
    line(
        &json!({ "address": address.to_string(), "keys": keys, "last": last, "cursors": cursors(last), "recent": cursors(RECENT) })
            .to_string(),
    );
    server.run(Arc::clone(&context), services::all(), Arc::new(|| Ok(())), std::future::pending()).await?;
    Ok(())
}

async fn serve_ready(body_bytes: usize) -> Result<(), Failure> {
    let body = Bytes::from(vec![b'x'; body_bytes]);
    let route = warp::any().map(move || json_response(body.clone()));
    serve(route).await
}

async fn serve_postgres(socket: &Path) -> Result<(), Failure> {
    let mut pool = Vec::new();
    for _ in 0..postgres::POOL {
        let client = postgres::connect(socket).await?;
        let query = "select off, body from changes where svc = 1 and part = 0 and off > $1 order by off limit 200";
        let statement = client.prepare(query).await?;
        pool.push((client, statement));
    }
    let (pool, next) = (Arc::new(pool), Arc::new(AtomicUsize::new(0)));
    let route = warp::query::raw().and_then(move |query: String| {
        let (pool, at) = (Arc::clone(&pool), next.fetch_add(1, Ordering::Relaxed));
        async move {
            let after: i64 = query.strip_prefix("after=").and_then(|after| after.parse().ok()).unwrap_or(0);
            let (client, statement) = &pool[at % postgres::POOL];
            let rows = client.query(statement, &[&after]).await.unwrap_or_default();
            let mut body = Vec::with_capacity(256 << 10);
            body.extend_from_slice(b"{\"changes\":[");
            let mut last = after;
            for (i, row) in rows.iter().enumerate() {
                if i > 0 {
                    body.push(b',');
                }
                body.extend_from_slice(row.get::<_, &str>(1).as_bytes());
                last = row.get(0);
            }
            body.extend_from_slice(format!("],\"cursor\":\"{last}\"}}").as_bytes());
            Ok::<_, Infallible>(json_response(Bytes::from(body)))
        }
    });
    serve(route).await
}
