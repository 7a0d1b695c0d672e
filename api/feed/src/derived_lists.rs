//! Lists of what a service makes of its current records, in memory for all calls.
//!
//! To decode a record takes many times as long as to read its row, and a list of a common key has thousands. So a value is made once of each version of a
//! record, and a list is read once; both remain until the feed has a change that touches them. Promise: an answer is the same with and without them.

use std::collections::{HashMap, HashSet};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use operation::context::{Context, Part, store_problem, stored};
use operation::problem::Problem;
use schemas::key;
use schemas::position::Seq;
use schemas::tables::Key;
use schemas::views::records::{Record, Row};
use tokio::sync::Mutex as AsyncMutex;

use crate::Feeds;
use crate::filter::{Element, read};
use crate::places::{PLACES_MAX, Segment, Total, Walk};
use crate::position::Position;
use crate::query::{Feed, earlier_record};

/// The most bytes of the values of a service. When they are more, all of them are dropped, and those that are asked for are made again.
const BYTES_MAX: u64 = 128 << 20;
/// What an entry needs in addition to its value, in bytes.
const ENTRY_BYTES: u64 = 128;
/// With more new changes than this, all values are dropped instead of reading the changes.
const FOLLOWED_CHANGES_MAX: u64 = 2_000;
/// How many rows are read and decoded before other tasks have their turn.
const ROWS_AT_ONCE: usize = 100;

/// What is made of a record, from the record alone.
pub trait Derived<R>: Send + Sync + 'static {
    /// Makes it.
    fn of(record: R) -> Self;

    /// The approximate size in memory, in bytes.
    fn bytes(&self) -> u64;
}

/// The values of a list, in its order.
pub type DerivedList<T> = Arc<Vec<Arc<T>>>;

/// A value, with the change that wrote the row which it is made of.
struct Made<T> {
    seq: Seq,
    /// What it needs in memory.
    bytes: u64,
    value: Arc<T>,
}

/// The lists and values of one generation of a service's view.
struct Catalog<T> {
    state: Mutex<State<T>>,
    /// Held while rows are read, so that concurrent calls do not make the same values.
    load_lock: AsyncMutex<()>,
    bytes_max: u64,
}

struct State<T> {
    /// The position of everything here; `None` before the first call.
    upto: Option<Seq>,
    values: HashMap<String, Made<T>>,
    /// By name and bucket.
    lists: HashMap<(String, i64), DerivedList<T>>,
    /// The bytes of the values and of the lists.
    bytes: u64,
}

impl<T> Default for State<T> {
    fn default() -> Self {
        Self { upto: None, values: HashMap::new(), lists: HashMap::new(), bytes: 0 }
    }
}

/// The records and lists that changes touch.
#[derive(Default)]
struct Touched {
    ids: HashSet<String>,
    lists: HashSet<String>,
}

