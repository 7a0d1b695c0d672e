//! The only HTTP client of the upstreams. It respects the rate limit, sends requests, retries where that may help, and returns a complete
//! answer or an error.
//!
//! Guarantees: never more than the configured requests per second to a host, and one at a time. It never leaves the origin of the request,
//! and never exceeds the limits of bytes, time and pauses below. Errors contain no query string, because API keys are sent there.
//!
//! Not provided: cookies, proxies from the environment, caches, and any parsing of an answer beyond its first byte.

mod attempt;
mod download;
mod pace;
#[cfg(test)]
mod tests;

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

use reqwest::header::InvalidHeaderValue;
use serde::{Deserialize, Serialize};
use url::Url;

use crate::upstream::{Answer, Request, Settings, Stream};
use pace::Pace;

/// The limits of a client. Tests shorten them.
#[derive(Clone, Copy, Debug)]
struct Limits {
    /// How many times one request is sent at most.
    attempts_max: u32,
    /// How many times it is sent when the answer has an unexpected type. A block page that was seen three times will not go away soon.
    unexpected_attempts_max: u32,
    /// The first pause is random between zero and this; the bound doubles with each attempt.
    backoff_first: Duration,
    /// The bound stops growing at this value.
    backoff_max: Duration,
    /// The longest total pause of one request. If a longer pause is needed, the next sync run tries again.
    pause_max: Duration,
    /// The timeout for opening a connection.
    connect_timeout: Duration,
    /// The timeout between two chunks of an answer.
    idle_timeout: Duration,
}

const LIMITS: Limits = Limits {
    attempts_max: 5,
    unexpected_attempts_max: 3,
    backoff_first: Duration::from_millis(500),
    backoff_max: Duration::from_secs(60),
    pause_max: Duration::from_secs(600),
    connect_timeout: Duration::from_secs(10),
    idle_timeout: Duration::from_secs(30),
};

/// The limits for a live query with a waiting user: a single attempt, and an immediate error if the upstream asks for a pause.
const LOOK_UP_LIMITS: Limits =
    Limits { attempts_max: 1, unexpected_attempts_max: 1, pause_max: Duration::ZERO, connect_timeout: Duration::from_secs(5), ..LIMITS };

/// For how many requests the first pause lasts at most: a client that may send often need not wait long.
const BACKOFF_FIRST_REQUESTS: f64 = 50.0;

/// How many redirects within the origin one attempt follows.
const REDIRECTS_MAX: usize = 3;

/// The HTTP validators of an answer, which are sent with the next conditional request for the same path.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub struct Validators {
    /// The `ETag` header, verbatim.
    pub etag: Option<String>,
    /// The `Last-Modified` header, verbatim.
    pub last_modified: Option<String>,
}

/// The result of a request.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Fetched {
    /// A complete answer.
    Answer {
        /// The answer.
        answer: Answer,
        /// The validators for the next conditional request.
        validators: Validators,
    },
    /// The upstream reports no change since the validators that were sent.
    NotModified,
}

/// Why a client could not be built.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum BuildError {
    /// `base_url` is not an http or https URL. The value may hold a secret and is not shown.
    #[error("base_url is not an http or https url with a host")]
    BaseUrl,
    /// `user_agent` is empty or contains characters that a header cannot hold.
    #[error("user_agent {0:?} cannot be sent")]
    UserAgent(String),
    /// `requests_per_second` is not above zero.
    #[error("requests_per_second is {0}, must be above 0")]
    RequestsPerSecond(f64),
    /// The HTTP library failed; most often because the machine has no root certificates.
    #[error("http client cannot be built")]
    Library(#[source] reqwest::Error),
}

