//! Rebuilds while readers read: replaying changes no byte, and deciding again under another rule appends the differences once.

use std::borrow::Cow;
use std::collections::BTreeMap;
use std::path::Path;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::sync::{Arc, Mutex};

use bytes::Bytes;
use fold::rows::Rows;
use fold::service::{Decided, Service};
use projector::decider::Decider;
use projector::rebuild::{self, Progress};
use recalls::rules::Recalls;
use schemas::event::Fact;
use schemas::facts::recalls::RecallFact;
use schemas::position::Seq;
use schemas::tables::{Key, Table};
use schemas::topics::RECALLS;
use schemas::views::recalls::FEED;
use serde_json::Value;
use tokio::sync::watch;

use crate::child::within;
use crate::concurrent_processes::{copy, read_partition, run_heads_only};
use crate::engine::{Engine, RECALL_UPSTREAMS, SimulatedUpstreams, assert_shown_once, fixed_clock};
use crate::other_rule::{OtherRule, Under};

fn no_progress() -> Progress {
    Arc::new(|_, _| ())
}

/// Reads one page; if its generation is removed during the read, reads it again from the live one.
async fn page(engine: &Engine, after: Seq, upto: Seq) -> Vec<Bytes> {
    loop {
        let view = engine.view().await;
        match view_store::feed::read_page(&*view, &FEED, after, upto, 50).await {
            Err(view_store::Error::Gone { .. }) => {}
            result => return result.unwrap().parts,
        }
    }
}

/// Proves that a replay during reads and during an ingest changes no digest, no cursor and no byte of a page.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn replay_changes_no_bytes() {
    let dir = tempfile::tempdir().unwrap();
    let simulated = SimulatedUpstreams::start(31, 1_200, fixed_clock()).await;
    let engine = Engine::open_with(dir.path(), fixed_clock(), &["recalls"]).await;
    engine.run_some(RECALL_UPSTREAMS, &simulated.settings()).await;
    simulated.sim.advance(60);
    engine.run_some(RECALL_UPSTREAMS, &simulated.settings()).await;
    engine.run_some(RECALL_UPSTREAMS, &simulated.settings()).await;
    let (plain, history, feed) = (engine.digest(false).await, engine.digest(true).await, engine.feed_bytes(200).await);
    let upto = engine.view().await.checkpoint().await.unwrap().seq;
    let mut pages = Vec::new();
    for after in (0..upto.0).step_by(97).map(Seq) {
        pages.push((after, page(&engine, after, upto).await.concat()));
    }

    let (done, reads) = (AtomicBool::new(false), AtomicUsize::new(0));
    let reading = async {
        while !done.load(Ordering::Relaxed) {
            for (after, bytes) in &pages {
                assert_eq!(&page(&engine, *after, upto).await.concat(), bytes, "the page after {after}");
                reads.fetch_add(1, Ordering::Relaxed);
                // Reads of cached rows do not yield, and all readers share a thread.
                tokio::task::yield_now().await;
            }
        }
    };
    let recalls = engine.projector.service("recalls").unwrap();
    let replaying = async {
        for _ in 0..2 {
            assert!(recalls.replay(&no_progress()).await.unwrap() > 0);
            assert_eq!(engine.digest(false).await, plain);
            assert_eq!(engine.digest(true).await, history);
            assert_eq!(engine.feed_bytes(200).await, feed);
        }
        // The same during an ingest.
        for _ in 0..3 {
            simulated.sim.advance(10);
            let (play, progress) = (simulated.settings(), no_progress());
            let (_, replayed) = tokio::join!(engine.run_some(RECALL_UPSTREAMS, &play), recalls.replay(&progress));
            replayed.unwrap();
        }
        done.store(true, Ordering::Relaxed);
    };
    tokio::join!(reading, replaying);
    assert!(reads.load(Ordering::Relaxed) > pages.len(), "there were too few reads during the replay");
    assert!(engine.feed_bytes(200).await.starts_with(&feed), "the feed must keep its beginning");
    assert_shown_once(&engine.feed().await);
    let (before, rows) = (engine.digest(true).await, engine.feed_bytes(200).await);
    recalls.replay(&no_progress()).await.unwrap();
    assert_eq!((engine.digest(true).await, engine.feed_bytes(200).await), (before, rows));
    engine.close().await;
}

/// The current rule of each test: the tests run concurrently.
static RULES: [Mutex<Rule>; 2] = [Mutex::new(Rule::Own), Mutex::new(Rule::Own)];

/// A rule that a test can give the recalls service.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Rule {
    /// The real rule.
    Own,
    /// CPSC's records get another text for the remedy.
    Remedy,
    /// USDA's brands differ from those of other agencies, so that no USDA recall is merged with another agency's.
    Merge,
}

/// The rule of a test.
struct RuleOfTest<const TEST: usize>;

