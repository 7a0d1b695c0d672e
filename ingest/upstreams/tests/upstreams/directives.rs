//! Airworthiness directives of the Federal Register: the search year by year, and the text of each document that is not known.

use std::collections::HashSet;

use jiff::civil::date;
use schemas::facts::FactData;
use schemas::facts::directives::DirectiveFact;
use schemas::position::UpstreamCursor;
use serde_json::{Value, json};
use upstreams::{Answer, Page, Window};

use crate::common::*;

const STREAM: &str = "federal_register.ads";

pub(crate) fn directives(page: &Page) -> Vec<&DirectiveFact> {
    let records = page.observations.iter().map(|observation| match &observation.data {
        FactData::Directive(fact) => &**fact,
        other => panic!("no directive: {other:?}"),
    });
    records.collect()
}

/// The record of the search for a document.
pub(crate) fn found(number: &str, title: &str, summary: &str, published: &str) -> Value {
    json!({
        "document_number": number, "title": title, "type": "Rule", "action": "Final rule.", "abstract": summary,
        "publication_date": published, "effective_on": null, "docket_ids": ["B", "A"], "citation": "91 FR 1", "correction_of": null,
        "html_url": format!("https://www.federalregister.gov/documents/{published}/{number}"),
        "raw_text_url": format!("https://www.federalregister.gov/documents/full_text/text/{}/{number}.txt", published.replace('-', "/")),
    })
}

fn page_of(documents: &[Value]) -> Answer {
    ok(json!({ "count": documents.len(), "results": documents }).to_string())
}

fn narrowed(cursor: &UpstreamCursor, known: &[String]) -> Option<UpstreamCursor> {
    let (upstream, stream) = stream(STREAM);
    upstream.narrow(stream, cursor, &known.iter().cloned().collect::<HashSet<_>>())
}

fn keys(cursor: &UpstreamCursor) -> Vec<String> {
    let (upstream, stream) = stream(STREAM);
    upstream.depends_on(stream, cursor)
}

const TEXT: &str = "<html><body><pre>\nSUMMARY: It replaces AD 2011-01-01.\n\nPART 39--AIRWORTHINESS DIRECTIVES\n\n2026-15-05 Acme Inc.: Amendment \
    39-1; Docket No. FAA-\n2026-1.\n\n(c) Applicability\n\nModel A321- 111\0 airplanes.\n\nIssued on July 1, 2026.\n</pre></body></html>";

