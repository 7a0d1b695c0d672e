//! The checks before the store may change its files.
//!
//! The store relies on some of its files without verifying them (see [`disk_files::keyspaces`]). So they are checked here, without changing
//! them.

use std::fs::{self, File};
use std::io;
use std::path::Path;

use disk_files::keyspaces::{check_manifest, entries};

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
        return keyspaces.iter().try_for_each(|keyspace| check_manifest(keyspace).map_err(refused));
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

/// Returns the total size of the store's journals in bytes.
pub(super) fn journal_bytes(store: &Path) -> io::Result<u64> {
    let journals = entries(store)?.into_iter().filter(|path| path.extension().is_some_and(|extension| extension == "jnl"));
    journals.map(|path| fs::metadata(path).map(|journal| journal.len())).sum()
}

fn refused(error: disk_files::Error) -> Error {
    let what = match &error {
        disk_files::Error::Damaged { path, how } => return broken(path, how),
        disk_files::Error::Unusable { path, .. } => format!("the log's file {} cannot be read", path.display()),
    };
    unavailable(what, error)
}

fn broken(path: &Path, how: &str) -> Error {
    Error::Unavailable { what: format!("the log's file {} {how}; restore the log from a copy", path.display()), source: None }
}
