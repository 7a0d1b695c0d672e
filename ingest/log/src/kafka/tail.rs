//! A cache of the newest records. One consumer follows every partition that is read in this process, so that all readers share one fetch
//! and waiting costs the broker nothing.

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

use super::metadata::MetadataClient;
use super::records::{Limits, assignment, stored};
use super::settings::{ConnectionState, failed};
use super::{RECONNECT_PAUSE, Shared};
use crate::{Error, Stored};

/// How soon the thread notices that the log was closed.
const POLL: Duration = Duration::from_millis(100);
/// How long acknowledged records may take to arrive here.
const ARRIVAL_DELAY_MAX: Duration = Duration::from_secs(5);
/// The minimum cache size of one partition, in bytes.
const PARTITION_BYTES_MIN: usize = 1024 * 1024;

/// The newest records of one partition: all from offset `first` up to, but not including, `next`.
#[derive(Default)]
struct Ring {
    first: LogOffset,
    next: LogOffset,
    records: VecDeque<Stored>,
    bytes: usize,
}

impl Ring {
    fn push(&mut self, record: Stored, bytes_max: usize) {
        if record.offset < self.next {
            return;
        }
        if record.offset > self.next {
            // Offsets have no gaps, so the missing records could not be read. A reader that needs them fetches them and gets the error.
            self.records.clear();
            self.bytes = 0;
            self.first = record.offset;
        }
        self.next = record.offset.next();
        self.bytes += size_of(&record);
        self.records.push_back(record);
        while self.bytes > bytes_max
            && let Some(gone) = self.records.pop_front()
        {
            self.bytes -= size_of(&gone);
            self.first = gone.offset.next();
        }
    }
}

fn size_of(stored: &Stored) -> usize {
    stored.record.key.len() + stored.record.value.len() + size_of_val(stored)
}

struct Slot {
    ring: Mutex<Ring>,
    /// The offset after the last record that arrived.
    seen: watch::Sender<LogOffset>,
    followed: OnceCell<()>,
}

impl Slot {
    fn ring(&self) -> MutexGuard<'_, Ring> {
        self.ring.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// The consumer, and the partitions that it follows, by index.
struct Following {
    consumer: Arc<BaseConsumer<ConnectionState>>,
    partitions: Vec<usize>,
}

fn lock(following: &Mutex<Following>) -> MutexGuard<'_, Following> {
    following.lock().unwrap_or_else(PoisonError::into_inner)
}

/// Follows all partitions that are read.
pub(super) struct Tail {
    shared: Arc<Shared>,
    metadata: Arc<MetadataClient>,
    /// One entry per partition of the shared state.
    slots: Arc<Vec<Slot>>,
    /// Locked while the consumer's assignment changes.
    following: Arc<Mutex<Following>>,
    thread: Mutex<Option<JoinHandle<()>>>,
}

impl Tail {
    pub(super) fn start(shared: &Arc<Shared>, metadata: &Arc<MetadataClient>) -> Result<Self, Error> {
        let slot = || Slot { ring: Mutex::default(), seen: watch::Sender::new(LogOffset(0)), followed: OnceCell::new() };
        let slots: Arc<Vec<Slot>> = Arc::new(shared.partitions.iter().map(|_| slot()).collect());
        let following = Arc::new(Mutex::new(Following { consumer: Arc::new(shared.consumer()?), partitions: Vec::new() }));
        let taking = {
            let (shared, slots, following) = (Arc::clone(shared), Arc::clone(&slots), Arc::clone(&following));
            move || follow(&shared, &slots, &following)
        };
        let thread = std::thread::Builder::new().name("kafka-tail".to_owned()).spawn(taking);
        let thread =
            thread.map_err(|error| Error::Unavailable { what: "a thread cannot be started".to_owned(), source: Some(Box::new(error)) })?;
        Ok(Self { shared: Arc::clone(shared), metadata: Arc::clone(metadata), slots, following, thread: Mutex::new(Some(thread)) })
    }

