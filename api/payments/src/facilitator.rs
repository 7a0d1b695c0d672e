//! The facilitator: an external service that verifies signed payments and settles them on the chain.

use std::time::Duration;

use serde::Deserialize;
use serde_json::{Value, json};

use super::http::{Endpoint, Error};
use super::signed_payment::Signed;
use super::terms::{Network, Offer, PaymentTerms, SCHEME, Version};

/// The largest response, in bytes.
const RESPONSE_BYTES_MAX: usize = 1 << 20;
/// How many characters of the facilitator's reasons are used.
const REASON_CHARS_MAX: usize = 200;

/// A client of a facilitator.
pub struct Facilitator(Endpoint);

/// The reply of a facilitator.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum FacilitatorReply {
    /// The payment is valid or settled; once settled, with the hash of the transaction.
    Yes(String),
    /// The payment was refused, and why. The text is shown only; its wording is not standardized.
    No(String),
    /// No usable reply, and why: the payment may be settled or not.
    Unknown(String),
}

#[derive(Deserialize)]
struct Supported {
    kinds: Vec<Kind>,
}

#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
struct Kind {
    x402_version: u64,
    scheme: String,
    network: String,
}

#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
struct Verified {
    is_valid: bool,
    #[serde(default)]
    invalid_reason: Option<String>,
}

#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
struct Settled {
    success: bool,
    #[serde(default)]
    error_reason: Option<String>,
    #[serde(default)]
    transaction: Option<String>,
}

impl Facilitator {
    /// Creates a client of the facilitator at a URL, which may take `answer_max` for a request.
    ///
    /// # Errors
    /// Why the URL cannot be used.
    pub fn new(url: &str, answer_max: Duration) -> Result<Self, String> {
        Endpoint::new(url, answer_max, RESPONSE_BYTES_MAX).map(Self)
    }

    /// Lists the x402 versions that the facilitator settles on a network.
    ///
    /// # Errors
    /// Why the list is not available.
    pub async fn versions(&self, network: &Network) -> Result<Vec<Version>, String> {
        let (status, answer) = self.0.get("/supported").await.map_err(|error| log_error(&error))?;
        if status != 200 {
            return Err(format!("it answered with status {status}"));
        }
        let Supported { kinds } =
            Supported::deserialize(&answer).map_err(|_| format!("its answer (status {status}) does not list what it settles"))?;
        let settles = |version: &Version| {
            let name = network.name_in(*version);
            kinds.iter().any(|kind| (kind.x402_version, kind.scheme.as_str(), kind.network.as_str()) == (version.number(), SCHEME, name))
        };
        Ok(Version::ALL.into_iter().filter(settles).collect())
    }

    /// Asks whether a payment could be settled.
    pub async fn verify(&self, terms: &PaymentTerms, offer: &Offer, signed: &Signed) -> FacilitatorReply {
        let reply: Result<Verified, String> = self.request("/verify", terms, offer, signed).await;
        match reply {
            Ok(Verified { is_valid: true, .. }) => FacilitatorReply::Yes(String::new()),
            Ok(Verified { invalid_reason, .. }) => FacilitatorReply::No(sanitize(invalid_reason)),
            Err(reason) => FacilitatorReply::Unknown(reason),
        }
    }

    /// Settles a payment.
    pub async fn settle(&self, terms: &PaymentTerms, offer: &Offer, signed: &Signed) -> FacilitatorReply {
        let reply: Result<Settled, String> = self.request("/settle", terms, offer, signed).await;
        match reply {
            Ok(Settled { success: true, transaction, .. }) => FacilitatorReply::Yes(sanitize(transaction)),
            Ok(Settled { error_reason, transaction, .. }) => {
                let reason = sanitize(error_reason);
                // Submitted to the chain, but not in a block yet.
                let is_pending = reason.contains("pending") || transaction.is_some_and(|transaction| !transaction.is_empty());
                if is_pending { FacilitatorReply::Unknown(reason) } else { FacilitatorReply::No(reason) }
            }
            Err(reason) => FacilitatorReply::Unknown(reason),
        }
    }

    async fn request<T: for<'a> Deserialize<'a>>(
        &self,
        path: &str,
        terms: &PaymentTerms,
        offer: &Offer,
        signed: &Signed,
    ) -> Result<T, String> {
        let body = json!({
            "x402Version": signed.version.number(),
            "paymentPayload": signed.payload,
            "paymentRequirements": terms.requirements(signed.version, offer),
        });
        let (status, answer): (u16, Value) = self.0.post(path, &body).await.map_err(|error| log_error(&error))?;
        T::deserialize(&answer).map_err(|_| format!("its answer (status {status}) cannot be understood"))
    }
}

/// Logs an error and returns its message.
fn log_error(error: &Error) -> String {
    tracing::warn!(error = schemas::reason::reason(error), "a request to the facilitator failed");
    error.to_string()
}

/// Shortens a text of the facilitator and removes control characters.
fn sanitize(text: Option<String>) -> String {
    text.unwrap_or_default().chars().filter(|character| !character.is_control()).take(REASON_CHARS_MAX).collect()
}
