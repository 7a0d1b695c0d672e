//! Restocks: predictions and boards over HTTP, the scores of past forecasts, and a poll of a large store, compared with PostgreSQL, which holds
//! the same restocks and computes the same with window functions.
//!
//! `--records` is the number of items; boards and predictions read at most 5,000 items of a niche, so every niche has that many.

mod peer;
mod poll;
mod series;

use std::net::SocketAddr;
use std::path::Path;
use std::sync::Arc;
use std::time::Instant;

use serde_json::json;
use surfaces::server::Server;

use crate::asker::Asker;
use crate::child_server::{ChildServer, SOCKET, api_context, mint_keys};
use crate::engine::Engine;
use crate::report::{figure, heading, latency, line, number, percentile, ratio};
use crate::{Failure, Settings, postgres};

pub(crate) use poll::child as poll_child;

/// The modes of `serve-child`.
pub(crate) const MODE: &str = "cadence";
pub(crate) const PEER_MODE: &str = "cadence-postgres";
/// Requests of each kind in a round.
const REQUESTS: usize = 300;
/// Niches whose first board is measured.
const FIRST_BOARDS: usize = 20;
const PREDICT_P99_MS_MAX: f64 = 3.0;
const BOARD_FIRST_MS_MAX: f64 = 10.0;
const BOARD_MS_MAX: f64 = 1.0;
const SCORED_ITEMS: f64 = 50_000.0;
const SCORED_S_MAX: f64 = 60.0;

/// Prepares both sides, then asks them in turn.
pub(crate) fn run(settings: &Settings) -> Result<(), Failure> {
    heading(&format!("cadence: {} items in {} niches, one connection", series::items(settings), series::niches(series::items(settings))));
    let cluster = postgres::Cluster::start()?;
    let runtime = tokio::runtime::Builder::new_multi_thread().worker_threads(1).enable_all().build()?;
    figure("restocks", runtime.block_on(peer::fill(settings, cluster.socket()))?);
    let api = ChildServer::start(settings, MODE, &[])?;
    let peer = ChildServer::start(settings, PEER_MODE, &[(SOCKET, cluster.socket().display().to_string())])?;
    let (facts, fill_s) = (number(&api.report, "facts"), number(&api.report, "fill_s"));
    if fill_s > 0.0 {
        figure("facts decided a second", format!("{:.0}", facts / fill_s));
    }
    runtime.block_on(compare(settings, &api, &peer))?;
    runtime.block_on(scores(settings, &api, &cluster))?;
    figure("peak memory of the API's process, MiB", format!("{:.0}", api.memory_mib()?));
    drop((api, peer));
    poll::run(settings, &runtime, &cluster)
}

