//! Records that are added on business days: a few on each of the last days, and fewer the longer ago. The records of a day depend only on
//! the day, so a later date adds records and removes none.

use jiff::ToSpan;
use jiff::civil::{Date, Weekday};

use crate::random::Random;
use crate::world::{World, day_before};

/// The number of days before the start with as many records as later days.
const FULL_DAYS: i64 = 60;
/// The number of days before those, in which the records become fewer.
const THIN_DAYS: i64 = 5 * 365;
/// The upper limit of a record's number within its day.
pub const A_DAY_MAX: u64 = 10;
/// The day from which days are counted; there are no earlier ones.
const EPOCH: Date = Date::constant(2000, 1, 1);

/// A population of records that are added by day.
#[derive(Clone, Copy, Debug)]
pub struct Daily {
    /// Selects the random numbers of this population; unique among populations.
    pub kind: u64,
    /// About how many records are added on a business day: 1 to 8.
    pub a_day: u64,
}

/// A record's day and its number within that day.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct DayPosition {
    /// The day.
    pub day: Date,
    /// The number within the day, from 0.
    pub index: u64,
}

impl DayPosition {
    /// Returns a number that is unique within the population and increases with the days.
    pub fn number(self) -> u64 {
        day_number(self.day) * A_DAY_MAX + self.index
    }
}

impl Daily {
    /// The random numbers of a record.
    #[must_use]
    pub fn random(self, world: &World, place: DayPosition) -> Random {
        Random::new(world.seed, self.kind, place.number())
    }

    /// Returns the positions of a window of days, both inclusive, oldest first.
    pub fn places(self, world: &World, from: Date, to: Date) -> impl Iterator<Item = DayPosition> + use<> {
        let (seed, full) = (world.seed, day_before(world.first_today, FULL_DAYS));
        let (first, last) = (from.max(day_before(full, THIN_DAYS)), to.min(world.today));
        let days = std::iter::successors(Some(first), |day| day.tomorrow().ok()).take_while(move |day| *day <= last);
        days.flat_map(move |day| (0..self.count(seed, full, day)).map(move |index| DayPosition { day, index }))
    }

    /// Returns all positions, oldest first.
    pub fn all(self, world: &World) -> impl Iterator<Item = DayPosition> + use<> {
        self.places(world, EPOCH, world.today)
    }

    fn count(self, seed: u64, full: Date, day: Date) -> u64 {
        if is_weekend(day) {
            return 0;
        }
        let random = Random::new(seed, self.kind + 50, day_number(day));
        let age = u64::try_from((full - day).get_days()).unwrap_or(0);
        if age == 0 { self.a_day - 1 + random.below(0, 3) } else { u64::from(random.once_in(0, 2 + age / 120)) }
    }
}

fn day_number(day: Date) -> u64 {
    u64::try_from((day - EPOCH).get_days()).unwrap_or(0)
}

fn is_weekend(day: Date) -> bool {
    matches!(day.weekday(), Weekday::Saturday | Weekday::Sunday)
}

/// Returns the day this many days later.
pub fn after(day: Date, days: u64) -> Date {
    day.saturating_add(i64::try_from(days.min(100_000)).unwrap_or(0).days())
}

/// Returns the business day this many days later, or the next one.
pub fn business_day_after(day: Date, days: u64) -> Date {
    let day = after(day, days);
    match day.weekday() {
        Weekday::Saturday => after(day, 2),
        Weekday::Sunday => after(day, 1),
        _ => day,
    }
}

/// Returns the last business day up to a day.
pub fn last_business_day(day: Date) -> Date {
    match day.weekday() {
        Weekday::Saturday => day_before(day, 1),
        Weekday::Sunday => day_before(day, 2),
        _ => day,
    }
}
