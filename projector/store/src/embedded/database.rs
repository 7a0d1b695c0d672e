//! The opened data directory: the storage engine, its internal keyspaces, and the content of `meta`.
//!
//! `meta` contains `format`, `live/VIEW` (the live generation) and `checkpoint/VIEW/GENERATION`. A keyspace `VIEW.gN.TABLE` contains one
//! table of one generation. Keyspaces that belong to no live generation were left by a crash and are deleted when the directory is opened.

use std::collections::HashMap;
use std::panic::AssertUnwindSafe;
use std::path::Path;
use std::sync::Mutex;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

use fjall::{AbstractTree, CompressionType, Database, Keyspace, PersistMode};
use schemas::tables::Table;

use super::failure::{engine, opening, unpoisoned};
use super::tuning::Options;
use crate::store::{Checkpoint, Error};

const FORMAT: &[u8] = b"1";
const META: &str = "meta";
/// How often the engine's worker is polled while waiting for it: it has no signal to wait for.
const WORKER_POLL_INTERVAL: Duration = Duration::from_millis(1);
/// The most polls while waiting.
const WORKER_POLLS_MAX: u32 = 60_000;
/// The least memory that is worth flushing or releasing.
const FLUSHED_BYTES_MIN: u64 = 256 * 1024;

/// The storage engine and the store's own keyspaces.
pub(super) struct Core {
    pub(super) db: Database,
    pub(super) meta: Keyspace,
    pub(super) coordination: Keyspace,
    /// Contains a row without a meaning, see [`Self::release_memory`].
    rotated: Keyspace,
    pub(super) options: Options,
    /// The open tables, by keyspace name.
    tables: Mutex<HashMap<String, Keyspace>>,
    /// The most memory of all tables together, in bytes, since memory was last released.
    memory_peak: AtomicU64,
}

impl Core {
    /// Opens or creates the directory, and deletes what a crash left.
    pub(super) fn open(dir: &Path, options: Options) -> Result<Self, Error> {
        std::fs::create_dir_all(dir).map_err(|error| opening(dir, error.into()))?;
        check_names(dir)?;
        let builder = Database::builder(dir)
            .cache_size(options.cache_bytes)
            .max_journaling_size(options.max_journaling_bytes)
            // With several workers, the engine's first one passes compactions on without pause while the others are busy, which spins.
            .worker_threads(1)
            // Large values are feed blocks; compressing them costs more time than the smaller journal saves.
            .journal_compression(CompressionType::None);
        // The engine asserts parts of what it reads from files. For a caller such a panic is damage like any other.
        let opened = std::panic::catch_unwind(AssertUnwindSafe(|| {
            let db = builder.open()?;
            let meta = db.keyspace(META, Options::own_layout)?;
            let coordination = db.keyspace("coordination", Options::own_layout)?;
            let rotated = db.keyspace("spare", Options::own_layout)?;
            Ok(Self { db, meta, coordination, rotated, options, tables: Mutex::default(), memory_peak: AtomicU64::default() })
        }));
        let core = match opened {
            Ok(result) => result.map_err(|error| opening(dir, error))?,
            Err(_) => {
                let reason = "its files are inconsistent; the engine's message is on standard error".to_owned();
                return Err(Error::Damaged { table: format!("the view store at {}", dir.display()), reason });
            }
        };
        match core.read_meta("format")? {
            None => core.write_meta("format", FORMAT)?,
            Some(format) if format == FORMAT => {}
            Some(_) => {
                return Err(Error::Unavailable {
                    what: format!("the view store at {} was written by a newer version of this program", dir.display()),
                    source: None,
                });
            }
        }
        core.delete_leftovers()?;
        Ok(core)
    }

    /// Returns the live generation of a view, if it has one.
    pub(super) fn live_generation(&self, view: &str) -> Result<Option<u64>, Error> {
        self.read_meta(&format!("live/{view}"))?.map(|value| generation_of(&value)).transpose()
    }

    /// Makes a generation the live one. Synced, together with everything written before.
    pub(super) fn set_live_generation(&self, view: &str, generation: u64) -> Result<(), Error> {
        self.write_meta(&format!("live/{view}"), &generation.to_be_bytes())
    }

