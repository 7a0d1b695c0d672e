//! Payments with a simulated chain and facilitator that fail and lie: each settled payment gets one answer, an unsettled one gets none, and
//! none is lost.

pub(crate) mod backend;
mod documents;
mod open_claims;
pub(crate) mod refusing_facilitator;
mod repeats;

use std::collections::BTreeMap;
use std::net::SocketAddr;
use std::path::Path;
use std::process::Command;
use std::sync::Mutex;
use std::thread;

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use k256::ecdsa::SigningKey;
use payments::signed_payment::{Message, address, address_of, digest, hex_text};
use payments::terms::{NETWORKS, PaymentTerms, VALIDITY_DEFAULT_S, Version};
use serde_json::{Value, json};

use self::backend::{Fault, PaymentBackend};
use crate::cluster::Cluster;
use crate::commands::NOWHERE;
use crate::engine::moving_clock;
use crate::process::{Answer, Server, fix_clock, highwater, stderr_of_failure, stdout, try_send, wait_for};
use crate::random::{Random, number, seed};

pub(crate) const PAY_TO: &str = "0x00000000000000000000000000000000000000AA";
const ISSUE: &str = "/receipts/v1/issue";
/// Concurrent callers while the server is killed.
const CALLERS: u64 = 6;
/// Payments of each caller.
const PAYMENTS_PER_CALLER: u64 = 12;

fn serve(data: &Path, backend: &PaymentBackend) -> Command {
    let mut command = with_payments(highwater(data, NOWHERE, &["serve"]), backend);
    // A test polls for a receipt without a limit.
    command.env("HIGHWATER_TIERS__FREE__CALLS_PER_DAY", "1000000");
    command
}

/// Returns a command that serves with a clock that is fixed at the time of this call, so that no minute of a rate limit ends.
fn serve_at_one_instant(data: &Path, backend: &PaymentBackend) -> Command {
    let mut command = serve(data, backend);
    fix_clock(&mut command, &schemas::clock::rfc3339(moving_clock().now_ms()));
    command
}

/// Makes a command accept payments through a payment backend.
pub(crate) fn with_payments(mut command: Command, backend: &PaymentBackend) -> Command {
    let own = format!("http://{}", backend.address());
    for (key, value) in [("PAY_TO", PAY_TO), ("FACILITATOR_URL", &own), ("RPC_URL", &format!("{own}/rpc")), ("ROUND_S", "1")] {
        command.env(format!("HIGHWATER_PAYMENTS__{key}"), value);
    }
    command
}

pub(crate) fn body(agent: &str, number: u64) -> String {
    json!({ "action": "pay", "agent_id": agent, "inputs": { "number": number }, "outputs": {} }).to_string()
}

/// Returns a signed authorization, by number.
pub(crate) fn authorization(number: u64, value: u64) -> Value {
    authorization_by(&SigningKey::from_slice(&[7; 32]).unwrap(), number, value)
}

/// Returns an authorization that a payer signed, by number.
fn authorization_by(key: &SigningKey, number: u64, value: u64) -> Value {
    authorization_until(key, number, value, u64::try_from(moving_clock().now_ms() / 1_000).unwrap() + 600)
}

/// Returns an authorization that a payer signed, by number, valid before a time (seconds since 1970).
fn authorization_until(key: &SigningKey, number: u64, value: u64, valid_before: u64) -> Value {
    let (asset, pay_to) = (NETWORKS[0].usdc.to_owned(), PAY_TO.to_owned());
    let (versions, validity_s) = (Version::ALL.to_vec(), VALIDITY_DEFAULT_S);
    let terms = PaymentTerms { network: NETWORKS[0], asset, pay_to, versions, validity_s };
    let mut nonce = [0; 32];
    nonce[..8].copy_from_slice(&number.to_be_bytes());
    let message =
        Message { from: address(key.verifying_key()), to: address_of(PAY_TO).unwrap(), value, valid_after: 0, valid_before, nonce };
    let (signature, recovery) = key.sign_prehash_recoverable(&digest(&terms, &address_of(&terms.asset).unwrap(), &message));
    let signature = [signature.to_bytes().as_slice(), &[27 + recovery.to_byte()]].concat();
    json!({
        "signature": hex_text(&signature),
        "authorization": {
            "from": hex_text(&message.from), "to": PAY_TO, "value": value.to_string(), "validAfter": "0",
            "validBefore": valid_before.to_string(), "nonce": hex_text(&nonce),
        },
    })
}

