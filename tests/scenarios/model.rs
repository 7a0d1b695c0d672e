//! Compares the awards service with a simple model in memory, under random facts, late facts, duplicates, restarts, replays and repeated
//! decisions, with readers under filters that ask for pages of any size. The model knows a record's fields and the order in which facts
//! were decided; everything else is left to the engine.
//!
//! `MODEL_STEPS=1000000 cargo test --release --test scenarios model` runs a million steps; `MODEL_SEED` repeats an earlier run.

use std::collections::{BTreeMap, HashMap};
use std::path::Path;
use std::sync::Arc;
use std::time::{Duration, Instant};

use event_log::Append;
use projector::rebuild::Progress;
use schemas::avro::decode;
use schemas::change::{Change, ChangeKind};
use schemas::facts::FactData;
use schemas::facts::awards::{AwardFact, kind};
use schemas::position::LogOffset;
use schemas::topics::{AWARDS, CHANGES_AWARDS};
use schemas::views::accounts::Tier;
use schemas::views::awards::Award;
use schemas::views::records::RememberedRows;
use serde_json::{Value, json};

use crate::api::{LocalApi, Writer};
use crate::cluster::Cluster;
use crate::concurrent_processes::{copy, read_partition};
use crate::engine::{NOW, fixed_clock};
use crate::random::{Random, number, seed};

/// The default running time.
const RUN_TIME: Duration = Duration::from_secs(12);
/// The running time on servers, where a step takes longer.
const RUN_TIME_ON_SERVERS: Duration = Duration::from_secs(20);
const AT_MS: i64 = 1_795_000_000_000;
const AWARDS_MAX: u64 = 400;
const RECIPIENTS: &[&str] = &["ACME FEDERAL LLC", "Acme Holdings", "Borealis Systems Inc", "Cobalt & Sons", "Delta  Marine"];
const AGENCIES: &[&str] = &["Department of Energy", "Department of Defense", "NASA"];
const CODES: &[&str] = &["541511", "541512", "541715", "336411", "236220"];
const MODIFICATIONS: &[&str] = &["0", "P00001", "P00002", "P00003", "P00004"];

/// The current state of an award.
#[derive(Clone, Debug, PartialEq, Eq)]
struct State {
    recipient: &'static str,
    agency: &'static str,
    naics: &'static str,
    cents: i64,
}

/// What the model knows of an award: its state, and its actions by number, each with its day and cents.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
struct ModelledAward {
    state: Option<State>,
    actions: BTreeMap<&'static str, (String, i64)>,
}

impl ModelledAward {
    fn sum(&self) -> i64 {
        self.actions.values().map(|(_, cents)| cents).sum()
    }

    /// Returns the last action by its day; on the same day the base action comes first.
    fn last(&self) -> Option<(&str, bool, &str, i64)> {
        self.actions.iter().map(|(number, (day, cents))| (day.as_str(), *number != "0", *number, *cents)).max()
    }

    fn dollars(&self) -> Option<f64> {
        let sum = self.actions.contains_key("0").then(|| self.sum());
        self.state.as_ref().map(|state| state.cents).or(sum).map(dollars)
    }
}

fn dollars(cents: i64) -> f64 {
    f64::from(i32::try_from(cents).unwrap()) / 100.0
}

/// The content of a fact.
#[derive(Clone, Debug)]
enum Statement {
    State(State),
    Action(&'static str, String, i64),
}

impl Statement {
    fn random(random: &mut Random) -> Self {
        if random.below(3) == 0 {
            let (recipient, agency, naics) = (random.pick(RECIPIENTS), random.pick(AGENCIES), random.pick(CODES));
            return Self::State(State { recipient, agency, naics, cents: i64::try_from(random.below(6)).unwrap() * 1_000_050 });
        }
        // Any day of a month, so that most actions are late.
        let day = format!("2026-10-{:02}", 1 + random.below(31));
        Self::Action(random.pick(MODIFICATIONS), day, i64::try_from(random.below(7)).unwrap() * 12_345 - 30_000)
    }

    fn key(&self, award: &str) -> String {
        match self {
            Self::State(_) => format!("usaspending.awards/{award}"),
            Self::Action(number, ..) => format!("usaspending.transactions/{award}/{number}"),
        }
    }

