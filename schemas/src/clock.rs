//! The one source of "now". Tests fix it; nothing else in the engine asks the system.

use jiff::Timestamp;

/// Tells the time: the system's, or a fixed instant (`[clock] fixed`, tests only).
#[derive(Clone, Copy, Debug, Default)]
pub enum Clock {
    /// The system's clock.
    #[default]
    System,
    /// Always this instant.
    Fixed(Timestamp),
}

impl Clock {
    /// Now, in UTC.
    #[must_use]
    pub fn now(&self) -> Timestamp {
        match self {
            Self::System => Timestamp::now(),
            Self::Fixed(at) => *at,
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
