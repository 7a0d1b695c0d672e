//! The National Highway Traffic Safety Administration: both kinds of streams, and the special cases of the flat files.

use std::io::Write as _;

use jiff::civil::date;
use serde_json::{Value, json};
use upstreams::{Answer, Page, Settings, UpstreamError, Window};

use crate::common::*;

const SOCRATA: &str = "nhtsa.socrata";
const FLAT: &str = "nhtsa.flat";
const FLAT_PRE_2010: &str = "nhtsa.flat_pre_2010";

fn zipped(name: &str, body: &[u8]) -> Vec<u8> {
    let mut zip = zip::ZipWriter::new(std::io::Cursor::new(Vec::new()));
    zip.start_file(name, zip::write::SimpleFileOptions::default().compression_method(zip::CompressionMethod::Deflated)).unwrap();
    zip.write_all(body).unwrap();
    zip.finish().unwrap().into_inner()
}

fn file(case: &str) -> Vec<u8> {
    std::fs::read(folder("nhtsa").join(case)).unwrap()
}

fn rows(count: usize) -> Vec<Value> {
    let row = |n| {
        json!({"nhtsa_id": format!("26V{n:03}000"), "report_received_date": "2026-06-24T00:00:00.000", "manufacturer": "M", "subject": "S",
               "recall_type": "Vehicle"})
    };
    (0..count).map(row).collect()
}

fn answer(rows: &[Value]) -> Answer {
    ok(serde_json::to_vec(rows).unwrap())
}

fn facts(page: &Page) -> Vec<&schemas::facts::recalls::RecallFact> {
    page.observations.iter().map(recall).collect()
}

fixture_tests!("nhtsa");

/// Proves that a damaged zip gives a page or an error, and a truncated one always an error.
#[test]
fn a_damaged_zip_gives_pages_or_errors() {
    let zip = zipped("FLAT_RCL_POST_2010.txt", &file("flat_ordinary.tsv"));
    for end in 0..zip.len() {
        assert!(matches!(map(FLAT, zip[..end].to_vec()), Err(UpstreamError::Later { .. })), "{end}");
    }
    for at in 0..zip.len() {
        let mut body = zip.clone();
        body[at] ^= 0x55;
        drop(map(FLAT, body));
    }
}

/// Proves which requests the three streams make, in a full and in an incremental run.
#[test]
fn requests() {
    let full = Window { from: None, to: TODAY };
    let incremental = Window { from: Some(date(2026, 6, 1)), to: TODAY };
    assert_eq!(
        path(SOCRATA, &start(SOCRATA, &full)),
        "/resource/6axg-epim.json?$order=report_received_date%20DESC%2C%20nhtsa_id&$limit=1000&$offset=0"
    );
    assert_eq!(
        path(SOCRATA, &start(SOCRATA, &incremental)),
        "/resource/6axg-epim.json?$where=report_received_date%20%3E%3D%20%272026-06-01T00%3A00%3A00%27&$order=report_received_date%20DESC%2C%20nhtsa_id&$limit=1000&$offset=0"
    );
    for window in [full, incremental] {
        assert_eq!(path(FLAT, &start(FLAT, &window)), "/odi/ffdd/rcl/FLAT_RCL_POST_2010.zip");
        assert_eq!(path(FLAT_PRE_2010, &start(FLAT_PRE_2010, &window)), "/odi/ffdd/rcl/FLAT_RCL_PRE_2010.zip");
    }
}

/// Proves that the API token is sent as a header, and only when there is one.
#[test]
fn the_token_is_a_header() {
    let (upstream, stream) = stream(SOCRATA);
    let headers =
        |api_key| upstream.request(stream, &start(SOCRATA, &window()), &Settings { api_key, ..Settings::default() }).unwrap().headers;
    assert!(headers(Some("t".to_owned())).contains(&("x-app-token", "t".to_owned())));
    assert!(headers(None).iter().all(|(name, _)| *name != "x-app-token"));
}

