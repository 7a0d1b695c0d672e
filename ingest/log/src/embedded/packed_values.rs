//! Packed values: many records of one partition in one value of the store.
//!
//! ```text
//! key:    partition u16 | base offset u64                            (big endian, so that keys sort by offset)
//! value:  version u8 | count u32 | body crc u32 | base u64 | head crc u32 | stored body
//! stored: version 1: the body; version 2: the length of the body, u32 | the body, compressed as an LZ4 block
//! body:   count times: where the record ends, u32, from the first record's start | the records
//! record: at_ms i64 | key length | value length | number of headers | key | value | headers
//! header: name length | value length | name | value                  (lengths and numbers are LEB128)
//! ```
//!
//! The checksum of the head also covers topic, partition and base offset, so a value under a wrong key counts as damaged, as does any
//! changed byte. Decoding copies no key or value: it slices the body, which stays in memory as long as one of its records does. A body is
//! compressed if that saves an eighth of it; a short one never is.

use std::ops::Range;

use bytes::Bytes;
use schemas::position::LogOffset;

use crate::headers::{self, put_length};
use crate::{Headers, Record};

/// The version of a value whose body is stored as it is.
const PLAIN: u8 = 1;
/// The version of a value whose body is compressed.
const COMPRESSED: u8 = 2;
const HEAD_BYTES: usize = 21;
/// Shorter bodies are not compressed: decompressing would cost more than the saved bytes.
const COMPRESSED_BYTES_MIN: usize = 512;
/// The longest body. A longer length in a value is damage.
const BODY_BYTES_MAX: usize = 512 * 1024 * 1024;
/// No LZ4 block is shorter than its content by more than this factor.
const RATIO_MAX: usize = 255;
/// The size of the length before a compressed body.
const LENGTH_BYTES: usize = 4;
/// Where the LZ4 block of a compressed value begins.
const BLOCK_START: usize = HEAD_BYTES + LENGTH_BYTES;

/// Returns the bytes of a record that count towards limits: key, value and headers.
pub(super) fn record_bytes(record: &Record) -> usize {
    record.key.len() + record.value.len() + record.headers.bytes().len()
}

/// Returns the store's key of the packed value that begins at `base`.
pub(super) fn key(partition: u16, base: LogOffset) -> [u8; 10] {
    let mut out = [0; 10];
    out[..2].copy_from_slice(&partition.to_be_bytes());
    out[2..].copy_from_slice(&base.0.to_be_bytes());
    out
}

/// Reads the base offset from a key of the store; `None` if the key does not belong to this partition.
pub(super) fn base_of(partition: u16, key: &[u8]) -> Option<LogOffset> {
    let base = key.strip_prefix(&partition.to_be_bytes())?;
    Some(LogOffset(u64::from_be_bytes(base.try_into().ok()?)))
}

/// Encoded records of one append call for one partition, before offsets are assigned.
#[derive(Debug, Default)]
pub(super) struct Encoded {
    bytes: Vec<u8>,
    ends: Vec<usize>,
}

impl Encoded {
    /// Encodes and adds a record.
    pub(super) fn push(&mut self, record: &Record) {
        let out = &mut self.bytes;
        out.extend_from_slice(&record.at_ms.to_be_bytes());
        put_length(out, record.key.len());
        put_length(out, record.value.len());
        put_length(out, record.headers.count());
        out.extend_from_slice(&record.key);
        out.extend_from_slice(&record.value);
        out.extend_from_slice(record.headers.bytes());
        self.ends.push(out.len());
    }

    /// Returns the number of records.
    pub(super) fn count(&self) -> usize {
        self.ends.len()
    }

    /// Returns the number of bytes.
    pub(super) fn byte_count(&self) -> usize {
        self.bytes.len()
    }
}

/// The limits of one packed value. A single record may exceed them.
#[derive(Clone, Copy, Debug)]
pub(super) struct PackLimits {
    pub(super) bytes_max: usize,
    pub(super) records_max: usize,
}

/// Packs the records of one partition into values.
#[derive(Debug)]
pub(super) struct Packer<'a> {
    limits: PackLimits,
    topic: &'static str,
    partition: u16,
    /// The offset of the first record in the value that is being filled.
    base: LogOffset,
    records: Vec<&'a [u8]>,
    byte_count: usize,
}

impl<'a> Packer<'a> {
    /// Starts packing at the partition's end.
    pub(super) fn new(topic: &'static str, partition: u16, end: LogOffset, limits: PackLimits) -> Self {
        Self { limits, topic, partition, base: end, records: Vec::new(), byte_count: 0 }
    }

