//! Parcels of Cook County: requests, the mapping of answers, and how a run goes from township to township.

use std::collections::BTreeMap;

use schemas::position::UpstreamCursor;
use serde_json::{Value, json};
use upstreams::{UpstreamError, Window};

use crate::common::*;

fixture_tests!("cook");

/// Proves what is requested of each dataset: the years, the first township, pages by `row_id` or by PIN and year, and nothing about persons.
#[test]
fn requests() {
    for (stream, parts) in [
        (
            "cook.values",
            &["/resource/uzyt-m557.json", "year%20%3E%3D%20%272024%27%20AND%20township_code%20%3D%20%2710%27", "$order=row_id"][..],
        ),
        ("cook.sales", &["/resource/wvhk-k5uv.json", "sale_date%20%3E%3D%20%272021-01-01T00%3A00%3A00%27%20AND%20township_code"]),
        ("cook.universe", &["/resource/pabr-t5kh.json", "$where=year%20%3E%3D%20%272025%27&", "$limit=5000"]),
        ("cook.appeals", &["/resource/y282-6ig3.json", "$where=year%20%3E%3D%20%272023%27&"]),
        (
            "cook.exempt",
            &["/resource/vgzx-68gb.json", "$where=year%20%3E%3D%20%272025%27&", "$select=pin%2Cyear%2Cclass&", "$order=pin%2Cyear&"],
        ),
        ("cook.permits", &["/resource/6yjf-dfxs.json", "$where=date_issued%20%3E%3D%20%272021-01-01T00%3A00%3A00%27&", "$order=row_id"]),
        ("cook.addresses", &["/resource/3723-97qp.json", "$where=year%20%3E%3D%20%272025%27&"]),
    ] {
        let path = path(stream, &start(stream, &window()));
        assert!(parts.iter().all(|part| path.contains(part)), "{path}");
        for private in ["owner", "mail_address", "buyer", "seller", "agent", "applicant", "mailing", "name"] {
            assert!(!path.replace("township_name", "").replace("city_name", "").contains(private), "{private} in {path}");
        }
    }
}

/// Proves which facts permits become: one for each parcel, with the day in its key, since a number is used again; and a permit without a number has that of the
/// city, or a hash.
#[test]
fn permits() {
    let keys = |case: &str| fixture("cook", case).unwrap().observations.into_iter().map(|observation| observation.key).collect::<Vec<_>>();
    let ordinary = keys("permits_ordinary");
    assert_eq!(ordinary[..2], ["cook.permits/16012160010000/2026-000123/2026-03-02", "cook.permits/01012160010000/B-77/2025-07-01"]);
    let hashed: Vec<&str> = ordinary[2].split('/').collect();
    assert_eq!((hashed[1], hashed[2].len(), hashed[3]), ("16012160020000", 16, "2024-05-06"));
    assert_eq!(
        keys("permits_pins"),
        [
            "cook.permits/16012160010000/P10/2026-01-05",
            "cook.permits/16012160020000/P11/2026-01-06",
            "cook.permits/16012160030000/P11/2026-01-06",
            "cook.permits/16012160040000/P11/2026-01-06",
            "cook.permits/none/P12/2026-01-07",
            "cook.permits/16012160010000/P13 a/none",
        ]
    );
    let rejected = fixture("cook", "permits_rejected").unwrap();
    assert_eq!((rejected.observations.len(), rejected.rejects.len()), (0, 3));
    for reject in rejected.rejects {
        let raw = String::from_utf8(reject.raw).unwrap();
        assert!(!raw.contains("MAIN ST") && !raw.contains("PAT"), "{raw}");
    }
}

