//! What the chain says of payments, by receipts made by hand and by a node that answers as a script says.

use std::sync::{Arc, Mutex, PoisonError};

use warp::Filter as _;

use super::*;
use crate::terms::NETWORKS;

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

/// What the logs of a receipt mean for the payment whose authorization is used by the log at an index.
fn judge(nonce: u8, used: &Value, logs: &[Value]) -> Result<AuthorizationUse, String> {
    let receipt = json!({ "transactionHash": TRANSACTION.to_uppercase().replace("0X", "0x"), "logs": logs, "status": "0x1" });
    let receipt = Receipt::deserialize(&receipt).map_err(|error| error.to_string())?;
    use_of(&payment(nonce), &Log::deserialize(used).map_err(|error| error.to_string())?, &receipt)
}

/// The transfer whose log has one index in the block, and another one in its receipt.
fn paid(log_index: i64, receipt_log_index: i64) -> Result<AuthorizationUse, String> {
    let transaction = TRANSACTION.to_owned();
    Ok(AuthorizationUse::Paid(Transfer { transaction, log_index: Some(log_index), receipt_log_index: Some(receipt_log_index) }))
}

/// Proves that only the log right after its own authorization pays for a payment: of six authorizations used in one transaction, one valid and five
/// for empty transfers to the payer, one pays, at any position.
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
            let expected = if nonce == real { paid(index + 1, index - 29) } else { Ok(AuthorizationUse::Spent) };
            assert_eq!(judge(nonce, &logs[2 * usize::from(nonce) - 1], &logs), expected, "{real} {nonce}");
        }
    }
}

/// Proves that the next log counts only if it is of the same contract, from the payer, to the payee, and of exactly the amount.
#[test]
fn the_next_log_must_be_the_transfer() {
    let own = used(4, 1);
    assert_eq!(judge(1, &own, &[own.clone(), transfer(5, SHOP, 10_000)]), paid(5, 1));
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
        ("another event", log(5, ASSET, [vec![event(AUTHORIZATION_USED)], topics([PAYER, SHOP])[1..].to_vec()].concat(), value.clone())),
        ("a topic more", log(5, ASSET, [topics([PAYER, SHOP]), vec![nonce_of(1)]].concat(), value.clone())),
        ("no topics", log(5, ASSET, Vec::new(), value)),
    ];
    for (what, next) in wrong {
        // A valid transfer is elsewhere in the transaction.
        let logs = [own.clone(), next, transfer(9, SHOP, 10_000)];
        assert_eq!(judge(1, &own, &logs), Ok(AuthorizationUse::Spent), "{what}");
    }
    assert_eq!(judge(1, &own, std::slice::from_ref(&own)), Ok(AuthorizationUse::Spent), "no further log");
}

/// Proves that the response of a hostile or broken node is an error with a reason, and never a payment.
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

/// A scripted chain: its blocks, its logs, and its wrong responses.
#[derive(Default)]
struct Script {
    /// The number and the time of the newest block.
    head: (u64, u64),
    /// Seconds between two blocks.
    block_s: u64,
    /// Logs by the number of their block. All belong to one transaction.
    logs: Vec<(u64, Value)>,
    /// The newest block whose logs the node returns; `None` for the head.
    logs_until: Option<u64>,
    /// How many blocks are replaced when logs are requested.
    replaced_by_logs: u64,
    /// Blocks with at least this number have been replaced.
    replaced_from: Option<u64>,
    /// Whether the token reports authorizations as used; `None` for no response.
    is_used: Option<bool>,
    /// The requested methods.
    requested: Vec<String>,
}

