//! What a service makes of its current records, kept in memory for as long as their rows stay the same.
//!
//! To decode a record takes many times as long as to read its row. Promise: a value is made of the row that is read with it, so an answer is the same
//! with and without kept values.

use std::sync::Arc;

use operation::context::{Context, Part, store_problem, stored};
use operation::problem::Problem;
use quick_cache::Weighter;
use quick_cache::sync::Cache;
use schemas::key;
use schemas::position::Seq;
use schemas::tables::Key;
use schemas::views::records::{Record, Row};
use serde::de::IgnoredAny;

use crate::Feeds;
use crate::position::Position;
use crate::query::{Feed, record_at};

/// The most bytes of the values of a service.
const BYTES_MAX: u64 = 64 << 20;
/// The assumed size of a value when the number of kept values is estimated, in bytes.
const VALUE_BYTES_USUAL: u64 = 4 << 10;
/// How many bytes of memory a value needs for each byte of its row.
const BYTES_PER_ROW_BYTE: u64 = 2;

/// A kept value.
struct Kept<T> {
    /// The seq of the change that wrote the row.
    seq: Seq,
    bytes: u64,
    value: Arc<T>,
}

impl<T> Clone for Kept<T> {
    fn clone(&self) -> Self {
        Self { seq: self.seq, bytes: self.bytes, value: Arc::clone(&self.value) }
    }
}

/// Weighs a value by its bytes.
#[derive(Clone)]
struct Bytes;

impl<T> Weighter<String, Kept<T>> for Bytes {
    fn weight(&self, _: &String, kept: &Kept<T>) -> u64 {
        kept.bytes
    }
}

/// The values of one generation of a service's view, by the ids of their records.
struct Values<T>(Cache<String, Kept<T>, Bytes>);

impl<T> Values<T> {
    fn new() -> Self {
        let count = usize::try_from(BYTES_MAX / VALUE_BYTES_USUAL).unwrap_or_default();
        Self(Cache::with_weighter(count, BYTES_MAX, Bytes))
    }
}

impl Feed {
    /// What `derive` makes of each record with an id at a position; `None` where there is no such record. `derive` must depend on the record alone. Values
    /// of current records are kept, in at most 64 MiB.
    ///
    /// # Errors
    /// `unavailable`; `internal` if a row cannot be decoded.
    pub async fn derived_by_id<R: Record, T: Send + Sync + 'static>(
        &self,
        ctx: &Context,
        at: &Position,
        ids: &[String],
        derive: impl Fn(R) -> T + Send + Sync,
    ) -> Result<Vec<Option<Arc<T>>>, Problem> {
        let values = Feeds::of(ctx).cached_for(&self.source, &*at.view, Values::<T>::new);
        let keys: Vec<Key> = ids.iter().map(|id| key![id.as_str()]).collect();
        let rows = at.view.get_many(self.tables.records, &keys).await.map_err(store_problem)?;
        let mut out = Vec::with_capacity(ids.len());
        for (id, row) in ids.iter().zip(rows) {
            let head = row.as_ref().map(|bytes| stored::<Row<IgnoredAny>>(self.tables.records, bytes)).transpose()?;
            let (Some(bytes), Some(seq)) = (row, head.map(|head| head.seq).filter(|seq| *seq <= at.seq)) else {
                let earlier = record_at::<R>(&*at.view, self.tables, id, at.seq).await?;
                out.push(earlier.map(|row| Arc::new(derive(row.record))));
                continue;
            };
            if let Some(kept) = values.0.get(id).filter(|kept| kept.seq == seq) {
                out.push(Some(kept.value));
                continue;
            }
            let value = Arc::new(derive(stored::<Row<R>>(self.tables.records, &bytes)?.record));
            let bytes = BYTES_PER_ROW_BYTE * bytes.len() as u64;
            values.0.insert(id.clone(), Kept { seq, bytes, value: Arc::clone(&value) });
            out.push(Some(value));
        }
        Ok(out)
    }
}
