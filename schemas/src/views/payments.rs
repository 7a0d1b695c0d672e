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
    /// [`SETTLED`]: the index of the transfer's log in its block; `None` where only a facilitator says that it is settled.
    pub log_index: Option<i64>,
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
    /// The index of the transfer's log in its block; `None` where only a facilitator says that the payment is settled.
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

/// The key under which decisions remember which payment a transfer paid for: a transfer, by network, transaction and log index, pays once.
/// `None` unless the command is [`SETTLED`] and names the transfer.
#[must_use]
pub fn transfer_of(command: &PaymentCommand) -> Option<String> {
    let PaymentCommand { verb, network, transaction, log_index, .. } = command;
    let log_index = log_index.filter(|_| verb == SETTLED)?;
    Some(format!("transfer/{network}/{}/{log_index}", transaction.to_ascii_lowercase()))
}

impl Record for Payment {
    fn id(&self) -> &str {
        &self.id
    }
}

crate::record_tables!("payments");
