//! The state of stores and niches, which decisions and answers read.

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};

use super::DAY_MS;
use crate::forecast::SPREAD_DEFAULT;

/// How many polls of a store are kept one by one.
const POLLS_MAX: usize = 200;
/// How many days are kept of a store and of a niche.
const DAYS_MAX: usize = 800;
/// How many gaps between polls the usual gap is taken from.
const POLL_GAPS_MAX: usize = 60;
/// How many days of forecasts are scored.
const SCORED_DAYS: i64 = 90;
/// Scores are kept in steps of this size.
const SCORE_STEP: f64 = 1.0 / 64.0;
/// The highest score that is distinguished.
const SCORE_MAX: u32 = 256;
/// Spreads are kept in steps of this size.
const SPREAD_STEP: f64 = 0.001;
/// The highest spread that is distinguished.
const SPREAD_MAX: u32 = 10_000;
/// Under so many items the spread of a niche is the default.
const SPREAD_ITEMS_MIN: u64 = 10;
/// Under so many forecasts nothing is corrected.
const FORECASTS_MIN: u64 = 200;
/// The coverage that needs no correction.
const COVERAGE_FITS: std::ops::RangeInclusive<f64> = 0.75..=0.85;
/// The coverage that a correction aims at.
const COVERAGE: f64 = 0.8;
/// The corrections that are possible.
const CORRECTIONS: std::ops::RangeInclusive<f64> = 0.5..=2.0;
/// Corrections and spreads are stored in ten thousandths.
const FRACTION: f64 = 10_000.0;

/// The key of the row of all stores.
pub const STORES_KEY: &str = "stores";

/// The key of the row of a store.
#[must_use]
pub fn store_key(host: &str) -> String {
    format!("poll/{host}")
}

/// The key of the row of a niche.
#[must_use]
pub fn niche_key(niche: &str) -> String {
    format!("niche/{niche}")
}

/// The polls of one store.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub struct StoreState {
    /// Key of the niche of its items.
    pub niche: String,
    /// The configured interval between two polls, in seconds.
    pub interval_s: i64,
    /// The newest polls, oldest first.
    pub polls: Vec<Poll>,
    /// The polls of each day, oldest first.
    pub days: Vec<PollDay>,
    /// The newest edit of any variant that complete polls saw, in milliseconds since 1970; 0 if unknown.
    pub newest_edit_ms: i64,
    /// Why the last poll is not complete; empty if it is.
    pub reason: String,
}

/// A poll of a store. It is stored as a list of its fields, because a row holds many.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(from = "(i64, bool, i64, i64)", into = "(i64, bool, i64, i64)")]
pub struct Poll {
    /// The time of the poll, in milliseconds since 1970.
    pub at_ms: i64,
    /// Whether the whole list of products was read.
    pub is_complete: bool,
    /// The number of variants that it saw.
    pub variants: i64,
    /// The number of products that it saw restocked.
    pub restocks: i64,
}

impl From<(i64, bool, i64, i64)> for Poll {
    fn from((at_ms, is_complete, variants, restocks): (i64, bool, i64, i64)) -> Self {
        Self { at_ms, is_complete, variants, restocks }
    }
}

impl From<Poll> for (i64, bool, i64, i64) {
    fn from(poll: Poll) -> Self {
        (poll.at_ms, poll.is_complete, poll.variants, poll.restocks)
    }
}

/// The number of polls until a time, and what they saw.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct PollCounts {
    /// The number of polls, complete or not.
    pub polls: i64,
    /// How often a variant was seen.
    pub variants: i64,
    /// The number of restocks of products that they showed.
    pub restocks: i64,
}

