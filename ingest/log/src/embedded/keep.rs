//! A copy of the journal while the log is opened after a crash.
//!
//! The store cuts its journal where it cannot read on, before anybody can tell whether acknowledged records stood behind. So the journal is
//! copied first, and the copy goes when nothing turns out to be missing. After a close that flushed, nothing depends on the journal and
//! there is no copy.

use std::fs;
use std::io;
use std::path::{Path, PathBuf};

/// The directory of the copy.
pub(super) const KEPT: &str = "journal.kept";
/// Where the copy goes when a person has chosen to go on without what is missing.
const LOST: &str = "journal.lost";

/// The copy, if one was needed or is left from an opening that failed.
pub(super) struct KeptJournal {
    dir: PathBuf,
}

impl KeptJournal {
    /// Copies the journal of `store` into `dir`, unless it is of no use or an opening that failed has left its copy. A copy that fails (a
    /// full disk) does not keep the log from opening.
    pub(super) fn new(dir: &Path, store: &Path, is_flushed: bool) -> Self {
        if !is_flushed
            && !dir.join(KEPT).exists()
            && let Err(error) = copy_journals(store, dir)
        {
            tracing::warn!(error = &error as &dyn std::error::Error, "the log's journal cannot be copied before it is replayed");
        }
        Self { dir: dir.to_owned() }
    }

    /// Removes the copy if the log was found whole; sets it aside if there was nothing to compare with.
    pub(super) fn settle(self, is_compared: bool) {
        let kept = self.dir.join(KEPT);
        if !kept.exists() {
            return;
        }
        let lost = self.dir.join(LOST);
        let settled = if is_compared || lost.exists() { fs::remove_dir_all(kept) } else { fs::rename(kept, lost) };
        if let Err(error) = settled {
            tracing::warn!(error = &error as &dyn std::error::Error, "the copy of the log's journal cannot be removed");
        }
    }
}

/// Makes the copy beside its place first, so that half a copy is never taken for one. Makes none if there is no journal yet.
fn copy_journals(store: &Path, dir: &Path) -> io::Result<()> {
    let fresh = dir.join("journal.new");
    match fs::remove_dir_all(&fresh) {
        Err(error) if error.kind() != io::ErrorKind::NotFound => return Err(error),
        _ => {}
    }
    let mut has_some = false;
    for entry in fs::read_dir(store)? {
        let path = entry?.path();
        if let (Some(name), true) = (path.file_name(), path.extension().is_some_and(|extension| extension == "jnl")) {
            if !has_some {
                fs::create_dir(&fresh)?;
                has_some = true;
            }
            fs::copy(&path, fresh.join(name))?;
        }
    }
    if has_some { fs::rename(fresh, dir.join(KEPT)) } else { Ok(()) }
}
