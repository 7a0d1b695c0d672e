//! The cache of the feeds of all services.

use std::any::{Any, TypeId};
use std::collections::HashMap;
use std::sync::{Arc, Mutex, PoisonError};

use operation::context::Part;
use view_store::View;
use view_store::feed::{FeedCache, FeedReader};

use crate::Source;

/// A cached value for one generation of a service's view, and for what is hidden in it.
struct CachedValue {
    generation: (u64, u64),
    value: Arc<dyn Any + Send + Sync>,
}

/// The cache of the feeds of all services: blocks of changes, and values that are derived from one generation of a view.
#[derive(Default)]
pub struct Feeds {
    blocks: Arc<FeedCache>,
    /// One value per type and service.
    cached: Mutex<HashMap<(&'static str, TypeId), CachedValue>>,
}

impl Part for Feeds {}

impl Feeds {
    /// A reader of a service's feed that uses the cache.
    #[must_use]
    pub fn reader(&self, source: &Source, view: Arc<dyn View>) -> FeedReader {
        FeedReader::new(view, source.feed, Arc::clone(&self.blocks))
    }

    /// The cached value of a type for one generation of a service's view. A value of another generation is replaced.
    pub(crate) fn cached_for<T: Send + Sync + 'static>(&self, source: &Source, view: &dyn View, make: impl FnOnce() -> T) -> Arc<T> {
        let generation = (view.generation(), view.rendition());
        let mut all = self.cached.lock().unwrap_or_else(PoisonError::into_inner);
        let key = (source.service, TypeId::of::<T>());
        let known = all.get(&key).filter(|known| known.generation == generation);
        if let Some(value) = known.and_then(|known| Arc::clone(&known.value).downcast::<T>().ok()) {
            return value;
        }
        let value = Arc::new(make());
        all.insert(key, CachedValue { generation, value: Arc::clone(&value) as Arc<dyn Any + Send + Sync> });
        value
    }
}
