//! Rivals, zombies and crashes: every change once, in one order.

use std::sync::Arc;

use bytes::Bytes;
use event_log::{Append, Record};
use projector::decider::Decider;
use projector::rebuild;
use projector::services::recalls::Recalls;
use schemas::position::{LogOffset, Seq};
use schemas::topics::CHANGES_RECALLS;
use schemas::views::recalls::FEED;
use tokio::sync::Mutex;

use crate::harness::{Engine, Said, recall};

fn observed(number: u32, title: &str) -> (String, Said) {
    (format!("cpsc/{number}"), Said::Observed(recall("cpsc", "CPSC", &number.to_string(), title, "Acme", "2026-01-01")))
}

async fn changes(engine: &Engine) -> Vec<event_log::Stored> {
    engine.log.read(&CHANGES_RECALLS, 0, LogOffset(0), 10_000, usize::MAX).await.unwrap()
}

pub(crate) async fn feed(decider: &Decider<Recalls>) -> String {
    let upto = Seq(decider.checkpoint().seq);
    let page = view_store::feed::read_page(&**decider.view(), &FEED, Seq(0), upto, 1_000).await.unwrap();
    page.parts.iter().map(|part| String::from_utf8_lossy(part).into_owned()).collect::<Vec<_>>().join(",")
}

/// Proves that records appended by others to a change topic (repeats, another decider's, junk) are passed over.
#[tokio::test]
async fn what_does_not_chain_in_a_change_topic_is_passed_over() {
    let mut engine = Engine::new().await;
    engine.say(&[observed(1, "one"), observed(2, "two")]).await;
    let again = changes(&engine).await;
    let junk = Record { value: Bytes::from_static(b"junk"), ..Record::default() };
    let batch = again.iter().map(|stored| stored.record.clone()).chain([junk]);
    engine.log.append(batch.map(|record| Append { topic: &CHANGES_RECALLS, partition: 0, record }).collect()).await.unwrap();
    engine.say(&[observed(3, "three")]).await;
    assert_eq!(engine.decider.checkpoint().seq, 3);
    let mut rebuilt: Decider<Recalls> = engine.rival().await;
    rebuilt.apply_log(|_| ()).await.unwrap();
    assert_eq!(rebuilt.checkpoint().seq, 3);
    assert_eq!(feed(&engine.decider).await.matches("\"event\":\"new\"").count(), 3);
}

/// Proves that two deciders that both believe to be the only one make one chain: the one that lost takes up the other's changes.
#[tokio::test]
async fn two_deciders_make_one_chain() {
    let mut engine = Engine::new().await;
    let mut rival = engine.rival().await;
    for number in 1..=20 {
        engine.say_without_deciding(&[observed(number, "title")]).await;
        if number % 2 == 0 {
            rival.catch_up().await.unwrap();
        }
        engine.decider.catch_up().await.unwrap();
    }
    rival.catch_up().await.unwrap();
    assert_eq!((engine.decider.checkpoint().seq, rival.checkpoint().seq), (20, 20));
    assert_eq!(changes(&engine).await.len(), 20, "neither decided what the other had");
    assert_eq!(feed(&engine.decider).await, feed(&rival).await);
}

/// Proves that a group of changes that a crash cut in the middle is completed, and that nothing in it is said twice.
#[tokio::test]
async fn a_cut_group_is_completed() {
    // A pair of agencies' duplicates that an edit takes apart: one fact, two changes.
    let pair = |key: &str, agency: &str, door: &str, title: &str| {
        (format!("{door}/{key}"), Said::Observed(recall(door, agency, key, title, "Paar", "2026-07-01")))
    };
    let first = [pair("F-4", "FDA", "openfda.food", "Pair"), pair("030", "USDA", "fsis", "Pair")];
    let edit = [pair("F-4", "FDA", "openfda.food", "Another")];
    let mut whole = Engine::new().await;
    whole.say(&first).await;
    let before = changes(&whole).await.len();
    whole.say(&edit).await;
    let all = changes(&whole).await;
    assert!(all.len() - before >= 2, "the edit must make a group");
    let mut cut = Engine::new().await;
    cut.say(&first).await;
    cut.say_without_deciding(&edit).await;
    let torn = Append { topic: &CHANGES_RECALLS, partition: 0, record: all[before].record.clone() };
    cut.log.append(vec![torn]).await.unwrap();
    let view = Arc::clone(cut.decider.view());
    cut.decider = Decider::open(Arc::clone(&cut.log), Arc::clone(&cut.engine), view, crate::harness::clock()).await.unwrap();
    cut.decider.catch_up().await.unwrap();
    assert_eq!(changes(&cut).await.len(), all.len());
    assert_eq!(feed(&cut.decider).await, feed(&whole.decider).await);
    assert_eq!(cut.digest().await, whole.digest().await);
}

