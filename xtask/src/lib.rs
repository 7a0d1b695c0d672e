//! What keeps the map true: `cargo xtask new upstream`, `new service`, `tidy`.
//!
//! Promises: `new` writes all that a new thing needs and touches nothing else, or, refused, writes nothing at all; `tidy` looks at
//! everything that is checked in and changes nothing.
//!
//! Architecture invariant: it depends on no crate of ours. What it must know of them it reads from their sources, so that it works on a
//! tree that does not compile, and so that running it builds nothing else.

use std::fmt;
use std::path::PathBuf;

mod edit;
#[path = "../../schemas/src/names.rs"]
pub mod names;
pub mod new;
pub mod rooms;
pub mod tidy;
pub mod tree;

/// Why nothing was done.
#[derive(Debug)]
#[non_exhaustive]
pub enum Error {
    /// A file cannot be read or written.
    File {
        /// The file.
        path: PathBuf,
        /// Why.
        source: std::io::Error,
    },
    /// What was asked for cannot be.
    Refused(String),
    /// A file does not have the form in which it could be read or added to.
    Form {
        /// The file, from the root on.
        path: String,
        /// What is missing.
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
