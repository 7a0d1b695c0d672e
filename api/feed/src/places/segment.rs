//! Parts of ranked lists, and places in them.

use std::ops::RangeInclusive;

use jiff::civil::Date;
use schemas::views::records::{day_number, month_number};
use serde::{Deserialize, Serialize};

/// A segment of a ranked list: its buckets in order, and the ranks within them, first and last included.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct Segment {
    /// The buckets that can hold places of the part.
    pub buckets: RangeInclusive<i64>,
    /// The ranks.
    pub ranks: RangeInclusive<i64>,
}

impl Segment {
    /// The places of some days in a list that shows the newest day first.
    #[must_use]
    pub fn newest_first(days: &RangeInclusive<Date>) -> Self {
        let Self { buckets, ranks } = Self::soonest_first(days);
        Self { buckets: -buckets.end()..=-buckets.start(), ranks: -ranks.end()..=-ranks.start() }
    }

    /// The places of some days in a list that shows the earliest day first.
    #[must_use]
    pub fn soonest_first(days: &RangeInclusive<Date>) -> Self {
        let (first, last) = (*days.start(), *days.end());
        Self { buckets: month_number(first)..=month_number(last), ranks: day_number(first)..=day_number(last) }
    }
}

/// A place in the order of a list.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
pub(super) struct Spot {
    pub(super) bucket: i64,
    pub(super) rank: i64,
    pub(super) id: String,
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Proves that days give the same part of a list in both directions.
    #[test]
    fn parts_of_days() {
        let days = Date::constant(1970, 1, 31)..=Date::constant(1970, 2, 1);
        let soonest = Segment::soonest_first(&days);
        assert_eq!(soonest, Segment { buckets: 1970 * 12..=1970 * 12 + 1, ranks: 30..=31 });
        assert_eq!(Segment::newest_first(&days), Segment { buckets: -(1970 * 12 + 1)..=-(1970 * 12), ranks: -31..=-30 });
    }
}
