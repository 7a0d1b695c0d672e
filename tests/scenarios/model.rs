//! The awards service against a plain model in memory: facts by chance, late ones, repeats and what was known already, restarts, replays and
//! decisions made again, with readers under filters that ask for pages of any size. The model knows a record's fields and the order in which
//! facts were decided; all else is the engine's.
//!
//! `MODEL_STEPS=1000000 cargo test --release --test scenarios model` takes as many steps; `MODEL_SEED` repeats those of a run.

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
use schemas::views::records::Note;
use serde_json::{Value, json};

use crate::chance::{Chance, number, seed};
use crate::cluster::Cluster;
use crate::engine::{NOW, fixed_clock};
use crate::fed::{Fed, Writer};
use crate::rivals::{copy, whole};

/// How long it goes on where no number of steps is asked for.
const TIME: Duration = Duration::from_secs(12);
/// The same on servers, where a step takes longer.
const TIME_ON_SERVERS: Duration = Duration::from_secs(20);
const AT_MS: i64 = 1_795_000_000_000;
const AWARDS_MAX: u64 = 400;
const RECIPIENTS: &[&str] = &["ACME FEDERAL LLC", "Acme Holdings", "Borealis Systems Inc", "Cobalt & Sons", "Delta  Marine"];
const AGENCIES: &[&str] = &["Department of Energy", "Department of Defense", "NASA"];
const CODES: &[&str] = &["541511", "541512", "541715", "336411", "236220"];
const MODIFICATIONS: &[&str] = &["0", "P00001", "P00002", "P00003", "P00004"];

/// What an award is.
#[derive(Clone, Debug, PartialEq, Eq)]
struct State {
    recipient: &'static str,
    agency: &'static str,
    naics: &'static str,
    cents: i64,
}

/// What the model knows of an award: its state, and its actions by number, each with its day and cents.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
struct Known {
    state: Option<State>,
    actions: BTreeMap<&'static str, (String, i64)>,
}

impl Known {
    fn sum(&self) -> i64 {
        self.actions.values().map(|(_, cents)| cents).sum()
    }

