//! Requests whose answers are stored on disk, because they are too large for memory.
//!
//! An answer may be a redirect to a signed address at another host. The headers of the request, among them the key, are not sent there. Once the body
//! of a file has begun, a failure is not retried: upstreams limit how often a file may be downloaded.

use std::path::Path;
use std::time::Duration;

use reqwest::header::{HeaderMap, LOCATION};
use reqwest::{Response, StatusCode};
use tokio::fs::File;
use tokio::io::AsyncWriteExt as _;
use url::Url;

use super::attempt::{Failure, connection, headers, retry_after};
use super::{Client, FetchError, Inner, count, library, shown};
use crate::upstream::{Download, Request, Stream};

/// The timeout until the body of a file begins.
const HEAD_TIMEOUT: Duration = Duration::from_secs(60);
/// How many characters of a file that is another one are shown.
const SHOWN_BYTES_MAX: usize = 20;

impl Client {
    /// Requests a file and stores it at `path`, which exists only when the file is complete. Returns its length in bytes.
    ///
    /// # Errors
    /// See [`FetchError`].
    pub async fn download(&self, stream: &Stream, request: &Request, download: &Download, path: &Path) -> Result<u64, FetchError> {
        let result = self.inner.download(stream, request, download, path).await;
        if let Err(error) = &result {
            count(&self.inner.stats.failures, 1);
            tracing::debug!(stream = stream.name, error = %error, "download failed");
        }
        result
    }
}

impl Inner {
    async fn download(&self, stream: &Stream, request: &Request, download: &Download, path: &Path) -> Result<u64, FetchError> {
        let url = self.url(request)?;
        let headers = headers(request, None, &url)?;
        let failed = |source| FetchError::Connection { at: shown(&url), attempts: 0, source };
        let redirects = reqwest::redirect::Policy::none();
        let library = library(&self.user_agent, self.base_url.as_ref(), &self.limits, redirects).map_err(failed)?;
        let attempt = || async {
            let asking = self.file(&library, &url, headers.clone());
            let response = tokio::time::timeout(HEAD_TIMEOUT, asking).await.unwrap_or(Err(Failure::TooSlow))?;
            let storing = self.store(response, download, path);
            tokio::time::timeout(stream.answer_timeout, storing).await.unwrap_or(Err(Failure::Interrupted(None)))
        };
        self.retried(stream, request, &url, attempt).await
    }

    /// Requests a file, and follows one redirect without the headers of the request.
    async fn file(&self, library: &reqwest::Client, url: &Url, headers: HeaderMap) -> Result<Response, Failure> {
        let response = library.get(url.clone()).headers(headers).send().await.map_err(connection)?;
        let status = response.status();
        if !status.is_redirection() {
            return whole(response);
        }
        let refused = Failure::Redirect { status: status.as_u16() };
        let location = response.headers().get(LOCATION).and_then(|value| value.to_str().ok());
        let Some(target) = location.and_then(|location| url.join(location).ok()) else { return Err(refused) };
        // The simulator has no TLS. Nothing else is requested without it.
        if target.scheme() != "https" && self.base_url.as_ref().is_none_or(|base| base.origin() != target.origin()) {
            return Err(refused);
        }
        let response = library.get(target).send().await.map_err(connection)?;
        match response.status() {
            StatusCode::FORBIDDEN => Err(Failure::Expired { status: response.status().as_u16() }),
            _ => whole(response),
        }
    }

    /// Stores the body of an answer.
    async fn store(&self, mut response: Response, download: &Download, path: &Path) -> Result<u64, Failure> {
        let too_large = || Failure::TooLarge { bytes_max: usize::try_from(download.bytes_max).unwrap_or(usize::MAX) };
        if response.content_length().is_some_and(|length| length > download.bytes_max) {
            return Err(too_large());
        }
        let unfinished = path.with_extension("part");
        let mut file = File::create(&unfinished).await.map_err(Failure::Disk)?;
        let (mut start, mut length) = (Vec::new(), 0);
        while let Some(piece) = response.chunk().await.map_err(|error| Failure::Interrupted(Some(error.without_url())))? {
            count(&self.stats.bytes, piece.len() as u64);
            if start.len() < download.magic.len() {
                start.extend(piece.iter().take(download.magic.len().max(SHOWN_BYTES_MAX) - start.len()));
                let compared = start.len().min(download.magic.len());
                if start.get(..compared) != download.magic.get(..compared) {
                    return Err(other_file(&start));
                }
            }
            length += piece.len() as u64;
            if length > download.bytes_max {
                return Err(too_large());
            }
            file.write_all(&piece).await.map_err(Failure::Disk)?;
        }
        if start.len() < download.magic.len() {
            return Err(other_file(&start));
        }
        file.sync_all().await.map_err(Failure::Disk)?;
        drop(file);
        tokio::fs::rename(&unfinished, path).await.map_err(Failure::Disk)?;
        Ok(length)
    }
}

fn other_file(start: &[u8]) -> Failure {
    let shown = start.get(..SHOWN_BYTES_MAX).unwrap_or(start);
    Failure::OtherFile { got: format!("a file that begins with {:?}", String::from_utf8_lossy(shown)) }
}

/// Returns an answer with status 200; any other fails.
fn whole(response: Response) -> Result<Response, Failure> {
    if response.status() == StatusCode::OK {
        return Ok(response);
    }
    let retry_after = retry_after(response.headers());
    Err(match response.status() {
        status if status.is_redirection() => Failure::Redirect { status: status.as_u16() },
        status => Failure::Status { status: status.as_u16(), retry_after },
    })
}
