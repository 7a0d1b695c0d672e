//! Rebuilds a view next to the live one: applies all changes again, or decides all facts again. Also computes digests of views.
//!
//! Readers see the live rows until the new ones are complete. The swap leaves no gap, and all cursors remain valid.

use std::cmp::Ordering;
use std::collections::VecDeque;
use std::sync::Arc;

use bytes::Bytes;
use event_log::EventLog;
use proofs::hash::Hash32;
use proofs::receipt::SigningKeys;
use schemas::clock::Clock;
use schemas::position::{LogOffset, Seq};
use schemas::tables::{Datum, Key, Table, TableKind};
use tokio::sync::Mutex;
use view_store::store::{Scan, Span};
use view_store::{View, ViewStore};

use crate::Error;
use crate::decider::Decider;
use crate::service_def::ServiceDef;
use fold::service::{Service, SigningCheck};

/// Called with the progress of a long operation: the amount done, and the total.
pub type Progress = Arc<dyn Fn(u64, u64) + Send + Sync>;

/// The number of rows that are read at once to compare them.
const COMPARE_ROWS: usize = 1_000;
/// The number of differences that are appended at once.
const APPENDED_CHANGES_MAX: usize = 2_000;

/// The parts of the engine that a rebuild needs.
#[derive(Clone)]
pub struct Parts {
    /// The event log.
    pub log: Arc<dyn EventLog>,
    /// The view store.
    pub store: Arc<dyn ViewStore>,
    /// The engine's view.
    pub engine: Arc<dyn View>,
    /// All services, whose inputs are indexed.
    pub services: &'static [ServiceDef],
    /// The services that are projected.
    pub projected: Arc<[ServiceDef]>,
    /// The clock of the engine.
    pub clock: Clock,
    /// The keys that receipts are signed with, if this process decides.
    pub keys: Arc<SigningKeys>,
    /// Called before a batch of facts that may create signatures; `None` if no other process signs with these keys.
    pub signing_check: Option<Arc<dyn SigningCheck>>,
}

impl Parts {
    pub(crate) async fn open<S: Service>(&self, view: Arc<dyn View>) -> Result<Decider<S>, Error> {
        let decider = Decider::open(Arc::clone(&self.log), Arc::clone(&self.engine), view, self.clock).await?;
        Ok(decider.with_signing(Arc::clone(&self.keys), self.signing_check.clone()))
    }
}

/// Applies all changes of a service again to a new generation of its view and swaps it in. Returns the number of applied changes.
///
/// # Errors
/// When the log or the store fails.
pub async fn replay<S: Service>(parts: &Parts, live: &Mutex<Decider<S>>, progress: &Progress) -> Result<u64, Error> {
    let view = parts.store.begin_rebuild(S::VIEW).await?;
    let mut rebuilt: Decider<S> = parts.open(view).await?;
    let total = parts.log.end(S::CHANGES, 0).await?.0;
    // Most changes are applied while the live decider runs, the remaining ones while it waits.
    let applied = rebuilt.apply_log(|applied| progress(applied, total)).await?;
    let mut guard = live.lock().await;
    // Another process may have decided since this decider last read the log.
    guard.apply_logged_changes().await?;
    let applied = applied + rebuilt.apply_log(|_| ()).await?;
    // The positions of facts without changes are not in the change topic; the live decider knows them.
    rebuilt.adopt_positions(&guard).await?;
    rebuilt.resume().await?;
    rebuilt.adopt_confirmations(&mut guard);
    parts.store.swap(rebuilt.view()).await?;
    *guard = rebuilt;
    progress(applied, applied);
    Ok(applied)
}

/// Decides all facts of a service again with the rules of this version, appends the differences from the current records as changes, and
/// updates the decision state. Returns the number of appended changes.
///
/// # Errors
/// When the log or the store fails, and for a service whose decisions are final.
pub async fn redecide<S: Service>(parts: &Parts, live: &Mutex<Decider<S>>, progress: &Progress) -> Result<u64, Error> {
    if S::FINAL {
        return Err(Error::Refused(format!("{} cannot be decided again: its decisions are signed and published", S::NAME)));
    }
    let scratch = Scratch::new(S::CHANGES.name);
    let view = parts.store.begin_rebuild(S::VIEW).await?;
    let rebuild_parts = Parts { log: Arc::new(scratch.wrap(Arc::clone(&parts.log))), ..parts.clone() };
    let mut rebuilt: Decider<S> = rebuild_parts.open(view).await?;
    let mut total = 0;
    for topic in S::INPUTS {
        for partition in 0..topic.partitions {
            total += parts.log.end(topic, partition).await?.0;
        }
    }
    rebuilt
        .catch_up_with(|decided| {
            progress(decided, total);
            true
        })
        .await?;
    let mut guard = live.lock().await;
    guard.catch_up().await?;
    rebuilt.catch_up().await?;
    let mut appended = 0;
    for table in std::iter::once(S::RECORDS).chain(S::DECISION_TABLES.iter().copied().filter(|table| *table != S::RECORDS)) {
        appended += append_differences::<S>(table, &mut guard, &**rebuilt.view()).await?;
    }
    drop(guard);
    parts.store.discard(rebuilt.view()).await?;
    progress(total, total);
    Ok(appended)
}

