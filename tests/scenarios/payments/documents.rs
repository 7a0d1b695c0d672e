//! Receipts over documents that are sold: a payment that is not settled has none.

use serde_json::{Value, json};

use super::backend::{Fault, PaymentBackend};
use super::{authorization, header, json_of, serve, version_1};
use crate::process::{Server, try_send};

/// The artifact of an entity with its receipt, 0.10 US dollars.
const PATH: &str = "/exclusions/v1/entity_watch?uei=ABCDEF123456&receipt=true";

/// Proves that a payment that the facilitator refuses leaves no receipt; that the receipt is issued when the same payment is settled; that it commits to the
/// hash of the artifact; and that the same payment gets the same answer again.
#[test]
fn receipts_of_documents_need_a_settled_payment() {
    let dir = tempfile::tempdir().unwrap();
    let (data, backend) = (dir.path().join("data"), PaymentBackend::open());
    let server = Server::signing(serve(&data, &backend));
    let listed = || server.json("/receipts/v1/list?agent_id=highwater:exclusions", "")["receipts"].as_array().unwrap().len();
    let paid = header(&version_1(&authorization(1, 100_000)));
    let pay = || try_send(server.address, "GET", PATH, &[("x-payment", &paid)], "").unwrap();

    backend.set_faults([Fault::Refuses; 3]);
    let refused = pay();
    assert_eq!((refused.status, backend.transfers().len(), listed()), (402, 0, 0), "{}", json_of(&refused));
    let bought = pay();
    let artifact = json_of(&bought);
    assert_eq!((bought.status, backend.transfers().len(), listed()), (200, 1, 1), "{artifact}");
    let receipt = &artifact["receipt"];
    assert_eq!(receipt["body"]["agent_id"], "highwater:exclusions");
    assert!(proofs::evidence::receipt_commits_to(receipt, artifact["artifactHash"].as_str().unwrap()), "{artifact}");
    assert!(proofs::evidence::verify(&artifact).unwrap().is_valid && artifact.get("note").is_none(), "{artifact}");
    assert_eq!(artifact.get("pendingReceipt"), None::<&Value>);
    assert_eq!((json_of(&pay()), listed()), (artifact.clone(), 1), "the same answer again");
    assert_eq!(receipt["body"]["action"], json!("entity_watch"));
}
