//! One generation of one view on the embedded storage engine.
//!
//! Reads take a snapshot, so that a call sees whole commits only. A commit is one engine batch on a thread that may block on the disk; once
//! started it completes, even if the caller is cancelled. When a generation was replaced or dropped, its tables are deleted when the last
//! holder drops them.

use std::ops::Bound;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, RwLock, Weak};

use async_trait::async_trait;
use bytes::Bytes;
use fjall::{Keyspace, OwnedWriteBatch, PersistMode, Readable};
use schemas::tables::{Key, Table, ViewDef, Write};
use tokio::sync::watch;

use super::database::{Core, checkpoint_key, keyspace_name};
use super::failure::{closed, engine, lost_task, unpoisoned};
use crate::key::{append_whole, decode, encode_prefix, encode_whole, end_of};
use crate::store::{Checkpoint, Error, Range, Scan, Span, View};

/// The most rows that are read on the caller's thread; larger reads run on a thread that may block.
const ROWS_INLINE_MAX: usize = 256;
/// How many scanned rows a point read counts as.
const POINT_READ_ROWS: usize = 16;
/// The largest value that is copied out of the engine's blocks, so that a held row does not keep a block in memory.
const COPIED_BYTES_MAX: usize = 1_024;

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
    tables: Vec<(&'static Table, Keyspace)>,
    retired: AtomicBool,
    /// Held during a commit and while the generation is retired: one writer at a time, none afterwards.
    writing: Mutex<()>,
}

