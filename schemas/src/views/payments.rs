//! Payments: what was signed for which answer, and what became of it. Private. No signature is kept: what is here moves no money.

use serde::{Deserialize, Serialize};

use super::records::Record;
use crate::event::Command;
use crate::facts::canonical::Canonical;
use crate::hash::{Hash32, hex};
use crate::topics::{self, Topic};

/// Takes a payment for one request, before anybody is asked to move money.
pub const CLAIM: &str = "claim";
/// The money has moved.
pub const SETTLED: &str = "settled";
/// It was refused; until it has lapsed it may be settled all the same.
pub const REFUSED: &str = "refused";
/// It can no longer be settled, and was not.
pub const LAPSED: &str = "lapsed";

/// A command about a payment, kept on the `payments` topic as `data` of a fact-like envelope whose key is the payment's id.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub struct PaymentCommand {
    /// [`CLAIM`], [`SETTLED`], [`REFUSED`] or [`LAPSED`].
    pub verb: String,
    /// The network (CAIP-2).
    pub network: String,
    /// Address of the token.
    pub asset: String,
    /// Who is paid.
    pub pay_to: String,
    /// Who pays.
    pub payer: String,
    /// The authorization's nonce.
    pub nonce: String,
    /// Smallest units of the token.
    pub amount: i64,
    /// Until when it can be settled: seconds since 1970.
    pub valid_before: i64,
    /// The service that sells.
    pub service: String,
    /// The operation.
    pub operation: String,
    /// What is sold, as the terms name it.
    pub resource: String,
    /// Hash of the request (hex): whatever else is asked for is another one.
    pub request: String,
    /// Of a read: the answer that is sold, JSON.
    pub answer: String,
    /// Of a write: the command that takes effect once the payment is settled, JSON.
    pub effect: String,
    /// [`SETTLED`]: the hash of the transaction that holds the transfer.
    pub transaction: String,
    /// [`SETTLED`]: the index of the transfer's log in its block, as the block was when it was read; `None` where only a facilitator says that it is
    /// settled.
    pub log_index: Option<i64>,
    /// [`SETTLED`]: the index of the transfer's log in the receipt of its transaction, counted from 0; `None` in commands of older versions, and where
    /// only a facilitator says that it is settled.
    pub receipt_log_index: Option<i64>,
    /// [`REFUSED`], [`LAPSED`]: why.
    pub reason: String,
}

impl Command for PaymentCommand {
    const TOPIC: &'static Topic = &topics::PAYMENTS;

    fn verb(&self) -> &str {
        &self.verb
    }

    fn canonical(&self) -> Vec<u8> {
        let Self {
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
            transaction,
            log_index,
            receipt_log_index,
            reason,
        } = self;
        let number = |number: i64| Some(number).filter(|number| *number != 0);
        Canonical::default()
            .text("verb", verb)
            .text("network", network)
            .text("asset", asset)
            .text("payTo", pay_to)
            .text("payer", payer)
            .text("nonce", nonce)
            .number("amount", number(*amount))
            .number("validBefore", number(*valid_before))
            .text("service", service)
            .text("operation", operation)
            .text("resource", resource)
            .text("request", request)
            .text("answer", answer)
            .text("effect", effect)
            .text("transaction", transaction)
            .number("logIndex", *log_index)
            .number("receiptLogIndex", *receipt_log_index)
            .text("reason", reason)
            .bytes()
    }
}

/// What became of a payment.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum State {
    /// Taken for a request; whether money moves is not known yet.
    #[default]
    Claimed,
    /// The money has moved.
    Settled,
    /// Refused; until it lapses it is looked after.
    Refused,
    /// It can no longer be settled, and was not.
    Lapsed,
}

impl State {
    /// Whether it is not known yet what becomes of the money.
    #[must_use]
    pub fn is_open(self) -> bool {
        matches!(self, Self::Claimed | Self::Refused)
    }
}

