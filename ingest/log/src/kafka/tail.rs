//! The newest records: one consumer follows every partition that somebody reads, and keeps what came last, so that all readers
//! of this process share one fetch, and waiting costs the broker nothing.

use std::collections::VecDeque;
use std::pin::pin;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::thread::JoinHandle;
use std::time::{Duration, Instant};

use rdkafka::Message;
use rdkafka::consumer::{BaseConsumer, Consumer};
use rdkafka::error::KafkaError;
use rdkafka::topic_partition_list::{Offset, TopicPartitionList};
use rdkafka::types::RDKafkaErrorCode;
use schemas::position::LogOffset;
use tokio::sync::{OnceCell, Semaphore, watch};

use super::fetch::{Limits, stored};
use super::settings::{Told, failed};
use super::{ANSWER_MAX, READY_MAX, Shared};
use crate::{Error, Stored};

/// How soon the thread sees that the log was closed.
const POLL: Duration = Duration::from_millis(100);
/// How long a partition may be without a leader before that is an error.
const LEADER_MAX: Duration = Duration::from_secs(5);
/// How long brokers may be away before that is an error.
const AWAY_MAX: Duration = Duration::from_secs(3);
/// Before it is asked again.
const LEADER_PAUSE: Duration = Duration::from_millis(50);
/// How long records that are acknowledged may be on their way here.
const ON_THEIR_WAY_MAX: Duration = Duration::from_secs(5);
/// Before partitions are followed anew.
const ANEW_PAUSE: Duration = Duration::from_secs(1);
/// Questions to the brokers at once. Each holds a thread until it is answered, also when its asker has gone; others wait.
const QUESTIONS_MAX: usize = 16;
/// What one partition may keep at least.
const PARTITION_BYTES_MIN: usize = 1024 * 1024;

/// The newest records of one partition: all from `first` to before `next`.
#[derive(Default)]
struct Ring {
    first: u64,
    next: u64,
    records: VecDeque<Stored>,
    bytes: usize,
}

impl Ring {
    fn push(&mut self, record: Stored, bytes_max: usize) {
        if record.offset.0 < self.next {
            return;
        }
        if record.offset.0 > self.next {
            // Offsets are dense: what is missing could not be read. Those who want it fetch it, and hear why.
            self.records.clear();
            self.bytes = 0;
            self.first = record.offset.0;
        }
        self.next = record.offset.next().0;
        self.bytes += size_of(&record);
        self.records.push_back(record);
        while self.bytes > bytes_max
            && let Some(gone) = self.records.pop_front()
        {
            self.bytes -= size_of(&gone);
            self.first = gone.offset.next().0;
        }
    }
}

fn size_of(stored: &Stored) -> usize {
    stored.record.key.len() + stored.record.value.len() + size_of_val(stored)
}

struct Slot {
    ring: Mutex<Ring>,
    /// The offset after the last record that came.
    seen: watch::Sender<u64>,
    followed: OnceCell<()>,
}

impl Slot {
    fn ring(&self) -> MutexGuard<'_, Ring> {
        self.ring.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// The follower of all partitions.
pub(super) struct Tail {
    shared: Arc<Shared>,
    consumer: Arc<BaseConsumer<Told>>,
    /// Who asks questions. Not the follower: a broker answers each connection in order, and its fetches wait there until something comes.
    asker: Arc<BaseConsumer<Told>>,
    /// One for each of the shared places.
    slots: Arc<Vec<Slot>>,
    /// The places that the client was told to follow, by index; held while it is told.
    assigned: Arc<Mutex<Vec<usize>>>,
    questions: Arc<Semaphore>,
    thread: Mutex<Option<JoinHandle<()>>>,
}

impl Tail {
    pub(super) fn start(shared: &Arc<Shared>) -> Result<Self, Error> {
        let make = || {
            let made: Result<BaseConsumer<Told>, KafkaError> = shared.options.consumer().create_with_context(Told);
            made.map(Arc::new).map_err(|error| failed(&shared.options, "the consumer cannot be made", Some(error)))
        };
        let (consumer, asker) = (make()?, make()?);
        let slot = || Slot { ring: Mutex::default(), seen: watch::Sender::new(0), followed: OnceCell::new() };
        let slots: Arc<Vec<Slot>> = Arc::new(shared.places.iter().map(|_| slot()).collect());
        let assigned: Arc<Mutex<Vec<usize>>> = Arc::default();
        let following = {
            let (shared, consumer, slots, assigned) =
                (Arc::clone(shared), Arc::clone(&consumer), Arc::clone(&slots), Arc::clone(&assigned));
            move || follow(&shared, &consumer, &slots, &assigned)
        };
        let thread = std::thread::Builder::new().name("kafka-tail".to_owned()).spawn(following);
        let thread =
            thread.map_err(|error| Error::Unavailable { what: "a thread cannot be started".to_owned(), source: Some(Box::new(error)) })?;
        let questions = Arc::new(Semaphore::new(QUESTIONS_MAX));
        Ok(Self { shared: Arc::clone(shared), consumer, asker, slots, assigned, questions, thread: Mutex::new(Some(thread)) })
    }

