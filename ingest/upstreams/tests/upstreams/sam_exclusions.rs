//! Upstream `sam_exclusions`: its requests, the mapping of rows, and the pages of archives.

use std::fs::File;
use std::io::{Cursor, Write};
use std::path::Path;

use jiff::Timestamp;
use schemas::facts::FactData;
use schemas::facts::exclusions::ExclusionFact;
use schemas::position::UpstreamCursor;
use serde_json::{Value, json};
use upstreams::{FilePages, Observation, Page, Settings, UpstreamError};
use zip::ZipWriter;
use zip::write::SimpleFileOptions;

use crate::common::*;

const STREAM: &str = "sam_exclusions";
/// Noon of the fixtures' day.
const AT: i64 = 1_790_769_600;
const HEADER: &str = "\"Classification\",\"Name\",\"Unique Entity ID\",\"Excluding Agency\",\"Exclusion Type\",\"Additional Comments\",\"Active Date\",\
    \"CAGE\"";

fn exclusion(observation: &Observation) -> &ExclusionFact {
    let FactData::Exclusion(fact) = &observation.data else { panic!("{observation:?}") };
    fact
}

fn row(name: &str, uei: &str, cage: &str) -> String {
    format!("\"Firm\",\"{name}\",\"{uei}\",\"EPA\",\"Voluntary Exclusion\",\"\",\"02/10/2026\",\"{cage}\"")
}

/// An archive on disk with these rows.
fn archive(rows: &[String]) -> File {
    let mut writer = ZipWriter::new(Cursor::new(Vec::new()));
    let options = SimpleFileOptions::default().compression_method(zip::CompressionMethod::Deflated);
    writer.start_file("SAM_Exclusions_Public_Extract_V2_26273.CSV", options).unwrap();
    writer.write_all(format!("{HEADER}\r\n{}\r\n", rows.join("\r\n")).as_bytes()).unwrap();
    on_disk(&writer.finish().unwrap().into_inner())
}

fn on_disk(bytes: &[u8]) -> File {
    let mut file = tempfile::tempfile().unwrap();
    file.write_all(bytes).unwrap();
    file
}

fn open(file: File, cursor: &UpstreamCursor) -> Result<Box<dyn FilePages>, UpstreamError> {
    let (upstream, stream) = stream(STREAM);
    upstream.open(stream, cursor, file, Timestamp::from_second(AT).unwrap())
}

/// Reads all pages of an archive after what the last run left. Returns the observations and the last page.
fn read(file: File, memory: &UpstreamCursor) -> (Vec<Observation>, Page) {
    let (upstream, stream) = stream(STREAM);
    let begun = upstream.start_after(stream, &window(), &settings(), memory, Timestamp::from_second(AT).unwrap());
    assert!(upstream.has_request(stream, &begun));
    let (mut pages, mut all) = (open(file, &begun).unwrap(), Vec::new());
    loop {
        let page = pages.next_page().unwrap();
        all.extend(page.observations.clone());
        if !upstream.has_request(stream, page.next.as_ref().unwrap()) {
            return (all, page);
        }
    }
}

fixture_tests!(STREAM);

/// Proves that a rejected row that may name a person is stored without its fields, that another row is another reject, and that the reason says so.
#[test]
fn rejected_rows_name_no_person() {
    let (upstream, stream) = stream(STREAM);
    let rejected = |classification: &str, name: &str| {
        let row = format!("\"{classification}\",\"{name}\",\"\",\"EPA\",\"Voluntary Exclusion\",\"5 HOME RD\",\"02/30/2026\",\"\"");
        let page = map(STREAM, upstream.single(stream, format!("{HEADER}\r\n{row}").as_bytes())).unwrap();
        assert_eq!(page.rejects.len(), 1, "{page:?}");
        page.rejects[0].clone()
    };
    for classification in ["Individual", "individual", "", "Person"] {
        let (one, other) = (rejected(classification, "ANN LEE"), rejected(classification, "BOB RAY"));
        let kept = format!("{one:?} {}", String::from_utf8_lossy(&one.raw));
        assert!(!kept.contains("LEE") && !kept.contains("HOME RD") && one.reason.contains("left out"), "{kept}");
        assert!(one.raw != other.raw && one.reference != other.reference);
    }
    let firm = rejected("Firm", "ACME LLC");
    assert!(firm.reference.contains("ACME LLC") && String::from_utf8_lossy(&firm.raw).contains("5 HOME RD"), "{firm:?}");
}

