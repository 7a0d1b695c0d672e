//! One generation of one view on CQL.
//!
//! Every write has the position of its cause as its timestamp, so that a later one wins whenever it arrives; the checkpoint is written
//! after the rows. Commits of other processes are noticed by polling: one task per view polls while there are waiters.

use std::collections::HashMap;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, Weak};
use std::time::Instant;

use async_trait::async_trait;
use bytes::Bytes;
use futures_util::stream::{self, StreamExt, TryStreamExt};
use schemas::tables::{ColumnType, Datum, Key, Table, TableKind, ValueKind, ViewDef, Write};
use scylla::response::PagingState;
use scylla::statement::batch::{Batch, BatchType};
use scylla::value::{CqlValue, Row};
use tokio::sync::{Notify, watch};
use view_store::key::encode_whole;
use view_store::store::{Awaited, Checkpoint, Error, Range, Scan, Span, View};

use crate::checkpoint::{self, is_past, raise, stamp};
use crate::generations;
use crate::poll_schedule::{Poll, PollSchedule};
use crate::scan::{PageSource, ScanPage, ScyllaScan};
use crate::session::{Cell, Cql, Failure, closed, int_of, text_of, unpoisoned};
use crate::tables::{self, Statements, Step, cell, unkeyed};

/// The most concurrent requests of one call.
const REQUESTS_AT_ONCE: usize = 128;
/// The most rows in a batch. Servers usually refuse batches of more than 50 KB, and warn far below that.
const BATCH_ROWS_MAX: usize = 50;
/// The most bytes of values in a batch.
const BATCH_BYTES_MAX: usize = 40_000;
/// The state that waiters watch.
#[derive(Clone, Default)]
struct Progress {
    checkpoint: Arc<Checkpoint>,
    /// Whether no commit can follow: the generation was replaced, dropped or closed.
    ended: bool,
}

/// The number of waiters, and whether a task polls for them.
#[derive(Default)]
struct Waiting {
    count: usize,
    is_polling: bool,
}

/// One generation of a view.
pub(crate) struct ScyllaView {
    me: Weak<Self>,
    cql: Arc<Cql>,
    def: &'static ViewDef,
    generation: u64,
    statements: HashMap<&'static str, Statements>,
    progress: watch::Sender<Progress>,
    waiting: Mutex<Waiting>,
    /// Notified when a wait starts or a commit is announced.
    announced: Arc<Notify>,
    /// Whether the tables were dropped.
    dropped: AtomicBool,
    /// Permits one commit at a time.
    committing: tokio::sync::Mutex<()>,
    /// When this process last committed without another process having advanced the view.
    committed: Mutex<Option<Instant>>,
}

impl ScyllaView {
    pub(crate) fn new(cql: &Arc<Cql>, def: &'static ViewDef, generation: u64) -> Arc<Self> {
        let statements = def.tables.iter().map(|table| (table.name, Statements::new(cql.keyspace(), table, generation))).collect();
        Arc::new_cyclic(|me| Self {
            me: Weak::clone(me),
            cql: Arc::clone(cql),
            def,
            generation,
            statements,
            progress: watch::Sender::default(),
            waiting: Mutex::default(),
            announced: Arc::default(),
            dropped: AtomicBool::new(false),
            committing: tokio::sync::Mutex::default(),
            committed: Mutex::default(),
        })
    }

    /// Refuses further commits. Reads continue as long as the tables exist.
    pub(crate) fn retire(&self) {
        self.progress.send_if_modified(|progress| !std::mem::replace(&mut progress.ended, true));
    }

    /// Marks the tables as dropped.
    pub(crate) fn set_dropped(&self) {
        self.dropped.store(true, Ordering::Release);
        self.retire();
    }

    pub(crate) fn is_ended(&self) -> bool {
        self.progress.borrow().ended
    }

    fn gone(&self) -> Error {
        Error::Gone { view: self.def.name.to_owned(), generation: self.generation }
    }

