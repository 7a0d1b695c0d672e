//! Charts as SVG that the server draws. Colours come from the style sheet.

use std::fmt::Write as _;

use jiff::civil::Date;
use maud::{Markup, html};

use crate::fields::grouped;

/// The height of a bar that is not zero, at least, in the units of the chart.
const BAR_MIN: u64 = 2;

/// Changes of one day.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct DayCount {
    pub(crate) day: Date,
    pub(crate) changes: u64,
}

/// The distance of the bars of a small chart, and the height of the highest one, in the units of the chart.
const SPARK_STEP: usize = 4;
const SPARK_HEIGHT: u64 = 28;

/// The largest number of changes of a day, at least 1.
fn most(days: &[DayCount]) -> u64 {
    days.iter().map(|day| day.changes).max().unwrap_or(0).max(1)
}

/// The height of a bar where a bar for `max` is `height` high.
fn bar_height(changes: u64, max: u64, height: u64) -> u64 {
    if changes == 0 { 0 } else { (changes.saturating_mul(height) / max).max(BAR_MIN) }
}

/// Small bars without axes, one a day. `summary` says in words what they show. A page has many of them, so all bars of one are one path.
pub(crate) fn sparkline(days: &[DayCount], summary: &str) -> Markup {
    let max = most(days);
    html! {
        svg.spark viewBox=(format!("0 0 {} {SPARK_HEIGHT}", days.len() * SPARK_STEP)) preserveAspectRatio="none" role="img" aria-label=(summary) {
            path.ground d=(spark_path(days.iter().map(|_| SPARK_HEIGHT))) {}
            path.bar d=(spark_path(days.iter().map(|day| bar_height(day.changes, max, SPARK_HEIGHT)))) {}
        }
    }
}

/// The path of bars with these heights, one a day.
fn spark_path(heights: impl Iterator<Item = u64>) -> String {
    let (mut out, width) = (String::new(), SPARK_STEP - 1);
    for (index, bar) in heights.enumerate().filter(|(_, bar)| *bar > 0) {
        // Writing to a text does not fail.
        let _ = write!(out, "M{} {}h{width}v{bar}h-{width}z", index * SPARK_STEP, SPARK_HEIGHT - bar);
    }
    out
}

/// Bars, one a day, with the first and the last day and the largest number.
pub(crate) fn histogram(days: &[DayCount], summary: &str) -> Markup {
    let max = days.iter().map(|day| day.changes).max().unwrap_or(0);
    let (step, height) = (10, 64);
    let day = |day: Option<&DayCount>| day.map(|day| day.day.strftime("%-d %b").to_string()).unwrap_or_default();
    html! {
        figure.histogram {
            figcaption { "Changes a day" span.soft { "highest " (grouped(i64::try_from(max).unwrap_or(i64::MAX))) } }
            (bars(days, step, height, summary))
            div.axis aria-hidden="true" { span { (day(days.first())) } span { (day(days.last())) } }
        }
    }
}

/// Bars with the number of each day on hover.
fn bars(days: &[DayCount], step: usize, height: u64, summary: &str) -> Markup {
    let max = most(days);
    html! {
        svg.bars viewBox=(format!("0 0 {} {height}", days.len() * step)) preserveAspectRatio="none" role="img" aria-label=(summary) {
            @for (index, day) in days.iter().enumerate() {
                @let bar = bar_height(day.changes, max, height);
                g {
                    title { (day.day) ": " (day.changes) }
                    rect.ground x=(index * step) y="0" width=(step - 1) height=(height) {}
                    rect.bar x=(index * step) y=(height - bar) width=(step - 1) height=(bar) {}
                }
            }
        }
    }
}

/// A row of [`breakdown`].
pub(crate) struct Share {
    pub(crate) name: String,
    pub(crate) count: usize,
    /// Where the explorer shows only these; empty if it cannot.
    pub(crate) link: String,
}

/// Counts by value, as bars. `counted` is how many were counted, also those whose value is not shown.
pub(crate) fn breakdown(heading: &str, counted: usize, shares: &[Share]) -> Markup {
    let max = shares.iter().map(|share| share.count).max().unwrap_or(0).max(1);
    html! {
        figure.breakdown {
            figcaption { (heading) span.soft { "of " (counted) } }
            ul.plain {
                @for share in shares {
                    li {
                        span.name { @if share.link.is_empty() { bdi { (share.name) } } @else { a href=(share.link) { bdi { (share.name) } } } }
                        svg viewBox="0 0 100 8" preserveAspectRatio="none" aria-hidden="true" {
                            rect.ground x="0" y="0" width="100" height="8" {}
                            rect.bar x="0" y="0" width=(share.count * 100 / max) height="8" {}
                        }
                        span.number { (share.count) }
                    }
                }
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use jiff::civil::date;

    use super::*;

    /// Proves that the largest bar has the whole height, that a day with few changes is seen next to one with many, and that a day without has none.
    #[test]
    fn bars_are_to_scale() {
        let days = [(1, 1_000_000), (2, 1), (3, 0), (4, 500_000)].map(|(day, changes)| DayCount { day: date(2026, 11, day), changes });
        let drawn = histogram(&days, "about").into_string();
        let heights: Vec<&str> =
            drawn.split("class=\"bar\"").skip(1).filter_map(|rect| rect.split("height=\"").nth(1)?.split('"').next()).collect();
        assert_eq!(heights, ["64", "2", "0", "32"]);
        assert!(drawn.contains("aria-label=\"about\"") && drawn.contains("<title>2026-11-01: 1000000</title>") && !drawn.contains("style"));
        let small = sparkline(&days, "about").into_string();
        assert!(small.contains("class=\"bar\" d=\"M0 0h3v28h-3zM4 26h3v2h-3zM12 14h3v14h-3z\""), "{small}");
        assert!(small.contains("aria-label=\"about\"") && small.matches("v28h").count() == 5 && !small.contains("style"), "{small}");
        assert!(sparkline(&[], "about").into_string().contains("viewBox=\"0 0 0 28\""));
    }
}
