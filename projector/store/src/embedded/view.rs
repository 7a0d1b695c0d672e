//! One generation of one view on the embedded storage engine.
//!
//! Reads take a snapshot, so that a call sees whole commits only. A commit is one engine batch on a thread that may block on the disk; once
//! started it completes, even if the caller is cancelled. When a generation was replaced or dropped, its tables are deleted when the last
//! holder drops them.
//!
//! Every row is read with its checksum, and every table holds the number of the last commit that wrote to it, which must be the one that the store
//! remembers. A read that finds damage fails, and the store replaces the generation, so that the view is rebuilt.

use std::ops::Bound;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, OnceLock, RwLock, Weak};

use async_trait::async_trait;
use bytes::Bytes;
use disk_files::library::catch_panic;
use fjall::{Keyspace, PersistMode, Readable};
use schemas::tables::{Key, Table, ViewDef, Write};
use tokio::sync::watch;

use super::bounds::{Bounds, bounds_are_empty, bounds_of, span_bounds};
use super::database::{Batch, Core, Positions};
use super::failure::{closed, engine, lost_task, unpoisoned};
use super::names::{META, checkpoint_key, keyspace_name, positions_key};
use super::seal::Seal;
use crate::key::{append_whole, decode, encode_whole};
use crate::store::{Awaited, Checkpoint, Error, Range, Scan, Span, View};

/// The most rows that are read on the caller's thread; larger reads run on a thread that may block.
const ROWS_INLINE_MAX: usize = 256;
/// How many scanned rows a point read counts as.
const POINT_READ_ROWS: usize = 16;
/// The key under which a table holds the number of the last commit that wrote to it. Keys of rows are longer.
const POSITION: &[u8] = &[0];

/// The state that waiters watch.
#[derive(Clone)]
struct Progress {
    checkpoint: Arc<Checkpoint>,
    /// Whether no commit can follow: the generation was replaced, dropped or closed.
    ended: bool,
}

/// The open tables of a generation. They are deleted when dropped, if the generation was retired.
struct Tables {
    core: Arc<Core>,
    def: &'static ViewDef,
    generation: u64,
    tables: Vec<OpenTable>,
    retired: AtomicBool,
    /// Held during a commit and while the generation is retired: one writer at a time, none afterwards.
    writing: Mutex<Positions>,
}

/// A table with its rows and the checksums of its rows.
struct OpenTable {
    table: &'static Table,
    /// The name of its keyspace.
    name: String,
    /// Created with the first row: creating one costs about twenty syncs, and many tables stay empty.
    keyspace: OnceLock<Keyspace>,
    seal: Seal,
}

impl Drop for Tables {
    fn drop(&mut self) {
        if !self.retired.load(Ordering::Acquire) {
            return;
        }
        self.tables.clear();
        if let Err(error) = self.core.delete_generation(self.def.name, self.generation) {
            // The next opening of the directory tries again.
            tracing::warn!(view = self.def.name, generation = self.generation, %error, "cannot delete an old generation, will retry when the store is opened");
        }
    }
}

/// Whether the tables are accessible.
enum State {
    Open(Arc<Tables>),
    Gone,
    Closed,
}

