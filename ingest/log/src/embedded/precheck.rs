//! The checks before the store may change its files.
//!
//! The store relies on some of its files without verifying them. It treats a directory without the file `version` as new. It deletes a
//! keyspace without the file `current`. It does not compare a manifest with the checksum in `current`, deletes tables that a damaged
//! manifest does not name, and allocates as much memory as a damaged length says. So these files are checked here, without changing them.

use std::fs::{self, File};
use std::io;
use std::path::Path;

use super::store_error::{locked, unavailable};
use crate::Error;

/// Checks the store's directory. `was_used` tells whether a log was opened there before. Removes a creation that a crash interrupted,
/// because the store refuses a partly created directory.
pub(super) fn check(store: &Path, was_used: bool) -> Result<(), Error> {
    let failed = |error: io::Error| unavailable(format!("the log's directory {} cannot be used", store.display()), error);
    // The lock is held until this function returns, because a running log changes the files that are compared here.
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
    // The store creates keyspace 0 itself; the others belong to topics.
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

/// Compares a keyspace's manifest with the checksum in `current`. The file `current` holds the manifest number (u64) and its xxh3 checksum
/// (u128), both little endian, and one byte for the kind of checksum.
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
        return Err(broken(&manifest, "does not match its checksum in the file current"));
    }
    Ok(())
}

/// Returns the total size of the store's journals in bytes.
pub(super) fn journal_bytes(store: &Path) -> io::Result<u64> {
    let journals = entries(store)?.into_iter().filter(|path| path.extension().is_some_and(|extension| extension == "jnl"));
    journals.map(|path| fs::metadata(path).map(|journal| journal.len())).sum()
}

/// Lists the paths in a directory; none if the directory does not exist.
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