/// The polls of a store on one day.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub struct PollDay {
    /// Days since 1970.
    pub day: i64,
    /// The number of polls.
    pub polls: i64,
    /// How many of them are complete.
    pub complete: i64,
    /// Variants that they saw.
    pub variants: i64,
    /// Restocks of products that they showed.
    pub restocks: i64,
    /// The time of the first poll, in milliseconds since 1970.
    pub first_ms: i64,
    /// The time of the last complete poll, in milliseconds since 1970; 0 if there is none.
    pub last_complete_ms: i64,
}

impl StoreState {
    /// Adds a poll. One that arrives late takes its place by its time.
    pub fn add(&mut self, at_ms: i64, is_complete: bool, variants: i64) {
        let place = self.polls.partition_point(|poll| poll.at_ms <= at_ms);
        self.polls.insert(place, Poll { at_ms, is_complete, variants, restocks: 0 });
        let excess = self.polls.len().saturating_sub(POLLS_MAX);
        self.polls.drain(..excess);
        let day = self.day_mut(at_ms);
        day.polls += 1;
        day.complete += i64::from(is_complete);
        day.variants += variants;
        day.first_ms = if day.first_ms == 0 { at_ms } else { day.first_ms.min(at_ms) };
        if is_complete {
            day.last_complete_ms = day.last_complete_ms.max(at_ms);
        }
        let excess = self.days.len().saturating_sub(DAYS_MAX);
        self.days.drain(..excess);
    }

    /// Adds restocks of products to a poll and to its day.
    pub fn add_restocks(&mut self, at_ms: i64, restocks: i64) {
        if let Some(poll) = self.polls.iter_mut().rev().find(|poll| poll.at_ms == at_ms) {
            poll.restocks += restocks;
        }
        self.day_mut(at_ms).restocks += restocks;
    }

    /// Counts the polls until a time. Of a day whose polls are not kept one by one any more, all count.
    #[must_use]
    pub fn counts_until(&self, now_ms: i64) -> PollCounts {
        let mut counts = PollCounts::default();
        let today = now_ms.div_euclid(DAY_MS);
        let is_kept = |day: &PollDay| self.polls.first().is_some_and(|oldest| oldest.at_ms <= day.first_ms);
        for day in self.days.iter().filter(|day| day.day < today || (day.day == today && !is_kept(day))) {
            counts.polls += day.polls;
            counts.variants += day.variants;
            counts.restocks += day.restocks;
        }
        if self.days.iter().any(|day| day.day == today && is_kept(day)) {
            for poll in self.polls.iter().filter(|poll| poll.at_ms.div_euclid(DAY_MS) == today && poll.at_ms <= now_ms) {
                counts.polls += 1;
                counts.variants += poll.variants;
                counts.restocks += poll.restocks;
            }
        }
        counts
    }

    /// Returns the last poll at or before a time.
    #[must_use]
    pub fn last_until(&self, now_ms: i64) -> Option<&Poll> {
        self.polls.iter().rev().find(|poll| poll.at_ms <= now_ms)
    }

    fn day_mut(&mut self, at_ms: i64) -> &mut PollDay {
        let day = at_ms.div_euclid(DAY_MS);
        let place = self.days.partition_point(|known| known.day < day);
        if self.days.get(place).is_none_or(|known| known.day != day) {
            self.days.insert(place, PollDay { day, ..PollDay::default() });
        }
        &mut self.days[place]
    }

    /// The time of the last complete poll before a time.
    #[must_use]
    pub fn last_complete_before(&self, at_ms: i64) -> Option<i64> {
        let recent = self.polls.iter().rev().find(|poll| poll.is_complete && poll.at_ms < at_ms).map(|poll| poll.at_ms);
        let earlier = || self.days.iter().rev().map(|day| day.last_complete_ms).find(|last| *last > 0 && *last < at_ms);
        recent.or_else(earlier)
    }

    /// The time of the first poll at or after a time.
    #[must_use]
    pub fn first_at_or_after(&self, at_ms: i64) -> Option<i64> {
        self.polls.iter().map(|poll| poll.at_ms).find(|at| *at >= at_ms)
    }

