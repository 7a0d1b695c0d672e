//! Compares the simulator's list of expected changes with the facts in the log and the feed that readers get.

use std::collections::{BTreeMap, BTreeSet};

use serde_json::Value;
use simulator::{ExpectedChange, Kind};

use crate::engine::{Engine, RECALL_UPSTREAMS, SimulatedUpstreams, assert_chained, assert_shown_once, fixed_clock};

/// The six fields of which an expected change says whether their change is visible.
const FIELDS: [&str; 6] = ["title", "brand", "hazard", "date", "url", "remedy"];

/// The expected texts of those fields; `None` where no exact text is expected.
type Texts = [Option<String>; 6];

fn texts(entry: &ExpectedChange) -> Texts {
    [&entry.title, &entry.brand, &entry.hazard, &entry.date, &entry.url, &entry.remedy].map(Clone::clone)
}

fn agrees(said: &Texts, record: &Value) -> bool {
    said.iter().zip(FIELDS).all(|(text, field)| text.as_ref().is_none_or(|text| record[field] == text.as_str()))
}

/// Returns the id of an entry's record.
fn identity(entry: &ExpectedChange) -> String {
    let number = if entry.number.is_empty() { entry.key.rsplit('/').next().unwrap() } else { &entry.number };
    format!("{}:{number}", entry.agency)
}

/// The expected changes, merged run by run: what a reader sees who reads only after each run.
pub(crate) struct Expected {
    /// The entries currently at the upstreams, by key.
    standing: BTreeMap<String, ExpectedChange>,
    /// The expected facts of each key: kind and texts.
    facts: BTreeMap<String, Vec<(&'static str, Texts)>>,
    /// By record, the states that its readers must have seen after each run that changed it.
    seen: BTreeMap<String, Vec<Seen>>,
}

/// The state of a record after a run.
#[derive(Clone, Debug, PartialEq)]
struct Seen {
    /// The number of the run, from 0.
    round: usize,
    /// `None` if the record is gone.
    texts: Option<Texts>,
    /// Whether one of the texts changed, including texts without an exact expectation.
    moved: bool,
}

impl Expected {
    /// The expectation for the first complete sync.
    pub(crate) fn at_first(current: Vec<ExpectedChange>) -> Self {
        let mut this = Self { standing: BTreeMap::new(), facts: BTreeMap::new(), seen: BTreeMap::new() };
        this.take(0, current);
        this
    }

    /// Adds the expectation for two complete syncs after these entries.
    pub(crate) fn take(&mut self, round: usize, entries: Vec<ExpectedChange>) {
        let moved: BTreeSet<String> = entries.iter().filter(|entry| entry.visible).map(|entry| entry.key.clone()).collect();
        // If a key changes several times between two runs, a reader sees only the last change.
        let last: BTreeMap<String, ExpectedChange> = entries.into_iter().map(|entry| (entry.key.clone(), entry)).collect();
        let mut touched = BTreeSet::new();
        for (key, entry) in last {
            let stood = self.standing.contains_key(&key);
            let kind = match entry.kind {
                Kind::Withdrawn | Kind::Superseded if !stood => continue,
                Kind::Withdrawn => "withdrawn",
                Kind::Superseded => "superseded",
                _ => "observed",
            };
            touched.insert(identity(&entry));
            self.facts.entry(key.clone()).or_default().push((kind, texts(&entry)));
            if kind == "observed" {
                self.standing.insert(key, entry);
            } else {
                self.standing.remove(&key);
            }
        }
        for id in touched {
            let texts = self.record(&id);
            let leader = self.members(&id).first().map(|entry| entry.key.clone());
            let history = self.seen.entry(id).or_default();
            let before = history.last().map(|seen| seen.texts.clone());
            let moved = before.as_ref() != Some(&texts) || leader.is_some_and(|key| moved.contains(&key));
            history.push(Seen { round, texts, moved });
        }
    }

