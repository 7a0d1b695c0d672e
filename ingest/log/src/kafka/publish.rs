//! Appending: an idempotent producer, replaced when the broker has fenced it off, and when it has lost its brokers.

use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use rdkafka::error::KafkaError;
use rdkafka::message::{Header, OwnedHeaders};
use rdkafka::producer::{DeliveryFuture, FutureProducer, FutureRecord, Producer};
use rdkafka::types::RDKafkaErrorCode;
use rdkafka::util::Timeout;
use schemas::position::LogOffset;
use tokio::sync::Semaphore;

use super::settings::{Told, failed};
use super::{ANSWER_MAX, Shared};
use crate::{Append, Error, Record};

/// What a record needs in the queue beside its bytes.
const RECORD_OVERHEAD_BYTES: usize = 256;

/// The appending half.
pub(super) struct Publisher {
    shared: Arc<Shared>,
    producer: Mutex<(FutureProducer<Told>, Told)>,
    /// Bytes that may still be put on their way.
    room: Arc<Semaphore>,
}

impl Publisher {
    pub(super) fn new(shared: &Arc<Shared>) -> Result<Self, Error> {
        let room = Arc::new(Semaphore::new(shared.options.queue_bytes_max.min(u32::MAX as usize)));
        Ok(Self { producer: Mutex::new(producer(shared)?), shared: Arc::clone(shared), room })
    }

    pub(super) async fn append(&self, batch: Vec<Append>) -> Result<Vec<LogOffset>, Error> {
        let options = &self.shared.options;
        let mut bytes = 0;
        let mut places = Vec::with_capacity(batch.len());
        for append in &batch {
            places.push(self.shared.place_index(append.topic, append.partition)?);
            let size = size_of(&append.record);
            if size > options.record_bytes_max {
                return Err(Error::TooLarge { bytes: size, bytes_max: options.record_bytes_max });
            }
            bytes += size + RECORD_OVERHEAD_BYTES;
        }
        if *self.shared.closed.borrow() {
            return Err(self.shared.closed());
        }
        // A batch larger than the whole room takes all of it.
        let permits = u32::try_from(bytes.min(options.queue_bytes_max)).unwrap_or(u32::MAX);
        let room = Arc::clone(&self.room).acquire_many_owned(permits).await.map_err(|_| self.shared.closed())?;
        self.replace_if_over(false)?;
        let (deliveries, refused) = match self.send(&batch, &places) {
            Ok(deliveries) => (deliveries, None),
            Err((deliveries, error)) => (deliveries, Some(error)),
        };
        let shared = Arc::clone(&self.shared);
        // In a task of its own: what an appender gives up waiting for is still on its way, and takes room.
        let acknowledged = tokio::spawn(async move {
            let mut acknowledged = Vec::with_capacity(deliveries.len());
            let mut lost: Option<(usize, KafkaError)> = refused.map(|error| (deliveries.len(), error));
            for (turn, (delivery, place)) in deliveries.into_iter().zip(&places).enumerate() {
                match delivery.await {
                    Ok(Ok(delivery)) => {
                        let offset = LogOffset(u64::try_from(delivery.offset).unwrap_or(0));
                        if let Some(place) = shared.places.get(*place) {
                            place.raise_end(offset.next().0);
                        }
                        acknowledged.push(offset);
                    }
                    Ok(Err((error, _))) => lost = Some(lost.unwrap_or((turn, error))),
                    Err(_) => lost = Some(lost.unwrap_or((turn, KafkaError::Canceled))),
                }
            }
            drop(room);
            (acknowledged, lost)
        });
        let (offsets, lost) = acknowledged.await.map_err(|_| failed(options, "an append was interrupted", None))?;
        let Some((turn, error)) = lost else { return Ok(offsets) };
        self.replace_if_over(true)?;
        Err(self.unacknowledged(&batch, offsets.len(), turn, error))
    }