    /// The time of the first poll of all.
    #[must_use]
    pub fn first_ms(&self) -> Option<i64> {
        self.days.iter().map(|day| day.first_ms).find(|first| *first > 0)
    }

    /// The usual gap between complete polls until a time, in milliseconds; the configured interval if there are too few. For a time before
    /// the polls that are kept one by one it is the usual gap of the last two weeks before it.
    #[must_use]
    pub fn poll_gap_ms(&self, now_ms: i64) -> i64 {
        let complete = self.polls.iter().filter(|poll| poll.is_complete && poll.at_ms <= now_ms).map(|poll| poll.at_ms);
        let complete: Vec<i64> = complete.collect();
        let mut gaps: Vec<i64> = complete.windows(2).map(|pair| pair[1] - pair[0]).collect();
        let excess = gaps.len().saturating_sub(POLL_GAPS_MAX);
        gaps.drain(..excess);
        if gaps.is_empty() {
            let today = now_ms.div_euclid(DAY_MS);
            let days = self.days.iter().filter(|day| (today - 14..today).contains(&day.day) && day.complete > 0);
            gaps = days.map(|day| DAY_MS / day.complete.max(1)).collect();
        }
        gaps.sort_unstable();
        gaps.get(gaps.len() / 2).copied().unwrap_or(self.interval_s * 1_000)
    }

    /// How many complete polls there were from a time to another.
    #[must_use]
    pub fn complete_between(&self, from_ms: i64, to_ms: i64) -> i64 {
        let oldest = self.polls.first().map_or(i64::MAX, |poll| poll.at_ms);
        let recent = self.polls.iter().filter(|poll| poll.is_complete && (from_ms..=to_ms).contains(&poll.at_ms)).count();
        let recent = i64::try_from(recent).unwrap_or(i64::MAX);
        if oldest <= from_ms {
            return recent;
        }
        // The day of the oldest poll that is kept may also hold polls that are not.
        let (first, oldest) = (from_ms.div_euclid(DAY_MS), oldest.div_euclid(DAY_MS));
        let last = to_ms.div_euclid(DAY_MS);
        let days = self.days.iter().filter(|day| (first..=last.min(oldest - 1)).contains(&day.day)).map(|day| day.complete);
        recent + days.sum::<i64>()
    }
}

/// The statistics of a niche: the spread of its items, and how well forecasts fitted.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub struct NicheStats {
    /// The day that is open, in days since 1970.
    pub day: i64,
    /// The closed days, oldest first.
    pub days: Vec<DayStats>,
    /// The number of items by the spread of their gaps, in thousandths.
    pub spreads: BTreeMap<u32, u64>,
    /// For each day the number of forecasts by the correction that they needed to be right, in 64ths.
    pub scores: BTreeMap<i64, BTreeMap<u32, u64>>,
    /// For each day how many of them were right with the correction that they were given with.
    pub held: BTreeMap<i64, u64>,
}

/// The statistics of a niche at the end of a day, which hold on the days after it.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct DayStats {
    /// Days since 1970.
    pub day: i64,
    /// The time of the poll that closed the day, in milliseconds since 1970.
    pub closed_ms: i64,
    /// The spread, in ten thousandths.
    pub spread: i64,
    /// The correction, in ten thousandths.
    pub correction: i64,
    /// The number of scored forecasts.
    pub forecasts: i64,
    /// How many of them were right without a correction.
    pub covered: i64,
    /// The first day of the forecasts that are scored as they were given, in days since 1970. Windows of before the first correction are not those that
    /// are given now.
    #[serde(default)]
    pub given_from: i64,
    /// The number of forecasts since that day.
    #[serde(default)]
    pub given: i64,
    /// How many of them were right with the correction that they were given with.
    #[serde(default)]
    pub held: i64,
}

