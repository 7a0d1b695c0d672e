//! The ingest role: runs upstreams when they are due, one run of each at a time, and goes on with runs that were cut.

use std::collections::{HashMap, HashSet};
use std::sync::Arc;
use std::time::{Duration, Instant};

use ingest::schedule::Due;
use tokio::sync::mpsc;
use tokio::task::JoinSet;
use upstreams::Upstream;

use crate::engine::Engine;

/// Between two looks for runs that nobody goes on with.
const CUT_LOOKED_FOR: Duration = Duration::from_secs(5);
const _: () = assert!(view_store::lease::is_taken_over_soon(CUT_LOOKED_FOR), "a run is gone on with late");
/// The longest pause before a run that is cut again and again is gone on with once more; pauses double.
const CUT_PAUSE_MAX: Duration = Duration::from_secs(600);

/// What makes an upstream run.
enum Turn {
    Due { at_ms: i64 },
    Cut,
}

/// Runs upstreams when they are due, and goes on with runs of theirs that nobody goes on with.
pub(crate) async fn run(engine: Arc<Engine>, mut queue: mpsc::Receiver<Due>, upstreams: Vec<&'static dyn Upstream>) {
    let mut stop = engine.stopping();
    let mut runs = JoinSet::new();
    let mut running = HashSet::new();
    let mut cut = CutRuns::default();
    let mut looks = tokio::time::interval(CUT_LOOKED_FOR);
    looks.set_missed_tick_behavior(tokio::time::MissedTickBehavior::Delay);
    loop {
        tokio::select! {
            _ = stop.changed() => break,
            due = queue.recv() => {
                let Some(Due { upstream, at_ms }) = due else { break };
                let Some(upstream) = upstreams::by_name(&upstream) else { continue };
                // Due again while it still runs: this turn is left out.
                if running.insert(upstream.manifest().name) {
                    runs.spawn(run_upstream(Arc::clone(&engine), upstream, Turn::Due { at_ms }));
                }
            }
            _ = looks.tick(), if !upstreams.is_empty() => {
                let idle = upstreams.iter().filter(|upstream| !running.contains(upstream.manifest().name));
                // A store that hangs must not hold up a stop.
                let found = tokio::select! {
                    found = cut.look(&engine, idle) => found,
                    _ = stop.changed() => break,
                };
                for upstream in found {
                    running.insert(upstream.manifest().name);
                    runs.spawn(run_upstream(Arc::clone(&engine), upstream, Turn::Cut));
                }
            }
            Some(ended) = runs.join_next() => match ended {
                Ok(name) => {
                    running.remove(name);
                }
                // A run that panicked is a bug; its upstream runs again when it is due.
                Err(error) => {
                    tracing::error!(%error, "a run ended by itself");
                    running.clear();
                }
            },
        }
    }
    // A run stops after the page it is at; what it has appended stays.
    while runs.join_next().await.is_some() {}
}

async fn run_upstream(engine: Arc<Engine>, upstream: &'static dyn Upstream, turn: Turn) -> &'static str {
    let name = upstream.manifest().name;
    let result = match (engine.upstream_settings(name), turn) {
        (Ok(settings), Turn::Due { at_ms }) => engine.runner.sync_due(upstream, &settings, at_ms).await,
        (Ok(settings), Turn::Cut) => engine.runner.resume_orphaned(upstream, &settings).await,
        (Err(error), _) => {
            tracing::error!(upstream = name, %error, "an upstream has no settings");
            return name;
        }
    };
    if let Err(error) = result {
        tracing::error!(upstream = name, error = ingest::reason(&error), "an upstream cannot be run");
    }
    name
}

/// Upstreams whose runs were cut, with the pause after each time that one was gone on with.
#[derive(Default)]
struct CutRuns {
    paused: HashMap<&'static str, (Instant, Duration)>,
}

impl CutRuns {
    /// Those of the upstreams to go on with now.
    async fn look(&mut self, engine: &Engine, idle: impl Iterator<Item = &&'static dyn Upstream>) -> Vec<&'static dyn Upstream> {
        let mut out = Vec::new();
        for upstream in idle {
            let name = upstream.manifest().name;
            match engine.runner.has_orphaned_run(*upstream).await {
                Ok(true) => {}
                Ok(false) => {
                    self.paused.remove(name);
                    continue;
                }
                Err(error) => {
                    tracing::debug!(upstream = name, error = ingest::reason(&error), "whether a run was cut cannot be told");
                    continue;
                }
            }
            let (until, pause) = self.paused.get(name).copied().unwrap_or((Instant::now(), CUT_LOOKED_FOR));
            if until <= Instant::now() {
                tracing::info!(upstream = name, "going on with a run that was cut");
                self.paused.insert(name, (Instant::now() + pause, (pause * 2).min(CUT_PAUSE_MAX)));
                out.push(*upstream);
            }
        }
        out
    }
}
