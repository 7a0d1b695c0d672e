//! The trademark register: lists of files, the order of days and parts, damaged files, and the records of archives.

use std::fs::File;
use std::io::{Cursor, Write};

use jiff::Timestamp;
use jiff::civil::date;
use schemas::facts::FactData;
use schemas::facts::marks::MarkFact;
use schemas::position::UpstreamCursor;
use serde_json::{Value, json};
use upstreams::{FilePages, Page, Settings, UpstreamError};
use zip::ZipWriter;
use zip::write::SimpleFileOptions;

use crate::common::*;

const UPSTREAM: &str = "uspto_trademarks";
const DAILY: &str = "uspto_trademarks.daily";
const ANNUAL: &str = "uspto_trademarks.annual";
/// Noon of the fixtures' day.
const AT: i64 = 1_790_769_600;

fn at(seconds: i64) -> Timestamp {
    Timestamp::from_second(seconds).unwrap()
}

pub(crate) fn mark(page: &Page, index: usize) -> &MarkFact {
    let FactData::Mark(fact) = &page.observations[index].data else { panic!("{page:?}") };
    fact
}

fn cursor(value: Value) -> UpstreamCursor {
    UpstreamCursor(value.to_string())
}

fn value(cursor: Option<&UpstreamCursor>) -> Value {
    serde_json::from_str(&cursor.unwrap().0).unwrap()
}

/// The answer of the list with these files, each with a version.
fn list(files: &[(&str, &str)]) -> upstreams::Answer {
    let files: Vec<Value> =
        files.iter().map(|(name, version)| json!({"fileName": name, "fileSize": 1, "fileLastModifiedDateTime": version})).collect();
    ok(json!({"bulkDataProductBag": [{"productFileBag": {"fileDataBag": files}}]}).to_string())
}

/// Plans a run after what the last one remembered.
fn plan(name: &str, memory: Option<&UpstreamCursor>, files: &[(&str, &str)], seconds: i64) -> Page {
    let (upstream, stream) = stream(name);
    let memory = memory.cloned().unwrap_or_default();
    let begun = upstream.start_after(stream, &window(), &settings(), &memory, at(seconds));
    assert!(upstream.has_request(stream, &begun));
    let page = upstream.map_at(stream, &begun, &list(files), at(seconds)).unwrap();
    assert!(page.observations.is_empty());
    page
}

fn zipped(document: &str) -> Vec<u8> {
    let mut writer = ZipWriter::new(Cursor::new(Vec::new()));
    let options = SimpleFileOptions::default().compression_method(zip::CompressionMethod::Deflated);
    writer.start_file("apc.xml", options).unwrap();
    writer.write_all(document.as_bytes()).unwrap();
    writer.finish().unwrap().into_inner()
}

fn document(records: &[String]) -> String {
    format!(
        "<?xml version=\"1.0\"?><!DOCTYPE trademark-applications-daily [<!ELEMENT text (#PCDATA)>]><trademark-applications-daily>\
         <application-information><file-segments><action-keys><action-key>TX</action-key>{}</action-keys></file-segments>\
         </application-information></trademark-applications-daily>",
        records.concat()
    )
}

fn record(serial: u32, status: u16) -> String {
    format!(
        "<case-file><serial-number>{serial}</serial-number><case-file-header><status-code>{status}</status-code></case-file-header></case-file>"
    )
}

fn on_disk(bytes: &[u8]) -> File {
    let mut file = tempfile::tempfile().unwrap();
    file.write_all(bytes).unwrap();
    file
}

/// Opens an archive at a cursor within the file of a day.
fn open(bytes: &[u8], record: u64) -> Result<Box<dyn FilePages>, UpstreamError> {
    let (upstream, stream) = stream(DAILY);
    let at_record =
        json!({"v": 1, "step": "read", "first": "2026-09-26", "until": "2026-09-27", "file": "apc260926.zip", "record": record});
    upstream.open(stream, &cursor(at_record), on_disk(bytes), at(AT))
}

fixture_tests!(UPSTREAM);

