//! The chain's own record of payments, over the JSON-RPC of a node: whether an authorization was used, for which transfer, and whether it still
//! can be.
//!
//! The token logs `AuthorizationUsed(payer, nonce)`, and right after it the `Transfer` that was authorized. One transaction may use many
//! authorizations, so only that next log says what an authorization was used for. Answers of the node are checked, not trusted to be well formed.

use std::collections::{BTreeMap, BTreeSet, HashMap};
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
/// Claims that began at most this many seconds ago are searched for up to the head. For older ones the block is looked for in which their time ended.
const SEARCHED_TO_HEAD_S: u64 = 4 * 3_600;
/// How many seconds later than wanted a block may be that ends a search.
const LAST_BLOCK_SLACK_S: u64 = 3_600;
/// The longest time, in seconds, in which the payments of one search may have been used. It bounds the requests of one search.
const SEARCHED_S_MAX: u64 = 6 * 3_600;
/// The most blocks searched by one request: nodes refuse more.
const BLOCKS_PER_REQUEST_MAX: u64 = 2_000;
/// How often the block of a time is guessed from the seconds between blocks, before the rest of the chain is halved again and again.
const GUESSES_MAX: u32 = 4;
/// How far the chain's time must be past the last moment of an authorization, in seconds, before a payment is given up. A balancer may ask a node for
/// the logs that lags behind the one that named the newest block, and the newest blocks may still be replaced. On the supported networks both are a
/// matter of seconds.
pub const LATE_MARGIN_S: u64 = 60;

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
    /// The index of its log in the block, as the block was when it was read; `None` where only a facilitator says that the transfer was made.
    pub log_index: Option<i64>,
    /// The index of its log in the receipt of its transaction, which stays when the transaction moves to another block; `None` likewise.
    pub receipt_log_index: Option<i64>,
}

/// What the chain has of a payment.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Found {
    /// The authorization was used for this transfer, which is the one that pays.
    Paid(Transfer),
    /// The authorization was used for something else.
    Spent,
    /// The authorization was not used, and can no longer be: its time ended [`LATE_MARGIN_S`] ago, and the block by which that was found is still
    /// part of the chain.
    Late,
    /// It is not known yet: the authorization can still be used, or what the node shows may still change.
    Unknown,
}

/// A block of the chain.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Block {
    /// Its number.
    pub number: u64,
    /// Its time: seconds since 1970.
    pub time_s: u64,
    /// Its hash.
    pub hash: String,
}

