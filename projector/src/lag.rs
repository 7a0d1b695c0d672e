//! Measures how far views are behind the log: the facts and commands that they have not passed.
//!
//! Change topics are not counted. A change that is not applied belongs to an input that is not passed, and records at their end that do not
//! extend the chain will never be applied.

use futures_util::future::try_join_all;
use schemas::topics::Topic;
use schemas::views::engine;
use view_store::Checkpoint;

use crate::Error;
use crate::rebuild::Parts;
use crate::service_def::indexed_topics;

/// The most bytes read to see when a record was appended.
const LOOK_BYTES: usize = 1;

/// The distance of a view from the end of the log.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Lag {
    /// The name of the view.
    pub view: &'static str,
    /// Records that the view has not passed, over all partitions of its inputs.
    pub events: u64,
    /// Seconds since the oldest of those records was appended; 0 if there is none.
    pub seconds: u64,
}

/// Returns the lag of the engine's view and of the view of every service that is projected.
///
/// # Errors
/// When the log or the store fails.
pub async fn measure(parts: &Parts) -> Result<Vec<Lag>, Error> {
    let checkpoint = parts.engine.checkpoint().await?;
    let mut lags = vec![measure_view(parts, engine::VIEW.name, indexed_topics(parts.services).into_iter(), &checkpoint).await?];
    for service in &*parts.projected {
        let checkpoint = parts.store.live_to_project(service.view).await?.checkpoint().await?;
        lags.push(measure_view(parts, service.view.name, service.inputs.iter(), &checkpoint).await?);
    }
    Ok(lags)
}

async fn measure_view(
    parts: &Parts,
    view: &'static str,
    inputs: impl Iterator<Item = &'static Topic>,
    checkpoint: &Checkpoint,
) -> Result<Lag, Error> {
    let mut lag = Lag { view, ..Lag::default() };
    let mut oldest_ms = i64::MAX;
    let partitions: Vec<_> = inputs.flat_map(|topic| (0..topic.partitions).map(move |partition| (topic, partition))).collect();
    let ends = try_join_all(partitions.iter().map(|(topic, partition)| parts.log.end(topic, *partition))).await?;
    for ((topic, partition), end) in partitions.into_iter().zip(ends) {
        let position = checkpoint.position(topic, partition);
        let events = end.0.saturating_sub(position.0);
        if events > 0 {
            let first = parts.log.read(topic, partition, position, 1, LOOK_BYTES).await?;
            oldest_ms = first.iter().map(|stored| stored.record.at_ms).fold(oldest_ms, i64::min);
        }
        lag.events += events;
    }
    if oldest_ms < i64::MAX {
        lag.seconds = u64::try_from(parts.clock.now_ms().saturating_sub(oldest_ms) / 1_000).unwrap_or(0);
    }
    Ok(lag)
}
