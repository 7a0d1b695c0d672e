//! Questions to the brokers: whether they answer, and where a partition ends.

use std::sync::{Arc, Mutex, PoisonError};
use std::time::{Duration, Instant};

use rdkafka::consumer::{BaseConsumer, Consumer};
use rdkafka::error::KafkaError;
use rdkafka::types::RDKafkaErrorCode;
use tokio::sync::Semaphore;

use super::settings::{Told, failed};
use super::{ANEW_PAUSE, ANSWER_MAX, READY_MAX, Shared};
use crate::Error;

/// How long a partition may be without a leader before that is an error.
const LEADER_MAX: Duration = Duration::from_secs(5);
/// How long brokers may be away before that is an error.
const AWAY_MAX: Duration = Duration::from_secs(3);
/// Before they are asked again.
const PAUSE: Duration = Duration::from_millis(50);
/// Questions to the brokers at once. Each holds a thread until it is answered, also when its asker has gone; others wait.
const QUESTIONS_MAX: usize = 16;

/// Who asks. Not the follower of the newest records: a broker answers each connection in order, and fetches wait there until something comes.
pub(super) struct Asker {
    shared: Arc<Shared>,
    client: Mutex<(Arc<BaseConsumer<Told>>, Instant)>,
    questions: Arc<Semaphore>,
}

impl Asker {
    pub(super) fn new(shared: &Arc<Shared>) -> Result<Arc<Self>, Error> {
        let client = Mutex::new((Arc::new(shared.consumer()?), Instant::now()));
        Ok(Arc::new(Self { shared: Arc::clone(shared), client, questions: Arc::new(Semaphore::new(QUESTIONS_MAX)) }))
    }

    /// The client, a new one if it has lost its brokers. May wait for the old one's end.
    fn client(&self) -> Result<Arc<BaseConsumer<Told>>, Error> {
        let mut held = self.client.lock().unwrap_or_else(PoisonError::into_inner);
        let (client, made) = &mut *held;
        // It tells what it has to say when it is polled.
        while client.poll(Duration::ZERO).is_some() {}
        if client.context().is_lost() && made.elapsed() > ANEW_PAUSE {
            (*client, *made) = (Arc::new(self.shared.consumer()?), Instant::now());
        }
        Ok(Arc::clone(client))
    }

    /// A partition's end, as the broker says it now.
    pub(super) async fn end(self: &Arc<Self>, index: usize) -> Result<u64, Error> {
        self.ask(move |asker| {
            let Some(place) = asker.shared.places.get(index) else { return Ok(0) };
            let begun = Instant::now();
            loop {
                let client = asker.client()?;
                match client.fetch_watermarks(&place.name, place.partition_i32(), ANSWER_MAX) {
                    Ok((_, end)) => return Ok(u64::try_from(end).unwrap_or(0)),
                    // A topic that was just made, or a broker that just came back, has its leader soon. The client, who follows nothing, keeps
                    // what it once heard, also that there is no leader: it must be told to ask again.
                    Err(error) if is_leaderless(&error) && begun.elapsed() < LEADER_MAX => {
                        std::thread::sleep(PAUSE);
                        let _ = client.fetch_metadata(Some(&place.name), LEADER_MAX);
                    }
                    // Nobody fetches over this connection, so only a question finds out that the broker is back.
                    Err(error) if is_away(&error) && begun.elapsed() < AWAY_MAX => std::thread::sleep(PAUSE),
                    Err(error) => {
                        let what = format!("the end of {}/{} is not known", place.name, place.partition);
                        return Err(failed(&asker.shared.options, &what, Some(error)));
                    }
                }
            }
        })
        .await
    }

    /// Whether some broker answers.
    pub(super) async fn brokers(self: &Arc<Self>) -> Result<(), Error> {
        self.ask(|asker| {
            let Some(place) = asker.shared.places.first() else { return Ok(()) };
            let answered = asker.client()?.fetch_metadata(Some(&place.name), READY_MAX);
            answered.map(|_| ()).map_err(|error| failed(&asker.shared.options, "no broker answers", Some(error)))
        })
        .await
    }

    /// Asks on a thread that may wait for the brokers.
    async fn ask<T, F>(self: &Arc<Self>, question: F) -> Result<T, Error>
    where
        T: Send + 'static,
        F: FnOnce(&Self) -> Result<T, Error> + Send + 'static,
    {
        let turn = Arc::clone(&self.questions).acquire_owned().await.map_err(|_| self.shared.closed())?;
        let asker = Arc::clone(self);
        let asked = move || {
            let answer = question(&asker);
            drop(turn);
            answer
        };
        tokio::task::spawn_blocking(asked).await.map_err(|_| failed(&self.shared.options, "a question was interrupted", None))?
    }
}

/// Whether the broker that was asked does not lead the partition, or not yet.
fn is_leaderless(error: &KafkaError) -> bool {
    use RDKafkaErrorCode::{LeaderNotAvailable, NotLeaderForPartition, UnknownPartition, UnknownTopic, UnknownTopicOrPartition};
    matches!(
        error.rdkafka_error_code(),
        Some(LeaderNotAvailable | NotLeaderForPartition | UnknownPartition | UnknownTopic | UnknownTopicOrPartition)
    )
}

/// Whether there is no connection to any broker now.
fn is_away(error: &KafkaError) -> bool {
    use RDKafkaErrorCode::{AllBrokersDown, BrokerTransportFailure, DestroyBroker};
    matches!(error.rdkafka_error_code(), Some(AllBrokersDown | BrokerTransportFailure | DestroyBroker))
}
