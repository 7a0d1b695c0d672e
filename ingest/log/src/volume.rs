//! How many bytes a topic has and how fast it grows, estimated from samples of its records.
//!
//! Promise: the number of reads grows with the logarithm of the number of records. The size of a partition with at most 256 records
//! of at most 8 KiB is exact.

use schemas::clock::DAY_MS;
use schemas::position::LogOffset;
use schemas::topics::Topic;

use crate::log::{Error, EventLog, Record};

/// How many places of a partition are sampled.
const PLACES: u64 = 8;
/// The most records and bytes that are read at a place.
const RECORDS: usize = 32;
const BYTES_MAX: usize = 256 * 1024;

/// The size of a topic. Bytes are those of keys, values and headers as they were appended; what they take on a disk is less, because logs compress.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Volume {
    /// The bytes of all records.
    pub bytes: u64,
    /// The bytes of the records of the last 24 hours.
    pub day_bytes: u64,
    /// How many records were read for the estimate.
    pub sampled: u64,
}

/// Estimates the size of a topic at a time in milliseconds since 1970.
///
/// # Errors
/// When records cannot be read.
pub async fn volume(log: &dyn EventLog, topic: &'static Topic, now_ms: i64) -> Result<Volume, Error> {
    let mut sum = Volume::default();
    for partition in 0..topic.partitions {
        let end = log.end(topic, partition).await?;
        let yesterday = first_after(log, topic, partition, end, now_ms.saturating_sub(DAY_MS)).await?;
        let before = sample(log, topic, partition, 0..yesterday.0).await?;
        let since = sample(log, topic, partition, yesterday.0..end.0).await?;
        sum.bytes = sum.bytes.saturating_add(before.bytes()).saturating_add(since.bytes());
        sum.day_bytes = sum.day_bytes.saturating_add(since.bytes());
        sum.sampled += before.records + since.records;
    }
    Ok(sum)
}

/// What the records of a range have together, by those that were read.
#[derive(Default)]
struct Sample {
    /// The number of records in the range.
    count: u64,
    records: u64,
    record_bytes: u64,
}

impl Sample {
    fn bytes(&self) -> u64 {
        // At most 2^64, since a log that holds more has no disk.
        let bytes = u128::from(self.count) * u128::from(self.record_bytes) / u128::from(self.records.max(1));
        u64::try_from(bytes).unwrap_or(u64::MAX)
    }
}

async fn sample(log: &dyn EventLog, topic: &'static Topic, partition: u32, range: std::ops::Range<u64>) -> Result<Sample, Error> {
    let count = range.end - range.start;
    let mut sample = Sample { count, ..Sample::default() };
    let mut next = range.start;
    for place in 0..PLACES {
        // Places are evenly apart; in a short range each begins where the one before ended.
        let from = next.max(range.start + count / PLACES * place);
        if from >= range.end {
            break;
        }
        let left = usize::try_from(range.end - from).unwrap_or(usize::MAX);
        for stored in log.read(topic, partition, LogOffset(from), RECORDS.min(left), BYTES_MAX).await? {
            sample.records += 1;
            sample.record_bytes += bytes_of(&stored.record);
            next = stored.offset.0 + 1;
        }
    }
    Ok(sample)
}

/// The bytes of a record as it was appended.
fn bytes_of(record: &Record) -> u64 {
    let headers: usize = record.headers.iter().map(|(name, value)| name.len() + value.len()).sum();
    (record.key.len() + record.value.len() + headers) as u64
}

/// The offset of the first record after a time. Recorded times do not go back within a partition.
async fn first_after(log: &dyn EventLog, topic: &'static Topic, partition: u32, end: LogOffset, at_ms: i64) -> Result<LogOffset, Error> {
    let (mut low, mut high) = (0, end.0);
    while low < high {
        let middle = low + (high - low) / 2;
        let stored = log.read(topic, partition, LogOffset(middle), 1, 1).await?;
        if stored.first().is_some_and(|stored| stored.record.at_ms <= at_ms) { low = middle + 1 } else { high = middle }
    }
    Ok(LogOffset(low))
}
