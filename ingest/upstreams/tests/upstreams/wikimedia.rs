//! Upstream `wikimedia`: which days a run asks for, and the mapping of its lists.

use std::collections::BTreeSet;

use jiff::Timestamp;
use jiff::civil::{Date, date};
use jiff::tz::TimeZone;
use schemas::facts::mentions::MentionFact;
use schemas::position::UpstreamCursor;
use serde_json::json;
use upstreams::{Answer, Page, Settings, UpstreamError, Window};

use crate::common::*;
use crate::hacker_news::mentions;

const STREAM: &str = "wikimedia";

fixture_tests!(STREAM);

/// Runs at a time, with lists for all days but some. Returns the days asked for and the pages.
fn run(memory: &mut UpstreamCursor, now: &str, missing: &[&str]) -> (Vec<String>, Vec<Page>) {
    let (upstream, stream) = stream(STREAM);
    let settings = Settings { backfill_days: 3, ..settings() };
    let at: Timestamp = now.parse().unwrap();
    let mut cursor = upstream.start_after(stream, &Window { from: None, to: TODAY }, &settings, memory, at);
    let (mut days, mut pages) = (Vec::new(), Vec::new());
    while upstream.has_request(stream, &cursor) {
        let path = upstream.request(stream, &cursor, &settings).unwrap().path;
        let day = path.strip_prefix("/api/rest_v1/metrics/pageviews/top/en.wikipedia/all-access/").unwrap().replace('/', "-");
        let answer = if missing.contains(&day.as_str()) { Answer { status: 404, ..ok("{}") } } else { ok(list(&day, &["Cat", "Dog"])) };
        let page = upstream.map(stream, &cursor, &answer, at.to_zoned(TimeZone::UTC).date()).unwrap();
        cursor = page.next.clone().unwrap();
        days.push(day);
        pages.push(page);
        assert!(days.len() < 1_000);
    }
    *memory = upstream.remember(stream, &cursor);
    (days, pages)
}

fn list(day: &str, articles: &[&str]) -> String {
    let parts: Vec<&str> = day.split('-').collect();
    let rows: Vec<_> =
        articles.iter().enumerate().map(|(at, article)| json!({"article": article, "views": 1_000 - at, "rank": at + 1})).collect();
    json!({"items": [{"project": "en.wikipedia", "access": "all-access", "year": parts[0], "month": parts[1], "day": parts[2], "articles": rows}]})
        .to_string()
}

fn through(pages: &[Page]) -> Option<Date> {
    pages.last().and_then(|page| page.through)
}

/// Proves that the first run asks for the days of the settings, that a day without a list is asked for until it appears, that later days do
/// not wait for it, and that a run is complete up to the day before the first missing one.
#[test]
fn days_that_are_asked_for() {
    let mut memory = UpstreamCursor::default();
    let (days, pages) = run(&mut memory, "2026-09-10T09:25:00Z", &["2026-09-08", "2026-09-09"]);
    assert_eq!(days, ["2026-09-07", "2026-09-08", "2026-09-09"]);
    assert_eq!(through(&pages), Some(date(2026, 9, 7)));
    let (days, pages) = run(&mut memory, "2026-09-11T09:25:00Z", &["2026-09-09"]);
    assert_eq!(days, ["2026-09-08", "2026-09-09", "2026-09-10"]);
    assert_eq!(through(&pages), Some(date(2026, 9, 8)));
    let (days, pages) = run(&mut memory, "2026-09-12T09:25:00Z", &[]);
    assert_eq!(days, ["2026-09-09", "2026-09-11"]);
    assert_eq!(through(&pages), Some(date(2026, 9, 11)));
    assert!(run(&mut memory, "2026-09-12T10:00:00Z", &[]).0.is_empty());
}

/// Proves that a list that never appears is given up after ten days, and that this is stated.
#[test]
fn a_day_without_a_list_is_given_up() {
    let mut memory = UpstreamCursor::default();
    for day in 8..=18 {
        let (days, pages) = run(&mut memory, &format!("2026-09-{day:02}T09:25:00Z"), &["2026-09-07"]);
        assert!(days.contains(&"2026-09-07".to_owned()), "{day}: {days:?}");
        let is_given_up = pages.iter().any(|page| page.incomplete.as_ref().is_some_and(|gap| gap.what.contains("2026-09-07")));
        assert_eq!(is_given_up, day >= 17, "{day}");
        if is_given_up {
            break;
        }
    }
    assert_eq!(run(&mut memory, "2026-09-19T09:25:00Z", &[]).0, ["2026-09-17", "2026-09-18"]);
}

/// Proves that ties keep their shared rank, that pages of other namespaces are no articles while titles with a colon are, and that the fact of
/// the day follows those of its articles with the views of all rows.
#[test]
fn lists() {
    let page = fixture(STREAM, "ordinary").unwrap();
    let facts = mentions(&page);
    let articles: Vec<&str> = facts.iter().filter(|fact| fact.kind == "views").map(|fact| &*fact.article).collect();
    assert_eq!(articles, ["Baahubali_2:_The_Conclusion", "AC/DC", "Beyoncé", "“Heroes”_(David_Bowie_album)", ".xxx", "東京"]);
    let ranks: BTreeSet<i64> = facts.iter().filter(|fact| fact.views == 90_000).map(|fact| fact.rank).collect();
    assert_eq!(ranks, [5].into());
    let day: &MentionFact = facts.last().unwrap();
    assert_eq!((&*day.kind, &*day.day, day.articles), ("day", "2026-01-01", 6));
    assert_eq!(day.total, 7_770_000);
    assert_eq!(page.observations.last().unwrap().key, "wikimedia/day/2026-01-01");
}

/// Proves that a list of another day or project, and one without articles, is refused: nothing of it is stored.
#[test]
fn lists_that_are_refused() {
    for case in ["another_day", "another_project", "empty", "no_article", "broken"] {
        assert!(matches!(fixture(STREAM, case), Err(UpstreamError::Later { .. })), "{case}");
    }
    let articles: Vec<String> = (0..30).map(|at| format!("A{at}")).collect();
    let articles: Vec<&str> = articles.iter().map(String::as_str).collect();
    let renamed = list("2026-01-01", &articles).replace("\"views\"", "\"hits\"");
    assert!(matches!(map(STREAM, renamed), Err(UpstreamError::Stop { field, .. }) if field == "views"));
}

/// Proves that a rejected row is mapped again from its stored bytes, for its own day.
#[test]
fn rejected_rows_are_mapped_again() {
    let (upstream, stream) = stream(STREAM);
    let page = fixture(STREAM, "records_not_readable").unwrap();
    let reject = page.rejects.iter().find(|reject| reject.reference.ends_with("Owl")).unwrap();
    assert_eq!(reject.reason, "views is not a positive whole number");
    let mended = String::from_utf8(reject.raw.clone()).unwrap().replace("\"many\"", "70");
    let cursor = upstream.start(stream, &window(), &settings());
    let again = upstream.map(stream, &cursor, &ok(upstream.single(stream, mended.as_bytes())), TODAY).unwrap();
    assert_eq!((again.observations[0].key.as_str(), mentions(&again)[0].views), ("wikimedia/2026-01-01/Owl", 70));
    assert!(upstream.map(stream, &cursor, &ok("[]"), TODAY).is_err());
}