impl Block {
    /// Whether the time of an authorization that is valid before a time (seconds since 1970) ended [`LATE_MARGIN_S`] before this block.
    #[must_use]
    pub fn is_late_for(&self, valid_before: i64) -> bool {
        u64::try_from(valid_before).unwrap_or(0).saturating_add(LATE_MARGIN_S) <= self.time_s
    }
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
        let found = self.find_all(&head, &[payment]).await?;
        found.into_iter().next().unwrap_or_else(|| Err("the node says nothing of the payment".to_owned()))
    }

    /// Whether the token says that the authorization of a payment was used, for whatever transfer (`authorizationState` of EIP-3009). One request.
    ///
    /// # Errors
    /// In words, when the node does not say.
    pub async fn is_used(&self, payment: &Payment) -> Result<bool, String> {
        let (payer, nonce) = authorization_of(payment)?;
        let selector = event(AUTHORIZATION_STATE).get(..10).unwrap_or_default().to_owned();
        let words = [payer, nonce].map(|word| word.trim_start_matches("0x").to_owned()).concat();
        let call = json!({ "to": payment.asset, "data": format!("{selector}{words}") });
        let answer = self.call("eth_call", json!([call, "latest"])).await?;
        match answer.as_str().and_then(|word| word.strip_prefix("0x")).filter(|digits| digits.len() == 64) {
            Some(digits) => Ok(digits.bytes().any(|digit| digit != b'0')),
            None => Err("the token does not say whether the authorization was used".to_owned()),
        }
    }

    /// The newest block.
    ///
    /// # Errors
    /// In words, when the node does not say.
    pub async fn head(&self) -> Result<Block, String> {
        self.block("latest").await
    }

    /// A block by its number in hex, or by its tag.
    async fn block(&self, which: &str) -> Result<Block, String> {
        let block = self.call("eth_getBlockByNumber", json!([which, false])).await?;
        let text = |name: &str| block.get(name).and_then(Value::as_str).ok_or_else(|| format!("a block without its {name}"));
        let number = |name: &str| number_of(text(name)?).ok_or_else(|| format!("a block without its {name}"));
        Ok(Block { number: number("number")?, time_s: number("timestamp")?, hash: text("hash")?.to_ascii_lowercase() })
    }

    /// Whether a block is still part of the chain. A node that does not say so has another block at its number, or none.
    async fn is_canonical(&self, block: &Block) -> bool {
        self.block(&format!("{:#x}", block.number)).await.is_ok_and(|now| now == *block)
    }

    /// What the chain has of each of some payments in the same asset, up to a block: some requests for the blocks that may hold any of them, then one
    /// for each transaction that used an authorization, then one for that block again if a payment is to be given up. In the order of the payments.
    ///
    /// # Errors
    /// In words, when the node does not say which authorizations were used, or when the payments were claimed too far apart for one search. Within
    /// the answer, of one payment, when the node does not show its transaction.
    pub async fn find_all(&self, head: &Block, payments: &[&Payment]) -> Result<Vec<Result<Found, String>>, String> {
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
                None if head.is_late_for(payment.valid_before) => Ok(Found::Late),
                None => Ok(Found::Unknown),
            }
        };
        let mut all: Vec<Result<Found, String>> = payments.iter().map(found).collect();
        let gives_up = |found: &Result<Found, String>| matches!(found, Ok(Found::Late | Found::Spent));
        // What was read of blocks that were replaced meanwhile decides nothing.
        if all.iter().any(gives_up) && !self.is_canonical(head).await {
            tracing::warn!(block = head.number, "the chain's newest block was replaced while payments were looked up, will retry");
            all.iter_mut().filter(|found| gives_up(found)).for_each(|found| *found = Ok(Found::Unknown));
        }
        Ok(all)
    }

    /// The first and the last block that may hold the uses of some payments.
    async fn searched(&self, head: &Block, payments: &[&Payment]) -> Result<(u64, u64), String> {
        let seconds = |time: i64| u64::try_from(time).unwrap_or(0);
        let claimed_s = payments.iter().map(|payment| seconds(payment.claimed_at / 1_000)).min().unwrap_or(0);
        // A clock of the chain that is behind ours makes a search no shorter.
        let first_s = claimed_s.min(head.time_s).saturating_sub(SECONDS_BEFORE_CLAIM);
        let block_s = self.network.block_s.max(1);
        let first_before = |last: &Block| last.number.saturating_sub(last.time_s.saturating_sub(first_s) / block_s);
        if head.time_s.saturating_sub(first_s) <= SEARCHED_TO_HEAD_S {
            return Ok((first_before(head), head.number));
        }
        let last_s = payments.iter().map(|payment| seconds(payment.valid_before)).max().unwrap_or(0).max(first_s);
        if last_s.saturating_sub(first_s) > SEARCHED_S_MAX {
            return Err("the payments were claimed too far apart for one search".to_owned());
        }
        let last = self.block_after(head, last_s).await?;
        Ok((first_before(&last), last.number))
    }

    /// A block, up to the head, before which no block is as late as a time (seconds since 1970), or one that is at most [`LAST_BLOCK_SLACK_S`] later.
    /// The head where the chain is not that far. Its place is guessed from the seconds between blocks, then found by halves, so that a chain whose
    /// blocks come irregularly costs some sixty requests at most.
    async fn block_after(&self, head: &Block, time_s: u64) -> Result<Block, String> {
        let (mut earliest, mut found) = (0, head.clone());
        let mut guesses = 0;
        while found.time_s > time_s.saturating_add(LAST_BLOCK_SLACK_S) && earliest < found.number {
            let guessed = found.number.saturating_sub((found.time_s - time_s) / self.network.block_s.max(1));
            let middle = earliest + (found.number - earliest) / 2;
            let next = if guesses < GUESSES_MAX { guessed.clamp(earliest, found.number - 1) } else { middle };
            guesses += 1;
            let block = self.block(&format!("{next:#x}")).await?;
            if block.number != next {
                return Err("the node shows another block than the one asked for".to_owned());
            }
            if block.time_s >= time_s { found = block } else { earliest = next + 1 }
        }
        Ok(found)
    }

    /// The logs of those authorizations of some payments that were used, by payer and nonce.
    async fn used(&self, head: &Block, payments: &[&Payment]) -> Result<HashMap<Authorization, Log>, String> {
        let Some(Payment { asset, .. }) = payments.first() else { return Ok(HashMap::new()) };
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
        let (first, last) = self.searched(head, payments).await?;
        let mut used = HashMap::new();
        let mut next = Some(first);
        while let Some(from) = next.filter(|from| *from <= last) {
            let to = last.min(from.saturating_add(BLOCKS_PER_REQUEST_MAX - 1));
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
const AUTHORIZATION_STATE: &[u8] = b"authorizationState(address,bytes32)";

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
    let mut by_index = BTreeMap::new();
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
    let number = |index: u64| i64::try_from(index).map_err(|_| "a log without its index");
    let before = u64::try_from(by_index.range(..index).count()).unwrap_or(u64::MAX);
    let (log_index, receipt_log_index) = (Some(number(index)?), Some(number(before)?));
    Ok(Found::Paid(Transfer { transaction: used.transaction_hash.clone(), log_index, receipt_log_index }))
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
#[path = "chain_tests.rs"]
mod tests;
