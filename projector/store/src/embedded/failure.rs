//! What the engine's errors mean to a caller: stored bytes are wrong (damaged), or the store cannot be used now (unavailable).

use std::path::Path;
use std::sync::{LockResult, PoisonError};

use fjall::LsmError;

use crate::store::Error;

/// Turns an engine error into ours; `place` is the table or the path it happened at, `act` what was tried.
pub(super) fn engine(act: &str, place: &str, error: fjall::Error) -> Error {
    let damaged = matches!(
        error,
        fjall::Error::JournalRecovery(_)
            | fjall::Error::InvalidVersion(_)
            | fjall::Error::Decompress(_)
            | fjall::Error::InvalidTrailer
            | fjall::Error::InvalidTag(_)
            | fjall::Error::Unrecoverable
            | fjall::Error::Storage(
                LsmError::Decompress(_)
                    | LsmError::InvalidVersion(_)
                    | LsmError::Unrecoverable
                    | LsmError::ChecksumMismatch { .. }
                    | LsmError::InvalidTag(_)
                    | LsmError::InvalidTrailer
                    | LsmError::InvalidHeader(_)
                    | LsmError::Utf8(_)
            )
    );
    if damaged {
        return Error::Damaged { table: place.to_owned(), reason: format!("{act}: {error}") };
    }
    let why = match &error {
        fjall::Error::Locked => ": another process has it open",
        fjall::Error::Poisoned => ": an earlier write failed, so no more are taken until it is opened again",
        _ => "",
    };
    Error::Unavailable { what: format!("cannot {act} {place}{why}"), source: Some(Box::new(error)) }
}

/// The same for opening the directory.
pub(super) fn opening(dir: &Path, error: fjall::Error) -> Error {
    engine("open the view store at", &dir.display().to_string(), error)
}

/// What calls answer after `close`.
pub(super) fn closed() -> Error {
    Error::Unavailable { what: "the view store is closed".to_owned(), source: None }
}

/// A blocking task that did not end: it panicked, or the runtime is shutting down.
pub(super) fn lost_task(error: tokio::task::JoinError) -> Error {
    Error::Unavailable { what: "a task of the view store did not end".to_owned(), source: Some(Box::new(error)) }
}

/// The value under a lock, also after a panic of another holder: nothing here is left half changed between two statements.
pub(super) fn held<T>(lock: LockResult<T>) -> T {
    lock.unwrap_or_else(PoisonError::into_inner)
}
