//! Hours and days as numbers: whole hours and days since 1970, in UTC.

use jiff::Timestamp;
use jiff::civil::Date;
use texts::numbers::has_only_digits;

/// Hours of a day.
pub const DAY_HOURS: i64 = 24;
/// Hours of a week.
pub const WEEK_HOURS: i64 = 7 * DAY_HOURS;
/// Milliseconds of an hour.
pub const HOUR_MS: i64 = 3_600_000;

/// Parses an hour such as `2026-11-20T14`.
#[must_use]
pub fn hour_of(text: &str) -> Option<i64> {
    let (day, hour) = text.split_once('T')?;
    let is_two_digits = hour.len() == 2 && has_only_digits(hour);
    let hour: i64 = hour.parse().ok().filter(|hour| is_two_digits && (0..DAY_HOURS).contains(hour))?;
    Some(day_of(day)? * DAY_HOURS + hour)
}

/// Parses a day such as `2026-11-20`.
#[must_use]
pub fn day_of(text: &str) -> Option<i64> {
    let date: Date = text.parse().ok().filter(|_| text.len() == 10)?;
    Some(i64::from((date - Date::constant(1970, 1, 1)).get_days()))
}

/// Returns the beginning of an hour, RFC 3339 to the second; empty for an hour that no calendar has.
#[must_use]
pub fn time(hour: i64) -> String {
    hour.checked_mul(3_600).and_then(|second| Timestamp::from_second(second).ok()).map_or_else(String::new, |at| at.to_string())
}

/// Returns an hour as facts name it: `2026-11-20T14`.
#[must_use]
pub fn hour_text(hour: i64) -> String {
    time(hour).get(..13).unwrap_or_default().to_owned()
}

/// Returns a day as facts name it: `2026-11-20`.
#[must_use]
pub fn day_text(day: i64) -> String {
    day.checked_mul(DAY_HOURS).map_or_else(String::new, |hour| time(hour).get(..10).unwrap_or_default().to_owned())
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Proves that hours and days read back, and that other texts are none.
    #[test]
    fn hours_and_days() {
        let hour = hour_of("2026-11-20T14").unwrap();
        assert_eq!((hour_text(hour).as_str(), time(hour).as_str()), ("2026-11-20T14", "2026-11-20T14:00:00Z"));
        assert_eq!((day_of("1970-01-02"), day_text(1).as_str()), (Some(1), "1970-01-02"));
        for wrong in ["", "2026-11-20", "2026-11-20T24", "2026-11-20T+1", "2026-11-20T1", "2026-13-20T01", "2026-11-20T14:00"] {
            assert_eq!(hour_of(wrong), None, "{wrong}");
        }
        assert_eq!((time(i64::MAX), day_text(i64::MAX)), (String::new(), String::new()));
    }
}