/// Proves that the table of exempt parcels, of which no `row_id` is requested, is read in pages by PIN and year, each row once, also where the year is a number;
/// and that a run which an earlier version interrupted begins again.
#[test]
fn exempt_parcels_are_paged_by_pin_and_year() {
    const EXEMPT: &str = "cook.exempt";
    let rows: Vec<Value> = (0..6_000).map(|at| json!({"pin": format!("16{:012}", at / 2), "year": 2025 + at % 2, "class": "EX"})).collect();
    let (mut cursor, mut paths, mut keys) = (Some(start(EXEMPT, &window())), Vec::new(), BTreeMap::<String, usize>::new());
    while let Some(at) = cursor {
        paths.push(path(EXEMPT, &at));
        let place: Value = serde_json::from_str(&at.0).unwrap();
        let after = |column: usize| place["after"][column].as_str().unwrap_or_default().to_owned();
        let is_after = |row: &&Value| (row["pin"].as_str().unwrap().to_owned(), row["year"].to_string()) > (after(0), after(1));
        let page: Vec<&Value> = rows.iter().filter(is_after).take(5_000).collect();
        let page = map_at(EXEMPT, &at, &ok(serde_json::to_vec(&page).unwrap())).unwrap();
        assert!(page.rejects.is_empty(), "{:?}", page.rejects.len());
        for observation in page.observations {
            *keys.entry(observation.key).or_default() += 1;
        }
        cursor = page.next;
    }
    assert_eq!((paths.len(), keys.len()), (2, 6_000));
    assert!(keys.values().all(|times| *times == 1) && keys.contains_key("cook.exempt/160000000000002025"));
    assert!(paths[1].contains("pin%20%3E%20%2716000000002499%27%29%20OR%20%28pin%20%3D%20"), "{}", paths[1]);
    assert!(paths[1].contains("AND%20year%20%3E%20%272026%27"), "{}", paths[1]);
    let mut earlier: Value = serde_json::from_str(&start(EXEMPT, &window()).0).unwrap();
    earlier["after"] = json!(["160121600100002026"]);
    let earlier = UpstreamCursor(earlier.to_string());
    assert!(!path(EXEMPT, &earlier).contains("160121600100002026"));
}

/// A row of values: its number within the township, and the neighbourhood.
fn row(township: &str, number: usize, neighborhood: &str) -> Value {
    let pin = format!("{township}{number:012}");
    json!({"row_id": format!("{pin}2026"), "pin": pin, "year": "2026", "class": "517", "township_code": township, "nbhd": neighborhood, "mailed_tot": "50000"})
}

/// Proves that a run reads each township once, in pages, that an interrupted run continues with what it counted, and that each township ends with the facts of
/// its cycles.
#[test]
fn townships_are_read_in_pages() {
    let rows: Vec<Value> = (0..12_000).map(|at| row("11", at, if at < 7_000 { "010" } else { "020" })).collect();
    let (mut cursor, mut requests, mut read) = (Some(start("cook.values", &window())), 0, BTreeMap::<String, usize>::new());
    while let Some(at) = cursor {
        requests += 1;
        let request = path("cook.values", &at);
        let place: Value = serde_json::from_str(&at.0).unwrap();
        let after = place["after"][0].as_str().unwrap_or_default();
        let is_eleven = request.contains("township_code%20%3D%20%2711%27");
        let page: Vec<&Value> = rows.iter().filter(|row| is_eleven && row["row_id"].as_str().unwrap() > after).take(5_000).collect();
        let page = map_at("cook.values", &at, &ok(serde_json::to_vec(&page).unwrap())).unwrap();
        for observation in page.observations {
            *read.entry(observation.key).or_default() += 1;
        }
        assert!(page.next.as_ref().is_none_or(|next| next.0.len() < 4_000));
        cursor = page.next;
    }
    assert_eq!((requests, read.len()), (38 + 2, 12_000 + 3));
    let cycles: Vec<&String> = read.keys().filter(|key| key.contains("cycle")).collect();
    assert_eq!(cycles, ["cook.values/cycle/11", "cook.values/cycle/11/010", "cook.values/cycle/11/020"]);
    assert!(read.values().all(|times| *times == 1));
}

/// Proves that a run over sales ends each township with the fact that it was read, also a township without sales.
#[test]
fn townships_of_sales_are_marked() {
    let mut marked = 0;
    let window = Window { from: None, to: TODAY };
    let (mut cursor, mut paths) = (Some(start("cook.sales", &window)), Vec::new());
    while let Some(at) = cursor {
        paths.push(path("cook.sales", &at));
        let page = map_at("cook.sales", &at, &ok("[]")).unwrap();
        marked += page.observations.iter().filter(|observation| observation.key.starts_with("cook.sales/read/")).count();
        cursor = page.next;
    }
    paths.dedup();
    assert_eq!((paths.len(), marked), (38, 38));
}

/// Proves that a column that vanishes from the rows stops the stream with its name.
#[test]
fn a_vanished_column_is_named() {
    let rows: Vec<Value> = (0..50)
        .map(|at| {
            let mut row = row("10", at, "010");
            row.as_object_mut().unwrap().remove("nbhd");
            row
        })
        .collect();
    let gone = map("cook.values", serde_json::to_vec(&rows).unwrap());
    assert!(matches!(gone, Err(UpstreamError::Stop { field, .. }) if field == "nbhd"));
}
