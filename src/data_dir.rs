//! The data directory and the files in it: the lock, the kind of its records, keys, and the signer's memory next to it.
//!
//! Promises: one process at a time uses a data directory; simulated and real records are never in the same one; only its owner can read it.

use std::error::Error as StdError;
use std::fs::{self, File, TryLockError};
use std::os::unix::fs::MetadataExt as _;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use event_log::backup::Backup;
use operation::secrets;
use proofs::receipt::SigningKeys;
use transparency::memory::Memory;
use view_store::ViewStore;

use crate::config::{self, Config, LogBackend, StoreBackend};
use crate::hardening;
use crate::key_checks::KeyChecks;

/// Why a data directory cannot be used.
#[derive(Debug, thiserror::Error)]
pub(crate) enum Error {
    /// The directory cannot be created or written.
    #[error("data directory {path} cannot be written")]
    Unwritable {
        /// The directory.
        path: PathBuf,
        /// The system's reason.
        #[source]
        source: std::io::Error,
    },
    /// Other users can read the directory, and its mode cannot be changed.
    #[error(transparent)]
    Exposed(#[from] hardening::Error),
    /// The directory does not exist, or is not a data directory.
    #[error(
        "{path} is not a data directory; name another one with --data-dir or data_dir (serve, demo, ingest, keys, import and restore create it)"
    )]
    Missing {
        /// The directory.
        path: PathBuf,
    },
    /// Another process uses the directory.
    #[error("data directory {path} is in use by another process")]
    Locked {
        /// The directory.
        path: PathBuf,
    },
    /// The directory is a backup.
    #[error("{path} is a backup, which only `highwater restore` reads: restore it into another directory, and name that one (data_dir)")]
    Backup {
        /// The directory.
        path: PathBuf,
    },
    /// A restore into the directory is unfinished.
    #[error(
        "a restore into {path} is unfinished: run `highwater restore` with the same backup again, it continues; or remove the directory"
    )]
    UnfinishedRestore {
        /// The directory.
        path: PathBuf,
    },
    /// The directory holds the other kind of records.
    #[error("data directory {path} holds {held} records; choose another one for {wanted} records (data_dir)")]
    OtherRecords {
        /// The directory.
        path: PathBuf,
        /// The kind of records in it.
        held: &'static str,
        /// The kind of records that this process would add.
        wanted: &'static str,
    },
    /// The master key is missing although the log exists.
    #[error(
        "{path} is missing, but the log exists: with a new master key all existing API keys and cursors would be refused; restore the file from the backup"
    )]
    MissingMasterKey {
        /// Where the key should be.
        path: PathBuf,
    },
}

/// The kind of records in a data directory.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Records {
    /// From the simulator.
    Simulated,
    /// From real upstreams.
    Real,
}

impl Records {
    /// The name of the file that marks a directory as holding these records, which is also how errors call them.
    fn as_str(self) -> &'static str {
        match self {
            Self::Simulated => "simulated",
            Self::Real => "real",
        }
    }

    fn other(self) -> Self {
        match self {
            Self::Simulated => Self::Real,
            Self::Real => Self::Simulated,
        }
    }
}

/// Files of which every data directory has at least one, also a copy or a backup.
const CONTENTS: [&str; 5] = ["lock", "log", "master.key", RESTORING, "views"];

/// The file that exists while a restore into the directory is unfinished. It holds the id of the backup.
pub(crate) const RESTORING: &str = "restoring";

/// Refuses a data directory that does not exist, before a command creates anything in it. With the log and the store on servers it may be missing: then it
/// holds no records.
///
/// # Errors
/// The directory is missing or holds something else.
pub(crate) fn check_exists(config: &Config) -> Result<(), Box<dyn StdError>> {
    let sections = &config.sections;
    let is_remote = sections.log != LogBackend::Embedded && sections.store != StoreBackend::Embedded;
    let dir = &sections.data_dir;
    if is_remote || CONTENTS.iter().any(|name| dir.join(name).exists()) {
        return Ok(());
    }
    // A setting that is wrong for every directory is the better reason.
    signer_memory_dir(config)?;
    Err(Error::Missing { path: dir.clone() }.into())
}

/// Creates the data directory if it does not exist, and locks it for this process. The lock ends when the returned file is closed.
///
/// # Errors
/// The directory cannot be used, is a backup, or another process uses it.
pub(crate) fn lock(dir: &Path) -> Result<File, Error> {
    if Backup::is_in(dir) {
        return Err(Error::Backup { path: dir.to_owned() });
    }
    let lock = lock_for_restore(dir)?;
    if dir.join(RESTORING).exists() {
        return Err(Error::UnfinishedRestore { path: dir.to_owned() });
    }
    Ok(lock)
}

