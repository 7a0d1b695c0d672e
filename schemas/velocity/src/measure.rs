//! The measure of a phrase at an hour: its count in the window, the baseline of the windows before, and the label.

use crate::calendar::WEEK_HOURS;
use crate::hours::Hours;
use crate::label::{Label, Labelled, Seen, label};
use crate::mentions::{Counted, Mentions};

/// The windows that a phrase can be measured in, in hours.
pub const WINDOWS: [i64; 6] = [6, 12, 24, 48, 72, 168];
/// The window of the labels that are recorded.
pub const WINDOW_DEFAULT: i64 = 24;
/// The least multiple of RISING of the labels that are recorded.
pub const MULTIPLE_DEFAULT: f64 = 3.0;
/// The least multiples that can be asked for.
pub const MULTIPLES: std::ops::RangeInclusive<f64> = 1.5..=20.0;
/// The windows before the current one that the baseline is taken from.
pub const PAST_WINDOWS: usize = 14;
/// Under so many complete windows there is no baseline.
const COMPLETE_MIN: usize = 5;
/// How often a window counts that covers the same days of the week.
const WEEKDAY_WEIGHT: usize = 2;

/// What is asked.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Question {
    /// The length of the window in hours, one of [`WINDOWS`].
    pub window_hours: i64,
    /// The least multiple of RISING, one of [`MULTIPLES`].
    pub min_multiple: f64,
}

impl Default for Question {
    fn default() -> Self {
        Self { window_hours: WINDOW_DEFAULT, min_multiple: MULTIPLE_DEFAULT }
    }
}

/// The measure of a phrase.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct Measure {
    /// The stories of the window.
    pub counted: Counted,
    /// How many are usual; `None` if fewer than 5 of the 14 windows before are complete.
    pub baseline: Option<f64>,
    /// The label and its numbers.
    pub labelled: Labelled,
    /// Whether every hour of the window is complete.
    pub is_complete: bool,
}

impl Measure {
    /// The label.
    #[must_use]
    pub fn label(&self) -> Label {
        self.labelled.label
    }

    /// The measure by another least multiple of RISING.
    #[must_use]
    pub fn with_multiple(self, min_multiple: f64) -> Self {
        Self { labelled: labelled(&self.counted, self.baseline, min_multiple), ..self }
    }

    /// The multiple as it is shown, to three decimals, so that lists are in the order of what they show; 0 without a baseline.
    #[must_use]
    pub fn rank_multiple(&self) -> f64 {
        thousandths(self.labelled.multiple.unwrap_or_default())
    }
}

fn labelled(counted: &Counted, baseline: Option<f64>, min_multiple: f64) -> Labelled {
    let seen = Seen { count: counted.count, authors: counted.authors, domains: counted.domains, baseline };
    label(&seen, min_multiple)
}

/// A number rounded to three decimals, as it is stored and shown.
#[must_use]
pub fn thousandths(value: f64) -> f64 {
    (value * 1_000.0).round() / 1_000.0
}

/// The windows of all phrases at an hour.
#[derive(Clone, Debug)]
pub struct Scale {
    question: Question,
    newest: i64,
    /// The stories of each window; `None` for one that is not complete.
    stories: Vec<Option<i64>>,
    /// The stories of the current window.
    current: i64,
    is_complete: bool,
}

impl Scale {
    /// The windows that end with the hour `newest`.
    #[must_use]
    pub fn new(hours: &Hours, newest: i64, question: Question) -> Self {
        let windows = hours.windows(newest, question.window_hours, PAST_WINDOWS + 1);
        let current = windows.first().copied().unwrap_or_default();
        let stories = windows.iter().map(|window| Some(window.stories).filter(|stories| window.is_complete && *stories > 0)).collect();
        Self { question, newest, stories, current: current.stories, is_complete: current.is_complete }
    }

    /// The last hour of the current window.
    #[must_use]
    pub fn newest(&self) -> i64 {
        self.newest
    }

    /// Whether every hour of the current window is complete.
    #[must_use]
    pub fn is_complete(&self) -> bool {
        self.is_complete
    }

    /// Measures a phrase by its mentions.
    #[must_use]
    pub fn measure(&self, mentions: &Mentions) -> Measure {
        self.measure_windows(&mentions.windows(self.newest, self.question.window_hours, PAST_WINDOWS + 1))
    }