/// Proves that a full read begins in 1994 and continues year by year, and that the first request of a window asks for rules of part 39 only.
#[test]
fn years() {
    let first = start(STREAM, &Window { from: None, to: date(1995, 2, 1) });
    assert!(path(STREAM, &first).contains("gte%5D=1994-01-01&conditions%5Bpublication_date%5D%5Blte%5D=1994-12-31"));
    let none = ok(r#"{"count":0}"#);
    let second = map_at(STREAM, &first, &none).unwrap().next.unwrap();
    assert!(path(STREAM, &second).contains("gte%5D=1995-01-01&conditions%5Bpublication_date%5D%5Blte%5D=1995-02-01"));
    assert_eq!(map_at(STREAM, &second, &none).unwrap().next, None);
    let window = path(STREAM, &start(STREAM, &window()));
    for part in ["conditions%5Bcfr%5D%5Btitle%5D=14&conditions%5Bcfr%5D%5Bpart%5D=39", "conditions%5Btype%5D%5B%5D=RULE", "order=oldest"] {
        assert!(window.contains(part), "{part} in {window}");
    }
}

/// Proves that each document that is not known is requested once by its address, and that its regulatory text is kept, cleaned.
#[test]
fn texts_are_read_once() {
    let at = start(STREAM, &window());
    let documents = [found("2026-1", "One", "s", "2026-05-01"), found("2026-2", "Two", "s", "2026-05-02")];
    let page = map_at(STREAM, &at, &page_of(&documents)).unwrap();
    let fresh = page.next.unwrap();
    assert_eq!(keys(&fresh), ["federal_register.ads/2026-1@2026-05-01", "federal_register.ads/2026-2@2026-05-02"]);
    assert_eq!(narrowed(&fresh, &keys(&fresh)), None);
    let second = narrowed(&fresh, &keys(&fresh)[..1]).unwrap();
    assert_eq!(path(STREAM, &second), "/documents/full_text/text/2026/05/02/2026-2.txt");
    let read = map_at(STREAM, &second, &ok(TEXT)).unwrap();
    assert_eq!(read.next, None);
    let facts = directives(&read);
    assert_eq!((facts.len(), &*facts[0].number, &*facts[0].published, facts[0].is_cut), (1, "2026-2", "2026-05-02", false));
    assert!(facts[0].text.starts_with("PART 39--AIRWORTHINESS DIRECTIVES\n\n2026-15-05 Acme Inc.: Amendment"), "{}", facts[0].text);
    assert!(facts[0].text.contains("FAA-2026-1.") && facts[0].text.contains("A321-111 airplanes"), "{}", facts[0].text);
    assert_eq!(facts[0].docket_ids, ["A", "B"]);
}

/// Proves that a text that is missing leaves the run incomplete and the document unknown, and that a page of the server is no text.
#[test]
fn missing_texts() {
    let at = start(STREAM, &window());
    let page = map_at(STREAM, &at, &page_of(&[found("2026-1", "One", "s", "2026-09-20")])).unwrap();
    let pending = narrowed(&page.next.unwrap(), &[]).unwrap();
    let missing = map_at(STREAM, &pending, &Answer { status: 404, ..ok("<html>Not Found</html>") }).unwrap();
    assert_eq!((missing.observations.len(), missing.incomplete.and_then(|what| what.from)), (0, Some(date(2026, 9, 20))));
    assert!(map_at(STREAM, &pending, &ok("<html><title>Request Access</title></html>")).is_err());
}

/// Proves that a text without the number of a directive is rejected with its reason, and is read again from its stored bytes; that a correction that
/// names its document is kept; and that a long text is cut and says so.
#[test]
fn texts_without_number() {
    let (upstream, own) = stream(STREAM);
    let at = start(STREAM, &window());
    let pending = |document: Value| {
        let page = map_at(STREAM, &at, &page_of(&[document])).unwrap();
        narrowed(&page.next.unwrap(), &[]).unwrap()
    };
    let proposal = pending(found("2021-05441", "Correction of a proposal", "s", "2026-05-01"));
    let page = map_at(STREAM, &proposal, &ok("This would replace AD 2011-10-09.")).unwrap();
    assert_eq!(
        (page.observations.len(), page.rejects.len(), page.rejects[0].reference.as_str()),
        (0, 1, "federal_register.ads/2021-05441@2026-05-01")
    );
    assert!(page.rejects[0].reason.contains("number"), "{}", page.rejects[0].reason);
    let again = map_at(STREAM, &at, &ok(upstream.single(own, &page.rejects[0].raw))).unwrap();
    assert_eq!(again.rejects, page.rejects);

    let mut correction = found("C1-2026-1", "Correction", "s", "2026-05-01");
    correction["correction_of"] = json!("https://www.federalregister.gov/api/v1/documents/2026-1.json");
    let page = map_at(STREAM, &pending(correction), &ok("In rule document 2026-1, a word is changed.")).unwrap();
    assert_eq!((page.rejects.len(), &*directives(&page)[0].correction_of), (0, "2026-1"));

    let long = format!("{TEXT}{}", "\n\nwords".repeat(20_000));
    let page = map_at(STREAM, &pending(found("2026-1", "One", "s", "2026-05-01")), &ok(long)).unwrap();
    let fact = directives(&page)[0];
    assert!(fact.is_cut && fact.text.len() <= 64 << 10 && fact.text.len() > 60 << 10);
}

/// Proves that a record of the search without an address of a text is rejected and named, and that one of another day or type is not read.
#[test]
fn records_of_the_search() {
    let at = start(STREAM, &window());
    let mut documents: Vec<Value> = (1..=30).map(|n| found(&format!("2026-{n}"), "One", "s", "2026-05-01")).collect();
    documents[0]["raw_text_url"] = json!("https://elsewhere.example/1.txt");
    documents[1]["type"] = json!("Proposed Rule");
    let page = map_at(STREAM, &at, &page_of(&documents)).unwrap();
    assert_eq!((page.rejects.len(), page.rejects[0].reference.as_str()), (1, "2026-1"));
    assert_eq!(keys(&page.next.unwrap()).len(), 28);
}
