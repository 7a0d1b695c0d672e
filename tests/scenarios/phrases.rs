//! The phrases service on the demo: what it promises of rising phrases, velocities, clearances and labels.

use std::collections::{BTreeMap, BTreeSet};

use serde_json::{Value, json};

use crate::commands::NOWHERE;
use crate::demo_history;
use crate::process::{Server, highwater, stdout, wait_for};

/// The phrase that the demo lets rise on its last day from 04:00 on, and a time before that.
const RISING: &str = "tidal kernels";
const BEFORE: &str = "2026-11-19T23:00:00Z";

/// Starts the demo with its data at rest; returns it with a key of tier pro.
fn start(dir: &std::path::Path) -> (Server, String) {
    let data = demo_history::copy_to(dir);
    let mut command = demo_history::still_with(&data, &["names", "phrases"]);
    command.env("HIGHWATER_TIERS__FREE__CALLS_PER_DAY", "1000000000");
    let server = Server::ready(command);
    let key = stdout(highwater(&data, NOWHERE, &["keys", "mint", "--tier", "pro"])).trim().to_owned();
    (server, key)
}

fn query(text: &str) -> String {
    text.replace(' ', "%20")
}

fn rising(server: &Server, key: &str, arguments: &str) -> Vec<Value> {
    server.json(&format!("/phrases/v1/rising?limit=200{arguments}"), key)["phrases"].as_array().unwrap().clone()
}

fn velocity(server: &Server, phrase: &str, arguments: &str) -> Value {
    server.json(&format!("/phrases/v1/velocity?phrase={}{arguments}", query(phrase)), "")
}

/// Proves that the phrase that rises is first, within three hours of its first story; that rows are sorted and each warms or rises; that a larger
/// multiple gives fewer phrases; that another phrase, and this one before its day, is flat; and that samples have the phrase.
#[test]
fn the_phrase_of_the_day_rises() {
    let dir = tempfile::tempdir().unwrap();
    let (server, key) = start(dir.path());
    let all = rising(&server, &key, "");
    assert_eq!((&all[0]["phrase"], &all[0]["label"]), (&json!(RISING), &json!("RISING")), "{}", all[0]);
    let rank = |row: &Value| (row["multiple"].as_f64().unwrap(), row["count"].as_u64().unwrap());
    for (row, next) in all.iter().zip(all.iter().skip(1)) {
        assert!(rank(row) > rank(next) || rank(row) == rank(next) && row["phrase"].as_str() < next["phrase"].as_str(), "{row}\n{next}");
    }
    for row in &all {
        assert!(["RISING", "WARMING"].iter().any(|label| row["label"] == *label) && row["count"].as_u64() >= Some(3), "{row}");
        assert!(row["samples"].as_array().unwrap().len() <= 3 && row.get("author").is_none(), "{row}");
    }
    for sample in all[0]["samples"].as_array().unwrap() {
        assert!(sample["title"].as_str().unwrap().to_lowercase().contains(RISING), "{sample}");
        assert!(sample["url"].is_string() && sample["publishedAt"].as_str() > Some("2026-11-20T04"), "{sample}");
    }
    let phrases = |rows: &[Value]| -> BTreeSet<String> { rows.iter().map(|row| row["phrase"].as_str().unwrap().to_owned()).collect() };
    let fewer = rising(&server, &key, "&min_multiple=10");
    assert!(phrases(&fewer).is_subset(&phrases(&all)) && fewer.len() < all.len(), "{fewer:?}");
    assert_eq!(rising(&server, &key, "&minMultiple=10"), fewer, "an alias");
    assert_eq!(server.json("/phrases/v1/rising", "")["count"].as_u64(), Some(all.len().min(25) as u64));

    let now = velocity(&server, "Tidal-Kernels", "");
    for field in ["phrase", "label", "multiple", "count", "baseline", "pValue", "authors", "window", "sources", "samples", "updated"] {
        assert_eq!(now[field], all[0][field], "{field}: {now}");
    }
    assert!(now["authors"].as_u64() > Some(1) && now["insufficient"] == false && now["min_multiple"] == 3, "{now}");
    assert_eq!((&now["window"]["hours"], &now["window"]["to"]), (&json!(24), &now["updated"]));
    for flat in [velocity(&server, "nobody says this", ""), velocity(&server, RISING, &format!("&asOf={BEFORE}"))] {
        assert_eq!((&flat["label"], &flat["count"], &flat["samples"]), (&json!("FLAT"), &json!(0), &json!([])), "{flat}");
    }
    let before = rising(&server, &key, &format!("&asOf={BEFORE}"));
    assert!(!phrases(&before).contains(RISING) && !before.is_empty(), "{before:?}");
}

