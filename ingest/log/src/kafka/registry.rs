//! A schema registry, by the part of Confluent's HTTP interface that others offer too: registering a schema under a subject, and
//! looking one up by id.
//!
//! Promises: an answer within [`ANSWER_MAX`] or an error; never more bytes than [`ANSWER_BYTES_MAX`]; no redirect is followed, so that
//! credentials go nowhere else; no credential is in an error or a log.

use std::fmt;
use std::time::Duration;

use reqwest::{Client, RequestBuilder, StatusCode, Url};
use serde::{Deserialize, Serialize};

/// To open a connection.
const CONNECT_MAX: Duration = Duration::from_secs(5);
/// From the request to the end of its answer.
const ANSWER_MAX: Duration = Duration::from_secs(15);
/// The largest answer taken.
const ANSWER_BYTES_MAX: usize = 1024 * 1024;
/// How much of the registry's own words an error shows.
const WORDS_MAX: usize = 400;
/// The media type of its requests and answers.
const MEDIA_TYPE: &str = "application/vnd.schemaregistry.v1+json";

/// Where a registry is, and who asks.
#[derive(Clone)]
pub struct Options {
    /// `http://host:port` or `https://…`, with a path where it has one.
    pub url: String,
    /// Name and password, if it wants any. Never shown.
    pub credentials: Option<(String, String)>,
}

impl fmt::Debug for Options {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Options").field("url", &without_user(&self.url)).finish_non_exhaustive()
    }
}

/// An address as it may be shown: what stands before an `@` may be a password.
fn without_user(url: &str) -> &str {
    url.rsplit('@').next().unwrap_or_default()
}

/// Why a registry gave no id or no schema.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum Error {
    /// The address is none.
    #[error("\"{0}\" is no http or https address of a schema registry (without name and password, which have settings of their own)")]
    Address(String),
    /// The client cannot be made: most often, the machine has no certificates.
    #[error("no http client can be made")]
    Client(#[source] reqwest::Error),
    /// Nobody answers there, or not in time.
    #[error("the schema registry at {url} does not answer")]
    Unreachable {
        /// The registry.
        url: String,
        /// Why.
        #[source]
        source: reqwest::Error,
    },
    /// The credentials are missing or refused.
    #[error("the schema registry at {url} refuses the credentials (status {status}): avro.registry_username, avro.registry_password")]
    Credentials {
        /// The registry.
        url: String,
        /// 401 or 403.
        status: u16,
    },
    /// The schema does not go with those that the subject has.
    #[error("the schema registry at {url} refuses the schema of {subject} as incompatible with those before it: {words}")]
    Incompatible {
        /// The registry.
        url: String,
        /// The subject.
        subject: String,
        /// Its reason.
        words: String,
    },
    /// Another status.
    #[error("the schema registry at {url} answered {what} with status {status}: {words}")]
    Status {
        /// The registry.
        url: String,
        /// What was asked.
        what: String,
        /// The status.
        status: u16,
        /// What it said.
        words: String,
    },
    /// The answer is too large or not what the interface says.
    #[error("the schema registry at {url} answered {what} with something else: {reason}")]
    Answer {
        /// The registry.
        url: String,
        /// What was asked.
        what: String,
        /// What is wrong.
        reason: String,
    },
}

#[derive(Serialize)]
struct Registering<'a> {
    schema: &'a str,
}

#[derive(Deserialize)]
struct Registered {
    id: u32,
}

#[derive(Deserialize)]
struct Found {
    schema: String,
    /// Absent for Avro.
    #[serde(default, rename = "schemaType")]
    schema_type: Option<String>,
}

/// What it says of a failure.
#[derive(Default, Deserialize)]
struct Refusal {
    #[serde(default)]
    message: String,
}

/// A client of one registry.
pub(super) struct Registry {
    client: Client,
    base: Url,
    credentials: Option<(String, String)>,
}

