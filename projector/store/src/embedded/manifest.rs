//! The manifest of the view store: its format, which keyspaces must exist, and the number of a commit that the store must have reached.
//!
//! The engine takes a keyspace whose files are gone for one that was never used. The manifest makes that visible. It is one line with a
//! checksum, then JSON, and replaced as a whole.

use std::collections::BTreeMap;
use std::io;
use std::path::{Path, PathBuf};

use disk_files::durable_file;
use serde::{Deserialize, Serialize};
use xxhash_rust::xxh3::xxh3_64;

/// The format that this version writes. Format 1 had no manifest.
pub(super) const FORMAT: u32 = 2;

/// The content of the manifest.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub(super) struct Manifest {
    /// The format of the store.
    pub(super) format: u32,
    /// The keyspaces, by name, with the numbers of their directories.
    pub(super) keyspaces: BTreeMap<String, u64>,
    /// The number of a commit that was in the store when the manifest was written. The store may be ahead of it.
    pub(super) commit: u64,
}

/// The result of reading the manifest.
#[derive(Debug, PartialEq, Eq)]
pub(super) enum ManifestState {
    /// There is none.
    Nothing,
    /// It is whole, and of this format or an older one.
    Manifest(Manifest),
    /// It does not match its checksum.
    Damaged,
    /// It is of this newer format.
    Newer(u32),
}

/// Returns the path of the manifest in the store's directory.
pub(super) fn path(dir: &Path) -> PathBuf {
    dir.join("manifest")
}

/// Reads the manifest.
pub(super) fn read(dir: &Path) -> io::Result<ManifestState> {
    let Some(bytes) = durable_file::read(&path(dir))? else { return Ok(ManifestState::Nothing) };
    Ok(match decode(&bytes) {
        None => ManifestState::Damaged,
        Some(manifest) if manifest.format > FORMAT => ManifestState::Newer(manifest.format),
        Some(manifest) => ManifestState::Manifest(manifest),
    })
}

fn decode(bytes: &[u8]) -> Option<Manifest> {
    let (checksum, json) = bytes.split_at_checked(17)?;
    let json = json.strip_suffix(b"\n")?;
    if format!("{:016x}\n", xxh3_64(json)).as_bytes() != checksum {
        return None;
    }
    serde_json::from_slice(json).ok()
}

impl Manifest {
    /// Replaces the manifest durably.
    pub(super) fn write(&self, dir: &Path) -> io::Result<()> {
        let json = serde_json::to_string(self)?;
        let text = format!("{:016x}\n{json}\n", xxh3_64(json.as_bytes()));
        durable_file::replace(&path(dir), text.as_bytes(), 0o600).map(drop)
    }
}

#[cfg(test)]
mod tests {
    use std::fs;

    use super::*;

    /// Proves that a manifest is read back, that any changed or missing byte is noticed, and that a newer format is named.
    #[test]
    fn changed_manifests_are_noticed() {
        let dir = tempfile::tempdir().unwrap();
        assert_eq!(read(dir.path()).unwrap(), ManifestState::Nothing);
        let manifest = Manifest { format: FORMAT, keyspaces: BTreeMap::from([("meta".to_owned(), 1)]), commit: 9 };
        manifest.write(dir.path()).unwrap();
        assert_eq!(read(dir.path()).unwrap(), ManifestState::Manifest(manifest.clone()));
        let whole = fs::read(path(dir.path())).unwrap();
        for at in 0..whole.len() {
            let mut damaged = whole.clone();
            damaged[at] ^= 4;
            fs::write(path(dir.path()), damaged).unwrap();
            assert_eq!(read(dir.path()).unwrap(), ManifestState::Damaged, "byte {at}");
            fs::write(path(dir.path()), &whole[..at]).unwrap();
            assert_eq!(read(dir.path()).unwrap(), ManifestState::Damaged, "cut at {at}");
        }
        Manifest { format: FORMAT + 1, ..manifest }.write(dir.path()).unwrap();
        assert_eq!(read(dir.path()).unwrap(), ManifestState::Newer(FORMAT + 1));
    }
}
