//! The chain's own record of payments, over the JSON-RPC of a node: whether an authorization was used, for which transfer, and whether it still
//! can be.
//!
//! The token logs `AuthorizationUsed(payer, nonce)`, and right after it the `Transfer` that was authorized. One transaction may use many
//! authorizations, so only that next log says what an authorization was used for. Answers of the node are checked, not trusted to be well formed.

use std::collections::{BTreeSet, HashMap};
use std::time::Duration;

use schemas::views::payments::Payment;
use serde::Deserialize;
use serde_json::{Value, json};

use super::http::{Endpoint, Error};
use super::signed::{address_of, hex_text, keccak};
use super::terms::Network;

const ANSWER_MAX: Duration = Duration::from_secs(10);
/// The largest answer read, in bytes: a transaction may settle some thousands of payments.
const ANSWER_BYTES_MAX: usize = 8 << 20;
/// Seconds before the claim whose blocks are searched as well: anybody who has the payment may have brought it to the chain before.
const SECONDS_BEFORE_CLAIM: u64 = 3_600;
/// How far back blocks are searched at most, in seconds: a payment is followed up for a week.
const SECONDS_BACK_MAX: u64 = 14 * 86_400;
/// The most blocks searched by one request: nodes refuse more.
const BLOCKS_PER_REQUEST_MAX: u64 = 2_000;

/// A client of one node.
pub struct Chain {
    endpoint: Endpoint,
    network: Network,
}

/// A transfer on the chain.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Transfer {
    /// The hash of its transaction.
    pub transaction: String,
    /// The index of its log in the block; `None` where only a facilitator says that it was made.
    pub log_index: Option<i64>,
}

/// What the chain has of a payment.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Found {
    /// The authorization was used for this transfer, which is the one that pays.
    Paid(Transfer),
    /// The authorization was used for something else.
    Spent,
    /// The authorization was not used, and by the time of the last block it no longer can be.
    Late,
    /// The authorization was not used yet.
    Nothing,
}

/// The newest block of the chain.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Head {
    /// Its number.
    pub number: u64,
    /// Its time: seconds since 1970.
    pub time_s: u64,
}

/// A log as a node shows it. Fields that are not here are not looked at.
#[derive(Clone, Debug, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "camelCase")]
struct Log {
    address: String,
    topics: Vec<String>,
    data: String,
    transaction_hash: String,
    log_index: String,
}

#[derive(Clone, Debug, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "camelCase")]
struct Receipt {
    transaction_hash: String,
    logs: Vec<Log>,
}

impl Chain {
    /// A client of the node of a network at an address.
    ///
    /// # Errors
    /// Why the address cannot be used.
    pub fn new(url: &str, network: Network) -> Result<Self, String> {
        Endpoint::new(url, ANSWER_MAX, ANSWER_BYTES_MAX).map(|endpoint| Self { endpoint, network })
    }

    /// Whether a payment is on the network of this node.
    #[must_use]
    pub fn has(&self, payment: &Payment) -> bool {
        payment.network == self.network.caip
    }

    /// What the chain has of a payment.
    ///
    /// # Errors
    /// In words, when the node does not say.
    pub async fn find(&self, payment: &Payment) -> Result<Found, String> {
        let head = self.head().await?;
        let found = self.find_all(head, &[payment]).await?;
        found.into_iter().next().unwrap_or_else(|| Err("the node says nothing of the payment".to_owned()))
    }

    /// The newest block.
    ///
    /// # Errors
    /// In words, when the node does not say.
    pub async fn head(&self) -> Result<Head, String> {
        let block = self.call("eth_getBlockByNumber", json!(["latest", false])).await?;
        let field = |name: &str| {
            let text = block.get(name).and_then(Value::as_str);
            text.and_then(number_of).ok_or_else(|| format!("a block without its {name}"))
        };
        Ok(Head { number: field("number")?, time_s: field("timestamp")? })
    }

    /// What the chain has of each of some payments in the same asset, up to a block: one request for each [`BLOCKS_PER_REQUEST_MAX`] blocks that may
    /// hold any of them, then one for each transaction that used an authorization. In the order of the payments.
    ///
    /// # Errors
    /// In words, when the node does not say which authorizations were used. Within the answer, of one payment, when it does not show its
    /// transaction.
    pub async fn find_all(&self, head: Head, payments: &[&Payment]) -> Result<Vec<Result<Found, String>>, String> {
        let used = self.used(head, payments).await?;
        let transactions: BTreeSet<&str> = used.values().map(|log| log.transaction_hash.as_str()).collect();
        let mut receipts = HashMap::new();
        for transaction in transactions {
            receipts.insert(transaction, self.receipt(transaction).await);
        }
        let found = |payment: &&Payment| -> Result<Found, String> {
            let used = used.get(&authorization_of(payment)?).map(|log| (log, receipts.get(log.transaction_hash.as_str())));
            match used {
                Some((log, Some(Ok(receipt)))) => use_of(payment, log, receipt),
                Some((_, Some(Err(why)))) => Err(why.clone()),
                Some((_, None)) => Err("the node shows no receipt".to_owned()),
                None if head.time_s >= u64::try_from(payment.valid_before).unwrap_or(0) => Ok(Found::Late),
                None => Ok(Found::Nothing),
            }
        };
        Ok(payments.iter().map(found).collect())
    }