    /// Starts following a partition from its end, unless it is followed already.
    pub(super) async fn follow(&self, index: usize) -> Result<(), Error> {
        let (Some(slot), Some(state)) = (self.slots.get(index), self.shared.partitions.get(index)) else { return Ok(()) };
        let begin = async || {
            let end = self.metadata.end(index).await?;
            state.raise_end(end);
            {
                let mut ring = slot.ring();
                (ring.first, ring.next) = (end, end);
            }
            slot.seen.send_replace(end);
            let wrong =
                |error| failed(&self.shared.options, &format!("{}/{} cannot be followed", state.name, state.partition), Some(error));
            let mut following = lock(&self.following);
            assignment(&state.name, state.partition_i32(), end)
                .and_then(|list| following.consumer.incremental_assign(&list))
                .map_err(wrong)?;
            following.partitions.push(index);
            Ok(())
        };
        slot.followed.get_or_try_init(begin).await?;
        Ok(())
    }

    /// Returns the requested records if they are among the newest. Waits for records that are acknowledged and have not arrived yet.
    /// Returns `None` if the records are older or do not arrive; the caller then fetches them and gets the reason.
    pub(super) async fn read(&self, index: usize, limits: Limits) -> Result<Option<Vec<Stored>>, Error> {
        let Some(slot) = self.slots.get(index) else { return Ok(None) };
        let (mut seen, mut closed) = (slot.seen.subscribe(), self.shared.closed.subscribe());
        let mut late = pin!(tokio::time::sleep(ARRIVAL_DELAY_MAX));
        loop {
            let next = {
                let ring = slot.ring();
                if limits.from < ring.first {
                    return Ok(None);
                }
                let from = ring.records.partition_point(|record| record.offset < limits.from);
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

    /// Stops following.
    pub(super) async fn stop(&self) {
        let thread = self.thread.lock().unwrap_or_else(PoisonError::into_inner).take();
        if let Some(thread) = thread {
            let _ = tokio::task::spawn_blocking(move || thread.join()).await;
        }
    }
}

/// Assigns all followed partitions again, each at its next offset. Replaces the consumer first if it has lost its brokers.
fn restart_following(shared: &Shared, slots: &[Slot], following: &Mutex<Following>) -> Arc<BaseConsumer<ConnectionState>> {
    // Waits first: a broker that does not know a partition now may not know it for a while.
    std::thread::sleep(RECONNECT_PAUSE);
    let mut following = lock(following);
    if following.consumer.context().is_lost() {
        match shared.consumer() {
            Ok(consumer) => following.consumer = Arc::new(consumer),
            Err(error) => tracing::warn!(%error, "following topics failed, will retry"),
        }
    }
    let mut all = TopicPartitionList::new();
    let added = following.partitions.iter().filter_map(|index| shared.partitions.get(*index).zip(slots.get(*index))).try_for_each(
        |(state, slot)| {
            let next = Offset::Offset(slot.ring().next.stored());
            all.add_partition_offset(&state.name, state.partition_i32(), next)
        },
    );
    if let Err(error) = added.and_then(|()| following.consumer.assign(&all)) {
        tracing::warn!(%error, "topics cannot be followed again, will retry");
    }
    Arc::clone(&following.consumer)
}

/// The thread: caches records until the log is closed.
fn follow(shared: &Shared, slots: &[Slot], following: &Mutex<Following>) {
    let bytes_max = (shared.options.tail_bytes_max / shared.partitions.len().max(1)).max(PARTITION_BYTES_MIN);
    let mut consumer = Arc::clone(&lock(following).consumer);
    while !*shared.closed.borrow() {
        if consumer.context().is_lost() {
            consumer = restart_following(shared, slots, following);
        }
        let message = match consumer.poll(POLL) {
            None => continue,
            Some(Err(error)) => {
                tracing::warn!(%error, "following topics failed, will retry");
                // The client stops following a partition when the broker does not know the offset. It recovers from all other errors by
                // itself.
                if matches!(error, KafkaError::MessageConsumption(RDKafkaErrorCode::AutoOffsetReset | RDKafkaErrorCode::OffsetOutOfRange)) {
                    consumer = restart_following(shared, slots, following);
                }
                continue;
            }
            Some(Ok(message)) => message,
        };
        let is_of = |state: &super::PartitionState| *state.name == *message.topic() && state.partition_i32() == message.partition();
        let Some(index) = shared.partitions.iter().position(is_of) else { continue };
        let (Some(state), Some(slot)) = (shared.partitions.get(index), slots.get(index)) else { continue };
        let record = match stored(&message) {
            Ok(record) => record,
            Err(error) => {
                tracing::error!(topic = message.topic(), partition = message.partition(), %error, "a record of the broker was not read");
                continue;
            }
        };
        let next = record.offset.next();
        slot.ring().push(record, bytes_max);
        state.raise_end(next);
        slot.seen.send_replace(next);
    }
}
