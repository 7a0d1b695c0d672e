//! The days on which there are filings.

use jiff::ToSpan;
use jiff::civil::{Date, Weekday};

/// Whether an index is published for a day. Holidays are only found by a request.
fn is_business_day(day: Date) -> bool {
    !matches!(day.weekday(), Weekday::Saturday | Weekday::Sunday)
}

/// Returns the nearest day with an index: the first from `day` on, or the last up to it.
pub(super) fn business_day(day: Date, back: bool) -> Date {
    let mut day = day;
    for _ in 0..2 {
        if !is_business_day(day) {
            day = if back { day.saturating_sub(1.day()) } else { day.saturating_add(1.day()) };
        }
    }
    day
}

/// Returns the first business day after a day.
pub(super) fn next_business_day(day: Date) -> Date {
    business_day(day.saturating_add(1.day()), false)
}

/// Returns the last day that is complete once the index of a day is read. No filing is dated on a weekend.
pub(super) fn through(day: Date, to: Date) -> Date {
    next_business_day(day).saturating_sub(1.day()).min(to)
}
