//! What an idle decider is woken by.

use std::pin::pin;

use event_log::{Append, Record};
use futures_util::FutureExt as _;
use schemas::topics::ACCOUNTS;

use crate::harness::{Engine, Said, recall};

/// Proves that it is woken by facts of its own topics, also by those that came before it waited, and not by those of others.
#[tokio::test]
async fn own_facts_alone() {
    let mut engine = Engine::new().await;
    engine.catch_up().await;
    let mut waiter = pin!(engine.decider.waiter());
    engine.log.append(vec![Append { topic: &ACCOUNTS, partition: 0, record: Record::default() }]).await.unwrap();
    assert_eq!(engine.heads.catch_up().await.unwrap(), 1);
    assert!(waiter.as_mut().now_or_never().is_none(), "another's");
    engine
        .say_without_deciding(&[("cpsc/1".to_owned(), Said::Observed(recall("cpsc", "CPSC", "1", "Title", "Brand", "2026-01-01")))])
        .await;
    assert!(matches!(waiter.as_mut().now_or_never(), Some(Ok(()))), "its own");
    assert!(matches!(engine.decider.waiter().now_or_never(), Some(Ok(()))), "its own, from before");
    engine.catch_up().await;
    assert!(engine.decider.waiter().now_or_never().is_none(), "nothing is left");
}
