//! One request and its retries: what is sent, what counts as an answer, and how long to wait before the next attempt.

use std::time::{Duration, SystemTime};

use bytes::{Bytes, BytesMut};
use reqwest::header::{
    ACCEPT, CONTENT_TYPE, DATE, ETAG, HeaderMap, HeaderName, HeaderValue, IF_MODIFIED_SINCE, IF_NONE_MATCH, LAST_MODIFIED, LINK,
    RETRY_AFTER,
};
use reqwest::{Response, StatusCode};
use schemas::clock::Clock;
use url::Url;

use super::{FetchError, Fetched, Inner, Limits, Validators, count, shown};
use crate::upstream::{Answer, Door, Request, Wall};

/// So much of a page is looked through for the marks of a wall.
const PAGE_BYTES_MAX: usize = 64 << 10;

/// The longest pause that an upstream can ask for with `Retry-After`: a longer one, whatever its size, counts as this one.
pub(super) const RETRY_AFTER_MAX: Duration = Duration::from_secs(24 * 3600);

/// Why one attempt brought nothing.
enum Failure {
    Status {
        status: u16,
        retry_after: Option<Duration>,
    },
    /// The upstream wants to be left alone, in its own way of saying so.
    Wall {
        status: u16,
        pause: Duration,
    },
    Redirect {
        status: u16,
    },
    NotWhatWasAsked {
        got: String,
    },
    TooLarge,
    TooSlow,
    Connection(reqwest::Error),
}

impl Failure {
    /// Whether asking again may help.
    fn is_passing(&self) -> bool {
        match self {
            Self::Status { status, .. } => matches!(status, 408 | 429 | 500..=599),
            Self::NotWhatWasAsked { .. } | Self::TooSlow | Self::Connection(_) => true,
            Self::Wall { .. } | Self::Redirect { .. } | Self::TooLarge => false,
        }
    }

    fn into_error(self, at: String, attempts: u32, door: &Door) -> FetchError {
        match self {
            Self::Status { status, .. } => FetchError::Status { at, status, attempts },
            Self::Wall { status, pause } => FetchError::Later { at, status, pause },
            Self::Redirect { status } => FetchError::Redirect { at, status },
            Self::NotWhatWasAsked { got } => FetchError::NotWhatWasAsked { at, got, attempts },
            Self::TooLarge => FetchError::TooLarge { at, bytes_max: door.answer_bytes_max },
            Self::TooSlow => FetchError::TooSlow { at, after: door.answer_timeout, attempts },
            Self::Connection(source) => FetchError::Connection { at, attempts, source },
        }
    }
}

impl Inner {
    pub(super) async fn fetch(&self, door: &Door, request: &Request, validators: Option<&Validators>) -> Result<Fetched, FetchError> {
        let url = self.url(request)?;
        let headers = headers(request, validators, &url)?;
        let host = url.origin().ascii_serialization();
        let (mut attempts, mut odd_attempts, mut waited) = (0, 0, Duration::ZERO);
        loop {
            let mut turn = self.pace.turn(&host).await;
            attempts += 1;
            count(&self.stats.requests, 1);
            let attempt = self.attempt(door, request, &url, headers.clone(), validators.is_some());
            let failure = match tokio::time::timeout(door.answer_timeout, attempt).await {
                Ok(Ok(fetched)) => return Ok(fetched),
                Ok(Err(failure)) => failure,
                Err(_elapsed) => Failure::TooSlow,
            };
            if let Failure::Status { status, retry_after: Some(pause) } = failure
                && failure.is_passing()
            {
                turn.hold_off(pause.min(self.limits.pause_max));
                if waited + pause > self.limits.pause_max {
                    return Err(FetchError::Later { at: shown(&url), status, pause });
                }
            }
            if let Failure::Wall { pause, .. } = failure {
                turn.hold_off(pause.min(self.limits.pause_max));
            }
            drop(turn);
            odd_attempts += u32::from(matches!(failure, Failure::NotWhatWasAsked { .. }));
            if !failure.is_passing() || attempts >= self.limits.attempts_max || odd_attempts >= self.limits.odd_attempts_max {
                return Err(failure.into_error(shown(&url), attempts, door));
            }
            let asked = if let Failure::Status { retry_after, .. } = failure { retry_after } else { None };
            let pause = asked.unwrap_or_default() + jittered(backoff_bound(&self.limits, attempts));
            waited += pause;
            count(&self.stats.retries, 1);
            tracing::debug!(door = door.name, attempts, pause_ms = pause.as_millis(), "asking again");
            tokio::time::sleep(pause).await;
        }
    }