    fn fact(&self, award: &str) -> FactData {
        let bare = AwardFact { award_id: award.to_owned(), ..AwardFact::default() };
        FactData::Award(Box::new(match self {
            Self::State(state) => AwardFact {
                stream: "usaspending.awards".to_owned(),
                kind: kind::AWARD.to_owned(),
                recipient: state.recipient.to_owned(),
                agency: state.agency.to_owned(),
                naics: state.naics.to_owned(),
                amount_cents: Some(state.cents),
                ..bare
            },
            Self::Action(number, day, cents) => AwardFact {
                stream: "usaspending.transactions".to_owned(),
                kind: kind::ACTION.to_owned(),
                modification: (*number).to_owned(),
                action_date: day.clone(),
                action_cents: Some(*cents),
                ..bare
            },
        }))
    }
}

/// A change that readers must see.
#[derive(Clone, Debug, PartialEq)]
struct Expected {
    seq: u64,
    item: Value,
    dollars: Option<f64>,
}

/// All statements so far, and their consequences.
#[derive(Default)]
struct Model {
    /// The statement of each fact that continues its chain, by partition and offset.
    statements: HashMap<(i32, i64), (String, Statement)>,
    known: BTreeMap<String, ModelledAward>,
    expected: Vec<Expected>,
    /// The last decided offset of each partition.
    decided: BTreeMap<i32, i64>,
    /// The end of what was read of the topic of changes.
    next: LogOffset,
    changes: u64,
}

impl Model {
    /// Reads the new changes. Asserts that each fact that continues its chain was decided once, in the order of its partition, and that
    /// each change is the one that the model expects.
    async fn follow(&mut self, api: &LocalApi) {
        loop {
            let batch = api.engine.log.read(&CHANGES_AWARDS, 0, self.next, 1_000, 4 << 20).await.unwrap();
            let Some(last) = batch.last() else { return };
            self.next = last.offset.next();
            for stored in batch {
                self.take(&decode(CHANGES_AWARDS.name, &stored.record.value).unwrap());
            }
        }
    }

    fn take(&mut self, change: &Change<Award, RememberedRows>) {
        self.changes += 1;
        let (seq, place) = (change.seq.0, (change.input.partition, change.input.stored_offset()));
        assert_eq!((seq, change.following), (self.changes, 0));
        let before = self.decided.insert(place.0, place.1);
        assert!(before.is_none_or(|before| before < place.1), "a partition's facts were decided out of order");
        let (award, statement) = self
            .statements
            .remove(&place)
            .unwrap_or_else(|| panic!("the fact at {place:?} was decided twice, or does not continue its chain"));
        let is_new = !self.known.contains_key(&award);
        let known = self.known.entry(award.clone()).or_default();
        let before = known.clone();
        // A change shows its own action, even if it is not the last one.
        let mut action = None;
        match statement {
            Statement::State(state) => known.state = Some(state),
            Statement::Action(number, day, cents) => {
                action = Some((number, day.clone()));
                known.actions.insert(number, (day, cents));
            }
        }
        // An action before the last one is visible only in the sum.
        let shown = |known: &ModelledAward| {
            let last = known.last().map(|(day, _, number, cents)| (day.to_owned(), number.to_owned(), cents));
            (known.state.clone(), last, known.sum(), known.actions.contains_key("0"))
        };
        if !is_new && shown(&before) == shown(known) {
            assert_eq!(change.event, ChangeKind::Noted, "{award}: an invisible change must not be shown to readers");
            return;
        }
        let last = || known.last().map_or_else(Default::default, |(day, _, number, _)| (number, day.to_owned()));
        let ((number, day), state) = (action.unwrap_or_else(last), known.state.as_ref());
        let event = if is_new && matches!(number, "" | "0") { "new" } else { "modified" };
        assert_eq!(change.event, if is_new { ChangeKind::New } else { ChangeKind::Modified }, "{award}");
        // The amount of an award that is first seen by a later action was not added by that action.
        let amount_before = if event == "new" { Some(0.0) } else { before.dollars() };
        let delta = known.dollars().zip(amount_before).map(|(after, before)| after - before);
        let item = json!({
            "event": event,
            "id": award,
            "seq": seq,
            "recipient": state.map_or("", |state| state.recipient),
            "agency": state.map_or("", |state| state.agency),
            "naics": state.map_or("", |state| state.naics),
            "amount": known.dollars(),
            "amountDelta": delta,
            "date": day,
            "modification": number,
        });
        self.expected.push(Expected { seq, item, dollars: known.dollars() });
    }
}

/// A reader by cursor, under a filter.
struct Reader {
    filter: Value,
    cursor: Option<String>,
    to: u64,
}

impl Reader {
    fn random(random: &mut Random) -> Self {
        let all = [
            json!({}),
            json!({ "naics": ["5415"] }),
            json!({ "naics": ["54", "2362"], "minAmount": 20_000 }),
            json!({ "recipient": "acme" }),
            json!({ "recipient": "delta marine", "agency": "defense" }),
            json!({ "agency": "nasa" }),
            json!({ "minAmount": 30_000, "maxAmount": 45_000 }),
            json!({ "recipient": "nobody" }),
        ];
        Self { filter: all[usize::try_from(random.below(all.len() as u64)).unwrap()].clone(), cursor: None, to: 0 }
    }