/// Proves that the feed has each change of a label once, and that the phrase of the day was labelled within three hours.
#[test]
fn labels_are_the_changes() {
    let dir = tempfile::tempdir().unwrap();
    let (server, key) = start(dir.path());
    let (mut labels, mut cursor): (BTreeMap<String, Vec<Value>>, String) = (BTreeMap::new(), "start=earliest".to_owned());
    loop {
        let page = server.json(&format!("/phrases/v1/changes?limit=200&{cursor}"), &key);
        for change in page["changes"].as_array().unwrap() {
            let record = &change["record"];
            let of_phrase = labels.entry(record["phrase"].as_str().unwrap().to_owned()).or_default();
            let before = of_phrase.last().map_or(json!("FLAT"), |record: &Value| record["label"].clone());
            assert_eq!(change["previousLabel"], before, "{change}");
            assert_ne!(record["label"], before, "{change}");
            of_phrase.push(record.clone());
        }
        cursor = format!("cursor={}", page["cursor"].as_str().unwrap());
        if page["hasMore"] == false {
            break;
        }
    }
    let first =
        labels[RISING].iter().find(|record| record["label"] == "RISING" && record["since"].as_str() > Some("2026-11-20T04")).unwrap();
    assert!(first["since"].as_str() <= Some("2026-11-20T07:00:00Z"), "{first}");
    let known: BTreeSet<&str> = labels.values().flatten().filter_map(|record| record["label"].as_str()).collect();
    assert!(known.is_superset(&BTreeSet::from(["FLAT", "RISING", "WARMING"])), "{known:?}");
}