    /// What is wrong when a batch was not acknowledged whole. `turn` is the place in it of the record that failed with `error`.
    fn unacknowledged(&self, batch: &[Append], acknowledged: usize, turn: usize, error: KafkaError) -> Error {
        let mut what = format!("{} of {} records were not acknowledged", batch.len() - acknowledged, batch.len());
        if matches!(error.rdkafka_error_code(), Some(RDKafkaErrorCode::MessageSizeTooLarge | RDKafkaErrorCode::InvalidMessageSize))
            && let Some(append) = batch.get(turn)
        {
            let (name, bytes_max) = (self.shared.options.name_of(append.topic), self.shared.options.batch_bytes_max());
            what = format!(
                "{what}: topic {name} refuses a batch with a record of {} bytes; its max.message.bytes must be {bytes_max} or more",
                size_of(&append.record)
            );
        }
        failed(&self.shared.options, &what, Some(error))
    }

    /// Puts a batch on its way, in order; on a refusal, what was taken so far comes with it.
    fn send(&self, batch: &[Append], places: &[usize]) -> Result<Vec<DeliveryFuture>, (Vec<DeliveryFuture>, KafkaError)> {
        // One batch at a time: its records stay together in their partitions.
        let (producer, _) = &*self.held();
        let mut deliveries = Vec::with_capacity(batch.len());
        for (append, place) in batch.iter().zip(places) {
            let Some(place) = self.shared.places.get(*place) else { continue };
            let Record { key, value, headers, at_ms } = &append.record;
            let mut owned = OwnedHeaders::new_with_capacity(headers.count());
            for (name, value) in headers.iter() {
                owned = owned.insert(Header { key: name, value: Some(value) });
            }
            let record: FutureRecord<'_, [u8], [u8]> = FutureRecord::to(&place.name)
                .partition(place.partition_i32())
                .key(&key[..])
                .payload(&value[..])
                .timestamp(*at_ms)
                .headers(owned);
            match producer.send_result(record) {
                Ok(delivery) => deliveries.push(delivery),
                Err((error, _)) => return Err((deliveries, error)),
            }
        }
        Ok(deliveries)
    }

    fn held(&self) -> MutexGuard<'_, (FutureProducer<Told>, Told)> {
        self.producer.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// A fatal error (fenced off, out of sequence) ends a producer for good: the next append begins with a new one. So does the loss of all
    /// brokers, but what is on its way may still find them: until an append failed it is waited for.
    fn replace_if_over(&self, has_failed: bool) -> Result<(), Error> {
        let mut held = self.held();
        let (current, told) = &*held;
        let fatal = current.client().fatal_error();
        if fatal.is_some() || (told.is_lost() && (has_failed || current.in_flight_count() == 0)) {
            tracing::warn!(?fatal, "the producer is replaced");
            *held = producer(&self.shared)?;
        }
        Ok(())
    }

    /// Waits for what is on its way.
    pub(super) async fn close(&self) -> Result<(), Error> {
        let producer = self.held().0.clone();
        let flushed = tokio::task::spawn_blocking(move || producer.flush(Timeout::After(ANSWER_MAX))).await;
        match flushed {
            Ok(Ok(())) => Ok(()),
            Ok(Err(error)) => Err(failed(&self.shared.options, "not everything was acknowledged before closing", Some(error))),
            Err(_) => Err(failed(&self.shared.options, "closing was interrupted", None)),
        }
    }
}

fn producer(shared: &Shared) -> Result<(FutureProducer<Told>, Told), Error> {
    let told = Told::default();
    let made = shared.options.producer().create_with_context(told.clone());
    Ok((made.map_err(|error| failed(&shared.options, "the producer cannot be made", Some(error)))?, told))
}

fn size_of(record: &Record) -> usize {
    record.key.len() + record.value.len() + record.headers.iter().map(|(name, value)| name.len() + value.len()).sum::<usize>()
}
