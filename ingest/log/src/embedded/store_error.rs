//! Errors of the store, and the conversion of its panics into errors.

use std::error::Error as StdError;
use std::io;
use std::panic::{self, AssertUnwindSafe};
use std::path::Path;

use crate::Error;

/// Calls the store and converts a panic into an error. Damaged files can make the store panic.
pub(super) fn catch_panic<T>(call: impl FnOnce() -> Result<T, fjall::Error>) -> Result<T, fjall::Error> {
    // A panic can leave only the store's own state inconsistent, and nothing is written after a failure.
    panic::catch_unwind(AssertUnwindSafe(call)).unwrap_or_else(|panic| {
        let words = panic.downcast_ref::<&str>().map(|words| (*words).to_owned());
        let words = words.or_else(|| panic.downcast_ref::<String>().cloned()).unwrap_or_default();
        Err(fjall::Error::Io(io::Error::other(format!("the store panicked: {words}"))))
    })
}

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
