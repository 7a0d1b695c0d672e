//! Rebuilding while readers read: applying again changes no byte, and deciding again under another rule appends the differences once.

use std::borrow::Cow;
use std::collections::BTreeMap;
use std::path::Path;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::sync::{Arc, Mutex};

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
use schemas::topics::{RECALLS, Topic};
use schemas::views::recalls::{FEED, Note, Recall};
use serde_json::Value;
use tokio::sync::watch;

use crate::engine::{Engine, Played, assert_shown_once, fixed_clock};
use crate::rivals::{copy, undecided, whole};

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

/// The rules that hold now, by test: they run at once.
static RULES: [Mutex<Rule>; 2] = [Mutex::new(Rule::Own), Mutex::new(Rule::Own)];

/// A rule of the recalls service that a test can put in another one's place.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Rule {
    /// As shipped.
    Own,
    /// CPSC's records say something else of a remedy.
    Remedy,
    /// USDA's brands are not those of other agencies, so that none of its recalls is one with theirs.
    Merge,
}

/// The recalls service under the rule of a test.
struct Ruled<const TEST: usize>;

impl<const TEST: usize> Ruled<TEST> {
    fn rule() -> Rule {
        *RULES[TEST].lock().unwrap()
    }

    fn set(rule: Rule) {
        *RULES[TEST].lock().unwrap() = rule;
    }

    /// A fact as the rule sees it.
    fn seen(fact: &Fact<RecallFact>) -> Cow<'_, Fact<RecallFact>> {
        let mut seen = Cow::Borrowed(fact);
        if Self::rule() == Rule::Merge
            && fact.data.as_ref().is_some_and(|data| data.agency == "USDA")
            && let Some(data) = &mut seen.to_mut().data
        {
            data.brand.push_str(" (USDA)");
        }
        seen
    }
}

impl<const TEST: usize> Service for Ruled<TEST> {
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

    fn read(topic: &Topic, value: &[u8]) -> Result<Fact<RecallFact>, schemas::avro::Error> {
        Recalls::read(topic, value)
    }

    fn reads(fact: &Fact<RecallFact>) -> Vec<(&'static Table, Key)> {
        Recalls::reads(&Self::seen(fact))
    }

