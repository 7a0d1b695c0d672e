//! A harness with a log, a store and one service's decider in a temporary directory.

use std::sync::Arc;

use bytes::Bytes;
use event_log::embedded::EmbeddedLog;
use event_log::{Append, EventLog, Headers, Record};
use projector::decider::Decider;
use projector::heads::Heads;
use projector::rebuild;
use projector::service_def::ServiceDef;
use recalls::rules::Recalls;
use schemas::avro::Encoder;
use schemas::clock::Clock;
use schemas::event::{Fact, FactKind, Head, Run, content_hash};
use schemas::facts::recalls::RecallFact;
use schemas::position::LogOffset;
use schemas::topics::RECALLS;
use schemas::views::engine::VIEW as ENGINE;
use schemas::views::recalls::{RECALLS as ROWS, Recall, Row, VIEW};
use view_store::embedded::EmbeddedStore;
use view_store::{View, ViewStore};

/// The time of every test's clock.
pub(crate) const NOW: &str = "2026-11-20T12:00:00Z";

pub(crate) struct Engine {
    pub(crate) log: Arc<dyn EventLog>,
    pub(crate) store: Arc<dyn ViewStore>,
    pub(crate) engine: Arc<dyn View>,
    pub(crate) heads: Heads,
    pub(crate) decider: Decider<Recalls>,
    encoder: Encoder,
    pub(crate) dir: tempfile::TempDir,
}

/// The content of a test fact.
#[derive(Clone, Debug)]
#[expect(clippy::large_enum_variant, reason = "few of them, in a test")]
pub(crate) enum Content {
    Observed(RecallFact),
    Withdrawn,
    Superseded(String),
}

impl Engine {
    pub(crate) async fn new() -> Self {
        let dir = tempfile::tempdir().unwrap();
        let store = EmbeddedStore::open(&dir.path().join("views"), view_store::embedded::Options::default()).unwrap();
        Self::on(store, dir).await
    }

    /// Creates the harness on a store of the test's own.
    pub(crate) async fn on(store: Arc<dyn ViewStore>, dir: tempfile::TempDir) -> Self {
        let log: Arc<dyn EventLog> = EmbeddedLog::open(&dir.path().join("log"), event_log::embedded::Options::default()).unwrap();
        let engine = store.live(&ENGINE).await.unwrap();
        let heads = Heads::new(Arc::clone(&log), Arc::clone(&engine), services());
        let view = store.live(&VIEW).await.unwrap();
        let decider = Decider::open(Arc::clone(&log), Arc::clone(&engine), view, clock()).await.unwrap();
        let encoder = Encoder::new(RECALLS.name).unwrap();
        Self { log, store, engine, heads, decider, encoder, dir }
    }

    /// Opens a second decider of the same service.
    pub(crate) async fn second_decider(&self) -> Decider<Recalls> {
        let view = self.store.live(&VIEW).await.unwrap();
        Decider::open(Arc::clone(&self.log), Arc::clone(&self.engine), view, clock()).await.unwrap()
    }

    /// Creates the fact that extends a head.
    pub(crate) fn fact(&self, key: &str, head: &Head, content: &Content) -> Fact<RecallFact> {
        let (kind, canonical, data, superseded_by) = match content {
            Content::Observed(data) => (FactKind::Observed, data.canonical(), Some(data.clone()), ""),
            Content::Withdrawn => (FactKind::Withdrawn, Vec::new(), None, ""),
            Content::Superseded(by) => (FactKind::Superseded, by.clone().into_bytes(), None, by.as_str()),
        };
        let next = Fact::after(head, RECALLS.name, kind, key.to_owned(), content_hash(kind, &canonical));
        Fact { upstream: "test".to_owned(), observed_at: clock().now_ms(), superseded_by: superseded_by.to_owned(), data, ..next }
    }

