//! What is cached of the feeds of all services.

use std::any::Any;
use std::collections::HashMap;
use std::sync::{Arc, Mutex, PoisonError};

use operation::context::Part;
use schemas::views::records::{Record, RecordTables};
use view_store::View;
use view_store::feed::{FeedCache, FeedReader};

use crate::Source;
use crate::names::Names;
use crate::through::Completeness;

/// What is cached of all services' feeds.
#[derive(Default)]
pub struct Feeds {
    blocks: Arc<FeedCache>,
    completeness: Mutex<HashMap<&'static str, Arc<Completeness>>>,
    /// [`Names`] of each service's records.
    names: Mutex<HashMap<&'static str, Arc<dyn Any + Send + Sync>>>,
}

impl Part for Feeds {}

impl Feeds {
    /// A reader of a service's feed, through the cache.
    #[must_use]
    pub fn reader(&self, source: &Source, view: Arc<dyn View>) -> FeedReader {
        FeedReader::new(view, source.feed, Arc::clone(&self.blocks))
    }

    /// How complete a service's data is, followed through one generation of its view.
    pub(crate) fn completeness(&self, source: &Source, generation: u64) -> Arc<Completeness> {
        let mut all = self.completeness.lock().unwrap_or_else(PoisonError::into_inner);
        let known = all.entry(source.service).or_insert_with(|| Arc::new(Completeness::new(*source, generation)));
        if known.generation() != generation {
            *known = Arc::new(Completeness::new(*source, generation));
        }
        Arc::clone(known)
    }
}

impl Feeds {
    /// The names that a service's records have, followed through one generation of its view.
    pub fn names<R: Record>(&self, source: &Source, tables: &'static RecordTables, generation: u64) -> Arc<Names<R>> {
        let mut all = self.names.lock().unwrap_or_else(PoisonError::into_inner);
        let known = all.get(source.service).and_then(|known| Arc::clone(known).downcast::<Names<R>>().ok());
        if let Some(known) = known.filter(|known| known.generation() == generation) {
            return known;
        }
        let fresh = Arc::new(Names::new(tables, generation));
        all.insert(source.service, Arc::clone(&fresh) as Arc<dyn Any + Send + Sync>);
        fresh
    }
}
