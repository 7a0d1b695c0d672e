//! The opened data directory: the engine, its small keyspaces, and what `meta` says of each view.
//!
//! `meta` holds `format`, `live/VIEW` (the live generation) and `checkpoint/VIEW/GENERATION`. A keyspace `VIEW.gN.TABLE` holds one
//! table of one generation; what belongs to no live generation is left over by a crash and deleted when the directory is opened.

use std::collections::HashMap;
use std::panic::AssertUnwindSafe;
use std::path::Path;
use std::sync::Mutex;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

use fjall::{AbstractTree, CompressionType, Database, Keyspace, PersistMode};
use schemas::tables::Table;

use super::failure::{engine, held, opening};
use super::tuning::Options;
use crate::store::{Checkpoint, Error};

const FORMAT: &[u8] = b"1";
const META: &str = "meta";
/// How often the engine's worker is looked at while it is waited for: it has no signal to wait on.
const POLL: Duration = Duration::from_millis(1);
/// And how often at most.
const POLLS_MAX: u32 = 60_000;
/// What is flushed, or let go of, is at least this: less is not worth a file.
const FLUSHED_BYTES_MIN: u64 = 256 * 1024;

/// The engine and the store's own keyspaces.
pub(super) struct Core {
    pub(super) db: Database,
    pub(super) meta: Keyspace,
    pub(super) coordination: Keyspace,
    /// Holds a row that means nothing, see [`Self::let_go`].
    spare: Keyspace,
    pub(super) options: Options,
    /// The tables opened and not deleted since, by keyspace name.
    tables: Mutex<HashMap<String, Keyspace>>,
    /// The most that all tables together have held in memory, in bytes, since memory was last let go of.
    gathered: AtomicU64,
}

