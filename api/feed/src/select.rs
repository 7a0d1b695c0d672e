//! Finds the changes that match a filter: forwards for feeds, and backwards for the newest changes.
//!
//! Promise: a call reads a bounded number of rows and blocks, however long the history is and whatever the filter is. `to` says how far the search
//! came, and every matching change up to there is in the result.

use std::collections::BTreeSet;
use std::ops::RangeInclusive;
use std::sync::Arc;

use futures_util::future::try_join_all;
use operation::context::Part;
use operation::context::{Context, store_problem};
use operation::problem::Problem;
use schemas::details::ChangeRecord;
use schemas::key;
use schemas::position::Seq;
use schemas::tables::Datum;
use schemas::views::records::{Record, RecordTables, normal};
use serde::de::DeserializeOwned;
use view_store::Range;
use view_store::feed::{FeedBlock, FeedReader, block_of};

use super::filter::{Criteria, Element, TermQuery};
use super::names::{values_containing, values_starting_with};
use super::position::Position;
use super::{Source, names};
use crate::Feeds;

/// The most values of a term query. With more, reading all changes is no slower.
const VALUES_MAX: usize = 48;
/// The most changes that one call reads.
const CANDIDATES_MAX: usize = 2_000;
/// The most batches of candidates that one call reads.
const ROUNDS_MAX: usize = 64;
/// The most rows of a term that are read per query.
const TERM_ROWS: usize = 256;
/// The fewest rows of a term that are read per query.
const TERM_ROWS_MIN: usize = 64;
/// The most partitions of a term that are read concurrently. A common term fills a page from its first partition, a rare term is in few of many.
const CONCURRENT_BUCKETS_MAX: i64 = 16;
/// How many times more partitions each batch reads than the batch before, starting at one.
const BUCKETS_GROWTH: i64 = 4;

/// The result of a search.
#[derive(Clone, Debug)]
pub struct Found<R: ChangeRecord> {
    /// The matching changes, in the order of reading.
    pub changes: Vec<Element<R>>,
    /// How far the search came: the last seq covered (forwards), or the first one (backwards).
    pub to: u64,
}

/// The direction of a search.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Direction {
    /// From the oldest to the newest.
    Forwards,
    /// From the newest to the oldest.
    Backwards,
}

/// A search in a service's changes for those that some criteria select, at a position.
pub struct Selection<'a, R: Record> {
    tables: &'static RecordTables,
    reader: FeedReader,
    /// A change matches if one of the criteria selects it.
    criteria: Vec<Criteria<'a, R>>,
    /// Terms of which every matching change has at least one; `None`: all changes are candidates.
    terms: Option<Vec<String>>,
}

impl<'a, R: Record> Selection<'a, R> {
    /// Prepares a search up to a position.
    ///
    /// # Errors
    /// When the names that the filter refers to cannot be read.
    pub async fn new(
        ctx: &Context,
        source: &Source,
        tables: &'static RecordTables,
        at: &Position,
        criteria: Vec<Criteria<'a, R>>,
    ) -> Result<Self, Problem> {
        let reader = Feeds::of(ctx).reader(source, Arc::clone(&at.view));
        let names: Arc<names::Names<R>> = Feeds::of(ctx).names(source, tables, at.view.generation());
        let mut terms = Some(Vec::new());
        for criteria in &criteria {
            let mut found = None;
            for search in &criteria.searches {
                let (dimension, values) = match &search.query {
                    TermQuery::Exact(dimension, values) => (dimension, values.clone()),
                    TermQuery::Part(dimension, part) => {
                        (dimension, values_containing(&*names.at(&reader, dimension, at.last).await?, part, VALUES_MAX))
                    }
                    TermQuery::Prefix(dimension, prefixes) => {
                        (dimension, values_starting_with(&*names.at(&reader, dimension, at.last).await?, prefixes))
                    }
                };
                if values.len() <= VALUES_MAX {
                    let values = values.into_iter().chain(search.wildcard.map(str::to_owned));
                    found = Some(values.map(move |value| format!("{dimension}/{}", normal(&value))));
                    break;
                }
            }
            // If one of the criteria has no usable terms, all changes are candidates.
            terms = terms.zip(found).map(|(mut terms, found)| {
                terms.extend(found);
                terms
            });
        }
        Ok(Self { tables, reader, criteria, terms })
    }

