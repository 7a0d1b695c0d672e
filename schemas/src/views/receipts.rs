//! Receipts: what agents had certified, each agent's in a chain of its own. Public: inputs and outputs are in it by their hashes alone.

use serde::{Deserialize, Serialize};

use super::payments::TransferKeys;
use super::records::Record;
use crate::event::Command;
use crate::facts::canonical::Canonical;
use crate::receipt::Receipt;
use crate::topics::{self, Topic};

/// Issues a receipt.
pub const ISSUE: &str = "issue";
/// Names a tree that was read back and signed.
pub const CHECKPOINT: &str = "checkpoint";
/// Names the key that signs from here on.
pub const KEY: &str = "key";
/// Says in the log which memory the signer has of a key: who finds no memory of that key, or another one, may not sign.
pub const MEMORY: &str = "memory";
/// Lets a further account or payer append to a chain. Only the owner's command counts.
pub const ADD_WRITER: &str = "add_writer";
/// Takes that permission back. Only the owner's command counts.
pub const REMOVE_WRITER: &str = "remove_writer";
/// Names the owner of a chain that has none: one that was begun before chains had owners, or one without receipts. Operators send it.
pub const ASSIGN_OWNER: &str = "assign_owner";
/// Reserves a place in a chain for a payment that was claimed. Never on the topic of receipts: it is read from a claim on the topic of payments.
pub const RESERVE: &str = "reserve";
/// Ends the reservation of a payment that has lapsed. Never on the topic of receipts: it is read from the topic of payments.
pub const RELEASE: &str = "release";

/// The most accounts and payers that an owner may let append to one chain.
pub const WRITERS_PER_CHAIN_MAX: usize = 20;

/// A request to the receipt service, kept on the `receipts` topic as `data` of a fact-like envelope whose key stands for the request.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub struct ReceiptCommand {
    /// One of the constants of this module, such as [`ISSUE`] or [`KEY`].
    pub verb: String,
    /// Name of the action.
    pub action: String,
    /// Whose chain it goes into.
    pub agent_id: String,
    /// Commitment to the inputs and the metadata.
    pub inputs_hash: String,
    /// Commitment to the outputs.
    pub outputs_hash: String,
    /// Base address of the service that was asked.
    pub issuer: String,
    /// [`KEY`], [`CHECKPOINT`]: the public key that signs, 64 hex digits. [`MEMORY`]: the one that is remembered.
    pub public_key: String,
    /// [`CHECKPOINT`]: leaves of the tree.
    pub size: i64,
    /// [`CHECKPOINT`]: the signed note.
    pub note: String,
    /// [`ISSUE`], [`ADD_WRITER`], [`REMOVE_WRITER`]: who asks, the id of an account or a payer's address in lower case; empty in commands of
    /// versions before owners. [`ASSIGN_OWNER`]: the owner.
    pub caller: String,
    /// [`ADD_WRITER`], [`REMOVE_WRITER`]: the account or payer whose permission changes.
    pub writer: String,
    /// Of a receipt that was paid for: the keys of the transfer that paid, see [`super::payments::transfer_of`]; empty for none. Never stored here: they
    /// are read from the topic of payments.
    #[serde(skip)]
    pub transfer: TransferKeys,
    /// Whether it was claimed with a payment by a version that did not record callers. Never stored here, as the transfer.
    #[serde(skip)]
    pub is_older_claim: bool,
    /// [`KEY`]: why a declared restore needed another key; empty for an ordinary rotation.
    pub reason: String,
    /// [`MEMORY`]: the id of the signer's memory of the key.
    pub memory: String,
}

impl Command for ReceiptCommand {
    const TOPIC: &'static Topic = &topics::RECEIPTS;

    fn verb(&self) -> &str {
        &self.verb
    }

