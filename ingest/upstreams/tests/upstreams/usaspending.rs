//! USAspending: requests, paging with complete counts, mapping, and the special cases of its service.

use std::collections::BTreeMap;

use jiff::civil::{Date, date};
use schemas::facts::FactData;
use schemas::facts::awards::AwardFact;
use schemas::position::UpstreamCursor;
use serde_json::{Value, json};
use upstreams::{Answer, Page, Request, Settings, UpstreamError, Window};

use crate::common::*;

const TRANSACTIONS: &str = "usaspending.transactions";
const AWARDS: &str = "usaspending.awards";
const DETAILS: &str = "usaspending.details";
const SEARCH: &str = "/api/v2/search/spending_by_transaction/";
const COUNT: &str = "/api/v2/search/spending_by_transaction_count/";

/// Returns the record with a key.
pub(crate) fn award_of<'a>(page: &'a Page, key: &str) -> &'a AwardFact {
    let observation = page.observations.iter().find(|observation| observation.key == key);
    match observation.map(|observation| &observation.data) {
        Some(FactData::Award(fact)) => fact,
        other => panic!("{key}: {other:?} in {page:?}"),
    }
}

fn request(name: &str, cursor: &UpstreamCursor) -> (Request, Value) {
    let (upstream, stream) = stream(name);
    let request = upstream.request(stream, cursor, &Settings::default()).unwrap();
    let body = request.body.as_deref().map(|body| serde_json::from_str(body).unwrap()).unwrap_or_default();
    (request, body)
}

/// The result of running a stream: its requests as path and body, and the keys of all records.
#[derive(Default)]
struct Walked {
    requested: Vec<(String, Value)>,
    keys: BTreeMap<String, usize>,
    warnings: Vec<String>,
    incomplete: Vec<upstreams::Incomplete>,
}

/// Runs a stream over a window, from the first page to the last.
fn run(name: &str, window: &Window, mut answer: impl FnMut(&str, &Value) -> Answer) -> Result<Walked, UpstreamError> {
    let (mut cursor, mut walked) = (Some(start(name, window)), Walked::default());
    while let Some(at) = cursor {
        let (requested, body) = request(name, &at);
        let page = map_at(name, &at, &answer(&requested.path, &body))?;
        walked.requested.push((requested.path, body));
        assert!(walked.requested.len() < 6_000, "{name} does not end");
        for observation in page.observations {
            *walked.keys.entry(observation.key).or_default() += 1;
        }
        walked.warnings.extend(page.warnings);
        walked.incomplete.extend(page.incomplete);
        cursor = page.next;
    }
    Ok(walked)
}

fn json_answer(body: &Value) -> Answer {
    ok(serde_json::to_vec(body).unwrap())
}

fn rows(rows: &[Value], page: u64, has_next: bool) -> Answer {
    let page = json!({"page": page, "hasNext": has_next, "last_record_unique_id": 77, "last_record_sort_value": "1790000000000"});
    json_answer(&json!({"results": rows, "page_metadata": page}))
}

fn counts(contracts: usize, idvs: usize) -> Answer {
    json_answer(&json!({"results": {"contracts": contracts, "idvs": idvs}}))
}

fn action(piid: &str, modification: &str) -> Value {
    json!({"generated_internal_id": format!("CONT_AWD_{piid}_7530_-NONE-_-NONE-"), "Award ID": piid, "Mod": modification,
           "Action Date": "2026-09-28", "Transaction Amount": 1, "Recipient Name": "A", "Awarding Agency": "B", "naics_code": "541330"})
}

fn award(piid: &str) -> Value {
    json!({"generated_internal_id": format!("CONT_AWD_{piid}_7530_-NONE-_-NONE-"), "Award ID": piid, "Award Amount": 1, "Recipient Name": "A", "Awarding Agency": "B", "NAICS": {"code": "541330"}})
}

fn days(from: Date, to: Date) -> Window {
    Window { from: Some(from), to }
}

