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
use schemas::key;
use schemas::position::Seq;
use schemas::tables::Datum;
use schemas::views::records::{NAME_SHARDS, Record, RecordTables, Term, normal};
use texts::folding::folded;
use view_store::feed::FeedReader;
use view_store::{Range, View};

use super::filter::Element;
use super::follower::{Follower, Label, Structure};
use super::position::Position;
use super::{Feeds, Source};

const PAGE_ROWS: usize = 2_000;

/// The values of searched dimensions in one generation of a service's view.
pub struct Names<R> {
    tables: &'static RecordTables,
    follower: Arc<Follower<Values<R>>>,
}

/// Values by dimension. They only become more, so that readers of earlier positions share them.
#[derive(Clone)]
struct Values<R> {
    by_dimension: Arc<RwLock<HashMap<&'static str, Arc<SortedValues>>>>,
    records: PhantomData<fn() -> R>,
}

impl<R: Record> Structure for Values<R> {
    type Origin = &'static RecordTables;
    type Change = Vec<Term>;

    const NAME: &'static str = "the list of names";
    const BYTES_MAX: usize = 1 << 30;
    const BEHIND_MAX: u64 = 50_000;

    async fn begin(tables: &'static RecordTables, view: Arc<dyn View>, seq: Seq) -> Result<(Self, Label), Problem> {
        let mut values = HashMap::new();
        for &dimension in R::SEARCHED {
            values.insert(dimension, Arc::new(stored_values(&*view, tables, dimension).await?));
        }
        Ok((Self { by_dimension: Arc::new(RwLock::new(values)), records: PhantomData }, Label::of_rows(seq)))
    }

    fn read(_: Seq, element: &[u8]) -> Result<Option<Vec<Term>>, serde_json::Error> {
        let change: Element<R> = serde_json::from_slice(element)?;
        Ok(Some(change.record.terms().into_iter().filter(|term| R::SEARCHED.contains(&term.dimension)).collect()))
    }

    fn add(&mut self, changes: Vec<Vec<Term>>, _: Label, _: bool) -> Result<(), Problem> {
        let mut found: HashMap<&'static str, BTreeSet<String>> = HashMap::new();
        for term in changes.into_iter().flatten() {
            found.entry(term.dimension).or_default().insert(term.value);
        }
        let mut values = self.by_dimension.write().unwrap_or_else(PoisonError::into_inner);
        for (dimension, mut found) in found {
            let all = values.entry(dimension).or_default();
            found.retain(|value| !all.contains(value));
            if !found.is_empty() {
                Arc::make_mut(all).extend(found);
            }
        }
        Ok(())
    }

    fn bytes(&self) -> usize {
        self.by_dimension.read().unwrap_or_else(PoisonError::into_inner).values().map(|values| values.bytes()).sum()
    }
}

impl Feeds {
    /// The names in a service's records, cached for one generation of its view.
    pub fn names<R: Record>(&self, source: &Source, tables: &'static RecordTables, view: &dyn View) -> Arc<Names<R>> {
        self.cached_for(source, view, || Names { tables, follower: Arc::default() })
    }
}

impl<R: Record> Names<R> {
    /// The values of a dimension in the changes up to a position. Values of later changes may be included.
    ///
    /// # Errors
    /// When rows cannot be read; `unavailable` if the values need more than 1 GiB of memory.
    pub async fn at(&self, reader: &FeedReader, dimension: &'static str, seq: Seq) -> Result<Arc<SortedValues>, Problem> {
        let values = self.follower.at(reader, seq, &self.tables).await?;
        let values = values.by_dimension.read().unwrap_or_else(PoisonError::into_inner);
        Ok(values.get(dimension).map(Arc::clone).unwrap_or_default())
    }
}

/// The values of a dimension in the table of a view, which holds those of all its changes.
///
/// # Errors
/// When rows cannot be read.
pub async fn stored_values(view: &dyn View, tables: &'static RecordTables, dimension: &'static str) -> Result<SortedValues, Problem> {
    let mut found = SortedValues::default();
    for shard in 0..NAME_SHARDS {
        let mut range = Range { prefix: key![dimension, shard], after: None, from: None, limit: PAGE_ROWS, reverse: false };
        loop {
            let rows = view.range(tables.names, range.clone()).await.map_err(store_problem)?;
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
    Ok(found)
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
    let values = values_of::<R>(ctx, source, tables, at, dimension).await?.containing(&folded(&normal(part)), values_max);
    Ok((values.len() <= values_max).then_some(values))
}
