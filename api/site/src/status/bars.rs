//! How the sync runs of a stream ended on each of the last days, as bars: tall ones for days with a failed run, so that the colour is not the only sign.

use std::collections::HashMap;
use std::fmt::Write as _;

use jiff::civil::Date;
use maud::{Markup, html};
use serde_json::Value;

use crate::fields::{cell, days_before};

/// How many days are shown.
pub(crate) const DAYS: i64 = 90;
/// The height of the chart, in its units.
const HEIGHT: u64 = 24;
/// The most days with failed sync runs that are named.
const FAILURES_MAX: usize = 5;
/// From one bar to the next, in the units of the chart.
const STEP: usize = 4;

/// How the sync runs of one day ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum DayState {
    /// No sync run ended.
    Nothing,
    /// All finished.
    Finished,
    /// Some finished and some failed.
    Partly,
    /// All failed.
    Failed,
}

impl DayState {
    const ALL: [Self; 4] = [Self::Nothing, Self::Finished, Self::Partly, Self::Failed];

    fn of(finished: u64, failed: u64) -> Self {
        match (finished, failed) {
            (0, 0) => Self::Nothing,
            (_, 0) => Self::Finished,
            (0, _) => Self::Failed,
            _ => Self::Partly,
        }
    }

    /// The class of its bars, and their height.
    fn shape(self) -> (&'static str, u64) {
        match self {
            Self::Nothing => ("none", 4),
            Self::Finished => ("fine", 16),
            Self::Partly => ("partly", HEIGHT),
            Self::Failed => ("failed", HEIGHT),
        }
    }
}

/// The days that the bars show, the oldest first, each with its date as answers write it. All streams of a page have the same.
pub(crate) fn last_days(today: Date) -> Vec<(Date, String)> {
    days_before(today, DAYS).into_iter().map(|day| (day, day.to_string())).collect()
}

/// The days, each with its state.
fn days(stream: &Value, last_days: &[(Date, String)]) -> Vec<(Date, DayState)> {
    let count = |day: &Value, name: &str| day[name].as_u64().unwrap_or(0);
    let known = stream["runsByDay"].as_array().into_iter().flatten();
    let known: HashMap<&str, DayState> =
        known.filter_map(|day| Some((day["day"].as_str()?, DayState::of(count(day, "finished"), count(day, "failed"))))).collect();
    let state = |text: &String| known.get(text.as_str()).copied().unwrap_or(DayState::Nothing);
    last_days.iter().map(|(day, text)| (*day, state(text))).collect()
}

/// The bars of the last days, and below them what they show in words, which screen readers read.
pub(crate) fn bars(stream: &Value, last_days: &[(Date, String)]) -> Markup {
    let days = days(stream, last_days);
    let count = |wanted: DayState| days.iter().filter(|(_, state)| *state == wanted).count();
    let failures: Vec<Date> =
        days.iter().filter(|(_, state)| matches!(state, DayState::Failed | DayState::Partly)).map(|(day, _)| *day).collect();
    let summary = format!(
        "Sync runs of the last {DAYS} days: all finished on {}, some failed on {}, all failed on {}, none is recorded on {}.",
        count(DayState::Finished),
        count(DayState::Partly),
        count(DayState::Failed),
        count(DayState::Nothing)
    );
    html! {
        svg.uptime viewBox=(format!("0 0 {} {HEIGHT}", days.len() * STEP)) preserveAspectRatio="none" aria-hidden="true" {
            @for state in DayState::ALL {
                @let (class, height) = state.shape();
                @if count(state) > 0 { path class=(class) d=(path(&days, state, height)) {} }
            }
        }
        p.soft {
            (summary)
            @if !failures.is_empty() {
                " Failed on: "
                @for (index, day) in failures.iter().rev().take(FAILURES_MAX).enumerate() {
                    @if index > 0 { ", " }
                    (cell("", &Value::String(day.to_string())))
                }
                @if failures.len() > FAILURES_MAX { " and on " (failures.len() - FAILURES_MAX) " earlier days" }
                "."
            }
        }
    }
}

/// One path for all bars of a state: much shorter than an element for each bar.
fn path(days: &[(Date, DayState)], wanted: DayState, height: u64) -> String {
    let mut out = String::new();
    for (index, _) in days.iter().enumerate().filter(|(_, (_, state))| *state == wanted) {
        // Writing to a text does not fail.
        let _ = write!(out, "M{} {}h3v{height}h-3z", index * STEP, HEIGHT - height);
    }
    out
}

#[cfg(test)]
mod tests {
    use jiff::civil::date;
    use serde_json::json;

    use super::*;

    /// Proves that each day has one bar of its state, that days without sync runs are shown as such, and that failures are named, the newest first.
    #[test]
    fn each_day_has_one_bar() {
        let day = |day: &str, finished: u64, failed: u64| json!({ "day": day, "finished": finished, "failed": failed });
        let runs = [day("2026-08-01", 0, 9), day("2026-11-25", 24, 0), day("2026-11-26", 3, 1), day("2026-11-27", 0, 2), day("<b>", 1, 1)];
        let shown = bars(&json!({ "runsByDay": runs }), &last_days(date(2026, 11, 28))).into_string();
        let count_of = |class: &str| {
            let start = shown.find(&format!("class=\"{class}\" d=\"")).unwrap();
            shown[start..].split('"').nth(3).unwrap().matches('M').count()
        };
        assert_eq!([count_of("none"), count_of("fine"), count_of("partly"), count_of("failed")], [87, 1, 1, 1]);
        assert!(shown.contains("d=\"M344 8h3v16h-3z\"") && shown.contains("d=\"M352 0h3v24h-3z\""), "{shown}");
        assert!(shown.contains("all finished on 1, some failed on 1, all failed on 1, none is recorded on 87."), "{shown}");
        let named = shown.split("Failed on: ").nth(1).unwrap();
        assert!(named.find("27 Nov").unwrap() < named.find("26 Nov").unwrap() && !named.contains("Aug"), "{named}");
        assert!(!shown.contains("style"));
    }
}
