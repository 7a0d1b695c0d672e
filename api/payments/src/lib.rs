//! Payments by x402: terms that an answer is sold under, what a buyer signs, and what becomes of it.
//!
//! Promises: terms are made from our own price table alone, and what a payload says of them is compared, never believed; a payment buys one
//! answer, and the same payment for the same request gets the same answer again; a transfer on the chain pays for one payment; no settled payment
//! is without its answer, whatever fails in between; what the chain says of a payment stands above what anybody else says; a payment that the
//! facilitator refuses at once leaves nothing behind, and is limited by address and by payer.
//!
//! ```text
//! [unpaid]
//!    | recover the signer, admit by address and payer, verify with the facilitator
//!    |    `-- refused, or too many: 402, 429, and nothing is recorded
//!    v                settle                 the chain has the transfer
//! claimed ---------------------> settled <------------------------------- claimed, refused
//!    |  \                                                                    |
//!    |   `-- the facilitator does not settle it --> refused                  | can no longer be settled, its nonce paid for something else,
//!    `-- nobody knows yet: 503; sent again, or looked up on the chain        | or its transfer paid for another payment
//!        once its time is over                                               v
//!                                                                          lapsed
//! ```
//! States are changes of the view `payments`. A write takes effect where `settled` is decided, so that no step comes between.

pub mod chain;
pub mod facilitator;
mod http;
mod readers;
pub mod sale;
pub mod signed;
pub mod terms;
mod verifications;
pub mod watch;

use std::collections::HashSet;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use operation::context::Part;

use self::chain::Chain;
use self::facilitator::Facilitator;
use self::readers::Readers;
use self::terms::{NETWORKS, Network, SCHEME, Till, Version};
use self::verifications::Verifications;

/// `[payments]`, as it is configured.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Settings {
    /// Who verifies and settles.
    pub facilitator_url: String,
    /// Who is paid: `0x` and 40 hex digits. Empty: nothing is sold.
    pub pay_to: String,
    /// Name of the network.
    pub network: String,
    /// Address of the token; empty for the network's USDC.
    pub asset: String,
    /// A node of the chain. Empty: a facilitator is believed.
    pub rpc_url: String,
}

/// A setting that cannot be used.
#[derive(Debug, thiserror::Error)]
#[error("payments.{field}: {reason}")]
pub struct SettingError {
    /// Which one.
    pub field: &'static str,
    /// Why.
    pub reason: String,
}

/// How long a start waits for what the facilitator settles.
const ASKED_WITHIN: Duration = Duration::from_secs(5);

/// What payments go through.
#[derive(Default)]
pub struct Payments {
    till: Option<Till>,
    facilitator: Option<Facilitator>,
    chain: Option<Chain>,
    /// Payments that this process brings forward, by id.
    turns: Arc<Mutex<HashSet<String>>>,
    readers: Readers,
    verifications: Verifications,
}

/// The turn of bringing a payment forward in this process; over when dropped.
pub(crate) struct Turn {
    id: String,
    turns: Arc<Mutex<HashSet<String>>>,
}

impl Drop for Turn {
    fn drop(&mut self) {
        self.turns.lock().unwrap_or_else(PoisonError::into_inner).remove(&self.id);
    }
}

impl Part for Payments {}

impl Payments {
    /// Payments by these settings.
    ///
    /// # Errors
    /// The first setting that cannot be used.
    pub fn new(settings: &Settings) -> Result<Self, SettingError> {
        let wrong = |field| move |reason: String| SettingError { field, reason };
        let some = |text: &str| Some(text.to_owned()).filter(|text| !text.is_empty());
        let network = NETWORKS.into_iter().find(|network| network.name == settings.network).ok_or_else(|| {
            let names = NETWORKS.map(|network| network.name);
            let hint = schemas::names::hint(&settings.network, names);
            wrong("network")(format!("{} is none of {}{hint}", settings.network, names.join(", ")))
        })?;
        let address = |field, text: &str| match signed::address_of(text) {
            Some(_) => Ok(text.to_owned()),
            None => Err(wrong(field)("is not 0x and 40 hex digits".to_owned())),
        };
        let asset = if settings.asset.is_empty() { network.usdc.to_owned() } else { address("asset", &settings.asset)? };
        let till = some(&settings.pay_to)
            .map(|pay_to| address("pay_to", &pay_to).map(|pay_to| Till { network, asset, pay_to, versions: Version::ALL.to_vec() }))
            .transpose()?;
        let facilitator =
            some(&settings.facilitator_url).map(|url| Facilitator::new(&url)).transpose().map_err(wrong("facilitator_url"))?;
        let chain = some(&settings.rpc_url).map(|url| Chain::new(&url, network)).transpose().map_err(wrong("rpc_url"))?;
        Ok(Self { till, facilitator, chain, ..Self::default() })
    }

    /// Asks the facilitator what it settles: nothing else is sold from here on. If it does not answer it is taken to settle all.
    ///
    /// # Errors
    /// That it does not settle what is sold here.
    pub async fn ask(&mut self) -> Result<(), SettingError> {
        let (Some(till), Some(facilitator)) = (&mut self.till, &self.facilitator) else { return Ok(()) };
        let asked = tokio::time::timeout(ASKED_WITHIN, facilitator.versions(&till.network)).await;
        match asked.unwrap_or_else(|_| Err("it does not answer in time".to_owned())) {
            Ok(versions) if versions.is_empty() => {
                let Network { name, caip, .. } = till.network;
                let reason =
                    format!("the facilitator settles no payments of scheme {SCHEME} on {name} ({caip}), by what it says at /supported");
                Err(SettingError { field: "facilitator_url", reason })
            }
            Ok(versions) => {
                till.versions = versions;
                Ok(())
            }
            Err(why) => {
                tracing::warn!(why, "it is not known what the facilitator settles: all is offered");
                Ok(())
            }
        }
    }

    /// The turn of bringing a payment forward; `None` while another caller has it. Between processes a lease decides.
    pub(crate) fn turn(&self, id: &str) -> Option<Turn> {
        let is_first = self.turns.lock().unwrap_or_else(PoisonError::into_inner).insert(id.to_owned());
        is_first.then(|| Turn { id: id.to_owned(), turns: Arc::clone(&self.turns) })
    }

    /// Whether anybody is there to settle.
    pub(crate) fn can_settle(&self) -> bool {
        self.facilitator.is_some()
    }

    /// Where money goes; `None` where nothing is sold.
    #[must_use]
    pub fn till(&self) -> Option<&Till> {
        self.till.as_ref()
    }
}
