//! The prediction of an item's next restock from its past ones: pure, computed when it is read.

use crate::forecast::{LogT, hit_rate, median, newest, variation};
use crate::record::{DAY_MS, DayStats, StoreState, gaps};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// A minute in milliseconds: windows are rounded to it.
const MINUTE_MS: i64 = 60_000;
/// Under so many restocks nothing is predicted.
const EVENTS_MIN: usize = 3;
/// Under so many days of history nothing is predicted.
const HISTORY_DAYS_MIN: f64 = 14.0;
/// If a greater share of the due polls is missing, nothing is predicted.
const MISSING_MAX: f64 = 0.4;
/// How many days back the due polls are counted.
const DUE_DAYS: i64 = 90;

/// How sure a prediction is.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "UPPERCASE")]
pub enum Confidence {
    /// Too little is known for a prediction.
    Insufficient,
    /// Few restocks, or irregular ones.
    Low,
    /// Several restocks, fairly regular.
    Medium,
    /// Many restocks, regular.
    High,
}

impl Confidence {
    /// THE LIST of labels, the surest last.
    pub const ALL: [Self; 4] = [Self::Insufficient, Self::Low, Self::Medium, Self::High];

    /// One step lower; a prediction stays one.
    fn lowered(self) -> Self {
        match self {
            Self::High => Self::Medium,
            Self::Medium => Self::Low,
            other => other,
        }
    }
}

/// What a prediction is made of. Times are in milliseconds since 1970.
#[derive(Clone, Copy, Debug)]
pub struct Basis<'a> {
    /// The times of the restocks, oldest first.
    pub events: &'a [i64],
    /// When the item was first seen.
    pub first_seen_ms: i64,
    /// The last complete poll of its store.
    pub last_poll_ms: i64,
    /// The usual gap between polls.
    pub poll_gap_ms: i64,
    /// The share of due polls that are missing: 0 to 1.
    pub missing: f64,
    /// The statistics of its niche.
    pub stats: DayStats,
    /// Now.
    pub now_ms: i64,
}

/// A prediction.
#[derive(Clone, Debug, PartialEq)]
pub struct Prediction {
    /// The window of the next restock, to the minute; `None` if too little is known.
    pub window: Option<(i64, i64)>,
    /// The most likely time, to the minute.
    pub centre: Option<i64>,
    /// How sure it is.
    pub confidence: Confidence,
    /// Whether the first window has passed, so that this is the one after it.
    pub overdue: bool,
    /// Whole days of history.
    pub history_days: i64,
    /// The median of the newest gaps, in days.
    pub median_gap_days: Option<f64>,
    /// The robust coefficient of variation of the newest gaps.
    pub variation: Option<f64>,
    /// The share of the newest gaps that a forecast from the others holds.
    pub hit_rate: Option<f64>,
    /// Why the prediction is as it is.
    pub reasons: Vec<String>,
}

/// The share of the polls of a store that were due and are missing, in the history of an item: the last 90 days of it.
#[must_use]
pub fn missing_share(store: &StoreState, first_seen_ms: i64, now_ms: i64) -> f64 {
    let from_ms = first_seen_ms.max(now_ms - DUE_DAYS * DAY_MS);
    let due = (now_ms - from_ms) / (store.interval_s.max(1) * 1_000);
    if due <= 0 {
        return 0.0;
    }
    (1.0 - store.complete_between(from_ms, now_ms) as f64 / due as f64).max(0.0)
}

/// The label of a forecast, if the window has not passed; with the reasons for no forecast.
fn label(basis: &Basis<'_>, gaps: &[f64], hit_rate: Option<f64>) -> (Confidence, Vec<String>) {
    let events = basis.events.len();
    let history = (basis.last_poll_ms - basis.first_seen_ms) as f64 / DAY_MS as f64;
    let (median, variation) = (median(newest(gaps)), variation(newest(gaps)));
    let mut reasons = Vec::new();
    if events < EVENTS_MIN {
        reasons.push(format!("fewer than {EVENTS_MIN} restocks seen"));
    }
    if history < HISTORY_DAYS_MIN {
        reasons.push(format!("less than {HISTORY_DAYS_MIN:.0} days of history"));
    }
    if basis.missing > MISSING_MAX {
        reasons.push(format!("{:.0} % of the due polls are missing", basis.missing * 100.0));
    }
    if median.is_some_and(|median| history < 2.0 * median) {
        reasons.push("less history than two usual gaps".to_owned());
    }
    let (Some(median), Some(variation), true) = (median, variation, reasons.is_empty()) else {
        return (Confidence::Insufficient, reasons);
    };
    let poll_gap = basis.poll_gap_ms as f64 / DAY_MS as f64;
    let is_high =
        events >= 8 && variation <= 0.25 && history >= 6.0 * median && poll_gap <= 0.2 * median && hit_rate.is_some_and(|rate| rate >= 0.6);
    let is_medium = events >= 5 && variation <= 0.6 && history >= 3.0 * median;
    let label = if is_high {
        Confidence::High
    } else if is_medium {
        Confidence::Medium
    } else {
        Confidence::Low
    };
    (label, reasons)
}

