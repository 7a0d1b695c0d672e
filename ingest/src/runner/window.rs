//! How far back a sync run reads, so that no day leaves its window unread.

use jiff::ToSpan;
use jiff::civil::Date;
use schemas::event::Run;

/// How many days that earlier runs left unread a run reads at most, in addition to its window.
const UNREAD_DAYS_MAX: u32 = 366;

/// Returns how many days back a run reads that has a window of `window_days`. It reads from the last day that a finished run reached, so that no day is
/// left out after an outage, and from the first day that the last finished run did not read completely.
pub(super) fn days_back(last_finished: Option<&Run>, today: Date, window_days: u32) -> u32 {
    let days_since = |day: Date| u32::try_from((today - day).get_days()).unwrap_or(0);
    let reached = last_finished.and_then(|last| last.window_to.parse().ok()).map_or(0, days_since);
    let recent = window_days.saturating_add(reached.min(UNREAD_DAYS_MAX));
    // The day itself was read; that after it was not.
    let unread = complete_to(last_finished).map_or(0, |day| days_since(day).saturating_sub(1));
    recent.max(unread.min(recent.saturating_add(UNREAD_DAYS_MAX)))
}

/// Returns the last day up to which everything was read, if later days were left unread and a run that reads this window does not read them either.
pub(super) fn unread_after(last_finished: Option<&Run>, run: &Run) -> Option<Date> {
    let from: Date = run.window_from.parse().ok()?;
    complete_to(last_finished).filter(|day| day.checked_add(1.day()).is_ok_and(|next| next < from))
}

/// Returns the last day up to which the last finished run was complete, if it did not read all days of its window completely.
fn complete_to(last_finished: Option<&Run>) -> Option<Date> {
    let last = last_finished?;
    let (through, to): (Date, Date) = (last.through_date.parse().ok()?, last.window_to.parse().ok()?);
    (through < to).then_some(through)
}

#[cfg(test)]
mod tests {
    use jiff::civil::date;

    use super::*;

    const TODAY: Date = date(2026, 11, 24);

    fn finished(window_to: &str, through_date: &str) -> Run {
        Run { window_to: window_to.into(), through_date: through_date.into(), ..Run::default() }
    }

    /// Proves how far back a run with a window of ten days reads: the window, the days of an outage, and from the first day that was not read completely.
    #[test]
    fn windows_reach_back_to_unread_days() {
        assert_eq!(days_back(None, TODAY, 10), 10);
        for (window_to, through_date, days) in [
            ("2026-11-24", "2026-11-24", 10),
            ("2026-11-21", "2026-11-21", 13),
            ("2027-01-01", "2027-01-01", 10),
            // Within the window in any case.
            ("2026-11-24", "2026-11-20", 10),
            ("2026-11-24", "2026-11-13", 10),
            ("2026-11-24", "2026-11-12", 11),
            ("2026-11-24", "2026-10-24", 30),
            // No further than a year more.
            ("2026-11-24", "2020-01-01", 376),
            ("2020-01-01", "2020-01-01", 376),
            ("", "", 10),
            ("2026-11-24", "", 10),
        ] {
            assert_eq!(days_back(Some(&finished(window_to, through_date)), TODAY, 10), days, "{window_to} {through_date}");
        }
    }

    /// Proves that a day that cannot be read keeps its place: runs that find it unread read from it again, however often, and reach no further back.
    #[test]
    fn unread_days_are_read_again_from_the_same_day() {
        let (first, mut last) = (date(2026, 10, 3), finished("2026-11-23", "2026-10-02"));
        for day in 0..40 {
            let today = TODAY.saturating_add(day.days());
            let from = today.saturating_sub(i64::from(days_back(Some(&last), today, 10)).days());
            assert_eq!(from, first, "{today}");
            let run = Run { window_from: from.to_string(), ..finished(&today.to_string(), "2026-10-02") };
            assert_eq!(unread_after(Some(&last), &run), None);
            last = run;
        }
    }

    /// Proves which windows leave days unread: those that begin after the first day that was not read completely.
    #[test]
    fn windows_that_leave_days_unread() {
        let last = finished("2026-11-23", "2026-10-02");
        for (window_from, expected) in [("2026-10-03", None), ("2026-10-04", Some(date(2026, 10, 2))), ("2026-10-02", None), ("", None)] {
            let run = Run { window_from: window_from.into(), ..Run::default() };
            assert_eq!(unread_after(Some(&last), &run), expected, "{window_from}");
            assert_eq!(unread_after(Some(&finished("2026-10-02", "2026-10-02")), &run), None);
        }
    }
}
