//! Ownership of receipt chains: other accounts and payers cannot append to a chain, over REST and MCP, and do not pay for the attempt.

use std::net::SocketAddr;
use std::thread;

use schemas::key as row_key;
use schemas::tables::Write;
use schemas::views::receipts::{TABLES, state_key};
use serde_json::{Value, json};
use view_store::embedded::Options;
use view_store::{EmbeddedStore, ViewStore};

use crate::commands::NOWHERE;
use crate::payments::backend::{Fault, PaymentBackend};
use crate::payments::{body, header, payment_by, with_payments};
use crate::process::{Answer, Server, highwater, stderr_of_failure, stdout, try_send, wait_for};

const ISSUE: &str = "/receipts/v1/issue";

/// Asks for a receipt with a key or a payment.
fn issue(at: SocketAddr, with: (&str, &str), agent: &str, number: u64) -> Answer {
    try_send(at, "POST", ISSUE, &[with], &body(agent, number)).unwrap()
}

/// Returns the header that carries a key.
fn key(key: &str) -> (&str, &str) {
    ("x-api-key", key)
}

fn pay(at: SocketAddr, payment: &Value, agent: &str) -> Answer {
    issue(at, ("x-payment", &header(payment)), agent, 1)
}

fn json_of(answer: &Answer) -> Value {
    serde_json::from_slice(&answer.body).unwrap()
}

/// Returns the body of an issued receipt.
fn issued(answer: &Answer) -> Value {
    assert_eq!(answer.status, 201, "{}", String::from_utf8_lossy(&answer.body));
    json_of(answer)["receipt"]["body"].take()
}

fn assert_forbidden(answer: &Answer) {
    assert_eq!((answer.status, &json_of(answer)["code"]), (403, &json!("chain-forbidden")), "{}", String::from_utf8_lossy(&answer.body));
}

/// Calls the tool that issues receipts, with a header and metadata; returns its result.
fn issue_by_tool(at: SocketAddr, header: (&str, &str), agent: &str, meta: &Value) -> Value {
    let arguments: Value = serde_json::from_str(&body(agent, 1)).unwrap();
    let params = json!({ "name": "issue_receipt", "arguments": arguments, "_meta": meta });
    let call = json!({ "jsonrpc": "2.0", "id": 1, "method": "tools/call", "params": params });
    let accept = ("accept", "application/json, text/event-stream");
    json_of(&try_send(at, "POST", "/receipts/mcp", &[accept, header], &call.to_string()).unwrap())["result"].take()
}

fn payer_of(payment: &Value) -> String {
    payment["payload"]["authorization"]["from"].as_str().unwrap().to_owned()
}