    /// Returns the offset of the next record.
    pub(super) fn end(&self) -> LogOffset {
        self.base.plus(self.records.len() as u64)
    }

    /// Adds records. Passes each full value to `sink` with its base offset.
    pub(super) fn push(&mut self, encoded: &'a Encoded, mut sink: impl FnMut(LogOffset, Vec<u8>)) {
        let mut from = 0;
        for end in &encoded.ends {
            let record = &encoded.bytes[from..*end];
            from = *end;
            let is_full = self.records.len() >= self.limits.records_max || self.byte_count + record.len() > self.limits.bytes_max;
            if is_full && !self.records.is_empty() {
                self.finish(&mut sink);
            }
            self.records.push(record);
            self.byte_count += record.len();
        }
    }

    /// Passes the last, partly filled value to `sink`, if there is one.
    pub(super) fn finish(&mut self, mut sink: impl FnMut(LogOffset, Vec<u8>)) {
        if self.records.is_empty() {
            return;
        }
        let count = u32::try_from(self.records.len()).unwrap_or(u32::MAX);
        let mut value = Vec::with_capacity(HEAD_BYTES + 4 * self.records.len() + self.byte_count);
        value.resize(HEAD_BYTES, 0);
        let mut end = 0;
        for record in &self.records {
            end += record.len();
            value.extend_from_slice(&u32::try_from(end).unwrap_or(u32::MAX).to_be_bytes());
        }
        for record in &self.records {
            value.extend_from_slice(record);
        }
        value[0] = PLAIN;
        if let Some(compressed) = compressed(&value[HEAD_BYTES..]) {
            value = compressed;
            value[0] = COMPRESSED;
        }
        value[1..5].copy_from_slice(&count.to_be_bytes());
        let body_crc = crc32fast::hash(&value[HEAD_BYTES..]);
        value[5..9].copy_from_slice(&body_crc.to_be_bytes());
        value[9..17].copy_from_slice(&self.base.0.to_be_bytes());
        let head_crc = head_crc(self.topic, self.partition, &value[..17]);
        value[17..HEAD_BYTES].copy_from_slice(&head_crc.to_be_bytes());
        let base = self.base;
        self.base = self.end();
        self.records.clear();
        self.byte_count = 0;
        sink(base, value);
    }
}

/// Returns the value of a body that is worth compressing, without the content of its head.
fn compressed(body: &[u8]) -> Option<Vec<u8>> {
    let length = u32::try_from(body.len()).ok().filter(|_| (COMPRESSED_BYTES_MIN..=BODY_BYTES_MAX).contains(&body.len()))?;
    let mut value = vec![0; BLOCK_START + lz4_flex::block::get_maximum_output_size(body.len())];
    value[HEAD_BYTES..BLOCK_START].copy_from_slice(&length.to_be_bytes());
    let block_bytes = lz4_flex::block::compress_into(body, &mut value[BLOCK_START..]).ok()?;
    value.truncate(BLOCK_START + block_bytes);
    (LENGTH_BYTES + block_bytes <= body.len() - body.len() / 8).then_some(value)
}

/// Returns the body whose compressed form is stored.
fn decompressed(stored: &[u8]) -> Option<Vec<u8>> {
    let (length, block) = stored.split_first_chunk::<LENGTH_BYTES>()?;
    let length_max = BODY_BYTES_MAX.min(block.len().saturating_mul(RATIO_MAX));
    let length = usize::try_from(u32::from_be_bytes(*length)).ok().filter(|length| *length <= length_max)?;
    let mut body = vec![0; length];
    lz4_flex::block::decompress_into(block, &mut body).is_ok_and(|bytes| bytes == length).then_some(body)
}

/// A packed value whose checksums match. Cheap to clone.
#[derive(Clone, Debug)]
pub(super) struct Packed {
    base: LogOffset,
    count: usize,
    body: Bytes,
}

