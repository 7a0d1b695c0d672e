//! Requests a page and maps it. Where a host gives no answer, the upstream may supply a page instead.

use std::path::PathBuf;
use std::sync::Arc;
use std::time::Duration;

use jiff::civil::Date;
use schemas::clock::Clock;
use schemas::position::UpstreamCursor;
use tokio::sync::{Mutex, watch};
use upstreams::http::{Client, Fetched, Validators};
use upstreams::{Answer, Budget, Page, Request, Settings, Stream, Upstream, UpstreamError};

use super::StreamValidators;
use super::downloads::Downloads;
use crate::facts::Hashed;
use crate::{Error, reason};

/// A page that was fetched and mapped.
pub(super) enum FetchedPage {
    Page { page: Vec<Hashed>, rest: Box<Page>, validators: Option<(String, Validators)> },
    NotModified,
}

/// How many times a page is requested when its answers are refused.
const PAGE_ATTEMPTS_MAX: u32 = 3;
/// The pause before the second request of a page. It doubles with every further request.
const PAGE_RETRY_PAUSE: Duration = Duration::from_secs(1);

/// What the fetch of a page needs. It borrows nothing from the run, because the run appends the page before it meanwhile.
pub(super) struct PageFetch {
    pub(super) upstream: &'static dyn Upstream,
    pub(super) stream: &'static Stream,
    pub(super) client: Client,
    pub(super) settings: Settings,
    pub(super) clock: Clock,
    pub(super) last_validators: StreamValidators,
    pub(super) downloads: Arc<Mutex<Downloads>>,
    /// The budget of the page's part, if the run has spent it.
    pub(super) spent: Option<Budget>,
}

impl PageFetch {
    /// Fetches and maps the page at a cursor, unless the process is to stop.
    pub(super) async fn page_unless_stopped(self, cursor: UpstreamCursor, mut stop: watch::Receiver<bool>) -> Result<FetchedPage, Error> {
        // Pauses that an upstream asks for must not delay a stop. The next run continues with this page.
        tokio::select! {
            biased;
            _ = stop.wait_for(|stop| *stop) => Err(Error::Stopped { stream: self.stream.name }),
            result = self.page(&cursor) => result,
        }
    }

    async fn page(&self, cursor: &UpstreamCursor) -> Result<FetchedPage, Error> {
        let Self { upstream, stream, client, clock, last_validators, .. } = self;
        if let Some(page) = self.page_of_spent(cursor) {
            return Ok(page);
        }
        let request = upstream.request(stream, cursor, &self.settings).map_err(|source| Error::Upstream { stream: stream.name, source })?;
        if let Some(path) = request.local_file.clone() {
            return page_of_local_file(*upstream, stream, cursor.clone(), path).await;
        }
        if let Some(download) = &request.download {
            // A file that was refused is not requested again in this run, because each may be downloaded a few times a year only.
            let mut downloads = self.downloads.lock().await;
            let page = downloads.page(*upstream, stream, client, (&request, download), cursor, clock.now()).await;
            return match page {
                Ok(page) => {
                    let (page, rest) = tokio::task::spawn_blocking(move || hashed(page)).await?;
                    Ok(FetchedPage::Page { page, rest: Box::new(rest), validators: None })
                }
                Err(error) => page_of_failure(*upstream, stream, cursor, error, *clock),
            };
        }
        let mut pause = PAGE_RETRY_PAUSE;
        let mut tries = 0;
        loop {
            tries += 1;
            match fetch_and_map(*upstream, stream, client, &request, cursor, *clock, last_validators).await {
                Err(Error::Upstream { source: source @ UpstreamError::Later { .. }, .. }) if tries < PAGE_ATTEMPTS_MAX => {
                    tracing::warn!(stream = stream.name, error = %source, "answer refused, will retry");
                    tokio::time::sleep(pause).await;
                    pause *= 2;
                }
                Err(error) => return page_of_failure(*upstream, stream, cursor, error, *clock),
                result => return result,
            }
        }
    }

