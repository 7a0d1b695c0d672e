//! The client of one witness: asks it to cosign a checkpoint, and verifies the answer.

use std::time::Duration;

use crate::note::{KeyError, KeyType, Signed, SignedNote, VerifierKey, decimal};
use operation::context::Context;
use operation::problem::Problem;
use reqwest::header::CONTENT_TYPE;
use reqwest::{Client, Url};
use schemas::reason::reason;
use schemas::views::receipts::SignedCheckpoint;
use serde::{Deserialize, Serialize};

use super::request::AddCheckpoint;
use crate::prover::SignedTree;

/// How long a connection to a witness may take, and a whole request.
const CONNECTED_WITHIN: Duration = Duration::from_secs(5);
const ANSWERED_WITHIN: Duration = Duration::from_secs(10);
/// The longest answer that is read, in bytes.
const ANSWER_BYTES_MAX: usize = 64 << 10;

/// The newest cosignature of a witness over a checkpoint of one tree.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub(super) struct Cosignature {
    /// The checkpoint that the log signed.
    pub(super) note: String,
    /// The number of leaves of its tree.
    pub(super) size: u64,
    /// The witness's signature line, without a newline at its end.
    pub(super) line: String,
    /// The time in the signature, seconds since 1970.
    pub(super) time_s: u64,
}

/// Why a witness cannot be asked.
#[derive(Debug, thiserror::Error)]
pub enum WitnessError {
    /// The verifier key is not valid.
    #[error("vkey \"{vkey}\": {source}")]
    Key {
        /// The key, as given.
        vkey: String,
        /// The cause.
        source: KeyError,
    },
    /// The submission prefix is not a URL.
    #[error("url \"{url}\": it is not http:// or https:// with a host")]
    Url {
        /// The address, as given.
        url: String,
    },
    /// The HTTP client cannot be set up.
    #[error("the HTTP client cannot be set up")]
    Client(#[source] reqwest::Error),
}

/// A witness that is asked to cosign our checkpoints.
#[derive(Clone, Debug)]
pub struct Witness {
    pub(super) key: VerifierKey,
    url: Url,
    client: Client,
}

/// The answer of a witness.
enum Answer {
    /// The signature lines.
    Lines(String),
    /// The witness cosigned a tree of another size last. It holds the size if the witness said it.
    Conflict(Option<u64>),
}

impl Witness {
    /// A witness with its verifier key (cosignature/v1) and its submission prefix.
    ///
    /// # Errors
    /// When the key or the address cannot be used.
    pub fn new(vkey: &str, url: &str) -> Result<Self, WitnessError> {
        let key = VerifierKey::parse(vkey, KeyType::Cosignature).map_err(|source| WitnessError::Key { vkey: vkey.to_owned(), source })?;
        let is_usable = |parsed: &Url| matches!(parsed.scheme(), "http" | "https") && parsed.host().is_some() && parsed.query().is_none();
        let prefix = Url::parse(url).ok().filter(is_usable);
        let mut url = prefix.ok_or_else(|| WitnessError::Url { url: url.to_owned() })?;
        let path = format!("{}/add-checkpoint", url.path().trim_end_matches('/'));
        url.set_path(&path);
        // A second installation fails because there is a provider already, which is fine.
        drop(rustls::crypto::ring::default_provider().install_default());
        let mut client = Client::builder()
            .no_proxy()
            .referer(false)
            .redirect(reqwest::redirect::Policy::none())
            .connect_timeout(CONNECTED_WITHIN)
            .timeout(ANSWERED_WITHIN)
            .user_agent(concat!("highwater/", env!("CARGO_PKG_VERSION")));
        if url.scheme() == "http" {
            // Without TLS no certificates are needed, so it works on a machine that has none.
            let trusts_nobody =
                rustls::ClientConfig::builder().with_root_certificates(rustls::RootCertStore::empty()).with_no_client_auth();
            client = client.tls_backend_preconfigured(trusts_nobody);
        }
        Ok(Self { key, url, client: client.build().map_err(WitnessError::Client)? })
    }