impl Packed {
    /// Checks the value that the store holds for `base`. The error says what is wrong.
    pub(super) fn open(topic: &str, partition: u16, base: LogOffset, bytes: Bytes) -> Result<Self, &'static str> {
        let Some(head) = bytes.get(..HEAD_BYTES) else { return Err("the packed value is too short") };
        let number = |range: Range<usize>| head[range].iter().fold(0, |sum, byte| sum << 8 | u64::from(*byte));
        let version = head[0];
        if ![PLAIN, COMPRESSED].contains(&version) {
            return Err("the packed value has an unknown version");
        }
        if number(17..HEAD_BYTES) != u64::from(head_crc(topic, partition, &head[..17])) || number(9..17) != base.0 {
            return Err("the head of the packed value does not match its checksum or its key");
        }
        if number(5..9) != u64::from(crc32fast::hash(&bytes[HEAD_BYTES..])) {
            return Err("the body of the packed value does not match its checksum");
        }
        let count = usize::try_from(number(1..5)).unwrap_or(usize::MAX);
        let body = if version == COMPRESSED {
            Bytes::from(decompressed(&bytes[HEAD_BYTES..]).ok_or("the body of the packed value cannot be decompressed")?)
        } else {
            bytes.slice(HEAD_BYTES..)
        };
        if count == 0 || count > body.len() / 4 || base.0.checked_add(count as u64).is_none() {
            return Err("the packed value has a wrong record count");
        }
        Ok(Self { base, count, body })
    }

    /// Returns the offset of the first record.
    pub(super) fn base(&self) -> LogOffset {
        self.base
    }

    /// Returns the offset after the last record.
    pub(super) fn end(&self) -> LogOffset {
        self.base.plus(self.count as u64)
    }

    /// Decodes the record at an offset in `base()..end()`.
    pub(super) fn record(&self, offset: LogOffset) -> Result<Record, &'static str> {
        self.decode(offset).ok_or("a record of the packed value cannot be decoded")
    }

    fn decode(&self, offset: LogOffset) -> Option<Record> {
        let index = usize::try_from(offset.0.checked_sub(self.base.0)?).ok().filter(|index| *index < self.count)?;
        let start = if index == 0 { 0 } else { self.record_end(index - 1)? };
        let first = 4 * self.count;
        let mut cut = Cut { bytes: &self.body, at: first.checked_add(start)?, end: first.checked_add(self.record_end(index)?)? };
        let at_ms = i64::from_be_bytes(cut.take(8)?.as_ref().try_into().ok()?);
        let (key_bytes, value_bytes, header_count) = (cut.length()?, cut.length()?, cut.length()?);
        let (key, value) = (cut.take(key_bytes)?, cut.take(value_bytes)?);
        let headers = Headers::cut(header_count, cut.take(cut.end.checked_sub(cut.at)?)?)?;
        Some(Record { key, value, headers, at_ms })
    }

    fn record_end(&self, index: usize) -> Option<usize> {
        let at = 4 * index;
        let end = u32::from_be_bytes(self.body.get(at..at + 4)?.try_into().ok()?);
        usize::try_from(end).ok()
    }
}

/// Slices parts from the front of a record, never beyond its end.
struct Cut<'a> {
    bytes: &'a Bytes,
    at: usize,
    end: usize,
}

impl Cut<'_> {
    fn take(&mut self, count: usize) -> Option<Bytes> {
        let to = self.at.checked_add(count).filter(|to| *to <= self.end && *to <= self.bytes.len())?;
        let piece = self.bytes.slice(self.at..to);
        self.at = to;
        Some(piece)
    }

    fn length(&mut self) -> Option<usize> {
        let (length, rest) = headers::length(self.bytes.get(self.at..self.end)?)?;
        self.at = self.end - rest.len();
        Some(length)
    }
}

fn head_crc(topic: &str, partition: u16, head: &[u8]) -> u32 {
    let mut hasher = crc32fast::Hasher::new();
    hasher.update(topic.as_bytes());
    hasher.update(&partition.to_be_bytes());
    hasher.update(head);
    hasher.finalize()
}

#[cfg(test)]
mod tests {
    use rand::rngs::StdRng;
    use rand::{RngExt, SeedableRng};

    use super::*;

    const LIMITS: PackLimits = PackLimits { bytes_max: 4096, records_max: 5 };

    fn record(i: usize) -> Record {
        Record {
            key: Bytes::from(format!("key-{i}")),
            value: Bytes::from(vec![i as u8; i * 37]),
            headers: Headers::new(&[("h", &[1; 200][..]), ("h2", &[][..])][..i % 3]),
            at_ms: i64::MIN + i as i64,
        }
    }

    fn pack(records: &[Record], end: LogOffset) -> Vec<(LogOffset, Vec<u8>)> {
        let mut encoded = Encoded::default();
        records.iter().for_each(|record| encoded.push(record));
        let mut packer = Packer::new("t", 3, end, LIMITS);
        let mut values = Vec::new();
        packer.push(&encoded, |base, value| values.push((base, value)));
        packer.finish(|base, value| values.push((base, value)));
        assert_eq!(packer.end(), end.plus(records.len() as u64));
        values
    }

