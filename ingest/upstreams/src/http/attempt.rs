//! One HTTP request with its retries: builds the request, classifies the answer, and determines the pause before the next attempt.

use std::time::{Duration, SystemTime};

use bytes::{Bytes, BytesMut};
use reqwest::header::{
    ACCEPT, CONTENT_TYPE, DATE, ETAG, HeaderMap, HeaderName, HeaderValue, IF_MODIFIED_SINCE, IF_NONE_MATCH, LAST_MODIFIED, LINK,
    RETRY_AFTER,
};
use reqwest::{Response, StatusCode};
use schemas::clock::Clock;
use texts::numbers::has_only_digits;
use url::Url;

use super::{FetchError, Fetched, Inner, Limits, Validators, count, shown};
use crate::upstream::{Answer, BackOffRule, Request, Stream};

/// How many bytes of a page are searched for the markers of a block page.
const PAGE_BYTES_MAX: usize = 64 << 10;

/// The longest pause accepted from `Retry-After`; a longer one is shortened to this.
pub(super) const RETRY_AFTER_MAX: Duration = Duration::from_secs(24 * 3600);

/// Why one attempt failed.
pub(super) enum Failure {
    Status {
        status: u16,
        retry_after: Option<Duration>,
    },
    /// The upstream requested to back off in its own way, for example with a block page.
    BackOff {
        status: u16,
        pause: Duration,
    },
    Redirect {
        status: u16,
    },
    UnexpectedContent {
        got: String,
    },
    TooLarge {
        bytes_max: usize,
    },
    TooSlow,
    Connection(reqwest::Error),
    /// The signed address of a file expired before it was requested.
    Expired {
        status: u16,
    },
    /// The body of a file is not what it should be, from its first bytes on.
    OtherFile {
        got: String,
    },
    /// The body of a file broke off, or was too slow (`None`). Another attempt would count as another download.
    Interrupted(Option<reqwest::Error>),
    /// A file could not be stored.
    Disk(std::io::Error),
}

impl Failure {
    /// Whether a retry may succeed.
    fn is_passing(&self) -> bool {
        match self {
            Self::Status { status, .. } => matches!(status, 408 | 429 | 500..=599),
            Self::UnexpectedContent { .. } | Self::TooSlow | Self::Connection(_) | Self::Expired { .. } => true,
            Self::BackOff { .. } | Self::Redirect { .. } | Self::TooLarge { .. } => false,
            Self::OtherFile { .. } | Self::Interrupted(_) | Self::Disk(_) => false,
        }
    }

    fn into_error(self, at: String, attempts: u32, stream: &Stream) -> FetchError {
        match self {
            Self::Status { status, .. } => FetchError::Status { at, status, attempts },
            Self::BackOff { status, pause } => FetchError::Later { at, status, pause },
            Self::Redirect { status } => FetchError::Redirect { at, status },
            Self::Expired { status } => FetchError::Status { at, status, attempts },
            Self::UnexpectedContent { got } | Self::OtherFile { got } => FetchError::UnexpectedContent { at, got, attempts },
            Self::TooLarge { bytes_max } => FetchError::TooLarge { at, bytes_max },
            Self::TooSlow | Self::Interrupted(None) => FetchError::TooSlow { at, after: stream.answer_timeout, attempts },
            Self::Connection(source) | Self::Interrupted(Some(source)) => FetchError::Connection { at, attempts, source },
            Self::Disk(source) => FetchError::Disk { at, source },
        }
    }
}

impl Inner {
    pub(super) async fn fetch(&self, stream: &Stream, request: &Request, validators: Option<&Validators>) -> Result<Fetched, FetchError> {
        let url = self.url(request)?;
        let headers = headers(request, validators, &url)?;
        let attempt = || {
            let attempt = self.attempt(stream, request, &url, headers.clone(), validators.is_some());
            async move { tokio::time::timeout(stream.answer_timeout, attempt).await.unwrap_or(Err(Failure::TooSlow)) }
        };
        self.retried(stream, request, &url, attempt).await
    }

    /// Makes attempts at a request until one succeeds or no further one may help. Each waits for its turn at the host.
    pub(super) async fn retried<T, A: Future<Output = Result<T, Failure>>>(
        &self,
        stream: &Stream,
        request: &Request,
        url: &Url,
        attempt: impl Fn() -> A,
    ) -> Result<T, FetchError> {
        // Hosts that one `base_url` stands for keep their own limits.
        let host = request.origin.clone();
        let (mut attempts, mut unexpected_attempts, mut waited) = (0, 0, Duration::ZERO);
        loop {
            let mut permit = self.pace.permit(&host).await;
            attempts += 1;
            count(&self.stats.requests, 1);
            let failure = match attempt().await {
                Ok(answer) => return Ok(answer),
                Err(failure) => failure,
            };
            if let Failure::Status { status, retry_after: Some(pause) } = failure
                && failure.is_passing()
            {
                permit.pause(pause.min(self.limits.pause_max));
                if waited + pause > self.limits.pause_max {
                    return Err(FetchError::Later { at: shown(url), status, pause });
                }
            }
            if let Failure::BackOff { pause, .. } = failure {
                permit.pause(pause.min(self.limits.pause_max));
            }
            drop(permit);
            unexpected_attempts += u32::from(matches!(failure, Failure::UnexpectedContent { .. }));
            if !failure.is_passing() || attempts >= self.limits.attempts_max || unexpected_attempts >= self.limits.unexpected_attempts_max {
                return Err(failure.into_error(shown(url), attempts, stream));
            }
            let requested = if let Failure::Status { retry_after, .. } = failure { retry_after } else { None };
            let pause = requested.unwrap_or_default() + jittered(backoff_bound(&self.limits, attempts));
            waited += pause;
            count(&self.stats.retries, 1);
            tracing::debug!(stream = stream.name, attempts, pause_ms = pause.as_millis(), "request failed, will retry");
            tokio::time::sleep(pause).await;
        }
    }

