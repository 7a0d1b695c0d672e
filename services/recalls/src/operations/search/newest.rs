//! The newest of many hits: whole days, and no more of them than a page needs.

use schemas::position::Seq;
use std::cmp::Reverse;
use tantivy::{DocId, SegmentOrdinal};

/// A document that was found: its place, its change and its day.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Hit {
    pub(super) day: i64,
    pub(super) seq: Seq,
    pub(super) segment: SegmentOrdinal,
    pub(super) doc: DocId,
}

/// Which hits are wanted.
#[derive(Clone, Copy, Debug)]
pub(super) struct Span {
    /// The first day and the last one, which is the first that is shown. Days count from 1970.
    pub(super) days: (i64, i64),
    /// The last change.
    pub(super) seq_last: Seq,
    /// How many hits are wanted at least, if there are so many.
    pub(super) hits_min: usize,
}

/// The hits of the last days of a span: so many days that there are as many hits as wanted, each with all of its hits.
pub(super) struct NewestHits {
    span: Span,
    /// The first day that can still be among the last ones.
    day_first: i64,
    hits: Vec<Hit>,
    /// At how many hits those of days that are not needed are dropped.
    full_at: usize,
}

impl NewestHits {
    /// No hits yet.
    pub(super) fn new(span: Span) -> Self {
        Self { span, day_first: span.days.0, hits: Vec::new(), full_at: Self::full_at(span, 0) }
    }

    /// Twice as many hits as remain, so that all drops together cost as much as the hits.
    fn full_at(span: Span, remaining: usize) -> usize {
        span.hits_min.max(remaining).saturating_mul(2).max(2)
    }

    /// Whether a hit of a day is taken.
    pub(super) fn takes_day(&self, day: i64) -> bool {
        day >= self.day_first && day <= self.span.days.1
    }

    /// Adds a hit, unless it is outside of the span or older than those that are wanted.
    pub(super) fn push(&mut self, hit: Hit) {
        if !self.takes_day(hit.day) || hit.seq > self.span.seq_last {
            return;
        }
        self.hits.push(hit);
        if self.hits.len() >= self.full_at {
            self.drop_older();
            self.full_at = Self::full_at(self.span, self.hits.len());
        }
    }

    /// Adds the hits of another part of the same span.
    pub(super) fn append(&mut self, other: Self) {
        // A day that the other part left out can have hits in this one, but both have enough later ones.
        self.day_first = self.day_first.max(other.day_first);
        other.hits.into_iter().for_each(|hit| self.push(hit));
    }

    /// Drops the hits of the days before those that are wanted.
    fn drop_older(&mut self) {
        let Some(last) = self.span.hits_min.checked_sub(1).filter(|last| *last < self.hits.len()) else { return };
        let (_, oldest, _) = self.hits.select_nth_unstable_by_key(last, |hit| Reverse(hit.day));
        self.day_first = oldest.day;
        self.hits.retain(|hit| hit.day >= self.day_first);
    }

    /// The hits, the newest day last, and the last day of the hits that were left out; `None` if there are no others.
    pub(super) fn finish(mut self) -> (Vec<Hit>, Option<i64>) {
        self.drop_older();
        // A hit of an earlier part can be older than what a later part taught.
        self.hits.retain(|hit| hit.day >= self.day_first);
        self.hits.sort_unstable_by_key(|hit| hit.day);
        let older = (self.day_first > self.span.days.0).then(|| self.day_first - 1);
        (self.hits, older)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const HITS: u32 = 10_000;

    fn hit(day: i64, doc: u32) -> Hit {
        Hit { day, seq: Seq(1), segment: 0, doc }
    }

    fn span(hits_min: usize) -> Span {
        Span { days: (0, 5_000), seq_last: Seq(1), hits_min }
    }

    /// The hits that are left of some, in parts, and the most that were held at a time.
    fn newest(span: Span, hits: &[Hit], parts: usize) -> ((Vec<Hit>, Option<i64>), usize) {
        let (mut all, mut held) = (NewestHits::new(span), 0);
        for part in hits.chunks(hits.len().div_ceil(parts)) {
            let mut own = NewestHits::new(span);
            for hit in part {
                own.push(*hit);
                held = held.max(own.hits.len());
            }
            all.append(own);
        }
        (all.finish(), held)
    }

    /// Proves that the hits of the last days remain, each day with all of its hits, that the day is named at which the search continues, and that of many hits
    /// few are held; whatever their order and their parts.
    #[test]
    fn whole_days_remain() {
        let ascending: Vec<Hit> = (0..HITS).map(|doc| hit(i64::from(doc / 10), doc)).collect();
        let descending: Vec<Hit> = ascending.iter().rev().copied().collect();
        let mixed: Vec<Hit> = (0..HITS).map(|doc| ascending[(doc * 7_919 % HITS) as usize]).collect();
        for hits in [ascending, descending, mixed] {
            for parts in [1, 3] {
                let ((mut found, older), held) = newest(span(25), &hits, parts);
                assert!(held <= 100 && found.is_sorted_by_key(|hit| hit.day), "{held} hits are held");
                found.sort_unstable_by_key(|hit| hit.doc);
                let expected: Vec<u32> = (HITS - 30..HITS).collect();
                assert_eq!((found.iter().map(|hit| hit.doc).collect::<Vec<_>>(), older), (expected, Some(996)));
            }
        }
    }

    /// Proves that few hits all remain, that a day with many hits remains whole, and that hits outside of the span are left out.
    #[test]
    fn few_hits_and_large_days() {
        let few: Vec<Hit> = (0..20).map(|doc| hit(i64::from(doc), doc)).collect();
        assert_eq!(newest(span(25), &few, 2).0, (few, None));
        let one_day: Vec<Hit> = (0..HITS).map(|doc| hit(7, doc)).collect();
        let ((found, older), _) = newest(span(25), &one_day, 1);
        assert_eq!((found.len(), older), (HITS as usize, Some(6)));
        let outside = [hit(-1, 0), hit(5_001, 1), Hit { seq: Seq(2), ..hit(3, 2) }];
        assert_eq!(newest(span(25), &outside, 1).0, (Vec::new(), None));
    }
}
