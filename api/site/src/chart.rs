//! Charts as SVG that the server draws. Colours come from the style sheet.

use std::fmt::Write as _;

use jiff::civil::Date;
use maud::{Markup, html};

use crate::fields::grouped;

/// What pages say next to numbers of changes: they are differences of `seq`, because the changes that feeds show are not counted.
pub(crate) const COUNTED: &str = "Numbers of changes include internal ones, which no list and no feed shows.";
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

/// A day with more than this many times the changes of every other day is not to scale: next to the day of a first sync, no other could be seen.
const CUT_FACTOR: u64 = 5;
/// Where the gap of a bar that is not to scale begins, as a part of the height, and how high it is, in the units of the chart.
const GAP_PART: u64 = 5;
const GAP_HEIGHT: u64 = 3;

/// The number of changes of a bar of the whole height, at least 1: the largest of a day, or twice the second if the largest is not to scale.
fn scale(days: &[DayCount]) -> u64 {
    let mut counts: Vec<u64> = days.iter().map(|day| day.changes).collect();
    counts.sort_unstable();
    match counts[..] {
        [.., second, most] if second > 0 && most > second.saturating_mul(CUT_FACTOR) => second.saturating_mul(2),
        [.., most] => most.max(1),
        [] => 1,
    }
}

/// The height of a bar where a bar for `max` is `height` high. A bar that is not to scale has the whole height.
fn bar_height(changes: u64, max: u64, height: u64) -> u64 {
    if changes == 0 { 0 } else { (changes.saturating_mul(height) / max).clamp(BAR_MIN, height) }
}

/// Small bars without axes, one a day. `summary` says in words what they show. A page has many of them, so all bars of one are one path.
pub(crate) fn sparkline(days: &[DayCount], summary: &str) -> Markup {
    let max = scale(days);
    html! {
        svg.spark viewBox=(format!("0 0 {} {SPARK_HEIGHT}", days.len() * SPARK_STEP)) preserveAspectRatio="none" role="img" aria-label=(summary) {
            path.ground d=(spark_path(days.iter().map(|_| SPARK_HEIGHT))) {}
            path.bar d=(spark_path(days.iter().map(|day| bar_height(day.changes, max, SPARK_HEIGHT)))) {}
            @if days.iter().any(|day| day.changes > max) { path.gap d=(spark_gaps(days, max)) {} }
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

/// The path of the gaps in the bars that are not to scale.
fn spark_gaps(days: &[DayCount], max: u64) -> String {
    let (mut out, width) = (String::new(), SPARK_STEP - 1);
    for (index, _) in days.iter().enumerate().filter(|(_, day)| day.changes > max) {
        // Writing to a text does not fail.
        let _ = write!(out, "M{} {}h{width}v{GAP_HEIGHT}h-{width}z", index * SPARK_STEP, SPARK_HEIGHT / GAP_PART);
    }
    out
}

/// Bars, one a day, with the first and the last day and the largest number.
pub(crate) fn histogram(days: &[DayCount], summary: &str) -> Markup {
    let most = days.iter().max_by_key(|day| day.changes);
    let max = most.map_or(0, |day| day.changes);
    let (step, height) = (10, 64);
    let day = |day: Option<&DayCount>| day.map(|day| day.day.strftime("%-d %b").to_string()).unwrap_or_default();
    html! {
        figure.histogram {
            figcaption {
                "Changes a day"
                span.soft {
                    "highest " (grouped(i64::try_from(max).unwrap_or(i64::MAX)))
                    @if max > scale(days) { " on " (day(most)) ", whose bar is not to scale" }
                }
            }
            (bars(days, step, height, summary))
            div.axis aria-hidden="true" { span { (day(days.first())) } span { (day(days.last())) } }
        }
    }
}

/// Bars with the number of each day on hover.
fn bars(days: &[DayCount], step: usize, height: u64, summary: &str) -> Markup {
    let max = scale(days);
    html! {
        svg.bars viewBox=(format!("0 0 {} {height}", days.len() * step)) preserveAspectRatio="none" role="img" aria-label=(summary) {
            @for (index, day) in days.iter().enumerate() {
                @let bar = bar_height(day.changes, max, height);
                g {
                    title { (day.day) ": " (day.changes) }
                    rect.ground x=(index * step) y="0" width=(step - 1) height=(height) {}
                    rect.bar x=(index * step) y=(height - bar) width=(step - 1) height=(bar) {}
                    @if day.changes > max { rect.gap x=(index * step) y=(height / GAP_PART) width=(step - 1) height=(GAP_HEIGHT) {} }
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

    /// Proves that the day of a first sync leaves the other days to be seen, that its bar has a gap and the caption says so; and that a few times the
    /// others is to scale.
    #[test]
    fn the_day_of_a_first_sync_is_cut() {
        let days = [(1, 2_551), (2, 30), (3, 15)].map(|(day, changes)| DayCount { day: date(2026, 11, day), changes });
        let drawn = histogram(&days, "about").into_string();
        let heights: Vec<&str> =
            drawn.split("class=\"bar\"").skip(1).filter_map(|rect| rect.split("height=\"").nth(1)?.split('"').next()).collect();
        assert_eq!(heights, ["64", "32", "16"]);
        assert!(
            drawn.contains("highest 2,551 on 1 Nov, whose bar is not to scale") && drawn.matches("class=\"gap\"").count() == 1,
            "{drawn}"
        );
        let small = sparkline(&days, "about").into_string();
        assert!(
            small.contains("class=\"bar\" d=\"M0 0h3v28h-3zM4 14h3v14h-3zM8 21h3v7h-3z\"")
                && small.contains("class=\"gap\" d=\"M0 5h3v3h-3z\""),
            "{small}"
        );
        for few in [vec![], days[1..].to_vec(), vec![days[0]]] {
            assert!(
                !histogram(&few, "about").into_string().contains("not to scale") && !sparkline(&few, "about").into_string().contains("gap"),
                "{few:?}"
            );
        }
    }
}
