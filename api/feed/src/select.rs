//! Finds the changes that match a filter: forwards for feeds, and backwards for the newest changes.
//!
//! Promise: a call reads a bounded number of rows and blocks, however long the history is and whatever the filter is. `to` says how far the search
//! came, and every matching change up to there is in the result.

use std::collections::BTreeSet;
use std::ops::RangeInclusive;
use std::sync::Arc;

use futures_util::future::try_join_all;
use operation::context::Part;
use operation::context::{Context, seq_column, store_problem};
use operation::problem::Problem;
use schemas::details::ChangeRecord;
use schemas::key;
use schemas::position::Seq;
use schemas::views::records::{Record, RecordTables, normal};
use texts::folding::folded;
use view_store::Range;
use view_store::feed::{FeedReader, block_of};

use super::filter::{Criteria, Element, TermQuery};
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
pub struct SelectedChanges<R: ChangeRecord> {
    /// The matching changes, in the order of reading.
    pub changes: Vec<Element<R>>,
    /// How far the search came: the last seq covered (forwards), or the first one (backwards).
    pub to: Seq,
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
        let names: Arc<names::Names<R>> = Feeds::of(ctx).names(source, tables, &*at.view);
        let mut terms = Some(Vec::new());
        for criteria in &criteria {
            let mut found = None;
            for search in &criteria.searches {
                let (dimension, values) = match &search.query {
                    TermQuery::Exact(dimension, values) => (dimension, values.clone()),
                    TermQuery::Part(dimension, part) => {
                        let values = names.at(&reader, dimension, at.last).await?;
                        (dimension, values.containing(&folded(&normal(part)), VALUES_MAX))
                    }
                    TermQuery::Prefix(dimension, prefixes) => {
                        let values = names.at(&reader, dimension, at.last).await?;
                        (dimension, values.starting_with(prefixes.iter().map(|prefix| normal(prefix))))
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

    /// Finds the matching changes with a seq above `after` and up to `upto`, at most `limit`. With a limit of 0 nothing is read, and nothing is covered.
    ///
    /// # Errors
    /// When rows cannot be read.
    pub async fn find(&self, after: Seq, upto: Seq, limit: usize, direction: Direction) -> Result<SelectedChanges<R>, Problem> {
        let mut found = SelectedChanges { changes: Vec::new(), to: if direction == Direction::Forwards { after } else { upto.next() } };
        let (mut low, mut high) = (after.next(), upto);
        let (mut candidates_read, mut rounds, mut buckets) = (0, 0, 1);
        while low <= high && found.changes.len() < limit && candidates_read < CANDIDATES_MAX && rounds < ROUNDS_MAX {
            rounds += 1;
            // Some candidates in the order of reading, and the seq up to which they are complete.
            let rows_max = (2 * (limit - found.changes.len())).clamp(TERM_ROWS_MIN, TERM_ROWS);
            let (seqs, covered) = self.candidates(low, high, direction, buckets, rows_max).await?;
            buckets = (buckets * BUCKETS_GROWTH).min(CONCURRENT_BUCKETS_MAX);
            let mut seqs = seqs.as_slice();
            while !seqs.is_empty() {
                // Never more candidates than matches that are still needed, and those that are in the same block as the last of them.
                let most = seqs.len().min(CANDIDATES_MAX - candidates_read);
                let needed = most.min(limit - found.changes.len());
                let is_in_block = |seq: &&Seq| needed > 0 && block_of(**seq) == block_of(seqs[needed - 1]);
                let (next, rest) = seqs.split_at(needed + seqs[needed..most].iter().take_while(is_in_block).count());
                seqs = rest;
                let mut numbers: Vec<u64> = next.iter().map(|seq| block_of(*seq)).collect();
                numbers.dedup();
                let blocks = self.reader.blocks(&numbers).await.map_err(store_problem)?;
                let mut blocks = numbers.into_iter().zip(blocks).peekable();
                for seq in next {
                    candidates_read += 1;
                    while blocks.next_if(|(number, _)| *number != block_of(*seq)).is_some() {}
                    if let Some((_, block)) = blocks.peek()
                        && let Some(element) = block.element(*seq)
                        && self.criteria.iter().any(|criteria| criteria.may_select(&element))
                        && let change = super::filter::read(&element)?
                        && self.criteria.iter().any(|criteria| criteria.selects(&change))
                    {
                        found.changes.push(change);
                    }
                    found.to = *seq;
                    if found.changes.len() == limit || candidates_read == CANDIDATES_MAX {
                        return Ok(found);
                    }
                }
            }
            found.to = covered;
            match direction {
                Direction::Forwards => low = covered.next(),
                Direction::Backwards => high = covered.previous(),
            }
        }
        Ok(found)
    }

    /// Finds seqs within `low..=high` that may match, in the order of reading, and how far they are complete. Reads the given number of partitions of
    /// each term, and the given number of rows of each partition.
    async fn candidates(
        &self,
        low: Seq,
        high: Seq,
        direction: Direction,
        buckets: i64,
        rows_max: usize,
    ) -> Result<(Vec<Seq>, Seq), Problem> {
        let Some(terms) = &self.terms else {
            let count = TERM_ROWS as u64 - 1;
            return Ok(match direction {
                Direction::Forwards => (low.up_to(high.min(low.plus(count))).collect(), high.min(low.plus(count))),
                Direction::Backwards => (low.max(high.minus(count)).up_to(high).rev().collect(), low.max(high.minus(count))),
            });
        };
        let partitions = Partitions { len: self.tables.term_bucket };
        // The partitions to read now: some of those that the range covers, starting where reading starts.
        let (first, last) = match direction {
            Direction::Forwards => (partitions.of(low), partitions.of(high).min(partitions.of(low) + buckets - 1)),
            Direction::Backwards => (partitions.of(low).max(partitions.of(high) - buckets + 1), partitions.of(high)),
        };
        let (low, high) = (low.max(partitions.first_seq(first)), high.min(partitions.first_seq(last + 1).previous()));
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
        let is_covered = |seq: &Seq| if direction == Direction::Forwards { *seq <= covered } else { *seq >= covered };
        let mut seqs: Vec<Seq> = seqs.into_iter().filter(is_covered).collect();
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
        seqs: RangeInclusive<Seq>,
        direction: Direction,
        rows_max: usize,
    ) -> Result<Vec<Seq>, Problem> {
        let begin = if direction == Direction::Forwards { seqs.start() } else { seqs.end() };
        let (prefix, from) = (key![term, bucket], Some(key![term, bucket, begin.stored()]));
        let range = Range { prefix, after: None, from, limit: rows_max, reverse: direction == Direction::Backwards };
        let rows = self.reader.view().range(self.tables.terms, range).await.map_err(store_problem)?;
        let mut found = Vec::with_capacity(rows.len());
        for (key, _) in &rows {
            let seq = seq_column(self.tables.terms, key, 2)?;
            if !seqs.contains(&seq) {
                break;
            }
            found.push(seq);
        }
        Ok(found)
    }
}

/// The partitions of a term: each holds the seqs of so many consecutive changes.
struct Partitions {
    len: i64,
}

impl Partitions {
    /// The partition that holds a seq.
    fn of(&self, seq: Seq) -> i64 {
        seq.stored() / self.len
    }

    /// The first seq that a partition may hold.
    fn first_seq(&self, partition: i64) -> Seq {
        Seq(partition.unsigned_abs().saturating_mul(self.len.unsigned_abs()))
    }
}