/// Proves that a rejected row is stored so that it can be mapped again, with its header, unless its fields were left out.
#[test]
fn rejected_rows_are_mapped_again() {
    let (upstream, stream) = stream(STREAM);
    let page = fixture(STREAM, "broken").unwrap();
    assert_eq!(page.rejects.len(), 6);
    for reject in &page.rejects {
        let again = map(STREAM, upstream.single(stream, &reject.raw)).unwrap();
        let is_whole = !reject.reason.contains("left out");
        assert_eq!((again.rejects.len(), again.rejects[0] == *reject), (1, is_whole), "{reject:?}");
    }
}

/// Proves that without a key the stream stops and names the setting, and that the file on disk is named for the day of the run.
#[test]
fn a_key_is_required() {
    let (upstream, stream) = stream(STREAM);
    let begun = start(STREAM, &window());
    for api_key in [None, Some(String::new())] {
        let error = upstream.request(stream, &begun, &Settings { api_key, ..settings() }).unwrap_err();
        assert!(matches!(&error, UpstreamError::Stop { field, .. } if field == "api_key"), "{error}");
    }
    let request = upstream.request(stream, &begun, &Settings { api_key: Some("a&b".to_owned()), ..settings() }).unwrap();
    assert_eq!(request.path, "/data-services/v1/extracts?fileType=EXCLUSION&api_key=a%26b");
    assert_eq!(request.download.unwrap().name, "exclusions-2026-09-30.zip");
}

/// Proves that the order of rows and their repetition change nothing, also where rows with the same identity differ, and over pages.
#[test]
fn order_and_repetition_change_nothing() {
    let mut rows: Vec<String> = (0..4_500).map(|number| row(&format!("FIRM {number}"), "", "")).collect();
    rows.extend([row("TWICE INC", "ABCDEF123456", "1A2B3"), row("TWICE INCORPORATED", "ABCDEF123456", "9Z9Z9")]);
    let (mut all, last) = read(archive(&rows), &UpstreamCursor::default());
    assert_eq!((all.len(), last.rejects.len()), (4_501, 0));
    rows.reverse();
    rows.push(rows[7].clone());
    let (mut again, _) = read(archive(&rows), &UpstreamCursor::default());
    for list in [&mut all, &mut again] {
        list.sort_by(|a, b| a.key.cmp(&b.key));
    }
    assert_eq!(all, again);
    assert_eq!(all.iter().filter(|one| exclusion(one).uei == "ABCDEF123456").count(), 1);
}

/// Proves that a file that lost over 5 % of its rows is incomplete, that what was known before remains known, and that a second such file is not.
#[test]
fn short_files_are_doubted() {
    let (upstream, stream) = stream(STREAM);
    let rows: Vec<String> = (0..100).map(|number| row(&format!("FIRM {number}"), "", "")).collect();
    let memory = |page: &Page| upstream.remember(stream, page.next.as_ref().unwrap());
    let (_, whole) = read(archive(&rows), &UpstreamCursor::default());
    assert_eq!(whole.incomplete, None);
    let (all, short) = read(archive(&rows[..50]), &memory(&whole));
    assert_eq!(all.len(), 50);
    assert!(short.incomplete.as_ref().unwrap().what.contains("50 rows"), "{short:?}");
    let (_, again) = read(archive(&rows), &memory(&short));
    assert_eq!(again.incomplete, None);
    let (_, still_short) = read(archive(&rows[..51]), &memory(&short));
    assert_eq!(still_short.incomplete, None);
}

