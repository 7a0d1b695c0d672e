//! The Dynamic Regulatory System: the key, paging, and the mapping of directives from before 1994.

use serde_json::{Value, json};
use upstreams::{Page, Settings, UpstreamError};

use crate::common::*;
use crate::directives::directives;

const STREAM: &str = "faa_drs";

fn document(number: &str, fields: Value) -> Value {
    let mut document = json!({
        "documentGuid": format!("GUID{}", number.replace(['-', ' '], "")), "drs:documentNumber": number, "drs:status": "Current",
        "documentURL": "https://drs.faa.gov/browse/excelExternalWindow/GUID.0001",
        "drs:adfrawdMake": ["Piper Aircraft, Inc."], "drs:adfrawdModel": ["PA-28-140"], "drs:adfrawdProductType": ["Aircraft"],
        "drs:title": null, "drs:adfrawdSubject": "Control wheel shaft", "drs:effectiveDate": "1978-05-15", "drs:adfrawdIssueDate": "1978-05-11",
    });
    for (name, value) in fields.as_object().into_iter().flatten() {
        document[name] = value.clone();
    }
    document
}

fn page_of(documents: &[Value], total: usize) -> Page {
    let body = json!({ "summary": { "count": documents.len(), "totalItems": total }, "documents": documents });
    map_at(STREAM, &start(STREAM, &window()), &ok(body.to_string())).unwrap()
}

fixture_tests!("faa_drs");

/// Proves that no request is made without a key, and that the key is a header and not in the path.
#[test]
fn needs_a_key() {
    let (upstream, stream) = stream(STREAM);
    let cursor = start(STREAM, &window());
    let refused = upstream.request(stream, &cursor, &Settings::default());
    assert!(matches!(refused, Err(UpstreamError::Stop { ref field, .. }) if field == "api_key"), "{refused:?}");
    let settings = Settings { api_key: Some("secret".to_owned()), ..Settings::default() };
    let request = upstream.request(stream, &cursor, &settings).unwrap();
    assert_eq!(request.path, "/api/drs/data-pull/ADFRAWD?offset=0");
    assert!(request.headers.contains(&("x-api-key", "secret".to_owned())));
}

/// Proves that directives of 1994 and later are left to the Federal Register, that lists keep their order without what means nothing, and that a document
/// without a number is rejected alone.
#[test]
fn documents() {
    let page = page_of(
        &[
            document(
                "1978-10-03",
                json!({ "drs:adfrawdModel": ["45 (YT-34)", "A45 (T-34A", "B-45)", "_EMPTY_", "D45 (T-34B)"], "drs:adfrawdSupersededBy": ["2011-10-09"] }),
            ),
            document(
                "1993-25-17 R1",
                json!({ "drs:adfrawdMake": ["Boeing", "Boeing"], "drs:adfrawdRegulatoryText": "93-25-17 R1 BOEING: Amendment 39-1.&#160;Applies to" }),
            ),
            document("1994-01-01", json!({})),
            document("2026-20-08", json!({})),
            document("no number", json!({})),
        ],
        5,
    );
    let found = directives(&page);
    assert_eq!(found.iter().map(|fact| fact.number.as_str()).collect::<Vec<_>>(), ["78-10-03", "93-25-17 R1"]);
    assert_eq!(found[0].models, ["45 (YT-34)", "A45 (T-34A", "B-45)", "D45 (T-34B)"]);
    assert_eq!((&*found[0].title, &*found[0].published, &*found[0].superseded_by), ("Control wheel shaft", "1978-05-11", "2011-10-09"));
    assert_eq!(
        (found[1].makes.as_slice(), &*found[1].text),
        (&["Boeing".to_owned()][..], "93-25-17 R1 BOEING: Amendment 39-1. Applies to")
    );
    assert_eq!((page.rejects.len(), page.next.is_none()), (1, true));
    assert!(page.rejects[0].reason.contains("drs:documentNumber"), "{}", page.rejects[0].reason);
}

/// Proves that pages follow until all documents came, that an empty page before the end is reported, and that an error with status 200 is one.
#[test]
fn pages_and_errors() {
    let page = page_of(&[document("1978-10-03", json!({}))], 2);
    let cursor = page.next.unwrap();
    let (upstream, stream) = stream(STREAM);
    let settings = Settings { api_key: Some("secret".to_owned()), ..Settings::default() };
    assert_eq!(upstream.request(stream, &cursor, &settings).unwrap().path, "/api/drs/data-pull/ADFRAWD?offset=1");
    let short = map_at(STREAM, &cursor, &ok(r#"{"summary":{"totalItems":2},"documents":[]}"#)).unwrap();
    assert_eq!(
        (short.next, short.incomplete.map(|incomplete| incomplete.what)),
        (None, Some("the upstream counts 2 documents but sent 1".to_owned()))
    );
    let error = |message: &str| map_at(STREAM, &cursor, &ok(json!({ "errorMessage": message }).to_string()));
    assert!(matches!(error("Unable to retrieve documents due to system error"), Err(UpstreamError::Later { .. })));
    assert!(matches!(error("The doctype ADFRAWD is internal only doctype"), Err(UpstreamError::Stop { .. })));
}
