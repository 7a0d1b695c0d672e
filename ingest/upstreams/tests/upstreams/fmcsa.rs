//! Motor carriers: requests, look-ups, and the mapping of answers.

use std::collections::BTreeSet;

use jiff::civil::date;
use schemas::facts::FactData;
use schemas::facts::carriers::CarrierFact;
use schemas::position::UpstreamCursor;
use serde_json::{Value, json};
use upstreams::{Observation, UpstreamError, Window};

use crate::common::*;

const CENSUS: &str = "fmcsa.census";
const CANCELLATIONS: &str = "fmcsa.cancellations";

/// Returns the carrier of an observation.
pub(crate) fn carrier(observation: &Observation) -> &CarrierFact {
    let FactData::Carrier(fact) = &observation.data else { panic!("{observation:?}") };
    fact
}

fn new_carrier(dot: u32) -> Value {
    json!({"dot_number": dot.to_string(), "legal_name": "A LLC", "phy_state": "CO", "add_date": "20260918", "carrier_operation": "A", "classdef": "AUTHORIZED FOR HIRE"})
}

fixture_tests!("fmcsa");

/// Proves that a run reads the days of its window, never the whole census, and that no column with a phone number, an e-mail address, an officer or a tax
/// number is requested.
#[test]
fn requests() {
    let first = |window: Window| path(CENSUS, &start(CENSUS, &window));
    let of_window = first(Window { from: Some(date(2026, 9, 16)), to: TODAY });
    assert!(of_window.starts_with("/resource/az4n-8mr2.json?$select=dot_number%2Clegal_name%2C"), "{of_window}");
    assert!(of_window.contains("$where=add_date%20%3E%3D%20%2720260916%27&$order=add_date%2Cdot_number&$limit=1000"), "{of_window}");
    assert!(first(Window { from: None, to: TODAY }).contains("%2720260831%27"), "a first run reads 30 days");
    for stream in [CENSUS, "fmcsa.authority", CANCELLATIONS] {
        let requested = path(stream, &start(stream, &window()));
        for private in ["phone", "email", "officer", "ein", "fax"] {
            assert!(!requested.contains(private), "{private} in {requested}");
        }
    }
}

/// Proves that a page of exactly as many rows as were asked for is followed by another, which begins after its last row, and that an empty one ends the run.
#[test]
fn a_full_page_is_not_the_last() {
    let page = |numbers: std::ops::Range<u32>| ok(serde_json::to_vec(&numbers.map(new_carrier).collect::<Vec<_>>()).unwrap());
    let paths = walk(CENSUS, &window(), |path| if path.contains("dot_number%20%3E%20") { ok("[]") } else { page(1..1_001) });
    assert_eq!(paths.len(), 2);
    assert!(paths[1].contains("add_date%20%3D%20%2720260918%27%20AND%20dot_number%20%3E%201000"), "{}", paths[1]);
    assert_eq!(walk(CENSUS, &window(), |_| page(1..1_000)).len(), 1);
    // A server that ignores the condition is not asked for ever.
    let first = page(1..1_001);
    let next = map_at(CENSUS, &start(CENSUS, &window()), &first).unwrap().next.unwrap();
    assert!(matches!(map_at(CENSUS, &next, &first), Err(UpstreamError::Stop { field, .. }) if field == "$where"));
}

