//! Signing refusals on nodes that do not sign: they show the refusals of the signing process.

use operation::context::Part;
use operation::signing_state::SigningState;
use std::time::Duration;

use projector::runtime::decider_lease;
use proofs::receipt::Refusal;
use receipts::operations::shared_refusals::Participant;
use serde_json::Value;
use view_store::lease::DEFAULT_LEASE_LENGTH;

use crate::api::{HttpApi, LocalApi};
use crate::engine::fixed_clock;
use crate::process::{Answer, send};

async fn get(http_api: &HttpApi, path: &'static str) -> Answer {
    let address = http_api.address;
    tokio::task::spawn_blocking(move || send(address, "GET", path, &[], "")).await.unwrap()
}

/// Proves that a node that only serves the API shows what the signing node refuses, does not publish a checkpoint of a tree that
/// contradicts a signed one, and recovers when the refusal ends; and that a process without the lease is ignored.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn api_node_shows_signing_refusals() {
    let dir = tempfile::tempdir().unwrap();
    let api = LocalApi::open(dir.path(), fixed_clock(), None).await;
    let start = || HttpApi::start(&api.engine, fixed_clock(), None);
    let (signing, answering) = (start(), start());
    let participant =
        |holder: &str, is_signer| Participant { holder: holder.to_owned(), decider_lease: decider_lease("receipts"), is_signer };
    let (signer, reader) = (participant("signer", true), participant("reader", false));
    for lease in [signer.decider_lease.as_str(), "trees/seal"] {
        assert!(api.engine.store.coordination().lease(lease, "signer", DEFAULT_LEASE_LENGTH + Duration::from_secs(3_600)).await.unwrap());
    }
    let exchanged = async || {
        signer.exchange(&signing.context).await.unwrap();
        reader.exchange(&answering.context).await.unwrap();
    };
    exchanged().await;
    assert!(!SigningState::of(&answering.context).is_refused());

    SigningState::of(&signing.context).keys().set_refusal(Some(Refusal::Conflict("the log is another one".to_owned())));
    SigningState::of(&signing.context).refuse_tree("recalls", Some("the changes are others".to_owned()));
    participant("other", true).exchange(&answering.context).await.unwrap();
    exchanged().await;
    let ready = get(&answering, "/readyz").await;
    let notices = String::from_utf8(ready.body).unwrap();
    assert_eq!(ready.status, 200);
    assert!(
        notices.contains("receipts and checkpoints are not signed") && notices.contains("checkpoints of recalls are not signed"),
        "{notices}"
    );
    assert!(!notices.contains("another one"), "the reason is shown to operators only");
    for path in ["/receipts/checkpoint", "/recalls/checkpoint", "/recalls/v1/consistency?from=1"] {
        let answer = get(&answering, path).await;
        let problem: Value = serde_json::from_slice(&answer.body).unwrap();
        assert_eq!(answer.status, 503, "{path}: {problem}");
    }
    assert_eq!(get(&answering, "/filings/checkpoint").await.status, 404);

    SigningState::of(&signing.context).keys().set_refusal(None);
    SigningState::of(&signing.context).refuse_tree("recalls", None);
    exchanged().await;
    assert_eq!(get(&answering, "/readyz").await.body, b"ready\n");
    assert_eq!(get(&answering, "/recalls/checkpoint").await.status, 404);
    signing.stop().await;
    answering.stop().await;
    api.close().await;
}
