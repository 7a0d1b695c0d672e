//! Opening: the checks before the store may touch its files, the store, its topics, the ends, and the checks after.

use std::collections::BTreeMap;
use std::error::Error as StdError;
use std::fs;
use std::io;
use std::panic::{self, AssertUnwindSafe};
use std::path::Path;
use std::sync::{Mutex, OnceLock};

use fjall::{CompressionType, Database, KeyspaceCreateOptions, KvSeparationOptions};
use tokio::sync::watch;

use super::ends::{self, Ends, EndsFile, Found};
use super::keep::{KEPT, KeptJournal};
use super::precheck;
use super::read::{damaged, end_after_walk};
use super::{Options, Place, Readable, Shared};
use crate::Error;

/// The least that fjall takes.
const JOURNAL_BYTES_MIN: u64 = 64 * 1024 * 1024;
const FILES_OPEN_MIN: usize = 10;
/// Keeps lengths inside a packed value far from `u32::MAX`.
const PACKED_BYTES_LIMIT: usize = 256 * 1024 * 1024;
/// Values from this size on go to files of their own, which compaction does not write again.
const SEPARATE_BYTES_MIN: u32 = 4 * 1024;
const BLOB_FILE_BYTES: u64 = 256 * 1024 * 1024;

/// What opening yields.
pub(super) struct Opened {
    pub(super) db: Database,
    pub(super) ends_file: EndsFile,
    pub(super) shared: Shared,
}

/// Runs a call of the store; a panic in it, which broken files can cause, becomes an error.
pub(super) fn guarded<T>(call: impl FnOnce() -> Result<T, fjall::Error>) -> Result<T, fjall::Error> {
    // What the closure leaves half changed is the store's own state, and nothing is written after a failure.
    panic::catch_unwind(AssertUnwindSafe(call)).unwrap_or_else(|panic| {
        let words = panic.downcast_ref::<&str>().map(|words| (*words).to_owned());
        let words = words.or_else(|| panic.downcast_ref::<String>().cloned()).unwrap_or_default();
        Err(fjall::Error::Io(io::Error::other(format!("the store panicked: {words}"))))
    })
}

/// Opens the log in `dir`.
pub(super) fn open(dir: &Path, options: &Options) -> Result<Opened, Error> {
    check(options)?;
    let store = dir.join("store");
    fs::create_dir_all(&store).map_err(|error| unavailable(format!("the log's directory {} cannot be made", store.display()), error))?;
    let known = match ends::read(dir)
        .map_err(|error| unavailable(format!("the log's file {} cannot be read", ends::path(dir).display()), error))?
    {
        Found::Ends(ends, is_flushed) => Some((ends, is_flushed)),
        Found::Nothing => None,
        Found::Damaged => {
            let what = format!(
                "the log's file {} is damaged, so it is unknown whether the log is whole; remove the file to go on with what the log holds",
                ends::path(dir).display()
            );
            return Err(Error::Unavailable { what, source: None });
        }
    };
    precheck::check(&store, known.is_some())?;
    let is_flushed = known.as_ref().is_some_and(|(_, is_flushed)| *is_flushed);
    let kept = KeptJournal::new(dir, &store, is_flushed);
    let known = known.map(|(ends, _)| ends);

    let cannot_open = |error: fjall::Error| match error {
        fjall::Error::Locked => locked(&store),
        error => unavailable(format!("the log's store in {} cannot be opened", store.display()), error),
    };
    let db = guarded(|| {
        Database::builder(&store)
            .cache_size(options.cache_bytes)
            .max_journaling_size(options.journal_bytes_max.max(JOURNAL_BYTES_MIN))
            .max_cached_files(Some(options.files_open_max.max(FILES_OPEN_MIN)))
            .journal_compression(CompressionType::None)
            .worker_threads(1)
            .open()
    })
    .map_err(cannot_open)?;
    // The journal's own entries carry a number that no checksum covers, by which the store may skip a batch in the middle.
    let walk_bytes = if is_flushed { 0 } else { precheck::journal_bytes(&store).map_err(|error| cannot_open(error.into()))? };
    let mut shared = Shared { places: Vec::new(), firsts: Vec::new(), stopped: OnceLock::new() };
    for topic in options.topics {
        let keyspace = guarded(|| {
            db.keyspace(topic.name, || {
                KeyspaceCreateOptions::default().max_memtable_size(options.memtable_bytes).with_kv_separation(Some(
                    KvSeparationOptions::default()
                        .separation_threshold(SEPARATE_BYTES_MIN)
                        .file_target_size(BLOB_FILE_BYTES)
                        .compression(CompressionType::None),
                ))
            })
        })
        .map_err(cannot_open)?;
        shared.firsts.push((topic.name, shared.places.len()));
        for partition in 0..topic.partitions {
            let partition =
                u16::try_from(partition).map_err(|error| unavailable(format!("topic {} has too many partitions", topic.name), error))?;
            let place = Place {
                topic,
                partition,
                keyspace: keyspace.clone(),
                readable: watch::Sender::new(Readable::default()),
                unfinished: Mutex::new(None),
            };
            let end = end_after_walk(&place, walk_bytes)?;
            place.readable.send_modify(|readable| readable.end = end);
            shared.places.push(place);
        }
    }
    let is_compared = known.is_some();
    let ends = compare(&shared, known, dir)?;
    kept.settle(is_compared);
    let ends_file = EndsFile::create(dir, &ends)
        .map_err(|error| unavailable(format!("the log's file {} cannot be written", ends::path(dir).display()), error))?;
    Ok(Opened { db, ends_file, shared })
}