/// Proves that without a key the streams stop and name the setting, and that the key is sent in a header.
#[test]
fn a_key_is_required() {
    let (upstream, stream) = stream(DAILY);
    let begun = start(DAILY, &window());
    let error = upstream.request(stream, &begun, &Settings { api_key: None, ..settings() }).unwrap_err();
    assert!(matches!(&error, UpstreamError::Stop { field, .. } if field == "api_key"), "{error}");
    let settings = Settings { api_key: Some("secret".to_owned()), ..settings() };
    let request = upstream.request(stream, &begun, &settings).unwrap();
    assert_eq!((&*request.path, request.headers), ("/api/v1/datasets/products/TRTDXFAP", vec![("x-api-key", "secret".to_owned())]));
    let next = plan(DAILY, None, &[("apc260926.zip", "a")], AT).next.unwrap();
    let request = upstream.request(stream, &next, &settings).unwrap();
    assert_eq!(request.path, "/api/v1/datasets/products/files/TRTDXFAP/apc260926.zip");
    let download = request.download.unwrap();
    assert_eq!((&*download.name, download.per_year_max * 2), ("apc260926.zip", 20));
    for file in ["../apc260926.zip", "apc260926.zip/../x", "x.zip"] {
        let bad = cursor(json!({"v": 1, "step": "read", "file": file}));
        assert!(matches!(upstream.request(stream, &bad, &settings), Err(UpstreamError::Stop { .. })), "{file}");
    }
}

/// Proves that days are read in their order, that a missing day holds up the later ones and the day of completeness, and that it is read when it
/// comes.
#[test]
fn days_have_no_gap() {
    let days = [("apc260926.zip", "a"), ("apc260928.zip", "a"), ("apc260925.zip", "a")];
    let next = plan(DAILY, None, &days, AT).next;
    assert_eq!((&value(next.as_ref())["file"], &value(next.as_ref())["until"]), (&json!("apc260925.zip"), &json!("2026-09-26")));
    let memory = cursor(json!({"v": 1, "step": "rest", "day": "2026-09-26"}));
    let page = plan(DAILY, Some(&memory), &days, AT);
    let incomplete = page.incomplete.unwrap();
    assert!(incomplete.what.contains("apc260927.zip is not listed; later days wait"), "{incomplete:?}");
    assert_eq!((incomplete.from, page.through), (Some(date(2026, 9, 27)), Some(date(2026, 9, 26))));
    assert_eq!(value(page.next.as_ref())["step"], "rest");
    let (upstream, stream) = stream(DAILY);
    assert!(!upstream.has_request(stream, page.next.as_ref().unwrap()));
    let memory = upstream.remember(stream, page.next.as_ref().unwrap());
    let all = [("apc260926.zip", "a"), ("apc260928.zip", "a"), ("apc260927.zip", "a")];
    let page = plan(DAILY, Some(&memory), &all, AT);
    assert_eq!((&value(page.next.as_ref())["file"], page.incomplete), (&json!("apc260927.zip"), None));
    // The newest day is read, and the next one has not come: nothing is wrong.
    let memory = cursor(json!({"v": 1, "step": "rest", "day": "2026-09-28"}));
    let page = plan(DAILY, Some(&memory), &all, AT);
    assert_eq!((page.incomplete, page.through), (None, Some(date(2026, 9, 28))));
    // A first run without any file is complete up to no day of this window.
    let empty = plan(DAILY, None, &[], AT);
    assert_eq!(empty.incomplete.unwrap().from, Some(date(2026, 9, 30)));
}

/// Proves that a damaged file holds up the later days, is named with its reason, is requested again only after a pause that grows, eight times in a
/// year, and at once when it is published again.
#[test]
fn damaged_files_are_paused() {
    let (upstream, stream) = stream(DAILY);
    let days = |version| [("apc260926.zip", version), ("apc260927.zip", "a")];
    let (mut memory, mut requests) = (UpstreamCursor::default(), 0);
    for hour in 0..365 * 4 {
        let now = AT + hour * 6 * 3_600;
        let page = plan(DAILY, Some(&memory), &days("a"), now);
        let next = page.next.unwrap();
        memory = if upstream.has_request(stream, &next) {
            requests += 1;
            let page = upstream.failed(stream, &next, "not a whole zip archive", at(now)).unwrap();
            let incomplete = page.incomplete.unwrap();
            let expected = format!("apc260926.zip could not be read (not a whole zip archive); attempt {requests}, requested again after ");
            assert!(incomplete.what.starts_with(&expected) && incomplete.what.ends_with("later days wait for it"), "{incomplete:?}");
            assert_eq!(incomplete.from, Some(date(2026, 9, 26)));
            page.next.unwrap()
        } else {
            assert!(page.incomplete.unwrap().what.contains("could not be read"));
            next
        };
    }
    assert_eq!(requests, 8);
    let page = plan(DAILY, Some(&memory), &days("b"), AT + 365 * 86_400);
    assert_eq!(value(page.next.as_ref())["file"], "apc260926.zip");
    // The list itself is not a file that can be paused.
    assert!(upstream.failed(stream, &start(DAILY, &window()), "status 500", at(AT)).is_none());
}