/// The recalls service under a test's rule.
type RecallsUnderRule<const TEST: usize> = Under<Recalls, RuleOfTest<TEST>>;

impl<const TEST: usize> RuleOfTest<TEST> {
    fn rule() -> Rule {
        *RULES[TEST].lock().unwrap()
    }

    fn set(rule: Rule) {
        *RULES[TEST].lock().unwrap() = rule;
    }

    /// Returns a fact as changed by the rule.
    fn apply_rule(fact: &Fact<RecallFact>) -> Cow<'_, Fact<RecallFact>> {
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

impl<const TEST: usize> OtherRule<Recalls> for RuleOfTest<TEST> {
    fn reads(fact: &Fact<RecallFact>) -> Vec<(&'static Table, Key)> {
        Recalls::reads(&Self::apply_rule(fact))
    }

    fn decide(rows: &mut Rows, fact: &Fact<RecallFact>) -> Decided<Recalls> {
        let mut drafts = Recalls::decide(rows, &Self::apply_rule(fact))?;
        if Self::rule() == Rule::Remedy {
            for recall in drafts.iter_mut().filter_map(|draft| draft.after.as_mut()).filter(|recall| recall.agency == "CPSC") {
                recall.remedy = "As the other rule says".to_owned();
            }
        }
        Ok(drafts)
    }
}

/// Proves that deciding again under a changed rule appends the differences once, as new changes after the old ones; cursors stay valid, and
/// deciding a third time appends nothing.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn changed_rule_appends_its_differences_once() {
    let dir = tempfile::tempdir().unwrap();
    let simulated = SimulatedUpstreams::start(32, 900, fixed_clock()).await;
    let engine = Engine::open_without_projector(dir.path(), fixed_clock()).await;
    let stop = run_heads_only(&engine).await;
    let parts = &engine.parts;
    let decider: Decider<RecallsUnderRule<0>> =
        Decider::open(Arc::clone(&parts.log), Arc::clone(&parts.engine), engine.view().await, parts.clock).await.unwrap();
    let live = tokio::sync::Mutex::new(decider);
    let read = async || {
        for name in RECALL_UPSTREAMS {
            for result in engine.run(name, &simulated.settings()).await {
                result.unwrap();
            }
        }
        live.lock().await.catch_up().await.unwrap();
    };
    read().await;
    simulated.sim.advance(30);
    read().await;
    assert_eq!(
        rebuild::redecide::<RecallsUnderRule<0>>(parts, &live, &no_progress()).await.unwrap(),
        0,
        "the same rule must append nothing"
    );
    let digest_now = async || rebuild::digest::<RecallsUnderRule<0>>(&*engine.view().await, false, None).await.unwrap();
    let (feed, digest) = (engine.feed_bytes(200).await, digest_now().await);

    RuleOfTest::<0>::set(Rule::Remedy);
    let shown = engine.feed().await.len();
    let appended = rebuild::redecide::<RecallsUnderRule<0>>(parts, &live, &no_progress()).await.unwrap();
    let cpsc = engine.records().await.values().filter(|row| row.record.agency == "CPSC").count();
    assert_eq!(appended, cpsc as u64);
    assert!(engine.feed_bytes(200).await.starts_with(&feed), "earlier changes must not change");
    let whole = engine.feed().await;
    assert_shown_once(&whole);
    assert_eq!(whole.len() - shown, cpsc);
    for change in &whole[shown..] {
        assert_eq!((change["event"].as_str(), change["record"]["remedy"].as_str()), (Some("modified"), Some("As the other rule says")));
    }
    assert_ne!(digest_now().await, digest);

    assert_eq!(rebuild::redecide::<RecallsUnderRule<0>>(parts, &live, &no_progress()).await.unwrap(), 0, "once");
    simulated.sim.advance(30);
    read().await;
    read().await;
    assert_shown_once(&engine.feed().await);
    assert_eq!(
        rebuild::redecide::<RecallsUnderRule<0>>(parts, &live, &no_progress()).await.unwrap(),
        0,
        "later facts must be decided under the new rule"
    );
    let records = engine.records().await;
    assert!(records.values().filter(|row| row.record.agency == "CPSC").all(|row| row.record.remedy == "As the other rule says"));

    RuleOfTest::<0>::set(Rule::Own);
    assert!(
        rebuild::redecide::<RecallsUnderRule<0>>(parts, &live, &no_progress()).await.unwrap() >= cpsc as u64,
        "restoring the rule must append the differences again"
    );
    assert_shown_once(&engine.feed().await);
    stop.send_replace(true);
    engine.close().await;
}

/// An engine that decides recalls by a test's rule.
struct TestEngine {
    engine: Engine,
    live: tokio::sync::Mutex<Decider<RecallsUnderRule<1>>>,
    stop: watch::Sender<bool>,
}

