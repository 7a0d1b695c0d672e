//! Annual reports and sums of obligations of the companies of the crosswalk.

use std::collections::HashSet;

use jiff::civil::date;
use schemas::facts::FactData;
use schemas::facts::company_facts::{CompanyFact, REPORT, TOTAL};
use schemas::position::UpstreamCursor;
use serde_json::{Value, json};
use upstreams::{Answer, Page, Settings, UpstreamError};

use crate::common::*;

const XBRL: &str = "edgar.xbrl";
const TOTALS: &str = "usaspending.totals";

fn facts(page: &Page) -> Vec<&CompanyFact> {
    let records = page.observations.iter().map(|observation| match &observation.data {
        FactData::CompanyFact(fact) => &**fact,
        other => panic!("no fact of a company: {other:?}"),
    });
    records.collect()
}

fn missing() -> Answer {
    Answer { status: 403, ..ok("<?xml version=\"1.0\"?>\n<Error><Code>AccessDenied</Code></Error>") }
}

/// The list of a company's filings: accession, form, end of the year, document.
fn list(cik: &str, filings: &[(&str, &str, &str, &str)]) -> Answer {
    let column = |value: fn(&(&str, &str, &str, &str)) -> String| filings.iter().map(value).collect::<Vec<_>>();
    let recent = json!({
        "accessionNumber": column(|filing| filing.0.to_owned()),
        "form": column(|filing| filing.1.to_owned()),
        "filingDate": column(|_| "2026-02-01".to_owned()),
        "reportDate": column(|filing| filing.2.to_owned()),
        "items": column(|_| String::new()),
        "primaryDocument": column(|filing| filing.3.to_owned()),
    });
    ok(json!({ "cik": cik, "name": "LOCKHEED MARTIN CORP", "filings": { "recent": recent, "files": [] } }).to_string())
}

fn instance(member: &str) -> String {
    let segment = |member: &str| {
        format!("<segment><xbrldi:explicitMember dimension=\"srt:MajorCustomersAxis\">{member}</xbrldi:explicitMember></segment>")
    };
    let context = |id: &str, segment: &str| {
        format!(
            "<context id=\"{id}\"><entity><identifier>936468</identifier>{segment}</entity><period><startDate>2025-01-01</startDate>\
                <endDate>2025-12-31</endDate></period></context>"
        )
    };
    let fact =
        |context: &str, value: &str| format!("<us-gaap:Revenues contextRef=\"{context}\" unitRef=\"usd\">{value}</us-gaap:Revenues>");
    let customer = if member.is_empty() { String::new() } else { context("g", &segment(member)) + &fact("g", "30000000000") };
    format!(
        "<xbrl xmlns:us-gaap=\"g\" xmlns:dei=\"d\" xmlns:xbrldi=\"x\">{}<unit id=\"usd\"><measure>iso4217:USD</measure></unit>\
            <dei:DocumentFiscalYearFocus contextRef=\"y\">2025</dei:DocumentFiscalYearFocus>{}{customer}</xbrl>",
        context("y", ""),
        fact("y", "71000000000"),
    )
}

const LABELS: &str = "<link:linkbase xmlns:link=\"l\" xmlns:xlink=\"x\"><link:labelLink><link:loc xlink:label=\"loc\" xlink:href=\"lmt.xsd#lmt_UsGovMember\"/>\
    <link:label xlink:label=\"lab\" xlink:role=\"r/label\">U.S. Government [Member]</link:label><link:labelArc xlink:from=\"loc\" xlink:to=\"lab\"/>\
    </link:labelLink></link:linkbase>";

fn next(page: &Page) -> UpstreamCursor {
    page.next.clone().unwrap()
}