impl Script {
    fn answer(&mut self, body: &Value) -> Value {
        let method = body["method"].as_str().unwrap();
        self.requested.push(method.to_owned());
        let number = |text: &Value| number_of(text.as_str().unwrap()).unwrap();
        let result = match method {
            "eth_getBlockByNumber" => {
                let (newest, newest_s) = self.head;
                let block = if body["params"][0] == "latest" { newest } else { number(&body["params"][0]) };
                let time_s = newest_s.saturating_sub((newest - block) * self.block_s);
                let version = u64::from(self.replaced_from.is_some_and(|from| block >= from));
                json!({ "number": format!("{block:#x}"), "timestamp": format!("{time_s:#x}"), "hash": format!("{:#066X}", block * 2 + version) })
            }
            "eth_getLogs" => {
                let filter = &body["params"][0];
                let (from, to) = (number(&filter["fromBlock"]), number(&filter["toBlock"]));
                assert!(from <= to && to - from < BLOCKS_PER_REQUEST_MAX && to <= self.head.0, "{body}");
                let to = to.min(self.logs_until.unwrap_or(to));
                if self.replaced_by_logs > 0 {
                    self.replaced_from = Some(self.head.0 + 1 - self.replaced_by_logs);
                }
                let is_asked = |log: &Value| (1..3).all(|at| filter["topics"][at].as_array().unwrap().contains(&log["topics"][at]));
                let logs = self.logs.iter().filter(|(block, log)| (from..=to).contains(block) && is_asked(log));
                Value::Array(logs.map(|(_, log)| log.clone()).collect())
            }
            "eth_getTransactionReceipt" => {
                let logs: Vec<&Value> = self.logs.iter().map(|(_, log)| log).collect();
                json!({ "transactionHash": TRANSACTION, "logs": logs })
            }
            "eth_call" => {
                let data = body["params"][0]["data"].as_str().unwrap();
                assert_eq!(
                    (data.len(), &data[..10]),
                    (2 + 8 + 64 + 64, "0xe94a0102"),
                    "the selector of authorizationState(address,bytes32)"
                );
                self.is_used.map_or(json!("0x"), |is_used| json!(format!("{:#066x}", u64::from(is_used))))
            }
            method => panic!("{method}"),
        };
        json!({ "jsonrpc": "2.0", "id": 1, "result": result })
    }
}

/// A scripted node, stopped when dropped, and its client.
struct Node {
    script: Arc<Mutex<Script>>,
    chain: Chain,
    serving: tokio::task::JoinHandle<()>,
}

impl Drop for Node {
    fn drop(&mut self) {
        self.serving.abort();
    }
}

impl Node {
    async fn start(script: Script) -> Self {
        let script = Arc::new(Mutex::new(script));
        let own = Arc::clone(&script);
        #[expect(clippy::disallowed_methods, reason = "who asks is the client under test")]
        let answers = warp::post()
            .and(warp::body::json())
            .map(move |body: Value| warp::reply::json(&own.lock().unwrap_or_else(PoisonError::into_inner).answer(&body)));
        let listener = tokio::net::TcpListener::bind(("127.0.0.1", 0)).await.unwrap();
        let url = format!("http://{}/", listener.local_addr().unwrap());
        let serving = tokio::spawn(warp::serve(answers).incoming(listener).run());
        Self { script, chain: Chain::new(&url, NETWORKS[0], Duration::from_secs(300)).unwrap(), serving }
    }

    fn script(&self) -> std::sync::MutexGuard<'_, Script> {
        self.script.lock().unwrap()
    }

    /// How often a method was requested.
    fn requested(&self, method: &str) -> usize {
        self.script().requested.iter().filter(|requested| *requested == method).count()
    }
}

/// When the payments of these tests expire: seconds since 1970.
const VALID_BEFORE: u64 = 1_795_000_600;

/// A payment that was claimed ten minutes before its expiry.
fn timed(nonce: u8) -> Payment {
    let valid_before = i64::try_from(VALID_BEFORE).unwrap();
    Payment { valid_before, claimed_at: (valid_before - 600) * 1_000, ..payment(nonce) }
}

/// A script whose newest block is some seconds after the payments' expiry.
fn later(seconds: u64) -> Script {
    Script { head: (100_000, VALID_BEFORE + seconds), block_s: 2, ..Script::default() }
}

/// Proves that a payment that the node does not return lapses only a minute after its expiry: a node that lags behind may not have a payment that
/// another one has.
#[tokio::test]
async fn payments_lapse_a_minute_after_expiry() {
    let node = Node::start(later(59)).await;
    assert_eq!(node.chain.find(&timed(1)).await, Ok(AuthorizationUse::Unknown), "a node that lags a minute behind would not show it");
    node.script().head = (100_001, VALID_BEFORE + 60);
    assert_eq!(node.chain.find(&timed(1)).await, Ok(AuthorizationUse::Late));

    // A load balancer asks one node for the newest block, and one that is forty seconds behind for the logs.
    let settled = Script { logs: vec![(99_980, used(4, 1)), (99_980, transfer(5, SHOP, 10_000))], logs_until: Some(99_979), ..later(30) };
    let node = Node::start(settled).await;
    assert_eq!(node.chain.find(&timed(1)).await, Ok(AuthorizationUse::Unknown));
    node.script().logs_until = None;
    assert_eq!(node.chain.find(&timed(1)).await, paid(5, 1));
}

