//! Follows a feed for a structure in memory that a process builds from its changes and keeps up to date, such as an index for searches.
//!
//! Promise: a structure never mixes two logs. A new generation of the view is shown to it, so that it can compare its last change.

use std::sync::Arc;
use std::time::Duration;

use schemas::position::Seq;
use schemas::tables::{Table, ViewDef};
use view_store::feed::{FeedBlock, FeedCache, FeedReader};
use view_store::{Checkpoint, Error, View, ViewStore};

/// Follows the feed of one view through its generations.
pub struct Follower<'a> {
    store: &'a dyn ViewStore,
    def: &'static ViewDef,
    feed: &'static Table,
    /// The generation that was opened last.
    generation: Option<u64>,
}

/// The live generation of the view that is followed.
pub struct Opened {
    /// The generation.
    pub view: Arc<dyn View>,
    /// Whether no generation was opened before.
    pub is_first: bool,
    /// Whether another generation was opened before, or none.
    pub is_new: bool,
}

impl<'a> Follower<'a> {
    /// Creates a follower of a view and its feed table. Nothing is read yet.
    #[must_use]
    pub fn new(store: &'a dyn ViewStore, def: &'static ViewDef, feed: &'static Table) -> Self {
        Self { store, def, feed, generation: None }
    }

    /// Waits until the view is served, and opens its live generation.
    ///
    /// # Errors
    /// When it cannot be opened.
    pub async fn open(&mut self) -> Result<Opened, Error> {
        self.store.served(&[self.def.name]).await;
        let view = self.store.live(self.def).await?;
        let before = self.generation.replace(view.generation());
        Ok(Opened { is_first: before.is_none(), is_new: before != Some(view.generation()), view })
    }

    /// Returns a reader of the feed. It caches no block: each is read once, and would only evict blocks that callers read.
    #[must_use]
    pub fn reader(&self, view: &Arc<dyn View>) -> FeedReader {
        FeedReader::new(Arc::clone(view), self.feed, Arc::new(FeedCache::new(0)))
    }

    /// Returns the block of the last change of a structure; `None` if the view has fewer changes, and is thus of another log.
    ///
    /// # Errors
    /// When rows cannot be read.
    pub async fn block(&self, view: &Arc<dyn View>, last: Seq) -> Result<Option<Arc<FeedBlock>>, Error> {
        if view.checkpoint().await?.seq < last {
            return Ok(None);
        }
        self.reader(view).block(last).await.map(Some)
    }
}

impl Opened {
    /// Waits until the view has changes after a checkpoint or is replaced by another generation, but no longer than `at_most`.
    ///
    /// # Errors
    /// When the view cannot be read.
    pub async fn wait_past(&self, checkpoint: &Checkpoint, at_most: Duration) -> Result<(), Error> {
        match tokio::time::timeout(at_most, self.view.wait_past(checkpoint)).await {
            Ok(Ok(_) | Err(Error::Gone { .. })) | Err(_) => Ok(()),
            Ok(Err(error)) => Err(error),
        }
    }
}

#[cfg(test)]
mod tests {
    use schemas::views::recalls::{FEED, VIEW};

    use super::*;
    use crate::testing::{Chance, World, fill};

    /// Proves that a follower says which generations are new, that a change above the view is of another log, and that a view which has more changes
    /// is not waited for.
    #[tokio::test]
    async fn generations_are_new_once() {
        let mut world = World::new().await;
        fill(&mut world, &mut Chance(2), 10, 10).await;
        let store = Arc::clone(&world.store);
        let mut follower = Follower::new(&*store, &VIEW, &FEED);
        let first = follower.open().await.unwrap();
        assert!(first.is_first && first.is_new);
        let last = first.view.checkpoint().await.unwrap().seq;
        assert!(follower.block(&first.view, last).await.unwrap().is_some());
        assert!(follower.block(&first.view, last.next()).await.unwrap().is_none());
        first.wait_past(&Checkpoint::default(), Duration::MAX).await.unwrap();
        let again = follower.open().await.unwrap();
        assert!(!again.is_first && !again.is_new);
        world.rebuild().await;
        let swapped = follower.open().await.unwrap();
        assert!(!swapped.is_first && swapped.is_new);
    }
}