    /// Returns the checkpoint stored with a generation's rows.
    pub(super) fn checkpoint(&self, view: &str, generation: u64) -> Result<Checkpoint, Error> {
        let Some(value) = self.read_meta(&checkpoint_key(view, generation))? else { return Ok(Checkpoint::default()) };
        serde_json::from_slice(&value).map_err(|error| damaged(format!("the checkpoint of {view} cannot be decoded: {error}")))
    }

    /// Opens the keyspace of a table; creates it if there is none.
    pub(super) fn open_table(&self, name: &str, table: &Table) -> Result<Keyspace, Error> {
        let keyspace = self.db.keyspace(name, || self.options.layout(table)).map_err(|error| engine("open", name, error))?;
        unpoisoned(self.tables.lock()).insert(name.to_owned(), keyspace.clone());
        Ok(keyspace)
    }

    /// Flushes the table with the most memory when all tables together use too much, and releases flushed memory. Called after commits, so
    /// that many small tables remain within the bound, too, which the engine applies to each table alone. If the engine's worker is too
    /// slow with flushes and compactions, the writer waits for it: otherwise unflushed rows would fill the memory.
    pub(super) fn limit_memory(&self) {
        self.flush_largest();
        let mut polls = 0;
        while polls < WORKER_POLLS_MAX
            && self.db.write_buffer_size() > self.options.write_buffer_total_bytes * 3 / 2
            && self.db.outstanding_flushes() > 0
        {
            std::thread::sleep(WORKER_POLL_INTERVAL);
            polls += 1;
        }
        self.release_memory();
    }

    /// Releases memory that was flushed since the last release. The engine keeps it until a table is rotated for flushing and something was
    /// written after the flush; therefore a row is written to a table of its own, which is then rotated. `meta` cannot serve for this: a
    /// checkpoint must not reach the disk before its rows.
    fn release_memory(&self) {
        let (before, now) = (self.memory_peak.load(Ordering::Acquire), self.db.write_buffer_size());
        if before.saturating_sub(now) < FLUSHED_BYTES_MIN {
            self.memory_peak.fetch_max(now, Ordering::AcqRel);
            return;
        }
        // One rotation at a time: the previous one is flushed first.
        if self.rotated.sealed_memtable_count() > 0
            || self.memory_peak.compare_exchange(before, now, Ordering::AcqRel, Ordering::Relaxed).is_err()
        {
            return;
        }
        if let Err(error) = self.rotated.insert("at", []).and_then(|()| self.rotated.rotate_memtable()) {
            tracing::warn!(%error, "cannot release flushed memory");
        }
    }

    fn flush_largest(&self) {
        if self.db.write_buffer_size() < self.options.write_buffer_total_bytes || self.db.outstanding_flushes() > 0 {
            return;
        }
        let size = |keyspace: &Keyspace| keyspace.tree.active_memtable().size();
        let largest = unpoisoned(self.tables.lock()).values().max_by_key(|keyspace| size(keyspace)).cloned();
        if let Some(largest) = largest.filter(|largest| size(largest) >= FLUSHED_BYTES_MIN)
            && let Err(error) = largest.rotate_memtable()
        {
            tracing::warn!(table = %&**largest.name(), %error, "cannot flush a table early");
        }
    }

    /// Deletes the keyspaces and the checkpoint of a generation. Files are removed when their last reader is done.
    pub(super) fn delete_generation(&self, view: &str, generation: u64, keyspaces: Vec<Keyspace>) -> Result<(), Error> {
        for keyspace in keyspaces {
            let name = keyspace.name().to_string();
            unpoisoned(self.tables.lock()).remove(&name);
            self.db.delete_keyspace(keyspace).map_err(|error| engine("delete", &name, error))?;
        }
        self.meta.remove(checkpoint_key(view, generation)).map_err(|error| engine("write", META, error))
    }

