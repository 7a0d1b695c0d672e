//! Opens the log: checks the files before the store may change them, opens the store and its topics, and compares the result with the
//! `ends` file.

use std::collections::BTreeMap;
use std::fs;
use std::path::Path;
use std::sync::{Mutex, RwLock};

use disk_files::library::{catch_panic, is_damage};
use fjall::{CompressionType, Database, Keyspace, KeyspaceCreateOptions, KvSeparationOptions};
use schemas::position::LogOffset;
use schemas::topics::Topic;
use tokio::sync::watch;

use super::ends::{self, Ends, EndsFile, EndsRead};
use super::format;
use super::journal_backup::{BACKUP_DIR, JournalBackup};
use super::options::Options;
use super::precheck;
use super::read::{damaged, verified_end};
use super::state::{PartitionState, Readable, Shared, TopicTable};
use super::store_error::{locked, unavailable};
use crate::Error;

/// The minimum that fjall accepts.
const JOURNAL_BYTES_MIN: u64 = 64 * 1024 * 1024;
const FILES_OPEN_MIN: usize = 10;
/// Keeps lengths within a packed value well below `u32::MAX`.
const PACKED_BYTES_LIMIT: usize = 256 * 1024 * 1024;
/// Values of this size or more go to separate files, which compaction does not rewrite.
const SEPARATE_BYTES_MIN: u32 = 4 * 1024;
const BLOB_FILE_BYTES: u64 = 256 * 1024 * 1024;

/// The result of opening.
pub(super) struct Opened {
    pub(super) db: Database,
    pub(super) ends_file: EndsFile,
    pub(super) shared: Shared,
}

/// Opens the log in `dir`.
pub(super) fn open(dir: &Path, options: &Options) -> Result<Opened, Error> {
    check(options)?;
    format::check(dir)?;
    let store = dir.join("store");
    fs::create_dir_all(&store).map_err(|error| unavailable(format!("the log's directory {} cannot be made", store.display()), error))?;
    let known = match ends::read(dir)
        .map_err(|error| unavailable(format!("the log's file {} cannot be read", ends::path(dir).display()), error))?
    {
        EndsRead::Ends(ends, is_flushed) => Some((ends, is_flushed)),
        EndsRead::Nothing => None,
        EndsRead::Damaged => {
            let what = format!(
                "the log's file {} is damaged, so it is unknown whether the log is whole; remove the file to continue with the records that the log still has",
                ends::path(dir).display()
            );
            return Err(Error::Unavailable { what, source: None });
        }
    };
    precheck::check(&store, known.is_some())?;
    let is_flushed = known.as_ref().is_some_and(|(_, is_flushed)| *is_flushed);
    let backup = JournalBackup::new(dir, &store, is_flushed, options.space.as_deref());
    let known = known.map(|(ends, _)| ends);

    let cannot_open = |error: fjall::Error| match error {
        fjall::Error::Locked => locked(&store),
        error if is_damage(&error) => {
            let advice = "restore the log from a backup (ops/docs/operations/runbooks/damaged-log.md)";
            unavailable(format!("the log's store in {} is damaged and cannot be opened; {advice}", store.display()), error)
        }
        // Such as too many open files or missing permissions.
        error => unavailable(format!("the log's store in {} cannot be opened now", store.display()), error),
    };
    let db = catch_panic(|| {
        Database::builder(&store)
            .cache_size(options.cache_bytes)
            .max_journaling_size(options.journal_bytes_max.max(JOURNAL_BYTES_MIN))
            .max_cached_files(Some(options.files_open_max.max(FILES_OPEN_MIN)))
            .journal_compression(CompressionType::None)
            .worker_threads(1)
            .open()
    })
    .map_err(cannot_open)?;
    // The sequence number of a journal entry is not covered by a checksum. If it is damaged, the store may skip a batch in the middle.
    let walk_bytes = if is_flushed { 0 } else { precheck::journal_bytes(&store).map_err(|error| cannot_open(error.into()))? };
    let mut shared = Shared { partitions: Vec::new(), firsts: Vec::new(), stopped: RwLock::default() };
    for topic in options.topics {
        let table = if db.keyspace_exists(topic.name) {
            TopicTable::Open(open_table(&db, topic, options).map_err(cannot_open)?)
        } else {
            TopicTable::Missing
        };
        shared.firsts.push((topic.name, shared.partitions.len()));
        for partition in 0..topic.partitions {
            let partition =
                u16::try_from(partition).map_err(|error| unavailable(format!("topic {} has too many partitions", topic.name), error))?;
            let state = PartitionState {
                topic,
                partition,
                table: RwLock::new(table.clone()),
                readable: watch::Sender::new(Readable::default()),
                unfinished: Mutex::new(None),
            };
            let end = verified_end(&state, walk_bytes)?;
            state.readable.send_modify(|readable| readable.end = end);
            shared.partitions.push(state);
        }
    }
    let is_compared = known.is_some();
    let ends = compare(&shared, known, dir)?;
    format::record(dir)?;
    backup.settle(is_compared);
    let ends_file = EndsFile::create(dir, &ends)
        .map_err(|error| unavailable(format!("the log's file {} cannot be written", ends::path(dir).display()), error))?;
    Ok(Opened { db, ends_file, shared })
}

/// Opens the table of a topic; creates it if there is none.
pub(super) fn open_table(db: &Database, topic: &Topic, options: &Options) -> Result<Keyspace, fjall::Error> {
    catch_panic(|| {
        db.keyspace(topic.name, || {
            KeyspaceCreateOptions::default().max_memtable_size(options.memtable_bytes).with_kv_separation(Some(
                KvSeparationOptions::default()
                    .separation_threshold(SEPARATE_BYTES_MIN)
                    .file_target_size(BLOB_FILE_BYTES)
                    .compression(CompressionType::None),
            ))
        })
    })
}

fn check(options: &Options) -> Result<(), Error> {
    for (name, bytes) in [("record_bytes_max", options.record_bytes_max), ("packed_bytes_max", options.packed_bytes_max)] {
        if bytes > PACKED_BYTES_LIMIT {
            return Err(Error::Unavailable { what: format!("{name} is {bytes}, over {PACKED_BYTES_LIMIT}"), source: None });
        }
    }
    Ok(())
}

/// Compares the content of the store with the acknowledged end offsets. Returns the end offsets that are valid from now on.
fn compare(shared: &Shared, known: Option<Ends>, dir: &Path) -> Result<Ends, Error> {
    let found: Ends = shared
        .partitions
        .iter()
        .map(|state| ((state.topic.name.to_owned(), u32::from(state.partition)), state.readable.borrow().end))
        .collect();
    let Some(known) = known else {
        if found.values().any(|end| *end > LogOffset(0)) {
            tracing::warn!(file = %ends::path(dir).display(), "the log's ends file is missing; a new one is created, and an earlier loss would not be noticed");
        }
        return Ok(found);
    };
    for state in &shared.partitions {
        let acknowledged = known.get(&(state.topic.name.to_owned(), u32::from(state.partition))).copied().unwrap_or_default();
        let end = state.readable.borrow().end;
        if end < acknowledged {
            let reason = format!(
                "{} acknowledged records are missing from here on; the journal as it was found is in {}; restore the log from a copy, or remove {} to continue without them",
                acknowledged.since(end),
                dir.join(BACKUP_DIR).display(),
                ends::path(dir).display()
            );
            return Err(damaged(state, end, &reason));
        }
    }
    // Partitions of topics that this configuration does not name retain their acknowledged ends.
    let mut merged: BTreeMap<_, _> = known;
    merged.extend(found);
    Ok(merged)
}