/// Proves that the parts of the newest set are read once each, that a damaged part does not hold up the others, and that a new set begins again.
#[test]
fn parts_of_the_newest_set() {
    let (upstream, stream) = stream(ANNUAL);
    let name = |set: &str, part: u16| format!("apc18840407-{set}-{part:02}.zip");
    let names: Vec<String> = (1..=3).map(|part| name("20251231", part)).chain([name("20241231", 1)]).collect();
    let files: Vec<(&str, &str)> = names.iter().map(|name| (name.as_str(), "a")).collect();
    let first = plan(ANNUAL, None, &files, AT).next.unwrap();
    assert_eq!(value(Some(&first))["file"], json!(names[0]));
    let second = upstream.failed(stream, &first, "status 500", at(AT)).unwrap().next.unwrap();
    assert_eq!(value(Some(&second))["file"], json!(names[1]));
    let mut pages = upstream.open(stream, &second, on_disk(&zipped(&document(&[record(60_000_001, 700)]))), at(AT)).unwrap();
    let page = pages.next_page().unwrap();
    assert_eq!((page.observations.len(), pages.files_left()), (1, 2));
    let third = page.next.unwrap();
    assert_eq!((&value(Some(&third))["file"], &value(Some(&third))["done"]), (&json!(names[2]), &json!([2])));
    let page = upstream.failed(stream, &third, "status 500", at(AT)).unwrap();
    assert!(page.incomplete.unwrap().what.contains("-01.zip could not be read"));
    let memory = page.next.unwrap();
    assert!(!upstream.has_request(stream, &memory));
    // Hours later the two parts that failed are requested again, and the one that was read is not.
    let again = plan(ANNUAL, Some(&memory), &files, AT + 7_200);
    assert_eq!(value(again.next.as_ref())["file"], json!(names[0]));
    let newer = name("20261231", 1);
    let page = plan(ANNUAL, Some(&memory), &[(&newer, "a"), (&names[0], "a")], AT);
    assert_eq!((&value(page.next.as_ref())["file"], value(page.next.as_ref()).get("done")), (&json!(newer), None));
}

/// Proves that all records of an archive are read in pages without repeated keys, in their order, and that reading continues at a record.
#[test]
fn an_archive_is_read_in_pages() {
    let mut records: Vec<String> = (0..4_500).map(|index| record(97_000_000 + index, 630)).collect();
    records.insert(1_000, record(97_000_010, 641));
    records.insert(2_000, "<case-file><serial-number>x</serial-number></case-file>".to_owned());
    let archive = zipped(&document(&records));
    let mut pages = open(&archive, 0).unwrap();
    let (mut seen, mut rejects, mut ends) = (Vec::new(), 0, Vec::new());
    loop {
        let page = pages.next_page().unwrap();
        seen.extend((0..page.observations.len()).map(|index| (mark(&page, index).serial.clone(), mark(&page, index).status_code.clone())));
        rejects += page.rejects.len();
        let next = value(page.next.as_ref());
        if next["file"] != "apc260926.zip" {
            assert_eq!(
                (&next["file"], &next["day"], page.through),
                (&json!("apc260927.zip"), &json!("2026-09-26"), Some(date(2026, 9, 26)))
            );
            break;
        }
        ends.push(next["record"].as_u64().unwrap());
    }
    assert_eq!((seen.len(), rejects), (4_501, 1));
    let repeated: Vec<&str> = seen.iter().filter(|(serial, _)| serial == "97000010").map(|(_, status)| status.as_str()).collect();
    assert_eq!((repeated, ends[0]), (vec!["630", "641"], 1_000));
    let mut continued = open(&archive, ends[1]).unwrap();
    let page = continued.next_page().unwrap();
    let first = mark(&page, 0).serial.clone();
    assert_eq!(first, seen[usize::try_from(ends[1]).unwrap() - 1].0, "one record before was rejected");
    assert!(continued.bytes_read() > 0 && continued.files_left() == 1);
}

