//! `highwater restore`: writes a data directory from a backup.
//!
//! While a restore is unfinished, the data directory has the file `restoring` with the id of the backup. No other command uses the directory then, and the
//! same restore can be repeated: it continues.

use std::error::Error as StdError;
use std::fs;
use std::io::ErrorKind;
use std::path::{Path, PathBuf};

use disk_files::durable_file;
use disk_files::keyspaces::entries;
use event_log::EventLog;
use event_log::backup::{Backup, FileEntry, LeftOut};
use event_log::embedded::{EmbeddedLog, Options};

use crate::config::{Config, LogBackend};
use crate::data_dir::{self, RESTORING};
use crate::output::Output;

/// Restores a backup into the configured data directory; with `check` only verifies the backup.
///
/// # Errors
/// The backup is damaged or incomplete, the data directory holds something else, or it cannot be written.
pub(crate) async fn restore(config: &Config, from: &Path, check: bool, output: &dyn Output) -> Result<(), Box<dyn StdError>> {
    let backup = Backup::open(from)?;
    output.note(&format!("backup of {}, {} records, written by version {}", backup.taken_at(), backup.records(), backup.version()));
    if check {
        backup.verify(|done, total| output.progress("check", done, total)).await?;
        output
            .line(format!("backup {}\trecords {}\tfiles {}\tundamaged", from.display(), backup.records(), backup.files().len()).as_bytes());
        return Ok(());
    }
    if config.sections.log != LogBackend::Embedded {
        return Err(
            "a backup is restored into an embedded log: set log = \"embedded\", restore, then move it with `highwater export all --format records`".into(),
        );
    }
    let dir = &config.sections.data_dir;
    begin(dir, &backup)?;
    let _lock = data_dir::lock_for_restore(dir)?;
    for entry in backup.files() {
        let content = backup.read_file(entry)?;
        write_file(&target(config, entry), &content)?;
    }
    let log = EmbeddedLog::open(&dir.join("log"), Options::default())?;
    backup.restore_log(&*log, |done, total| output.progress("restore", done, total)).await?;
    log.close().await?;
    let mark = dir.join(RESTORING);
    fs::remove_file(&mark)?;
    durable_file::sync_directory_of(&mark)?;
    for LeftOut { what, reason } in backup.left_out() {
        output.note(&format!("not in the backup: {what}: {reason}"));
    }
    output.note(
        "receipts and checkpoints are signed only if nothing was signed after this backup; if the server refuses, look for a newer copy, then \
         declare the restore with `highwater receipt-keys restore`",
    );
    output.line(format!("restored {}\trecords {}\tfiles {}", dir.display(), backup.records(), backup.files().len()).as_bytes());
    Ok(())
}

/// Marks an empty directory as one that is being restored; accepts one that an interrupted restore of the same backup marked.
fn begin(dir: &Path, backup: &Backup) -> Result<(), Box<dyn StdError>> {
    let (mark, id) = (dir.join(RESTORING), backup.id()?);
    match fs::read_to_string(&mark) {
        Ok(found) if found.trim() == id => return Ok(()),
        Ok(_) => {
            let reason = format!(
                "{} holds an unfinished restore of another backup, or of an earlier state of this one: remove the directory, or name another one with --data-dir",
                dir.display()
            );
            return Err(reason.into());
        }
        Err(error) if error.kind() == ErrorKind::NotFound => {}
        Err(error) => return Err(error.into()),
    }
    // An interrupted start leaves the mark under its temporary name.
    if entries(dir)?.iter().any(|path| path.file_name().is_none_or(|name| name != "restoring.new")) {
        let reason = format!(
            "{} is not empty: a restore writes a new data directory. Move the old one aside, do not delete it, or name another directory with --data-dir",
            dir.display()
        );
        return Err(reason.into());
    }
    crate::hardening::private_directory(dir)?;
    durable_file::replace(&mark, format!("{id}\n").as_bytes(), 0o600)?;
    Ok(())
}

/// Where a file of the backup belongs: keys may be configured to be outside the data directory.
fn target(config: &Config, entry: &FileEntry) -> PathBuf {
    match entry.name.as_str() {
        "master.key" => data_dir::master_key(config),
        "witness.key" => data_dir::witness_key(config),
        name => match name.strip_prefix("receipt-keys/") {
            Some(file) => data_dir::receipt_keys_dir(config).join(file),
            None => config.sections.data_dir.join(name),
        },
    }
}

/// Writes a file, unless it is there. A file with another content is not replaced.
fn write_file(path: &Path, content: &[u8]) -> Result<(), Box<dyn StdError>> {
    match fs::read(path) {
        Ok(found) if found == content => return Ok(()),
        Ok(_) => {
            return Err(
                format!("{} exists with another content than in the backup: move it aside and restore again", path.display()).into()
            );
        }
        Err(error) if error.kind() == ErrorKind::NotFound => {}
        Err(error) => return Err(format!("{} cannot be read: {error}", path.display()).into()),
    }
    if let Some(parent) = path.parent() {
        fs::create_dir_all(parent)?;
    }
    durable_file::replace(path, content, 0o600)?;
    Ok(())
}
