//! The exclusions service as callers see it, on the history of the demo: its contract's acceptance list, over HTTP.
//!
//! Proved elsewhere: terminated awards and sums to the cent (`services/exclusions/src/operations/artifact/tests.rs`), exclusions that are active on a day
//! (`services/exclusions/src/record.rs`), half a file and cross-references in another order (`ingest/upstreams/src/sam_exclusions.rs` and `row.rs` next to it),
//! the worked example of the hash (`schemas/proofs/src/evidence.rs`), and verdicts (`services/exclusions/src/rules/contradiction/tests.rs`).

use std::collections::BTreeSet;

use jiff::civil::Date;
use serde_json::{Value, json};

use crate::commands::NOWHERE;
use crate::demo_history;
use crate::process::{Server, highwater, run, stdout};

/// An excluded contractor with running awards.
const CONTRACTOR: &str = "SPPA4G7J3N91";

fn rows<'a>(answer: &'a Value, field: &str) -> &'a [Value] {
    answer[field].as_array().unwrap()
}

fn problem(server: &Server, key: &str, path: &str) -> (u16, Value) {
    let answer = server.send("GET", &format!("/exclusions{path}"), key, "");
    (answer.status, serde_json::from_slice(&answer.body).unwrap())
}

/// Proves the free sample, terms whose preview is signal and summary only, the paid artifact whose hash, sums and sentence agree, its permalink, and a name
/// that alone raises no signal.
#[test]
fn artifacts_of_excluded_contractors() {
    let dir = tempfile::tempdir().unwrap();
    let data = demo_history::copy_to(dir.path());
    let server = Server::ready(demo_history::still_with(&data, &["exclusions", "receipts"]));
    let key = stdout(highwater(&data, NOWHERE, &["keys", "mint", "--tier", "pro"])).trim().to_owned();

    let sample = server.json("/exclusions/sample", "");
    assert!((1..=5).contains(&rows(&sample, "artifacts").len()), "{sample}");
    for artifact in rows(&sample, "artifacts") {
        assert_eq!(artifact["signal"], "EXCLUDED_WHILE_ACTIVE");
        assert!(artifact["match"] == "uei" || artifact["match"] == "cage", "{artifact}");
        assert!(
            rows(artifact, "federalAwards").len() <= 3 && artifact.get("artifactHash").is_none() && artifact.get("permalink").is_none()
        );
        assert!(artifact["disclaimer"].as_str().unwrap().contains("not a compliance determination"));
    }

    let path = format!("/v1/entity_watch?uei={CONTRACTOR}");
    let (status, terms) = problem(&server, "", &path);
    let preview: Vec<&str> = terms["preview"].as_object().unwrap().keys().map(String::as_str).collect();
    assert_eq!((status, preview, &terms["accepts"][0]["maxAmountRequired"]), (402, vec!["signal", "summary"], &json!("100000")));

    let artifact = server.json(&format!("/exclusions{path}"), &key);
    assert!(proofs::evidence::verify(&artifact).unwrap().is_valid, "{artifact}");
    let running = rows(&artifact, "federalAwards").iter().filter(|award| award["stillRunning"] == true).collect::<Vec<_>>();
    let later = running.iter().filter(|award| award["signedAfterExclusion"] == true).count();
    assert_eq!(artifact["summary"]["activeAwardsNow"], running.len());
    assert_eq!(artifact["split"], json!({ "signedAfterExclusion": later, "runningSinceBefore": running.len() - later }));
    let numbers = format!("{} award(s) still running, {later} of them signed after that date", running.len());
    assert!(artifact["statement"].as_str().unwrap().contains(&numbers), "{artifact}");
    let awards = rows(&artifact, "federalAwards");
    assert!(awards.iter().all(|award| award["sourceUrl"].as_str().unwrap().contains(award["awardId"].as_str().unwrap())));

    let permalink = artifact["permalink"].as_str().unwrap();
    let (_, link) = permalink.split_once("/v1/artifact").unwrap();
    let again = server.json(&format!("/exclusions/v1/artifact{link}"), "");
    // The history is short, which a note says next to the artifact.
    assert!(proofs::evidence::verify(&again).unwrap().is_valid && again.get("note").is_none(), "{again}");
    assert_eq!((&again["artifactHash"], &again["federalAwards"]), (&artifact["artifactHash"], &artifact["federalAwards"]));
    let prefix = &artifact["artifactHash"].as_str().unwrap()[7..23];
    assert!(link.contains(prefix), "{link}");
    assert_eq!(problem(&server, "", &format!("/v1/artifact{}", link.replace(prefix, "0000000000000000"))).0, 404);

    // Before the exclusion was active nothing is said of the entity.
    let active: Date = artifact["exclusion"]["activeDate"].as_str().unwrap().parse().unwrap();
    let earlier = server.json(&format!("/exclusions{path}&asOf={}", active.yesterday().unwrap()), &key);
    assert_eq!((&earlier["signal"], &earlier["exclusion"], &earlier["federalAwards"]), (&json!("NO_SIGNAL"), &Value::Null, &json!([])));
    assert!(earlier["statement"].as_str().unwrap().contains("no active exclusion"), "{earlier}");

    // The name is the only thing in common.
    let named = server.json("/exclusions/v1/entity_watch?name=Cedarline%20Logistics", &key);
    assert_eq!(named["signal"], "NAME_MATCH_ONLY", "{named}");
    assert!(!sample.to_string().contains("CEDARLINE"));
    // Lifted after two files without it, with a change that says so.
    let lifted = server
        .json("/exclusions/v1/whats_changed_since?start=earliest&uei=OTBL8E4T6M77&kind=exclusion&includeBackfill=true&limit=100", &key);
    assert_eq!(rows(&lifted, "changes").last().map(|change| &change["withdrawn"]), Some(&json!(true)), "{lifted}");
    assert_eq!(server.json("/exclusions/v1/exclusion_check?uei=OTBL8E4T6M77", "")["onIndex"], false);
}

