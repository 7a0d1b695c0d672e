//! Parked inputs that can be decided after a fix are decided exactly once, also with crashes and concurrent deciders.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use bytes::Bytes;
use event_log::{Append, Stored};
use fold::rows::Rows;
use fold::service::{Draft, Service, Undecided};
use projector::decider::Decider;
use projector::rebuild;
use recalls::rules::Recalls;
use schemas::change::Change;
use schemas::event::Fact;
use schemas::facts::recalls::RecallFact;
use schemas::position::{LogOffset, Seq};
use schemas::tables::{Key, Table, ViewDef, Write};
use schemas::topics::{CHANGES_RECALLS, Topic};
use schemas::views::recalls::{FEED, Recall, RememberedFact};

use crate::harness::{Content, Engine, clock, recall};

/// The recalls service with a rule that cannot decide some records until it is fixed.
struct FixedRecalls;

static IS_FIXED: AtomicBool = AtomicBool::new(false);

/// The title that the rule cannot decide.
const UNDECIDABLE: &str = "Strange";

impl Service for FixedRecalls {
    type Fact = RecallFact;
    type Record = Recall;
    type Note = RememberedFact;

    const NAME: &'static str = Recalls::NAME;
    const VIEW: &'static ViewDef = Recalls::VIEW;
    const INPUTS: &'static [Topic] = Recalls::INPUTS;
    const CHANGES: &'static Topic = Recalls::CHANGES;
    const FEED: &'static Table = Recalls::FEED;
    const RECORDS: &'static Table = Recalls::RECORDS;
    const PARKED: &'static Table = Recalls::PARKED;
    const DECISION_TABLES: &'static [&'static Table] = Recalls::DECISION_TABLES;

    fn read(topic: &Topic, value: &[u8]) -> Result<Fact<RecallFact>, schemas::avro::Error> {
        Recalls::read(topic, value)
    }

    fn reads(fact: &Fact<RecallFact>) -> Vec<(&'static Table, Key)> {
        Recalls::reads(fact)
    }

    fn decide(rows: &mut Rows, fact: &Fact<RecallFact>) -> Result<Vec<Draft<Recall, RememberedFact>>, Undecided> {
        let is_strange = fact.data.as_ref().is_some_and(|data| data.title == UNDECIDABLE);
        if is_strange && !IS_FIXED.load(Ordering::Relaxed) {
            return Err(Undecided::Poison("strange".to_owned()));
        }
        Recalls::decide(rows, fact)
    }

    fn apply(change: &Change<Recall, RememberedFact>, record: &[u8]) -> Vec<Write> {
        Recalls::apply(change, record)
    }

    fn is_listed(record: &Recall) -> bool {
        Recalls::is_listed(record)
    }

    fn digest_row(value: &Bytes) -> Option<Bytes> {
        Recalls::digest_row(value)
    }

    fn read_row(value: &[u8]) -> Result<(Recall, Seq, Seq), serde_json::Error> {
        Recalls::read_row(value)
    }

    fn difference(id: &str, before: Option<(Recall, Seq, Seq)>, after: Option<Recall>) -> Option<Draft<Recall, RememberedFact>> {
        Recalls::difference(id, before, after)
    }

    fn remember(
        table: &'static Table,
        key: &Key,
        value: Option<&Bytes>,
    ) -> Result<Option<Draft<Recall, RememberedFact>>, serde_json::Error> {
        Recalls::remember(table, key, value)
    }
}

async fn decider(engine: &Engine) -> Decider<FixedRecalls> {
    let view = engine.store.live(FixedRecalls::VIEW).await.unwrap();
    Decider::open(Arc::clone(&engine.log), Arc::clone(&engine.engine), view, clock()).await.unwrap()
}

async fn changes(engine: &Engine) -> Vec<Stored> {
    engine.log.read(&CHANGES_RECALLS, 0, LogOffset(0), 1_000, usize::MAX).await.unwrap()
}

/// Returns everything that readers and digests see.
async fn visible_state(engine: &Engine, decider: &Decider<FixedRecalls>) -> (String, String) {
    let upto = decider.checkpoint().seq;
    let page = view_store::feed::read_page(&**decider.view(), &FEED, Seq(0), upto, 1_000).await.unwrap();
    let feed = page.parts.iter().map(|part| String::from_utf8_lossy(part).into_owned()).collect();
    let live = engine.store.live(FixedRecalls::VIEW).await.unwrap();
    (feed, rebuild::digest::<FixedRecalls>(&*live, true, None).await.unwrap().to_string())
}

fn content(stream: &str, agency: &str, number: &str, title: &str) -> (String, Content) {
    (format!("{stream}/{number}"), Content::Observed(recall(stream, agency, number, title, "Paar", "2026-07-01")))
}

/// Proves that a group of changes from retrying a parked input is completed wherever a crash interrupted it, with the same bytes as without
/// a crash; and that another decider notices that the key is no longer parked.
#[tokio::test]
async fn retries_survive_a_crash() {
    // A pair of agencies' duplicates that the undecidable edit separates: one fact, several changes.
    let first = [content("openfda.food", "FDA", "F-4", "Pair"), content("fsis", "USDA", "030", "Pair")];
    let edit = [content("openfda.food", "FDA", "F-4", UNDECIDABLE)];
    let after = [content("openfda.food", "FDA", "F-4", "Plain")];

    IS_FIXED.store(false, Ordering::Relaxed);
    let mut whole = Engine::new().await;
    let (mut taking, mut looking) = (decider(&whole).await, decider(&whole).await);
    for facts in [&first[..], &edit] {
        whole.append_chained(facts).await;
        taking.catch_up().await.unwrap();
        looking.catch_up().await.unwrap();
    }
    assert_eq!((taking.parked_keys(), looking.parked_keys()), (1, 1));
    let before = changes(&whole).await.len();
    IS_FIXED.store(true, Ordering::Relaxed);
    assert_eq!(taking.retry_parked().await.unwrap(), 1);
    let all = changes(&whole).await;
    assert!(all.len() - before >= 3, "the edit must lead to several changes");
    let wanted = visible_state(&whole, &taking).await;

    looking.catch_up().await.unwrap();
    assert_eq!(looking.parked_keys(), 0);
    whole.append_chained(&after).await;
    looking.catch_up().await.unwrap();
    assert_eq!(looking.parked_keys(), 0, "a later fact of the key is decided");

    for logged in 1..all.len() - before {
        IS_FIXED.store(false, Ordering::Relaxed);
        let mut cut = Engine::new().await;
        let mut dying = decider(&cut).await;
        for facts in [&first[..], &edit] {
            cut.append_chained(facts).await;
            dying.catch_up().await.unwrap();
        }
        IS_FIXED.store(true, Ordering::Relaxed);
        let torn = all[before..before + logged].iter();
        let batch = torn.map(|stored| Append { topic: &CHANGES_RECALLS, partition: 0, record: stored.record.clone() }).collect();
        cut.log.append(batch).await.unwrap();
        let mut next = decider(&cut).await;
        next.catch_up().await.unwrap();
        assert_eq!(changes(&cut).await, all, "cut after {logged}");
        assert_eq!(visible_state(&cut, &next).await, wanted, "cut after {logged}");
        assert!(next.parked_rows().await.unwrap().is_empty());
    }
}
