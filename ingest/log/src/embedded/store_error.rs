//! Errors of the store.

use std::error::Error as StdError;
use std::path::Path;

use crate::Error;

/// Builds the error for a log that is already open.
pub(super) fn locked(store: &Path) -> Error {
    Error::Unavailable {
        what: format!("the log in {} is in use by another process, or still open in this one", store.display()),
        source: Some(Box::new(fjall::Error::Locked)),
    }
}

/// Builds the error for a log that cannot be opened or used.
pub(super) fn unavailable(what: String, source: impl StdError + Send + Sync + 'static) -> Error {
    Error::Unavailable { what, source: Some(Box::new(source)) }
}