impl<T: Send + Sync + 'static> Catalog<T> {
    fn new(bytes_max: u64) -> Self {
        Self { state: Mutex::default(), load_lock: AsyncMutex::default(), bytes_max }
    }

    fn state(&self) -> MutexGuard<'_, State<T>> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// A list at a position, if it is here.
    fn list(&self, at: Seq, list: &(String, i64)) -> Option<DerivedList<T>> {
        let state = self.state();
        if state.upto == Some(at) { state.lists.get(list).map(Arc::clone) } else { None }
    }

    /// The values of records at a position, as far as they are here.
    fn values(&self, at: Seq, ids: &[String]) -> Vec<Option<Arc<T>>> {
        let state = self.state();
        let is_known = state.upto.is_some_and(|upto| upto >= at);
        // A value is that of every position from its own change on.
        let known = |id: &String| state.values.get(id).filter(|made| is_known && made.seq <= at).map(|made| Arc::clone(&made.value));
        ids.iter().map(known).collect()
    }

    /// Keeps values that were made at a position.
    fn add_values(&self, at: Seq, made: Vec<(String, Made<T>)>) {
        let mut state = self.state();
        if state.upto != Some(at) {
            return;
        }
        for (id, made) in made {
            // Another call was faster. Lists may hold its value, and go with it.
            if state.values.contains_key(&id) {
                continue;
            }
            if state.bytes + made.bytes > self.bytes_max {
                *state = State { upto: state.upto, ..State::default() };
            }
            state.bytes += made.bytes;
            state.values.insert(id, made);
        }
    }

    /// Keeps a list that was read at a position, if all its values are here.
    fn add_list(&self, at: Seq, list: (String, i64), ids: &[String], values: &DerivedList<T>) {
        let mut state = self.state();
        let bytes = bytes_of_list(&list.0, values);
        let is_here = |(id, value): (&String, &Arc<T>)| state.values.get(id).is_some_and(|made| Arc::ptr_eq(&made.value, value));
        let has_all = ids.len() == values.len() && ids.iter().zip(values.iter()).all(is_here);
        if state.upto == Some(at) && has_all && state.bytes + bytes <= self.bytes_max {
            let before = state.lists.insert(list, Arc::clone(values)).map_or(0, |_| bytes);
            state.bytes += bytes - before;
        }
    }

    /// Moves to a later position. `None` stands for changes that were not read: then nothing remains.
    fn advance(&self, from: Option<Seq>, to: Seq, touched: Option<Touched>) {
        let mut state = self.state();
        // Another call was faster.
        if state.upto != from {
            return;
        }
        let Some(touched) = touched else {
            *state = State { upto: Some(to), ..State::default() };
            return;
        };
        // The dropped values are held until their lists are searched, so that no other value has their address.
        let dropped: Vec<Made<T>> = touched.ids.iter().filter_map(|id| state.values.remove(id)).collect();
        let addresses: HashSet<*const T> = dropped.iter().map(|made| Arc::as_ptr(&made.value)).collect();
        let mut freed: u64 = dropped.iter().map(|made| made.bytes).sum();
        state.lists.retain(|(list, _), values| {
            let remains = !touched.lists.contains(list) && !values.iter().any(|value| addresses.contains(&Arc::as_ptr(value)));
            if !remains {
                freed += bytes_of_list(list, values);
            }
            remains
        });
        state.bytes = state.bytes.saturating_sub(freed);
        state.upto = Some(to);
    }
}

/// What a list needs in memory in addition to its values, in bytes.
fn bytes_of_list<T>(list: &str, values: &[Arc<T>]) -> u64 {
    ENTRY_BYTES + (list.len() + size_of_val(values)) as u64
}

impl Feed {
    /// What is made of each record in a bucket of a list, at a position, in the order of the list. Of the latest position, values and lists are kept for
    /// later calls, in at most 128 MiB.
    ///
    /// # Errors
    /// `unavailable`; `internal` if a row cannot be decoded.
    pub async fn derived_list<R: Record, T: Derived<R>>(
        &self,
        ctx: &Context,
        at: &Position,
        (list, bucket): (&str, i64),
    ) -> Result<DerivedList<T>, Problem> {
        let catalog = self.catalog::<R, T>(ctx, at).await?;
        let is_latest = at.is_latest();
        let name = (list.to_owned(), bucket);
        if let Some(values) = catalog.list(at.seq, &name) {
            return Ok(values);
        }
        // What is made for an earlier position is not kept, so others do not wait for it.
        let _loading = if is_latest { Some(catalog.load_lock.lock().await) } else { None };
        if let Some(values) = catalog.list(at.seq, &name) {
            return Ok(values);
        }
        let ids = self.ids_of::<R>(ctx, at, list, bucket).await?;
        let values = Arc::new(self.values_of::<R, T>(at, &catalog, &ids).await?);
        catalog.add_list(at.seq, name, &ids, &values);
        Ok(values)
    }

    /// What is made of the records with some ids, at a position, in the same order. One that does not exist is left out. Values are kept as those of lists are.
    ///
    /// # Errors
    /// `unavailable`; `internal` if a row cannot be decoded.
    pub async fn derived<R: Record, T: Derived<R>>(&self, ctx: &Context, at: &Position, ids: &[String]) -> Result<Vec<Arc<T>>, Problem> {
        let catalog = self.catalog::<R, T>(ctx, at).await?;
        self.values_of::<R, T>(at, &catalog, ids).await
    }

    /// What is kept of a service, at the position if it is the latest one.
    async fn catalog<R: Record, T: Derived<R>>(&self, ctx: &Context, at: &Position) -> Result<Arc<Catalog<T>>, Problem> {
        let catalog = Feeds::of(ctx).cached_for(&self.source, &*at.view, || Catalog::<T>::new(BYTES_MAX));
        if at.is_latest() {
            self.follow::<R, T>(ctx, at, &catalog).await?;
        }
        Ok(catalog)
    }

