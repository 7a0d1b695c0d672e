//! Unchanged data appends nothing: outages, new timestamps and renumbered rows have no effect, and a real withdrawal takes two runs.

use std::collections::BTreeSet;
use std::time::Instant;

use ingest::Outcome;
use schemas::event::FactKind;
use schemas::topics::RECALLS;
use serde_json::Value;
use simulator::Kind;

use crate::concurrent_processes::run_heads_only;
use crate::engine::{
    Engine, RECALL_UPSTREAMS, SimulatedUpstreams, assert_chained, assert_shown_once, current_records, fixed_clock, of_kind, upstream_names,
};

struct Fixture {
    _dir: tempfile::TempDir,
    /// The upstreams that are synced.
    upstreams: Vec<&'static str>,
    simulated: SimulatedUpstreams,
    engine: Engine,
}

/// Panics if there are new facts, and shows some of them.
fn assert_same(before: &[Value], after: &[Value], what: &str) {
    let known: BTreeSet<&str> = before.iter().map(|fact| fact["id"].as_str().unwrap()).collect();
    let new_facts: Vec<&Value> = after.iter().filter(|fact| !known.contains(fact["id"].as_str().unwrap())).collect();
    assert!(new_facts.is_empty(), "{what}: {} new facts, such as {:?}", new_facts.len(), &new_facts[..new_facts.len().min(2)]);
}

/// Returns an engine that has synced the upstreams of recalls once.
async fn sync_once(seed: u64, records: u64) -> Fixture {
    sync_some_once(seed, records, RECALL_UPSTREAMS.to_vec()).await
}

/// Returns an engine that has synced some upstreams once.
async fn sync_some_once(seed: u64, records: u64, upstreams: Vec<&'static str>) -> Fixture {
    let dir = tempfile::tempdir().unwrap();
    let simulated = SimulatedUpstreams::start(seed, records, fixed_clock()).await;
    let engine = Engine::open_with(dir.path(), fixed_clock(), &["recalls"]).await;
    engine.run_some(&upstreams, &simulated.settings()).await;
    Fixture { _dir: dir, upstreams, simulated, engine }
}

impl Fixture {
    /// Syncs the upstreams again; all must succeed.
    async fn sync(&self) -> Vec<Outcome> {
        self.engine.run_some(&self.upstreams, &self.simulated.settings()).await
    }

    /// Asserts that the facts are the current records of the upstreams.
    async fn assert_current(&self) {
        let facts = self.engine.facts().await;
        assert_chained(&facts);
        let current_keys: BTreeSet<String> = current_records(&facts).into_keys().collect();
        let wanted: BTreeSet<String> = self.simulated.sim.current(None).into_iter().map(|entry| entry.key).collect();
        assert_eq!(current_keys, wanted);
    }

    /// Syncs again and asserts that no fact and no change is appended.
    async fn assert_nothing_comes(&self, what: &str) {
        let (facts, feed) = (self.engine.facts().await, self.engine.feed().await);
        let outcomes = self.sync().await;
        assert_same(&facts, &self.engine.facts().await, what);
        assert_eq!(self.engine.feed().await, feed, "{what}");
        assert!(outcomes.iter().all(|outcome| outcome.run.appended == 0), "{what}: {outcomes:?}");
    }

    /// Returns the events of the runs of recalls, in log order.
    async fn events_of_runs(&self) -> Vec<Value> {
        let mut events = self.engine.export(RECALLS.name, true).await;
        events.retain(|event| event["key"].as_str().is_some_and(|key| key.starts_with("@run/")));
        events
    }

    /// Syncs again and ignores failures; returns the errors.
    async fn run_and_collect_errors(&self) -> Vec<String> {
        let mut failed = Vec::new();
        for name in &self.upstreams {
            let results = self.engine.run(name, &self.simulated.settings()).await;
            failed.extend(results.into_iter().filter_map(|result| result.err().map(|error| ingest::reason(&error))));
        }
        self.engine.wait_projected().await;
        failed
    }
}

