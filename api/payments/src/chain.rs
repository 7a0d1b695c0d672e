//! Looks payments up on the chain, over the JSON-RPC of a node: whether an authorization was used, for which transfer, and whether it can still be
//! used.
//!
//! The token logs `AuthorizationUsed(payer, nonce)`, directly followed by the `Transfer` that was authorized. One transaction may use many
//! authorizations, so only that next log shows what an authorization was used for. Responses of the node are validated.

use std::collections::{BTreeMap, BTreeSet, HashMap};
use std::time::Duration;

use schemas::views::payments::Payment;
use serde::Deserialize;
use serde_json::{Value, json};

use super::http::{Endpoint, Error};
use super::signed_payment::{address_of, hex_text, keccak};
use super::terms::Network;

/// The largest response, in bytes: one transaction may settle thousands of payments.
const ANSWER_BYTES_MAX: usize = 8 << 20;
/// How many seconds before the claim the search starts: anybody who has the payment may have submitted it earlier.
const SECONDS_BEFORE_CLAIM: u64 = 3_600;
/// Claims that are at most this many seconds old are searched for up to the head. For older ones the block in which they expired is located first.
const SEARCHED_TO_HEAD_S: u64 = 4 * 3_600;
/// How many seconds later than requested the last block of a search may be.
const LAST_BLOCK_SLACK_S: u64 = 3_600;
/// The longest time range of one search, in seconds, in addition to the longest validity of its payments. It limits the requests of a search.
const SEARCHED_S_MAX: u64 = 6 * 3_600;
/// The most blocks per request: nodes refuse more.
const BLOCKS_PER_REQUEST_MAX: u64 = 2_000;
/// How often the block of a time is estimated from the block interval, before binary search is used.
const GUESSES_MAX: u32 = 4;
/// How many seconds the chain's time must be past the expiry of an authorization before a payment lapses. A load balancer may send the request for
/// logs to a node that lags behind the one that returned the newest block, and the newest blocks may still be replaced. On the supported networks
/// both are a matter of seconds.
pub const LATE_MARGIN_S: u64 = 60;

/// A client of a chain node.
pub struct Chain {
    endpoint: Endpoint,
    network: Network,
}

/// A transfer on the chain.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Transfer {
    /// The hash of the transaction.
    pub transaction: String,
    /// The index of the log in the block, at the time when it was read; `None` if only the facilitator reported the transfer.
    pub log_index: Option<i64>,
    /// The index of the log in the receipt of the transaction, which does not change when the transaction moves to another block; `None` if only the
    /// facilitator reported the transfer.
    pub receipt_log_index: Option<i64>,
}

/// What the authorization of a payment was used for, as far as the chain shows.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum AuthorizationUse {
    /// The authorization was used for this transfer, which pays for the payment.
    Paid(Transfer),
    /// The authorization was used for another transfer.
    Spent,
    /// The authorization was not used and cannot be used any more: it expired [`LATE_MARGIN_S`] ago, and the block that shows this is still part of the
    /// chain.
    Late,
    /// Unknown yet: the authorization can still be used, or the chain may still change.
    Unknown,
}

/// A block of the chain.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Block {
    /// The block number.
    pub number: u64,
    /// The block time: seconds since 1970.
    pub time_s: u64,
    /// The block hash.
    pub hash: String,
}

impl Block {
    /// Whether an authorization that is valid before a time (seconds since 1970) expired at least [`LATE_MARGIN_S`] before this block.
    #[must_use]
    pub fn is_late_for(&self, valid_before: i64) -> bool {
        u64::try_from(valid_before).unwrap_or(0).saturating_add(LATE_MARGIN_S) <= self.time_s
    }
}

