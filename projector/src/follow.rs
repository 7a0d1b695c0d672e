//! Waiting for topics to grow.

use std::sync::Arc;

use event_log::EventLog;
use futures_util::stream::{FuturesUnordered, StreamExt};
use schemas::topics::Topic;
use view_store::Checkpoint;

use crate::Error;

/// Waits until any partition of the topics has more than the checkpoint covers. Cancel-safe.
///
/// # Errors
/// When the log fails.
pub async fn wait_any(log: &Arc<dyn EventLog>, inputs: &[&'static Topic], checkpoint: &Checkpoint) -> Result<(), Error> {
    let mut waits: FuturesUnordered<_> = inputs
        .iter()
        .flat_map(|topic| (0..topic.partitions).map(move |partition| (*topic, partition)))
        .map(|(topic, partition)| log.wait_past(topic, partition, checkpoint.position(topic, partition)))
        .collect();
    match waits.next().await {
        Some(result) => Ok(result?),
        None => std::future::pending().await,
    }
}
