//! Files that are written once, and read from disk by everybody who asks for them: tables of typed rows, as CSV, NDJSON or Parquet. And files for one reader,
//! which are made while they are sent, at the pace of the reader.
//!
//! Promises: a file is written at the pace of the disk, whatever its readers do. An account writes one file at a time and reads a limited number, so it
//! keeps no other account waiting for long. Memory use does not depend on the length of a file, and the space on disk has a limit. A file that could not be
//! written completely is not served.

use std::collections::HashMap;
use std::fs::File;
use std::future::Future;
use std::io;
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use bytes::Bytes;
use futures_util::FutureExt as _;
use futures_util::future::{BoxFuture, Shared};
use operation::context::{Context, Part};
use operation::problem::Problem;
use operation::{FileBody, StreamBody};
use proofs::hash::Hash32;
use schemas::error_code::ErrorCode;
use serde_json::Value;
use table_file::{Column, Format};
use tokio::io::AsyncWriteExt as _;
use tokio::sync::Semaphore;

/// Bytes are written to the disk in pieces of this size.
const PIECE_BYTES: usize = 64 << 10;
/// How many files a process writes at the same time. Each holds the rows of one Parquet row group in memory.
const WRITTEN_AT_ONCE_MAX: usize = 2;
/// How many files of one account are written or wait for that.
const WRITTEN_PER_ACCOUNT_MAX: usize = 4;
/// How many files one account reads at the same time.
const READ_PER_ACCOUNT_MAX: usize = 16;
/// When a caller may ask again for a file that is being written, in seconds.
const WRITE_RETRY_S: u64 = 10;
/// When an account that reads as many files as it may can try again, in seconds.
const READ_RETRY_S: u64 = 30;
/// The most bytes of files on disk. The least recently used ones are deleted.
const BYTES_ON_DISK_MAX: u64 = 4 << 30;
/// The most files on disk.
const FILES_ON_DISK_MAX: usize = 500;

/// The rows of a file, read part by part.
pub trait FileRows: Send + 'static {
    /// The next rows, each with the values of the columns in their order; none at the end.
    ///
    /// # Errors
    /// When they cannot be read.
    fn next(&mut self) -> impl Future<Output = io::Result<Vec<Vec<Value>>>> + Send;
}

/// The pieces of a file that is made while it is sent.
pub trait FilePieces: Send + 'static {
    /// The next piece; empty at the end.
    ///
    /// # Errors
    /// When it cannot be made.
    fn next(&mut self) -> impl Future<Output = Result<Vec<u8>, Problem>> + Send;
}

/// A file that a caller asks for.
pub struct Wanted<'a> {
    /// The account of the caller.
    pub account: &'a str,
    /// The ETag of the file: two files with the same one are the same.
    pub etag: &'a str,
    /// The name under which clients save it.
    pub name: String,
    /// The format.
    pub format: Format,
}

/// The path of a complete file, or of one that is being written; `None` if that failed.
type Written = Shared<BoxFuture<'static, Option<PathBuf>>>;

/// The files of this process.
pub struct FileStore {
    state: Mutex<State>,
    writing: Arc<Semaphore>,
}

impl Default for FileStore {
    fn default() -> Self {
        Self { state: Mutex::default(), writing: Arc::new(Semaphore::new(WRITTEN_AT_ONCE_MAX)) }
    }
}

impl Part for FileStore {}

#[derive(Default)]
struct State {
    /// Whether files of earlier processes are deleted.
    is_clean: bool,
    uses: u64,
    /// By the hash of their ETags.
    files: HashMap<String, StoredFile>,
    accounts: HashMap<String, Account>,
}

struct StoredFile {
    written: Written,
    /// The number of the use that began it.
    begun: u64,
    /// The number of its last use.
    used: u64,
    /// The length in bytes, once it is written.
    length: Option<u64>,
}

/// What one account does now.
struct Account {
    /// One permit: to write a file.
    turn: Arc<Semaphore>,
    writes: usize,
    reads: usize,
}

impl Default for Account {
    fn default() -> Self {
        Self { turn: Arc::new(Semaphore::new(1)), writes: 0, reads: 0 }
    }
}

/// A read or a write that counts for its account; it ends when dropped.
struct Counted {
    files: Arc<FileStore>,
    account: String,
    is_write: bool,
}

impl Drop for Counted {
    fn drop(&mut self) {
        let mut state = self.files.state();
        let Some(account) = state.accounts.get_mut(&self.account) else { return };
        let count = if self.is_write { &mut account.writes } else { &mut account.reads };
        *count = count.saturating_sub(1);
        if account.writes + account.reads == 0 {
            state.accounts.remove(&self.account);
        }
    }
}

