//! Payments by x402: the terms of an offer, the signed payment, and its settlement.
//!
//! Promises: terms are built from our own price table only; what a payload says about them is compared, never trusted. A payment buys one answer, and
//! the same payment for the same request returns the same answer to its buyer again. A transfer on the chain pays for one payment. Every settled payment has
//! its answer, whatever fails in between. The chain decides over what anybody else says about a payment. A payment that the facilitator refuses
//! immediately is not recorded, and such payments are limited per address and per payer.
//!
//! ```text
//! [unpaid]
//!    | recover the signer, admit by address and payer, verify with the facilitator
//!    |    `-- refused, or too many: 402, 429, and nothing is recorded
//!    v                settle                 the chain has the transfer
//! claimed ---------------------> settled <------------------------------- claimed, refused
//!    |  \                                                                    |
//!    |   `-- the facilitator does not settle it --> refused                  | it can no longer be settled, its nonce was used for another transfer,
//!    `-- unknown: 503; sent again, or looked up on the chain                 | or its transfer pays for another payment
//!        after it expired                                                    v
//!                                                                          lapsed
//! ```
//! States are changes of the view `payments`. A write takes effect where `settled` is decided, so nothing can happen between the two.

pub mod chain;
pub mod facilitator;
pub mod goods;
mod http;
mod readers;
pub mod repeats;
pub mod sale;
pub mod settlement;
pub mod signed_payment;
pub mod terms;
mod verifications;
pub mod watch;

use std::collections::HashSet;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use operation::call_times::CallTimes;
use operation::context::Part;

use self::chain::Chain;
use self::facilitator::Facilitator;
use self::readers::Readers;
use self::terms::{NETWORKS, Network, PaymentTerms, SCHEME, VALIDITY_DEFAULT_S, Version};
use self::verifications::Verifications;

/// How often open payments are followed up by default.
const ROUND_DEFAULT: Duration = Duration::from_secs(5);

/// The settings `[payments]`.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Settings {
    /// URL of the facilitator, which verifies and settles payments.
    pub facilitator_url: String,
    /// Address of the payee: `0x` and 40 hex digits. Empty: payments are disabled.
    pub pay_to: String,
    /// Name of the network.
    pub network: String,
    /// Address of the token contract; empty for the network's USDC.
    pub asset: String,
    /// URL of a node of the chain. Empty: the facilitator's replies are trusted.
    pub rpc_url: String,
    /// How long the terms ask an authorization to be valid, in seconds, see [`terms::VALIDITY_S`].
    pub validity_s: u64,
    /// How often open payments are followed up.
    pub round: Duration,
    /// How long calls may take: requests to the facilitator and to the node of the chain have a share of the time of a paid one.
    pub call_times: CallTimes,
}

impl Default for Settings {
    fn default() -> Self {
        Self {
            facilitator_url: String::new(),
            pay_to: String::new(),
            network: String::new(),
            asset: String::new(),
            rpc_url: String::new(),
            validity_s: VALIDITY_DEFAULT_S,
            round: ROUND_DEFAULT,
            call_times: CallTimes::default(),
        }
    }
}

/// An invalid setting.
#[derive(Debug, thiserror::Error)]
#[error("payments.{field}: {reason}")]
pub struct SettingError {
    /// The name of the setting.
    pub field: &'static str,
    /// Why it is invalid.
    pub reason: String,
}

/// How long the start waits for the list of what the facilitator settles.
const SUPPORTED_TIMEOUT: Duration = Duration::from_secs(5);

/// The payment terms, and the services that verify and settle payments.
#[derive(Default)]
pub struct Payments {
    terms: Option<PaymentTerms>,
    facilitator: Option<Facilitator>,
    chain: Option<Chain>,
    /// How often changes are read, and, while payments are open, the time of the chain; `None` for the default.
    round: Option<Duration>,
    /// Ids of payments that this process is processing.
    processing: Arc<Mutex<HashSet<String>>>,
    readers: Readers,
    verifications: Verifications,
}

/// The exclusive right to process a payment in this process; released when dropped.
pub(crate) struct ProcessingGuard {
    id: String,
    processing: Arc<Mutex<HashSet<String>>>,
}

