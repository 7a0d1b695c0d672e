//! Finding the changes that fit a filter, forwards for feeds and backwards for what is newest.
//!
//! Promise: a call reads a bounded number of rows and blocks, however long the history is and whatever the filter; `to` (forwards) and `from`
//! (backwards) say how far it has come, and every change between that fits is in it.

use crate::Feeds;
use operation::context::Part;
use std::collections::BTreeSet;
use std::ops::RangeInclusive;
use std::sync::Arc;

use futures_util::future::try_join_all;
use schemas::details::ChangeRecord;
use schemas::key;
use schemas::position::Seq;
use schemas::tables::Datum;
use schemas::views::records::{RecordTables, normal};
use serde::de::DeserializeOwned;
use view_store::Range;
use view_store::feed::{FeedBlock, FeedReader, block_of};

use super::filter::{Element, Filter, Wanted};
use super::names::{beginning, containing};
use super::position::Position;
use super::{Source, names};
use operation::context::{Context, store_problem};
use operation::problem::Problem;

/// Values of a term beyond which looking at all changes is no worse.
const VALUES_MAX: usize = 48;
/// Changes that one call looks at.
const LOOKED_AT_MAX: usize = 2_000;
/// How often one call looks for more of them.
const ROUNDS_MAX: usize = 64;
/// Rows of a term read at once, at most.
const TERM_ROWS: usize = 256;
/// And at least.
const TERM_ROWS_MIN: usize = 64;
/// Partitions of a term that are read side by side, at most: the first of a common term holds more than a page, a rare one is in few of many.
const BUCKETS_AT_ONCE: i64 = 16;
/// How many times more partitions each look for more reads than the one before, from one on.
const BUCKETS_GROW: i64 = 4;

/// What was found.
#[derive(Clone, Debug)]
pub struct Found<R: ChangeRecord> {
    /// The changes that fit, in the order of reading.
    pub changes: Vec<Element<R>>,
    /// How far it has come: the last seq covered (forwards), or the first one (backwards).
    pub to: u64,
}

/// Which way to read.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Way {
    /// From the oldest to the newest.
    Forwards,
    /// From the newest to the oldest.
    Backwards,
}

/// A service's changes under a filter, at a position.
pub struct Selection<'a, F: Filter> {
    tables: &'static RecordTables,
    reader: FeedReader,
    /// A change is shown that fits one of them.
    filters: &'a [F],
    /// Terms of which a change that fits has one; `None`: all changes are looked at.
    terms: Option<Vec<String>>,
}

impl<'a, F: Filter> Selection<'a, F> {
    /// Prepares reading up to a position.
    ///
    /// # Errors
    /// When the names that the filter means cannot be read.
    pub async fn new(
        ctx: &Context,
        source: &Source,
        tables: &'static RecordTables,
        at: &Position,
        filters: &'a [F],
    ) -> Result<Self, Problem> {
        let reader = Feeds::of(ctx).reader(source, Arc::clone(&at.view));
        let names: Arc<names::Names<F::Record>> = Feeds::of(ctx).names(source, tables, at.view.generation());
        let mut terms = Some(Vec::new());
        for filter in filters {
            let mut found = None;
            for wanted in filter.wanted() {
                let (dimension, values) = match wanted {
                    Wanted::Exact(dimension, values) => (dimension, values),
                    Wanted::Part(dimension, part) => {
                        (dimension, containing(&*names.at(&reader, dimension, at.last).await?, &part, VALUES_MAX))
                    }
                    Wanted::Prefix(dimension, prefixes) => {
                        (dimension, beginning(&*names.at(&reader, dimension, at.last).await?, &prefixes))
                    }
                };
                if values.len() <= VALUES_MAX {
                    let values = values.into_iter().chain(filter.beside(dimension).map(str::to_owned));
                    found = Some(values.map(move |value| format!("{dimension}/{}", normal(&value))));
                    break;
                }
            }
            // What one of them cannot find by terms is looked for among all.
            terms = terms.zip(found).map(|(mut terms, found)| {
                terms.extend(found);
                terms
            });
        }
        Ok(Self { tables, reader, filters, terms })
    }