/// The label that a forecast would have had, without the question whether its window has passed.
#[must_use]
pub fn label_of(basis: &Basis<'_>) -> Confidence {
    let gaps = gaps(basis.events);
    let padding = basis.poll_gap_ms as f64 / DAY_MS as f64 / 2.0;
    label(basis, &gaps, hit_rate(&gaps, basis.stats.spread(), basis.stats.correction(), padding)).0
}

/// Makes a prediction.
#[must_use]
pub fn predict(basis: &Basis<'_>) -> Prediction {
    let gaps = gaps(basis.events);
    let (spread, correction) = (basis.stats.spread(), basis.stats.correction());
    let padding_ms = basis.poll_gap_ms / 2;
    let hit_rate = hit_rate(&gaps, spread, correction, padding_ms as f64 / DAY_MS as f64);
    let (mut confidence, missing) = label(basis, &gaps, hit_rate);
    let (median_gap_days, variation) = (median(newest(&gaps)), variation(newest(&gaps)));
    let history_days = (basis.last_poll_ms - basis.first_seen_ms).max(0) / DAY_MS;
    let mut reasons = vec![format!("{} restocks in {history_days} days", basis.events.len())];
    if let (Some(median), Some(variation)) = (median_gap_days, variation) {
        reasons.push(format!("usual gap {} days, variation {}", shown(median, 2), shown(variation, 3)));
    }
    let mut prediction =
        Prediction { window: None, centre: None, confidence, overdue: false, history_days, median_gap_days, variation, hit_rate, reasons };
    let next = LogT::new(&gaps, spread, correction).zip(basis.events.last()).filter(|_| confidence != Confidence::Insufficient);
    let Some((next, last)) = next else {
        prediction.confidence = Confidence::Insufficient;
        prediction.reasons.extend(missing);
        return prediction;
    };
    prediction.reasons.push(format!("spread of similar items {}", shown(spread, 3)));
    if (correction - 1.0).abs() > 1e-9 {
        prediction.reasons.push(format!("windows of this niche are corrected by {}, from its past forecasts", shown(correction, 3)));
    }
    // The window is never narrower than the gap between polls: the padding alone is as wide.
    let at = |days: f64| last + to_ms(days);
    let (mut from, mut to, mut centre) = (at(next.low()) - padding_ms, at(next.high()) + padding_ms, at(next.centre()));
    if basis.now_ms > to {
        let step = to_ms(next.centre());
        (from, to, centre) = (from + step, to + step, centre + step);
        prediction.overdue = true;
        confidence = confidence.lowered();
        prediction.reasons.push("the expected window has passed: moved on by one usual gap, one step less sure".to_owned());
    }
    prediction.confidence = confidence;
    prediction.window = Some((minute(from), minute(to)));
    prediction.centre = Some(minute(centre));
    prediction
}

#[expect(clippy::cast_possible_truncation, reason = "a float is converted to the nearest number that fits")]
fn to_ms(days: f64) -> i64 {
    (days * DAY_MS as f64).round() as i64
}

/// A time to the nearest minute.
fn minute(at_ms: i64) -> i64 {
    (at_ms + MINUTE_MS / 2).div_euclid(MINUTE_MS) * MINUTE_MS
}

