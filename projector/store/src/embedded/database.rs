//! The opened data directory: the storage engine, its internal keyspaces, and the content of `meta`.
//!
//! `meta` contains `format`, `origin` (why all views had to be rebuilt), `commit` (the number of the last batch), `live/VIEW` (the live generation),
//! `rebuild/VIEW` (why the view is rebuilt), and for each generation `complete/…`, `checkpoint/…` and `positions/VIEW/GENERATION`. A keyspace
//! `VIEW.gN.TABLE` contains one table of one generation; it exists from the table's first row on. Keyspaces and rows of generations that are not live
//! were left by a crash and are deleted when the directory is opened.

use std::collections::{BTreeMap, BTreeSet, HashMap};
use std::path::{Path, PathBuf};
use std::sync::Mutex;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::time::Duration;

use bytes::Bytes;
use disk_files::durable_file;
use disk_files::library::catch_panic;
use fjall::{AbstractTree, CompressionType, Database, Keyspace, OwnedWriteBatch, PersistMode};
use schemas::tables::Table;
use xxhash_rust::xxh3::xxh3_64;

use super::failure::{engine, opening, unpoisoned};
use super::manifest::{FORMAT, Manifest};
use super::names::{COORDINATION, META, NUMBER, checkpoint_key, complete_key, positions_key, split_generation_key, split_name};
use super::opening::{self, Checked, Fault};
use super::seal::Seal;
use super::tuning::Options;
use super::values::Values;
use crate::store::{Checkpoint, Error};

/// How often the engine's worker is polled while waiting for it: it has no signal to wait for.
const WORKER_POLL_INTERVAL: Duration = Duration::from_millis(1);
/// The most polls while waiting, and after how many of them it is checked whether the worker has failed.
const WORKER_POLLS_MAX: u32 = 60_000;
const WORKER_POLLS_PER_CHECK: u32 = 100;
/// How many full write buffers of a table may wait for the engine's worker. From 4 on, the engine makes writers wait.
const SEALED_MAX: usize = 3;
/// The least memory that is worth flushing or releasing.
const FLUSHED_BYTES_MIN: u64 = 256 * 1024;

/// The storage engine and the store's own keyspaces.
pub(super) struct Core {
    dir: PathBuf,
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
    /// The number of the last batch. Held while one is written, so that numbers are in the order of the journal.
    number: Mutex<u64>,
    manifest: Mutex<Manifest>,
    /// Why all views had to be rebuilt, if they had to.
    origin: Option<String>,
    /// Whether a write met a full disk, so that the store must be opened again.
    must_reopen: AtomicBool,
}

impl Core {
    /// Opens or creates the directory, and deletes what a crash left. If files are damaged, it marks the views that must be rebuilt; if they cannot be
    /// opened, it sets them aside and creates new ones.
    pub(super) fn open(dir: &Path, options: Options) -> Result<(Self, Values), Error> {
        std::fs::create_dir_all(dir).map_err(|error| opening(dir, error.into()))?;
        let values = Values::open(options.values_dir.as_deref().unwrap_or(&dir.join("values")))?;
        let origin = opening::upgrade(dir, &values)?.then(|| "an earlier version of this program wrote it".to_owned());
        let core = match Self::open_checked(dir, &options, origin) {
            Ok(core) => core,
            Err(Fault::Refused(error)) => return Err(error),
            Err(Fault::Damaged(reason)) => {
                tracing::error!(
                    dir = %dir.display(),
                    reason,
                    "the view store is damaged: its files are moved to the directory `damaged`, and all views are rebuilt from the log"
                );
                opening::move_to_damaged(dir)?;
                Self::create(dir, &options, Some(reason)).map_err(|fault| match fault {
                    Fault::Refused(error) => error,
                    Fault::Damaged(reason) => Error::Damaged { table: format!("the view store at {}", dir.display()), reason },
                })?
            }
        };
        opening::mark_for_older_versions(dir)?;
        Ok((core, values))
    }