impl Default for DayStats {
    fn default() -> Self {
        Self {
            day: 0,
            closed_ms: 0,
            spread: to_fraction(SPREAD_DEFAULT),
            correction: to_fraction(1.0),
            forecasts: 0,
            covered: 0,
            given_from: 0,
            given: 0,
            held: 0,
        }
    }
}

impl DayStats {
    /// The spread of similar items, `s0`.
    #[must_use]
    pub fn spread(&self) -> f64 {
        self.spread as f64 / FRACTION
    }

    /// The correction of intervals, `c`.
    #[must_use]
    pub fn correction(&self) -> f64 {
        self.correction as f64 / FRACTION
    }

    /// The coverage of the forecasts as they were given; `None` without forecasts.
    #[must_use]
    pub fn coverage(&self) -> Option<f64> {
        (self.given > 0).then(|| self.held as f64 / self.given as f64)
    }

    /// The first and the last day of the forecasts that are scored as they were given, in days since 1970; `None` without forecasts.
    #[must_use]
    pub fn given_days(&self) -> Option<(i64, i64)> {
        (self.given > 0).then_some((self.given_from, self.day))
    }
}

#[expect(clippy::cast_possible_truncation, reason = "spreads and corrections are small numbers")]
fn to_fraction(value: f64) -> i64 {
    (value * FRACTION).round() as i64
}

/// The step of a value, at most `most`.
#[expect(clippy::cast_possible_truncation, clippy::cast_sign_loss, reason = "the value was just limited")]
fn step_of(value: f64, step: f64, most: u32) -> u32 {
    (value / step).ceil().clamp(0.0, f64::from(most)) as u32
}

impl NicheStats {
    /// The statistics that hold at a time: those of the last day that was closed before.
    #[must_use]
    pub fn at(&self, now_ms: i64) -> DayStats {
        self.days.iter().rev().find(|day| day.closed_ms <= now_ms).copied().unwrap_or_default()
    }

    /// Closes the days before that of a poll.
    pub fn close_days(&mut self, at_ms: i64) {
        let day = at_ms.div_euclid(DAY_MS);
        if self.day == 0 {
            self.day = day;
        }
        if day <= self.day {
            return;
        }
        let closed = self.closed(at_ms);
        self.days.push(closed);
        let excess = self.days.len().saturating_sub(DAYS_MAX);
        self.days.drain(..excess);
        self.day = day;
        self.scores.retain(|scored, _| *scored > day - SCORED_DAYS);
        self.held.retain(|scored, _| *scored > day - SCORED_DAYS);
    }

    /// The first scored day on which forecasts were given with a correction; the first scored day if none was. Days that an older version scored do not
    /// count.
    fn given_from(&self) -> Option<i64> {
        let is_corrected = |day: &&i64| {
            let before = self.days.iter().rev().find(|closed| closed.day < **day);
            before.is_some_and(|closed| closed.correction != DayStats::default().correction)
        };
        self.held.keys().find(is_corrected).or_else(|| self.held.keys().next()).copied()
    }

    fn closed(&self, at_ms: i64) -> DayStats {
        let items: u64 = self.spreads.values().sum();
        let spread = if items < SPREAD_ITEMS_MIN { SPREAD_DEFAULT } else { self.median_spread(items) };
        let covered_under = |correction: f64| -> u64 {
            let covered =
                self.scores.values().flat_map(BTreeMap::iter).filter(|(needed, _)| f64::from(**needed) * SCORE_STEP <= correction);
            covered.map(|(_, count)| *count).sum()
        };
        let forecasts: u64 = self.scores.values().flat_map(BTreeMap::values).sum();
        let share = |covered: u64| covered as f64 / forecasts as f64;
        let mut correction = 1.0;
        if forecasts >= FORECASTS_MIN && !COVERAGE_FITS.contains(&share(covered_under(1.0))) {
            let (mut low, mut high) = (*CORRECTIONS.start(), *CORRECTIONS.end());
            for _ in 0..20 {
                let middle = f64::midpoint(low, high);
                if share(covered_under(middle)) < COVERAGE { low = middle } else { high = middle }
            }
            correction = high;
        }
        let int = |count: u64| i64::try_from(count).unwrap_or(i64::MAX);
        let given_from = self.given_from().unwrap_or_default();
        let is_given = |day: &i64| self.held.contains_key(day) && *day >= given_from;
        let given: u64 = self.scores.iter().filter(|(day, _)| is_given(day)).flat_map(|(_, scores)| scores.values()).sum();
        DayStats {
            day: self.day,
            closed_ms: at_ms,
            spread: to_fraction(spread),
            correction: to_fraction(correction),
            forecasts: int(forecasts),
            covered: int(covered_under(1.0)),
            given_from,
            given: int(given),
            held: int(self.held.range(given_from..).map(|(_, held)| held).sum()),
        }
    }

