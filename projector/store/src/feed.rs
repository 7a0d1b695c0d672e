//! Packed pages of changes. Reading one costs little more than sending its bytes.
//!
//! Change `s` of a service is in block `(s-1)/50` at index `(s-1)%50`. A block is one row of a feed table (key: the block number). It
//! contains the changes' JSON as readers get it, each with a leading comma, so that any run of changes is one slice of stored bytes. A
//! change that feeds leave out is an empty element: it keeps its seq and time.
//!
//! Pages join without a gap, whatever their limits; a page reads a bounded number of blocks; bytes are shared, not copied. A full block
//! never changes, so that it may be cached as long as its generation exists.

mod block;
mod cache;
mod tail;

use std::sync::Arc;

use bytes::Bytes;
use futures_util::future::try_join_all;
use schemas::key;
use schemas::position::Seq;
use schemas::tables::{Column, Table, int};

pub use self::block::{FEED_BLOCK_LEN, FeedBlock};
pub use self::cache::FeedCache;
pub use self::tail::FeedTail;
use crate::store::{Error, View};

/// How many blocks a page reads at most while none of their changes is shown. Their elements are empty, so that they are small.
pub const EMPTY_BLOCKS_MAX: usize = 40;
/// How many blocks are read together: each may cost a disk access.
const BLOCKS_A_READ: usize = 24;
/// The key columns of every feed table.
pub const FEED_KEY: &[Column] = &[int("block")];

/// Returns the block of a change. The seq must not be 0.
#[must_use]
pub fn block_of(seq: Seq) -> u64 {
    seq.previous().0 / FEED_BLOCK_LEN as u64
}

/// Returns the first seq of a block.
fn first_seq_of(block: u64) -> Seq {
    Seq(block * FEED_BLOCK_LEN as u64 + 1)
}

/// Returns the index of a change in its block.
fn index_of(seq: Seq) -> usize {
    usize::try_from(seq.previous().0 % FEED_BLOCK_LEN as u64).unwrap_or_default()
}

/// Returns the key of a block.
fn block_key(block: u64) -> schemas::tables::Key {
    key![i64::try_from(block).unwrap_or(i64::MAX)]
}

/// A page of changes. Joined with commas, `parts` are the elements of a JSON array.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Page {
    /// Slices of the stored blocks, without commas at their ends; none is empty.
    pub parts: Vec<Bytes>,
    /// The first seq of the page: one above the position that was read from.
    pub from: Seq,
    /// The last seq of the page, shown or not; `from - 1` if there was nothing to read.
    pub to: Seq,
    /// The number of elements in `parts`.
    pub shown: usize,
    /// When change `to` was recorded, in milliseconds since 1970; 0 if there was nothing to read.
    pub last_recorded_at_ms: i64,
}

/// Returns the changes after `after`, up to `upto`, until `limit` of them are shown. `upto` must not exceed the view's checkpoint.
///
/// Reads at most `limit / 50` (rounded up) plus one blocks, and up to 40 until it finds a change that is shown, so that a run of changes that
/// are not shown makes a short page, not a slow one: continue reading from `to`. The page also covers changes that are not shown and follow the last shown one
/// in its block.
///
/// # Errors
/// [`Error::Damaged`] if a block is missing or damaged, and any error of reading rows.
pub async fn read_page(view: &dyn View, table: &'static Table, after: Seq, upto: Seq, limit: usize) -> Result<Page, Error> {
    BlockSource { view, table, cache: None }.page(after, upto, limit).await
}

/// Returns the last seq, at most `upto`, that was recorded at or before `at_ms` (milliseconds since 1970); 0 if there is none.
///
/// # Errors
/// As [`read_page`].
pub async fn seq_at(view: &dyn View, table: &'static Table, at_ms: i64, upto: Seq) -> Result<Seq, Error> {
    BlockSource { view, table, cache: None }.seq_at(at_ms, upto).await
}

/// Reads a feed through a cache of full blocks. A page whose blocks are cached costs no read and no check.
#[derive(Clone)]
pub struct FeedReader {
    view: Arc<dyn View>,
    table: &'static Table,
    cache: Arc<FeedCache>,
}