/// Like [`lock`], also while a restore into the directory is unfinished.
///
/// # Errors
/// The directory cannot be used, or another process uses it.
pub(crate) fn lock_for_restore(dir: &Path) -> Result<File, Error> {
    let unwritable = |source| Error::Unwritable { path: dir.to_owned(), source };
    let is_new = !dir.exists();
    hardening::private_directory(dir)?;
    if is_new {
        tracing::info!(path = %dir.display(), "created the data directory");
    }
    let lock = File::options().create(true).truncate(false).write(true).open(dir.join("lock")).map_err(unwritable)?;
    match lock.try_lock() {
        Ok(()) => Ok(lock),
        Err(TryLockError::WouldBlock) => Err(Error::Locked { path: dir.to_owned() }),
        Err(TryLockError::Error(source)) => Err(unwritable(source)),
    }
}

/// Marks a directory as holding one kind of records.
///
/// # Errors
/// It is already marked as holding the other kind.
pub(crate) fn mark(dir: &Path, records: Records) -> Result<(), Error> {
    let (wanted, held) = (records.as_str(), records.other().as_str());
    if dir.join(held).exists() {
        return Err(Error::OtherRecords { path: dir.to_owned(), held, wanted });
    }
    let text = b"the kind of records in this directory\n";
    fs::write(dir.join(wanted), text).map_err(|source| Error::Unwritable { path: dir.to_owned(), source })
}

/// The path of the master key.
pub(crate) fn master_key(config: &Config) -> PathBuf {
    let sections = &config.sections;
    sections.master_key_file.clone().unwrap_or_else(|| sections.data_dir.join("master.key"))
}

/// The path of the key with which this process cosigns other logs.
pub(crate) fn witness_key(config: &Config) -> PathBuf {
    let sections = &config.sections;
    sections.checkpoints.witness_key_file.clone().unwrap_or_else(|| sections.data_dir.join("witness.key"))
}

/// Refuses a data directory that has a log and no master key.
///
/// # Errors
/// The master key is missing.
pub(crate) fn check_master_key(config: &Config) -> Result<(), Error> {
    let path = master_key(config);
    if config.sections.data_dir.join("log").exists() && !path.exists() {
        return Err(Error::MissingMasterKey { path });
    }
    Ok(())
}

/// The directory of the keys that sign receipts: one file per key, `*.key`.
pub(crate) fn receipt_keys_dir(config: &Config) -> PathBuf {
    let sections = &config.sections;
    sections.receipt_keys_dir.clone().unwrap_or_else(|| sections.data_dir.join("receipt-keys"))
}

/// Reads all keys of a directory that are not in `keys` yet, and compares them with their check values.
///
/// # Errors
/// The directory or one of the keys cannot be read, or a key is another one than before.
pub(crate) fn read_receipt_keys(dir: &Path, keys: &SigningKeys, checks: &mut KeyChecks) -> Result<(), Box<dyn StdError + Send + Sync>> {
    let unreadable = |source| Error::Unwritable { path: dir.to_owned(), source };
    for entry in fs::read_dir(dir).map_err(unreadable)? {
        let path = entry.map_err(unreadable)?.path();
        if path.extension().is_some_and(|extension| extension == "key") {
            let seed = secrets::seed(&path)?;
            checks.check_receipt_key(&path, &seed)?;
            keys.add(&seed);
        }
    }
    Ok(())
}

/// Where the signer remembers what it signed.
///
/// # Errors
/// The configured directory is inside the data directory.
pub(crate) fn signer_memory(config: &Config, store: &Arc<dyn ViewStore>) -> Result<Memory, config::Error> {
    Ok(signer_memory_dir(config)?.map_or_else(|| Memory::Store(Arc::clone(store)), Memory::Directory))
}

/// The directory in which the signer remembers what it signed: outside the data directory, because a backup of that directory may be restored. `None` if
/// it remembers in the store.
fn signer_memory_dir(config: &Config) -> Result<Option<PathBuf>, config::Error> {
    let sections = &config.sections;
    let path = match &sections.checkpoints.memory {
        None if sections.store != StoreBackend::Embedded => return Ok(None),
        None if sections.data_dir.join(Records::Simulated.as_str()).exists() => demo_memory(&sections.data_dir),
        None => user_state_dir(|name| std::env::var_os(name).filter(|value| !value.is_empty()).map(PathBuf::from)).join("signer"),
        Some(path) => path.clone(),
    };
    // A path that does not exist yet has no links to follow.
    let resolved = |path: &Path| path.canonicalize().or_else(|_| std::path::absolute(path)).unwrap_or_else(|_| path.to_owned());
    if resolved(&path).starts_with(resolved(&sections.data_dir)) {
        let reason = format!(
            "{} is inside data_dir, but must be outside: restoring a backup of that directory must not restore what the signer remembers; \
             name another directory, for example \"/var/lib/highwater-signer\"",
            path.display()
        );
        return Err(config.invalid("checkpoints.memory", reason));
    }
    if let Some(reason) = foreign_writers(&path) {
        return Err(config.invalid("checkpoints.memory", format!("{}: {reason}", path.display())));
    }
    Ok(Some(path))
}

