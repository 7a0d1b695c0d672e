//! A gate that holds a process at one of its steps: wrappers of log, store and view whose calls block from the n-th call on until released.
//!
//! All calls from the n-th on block, as in a process that got SIGSTOP. An upstream's answer to an earlier request may still arrive.

use std::collections::BTreeSet;
use std::sync::Arc;
use std::time::Duration;

use async_trait::async_trait;
use bytes::Bytes;
use event_log::{Append, EventLog, Stored};
use projector::rebuild::Parts;
use schemas::position::LogOffset;
use schemas::tables::{Key, Table, ViewDef, Write};
use schemas::topics::Topic;
use tokio::sync::watch;
use view_store::store::{Scan, Span};
use view_store::{Awaited, Checkpoint, Coordination, Range, View, ViewStore};

/// The state of a gated process.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum State {
    /// This many calls may still pass.
    Open(u64),
    Held,
    Free,
}

/// Counts the calls of one process and holds the process at one of them.
pub(crate) struct Gate {
    state: watch::Sender<State>,
    /// Whether an append can be held before each of its records, as in a log that appends them one by one.
    is_torn: bool,
    /// The views that were woken.
    pub(crate) woken: watch::Sender<BTreeSet<&'static str>>,
}

impl Gate {
    /// Returns an open gate.
    pub(crate) fn new(is_torn: bool) -> Arc<Self> {
        Arc::new(Self { state: watch::Sender::new(State::Free), is_torn, woken: watch::Sender::default() })
    }

    /// Lets this many calls pass and holds the process at the next one.
    pub(crate) fn hold_after(&self, calls: u64) {
        self.state.send_replace(State::Open(calls));
    }

    /// Waits until the process is held.
    pub(crate) async fn held(&self) {
        self.state.subscribe().wait_for(|state| *state == State::Held).await.unwrap();
    }

    /// Lets the process continue.
    pub(crate) fn release(&self) {
        self.state.send_replace(State::Free);
    }

    /// Passes one call, or blocks it.
    async fn pass(&self) {
        self.state.send_if_modified(|state| match *state {
            State::Open(0) => {
                *state = State::Held;
                true
            }
            State::Open(left) => {
                *state = State::Open(left - 1);
                false
            }
            State::Held | State::Free => false,
        });
        self.state.subscribe().wait_for(|state| *state != State::Held).await.unwrap();
    }

    /// Returns log, store and engine view behind this gate.
    pub(crate) fn parts(self: &Arc<Self>, parts: &Parts) -> Parts {
        Parts {
            log: Arc::new(GatedLog { log: Arc::clone(&parts.log), gate: Arc::clone(self) }),
            store: Arc::new(GatedStore { store: Arc::clone(&parts.store), gate: Arc::clone(self) }),
            engine: self.view(&parts.engine),
            ..parts.clone()
        }
    }

    /// Returns a view behind this gate.
    pub(crate) fn view(self: &Arc<Self>, view: &Arc<dyn View>) -> Arc<dyn View> {
        Arc::new(GatedView { view: Arc::clone(view), gate: Arc::clone(self) })
    }
}

struct GatedLog {
    log: Arc<dyn EventLog>,
    gate: Arc<Gate>,
}

#[async_trait]
impl EventLog for GatedLog {
    async fn append(&self, batch: Vec<Append>) -> Result<Vec<LogOffset>, event_log::Error> {
        self.gate.pass().await;
        if !self.gate.is_torn {
            return self.log.append(batch).await;
        }
        let mut offsets = Vec::with_capacity(batch.len());
        for (at, append) in batch.into_iter().enumerate() {
            if at > 0 {
                self.gate.pass().await;
            }
            offsets.extend(self.log.append(vec![append]).await?);
        }
        Ok(offsets)
    }

    async fn read(
        &self,
        topic: &'static Topic,
        partition: u32,
        from: LogOffset,
        records_max: usize,
        bytes_max: usize,
    ) -> Result<Vec<Stored>, event_log::Error> {
        self.gate.pass().await;
        self.log.read(topic, partition, from, records_max, bytes_max).await
    }

    async fn end(&self, topic: &'static Topic, partition: u32) -> Result<LogOffset, event_log::Error> {
        self.gate.pass().await;
        self.log.end(topic, partition).await
    }

    async fn wait_past(&self, topic: &'static Topic, partition: u32, end: LogOffset) -> Result<(), event_log::Error> {
        self.gate.pass().await;
        self.log.wait_past(topic, partition, end).await
    }

    async fn close(&self) -> Result<(), event_log::Error> {
        self.log.close().await
    }
}

struct GatedView {
    view: Arc<dyn View>,
    gate: Arc<Gate>,
}