    /// Measures a phrase by its counts in the windows, the current one first.
    #[must_use]
    pub fn measure_windows(&self, windows: &[Counted]) -> Measure {
        let counted = windows.first().copied().unwrap_or_default();
        let baseline = self.baseline(windows);
        let labelled = labelled(&counted, baseline, self.question.min_multiple);
        Measure { counted, baseline, labelled, is_complete: self.is_complete }
    }

    /// The median over the complete windows before of the share of stories with the phrase, times the stories of the current window.
    fn baseline(&self, windows: &[Counted]) -> Option<f64> {
        let mut usual: Vec<f64> = Vec::with_capacity(PAST_WINDOWS + 2);
        let mut complete = 0;
        for (n, (window, stories)) in windows.iter().zip(&self.stories).enumerate().skip(1) {
            let Some(stories) = stories else { continue };
            complete += 1;
            // One division of whole numbers, so that counts and stories times the same factor give the same bits.
            let share = (window.count as f64 * self.current as f64) / *stories as f64;
            let is_same_weekday = self.question.window_hours == WINDOW_DEFAULT && (n as i64 * self.question.window_hours) % WEEK_HOURS == 0;
            usual.extend(std::iter::repeat_n(share, if is_same_weekday { WEEKDAY_WEIGHT } else { 1 }));
        }
        if complete < COMPLETE_MIN {
            return None;
        }
        usual.sort_unstable_by(f64::total_cmp);
        let middle = |n: usize| usual.get(n).copied();
        Some(f64::midpoint(middle((usual.len() - 1) / 2)?, middle(usual.len() / 2)?))
    }
}

/// Removes phrases that a longer one with the same count contains: they are the longer one's words. `phrases` are pairs of a phrase and its
/// count; the order is kept.
pub fn longest_only<T>(items: Vec<T>, phrase: impl Fn(&T) -> (&str, u64)) -> Vec<T> {
    let mut hidden = std::collections::HashSet::new();
    for item in &items {
        let (long, count) = phrase(item);
        let ends: Vec<usize> = long.match_indices(' ').map(|(at, _)| at).chain([long.len()]).collect();
        let starts: Vec<usize> = std::iter::once(0).chain(long.match_indices(' ').map(|(at, _)| at + 1)).collect();
        for (n, from) in starts.iter().enumerate() {
            for to in ends.iter().skip(n) {
                let part = &long[*from..*to];
                if part.len() < long.len() {
                    hidden.insert((part.to_owned(), count));
                }
            }
        }
    }
    let is_shown = |item: &T| {
        let (phrase, count) = phrase(item);
        !hidden.contains(&(phrase.to_owned(), count))
    };
    let shown: Vec<bool> = items.iter().map(is_shown).collect();
    items.into_iter().zip(shown).filter_map(|(item, is_shown)| is_shown.then_some(item)).collect()
}

#[cfg(test)]
mod tests {
    use rand::rngs::StdRng;
    use rand::{RngExt, SeedableRng};

    use super::*;
    use crate::hours::Hour;

    const NEWEST: i64 = 480_000;

    fn hours(length: i64, stories: impl Fn(i64) -> i64) -> Hours {
        let mut hours = Hours::default();
        for ago in 0..length {
            hours.set(NEWEST - ago, Hour { stories: stories(ago), is_complete: true });
        }
        hours
    }

    fn counts(counts: impl IntoIterator<Item = u64>) -> Vec<Counted> {
        counts.into_iter().map(|count| Counted { count, authors: 5, domains: 5 }).collect()
    }

    /// Proves the baseline: the median of 16 values, because the windows 7 and 14 days before count twice.
    #[test]
    fn the_baseline_is_a_median() {
        let scale = Scale::new(&hours(15 * 24, |_| 50), NEWEST, Question::default());
        let baseline_of = |past: [u64; 14]| scale.measure_windows(&counts([9].into_iter().chain(past))).baseline;
        assert_eq!(baseline_of([1; 14]), Some(1.0));
        // Sorted with the weights: 0 x 8, 4 x 8.
        assert_eq!(baseline_of([0, 0, 0, 4, 4, 4, 4, 4, 4, 4, 0, 0, 0, 0]), Some(2.0));
        assert_eq!(baseline_of([0, 0, 4, 4, 4, 4, 4, 4, 4, 4, 0, 0, 0, 0]), Some(4.0));
        let fewer = Scale::new(&hours(15 * 24, |ago| if ago < 24 { 25 } else { 50 }), NEWEST, Question::default());
        assert_eq!(fewer.measure_windows(&counts([9; 15])).baseline, Some(4.5));
    }