    async fn attempt(&self, door: &Door, request: &Request, url: &Url, headers: HeaderMap, conditional: bool) -> Result<Fetched, Failure> {
        let asking = match &request.body {
            Some(body) => self.library.post(url.clone()).body(body.clone()),
            None => self.library.get(url.clone()),
        };
        let response = asking.headers(headers).send().await.map_err(connection)?;
        let status = response.status();
        if request.body.is_some() && response.url() != url {
            // Most redirects make a GET of a POST: what came then answers a question that was not asked.
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
                if let Some(pause) = self.wall(door, request, response).await {
                    return Err(Failure::Wall { status: status.as_u16(), pause: pause.max(retry_after.unwrap_or_default()) });
                }
                // A page of words under an accepted status other than 200 says what the status says, not what the door would say.
                return Err(match status {
                    StatusCode::OK => Failure::NotWhatWasAsked { got: media_type },
                    status => Failure::Status { status: status.as_u16(), retry_after },
                });
            }
        };
        let text = |name: HeaderName| response.headers().get(name).and_then(|value| value.to_str().ok()).map(str::to_owned);
        let validators = Validators { etag: text(ETAG), last_modified: text(LAST_MODIFIED) };
        let link = text(LINK);
        let body = self.body(door, response).await?;
        if let Some(wall) = request.wall.filter(|wall| is_marked(&body, wall)) {
            return Err(Failure::Wall { status: status.as_u16(), pause: wall.pause });
        }
        if verdict == Verdict::ByFirstByte && first_byte(&body) == Some(b'<') {
            return Err(Failure::NotWhatWasAsked { got: format!("markup as {media_type:?}") });
        }
        Ok(Fetched::Answer { answer: Answer { status: status.as_u16(), link, body }, validators })
    }

    /// The pause that an answer which is none asks for in the upstream's own way.
    async fn wall(&self, door: &Door, request: &Request, response: Response) -> Option<Duration> {
        let wall = request.wall?;
        if wall.statuses.contains(&response.status().as_u16()) {
            return Some(wall.pause);
        }
        // A page that cannot be read whole is none that can be told.
        let body = self.body(door, response).await.ok()?;
        is_marked(&body, wall).then_some(wall.pause)
    }

    async fn body(&self, door: &Door, mut response: Response) -> Result<Bytes, Failure> {
        // The length is that of the body as sent, known only when it is not compressed; then it spares reading in vain.
        let announced = response.content_length().and_then(|length| usize::try_from(length).ok());
        if announced.is_some_and(|length| length > door.answer_bytes_max) {
            return Err(Failure::TooLarge);
        }
        let mut body = BytesMut::with_capacity(announced.unwrap_or(0));
        while let Some(piece) = response.chunk().await.map_err(connection)? {
            count(&self.stats.bytes, piece.len() as u64);
            if body.len() + piece.len() > door.answer_bytes_max {
                return Err(Failure::TooLarge);
            }
            body.extend_from_slice(&piece);
        }
        Ok(body.freeze())
    }
}

/// Whether a body is a page of HTML that has one of the wall's marks.
fn is_marked(body: &[u8], wall: &Wall) -> bool {
    let at = body.iter().position(|byte| *byte == b'<').unwrap_or(body.len());
    let page = body.get(at..).unwrap_or_default();
    let page = page.get(..PAGE_BYTES_MAX).unwrap_or(page);
    let begins = |tag: &str| page.get(..tag.len()).is_some_and(|start| start.eq_ignore_ascii_case(tag.as_bytes()));
    if !body.get(..at).unwrap_or_default().iter().all(|byte| !byte.is_ascii_graphic()) || !(begins("<!doctype html") || begins("<html")) {
        return false;
    }
    let page = String::from_utf8_lossy(page);
    wall.marks.iter().any(|mark| page.contains(mark))
}

