//! The Consumer Product Safety Commission: requests, mapping, and the special cases of its service.

use jiff::civil::date;
use serde_json::{Value, json};
use upstreams::{UpstreamError, Window};

use crate::common::*;

const STREAM: &str = "cpsc";

fn records(count: u32, day: &str) -> Vec<Value> {
    let record = |id: u32| {
        json!({"RecallID": id, "RecallNumber": id.to_string(), "RecallDate": day, "LastPublishDate": day, "Title": "A Recalls B",
               "URL": "https://www.cpsc.gov/x", "Products": [{"Name": "B"}]})
    };
    (1..=count).map(record).collect()
}

fn stop_field(result: Result<upstreams::Page, UpstreamError>) -> String {
    match result {
        Err(UpstreamError::Stop { field, .. }) => field,
        other => panic!("{other:?}"),
    }
}

/// Proves that every fixture is mapped to its expected result.
#[test]
fn fixtures_give_what_is_expected() {
    check_all(STREAM);
}

/// Proves that a damaged answer never makes the mapping panic or return records without identity.
#[test]
fn damage_gives_pages_or_errors() {
    mutate_all(STREAM);
}

/// Proves that a full run covers 1973 to today in windows without gaps, requests JSON each time, and requests nothing twice.
#[test]
fn a_full_run_reads_five_years_at_a_time() {
    let paths = walk(STREAM, &Window { from: None, to: date(2026, 9, 30) }, |_| ok("[]"));
    assert_eq!(paths.len(), 11);
    assert_eq!(paths[0], "/RestWebServices/Recall?format=json&RecallDateStart=1973-01-01&RecallDateEnd=1977-12-31");
    assert_eq!(paths[1], "/RestWebServices/Recall?format=json&RecallDateStart=1978-01-01&RecallDateEnd=1982-12-31");
    assert_eq!(paths[10], "/RestWebServices/Recall?format=json&RecallDateStart=2023-01-01&RecallDateEnd=2026-09-30");
}

/// Proves that an incremental run also requests old recalls that were published again.
#[test]
fn an_incremental_run_queries_both_dates() {
    let paths = walk(STREAM, &Window { from: Some(date(2026, 9, 1)), to: date(2026, 9, 30) }, |_| ok("[]"));
    assert_eq!(
        paths,
        [
            "/RestWebServices/Recall?format=json&RecallDateStart=2026-09-01&RecallDateEnd=2026-09-30",
            "/RestWebServices/Recall?format=json&LastPublishDateStart=2026-09-01&LastPublishDateEnd=2026-09-30",
        ]
    );
}

/// Proves that a recall published again after 25 years retains its own date and is inside the window of its publication.
#[test]
fn a_republished_recall_keeps_its_date() {
    let by_recall_date = start(STREAM, &window());
    let body = || std::fs::read(folder(STREAM).join("republished_after_25_years.json")).unwrap();
    let page = map_at(STREAM, &by_recall_date, &ok(body())).unwrap();
    assert_eq!(page.warnings.len(), 1, "outside the window by recall date");
    let page = map_at(STREAM, &page.next.unwrap(), &ok(body())).unwrap();
    assert!(page.warnings.is_empty() && page.next.is_none(), "{page:?}");
    assert_eq!(with_key(&page, "cpsc/1200").date, "2001-02-14");
    assert_eq!((&*with_key(&page, "cpsc/1200").number, &*with_key(&page, "cpsc/1200").aliases), ("01077", &["1200".to_owned()][..]));
}

/// Proves that an ignored filter, which returns all recalls, stops the stream with an error that names the parameter.
#[test]
fn an_ignored_filter_stops() {
    let body = |count| serde_json::to_vec(&records(count, "1999-01-01T00:00:00")).unwrap();
    assert_eq!(stop_field(map(STREAM, body(501))), "RecallDateStart");
    let page = map(STREAM, body(500)).unwrap();
    assert_eq!((page.observations.len(), page.warnings.len()), (500, 1));
}

/// Proves that an error record is never a recall, whatever records are next to it.
#[test]
fn an_error_record_is_never_a_recall() {
    for case in ["fault_record", "fault_title_with_an_id", "fault_object"] {
        assert!(matches!(fixture(STREAM, case), Err(UpstreamError::Later { .. })), "{case}");
    }
}

/// Proves that a field missing or of another type on most records stops the stream with an error that names it; on few records it does not.
#[test]
fn drift_names_the_field() {
    let change = |from: usize, field: &str, value: Value| {
        let mut all = records(20, "2026-03-05");
        for record in &mut all[from..] {
            record[field] = value.clone();
        }
        map(STREAM, serde_json::to_vec(&all).unwrap())
    };
    assert_eq!(stop_field(change(9, "RecallDate", json!(20260305))), "RecallDate");
    assert_eq!(stop_field(change(9, "RecallID", json!("x"))), "RecallID");
    assert_eq!(stop_field(change(9, "Products", json!("B"))), "Products");
    assert_eq!(change(10, "RecallID", json!("x")).unwrap().rejects.len(), 10);
}

/// Proves the mapping of remedies: distinct options in order, or the first remedy text if there are no options.
#[test]
fn remedies_are_distinct_options_or_prose() {
    let page = fixture(STREAM, "remedy_options").unwrap();
    let remedies: Vec<_> = page.observations.iter().map(|observation| &*recall(observation).remedy).collect();
    let prose = "Consumers should stop using the lamps and ask for a refund.";
    assert_eq!(remedies, ["Refund/Replace", prose, prose, "Repair", ""]);
}

/// Proves that a run ends when the server ignores all parameters and always returns the same few records, with right values.
#[test]
fn a_run_against_a_constant_answer_ends() {
    let body = std::fs::read(folder(STREAM).join("ordinary.json")).unwrap();
    assert_eq!(walk(STREAM, &Window { from: None, to: TODAY }, |_| ok(body.clone())).len(), 11);
    let page = fixture(STREAM, "ordinary").unwrap();
    assert_eq!(with_key(&page, "cpsc/11001").brand, "Tidewater® Lamps");
    assert_eq!(with_key(&page, "cpsc/11002").brand, "QUAYO");
    assert_eq!(with_key(&page, "cpsc/11002").hazard, "Fall Hazard; Sold on a Web Site by QUAYO");
    assert_eq!(with_key(&page, "cpsc/11003").brand, "Skyline Toys LLC");
}