/// Returns a payment in the form of x402 version 1.
pub(crate) fn payment(number: u64) -> Value {
    version_1(&authorization(number, 10_000))
}

/// Returns a payment of one of several payers.
pub(crate) fn payment_by(payer: u8, number: u64) -> Value {
    version_1(&authorization_by(&SigningKey::from_slice(&[payer; 32]).unwrap(), number, 10_000))
}

pub(crate) fn version_1(authorization: &Value) -> Value {
    json!({ "x402Version": 1, "scheme": "exact", "network": "base", "payload": authorization })
}

pub(crate) fn header(payment: &Value) -> String {
    STANDARD.encode(payment.to_string())
}

fn pay(at: SocketAddr, payment: &Value, body: &str) -> Option<Answer> {
    try_send(at, "POST", ISSUE, &[("x-payment", &header(payment))], body)
}

fn json_of(answer: &Answer) -> Value {
    serde_json::from_slice(&answer.body).unwrap()
}

fn receipt(answer: &Answer) -> Value {
    assert_eq!(answer.status, 201, "{}", String::from_utf8_lossy(&answer.body));
    json_of(answer)["receipt"].take()
}

/// Sends a payment again until the answer is final: not 503, and not "being settled".
fn pay_until_answered(at: &impl Fn() -> SocketAddr, payment: &Value, body: &str) -> Answer {
    wait_for("an answer to a payment", || {
        let answer = pay(at(), payment, body).filter(|answer| answer.status != 503)?;
        let is_busy = answer.status == 402 && String::from_utf8_lossy(&answer.body).contains("being settled");
        (!is_busy).then_some(answer)
    })
}

/// The listings have the terms of each paid call: at its URL, and `offered`, those of the tool `issue_receipt`.
fn listings_have_the_terms(server: &Server, offered: &Value) {
    let at = server.address;
    for listing in ["/.well-known/x402", "/receipts/.well-known/x402"] {
        let listed = server.json(listing, "");
        let (mut http, mut mcp) = (0, 0);
        for item in listed["items"].as_array().unwrap() {
            if item["type"] == "http" {
                let url = item["call"]["url"].as_str().unwrap();
                let path = url.strip_prefix(&format!("http://{at}")).unwrap();
                let answer = try_send(at, item["call"]["method"].as_str().unwrap(), path, &[], "").unwrap();
                let header: Value = serde_json::from_slice(&STANDARD.decode(answer.header("payment-required")).unwrap()).unwrap();
                assert_eq!((answer.status, &header["accepts"], &header["resource"]["url"]), (402, &item["accepts"], &item["resource"]));
                assert_eq!(json_of(&answer)["accepts"], item["acceptsV1"]);
                http += 1;
            } else if item["call"]["tool"] == "issue_receipt" {
                assert_eq!((&offered["accepts"], &offered["resource"]["url"]), (&item["accepts"], &item["resource"]));
                mcp += 1;
            }
        }
        // Operations of other services have prices, too.
        let is_root = !listing.starts_with("/receipts");
        assert!((http == 1 || is_root && http > 1) && mcp == 1, "{listing}: {http} {mcp}");
    }
    // A route that sells several tools is also listed without a query: called like that, it has the terms of one of them.
    let listed = server.json("/.well-known/x402", "");
    let bare = format!("http://{at}/parcels/x402/pay");
    assert!(listed["routes"].as_array().unwrap().iter().any(|route| route["endpoint"] == bare), "{}", listed["routes"]);
    let called = try_send(at, "GET", "/parcels/x402/pay", &[], "").unwrap();
    let terms: Value = serde_json::from_slice(&STANDARD.decode(called.header("payment-required")).unwrap()).unwrap();
    assert_eq!((called.status, &terms["resource"]["url"]), (402, &json!(bare)));
    let has_terms = |item: &Value| item["resource"] == bare && item["accepts"] == terms["accepts"];
    assert!(listed["items"].as_array().unwrap().iter().any(has_terms), "{terms}");
}

