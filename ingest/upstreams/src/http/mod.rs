//! The only client of the upstreams: waits its turn, asks, asks again when that may help, and gives back a whole answer or an error.
//!
//! Promises: never more than the configured requests a second to a host and one at a time; never off the origin that was asked;
//! never more bytes, time or waiting than the limits below; no query string in an error, since keys travel there.
//!
//! It leaves out on purpose: cookies, proxies of the environment, caches, and any reading of an answer beyond its first byte.

mod attempt;
mod pace;
#[cfg(test)]
mod tests;

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

use reqwest::header::InvalidHeaderValue;
use serde::{Deserialize, Serialize};
use url::Url;

use crate::upstream::{Answer, Door, Request, Settings};
use pace::Pace;

/// The limits of every client. Tests shorten them.
#[derive(Clone, Copy, Debug)]
struct Limits {
    /// How often one request is sent at most.
    attempts_max: u32,
    /// How often at most when something else than what was asked came: a wall that stands three times stands longer.
    odd_attempts_max: u32,
    /// The first pause is chance between nothing and this; the bound doubles each time.
    backoff_first: Duration,
    /// The bound stops growing here.
    backoff_max: Duration,
    /// Longest sum of pauses of one request; who must wait longer comes back in another run.
    pause_max: Duration,
    /// To open a connection.
    connect_timeout: Duration,
    /// Between two pieces of an answer.
    idle_timeout: Duration,
}

const LIMITS: Limits = Limits {
    attempts_max: 5,
    odd_attempts_max: 3,
    backoff_first: Duration::from_millis(500),
    backoff_max: Duration::from_secs(60),
    pause_max: Duration::from_secs(600),
    connect_timeout: Duration::from_secs(10),
    idle_timeout: Duration::from_secs(30),
};

/// For a reader who waits: one attempt, and whoever must wait hears so at once.
const LOOK_UP_LIMITS: Limits =
    Limits { attempts_max: 1, odd_attempts_max: 1, pause_max: Duration::ZERO, connect_timeout: Duration::from_secs(5), ..LIMITS };

/// How many redirects within the origin one attempt follows.
const REDIRECTS_MAX: usize = 3;

/// What an answer said of its version, to be sent back with the next request for the same.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub struct Validators {
    /// The `ETag` header, verbatim.
    pub etag: Option<String>,
    /// The `Last-Modified` header, verbatim.
    pub last_modified: Option<String>,
}

/// What a request brought.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Fetched {
    /// A whole answer.
    Answer {
        /// The answer.
        answer: Answer,
        /// To be kept for the next request for the same, if that is conditional.
        validators: Validators,
    },
    /// The upstream says that nothing changed since the validators that were sent.
    NotModified,
}

/// Why a client could not be made.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum BuildError {
    /// `base_url` is no http or https URL. The value may hold a secret and is not shown.
    #[error("base_url is no http or https url with a host")]
    BaseUrl,
    /// `user_agent` is empty or holds what no header may.
    #[error("user_agent {0:?} cannot be sent")]
    UserAgent(String),
    /// `requests_per_second` is not above zero.
    #[error("requests_per_second is {0}, must be above 0")]
    RequestsPerSecond(f64),
    /// The library refused: most often, the machine has no certificates.
    #[error("http client cannot be built")]
    Library(#[source] reqwest::Error),
}

