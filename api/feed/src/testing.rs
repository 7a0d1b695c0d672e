//! For tests: a recalls view that is filled change by change, its log, and a simple model of the expected answers.

#![expect(clippy::unwrap_used, reason = "a test that meets an error here fails by panicking")]

pub mod accounts;
pub mod filters;
pub mod records;
pub mod time;

use std::collections::BTreeMap;
use std::net::{IpAddr, Ipv4Addr};
use std::sync::Arc;

use bytes::Bytes;
use event_log::embedded::EmbeddedLog;
use event_log::{Append, EventLog, Record};
use jiff::Timestamp;
use operation::context::{Context, Settings};
use operation::problem::Problem;
use operation::secrets::Secrets;
use operation::tiers::{Limits, Tiers};
use operation::{Answer, Body, Call, Caller, Form, Operation, Stage};
use proofs::hash::Hash32;
use schemas::avro::{Encoder, datum_hash};
use schemas::change::{Change, ChangeKind, Input, Through};
use schemas::clock::{Clock, rfc3339};
use schemas::key;
use schemas::position::Seq;
use schemas::tables::{Table, Write};
use schemas::topics::CHANGES_RECALLS;
use schemas::views::accounts::Tier;
use schemas::views::recalls::{self, ListEntry, Recall, RecallChange, Row, day_of, month_of};
use serde_json::{Value, json};
use view_store::embedded::Options;
use view_store::feed::FeedTail;
use view_store::{Checkpoint, EmbeddedStore, View, ViewStore};

use crate::Source;

/// 2026-11-01T00:00:00Z.
pub const START_MS: i64 = 1_793_491_200_000;
/// An hour in milliseconds.
pub const HOUR_MS: i64 = 3_600_000;

/// The source of the view's changes.
pub const SOURCE: Source = Source {
    service: "recalls",
    view: &recalls::VIEW,
    records: &recalls::RECALLS,
    history: &recalls::HISTORY,
    feed: &recalls::FEED,
    through: &recalls::THROUGH,
    parked: &recalls::PARKED,
    topic: &CHANGES_RECALLS,
    facts: &[schemas::topics::RECALLS],
    sample_days: None,
    redaction: None,
};

/// A version of a record in the model.
pub struct Version {
    /// The change that made the version.
    pub seq: Seq,
    /// The record in this version.
    pub record: Recall,
}

/// A recalls view, the log of its changes, and the model of the expected answers.
pub struct World {
    /// The store.
    pub store: Arc<EmbeddedStore>,
    /// The log.
    pub log: Arc<EmbeddedLog>,
    /// The live generation of the view.
    pub view: Arc<dyn View>,
    /// All versions of all records, in the order of the changes.
    pub versions: Vec<Version>,
    /// All changes as readers receive them, with their `seq`.
    pub elements: Vec<(Seq, Value)>,
    /// The checkpoint of the last commit.
    pub checkpoint: Checkpoint,
    /// Current row of each id, and since when it has had its position in the lists.
    rows: BTreeMap<String, (Row, Seq)>,
    tail: FeedTail,
    writes: Vec<Write>,
    appends: Vec<Append>,
    /// The directory that holds all data.
    pub dir: tempfile::TempDir,
}

impl World {
    /// Creates a world without changes.
    pub async fn new() -> Self {
        let dir = tempfile::tempdir().unwrap();
        let store = EmbeddedStore::open(&dir.path().join("store"), Options::default()).unwrap();
        let log = EmbeddedLog::open(&dir.path().join("log"), event_log::embedded::Options::default()).unwrap();
        let view = store.live(&recalls::VIEW).await.unwrap();
        Self {
            store,
            log,
            view,
            versions: Vec::new(),
            elements: Vec::new(),
            checkpoint: Checkpoint::default(),
            rows: BTreeMap::new(),
            tail: FeedTail::empty(),
            writes: Vec::new(),
            appends: Vec::new(),
            dir,
        }
    }

    /// Creates a context with a fixed clock.
    pub fn context(&self, now_ms: i64) -> Arc<Context> {
        self.context_with(now_ms, |_| {})
    }

    /// Creates a context with a fixed clock and other settings.
    pub fn context_with(&self, now_ms: i64, change: impl FnOnce(&mut Settings)) -> Arc<Context> {
        let mut settings = Settings {
            cache_dir: Some(self.dir.path().join("cache")),
            ..Settings::new(BTreeMap::new(), Tiers::of_two(Limits::new(100, 0, 25, 0, 0), Limits::new(100_000, 50_000, 200, 20, 50)))
        };
        change(&mut settings);
        let secrets = Secrets::from_master(&[7; 32]).unwrap();
        let clock = Clock::Fixed(Timestamp::from_millisecond(now_ms).unwrap());
        Arc::new(Context::new(settings, clock, secrets, self.log.clone(), self.store.clone()))
    }

    /// Adds a row that the next [`Self::commit`] writes.
    pub fn put(&mut self, table: &'static Table, key: schemas::tables::Key, value: Vec<u8>) {
        self.writes.push(Write::put(table, key, Bytes::from(value)));
    }

