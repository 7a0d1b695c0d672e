//! Receipts that agents requested, each agent's in a chain of its own. Public: inputs and outputs are represented by their hashes alone.

mod command;

use serde::{Deserialize, Serialize};

pub use self::command::{IssueRequest, ReceiptCommand, WriterChange, WriterRequest};
use super::records::Record;
use crate::details::{ChangeRecord, NoDetails};
use proofs::receipt::Receipt;

/// The subject of the commands that name the signing key.
pub const KEY: &str = "key";
/// The subject of the commands that record the memory of a signing key.
pub const MEMORY: &str = "memory";
/// The subject of the commands that publish checkpoints.
pub const CHECKPOINT: &str = "checkpoint";

/// The most further writers that an owner may permit for one chain.
pub const WRITERS_PER_CHAIN_MAX: usize = 20;

impl ChangeRecord for Receipt {
    type Details = NoDetails;
}

impl Record for Receipt {
    fn id(&self) -> &str {
        &self.id
    }
}

/// The keys of the decision state of the receipts service.
pub mod state_key {
    /// The signing keys: [`super::SigningHistory`].
    pub const SIGNING: &str = "signing";

    /// The number of leaves of the tree.
    pub const TREE: &str = "tree";
    /// The last signed checkpoint: [`super::SignedCheckpoint`].
    pub const CHECKPOINT: &str = "checkpoint";

    /// Returns the key of a hash of the tree, by its stored-hash index.
    #[must_use]
    pub fn hash(place: u64) -> String {
        format!("hash/{place}")
    }

    /// Returns the key of the leaf index of a receipt.
    #[must_use]
    pub fn leaf(id: &str) -> String {
        format!("leaf/{id}")
    }

    /// Returns the key of the receipt id of a leaf.
    #[must_use]
    pub fn entry(index: u64) -> String {
        format!("entry/{index}")
    }

    /// Returns the key of the end of an agent's chain: [`super::ChainEnd`].
    #[must_use]
    pub fn agent(id: &str) -> String {
        format!("agent/{id}")
    }

    /// Returns the key of the receipt id at a position of an agent's chain.
    #[must_use]
    pub fn position(agent: &str, seq: i64) -> String {
        format!("chain/{agent}/{seq}")
    }

    /// Returns the key of the owner of an agent's chain: [`super::ChainOwner`].
    #[must_use]
    pub fn owner(agent: &str) -> String {
        format!("owner/{agent}")
    }

    /// Whether a key names what a new receipt extends: the end or the owner of a chain, the size of the tree, the signing keys.
    #[must_use]
    pub fn is_chain_state(key: &str) -> bool {
        key.starts_with("agent/") || key.starts_with("owner/") || [TREE, SIGNING].contains(&key)
    }

    /// Returns the key of the outcome of a request or payment: [`super::RequestOutcome`].
    #[must_use]
    pub fn request(key: &str) -> String {
        format!("request/{key}")
    }
}

/// The end of an agent's chain.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub struct ChainEnd {
    /// Position of the last receipt.
    pub seq: i64,
    /// `contentHash` of the last receipt.
    pub hash: String,
    /// `issuedAt` of the last receipt; empty if it was issued before this was recorded.
    #[serde(skip_serializing_if = "String::is_empty")]
    pub issued_at: String,
}

/// Who may append to an agent's chain. Its owner is the first caller who is issued a receipt of the chain, or who claims a payment for one.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub struct ChainOwner {
    /// The owner: the id of an account, or a payer's address in lower case.
    pub owner: String,
    /// Further accounts and payers that may append, in the order in which the owner added them; at most [`WRITERS_PER_CHAIN_MAX`].
    pub writers: Vec<String>,
    /// While the chain has no receipt: how many claimed payments of the owner reserve it. The chain is free again when all of them have
    /// lapsed, unless an operator assigned it.
    pub reservations: i64,
    /// Whether an operator assigned the chain before it had a receipt. The owner then keeps the chain without reservations.
    #[serde(skip_serializing_if = "std::ops::Not::not")]
    pub is_assigned: bool,
}