/// Proves that a chain belongs to the account that its first receipt was issued to: another account's key and payment are refused over REST
/// and MCP, the chain is unchanged and no money moves; that writers whom the owner names append under their own names until the owner
/// removes them; and that the owner is shown wherever the chain is shown.
#[test]
fn only_owner_and_named_writers_append() {
    let dir = tempfile::tempdir().unwrap();
    let (data, backend) = (dir.path().join("data"), PaymentBackend::open());
    let command = |arguments: &[&str]| highwater(&data, NOWHERE, arguments);
    let [owner, stranger] = [(); 2].map(|()| stdout(command(&["keys", "mint", "--tier", "pro"])).trim().to_owned());
    let server = Server::signing(with_payments(command(&["serve"]), &backend));
    let at = server.address;
    let list = || server.json("/receipts/v1/list?agent_id=a", "");

    let first = issued(&issue(at, key(&owner), "a", 1));
    let account = first["issuedTo"].as_str().unwrap().to_owned();
    assert!(account.starts_with("acct_"));
    let before = list();
    assert_eq!((&before["owner"], before["receipts"].as_array().unwrap().len()), (&json!(account), 1));
    assert_forbidden(&issue(at, key(&stranger), "a", 2));
    let result = issue_by_tool(at, key(&stranger), "a", &json!({}));
    assert!(result["isError"] == true && result.to_string().contains("chain-forbidden"), "{result}");
    let payment = payment_by(9, 1);
    assert_forbidden(&pay(at, &payment, "a"));
    let result = issue_by_tool(at, ("x-none", ""), "a", &json!({ "x402/payment": payment }));
    assert!(result["isError"] == true && result.to_string().contains("chain-forbidden"), "{result}");
    assert_eq!((list(), backend.settle_count(), backend.transfers().len()), (before, 0, 0));
    let metrics = server.metrics().unwrap();
    let paid: Vec<&str> = metrics.lines().filter(|line| line.starts_with("api_payments_total{")).collect();
    assert_eq!(paid, [r#"api_payments_total{outcome="refused",service="receipts"} 2"#], "a forbidden call must count as refused");

    // No chain begins under a name that looks like another one.
    for lookalike in ["a ", " a", "a\u{200b}", "a\u{a0}"] {
        let refused = issue(at, key(&stranger), lookalike, 1);
        assert_eq!((refused.status, &json_of(&refused)["parameter"]), (400, &json!("agent_id")), "{lookalike:?}");
        let result = issue_by_tool(at, key(&stranger), lookalike, &json!({}));
        assert!(result["isError"] == true && result.to_string().contains("look like the name of another chain"), "{lookalike:?}: {result}");
    }

    // Only the owner can name writers.
    let other = issued(&issue(at, key(&stranger), "b", 1))["issuedTo"].as_str().unwrap().to_owned();
    let writers = |method: &str, who: &str, agent: &str, writer: &str| {
        let path = format!("/receipts/v1/chains/{agent}/writers");
        match method {
            "POST" => try_send(at, method, &path, &[key(who)], &json!({ "writer": writer }).to_string()).unwrap(),
            _ => try_send(at, method, &format!("{path}/{writer}"), &[key(who)], "").unwrap(),
        }
    };
    assert_forbidden(&writers("POST", &stranger, "a", &other));
    assert_eq!(writers("POST", "", "a", &other).status, 403, "the change of writers must require a key");
    assert_eq!(writers("POST", &owner, "none", &other).status, 404);
    assert_eq!(writers("POST", &owner, "a", "somebody").status, 400);
    assert_eq!(writers("POST", &owner, "a", &other).status, 201);
    let mixed_case = payer_of(&payment).to_uppercase().replace("0X", "0x");
    let named = json_of(&writers("POST", &owner, "a", &mixed_case));
    assert_eq!(named, json!({ "agent_id": "a", "owner": account, "writers": [other, payer_of(&payment)] }));
    let second = issued(&issue(at, key(&stranger), "a", 2));
    assert_eq!((&second["seq"], &second["issuedTo"]), (&json!(2), &json!(other)));
    let third = issued(&pay(at, &payment, "a"));
    assert_eq!((&third["seq"], &third["issuedTo"]), (&json!(3), &json!(payer_of(&payment))));
    assert_forbidden(&writers("DELETE", &stranger, "a", &other));
    assert_eq!(writers("DELETE", &owner, "a", &other).status, 200);
    assert_eq!(writers("DELETE", &owner, "a", &other).status, 404);
    assert_eq!(writers("DELETE", &owner, "a", &payer_of(&payment)).status, 200);
    assert_forbidden(&issue(at, key(&stranger), "a", 3));
    assert_forbidden(&pay(at, &payment_by(9, 2), "a"));
    assert_eq!(issued(&pay(at, &payment, "a")), third, "a paid call must be repeatable");
    assert_eq!((backend.settle_count(), backend.transfers().len()), (1, 1));

    // The owner is shown, and verified offline as part of the receipt.
    let listed = list();
    assert_eq!((&listed["owner"], listed["receipts"].as_array().unwrap().len()), (&json!(account), 3));
    let id = listed["receipts"][1]["id"].as_str().unwrap();
    let verified = server.json(&format!("/receipts/v1/verify/{id}"), "");
    assert_eq!(
        (&verified["valid"], &verified["owner"], &verified["receipt"]["body"]["issuedTo"]),
        (&json!(true), &json!(account), &json!(other))
    );
    let page = try_send(at, "GET", &format!("/receipts/verify/{id}"), &[], "").unwrap();
    let page = String::from_utf8_lossy(&page.body).into_owned();
    assert!(page.contains(&account) && page.contains(&other));
    let file = dir.path().join("receipt.json");
    std::fs::write(&file, listed["receipts"][1].to_string()).unwrap();
    assert!(stdout(command(&["verify", file.to_str().unwrap()])).contains(&format!("valid, issued to {other}")));

    // An operator can assign only chains without an owner.
    let message = stderr_of_failure(command(&["receipts", "assign-owner", "a", &other]));
    assert!(message.contains(&account), "{message}");
    assert!(stderr_of_failure(command(&["receipts", "assign-owner", "none"])).contains("name the owner"));
    drop(server);
    let digest = stdout(command(&["digest", "receipts", "--history"]));
    stdout(command(&["replay", "receipts"]));
    assert_eq!(stdout(command(&["digest", "receipts", "--history"])), digest);
}

/// Proves that of two payers who pay for the first receipt of a chain at the same time one gets it, and the other is refused without a
/// settlement; that a chain is reserved, also against keys, while the settlement of its first payment is unknown; and that the reservation
/// ends when that payment lapses.
#[test]
fn one_of_two_first_payers_gets_the_chain() {
    const ROUNDS: u64 = 8;
    let dir = tempfile::tempdir().unwrap();
    let (data, backend) = (dir.path().join("data"), PaymentBackend::open());
    let owner = stdout(highwater(&data, NOWHERE, &["keys", "mint", "--tier", "pro"])).trim().to_owned();
    let server = Server::signing(with_payments(highwater(&data, NOWHERE, &["serve"]), &backend));
    let at = server.address;
    for round in 0..ROUNDS {
        let agent = format!("agent-{round}");
        let answers = thread::scope(|scope| {
            let payers = [8, 9].map(|payer| {
                let agent = &agent;
                scope.spawn(move || pay(at, &payment_by(payer, round), agent))
            });
            payers.map(|payer| payer.join().unwrap())
        });
        let (won, lost): (Vec<&Answer>, Vec<&Answer>) = answers.iter().partition(|answer| answer.status == 201);
        assert_eq!((won.len(), lost.len()), (1, 1), "{:?}", answers.each_ref().map(|answer| String::from_utf8_lossy(&answer.body)));
        assert_forbidden(lost[0]);
        let listed = server.json(&format!("/receipts/v1/list?agent_id={agent}"), "");
        assert_eq!((&listed["owner"], listed["receipts"].as_array().unwrap().len()), (&issued(won[0])["issuedTo"], 1));
        assert_eq!((backend.settle_count(), backend.transfers().len() as u64), (round + 1, round + 1), "the refused payment was settled");
    }

    // While the settlement is unknown, the chain is reserved for the first claim.
    backend.set_faults([Fault::Fails; 3]);
    let (first, second) = (payment_by(8, 100), payment_by(9, 100));
    assert_eq!(pay(at, &first, "slow").status, 503);
    let settles = backend.settle_count();
    assert_forbidden(&pay(at, &second, "slow"));
    assert_forbidden(&issue(at, key(&owner), "slow", 1));
    assert_eq!((backend.settle_count(), server.json("/receipts/v1/list?agent_id=slow", "")["owner"].as_str()), (settles, Some("")));
    let paid = wait_for("the receipt", || Some(pay(at, &first, "slow")).filter(|answer| answer.status == 201));
    assert_eq!(issued(&paid)["issuedTo"], json!(payer_of(&first)));

    backend.set_faults([Fault::Fails; 3]);
    assert_eq!(pay(at, &payment_by(8, 101), "late").status, 503);
    assert_forbidden(&issue(at, key(&owner), "late", 1));
    backend.advance_time(662);
    let late = wait_for("the end of a reservation", || Some(issue(at, key(&owner), "late", 1)).filter(|answer| answer.status != 403));
    assert_eq!(issued(&late)["seq"], 1);
}

/// Proves that an operator can assign a chain before it has receipts: its owner issues, pays and names writers, and nobody else can.
#[test]
fn chain_can_be_assigned_before_its_first_receipt() {
    let dir = tempfile::tempdir().unwrap();
    let (data, backend) = (dir.path().join("data"), PaymentBackend::open());
    let command = |arguments: &[&str]| highwater(&data, NOWHERE, arguments);
    let [owner, stranger] = [(); 2].map(|()| stdout(command(&["keys", "mint", "--tier", "pro"])).trim().to_owned());
    let server = Server::signing(with_payments(command(&["serve"]), &backend));
    let at = server.address;
    let account = issued(&issue(at, key(&owner), "other", 1))["issuedTo"].as_str().unwrap().to_owned();
    assert_eq!(stdout(command(&["receipts", "assign-owner", "new", &account])).trim(), account);
    assert!(stderr_of_failure(command(&["receipts", "assign-owner", "new", &account])).contains(&account));
    for wrong in ["", " ", "a\nb", &"a".repeat(201)] {
        assert!(stderr_of_failure(command(&["receipts", "assign-owner", wrong, &account])).contains("agent_id"), "{wrong:?}");
    }
    let list = || server.json("/receipts/v1/list?agent_id=new", "");
    assert_eq!((&list()["owner"], &list()["receipts"]), (&json!(account), &json!([])));
    assert_forbidden(&issue(at, key(&stranger), "new", 1));
    assert_forbidden(&pay(at, &payment_by(9, 1), "new"));
    let payer = payer_of(&payment_by(9, 1));
    let path = "/receipts/v1/chains/new/writers";
    assert_eq!(try_send(at, "POST", path, &[key(&owner)], &json!({ "writer": payer }).to_string()).unwrap().status, 201);
    assert_eq!(issued(&pay(at, &payment_by(9, 1), "new"))["seq"], 1);
    assert_eq!(issued(&issue(at, key(&owner), "new", 2))["seq"], 2);
    assert_eq!(list()["owner"], json!(account));
}

/// Proves that all chains without an owner are assigned to the payers of their first receipts by one command, and that the others are
/// listed.
#[tokio::test(flavor = "multi_thread")]
async fn paid_chains_are_assigned_by_one_command() {
    let dir = tempfile::tempdir().unwrap();
    let (data, backend) = (dir.path().join("data"), PaymentBackend::open());
    let command = |arguments: &[&str]| highwater(&data, NOWHERE, arguments);
    let owner = stdout(command(&["keys", "mint", "--tier", "pro"])).trim().to_owned();
    let server = Server::signing(with_payments(command(&["serve"]), &backend));
    let at = server.address;
    for (payer, number) in [(8, 1), (9, 2)] {
        issued(&pay(at, &payment_by(payer, number), &format!("paid-{payer}")));
        issued(&pay(at, &payment_by(payer, 100 + number), &format!("paid-{payer}")));
    }
    issued(&issue(at, key(&owner), "with-a-key", 1));
    issued(&pay(at, &payment_by(9, 3), "has-an-owner"));
    assert_eq!(server.terminate().code(), Some(0));

    // As an older version left them, which did not record owners.
    let store = EmbeddedStore::open(&data.join("views"), Options::default()).unwrap();
    let view = store.live(TABLES.view).await.unwrap();
    let forgotten = ["paid-8", "paid-9", "with-a-key"].map(|agent| Write::delete(TABLES.state, row_key![state_key::owner(agent).as_str()]));
    view.commit(forgotten.into(), &view.checkpoint().await.unwrap()).await.unwrap();
    drop(view);
    store.close().await.unwrap();
    drop(store);

    let message = stdout(command(&["receipts", "assign-owner", "--all-paid"]));
    let [first, second] = [8, 9].map(|payer| payer_of(&payment_by(payer, 1)));
    let unknown = "its first receipt was issued with a key, and the log does not say whose";
    let expected =
        [format!("assigned\tpaid-8\t{first}"), format!("assigned\tpaid-9\t{second}"), format!("not assigned\twith-a-key\t{unknown}")];
    assert_eq!(message.lines().collect::<Vec<_>>(), expected);
    let again = stdout(command(&["receipts", "assign-owner", "--all-paid"]));
    assert_eq!(again.lines().collect::<Vec<_>>(), expected[2..], "chains with an owner must not be assigned again");
    let refused = stderr_of_failure(command(&["receipts", "assign-owner", "with-a-key"]));
    assert!(refused.contains(unknown), "{refused}");
}