/// Proves that a run lists the reports of a company, reads those that are not known, asks for labels only where a customer is named, and continues with the
/// next company.
#[test]
fn reports_of_a_company() {
    let first = start(XBRL, &window());
    assert_eq!(path(XBRL, &first), "/submissions/CIK0000936468.json");
    let filings = [
        ("0000936468-26-000001", "10-K", "2025-12-31", "lmt-20251231.htm"),
        ("0000936468-26-000002", "10-Q", "2026-03-31", "lmt-20260331.htm"),
        ("0000936468-26-000003", "10-K/A", "2025-12-31", "lmt-20251231a.htm"),
        ("0000936468-25-000004", "10-K", "2024-12-31", "lmt-20241231.htm"),
    ];
    let listed = map_at(XBRL, &first, &list("936468", &filings)).unwrap();
    let (upstream, stream) = stream(XBRL);
    assert_eq!(
        upstream.depends_on(stream, &next(&listed)),
        ["edgar.xbrl/0000936468-26-000001", "edgar.xbrl/0000936468-26-000003", "edgar.xbrl/0000936468-25-000004"]
    );
    let known = HashSet::from(["edgar.xbrl/0000936468-25-000004".to_owned()]);
    let at = upstream.narrow(stream, &next(&listed), &known).unwrap();
    assert_eq!(path(XBRL, &at), "/Archives/edgar/data/936468/000093646826000001/lmt-20251231_htm.xml");

    let read = map_at(XBRL, &at, &ok(instance("lmt:UsGovMember"))).unwrap();
    assert!(read.observations.is_empty());
    assert_eq!(path(XBRL, &next(&read)), "/Archives/edgar/data/936468/000093646826000001/lmt-20251231_lab.xml");
    let labelled = map_at(XBRL, &next(&read), &ok(LABELS)).unwrap();
    let [report] = facts(&labelled)[..] else { panic!("{labelled:?}") };
    assert_eq!((report.kind.as_str(), report.cik.as_str(), report.fiscal_year), (REPORT, "0000936468", 2025));
    assert_eq!((report.form.as_str(), report.end.as_str(), report.file.as_str()), ("10-K", "2025-12-31", "lmt-20251231_htm.xml"));
    let shown: Vec<_> = report.facts.iter().map(|fact| (fact.value.as_str(), fact.label.as_str())).collect();
    assert_eq!(shown, [("71000000000", ""), ("30000000000", "U.S. Government [Member]")]);
    assert_eq!(labelled.observations[0].key, "edgar.xbrl/0000936468-26-000001");

    // The amendment names no customer, so no labels are asked for, and the next company follows.
    assert_eq!(path(XBRL, &next(&labelled)), "/Archives/edgar/data/936468/000093646826000003/lmt-20251231a_htm.xml");
    let plain = map_at(XBRL, &next(&labelled), &ok(instance(""))).unwrap();
    assert_eq!(facts(&plain)[0].facts.len(), 1);
    assert_eq!(path(XBRL, &next(&plain)), "/submissions/CIK0000927653.json");
    assert!(map_at(XBRL, &next(&plain), &list("927653", &[])).unwrap().next.is_none());
}

/// Proves that a filing without an instance is a report without facts, that a missing label file leaves labels empty, that an unreadable instance is rejected
/// and stops nothing, and that a page instead of a file stops the run.
#[test]
fn files_that_are_missing_or_damaged() {
    let filings = [("0000936468-26-000001", "10-K", "2025-12-31", "lmt-20251231.htm")];
    let at = next(&map_at(XBRL, &start(XBRL, &window()), &list("936468", &filings)).unwrap());
    let none = map_at(XBRL, &at, &missing()).unwrap();
    let [report] = facts(&none)[..] else { panic!("{none:?}") };
    assert_eq!((report.file.as_str(), report.facts.len(), report.fiscal_year, none.warnings.len()), ("", 0, 2025, 0));
    let labels = next(&map_at(XBRL, &at, &ok(instance("lmt:UsGovMember"))).unwrap());
    // Older reports have no label file; one that cannot be read is unexpected.
    for (answer, warnings) in [(missing(), 0), (ok("<a"), 1)] {
        let page = map_at(XBRL, &labels, &answer).unwrap();
        assert_eq!((facts(&page)[0].facts[1].label.as_str(), page.warnings.len()), ("", warnings));
    }
    let damaged = map_at(XBRL, &at, &ok("<xbrl><context>")).unwrap();
    assert_eq!((damaged.observations.len(), damaged.rejects[0].reference.as_str()), (0, "0000936468-26-000001"));
    assert!(damaged.next.is_some());
    assert!(matches!(map_at(XBRL, &at, &ok("<!DOCTYPE html><html></html>")), Err(UpstreamError::Later { .. })));
    let gone = map_at(XBRL, &start(XBRL, &window()), &Answer { status: 404, ..missing() }).unwrap();
    assert_eq!((gone.warnings.len(), path(XBRL, &next(&gone)).as_str()), (1, "/submissions/CIK0000927653.json"));
}

/// Proves that simulated upstreams are asked about the companies of the demo only.
#[test]
fn simulated_companies() {
    let settings = Settings { base_url: Some("http://127.0.0.1:1".to_owned()), ..settings() };
    let (upstream, stream) = stream(XBRL);
    let at = upstream.start(stream, &window(), &settings);
    assert_eq!(upstream.request(stream, &at, &settings).unwrap().path, "/submissions/CIK0999999901.json");
}

