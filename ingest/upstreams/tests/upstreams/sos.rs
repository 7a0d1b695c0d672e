//! Registers of businesses of states: requests, and the mapping of answers.

use std::collections::BTreeSet;

use jiff::civil::date;
use serde_json::{Value, json};
use upstreams::{UpstreamError, Window};

use crate::common::*;

/// Proves that every fixture is mapped to its expected result.
#[test]
fn fixtures_give_what_is_expected() {
    check_all("sos");
}

/// Proves that a damaged answer never makes the mapping panic or return records without identity.
#[test]
fn damage_gives_pages_or_errors() {
    mutate_all("sos");
}

/// Proves that registers are asked for the days of a window, Oregon's list as a whole, and that nothing about agents and persons is requested.
#[test]
fn requests() {
    let window = Window { from: Some(date(2026, 9, 16)), to: TODAY };
    for (stream, part) in [
        ("sos.co", "$where=entityformdate%20%3E%3D%20%272026-09-16T00%3A00%3A00%27"),
        ("sos.ct", "$where=date_registration%20%3E%3D%20%272026-09-16T00%3A00%3A00%27"),
        ("sos.ny", "$where=filing_date%20%3E%3D%20%272026-09-16T00%3A00%3A00%27"),
        ("sos.or", "$order=registry_number%2C%3Aid&$limit=1000"),
    ] {
        let path = path(stream, &start(stream, &window));
        assert!(path.contains(part), "{path}");
        assert!(stream != "sos.or" || !path.contains("$where"), "{path}");
        for private in ["agent", "sop_", "filer", "first_name", "last_name", "email", "phone"] {
            assert!(!path.contains(private), "{private} in {path}");
        }
    }
}

/// Proves that an entity whose rows are on two pages is read once, with all of its rows: exactly a page of rows is followed by another, which begins before the
/// rows of the last entity.
#[test]
fn entities_with_rows_on_two_pages() {
    let roles = ["MAILING ADDRESS", "REGISTERED AGENT", "PRINCIPAL PLACE OF BUSINESS"];
    let rows: Vec<Value> = (0..1_200_u32)
        .map(|at| {
            json!({":id": format!("row-{at:05}"), "registry_number": format!("{:05}", at / 3), "business_name": "A LLC", "entity_type": "DOMESTIC LIMITED LIABILITY COMPANY",
                "registry_date": "2026-08-29T16:53:25.000", "associated_name_type": roles[at as usize % 3], "address_": format!("{at} ST"), "city": "SALEM", "state": "OR", "zip_code": "97301"})
        })
        .collect();
    let stream = "sos.or";
    let (mut cursor, mut read, mut pages) = (Some(start(stream, &window())), Vec::new(), 0);
    while let Some(at) = cursor {
        let place: Value = serde_json::from_str(&at.0).unwrap();
        let after = place["after"][1].as_str().unwrap_or_default();
        let page: Vec<&Value> = rows.iter().filter(|row| row[":id"].as_str().unwrap() > after).take(1_000).collect();
        let page = map_at(stream, &at, &ok(serde_json::to_vec(&page).unwrap())).unwrap();
        read.extend(page.observations);
        cursor = page.next;
        pages += 1;
    }
    let keys: BTreeSet<&str> = read.iter().map(|observation| observation.key.as_str()).collect();
    assert_eq!((pages, read.len(), keys.len()), (2, 400, 400));
    for observation in &read {
        let fact = serde_json::to_value(&observation.data).unwrap();
        let number: u32 = fact["entity"].as_str().unwrap().parse().unwrap();
        assert_eq!(fact["street"], format!("{} ST", number * 3 + 2), "the principal place of business");
    }
    let endless: Vec<Value> = rows
        .iter()
        .take(1_000)
        .map(|row| {
            let mut row = row.clone();
            row["registry_number"] = json!("1");
            row
        })
        .collect();
    let refused = map(stream, serde_json::to_vec(&endless).unwrap());
    assert!(matches!(refused, Err(UpstreamError::Stop { field, .. }) if field == "registry_number"));
}

/// Proves that the reason of a rejected row has the name of the column in its register, and that the row is stored without street and ZIP code.
#[test]
fn rejected_rows_name_their_columns() {
    let rows = [
        (
            "sos.co",
            json!({"entityid": "1", "entityname": "A LLC", "principaladdress1": "5 HOME LN", "principalcity": "Denver", "principalzipcode": "802031234"}),
            "entityformdate is absent or no day; not stored: principaladdress1, principalzipcode",
        ),
        (
            "sos.ct",
            json!({"accountnumber": "1", "billingcity": "Hartford", "billingpostalcode": "061030001", "billingstreet": "5 HOME LN"}),
            "name is absent; not stored: billingpostalcode, billingstreet",
        ),
        ("sos.ny", json!({"film_num": "1", "filer_name": "PAT EXAMPLE"}), "dos_id is absent; not stored: filer_name"),
        ("sos.ny", json!({"dos_id": "1"}), "film_num is absent"),
        (
            "sos.or",
            json!({"address_": "5 HOME LN", "first_name": "PAT", "registry_number": "1", "zip_code": "97301"}),
            "business_name is absent; not stored: address_, first_name, zip_code",
        ),
    ];
    for (stream, row, reason) in rows {
        let page = map(stream, json!([row]).to_string()).unwrap();
        let reject = &page.rejects[0];
        assert_eq!((page.rejects.len(), reject.reason.as_str()), (1, reason), "{stream}");
        let stored = String::from_utf8_lossy(&reject.raw);
        assert!(["HOME", "PAT", "97301", "061030001", "802031234"].iter().all(|text| !stored.contains(text)), "{stored}");
        serde_json::from_str::<Value>(&stored).unwrap();
    }
}

/// Proves that no ZIP code names a block, and that no street is stored of an entity whose type is not known.
#[test]
fn streets_and_zip_codes_of_persons() {
    let row = |number: &str, kind: &str| {
        json!({":id": number, "entityid": number, "entityname": "A", "entitytype": kind, "entityformdate": "2026-09-16T00:00:00.000",
            "principaladdress1": "5 HOME LN", "principalcity": "Denver", "principalzipcode": "80203-1234"})
    };
    let page = map("sos.co", json!([row("1", "DLLC"), row("2", "")]).to_string()).unwrap();
    let facts: Vec<Value> = page.observations.iter().map(|observation| serde_json::to_value(&observation.data).unwrap()).collect();
    assert_eq!((&facts[0]["street"], &facts[0]["zip"]), (&json!("5 HOME LN"), &json!("80203")));
    assert_eq!((&facts[1]["street"], &facts[1]["zip"]), (&json!(""), &json!("80203")));
}

/// Proves that a misspelt column that vanishes stops its register with the name.
#[test]
fn a_vanished_column_is_named() {
    let rows: Vec<Value> = (0..50)
        .map(|at| json!({":id": format!("row-{at}"), "entityid": at.to_string(), "entityname": "A LLC", "entitytype": "DLLC", "entityformdate": "2026-09-16T00:00:00.000"}))
        .collect();
    let gone = map("sos.co", serde_json::to_vec(&rows).unwrap());
    assert!(matches!(gone, Err(UpstreamError::Stop { field, .. }) if field == "jurisdictonofformation"));
}