    /// The median of the spreads; of an even number the mean of the two in the middle.
    fn median_spread(&self, items: u64) -> f64 {
        let nth = |n: u64| {
            let mut before = 0;
            let found = self.spreads.iter().find(|(_, count)| {
                before += **count;
                before > n
            });
            found.map_or(SPREAD_DEFAULT, |(spread, _)| f64::from(*spread) * SPREAD_STEP)
        };
        f64::midpoint(nth((items - 1) / 2), nth(items / 2))
    }

    /// Replaces the spread of an item: `None` if it had none, or has none.
    pub fn replace_spread(&mut self, before: Option<f64>, after: Option<f64>) {
        let step = |spread: f64| step_of(spread, SPREAD_STEP, SPREAD_MAX);
        if let Some(count) = before.map(step).and_then(|step| self.spreads.get_mut(&step)) {
            *count = count.saturating_sub(1);
        }
        self.spreads.retain(|_, count| *count > 0);
        if let Some(after) = after {
            *self.spreads.entry(step(after)).or_default() += 1;
        }
    }

    /// Adds a forecast of the open day by the smallest correction under which it would have been right. It was given with the correction of the time of
    /// its event.
    pub fn score(&mut self, at_ms: i64, needed: f64) {
        let step = step_of(needed, SCORE_STEP, SCORE_MAX);
        let is_held = self.is_held(at_ms, step);
        // A day of which an older version scored the first forecasts does not count.
        if !self.scores.contains_key(&self.day) || self.held.contains_key(&self.day) {
            *self.held.entry(self.day).or_default() += u64::from(is_held);
        }
        *self.scores.entry(self.day).or_default().entry(step).or_default() += 1;
    }

    /// Takes back a forecast of a day, whose event turned out to be none.
    pub fn unscore(&mut self, at_ms: i64, needed: f64) {
        let step = step_of(needed, SCORE_STEP, SCORE_MAX);
        let day = at_ms.div_euclid(DAY_MS);
        let is_held = self.is_held(at_ms, step);
        if let Some(count) = self.scores.get_mut(&day).and_then(|scores| scores.get_mut(&step)).filter(|count| **count > 0) {
            *count -= 1;
            if let Some(held) = self.held.get_mut(&day) {
                *held = held.saturating_sub(u64::from(is_held));
            }
        }
    }