/// Returns the days that a search selects, first and last, and the kind of date.
fn period(body: &Value) -> (&str, &str, &str) {
    let period = &body["filters"]["time_period"][0];
    let text = |name: &str| period[name].as_str().unwrap();
    (text("start_date"), text("end_date"), text("date_type"))
}

fixture_tests!("usaspending");

/// Proves that transactions are counted, then read by award number, separately for each group, and again for the days of 90 days ago.
#[test]
fn transactions_are_requested_by_group_and_for_late_days() {
    let walked =
        run(
            TRANSACTIONS,
            &days(date(2026, 9, 25), TODAY),
            |path, _| {
                if path == COUNT { counts(1, 1) } else { rows(&[action("A1", "0")], 1, false) }
            },
        )
        .unwrap();
    let requested: Vec<_> = walked
        .requested
        .iter()
        .map(|(path, body)| (path.as_str(), period(body), body["filters"]["award_type_codes"][0].as_str().unwrap()))
        .collect();
    let (now, late) = (("2026-09-25", "2026-09-30", "last_modified_date"), ("2026-06-27", "2026-07-02", "last_modified_date"));
    assert_eq!(
        requested,
        [
            (COUNT, now, "A"),
            (SEARCH, now, "A"),
            (COUNT, now, "IDV_A"),
            (SEARCH, now, "IDV_A"),
            (COUNT, late, "A"),
            (SEARCH, late, "A"),
            (COUNT, late, "IDV_A"),
            (SEARCH, late, "IDV_A"),
        ]
    );
    let body = &walked.requested[1].1;
    assert_eq!((&body["sort"], &body["order"], &body["limit"], &body["page"]), (&json!("Award ID"), &json!("asc"), &json!(100), &json!(1)));
    assert_eq!(body["filters"]["award_type_codes"], json!(["A", "B", "C", "D"]), "one group a request");
    assert!(body["fields"].as_array().unwrap().contains(&body["sort"]), "the sort key must be among the fields");
    assert!(walked.requested[0].1.get("fields").is_none());
}

/// Proves that a full run reads thirty days by modification date and, in the stream of awards, all new awards of 120 days.
#[test]
fn a_full_run_has_a_net() {
    let full = Window { from: None, to: TODAY };
    let spans = |stream: &str| {
        let walked = run(stream, &full, |path, _| if path == COUNT { counts(0, 0) } else { rows(&[], 1, false) }).unwrap();
        let mut spans: Vec<_> = walked.requested.iter().map(|(_, body)| period(body)).map(|(a, b, c)| format!("{a} {b} {c}")).collect();
        spans.dedup();
        spans
    };
    let modified = ["2026-08-31 2026-09-30 last_modified_date", "2026-06-02 2026-07-02 last_modified_date"];
    assert_eq!(spans(TRANSACTIONS), modified);
    assert_eq!(spans(AWARDS), [&modified[..], &["2026-06-02 2026-09-30 new_awards_only"]].concat());
    assert_eq!(spans(DETAILS), ["2026-09-18 2026-09-25 last_modified_date", "2026-06-20 2026-06-27 last_modified_date"]);
}

/// Proves that no date before the first searchable day is requested, whatever the window.
#[test]
fn nothing_is_requested_before_2007() {
    for window in [days(date(1990, 1, 1), date(2007, 12, 1)), days(date(1990, 1, 1), date(1991, 1, 1)), days(date(2027, 1, 1), TODAY)] {
        for stream in [TRANSACTIONS, AWARDS, DETAILS] {
            let walked = run(stream, &window, |_, body| {
                assert!(body.is_null() || period(body).0 >= "2007-10-01");
                rows(&[], 1, false)
            });
            assert!(!walked.unwrap().requested.is_empty());
        }
    }
}

