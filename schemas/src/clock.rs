//! The one source of "now". Tests fix it; nothing else in the engine asks the system.

use std::sync::atomic::{AtomicI64, Ordering};

use jiff::Timestamp;

/// Tells the time: the system's, or a fixed instant (`[clock] fixed`, tests only).
#[derive(Clone, Copy, Debug, Default)]
pub enum Clock {
    /// The system's clock.
    #[default]
    System,
    /// Always this instant.
    Fixed(Timestamp),
    /// The instant that a demo is at while it plays its history.
    Played(&'static Played),
}

/// The time of a demo: that of its history, as long as it plays it, then the time of another clock.
#[derive(Debug)]
pub struct Played {
    /// Milliseconds since 1970; [`i64::MIN`] once the history is played.
    at_ms: AtomicI64,
    after: After,
}

/// What goes on once a history is played.
#[derive(Clone, Copy, Debug)]
enum After {
    System,
    Fixed(Timestamp),
}

impl Played {
    /// A clock that stands at an instant until it is moved, and is as `after` once it has ended. One a process: it is never freed.
    #[must_use]
    pub fn new(at: Timestamp, after: Clock) -> &'static Self {
        let after = match after {
            Clock::System | Clock::Played(_) => After::System,
            Clock::Fixed(at) => After::Fixed(at),
        };
        Box::leak(Box::new(Self { at_ms: AtomicI64::new(at.as_millisecond()), after }))
    }

    /// Moves it to an instant. It never goes back.
    pub fn move_to(&self, at: Timestamp) {
        self.at_ms.fetch_max(at.as_millisecond(), Ordering::Relaxed);
    }

    /// Ends the history.
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
    /// Now, in UTC.
    #[must_use]
    pub fn now(&self) -> Timestamp {
        match self {
            Self::System => Timestamp::now(),
            Self::Fixed(at) => *at,
            Self::Played(played) => played.now(),
        }
    }

    /// Now, in milliseconds since 1970.
    #[must_use]
    pub fn now_ms(&self) -> i64 {
        self.now().as_millisecond()
    }
}

/// RFC 3339 in UTC with milliseconds (`2026-11-20T17:24:08.120Z`), the form of every time in answers and exports.
#[must_use]
pub fn rfc3339(at_ms: i64) -> String {
    Timestamp::from_millisecond(at_ms).map_or_else(|_| String::new(), |at| format!("{at:.3}"))
}
