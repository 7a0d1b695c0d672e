//! Waits for topics to grow: for tasks of this process, and for readers of views that other processes commit to.

use std::convert::Infallible;
use std::sync::Arc;
use std::time::Duration;

use event_log::EventLog;
use futures_util::future;
use futures_util::stream::{FuturesUnordered, StreamExt};
use schemas::position::LogOffset;
use schemas::tables::ViewDef;
use schemas::topics::Topic;
use view_store::Checkpoint;

use crate::Error;
use crate::rebuild::Parts;
use crate::service_def::indexed_topics;

/// How long to wait after the log or the store failed.
const RETRY_PAUSE: Duration = Duration::from_secs(1);
/// The shortest time between two wake-ups of a view.
const WAKE_PAUSE: Duration = Duration::from_millis(20);

/// A partition and an offset in it.
type PartitionEnd = (&'static Topic, u32, LogOffset);

/// Waits until a partition of the topics has a record after the checkpoint. Cancel-safe.
///
/// # Errors
/// When the log fails.
pub async fn wait_for_any(log: &Arc<dyn EventLog>, inputs: &[&'static Topic], checkpoint: &Checkpoint) -> Result<(), Error> {
    let places = partitions(inputs).map(|(topic, partition)| (topic, partition, checkpoint.position(topic, partition)));
    wait_past(log, places).await.map(|_| ())
}

fn partitions(topics: &[&'static Topic]) -> impl Iterator<Item = (&'static Topic, u32)> {
    topics.iter().flat_map(|topic| (0..topic.partitions).map(move |partition| (*topic, partition)))
}

/// Waits until a partition has a record after its offset, and returns the index of that partition.
async fn wait_past(log: &Arc<dyn EventLog>, places: impl Iterator<Item = PartitionEnd>) -> Result<usize, Error> {
    let waits = places.enumerate().map(|(at, (topic, partition, offset))| async move {
        log.wait_past(topic, partition, offset).await?;
        Ok(at)
    });
    match waits.collect::<FuturesUnordered<_>>().next().await {
        Some(result) => result,
        None => std::future::pending().await,
    }
}

/// Wakes the readers of views in a shared store whenever the log gets records that the views depend on. Readers in this process thus learn
/// of other processes' commits quickly, and the store is rarely queried while nothing happens. Never returns.
pub async fn wake_readers(parts: &Parts, views: &[&'static ViewDef]) {
    let is_requested = |view: &ViewDef| parts.store.is_shared() && views.iter().any(|requested| requested.name == view.name);
    let mut wakers = Vec::new();
    if is_requested(parts.engine.def()) {
        wakers.push(wake_view(parts, parts.engine.def(), indexed_topics(parts.services)));
    }
    for service in parts.services.iter().filter(|service| is_requested(service.view)) {
        wakers.push(wake_view(parts, service.view, vec![service.changes]));
    }
    future::join_all(wakers).await;
    future::pending().await
}

async fn wake_view(parts: &Parts, def: &'static ViewDef, inputs: Vec<&'static Topic>) {
    let mut is_warned = false;
    loop {
        let waking = async {
            let place = async |(topic, partition)| Ok::<PartitionEnd, Error>((topic, partition, parts.log.end(topic, partition).await?));
            let mut places = future::try_join_all(partitions(&inputs).map(place)).await?;
            is_warned = false;
            // Records from before this call may not be projected yet.
            parts.store.live_to_project(def).await?.wake();
            loop {
                let at = wait_past(&parts.log, places.iter().copied()).await?;
                parts.store.live_to_project(def).await?.wake();
                let (topic, partition, end) = &mut places[at];
                *end = parts.log.end(topic, *partition).await?;
                tokio::time::sleep(WAKE_PAUSE).await;
            }
        };
        let Err::<Infallible, Error>(error) = waking.await;
        if !std::mem::replace(&mut is_warned, true) {
            let error = schemas::reason::reason(&error);
            tracing::warn!(
                view = def.name,
                error,
                "cannot wait for the log, will retry: commits of other processes are noticed up to a second later"
            );
        }
        tokio::time::sleep(RETRY_PAUSE).await;
    }
}
