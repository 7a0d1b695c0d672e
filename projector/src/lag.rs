//! How far the views are behind the log: facts and commands that they have not passed.
//!
//! Change topics do not count. What a view has not applied there it has not passed in its inputs either, and what stands at their end
//! without extending the chain is nothing to wait for.

use schemas::tables::ViewDef;
use schemas::topics::Topic;
use schemas::views::engine;
use view_store::Checkpoint;

use crate::rebuild::Parts;
use crate::service::Service;
use crate::{Error, for_each_service, heads};

/// Bytes read to see when a record was appended.
const LOOK_BYTES: usize = 1;

/// A view's distance from the log's end.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Lag {
    /// The view.
    pub view: &'static str,
    /// Records that it has not passed, over all partitions of its inputs.
    pub events: u64,
    /// Seconds since the oldest of them was appended; 0 if there is none.
    pub seconds: u64,
}

/// The lag of the engine's view and of every service's.
///
/// # Errors
/// When the log or the store fails.
pub async fn of(parts: &Parts) -> Result<Vec<Lag>, Error> {
    let checkpoint = parts.engine.checkpoint().await?;
    let mut lags = vec![behind(parts, engine::VIEW.name, heads::fact_topics(), &checkpoint).await?];
    macro_rules! service {
        ($service:ty) => {
            let view: &'static ViewDef = <$service>::VIEW;
            let checkpoint = parts.store.live(view).await?.checkpoint().await?;
            lags.push(behind(parts, view.name, <$service>::INPUTS.iter(), &checkpoint).await?);
        };
    }
    for_each_service!(service);
    Ok(lags)
}

async fn behind(
    parts: &Parts,
    view: &'static str,
    inputs: impl Iterator<Item = &'static Topic>,
    checkpoint: &Checkpoint,
) -> Result<Lag, Error> {
    let mut lag = Lag { view, ..Lag::default() };
    let mut oldest_ms = i64::MAX;
    let partitions: Vec<_> = inputs.flat_map(|topic| (0..topic.partitions).map(move |partition| (topic, partition))).collect();
    for (topic, partition) in partitions {
        let position = checkpoint.position(topic, partition);
        let events = parts.log.end(topic, partition).await?.0.saturating_sub(position.0);
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
