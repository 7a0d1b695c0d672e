//! Records that come by the business day: a few on each of the last days, and fewer before, the further back the fewer. Which ones come on
//! a day follows from the day alone, so that a later day shows more and takes none away.

use jiff::ToSpan;
use jiff::civil::{Date, Weekday};

use crate::chance::Dice;
use crate::world::{World, day_before};

/// The days before the beginning on which as many come as later.
const FULL_DAYS: i64 = 60;
/// The days before those, in which they thin out.
const THIN_DAYS: i64 = 5 * 365;
/// The records of a day are numbered below this.
const A_DAY_MAX: u64 = 10;
/// From which days are counted; older ones are not.
const EPOCH: Date = Date::constant(2000, 1, 1);

/// A population that comes so.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Daily {
    /// Names its dice, which no other population has.
    pub(crate) kind: u64,
    /// About how many come on a business day: from 1 to 8.
    pub(crate) a_day: u64,
}

/// A record's day, and which one of that day it is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Place {
    pub(crate) day: Date,
    pub(crate) index: u64,
}

impl Place {
    /// A number that no other place of its population has, and that grows with the days.
    pub(crate) fn number(self) -> u64 {
        day_number(self.day) * A_DAY_MAX + self.index
    }
}

impl Daily {
    pub(crate) fn dice(self, world: &World, place: Place) -> Dice {
        Dice::new(world.seed, self.kind, place.number())
    }

    /// The places of a window of days, both inclusive, oldest first.
    pub(crate) fn places(self, world: &World, from: Date, to: Date) -> impl Iterator<Item = Place> + use<> {
        let (seed, full) = (world.seed, day_before(world.first_today, FULL_DAYS));
        let (first, last) = (from.max(day_before(full, THIN_DAYS)), to.min(world.today));
        let days = std::iter::successors(Some(first), |day| day.tomorrow().ok()).take_while(move |day| *day <= last);
        days.flat_map(move |day| (0..self.count(seed, full, day)).map(move |index| Place { day, index }))
    }

    /// All places, oldest first.
    pub(crate) fn all(self, world: &World) -> impl Iterator<Item = Place> + use<> {
        self.places(world, EPOCH, world.today)
    }

    fn count(self, seed: u64, full: Date, day: Date) -> u64 {
        if is_weekend(day) {
            return 0;
        }
        let dice = Dice::new(seed, self.kind + 50, day_number(day));
        let age = u64::try_from((full - day).get_days()).unwrap_or(0);
        if age == 0 { self.a_day - 1 + dice.below(0, 3) } else { u64::from(dice.once_in(0, 2 + age / 120)) }
    }
}

fn day_number(day: Date) -> u64 {
    u64::try_from((day - EPOCH).get_days()).unwrap_or(0)
}

fn is_weekend(day: Date) -> bool {
    matches!(day.weekday(), Weekday::Saturday | Weekday::Sunday)
}

/// So many days later, whatever day that is.
pub(crate) fn after(day: Date, days: u64) -> Date {
    day.saturating_add(i64::try_from(days.min(100_000)).unwrap_or(0).days())
}

/// The business day so many days later, or the next one.
pub(crate) fn business_day_after(day: Date, days: u64) -> Date {
    let day = after(day, days);
    match day.weekday() {
        Weekday::Saturday => after(day, 2),
        Weekday::Sunday => after(day, 1),
        _ => day,
    }
}

/// The last business day up to this one.
pub(crate) fn last_business_day(day: Date) -> Date {
    match day.weekday() {
        Weekday::Saturday => day_before(day, 1),
        Weekday::Sunday => day_before(day, 2),
        _ => day,
    }
}
