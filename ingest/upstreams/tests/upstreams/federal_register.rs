//! The Federal Register: requests, paging by addresses, and the mapping of notices.

use schemas::facts::FactData;
use schemas::facts::meetings::MeetingFact;
use upstreams::{Page, UpstreamError, Window};

use crate::common::*;

const UPSTREAM: &str = "federal_register";
const STREAM: &str = "federal_register.fda";

pub(crate) fn meetings(page: &Page) -> Vec<&MeetingFact> {
    let records = page.observations.iter().map(|observation| match &observation.data {
        FactData::Meeting(fact) => &**fact,
        other => panic!("no meeting: {other:?}"),
    });
    records.collect()
}

fixture_tests!(UPSTREAM);

/// Proves that the first request asks for the agency, the words, the days and the fields that are only sent when asked for, and that a full
/// read goes back further than a window.
#[test]
fn first_request() {
    let path = path(STREAM, &start(STREAM, &window()));
    assert!(path.starts_with("/api/v1/documents.json?conditions%5Bagencies%5D%5B%5D=food-and-drug-administration&"), "{path}");
    for part in [
        "conditions%5Bterm%5D=%22advisory+committee%22+%22notice+of+meeting%22",
        "conditions%5Bpublication_date%5D%5Bgte%5D=2026-01-01",
        "conditions%5Bpublication_date%5D%5Blte%5D=2026-09-30",
        "fields%5B%5D=dates",
        "fields%5B%5D=action",
        "per_page=100",
    ] {
        assert!(path.contains(part), "{part} in {path}");
    }
    let full = path_of(&Window { from: None, to: TODAY });
    assert!(full.contains("gte%5D=2025-08-26"), "{full}");
}

fn path_of(window: &Window) -> String {
    path(STREAM, &start(STREAM, window))
}

/// Proves that the next page is requested by its address, that reading stops at an address that was read already, and that an address of
/// another host is not followed. What is missing then is stated.
#[test]
fn pages_are_followed_by_their_address() {
    let page = fixture(UPSTREAM, "fda_ordinary").unwrap();
    let next = page.next.unwrap();
    assert_eq!(
        path(STREAM, &next),
        "/api/v1/documents.json?conditions%5Bterm%5D=%22x%22&format=json&order=newest&page=2&per_page=100&search_after_cursor=abc"
    );
    let body = std::fs::read(folder(UPSTREAM).join("fda_ordinary.json")).unwrap();
    let again = map_at(STREAM, &next, &ok(body)).unwrap();
    assert!(again.next.is_none() && again.incomplete.is_some(), "{:?}", again.incomplete);
    let elsewhere = fixture(UPSTREAM, "fda_next_page_elsewhere").unwrap();
    assert!(elsewhere.next.is_none() && elsewhere.incomplete.is_some() && elsewhere.observations.len() == 1);
    assert!(fixture(UPSTREAM, "fda_last_page_short").unwrap().incomplete.is_some());
}

/// Proves that no hits are an empty window, that an answer without a list is refused, and that a text about dates is kept as it is.
#[test]
fn empty_is_not_missing() {
    let empty = fixture(UPSTREAM, "fda_empty").unwrap();
    assert!(empty.observations.is_empty() && empty.next.is_none() && empty.incomplete.is_none());
    for case in ["fda_results_missing", "fda_broken", "fda_bot_wall"] {
        assert!(matches!(fixture(UPSTREAM, case), Err(UpstreamError::Later { .. })), "{case}");
    }
    let page = fixture(UPSTREAM, "fda_ordinary").unwrap();
    let facts = meetings(&page);
    assert_eq!(facts[2].dates, "Comments due by  June 30, 2026\n");
    assert_eq!((facts[1].dates.as_str(), facts[1].docket_ids.join(",")), ("", "FDA-2026-N-10,FDA-2026-N-9".to_owned()));
    assert_eq!(fixture(UPSTREAM, "fda_no_number_and_no_day").unwrap().rejects.len(), 3);
}
