//! The only thread that writes. It takes all waiting appends, writes them as one batch of the store, syncs once, and answers all of them.
//!
//! A commit takes as long as a sync, and the appends that arrive meanwhile form the next commit. Group commit therefore needs no timer.

use std::sync::Arc;
use std::sync::mpsc::{Receiver, RecvTimeoutError};
use std::time::Duration;

use fjall::{Database, PersistMode};
use schemas::position::LogOffset;
use tokio::sync::{OwnedSemaphorePermit, oneshot};

use super::ends::{Ends, EndsFile};
use super::packed::{self, Encoded, Packer};
use super::store_error::catch_panic;
use super::{Options, PackLimits, Shared, Stopped};
use crate::Error;

/// The `ends` file is synced after this time without appends, and after this many commits in any case.
const IDLE: Duration = Duration::from_secs(1);
const COMMITS_PER_ENDS_SYNC: u32 = 256;

/// How often `close` checks whether all tables are written, and how many times. Records that are not in tables by then remain in the
/// journal.
const FLUSH_POLL: Duration = Duration::from_millis(2);
const FLUSH_POLLS_MAX: u32 = 10_000;

/// The records of one append call.
pub(super) struct Job {
    /// The records of each partition (by its index in `Shared::partitions`), in order.
    pub(super) chunks: Vec<(usize, Encoded)>,
    pub(super) byte_count: usize,
    /// Receives the offset of each chunk's first record.
    pub(super) answer: oneshot::Sender<Result<Vec<LogOffset>, Error>>,
    pub(super) _permit: OwnedSemaphorePermit,
}

/// A request to the committer.
pub(super) enum Work {
    /// Append records.
    Append(Job),
    /// Flush to tables, sync, answer and stop.
    Close(oneshot::Sender<Result<(), Error>>),
    /// Stop without flushing.
    Stop,
}

/// The state of the committer thread.
pub(super) struct Committer {
    db: Database,
    ends_file: EndsFile,
    ends: Ends,
    shared: Arc<Shared>,
    limits: PackLimits,
    commit_bytes_max: usize,
    commits_unsynced: u32,
}

impl Committer {
    pub(super) fn new(db: Database, ends_file: EndsFile, shared: Arc<Shared>, options: &Options) -> Self {
        let ends = shared
            .partitions
            .iter()
            .map(|state| ((state.topic.name.to_owned(), u32::from(state.partition)), state.readable.borrow().end))
            .collect();
        Self { db, ends_file, ends, shared, limits: options.limits(), commit_bytes_max: options.commit_bytes_max, commits_unsynced: 0 }
    }

    /// Runs until it is asked to stop, all senders are gone, or a commit fails.
    pub(super) fn run(mut self, inbox: &Receiver<Work>) {
        let mut next = None;
        loop {
            let work = match next.take() {
                Some(work) => work,
                None => match self.wait(inbox) {
                    Some(work) => work,
                    None => break,
                },
            };
            match work {
                Work::Append(first) => {
                    let mut byte_count = first.byte_count;
                    let mut jobs = vec![first];
                    while byte_count < self.commit_bytes_max && next.is_none() {
                        match inbox.try_recv() {
                            Ok(Work::Append(job)) => {
                                byte_count += job.byte_count;
                                jobs.push(job);
                            }
                            Ok(other) => next = Some(other),
                            Err(_) => break,
                        }
                    }
                    if !self.commit(jobs) {
                        break;
                    }
                }
                Work::Close(answer) => {
                    self.shared.stop(Stopped::Closed);
                    let result = self.flush();
                    if let Err(Err(error)) = answer.send(result) {
                        tracing::error!(
                            error = &error as &dyn std::error::Error,
                            "closing the log failed and no caller waits for the result"
                        );
                    }
                    break;
                }
                Work::Stop => break,
            }
        }
        self.shared.stop(Stopped::Closed);
        self.sync_ends();
        // Callers that still wait get an error, because the sender of their answer is dropped with the inbox.
    }

    fn wait(&mut self, inbox: &Receiver<Work>) -> Option<Work> {
        if self.commits_unsynced > 0 {
            match inbox.recv_timeout(IDLE) {
                Ok(work) => return Some(work),
                Err(RecvTimeoutError::Timeout) => self.sync_ends(),
                Err(RecvTimeoutError::Disconnected) => return None,
            }
        }
        inbox.recv().ok()
    }

