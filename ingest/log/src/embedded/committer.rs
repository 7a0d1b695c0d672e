//! The only thread that writes. It takes all waiting appends, writes them as one batch of the store, syncs once, and answers all of them.
//!
//! A commit takes as long as a sync, and the appends that arrive meanwhile form the next commit. Group commit therefore needs no timer.

use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::mpsc::{Receiver, RecvTimeoutError};
use std::time::Duration;

use disk_files::durable_file;
use disk_files::library::{catch_panic, wait_for_release};
use fjall::{Database, Keyspace, PersistMode};
use schemas::position::LogOffset;
use tokio::sync::{OwnedSemaphorePermit, oneshot};

use super::ends::{Ends, EndsFile};
use super::open;
use super::options::Options;
use super::packed_values::{self, Encoded, PackLimits, Packer};
use super::state::{PartitionState, Shared, Stopped, TopicTable};
use super::store_error::locked;
use crate::Error;

/// The `ends` file is synced after this time without appends, and after this many commits in any case.
const IDLE: Duration = Duration::from_secs(1);
const COMMITS_PER_ENDS_SYNC: u32 = 256;

/// How often `close` checks whether all tables are written, and how many times. Records that are not in tables by then remain in the
/// journal.
const FLUSH_POLL: Duration = Duration::from_millis(2);
const FLUSH_POLLS_MAX: u32 = 10_000;
/// How many full write buffers may wait for the store's worker. From 4 on, the store makes a commit wait.
const SEALED_MAX: usize = 3;

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
    /// Answer with the ends of all partitions between two commits.
    Ends(oneshot::Sender<Vec<LogOffset>>),
    /// Flush to tables, sync, answer and stop.
    Close(oneshot::Sender<Result<(), Error>>),
    /// Stop without flushing.
    Stop,
}

/// How often it is checked whether the disk has space again.
const RESUME_POLL_INTERVAL: Duration = Duration::from_secs(1);

/// The state of the committer thread.
pub(super) struct Committer {
    dir: PathBuf,
    options: Options,
    /// `None` while the log could not be opened again after the disk was full.
    db: Option<Database>,
    /// Whether the log must be opened again before the next commit, because a commit met a full disk.
    must_reopen: bool,
    ends_file: EndsFile,
    ends: Ends,
    shared: Arc<Shared>,
    limits: PackLimits,
    commit_bytes_max: usize,
    commits_unsynced: u32,
}

