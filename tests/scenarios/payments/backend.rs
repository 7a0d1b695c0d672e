//! A simulated chain with a payment facilitator, in one process: a token whose authorizations can be used once, and a facilitator that
//! submits them, correctly or with faults.

use std::collections::{BTreeMap, HashMap, HashSet, VecDeque};
use std::net::SocketAddr;
use std::sync::{Arc, Mutex};

use payments::signed_payment::hex_text;
use serde_json::{Value, json};
use tokio::sync::watch;
use warp::Filter as _;
use warp::http::StatusCode;

use crate::engine::moving_clock;
use crate::loopback::Loopback;

/// How the facilitator mishandles a settlement.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Fault {
    /// Submits it to the chain; the answer is lost.
    Late,
    /// Does nothing and answers that it failed.
    Refuses,
    /// Does nothing and does not answer.
    Fails,
    /// Does nothing and answers that it succeeded.
    LiesYes,
    /// Submits it to the chain and answers that it failed.
    LiesNo,
    /// Submits it to the chain and answers that it is not in a block yet.
    Pending,
}

/// The index of the first log in each transaction.
const FIRST_LOG: u64 = 40;
/// Seconds between two blocks; a block's number is its time in these units.
const BLOCK_S: u64 = 2;

/// A transfer on the chain.
#[derive(Clone, Debug)]
pub(crate) struct Transfer {
    pub(crate) transaction: String,
    /// The number of its block.
    block: u64,
    /// The index of its log; the log of its authorization is the one before.
    log_index: u64,
    from: String,
    to: String,
    value: u64,
}

#[derive(Default)]
struct State {
    /// Transfers, by payer and nonce.
    used: HashMap<(String, String), Transfer>,
    faults: VecDeque<Fault>,
    settles: u64,
    /// The number of verification requests.
    verifies: u64,
    /// Verifications that are being held.
    held: usize,
    /// Payers without money.
    poor: HashSet<String>,
    /// Requests to the chain's node, by method.
    requests: BTreeMap<String, u64>,
    /// Seconds by which the chain's clock is ahead.
    ahead_s: i64,
    /// The versions and networks of the scheme "exact" that the facilitator lists as supported.
    kinds: Vec<(u64, &'static str)>,
}

/// The chain and its facilitator.
pub(crate) struct PaymentBackend {
    server: Loopback,
    state: Arc<Mutex<State>>,
    /// Whether verifications of payers without money are held.
    holds: watch::Sender<bool>,
}

impl Drop for PaymentBackend {
    fn drop(&mut self) {
        // The server waits for requests that are not answered yet.
        self.hold_verifications(false);
    }
}

impl PaymentBackend {
    pub(crate) fn open() -> Self {
        let kinds = vec![(1, "base"), (2, "eip155:8453")];
        let state = Arc::new(Mutex::new(State { kinds, ..State::default() }));
        let (own, listed) = (Arc::clone(&state), Arc::clone(&state));
        let (holds, held) = watch::channel(false);
        let answer = move |path: warp::path::FullPath, body: Value| {
            let (own, mut held) = (Arc::clone(&own), held.clone());
            async move {
                if path.as_str().ends_with("/verify") && own.lock().unwrap().begin_verification(&body) {
                    drop(held.wait_for(|held| !held).await);
                    own.lock().unwrap().held -= 1;
                }
                own.lock().unwrap().answer(path.as_str(), &body)
            }
        };
        #[expect(clippy::disallowed_methods, reason = "only the server under test calls this")]
        let request = warp::post().and(warp::path::full()).and(warp::body::json()).then(answer);
        let supported = warp::path!("supported").map(move || warp::reply::json(&listed.lock().unwrap().supported()));
        Self { server: Loopback::open(supported.or(request)), state, holds }
    }

    pub(crate) fn address(&self) -> SocketAddr {
        self.server.address
    }

