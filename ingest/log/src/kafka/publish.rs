//! Appends records with an idempotent producer. The producer is replaced when the broker has fenced it or it has lost its brokers.

use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use rdkafka::error::KafkaError;
use rdkafka::message::{Header, OwnedHeaders};
use rdkafka::producer::{DeliveryFuture, FutureProducer, FutureRecord, Producer};
use rdkafka::types::RDKafkaErrorCode;
use rdkafka::util::Timeout;
use schemas::position::LogOffset;
use tokio::sync::Semaphore;

use super::settings::{ConnectionState, failed};
use super::{ANSWER_MAX, Shared};
use crate::{Append, Error, Record};

/// The bytes that a record needs in the queue in addition to its content.
const RECORD_OVERHEAD_BYTES: usize = 256;

/// The producing side of the log.
pub(super) struct Publisher {
    shared: Arc<Shared>,
    producer: Mutex<(FutureProducer<ConnectionState>, ConnectionState)>,
    /// How many bytes may still be queued.
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
        let mut partitions = Vec::with_capacity(batch.len());
        for append in &batch {
            partitions.push(self.shared.partition_index(append.topic, append.partition)?);
            let size = size_of(&append.record);
            if size > options.record_bytes_max {
                return Err(Error::TooLarge { bytes: size, bytes_max: options.record_bytes_max });
            }
            bytes += size + RECORD_OVERHEAD_BYTES;
        }
        if *self.shared.closed.borrow() {
            return Err(self.shared.closed());
        }
        // A batch larger than the whole queue takes all of it.
        let permits = u32::try_from(bytes.min(options.queue_bytes_max)).unwrap_or(u32::MAX);
        let room = Arc::clone(&self.room).acquire_many_owned(permits).await.map_err(|_| self.shared.closed())?;
        self.replace_if_over(false)?;
        let (deliveries, refused) = match self.send(&batch, &partitions) {
            Ok(deliveries) => (deliveries, None),
            Err((deliveries, error)) => (deliveries, Some(error)),
        };
        let shared = Arc::clone(&self.shared);
        // Runs as a separate task: after its caller is cancelled, the batch is still being sent and takes queue space.
        let acknowledged = tokio::spawn(async move {
            let mut acknowledged = Vec::with_capacity(deliveries.len());
            let mut lost: Option<(usize, KafkaError)> = refused.map(|error| (deliveries.len(), error));
            for (index, (delivery, state)) in deliveries.into_iter().zip(&partitions).enumerate() {
                match delivery.await {
                    Ok(Ok(delivery)) => match LogOffset::try_from(delivery.offset) {
                        Ok(offset) => {
                            if let Some(state) = shared.partitions.get(*state) {
                                state.raise_end(offset.next());
                            }
                            acknowledged.push(offset);
                        }
                        // The broker did not say where the record is.
                        Err(_) => lost = Some(lost.unwrap_or((index, KafkaError::MessageProduction(RDKafkaErrorCode::BadMessage)))),
                    },
                    Ok(Err((error, _))) => lost = Some(lost.unwrap_or((index, error))),
                    Err(_) => lost = Some(lost.unwrap_or((index, KafkaError::Canceled))),
                }
            }
            drop(room);
            (acknowledged, lost)
        });
        let (offsets, lost) = acknowledged.await.map_err(|_| failed(options, "an append was interrupted", None))?;
        let Some((index, error)) = lost else { return Ok(offsets) };
        self.replace_if_over(true)?;
        Err(self.unacknowledged(&batch, offsets.len(), index, error))
    }

    /// Builds the error of a batch that was not acknowledged completely. `index` is the index of the record that failed with `error`.
    fn unacknowledged(&self, batch: &[Append], acknowledged: usize, index: usize, error: KafkaError) -> Error {
        let mut what = format!("{} of {} records were not acknowledged", batch.len() - acknowledged, batch.len());
        if matches!(error.rdkafka_error_code(), Some(RDKafkaErrorCode::MessageSizeTooLarge | RDKafkaErrorCode::InvalidMessageSize))
            && let Some(append) = batch.get(index)
        {
            let (name, bytes_max) = (self.shared.options.name_of(append.topic), self.shared.options.batch_bytes_max());
            what = format!(
                "{what}: topic {name} refuses a batch with a record of {} bytes; its max.message.bytes must be {bytes_max} or more",
                size_of(&append.record)
            );
        }
        failed(&self.shared.options, &what, Some(error))
    }

    /// Sends a batch in order. If the client refuses a record, the records sent so far are returned with the error.
    fn send(&self, batch: &[Append], partitions: &[usize]) -> Result<Vec<DeliveryFuture>, (Vec<DeliveryFuture>, KafkaError)> {
        // Batches are sent one at a time, so that the records of a batch stay together in their partitions.
        let (producer, _) = &*self.lock();
        let mut deliveries = Vec::with_capacity(batch.len());
        for (append, state) in batch.iter().zip(partitions) {
            let Some(state) = self.shared.partitions.get(*state) else { continue };
            let Record { key, value, headers, at_ms } = &append.record;
            let mut owned = OwnedHeaders::new_with_capacity(headers.count());
            for (name, value) in headers.iter() {
                owned = owned.insert(Header { key: name, value: Some(value) });
            }
            let record: FutureRecord<'_, [u8], [u8]> = FutureRecord::to(&state.name)
                .partition(state.partition_i32())
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

    fn lock(&self) -> MutexGuard<'_, (FutureProducer<ConnectionState>, ConnectionState)> {
        self.producer.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Replaces a producer that cannot be used any more. A fatal error (fenced, out of sequence) ends a producer. So does the loss of all
    /// brokers, but records in flight may still reach them, so the producer is replaced only after an append failed or when nothing is in
    /// flight.
    fn replace_if_over(&self, has_failed: bool) -> Result<(), Error> {
        let mut held = self.lock();
        let (current, connection) = &*held;
        let fatal = current.client().fatal_error();
        if fatal.is_some() || (connection.is_lost() && (has_failed || current.in_flight_count() == 0)) {
            tracing::warn!(?fatal, "replacing the producer");
            *held = producer(&self.shared)?;
        }
        Ok(())
    }

    /// Waits until all sent records are acknowledged.
    pub(super) async fn close(&self) -> Result<(), Error> {
        let producer = self.lock().0.clone();
        let flushed = tokio::task::spawn_blocking(move || producer.flush(Timeout::After(ANSWER_MAX))).await;
        match flushed {
            Ok(Ok(())) => Ok(()),
            Ok(Err(error)) => Err(failed(&self.shared.options, "not everything was acknowledged before closing", Some(error))),
            Err(_) => Err(failed(&self.shared.options, "closing was interrupted", None)),
        }
    }
}

fn producer(shared: &Shared) -> Result<(FutureProducer<ConnectionState>, ConnectionState), Error> {
    let connection = ConnectionState::default();
    let made = shared.options.producer().create_with_context(connection.clone());
    Ok((made.map_err(|error| failed(&shared.options, "the producer cannot be made", Some(error)))?, connection))
}

/// The bytes of a record that count towards the log's limit. A batch has room for the headers that describe the value.
fn size_of(record: &Record) -> usize {
    record.key.len() + record.value.len() + record.headers.size()
}
