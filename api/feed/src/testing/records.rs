//! For tests: the view of a service with one kind of record, filled with the first versions of some records.

use bytes::Bytes;
use schemas::clock::rfc3339;
use schemas::key;
use schemas::position::Seq;
use schemas::tables::Write;
use schemas::views::records::{Record, RecordTables, Row};
use serde_json::json;
use view_store::feed::FeedTail;
use view_store::{Checkpoint, ViewStore};

use super::{HOUR_MS, START_MS, World};

impl World {
    /// Commits records as the changes 1, 2, … of a service, one an hour from [`START_MS`] on. Their details are empty.
    pub async fn fill_records<R: Record>(&self, tables: &'static RecordTables, records: &[R]) {
        let view = self.store.live(tables.view).await.unwrap();
        let (mut tail, mut writes) = (FeedTail::empty(), Vec::new());
        let mut checkpoint = Checkpoint::default();
        for record in records {
            checkpoint.seq = checkpoint.seq.next();
            let seq = checkpoint.seq;
            checkpoint.recorded_at_ms = START_MS + (seq.stored() - 1) * HOUR_MS;
            let element = json!({ "event": "new", "seq": seq, "recordedAt": rfc3339(checkpoint.recorded_at_ms), "record": record });
            tail.push(seq, checkpoint.recorded_at_ms, Some(&serde_json::to_vec(&element).unwrap())).unwrap();
            let row = serde_json::to_vec(&Row { seq, since: Seq(0), record: record.clone() }).unwrap();
            writes.push(Write::put(tables.records, key![record.id()], Bytes::from(row)));
            for term in record.terms() {
                let name = key![term.dimension, term.shard(), term.value.as_str()];
                writes.extend(R::SEARCHED.contains(&term.dimension).then(|| Write::put(tables.names, name, Bytes::new())));
                writes.push(Write::put(tables.terms, key![term.text(), seq.stored() / tables.term_bucket, seq], Bytes::new()));
            }
        }
        writes.extend(tail.take_writes(tables.feed));
        view.commit(writes, &checkpoint).await.unwrap();
    }
}
