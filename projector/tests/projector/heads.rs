//! What does not chain is not there.

use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

use async_trait::async_trait;
use bytes::Bytes;
use projector::heads::Heads;
use schemas::event::Head;
use schemas::hash::Hash32;
use schemas::key;
use schemas::position::LogOffset;
use schemas::tables::{Key, Table, ViewDef, Write};
use schemas::topics::RECALLS;
use schemas::views::engine::{RUNS, RunRow};
use view_store::store::{Scan, Span};
use view_store::{Checkpoint, Error, Range, View};

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

/// Proves that heads are the same, and the same facts dropped, when the process dies in the middle of a commit on a store that writes
/// rows before the checkpoint: wherever it is cut, folding the same facts again changes nothing.
#[tokio::test]
async fn a_commit_cut_before_its_checkpoint_is_folded_again() {
    let mut cut = 0;
    loop {
        let mut engine = Engine::new().await;
        let one = engine.fact("cpsc/1", &Head::default(), &said("one"));
        let two = engine.fact("cpsc/1", &one.head(), &said("two"));
        let rival = engine.fact("cpsc/1", &one.head(), &said("rival"));
        let other = engine.fact("cpsc/2", &Head::default(), &said("other"));
        let run = engine.run_finished(Vec::new());
        let offsets = engine.append(&[one, two.clone(), rival, other.clone(), run]).await;
        let rows_left = Arc::new(AtomicUsize::new(cut));
        let cutting =
            Heads::new(Arc::clone(&engine.log), Arc::new(Cut { view: Arc::clone(&engine.engine), rows_left: Arc::clone(&rows_left) }));
        assert!(cutting.catch_up().await.is_err());
        engine.heads.catch_up().await.unwrap();
        let partition = RECALLS.partition_of(b"cpsc/1");
        let end = engine.log.end(&RECALLS, partition).await.unwrap();
        let dropped = view_store::engine::dropped(&*engine.engine, &RECALLS, partition, LogOffset(0), end).await.unwrap();
        assert_eq!(dropped, [offsets[2].0], "cut after {cut} rows");
        assert_eq!((engine.head("cpsc/1").await, engine.head("cpsc/2").await), (two.head(), other.head()), "cut after {cut} rows");
        let row = engine.engine.get(&RUNS, &key!["test"]).await.unwrap().unwrap();
        assert_eq!(serde_json::from_slice::<RunRow>(&row).unwrap().finished, 1, "cut after {cut} rows");
        if rows_left.load(Ordering::Relaxed) > 0 {
            break;
        }
        cut += 1;
    }
    assert!(cut >= 5, "every row was the last once");
}

/// A view whose process dies at its first commit, after so many rows.
struct Cut {
    view: Arc<dyn View>,
    rows_left: Arc<AtomicUsize>,
}

#[async_trait]
impl View for Cut {
    fn def(&self) -> &'static ViewDef {
        self.view.def()
    }

    fn generation(&self) -> u64 {
        self.view.generation()
    }

    async fn checkpoint(&self) -> Result<Checkpoint, Error> {
        self.view.checkpoint().await
    }

    async fn commit(&self, mut writes: Vec<Write>, _: &Checkpoint) -> Result<(), Error> {
        let taken = self.rows_left.load(Ordering::Relaxed).min(writes.len());
        self.rows_left.fetch_sub(taken, Ordering::Relaxed);
        writes.truncate(taken);
        self.view.commit(writes, &self.view.checkpoint().await?).await?;
        Err(Error::Unavailable { what: "the process died".to_owned(), source: None })
    }

    async fn get(&self, table: &'static Table, key: &Key) -> Result<Option<Bytes>, Error> {
        self.view.get(table, key).await
    }

    async fn get_many(&self, table: &'static Table, keys: &[Key]) -> Result<Vec<Option<Bytes>>, Error> {
        self.view.get_many(table, keys).await
    }

    async fn range(&self, table: &'static Table, range: Range) -> Result<Vec<(Key, Bytes)>, Error> {
        self.view.range(table, range).await
    }

    fn scan(&self, table: &'static Table, span: Span) -> Box<dyn Scan> {
        self.view.scan(table, span)
    }

    async fn wait_past(&self, seen: &Checkpoint) -> Result<Checkpoint, Error> {
        self.view.wait_past(seen).await
    }
}