/// Proves that the scan sells rows without awards and hashes, each as the artifact of its entity says, that the list of an agency has a part of all rows, and
/// that a page is the same when it is read again.
#[test]
fn excluded_contractors_are_scanned() {
    let dir = tempfile::tempdir().unwrap();
    let data = demo_history::copy_to(dir.path());
    let server = Server::ready(demo_history::still_with(&data, &["exclusions"]));
    let key = stdout(highwater(&data, NOWHERE, &["keys", "mint", "--tier", "pro"])).trim().to_owned();

    let (status, terms) = problem(&server, "", "/v1/scan");
    assert_eq!((status, &terms["accepts"][0]["maxAmountRequired"]), (402, &json!("20000")), "{terms}");
    assert!((1..=3).contains(&rows(&terms["preview"], "rows").len()), "{terms}");
    let scan = |query: &str| server.json(&format!("/exclusions/v1/scan?limit=200{query}"), &key);
    let all = scan("");
    assert_eq!(all, scan(""), "the second answer comes from what was kept");
    for row in rows(&all, "rows") {
        let fields: BTreeSet<&str> = row.as_object().unwrap().keys().map(String::as_str).collect();
        assert_eq!(fields, BTreeSet::from(["signal", "entity", "exclusion", "summary", "match", "url"]), "{row}");
        let (_, call) = row["url"].as_str().unwrap().split_once("/v1/entity_watch").unwrap();
        let artifact = server.json(&format!("/exclusions/v1/entity_watch{call}"), &key);
        for field in ["signal", "entity", "exclusion", "summary", "match"] {
            assert_eq!(row[field], artifact[field], "{field}");
        }
    }
    let ueis = |scan: &Value| -> BTreeSet<String> {
        rows(scan, "rows").iter().map(|row| row["entity"]["uei"].as_str().unwrap().to_owned()).collect()
    };
    assert!(ueis(&all).contains(CONTRACTOR) && ueis(&all).len() == rows(&all, "rows").len(), "{all}");
    let agencies: BTreeSet<&str> = rows(&all, "rows").iter().map(|row| row["exclusion"]["excludingAgency"].as_str().unwrap()).collect();
    let mut found = BTreeSet::new();
    for agency in agencies {
        let of_agency = scan(&format!("&agency={agency}"));
        assert_eq!(ueis(&of_agency), ueis(&scan(&format!("&agency={}", agency.to_lowercase()))), "{agency}");
        assert!(ueis(&of_agency).is_subset(&ueis(&all)) && ueis(&of_agency).is_disjoint(&found), "{agency}: {of_agency}");
        found.extend(ueis(&of_agency));
    }
    assert!(found.contains(CONTRACTOR), "{found:?}");
    assert!(rows(&scan("&agency=NONE"), "rows").is_empty());
    let by_uei = scan("&match=uei");
    assert!(rows(&by_uei, "rows").iter().all(|row| row["match"] == "uei") && ueis(&by_uei).is_subset(&ueis(&all)), "{by_uei}");
}

