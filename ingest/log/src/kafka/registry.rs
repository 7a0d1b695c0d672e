//! A client for a schema registry, limited to the part of Confluent's HTTP API that other registries share: register a schema under a
//! subject, and look up a schema by id.
//!
//! Guarantees: each call ends within [`ANSWER_MAX`] with a result or an error and reads at most [`ANSWER_BYTES_MAX`] bytes. Redirects are
//! not followed, so credentials go to no other host. No credential appears in an error or a log.

use std::fmt;
use std::time::Duration;

use reqwest::{Client, RequestBuilder, StatusCode, Url};
use serde::{Deserialize, Serialize};

/// The timeout for opening a connection.
const CONNECT_MAX: Duration = Duration::from_secs(5);
/// The timeout for a request and its complete answer.
const ANSWER_MAX: Duration = Duration::from_secs(15);
/// The largest answer accepted, in bytes.
const ANSWER_BYTES_MAX: usize = 1024 * 1024;
/// How many characters of the registry's own message an error shows.
const MESSAGE_CHARS_MAX: usize = 400;
/// The media type of requests and answers.
const MEDIA_TYPE: &str = "application/vnd.schemaregistry.v1+json";

/// The address of a registry and its credentials.
#[derive(Clone)]
pub struct Options {
    /// `http://host:port` or `https://…`, with an optional path.
    pub url: String,
    /// User name and password, if the registry requires them. Never shown.
    pub credentials: Option<(String, String)>,
}

impl fmt::Debug for Options {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Options").field("url", &without_user(&self.url)).finish_non_exhaustive()
    }
}

/// Removes user information from an address before it is shown, because it may contain a password.
fn without_user(url: &str) -> &str {
    url.rsplit('@').next().unwrap_or_default()
}

/// Why the registry returned no id or no schema.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum Error {
    /// The address is not valid.
    #[error("\"{0}\" is not an http or https address of a schema registry (user name and password have their own settings)")]
    Address(String),
    /// The HTTP client cannot be built; most often because the machine has no root certificates.
    #[error("the http client cannot be built")]
    Client(#[source] reqwest::Error),
    /// The registry does not answer, or not in time.
    #[error("the schema registry at {url} does not answer")]
    Unreachable {
        /// The address of the registry.
        url: String,
        /// Why.
        #[source]
        source: reqwest::Error,
    },
    /// The credentials are missing or were refused.
    #[error("the schema registry at {url} refuses the credentials (status {status}): avro.registry_username, avro.registry_password")]
    Credentials {
        /// The address of the registry.
        url: String,
        /// 401 or 403.
        status: u16,
    },
    /// The schema is not compatible with the earlier versions of its subject.
    #[error("the schema registry at {url} refuses the schema of {subject} as incompatible with those before it: {words}")]
    Incompatible {
        /// The address of the registry.
        url: String,
        /// The subject.
        subject: String,
        /// The registry's reason.
        words: String,
    },
    /// The registry answered with an error status.
    #[error("the schema registry at {url} answered {what} with status {status}: {words}")]
    Status {
        /// The address of the registry.
        url: String,
        /// The request.
        what: String,
        /// The status.
        status: u16,
        /// The registry's message.
        words: String,
    },
    /// The answer is too large or not valid.
    #[error("the schema registry at {url} gave an unexpected response to {what}: {reason}")]
    Answer {
        /// The address of the registry.
        url: String,
        /// The request.
        what: String,
        /// What is wrong with the answer.
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
struct RegisteredSchema {
    schema: String,
    /// Absent for Avro schemas.
    #[serde(default, rename = "schemaType")]
    schema_type: Option<String>,
}

/// The body of an error answer.
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
        // A second installation fails because a provider is installed already, which is fine.
        drop(rustls::crypto::ring::default_provider().install_default());
        let mut client = Client::builder()
            .no_proxy()
            .referer(false)
            .connect_timeout(CONNECT_MAX)
            .timeout(ANSWER_MAX)
            .redirect(reqwest::redirect::Policy::none());
        if base.scheme() == "http" {
            // Without TLS no root certificates are needed, so this works on a machine that has none.
            let trusts_nobody =
                rustls::ClientConfig::builder().with_root_certificates(rustls::RootCertStore::empty()).with_no_client_auth();
            client = client.tls_backend_preconfigured(trusts_nobody);
        }
        let client = client.build().map_err(|source| Error::Client(source.without_url()))?;
        Ok(Self { client, base, credentials: options.credentials })
    }

    /// Returns the registry's address.
    pub(super) fn url(&self) -> &str {
        self.base.as_str()
    }

    /// Returns the id of a schema under a subject. Registers the schema if necessary.
    pub(super) async fn register(&self, subject: &str, schema: &str) -> Result<u32, Error> {
        let path = format!("subjects/{subject}/versions");
        let what = format!("POST /{path}");
        let body = serde_json::to_vec(&Registering { schema }).map_err(|error| self.unexpected_response(&what, error))?;
        let request = self.client.post(self.at(&path)?).header("content-type", MEDIA_TYPE).body(body);
        let (status, body) = self.send(request, &what).await?;
        match status {
            StatusCode::CONFLICT => {
                let (url, subject) = (self.url().to_owned(), subject.to_owned());
                Err(Error::Incompatible { url, subject, words: words(&body) })
            }
            status if status.is_success() => serde_json::from_slice::<Registered>(&body)
                .map(|registered| registered.id)
                .map_err(|error| self.unexpected_response(&what, error)),
            status => Err(self.status(&what, status, &body)),
        }
    }

    /// Returns the Avro schema with an id; `None` if the registry does not have it.
    pub(super) async fn schema(&self, id: u32) -> Result<Option<String>, Error> {
        let path = format!("schemas/ids/{id}");
        let what = format!("GET /{path}");
        let (status, body) = self.send(self.client.get(self.at(&path)?), &what).await?;
        match status {
            StatusCode::NOT_FOUND => Ok(None),
            status if status.is_success() => {
                let found: RegisteredSchema = serde_json::from_slice(&body).map_err(|error| self.unexpected_response(&what, error))?;
                Ok(found.schema_type.is_none_or(|schema_type| schema_type == "AVRO").then_some(found.schema))
            }
            status => Err(self.status(&what, status, &body)),
        }
    }

    fn at(&self, path: &str) -> Result<Url, Error> {
        Url::parse(&format!("{}/{path}", self.url().trim_end_matches('/'))).map_err(|error| self.unexpected_response(path, error))
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
                return Err(self.unexpected_response(what, format!("over {ANSWER_BYTES_MAX} bytes")));
            }
            body.extend_from_slice(&piece);
        }
        Ok((status, body))
    }

    fn unexpected_response(&self, what: &str, reason: impl fmt::Display) -> Error {
        Error::Answer { url: self.url().to_owned(), what: what.to_owned(), reason: reason.to_string() }
    }

    fn status(&self, what: &str, status: StatusCode, body: &[u8]) -> Error {
        Error::Status { url: self.url().to_owned(), what: what.to_owned(), status: status.as_u16(), words: words(body) }
    }
}

/// Extracts a short message from an error answer.
fn words(body: &[u8]) -> String {
    let refusal: Refusal = serde_json::from_slice(body).unwrap_or_default();
    let words = if refusal.message.is_empty() { String::from_utf8_lossy(body).into_owned() } else { refusal.message };
    words.chars().filter(|sign| !sign.is_control()).take(MESSAGE_CHARS_MAX).collect()
}
