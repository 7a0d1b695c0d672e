//! The end of a feed, where its writer appends.

use bytes::Bytes;
use schemas::position::Seq;
use schemas::tables::{Table, Write};

use super::block::{Building, FeedBlock};
use super::{FEED_BLOCK_LEN, block_key, block_of, first_seq_of, index_of};
use crate::store::{Error, View};

/// The open last block of a feed, and the blocks filled since the last [`take_writes`](Self::take_writes).
///
/// Pushing a change again that is still in the open block gives the same bytes: a writer that repeats its work after a crash changes
/// nothing.
#[derive(Clone, Debug, Default)]
pub struct FeedTail {
    /// The number of the open block.
    block: u64,
    building: Building,
    /// Whether the open block differs from what was last written.
    changed: bool,
    /// The number, last seq and bytes of each block filled since the last write.
    filled: Vec<(u64, Seq, Bytes)>,
}

impl FeedTail {
    /// Creates the tail of a feed without changes.
    #[must_use]
    pub fn empty() -> Self {
        Self::default()
    }

    /// Creates the tail that continues after a stored block; `None` if the feed has none.
    ///
    /// # Errors
    /// [`Error::Damaged`] if the block is damaged.
    pub fn from_block(block: Option<Bytes>) -> Result<Self, Error> {
        let Some(bytes) = block else { return Ok(Self::empty()) };
        let block = FeedBlock::decode(bytes)?;
        let number = block_of(block.first_seq());
        if block.first_seq() != first_seq_of(number) {
            return Err(broken(format!("a block starts with seq {}", block.first_seq())));
        }
        Ok(Self { block: number, building: Building::from_block(&block), ..Self::default() })
    }

    /// Loads the tail after change `upto` (the view's checkpoint) from a feed. Entries that a crash left after it are dropped.
    ///
    /// # Errors
    /// [`Error::Damaged`] if the block that contains `upto` is missing, damaged or ends before it; and any error of reading rows.
    pub async fn load(view: &dyn View, table: &'static Table, upto: Seq) -> Result<Self, Error> {
        if upto == Seq(0) {
            return Ok(Self::empty());
        }
        let stored = view.get(table, &block_key(block_of(upto))).await?;
        let mut tail = Self::from_block(stored)?;
        if tail.next_seq() <= upto || tail.block != block_of(upto) {
            return Err(Error::Damaged { table: table.name.to_owned(), reason: format!("no feed block holds seq {upto}") });
        }
        tail.building.truncate(index_of(upto) + 1);
        Ok(tail)
    }

    /// Returns the seq of the next change.
    #[must_use]
    pub fn next_seq(&self) -> Seq {
        first_seq_of(self.block).plus(self.building.entries.len() as u64)
    }

    /// Appends a change: its seq, when it was recorded (milliseconds since 1970), and its JSON as readers get it (`None` or empty: not
    /// shown).
    ///
    /// A seq that is already in the open block replaces that entry and all after it.
    ///
    /// # Errors
    /// [`Error::Damaged`] if the seq leaves a gap or is before the open block, if the time goes back, or if the block would exceed 4 GiB.
    /// Nothing is changed then.
    pub fn push(&mut self, seq: Seq, recorded_at_ms: i64, element: Option<&[u8]>) -> Result<(), Error> {
        // An empty element is not shown: it would leave two commas next to each other.
        let element = element.filter(|element| !element.is_empty());
        if i64::try_from(seq).is_err() {
            return Err(broken(format!("seq {seq} is too large")));
        }
        let next = self.next_seq();
        if seq > next || seq < first_seq_of(self.block) {
            return Err(broken(format!("seq {seq} does not follow: the next one is {next}")));
        }
        let at = seq.0 - first_seq_of(self.block).0;
        let at = usize::try_from(at).map_err(|_| broken(format!("seq {seq} is beyond the block")))?;
        let before = at.checked_sub(1).and_then(|before| self.building.entries.get(before));
        if let Some((_, before_ms)) = before
            && recorded_at_ms < *before_ms
        {
            return Err(broken(format!("the recorded time of seq {seq} goes back from {before_ms} to {recorded_at_ms}")));
        }
        let begin = before.map_or(0, |(end, _)| *end as usize);
        let added = element.map_or(0, |element| element.len() + 1);
        let in_block = if at == FEED_BLOCK_LEN { added } else { begin + added };
        let end = u32::try_from(in_block).map_err(|_| broken(format!("the block of seq {seq} is too large")))?;
        if at == FEED_BLOCK_LEN {
            self.fill();
        } else {
            self.building.truncate(at);
        }
        if let Some(element) = element {
            self.building.body.push(b',');
            self.building.body.extend_from_slice(element);
        }
        self.building.entries.push((end, recorded_at_ms));
        self.changed = true;
        Ok(())
    }

    /// Moves the full block to `filled` and opens the next one.
    fn fill(&mut self) {
        if self.changed {
            self.filled.push(self.encoded());
        }
        self.block += 1;
        self.building = Building::default();
        self.changed = false;
    }

    /// Returns the writes for all blocks changed since the last call, for the commit that contains their changes.
    #[must_use]
    pub fn take_writes(&mut self, table: &'static Table) -> Vec<Write> {
        let mut blocks = std::mem::take(&mut self.filled);
        if self.changed {
            blocks.push(self.encoded());
            self.changed = false;
        }
        // A block with more entries wins over one with fewer, whichever process writes it and when.
        blocks.into_iter().map(|(block, last, bytes)| Write::put(table, block_key(block), bytes).at(last.stored())).collect()
    }

    fn encoded(&self) -> (u64, Seq, Bytes) {
        (self.block, self.next_seq().previous(), self.building.encode(first_seq_of(self.block)))
    }
}

fn broken(reason: String) -> Error {
    Error::Damaged { table: "the feed's tail".to_owned(), reason }
}
