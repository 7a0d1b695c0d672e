//! The only source of the current time. Tests fix it; no other code of the engine reads the system clock.

use std::sync::atomic::{AtomicI64, Ordering};

use jiff::civil::Date;
use jiff::tz::TimeZone;
use jiff::{SignedDuration, Timestamp};

/// An hour in milliseconds.
pub const HOUR_MS: i64 = 3_600_000;
/// A day in milliseconds, as days of UTC have.
pub const DAY_MS: i64 = 24 * HOUR_MS;

/// A clock: the system's, or one of tests and demos (`[clock] fixed` and `[clock] start`).
#[derive(Clone, Copy, Debug, Default)]
pub enum Clock {
    /// The system's clock.
    #[default]
    System,
    /// Always this instant.
    Fixed(Timestamp),
    /// The system's clock, ahead by so many milliseconds (behind if negative): see [`Clock::starting_at`].
    Shifted(i64),
    /// The clock of a demo: it returns the time of the simulated history until the history ends.
    Simulated(&'static SimulatedClock),
}

/// A clock for a demo. It returns instants of the simulated history until [`Self::end`] is called, and the time of another clock
/// afterwards, unless it is moved again.
#[derive(Debug)]
pub struct SimulatedClock {
    /// The current instant in milliseconds since 1970; [`i64::MIN`] once the history has ended, until the clock is moved again.
    at_ms: AtomicI64,
    after: After,
}

/// The clock that is read after the simulated history.
#[derive(Clone, Copy, Debug)]
enum After {
    Shifted(i64),
    Fixed(Timestamp),
}

impl SimulatedClock {
    /// Creates a clock that returns `at` until it is moved, and the time of `after` once the history has ended. A process creates one: its
    /// memory is never freed.
    #[must_use]
    pub fn new(at: Timestamp, after: Clock) -> &'static Self {
        let after = match after {
            Clock::System | Clock::Simulated(_) => After::Shifted(0),
            Clock::Shifted(ms) => After::Shifted(ms),
            Clock::Fixed(at) => After::Fixed(at),
        };
        Box::leak(Box::new(Self { at_ms: AtomicI64::new(at.as_millisecond()), after }))
    }

    /// Moves the clock forward to an instant. An earlier instant changes nothing. After the history has ended, the clock is stopped at the instant, whatever
    /// it is: for a test that moves the clock by itself.
    pub fn move_to(&self, at: Timestamp) {
        self.at_ms.fetch_max(at.as_millisecond(), Ordering::Relaxed);
    }

    /// Ends the simulated history.
    pub fn end(&self) {
        self.at_ms.store(i64::MIN, Ordering::Relaxed);
    }

    /// Whether the history has ended and the clock that is read afterwards is fixed.
    fn is_fixed(&self) -> bool {
        self.at_ms.load(Ordering::Relaxed) == i64::MIN && matches!(self.after, After::Fixed(_))
    }

    fn now(&self) -> Timestamp {
        match (self.at_ms.load(Ordering::Relaxed), self.after) {
            (i64::MIN, After::Shifted(ms)) => shifted(ms),
            (i64::MIN, After::Fixed(at)) => at,
            (at_ms, _) => Timestamp::from_millisecond(at_ms).unwrap_or(Timestamp::UNIX_EPOCH),
        }
    }
}

/// Returns the time of the system's clock plus so many milliseconds.
fn shifted(ms: i64) -> Timestamp {
    let now = Timestamp::now();
    now.checked_add(SignedDuration::from_millis(ms)).unwrap_or(now)
}

impl Clock {
    /// Returns a clock that shows an instant now and moves on from there.
    #[must_use]
    pub fn starting_at(start: Timestamp) -> Self {
        Self::Shifted(start.as_millisecond().saturating_sub(Timestamp::now().as_millisecond()))
    }

    /// Returns the current time in UTC.
    #[must_use]
    pub fn now(&self) -> Timestamp {
        match self {
            Self::System => Timestamp::now(),
            Self::Fixed(at) => *at,
            Self::Shifted(ms) => shifted(*ms),
            Self::Simulated(clock) => clock.now(),
        }
    }