    fn open_checked(dir: &Path, options: &Options, origin: Option<String>) -> Result<Self, Fault> {
        let Checked { manifest, last_commit, damaged } = opening::check(dir)?;
        let Some(manifest) = manifest else { return Self::create(dir, options, origin) };
        let known_commit = manifest.commit;
        let core = Self::open_engine(dir, options, manifest)?;
        let number = core.check_own_rows()?;
        if let Some(last) = last_commit.filter(|last| *last != number) {
            return Err(Fault::Damaged(format!("{}: the journal ends with commit {last}, the rows with {number}", dir.display())));
        }
        if number < known_commit {
            return Err(Fault::Damaged(format!("{}: the rows end with commit {number}, but {known_commit} was written", dir.display())));
        }
        *unpoisoned(core.number.lock()) = number;
        let core = Self { origin: core.text("origin")?, ..core };
        core.delete_leftovers(None)?;
        for ((view, generation), reason) in damaged {
            if core.live_generation(&view)? == Some(generation) {
                tracing::error!(view, reason, "the view is damaged and will be rebuilt from the log");
                core.replace_generation(&view, generation + 1, &reason)?;
            }
        }
        core.delete_leftovers(None)?;
        core.write_manifest()?;
        Ok(core)
    }

    /// Creates a new store. `origin` is why its views must be rebuilt, if they must.
    fn create(dir: &Path, options: &Options, origin: Option<String>) -> Result<Self, Fault> {
        let core = Self { origin: origin.clone(), ..Self::open_engine(dir, options, Manifest::default())? };
        core.write_meta("format", FORMAT.to_string().as_bytes())?;
        if let Some(origin) = origin {
            core.write_meta("origin", origin.as_bytes())?;
        }
        core.write_manifest()?;
        Ok(core)
    }

    fn open_engine(dir: &Path, options: &Options, manifest: Manifest) -> Result<Self, Fault> {
        let builder = Database::builder(opening::store_dir(dir))
            .cache_size(options.cache_bytes)
            .max_journaling_size(options.max_journaling_bytes)
            .max_cached_files(Some(options.files_open_max))
            // With several workers, the engine's first one passes compactions on without pause while the others are busy, which spins.
            .worker_threads(1)
            // Large values are feed blocks; compressing them costs more time than the smaller journal saves.
            .journal_compression(CompressionType::None);
        let opened = catch_panic(|| {
            let db = builder.open()?;
            let meta = db.keyspace(META, Options::own_layout)?;
            let coordination = db.keyspace(COORDINATION, Options::own_layout)?;
            let rotated = db.keyspace("spare", Options::own_layout)?;
            Ok(Self {
                dir: dir.to_owned(),
                db,
                meta,
                coordination,
                rotated,
                options: options.clone(),
                tables: Mutex::default(),
                memory_peak: AtomicU64::default(),
                number: Mutex::default(),
                manifest: Mutex::new(manifest),
                origin: None,
                must_reopen: AtomicBool::new(false),
            })
        });
        opened.map_err(|error| opening::fault(dir, error))
    }

    /// Reads every row of the store's own keyspaces, so that damage to them is found now. Returns the number of the last commit.
    fn check_own_rows(&self) -> Result<u64, Error> {
        for (keyspace, name) in [(&self.meta, META), (&self.coordination, COORDINATION)] {
            let seal = Seal::new(name);
            catch_panic(|| {
                for row in keyspace.iter() {
                    let (key, value) = row.into_inner()?;
                    if seal.open(&key, value).is_none() {
                        return Err(fjall::Error::Unrecoverable);
                    }
                }
                Ok(())
            })
            .map_err(|error| engine("read", name, error))?;
        }
        let number = self.read_meta(NUMBER)?.and_then(|number| Some(u64::from_be_bytes(number.as_ref().try_into().ok()?)));
        number.ok_or_else(|| damaged("the number of the last commit is missing".to_owned()))
    }

    /// Returns the live generation of a view, if it has one.
    pub(super) fn live_generation(&self, view: &str) -> Result<Option<u64>, Error> {
        self.read_meta(&format!("live/{view}"))?.map(|value| generation_of(&value)).transpose()
    }

    /// Makes a complete generation the live one. Synced, together with everything written before.
    pub(super) fn set_live_generation(&self, view: &str, generation: u64) -> Result<(), Error> {
        self.make_live(PersistMode::SyncAll, view, generation, None)
    }