fn connection(error: reqwest::Error) -> Failure {
    Failure::Connection(error.without_url())
}

fn headers(request: &Request, validators: Option<&Validators>, url: &Url) -> Result<HeaderMap, FetchError> {
    let mut headers = HeaderMap::new();
    let mut put = |name: &str, value: &str| {
        let fault = |source| FetchError::Header { at: shown(url), name: name.to_owned(), source };
        let key = HeaderName::from_bytes(name.as_bytes()).map_err(|_| fault(None))?;
        let mut value = HeaderValue::from_str(value).map_err(|source| fault(Some(source)))?;
        // Keys travel in headers as well; marked so, no debug output shows them.
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

/// What the media type alone says of a body.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Verdict {
    /// It is what was asked for.
    Taken,
    /// The type says nothing; the first byte decides.
    ByFirstByte,
    /// It is something else.
    Refused,
}

pub(super) fn verdict(media_type: &str, asked: &[&str]) -> Verdict {
    if asked.iter().any(|one| one.eq_ignore_ascii_case(media_type)) {
        // Walls have been seen that label their page as JSON, and no JSON begins as a page does. A door that takes markup as well
        // reads it by itself.
        let json = asked.iter().any(|one| one.ends_with("json")) && !asked.iter().any(|one| one.ends_with("xml") || one.ends_with("html"));
        return if json { Verdict::ByFirstByte } else { Verdict::Taken };
    }
    match media_type {
        "" | "application/octet-stream" | "text/plain" => Verdict::ByFirstByte,
        _ => Verdict::Refused,
    }
}

/// The media type without parameters, in lower case; empty when there is none.
fn essence(headers: &HeaderMap) -> String {
    let value = headers.get(CONTENT_TYPE).and_then(|value| value.to_str().ok()).unwrap_or("");
    value.split(';').next().unwrap_or("").trim().to_ascii_lowercase()
}

/// The first byte that is neither white space nor part of a byte order mark.
fn first_byte(body: &[u8]) -> Option<u8> {
    let body = body.strip_prefix(b"\xef\xbb\xbf").unwrap_or(body);
    body.iter().copied().find(|byte| !byte.is_ascii_whitespace())
}

/// The pause that `Retry-After` asks for, at most [`RETRY_AFTER_MAX`]: seconds, or a date, which is compared with the answer's own `Date`
/// where it has one, since the two clocks may differ. `None` for a value that is neither.
pub(super) fn retry_after(headers: &HeaderMap) -> Option<Duration> {
    let value = headers.get(RETRY_AFTER)?.to_str().ok()?.trim();
    if !value.is_empty() && value.bytes().all(|byte| byte.is_ascii_digit()) {
        // Digits that no number of ours holds still ask for a long pause.
        return Some(Duration::from_secs(value.parse().unwrap_or(u64::MAX)).min(RETRY_AFTER_MAX));
    }
    let until = httpdate::parse_http_date(value).ok()?;
    let own = headers.get(DATE).and_then(|date| date.to_str().ok()).and_then(|date| httpdate::parse_http_date(date).ok());
    let now = own.unwrap_or_else(|| SystemTime::from(Clock::System.now()));
    Some(until.duration_since(now).unwrap_or_default().min(RETRY_AFTER_MAX))
}

/// The bound of the pause after that many attempts.
pub(super) fn backoff_bound(limits: &Limits, attempts: u32) -> Duration {
    let doublings = attempts.saturating_sub(1).min(16);
    limits.backoff_first.saturating_mul(1 << doublings).min(limits.backoff_max)
}

/// Anything from nothing to the bound, so that clients that failed together do not come back together.
fn jittered(bound: Duration) -> Duration {
    bound.mul_f64(rand::random::<f64>())
}
