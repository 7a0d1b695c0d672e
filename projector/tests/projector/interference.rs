//! Concurrent deciders, outdated writers and crashes: every change once, in one order.

use std::sync::Arc;

use bytes::Bytes;
use event_log::{Append, Record};
use projector::decider::Decider;
use projector::rebuild;
use recalls::rules::Recalls;
use schemas::position::{LogOffset, Seq};
use schemas::topics::CHANGES_RECALLS;
use schemas::views::recalls::FEED;
use table_file::Format;
use tokio::sync::Mutex;

use crate::harness::{Content, Engine, recall};

fn observed(number: u32, title: &str) -> (String, Content) {
    (format!("cpsc/{number}"), Content::Observed(recall("cpsc", "CPSC", &number.to_string(), title, "Acme", "2026-01-01")))
}

pub(crate) async fn changes(engine: &Engine) -> Vec<event_log::Stored> {
    engine.log.read(&CHANGES_RECALLS, 0, LogOffset(0), 10_000, usize::MAX).await.unwrap()
}

pub(crate) async fn feed(decider: &Decider<Recalls>) -> String {
    let upto = decider.checkpoint().seq;
    let page = view_store::feed::read_page(&**decider.view(), &FEED, Seq(0), upto, 1_000).await.unwrap();
    page.parts.iter().map(|part| String::from_utf8_lossy(part).into_owned()).collect::<Vec<_>>().join(",")
}

/// Proves that records appended by others to a change topic (duplicates, another decider's, malformed ones) are ignored.
#[tokio::test]
async fn changes_that_do_not_chain_are_ignored() {
    let mut engine = Engine::new().await;
    engine.append_and_decide(&[observed(1, "one"), observed(2, "two")]).await;
    let again = changes(&engine).await;
    let junk = Record { value: Bytes::from_static(b"junk"), ..Record::default() };
    let batch = again.iter().map(|stored| stored.record.clone()).chain([junk]);
    engine.log.append(batch.map(|record| Append { topic: &CHANGES_RECALLS, partition: 0, record }).collect()).await.unwrap();
    engine.append_and_decide(&[observed(3, "three")]).await;
    assert_eq!(engine.decider.checkpoint().seq, Seq(3));
    let mut rebuilt: Decider<Recalls> = engine.second_decider().await;
    rebuilt.apply_log(|_| ()).await.unwrap();
    assert_eq!(rebuilt.checkpoint().seq, Seq(3));
    assert_eq!(feed(&engine.decider).await.matches("\"event\":\"new\"").count(), 3);
}

/// Proves that a change which a newer version wrote stops deciding, rebuilding and an export with a message that says so, instead of being passed over:
/// another change would be appended in its place.
#[tokio::test]
async fn changes_of_a_newer_version_are_not_passed_over() {
    let mut engine = Engine::new().await;
    engine.append_and_decide(&[observed(1, "one")]).await;
    let own = changes(&engine).await.remove(0).record;
    let mut value = own.value.to_vec();
    // The fingerprint of a schema that this version does not know.
    value[2..10].copy_from_slice(&[0xee; 8]);
    let newer = Append { topic: &CHANGES_RECALLS, partition: 0, record: Record { value: value.into(), ..own } };
    engine.log.append(vec![newer]).await.unwrap();
    engine.append_chained(&[observed(2, "two")]).await;
    let message = engine.decider.catch_up().await.unwrap_err().to_string();
    assert!(message.contains("a newer version") && message.contains("changes.recalls/0 offset 1"), "{message}");
    assert_eq!(changes(&engine).await.len(), 2, "no change is appended in its place");
    let mut lines = Vec::new();
    let mut write = |bytes: &[u8]| {
        lines.extend_from_slice(bytes);
        true
    };
    let exported = projector::export::export(&engine.parts(), &CHANGES_RECALLS, Format::Ndjson, true, |_, _| (), &mut write).await;
    let message = exported.unwrap_err().to_string();
    assert!(message.contains("changes.recalls/0 offset 1 cannot be read"), "{message}");
}

/// Proves that two concurrent deciders create one chain: the one that lost loads the other's changes.
#[tokio::test]
async fn two_deciders_make_one_chain() {
    let mut engine = Engine::new().await;
    let mut second_decider = engine.second_decider().await;
    for number in 1..=20 {
        engine.append_chained(&[observed(number, "title")]).await;
        if number % 2 == 0 {
            second_decider.catch_up().await.unwrap();
        }
        engine.decider.catch_up().await.unwrap();
    }
    second_decider.catch_up().await.unwrap();
    assert_eq!((engine.decider.checkpoint().seq, second_decider.checkpoint().seq), (Seq(20), Seq(20)));
    assert_eq!(changes(&engine).await.len(), 20, "no fact was decided twice");
    assert_eq!(feed(&engine.decider).await, feed(&second_decider).await);
}

