//! A view that is always the live generation: for those who keep a view for as long as the process runs, while generations are replaced.

use std::sync::{Arc, PoisonError, RwLock};

use async_trait::async_trait;
use bytes::Bytes;
use schemas::tables::{Key, Table, ViewDef, Write};

use crate::store::{Awaited, Checkpoint, Error, Range, Scan, Span, View, ViewStore};

/// The live generation of a view.
pub struct FollowingView {
    store: Arc<dyn ViewStore>,
    def: &'static ViewDef,
    /// Whether the view is also returned while it is rebuilt.
    is_projector: bool,
    last: RwLock<Arc<dyn View>>,
}

impl FollowingView {
    /// Follows a view for those who fill it: also while it is rebuilt.
    ///
    /// # Errors
    /// When the store fails.
    pub async fn for_projector(store: &Arc<dyn ViewStore>, def: &'static ViewDef) -> Result<Arc<dyn View>, Error> {
        Self::open(store, def, true).await
    }

    /// Follows a view for readers: while it is rebuilt, reading it fails with [`Error::Rebuilding`].
    ///
    /// # Errors
    /// When the store fails.
    pub async fn for_readers(store: &Arc<dyn ViewStore>, def: &'static ViewDef) -> Result<Arc<dyn View>, Error> {
        Self::open(store, def, false).await
    }

    async fn open(store: &Arc<dyn ViewStore>, def: &'static ViewDef, is_projector: bool) -> Result<Arc<dyn View>, Error> {
        let last = RwLock::new(store.live_to_project(def).await?);
        Ok(Arc::new(Self { store: Arc::clone(store), def, is_projector, last }))
    }

    fn last(&self) -> Arc<dyn View> {
        Arc::clone(&self.last.read().unwrap_or_else(PoisonError::into_inner))
    }

    async fn now(&self) -> Result<Arc<dyn View>, Error> {
        let live = if self.is_projector { self.store.live_to_project(self.def).await? } else { self.store.live(self.def).await? };
        if !Arc::ptr_eq(&self.last(), &live) {
            *self.last.write().unwrap_or_else(PoisonError::into_inner) = Arc::clone(&live);
        }
        Ok(live)
    }
}

#[async_trait]
impl View for FollowingView {
    fn def(&self) -> &'static ViewDef {
        self.def
    }

    fn generation(&self) -> u64 {
        self.last().generation()
    }

    async fn checkpoint(&self) -> Result<Checkpoint, Error> {
        self.now().await?.checkpoint().await
    }

    /// Refused: see [`View::pinned`].
    async fn commit(&self, _: Vec<Write>, _: &Checkpoint) -> Result<(), Error> {
        Err(Error::Unavailable { what: format!("view {} is written through one of its generations", self.def.name), source: None })
    }

    async fn get(&self, table: &'static Table, key: &Key) -> Result<Option<Bytes>, Error> {
        self.now().await?.get(table, key).await
    }

    async fn get_many(&self, table: &'static Table, keys: &[Key]) -> Result<Vec<Option<Bytes>>, Error> {
        self.now().await?.get_many(table, keys).await
    }

    async fn range(&self, table: &'static Table, range: Range) -> Result<Vec<(Key, Bytes)>, Error> {
        self.now().await?.range(table, range).await
    }

    fn scan(&self, table: &'static Table, span: Span) -> Box<dyn Scan> {
        self.last().scan(table, span)
    }

    fn report_damage(&self, reason: &str) {
        self.last().report_damage(reason);
    }

    async fn pinned(&self) -> Result<Option<Arc<dyn View>>, Error> {
        Ok(Some(self.now().await?))
    }

    async fn wait_past(&self, seen: &Checkpoint) -> Result<Checkpoint, Error> {
        loop {
            match self.now().await?.wait_past(seen).await {
                Err(Error::Gone { .. }) => {}
                result => return result,
            }
        }
    }

    async fn wait_for_any(&self, awaited: &[Awaited]) -> Result<(), Error> {
        loop {
            match self.now().await?.wait_for_any(awaited).await {
                Err(Error::Gone { .. }) => {}
                result => return result,
            }
        }
    }

    fn wake(&self) {
        self.last().wake();
    }
}
