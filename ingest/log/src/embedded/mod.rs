//! The log in the data directory, stored with fjall. [README.md](README.md) follows one record through it.
//!
//! Guarantees, in addition to those of [`EventLog`]:
//! - One `append` is atomic over all its partitions, also across a crash.
//! - `open` never panics, whatever the files contain, and never opens a log with fewer records than were acknowledged. It fails with an
//!   error that names what is missing.
//! - A read returns the bytes that were appended, or [`Error::Damaged`].
//! - After a failed commit every append fails, because it is unknown which of its records are durable. Reads continue. If the disk was full, the log is
//!   opened again when there is space, and appends continue.
//!
//! Not provided: deletion and compaction (the log is append-only), and more than one process per directory.

mod committer;
mod ends;
mod format;
mod journal_backup;
mod open;
mod packed;
mod precheck;
mod read;
mod store_error;

use std::path::Path;
use std::sync::mpsc::Sender;
use std::sync::{Arc, Mutex, PoisonError, RwLock};
use std::thread::JoinHandle;

use async_trait::async_trait;
use disk_files::space::{DiskFull, SpaceWatch};
use schemas::position::LogOffset;
use schemas::topics::{self, Topic};
use tokio::sync::{Semaphore, oneshot, watch};

use crate::{Append, Error, EventLog, Stored};
use committer::{Job, Work};
use packed::{Encoded, PackLimits, Packed};

/// Limits of the log, and its topics.
#[derive(Clone, Debug)]
pub struct Options {
    /// The topics; [`topics::ALL`] except in tests. A topic that is no longer named keeps its records.
    pub topics: &'static [Topic],
    /// The largest record accepted, in bytes of its key, value and headers; at most 256 MiB.
    pub record_bytes_max: usize,
    /// The size of the store's cache, in bytes.
    pub cache_bytes: u64,
    /// The largest size of the store's journals on disk, in bytes; at least 64 MiB. They are replayed when the log is opened after a crash.
    pub journal_bytes_max: u64,
    /// The size of a topic's write buffer in memory, in bytes. When it is full it is written to a table. The size is fixed when the topic
    /// is created.
    pub memtable_bytes: u64,
    /// How many files the store keeps open; at least 10.
    pub files_open_max: usize,
    /// How many bytes of encoded records may wait for the committer; further appends wait. At most 4 GiB.
    pub queue_bytes_max: usize,
    /// How many bytes of encoded records are written with one sync. A single larger append is still written in one commit.
    pub commit_bytes_max: usize,
    /// The largest packed value, in bytes of encoded records; at most 256 MiB.
    pub packed_bytes_max: usize,
    /// The most records in one packed value.
    pub packed_records_max: usize,
    /// Measures the free space of the disk. While it is full, appends fail.
    pub space: Option<Arc<SpaceWatch>>,
}

impl Default for Options {
    fn default() -> Self {
        const MIB: usize = 1024 * 1024;
        Self {
            topics: topics::ALL,
            record_bytes_max: MIB,
            cache_bytes: 16 * MIB as u64,
            journal_bytes_max: 128 * MIB as u64,
            memtable_bytes: 8 * MIB as u64,
            files_open_max: 128,
            queue_bytes_max: 32 * MIB,
            commit_bytes_max: 8 * MIB,
            packed_bytes_max: MIB,
            packed_records_max: 2000,
            space: None,
        }
    }
}

impl Options {
    fn limits(&self) -> PackLimits {
        PackLimits { bytes_max: self.packed_bytes_max, records_max: self.packed_records_max.max(1) }
    }
}

/// How far a partition can be read, and whether more can be appended.
#[derive(Clone, Copy, Debug, Default)]
struct Readable {
    end: LogOffset,
    is_final: bool,
}

/// The table of a topic, which its partitions share.
#[derive(Clone)]
enum TopicTable {
    /// It is created with the first record of the topic: creating one costs about twenty syncs, and many topics stay empty.
    Missing,
    Open(fjall::Keyspace),
    /// The log is being opened again, because the disk was full.
    Reopening,
}

/// The state of one partition.
struct PartitionState {
    topic: &'static Topic,
    partition: u16,
    table: RwLock<TopicTable>,
    readable: watch::Sender<Readable>,
    /// The packed value in which the last read stopped, so that the next page does not load and check it again.
    unfinished: Mutex<Option<Packed>>,
}