    /// Follows a partition from its end on, unless it is followed already.
    pub(super) async fn follow(&self, index: usize) -> Result<(), Error> {
        let (Some(slot), Some(place)) = (self.slots.get(index), self.shared.places.get(index)) else { return Ok(()) };
        let begin = async || {
            let end = self.ask_end(index).await?;
            place.raise_end(end);
            {
                let mut ring = slot.ring();
                (ring.first, ring.next) = (end, end);
            }
            slot.seen.send_replace(end);
            let wrong =
                |error| failed(&self.shared.options, &format!("{}/{} cannot be followed", place.name, place.partition), Some(error));
            let mut assigned = self.assigned.lock().unwrap_or_else(PoisonError::into_inner);
            list(&place.name, place.partition_i32(), end).and_then(|list| self.consumer.incremental_assign(&list)).map_err(wrong)?;
            assigned.push(index);
            Ok(())
        };
        slot.followed.get_or_try_init(begin).await?;
        Ok(())
    }

    /// The partition's end, as the broker says it now.
    pub(super) async fn ask_end(&self, index: usize) -> Result<u64, Error> {
        self.ask(move |shared, consumer| {
            let Some(place) = shared.places.get(index) else { return Ok(0) };
            let wrong =
                |error| failed(&shared.options, &format!("the end of {}/{} is not known", place.name, place.partition), Some(error));
            let begun = Instant::now();
            loop {
                match consumer.fetch_watermarks(&place.name, place.partition_i32(), ANSWER_MAX) {
                    Ok((_, end)) => return Ok(u64::try_from(end).unwrap_or(0)),
                    // A topic that was just made, or a broker that just came back, has its leader soon.
                    Err(error) if is_leaderless(&error) && begun.elapsed() < LEADER_MAX => std::thread::sleep(LEADER_PAUSE),
                    // Nobody fetches over this connection, so only a question finds out that the broker is back.
                    Err(error) if is_away(&error) && begun.elapsed() < AWAY_MAX => std::thread::sleep(LEADER_PAUSE),
                    Err(error) => return Err(wrong(error)),
                }
            }
        })
        .await
    }

    /// Whether some broker answers.
    pub(super) async fn ask_brokers(&self) -> Result<(), Error> {
        self.ask(|shared, consumer| {
            let Some(place) = shared.places.first() else { return Ok(()) };
            let answered = consumer.fetch_metadata(Some(&place.name), READY_MAX);
            answered.map(|_| ()).map_err(|error| failed(&shared.options, "no broker answers", Some(error)))
        })
        .await
    }

    /// Asks the brokers on a thread that may wait for them.
    async fn ask<T, F>(&self, question: F) -> Result<T, Error>
    where
        T: Send + 'static,
        F: FnOnce(&Shared, &BaseConsumer<Told>) -> Result<T, Error> + Send + 'static,
    {
        let turn = Arc::clone(&self.questions).acquire_owned().await.map_err(|_| self.shared.closed())?;
        let (shared, asker) = (Arc::clone(&self.shared), Arc::clone(&self.asker));
        let asked = move || {
            let answer = question(&shared, &asker);
            drop(turn);
            answer
        };
        tokio::task::spawn_blocking(asked).await.map_err(|_| failed(&self.shared.options, "a question was interrupted", None))?
    }