/// A number with at most so many decimals, without zeros at its end.
#[must_use]
pub fn shown(value: f64, decimals: usize) -> String {
    let text = format!("{value:.decimals$}");
    if text.contains('.') { text.trim_end_matches('0').trim_end_matches('.').to_owned() } else { text }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::record::Poll;
    use jiff::Timestamp;
    use rand::rngs::StdRng;
    use rand::{RngExt as _, SeedableRng as _};

    /// The spread of similar items in the worked examples.
    fn stats() -> DayStats {
        DayStats { spread: 3_000, ..DayStats::default() }
    }

    /// Events that end at a time, with gaps in days.
    fn ending(last: &str, gaps: &[f64]) -> Vec<i64> {
        let last = last.parse::<Timestamp>().unwrap().as_millisecond();
        let mut events = vec![last];
        for gap in gaps.iter().rev() {
            events.push(events[events.len() - 1] - to_ms(*gap));
        }
        events.reverse();
        events
    }

    fn basis<'a>(events: &'a [i64], now: &str) -> Basis<'a> {
        let now_ms = now.parse::<Timestamp>().unwrap().as_millisecond();
        Basis {
            events,
            first_seen_ms: events[0],
            last_poll_ms: *events.last().unwrap(),
            poll_gap_ms: DAY_MS,
            missing: 0.0,
            stats: stats(),
            now_ms,
        }
    }

    fn text(at_ms: i64) -> String {
        format!("{:.0}", Timestamp::from_millisecond(at_ms).unwrap())
    }

    const LAST: &str = "2026-11-01T12:00:00Z";

    /// Proves the first worked example, and the one in which its window has passed.
    #[test]
    fn regular_gaps() {
        let events = ending(LAST, &[7.0, 7.0, 8.0, 6.0, 7.0]);
        let prediction = predict(&basis(&events, "2026-11-02T00:00:00Z"));
        let window = prediction.window.map(|(from, to)| (text(from), text(to)));
        assert_eq!(window, Some(("2026-11-06T03:34:00Z".to_owned(), "2026-11-11T10:32:00Z".to_owned())));
        assert_eq!(prediction.centre.map(text).as_deref(), Some("2026-11-08T11:19:00Z"));
        assert_eq!((prediction.confidence, prediction.overdue, prediction.history_days), (Confidence::Medium, false, 35));
        assert_eq!((prediction.median_gap_days, prediction.variation, prediction.hit_rate), (Some(7.0), Some(0.0), Some(1.0)));
        let late = predict(&basis(&events, "2026-11-13T00:00:00Z"));
        assert_eq!((late.confidence, late.overdue), (Confidence::Low, true));
        let moved = late.window.unwrap().0 - prediction.window.unwrap().0;
        assert!((moved as f64 / DAY_MS as f64 - 6.971).abs() < 0.001, "{moved}");
    }

    /// Proves the labels of the other worked examples.
    #[test]
    fn labels() {
        let predict_from = |gaps: &[f64]| {
            let events = ending(LAST, gaps);
            predict(&basis(&events, "2026-11-02T00:00:00Z"))
        };
        assert_eq!(predict_from(&[14.0; 8]).confidence, Confidence::High);
        let irregular = predict_from(&[4.0, 12.0, 5.0, 20.0, 9.0, 7.0, 15.0]);
        assert_eq!((irregular.confidence, irregular.median_gap_days), (Confidence::Low, Some(9.0)));
        assert_eq!(irregular.variation.map(|cv| shown(cv, 3)).as_deref(), Some("0.659"));
        let last = LAST.parse::<Timestamp>().unwrap().as_millisecond();
        assert!((irregular.window.unwrap().0 - last - to_ms(4.062 - 0.5)).abs() < 2 * MINUTE_MS);
        assert!((irregular.window.unwrap().1 - last - to_ms(19.64 + 0.5)).abs() < 2 * MINUTE_MS);
        assert!((irregular.centre.unwrap() - last - to_ms(8.932)).abs() < 2 * MINUTE_MS);
        // Restocks on 12, 15 and 19 December in an archive from 10 December.
        let events = ending("2025-12-19T00:00:00Z", &[3.0, 4.0]);
        let mut short = basis(&events, "2025-12-20T00:00:00Z");
        short.first_seen_ms = events[2] - 9 * DAY_MS;
        let prediction = predict(&short);
        assert_eq!(
            (prediction.confidence, prediction.window, prediction.centre, prediction.history_days),
            (Confidence::Insufficient, None, None, 9)
        );
    }

    /// Proves that holes in the archive, a coarse poll gap and few hits can only lower a label.
    #[test]
    fn holes_lower_labels() {
        let events = ending(LAST, &[7.0; 9]);
        let whole = basis(&events, "2026-11-02T00:00:00Z");
        assert_eq!(predict(&whole).confidence, Confidence::High);
        assert_eq!(predict(&Basis { missing: 0.41, ..whole }).confidence, Confidence::Insufficient);
        assert_eq!(predict(&Basis { poll_gap_ms: 2 * DAY_MS, ..whole }).confidence, Confidence::Medium);
        assert_eq!(predict(&Basis { events: &events[3..], ..whole }).confidence, Confidence::Medium);
        let poll = |day: i64| Poll { at_ms: day * DAY_MS, is_complete: day % 2 == 0, ..Poll::default() };
        let store = StoreState { interval_s: 86_400, polls: (1..=10).map(poll).collect(), ..StoreState::default() };
        assert_eq!(missing_share(&store, DAY_MS, 11 * DAY_MS), 0.5);
        assert_eq!(missing_share(&store, 11 * DAY_MS, 11 * DAY_MS), 0.0);
    }

    /// Proves for random histories that a window has a width, is never narrower than the poll gap and holds its centre, and that another equal
    /// gap never widens the window of equal gaps.
    #[test]
    fn invariants() {
        let mut random = StdRng::seed_from_u64(42);
        for round in 0..2_000 {
            let count = 3 + round % 20;
            let gaps: Vec<f64> = (0..count).map(|_| 0.5 + random.random::<f64>() * 30.0).collect();
            let events = ending(LAST, &gaps);
            let mut one = basis(&events, LAST);
            one.poll_gap_ms = to_ms(0.05 + random.random::<f64>() * 3.0);
            one.stats.spread = 500 + (round as i64 % 17) * 500;
            one.stats.correction = 5_000 + (round as i64 % 4) * 5_000;
            let prediction = predict(&one);
            if let (Some((from, to)), Some(centre)) = (prediction.window, prediction.centre) {
                assert!(from < to && to - from >= one.poll_gap_ms - MINUTE_MS, "{gaps:?}");
                assert!((from..=to).contains(&centre), "{gaps:?}");
            } else {
                assert_eq!(prediction.confidence, Confidence::Insufficient);
            }
            let equal = vec![1.0 + random.random::<f64>() * 20.0; count];
            let width = |gaps: &[f64]| {
                let next = LogT::new(gaps, one.stats.spread(), 1.0).unwrap();
                next.high() - next.low()
            };
            let more: Vec<f64> = equal.iter().copied().chain([equal[0]]).collect();
            assert!(width(&more) <= width(&equal) * (1.0 + 1e-12), "{equal:?}");
        }
    }

    /// Gaps of a series that a daily poll sees: log-normal, exponential, or with a change of the usual gap in the middle.
    fn series(random: &mut StdRng, kind: usize) -> Vec<f64> {
        let count = 6 + (random.random::<f64>() * 20.0) as usize;
        let mut at = 0.0_f64;
        let mut last = -0.5;
        let mut gaps = Vec::new();
        for n in 0..count {
            let normal = (0..12).map(|_| random.random::<f64>()).sum::<f64>() - 6.0;
            at += match kind {
                0 => 7.0 * (0.08 * normal).exp(),
                1 => 12.0 * (0.3 * normal).exp(),
                2 => 9.0 * (0.6 * normal).exp(),
                3 => 0.5 - 10.0 * (1.0 - random.random::<f64>()).ln(),
                _ if n < count / 2 => 7.0 * (0.2 * normal).exp(),
                _ => 14.0 * (0.2 * normal).exp(),
            };
            let seen = at.ceil() - 0.5;
            gaps.extend((seen > last).then_some(seen - last));
            last = seen;
        }
        gaps
    }

    /// Proves on 400 synthetic series that of each label with 200 forecasts 70 to 90 % of the windows hold the next restock.
    #[test]
    fn labels_are_calibrated() {
        let mut random = StdRng::seed_from_u64(7);
        let all: Vec<Vec<f64>> = (0..400).map(|n| series(&mut random, n % 5)).collect();
        let spreads: Vec<f64> = all.iter().filter_map(|gaps| crate::forecast::log_spread(newest(&gaps[..gaps.len() / 2]))).collect();
        let stats = DayStats { spread: (median(&spreads).unwrap() * 10_000.0) as i64, ..DayStats::default() };
        let mut by_label = std::collections::BTreeMap::<Confidence, (f64, f64)>::new();
        for series in &all {
            let events = ending(LAST, series);
            for known in 5..events.len() {
                let at = &events[..known];
                let day_before = events[known] - DAY_MS;
                let basis = Basis {
                    events: at,
                    first_seen_ms: events[0],
                    last_poll_ms: day_before,
                    poll_gap_ms: DAY_MS,
                    missing: 0.0,
                    stats,
                    now_ms: at[known - 1],
                };
                let next = LogT::new(&gaps(at), stats.spread(), 1.0).unwrap();
                let gap = (events[known] - at[known - 1]) as f64 / DAY_MS as f64;
                let (held, count) = by_label.entry(label_of(&basis)).or_default();
                *held += f64::from(u8::from(next.holds(gap, 0.5)));
                *count += 1.0;
            }
        }
        for (label, (held, count)) in &by_label {
            let share = held / count;
            println!("{label:?}: {share:.3} of {count} windows");
            assert!(*count < 200.0 || (0.70..=0.90).contains(&share), "{label:?}: {share} of {count}");
        }
        assert!(by_label.values().filter(|(_, count)| *count >= 200.0).count() >= 3, "{by_label:?}");
    }

    /// Proves that the order in which two polls are recorded changes nothing.
    #[test]
    fn polls_may_be_swapped() {
        let state = |times: [i64; 4]| {
            let mut store = StoreState { interval_s: 86_400, ..StoreState::default() };
            times.iter().for_each(|day| store.add(day * DAY_MS, true, 5));
            store
        };
        assert_eq!(state([1, 2, 3, 4]), state([1, 3, 2, 4]));
    }
}
