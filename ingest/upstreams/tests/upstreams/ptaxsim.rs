//! The database file PTAXSIM of Cook County: its pages and facts, and which files and rows are refused.

use std::collections::BTreeSet;
use std::path::{Path, PathBuf};

use rusqlite::Connection;
use schemas::facts::FactData;
use schemas::facts::parcels::{EXEMPTION, ParcelFact};
use schemas::position::UpstreamCursor;
use tempfile::TempDir;
use upstreams::cook::Options;
use upstreams::{OwnOptions, Page, Settings, UpstreamError};

use crate::common::*;

const STREAM: &str = "cook.ptaxsim";
/// The columns of the table that are not read.
const OTHERS: &str =
    "tax_code_num varchar(5), tax_bill_total double, av_mailed int, av_certified int, av_board int, av_clerk int, exe_abate int";
/// The columns of the exemptions that every file has.
const EXEMPTIONS: [&str; 9] = [
    "exe_homeowner",
    "exe_senior",
    "exe_freeze",
    "exe_longtime_homeowner",
    "exe_disabled",
    "exe_vet_returning",
    "exe_vet_dis_lt50",
    "exe_vet_dis_50_69",
    "exe_vet_dis_ge70",
];

/// The statement that makes the table, given its first columns and its last words.
fn table(columns: &str, key: &str) -> String {
    let exemptions = EXEMPTIONS.map(|name| format!("{name} int DEFAULT 0")).join(", ");
    format!("CREATE TABLE pin ({columns}, {OTHERS}, {exemptions}{key};")
}

/// The table as the publisher makes it, before the tax year 2024.
fn published() -> String {
    let columns = "year int NOT NULL, pin varchar(14) NOT NULL, class varchar(3) NOT NULL";
    table(columns, ", PRIMARY KEY (year, pin)) WITHOUT ROWID") + "CREATE INDEX ix_pin_year ON pin(year);"
}

/// Makes a file. It exists as long as the folder.
fn file(statements: &str) -> (TempDir, PathBuf) {
    let dir = tempfile::tempdir().unwrap();
    let path = dir.path().join("ptaxsim.db");
    Connection::open(&path).unwrap().execute_batch(statements).unwrap();
    (dir, path)
}

fn with_file(path: &Path) -> Settings {
    Settings { own: OwnOptions::new(Options { ptaxsim_path: path.to_owned() }), ..settings() }
}

/// Reads the page at a cursor, the first one without a cursor.
fn read(path: &Path, cursor: Option<&UpstreamCursor>) -> Result<Page, UpstreamError> {
    let ((upstream, stream), settings) = (stream(STREAM), with_file(path));
    let cursor = cursor.cloned().unwrap_or_else(|| upstream.start(stream, &window(), &settings));
    assert!(upstream.has_request(stream, &cursor));
    let request = upstream.request(stream, &cursor, &settings).unwrap();
    upstream.read_local(stream, &cursor, request.local_file.as_deref().unwrap())
}

fn facts(page: Page) -> Vec<(String, ParcelFact)> {
    let fact = |observation: upstreams::Observation| match observation.data {
        FactData::Parcel(fact) => (observation.key, *fact),
        other => panic!("{other:?}"),
    };
    page.observations.into_iter().map(fact).collect()
}