/// Proves that an unpaid radar shows the velocity and nothing of the clearance, that a paid one has the counts of the name check, that bad input names its
/// parameter, and that health names both sources and the register.
#[test]
fn clearances_are_those_of_the_name_check() {
    let dir = tempfile::tempdir().unwrap();
    let (server, key) = start(dir.path());
    wait_for("the index of names", || (server.get("/names/api/check?name=Zq", "")?.0 == 200).then_some(()));
    let path = format!("/phrases/v1/radar?phrase={}", query(RISING));
    let unpaid = server.send("GET", &path, "", "");
    let terms: Value = serde_json::from_slice(&unpaid.body).unwrap();
    assert_eq!((unpaid.status, &terms["preview"]["label"], terms["preview"].get("clearance")), (402, &json!("RISING"), None), "{terms}");
    let call = json!({ "jsonrpc": "2.0", "id": 1, "method": "tools/call", "params": { "name": "phrase_radar", "arguments": { "phrase": RISING } } });
    let called: Value = serde_json::from_slice(&server.send("POST", "/phrases/mcp", "", &call.to_string()).body).unwrap();
    let preview = &called["result"]["structuredContent"]["preview"];
    assert_eq!((&preview["label"], preview.get("clearance")), (&json!("RISING"), None), "{called}");

    let mut statuses = BTreeSet::new();
    let is_plain =
        |mark: &&str| !mark.is_empty() && mark.chars().all(|c| c.is_ascii_alphanumeric() || c == ' ') && mark.split(' ').count() <= 6;
    let marks = simulator::TRADEMARKS.iter().map(|mark| mark.mark).filter(is_plain);
    for name in marks.chain([RISING]) {
        let radar = server.json(&format!("/phrases/v1/radar?phrase={}", query(name)), &key);
        let check = server.json(&format!("/names/api/check?name={}", query(name)), &key);
        let (clearance, counts) = (&radar["clearance"], &check["counts"]);
        let status = match check["verdict"].as_str().unwrap() {
            "LIKELY_AVAILABLE" => "CLEAR",
            "CAUTION" => "SIMILAR",
            _ => "TAKEN",
        };
        assert_eq!(clearance["status"], status, "{name}: {radar}");
        let pairs = [("exact", "exact"), ("similar", "strong"), ("partial", "partial")];
        assert!(pairs.iter().all(|(own, theirs)| clearance[own] == counts[theirs]), "{name}: {clearance} {counts}");
        assert_eq!((&clearance["link"], &clearance["asOf"]), (&json!(""), &check["corpus"]["throughDate"]), "{name}");
        assert!(radar["disclaimer"].as_str().unwrap().contains("The result is not legal advice."));
        statuses.insert(status);
    }
    assert!(statuses.len() >= 2, "{statuses:?}");

    for (path, parameter) in [
        ("velocity", "phrase"),
        ("velocity?phrase=", "phrase"),
        ("velocity?phrase=%3F%21", "phrase"),
        ("velocity?phrase=a%20b%20c%20d%20e%20f%20g", "phrase"),
        (&*format!("velocity?phrase={}", "x".repeat(101)), "phrase"),
        ("velocity?phrase=x&window_hours=5", "window_hours"),
        ("velocity?phrase=x&min_multiple=1", "min_multiple"),
        ("velocity?phrase=x&asOf=2999-01-01", "asOf"),
        ("rising?limit=0", "limit"),
        ("rising?min_multiple=21", "min_multiple"),
        ("radar?phrase=x&class=46", "class"),
    ] {
        let answer = server.send("GET", &format!("/phrases/v1/{path}"), &key, "");
        let problem: Value = serde_json::from_slice(&answer.body).unwrap();
        assert_eq!((answer.status, &problem["parameter"]), (400, &json!(parameter)), "{path}: {problem}");
    }
    let health = server.json("/phrases/health", "");
    let sources: Vec<&Value> = health["sources"].as_array().unwrap().iter().map(|source| &source["name"]).collect();
    assert_eq!((sources, &health["registry"]), (vec![&json!("hacker_news"), &json!("wikimedia")], &json!("loaded")), "{health}");
    assert!(health["sources"][0]["ok"] == true && health["sources"][0]["lag"].as_u64() < Some(6), "{health}");
}

/// Proves that a server without a register clears nothing: the radar is not verified, has no counts and leads to the search by hand; and that before the
/// first hour of stories a phrase is flat, with a note that says why.
#[test]
fn nothing_is_cleared_without_a_register() {
    let dir = tempfile::tempdir().unwrap();
    let data = dir.path().join("data");
    let key = stdout(highwater(&data, NOWHERE, &["keys", "mint", "--tier", "pro"])).trim().to_owned();
    let server = Server::ready(highwater(&data, NOWHERE, &["serve"]));
    let radar = server.json("/phrases/v1/radar?phrase=Agent-Mesh&class=9", &key);
    let clearance = &radar["clearance"];
    assert_eq!((&clearance["status"], &clearance["asOf"]), (&json!("UNVERIFIED"), &json!("")), "{radar}");
    assert_eq!(clearance["link"], "https://tmsearch.uspto.gov/search/search-information");
    assert!(["exact", "similar", "partial"].iter().all(|count| clearance[count].is_null()), "{clearance}");
    let (velocity, note) = (&radar["velocity"], radar["note"].as_str().unwrap_or_default());
    assert_eq!((&radar["phrase"], &velocity["label"], &velocity["insufficient"]), (&json!("agent mesh"), &json!("FLAT"), &json!(true)));
    assert!(note.contains("no hour of stories has been read"), "{radar}");
    let health = server.json("/phrases/health", "");
    assert_eq!((&health["registry"], &health["sources"][0]["ok"]), (&json!("absent"), &json!(false)), "{health}");
}
