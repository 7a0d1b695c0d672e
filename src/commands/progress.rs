//! Progress of commands: rebuilds report theirs, and that of a sync is read from what this process counts.

use std::sync::Arc;
use std::time::Duration;

use ingest::metrics::fetched_records;
use projector::rebuild::Progress;
use schemas::views::engine::{RUNS, RunRow};
use upstreams::Upstream;

use crate::engine::Engine;
use crate::failure::{Failure, failure};
use crate::output::Output;

/// How often the progress of a sync is read.
const SYNC_PROGRESS_INTERVAL: Duration = Duration::from_millis(250);

/// Runs work that reports its progress, and shows the progress under the name of a task.
///
/// # Errors
/// The work fails.
pub(super) async fn with_progress<T, F>(output: &dyn Output, task: &str, work: impl FnOnce(Progress) -> F) -> Result<T, Failure>
where
    F: Future<Output = Result<T, projector::Error>>,
{
    let (sender, mut reported) = tokio::sync::watch::channel((0, 0));
    let progress: Progress = Arc::new(move |done, total| {
        sender.send_replace((done, total));
    });
    let mut work = std::pin::pin!(work(progress));
    loop {
        tokio::select! {
            result = &mut work => return result.map_err(failure),
            Ok(()) = reported.changed() => {
                let (done, total) = *reported.borrow_and_update();
                output.progress(task, done, total);
            }
        }
    }
}

/// Awaits a sync of an upstream, and shows for each of its streams how many records were fetched.
pub(super) async fn with_sync_progress<T>(
    engine: &Engine,
    output: &dyn Output,
    upstream: &'static dyn Upstream,
    sync: impl Future<Output = T>,
) -> T {
    let mut sync = std::pin::pin!(sync);
    let mut streams: Vec<StreamProgress> = upstream.manifest().streams.iter().map(|stream| StreamProgress::new(stream.name)).collect();
    let mut polls = tokio::time::interval(SYNC_PROGRESS_INTERVAL);
    loop {
        tokio::select! {
            result = &mut sync => return result,
            _ = polls.tick() => {
                for stream in &mut streams {
                    if let Some(fetched) = stream.advanced() {
                        let total = expected_records(engine, stream.name).await;
                        output.progress(&format!("ingest {}", stream.name), fetched, total);
                    }
                }
            }
        }
    }
}

/// The records of a stream that this process has fetched since the command began.
struct StreamProgress {
    name: &'static str,
    before: u64,
    fetched: u64,
}

impl StreamProgress {
    fn new(name: &'static str) -> Self {
        Self { name, before: fetched_records(name), fetched: 0 }
    }

    /// The number of records, if it has grown since the last call.
    fn advanced(&mut self) -> Option<u64> {
        let fetched = fetched_records(self.name).saturating_sub(self.before);
        let has_advanced = fetched > self.fetched;
        self.fetched = fetched;
        has_advanced.then_some(fetched)
    }
}

/// How many records the running sync of a stream will probably see: as many as the last one, if that read a window of the same kind. Otherwise 0.
async fn expected_records(engine: &Engine, stream: &str) -> u64 {
    let row = engine.parts.engine.get(&RUNS, &schemas::key![stream]).await;
    let row: Option<RunRow> = row.ok().flatten().and_then(|bytes| serde_json::from_slice(&bytes).ok());
    let seen = row.and_then(|row| row.last_finished.filter(|last| last.full == row.run.full)).map_or(0, |last| last.seen);
    u64::try_from(seen).unwrap_or(0)
}