    fn decide(rows: &mut Rows, fact: &Fact<RecallFact>) -> Result<Vec<Draft<Recall, Note>>, Undecided> {
        let mut drafts = Recalls::decide(rows, &Self::seen(fact))?;
        for draft in drafts.iter_mut().filter(|_| Self::rule() == Rule::Remedy) {
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
    let decider: Decider<Ruled<0>> =
        Decider::open(Arc::clone(&parts.log), Arc::clone(&parts.engine), engine.view().await, parts.clock).await.unwrap();
    let live = tokio::sync::Mutex::new(decider);
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
    assert_eq!(rebuild::redecide::<Ruled<0>>(parts, &live, &quiet()).await.unwrap(), 0, "the same rule decides the same");
    let digest_now = async || rebuild::digest::<Ruled<0>>(&*engine.view().await, false, None).await.unwrap();
    let (feed, digest) = (engine.feed_bytes(200).await, digest_now().await);

    Ruled::<0>::set(Rule::Remedy);
    let shown = engine.feed().await.len();
    let appended = rebuild::redecide::<Ruled<0>>(parts, &live, &quiet()).await.unwrap();
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

    assert_eq!(rebuild::redecide::<Ruled<0>>(parts, &live, &quiet()).await.unwrap(), 0, "once");
    played.sim.advance(30);
    read().await;
    read().await;
    assert_shown_once(&engine.feed().await);
    assert_eq!(rebuild::redecide::<Ruled<0>>(parts, &live, &quiet()).await.unwrap(), 0, "and what came since is decided so, too");
    let records = engine.records().await;
    assert!(records.values().filter(|row| row.record.agency == "CPSC").all(|row| row.record.remedy == "As the other rule says"));

    Ruled::<0>::set(Rule::Own);
    assert!(rebuild::redecide::<Ruled<0>>(parts, &live, &quiet()).await.unwrap() >= cpsc as u64, "and back");
    assert_shown_once(&engine.feed().await);
    stop.send_replace(true);
    engine.close().await;
}

/// An engine whose recalls are decided by a test's rule.
struct Deciding {
    engine: Engine,
    live: tokio::sync::Mutex<Decider<Ruled<1>>>,
    stop: watch::Sender<bool>,
}

impl Deciding {
    async fn open(dir: &Path) -> Self {
        let mut engine = Engine::open_still(dir, fixed_clock()).await;
        let stop = undecided(&mut engine).await;
        let parts = &engine.parts;
        let view = engine.view().await;
        let live = Decider::open(Arc::clone(&parts.log), Arc::clone(&parts.engine), view, parts.clock).await.unwrap();
        Self { engine, live: tokio::sync::Mutex::new(live), stop }
    }

    async fn read(&self, played: &Played) {
        for name in crate::engine::upstream_names() {
            for result in self.engine.run(name, &played.settings()).await {
                result.unwrap();
            }
        }
        self.live.lock().await.catch_up().await.unwrap();
    }

    async fn redecide(&self) -> u64 {
        rebuild::redecide(&self.engine.parts, &self.live, &quiet()).await.unwrap()
    }

    /// The records that readers see.
    async fn listed(&self) -> BTreeMap<String, Value> {
        let rows = self.engine.records().await;
        rows.into_iter()
            .filter(|(_, row)| row.record.is_listed())
            .map(|(id, row)| (id, serde_json::to_value(row.record).unwrap()))
            .collect()
    }

    /// The records as a fold that begins anew over the same facts has them, by the rule as it is.
    async fn listed_afresh(&self) -> BTreeMap<String, Value> {
        let dir = tempfile::tempdir().unwrap();
        let fresh = Self::open(dir.path()).await;
        for partition in 0..RECALLS.partitions {
            copy(&*fresh.engine.log, &RECALLS, partition, &whole(&*self.engine.log, &RECALLS, partition).await).await;
            let end = fresh.engine.log.end(&RECALLS, partition).await.unwrap();
            view_store::engine::wait_past(&*fresh.engine.parts.engine, &RECALLS, partition, end).await.unwrap();
        }
        fresh.live.lock().await.catch_up().await.unwrap();
        let listed = fresh.listed().await;
        fresh.close().await;
        listed
    }

    async fn close(self) {
        self.stop.send_replace(true);
        self.engine.close().await;
    }
}

/// A reader by cursor: what it has read, and the records that it holds by that.
#[derive(Default)]
struct Follower {
    read: usize,
    held: BTreeMap<String, Value>,
}

impl Follower {
    /// Goes on from where it is.
    fn follow(&mut self, feed: &[Value]) {
        for change in &feed[self.read..] {
            let record = &change["record"];
            let id = record["id"].as_str().unwrap().to_owned();
            if record["withdrawn"] == true || record["mergedInto"] != "" {
                self.held.remove(&id);
            } else {
                self.held.insert(id, record.clone());
            }
        }
        self.read = feed.len();
    }
}

/// Proves that deciding again after a changed rule of merging makes two recalls of one and one of two again: readers by cursor go on, are
/// told each difference once, and hold what a fold that begins anew holds; also while the upstreams go on.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_changed_merge_takes_recalls_apart_and_together() {
    let dir = tempfile::tempdir().unwrap();
    let played = Played::start(33, 1_500, fixed_clock()).await;
    let story = Deciding::open(dir.path()).await;
    story.read(&played).await;
    let mut reader = Follower::default();
    let shared = |records: &BTreeMap<String, Value>| -> Vec<String> {
        let many = records.iter().filter(|(_, record)| record["agencies"].as_array().unwrap().len() > 1);
        many.map(|(id, _)| id.clone()).collect()
    };
    let begun = story.listed().await;
    let one = shared(&begun);
    assert!(!one.is_empty(), "some recalls of two agencies are one");

    for (rule, is_apart) in [(Rule::Merge, true), (Rule::Own, false), (Rule::Merge, true)] {
        let told = story.engine.feed_bytes(200).await;
        Ruled::<1>::set(rule);
        let upto = story.engine.feed().await.len();
        assert!(story.redecide().await > 0);
        assert!(story.engine.feed_bytes(200).await.starts_with(&told), "what was told stays as it was");
        let feed = story.engine.feed().await;
        assert_shown_once(&feed);
        let mut ids: Vec<&str> = feed[upto..].iter().map(|change| change["record"]["id"].as_str().unwrap()).collect();
        let all = ids.len();
        ids.sort_unstable();
        ids.dedup();
        assert_eq!(ids.len(), all, "each difference is told once");
        let listed = story.listed().await;
        assert_eq!(shared(&listed).is_empty(), is_apart);
        if is_apart {
            assert!(listed.len() >= begun.len() + one.len(), "one becomes two: {} of {}", listed.len(), begun.len());
        }
        assert_eq!(listed, story.listed_afresh().await);
        reader.follow(&feed);
        assert_eq!(reader.held, listed, "a reader by cursor arrives at the same");
        assert_eq!(story.redecide().await, 0, "once");

        // And the upstreams go on.
        played.sim.advance(40);
        story.read(&played).await;
        story.read(&played).await;
        let feed = story.engine.feed().await;
        assert_shown_once(&feed);
        reader.follow(&feed);
        let listed = story.listed().await;
        assert_eq!(reader.held, listed);
        assert_eq!(listed, story.listed_afresh().await, "what comes later is decided by the same rule");
    }
    story.close().await;
}
