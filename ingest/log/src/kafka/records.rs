//! What both kinds of readers share: the limits of a read, the assignment of a partition, and the conversion of messages to records.

use bytes::Bytes;
use rdkafka::Message;
use rdkafka::error::KafkaError;
use rdkafka::message::Headers as _;
use rdkafka::topic_partition_list::{Offset, TopicPartitionList};
use schemas::position::{LogOffset, PositionError};

use crate::{Headers, Record, Stored};

/// The limits of a read.
#[derive(Clone, Copy, Debug)]
pub(super) struct Limits {
    /// The offset of the first record.
    pub(super) from: LogOffset,
    /// The end of the partition. All records below it exist.
    pub(super) end: LogOffset,
    pub(super) records_max: usize,
    /// The limit in bytes of keys and values.
    pub(super) bytes_max: usize,
}

impl Limits {
    /// Takes records up to the limits. Also returns whether a limit was reached.
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

    /// Whether a limit is reached with this many records and bytes.
    pub(super) fn is_reached(&self, records: usize, bytes: usize) -> bool {
        records >= self.records_max || bytes >= self.bytes_max
    }
}

/// Builds the assignment of one partition from an offset on.
pub(super) fn assignment(name: &str, partition: i32, from: LogOffset) -> Result<TopicPartitionList, KafkaError> {
    let mut list = TopicPartitionList::with_capacity(1);
    list.add_partition_offset(name, partition, Offset::Offset(from.stored()))?;
    Ok(list)
}

/// Converts a Kafka message to a stored record.
///
/// # Errors
/// When its offset is not one.
pub(super) fn stored<M: Message>(message: &M) -> Result<Stored, PositionError> {
    let offset = LogOffset::try_from(message.offset())?;
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
    Ok(Stored { offset, record })
}
