//! Claims of payments that were not settled while their buyers waited: they are resolved later, once, and many with one request.

use std::thread;

use k256::ecdsa::SigningKey;
use serde_json::Value;

use super::backend::{Fault, PaymentBackend};
use super::{authorization_until, body, pay, payment, serve, version_1};
use crate::commands::NOWHERE;
use crate::engine::moving_clock;
use crate::process::{Server, fix_clock, highwater, stdout, wait_for};

/// Proves that earlier claims are resolved when nothing is sold any more, and a month later: a settled payment gets its receipt, and an
/// unsettled one lapses.
#[test]
fn earlier_claims_are_resolved() {
    const DAY_S: i64 = 86_400;
    for (days, sells) in [(0, false), (30, true), (30, false)] {
        let dir = tempfile::tempdir().unwrap();
        let (data, backend) = (dir.path().join("data"), PaymentBackend::open());
        let then_ms = moving_clock().now_ms() - days * DAY_S * 1_000;
        backend.advance_time(-days * DAY_S);
        let mut command = serve(&data, &backend);
        if days > 0 {
            fix_clock(&mut command, &schemas::clock::rfc3339(then_ms));
        }
        let server = Server::signing(command);
        let key = SigningKey::from_slice(&[7; 32]).unwrap();
        let valid_before = u64::try_from(then_ms / 1_000).unwrap() + 600;
        let payments = [700, 701].map(|number| version_1(&authorization_until(&key, number, 10_000, valid_before)));
        for payment in &payments {
            backend.set_faults([Fault::Refuses; 3]);
            assert_eq!(pay(server.address, payment, &body("earlier", 1)).unwrap().status, 402);
        }
        backend.submit(&payments[0]);
        assert_eq!(server.terminate().code(), Some(0));

        backend.advance_time(days * DAY_S + 662);
        let mut command = serve(&data, &backend);
        if !sells {
            command.env_remove("HIGHWATER_PAYMENTS__PAY_TO");
        }
        let server = Server::ready(command);
        let stored = || {
            let stored = stdout(highwater(&data, NOWHERE, &["export", "payments"]));
            ["settled", "lapsed"].map(|verb| stored.lines().filter(|line| line.contains(&format!("\"verb\":\"{verb}\""))).count())
        };
        wait_for("both payments to be resolved", || (stored() == [1, 1]).then_some(()));
        let listed = server.json("/receipts/v1/list?agent_id=earlier", "");
        assert_eq!(listed["receipts"].as_array().unwrap().len(), 1, "{days} {sells}");
        let requests = ["eth_getLogs", "eth_getBlockByNumber"].map(|method| backend.request_count(method));
        assert!(requests.iter().all(|requests| *requests < 60), "{requests:?}");
    }
}

/// Proves that open payments are looked up once after they expire, many with one request: 30 of them cost the chain's node two requests for
/// logs and one for each transaction.
#[test]
fn expired_payments_are_looked_up_in_batches() {
    let dir = tempfile::tempdir().unwrap();
    let (data, backend) = (dir.path().join("data"), PaymentBackend::open());
    let server = Server::signing(serve(&data, &backend));
    let at = server.address;
    let listed = || server.json("/receipts/v1/list?agent_id=open&limit=200", "")["receipts"].as_array().unwrap().len();
    backend.set_faults([Fault::Refuses; 90]);
    let payments: Vec<Value> = (500..530).map(payment).collect();
    thread::scope(|scope| {
        for (number, payment) in payments.iter().enumerate() {
            scope.spawn(move || assert_eq!(pay(at, payment, &body("open", number as u64)).unwrap().status, 402));
        }
    });
    for payment in &payments[..10] {
        backend.submit(payment);
    }
    let asked = || [backend.request_count("eth_getLogs"), backend.request_count("eth_getTransactionReceipt")];
    // The first round that ends may have begun before.
    let wait_for_rounds = |more: u64| {
        let before = server.rounds("payments");
        wait_for("further rounds", || (server.rounds("payments") > before + more).then_some(()));
    };
    let before = asked();
    wait_for_rounds(2);
    assert_eq!(asked(), before, "no payment is looked up before it expires");
    backend.advance_time(662);
    wait_for("the receipts of buyers who are gone", || (listed() == 10).then_some(()));
    let lapsed = |payment: &Value| {
        let answer = pay(at, payment, &body("open", 29)).unwrap();
        String::from_utf8_lossy(&answer.body).contains("lapsed").then_some(())
    };
    // The same lookup resolves the payments one after another; the answer to a lapsed payment needs no request.
    wait_for("payments that have lapsed", || {
        let stored = stdout(highwater(&data, NOWHERE, &["export", "payments"]));
        (stored.lines().filter(|line| line.contains("\"lapsed\"")).count() == 20).then_some(())
    });
    assert_eq!(lapsed(&payments[29]), Some(()));
    let after = asked();
    assert!(after[0] - before[0] <= 3 && after[1] - before[1] == 10, "{before:?} {after:?}");
    // Another open payment, so that rounds have one to look at.
    backend.set_faults([Fault::Refuses; 3]);
    backend.advance_time(-662);
    assert_eq!(pay(at, &payment(600), &body("later", 600)).unwrap().status, 402);
    let before = asked();
    wait_for_rounds(2);
    assert_eq!(asked(), before, "a resolved payment was looked up again");
}