impl Drop for ProcessingGuard {
    fn drop(&mut self) {
        self.processing.lock().unwrap_or_else(PoisonError::into_inner).remove(&self.id);
    }
}

impl Part for Payments {}

impl Payments {
    /// Creates payments from settings.
    ///
    /// # Errors
    /// The first invalid setting.
    pub fn new(settings: &Settings) -> Result<Self, SettingError> {
        let invalid = |field| move |reason: String| SettingError { field, reason };
        let non_empty = |text: &str| Some(text.to_owned()).filter(|text| !text.is_empty());
        let network = NETWORKS.into_iter().find(|network| network.name == settings.network).ok_or_else(|| {
            let names = NETWORKS.map(|network| network.name);
            let hint = schemas::names::hint(&settings.network, names);
            invalid("network")(format!("{} is not one of {}{hint}", settings.network, names.join(", ")))
        })?;
        let address = |field, text: &str| match signed_payment::address_of(text) {
            Some(_) => Ok(text.to_owned()),
            None => Err(invalid(field)("is not 0x and 40 hex digits".to_owned())),
        };
        let asset = if settings.asset.is_empty() { network.usdc.to_owned() } else { address("asset", &settings.asset)? };
        let (versions, validity_s) = (Version::ALL.to_vec(), settings.validity_s);
        let terms = non_empty(&settings.pay_to)
            .map(|pay_to| address("pay_to", &pay_to).map(|pay_to| PaymentTerms { network, asset, pay_to, versions, validity_s }))
            .transpose()?;
        let times = settings.call_times;
        let facilitator = non_empty(&settings.facilitator_url).map(|url| Facilitator::new(&url, times.facilitator()));
        let facilitator = facilitator.transpose().map_err(invalid("facilitator_url"))?;
        let chain = non_empty(&settings.rpc_url).map(|url| Chain::new(&url, network, times.chain_node()));
        let chain = chain.transpose().map_err(invalid("rpc_url"))?;
        let round = Some(settings.round);
        Ok(Self { terms, facilitator, chain, round, ..Self::default() })
    }

    /// How often open payments are followed up.
    pub(crate) fn round(&self) -> Duration {
        self.round.unwrap_or(ROUND_DEFAULT)
    }

    /// Asks the facilitator which x402 versions it settles, and offers only those. If it does not answer, all versions are offered.
    ///
    /// # Errors
    /// When it settles no version on the configured network.
    pub async fn load_supported_versions(&mut self) -> Result<(), SettingError> {
        let (Some(terms), Some(facilitator)) = (&mut self.terms, &self.facilitator) else { return Ok(()) };
        let supported = tokio::time::timeout(SUPPORTED_TIMEOUT, facilitator.versions(&terms.network)).await;
        match supported.unwrap_or_else(|_| Err("the facilitator did not answer in time".to_owned())) {
            Ok(versions) if versions.is_empty() => {
                let Network { name, caip, .. } = terms.network;
                let reason =
                    format!("according to its /supported, the facilitator does not settle payments of scheme {SCHEME} on {name} ({caip})");
                Err(SettingError { field: "facilitator_url", reason })
            }
            Ok(versions) => {
                terms.versions = versions;
                Ok(())
            }
            Err(reason) => {
                tracing::warn!(reason, "the facilitator did not list what it settles, all versions are offered");
                Ok(())
            }
        }
    }

    /// Claims the right to process a payment; `None` while another caller has it. Between processes, a lease decides.
    pub(crate) fn begin_processing(&self, id: &str) -> Option<ProcessingGuard> {
        let is_first = self.processing.lock().unwrap_or_else(PoisonError::into_inner).insert(id.to_owned());
        is_first.then(|| ProcessingGuard { id: id.to_owned(), processing: Arc::clone(&self.processing) })
    }

    /// Whether a facilitator is configured.
    pub(crate) fn can_settle(&self) -> bool {
        self.facilitator.is_some()
    }

    /// The payment terms; `None` if payments are disabled.
    #[must_use]
    pub fn terms(&self) -> Option<&PaymentTerms> {
        self.terms.as_ref()
    }
}