impl PartitionState {
    fn table(&self) -> TopicTable {
        self.table.read().unwrap_or_else(PoisonError::into_inner).clone()
    }

    /// Returns the keyspace of the topic's table; `None` if the topic has no records.
    fn keyspace(&self) -> Result<Option<fjall::Keyspace>, Error> {
        match self.table() {
            TopicTable::Missing => Ok(None),
            TopicTable::Open(keyspace) => Ok(Some(keyspace)),
            TopicTable::Reopening => {
                Err(Error::Unavailable { what: "the log is being opened again, because the disk was full".to_owned(), source: None })
            }
        }
    }

    /// Replaces the table. The value that the last read loaded may belong to the previous one.
    fn set_table(&self, table: TopicTable) {
        *self.unfinished.lock().unwrap_or_else(PoisonError::into_inner) = None;
        let previous = std::mem::replace(&mut *self.table.write().unwrap_or_else(PoisonError::into_inner), table);
        // Releasing the last handle takes time and must not happen under the lock.
        drop(previous);
    }
}

/// Why appends are refused.
#[derive(Clone)]
enum Stopped {
    Closed,
    Failed(Arc<fjall::Error>),
    /// The disk is full. Appends continue when it has space again.
    Full(Arc<fjall::Error>),
}

/// State that callers and the committer share.
struct Shared {
    /// All partitions of all topics, in the order of `topics`.
    partitions: Vec<PartitionState>,
    /// For each topic, the index of its first partition in `partitions`.
    firsts: Vec<(&'static str, usize)>,
    stopped: RwLock<Option<Stopped>>,
}

impl Shared {
    /// Sets the table of a topic's partitions.
    fn set_table_of(&self, topic: &'static Topic, keyspace: &fjall::Keyspace) {
        for state in self.partitions.iter().filter(|state| state.topic.name == topic.name) {
            state.set_table(TopicTable::Open(keyspace.clone()));
        }
    }

    fn partition_index(&self, topic: &'static Topic, partition: u32) -> Result<usize, Error> {
        let first = self.firsts.iter().find(|(name, _)| *name == topic.name).map(|(_, first)| *first);
        let index = first.and_then(|first| first.checked_add(usize::try_from(partition).ok()?));
        index
            .filter(|index| self.partitions.get(*index).is_some_and(|state| state.topic.name == topic.name))
            .ok_or(Error::NoPartition { topic: topic.name, partition })
    }

    /// The ends of all partitions, in their order. They are of one moment only if no commit runs.
    fn ends(&self) -> Vec<LogOffset> {
        self.partitions.iter().map(|state| state.readable.borrow().end).collect()
    }

    /// The ends of one topic among those of all partitions.
    fn ends_of(&self, topic: &'static Topic, ends: &[LogOffset]) -> Result<Vec<LogOffset>, Error> {
        let of = |partition| {
            let index = self.partition_index(topic, partition)?;
            ends.get(index).copied().ok_or(Error::NoPartition { topic: topic.name, partition })
        };
        (0..topic.partitions).map(of).collect()
    }

    fn state(&self, topic: &'static Topic, partition: u32) -> Result<&PartitionState, Error> {
        let index = self.partition_index(topic, partition)?;
        self.partitions.get(index).ok_or(Error::NoPartition { topic: topic.name, partition })
    }

    /// Refuses all later appends. Unless they continue when the disk has space again, all waits end.
    fn stop(&self, why: Stopped) {
        let is_final = !matches!(why, Stopped::Full(_));
        {
            let mut stopped = self.stopped.write().unwrap_or_else(PoisonError::into_inner);
            // The first reason is the cause; later ones are consequences.
            if matches!(*stopped, None | Some(Stopped::Full(_))) {
                *stopped = Some(why);
            }
        }
        if is_final {
            for state in &self.partitions {
                state.readable.send_modify(|readable| readable.is_final = true);
            }
        }
    }

    /// Accepts appends again after the disk was full.
    fn resume(&self) {
        let mut stopped = self.stopped.write().unwrap_or_else(PoisonError::into_inner);
        if matches!(*stopped, Some(Stopped::Full(_))) {
            *stopped = None;
        }
    }

    fn stopped(&self) -> Option<Stopped> {
        self.stopped.read().unwrap_or_else(PoisonError::into_inner).clone()
    }