    /// The name of the witness.
    #[must_use]
    pub fn name(&self) -> &str {
        self.key.name()
    }

    /// Submits a checkpoint.
    ///
    /// # Errors
    /// The reason for the operator, if the answer cannot be used.
    async fn submit(&self, request: &AddCheckpoint<'_>) -> Result<Answer, String> {
        let unanswered = |error: reqwest::Error| reason(&error.without_url());
        let sent = self.client.post(self.url.clone()).header(CONTENT_TYPE, "text/plain; charset=utf-8").body(request.body()).send().await;
        let mut answer = sent.map_err(unanswered)?;
        let status = answer.status().as_u16();
        let mut bytes = Vec::new();
        while let Some(piece) = answer.chunk().await.map_err(unanswered)? {
            bytes.extend_from_slice(&piece);
            if bytes.len() > ANSWER_BYTES_MAX {
                return Err(format!("its answer is longer than {ANSWER_BYTES_MAX} bytes"));
            }
        }
        let text = String::from_utf8(bytes).map_err(|_| "its answer is not UTF-8".to_owned())?;
        match status {
            200 => Ok(Answer::Lines(text)),
            409 => Ok(Answer::Conflict(text.strip_suffix('\n').and_then(decimal))),
            403 => Err("it answered 403: it does not know the key that signs this log".to_owned()),
            404 => Err("it answered 404: it does not know this log's origin".to_owned()),
            422 => Err("it answered 422: the checkpoint does not continue the one that it cosigned last".to_owned()),
            _ => Err(format!("it answered {status}")),
        }
    }

    /// The cosignature in an answer; `None` if it has no valid cosignature of this witness. Signatures of other keys are ignored.
    pub(super) fn cosignature(&self, note: &str, size: u64, lines: &str) -> Option<Cosignature> {
        let text = SignedNote::parse(note)?.text();
        let Signed::Valid { line, time_s } = SignedNote::of_lines(text, lines)?.signed_by(&self.key) else { return None };
        Some(Cosignature { note: note.to_owned(), size, line: line.to_owned(), time_s })
    }

    /// Asks the witness to cosign a checkpoint. `known` is the size that it cosigned last, as far as this process knows.
    ///
    /// # Errors
    /// The reason for the operator, if it did not cosign.
    pub(super) async fn cosign(
        &self,
        ctx: &Context,
        tree: &dyn SignedTree,
        sealed: &SignedCheckpoint,
        known: u64,
    ) -> Result<Cosignature, String> {
        let size = sealed.size;
        // A witness that cosigned a larger tree says so in its answer.
        let mut old = if known <= size { known } else { 0 };
        for _ in 0..2 {
            let proof = if old == 0 || old == size {
                Vec::new()
            } else {
                let failed = |problem: Problem| problem.detail;
                let tree = tree.open(ctx).await.map_err(failed)?;
                tree.consistency(size, old).await.map_err(failed)?.ok_or("the tree lacks a hash")?
            };
            match self.submit(&AddCheckpoint { old, proof, note: &sealed.note }).await? {
                Answer::Lines(lines) => {
                    return self.cosignature(&sealed.note, size, &lines).ok_or_else(|| "its answer holds no valid cosignature".to_owned());
                }
                Answer::Conflict(Some(actual)) if actual > size => {
                    return Err(format!("it cosigned a tree of {actual} leaves, and this log's newest checkpoint has {size}"));
                }
                Answer::Conflict(Some(actual)) if actual != old => old = actual,
                Answer::Conflict(_) => return Err(format!("it answered 409: it cosigned another tree of {old} leaves")),
            }
        }
        Err("it answered 409 twice: other checkpoints of this log are submitted at the same time".to_owned())
    }
}

#[cfg(test)]
#[path = "remote_tests.rs"]
mod tests;
