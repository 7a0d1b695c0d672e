//! The coverage service as callers see it, on the history of the demo: its contract's acceptance list, over HTTP.
//!
//! Proved elsewhere: rows of New York that are amendments, nothing on file and replaced filings (`services/coverage/src/rules/tests.rs`), the boundaries
//! of tiers under a fixed clock (`services/coverage/src/operations/feed_page.rs`), a column that vanishes and stops only its stream (`drift` of the
//! upstreams' tests), and the cases of part 387 (`schemas/matching/src/mandates_tests.rs`).

use std::collections::BTreeSet;

use jiff::civil::Date;
use serde_json::{Value, json};

use crate::commands::NOWHERE;
use crate::demo_history;
use crate::process::{Server, highwater, run, stdout};

/// All leads of a query, page by page. Each page states the number of all.
fn leads(server: &Server, key: &str, query: &str) -> Vec<Value> {
    let (mut all, mut totals, mut after) = (Vec::new(), BTreeSet::new(), String::new());
    loop {
        let page = server.json(&format!("/coverage/v1/feed?limit=50&{query}{after}"), key);
        let rows = page["leads"].as_array().unwrap();
        assert_eq!(page["count"].as_u64(), Some(rows.len() as u64));
        all.extend(rows.iter().cloned());
        totals.insert(page["total"].as_u64().unwrap());
        match page["next"].as_str() {
            Some(next) => after = format!("&after={next}"),
            None => break,
        }
    }
    let ids: BTreeSet<&str> = all.iter().map(|lead| lead["id"].as_str().unwrap()).collect();
    assert_eq!((ids.len(), totals), (all.len(), BTreeSet::from([all.len() as u64])), "{query}: each lead once, and all of them");
    all
}

fn businesses(leads: &[Value]) -> BTreeSet<&str> {
    leads.iter().map(|lead| lead["business"].as_str().unwrap()).collect()
}

fn sum(counts: &Value) -> i64 {
    counts.as_object().unwrap().values().map(|count| count.as_i64().unwrap()).sum()
}

fn day(value: &Value) -> Date {
    value.as_str().unwrap().parse().unwrap()
}

/// Proves what everybody sees: at most 8 masked rows, counts whose sums agree with the leads, six sources, and terms with a masked preview; and that what is
/// wrong with arguments is named.
#[test]
fn coverage_shows_counts_and_masked_rows_to_everybody() {
    let dir = tempfile::tempdir().unwrap();
    let data = demo_history::copy_to(dir.path());
    let server = Server::ready(demo_history::still_with(&data, &["coverage"]));
    let key = stdout(highwater(&data, NOWHERE, &["keys", "mint", "--tier", "pro"])).trim().to_owned();

    let sample = server.json("/coverage/sample", "");
    let unpaid = server.send("GET", "/coverage/v1/feed", "", "");
    let terms: Value = serde_json::from_slice(&unpaid.body).unwrap();
    assert_eq!((unpaid.status, &terms["accepts"][0]["maxAmountRequired"]), (402, &json!("20000")));
    // The tools show and sell the same as the routes.
    let tool = |name: &str| -> Value {
        let call = json!({ "jsonrpc": "2.0", "id": 1, "method": "tools/call", "params": { "name": name, "arguments": {} } });
        let mut answer: Value = serde_json::from_slice(&server.send("POST", "/coverage/mcp", "", &call.to_string()).body).unwrap();
        answer["result"]["structuredContent"].take()
    };
    let offered = tool("coverage_feed");
    assert!(offered["accepts"].as_array().is_some_and(|accepts| !accepts.is_empty()), "{offered}");
    assert_eq!((&offered["preview"], offered.get("leads")), (&terms["preview"], None));
    assert_eq!((tool("coverage_sample"), tool("coverage_pulse")), (sample.clone(), server.json("/coverage/v1/pulse", "")));
    assert_eq!(tool("coverage_sources"), server.json("/coverage/v1/sources", ""));
    let (rows, preview) = (sample["leads"].as_array().unwrap(), terms["preview"]["leads"].as_array().unwrap());
    assert!((1..=8).contains(&rows.len()) && (1..=3).contains(&preview.len()), "{sample} {terms}");
    let longer: Value = serde_json::from_slice(&server.send("GET", "/coverage/v1/feed?days=90", "", "").body).unwrap();
    assert!(longer["preview"]["note"].as_str().unwrap().contains("this preview is of the last 7 days"), "{longer}");
    for row in rows.iter().chain(preview) {
        assert!(row["business"].as_str().unwrap().split(' ').all(|word| word.ends_with("***")), "{row}");
        assert!(["id", "dba", "city", "zip", "ids", "url", "evidence", "joined"].iter().all(|name| row.get(name).is_none()), "{row}");
    }

    for as_of in ["", "&asOf=2026-11-18"] {
        let pulse = server.json(&format!("/coverage/v1/pulse?days=7{as_of}"), "");
        let total = pulse["total"].as_i64().unwrap();
        assert_eq!(["bySource", "byTier", "byCoverageLine"].map(|name| sum(&pulse[name])), [total; 3], "{pulse}");
        let all = leads(&server, &key, &format!("days=7{as_of}"));
        let today = day(&pulse["to"]);
        let counted = all.iter().filter(|lead| day(&lead["triggerDate"]) <= today).count();
        assert!(total > 0 && i64::try_from(counted) == Ok(total), "{pulse}");
        for lead in leads(&server, &key, &format!("days=90&state=CO{as_of}")) {
            let age = (today - day(&lead["triggerDate"])).get_days();
            let tier = if age < 7 {
                "hot"
            } else if age < 30 {
                "warm"
            } else {
                "cool"
            };
            assert_eq!(lead["tier"], tier, "{lead}");
        }
    }
    let sources = server.json("/coverage/v1/sources", "");
    let named: Vec<&str> = sources["sources"].as_array().unwrap().iter().map(|source| source["source"].as_str().unwrap()).collect();
    assert_eq!(named, ["fmcsa", "sos-co", "sos-ct", "sos-ia", "sos-ny", "sos-or"]);
    assert!(sources["sources"].as_array().unwrap().iter().all(|source| !source["throughDate"].as_str().unwrap().is_empty()), "{sources}");

    for (path, parameter) in [
        ("/v1/pulse?days=0", "days"),
        ("/v1/pulse?days=91", "days"),
        ("/v1/pulse?days=week", "days"),
        ("/v1/feed?days=1.5", "days"),
        ("/v1/feed?state=Colorado", "state"),
        ("/v1/feed?state=ZZ", "state"),
        ("/v1/feed?coverageLine=CARG", "coverageLine"),
        ("/v1/feed?limit=0", "limit"),
        ("/v1/feed?limit=201", "limit"),
        ("/v1/feed?tier=tepid", "tier"),
        ("/v1/feed?basis=SURE", "basis"),
        ("/v1/feed?source=sos", "source"),
        ("/v1/feed?trigger=rumour", "trigger"),
        ("/v1/feed?after=x", "after"),
        ("/v1/feed?asOf=2999-01-01", "asOf"),
        ("/v1/whats_changed_since?tier=hot", "tier"),
    ] {
        let answer = server.send("GET", &format!("/coverage{path}"), &key, "");
        let problem: Value = serde_json::from_slice(&answer.body).unwrap();
        assert_eq!((answer.status, problem["parameter"].as_str()), (400, Some(parameter)), "{path}: {problem}");
    }
    for (query, known) in [("coverageLine=CARG", "did you mean"), ("state=Colorado", " CO,")] {
        let refused = server.send("GET", &format!("/coverage/v1/feed?{query}"), &key, "").body;
        assert!(String::from_utf8(refused).unwrap().contains(known), "{query}");
    }
}

