//! The times of the last records: one consumer reads the last record of every partition.

use std::time::Instant;

use rdkafka::Message;
use rdkafka::consumer::Consumer;
use rdkafka::error::KafkaError;
use rdkafka::topic_partition_list::{Offset, TopicPartitionList};
use rdkafka::types::RDKafkaErrorCode;
use schemas::position::LogOffset;

use super::settings::failed;
use super::{ANSWER_MAX, Shared};
use crate::Error;

/// Returns the latest time of the records before these ends, one for each partition, in milliseconds since 1970; 0 if no partition has a record. Blocks.
///
/// # Errors
/// When a broker refuses a record, or does not return all of them within [`ANSWER_MAX`].
pub(super) fn last_at_ms(shared: &Shared, ends: &[LogOffset]) -> Result<i64, Error> {
    let unread = |error| failed(&shared.options, "the last records cannot be read", Some(error));
    let consumer = shared.consumer()?;
    let (mut last, mut missing) = (TopicPartitionList::new(), Vec::new());
    for (state, end) in shared.partitions.iter().zip(ends).filter(|(_, end)| **end > LogOffset(0)) {
        last.add_partition_offset(&state.name, state.partition_i32(), Offset::Offset(end.previous().stored())).map_err(unread)?;
        missing.push((&*state.name, state.partition_i32()));
    }
    consumer.assign(&last).map_err(unread)?;
    let (until, mut last_ms, mut cause) = (Instant::now() + ANSWER_MAX, 0, None);
    while let Some((name, partition)) = missing.first() {
        match consumer.poll(until.saturating_duration_since(Instant::now())) {
            Some(Ok(message)) => {
                missing.retain(|partition| *partition != (message.topic(), message.partition()));
                last_ms = last_ms.max(message.timestamp().to_millis().unwrap_or_default());
            }
            Some(Err(error)) if is_final(&error) || Instant::now() > until => return Err(unread(error)),
            // The client repeats the request.
            Some(Err(error)) => cause = Some(error),
            None => {
                let what =
                    format!("the last records of {} partitions were not returned, among them that of {name}/{partition}", missing.len());
                return Err(failed(&shared.options, &what, cause));
            }
        }
    }
    Ok(last_ms)
}

/// Whether the client stops reading the partition with this error.
fn is_final(error: &KafkaError) -> bool {
    use RDKafkaErrorCode::{AutoOffsetReset, OffsetOutOfRange, TopicAuthorizationFailed};
    matches!(error, KafkaError::MessageConsumption(AutoOffsetReset | OffsetOutOfRange | TopicAuthorizationFailed))
}
