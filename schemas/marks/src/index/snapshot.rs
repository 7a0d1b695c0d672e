//! The snapshot of the index: its arrays, in little-endian order, after a header with versions and the position, before a checksum.

use std::io::{self, ErrorKind, Read, Write};
use std::sync::Arc;
use std::sync::atomic::Ordering;

use xxhash_rust::xxh3::Xxh3;

use super::columns::{Columns, Parts, Row, STANDS};
use super::lists::Lists;
use super::postings::Postings;
use super::primary_keys::PrimaryKeys;
use super::segment::Segment;
use super::timeline::{Chunk, Timeline};
use super::{Corpus, Index};
use crate::{RULES_VERSION, words};

/// The beginning of a snapshot.
const MAGIC: &[u8; 8] = b"HWNAMES7";
/// The most bytes that are read or written at once.
const CHUNK_BYTES: usize = 1 << 20;

impl Index {
    /// Writes a snapshot. Flush and sync the target before the file takes its name.
    ///
    /// # Errors
    /// When the target fails.
    pub fn write(&self, target: &mut impl Write) -> io::Result<()> {
        let mut out = Summed { inner: target, sum: Xxh3::new() };
        out.write_all(MAGIC)?;
        let (segments, chunks) = (&self.segments, &self.timeline.chunks);
        let header = [
            u64::from(RULES_VERSION),
            u64::from(words::version()),
            u64::from(self.seq),
            self.origin,
            segments.len() as u64,
            chunks.len() as u64,
        ];
        for number in header {
            out.write_all(&number.to_le_bytes())?;
        }
        for segment in segments {
            let (columns, postings) = (segment.columns(), segment.postings());
            // A version that a later change ends meanwhile is ended again when that change is applied to the snapshot.
            let until = |row: &Row| standing_at(row.until.load(Ordering::Relaxed), self.seq);
            write_rows(&mut out, &columns.rows, |row| row.serial)?;
            write_rows(&mut out, &columns.rows, |row| row.since)?;
            write_rows(&mut out, &columns.rows, until)?;
            write_rows(&mut out, &columns.rows, |row| row.classes)?;
            write_numbers(&mut out, &columns.sets, u64::to_le_bytes)?;
            write_rows(&mut out, &columns.rows, |row| row.end)?;
            write_rows(&mut out, &columns.rows, |row| row.skeleton.bits())?;
            write_numbers(&mut out, columns.texts.as_bytes(), |byte| [byte])?;
            write_numbers(&mut out, &postings.ends, u32::to_le_bytes)?;
            write_numbers(&mut out, &postings.bytes, |byte| [byte])?;
            write_numbers(&mut out, &postings.lists.keys, u64::to_le_bytes)?;
            write_numbers(&mut out, &postings.lists.ends, u32::to_le_bytes)?;
            write_numbers(&mut out, &postings.lists.bytes, |byte| [byte])?;
            write_numbers(&mut out, &postings.primaries.keys, u64::to_le_bytes)?;
            write_numbers(&mut out, &postings.primaries.rows, u32::to_le_bytes)?;
        }
        for chunk in chunks {
            let Corpus { marks, live_marks } = chunk.before;
            write_numbers(&mut out, &[marks, live_marks], u64::to_le_bytes)?;
            for bits in &chunk.bits {
                write_numbers(&mut out, bits, u64::to_le_bytes)?;
            }
        }
        let sum = out.sum.digest();
        out.inner.write_all(&sum.to_le_bytes())
    }

    /// Reads a snapshot.
    ///
    /// # Errors
    /// When the source fails, or with [`ErrorKind::InvalidData`] when the snapshot is damaged, or of other versions of the rules or words: then
    /// build the index again.
    pub fn read(source: &mut impl Read) -> io::Result<Self> {
        let mut input = Summed { inner: source, sum: Xxh3::new() };
        let mut magic = [0; 8];
        input.read_exact(&mut magic)?;
        let mut header = [0; 6];
        for number in &mut header {
            *number = read_number(&mut input)?;
        }
        let [rules, word_version, seq, origin, segment_count, chunk_count] = header;
        if &magic != MAGIC || rules != u64::from(RULES_VERSION) || word_version != u64::from(words::version()) {
            return Err(refused("the snapshot is of another version"));
        }
        let seq = u32::try_from(seq).map_err(|_| refused("the position of the snapshot is too large"))?;
        let mut segments = Vec::new();
        for _ in 0..segment_count {
            segments.push(Arc::new(read_segment(&mut input)?));
        }
        let mut chunks = Vec::new();
        for _ in 0..chunk_count {
            let before = match read_numbers(&mut input, u64::from_le_bytes)?[..] {
                [marks, live_marks] => Corpus { marks, live_marks },
                _ => return Err(refused("the counts of the snapshot have another length")),
            };
            let mut bits = [Vec::new(), Vec::new(), Vec::new()];
            for bits in &mut bits {
                *bits = read_numbers(&mut input, u64::from_le_bytes)?;
            }
            chunks.push(Chunk { before, bits });
        }
        let timeline = Timeline::of_snapshot(chunks).ok_or_else(|| refused("the counts of the snapshot have another length"))?;
        let expected = input.sum.digest();
        let mut sum = [0; 8];
        input.inner.read_exact(&mut sum)?;
        if u64::from_le_bytes(sum) != expected {
            return Err(refused("the checksum of the snapshot is wrong"));
        }
        Ok(Self { segments, timeline, seq, origin })
    }
}

