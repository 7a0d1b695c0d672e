//! The HTTP client of payments: JSON to one configured address, within limits.

use std::time::Duration;

use reqwest::{Client, RequestBuilder, Url};
use serde_json::Value;

const CONNECT_MAX: Duration = Duration::from_secs(5);

/// A client of one address, which is never shown: a key may be in it.
pub(super) struct Endpoint {
    client: Client,
    base: Url,
    /// The largest answer read, in bytes.
    answer_bytes_max: usize,
}

/// Why nothing usable came.
#[derive(Debug, thiserror::Error)]
pub(super) enum Error {
    /// It cannot be reached, or does not answer in time.
    #[error("it does not answer")]
    Unreachable(#[source] reqwest::Error),
    /// What it says is no JSON, or too much.
    #[error("its answer (status {status}) cannot be read")]
    Odd {
        /// The HTTP status.
        status: u16,
    },
}

impl Endpoint {
    /// A client of an address, with the longest time that an answer is waited for, and the largest answer that is read, in bytes.
    ///
    /// # Errors
    /// Why the address cannot be used.
    pub(super) fn new(url: &str, answer_max: Duration, answer_bytes_max: usize) -> Result<Self, String> {
        let base = Url::parse(url.trim_end_matches('/')).map_err(|error| format!("is no URL: {error}"))?;
        if !matches!(base.scheme(), "http" | "https") || base.host().is_none() {
            return Err("is not http:// or https:// and a host".to_owned());
        }
        // Installed twice is an error that says it is installed already, which is all we want.
        drop(rustls::crypto::ring::default_provider().install_default());
        let mut client = Client::builder()
            .no_proxy()
            .referer(false)
            .connect_timeout(CONNECT_MAX)
            .timeout(answer_max)
            .redirect(reqwest::redirect::Policy::none());
        if base.scheme() == "http" {
            // Speaks no TLS, so it trusts nobody, and works on a machine that has no certificates.
            let trusts_nobody =
                rustls::ClientConfig::builder().with_root_certificates(rustls::RootCertStore::empty()).with_no_client_auth();
            client = client.tls_backend_preconfigured(trusts_nobody);
        }
        let client = client.build().map_err(|error| error.without_url().to_string())?;
        Ok(Self { client, base, answer_bytes_max })
    }

    /// Posts JSON to a path below the address; the answer's JSON, whatever its status, with that.
    pub(super) async fn post(&self, path: &str, body: &Value) -> Result<(u16, Value), Error> {
        let request = self.client.post(self.at(path)).header("content-type", "application/json");
        self.answered(request.body(body.to_string())).await
    }

    /// Gets what is at a path below the address, likewise.
    pub(super) async fn get(&self, path: &str) -> Result<(u16, Value), Error> {
        self.answered(self.client.get(self.at(path))).await
    }

    fn at(&self, path: &str) -> Url {
        let mut url = self.base.clone();
        url.set_path(&format!("{}{path}", self.base.path().trim_end_matches('/')));
        url
    }

    async fn answered(&self, request: RequestBuilder) -> Result<(u16, Value), Error> {
        let unreachable = |error: reqwest::Error| Error::Unreachable(error.without_url());
        let mut answer = request.header("accept", "application/json").send().await.map_err(unreachable)?;
        let status = answer.status().as_u16();
        let mut bytes = Vec::new();
        while let Some(piece) = answer.chunk().await.map_err(unreachable)? {
            bytes.extend_from_slice(&piece);
            if bytes.len() > self.answer_bytes_max {
                return Err(Error::Odd { status });
            }
        }
        serde_json::from_slice(&bytes).map(|value| (status, value)).map_err(|_| Error::Odd { status })
    }
}
