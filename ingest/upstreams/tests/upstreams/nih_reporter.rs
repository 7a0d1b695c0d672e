//! NIH RePORTER: requests, paging and counting, and the mapping of awards.

use jiff::civil::date;
use schemas::position::UpstreamCursor;
use serde_json::{Value, json};
use upstreams::nih_reporter::RECORDS_MAX;
use upstreams::{Answer, Request, Settings, UpstreamError, Window};

use crate::common::*;

const STREAM: &str = "nih_reporter";

fn project(number: usize, added: &str) -> Value {
    json!({"appl_id": 10_000_000 + number, "subproject_id": null, "project_num": format!("5R01CA{number:06}-02"), "project_title": "Title",
           "award_type": "5", "activity_code": "R01", "award_amount": 1, "award_notice_date": "2026-03-01T00:00:00", "date_added": format!("{added}T16:15:57"),
           "organization": null, "principal_investigators": []})
}

fn page_of(numbers: impl IntoIterator<Item = usize>, total: usize, added: &str) -> Answer {
    let results: Vec<_> = numbers.into_iter().map(|number| project(number, added)).collect();
    ok(serde_json::to_vec(&json!({"meta": {"search_id": "x", "total": total}, "results": results})).unwrap())
}

fn request(cursor: &UpstreamCursor) -> (Request, Value) {
    let (upstream, stream) = stream(STREAM);
    let request = upstream.request(stream, cursor, &Settings::default()).unwrap();
    let body = serde_json::from_str(request.body.as_deref().unwrap()).unwrap();
    (request, body)
}

/// Runs a stream with `answer` as the answer to each request. Returns the bodies of all requests and all warnings.
fn bodies(window: &Window, mut answer: impl FnMut(&Value) -> Answer) -> (Vec<Value>, Vec<String>) {
    let (mut cursor, mut bodies, mut warnings) = (Some(start(STREAM, window)), Vec::new(), Vec::new());
    while let Some(at) = cursor {
        let (_, body) = request(&at);
        let page = map_at(STREAM, &at, &answer(&body)).unwrap();
        warnings.extend(page.warnings);
        bodies.push(body);
        assert!(bodies.len() < 500, "does not end");
        cursor = page.next;
    }
    (bodies, warnings)
}

fn days(body: &Value) -> (&str, &str) {
    let added = &body["criteria"]["date_added"];
    (added["from_date"].as_str().unwrap(), added["to_date"].as_str().unwrap())
}

fn march() -> Window {
    Window { from: Some(date(2026, 3, 1)), to: date(2026, 3, 31) }
}

/// Returns the ids of a page at an offset, in the requested order, of `total` ids.
fn served(body: &Value, total: usize) -> Answer {
    let offset = usize::try_from(body["offset"].as_u64().unwrap()).unwrap();
    let numbers = (offset..total.min(offset + 500)).map(|at| if body["sort_order"] == "asc" { at } else { total - 1 - at });
    page_of(numbers, total, "2026-03-07")
}

fixture_tests!(STREAM);

/// Proves the request: a POST of criteria that RePORTER knows, at most 500 records in a total order, with the fields that are mapped.
#[test]
fn requests_use_known_parameters() {
    let (request, body) = request(&start(STREAM, &march()));
    assert_eq!((&*request.origin, &*request.path, request.conditional), ("https://api.reporter.nih.gov", "/v2/projects/search", false));
    assert_eq!(body["criteria"], json!({"date_added": {"from_date": "2026-03-01", "to_date": "2026-03-31"}, "exclude_subprojects": true}));
    assert_eq!(
        (&body["limit"], &body["offset"], &body["sort_field"], &body["sort_order"]),
        (&json!(500), &json!(0), &json!("appl_id"), &json!("asc"))
    );
    let fields = body["include_fields"].as_array().unwrap();
    assert!(fields.contains(&json!("ApplId")) && fields.contains(&json!("DateAdded")) && fields.contains(&json!("AgencyIcAdmin")));
}

/// Proves that a full run reads five fiscal years, month by month, and that the fiscal year begins in October.
#[test]
fn a_full_run_reads_five_fiscal_years() {
    let (bodies, _) = bodies(&Window { from: None, to: date(2026, 9, 30) }, |_| page_of([], 0, ""));
    assert_eq!((days(&bodies[0]), days(&bodies[59]), bodies.len()), (("2021-10-01", "2021-10-31"), ("2026-09-01", "2026-09-30"), 60));
    let (_, first) = request(&start(STREAM, &Window { from: None, to: date(2026, 10, 1) }));
    assert_eq!(days(&first), ("2022-10-01", "2022-10-31"));
}