/// Proves that fields which have made the server fail are never requested, and that vehicles are requested with their last order date.
#[test]
fn risky_fields_are_not_requested() {
    for stream in [TRANSACTIONS, AWARDS, DETAILS] {
        run(stream, &days(date(2026, 9, 29), TODAY), |path, body| {
            if path == COUNT {
                return counts(1, 1);
            }
            let fields: Vec<_> = body["fields"].as_array().unwrap().iter().map(|field| field.as_str().unwrap()).collect();
            for risky in ["Awarding Agency Code", "recipient_id", "Contract Award Type", "Total Outlays"] {
                assert!(!fields.contains(&risky), "{risky}");
            }
            if stream == AWARDS {
                let is_vehicles = body["filters"]["award_type_codes"][0] == "IDV_A";
                assert_eq!((fields.contains(&"End Date"), fields.contains(&"Last Date to Order")), (!is_vehicles, is_vehicles));
            }
            assert!(fields.contains(&body["sort"].as_str().unwrap()));
            let found = (stream == TRANSACTIONS).then(|| action("A1", "0"));
            rows(found.as_slice(), 1, false)
        })
        .unwrap();
    }
}

/// A server whose pages of transactions come from a list, with an order that changes within one award number between requests.
fn unstable(all: &[(&'static str, &'static str)], requested: usize, body: &Value) -> Answer {
    const LIMIT: usize = 100;
    let mut sorted = all.to_vec();
    sorted.sort_by(|a, b| a.0.cmp(b.0).then_with(|| if requested.is_multiple_of(2) { a.1.cmp(b.1) } else { b.1.cmp(a.1) }));
    if body["order"] == "desc" {
        // Backwards the order is stable.
        sorted.sort_by(|a, b| b.cmp(a));
    }
    let page = usize::try_from(body["page"].as_u64().unwrap()).unwrap();
    let found: Vec<_> = sorted.iter().skip((page - 1) * LIMIT).take(LIMIT).map(|(piid, modification)| action(piid, modification)).collect();
    rows(&found, page as u64, sorted.len() > page * LIMIT)
}

fn many(count: usize) -> Vec<(&'static str, &'static str)> {
    // Award numbers with one to three actions, so that the hundredth row has a neighbour with the same number.
    let leak = |text: String| -> &'static str { Box::leak(text.into_boxed_str()) };
    (0..count).map(|at| (leak(format!("N{:04}", (at + 1) / 3)), leak(format!("P{:05}", at % 3)))).collect()
}

/// Proves that a row hidden by unstable paging is found by reading backwards, without a warning, and that every row is received.
#[test]
fn unstable_paging_is_read_backwards() {
    let all = many(450);
    let mut requested = 0;
    let walked = run(TRANSACTIONS, &days(date(2026, 9, 30), TODAY), |path, body| {
        let is_first = period(body).0 == "2026-09-30" && body["filters"]["award_type_codes"][0] == "A";
        match (path, is_first) {
            (_, false) => counts(0, 0),
            (COUNT, true) => counts(all.len(), 0),
            _ => {
                requested += 1;
                unstable(&all, requested, body)
            }
        }
    })
    .unwrap();
    assert_eq!(walked.keys.len(), all.len());
    let orders: Vec<_> =
        walked.requested.iter().filter(|(path, _)| path == SEARCH).map(|(_, body)| body["order"].as_str().unwrap()).collect();
    assert_eq!(orders, [&["asc"; 5][..], &["desc"; 5]].concat(), "the reading forwards has missed a row");
    let is_known = |warning: &String| warning.contains("fewer rows");
    assert!(!walked.warnings.iter().any(is_known), "what the reader finds by itself is no warning: {:?}", walked.warnings);
}

/// Whether a request is for contracts of type A of the first sector on a day.
fn is_slice(body: &Value, day: &str) -> bool {
    let (filters, (from, to, _)) = (&body["filters"], period(body));
    let of_type = filters["award_type_codes"].as_array().unwrap().contains(&json!("A"));
    of_type && from <= day && to >= day && (filters["naics_codes"].is_null() || filters["naics_codes"] == json!({"require": ["11"]}))
}