    /// Returns the page that stands for one whose part has spent its budget; `None` if it has not, or if the upstream makes no such page.
    fn page_of_spent(&self, cursor: &UpstreamCursor) -> Option<FetchedPage> {
        let Budget { part, facts_max } = self.spent.as_ref()?;
        let reason = format!("more than {facts_max} facts in one run");
        let page = self.upstream.failed(self.stream, cursor, &reason, self.clock.now())?;
        tracing::warn!(
            stream = self.stream.name,
            part,
            facts_max,
            "a part of the stream has too many new facts; the next runs read the rest"
        );
        Some(without_answer(page))
    }
}

/// Reads a page from a file on this machine. One that is refused is not read again in this run, because the operator must act.
async fn page_of_local_file(
    upstream: &'static dyn Upstream,
    stream: &'static Stream,
    cursor: UpstreamCursor,
    path: PathBuf,
) -> Result<FetchedPage, Error> {
    let read = tokio::task::spawn_blocking(move || upstream.read_local(stream, &cursor, &path).map(hashed)).await?;
    let (page, rest) = read.map_err(|source| Error::Upstream { stream: stream.name, source })?;
    Ok(FetchedPage::Page { page, rest: Box::new(rest), validators: None })
}

/// Returns the page that the upstream makes of a failed request, or else the error.
fn page_of_failure(
    upstream: &'static dyn Upstream,
    stream: &'static Stream,
    cursor: &UpstreamCursor,
    error: Error,
    clock: Clock,
) -> Result<FetchedPage, Error> {
    let page = match &error {
        Error::Fetch { source, .. } => source.reason_of_host().and_then(|reason| upstream.failed(stream, cursor, &reason, clock.now())),
        Error::File { reason, .. } => upstream.failed(stream, cursor, reason, clock.now()),
        _ => None,
    };
    let Some(page) = page else { return Err(error) };
    tracing::warn!(stream = stream.name, error = reason(&error), "a request failed; the stream continues without its answer");
    Ok(without_answer(page))
}

/// A page that an upstream made without an answer.
fn without_answer(page: Page) -> FetchedPage {
    let (page, rest) = hashed(page);
    FetchedPage::Page { page, rest: Box::new(rest), validators: None }
}

async fn fetch_and_map(
    upstream: &'static dyn Upstream,
    stream: &'static Stream,
    client: &Client,
    request: &Request,
    cursor: &UpstreamCursor,
    clock: Clock,
    last_validators: &StreamValidators,
) -> Result<FetchedPage, Error> {
    let validators = last_validators.get(&request.path).filter(|_| request.is_conditional());
    let fetched = client.fetch(stream, request, validators).await.map_err(|source| Error::Fetch { stream: stream.name, source })?;
    let Fetched::Answer { answer, validators } = fetched else { return Ok(FetchedPage::NotModified) };
    let (cursor, path, at) = (cursor.clone(), request.path.clone(), clock.now());
    // Parsing a large answer takes long and must not block other tasks.
    let mapped = tokio::task::spawn_blocking(move || upstream.map_at(stream, &cursor, &answer, at).map(hashed)).await?;
    let (page, rest) = mapped.map_err(|source| Error::Upstream { stream: stream.name, source })?;
    Ok(FetchedPage::Page { page, rest: Box::new(rest), validators: request.is_conditional().then_some((path, validators)) })
}

pub(super) fn map(
    upstream: &dyn Upstream,
    stream: &Stream,
    cursor: &UpstreamCursor,
    answer: &Answer,
    today: Date,
) -> Result<(Vec<Hashed>, Page), UpstreamError> {
    upstream.map(stream, cursor, answer, today).map(hashed)
}

/// Hashes the observations of a page. Those that are too large are rejected.
fn hashed(mut rest: Page) -> (Vec<Hashed>, Page) {
    let mut page = Vec::with_capacity(rest.observations.len());
    for observation in std::mem::take(&mut rest.observations) {
        match Hashed::new(observation) {
            Ok(hashed) => page.push(hashed),
            Err(reject) => rest.rejects.push(reject),
        }
    }
    (page, rest)
}
