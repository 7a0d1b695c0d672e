//! When the variants of a product are in stock: a function of its random numbers and the time.

use jiff::Timestamp;
use jiff::tz::{Offset, TimeZone};
use simulated_world::random::Random;

pub(super) const DAY_MS: i64 = 86_400_000;
/// Before every simulated poll: 2025-01-06T00:00:00Z.
const FIRST_MS: i64 = 1_736_121_600_000;
/// The most restocks of a product that are followed.
const RESTOCKS_MAX: u64 = 20_000;
/// The share of a gap during which a product is in stock.
const STAY: f64 = 0.45;
/// When a returned unit is for sale, as a share of the gap.
const TRICKLE_AT: f64 = 0.6;
/// Shorter gaps have no returned unit, in days.
const TRICKLE_GAP_MIN: f64 = 5.0;

/// The gaps of an irregular product, in days.
const IRREGULAR_DAYS: [f64; 6] = [2.0, 4.0, 7.0, 11.0, 16.0, 22.0];

/// How restocks follow each other.
#[derive(Clone, Copy, Debug)]
pub(super) enum Pattern {
    /// The logarithms of gaps are normal.
    LogNormal { median_days: f64, spread: f64 },
    /// Short, middle and long gaps in random order, each once in six gaps, so that no run of them is regular.
    Irregular,
    /// The gaps double for two months, every four months.
    Regime { median_days: f64, spread: f64 },
}

impl Pattern {
    /// The gap after the restock with a number, at a time.
    fn gap_days(self, random: Random, number: u64, at_ms: i64) -> f64 {
        let (first, second) = (random.unit(number * 2 + 1_000_000), random.unit(number * 2 + 1_000_001));
        let normal = (-2.0 * (1.0 - first).ln()).sqrt() * (std::f64::consts::TAU * second).cos();
        let log_normal = |median: f64, spread: f64| median * (spread * normal).exp();
        match self {
            Self::LogNormal { median_days, spread } => log_normal(median_days, spread),
            Self::Irregular => {
                let block = number / IRREGULAR_DAYS.len() as u64;
                let mut order = IRREGULAR_DAYS;
                order.sort_by_key(|days| random.roll(block * 1_000 + *days as u64));
                log_normal(order[(number % IRREGULAR_DAYS.len() as u64) as usize], 0.1)
            }
            Self::Regime { median_days, spread } => {
                let is_slow = at_ms.div_euclid(60 * DAY_MS).rem_euclid(2) == 1;
                log_normal(if is_slow { median_days * 2.0 } else { median_days }, spread)
            }
        }
    }
}

/// The last restock of a product before a time.
#[derive(Clone, Copy, Debug)]
pub(super) struct Stock {
    at_ms: i64,
    restocked_ms: i64,
    gap_ms: i64,
}

impl Stock {
    pub(super) fn at(random: Random, pattern: Pattern, at_ms: i64) -> Self {
        let mut restocked_ms = FIRST_MS + (random.unit(7) * 7.0 * DAY_MS as f64) as i64;
        let mut gap_ms = DAY_MS;
        for number in 0..RESTOCKS_MAX {
            gap_ms = (pattern.gap_days(random, number, restocked_ms) * DAY_MS as f64) as i64;
            if restocked_ms + gap_ms > at_ms {
                break;
            }
            restocked_ms += gap_ms;
        }
        Self { at_ms, restocked_ms, gap_ms }
    }

    /// Whether a variant is in stock, and since when it is or is not.
    pub(super) fn variant(&self, variant: usize, has_trickles: bool) -> (bool, i64) {
        let share = |share: f64| (self.gap_ms as f64 * share) as i64;
        let sold_out_ms = self.restocked_ms + share(STAY * (0.6 + 0.2 * variant as f64));
        if self.at_ms < self.restocked_ms {
            return (false, FIRST_MS);
        }
        if self.at_ms < sold_out_ms {
            return (true, self.restocked_ms);
        }
        let trickle_ms = self.restocked_ms + share(TRICKLE_AT);
        let is_long = self.gap_ms as f64 > TRICKLE_GAP_MIN * DAY_MS as f64;
        if variant == 0 && has_trickles && is_long && self.at_ms >= trickle_ms {
            let is_up = self.at_ms < trickle_ms + DAY_MS;
            return (is_up, if is_up { trickle_ms } else { trickle_ms + DAY_MS });
        }
        (false, sold_out_ms)
    }
}

/// A time as stores write it: with their offset.
pub(super) fn shop_time(at_ms: i64) -> String {
    let zone = TimeZone::fixed(Offset::constant(-5));
    Timestamp::from_millisecond(at_ms).map_or_else(|_| String::new(), |at| at.to_zoned(zone).strftime("%Y-%m-%dT%H:%M:%S%:z").to_string())
}
