//! What asks before receipts are signed: once a batch, and obeyed by that batch.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};

use async_trait::async_trait;
use bytes::Bytes;
use event_log::{Append, Headers, Record};
use projector::decider::Decider;
use projector::service::SigningCheck;
use projector::services::receipts::Receipts;
use schemas::avro::Encoder;
use schemas::event::{Command, Fact, FactKind, Head, content_hash, fact_id};
use schemas::receipt::{Refusal, SigningKeys};
use schemas::topics::RECEIPTS;
use schemas::views::receipts::{ISSUE, KEY, ReceiptCommand, TABLES};

use crate::harness::{Engine, clock};

/// Counts how often it is asked, and refuses once it is told to.
struct Counting {
    keys: Arc<SigningKeys>,
    asked: AtomicUsize,
    is_refusing: AtomicBool,
}

#[async_trait]
impl SigningCheck for Counting {
    async fn check(&self) {
        self.asked.fetch_add(1, Ordering::Relaxed);
        let refusal = self.is_refusing.load(Ordering::Relaxed).then(|| Refusal::Wait("another copy has signed further".to_owned()));
        self.keys.set_refusal(refusal);
    }
}

async fn ask(engine: &Engine, commands: &[(String, ReceiptCommand)]) {
    let mut encoder = Encoder::new(RECEIPTS.name).unwrap();
    let append = |(key, command): &(String, ReceiptCommand)| {
        let content_hash = content_hash(FactKind::Observed, &command.canonical());
        let fact = Fact {
            id: fact_id(RECEIPTS.name, key, 1, &Head::default().id, &content_hash),
            kind: FactKind::Observed,
            key: key.clone(),
            version: 1,
            prev_hash: Head::default().id,
            content_hash,
            upstream: "api".to_owned(),
            observed_at: clock().now_ms(),
            superseded_by: String::new(),
            data: Some(command.clone()),
            run: None,
        };
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
    let issue = ReceiptCommand { verb: ISSUE.to_owned(), agent_id: "a".to_owned(), ..ReceiptCommand::default() };
    (first..first + count).map(|number| (format!("r{number}"), issue.clone())).collect()
}

/// Proves that a batch of requests is asked for once, however many receipts it makes, that one without requests is not, and that a batch signs nothing if
/// it is refused then, and is signed once it no longer is.
#[tokio::test]
async fn a_batch_is_asked_for_once() {
    let engine = Engine::new().await;
    let keys = Arc::new(SigningKeys::default());
    let public_key = keys.add(&[7; 32]);
    let counting = Arc::new(Counting { keys: Arc::clone(&keys), asked: AtomicUsize::new(0), is_refusing: AtomicBool::new(false) });
    let view = engine.store.live(TABLES.view).await.unwrap();
    let decider: Decider<Receipts> = Decider::open(Arc::clone(&engine.log), Arc::clone(&engine.engine), view, clock()).await.unwrap();
    let mut decider = decider.with_signing(keys, Some(Arc::clone(&counting) as Arc<dyn SigningCheck>));
    let asked = || counting.asked.load(Ordering::Relaxed);

    ask(&engine, &[("key".to_owned(), ReceiptCommand { verb: KEY.to_owned(), public_key, ..ReceiptCommand::default() })]).await;
    decider.catch_up().await.unwrap();
    assert_eq!(asked(), 0, "nothing is signed for a key");
    ask(&engine, &issues(0, 100)).await;
    decider.catch_up().await.unwrap();
    let signed = decider.checkpoint().seq;
    assert_eq!(asked(), 1);

    counting.is_refusing.store(true, Ordering::Relaxed);
    ask(&engine, &issues(100, 3)).await;
    let refused = decider.catch_up().await.unwrap_err();
    assert!(refused.to_string().contains("another copy has signed further"), "{refused}");
    assert_eq!((decider.checkpoint().seq, asked()), (signed, 2));
    counting.is_refusing.store(false, Ordering::Relaxed);
    decider.catch_up().await.unwrap();
    assert!(decider.checkpoint().seq > signed);
    assert_eq!(asked(), 3);
}
