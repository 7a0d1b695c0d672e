//! The number of current records, which the checkpoint of a view has.

use std::sync::Arc;

use fold::service::Service;
use projector::rebuild;
use recalls::rules::Recalls;
use schemas::views::recalls::RECALLS as ROWS;
use tokio::sync::Mutex;
use view_store::{Checkpoint, Range};

use crate::harness::{Content, Engine, recall};
use crate::order::sample_facts;

fn observed(title: &str) -> (String, Content) {
    ("cpsc/1".to_owned(), Content::Observed(recall("cpsc", "CPSC", "1", title, "Acme", "2026-01-01")))
}

/// How many rows of the view are current records.
async fn listed(engine: &Engine) -> u64 {
    let range = Range { prefix: Vec::new(), after: None, from: None, limit: 1_000, reverse: false };
    let rows = engine.decider.view().range(&ROWS, range).await.unwrap();
    rows.iter().filter(|(_, row)| Recalls::digest_row(row).is_some()).count() as u64
}

async fn replay(engine: &mut Engine) {
    let fresh = engine.second_decider().await;
    let live = Mutex::new(std::mem::replace(&mut engine.decider, fresh));
    rebuild::replay(&engine.parts(), &live, &(Arc::new(|_, _| ()) as rebuild::Progress)).await.unwrap();
    engine.decider = live.into_inner();
}

/// Proves that a new record and a restored one raise the count, a withdrawn one lowers it, and a changed one does not change it; that the count is always
/// the number of rows that are current records, also where records are merged and separated; and that a replay gives the same count.
#[tokio::test]
async fn current_records_are_counted() {
    let mut engine = Engine::new().await;
    assert_eq!(engine.decider.checkpoint().current_records(), Some(0));
    let withdrawn = ("cpsc/1".to_owned(), Content::Withdrawn);
    for (content, records) in [(observed("one"), 1), (observed("other"), 1), (withdrawn, 0), (observed("other"), 1)] {
        engine.append_and_decide(std::slice::from_ref(&content)).await;
        assert_eq!(engine.decider.checkpoint().current_records(), Some(records), "{content:?}");
    }
    for facts in sample_facts().chunks(3) {
        engine.append_and_decide(facts).await;
        assert_eq!(engine.decider.checkpoint().current_records(), Some(listed(&engine).await), "{facts:?}");
    }
    let (digest, counted) = (engine.digest().await, engine.decider.checkpoint().current_records());
    assert!(counted > Some(10));
    assert_eq!(engine.second_decider().await.checkpoint().current_records(), counted, "the count is stored");
    replay(&mut engine).await;
    assert_eq!((engine.digest().await, engine.decider.checkpoint().current_records()), (digest, counted));
}

/// Proves that the count of a view that an older version wrote is not known, also after further changes, and that it is known after a replay, which changes
/// no record.
#[tokio::test]
async fn the_count_of_an_older_version_is_not_known() {
    let mut engine = Engine::new().await;
    engine.append_and_decide(&sample_facts()).await;
    let older = Checkpoint { records: None, ..engine.decider.checkpoint().clone() };
    engine.decider.view().commit(Vec::new(), &older).await.unwrap();
    engine.append_and_decide(&[observed("later")]).await;
    assert!(engine.decider.checkpoint().seq > older.seq);
    assert_eq!(engine.decider.checkpoint().current_records(), None);
    let digest = engine.digest().await;
    replay(&mut engine).await;
    assert_eq!(engine.decider.checkpoint().current_records(), Some(listed(&engine).await));
    assert_eq!(engine.digest().await, digest);
}
