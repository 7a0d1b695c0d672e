//! A service that decides from the changes of another service: each change once, in order, whatever else is in the topic.

use std::sync::Arc;

use bytes::Bytes;
use event_log::{Append, Record};
use fold::changes_read::read_change;
use fold::records::{DecisionRow, Records, Rules, State};
use fold::service::{Service, Undecided};
use labs::record::{Lead, TABLES};
use projector::decider::Decider;
use projector::heads::Heads;
use projector::rebuild;
use schemas::avro;
use schemas::event::Fact;
use schemas::position::{LogOffset, Seq};
use schemas::topics::{CHANGES_LABS, CHANGES_RECALLS, Topic};
use schemas::views::recalls::Recall;
use schemas::views::records::RecordTables;
use tokio::sync::Mutex;
use view_store::Range;

use crate::harness::{Content, Engine, clock, recall, services};

/// A service with a record per recall, which counts how often the recall changed. It borrows the tables and the topic of the labs service.
struct Counted;

impl Rules for Counted {
    type Fact = Recall;
    type Record = Lead;

    const TABLES: &'static RecordTables = &TABLES;
    const INPUTS: &'static [Topic] = &[CHANGES_RECALLS];
    const CHANGES: &'static Topic = &CHANGES_LABS;

    fn read(topic: &Topic, value: &[u8]) -> Result<Fact<Recall>, avro::Error> {
        read_change(topic, value)
    }

    fn reads(fact: &Fact<Recall>) -> Vec<DecisionRow> {
        fact.data.iter().map(|recall| DecisionRow::Record(recall.id.clone())).collect()
    }

    fn decide(state: &mut State<'_, Self>, fact: &Fact<Recall>) -> Result<(), Undecided> {
        let Some(recall) = &fact.data else { return Err(Undecided::Poison("a change without its record".to_owned())) };
        let before = state.record(&recall.id)?.map_or(0, |lead| lead.amount);
        state.put(Lead { id: recall.id.clone(), title: recall.title.clone(), amount: before + 1, ..Lead::default() })
    }
}

type CountedService = Records<Counted>;

/// The recalls service with the service that reads its changes.
struct Pair {
    engine: Engine,
    heads: Heads,
    counted: Decider<CountedService>,
}

impl Pair {
    async fn new() -> Self {
        let engine = Engine::new().await;
        let heads = Heads::new(Arc::clone(&engine.log), Arc::clone(&engine.engine), services()).with_changes(&CHANGES_RECALLS);
        let counted = open(&engine).await;
        Self { engine, heads, counted }
    }

    /// Appends titles of recalls, as the next versions of their records.
    async fn append(&mut self, titles: &[(u32, &str)]) {
        for (number, title) in titles {
            let recall = recall("cpsc", "CPSC", &number.to_string(), title, "Acme", "2026-01-01");
            self.engine.append_and_decide(&[(format!("cpsc/{number}"), Content::Observed(recall))]).await;
        }
    }

    async fn catch_up(&mut self) {
        self.heads.catch_up().await.unwrap();
        self.counted.catch_up().await.unwrap();
    }

    /// Returns title and count of each record, by id.
    async fn counts(&self) -> Vec<(String, String, i64)> {
        let rows = self
            .counted
            .view()
            .range(TABLES.records, Range { prefix: Vec::new(), after: None, from: None, limit: 100, reverse: false })
            .await
            .unwrap();
        let lead = |row: &[u8]| serde_json::from_slice::<schemas::views::records::Row<Lead>>(row).unwrap().record;
        rows.iter().map(|(_, row)| lead(row)).map(|lead| (lead.id, lead.title, lead.amount)).collect()
    }

    async fn changes(&self, topic: &'static Topic) -> Vec<event_log::Stored> {
        self.engine.log.read(topic, 0, LogOffset(0), 10_000, usize::MAX).await.unwrap()
    }

    async fn digest(&self) -> String {
        rebuild::digest::<CountedService>(&**self.counted.view(), true, None).await.unwrap().to_string()
    }
}

async fn open(engine: &Engine) -> Decider<CountedService> {
    let view = engine.store.live(CountedService::VIEW).await.unwrap();
    Decider::open(Arc::clone(&engine.log), Arc::clone(&engine.engine), view, clock()).await.unwrap()
}

