//! Development tasks: `cargo xtask new upstream`, `cargo xtask new service` and `cargo xtask tidy`.
//!
//! Guarantees: `new` writes all files that an addition needs and changes nothing else; if it refuses, it writes nothing. `tidy` checks every
//! file in the repository and changes nothing.
//!
//! Architecture invariant: it depends on no other crate of the workspace and reads their sources instead. So it works on a tree that does
//! not compile, and running it builds nothing else.

use std::fmt;
use std::path::PathBuf;

mod edit;
pub mod layout;
#[path = "../../schemas/src/names.rs"]
pub mod names;
pub mod new;
pub mod tidy;
pub mod tree;

/// Why a task failed.
#[derive(Debug)]
#[non_exhaustive]
pub enum Error {
    /// A file cannot be read or written.
    File {
        /// The path of the file.
        path: PathBuf,
        /// The cause.
        source: std::io::Error,
    },
    /// The request is invalid.
    Refused(String),
    /// A file does not have the form that this program can read or extend.
    Form {
        /// The path of the file from the root of the repository.
        path: String,
        /// What is wrong.
        reason: String,
    },
}

impl fmt::Display for Error {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::File { path, source } => write!(f, "{}: {source}", path.display()),
            Self::Refused(reason) => f.write_str(reason),
            Self::Form { path, reason } => write!(f, "{path}: {reason}"),
        }
    }
}

impl std::error::Error for Error {
    fn source(&self) -> Option<&(dyn std::error::Error + 'static)> {
        match self {
            Self::File { source, .. } => Some(source),
            Self::Refused(_) | Self::Form { .. } => None,
        }
    }
}