    /// Whether a change matches the filter of this reader.
    fn matches(&self, expected: &Expected) -> bool {
        let text = |name: &str| expected.item[name].as_str().unwrap().split_whitespace().collect::<Vec<_>>().join(" ").to_lowercase();
        let part = |name: &str| self.filter[name].as_str().is_none_or(|part| text(name).contains(part));
        let bound = |name: &str, fits: fn(f64, f64) -> bool| {
            self.filter[name].as_f64().is_none_or(|bound| expected.dollars.is_some_and(|dollars| fits(dollars, bound)))
        };
        let codes = self.filter["naics"].as_array();
        part("recipient")
            && part("agency")
            && codes.is_none_or(|codes| codes.iter().any(|code| text("naics").starts_with(code.as_str().unwrap())))
            && bound("minAmount", |dollars, least| dollars >= least)
            && bound("maxAmount", |dollars, most| dollars <= most)
    }

    /// Reads one page of random size and compares it with the model's.
    async fn read(&mut self, api: &LocalApi, model: &Model, random: &mut Random) {
        let mut arguments = self.filter.clone();
        arguments["limit"] = json!(1 + random.below(200));
        match &self.cursor {
            Some(cursor) => arguments["cursor"] = json!(cursor),
            None => arguments["start"] = json!("earliest"),
        }
        let page = api
            .ask("awards", "whats_changed_since", &arguments, Tier::Pro)
            .await
            .unwrap_or_else(|problem| panic!("{arguments}: {problem:?}"));
        assert_eq!(page["from"], self.to + 1, "{arguments}");
        let to = page["to"].as_u64().unwrap();
        let range = model.expected.partition_point(|one| one.seq <= self.to)..model.expected.partition_point(|one| one.seq <= to);
        let expected: Vec<&Value> = model.expected[range].iter().filter(|one| self.matches(one)).map(|one| &one.item).collect();
        let got = page["changes"].as_array().unwrap();
        assert_eq!(got.len(), expected.len(), "{arguments}: {} to {to}", self.to);
        for (got, expected) in got.iter().zip(expected) {
            for (name, value) in expected.as_object().unwrap() {
                assert!(same(&got[name], value), "{name} is {} and not {value} in {got}", got[name]);
            }
        }
        assert_eq!(page["hasMore"], to < model.changes, "{arguments}");
        assert!(to > self.to || to == model.changes, "a page must advance");
        (self.to, self.cursor) = (to, Some(page["cursor"].as_str().unwrap().to_owned()));
    }
}

/// Whether values are equal; numbers may differ by a rounding error, because one is a sum.
fn same(a: &Value, b: &Value) -> bool {
    match (a.as_f64(), b.as_f64()) {
        (Some(a), Some(b)) => (a - b).abs() < 0.001,
        _ => a == b,
    }
}

fn no_progress() -> Progress {
    Arc::new(|_, _| ())
}

async fn digests(api: &LocalApi) -> [String; 2] {
    let awards = api.engine.projector.service("awards").unwrap();
    [awards.digest(false, None).await.unwrap().to_string(), awards.digest(true, None).await.unwrap().to_string()]
}

/// Returns the digest of a new engine that gets the same facts.
async fn digest_of_new_engine(api: &LocalApi, dir: &Path) -> String {
    let fresh = LocalApi::open_with(dir, fixed_clock(), &["awards"]).await;
    for partition in 0..AWARDS.partitions {
        copy(&*fresh.engine.log, &AWARDS, partition, &read_partition(&*api.engine.log, &AWARDS, partition).await).await;
    }
    fresh.decide().await;
    let [digest, _] = digests(&fresh).await;
    fresh.close().await;
    digest
}

/// Proves that for any order of facts, any number of partitions, and any restarts and replays, each change reaches every reader whose
/// filter it matches once and in order, as the model expects; that page ranges are contiguous; that replays do not change digests; and that
/// deciding the facts again, in this engine or a new one, gives the same result.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn embedded_engine_matches_the_model() {
    let dir = tempfile::tempdir().unwrap();
    let (data, seed, steps_max) = (dir.path().join("data"), seed("MODEL_SEED", 1), number("MODEL_STEPS"));
    println!(
        "{}",
        run_steps(seed, dir.path(), RUN_TIME, steps_max, async || LocalApi::open_with(&data, fixed_clock(), &["awards"]).await).await
    );
}

/// Proves that the engine matches the model on a real Kafka broker and a real CQL node, and that an embedded engine decides the same facts
/// in the same way.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn cluster_matches_the_model() {
    let Some(cluster) = Cluster::new("the model on Kafka and CQL", "", NOW) else { return };
    let (dir, seed) = (tempfile::tempdir().unwrap(), seed("MODEL_SEED", 1));
    let open = async || LocalApi::over_engine(cluster.engine(fixed_clock(), "awards").await, fixed_clock(), None);
    println!("{}", run_steps(seed, dir.path(), RUN_TIME_ON_SERVERS, None, open).await);
}