impl FeedReader {
    /// Creates a reader of one feed. All readers of a store may share the cache.
    #[must_use]
    pub fn new(view: Arc<dyn View>, table: &'static Table, cache: Arc<FeedCache>) -> Self {
        Self { view, table, cache }
    }

    /// Returns the generation that is read.
    #[must_use]
    pub fn view(&self) -> &Arc<dyn View> {
        &self.view
    }

    /// See [`read_page`].
    ///
    /// # Errors
    /// As [`read_page`].
    pub async fn page(&self, after: Seq, upto: Seq, limit: usize) -> Result<Page, Error> {
        self.source().page(after, upto, limit).await
    }

    /// See [`seq_at`].
    ///
    /// # Errors
    /// As [`read_page`].
    pub async fn seq_at(&self, at_ms: i64, upto: Seq) -> Result<Seq, Error> {
        self.source().seq_at(at_ms, upto).await
    }

    /// As [`seq_at`], for a time that is probably near `upto`: it looks at blocks from the end backwards, twice as far each time. The reads grow with the
    /// logarithm of the number of changes since then, not with that of the whole feed.
    ///
    /// # Errors
    /// As [`read_page`].
    pub async fn recent_seq_at(&self, at_ms: i64, upto: Seq) -> Result<Seq, Error> {
        self.source().recent_seq_at(at_ms, upto).await
    }

    /// Returns the block that contains a change.
    ///
    /// # Errors
    /// As [`read_page`].
    pub async fn block(&self, seq: Seq) -> Result<Arc<FeedBlock>, Error> {
        self.source().block(block_of(seq)).await
    }

    /// Returns the blocks with these numbers, in their order, for callers that filter elements one by one. Blocks that are not cached are
    /// read concurrently.
    ///
    /// # Errors
    /// As [`read_page`].
    pub async fn blocks(&self, numbers: &[u64]) -> Result<Vec<Arc<FeedBlock>>, Error> {
        let read = numbers.chunks(BLOCKS_A_READ).map(|numbers| async move { self.source().blocks(numbers).await });
        Ok(try_join_all(read).await?.concat())
    }

    fn source(&self) -> BlockSource<'_> {
        BlockSource { view: self.view.as_ref(), table: self.table, cache: Some(&self.cache) }
    }
}

/// The source of blocks: a feed table, and a cache if there is one.
struct BlockSource<'a> {
    view: &'a dyn View,
    table: &'static Table,
    cache: Option<&'a FeedCache>,
}