/// Compares boards and predictions.
async fn compare(settings: &Settings, api: &ChildServer, peer: &ChildServer) -> Result<(), Failure> {
    let keys = api.texts("keys");
    let (ours, theirs) = (Asker::new(api, keys.clone())?, Asker::new(peer, keys)?);
    let niches = series::niches(series::items(settings));
    let boards: Vec<String> = (0..niches).map(|niche| format!("board?niche=n{niche}&limit=50")).collect();
    let first: Vec<String> = boards.iter().take(FIRST_BOARDS).cloned().collect();
    let first = ours.ask("/cadence/v1/", &first).await?;
    latency("board, first of a niche after a start", &first);
    // Reads the other niches too.
    ours.ask("/cadence/v1/", &boards).await?;
    theirs.ask("/", &boards).await?;
    let predictions = series::questions(series::items(settings), REQUESTS * settings.rounds);
    let (mut board, mut board_peer, mut predict, mut predict_peer) = (Vec::new(), Vec::new(), Vec::new(), Vec::new());
    for round in predictions.chunks(REQUESTS) {
        let asked: Vec<String> = boards.iter().cycle().take(REQUESTS / 3).cloned().collect();
        board.extend(ours.ask("/cadence/v1/", &asked).await?);
        board_peer.extend(theirs.ask("/", &asked).await?);
        predict.extend(ours.ask("/cadence/v1/", round).await?);
        predict_peer.extend(theirs.ask("/", round).await?);
    }
    let p50 = |seconds: &[f64]| percentile(seconds.to_vec(), 0.5) * 1e3;
    let p99 = |seconds: &[f64]| percentile(seconds.to_vec(), 0.99) * 1e3;
    for (name, seconds) in
        [("board", &board), ("board, PostgreSQL", &board_peer), ("predict", &predict), ("predict, PostgreSQL", &predict_peer)]
    {
        latency(name, seconds);
    }
    ratio("board, first, p50 ms", p50(&first), p50(&first) <= BOARD_FIRST_MS_MAX, "<= 10");
    ratio("board, p50 ms", p50(&board), p50(&board) <= BOARD_MS_MAX, "<= 1");
    ratio("predict, p99 ms", p99(&predict), p99(&predict) <= PREDICT_P99_MS_MAX, "<= 3");
    for (name, ours, theirs) in [("board", &board, &board_peer), ("predict", &predict, &predict_peer)] {
        let share = p50(ours) / p50(theirs);
        ratio(&format!("{name}, p50: ours / PostgreSQL"), share, share <= 1.0, "<= 1");
    }
    Ok(())
}

/// Compares the scores of all past forecasts.
async fn scores(settings: &Settings, api: &ChildServer, cluster: &postgres::Cluster) -> Result<(), Failure> {
    let ours = Asker::new(api, api.texts("keys"))?;
    let seconds = ours.ask("/cadence/v1/", &["calibration".to_owned()]).await?.into_iter().sum::<f64>();
    let started = Instant::now();
    let (forecasts, coverage) = peer::score(cluster.socket()).await?;
    let peer_s = started.elapsed().as_secs_f64();
    figure("past forecasts, PostgreSQL", forecasts);
    figure("... coverage, PostgreSQL", format!("{coverage:.3}"));
    figure("scores of past forecasts, s", format!("{seconds:.2}"));
    figure("... PostgreSQL, s", format!("{peer_s:.2}"));
    let each = seconds * SCORED_ITEMS / series::items(settings) as f64;
    ratio("scores of 50,000 items, s", each, each <= SCORED_S_MAX, "<= 60");
    ratio("scores: ours / PostgreSQL", seconds / peer_s, seconds <= peer_s, "<= 1");
    Ok(())
}

/// Loads the daily polls of the items of an engine whose services decide, unless the directory says that they are loaded.
pub(crate) async fn load(engine: &Engine, settings: &Settings, dir: &Path) -> Result<u64, Failure> {
    series::fill(engine, settings, dir).await
}

/// Serves the items, which are stored for the next run.
pub(crate) async fn serve(settings: &Settings) -> Result<(), Failure> {
    let dir = series::data_dir(settings);
    let engine = Engine::open(&dir).await?;
    let started = Instant::now();
    let facts = series::fill(&engine, settings, &dir).await?;
    let fill_s = if facts > 0 { started.elapsed().as_secs_f64() } else { 0.0 };
    let server = Server::bind(SocketAddr::from(([127, 0, 0, 1], 0)))?;
    let address = server.address();
    let context = Arc::into_inner(api_context(&engine, &dir, address)?).ok_or("the context is shared")?;
    let context = Arc::new(context.with(series::configured(series::items(settings))));
    let keys = mint_keys(&context).await?;
    line(&json!({ "address": address.to_string(), "keys": keys, "facts": facts, "fill_s": fill_s }).to_string());
    server.run(Arc::clone(&context), services::all(), Arc::new(|| Ok(())), std::future::pending()).await?;
    Ok(())
}

/// Serves the same questions from PostgreSQL.
pub(crate) async fn serve_peer() -> Result<(), Failure> {
    peer::serve(std::path::Path::new(&std::env::var(SOCKET)?)).await
}