impl Registry {
    pub(super) fn new(options: Options) -> Result<Self, Error> {
        let wrong = || Error::Address(without_user(&options.url).to_owned());
        let base = Url::parse(options.url.trim_end_matches('/')).map_err(|_| wrong())?;
        let is_plain = base.username().is_empty() && base.password().is_none() && base.query().is_none() && base.fragment().is_none();
        if !matches!(base.scheme(), "http" | "https") || base.host().is_none() || !is_plain {
            return Err(wrong());
        }
        // Installed twice is an error that says it is installed already, which is all we want.
        drop(rustls::crypto::ring::default_provider().install_default());
        let mut client = Client::builder()
            .no_proxy()
            .referer(false)
            .connect_timeout(CONNECT_MAX)
            .timeout(ANSWER_MAX)
            .redirect(reqwest::redirect::Policy::none());
        if base.scheme() == "http" {
            // Speaks no TLS, so it trusts nobody, and works on a machine that has no certificates.
            let trusts_nobody =
                rustls::ClientConfig::builder().with_root_certificates(rustls::RootCertStore::empty()).with_no_client_auth();
            client = client.tls_backend_preconfigured(trusts_nobody);
        }
        let client = client.build().map_err(|source| Error::Client(source.without_url()))?;
        Ok(Self { client, base, credentials: options.credentials })
    }

    /// Its address.
    pub(super) fn url(&self) -> &str {
        self.base.as_str()
    }

    /// The id of a schema under a subject, which is registered if it is not.
    pub(super) async fn register(&self, subject: &str, schema: &str) -> Result<u32, Error> {
        let path = format!("subjects/{subject}/versions");
        let what = format!("POST /{path}");
        let body = serde_json::to_vec(&Registering { schema }).map_err(|error| self.odd(&what, error))?;
        let request = self.client.post(self.at(&path)?).header("content-type", MEDIA_TYPE).body(body);
        let (status, body) = self.send(request, &what).await?;
        match status {
            StatusCode::CONFLICT => {
                let (url, subject) = (self.url().to_owned(), subject.to_owned());
                Err(Error::Incompatible { url, subject, words: words(&body) })
            }
            status if status.is_success() => {
                serde_json::from_slice::<Registered>(&body).map(|registered| registered.id).map_err(|error| self.odd(&what, error))
            }
            status => Err(self.status(&what, status, &body)),
        }
    }

    /// The Avro schema of an id; `None` if it has none.
    pub(super) async fn schema(&self, id: u32) -> Result<Option<String>, Error> {
        let path = format!("schemas/ids/{id}");
        let what = format!("GET /{path}");
        let (status, body) = self.send(self.client.get(self.at(&path)?), &what).await?;
        match status {
            StatusCode::NOT_FOUND => Ok(None),
            status if status.is_success() => {
                let found: Found = serde_json::from_slice(&body).map_err(|error| self.odd(&what, error))?;
                Ok(found.schema_type.is_none_or(|schema_type| schema_type == "AVRO").then_some(found.schema))
            }
            status => Err(self.status(&what, status, &body)),
        }
    }

    fn at(&self, path: &str) -> Result<Url, Error> {
        Url::parse(&format!("{}/{path}", self.url().trim_end_matches('/'))).map_err(|error| self.odd(path, error))
    }

    async fn send(&self, request: RequestBuilder, what: &str) -> Result<(StatusCode, Vec<u8>), Error> {
        let unreachable = |source: reqwest::Error| Error::Unreachable { url: self.url().to_owned(), source: source.without_url() };
        let request = request.header("accept", format!("{MEDIA_TYPE}, application/json"));
        let request = match &self.credentials {
            Some((name, password)) => request.basic_auth(name, Some(password)),
            None => request,
        };
        let mut answer = request.send().await.map_err(unreachable)?;
        let status = answer.status();
        if matches!(status, StatusCode::UNAUTHORIZED | StatusCode::FORBIDDEN) {
            return Err(Error::Credentials { url: self.url().to_owned(), status: status.as_u16() });
        }
        let mut body = Vec::new();
        while let Some(piece) = answer.chunk().await.map_err(unreachable)? {
            if body.len() + piece.len() > ANSWER_BYTES_MAX {
                return Err(self.odd(what, format!("over {ANSWER_BYTES_MAX} bytes")));
            }
            body.extend_from_slice(&piece);
        }
        Ok((status, body))
    }

    fn odd(&self, what: &str, reason: impl fmt::Display) -> Error {
        Error::Answer { url: self.url().to_owned(), what: what.to_owned(), reason: reason.to_string() }
    }

    fn status(&self, what: &str, status: StatusCode, body: &[u8]) -> Error {
        Error::Status { url: self.url().to_owned(), what: what.to_owned(), status: status.as_u16(), words: words(body) }
    }
}

/// What a refusal says, in short.
fn words(body: &[u8]) -> String {
    let refusal: Refusal = serde_json::from_slice(body).unwrap_or_default();
    let words = if refusal.message.is_empty() { String::from_utf8_lossy(body).into_owned() } else { refusal.message };
    words.chars().filter(|sign| !sign.is_control()).take(WORDS_MAX).collect()
}
