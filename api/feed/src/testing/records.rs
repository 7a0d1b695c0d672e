//! For tests: a view of records of one kind that is filled change by change, written independently of the fold of the projector.

use std::collections::BTreeMap;
use std::sync::Arc;

use bytes::Bytes;
use schemas::clock::rfc3339;
use schemas::key;
use schemas::position::Seq;
use schemas::tables::{Key, Table, Write};
use schemas::views::records::{Place, PlaceRow, Record, RecordTables, Row};
use serde_json::{Value, json};
use view_store::feed::FeedTail;
use view_store::{Checkpoint, View, ViewStore};

/// A view of records.
pub struct RecordView<R> {
    /// The tables.
    pub tables: &'static RecordTables,
    /// The live generation.
    pub view: Arc<dyn View>,
    /// The checkpoint of the last change.
    pub checkpoint: Checkpoint,
    rows: BTreeMap<String, (Seq, R)>,
    /// Since when each record has its places.
    since: BTreeMap<String, Seq>,
    tail: FeedTail,
    writes: Vec<Write>,
}

impl<R: Record> RecordView<R> {
    /// The view without changes.
    pub async fn new(store: &dyn ViewStore, tables: &'static RecordTables) -> Self {
        let view = store.live(tables.view).await.unwrap();
        let (rows, since, tail, writes) = (BTreeMap::new(), BTreeMap::new(), FeedTail::empty(), Vec::new());
        Self { tables, view, checkpoint: Checkpoint::default(), rows, since, tail, writes }
    }

    fn put(&mut self, table: &'static Table, key: Key, value: Vec<u8>) {
        self.writes.push(Write::put(table, key, Bytes::from(value)));
    }

    fn next(&mut self, at_ms: i64, element: Option<&Value>) -> Seq {
        self.checkpoint.seq = self.checkpoint.seq.next();
        let seq = self.checkpoint.seq;
        self.checkpoint.recorded_at_ms = at_ms;
        self.tail.push(seq, at_ms, element.map(|element| serde_json::to_vec(element).unwrap()).as_deref()).unwrap();
        seq
    }

    /// Adds a change that readers do not see.
    pub fn hidden(&mut self, at_ms: i64) {
        self.next(at_ms, None);
    }

    /// Adds a change of a record. The next [`Self::commit`] writes it. Returns its seq and the record before it.
    pub fn change(&mut self, at_ms: i64, after: &R) -> (Seq, Option<R>) {
        self.change_with(at_ms, after, |_| json!({}))
    }

    /// Adds a change with details, which follow from the record before it, as [`Self::change`] does.
    pub fn change_with(&mut self, at_ms: i64, after: &R, details: impl FnOnce(Option<&R>) -> Value) -> (Seq, Option<R>) {
        let seq = self.checkpoint.seq.next();
        let before = self.rows.get(after.id()).cloned();
        let event = if before.is_some() { "modified" } else { "new" };
        let mut element = json!({ "event": event, "seq": seq, "recordedAt": rfc3339(at_ms) });
        if let (Some(element), Value::Object(details)) = (element.as_object_mut(), details(before.as_ref().map(|(_, before)| before))) {
            element.extend(details);
        }
        element["record"] = json!(after);
        self.next(at_ms, Some(&element));
        let row = |seq: Seq, record: &R| serde_json::to_vec(&Row { seq, since: Seq(0), record: record.clone() }).unwrap();
        self.put(self.tables.records, key![after.id()], row(seq, after));
        let mut terms = after.terms();
        if let Some((before_seq, before)) = &before {
            self.put(self.tables.history, key![after.id(), *before_seq], row(*before_seq, before));
            terms.extend(before.terms());
        }
        for term in terms {
            if R::SEARCHED.contains(&term.dimension) {
                self.put(self.tables.names, key![term.dimension, term.shard(), term.value.as_str()], Vec::new());
            }
            self.put(self.tables.terms, key![term.text(), seq.stored() / self.tables.term_bucket, seq], Vec::new());
        }
        let before = before.map(|(_, before)| before);
        self.place(seq, before.as_ref(), after);
        self.rows.insert(after.id().to_owned(), (seq, after.clone()));
        (seq, before)
    }

    /// Writes the places of a record.
    fn place(&mut self, seq: Seq, before: Option<&R>, after: &R) {
        let Some(table) = self.tables.places else { return };
        let listed = |record: Option<&R>| record.filter(|record| record.is_listed()).map(R::places).unwrap_or_default();
        let (old, new) = (listed(before), listed(Some(after)));
        if old == new {
            return;
        }
        let since = self.since.insert(after.id().to_owned(), seq).unwrap_or_default();
        for (places, since, until) in [(old, since, seq), (new, seq, Seq(0))] {
            for Place { list, bucket, rank } in places {
                let row = serde_json::to_vec(&PlaceRow { until }).unwrap();
                self.put(table, key![list, bucket, rank, after.id(), since], row);
            }
        }
    }

    /// Commits the changes to the view.
    pub async fn commit(&mut self) {
        self.writes.extend(self.tail.take_writes(self.tables.feed));
        let writes = std::mem::take(&mut self.writes);
        self.view.commit(writes, &self.checkpoint).await.unwrap();
    }
}

impl super::World {
    /// Commits records as the changes 1, 2, … of a service, one an hour from [`super::START_MS`] on. Their details are empty.
    pub async fn fill_records<R: Record>(&self, tables: &'static RecordTables, records: &[R]) {
        let mut view = RecordView::new(&*self.store, tables).await;
        for (n, record) in (0..).zip(records) {
            view.change(super::START_MS + n * super::HOUR_MS, record);
        }
        view.commit().await;
    }
}