    fn canonical(&self) -> Vec<u8> {
        let Self { verb, action, agent_id, inputs_hash, outputs_hash, issuer, public_key, size, note, .. } = self;
        let Self { caller, writer, reason, memory, .. } = self;
        Canonical::default()
            .text("verb", verb)
            .text("action", action)
            .text("agentId", agent_id)
            .text("inputsHash", inputs_hash)
            .text("outputsHash", outputs_hash)
            .text("issuer", issuer)
            .text("publicKey", public_key)
            .number("size", Some(*size).filter(|size| *size != 0))
            .text("note", note)
            .text("caller", caller)
            .text("writer", writer)
            .text("reason", reason)
            .text("memory", memory)
            .bytes()
    }
}

impl Record for Receipt {
    fn id(&self) -> &str {
        &self.id
    }
}

/// Under which keys decisions remember.
pub mod source {
    /// The keys that sign: [`super::Signing`].
    pub const SIGNING: &str = "signing";

    /// How many leaves the tree has.
    pub const TREE: &str = "tree";
    /// The last checkpoint: [`super::Sealed`].
    pub const CHECKPOINT: &str = "checkpoint";

    /// A hash of the tree, by its place.
    #[must_use]
    pub fn hash(place: u64) -> String {
        format!("hash/{place}")
    }

    /// Which leaf a receipt is.
    #[must_use]
    pub fn leaf(id: &str) -> String {
        format!("leaf/{id}")
    }

    /// The id of the receipt that is a leaf.
    #[must_use]
    pub fn entry(index: u64) -> String {
        format!("entry/{index}")
    }

    /// The last receipt of an agent: [`super::Last`].
    #[must_use]
    pub fn agent(id: &str) -> String {
        format!("agent/{id}")
    }

    /// The id of an agent's receipt at a position.
    #[must_use]
    pub fn position(agent: &str, seq: i64) -> String {
        format!("chain/{agent}/{seq}")
    }

    /// Who may append to an agent's chain: [`super::ChainOwner`].
    #[must_use]
    pub fn owner(agent: &str) -> String {
        format!("owner/{agent}")
    }

    /// What a request or a payment has come to: [`super::RequestOutcome`].
    #[must_use]
    pub fn request(key: &str) -> String {
        format!("request/{key}")
    }
}

/// Where an agent's chain ends.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub struct Last {
    /// Position of its last receipt.
    pub seq: i64,
    /// `contentHash` of it.
    pub hash: String,
}

/// Who may append to an agent's chain. The first caller to whom a receipt of the chain is issued, or whose payment for one is claimed, owns it.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub struct ChainOwner {
    /// The owner: the id of an account, or a payer's address in lower case.
    pub owner: String,
    /// Further accounts and payers that may append, in the order in which the owner named them; at most [`WRITERS_PER_CHAIN_MAX`].
    pub writers: Vec<String>,
    /// While the chain has no receipt: how many claimed payments of the owner reserve it. The chain is free again when all of them have lapsed, unless
    /// an operator assigned it.
    pub reservations: i64,
    /// Whether an operator assigned the chain before it had a receipt: it stays the owner's.
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

/// A tree that was read back and signed.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub struct Sealed {
    /// Leaves.
    pub size: i64,
    /// The signed note.
    pub note: String,
    /// The key that signed it, 64 hex digits.
    pub public_key_hex: String,
}

/// A key that signs, or signed.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub struct PublicKey {
    /// 64 hex digits.
    pub public_key_hex: String,
    /// From when on it signs: milliseconds since 1970.
    pub since: i64,
    /// Why a declared restore needed this key; empty for the first key and for an ordinary rotation.
    #[serde(skip_serializing_if = "String::is_empty")]
    pub reason: String,
    /// The id of the signer's memory of this key; empty until there is one.
    #[serde(skip_serializing_if = "String::is_empty")]
    pub memory: String,
}

/// The keys that sign: all so far, the current one last.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub struct Signing {
    /// In the order in which they began.
    pub keys: Vec<PublicKey>,
}

impl Signing {
    /// The keys that signed the history as it is now: those named since the last declared restore, the present one last.
    #[must_use]
    pub fn since_restore(&self) -> &[PublicKey] {
        let restored = self.keys.iter().rposition(|key| !key.reason.is_empty()).unwrap_or(0);
        self.keys.get(restored..).unwrap_or_default()
    }
}

crate::record_tables!("receipts");