/// Why a request failed, after all retries that could help.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum FetchError {
    /// The upstream asks for a longer pause than a request may wait. Retry after `pause`.
    #[error("{at}: asked to wait {pause:?} (status {status})")]
    Later {
        /// The requested address without its query.
        at: String,
        /// The status that came with it.
        status: u16,
        /// The pause, starting now.
        pause: Duration,
    },
    /// The answer has an error status.
    #[error("{at}: status {status} after {attempts} attempts")]
    Status {
        /// The requested address without its query.
        at: String,
        /// The status of the last attempt.
        status: u16,
        /// How many times the request was sent.
        attempts: u32,
    },
    /// A redirect to another origin, or too many redirects.
    #[error("{at}: redirect (status {status}) not followed")]
    Redirect {
        /// The requested address without its query.
        at: String,
        /// The status of the redirect.
        status: u16,
    },
    /// The answer has an unexpected type, for example a block page instead of JSON.
    #[error("{at}: got {got} after {attempts} attempts")]
    UnexpectedContent {
        /// The requested address without its query.
        at: String,
        /// The type of the answer, by its media type or its first byte.
        got: String,
        /// How many times the request was sent.
        attempts: u32,
    },
    /// The answer is larger than the stream's `answer_bytes_max`. Reading stopped there.
    #[error("{at}: answer above {bytes_max} bytes")]
    TooLarge {
        /// The requested address without its query.
        at: String,
        /// The limit.
        bytes_max: usize,
    },
    /// The answer was not complete within the stream's `answer_timeout`.
    #[error("{at}: no complete answer within {after:?}, {attempts} attempts")]
    TooSlow {
        /// The requested address without its query.
        at: String,
        /// The timeout of one attempt.
        after: Duration,
        /// How many times the request was sent.
        attempts: u32,
    },
    /// The file could not be stored.
    #[error("{at}: the file cannot be stored")]
    Disk {
        /// The requested address without its query.
        at: String,
        /// The cause.
        #[source]
        source: std::io::Error,
    },
    /// The file was requested as often as it may be in this calendar year.
    #[error("{name}: requested {per_year_max} times this year already, which is the limit")]
    DownloadLimit {
        /// The name of the file.
        name: String,
        /// The limit.
        per_year_max: u32,
    },
    /// The connection could not be opened or broke: name resolution, certificate, reset, timeout, or a body that ended early.
    #[error("{at}: connection failed, {attempts} attempts")]
    Connection {
        /// The requested address without its query.
        at: String,
        /// How many times the request was sent.
        attempts: u32,
        /// The last error; it contains no URL.
        #[source]
        source: reqwest::Error,
    },
    /// The origin is not https, and no `base_url` permits that.
    #[error("{at}: not https")]
    NotHttps {
        /// The requested address without its query.
        at: String,
    },
    /// Origin and path of the request do not form a URL. This is a bug of the upstream's module.
    #[error("{origin}: origin and path do not form a url")]
    Url {
        /// The origin of the request.
        origin: String,
    },
    /// A header of the request cannot be sent. Its value is not shown.
    #[error("{at}: header {name} cannot be sent")]
    Header {
        /// The requested address without its query.
        at: String,
        /// The header's name.
        name: String,
        /// Why the value is invalid, if the value is the reason.
        #[source]
        source: Option<InvalidHeaderValue>,
    },
}

impl FetchError {
    /// Says in a few words why a host gave no answer; `None` if the request could not be sent to any host.
    #[must_use]
    pub fn reason_of_host(&self) -> Option<String> {
        Some(match self {
            Self::Later { status, .. } | Self::Status { status, .. } => format!("status {status}"),
            Self::Redirect { .. } => "redirected to another host".to_owned(),
            Self::UnexpectedContent { got, .. } => format!("an answer of another type: {got}"),
            Self::TooLarge { .. } => "an answer is too large".to_owned(),
            Self::TooSlow { .. } => "no complete answer in time".to_owned(),
            Self::Connection { .. } => "the connection failed".to_owned(),
            Self::DownloadLimit { per_year_max, .. } => format!("it was requested {per_year_max} times this year, which is the limit"),
            Self::Disk { .. } | Self::NotHttps { .. } | Self::Url { .. } | Self::Header { .. } => return None,
        })
    }
}

/// Counters of a client and its clones.
#[derive(Debug, Default)]
pub struct FetchStats {
    requests: AtomicU64,
    retries: AtomicU64,
    bytes: AtomicU64,
    failures: AtomicU64,
}

impl FetchStats {
    /// Requests sent, including retries.
    #[must_use]
    pub fn requests(&self) -> u64 {
        self.requests.load(Ordering::Relaxed)
    }

    /// Retries sent.
    #[must_use]
    pub fn retries(&self) -> u64 {
        self.retries.load(Ordering::Relaxed)
    }

    /// Bytes of bodies read, after decompression, including incomplete answers.
    #[must_use]
    pub fn bytes(&self) -> u64 {
        self.bytes.load(Ordering::Relaxed)
    }

    /// Calls that ended with an error.
    #[must_use]
    pub fn failures(&self) -> u64 {
        self.failures.load(Ordering::Relaxed)
    }
}

fn count(counter: &AtomicU64, by: u64) {
    counter.fetch_add(by, Ordering::Relaxed);
}

/// The HTTP client of one upstream. Clones share connections, rate limits and counters.
#[derive(Clone, Debug)]
pub struct Client {
    inner: Arc<Inner>,
}

#[derive(Debug)]
struct Inner {
    library: reqwest::Client,
    user_agent: String,
    base_url: Option<Url>,
    pace: Pace,
    stats: FetchStats,
    limits: Limits,
}

impl Client {
    /// Builds the client of one upstream.
    ///
    /// # Errors
    /// When a setting is invalid, or the machine has no root certificates for https.
    pub fn new(settings: &Settings) -> Result<Self, BuildError> {
        Self::with_limits(settings, Limits { backoff_first: backoff_first(settings.requests_per_second), ..LIMITS })
    }

    /// Builds a client for live queries, which are not retried.
    ///
    /// # Errors
    /// The same errors as [`Self::new`].
    pub fn for_look_ups(settings: &Settings) -> Result<Self, BuildError> {
        Self::with_limits(settings, LOOK_UP_LIMITS)
    }