    /// Writes the memory of every table to its file, so that the next opening has little to replay.
    pub(super) fn flush(&self) -> Result<(), Error> {
        let mut flushing = Vec::new();
        for name in self.db.list_keyspace_names() {
            let keyspace = self.db.keyspace(&name, Options::own_layout).map_err(|error| engine("flush", &name, error))?;
            keyspace.rotate_memtable().map_err(|error| engine("flush", &name, error))?;
            flushing.push(keyspace);
        }
        // If the engine's worker has died, closing must not wait forever: the journal contains the rows.
        let mut polls = 0;
        while polls < WORKER_POLLS_MAX && flushing.iter().any(|keyspace| keyspace.sealed_memtable_count() > 0) {
            std::thread::sleep(WORKER_POLL_INTERVAL);
            polls += 1;
        }
        self.db.persist(PersistMode::SyncAll).map_err(|error| engine("sync", "the view store", error))
    }

    fn delete_leftovers(&self) -> Result<(), Error> {
        let mut leftovers: HashMap<(String, u64), Vec<Keyspace>> = HashMap::new();
        for name in self.db.list_keyspace_names() {
            let Some((view, generation)) = split_name(&name) else { continue };
            if self.live_generation(view)? != Some(generation) {
                let keyspace = self.db.keyspace(&name, Options::own_layout).map_err(|error| engine("open", &name, error))?;
                leftovers.entry((view.to_owned(), generation)).or_default().push(keyspace);
            }
        }
        for ((view, generation), keyspaces) in leftovers {
            tracing::info!(view, generation, "deleting a generation that a crash left");
            self.delete_generation(&view, generation, keyspaces)?;
        }
        Ok(())
    }

    fn read_meta(&self, key: &str) -> Result<Option<fjall::UserValue>, Error> {
        self.meta.get(key).map_err(|error| engine("read", META, error))
    }

    fn write_meta(&self, key: &str, value: &[u8]) -> Result<(), Error> {
        let mut batch = self.db.batch().durability(Some(PersistMode::SyncAll));
        batch.insert(&self.meta, key, value);
        batch.commit().map_err(|error| engine("write", META, error))
    }
}

/// Refuses a directory with files whose names the engine did not assign: the engine would abort the process.
fn check_names(dir: &Path) -> Result<(), Error> {
    let keyspaces = dir.join("keyspaces");
    if !keyspaces.is_dir() {
        return Ok(());
    }
    for entry in std::fs::read_dir(&keyspaces).map_err(|error| opening(dir, error.into()))? {
        let entry = entry.map_err(|error| opening(dir, error.into()))?;
        let name = entry.file_name();
        if entry.path().is_dir() && name.to_str().is_none_or(|name| name.parse::<u64>().is_err()) {
            let reason = format!("{} does not belong to the store", entry.path().display());
            return Err(Error::Damaged { table: format!("the view store at {}", dir.display()), reason });
        }
    }
    Ok(())
}

/// Returns the key of a generation's checkpoint in `meta`.
pub(super) fn checkpoint_key(view: &str, generation: u64) -> String {
    format!("checkpoint/{view}/{generation}")
}

/// Returns the name of the keyspace for one table of one generation.
pub(super) fn keyspace_name(view: &str, generation: u64, table: &str) -> Result<String, Error> {
    const NAME_BYTES_MAX: usize = 255;
    let name = format!("{view}.g{generation}.{table}");
    if name.len() > NAME_BYTES_MAX || view.contains('/') || table.contains('.') {
        return Err(Error::Unavailable {
            what: format!("{name} cannot name a table: at most {NAME_BYTES_MAX} bytes, no slash in the view, no dot in the table"),
            source: None,
        });
    }
    Ok(name)
}

/// Splits the name of a keyspace into view and generation; `None` for the store's own keyspaces.
fn split_name(name: &str) -> Option<(&str, u64)> {
    let (rest, _table) = name.rsplit_once('.')?;
    let (view, generation) = rest.rsplit_once(".g")?;
    Some((view, generation.parse().ok()?))
}

fn generation_of(value: &[u8]) -> Result<u64, Error> {
    value.try_into().map(u64::from_be_bytes).map_err(|_| damaged("a generation does not read back".to_owned()))
}

fn damaged(reason: String) -> Error {
    Error::Damaged { table: META.to_owned(), reason }
}
