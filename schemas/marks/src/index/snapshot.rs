//! The snapshot of the index: its arrays, in little-endian order, after a header with versions and the position, before a checksum.

use std::io::{self, ErrorKind, Read, Write};

use xxhash_rust::xxh3::Xxh3;

use super::segment::Segment;
use super::{Entry, Index};
use crate::{RULES_VERSION, words};

/// The beginning of a snapshot.
const MAGIC: &[u8; 8] = b"HWNAMES1";
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
        for number in [u64::from(RULES_VERSION), u64::from(words::version()), self.seq, self.segments.len() as u64] {
            out.write_all(&number.to_le_bytes())?;
        }
        for segment in &self.segments {
            write_numbers(&mut out, &segment.serials, u32::to_le_bytes)?;
            write_numbers(&mut out, &segment.classes, u64::to_le_bytes)?;
            write_numbers(&mut out, &segment.ends, u32::to_le_bytes)?;
            write_numbers(&mut out, segment.texts.as_bytes(), |byte| [byte])?;
            write_numbers(&mut out, &segment.buckets, u32::to_le_bytes)?;
            write_numbers(&mut out, &segment.rows, u32::to_le_bytes)?;
            write_numbers(&mut out, &segment.prints, |byte| [byte])?;
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
        let mut header = [0; 4];
        for number in &mut header {
            *number = read_number(&mut input)?;
        }
        let [rules, word_version, seq, segment_count] = header;
        if &magic != MAGIC || rules != u64::from(RULES_VERSION) || word_version != u64::from(words::version()) {
            return Err(refused("the snapshot is of another version"));
        }
        let mut segments = Vec::new();
        for _ in 0..segment_count {
            let segment = Segment {
                serials: read_numbers(&mut input, u32::from_le_bytes)?,
                classes: read_numbers(&mut input, u64::from_le_bytes)?,
                ends: read_numbers(&mut input, u32::from_le_bytes)?,
                texts: String::from_utf8(read_bytes(&mut input)?).map_err(|_| refused("a text of the snapshot is not UTF-8"))?,
                buckets: read_numbers(&mut input, u32::from_le_bytes)?,
                rows: read_numbers(&mut input, u32::from_le_bytes)?,
                prints: read_bytes(&mut input)?,
            };
            let rows = segment.serials.len();
            if segment.classes.len() != rows || segment.ends.len() != rows || segment.rows.len() != segment.prints.len() {
                return Err(refused("the parts of the snapshot have different lengths"));
            }
            segments.push(segment);
        }
        let expected = input.sum.digest();
        let mut sum = [0; 8];
        input.inner.read_exact(&mut sum)?;
        if u64::from_le_bytes(sum) != expected {
            return Err(refused("the checksum of the snapshot is wrong"));
        }
        Ok(Self { segments, seq })
    }

    /// All marks of the index, with texts in the normal form.
    #[must_use]
    pub fn entries(&self) -> Vec<Entry> {
        self.segments.iter().flat_map(Segment::entries).collect()
    }
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