/// Why other users could change the signer's memory, its directory or a file in it, and let it sign a second history; `None` if they cannot, or if the
/// directory does not exist yet.
fn foreign_writers(path: &Path) -> Option<String> {
    let files = fs::read_dir(path).into_iter().flatten().flatten().map(|entry| entry.path());
    std::iter::once(path.to_owned()).chain(files).find_map(|place| {
        let reason = foreign_writers_of(&place)?;
        Some(if place == path { reason } else { format!("{}: {reason}", place.display()) })
    })
}

/// Why other users could change a directory or a file, or what a link leads to; `None` if they cannot, or if there is none.
fn foreign_writers_of(path: &Path) -> Option<String> {
    let (found, link) = (path.metadata().ok()?, path.symlink_metadata().ok()?);
    let own = rustix::process::geteuid().as_raw();
    if [&found, &link].iter().any(|entry| entry.uid() != own && entry.uid() != 0) {
        return Some("it, or the link to it, belongs to another user, who can change what the signer remembers".to_owned());
    }
    let is_of_own_group = found.gid() == rustix::process::getegid().as_raw();
    let writers = if is_of_own_group { 0o002 } else { 0o022 };
    let mode = found.mode() & 0o777;
    (mode & writers != 0).then(|| format!("other users can change what the signer remembers (mode {mode:03o}): chmod go-w"))
}

/// The signer's memory of a demo: next to its data directory, so that a demo leaves nothing in the user's state directory. Commands find it there, too.
fn demo_memory(data_dir: &Path) -> PathBuf {
    PathBuf::from(format!("{}.signer", data_dir.display().to_string().trim_end_matches('/')))
}

/// The user's directory for state, as the XDG base directory specification defines it.
fn user_state_dir(variable: impl Fn(&str) -> Option<PathBuf>) -> PathBuf {
    let below_home = || variable("HOME").map(|home| home.join(".local/state"));
    match variable("XDG_STATE_HOME").filter(|path| path.is_absolute()).or_else(below_home) {
        Some(state) => state.join("highwater"),
        None => PathBuf::from("/var/lib/highwater"),
    }
}

#[cfg(test)]
mod tests {
    use std::os::unix::fs::{PermissionsExt as _, symlink};

    use super::*;

    /// Proves that a backup is called so and is not changed, and that another file with the name of its manifest makes none.
    #[test]
    fn backups_are_no_data_directories() {
        let dir = tempfile::tempdir().unwrap();
        fs::write(dir.path().join("manifest"), "highwater-backup sha256:00\n{}").unwrap();
        let reason = lock(dir.path()).unwrap_err().to_string();
        assert!(reason.contains("is a backup") && !dir.path().join("lock").exists(), "{reason}");
        fs::write(dir.path().join("manifest"), "highwater").unwrap();
        assert!(lock(dir.path()).is_ok());
    }

    /// Proves that a directory that other users can write in, or with a file that they can change, is refused with the mode, also through a link, and that
    /// one of our own is not.
    #[test]
    fn memories_that_others_can_change() {
        let dir = tempfile::tempdir().unwrap();
        let (memory, link) = (dir.path().join("memory"), dir.path().join("link"));
        assert_eq!(foreign_writers(&memory), None, "it is created when it is first used");
        fs::create_dir(&memory).unwrap();
        symlink(&memory, &link).unwrap();
        for (mode, is_refused) in
            [(0o700, false), (0o750, false), (0o755, false), (0o777, true), (0o1777, true), (0o702, true), (0o700, false)]
        {
            fs::set_permissions(&memory, fs::Permissions::from_mode(mode)).unwrap();
            for path in [&memory, &link] {
                let reason = foreign_writers(path);
                assert_eq!(reason.is_some(), is_refused, "{mode:o}: {reason:?}");
                assert!(reason.is_none_or(|reason| reason.contains(&format!("mode {:03o}", mode & 0o777))));
            }
        }
        let (file, elsewhere) = (memory.join("key.json"), dir.path().join("elsewhere.json"));
        let refused =
            || [&memory, &link].map(|path| foreign_writers(path).is_some_and(|reason| reason.contains("key.json: other users can change")));
        fs::write(&file, "{}").unwrap();
        for (mode, is_refused) in [(0o600, false), (0o644, false), (0o666, true), (0o602, true), (0o777, true), (0o600, false)] {
            fs::set_permissions(&file, fs::Permissions::from_mode(mode)).unwrap();
            assert_eq!(refused(), [is_refused; 2], "{mode:o}");
        }
        // A link counts as the file to which it leads, and one that leads nowhere is no file.
        fs::rename(&file, &elsewhere).unwrap();
        symlink(&elsewhere, &file).unwrap();
        fs::set_permissions(&elsewhere, fs::Permissions::from_mode(0o666)).unwrap();
        assert_eq!(refused(), [true; 2]);
        fs::remove_file(&elsewhere).unwrap();
        assert_eq!(refused(), [false; 2]);
    }
}