    /// Finds the matching changes with a seq above `after` and up to `upto`, at most `limit`.
    ///
    /// # Errors
    /// When rows cannot be read.
    pub async fn find(&self, after: Seq, upto: Seq, limit: usize, direction: Direction) -> Result<Found<R>, Problem> {
        let mut found = Found { changes: Vec::new(), to: if direction == Direction::Forwards { after.0 } else { upto.0 + 1 } };
        let (mut low, mut high) = (after.0 + 1, upto.0);
        let (mut candidates_read, mut rounds, mut buckets) = (0, 0, 1);
        while low <= high && found.changes.len() < limit && candidates_read < CANDIDATES_MAX && rounds < ROUNDS_MAX {
            rounds += 1;
            // Some candidates in the order of reading, and the seq up to which they are complete.
            let rows_max = (2 * (limit - found.changes.len())).clamp(TERM_ROWS_MIN, TERM_ROWS);
            let (seqs, covered) = self.candidates(low, high, direction, buckets, rows_max).await?;
            buckets = (buckets * BUCKETS_GROWTH).min(CONCURRENT_BUCKETS_MAX);
            let mut seqs = seqs.as_slice();
            while !seqs.is_empty() {
                // Never more candidates than matches that are still needed, with their blocks.
                let (next, rest) = seqs.split_at(seqs.len().min(limit - found.changes.len()).min(CANDIDATES_MAX - candidates_read));
                seqs = rest;
                let mut numbers: Vec<u64> = next.iter().map(|seq| block_of(Seq(*seq))).collect();
                numbers.dedup();
                let blocks = self.reader.blocks(&numbers).await.map_err(store_problem)?;
                let mut blocks = numbers.into_iter().zip(blocks).peekable();
                for seq in next {
                    candidates_read += 1;
                    while blocks.next_if(|(number, _)| *number != block_of(Seq(*seq))).is_some() {}
                    if let Some((_, block)) = blocks.peek()
                        && let Some(change) = change_in(block, *seq)?
                        && self.criteria.iter().any(|criteria| criteria.selects(&change))
                    {
                        found.changes.push(change);
                    }
                    found.to = *seq;
                }
                if found.changes.len() == limit || candidates_read == CANDIDATES_MAX {
                    return Ok(found);
                }
            }
            found.to = covered;
            match direction {
                Direction::Forwards => low = covered + 1,
                Direction::Backwards => high = covered.saturating_sub(1),
            }
        }
        Ok(found)
    }

    /// Finds seqs within `low..=high` that may match, in the order of reading, and how far they are complete. Reads the given number of partitions of
    /// each term, and the given number of rows of each partition.
    async fn candidates(
        &self,
        low: u64,
        high: u64,
        direction: Direction,
        buckets: i64,
        rows_max: usize,
    ) -> Result<(Vec<u64>, u64), Problem> {
        let Some(terms) = &self.terms else {
            let count = TERM_ROWS as u64 - 1;
            return Ok(match direction {
                Direction::Forwards => ((low..=high.min(low + count)).collect(), high.min(low + count)),
                Direction::Backwards => ((low.max(high.saturating_sub(count))..=high).rev().collect(), low.max(high.saturating_sub(count))),
            });
        };
        let term_bucket = self.tables.term_bucket;
        let bucket_of = |seq: u64| i64::try_from(seq).unwrap_or(i64::MAX) / term_bucket;
        // The partitions to read now: some of those that the range covers, starting where reading starts.
        let (first, last) = match direction {
            Direction::Forwards => (bucket_of(low), bucket_of(high).min(bucket_of(low) + buckets - 1)),
            Direction::Backwards => (bucket_of(low).max(bucket_of(high) - buckets + 1), bucket_of(high)),
        };
        let begin_of = |bucket: i64| u64::try_from(bucket * term_bucket).unwrap_or(0);
        let (low, high) = (low.max(begin_of(first)), high.min(begin_of(last + 1) - 1));
        let mut reads = Vec::new();
        for term in terms {
            for bucket in first..=last {
                reads.push(self.rows(term, bucket, low..=high, direction, rows_max));
            }
        }
        let mut seqs = BTreeSet::new();
        let mut covered = if direction == Direction::Forwards { high } else { low };
        for rows in try_join_all(reads).await? {
            if rows.len() == rows_max
                && let Some(end) = rows.last()
            {
                covered = if direction == Direction::Forwards { covered.min(*end) } else { covered.max(*end) };
            }
            seqs.extend(rows);
        }
        let is_covered = |seq: &u64| if direction == Direction::Forwards { *seq <= covered } else { *seq >= covered };
        let mut seqs: Vec<u64> = seqs.into_iter().filter(is_covered).collect();
        if direction == Direction::Backwards {
            seqs.reverse();
        }
        Ok((seqs, covered))
    }

    /// Reads the seqs of one term within one partition, in the order of reading.
    async fn rows(
        &self,
        term: &str,
        bucket: i64,
        seqs: RangeInclusive<u64>,
        direction: Direction,
        rows_max: usize,
    ) -> Result<Vec<u64>, Problem> {
        let begin = i64::try_from(*if direction == Direction::Forwards { seqs.start() } else { seqs.end() }).unwrap_or(i64::MAX);
        let (prefix, from) = (key![term, bucket], Some(key![term, bucket, begin]));
        let range = Range { prefix, after: None, from, limit: rows_max, reverse: direction == Direction::Backwards };
        let rows = self.reader.view().range(self.tables.terms, range).await.map_err(store_problem)?;
        let found = rows.iter().filter_map(|(key, _)| match key.get(2) {
            Some(Datum::Int(seq)) => u64::try_from(*seq).ok(),
            _ => None,
        });
        Ok(found.take_while(|seq| seqs.contains(seq)).collect())
    }
}

/// The change with a seq, if readers see it.
fn change_in<R: ChangeRecord + DeserializeOwned>(block: &FeedBlock, seq: u64) -> Result<Option<Element<R>>, Problem> {
    let at = usize::try_from(seq.saturating_sub(block.first_seq())).unwrap_or(usize::MAX);
    if block.shown(at) { super::filter::read(&block.elements(at, at + 1)).map(Some) } else { Ok(None) }
}