    /// Returns the current facts of a record, starting with the one whose texts take precedence.
    fn members(&self, id: &str) -> Vec<&ExpectedChange> {
        let mut members: Vec<&ExpectedChange> = self.standing.values().filter(|entry| identity(entry) == id).collect();
        members.sort_by_key(|entry| (entry.lang == "es", entry.stream != "nhtsa.socrata", entry.key.clone()));
        members
    }

    fn record(&self, id: &str) -> Option<Texts> {
        let members = self.members(id);
        let (first, others) = members.split_first()?;
        let mut out = texts(first);
        for other in others {
            for (text, next) in out.iter_mut().zip(texts(other)) {
                if text.as_deref() == Some("") {
                    *text = next;
                }
            }
        }
        Some(out)
    }

    /// Asserts that the facts of each key are the expected ones, in the same order, and that there are no others.
    pub(crate) fn assert_facts(&self, facts: &[Value]) {
        assert_chained(facts);
        let mut found: BTreeMap<&str, Vec<&Value>> = BTreeMap::new();
        for fact in facts {
            found.entry(fact["key"].as_str().unwrap()).or_default().push(fact);
        }
        let kinds = |key: &str| -> Vec<&str> { found.get(key).into_iter().flatten().map(|fact| fact["kind"].as_str().unwrap()).collect() };
        for (key, expected) in &self.facts {
            assert_eq!(kinds(key), expected.iter().map(|(kind, _)| *kind).collect::<Vec<_>>(), "{key}");
            for ((kind, texts), fact) in expected.iter().zip(&found[key.as_str()]) {
                assert!(*kind != "observed" || agrees(texts, &fact["data"]), "{key}: {texts:?} is not {fact}");
            }
        }
        let unexpected: Vec<&&str> = found.keys().filter(|key| !self.facts.contains_key(**key)).collect();
        assert!(unexpected.is_empty(), "{unexpected:?}");
    }

