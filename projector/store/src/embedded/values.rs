//! The stored values: secrets of accounts, and what processes must remember. They follow from no log, so they are not in the engine's files,
//! which may be rebuilt, but each in a file of its own: a line with a checksum, then name and value as JSON.

use std::fs;
use std::io;
use std::path::{Path, PathBuf};
use std::sync::Mutex;

use disk_files::durable_file;
use disk_files::keyspaces::entries;
use xxhash_rust::xxh3::{xxh3_64, xxh3_128};

use super::failure::unpoisoned;
use crate::store::Error;

/// The ending of the files' names.
const EXTENSION: &str = "value";

/// The values in a directory.
pub(super) struct Values {
    dir: PathBuf,
    /// Held while a value is changed.
    changing: Mutex<()>,
}

impl Values {
    /// Opens the directory; creates it if there is none.
    pub(super) fn open(dir: &Path) -> Result<Self, Error> {
        fs::create_dir_all(dir).map_err(|error| unusable(dir, error))?;
        Ok(Self { dir: dir.to_owned(), changing: Mutex::default() })
    }

    /// Returns the value stored under a name.
    pub(super) fn get(&self, name: &str) -> Result<Option<String>, Error> {
        let path = self.path(name);
        let Some(bytes) = durable_file::read(&path).map_err(|error| unusable(&path, error))? else { return Ok(None) };
        match decode(&bytes) {
            Some((stored, value)) if stored == name => Ok(Some(value)),
            _ => Err(damaged(&path)),
        }
    }

    /// Stores what `next` makes of the stored value, durably; `None` leaves it. Returns the value that is stored now.
    pub(super) fn change(&self, name: &str, next: impl FnOnce(Option<&str>) -> Option<String>) -> Result<Option<String>, Error> {
        let _changing = unpoisoned(self.changing.lock());
        let stored = self.get(name)?;
        let Some(value) = next(stored.as_deref()) else { return Ok(stored) };
        let path = self.path(name);
        let json = serde_json::to_string(&(name, &value)).map_err(|error| unusable(&path, error.into()))?;
        let text = format!("{:016x}\n{json}\n", xxh3_64(json.as_bytes()));
        durable_file::replace(&path, text.as_bytes(), 0o600).map_err(|error| unusable(&path, error))?;
        Ok(Some(value))
    }

    /// Returns all values with their names.
    pub(super) fn all(&self) -> Result<Vec<(String, String)>, Error> {
        let mut all = Vec::new();
        for path in entries(&self.dir).map_err(|error| unusable(&self.dir, error))? {
            if path.extension().is_some_and(|extension| extension == EXTENSION) {
                let bytes = fs::read(&path).map_err(|error| unusable(&path, error))?;
                all.push(decode(&bytes).ok_or_else(|| damaged(&path))?);
            }
        }
        Ok(all)
    }

    fn path(&self, name: &str) -> PathBuf {
        self.dir.join(format!("{:032x}.{EXTENSION}", xxh3_128(name.as_bytes())))
    }
}

fn decode(bytes: &[u8]) -> Option<(String, String)> {
    let (checksum, json) = bytes.split_at_checked(17)?;
    let json = json.strip_suffix(b"\n")?;
    (format!("{:016x}\n", xxh3_64(json)).as_bytes() == checksum).then_some(())?;
    serde_json::from_slice(json).ok()
}

fn damaged(path: &Path) -> Error {
    Error::Damaged {
        table: path.display().to_string(),
        reason: "the file differs from its checksum; restore it from the backup, or remove it to continue without this value".to_owned(),
    }
}

fn unusable(path: &Path, error: io::Error) -> Error {
    Error::Unavailable { what: format!("the file {} cannot be used", path.display()), source: Some(Box::new(error)) }
}
