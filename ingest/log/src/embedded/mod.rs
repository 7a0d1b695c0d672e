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
mod options;
mod packed_values;
mod precheck;
mod read;
mod state;
mod store_error;

use std::path::Path;
use std::sync::mpsc::Sender;
use std::sync::{Arc, Mutex, PoisonError};
use std::thread::JoinHandle;

use async_trait::async_trait;
use schemas::position::LogOffset;
use schemas::topics::Topic;
use tokio::sync::{Semaphore, oneshot};

pub use self::options::Options;
use self::state::{Shared, Stopped};
use crate::{Append, Error, EventLog, Stored};
use committer::{Job, Work};
use packed_values::Encoded;

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
            let bytes = packed_values::record_bytes(record);
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
    use schemas::topics;

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
