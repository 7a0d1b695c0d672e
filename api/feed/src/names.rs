//! The values of searched dimensions, used to resolve a part of a name or the beginning of a code to values.
//!
//! Promise: a look-up at a position finds every value of every change up to that position. The values are read from their table once per
//! generation and then updated from the feed. They are few compared with the changes, and are held in memory.

use std::collections::{BTreeSet, HashMap};
use std::marker::PhantomData;
use std::sync::{Arc, PoisonError, RwLock};

use filter_values::sorted_values::SortedValues;
use operation::context::{Context, Part, store_problem};
use operation::problem::Problem;
use schemas::error_code::ErrorCode;
use schemas::key;
use schemas::position::Seq;
use schemas::tables::Datum;
use schemas::views::records::{NAME_SHARDS, Record, RecordTables, normal};
use texts::folding::folded;
use tokio::sync::Mutex as AsyncMutex;
use view_store::feed::FeedReader;
use view_store::{Range, View};

use super::filter::Element;
use super::position::Position;
use super::{Feeds, Source};

const PAGE_ROWS: usize = 2_000;
/// With more new changes than this, the table is read again instead of the feed.
const APPLIED_CHANGES_MAX: u64 = 50_000;

/// The values of searched dimensions in one generation of a service's view.
pub struct Names<R> {
    tables: &'static RecordTables,
    known: RwLock<KnownValues>,
    /// Held while rows are read, so that they are read only once.
    load_lock: AsyncMutex<()>,
    records: PhantomData<fn() -> R>,
}

#[derive(Default)]
struct KnownValues {
    /// All values of the changes up to this seq are in `values`.
    upto: Option<Seq>,
    values: HashMap<&'static str, Arc<SortedValues>>,
}

impl Feeds {
    /// The names in a service's records, cached for one generation of its view.
    pub fn names<R: Record>(&self, source: &Source, tables: &'static RecordTables, view: &dyn View) -> Arc<Names<R>> {
        self.cached_for(source, view, || Names::new(tables))
    }
}

impl<R: Record> Names<R> {
    fn new(tables: &'static RecordTables) -> Self {
        Self { tables, known: RwLock::default(), load_lock: AsyncMutex::default(), records: PhantomData }
    }

    /// The values of a dimension in the changes up to a position. Values of later changes may be included.
    ///
    /// # Errors
    /// When rows cannot be read.
    pub async fn at(self: &Arc<Self>, reader: &FeedReader, dimension: &'static str, seq: Seq) -> Result<Arc<SortedValues>, Problem> {
        if let Some(values) = self.known(dimension, seq) {
            return Ok(values);
        }
        // In a task of its own, so that the result is cached even if the request ends early.
        let (this, reader) = (Arc::clone(self), reader.clone());
        tokio::spawn(async move { this.catch_up(&reader, dimension, seq).await }).await.unwrap_or_else(|error| {
            tracing::error!(%error, "task that reads names panicked");
            Err(Problem::new(ErrorCode::Internal, "the names could not be read"))
        })
    }

    /// The values of a dimension that contain a text, without case and accents, at most `values_max` plus one: the extra value shows that there are too many.
    /// They are those of the changes up to a position; values of later changes may be included.
    ///
    /// # Errors
    /// When rows cannot be read.
    pub async fn containing(
        self: &Arc<Self>,
        reader: &FeedReader,
        dimension: &'static str,
        seq: Seq,
        part: &str,
        values_max: usize,
    ) -> Result<Vec<String>, Problem> {
        Ok(self.at(reader, dimension, seq).await?.containing(&folded(&normal(part)), values_max))
    }

    async fn catch_up(&self, reader: &FeedReader, dimension: &'static str, seq: Seq) -> Result<Arc<SortedValues>, Problem> {
        let _loading = self.load_lock.lock().await;
        if let Some(values) = self.known(dimension, seq) {
            return Ok(values);
        }
        let upto = self.known.read().unwrap_or_else(PoisonError::into_inner).upto;
        match upto {
            Some(upto) if seq.since(upto) <= APPLIED_CHANGES_MAX => self.apply_changes(reader, upto, seq).await?,
            _ => self.load(reader.view().as_ref(), seq).await?,
        }
        Ok(self.known(dimension, seq).unwrap_or_default())
    }