    /// Waits until a checkpoint has what a caller waits for, and returns that.
    async fn wait_until<T>(&self, found: impl Fn(&Checkpoint) -> Option<T> + Send) -> Result<T, Error> {
        let mut progress = self.progress.subscribe();
        let _waiter = self.wait();
        loop {
            {
                let now = progress.borrow_and_update();
                if let Some(found) = found(&now.checkpoint) {
                    return Ok(found);
                }
                if now.ended {
                    return Err(if self.cql.is_closed() { closed() } else { self.gone() });
                }
            }
            // The sender lives in `self`, so that this cannot fail during the wait.
            if progress.changed().await.is_err() {
                return Err(self.gone());
            }
        }
    }

    /// Fails if the store is closed or the tables were dropped.
    fn ensure_available(&self) -> Result<(), Error> {
        if self.cql.is_closed() {
            return Err(closed());
        }
        if self.dropped.load(Ordering::Acquire) { Err(self.gone()) } else { Ok(()) }
    }

    fn statements(&self, table: &Table) -> Result<&Statements, Error> {
        self.statements
            .get(table.name)
            .ok_or_else(|| Error::Unavailable { what: format!("view {} has no table {}", self.def.name, table.name), source: None })
    }

    /// Converts the result of a request. If the server considers the statement invalid, another process may have dropped the tables.
    async fn convert_result<T>(&self, answer: Result<T, Failure>) -> Result<T, Error> {
        match answer {
            Ok(answer) => Ok(answer),
            Err(Failure::Invalid(error)) => {
                let row = generations::read(&self.cql, self.def.name).await?;
                if row.is_some_and(|row| row.holds(self.generation)) {
                    return Err(error);
                }
                self.set_dropped();
                Err(self.gone())
            }
            Err(failure) => Err(failure.into()),
        }
    }

    /// Reads the stored checkpoint and whether this generation still accepts commits, and notifies waiters. Returns the highest checkpoint
    /// known.
    async fn refresh(&self) -> Result<Arc<Checkpoint>, Error> {
        let name = self.def.name;
        let (stored, row) = tokio::try_join!(checkpoint::read(&self.cql, name, self.generation), generations::read(&self.cql, name))?;
        let ended = !row.is_some_and(|row| row.holds(self.generation));
        self.publish(&stored, ended);
        Ok(Arc::clone(&self.progress.borrow().checkpoint))
    }

    fn publish(&self, stored: &Checkpoint, ended: bool) {
        self.progress.send_if_modified(|progress| {
            let mut known = Checkpoint::clone(&progress.checkpoint);
            let further = raise(&mut known, stored);
            if further {
                progress.checkpoint = Arc::new(known);
            }
            let ends = ended && !progress.ended;
            progress.ended |= ended;
            further || ends
        });
    }