    /// The logs of those authorizations of some payments that were used, by payer and nonce.
    async fn used(&self, head: Head, payments: &[&Payment]) -> Result<HashMap<Authorization, Log>, String> {
        let (Some(Payment { asset, .. }), Some(claimed_at)) = (payments.first(), payments.iter().map(|payment| payment.claimed_at).min())
        else {
            return Ok(HashMap::new());
        };
        let wanted: Vec<Authorization> = payments.iter().map(|payment| authorization_of(payment)).collect::<Result<_, _>>()?;
        let distinct = |words: &mut dyn Iterator<Item = &String>| {
            let mut words: Vec<String> = words.cloned().collect();
            words.sort_unstable();
            words.dedup();
            words
        };
        let payers = distinct(&mut wanted.iter().map(|(payer, _)| payer));
        let nonces = distinct(&mut wanted.iter().map(|(_, nonce)| nonce));
        let event = event(AUTHORIZATION_USED);
        let claimed_s = u64::try_from(claimed_at / 1_000).unwrap_or(0);
        let seconds_back = head.time_s.saturating_sub(claimed_s).saturating_add(SECONDS_BEFORE_CLAIM);
        if seconds_back > SECONDS_BACK_MAX {
            return Err("the chain is weeks ahead of the claim".to_owned());
        }
        let mut used = HashMap::new();
        let mut next = Some(head.number.saturating_sub(seconds_back / self.network.block_s.max(1)));
        while let Some(from) = next.filter(|from| *from <= head.number) {
            let to = head.number.min(from.saturating_add(BLOCKS_PER_REQUEST_MAX - 1));
            let filter = json!({
                "address": asset, "fromBlock": format!("{from:#x}"), "toBlock": format!("{to:#x}"),
                "topics": [event, payers, nonces],
            });
            let logs = self.call("eth_getLogs", json!([filter])).await?;
            let logs: Vec<Log> = Vec::deserialize(&logs).map_err(|error| format!("the node's logs cannot be read: {error}"))?;
            for log in logs {
                // Payers and nonces are asked for crosswise.
                let found = (lower(log.topics.get(1)), lower(log.topics.get(2)));
                if log.is(asset, &event) && wanted.contains(&found) {
                    used.insert(found, log);
                }
            }
            next = to.checked_add(1);
        }
        Ok(used)
    }

    async fn receipt(&self, transaction: &str) -> Result<Receipt, String> {
        let receipt = self.call("eth_getTransactionReceipt", json!([transaction])).await?;
        Receipt::deserialize(&receipt).map_err(|error| format!("the node's receipt cannot be read: {error}"))
    }

    async fn call(&self, method: &str, params: Value) -> Result<Value, String> {
        let body = json!({ "jsonrpc": "2.0", "id": 1, "method": method, "params": params });
        let words = |error: Error| {
            tracing::warn!(error = schemas::reason::reason(&error), method, "the chain's node gave no answer");
            error.to_string()
        };
        let (_, mut answer) = self.endpoint.post("", &body).await.map_err(words)?;
        answer.get_mut("result").map(Value::take).filter(|result| !result.is_null()).ok_or_else(|| {
            let error = answer.get("error").map(Value::to_string).unwrap_or_default();
            tracing::warn!(method, error, "the chain's node refused");
            format!("the node does not answer {method}")
        })
    }
}

/// A payer and a nonce as indexed values, in lower case.
type Authorization = (String, String);

const AUTHORIZATION_USED: &[u8] = b"AuthorizationUsed(address,bytes32)";
const TRANSFER: &[u8] = b"Transfer(address,address,uint256)";

impl Log {
    /// Whether it is an event of a contract.
    fn is(&self, contract: &str, event: &str) -> bool {
        self.address.eq_ignore_ascii_case(contract) && lower(self.topics.first()) == event
    }

    fn index(&self) -> Result<u64, String> {
        number_of(&self.log_index).ok_or_else(|| "a log without its index".to_owned())
    }
}

