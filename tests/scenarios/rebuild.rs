//! Rebuilding while readers read: applying again changes no byte, and deciding again under another rule appends the differences once.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};

use bytes::Bytes;
use projector::decider::Decider;
use projector::heads::Heads;
use projector::rebuild::{self, Progress};
use projector::rows::Rows;
use projector::service::{Draft, Service, Undecided};
use projector::services::recalls::Recalls;
use schemas::change::{Change, ChangeKind};
use schemas::event::Fact;
use schemas::facts::recalls::RecallFact;
use schemas::position::Seq;
use schemas::tables::{Key, Table, ViewDef, Write};
use schemas::topics::Topic;
use schemas::views::recalls::{FEED, Note, Recall};
use tokio::sync::{Mutex, watch};

use crate::engine::{Engine, Played, assert_shown_once, fixed_clock};

fn quiet() -> Progress {
    Arc::new(|_, _| ())
}

/// One page as a reader gets it; a generation that goes away in between is read again from the live one.
async fn page(engine: &Engine, after: u64, upto: u64) -> Vec<Bytes> {
    loop {
        let view = engine.view().await;
        match view_store::feed::read_page(&*view, &FEED, Seq(after), Seq(upto), 50).await {
            Err(view_store::Error::Gone { .. }) => {}
            result => return result.unwrap().parts,
        }
    }
}

/// Proves that a replay under readers and under a running ingest changes no digest, no cursor and no byte of a page.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_replay_changes_no_byte() {
    let dir = tempfile::tempdir().unwrap();
    let played = Played::start(31, 1_200, fixed_clock()).await;
    let engine = Engine::open(dir.path(), fixed_clock()).await;
    engine.run_all(&played.settings()).await;
    played.sim.advance(60);
    engine.run_all(&played.settings()).await;
    engine.run_all(&played.settings()).await;
    let (plain, history, feed) = (engine.digest(false).await, engine.digest(true).await, engine.feed_bytes(200).await);
    let upto = engine.view().await.checkpoint().await.unwrap().seq;
    let mut pages = Vec::new();
    for after in (0..upto).step_by(97) {
        pages.push((after, page(&engine, after, upto).await.concat()));
    }

    let (done, reads) = (AtomicBool::new(false), AtomicUsize::new(0));
    let reading = async {
        while !done.load(Ordering::Relaxed) {
            for (after, bytes) in &pages {
                assert_eq!(&page(&engine, *after, upto).await.concat(), bytes, "the page after {after}");
                reads.fetch_add(1, Ordering::Relaxed);
                // A read of rows that are at hand waits for nothing, and the others have the same thread.
                tokio::task::yield_now().await;
            }
        }
    };
    let recalls = engine.projector.service("recalls").unwrap();
    let replaying = async {
        for _ in 0..2 {
            assert!(recalls.replay(&quiet()).await.unwrap() > 0);
            assert_eq!(engine.digest(false).await, plain);
            assert_eq!(engine.digest(true).await, history);
            assert_eq!(engine.feed_bytes(200).await, feed);
        }
        // And beside an ingest that goes on.
        for _ in 0..3 {
            played.sim.advance(10);
            let (play, progress) = (played.settings(), quiet());
            let (_, replayed) = tokio::join!(engine.run_all(&play), recalls.replay(&progress));
            replayed.unwrap();
        }
        done.store(true, Ordering::Relaxed);
    };
    tokio::join!(reading, replaying);
    assert!(reads.load(Ordering::Relaxed) > pages.len(), "readers read meanwhile");
    assert!(engine.feed_bytes(200).await.starts_with(&feed), "the feed goes on where it was");
    assert_shown_once(&engine.feed().await);
    let (before, rows) = (engine.digest(true).await, engine.feed_bytes(200).await);
    recalls.replay(&quiet()).await.unwrap();
    assert_eq!((engine.digest(true).await, engine.feed_bytes(200).await), (before, rows));
    engine.close().await;
}

/// Whether the other rule holds.
static OTHER_RULE: AtomicBool = AtomicBool::new(false);

/// The recalls service with a rule that a test can change: what CPSC's records say of a remedy.
struct Ruled;

impl Service for Ruled {
    type Fact = RecallFact;
    type Record = Recall;
    type Note = Note;

