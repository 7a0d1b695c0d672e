//! A cache of full blocks, decoded and checked, of a limited size in bytes.

use std::sync::Arc;

use quick_cache::Weighter;
use quick_cache::sync::Cache;

use super::FeedBlock;

/// The default size: enough for the newest hundred thousand changes of about 700 bytes.
const DEFAULT_BYTES: usize = 96 * 1024 * 1024;
/// The assumed size of a block when the number of cache entries is estimated.
const BLOCK_BYTES_USUAL: usize = 32 * 1024;

/// Feed table, generation, rendition and block number.
pub(super) type BlockId = (&'static str, u64, u64, u64);

/// A cache of full blocks. Full blocks never change, so that an entry never becomes stale.
///
/// A reader of a whole feed does not evict blocks that others read repeatedly.
#[derive(Debug)]
pub struct FeedCache {
    blocks: Cache<BlockId, Arc<FeedBlock>, Bytes>,
}

/// Weighs a block by its bytes.
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
    /// Creates a cache for at most this many bytes of blocks.
    #[must_use]
    pub fn new(bytes_max: usize) -> Self {
        Self { blocks: Cache::with_weighter(bytes_max / BLOCK_BYTES_USUAL, bytes_max as u64, Bytes) }
    }

    /// Returns the bytes of the cached blocks.
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