/// Proves that paging continues until a short page, and that a server that ignores the offset stops the stream.
#[test]
fn socrata_pages_until_a_short_page() {
    let (page, short) = (rows(1_000), rows(4));
    let paths = walk(SOCRATA, &window(), |path| if path.ends_with("$offset=0") { answer(&page) } else { answer(&short[1..]) });
    assert_eq!(paths.len(), 2);
    assert!(paths[1].ends_with("$offset=1000"));
    let first = map_at(SOCRATA, &start(SOCRATA, &window()), &answer(&page)).unwrap();
    let error = map_at(SOCRATA, &first.next.unwrap(), &answer(&page)).unwrap_err();
    assert!(matches!(error, UpstreamError::Stop { field, .. } if field == "$offset"));
}

/// Proves that a field missing on most rows stops the stream with an error that names it.
#[test]
fn socrata_drift_names_the_field() {
    let mut rows = rows(20);
    rows.iter_mut().take(11).for_each(|row| row["subject"] = json!(7));
    let error = map_at(SOCRATA, &start(SOCRATA, &window()), &answer(&rows)).unwrap_err();
    assert!(matches!(error, UpstreamError::Stop { field, .. } if field == "subject"));
}

/// Proves that the zip and the unpacked file give the same records.
#[test]
fn the_zip_and_its_file_are_the_same() {
    let rows = file("flat_ordinary.tsv");
    let page = map(FLAT, zipped("FLAT_RCL_POST_2010.txt", &rows)).unwrap();
    assert_eq!(page, map(FLAT, rows).unwrap());
    assert_eq!(page.observations.len(), 3);
    assert!(matches!(map(FLAT, zipped("README.md", b"1\t2")), Err(UpstreamError::Later { .. })));
}

/// Proves that a missing file of old campaigns is an empty page with a warning.
#[test]
fn a_missing_old_file_is_empty() {
    let page = fixture("nhtsa", "flat_pre_2010_gone_404").unwrap();
    assert!(page.observations.is_empty() && page.next.is_none() && page.warnings.len() == 1);
    let (upstream, stream) = stream(FLAT);
    assert!(upstream.request(stream, &start(FLAT, &window()), &Settings::default()).unwrap().accepts_statuses.is_empty());
}

/// Proves that the order of rows, duplicate rows and new record ids change nothing.
#[test]
fn order_repeats_and_record_ids_change_nothing() {
    for case in ["flat_ordinary.tsv", "flat_rows_disagree.tsv", "flat_rows_twice_and_renumbered.tsv"] {
        let text = String::from_utf8(file(case)).unwrap();
        let expected = map(FLAT, text.clone()).unwrap();
        let mut lines: Vec<_> = text.lines().map(str::to_owned).collect();
        for rotation in 0..lines.len() {
            lines.rotate_left(1);
            let renumbered =
                lines.iter().enumerate().map(|(at, line)| format!("{}\t{}\r\n", at + rotation, line.split_once('\t').unwrap().1));
            let doubled: String = renumbered.chain(lines.iter().rev().map(|line| format!("{line}\n"))).collect();
            assert_eq!(map(FLAT, doubled).unwrap(), expected, "{case}");
        }
    }
}

/// Proves that units are a campaign's total and not a sum, and which value is used where rows disagree.
#[test]
fn disagreeing_rows_have_rules() {
    let page = fixture("nhtsa", "flat_rows_disagree").unwrap();
    let fact = with_key(&page, "nhtsa.flat/22E002000");
    assert_eq!((&*fact.units, &*fact.brand, &*fact.date), ("120", "AC DELCO / ACDELCO", "2022-01-04"));
    assert_eq!((&*fact.remedy, &*fact.product_type), ("Letters are expected to be mailed.", "Equipment"));
    assert_eq!(fact.aliases, ["A", "B"]);
    let twice = fixture("nhtsa", "flat_rows_twice_and_renumbered").unwrap();
    assert_eq!((twice.observations.len(), &*facts(&twice)[0].units), (1, "310667"));
    assert_eq!(facts(&twice)[0].vehicles, ["HARBOUR PILOT 2023", "HARBOUR PILOT 2024"]);
}

