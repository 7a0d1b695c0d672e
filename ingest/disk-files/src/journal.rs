//! Walks the journals of the library, as the checks before it opens them.
//!
//! The library cuts a journal at the first entry that it cannot read, also in the middle, and orders batches by a sequence number that no
//! checksum covers. So acknowledged batches could vanish, or be ordered before older ones, without an error. The walk verifies the checksum
//! of every batch, that sequence numbers rise over all journals, and that nothing that was written follows the last batch.
//!
//! A batch is a start (tag 1, number of items, sequence number), its items (tag 2: kind, compression, keyspace, lengths, key, value; or tag
//! 4: cleared keyspace), and an end (tag 3, xxh3 checksum of the items, `FJL` 0x03). Numbers are little endian.

use std::fs::File;
use std::io::{self, BufReader, Read, Seek, SeekFrom};
use std::path::{Path, PathBuf};

use xxhash_rust::xxh3::Xxh3;

use crate::Error;
use crate::keyspaces::entries;

const START: u8 = 1;
const ITEM: u8 = 2;
const END: u8 = 3;
const CLEAR: u8 = 4;
const TRAILER: &[u8] = b"FJL\x03";
/// The bytes of an end: tag, checksum and trailer.
const END_BYTES: usize = 13;
/// Larger sequence numbers do not occur.
const SEQUENCE_MAX: u64 = 1 << 62;
const BUFFER_BYTES: usize = 256 * 1024;

/// An item of a batch: a row that was written or deleted.
#[derive(Debug)]
pub struct Item<'a> {
    /// The number of the keyspace.
    pub keyspace: u64,
    /// The key of the row.
    pub key: &'a [u8],
    /// The value of the row; empty if it was deleted.
    pub value: &'a [u8],
}

/// Walks the journals in a directory, oldest first. Calls `item` with each row, then `batch` at the end of each batch; `batch` returns why the
/// batch cannot be right, if it cannot. Returns the number of batches.
///
/// An unfinished batch at the end of the newest journal is what a crash leaves. It passes; the library drops it.
///
/// # Errors
/// [`Error::Damaged`] with the journal; [`Error::Unusable`] when a journal cannot be read.
pub fn walk(dir: &Path, mut item: impl FnMut(&Item<'_>), mut batch: impl FnMut() -> Result<(), String>) -> Result<u64, Error> {
    let mut journals = Vec::new();
    for path in entries(dir).map_err(Error::unusable(dir))? {
        if path.extension().is_some_and(|extension| extension == "jnl") {
            let number = path.file_stem().and_then(|stem| stem.to_str()?.parse::<u64>().ok());
            journals.push((number.ok_or_else(|| Error::damaged(&path, "does not belong to the store"))?, path));
        }
    }
    journals.sort();
    let (mut batches, mut sequence) = (0, None);
    let last = journals.len().saturating_sub(1);
    for (at, (_, path)) in journals.into_iter().enumerate() {
        let mut walk = Walk::open(path, &mut sequence)?;
        while walk.batch(&mut item)? {
            batch().map_err(|how| Error::damaged(&walk.path, how))?;
            batches += 1;
        }
        walk.check_rest(at == last)?;
    }
    Ok(batches)
}

/// The walk through one journal.
struct Walk<'a> {
    path: PathBuf,
    reader: BufReader<File>,
    length: u64,
    /// The position after the last whole batch.
    valid: u64,
    position: u64,
    sequence: &'a mut Option<u64>,
    key: Vec<u8>,
    value: Vec<u8>,
}

impl<'a> Walk<'a> {
    fn open(path: PathBuf, sequence: &'a mut Option<u64>) -> Result<Self, Error> {
        let file = File::open(&path).map_err(Error::unusable(&path))?;
        let length = file.metadata().map_err(Error::unusable(&path))?.len();
        let reader = BufReader::with_capacity(BUFFER_BYTES, file);
        Ok(Self { path, reader, length, valid: 0, position: 0, sequence, key: Vec::new(), value: Vec::new() })
    }