/// Runs the given number of steps, or as long as the given time; returns a summary.
async fn run_steps(seed: u64, dir: &Path, time: Duration, steps_max: Option<u64>, open: impl AsyncFn() -> LocalApi) -> String {
    let (mut random, mut writer, mut model) = (Random(seed), Writer::default(), Model::default());
    let (mut api, started) = (open().await, Instant::now());
    // The number of keys limits the number of partitions in use.
    let partitions = 1 + u32::try_from(random.below(u64::from(AWARDS.partitions))).unwrap();
    let mut readers: Vec<Reader> = (0..8).map(|_| Reader::random(&mut random)).collect();
    let (mut steps, mut written): (u64, Vec<Append>) = (0, Vec::new());
    let mut counts = [0_u64; 4];
    let should_continue = |steps: u64| steps_max.map_or_else(|| started.elapsed() < time, |most| steps < most);
    while should_continue(steps) {
        // Facts, some of them twice: a duplicate does not continue its chain.
        let (mut batch, mut statements) = (Vec::new(), Vec::new());
        for _ in 0..=random.below(60) {
            steps += 1;
            if random.below(12) == 0 && !written.is_empty() {
                let again = usize::try_from(random.below(written.len() as u64)).unwrap();
                batch.push(written[again].clone());
                statements.push(None);
                continue;
            }
            let own = Statement::random(&mut random);
            let (award, key) = loop {
                let award = format!("CONT_AWD_{:03}_8000_-NONE-_-NONE-", random.below(AWARDS_MAX));
                let key = own.key(&award);
                if AWARDS.partition_of(key.as_bytes()) < partitions {
                    break (award, key);
                }
            };
            let append = writer.observe(&key, &own.fact(&award), AT_MS);
            if written.len() < 500 {
                written.push(append.clone());
            } else {
                let place = usize::try_from(random.below(500)).unwrap();
                written[place] = append.clone();
            }
            batch.push(append);
            statements.push(Some((award, own)));
        }
        let places: Vec<u32> = batch.iter().map(|append| append.partition).collect();
        let offsets = api.engine.log.append(batch).await.unwrap();
        for ((partition, offset), statement) in places.into_iter().zip(offsets).zip(statements) {
            if let Some(statement) = statement {
                model.statements.insert((i32::try_from(partition).unwrap(), i64::try_from(offset.0).unwrap()), statement);
            }
        }
        if random.below(3) > 0 {
            api.decide().await;
            model.follow(&api).await;
            assert!(model.statements.is_empty(), "some facts were not decided");
            for _ in 0..random.below(5) {
                steps += 1;
                let at = usize::try_from(random.below(readers.len() as u64)).unwrap();
                readers[at].read(&api, &model, &mut random).await;
            }
            // Replaces one reader by a new one.
            if random.below(60) == 0 {
                let at = usize::try_from(random.below(readers.len() as u64)).unwrap();
                readers[at] = Reader::random(&mut random);
            }
            // The longer the log, the more each of these costs.
            let event = random.below(20 + steps / 200);
            let awards = Arc::clone(api.engine.projector.service("awards").unwrap());
            match event {
                0 => {
                    let before = digests(&api).await;
                    awards.replay(&no_progress()).await.unwrap();
                    assert_eq!(digests(&api).await, before, "a replay changed rows");
                    counts[0] += 1;
                }
                1 => {
                    assert_eq!(awards.redecide(&no_progress()).await.unwrap(), 0, "the second decision differs");
                    counts[1] += 1;
                }
                _ => {}
            }
        }
        if random.below(60) == 0 {
            api.close().await;
            api = open().await;
            counts[2] += 1;
        }
    }
    api.decide().await;
    model.follow(&api).await;
    assert!(model.statements.is_empty());
    for reader in &mut readers {
        while reader.to < model.changes {
            reader.read(&api, &model, &mut random).await;
            counts[3] += 1;
        }
    }
    let awards = api.engine.projector.service("awards").unwrap();
    assert_eq!(awards.redecide(&no_progress()).await.unwrap(), 0);
    let before = digests(&api).await;
    awards.replay(&no_progress()).await.unwrap();
    assert_eq!(digests(&api).await, before);
    assert_eq!(digest_of_new_engine(&api, &dir.join("fresh")).await, before[0]);
    api.close().await;
    format!(
        "{steps} steps in {partitions} partitions, {} changes emitted, replays, redecisions, restarts, last pages: {counts:?}",
        model.expected.len()
    )
}