/// Appends the changes that turn the rows of a table into those of another view, and returns how many.
async fn append_differences<S: Service>(table: &'static Table, live: &mut Decider<S>, wanted: &dyn View) -> Result<u64, Error> {
    // Changes only affect rows that were compared already, so that the live rows can be read while changes are appended.
    let view = Arc::clone(live.view());
    let (mut old, mut new) = (Rows::new(table, &*view).await?, Rows::new(table, wanted).await?);
    let (mut drafts, mut appended) = (Vec::new(), 0);
    let row_error = |source| Error::Row { table: table.name, source };
    loop {
        let order = match (old.first(), new.first()) {
            (None, None) => break,
            (Some(_), None) => Ordering::Less,
            (None, Some(_)) => Ordering::Greater,
            (Some((a, _)), Some((b, _))) => a.cmp(b),
        };
        let before = if order == Ordering::Greater { None } else { old.next().await? };
        let after = if order == Ordering::Less { None } else { new.next().await? };
        let Some(key) = before.as_ref().or(after.as_ref()).map(|(key, _)| key.clone()) else { break };
        let (before, after) = (before.map(|(_, value)| value), after.map(|(_, value)| value));
        if table == S::RECORDS {
            let Some(Datum::Text(id)) = key.first() else { continue };
            let read = |row: Option<Bytes>| row.map(|value| S::read_row(&value)).transpose().map_err(row_error);
            drafts.extend(S::difference(id, read(before)?, read(after)?.map(|(record, _, _)| record)));
        } else if before != after {
            drafts.extend(S::remember(table, &key, after.as_ref()).map_err(row_error)?);
        }
        if drafts.len() >= APPENDED_CHANGES_MAX {
            appended += drafts.len() as u64;
            live.append_drafts(std::mem::take(&mut drafts)).await?;
        }
    }
    appended += drafts.len() as u64;
    live.append_drafts(drafts).await?;
    Ok(appended)
}

/// The rows of a table, read page by page.
pub(crate) struct Rows {
    scan: Box<dyn Scan>,
    page: VecDeque<(Key, Bytes)>,
}

impl Rows {
    /// Starts to read a table.
    pub(crate) async fn new(table: &'static Table, view: &dyn View) -> Result<Self, Error> {
        let mut scan = view.scan(table, Span::default());
        Ok(Self { page: scan.next(COMPARE_ROWS).await?.into(), scan })
    }

    fn first(&self) -> Option<&(Key, Bytes)> {
        self.page.front()
    }

    /// Returns the next row; `None` at the end.
    pub(crate) async fn next(&mut self) -> Result<Option<(Key, Bytes)>, Error> {
        let row = self.page.pop_front();
        if self.page.is_empty() {
            self.page = self.scan.next(COMPARE_ROWS).await?.into();
        }
        Ok(row)
    }
}

/// Returns the digest of a service's current records, or, with `history`, of all its rows as stored; `at` is the seq up to which changes
/// count.
///
/// # Errors
/// When the store fails, or the seq is beyond the view.
pub async fn digest<S: Service>(view: &dyn View, history: bool, at: Option<Seq>) -> Result<Hash32, Error> {
    let checkpoint = view.checkpoint().await?;
    let at = at.unwrap_or(checkpoint.seq);
    if at > checkpoint.seq {
        return Err(Error::Refused(format!("seq {at} is beyond the view's {}", checkpoint.seq)));
    }
    let mut hasher = Hasher::default();
    for table in S::VIEW.tables {
        let current = table.kind == TableKind::Current;
        if !(current || (history && table.kind == TableKind::History)) {
            continue;
        }
        let mut scan = view.scan(table, Span::default());
        loop {
            let rows = scan.next(COMPARE_ROWS).await?;
            if rows.is_empty() {
                break;
            }
            for (key, value) in rows {
                if history {
                    hasher.row(table.name, &key, &value);
                } else if let Some(record) = record_at::<S>(view, &key, value, at).await? {
                    hasher.row(table.name, &key, &record);
                }
            }
        }
    }
    Ok(hasher.finish())
}

