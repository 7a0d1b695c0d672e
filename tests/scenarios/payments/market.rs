//! A chain and a facilitator in one process: a token of which authorizations are used once, and somebody who brings them there, truthfully
//! or not.

use std::collections::{HashMap, VecDeque};
use std::net::SocketAddr;
use std::sync::{Arc, Mutex};

use api::payments::signed::hex_text;
use schemas::clock::Clock;
use serde_json::{Value, json};
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

/// A transfer that was made.
#[derive(Clone, Debug)]
pub(crate) struct Transfer {
    pub(crate) transaction: String,
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
    /// Seconds by which the chain's clock is ahead.
    ahead_s: i64,
    /// What the facilitator says that it settles, of the scheme «exact».
    kinds: Vec<(u64, &'static str)>,
}

/// The chain and its facilitator.
pub(crate) struct Market {
    server: Loopback,
    state: Arc<Mutex<State>>,
}

impl Market {
    pub(crate) fn open() -> Self {
        let kinds = vec![(1, "base"), (2, "eip155:8453")];
        let state = Arc::new(Mutex::new(State { kinds, ..State::default() }));
        let (own, listed) = (Arc::clone(&state), Arc::clone(&state));
        let answer = move |path: warp::path::FullPath, body: Value| own.lock().unwrap().answer(path.as_str(), &body);
        #[expect(clippy::disallowed_methods, reason = "who asks is the server under test")]
        let asked = warp::post().and(warp::path::full()).and(warp::body::json()).map(answer);
        let supported = warp::path!("supported").map(move || warp::reply::json(&listed.lock().unwrap().supported()));
        Self { server: Loopback::open(supported.or(asked)), state }
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
        let mut state = self.state.lock().unwrap();
        let (id, transfer) = state.transfer_of(&json!({ "paymentPayload": payment })).unwrap();
        state.used.insert(id, transfer);
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
            "verify" => Some(json!({ "isValid": self.transfer_of(body).is_some(), "invalidReason": "nonce_used", "payer": "" })),
            "settle" => self.settle(body),
            _ => Some(self.rpc(body)),
        };
        let status = if answer.is_some() { StatusCode::OK } else { StatusCode::BAD_GATEWAY };
        warp::reply::with_status(warp::reply::json(&answer.unwrap_or_else(|| json!("no answer"))), status)
    }

    /// The transfer that a payment asks for, if it can be made.
    fn transfer_of(&self, body: &Value) -> Option<((String, String), Transfer)> {
        let asked = &body["paymentPayload"]["payload"]["authorization"];
        let text = |field: &str| asked[field].as_str().unwrap().to_lowercase();
        let id = (text("from"), text("nonce"));
        let transaction = hex_text(&schemas::hash::Hash32::of(format!("{id:?}").as_bytes()).0);
        let transfer = Transfer { transaction, from: text("from"), to: text("to"), value: text("value").parse().unwrap() };
        (!self.used.contains_key(&id)).then_some((id, transfer))
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
    fn rpc(&self, body: &Value) -> Value {
        let word = |address: &str| format!("0x{:0>64}", address.trim_start_matches("0x").to_lowercase());
        let result = match body["method"].as_str().unwrap() {
            "eth_getBlockByNumber" => {
                let now_s = Clock::System.now_ms() / 1_000 + self.ahead_s;
                json!({ "number": "0x10000", "timestamp": format!("{now_s:#x}") })
            }
            "eth_getLogs" => {
                let topics = &body["params"][0]["topics"];
                let of = |((from, nonce), transfer): (&(String, String), &Transfer)| {
                    let is_it = word(from) == topics[1].as_str().unwrap() && nonce == topics[2].as_str().unwrap();
                    is_it.then(|| json!({ "transactionHash": transfer.transaction }))
                };
                Value::Array(self.used.iter().filter_map(of).collect())
            }
            "eth_getTransactionReceipt" => {
                let made = self.used.values().find(|made| made.transaction == body["params"][0].as_str().unwrap()).unwrap();
                let topic = api::payments::chain::event(b"Transfer(address,address,uint256)");
                json!({ "logs": [{
                    "address": api::payments::terms::NETWORKS[0].usdc, "topics": [topic, word(&made.from), word(&made.to)],
                    "data": format!("{:#066x}", made.value),
                }] })
            }
            method => panic!("{method}"),
        };
        json!({ "jsonrpc": "2.0", "id": 1, "result": result })
    }
}
