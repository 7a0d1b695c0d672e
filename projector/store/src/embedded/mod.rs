//! The view store in the data directory, on an LSM storage engine: no set-up, one process.
//!
//! An acknowledged commit survives a kill of the process. It is handed to the operating system but not synced: a power cut may lose the
//! newest commits, each as a whole, and they are applied again from the log. A swap is synced. README.md describes the path of one row.

mod coordination;
mod database;
mod failure;
mod tuning;
mod view;

use std::collections::HashMap;
use std::path::Path;
use std::sync::{Arc, Mutex, RwLock, Weak};

use async_trait::async_trait;
use schemas::tables::ViewDef;

use self::database::Core;
use self::failure::{closed, lost_task, unpoisoned};
pub use self::tuning::Options;
use self::view::EmbeddedView;
use crate::store::{Coordination, Error, View, ViewStore};

/// The generations of one view that the store itself holds.
#[derive(Default)]
struct Slot {
    live: Option<Arc<EmbeddedView>>,
    rebuilt: Option<Arc<EmbeddedView>>,
    /// The highest generation that was opened; a process never assigns a number twice.
    last: u64,
}

/// The state that threads for blocking work share.
struct Shared {
    core: Arc<RwLock<Option<Arc<Core>>>>,
    slots: RwLock<HashMap<&'static str, Slot>>,
    /// Every generation that was returned to a caller, so that closing reaches those that readers still hold.
    handed_out: Mutex<Vec<Weak<EmbeddedView>>>,
    /// Held while generations are created, swapped or closed. Readers of `slots` do not wait for it.
    changing: Mutex<()>,
}

/// The view store in a data directory. Only one can be open on a directory at a time.
pub struct EmbeddedStore {
    shared: Arc<Shared>,
    coordination: coordination::Rows,
}

impl EmbeddedStore {
    /// Opens the store in a directory; creates it if there is none. Unfinished rebuilds are deleted.
    ///
    /// Blocks on the disk: after a crash, up to [`Options::max_journaling_bytes`] of the journal are replayed.
    ///
    /// # Errors
    /// [`Error::Unavailable`] if the directory cannot be used or another process has it open; [`Error::Damaged`] if its files differ from
    /// what was written. Both name the directory. Deleting it loses nothing but the coordination rows: views are rebuilt from the log.
    pub fn open(dir: &Path, options: Options) -> Result<Arc<Self>, Error> {
        let core = Arc::new(RwLock::new(Some(Arc::new(Core::open(dir, options.clamped())?))));
        let coordination = coordination::Rows::new(Arc::clone(&core));
        let shared = Shared { core, slots: RwLock::default(), handed_out: Mutex::default(), changing: Mutex::default() };
        Ok(Arc::new(Self { shared: Arc::new(shared), coordination }))
    }

    async fn run<T, F>(&self, change: F) -> Result<T, Error>
    where
        T: Send + 'static,
        F: FnOnce(&Shared) -> Result<T, Error> + Send + 'static,
    {
        let shared = Arc::clone(&self.shared);
        tokio::task::spawn_blocking(move || change(&shared)).await.map_err(lost_task)?
    }
}

impl Shared {
    fn core(&self) -> Result<Arc<Core>, Error> {
        unpoisoned(self.core.read()).clone().ok_or_else(closed)
    }

    fn cached_live(&self, def: &'static ViewDef) -> Option<Arc<EmbeddedView>> {
        unpoisoned(self.slots.read()).get(def.name)?.live.clone()
    }

    fn open_generation(&self, core: &Arc<Core>, def: &'static ViewDef, generation: u64) -> Result<Arc<EmbeddedView>, Error> {
        let view = Arc::new(EmbeddedView::open(core, def, generation)?);
        let mut handed_out = unpoisoned(self.handed_out.lock());
        handed_out.retain(|view| view.strong_count() > 0);
        handed_out.push(Arc::downgrade(&view));
        Ok(view)
    }

