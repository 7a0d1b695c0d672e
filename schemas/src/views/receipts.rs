//! Receipts: what agents had certified, each agent's in a chain of its own. Public: inputs and outputs are in it by their hashes alone.

use serde::{Deserialize, Serialize};

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

/// A request to the receipt service, kept on the `receipts` topic as `data` of a fact-like envelope whose key stands for the request.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub struct ReceiptCommand {
    /// [`ISSUE`] or [`KEY`].
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
    /// [`KEY`], [`CHECKPOINT`]: the public key that signs, 64 hex digits.
    pub public_key: String,
    /// [`CHECKPOINT`]: leaves of the tree.
    pub size: i64,
    /// [`CHECKPOINT`]: the signed note.
    pub note: String,
    /// [`KEY`]: why a declared restore needed another key; empty for an ordinary rotation.
    pub reason: String,
}

impl Command for ReceiptCommand {
    const TOPIC: &'static Topic = &topics::RECEIPTS;

    fn verb(&self) -> &str {
        &self.verb
    }

    fn canonical(&self) -> Vec<u8> {
        let Self { verb, action, agent_id, inputs_hash, outputs_hash, issuer, public_key, size, note, reason } = self;
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
            .text("reason", reason)
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

    /// The id of the receipt that a request got.
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