    /// Makes an empty generation the live one, because the previous one is damaged. It is not complete until [`Self::complete_generation`].
    pub(super) fn replace_generation(&self, view: &str, generation: u64, reason: &str) -> Result<(), Error> {
        self.make_live(PersistMode::SyncAll, view, generation, Some(reason))
    }

    /// Makes the first generation of a view the live one. Not synced, because a new store has dozens of views: if a power cut loses this row, the next
    /// opening deletes the rows of the generation, and they are applied again from the log.
    pub(super) fn create_generation(&self, view: &str) -> Result<(), Error> {
        let incomplete = match self.origin.as_deref() {
            None if self.options.new_views_are_complete => None,
            origin => Some(origin.unwrap_or("it is new")),
        };
        self.make_live(PersistMode::Buffer, view, 1, incomplete)
    }

    /// Makes a generation the live one. `incomplete` is why it does not have everything that the log has; `None` if it has.
    fn make_live(&self, mode: PersistMode, view: &str, generation: u64, incomplete: Option<&str>) -> Result<(), Error> {
        let (live, complete, rebuild) = (format!("live/{view}"), complete_key(view, generation), format!("rebuild/{view}"));
        self.write(mode, |batch| {
            batch.put(&self.meta, META, &live, &generation.to_be_bytes());
            match incomplete {
                None => {
                    batch.put(&self.meta, META, &complete, &[]);
                    batch.remove(&self.meta, &rebuild);
                }
                Some(reason) => {
                    batch.remove(&self.meta, &complete);
                    batch.put(&self.meta, META, &rebuild, reason.as_bytes());
                }
            }
        })
    }

    /// Records that a live generation has everything that the log has.
    pub(super) fn complete_generation(&self, view: &str, generation: u64) -> Result<(), Error> {
        self.write(PersistMode::SyncAll, |batch| {
            batch.put(&self.meta, META, &complete_key(view, generation), &[]);
            batch.remove(&self.meta, &format!("rebuild/{view}"));
        })
    }

    /// Returns why a live generation is not complete; `None` if it is.
    pub(super) fn incomplete(&self, view: &str, generation: u64) -> Result<Option<String>, Error> {
        if self.read_meta(&complete_key(view, generation))?.is_some() {
            return Ok(None);
        }
        Ok(Some(self.text(&format!("rebuild/{view}"))?.unwrap_or_else(|| "it was not completed".to_owned())))
    }

    /// Returns the checkpoint stored with a generation's rows.
    pub(super) fn checkpoint(&self, view: &str, generation: u64) -> Result<Checkpoint, Error> {
        let Some(value) = self.read_meta(&checkpoint_key(view, generation))? else { return Ok(Checkpoint::default()) };
        serde_json::from_slice(&value).map_err(|error| damaged(format!("the checkpoint of {view} cannot be decoded: {error}")))
    }

    /// Returns the number of the last commit that wrote to each table of a generation, by the hash of the table's name.
    pub(super) fn positions(&self, view: &str, generation: u64) -> Result<Positions, Error> {
        let value = self.read_meta(&positions_key(view, generation))?;
        value.map_or_else(
            || Ok(Positions::default()),
            |value| Positions::decode(&value).ok_or_else(|| damaged(format!("the positions of {view} cannot be decoded"))),
        )
    }

    /// Writes one batch with the next number. `fill` adds the rows.
    pub(super) fn write(&self, mode: PersistMode, fill: impl FnOnce(&mut Batch)) -> Result<(), Error> {
        let mut batch = Batch::new(&self.db, mode);
        fill(&mut batch);
        self.commit(batch, |_, _| ()).map_err(|error| engine("write", META, error))
    }

    /// Commits a batch with the next number, which `fill` may store in it, too. Numbers have no gap, so that a lost batch is noticed when the journal is
    /// walked.
    pub(super) fn commit(&self, mut batch: Batch, fill: impl FnOnce(&mut Batch, u64)) -> Result<(), fjall::Error> {
        if let Some(space) = &self.options.space {
            space.check()?;
        }
        let mut number = unpoisoned(self.number.lock());
        let next = *number + 1;
        fill(&mut batch, next);
        batch.put(&self.meta, META, NUMBER, &next.to_be_bytes());
        catch_panic(|| batch.0.commit()).inspect_err(|error| self.note_failure(error))?;
        *number = next;
        Ok(())
    }

