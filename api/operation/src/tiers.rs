//! Tiers and their limits. The numbers are configured (`[tiers]`); nothing else in the API defines a limit of a tier.

use schemas::views::accounts::Tier;

/// A quota window aligned with the clock: each UTC day or minute is one window.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Window {
    /// The name in `RateLimit` headers.
    pub name: &'static str,
    /// The length in seconds; windows start at multiples of it since 1970.
    pub length_s: i64,
    /// The most calls in one window.
    pub calls_max: i64,
}

/// The limits of a tier.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Limits {
    /// The most calls per UTC day.
    pub day: Window,
    /// The most calls per minute, if that limit is configured.
    pub minute: Option<Window>,
    /// The most rows in one answer of a feed.
    pub rows_max: usize,
    /// The most saved filters in one service.
    pub filters_max: usize,
    /// The most watches in one service.
    pub watches_max: usize,
    /// The most stored fleets in one service.
    pub fleets_max: usize,
}

impl Limits {
    /// Creates limits from numbers, without stored fleets. 0 calls per minute means no limit per minute.
    #[must_use]
    pub fn new(calls_per_day: i64, calls_per_minute: i64, rows_max: usize, filters_max: usize, watches_max: usize) -> Self {
        let minute = (calls_per_minute > 0).then_some(Window { name: "minute", length_s: 60, calls_max: calls_per_minute });
        let day = Window { name: "day", length_s: 86_400, calls_max: calls_per_day };
        Self { day, minute, rows_max, filters_max, watches_max, fleets_max: 0 }
    }

    /// The limits of this tier with another number of stored fleets.
    #[must_use]
    pub fn with_fleets(self, fleets_max: usize) -> Self {
        Self { fleets_max, ..self }
    }
}

/// The configured limits of all tiers. Anonymous callers have the limits of free keys, per address.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Tiers {
    free: Limits,
    pro: Limits,
    business: Limits,
    fleet: Limits,
    fleet_plus: Limits,
}

impl Tiers {
    /// Creates the tiers, with the limits that `limits_of` returns for each.
    #[must_use]
    pub fn new(limits_of: impl Fn(Tier) -> Limits) -> Self {
        let (free, pro, business) = (limits_of(Tier::Free), limits_of(Tier::Pro), limits_of(Tier::Business));
        Self { free, pro, business, fleet: limits_of(Tier::Fleet), fleet_plus: limits_of(Tier::FleetPlus) }
    }

    /// One set of limits for anonymous callers and free keys, and one for all paid tiers.
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

/// How many times the limit of one IPv6 /64 all addresses of a /48 have together.
pub const NETWORKS_PER_SITE: i64 = 16;
/// Unpaid calls of paid operations per address: calls without a payment, or with one that its payer did not sign.
pub const UNPAID: Window = Window { name: "minute", length_s: 60, calls_max: 600 };
/// Calls with a payment per address, counted unless the payment is settled. This limits how many signatures are verified; unpaid calls do not count.
pub const CALLS_WITH_PAYMENT: Window = Window { name: "minute", length_s: 60, calls_max: 6_000 };
/// Unsettled payments per address: refused or still open. At this limit the facilitator is not asked any more.
pub const PAYMENTS_PER_ADDRESS: Window = Window { name: "minute", length_s: 60, calls_max: 120 };
/// Repeated answers of one payment.
pub const REPEATS: Window = Window { name: "minute", length_s: 60, calls_max: 60 };
/// Unsettled payments per payer.
pub const PAYMENTS_PER_PAYER: Window = Window { name: "minute", length_s: 60, calls_max: 60 };
/// The lowest tier that may save filters and watches.
pub const SAVED_ITEMS_MIN_TIER: Tier = Tier::Pro;
/// The lowest tier that may store fleets.
pub const FLEETS_MIN_TIER: Tier = Tier::Fleet;
/// The lowest tier that may read whole services as files.
pub const EXPORTS_MIN_TIER: Tier = Tier::Pro;
/// The most free keys per UTC day from one network address: an IPv4 address, or an IPv6 /48.
pub const MINTS_PER_ADDRESS_MAX: i64 = 20;
/// After how many days without use a free key expires. Keys of other tiers do not expire.
pub const FREE_KEY_UNUSED_DAYS_MAX: i64 = 90;
/// The most keys of an account that work and have no end.
pub const KEYS_PER_ACCOUNT_MAX: usize = 50;
/// The most keys that an account has ever had, those that ended included.
pub const KEYS_EVER_MAX: usize = 1_000;
/// The most keys that an account creates per UTC day, by minting and by rotation.
pub const NEW_KEYS_PER_DAY_MAX: i64 = 50;
/// The most hours that a rotated key still works.
pub const KEY_OVERLAP_HOURS_MAX: i64 = 168;
