//! The archive file: an Avro object container of records, compressed with snappy because that codec checks each block.

use std::io::{BufReader, Read, Write};
use std::sync::LazyLock;

use bytes::Bytes;
use schemas::names;
use schemas::position::LogOffset;
use schemas::topics::{self, Topic};
use serde::{Deserialize, Deserializer, Serialize, Serializer};
use serde_avro_fast::Schema;
use serde_avro_fast::de::read::ReaderRead;
use serde_avro_fast::object_container_file_encoding::{Compression, Reader, Writer, WriterBuilder};
use serde_avro_fast::ser::{SerError, SerializerConfig};

use super::{BATCH_BYTES, BATCH_RECORDS, Ends, Error};
use crate::{Headers, Record, Stored};

/// The schema of a record. `None` would be a bug in this crate; a test writes with the schema.
static SCHEMA: LazyLock<Option<Schema>> = LazyLock::new(|| include_str!("record.avsc").parse().ok());
/// The size of a block before compression, in bytes.
const BLOCK_BYTES: u32 = 256 * 1024;

/// The metadata in the container's header, in addition to the schema.
#[derive(Serialize, Deserialize)]
struct Metadata {
    /// The end offsets ([`Ends`]) as JSON.
    #[serde(rename = "highwater.ends")]
    ends: String,
    /// The first offsets ([`Ends`]) as JSON; empty if every partition begins at 0.
    #[serde(rename = "highwater.starts", default, skip_serializing_if = "String::is_empty")]
    starts: String,
}

/// Serializes bytes as the Avro type `bytes`.
struct Raw<T>(T);

impl Serialize for Raw<&[u8]> {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.serialize_bytes(self.0)
    }
}

impl<'de> Deserialize<'de> for Raw<Vec<u8>> {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        struct Visitor;
        impl serde::de::Visitor<'_> for Visitor {
            type Value = Raw<Vec<u8>>;
            fn expecting(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
                f.write_str("bytes")
            }
            fn visit_bytes<E: serde::de::Error>(self, bytes: &[u8]) -> Result<Self::Value, E> {
                Ok(Raw(bytes.to_vec()))
            }
        }
        deserializer.deserialize_bytes(Visitor)
    }
}

#[derive(Serialize, Deserialize)]
#[serde(bound(serialize = "Raw<B>: Serialize, S: Serialize", deserialize = "Raw<B>: Deserialize<'de>, S: Deserialize<'de>"))]
struct Header<S, B> {
    name: S,
    value: Raw<B>,
}

#[derive(Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
#[serde(bound(serialize = "Raw<B>: Serialize, S: Serialize", deserialize = "Raw<B>: Deserialize<'de>, S: Deserialize<'de>"))]
struct Row<S, B> {
    topic: S,
    partition: i32,
    offset: i64,
    key: Raw<B>,
    headers: Vec<Header<S, B>>,
    value: Raw<B>,
    at_ms: i64,
}

/// Writes an archive file.
pub(crate) struct ArchiveWriter<W: Write> {
    writer: Writer<'static, 'static, W>,
}

impl<W: Write> ArchiveWriter<W> {
    /// Starts an archive of all records from `starts` (0 for partitions that it does not name) below `ends`.
    pub(crate) fn new(starts: &Ends, ends: &Ends, out: W) -> Result<Self, Error> {
        let wrong = |reason: String| Error::Write(<SerError as serde::ser::Error>::custom(reason));
        let schema = SCHEMA.as_ref().ok_or_else(|| wrong("its schema does not parse".to_owned()))?;
        let json = |ends: &Ends| serde_json::to_string(ends).map_err(|error| wrong(error.to_string()));
        let starts = if starts.0.is_empty() { String::new() } else { json(starts)? };
        let metadata = Metadata { ends: json(ends)?, starts };
        let builder = WriterBuilder::with_owned_config(SerializerConfig::new(schema));
        let builder = builder.compression(Compression::Snappy).approx_block_size(BLOCK_BYTES);
        Ok(Self { writer: builder.build_with_user_metadata(out, metadata).map_err(Error::Write)? })
    }

    /// Writes one record.
    pub(crate) fn push(&mut self, topic: &str, partition: u32, stored: &Stored) -> Result<(), Error> {
        let Record { key, value, headers, at_ms } = &stored.record;
        let row = Row {
            topic,
            partition: i32::try_from(partition).unwrap_or(i32::MAX),
            offset: stored.offset.stored(),
            key: Raw(&**key),
            headers: headers.iter().map(|(name, value)| Header { name, value: Raw(value) }).collect(),
            value: Raw(&**value),
            at_ms: *at_ms,
        };
        self.writer.serialize(row).map_err(Error::Write)
    }

    /// Flushes the last block, and returns what was written to.
    pub(crate) fn finish(self) -> Result<W, Error> {
        self.writer.into_inner().map_err(Error::Write)
    }
}

/// Consecutive records of one partition.
pub(crate) struct Chunk {
    pub(crate) topic: &'static Topic,
    pub(crate) partition: u32,
    /// The offset of the first record.
    pub(crate) first: LogOffset,
    pub(crate) records: Vec<Record>,
}