    /// Remembers a failed write if a full disk is its cause.
    fn note_failure(&self, error: &fjall::Error) {
        if let Some(space) = self.options.space.as_ref().filter(|space| space.explains(error)) {
            space.pause();
            self.must_reopen.store(true, Ordering::Release);
        }
    }

    /// Checks that the store accepts rows: fails while the disk is full, and after a write or the engine's worker has failed.
    pub(super) fn check_writable(&self) -> Result<(), Error> {
        if let Some(space) = &self.options.space {
            space.check().map_err(|full| engine("write", "the view store", full.into()))?;
        }
        let persisted = catch_panic(|| self.db.persist(PersistMode::Buffer)).inspect_err(|error| self.note_failure(error));
        persisted.map_err(|error| engine("write", "the view store", error))
    }

    /// Whether the store must be opened again because a write met a full disk, and the disk has space now.
    pub(super) fn can_reopen(&self) -> bool {
        self.must_reopen.load(Ordering::Acquire) && self.options.space.as_ref().is_none_or(|space| space.check().is_ok())
    }

    /// Waits while the engine would make writers of these keyspaces wait for its worker: other writers must not wait behind them.
    pub(super) fn wait_for_worker<'a>(&self, keyspaces: impl Iterator<Item = &'a Keyspace>) {
        let keyspaces: Vec<&Keyspace> = keyspaces.collect();
        self.wait_while(|| keyspaces.iter().any(|keyspace| keyspace.sealed_memtable_count() >= SEALED_MAX));
    }

    /// Waits while the engine's worker is behind, unless it has failed.
    fn wait_while(&self, is_behind: impl Fn() -> bool) {
        for poll in 1..=WORKER_POLLS_MAX {
            let has_failed = || poll % WORKER_POLLS_PER_CHECK == 0 && self.db.persist(PersistMode::Buffer).is_err();
            if !is_behind() || has_failed() {
                return;
            }
            std::thread::sleep(WORKER_POLL_INTERVAL);
        }
    }

    /// Replaces the manifest with the keyspaces of now and the number of the last commit.
    fn write_manifest(&self) -> Result<(), Error> {
        let mut manifest = unpoisoned(self.manifest.lock());
        let mut keyspaces = BTreeMap::new();
        for name in self.db.list_keyspace_names() {
            let keyspace = self.db.keyspace(&name, Options::own_layout).map_err(|error| engine("open", &name, error))?;
            keyspaces.insert(name.to_string(), keyspace.id());
        }
        // The commits up to this number are in the store's files only if the journal is synced.
        let commit = *unpoisoned(self.number.lock());
        self.db.persist(PersistMode::SyncData).map_err(|error| engine("sync", "the view store", error))?;
        *manifest = Manifest { format: FORMAT, keyspaces, commit };
        manifest.write(&self.dir).map_err(|error| opening(&self.dir, error.into()))
    }

    /// Changes the keyspaces in the manifest. The number of the commit in it remains: it was in the store then, and is in it now.
    fn change_manifest(&self, change: impl FnOnce(&mut BTreeMap<String, u64>)) -> Result<(), Error> {
        let mut manifest = unpoisoned(self.manifest.lock());
        let mut next = manifest.clone();
        change(&mut next.keyspaces);
        if next == *manifest {
            return Ok(());
        }
        let written = next.write(&self.dir).map_err(fjall::Error::from).inspect_err(|error| self.note_failure(error));
        written.map_err(|error| engine("write", "the manifest of the view store", error))?;
        *manifest = next;
        Ok(())
    }

    /// Opens the keyspace of a table, if it exists.
    pub(super) fn open_existing_table(&self, name: &str, table: &Table) -> Result<Option<Keyspace>, Error> {
        let open = || self.open_table(name, table).map_err(|error| engine("open", name, error));
        self.db.keyspace_exists(name).then(open).transpose()
    }

    /// Creates the keyspaces of tables, and adds them to the manifest: they must be in it before they have rows, or their loss would not be noticed.
    pub(super) fn create_tables(&self, tables: &[(&str, &Table)]) -> Result<Vec<Keyspace>, Error> {
        let Some((first, _)) = tables.first() else { return Ok(Vec::new()) };
        if let Some(space) = &self.options.space {
            space.check().map_err(|full| engine("create", first, full.into()))?;
        }
        let created = {
            // While the engine creates a keyspace, a batch that has its number but not its rows in memory would be visible in part.
            let _number = unpoisoned(self.number.lock());
            let create = |(name, table): &(&str, &Table)| {
                let created = self.open_table(name, table).inspect_err(|error| self.note_failure(error));
                created.map_err(|error| engine("create", name, error))
            };
            tables.iter().map(create).collect::<Result<Vec<_>, _>>()?
        };
        if let Some(keyspace) = created.first() {
            durable_file::sync_directory_of(keyspace.path()).map_err(|error| engine("create", first, error.into()))?;
        }
        let named = created.iter().map(|keyspace| (keyspace.name().to_string(), keyspace.id()));
        self.change_manifest(|keyspaces| keyspaces.extend(named))?;
        Ok(created)
    }

    /// Opens the keyspace of a table; creates it if there is none.
    fn open_table(&self, name: &str, table: &Table) -> Result<Keyspace, fjall::Error> {
        let keyspace = catch_panic(|| self.db.keyspace(name, || self.options.layout(table)))?;
        unpoisoned(self.tables.lock()).insert(name.to_owned(), keyspace.clone());
        Ok(keyspace)
    }

    /// Flushes the table with the most memory when all tables together use too much, and releases flushed memory. Called after commits, so
    /// that many small tables remain within the bound, too, which the engine applies to each table alone. If the engine's worker is too
    /// slow with flushes and compactions, the writer waits for it: otherwise unflushed rows would fill the memory.
    pub(super) fn limit_memory(&self) {
        self.flush_largest();
        let bytes_max = self.options.write_buffer_total_bytes * 3 / 2;
        self.wait_while(|| self.db.write_buffer_size() > bytes_max && self.db.outstanding_flushes() > 0);
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
        let mut batch = Batch::new(&self.db, PersistMode::Buffer);
        batch.put(&self.rotated, "spare", "at", &[]);
        if let Err(error) = self.commit(batch, |_, _| ()).and_then(|()| self.rotated.rotate_memtable()) {
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
    pub(super) fn delete_generation(&self, view: &str, generation: u64) -> Result<(), Error> {
        let mut names: Vec<String> = self.db.list_keyspace_names().iter().map(ToString::to_string).collect();
        names.retain(|name| split_name(name) == Some((view, generation)));
        // Before they are deleted: a keyspace that the manifest names must exist.
        self.change_manifest(|keyspaces| keyspaces.retain(|name, _| !names.contains(name)))?;
        for name in names {
            unpoisoned(self.tables.lock()).remove(&name);
            let _number = unpoisoned(self.number.lock());
            let deleted = self.db.keyspace(&name, Options::own_layout).and_then(|keyspace| self.db.delete_keyspace(keyspace));
            deleted.map_err(|error| engine("delete", &name, error))?;
        }
        self.write(PersistMode::Buffer, |batch| {
            for key in [checkpoint_key(view, generation), positions_key(view, generation), complete_key(view, generation)] {
                batch.remove(&self.meta, &key);
            }
        })
    }

    /// Writes the memory of every table to its file, so that the next opening has little to replay.
    pub(super) fn flush(&self) -> Result<(), Error> {
        let mut flushing = Vec::new();
        for name in self.db.list_keyspace_names() {
            let keyspace = self.db.keyspace(&name, Options::own_layout).map_err(|error| engine("flush", &name, error))?;
            keyspace.rotate_memtable().map_err(|error| engine("flush", &name, error))?;
            flushing.push(keyspace);
        }
        // If the engine's worker has failed, the journal contains the rows.
        self.wait_while(|| flushing.iter().any(|keyspace| keyspace.sealed_memtable_count() > 0));
        self.db.persist(PersistMode::SyncAll).map_err(|error| engine("sync", "the view store", error))?;
        self.write_manifest()
    }

    /// Deletes the tables and the rows in `meta` of generations that are not live: of all views, or of one. A generation that is rebuilt may have rows in
    /// `meta` before it has tables.
    pub(super) fn delete_leftovers(&self, only: Option<&str>) -> Result<(), Error> {
        let owned = |name: Option<(&str, u64)>| name.map(|(view, generation)| (view.to_owned(), generation));
        let mut found: BTreeSet<(String, u64)> = self.db.list_keyspace_names().iter().filter_map(|name| owned(split_name(name))).collect();
        let in_meta = catch_panic(|| {
            let keys = self.meta.iter().map(|row| row.key());
            keys.map(|key| Ok(owned(std::str::from_utf8(&key?).ok().and_then(split_generation_key))))
                .collect::<Result<Vec<_>, fjall::Error>>()
        });
        found.extend(in_meta.map_err(|error| engine("read", META, error))?.into_iter().flatten());
        for (view, generation) in found {
            if only.is_none_or(|only| only == view) && self.live_generation(&view)? != Some(generation) {
                tracing::info!(view, generation, "deleting a generation of a view that is not in use");
                self.delete_generation(&view, generation)?;
            }
        }
        Ok(())
    }

    fn read_meta(&self, key: &str) -> Result<Option<Bytes>, Error> {
        let Some(stored) = self.meta.get(key).map_err(|error| engine("read", META, error))? else { return Ok(None) };
        Seal::new(META).open(key.as_bytes(), stored).map(Some).ok_or_else(|| damaged(format!("row {key} differs from its checksum")))
    }

    fn text(&self, key: &str) -> Result<Option<String>, Error> {
        Ok(self.read_meta(key)?.map(|value| String::from_utf8_lossy(&value).into_owned()))
    }

    fn write_meta(&self, key: &str, value: &[u8]) -> Result<(), Error> {
        self.write(PersistMode::SyncAll, |batch| batch.put(&self.meta, META, key, value))
    }
}

/// A batch of rows, each of which is stored with its checksum.
pub(super) struct Batch(OwnedWriteBatch);

impl Batch {
    pub(super) fn new(db: &Database, mode: PersistMode) -> Self {
        Self(OwnedWriteBatch::with_capacity(db.clone(), 8).durability(Some(mode)))
    }

    /// Adds a row of one of the store's own keyspaces, whose name is given.
    pub(super) fn put(&mut self, keyspace: &Keyspace, name: &str, key: &str, value: &[u8]) {
        self.put_sealed(keyspace, Seal::new(name), key.as_bytes(), value);
    }

    pub(super) fn put_sealed(&mut self, keyspace: &Keyspace, seal: Seal, key: &[u8], value: &[u8]) {
        self.0.insert(keyspace, key, seal.close(key, value));
    }

    pub(super) fn remove<K: AsRef<[u8]> + ?Sized>(&mut self, keyspace: &Keyspace, key: &K) {
        self.0.remove(keyspace, key.as_ref());
    }
}

/// The number of the last commit that wrote to each table of a generation. A table whose own number is lower has lost rows.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(super) struct Positions(BTreeMap<u64, u64>);

impl Positions {
    pub(super) fn of(&self, table: &str) -> u64 {
        self.0.get(&xxh3_64(table.as_bytes())).copied().unwrap_or_default()
    }

    pub(super) fn set(&mut self, table: &str, number: u64) {
        self.0.insert(xxh3_64(table.as_bytes()), number);
    }

    pub(super) fn encode(&self) -> Vec<u8> {
        self.0.iter().flat_map(|(table, number)| [table.to_be_bytes(), number.to_be_bytes()]).flatten().collect()
    }

    fn decode(bytes: &[u8]) -> Option<Self> {
        let (pairs, rest) = bytes.as_chunks::<16>();
        let pair = |pair: &[u8; 16]| {
            let (table, number) = pair.split_first_chunk::<8>()?;
            Some((u64::from_be_bytes(*table), u64::from_be_bytes(number.try_into().ok()?)))
        };
        rest.is_empty().then_some(())?;
        pairs.iter().map(pair).collect::<Option<_>>().map(Self)
    }
}

fn generation_of(value: &[u8]) -> Result<u64, Error> {
    value.try_into().map(u64::from_be_bytes).map_err(|_| damaged("a generation does not read back".to_owned()))
}

fn damaged(reason: String) -> Error {
    Error::Damaged { table: META.to_owned(), reason }
}