    /// Proves that records read back unchanged over several values, without a gap between them.
    #[test]
    fn records_survive_packing() {
        let records: Vec<Record> = (0..23).map(record).collect();
        let mut next = LogOffset(100);
        for (base, value) in pack(&records, LogOffset(100)) {
            let packed = Packed::open("t", 3, base, Bytes::from(value)).unwrap();
            assert_eq!(packed.base(), next);
            for offset in packed.base().0..packed.end().0 {
                assert_eq!(packed.record(LogOffset(offset)).unwrap(), records[(offset - 100) as usize]);
            }
            assert!(packed.record(packed.end()).is_err());
            next = packed.end();
        }
        assert_eq!(next, LogOffset(123));
    }

    /// Proves that similar records are compressed, that short or random ones are stored as they are, and that all read back unchanged.
    #[test]
    fn similar_records_are_compressed() {
        let similar =
            |i: usize| Record { value: Bytes::from(format!("{i}: one and the same long text, {}", "again ".repeat(30))), ..record(1) };
        let random = |i| {
            let mut value = [0; 416];
            StdRng::seed_from_u64(i).fill(&mut value);
            Record { value: Bytes::copy_from_slice(&value), ..Record::default() }
        };
        let cases: [(Vec<Record>, u8); 3] =
            [((0..5).map(similar).collect(), COMPRESSED), ((0..5).map(random).collect(), PLAIN), (vec![record(2)], PLAIN)];
        for (records, version) in cases {
            let (base, value) = pack(&records, LogOffset(7)).remove(0);
            assert_eq!(value[0], version);
            let plain_bytes: usize = records.iter().map(record_bytes).sum();
            assert_eq!(value.len() < plain_bytes, version == COMPRESSED);
            let packed = Packed::open("t", 3, base, Bytes::from(value)).unwrap();
            let read: Vec<Record> = (7..packed.end().0).map(|offset| packed.record(LogOffset(offset)).unwrap()).collect();
            assert_eq!(read, records);
        }
    }

    /// Proves that a compressed value of another length than it says is refused, without reserving that length.
    #[test]
    fn false_lengths_are_refused() {
        let stored = compressed(&[7; 4096]).unwrap().split_off(HEAD_BYTES);
        assert_eq!(decompressed(&stored).unwrap(), [7; 4096]);
        for length in [0, 4095, 4097, 400 << 20, u32::MAX] {
            let mut bad = stored.clone();
            bad[..LENGTH_BYTES].copy_from_slice(&length.to_be_bytes());
            assert_eq!(decompressed(&bad), None, "{length}");
        }
        for end in 0..stored.len() {
            assert_eq!(decompressed(&stored[..end]), None, "{end}");
        }
    }

    /// Proves that no value exceeds the limits, and that a record above the byte limit gets a value of its own.
    #[test]
    fn caps_hold() {
        let large = Record { value: Bytes::from(vec![1; 10_000]), ..Record::default() };
        let small = record(1);
        let values = pack(
            &[small.clone(), large.clone(), small.clone(), small.clone(), small.clone(), small.clone(), small.clone(), small],
            LogOffset(0),
        );
        let bases: Vec<u64> = values.iter().map(|(base, _)| base.0).collect();
        assert_eq!(bases, [0, 1, 2, 7]);
    }

    /// Proves that every flipped bit, every truncation and every wrong key is noticed.
    #[test]
    fn damage_is_noticed() {
        let records: Vec<Record> = (0..4).map(record).collect();
        let (base, value) = pack(&records, LogOffset(9)).remove(0);
        let open =
            |topic: &str, partition, base, value: &[u8]| Packed::open(topic, partition, base, Bytes::copy_from_slice(value)).map(|_| ());
        assert_eq!(open("t", 3, base, &value), Ok(()));
        for at in 0..value.len() {
            for bit in 0..8 {
                let mut bad = value.clone();
                bad[at] ^= 1 << bit;
                assert!(open("t", 3, base, &bad).is_err(), "bit {bit} of byte {at}");
            }
            assert!(open("t", 3, base, &value[..at]).is_err(), "cut at {at}");
        }
        assert!(open("u", 3, base, &value).is_err());
        assert!(open("t", 4, base, &value).is_err());
        assert!(open("t", 3, base.next(), &value).is_err());
    }
}