    /// Reads one batch; false if none follows that is complete.
    fn batch(&mut self, item: &mut impl FnMut(&Item<'_>)) -> Result<bool, Error> {
        match self.read_batch(item) {
            Ok(Some(is_whole)) if !is_whole => Err(self.damaged("holds a batch that differs from its checksum")),
            Ok(found) => {
                if found.is_some() {
                    self.valid = self.position;
                }
                Ok(found.is_some())
            }
            Err(error) if error.kind() == io::ErrorKind::UnexpectedEof => Ok(false),
            Err(error) => Err(Error::unusable(&self.path)(error)),
        }
    }

    /// Reads one batch and returns whether its checksum is right; `None` if the bytes are not a batch.
    fn read_batch(&mut self, item: &mut impl FnMut(&Item<'_>)) -> io::Result<Option<bool>> {
        let [START, head @ ..] = self.array::<13>()? else { return Ok(None) };
        let (count, sequence) = head.split_at(4);
        let (count, sequence) = (number(count), number(sequence));
        if sequence >= SEQUENCE_MAX || self.sequence.is_some_and(|before| sequence <= before) {
            // Reported as a wrong checksum would be: the batch is there, but not as it was written.
            return Ok(self.skip_items(count, item)?.map(|_| false));
        }
        let Some(is_whole) = self.skip_items(count, item)? else { return Ok(None) };
        *self.sequence = Some(sequence);
        Ok(Some(is_whole))
    }

    /// Reads the items and the end of a batch, and returns whether the checksum is right; `None` if the bytes are not those of a batch.
    fn skip_items(&mut self, count: u64, item: &mut impl FnMut(&Item<'_>)) -> io::Result<Option<bool>> {
        let mut checksum = Xxh3::new();
        for _ in 0..count {
            match self.array::<1>()? {
                [ITEM] => {
                    let head = self.array::<20>()?;
                    let (keyspace, key_bytes) = (number(&head[2..10]), number(&head[10..12]));
                    let stored_bytes = number(&head[16..20]);
                    if key_bytes + stored_bytes > self.length.saturating_sub(self.position) {
                        return Ok(None);
                    }
                    let (mut key, mut value) = (std::mem::take(&mut self.key), std::mem::take(&mut self.value));
                    self.fill(&mut key, key_bytes)?;
                    self.fill(&mut value, stored_bytes)?;
                    checksum.update(&[ITEM]);
                    for part in [&head[..], &key, &value] {
                        checksum.update(part);
                    }
                    item(&Item { keyspace, key: &key, value: &value });
                    (self.key, self.value) = (key, value);
                }
                [CLEAR] => {
                    let keyspace = self.array::<8>()?;
                    checksum.update(&[CLEAR]);
                    checksum.update(&keyspace);
                }
                _ => return Ok(None),
            }
        }
        let end = self.array::<END_BYTES>()?;
        if end[0] != END || &end[9..] != TRAILER {
            return Ok(None);
        }
        Ok(Some(number(&end[1..9]) == checksum.digest()))
    }

    /// Checks what follows the last whole batch: in the newest journal an unfinished batch, in others nothing.
    fn check_rest(mut self, is_newest: bool) -> Result<(), Error> {
        self.reader.seek(SeekFrom::Start(self.valid)).map_err(Error::unusable(&self.path))?;
        let mut window: Vec<u8> = Vec::with_capacity(BUFFER_BYTES + END_BYTES);
        let mut chunk = vec![0; BUFFER_BYTES];
        loop {
            let count = self.reader.read(&mut chunk).map_err(Error::unusable(&self.path))?;
            if count == 0 {
                return Ok(());
            }
            let bytes = &chunk[..count];
            if window.is_empty() && bytes.iter().all(|byte| *byte == 0) {
                continue;
            }
            if !is_newest {
                return Err(self.damaged("holds something else than batches, although a newer journal exists"));
            }
            window.extend_from_slice(bytes);
            if window.windows(END_BYTES).any(|bytes| bytes[0] == END && &bytes[9..] == TRAILER) {
                return Err(self.damaged("holds a batch that cannot be read, followed by the end of a batch"));
            }
            window.drain(..window.len().saturating_sub(END_BYTES));
        }
    }

    fn array<const N: usize>(&mut self) -> io::Result<[u8; N]> {
        let mut bytes = [0; N];
        self.reader.read_exact(&mut bytes)?;
        self.position += N as u64;
        Ok(bytes)
    }

    fn fill(&mut self, buffer: &mut Vec<u8>, count: u64) -> io::Result<()> {
        buffer.resize(usize::try_from(count).map_err(io::Error::other)?, 0);
        self.reader.read_exact(buffer)?;
        self.position += count;
        Ok(())
    }

    fn damaged(&self, how: &str) -> Error {
        Error::damaged(&self.path, format!("{how} (after byte {})", self.valid))
    }
}

/// Reads an unsigned little-endian number of up to eight bytes.
fn number(bytes: &[u8]) -> u64 {
    bytes.iter().rev().fold(0, |number, byte| number << 8 | u64::from(*byte))
}