/// Returns the version of a record at a seq, in the form that its digest covers.
async fn record_at<S: Service>(view: &dyn View, key: &Key, value: Bytes, at: Seq) -> Result<Option<Bytes>, Error> {
    let (_, seq, _) = S::read_row(&value).map_err(|source| Error::Row { table: S::RECORDS.name, source })?;
    if seq <= at {
        return Ok(S::digest_row(&value));
    }
    let Some(history) = S::VIEW.tables.iter().find(|table| table.kind == TableKind::History) else { return Ok(None) };
    let from = key.iter().cloned().chain([Datum::from(at)]).collect();
    let range = view_store::Range { prefix: key.clone(), after: None, from: Some(from), limit: 1, reverse: false };
    Ok(view.range(history, range).await?.into_iter().next().and_then(|(_, value)| S::digest_row(&value)))
}

/// Hashes rows in order, each part with its length.
#[derive(Default)]
struct Hasher(sha2::Sha256);

impl Hasher {
    fn row(&mut self, table: &str, key: &Key, value: &[u8]) {
        self.part(table.as_bytes());
        for datum in key {
            match datum {
                Datum::Text(text) => self.part(text.as_bytes()),
                Datum::Int(int) => self.part(&int.to_be_bytes()),
            }
        }
        self.part(value);
    }

    fn part(&mut self, bytes: &[u8]) {
        use sha2::Digest;
        self.0.update(u64::try_from(bytes.len()).unwrap_or(u64::MAX).to_be_bytes());
        self.0.update(bytes);
    }

    fn finish(self) -> Hash32 {
        use sha2::Digest;
        Hash32(self.0.finalize().into())
    }
}

/// Replaces the change topic while a service is decided again: its changes are held in memory until the records are compared. All other
/// topics are those of the real log.
struct Scratch {
    topic: &'static str,
    changes: tokio::sync::Mutex<Vec<event_log::Stored>>,
}

impl Scratch {
    fn new(topic: &'static str) -> Self {
        Self { topic, changes: Mutex::new(Vec::new()) }
    }

    fn wrap(self, log: Arc<dyn EventLog>) -> ScratchLog {
        ScratchLog { scratch: self, log, base: std::sync::atomic::AtomicU64::new(0) }
    }
}

struct ScratchLog {
    scratch: Scratch,
    log: Arc<dyn EventLog>,
    /// Offset of the first change that is held. Changes are dropped after they were read back.
    base: std::sync::atomic::AtomicU64,
}

#[async_trait::async_trait]
impl EventLog for ScratchLog {
    async fn append(&self, batch: Vec<event_log::Append>) -> Result<Vec<LogOffset>, event_log::Error> {
        let mut changes = self.scratch.changes.lock().await;
        // The decider reads each batch back before it appends the next one; therefore only the newest batch is held.
        let base = self.base.load(std::sync::atomic::Ordering::Relaxed) + changes.len() as u64;
        self.base.store(base, std::sync::atomic::Ordering::Relaxed);
        *changes =
            (base..).zip(batch).map(|(offset, append)| event_log::Stored { offset: LogOffset(offset), record: append.record }).collect();
        Ok(changes.iter().map(|stored| stored.offset).collect())
    }

    async fn read(
        &self,
        topic: &'static schemas::topics::Topic,
        partition: u32,
        from: LogOffset,
        records_max: usize,
        bytes_max: usize,
    ) -> Result<Vec<event_log::Stored>, event_log::Error> {
        if topic.name != self.scratch.topic {
            return self.log.read(topic, partition, from, records_max, bytes_max).await;
        }
        let changes = self.scratch.changes.lock().await;
        Ok(changes.iter().filter(|stored| stored.offset >= from).take(records_max).cloned().collect())
    }

    async fn end(&self, topic: &'static schemas::topics::Topic, partition: u32) -> Result<LogOffset, event_log::Error> {
        if topic.name != self.scratch.topic {
            return self.log.end(topic, partition).await;
        }
        let changes = self.scratch.changes.lock().await;
        Ok(LogOffset(self.base.load(std::sync::atomic::Ordering::Relaxed) + changes.len() as u64))
    }

    async fn wait_past(&self, topic: &'static schemas::topics::Topic, partition: u32, end: LogOffset) -> Result<(), event_log::Error> {
        self.log.wait_past(topic, partition, end).await
    }

    async fn close(&self) -> Result<(), event_log::Error> {
        Ok(())
    }
}
