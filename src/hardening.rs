//! Protection of the process: files that only their owner can read, limits on connections by the available file descriptors, and panics logged as
//! events.

use std::fs::{self, DirBuilder, Permissions};
use std::io;
use std::os::unix::fs::{DirBuilderExt as _, PermissionsExt as _};
use std::path::{Path, PathBuf};

use rustix::fs::Mode;
use rustix::process::{Resource, getrlimit, setrlimit, umask};

/// The permission bits of all users except the owner.
const OTHERS: u32 = 0o077;
/// File descriptors reserved for the log, the store, upstreams and webhooks. Connections may use the others. If the limit is low, half of them are
/// reserved.
const RESERVED_DESCRIPTORS: u64 = 2_048;
/// The least limit on open files: 128 for files of the log, 384 for those of the store, the rest for journals, indexes, upstreams and some connections.
const DESCRIPTORS_MIN: u64 = 640;
/// The longest panic message that is logged, in characters: it may contain what a caller sent.
const PANIC_MESSAGE_CHARS_MAX: usize = 200;

/// Why a data directory cannot be used.
#[derive(Debug, thiserror::Error)]
pub(crate) enum Error {
    /// The directory cannot be created or read.
    #[error("data directory {path} cannot be written")]
    Unusable {
        /// The directory, or the file in it that causes the error.
        path: PathBuf,
        /// The system's reason.
        #[source]
        source: io::Error,
    },
    /// Other users can read it, and this process is not allowed to change its mode.
    #[error("{path} has mode {mode:04o}: other users can read it; set directories to 0700 and files to 0600, or run as the owner")]
    Exposed {
        /// The directory or file.
        path: PathBuf,
        /// The mode of the directory or file.
        mode: u32,
        /// The system's reason why the mode could not be changed.
        #[source]
        source: io::Error,
    },
}

/// The process may not open enough files.
#[derive(Debug, thiserror::Error)]
#[error(
    "this process may open {limit} files, and needs at least {DESCRIPTORS_MIN}: raise the limit (`ulimit -n`, LimitNOFILE= of a systemd unit, or --ulimit \
     nofile= of a container)"
)]
pub(crate) struct TooFewDescriptors {
    limit: u64,
}

/// Sets the umask, so that only the owner can read files and directories that this process creates from now on.
pub(crate) fn create_private_files() {
    umask(Mode::from_raw_mode(OTHERS));
}

/// Creates a data directory with mode 0700, or removes the permissions of other users from an existing one and everything in it. Key files keep their
/// mode: an exposed key is refused when it is read, because others may know it already.
///
/// # Errors
/// The directory cannot be created or read, or other users can read it and its mode cannot be changed.
pub(crate) fn private_directory(dir: &Path) -> Result<(), Error> {
    let unusable = |path: &Path| {
        let path = path.to_owned();
        |source| Error::Unusable { path, source }
    };
    DirBuilder::new().recursive(true).mode(0o700).create(dir).map_err(unusable(dir))?;
    if !is_exposed(dir).map_err(unusable(dir))? {
        return Ok(());
    }
    let mut directories = vec![dir.to_owned()];
    while let Some(own) = directories.pop() {
        for entry in fs::read_dir(&own).map_err(unusable(&own))? {
            let entry = entry.map_err(unusable(&own))?;
            let (path, kind) = (entry.path(), entry.file_type().map_err(unusable(&own))?);
            if kind.is_dir() {
                directories.push(path);
            } else if kind.is_file() && path.extension().is_none_or(|extension| extension != "key") {
                match make_private(&path) {
                    // Another process uses the directory and has removed the file.
                    Err(Error::Unusable { source, .. }) if source.kind() == io::ErrorKind::NotFound => {}
                    other => other?,
                }
            }
        }
        // After its contents, so that an interrupted walk is repeated at the next start.
        if own != dir {
            make_private(&own)?;
        }
    }
    make_private(dir)?;
    tracing::warn!(path = %dir.display(), "other users could read the data directory; its permissions were restricted to the owner");
    Ok(())
}

fn is_exposed(path: &Path) -> io::Result<bool> {
    Ok(fs::metadata(path)?.permissions().mode() & OTHERS != 0)
}

/// Removes the permissions of other users from a file or directory.
fn make_private(path: &Path) -> Result<(), Error> {
    let mode = fs::metadata(path).map_err(|source| Error::Unusable { path: path.to_owned(), source })?.permissions().mode() & 0o7777;
    if mode & OTHERS == 0 {
        return Ok(());
    }
    let changed = fs::set_permissions(path, Permissions::from_mode(mode & !OTHERS));
    changed.map_err(|source| Error::Exposed { path: path.to_owned(), mode, source })
}