/// Proves the leads of the simulated carriers and companies that have a part to play: one business in two sources is one lead, a private carrier is
/// demanded nothing, a filing lapses only without a replacement and with nothing on file; that each demand is cited; and that a rebuild gives the same.
#[test]
fn coverage_leads_follow_from_rules_and_facts() {
    let dir = tempfile::tempdir().unwrap();
    let data = demo_history::copy_to(dir.path());
    let server = Server::ready(demo_history::still_with(&data, &["coverage"]));
    let key = stdout(highwater(&data, NOWHERE, &["keys", "mint", "--tier", "pro"])).trim().to_owned();

    let liability = leads(&server, &key, "days=90&state=CO&coverageLine=AUTO_LIABILITY_BIPD");
    assert!(liability.iter().all(|lead| lead["state"] == "CO" && lead["coverageLine"] == "AUTO_LIABILITY_BIPD"));
    assert!(
        liability
            .iter()
            .all(|lead| lead["basis"] != "MANDATED" || lead["mandate"]["citation"].as_str().unwrap().starts_with("49 CFR 387."))
    );
    let leads_named =
        |name: &str| liability.iter().filter(|lead| lead["business"].as_str().unwrap().to_uppercase().contains(name)).collect::<Vec<_>>();
    let merged = leads_named("BLUE MESA FREIGHT");
    assert_eq!(merged.len(), 1, "{merged:?}");
    assert_eq!((&merged[0]["sources"], &merged[0]["basis"]), (&json!(["sos-co", "fmcsa"]), &json!("MANDATED")));
    assert_eq!(merged[0]["mandate"]["amount"], 750_000);
    assert_eq!(leads_named("PRIVATE ORCHARD").iter().map(|lead| lead["basis"].as_str().unwrap()).collect::<Vec<_>>(), ["POSSIBLE"]);
    assert!(leads_named("TANKER TRAIL").iter().all(|lead| lead["mandate"]["amount"] == Value::Null && lead["basis"] == "MANDATED"));

    let has_evidence = |lead: &Value| lead["evidence"].as_array().is_some_and(|facts| !facts.is_empty());
    for state in ["CO", "CT", "NY"] {
        let of_state = leads(&server, &key, &format!("days=90&state={state}"));
        assert!(!of_state.is_empty() && of_state.iter().all(has_evidence), "{state}: {of_state:?}");
    }
    let lapses = leads(&server, &key, "days=90&state=CO&coverageLine=AUTO_LIABILITY_BIPD&trigger=insurance_lapse");
    let lapsed = businesses(&lapses);
    assert!(lapsed.contains("LAPSED LINES LLC"), "{lapsed:?}");
    assert!(!lapsed.contains("REPLACED ROADWAYS LLC") && !lapsed.contains("STILL ON FILE LLC"), "{lapsed:?}");
    assert!(!Value::from(lapses).to_string().to_lowercase().contains("uninsured"));

    let digest = || stdout(highwater(&data, NOWHERE, &["digest", "coverage", "--history"]));
    let before = digest();
    assert!(run(highwater(&data, NOWHERE, &["replay", "coverage"])).status.success());
    assert_eq!(digest(), before);
}
