//! Older records: a few consumers, each at one place at a time, for readers that are behind.

use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

use bytes::Bytes;
use rdkafka::Message;
use rdkafka::consumer::{BaseConsumer, Consumer};
use rdkafka::error::KafkaError;
use rdkafka::message::Headers as _;
use rdkafka::types::RDKafkaErrorCode;
use schemas::position::LogOffset;
use tokio::sync::Semaphore;

use super::settings::{Told, failed};
use super::tail::list;
use super::{ANEW_PAUSE, ANSWER_MAX, Place, Shared};
use crate::{Error, Headers, Record, Stored};

/// How many may read older records at once; others wait.
const FETCHERS_MAX: usize = 6;
/// How long one look for a record takes at most.
const POLL: Duration = Duration::from_millis(100);

/// What a read asks for.
#[derive(Clone, Copy, Debug)]
pub(super) struct Limits {
    /// The first offset.
    pub(super) from: u64,
    /// Records before this one are there.
    pub(super) end: u64,
    pub(super) records_max: usize,
    /// Of keys and values.
    pub(super) bytes_max: usize,
}

impl Limits {
    /// Takes records up to the limits, and says whether one was reached.
    pub(super) fn take<'a>(&self, records: impl Iterator<Item = &'a Stored>) -> (Vec<Stored>, bool) {
        let (mut out, mut bytes) = (Vec::new(), 0);
        for stored in records {
            bytes += stored.record.key.len() + stored.record.value.len();
            out.push(stored.clone());
            if self.is_reached(out.len(), bytes) {
                return (out, true);
            }
        }
        (out, false)
    }

    fn is_reached(&self, records: usize, bytes: usize) -> bool {
        records >= self.records_max || bytes >= self.bytes_max
    }
}

/// A consumer and where it stands.
struct Fetcher {
    consumer: BaseConsumer<Told>,
    /// The place, by its index, and the offset that comes next.
    at: Option<(usize, u64)>,
}

/// The readers of older records.
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
        // All of it on the thread: a reader that goes away leaves a read that still takes room.
        let fetched = move || {
            let records = fetcher.read(&shared, index, limits);
            held(&idle).push(fetcher);
            drop(room);
            records
        };
        tokio::task::spawn_blocking(fetched).await.map_err(|_| failed(&self.shared.options, "a read was interrupted", None))?
    }

    /// The consumer that stands there, or the one used longest ago, or a new one.
    fn take(&self, index: usize, from: u64) -> Result<Fetcher, Error> {
        let mut idle = held(&self.idle);
        let there = idle.iter().position(|fetcher| fetcher.at == Some((index, from)));
        let oldest = || (idle.len() >= FETCHERS_MAX || idle.first().is_some_and(|fetcher| fetcher.at.is_none())).then_some(0);
        if let Some(found) = there.or_else(oldest).filter(|found| *found < idle.len()) {
            return Ok(idle.remove(found));
        }
        drop(idle);
        Ok(Fetcher { consumer: self.shared.consumer()?, at: None })
    }
}

fn held(idle: &Mutex<Vec<Fetcher>>) -> MutexGuard<'_, Vec<Fetcher>> {
    idle.lock().unwrap_or_else(PoisonError::into_inner)
}

impl Fetcher {
    fn read(&mut self, shared: &Shared, index: usize, limits: Limits) -> Result<Vec<Stored>, Error> {
        let Some(place) = shared.places.get(index) else { return Ok(Vec::new()) };
        let result = self.read_at(shared, place, index, limits);
        // What comes next is followed elsewhere; and after an error the position is not sure.
        if result.is_err() || self.at.is_some_and(|(_, next)| next >= limits.end) {
            self.at = None;
            let _ = self.consumer.unassign();
        }
        result
    }

    fn read_at(&mut self, shared: &Shared, place: &Place, index: usize, limits: Limits) -> Result<Vec<Stored>, Error> {
        let Place { topic, name, partition, .. } = place;
        let what = |reason: &str| format!("{name}/{partition} cannot be read from offset {}: {reason}", limits.from);
        let (mut out, mut bytes, mut next, mut last) = (Vec::new(), 0, limits.from, Instant::now());
        let mut is_there = self.at == Some((index, next));
        while next < limits.end {
            if *shared.closed.borrow() {
                return Err(shared.closed());
            }
            if self.consumer.context().is_lost() {
                std::thread::sleep(ANEW_PAUSE);
                (self.consumer, is_there) = (shared.consumer()?, false);
            }
            if !is_there {
                let assigned = list(name, place.partition_i32(), next).and_then(|list| self.consumer.assign(&list));
                assigned.map_err(|error| failed(&shared.options, &what("the client refuses"), Some(error)))?;
                is_there = true;
            }
            match self.consumer.poll(POLL) {
                Some(Ok(message)) => {
                    let is_asked = *message.topic() == **name
                        && message.partition() == place.partition_i32()
                        && u64::try_from(message.offset()).is_ok_and(|offset| offset >= next);
                    if !is_asked {
                        continue;
                    }
                    let stored = stored(&message);
                    if stored.offset.0 > next {
                        // Offsets are dense: the client passed over what it could not read.
                        let (topic, partition, offset) = (topic.name.to_owned(), *partition, next);
                        let reason = format!("records up to {} could not be read", stored.offset.0);
                        return Err(Error::Damaged { topic, partition, offset, reason });
                    }
                    next = stored.offset.next().0;
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
                    return Err(failed(&shared.options, &what("no record came"), Some(error)));
                }
                None if last.elapsed() > ANSWER_MAX => return Err(failed(&shared.options, &what("no record came"), None)),
                // Brokers are found again.
                Some(Err(_)) | None => {}
            }
        }
        Ok(out)
    }
}

/// A message as a record of ours.
pub(super) fn stored<M: Message>(message: &M) -> Stored {
    let copied = |bytes: Option<&[u8]>| bytes.map(Bytes::copy_from_slice).unwrap_or_default();
    let headers: Vec<(&str, &[u8])> = message
        .headers()
        .into_iter()
        .flat_map(|headers| headers.iter())
        .map(|header| (header.key, header.value.unwrap_or_default()))
        .collect();
    let record = Record {
        key: copied(message.key()),
        value: copied(message.payload()),
        headers: Headers::new(&headers),
        at_ms: message.timestamp().to_millis().unwrap_or_default(),
    };
    Stored { offset: LogOffset(u64::try_from(message.offset()).unwrap_or_default()), record }
}
