//! The commands on the `receipts` topic.

use serde::{Deserialize, Serialize};

use super::SignedCheckpoint;
use crate::event::Command;
use crate::topics::{self, Topic};

/// A command on the `receipts` topic: the `data` of an envelope in the shape of a fact, whose key identifies the request.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(from = "StoredCommand", into = "StoredCommand")]
pub enum ReceiptCommand {
    /// Issues a receipt.
    Issue(IssueRequest),
    /// Publishes a signed checkpoint of the tree of receipts.
    Checkpoint(SignedCheckpoint),
    /// Names the key that signs from now on.
    Key {
        /// The public key, 64 hex digits.
        public_key: String,
        /// Why a declared restore required a new key; empty for an ordinary rotation.
        reason: String,
    },
    /// Records in the log which memory the signer has of a key. A process that finds no memory of that key, or another one, may not sign.
    Memory {
        /// The public key that the memory belongs to, 64 hex digits.
        public_key: String,
        /// The id of the signer's memory of the key.
        memory: String,
    },
    /// Changes who may append to a chain. Only the owner's command has an effect.
    Writer(WriterRequest),
    /// Names the owner of a chain without an owner: one from before chains had owners, or one without receipts. Operators send it.
    AssignOwner {
        /// The agent of the chain.
        agent_id: String,
        /// The owner: the id of an account, or a payer's address in lower case.
        owner: String,
    },
    /// A command of a newer version, which this version cannot apply.
    Unknown {
        /// Its verb.
        verb: String,
    },
}

/// A request for a receipt.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct IssueRequest {
    /// Name of the action.
    pub action: String,
    /// The agent to whose chain the receipt belongs.
    pub agent_id: String,
    /// Commitment to the inputs. In commands of versions without `metadata_hash`, to the inputs and the metadata.
    pub inputs_hash: String,
    /// Commitment to the outputs.
    pub outputs_hash: String,
    /// Commitment to the metadata; `None` without metadata, and in commands of older versions.
    pub metadata_hash: Option<String>,
    /// Base address of the service that received the request.
    pub issuer: String,
    /// The caller, as the id of an account or a payer's address in lower case; empty in commands of versions without owners.
    pub caller: String,
}

/// A request about who may append to a chain.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct WriterRequest {
    /// Whether the writer is added or removed.
    pub change: WriterChange,
    /// The agent of the chain.
    pub agent_id: String,
    /// The account that sent the request.
    pub caller: String,
    /// The account or payer whose permission changes.
    pub writer: String,
}

/// What happens to the permission of a writer.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum WriterChange {
    /// The writer may append from now on.
    Add,
    /// The writer may no longer append.
    Remove,
}

impl Command for ReceiptCommand {
    const TOPIC: &'static Topic = &topics::RECEIPTS;

    fn verb(&self) -> &str {
        match self {
            Self::Issue(_) => "issue",
            Self::Checkpoint(_) => "checkpoint",
            Self::Key { .. } => "key",
            Self::Memory { .. } => "memory",
            Self::Writer(WriterRequest { change: WriterChange::Add, .. }) => "add_writer",
            Self::Writer(WriterRequest { change: WriterChange::Remove, .. }) => "remove_writer",
            Self::AssignOwner { .. } => "assign_owner",
            Self::Unknown { verb } => verb,
        }
    }
}

/// The stored form of a command: one record with the fields of all commands. 0 and `""` mean none.
#[derive(Clone, Debug, Default, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", default)]
struct StoredCommand {
    verb: String,
    action: String,
    agent_id: String,
    inputs_hash: String,
    outputs_hash: String,
    issuer: String,
    public_key: String,
    size: u64,
    note: String,
    /// The owner, in a command that assigns one.
    caller: String,
    writer: String,
    reason: String,
    memory: String,
    #[serde(skip_serializing_if = "Option::is_none")]
    metadata_hash: Option<String>,
}

