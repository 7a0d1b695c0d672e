//! The HTTP client of payments: JSON requests to one configured base URL, with limits.

use std::time::Duration;

use reqwest::{Client, RequestBuilder, Url};
use serde_json::Value;

const CONNECT_TIMEOUT: Duration = Duration::from_secs(5);

/// A client of one base URL. The URL is never shown, because it may contain an API key.
pub(super) struct Endpoint {
    client: Client,
    base: Url,
    /// The largest response, in bytes.
    response_bytes_max: usize,
}

/// Why there is no usable response.
#[derive(Debug, thiserror::Error)]
pub(super) enum Error {
    /// The server cannot be reached, or does not respond in time.
    #[error("it cannot be reached or does not answer in time")]
    Unreachable(#[source] reqwest::Error),
    /// The response is not JSON, or too large.
    #[error("its answer (status {status}) cannot be read")]
    Malformed {
        /// The HTTP status.
        status: u16,
    },
}

impl Endpoint {
    /// Creates a client with the longest time that a request may take, and the largest response in bytes.
    ///
    /// # Errors
    /// Why the URL cannot be used.
    pub(super) fn new(url: &str, timeout: Duration, response_bytes_max: usize) -> Result<Self, String> {
        let base = Url::parse(url.trim_end_matches('/')).map_err(|error| format!("is not a URL: {error}"))?;
        if !matches!(base.scheme(), "http" | "https") || base.host().is_none() {
            return Err("is not http:// or https:// and a host".to_owned());
        }
        // Installing the provider a second time returns an error, which can be ignored.
        drop(rustls::crypto::ring::default_provider().install_default());
        let mut client = Client::builder()
            .no_proxy()
            .referer(false)
            .connect_timeout(CONNECT_TIMEOUT)
            .timeout(timeout)
            .redirect(reqwest::redirect::Policy::none());
        if base.scheme() == "http" {
            // No TLS is used, so no root certificates are needed. This also works on machines without certificates.
            let without_roots =
                rustls::ClientConfig::builder().with_root_certificates(rustls::RootCertStore::empty()).with_no_client_auth();
            client = client.tls_backend_preconfigured(without_roots);
        }
        let client = client.build().map_err(|error| error.without_url().to_string())?;
        Ok(Self { client, base, response_bytes_max })
    }

    /// Posts JSON to a path below the base URL. Returns the JSON of the response with its status, whatever the status is.
    pub(super) async fn post(&self, path: &str, body: &Value) -> Result<(u16, Value), Error> {
        let request = self.client.post(self.at(path)).header("content-type", "application/json");
        self.send(request.body(body.to_string())).await
    }

    /// Gets a path below the base URL. Returns the JSON of the response with its status, whatever the status is.
    pub(super) async fn get(&self, path: &str) -> Result<(u16, Value), Error> {
        self.send(self.client.get(self.at(path))).await
    }

    fn at(&self, path: &str) -> Url {
        let mut url = self.base.clone();
        url.set_path(&format!("{}{path}", self.base.path().trim_end_matches('/')));
        url
    }

    async fn send(&self, request: RequestBuilder) -> Result<(u16, Value), Error> {
        let unreachable = |error: reqwest::Error| Error::Unreachable(error.without_url());
        let mut answer = request.header("accept", "application/json").send().await.map_err(unreachable)?;
        let status = answer.status().as_u16();
        let mut bytes = Vec::new();
        while let Some(piece) = answer.chunk().await.map_err(unreachable)? {
            bytes.extend_from_slice(&piece);
            if bytes.len() > self.response_bytes_max {
                return Err(Error::Malformed { status });
            }
        }
        serde_json::from_slice(&bytes).map(|value| (status, value)).map_err(|_| Error::Malformed { status })
    }
}
