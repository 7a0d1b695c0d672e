//! Waiting for topics to grow, for oneself and for those that wait at views which other processes commit to.

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

use crate::rebuild::Parts;
use crate::service::Service;
use crate::{Error, for_each_service, heads};

/// After log or store failed.
const ANEW_PAUSE: Duration = Duration::from_secs(1);
/// Between two times that a view is stirred.
const STIR_PAUSE: Duration = Duration::from_millis(20);

/// A partition, and an offset in it.
type Place = (&'static Topic, u32, LogOffset);

/// Waits until any partition of the topics has more than the checkpoint covers. Cancel-safe.
///
/// # Errors
/// When the log fails.
pub async fn wait_any(log: &Arc<dyn EventLog>, inputs: &[&'static Topic], checkpoint: &Checkpoint) -> Result<(), Error> {
    let places = partitions(inputs).map(|(topic, partition)| (topic, partition, checkpoint.position(topic, partition)));
    wait_past(log, places).await.map(|_| ())
}

fn partitions(topics: &[&'static Topic]) -> impl Iterator<Item = (&'static Topic, u32)> {
    topics.iter().flat_map(|topic| (0..topic.partitions).map(move |partition| (*topic, partition)))
}

/// Waits until a partition has more than up to its offset here; answers which.
async fn wait_past(log: &Arc<dyn EventLog>, places: impl Iterator<Item = Place>) -> Result<usize, Error> {
    let waits = places.enumerate().map(|(at, (topic, partition, offset))| async move {
        log.wait_past(topic, partition, offset).await?;
        Ok(at)
    });
    match waits.collect::<FuturesUnordered<_>>().next().await {
        Some(result) => result,
        None => std::future::pending().await,
    }
}

/// Stirs the views of a shared store whenever the log gets something that they will follow: so those that wait there in this process hear of
/// other processes' commits soon, and the store is seldom asked while nothing happens. Never ends.
pub async fn stir(parts: &Parts, views: &[&'static ViewDef]) {
    let is_asked = |view: &ViewDef| parts.store.is_shared() && views.iter().any(|asked| asked.name == view.name);
    let mut stirring = Vec::new();
    if is_asked(parts.engine.def()) {
        stirring.push(stir_one(parts, parts.engine.def(), heads::fact_topics().collect()));
    }
    macro_rules! service {
        ($service:ty) => {
            if is_asked(<$service>::VIEW) {
                stirring.push(stir_one(parts, <$service>::VIEW, vec![<$service>::CHANGES]));
            }
        };
    }
    for_each_service!(service);
    future::join_all(stirring).await;
    future::pending().await
}

async fn stir_one(parts: &Parts, def: &'static ViewDef, inputs: Vec<&'static Topic>) {
    let mut is_warned = false;
    loop {
        let stirred = async {
            let mut places: Vec<Place> = Vec::new();
            for (topic, partition) in partitions(&inputs) {
                places.push((topic, partition, parts.log.end(topic, partition).await?));
            }
            is_warned = false;
            // What came before is under way, for all that is known here.
            parts.store.live(def).await?.stir();
            loop {
                let at = wait_past(&parts.log, places.iter().copied()).await?;
                parts.store.live(def).await?.stir();
                let (topic, partition, end) = &mut places[at];
                *end = parts.log.end(topic, *partition).await?;
                tokio::time::sleep(STIR_PAUSE).await;
            }
        };
        let Err::<Infallible, Error>(error) = stirred.await;
        if !std::mem::replace(&mut is_warned, true) {
            let error = schemas::reason::reason(&error);
            tracing::warn!(view = def.name, error, "the log does not tell what comes: other processes' commits are known a second late");
        }
        tokio::time::sleep(ANEW_PAUSE).await;
    }
}
