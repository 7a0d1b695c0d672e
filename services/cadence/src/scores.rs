//! Scores of forecasts against what happened, for walk-forward tests: every forecast is made from what was known before the outcome.
//!
//! A [`Tally`] counts the forecasts of one group, for example of one label. Interval forecasts are scored by their coverage and their pinball
//! loss, probabilities by their Brier score.

use std::collections::BTreeMap;

/// The quantiles at the ends of an interval and at its centre.
const QUANTILES: [f64; 3] = [0.1, 0.5, 0.9];

/// An interval forecast: the quantiles 0.1, 0.5 and 0.9 of the outcome.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Interval {
    /// The quantile 0.1.
    pub low: f64,
    /// The quantile 0.5.
    pub centre: f64,
    /// The quantile 0.9.
    pub high: f64,
}

impl Interval {
    /// Whether the outcome lies in the interval.
    #[must_use]
    pub fn holds(&self, outcome: f64) -> bool {
        (self.low..=self.high).contains(&outcome)
    }

    /// The mean pinball loss of the three quantiles, in the unit of the outcome. Lower is better.
    #[must_use]
    pub fn pinball(&self, outcome: f64) -> f64 {
        let losses = QUANTILES.into_iter().zip([self.low, self.centre, self.high]).map(|(quantile, forecast)| {
            let error = outcome - forecast;
            (quantile * error).max((quantile - 1.0) * error)
        });
        losses.sum::<f64>() / QUANTILES.len() as f64
    }
}

/// The scores of a group of interval forecasts.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct Tally {
    /// The number of forecasts.
    pub forecasts: u64,
    /// How many of the intervals held the outcome.
    pub covered: u64,
    /// The sum of the pinball losses, each over the scale of its series.
    pub pinball: f64,
    /// The sum of the pinball losses of the forecast that it is compared with.
    pub naive_pinball: f64,
}

impl Tally {
    /// Adds a forecast and the one that it is compared with. `scale` makes the losses of different series comparable, for example the median
    /// of the past outcomes.
    pub fn add(&mut self, forecast: &Interval, naive: &Interval, outcome: f64, scale: f64) {
        self.forecasts += 1;
        self.covered += u64::from(forecast.holds(outcome));
        self.pinball += forecast.pinball(outcome) / scale;
        self.naive_pinball += naive.pinball(outcome) / scale;
    }

    /// Adds the forecasts of another group.
    pub fn merge(&mut self, other: &Self) {
        self.forecasts += other.forecasts;
        self.covered += other.covered;
        self.pinball += other.pinball;
        self.naive_pinball += other.naive_pinball;
    }

    /// The share of intervals that held the outcome; `None` without forecasts.
    #[must_use]
    pub fn coverage(&self) -> Option<f64> {
        self.mean(self.covered as f64)
    }

    /// The mean pinball loss; `None` without forecasts.
    #[must_use]
    pub fn mean_pinball(&self) -> Option<f64> {
        self.mean(self.pinball)
    }

    /// The mean pinball loss of the forecasts that these are compared with; `None` without forecasts.
    #[must_use]
    pub fn mean_naive_pinball(&self) -> Option<f64> {
        self.mean(self.naive_pinball)
    }

    fn mean(&self, sum: f64) -> Option<f64> {
        (self.forecasts > 0).then(|| sum / self.forecasts as f64)
    }
}

/// Tallies by label, and of all labels together.
#[derive(Clone, Debug, PartialEq)]
pub struct Tallies<L: Ord> {
    /// The tally of each label that has forecasts.
    pub by_label: BTreeMap<L, Tally>,
}

impl<L: Ord> Default for Tallies<L> {
    fn default() -> Self {
        Self { by_label: BTreeMap::new() }
    }
}

impl<L: Ord> Tallies<L> {
    /// Adds a forecast under its label; see [`Tally::add`].
    pub fn add(&mut self, label: L, forecast: &Interval, naive: &Interval, outcome: f64, scale: f64) {
        self.by_label.entry(label).or_default().add(forecast, naive, outcome, scale);
    }

