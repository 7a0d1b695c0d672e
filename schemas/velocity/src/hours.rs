//! How many stories each hour has, in rows of a day.

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};

use crate::calendar::DAY_HOURS;

/// The stories of one hour.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(from = "(i64, bool)", into = "(i64, bool)")]
pub struct Hour {
    /// The number of stories.
    pub stories: i64,
    /// Whether every story was shown.
    pub is_complete: bool,
}

impl From<(i64, bool)> for Hour {
    fn from((stories, is_complete): (i64, bool)) -> Self {
        Self { stories, is_complete }
    }
}

impl From<Hour> for (i64, bool) {
    fn from(hour: Hour) -> Self {
        (hour.stories, hour.is_complete)
    }
}

/// The hours of one day that are known, by the hour of the day.
pub type DayRow = BTreeMap<i64, Hour>;

/// The hours that are known, in hours since 1970.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Hours(BTreeMap<i64, Hour>);

/// The hours of a window.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Window {
    /// The number of stories.
    pub stories: i64,
    /// Whether every hour is complete.
    pub is_complete: bool,
}

impl Hours {
    /// Sets an hour.
    pub fn set(&mut self, hour: i64, stories: Hour) {
        self.0.insert(hour, stories);
    }

    /// Adds the hours of a day.
    pub fn add_day(&mut self, day: i64, row: &DayRow) {
        self.0.extend(row.iter().map(|(hour, stories)| (day * DAY_HOURS + hour, *stories)));
    }

    /// The hours from a given hour on.
    #[must_use]
    pub fn since(&self, hour: i64) -> Self {
        Self(self.0.range(hour..).map(|(hour, stories)| (*hour, *stories)).collect())
    }

    /// The newest complete hour.
    #[must_use]
    pub fn newest(&self) -> Option<i64> {
        self.0.iter().rev().find(|(_, hour)| hour.is_complete).map(|(hour, _)| *hour)
    }

    /// The hours of each window of so many hours: the one that ends with the hour `newest` first, then those before it.
    #[must_use]
    pub fn windows(&self, newest: i64, hours: i64, windows: usize) -> Vec<Window> {
        let mut out = Vec::with_capacity(windows);
        for n in (0_i64..).take(windows) {
            let to = newest.saturating_sub(n.saturating_mul(hours));
            let known = self.0.range(to.saturating_sub(hours).saturating_add(1)..=to).map(|(_, hour)| hour);
            let (mut stories, mut complete) = (0, 0);
            for hour in known {
                stories += hour.stories.max(0);
                complete += i64::from(hour.is_complete);
            }
            out.push(Window { stories, is_complete: complete == hours });
        }
        out
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Proves that a window is complete if all its hours are, and that the newest hour is the newest complete one.
    #[test]
    fn windows() {
        let hour = |stories, is_complete| Hour { stories, is_complete };
        let mut hours = Hours::default();
        hours.add_day(0, &(0..24).map(|at| (at, hour(10, true))).collect());
        hours.set(24, hour(7, true));
        hours.set(25, hour(1_000, false));
        assert_eq!(hours.newest(), Some(24));
        let window = |stories, is_complete| Window { stories, is_complete };
        assert_eq!(hours.windows(24, 6, 3), [window(57, true), window(60, true), window(60, true)]);
        assert_eq!(hours.windows(25, 6, 2), [window(1_047, false), window(60, true)]);
        assert_eq!(hours.windows(24, 24, 2), [window(237, true), window(10, false)]);
        assert_eq!(Hours::default().newest(), None);
        assert_eq!(hours.since(24).windows(24, 2, 1), [window(7, false)]);
    }

    /// Proves the rows' form.
    #[test]
    fn rows_read_back() {
        let row: DayRow = [(3, Hour { stories: 41, is_complete: true }), (4, Hour { stories: 1_000, is_complete: false })].into();
        let json = serde_json::to_string(&row).unwrap();
        assert_eq!(json, r#"{"3":[41,true],"4":[1000,false]}"#);
        assert_eq!(serde_json::from_str::<DayRow>(&json).unwrap(), row);
    }
}