/// Proves that a service decides each change of another one once and in order; that records which do not extend the other's chain, and
/// changes without a record, mean nothing to it; and that the end of a run reaches its own feed after everything before it.
#[tokio::test]
async fn changes_of_a_service_are_inputs_of_another() {
    let mut pair = Pair::new().await;
    pair.append(&[(1, "one"), (2, "two"), (1, "one again")]).await;
    pair.catch_up().await;
    let counts = [("CPSC:1".to_owned(), "one again".to_owned(), 2), ("CPSC:2".to_owned(), "two".to_owned(), 1)];
    assert_eq!(pair.counts().await, counts);
    // What an overtaken decider appends, and what is no change at all.
    let again = pair.changes(&CHANGES_RECALLS).await.into_iter().map(|stored| stored.record);
    let junk = Record { value: Bytes::from_static(b"junk"), ..Record::default() };
    let batch = again.chain([junk]).map(|record| Append { topic: &CHANGES_RECALLS, partition: 0, record });
    pair.engine.log.append(batch.collect()).await.unwrap();
    pair.catch_up().await;
    assert_eq!(pair.counts().await, counts, "records outside the chain were decided");
    assert_eq!(pair.counted.checkpoint().position(&CHANGES_RECALLS, 0), pair.engine.log.end(&CHANGES_RECALLS, 0).await.unwrap());
    let run = pair.engine.run_finished(Vec::new());
    pair.engine.append(&[run]).await;
    pair.engine.catch_up().await;
    pair.append(&[(3, "three")]).await;
    pair.catch_up().await;
    let decided = pair.changes(&CHANGES_LABS).await;
    let kinds: Vec<_> = decided
        .iter()
        .map(|stored| avro::decode::<schemas::views::records::RecordChange<Lead>>(CHANGES_LABS.name, &stored.record.value).unwrap())
        .map(|change| (change.event.as_str(), change.id, change.through.map(|through| through.through_date)))
        .collect();
    let shown = |event, id: &str| (event, id.to_owned(), None);
    let through = ("through", String::new(), Some("2026-11-20".to_owned()));
    let wanted = [shown("new", "CPSC:1"), shown("new", "CPSC:2"), shown("modified", "CPSC:1"), through, shown("new", "CPSC:3")];
    assert_eq!(kinds, wanted);
}

/// Proves that a crash at any point between appending and applying, and a second decider, neither lose nor double an input; and that both a
/// replay and deciding again give the same rows.
#[tokio::test]
async fn inputs_from_changes_survive_crashes_and_rebuilds() {
    let mut whole = Pair::new().await;
    let titles = [(1, "one"), (2, "two"), (1, "one again"), (3, "three"), (2, "two again")];
    whole.append(&titles).await;
    whole.catch_up().await;
    let changes = whole.changes(&CHANGES_LABS).await;
    assert_eq!(changes.len(), titles.len());

    for kept in 0..=changes.len() {
        let mut cut = Pair::new().await;
        cut.append(&titles).await;
        // These changes were appended before the crash; no row was written.
        let appended = changes[..kept].iter().map(|stored| Append { topic: &CHANGES_LABS, partition: 0, record: stored.record.clone() });
        cut.engine.log.append(appended.collect()).await.unwrap();
        cut.heads.catch_up().await.unwrap();
        let mut second = open(&cut.engine).await;
        second.catch_up().await.unwrap();
        cut.catch_up().await;
        assert_eq!(cut.digest().await, whole.digest().await, "{kept} changes were appended");
        assert_eq!(cut.changes(&CHANGES_LABS).await.len(), titles.len(), "{kept} changes were appended");
    }

    let (digest, parts) = (whole.digest().await, whole.engine.parts());
    let live = Mutex::new(open(&whole.engine).await);
    let progress: rebuild::Progress = Arc::new(|_, _| ());
    rebuild::replay(&parts, &live, &progress).await.unwrap();
    assert_eq!(rebuild::redecide(&parts, &live, &progress).await.unwrap(), 0, "deciding the same inputs again changes nothing");
    let live = live.into_inner();
    assert_eq!(rebuild::digest::<CountedService>(&**live.view(), true, None).await.unwrap().to_string(), digest);
    assert_eq!(live.checkpoint().seq, Seq(titles.len() as u64));
    assert_eq!(live.checkpoint().position(&CHANGES_RECALLS, 0), whole.engine.log.end(&CHANGES_RECALLS, 0).await.unwrap());
}