/// Proves that a count that stays one too high holds up nothing: the slice is read backwards, then in parts; its rows are taken; the other
/// slices, groups and late days are read; the finest slice is read again at the end, and what is missing then is recorded with the run.
#[test]
fn a_slice_that_does_not_add_up_is_recorded() {
    let day = "2026-09-29";
    let walked = run(TRANSACTIONS, &days(date(2026, 9, 28), TODAY), |path, body| match (path == COUNT, is_slice(body, day)) {
        (true, true) => counts(2, 0),
        (true, false) => counts(1, 1),
        (false, true) => rows(&[action("A1", "0")], 1, false),
        (false, false) => rows(&[action(&format!("B{}{}", period(body).0, body["filters"]["award_type_codes"][0]), "0")], 1, false),
    })
    .unwrap();
    assert!(walked.keys.contains_key("usaspending.transactions/CONT_AWD_A1_7530_-NONE-_-NONE-/0"), "the rows that came are taken");
    let requests: Vec<_> =
        walked.requested.iter().map(|(path, body)| (path == COUNT, period(body).0.to_owned(), body["filters"].clone())).collect();
    assert!(requests.iter().any(|(_, from, _)| from.as_str() == "2026-09-30"), "later days are read");
    assert!(
        requests.iter().any(|(_, from, filters)| from.as_str() < "2026-07-15" && filters["award_type_codes"][0] == "IDV_A"),
        "so are late ones"
    );
    let (_, from, filters) = requests.last().unwrap();
    let finest = (&filters["award_type_codes"], &filters["naics_codes"]);
    assert_eq!((from.as_str(), finest), (day, (&json!(["A"]), &json!({"require": ["11"]}))), "the slice is read again at the end");
    assert_eq!(walked.incomplete.len(), 1);
    assert_eq!(walked.incomplete[0].what, "the upstream counts 2 rows of 2026-09-29 to 2026-09-29 but sent 1, in both orders");
    assert_eq!(walked.incomplete[0].from, Some(date(2026, 9, 29)));
}

/// Proves that a slice whose rows come when it is read again at the end of the run is complete.
#[test]
fn a_slice_is_complete_once_its_rows_come() {
    let mut is_over = false;
    let walked = run(TRANSACTIONS, &days(date(2026, 9, 30), TODAY), |path, body| {
        is_over |= period(body).0 < "2026-09-01";
        match (path == COUNT, is_slice(body, "2026-09-30")) {
            (true, true) => counts(2, 0),
            (true, false) => counts(0, 0),
            (false, _) if is_over => rows(&[action("A2", "0"), action("A1", "0")], 1, false),
            (false, _) => rows(&[action("A1", "0")], 1, false),
        }
    })
    .unwrap();
    assert_eq!((walked.keys.len(), walked.incomplete.len()), (2, 0), "{:?}", walked.warnings);
}

/// Proves that a slice with too many rows is split by days, a day by types, and a type by sectors, without gap or overlap.
#[test]
fn too_many_rows_are_read_in_parts() {
    let mut read: Vec<(String, Value, Value)> = Vec::new();
    run(TRANSACTIONS, &days(date(2026, 9, 27), TODAY), |path, body| {
        let (from, to, _) = period(body);
        let filters = &body["filters"];
        if from < "2026-09-01" || filters["award_type_codes"][0] == "IDV_A" {
            return counts(0, 0);
        }
        if path == COUNT {
            let is_large = from <= "2026-09-28" && to >= "2026-09-28";
            let is_whole_type = filters["naics_codes"].is_null() && filters["award_type_codes"] == json!(["C"]);
            let is_whole_day = filters["award_type_codes"].as_array().unwrap().len() > 1;
            return counts(if is_large && (from < to || is_whole_day || is_whole_type) { 70_000 } else { 1 }, 0);
        }
        read.push((format!("{from} {to}"), filters["award_type_codes"].clone(), filters["naics_codes"].clone()));
        rows(&[action("A1", "0")], 1, false)
    })
    .unwrap();
    let whole = json!(["A", "B", "C", "D"]);
    assert_eq!(read[0], ("2026-09-27 2026-09-27".to_owned(), whole.clone(), Value::Null));
    assert_eq!(read[1], ("2026-09-28 2026-09-28".to_owned(), json!(["A"]), Value::Null));
    assert_eq!(read[2].1, json!(["B"]));
    let sectors: Vec<_> = read[3..28].iter().map(|(_, codes, sectors)| (codes, sectors)).collect();
    assert!(sectors.iter().all(|(codes, _)| **codes == json!(["C"])));
    assert_eq!((sectors[0].1, sectors[23].1), (&json!({"require": ["11"]}), &json!({"require": ["92"]})));
    assert_eq!(sectors[24].1["exclude"].as_array().unwrap().len(), 24, "the last part is all that has none of the sectors");
    assert_eq!((&read[28].1, &read[28].2), (&json!(["D"]), &Value::Null));
    assert_eq!(read[29], ("2026-09-29 2026-09-30".to_owned(), whole, Value::Null), "behind the large day days are read together again");
    assert_eq!(read.len(), 30);
}