    /// Registers a waiter, and starts a polling task if there is none.
    fn wait(&self) -> Waiter<'_> {
        let mut waiting = unpoisoned(self.waiting.lock());
        waiting.count += 1;
        if !std::mem::replace(&mut waiting.is_polling, true) {
            tokio::spawn(poll_checkpoint(PollTask { view: Weak::clone(&self.me), is_over: false }, Arc::clone(&self.announced)));
        }
        self.announced.notify_one();
        Waiter(self)
    }

    async fn get_one(&self, table: &'static Table, key: &Key) -> Result<Option<Bytes>, Error> {
        encode_whole(table, key)?;
        if unkeyed(table, key) {
            return Ok(None);
        }
        let cells: Vec<Cell<'_>> = key.iter().map(cell).collect();
        let answer = self.cql.execute(&self.statements(table)?.get, &cells).await.and_then(|answer| self.cql.result(answer));
        let answer = self.convert_result(answer).await?;
        let unreadable = || unreadable(table);
        match table.value {
            ValueKind::Bytes => Ok(answer.maybe_first_row::<(Bytes,)>().map_err(|_| unreadable())?.map(|(value,)| value)),
            ValueKind::Text => Ok(answer.maybe_first_row::<(String,)>().map_err(|_| unreadable())?.map(|(value,)| Bytes::from(value))),
        }
    }

    async fn step(&self, table: &'static Table, step: &Step, range: &Range) -> Result<Vec<(Key, Bytes)>, Error> {
        let mut cells = step.cells();
        cells.push(Cell::Small(i32::try_from(range.limit).unwrap_or(i32::MAX)));
        let cql = self.statements(table)?.step(step, range.reverse);
        let rows = self.cql.rows(&cql, &cells, range.limit).await;
        self.convert_result(rows).await?.into_iter().map(|row| read_row(table, row)).collect()
    }

    /// Writes rows of one partition.
    async fn put(&self, table: &'static Table, writes: &[&Write]) -> Result<(), Failure> {
        let statements = self.statements(table).map_err(Failure::Other)?;
        let cql = |write: &Write| if write.value.is_some() { &statements.insert } else { &statements.delete };
        if let [write] = writes {
            return self.cql.execute(cql(write), &cells(table, write)).await.map(|_| ());
        }
        let mut batch = Batch::new(BatchType::Unlogged);
        batch.set_is_idempotent(true);
        for write in writes {
            batch.append_statement(self.cql.prepared(cql(write)).await?);
        }
        self.cql.batch(&batch, writes.iter().map(|write| cells(table, write)).collect()).await
    }

    async fn write_table(&self, table: &'static Table, writes: Vec<&Write>) -> Result<(), Error> {
        let mut partitions: HashMap<&[Datum], Vec<&Write>> = HashMap::with_capacity(writes.len());
        for write in writes {
            partitions.entry(&write.key[..table.partition_columns]).or_default().push(write);
        }
        let batches: Vec<Vec<&Write>> = partitions.into_values().flat_map(split_batches).collect();
        let puts: Vec<_> = batches.iter().map(|piece| self.put(table, piece)).collect();
        let put = stream::iter(puts).buffer_unordered(REQUESTS_AT_ONCE).try_collect::<()>().await;
        self.convert_result(put).await
    }
}

/// The polling task. If it ends early, the next waiter starts another one.
struct PollTask {
    view: Weak<ScyllaView>,
    is_over: bool,
}

impl Drop for PollTask {
    fn drop(&mut self) {
        if let (false, Some(view)) = (self.is_over, self.view.upgrade()) {
            unpoisoned(view.waiting.lock()).is_polling = false;
        }
    }
}

/// Polls the checkpoint while there are waiters and the view exists.
async fn poll_checkpoint(mut task: PollTask, announced: Arc<Notify>) {
    let mut schedule = PollSchedule::new(Instant::now());
    loop {
        tokio::select! {
            () = tokio::time::sleep_until(schedule.next().into()) => {}
            () = announced.notified() => {
                schedule.announce(Instant::now());
                continue;
            }
        }
        let Some(view) = task.view.upgrade() else { return };
        {
            let mut waiting = unpoisoned(view.waiting.lock());
            if waiting.count == 0 || view.cql.is_closed() {
                waiting.is_polling = false;
                task.is_over = true;
                return;
            }
        }
        let committed = *unpoisoned(view.committed.lock());
        let looked = match schedule.poll(Instant::now(), committed) {
            Poll::Nothing => Ok(()),
            Poll::Checkpoint => {
                checkpoint::read(&view.cql, view.def.name, view.generation).await.map(|stored| view.publish(&stored, false))
            }
            Poll::Generation => view.refresh().await.map(|_| ()),
        };
        if let Err(error) = looked {
            // Waiters have timeouts of their own; the database may be available again before they expire.
            tracing::debug!(view = view.def.name, error = schemas::reason::reason(&error), "cannot read the checkpoint, will retry");
        }
    }
}