/// Proves that a replay gives the same rows and the same bytes of every page, and that the live decider goes on behind it.
#[tokio::test]
async fn a_replay_gives_the_same_bytes() {
    let mut engine = Engine::new().await;
    engine.say(&(1..=450).map(|number| observed(number, "title")).collect::<Vec<_>>()).await;
    engine.say(&(1..=50).map(|number| observed(number, "other")).collect::<Vec<_>>()).await;
    let (digest, pages) = (engine.digest().await, feed(&engine.decider).await);
    let parts = engine.parts();
    let fresh = engine.rival().await;
    let live = Mutex::new(std::mem::replace(&mut engine.decider, fresh));
    let applied = rebuild::replay(&parts, &live, &(Arc::new(|_, _| ()) as rebuild::Progress)).await.unwrap();
    assert_eq!(applied, 500);
    engine.decider = live.into_inner();
    assert_eq!((engine.digest().await, feed(&engine.decider).await), (digest, pages));
    assert_eq!(engine.decider.view().generation(), 2);
    engine.say(&[observed(1_000, "after")]).await;
    assert_eq!(engine.decider.checkpoint().seq, 501);
}

/// Proves that a fact that makes no sense is parked with its reason, that the service goes on, that later facts of its key wait
/// behind it, and that nothing is lost.
#[tokio::test]
async fn a_poison_fact_is_parked() {
    let mut engine = Engine::new().await;
    let poison = recall("cpsc", "", "", "no agency", "Acme", "2026-01-01");
    engine.say(&[("cpsc/1".to_owned(), Said::Observed(poison)), observed(1, "good"), observed(2, "other")]).await;
    let parked = engine.decider.parked_rows().await.unwrap();
    assert_eq!(parked.len(), 2);
    assert!(parked[0].1.reason.contains("agency"), "{parked:?}");
    assert!(parked[1].1.reason.contains("earlier"), "{parked:?}");
    assert!(engine.record("CPSC:2").await.is_some());
    assert!(engine.record("CPSC:1").await.is_none());
    // Still poison, so it stays; what waited behind it does, too.
    assert_eq!(engine.decider.retry_parked().await.unwrap(), 0);
    assert_eq!(engine.decider.parked_rows().await.unwrap().len(), 2);
}

/// Proves that a clock that goes back neither stops the service nor makes recorded times go back.
#[tokio::test]
async fn recorded_times_never_go_back() {
    let mut engine = Engine::new().await;
    engine.say(&[observed(1, "now")]).await;
    let earlier = schemas::clock::Clock::Fixed("2026-11-20T11:00:00Z".parse().unwrap());
    let view = Arc::clone(engine.decider.view());
    engine.decider = Decider::open(Arc::clone(&engine.log), Arc::clone(&engine.engine), view, earlier).await.unwrap();
    engine.say(&[observed(2, "an hour back"), observed(3, "still")]).await;
    assert_eq!(engine.decider.checkpoint().seq, 3);
    let shown = feed(&engine.decider).await;
    assert_eq!(shown.matches("2026-11-20T12:00:00.000Z").count(), 3, "{shown}");
}

/// Proves that deciding again under the same rules appends nothing, also where merged recalls came in another order than the log's
/// partitions have them.
#[tokio::test]
async fn deciding_again_without_a_change_appends_nothing() {
    let mut engine = Engine::new().await;
    for number in 0..12 {
        let said = |door: &str, agency: &str| {
            let (number, title) = (format!("{number}"), format!("Pair {number}"));
            (format!("{door}/{number}"), Said::Observed(recall(door, agency, &number, &title, "Paar", "2026-07-01")))
        };
        let (one, other) = (said("fsis", "USDA"), said("openfda.food", "FDA"));
        engine.say(&[one]).await;
        engine.say(&[other]).await;
    }
    let (digest, seq, parts) = (engine.digest().await, engine.decider.checkpoint().seq, engine.parts());
    let fresh = engine.rival().await;
    let live = Mutex::new(std::mem::replace(&mut engine.decider, fresh));
    let appended = rebuild::redecide(&parts, &live, &(Arc::new(|_, _| ()) as rebuild::Progress)).await.unwrap();
    engine.decider = live.into_inner();
    assert_eq!((appended, engine.decider.checkpoint().seq), (0, seq));
    assert_eq!(engine.digest().await, digest);
}
