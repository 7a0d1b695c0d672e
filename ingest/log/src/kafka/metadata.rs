//! Metadata requests to the brokers: whether they answer, and where a partition ends.

use std::sync::{Arc, Mutex, PoisonError};
use std::time::{Duration, Instant};

use rdkafka::consumer::{BaseConsumer, Consumer};
use rdkafka::error::KafkaError;
use rdkafka::topic_partition_list::{Offset, TopicPartitionList};
use rdkafka::types::RDKafkaErrorCode;
use schemas::position::LogOffset;
use tokio::sync::Semaphore;
use tokio::time::timeout;

use super::settings::{ConnectionState, failed};
use super::{ANSWER_MAX, PartitionState, READY_MAX, RECONNECT_PAUSE, Shared};
use crate::{Error, READY_TIME_MAX};

/// How long the client may take to refresh what it knows of a topic, before a request is repeated.
const REFRESH_MAX: Duration = Duration::from_secs(5);
/// For requests of an open log, whose callers wait.
const OPENED: Patience = Patience { leaderless: Duration::from_secs(5), disconnected: Duration::from_secs(3) };
/// For a log that is being opened, as long as Kafka's own clients wait: brokers with much to do take long to become the leaders of many new topics, and to
/// answer. A broker has answered before.
const OPENING: Patience = Patience { leaderless: Duration::from_secs(60), disconnected: Duration::from_secs(60) };
/// The pause before a request is repeated.
const PAUSE: Duration = Duration::from_millis(50);
/// How many metadata requests run at once; others wait. Each blocks a thread until it is answered, also when its caller was cancelled.
const REQUESTS_MAX: usize = 16;

/// How long a request is repeated while it fails with an error that passes by itself soon.
#[derive(Clone, Copy, Debug)]
struct Patience {
    /// A partition has no leader.
    leaderless: Duration,
    /// No broker is connected, or none answers in time.
    disconnected: Duration,
}

impl Patience {
    /// What to do about an error, this long after the first request.
    fn judge(self, error: &KafkaError, elapsed: Duration) -> Next {
        if is_leaderless(error) && elapsed < self.leaderless {
            Next::Refresh
        } else if is_disconnected(error) && elapsed < self.disconnected {
            Next::Repeat
        } else {
            Next::Fail
        }
    }
}