impl TestEngine {
    async fn open(dir: &Path) -> Self {
        let engine = Engine::open_without_projector(dir, fixed_clock()).await;
        let stop = run_heads_only(&engine).await;
        let parts = &engine.parts;
        let view = engine.view().await;
        let live = Decider::open(Arc::clone(&parts.log), Arc::clone(&parts.engine), view, parts.clock).await.unwrap();
        Self { engine, live: tokio::sync::Mutex::new(live), stop }
    }

    async fn read(&self, simulated: &SimulatedUpstreams) {
        for name in RECALL_UPSTREAMS {
            for result in self.engine.run(name, &simulated.settings()).await {
                result.unwrap();
            }
        }
        self.live.lock().await.catch_up().await.unwrap();
    }

    async fn redecide(&self) -> u64 {
        rebuild::redecide(&self.engine.parts, &self.live, &no_progress()).await.unwrap()
    }

    /// Returns the records that readers see.
    async fn listed(&self) -> BTreeMap<String, Value> {
        let rows = self.engine.records().await;
        rows.into_iter()
            .filter(|(_, row)| row.record.is_listed())
            .map(|(id, row)| (id, serde_json::to_value(row.record).unwrap()))
            .collect()
    }

    /// Returns the records that a new engine gets from the same facts by the current rule.
    async fn listed_by_new_engine(&self) -> BTreeMap<String, Value> {
        let dir = tempfile::tempdir().unwrap();
        let fresh = Self::open(dir.path()).await;
        for partition in 0..RECALLS.partitions {
            copy(&*fresh.engine.log, &RECALLS, partition, &read_partition(&*self.engine.log, &RECALLS, partition).await).await;
            let end = fresh.engine.log.end(&RECALLS, partition).await.unwrap();
            let indexed = view_store::engine::wait_past(&*fresh.engine.parts.engine, &RECALLS, partition, end);
            within("the indexing of the copied facts", indexed).await.unwrap();
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

/// A reader by cursor, with the changes that it has read and the resulting records.
#[derive(Default)]
struct Follower {
    read: usize,
    held: BTreeMap<String, Value>,
}

impl Follower {
    /// Applies the changes after the last one.
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

/// Proves that deciding again under a changed merge rule splits one recall into two and merges two into one again: readers by cursor get
/// each difference once and end with the same records as a new engine, also while the upstreams change.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn changed_merge_rule_splits_and_rejoins_recalls() {
    let dir = tempfile::tempdir().unwrap();
    let simulated = SimulatedUpstreams::start(33, 700, fixed_clock()).await;
    let fixture = TestEngine::open(dir.path()).await;
    fixture.read(&simulated).await;
    let mut reader = Follower::default();
    let shared = |records: &BTreeMap<String, Value>| -> Vec<String> {
        let many = records.iter().filter(|(_, record)| record["agencies"].as_array().unwrap().len() > 1);
        many.map(|(id, _)| id.clone()).collect()
    };
    let started = fixture.listed().await;
    let one = shared(&started);
    assert!(!one.is_empty(), "no recalls of two agencies were merged");

    for (rule, is_apart) in [(Rule::Merge, true), (Rule::Own, false), (Rule::Merge, true)] {
        let earlier = fixture.engine.feed_bytes(200).await;
        RuleOfTest::<1>::set(rule);
        let upto = fixture.engine.feed().await.len();
        assert!(fixture.redecide().await > 0);
        assert!(fixture.engine.feed_bytes(200).await.starts_with(&earlier), "earlier changes must not change");
        let feed = fixture.engine.feed().await;
        assert_shown_once(&feed);
        let mut ids: Vec<&str> = feed[upto..].iter().map(|change| change["record"]["id"].as_str().unwrap()).collect();
        let all = ids.len();
        ids.sort_unstable();
        ids.dedup();
        assert_eq!(ids.len(), all, "a difference was emitted twice");
        let listed = fixture.listed().await;
        assert_eq!(shared(&listed).is_empty(), is_apart);
        if is_apart {
            assert!(listed.len() >= started.len() + one.len(), "not every merged recall was split: {} of {}", listed.len(), started.len());
        }
        assert_eq!(listed, fixture.listed_by_new_engine().await);
        reader.follow(&feed);
        assert_eq!(reader.held, listed, "a reader by cursor has other records");
        assert_eq!(fixture.redecide().await, 0, "once");

        // With further changes of the upstreams.
        simulated.sim.advance(40);
        fixture.read(&simulated).await;
        fixture.read(&simulated).await;
        let feed = fixture.engine.feed().await;
        assert_shown_once(&feed);
        reader.follow(&feed);
        let listed = fixture.listed().await;
        assert_eq!(reader.held, listed);
        assert_eq!(listed, fixture.listed_by_new_engine().await, "later facts must be decided by the same rule");
    }
    fixture.close().await;
}
