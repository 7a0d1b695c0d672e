//! The checks of the store's directory before the engine opens it and may change or delete files, and what follows from damage.
//!
//! ```text
//! manifest       see manifest.rs
//! store/         the files of the engine
//! values/        see values.rs, if no other directory was given
//! damaged/       the files of the engine as they were when all views had to be rebuilt
//! version        stops older versions of this program, which would take the directory for an empty one
//! ```
//!
//! Damage of the files of one view is answered by rebuilding that view; any other damage by setting the engine's files aside and rebuilding all
//! views. Both follow from the log.

use std::collections::BTreeMap;
use std::fs::{self, File};
use std::io;
use std::path::{Path, PathBuf};

use disk_files::keyspaces::{check_manifest, entries};
use disk_files::library::{catch_panic, is_damage};
use disk_files::{durable_file, journal};
use fjall::Database;

use super::failure::{engine, opening};
use super::manifest::{self, FORMAT, Manifest, ManifestState};
use super::names::{META, NUMBER, split_name};
use super::values::Values;
use crate::store::Error;

/// Why a directory was not opened.
pub(super) enum Fault {
    /// Files do not hold what was written to them.
    Damaged(String),
    /// The store cannot be opened now, or not by this version.
    Refused(Error),
}

impl From<Error> for Fault {
    fn from(error: Error) -> Self {
        match error {
            Error::Damaged { table, reason } => Self::Damaged(format!("{table}: {reason}")),
            error => Self::Refused(error),
        }
    }
}

impl From<disk_files::Error> for Fault {
    fn from(error: disk_files::Error) -> Self {
        match error {
            disk_files::Error::Damaged { .. } => Self::Damaged(error.to_string()),
            error => Self::Refused(Error::Unavailable { what: "cannot open the view store".to_owned(), source: Some(Box::new(error)) }),
        }
    }
}

/// What the checks found.
#[derive(Default)]
pub(super) struct Checked {
    /// The manifest; `None` for a new store.
    pub(super) manifest: Option<Manifest>,
    /// The number of the last commit in the journals; `None` if they hold none.
    pub(super) last_commit: Option<u64>,
    /// The damaged generations of views, with the reasons.
    pub(super) damaged: BTreeMap<(String, u64), String>,
}

/// Returns the directory of the engine's files.
pub(super) fn store_dir(dir: &Path) -> PathBuf {
    dir.join("store")
}

/// Checks a directory. Files of a damaged keyspace that belongs to a view are marked so that the engine drops them.
pub(super) fn check(dir: &Path) -> Result<Checked, Fault> {
    let store = store_dir(dir);
    let failed = |error: io::Error| Fault::Refused(opening(dir, error.into()));
    fs::create_dir_all(&store).map_err(failed)?;
    // Held until this function returns: an open store changes the files that are compared here.
    let _lock = lock(&store)?;
    let keyspaces_dir = store.join("keyspaces");
    let keyspaces = entries(&keyspaces_dir).map_err(failed)?;
    let version = store.join("version");
    let has_store = version.exists() || !keyspaces.is_empty();
    let path = manifest::path(dir);
    let manifest = match (manifest::read(dir).map_err(failed)?, has_store) {
        (ManifestState::Nothing, false) => return Ok(Checked::default()),
        (ManifestState::Nothing, true) => return Err(Fault::Damaged(format!("{} is missing", path.display()))),
        (ManifestState::Damaged, _) => return Err(Fault::Damaged(format!("{} differs from its checksum", path.display()))),
        (ManifestState::Newer(format), _) => {
            let what = format!(
                "the view store at {} has format {format}, but this version of the program writes format {FORMAT}: start the newer version, or remove that \
                 directory, so that this version rebuilds the views from the log",
                dir.display()
            );
            return Err(Fault::Refused(Error::Unavailable { what, source: None }));
        }
        (ManifestState::Manifest(_), false) => return Err(Fault::Damaged(format!("{} is missing", version.display()))),
        (ManifestState::Manifest(manifest), true) => manifest,
    };
    if fs::metadata(&version).map_or(0, |version| version.len()) == 0 {
        return Err(Fault::Damaged(format!("{} is missing or empty", version.display())));
    }
    for keyspace in &keyspaces {
        if keyspace.is_dir() && keyspace.file_name().and_then(|name| name.to_str()?.parse::<u64>().ok()).is_none() {
            return Err(Fault::Damaged(format!("{} does not belong to the store", keyspace.display())));
        }
    }
    let own = keyspaces_dir.join("0");
    require(&own)?;
    let mut damaged = BTreeMap::new();
    for (name, number) in &manifest.keyspaces {
        let keyspace = keyspaces_dir.join(number.to_string());
        let Err(error) = require(&keyspace) else { continue };
        let (Some((view, generation)), disk_files::Error::Damaged { .. }) = (split_name(name), &error) else { return Err(error.into()) };
        damaged.insert((view.to_owned(), generation), error.to_string());
        drop_keyspace(&keyspace).map_err(failed)?;
    }
    for keyspace in keyspaces {
        let number = keyspace.file_name().and_then(|name| name.to_str()?.parse::<u64>().ok());
        let is_known = number.is_some_and(|number| number == 0 || manifest.keyspaces.values().any(|known| *known == number));
        if !is_known && check_manifest(&keyspace).is_err() {
            // Nothing in use: a crash left it.
            drop_keyspace(&keyspace).map_err(failed)?;
        }
    }
    let last_commit = walk_journals(&store, &manifest)?;
    Ok(Checked { manifest: Some(manifest), last_commit, damaged })
}

