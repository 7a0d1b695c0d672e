//! A segment: consecutive records of one partition in an Avro object container, as `export --format records` writes it.

use std::io::Cursor;
use std::path::Path;

use proofs::hash::Hash32;
use schemas::position::LogOffset;
use schemas::topics::Topic;

use super::Error;
use super::manifest::Segment;
use crate::transfer::Ends;
use crate::transfer::archive::{Archive, ArchiveWriter};
use crate::{EventLog, Record, Stored};

/// The size at which a segment is full by default, in bytes of keys and values before compression.
pub const SEGMENT_BYTES: usize = 16 << 20;
/// The most records and bytes that one read returns.
const BATCH_RECORDS: usize = 2_000;
const BATCH_BYTES: usize = 4 << 20;

/// The hash that identifies a record.
pub(super) fn hash_of(record: &Record) -> Hash32 {
    Hash32::of_parts(&[&record.key, &record.value, record.headers.bytes(), &record.at_ms.to_be_bytes()])
}

/// Reads records from `from` until the segment is full or `end` is reached. Returns the segment with the content of its file.
pub(super) async fn encode(
    log: &dyn EventLog,
    topic: &'static Topic,
    partition: u32,
    from: LogOffset,
    end: LogOffset,
    segment_bytes: usize,
    mut progress: impl FnMut(u64),
) -> Result<(Segment, Vec<u8>), Error> {
    let (mut batches, mut size, mut to): (Vec<Vec<Stored>>, usize, LogOffset) = (Vec::new(), 0, from);
    while to < end && size < segment_bytes {
        let records_max = BATCH_RECORDS.min(usize::try_from(end.since(to)).unwrap_or(usize::MAX));
        let batch = log.read(topic, partition, to, records_max, BATCH_BYTES.min(segment_bytes - size)).await?;
        let Some(last) = batch.last() else {
            let what = format!("{}/{partition} has no record at offset {to}, below its end {end}", topic.name);
            return Err(crate::Error::Unavailable { what, source: None }.into());
        };
        to = last.offset.next();
        size += batch.iter().map(|stored| stored.record.key.len() + stored.record.value.len()).sum::<usize>();
        progress(batch.len() as u64);
        batches.push(batch);
        tokio::task::yield_now().await;
    }
    let last_record = batches.last().and_then(|batch| batch.last()).map_or(Hash32::ZERO, |stored| hash_of(&stored.record));
    let content = super::blocking(move || {
        let (starts, ends) = (Ends::only(topic, partition, from), Ends::only(topic, partition, to));
        let mut archive = ArchiveWriter::new(&starts, &ends, Vec::new()).map_err(Error::Encode)?;
        for stored in batches.iter().flatten() {
            archive.push(topic.name, partition, stored).map_err(Error::Encode)?;
        }
        archive.finish().map_err(Error::Encode)
    });
    let content = content.await?;
    let segment = Segment {
        topic: topic.name.to_owned(),
        partition,
        from,
        to,
        bytes: content.len() as u64,
        sha256: Hash32::of(&content).to_string(),
        last_record: last_record.to_string(),
        sealed: size >= segment_bytes,
    };
    Ok((segment, content))
}

/// Returns the records of a segment's file. Blocks.
///
/// # Errors
/// [`Error::Damaged`] when the file does not hold the records from `from` below `to` of the partition.
pub(super) fn decode(
    path: &Path,
    content: Vec<u8>,
    topic: &'static Topic,
    partition: u32,
    from: LogOffset,
    to: LogOffset,
) -> Result<Vec<Record>, Error> {
    let damaged = |error: crate::transfer::Error| Error::damaged(path, schemas::reason::reason(&error));
    let mut archive = Archive::open_part(&path.display().to_string(), Box::new(Cursor::new(content)), &[topic.name]).map_err(damaged)?;
    let mut records = Vec::new();
    while let Some(chunk) = archive.next_chunk().map_err(damaged)? {
        if chunk.partition != partition || chunk.first != from.plus(records.len() as u64) {
            return Err(Error::damaged(path, format!("it has records from offset {} of partition {}", chunk.first, chunk.partition)));
        }
        records.extend(chunk.records);
    }
    if records.len() as u64 == to.since(from) {
        Ok(records)
    } else {
        Err(Error::damaged(path, format!("it has {} records and should have {}", records.len(), to.since(from))))
    }
}