/// Proves that a slice that cannot be paged through even when split completely is read as far as it can be, and recorded.
#[test]
fn a_slice_beyond_all_pages_is_recorded() {
    let walked = run(TRANSACTIONS, &days(date(2026, 9, 30), TODAY), |path, body| {
        let page = body["page"].as_u64().unwrap_or_default();
        match (path == COUNT, is_slice(body, "2026-09-30")) {
            (true, true) => counts(60_000, 0),
            (true, false) => counts(0, 0),
            _ => rows(&[action(&format!("A{page:04}"), "0")], page, page < 600),
        }
    })
    .unwrap();
    assert_eq!(walked.keys.len(), 500);
    assert_eq!(walked.incomplete.iter().map(|one| one.from).collect::<Vec<_>>(), [Some(date(2026, 9, 30))]);
}

/// Proves that awards beyond the last numbered page are requested by id and sort value, both, and that a missing value stops the stream.
#[test]
fn awards_go_on_beyond_the_window_of_pages() {
    let window = days(date(2026, 9, 30), TODAY);
    let answer = |body: &Value, pages: u64| {
        let page = body["page"].as_u64().unwrap();
        rows(&[award(&format!("A{page}"))], page, page < pages)
    };
    let walked = run(AWARDS, &window, |_, body| answer(body, if period(body).0 == "2026-09-30" { 502 } else { 1 })).unwrap();
    let body = |at: usize| &walked.requested[at].1;
    assert_eq!((&body(499)["page"], body(499).get("last_record_unique_id")), (&json!(500), None));
    assert_eq!((&body(500)["last_record_unique_id"], &body(500)["last_record_sort_value"]), (&json!(77), &json!("1790000000000")));
    assert_eq!(body(501)["page"], json!(502));
    let result = run(AWARDS, &window, |_, body| {
        let page = body["page"].as_u64().unwrap();
        json_answer(&json!({"results": [award(&format!("A{page}"))], "page_metadata": {"page": page, "hasNext": true}}))
    });
    assert!(matches!(result, Err(UpstreamError::Stop { field, .. }) if field == "page_metadata.last_record_unique_id"));
}

