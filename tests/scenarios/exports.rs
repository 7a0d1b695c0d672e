//! Files of current records, from the command line and over HTTP.

use std::collections::BTreeMap;
use std::net::Ipv4Addr;
use std::path::Path;
use std::process::Command;

use serde_json::Value;

use crate::child::run_check;
use crate::commands::NOWHERE;
use crate::connection::Connection;
use crate::demo_history;
use crate::engine::moving_clock;
use crate::process::{Answer, Server, highwater, stdout};

/// The id of each record of a service with the `seq` of its last change, as of the end of a day, from the feed.
fn records_of_feed(server: &Server, service: &str, as_of: &str, key: &str) -> BTreeMap<String, u64> {
    let (mut records, mut position) = (BTreeMap::new(), "start=earliest".to_owned());
    loop {
        let page = server.json(&format!("/{service}/v1/changes?{position}&limit=200{as_of}"), key);
        for change in page["changes"].as_array().unwrap() {
            let (id, record) = (change["record"]["id"].as_str().unwrap().to_owned(), &change["record"]);
            if record["withdrawn"] == true || record["mergedInto"].as_str().is_some_and(|other| !other.is_empty()) {
                records.remove(&id);
            } else {
                records.insert(id, change["seq"].as_u64().unwrap());
            }
        }
        if page["hasMore"] == false {
            return records;
        }
        position = format!("cursor={}", page["cursor"].as_str().unwrap());
    }
}

/// The same from the lines of a file. No record may be there twice.
fn records_of_file(lines: &str) -> BTreeMap<String, u64> {
    let rows: Vec<Value> = lines.lines().map(|line| serde_json::from_str(line).unwrap()).collect();
    let records: BTreeMap<String, u64> =
        rows.iter().map(|row| (row["id"].as_str().unwrap().to_owned(), row["seq"].as_u64().unwrap())).collect();
    assert_eq!(records.len(), rows.len());
    records
}

async fn get(server: &Server, path: &str, key: &str, more: &str) -> Answer {
    let mut connection = Connection::open(Ipv4Addr::LOCALHOST, server.address, 0).await.unwrap();
    let request = format!("GET {path} HTTP/1.1\r\nhost: localhost\r\nx-api-key: {key}\r\n{more}connection: close\r\n\r\n");
    connection.send(request.as_bytes()).await.unwrap();
    connection.answer(false).await.unwrap().unwrap()
}

/// Proves that the command exports exactly the current records in each format, that the file of a day over HTTP holds the records of that day and is
/// revalidated, that lower tiers, other names and days that have not ended are refused, and that DuckDB counts the records right.
#[test]
fn files_hold_the_listed_records() {
    let dir = tempfile::tempdir().unwrap();
    let data = demo_history::copy_to(dir.path());
    let mut demo = highwater(&data, NOWHERE, demo_history::STILL);
    demo.env("HIGHWATER_TIERS__FREE__CALLS_PER_DAY", "1000000000");
    let server = Server::ready(demo);
    let [pro, free] = ["pro", "free"].map(|tier| stdout(highwater(&data, NOWHERE, &["keys", "mint", "--tier", tier])).trim().to_owned());
    let runtime = tokio::runtime::Runtime::new().unwrap();
    let get = |path: &str, key: &str, more: &str| runtime.block_on(get(&server, path, key, more));
    let now = moving_clock().now().to_zoned(jiff::tz::TimeZone::UTC).date();
    let [yesterday, tomorrow] = [now.yesterday().unwrap(), now.tomorrow().unwrap()];

    for service in ["recalls", "research", "filings", "awards"] {
        let lines = stdout(highwater(&data, NOWHERE, &["export", service, "--current"]));
        assert_eq!(records_of_file(&lines), records_of_feed(&server, service, "", &pro), "{service}");
        assert!(lines.lines().count() > 10, "{service}: {lines}");
        let file = get(&format!("/{service}/v1/exports/{yesterday}.ndjson"), &pro, "");
        assert_eq!((file.status, file.header("content-type")), (200, "application/x-ndjson"), "{service}: {}", file.head());
        let of_day = records_of_feed(&server, service, &format!("&asOf={yesterday}"), &pro);
        assert_eq!(records_of_file(&String::from_utf8(file.body).unwrap()), of_day, "{service}");
    }

    let path = format!("/recalls/v1/exports/{yesterday}.parquet");
    let file = get(&path, &pro, "");
    assert_eq!(file.header("content-disposition"), format!("attachment; filename=\"recalls-{yesterday}.parquet\""));
    assert!(file.body.starts_with(b"PAR1") && file.body.ends_with(b"PAR1"));
    assert_eq!(get(&path, &pro, &format!("if-none-match: {}\r\n", file.header("etag"))).status, 304);
    assert_eq!((file.header("content-length"), file.header("accept-ranges")), (file.body.len().to_string().as_str(), "bytes"));
    let middle = file.body.len() / 2;
    let halves = [format!("bytes=0-{}", middle - 1), format!("bytes={middle}-")].map(|range| {
        let half = get(&path, &pro, &format!("range: {range}\r\nif-range: {}\r\n", file.header("etag")));
        assert_eq!((half.status, half.header("etag")), (206, file.header("etag")), "{range}: {}", half.head());
        half.body
    });
    assert!(halves.concat() == file.body, "a download in two parts is the file");
    assert!(get(&path, &pro, "range: bytes=4-\r\nif-range: \"other\"\r\n").body == file.body);
    let beyond = get(&path, &pro, &format!("range: bytes={}-\r\n", file.body.len()));
    assert_eq!((beyond.status, beyond.header("content-range")), (416, format!("bytes */{}", file.body.len()).as_str()));
    for (path, key, status, code) in [
        (path.clone(), &free, 403, "tier-too-low"),
        (format!("/recalls/v1/exports/{tomorrow}.parquet"), &pro, 400, "as-of-invalid"),
        (format!("/recalls/v1/exports/{yesterday}.xlsx"), &pro, 400, "parameter-invalid"),
        ("/recalls/v1/exports/2026-02-31.csv".to_owned(), &pro, 400, "as-of-invalid"),
    ] {
        let refused = get(&path, key, "");
        let problem: Value = serde_json::from_slice(&refused.body).unwrap();
        assert_eq!((refused.status, problem["code"].as_str().unwrap()), (status, code), "{path}: {problem}");
        assert!(status != 400 || problem["parameter"] == "file", "{path}: {problem}");
        let is_of_tomorrow = problem["detail"].as_str().unwrap().contains("is made after that day ends in UTC");
        assert_eq!(is_of_tomorrow, path.contains(&tomorrow.to_string()), "{path}: {problem}");
    }

    for format in ["parquet", "csv", "ndjson"] {
        let file = dir.path().join(format!("recalls.{format}"));
        stdout(highwater(&data, NOWHERE, &["export", "recalls", "--current", "--format", format, "--output", file.to_str().unwrap()]));
    }
    let mut check = Command::new(Path::new(env!("CARGO_MANIFEST_DIR")).join("ops/checks/exports"));
    check.arg(dir.path());
    println!("{}", run_check(check));
}