/// Proves that paging continues to the total, and that a complete window is read once.
#[test]
fn pages_are_followed_to_the_total() {
    let (bodies, warnings) = bodies(&march(), |body| served(body, 1_200));
    assert_eq!(bodies.iter().map(|body| body["offset"].as_u64().unwrap()).collect::<Vec<_>>(), [0, 500, 1_000]);
    assert!(warnings.is_empty(), "{warnings:?}");
}

/// Proves that a changed total starts the window again in the opposite order, and that this ends.
#[test]
fn a_changed_total_is_read_again() {
    let mut requested = 0;
    let (some, warnings) = bodies(&march(), |body| {
        requested += 1;
        served(body, if requested == 1 { 1_200 } else { 1_201 })
    });
    let orders: Vec<_> = some.iter().map(|body| (body["offset"].as_u64().unwrap(), body["sort_order"].as_str().unwrap())).collect();
    assert_eq!(orders, [(0, "asc"), (500, "asc"), (0, "desc"), (500, "desc"), (1_000, "desc")]);
    assert!(warnings.iter().any(|warning| warning.contains("changed while it was read")), "{warnings:?}");
    let mut total = 600;
    let (endless, _) = bodies(&march(), |body| {
        total += 1;
        served(body, total)
    });
    assert!(endless.len() <= 6, "{}", endless.len());
}

/// Proves that records displaced by overlapping pages are noticed by counting, and that the window is read again.
#[test]
fn overlapping_pages_are_read_again() {
    let (bodies, warnings) = bodies(&march(), |body| match (body["sort_order"].as_str().unwrap(), body["offset"].as_u64().unwrap()) {
        ("asc", 500) => page_of(450..700, 750, "2026-03-07"),
        _ => served(body, 750),
    });
    assert!(bodies.iter().any(|body| body["sort_order"] == "desc"), "{bodies:?}");
    assert!(warnings.iter().any(|warning| warning.contains("but sent 700; it is read again")), "{warnings:?}");
}

/// Proves that a window beyond the last reachable page is split in half, and a day is read agency by agency.
#[test]
fn large_windows_are_read_in_parts() {
    let (some, _) = bodies(&march(), |body| {
        let (from, to) = days(body);
        if from == to { served(body, 2) } else { page_of(0..500, RECORDS_MAX + 1, from) }
    });
    let single: Vec<_> = some.iter().map(days).filter(|(from, to)| from == to).collect();
    assert_eq!((single[0], single.len()), (("2026-03-01", "2026-03-01"), 31));
    let day = Window { from: Some(date(2026, 3, 7)), to: date(2026, 3, 7) };
    let (agencies, _) = bodies(&day, |body| {
        if body["criteria"]["agencies"].is_array() { served(body, 3) } else { page_of(0..500, RECORDS_MAX + 1, "2026-03-07") }
    });
    assert_eq!((&agencies[1]["criteria"]["agencies"], &agencies[1]["criteria"]["is_agency_admin"]), (&json!(["NCI"]), &json!(true)));
    assert!(agencies.len() > 30);
    let (_, after) = request(&map_at(STREAM, &start(STREAM, &day), &page_of(0..500, 20_000, "2026-03-07")).unwrap().next.unwrap());
    assert_eq!(after["criteria"]["agencies"], json!(["NCI"]));
}

/// Proves that an ignored criterion stops the stream with an error that names it: at once if all records are returned, after some pages if
/// fewer are.
#[test]
fn an_ignored_criterion_stops() {
    let stopped = |answer: &Answer| match map_at(STREAM, &start(STREAM, &march()), answer) {
        Err(UpstreamError::Stop { field, .. }) => field,
        other => panic!("{other:?}"),
    };
    assert_eq!(stopped(&page_of(0..500, 2_900_000, "2001-01-01")), "criteria.date_added");
    let parts: Vec<_> = (0..30)
        .map(|number| {
            let mut part = project(number, "2026-03-07");
            part["subproject_id"] = json!(5_000 + number);
            part
        })
        .collect();
    assert_eq!(stopped(&ok(json!({"results": parts}).to_string())), "criteria.exclude_subprojects");
    let first = map_at(STREAM, &start(STREAM, &march()), &page_of(0..500, 900, "2001-01-01")).unwrap();
    let error = map_at(STREAM, &first.next.unwrap(), &page_of(500..900, 900, "2001-01-01")).unwrap_err();
    assert!(matches!(error, UpstreamError::Stop { field, .. } if field == "criteria.date_added"));
}