/// What the authorization of a payment was used for, by the receipt of the transaction that used it: the log right after `used` must be the transfer
/// of just this amount to just this payee.
fn use_of(payment: &Payment, used: &Log, receipt: &Receipt) -> Result<Found, String> {
    let is_of = |hash: &str| hash.eq_ignore_ascii_case(&used.transaction_hash);
    if !is_of(&receipt.transaction_hash) || !receipt.logs.iter().all(|log| is_of(&log.transaction_hash)) {
        return Err("the node shows the receipt of another transaction".to_owned());
    }
    let mut by_index = HashMap::new();
    for log in &receipt.logs {
        if by_index.insert(log.index()?, log).is_some() {
            return Err("the node shows two logs with one index".to_owned());
        }
    }
    let index = used.index()?;
    let event = |log: &Log| log.topics.iter().map(|topic| topic.to_ascii_lowercase()).collect::<Vec<_>>();
    if !by_index.get(&index).is_some_and(|log| log.address.eq_ignore_ascii_case(&used.address) && event(log) == event(used)) {
        return Err("the node shows a receipt without the authorization".to_owned());
    }
    let (payer, _) = authorization_of(payment)?;
    let payee = topic(&payment.pay_to).ok_or("the payee is no address")?;
    let amount = format!("{:#066x}", u64::try_from(payment.amount).map_err(|_| "the amount is no number")?);
    let index = index.checked_add(1).ok_or("a log without its index")?;
    let is_paid = by_index.get(&index).is_some_and(|log| {
        log.address.eq_ignore_ascii_case(&payment.asset)
            && event(log) == [self::event(TRANSFER), payer, payee]
            && log.data.eq_ignore_ascii_case(&amount)
    });
    if !is_paid {
        return Ok(Found::Spent);
    }
    let log_index = i64::try_from(index).map_err(|_| "a log without its index")?;
    Ok(Found::Paid(Transfer { transaction: used.transaction_hash.clone(), log_index: Some(log_index) }))
}

/// The authorization of a payment.
fn authorization_of(payment: &Payment) -> Result<Authorization, String> {
    let payer = topic(&payment.payer).ok_or("the payer is no address")?;
    Ok((payer, payment.nonce.to_ascii_lowercase()))
}

fn lower(topic: Option<&String>) -> String {
    topic.map(|topic| topic.to_ascii_lowercase()).unwrap_or_default()
}

