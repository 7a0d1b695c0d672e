//! Reads older records with a small pool of consumers, for readers that are too far behind for the cache of new records.

use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

use rdkafka::Message;
use rdkafka::consumer::{BaseConsumer, Consumer};
use rdkafka::error::KafkaError;
use rdkafka::types::RDKafkaErrorCode;
use schemas::position::LogOffset;
use tokio::sync::Semaphore;

use super::records::{Limits, assignment, stored};
use super::settings::{ConnectionState, failed};
use super::{ANSWER_MAX, PartitionState, READY_MAX, RECONNECT_PAUSE, Shared};
use crate::{Error, Stored};

/// How many reads of older records run at once; others wait.
const FETCHERS_MAX: usize = 6;
/// How long one poll for a record takes at most.
const POLL: Duration = Duration::from_millis(100);

/// A consumer and its position.
struct Fetcher {
    consumer: BaseConsumer<ConnectionState>,
    /// The partition (by index) and the next offset.
    at: Option<(usize, LogOffset)>,
}

/// A pool of consumers that read older records.
pub(super) struct Fetchers {
    shared: Arc<Shared>,
    idle: Arc<Mutex<Vec<Fetcher>>>,
    room: Arc<Semaphore>,
}

impl Fetchers {
    pub(super) fn new(shared: &Arc<Shared>) -> Self {
        Self { shared: Arc::clone(shared), idle: Arc::default(), room: Arc::new(Semaphore::new(FETCHERS_MAX)) }
    }

    pub(super) async fn read(&self, index: usize, limits: Limits) -> Result<Vec<Stored>, Error> {
        let room = Arc::clone(&self.room).acquire_owned().await.map_err(|_| self.shared.closed())?;
        let mut fetcher = self.take(index, limits.from)?;
        let (shared, idle) = (Arc::clone(&self.shared), Arc::clone(&self.idle));
        // Runs completely on the blocking thread, so that a cancelled read still counts towards the limit.
        let fetched = move || {
            let records = fetcher.read(&shared, index, limits);
            lock(&idle).push(fetcher);
            drop(room);
            records
        };
        tokio::task::spawn_blocking(fetched).await.map_err(|_| failed(&self.shared.options, "a read was interrupted", None))?
    }

    /// Takes the consumer at this position, or the least recently used one, or creates one.
    fn take(&self, index: usize, from: LogOffset) -> Result<Fetcher, Error> {
        let mut idle = lock(&self.idle);
        let there = idle.iter().position(|fetcher| fetcher.at == Some((index, from)));
        let oldest = || (idle.len() >= FETCHERS_MAX || idle.first().is_some_and(|fetcher| fetcher.at.is_none())).then_some(0);
        if let Some(found) = there.or_else(oldest).filter(|found| *found < idle.len()) {
            return Ok(idle.remove(found));
        }
        drop(idle);
        Ok(Fetcher { consumer: self.shared.consumer()?, at: None })
    }
}

fn lock(idle: &Mutex<Vec<Fetcher>>) -> MutexGuard<'_, Vec<Fetcher>> {
    idle.lock().unwrap_or_else(PoisonError::into_inner)
}

/// Asks for the leader of a topic, which a client that begins to read it looks for only once a second. If no broker answers, the client finds it later by
/// itself. Blocks.
fn find_leader(consumer: &BaseConsumer<ConnectionState>, topic: &str) {
    let _ = consumer.fetch_metadata(Some(topic), READY_MAX);
}

impl Fetcher {
    fn read(&mut self, shared: &Shared, index: usize, limits: Limits) -> Result<Vec<Stored>, Error> {
        let Some(state) = shared.partitions.get(index) else { return Ok(Vec::new()) };
        let result = self.read_at(shared, state, index, limits);
        // At the end of the partition the cache of new records continues; after an error the position is not reliable.
        if result.is_err() || self.at.is_some_and(|(_, next)| next >= limits.end) {
            self.at = None;
            let _ = self.consumer.unassign();
        }
        result
    }

    fn read_at(&mut self, shared: &Shared, state: &PartitionState, index: usize, limits: Limits) -> Result<Vec<Stored>, Error> {
        let PartitionState { topic, name, partition, .. } = state;
        let what = |reason: &str| format!("{name}/{partition} cannot be read from offset {}: {reason}", limits.from);
        let (mut out, mut bytes, mut next, mut last) = (Vec::new(), 0, limits.from, Instant::now());
        let mut is_there = self.at == Some((index, next));
        while next < limits.end {
            if *shared.closed.borrow() {
                return Err(shared.closed());
            }
            if self.consumer.context().is_lost() {
                std::thread::sleep(RECONNECT_PAUSE);
                (self.consumer, is_there) = (shared.consumer()?, false);
            }
            if !is_there {
                find_leader(&self.consumer, name);
                last = Instant::now();
                let assigned = assignment(name, state.partition_i32(), next).and_then(|list| self.consumer.assign(&list));
                assigned.map_err(|error| failed(&shared.options, &what("the client refuses"), Some(error)))?;
                is_there = true;
            }
            match self.consumer.poll(POLL) {
                Some(Ok(message)) => {
                    if *message.topic() != **name || message.partition() != state.partition_i32() {
                        continue;
                    }
                    let stored = stored(&message).map_err(|error| failed(&shared.options, &what(&error.to_string()), None))?;
                    if stored.offset < next {
                        continue;
                    }
                    if stored.offset > next {
                        // Offsets have no gaps, so the client has skipped records that it could not read.
                        let (topic, partition, offset) = (topic.name.to_owned(), *partition, next);
                        let reason = format!("records up to {} could not be read", stored.offset);
                        return Err(Error::Damaged { topic, partition, offset, reason });
                    }
                    next = stored.offset.next();
                    last = Instant::now();
                    bytes += stored.record.key.len() + stored.record.value.len();
                    out.push(stored);
                    self.at = Some((index, next));
                    if limits.is_reached(out.len(), bytes) {
                        break;
                    }
                }
                Some(Err(KafkaError::MessageConsumption(RDKafkaErrorCode::AutoOffsetReset | RDKafkaErrorCode::OffsetOutOfRange))) => {
                    let (topic, partition, offset) = (topic.name.to_owned(), *partition, next);
                    return Err(Error::Damaged { topic, partition, offset, reason: "the broker no longer has these records".to_owned() });
                }
                Some(Err(error)) if last.elapsed() > ANSWER_MAX => {
                    return Err(failed(&shared.options, &what("no record arrived"), Some(error)));
                }
                None if last.elapsed() > ANSWER_MAX => return Err(failed(&shared.options, &what("no record arrived"), None)),
                // The client reconnects by itself.
                Some(Err(_)) | None => {}
            }
        }
        Ok(out)
    }
}