    /// Sets the supported kinds of payments: version and network.
    pub(crate) fn set_supported(&self, kinds: &[(u64, &'static str)]) {
        self.state.lock().unwrap().kinds = kinds.to_vec();
    }

    /// Sets the faults of the next settlements.
    pub(crate) fn set_faults(&self, faults: impl IntoIterator<Item = Fault>) {
        self.state.lock().unwrap().faults = faults.into_iter().collect();
    }

    /// Advances the chain's clock.
    pub(crate) fn advance_time(&self, seconds: i64) {
        self.state.lock().unwrap().ahead_s += seconds;
    }

    /// Submits a payment to the chain, independently of the facilitator.
    pub(crate) fn submit(&self, payment: &Value) {
        self.submit_together(std::slice::from_ref(payment), 0);
    }

    /// Submits payments in one transaction. The payment with index `real` is made as it was signed; the nonces of the others are used for
    /// transfers of nothing from the payer to the payer.
    pub(crate) fn submit_together(&self, payments: &[Value], real: usize) {
        let mut state = self.state.lock().unwrap();
        let mut transaction = String::new();
        for (place, payment) in payments.iter().enumerate() {
            let (id, mut transfer) = state.transfer_of(&json!({ "paymentPayload": payment })).unwrap();
            if transaction.is_empty() {
                transaction.clone_from(&transfer.transaction);
            }
            transfer.transaction.clone_from(&transaction);
            transfer.log_index += 2 * place as u64;
            if place != real {
                (transfer.to, transfer.value) = (transfer.from.clone(), 0);
            }
            state.used.insert(id, transfer);
        }
    }

    /// Empties a payer's account.
    pub(crate) fn empty_account(&self, payer: &str) {
        self.state.lock().unwrap().poor.insert(payer.to_lowercase());
    }

    /// Holds verifications of payers without money, or stops holding them.
    pub(crate) fn hold_verifications(&self, holds: bool) {
        self.holds.send_replace(holds);
    }

    /// Returns the number of verifications that are being held.
    pub(crate) fn held_verifications(&self) -> usize {
        self.state.lock().unwrap().held
    }

    /// Returns the number of verification requests.
    pub(crate) fn verify_count(&self) -> u64 {
        self.state.lock().unwrap().verifies
    }

    /// Returns the number of requests of a method to the chain's node.
    pub(crate) fn request_count(&self, method: &str) -> u64 {
        self.state.lock().unwrap().requests.get(method).copied().unwrap_or(0)
    }

    /// Returns the transfers on the chain.
    pub(crate) fn transfers(&self) -> Vec<Transfer> {
        self.state.lock().unwrap().used.values().cloned().collect()
    }

    /// Returns the number of settlement requests.
    pub(crate) fn settle_count(&self) -> u64 {
        self.state.lock().unwrap().settles
    }
}

impl State {
    fn supported(&self) -> Value {
        let kind = |(version, network): &(u64, &str)| json!({ "x402Version": version, "scheme": "exact", "network": network });
        json!({ "kinds": self.kinds.iter().map(kind).collect::<Vec<_>>(), "extensions": [], "signers": {} })
    }

    fn answer(&mut self, path: &str, body: &Value) -> warp::reply::WithStatus<warp::reply::Json> {
        let answer = match path.rsplit('/').next().unwrap_or_default() {
            "verify" => {
                let reason = if self.is_poor(body) { "insufficient_funds" } else { "nonce_used" };
                let is_valid = !self.is_poor(body) && self.transfer_of(body).is_some();
                Some(json!({ "isValid": is_valid, "invalidReason": reason, "payer": "" }))
            }
            "settle" => self.settle(body),
            _ => Some(self.rpc(body)),
        };
        let status = if answer.is_some() { StatusCode::OK } else { StatusCode::BAD_GATEWAY };
        warp::reply::with_status(warp::reply::json(&answer.unwrap_or_else(|| json!("no answer"))), status)
    }

    /// Counts a verification; returns whether it may be held.
    fn begin_verification(&mut self, body: &Value) -> bool {
        self.verifies += 1;
        let may_be_held = self.is_poor(body);
        self.held += usize::from(may_be_held);
        may_be_held
    }

    fn is_poor(&self, body: &Value) -> bool {
        let payer = body["paymentPayload"]["payload"]["authorization"]["from"].as_str().unwrap();
        self.poor.contains(&payer.to_lowercase())
    }

    /// Returns the transfer that a payment authorizes, if it can be made.
    fn transfer_of(&self, body: &Value) -> Option<((String, String), Transfer)> {
        let request = &body["paymentPayload"]["payload"]["authorization"];
        let text = |field: &str| request[field].as_str().unwrap().to_lowercase();
        let id = (text("from"), text("nonce"));
        let transaction = hex_text(&proofs::hash::Hash32::of(format!("{id:?}").as_bytes()).0);
        let value = text("value").parse().unwrap();
        let transfer =
            Transfer { transaction, block: self.newest_block(), log_index: FIRST_LOG + 1, from: text("from"), to: text("to"), value };
        (!self.used.contains_key(&id)).then_some((id, transfer))
    }

    fn newest_block(&self) -> u64 {
        u64::try_from(moving_clock().now_ms() / 1_000 + self.ahead_s).unwrap() / BLOCK_S
    }

    fn settle(&mut self, body: &Value) -> Option<Value> {
        self.settles += 1;
        let fault = self.faults.pop_front();
        let yes = |transaction: &str| Some(json!({ "success": true, "transaction": transaction, "network": "base", "payer": "" }));
        let no = |reason: &str| Some(json!({ "success": false, "errorReason": reason, "transaction": "", "network": "base" }));
        let Some((id, transfer)) = self.transfer_of(body) else { return no("invalid_exact_evm_nonce_already_used") };
        match fault {
            Some(Fault::Refuses) => return no("insufficient_funds"),
            Some(Fault::Fails) => return None,
            Some(Fault::LiesYes) => return yes(&transfer.transaction),
            _ => {}
        }
        let transaction = transfer.transaction.clone();
        self.used.insert(id, transfer);
        match fault {
            None => yes(&transaction),
            Some(Fault::LiesNo) => no("insufficient_funds"),
            Some(Fault::Pending) => no("settlement_pending"),
            Some(_) => None,
        }
    }

    /// Answers a request to the chain's node.
    fn rpc(&mut self, body: &Value) -> Value {
        let method = body["method"].as_str().unwrap();
        *self.requests.entry(method.to_owned()).or_default() += 1;
        let result = match method {
            "eth_getBlockByNumber" => {
                let block = match body["params"][0].as_str().unwrap() {
                    "latest" => self.newest_block(),
                    number => number_of(number),
                };
                let time_s = block * BLOCK_S;
                json!({ "number": format!("{block:#x}"), "timestamp": format!("{time_s:#x}"), "hash": format!("{block:#066x}") })
            }
            "eth_call" => {
                let data = body["params"][0]["data"].as_str().unwrap();
                let is_used = self.used.keys().any(|(from, nonce)| data.ends_with(&format!("{}{}", &word(from)[2..], &nonce[2..])));
                json!(format!("{:#066x}", u64::from(is_used)))
            }
            "eth_getLogs" => {
                let [first, last] = ["fromBlock", "toBlock"].map(|field| number_of(body["params"][0][field].as_str().unwrap()));
                assert!(first <= last && last - first < 2_000, "{body}");
                let is_asked = |transfer: &Transfer| (first..=last).contains(&transfer.block);
                let is_among = |place: usize, word: &str| {
                    let message = body["params"][0]["topics"][place].as_array().unwrap();
                    message.iter().any(|request| request == word)
                };
                let request =
                    self.used.iter().filter(|((from, nonce), made)| is_asked(made) && is_among(1, &word(from)) && is_among(2, nonce));
                Value::Array(request.map(|((_, nonce), transfer)| transfer.logs(nonce)[0].clone()).collect())
            }
            "eth_getTransactionReceipt" => {
                let transaction = body["params"][0].as_str().unwrap();
                let made = self.used.iter().filter(|(_, made)| made.transaction == transaction);
                let logs: Vec<Value> = made.flat_map(|((_, nonce), made)| made.logs(nonce)).collect();
                json!({ "transactionHash": transaction, "logs": logs, "status": "0x1" })
            }
            method => panic!("{method}"),
        };
        json!({ "jsonrpc": "2.0", "id": 1, "result": result })
    }
}

/// Parses a hexadecimal number.
fn number_of(text: &str) -> u64 {
    u64::from_str_radix(&text[2..], 16).unwrap()
}

/// Encodes an address as an indexed value of a log.
fn word(address: &str) -> String {
    format!("0x{:0>64}", address.trim_start_matches("0x").to_lowercase())
}

impl Transfer {
    /// Returns the logs of the authorization and of the transfer.
    fn logs(&self, nonce: &str) -> [Value; 2] {
        let log = |index: u64, event: &[u8], message: [String; 2], data: String| {
            let [first, second] = message;
            json!({
                "address": payments::terms::NETWORKS[0].usdc, "topics": [payments::chain::event(event), first, second],
                "data": data, "transactionHash": self.transaction, "logIndex": format!("{index:#x}"),
            })
        };
        let transfer =
            log(self.log_index, b"Transfer(address,address,uint256)", [word(&self.from), word(&self.to)], format!("{:#066x}", self.value));
        let used = log(self.log_index - 1, b"AuthorizationUsed(address,bytes32)", [word(&self.from), nonce.to_owned()], "0x".to_owned());
        [used, transfer]
    }
}