    fn with_limits(settings: &Settings, limits: Limits) -> Result<Self, BuildError> {
        let base_url = settings.base_url.as_deref().map(base_url).transpose()?;
        let pace = Pace::new(settings.requests_per_second).ok_or(BuildError::RequestsPerSecond(settings.requests_per_second))?;
        if settings.user_agent.trim().is_empty() || reqwest::header::HeaderValue::from_str(&settings.user_agent).is_err() {
            return Err(BuildError::UserAgent(settings.user_agent.clone()));
        }
        let policy = reqwest::redirect::Policy::custom(|attempt| {
            // A redirect back to the requested address is a cycle; for a POST it would become a GET of the same address.
            let is_first = |first: &Url| first.origin() == attempt.url().origin() && first != attempt.url();
            let within = attempt.previous().first().is_some_and(is_first);
            if within && attempt.previous().len() <= REDIRECTS_MAX { attempt.follow() } else { attempt.stop() }
        });
        let user_agent = settings.user_agent.clone();
        let library = library(&user_agent, base_url.as_ref(), &limits, policy).map_err(BuildError::Library)?;
        Ok(Self { inner: Arc::new(Inner { library, user_agent, base_url, pace, stats: FetchStats::default(), limits }) })
    }

    /// Returns the counters of this client and its clones.
    #[must_use]
    pub fn stats(&self) -> &FetchStats {
        &self.inner.stats
    }

    /// Sends a request and retries while that may help, with pauses in between. Validators are sent only with a conditional request.
    /// Dropping the future gives up its place in the rate limit.
    ///
    /// # Errors
    /// See [`FetchError`]. All pauses of retries have passed by then.
    pub async fn fetch(&self, stream: &Stream, request: &Request, validators: Option<&Validators>) -> Result<Fetched, FetchError> {
        let result = self.inner.fetch(stream, request, validators.filter(|_| request.is_conditional())).await;
        if let Err(error) = &result {
            count(&self.inner.stats.failures, 1);
            tracing::debug!(stream = stream.name, error = %error, "fetch failed");
        }
        result
    }
}

impl Inner {
    fn url(&self, request: &Request) -> Result<Url, FetchError> {
        let fault = || FetchError::Url { origin: request.origin.clone() };
        let own = Url::parse(&request.origin).map_err(|_| fault())?;
        let base = self.base_url.as_ref().unwrap_or(&own);
        // Without a leading slash the path could extend the host name.
        if !request.path.starts_with('/') {
            return Err(fault());
        }
        let url = Url::parse(&format!("{}{}", base.as_str().trim_end_matches('/'), request.path)).map_err(|_| fault())?;
        if url.origin() != base.origin() {
            return Err(fault());
        }
        if self.base_url.is_none() && url.scheme() != "https" {
            return Err(FetchError::NotHttps { at: shown(&url) });
        }
        Ok(url)
    }
}

/// Returns the bound of the first pause: [`BACKOFF_FIRST_REQUESTS`] requests, at most that of [`LIMITS`].
fn backoff_first(requests_per_second: f64) -> Duration {
    let pause = Duration::try_from_secs_f64(BACKOFF_FIRST_REQUESTS / requests_per_second).unwrap_or(LIMITS.backoff_first);
    pause.min(LIMITS.backoff_first)
}

/// Builds a client of the HTTP library.
fn library(
    user_agent: &str,
    base_url: Option<&Url>,
    limits: &Limits,
    redirects: reqwest::redirect::Policy,
) -> Result<reqwest::Client, reqwest::Error> {
    // A second installation fails because a provider is installed already, which is fine.
    drop(rustls::crypto::ring::default_provider().install_default());
    let library = reqwest::Client::builder()
        .user_agent(user_agent)
        .no_proxy()
        .referer(false)
        .gzip(true)
        .retry(reqwest::retry::never())
        .connect_timeout(limits.connect_timeout)
        .read_timeout(limits.idle_timeout)
        .pool_max_idle_per_host(1)
        .redirect(redirects);
    let library = if base_url.is_some_and(|base| base.scheme() == "http") {
        // Without TLS no root certificates are needed, so this works on a machine that has none.
        let trusts_nobody = rustls::ClientConfig::builder().with_root_certificates(rustls::RootCertStore::empty()).with_no_client_auth();
        library.tls_backend_preconfigured(trusts_nobody)
    } else {
        library.https_only(true)
    };
    library.build().map_err(reqwest::Error::without_url)
}

fn base_url(text: &str) -> Result<Url, BuildError> {
    let mut url = Url::parse(text).map_err(|_| BuildError::BaseUrl)?;
    if !matches!(url.scheme(), "http" | "https") || !url.has_host() || url.query().is_some() {
        return Err(BuildError::BaseUrl);
    }
    url.set_fragment(None);
    Ok(url)
}

/// Returns origin and path: the parts of a URL that may be shown. User, password, query and fragment may hold secrets.
fn shown(url: &Url) -> String {
    format!("{}{}", url.origin().ascii_serialization(), url.path())
}