    fn next(&mut self, at_ms: i64, element: Option<&Value>) -> Seq {
        self.checkpoint.seq = self.checkpoint.seq.next();
        self.checkpoint.recorded_at_ms = at_ms;
        let seq = self.checkpoint.seq;
        let prev_hash = Hash32::from_hex(&self.checkpoint.hash).unwrap_or_default();
        let append = Self::logged(seq, prev_hash, at_ms);
        self.checkpoint.hash = datum_hash(CHANGES_RECALLS.name, &append.record.value).unwrap().to_string();
        self.appends.push(append);
        self.tail.push(seq, at_ms, element.map(|element| serde_json::to_vec(element).unwrap()).as_deref()).unwrap();
        seq
    }

    /// Adds a change of a record. The next [`Self::commit`] writes it.
    pub fn change(&mut self, at_ms: i64, record: &Recall) {
        let seq = self.checkpoint.seq.next();
        let event = if self.rows.contains_key(&record.id) { "modified" } else { "new" };
        let element = json!({ "event": event, "seq": seq, "recordedAt": rfc3339(at_ms), "record": record });
        self.next(at_ms, Some(&element));
        self.elements.push((seq, element));
        let before = self.rows.get(&record.id).cloned();
        let place = |record: &Recall| record.is_listed().then(|| lists(record));
        let mut since = seq;
        if let Some((row, stands_since)) = before {
            if place(&row.record) == place(record) {
                since = stands_since;
            } else {
                for list in place(&row.record).into_iter().flatten() {
                    self.put_listed(&list, &row.record, stands_since, seq);
                }
            }
        }
        if since == seq {
            for list in place(record).into_iter().flatten() {
                self.put_listed(&list, record, seq, Seq(0));
            }
        }
        let since_listed = if record.is_listed() { since } else { Seq(0) };
        let row = Row { seq, since: since_listed, record: record.clone() };
        let value = serde_json::to_vec(&row).unwrap();
        self.put(&recalls::RECALLS, key![record.id.as_str()], value.clone());
        self.put(&recalls::HISTORY, key![record.id.as_str(), seq], value);
        self.rows.insert(record.id.clone(), (row, since));
        self.versions.push(Version { seq, record: record.clone() });
    }

    fn put_listed(&mut self, list: &(String, i64, i64), record: &Recall, since: Seq, until: Seq) {
        let (name, month, day) = list;
        let key = key![name.as_str(), *month, *day, record.id.as_str(), since];
        self.put(&recalls::LISTS, key, serde_json::to_vec(&ListEntry { until }).unwrap());
    }

    /// Adds a completed sync run.
    pub fn through(&mut self, at_ms: i64, upstream: &str, through_date: &str) {
        let seq = self.next(at_ms, None);
        let through = Through { upstream: upstream.to_owned(), through_date: through_date.to_owned(), finished_at: at_ms - 1_000 };
        self.put(&recalls::THROUGH, key![upstream, seq], serde_json::to_vec(&through).unwrap());
    }

    /// Appends the pending changes to the log, then commits them to the view.
    pub async fn commit(&mut self) {
        self.log_only().await;
        self.view_only().await;
    }

    /// Appends the pending changes to the log only: the view lags behind.
    pub async fn log_only(&mut self) {
        let batch: Vec<Append> = std::mem::take(&mut self.appends);
        if let Some(last) = self.log.append(batch).await.unwrap().last() {
            self.checkpoint.offset = last.next();
        }
    }

    /// Appends a change without its record to the log.
    fn logged(seq: Seq, prev_hash: Hash32, at_ms: i64) -> Append {
        let change: RecallChange = Change {
            seq,
            prev_hash,
            event: ChangeKind::Noted,
            id: String::new(),
            recorded_at: at_ms,
            input: Input::default(),
            following: 0,
            before_seq: Seq(0),
            before_since: Seq(0),
            after: None,
            before: None,
            note: None,
            through: None,
            reason: String::new(),
        };
        let value = Encoder::new(CHANGES_RECALLS.name).unwrap().encode(&change).unwrap();
        Append { topic: &CHANGES_RECALLS, partition: 0, record: Record { value: Bytes::from(value), ..Record::default() } }
    }

    /// Appends a record that extends no chain to the log.
    pub async fn zombie(&mut self) {
        let append = Self::logged(self.checkpoint.seq.next(), Hash32::of(b"zombie"), 0);
        self.log.append(vec![append]).await.unwrap();
    }

    /// Commits the changes to the view, and not to the log.
    pub async fn view_only(&mut self) {
        self.writes.extend(self.tail.take_writes(&recalls::FEED));
        let writes = std::mem::take(&mut self.writes);
        self.view.commit(writes, &self.checkpoint).await.unwrap();
    }

    /// Copies all rows into a new generation and swaps to it.
    pub async fn rebuild(&mut self) {
        let rebuilt = self.store.begin_rebuild(&recalls::VIEW).await.unwrap();
        for table in recalls::VIEW.tables.iter().copied() {
            let rows = self.view.scan(table, view_store::store::Span::default()).next(usize::MAX).await.unwrap();
            let writes = rows.into_iter().map(|(key, value)| Write::put(table, key, value)).collect();
            rebuilt.commit(writes, &self.checkpoint).await.unwrap();
        }
        self.store.swap(&rebuilt).await.unwrap();
        self.view = rebuilt;
    }