    async fn attempt(
        &self,
        stream: &Stream,
        request: &Request,
        url: &Url,
        headers: HeaderMap,
        conditional: bool,
    ) -> Result<Fetched, Failure> {
        let asking = match &request.body {
            Some(body) => self.library.post(url.clone()).body(body.clone()),
            None => self.library.get(url.clone()),
        };
        let response = asking.headers(headers).send().await.map_err(connection)?;
        let status = response.status();
        if request.body.is_some() && response.url() != url {
            // Most redirects turn a POST into a GET, whose answer would belong to another request.
            return Err(Failure::Redirect { status: status.as_u16() });
        }
        if status == StatusCode::NOT_MODIFIED && conditional {
            return Ok(Fetched::NotModified);
        }
        if status.is_redirection() && status != StatusCode::NOT_MODIFIED {
            return Err(Failure::Redirect { status: status.as_u16() });
        }
        let media_type = essence(response.headers());
        let is_accepted = status == StatusCode::OK || request.accepts_statuses.contains(&status.as_u16());
        let verdict = match verdict(&media_type, request.media_types) {
            verdict if is_accepted && verdict != Verdict::Refused => verdict,
            _ => {
                let retry_after = retry_after(response.headers());
                if let Some(pause) = self.back_off(stream, request, response).await {
                    return Err(Failure::BackOff { status: status.as_u16(), pause: pause.max(retry_after.unwrap_or_default()) });
                }
                // An HTML page under an accepted status other than 200 carries the meaning of the status, not of the stream.
                return Err(match status {
                    StatusCode::OK => Failure::UnexpectedContent { got: media_type },
                    status => Failure::Status { status: status.as_u16(), retry_after },
                });
            }
        };
        let text = |name: HeaderName| response.headers().get(name).and_then(|value| value.to_str().ok()).map(str::to_owned);
        let validators = Validators { etag: text(ETAG), last_modified: text(LAST_MODIFIED) };
        let link = text(LINK);
        let body = self.body(stream, response).await?;
        if let Some(rule) = request.back_off.filter(|rule| has_marker(&body, rule)) {
            return Err(Failure::BackOff { status: status.as_u16(), pause: rule.pause });
        }
        if verdict == Verdict::ByFirstByte && first_byte(&body) == Some(b'<') {
            return Err(Failure::UnexpectedContent { got: format!("markup as {media_type:?}") });
        }
        Ok(Fetched::Answer { answer: Answer { status: status.as_u16(), link, body }, validators })
    }

    /// Returns the pause that an answer asks for in the upstream's own way.
    async fn back_off(&self, stream: &Stream, request: &Request, response: Response) -> Option<Duration> {
        let rule = request.back_off?;
        if rule.statuses.contains(&response.status().as_u16()) {
            return Some(rule.pause);
        }
        // A page that cannot be read completely is not recognised.
        let body = self.body(stream, response).await.ok()?;
        has_marker(&body, rule).then_some(rule.pause)
    }

    async fn body(&self, stream: &Stream, mut response: Response) -> Result<Bytes, Failure> {
        // The length is that of the encoded body and known only without compression; then it avoids reading a body that is too large.
        let announced = response.content_length().and_then(|length| usize::try_from(length).ok());
        if announced.is_some_and(|length| length > stream.answer_bytes_max) {
            return Err(Failure::TooLarge { bytes_max: stream.answer_bytes_max });
        }
        let mut body = BytesMut::with_capacity(announced.unwrap_or(0));
        while let Some(piece) = response.chunk().await.map_err(connection)? {
            count(&self.stats.bytes, piece.len() as u64);
            if body.len() + piece.len() > stream.answer_bytes_max {
                return Err(Failure::TooLarge { bytes_max: stream.answer_bytes_max });
            }
            body.extend_from_slice(&piece);
        }
        Ok(body.freeze())
    }
}