/// A registered waiter.
struct Waiter<'a>(&'a ScyllaView);

impl Drop for Waiter<'_> {
    fn drop(&mut self) {
        unpoisoned(self.0.waiting.lock()).count -= 1;
    }
}

/// Splits the writes to one partition into batches.
fn split_batches(writes: Vec<&Write>) -> Vec<Vec<&Write>> {
    let mut out: Vec<Vec<&Write>> = Vec::new();
    let mut bytes = 0;
    for write in writes {
        let size = write.value.as_ref().map_or(0, Bytes::len);
        match out.last_mut() {
            Some(piece) if piece.len() < BATCH_ROWS_MAX && bytes + size <= BATCH_BYTES_MAX => piece.push(write),
            _ => {
                out.push(vec![write]);
                bytes = 0;
            }
        }
        bytes += size;
    }
    out
}

/// Returns the bound values of a write.
fn cells<'a>(table: &Table, write: &'a Write) -> Vec<Cell<'a>> {
    let key = write.key.iter().map(cell);
    let at = Cell::Int(stamp(write.at));
    match (&write.value, table.value) {
        (None, _) => std::iter::once(at).chain(key).collect(),
        (Some(value), ValueKind::Bytes) => key.chain([Cell::Blob(value), at]).collect(),
        // Checked before anything is written.
        (Some(value), ValueKind::Text) => key.chain([Cell::Text(std::str::from_utf8(value).unwrap_or_default()), at]).collect(),
    }
}

/// Refuses a write that CQL cannot store, before anything is written.
fn check(write: &Write) -> Result<(), Error> {
    let Write { table, key, value, .. } = write;
    encode_whole(table, key)?;
    if unkeyed(table, key) {
        return Err(view_store::key::bad_key(table, "its only partition column is empty".to_owned()));
    }
    match value {
        Some(value) if table.value == ValueKind::Text && std::str::from_utf8(value).is_err() => {
            Err(Error::Unavailable { what: format!("a value for table {} is not valid UTF-8", table.name), source: None })
        }
        _ => Ok(()),
    }
}

fn read_row(table: &Table, row: Row) -> Result<(Key, Bytes), Error> {
    let mut columns = row.columns.into_iter();
    let mut key = Key::with_capacity(table.key.len());
    for column in table.key {
        let value = columns.next().flatten();
        let datum = match column.ty {
            ColumnType::Text => text_of(value).map(Datum::Text),
            ColumnType::Int => int_of(value).map(Datum::Int),
        };
        key.push(datum.ok_or_else(|| unreadable(table))?);
    }
    match columns.next().flatten() {
        Some(CqlValue::Text(text)) => Ok((key, Bytes::from(text))),
        Some(CqlValue::Blob(bytes)) => Ok((key, Bytes::from(bytes))),
        _ => Err(unreadable(table)),
    }
}

fn unreadable(table: &Table) -> Error {
    Error::Damaged { table: table.name.to_owned(), reason: "a row has other columns than were written".to_owned() }
}

#[async_trait]
impl PageSource for ScyllaView {
    async fn scan_page(&self, table: &'static Table, tokens: Option<[Cell<'static>; 2]>, at: PagingState) -> Result<ScanPage, Error> {
        self.ensure_available()?;
        let statements = self.statements(table)?;
        let page = match &tokens {
            None => self.cql.page(&statements.all, &[], at).await,
            Some(tokens) => self.cql.page(&statements.tokens, tokens, at).await,
        };
        let (rows, more) = self.convert_result(page).await?;
        Ok((rows.into_iter().map(|row| read_row(table, row)).collect::<Result<_, _>>()?, more))
    }
}