/// Proves that hostile and damaged archives are refused with their reason, and that the records before the damage are returned.
#[test]
fn damaged_archives() {
    let whole = document(&(0..100).map(|index| record(97_000_000 + index, 630)).collect::<Vec<_>>());
    let cut = zipped(&whole[..whole.len() / 2]);
    let mut pages = open(&cut, 0).unwrap();
    let page = pages.next_page().unwrap();
    assert!(page.observations.len() > 40 && page.rejects.is_empty());
    let error = pages.next_page().unwrap_err();
    assert!(matches!(&error, UpstreamError::Later { reason, .. } if reason.contains("records: the document is cut off")), "{error}");
    let bomb = whole.replacen("<!ELEMENT", "<!ENTITY a \"lol\"><!ENTITY b \"&a;&a;\"><!ELEMENT", 1);
    let mut pages = open(&zipped(&bomb), 0).unwrap();
    assert_eq!(pages.next_page().unwrap().observations.len(), 0);
    let error = pages.next_page().unwrap_err();
    assert!(error.to_string().contains("declares entities"), "{error}");
    let bomb = zipped(&whole.replacen("</action-keys>", &" ".repeat(20 << 20), 1));
    for (bytes, record, reason) in [
        (&bomb[..], 0, "more than is accepted"),
        (&b"<!DOCTYPE html><html></html>"[..], 0, "not a whole zip"),
        (&zipped(&whole)[..500], 0, "not a whole zip"),
        (&zipped(&whole), 101, "fewer than the 101 records"),
    ] {
        let error = open(bytes, record).map(drop).unwrap_err();
        assert!(error.to_string().contains(reason), "{error}");
    }
}

/// Proves that a record with 26,000 events is read, and the records before and after it with it.
#[test]
fn a_record_of_many_events_loses_nothing() {
    let event =
        "<case-file-event-statement><code>CHAN</code><type>I</type><date>20200101</date><number>1</number></case-file-event-statement>";
    let events = format!("<case-file-event-statements>{}</case-file-event-statements>", event.repeat(26_000));
    let long = record(97_000_002, 630).replacen("<case-file-header>", &format!("{events}<case-file-header>"), 1);
    let archive = zipped(&document(&[record(97_000_001, 630), long, record(97_000_003, 630)]));
    let page = open(&archive, 0).unwrap().next_page().unwrap();
    let serials: Vec<&str> = (0..page.observations.len()).map(|index| mark(&page, index).serial.as_str()).collect();
    assert_eq!((serials, page.rejects.len()), (vec!["97000001", "97000002", "97000003"], 0));
}

/// Proves that a record that is larger than 16 MB is rejected with its number and a small part of it, and that the records around it are read; also where
/// reading continues after it.
#[test]
fn a_record_that_is_too_large_is_rejected() {
    let large =
        record(97_000_002, 630).replacen("<case-file-header>", &format!("<text>{}</text><case-file-header>", "x".repeat(17 << 20)), 1);
    let text = document(&[record(97_000_001, 630), large, record(97_000_003, 630)]);
    // Packed, it would be refused as a bomb.
    let mut writer = ZipWriter::new(Cursor::new(Vec::new()));
    let stored = SimpleFileOptions::default().compression_method(zip::CompressionMethod::Stored);
    writer.start_file("apc.xml", stored).unwrap();
    writer.write_all(text.as_bytes()).unwrap();
    let archive = writer.finish().unwrap().into_inner();
    for (skipped, expected) in [(0, &["97000001", "97000003"][..]), (1, &["97000003"][..]), (2, &["97000003"][..])] {
        let page = open(&archive, skipped).unwrap().next_page().unwrap();
        let serials: Vec<&str> = (0..page.observations.len()).map(|index| mark(&page, index).serial.as_str()).collect();
        assert_eq!((&serials[..], page.rejects.len()), (expected, usize::from(skipped < 2)), "after {skipped} records");
        for reject in &page.rejects {
            assert_eq!((reject.reference.as_str(), reject.reason.as_str()), ("97000002", "the record is larger than 16 MB"));
            assert!(reject.raw.len() < 1 << 20, "{} bytes", reject.raw.len());
        }
        assert_eq!(value(page.next.as_ref())["file"], "apc260927.zip", "the file is read to its end");
    }
}

/// Proves that a file in which most records have lost their number stops the stream, because the format has changed.
#[test]
fn a_changed_format_stops() {
    let records: Vec<String> = (0..40).map(|_| "<case-file><serial>97000001</serial></case-file>".to_owned()).collect();
    let error = open(&zipped(&document(&records)), 0).unwrap().next_page().unwrap_err();
    assert!(matches!(&error, UpstreamError::Stop { field, .. } if field == "serial-number"), "{error}");
}
