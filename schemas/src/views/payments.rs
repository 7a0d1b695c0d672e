//! Payments: what was signed for which answer, and the outcome. Private. Signatures are not stored, so that these rows cannot move money.

use serde::{Deserialize, Serialize};

use super::records::Record;
use crate::details::{ChangeRecord, NoDetails};
use crate::event::Command;
use crate::topics::{self, Topic};
use proofs::hash::{Hash32, hex};

/// A command on the `payments` topic: the `data` of an envelope in the shape of a fact, whose key is the id of the payment.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(from = "StoredCommand", into = "StoredCommand")]
pub enum PaymentCommand {
    /// Claims a payment for one request, before a facilitator moves money.
    Claim(Box<Claim>),
    /// The money has moved.
    Settled(Box<Settlement>),
    /// The payment was refused. Until it lapses it may still be settled.
    Refused {
        /// The reason.
        reason: String,
    },
    /// The payment was not settled and can no longer be.
    Lapsed {
        /// The reason.
        reason: String,
    },
    /// A command of a newer version, which this version cannot apply.
    Unknown {
        /// Its verb.
        verb: String,
    },
}

/// A claim of a payment for one request.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Claim {
    /// The network, as a CAIP-2 id.
    pub network: String,
    /// Address of the token contract.
    pub asset: String,
    /// Address of the recipient.
    pub pay_to: String,
    /// Address of the payer.
    pub payer: String,
    /// The nonce of the payer's authorization.
    pub nonce: String,
    /// The amount in the smallest unit of the token.
    pub amount: i64,
    /// When the authorization expires: seconds since 1970.
    pub valid_before: i64,
    /// The service that sells the answer.
    pub service: String,
    /// The name of the operation.
    pub operation: String,
    /// The resource that is sold, as the payment terms name it.
    pub resource: String,
    /// Hash of the request (hex). A different request has a different hash.
    pub request: String,
    /// For a read: the answer that is sold, JSON.
    pub answer: String,
    /// For a write: the command that takes effect once the payment is settled, JSON.
    pub effect: String,
}

/// The settlement of a claimed payment.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Settlement {
    /// The network, as a CAIP-2 id.
    pub network: String,
    /// Address of the payer.
    pub payer: String,
    /// The service that sells the answer.
    pub service: String,
    /// The name of the operation.
    pub operation: String,
    /// For a write: the command that takes effect now, JSON.
    pub effect: String,
    /// The hash of the transaction that holds the transfer.
    pub transaction: String,
    /// The index of the transfer's log entry in its block, as of the time when the block was read; `None` if only a facilitator reported the
    /// settlement.
    pub log_index: Option<i64>,
    /// The index of the transfer's log entry in the receipt of its transaction, counted from 0; `None` in commands of older versions, and if only a
    /// facilitator reported the settlement.
    pub receipt_log_index: Option<i64>,
}

impl Command for PaymentCommand {
    const TOPIC: &'static Topic = &topics::PAYMENTS;

    fn verb(&self) -> &str {
        match self {
            Self::Claim(_) => "claim",
            Self::Settled(_) => "settled",
            Self::Refused { .. } => "refused",
            Self::Lapsed { .. } => "lapsed",
            Self::Unknown { verb } => verb,
        }
    }
}

/// The stored form of a command: one record with the fields of all commands. 0 and `""` mean none.
#[derive(Clone, Debug, Default, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", default)]
struct StoredCommand {
    verb: String,
    network: String,
    asset: String,
    pay_to: String,
    payer: String,
    nonce: String,
    amount: i64,
    valid_before: i64,
    service: String,
    operation: String,
    resource: String,
    request: String,
    answer: String,
    effect: String,
    transaction: String,
    log_index: Option<i64>,
    receipt_log_index: Option<i64>,
    reason: String,
}

impl From<StoredCommand> for PaymentCommand {
    fn from(stored: StoredCommand) -> Self {
        let StoredCommand { verb, network, asset, pay_to, payer, nonce, amount, valid_before, service, operation, resource, .. } = stored;
        let StoredCommand { request, answer, effect, transaction, log_index, receipt_log_index, reason, .. } = stored;
        match verb.as_str() {
            "claim" => Self::Claim(Box::new(Claim {
                network,
                asset,
                pay_to,
                payer,
                nonce,
                amount,
                valid_before,
                service,
                operation,
                resource,
                request,
                answer,
                effect,
            })),
            "settled" => Self::Settled(Box::new(Settlement {
                network,
                payer,
                service,
                operation,
                effect,
                transaction,
                log_index,
                receipt_log_index,
            })),
            "refused" => Self::Refused { reason },
            "lapsed" => Self::Lapsed { reason },
            _ => Self::Unknown { verb },
        }
    }
}

impl From<PaymentCommand> for StoredCommand {
    fn from(command: PaymentCommand) -> Self {
        let verb = command.verb().to_owned();
        match command {
            PaymentCommand::Claim(claim) => {
                let Claim { network, asset, pay_to, payer, nonce, amount, valid_before, service, operation, resource, .. } = *claim;
                let (request, answer, effect) = (claim.request, claim.answer, claim.effect);
                Self {
                    verb,
                    network,
                    asset,
                    pay_to,
                    payer,
                    nonce,
                    amount,
                    valid_before,
                    service,
                    operation,
                    resource,
                    request,
                    answer,
                    effect,
                    ..Self::default()
                }
            }
            PaymentCommand::Settled(settlement) => {
                let Settlement { network, payer, service, operation, effect, transaction, log_index, receipt_log_index } = *settlement;
                Self { verb, network, payer, service, operation, effect, transaction, log_index, receipt_log_index, ..Self::default() }
            }
            PaymentCommand::Refused { reason } | PaymentCommand::Lapsed { reason } => Self { verb, reason, ..Self::default() },
            PaymentCommand::Unknown { .. } => Self { verb, ..Self::default() },
        }
    }
}

