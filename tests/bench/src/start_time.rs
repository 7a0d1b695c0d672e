//! When a run began. Its child processes use the same time, so that a run over the end of an hour or day generates the same records in all of them.

use std::sync::OnceLock;

use jiff::Timestamp;
use jiff::civil::Date;
use jiff::tz::TimeZone;
use schemas::clock::Clock;

/// The environment variable with the time at which the run began, in milliseconds since 1970.
pub(crate) const STARTED_MS: &str = "BENCH_STARTED_MS";

/// The time at which the run began, in milliseconds since 1970.
pub(crate) fn started_ms() -> i64 {
    static STARTED: OnceLock<i64> = OnceLock::new();
    *STARTED.get_or_init(|| {
        let of_parent = std::env::var(STARTED_MS).ok().and_then(|text| text.parse().ok());
        of_parent.unwrap_or_else(|| Clock::System.now().as_millisecond())
    })
}

/// The day on which the run began, in UTC.
pub(crate) fn today() -> Date {
    Timestamp::from_millisecond(started_ms()).unwrap_or(Timestamp::UNIX_EPOCH).to_zoned(TimeZone::UTC).date()
}
