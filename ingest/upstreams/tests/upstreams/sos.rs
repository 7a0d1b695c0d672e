//! Registers of businesses of states: requests, and the mapping of answers.

use std::collections::BTreeSet;
use std::fs::File;
use std::io::{Cursor, Write as _};

use jiff::Timestamp;
use jiff::civil::date;
use schemas::position::UpstreamCursor;
use serde_json::{Value, json};
use upstreams::{FilePages, Page, Settings, UpstreamError, Window};
use zip::ZipWriter;
use zip::write::SimpleFileOptions;

use crate::common::*;

fixture_tests!("sos");

/// Proves that registers are asked for the days of a window, Oregon's list as a whole, and that nothing about agents and persons is requested.
#[test]
fn requests() {
    let window = Window { from: Some(date(2026, 9, 16)), to: TODAY };
    for (stream, part) in [
        ("sos.co", "$where=entityformdate%20%3E%3D%20%272026-09-16T00%3A00%3A00%27"),
        ("sos.ct", "$where=date_registration%20%3E%3D%20%272026-09-16T00%3A00%3A00%27"),
        ("sos.ny", "$where=filing_date%20%3E%3D%20%272026-09-16T00%3A00%3A00%27"),
        ("sos.or", "$order=registry_number%2C%3Aid&$limit=1000"),
        ("sos.ia", "/api/v1/datasets/554/rows.json"),
    ] {
        let path = path(stream, &start(stream, &window));
        assert!(path.contains(part), "{path}");
        assert!(!["sos.ia", "sos.or"].contains(&stream) || !path.contains("$where"), "{path}");
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
            "entityformdate is absent or not a day; not stored: principaladdress1, principalzipcode",
        ),
        (
            "sos.ct",
            json!({"accountnumber": "1", "billingcity": "Hartford", "billingpostalcode": "061030001", "billingstreet": "5 HOME LN"}),
            "name is absent; not stored: billingpostalcode, billingstreet",
        ),
        ("sos.ny", json!({"film_num": "1", "filer_name": "PAT EXAMPLE"}), "dos_id is absent; not stored: filer_name"),
        ("sos.ny", json!({"dos_id": "1"}), "film_num is absent"),
        (
            "sos.ia",
            json!({"corp_number": 812_345, "ho_address_1": "5 HOME LN", "ho_zip": "50309", "legal_name": "A LLC", "registered_agent": "PAT EXAMPLE"}),
            "effective_date is absent or not a day; not stored: ho_address_1, ho_zip, registered_agent",
        ),
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
        assert!(["HOME", "PAT", "50309", "97301", "061030001", "802031234"].iter().all(|text| !stored.contains(text)), "{stored}");
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

/// The first second of the fixtures' day.
const AT: i64 = 1_790_726_400;

/// A row of Iowa's file.
fn iowa(number: u32, day: &str) -> Value {
    json!({"corp_number": number, "legal_name": format!("HAWKEYE {number} LLC"), "corporation_type": "DOMESTIC LIMITED LIABILITY COMPANY",
        "effective_date": day, "registered_agent": "EXAMPLE AGENTS INC", "ra_address_1": "312 CARTER ST", "ra_location": "POINT(-95.36 40.76)",
        "ho_address_1": "312 EAST CARTER STREET", "ho_city": "DES MOINES", "ho_state": "IA", "ho_zip": "50309"})
}

/// An archive as Iowa sends it: one stored file of zip64, whose length and checksum stand after its content only.
fn archive(text: &str) -> Vec<u8> {
    let mut writer = ZipWriter::new_stream(Cursor::new(Vec::new()));
    let options = SimpleFileOptions::default().compression_method(zip::CompressionMethod::Stored).large_file(true);
    writer.start_file("Active_Iowa_Business_Entities.json", options).unwrap();
    writer.write_all(text.as_bytes()).unwrap();
    writer.finish().unwrap().into_inner().into_inner()
}

fn on_disk(bytes: &[u8]) -> File {
    let mut file = tempfile::tempfile().unwrap();
    file.write_all(bytes).unwrap();
    file
}

fn open(bytes: &[u8], cursor: &UpstreamCursor) -> Result<Box<dyn FilePages>, UpstreamError> {
    let (upstream, stream) = stream("sos.ia");
    upstream.open(stream, cursor, on_disk(bytes), Timestamp::from_second(AT).unwrap())
}

/// The rows of a file, each on a line, the last one without an end.
fn lines(rows: &[Value]) -> String {
    rows.iter().map(Value::to_string).collect::<Vec<_>>().join("\n")
}

fn iowa_start() -> UpstreamCursor {
    start("sos.ia", &Window { from: Some(date(2026, 9, 16)), to: TODAY })
}

/// Reads the pages of an archive from a cursor on.
fn read_from(bytes: &[u8], cursor: &UpstreamCursor) -> Vec<Page> {
    let mut file = open(bytes, cursor).unwrap();
    let mut pages = vec![file.next_page().unwrap()];
    while pages.last().unwrap().next.is_some() {
        pages.push(file.next_page().unwrap());
    }
    assert_eq!(file.files_left(), 0);
    pages
}

fn keys(pages: &[Page]) -> Vec<String> {
    pages.iter().flat_map(|page| &page.observations).map(|observation| observation.key.clone()).collect()
}

/// Proves that the archive of Iowa is read without the bytes after its file, with the entities of the last 62 days only, each once; that its newest entity says
/// up to which day it is complete; that the others are present, so that only those that a whole file lacks are missing; and that nothing about agents is
/// taken over.
#[test]
fn the_archive_of_iowa() {
    let mut rows: Vec<Value> = (0..4_500).map(|number| iowa(number, "1987-05-15")).collect();
    rows[10] = iowa(812_345, "2026-09-16");
    rows[11] = iowa(812_345, "2026-09-16");
    rows[2_500] = iowa(812_346, "2026-07-30");
    rows[2_501] = iowa(812_347, "2026-07-29");
    rows[4_400] = iowa(812_348, "2026-12-01");
    rows[4_499] = iowa(812_349, "2026-09-17");
    let bytes = archive(&lines(&rows));
    let pages = read_from(&bytes, &iowa_start());
    assert_eq!(keys(&pages), ["sos.ia/812345", "sos.ia/812346", "sos.ia/812348", "sos.ia/812349"]);
    assert_eq!(pages.iter().map(|page| page.rejects.len()).sum::<usize>(), 0);
    let through: Vec<Option<jiff::civil::Date>> = pages.iter().map(|page| page.through).collect();
    assert_eq!(through, [None, None, Some(date(2026, 9, 17))], "a later day is one of delayed effect");
    let parts = |pages: &[Page]| pages.iter().map(|page| page.complete_part.clone()).collect::<Vec<_>>();
    assert_eq!(parts(&pages), [None, None, Some("sos.ia".to_owned())]);
    let present: Vec<&String> = pages.iter().flat_map(|page| &page.present).collect();
    assert!(present.len() == 4_495 && present.iter().any(|key| *key == "sos.ia/812347"), "{}", present.len());
    let fact = serde_json::to_value(&pages[2].observations[1].data).unwrap();
    let text_of = |name: &str| fact[name].as_str().unwrap();
    assert_eq!(
        ["stream", "entity", "name", "entityType", "day", "street", "city", "zip"].map(text_of),
        [
            "sos.ia",
            "812349",
            "HAWKEYE 812349 LLC",
            "DOMESTIC LIMITED LIABILITY COMPANY",
            "2026-09-17",
            "312 EAST CARTER STREET",
            "DES MOINES",
            "50309"
        ]
    );
    assert!(!fact.to_string().contains("AGENTS"));
    // A run that was interrupted continues at its page.
    let again = read_from(&bytes, pages[0].next.as_ref().unwrap());
    assert_eq!((keys(&again), again[1].through), (keys(&pages[1..]), pages[2].through));
    assert_eq!(parts(&again), [None, None], "it has not seen every entity");
}

/// Proves that rows that are no JSON, that are too long or that lack a field are rejected with the number of the row or of the entity, without what they say,
/// and stop no other row; and that a file of which most rows cannot be read stops the stream.
#[test]
fn rows_of_iowa_that_cannot_be_read() {
    let without = |field: &str| {
        let mut row = iowa(812_346, "2026-09-16");
        row.as_object_mut().unwrap().remove(field);
        row.to_string()
    };
    let long = format!("{{\"legal_name\":\"{}\"}}", "HOME ".repeat(30_000));
    let good = iowa(812_345, "2026-09-16").to_string();
    let text = ["{\"corp_number\":1,\"ho_address_1\":\"5 HOME LN", &without("legal_name"), &long, &good].join("\n");
    let pages = read_from(&archive(&text), &iowa_start());
    assert_eq!(keys(&pages), ["sos.ia/812345"]);
    assert_eq!((&*pages[0].present, &pages[0].complete_part), (&["sos.ia/812346".to_owned()][..], &None));
    assert!(pages[0].warnings[0].contains("2 rows name no entity"), "{:?}", pages[0].warnings);
    // A rejected row that names its entity says that it is in the register.
    let named = read_from(&archive(&[&*without("legal_name"), &good].join("\n")), &iowa_start());
    assert_eq!((&*named[0].present, named[0].complete_part.as_deref()), (&["sos.ia/812346".to_owned()][..], Some("sos.ia")));
    let rejects: Vec<(&str, &str)> = pages[0].rejects.iter().map(|reject| (&*reject.reference, &*reject.reason)).collect();
    assert_eq!(rejects.len(), 3);
    assert!(
        rejects[0].0 == "row 1" && rejects[0].1.starts_with("the row is not readable") && rejects[0].1.ends_with("not stored: all of it")
    );
    assert_eq!(rejects[1], ("row 3", "the row is longer than 65536 bytes; not stored: all of it"));
    assert!(rejects[2].0 == "812346" && rejects[2].1.starts_with("legal_name is absent"), "{rejects:?}");
    assert!(pages[0].rejects.iter().all(|reject| !String::from_utf8_lossy(&reject.raw).contains("HOME")));

    let foreign = vec!["<row/>"; 100].join("\n");
    let stopped = open(&archive(&foreign), &iowa_start()).unwrap().next_page();
    assert!(matches!(stopped, Err(UpstreamError::Stop { field, .. }) if field == "row"));
    let renamed = vec!["{\"corpNumber\":1}"; 100].join("\n");
    let stopped = open(&archive(&renamed), &iowa_start()).unwrap().next_page();
    assert!(matches!(stopped, Err(UpstreamError::Stop { field, .. }) if field == "corp_number"));
}

/// Proves that an archive that is cut off or damaged gives no page at all, and that one with fewer rows than were read before is refused.
#[test]
fn damaged_archives_of_iowa() {
    let rows: Vec<Value> = (0..5_000).map(|number| iowa(number, "2026-09-16")).collect();
    let whole = archive(&lines(&rows));
    let mut flipped = whole.clone();
    flipped[whole.len() / 2] ^= 1;
    let page = b"<!DOCTYPE html><html></html>".to_vec();
    for bytes in [&whole[..whole.len() - 100], &whole[..whole.len() / 2], flipped.as_slice(), page.as_slice()] {
        assert!(matches!(open(bytes, &iowa_start()), Err(UpstreamError::Later { .. })));
    }
    let next = read_from(&whole, &iowa_start())[1].next.clone().unwrap();
    let shorter = archive(&lines(&rows[..3_000]));
    let refused = open(&shorter, &next).err().unwrap().to_string();
    assert!(refused.contains("fewer than the 4000 rows"), "{refused}");
    assert!(read_from(&archive(""), &iowa_start())[0].observations.is_empty());
}

/// Proves that the request names a file of the day, and that the token of Socrata is not sent to Iowa.
#[test]
fn the_request_of_iowa() {
    let (upstream, stream) = stream("sos.ia");
    let request = upstream.request(stream, &iowa_start(), &Settings { api_key: Some("token".to_owned()), ..settings() }).unwrap();
    assert_eq!((request.origin.as_str(), request.headers.len()), ("https://idh-be.iowa.gov", 0));
    let download = request.download.unwrap();
    assert_eq!((download.name.as_str(), download.magic), ("iowa-2026-09-30.zip", &b"PK\x03\x04"[..]));
}
