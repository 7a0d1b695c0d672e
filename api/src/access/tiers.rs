//! THE TABLE of tiers: what each may do. Nothing else in the API knows a limit of a tier.

use schemas::views::accounts::Tier;

/// A quota that renews with the clock, the same for every UTC day or minute.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Window {
    /// Its name in `RateLimit` headers.
    pub name: &'static str,
    /// Its length in seconds; windows begin at multiples of it since 1970.
    pub length_s: i64,
    /// Calls in one window.
    pub calls_max: i64,
}

/// What a tier may do.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Limits {
    /// Calls a UTC day.
    pub day: Window,
    /// Calls a minute, where that is less than a day's calls.
    pub minute: Option<Window>,
    /// Rows in one answer of a feed.
    pub rows_max: usize,
    /// Saved filters in one service.
    pub filters_max: usize,
    /// Watches in one service.
    pub watches_max: usize,
}

const fn day(calls_max: i64) -> Window {
    Window { name: "day", length_s: 86_400, calls_max }
}

const fn minute(calls_max: i64) -> Option<Window> {
    Some(Window { name: "minute", length_s: 60, calls_max })
}

/// The limits of a tier. Anonymous callers are limited by address, at the free rate.
#[must_use]
pub const fn limits(tier: Tier) -> Limits {
    match tier {
        Tier::Anonymous | Tier::Free => Limits { day: day(100), minute: None, rows_max: 25, filters_max: 0, watches_max: 0 },
        Tier::Pro => Limits { day: day(10_000), minute: None, rows_max: 200, filters_max: 20, watches_max: 50 },
        Tier::Business => Limits { day: day(100_000), minute: minute(50_000), rows_max: 200, filters_max: 50, watches_max: 200 },
        Tier::Fleet => Limits { day: day(250_000), minute: minute(100_000), rows_max: 200, filters_max: 100, watches_max: 500 },
        Tier::FleetPlus => Limits { day: day(1_000_000), minute: None, rows_max: 200, filters_max: 200, watches_max: 500 },
    }
}

/// Calls of one address that must be paid for and are not.
pub const UNPAID: Window = Window { name: "minute", length_s: 60, calls_max: 600 };
/// The first tier that may keep filters and watches.
pub const KEEPS_FROM: Tier = Tier::Pro;
/// Live keys of one e-mail address.
pub const KEYS_PER_EMAIL_MAX: usize = 10;
/// Keys minted from one address a UTC day.
pub const MINTS_PER_ADDRESS_MAX: i64 = 20;