    const NAME: &'static str = Recalls::NAME;
    const VIEW: &'static ViewDef = Recalls::VIEW;
    const INPUTS: &'static [Topic] = Recalls::INPUTS;
    const CHANGES: &'static Topic = Recalls::CHANGES;
    const FEED: &'static Table = Recalls::FEED;
    const RECORDS: &'static Table = Recalls::RECORDS;
    const PARKED: &'static Table = Recalls::PARKED;
    const DECISION_TABLES: &'static [&'static Table] = Recalls::DECISION_TABLES;

    fn reads(fact: &Fact<RecallFact>) -> Vec<(&'static Table, Key)> {
        Recalls::reads(fact)
    }

    fn decide(rows: &mut Rows, fact: &Fact<RecallFact>) -> Result<Vec<Draft<Recall, Note>>, Undecided> {
        let mut drafts = Recalls::decide(rows, fact)?;
        for draft in drafts.iter_mut().filter(|_| OTHER_RULE.load(Ordering::Relaxed)) {
            if let Some(after) = draft.after.as_mut().filter(|after| after.agency == "CPSC") {
                after.remedy = "As the other rule says".to_owned();
            }
            if draft.after.is_some() && draft.after == draft.before {
                (draft.event, draft.after, draft.before, draft.before_seq, draft.before_since) = (ChangeKind::Noted, None, None, 0, 0);
            }
        }
        Ok(drafts)
    }

    fn apply(change: &Change<Recall, Note>, record: &[u8]) -> Vec<Write> {
        Recalls::apply(change, record)
    }

    fn digest_row(value: &Bytes) -> Option<Bytes> {
        Recalls::digest_row(value)
    }

    fn read_row(value: &[u8]) -> Result<(Recall, i64, i64), serde_json::Error> {
        Recalls::read_row(value)
    }

    fn difference(id: &str, before: Option<(Recall, i64, i64)>, after: Option<Recall>) -> Option<Draft<Recall, Note>> {
        Recalls::difference(id, before, after)
    }

    fn remember(table: &'static Table, key: &Key, value: Option<&Bytes>) -> Result<Option<Draft<Recall, Note>>, serde_json::Error> {
        Recalls::remember(table, key, value)
    }
}

/// Proves that deciding again after a changed rule appends the differences once, as changes behind the old ones: cursors go on, and a
/// second time appends nothing.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_changed_rule_appends_its_differences_once() {
    let dir = tempfile::tempdir().unwrap();
    let played = Played::start(32, 900, fixed_clock()).await;
    let engine = Engine::open_still(dir.path(), fixed_clock()).await;
    let (stop, stopping) = watch::channel(false);
    let heads = Heads::new(Arc::clone(&engine.log), Arc::clone(&engine.parts.engine));
    tokio::spawn(crate::engine::keep(heads, stopping));
    let parts = &engine.parts;
    let decider: Decider<Ruled> =
        Decider::open(Arc::clone(&parts.log), Arc::clone(&parts.engine), engine.view().await, parts.clock, parts.framing).await.unwrap();
    let live = Mutex::new(decider);
    let read = async || {
        for name in crate::engine::upstream_names() {
            for result in engine.run(name, &played.settings()).await {
                result.unwrap();
            }
        }
        live.lock().await.catch_up().await.unwrap();
    };
    read().await;
    played.sim.advance(30);
    read().await;
    assert_eq!(rebuild::redecide::<Ruled>(parts, &live, &quiet()).await.unwrap(), 0, "the same rule decides the same");
    let digest_now = async || rebuild::digest::<Ruled>(&*engine.view().await, false, None).await.unwrap();
    let (feed, digest) = (engine.feed_bytes(200).await, digest_now().await);

    OTHER_RULE.store(true, Ordering::Relaxed);
    let shown = engine.feed().await.len();
    let appended = rebuild::redecide::<Ruled>(parts, &live, &quiet()).await.unwrap();
    let cpsc = engine.records().await.values().filter(|row| row.record.agency == "CPSC").count();
    assert_eq!(appended, cpsc as u64);
    assert!(engine.feed_bytes(200).await.starts_with(&feed), "what was told stays as it was");
    let told = engine.feed().await;
    assert_shown_once(&told);
    assert_eq!(told.len() - shown, cpsc);
    for change in &told[shown..] {
        assert_eq!((change["event"].as_str(), change["record"]["remedy"].as_str()), (Some("modified"), Some("As the other rule says")));
    }
    assert_ne!(digest_now().await, digest);

    assert_eq!(rebuild::redecide::<Ruled>(parts, &live, &quiet()).await.unwrap(), 0, "once");
    played.sim.advance(30);
    read().await;
    read().await;
    assert_shown_once(&engine.feed().await);
    assert_eq!(rebuild::redecide::<Ruled>(parts, &live, &quiet()).await.unwrap(), 0, "and what came since is decided so, too");
    let records = engine.records().await;
    assert!(records.values().filter(|row| row.record.agency == "CPSC").all(|row| row.record.remedy == "As the other rule says"));

    OTHER_RULE.store(false, Ordering::Relaxed);
    assert!(rebuild::redecide::<Ruled>(parts, &live, &quiet()).await.unwrap() >= cpsc as u64, "and back");
    assert_shown_once(&engine.feed().await);
    stop.send_replace(true);
    engine.close().await;
}
