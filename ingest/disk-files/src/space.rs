//! The free space of the disk that holds a data directory. Writers ask before they write, so that they pause before the storage library meets a full disk,
//! which it cannot recover from without being opened again.
//!
//! ```text
//! free space:  0 ......... pause_bytes ......... resume_bytes ......... low_bytes ......
//!              writers pause, the reserve is deleted    |   a warning is logged    |
//!                                                       writers that paused continue, with a new reserve
//! ```
//!
//! A file without content, the reserve, keeps space allocated. It is deleted when the space runs out, so that what the library has to write in the
//! background, and messages, still have room.

use std::fmt;
use std::fs::{self, File};
use std::io;
use std::path::{Path, PathBuf};
use std::sync::{Mutex, PoisonError};
use std::time::{Duration, Instant};

use rustix::fs::{FallocateFlags, fallocate, statvfs};

/// The name of the reserve in the data directory.
const RESERVE: &str = "reserve";
/// A failure of the library is attributed to a full disk if the disk was full within this time.
const RECENTLY: Duration = Duration::from_secs(60);
/// The pause before it is tried again to allocate the reserve, while writers write without one.
const RESERVE_INTERVAL: Duration = Duration::from_secs(60);
const MIB: u64 = 1024 * 1024;

/// How much space is needed.
#[derive(Clone, Copy, Debug)]
pub struct Limits {
    /// The size of the reserve, in bytes. Writers pause below a quarter of it.
    pub reserve_bytes: u64,
    /// The free space below which a warning is logged, in bytes.
    pub low_bytes: u64,
}

impl Limits {
    /// The free space below which writers pause.
    fn pause_bytes(self) -> u64 {
        self.reserve_bytes / 4
    }

    /// The free space above which writers that paused continue: enough for a new reserve and a distance to the next pause.
    fn resume_bytes(self) -> u64 {
        self.reserve_bytes.saturating_add(2 * self.pause_bytes())
    }
}

/// The disk has no space for writers.
#[derive(Clone, Debug, thiserror::Error)]
#[error(
    "the disk of {} is full: {} MiB are free; writing continues by itself when {} MiB are free; reads are answered meanwhile \
     (ops/docs/operations/runbooks/disk-full.md)", dir.display(), free_bytes / MIB, resume_bytes / MIB
)]
pub struct DiskFull {
    dir: PathBuf,
    free_bytes: u64,
    resume_bytes: u64,
}

impl From<DiskFull> for fjall::Error {
    fn from(full: DiskFull) -> Self {
        Self::Io(io::Error::new(io::ErrorKind::StorageFull, full))
    }
}

impl DiskFull {
    /// Returns the cause of an error of the storage library if it is this one, whose text is for operators.
    #[must_use]
    pub fn cause(error: &fjall::Error) -> Option<Self> {
        match error {
            fjall::Error::Io(error) => error.get_ref()?.downcast_ref::<Self>().cloned(),
            _ => None,
        }
    }
}

/// The free space as it was measured last.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Space {
    /// Bytes that this process may still allocate.
    pub free_bytes: u64,
    /// Whether fewer bytes are free than those of the warning.
    pub is_low: bool,
    /// Whether writers pause.
    pub is_full: bool,
}

#[derive(Default)]
struct State {
    last: Space,
    full_at: Option<Instant>,
    has_reserve: bool,
    /// When the reserve could not be allocated last.
    reserve_failed_at: Option<Instant>,
}

type Measure = dyn Fn(&Path) -> io::Result<u64> + Send + Sync;

/// Watches the disk of a data directory.
pub struct SpaceWatch {
    dir: PathBuf,
    limits: Limits,
    measure: Box<Measure>,
    state: Mutex<State>,
}

impl fmt::Debug for SpaceWatch {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.debug_struct("SpaceWatch").field("dir", &self.dir).field("limits", &self.limits).finish_non_exhaustive()
    }
}

impl SpaceWatch {
    /// Watches the disk of an existing directory, and allocates the reserve if there is space for it.
    #[must_use]
    pub fn open(dir: &Path, limits: Limits) -> Self {
        let free_bytes = |dir: &Path| {
            let stat = statvfs(dir)?;
            Ok(stat.f_bavail.saturating_mul(stat.f_frsize))
        };
        Self::measured(dir, limits, free_bytes)
    }

    /// As [`Self::open`], with another way to measure the free bytes of a directory.
    #[must_use]
    pub fn measured(dir: &Path, limits: Limits, measure: impl Fn(&Path) -> io::Result<u64> + Send + Sync + 'static) -> Self {
        let this = Self { dir: dir.to_owned(), limits, measure: Box::new(measure), state: Mutex::default() };
        // A disk that is full at the start has room for the opening of the stores, at least.
        let _ = this.check();
        this
    }