/// Proves that a block that was replaced after the search does not make a payment lapse or be used for another transfer, and that a transfer counts
/// anyway.
#[tokio::test]
async fn a_replaced_block_lapses_no_payment() {
    for logs in [Vec::new(), vec![(99_000, used(4, 1)), (99_000, transfer(5, PAYER, 0))]] {
        let expected = if logs.is_empty() { AuthorizationUse::Late } else { AuthorizationUse::Spent };
        let node = Node::start(Script { logs, replaced_by_logs: 3, ..later(600) }).await;
        assert_eq!(node.chain.find(&timed(1)).await, Ok(AuthorizationUse::Unknown), "{expected:?}");
        // The next search starts with the block that replaced it.
        node.script().replaced_by_logs = 0;
        assert_eq!(node.chain.find(&timed(1)).await, Ok(expected));
    }
    let logs = vec![(99_000, used(4, 1)), (99_000, transfer(5, SHOP, 10_000))];
    let node = Node::start(Script { logs, replaced_by_logs: 3, ..later(600) }).await;
    assert_eq!(node.chain.find(&timed(1)).await, paid(5, 1));
    assert_eq!(node.requested("eth_getBlockByNumber"), 1, "the block is requested for again only to give something up");
}

/// Proves that a transfer has the same index in its receipt wherever its transaction is in a block.
#[test]
fn the_receipt_index_is_stable() {
    for moved in [0, 7, 4_000] {
        let logs = [transfer(moved + 30, OTHER, 1), used(moved + 31, 1), transfer(moved + 32, SHOP, 10_000)];
        let Ok(AuthorizationUse::Paid(found)) = judge(1, &logs[1], &logs) else { panic!("paid") };
        assert_eq!((found.receipt_log_index, found.log_index), (Some(2), i64::try_from(moved + 32).ok()));
    }
}

/// Proves that an old payment is found, or lapses, with few requests, on chains with regular and irregular blocks; and that payments of very different
/// times are not one search.
#[tokio::test]
async fn old_claims_are_searched_for_in_few_requests() {
    const YEAR_S: u64 = 365 * 86_400;
    // (Seconds between blocks, the newest block, the most requests for blocks.)
    for (block_s, newest, blocks_max) in [(2, 100_000_000, 4), (1, 100_000_000, 40), (12, 3_000_000, 40)] {
        let used_in = newest - (YEAR_S + 300) / block_s;
        let logs = vec![(used_in, used(4, 1)), (used_in, transfer(5, SHOP, 10_000))];
        let node = Node::start(Script { head: (newest, VALID_BEFORE + YEAR_S), block_s, logs, ..Script::default() }).await;
        assert_eq!(node.chain.find(&timed(1)).await, paid(5, 1), "{block_s}");
        assert_eq!(node.chain.find(&timed(2)).await, Ok(AuthorizationUse::Late), "{block_s}");
        let requested = (node.requested("eth_getBlockByNumber"), node.requested("eth_getLogs"));
        assert!(requested.0 <= 2 * blocks_max && requested.1 <= 16, "{block_s}: {requested:?}");
        let newer = Payment { claimed_at: timed(1).claimed_at + 86_400_000, valid_before: timed(1).valid_before + 86_400, ..timed(3) };
        let head = node.chain.head().await.unwrap();
        assert!(node.chain.find_all(&head, &[&timed(1), &newer]).await.is_err());
    }
}

/// Proves that a payment that is valid for a week is searched for over the whole week.
#[tokio::test]
async fn long_authorizations_are_searched_for() {
    const DAY_S: u64 = 86_400;
    const NEWEST: u64 = 100_000_000;
    let weekly = |nonce: u8| Payment { claimed_at: timed(nonce).claimed_at - 7 * 86_400_000, ..timed(nonce) };
    // Used three days before its end, of which the newest block is a day later.
    let used_in = NEWEST - 4 * DAY_S / 2;
    let logs = vec![(used_in, used(4, 1)), (used_in, transfer(5, SHOP, 10_000))];
    let node = Node::start(Script { head: (NEWEST, VALID_BEFORE + DAY_S), block_s: 2, logs, ..Script::default() }).await;
    assert_eq!(node.chain.find(&weekly(1)).await, paid(5, 1));
    assert_eq!(node.chain.find(&weekly(2)).await, Ok(AuthorizationUse::Late));
    assert!(node.requested("eth_getLogs") <= 2 * 160, "{}", node.requested("eth_getLogs"));
}

/// Proves that one request shows whether an authorization was used, and that a malformed response is an error.
#[tokio::test]
async fn a_used_authorization_is_known_by_one_request() {
    let node = Node::start(Script::default()).await;
    for is_used in [true, false] {
        node.script().is_used = Some(is_used);
        assert_eq!(node.chain.is_used(&payment(1)).await, Ok(is_used));
    }
    node.script().is_used = None;
    assert!(node.chain.is_used(&payment(1)).await.is_err());
    assert_eq!(node.script().requested, ["eth_call"; 3]);
}