    /// Creates the end of a run that covers facts up to the given end offsets.
    pub(crate) fn run_finished(&self, ends: Vec<LogOffset>) -> Fact<RecallFact> {
        let mut fact = self.fact("@run/test", &Head::default(), &Content::Withdrawn);
        fact.kind = FactKind::RunFinished;
        fact.run = Some(Run { ends, through_date: "2026-11-20".to_owned(), ..Run::default() });
        fact
    }

    /// Appends facts unchanged, in one batch.
    pub(crate) async fn append(&mut self, facts: &[Fact<RecallFact>]) -> Vec<LogOffset> {
        let batch = facts
            .iter()
            .map(|fact| {
                let value = Bytes::from(self.encoder.encode(fact).unwrap());
                let record = Record { key: Bytes::from(fact.key.clone()), value, headers: Headers::default(), at_ms: 0 };
                Append { topic: &RECALLS, partition: RECALLS.partition_of(fact.key.as_bytes()), record }
            })
            .collect();
        self.log.append(batch).await.unwrap()
    }

    /// Appends facts with chained versions, and decides them.
    pub(crate) async fn append_and_decide(&mut self, content: &[(String, Content)]) {
        self.append_chained(content).await;
        self.decider.catch_up().await.unwrap();
    }

    /// Appends facts with chained versions, without deciding them.
    pub(crate) async fn append_chained(&mut self, content: &[(String, Content)]) {
        let mut heads: std::collections::HashMap<String, Head> = std::collections::HashMap::new();
        let mut facts = Vec::new();
        for (key, content) in content {
            let head = match heads.get(key) {
                Some(head) => *head,
                None => self.head(key).await,
            };
            let fact = self.fact(key, &head, content);
            heads.insert(key.clone(), fact.head());
            facts.push(fact);
        }
        self.append(&facts).await;
        self.heads.catch_up().await.unwrap();
    }

    pub(crate) async fn catch_up(&mut self) {
        self.heads.catch_up().await.unwrap();
        self.decider.catch_up().await.unwrap();
    }

    pub(crate) async fn head(&self, key: &str) -> Head {
        let row = self.engine.get(&schemas::views::engine::HEADS, &schemas::key![RECALLS.name, key]).await.unwrap();
        row.and_then(|row| schemas::views::engine::HeadRow::from_bytes(&row)).unwrap_or_default().head
    }

    pub(crate) async fn record(&self, id: &str) -> Option<Recall> {
        let row = self.decider.view().get(&ROWS, &schemas::key![id]).await.unwrap()?;
        Some(serde_json::from_slice::<Row>(&row).unwrap().record)
    }

    pub(crate) async fn digest(&self) -> String {
        rebuild::digest::<Recalls>(&**self.decider.view(), false, None).await.unwrap().to_string()
    }

    pub(crate) fn parts(&self) -> rebuild::Parts {
        rebuild::Parts {
            log: Arc::clone(&self.log),
            store: Arc::clone(&self.store),
            engine: Arc::clone(&self.engine),
            services: services(),
            projected: services().into(),
            clock: clock(),
            keys: Arc::default(),
            signing_check: None,
        }
    }
}

/// The services of the harness.
pub(crate) fn services() -> &'static [ServiceDef] {
    const SERVICES: &[ServiceDef] = &[ServiceDef::of::<Recalls>()];
    SERVICES
}

pub(crate) fn clock() -> Clock {
    Clock::Fixed(NOW.parse().unwrap())
}

/// Creates a recall of a stream, with a title, brand and date.
pub(crate) fn recall(stream: &str, agency: &str, number: &str, title: &str, brand: &str, date: &str) -> RecallFact {
    RecallFact {
        stream: stream.into(),
        agency: agency.into(),
        number: number.into(),
        lang: "en".into(),
        title: title.into(),
        brand: brand.into(),
        date: date.into(),
        url: format!("https://example.org/{stream}/{number}"),
        ..RecallFact::default()
    }
}
