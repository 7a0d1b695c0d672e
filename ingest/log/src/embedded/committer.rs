//! The one thread that writes: it takes all appends that wait, writes them as one batch of the store, syncs once, answers all.
//!
//! A commit takes as long as a sync, and what arrives meanwhile becomes the next commit; so no timer is needed to form groups.

use std::sync::Arc;
use std::sync::mpsc::{Receiver, RecvTimeoutError};
use std::time::Duration;

use fjall::{Database, PersistMode};
use tokio::sync::{OwnedSemaphorePermit, oneshot};

use super::ends::{Ends, EndsFile};
use super::open::guarded;
use super::packed::{self, Encoded, Packer};
use super::{Caps, Options, Shared, Stopped};
use crate::Error;

/// How long nothing must arrive before the ends file is synced, and after how many commits it is synced anyway.
const IDLE: Duration = Duration::from_secs(1);
const COMMITS_PER_ENDS_SYNC: u32 = 256;

/// How long `close` waits for tables to be written; what is not written then is in the journal.
const FLUSH_POLL: Duration = Duration::from_millis(2);
const FLUSH_POLLS_MAX: u32 = 10_000;

/// One append call.
pub(super) struct Job {
    /// Per partition (index in `Shared::places`), its records in order.
    pub(super) chunks: Vec<(usize, Encoded)>,
    pub(super) byte_count: usize,
    /// Gets the offset of each chunk's first record.
    pub(super) answer: oneshot::Sender<Result<Vec<u64>, Error>>,
    pub(super) _permit: OwnedSemaphorePermit,
}

/// What the committer is asked.
pub(super) enum Work {
    /// Append.
    Append(Job),
    /// Flush, sync, answer and end.
    Close(oneshot::Sender<Result<(), Error>>),
    /// End.
    Leave,
}

/// The committer's own state.
pub(super) struct Committer {
    db: Database,
    ends_file: EndsFile,
    ends: Ends,
    shared: Arc<Shared>,
    caps: Caps,
    commit_bytes_max: usize,
    commits_unsynced: u32,
}

impl Committer {
    pub(super) fn new(db: Database, ends_file: EndsFile, shared: Arc<Shared>, options: &Options) -> Self {
        let ends = shared
            .places
            .iter()
            .map(|place| ((place.topic.name.to_owned(), u32::from(place.partition)), place.readable.borrow().end))
            .collect();
        Self { db, ends_file, ends, shared, caps: options.caps(), commit_bytes_max: options.commit_bytes_max, commits_unsynced: 0 }
    }

    /// Works until it is told to end, nobody can ask any more, or a commit fails.
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
                            "closing the log failed, and nobody waits for the answer"
                        );
                    }
                    break;
                }
                Work::Leave => break,
            }
        }
        self.shared.stop(Stopped::Closed);
        self.sync_ends();
        // Those who still wait learn it because their answer's sender is dropped with the inbox.
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

    /// Writes and answers; false if the log must stop.
    fn commit(&mut self, jobs: Vec<Job>) -> bool {
        match self.write(&jobs) {
            Ok((bases, grown)) => {
                for (place, end) in &grown {
                    if let Some(place) = self.shared.places.get(*place) {
                        self.ends.insert((place.topic.name.to_owned(), u32::from(place.partition)), *end);
                    }
                }
                // Before the answers: what was acknowledged must be in the file, or its loss would not be noticed.
                if let Err(error) = self.ends_file.write(&self.ends, false) {
                    tracing::warn!(
                        error = &error as &dyn std::error::Error,
                        "the ends file cannot be written; a loss of later records would not be noticed"
                    );
                }
                for (place, end) in grown {
                    if let Some(place) = self.shared.places.get(place) {
                        place.readable.send_modify(|readable| readable.end = end);
                    }
                }
                for (job, bases) in jobs.into_iter().zip(bases) {
                    // The appender may have gone; its records stay.
                    let _ = job.answer.send(Ok(bases));
                }
                self.commits_unsynced += 1;
                if self.commits_unsynced >= COMMITS_PER_ENDS_SYNC {
                    self.sync_ends();
                }
                true
            }
            Err(error) => {
                tracing::error!(error = &error as &dyn std::error::Error, "a commit failed; the log takes no more records");
                self.shared.stop(Stopped::Failed(Arc::new(error)));
                for job in jobs {
                    let _ = job.answer.send(Err(self.shared.stopped_error()));
                }
                false
            }
        }
    }

    /// Writes one batch and syncs. Answers the first offset of each job's chunks, and the new ends by place.
    #[expect(clippy::type_complexity, reason = "two lists that live for four lines")]
    fn write(&self, jobs: &[Job]) -> Result<(Vec<Vec<u64>>, Vec<(usize, u64)>), fjall::Error> {
        let mut packers: Vec<(usize, Packer)> = Vec::new();
        let mut batch = self.db.batch().durability(Some(PersistMode::SyncData));
        let mut bases = Vec::with_capacity(jobs.len());
        for job in jobs {
            let mut job_bases = Vec::with_capacity(job.chunks.len());
            for (index, encoded) in &job.chunks {
                let Some(place) = self.shared.places.get(*index) else { continue };
                let at = match packers.iter().position(|(other, _)| other == index) {
                    Some(at) => at,
                    None => {
                        let end = place.readable.borrow().end;
                        packers.push((*index, Packer::new(place.topic.name, place.partition, end, self.caps)));
                        packers.len() - 1
                    }
                };
                let packer = &mut packers[at].1;
                job_bases.push(packer.end());
                packer.push(encoded, |base, value| batch.insert(&place.keyspace, packed::key(place.partition, base), value));
            }
            bases.push(job_bases);
        }
        let mut grown = Vec::with_capacity(packers.len());
        for (index, mut packer) in packers {
            let Some(place) = self.shared.places.get(index) else { continue };
            packer.finish(|base, value| batch.insert(&place.keyspace, packed::key(place.partition, base), value));
            grown.push((index, packer.end()));
        }
        guarded(|| batch.commit())?;
        Ok((bases, grown))
    }

    /// Moves what is in memory into tables, so that the next open has little to replay.
    fn flush(&mut self) -> Result<(), Error> {
        let result = guarded(|| {
            let mut keyspaces: Vec<&fjall::Keyspace> = self.shared.places.iter().map(|place| &place.keyspace).collect();
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
                // Fails once a background writer has failed: it would be waited for in vain.
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
            what: "the log cannot be flushed; what it acknowledged is in its journal".to_owned(),
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