/// Whether a body is an HTML page with one of the back-off markers.
fn has_marker(body: &[u8], rule: &BackOffRule) -> bool {
    let at = body.iter().position(|byte| *byte == b'<').unwrap_or(body.len());
    let page = body.get(at..).unwrap_or_default();
    let page = page.get(..PAGE_BYTES_MAX).unwrap_or(page);
    let begins = |tag: &str| page.get(..tag.len()).is_some_and(|start| start.eq_ignore_ascii_case(tag.as_bytes()));
    if !body.get(..at).unwrap_or_default().iter().all(|byte| !byte.is_ascii_graphic()) || !(begins("<!doctype html") || begins("<html")) {
        return false;
    }
    let page = String::from_utf8_lossy(page);
    rule.markers.iter().any(|mark| page.contains(mark))
}

pub(super) fn connection(error: reqwest::Error) -> Failure {
    Failure::Connection(error.without_url())
}

pub(super) fn headers(request: &Request, validators: Option<&Validators>, url: &Url) -> Result<HeaderMap, FetchError> {
    let mut headers = HeaderMap::new();
    let mut put = |name: &str, value: &str| {
        let fault = |source| FetchError::Header { at: shown(url), name: name.to_owned(), source };
        let key = HeaderName::from_bytes(name.as_bytes()).map_err(|_| fault(None))?;
        let mut value = HeaderValue::from_str(value).map_err(|source| fault(Some(source)))?;
        // API keys are sent in headers too; marked as sensitive, they do not appear in debug output.
        value.set_sensitive(true);
        headers.insert(key, value);
        Ok(())
    };
    if !request.media_types.is_empty() {
        put(ACCEPT.as_str(), &request.media_types.join(", "))?;
    }
    if request.body.is_some() {
        put(CONTENT_TYPE.as_str(), "application/json")?;
    }
    for (name, value) in &request.headers {
        put(name, value)?;
    }
    if let Some(etag) = validators.and_then(|known| known.etag.as_deref()) {
        put(IF_NONE_MATCH.as_str(), etag)?;
    }
    if let Some(date) = validators.and_then(|known| known.last_modified.as_deref()) {
        put(IF_MODIFIED_SINCE.as_str(), date)?;
    }
    Ok(headers)
}

/// What the media type alone says about a body.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Verdict {
    /// It is the requested type.
    Taken,
    /// The type is generic; the first byte decides.
    ByFirstByte,
    /// It is another type.
    Refused,
}

pub(super) fn verdict(media_type: &str, requested: &[&str]) -> Verdict {
    if requested.iter().any(|one| one.eq_ignore_ascii_case(media_type)) {
        // Some block pages are labelled as JSON, but JSON never begins like a page. A stream that also accepts markup distinguishes them
        // itself.
        let json =
            requested.iter().any(|one| one.ends_with("json")) && !requested.iter().any(|one| one.ends_with("xml") || one.ends_with("html"));
        return if json { Verdict::ByFirstByte } else { Verdict::Taken };
    }
    match media_type {
        "" | "application/octet-stream" | "text/plain" => Verdict::ByFirstByte,
        _ => Verdict::Refused,
    }
}

/// Returns the media type without parameters, in lower case; empty when there is none.
fn essence(headers: &HeaderMap) -> String {
    let value = headers.get(CONTENT_TYPE).and_then(|value| value.to_str().ok()).unwrap_or("");
    value.split(';').next().unwrap_or("").trim().to_ascii_lowercase()
}

/// Returns the first byte that is neither white space nor part of a byte order mark.
fn first_byte(body: &[u8]) -> Option<u8> {
    let body = body.strip_prefix(b"\xef\xbb\xbf").unwrap_or(body);
    body.iter().copied().find(|byte| !byte.is_ascii_whitespace())
}

/// Reads the pause of `Retry-After`, at most [`RETRY_AFTER_MAX`]: seconds, or a date. A date is compared with the answer's own `Date` if it
/// has one, because the two clocks may differ. `None` for any other value.
pub(super) fn retry_after(headers: &HeaderMap) -> Option<Duration> {
    let value = headers.get(RETRY_AFTER)?.to_str().ok()?.trim();
    if has_only_digits(value) {
        // A number too large for our types still asks for a long pause.
        return Some(Duration::from_secs(value.parse().unwrap_or(u64::MAX)).min(RETRY_AFTER_MAX));
    }
    let until = httpdate::parse_http_date(value).ok()?;
    let own = headers.get(DATE).and_then(|date| date.to_str().ok()).and_then(|date| httpdate::parse_http_date(date).ok());
    let now = own.unwrap_or_else(|| SystemTime::from(Clock::System.now()));
    Some(until.duration_since(now).unwrap_or_default().min(RETRY_AFTER_MAX))
}

/// Returns the upper bound of the pause after that many attempts.
pub(super) fn backoff_bound(limits: &Limits, attempts: u32) -> Duration {
    let doublings = attempts.saturating_sub(1).min(16);
    limits.backoff_first.saturating_mul(1 << doublings).min(limits.backoff_max)
}

/// Picks a random pause up to the bound, so that clients which failed together do not retry together.
fn jittered(bound: Duration) -> Duration {
    bound.mul_f64(rand::random::<f64>())
}