impl BlockSource<'_> {
    async fn block(&self, number: u64) -> Result<Arc<FeedBlock>, Error> {
        match self.cached(number) {
            Some(block) => Ok(block),
            None => self.read(number, self.view.get(self.table, &block_key(number)).await?),
        }
    }

    async fn blocks(&self, numbers: &[u64]) -> Result<Vec<Arc<FeedBlock>>, Error> {
        let cached: Vec<_> = numbers.iter().map(|number| self.cached(*number)).collect();
        let missing: Vec<_> =
            numbers.iter().zip(&cached).filter(|(_, cached)| cached.is_none()).map(|(number, _)| block_key(*number)).collect();
        let mut stored = if missing.is_empty() { Vec::new() } else { self.view.get_many(self.table, &missing).await? }.into_iter();
        let block = |(number, cached): (&u64, Option<_>)| match cached {
            Some(block) => Ok(block),
            None => self.read(*number, stored.next().flatten()),
        };
        numbers.iter().zip(cached).map(block).collect()
    }

    fn cached(&self, number: u64) -> Option<Arc<FeedBlock>> {
        self.cache?.get(&self.block_id(number))
    }

    fn block_id(&self, number: u64) -> cache::BlockId {
        (self.table.name, self.view.generation(), self.view.rendition(), number)
    }

    /// Decodes and checks a stored block, and caches it if it is full.
    fn read(&self, number: u64, stored: Option<Bytes>) -> Result<Arc<FeedBlock>, Error> {
        let bytes = stored.ok_or_else(|| {
            let reason = format!("feed block {number} is missing");
            self.view.report_damage(&reason);
            self.damaged(reason)
        })?;
        let block = Arc::new(FeedBlock::decode(bytes)?);
        if block.first_seq() != first_seq_of(number) {
            return Err(self.damaged(format!("feed block {number} starts with seq {}", block.first_seq())));
        }
        if let Some(cache) = self.cache
            && block.len() == FEED_BLOCK_LEN
        {
            cache.put(self.block_id(number), Arc::clone(&block));
        }
        Ok(block)
    }

    async fn page(&self, after: Seq, upto: Seq, limit: usize) -> Result<Page, Error> {
        let mut page = Page { from: after.next(), to: after, ..Page::default() };
        let blocks_max = limit.div_ceil(FEED_BLOCK_LEN) + 1;
        for read in 0..blocks_max.max(EMPTY_BLOCKS_MAX) {
            if page.to >= upto || page.shown >= limit || (read >= blocks_max && page.shown > 0) {
                break;
            }
            let first = page.to.next();
            let number = block_of(first);
            let block = self.block(number).await?;
            let begin = index_of(first);
            let wanted =
                usize::try_from(upto.since(first)).map_or(FEED_BLOCK_LEN, |more| more.saturating_add(begin + 1).min(FEED_BLOCK_LEN));
            if block.len() < wanted {
                return Err(self.damaged(format!("feed block {number} ends before seq {}", first_seq_of(number).plus(wanted as u64 - 1))));
            }
            let mut end = begin;
            while end < wanted {
                let shown = block.shown(end);
                if shown && page.shown == limit {
                    break;
                }
                page.shown += usize::from(shown);
                end += 1;
            }
            let part = block.elements(begin, end);
            if !part.is_empty() {
                page.parts.push(part);
            }
            page.to = block.first_seq().plus(end as u64 - 1);
            page.last_recorded_at_ms = block.recorded_at(end - 1);
        }
        Ok(page)
    }

    async fn seq_at(&self, at_ms: i64, upto: Seq) -> Result<Seq, Error> {
        if upto == Seq(0) {
            return Ok(Seq(0));
        }
        self.bisect(at_ms, upto, (0, block_of(upto) + 1), None).await
    }

    async fn recent_seq_at(&self, at_ms: i64, upto: Seq) -> Result<Seq, Error> {
        if upto == Seq(0) {
            return Ok(Seq(0));
        }
        let (mut high, mut step) = (block_of(upto) + 1, 1_u64);
        while high > 0 {
            let number = high.saturating_sub(step);
            let block = self.block(number).await?;
            if block.recorded_at(0) <= at_ms {
                return self.bisect(at_ms, upto, (number + 1, high), Some(block)).await;
            }
            high = number;
            step = step.saturating_mul(2);
        }
        Ok(Seq(0))
    }

    /// The last seq up to a time. Blocks below `low` start at or before it, those from `high` on after it; `last` is the block before `low`, `None` for none.
    async fn bisect(&self, at_ms: i64, upto: Seq, (mut low, mut high): (u64, u64), mut last: Option<Arc<FeedBlock>>) -> Result<Seq, Error> {
        while low < high {
            let middle = low + (high - low) / 2;
            let block = self.block(middle).await?;
            if block.recorded_at(0) <= at_ms {
                low = middle + 1;
                last = Some(block);
            } else {
                high = middle;
            }
        }
        let Some(block) = last else { return Ok(Seq(0)) };
        let (mut begin, mut end) = (1, block.len());
        while begin < end {
            let middle = begin + (end - begin) / 2;
            if block.recorded_at(middle) <= at_ms {
                begin = middle + 1;
            } else {
                end = middle;
            }
        }
        Ok(block.first_seq().plus(begin as u64 - 1).min(upto))
    }

    fn damaged(&self, reason: String) -> Error {
        Error::Damaged { table: self.table.name.to_owned(), reason }
    }
}

#[cfg(test)]
mod tests;