/// Proves that the details of large awards are requested one by one, with an encoded id, and the actions of those that end soon.
#[test]
fn details_are_requested_one_by_one() {
    let window = days(date(2026, 9, 25), TODAY);
    let detail = |end: &str| {
        json_answer(&json!({"generated_unique_award_id": "CONT_AWD_A1_7530_-NONE-_-NONE-", "period_of_performance": {"end_date": end}}))
    };
    let walked = run(DETAILS, &window, |path, body| match path {
        "/api/v2/search/spending_by_award/" if period(body).0 == "2026-09-24" && body["filters"]["award_type_codes"][0] == "A" => {
            rows(&[award("A1"), award("A/2"), award("A3")], 1, false)
        }
        "/api/v2/search/spending_by_award/" => rows(&[], 1, false),
        "/api/v2/awards/CONT_AWD_A1_7530_-NONE-_-NONE-/" => detail("2027-01-01"),
        "/api/v2/awards/CONT_AWD_A%2F2_7530_-NONE-_-NONE-/" => Answer { status: 404, ..ok("<html>no</html>") },
        "/api/v2/awards/CONT_AWD_A3_7530_-NONE-_-NONE-/" => detail("2032-01-01"),
        "/api/v2/transactions/" => rows(&[], 1, false),
        other => panic!("{other}"),
    })
    .unwrap();
    let paths: Vec<_> = walked.requested.iter().map(|(path, _)| path.rsplit("v2/").next().unwrap()).collect();
    assert_eq!(paths[0], "search/spending_by_award/");
    assert_eq!(paths[1], "awards/CONT_AWD_A1_7530_-NONE-_-NONE-/");
    assert_eq!(paths[2], "transactions/");
    assert_eq!(walked.requested[2].1["award_id"], "CONT_AWD_A1_7530_-NONE-_-NONE-");
    assert_eq!(
        paths[3..6],
        ["awards/CONT_AWD_A%2F2_7530_-NONE-_-NONE-/", "awards/CONT_AWD_A3_7530_-NONE-_-NONE-/", "search/spending_by_award/"]
    );
    assert_eq!(walked.requested[0].1["filters"]["award_amounts"], json!([{"lower_bound": 5_000_000}]));
    assert_eq!(period(&walked.requested[0].1), ("2026-09-24", "2026-09-25", "last_modified_date"));
    assert!(walked.warnings.contains(&"CONT_AWD_A/2_7530_-NONE-_-NONE- does not exist (404)".to_owned()));
}