/// Proves that a second sync of unchanged upstreams appends no record fact, although the rows of the flat files are renumbered, and of each run little more
/// than its beginning and its end, however many pages it reads.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn second_sync_appends_nothing() {
    let mut fixture = sync_some_once(1, 400, upstream_names()).await;
    fixture.assert_current().await;
    assert_shown_once(&fixture.engine.feed().await);
    let flat = |sim: &simulator::Simulator| sim.answer("/odi/ffdd/rcl/FLAT_RCL_POST_2010.zip", "").unwrap().body;
    assert_ne!(flat(&fixture.simulated.sim), flat(&fixture.simulated.sim), "rows must be renumbered");
    let started = Instant::now();
    let events_before = fixture.events_of_runs().await;
    fixture.assert_nothing_comes("unchanged").await;
    let mut events = fixture.events_of_runs().await;
    events.retain(|event| events_before.iter().all(|before| before["id"] != event["id"]));
    let (marks, ends) = (of_kind(&events, FactKind::RunMarked), of_kind(&events, FactKind::RunFinished));
    let pages: i64 = ends.iter().map(|event| event["run"]["pages"].as_i64().unwrap()).sum();
    assert!(pages > ends.len() as i64, "{pages} pages in {} runs", ends.len());
    // On a slow machine a run takes longer than the interval of such checkpoints.
    let marks_max = ends.len() as u64 * (started.elapsed().as_secs() / 60);
    assert!(marks.len() as u64 <= marks_max, "{} checkpoints of {} runs", marks.len(), ends.len());
    for fault in ["duplicated_page", "shifted_page"] {
        fixture.simulated.faults(&[(fault, 1.0)], "");
        fixture.assert_nothing_comes(fault).await;
    }
    fixture.upstreams = vec!["fsis"];
    fixture.simulated.faults(&[("fsis_flip", 1.0)], "");
    fixture.assert_nothing_comes("fsis_flip").await;
    fixture.engine.close().await;
}

/// Proves that new last-modified dates of 5,000 records append no record fact, although all of them are read again.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn new_timestamps_append_nothing() {
    let dir = tempfile::tempdir().unwrap();
    // Two of the upstreams have last-modified dates. With this total, they have 5,000 records.
    let simulated = SimulatedUpstreams::start(2, 21_000, fixed_clock()).await;
    let engine = Engine::idle_with(dir.path(), fixed_clock(), &["recalls"]).await;
    let stop = run_heads_only(&engine).await;
    let run_both = async || {
        let mut runs = Vec::new();
        for name in ["cpsc", "fsis"] {
            runs.extend(engine.run(name, &simulated.settings()).await.into_iter().map(|result| result.unwrap().run));
        }
        (runs.iter().map(|run| run.seen).sum::<i64>(), runs.iter().map(|run| run.appended).sum::<i64>())
    };
    let ends = async || {
        let mut ends = 0;
        for partition in 0..RECALLS.partitions {
            ends += engine.log.end(&RECALLS, partition).await.unwrap().0;
        }
        ends
    };
    let (seen, appended) = run_both().await;
    assert!(seen >= 5_000 && appended == seen, "{appended} of {seen}");
    let before = ends().await;
    assert_eq!(run_both().await.1, 0);
    let events_of_runs = ends().await - before;

    simulated.faults(&[("touch", 1.0)], "");
    let (touched, appended) = run_both().await;
    assert!(touched >= 5_000, "not all records were read again: {touched}");
    assert_eq!(appended, 0);
    assert_eq!(ends().await - before, 2 * events_of_runs, "only the beginning and end of runs may be appended");
    stop.send_replace(true);
    engine.close().await;
}

/// Proves that an outage page, and answers that lack a large share of the records, withdraw nothing, however often they occur.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn outage_withdraws_nothing() {
    let fixture = sync_once(3, 800).await;
    let before = fixture.engine.facts().await.len();
    for faults in [&[("outage", 1.0)][..], &[("vanished", 1.0), ("vanished_share", 0.5)]] {
        fixture.simulated.faults(faults, "");
        for _ in 0..3 {
            fixture.run_and_collect_errors().await;
        }
        let facts = fixture.engine.facts().await;
        assert!(of_kind(&facts, FactKind::Withdrawn).is_empty(), "{faults:?}");
        assert_eq!(facts.len(), before, "{faults:?}");
    }
    fixture.simulated.faults(&[], "");
    fixture.assert_nothing_comes("healed").await;
    fixture.assert_current().await;
    fixture.engine.close().await;
}

/// Proves that a record that is missing from a snapshot upstream is withdrawn by the second complete run without it, not by the first.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn withdrawal_takes_two_runs() {
    let fixture = sync_once(4, 800).await;
    let current_keys = current_records(&fixture.engine.facts().await).into_keys().collect::<BTreeSet<_>>();
    let gone: Vec<String> = ["fsis", "nhtsa.flat"]
        .into_iter()
        .map(|stream| {
            fixture
                .simulated
                .advance_until(|entry| entry.kind == Kind::Withdrawn && entry.stream == stream && current_keys.contains(&entry.key))
                .key
        })
        .collect();
    let expected: BTreeSet<String> =
        fixture.simulated.sim.expected_changes().into_iter().filter(|entry| entry.kind == Kind::Withdrawn).map(|entry| entry.key).collect();
    let withdrawn = |facts: &[Value]| -> BTreeSet<String> {
        of_kind(facts, FactKind::Withdrawn).into_iter().map(|fact| fact["key"].as_str().unwrap().to_owned()).collect()
    };
    fixture.sync().await;
    assert_eq!(withdrawn(&fixture.engine.facts().await), BTreeSet::new(), "one run is not enough");
    fixture.sync().await;
    let facts = fixture.engine.facts().await;
    assert!(gone.iter().all(|key| withdrawn(&facts).contains(key)), "{gone:?} of {expected:?}, but {:?}", withdrawn(&facts));
    // A record that came and went between two runs has no facts.
    assert!(withdrawn(&facts).is_subset(&expected));
    fixture.assert_current().await;
    let meat = gone[0].split('/').nth(1).unwrap();
    let row = &fixture.engine.records().await[&format!("USDA:{meat}")];
    assert!(row.record.withdrawn || !row.record.merged_into.is_empty(), "{row:?}");
    fixture.assert_nothing_comes("afterwards").await;
    fixture.engine.close().await;
}