/// Locks the engine's files, as the engine does while they are open.
fn lock(store: &Path) -> Result<File, Fault> {
    let failed = |error: io::Error| Fault::Refused(opening(store, error.into()));
    let lock = File::options().create(true).append(true).open(store.join("lock")).map_err(failed)?;
    match lock.try_lock() {
        Ok(()) => Ok(lock),
        Err(fs::TryLockError::WouldBlock) => Err(Fault::Refused(opening(store, fjall::Error::Locked))),
        Err(fs::TryLockError::Error(error)) => Err(failed(error)),
    }
}

/// Checks a keyspace that must exist.
fn require(keyspace: &Path) -> Result<(), disk_files::Error> {
    let current = keyspace.join("current");
    if !current.exists() {
        return Err(disk_files::Error::damaged(&current, "is missing"));
    }
    check_manifest(keyspace)
}

/// Makes the engine drop a keyspace: it deletes one without the file `current`. The directory remains until then, so that its number is not given to
/// another keyspace, to which the journal's rows would then belong.
fn drop_keyspace(keyspace: &Path) -> io::Result<()> {
    match fs::remove_file(keyspace.join("current")) {
        Err(error) if error.kind() != io::ErrorKind::NotFound => Err(error),
        _ => Ok(()),
    }
}

/// Walks the journals, whose batches are numbered without a gap. Returns the number of the last one.
fn walk_journals(store: &Path, manifest: &Manifest) -> Result<Option<u64>, Fault> {
    if !entries(store).is_ok_and(|paths| paths.iter().any(|path| path.extension().is_some_and(|extension| extension == "jnl"))) {
        return Err(Fault::Damaged(format!("{} holds no journal", store.display())));
    }
    let meta = manifest.keyspaces.get(META);
    let in_batch = std::cell::Cell::new(None);
    let mut last = None;
    journal::walk(
        store,
        |item| {
            if meta == Some(&item.keyspace) && item.key == NUMBER.as_bytes() {
                in_batch.set(item.value.first_chunk::<8>().map(|number| u64::from_be_bytes(*number)));
            }
        },
        || {
            let Some(number) = in_batch.take() else { return Err("holds a batch without a number".to_owned()) };
            if let Some(before) = last.replace(number)
                && number != before + 1
            {
                return Err(format!("lacks the batches between {before} and {number}"));
            }
            Ok(())
        },
    )?;
    Ok(last)
}

/// Moves the engine's files into a folder of damaged files, so that a new store is created. Those that were moved before are deleted.
pub(super) fn move_to_damaged(dir: &Path) -> Result<(), Error> {
    let failed = |error: io::Error| opening(dir, error.into());
    let damaged = dir.join("damaged");
    if damaged.exists() {
        fs::remove_dir_all(&damaged).map_err(failed)?;
    }
    match fs::rename(store_dir(dir), &damaged) {
        Err(error) if error.kind() != io::ErrorKind::NotFound => Err(failed(error)),
        _ => Ok(()),
    }
}

/// Converts a directory of format 1, whose files are directly in it and whose rows have no checksums: moves the stored values out of it and deletes the
/// rest, which follows from the log. Returns whether it was one.
pub(super) fn upgrade(dir: &Path, values: &Values) -> Result<bool, Error> {
    if !dir.join("keyspaces").is_dir() {
        return Ok(false);
    }
    let failed = |error: io::Error| opening(dir, error.into());
    match read_old_values(dir) {
        Ok(old) => {
            for (name, value) in old {
                values.change(&name, |stored| stored.is_none().then_some(value))?;
            }
        }
        Err(error) if is_damage(&error) => {
            tracing::error!(
                dir = %dir.display(),
                error = &error as &dyn std::error::Error,
                "the secrets of accounts in the old view store cannot be read; if the URLs of webhooks cannot be decrypted, import the secrets from the backup with `highwater accounts import-secrets`"
            );
        }
        Err(error) => return Err(opening(dir, error)),
    }
    // The directory that marks the old format is deleted last, so that an interrupted conversion is repeated.
    for path in entries(dir).map_err(failed)? {
        if path.extension().is_some_and(|extension| extension == "jnl") || path.ends_with("version") || path.ends_with("lock") {
            fs::remove_file(&path).map_err(failed)?;
        }
    }
    fs::remove_dir_all(dir.join("keyspaces")).map_err(failed)?;
    Ok(true)
}

fn read_old_values(dir: &Path) -> Result<Vec<(String, String)>, fjall::Error> {
    const OLD_VALUE: u8 = b'k';
    if !dir.join("version").exists() {
        return Ok(Vec::new());
    }
    let text = |bytes: &[u8]| String::from_utf8_lossy(bytes).into_owned();
    catch_panic(|| {
        let db = Database::builder(dir).worker_threads(1).open()?;
        if !db.keyspace_exists("coordination") {
            return Ok(Vec::new());
        }
        let rows = db.keyspace("coordination", Default::default)?;
        let values = rows.prefix([OLD_VALUE]).map(|row| {
            let (key, value) = row.into_inner()?;
            Ok((text(key.get(1..).unwrap_or_default()), text(&value)))
        });
        values.collect::<Result<Vec<_>, fjall::Error>>()
    })
}

/// Writes the file that stops older versions of this program.
pub(super) fn mark_for_older_versions(dir: &Path) -> Result<(), Error> {
    let text = format!("This view store has format {FORMAT}. Only versions of highwater that know this format can open it.\n");
    durable_file::create_if_absent(&dir.join("version"), text.as_bytes(), 0o600).map_err(|error| opening(dir, error.into()))
}

/// Converts an error of the engine while the directory is opened.
pub(super) fn fault(dir: &Path, error: fjall::Error) -> Fault {
    if is_damage(&error) {
        Fault::Damaged(format!("{}: {error}", store_dir(dir).display()))
    } else {
        Fault::Refused(engine("open the view store at", &dir.display().to_string(), error))
    }
}