/// The problem of a file that is not on disk.
fn failed() -> Problem {
    Problem::new(ErrorCode::Unavailable, "the file could not be written; try again").retry_after(WRITE_RETRY_S)
}

/// The file that a caller wants. If nobody has asked for it yet, it is written first, with the rows that `rows` begins.
///
/// # Errors
/// `rate-limited` if the account reads or writes too many files; `unavailable` if the file is not written in time, or cannot be written.
pub async fn file<R: FileRows>(
    ctx: &Context,
    wanted: Wanted<'_>,
    columns: Vec<Column>,
    rows: impl FnOnce() -> R,
) -> Result<FileBody, Problem> {
    let files = FileStore::of(ctx);
    let Some(dir) = ctx.settings.cache_dir.as_ref().map(|dir| dir.join("files")) else { return Err(failed()) };
    let read = files.count(wanted.account, false)?;
    let key = Hash32::of(wanted.etag.as_bytes()).to_string();
    let known = files.known(&key);
    let (written, begun) = match known {
        Some(known) => known,
        None => files.begin(&dir, &key, &wanted, columns, rows)?,
    };
    let late = |_| Problem::new(ErrorCode::Unavailable, "the file is being written; ask for it again").retry_after(WRITE_RETRY_S);
    // It is written to its end in any case.
    let complete = tokio::time::timeout(ctx.settings.call_times.file_write(), written).await.map_err(late)?;
    let opened = complete.ok_or_else(|| io::Error::other("it was not written")).and_then(File::open).map(Arc::new);
    if opened.is_err() {
        files.forget(&key, begun);
    }
    opened.and_then(|file| FileBody::new(wanted.format.media_type(), wanted.name, file, read)).map_err(|error| {
        tracing::warn!(%error, "a file cannot be opened");
        failed()
    })
}

/// A file that is made while it is sent. The first piece is made before the answer begins, so that a problem which prevents it is the answer.
///
/// # Errors
/// `rate-limited` if the account reads too many files; the problem of the first piece.
pub async fn streamed<P: FilePieces>(
    ctx: &Context,
    account: &str,
    (format, name): (Format, String),
    mut pieces: P,
) -> Result<StreamBody, Problem> {
    let counted = FileStore::of(ctx).count(account, false)?;
    let mut piece = pieces.next().await?;
    let (body, sender) = StreamBody::new(format.media_type(), name);
    tokio::spawn(async move {
        let _counted = counted;
        while !piece.is_empty() {
            if !sender.send(Bytes::from(piece)).await {
                return;
            }
            piece = match pieces.next().await {
                Ok(piece) => piece,
                Err(problem) => {
                    tracing::error!(code = problem.code.as_str(), detail = problem.detail, "a file could not be made to its end");
                    return sender.end(Err(io::Error::other(problem.detail))).await;
                }
            };
        }
        sender.end(Ok(())).await;
    });
    Ok(body)
}