/// Proves that bytes that are not UTF-8 do not make a row unreadable, and are read as the character that they stand for.
#[test]
fn latin_1_is_read() {
    let body: Vec<u8> = file("flat_ordinary.tsv").into_iter().map(|byte| if byte == b'P' { 0xe9 } else { byte }).collect();
    let page = map(FLAT, body).unwrap();
    assert_eq!(page.rejects, []);
    assert!(facts(&page)[1].vehicles.iter().any(|vehicle| vehicle == "HARBOUR éILOT 2024"), "{:?}", facts(&page)[1].vehicles);
}

/// Proves that a single row that is too long is rejected alone, and not stored completely.
#[test]
fn an_endless_row_is_rejected() {
    let good = file("flat_columns_appended.tsv");
    let body = [&good[..], &vec![b'x'; 1 << 20], b"\n", &good].concat();
    let page = map(FLAT, body).unwrap();
    assert_eq!((page.observations.len(), page.rejects.len()), (1, 1));
    assert!(page.rejects[0].raw.len() < 70_000);
}

/// Proves that moved columns stop the stream with an error that names them.
#[test]
fn flat_drift_names_the_field() {
    let row = String::from_utf8(file("flat_columns_appended.tsv")).unwrap();
    let columns: Vec<_> = row.trim_end().split('\t').collect();
    for (broken, field) in [
        (columns[..20].join("\t"), "columns"),
        (format!("1\t{}", columns.join("\t")), "CAMPNO"),
        ([&columns[..7], &["", ""], &columns[9..]].concat().join("\t"), "MFGNAME"),
        ([&columns[..15], &["2026-W30", "x"], &columns[17..]].concat().join("\t"), "RCDATE"),
    ] {
        let body = format!("{row}{}", format!("{broken}\r\n").repeat(20));
        let error = map(FLAT, body).unwrap_err();
        assert!(matches!(&error, UpstreamError::Stop { field: named, .. } if named == field), "{field}: {error}");
    }
}

/// Proves that a campaign with very many vehicles is cut to the first ones in sorted order, whatever the order of rows.
#[test]
fn vehicles_are_capped() {
    let row = String::from_utf8(file("flat_columns_appended.tsv")).unwrap();
    let line = |n: usize| row.replace("\tPILOT\t", &format!("\tM{n:05}\t"));
    let forward: String = (0..2_100).map(line).collect();
    let backward: String = (0..2_100).rev().map(line).collect();
    let page = map(FLAT, forward).unwrap();
    assert_eq!((facts(&page)[0].vehicles.len(), page.warnings.len()), (2_000, 1));
    assert_eq!(map(FLAT, backward).unwrap(), page);
}

/// Proves that a rejected row of a flat file has the same bytes in every build of the file, although its number changes.
#[test]
fn a_rejected_row_has_no_number_of_its_build() {
    let rejected = |number: u32| {
        let page = map("nhtsa.flat", format!("{number}\tNOT A CAMPAIGN\tx\n")).unwrap();
        page.rejects.into_iter().map(|reject| reject.raw).collect::<Vec<_>>()
    };
    assert_eq!(rejected(17), rejected(90_001));
    assert_eq!(rejected(17), [b"0\tNOT A CAMPAIGN\tx".to_vec()]);
}

/// Proves that the brand of a firm that does business under another name is that name.
#[test]
fn the_brand_is_the_name_of_the_business() {
    let row = json!([{"nhtsa_id": "26V400000", "report_received_date": "2026-07-01T00:00:00.000", "manufacturer": "Pier Coach, LLC dba Harbour Trucks, Inc.",
        "subject": "Brakes", "recall_type": "Vehicle"}]);
    let page = map("nhtsa.socrata", row.to_string()).unwrap();
    assert_eq!(recall(&page.observations[0]).brand, "Harbour Trucks");
}
