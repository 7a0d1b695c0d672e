//! The ingest role: syncs upstreams when they are due, one sync of each at a time, and resumes orphaned runs.

use std::collections::{HashMap, HashSet};
use std::sync::Arc;
use std::time::{Duration, Instant};

use ingest::Outcome;
use ingest::schedule::Due;
use schemas::views::engine::VIEW as ENGINE_VIEW;
use tokio::sync::mpsc;
use tokio::task::JoinSet;
use upstreams::Upstream;

use crate::engine::Engine;

/// How often orphaned runs are looked for.
const ORPHAN_POLL_INTERVAL: Duration = Duration::from_secs(5);
const _: () = assert!(view_store::lease::is_taken_over_soon(ORPHAN_POLL_INTERVAL), "orphaned runs are resumed too late");
/// The longest pause between two attempts to resume the runs of one upstream; the pause doubles with each attempt.
const RESUME_PAUSE_MAX: Duration = Duration::from_secs(600);

/// Why an upstream is synced.
enum Trigger {
    /// By its schedule, for this time.
    Due { at_ms: i64 },
    /// A run was orphaned: its process ended before the run was complete.
    Orphaned,
}

/// Syncs upstreams when they are due, and resumes their orphaned runs, until the engine stops.
pub(crate) async fn run(engine: Arc<Engine>, mut queue: mpsc::Receiver<Due>, upstreams: Vec<&'static dyn Upstream>) {
    let mut stop = engine.stopping();
    // A sync compares records with the latest-version index, which is completed from the log first.
    tokio::select! {
        biased;
        _ = stop.changed() => return,
        () = engine.store.served(&[ENGINE_VIEW.name]) => {}
    }
    let mut syncs = JoinSet::new();
    let mut syncing = HashSet::new();
    let mut orphans = Orphans::default();
    let mut polls = tokio::time::interval(ORPHAN_POLL_INTERVAL);
    polls.set_missed_tick_behavior(tokio::time::MissedTickBehavior::Delay);
    loop {
        tokio::select! {
            _ = stop.changed() => break,
            due = queue.recv() => {
                let Some(Due { upstream, at_ms }) = due else { break };
                let Some(upstream) = upstreams::by_name(&upstream) else { continue };
                // A sync that becomes due while the previous one runs is skipped.
                if syncing.insert(upstream.manifest().name) {
                    syncs.spawn(sync(Arc::clone(&engine), upstream, Trigger::Due { at_ms }));
                }
            }
            _ = polls.tick(), if !upstreams.is_empty() => {
                let idle = upstreams.iter().filter(|upstream| !syncing.contains(upstream.manifest().name));
                // An unresponsive store must not delay the stop.
                let found = tokio::select! {
                    found = orphans.find(&engine, idle) => found,
                    _ = stop.changed() => break,
                };
                for upstream in found {
                    syncing.insert(upstream.manifest().name);
                    syncs.spawn(sync(Arc::clone(&engine), upstream, Trigger::Orphaned));
                }
            }
            Some(ended) = syncs.join_next() => match ended {
                Ok(name) => {
                    syncing.remove(name);
                }
                // A bug. The upstream is synced again when it is due.
                Err(error) => {
                    tracing::error!(%error, "sync task panicked");
                    syncing.clear();
                }
            },
        }
    }
    // Each sync stops after its current page; what it has appended stays in the log.
    while syncs.join_next().await.is_some() {}
}

/// Syncs an upstream and returns its name.
async fn sync(engine: Arc<Engine>, upstream: &'static dyn Upstream, trigger: Trigger) -> &'static str {
    let name = upstream.manifest().name;
    let result = match (engine.upstream_settings(name), trigger) {
        (Ok(settings), Trigger::Due { at_ms }) => engine.runner.sync_due(upstream, &settings, at_ms).await,
        (Ok(settings), Trigger::Orphaned) => engine.runner.resume_orphaned(upstream, &settings).await,
        (Err(error), _) => {
            tracing::error!(upstream = name, %error, "sync skipped: the upstream has no settings");
            return name;
        }
    };
    match result {
        Ok(results) => log_finished(&results),
        Err(error) => tracing::error!(upstream = name, error = ingest::reason(&error), "sync could not run"),
    }
    name
}

/// Logs a line for each sync run that finished, or that ended with the process. The runner has logged why the others did not finish.
pub(crate) fn log_finished(results: &[Result<Outcome, ingest::Error>]) {
    for result in results {
        match result {
            Ok(Outcome { stream, run, .. }) => {
                let (pages, seen, appended, rejected) = (run.pages, run.seen, run.appended, run.rejected);
                tracing::info!(stream, pages, seen, appended, rejected, "sync finished");
            }
            Err(error) if error.is_stop() => tracing::info!(reason = ingest::reason(error), "sync stopped with the process"),
            Err(_) => {}
        }
    }
}

/// Upstreams with orphaned runs, with the pause after each attempt to resume one.
#[derive(Default)]
struct Orphans {
    paused: HashMap<&'static str, (Instant, Duration)>,
}

impl Orphans {
    /// The idle upstreams whose orphaned runs should be resumed now.
    async fn find(&mut self, engine: &Engine, idle: impl Iterator<Item = &&'static dyn Upstream>) -> Vec<&'static dyn Upstream> {
        let mut found = Vec::new();
        for upstream in idle {
            let name = upstream.manifest().name;
            match engine.runner.has_orphaned_run(*upstream).await {
                Ok(true) => {}
                Ok(false) => {
                    self.paused.remove(name);
                    continue;
                }
                Err(error) => {
                    tracing::debug!(upstream = name, error = ingest::reason(&error), "looking for orphaned runs failed, will retry");
                    continue;
                }
            }
            let now = Instant::now();
            let (until, pause) = self.paused.get(name).copied().unwrap_or((now, ORPHAN_POLL_INTERVAL));
            if until <= now {
                tracing::info!(upstream = name, "resuming an orphaned run");
                self.paused.insert(name, (now + pause, (pause * 2).min(RESUME_PAUSE_MAX)));
                found.push(*upstream);
            }
        }
        found
    }
}