fn asked(cursor: &UpstreamCursor) -> Value {
    let (upstream, stream) = stream(TOTALS);
    let request = upstream.request(stream, cursor, &settings()).unwrap();
    assert_eq!(request.path, "/api/v2/search/spending_by_category/recipient/");
    serde_json::from_str(request.body.as_deref().unwrap()).unwrap()
}

fn sums(rows: &Value, has_next: bool) -> Answer {
    ok(json!({ "category": "recipient", "results": rows, "page_metadata": { "page": 1, "hasNext": has_next }, "messages": [] }).to_string())
}

/// Proves that the recipients of all pages are added up, that payments are unknown if those of one recipient are, and that each parent, year that has ended
/// and group is asked about.
#[test]
fn sums_of_a_parent() {
    let first = start(TOTALS, &window());
    let body = asked(&first);
    assert_eq!(body["filters"]["recipient_id"], "b97d19b0-833c-8d8f-3a2c-157d04ea55ef-P");
    assert_eq!(body["filters"]["award_type_codes"], json!(["A", "B", "C", "D"]));
    assert_eq!(body["filters"]["time_period"], json!([{"start_date": "2020-01-01", "end_date": "2020-12-31", "date_type": "action_date"}]));
    let page =
        map_at(TOTALS, &first, &sums(&json!([{"amount": 1.25, "total_outlays": 1}, {"amount": -0.5, "total_outlays": 2}]), true)).unwrap();
    assert!(page.observations.is_empty());
    assert_eq!(asked(&next(&page))["page"], 2);
    let page = map_at(TOTALS, &next(&page), &sums(&json!([{"amount": "10", "total_outlays": 3.5}]), false)).unwrap();
    let [total] = facts(&page)[..] else { panic!("{page:?}") };
    assert_eq!((total.kind.as_str(), total.parent_uei.as_str(), total.group.as_str()), (TOTAL, "ZFN2JJXBLZT3", "contracts"));
    assert_eq!((total.obligated_cents, total.outlays_cents, total.recipients), (Some(1_075), Some(650), 3));
    assert_eq!((total.fiscal_year, total.start.as_str(), total.end.as_str(), total.is_settled), (2020, "2020-01-01", "2020-12-31", true));
    assert_eq!(page.observations[0].key, "usaspending.totals/ZFN2JJXBLZT3/2020-12-31/contracts");
    assert_eq!(asked(&next(&page))["filters"]["award_type_codes"][0], "IDV_A");

    let (mut cursor, mut keys, mut settled) = (Some(first), Vec::new(), 0);
    while let Some(at) = cursor {
        let page = map_at(TOTALS, &at, &sums(&json!([{"amount": 1, "total_outlays": null}]), false)).unwrap();
        assert_eq!(facts(&page)[0].outlays_cents, None);
        settled += usize::from(facts(&page)[0].is_settled);
        keys.push(page.observations[0].key.clone());
        cursor = page.next;
    }
    // Six calendar years, and seven years that end in March.
    assert_eq!((keys.len(), settled), (26, 26));
    assert_eq!(keys.last().unwrap(), "usaspending.totals/S1RUKWWRYFL6/2026-03-31/idvs");
    let (upstream, stream) = stream(TOTALS);
    let page = upstream.map(stream, &start(TOTALS, &window()), &sums(&json!([]), false), date(2021, 4, 29)).unwrap();
    assert_eq!((facts(&page)[0].obligated_cents, facts(&page)[0].is_settled), (Some(0), false));
}

/// Proves that a recipient without a readable amount gives no wrong sum, and that an ignored filter and a page that does not end are refused.
#[test]
fn sums_that_cannot_be_read() {
    let first = start(TOTALS, &window());
    for row in [json!({"amount": null}), json!({"amount": "much"}), json!(5)] {
        let page = map_at(TOTALS, &first, &sums(&json!([{"amount": 1}, row]), false)).unwrap();
        assert_eq!((page.observations.len(), page.rejects[0].reference.as_str()), (0, "ZFN2JJXBLZT3/2020-12-31/contracts"));
        assert!(page.next.is_some());
    }
    let ignored = json!({ "results": [], "page_metadata": {}, "messages": ["The filter recipient_id was not used."] });
    assert!(matches!(map_at(TOTALS, &first, &ok(ignored.to_string())), Err(UpstreamError::Stop { .. })));
    assert!(matches!(map_at(TOTALS, &first, &sums(&json!([]), true)), Err(UpstreamError::Later { .. })));
    assert!(matches!(map_at(TOTALS, &first, &Answer { status: 404, ..ok("{}") }), Err(UpstreamError::Later { .. })));
}
