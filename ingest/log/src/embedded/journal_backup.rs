//! A backup of the journal while the log is opened after a crash.
//!
//! The store cuts its journal at the first entry that it cannot read, before it is known whether acknowledged records follow. So the
//! journal is copied first. The copy is deleted when no record turns out to be missing. After a clean close nothing depends on the journal
//! and no copy is made.

use std::fs;
use std::io;
use std::path::{Path, PathBuf};

use disk_files::keyspaces::entries;
use disk_files::space::SpaceWatch;

/// The directory of the backup.
pub(super) const BACKUP_DIR: &str = "journal.kept";
/// The directory to which the backup is moved when the operator has accepted the loss of records.
const ACCEPTED_LOSS_DIR: &str = "journal.lost";

/// The backup, if one was needed or remains from a failed opening.
pub(super) struct JournalBackup {
    dir: PathBuf,
}

impl JournalBackup {
    /// Copies the journal of `store` into `dir`, unless it is not needed or a failed opening has already made a copy. If the copy fails
    /// (for example because the disk is full), the log still opens.
    pub(super) fn new(dir: &Path, store: &Path, is_flushed: bool, space: Option<&SpaceWatch>) -> Self {
        if !is_flushed
            && !dir.join(BACKUP_DIR).exists()
            && let Err(error) = copy_journals(store, dir, space)
        {
            tracing::warn!(error = &error as &dyn std::error::Error, "the log's journal cannot be copied before it is replayed");
        }
        Self { dir: dir.to_owned() }
    }

    /// Removes the backup if the log was found complete. Moves it to `journal.lost` if there was no `ends` file to compare with.
    pub(super) fn settle(self, is_compared: bool) {
        let backup = self.dir.join(BACKUP_DIR);
        if !backup.exists() {
            return;
        }
        let lost = self.dir.join(ACCEPTED_LOSS_DIR);
        let settled = if is_compared || lost.exists() { fs::remove_dir_all(backup) } else { fs::rename(backup, lost) };
        if let Err(error) = settled {
            tracing::warn!(error = &error as &dyn std::error::Error, "the copy of the log's journal cannot be removed");
        }
    }
}

/// Copies to a temporary directory first, so that an incomplete copy is never mistaken for a backup. Makes no copy if there is no journal
/// yet.
fn copy_journals(store: &Path, dir: &Path, space: Option<&SpaceWatch>) -> io::Result<()> {
    let temporary = dir.join("journal.new");
    match fs::remove_dir_all(&temporary) {
        Err(error) if error.kind() != io::ErrorKind::NotFound => return Err(error),
        _ => {}
    }
    let mut journals = entries(store)?;
    journals.retain(|path| path.extension().is_some_and(|extension| extension == "jnl"));
    if journals.is_empty() {
        return Ok(());
    }
    let byte_count = journals.iter().map(|path| Ok(fs::metadata(path)?.len())).sum::<io::Result<u64>>()?;
    if space.is_some_and(|space| !space.has_room_for(byte_count)) {
        return Err(io::Error::from(io::ErrorKind::StorageFull));
    }
    fs::create_dir(&temporary)?;
    for path in journals {
        if let Some(name) = path.file_name()
            && let Err(error) = fs::copy(&path, temporary.join(name))
        {
            // An incomplete copy is of no use, and may have taken the last space.
            fs::remove_dir_all(&temporary)?;
            return Err(error);
        }
    }
    fs::rename(temporary, dir.join(BACKUP_DIR))
}
