//! The view store in the data directory, on an LSM storage engine: no set-up, one process.
//!
//! An acknowledged commit survives a kill of the process. It is handed to the operating system but not synced: a power cut may lose the
//! newest commits, each as a whole, and they are applied again from the log. A swap is synced. README.md describes the path of one row, and which
//! damage is noticed.

mod bounds;
mod coordination;
mod database;
mod failure;
mod manifest;
mod names;
mod opening;
mod seal;
mod tuning;
mod values;
mod view;

use std::collections::HashMap;
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, RwLock, Weak};
use std::time::{Duration, Instant};

use async_trait::async_trait;
use disk_files::library::wait_for_release;
use schemas::tables::ViewDef;

use self::database::Core;
use self::failure::{closed, lost_task, unpoisoned};
pub use self::tuning::Options;
use self::view::{EmbeddedView, Holder};
use crate::store::{Coordination, Error, View, ViewStore};

/// After what time an opening that failed is tried again: every request of a reader asks for it.
const REOPENING_INTERVAL: Duration = Duration::from_secs(1);

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
    dir: PathBuf,
    options: Options,
    core: Arc<RwLock<Option<Arc<Core>>>>,
    /// Whether the store was closed to be opened again, because the disk was full.
    is_reopening: AtomicBool,
    /// When it could not be opened again last.
    reopening_failed_at: Mutex<Option<Instant>>,
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
    /// [`Error::Unavailable`] if the directory cannot be used, another process has it open, or a newer version of this program wrote it; the error
    /// names the directory. Damaged files are no error: the views that they belong to are replaced by empty ones, see [`ViewStore::live`].
    pub fn open(dir: &Path, options: Options) -> Result<Arc<Self>, Error> {
        let options = options.clamped();
        let (core, values) = Core::open(dir, options.clone())?;
        let core = Arc::new(RwLock::new(Some(Arc::new(core))));
        let coordination = coordination::Rows::new(Arc::clone(&core), values);
        let shared = Shared {
            dir: dir.to_owned(),
            options,
            core,
            is_reopening: AtomicBool::new(false),
            reopening_failed_at: Mutex::default(),
            slots: RwLock::default(),
            handed_out: Mutex::default(),
            changing: Mutex::default(),
        };
        Ok(Arc::new(Self { shared: Arc::new(shared), coordination }))
    }

    /// Returns the live generation, complete or not.
    async fn current(&self, def: &'static ViewDef) -> Result<Arc<EmbeddedView>, Error> {
        self.reopen_if_needed().await?;
        if let Some(view) = self.shared.cached_live(def) {
            return Ok(view);
        }
        self.run(move |shared| {
            let _changing = unpoisoned(shared.changing.lock());
            shared.live(&shared.core()?, def)
        })
        .await
    }

    /// Opens the store again if a write met a full disk, and the disk has space now.
    async fn reopen_if_needed(&self) -> Result<(), Error> {
        if self.shared.is_reopening.load(Ordering::Acquire) || self.shared.core().is_ok_and(|core| core.can_reopen()) {
            self.run(|shared| shared.reopen()).await?;
        }
        Ok(())
    }

    async fn run<T, F>(&self, change: F) -> Result<T, Error>
    where
        T: Send + 'static,
        F: FnOnce(&Arc<Shared>) -> Result<T, Error> + Send + 'static,
    {
        let shared = Arc::clone(&self.shared);
        tokio::task::spawn_blocking(move || change(&shared)).await.map_err(lost_task)?
    }
}

impl Shared {
    fn core(&self) -> Result<Arc<Core>, Error> {
        unpoisoned(self.core.read()).clone().ok_or_else(closed)
    }

    /// Closes and opens the engine. Views that were handed out are gone: their holders get the live ones again.
    fn reopen(&self) -> Result<(), Error> {
        let _changing = unpoisoned(self.changing.lock());
        match unpoisoned(self.core.read()).as_ref() {
            // Another caller was faster.
            Some(core) if !core.can_reopen() => return Ok(()),
            None if !self.is_reopening.load(Ordering::Acquire) => return Err(closed()),
            _ => {}
        }
        let mut failed_at = unpoisoned(self.reopening_failed_at.lock());
        if failed_at.is_some_and(|at| at.elapsed() < REOPENING_INTERVAL) {
            let what = "the view store could not be opened again a moment ago, will retry".to_owned();
            return Err(Error::Unavailable { what, source: None });
        }
        let opened = self.close_and_open();
        *failed_at = opened.is_err().then(Instant::now);
        opened
    }