/// The state of a payment.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum State {
    /// Claimed for a request; whether money moves is not known yet.
    #[default]
    Claimed,
    /// The money has moved.
    Settled,
    /// Refused; the engine keeps checking for a settlement until the payment lapses.
    Refused,
    /// The payment was not settled and can no longer be.
    Lapsed,
}

impl State {
    /// Whether it is not known yet whether the money moves.
    #[must_use]
    pub fn is_open(self) -> bool {
        matches!(self, Self::Claimed | Self::Refused)
    }
}

/// The current state of a payment.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub struct Payment {
    /// Id of the payment: `pay_` and 32 hex digits, see [`id`].
    pub id: String,
    /// The state of the payment.
    pub state: State,
    /// The network, as a CAIP-2 id.
    pub network: String,
    /// Address of the token contract.
    pub asset: String,
    /// Address of the recipient.
    pub pay_to: String,
    /// Address of the payer.
    pub payer: String,
    /// The nonce of the payer's authorization.
    pub nonce: String,
    /// The amount in the smallest unit of the token.
    pub amount: i64,
    /// When the authorization expires: seconds since 1970.
    pub valid_before: i64,
    /// The service that sells the answer.
    pub service: String,
    /// The name of the operation.
    pub operation: String,
    /// The resource that is sold, as the payment terms name it.
    pub resource: String,
    /// Hash of the request (hex).
    pub request: String,
    /// For a write: the command that takes effect once the payment is settled, JSON.
    pub effect: String,
    /// The hash of the transaction that holds the transfer, once the payment is settled.
    pub transaction: String,
    /// The index of the transfer's log entry in its block, as of the time when the block was read; `None` if only a facilitator reported the
    /// settlement.
    pub log_index: Option<i64>,
    /// Why the payment was refused or has lapsed.
    pub reason: String,
    /// When the payment was claimed: milliseconds since 1970.
    pub claimed_at: i64,
}

/// Returns the id of a payment. A token contract accepts each nonce of a payer once, so that these four parts identify it.
#[must_use]
pub fn id(network: &str, asset: &str, payer: &str, nonce: &str) -> String {
    let parts = [network, asset, payer, nonce].map(str::to_ascii_lowercase);
    let hash = Hash32::of_parts(&parts.each_ref().map(String::as_bytes));
    format!("pay_{}", hex(&hash.0[..16]))
}

/// Returns the key of the decision row with the answer that a payment bought.
#[must_use]
pub fn answer_key(id: &str) -> String {
    format!("answer/{id}")
}

/// The keys of the decision rows that record which payment a transfer paid for. A transfer pays once.
///
/// The key consists of the network, the transaction, and the index of the log entry in the receipt of that transaction. Older versions used the
/// index of the log entry in the block instead, which changes when the transaction moves to another block. Rows of older versions are still
/// looked up, under `older_key`, so that a transfer which paid before the upgrade pays for nothing else after it. Nothing is stored under
/// `older_key`, because two transfers of a transaction that moves may have the same one. A transaction that moves between the upgrade and the
/// next time it is read is not found under its older key; such a transfer still pays for one payment only, because it must directly follow that
/// payment's own authorization.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct TransferKeys {
    /// The key that is stored and looked up.
    pub key: String,
    /// A key that is only looked up; empty if the command is of an older version, whose key is [`Self::key`].
    pub older_key: String,
}

impl TransferKeys {
    /// Returns both keys, without empty ones.
    pub fn all(&self) -> impl Iterator<Item = &str> {
        [self.key.as_str(), self.older_key.as_str()].into_iter().filter(|key| !key.is_empty())
    }
}

/// Returns the keys of the transfer of a settlement; `None` if it does not name one.
#[must_use]
pub fn transfer_keys(settlement: &Settlement) -> Option<TransferKeys> {
    let Settlement { network, transaction, log_index, receipt_log_index, .. } = settlement;
    let transaction = transaction.to_ascii_lowercase();
    let in_block = log_index.map(|index| format!("transfer/{network}/{transaction}/{index}"));
    let in_receipt = receipt_log_index.map(|index| format!("transfer/{network}/{transaction}/receipt/{index}"));
    match in_receipt {
        Some(key) => Some(TransferKeys { key, older_key: in_block.unwrap_or_default() }),
        None => in_block.map(|key| TransferKeys { key, older_key: String::new() }),
    }
}

impl ChangeRecord for Payment {
    type Details = NoDetails;
}

impl Record for Payment {
    fn id(&self) -> &str {
        &self.id
    }
}

crate::record_tables!("payments");

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;
    use crate::views::testing::assert_own_fields;

    /// Proves that each command keeps its own fields in the stored form, and that each of these is hashed.
    #[test]
    fn commands_are_stored_with_their_fields() {
        let claim = "network asset payTo payer nonce amount validBefore service operation resource request answer effect";
        let settled = "network payer service operation effect transaction logIndex receiptLogIndex";
        for (verb, own) in [("claim", claim), ("settled", settled), ("refused", "reason"), ("lapsed", "reason"), ("dance", "")] {
            let whole = json!({
                "verb": verb, "network": "n", "asset": "a", "payTo": "p", "payer": "q", "nonce": "o", "amount": 1, "validBefore": 2, "service": "s",
                "operation": "r", "resource": "u", "request": "t", "answer": "w", "effect": "e", "transaction": "x", "logIndex": 0,
                "receiptLogIndex": 0, "reason": "why"
            });
            assert_own_fields::<PaymentCommand>(&whole, &own.split(' ').collect::<Vec<_>>());
        }
    }
}
