//! Building permits of Chicago: requests, the mapping of answers, and paging.

use schemas::facts::FactData;
use schemas::facts::permits::PermitFact;
use serde_json::{Value, json};
use upstreams::{UpstreamError, Window};

use crate::common::*;

const STREAM: &str = "chicago.permits";

fn permits(page: &upstreams::Page) -> Vec<&PermitFact> {
    let permit = |observation: &'_ upstreams::Observation| matches!(observation.data, FactData::Permit(_));
    assert!(page.observations.iter().all(permit));
    page.observations
        .iter()
        .filter_map(|observation| if let FactData::Permit(fact) = &observation.data { Some(&**fact) } else { None })
        .collect()
}

fixture_tests!("chicago");

/// Proves that a daily run asks for the days of its window, a full one for five years, and that no contact is requested.
#[test]
fn requests() {
    let daily = path(STREAM, &start(STREAM, &window()));
    assert!(
        daily.starts_with("/resource/ydr8-5enu.json?")
            && daily.contains("issue_date%20%3E%3D%20%272026-01-01T00%3A00%3A00%27&$order=id&$limit=5000"),
        "{daily}"
    );
    let full = path(STREAM, &start(STREAM, &Window { from: None, to: TODAY }));
    assert!(full.contains("%272021-09-"), "{full}");
    assert!(!daily.contains("contact") && !daily.contains("name%2Ccity"), "{daily}");
}

/// Proves that one row becomes a fact for each of its parcels, once, and that a row without a parcel is kept.
#[test]
fn a_permit_on_many_parcels() {
    let page = fixture("chicago", "permits_ordinary").unwrap();
    let keys: Vec<&str> = page.observations.iter().map(|observation| &*observation.key).collect();
    assert_eq!(
        keys,
        [
            "chicago.permits/16012160010000/100987654",
            "chicago.permits/16012160020000/100987654",
            "chicago.permits/16012160030000/101000001",
            "chicago.permits/none/101000002",
        ]
    );
    let facts = permits(&page);
    assert_eq!(
        facts.iter().map(|fact| (fact.is_pin_padded, fact.parcels)).collect::<Vec<_>>(),
        [(false, Some(2)), (true, Some(2)), (false, None), (false, None)]
    );
    assert_eq!((&*facts[0].description, facts[2].amount), ("ERECT 4 STORY MIXED USE BUILDING CONTACT", None));
}

/// Proves that a run reads every permit once over several pages, and that a page that begins again with its last row stops the stream.
#[test]
fn pages_follow_the_last_row() {
    let rows: Vec<Value> = (0..12_000)
        .map(|at| json!({"id": format!("{:07}", 3_000_000 + at), "permit_": format!("{}", 100_000_000 + at), "permit_type": "PERMIT - SIGNS", "issue_date": "2026-08-21T00:00:00.000"}))
        .collect();
    let (mut cursor, mut read) = (Some(start(STREAM, &window())), Vec::new());
    let mut pages = 0;
    while let Some(at) = cursor {
        pages += 1;
        let place: Value = serde_json::from_str(&at.0).unwrap();
        let after = place["after"][0].as_str().unwrap_or_default().to_owned();
        let page: Vec<&Value> = rows.iter().filter(|row| row["id"].as_str().unwrap() > &*after).take(5_000).collect();
        let page = map_at(STREAM, &at, &ok(serde_json::to_vec(&page).unwrap())).unwrap();
        read.extend(page.observations.into_iter().map(|observation| observation.key));
        cursor = page.next;
    }
    read.sort_unstable();
    read.dedup();
    assert_eq!((pages, read.len()), (3, 12_000));
    let first: Vec<&Value> = rows.iter().take(5_000).collect();
    let body = serde_json::to_vec(&first).unwrap();
    let second = map(STREAM, body.clone()).unwrap().next.unwrap();
    assert!(matches!(map_at(STREAM, &second, &ok(body)), Err(UpstreamError::Stop { field, .. }) if field == "$where"));
}

/// Proves that a column that vanishes from the rows stops the stream with its name.
#[test]
fn a_vanished_column_is_named() {
    let rows: Vec<Value> =
        (0..50).map(|at| json!({"id": format!("{at}"), "permit_": format!("{at}"), "permit_type": "PERMIT - SIGNS"})).collect();
    assert!(matches!(map(STREAM, serde_json::to_vec(&rows).unwrap()), Err(UpstreamError::Stop { field, .. }) if field == "issue_date"));
}