/// Why a request brought nothing. All retries that make sense have been made by then.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum FetchError {
    /// The upstream asks to be left alone for longer than a request may wait. Nothing was taken; ask again after `pause`.
    #[error("{at}: asked to wait {pause:?} (status {status})")]
    Later {
        /// What was asked, without its query.
        at: String,
        /// The status that came with it.
        status: u16,
        /// From now on.
        pause: Duration,
    },
    /// A status that is no answer.
    #[error("{at}: status {status} after {attempts} attempts")]
    Status {
        /// What was asked, without its query.
        at: String,
        /// The last one.
        status: u16,
        /// Requests sent.
        attempts: u32,
    },
    /// A redirect that leads off the origin, or one too many.
    #[error("{at}: redirect (status {status}) not followed")]
    Redirect {
        /// What was asked, without its query.
        at: String,
        /// Its status.
        status: u16,
    },
    /// Something else than what was asked for: a bot wall's page where JSON should be.
    #[error("{at}: got {got} after {attempts} attempts")]
    NotWhatWasAsked {
        /// What was asked, without its query.
        at: String,
        /// Its media type, or what its first byte says.
        got: String,
        /// Requests sent.
        attempts: u32,
    },
    /// The answer is larger than the door's `answer_bytes_max`; reading stopped there.
    #[error("{at}: answer above {bytes_max} bytes")]
    TooLarge {
        /// What was asked, without its query.
        at: String,
        /// The limit.
        bytes_max: usize,
    },
    /// The answer was not whole within the door's `answer_timeout`.
    #[error("{at}: no whole answer within {after:?}, {attempts} attempts")]
    TooSlow {
        /// What was asked, without its query.
        at: String,
        /// The limit of one attempt.
        after: Duration,
        /// Requests sent.
        attempts: u32,
    },
    /// No connection, or it broke: name, certificate, reset, silence, a body that ends too early.
    #[error("{at}: connection failed, {attempts} attempts")]
    Connection {
        /// What was asked, without its query.
        at: String,
        /// Requests sent.
        attempts: u32,
        /// The last failure; holds no URL.
        #[source]
        source: reqwest::Error,
    },
    /// The origin is not https, and no `base_url` allows that.
    #[error("{at}: not https")]
    NotHttps {
        /// What was to be asked, without its query.
        at: String,
    },
    /// Origin and path of the request make no URL. A fault of the upstream's module.
    #[error("{origin}: path of the request makes no url")]
    Url {
        /// The origin of the request.
        origin: String,
    },
    /// A header of the request cannot be sent; its value is not shown.
    #[error("{at}: header {name} cannot be sent")]
    Header {
        /// What was to be asked, without its query.
        at: String,
        /// The header's name.
        name: String,
        /// What is wrong with its value, if that is wrong.
        #[source]
        source: Option<InvalidHeaderValue>,
    },
}

/// What a client and its clones did so far.
#[derive(Debug, Default)]
pub struct FetchStats {
    requests: AtomicU64,
    retries: AtomicU64,
    bytes: AtomicU64,
    failures: AtomicU64,
}

impl FetchStats {
    /// Requests sent, retries included.
    #[must_use]
    pub fn requests(&self) -> u64 {
        self.requests.load(Ordering::Relaxed)
    }

    /// Requests that were sent again.
    #[must_use]
    pub fn retries(&self) -> u64 {
        self.retries.load(Ordering::Relaxed)
    }

    /// Bytes of bodies read, after decompression, of whole and broken answers.
    #[must_use]
    pub fn bytes(&self) -> u64 {
        self.bytes.load(Ordering::Relaxed)
    }

    /// Calls that ended in an error.
    #[must_use]
    pub fn failures(&self) -> u64 {
        self.failures.load(Ordering::Relaxed)
    }
}

fn count(counter: &AtomicU64, by: u64) {
    counter.fetch_add(by, Ordering::Relaxed);
}

/// The client of one upstream. Clones share connections, turns and counters.
#[derive(Clone, Debug)]
pub struct Client {
    inner: Arc<Inner>,
}

#[derive(Debug)]
struct Inner {
    library: reqwest::Client,
    base_url: Option<Url>,
    pace: Pace,
    stats: FetchStats,
    limits: Limits,
}

impl Client {
    /// Makes the client of one upstream.
    ///
    /// # Errors
    /// When a setting cannot be used, or the machine has no certificates to check https with.
    pub fn new(settings: &Settings) -> Result<Self, BuildError> {
        Self::with_limits(settings, LIMITS)
    }

