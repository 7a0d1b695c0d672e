//! What does not change is not appended: outages, touches and renumbered rows move nothing, and a real withdrawal takes two runs.

use std::collections::BTreeSet;

use schemas::event::FactKind;
use schemas::topics::RECALLS;
use serde_json::Value;
use simulator::Kind;

use crate::engine::{Engine, Played, assert_chained, assert_shown_once, fixed_clock, of_kind, standing};
use crate::rivals::undecided;

struct Story {
    _dir: tempfile::TempDir,
    played: Played,
    engine: Engine,
}

/// Panics, showing some of what came, unless no fact did.
fn assert_same(before: &[Value], after: &[Value], what: &str) {
    let known: BTreeSet<&str> = before.iter().map(|fact| fact["id"].as_str().unwrap()).collect();
    let came: Vec<&Value> = after.iter().filter(|fact| !known.contains(fact["id"].as_str().unwrap())).collect();
    assert!(came.is_empty(), "{what}: {} facts came, as {:?}", came.len(), &came[..came.len().min(2)]);
}

/// An engine that has read everything once.
async fn read_once(seed: u64, records: u64) -> Story {
    let dir = tempfile::tempdir().unwrap();
    let played = Played::start(seed, records, fixed_clock()).await;
    let engine = Engine::open(dir.path(), fixed_clock()).await;
    engine.run_all(&played.settings()).await;
    Story { _dir: dir, played, engine }
}

impl Story {
    /// Asserts that the facts are what the upstreams hold now.
    async fn assert_current(&self) {
        let facts = self.engine.facts().await;
        assert_chained(&facts);
        let held: BTreeSet<String> = standing(&facts).into_keys().collect();
        let wanted: BTreeSet<String> = self.played.sim.current(None).into_iter().map(|entry| entry.key).collect();
        assert_eq!(held, wanted);
    }

    /// Runs everything again and asserts that no fact and no change came of it.
    async fn assert_nothing_comes(&self, what: &str) {
        let (facts, feed) = (self.engine.facts().await, self.engine.feed().await);
        let outcomes = self.engine.run_all(&self.played.settings()).await;
        assert_same(&facts, &self.engine.facts().await, what);
        assert_eq!(self.engine.feed().await, feed, "{what}");
        assert!(outcomes.iter().all(|outcome| outcome.run.appended == 0), "{what}: {outcomes:?}");
    }

    /// Runs everything, whatever becomes of it.
    async fn run_anyway(&self) -> Vec<String> {
        let mut failed = Vec::new();
        for name in crate::engine::upstream_names() {
            let results = self.engine.run(name, &self.played.settings()).await;
            failed.extend(results.into_iter().filter_map(|result| result.err().map(|error| ingest::reason(&error))));
        }
        self.engine.projected().await;
        failed
    }
}

/// Proves that a second run over unchanged upstreams appends no record fact, though the rows of the flat files are numbered anew.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_second_run_appends_nothing() {
    let story = read_once(1, 800).await;
    story.assert_current().await;
    assert_shown_once(&story.engine.feed().await);
    let flat = |sim: &simulator::Simulator| sim.answer("/odi/ffdd/rcl/FLAT_RCL_POST_2010.zip", "").unwrap().body;
    assert_ne!(flat(&story.played.sim), flat(&story.played.sim), "rows are numbered anew");
    story.assert_nothing_comes("unchanged").await;
    for fault in ["fsis_flip", "duplicated_page", "shifted_page"] {
        story.played.faults(&[(fault, 1.0)], "");
        story.assert_nothing_comes(fault).await;
    }
    story.engine.close().await;
}

/// Proves that a mass touch of the last-modified dates of 25,000 records appends no record fact, though all of them are read again.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_mass_touch_appends_nothing() {
    let dir = tempfile::tempdir().unwrap();
    // Two of the upstreams date their records' last change. Of so many records in all, theirs are 25,000.
    let played = Played::start(2, 105_000, fixed_clock()).await;
    let mut engine = Engine::open_still(dir.path(), fixed_clock()).await;
    let stop = undecided(&mut engine).await;
    let run_both = async || {
        let mut runs = Vec::new();
        for name in ["cpsc", "fsis"] {
            runs.extend(engine.run(name, &played.settings()).await.into_iter().map(|result| result.unwrap().run));
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
    assert!(seen >= 25_000 && appended == seen, "{appended} of {seen}");
    let before = ends().await;
    assert_eq!(run_both().await.1, 0);
    let events_of_runs = ends().await - before;

    played.faults(&[("touch", 1.0)], "");
    let (touched, appended) = run_both().await;
    assert!(touched >= 25_000, "all are read again: {touched}");
    assert_eq!(appended, 0);
    assert_eq!(ends().await - before, 2 * events_of_runs, "nothing but the beginning and end of runs");
    stop.send_replace(true);
    engine.close().await;
}

/// Proves that an outage page, and answers that lack a large share of the records, withdraw none, however often they come.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn an_outage_withdraws_nothing() {
    let story = read_once(3, 800).await;
    let before = story.engine.facts().await.len();
    for faults in [&[("outage", 1.0)][..], &[("vanished", 1.0), ("vanished_share", 0.5)]] {
        story.played.faults(faults, "");
        for _ in 0..3 {
            story.run_anyway().await;
        }
        let facts = story.engine.facts().await;
        assert!(of_kind(&facts, FactKind::Withdrawn).is_empty(), "{faults:?}");
        assert_eq!(facts.len(), before, "{faults:?}");
    }
    story.played.faults(&[], "");
    story.assert_nothing_comes("healed").await;
    story.assert_current().await;
    story.engine.close().await;
}