    /// Measures the free space, and returns whether writers may write.
    ///
    /// # Errors
    /// [`DiskFull`] while writers must pause. A disk that cannot be measured does not count as full.
    pub fn check(&self) -> Result<(), DiskFull> {
        let Ok(free_bytes) = (self.measure)(&self.dir) else { return Ok(()) };
        let mut state = self.state.lock().unwrap_or_else(PoisonError::into_inner);
        let before = state.last;
        let is_due = before.is_full || state.reserve_failed_at.is_none_or(|at| at.elapsed() >= RESERVE_INTERVAL);
        let may_continue = !state.has_reserve && is_due && free_bytes >= self.limits.resume_bytes() && self.make_reserve(&mut state);
        let is_full = if before.is_full { !may_continue } else { free_bytes < self.limits.pause_bytes() };
        let is_low = is_full || free_bytes < self.limits.low_bytes;
        state.last = Space { free_bytes, is_low, is_full };
        let dir = self.dir.display();
        if is_full {
            state.full_at = Some(Instant::now());
            if !before.is_full {
                self.delete_reserve(&mut state);
                tracing::error!(
                    %dir,
                    free_mib = free_bytes / MIB,
                    resume_mib = self.limits.resume_bytes() / MIB,
                    "the disk is full: writers pause until space is free again, reads are answered"
                );
            }
            return Err(DiskFull { dir: self.dir.clone(), free_bytes, resume_bytes: self.limits.resume_bytes() });
        }
        if before.is_full {
            tracing::info!(%dir, free_mib = free_bytes / MIB, "the disk has space again: writers continue");
        }
        match (before.is_low, is_low) {
            (false, true) => tracing::warn!(
                %dir,
                free_mib = free_bytes / MIB,
                pause_mib = self.limits.pause_bytes() / MIB,
                "the disk is almost full: writers will pause when it is"
            ),
            (true, false) => tracing::info!(%dir, free_mib = free_bytes / MIB, "the disk has enough free space again"),
            _ => {}
        }
        Ok(())
    }

    /// The free space as [`Self::check`] measured it last.
    #[must_use]
    pub fn last(&self) -> Space {
        self.state.lock().unwrap_or_else(PoisonError::into_inner).last
    }

    /// The free space below which a warning is logged, in bytes.
    #[must_use]
    pub fn low_bytes(&self) -> u64 {
        self.limits.low_bytes
    }

    /// Whether a full disk is the cause of an error of the storage library: the library's worker fails without passing its error on.
    #[must_use]
    pub fn explains(&self, error: &fjall::Error) -> bool {
        if let fjall::Error::Io(error) | fjall::Error::Storage(fjall::LsmError::Io(error)) = error
            && is_full(error)
        {
            return true;
        }
        let _ = self.check();
        let state = self.state.lock().unwrap_or_else(PoisonError::into_inner);
        matches!(error, fjall::Error::Poisoned) && state.full_at.is_some_and(|at| at.elapsed() < RECENTLY)
    }

    /// Pauses writers because the storage library met a full disk before the free space was measured.
    pub fn pause(&self) {
        let mut state = self.state.lock().unwrap_or_else(PoisonError::into_inner);
        if !state.last.is_full {
            tracing::error!(dir = %self.dir.display(), "a write met a full disk: writers pause until space is free again, reads are answered");
            self.delete_reserve(&mut state);
        }
        (state.last.is_full, state.full_at) = (true, Some(Instant::now()));
    }

    /// Whether so many bytes can be written without making writers pause.
    #[must_use]
    pub fn has_room_for(&self, bytes: u64) -> bool {
        (self.measure)(&self.dir).is_ok_and(|free| free.saturating_sub(bytes) >= self.limits.pause_bytes())
    }

    /// Allocates the reserve. Returns whether writers may continue: without a reserve if another reason than a full disk prevents it.
    fn make_reserve(&self, state: &mut State) -> bool {
        let Err(error) = self.allocate_reserve() else {
            state.has_reserve = true;
            return true;
        };
        let file = self.reserve();
        let _ = fs::remove_file(&file);
        if state.reserve_failed_at.replace(Instant::now()).is_none() {
            tracing::warn!(%error, file = %file.display(), "the reserve for a full disk cannot be allocated, will retry");
        }
        !is_full(&error)
    }

    fn reserve(&self) -> PathBuf {
        self.dir.join(RESERVE)
    }

    fn allocate_reserve(&self) -> io::Result<()> {
        let file = File::options().create(true).truncate(false).write(true).open(self.reserve())?;
        if file.metadata()?.len() > self.limits.reserve_bytes {
            file.set_len(self.limits.reserve_bytes)?;
        }
        if self.limits.reserve_bytes > 0 {
            fallocate(&file, FallocateFlags::empty(), 0, self.limits.reserve_bytes)?;
        }
        Ok(())
    }

    fn delete_reserve(&self, state: &mut State) {
        (state.has_reserve, state.reserve_failed_at) = (false, None);
        match fs::remove_file(self.reserve()) {
            Err(error) if error.kind() != io::ErrorKind::NotFound => {
                tracing::warn!(%error, file = %self.reserve().display(), "the reserve for a full disk cannot be deleted");
            }
            _ => {}
        }
    }
}

