//! A chain and a facilitator in one process: a token of which authorizations are used once, and somebody who brings them there, truthfully
//! or not.

use std::collections::{BTreeMap, HashMap, HashSet, VecDeque};
use std::net::SocketAddr;
use std::sync::{Arc, Mutex};

use payments::signed::hex_text;
use schemas::clock::Clock;
use serde_json::{Value, json};
use tokio::sync::watch;
use warp::Filter as _;
use warp::http::StatusCode;

use crate::loopback::Loopback;

/// What the facilitator does with a settlement.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Fault {
    /// Brings it to the chain, and the answer is lost.
    Late,
    /// Does nothing and says no.
    Refuses,
    /// Does nothing and says nothing.
    Fails,
    /// Does nothing and says yes.
    LiesYes,
    /// Brings it to the chain and says no.
    LiesNo,
    /// Brings it to the chain, and says that it is not in a block yet.
    Pending,
}

/// The index of the first log in each transaction.
const FIRST_LOG: u64 = 40;
/// Seconds from block to block: the number of a block is its time by that.
const BLOCK_S: u64 = 2;

/// A transfer that was made.
#[derive(Clone, Debug)]
pub(crate) struct Transfer {
    pub(crate) transaction: String,
    /// The block that it is in.
    block: u64,
    /// The index of its log; that of its authorization is the one before.
    log_index: u64,
    from: String,
    to: String,
    value: u64,
}

#[derive(Default)]
struct State {
    /// By payer and nonce.
    used: HashMap<(String, String), Transfer>,
    faults: VecDeque<Fault>,
    settles: u64,
    /// How often it was asked to verify.
    verifies: u64,
    /// Verifications that are held now.
    held: usize,
    /// Who has no money.
    poor: HashSet<String>,
    /// Requests to the chain's node, by method.
    requests: BTreeMap<String, u64>,
    /// Seconds by which the chain's clock is ahead.
    ahead_s: i64,
    /// What the facilitator says that it settles, of the scheme «exact».
    kinds: Vec<(u64, &'static str)>,
}

/// The chain and its facilitator.
pub(crate) struct Market {
    server: Loopback,
    state: Arc<Mutex<State>>,
    /// Whether verifications of payers without money get no answer for now.
    holds: watch::Sender<bool>,
}

impl Drop for Market {
    fn drop(&mut self) {
        // The server waits for what it has not answered.
        self.hold(false);
    }
}

impl Market {
    pub(crate) fn open() -> Self {
        let kinds = vec![(1, "base"), (2, "eip155:8453")];
        let state = Arc::new(Mutex::new(State { kinds, ..State::default() }));
        let (own, listed) = (Arc::clone(&state), Arc::clone(&state));
        let (holds, held) = watch::channel(false);
        let answer = move |path: warp::path::FullPath, body: Value| {
            let (own, mut held) = (Arc::clone(&own), held.clone());
            async move {
                if path.as_str().ends_with("/verify") && own.lock().unwrap().begins_verifying(&body) {
                    drop(held.wait_for(|held| !held).await);
                    own.lock().unwrap().held -= 1;
                }
                own.lock().unwrap().answer(path.as_str(), &body)
            }
        };
        #[expect(clippy::disallowed_methods, reason = "who asks is the server under test")]
        let asked = warp::post().and(warp::path::full()).and(warp::body::json()).then(answer);
        let supported = warp::path!("supported").map(move || warp::reply::json(&listed.lock().unwrap().supported()));
        Self { server: Loopback::open(supported.or(asked)), state, holds }
    }

    pub(crate) fn address(&self) -> SocketAddr {
        self.server.address
    }