/// Raises the limit on open files to the maximum that the system permits.
///
/// # Errors
/// The limit remains below what the log, the store and a few connections need.
pub(crate) fn raise_descriptor_limit() -> Result<(), TooFewDescriptors> {
    let mut limit = getrlimit(Resource::Nofile);
    limit.current = limit.maximum;
    if let Err(error) = setrlimit(Resource::Nofile, limit) {
        tracing::warn!(%error, "the limit on open files could not be raised");
    }
    check_descriptors(getrlimit(Resource::Nofile).current)
}

fn check_descriptors(limit: Option<u64>) -> Result<(), TooFewDescriptors> {
    match limit {
        Some(limit) if limit < DESCRIPTORS_MIN => Err(TooFewDescriptors { limit }),
        _ => Ok(()),
    }
}

/// The limit of open connections: the configured one, or a lower one if the limit on open files requires it.
pub(crate) fn connections_max(configured: usize) -> usize {
    connections_within(getrlimit(Resource::Nofile).current, configured)
}

fn connections_within(descriptors: Option<u64>, configured: usize) -> usize {
    let Some(descriptors) = descriptors else { return configured };
    let reserved = RESERVED_DESCRIPTORS.min(descriptors / 2);
    usize::try_from(descriptors - reserved).unwrap_or(usize::MAX).min(configured).max(1)
}

/// The limit of open connections from one address: the configured one, at most an eighth of all, so that a few addresses cannot use all connections.
pub(crate) fn connections_per_address_max(configured: usize, connections_max: usize) -> usize {
    configured.min(connections_max / 8).max(1)
}

/// Logs panics as events in the configured format and with a bounded length.
pub(crate) fn log_panics() {
    std::panic::set_hook(Box::new(|panic| {
        let message = panic.payload_as_str().unwrap_or("no message");
        let message: String = message.chars().take(PANIC_MESSAGE_CHARS_MAX).collect();
        let location = panic.location().map(ToString::to_string).unwrap_or_default();
        let thread = std::thread::current();
        tracing::error!(
            reason = operation::redaction::hide_keys(message),
            location,
            thread = thread.name().unwrap_or_default(),
            "a thread panicked"
        );
    }));
}

#[cfg(test)]
mod tests {
    use super::*;

    fn mode(path: &Path) -> u32 {
        fs::metadata(path).unwrap().permissions().mode() & 0o777
    }

    /// Proves that a new data directory is private, that an existing one becomes private with everything in it, and that key files keep their mode.
    #[test]
    fn data_directories_are_private() {
        let parent = tempfile::tempdir().unwrap();
        let (new, old) = (parent.path().join("new"), parent.path().join("old"));
        private_directory(&new).unwrap();
        assert_eq!(mode(&new), 0o700);

        fs::create_dir_all(old.join("log")).unwrap();
        let files = [old.join("log/0.jnl"), old.join("real"), old.join("master.key")];
        for path in files.iter().chain([&old, &old.join("log")]) {
            if !path.exists() {
                fs::write(path, b"").unwrap();
            }
            fs::set_permissions(path, Permissions::from_mode(if path.is_dir() { 0o755 } else { 0o644 })).unwrap();
        }
        private_directory(&old).unwrap();
        assert_eq!([&old, &old.join("log")].map(|path| mode(path)), [0o700; 2]);
        assert_eq!(files.each_ref().map(|path| mode(path)), [0o600, 0o600, 0o644]);
    }

    /// Proves that a limit on open files below the least one is refused with both numbers.
    #[test]
    fn too_few_descriptors_are_refused() {
        let message = check_descriptors(Some(DESCRIPTORS_MIN - 1)).unwrap_err().to_string();
        assert!(message.contains("may open 639 files") && message.contains("at least 640"), "{message}");
        check_descriptors(Some(DESCRIPTORS_MIN)).unwrap();
        check_descriptors(None).unwrap();
    }

    /// Proves that connections leave file descriptors for the log and the store at any limit.
    #[test]
    fn connections_leave_descriptors() {
        for (descriptors, expected) in [(256, 128), (1_024, 512), (4_096, 2_048), (8_192, 6_144), (1_048_576, 10_000), (0, 1)] {
            assert_eq!(connections_within(Some(descriptors), 10_000), expected, "{descriptors}");
        }
        assert_eq!(connections_within(None, 10_000), 10_000);
        assert_eq!(
            [(1_024, 10_000), (1_024, 512), (1_024, 4)].map(|(configured, max)| connections_per_address_max(configured, max)),
            [1_024, 64, 1]
        );
    }
}