    /// Makes a client for look-ups, which are made once or not at all.
    ///
    /// # Errors
    /// As [`Self::new`].
    pub fn for_look_ups(settings: &Settings) -> Result<Self, BuildError> {
        Self::with_limits(settings, LOOK_UP_LIMITS)
    }

    fn with_limits(settings: &Settings, limits: Limits) -> Result<Self, BuildError> {
        let base_url = settings.base_url.as_deref().map(base_url).transpose()?;
        let pace = Pace::new(settings.requests_per_second).ok_or(BuildError::RequestsPerSecond(settings.requests_per_second))?;
        if settings.user_agent.trim().is_empty() || reqwest::header::HeaderValue::from_str(&settings.user_agent).is_err() {
            return Err(BuildError::UserAgent(settings.user_agent.clone()));
        }
        // Installed twice is an error that says it is installed already, which is all we want.
        drop(rustls::crypto::ring::default_provider().install_default());
        let mut library = reqwest::Client::builder()
            .user_agent(&settings.user_agent)
            .no_proxy()
            .referer(false)
            .gzip(true)
            .retry(reqwest::retry::never())
            .connect_timeout(limits.connect_timeout)
            .read_timeout(limits.idle_timeout)
            .pool_max_idle_per_host(1)
            .redirect(reqwest::redirect::Policy::custom(|attempt| {
                // Back to what was asked is a circle; of a POST it would make a GET of the same.
                let is_first = |first: &Url| first.origin() == attempt.url().origin() && first != attempt.url();
                let within = attempt.previous().first().is_some_and(is_first);
                if within && attempt.previous().len() <= REDIRECTS_MAX { attempt.follow() } else { attempt.stop() }
            }));
        if base_url.as_ref().is_some_and(|base| base.scheme() == "http") {
            // Speaks no TLS, so it trusts nobody, and works on a machine that has no certificates.
            let trusts_nobody =
                rustls::ClientConfig::builder().with_root_certificates(rustls::RootCertStore::empty()).with_no_client_auth();
            library = library.tls_backend_preconfigured(trusts_nobody);
        } else {
            library = library.https_only(true);
        }
        let library = library.build().map_err(|source| BuildError::Library(source.without_url()))?;
        Ok(Self { inner: Arc::new(Inner { library, base_url, pace, stats: FetchStats::default(), limits }) })
    }

    /// What this client and its clones did so far.
    #[must_use]
    pub fn stats(&self) -> &FetchStats {
        &self.inner.stats
    }

    /// Sends a request until it is answered or asking again makes no sense, waiting in between. The validators are sent only
    /// with a request that is conditional. Dropping the future gives up its turn.
    ///
    /// # Errors
    /// See [`FetchError`]; the pauses that its retries took are over by then.
    pub async fn fetch(&self, door: &Door, request: &Request, validators: Option<&Validators>) -> Result<Fetched, FetchError> {
        let result = self.inner.fetch(door, request, validators.filter(|_| request.is_conditional())).await;
        if let Err(error) = &result {
            count(&self.inner.stats.failures, 1);
            tracing::debug!(door = door.name, error = %error, "fetch failed");
        }
        result
    }
}

impl Inner {
    fn url(&self, request: &Request) -> Result<Url, FetchError> {
        let fault = || FetchError::Url { origin: request.origin.clone() };
        let own = Url::parse(&request.origin).map_err(|_| fault())?;
        let base = self.base_url.as_ref().unwrap_or(&own);
        // A path that does not begin with a slash could go on with the host's name.
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

fn base_url(text: &str) -> Result<Url, BuildError> {
    let mut url = Url::parse(text).map_err(|_| BuildError::BaseUrl)?;
    if !matches!(url.scheme(), "http" | "https") || !url.has_host() || url.query().is_some() {
        return Err(BuildError::BaseUrl);
    }
    url.set_fragment(None);
    Ok(url)
}

/// Origin and path: what may be shown of a URL. User, password, query and fragment may be secrets.
fn shown(url: &Url) -> String {
    format!("{}{}", url.origin().ascii_serialization(), url.path())
}
