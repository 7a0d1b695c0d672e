//! The file `ends`: the end offset up to which each partition was acknowledged.
//!
//! The store cuts its journal at the first entry that it cannot parse and treats the rest as an unfinished write. If a byte in the middle
//! of the journal is damaged, acknowledged records would be lost without an error. This file makes the loss visible. It is written after
//! each commit is synced and before the commit is answered, so the store must contain everything up to these offsets. It is not synced with
//! each commit, which would cost a second sync. After a power cut it may therefore be some commits behind, but it never names records that
//! are not durable.
//!
//! It also records whether the log was flushed when it was closed, so that nothing depends on the journal.
//!
//! Two slots of equal size are written alternately, each with a generation and a checksum. A torn write damages only one of them.

use std::collections::BTreeMap;
use std::fs::File;
use std::io::{self, Seek, SeekFrom, Write};
use std::path::{Path, PathBuf};

use disk_files::durable_file;
use schemas::position::LogOffset;

const MAGIC: &[u8; 8] = b"hwends\x00\x01";
const SLOT_BYTES_UNIT: usize = 4096;

/// The offset after the last acknowledged record, by topic and partition.
pub(super) type Ends = BTreeMap<(String, u32), LogOffset>;

/// The opened `ends` file.
#[derive(Debug)]
pub(super) struct EndsFile {
    file: File,
    slot_bytes: usize,
    generation: u64,
}

/// The result of reading the file.
pub(super) enum EndsRead {
    /// The file does not exist.
    Nothing,
    /// The newer of the intact slots, and whether the log was flushed then.
    Ends(Ends, bool),
    /// The file exists, but both slots are damaged.
    Damaged,
}

/// Returns the path of the file in the log's directory.
pub(super) fn path(dir: &Path) -> PathBuf {
    dir.join("ends")
}

/// Reads the file.
pub(super) fn read(dir: &Path) -> io::Result<EndsRead> {
    let Some(bytes) = durable_file::read(&path(dir))? else { return Ok(EndsRead::Nothing) };
    if bytes.len() % (2 * SLOT_BYTES_UNIT) != 0 {
        return Ok(EndsRead::Damaged);
    }
    let newest = bytes.chunks((bytes.len() / 2).max(1)).filter_map(decode).max_by_key(|(generation, ..)| *generation);
    Ok(newest.map_or(EndsRead::Damaged, |(_, is_flushed, ends)| EndsRead::Ends(ends, is_flushed)))
}

impl EndsFile {
    /// Replaces the file atomically with one that names `ends`, and opens it. Everything is synced.
    pub(super) fn create(dir: &Path, ends: &Ends) -> io::Result<Self> {
        let slot = encode(1, false, ends);
        let slot_bytes = slot.len().next_multiple_of(SLOT_BYTES_UNIT);
        let mut bytes = vec![0; 2 * slot_bytes];
        bytes[..slot.len()].copy_from_slice(&slot);
        bytes[slot_bytes..slot_bytes + slot.len()].copy_from_slice(&slot);
        let file = durable_file::replace(&path(dir), &bytes, 0o666)?;
        Ok(Self { file, slot_bytes, generation: 1 })
    }

    /// Writes `ends` over the older slot. The partitions must be those given to `create`. Does not sync.
    pub(super) fn write(&mut self, ends: &Ends, is_flushed: bool) -> io::Result<()> {
        self.generation += 1;
        let slot = encode(self.generation, is_flushed, ends);
        if slot.len() > self.slot_bytes {
            return Err(io::Error::other("the end offsets do not fit into their slot"));
        }
        let at = if self.generation.is_multiple_of(2) { self.slot_bytes } else { 0 };
        self.file.seek(SeekFrom::Start(at as u64))?;
        self.file.write_all(&slot)
    }

    /// Syncs the file.
    pub(super) fn sync(&self) -> io::Result<()> {
        self.file.sync_data()
    }
}