impl Core {
    /// Opens or makes the directory, and deletes what a crash left over.
    pub(super) fn open(dir: &Path, options: Options) -> Result<Self, Error> {
        std::fs::create_dir_all(dir).map_err(|error| opening(dir, error.into()))?;
        check_names(dir)?;
        let builder = Database::builder(dir)
            .cache_size(options.cache_bytes)
            .max_journaling_size(options.max_journaling_bytes)
            // With several, the engine's first worker passes compactions on without pause while the others are busy: it spins.
            .worker_threads(1)
            // Large values are feed blocks; packing them costs more time than the journal's bytes are worth.
            .journal_compression(CompressionType::None);
        // The engine asserts some of what it reads from files: to a caller that is damage like any other.
        let opened = std::panic::catch_unwind(AssertUnwindSafe(|| {
            let db = builder.open()?;
            let meta = db.keyspace(META, Options::own_layout)?;
            let coordination = db.keyspace("coordination", Options::own_layout)?;
            let spare = db.keyspace("spare", Options::own_layout)?;
            Ok(Self { db, meta, coordination, spare, options, tables: Mutex::default(), gathered: AtomicU64::default() })
        }));
        let core = match opened {
            Ok(result) => result.map_err(|error| opening(dir, error))?,
            Err(_) => {
                let reason = "its files do not fit together; the engine's message is on standard error".to_owned();
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

    /// The live generation of a view, if it has one.
    pub(super) fn live_generation(&self, view: &str) -> Result<Option<u64>, Error> {
        self.read_meta(&format!("live/{view}"))?.map(|value| generation_of(&value)).transpose()
    }

    /// Makes a generation the live one; synced, and with it everything written before.
    pub(super) fn set_live_generation(&self, view: &str, generation: u64) -> Result<(), Error> {
        self.write_meta(&format!("live/{view}"), &generation.to_be_bytes())
    }

    /// The checkpoint stored with a generation's rows.
    pub(super) fn checkpoint(&self, view: &str, generation: u64) -> Result<Checkpoint, Error> {
        let Some(value) = self.read_meta(&checkpoint_key(view, generation))? else { return Ok(Checkpoint::default()) };
        serde_json::from_slice(&value).map_err(|error| damaged(format!("the checkpoint of {view} does not read back: {error}")))
    }

    /// Opens a table's keyspace, making it if there is none.
    pub(super) fn open_table(&self, name: &str, table: &Table) -> Result<Keyspace, Error> {
        let keyspace = self.db.keyspace(name, || self.options.layout(table)).map_err(|error| engine("open", name, error))?;
        held(self.tables.lock()).insert(name.to_owned(), keyspace.clone());
        Ok(keyspace)
    }

    /// Flushes the table that holds most memory when all together hold too much, and lets go of what was flushed. Called after commits, so
    /// that many small tables stay within the bound too, which the engine applies to each table alone. Where the engine's worker does not
    /// keep up (it flushes and compacts), the writer waits for it: rows that only wait to be flushed would fill the memory.
    pub(super) fn relieve(&self) {
        self.flush_largest();
        let mut polls = 0;
        while polls < POLLS_MAX
            && self.db.write_buffer_size() > self.options.write_buffer_total_bytes * 3 / 2
            && self.db.outstanding_flushes() > 0
        {
            std::thread::sleep(POLL);
            polls += 1;
        }
        self.let_go();
    }

    /// Lets go of memory that has been flushed since that was last done. The engine keeps it until some table is next set aside to be flushed, and
    /// something has been written since the flush; so a row is written to a table of its own, and that is set aside. Not `meta`: a checkpoint must not
    /// get to disk before its rows.
    fn let_go(&self) {
        let (before, now) = (self.gathered.load(Ordering::Acquire), self.db.write_buffer_size());
        if before.saturating_sub(now) < FLUSHED_BYTES_MIN {
            self.gathered.fetch_max(now, Ordering::AcqRel);
            return;
        }
        // One at a time; what the last one set aside is flushed first.
        if self.spare.sealed_memtable_count() > 0
            || self.gathered.compare_exchange(before, now, Ordering::AcqRel, Ordering::Relaxed).is_err()
        {
            return;
        }
        if let Err(error) = self.spare.insert("at", []).and_then(|()| self.spare.rotate_memtable()) {
            tracing::warn!(%error, "could not let go of memory that was flushed");
        }
    }

    fn flush_largest(&self) {
        if self.db.write_buffer_size() < self.options.write_buffer_total_bytes || self.db.outstanding_flushes() > 0 {
            return;
        }
        let size = |keyspace: &Keyspace| keyspace.tree.active_memtable().size();
        let largest = held(self.tables.lock()).values().max_by_key(|keyspace| size(keyspace)).cloned();
        if let Some(largest) = largest.filter(|largest| size(largest) >= FLUSHED_BYTES_MIN)
            && let Err(error) = largest.rotate_memtable()
        {
            tracing::warn!(table = %&**largest.name(), %error, "could not flush a table early");
        }
    }

    /// Deletes a generation's keyspaces and its checkpoint. Files go once the last reader of them is done.
    pub(super) fn delete_generation(&self, view: &str, generation: u64, keyspaces: Vec<Keyspace>) -> Result<(), Error> {
        for keyspace in keyspaces {
            let name = keyspace.name().to_string();
            held(self.tables.lock()).remove(&name);
            self.db.delete_keyspace(keyspace).map_err(|error| engine("delete", &name, error))?;
        }
        self.meta.remove(checkpoint_key(view, generation)).map_err(|error| engine("write", META, error))
    }

    /// Writes every table's memory to its file, so that opening again has little to replay.
    pub(super) fn flush(&self) -> Result<(), Error> {
        let mut flushing = Vec::new();
        for name in self.db.list_keyspace_names() {
            let keyspace = self.db.keyspace(&name, Options::own_layout).map_err(|error| engine("flush", &name, error))?;
            keyspace.rotate_memtable().map_err(|error| engine("flush", &name, error))?;
            flushing.push(keyspace);
        }
        // Were its worker to die, closing must not wait for ever: the journal has the rows.
        let mut polls = 0;
        while polls < POLLS_MAX && flushing.iter().any(|keyspace| keyspace.sealed_memtable_count() > 0) {
            std::thread::sleep(POLL);
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
            tracing::info!(view, generation, "deleting a generation that was left over");
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

/// Refuses a directory among the engine's whose name it did not give: the engine would end the process.
fn check_names(dir: &Path) -> Result<(), Error> {
    let keyspaces = dir.join("keyspaces");
    if !keyspaces.is_dir() {
        return Ok(());
    }
    for entry in std::fs::read_dir(&keyspaces).map_err(|error| opening(dir, error.into()))? {
        let entry = entry.map_err(|error| opening(dir, error.into()))?;
        let name = entry.file_name();
        if entry.path().is_dir() && name.to_str().is_none_or(|name| name.parse::<u64>().is_err()) {
            let reason = format!("{} is not of the store", entry.path().display());
            return Err(Error::Damaged { table: format!("the view store at {}", dir.display()), reason });
        }
    }
    Ok(())
}

/// Where a generation's checkpoint is in `meta`.
pub(super) fn checkpoint_key(view: &str, generation: u64) -> String {
    format!("checkpoint/{view}/{generation}")
}

/// The keyspace of one table of one generation.
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

/// View and generation of a keyspace's name; `None` for the store's own.
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