/// Proves that the last tax year is read and no other, in bounded pages that each begin at a cursor alone, and each row once.
#[test]
fn the_last_year_is_read_in_pages() {
    let rows = |year: i64, count: usize| {
        format!(
            "WITH RECURSIVE number(i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM number WHERE i < {count})
             INSERT INTO pin (year, pin, class) SELECT {year}, printf('16%012d', i), '203' FROM number;"
        )
    };
    for (count, expected) in [(3, vec![3]), (5_000, vec![5_000, 0]), (5_001, vec![5_000, 1])] {
        let (_dir, path) = file(&(published() + &rows(2022, 1) + &rows(2023, 5_000) + &rows(2024, count)));
        let (mut sizes, mut keys, mut cursor) = (Vec::new(), BTreeSet::new(), None);
        loop {
            let mut page = read(&path, cursor.as_ref()).unwrap();
            assert_eq!((page.rejects.len(), page.warnings.len()), (0, 0));
            cursor = page.next.take();
            let found = facts(page);
            assert!(found.iter().all(|(_, fact)| fact.year == 2024));
            sizes.push(found.len());
            keys.extend(found.into_iter().map(|(key, _)| key));
            if cursor.is_none() {
                break;
            }
        }
        assert_eq!((sizes, keys.len()), (expected, count));
        assert!(keys.contains("cook.ptaxsim/160000000000012024"));
    }
}

/// Proves what a fact says: the class of the year, and whether the parcel has an exemption of a residence of any kind, but not of which kind or amount.
#[test]
fn facts_say_whether_and_not_which() {
    let rows = "ALTER TABLE pin ADD COLUMN exe_wwii int DEFAULT 0;
        INSERT INTO pin (year, pin, class, exe_homeowner) VALUES (2024, '16012160010000', '203', 98765);
        INSERT INTO pin (year, pin, class, exe_vet_dis_ge70) VALUES (2024, '16012160020000', '2.1-1)A', 98765);
        INSERT INTO pin (year, pin, class, exe_wwii) VALUES (2024, '16-01-216-003-0000', '299', 98765);
        INSERT INTO pin (year, pin, class, exe_abate, tax_bill_total) VALUES (2024, '1012160010000', '100', 98765, 98765);";
    let (_dir, path) = file(&(published() + rows));
    let found = facts(read(&path, None).unwrap());
    for (_, fact) in &found {
        let text = serde_json::to_string(fact).unwrap();
        assert!(fact.kind == EXEMPTION && fact.year == 2024 && !text.contains("98765") && !text.contains("exe_"), "{text}");
    }
    let said: BTreeSet<(&str, &str, bool)> =
        found.iter().map(|(key, fact)| (key.as_str(), fact.class.as_str(), fact.is_homestead)).collect();
    assert_eq!(
        said,
        BTreeSet::from([
            ("cook.ptaxsim/010121600100002024", "100", false),
            ("cook.ptaxsim/160121600100002024", "203", true),
            ("cook.ptaxsim/160121600200002024", "211A", true),
            ("cook.ptaxsim/160121600300002024", "299", true),
        ])
    );
}

/// Proves that rows with a wrong type or a huge text are rejected with the reason and without the text, that the others are read, and that a rejected row is
/// mapped again as it was.
#[test]
fn rows_are_rejected() {
    let rows = "INSERT INTO pin (year, pin, class) VALUES (2024, '16012160010000', hex(zeroblob(200000)));
        INSERT INTO pin (year, pin, class) VALUES (2024, '16012160020000', x'00ff');
        INSERT INTO pin (year, pin, class, exe_senior) VALUES (2024, '16012160030000', '203', 'many');
        INSERT INTO pin (year, pin, class, exe_freeze) VALUES (2024, '16012160040000', '203', NULL);
        INSERT INTO pin (year, pin, class) VALUES (2024, '1601216', '203');
        INSERT INTO pin (year, pin, class) VALUES (2024, '16012160050000', '203');";
    let (_dir, path) = file(&(published() + rows));
    let page = read(&path, None).unwrap();
    assert_eq!(page.observations.len(), 1);
    let reasons: Vec<(&str, &str)> = page.rejects.iter().map(|reject| (&*reject.reference, &*reject.reason)).collect();
    assert_eq!(
        reasons,
        [
            ("1601216 2024", "pin does not have 14 digits"),
            ("16012160010000 2024", "class is absent, too long or no text"),
            ("16012160020000 2024", "class is absent, too long or no text"),
            ("16012160030000 2024", "an exemption is absent or no number"),
            ("16012160040000 2024", "an exemption is absent or no number"),
        ]
    );
    let (upstream, of_file) = stream(STREAM);
    for reject in &page.rejects {
        assert!(reject.raw.len() < 200, "{reject:?}");
        let again = map(STREAM, upstream.single(of_file, &reject.raw)).unwrap();
        assert_eq!((again.observations.len(), &*again.rejects), (0, std::slice::from_ref(reject)));
    }
    let many: String = (10..40)
        .map(|at| format!("INSERT INTO pin (year, pin, class, exe_senior) VALUES (2024, '160121600{at}000', '203', 'many');"))
        .collect();
    let (_dir, path) = file(&(published() + &many));
    let stopped = read(&path, None);
    assert!(matches!(stopped, Err(UpstreamError::Stop { ref field, .. }) if field == "exe_homeowner"), "{stopped:?}");
}