    /// The current records at `seq`, newest first, ties by identity.
    pub fn standing(&self, seq: Seq) -> Vec<&Recall> {
        let mut latest: BTreeMap<&str, &Recall> = BTreeMap::new();
        for version in self.versions.iter().filter(|version| version.seq <= seq) {
            latest.insert(&version.record.id, &version.record);
        }
        let mut all: Vec<&Recall> = latest.into_values().filter(|record| record.is_listed()).collect();
        all.sort_by(|a, b| b.date.cmp(&a.date).then_with(|| a.id.cmp(&b.id)));
        all
    }
}

/// The position of a record in the lists: list, month, day.
fn lists(record: &Recall) -> Vec<(String, i64, i64)> {
    let (month, day) = (month_of(&record.date), day_of(&record.date));
    let mut out = Vec::new();
    let others = record.agencies.iter().filter(|agency| **agency != record.agency);
    let agencies: Vec<&str> = ["*", &record.agency].into_iter().chain(others.map(String::as_str)).collect();
    for category in ["*", &record.category] {
        for agency in &agencies {
            out.push((format!("{category}/{agency}"), month, day));
        }
    }
    out
}

/// Random numbers, the same in every run.
pub struct Chance(pub u64);

impl Chance {
    /// A random number below a bound.
    pub fn below(&mut self, bound: usize) -> usize {
        self.0 = self.0.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        usize::try_from(self.0 >> 33).unwrap() % bound
    }

    /// One of several values, at random.
    pub fn one_of<'a, T: ?Sized>(&mut self, values: &[&'a T]) -> &'a T {
        values[self.below(values.len())]
    }
}

/// Values that random records are made of.
pub const WORDS: [&str; 12] =
    ["Chocolate", "choco", "Éclair", "battery", "BATTERIES", "bat", "fire", "firefly", "burn hazard", "salmonella", "18650", "180"];

/// Record number `n` with random contents.
pub fn record_by_chance(chance: &mut Chance, n: usize) -> Recall {
    let agency = recalls::AGENCIES[n % 4];
    let date = match chance.below(12) {
        0 => String::new(),
        1 => format!("{}-12-31", 1966 + chance.below(40)),
        _ => format!("202{}-{:02}-{:02}", 4 + chance.below(3), 1 + chance.below(12), 1 + chance.below(4)),
    };
    let id = format!("{agency}:{n:05}");
    let text = |chance: &mut Chance| format!("{} {}", chance.one_of(&WORDS), chance.one_of(&WORDS));
    Recall {
        agency: agency.to_owned(),
        category: recalls::CATEGORIES[chance.below(5)].to_owned(),
        title: text(chance),
        brand: text(chance),
        hazard: text(chance),
        date,
        url: format!("https://www.cpsc.gov/{id}"),
        withdrawn: chance.below(20) == 0,
        id,
        ..Recall::default()
    }
}

/// Fills a world with records and their amendments, one change every ten minutes, with sync runs between.
pub async fn fill(world: &mut World, chance: &mut Chance, changes: usize, records: usize) {
    for n in 0..changes {
        let at_ms = START_MS + world.checkpoint.seq.stored() * 600_000;
        if n % 50 == 49 {
            let (upstream, date) = (["cpsc", "openfda", "nhtsa"][n % 3], format!("2026-11-{:02}", 1 + n / 100 % 20));
            world.through(at_ms, upstream, &date);
        } else {
            let which = chance.below(records);
            let record = record_by_chance(chance, which);
            world.change(at_ms, &record);
        }
        if n % 97 == 0 {
            world.commit().await;
        }
    }
    world.commit().await;
}

/// A call without a key.
pub fn call(context: &Arc<Context>) -> Call {
    let address = IpAddr::V4(Ipv4Addr::LOCALHOST);
    let caller = Caller { tier: Tier::Anonymous, key_id: String::new(), account: String::new(), address };
    Call {
        context: Arc::clone(context),
        caller,
        form: Form::Json,
        idempotency_key: None,
        watch_token: None,
        stage: Stage::Whole,
        if_none_match: None,
    }
}

/// Runs an operation.
pub async fn ask(context: &Arc<Context>, operation: &Operation, arguments: Value) -> Result<Answer, Problem> {
    (operation.run)(call(context), arguments).await
}

/// Runs an operation and returns the answer's JSON text.
pub fn text(answer: Answer) -> String {
    match answer.body {
        Body::Json(value) => value.to_string(),
        Body::Parts(parts) => String::from_utf8(parts.concat()).unwrap(),
        body => panic!("no JSON: {body:?}"),
    }
}

/// Runs an operation and returns the answer as JSON.
pub async fn value(context: &Arc<Context>, operation: &Operation, arguments: Value) -> Value {
    let shown = arguments.to_string();
    let answer = ask(context, operation, arguments).await.unwrap_or_else(|problem| panic!("{shown}: {problem:?}"));
    serde_json::from_str(&text(answer)).unwrap()
}
