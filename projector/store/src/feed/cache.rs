//! Full blocks, read and checked, kept in memory up to a number of bytes.

use std::sync::Arc;

use quick_cache::Weighter;
use quick_cache::sync::Cache;

use super::FeedBlock;

/// The default size: enough for the newest hundred thousand changes of some 700 bytes.
const DEFAULT_BYTES: usize = 96 * 1024 * 1024;
/// What a block is taken to weigh when room for the number of them is made.
const BLOCK_BYTES_USUAL: usize = 32 * 1024;

/// Feed table, generation, block number.
pub(super) type BlockId = (&'static str, u64, u64);

/// A cache of full blocks. Full blocks never change, so nothing in it grows stale.
///
/// Whoever reads a whole feed once does not push out what others read again and again.
#[derive(Debug)]
pub struct FeedCache {
    blocks: Cache<BlockId, Arc<FeedBlock>, Bytes>,
}

/// A block weighs its bytes.
#[derive(Clone, Debug)]
struct Bytes;

impl Weighter<BlockId, Arc<FeedBlock>> for Bytes {
    fn weight(&self, _: &BlockId, block: &Arc<FeedBlock>) -> u64 {
        block.size_bytes() as u64
    }
}

impl Default for FeedCache {
    fn default() -> Self {
        Self::new(DEFAULT_BYTES)
    }
}

impl FeedCache {
    /// A cache of at most this many bytes of blocks.
    #[must_use]
    pub fn new(bytes_max: usize) -> Self {
        Self { blocks: Cache::with_weighter(bytes_max / BLOCK_BYTES_USUAL, bytes_max as u64, Bytes) }
    }

    /// The bytes of the blocks held.
    #[must_use]
    pub fn size_bytes(&self) -> usize {
        usize::try_from(self.blocks.weight()).unwrap_or(usize::MAX)
    }

    pub(super) fn get(&self, id: &BlockId) -> Option<Arc<FeedBlock>> {
        self.blocks.get(id)
    }

    pub(super) fn put(&self, id: BlockId, block: Arc<FeedBlock>) {
        self.blocks.insert(id, block);
    }
}
