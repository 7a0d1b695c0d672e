//! Converts errors of the storage engine: stored bytes are wrong (damaged), or the store cannot be used now (unavailable).

use std::path::Path;
use std::sync::{LockResult, PoisonError};

use disk_files::library::is_damage;
use disk_files::space::DiskFull;

use crate::store::Error;

/// Converts an engine error. `place` is the table or path where it occurred, `act` is what was attempted.
pub(super) fn engine(act: &str, place: &str, error: fjall::Error) -> Error {
    if is_damage(&error) {
        return Error::Damaged { table: place.to_owned(), reason: format!("{act}: {error}") };
    }
    let why = match &error {
        fjall::Error::Locked => ": another process has it open",
        fjall::Error::Poisoned => ": an earlier write failed, so no more are taken until it is opened again",
        _ => "",
    };
    let source: Box<dyn std::error::Error + Send + Sync> = match DiskFull::cause(&error) {
        Some(full) => Box::new(full),
        None => Box::new(error),
    };
    Error::Unavailable { what: format!("cannot {act} {place}{why}"), source: Some(source) }
}

/// Converts an engine error that occurred while opening the directory.
pub(super) fn opening(dir: &Path, error: fjall::Error) -> Error {
    engine("open the view store at", &dir.display().to_string(), error)
}

/// Returns the error of calls after `close`.
pub(super) fn closed() -> Error {
    Error::Unavailable { what: "the view store is closed".to_owned(), source: None }
}

/// Converts the error of a blocking task that did not complete: it panicked, or the runtime is shutting down.
pub(super) fn lost_task(error: tokio::task::JoinError) -> Error {
    Error::Unavailable { what: "a task of the view store did not end".to_owned(), source: Some(Box::new(error)) }
}

/// Returns the value under a lock, also after a panic of another holder: no code here panics between two related changes.
pub(super) fn unpoisoned<T>(lock: LockResult<T>) -> T {
    lock.unwrap_or_else(PoisonError::into_inner)
}