impl From<StoredCommand> for ReceiptCommand {
    fn from(stored: StoredCommand) -> Self {
        let StoredCommand { verb, action, agent_id, inputs_hash, outputs_hash, issuer, public_key, size, note, .. } = stored;
        let StoredCommand { caller, writer, reason, memory, metadata_hash, .. } = stored;
        let change = match verb.as_str() {
            "issue" => return Self::Issue(IssueRequest { action, agent_id, inputs_hash, outputs_hash, metadata_hash, issuer, caller }),
            "checkpoint" => return Self::Checkpoint(SignedCheckpoint { size, note, public_key_hex: public_key }),
            "key" => return Self::Key { public_key, reason },
            "memory" => return Self::Memory { public_key, memory },
            "assign_owner" => return Self::AssignOwner { agent_id, owner: caller },
            "add_writer" => WriterChange::Add,
            "remove_writer" => WriterChange::Remove,
            _ => return Self::Unknown { verb },
        };
        Self::Writer(WriterRequest { change, agent_id, caller, writer })
    }
}

impl From<ReceiptCommand> for StoredCommand {
    fn from(command: ReceiptCommand) -> Self {
        let stored = Self { verb: command.verb().to_owned(), ..Self::default() };
        match command {
            ReceiptCommand::Issue(IssueRequest { action, agent_id, inputs_hash, outputs_hash, metadata_hash, issuer, caller }) => {
                Self { action, agent_id, inputs_hash, outputs_hash, metadata_hash, issuer, caller, ..stored }
            }
            ReceiptCommand::Checkpoint(SignedCheckpoint { size, note, public_key_hex }) => {
                Self { public_key: public_key_hex, size, note, ..stored }
            }
            ReceiptCommand::Key { public_key, reason } => Self { public_key, reason, ..stored },
            ReceiptCommand::Memory { public_key, memory } => Self { public_key, memory, ..stored },
            ReceiptCommand::Writer(WriterRequest { change: _, agent_id, caller, writer }) => Self { agent_id, caller, writer, ..stored },
            ReceiptCommand::AssignOwner { agent_id, owner } => Self { agent_id, caller: owner, ..stored },
            ReceiptCommand::Unknown { .. } => stored,
        }
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;
    use crate::views::testing::assert_own_fields;

    /// Proves that each command keeps its own fields in the stored form, and that each of these is hashed.
    #[test]
    fn commands_are_stored_with_their_fields() {
        for (verb, own) in [
            ("issue", "action agentId inputsHash outputsHash metadataHash issuer caller"),
            ("checkpoint", "publicKey size note"),
            ("key", "publicKey reason"),
            ("memory", "publicKey memory"),
            ("add_writer", "agentId caller writer"),
            ("remove_writer", "agentId caller writer"),
            ("assign_owner", "agentId caller"),
            ("dance", ""),
        ] {
            let whole = json!({
                "verb": verb, "action": "a", "agentId": "g", "inputsHash": "i", "outputsHash": "o", "issuer": "s", "publicKey": "p", "size": 3,
                "note": "n", "caller": "c", "writer": "w", "reason": "r", "memory": "m", "metadataHash": "h"
            });
            assert_own_fields::<ReceiptCommand>(&whole, &own.split(' ').collect::<Vec<_>>());
        }
        assert!(serde_json::from_value::<ReceiptCommand>(json!({ "verb": "checkpoint", "size": -1 })).is_err());
    }

    /// Proves that the text of a paid request is the one that earlier versions wrote: it is stored with the payment.
    #[test]
    fn paid_requests_are_written_as_before() {
        let issue = ReceiptCommand::Issue(IssueRequest { action: "a".to_owned(), agent_id: "g".to_owned(), ..IssueRequest::default() });
        let text = r#"{"verb":"issue","action":"a","agentId":"g","inputsHash":"","outputsHash":"","issuer":"","publicKey":"","size":0,"note":"","caller":"","writer":"","reason":"","memory":""}"#;
        assert_eq!(serde_json::to_string(&issue).unwrap(), text);
    }
}
