//! The files under the embedded log and the embedded view store: durable replacement of small files, and checks of the files of the storage
//! library (fjall), which relies on some of them without verifying them.
//!
//! [`durable_file`] replaces small files. [`keyspaces`] checks manifests before the library may change or delete anything. [`journal`] walks
//! journals, because the library cuts them at the first entry that it cannot read. [`library`] turns panics of the library into errors.
//! [`space`] lets writers pause while the disk is full.

pub mod durable_file;
pub mod journal;
pub mod keyspaces;
pub mod library;
pub mod space;

use std::io;
use std::path::{Path, PathBuf};

/// Why the files of a store cannot be used.
#[derive(Debug, thiserror::Error)]
pub enum Error {
    /// A file does not hold what was written to it.
    #[error("{} {how}", path.display())]
    Damaged {
        /// The file.
        path: PathBuf,
        /// What is wrong with it, as the end of a sentence that starts with its name.
        how: String,
    },
    /// A file cannot be read or written now.
    #[error("{} cannot be used", path.display())]
    Unusable {
        /// The file or directory.
        path: PathBuf,
        /// The system's reason.
        #[source]
        source: io::Error,
    },
}

impl Error {
    /// Creates the error for a damaged file.
    pub fn damaged(path: &Path, how: impl Into<String>) -> Self {
        Self::Damaged { path: path.to_owned(), how: how.into() }
    }

    /// Creates the error for a file that the system refused to read or write.
    pub(crate) fn unusable(path: &Path) -> impl FnOnce(io::Error) -> Self {
        let path = path.to_owned();
        move |source| Self::Unusable { path, source }
    }
}