/// Proves that the carriers of cancelled filings are looked up in the census, among the filings in force and among the amounts on file, in both spellings of
/// their numbers; and what the rows become.
#[test]
fn cancelled_filings_are_looked_up() {
    let mut facts: Vec<(String, CarrierFact)> = Vec::new();
    let mut cursor = Some(start(CANCELLATIONS, &window()));
    let mut paths = Vec::new();
    while let Some(at) = cursor {
        paths.push(path(CANCELLATIONS, &at));
        let rows = match paths.len() {
            1 => {
                json!([{":id": "row-a", "usdot_number": "00344554", "docket_number": "MC1", "ins_form_code": "BMC-91X", "policy_no": "S-1", "effective_date": "20250925", "cancl_effective_date": "20261025"}])
            }
            2 => {
                json!([{"dot_number": "344554", "legal_name": "OLD LLC", "phy_state": "CO", "add_date": "20190101", "carrier_operation": "A", "classdef": "AUTHORIZED FOR HIRE"}])
            }
            3 => json!([{"usdot_number": "344554", "ins_form_code": "BMC-91X", "policy_no": "S1", "effective_date": "20250925"}]),
            _ => {
                json!([{"usdot_number": "344554", "docket_number": "MC1", "op_auth_type": "Motor Carrier of Property", "min_cov_amount": "750000", "bipd_file": "00000"}])
            }
        };
        let page = map_at(CANCELLATIONS, &at, &ok(rows.to_string())).unwrap();
        assert_eq!(page.rejects, []);
        facts.extend(page.observations.iter().map(|observation| (observation.key.clone(), carrier(observation).clone())));
        cursor = page.next;
    }
    assert_eq!(paths.len(), 4);
    assert!(paths[1].starts_with("/resource/az4n-8mr2.json") && paths[1].contains("dot_number%20in%28344554%29"), "{}", paths[1]);
    for (path, dataset) in [(&paths[2], "c5y8-a4uz"), (&paths[3], "inys-ebih")] {
        assert!(path.contains(dataset) && path.contains("usdot_number%20in%28%27344554%27%2C%2700344554%27%29"), "{path}");
    }
    let keys: Vec<&str> = facts.iter().map(|(key, _)| key.as_str()).collect();
    assert_eq!(
        keys,
        [
            "fmcsa.cancellations/344554|BMC-91X|S1|2026-10-25",
            "fmcsa.cancellations/carrier/344554",
            "fmcsa.cancellations/filing/344554|BMC-91X|S1|2025-09-25",
            "fmcsa.cancellations/on_file/344554|MC1|Motor Carrier of Property",
        ]
    );
    assert!(facts.iter().all(|(_, fact)| fact.dot == "344554"));
    assert_eq!((&*facts[3].1.bipd_on_file, &*facts[3].1.bipd_required), ("0", "750000"));
}

/// Proves that the carriers of authorities are looked up in the census and among the amounts that dockets require, and not among the filings; and that
/// brokers and forwarders, of which no liability insurance is required, are no sign that the column vanished.
#[test]
fn authorities_are_looked_up() {
    const AUTHORITY: &str = "fmcsa.authority";
    let (mut facts, mut asked): (Vec<(String, CarrierFact)>, Vec<&str>) = (Vec::new(), Vec::new());
    let mut cursor = Some(start(AUTHORITY, &window()));
    while let Some(at) = cursor {
        let path = path(AUTHORITY, &at);
        let dataset = ["yu5v-wbh6", "az4n-8mr2", "inys-ebih"].into_iter().find(|dataset| path.contains(dataset)).unwrap();
        asked.push(dataset);
        let rows = match dataset {
            "yu5v-wbh6" => {
                json!([{":id": "row-a", "usdot_number": "344554", "docket_number": "MC1", "op_auth_type": "Motor Carrier of Property", "op_auth_status": "Active", "reason": "GRANTED", "status_change_date": "20260925"}])
            }
            "az4n-8mr2" => json!([new_carrier(344_554)]),
            _ => {
                json!([{"usdot_number": "00344554", "docket_number": "MC-1", "op_auth_type": "Motor Carrier of Property", "min_cov_amount": "300000", "bipd_file": "300000"},
                    {"usdot_number": "344554", "docket_number": "MC2", "op_auth_type": "Broker of Property", "bond_file": "Y"},
                    {"usdot_number": "344554", "docket_number": "FF3", "op_auth_type": "Freight Forwarder", "bond_file": "N"}])
            }
        };
        let page = map_at(AUTHORITY, &at, &ok(rows.to_string())).unwrap();
        assert_eq!(page.rejects, []);
        facts.extend(page.observations.iter().map(|observation| (observation.key.clone(), carrier(observation).clone())));
        cursor = page.next;
    }
    assert_eq!(asked, ["yu5v-wbh6", "az4n-8mr2", "inys-ebih"]);
    assert_eq!(facts.len(), 5);
    let (key, amounts) = &facts[2];
    assert_eq!((&**key, &*amounts.docket), ("fmcsa.authority/on_file/344554|MC1|Motor Carrier of Property", "MC1"));
    assert_eq!((&*amounts.stream, &*amounts.bipd_required), (AUTHORITY, "300000"));
}

