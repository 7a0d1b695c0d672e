//! The signing check: it is called once before a batch, which obeys its result.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};

use async_trait::async_trait;
use bytes::Bytes;
use event_log::{Append, Headers, Record};
use fold::service::SigningCheck;
use projector::decider::Decider;
use proofs::receipt::{Refusal, SigningKeys};
use receipts::rules::Receipts;
use schemas::avro::Encoder;
use schemas::event::{Command, Fact, FactKind, Head, content_hash};
use schemas::topics::RECEIPTS;
use schemas::views::receipts::{IssueRequest, ReceiptCommand, TABLES};

use crate::harness::{Engine, clock};

/// Counts its calls, and refuses while `is_refusing` is set.
struct CountingCheck {
    keys: Arc<SigningKeys>,
    calls: AtomicUsize,
    is_refusing: AtomicBool,
}

#[async_trait]
impl SigningCheck for CountingCheck {
    async fn check(&self) {
        self.calls.fetch_add(1, Ordering::Relaxed);
        let refusal = self.is_refusing.load(Ordering::Relaxed).then(|| Refusal::Wait("another copy has signed further".to_owned()));
        self.keys.set_refusal(refusal);
    }
}

async fn append_commands(engine: &Engine, commands: &[(String, ReceiptCommand)]) {
    let mut encoder = Encoder::new(RECEIPTS.name).unwrap();
    let append = |(key, command): &(String, ReceiptCommand)| {
        let content_hash = content_hash(FactKind::Observed, &command.canonical());
        let first = Fact::after(&Head::default(), RECEIPTS.name, FactKind::Observed, key.clone(), content_hash);
        let fact = Fact { upstream: "api".to_owned(), observed_at: clock().now_ms(), data: Some(command.clone()), ..first };
        let value = Bytes::from(encoder.encode(&fact).unwrap());
        Append {
            topic: &RECEIPTS,
            partition: 0,
            record: Record { key: Bytes::from(key.clone()), value, headers: Headers::default(), at_ms: 0 },
        }
    };
    let batch = commands.iter().map(append).collect();
    engine.log.append(batch).await.unwrap();
    engine.heads.catch_up().await.unwrap();
}

fn issues(first: usize, count: usize) -> Vec<(String, ReceiptCommand)> {
    let issue = ReceiptCommand::Issue(IssueRequest { agent_id: "a".to_owned(), ..IssueRequest::default() });
    (first..first + count).map(|number| (format!("r{number}"), issue.clone())).collect()
}

/// Proves that the check is called once for a batch of requests, however many receipts it creates, and not for a batch without requests; and that a
/// refused batch signs nothing until the refusal ends.
#[tokio::test]
async fn the_check_is_called_once_for_a_batch() {
    let engine = Engine::new().await;
    let keys = Arc::new(SigningKeys::default());
    let public_key = keys.add(&[7; 32]);
    let check = Arc::new(CountingCheck { keys: Arc::clone(&keys), calls: AtomicUsize::new(0), is_refusing: AtomicBool::new(false) });
    let view = engine.store.live(TABLES.view).await.unwrap();
    let decider: Decider<Receipts> = Decider::open(Arc::clone(&engine.log), Arc::clone(&engine.engine), view, clock()).await.unwrap();
    let mut decider = decider.with_signing(keys, Some(Arc::clone(&check) as Arc<dyn SigningCheck>));
    let calls = || check.calls.load(Ordering::Relaxed);

    append_commands(&engine, &[("key".to_owned(), ReceiptCommand::Key { public_key, reason: String::new() })]).await;
    decider.catch_up().await.unwrap();
    assert_eq!(calls(), 0, "a change of keys must not call the check");
    append_commands(&engine, &issues(0, 100)).await;
    decider.catch_up().await.unwrap();
    let signed = decider.checkpoint().seq;
    assert_eq!(calls(), 1);

    check.is_refusing.store(true, Ordering::Relaxed);
    append_commands(&engine, &issues(100, 3)).await;
    let refused = decider.catch_up().await.unwrap_err();
    assert!(refused.to_string().contains("another copy has signed further"), "{refused}");
    assert_eq!((decider.checkpoint().seq, calls()), (signed, 2));
    check.is_refusing.store(false, Ordering::Relaxed);
    decider.catch_up().await.unwrap();
    assert!(decider.checkpoint().seq > signed);
    assert_eq!(calls(), 3);
}