/// Proves that a filter which the server has not used stops the stream, because it widens the result, and that a refusal gives the reason.
#[test]
fn an_unused_filter_and_a_refusal_stop() {
    let stop = |result| match result {
        Err(UpstreamError::Stop { field, reason, .. }) => (field, reason),
        other => panic!("{other:?}"),
    };
    let (field, reason) = stop(fixture("usaspending", "transactions_filter_not_used"));
    assert!(field == "filters" && reason.contains("time_periods"), "{reason}");
    for status in [400, 422] {
        let answer = Answer { status, ..ok(r#"{"detail":"'award_type_codes' must only contain types from one group."}"#) };
        let (field, reason) = stop(map_at(AWARDS, &start(AWARDS, &window()), &answer));
        assert!(field == "filters" && reason.contains("one group"), "{reason}");
    }
    let page = fixture("usaspending", "transactions_another_message").unwrap();
    assert_eq!(page.warnings, ["the server says: The load of last night is late."]);
}

/// Proves that an ignored date filter is detected over the pages of a slice, and that a few rows outside are accepted.
#[test]
fn ignored_days_stop() {
    let old = |page: u64| -> Vec<_> {
        let row = |at: u64| {
            let mut row = award(&format!("A{page}N{at}"));
            row["Last Modified Date"] = json!("2019-01-01 00:00:00");
            row
        };
        (0..100).map(row).collect()
    };
    let result = run(AWARDS, &window(), |_, body| {
        let page = body["page"].as_u64().unwrap();
        rows(&old(page), page, true)
    });
    assert!(matches!(result, Err(UpstreamError::Stop { field, .. }) if field == "time_period"));
    let page = fixture("usaspending", "awards_outside_the_window").unwrap();
    assert_eq!((page.observations.len(), page.warnings.len()), (2, 1));
}

/// Proves that a field missing on most records stops the stream with an error that names it.
#[test]
fn drift_names_the_field() {
    let without = |stream: &str, row: Value, field: &str, missing: usize| {
        let mut list: Vec<_> = (0..20).map(|_| row.clone()).collect();
        for row in &mut list[..missing] {
            row.as_object_mut().unwrap().remove(field);
        }
        map_at(stream, &start(stream, &window()), &rows(&list, 1, false))
    };
    for field in ["Transaction Amount", "Recipient Name", "Award ID", "Action Date", "Mod", "naics_code", "Awarding Agency"] {
        let result = without(TRANSACTIONS, action("A", "0"), field, 11);
        assert!(matches!(&result, Err(UpstreamError::Stop { field: named, .. }) if named == field), "{field}: {result:?}");
        without(TRANSACTIONS, action("A", "0"), field, 10).unwrap();
    }
    for field in ["Award Amount", "Recipient Name", "NAICS", "generated_internal_id"] {
        let result = without(AWARDS, award("A"), field, 20);
        assert!(matches!(&result, Err(UpstreamError::Stop { field: named, .. }) if named == field), "{field}: {result:?}");
    }
}

/// Proves that a correction retains the key and changes the content, that a changed modification date alone changes nothing, and that one
/// award number at two agencies is two awards.
#[test]
fn identity_is_the_lasting_one() {
    let hash = |page: &Page| page.observations[0].data.canonical();
    let read = |row: Value| map_at(AWARDS, &start(AWARDS, &window()), &rows(&[row], 1, false)).unwrap();
    let before = read(award("A1"));
    let mut moved = award("A1");
    moved["Last Modified Date"] = json!("2026-09-29");
    let mut corrected = award("A1");
    corrected["Award Amount"] = json!(2);
    assert_eq!(hash(&before), hash(&read(moved)));
    assert_ne!(hash(&before), hash(&read(corrected.clone())));
    assert_eq!(before.observations[0].key, read(corrected).observations[0].key);
    let page = fixture("usaspending", "transactions_amounts_as_texts").unwrap();
    assert_eq!(award_of(&page, "usaspending.transactions/CONT_AWD_0148_9700_MDA22001D0002_9700/9").action_cents, Some(1_563_924_236));
    assert_eq!(award_of(&page, "usaspending.transactions/CONT_AWD_0148_4735_GS35F0001A_4730/A00001").action_cents, Some(-1));
}

/// Proves that a rejected record of any form can be mapped again on its own.
#[test]
fn a_rejected_record_can_be_mapped_again() {
    let page = fixture("usaspending", "transactions_no_identity").unwrap();
    assert_eq!(page.rejects.len(), 5);
    let (upstream, at) = stream(TRANSACTIONS);
    let raw = serde_json::to_vec(&action("A1", "P00001")).unwrap();
    let again = map(TRANSACTIONS, upstream.single(at, &raw)).unwrap();
    assert_eq!(again.observations[0].key, "usaspending.transactions/CONT_AWD_A1_7530_-NONE-_-NONE-/P00001");
    let (upstream, at) = stream(DETAILS);
    let raw = std::fs::read(folder("usaspending").join("details_contract.json")).unwrap();
    let again = map(DETAILS, upstream.single(at, &raw)).unwrap();
    assert_eq!(award_of(&again, "usaspending.details/CONT_AWD_75HB0024C0001_7530_-NONE-_-NONE-").office, "OFFICE OF GAUGES");
}

/// Proves that a run ends when the server ignores every parameter and always returns the same few records, even if it announces more; and
/// that a server without counts is read.
#[test]
fn a_run_against_a_constant_answer_ends() {
    let full = Window { from: None, to: TODAY };
    for (has_next, page) in [(false, Some(1)), (true, Some(1)), (true, None)] {
        let same = |row: Value| {
            let mut body = json!({"results": [row], "page_metadata": {"hasNext": has_next}});
            if let Some(page) = page {
                body["page_metadata"]["page"] = json!(page);
            }
            json_answer(&body)
        };
        assert_eq!(run(TRANSACTIONS, &full, |_, _| same(action("A1", "0"))).unwrap().keys.len(), 1);
        let none = || Answer { status: 404, ..ok("not found") };
        let walked = run(TRANSACTIONS, &full, |path, _| if path == COUNT { none() } else { same(action("A1", "0")) }).unwrap();
        assert_eq!(walked.keys.len(), 1);
        assert_eq!(run(AWARDS, &full, |_, _| same(award("A1"))).unwrap().keys.len(), 1);
        run(DETAILS, &full, |_, _| same(award("A1"))).unwrap();
    }
    assert!(run(TRANSACTIONS, &full, |_, _| counts(1, 1)).is_err());
}
