//! The content of the exclusion list: its key, its peculiarities, and what happens from day to day.

use super::*;
use crate::render::Request;
use crate::{EXCLUSIONS, KEY};

const PATH: &str = "/data-services/v1/extracts";

fn rows(sim: &Simulator) -> Vec<String> {
    let answer = get(sim, PATH, &format!("fileType=EXCLUSION&api_key={KEY}"));
    assert_eq!(answer.status, 200);
    let mut zip = zip::ZipArchive::new(Cursor::new(&answer.body)).unwrap();
    let mut text = String::new();
    zip.by_index(0).unwrap().read_to_string(&mut text).unwrap();
    text.split("\r\n").map(str::to_owned).filter(|row| !row.is_empty()).collect()
}

/// Proves that a key is needed, that every peculiarity of the real file is in it, and that rows come and go on their days.
#[test]
fn files_and_peculiarities() {
    let sim = Simulator::new(options(600));
    let request = Request { path: PATH, query: "fileType=EXCLUSION", body: &[], key: Some(KEY), visit: sim.visit("") };
    assert_eq!(sim.render(Endpoint::at(PATH).unwrap(), request, &Plan::default()).status, 403, "the key is in the query");
    let first = rows(&sim);
    assert!(first[0].contains("\"Unique Entity ID\""));
    for (text, trap) in [
        ("\"\"The contractor has been debarred, 40", "broken quoting"),
        ("1234567893.0", "a decimal point"),
        ("not itself excluded", "no exclusion"),
        ("S\u{c3}\u{bf}RL", "faulty letters"),
        ("\"TREAS-OFAC\"", "the old code"),
        ("\"Vessel\"", "a ship"),
        ("\"Individual\"", "a person"),
    ] {
        assert!(first.iter().any(|row| row.contains(text)), "{trap}");
    }
    let distinct: BTreeSet<&String> = first.iter().collect();
    assert_eq!(distinct.len() + 1, first.len(), "one row occurs twice");
    let fields = |row: &String| row.matches("\",\"").count() + 1;
    assert!(first.iter().all(|row| fields(row) == 31));
    let blank =
        |at: usize| first.iter().filter(|row| row.split("\",\"").nth(at).is_some_and(|field| field.trim_matches('"').is_empty())).count();
    assert!(blank(0) == 1 && blank(23) > 10, "a blank classification, and blank active dates");

    let has = |rows: &[String], name: &str| rows.iter().any(|row| row.contains(name));
    assert!(has(&first, "OTTERBROOK") && !has(&first, "MESAWELL"));
    let mut counts = Vec::new();
    for day in 21..=28 {
        sim.set_today(date(2026, 11, day));
        counts.push(rows(&sim));
    }
    assert!(counts[0][0].contains("Unique Entity Identifier (SAM)"), "the header of 2020");
    assert!(has(&counts[1], "MESAWELL") && !has(&counts[2], "OTTERBROOK"));
    assert!(counts[4].len() < counts[3].len() * 6 / 10, "half a file");
    assert!(!has(&counts[7], "TREAS-OFAC") && has(&counts[7], "\"OFAC\""));
    let also = |rows: &[String]| {
        rows.iter().find(|row| row.contains("SPARROWPOINT ANALYTICS")).unwrap().split("\",\"").nth(26).unwrap().to_owned()
    };
    assert_ne!(also(&counts[0]), also(&counts[1]));
    // The contractors of the cast are recipients of simulated awards.
    let awards = sim.answer_posted("/api/v2/search/spending_by_award/", &serde_json::to_vec(&json!({
        "filters": {"award_type_codes": ["A", "B", "C", "D"], "time_period": [{"start_date": "2024-01-01", "end_date": "2026-11-28", "date_type": "last_modified_date"}]},
        "fields": ["Recipient UEI", "Last Modified Date"], "sort": "Last Modified Date", "order": "asc", "limit": 100, "page": 1,
    })).unwrap()).unwrap();
    let awards = String::from_utf8(awards.body).unwrap();
    for party in EXCLUSIONS.iter().filter(|party| ["SPPA4G7J3N91", "TMWF6K3R9D88", "OTBL8E4T6M77"].contains(&party.uei)) {
        assert!(awards.contains(party.uei), "{}", party.name);
    }
}