/// Proves that a damaged archive gives no page at all, and that a file without a column stops the stream.
#[test]
fn damaged_archives_are_refused() {
    let begun = start(STREAM, &window());
    let mut bytes = Vec::new();
    std::io::Read::read_to_end(&mut rewound(archive(&[row("A", "", "")])), &mut bytes).unwrap();
    assert!(open(on_disk(&bytes), &begun).is_ok());
    for cut in [bytes.len() / 2, bytes.len() - 1, 4] {
        assert!(matches!(open(on_disk(&bytes[..cut]), &begun).err(), Some(UpstreamError::Later { .. })), "{cut}");
    }
    // A bit within the packed rows.
    let mut flipped = bytes.clone();
    flipped[90] ^= 0x10;
    assert!(open(on_disk(&flipped), &begun).is_err());
    let past = UpstreamCursor(json!({"v": 1, "day": "2026-09-30", "row": 7}).to_string());
    assert!(matches!(open(on_disk(&bytes), &past).err(), Some(UpstreamError::Later { .. })));
}

fn rewound(mut file: File) -> File {
    std::io::Seek::rewind(&mut file).unwrap();
    file
}

/// Proves that the public samples are read completely: 134 rows of 2020 with seven of broken quoting, none shifted, and the orders of 2023 with other
/// columns.
#[test]
fn public_samples() {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../../shared/upstreams/samples/sam-exclusions");
    if !folder.exists() {
        return;
    }
    let page = map(STREAM, std::fs::read(folder.join("SAM_Exclusions_Public_Extract_20049.trimmed.CSV")).unwrap()).unwrap();
    assert_eq!((page.observations.len(), page.rejects.len()), (134, 0));
    let facts: Vec<&ExclusionFact> = page.observations.iter().map(exclusion).collect();
    for fact in &facts {
        let is_day = |text: &str| text.is_empty() || text.parse::<jiff::civil::Date>().is_ok();
        assert!(is_day(&fact.active_date) && is_day(&fact.creation_date) && !fact.name.is_empty(), "{fact:?}");
        assert!(fact.termination_date == "Indefinite" || is_day(&fact.termination_date), "{fact:?}");
        // Rows without a classification have nothing but a name, a country and numbers.
        let is_bare = fact.classification.is_empty();
        assert_eq!(
            (fact.exclusion_type.is_empty(), fact.creation_date.is_empty(), fact.agency.is_empty()),
            (is_bare, is_bare, is_bare),
            "{fact:?}"
        );
        assert!(fact.agency != "TREAS-OFAC");
    }
    let debarred: Vec<&&ExclusionFact> = facts.iter().filter(|fact| fact.comments.contains("debarred by the Comptroller")).collect();
    assert_eq!(debarred.len(), 4);
    for fact in debarred {
        assert!(fact.agency == "GAO" && fact.comments.contains("incorrect as to Davis-Bacon") && fact.comments.len() > 600, "{fact:?}");
        assert!(fact.cross_references.len() == 1 && fact.sam_number.starts_with("S4MR"), "{fact:?}");
    }
    let xeon = facts.iter().find(|fact| fact.name == "XEON ENGINEERING").unwrap();
    assert_eq!(
        (&*xeon.active_date, &*xeon.termination_date, xeon.cross_references.join("|").as_str()),
        ("2018-01-05", "Indefinite", "CHIH|HSIUNG")
    );
    assert!(xeon.comments.contains("does business as Xeon Engineering."), "{xeon:?}");
    let orders = map(STREAM, std::fs::read(folder.join("FASCSAOrders23306.csv")).unwrap()).unwrap();
    assert_eq!((orders.observations.len(), orders.rejects.len()), (6, 0));
    let smith = orders.observations.iter().map(exclusion).find(|fact| fact.last == "SMITH").unwrap();
    assert_eq!((&*smith.full_name(), &*smith.active_date, &*smith.city, &*smith.zip), ("SAM A SMITH", "2000-03-02", "", ""));
    let value: Value = serde_json::from_str(&page.next.unwrap().0).unwrap();
    assert_eq!(value["rows"], 134);
}
