//! The only source of the current time. Tests fix it; no other code of the engine reads the system clock.

use std::sync::atomic::{AtomicI64, Ordering};

use jiff::Timestamp;

/// A clock: the system's, or one that returns a fixed instant (`[clock] fixed`, tests only).
#[derive(Clone, Copy, Debug, Default)]
pub enum Clock {
    /// The system's clock.
    #[default]
    System,
    /// Always this instant.
    Fixed(Timestamp),
    /// The clock of a demo: it returns the time of the simulated history until the history ends.
    Simulated(&'static SimulatedClock),
}

/// A clock for a demo. It returns instants of the simulated history until [`Self::end`] is called, and the time of another clock
/// afterwards.
#[derive(Debug)]
pub struct SimulatedClock {
    /// The current instant in milliseconds since 1970; [`i64::MIN`] once the history has ended.
    at_ms: AtomicI64,
    after: After,
}

/// The clock that is read after the simulated history.
#[derive(Clone, Copy, Debug)]
enum After {
    System,
    Fixed(Timestamp),
}

impl SimulatedClock {
    /// Creates a clock that returns `at` until it is moved, and the time of `after` once the history has ended. A process creates one: its
    /// memory is never freed.
    #[must_use]
    pub fn new(at: Timestamp, after: Clock) -> &'static Self {
        let after = match after {
            Clock::System | Clock::Simulated(_) => After::System,
            Clock::Fixed(at) => After::Fixed(at),
        };
        Box::leak(Box::new(Self { at_ms: AtomicI64::new(at.as_millisecond()), after }))
    }

    /// Moves the clock forward to an instant. An earlier instant changes nothing.
    pub fn move_to(&self, at: Timestamp) {
        self.at_ms.fetch_max(at.as_millisecond(), Ordering::Relaxed);
    }

    /// Ends the simulated history.
    pub fn end(&self) {
        self.at_ms.store(i64::MIN, Ordering::Relaxed);
    }

    fn now(&self) -> Timestamp {
        match (self.at_ms.load(Ordering::Relaxed), self.after) {
            (i64::MIN, After::System) => Timestamp::now(),
            (i64::MIN, After::Fixed(at)) => at,
            (at_ms, _) => Timestamp::from_millisecond(at_ms).unwrap_or(Timestamp::UNIX_EPOCH),
        }
    }
}

impl Clock {
    /// Returns the current time in UTC.
    #[must_use]
    pub fn now(&self) -> Timestamp {
        match self {
            Self::System => Timestamp::now(),
            Self::Fixed(at) => *at,
            Self::Simulated(clock) => clock.now(),
        }
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