impl ChainOwner {
    /// Whether a caller may append to the chain.
    #[must_use]
    pub fn permits(&self, caller: &str) -> bool {
        !caller.is_empty() && (self.owner == caller || self.writers.iter().any(|writer| writer == caller))
    }
}

/// Why a request to append to a chain is refused.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, thiserror::Error)]
#[serde(rename_all = "camelCase")]
pub enum AppendRefusal {
    /// The chain belongs to another caller, or is reserved for another caller's payment.
    #[error("its receipt chain belongs to another caller, or another caller is paying for its first receipt")]
    OwnedByAnother,
    /// The chain was begun before chains had owners, and nobody has named its owner yet.
    #[error("its receipt chain is older than the record of owners, and no operator has assigned its owner yet")]
    OwnerUnknown,
}

/// Whether a caller may append to a chain, given its owner and how many receipts it has.
///
/// # Errors
/// Why not. A command without a caller is one of an older version: it may append where no owner is known.
pub fn may_append(owner: Option<&ChainOwner>, length: i64, caller: &str) -> Result<(), AppendRefusal> {
    match owner {
        Some(owner) if owner.permits(caller) => Ok(()),
        Some(_) => Err(AppendRefusal::OwnedByAnother),
        None if length == 0 || caller.is_empty() => Ok(()),
        None => Err(AppendRefusal::OwnerUnknown),
    }
}

/// Whether a text names who can own a chain or append to it: `acct_` and 24 hex digits, or `0x` and 40 hex digits, both in lower case.
#[must_use]
pub fn is_caller(text: &str) -> bool {
    let digits = |digits: &str, count| digits.len() == count && digits.bytes().all(|byte| matches!(byte, b'0'..=b'9' | b'a'..=b'f'));
    text.strip_prefix("acct_").is_some_and(|rest| digits(rest, 24)) || text.strip_prefix("0x").is_some_and(|rest| digits(rest, 40))
}

/// What a request for a receipt, or a payment for one, has come to.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(untagged)]
pub enum RequestOutcome {
    /// The id of the receipt that was issued.
    Issued(String),
    /// A payment was claimed that may append to the chain of this agent; the receipt is issued when the payment is settled.
    Reserved {
        /// The agent id.
        reserved: String,
    },
    /// No receipt is issued.
    Refused {
        /// Why.
        refused: AppendRefusal,
    },
}

/// A signed checkpoint of the tree of receipts.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub struct SignedCheckpoint {
    /// The number of leaves.
    pub size: u64,
    /// The signed note.
    pub note: String,
    /// The public key that signed the note, 64 hex digits.
    pub public_key_hex: String,
}

/// A signing key, current or former.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub struct PublicKey {
    /// 64 hex digits.
    pub public_key_hex: String,
    /// When the key started to sign: milliseconds since 1970.
    pub since: i64,
    /// Why a declared restore required this key; empty for the first key and for an ordinary rotation.
    #[serde(skip_serializing_if = "String::is_empty")]
    pub reason: String,
    /// The id of the signer's memory of this key; empty until it is recorded.
    #[serde(skip_serializing_if = "String::is_empty")]
    pub memory: String,
}

/// The history of signing keys, the current one last.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub struct SigningHistory {
    /// All keys, in the order in which they started to sign.
    pub keys: Vec<PublicKey>,
}

impl SigningHistory {
    /// Returns the keys that signed the current history: those added since the last declared restore, the current one last.
    #[must_use]
    pub fn since_restore(&self) -> &[PublicKey] {
        let restored = self.keys.iter().rposition(|key| !key.reason.is_empty()).unwrap_or(0);
        self.keys.get(restored..).unwrap_or_default()
    }
}

crate::record_tables!("receipts");
