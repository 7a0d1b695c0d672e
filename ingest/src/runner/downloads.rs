//! The file that a run reads: downloaded once, read page by page, and deleted when the run is over.
//!
//! A file remains on disk while its run is interrupted, so that the run that continues need not download it again. A directory holds one file per
//! upstream.

use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::{Duration, Instant};

use jiff::Timestamp;
use schemas::position::UpstreamCursor;
use tokio::task::spawn_blocking;
use upstreams::http::{Client, FetchError};
use upstreams::{Download, FilePages, Page, Request, Stream, Upstream, UpstreamError};
use view_store::ViewStore;

use crate::Error;

/// How often the progress of a file is logged.
const PROGRESS_LOG_INTERVAL: Duration = Duration::from_secs(30);
/// How long after the end of its year the count of a file's downloads is kept, in milliseconds.
const COUNT_KEPT_MS: i64 = 86_400_000;

/// Reads the files of one run.
pub(super) struct Downloads {
    store: Arc<dyn ViewStore>,
    stream: &'static str,
    /// The directory of this upstream's files; `None` if the runner has none.
    dir: Option<PathBuf>,
    open: Option<OpenFile>,
    begun: Instant,
    records: u64,
    files: u64,
    logged: Instant,
}

/// A file that is read.
struct OpenFile {
    name: String,
    length: u64,
    /// The cursor at which the next page begins.
    next: UpstreamCursor,
    pages: Box<dyn FilePages>,
}

impl Downloads {
    pub(super) fn new(store: Arc<dyn ViewStore>, stream: &'static Stream, dir: Option<PathBuf>) -> Self {
        let now = Instant::now();
        Self { store, stream: stream.name, dir, open: None, begun: now, records: 0, files: 0, logged: now }
    }

    /// Whether a file with this name is open.
    pub(super) fn is_reading(&self, name: &str) -> bool {
        self.open.as_ref().is_some_and(|file| file.name == name)
    }

    /// Reads the page at a cursor, from the file of its request.
    pub(super) async fn page(
        &mut self,
        upstream: &'static dyn Upstream,
        stream: &'static Stream,
        client: &Client,
        (request, download): (&Request, &Download),
        cursor: &UpstreamCursor,
        at: Timestamp,
    ) -> Result<Page, Error> {
        let mut file = match self.open.take().filter(|file| file.name == download.name && file.next == *cursor) {
            Some(file) => file,
            None => {
                let (path, length) = self.file(upstream, stream, client, (request, download), at).await?;
                let at_cursor = cursor.clone();
                let opened = spawn_blocking(move || {
                    let file = std::fs::File::open(&path).map_err(|source| FetchError::Disk { at: path.display().to_string(), source });
                    file.map(|file| upstream.open(stream, &at_cursor, file, at))
                });
                let opened = opened.await?.map_err(|source| Error::Fetch { stream: stream.name, source })?;
                self.files += 1;
                let pages = self.or_delete(download, opened).await?;
                OpenFile { name: download.name.clone(), length, next: cursor.clone(), pages }
            }
        };
        let (file_again, page) = spawn_blocking(move || {
            let page = file.pages.next_page();
            (file, page)
        })
        .await?;
        file = file_again;
        let page = self.or_delete(download, page).await?;
        self.records += (page.observations.len() + page.rejects.len()) as u64;
        self.log(stream, &file);
        if let Some(next) = &page.next {
            file.next.clone_from(next);
            self.open = Some(file);
        }
        Ok(page)
    }

    /// Returns the path of a complete file and its length. Downloads it unless it is on disk.
    async fn file(
        &self,
        upstream: &'static dyn Upstream,
        stream: &'static Stream,
        client: &Client,
        (request, download): (&Request, &Download),
        at: Timestamp,
    ) -> Result<(PathBuf, u64), Error> {
        let failed = |source| Error::Fetch { stream: stream.name, source };
        let dir = self.dir.as_deref().ok_or(Error::NoDownloadDirectory { stream: stream.name })?;
        let disk = |source| failed(FetchError::Disk { at: dir.display().to_string(), source });
        let path = dir.join(&download.name);
        tokio::fs::create_dir_all(dir).await.map_err(disk)?;
        remove_others(dir, &path).await.map_err(disk)?;
        if let Ok(known) = tokio::fs::metadata(&path).await {
            tracing::info!(stream = stream.name, file = download.name, "continuing with the downloaded file");
            return Ok((path, known.len()));
        }
        let year = i64::from(at.to_zoned(jiff::tz::TimeZone::UTC).year());
        let counter = format!("downloads/{}/{}/{year}", upstream.manifest().name, download.name);
        let end_ms = jiff::civil::date(i16::try_from(year + 1).unwrap_or(i16::MAX), 1, 1).to_zoned(jiff::tz::TimeZone::UTC);
        let end_ms = end_ms.map(|end| end.timestamp().as_millisecond()).unwrap_or(i64::MAX - COUNT_KEPT_MS) + COUNT_KEPT_MS;
        let max = i64::from(download.per_year_max);
        if self.store.coordination().add_to_counter(&counter, 1, max, at.as_millisecond(), end_ms).await? == 0 {
            let (name, per_year_max) = (download.name.clone(), download.per_year_max);
            return Err(failed(FetchError::DownloadLimit { name, per_year_max }));
        }
        tracing::debug!(stream = stream.name, file = download.name, "downloading a file");
        let length = client.download(stream, request, download, &path).await.map_err(failed)?;
        Ok((path, length))
    }