    /// The ids of the records of a list.
    async fn ids_of<R: Record>(&self, ctx: &Context, at: &Position, list: &str, bucket: i64) -> Result<Vec<String>, Problem> {
        let (mut ids, mut after) = (Vec::new(), None);
        loop {
            let part = Segment { buckets: bucket..=bucket, ranks: i64::MIN..=i64::MAX };
            let walk = Walk { list, part, filter: "", limit: PLACES_MAX, after: after.as_deref() };
            let page = self.ranked_ids::<R>(ctx, at, walk, Total::Counted).await?;
            ids.extend(page.items);
            match page.next {
                Some(next) => after = Some(next),
                None => return Ok(ids),
            }
        }
    }

    /// The values of records at a position: those that are known, and the others made of their rows. One whose record does not exist is left out.
    async fn values_of<R: Record, T: Derived<R>>(
        &self,
        at: &Position,
        catalog: &Catalog<T>,
        ids: &[String],
    ) -> Result<Vec<Arc<T>>, Problem> {
        let mut values = Vec::with_capacity(ids.len());
        for ids in ids.chunks(ROWS_AT_ONCE) {
            let mut known = catalog.values(at.seq, ids);
            let unknown: Vec<&String> = ids.iter().zip(&known).filter(|(_, value)| value.is_none()).map(|(id, _)| id).collect();
            let mut made = self.made::<R, T>(at, &unknown).await?.into_iter();
            let mut kept = Vec::with_capacity(unknown.len());
            for (id, value) in ids.iter().zip(&mut known) {
                if value.is_some() {
                    continue;
                }
                match made.next().flatten() {
                    Some(one) => {
                        *value = Some(Arc::clone(&one.value));
                        kept.push((id.clone(), one));
                    }
                    None => tracing::error!(id, seq = at.seq.0, "a list names a record that does not exist"),
                }
            }
            if !kept.is_empty() {
                catalog.add_values(at.seq, kept);
                tokio::task::yield_now().await;
            }
            values.extend(known.into_iter().flatten());
        }
        Ok(values)
    }

    /// Makes the values of records at a position. Each row is decoded once.
    async fn made<R: Record, T: Derived<R>>(&self, at: &Position, ids: &[&String]) -> Result<Vec<Option<Made<T>>>, Problem> {
        if ids.is_empty() {
            return Ok(Vec::new());
        }
        let keys: Vec<Key> = ids.iter().map(|id| key![id.as_str()]).collect();
        let rows = at.view.get_many(self.tables.records, &keys).await.map_err(store_problem)?;
        let mut made = Vec::with_capacity(ids.len());
        for (id, row) in ids.iter().zip(rows) {
            let current: Option<Row<R>> = row.map(|bytes| stored(self.tables.records, &bytes)).transpose()?;
            let row = match current.filter(|row| row.seq <= at.seq) {
                Some(row) => Some(row),
                None => earlier_record::<R>(&*at.view, self.tables, id, at.seq).await?,
            };
            made.push(row.map(|row| {
                let (seq, value) = (row.seq, T::of(row.record));
                Made { seq, bytes: ENTRY_BYTES + id.len() as u64 + value.bytes(), value: Arc::new(value) }
            }));
        }
        Ok(made)
    }

    /// Moves the catalog to a later position: drops what the changes since its own touch.
    async fn follow<R: Record, T: Derived<R>>(&self, ctx: &Context, at: &Position, catalog: &Catalog<T>) -> Result<(), Problem> {
        let from = catalog.state().upto;
        match from {
            Some(upto) if upto >= at.seq => {}
            Some(upto) if at.seq.since(upto) <= FOLLOWED_CHANGES_MAX => {
                let touched = self.touched::<R>(ctx, at, upto).await?;
                catalog.advance(from, at.seq, Some(touched));
            }
            _ => catalog.advance(from, at.seq, None),
        }
        Ok(())
    }

    /// What the changes after a position touch, up to another one. Changes that the feed does not show are of no record.
    async fn touched<R: Record>(&self, ctx: &Context, at: &Position, after: Seq) -> Result<Touched, Problem> {
        let reader = Feeds::of(ctx).reader(&self.source, Arc::clone(&at.view));
        let (mut touched, mut seq) = (Touched::default(), after.next());
        while seq <= at.seq {
            let block = reader.block(seq).await.map_err(store_problem)?;
            let last = block.last_seq().min(at.seq);
            for element in seq.up_to(last).filter_map(|seq| block.element(seq)) {
                let change: Element<R> = read(&element)?;
                touched.ids.insert(change.record.id().to_owned());
                touched.lists.extend(change.record.places().into_iter().map(|place| place.list));
            }
            seq = last.next();
        }
        Ok(touched)
    }
}

#[cfg(test)]
#[path = "derived_tests.rs"]
mod tests;