    /// The records asked for, if they are among the newest; waits for those that are acknowledged and still on their way here. `None` if
    /// they are older, or do not come: whoever fetches them hears why.
    pub(super) async fn read(&self, index: usize, limits: Limits) -> Result<Option<Vec<Stored>>, Error> {
        let Some(slot) = self.slots.get(index) else { return Ok(None) };
        let (mut seen, mut closed) = (slot.seen.subscribe(), self.shared.closed.subscribe());
        let mut late = pin!(tokio::time::sleep(ON_THEIR_WAY_MAX));
        loop {
            let next = {
                let ring = slot.ring();
                if limits.from < ring.first {
                    return Ok(None);
                }
                let from = ring.records.partition_point(|record| record.offset.0 < limits.from);
                let (records, is_full) = limits.take(ring.records.range(from..));
                if is_full || ring.next >= limits.end {
                    return Ok(Some(records));
                }
                ring.next
            };
            tokio::select! {
                _ = seen.wait_for(|seen| *seen > next) => {}
                _ = closed.wait_for(|closed| *closed) => return Err(self.shared.closed()),
                () = &mut late => return Ok(None),
            }
        }
    }

    /// Ends following.
    pub(super) async fn stop(&self) {
        let thread = self.thread.lock().unwrap_or_else(PoisonError::into_inner).take();
        if let Some(thread) = thread {
            let _ = tokio::task::spawn_blocking(move || thread.join()).await;
        }
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
    use RDKafkaErrorCode::{AllBrokersDown, BrokerTransportFailure};
    matches!(error.rdkafka_error_code(), Some(AllBrokersDown | BrokerTransportFailure))
}

/// One partition from an offset on.
pub(super) fn list(name: &str, partition: i32, from: u64) -> Result<TopicPartitionList, KafkaError> {
    let mut list = TopicPartitionList::with_capacity(1);
    list.add_partition_offset(name, partition, Offset::Offset(i64::try_from(from).unwrap_or(i64::MAX)))?;
    Ok(list)
}

/// Tells the client anew to follow all that it was told to follow, each partition from where it stands.
fn follow_anew(shared: &Shared, consumer: &BaseConsumer<Told>, slots: &[Slot], assigned: &Mutex<Vec<usize>>) {
    // Not at once: what the broker does not know now it may not know for a while.
    std::thread::sleep(ANEW_PAUSE);
    let assigned = assigned.lock().unwrap_or_else(PoisonError::into_inner);
    let mut all = TopicPartitionList::new();
    let added = assigned.iter().filter_map(|index| shared.places.get(*index).zip(slots.get(*index))).try_for_each(|(place, slot)| {
        let next = Offset::Offset(i64::try_from(slot.ring().next).unwrap_or(i64::MAX));
        all.add_partition_offset(&place.name, place.partition_i32(), next)
    });
    if let Err(error) = added.and_then(|()| consumer.assign(&all)) {
        tracing::warn!(%error, "topics cannot be followed anew");
    }
}

/// The thread: takes records until the log is closed.
fn follow(shared: &Shared, consumer: &BaseConsumer<Told>, slots: &[Slot], assigned: &Mutex<Vec<usize>>) {
    let bytes_max = (shared.options.tail_bytes_max / shared.places.len().max(1)).max(PARTITION_BYTES_MIN);
    while !*shared.closed.borrow() {
        let message = match consumer.poll(POLL) {
            None => continue,
            Some(Err(error)) => {
                tracing::warn!(%error, "following topics");
                // A partition whose offset the broker did not know is no longer followed by the client; from all else it recovers.
                if matches!(error, KafkaError::MessageConsumption(RDKafkaErrorCode::AutoOffsetReset | RDKafkaErrorCode::OffsetOutOfRange)) {
                    follow_anew(shared, consumer, slots, assigned);
                }
                continue;
            }
            Some(Ok(message)) => message,
        };
        let is_of = |place: &super::Place| *place.name == *message.topic() && place.partition_i32() == message.partition();
        let Some(index) = shared.places.iter().position(is_of) else { continue };
        let (Some(place), Some(slot)) = (shared.places.get(index), slots.get(index)) else { continue };
        let record = stored(&message);
        let LogOffset(next) = record.offset.next();
        slot.ring().push(record, bytes_max);
        place.raise_end(next);
        slot.seen.send_replace(next);
    }
}
