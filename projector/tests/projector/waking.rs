//! What wakes an idle decider.

use std::pin::pin;

use event_log::{Append, Record};
use futures_util::FutureExt as _;
use schemas::topics::ACCOUNTS;

use crate::harness::{Content, Engine, recall};

/// Proves that a decider is woken by facts of its own topics, also by those appended before it waits, and not by facts of other topics.
#[tokio::test]
async fn decider_is_woken_only_by_its_own_topics() {
    let mut engine = Engine::new().await;
    engine.catch_up().await;
    let mut waiter = pin!(engine.decider.waiter());
    engine.log.append(vec![Append { topic: &ACCOUNTS, partition: 0, record: Record::default() }]).await.unwrap();
    assert_eq!(engine.heads.catch_up().await.unwrap(), 1);
    assert!(waiter.as_mut().now_or_never().is_none(), "another's");
    engine.append_chained(&[("cpsc/1".to_owned(), Content::Observed(recall("cpsc", "CPSC", "1", "Title", "Brand", "2026-01-01")))]).await;
    assert!(matches!(waiter.as_mut().now_or_never(), Some(Ok(()))), "a fact of its own topic must wake it");
    assert!(matches!(engine.decider.waiter().now_or_never(), Some(Ok(()))), "an earlier fact must wake it");
    engine.catch_up().await;
    assert!(engine.decider.waiter().now_or_never().is_none(), "nothing may wake it without new facts");
}