/// Proves that a replay gives the same rows and the same bytes of every page, and that the live decider continues after it.
#[tokio::test]
async fn a_replay_gives_the_same_bytes() {
    let mut engine = Engine::new().await;
    engine.append_and_decide(&(1..=450).map(|number| observed(number, "title")).collect::<Vec<_>>()).await;
    engine.append_and_decide(&(1..=50).map(|number| observed(number, "other")).collect::<Vec<_>>()).await;
    let (digest, pages) = (engine.digest().await, feed(&engine.decider).await);
    let parts = engine.parts();
    let fresh = engine.second_decider().await;
    let live = Mutex::new(std::mem::replace(&mut engine.decider, fresh));
    let applied = rebuild::replay(&parts, &live, &(Arc::new(|_, _| ()) as rebuild::Progress)).await.unwrap();
    assert_eq!(applied, 500);
    engine.decider = live.into_inner();
    assert_eq!((engine.digest().await, feed(&engine.decider).await), (digest, pages));
    assert_eq!(engine.decider.view().generation(), 2);
    engine.append_and_decide(&[observed(1_000, "after")]).await;
    assert_eq!(engine.decider.checkpoint().seq, Seq(501));
}

/// Proves that a fact that the service cannot interpret is parked with its reason, that the service continues, that later facts of its key
/// are parked, too, and that nothing is lost.
#[tokio::test]
async fn a_poison_fact_is_parked() {
    let mut engine = Engine::new().await;
    let poison = recall("cpsc", "", "", "no agency", "Acme", "2026-01-01");
    engine.append_and_decide(&[("cpsc/1".to_owned(), Content::Observed(poison)), observed(1, "good"), observed(2, "other")]).await;
    let parked = engine.decider.parked_rows().await.unwrap();
    assert_eq!(parked.len(), 2);
    assert!(parked[0].1.reason.contains("agency"), "{parked:?}");
    assert!(parked[1].1.reason.contains("earlier"), "{parked:?}");
    assert!(engine.record("CPSC:2").await.is_some());
    assert!(engine.record("CPSC:1").await.is_none());
    // It still cannot be decided and remains parked, as do the later facts of its key.
    assert_eq!(engine.decider.retry_parked().await.unwrap(), 0);
    assert_eq!(engine.decider.parked_rows().await.unwrap().len(), 2);
}

/// Proves that a clock that goes back neither stops the service nor makes recorded times decrease.
#[tokio::test]
async fn recorded_times_never_go_back() {
    let mut engine = Engine::new().await;
    engine.append_and_decide(&[observed(1, "now")]).await;
    let earlier = schemas::clock::Clock::Fixed("2026-11-20T11:00:00Z".parse().unwrap());
    let view = Arc::clone(engine.decider.view());
    engine.decider = Decider::open(Arc::clone(&engine.log), Arc::clone(&engine.engine), view, earlier).await.unwrap();
    engine.append_and_decide(&[observed(2, "an hour back"), observed(3, "still")]).await;
    assert_eq!(engine.decider.checkpoint().seq, Seq(3));
    let shown = feed(&engine.decider).await;
    assert_eq!(shown.matches("2026-11-20T12:00:00.000Z").count(), 3, "{shown}");
}

/// Proves that deciding again under the same rules appends nothing, also if merged recalls arrived in another order than the partitions of
/// the log have.
#[tokio::test]
async fn deciding_again_without_a_change_appends_nothing() {
    let mut engine = Engine::new().await;
    for number in 0..12 {
        let content = |stream: &str, agency: &str| {
            let (number, title) = (format!("{number}"), format!("Pair {number}"));
            (format!("{stream}/{number}"), Content::Observed(recall(stream, agency, &number, &title, "Paar", "2026-07-01")))
        };
        let (one, other) = (content("fsis", "USDA"), content("openfda.food", "FDA"));
        engine.append_and_decide(&[one]).await;
        engine.append_and_decide(&[other]).await;
    }
    let (digest, seq, parts) = (engine.digest().await, engine.decider.checkpoint().seq, engine.parts());
    let fresh = engine.second_decider().await;
    let live = Mutex::new(std::mem::replace(&mut engine.decider, fresh));
    let appended = rebuild::redecide(&parts, &live, &(Arc::new(|_, _| ()) as rebuild::Progress)).await.unwrap();
    engine.decider = live.into_inner();
    assert_eq!((appended, engine.decider.checkpoint().seq), (0, seq));
    assert_eq!(engine.digest().await, digest);
    let manifest = std::fs::read_to_string(engine.dir.path().join("views/manifest")).unwrap();
    assert!(
        manifest.contains("recalls.g1.") && !manifest.contains("recalls.g2."),
        "the generation that was compared is deleted: {manifest}"
    );
}