    /// Asserts that the feed shows each visible change of each record once and in order. `rounds` holds the length of the feed after each
    /// round; if it is empty, only the order is checked.
    pub(crate) fn assert_feed(&self, feed: &[Value], rounds: &[usize]) {
        assert_shown_once(feed);
        // A recall of two agencies is one record with texts of both.
        let mut shared: BTreeSet<&str> = BTreeSet::new();
        for record in feed.iter().map(|change| &change["record"]) {
            let (id, into) = (record["id"].as_str().unwrap(), record["mergedInto"].as_str().unwrap());
            if record["agencies"].as_array().unwrap().len() > 1 {
                shared.extend(record["numbers"].as_array().unwrap().iter().map(|number| number.as_str().unwrap()));
            } else if !into.is_empty() && into.split(':').next() != id.split(':').next() {
                shared.insert(id);
            }
        }
        let mut shown: BTreeMap<&str, Vec<(usize, &Value)>> = BTreeMap::new();
        for (at, change) in feed.iter().enumerate() {
            let round = rounds.iter().take_while(|end| **end <= at).count();
            shown.entry(change["record"]["id"].as_str().unwrap()).or_default().push((round, &change["record"]));
        }
        let mut compared = 0;
        for (id, expected) in self.seen.iter().filter(|(id, _)| !shared.contains(id.as_str())) {
            let records = shown.get(id.as_str()).map(Vec::as_slice).unwrap_or_default();
            let is_gone = |record: &Value| record["withdrawn"] == true || record["mergedInto"] != "";
            let read = |record: &Value| (is_gone(record), FIELDS.map(|field| record[field].as_str().unwrap().to_owned()));
            // The distinct states of the record in the order in which they were shown, each with its round.
            let mut states: Vec<(usize, &Value)> = Vec::new();
            for (round, record) in records {
                if states.last().is_none_or(|(_, last)| read(last) != read(record)) {
                    states.push((*round, *record));
                }
            }
            let wanted: Vec<&Seen> = expected.iter().filter(|seen| seen.moved).collect();
            // Facts of several streams or languages about one recall may each change it.
            let streams = self.facts.keys().filter(|key| key.split('/').nth(1) == id.split(':').nth(1)).count().max(1);
            if rounds.is_empty() {
                let mut left = states.iter().map(|(_, record)| *record);
                for seen in &wanted {
                    let fits =
                        |record: &&Value| seen.texts.as_ref().map_or(is_gone(record), |texts| !is_gone(record) && agrees(texts, record));
                    assert!(left.any(|record| fits(&record)), "{id}: {seen:?} is not in {records:?}");
                }
                assert!(states.len() <= wanted.len() * streams, "{id}: {states:?} for {wanted:?}");
            } else {
                for seen in &wanted {
                    let own: Vec<&Value> = states.iter().filter(|(round, _)| *round == seen.round).map(|(_, record)| *record).collect();
                    assert!((1..=streams).contains(&own.len()), "{id}: {} states in round {} for {seen:?}", own.len(), seen.round);
                    let last = own.last().unwrap();
                    match &seen.texts {
                        Some(texts) => assert!(!is_gone(last) && agrees(texts, last), "{id}: {texts:?} is not {last}"),
                        None => assert!(is_gone(last), "{id}: {last}"),
                    }
                }
                let known: BTreeSet<usize> = wanted.iter().map(|seen| seen.round).collect();
                assert!(states.iter().all(|(round, _)| known.contains(round)), "{id}: {states:?} for {wanted:?}");
            }
            compared += 1;
        }
        assert!(compared * 2 > self.seen.len(), "too few states were compared: {compared} of {}", self.seen.len());
        let unknown: Vec<&&str> = shown.keys().filter(|id| !self.seen.contains_key(**id)).collect();
        assert!(unknown.is_empty(), "{unknown:?}");
    }
}

/// Proves that facts and feed equal the simulator's expected changes when it changes only between finished runs: each change once and in
/// order.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn feed_equals_the_expected_changes() {
    let dir = tempfile::tempdir().unwrap();
    let simulated = SimulatedUpstreams::start(11, 600, fixed_clock()).await;
    let engine = Engine::open_with(dir.path(), fixed_clock(), &["recalls"]).await;
    engine.run_some(RECALL_UPSTREAMS, &simulated.settings()).await;
    let mut expected = Expected::at_first(simulated.sim.current(None));
    let mut rounds = vec![engine.feed().await.len()];
    for round in 1..=8 {
        let known = simulated.sim.expected_changes().len() as u64;
        simulated.sim.advance(15);
        expected.take(round, simulated.sim.expected_changes_after(known));
        // A withdrawal takes two runs.
        engine.run_some(RECALL_UPSTREAMS, &simulated.settings()).await;
        engine.run_some(RECALL_UPSTREAMS, &simulated.settings()).await;
        rounds.push(engine.feed().await.len());
    }
    let kinds: BTreeSet<String> = simulated.sim.expected_changes().iter().map(|entry| format!("{:?}", entry.kind)).collect();
    assert_eq!(kinds.len(), 4, "not every kind of change occurred: {kinds:?}");
    expected.assert_facts(&engine.facts().await);
    let feed = engine.feed().await;
    expected.assert_feed(&feed, &rounds);
    expected.assert_feed(&feed, &[]);
    // The log contains the same changes as the pages, whatever the page size.
    let logged: Vec<(Value, Value)> =
        engine.changes().await.into_iter().map(|mut change| (change["seq"].take(), change["record"].take())).collect();
    let paged: Vec<(Value, Value)> = feed.into_iter().map(|mut change| (change["seq"].take(), change["record"].take())).collect();
    assert_eq!(logged, paged);
    assert_eq!(engine.feed_bytes(7).await, engine.feed_bytes(200).await);
    let records = engine.records().await;
    for entry in simulated.sim.current(None) {
        let record = &records[&identity(&entry)].record;
        assert!(record.is_listed() || records[&record.merged_into].record.is_listed(), "{record:?}");
    }
    engine.close().await;
}