/// Proves that a record withdrawn from a snapshot upstream is withdrawn by the second complete run without it, not by the first.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_withdrawal_takes_two_runs() {
    let story = read_once(4, 800).await;
    let held = standing(&story.engine.facts().await).into_keys().collect::<BTreeSet<_>>();
    let gone: Vec<String> = ["fsis", "nhtsa.flat"]
        .into_iter()
        .map(|stream| {
            story.played.advance_until(|entry| entry.kind == Kind::Withdrawn && entry.stream == stream && held.contains(&entry.key)).key
        })
        .collect();
    let expected: BTreeSet<String> =
        story.played.sim.expected_changes().into_iter().filter(|entry| entry.kind == Kind::Withdrawn).map(|entry| entry.key).collect();
    let withdrawn = |facts: &[Value]| -> BTreeSet<String> {
        of_kind(facts, FactKind::Withdrawn).into_iter().map(|fact| fact["key"].as_str().unwrap().to_owned()).collect()
    };
    story.engine.run_all(&story.played.settings()).await;
    assert_eq!(withdrawn(&story.engine.facts().await), BTreeSet::new(), "one run is not enough");
    story.engine.run_all(&story.played.settings()).await;
    let facts = story.engine.facts().await;
    assert!(gone.iter().all(|key| withdrawn(&facts).contains(key)), "{gone:?} of {expected:?}, but {:?}", withdrawn(&facts));
    // What came and went between two runs was never there.
    assert!(withdrawn(&facts).is_subset(&expected));
    story.assert_current().await;
    let meat = gone[0].split('/').nth(1).unwrap();
    let row = &story.engine.records().await[&format!("USDA:{meat}")];
    assert!(row.record.withdrawn || !row.record.merged_into.is_empty(), "{row:?}");
    story.assert_nothing_comes("afterwards").await;
    story.engine.close().await;
}

/// Proves that a burst of refusals, walls, cuts and slow bodies during the very first run is survived without a loss.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_burst_is_survived() {
    let dir = tempfile::tempdir().unwrap();
    let played = Played::start(5, 400, fixed_clock()).await;
    let engine = Engine::open(dir.path(), fixed_clock()).await;
    let bursts: [(&str, &[(&str, f64)]); 4] = [
        ("cpsc", &[("429.count", 1.0), ("html.count", 2.0)]),
        ("fsis", &[("truncated.count", 1.0)]),
        ("nhtsa", &[("truncated_length.count", 1.0), ("503.count", 1.0)]),
        ("openfda", &[("429_retry_after.count", 1.0), ("500.count", 2.0), ("slow.count", 3.0), ("slow_ms", 300.0)]),
    ];
    for (name, burst) in bursts {
        played.faults(burst, name);
        for result in engine.run(name, &played.settings()).await {
            let outcome = result.unwrap();
            assert!(outcome.run.appended > 0, "{outcome:?}");
        }
    }
    engine.projected().await;
    let story = Story { _dir: dir, played, engine };
    story.assert_current().await;
    assert!(story.engine.export("rejected", true).await.is_empty());
    story.engine.close().await;
}

/// Proves that a field that vanished or changed its type stops that stream with an error naming it, while the others go on, and that
/// nothing was lost once it is back.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn drift_stops_one_upstream() {
    let story = read_once(6, 800).await;
    let before = story.engine.facts().await;
    let cases = [
        ("schema_missing", "cpsc", "RecallDate"),
        ("schema_retyped", "fsis", "field_recall_date"),
        ("schema_missing", "nhtsa.socrata", "report_received_date"),
    ];
    for (fault, stream, field) in cases {
        story.played.faults(&[(fault, 1.0)], stream);
        let failed = story.run_anyway().await;
        assert_eq!(failed.len(), 1, "{fault} at {stream}: {failed:?}");
        assert!(failed[0].contains(stream) && failed[0].contains(field), "{}", failed[0]);
        let runs = story.engine.export("recalls", true).await;
        let key = format!("@run/{stream}");
        let last = runs.iter().rfind(|fact| fact["key"] == key.as_str() && fact["kind"] == "run_failed").unwrap();
        assert!(last["run"]["reason"].as_str().unwrap().contains(field), "{last}");
    }
    assert_same(&before, &story.engine.facts().await, "drift");
    story.played.faults(&[], "");
    story.assert_nothing_comes("healed").await;
    story.engine.close().await;
}

/// Proves that a number that openFDA gives later supersedes the record without one: the recall is shown once.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_number_given_later_supersedes() {
    let story = read_once(7, 800).await;
    let held = standing(&story.engine.facts().await).into_keys().collect::<BTreeSet<_>>();
    let old = story.played.advance_until(|entry| entry.kind == Kind::Superseded && held.contains(&entry.key));
    let entries = story.played.sim.expected_changes_after(old.n);
    let heir = entries.iter().find(|entry| entry.kind == Kind::New).unwrap();
    // Whatever was withdrawn on the way takes two.
    story.engine.run_all(&story.played.settings()).await;
    story.engine.run_all(&story.played.settings()).await;
    let facts = story.engine.facts().await;
    let superseded = of_kind(&facts, FactKind::Superseded);
    let fact = superseded.iter().find(|fact| fact["key"] == old.key).unwrap();
    assert_eq!(fact["supersededBy"], heir.key);
    let records = story.engine.records().await;
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
    story.assert_nothing_comes("afterwards").await;
    story.engine.close().await;
}
