//! Tiers: what each may do. The numbers are configured (`[tiers]`); nothing else in the API knows a limit of a tier.

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

impl Limits {
    /// Limits by their numbers; 0 calls a minute are no limit of their own.
    #[must_use]
    pub fn new(calls_per_day: i64, calls_per_minute: i64, rows_max: usize, filters_max: usize, watches_max: usize) -> Self {
        let minute = (calls_per_minute > 0).then_some(Window { name: "minute", length_s: 60, calls_max: calls_per_minute });
        Self { day: Window { name: "day", length_s: 86_400, calls_max: calls_per_day }, minute, rows_max, filters_max, watches_max }
    }
}

/// What each tier may do, as configured. Anonymous callers have what free keys have, by address.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Tiers {
    free: Limits,
    pro: Limits,
    business: Limits,
    fleet: Limits,
    fleet_plus: Limits,
}

impl Tiers {
    /// Every tier's limits.
    ///
    /// # Errors
    /// What `of` fails with.
    pub fn new<E>(of: impl Fn(Tier) -> Result<Limits, E>) -> Result<Self, E> {
        let (free, pro, business) = (of(Tier::Free)?, of(Tier::Pro)?, of(Tier::Business)?);
        Ok(Self { free, pro, business, fleet: of(Tier::Fleet)?, fleet_plus: of(Tier::FleetPlus)? })
    }

    /// The same limits for free keys and none, and the same for all paid ones.
    #[must_use]
    pub fn of_two(free: Limits, paid: Limits) -> Self {
        Self { free, pro: paid, business: paid, fleet: paid, fleet_plus: paid }
    }

    /// The limits of a tier.
    #[must_use]
    pub fn of(&self, tier: Tier) -> Limits {
        match tier {
            Tier::Anonymous | Tier::Free => self.free,
            Tier::Pro => self.pro,
            Tier::Business => self.business,
            Tier::Fleet => self.fleet,
            Tier::FleetPlus => self.fleet_plus,
        }
    }
}

/// Calls of one address that must be paid for and are not: they carry no payment, or one that its payer did not sign.
pub const UNPAID: Window = Window { name: "minute", length_s: 60, calls_max: 600 };
/// Calls of one address with a payment that bought nothing, or that was not signed by its payer. It bounds how many signatures are recovered; an
/// unpaid call of the same address does not count.
pub const CALLS_WITH_PAYMENT: Window = Window { name: "minute", length_s: 60, calls_max: 6_000 };
/// Payments from one address that are not settled: refused, or still open. Without this many the facilitator is asked for nothing more.
pub const PAYMENTS_PER_ADDRESS: Window = Window { name: "minute", length_s: 60, calls_max: 120 };
/// Payments by one payer that are not settled.
pub const PAYMENTS_PER_PAYER: Window = Window { name: "minute", length_s: 60, calls_max: 60 };
/// Files that one address may read.
pub const FILES: Window = Window { name: "minute", length_s: 60, calls_max: 600 };
/// Checkpoints that one address may submit to this witness.
pub const CHECKPOINTS: Window = Window { name: "minute", length_s: 60, calls_max: 600 };
/// Paths that lead nowhere, asked for by one address.
pub const UNKNOWN_PATHS: Window = Window { name: "minute", length_s: 60, calls_max: 600 };
/// The first tier that may keep filters and watches.
pub const KEEPS_FROM: Tier = Tier::Pro;
/// Free keys minted from one network address a UTC day: an IPv4 address, or an IPv6 /48.
pub const MINTS_PER_ADDRESS_MAX: i64 = 20;
/// Days without use after which a free key expires. Keys of other tiers do not expire.
pub const FREE_KEY_UNUSED_DAYS_MAX: i64 = 90;
