//! One packed block of a feed.
//!
//! Layout, integers big endian: version u8, count u16, first seq u64; then for each entry the end of its element in the body u32 and its
//! recorded time in milliseconds since 1970 i64; then the body; then a CRC-32 of everything before it.

use bytes::Bytes;
use schemas::position::Seq;

use crate::store::Error;

/// The number of changes in a full block: small, so that a page which starts anywhere reads little more than itself, but large enough that
/// it reads few blocks.
pub const FEED_BLOCK_LEN: usize = 50;

/// The version of the layout and of the number of changes in a full block.
const VERSION: u8 = 2;
const HEAD_BYTES: usize = 11;
const ENTRY_BYTES: usize = 12;
const CRC_BYTES: usize = 4;

/// A decoded and checked block. Cheap to clone: the bytes are shared.
#[derive(Clone, Debug)]
pub struct FeedBlock {
    bytes: Bytes,
    first_seq: Seq,
    count: usize,
    /// One bit per entry that readers see, so that a page need not examine every entry again.
    shown: u64,
}

const _: () = assert!(FEED_BLOCK_LEN <= u64::BITS as usize, "a block has a bit for each entry");

impl FeedBlock {
    /// Decodes and checks a block. The other calls need no further checks.
    ///
    /// # Errors
    /// [`Error::Damaged`] if the bytes differ from what was written.
    pub fn decode(bytes: Bytes) -> Result<Self, Error> {
        match Self::read(&bytes) {
            Ok((first_seq, count, shown)) => Ok(Self { bytes, first_seq, count, shown }),
            Err(reason) => Err(Error::Damaged { table: "a feed block".to_owned(), reason }),
        }
    }

    /// Returns first seq, count and the bits of shown entries, or what is damaged.
    fn read(bytes: &[u8]) -> Result<(Seq, usize, u64), String> {
        let short = || "it is cut short".to_owned();
        let (content, crc) = bytes.split_last_chunk::<CRC_BYTES>().ok_or_else(short)?;
        if crc32fast::hash(content) != u32::from_be_bytes(*crc) {
            return Err("its checksum is wrong".to_owned());
        }
        let (version, rest) = content.split_first().ok_or_else(short)?;
        if *version != VERSION {
            return Err(format!(
                "it has version {version} and this program reads {VERSION}: delete the view store, which the log fills again"
            ));
        }
        let (count, rest) = rest.split_first_chunk::<2>().ok_or_else(short)?;
        let (first_seq, rest) = rest.split_first_chunk::<8>().ok_or_else(short)?;
        let count = usize::from(u16::from_be_bytes(*count));
        if count == 0 || count > FEED_BLOCK_LEN {
            return Err("its count is wrong".to_owned());
        }
        let (index, body) = rest.split_at_checked(count * ENTRY_BYTES).ok_or_else(short)?;
        let (mut begin, mut shown) = (0, 0);
        for (i, entry) in index.chunks_exact(ENTRY_BYTES).enumerate() {
            let end = u32::from_be_bytes(*entry.first_chunk::<4>().ok_or_else(short)?) as usize;
            if end < begin || (end > begin && body.get(begin) != Some(&b',')) {
                return Err("its elements overlap".to_owned());
            }
            shown |= u64::from(end > begin) << i;
            begin = end;
        }
        if begin == body.len() {
            Ok((Seq(u64::from_be_bytes(*first_seq)), count, shown))
        } else {
            Err("its body has another length".to_owned())
        }
    }

    /// Returns the seq of the first entry.
    #[must_use]
    pub fn first_seq(&self) -> Seq {
        self.first_seq
    }

    /// Returns the seq of the last entry.
    #[must_use]
    pub fn last_seq(&self) -> Seq {
        self.first_seq.plus(self.count as u64 - 1)
    }

    /// Returns the element of a change; `None` if readers do not see it or the block does not contain it.
    #[must_use]
    pub fn element(&self, seq: Seq) -> Option<Bytes> {
        let i = self.index_of(seq)?;
        self.shown(i).then(|| self.elements(i, i + 1))
    }

    /// Returns when a change was recorded, in milliseconds since 1970; `None` if the block does not contain it.
    #[must_use]
    pub fn recorded_at_seq(&self, seq: Seq) -> Option<i64> {
        self.index_of(seq).map(|i| self.recorded_at(i))
    }

    fn index_of(&self, seq: Seq) -> Option<usize> {
        let i = usize::try_from(seq.0.checked_sub(self.first_seq.0)?).ok()?;
        (i < self.count).then_some(i)
    }

    /// Returns the number of entries: at least 1.
    #[must_use]
    #[expect(clippy::len_without_is_empty, reason = "a block is never empty")]
    pub fn len(&self) -> usize {
        self.count
    }