/// Proves that refusals, bot walls, cut connections and slow bodies during the first sync lose nothing.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn first_sync_survives_faults() {
    let dir = tempfile::tempdir().unwrap();
    let simulated = SimulatedUpstreams::start(5, 400, fixed_clock()).await;
    let engine = Engine::open_with(dir.path(), fixed_clock(), &["recalls"]).await;
    let bursts: [(&str, &[(&str, f64)]); 4] = [
        ("cpsc", &[("429.count", 1.0), ("html.count", 2.0)]),
        ("fsis", &[("truncated.count", 1.0)]),
        ("nhtsa", &[("truncated_length.count", 1.0), ("503.count", 1.0)]),
        ("openfda", &[("429_retry_after.count", 1.0), ("500.count", 2.0), ("slow.count", 3.0), ("slow_ms", 300.0)]),
    ];
    for (name, burst) in bursts {
        simulated.faults(burst, name);
        for result in engine.run(name, &simulated.settings()).await {
            let outcome = result.unwrap();
            assert!(outcome.run.appended > 0, "{outcome:?}");
        }
    }
    engine.wait_projected().await;
    let fixture = Fixture { _dir: dir, upstreams: RECALL_UPSTREAMS.to_vec(), simulated, engine };
    fixture.assert_current().await;
    assert!(fixture.engine.export("rejected", true).await.is_empty());
    fixture.engine.close().await;
}

/// Proves that a field that vanished or changed its type stops that stream with an error that names the field, while other streams
/// continue, and that nothing is lost after the field is restored.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn schema_drift_stops_one_stream() {
    let fixture = sync_once(6, 800).await;
    let before = fixture.engine.facts().await;
    let cases = [
        ("schema_missing", "cpsc", "RecallDate"),
        ("schema_retyped", "fsis", "field_recall_date"),
        ("schema_missing", "nhtsa.socrata", "report_received_date"),
    ];
    for (fault, stream, field) in cases {
        fixture.simulated.faults(&[(fault, 1.0)], stream);
        let failed = fixture.run_and_collect_errors().await;
        assert_eq!(failed.len(), 1, "{fault} at {stream}: {failed:?}");
        assert!(failed[0].contains(stream) && failed[0].contains(field), "{}", failed[0]);
        let runs = fixture.engine.export("recalls", true).await;
        let key = format!("@run/{stream}");
        let last = runs.iter().rfind(|fact| fact["key"] == key.as_str() && fact["kind"] == "run_failed").unwrap();
        assert!(last["run"]["reason"].as_str().unwrap().contains(field), "{last}");
    }
    assert_same(&before, &fixture.engine.facts().await, "drift");
    fixture.simulated.faults(&[], "");
    fixture.assert_nothing_comes("healed").await;
    fixture.engine.close().await;
}

/// Proves that a recall number that openFDA adds later supersedes the record without a number: the recall is shown once.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn late_recall_number_supersedes_the_record() {
    let fixture = sync_once(7, 800).await;
    let current_keys = current_records(&fixture.engine.facts().await).into_keys().collect::<BTreeSet<_>>();
    let old = fixture.simulated.advance_until(|entry| entry.kind == Kind::Superseded && current_keys.contains(&entry.key));
    let entries = fixture.simulated.sim.expected_changes_after(old.n);
    let heir = entries.iter().find(|entry| entry.kind == Kind::New).unwrap();
    // A withdrawal takes two runs.
    fixture.sync().await;
    fixture.sync().await;
    let facts = fixture.engine.facts().await;
    let superseded = of_kind(&facts, FactKind::Superseded);
    let fact = superseded.iter().find(|fact| fact["key"] == old.key).unwrap();
    assert_eq!(fact["supersededBy"], heir.key);
    let records = fixture.engine.records().await;
    let listed: Vec<&String> = records
        .values()
        .filter(|row| {
            row.record.is_listed() && row.record.title == *heir.title.as_ref().unwrap() && row.record.date == *heir.date.as_ref().unwrap()
        })
        .map(|row| &row.record.id)
        .collect();
    assert_eq!(listed.len(), 1, "{listed:?}");
    let before = &records[&format!("FDA:{}", old.key.rsplit('/').next().unwrap())];
    assert!(!before.record.is_listed() && !before.record.merged_into.is_empty(), "{before:?}");
    fixture.assert_nothing_comes("afterwards").await;
    fixture.engine.close().await;
}