/// The end of a version as of a position.
fn standing_at(until: u32, seq: u32) -> u32 {
    if until > seq { STANDS } else { until }
}

fn read_segment(input: &mut Summed<'_, impl Read>) -> io::Result<Segment> {
    let parts = Parts {
        serials: read_numbers(input, u32::from_le_bytes)?,
        sinces: read_numbers(input, u32::from_le_bytes)?,
        untils: read_numbers(input, u32::from_le_bytes)?,
        classes: read_numbers(input, u32::from_le_bytes)?,
        sets: read_numbers(input, u64::from_le_bytes)?,
        ends: read_numbers(input, u32::from_le_bytes)?,
        skeletons: read_numbers(input, u32::from_le_bytes)?,
        texts: String::from_utf8(read_bytes(input)?).map_err(|_| refused("a text of the snapshot is no UTF-8"))?,
    };
    let columns = Columns::of_snapshot(parts).ok_or_else(|| refused("the parts of the snapshot do not fit together"))?;
    let (ends, bytes) = (read_numbers(input, u32::from_le_bytes)?, read_bytes(input)?);
    if !ends.len().is_power_of_two() {
        return Err(refused("the buckets of the snapshot have another number"));
    }
    let lists =
        Lists { keys: read_numbers(input, u64::from_le_bytes)?, ends: read_numbers(input, u32::from_le_bytes)?, bytes: read_bytes(input)? };
    if !lists.is_sound() {
        return Err(refused("the lists of the snapshot do not fit to their keys"));
    }
    let primaries = PrimaryKeys { keys: read_numbers(input, u64::from_le_bytes)?, rows: read_numbers(input, u32::from_le_bytes)? };
    if !primaries.is_sound() {
        return Err(refused("the first keys of the snapshot do not fit to their rows"));
    }
    Ok(Segment::of_snapshot(columns, Postings { ends, bytes, lists, primaries }))
}

fn refused(reason: &'static str) -> io::Error {
    io::Error::new(ErrorKind::InvalidData, reason)
}

/// A reader or writer that sums what passes.
struct Summed<'a, T> {
    inner: &'a mut T,
    sum: Xxh3,
}

impl<T: Write> Summed<'_, T> {
    fn write_all(&mut self, bytes: &[u8]) -> io::Result<()> {
        self.sum.update(bytes);
        self.inner.write_all(bytes)
    }
}

impl<T: Read> Summed<'_, T> {
    fn read_exact(&mut self, bytes: &mut [u8]) -> io::Result<()> {
        self.inner.read_exact(bytes)?;
        self.sum.update(bytes);
        Ok(())
    }
}

fn write_numbers<T: Copy, const N: usize>(out: &mut Summed<'_, impl Write>, numbers: &[T], bytes: fn(T) -> [u8; N]) -> io::Result<()> {
    out.write_all(&(numbers.len() as u64).to_le_bytes())?;
    for chunk in numbers.chunks(CHUNK_BYTES / N) {
        let chunk: Vec<u8> = chunk.iter().flat_map(|number| bytes(*number)).collect();
        out.write_all(&chunk)?;
    }
    Ok(())
}

/// Writes one number of each row.
fn write_rows(out: &mut Summed<'_, impl Write>, rows: &[Row], number: impl Fn(&Row) -> u32) -> io::Result<()> {
    let numbers: Vec<u32> = rows.iter().map(number).collect();
    write_numbers(out, &numbers, u32::to_le_bytes)
}

fn read_number(input: &mut Summed<'_, impl Read>) -> io::Result<u64> {
    let mut bytes = [0; 8];
    input.read_exact(&mut bytes)?;
    Ok(u64::from_le_bytes(bytes))
}

fn read_numbers<T, const N: usize>(input: &mut Summed<'_, impl Read>, number: fn([u8; N]) -> T) -> io::Result<Vec<T>> {
    let mut left = usize::try_from(read_number(input)?).map_err(|_| refused("a length of the snapshot is too large"))?;
    // Memory grows with what is read, so that a damaged length reserves nothing.
    let mut out = Vec::new();
    let mut chunk = vec![0; CHUNK_BYTES];
    while left > 0 {
        let count = left.min(CHUNK_BYTES / N);
        let bytes = chunk.get_mut(..count * N).unwrap_or_default();
        input.read_exact(bytes)?;
        out.extend(bytes.as_chunks::<N>().0.iter().map(|bytes| number(*bytes)));
        left -= count;
    }
    out.shrink_to_fit();
    Ok(out)
}

fn read_bytes(input: &mut Summed<'_, impl Read>) -> io::Result<Vec<u8>> {
    read_numbers(input, |[byte]| byte)
}