    /// Adds the tallies of another group.
    pub fn merge(&mut self, other: Self) {
        for (label, tally) in other.by_label {
            self.by_label.entry(label).or_default().merge(&tally);
        }
    }

    /// The tally of all labels.
    #[must_use]
    pub fn total(&self) -> Tally {
        let mut total = Tally::default();
        self.by_label.values().for_each(|tally| total.merge(tally));
        total
    }
}

/// The mean squared difference between probabilities and what happened; `None` without forecasts. Lower is better.
#[must_use]
pub fn brier(forecasts: impl IntoIterator<Item = (f64, bool)>) -> Option<f64> {
    let (count, sum) = forecasts.into_iter().fold((0_u64, 0.0), |(count, sum), (probability, happened)| {
        let error = probability - f64::from(u8::from(happened));
        (count + 1, sum + error * error)
    });
    (count > 0).then(|| sum / count as f64)
}

/// How often a yes-or-no prediction was right.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Detection {
    /// Predicted, and it happened.
    pub hits: u64,
    /// Predicted, and it did not happen.
    pub false_alarms: u64,
    /// Not predicted, and it happened.
    pub misses: u64,
}

impl Detection {
    /// Adds a prediction and what happened.
    pub fn add(&mut self, predicted: bool, happened: bool) {
        self.hits += u64::from(predicted && happened);
        self.false_alarms += u64::from(predicted && !happened);
        self.misses += u64::from(!predicted && happened);
    }

    /// The share of predictions that came true; `None` without predictions.
    #[must_use]
    pub fn precision(&self) -> Option<f64> {
        let predicted = self.hits + self.false_alarms;
        (predicted > 0).then(|| self.hits as f64 / predicted as f64)
    }

    /// The share of events that were predicted; `None` without events.
    #[must_use]
    pub fn recall(&self) -> Option<f64> {
        let happened = self.hits + self.misses;
        (happened > 0).then(|| self.hits as f64 / happened as f64)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Proves the scores of a few forecasts that are computed by hand.
    #[test]
    fn scores() {
        let interval = Interval { low: 5.0, centre: 7.0, high: 9.0 };
        assert_eq!((interval.holds(5.0), interval.holds(9.0), interval.holds(9.1)), (true, true, false));
        // Outcome 11: 0.1 * 6, 0.5 * 4, 0.9 * 2.
        assert!((interval.pinball(11.0) - (0.6 + 2.0 + 1.8) / 3.0).abs() < 1e-12);
        // Outcome 4: 0.9 * 1, 0.5 * 3, 0.1 * 5.
        assert!((interval.pinball(4.0) - (0.9 + 1.5 + 0.5) / 3.0).abs() < 1e-12);
        let mut tallies = Tallies::default();
        let wide = Interval { low: 0.0, centre: 7.0, high: 20.0 };
        tallies.add("a", &interval, &wide, 11.0, 2.0);
        tallies.add("b", &interval, &wide, 7.0, 2.0);
        let mut other = Tallies::default();
        other.add("a", &interval, &wide, 8.0, 1.0);
        tallies.merge(other);
        let (a, total) = (tallies.by_label["a"], tallies.total());
        assert_eq!((a.forecasts, a.covered, a.coverage()), (2, 1, Some(0.5)));
        assert_eq!((total.forecasts, total.covered, total.coverage()), (3, 2, Some(2.0 / 3.0)));
        assert!(total.mean_pinball() < total.mean_naive_pinball());
        assert_eq!((Tally::default().coverage(), Tally::default().mean_pinball()), (None, None));
        assert_eq!((brier([(1.0, true), (0.5, false)]), brier([])), (Some(0.125), None));
        let mut detection = Detection::default();
        [(true, true), (true, false), (false, true), (true, true), (false, false)].into_iter().for_each(|(p, h)| detection.add(p, h));
        assert_eq!((detection.precision(), detection.recall()), (Some(2.0 / 3.0), Some(2.0 / 3.0)));
        assert_eq!(Detection::default().precision(), None);
    }
}