    fn known(&self, dimension: &str, seq: Seq) -> Option<Arc<SortedValues>> {
        let known = self.known.read().unwrap_or_else(PoisonError::into_inner);
        (known.upto? >= seq).then(|| known.values.get(dimension).map(Arc::clone).unwrap_or_default())
    }

    /// Reads the table. It holds the values of every change up to a checkpoint that was read before.
    async fn load(&self, view: &dyn View, seq: Seq) -> Result<(), Problem> {
        let upto = view.checkpoint().await.map_err(store_problem)?.seq.max(seq);
        let mut values = HashMap::new();
        for &dimension in R::SEARCHED {
            let mut found = SortedValues::default();
            for shard in 0..NAME_SHARDS {
                let mut range = Range { prefix: key![dimension, shard], after: None, from: None, limit: PAGE_ROWS, reverse: false };
                loop {
                    let rows = view.range(self.tables.names, range.clone()).await.map_err(store_problem)?;
                    let is_last = rows.len() < PAGE_ROWS;
                    range.after = rows.last().map(|(key, _)| key.clone());
                    let names = rows.into_iter().filter_map(|(key, _)| match key.into_iter().nth(2) {
                        Some(Datum::Text(name)) => Some(name),
                        _ => None,
                    });
                    found.extend(names.collect());
                    if is_last {
                        break;
                    }
                }
            }
            found.compact();
            values.insert(dimension, Arc::new(found));
        }
        *self.known.write().unwrap_or_else(PoisonError::into_inner) = KnownValues { upto: Some(upto), values };
        Ok(())
    }

    /// Adds the values of the changes between two positions.
    async fn apply_changes(&self, reader: &FeedReader, from: Seq, to: Seq) -> Result<(), Problem> {
        let mut found: HashMap<&'static str, Vec<String>> = HashMap::new();
        let mut seq = from.next();
        while seq <= to {
            let block = reader.block(seq).await.map_err(store_problem)?;
            let last = block.last_seq().min(to);
            for element in seq.up_to(last).filter_map(|seq| block.element(seq)) {
                let change: Element<R> = super::filter::read(&element)?;
                for term in change.record.terms().into_iter().filter(|term| R::SEARCHED.contains(&term.dimension)) {
                    found.entry(term.dimension).or_default().push(term.value);
                }
            }
            seq = last.next();
        }
        let mut known = self.known.write().unwrap_or_else(PoisonError::into_inner);
        let KnownValues { upto, values } = &mut *known;
        for (dimension, found) in found {
            let all = values.entry(dimension).or_default();
            let new: BTreeSet<String> = found.into_iter().filter(|value| !all.contains(value)).collect();
            if !new.is_empty() {
                Arc::make_mut(all).extend(new);
            }
        }
        *upto = Some(to);
        Ok(())
    }
}

/// The values of a dimension in the changes up to a position, as the index has them; none if its values are not held in memory.
///
/// # Errors
/// When rows cannot be read.
pub async fn values_of<R: Record>(
    ctx: &Context,
    source: &Source,
    tables: &'static RecordTables,
    at: &Position,
    dimension: &'static str,
) -> Result<Arc<SortedValues>, Problem> {
    if !R::SEARCHED.contains(&dimension) {
        return Ok(Arc::default());
    }
    let reader = Feeds::of(ctx).reader(source, Arc::clone(&at.view));
    let names: Arc<Names<R>> = Feeds::of(ctx).names(source, tables, &*at.view);
    names.at(&reader, dimension, at.last).await
}

/// The values of a searched dimension that contain a text, as the index has them; `None` if there are more than `values_max`.
///
/// # Errors
/// When rows cannot be read.
pub async fn names_containing<R: Record>(
    ctx: &Context,
    source: &Source,
    tables: &'static RecordTables,
    at: &Position,
    dimension: &'static str,
    part: &str,
    values_max: usize,
) -> Result<Option<Vec<String>>, Problem> {
    if !R::SEARCHED.contains(&dimension) {
        return Ok(Some(Vec::new()));
    }
    let reader = Feeds::of(ctx).reader(source, Arc::clone(&at.view));
    let names: Arc<Names<R>> = Feeds::of(ctx).names(source, tables, &*at.view);
    let values = names.containing(&reader, dimension, at.last, part, values_max).await?;
    Ok((values.len() <= values_max).then_some(values))
}
