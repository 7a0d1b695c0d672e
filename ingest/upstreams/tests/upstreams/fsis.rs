//! The Food Safety and Inspection Service: request, mapping, and the special cases of its service.

use serde_json::{Value, json};
use upstreams::{UpstreamError, Window};

use crate::common::*;

const STREAM: &str = "fsis";

fixture_tests!(STREAM);

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

/// A notice with some members.
fn notice(members: &Value) -> Value {
    let mut notice = json!({"field_recall_number": "001-2026", "field_title": "Pier Meats Recalls Ham", "field_recall_date": "2026-01-01",
        "field_recall_type": "Closed Recall", "field_recall_reason": ["Misbranding"], "langcode": "English"});
    notice.as_object_mut().unwrap().extend(members.as_object().unwrap().clone());
    notice
}

/// Proves that a number that is printed with a blank is a number, apart from the one without the word behind the blank, and that records of
/// other numbers have the keys that they had.
#[test]
fn a_number_may_have_a_blank() {
    let numbers = ["027-2016", "027-2016 EXP", "110-2015 expansion", " 021-2020 ", "007-2020-EXP", "PHA-08082026-01"];
    let notices: Vec<Value> = numbers.iter().map(|number| notice(&json!({"field_recall_number": number}))).collect();
    let page = map(STREAM, serde_json::to_vec(&notices).unwrap()).unwrap();
    assert_eq!(page.rejects, []);
    let keys: Vec<&str> = page.observations.iter().map(|observation| observation.key.as_str()).collect();
    let expected = ["027-2016", "027-2016-EXP", "110-2015-expansion", "021-2020", "007-2020-EXP", "PHA-08082026-01"];
    assert_eq!(keys, expected.map(|number| format!("fsis/{number}/en")));
    let recalls: Vec<_> = page.observations.iter().map(recall).collect();
    assert_eq!((recalls[1].number.as_str(), recalls[1].aliases.as_slice()), ("027-2016-EXP", &["027-2016 EXP".to_owned()][..]));
    assert!(recalls[3].aliases.is_empty() && recalls[4].aliases.is_empty());
}

/// Proves that a Spanish notice without an establishment has the brand that its title names, and that an alert has none in any language.
#[test]
fn a_spanish_title_names_the_brand() {
    for (title, brand) in [
        ("Harbour Ravioli retira productos de pollo", "Harbour Ravioli"),
        ("Pier Meats, LLC Retira Productos de Carne de Res", "Pier Meats, LLC"),
        ("Pier Meats Recalls Ham", "Pier Meats"),
        ("FSIS Issues Public Health Alert for Ham", ""),
        ("El FSIS emite una alerta: la empresa retira jamón", ""),
    ] {
        let notices = [notice(&json!({"field_title": title, "langcode": "Spanish"}))];
        let page = map(STREAM, serde_json::to_vec(&notices).unwrap()).unwrap();
        assert_eq!(recall(&page.observations[0]).brand, brand, "{title}");
    }
}

/// Proves that the order of reasons and states is not content, and that a record that was stored in the document's order counts as unchanged.
#[test]
fn order_is_no_content() {
    let fact_of = |reasons: [&str; 2], states: [&str; 2]| {
        let notices = [notice(&json!({"field_recall_reason": reasons, "field_states": states}))];
        map(STREAM, serde_json::to_vec(&notices).unwrap()).unwrap().observations.remove(0)
    };
    let (one, other) = (fact_of(["Salmonella", "Listeria"], ["Ohio", "Iowa"]), fact_of(["Listeria", "Salmonella"], ["Iowa", "Ohio"]));
    assert_eq!(one.data, other.data);
    assert_eq!((recall(&one).hazard.as_str(), recall(&one).distribution.as_str()), ("Listeria; Salmonella", "Iowa, Ohio"));
    let Some(schemas::facts::FactData::Recall(former)) = one.former else { panic!("no former record") };
    assert_eq!((former.hazard.as_str(), former.distribution.as_str()), ("Salmonella; Listeria", "Ohio, Iowa"));
    assert_eq!(other.former, None);
}