    /// The last action: by its day, the base first.
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

/// One thing that a fact says.
#[derive(Clone, Debug)]
enum Said {
    State(State),
    Action(&'static str, String, i64),
}

impl Said {
    fn by_chance(chance: &mut Chance) -> Self {
        if chance.below(3) == 0 {
            let (recipient, agency, naics) = (chance.of(RECIPIENTS), chance.of(AGENCIES), chance.of(CODES));
            return Self::State(State { recipient, agency, naics, cents: i64::try_from(chance.below(6)).unwrap() * 1_000_050 });
        }
        // Any day of a month: most come late.
        let day = format!("2026-10-{:02}", 1 + chance.below(31));
        Self::Action(chance.of(MODIFICATIONS), day, i64::try_from(chance.below(7)).unwrap() * 12_345 - 30_000)
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

/// Everything that was said, and what follows from it.
#[derive(Default)]
struct Model {
    /// What each fact said, by partition and offset; those that do not chain say nothing.
    said: HashMap<(i32, i64), (String, Said)>,
    known: BTreeMap<String, Known>,
    expected: Vec<Expected>,
    /// Facts that are decided, by partition.
    decided: BTreeMap<i32, i64>,
    /// How far the topic of changes is read.
    next: LogOffset,
    changes: u64,
}

impl Model {
    /// Takes in the changes that were appended: each fact that chains was decided once, in the order of its partition, and is told as the
    /// plain fold says.
    async fn follow(&mut self, fed: &Fed) {
        loop {
            let batch = fed.engine.log.read(&CHANGES_AWARDS, 0, self.next, 1_000, 4 << 20).await.unwrap();
            let Some(last) = batch.last() else { return };
            self.next = last.offset.next();
            for stored in batch {
                self.take(&decode(CHANGES_AWARDS.name, &stored.record.value).unwrap());
            }
        }
    }

    fn take(&mut self, change: &Change<Award, Note>) {
        self.changes += 1;
        let (seq, place) = (u64::try_from(change.seq).unwrap(), (change.input.partition, change.input.offset));
        assert_eq!((seq, change.following), (self.changes, 0));
        let before = self.decided.insert(place.0, place.1);
        assert!(before.is_none_or(|before| before < place.1), "a partition's facts are decided in order");
        let (award, said) = self.said.remove(&place).unwrap_or_else(|| panic!("{place:?} was decided twice, or says nothing"));
        let is_new = !self.known.contains_key(&award);
        let known = self.known.entry(award.clone()).or_default();
        let before = known.clone();
        // What the change tells is its own action's, wherever that stands among the others.
        let mut action = None;
        match said {
            Said::State(state) => known.state = Some(state),
            Said::Action(number, day, cents) => {
                action = Some((number, day.clone()));
                known.actions.insert(number, (day, cents));
            }
        }
        // Actions behind the last one show by their sum alone.
        let shown = |known: &Known| {
            let last = known.last().map(|(day, _, number, cents)| (day.to_owned(), number.to_owned(), cents));
            (known.state.clone(), last, known.sum(), known.actions.contains_key("0"))
        };
        if !is_new && shown(&before) == shown(known) {
            assert_eq!(change.event, ChangeKind::Noted, "{award}: what shows nothing is told to nobody");
            return;
        }
        let last = || known.last().map_or_else(Default::default, |(day, _, number, _)| (number, day.to_owned()));
        let ((number, day), state) = (action.unwrap_or_else(last), known.state.as_ref());
        let event = if is_new && matches!(number, "" | "0") { "new" } else { "modified" };
        assert_eq!(change.event, if is_new { ChangeKind::New } else { ChangeKind::Modified }, "{award}");
        let item = json!({
            "event": event,
            "id": award,
            "seq": seq,
            "recipient": state.map_or("", |state| state.recipient),
            "agency": state.map_or("", |state| state.agency),
            "naics": state.map_or("", |state| state.naics),
            "amount": known.dollars(),
            "amountDelta": dollars(known.sum() - before.sum()),
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
    fn by_chance(chance: &mut Chance) -> Self {
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
        Self { filter: all[usize::try_from(chance.below(all.len() as u64)).unwrap()].clone(), cursor: None, to: 0 }
    }

    /// Whether a change is for this reader, by the words of its filter.
    fn takes(&self, expected: &Expected) -> bool {
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

    /// Reads one page of any size and compares it with the model's.
    async fn read(&mut self, fed: &Fed, model: &Model, chance: &mut Chance) {
        let mut asked = self.filter.clone();
        asked["limit"] = json!(1 + chance.below(200));
        match &self.cursor {
            Some(cursor) => asked["cursor"] = json!(cursor),
            None => asked["start"] = json!("earliest"),
        }
        let page =
            fed.ask("awards", "whats_changed_since", &asked, Tier::Pro).await.unwrap_or_else(|problem| panic!("{asked}: {problem:?}"));
        assert_eq!(page["from"], self.to + 1, "{asked}");
        let to = page["to"].as_u64().unwrap();
        let range = model.expected.partition_point(|one| one.seq <= self.to)..model.expected.partition_point(|one| one.seq <= to);
        let expected: Vec<&Value> = model.expected[range].iter().filter(|one| self.takes(one)).map(|one| &one.item).collect();
        let got = page["changes"].as_array().unwrap();
        assert_eq!(got.len(), expected.len(), "{asked}: {} to {to}", self.to);
        for (got, expected) in got.iter().zip(expected) {
            for (name, value) in expected.as_object().unwrap() {
                assert!(same(&got[name], value), "{name} is {} and not {value} in {got}", got[name]);
            }
        }
        assert_eq!(page["hasMore"], to < model.changes, "{asked}");
        assert!(to > self.to || to == model.changes, "a page gets on");
        (self.to, self.cursor) = (to, Some(page["cursor"].as_str().unwrap().to_owned()));
    }
}

/// Numbers are the same where they are close: one was added up, the other read.
fn same(a: &Value, b: &Value) -> bool {
    match (a.as_f64(), b.as_f64()) {
        (Some(a), Some(b)) => (a - b).abs() < 0.001,
        _ => a == b,
    }
}

fn quiet() -> Progress {
    Arc::new(|_, _| ())
}

async fn digests(fed: &Fed) -> [String; 2] {
    let awards = fed.engine.projector.service("awards").unwrap();
    [awards.digest(false, None).await.unwrap().to_string(), awards.digest(true, None).await.unwrap().to_string()]
}

/// The digest of an engine that was given the same facts anew.
async fn digest_afresh(fed: &Fed, dir: &Path) -> String {
    let fresh = Fed::open(dir, fixed_clock(), None).await;
    for partition in 0..AWARDS.partitions {
        copy(&*fresh.engine.log, &AWARDS, partition, &whole(&*fed.engine.log, &AWARDS, partition).await).await;
    }
    fresh.decide().await;
    let [digest, _] = digests(&fresh).await;
    fresh.close().await;
    digest
}

/// Proves that whatever facts come in whatever order, in however many partitions, and whatever becomes of the engine meanwhile, each change is
/// told once and in order, as a plain fold says, to every reader that it fits; that page ranges join; that digests outlast replays, and that
/// deciding again, or anew, comes to the same.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn the_engine_does_as_the_model() {
    let dir = tempfile::tempdir().unwrap();
    let (data, seed, steps_max) = (dir.path().join("data"), seed("MODEL_SEED"), number("MODEL_STEPS"));
    println!("MODEL_SEED={seed}");
    println!("{}", play(seed, dir.path(), TIME, steps_max, async || Fed::open(&data, fixed_clock(), None).await).await);
}

/// Proves the same on a real Kafka broker and a real CQL node, and that deciding anew on the embedded pair comes to the same.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn servers_do_as_the_model() {
    let Some(cluster) = Cluster::new("the model on Kafka and CQL", "", NOW) else { return };
    let (dir, seed) = (tempfile::tempdir().unwrap(), seed("MODEL_SEED"));
    println!("MODEL_SEED={seed}");
    let open = async || Fed::over(cluster.engine(fixed_clock()).await, fixed_clock(), None);
    println!("{}", play(seed, dir.path(), TIME_ON_SERVERS, None, open).await);
}

/// Plays so many steps, or so long; answers what it was.
async fn play(seed: u64, dir: &Path, time: Duration, steps_max: Option<u64>, open: impl AsyncFn() -> Fed) -> String {
    let (mut chance, mut writer, mut model) = (Chance(seed), Writer::default(), Model::default());
    let (mut fed, begun) = (open().await, Instant::now());
    // Only keys of the first so many.
    let partitions = 1 + u32::try_from(chance.below(u64::from(AWARDS.partitions))).unwrap();
    let mut readers: Vec<Reader> = (0..8).map(|_| Reader::by_chance(&mut chance)).collect();
    let (mut steps, mut written): (u64, Vec<Append>) = (0, Vec::new());
    let mut lived = [0_u64; 4];
    let goes_on = |steps: u64| steps_max.map_or_else(|| begun.elapsed() < time, |most| steps < most);
    while goes_on(steps) {
        // Facts, some of them a second time: those chain no more.
        let (mut batch, mut said) = (Vec::new(), Vec::new());
        for _ in 0..=chance.below(60) {
            steps += 1;
            if chance.below(12) == 0 && !written.is_empty() {
                let again = usize::try_from(chance.below(written.len() as u64)).unwrap();
                batch.push(written[again].clone());
                said.push(None);
                continue;
            }
            let own = Said::by_chance(&mut chance);
            let (award, key) = loop {
                let award = format!("CONT_AWD_{:03}_8000_-NONE-_-NONE-", chance.below(AWARDS_MAX));
                let key = own.key(&award);
                if AWARDS.partition_of(key.as_bytes()) < partitions {
                    break (award, key);
                }
            };
            let append = writer.observe(&key, &own.fact(&award), AT_MS);
            if written.len() < 500 {
                written.push(append.clone());
            } else {
                let place = usize::try_from(chance.below(500)).unwrap();
                written[place] = append.clone();
            }
            batch.push(append);
            said.push(Some((award, own)));
        }
        let places: Vec<u32> = batch.iter().map(|append| append.partition).collect();
        let offsets = fed.engine.log.append(batch).await.unwrap();
        for ((partition, offset), said) in places.into_iter().zip(offsets).zip(said) {
            if let Some(said) = said {
                model.said.insert((i32::try_from(partition).unwrap(), i64::try_from(offset.0).unwrap()), said);
            }
        }
        if chance.below(3) > 0 {
            fed.decide().await;
            model.follow(&fed).await;
            assert!(model.said.is_empty(), "every fact that chains is decided");
            for _ in 0..chance.below(5) {
                steps += 1;
                let at = usize::try_from(chance.below(readers.len() as u64)).unwrap();
                readers[at].read(&fed, &model, &mut chance).await;
            }
            // A reader goes, and another begins.
            if chance.below(60) == 0 {
                let at = usize::try_from(chance.below(readers.len() as u64)).unwrap();
                readers[at] = Reader::by_chance(&mut chance);
            }
            // The longer the log, the more each costs.
            let event = chance.below(20 + steps / 200);
            let awards = Arc::clone(fed.engine.projector.service("awards").unwrap());
            match event {
                0 => {
                    let before = digests(&fed).await;
                    awards.replay(&quiet()).await.unwrap();
                    assert_eq!(digests(&fed).await, before, "a replay changes no row");
                    lived[0] += 1;
                }
                1 => {
                    assert_eq!(awards.redecide(&quiet()).await.unwrap(), 0, "decided again, the same follows");
                    lived[1] += 1;
                }
                _ => {}
            }
        }
        if chance.below(60) == 0 {
            fed.close().await;
            fed = open().await;
            lived[2] += 1;
        }
    }
    fed.decide().await;
    model.follow(&fed).await;
    assert!(model.said.is_empty());
    for reader in &mut readers {
        while reader.to < model.changes {
            reader.read(&fed, &model, &mut chance).await;
            lived[3] += 1;
        }
    }
    let awards = fed.engine.projector.service("awards").unwrap();
    assert_eq!(awards.redecide(&quiet()).await.unwrap(), 0);
    let before = digests(&fed).await;
    awards.replay(&quiet()).await.unwrap();
    assert_eq!(digests(&fed).await, before);
    assert_eq!(digest_afresh(&fed, &dir.join("fresh")).await, before[0]);
    fed.close().await;
    format!(
        "{steps} steps in {partitions} partitions, {} changes told, replays, redecisions, restarts, last pages: {lived:?}",
        model.expected.len()
    )
}
