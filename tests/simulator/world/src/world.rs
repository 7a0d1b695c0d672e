//! The state of the simulated upstreams, without storing records: a record follows from (seed, feed, index) and from the few changes.
//! Within a feed the dates increase with the index, so a window of days is a range of indexes.

use std::collections::HashMap;

use jiff::ToSpan;
use jiff::civil::Date;

use crate::expected_changes::ExpectedChange;
use crate::options::Options;
use crate::random::Random;
use crate::script::Script;

/// A population of records.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Feed {
    /// Recalls of CPSC.
    Cpsc,
    /// Enforcement reports of openFDA about food.
    Food,
    /// Enforcement reports of openFDA about drugs.
    Drug,
    /// Enforcement reports of openFDA about devices.
    Device,
    /// Campaigns of NHTSA.
    Nhtsa,
    /// Recalls and alerts of FSIS.
    Fsis,
}

impl Feed {
    /// All populations.
    pub const ALL: [Self; 6] = [Self::Cpsc, Self::Food, Self::Drug, Self::Device, Self::Nhtsa, Self::Fsis];

    /// The share of all records, per mille, before limits.
    pub fn share(self) -> u64 {
        [200, 220, 120, 160, 180, 120][self as usize]
    }

    /// Upstreams that answer with everything at once have at most as many records as one answer may hold, however many there are in total.
    fn records_max(self) -> u64 {
        [40_000, u64::MAX, u64::MAX, u64::MAX, 20_000, 4_000][self as usize]
    }

    fn years(self) -> u64 {
        [45, 14, 14, 14, 28, 25][self as usize]
    }
}

/// The changes of a record since the start.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct Fate {
    /// How many times its text was edited.
    pub edits: u32,
    /// The day on which its status changed from open to closed.
    pub closed: Option<Date>,
    /// Whether a number was assigned to a record that began without one.
    pub numbered: bool,
    /// Whether it was withdrawn from the stream that publishes complete snapshots.
    pub withdrawn: bool,
}

/// A round in which upstreams published something.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Round {
    /// The day of the upstreams.
    pub day: Date,
    /// The time in milliseconds since 1970.
    pub at_ms: i64,
}

/// The state of all records.
pub struct World {
    /// The seed that determines everything.
    pub seed: u64,
    /// The current day of the upstreams.
    pub today: Date,
    /// The day of the start. Properties that depend on age use this day; otherwise they would change without an expected change.
    pub first_today: Date,
    /// Changes affect records of the last this many days; 0: any record.
    pub edit_days: u32,
    begun_with: [u64; 6],
    /// The days of the records that were added after the start, by population.
    pub births: [Vec<Date>; 6],
    /// What happened to single records since the start.
    pub fates: HashMap<(Feed, u64), Fate>,
    /// How many changes were applied.
    pub changes: u64,
    /// The rounds so far, in each of which upstreams published something. The simulator adds them.
    pub rounds: Vec<Round>,
    /// What a reader should have found, in order.
    pub expected: Vec<ExpectedChange>,
    /// How many ordinary stories are published on a day.
    pub stories_a_day: u64,
    /// How many articles a list of page views has.
    pub articles: u64,
    /// Whether some upstreams also publish what a reader must refuse.
    pub has_bad_files: bool,
    /// What callers added to the sites of stories and page views.
    pub script: Script,
}

impl World {
    /// The state at the start.
    #[must_use]
    pub fn new(options: &Options) -> Self {
        let Options { seed, records, today, edit_days, stories_a_day_max, articles_max, has_bad_files, .. } = *options;
        let mut begun_with = Feed::ALL.map(|feed| (records * feed.share() / 1000).max(1).min(feed.records_max()));
        // Records above the limits go to the upstreams with paging.
        let short = records.saturating_sub(begun_with.iter().sum());
        for feed in [Feed::Food, Feed::Drug, Feed::Device] {
            begun_with[feed as usize] += short / 3;
        }
        begun_with[Feed::Food as usize] += short % 3;
        let fates = HashMap::new();
        Self {
            seed,
            today,
            first_today: today,
            edit_days,
            begun_with,
            births: Default::default(),
            fates,
            changes: 0,
            rounds: Vec::new(),
            expected: Vec::new(),
            stories_a_day: records.saturating_mul(2).clamp(24, stories_a_day_max.max(24)),
            articles: records.clamp(50, articles_max.max(50)),
            has_bad_files,
            script: Script::default(),
        }
    }

