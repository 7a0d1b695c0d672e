//! openFDA: requests, paging, mapping, and the special cases of its service.

use jiff::civil::date;
use serde_json::{Value, json};
use upstreams::{Answer, Settings, UpstreamError, Window};

use crate::common::*;

const FOOD: &str = "openfda.food";

fn report(number: usize) -> Value {
    json!({"recall_number": format!("F-{number:05}-2026"), "event_id": "1", "status": "Ongoing", "classification": "Class II",
           "product_type": "Food", "report_date": "20260301", "recalling_firm": "Firm", "product_description": format!("Product {number}"),
           "reason_for_recall": "Reason"})
}

fn page_of(count: usize, total: usize, link: Option<&str>) -> Answer {
    let results: Vec<_> = (0..count).map(report).collect();
    let body = serde_json::to_vec(&json!({"meta": {"results": {"total": total}}, "results": results})).unwrap();
    Answer { link: link.map(str::to_owned), ..ok(body) }
}

fn none() -> Answer {
    Answer { status: 404, ..ok(r#"{"error":{"code":"NOT_FOUND","message":"No matches found!"}}"#) }
}

fixture_tests!("openfda");

/// Proves that a full run reads year by year from 2004, that `+` and brackets are not escaped, and that "no match" continues with the next
/// window.
#[test]
fn a_full_run_reads_year_by_year() {
    for (stream, endpoint) in [(FOOD, "food"), ("openfda.drug", "drug"), ("openfda.device", "device")] {
        let paths = walk(stream, &Window { from: None, to: date(2026, 9, 30) }, |_| none());
        assert_eq!(paths.len(), 23);
        let path = |days| format!("/{endpoint}/enforcement.json?search=report_date:[{days}]&sort=report_date:asc&limit=1000");
        assert_eq!(paths[0], path("20040101+TO+20041231"));
        assert_eq!(paths[22], path("20260101+TO+20260930"));
    }
}

/// Proves that an incremental run is one window, split at the end of a year.
#[test]
fn an_incremental_run_is_one_window_a_year() {
    let paths = walk(FOOD, &Window { from: Some(date(2025, 12, 20)), to: date(2026, 1, 20) }, |_| none());
    assert!(paths[0].contains("[20251220+TO+20251231]") && paths[1].contains("[20260101+TO+20260120]") && paths.len() == 2);
}

/// Proves that the API key is at the end of the query, encoded, and only when there is one.
#[test]
fn the_key_is_the_last_parameter() {
    let (upstream, stream) = stream(FOOD);
    let settings = Settings { api_key: Some("a&b c".to_owned()), ..Settings::default() };
    let request = upstream.request(stream, &start(FOOD, &window()), &settings).unwrap();
    assert!(request.path.ends_with("&limit=1000&api_key=a%26b+c"), "{}", request.path);
    assert_eq!(request.accepts_statuses, [404]);
}

/// Proves that paging uses the value of `search_after`, never its host, and ends at the total even if a Link is still sent.
#[test]
fn paging_follows_search_after_until_all_is_seen() {
    let link = |n: u32| format!(r#"<https://elsewhere.example/x?search=y&search_after=0%3D{n}&limit=1000>; rel="next""#);
    let mut requested = 0;
    let paths = walk(FOOD, &window(), |_| {
        requested += 1;
        page_of(if requested == 3 { 500 } else { 1_000 }, 2_500, Some(&link(requested)))
    });
    assert_eq!(paths.len(), 3);
    assert!(paths[1].starts_with("/food/enforcement.json?search=report_date:[20260101+TO+20260930]"));
    assert!(paths[1].ends_with("&search_after=0%3D1") && paths[2].ends_with("&search_after=0%3D2"));
    assert_eq!(walk(FOOD, &window(), |_| page_of(1_000, 1_000, Some(&link(1)))).len(), 1);
}

/// Proves that a 404 after a page that announced another one ends the window with a warning.
#[test]
fn a_promised_page_that_is_not_there_ends_the_window() {
    let link = r#"<https://api.fda.gov/x?search_after=a>; rel="next""#;
    let first = map_at(FOOD, &start(FOOD, &window()), &page_of(1_000, 1_001, Some(link))).unwrap();
    let page = map_at(FOOD, &first.next.unwrap(), &none()).unwrap();
    assert!(page.next.is_none() && page.observations.is_empty() && page.warnings.len() == 1);
}

/// Proves that paging uses offsets without a usable Link, and that a window beyond the server's limit is split in half.
#[test]
fn without_search_after_pages_are_skipped_or_windows_halved() {
    let paths = walk(FOOD, &window(), |path| page_of(if path.contains("skip=2000") { 7 } else { 1_000 }, 2_007, None));
    assert_eq!(paths.len(), 3);
    assert!(paths[1].ends_with("&limit=1000&skip=1000") && paths[2].ends_with("&skip=2000"));
    let to = date(2026, 3, 4);
    let paths = walk(FOOD, &Window { from: Some(date(2026, 3, 1)), to }, |path| {
        if path.contains("[20260301+TO+20260304]") { page_of(1_000, 39_588, None) } else { page_of(3, 3, None) }
    });
    let days: Vec<_> = paths.iter().map(|path| &path[path.find('[').unwrap()..=path.find(']').unwrap()]).collect();
    assert_eq!(days, ["[20260301+TO+20260304]", "[20260301+TO+20260302]", "[20260303+TO+20260304]"]);
}

/// Proves that a day with more records than can be paged through is read as far as possible, and that the run records what is missing.
#[test]
fn a_day_beyond_the_cap_is_recorded() {
    let day = date(2026, 3, 1);
    let (mut cursor, mut pages, mut incomplete) = (Some(start(FOOD, &Window { from: Some(day), to: day })), 0, Vec::new());
    while let Some(at) = cursor {
        let page = map_at(FOOD, &at, &page_of(1_000, 30_000, None)).unwrap();
        incomplete.extend(page.incomplete);
        (cursor, pages) = (page.next, pages + 1);
    }
    assert_eq!((pages, incomplete.len(), incomplete[0].from), (26, 1, Some(day)));
}

/// Proves that a number with a blank is a number, and that its printed form is an alias.
#[test]
fn a_number_may_have_a_blank() {
    let mut one = report(1);
    one["recall_number"] = json!("F-0001-2026 A");
    let page = map(FOOD, json!({"meta": {"results": {"total": 1}}, "results": [one]}).to_string()).unwrap();
    let (key, fact) = (page.observations[0].key.as_str(), recall(&page.observations[0]));
    assert_eq!((key, fact.number.as_str()), ("openfda.food/F-0001-2026-A", "F-0001-2026-A"));
    assert_eq!(fact.aliases, ["F-0001-2026 A"]);
}

/// Proves that only a 404 with the known body means no match.
#[test]
fn another_404_is_no_empty_window() {
    for case in ["food_wrong_path_404", "food_other_404", "food_lexical_error", "food_no_results", "food_truncated"] {
        assert!(matches!(fixture("openfda", case), Err(UpstreamError::Later { .. })), "{case}");
    }
    assert!(fixture("openfda", "food_none_404").unwrap().observations.is_empty());
}

/// Proves that a report that gets its number later replaces the provisional one, even if its spelling changed.
#[test]
fn a_number_replaces_the_name_before_it() {
    let before = fixture("openfda", "food_before_numbering").unwrap();
    let after = fixture("openfda", "food_after_numbering").unwrap();
    let key = &before.observations[0].key;
    assert!(key.starts_with("openfda.food/EVT-99068-") && key.len() == "openfda.food/EVT-99068-".len() + 8, "{key}");
    assert_eq!(after.observations[0].key, "openfda.food/H-0500-2026");
    assert_eq!(after.observations[0].replaces, std::slice::from_ref(key));
    assert!(before.observations[0].replaces.is_empty());
}

/// Proves that implausible dates are dropped and the record is preserved.
#[test]
fn mistyped_dates_are_dropped() {
    let page = fixture("openfda", "food_mistyped_dates").unwrap();
    let dates: Vec<_> = page.observations.iter().map(|one| (&*recall(one).date, &*recall(one).initiated)).collect();
    assert_eq!(dates, [("2013-04-03", ""), ("2013-11-13", ""), ("2026-04-04", ""), ("", ""), ("", "")]);
}

/// Proves that a field missing on most records stops the stream with an error that names it.
#[test]
fn drift_names_the_field() {
    let mut results: Vec<_> = (0..20).map(report).collect();
    for report in &mut results[..11] {
        report.as_object_mut().unwrap().remove("reason_for_recall");
    }
    let error = map(FOOD, serde_json::to_vec(&json!({"results": results})).unwrap()).unwrap_err();
    assert!(matches!(error, UpstreamError::Stop { field, .. } if field == "reason_for_recall"));
}

/// Proves that a run ends when the server ignores all parameters and always returns the same few records.
#[test]
fn a_run_against_a_constant_answer_ends() {
    assert_eq!(walk(FOOD, &Window { from: None, to: TODAY }, |_| page_of(3, 3, None)).len(), 23);
    assert_eq!(walk(FOOD, &Window { from: None, to: TODAY }, |_| page_of(3, 17_899, None)).len(), 23);
}
