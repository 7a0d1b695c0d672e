//! The checks before the store may touch its files.
//!
//! The store trusts some of its files more than they deserve. It takes a directory without its version file for a new one; it deletes a
//! keyspace without the file `current`; it reads a manifest without comparing it with the checksum that `current` holds, deletes the tables that a
//! damaged manifest does not name, and asks for as much memory as a damaged length says. So these files are checked here, read only.

use std::fs::{self, File};
use std::io;
use std::path::Path;

use super::open::{locked, unavailable};
use crate::Error;

/// Checks the store's directory; `was_used` says that a log was opened in it before. Clears away a creation that a crash cut short, because
/// the store refuses both files it then finds and files it then misses.
pub(super) fn check(store: &Path, was_used: bool) -> Result<(), Error> {
    let failed = |error: io::Error| unavailable(format!("the log's directory {} cannot be used", store.display()), error);
    // Held until this returns: a running log changes the files that are compared here.
    let lock = File::options().create(true).append(true).open(store.join("lock")).map_err(failed)?;
    match lock.try_lock() {
        Ok(()) => {}
        Err(fs::TryLockError::WouldBlock) => return Err(locked(store)),
        Err(fs::TryLockError::Error(error)) => return Err(failed(error)),
    }
    let keyspaces = entries(&store.join("keyspaces")).map_err(failed)?;
    let version = store.join("version");
    if fs::metadata(&version).is_ok_and(|version| version.len() > 0) {
        return keyspaces.iter().try_for_each(|keyspace| check_manifest(keyspace));
    }
    // The store makes its own keyspace, 0, at creation; others are made for topics.
    if was_used || keyspaces.iter().any(|keyspace| !keyspace.ends_with("0")) {
        return Err(broken(&version, "is missing or empty although the log was in use"));
    }
    for entry in entries(store).map_err(failed)? {
        if entry.ends_with("keyspaces") {
            fs::remove_dir_all(entry).map_err(failed)?;
        } else if !entry.ends_with("lock") {
            fs::remove_file(entry).map_err(failed)?;
        }
    }
    Ok(())
}

/// Compares a keyspace's manifest with the checksum kept for it in `current`: manifest number u64, xxh3 u128 (little endian), one byte that names the
/// kind of checksum.
fn check_manifest(keyspace: &Path) -> Result<(), Error> {
    if !keyspace.is_dir() {
        return Ok(());
    }
    let failed = |path: &Path| {
        let what = format!("the log's file {} cannot be read", path.display());
        |error: io::Error| unavailable(what, error)
    };
    let path = keyspace.join("current");
    let current = match fs::read(&path) {
        Ok(current) => current,
        Err(error) if error.kind() == io::ErrorKind::NotFound => {
            for folder in ["tables", "blobs"] {
                if !entries(&keyspace.join(folder)).map_err(failed(keyspace))?.is_empty() {
                    return Err(broken(&path, "is missing although there are tables"));
                }
            }
            return Ok(());
        }
        Err(error) => return Err(failed(&path)(error)),
    };
    let (Some((number, rest)), true) = (current.split_first_chunk::<8>(), current.len() == 25) else {
        return Err(broken(&path, "is damaged: it has a wrong length"));
    };
    let Some((checksum, [0])) = rest.split_first_chunk::<16>() else {
        return Err(broken(&path, "is damaged, or of a version that is not known here"));
    };
    let manifest = keyspace.join(format!("v{}", u64::from_le_bytes(*number)));
    let bytes = fs::read(&manifest).map_err(failed(&manifest))?;
    if xxhash_rust::xxh3::xxh3_128(&bytes) != u128::from_le_bytes(*checksum) {
        return Err(broken(&manifest, "does not match its checksum in the file current beside it"));
    }
    Ok(())
}

/// The size of the store's journals.
pub(super) fn journal_bytes(store: &Path) -> io::Result<u64> {
    let journals = entries(store)?.into_iter().filter(|path| path.extension().is_some_and(|extension| extension == "jnl"));
    journals.map(|path| fs::metadata(path).map(|journal| journal.len())).sum()
}

/// The paths in a directory; none if there is no directory.
fn entries(dir: &Path) -> io::Result<Vec<std::path::PathBuf>> {
    match fs::read_dir(dir) {
        Ok(entries) => entries.map(|entry| entry.map(|entry| entry.path())).collect(),
        Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(Vec::new()),
        Err(error) => Err(error),
    }
}

fn broken(path: &Path, how: &str) -> Error {
    Error::Unavailable { what: format!("the log's file {} {how}; restore the log from a copy", path.display()), source: None }
}
