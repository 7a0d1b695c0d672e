//! The Food Safety and Inspection Service: request, mapping, and the special cases of its service.

use serde_json::{Value, json};
use upstreams::{UpstreamError, Window};

use crate::common::*;

const STREAM: &str = "fsis";

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

/// Proves that a run is one request without parameters, because filters are silently ignored.
#[test]
fn a_run_is_one_request() {
    for from in [None, window().from] {
        assert_eq!(walk(STREAM, &Window { from, to: TODAY }, |_| ok("[]")), ["/fsis/api/recall/v/1"]);
    }
}

/// Proves that a block page or any answer other than records means "try later", never "no recalls".
#[test]
fn no_records_means_later() {
    for case in ["bot_wall", "json_but_no_array", "fault_object", "truncated"] {
        assert!(matches!(fixture(STREAM, case), Err(UpstreamError::Later { .. })), "{case}");
    }
}

/// Proves that the change of June 2026 from texts to lists, titles as lists, a single object, and changes of white space do not change a
/// record.
#[test]
fn form_changes_change_no_record() {
    let after = fixture(STREAM, "after_june_2026_lists").unwrap().observations;
    for case in ["before_june_2026_texts", "title_as_list", "single_object", "whitespace_edit"] {
        assert_eq!(fixture(STREAM, case).unwrap().observations, after, "{case}");
    }
}

/// Proves that both languages are separate records, and that allergens and pathogens named only in an English summary are hazards.
#[test]
fn languages_and_hazards() {
    let page = fixture(STREAM, "ordinary").unwrap();
    assert_eq!(with_key(&page, "fsis/018-2026/en").hazard, "Misbranding; Unreported Allergens; milk; soy");
    assert_eq!(with_key(&page, "fsis/018-2026/es").hazard, "Misbranding; Unreported Allergens");
    // Food is not a hazard unless something is undeclared.
    assert_eq!(with_key(&page, "fsis/017-2026/en").hazard, "Product Contamination; Listeria; E. coli");
    assert_eq!(with_key(&page, "fsis/017-2026/en").brand, "Pier Meats LLC");
    assert_eq!(with_key(&page, "fsis/018-2026/en").brand, "Harbour Ravioli Corporation");
}

/// Proves that an alert is marked as one, and that its title gives no brand.
#[test]
fn an_alert_is_no_recall() {
    let page = fixture(STREAM, "health_alert").unwrap();
    let alert = with_key(&page, "fsis/PHA-08082026-01/en");
    assert!(alert.alert && alert.brand.is_empty());
    assert_eq!(alert.url, "https://www.fsis.usda.gov/recalls");
}

/// Proves that of two records with the same number the later one is used, in either order.
#[test]
fn a_number_twice_gives_the_later_record() {
    let page = fixture(STREAM, "number_twice").unwrap();
    assert_eq!((page.observations.len(), page.warnings.len()), (2, 2));
    assert_eq!(with_key(&page, "fsis/016-2026/en").status, "Closed Recall");
    let mut records: Vec<Value> = serde_json::from_slice(&std::fs::read(folder(STREAM).join("number_twice.json")).unwrap()).unwrap();
    records.reverse();
    let reversed = map(STREAM, serde_json::to_vec(&records).unwrap()).unwrap();
    assert_eq!(with_key(&reversed, "fsis/016-2026/en"), with_key(&page, "fsis/016-2026/en"));
}

/// Proves that a field missing, or neither text nor list, on most records stops the stream with an error that names it.
#[test]
fn drift_names_the_field() {
    let record = |n: usize| {
        json!({"field_recall_number": format!("{n:03}-2026"), "field_title": "A Recalls B", "field_recall_date": "2026-01-01",
               "field_recall_type": "Closed Recall", "field_recall_reason": if n < 11 { json!({"value": "x"}) } else { json!([]) },
               "langcode": "English"})
    };
    let error = map(STREAM, serde_json::to_vec(&(0..20).map(record).collect::<Vec<_>>()).unwrap()).unwrap_err();
    assert!(matches!(error, UpstreamError::Stop { field, .. } if field == "field_recall_reason"));
}
