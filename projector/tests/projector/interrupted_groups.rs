//! Groups of changes that a crash interrupted: whoever completes them, they get the changes that they were begun with.

use std::sync::Arc;

use async_trait::async_trait;
use bytes::Bytes;
use event_log::{Append, Error, EventLog, Record, Stored};
use fold::testing;
use projector::decider::Decider;
use recalls::rules::Recalls;
use schemas::avro::Encoder;
use schemas::change::{ChangeKind, Input};
use schemas::position::LogOffset;
use schemas::topics::{CHANGES_RECALLS, RECALLS, Topic};
use schemas::views::recalls::RecallChange;
use tokio::sync::Mutex;

use crate::harness::{Content, Engine, clock, recall};
use crate::interference::{changes, feed};

/// Returns a recall of an agency that is a duplicate of another agency's with the same title.
fn pair(number: &str, agency: &str, stream: &str, title: &str) -> (String, Content) {
    (format!("{stream}/{number}"), Content::Observed(recall(stream, agency, number, title, "Paar", "2026-07-01")))
}

/// Returns a pair of agencies' duplicates.
fn duplicates() -> [(String, Content); 2] {
    [pair("F-4", "FDA", "openfda.food", "Pair"), pair("030", "USDA", "fsis", "Pair")]
}

/// Returns an edit that separates the duplicates: one fact, several changes.
fn edit() -> [(String, Content); 1] {
    [pair("F-4", "FDA", "openfda.food", "Another")]
}

/// Returns an engine that has decided facts, one batch after the other.
async fn decided(batches: &[&[(String, Content)]]) -> Engine {
    let mut engine = Engine::new().await;
    for batch in batches {
        engine.append_and_decide(batch).await;
    }
    engine
}

/// Returns the first change of the edit, which is all that a crash leaves of its group.
async fn first_of_group() -> Append {
    let before = changes(&decided(&[&duplicates()]).await).await.len();
    let mut group = changes(&decided(&[&duplicates(), &edit()]).await).await.split_off(before);
    assert!(group.len() >= 2, "the edit must lead to several changes");
    Append { topic: &CHANGES_RECALLS, partition: 0, record: group.remove(0).record }
}

/// Returns an engine that has decided the duplicates, with the edit and other facts that are not decided, and the first change of the edit.
async fn interrupted(first: &Append, later: &[(String, Content)]) -> Engine {
    let mut engine = decided(&[&duplicates()]).await;
    engine.append_chained(&edit()).await;
    engine.append_chained(later).await;
    engine.log.append(vec![first.clone()]).await.unwrap();
    engine
}

/// A log that disturbs its decider at one of its calls.
struct DisturbedLog {
    log: Arc<dyn EventLog>,
    disturbance: Mutex<Disturbance>,
}

/// When the decider is disturbed, and how.
struct Disturbance {
    /// How many calls pass before.
    calls: usize,
    /// What happens; `None` afterwards.
    event: Option<Event>,
}

enum Event {
    /// The decider is held until another decider has done everything that there is to do.
    Overtaken(Box<Decider<Recalls>>),
    /// The call fails.
    Failure,
}

impl DisturbedLog {
    /// Returns the log of an engine, which disturbs its decider after this many calls.
    fn new(engine: &Engine, calls: usize, event: Event) -> Arc<Self> {
        Arc::new(Self { log: Arc::clone(&engine.log), disturbance: Mutex::new(Disturbance { calls, event: Some(event) }) })
    }

    /// Opens a decider of an engine on this log.
    async fn decider(self: &Arc<Self>, engine: &Engine) -> Decider<Recalls> {
        let (log, view) = (Arc::clone(self) as Arc<dyn EventLog>, Arc::clone(engine.decider.view()));
        Decider::open(log, Arc::clone(&engine.engine), view, clock()).await.unwrap()
    }

    /// Whether the decider made too few calls to be disturbed.
    async fn is_unused(&self) -> bool {
        self.disturbance.lock().await.event.is_some()
    }

    async fn pass(&self) -> Result<(), Error> {
        let mut disturbance = self.disturbance.lock().await;
        if disturbance.calls > 0 {
            disturbance.calls -= 1;
            return Ok(());
        }
        match disturbance.event.take() {
            None => {}
            Some(Event::Overtaken(mut rival)) => {
                rival.catch_up().await.unwrap();
            }
            Some(Event::Failure) => return Err(Error::Unavailable { what: "the log does not answer".to_owned(), source: None }),
        }
        Ok(())
    }
}

#[async_trait]
impl EventLog for DisturbedLog {
    async fn append(&self, batch: Vec<Append>) -> Result<Vec<LogOffset>, Error> {
        self.pass().await?;
        self.log.append(batch).await
    }

    async fn read(
        &self,
        topic: &'static Topic,
        partition: u32,
        from: LogOffset,
        records_max: usize,
        bytes_max: usize,
    ) -> Result<Vec<Stored>, Error> {
        self.pass().await?;
        self.log.read(topic, partition, from, records_max, bytes_max).await
    }