impl Drop for Tables {
    fn drop(&mut self) {
        if !self.retired.load(Ordering::Acquire) {
            return;
        }
        let keyspaces = self.tables.drain(..).map(|(_, keyspace)| keyspace).collect();
        if let Err(error) = self.core.delete_generation(self.def.name, self.generation, keyspaces) {
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

/// One generation of a view.
pub(super) struct EmbeddedView {
    def: &'static ViewDef,
    generation: u64,
    state: RwLock<State>,
    progress: Arc<watch::Sender<Progress>>,
}

impl EmbeddedView {
    /// Opens the tables of a generation; creates missing ones.
    pub(super) fn open(core: &Arc<Core>, def: &'static ViewDef, generation: u64) -> Result<Self, Error> {
        let mut tables = Vec::with_capacity(def.tables.len());
        for table in def.tables {
            let name = keyspace_name(def.name, generation, table.name)?;
            tables.push((*table, core.open_table(&name, table)?));
        }
        let checkpoint = Arc::new(core.checkpoint(def.name, generation)?);
        let tables = Tables { core: Arc::clone(core), def, generation, tables, retired: AtomicBool::new(false), writing: Mutex::new(()) };
        let progress = Arc::new(watch::Sender::new(Progress { checkpoint, ended: false }));
        Ok(Self { def, generation, state: RwLock::new(State::Open(Arc::new(tables))), progress })
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
        match &*unpoisoned(self.state.read()) {
            State::Open(tables) => Ok(Arc::clone(tables)),
            State::Gone => Err(self.gone()),
            State::Closed => Err(closed()),
        }
    }

    fn gone(&self) -> Error {
        Error::Gone { view: self.def.name.to_owned(), generation: self.generation }
    }

    /// Runs a read on this thread if it is small, otherwise on a thread that may block.
    async fn read<T, F>(&self, rows: usize, read: F) -> Result<T, Error>
    where
        T: Send + 'static,
        F: FnOnce(&Tables) -> Result<T, Error> + Send + 'static,
    {
        let tables = self.tables()?;
        if rows <= ROWS_INLINE_MAX {
            return read(&tables);
        }
        tokio::task::spawn_blocking(move || read(&tables)).await.map_err(lost_task)?
    }
}

impl Tables {
    fn keyspace(&self, table: &Table) -> Result<&Keyspace, Error> {
        Ok(&self.tables[self.place(table)?].1)
    }

    /// Returns the index of a table in `tables`.
    fn place(&self, table: &Table) -> Result<usize, Error> {
        let found = self.tables.iter().position(|(own, _)| std::ptr::eq(*own, table) || own.name == table.name);
        found.ok_or_else(|| Error::Unavailable { what: format!("view {} has no table {}", self.def.name, table.name), source: None })
    }

    fn get_many(&self, table: &'static Table, keys: &[Vec<u8>]) -> Result<Vec<Option<Bytes>>, Error> {
        let keyspace = self.keyspace(table)?;
        let snapshot = self.core.db.snapshot();
        let get = |key: &Vec<u8>| snapshot.get(keyspace, key).map_err(|error| engine("read", table.name, error));
        keys.iter().map(|key| Ok(get(key)?.map(to_bytes))).collect()
    }

    fn rows(&self, table: &'static Table, bounds: Bounds, limit: usize, reverse: bool) -> Result<Vec<(Key, Bytes)>, Error> {
        let keyspace = self.keyspace(table)?;
        if limit == 0 || bounds_are_empty(&bounds) {
            return Ok(Vec::new());
        }
        let rows = self.core.db.snapshot().range(keyspace, bounds);
        let mut out = Vec::with_capacity(limit.min(ROWS_INLINE_MAX));
        let mut push = |row: fjall::Guard| {
            let (key, value) = row.into_inner().map_err(|error| engine("read", table.name, error))?;
            out.push((decode(table, &key)?, to_bytes(value)));
            Ok::<(), Error>(())
        };
        if reverse {
            rows.rev().take(limit).try_for_each(&mut push)?;
        } else {
            rows.take(limit).try_for_each(&mut push)?;
        }
        Ok(out)
    }

    fn commit(&self, writes: Vec<Write>, checkpoint: &Checkpoint) -> Result<(), Error> {
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
        let mut batch = OwnedWriteBatch::with_capacity(self.core.db.clone(), rows.len() + 1).durability(Some(PersistMode::Buffer));
        for (table, key, _, value) in rows {
            let (_, keyspace) = &self.tables[table];
            match value {
                Some(value) => batch.insert(keyspace, &keys[key], &value[..]),
                None => batch.remove(keyspace, &keys[key]),
            }
        }
        let json = serde_json::to_vec(checkpoint).map_err(|error| Error::Unavailable {
            what: format!("cannot write the checkpoint of view {}", self.def.name),
            source: Some(Box::new(error)),
        })?;
        batch.insert(&self.core.meta, checkpoint_key(self.def.name, self.generation), json);
        batch.commit().map_err(|error| engine("write", self.def.name, error))?;
        Ok(())
    }
}

/// The encoded ends of a range.
type Bounds = (Bound<Vec<u8>>, Bound<Vec<u8>>);

/// A section of a table that is read page by page, each page from a snapshot of its own.
struct EmbeddedScan {
    table: &'static Table,
    /// The remaining section; `None` at the end. An error is returned once.
    rest: Result<Option<(Weak<Tables>, Bounds)>, Error>,
}

#[async_trait]
impl Scan for EmbeddedScan {
    async fn next(&mut self, rows_max: usize) -> Result<Vec<(Key, Bytes)>, Error> {
        let Some((weak, bounds)) = std::mem::replace(&mut self.rest, Ok(None))? else { return Ok(Vec::new()) };
        let tables = weak.upgrade().ok_or_else(closed)?;
        let (table, upper) = (self.table, bounds.1.clone());
        let read = move || tables.rows(table, bounds, rows_max, false);
        let rows = if rows_max <= ROWS_INLINE_MAX { read() } else { tokio::task::spawn_blocking(read).await.map_err(lost_task)? }?;
        if let Some((last, _)) = rows.last().filter(|_| rows.len() == rows_max) {
            self.rest = Ok(Some((weak, (Bound::Excluded(encode_whole(table, last)?), upper))));
        }
        Ok(rows)
    }
}

fn span_bounds(table: &Table, span: &Span) -> Result<Bounds, Error> {
    let encoded = |key: &Option<Key>| key.as_ref().map(|key| encode_prefix(table, key)).transpose();
    Ok((encoded(&span.from)?.map_or(Bound::Unbounded, Bound::Included), encoded(&span.to)?.map_or(Bound::Unbounded, Bound::Excluded)))
}

/// Encodes the bounds of a range.
fn bounds_of(table: &Table, range: &Range) -> Result<Bounds, Error> {
    let prefix = encode_prefix(table, &range.prefix)?;
    let mut upper = end_of(&prefix).map_or(Bound::Unbounded, Bound::Excluded);
    let mut lower = Bound::Included(prefix.clone());
    if let Some(after) = &range.after {
        let after = encode_whole(table, after)?;
        if range.reverse {
            if below(&after, &upper) {
                upper = Bound::Excluded(after);
            }
        } else if after >= prefix {
            lower = Bound::Excluded(after);
        }
    } else if let Some(from) = &range.from {
        let from = encode_prefix(table, from)?;
        if range.reverse {
            // Keys with the prefix `from` are part of the range when reading backwards.
            if let Some(end) = end_of(&from)
                && below(&end, &upper)
            {
                upper = Bound::Excluded(end);
            }
        } else if from > prefix {
            lower = Bound::Included(from);
        }
    }
    Ok((lower, upper))
}

fn below(key: &[u8], upper: &Bound<Vec<u8>>) -> bool {
    match upper {
        Bound::Unbounded => true,
        Bound::Excluded(end) | Bound::Included(end) => key < end.as_slice(),
    }
}

fn bounds_are_empty(bounds: &Bounds) -> bool {
    match bounds {
        (Bound::Included(lower) | Bound::Excluded(lower), Bound::Included(upper) | Bound::Excluded(upper)) => lower >= upper,
        _ => false,
    }
}

/// Converts the engine's bytes: small values are copied, large ones (feed blocks) are shared.
fn to_bytes(value: fjall::UserValue) -> Bytes {
    if value.len() <= COPIED_BYTES_MAX { Bytes::copy_from_slice(&value) } else { Bytes::from_owner(value) }
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
            let writing = unpoisoned(tables.writing.lock());
            if tables.retired.load(Ordering::Acquire) {
                return Ok(false);
            }
            if is_past(&progress.borrow().checkpoint, &checkpoint) {
                return Err(Error::Behind { view: tables.def.name.to_owned() });
            }
            tables.commit(writes, &checkpoint)?;
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
        let found = tables.core.db.snapshot().get(tables.keyspace(table)?, key).map_err(|error| engine("read", table.name, error))?;
        Ok(found.map(to_bytes))
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
        Box::new(EmbeddedScan { table, rest: tables.and_then(|tables| Ok((tables, bounds?))).map(Some) })
    }

    async fn wait_past(&self, seen: &Checkpoint) -> Result<Checkpoint, Error> {
        let mut progress = self.progress.subscribe();
        loop {
            {
                let now = progress.borrow_and_update();
                if is_past(&now.checkpoint, seen) {
                    return Ok(Checkpoint::clone(&now.checkpoint));
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
}