    fn stopped_error(&self) -> Error {
        match self.stopped() {
            Some(Stopped::Failed(source)) => Error::Unavailable {
                what: "the log accepts no more records, because a commit failed and it is unknown which of its records are durable; restart the process"
                    .to_owned(),
                source: Some(Box::new(source)),
            },
            Some(Stopped::Full(source)) => Error::Unavailable {
                what: "the log accepts no records until the disk has space".to_owned(),
                source: Some(DiskFull::cause(&source).map_or_else(|| Box::new(source) as _, |full| Box::new(full) as _)),
            },
            Some(Stopped::Closed) | None => Error::Unavailable { what: "the log is closed".to_owned(), source: None },
        }
    }
}

/// An [`EventLog`] in a local directory, for one process.
pub struct EmbeddedLog {
    shared: Arc<Shared>,
    record_bytes_max: usize,
    queue_bytes_max: usize,
    /// Makes appends wait while `queue_bytes_max` encoded bytes are waiting for the committer.
    queue: Arc<Semaphore>,
    work: Sender<Work>,
    committer: Mutex<Option<JoinHandle<()>>>,
}

impl EmbeddedLog {
    /// Opens the log in `dir`, or creates it. Blocks while it replays the journal after a crash.
    ///
    /// # Errors
    /// [`Error::Unavailable`] when the directory cannot be used, another process has it open, or the store cannot read its files;
    /// [`Error::Damaged`] when acknowledged records are missing or the last records of a partition are damaged.
    pub fn open(dir: &Path, options: Options) -> Result<Arc<Self>, Error> {
        let opened = open::open(dir, &options)?;
        let shared = Arc::new(opened.shared);
        let (work, inbox) = std::sync::mpsc::channel();
        let committer = committer::Committer::new(dir, opened.db, opened.ends_file, Arc::clone(&shared), &options);
        let thread =
            std::thread::Builder::new().name("log-committer".to_owned()).spawn(move || committer.run(&inbox)).map_err(|error| {
                Error::Unavailable { what: "the log's committer thread cannot be started".to_owned(), source: Some(Box::new(error)) }
            })?;
        let queue_bytes_max = options.queue_bytes_max.clamp(1, u32::MAX as usize);
        Ok(Arc::new(Self {
            shared,
            record_bytes_max: options.record_bytes_max,
            queue_bytes_max,
            queue: Arc::new(Semaphore::new(queue_bytes_max)),
            work,
            committer: Mutex::new(Some(thread)),
        }))
    }

    /// The largest number of bytes of key, value and headers that a record may have.
    #[must_use]
    pub fn record_bytes_max(&self) -> usize {
        self.record_bytes_max
    }
}

#[async_trait]
impl EventLog for EmbeddedLog {
    async fn append(&self, batch: Vec<Append>) -> Result<Vec<LogOffset>, Error> {
        if self.shared.stopped().is_some() {
            return Err(self.shared.stopped_error());
        }
        // Records are encoded by the appenders and not by the committer, so that the work is spread over all cores.
        let mut chunks: Vec<(usize, Encoded)> = Vec::new();
        let mut order = Vec::with_capacity(batch.len());
        for Append { topic, partition, record } in &batch {
            let bytes = packed::record_bytes(record);
            if bytes > self.record_bytes_max {
                return Err(Error::TooLarge { bytes, bytes_max: self.record_bytes_max });
            }
            let index = self.shared.partition_index(topic, *partition)?;
            let chunk = match chunks.iter().position(|(other, _)| *other == index) {
                Some(chunk) => chunk,
                None => {
                    chunks.push((index, Encoded::default()));
                    chunks.len() - 1
                }
            };
            let encoded = &mut chunks[chunk].1;
            order.push((chunk, encoded.count() as u64));
            encoded.push(record);
        }
        drop(batch);
        if order.is_empty() {
            return Ok(Vec::new());
        }
        let byte_count = chunks.iter().map(|(_, encoded)| encoded.byte_count()).sum::<usize>();
        let permits = u32::try_from(byte_count.min(self.queue_bytes_max)).unwrap_or(u32::MAX);
        let Ok(permit) = Arc::clone(&self.queue).acquire_many_owned(permits).await else { return Err(self.shared.stopped_error()) };
        let (answer, answered) = oneshot::channel();
        if self.work.send(Work::Append(Job { chunks, byte_count, answer, _permit: permit })).is_err() {
            return Err(self.shared.stopped_error());
        }
        let Ok(bases) = answered.await else { return Err(self.shared.stopped_error()) };
        let bases = bases?;
        // A chunk without an offset was not written, so the append did not succeed.
        let offsets = order.into_iter().map(|(chunk, index)| bases.get(chunk).map(|base| base.plus(index))).collect::<Option<_>>();
        offsets.ok_or_else(|| self.shared.stopped_error())
    }