    /// Returns when entry `i` was recorded, in milliseconds since 1970; 0 beyond the end.
    #[must_use]
    pub fn recorded_at(&self, i: usize) -> i64 {
        self.entry(i).and_then(|entry| entry.last_chunk::<8>()).map_or(0, |time| i64::from_be_bytes(*time))
    }

    /// Whether readers see entry `i`; false beyond the end.
    #[must_use]
    pub fn shown(&self, i: usize) -> bool {
        i < self.count && self.shown >> i & 1 == 1
    }

    /// Returns the elements of the entries from `from` to before `to`, joined with commas: a slice of the block. Empty if none is shown.
    #[must_use]
    pub fn elements(&self, from: usize, to: usize) -> Bytes {
        let body = HEAD_BYTES + self.count * ENTRY_BYTES;
        let (begin, end) = (self.begin(from), self.begin(to));
        // The first byte is the comma before the first shown element.
        if begin < end { self.bytes.slice(body + begin + 1..body + end) } else { Bytes::new() }
    }

    /// Returns the block with other elements: `rewrite` returns the new text of an element, `None` for one that stays. `None` if all stay.
    ///
    /// # Errors
    /// The first error of `rewrite`.
    pub fn rewritten(&self, rewrite: impl Fn(&[u8]) -> Result<Option<Vec<u8>>, Error>) -> Result<Option<Bytes>, Error> {
        let (mut building, mut is_same) = (Building::default(), true);
        for i in 0..self.count {
            if self.shown(i) {
                let element = self.elements(i, i + 1);
                let new = rewrite(&element)?;
                is_same &= new.is_none();
                building.body.push(b',');
                building.body.extend_from_slice(new.as_deref().unwrap_or(&element));
            }
            let end = u32::try_from(building.body.len()).unwrap_or(u32::MAX);
            building.entries.push((end, self.recorded_at(i)));
        }
        Ok((!is_same).then(|| building.encode(self.first_seq)))
    }

    /// Returns the size of the block in bytes.
    #[must_use]
    pub fn size_bytes(&self) -> usize {
        self.bytes.len()
    }

    /// Returns where entry `i` starts in the body; beyond the end, where the body ends.
    fn begin(&self, i: usize) -> usize {
        let before = i.min(self.count).checked_sub(1).and_then(|before| self.entry(before));
        before.and_then(|entry| entry.first_chunk::<4>()).map_or(0, |end| u32::from_be_bytes(*end) as usize)
    }

    fn entry(&self, i: usize) -> Option<&[u8]> {
        let at = HEAD_BYTES + i * ENTRY_BYTES;
        if i < self.count { self.bytes.get(at..at + ENTRY_BYTES) } else { None }
    }
}

/// A block that is not full yet.
#[derive(Clone, Debug, Default)]
pub(super) struct Building {
    /// For each entry, the end of its element in the body, and its recorded time.
    pub(super) entries: Vec<(u32, i64)>,
    pub(super) body: Vec<u8>,
}

impl Building {
    /// Decodes a stored block to continue filling it.
    pub(super) fn from_block(block: &FeedBlock) -> Self {
        let entries = (0..block.len()).map(|i| (u32::try_from(block.begin(i + 1)).unwrap_or(u32::MAX), block.recorded_at(i))).collect();
        let at = HEAD_BYTES + block.len() * ENTRY_BYTES;
        let body = block.bytes[at..block.bytes.len() - CRC_BYTES].to_vec();
        Self { entries, body }
    }

    /// Removes the entries from `len` on.
    pub(super) fn truncate(&mut self, len: usize) {
        self.entries.truncate(len);
        self.body.truncate(self.entries.last().map_or(0, |(end, _)| *end as usize));
    }

    /// Encodes the block.
    pub(super) fn encode(&self, first_seq: Seq) -> Bytes {
        let count = self.entries.len();
        let mut out = Vec::with_capacity(HEAD_BYTES + count * ENTRY_BYTES + self.body.len() + CRC_BYTES);
        out.push(VERSION);
        out.extend_from_slice(&u16::try_from(count).unwrap_or(u16::MAX).to_be_bytes());
        out.extend_from_slice(&first_seq.0.to_be_bytes());
        for (end, recorded_at_ms) in &self.entries {
            out.extend_from_slice(&end.to_be_bytes());
            out.extend_from_slice(&recorded_at_ms.to_be_bytes());
        }
        out.extend_from_slice(&self.body);
        out.extend_from_slice(&crc32fast::hash(&out).to_be_bytes());
        Bytes::from(out)
    }
}