    /// As [`Self::reopen`], which holds `changing`.
    fn close_and_open(&self) -> Result<(), Error> {
        self.is_reopening.store(true, Ordering::Release);
        unpoisoned(self.slots.write()).clear();
        for view in unpoisoned(self.handed_out.lock()).drain(..).filter_map(|view| view.upgrade()) {
            view.release();
        }
        // The files are released with the last call that is running.
        drop(unpoisoned(self.core.write()).take());
        wait_for_release(&opening::store_dir(&self.dir)).map_err(|error| failure::opening(&self.dir, error))?;
        // A view that the store does not know any more would have to be filled.
        let options = Options { new_views_are_complete: false, ..self.options.clone() };
        let (core, _) = Core::open(&self.dir, options)?;
        *unpoisoned(self.core.write()) = Some(Arc::new(core));
        self.is_reopening.store(false, Ordering::Release);
        tracing::info!("the view store is open again and accepts rows");
        Ok(())
    }

    fn cached_live(&self, def: &'static ViewDef) -> Option<Arc<EmbeddedView>> {
        unpoisoned(self.slots.read()).get(def.name)?.live.clone()
    }

    fn open_generation(self: &Arc<Self>, core: &Arc<Core>, def: &'static ViewDef, generation: u64) -> Result<Arc<EmbeddedView>, Error> {
        let holder: Weak<Self> = Arc::downgrade(self);
        let view = Arc::new(EmbeddedView::open(core, def, generation, holder)?);
        let mut handed_out = unpoisoned(self.handed_out.lock());
        handed_out.retain(|view| view.strong_count() > 0);
        handed_out.push(Arc::downgrade(&view));
        Ok(view)
    }

    /// Returns the live generation; the caller holds `changing`.
    fn live(self: &Arc<Self>, core: &Arc<Core>, def: &'static ViewDef) -> Result<Arc<EmbeddedView>, Error> {
        if let Some(view) = self.cached_live(def) {
            return Ok(view);
        }
        let mut generation = match core.live_generation(def.name)? {
            Some(generation) => generation,
            None => {
                core.create_generation(def.name)?;
                1
            }
        };
        let view = match self.open_generation(core, def, generation) {
            Err(Error::Damaged { table, reason }) => {
                let reason = format!("{table}: {reason}");
                tracing::error!(view = def.name, reason, "the view is damaged and will be rebuilt from the log");
                generation += 1;
                core.replace_generation(def.name, generation, &reason)?;
                let view = self.open_generation(core, def, generation)?;
                core.delete_leftovers(Some(def.name))?;
                view
            }
            view => view?,
        };
        let mut slots = unpoisoned(self.slots.write());
        let slot = slots.entry(def.name).or_default();
        slot.last = slot.last.max(generation);
        slot.live = Some(Arc::clone(&view));
        Ok(view)
    }

    fn begin_rebuild(self: &Arc<Self>, def: &'static ViewDef) -> Result<Arc<EmbeddedView>, Error> {
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
            if let Some(rebuilt) = &rebuilt {
                rebuilt.complete();
            }
            std::mem::replace(&mut slot.live, rebuilt)
        };
        if let Some(old) = old {
            old.retire();
        }
        Ok(())
    }

    /// Drops a generation that is rebuilt. Its tables are deleted now, or with the last call that reads them.
    fn discard(&self, def: &'static ViewDef, is_it: impl Fn(&Arc<EmbeddedView>) -> bool) {
        let _changing = unpoisoned(self.changing.lock());
        let discarded = {
            let mut slots = unpoisoned(self.slots.write());
            slots.get_mut(def.name).and_then(|slot| slot.rebuilt.take_if(|rebuilt| is_it(rebuilt)))
        };
        if let Some(discarded) = discarded {
            discarded.drop_rows();
        }
    }

    /// Returns something of each live generation that has it, with the names of the views.
    fn of_live<T: Ord>(&self, value_of: impl Fn(&EmbeddedView) -> Option<T>) -> Vec<(&'static str, T)> {
        let slots = unpoisoned(self.slots.read());
        let mut all: Vec<_> = slots.iter().filter_map(|(name, slot)| Some((*name, value_of(slot.live.as_ref()?)?))).collect();
        all.sort_unstable();
        all
    }

    fn close(&self) -> Result<(), Error> {
        let _changing = unpoisoned(self.changing.lock());
        self.is_reopening.store(false, Ordering::Release);
        let Some(core) = unpoisoned(self.core.write()).take() else { return Ok(()) };
        let flushed = core.flush();
        unpoisoned(self.slots.write()).clear();
        for view in unpoisoned(self.handed_out.lock()).drain(..).filter_map(|view| view.upgrade()) {
            view.close();
        }
        flushed
    }
}