    /// Deletes a damaged file, which must be downloaded again.
    async fn or_delete<T>(&self, download: &Download, read: Result<T, UpstreamError>) -> Result<T, Error> {
        match read {
            Ok(read) => Ok(read),
            Err(UpstreamError::Later { stream, reason }) => {
                if let Some(dir) = &self.dir
                    && let Err(error) = tokio::fs::remove_file(dir.join(&download.name)).await
                {
                    tracing::warn!(stream, file = download.name, %error, "a damaged file could not be deleted");
                }
                Err(Error::File { stream, reason })
            }
            Err(source) => Err(Error::Upstream { stream: self.stream, source }),
        }
    }

    /// Deletes the files of a run that is over.
    pub(super) async fn delete(&mut self) {
        self.open = None;
        let Some(dir) = self.dir.as_deref().filter(|dir| dir.exists()) else { return };
        if let Err(error) = tokio::fs::remove_dir_all(dir).await {
            tracing::warn!(dir = %dir.display(), %error, "downloaded files could not be deleted");
        }
    }

    fn log(&mut self, stream: &Stream, file: &OpenFile) {
        if self.logged.elapsed() < PROGRESS_LOG_INTERVAL {
            return;
        }
        self.logged = Instant::now();
        let (bytes_read, files_left) = (file.pages.bytes_read(), file.pages.files_left());
        let progress = Progress::after(self.begun.elapsed(), self.records, self.files, (bytes_read, file.length), files_left);
        tracing::info!(
            stream = stream.name,
            file = file.name,
            percent_of_file = progress.percent_of_file,
            files_left,
            records = self.records,
            records_per_second = progress.records_per_second,
            minutes_left = progress.minutes_left,
            "reading a file"
        );
    }
}

/// How far a run has read its files, and how long the rest takes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct Progress {
    /// How much of the open file was read.
    percent_of_file: u64,
    /// The mean rate since the run began.
    records_per_second: u64,
    /// The time that the rest of the run takes if each file takes as long as those so far, rounded up.
    minutes_left: u64,
}

impl Progress {
    /// The progress after a time in which a run read records and opened files, of the last of which it read some of its bytes.
    fn after(elapsed: Duration, records: u64, files: u64, (bytes_read, length): (u64, u64), files_left: u64) -> Self {
        let (elapsed_s, share) = (elapsed.as_secs_f64(), bytes_read as f64 / length.max(1) as f64);
        let (done, left) = (files.saturating_sub(1) as f64 + share, 1.0 - share + files_left as f64);
        Self {
            percent_of_file: (share * 100.0) as u64,
            records_per_second: (records as f64 / elapsed_s) as u64,
            minutes_left: (elapsed_s / done.max(0.01) * left / 60.0).ceil() as u64,
        }
    }
}

/// Deletes every file of a directory but one.
async fn remove_others(dir: &Path, path: &Path) -> std::io::Result<()> {
    let mut entries = tokio::fs::read_dir(dir).await?;
    while let Some(entry) = entries.next_entry().await? {
        if entry.path() != path {
            tokio::fs::remove_file(entry.path()).await?;
        }
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Proves the rate and the estimate of a first load of 91 files: in the middle of the first and of the second file, at the end of the last one, and before
    /// anything was read.
    #[test]
    fn progress_of_a_first_load() {
        for (minutes, records, files, bytes, files_left, expected) in [
            (5, 77_500, 1, (50, 100), 90, (50, 258, 905)),
            (10, 232_500, 2, (100, 200), 89, (50, 387, 597)),
            (600, 14_100_000, 91, (300, 300), 0, (100, 391, 0)),
            (1, 0, 1, (0, 300), 90, (0, 0, 9_100)),
        ] {
            let found = Progress::after(Duration::from_secs(minutes * 60), records, files, bytes, files_left);
            let (percent_of_file, records_per_second, minutes_left) = expected;
            assert_eq!(found, Progress { percent_of_file, records_per_second, minutes_left }, "{files} files, {files_left} left");
        }
    }
}