/// A log as a node returns it, without the fields that are not used.
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
    /// Creates a client of a node of a network, which may take `answer_max` for a request.
    ///
    /// # Errors
    /// Why the URL cannot be used.
    pub fn new(url: &str, network: Network, answer_max: Duration) -> Result<Self, String> {
        Endpoint::new(url, answer_max, ANSWER_BYTES_MAX).map(|endpoint| Self { endpoint, network })
    }

    /// Whether a payment is on the network of this node.
    #[must_use]
    pub fn has(&self, payment: &Payment) -> bool {
        payment.network == self.network.caip
    }

    /// Looks a payment up.
    ///
    /// # Errors
    /// The reason, when the node gives no usable response.
    pub async fn find(&self, payment: &Payment) -> Result<AuthorizationUse, String> {
        let head = self.head().await?;
        let found = self.find_all(&head, &[payment]).await?;
        found.into_iter().next().unwrap_or_else(|| Err("the node's response does not include the payment".to_owned()))
    }

    /// Whether the token contract reports the authorization of a payment as used, for any transfer (`authorizationState` of EIP-3009). Sends one request.
    ///
    /// # Errors
    /// The reason, when the node gives no usable response.
    pub async fn is_used(&self, payment: &Payment) -> Result<bool, String> {
        let (payer, nonce) = authorization_of(payment)?;
        let selector = event(AUTHORIZATION_STATE).get(..10).unwrap_or_default().to_owned();
        let words = [payer, nonce].map(|word| word.trim_start_matches("0x").to_owned()).concat();
        let call = json!({ "to": payment.asset, "data": format!("{selector}{words}") });
        let answer = self.call("eth_call", json!([call, "latest"])).await?;
        match answer.as_str().and_then(|word| word.strip_prefix("0x")).filter(|digits| digits.len() == 64) {
            Some(digits) => Ok(digits.bytes().any(|digit| digit != b'0')),
            None => Err("the token contract gave no valid authorizationState".to_owned()),
        }
    }

    /// Reads the newest block.
    ///
    /// # Errors
    /// The reason, when the node gives no usable response.
    pub async fn head(&self) -> Result<Block, String> {
        self.block("latest").await
    }

    /// Reads a block by its number in hex, or by its tag.
    async fn block(&self, which: &str) -> Result<Block, String> {
        let block = self.call("eth_getBlockByNumber", json!([which, false])).await?;
        let text = |name: &str| block.get(name).and_then(Value::as_str).ok_or_else(|| format!("a block without its {name}"));
        let number = |name: &str| number_of(text(name)?).ok_or_else(|| format!("a block without its {name}"));
        Ok(Block { number: number("number")?, time_s: number("timestamp")?, hash: text("hash")?.to_ascii_lowercase() })
    }

    /// Whether a block is still part of the chain; false if the node has another block with this number, or gives no usable response.
    async fn is_canonical(&self, block: &Block) -> bool {
        self.block(&format!("{:#x}", block.number)).await.is_ok_and(|now| now == *block)
    }

    /// Looks up payments in the same asset, up to a block. Sends some requests for the blocks that may hold them, one for each transaction that used an
    /// authorization, and one for the block again if a payment is to lapse. Returns the results in the order of the payments.
    ///
    /// # Errors
    /// The reason, when the node does not return the used authorizations, or when the payments were claimed too far apart for one search. An inner
    /// error means that the node did not return the transaction of that payment.
    pub async fn find_all(&self, head: &Block, payments: &[&Payment]) -> Result<Vec<Result<AuthorizationUse, String>>, String> {
        let used = self.used_authorizations(head, payments).await?;
        let transactions: BTreeSet<&str> = used.values().map(|log| log.transaction_hash.as_str()).collect();
        let mut receipts = HashMap::new();
        for transaction in transactions {
            receipts.insert(transaction, self.receipt(transaction).await);
        }
        let found = |payment: &&Payment| -> Result<AuthorizationUse, String> {
            let used = used.get(&authorization_of(payment)?).map(|log| (log, receipts.get(log.transaction_hash.as_str())));
            match used {
                Some((log, Some(Ok(receipt)))) => use_of(payment, log, receipt),
                Some((_, Some(Err(why)))) => Err(why.clone()),
                Some((_, None)) => Err("the node shows no receipt".to_owned()),
                None if head.is_late_for(payment.valid_before) => Ok(AuthorizationUse::Late),
                None => Ok(AuthorizationUse::Unknown),
            }
        };
        let mut all: Vec<Result<AuthorizationUse, String>> = payments.iter().map(found).collect();
        let gives_up = |found: &Result<AuthorizationUse, String>| matches!(found, Ok(AuthorizationUse::Late | AuthorizationUse::Spent));
        // If blocks were replaced in the meantime, their content decides nothing.
        if all.iter().any(gives_up) && !self.is_canonical(head).await {
            tracing::warn!(block = head.number, "the chain's newest block was replaced while payments were looked up, will retry");
            all.iter_mut().filter(|found| gives_up(found)).for_each(|found| *found = Ok(AuthorizationUse::Unknown));
        }
        Ok(all)
    }

    /// The first and the last block that may contain the payments.
    async fn block_range(&self, head: &Block, payments: &[&Payment]) -> Result<(u64, u64), String> {
        let seconds = |time: i64| u64::try_from(time).unwrap_or(0);
        let claimed_s = payments.iter().map(|payment| seconds(payment.claimed_at / 1_000)).min().unwrap_or(0);
        // A chain clock that is behind ours must not shorten the search.
        let first_s = claimed_s.min(head.time_s).saturating_sub(SECONDS_BEFORE_CLAIM);
        let block_s = self.network.block_s.max(1);
        let first_before = |last: &Block| last.number.saturating_sub(last.time_s.saturating_sub(first_s) / block_s);
        if head.time_s.saturating_sub(first_s) <= SEARCHED_TO_HEAD_S {
            return Ok((first_before(head), head.number));
        }
        let last_s = payments.iter().map(|payment| seconds(payment.valid_before)).max().unwrap_or(0).max(first_s);
        let validity_s = |payment: &&Payment| seconds(payment.valid_before).saturating_sub(seconds(payment.claimed_at / 1_000));
        let validity_max_s = payments.iter().map(validity_s).max().unwrap_or(0);
        if last_s.saturating_sub(first_s) > SEARCHED_S_MAX.saturating_add(validity_max_s) {
            return Err("the payments were claimed too far apart for one search".to_owned());
        }
        let last = self.block_after(head, last_s).await?;
        Ok((first_before(&last), last.number))
    }

    /// Finds a block, up to the head, such that no earlier block is as late as a time (seconds since 1970), or one that is at most
    /// [`LAST_BLOCK_SLACK_S`] later; the head if the chain is not that far. The number is estimated from the block interval and then found by binary
    /// search, so a chain with irregular blocks takes at most about sixty requests.
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
                return Err("the node returned another block than the one requested".to_owned());
            }
            if block.time_s >= time_s { found = block } else { earliest = next + 1 }
        }
        Ok(found)
    }

    /// Reads the logs of the authorizations that were used, by payer and nonce.
    async fn used_authorizations(&self, head: &Block, payments: &[&Payment]) -> Result<HashMap<Authorization, Log>, String> {
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
        let (first, last) = self.block_range(head, payments).await?;
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
                // The request matches all combinations of payers and nonces.
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
            tracing::warn!(error = schemas::reason::reason(&error), method, "a request to the chain node failed");
            error.to_string()
        };
        let (_, mut answer) = self.endpoint.post("", &body).await.map_err(words)?;
        answer.get_mut("result").map(Value::take).filter(|result| !result.is_null()).ok_or_else(|| {
            let error = answer.get("error").map(Value::to_string).unwrap_or_default();
            tracing::warn!(method, error, "the chain node returned an error");
            format!("the node returned no result for {method}")
        })
    }
}