/// Reads a number in hex.
fn number_of(text: &str) -> Option<u64> {
    let digits = text.strip_prefix("0x").filter(|digits| digits.bytes().all(|digit| digit.is_ascii_hexdigit()))?;
    u64::from_str_radix(digits, 16).ok()
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

#[cfg(test)]
mod tests {
    use super::*;

    const ASSET: &str = "0x833589fCD6eDb6E08f4c7C32D4f71b54bdA02913";
    const OTHER: &str = "0x00000000000000000000000000000000DeaDBeef";
    const PAYER: &str = "0x7e5f4552091a69125d5dfcb7b8c2659029395bdf";
    const SHOP: &str = "0x000000000000000000000000000000000000bEEF";
    const TRANSACTION: &str = "0xaBc1";

    fn payment(nonce: u8) -> Payment {
        Payment {
            asset: ASSET.to_owned(),
            pay_to: SHOP.to_owned(),
            payer: PAYER.to_owned(),
            nonce: nonce_of(nonce),
            amount: 10_000,
            ..Payment::default()
        }
    }

    fn nonce_of(nonce: u8) -> String {
        hex_text(&[nonce; 32])
    }

    fn log(index: u64, address: &str, topics: Vec<String>, data: String) -> Value {
        json!({ "address": address, "topics": topics, "data": data, "transactionHash": TRANSACTION, "logIndex": format!("{index:#x}") })
    }

    fn used(index: u64, nonce: u8) -> Value {
        log(index, ASSET, vec![event(AUTHORIZATION_USED), topic(PAYER).unwrap(), nonce_of(nonce)], "0x".to_owned())
    }

    fn transfer(index: u64, to: &str, value: u64) -> Value {
        log(index, ASSET, vec![event(TRANSFER), topic(PAYER).unwrap(), topic(to).unwrap()], format!("{value:#066x}"))
    }

    /// What the logs of a receipt say of the payment whose authorization the log at a place used.
    fn judge(nonce: u8, used: &Value, logs: &[Value]) -> Result<Found, String> {
        let receipt = json!({ "transactionHash": TRANSACTION.to_uppercase().replace("0X", "0x"), "logs": logs, "status": "0x1" });
        let receipt = Receipt::deserialize(&receipt).map_err(|error| error.to_string())?;
        use_of(&payment(nonce), &Log::deserialize(used).map_err(|error| error.to_string())?, &receipt)
    }

    fn paid(log_index: i64) -> Result<Found, String> {
        Ok(Found::Paid(Transfer { transaction: TRANSACTION.to_owned(), log_index: Some(log_index) }))
    }

    /// Proves that a payment is paid by the log right after its own authorization and by no other one: of six authorizations used in one
    /// transaction, one as signed and five for transfers of nothing to the payer, one is paid, wherever it stands.
    #[test]
    fn one_transfer_pays_for_one_authorization() {
        for real in 1..=6_u8 {
            let mut logs = vec![transfer(30, OTHER, 1)];
            for nonce in 1..=6_u8 {
                let index = 29 + 2 * u64::from(nonce);
                let (to, value) = if nonce == real { (SHOP, 10_000) } else { (PAYER, 0) };
                logs.extend([used(index, nonce), transfer(index + 1, to, value)]);
            }
            for nonce in 1..=6_u8 {
                let index = 29 + 2 * i64::from(nonce);
                let expected = if nonce == real { paid(index + 1) } else { Ok(Found::Spent) };
                assert_eq!(judge(nonce, &logs[2 * usize::from(nonce) - 1], &logs), expected, "{real} {nonce}");
            }
        }
    }

    /// Proves that the next log counts only if it is of the same contract, from the payer, to the payee, and of the amount, exactly.
    #[test]
    fn the_next_log_must_be_the_transfer() {
        let own = used(4, 1);
        assert_eq!(judge(1, &own, &[own.clone(), transfer(5, SHOP, 10_000)]), paid(5));
        let topics = |names: [&str; 2]| vec![event(TRANSFER), topic(names[0]).unwrap(), topic(names[1]).unwrap()];
        let value = format!("{:#066x}", 10_000);
        let wrong = [
            ("another contract", log(5, OTHER, topics([PAYER, SHOP]), value.clone())),
            ("another payer", log(5, ASSET, topics([OTHER, SHOP]), value.clone())),
            ("another payee", transfer(5, OTHER, 10_000)),
            ("less", transfer(5, SHOP, 9_999)),
            ("more", transfer(5, SHOP, 10_001)),
            ("another place", transfer(6, SHOP, 10_000)),
            ("before it", transfer(3, SHOP, 10_000)),
            ("the value in few digits", log(5, ASSET, topics([PAYER, SHOP]), "0x2710".to_owned())),
            ("no value", log(5, ASSET, topics([PAYER, SHOP]), String::new())),
            (
                "another event",
                log(5, ASSET, [vec![event(AUTHORIZATION_USED)], topics([PAYER, SHOP])[1..].to_vec()].concat(), value.clone()),
            ),
            ("a topic more", log(5, ASSET, [topics([PAYER, SHOP]), vec![nonce_of(1)]].concat(), value.clone())),
            ("no topics", log(5, ASSET, Vec::new(), value)),
        ];
        for (what, next) in wrong {
            // A transfer that would do stands elsewhere in the transaction.
            let logs = [own.clone(), next, transfer(9, SHOP, 10_000)];
            assert_eq!(judge(1, &own, &logs), Ok(Found::Spent), "{what}");
        }
        assert_eq!(judge(1, &own, std::slice::from_ref(&own)), Ok(Found::Spent), "no further log");
    }

    /// Proves that what a hostile or broken node says is an error in words, and never a payment.
    #[test]
    fn broken_receipts_are_errors() {
        let own = used(4, 1);
        let good = [own.clone(), transfer(5, SHOP, 10_000)];
        let without = |at: usize, field: &str| {
            let mut logs = good.clone();
            logs[at].as_object_mut().unwrap().remove(field);
            logs
        };
        let with = |at: usize, field: &str, value: Value| {
            let mut logs = good.clone();
            logs[at][field] = value;
            logs
        };
        let mut all: Vec<(String, [Value; 2])> = Vec::new();
        for field in ["address", "topics", "data", "transactionHash", "logIndex"] {
            all.push((format!("without {field}"), without(1, field)));
            all.push((format!("{field} null"), with(1, field, Value::Null)));
            all.push((format!("{field} an object"), with(0, field, json!({ "a": 1 }))));
        }
        for index in ["", "5", "0x+5", "0x", "0xzz", "-0x1", "0x1ffffffffffffffff", "0x4"] {
            all.push((format!("index {index}"), with(1, "logIndex", json!(index))));
        }
        all.push(("of another transaction".to_owned(), with(1, "transactionHash", json!("0xabc2"))));
        all.push(("the authorization of another nonce".to_owned(), with(0, "topics", used(4, 2)["topics"].clone())));
        all.push(("the authorization of another contract".to_owned(), with(0, "address", json!(OTHER))));
        for (what, logs) in all {
            assert!(judge(1, &own, &logs).is_err(), "{what}");
        }
        let last = used(u64::MAX, 1);
        assert!(judge(1, &last, std::slice::from_ref(&last)).is_err(), "nothing follows the last index");
    }
}