    /// Returns this clock, or the system's instead of one that is fixed: for what has to come to an end, for example a limit per second.
    #[must_use]
    pub fn moving(&self) -> Self {
        match self {
            Self::Fixed(_) => Self::System,
            Self::Simulated(clock) if clock.is_fixed() => Self::System,
            clock => *clock,
        }
    }

    /// Returns the current day in UTC.
    #[must_use]
    pub fn today(&self) -> Date {
        self.now().to_zoned(TimeZone::UTC).date()
    }

    /// Returns the current time in milliseconds since 1970.
    #[must_use]
    pub fn now_ms(&self) -> i64 {
        self.now().as_millisecond()
    }
}

/// Formats a time as RFC 3339 in UTC with milliseconds (`2026-11-20T17:24:08.120Z`), the form of every time in answers and exports.
#[must_use]
pub fn rfc3339(at_ms: i64) -> String {
    Timestamp::from_millisecond(at_ms).map_or_else(|_| String::new(), |at| format!("{at:.3}"))
}

/// Formats a time as [`rfc3339`] does; empty for 0, which means that there is none.
#[must_use]
pub fn rfc3339_or_empty(at_ms: i64) -> String {
    if at_ms == 0 { String::new() } else { rfc3339(at_ms) }
}

/// Returns the day of a time in milliseconds since 1970, in UTC; the first day of 1970 for a time that has no day.
#[must_use]
pub fn day_of(at_ms: i64) -> Date {
    Timestamp::from_millisecond(at_ms).unwrap_or_default().to_zoned(TimeZone::UTC).date()
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Proves that 0 is no time, and every other time is written as others are.
    #[test]
    fn no_time_is_empty() {
        assert_eq!((rfc3339_or_empty(0).as_str(), rfc3339_or_empty(1).as_str()), ("", "1970-01-01T00:00:00.001Z"));
    }

    /// Proves that a clock that starts at an instant shows it, moves, and is taken up by the clock of a demo when its history ends.
    #[test]
    fn a_clock_starts_and_moves() {
        let start: Timestamp = "2027-03-01T09:30:00Z".parse().unwrap();
        let clock = Clock::starting_at(start);
        let demo = SimulatedClock::new(start, clock);
        demo.end();
        for clock in [clock, Clock::Simulated(demo)] {
            let first = clock.now();
            assert!(first >= start && first.duration_since(start) < SignedDuration::from_mins(10), "{first}");
            while clock.now() == first {}
            assert!(clock.now() > first);
        }
    }

    /// Proves that a clock whose history has ended is stopped where it is moved to, and moves forward only.
    #[test]
    fn an_ended_history_can_be_moved() {
        let at = |text: &str| -> Timestamp { text.parse().unwrap() };
        let demo = SimulatedClock::new(at("2027-03-01T22:00:00Z"), Clock::Fixed(at("2027-03-02T11:00:00Z")));
        demo.end();
        for (moved, now) in [("11:00:25Z", "11:00:25Z"), ("11:00:20Z", "11:00:25Z"), ("11:00:50Z", "11:00:50Z")] {
            demo.move_to(at(&format!("2027-03-02T{moved}")));
            assert_eq!(Clock::Simulated(demo).now(), at(&format!("2027-03-02T{now}")));
        }
    }

    /// Proves that a fixed clock is replaced by the system's where time has to pass, also after a history, and that no other clock is.
    #[test]
    fn a_fixed_clock_does_not_move() {
        let at: Timestamp = "2027-03-01T09:30:00Z".parse().unwrap();
        let demo = SimulatedClock::new(at, Clock::Fixed(at));
        assert_eq!(Clock::Simulated(demo).moving().now(), at, "a history moves");
        demo.end();
        for clock in [Clock::Fixed(at), Clock::Simulated(demo), Clock::System] {
            assert!(matches!(clock.moving(), Clock::System), "{clock:?}");
        }
        assert!(matches!(Clock::Shifted(5).moving(), Clock::Shifted(5)));
    }
}
