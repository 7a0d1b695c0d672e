//! Page views of the article whose title is a phrase: they confirm a phrase that warms.

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};

use crate::label::Label;

/// The days before that the usual number of views is taken from.
pub const PAST_DAYS: i64 = 14;
/// Under so many known days there is no usual number.
const DAYS_MIN: usize = 5;
/// Views of a day that ended longer ago say nothing about now, in days.
pub const STALE_DAYS: i64 = 3;
/// How many days of an article are kept.
pub const KEPT_DAYS: i64 = 35;

/// The views of an article by day, in days since 1970. A day is missing if the article was not among those listed.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(transparent)]
pub struct Views(pub BTreeMap<i64, i64>);

/// The fewest views that an article on the list of each day has.
pub type Lowest = BTreeMap<i64, i64>;

/// What the views of a day say.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct ViewsMeasure {
    /// The label: how the views compare with the days before.
    pub label: Label,
    /// The views of the day over the usual ones.
    pub multiple: f64,
    /// The views of the day.
    pub views: i64,
    /// The median of the 14 days before.
    pub baseline: f64,
}

impl Views {
    /// Sets the views of a day, and drops days that are too old.
    pub fn set(&mut self, day: i64, views: i64) {
        self.0.insert(day, views);
        let newest = self.0.keys().next_back().copied().unwrap_or(day);
        self.0 = self.0.split_off(&(newest - KEPT_DAYS + 1));
    }

    /// Compares the views of a day with the 14 days before. A day on which the article was not listed counts with the fewest views of that day's list,
    /// which its views did not exceed. `None` if the article is not listed on that day, or if too few days before are known.
    #[must_use]
    pub fn measure(&self, day: i64, lowest: &Lowest, min_multiple: f64) -> Option<ViewsMeasure> {
        let views = *self.0.get(&day)?;
        let mut past: Vec<i64> =
            (day - PAST_DAYS..day).filter_map(|day| lowest.get(&day).map(|least| self.0.get(&day).copied().unwrap_or(*least))).collect();
        if past.len() < DAYS_MIN {
            return None;
        }
        past.sort_unstable();
        let middle = |n: usize| past.get(n).copied().unwrap_or_default() as f64;
        let baseline = f64::midpoint(middle((past.len() - 1) / 2), middle(past.len() / 2)).max(1.0);
        let (multiple, root) = (views as f64 / baseline, libm::sqrt(min_multiple));
        let label = if multiple >= min_multiple {
            Label::Rising
        } else if multiple >= root {
            Label::Warming
        } else if multiple <= 1.0 / root {
            Label::Cooling
        } else {
            Label::Flat
        };
        Some(ViewsMeasure { label, multiple, views, baseline })
    }
}

/// The newest day, at most `day`, whose list is known, if it is recent enough.
#[must_use]
pub fn newest_day(lowest: &Lowest, day: i64) -> Option<i64> {
    lowest.range(day - STALE_DAYS..=day).next_back().map(|(day, _)| *day)
}

/// Sets the fewest views of a day's list, and drops days that are too old.
pub fn set_lowest(lowest: &mut Lowest, day: i64, views: i64) {
    lowest.insert(day, views);
    let newest = lowest.keys().next_back().copied().unwrap_or(day);
    *lowest = lowest.split_off(&(newest - KEPT_DAYS + 1));
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Proves that views are compared with the median of 14 days, that a day without the article counts with the fewest views of that day, and that
    /// too few days say nothing.
    #[test]
    fn views_are_compared_with_two_weeks() {
        let mut lowest = Lowest::new();
        let mut views = Views::default();
        for day in 0..14 {
            set_lowest(&mut lowest, day, 1_000);
            if day % 2 == 0 {
                views.set(day, 2_000);
            }
        }
        views.set(14, 4_500);
        let measure_of = |views: &Views, lowest: &Lowest, multiple| views.measure(14, lowest, multiple);
        let measure = measure_of(&views, &lowest, 3.0).unwrap();
        assert_eq!((measure.label, measure.multiple, measure.baseline), (Label::Rising, 3.0, 1_500.0));
        assert_eq!(measure_of(&views, &lowest, 4.0).unwrap().label, Label::Warming);
        assert_eq!(measure_of(&views, &lowest, 20.0).unwrap().label, Label::Flat);
        assert_eq!(measure_of(&views, &lowest.split_off(&10), 3.0), None);
        assert_eq!(measure_of(&Views::default(), &Lowest::new(), 3.0), None);
    }

    /// Proves that old days are dropped, and which day is recent enough.
    #[test]
    fn days_are_bounded() {
        let (mut lowest, mut views) = (Lowest::new(), Views::default());
        for day in 0..100 {
            set_lowest(&mut lowest, day, 1);
            views.set(day, 2);
        }
        assert_eq!((lowest.len(), views.0.len()), (35, 35));
        assert_eq!((newest_day(&lowest, 102), newest_day(&lowest, 103), newest_day(&lowest, 80)), (Some(99), None, Some(80)));
    }
}