impl FileStore {
    fn state(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Counts a read or a write of an account.
    fn count(self: &Arc<Self>, account: &str, is_write: bool) -> Result<Counted, Problem> {
        let mut state = self.state();
        let own = state.accounts.entry(account.to_owned()).or_default();
        let (count, max, what) = if is_write {
            (&mut own.writes, WRITTEN_PER_ACCOUNT_MAX, "wait to be written")
        } else {
            (&mut own.reads, READ_PER_ACCOUNT_MAX, "are being read")
        };
        if *count >= max {
            let detail = format!("{max} files of this account {what}, the most allowed; try again when one is done");
            return Err(Problem::new(ErrorCode::RateLimited, detail).retry_after(READ_RETRY_S));
        }
        *count += 1;
        Ok(Counted { files: Arc::clone(self), account: account.to_owned(), is_write })
    }

    /// Forgets a file, unless it is a later one than that which was begun with this number.
    fn forget(&self, key: &str, begun: u64) {
        let mut state = self.state();
        if state.files.get(key).is_some_and(|entry| entry.begun == begun) {
            state.files.remove(key);
        }
    }

    /// A file that is on disk or being written, with the number of the use that began it.
    fn known(&self, key: &str) -> Option<(Written, u64)> {
        let mut state = self.state();
        state.uses += 1;
        let used = state.uses;
        let entry = state.files.get_mut(key)?;
        entry.used = used;
        Some((entry.written.clone(), entry.begun))
    }

    /// Begins to write a file. Returns it with the number of this use.
    fn begin<R: FileRows>(
        self: &Arc<Self>,
        dir: &Path,
        key: &str,
        wanted: &Wanted<'_>,
        columns: Vec<Column>,
        rows: impl FnOnce() -> R,
    ) -> Result<(Written, u64), Problem> {
        let counted = self.count(wanted.account, true)?;
        let mut state = self.state();
        // Somebody else may have begun in the meantime.
        if let Some(entry) = state.files.get(key) {
            let known = (entry.written.clone(), entry.begun);
            drop(state);
            drop(counted);
            return Ok(known);
        }
        if !state.is_clean {
            clean(dir).map_err(|error| {
                tracing::error!(%error, "the directory of files cannot be made");
                failed()
            })?;
            state.is_clean = true;
        }
        let turn = state.accounts.entry(wanted.account.to_owned()).or_default().turn.clone();
        let (files, key_of_task, dir, rows) = (Arc::clone(self), key.to_owned(), dir.to_owned(), rows());
        let format = wanted.format;
        state.uses += 1;
        let begun = state.uses;
        let writing = tokio::spawn(async move {
            let written = async {
                let _turn = turn.acquire().await.map_err(io::Error::other)?;
                let _permit = files.writing.acquire().await.map_err(io::Error::other)?;
                write(&dir, &key_of_task, format, columns, rows).await
            };
            let written: io::Result<(PathBuf, u64)> = written.await;
            drop(counted);
            if written.is_err() {
                drop(std::fs::remove_file(part_of(&dir, &key_of_task)));
            }
            match written {
                Ok((path, length)) => {
                    files.finished(&dir, &key_of_task, length);
                    Some(path)
                }
                Err(error) => {
                    tracing::error!(%error, "a file could not be written");
                    files.forget(&key_of_task, begun);
                    None
                }
            }
        });
        let written = writing.map(|path| path.ok().flatten()).boxed().shared();
        state.files.insert(key.to_owned(), StoredFile { written: written.clone(), begun, used: begun, length: None });
        Ok((written, begun))
    }

    /// Records that a file is written, and deletes the least recently used ones beyond the limits. Whoever reads one of them has it open.
    fn finished(&self, dir: &Path, key: &str, length: u64) {
        let mut state = self.state();
        if let Some(entry) = state.files.get_mut(key) {
            entry.length = Some(length);
        }
        loop {
            let on_disk = || state.files.iter().filter_map(|(key, entry)| entry.length.map(|length| (entry.used, length, key)));
            let bytes: u64 = on_disk().map(|(_, length, _)| length).sum();
            if bytes <= BYTES_ON_DISK_MAX && on_disk().count() <= FILES_ON_DISK_MAX {
                return;
            }
            let Some(oldest) = on_disk().filter(|(.., own)| *own != key).min().map(|(.., key)| key.clone()) else { return };
            state.files.remove(&oldest);
            if let Err(error) = std::fs::remove_file(dir.join(&oldest)) {
                tracing::warn!(%error, "a file that is no longer used cannot be deleted");
            }
        }
    }
}

/// Deletes the files of earlier processes: their positions and renditions may not be those of this one.
fn clean(dir: &Path) -> io::Result<()> {
    match std::fs::remove_dir_all(dir) {
        Err(error) if error.kind() != io::ErrorKind::NotFound => return Err(error),
        Ok(()) | Err(_) => {}
    }
    std::fs::create_dir_all(dir)
}

/// Where a file is until it is complete.
fn part_of(dir: &Path, key: &str) -> PathBuf {
    dir.join(format!("{key}.part"))
}

/// Writes a file. It has its name once it is complete.
async fn write(dir: &Path, key: &str, format: Format, columns: Vec<Column>, mut rows: impl FileRows) -> io::Result<(PathBuf, u64)> {
    let (part, path) = (part_of(dir, key), dir.join(key));
    let mut out = tokio::fs::OpenOptions::new().write(true).create(true).truncate(true).mode(0o600).open(&part).await?;
    let written = Mutex::new(Vec::with_capacity(2 * PIECE_BYTES));
    let take = || std::mem::take(&mut *written.lock().unwrap_or_else(PoisonError::into_inner));
    let mut sink = |bytes: &[u8]| {
        written.lock().unwrap_or_else(PoisonError::into_inner).extend_from_slice(bytes);
        true
    };
    let mut length = 0;
    let mut writer = table_file::writer(format, columns, &mut sink).map_err(io::Error::other)?;
    loop {
        let batch = rows.next().await?;
        if batch.is_empty() {
            break;
        }
        for row in batch {
            writer.row(row).map_err(io::Error::other)?;
        }
        let is_full = written.lock().unwrap_or_else(PoisonError::into_inner).len() >= PIECE_BYTES;
        if is_full {
            let piece = take();
            length += piece.len() as u64;
            out.write_all(&piece).await?;
        }
    }
    writer.finish().map_err(io::Error::other)?;
    drop(writer);
    let piece = take();
    length += piece.len() as u64;
    out.write_all(&piece).await?;
    out.flush().await?;
    tokio::fs::rename(&part, &path).await?;
    Ok((path, length))
}

#[cfg(test)]
#[path = "files_tests.rs"]
mod tests;