    /// What the facilitator says that it settles: version and network.
    pub(crate) fn lists(&self, kinds: &[(u64, &'static str)]) {
        self.state.lock().unwrap().kinds = kinds.to_vec();
    }

    /// What the facilitator does with the next settlements.
    pub(crate) fn plan(&self, faults: impl IntoIterator<Item = Fault>) {
        self.state.lock().unwrap().faults = faults.into_iter().collect();
    }

    /// Lets the chain's time go by.
    pub(crate) fn pass(&self, seconds: i64) {
        self.state.lock().unwrap().ahead_s += seconds;
    }

    /// Brings a payment to the chain, whatever the facilitator said of it.
    pub(crate) fn bring(&self, payment: &Value) {
        self.bring_together(std::slice::from_ref(payment), 0);
    }

    /// Brings payments to the chain in one transaction: the one at a place as it was signed, the nonces of the others for transfers of nothing from
    /// the payer to himself.
    pub(crate) fn bring_together(&self, payments: &[Value], real: usize) {
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

    /// Takes a payer's money away.
    pub(crate) fn impoverish(&self, payer: &str) {
        self.state.lock().unwrap().poor.insert(payer.to_lowercase());
    }

    /// Has verifications of payers without money get no answer, until that ends.
    pub(crate) fn hold(&self, holds: bool) {
        self.holds.send_replace(holds);
    }

    /// How many verifications get no answer now.
    pub(crate) fn held(&self) -> usize {
        self.state.lock().unwrap().held
    }

    /// How often it was asked to verify.
    pub(crate) fn verifies(&self) -> u64 {
        self.state.lock().unwrap().verifies
    }

    /// How often the chain's node was asked by a method.
    pub(crate) fn requests(&self, method: &str) -> u64 {
        self.state.lock().unwrap().requests.get(method).copied().unwrap_or(0)
    }

    /// The transfers that were made.
    pub(crate) fn transfers(&self) -> Vec<Transfer> {
        self.state.lock().unwrap().used.values().cloned().collect()
    }

    /// How often it was asked to settle.
    pub(crate) fn settles(&self) -> u64 {
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

    /// Counts a verification; whether it may be held.
    fn begins_verifying(&mut self, body: &Value) -> bool {
        self.verifies += 1;
        let may_be_held = self.is_poor(body);
        self.held += usize::from(may_be_held);
        may_be_held
    }

    fn is_poor(&self, body: &Value) -> bool {
        let payer = body["paymentPayload"]["payload"]["authorization"]["from"].as_str().unwrap();
        self.poor.contains(&payer.to_lowercase())
    }

    /// The transfer that a payment asks for, if it can be made.
    fn transfer_of(&self, body: &Value) -> Option<((String, String), Transfer)> {
        let asked = &body["paymentPayload"]["payload"]["authorization"];
        let text = |field: &str| asked[field].as_str().unwrap().to_lowercase();
        let id = (text("from"), text("nonce"));
        let transaction = hex_text(&schemas::hash::Hash32::of(format!("{id:?}").as_bytes()).0);
        let value = text("value").parse().unwrap();
        let transfer =
            Transfer { transaction, block: self.newest_block(), log_index: FIRST_LOG + 1, from: text("from"), to: text("to"), value };
        (!self.used.contains_key(&id)).then_some((id, transfer))
    }

    fn newest_block(&self) -> u64 {
        u64::try_from(Clock::System.now_ms() / 1_000 + self.ahead_s).unwrap() / BLOCK_S
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

    /// The chain's node.
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
                    let words = body["params"][0]["topics"][place].as_array().unwrap();
                    words.iter().any(|asked| asked == word)
                };
                let asked =
                    self.used.iter().filter(|((from, nonce), made)| is_asked(made) && is_among(1, &word(from)) && is_among(2, nonce));
                Value::Array(asked.map(|((_, nonce), transfer)| transfer.logs(nonce)[0].clone()).collect())
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

/// Reads a number in hex.
fn number_of(text: &str) -> u64 {
    u64::from_str_radix(&text[2..], 16).unwrap()
}

/// An address as an indexed value.
fn word(address: &str) -> String {
    format!("0x{:0>64}", address.trim_start_matches("0x").to_lowercase())
}

impl Transfer {
    /// The logs of its authorization and of itself.
    fn logs(&self, nonce: &str) -> [Value; 2] {
        let log = |index: u64, event: &[u8], words: [String; 2], data: String| {
            let [first, second] = words;
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