/// Proves that a look-up whose answer has as many rows as were asked for takes none of them and is repeated with half of the carriers, until the answers are
/// whole; that a single carrier with so many rows is rejected and no filing of it is taken; and that every other carrier is looked up.
#[test]
fn look_ups_with_too_many_rows_are_halved() {
    let carriers: Vec<String> = (1..=120).map(|dot: u32| dot.to_string()).collect();
    let crowded = "77";
    let mut cursor = Some(UpstreamCursor(json!({"v": 1, "from": "2026-09-01", "step": "carriers", "carriers": carriers}).to_string()));
    let (mut asked, mut rejected, mut amounts, mut filings) = (Vec::new(), Vec::new(), BTreeSet::new(), 0);
    while let Some(at) = cursor {
        let path = path(CANCELLATIONS, &at);
        let list = path.split("%20in%28").nth(1).and_then(|rest| rest.split("%29").next()).unwrap();
        let dots: BTreeSet<String> = list.split("%2C").map(|dot| dot.replace("%27", "").trim_start_matches('0').to_owned()).collect();
        let rows: Vec<Value> = if path.contains("c5y8-a4uz") {
            asked.push(dots.len());
            let filing = |dot: &String| -> Vec<Value> {
                let filing_of = |policy: u32| json!({"usdot_number": dot, "ins_form_code": "BMC-91X", "policy_no": policy.to_string(), "effective_date": "20250925"});
                (0..if dot == crowded { 10_000 } else { 1 }).map(filing_of).collect()
            };
            dots.iter().flat_map(filing).take(10_000).collect()
        } else if path.contains("inys-ebih") {
            dots.iter().map(|dot| json!({"usdot_number": dot, "docket_number": "MC1", "op_auth_type": "A", "bipd_file": "0"})).collect()
        } else {
            Vec::new()
        };
        let page = map_at(CANCELLATIONS, &at, &ok(serde_json::to_vec(&rows).unwrap())).unwrap();
        rejected.extend(page.rejects.iter().map(|reject| (reject.reference.clone(), reject.reason.contains("c5y8-a4uz"))));
        for fact in page.observations.iter().map(carrier) {
            assert_ne!(fact.dot, crowded);
            if fact.kind == "on_file" {
                amounts.insert(fact.dot.clone());
            } else {
                filings += 1;
            }
        }
        cursor = page.next;
        assert!(asked.len() < 40, "{asked:?}");
    }
    assert_eq!(rejected, [(crowded.to_owned(), true)]);
    assert_eq!((amounts.len(), filings), (119, 119));
    assert!(asked.starts_with(&[50, 50, 25]) && asked.contains(&1), "{asked:?}");
}

/// Proves that a rejected row is stored without street and ZIP code, and says so; of a company as well, since it is not known what it is.
#[test]
fn rejected_rows_have_no_street() {
    let mut row = new_carrier(4_312_345);
    for (name, value) in
        [("legal_name", ""), ("phone", "5555550100"), ("phy_city", "DENVER"), ("phy_street", "9 HOME LN"), ("phy_zip", "802031234")]
    {
        row[name] = value.into();
    }
    let page = map(CENSUS, json!([row]).to_string()).unwrap();
    let reject = &page.rejects[0];
    assert_eq!(reject.reason, "legal_name is absent; not stored: phone, phy_street, phy_zip");
    let stored: Value = serde_json::from_slice(&reject.raw).unwrap();
    assert_eq!((&stored["phy_city"], &stored["dot_number"]), (&json!("DENVER"), &json!("4312345")));
    assert!(["phone", "phy_street", "phy_zip"].iter().all(|name| stored.get(name).is_none()), "{stored}");
}

/// Proves that a column that vanishes stops the stream with its name, whether the dataset refuses it or leaves it out.
#[test]
fn a_vanished_column_is_named() {
    let rows: Vec<Value> = (1..50)
        .map(|dot| {
            let mut row = new_carrier(dot);
            row.as_object_mut().unwrap().remove("classdef");
            row
        })
        .collect();
    let gone = map(CENSUS, serde_json::to_vec(&rows).unwrap());
    assert!(matches!(gone, Err(UpstreamError::Stop { field, .. }) if field == "classdef"));
    let body = r#"{"message":"No such column: classdef","errorCode":"query.soql.no-such-column","data":{"column":"classdef"}}"#;
    let refused = map_at(CENSUS, &start(CENSUS, &window()), &upstreams::Answer { status: 400, ..ok(body) });
    assert!(matches!(refused, Err(UpstreamError::Stop { field, .. }) if field == "classdef"));
}