/// A payer and a nonce as topics, in lower case.
type Authorization = (String, String);

const AUTHORIZATION_USED: &[u8] = b"AuthorizationUsed(address,bytes32)";
const TRANSFER: &[u8] = b"Transfer(address,address,uint256)";
const AUTHORIZATION_STATE: &[u8] = b"authorizationState(address,bytes32)";

impl Log {
    /// Whether the log is an event of a contract.
    fn is(&self, contract: &str, event: &str) -> bool {
        self.address.eq_ignore_ascii_case(contract) && lower(self.topics.first()) == event
    }

    fn index(&self) -> Result<u64, String> {
        number_of(&self.log_index).ok_or_else(|| "a log without its index".to_owned())
    }
}

/// Determines what the authorization of a payment was used for, from the receipt of the transaction that used it: the log right after `used` must be
/// the transfer of exactly this amount to this payee.
fn use_of(payment: &Payment, used: &Log, receipt: &Receipt) -> Result<AuthorizationUse, String> {
    let is_of = |hash: &str| hash.eq_ignore_ascii_case(&used.transaction_hash);
    if !is_of(&receipt.transaction_hash) || !receipt.logs.iter().all(|log| is_of(&log.transaction_hash)) {
        return Err("the node returned the receipt of another transaction".to_owned());
    }
    let mut by_index = BTreeMap::new();
    for log in &receipt.logs {
        if by_index.insert(log.index()?, log).is_some() {
            return Err("the node returned two logs with the same index".to_owned());
        }
    }
    let index = used.index()?;
    let event = |log: &Log| log.topics.iter().map(|topic| topic.to_ascii_lowercase()).collect::<Vec<_>>();
    if !by_index.get(&index).is_some_and(|log| log.address.eq_ignore_ascii_case(&used.address) && event(log) == event(used)) {
        return Err("the node returned a receipt without the authorization".to_owned());
    }
    let (payer, _) = authorization_of(payment)?;
    let payee = topic(&payment.pay_to).ok_or("the payee is not an address")?;
    let amount = format!("{:#066x}", u64::try_from(payment.amount).map_err(|_| "the amount is not a number")?);
    let index = index.checked_add(1).ok_or("a log without its index")?;
    let is_paid = by_index.get(&index).is_some_and(|log| {
        log.address.eq_ignore_ascii_case(&payment.asset)
            && event(log) == [self::event(TRANSFER), payer, payee]
            && log.data.eq_ignore_ascii_case(&amount)
    });
    if !is_paid {
        return Ok(AuthorizationUse::Spent);
    }
    let number = |index: u64| i64::try_from(index).map_err(|_| "a log without its index");
    let before = u64::try_from(by_index.range(..index).count()).unwrap_or(u64::MAX);
    let (log_index, receipt_log_index) = (Some(number(index)?), Some(number(before)?));
    Ok(AuthorizationUse::Paid(Transfer { transaction: used.transaction_hash.clone(), log_index, receipt_log_index }))
}

/// The authorization of a payment.
fn authorization_of(payment: &Payment) -> Result<Authorization, String> {
    let payer = topic(&payment.payer).ok_or("the payer is not an address")?;
    Ok((payer, payment.nonce.to_ascii_lowercase()))
}

fn lower(topic: Option<&String>) -> String {
    topic.map(|topic| topic.to_ascii_lowercase()).unwrap_or_default()
}

/// Parses a hex number.
fn number_of(text: &str) -> Option<u64> {
    let digits = text.strip_prefix("0x").filter(|digits| digits.bytes().all(|digit| digit.is_ascii_hexdigit()))?;
    u64::from_str_radix(digits, 16).ok()
}

/// Encodes an address as a topic.
fn topic(address: &str) -> Option<String> {
    let mut word = [0; 32];
    word[12..].copy_from_slice(&address_of(address)?);
    Some(hex_text(&word))
}

/// The first topic of an event, from its signature.
#[must_use]
pub fn event(signature: &[u8]) -> String {
    hex_text(&keccak(&[signature]))
}

#[cfg(test)]
#[path = "chain_tests.rs"]
mod tests;