fn encode(generation: u64, is_flushed: bool, ends: &Ends) -> Vec<u8> {
    let mut out = Vec::with_capacity(64 + ends.len() * 40);
    out.extend_from_slice(MAGIC);
    out.extend_from_slice(&[0; 8]);
    out.extend_from_slice(&generation.to_be_bytes());
    out.push(u8::from(is_flushed));
    for ((topic, partition), end) in ends {
        out.extend_from_slice(&u32::try_from(topic.len()).unwrap_or(u32::MAX).to_be_bytes());
        out.extend_from_slice(topic.as_bytes());
        out.extend_from_slice(&partition.to_be_bytes());
        out.extend_from_slice(&end.0.to_be_bytes());
    }
    let length = u32::try_from(out.len()).unwrap_or(u32::MAX);
    out[8..12].copy_from_slice(&length.to_be_bytes());
    let crc = crc32fast::hash(&out[16..]);
    out[12..16].copy_from_slice(&crc.to_be_bytes());
    out
}

fn decode(slot: &[u8]) -> Option<(u64, bool, Ends)> {
    let slot = slot.strip_prefix(MAGIC)?;
    let length = usize::try_from(u32::from_be_bytes(slot.get(..4)?.try_into().ok()?)).ok()?;
    let crc = u32::from_be_bytes(slot.get(4..8)?.try_into().ok()?);
    let mut rest = slot.get(8..length.checked_sub(MAGIC.len())?)?;
    if crc32fast::hash(rest) != crc {
        return None;
    }
    let mut take = |count: usize| {
        let (head, tail) = rest.split_at_checked(count)?;
        rest = tail;
        Some(head)
    };
    let generation = u64::from_be_bytes(take(8)?.try_into().ok()?);
    let is_flushed = take(1)? == [1];
    let mut ends = Ends::new();
    while let Some(name_bytes) = take(4) {
        let name_bytes = usize::try_from(u32::from_be_bytes(name_bytes.try_into().ok()?)).ok()?;
        let topic = std::str::from_utf8(take(name_bytes)?).ok()?.to_owned();
        let partition = u32::from_be_bytes(take(4)?.try_into().ok()?);
        ends.insert((topic, partition), LogOffset(u64::from_be_bytes(take(8)?.try_into().ok()?)));
    }
    Some((generation, is_flushed, ends))
}

#[cfg(test)]
mod tests {
    use std::fs;

    use super::*;

    fn ends(of: u64) -> Ends {
        Ends::from([(("a".to_owned(), 0), LogOffset(of)), (("b.c".to_owned(), 7), LogOffset(of * 2))])
    }

    fn read_ends(dir: &Path) -> Option<Ends> {
        match read(dir).unwrap() {
            EndsRead::Ends(ends, is_flushed) => {
                assert_eq!(is_flushed, ends == self::ends(4));
                Some(ends)
            }
            EndsRead::Nothing | EndsRead::Damaged => None,
        }
    }

    /// Proves that the newest slot is read, that damage to one slot falls back to the other, and that damage to both is reported.
    #[test]
    fn newest_whole_slot_counts() {
        let dir = tempfile::tempdir().unwrap();
        assert!(matches!(read(dir.path()).unwrap(), EndsRead::Nothing));
        let mut file = EndsFile::create(dir.path(), &ends(0)).unwrap();
        assert_eq!(read_ends(dir.path()), Some(ends(0)));
        for i in 1..=4 {
            file.write(&ends(i), i == 4).unwrap();
            assert_eq!(read_ends(dir.path()), Some(ends(i)));
        }
        file.sync().unwrap();
        let whole = fs::read(path(dir.path())).unwrap();
        for at in 0..encode(1, false, &ends(4)).len() {
            let mut bad = whole.clone();
            bad[at] ^= 0x10;
            fs::write(path(dir.path()), &bad).unwrap();
            let one = read_ends(dir.path());
            assert!(one == Some(ends(4)) || one == Some(ends(3)), "byte {at}");
            bad[at + whole.len() / 2] ^= 0x10;
            fs::write(path(dir.path()), &bad).unwrap();
            assert!(matches!(read(dir.path()).unwrap(), EndsRead::Damaged), "byte {at}");
        }
        for length in [0, 1, 10, whole.len() / 3] {
            fs::write(path(dir.path()), &whole[..length]).unwrap();
            assert!(matches!(read(dir.path()).unwrap(), EndsRead::Damaged), "cut at {length}");
        }
    }
}