    /// Proves that fewer than 5 complete windows give no baseline, and that a window with a missing hour does not count.
    #[test]
    fn short_histories_have_no_baseline() {
        let baseline = |hours: &Hours| Scale::new(hours, NEWEST, Question::default()).measure_windows(&counts([9; 15])).baseline;
        assert_eq!(baseline(&hours(6 * 24, |_| 50)), Some(9.0));
        assert_eq!(baseline(&hours(6 * 24 - 1, |_| 50)), None);
        let mut gap = hours(6 * 24, |_| 50);
        gap.set(NEWEST - 30, Hour { stories: 50, is_complete: false });
        assert_eq!(baseline(&gap), None);
        assert_eq!(baseline(&hours(15 * 24, |_| 0)), None);
    }

    /// Proves that multiplying all counts and stories of the past by a factor changes no bit of a measure.
    #[test]
    fn factors_of_the_past_change_nothing() {
        let mut random = StdRng::seed_from_u64(7);
        for _ in 0..2_000 {
            let stories: Vec<i64> = (0..15 * 24).map(|_| random.random_range(1..100)).collect();
            let past: Vec<u64> = (0..14).map(|_| random.random_range(0..30)).collect();
            let (count, factor) = (random.random_range(0..60), random.random_range(2..50));
            let measure_times = |factor: i64| {
                let hours = hours(15 * 24, |ago| stories[usize::try_from(ago).unwrap()] * if ago < 24 { 1 } else { factor });
                let past = past.iter().map(|count| count * factor.unsigned_abs());
                Scale::new(&hours, NEWEST, Question::default()).measure_windows(&counts([count].into_iter().chain(past)))
            };
            assert_eq!(measure_times(1), measure_times(factor));
        }
    }

    /// Proves that a measure by another multiple is the one that a question with that multiple gives, and that a phrase that rises by some multiple rises by
    /// the least one.
    #[test]
    fn measures_serve_all_multiples() {
        let (hours, mut random) = (hours(15 * 24, |_| 50), StdRng::seed_from_u64(9));
        let measure_with = |min_multiple, windows: &[Counted]| {
            Scale::new(&hours, NEWEST, Question { min_multiple, ..Question::default() }).measure_windows(windows)
        };
        for _ in 0..2_000 {
            let windows = counts((0..15).map(|_| random.random_range(0..12)));
            let least = measure_with(*MULTIPLES.start(), &windows);
            for min_multiple in [1.5, 2.0, 3.0, 7.25, 20.0] {
                let measure = measure_with(min_multiple, &windows);
                assert_eq!(least.with_multiple(min_multiple), measure);
                assert!(least.label().is_up() || !measure.label().is_up(), "{windows:?} {min_multiple}");
            }
        }
    }

    /// Proves that phrases are ordered by the multiple that is shown.
    #[test]
    fn shown_multiples_rank() {
        let rank_of = |multiple| Measure { labelled: Labelled { multiple, ..Labelled::default() }, ..Measure::default() }.rank_multiple();
        assert_eq!((rank_of(Some(11.0 / 3.0)), rank_of(Some(3.6674)), rank_of(Some(2.5)), rank_of(None)), (3.667, 3.667, 2.5, 0.0));
    }

    /// Proves that of phrases that contain each other with the same count the longest remains.
    #[test]
    fn parts_of_longer_phrases_are_left_out() {
        let all = vec![("agent", 12), ("agent mesh", 9), ("mesh", 9), ("the agent mesh", 9), ("gent", 9), ("mesh net", 4)];
        let shown: Vec<&str> = longest_only(all, |item| (item.0, item.1)).into_iter().map(|item| item.0).collect();
        assert_eq!(shown, ["agent", "the agent mesh", "gent", "mesh net"]);
    }
}
