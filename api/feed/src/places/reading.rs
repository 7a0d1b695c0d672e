//! Reads the places of a part of a list, bucket by bucket.

use std::ops::RangeInclusive;

use futures_util::future::try_join_all;
use operation::context::{store_problem, stored};
use operation::problem::Problem;
use schemas::key;
use schemas::position::Seq;
use schemas::tables::{Datum, Key, Table};
use schemas::views::records::PlaceRow;
use view_store::{Range, View};

use super::segment::{Segment, Spot};
use crate::position::Position;

/// The most rows that one call reads, three times the most places that it walks: some are places that a record no longer has, or does not have yet.
pub(super) const ROWS_MAX: usize = 6_000;
/// The most rows of a bucket that are read at a time, unless a reading says another number.
pub(super) const ROWS_PER_READ: usize = 500;
/// The most rows of a bucket that are read at a time after buckets without rows: the embedded store reads so few on the caller's thread. A part of all days
/// has thousands of buckets, of which nearly all are empty. Several buckets are read at once, and all rows after the first bucket with more rows than this
/// are read again, so it is small: a list that shows days to come has a year of empty months before the first full one.
const ROWS_PER_PROBE: usize = 20;
/// The most buckets that are read at a time. A walk begins with one and reads four times as many in each further round, until a bucket has more rows than
/// are read at a time.
const BUCKETS_AT_ONCE: usize = 16;

/// Reads the places of a part of a list, in order.
pub(super) struct Reading<'a> {
    view: &'a dyn View,
    table: &'static Table,
    list: &'a str,
    ranks: RangeInclusive<i64>,
    seq: Seq,
    /// The first bucket that is not read completely, and the last one of the part.
    bucket: i64,
    last_bucket: i64,
    /// The row of that bucket after which reading continues.
    after: Option<Key>,
    /// The place after which the walk starts.
    start: Option<Spot>,
    /// The last place of which all rows are read.
    pub(super) passed: Option<Spot>,
    buckets_at_once: usize,
    /// The most rows of a bucket that are read at a time. Further reads of a long bucket read more, up to the second number.
    rows_at_once: usize,
    rows_at_once_max: usize,
    /// Whether the buckets that were read last have no rows.
    is_in_gap: bool,
    pub(super) rows_read: usize,
}

impl<'a> Reading<'a> {
    pub(super) fn new(at: &'a Position, table: &'static Table, list: &'a str, part: &Segment, start: Option<Spot>) -> Self {
        let first = start.as_ref().map_or(*part.buckets.start(), |spot| spot.bucket.max(*part.buckets.start()));
        Self {
            view: &*at.view,
            table,
            list,
            ranks: part.ranks.clone(),
            seq: at.seq,
            bucket: first,
            last_bucket: *part.buckets.end(),
            after: None,
            start,
            passed: None,
            buckets_at_once: 1,
            rows_at_once: ROWS_PER_READ,
            rows_at_once_max: ROWS_PER_READ,
            is_in_gap: false,
            rows_read: 0,
        }
    }

    /// The same with other numbers of rows that are read at a time: at first, and at most.
    pub(super) fn with_rows_at_once(self, rows_at_once: usize, rows_at_once_max: usize) -> Self {
        Self { rows_at_once, rows_at_once_max, ..self }
    }

    /// The next places that hold at the position, perhaps none; `None` at the end.
    pub(super) async fn next_spots(&mut self) -> Result<Option<Vec<Spot>>, Problem> {
        if self.bucket > self.last_bucket {
            return Ok(None);
        }
        let end = self.last_bucket.min(self.bucket.saturating_add(i64::try_from(self.buckets_at_once).unwrap_or(1) - 1));
        // No more than a call reads in all.
        let rows_left = ROWS_MAX.saturating_sub(self.rows_read).max(ROWS_PER_READ);
        let limit = if self.is_in_gap { ROWS_PER_PROBE } else { rows_left }.min(self.rows_at_once);
        let was_in_gap = self.is_in_gap;
        let reads = (self.bucket..=end).map(|bucket| self.view.range(self.table, self.range(bucket, limit)));
        let rows_of_buckets = try_join_all(reads).await.map_err(store_problem)?;
        self.is_in_gap = rows_of_buckets.iter().all(Vec::is_empty);
        if self.is_in_gap {
            // Reads on this thread do not let other calls run.
            tokio::task::yield_now().await;
        }
        // The bucket after one that was read in parts is probably as large, so it is read alone.
        self.buckets_at_once = if self.after.is_some() { 1 } else { (self.buckets_at_once * 4).min(BUCKETS_AT_ONCE) };
        let (mut spots, mut read): (Vec<Spot>, Option<Spot>) = (Vec::new(), None);
        for rows in rows_of_buckets {
            self.rows_read += rows.len();
            let (is_cut, last) = (rows.len() == limit, rows.last().map(|(key, _)| key.clone()));
            for (key, value) in rows {
                let [_, _, Datum::Int(rank), Datum::Text(id), Datum::Int(since)] = key.as_slice() else { continue };
                if *rank > *self.ranks.end() {
                    self.bucket = self.last_bucket.saturating_add(1);
                    return Ok(Some(spots));
                }
                let until = stored::<PlaceRow>(self.table, &value)?.until;
                let began = |seq: Seq| seq <= self.seq;
                let spot = Spot { bucket: self.bucket, rank: *rank, id: id.clone() };
                let is_after_start = self.start.as_ref().is_none_or(|start| spot > *start);
                let since = Seq::try_from(*since).unwrap_or_default();
                if began(since) && (until == Seq(0) || !began(until)) && is_after_start {
                    spots.push(spot.clone());
                }
                if let Some(before) = read.replace(spot).filter(|before| Some(before) != read.as_ref()) {
                    self.passed = Some(before);
                }
            }
            if is_cut {
                // Later buckets are read again after the rest of this one.
                (self.after, self.buckets_at_once) = (last, 1);
                if !was_in_gap {
                    self.rows_at_once = (self.rows_at_once * 3).min(self.rows_at_once_max);
                }
                return Ok(Some(spots));
            }
            (self.bucket, self.after) = (self.bucket.saturating_add(1), None);
            self.rows_at_once = self.rows_at_once.min(ROWS_PER_READ);
        }
        Ok(Some(spots))
    }

    /// The rows of a bucket that are read next.
    fn range(&self, bucket: i64, limit: usize) -> Range {
        let after = self.after.clone().filter(|_| bucket == self.bucket);
        // Many places can have the same rank. A place of another day can be before the ranks of the part.
        let start = self.start.as_ref().filter(|spot| spot.bucket == bucket && spot.rank >= *self.ranks.start());
        let from = after.is_none().then(|| match start {
            Some(Spot { rank, id, .. }) => key![self.list, bucket, *rank, id.as_str()],
            None => key![self.list, bucket, *self.ranks.start()],
        });
        Range { prefix: key![self.list, bucket], after, from, limit, reverse: false }
    }
}