    async fn end(&self, topic: &'static Topic, partition: u32) -> Result<LogOffset, Error> {
        self.pass().await?;
        self.log.end(topic, partition).await
    }

    async fn wait_past(&self, topic: &'static Topic, partition: u32, end: LogOffset) -> Result<(), Error> {
        self.log.wait_past(topic, partition, end).await
    }

    async fn close(&self) -> Result<(), Error> {
        self.log.close().await
    }
}

/// Proves that a group of changes interrupted by a crash is completed, and that none of its changes is appended twice.
#[tokio::test]
async fn an_interrupted_group_is_completed() {
    let whole = decided(&[&duplicates(), &edit()]).await;
    let mut cut = interrupted(&first_of_group().await, &[]).await;
    cut.decider = cut.second_decider().await;
    cut.decider.catch_up().await.unwrap();
    assert_eq!(changes(&cut).await.len(), changes(&whole).await.len());
    assert_eq!(feed(&cut.decider).await, feed(&whole.decider).await);
    assert_eq!(cut.digest().await, whole.digest().await);
}

/// Proves that a decider that completes an interrupted group, is paused at any call to the log (each in turn), and meanwhile overtaken by another that
/// completes the group and decides a later fact, loads what the other one did: it must not decide the group on the rows after it.
#[tokio::test]
async fn a_group_that_another_decider_completes_is_loaded() {
    let later = [pair("F-4", "FDA", "openfda.food", "Third")];
    let whole = decided(&[&duplicates(), &edit(), &later]).await;
    let first = first_of_group().await;
    let mut calls = 0;
    loop {
        let cut = interrupted(&first, &later).await;
        let log = DisturbedLog::new(&cut, calls, Event::Overtaken(Box::new(cut.second_decider().await)));
        let mut slow = log.decider(&cut).await;
        let outcome = slow.catch_up().await;
        assert!(outcome.is_ok(), "overtaken after {calls} calls: {outcome:?}");
        assert_eq!(slow.checkpoint().seq, whole.decider.checkpoint().seq, "overtaken after {calls} calls");
        assert_eq!(feed(&slow).await, feed(&whole.decider).await, "overtaken after {calls} calls");
        assert_eq!(cut.digest().await, whole.digest().await, "overtaken after {calls} calls");
        if log.is_unused().await {
            break;
        }
        calls += 1;
    }
    assert!(calls > 5, "overtaken at {calls} calls");
}

/// Returns an engine whose log has the first change of a group that means nothing under the present rules.
async fn begun_by_other_rules() -> Engine {
    let mut engine = Engine::new().await;
    let key = "cpsc/1";
    // What was never observed cannot be withdrawn.
    engine.append_chained(&[(key.to_owned(), Content::Withdrawn)]).await;
    let partition = RECALLS.partition_of(key.as_bytes()).try_into().unwrap();
    let begun = RecallChange {
        recorded_at: clock().now_ms(),
        input: Input { topic: RECALLS.name.to_owned(), partition, offset: Some(LogOffset(0)) },
        following: 1,
        ..testing::change(ChangeKind::Noted, "", [None, None])
    };
    let value = Encoder::new(CHANGES_RECALLS.name).unwrap().encode(&begun).unwrap();
    let record = Record { value: Bytes::from(value), at_ms: 1, ..Record::default() };
    engine.log.append(vec![Append { topic: &CHANGES_RECALLS, partition: 0, record }]).await.unwrap();
    engine
}

/// Proves that a group whose input means nothing under the present rules stops deciding with a message that says so: what would be appended after an
/// incomplete group would not extend the chain.
#[tokio::test]
async fn a_group_whose_input_means_nothing_is_refused() {
    let mut engine = begun_by_other_rules().await;
    let message = engine.decider.catch_up().await.unwrap_err().to_string();
    assert!(message.contains("decides change 1 differently from the log"), "{message}");
    assert_eq!(changes(&engine).await.len(), 1, "nothing is appended after it");
}

/// Proves that a decider that cannot decide an interrupted group says why, also if the log fails when the decider asks it whether another one has continued
/// the group, which is the last of its calls.
#[tokio::test]
async fn a_failing_log_does_not_hide_why_a_group_is_refused() {
    let engine = begun_by_other_rules().await;
    let mut messages = Vec::new();
    loop {
        let log = DisturbedLog::new(&engine, messages.len(), Event::Failure);
        let message = log.decider(&engine).await.catch_up().await.unwrap_err().to_string();
        if log.is_unused().await {
            break;
        }
        messages.push(message);
    }
    let last = messages.pop().unwrap();
    assert!(last.contains("decides change 1 differently from the log"), "{last}");
    assert!(!messages.is_empty() && messages.iter().all(|message| message == "the log failed"), "{messages:?}");
}
