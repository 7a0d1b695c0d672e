//! From when callers below the paid tier see records and changes: the free window. This is the one place that counts it, for lists, feeds, records,
//! histories, samples, previews and live answers of upstreams, of every service.
//!
//! Promise: the window is counted from the clock. `asOf` cuts it and never moves it back, so that no choice of `asOf` shows what is outside of it.

use std::ops::RangeInclusive;

use jiff::civil::Date;
use jiff::tz::TimeZone;
use jiff::{SignedDuration, Timestamp, ToSpan};
use schemas::details::ChangeRecord;
use schemas::views::records::Redact;

/// A day in seconds.
const DAY_S: i64 = 86_400;

/// What a caller below the paid tier sees in an answer, by time.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct FreeWindow {
    /// The time of the clock.
    clock_time: Timestamp,
    /// The time that the answer takes for "now": that of `asOf`, if it is given.
    now: Timestamp,
}

impl FreeWindow {
    /// The window of an answer that takes `now` for the time, which the clock shows or has shown.
    #[must_use]
    pub fn new(clock_time: Timestamp, now: Timestamp) -> Self {
        Self { clock_time, now: now.min(clock_time) }
    }

    /// The last `days` days of the clock, today included, without those after the day of the answer. It is empty if `asOf` is before all of them.
    #[must_use]
    pub fn days(&self, days: i64) -> RangeInclusive<Date> {
        let first = day(self.clock_time).saturating_sub((days - 1).max(0).days());
        first..=day(self.now).max(first.saturating_sub(1.day()))
    }

    /// The last `days` days of the clock, for reads of records whose day is hidden. `asOf` does not cut them: a record that is recorded before its day would
    /// come into view on that day, and so tell it. They are empty if `asOf` is before all of them.
    #[must_use]
    pub fn hidden_days(&self, days: i64) -> RangeInclusive<Date> {
        let cut = self.days(days);
        if cut.is_empty() { cut } else { *cut.start()..=day(self.clock_time) }
    }

    /// The time since which changes are free, if those of the last `days` days are.
    #[must_use]
    pub fn since(&self, days: i64) -> Timestamp {
        let ago = SignedDuration::from_secs(days.saturating_mul(DAY_S));
        self.clock_time.checked_sub(ago).unwrap_or(Timestamp::MIN)
    }

    /// Whether the answer is as of a time before the last `days` days.
    #[must_use]
    pub fn is_over(&self, days: i64) -> bool {
        self.now < self.since(days)
    }

    /// Whether a record is shown in its redacted form: it is free today, and was on the day of the answer.
    #[must_use]
    pub fn shows<R: Redact>(&self, record: &R) -> bool {
        !self.is_over(R::FREE_DAYS) && [self.clock_time, self.now].into_iter().all(|at| record.is_free(day(at)))
    }

    /// Whether a record that an upstream shows now is free, if what happened in the last `days` days is: by the day that the record reports. A record
    /// without a day is not.
    #[must_use]
    pub fn shows_live<R: ChangeRecord>(&self, days: i64, record: &R) -> bool {
        record.news().is_some_and(|news| news.day() >= *self.days(days).start())
    }

    /// What of the window an answer depends on, as a part of its ETag.
    #[must_use]
    pub fn etag_input(&self) -> String {
        format!("{}/{}", day(self.clock_time), day(self.now))
    }
}

/// The day of a time, in UTC.
fn day(at: Timestamp) -> Date {
    at.to_zoned(TimeZone::UTC).date()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn window(clock_time: &str, now: &str) -> FreeWindow {
        FreeWindow::new(clock_time.parse().unwrap(), now.parse().unwrap())
    }

    /// Proves that the days are counted from the clock, whatever the time of the answer is, and are cut by it.
    #[test]
    fn days_are_cut_and_never_moved() {
        const CLOCK: &str = "2026-11-20T12:00:00Z";
        let shown = |now: &str| {
            let days = window(CLOCK, now).days(7);
            if days.is_empty() { String::new() } else { format!("{}..{}", days.start(), days.end()) }
        };
        assert_eq!(shown(CLOCK), "2026-11-14..2026-11-20");
        assert_eq!(shown("2026-11-17T23:59:59Z"), "2026-11-14..2026-11-17");
        assert_eq!(shown("2026-11-14T00:00:00Z"), "2026-11-14..2026-11-14");
        assert_eq!([shown("2026-11-13T23:59:59Z"), shown("2020-01-01T00:00:00Z")], ["", ""]);
        assert_eq!(shown("2026-11-25T00:00:00Z"), shown(CLOCK), "the clock has not shown that time");
        let hidden = |now: &str| window(CLOCK, now).hidden_days(7);
        for now in [CLOCK, "2026-11-17T23:59:59Z", "2026-11-14T00:00:00Z"] {
            assert_eq!(hidden(now), window(CLOCK, CLOCK).days(7), "{now}");
        }
        assert!(hidden("2026-11-13T23:59:59Z").is_empty());
        let since = |now: &str| window(CLOCK, now).since(7).to_string();
        assert_eq!([since(CLOCK), since("2026-01-01T00:00:00Z")], ["2026-11-13T12:00:00Z", "2026-11-13T12:00:00Z"]);
        assert!(!window(CLOCK, "2026-11-13T12:00:00Z").is_over(7) && window(CLOCK, "2026-11-13T11:59:59Z").is_over(7));
        assert_eq!(window(CLOCK, CLOCK).since(i64::MAX), Timestamp::MIN);
    }
}
