//! The log that lives in the data directory, on the store fjall. [README.md](README.md) tells one record's whole way.
//!
//! Promises, beside those of [`EventLog`]:
//! - One `append` is atomic over all its partitions, also across a crash.
//! - `open` never panics, whatever the files hold, and never answers with less than was acknowledged: it fails and says what is missing.
//! - A read answers the bytes that were appended or [`Error::Damaged`].
//! - After a commit that failed nothing is appended any more, because it is unknown what of it is durable; reading goes on.
//!
//! Left out on purpose: deletion and compaction by key (a log keeps everything) and more than one process on one directory.

mod committer;
mod ends;
mod keep;
mod open;
mod packed;
mod precheck;
mod read;

use std::path::Path;
use std::sync::mpsc::Sender;
use std::sync::{Arc, Mutex, OnceLock, PoisonError};
use std::thread::JoinHandle;

use async_trait::async_trait;
use schemas::position::LogOffset;
use schemas::topics::{self, Topic};
use tokio::sync::{Semaphore, oneshot, watch};

use crate::{Append, Error, EventLog, Stored};
use committer::{Job, Work};
use packed::{Caps, Encoded, Packed};

/// What the log may use, and which topics it has.
#[derive(Clone, Debug)]
pub struct Options {
    /// The topics; [`topics::ALL`] but in tests. One that is no longer named keeps its records.
    pub topics: &'static [Topic],
    /// The largest record taken, in bytes of its key, value and headers; at most 256 MiB.
    pub record_bytes_max: usize,
    /// The store's cache, in bytes.
    pub cache_bytes: u64,
    /// The store's journals on disk, in bytes; at least 64 MiB. They are replayed at open after a crash.
    pub journal_bytes_max: u64,
    /// A topic's write buffer in memory, in bytes, before it is written to a table; what a topic was made with stays.
    pub memtable_bytes: u64,
    /// The files the store keeps open; at least 10.
    pub files_open_max: usize,
    /// Encoded records that wait for the committer, in bytes; appends beyond wait their turn. At most 4 GiB.
    pub queue_bytes_max: usize,
    /// Encoded records written with one sync, in bytes; one larger append is still written at once.
    pub commit_bytes_max: usize,
    /// Encoded records in one packed value, in bytes; at most 256 MiB.
    pub packed_bytes_max: usize,
    /// Records in one packed value.
    pub packed_records_max: usize,
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
        }
    }
}

impl Options {
    fn caps(&self) -> Caps {
        Caps { bytes_max: self.packed_bytes_max, records_max: self.packed_records_max.max(1) }
    }
}

/// How far a partition can be read, and whether that can still change.
#[derive(Clone, Copy, Debug, Default)]
struct Readable {
    end: u64,
    is_final: bool,
}

/// One partition.
struct Place {
    topic: &'static Topic,
    partition: u16,
    keyspace: fjall::Keyspace,
    readable: watch::Sender<Readable>,
    /// The value a reader stopped in the middle of, so that the next page need not load and check it again.
    unfinished: Mutex<Option<Packed>>,
}

/// Why nothing can be appended any more.
enum Stopped {
    Closed,
    Failed(Arc<fjall::Error>),
}

/// What callers and the committer share.
struct Shared {
    /// All partitions of all topics, in the order of `topics`.
    places: Vec<Place>,
    /// Per topic, where its partitions begin in `places`.
    firsts: Vec<(&'static str, usize)>,
    stopped: OnceLock<Stopped>,
}

impl Shared {
    fn place_index(&self, topic: &'static Topic, partition: u32) -> Result<usize, Error> {
        let first = self.firsts.iter().find(|(name, _)| *name == topic.name).map(|(_, first)| *first);
        let index = first.and_then(|first| first.checked_add(usize::try_from(partition).ok()?));
        index
            .filter(|index| self.places.get(*index).is_some_and(|place| place.topic.name == topic.name))
            .ok_or(Error::NoPartition { topic: topic.name, partition })
    }

    fn place(&self, topic: &'static Topic, partition: u32) -> Result<&Place, Error> {
        let index = self.place_index(topic, partition)?;
        self.places.get(index).ok_or(Error::NoPartition { topic: topic.name, partition })
    }

    /// No append succeeds from here on, and nobody waits for one.
    fn stop(&self, why: Stopped) {
        // The first reason is the true one.
        let _ = self.stopped.set(why);
        for place in &self.places {
            place.readable.send_modify(|readable| readable.is_final = true);
        }
    }