#[async_trait]
impl View for ScyllaView {
    fn def(&self) -> &'static ViewDef {
        self.def
    }

    fn generation(&self) -> u64 {
        self.generation
    }

    async fn checkpoint(&self) -> Result<Checkpoint, Error> {
        self.ensure_available()?;
        Ok(Checkpoint::clone(&*self.refresh().await?))
    }

    async fn commit(&self, writes: Vec<Write>, checkpoint: &Checkpoint) -> Result<(), Error> {
        self.ensure_available()?;
        let mut last: HashMap<(&str, &Key), usize> = HashMap::with_capacity(writes.len());
        for (turn, write) in writes.iter().enumerate() {
            check(write)?;
            self.statements(write.table)?;
            last.insert((write.table.name, &write.key), turn);
        }
        let _turn = self.committing.lock().await;
        let known = self.refresh().await?;
        if self.is_ended() {
            return Err(self.gone());
        }
        if is_past(&known, checkpoint) {
            *unpoisoned(self.committed.lock()) = None;
            return Err(Error::Behind { view: self.def.name.to_owned() });
        }
        let mut by_table: Vec<(&'static Table, Vec<&Write>)> = Vec::new();
        let counting = writes.iter().enumerate().filter(|(turn, write)| last[&(write.table.name, &write.key)] == *turn);
        for (_, write) in counting {
            match by_table.iter_mut().find(|(table, _)| table.name == write.table.name) {
                Some((_, writes)) => writes.push(write),
                None => by_table.push((write.table, vec![write])),
            }
        }
        by_table.sort_by_key(|(table, _)| table.kind != TableKind::History);
        for (table, writes) in by_table {
            self.write_table(table, writes).await?;
        }
        let written = checkpoint::write(&self.cql, self.def.name, self.generation, &known, checkpoint).await;
        self.convert_result(written).await?;
        self.publish(checkpoint, false);
        *unpoisoned(self.committed.lock()) = Some(Instant::now());
        Ok(())
    }

    async fn get(&self, table: &'static Table, key: &Key) -> Result<Option<Bytes>, Error> {
        self.ensure_available()?;
        self.get_one(table, key).await
    }

    async fn get_many(&self, table: &'static Table, keys: &[Key]) -> Result<Vec<Option<Bytes>>, Error> {
        self.ensure_available()?;
        let gets: Vec<_> = keys.iter().map(|key| self.get_one(table, key)).collect();
        stream::iter(gets).buffered(REQUESTS_AT_ONCE).try_collect().await
    }

    async fn range(&self, table: &'static Table, range: Range) -> Result<Vec<(Key, Bytes)>, Error> {
        self.ensure_available()?;
        let steps = tables::steps(table, &range)?;
        if range.limit == 0 {
            return Ok(Vec::new());
        }
        let pages: Vec<_> = steps.iter().map(|step| self.step(table, step, &range)).collect();
        let pages: Vec<Vec<(Key, Bytes)>> = stream::iter(pages).buffered(REQUESTS_AT_ONCE).try_collect().await?;
        Ok(pages.into_iter().flatten().take(range.limit).collect())
    }

    fn scan(&self, table: &'static Table, span: Span) -> Box<dyn Scan> {
        match self.me.upgrade() {
            Some(view) => Box::new(ScyllaScan::new(view, table, span)),
            None => Box::new(EndedScan),
        }
    }

    async fn wait_past(&self, seen: &Checkpoint) -> Result<Checkpoint, Error> {
        self.wait_until(|now| is_past(now, seen).then(|| now.clone())).await
    }

    async fn wait_for_any(&self, awaited: &[Awaited]) -> Result<(), Error> {
        self.wait_until(|now| now.has_reached_any(awaited).then_some(())).await
    }

    fn wake(&self) {
        self.announced.notify_one();
    }
}

/// A scan of a view that nobody holds. It never occurs, because a call holds its view.
struct EndedScan;

#[async_trait]
impl Scan for EndedScan {
    async fn next(&mut self, _: usize) -> Result<Vec<(Key, Bytes)>, Error> {
        Err(closed())
    }
}
