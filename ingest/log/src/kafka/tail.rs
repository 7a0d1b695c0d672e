//! The newest records: one consumer follows every partition that somebody reads, and keeps what came last, so that all readers
//! of this process share one fetch, and waiting costs the broker nothing.

use std::collections::VecDeque;
use std::pin::pin;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::thread::JoinHandle;
use std::time::Duration;

use rdkafka::Message;
use rdkafka::consumer::{BaseConsumer, Consumer};
use rdkafka::error::KafkaError;
use rdkafka::topic_partition_list::{Offset, TopicPartitionList};
use rdkafka::types::RDKafkaErrorCode;
use schemas::position::LogOffset;
use tokio::sync::{OnceCell, watch};

use super::ask::Asker;
use super::fetch::{Limits, stored};
use super::settings::{Told, failed};
use super::{ANEW_PAUSE, Shared};
use crate::{Error, Stored};

/// How soon the thread sees that the log was closed.
const POLL: Duration = Duration::from_millis(100);
/// How long records that are acknowledged may be on their way here.
const ON_THEIR_WAY_MAX: Duration = Duration::from_secs(5);
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

/// The client, and the places that it was told to follow, by index.
struct Following {
    consumer: Arc<BaseConsumer<Told>>,
    places: Vec<usize>,
}

fn held(following: &Mutex<Following>) -> MutexGuard<'_, Following> {
    following.lock().unwrap_or_else(PoisonError::into_inner)
}

/// The follower of all partitions.
pub(super) struct Tail {
    shared: Arc<Shared>,
    asker: Arc<Asker>,
    /// One for each of the shared places.
    slots: Arc<Vec<Slot>>,
    /// Held while the client is told what to follow.
    following: Arc<Mutex<Following>>,
    thread: Mutex<Option<JoinHandle<()>>>,
}

impl Tail {
    pub(super) fn start(shared: &Arc<Shared>, asker: &Arc<Asker>) -> Result<Self, Error> {
        let slot = || Slot { ring: Mutex::default(), seen: watch::Sender::new(0), followed: OnceCell::new() };
        let slots: Arc<Vec<Slot>> = Arc::new(shared.places.iter().map(|_| slot()).collect());
        let following = Arc::new(Mutex::new(Following { consumer: Arc::new(shared.consumer()?), places: Vec::new() }));
        let taking = {
            let (shared, slots, following) = (Arc::clone(shared), Arc::clone(&slots), Arc::clone(&following));
            move || follow(&shared, &slots, &following)
        };
        let thread = std::thread::Builder::new().name("kafka-tail".to_owned()).spawn(taking);
        let thread =
            thread.map_err(|error| Error::Unavailable { what: "a thread cannot be started".to_owned(), source: Some(Box::new(error)) })?;
        Ok(Self { shared: Arc::clone(shared), asker: Arc::clone(asker), slots, following, thread: Mutex::new(Some(thread)) })
    }

    /// Follows a partition from its end on, unless it is followed already.
    pub(super) async fn follow(&self, index: usize) -> Result<(), Error> {
        let (Some(slot), Some(place)) = (self.slots.get(index), self.shared.places.get(index)) else { return Ok(()) };
        let begin = async || {
            let end = self.asker.end(index).await?;
            place.raise_end(end);
            {
                let mut ring = slot.ring();
                (ring.first, ring.next) = (end, end);
            }
            slot.seen.send_replace(end);
            let wrong =
                |error| failed(&self.shared.options, &format!("{}/{} cannot be followed", place.name, place.partition), Some(error));
            let mut following = held(&self.following);
            list(&place.name, place.partition_i32(), end).and_then(|list| following.consumer.incremental_assign(&list)).map_err(wrong)?;
            following.places.push(index);
            Ok(())
        };
        slot.followed.get_or_try_init(begin).await?;
        Ok(())
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

/// One partition from an offset on.
pub(super) fn list(name: &str, partition: i32, from: u64) -> Result<TopicPartitionList, KafkaError> {
    let mut list = TopicPartitionList::with_capacity(1);
    list.add_partition_offset(name, partition, Offset::Offset(i64::try_from(from).unwrap_or(i64::MAX)))?;
    Ok(list)
}

/// Tells the client anew to follow all that it was told to follow, each partition from where it stands; a new client, if this one is lost.
fn follow_anew(shared: &Shared, slots: &[Slot], following: &Mutex<Following>) -> Arc<BaseConsumer<Told>> {
    // Not at once: what the broker does not know now it may not know for a while.
    std::thread::sleep(ANEW_PAUSE);
    let mut following = held(following);
    if following.consumer.context().is_lost() {
        match shared.consumer() {
            Ok(consumer) => following.consumer = Arc::new(consumer),
            Err(error) => tracing::warn!(%error, "following topics"),
        }
    }
    let mut all = TopicPartitionList::new();
    let added =
        following.places.iter().filter_map(|index| shared.places.get(*index).zip(slots.get(*index))).try_for_each(|(place, slot)| {
            let next = Offset::Offset(i64::try_from(slot.ring().next).unwrap_or(i64::MAX));
            all.add_partition_offset(&place.name, place.partition_i32(), next)
        });
    if let Err(error) = added.and_then(|()| following.consumer.assign(&all)) {
        tracing::warn!(%error, "topics cannot be followed anew");
    }
    Arc::clone(&following.consumer)
}

/// The thread: takes records until the log is closed.
fn follow(shared: &Shared, slots: &[Slot], following: &Mutex<Following>) {
    let bytes_max = (shared.options.tail_bytes_max / shared.places.len().max(1)).max(PARTITION_BYTES_MIN);
    let mut consumer = Arc::clone(&held(following).consumer);
    while !*shared.closed.borrow() {
        if consumer.context().is_lost() {
            consumer = follow_anew(shared, slots, following);
        }
        let message = match consumer.poll(POLL) {
            None => continue,
            Some(Err(error)) => {
                tracing::warn!(%error, "following topics");
                // A partition whose offset the broker did not know is no longer followed by the client; from all else it recovers.
                if matches!(error, KafkaError::MessageConsumption(RDKafkaErrorCode::AutoOffsetReset | RDKafkaErrorCode::OffsetOutOfRange)) {
                    consumer = follow_anew(shared, slots, following);
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
