//! Facts that do not extend their chain are ignored.

use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

use async_trait::async_trait;
use bytes::Bytes;
use projector::heads::Heads;
use proofs::hash::Hash32;
use schemas::event::Head;
use schemas::key;
use schemas::position::{LogOffset, Seq};
use schemas::tables::{Key, Table, ViewDef, Write};
use schemas::topics::RECALLS;
use schemas::views::engine::{RUNS, RunRow};
use view_store::store::{Scan, Span};
use view_store::{Checkpoint, Error, Range, View};

use crate::harness::{Content, Engine, recall, services};

fn content(title: &str) -> Content {
    Content::Observed(recall("cpsc", "CPSC", "1", title, "Acme", "2026-01-01"))
}

/// Proves that facts of an outdated writer, duplicates, losers of a race, facts with a forged id and malformed bytes are dropped, and that
/// the chain continues after the first fact that extended it.
#[tokio::test]
async fn facts_that_do_not_chain_are_dropped() {
    let mut engine = Engine::new().await;
    let first = engine.fact("cpsc/1", &Head::default(), &content("one"));
    let winner = engine.fact("cpsc/1", &first.head(), &content("two"));
    let loser = engine.fact("cpsc/1", &first.head(), &content("other"));
    let mut forged = engine.fact("cpsc/1", &winner.head(), &content("three"));
    forged.id = Hash32::of(b"anything");
    let outdated = engine.fact("cpsc/1", &Head::default(), &content("late"));
    let last = engine.fact("cpsc/1", &winner.head(), &content("three"));
    let offsets = engine.append(&[first.clone(), winner.clone(), loser, first, forged, outdated, last.clone()]).await;
    let partition = RECALLS.partition_of(b"cpsc/1");
    engine.catch_up().await;
    let end = engine.log.end(&RECALLS, partition).await.unwrap();
    let dropped = view_store::engine::dropped(&*engine.engine, &RECALLS, partition, LogOffset(0), end).await.unwrap();
    assert_eq!(dropped, [offsets[2], offsets[3], offsets[4], offsets[5]]);
    assert_eq!(engine.head("cpsc/1").await, last.head());
    assert_eq!(engine.record("CPSC:1").await.unwrap().title, "three");
    // One new record and two changes of it: no fact was applied twice.
    assert_eq!(engine.decider.checkpoint().seq, Seq(3));
}

/// Proves that a service passes the end of a run only after the facts that it covers in every partition, and then publishes it once.
#[tokio::test]
async fn end_of_a_run_waits_for_its_facts() {
    let mut engine = Engine::new().await;
    let partition = RECALLS.partition_of(b"@run/test") as usize;
    let mut ends = vec![LogOffset(0); RECALLS.partitions as usize];
    let other = (partition + 1) % ends.len();
    ends[other] = LogOffset(1);
    let finished = engine.run_finished(ends);
    engine.append(&[finished]).await;
    engine.catch_up().await;
    assert_eq!(engine.decider.checkpoint().seq, Seq(0), "the facts of the run are missing");
    let key = (0..).map(|i| format!("cpsc/{i}")).find(|key| RECALLS.partition_of(key.as_bytes()) as usize == other).unwrap();
    engine.append_and_decide(&[(key, content("covered"))]).await;
    assert_eq!(engine.decider.checkpoint().seq, Seq(2), "the fact, then the run's end");
    engine.catch_up().await;
    assert_eq!(engine.decider.checkpoint().seq, Seq(2));
}

/// Proves that heads and dropped facts are the same when the process dies during a commit on a store that writes rows before the
/// checkpoint: wherever it is interrupted, indexing the same facts again changes nothing.
#[tokio::test]
async fn facts_of_an_interrupted_commit_are_indexed_again() {
    let mut cut = 0;
    loop {
        let mut engine = Engine::new().await;
        let one = engine.fact("cpsc/1", &Head::default(), &content("one"));
        let two = engine.fact("cpsc/1", &one.head(), &content("two"));
        let second_decider = engine.fact("cpsc/1", &one.head(), &content("second_decider"));
        let other = engine.fact("cpsc/2", &Head::default(), &content("other"));
        let run = engine.run_finished(Vec::new());
        let offsets = engine.append(&[one, two.clone(), second_decider, other.clone(), run]).await;
        let rows_left = Arc::new(AtomicUsize::new(cut));
        let cutting = Heads::new(
            Arc::clone(&engine.log),
            Arc::new(InterruptedView { view: Arc::clone(&engine.engine), rows_left: Arc::clone(&rows_left) }),
            services(),
        );
        assert!(cutting.catch_up().await.is_err());
        engine.heads.catch_up().await.unwrap();
        let partition = RECALLS.partition_of(b"cpsc/1");
        let end = engine.log.end(&RECALLS, partition).await.unwrap();
        let dropped = view_store::engine::dropped(&*engine.engine, &RECALLS, partition, LogOffset(0), end).await.unwrap();
        assert_eq!(dropped, [offsets[2]], "cut after {cut} rows");
        assert_eq!((engine.head("cpsc/1").await, engine.head("cpsc/2").await), (two.head(), other.head()), "cut after {cut} rows");
        let row = engine.engine.get(&RUNS, &key!["test"]).await.unwrap().unwrap();
        let row: RunRow = serde_json::from_slice(&row).unwrap();
        let counted: Vec<u32> = row.days.iter().map(|day| day.finished).collect();
        assert_eq!((row.finished, counted), (1, vec![1]), "cut after {cut} rows");
        if rows_left.load(Ordering::Relaxed) > 0 {
            break;
        }
        cut += 1;
    }
    assert!(cut >= 5, "the commit was not interrupted after each row");
}

/// A view whose process dies at its first commit, after a number of rows.
struct InterruptedView {
    view: Arc<dyn View>,
    rows_left: Arc<AtomicUsize>,
}

#[async_trait]
impl View for InterruptedView {
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