/// What follows a request that failed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Next {
    /// The request is repeated with newer metadata.
    Refresh,
    /// The request is repeated.
    Repeat,
    /// The caller gets the error.
    Fail,
}

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
            let (_, end) = metadata.repeat(&unknown_end(state), OPENED, |client| {
                let asked = client.fetch_watermarks(&state.name, state.partition_i32(), ANSWER_MAX);
                asked.map_err(|error| (error, Some(state.name.to_string())))
            })?;
            metadata.offset(state, end)
        })
        .await
    }

    /// Asks the brokers for the current ends of all partitions, with one request to each broker. Returns them in the order of the partitions.
    pub(super) async fn ends(self: &Arc<Self>) -> Result<Vec<LogOffset>, Error> {
        self.ends_with(OPENED).await
    }

    /// Waits until every partition has a leader that answers, for topics that were just created.
    pub(super) async fn wait_for_leaders(self: &Arc<Self>) -> Result<(), Error> {
        self.ends_with(OPENING).await.map(drop)
    }

    /// Does what [`ends`](Self::ends) does, with this patience.
    async fn ends_with(self: &Arc<Self>, patience: Patience) -> Result<Vec<LogOffset>, Error> {
        self.ask(move |metadata| {
            let shared = &metadata.shared;
            let what = "the ends of the partitions are not known";
            let mut all = TopicPartitionList::with_capacity(shared.partitions.len());
            for state in &shared.partitions {
                let added = all.add_partition_offset(&state.name, state.partition_i32(), Offset::End);
                added.map_err(|error| failed(&shared.options, what, Some(error)))?;
            }
            let ends = metadata.repeat(what, patience, |client| {
                // The request for the offset of a time answers the time "latest" with the end. It overwrites the list.
                let ends = client.offsets_for_times(all.clone(), ANSWER_MAX).map_err(|error| (error, None))?;
                ends.elements().iter().try_for_each(|end| end.error().map_err(|error| (error, Some(end.topic().to_owned()))))?;
                Ok(ends)
            })?;
            let end = |state: &PartitionState| {
                let found = ends.find_partition(&state.name, state.partition_i32()).and_then(|end| end.offset().to_raw());
                metadata.offset(state, found.unwrap_or(-1))
            };
            shared.partitions.iter().map(end).collect()
        })
        .await
    }

    /// Checks an end that a broker returned.
    fn offset(&self, state: &PartitionState, end: i64) -> Result<LogOffset, Error> {
        LogOffset::try_from(end).map_err(|error| failed(&self.shared.options, &format!("{}: {error}", unknown_end(state)), None))
    }

    /// Repeats a request while it fails with an error that passes by itself soon. The request returns the topic of an error, if it is known.
    fn repeat<T>(
        &self,
        what: &str,
        patience: Patience,
        request: impl Fn(&BaseConsumer<ConnectionState>) -> Result<T, (KafkaError, Option<String>)>,
    ) -> Result<T, Error> {
        let begun = Instant::now();
        loop {
            let client = self.client()?;
            let (error, topic) = match request(&client) {
                Ok(answer) => return Ok(answer),
                Err(failure) => failure,
            };
            match patience.judge(&error, begun.elapsed()) {
                Next::Refresh => {
                    std::thread::sleep(PAUSE);
                    // A new topic, or one whose broker has just returned, gets a leader soon. This client follows no partition and would keep
                    // its old metadata, so it must be asked to refresh it.
                    let _ = client.fetch_metadata(topic.as_deref(), REFRESH_MAX);
                }
                // There is no other traffic on this connection, so only a request finds out that the broker is reachable again.
                Next::Repeat => std::thread::sleep(PAUSE),
                Next::Fail => return Err(failed(&self.shared.options, what, Some(error))),
            }
        }
    }

    /// Checks whether any broker answers.
    pub(super) async fn brokers(self: &Arc<Self>) -> Result<(), Error> {
        let asked = self.ask(|metadata| {
            let Some(state) = metadata.shared.partitions.first() else { return Ok(()) };
            let answered = metadata.client()?.fetch_metadata(Some(&state.name), READY_MAX);
            answered.map(|_| ()).map_err(|error| failed(&metadata.shared.options, "no broker answers", Some(error)))
        });
        // Other requests that no broker answers may be before it.
        let late = |_| Err(failed(&self.shared.options, &format!("no broker answers within {} s", READY_TIME_MAX.as_secs()), None));
        timeout(READY_TIME_MAX, asked).await.unwrap_or_else(late)
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

fn unknown_end(state: &PartitionState) -> String {
    format!("the end of {}/{} is not known", state.name, state.partition)
}

/// Whether the asked broker is not, or not yet, the leader of the partition, or does not know yet that it is.
fn is_leaderless(error: &KafkaError) -> bool {
    use RDKafkaErrorCode as Code;
    let without_leader = [Code::LeaderNotAvailable, Code::NotLeaderForPartition, Code::ReplicaNotAvailable];
    let just_elected = [Code::FencedLeaderEpoch, Code::UnknownLeaderEpoch, Code::OffsetNotAvailable];
    let just_created = [Code::UnknownPartition, Code::UnknownTopic, Code::UnknownTopicOrPartition];
    error.rdkafka_error_code().is_some_and(|code| [without_leader, just_elected, just_created].iter().any(|codes| codes.contains(&code)))
}

/// Whether no broker is connected now, or none answered in time.
fn is_disconnected(error: &KafkaError) -> bool {
    use RDKafkaErrorCode::{AllBrokersDown, BrokerTransportFailure, DestroyBroker, OperationTimedOut, RequestTimedOut};
    let code = error.rdkafka_error_code();
    matches!(code, Some(AllBrokersDown | BrokerTransportFailure | DestroyBroker | OperationTimedOut | RequestTimedOut))
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Proves that a log that is being opened waits for slow brokers longer than the callers of an open one do, and that it waits for nothing else.
    #[test]
    fn opening_waits_for_slow_brokers() {
        use RDKafkaErrorCode as Code;
        let cases = [
            (Code::NotLeaderForPartition, [Next::Refresh, Next::Fail], [Next::Refresh, Next::Refresh]),
            (Code::UnknownTopicOrPartition, [Next::Refresh, Next::Fail], [Next::Refresh, Next::Refresh]),
            (Code::BrokerTransportFailure, [Next::Repeat, Next::Fail], [Next::Repeat, Next::Repeat]),
            (Code::OperationTimedOut, [Next::Repeat, Next::Fail], [Next::Repeat, Next::Repeat]),
            (Code::TopicAuthorizationFailed, [Next::Fail; 2], [Next::Fail; 2]),
        ];
        let [soon, later] = [1, 30].map(Duration::from_secs);
        for (code, opened, opening) in cases {
            let error = KafkaError::MetadataFetch(code);
            assert_eq!([soon, later].map(|elapsed| OPENED.judge(&error, elapsed)), opened, "{code:?} of an open log");
            assert_eq!([soon, later].map(|elapsed| OPENING.judge(&error, elapsed)), opening, "{code:?} of a log that is being opened");
        }
    }
}