/// Proves that a field missing or of another type on most records stops the stream with an error that names it, and that null does not.
#[test]
fn drift_names_the_field() {
    for (field, changed) in [
        ("project_title", json!(7)),
        ("award_type", json!({})),
        ("activity_code", json!(1)),
        ("organization", json!("X")),
        ("principal_investigators", json!({})),
        ("award_amount", json!("much")),
    ] {
        for (count, value) in [(11, None), (11, Some(changed)), (20, Some(Value::Null))] {
            let is_null = value == Some(Value::Null);
            let mut results: Vec<_> = (0..20).map(|number| project(number, "2026-03-07")).collect();
            for one in &mut results[..count] {
                match &value {
                    Some(value) => one[field] = value.clone(),
                    None => drop(one.as_object_mut().unwrap().remove(field)),
                }
            }
            match map(STREAM, json!({"results": results}).to_string()) {
                Ok(_) => assert!(is_null, "{field}"),
                Err(UpstreamError::Stop { field: named, .. }) => assert!(!is_null && named == field, "{named} for {field}"),
                Err(other) => panic!("{other}"),
            }
        }
    }
}

/// Proves that a run ends when the server returns the same page for every request.
#[test]
fn a_run_against_a_constant_answer_ends() {
    let (bodies, _) = bodies(&Window { from: None, to: TODAY }, |_| page_of(0..10, 187, "2026-03-07"));
    assert_eq!(bodies.len(), 120);
}

/// Proves that a part that cannot be read (half a character, a doubled key, another type) rejects the record and blanks nothing.
#[test]
fn an_unreadable_part_rejects_the_record() {
    for (part, named) in [
        (r#""organization":{"org_name":"\ud800"}"#, "organization"),
        (r#""organization":{"org_name":"A","org_name":"A"}"#, "organization"),
        (r#""organization":"X""#, "organization"),
        (r#""principal_investigators":[{"full_name":"\ud800"}]"#, "principal_investigators"),
        (r#""principal_investigators":[7]"#, "principal_investigators"),
        (r#""agency_ic_admin":7"#, "agency_ic_admin"),
    ] {
        let mut one = project(1, "2026-03-07");
        one.as_object_mut().unwrap().remove(named);
        let broken = format!("{{{part},{}", &one.to_string()[1..]);
        let page = map(STREAM, format!(r#"{{"results":[{broken},{}]}}"#, project(2, "2026-03-07"))).unwrap();
        assert_eq!((page.observations.len(), page.rejects.len()), (1, 1), "{part}");
        assert!(page.rejects[0].reason.starts_with(&format!("{named} is not readable")), "{}", page.rejects[0].reason);
        assert_eq!(page.rejects[0].reference, "10000001");
    }
}

/// Proves that a day of one agency with more records than can be reached is read as far as possible, that this is recorded, and that the run
/// continues with the next agency.
#[test]
fn a_day_beyond_all_pages_is_recorded() {
    let day = Window { from: Some(date(2026, 3, 7)), to: date(2026, 3, 7) };
    let (mut cursor, mut incomplete, mut requested) = (Some(start(STREAM, &day)), Vec::new(), Vec::new());
    while let Some(at) = cursor {
        let (_, body) = request(&at);
        let offset = usize::try_from(body["offset"].as_u64().unwrap()).unwrap();
        let is_large = !body["criteria"]["agencies"].is_array() || body["criteria"]["agencies"] == json!(["NCI"]);
        let page =
            map_at(STREAM, &at, &if is_large { page_of(offset..offset + 500, RECORDS_MAX + 1, "2026-03-07") } else { served(&body, 1) });
        let page = page.unwrap();
        incomplete.extend(page.incomplete);
        requested.push(body["criteria"]["agencies"].clone());
        cursor = page.next;
    }
    assert_eq!(requested.iter().filter(|agency| **agency == json!(["NCI"])).count(), RECORDS_MAX / 500);
    assert!(requested.contains(&json!(["NIAID"])), "{requested:?}");
    assert_eq!((incomplete.len(), incomplete[0].from), (1, Some(date(2026, 3, 7))));
    assert!(incomplete[0].what.contains("(NCI) has more than the 10000 records"), "{incomplete:?}");
}