    /// Writes the jobs and answers them. Returns false if the log must stop.
    fn commit(&mut self, jobs: Vec<Job>) -> bool {
        match self.write(&jobs) {
            Ok((bases, grown)) => {
                for (state, end) in &grown {
                    if let Some(state) = self.shared.partitions.get(*state) {
                        self.ends.insert((state.topic.name.to_owned(), u32::from(state.partition)), *end);
                    }
                }
                // The `ends` file is written before the answers: it must cover every acknowledged record, or a loss would not be noticed.
                if let Err(error) = self.ends_file.write(&self.ends, false) {
                    tracing::warn!(
                        error = &error as &dyn std::error::Error,
                        "the ends file cannot be written; a loss of later records would not be noticed"
                    );
                }
                for (state, end) in grown {
                    if let Some(state) = self.shared.partitions.get(state) {
                        state.readable.send_modify(|readable| readable.end = end);
                    }
                }
                for (job, bases) in jobs.into_iter().zip(bases) {
                    // The appender may have been cancelled; its records are appended all the same.
                    let _ = job.answer.send(Ok(bases));
                }
                self.commits_unsynced += 1;
                if self.commits_unsynced >= COMMITS_PER_ENDS_SYNC {
                    self.sync_ends();
                }
                true
            }
            Err(error) => {
                tracing::error!(error = &error as &dyn std::error::Error, "a commit failed; the log accepts no more records");
                self.shared.stop(Stopped::Failed(Arc::new(error)));
                for job in jobs {
                    let _ = job.answer.send(Err(self.shared.stopped_error()));
                }
                false
            }
        }
    }

    /// Writes one batch and syncs it. Returns the first offset of each job's chunks, and the new end of each partition by its index.
    #[expect(clippy::type_complexity, reason = "two lists that live for four lines")]
    fn write(&self, jobs: &[Job]) -> Result<(Vec<Vec<LogOffset>>, Vec<(usize, LogOffset)>), fjall::Error> {
        let mut packers: Vec<(usize, Packer)> = Vec::new();
        let mut batch = self.db.batch().durability(Some(PersistMode::SyncData));
        let mut bases = Vec::with_capacity(jobs.len());
        for job in jobs {
            let mut job_bases = Vec::with_capacity(job.chunks.len());
            for (index, encoded) in &job.chunks {
                let Some(state) = self.shared.partitions.get(*index) else { continue };
                let at = match packers.iter().position(|(other, _)| other == index) {
                    Some(at) => at,
                    None => {
                        let end = state.readable.borrow().end;
                        packers.push((*index, Packer::new(state.topic.name, state.partition, end, self.limits)));
                        packers.len() - 1
                    }
                };
                let packer = &mut packers[at].1;
                job_bases.push(packer.end());
                packer.push(encoded, |base, value| batch.insert(&state.keyspace, packed::key(state.partition, base), value));
            }
            bases.push(job_bases);
        }
        let mut grown = Vec::with_capacity(packers.len());
        for (index, mut packer) in packers {
            let Some(state) = self.shared.partitions.get(index) else { continue };
            packer.finish(|base, value| batch.insert(&state.keyspace, packed::key(state.partition, base), value));
            grown.push((index, packer.end()));
        }
        catch_panic(|| batch.commit())?;
        Ok((bases, grown))
    }

    /// Moves the write buffers into tables, so that the next open has little to replay.
    fn flush(&mut self) -> Result<(), Error> {
        let result = catch_panic(|| {
            let mut keyspaces: Vec<&fjall::Keyspace> = self.shared.partitions.iter().map(|state| &state.keyspace).collect();
            keyspaces.dedup_by_key(|keyspace| keyspace.id());
            self.db.persist(PersistMode::SyncAll)?;
            for keyspace in &keyspaces {
                keyspace.rotate_memtable()?;
            }
            let mut is_flushed = false;
            for _ in 0..FLUSH_POLLS_MAX {
                is_flushed = keyspaces.iter().all(|keyspace| keyspace.sealed_memtable_count() == 0);
                if is_flushed {
                    break;
                }
                std::thread::sleep(FLUSH_POLL);
                // Fails if a background writer has failed; otherwise this would wait for it forever.
                self.db.persist(PersistMode::Buffer)?;
            }
            self.db.persist(PersistMode::SyncAll)?;
            Ok(is_flushed)
        });
        if let Ok(true) = &result
            && let Err(error) = self.ends_file.write(&self.ends, true)
        {
            tracing::warn!(error = &error as &dyn std::error::Error, "the ends file cannot be written; the next opening takes longer");
        }
        self.sync_ends();
        result.map(|_| ()).map_err(|error| Error::Unavailable {
            what: "the log cannot be flushed; the acknowledged records are in its journal".to_owned(),
            source: Some(Box::new(error)),
        })
    }

    fn sync_ends(&mut self) {
        self.commits_unsynced = 0;
        if let Err(error) = self.ends_file.sync() {
            tracing::warn!(
                error = &error as &dyn std::error::Error,
                "the ends file cannot be synced; a loss of records after a power cut might not be noticed"
            );
        }
    }
}
