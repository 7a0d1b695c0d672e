//! `highwater status`: the progress of upstreams, topics, views, signatures and services, one line each.

use std::sync::Arc;

use operation::context::Part;
use operation::signing_state::SigningState;
use schemas::clock::rfc3339;
use schemas::position::Seq;
use schemas::topics::{self, TopicKind};
use schemas::views::engine::{RUNS, RunRow, VIEW as ENGINE_VIEW};
use view_store::View;

use super::receipts;
use crate::engine::Engine;
use crate::failure::{Failure, failure};
use crate::output::Output;
use crate::witnesses;

pub(super) async fn run(engine: &Arc<Engine>, output: &dyn Output) -> Result<(), Failure> {
    let view = engine.store.live(&ENGINE_VIEW).await.map_err(failure)?;
    upstream_lines(engine, &*view, output).await?;
    topic_lines(engine, &*view, output).await?;
    for lag in projector::lag::measure(&engine.parts).await.map_err(failure)? {
        output.line(format!("view {}\tlag {}\tseconds {}", lag.view, lag.events, lag.seconds).as_bytes());
    }
    signing_lines(engine, output).await?;
    for line in witnesses::status_lines(&engine.context).await? {
        output.line(line.as_bytes());
    }
    for service in engine.projector.services() {
        let checkpoint = service.checkpoint().await.map_err(failure)?;
        let parked = service.parked().await.map_err(failure)?;
        let recorded = if checkpoint.seq == Seq(0) { "never".to_owned() } else { rfc3339(checkpoint.recorded_at_ms) };
        output.line(format!("service {}\tseq {}\trecorded {recorded}\tparked {parked}", service.name(), checkpoint.seq).as_bytes());
    }
    Ok(())
}

/// The last run of each stream.
async fn upstream_lines(engine: &Engine, view: &dyn View, output: &dyn Output) -> Result<(), Failure> {
    let now_ms = engine.parts.clock.now_ms();
    for upstream in upstreams::ALL {
        for stream in upstream.manifest().streams {
            let row = view.get(&RUNS, &schemas::key![stream.name]).await.map_err(failure)?;
            let line = match row.map(|row| serde_json::from_slice::<RunRow>(&row)).transpose().map_err(failure)? {
                None => "never run".to_owned(),
                Some(row) => run_line(&row, now_ms),
            };
            output.line(format!("upstream {}\t{line}", stream.name).as_bytes());
        }
    }
    Ok(())
}

fn run_line(RunRow { kind, at_ms, run, last_finished_at_ms, .. }: &RunRow, now_ms: i64) -> String {
    let age_s = now_ms.saturating_sub(*last_finished_at_ms) / 1_000;
    let finished = match last_finished_at_ms {
        0 => "never".to_owned(),
        at_ms => format!("{} ({age_s} s ago)", rfc3339(*at_ms)),
    };
    // Records that were rejected with the same bytes before.
    let known = if run.known_rejected == 0 { String::new() } else { format!(" ({} known)", run.known_rejected) };
    let reason = if run.reason.is_empty() { String::new() } else { format!(" ({})", run.reason) };
    let (at, seen, appended, rejected) = (rfc3339(*at_ms), run.seen, run.appended, run.rejected);
    format!("{kind} {at}\tlast finished {finished}\tseen {seen}\tappended {appended}\trejected {rejected}{known}{reason}")
}

/// The records of each topic, and how many of them are not in the latest-version index yet.
async fn topic_lines(engine: &Engine, view: &dyn View, output: &dyn Output) -> Result<(), Failure> {
    let heads = view.checkpoint().await.map_err(failure)?;
    for topic in topics::ALL {
        let (mut records, mut lag) = (0, 0);
        for partition in 0..topic.partitions {
            let end = engine.log.end(topic, partition).await.map_err(failure)?;
            records += end.0;
            if matches!(topic.kind, TopicKind::Facts | TopicKind::Commands) {
                lag += end.0.saturating_sub(heads.position(topic, partition).0);
            }
        }
        output.line(format!("topic {}\trecords {records}\tlag {lag}", topic.name).as_bytes());
    }
    Ok(())
}

/// What the signer refuses to sign, also if another process is the signer.
async fn signing_lines(engine: &Engine, output: &dyn Output) -> Result<(), Failure> {
    engine.participant().exchange(&engine.context).await?;
    if let Some(refusal) = receipts::signing_refusal(engine).await {
        output.line(format!("signing of receipts and checkpoints\trefused: {}", refusal.reason()).as_bytes());
    }
    for (service, reason) in SigningState::of(&engine.context).refused_trees().0 {
        output.line(format!("signing of checkpoints of {service}\trefused: {reason}").as_bytes());
    }
    Ok(())
}
