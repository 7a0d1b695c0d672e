//! Metadata requests to the brokers: whether they answer, and where a partition ends.

use std::sync::{Arc, Mutex, PoisonError};
use std::time::{Duration, Instant};

use rdkafka::consumer::{BaseConsumer, Consumer};
use rdkafka::error::KafkaError;
use rdkafka::types::RDKafkaErrorCode;
use schemas::position::LogOffset;
use tokio::sync::Semaphore;

use super::settings::{ConnectionState, failed};
use super::{ANSWER_MAX, READY_MAX, RECONNECT_PAUSE, Shared};
use crate::Error;

/// How long a partition may be without a leader before that is an error.
const LEADER_MAX: Duration = Duration::from_secs(5);
/// How long all brokers may be unreachable before that is an error.
const DISCONNECTED_MAX: Duration = Duration::from_secs(3);
/// The pause before a request is repeated.
const PAUSE: Duration = Duration::from_millis(50);
/// How many metadata requests run at once; others wait. Each blocks a thread until it is answered, also when its caller was cancelled.
const REQUESTS_MAX: usize = 16;

/// A client for metadata requests. It is separate from the consumer that reads new records: a broker answers the requests of one connection
/// in order, so metadata requests would wait behind fetches.
pub(super) struct MetadataClient {
    shared: Arc<Shared>,
    client: Mutex<(Arc<BaseConsumer<ConnectionState>>, Instant)>,
    permits: Arc<Semaphore>,
}

impl MetadataClient {
    pub(super) fn new(shared: &Arc<Shared>) -> Result<Arc<Self>, Error> {
        let client = Mutex::new((Arc::new(shared.consumer()?), Instant::now()));
        Ok(Arc::new(Self { shared: Arc::clone(shared), client, permits: Arc::new(Semaphore::new(REQUESTS_MAX)) }))
    }

    /// Returns the client, or a new one if it has lost its brokers. May block until the old client has ended.
    fn client(&self) -> Result<Arc<BaseConsumer<ConnectionState>>, Error> {
        let mut held = self.client.lock().unwrap_or_else(PoisonError::into_inner);
        let (client, made) = &mut *held;
        // Polling makes the client report pending errors.
        while client.poll(Duration::ZERO).is_some() {}
        if client.context().is_lost() && made.elapsed() > RECONNECT_PAUSE {
            (*client, *made) = (Arc::new(self.shared.consumer()?), Instant::now());
        }
        Ok(Arc::clone(client))
    }

    /// Asks the broker for the partition's current end.
    pub(super) async fn end(self: &Arc<Self>, index: usize) -> Result<LogOffset, Error> {
        self.ask(move |metadata| {
            let Some(state) = metadata.shared.partitions.get(index) else { return Ok(LogOffset(0)) };
            let begun = Instant::now();
            loop {
                let client = metadata.client()?;
                match client.fetch_watermarks(&state.name, state.partition_i32(), ANSWER_MAX) {
                    Ok((_, end)) => {
                        return LogOffset::try_from(end).map_err(|error| {
                            let what = format!("the end of {}/{} is not known: {error}", state.name, state.partition);
                            failed(&metadata.shared.options, &what, None)
                        });
                    }
                    // A new topic, or one whose broker has just returned, gets a leader soon. This client follows no partition and would
                    // keep its old metadata, so it must be asked to refresh it.
                    Err(error) if is_leaderless(&error) && begun.elapsed() < LEADER_MAX => {
                        std::thread::sleep(PAUSE);
                        let _ = client.fetch_metadata(Some(&state.name), LEADER_MAX);
                    }
                    // There is no other traffic on this connection, so only a request finds out that the broker is reachable again.
                    Err(error) if is_disconnected(&error) && begun.elapsed() < DISCONNECTED_MAX => std::thread::sleep(PAUSE),
                    Err(error) => {
                        let what = format!("the end of {}/{} is not known", state.name, state.partition);
                        return Err(failed(&metadata.shared.options, &what, Some(error)));
                    }
                }
            }
        })
        .await
    }

    /// Checks whether any broker answers.
    pub(super) async fn brokers(self: &Arc<Self>) -> Result<(), Error> {
        self.ask(|metadata| {
            let Some(state) = metadata.shared.partitions.first() else { return Ok(()) };
            let answered = metadata.client()?.fetch_metadata(Some(&state.name), READY_MAX);
            answered.map(|_| ()).map_err(|error| failed(&metadata.shared.options, "no broker answers", Some(error)))
        })
        .await
    }

    /// Runs a request on a thread that may block.
    async fn ask<T, F>(self: &Arc<Self>, request: F) -> Result<T, Error>
    where
        T: Send + 'static,
        F: FnOnce(&Self) -> Result<T, Error> + Send + 'static,
    {
        let permit = Arc::clone(&self.permits).acquire_owned().await.map_err(|_| self.shared.closed())?;
        let metadata = Arc::clone(self);
        let run = move || {
            let answer = request(&metadata);
            drop(permit);
            answer
        };
        tokio::task::spawn_blocking(run).await.map_err(|_| failed(&self.shared.options, "a request was interrupted", None))?
    }
}

/// Whether the asked broker is not, or not yet, the leader of the partition.
fn is_leaderless(error: &KafkaError) -> bool {
    use RDKafkaErrorCode::{LeaderNotAvailable, NotLeaderForPartition, UnknownPartition, UnknownTopic, UnknownTopicOrPartition};
    matches!(
        error.rdkafka_error_code(),
        Some(LeaderNotAvailable | NotLeaderForPartition | UnknownPartition | UnknownTopic | UnknownTopicOrPartition)
    )
}

/// Whether no broker is connected now.
fn is_disconnected(error: &KafkaError) -> bool {
    use RDKafkaErrorCode::{AllBrokersDown, BrokerTransportFailure, DestroyBroker};
    matches!(error.rdkafka_error_code(), Some(AllBrokersDown | BrokerTransportFailure | DestroyBroker))
}