    /// The changes with a seq above `after` and up to `upto` that fit, at most `limit`.
    ///
    /// # Errors
    /// When rows cannot be read.
    pub async fn find(&self, after: Seq, upto: Seq, limit: usize, way: Way) -> Result<Found<F::Record>, Problem> {
        let mut found = Found { changes: Vec::new(), to: if way == Way::Forwards { after.0 } else { upto.0 + 1 } };
        let (mut low, mut high) = (after.0 + 1, upto.0);
        let (mut looked_at, mut rounds, mut buckets) = (0, 0, 1);
        while low <= high && found.changes.len() < limit && looked_at < LOOKED_AT_MAX && rounds < ROUNDS_MAX {
            rounds += 1;
            // Some changes to look at, in the order of reading, and the end up to which these are all.
            let rows_max = (2 * (limit - found.changes.len())).clamp(TERM_ROWS_MIN, TERM_ROWS);
            let (seqs, covered) = self.candidates(low, high, way, buckets, rows_max).await?;
            buckets = (buckets * BUCKETS_GROW).min(BUCKETS_AT_ONCE);
            let mut seqs = seqs.as_slice();
            while !seqs.is_empty() {
                // As many as may still be shown, with their blocks.
                let (next, rest) = seqs.split_at(seqs.len().min(limit - found.changes.len()).min(LOOKED_AT_MAX - looked_at));
                seqs = rest;
                let mut numbers: Vec<u64> = next.iter().map(|seq| block_of(Seq(*seq))).collect();
                numbers.dedup();
                let blocks = self.reader.blocks(&numbers).await.map_err(store_problem)?;
                let mut blocks = numbers.into_iter().zip(blocks).peekable();
                for seq in next {
                    looked_at += 1;
                    while blocks.next_if(|(number, _)| *number != block_of(Seq(*seq))).is_some() {}
                    if let Some((_, block)) = blocks.peek()
                        && let Some(change) = change_in(block, *seq)?
                        && self.filters.iter().any(|filter| filter.fits(&change))
                    {
                        found.changes.push(change);
                    }
                    found.to = *seq;
                }
                if found.changes.len() == limit || looked_at == LOOKED_AT_MAX {
                    return Ok(found);
                }
            }
            found.to = covered;
            match way {
                Way::Forwards => low = covered + 1,
                Way::Backwards => high = covered.saturating_sub(1),
            }
        }
        Ok(found)
    }

    /// Seqs within `low..=high` that may fit, in the order of reading, and how far these are all that do: from so many partitions of each term,
    /// and so many rows of each.
    async fn candidates(&self, low: u64, high: u64, way: Way, buckets: i64, rows_max: usize) -> Result<(Vec<u64>, u64), Problem> {
        let Some(terms) = &self.terms else {
            let count = TERM_ROWS as u64 - 1;
            return Ok(match way {
                Way::Forwards => ((low..=high.min(low + count)).collect(), high.min(low + count)),
                Way::Backwards => ((low.max(high.saturating_sub(count))..=high).rev().collect(), low.max(high.saturating_sub(count))),
            });
        };
        let term_bucket = self.tables.term_bucket;
        let bucket_of = |seq: u64| i64::try_from(seq).unwrap_or(i64::MAX) / term_bucket;
        // The partitions that are read now: some of those that the range touches, from where reading begins.
        let (first, last) = match way {
            Way::Forwards => (bucket_of(low), bucket_of(high).min(bucket_of(low) + buckets - 1)),
            Way::Backwards => (bucket_of(low).max(bucket_of(high) - buckets + 1), bucket_of(high)),
        };
        let begin_of = |bucket: i64| u64::try_from(bucket * term_bucket).unwrap_or(0);
        let (low, high) = (low.max(begin_of(first)), high.min(begin_of(last + 1) - 1));
        let mut reads = Vec::new();
        for term in terms {
            for bucket in first..=last {
                reads.push(self.rows(term, bucket, low..=high, way, rows_max));
            }
        }
        let mut seqs = BTreeSet::new();
        let mut covered = if way == Way::Forwards { high } else { low };
        for rows in try_join_all(reads).await? {
            if rows.len() == rows_max
                && let Some(end) = rows.last()
            {
                covered = if way == Way::Forwards { covered.min(*end) } else { covered.max(*end) };
            }
            seqs.extend(rows);
        }
        let is_covered = |seq: &u64| if way == Way::Forwards { *seq <= covered } else { *seq >= covered };
        let mut seqs: Vec<u64> = seqs.into_iter().filter(is_covered).collect();
        if way == Way::Backwards {
            seqs.reverse();
        }
        Ok((seqs, covered))
    }

    /// Seqs of one term within one partition, in the order of reading.
    async fn rows(&self, term: &str, bucket: i64, seqs: RangeInclusive<u64>, way: Way, rows_max: usize) -> Result<Vec<u64>, Problem> {
        let begin = i64::try_from(*if way == Way::Forwards { seqs.start() } else { seqs.end() }).unwrap_or(i64::MAX);
        let (prefix, from) = (key![term, bucket], Some(key![term, bucket, begin]));
        let range = Range { prefix, after: None, from, limit: rows_max, reverse: way == Way::Backwards };
        let rows = self.reader.view().range(self.tables.terms, range).await.map_err(store_problem)?;
        let found = rows.iter().filter_map(|(key, _)| match key.get(2) {
            Some(Datum::Int(seq)) => u64::try_from(*seq).ok(),
            _ => None,
        });
        Ok(found.take_while(|seq| seqs.contains(seq)).collect())
    }
}

/// The change of a seq, if readers see it.
fn change_in<R: ChangeRecord + DeserializeOwned>(block: &FeedBlock, seq: u64) -> Result<Option<Element<R>>, Problem> {
    let at = usize::try_from(seq.saturating_sub(block.first_seq())).unwrap_or(usize::MAX);
    if block.shown(at) { super::filter::read(&block.elements(at, at + 1)).map(Some) } else { Ok(None) }
}