/// Whether a full disk is the cause of an error.
fn is_full(error: &io::Error) -> bool {
    matches!(error.kind(), io::ErrorKind::StorageFull | io::ErrorKind::QuotaExceeded)
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;
    use std::sync::atomic::{AtomicU64, Ordering};

    use super::*;

    const LIMITS: Limits = Limits { reserve_bytes: 4_096, low_bytes: 10_000 };

    fn watch(dir: &Path, free_bytes: u64) -> (SpaceWatch, Arc<AtomicU64>) {
        let free = Arc::new(AtomicU64::new(free_bytes));
        let measured = Arc::clone(&free);
        (SpaceWatch::measured(dir, LIMITS, move |_| Ok(measured.load(Ordering::Relaxed))), free)
    }

    /// Proves that the reserve exists until the disk is full, that writers pause then, and that they continue with a new reserve only when there is space
    /// for it and some more.
    #[test]
    fn writers_pause_and_continue() {
        let dir = tempfile::tempdir().unwrap();
        let reserve = dir.path().join(RESERVE);
        let (space, free) = watch(dir.path(), 20_000);
        space.check().unwrap();
        assert_eq!(
            (space.last(), fs::metadata(&reserve).unwrap().len()),
            (Space { free_bytes: 20_000, is_low: false, is_full: false }, 4_096)
        );
        free.store(9_999, Ordering::Relaxed);
        space.check().unwrap();
        assert!(space.last().is_low && !space.last().is_full);
        free.store(1_023, Ordering::Relaxed);
        let message = space.check().unwrap_err().to_string();
        assert!(message.contains("is full") && message.contains(&dir.path().display().to_string()), "{message}");
        assert!(!reserve.exists() && space.last().is_full);
        // The freed reserve alone does not let writers continue.
        free.store(1_023 + 4_096, Ordering::Relaxed);
        space.check().unwrap_err();
        free.store(4_096 + 2 * 1_024, Ordering::Relaxed);
        space.check().unwrap();
        assert!(reserve.exists() && !space.last().is_full);
    }

    /// Proves which failures of the library are attributed to a full disk: those that say so, and those without a reason shortly after the disk was full.
    #[test]
    fn failures_of_a_full_disk() {
        let dir = tempfile::tempdir().unwrap();
        let (space, free) = watch(dir.path(), 20_000);
        let full = || fjall::Error::Io(io::Error::from(io::ErrorKind::StorageFull));
        let other = || fjall::Error::Io(io::Error::from(io::ErrorKind::PermissionDenied));
        assert!(space.explains(&full()) && !space.explains(&other()) && !space.explains(&fjall::Error::Poisoned));
        free.store(0, Ordering::Relaxed);
        assert!(space.explains(&fjall::Error::Poisoned) && !space.explains(&other()));
        free.store(20_000, Ordering::Relaxed);
        assert!(space.explains(&fjall::Error::Poisoned), "the disk was full a moment ago");
        space.pause();
        assert!(space.last().is_full);
        space.check().unwrap();
    }

    /// Proves that a disk that is full at the start has no reserve, and that a start with space allocates one.
    #[test]
    fn starts_on_a_full_disk() {
        let dir = tempfile::tempdir().unwrap();
        drop(watch(dir.path(), 20_000));
        assert!(dir.path().join(RESERVE).exists());
        let (space, _) = watch(dir.path(), 0);
        assert!(space.last().is_full && !dir.path().join(RESERVE).exists());
        assert!(!space.has_room_for(1));
        // Enough for writers, not for the reserve: it is made as soon as there is space.
        let (space, free) = watch(dir.path(), 4_096);
        assert!(!space.last().is_full && !dir.path().join(RESERVE).exists());
        free.store(20_000, Ordering::Relaxed);
        space.check().unwrap();
        assert!(dir.path().join(RESERVE).exists());
    }

    /// Proves that writers continue without a reserve where none can be allocated: here a directory has its name.
    #[test]
    fn a_reserve_that_cannot_be_allocated() {
        let dir = tempfile::tempdir().unwrap();
        fs::create_dir(dir.path().join(RESERVE)).unwrap();
        let (space, free) = watch(dir.path(), 20_000);
        free.store(0, Ordering::Relaxed);
        space.check().unwrap_err();
        free.store(20_000, Ordering::Relaxed);
        space.check().unwrap();
        assert!(!space.last().is_full);
    }

    /// Proves that the free space of a real directory is measured.
    #[test]
    fn real_disks_are_measured() {
        let dir = tempfile::tempdir().unwrap();
        let space = SpaceWatch::open(dir.path(), Limits { reserve_bytes: 0, low_bytes: 0 });
        space.check().unwrap();
        assert!(space.last().free_bytes > 0);
    }
}