    /// Returns the live generation; the caller holds `changing`.
    fn live(&self, core: &Arc<Core>, def: &'static ViewDef) -> Result<Arc<EmbeddedView>, Error> {
        if let Some(view) = self.cached_live(def) {
            return Ok(view);
        }
        let generation = match core.live_generation(def.name)? {
            Some(generation) => generation,
            None => {
                core.set_live_generation(def.name, 1)?;
                1
            }
        };
        let view = self.open_generation(core, def, generation)?;
        let mut slots = unpoisoned(self.slots.write());
        let slot = slots.entry(def.name).or_default();
        slot.last = slot.last.max(generation);
        slot.live = Some(Arc::clone(&view));
        Ok(view)
    }

    fn begin_rebuild(&self, def: &'static ViewDef) -> Result<Arc<EmbeddedView>, Error> {
        let _changing = unpoisoned(self.changing.lock());
        let core = self.core()?;
        self.live(&core, def)?;
        let (leftover, generation) = {
            let mut slots = unpoisoned(self.slots.write());
            let slot = slots.entry(def.name).or_default();
            slot.last += 1;
            (slot.rebuilt.take(), slot.last)
        };
        if let Some(leftover) = leftover {
            leftover.drop_rows();
        }
        let view = self.open_generation(&core, def, generation)?;
        unpoisoned(self.slots.write()).entry(def.name).or_default().rebuilt = Some(Arc::clone(&view));
        Ok(view)
    }

    fn swap(&self, def: &'static ViewDef, generation: u64, is_it: impl Fn(&Arc<EmbeddedView>) -> bool) -> Result<(), Error> {
        let _changing = unpoisoned(self.changing.lock());
        let core = self.core()?;
        {
            let slots = unpoisoned(self.slots.read());
            let slot = slots.get(def.name);
            if slot.and_then(|slot| slot.live.as_ref()).is_some_and(&is_it) {
                return Ok(());
            }
            if !slot.and_then(|slot| slot.rebuilt.as_ref()).is_some_and(&is_it) {
                return Err(Error::Gone { view: def.name.to_owned(), generation });
            }
        }
        core.set_live_generation(def.name, generation)?;
        let old = {
            let mut slots = unpoisoned(self.slots.write());
            let slot = slots.entry(def.name).or_default();
            let rebuilt = slot.rebuilt.take();
            std::mem::replace(&mut slot.live, rebuilt)
        };
        if let Some(old) = old {
            old.retire();
        }
        Ok(())
    }

    fn close(&self) -> Result<(), Error> {
        let _changing = unpoisoned(self.changing.lock());
        let Some(core) = unpoisoned(self.core.write()).take() else { return Ok(()) };
        let flushed = core.flush();
        unpoisoned(self.slots.write()).clear();
        for view in unpoisoned(self.handed_out.lock()).drain(..).filter_map(|view| view.upgrade()) {
            view.close();
        }
        flushed
    }
}

#[async_trait]
impl ViewStore for EmbeddedStore {
    async fn live(&self, def: &'static ViewDef) -> Result<Arc<dyn View>, Error> {
        if let Some(view) = self.shared.cached_live(def) {
            return Ok(view);
        }
        let make = move |shared: &Shared| {
            let _changing = unpoisoned(shared.changing.lock());
            shared.live(&shared.core()?, def)
        };
        Ok(self.run(make).await?)
    }

    async fn begin_rebuild(&self, def: &'static ViewDef) -> Result<Arc<dyn View>, Error> {
        Ok(self.run(move |shared| shared.begin_rebuild(def)).await?)
    }

    async fn swap(&self, rebuilt: &Arc<dyn View>) -> Result<(), Error> {
        let rebuilt = Arc::clone(rebuilt);
        self.run(move |shared| {
            let is_it = |own: &Arc<EmbeddedView>| std::ptr::addr_eq(Arc::as_ptr(own), Arc::as_ptr(&rebuilt));
            shared.swap(rebuilt.def(), rebuilt.generation(), is_it)
        })
        .await
    }

    fn coordination(&self) -> &dyn Coordination {
        &self.coordination
    }

    async fn close(&self) -> Result<(), Error> {
        self.run(Shared::close).await
    }
}

#[cfg(test)]
mod tests;