/// Proves that a person is found by the whole name only, that scores are the sums of their signals, that the calibration says why it has no figures, that a
/// comparison has both sides, that tools are there by name, that wrong arguments are named, and that a rebuild gives the same.
#[test]
fn checks_rankings_and_comparisons() {
    let dir = tempfile::tempdir().unwrap();
    let data = demo_history::copy_to(dir.path());
    let server = Server::ready(demo_history::still_with(&data, &["exclusions", "receipts"]));
    let key = stdout(highwater(&data, NOWHERE, &["keys", "mint", "--tier", "pro"])).trim().to_owned();

    let check = |name: &str| server.json(&format!("/exclusions/v1/exclusion_check?entity={name}"), "");
    let whole = check("Anselm%20B%20Farrow");
    assert_eq!((&whole["onIndex"], &whole["matches"][0]["match"]), (&json!(true), &json!("name_exact")), "{whole}");
    assert!(whole["matches"][0].get("address").is_none());
    for half in ["Farrow", "Anselm"] {
        assert_eq!(check(half)["onIndex"], false, "{half}");
    }

    let ranked = server.json("/exclusions/v1/recompete_flip?naics=11,23,33,48,54,56,61&limit=25", "");
    for candidate in rows(&ranked, "candidates") {
        let points: i64 = rows(candidate, "signals").iter().map(|signal| signal["points"].as_i64().unwrap()).sum();
        assert_eq!(candidate["score"].as_i64(), Some(points.clamp(0, 100)), "{candidate}");
        assert!(rows(candidate, "signals").iter().all(|signal| !signal["awardId"].as_str().unwrap().is_empty()), "{candidate}");
    }
    let calibration = &ranked["calibration"];
    assert_eq!((rows(calibration, "bands").len(), &calibration["contracts"]), (5, &json!(0)), "{calibration}");
    assert!(calibration["note"].as_str().unwrap().contains("history is too short"));

    let compared = server.json("/exclusions/v1/contradiction?ticker=DEMOA", "");
    assert!(["consistent", "differs", "not_comparable"].contains(&compared["verdict"].as_str().unwrap()), "{compared}");
    assert!(compared["gov"].is_object() && compared["awards"].is_object() && compared["gaps"].is_array(), "{compared}");

    let listed = server.send("POST", "/exclusions/mcp", &key, &json!({"jsonrpc": "2.0", "id": 1, "method": "tools/list"}).to_string());
    let listed: Value = serde_json::from_slice(&listed.body).unwrap();
    let tools: BTreeSet<&str> = listed["result"]["tools"].as_array().unwrap().iter().map(|tool| tool["name"].as_str().unwrap()).collect();
    assert!(tools.is_superset(&BTreeSet::from([
        "govcon_entity_watch",
        "exclusion_check",
        "recompete_flip",
        "contradiction_check",
        "changes"
    ])));

    // The tool calls the name `entity`.
    for (arguments, detail) in [(json!({}), "`entity` or `uei` is required"), (json!({ "entity": "!?" }), "\"!?\" is not a name")] {
        let call = json!({ "jsonrpc": "2.0", "id": 1, "method": "tools/call", "params": { "name": "govcon_entity_watch", "arguments": arguments } });
        let refused: Value = serde_json::from_slice(&server.send("POST", "/exclusions/mcp", &key, &call.to_string()).body).unwrap();
        let problem: Value = serde_json::from_str(refused["result"]["content"][0]["text"].as_str().unwrap()).unwrap();
        assert_eq!(problem["parameter"], "entity", "{refused}");
        assert!(problem["detail"].as_str().unwrap().starts_with(detail), "{refused}");
    }

    for (path, parameter) in [
        ("/v1/entity_watch", "name"),
        ("/v1/entity_watch?uei=ABCDEF12345", "uei"),
        ("/v1/entity_watch?uei=ABCDEF-12345", "uei"),
        ("/v1/entity_watch?name=%21%3F", "name"),
        ("/v1/entity_watch?uei=SPPA4G7J3N91&receipt=maybe", "receipt"),
        ("/v1/exclusion_check", "entity"),
        ("/v1/scan?limit=0", "limit"),
        ("/v1/scan?limit=201", "limit"),
        ("/v1/scan?match=name", "match"),
        ("/v1/scan?after=x", "after"),
        ("/v1/recompete_flip", "naics"),
        ("/v1/recompete_flip?naics=5x", "naics"),
        ("/v1/recompete_flip?naics=54&minScore=101", "minScore"),
        ("/v1/contradiction", "ticker"),
        ("/v1/contradiction?ticker=DEMOA&fiscalYear=soon", "fiscalYear"),
        ("/sample?limit=11", "limit"),
        ("/v1/whats_changed_since?kind=hits", "kind"),
    ] {
        let (status, problem) = problem(&server, &key, path);
        assert_eq!((status, problem["parameter"].as_str()), (400, Some(parameter)), "{path}: {problem}");
    }
    let (status, unknown) = problem(&server, "", "/v1/contradiction?ticker=ZZZZ");
    assert_eq!((status, unknown["parameter"].as_str()), (404, Some("ticker")), "{unknown}");

    let digest = || stdout(highwater(&data, NOWHERE, &["digest", "exclusions", "--history"]));
    let before = digest();
    assert!(run(highwater(&data, NOWHERE, &["replay", "exclusions"])).status.success());
    assert_eq!(digest(), before);
}