    async fn read(
        &self,
        topic: &'static Topic,
        partition: u32,
        from: LogOffset,
        records_max: usize,
        bytes_max: usize,
    ) -> Result<Vec<Stored>, Error> {
        read::read(self.shared.state(topic, partition)?, from, records_max, bytes_max)
    }

    async fn end(&self, topic: &'static Topic, partition: u32) -> Result<LogOffset, Error> {
        Ok(self.shared.state(topic, partition)?.readable.borrow().end)
    }

    async fn ends(&self, topics: &[&'static Topic]) -> Result<Vec<Vec<LogOffset>>, Error> {
        let (answer, answered) = oneshot::channel();
        if self.work.send(Work::Ends(answer)).is_ok()
            && let Ok(ends) = answered.await
        {
            return topics.iter().map(|topic| self.shared.ends_of(topic, &ends)).collect();
        }
        // The committer has stopped, so nothing changes the ends any more.
        let ends = self.shared.ends();
        topics.iter().map(|topic| self.shared.ends_of(topic, &ends)).collect()
    }

    async fn wait_past(&self, topic: &'static Topic, partition: u32, end: LogOffset) -> Result<(), Error> {
        let mut readable = self.shared.state(topic, partition)?.readable.subscribe();
        match readable.wait_for(|readable| readable.end > end || readable.is_final).await {
            Ok(readable) if readable.end > end => Ok(()),
            _ => Err(self.shared.stopped_error()),
        }
    }

    async fn ready(&self) -> Result<(), Error> {
        match self.shared.stopped() {
            Some(Stopped::Failed(_) | Stopped::Full(_)) => Err(self.shared.stopped_error()),
            Some(Stopped::Closed) | None => Ok(()),
        }
    }

    async fn close(&self) -> Result<(), Error> {
        let (answer, answered) = oneshot::channel();
        // If it was closed before, that call has waited for the committer; if the committer failed, nothing is left to flush.
        if self.work.send(Work::Close(answer)).is_err() {
            return Ok(());
        }
        answered.await.unwrap_or(Ok(()))
    }
}

impl Drop for EmbeddedLog {
    /// Waits for the committer, so that the directory can be opened again at once. Nothing is flushed: the next `open` replays the journal.
    fn drop(&mut self) {
        let thread = self.committer.lock().unwrap_or_else(PoisonError::into_inner).take();
        let _ = self.work.send(Work::Stop);
        if thread.is_some_and(|thread| thread.join().is_err()) {
            tracing::error!("the log's committer thread panicked");
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::Record;

    /// Proves that after a failed commit appends and waits fail with its cause, while acknowledged records can still be read.
    #[tokio::test]
    async fn failure_stops_appends_only() {
        let dir = tempfile::tempdir().unwrap();
        let log = EmbeddedLog::open(dir.path(), Options::default()).unwrap();
        let append = Append { topic: &topics::ACCOUNTS, partition: 0, record: Record::default() };
        log.append(vec![append.clone()]).await.unwrap();
        log.shared.stop(Stopped::Failed(Arc::new(fjall::Error::Poisoned)));
        for error in [log.append(vec![append]).await.unwrap_err(), log.wait_past(&topics::ACCOUNTS, 0, LogOffset(1)).await.unwrap_err()] {
            let Error::Unavailable { what, source } = &error else { panic!("{error}") };
            assert!(
                what.contains("a commit failed") && source.as_ref().is_some_and(|source| source.to_string().contains("Poisoned")),
                "{error}: {source:?}"
            );
        }
        assert!(log.ready().await.unwrap_err().to_string().contains("a commit failed"));
        assert_eq!(log.read(&topics::ACCOUNTS, 0, LogOffset(0), 9, 9).await.unwrap().len(), 1);
        log.wait_past(&topics::ACCOUNTS, 0, LogOffset(0)).await.unwrap();
    }
}
