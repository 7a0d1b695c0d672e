//! The chain's own record of a payment, over the JSON-RPC of a node: whether its authorization was used, for what, and whether it still can be.

use std::time::Duration;

use schemas::views::payments::Payment;
use serde_json::{Value, json};

use super::http::{Endpoint, Error};
use super::signed::{address_of, hex_text, keccak};
use super::terms::NETWORKS;

const ANSWER_MAX: Duration = Duration::from_secs(10);
/// Seconds before the claim whose blocks are looked at as well: clocks differ.
const BEFORE_S: u64 = 600;

/// A client of one node.
pub struct Chain(Endpoint);

/// What the chain has of a payment.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Found {
    /// The transfer, by this transaction.
    Paid(String),
    /// The nonce was used for something else.
    Spent,
    /// Nothing; by the time of its last block it can no longer come.
    Late,
    /// Nothing yet.
    Nothing,
}

impl Chain {
    /// A client of the node at an address.
    ///
    /// # Errors
    /// Why the address cannot be used.
    pub fn new(url: &str) -> Result<Self, String> {
        Endpoint::new(url, ANSWER_MAX).map(Self)
    }

    /// What the chain has of a payment.
    ///
    /// # Errors
    /// In words, when the node does not say.
    pub async fn find(&self, payment: &Payment) -> Result<Found, String> {
        let block = self.call("eth_getBlockByNumber", json!(["latest", false])).await?;
        let number = number_of(&block, "number")?;
        let time_s = number_of(&block, "timestamp")?;
        let block_s = NETWORKS.iter().find(|network| network.caip == payment.network).map_or(1, |network| network.block_s);
        let claimed_s = u64::try_from(payment.claimed_at / 1_000).unwrap_or(0);
        let back = (time_s.saturating_sub(claimed_s) + BEFORE_S) / block_s;
        let payer = topic(&payment.payer).ok_or("the payer is no address")?;
        let used = json!({
            "address": payment.asset,
            "fromBlock": format!("{:#x}", number.saturating_sub(back)),
            "toBlock": "latest",
            "topics": [event(b"AuthorizationUsed(address,bytes32)"), payer, payment.nonce],
        });
        let logs = self.call("eth_getLogs", json!([used])).await?;
        let Some(log) = logs.as_array().and_then(|logs| logs.first()) else {
            let last_s = u64::try_from(payment.valid_before).unwrap_or(0);
            return Ok(if time_s >= last_s { Found::Late } else { Found::Nothing });
        };
        let transaction = log.get("transactionHash").and_then(Value::as_str).ok_or("a log without its transaction")?;
        let receipt = self.call("eth_getTransactionReceipt", json!([transaction])).await?;
        let transfer = event(b"Transfer(address,address,uint256)");
        let pay_to = topic(&payment.pay_to).ok_or("the payee is no address")?;
        let is_paid = |log: &Value| {
            let is = |pointer: &str, wanted: &str| {
                log.pointer(pointer).and_then(Value::as_str).is_some_and(|found| found.eq_ignore_ascii_case(wanted))
            };
            let amount = log.get("data").and_then(Value::as_str).and_then(|data| data.strip_prefix("0x"));
            is("/address", &payment.asset)
                && is("/topics/0", &transfer)
                && is("/topics/1", &payer)
                && is("/topics/2", &pay_to)
                && amount.and_then(|digits| u128::from_str_radix(digits, 16).ok()) == u128::try_from(payment.amount).ok()
        };
        let is_paid = receipt.get("logs").and_then(Value::as_array).is_some_and(|logs| logs.iter().any(is_paid));
        Ok(if is_paid { Found::Paid(transaction.to_owned()) } else { Found::Spent })
    }

    async fn call(&self, method: &str, params: Value) -> Result<Value, String> {
        let body = json!({ "jsonrpc": "2.0", "id": 1, "method": method, "params": params });
        let told = |error: Error| {
            tracing::warn!(error = schemas::reason::reason(&error), method, "the chain's node gave no answer");
            error.to_string()
        };
        let (_, answer) = self.0.post("", &body).await.map_err(told)?;
        answer.get("result").filter(|result| !result.is_null()).cloned().ok_or_else(|| {
            let error = answer.get("error").map(Value::to_string).unwrap_or_default();
            tracing::warn!(method, error, "the chain's node refused");
            format!("the node does not answer {method}")
        })
    }
}

/// A number in hex.
fn number_of(value: &Value, field: &str) -> Result<u64, String> {
    let text = value.get(field).and_then(Value::as_str).and_then(|text| text.strip_prefix("0x"));
    text.and_then(|digits| u64::from_str_radix(digits, 16).ok()).ok_or_else(|| format!("a block without its {field}"))
}

/// An address as an indexed value.
fn topic(address: &str) -> Option<String> {
    let mut word = [0; 32];
    word[12..].copy_from_slice(&address_of(address)?);
    Some(hex_text(&word))
}

/// The first topic of an event.
#[must_use]
pub fn event(signature: &[u8]) -> String {
    hex_text(&keccak(&[signature]))
}
