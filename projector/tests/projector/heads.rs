//! What does not chain is not there.

use schemas::event::Head;
use schemas::hash::Hash32;
use schemas::position::LogOffset;
use schemas::topics::RECALLS;

use crate::harness::{Engine, Said, recall};

fn said(title: &str) -> Said {
    Said::Observed(recall("cpsc", "CPSC", "1", title, "Acme", "2026-01-01"))
}

/// Proves that a zombie, a repeat, a loser of a race, a forged id and bytes that are no fact are dropped, and that the chain goes
/// on behind the first fact that extended it.
#[tokio::test]
async fn what_does_not_chain_is_dropped() {
    let mut engine = Engine::new().await;
    let first = engine.fact("cpsc/1", &Head::default(), &said("one"));
    let winner = engine.fact("cpsc/1", &first.head(), &said("two"));
    let loser = engine.fact("cpsc/1", &first.head(), &said("other"));
    let mut forged = engine.fact("cpsc/1", &winner.head(), &said("three"));
    forged.id = Hash32::of(b"anything");
    let zombie = engine.fact("cpsc/1", &Head::default(), &said("late"));
    let last = engine.fact("cpsc/1", &winner.head(), &said("three"));
    let offsets = engine.append(&[first.clone(), winner.clone(), loser, first, forged, zombie, last.clone()]).await;
    let partition = RECALLS.partition_of(b"cpsc/1");
    engine.catch_up().await;
    let end = engine.log.end(&RECALLS, partition).await.unwrap();
    let dropped = view_store::engine::dropped(&*engine.engine, &RECALLS, partition, LogOffset(0), end).await.unwrap();
    assert_eq!(dropped, [offsets[2].0, offsets[3].0, offsets[4].0, offsets[5].0]);
    assert_eq!(engine.head("cpsc/1").await, last.head());
    assert_eq!(engine.record("CPSC:1").await.unwrap().title, "three");
    // One new record and two changes of it: nothing was shown twice.
    assert_eq!(engine.decider.checkpoint().seq, 3);
}

/// Proves that a service passes a run's end only after the facts it covers in every partition, and then says so once.
#[tokio::test]
async fn a_runs_end_waits_for_its_facts() {
    let mut engine = Engine::new().await;
    let partition = RECALLS.partition_of(b"@run/test") as usize;
    let mut ends = vec![0; RECALLS.partitions as usize];
    let other = (partition + 1) % ends.len();
    ends[other] = 1;
    let finished = engine.run_finished(ends);
    engine.append(&[finished]).await;
    engine.catch_up().await;
    assert_eq!(engine.decider.checkpoint().seq, 0, "the run's facts are not there yet");
    let key = (0..).map(|i| format!("cpsc/{i}")).find(|key| RECALLS.partition_of(key.as_bytes()) as usize == other).unwrap();
    engine.say(&[(key, said("covered"))]).await;
    assert_eq!(engine.decider.checkpoint().seq, 2, "the fact, then the run's end");
    engine.catch_up().await;
    assert_eq!(engine.decider.checkpoint().seq, 2);
}