    fn stopped_error(&self) -> Error {
        match self.stopped.get() {
            Some(Stopped::Failed(source)) => Error::Unavailable {
                what: "the log takes no more records, because a commit failed and it is unknown what of it is durable; start again"
                    .to_owned(),
                source: Some(Box::new(Arc::clone(source))),
            },
            Some(Stopped::Closed) | None => Error::Unavailable { what: "the log is closed".to_owned(), source: None },
        }
    }
}

/// An [`EventLog`] in a directory of this machine, for one process.
pub struct EmbeddedLog {
    shared: Arc<Shared>,
    record_bytes_max: usize,
    queue_bytes_max: usize,
    /// Holds back appends when `queue_bytes_max` encoded bytes wait.
    queue: Arc<Semaphore>,
    work: Sender<Work>,
    committer: Mutex<Option<JoinHandle<()>>>,
}

impl EmbeddedLog {
    /// Opens the log in `dir`, or makes it. Blocks while it replays what a crash left in the journal.
    ///
    /// # Errors
    /// [`Error::Unavailable`] when the directory cannot be used, another process has it open, or the store cannot read its files;
    /// [`Error::Damaged`] when acknowledged records are missing or the last ones of a partition are broken.
    pub fn open(dir: &Path, options: Options) -> Result<Arc<Self>, Error> {
        let opened = open::open(dir, &options)?;
        let shared = Arc::new(opened.shared);
        let (work, inbox) = std::sync::mpsc::channel();
        let committer = committer::Committer::new(opened.db, opened.ends_file, Arc::clone(&shared), &options);
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

    /// The most bytes of key, value and headers that a record may have.
    #[must_use]
    pub fn record_bytes_max(&self) -> usize {
        self.record_bytes_max
    }
}

#[async_trait]
impl EventLog for EmbeddedLog {
    async fn append(&self, batch: Vec<Append>) -> Result<Vec<LogOffset>, Error> {
        if self.shared.stopped.get().is_some() {
            return Err(self.shared.stopped_error());
        }
        // Encoded here, not by the committer, so that appenders share the processors.
        let mut chunks: Vec<(usize, Encoded)> = Vec::new();
        let mut order = Vec::with_capacity(batch.len());
        for Append { topic, partition, record } in &batch {
            let bytes = packed::record_bytes(record);
            if bytes > self.record_bytes_max {
                return Err(Error::TooLarge { bytes, bytes_max: self.record_bytes_max });
            }
            let place = self.shared.place_index(topic, *partition)?;
            let chunk = match chunks.iter().position(|(other, _)| *other == place) {
                Some(chunk) => chunk,
                None => {
                    chunks.push((place, Encoded::default()));
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
        Ok(order.into_iter().map(|(chunk, index)| LogOffset(bases.get(chunk).copied().unwrap_or_default() + index)).collect())
    }

    async fn read(
        &self,
        topic: &'static Topic,
        partition: u32,
        from: LogOffset,
        records_max: usize,
        bytes_max: usize,
    ) -> Result<Vec<Stored>, Error> {
        read::read(self.shared.place(topic, partition)?, from.0, records_max, bytes_max)
    }

    async fn end(&self, topic: &'static Topic, partition: u32) -> Result<LogOffset, Error> {
        Ok(LogOffset(self.shared.place(topic, partition)?.readable.borrow().end))
    }

    async fn wait_past(&self, topic: &'static Topic, partition: u32, end: LogOffset) -> Result<(), Error> {
        let mut readable = self.shared.place(topic, partition)?.readable.subscribe();
        match readable.wait_for(|readable| readable.end > end.0 || readable.is_final).await {
            Ok(readable) if readable.end > end.0 => Ok(()),
            _ => Err(self.shared.stopped_error()),
        }
    }

    async fn close(&self) -> Result<(), Error> {
        let (answer, answered) = oneshot::channel();
        // Whoever closed it before has waited for the end, or the committer failed: nothing is left to do.
        if self.work.send(Work::Close(answer)).is_err() {
            return Ok(());
        }
        answered.await.unwrap_or(Ok(()))
    }
}

impl Drop for EmbeddedLog {
    /// Waits for the committer, so that the directory can be opened again right after. Nothing is flushed: the next `open` replays the journal.
    fn drop(&mut self) {
        let thread = self.committer.lock().unwrap_or_else(PoisonError::into_inner).take();
        let _ = self.work.send(Work::Leave);
        if thread.is_some_and(|thread| thread.join().is_err()) {
            tracing::error!("the log's committer thread panicked");
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::Record;

    /// Proves that after a failed commit appends and waits fail with its cause, while what was acknowledged stays readable.
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
        assert_eq!(log.read(&topics::ACCOUNTS, 0, LogOffset(0), 9, 9).await.unwrap().len(), 1);
        log.wait_past(&topics::ACCOUNTS, 0, LogOffset(0)).await.unwrap();
    }
}
