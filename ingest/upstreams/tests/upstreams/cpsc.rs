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

fixture_tests!(STREAM);

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

/// Proves that an answer that is nothing but an error record is refused.
#[test]
fn an_error_record_is_never_a_recall() {
    for case in ["fault_record", "fault_object"] {
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

/// Proves that an error record, with the id 0 or with the title of a fault, is rejected among good records, and that the others are taken.
#[test]
fn a_fault_among_recalls_is_rejected() {
    for (field, value) in [("RecallID", json!(0)), ("Title", json!("Error retrieving Recalls: time-out"))] {
        let mut all = records(30, "2026-03-05");
        all[7][field] = value;
        let page = map(STREAM, serde_json::to_vec(&all).unwrap()).unwrap();
        assert_eq!((page.observations.len(), page.rejects.len()), (29, 1), "{field}");
        assert!(page.rejects[0].reason.contains("an error record"), "{}", page.rejects[0].reason);
        let alone = map(STREAM, serde_json::to_vec(&all[7..8]).unwrap());
        assert!(matches!(alone, Err(UpstreamError::Later { .. })), "{field}");
    }
}

/// Proves that the order of options, products, hazards and shops is not content, and that a record that was stored in the service's order
/// counts as unchanged.
#[test]
fn order_is_no_content() {
    let lists = ["Products", "Hazards", "Retailers", "RemedyOptions"];
    let mut one = records(1, "2026-03-05").remove(0);
    one["Products"] =
        json!([{"Name": "Lamps", "Type": "Lighting", "NumberOfUnits": "About 20"}, {"Name": "Beds", "NumberOfUnits": "About 10"}]);
    one["Hazards"] = json!([{"Name": "It may burn."}, {"Name": "Fall"}]);
    one["Retailers"] = json!([{"Name": "Walmart"}, {"Name": "Amazon"}]);
    one["RemedyOptions"] = json!([{"Option": "Repair"}, {"Option": "Refund"}]);
    let mut other = one.clone();
    lists.iter().for_each(|list| other[*list].as_array_mut().unwrap().reverse());
    let observed = |record: &Value| map(STREAM, serde_json::to_vec(&[record]).unwrap()).unwrap().observations.remove(0);
    let (one, other) = (observed(&one), observed(&other));
    assert_eq!(one.data, other.data);
    let fact = recall(&one);
    assert_eq!(
        (fact.remedy.as_str(), fact.products.as_str(), fact.hazard.as_str()),
        ("Refund/Repair", "Beds; Lamps", "Fall; It may burn.")
    );
    let Some(schemas::facts::FactData::Recall(former)) = one.former else { panic!("no former record") };
    assert_eq!(
        (former.remedy.as_str(), former.products.as_str(), former.hazard.as_str()),
        ("Repair/Refund", "Lamps; Beds", "It may burn. Fall")
    );
    assert_ne!(one.data, observed(&records(1, "2026-03-05")[0]).data);
}

/// Proves that a list of another type of which nothing can be read rejects the record, and that an absent list does not.
#[test]
fn a_list_that_cannot_be_read_rejects_the_record() {
    for list in ["Products", "Hazards", "RemedyOptions", "Importers"] {
        let mut all = records(3, "2026-03-05");
        all[0][list] = json!(7);
        all[1].as_object_mut().unwrap().remove(list);
        let page = map(STREAM, serde_json::to_vec(&all).unwrap()).unwrap();
        assert_eq!((page.observations.len(), page.rejects.len()), (2, 1), "{list}");
        assert_eq!(page.rejects[0].reason, format!("{list} is not a list"));
    }
}