/// What a generation asks of the store that holds it.
pub(super) trait Holder: Send + Sync {
    /// Returns an open generation of a view.
    fn open_view(&self, view: (&'static ViewDef, u64)) -> Option<Arc<EmbeddedView>>;

    /// Replaces a damaged generation by an empty one, which is served when it is complete.
    fn replace_damaged(self: Arc<Self>, def: &'static ViewDef, generation: u64, reason: &str);

    /// Records that the live generation of a view has everything that the log has.
    ///
    /// # Errors
    /// When the store is closed, or cannot write.
    fn finish_rebuild(&self, def: &'static ViewDef, generation: u64) -> Result<(), Error>;
}

/// One generation of a view.
pub(super) struct EmbeddedView {
    def: &'static ViewDef,
    generation: u64,
    state: RwLock<State>,
    progress: Arc<watch::Sender<Progress>>,
    /// Why the generation does not have everything that the log has; `None` if it has.
    incomplete: RwLock<Option<String>>,
    /// Whether nobody has applied yet what the log had when the store was opened.
    is_behind: AtomicBool,
    /// Which damage was found in the generation. It is not read any more.
    damage: OnceLock<String>,
    holder: Weak<dyn Holder>,
}

impl EmbeddedView {
    /// Opens the tables of a generation that have rows.
    pub(super) fn open(core: &Arc<Core>, def: &'static ViewDef, generation: u64, holder: Weak<dyn Holder>) -> Result<Self, Error> {
        let mut tables = Vec::with_capacity(def.tables.len());
        let positions = core.positions(def.name, generation)?;
        for table in def.tables {
            let name = keyspace_name(def.name, generation, table.name)?;
            let keyspace = core.open_existing_table(&name, table)?.map_or_else(OnceLock::new, OnceLock::from);
            let open = OpenTable { table, keyspace, seal: Seal::new(&name), name };
            let (found, expected) = (open.position()?, positions.of(table.name));
            if found < expected {
                return Err(open.damaged(&format!("it ends with commit {found}, but commit {expected} wrote to it")));
            }
            tables.push(open);
        }
        let checkpoint = Arc::new(core.checkpoint(def.name, generation)?);
        let incomplete = RwLock::new(core.incomplete(def.name, generation)?);
        let tables =
            Tables { core: Arc::clone(core), def, generation, tables, retired: AtomicBool::new(false), writing: Mutex::new(positions) };
        let progress = Arc::new(watch::Sender::new(Progress { checkpoint, ended: false }));
        let state = RwLock::new(State::Open(Arc::new(tables)));
        let is_behind = AtomicBool::new(core.options.caught_up_first.contains(&def.name));
        Ok(Self { def, generation, state, progress, incomplete, is_behind, damage: OnceLock::new(), holder })
    }

    /// Returns why the generation is rebuilt; `None` if it is not.
    pub(super) fn rebuild_reason(&self) -> Option<String> {
        self.damage.get().cloned().or_else(|| unpoisoned(self.incomplete.read()).clone())
    }

    /// Returns why the generation must not be served; `None` if it may be.
    pub(super) fn incomplete(&self) -> Option<String> {
        let behind = || self.is_behind.load(Ordering::Acquire).then(|| "it has not caught up with the log yet".to_owned());
        self.rebuild_reason().or_else(behind)
    }

    /// Records that the generation has everything that the log has.
    pub(super) fn complete(&self) {
        *unpoisoned(self.incomplete.write()) = None;
        self.is_behind.store(false, Ordering::Release);
    }

    /// Passes on the result of a read. Damage is reported to the store, which replaces the generation.
    fn checked<T>(&self, result: Result<T, Error>) -> Result<T, Error> {
        match result {
            Err(Error::Damaged { table, reason }) => {
                self.report(format!("{table}: {reason}"));
                Err(self.rebuilding())
            }
            result => result,
        }
    }

    /// Ends reading of the generation, and lets the store replace it.
    fn report(&self, reason: String) {
        if self.damage.set(reason.clone()).is_err() {
            return;
        }
        let (holder, def, generation) = (Weak::clone(&self.holder), self.def, self.generation);
        let replace = move || {
            if let Some(holder) = holder.upgrade() {
                holder.replace_damaged(def, generation, &reason);
            }
        };
        // Replacing writes to the disk.
        match tokio::runtime::Handle::try_current() {
            Ok(runtime) => drop(runtime.spawn_blocking(replace)),
            Err(_) => replace(),
        }
    }

    fn rebuilding(&self) -> Error {
        Error::Rebuilding { view: self.def.name.to_owned(), reason: self.incomplete().unwrap_or_default() }
    }

    /// Refuses further commits. Readers continue, and the tables are deleted after the last of them.
    pub(super) fn retire(&self) {
        if let State::Open(tables) = &*unpoisoned(self.state.read()) {
            let _writing = unpoisoned(tables.writing.lock());
            tables.retired.store(true, Ordering::Release);
        }
        self.end();
    }

    /// Retires the generation and ends access after the calls in progress.
    pub(super) fn drop_rows(&self) {
        self.retire();
        self.leave(State::Gone);
    }

    /// Ends access after the calls in progress, because the store is opened again.
    pub(super) fn release(&self) {
        self.leave(State::Gone);
        self.end();
    }

    /// Releases the files.
    pub(super) fn close(&self) {
        self.leave(State::Closed);
        self.end();
    }

    fn leave(&self, next: State) {
        let previous = {
            let mut state = unpoisoned(self.state.write());
            if !matches!(*state, State::Open(_)) {
                return;
            }
            std::mem::replace(&mut *state, next)
        };
        // Deleting files takes time and must not happen under the lock.
        drop(previous);
    }

    fn end(&self) {
        self.progress.send_modify(|progress| progress.ended = true);
    }

    fn tables(&self) -> Result<Arc<Tables>, Error> {
        if self.damage.get().is_some() && !matches!(*unpoisoned(self.state.read()), State::Gone) {
            return Err(self.rebuilding());
        }
        match &*unpoisoned(self.state.read()) {
            State::Open(tables) => Ok(Arc::clone(tables)),
            State::Gone => Err(self.gone()),
            State::Closed => Err(closed()),
        }
    }

    fn gone(&self) -> Error {
        Error::Gone { view: self.def.name.to_owned(), generation: self.generation }
    }

    /// Waits until a checkpoint has what a caller waits for, and returns that.
    async fn wait_until<T>(&self, found: impl Fn(&Checkpoint) -> Option<T> + Send) -> Result<T, Error> {
        let mut progress = self.progress.subscribe();
        loop {
            {
                let now = progress.borrow_and_update();
                if let Some(found) = found(&now.checkpoint) {
                    return Ok(found);
                }
                if now.ended {
                    drop(now);
                    return Err(if matches!(*unpoisoned(self.state.read()), State::Closed) { closed() } else { self.gone() });
                }
            }
            // The sender lives in `self`, so that this cannot fail during the wait.
            if progress.changed().await.is_err() {
                return Err(self.gone());
            }
        }
    }

    /// Runs a read on this thread if it is small, otherwise on a thread that may block.
    async fn read<T, F>(&self, rows: usize, read: F) -> Result<T, Error>
    where
        T: Send + 'static,
        F: FnOnce(&Tables) -> Result<T, Error> + Send + 'static,
    {
        let tables = self.tables()?;
        let result = if rows <= ROWS_INLINE_MAX {
            read(&tables)
        } else {
            tokio::task::spawn_blocking(move || read(&tables)).await.map_err(lost_task)?
        };
        self.checked(result)
    }
}

impl OpenTable {
    /// Returns the value in a stored row.
    fn value(&self, key: &[u8], stored: fjall::UserValue) -> Result<Bytes, Error> {
        self.seal.open(key, stored).ok_or_else(|| self.damaged("a row differs from its checksum"))
    }

    fn get(&self, snapshot: &fjall::Snapshot, key: &[u8]) -> Result<Option<Bytes>, Error> {
        let Some(keyspace) = self.keyspace.get() else { return Ok(None) };
        let stored = catch_panic(|| snapshot.get(keyspace, key)).map_err(|error| engine("read", self.table.name, error))?;
        stored.map(|stored| self.value(key, stored)).transpose()
    }

    /// Returns the number of the last commit that wrote to the table; 0 if none did.
    fn position(&self) -> Result<u64, Error> {
        let Some(keyspace) = self.keyspace.get() else { return Ok(0) };
        let stored = catch_panic(|| keyspace.get(POSITION)).map_err(|error| engine("read", self.table.name, error))?;
        let Some(stored) = stored else { return Ok(0) };
        let value = self.value(POSITION, stored)?;
        value.as_ref().try_into().map(u64::from_be_bytes).map_err(|_| self.damaged("the number of its last commit cannot be decoded"))
    }

    fn damaged(&self, reason: &str) -> Error {
        Error::Damaged { table: self.name.clone(), reason: reason.to_owned() }
    }
}

impl Tables {
    fn table(&self, table: &Table) -> Result<&OpenTable, Error> {
        Ok(&self.tables[self.place(table)?])
    }

    /// Returns the index of a table in `tables`.
    fn place(&self, table: &Table) -> Result<usize, Error> {
        let found = self.tables.iter().position(|own| std::ptr::eq(own.table, table) || own.table.name == table.name);
        found.ok_or_else(|| Error::Unavailable { what: format!("view {} has no table {}", self.def.name, table.name), source: None })
    }

    /// Creates those of the tables at the given places that do not exist yet.
    fn create_missing(&self, places: impl Iterator<Item = usize>) -> Result<(), Error> {
        let mut missing: Vec<&OpenTable> = places.map(|place| &self.tables[place]).filter(|open| open.keyspace.get().is_none()).collect();
        missing.dedup_by_key(|open| &raw const **open);
        let tables: Vec<(&str, &Table)> = missing.iter().map(|open| (open.name.as_str(), open.table)).collect();
        let created = self.core.create_tables(&tables)?;
        for (open, keyspace) in missing.into_iter().zip(created) {
            // Nobody else sets it: the caller holds `writing`.
            let _ = open.keyspace.set(keyspace);
        }
        Ok(())
    }

    fn get_many(&self, table: &'static Table, keys: &[Vec<u8>]) -> Result<Vec<Option<Bytes>>, Error> {
        let (open, snapshot) = (self.table(table)?, self.core.db.snapshot());
        // In the order of the table, so that rows of one block are read from it one after another.
        let mut order: Vec<usize> = (0..keys.len()).collect();
        order.sort_unstable_by_key(|at| &keys[*at]);
        let mut rows = vec![None; keys.len()];
        for at in order {
            rows[at] = open.get(&snapshot, &keys[at])?;
        }
        Ok(rows)
    }

    fn rows(&self, table: &'static Table, bounds: Bounds, limit: usize, reverse: bool) -> Result<Vec<(Key, Bytes)>, Error> {
        let open = self.table(table)?;
        let Some(keyspace) = open.keyspace.get() else { return Ok(Vec::new()) };
        if limit == 0 || bounds_are_empty(&bounds) {
            return Ok(Vec::new());
        }
        let mut out = Vec::with_capacity(limit.min(ROWS_INLINE_MAX));
        let mut result = Ok(());
        let mut push = |row: fjall::Guard| -> Result<bool, fjall::Error> {
            let (key, stored) = row.into_inner()?;
            if &*key == POSITION {
                return Ok(true);
            }
            match open.value(&key, stored).and_then(|value| Ok((decode(table, &key)?, value))) {
                Ok(row) => out.push(row),
                Err(error) => result = Err(error),
            }
            Ok(out.len() < limit && result.is_ok())
        };
        // The library may panic on damaged files while it advances, too.
        let read = catch_panic(|| {
            let mut rows = self.core.db.snapshot().range(keyspace, bounds);
            while let Some(row) = if reverse { rows.next_back() } else { rows.next() } {
                if !push(row)? {
                    break;
                }
            }
            Ok(())
        });
        read.map_err(|error| engine("read", table.name, error))?;
        result?;
        Ok(out)
    }

    fn commit(&self, positions: &mut Positions, writes: Vec<Write>, checkpoint: &Checkpoint) -> Result<(), Error> {
        // The keys of all rows in one buffer; each row stores its table, its range in the buffer and its position among the writes.
        let mut keys = Vec::new();
        let mut rows = Vec::with_capacity(writes.len());
        for (turn, write) in writes.into_iter().enumerate() {
            let begin = keys.len();
            append_whole(write.table, &write.key, &mut keys)?;
            rows.push((self.place(write.table)?, begin..keys.len(), turn, write.value));
        }
        // Sorted by table and key, which is fastest for the engine; among writes to one row the last one first.
        rows.sort_unstable_by(|(table, key, turn, _), (other, other_key, other_turn, _)| {
            (table, &keys[key.clone()], other_turn).cmp(&(other, &keys[other_key.clone()], turn))
        });
        // All writes of a batch have one sequence number in the engine, so that it may contain only the last of several writes to a row.
        rows.dedup_by(|(table, key, ..), (previous, previous_key, ..)| {
            table == previous && keys[key.clone()] == keys[previous_key.clone()]
        });
        self.create_missing(rows.iter().filter(|(.., value)| value.is_some()).map(|(place, ..)| *place))?;
        let mut batch = Batch::new(&self.core.db, PersistMode::Buffer);
        let mut written: Vec<(&OpenTable, &Keyspace)> = Vec::new();
        for (place, key, _, value) in rows {
            let open = &self.tables[place];
            // A table that does not exist has no row to remove.
            let Some(keyspace) = open.keyspace.get() else { continue };
            match value {
                Some(value) => batch.put_sealed(keyspace, open.seal, &keys[key], &value),
                None => batch.remove(keyspace, &keys[key]),
            }
            if written.last().is_none_or(|(last, _)| !std::ptr::eq(*last, open)) {
                written.push((open, keyspace));
            }
        }
        let json = serde_json::to_vec(checkpoint).map_err(|error| Error::Unavailable {
            what: format!("cannot write the checkpoint of view {}", self.def.name),
            source: Some(Box::new(error)),
        })?;
        let meta = Seal::new(META);
        batch.put_sealed(&self.core.meta, meta, checkpoint_key(self.def.name, self.generation).as_bytes(), &json);
        self.core.wait_for_worker(written.iter().map(|(_, keyspace)| *keyspace).chain([&self.core.meta]));
        let committed = self.core.commit(batch, |batch, number| {
            for (open, keyspace) in &written {
                batch.put_sealed(keyspace, open.seal, POSITION, &number.to_be_bytes());
                positions.set(open.table.name, number);
            }
            let key = positions_key(self.def.name, self.generation);
            batch.put_sealed(&self.core.meta, meta, key.as_bytes(), &positions.encode());
        });
        committed.map_err(|error| engine("write", self.def.name, error))
    }
}

/// A section of a table that is read page by page, each page from a snapshot of its own.
struct EmbeddedScan {
    table: &'static Table,
    /// The remaining section; `None` at the end. An error is returned once.
    rest: Result<Option<(Weak<Tables>, Bounds)>, Error>,
    holder: Weak<dyn Holder>,
}

#[async_trait]
impl Scan for EmbeddedScan {
    async fn next(&mut self, rows_max: usize) -> Result<Vec<(Key, Bytes)>, Error> {
        let Some((weak, bounds)) = std::mem::replace(&mut self.rest, Ok(None))? else { return Ok(Vec::new()) };
        let tables = weak.upgrade().ok_or_else(closed)?;
        let (table, upper) = (self.table, bounds.1.clone());
        let place = (tables.def, tables.generation);
        let read = move || tables.rows(table, bounds, rows_max, false);
        let rows = if rows_max <= ROWS_INLINE_MAX { read() } else { tokio::task::spawn_blocking(read).await.map_err(lost_task)? };
        if let (Err(Error::Damaged { table, reason }), Some(holder)) = (&rows, self.holder.upgrade())
            && let Some(view) = holder.open_view(place)
        {
            view.report(format!("{table}: {reason}"));
            return Err(view.rebuilding());
        }
        let rows = rows?;
        if let Some((last, _)) = rows.last().filter(|_| rows.len() == rows_max) {
            self.rest = Ok(Some((weak, (Bound::Excluded(encode_whole(table, last)?), upper))));
        }
        Ok(rows)
    }
}

/// Whether a checkpoint is ahead of another, in seq or in any position.
fn is_past(now: &Checkpoint, seen: &Checkpoint) -> bool {
    now.seq > seen.seq || now.positions.iter().any(|(partition, offset)| seen.positions.get(partition).is_none_or(|before| offset > before))
}

#[async_trait]
impl View for EmbeddedView {
    fn def(&self) -> &'static ViewDef {
        self.def
    }

    fn generation(&self) -> u64 {
        self.generation
    }

    async fn checkpoint(&self) -> Result<Checkpoint, Error> {
        self.tables()?;
        let checkpoint = Arc::clone(&self.progress.borrow().checkpoint);
        Ok(Checkpoint::clone(&checkpoint))
    }

    async fn commit(&self, writes: Vec<Write>, checkpoint: &Checkpoint) -> Result<(), Error> {
        let tables = self.tables()?;
        let progress = Arc::clone(&self.progress);
        let checkpoint = checkpoint.clone();
        let committed = tokio::task::spawn_blocking(move || {
            let mut writing = unpoisoned(tables.writing.lock());
            if tables.retired.load(Ordering::Acquire) {
                return Ok(false);
            }
            if is_past(&progress.borrow().checkpoint, &checkpoint) {
                return Err(Error::Behind { view: tables.def.name.to_owned() });
            }
            tables.commit(&mut writing, writes, &checkpoint)?;
            progress.send_modify(|progress| progress.checkpoint = Arc::new(checkpoint));
            // Readers have the rows now; only the writer waits for the engine's worker.
            drop(writing);
            tables.core.limit_memory();
            Ok(true)
        });
        if committed.await.map_err(lost_task)?? { Ok(()) } else { Err(self.gone()) }
    }

    async fn get(&self, table: &'static Table, key: &Key) -> Result<Option<Bytes>, Error> {
        let tables = self.tables()?;
        let key = encode_whole(table, key)?;
        self.checked(tables.table(table)?.get(&tables.core.db.snapshot(), &key))
    }

    async fn get_many(&self, table: &'static Table, keys: &[Key]) -> Result<Vec<Option<Bytes>>, Error> {
        let keys = keys.iter().map(|key| encode_whole(table, key)).collect::<Result<Vec<_>, _>>()?;
        // A point read costs several times a scanned row, and a disk access if the row is old.
        self.read(keys.len() * POINT_READ_ROWS, move |tables| tables.get_many(table, &keys)).await
    }

    async fn range(&self, table: &'static Table, range: Range) -> Result<Vec<(Key, Bytes)>, Error> {
        let bounds = bounds_of(table, &range)?;
        self.read(range.limit, move |tables| tables.rows(table, bounds, range.limit, range.reverse)).await
    }

    fn scan(&self, table: &'static Table, span: Span) -> Box<dyn Scan> {
        let tables = self.tables().map(|tables| Arc::downgrade(&tables));
        let bounds = span_bounds(table, &span);
        let rest = tables.and_then(|tables| Ok((tables, bounds?))).map(Some);
        Box::new(EmbeddedScan { table, rest, holder: Weak::clone(&self.holder) })
    }

    fn report_damage(&self, reason: &str) {
        self.report(reason.to_owned());
    }

    async fn replaced(&self) {
        // The sender lives in `self`, so that this cannot fail during the wait.
        let _ = self.progress.subscribe().wait_for(|progress| progress.ended).await;
    }

    async fn finish_rebuild(&self) -> Result<(), Error> {
        let (Some(_), Some(holder)) = (self.incomplete(), self.holder.upgrade()) else { return Ok(()) };
        let (def, generation) = (self.def, self.generation);
        tokio::task::spawn_blocking(move || holder.finish_rebuild(def, generation)).await.map_err(lost_task)?
    }

    async fn wait_past(&self, seen: &Checkpoint) -> Result<Checkpoint, Error> {
        self.wait_until(|now| is_past(now, seen).then(|| now.clone())).await
    }

    async fn wait_for_any(&self, awaited: &[Awaited]) -> Result<(), Error> {
        self.wait_until(|now| now.has_reached_any(awaited).then_some(())).await
    }
}
