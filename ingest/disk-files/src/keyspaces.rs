//! The checks of keyspaces before the library may change its files.
//!
//! The library treats a directory without the file `version` as new. It deletes a keyspace without the file `current`. It does not compare a
//! manifest with the checksum in `current`, deletes tables that a damaged manifest does not name, and allocates as much memory as a damaged
//! length says. So these files are checked here, without changing them.

use std::fs;
use std::io;
use std::path::{Path, PathBuf};

use crate::Error;

/// Compares a keyspace's manifest with the checksum in its file `current`. The file holds the number of the manifest (u64) and its xxh3 checksum
/// (u128), both little endian, and one byte for the kind of checksum. A keyspace without `current` and without tables is one whose creation a
/// crash interrupted, and passes; so does a path that is no directory.
///
/// # Errors
/// [`Error::Damaged`] with the file that is missing or differs; [`Error::Unusable`] when a file cannot be read.
pub fn check_manifest(keyspace: &Path) -> Result<(), Error> {
    if !keyspace.is_dir() {
        return Ok(());
    }
    let path = keyspace.join("current");
    let current = match fs::read(&path) {
        Ok(current) => current,
        Err(error) if error.kind() == io::ErrorKind::NotFound => {
            for folder in ["tables", "blobs"] {
                if !entries(&keyspace.join(folder)).map_err(Error::unusable(keyspace))?.is_empty() {
                    return Err(Error::damaged(&path, "is missing although there are tables"));
                }
            }
            return Ok(());
        }
        Err(error) => return Err(Error::unusable(&path)(error)),
    };
    let (Some((number, rest)), true) = (current.split_first_chunk::<8>(), current.len() == 25) else {
        return Err(Error::damaged(&path, "is damaged: it has a wrong length"));
    };
    let Some((checksum, [0])) = rest.split_first_chunk::<16>() else {
        return Err(Error::damaged(&path, "is damaged, or of a version that is not known here"));
    };
    let manifest = keyspace.join(format!("v{}", u64::from_le_bytes(*number)));
    let bytes = match fs::read(&manifest) {
        Ok(bytes) => bytes,
        Err(error) if error.kind() == io::ErrorKind::NotFound => {
            return Err(Error::damaged(&manifest, "is missing, although current names it"));
        }
        Err(error) => return Err(Error::unusable(&manifest)(error)),
    };
    if xxhash_rust::xxh3::xxh3_128(&bytes) != u128::from_le_bytes(*checksum) {
        return Err(Error::damaged(&manifest, "does not match its checksum in the file current"));
    }
    Ok(())
}

/// Lists the paths in a directory; none if the directory does not exist.
///
/// # Errors
/// The system's error when the directory cannot be read.
pub fn entries(dir: &Path) -> io::Result<Vec<PathBuf>> {
    match fs::read_dir(dir) {
        Ok(entries) => entries.map(|entry| entry.map(|entry| entry.path())).collect(),
        Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(Vec::new()),
        Err(error) => Err(error),
    }
}
