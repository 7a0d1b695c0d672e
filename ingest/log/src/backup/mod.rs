//! Copies a log, and small files that belong to it, into a directory, and restores a log from it.
//!
//! ```text
//! DIR/manifest                 checksum, then JSON: end offsets, segments, files, what is left out (manifest.rs)
//! DIR/log/TOPIC/P/A-B.avro     the records A to B - 1 of partition P: an Avro object container (segment.rs)
//! DIR/files/SHA256             the files, by their content
//! DIR/unfinished               exists while a backup is being written
//! DIR/lock                     locked by the process that writes
//! ```
//!
//! Guarantees:
//! - A backup is the log's content at one moment between two commits. It can be written while others append.
//! - A segment is never changed once it has its name. A segment that reached its full size is not written again by later backups; the last one of a
//!   partition is replaced when the partition has grown.
//! - The manifest is replaced as a whole, and only after everything that it names is durable. So the previous backup remains complete until the next
//!   one is, and an interrupted one loses nothing. The next one uses the segments that the interrupted one completed.
//! - Nothing of a backup is used before its checksum was compared.
//!
//! Not provided: secrecy. Whoever reads the directory reads the log.

mod manifest;
mod restore;
mod segment;
mod write;

use std::io;
use std::path::{Path, PathBuf};

use schemas::position::LogOffset;
use schemas::topics::{self, Topic};

pub use self::manifest::{FileEntry, LeftOut};
pub use self::restore::Backup;
pub use self::segment::SEGMENT_BYTES;
pub use self::write::{BackupFile, Plan, Written, back_up};

/// Why a backup cannot be written, read or restored.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum Error {
    /// The log failed.
    #[error(transparent)]
    Log(#[from] crate::Error),
    /// A file or directory cannot be read or written.
    #[error("{} cannot be used", path.display())]
    File {
        /// The file or directory.
        path: PathBuf,
        /// The system's reason.
        #[source]
        source: io::Error,
    },
    /// The directory holds something else than a backup.
    #[error("{} holds other files and no backup: name an empty directory, or one that holds a backup of this log", path.display())]
    OtherFiles {
        /// The directory.
        path: PathBuf,
    },
    /// The directory holds no complete backup.
    #[error("{} holds no complete backup: {reason}", path.display())]
    NoBackup {
        /// The directory.
        path: PathBuf,
        /// What is missing.
        reason: String,
    },
    /// Another process writes a backup into the directory.
    #[error("another process writes a backup into {}", path.display())]
    Busy {
        /// The directory.
        path: PathBuf,
    },
    /// Another version wrote the backup.
    #[error("{} has format {found}, and this version reads format {known}: use the version of highwater that wrote it ({version})", path.display())]
    Format {
        /// The manifest.
        path: PathBuf,
        /// The format of the backup.
        found: u32,
        /// The format that this version reads.
        known: u32,
        /// The version that wrote the backup.
        version: String,
    },
    /// A file of the backup does not hold what was written to it.
    #[error("{} is damaged: {reason}. Nothing of it was used; restore from another backup", path.display())]
    Damaged {
        /// The file.
        path: PathBuf,
        /// How it is damaged.
        reason: String,
    },
    /// The backup in the directory is of another log, or of a later state of this one.
    #[error("the backup in {} is not one of this log: {reason}. Name another directory", path.display())]
    OtherLog {
        /// The directory.
        path: PathBuf,
        /// What differs.
        reason: String,
    },
    /// The log to restore into has other records.
    #[error(
        "the log to restore into has another record than the backup at {topic}/{partition} offset {offset}: empty the directory and restore again"
    )]
    Differs {
        /// The topic.
        topic: String,
        /// The partition.
        partition: u32,
        /// The offset.
        offset: LogOffset,
    },
    /// The records cannot be encoded.
    #[error("a segment cannot be written")]
    Encode(#[source] crate::transfer::Error),
    /// The caller stopped the work.
    #[error("stopped; run the command again to resume")]
    Stopped,
}

impl Error {
    /// The error for a file that the system refused to read or write; for `map_err`.
    fn file(path: &Path) -> impl FnOnce(io::Error) -> Self {
        let path = path.to_owned();
        move |source| Self::File { path, source }
    }

    fn damaged(path: &Path, reason: impl Into<String>) -> Self {
        Self::Damaged { path: path.to_owned(), reason: reason.into() }
    }
}

/// The topics of the log, all of which belong to a backup.
fn all_topics() -> Vec<&'static Topic> {
    topics::ALL.iter().collect()
}

/// Runs work that blocks on a thread for such work.
async fn blocking<T: Send + 'static>(work: impl FnOnce() -> Result<T, Error> + Send + 'static) -> Result<T, Error> {
    tokio::task::spawn_blocking(work).await.unwrap_or(Err(Error::Stopped))
}