/// An opened archive file whose header was read and fits the topics of this version.
pub struct Archive {
    file: String,
    ends: Ends,
    reader: Reader<ReaderRead<BufReader<Box<dyn Read + Send>>>>,
    /// The record that ended the last chunk, which begins the next one.
    ahead: Option<Row<String, Vec<u8>>>,
    is_read: bool,
    /// The expected next offset of each partition.
    next: Vec<(&'static Topic, u32, LogOffset)>,
}

impl Archive {
    /// Reads the header of an archive file; `file` is its name in errors. Blocks.
    ///
    /// # Errors
    /// When it is not an archive file of whole partitions, or names a topic that this version does not have.
    pub fn open(file: &str, from: Box<dyn Read + Send>) -> Result<Self, Error> {
        let known: Vec<&str> = super::topics().map(|topic| topic.name).collect();
        let archive = Self::open_part(file, from, &known)?;
        if archive.next.iter().any(|(_, _, start)| start.0 > 0) {
            let reason = "it is a segment of a backup: use `highwater restore` with the directory of the backup".to_owned();
            return Err(Error::NoArchive { file: file.to_owned(), reason });
        }
        Ok(archive)
    }

    /// Like [`Archive::open`], for an archive of some topics whose partitions may begin at any offset.
    pub(crate) fn open_part(file: &str, from: Box<dyn Read + Send>, known: &[&str]) -> Result<Self, Error> {
        let no_archive = |reason: String| Error::NoArchive { file: file.to_owned(), reason };
        let from = ReaderRead::new(BufReader::with_capacity(1 << 20, from));
        let (reader, metadata) = Reader::new_and_metadata::<Metadata>(from).map_err(|error| no_archive(error.to_string()))?;
        let ends: Ends = serde_json::from_str(&metadata.ends).map_err(|error| no_archive(error.to_string()))?;
        let starts = if metadata.starts.is_empty() { Ok(Ends::default()) } else { serde_json::from_str(&metadata.starts) };
        let starts: Ends = starts.map_err(|error| no_archive(error.to_string()))?;
        let mut next = Vec::new();
        for (name, ends) in &ends.0 {
            let topic = topics::by_name(name).filter(|topic| known.contains(&topic.name));
            let wrong = |reason: String| Error::Topic { file: file.to_owned(), reason };
            let topic = topic.ok_or_else(|| wrong(format!("unknown topic \"{name}\"{}", names::hint(name, known.iter().copied()))))?;
            if ends.len() != topic.partitions as usize {
                return Err(wrong(format!("topic {name} has {} partitions there and {} here", ends.len(), topic.partitions)));
            }
            next.extend((0..topic.partitions).map(|partition| (topic, partition, starts.of(topic.name, partition))));
        }
        Ok(Self { file: file.to_owned(), ends, reader, ahead: None, is_read: false, next })
    }

    /// The end offsets that the header promises.
    #[must_use]
    pub fn ends(&self) -> &Ends {
        &self.ends
    }

    /// Reads the next records. Returns `None` after the last one, once every record that the header names was read. Blocks.
    pub(crate) fn next_chunk(&mut self) -> Result<Option<Chunk>, Error> {
        let Some(row) = self.ahead.take().map_or_else(|| self.next_row(), |row| Ok(Some(row)))? else {
            return self.check_complete().map(|()| None);
        };
        let (topic, partition, first) = self.take_offset(&row)?;
        let (mut bytes, mut records) = (0, Vec::new());
        let mut push = |row: Row<String, Vec<u8>>| {
            let headers: Vec<(&str, &[u8])> = row.headers.iter().map(|header| (&*header.name, &*header.value.0)).collect();
            let headers = Headers::new(&headers);
            bytes += row.key.0.len() + row.value.0.len();
            records.push(Record { key: Bytes::from(row.key.0), value: Bytes::from(row.value.0), headers, at_ms: row.at_ms });
            bytes < BATCH_BYTES && records.len() < BATCH_RECORDS
        };
        let mut has_room = push(row);
        while has_room && let Some(row) = self.next_row()? {
            if row.topic != topic.name || u32::try_from(row.partition) != Ok(partition) {
                self.ahead = Some(row);
                break;
            }
            self.take_offset(&row)?;
            has_room = push(row);
        }
        Ok(Some(Chunk { topic, partition, first, records }))
    }

    fn next_row(&mut self) -> Result<Option<Row<String, Vec<u8>>>, Error> {
        if self.is_read {
            return Ok(None);
        }
        let row = self.reader.deserialize_next().map_err(|source| Error::DamagedFile { file: self.file.clone(), source })?;
        self.is_read = row.is_none();
        Ok(row)
    }

    /// Checks that a row's offset is the next one of its partition, and advances.
    fn take_offset(&mut self, row: &Row<String, Vec<u8>>) -> Result<(&'static Topic, u32, LogOffset), Error> {
        let place = self
            .next
            .iter_mut()
            .find(|(topic, partition, _)| topic.name == row.topic && i32::try_from(*partition) == Ok(row.partition))
            .ok_or_else(|| Error::NoArchive {
                file: self.file.clone(),
                reason: format!("it has records of {}/{}, which its header does not name", row.topic, row.partition),
            })?;
        let (topic, partition, expected) = *place;
        if LogOffset::try_from(row.offset) != Ok(expected) {
            return Err(Error::Hole { file: self.file.clone(), topic: topic.name, partition, expected, found: row.offset });
        }
        place.2 = expected.next();
        Ok((topic, partition, expected))
    }

    fn check_complete(&self) -> Result<(), Error> {
        for (topic, partition, found) in &self.next {
            let expected = self.ends.of(topic.name, *partition);
            if *found != expected {
                return Err(Error::Cut { file: self.file.clone(), topic: topic.name, partition: *partition, expected, found: *found });
            }
        }
        Ok(())
    }
}