/// A payment as it stands.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub struct Payment {
    /// `pay_` and 32 hex digits, see [`id`].
    pub id: String,
    /// What became of it.
    pub state: State,
    /// The network (CAIP-2).
    pub network: String,
    /// Address of the token.
    pub asset: String,
    /// Who is paid.
    pub pay_to: String,
    /// Who pays.
    pub payer: String,
    /// The authorization's nonce.
    pub nonce: String,
    /// Smallest units of the token.
    pub amount: i64,
    /// Until when it can be settled: seconds since 1970.
    pub valid_before: i64,
    /// The service that sells.
    pub service: String,
    /// The operation.
    pub operation: String,
    /// What is sold, as the terms name it.
    pub resource: String,
    /// Hash of the request (hex).
    pub request: String,
    /// Of a write: the command that takes effect once the payment is settled, JSON.
    pub effect: String,
    /// The hash of the transaction that holds the transfer, once the payment is settled.
    pub transaction: String,
    /// The index of the transfer's log in its block, as the block was when it was read; `None` where only a facilitator says that the payment is settled.
    pub log_index: Option<i64>,
    /// Why it was refused, or has lapsed.
    pub reason: String,
    /// When it was claimed: milliseconds since 1970.
    pub claimed_at: i64,
}

/// The identity of a payment: the chain takes a nonce of a payer once.
#[must_use]
pub fn id(network: &str, asset: &str, payer: &str, nonce: &str) -> String {
    let parts = [network, asset, payer, nonce].map(str::to_ascii_lowercase);
    let hash = Hash32::of_parts(&parts.each_ref().map(String::as_bytes));
    format!("pay_{}", hex(&hash.0[..16]))
}

/// Under which key the answer that a payment bought is remembered.
#[must_use]
pub fn answer_of(id: &str) -> String {
    format!("answer/{id}")
}

/// The keys under which decisions remember which payment a transfer paid for: a transfer pays once.
///
/// The key is made of the network, the transaction, and the index of the log in the receipt of that transaction. Older versions took the index of the
/// log in the block instead, which changes when the transaction moves to another block. What they stored is still looked for, under `older_key`, so
/// that a transfer which paid before the upgrade pays for nothing else after it. Nothing new is stored under `older_key`: two transfers of one
/// transaction that moves may come to have the same one. A transaction that moves between the upgrade and the next look at it is not found under its
/// older key; a transfer is then still held to one payment by standing right after that payment's own authorization.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct TransferKeys {
    /// Where it is remembered, and looked for.
    pub key: String,
    /// Where it is only looked for; empty where the command is itself of an older version, whose key is [`Self::key`].
    pub older_key: String,
}

impl TransferKeys {
    /// Both keys, without empty ones.
    pub fn all(&self) -> impl Iterator<Item = &str> {
        [self.key.as_str(), self.older_key.as_str()].into_iter().filter(|key| !key.is_empty())
    }
}

/// The keys of the transfer that a command names; `None` unless the command is [`SETTLED`] and names one.
#[must_use]
pub fn transfer_of(command: &PaymentCommand) -> Option<TransferKeys> {
    let PaymentCommand { verb, network, transaction, log_index, receipt_log_index, .. } = command;
    if verb != SETTLED {
        return None;
    }
    let transaction = transaction.to_ascii_lowercase();
    let in_block = log_index.map(|index| format!("transfer/{network}/{transaction}/{index}"));
    let in_receipt = receipt_log_index.map(|index| format!("transfer/{network}/{transaction}/receipt/{index}"));
    match in_receipt {
        Some(key) => Some(TransferKeys { key, older_key: in_block.unwrap_or_default() }),
        None => in_block.map(|key| TransferKeys { key, older_key: String::new() }),
    }
}

impl Record for Payment {
    fn id(&self) -> &str {
        &self.id
    }
}

crate::record_tables!("payments");