impl Committer {
    pub(super) fn new(dir: &Path, db: Database, ends_file: EndsFile, shared: Arc<Shared>, options: &Options) -> Self {
        let ends = shared
            .partitions
            .iter()
            .map(|state| ((state.topic.name.to_owned(), u32::from(state.partition)), state.readable.borrow().end))
            .collect();
        Self {
            dir: dir.to_owned(),
            options: options.clone(),
            db: Some(db),
            must_reopen: false,
            ends_file,
            ends,
            shared,
            limits: options.limits(),
            commit_bytes_max: options.commit_bytes_max,
            commits_unsynced: 0,
        }
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
                Work::Ends(answer) => {
                    // A caller that is gone needs no answer.
                    let _ = answer.send(self.shared.ends());
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
        while self.is_paused() {
            match inbox.recv_timeout(RESUME_POLL_INTERVAL) {
                Ok(work) => return Some(work),
                Err(RecvTimeoutError::Timeout) => self.resume(),
                Err(RecvTimeoutError::Disconnected) => return None,
            }
        }
        if self.commits_unsynced > 0 {
            match inbox.recv_timeout(IDLE) {
                Ok(work) => return Some(work),
                Err(RecvTimeoutError::Timeout) => self.sync_ends(),
                Err(RecvTimeoutError::Disconnected) => return None,
            }
        }
        inbox.recv().ok()
    }

    fn is_paused(&self) -> bool {
        matches!(self.shared.stopped(), Some(Stopped::Full(_)))
    }

    /// Refuses appends until the disk has space, and answers those that wait.
    fn pause(&self, error: fjall::Error, jobs: Vec<Job>) {
        self.shared.stop(Stopped::Full(Arc::new(error)));
        for job in jobs {
            let _ = job.answer.send(Err(self.shared.stopped_error()));
        }
    }

    fn is_disk_full(&self, error: &fjall::Error) -> bool {
        self.options.space.as_ref().is_some_and(|space| space.explains(error))
    }

    /// As [`Self::pause`], after an error of the store, which must be opened again.
    fn pause_until_reopened(&mut self, error: fjall::Error, jobs: Vec<Job>) {
        if let Some(space) = &self.options.space {
            space.pause();
        }
        self.must_reopen = true;
        self.pause(error, jobs);
    }

    /// Accepts appends again if the disk has space.
    fn resume(&mut self) {
        if self.options.space.as_ref().is_some_and(|space| space.check().is_err()) {
            return;
        }
        // The store's worker may have met the full disk, too, and passes no error on.
        let is_whole = |db: &Database| db.persist(PersistMode::Buffer).is_ok();
        if self.must_reopen || !self.db.as_ref().is_some_and(is_whole) {
            match self.reopen() {
                Ok(()) => tracing::info!("the log is open again and accepts records"),
                Err(error) => {
                    tracing::warn!(error = &error as &dyn std::error::Error, "the log cannot be opened again yet, will retry");
                    return;
                }
            }
        }
        self.shared.resume();
    }

    /// Opens the log again. Reads fail meanwhile; the last of them releases the files.
    fn reopen(&mut self) -> Result<(), Error> {
        self.db = None;
        self.shared.partitions.iter().for_each(|state| state.set_table(TopicTable::Reopening));
        let store = self.dir.join("store");
        wait_for_release(&store).map_err(|_| locked(&store))?;
        let opened = open::open(&self.dir, &self.options)?;
        for (own, new) in self.shared.partitions.iter().zip(&opened.shared.partitions) {
            own.set_table(new.table());
            let end = new.readable.borrow().end;
            // The commit that failed may be durable.
            own.readable.send_modify(|readable| readable.end = end);
            self.ends.insert((own.topic.name.to_owned(), u32::from(own.partition)), end);
        }
        (self.db, self.ends_file, self.must_reopen) = (Some(opened.db), opened.ends_file, false);
        Ok(())
    }

    /// Writes the jobs and answers them. Returns false if the log must stop.
    fn commit(&mut self, jobs: Vec<Job>) -> bool {
        if self.is_paused() {
            self.resume();
        }
        if self.is_paused() {
            for job in jobs {
                let _ = job.answer.send(Err(self.shared.stopped_error()));
            }
            return true;
        }
        if let Some(Err(full)) = self.options.space.as_ref().map(|space| space.check()) {
            self.pause(full.into(), jobs);
            return true;
        }
        let jobs = match self.create_tables(jobs) {
            Ok(jobs) if jobs.is_empty() => return true,
            Ok(jobs) => jobs,
            Err((error, jobs)) => {
                self.pause_until_reopened(error, jobs);
                return true;
            }
        };
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
            Err(error) if self.is_disk_full(&error) => {
                self.pause_until_reopened(error, jobs);
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

    /// Creates the tables that the jobs need and that do not exist yet. Returns the jobs that can be written; the others are answered. If the disk is full,
    /// returns that error with all jobs that are not answered.
    fn create_tables(&self, jobs: Vec<Job>) -> Result<Vec<Job>, (fjall::Error, Vec<Job>)> {
        let mut ready = Vec::with_capacity(jobs.len());
        let mut jobs = jobs.into_iter();
        while let Some(job) = jobs.next() {
            let states = job.chunks.iter().filter_map(|(index, _)| self.shared.partitions.get(*index));
            let created =
                states.filter(|state| matches!(state.table(), TopicTable::Missing)).try_for_each(|state| self.create_table(state));
            match created {
                Ok(()) => ready.push(job),
                Err(error) if self.is_disk_full(&error) => {
                    ready.push(job);
                    ready.extend(jobs);
                    return Err((error, ready));
                }
                Err(error) => {
                    tracing::error!(error = &error as &dyn std::error::Error, "the table of a topic cannot be created");
                    let what = "nothing was appended, because the table of a topic cannot be created".to_owned();
                    let _ = job.answer.send(Err(Error::Unavailable { what, source: Some(Box::new(error)) }));
                }
            }
        }
        Ok(ready)
    }

    fn create_table(&self, state: &PartitionState) -> Result<(), fjall::Error> {
        let Some(db) = &self.db else { return Err(fjall::Error::Poisoned) };
        let keyspace = open::open_table(db, state.topic, &self.options)?;
        // The store syncs the files of the table, but not their directory, before the first record is acknowledged.
        durable_file::sync_directory_of(keyspace.path())?;
        self.shared.set_table_of(state.topic, &keyspace);
        Ok(())
    }

    /// Writes one batch and syncs it. Returns the first offset of each job's chunks, and the new end of each partition by its index.
    #[expect(clippy::type_complexity, reason = "two lists that live for four lines")]
    fn write(&self, jobs: &[Job]) -> Result<(Vec<Vec<LogOffset>>, Vec<(usize, LogOffset)>), fjall::Error> {
        let mut packers: Vec<(usize, Packer)> = Vec::new();
        // Without a database appends are refused before they get here.
        let Some(db) = &self.db else { return Err(fjall::Error::Poisoned) };
        let mut batch = db.batch().durability(Some(PersistMode::SyncData));
        let mut bases = Vec::with_capacity(jobs.len());
        for job in jobs {
            let mut job_bases = Vec::with_capacity(job.chunks.len());
            for (index, encoded) in &job.chunks {
                let Some(state) = self.shared.partitions.get(*index) else { continue };
                let Ok(Some(keyspace)) = state.keyspace() else { return Err(fjall::Error::Poisoned) };
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
                packer.push(encoded, |base, value| batch.insert(&keyspace, packed_values::key(state.partition, base), value));
            }
            bases.push(job_bases);
        }
        let mut grown = Vec::with_capacity(packers.len());
        for (index, mut packer) in packers {
            let Some(state) = self.shared.partitions.get(index) else { continue };
            let Ok(Some(keyspace)) = state.keyspace() else { return Err(fjall::Error::Poisoned) };
            packer.finish(|base, value| batch.insert(&keyspace, packed_values::key(state.partition, base), value));
            grown.push((index, packer.end()));
        }
        self.wait_for_worker(db, grown.iter().map(|(index, _)| *index))?;
        catch_panic(|| batch.commit())?;
        Ok((bases, grown))
    }

    /// Waits while the store would make a commit to these partitions wait for its worker, which it does without end if the worker has failed.
    fn wait_for_worker(&self, db: &Database, partitions: impl Iterator<Item = usize>) -> Result<(), fjall::Error> {
        for keyspace in partitions.filter_map(|index| self.shared.partitions.get(index)?.keyspace().ok()?) {
            while keyspace.sealed_memtable_count() >= SEALED_MAX {
                db.persist(PersistMode::Buffer)?;
                std::thread::sleep(FLUSH_POLL);
            }
        }
        Ok(())
    }

    /// Moves the write buffers into tables, so that the next open has little to replay.
    fn flush(&mut self) -> Result<(), Error> {
        // Without a database the last commit met a full disk, and the journal has what was acknowledged.
        let Some(db) = &self.db else { return Ok(()) };
        let result = catch_panic(|| {
            let mut keyspaces: Vec<Keyspace> = self.shared.partitions.iter().filter_map(|state| state.keyspace().ok()?).collect();
            keyspaces.dedup_by_key(|keyspace| keyspace.id());
            db.persist(PersistMode::SyncAll)?;
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
                db.persist(PersistMode::Buffer)?;
            }
            db.persist(PersistMode::SyncAll)?;
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