    /// Whether the correction at a time is enough for a forecast that needed some.
    fn is_held(&self, at_ms: i64, needed_step: u32) -> bool {
        f64::from(needed_step) * SCORE_STEP <= self.at(at_ms).correction()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Proves that forecasts are scored with the correction with which they were given, and, once windows are corrected, from the first corrected day on;
    /// that a forecast can be taken back; and that days that older versions closed have no such score.
    #[test]
    fn forecasts_are_scored_as_given() {
        let mut niche = NicheStats::default();
        let day_ms = |day: i64| day * DAY_MS;
        niche.close_days(day_ms(10));
        // 300 forecasts of which 290 are right without a correction, and 240 with 0.5.
        for (count, needed) in [(240, 0.5), (50, 0.9), (10, 1.5)] {
            (0..count).for_each(|_| niche.score(day_ms(10) + 1, needed));
        }
        niche.close_days(day_ms(11));
        let uncorrected = niche.at(day_ms(12));
        assert_eq!((uncorrected.given_days(), uncorrected.given, uncorrected.held), (Some((10, 10)), 300, 290));
        assert!(uncorrected.correction() < 0.6, "{uncorrected:?}");
        // On the next day the narrowed windows are given.
        (0..10).for_each(|n| niche.score(day_ms(11) + 1, if n < 6 { 0.4 } else { 0.9 }));
        niche.close_days(day_ms(12));
        let corrected = niche.at(day_ms(13));
        assert_eq!((corrected.given_days(), corrected.coverage(), corrected.forecasts), (Some((11, 11)), Some(0.6), 310));
        niche.unscore(day_ms(11) + 1, 0.4);
        niche.unscore(day_ms(11) + 1, 0.9);
        niche.close_days(day_ms(13));
        assert_eq!((niche.at(day_ms(14)).given, niche.at(day_ms(14)).held), (8, 5));
        let old: DayStats =
            serde_json::from_str(r#"{"day":7,"closedMs":1,"spread":5000,"correction":10000,"forecasts":9,"covered":8}"#).unwrap();
        assert_eq!((old.coverage(), old.given_days()), (None, None));
        let mut upgraded = NicheStats { day: 20, scores: BTreeMap::from([(19, BTreeMap::from([(10, 50)]))]), ..NicheStats::default() };
        upgraded.close_days(day_ms(21));
        assert_eq!(upgraded.at(day_ms(22)).given_days(), None);
        upgraded.score(day_ms(21) + 1, 0.9);
        upgraded.close_days(day_ms(22));
        assert_eq!((upgraded.at(day_ms(23)).given_days(), upgraded.at(day_ms(23)).coverage()), (Some((21, 21)), Some(1.0)));
        // An upgrade in the middle of a day: that day does not count.
        let mut midday = NicheStats { day: 20, scores: BTreeMap::from([(20, BTreeMap::from([(10, 50)]))]), ..NicheStats::default() };
        midday.score(day_ms(20) + 1, 0.9);
        midday.close_days(day_ms(21));
        assert_eq!(midday.at(day_ms(22)).given_days(), None);
    }

    /// Proves that the polls until a time are counted one by one while they are kept, and by days beyond; and that a poll reads back.
    #[test]
    fn polls_are_counted_until_a_time() {
        let mut store = StoreState { interval_s: 3_600, ..StoreState::default() };
        let hour = DAY_MS / 24;
        for poll in 0..24 * 12 {
            store.add(10 * DAY_MS + poll * hour, poll % 2 == 0, 5);
            store.add_restocks(10 * DAY_MS + poll * hour, i64::from(poll % 24 == 3));
        }
        let count = |now_ms: i64| {
            let PollCounts { polls, variants, restocks } = store.counts_until(now_ms);
            (polls, variants, restocks)
        };
        assert_eq!(count(20 * DAY_MS - 1), (240, 1_200, 10));
        assert_eq!(count(20 * DAY_MS + 2 * hour), (243, 1_215, 10));
        assert_eq!(count(20 * DAY_MS + 3 * hour), (244, 1_220, 11));
        // A day that is not kept poll by poll counts as a whole.
        assert_eq!(count(11 * DAY_MS + 2 * hour), (48, 240, 2));
        assert_eq!(count(9 * DAY_MS), (0, 0, 0));
        assert_eq!(store.last_until(20 * DAY_MS + hour / 2).map(|poll| (poll.at_ms, poll.restocks)), Some((20 * DAY_MS, 0)));
        let stored = serde_json::to_string(&store).unwrap();
        assert_eq!(serde_json::from_str::<StoreState>(&stored).unwrap(), store);
    }
}
