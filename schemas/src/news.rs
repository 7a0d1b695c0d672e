//! Late news: what happened long ago at its upstream and is recorded only now.
//!
//! Upstreams publish old records again, add what they forgot, and are read back to the beginning when a stream starts. Such a record is recorded like any
//! other. Its change is marked `backfill`, and no webhook, digest or list of news has it. This module holds the rule and the limit of each kind of record.
//! Whether a change is marked follows from the change alone: from the day that its record reports, and from the day on which the change was recorded. A
//! record that was known and changes is news whatever its day.

use jiff::civil::Date;

/// Days after the recall date. Agencies publish within weeks; notices that are older are republished ones.
pub const RECALL_NEWS_DAYS: i64 = 60;
/// Days after a trial was posted first, and after the notice of a grant. Registries and funders add records weeks late, other agencies' awards months late.
pub const FUNDING_NEWS_DAYS: i64 = 120;
/// Days after the filing date. The regulator publishes filings on the same or the next day.
pub const FILING_NEWS_DAYS: i64 = 30;
/// Days after the last day of an event's window.
pub const CATALYST_NEWS_DAYS: i64 = 30;
/// Days after an action on an award. The Department of Defense publishes actions 90 days late by law, and other agencies report urgent ones up to 30 days
/// late, so an action up to this age can be news.
pub const AWARD_NEWS_DAYS: i64 = 120;
/// Days after the filing date of a trademark application. International registrations keep their own date and arrive months later.
pub const TRADEMARK_NEWS_DAYS: i64 = 180;
/// Days after an airworthiness directive was published first.
pub const DIRECTIVE_NEWS_DAYS: i64 = 60;
/// Days after an exclusion was entered in the list, which is published daily.
pub const EXCLUSION_NEWS_DAYS: i64 = 30;

/// For how long a record is news.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct News {
    day: Date,
    days: i64,
}

impl News {
    /// A record that reports a day, and is news for so many days after it.
    #[must_use]
    pub fn new(day: Date, days: i64) -> Self {
        Self { day, days }
    }

    /// A record that reports a day, `YYYY-MM-DD`. `None` for a text that is no day: then it is news whenever it is recorded first.
    #[must_use]
    pub fn of_text(day: &str, days: i64) -> Option<Self> {
        Some(Self::new(day.parse().ok()?, days))
    }

    /// The day that the record reports.
    #[must_use]
    pub fn day(self) -> Date {
        self.day
    }

    /// Whether a record is no news any more if it is recorded first on this day.
    #[must_use]
    pub fn is_late(self, recorded: Date) -> bool {
        i64::from((recorded - self.day).get_days()) > self.days
    }
}

#[cfg(test)]
mod tests {
    use jiff::civil::date;

    use super::*;

    /// Proves from which day on a record is late: the day after its last day as news, and never if its own day is in the future or unknown.
    #[test]
    fn days_of_long_ago() {
        let recorded = date(2026, 11, 24);
        for (day, days, is_late) in [
            ("2026-07-27", AWARD_NEWS_DAYS, false),
            ("2026-07-26", AWARD_NEWS_DAYS, true),
            ("2026-09-25", RECALL_NEWS_DAYS, false),
            ("2026-09-24", RECALL_NEWS_DAYS, true),
            ("2026-10-25", FILING_NEWS_DAYS, false),
            ("2026-10-24", FILING_NEWS_DAYS, true),
            ("2001-01-01", FUNDING_NEWS_DAYS, true),
            ("2027-01-01", CATALYST_NEWS_DAYS, false),
        ] {
            assert_eq!(News::of_text(day, days).unwrap().is_late(recorded), is_late, "{day}");
        }
        for text in ["", "2025-", "2025-13-01", "November 2025"] {
            assert_eq!(News::of_text(text, FILING_NEWS_DAYS), None, "{text}");
        }
    }
}