#[async_trait]
impl View for GatedView {
    fn def(&self) -> &'static ViewDef {
        self.view.def()
    }

    fn generation(&self) -> u64 {
        self.view.generation()
    }

    async fn checkpoint(&self) -> Result<Checkpoint, view_store::Error> {
        self.gate.pass().await;
        self.view.checkpoint().await
    }

    async fn commit(&self, writes: Vec<Write>, checkpoint: &Checkpoint) -> Result<(), view_store::Error> {
        self.gate.pass().await;
        self.view.commit(writes, checkpoint).await
    }

    async fn get(&self, table: &'static Table, key: &Key) -> Result<Option<Bytes>, view_store::Error> {
        self.gate.pass().await;
        self.view.get(table, key).await
    }

    async fn get_many(&self, table: &'static Table, keys: &[Key]) -> Result<Vec<Option<Bytes>>, view_store::Error> {
        self.gate.pass().await;
        self.view.get_many(table, keys).await
    }

    async fn range(&self, table: &'static Table, range: Range) -> Result<Vec<(Key, Bytes)>, view_store::Error> {
        self.gate.pass().await;
        self.view.range(table, range).await
    }

    fn scan(&self, table: &'static Table, span: Span) -> Box<dyn Scan> {
        Box::new(GatedScan { scan: self.view.scan(table, span), gate: Arc::clone(&self.gate) })
    }

    async fn wait_past(&self, seen: &Checkpoint) -> Result<Checkpoint, view_store::Error> {
        self.gate.pass().await;
        self.view.wait_past(seen).await
    }

    async fn wait_for_any(&self, awaited: &[Awaited]) -> Result<(), view_store::Error> {
        self.gate.pass().await;
        self.view.wait_for_any(awaited).await
    }

    fn wake(&self) {
        self.gate.woken.send_modify(|views| {
            views.insert(self.view.def().name);
        });
        self.view.wake();
    }
}

struct GatedScan {
    scan: Box<dyn Scan>,
    gate: Arc<Gate>,
}

#[async_trait]
impl Scan for GatedScan {
    async fn next(&mut self, rows_max: usize) -> Result<Vec<(Key, Bytes)>, view_store::Error> {
        self.gate.pass().await;
        self.scan.next(rows_max).await
    }
}

struct GatedStore {
    store: Arc<dyn ViewStore>,
    gate: Arc<Gate>,
}

#[async_trait]
impl ViewStore for GatedStore {
    /// True, as for a process among others.
    fn is_shared(&self) -> bool {
        true
    }

    async fn live(&self, def: &'static ViewDef) -> Result<Arc<dyn View>, view_store::Error> {
        self.gate.pass().await;
        Ok(self.gate.view(&self.store.live(def).await?))
    }

    async fn begin_rebuild(&self, def: &'static ViewDef) -> Result<Arc<dyn View>, view_store::Error> {
        self.store.begin_rebuild(def).await
    }

    async fn swap(&self, rebuilt: &Arc<dyn View>) -> Result<(), view_store::Error> {
        self.store.swap(rebuilt).await
    }

    async fn discard(&self, rebuilt: &Arc<dyn View>) -> Result<(), view_store::Error> {
        self.store.discard(rebuilt).await
    }

    fn coordination(&self) -> &dyn Coordination {
        self
    }

    async fn close(&self) -> Result<(), view_store::Error> {
        self.store.close().await
    }
}

#[async_trait]
impl Coordination for GatedStore {
    async fn lease(&self, name: &str, holder: &str, ttl: Duration) -> Result<bool, view_store::Error> {
        self.gate.pass().await;
        self.store.coordination().lease(name, holder, ttl).await
    }

    async fn holder(&self, name: &str) -> Result<Option<String>, view_store::Error> {
        self.gate.pass().await;
        self.store.coordination().holder(name).await
    }

    async fn release(&self, name: &str, holder: &str) -> Result<(), view_store::Error> {
        self.gate.pass().await;
        self.store.coordination().release(name, holder).await
    }

    async fn add_to_counter(&self, name: &str, amount: i64, max: i64, now_ms: i64, expires_ms: i64) -> Result<i64, view_store::Error> {
        self.gate.pass().await;
        self.store.coordination().add_to_counter(name, amount, max, now_ms, expires_ms).await
    }

    async fn value(&self, name: &str) -> Result<Option<String>, view_store::Error> {
        self.gate.pass().await;
        self.store.coordination().value(name).await
    }

    async fn store_if_absent(&self, name: &str, value: &str) -> Result<String, view_store::Error> {
        self.gate.pass().await;
        self.store.coordination().store_if_absent(name, value).await
    }

    async fn store(&self, name: &str, value: &str) -> Result<(), view_store::Error> {
        self.gate.pass().await;
        self.store.coordination().store(name, value).await
    }

    async fn compare_and_store(&self, name: &str, current: Option<&str>, value: &str) -> Result<bool, view_store::Error> {
        self.gate.pass().await;
        self.store.coordination().compare_and_store(name, current, value).await
    }

    async fn values(&self) -> Result<Vec<(String, String)>, view_store::Error> {
        self.gate.pass().await;
        self.store.coordination().values().await
    }
}