/// What is stored of payments and receipts cannot move money, and is the same after a rebuild.
fn nothing_stored_moves_money(data: &Path, issued: &Value) {
    let stored =
        ["payments", "changes.payments", "changes.receipts", "receipts"].map(|topic| stdout(highwater(data, NOWHERE, &["export", topic])));
    assert!(stored[0].contains("\"settled\"") && stored[2].contains(issued["id"].as_str().unwrap()));
    let signature = payment(1)["payload"]["signature"].as_str().unwrap()[2..60].to_owned();
    assert!(stored.iter().all(|text| !text.contains(&signature)), "a stored text contains a signature");
    for view in ["payments", "receipts"] {
        let digest = || stdout(highwater(data, NOWHERE, &["digest", view, "--history"]));
        let before = digest();
        stdout(highwater(data, NOWHERE, &["replay", view]));
        let redecide = highwater(data, NOWHERE, &["redecide", view]);
        // Receipts that were signed and issued cannot change.
        if view == "receipts" {
            assert!(stderr_of_failure(redecide).contains("cannot be decided again"))
        } else {
            drop(stdout(redecide))
        }
        assert_eq!(digest(), before);
    }
}

/// Proves that an unpaid call gets the payment terms, the same in both versions, over REST and MCP and at each URL of the listing; that a payment buys
/// one answer, which only the same payment with the same request gets again; that what is wrong with a payment is named and moves no money;
/// and that nothing is stored that could move money.
#[test]
fn payment_buys_one_answer() {
    let dir = tempfile::tempdir().unwrap();
    let (data, backend) = (dir.path().join("data"), PaymentBackend::open());
    let server = Server::signing(serve(&data, &backend));
    let at = server.address;
    let ask = |body: &str| try_send(at, "POST", ISSUE, &[], body).unwrap();

    let unpaid = ask(&body("a", 1));
    let terms = json_of(&unpaid);
    assert_eq!((unpaid.status, &terms["x402Version"], &terms["code"]), (402, &json!(1), &json!("payment-required")));
    assert_eq!((&terms["preview"]["body"]["agent_id"], unpaid.header("cache-control")), (&json!("a"), "no-store"));
    let second: Value = serde_json::from_slice(&STANDARD.decode(unpaid.header("payment-required")).unwrap()).unwrap();
    let (v1, v2) = (&terms["accepts"][0], &second["accepts"][0]);
    assert_eq!((&v1["maxAmountRequired"], &v1["network"], &v1["payTo"]), (&json!("10000"), &json!("base"), &json!(PAY_TO)));
    assert_eq!((&v2["amount"], &v2["network"], &second["resource"]["url"]), (&json!("10000"), &json!("eip155:8453"), &v1["resource"]));
    assert_eq!(ask("{}").status, 402, "the terms do not depend on the arguments");
    let none = json_of(&ask(r#"{"action":"x"}"#));
    let note = none["previewNote"].as_str().unwrap();
    assert!(none["preview"].is_null() && note.contains("an argument is missing or invalid: ") && note.ends_with(" is missing"), "{note}");
    assert_eq!(terms.get("previewNote"), None);
    let tool = |body: &Value, meta: Value| -> Value {
        let call = json!({ "jsonrpc": "2.0", "id": 1, "method": "tools/call", "params": { "name": "issue_receipt", "arguments": body, "_meta": meta } });
        let accept = ("accept", "application/json, text/event-stream");
        json_of(&try_send(at, "POST", "/receipts/mcp", &[accept], &call.to_string()).unwrap())["result"].take()
    };
    let arguments: Value = serde_json::from_str(&body("a", 1)).unwrap();
    let offered = tool(&arguments, json!({}));
    assert_eq!((&offered["isError"], &offered["structuredContent"]["x402Version"]), (&json!(true), &json!(2)));
    assert_eq!(serde_json::from_str::<Value>(offered["content"][0]["text"].as_str().unwrap()).unwrap(), offered["structuredContent"]);

    listings_have_the_terms(&server, &offered["structuredContent"]);

    // A payment of version 1, then the same call again.
    let first = pay(at, &payment(1), &body("a", 1)).unwrap();
    let issued = receipt(&first);
    assert_eq!(first.header("cache-control"), "private, no-store");
    for (name, network) in [("x-payment-response", "base"), ("payment-response", "eip155:8453")] {
        let settled: Value = serde_json::from_slice(&STANDARD.decode(first.header(name)).unwrap()).unwrap();
        assert_eq!((&settled["success"], &settled["network"]), (&json!(true), &json!(network)));
        assert_eq!(settled["transaction"], backend.transfers()[0].transaction);
    }
    assert_eq!(receipt(&pay(at, &payment(1), &body("a", 1)).unwrap()), issued);
    assert_eq!((backend.transfers().len(), backend.settle_count()), (1, 1));

    // A payment of version 2, then over MCP.
    let by_second = |number: u64, resource: &Value| json!({ "x402Version": 2, "payload": authorization(number, 10_000), "accepted": v2, "resource": { "url": resource } });
    let paid = try_send(at, "POST", ISSUE, &[("payment-signature", &header(&by_second(2, &v1["resource"])))], &body("a", 2)).unwrap();
    assert_eq!(receipt(&paid)["body"]["seq"], 2);
    let third: Value = serde_json::from_str(&body("a", 3)).unwrap();
    let paid = tool(&third, json!({ "x402/payment": by_second(3, &offered["structuredContent"]["resource"]["url"]) }));
    assert_eq!(
        (&paid["structuredContent"]["receipt"]["body"]["seq"], &paid["_meta"]["x402/payment-response"]["success"]),
        (&json!(3), &json!(true))
    );

    // Errors name what is wrong.
    let refused = |payment: &Value, body: &str, words: &str| {
        let answer = pay(at, payment, body).unwrap();
        let document = json_of(&answer);
        assert!(answer.status == 402 && document["error"].as_str().unwrap().contains(words), "{words}: {} {document}", answer.status);
    };
    refused(&payment(1), &body("a", 9), "another request");
    refused(&payment(1), &body("b", 1), "another request");
    let edited = |pointer: &str, value: Value| {
        let mut payment = payment(4);
        *payment.pointer_mut(pointer).unwrap() = value;
        payment
    };
    refused(&edited("/payload/authorization/value", json!("1")), &body("a", 4), "authorization.value");
    refused(&edited("/payload/authorization/to", json!("0x00")), &body("a", 4), "authorization.to");
    refused(&edited("/payload/authorization/validBefore", json!("1")), &body("a", 4), "validBefore");
    refused(&edited("/payload/authorization/nonce", json!(hex_text(&[1; 32]))), &body("a", 4), "signature");
    refused(&edited("/network", json!("base-sepolia")), &body("a", 4), "network");
    refused(&edited("/payload/signature", json!("0x")), &body("a", 4), "signature");
    let wrong = try_send(at, "POST", ISSUE, &[("x-payment", "%%%")], &body("a", 4)).unwrap();
    assert_eq!((wrong.status, &json_of(&wrong)["parameter"]), (400, &json!("X-PAYMENT")));
    refused(&edited("/payload/authorization", json!([1, 2])), &body("a", 4), "authorization");
    assert_eq!(pay(at, &payment(4), "{}").unwrap().status, 400, "wrong arguments cost nothing");
    let twice = [("x-payment", header(&payment(4))), ("payment-signature", header(&payment(4)))];
    let twice = twice.each_ref().map(|(name, value)| (*name, value.as_str()));
    assert_eq!(try_send(at, "POST", ISSUE, &twice, &body("a", 4)).unwrap().status, 400);
    assert_eq!(backend.transfers().len(), 3);
    drop(server);
    nothing_stored_moves_money(&data, &issued);
}

/// Proves that only networks that the facilitator lists as supported are offered, and that a server without any of them does not start.
#[test]
fn unsupported_networks_are_not_offered() {
    let dir = tempfile::tempdir().unwrap();
    let (data, backend) = (dir.path().join("data"), PaymentBackend::open());
    backend.set_supported(&[(2, "eip155:8453"), (1, "base-sepolia")]);
    let server = Server::signing(serve(&data, &backend));
    let unpaid = try_send(server.address, "POST", ISSUE, &[], &body("a", 1)).unwrap();
    let second: Value = serde_json::from_slice(&STANDARD.decode(unpaid.header("payment-required")).unwrap()).unwrap();
    assert_eq!((&json_of(&unpaid)["accepts"], second["accepts"].as_array().unwrap().len()), (&json!([]), 1));
    let refused = json_of(&pay(server.address, &payment(1), &body("a", 1)).unwrap());
    assert!(refused["error"].as_str().unwrap().contains("version 1"), "{refused}");
    let listed = server.json("/.well-known/x402", "");
    let item = listed["items"].as_array().unwrap().iter().find(|item| item["resource"] == second["resource"]["url"]).unwrap();
    assert_eq!((&item["acceptsV1"], &item["accepts"]), (&json!([]), &second["accepts"]));
    assert!(backend.transfers().is_empty());
    drop(server);
    backend.set_supported(&[(2, "eip155:1")]);
    let document = stderr_of_failure(serve(&data, &backend));
    assert!(document.contains("payments.facilitator_url") && document.contains("eip155:8453"), "{document}");
}

/// Proves that the chain decides, whatever faults the facilitator has: a payment that moved money gets its receipt, even if its buyer never
/// asks again, and one that did not gets none.
#[test]
fn chain_decides_despite_facilitator_faults() {
    let dir = tempfile::tempdir().unwrap();
    let (data, backend) = (dir.path().join("data"), PaymentBackend::open());
    let server = Server::signing(serve(&data, &backend));
    let at = server.address;
    let listed = |agent: &str| server.json(&format!("/receipts/v1/list?agent_id={agent}"), "")["receipts"].as_array().unwrap().len();
    // The fault of each settlement, and the first answer to the buyer.
    let cases: [(&[Fault], u16); 6] = [
        (&[Fault::Late], 201),
        (&[Fault::LiesNo], 201),
        (&[Fault::Pending], 201),
        (&[Fault::Fails, Fault::Refuses], 201),
        (&[Fault::Refuses; 3], 402),
        (&[Fault::Fails; 3], 503),
    ];
    for (turn, (faults, status)) in cases.into_iter().enumerate() {
        let (number, agent) = (100 + turn as u64, format!("agent-{turn}"));
        backend.set_faults(faults.iter().copied());
        let before = backend.transfers().len();
        let answer = pay(at, &payment(number), &body(&agent, number)).unwrap();
        assert_eq!(answer.status, status, "{faults:?}: {}", String::from_utf8_lossy(&answer.body));
        assert_eq!(backend.transfers().len() - before, usize::from(status == 201), "{faults:?}");
        assert_eq!(listed(&agent), usize::from(status == 201), "{faults:?}");
        if status == 503 {
            assert!(!answer.header("retry-after").is_empty());
        }
        // The same payment again: it is settled by now, or is settled now.
        let again = pay_until_answered(&|| at, &payment(number), &body(&agent, number));
        assert_eq!((receipt(&again)["body"]["seq"].as_u64(), listed(&agent)), (Some(1), 1), "{faults:?}");
        assert_eq!(backend.transfers().len() - before, 1, "{faults:?}");
    }

    // A false success is not believed, and the same payment may be sent again while its state is unknown.
    backend.set_faults([Fault::LiesYes]);
    let before = backend.transfers().len();
    let answer = pay(at, &payment(200), &body("liar", 200)).unwrap();
    assert_eq!((answer.status, listed("liar"), backend.transfers().len()), (503, 0, before), "{}", String::from_utf8_lossy(&answer.body));
    receipt(&pay_until_answered(&|| at, &payment(200), &body("liar", 200)));

    // Submitted to the chain by somebody else first.
    backend.submit(&payment(203));
    receipt(&pay(at, &payment(203), &body("first", 203)).unwrap());

    // Refused by the facilitator but submitted to the chain, while the buyer is gone.
    backend.set_faults([Fault::Refuses, Fault::Refuses, Fault::Refuses]);
    assert_eq!(pay(at, &payment(201), &body("gone", 201)).unwrap().status, 402);
    backend.submit(&payment(201));

    // Never settled, and expired.
    backend.set_faults([Fault::Fails, Fault::Fails, Fault::Fails]);
    assert_eq!(pay(at, &payment(202), &body("never", 202)).unwrap().status, 503);
    backend.advance_time(662);
    wait_for("the receipt of a buyer who is gone", || (listed("gone") == 1).then_some(()));
    let lapsed = wait_for("a payment that has lapsed", || {
        let answer = pay(at, &payment(202), &body("never", 202))?;
        String::from_utf8_lossy(&answer.body).contains("lapsed").then_some(answer)
    });
    assert_eq!((lapsed.status, listed("never")), (402, 0));
    assert_eq!(server.terminate().code(), Some(0));
}

/// Proves that a transfer pays for one answer: of six payments whose nonces are used by one transaction, one as it was signed and the
/// others for transfers of nothing to the payer, only one buys an answer, whether they are sent before or after that transaction.
#[test]
fn transfer_pays_for_one_answer() {
    let dir = tempfile::tempdir().unwrap();
    let (data, backend) = (dir.path().join("data"), PaymentBackend::open());
    let server = Server::signing(serve(&data, &backend));
    let at = server.address;
    let listed = |agent: &str| server.json(&format!("/receipts/v1/list?agent_id={agent}"), "")["receipts"].as_array().unwrap().len();
    for (first, agent, is_claimed) in [(300, "sent-after", false), (310, "sent-before", true)] {
        let payments: Vec<Value> = (first..first + 6).map(payment).collect();
        let send = |place: usize| pay(at, &payments[place], &body(agent, first + place as u64)).unwrap();
        if is_claimed {
            for place in 0..6 {
                backend.set_faults([Fault::Refuses; 3]);
                assert_eq!(send(place).status, 402);
            }
        }
        let real = 3;
        backend.submit_together(&payments, real);
        for place in 0..6 {
            let answer = send(place);
            let words = String::from_utf8_lossy(&answer.body).into_owned();
            assert_eq!(answer.status, if place == real { 201 } else { 402 }, "{agent} {place}: {words}");
            assert_eq!(words.contains("another transfer"), is_claimed && place != real, "{agent} {place}: {words}");
        }
        assert_eq!(listed(agent), 1, "{agent}");
        receipt(&send(real));
    }
    let settled = server.terminate();
    assert_eq!(settled.code(), Some(0));
    let stored = stdout(highwater(&data, NOWHERE, &["export", "payments"]));
    let settled: Vec<Value> =
        stored.lines().map(|line| serde_json::from_str(line).unwrap()).filter(|line: &Value| line["data"]["verb"] == "settled").collect();
    assert_eq!(settled.len(), 2, "there must be one settlement for each transaction");
    let is_fourth = |line: &Value| (&line["data"]["logIndex"], &line["data"]["receiptLogIndex"]) == (&json!(47), &json!(7));
    assert!(settled.iter().all(is_fourth), "not the log right after the fourth authorization: {settled:?}");
}

/// Proves that payments that cannot be settled are not recorded and cost the facilitator little: of 900 from one address, by payers without
/// money, none is recorded, and each is either verified and refused, or rate-limited without reaching the facilitator. A buyer at another
/// address is served while the facilitator does not answer the forged ones.
#[test]
fn forged_payments_are_not_recorded() {
    let dir = tempfile::tempdir().unwrap();
    let (data, backend) = (dir.path().join("data"), PaymentBackend::open());
    let mut command = serve_at_one_instant(&data, &backend);
    command.env("HIGHWATER_API__TRUSTED_PROXIES", r#"["127.0.0.1"]"#);
    // A machine that is busy with other work is slow to serve ninety callers at once, and the honest ones while verifications have no answer.
    command.env("HIGHWATER_CALL_TIMES__SALE_S", "360").env("HIGHWATER_API__REQUEST_TIMEOUT_S", "150");
    let server = Server::signing(command);
    let at = server.address;
    let send = |payment: &Value, from: &str, body: &str| {
        try_send(at, "POST", ISSUE, &[("x-payment", &header(payment)), ("x-forwarded-for", from)], body).unwrap()
    };
    let forged = |number: u64| {
        let key = SigningKey::from_slice(&[u8::try_from(10 + number % 90).unwrap(); 32]).unwrap();
        let authorization = authorization_by(&key, number, 10_000);
        backend.empty_account(authorization["authorization"]["from"].as_str().unwrap());
        version_1(&authorization)
    };
    let all: Vec<Value> = (0..900).map(forged).collect();
    backend.hold_verifications(true);
    let answers = thread::scope(|scope| {
        let callers: Vec<_> = all
            .chunks(10)
            .enumerate()
            .map(|(caller, payments)| {
                let send = &send;
                scope.spawn(move || {
                    payments.iter().map(|payment| send(payment, "192.0.2.1", &body("forged", caller as u64))).collect::<Vec<Answer>>()
                })
            })
            .collect();
        wait_for("verifications without an answer", || (backend.held_verifications() == 4).then_some(()));
        for number in 0..3 {
            receipt(&send(&payment(400 + number), "192.0.2.2", &body("honest", number)));
        }
        assert_eq!(backend.held_verifications(), 4, "the forged payments must wait in a queue");
        backend.hold_verifications(false);
        callers.into_iter().flat_map(|caller| caller.join().unwrap()).collect::<Vec<_>>()
    });
    let count_of = |status: u16| answers.iter().filter(|answer| answer.status == status).count();
    println!("{} refused, {} limited", count_of(402), count_of(429));
    assert_eq!(
        (count_of(402) + count_of(429), backend.verify_count()),
        (900, count_of(402) as u64 + 3),
        "rate-limited payments must not reach the facilitator"
    );
    assert!(count_of(402) <= 120, "the limit is 120 a minute: {}", count_of(402));
    assert!(answers.iter().all(|answer| answer.status != 429 || !answer.header("retry-after").is_empty()));
    assert_eq!((backend.settle_count(), backend.transfers().len()), (3, 3));
    assert_eq!(
        backend.request_count("eth_call"),
        count_of(402) as u64,
        "the chain's node is called once for each payment that the facilitator refuses"
    );
    assert!(backend.request_count("eth_getLogs") <= 6, "only payments with money are searched for");
    // The limit applies to that address only.
    let again = send(&all[0], "192.0.2.1", &body("forged", 0));
    assert!([402, 429].contains(&again.status));
    receipt(&send(&payment(410), "192.0.2.2", &body("honest", 10)));
    assert_eq!(server.terminate().code(), Some(0));
    let stored = stdout(highwater(&data, NOWHERE, &["export", "payments", "--all"]));
    assert_eq!(stored.lines().count(), 8, "there must be a claim and a settlement for each valid payment: {stored}");
    let honest = authorization(0, 10_000)["authorization"]["from"].as_str().unwrap().to_owned();
    let claims: Vec<Value> =
        stored.lines().map(|line| serde_json::from_str(line).unwrap()).filter(|line: &Value| line["data"]["verb"] == "claim").collect();
    assert!(claims.len() == 4 && claims.iter().all(|line| line["data"]["payer"] == honest.as_str()));
    assert!(!stored.contains("forged"));
}

/// Proves that unpaid calls from an address do not block its payers: when unpaid calls are limited, a signed payment still buys, and a
/// payment without a valid signature counts as an unpaid call.
#[test]
fn unpaid_calls_do_not_block_payers() {
    const UNPAID_MAX: usize = 600;
    let dir = tempfile::tempdir().unwrap();
    let (data, backend) = (dir.path().join("data"), PaymentBackend::open());
    let server = Server::signing(serve_at_one_instant(&data, &backend));
    let at = server.address;
    let mut forged = payment(1);
    forged["payload"]["authorization"]["nonce"] = json!(hex_text(&[1; 32]));
    let unpaid = |number: usize| match number % 2 {
        0 => try_send(at, "POST", ISSUE, &[], &body("unpaid", 1)).unwrap().status,
        _ => pay(at, &forged, &body("unpaid", 1)).unwrap().status,
    };
    let limited = (0..=UNPAID_MAX).find(|number| unpaid(*number) == 429);
    assert_eq!(limited, Some(UNPAID_MAX));
    for number in 2..10 {
        receipt(&pay(at, &payment(number), &body("paid", number)).unwrap());
    }
}

/// Proves that each transfer has one receipt and each receipt one transfer, with many buyers who send several copies of each payment at
/// once, random faults of the facilitator, and repeated kills of the server.
#[test]
fn payments_survive_kills() {
    let dir = tempfile::tempdir().unwrap();
    let (data, backend) = (dir.path().join("data"), PaymentBackend::open());
    let seed = seed("PAYMENTS_SEED", 1);
    let server = Server::signing(serve(&data, &backend));
    let mut random = Random(seed);
    let all = [Fault::Late, Fault::Refuses, Fault::Fails, Fault::LiesNo, Fault::Pending];
    backend.set_faults((0..CALLERS * PAYMENTS_PER_CALLER).map(|_| random.pick(&all)));
    let (address, received) = (Mutex::new(server.address), Mutex::new(BTreeMap::<u64, Value>::new()));
    let at = || *address.lock().unwrap();
    let server = thread::scope(|scope| {
        let mut server = server;
        for caller in 0..CALLERS {
            let (received, at) = (&received, &at);
            scope.spawn(move || {
                for number in caller * PAYMENTS_PER_CALLER..(caller + 1) * PAYMENTS_PER_CALLER {
                    let (payment, body) = (payment(number), body(&format!("agent-{}", number % 3), number));
                    let copies = thread::scope(|copies| {
                        let asked: Vec<_> = (0..2).map(|_| copies.spawn(|| pay_until_receipt(at, &payment, &body))).collect();
                        asked.into_iter().map(|copy| copy.join().unwrap()).collect::<Vec<_>>()
                    });
                    assert_eq!(copies[0], copies[1], "copies of a payment got different answers");
                    received.lock().unwrap().insert(number, copies[0].clone());
                }
            });
        }
        for kill in 1..=4_u64 {
            let at = kill * CALLERS * PAYMENTS_PER_CALLER / 5;
            wait_for("some receipts", || (received.lock().unwrap().len() as u64 >= at).then_some(()));
            server.kill();
            server = Server::start(serve(&data, &backend));
            *address.lock().unwrap() = server.address;
        }
        server
    });
    let received = received.into_inner().unwrap();
    let ids: std::collections::BTreeSet<&str> = received.values().map(|receipt| receipt["id"].as_str().unwrap()).collect();
    let paid = CALLERS * PAYMENTS_PER_CALLER;
    assert_eq!((received.len() as u64, ids.len(), backend.transfers().len() as u64), (paid, received.len(), paid));
    let listed: usize = (0..3)
        .map(|agent| server.json(&format!("/receipts/v1/list?agent_id=agent-{agent}&limit=200"), "")["receipts"].as_array().unwrap().len())
        .sum();
    assert_eq!(listed, received.len(), "a receipt has no payment");
}

/// Proves that a payment that is sent to two nodes at once, several times, is settled once and gets the same answer from both.
/// `PAYMENTS=1000 PAYMENT_COPIES=50` runs the long form.
#[test]
fn copies_at_two_nodes_are_settled_once() {
    let (payments, copies) = (number("PAYMENTS").unwrap_or(8), number("PAYMENT_COPIES").unwrap_or(10));
    let Some(cluster) = Cluster::new("payments over two nodes", NOWHERE, "") else { return };
    let backend = PaymentBackend::open();
    let start = |node: &str, role: &str| Server::start(with_payments(cluster.command(node, &["serve", "--role", role]), &backend));
    let (_projector, nodes) = (start("p", "project"), [start("a", "api"), start("b", "api")]);
    for node in &nodes {
        node.wait_until_it_signs();
    }
    for number in 0..payments {
        let (payment, body) = (payment(number), body(&format!("agent-{}", number % 7), number));
        let received: Vec<Value> = thread::scope(|scope| {
            let (payment, body, nodes) = (&payment, &body, &nodes);
            let asked: Vec<_> = (0..copies)
                .map(|copy| scope.spawn(move || pay_until_receipt(&|| nodes[usize::from(copy % 2 == 1)].address, payment, body)))
                .collect();
            asked.into_iter().map(|copy| copy.join().unwrap()).collect()
        });
        assert!(received.iter().all(|receipt| *receipt == received[0]), "copies of a payment got different answers");
    }
    assert_eq!(backend.transfers().len() as u64, payments);
    assert_eq!(backend.settle_count(), payments, "a payment was submitted twice for settlement");
    let listed = |agent: u64| {
        nodes[0].json(&format!("/receipts/v1/list?agent_id=agent-{agent}&limit=200"), "")["receipts"].as_array().unwrap().len() as u64
    };
    assert_eq!((0..7).map(listed).sum::<u64>(), payments, "a receipt has no payment");
}

/// Sends a payment until there is a receipt, because a facilitator's refusal may be temporary.
fn pay_until_receipt(at: &impl Fn() -> SocketAddr, payment: &Value, body: &str) -> Value {
    wait_for("a receipt", || {
        let answer = pay_until_answered(at, payment, body);
        (answer.status == 201).then(|| receipt(&answer))
    })
}
