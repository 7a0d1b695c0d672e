//! Settled payments that are sent again, by their buyer and by others.

use serde_json::{Value, json};

use super::backend::PaymentBackend;
use super::{ISSUE, body, header, json_of, payment, receipt, serve_at_one_instant};
use crate::process::{Server, try_send};

/// Proves that a settled payment, which everybody can read on the chain, is no bearer token: its answer is repeated to the address that paid and to the
/// holder of the first answer's token, over REST and MCP, is refused to all others, and is no sale.
#[test]
fn settled_payment_is_no_bearer_token() {
    let dir = tempfile::tempdir().unwrap();
    let (data, backend) = (dir.path().join("data"), PaymentBackend::open());
    let mut command = serve_at_one_instant(&data, &backend);
    command.env("HIGHWATER_API__TRUSTED_PROXIES", "[\"127.0.0.0/8\"]");
    let server = Server::signing(command);
    let (own, stranger, others) = ("192.0.2.1", "192.0.2.2", "2001:db8::1");
    let from = |address: &str, token: &str, number: u64| {
        let headers =
            [("x-payment", header(&payment(1))), ("x-forwarded-for", address.to_owned()), ("payment-repeat-token", token.to_owned())];
        let headers = headers.each_ref().map(|(name, value)| (*name, value.as_str()));
        try_send(server.address, "POST", ISSUE, &headers, &body("a", number)).unwrap()
    };
    let first = from(own, "", 1);
    let (issued, token) = (receipt(&first), first.header("payment-repeat-token").to_owned());
    assert!(token.starts_with("pr_"), "{}", first.head());
    let mut refused = 0;
    for address in [stranger, others] {
        for number in [1, 2] {
            let answer = from(address, "", number);
            let document = json_of(&answer);
            assert!(answer.status == 402 && document["error"].as_str().unwrap().contains("another network address"), "{document}");
            assert!(!document.to_string().contains(issued["id"].as_str().unwrap()) && !answer.head().contains(&token), "{document}");
            refused += 1;
        }
        let guessed = from(address, &token.replace("pr_", "pr_A"), 1);
        assert_eq!((guessed.status, &json_of(&guessed)["parameter"]), (400, &json!("Payment-Repeat-Token")));
    }
    assert_eq!(receipt(&from(own, "", 1)), issued);
    let second = from(others, &token, 1);
    assert_eq!((receipt(&second), second.header("payment-repeat-token")), (issued.clone(), token.as_str()));
    assert_eq!(from(others, &token, 2).status, 402, "the token is for the same request only");
    let arguments: Value = serde_json::from_str(&body("a", 1)).unwrap();
    let tool = |token: &Value| -> Value {
        let meta = json!({ "x402/payment": payment(1), "highwater/payment-repeat-token": token });
        let params = json!({ "name": "issue_receipt", "arguments": arguments, "_meta": meta });
        let call = json!({ "jsonrpc": "2.0", "id": 1, "method": "tools/call", "params": params });
        let headers = [("accept", "application/json, text/event-stream"), ("x-forwarded-for", stranger)];
        json_of(&try_send(server.address, "POST", "/receipts/mcp", &headers, &call.to_string()).unwrap())["result"].take()
    };
    // A payment of version 1 names no resource, so that it is valid for both surfaces.
    let by_tool = tool(&json!(token));
    assert_eq!((&by_tool["structuredContent"]["receipt"], &by_tool["_meta"]["highwater/payment-repeat-token"]), (&issued, &json!(token)));
    assert_eq!(tool(&Value::Null)["isError"], true);
    refused += 2;
    let metrics = server.metrics().unwrap();
    let counted = |outcome: &str, count: u32| {
        let line = format!("api_payments_total{{outcome=\"{outcome}\",service=\"receipts\"}} {count}");
        assert!(metrics.lines().any(|own| own == line), "{line}");
    };
    counted("settled", 1);
    counted("repeated", 3);
    counted("refused", refused);
    assert_eq!((backend.transfers().len(), backend.settle_count()), (1, 1));
    // Repetitions are limited, also for the buyer.
    let spent = (0..100).map(|_| from(own, "", 1).status).find(|status| *status != 201);
    assert_eq!(spent, Some(429));
}
