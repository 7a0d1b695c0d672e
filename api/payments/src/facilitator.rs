//! The facilitator: who checks a signed payment against the chain, and brings it there.

use std::time::Duration;

use serde::Deserialize;
use serde_json::{Value, json};

use super::http::{Endpoint, Error};
use super::signed::Signed;
use super::terms::{Network, Offer, SCHEME, Till, Version};

/// How long it may take to settle: some blocks.
const ANSWER_MAX: Duration = Duration::from_secs(30);
/// The largest answer read, in bytes.
const ANSWER_BYTES_MAX: usize = 1 << 20;
/// Characters of its reasons that are kept.
const REASON_CHARS_MAX: usize = 200;

/// A client of one facilitator.
pub struct Facilitator(Endpoint);

/// What it says.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Said {
    /// Yes; once settled, with the hash of the transfer.
    Yes(String),
    /// No, and why. Nothing rests on the words: they are nobody's standard.
    No(String),
    /// Nothing that helps, and why: the payment may be settled or not.
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
    /// A client of the facilitator at an address.
    ///
    /// # Errors
    /// Why the address cannot be used.
    pub fn new(url: &str) -> Result<Self, String> {
        Endpoint::new(url, ANSWER_MAX, ANSWER_BYTES_MAX).map(Self)
    }

    /// In which versions it settles on a network.
    ///
    /// # Errors
    /// Why it does not say.
    pub async fn versions(&self, network: &Network) -> Result<Vec<Version>, String> {
        let (status, answer) = self.0.get("/supported").await.map_err(|error| words(&error))?;
        if status != 200 {
            return Err(format!("it answers with status {status}"));
        }
        let Supported { kinds } =
            Supported::deserialize(&answer).map_err(|_| format!("its answer (status {status}) says nothing of what it settles"))?;
        let settles = |version: &Version| {
            let name = network.name_in(*version);
            kinds.iter().any(|kind| (kind.x402_version, kind.scheme.as_str(), kind.network.as_str()) == (version.number(), SCHEME, name))
        };
        Ok(Version::ALL.into_iter().filter(settles).collect())
    }

    /// Whether a payment could be settled.
    pub async fn verify(&self, till: &Till, offer: &Offer, signed: &Signed) -> Said {
        let said: Result<Verified, String> = self.ask("/verify", till, offer, signed).await;
        match said {
            Ok(Verified { is_valid: true, .. }) => Said::Yes(String::new()),
            Ok(Verified { invalid_reason, .. }) => Said::No(reason(invalid_reason)),
            Err(why) => Said::Unknown(why),
        }
    }

    /// Settles a payment.
    pub async fn settle(&self, till: &Till, offer: &Offer, signed: &Signed) -> Said {
        let said: Result<Settled, String> = self.ask("/settle", till, offer, signed).await;
        match said {
            Ok(Settled { success: true, transaction, .. }) => Said::Yes(reason(transaction)),
            Ok(Settled { error_reason, transaction, .. }) => {
                let reason = reason(error_reason);
                // Handed in, not in a block yet.
                let is_pending = reason.contains("pending") || transaction.is_some_and(|transaction| !transaction.is_empty());
                if is_pending { Said::Unknown(reason) } else { Said::No(reason) }
            }
            Err(why) => Said::Unknown(why),
        }
    }

    async fn ask<T: for<'a> Deserialize<'a>>(&self, path: &str, till: &Till, offer: &Offer, signed: &Signed) -> Result<T, String> {
        let body = json!({
            "x402Version": signed.version.number(),
            "paymentPayload": signed.payload,
            "paymentRequirements": till.requirements(signed.version, offer),
        });
        let (status, answer): (u16, Value) = self.0.post(path, &body).await.map_err(|error| words(&error))?;
        T::deserialize(&answer).map_err(|_| format!("its answer (status {status}) says nothing of the payment"))
    }
}

/// What is told of an error.
fn words(error: &Error) -> String {
    tracing::warn!(error = schemas::reason::reason(error), "the facilitator gave no answer");
    error.to_string()
}

/// Its words, short and plain.
fn reason(said: Option<String>) -> String {
    said.unwrap_or_default().chars().filter(|character| !character.is_control()).take(REASON_CHARS_MAX).collect()
}