/// Whether a generation of the store is the one that a caller holds. Its number does not tell: a store that was opened again assigns numbers of rebuilds again.
fn is_same(held: &Arc<dyn View>) -> impl Fn(&Arc<EmbeddedView>) -> bool {
    move |own| std::ptr::addr_eq(Arc::as_ptr(own), Arc::as_ptr(held))
}

impl Holder for Shared {
    fn open_view(&self, (def, generation): (&'static ViewDef, u64)) -> Option<Arc<EmbeddedView>> {
        let slots = unpoisoned(self.slots.read());
        let slot = slots.get(def.name)?;
        [&slot.live, &slot.rebuilt].into_iter().flatten().find(|view| view.generation() == generation).cloned()
    }

    fn replace_damaged(self: Arc<Self>, def: &'static ViewDef, generation: u64, reason: &str) {
        let _changing = unpoisoned(self.changing.lock());
        if self.cached_live(def).is_none_or(|live| live.generation() != generation) {
            tracing::error!(view = def.name, generation, reason, "a generation of a view that is not served is damaged");
            return;
        }
        tracing::error!(view = def.name, reason, "the view is damaged and will be rebuilt from the log");
        let replaced = self.core().and_then(|core| {
            let next = unpoisoned(self.slots.write()).get_mut(def.name).map_or(generation, |slot| {
                slot.last += 1;
                slot.last
            });
            core.replace_generation(def.name, next, reason)?;
            self.open_generation(&core, def, next)
        });
        match replaced {
            Ok(view) => {
                let old = unpoisoned(self.slots.write()).entry(def.name).or_default().live.replace(view);
                if let Some(old) = old {
                    old.drop_rows();
                }
            }
            Err(error) => {
                tracing::error!(view = def.name, %error, "the damaged view cannot be replaced: restart the process, which rebuilds it");
            }
        }
    }

    fn finish_rebuild(&self, def: &'static ViewDef, generation: u64) -> Result<(), Error> {
        let _changing = unpoisoned(self.changing.lock());
        let Some(view) = self.cached_live(def).filter(|view| view.generation() == generation && view.incomplete().is_some()) else {
            return Ok(());
        };
        if view.rebuild_reason().is_some() {
            self.core()?.complete_generation(def.name, generation)?;
            tracing::info!(view = def.name, generation, "the view is complete and is served");
        }
        view.complete();
        Ok(())
    }
}

#[async_trait]
impl ViewStore for EmbeddedStore {
    async fn live(&self, def: &'static ViewDef) -> Result<Arc<dyn View>, Error> {
        let view = self.current(def).await?;
        match view.incomplete() {
            Some(reason) => Err(Error::Rebuilding { view: def.name.to_owned(), reason }),
            None => Ok(view),
        }
    }

    async fn live_to_project(&self, def: &'static ViewDef) -> Result<Arc<dyn View>, Error> {
        Ok(self.current(def).await?)
    }

    fn replaces_damaged_views(&self) -> bool {
        true
    }

    fn rebuilding(&self) -> Vec<(&'static str, String)> {
        self.shared.of_live(EmbeddedView::rebuild_reason)
    }

    fn unserved(&self) -> Vec<&'static str> {
        self.shared.of_live(EmbeddedView::incomplete).into_iter().map(|(view, _)| view).collect()
    }

    async fn begin_rebuild(&self, def: &'static ViewDef) -> Result<Arc<dyn View>, Error> {
        Ok(self.run(move |shared| shared.begin_rebuild(def)).await?)
    }

    async fn swap(&self, rebuilt: &Arc<dyn View>) -> Result<(), Error> {
        let rebuilt = Arc::clone(rebuilt);
        self.run(move |shared| shared.swap(rebuilt.def(), rebuilt.generation(), is_same(&rebuilt))).await
    }

    async fn discard(&self, rebuilt: &Arc<dyn View>) -> Result<(), Error> {
        let rebuilt = Arc::clone(rebuilt);
        self.run(move |shared| {
            shared.discard(rebuilt.def(), is_same(&rebuilt));
            Ok(())
        })
        .await
    }

    fn coordination(&self) -> &dyn Coordination {
        &self.coordination
    }

    async fn ready(&self) -> Result<(), Error> {
        self.reopen_if_needed().await?;
        self.shared.core().map_or(Ok(()), |core| core.check_writable())
    }

    async fn close(&self) -> Result<(), Error> {
        self.run(|shared| shared.close()).await
    }
}

#[cfg(test)]
mod tests;
