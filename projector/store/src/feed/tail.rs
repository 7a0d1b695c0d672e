//! The writer's end of a feed.

use bytes::Bytes;
use schemas::position::Seq;
use schemas::tables::{Table, Write};

use super::block::{Building, FeedBlock};
use super::{FEED_BLOCK_LEN, block_key, block_of, first_seq_of, index_of};
use crate::store::{Error, View};

/// The open last block of a feed, and the blocks filled since the last [`take_writes`](Self::take_writes).
///
/// Pushing a change again that is still in the open block gives the same bytes: a writer that repeats what it did before a crash
/// changes nothing.
#[derive(Clone, Debug, Default)]
pub struct FeedTail {
    /// The open block's number.
    block: u64,
    building: Building,
    /// Whether the open block differs from what was last taken.
    changed: bool,
    /// Their numbers, their last seqs and their bytes.
    filled: Vec<(u64, u64, Bytes)>,
}

impl FeedTail {
    /// The tail of a feed that has no changes.
    #[must_use]
    pub fn empty() -> Self {
        Self::default()
    }

    /// The tail that goes on after a stored block; `None` if the feed has none.
    ///
    /// # Errors
    /// [`Error::Damaged`] if the block is broken.
    pub fn from_block(block: Option<Bytes>) -> Result<Self, Error> {
        let Some(bytes) = block else { return Ok(Self::empty()) };
        let block = FeedBlock::decode(bytes)?;
        let number = block_of(Seq(block.first_seq()));
        if block.first_seq() != first_seq_of(number) {
            return Err(broken(format!("a block begins with seq {}", block.first_seq())));
        }
        Ok(Self { block: number, building: Building::from_block(&block), ..Self::default() })
    }

    /// The tail after change `upto` (the view's checkpoint), read from a feed. What a crash left behind it is forgotten.
    ///
    /// # Errors
    /// [`Error::Damaged`] if the block that holds `upto` is missing, broken or ends before it; and what reading rows fails with.
    pub async fn load(view: &dyn View, table: &'static Table, upto: Seq) -> Result<Self, Error> {
        if upto.0 == 0 {
            return Ok(Self::empty());
        }
        let stored = view.get(table, &block_key(block_of(upto))).await?;
        let mut tail = Self::from_block(stored)?;
        if tail.next_seq().0 <= upto.0 || tail.block != block_of(upto) {
            return Err(Error::Damaged { table: table.name.to_owned(), reason: format!("no feed block holds seq {}", upto.0) });
        }
        tail.building.truncate(index_of(upto.0) + 1);
        Ok(tail)
    }

    /// The seq that goes on after what is here.
    #[must_use]
    pub fn next_seq(&self) -> Seq {
        Seq(first_seq_of(self.block) + self.building.entries.len() as u64)
    }

    /// Adds a change: its seq, when it was recorded (milliseconds since 1970), and its JSON as readers get it (`None` or empty: not shown).
    ///
    /// A seq that is already in the open block takes the place of that entry and of all after it.
    ///
    /// # Errors
    /// [`Error::Damaged`] if the seq leaves a gap or lies before the open block, if the time goes back, or if the block would hold
    /// more than 4 GiB; nothing is changed then.
    pub fn push(&mut self, seq: Seq, recorded_at_ms: i64, element: Option<&[u8]>) -> Result<(), Error> {
        // Nothing to show is not shown: an empty element would leave two commas side by side.
        let element = element.filter(|element| !element.is_empty());
        let next = self.next_seq();
        if seq > next || seq.0 < first_seq_of(self.block) {
            return Err(broken(format!("seq {} does not follow: the next one is {}", seq.0, next.0)));
        }
        let at = usize::try_from(seq.0 - first_seq_of(self.block)).unwrap_or(usize::MAX);
        let before = at.checked_sub(1).and_then(|before| self.building.entries.get(before));
        if let Some((_, before_ms)) = before
            && recorded_at_ms < *before_ms
        {
            return Err(broken(format!("the recorded time of seq {} goes back from {before_ms} to {recorded_at_ms}", seq.0)));
        }
        let begin = before.map_or(0, |(end, _)| *end as usize);
        let added = element.map_or(0, |element| element.len() + 1);
        let in_block = if at == FEED_BLOCK_LEN { added } else { begin + added };
        let end = u32::try_from(in_block).map_err(|_| broken(format!("the block of seq {} is too large", seq.0)))?;
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

    /// Sets the full block aside and opens the next.
    fn fill(&mut self) {
        if self.changed {
            self.filled.push(self.encoded());
        }
        self.block += 1;
        self.building = Building::default();
        self.changed = false;
    }

    /// The blocks changed since the last call, each once, for the commit that holds their changes.
    #[must_use]
    pub fn take_writes(&mut self, table: &'static Table) -> Vec<Write> {
        let mut blocks = std::mem::take(&mut self.filled);
        if self.changed {
            blocks.push(self.encoded());
            self.changed = false;
        }
        // A block that holds more wins over one that holds less, whoever writes it and when.
        let stamp = |last: u64| i64::try_from(last).unwrap_or(i64::MAX);
        blocks.into_iter().map(|(block, last, bytes)| Write::put(table, block_key(block), bytes).at(stamp(last))).collect()
    }

    fn encoded(&self) -> (u64, u64, Bytes) {
        (self.block, self.next_seq().0 - 1, self.building.encode(first_seq_of(self.block)))
    }
}

fn broken(reason: String) -> Error {
    Error::Damaged { table: "the feed's tail".to_owned(), reason }
}