/// Proves that a file that is not the expected database is refused with the reason, which does not name its path.
#[test]
fn files_are_refused() {
    let key = ", PRIMARY KEY (year, pin)) WITHOUT ROWID";
    let row = "INSERT INTO pin (year, pin, class) VALUES (2024, '16012160010000', '203');";
    let untyped = table("year, pin, class", key);
    for (statements, expected, reason) in [
        (String::new(), "pin", "no such table"),
        ("CREATE TABLE pins (year int, pin text);".to_owned(), "pin", "no such table"),
        (published().replace("exe_senior int DEFAULT 0, ", "") + row, "exe_senior", "no such column"),
        (published().replace(" class ", " klass "), "class", "no such column"),
        (table("year int, pin varchar(14), class varchar(3)", ")") + row, "pin", "primary key"),
        (table("year int, pin varchar(14) PRIMARY KEY, class varchar(3)", ")") + row, "pin", "primary key"),
        (published(), "pin", "no rows"),
        (published() + &row.replace("2024", "9999"), "year", "9999 is no tax year"),
        (untyped.clone() + &row.replace("2024", "'this year'"), "year", "no whole number"),
        (untyped.clone() + &row.replace("'16012160010000'", "16012160010000"), "pin", "no text"),
        (untyped.clone() + &row.replace("'16012160010000'", "x'3136'"), "pin", "no text"),
        (untyped + &row.replace("'16012160010000'", "hex(zeroblob(200000))"), "pin", "too long"),
    ] {
        let (_dir, path) = file(&statements);
        let refused = read(&path, None);
        let Err(UpstreamError::Stop { field, reason: found, .. }) = &refused else { panic!("{statements}: {refused:?}") };
        assert!(field == expected && found.contains(reason), "{statements}: {field}: {found}");
    }
    let view =
        "CREATE TABLE other AS SELECT 2024 AS year, '16012160010000' AS pin, '203' AS class; CREATE VIEW pin AS SELECT * FROM other;";
    let (_dir, path) = file(view);
    assert!(matches!(read(&path, None), Err(UpstreamError::Stop { .. })));
    std::fs::write(&path, "PK\x03\x04 a packed file, and no database".repeat(100)).unwrap();
    let refused = read(&path, None).unwrap_err().to_string();
    assert!(refused.contains("ptaxsim_path: the file is no SQLite database") && !refused.contains("ptaxsim.db"), "{refused}");
}

/// Proves that nothing is read without a file in the settings, and that a file that is not there can be there later.
#[test]
fn without_a_file() {
    let (upstream, of_file) = stream(STREAM);
    let cursor = upstream.start(of_file, &window(), &settings());
    assert!(!upstream.has_request(of_file, &cursor));
    let refused = upstream.request(of_file, &cursor, &settings());
    assert!(matches!(refused, Err(UpstreamError::Stop { ref field, .. }) if field == "ptaxsim_path"), "{refused:?}");
    let dir = tempfile::tempdir().unwrap();
    for path in [dir.path().to_owned(), dir.path().join("none.db")] {
        assert!(matches!(read(&path, None), Err(UpstreamError::Later { .. })));
    }
}