    /// The number of records of a population.
    #[must_use]
    pub fn len(&self, feed: Feed) -> u64 {
        self.begun_with[feed as usize] + self.births[feed as usize].len() as u64
    }

    /// Returns the number of rounds on a day.
    pub fn rounds_on(&self, day: Date) -> u64 {
        self.rounds.iter().filter(|round| round.day == day).count() as u64
    }

    /// The number of records that a population had at the start.
    #[must_use]
    pub fn begun_with(&self, feed: Feed) -> u64 {
        self.begun_with[feed as usize]
    }

    /// The number of changes so far.
    #[must_use]
    pub fn changes(&self) -> u64 {
        self.changes
    }

    /// The random numbers of a record.
    #[must_use]
    pub fn random(&self, feed: Feed, index: u64) -> Random {
        Random::new(self.seed, feed as u64, index)
    }

    /// What happened to a record since the start.
    #[must_use]
    pub fn fate(&self, feed: Feed, index: u64) -> Fate {
        self.fates.get(&(feed, index)).copied().unwrap_or_default()
    }

    /// Whether the record was added after the start.
    pub fn is_born(&self, feed: Feed, index: u64) -> bool {
        index >= self.begun_with[feed as usize]
    }

    /// Returns the publication day. A quarter of the records are within the last year; the others become fewer over the years before.
    pub fn date(&self, feed: Feed, index: u64) -> Date {
        let begun_with = self.begun_with[feed as usize];
        if index >= begun_with {
            return self.births[feed as usize].get((index - begun_with) as usize).copied().unwrap_or(self.today);
        }
        let place = (index + 1) as f64 / begun_with as f64;
        let days =
            if place > 0.75 { 365.0 * (1.0 - place) / 0.25 } else { 365.0 + (feed.years() * 365) as f64 * (1.0 - place / 0.75).powf(1.3) };
        day_before(self.first_today, days as i64)
    }

    /// Returns the first index whose day is not before a day.
    pub fn first_on(&self, feed: Feed, day: Date) -> u64 {
        let (mut low, mut high) = (0, self.len(feed));
        while low < high {
            let middle = low + (high - low) / 2;
            if self.date(feed, middle) < day {
                low = middle + 1;
            } else {
                high = middle;
            }
        }
        low
    }

    /// Returns the indexes of a window of days, both inclusive.
    pub fn window(&self, feed: Feed, from: Option<Date>, to: Option<Date>) -> std::ops::Range<u64> {
        let low = from.map_or(0, |from| self.first_on(feed, from));
        let high = to.and_then(|to| to.tomorrow().ok()).map_or_else(|| self.len(feed), |after| self.first_on(feed, after));
        low..high.max(low)
    }
}

/// Returns the day this many days earlier; the day itself if there is no such date.
pub fn day_before(day: Date, days: i64) -> Date {
    day.checked_sub(days.days()).unwrap_or(day)
}

/// Returns an invented name, the same for the same random numbers and tag.
pub fn brand(random: Random, tag: u64) -> String {
    use crate::words::{BRAND_HEADS, BRAND_TAILS};
    let (head, tail) = (random.pick(tag, BRAND_HEADS), random.pick(tag + 1, BRAND_TAILS));
    let mut name = String::with_capacity(head.len() + tail.len() + 8);
    name.push_str(head);
    name.push_str(tail);
    name
}

/// A text with a capital first letter.
pub fn capitalised(text: &str) -> String {
    let mut letters = text.chars();
    letters.next().map(|first| first.to_uppercase().chain(letters).collect()).unwrap_or_default()
}

/// Formats a day as `20261120`.
pub fn compact(day: Date) -> String {
    let mut out = day.to_string();
    out.retain(|letter| letter != '-');
    out
}

/// The sentence that is added to an edited record.
pub fn update(random: Random, edits: u32) -> String {
    if edits == 0 {
        String::new()
    } else {
        format!(" Update {edits}: {} further reports were received.", 2 + random.below(900 + u64::from(edits), 200))
    }
}
