//! Full blocks, read and checked, kept in memory up to a number of bytes.

use std::collections::HashMap;
use std::sync::{Arc, Mutex, PoisonError};

use super::FeedBlock;

/// The default size: enough for the newest hundred thousand changes of some 300 bytes.
const DEFAULT_BYTES: usize = 32 * 1024 * 1024;
/// At most this many blocks, however small: finding the oldest looks at all of them.
const BLOCKS_MAX: usize = 4_096;

/// Feed table, generation, block number.
pub(super) type BlockId = (&'static str, u64, u64);

/// A cache of full blocks; the ones used longest ago go first. Full blocks never change, so nothing in it grows stale.
#[derive(Debug)]
pub struct FeedCache {
    bytes_max: usize,
    inner: Mutex<Inner>,
}

#[derive(Debug, Default)]
struct Inner {
    blocks: HashMap<BlockId, (Arc<FeedBlock>, u64)>,
    bytes: usize,
    /// Counts uses; a block remembers its last.
    uses: u64,
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
        Self { bytes_max, inner: Mutex::default() }
    }

    /// The bytes of the blocks held.
    #[must_use]
    pub fn size_bytes(&self) -> usize {
        self.inner.lock().unwrap_or_else(PoisonError::into_inner).bytes
    }

    pub(super) fn get(&self, id: &BlockId) -> Option<Arc<FeedBlock>> {
        let mut inner = self.inner.lock().unwrap_or_else(PoisonError::into_inner);
        inner.uses += 1;
        let uses = inner.uses;
        let (block, used) = inner.blocks.get_mut(id)?;
        *used = uses;
        Some(Arc::clone(block))
    }

    pub(super) fn put(&self, id: BlockId, block: Arc<FeedBlock>) {
        let size = block.size_bytes();
        if size > self.bytes_max {
            return;
        }
        let mut inner = self.inner.lock().unwrap_or_else(PoisonError::into_inner);
        inner.uses += 1;
        let uses = inner.uses;
        inner.bytes += size;
        if let Some((before, _)) = inner.blocks.insert(id, (block, uses)) {
            inner.bytes -= before.size_bytes();
        }
        while inner.bytes > self.bytes_max || inner.blocks.len() > BLOCKS_MAX {
            let oldest = inner.blocks.iter().min_by_key(|(_, (_, used))| *used).map(|(id, _)| *id);
            let Some((gone, _)) = oldest.and_then(|id| inner.blocks.remove(&id)) else { break };
            inner.bytes -= gone.size_bytes();
        }
    }
}
