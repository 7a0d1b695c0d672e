//! Calls of the storage library whose panics become errors, and the meaning of its errors.

use std::fs::File;
use std::io;
use std::panic::{self, AssertUnwindSafe};
use std::path::Path;
use std::time::Duration;

use fjall::LsmError;

/// How often it is checked whether a store is released, and how many times.
const RELEASE_POLL_INTERVAL: Duration = Duration::from_millis(10);
const RELEASE_POLLS_MAX: u32 = 200;

/// Calls the library and converts a panic into an error. Damaged files can make the library panic.
///
/// # Errors
/// The library's error, or [`fjall::Error::Unrecoverable`]-like damage as an I/O error of kind `InvalidData` if it panicked.
pub fn catch_panic<T>(call: impl FnOnce() -> Result<T, fjall::Error>) -> Result<T, fjall::Error> {
    // A panic can leave only the library's own state inconsistent, and its user stops writing after a failure.
    panic::catch_unwind(AssertUnwindSafe(call)).unwrap_or_else(|panic| {
        let words = panic.downcast_ref::<&str>().map(|words| (*words).to_owned());
        let words = words.or_else(|| panic.downcast_ref::<String>().cloned()).unwrap_or_default();
        Err(fjall::Error::Io(io::Error::new(io::ErrorKind::InvalidData, format!("the storage library panicked: {words}"))))
    })
}

/// Waits until nothing of this process has a closed store open any more: running reads release it with their last handle. Blocks.
///
/// # Errors
/// [`fjall::Error::Locked`] if it is still open after two seconds; an I/O error if its lock cannot be read.
pub fn wait_for_release(store: &Path) -> Result<(), fjall::Error> {
    for _ in 0..RELEASE_POLLS_MAX {
        let is_locked = match File::open(store.join("lock")) {
            Ok(lock) => lock.try_lock().is_err(),
            Err(error) if error.kind() == io::ErrorKind::NotFound => false,
            Err(error) => return Err(error.into()),
        };
        if !is_locked {
            return Ok(());
        }
        std::thread::sleep(RELEASE_POLL_INTERVAL);
    }
    Err(fjall::Error::Locked)
}

/// Whether an error means that files do not hold what was written to them: a checksum differs, a file is missing or ends early, or the
/// library panicked. A full disk, missing permissions or too many open files are no damage.
#[must_use]
pub fn is_damage(error: &fjall::Error) -> bool {
    match error {
        fjall::Error::Io(error) | fjall::Error::Storage(LsmError::Io(error)) => is_damage_io(error),
        fjall::Error::JournalRecovery(_)
        | fjall::Error::InvalidVersion(_)
        | fjall::Error::Decompress(_)
        | fjall::Error::InvalidTrailer
        | fjall::Error::InvalidTag(_)
        | fjall::Error::Unrecoverable => true,
        fjall::Error::Storage(error) => matches!(
            error,
            LsmError::Decompress(_)
                | LsmError::InvalidVersion(_)
                | LsmError::Unrecoverable
                | LsmError::ChecksumMismatch { .. }
                | LsmError::InvalidTag(_)
                | LsmError::InvalidTrailer
                | LsmError::InvalidHeader(_)
                | LsmError::Utf8(_)
        ),
        _ => false,
    }
}

fn is_damage_io(error: &io::Error) -> bool {
    matches!(error.kind(), io::ErrorKind::NotFound | io::ErrorKind::UnexpectedEof | io::ErrorKind::InvalidData | io::ErrorKind::Other)
        && error.raw_os_error().is_none_or(|_| error.kind() == io::ErrorKind::NotFound)
}
