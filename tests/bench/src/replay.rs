//! `replay recalls` compared with reading the topic of changes and discarding it.

use std::sync::Arc;
use std::time::Instant;

use schemas::position::LogOffset;
use schemas::topics::CHANGES_RECALLS;
use serde_json::json;

use crate::engine::Engine;
use crate::report::{figure, heading, line, median, memory_mib, number, ratio, run_child};
use crate::{Failure, Settings, ingest};

/// The largest read, as in the projector.
const RECORDS_MAX: usize = 2_000;
const BYTES_MAX: usize = 4 << 20;
/// The largest number of rounds, because a replay of a million records takes long.
const ROUNDS_MAX: usize = 3;

/// Compares in a separate process.
pub(crate) fn run(settings: &Settings) -> Result<(), Failure> {
    heading(&format!("replay: all changes of {} simulated records, rows and pages written to a second generation", settings.records));
    ingest::prepare(settings)?;
    let result = run_child(settings, "replay-child", &[])?;
    let (raw_s, replay_s) = (number(&result, "raw_s"), number(&result, "replay_s"));
    let changes = number(&result, "changes");
    figure("changes", changes);
    figure("raw read, changes per second", format!("{:.0}", changes / raw_s));
    figure("replay, changes a second", format!("{:.0}", changes / replay_s));
    figure("replay, peak memory, MiB", format!("{:.0}", number(&result, "memory_mib")));
    ratio("replay / raw read", raw_s / replay_s, raw_s / replay_s >= 0.3, ">= 0.3");
    Ok(())
}

/// Runs `replay-child`.
pub(crate) fn child(settings: &Settings) -> Result<(), Failure> {
    let runtime = tokio::runtime::Builder::new_multi_thread().enable_all().build()?;
    let result = runtime.block_on(async {
        let engine = Engine::open(&ingest::data_dir(settings)).await?;
        engine.wait_projected().await?;
        let service = engine.projector.service("recalls")?;
        let (mut raw, mut replay, mut changes) = (Vec::new(), Vec::new(), 0);
        for _ in 0..settings.rounds.min(ROUNDS_MAX) {
            let started = Instant::now();
            let mut next = LogOffset(0);
            loop {
                let batch = engine.log.read(&CHANGES_RECALLS, 0, next, RECORDS_MAX, BYTES_MAX).await?;
                let Some(last) = batch.last() else { break };
                next = last.offset.next();
            }
            raw.push(started.elapsed().as_secs_f64());
            let started = Instant::now();
            let quiet: projector::rebuild::Progress = Arc::new(|_, _| ());
            changes = service.replay(&quiet).await?;
            replay.push(started.elapsed().as_secs_f64());
        }
        let memory_mib = memory_mib(std::process::id())?;
        engine.close().await?;
        Ok::<_, Failure>(json!({ "raw_s": median(raw), "replay_s": median(replay), "changes": changes, "memory_mib": memory_mib }))
    })?;
    line(&result.to_string());
    Ok(())
}