fn check(options: &Options) -> Result<(), Error> {
    for (name, bytes) in [("record_bytes_max", options.record_bytes_max), ("packed_bytes_max", options.packed_bytes_max)] {
        if bytes > PACKED_BYTES_LIMIT {
            return Err(Error::Unavailable { what: format!("{name} is {bytes}, over {PACKED_BYTES_LIMIT}"), source: None });
        }
    }
    Ok(())
}

/// Compares what the store holds with what was acknowledged, and answers the ends that hold from now on.
fn compare(shared: &Shared, known: Option<Ends>, dir: &Path) -> Result<Ends, Error> {
    let found: Ends = shared
        .places
        .iter()
        .map(|place| ((place.topic.name.to_owned(), u32::from(place.partition)), place.readable.borrow().end))
        .collect();
    let Some(known) = known else {
        if found.values().any(|end| *end > 0) {
            tracing::warn!(file = %ends::path(dir).display(), "the log's ends file is missing; it is made anew, and an earlier loss would not be noticed");
        }
        return Ok(found);
    };
    for place in &shared.places {
        let acknowledged = known.get(&(place.topic.name.to_owned(), u32::from(place.partition))).copied().unwrap_or(0);
        let end = place.readable.borrow().end;
        if end < acknowledged {
            let reason = format!(
                "{} acknowledged records are missing from here on; the journal as it was found is kept in {}; restore the log from a copy, or remove {} to go on without them",
                acknowledged - end,
                dir.join(KEPT).display(),
                ends::path(dir).display()
            );
            return Err(damaged(place, end, &reason));
        }
    }
    // Partitions of topics that this configuration does not name keep what was acknowledged.
    let mut merged: BTreeMap<_, _> = known;
    merged.extend(found);
    Ok(merged)
}

pub(super) fn locked(store: &Path) -> Error {
    Error::Unavailable {
        what: format!("the log in {} is in use by another process, or still open in this one", store.display()),
        source: Some(Box::new(fjall::Error::Locked)),
    }
}

pub(super) fn unavailable(what: String, source: impl StdError + Send + Sync + 'static) -> Error {
    Error::Unavailable { what, source: Some(Box::new(source)) }
}
