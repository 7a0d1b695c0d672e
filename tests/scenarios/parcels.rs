//! The parcels service as callers see it, on the history of the demo: its contract's acceptance list, over HTTP.
//!
//! Proved elsewhere: a payment at `/x402/pay` (`tests/scenarios/payments`), a half-loaded table that satisfies no lien (`services/parcels/src/rules/liens.rs`),
//! names of persons in every form of a record (`services/parcels/src/tests.rs`), and the arithmetic of tiers (`schemas/property/src/ratios.rs`).

use std::collections::BTreeSet;

use serde_json::{Value, json};

use crate::commands::NOWHERE;
use crate::demo_history;
use crate::process::{Server, highwater, run, stdout};

/// The parcel of the contract's worked example.
const EXAMPLE: &str = "16012160640000";
/// A parcel that the certified values make over-assessed, and one that they resolve.
const RISEN: &str = "16012160620000";
const LOWERED: &str = "16012160630000";
/// A parcel with each peculiarity of liens.
const WITH_LIENS: &str = "0028F00194000000";
/// A day before the first cycle, and one between the two.
const BEFORE: &str = "2026-10-01";
const BETWEEN: &str = "2026-10-30";

fn rows<'a>(answer: &'a Value, field: &str) -> &'a [Value] {
    answer[field].as_array().unwrap()
}

fn texts<'a>(rows: &'a [Value], field: &str) -> BTreeSet<&'a str> {
    rows.iter().map(|row| row[field].as_str().unwrap()).collect()
}

fn ask(server: &Server, key: &str, path: &str) -> (u16, Value) {
    let answer = server.send("GET", &format!("/parcels{path}"), key, "");
    (answer.status, serde_json::from_slice(&answer.body).unwrap())
}

fn is_masked(pin: &str) -> bool {
    pin.get(5..).is_some_and(|rest| !rest.is_empty() && rest.chars().all(|letter| letter == '*'))
}

fn sum(counts: &Value) -> i64 {
    counts.as_object().unwrap().values().map(|count| count.as_i64().unwrap()).sum()
}

/// All over-assessed parcels of a query, page by page. Each page states the number of all.
fn leads(server: &Server, key: &str, query: &str) -> Vec<Value> {
    let (mut all, mut totals, mut after) = (Vec::new(), BTreeSet::new(), String::new());
    loop {
        let page = server.json(&format!("/parcels/api/leads?limit=2&{query}{after}"), key);
        assert_eq!(
            (sum(&page["counts"]["byTier"]), sum(&page["counts"]["byCounty"])),
            (page["total"].as_i64().unwrap(), page["total"].as_i64().unwrap())
        );
        all.extend(rows(&page, "leads").iter().cloned());
        totals.insert(page["total"].as_u64().unwrap());
        match page["next"].as_str() {
            Some(next) => after = format!("&after={next}"),
            None => break,
        }
    }
    assert_eq!(
        (texts(&all, "pin").len(), totals),
        (all.len(), BTreeSet::from([all.len() as u64])),
        "{query}: each parcel once, and all of them"
    );
    all
}

/// Proves what everybody sees, what a paid key adds, the worked example, the cycle as the simulator plays it, also as of earlier days, that wrong arguments
/// are named, and that payment terms are those of the tool.
#[test]
fn over_assessed_parcels() {
    let dir = tempfile::tempdir().unwrap();
    let data = demo_history::copy_to(dir.path());
    let server = Server::ready(demo_history::still_with(&data, &["parcels"]));
    let key = stdout(highwater(&data, NOWHERE, &["keys", "mint", "--tier", "pro"])).trim().to_owned();

    let free = server.json("/parcels/api/leads?minTier=high", "");
    let shown = rows(&free, "leads");
    assert!((1..=10).contains(&shown.len()) && shown.iter().all(|lead| is_masked(lead["pin"].as_str().unwrap())), "{free}");
    for hidden in ["address", "basis", "url", "ratio", "evidence", "owner"] {
        assert!(shown.iter().all(|lead| lead.get(hidden).is_none()), "{hidden}: {free}");
    }
    assert_eq!((&free["tier"], &free["next"]), (&json!("free"), &Value::Null));
    assert!(free["payUrl"].as_str().unwrap().contains("/x402/pay"));

    let high = leads(&server, &key, "minTier=high");
    let ranks: Vec<f64> = high.iter().map(|lead| lead["r"].as_f64().unwrap()).collect();
    assert!(high.iter().all(|lead| lead["tier"] == "high") && ranks.is_sorted_by(|one, other| one >= other), "{ranks:?}");
    assert_eq!(free["counts"]["byTier"], json!({ "high": high.len(), "medium": 0, "low": 0 }));
    let all = leads(&server, &key, "minTier=low");
    assert!(all.len() > high.len() && texts(&all, "pin").is_superset(&texts(&high, "pin")));
    assert_eq!(leads(&server, &key, "township=West%20Chicago").len() + leads(&server, &key, "county=allegheny-pa").len(), all.len());

    let homes = leads(&server, &key, "county=allegheny-pa&class=R010");
    let compared: Vec<Value> = homes
        .iter()
        .map(|home| {
            json!([home["tier"], home["r"], home["basis"]["kind"], home["basis"]["valuePerSqft"], home["basis"]["peerValuePerSqft"]])
        })
        .collect();
    let expected = [("high", 1.4, 70.0), ("medium", 1.16, 58.0), ("low", 1.06, 53.0)];
    assert_eq!(compared, expected.map(|(tier, r, value)| json!([tier, r, "per_sqft", value, 50.0])), "{homes:?}");

    let example = server.json(&format!("/parcels/api/parcel?pin={EXAMPLE}"), "");
    assert_eq!((&example["tier"], &example["r"], &example["peerMedian"]), (&json!("medium"), &json!(1.2255), &json!(1.02)), "{example}");
    assert_eq!(server.json("/parcels/api/parcel?pin=16-01-216-064-0000", "")["pin"], EXAMPLE);

    let delta = server.json("/parcels/api/delta", &key);
    let (new, resolved) = (texts(rows(&delta, "new"), "pin"), texts(rows(&delta, "resolved"), "pin"));
    assert_eq!(delta["cycle"], "2026-certified", "{delta}");
    assert!(new.contains(RISEN) && resolved.contains(LOWERED) && new.is_disjoint(&resolved), "{delta}");
    assert_eq!(delta["counts"], json!({ "new": new.len(), "resolved": resolved.len() }));
    let free_delta = server.json("/parcels/api/delta", "");
    assert_eq!(free_delta["counts"], delta["counts"]);
    assert!(["new", "resolved"].iter().flat_map(|list| texts(rows(&free_delta, list), "pin")).all(is_masked), "{free_delta}");

    let between = leads(&server, &key, &format!("county=cook-il&asOf={BETWEEN}"));
    let now = leads(&server, &key, "county=cook-il");
    let (then, now) = (texts(&between, "pin"), texts(&now, "pin"));
    assert!(then.contains(LOWERED) && !then.contains(RISEN) && now.contains(RISEN) && !now.contains(LOWERED), "{then:?} {now:?}");
    let added: BTreeSet<&str> = then.union(&new).copied().filter(|pin| !resolved.contains(pin)).collect();
    assert_eq!(added, now, "the set of the cycle before, with what is new and without what is resolved");
    let before = server.json(&format!("/parcels/api/leads?asOf={BEFORE}"), &key);
    assert_eq!((&before["total"], &before["cycle"], &before["leads"]), (&json!(0), &json!(""), &json!([])), "{before}");

    for (path, status, parameter) in [
        ("/api/parcel?pin=1601216064000", 400, "pin"),
        ("/api/parcel?pin=1601216064000A", 400, "pin"),
        ("/api/parcel?pin=1601216064", 400, "pin"),
        ("/api/parcel?pin=99999999999999", 404, "pin"),
        ("/api/leads?county=lake-il", 400, "county"),
        ("/api/leads?minTier=top", 400, "minTier"),
        ("/api/leads?limit=201", 400, "limit"),
        ("/api/leads?after=x", 400, "after"),
        ("/x402/pay?tool=none", 400, "tool"),
    ] {
        let (found, problem) = ask(&server, &key, path);
        assert_eq!((found, problem["parameter"].as_str()), (status, Some(parameter)), "{path}: {problem}");
    }
    // The terms are those of the tool that is named, also if another argument is invalid.
    for (query, price) in [
        ("tool=construction_window_leads&days=0", "20000"),
        ("tool=stalled_surety&minAmount=abc", "20000"),
        ("tool=lien_bundle_report&limit=0", "500000"),
        ("county=cook-il&limit=0", "200000"),
    ] {
        let (status, terms) = ask(&server, "", &format!("/x402/pay?{query}"));
        assert_eq!((status, &terms["accepts"][0]["maxAmountRequired"]), (402, &json!(price)), "{query}: {terms}");
    }
}

/// Proves the terms and previews of what is sold, the report of liens with its sums, that permits past their window say what they are not, that flags of
/// exemptions name nobody, which counties and tools there are, and that a rebuild gives the same.
#[test]
fn liens_permits_and_flags() {
    let dir = tempfile::tempdir().unwrap();
    let data = demo_history::copy_to(dir.path());
    let server = Server::ready(demo_history::still_with(&data, &["parcels"]));
    let key = stdout(highwater(&data, NOWHERE, &["keys", "mint", "--tier", "pro"])).trim().to_owned();
    let liens = format!("/x402/pay?tool=lien_bundle_report&pin={WITH_LIENS}");

    for (path, price, fields) in
        [("/x402/pay?county=cook-il", "200000", ["counts", "leads", "total"]), (liens.as_str(), "500000", ["count", "perBody", "total"])]
    {
        let (status, terms) = ask(&server, "", path);
        let preview: BTreeSet<&str> = terms["preview"].as_object().unwrap().keys().map(String::as_str).collect();
        assert_eq!((status, &terms["accepts"][0]["maxAmountRequired"]), (402, &json!(price)), "{path}: {terms}");
        assert_eq!(preview, BTreeSet::from(fields), "{path}: {terms}");
        assert!(
            !terms["preview"].to_string().contains("16012160") && terms["preview"]["leads"].as_array().is_none_or(|leads| leads.len() <= 3),
            "{terms}"
        );
    }

    let (status, bundle) = ask(&server, &key, &liens);
    assert_eq!((status, &bundle["pin"]), (200, &json!(WITH_LIENS)), "{bundle}");
    let cents = |value: &Value| (value.as_f64().unwrap() * 100.0).round() as i64;
    let summary = &bundle["summary"];
    for split in ["perBody", "perYear"] {
        let sums: Vec<&Value> = summary[split].as_object().unwrap().values().collect();
        let count: u64 = sums.iter().map(|sum| sum["count"].as_u64().unwrap()).sum();
        let total: i64 = sums.iter().map(|sum| cents(&sum["total"])).sum();
        assert_eq!((count, total), (summary["count"].as_u64().unwrap(), cents(&summary["total"])), "{split}: {summary}");
    }
    let surviving = rows(&bundle, "liens").iter().filter(|lien| lien["survives"] == true).count();
    assert_eq!(summary["count"], surviving, "{bundle}");
    let lien = |docket: &str| {
        let found = rows(&bundle, "liens").iter().find(|lien| lien["dtd"] == docket);
        found.unwrap_or_else(|| panic!("{docket}: {bundle}"))
    };
    let partial = lien("DTD-19-009000");
    assert_eq!(
        [&partial["status"], &partial["body"], &partial["amount"], &partial["survives"]],
        [&json!("PARTIAL"), &json!(["City"]), &Value::Null, &json!(true)]
    );
    assert!(summary["perBody"]["City"]["unknownAmounts"].as_u64() > Some(0), "{summary}");
    let hidden = lien("DTD-97-004687");
    assert_eq!([&hidden["status"], &hidden["survives"]], [&json!("SATISFIED"), &json!(false)]);
    let old = lien("DTD-03-000123");
    assert_eq!([&old["status"], &old["survives"]], [&json!("EXPIRED_REVIEW"), &Value::Null]);
    assert!(summary["review"].as_u64() > Some(0) && bundle["redemption"]["posture"] == "review_needed", "{bundle}");
    assert!(!bundle.to_string().contains("EXAMPLE"), "an assignee is named: {bundle}");
    let (status, refused) = ask(&server, &key, &format!("/x402/pay?tool=lien_bundle_report&pin={EXAMPLE}"));
    assert_eq!((status, refused["parameter"].as_str()), (400, Some("pin")), "{refused}");

    let (_, stalled) = ask(&server, &key, "/x402/pay?tool=stalled_surety");
    assert!(!rows(&stalled, "leads").is_empty(), "{stalled}");
    for row in rows(&stalled, "leads") {
        assert_eq!(row["statement"], "an inference from status and recency, not a verified work stoppage");
        assert!(row["amount"].as_i64() >= Some(250_000) && row["window"]["from"].is_string() && row["status"] != "CLOSED", "{row}");
    }
    let (_, building) = ask(&server, &key, "/x402/pay?tool=construction_window_leads");
    assert!(!rows(&building, "leads").is_empty() && rows(&building, "leads").iter().all(|row| row["status"] != "CLOSED"), "{building}");

    let (_, flagged) = ask(&server, &key, "/x402/pay?tool=exemption_flags&county=allegheny-pa");
    assert!(texts(rows(&flagged, "flags"), "rule").is_superset(&BTreeSet::from(["X1", "X2", "X3", "X4", "X6"])), "{flagged}");
    for flag in rows(&flagged, "flags") {
        assert!(flag["statement"].as_str().unwrap().starts_with("the record shows "), "{flag}");
        assert!(["REGULAR", "CORPORATION"].contains(&flag["owner"].as_str().unwrap()), "an owner is named: {flag}");
    }
    let (_, of_cook) = ask(&server, &key, "/x402/pay?tool=exemption_flags&county=cook-il");
    assert_eq!((&of_cook["count"], &of_cook["total"], rows(&of_cook, "flags").len()), (&json!(0), &json!(0), 0), "{of_cook}");
    assert!(of_cook["note"].as_str().unwrap().contains("cook-il: no parcel is flagged"), "{of_cook}");
    let (_, exempt) = ask(&server, &key, "/api/parcel?pin=16022010070000");
    assert!(rows(&exempt, "reasons").iter().any(|reason| reason.as_str().unwrap().contains("table of exempt parcels")), "{exempt}");

    let call = |body: Value| -> Value {
        let answer = server.send("POST", "/parcels/mcp", "", &body.to_string());
        serde_json::from_slice(&answer.body).unwrap()
    };
    let listed = call(json!({ "jsonrpc": "2.0", "id": 1, "method": "tools/list" }));
    let tools = texts(rows(&listed["result"], "tools"), "name");
    let expected = [
        "overassessment_leads",
        "construction_window_leads",
        "stalled_surety",
        "exemption_flags",
        "lien_bundle_report",
        "parcel_overassessment",
        "county_coverage",
    ];
    assert!(tools.is_superset(&BTreeSet::from(expected)), "{tools:?}");
    let coverage = json!({ "jsonrpc": "2.0", "id": 2, "method": "tools/call", "params": { "name": "county_coverage", "arguments": {} } });
    let coverage = call(coverage);
    assert_eq!(texts(rows(&coverage["result"]["structuredContent"], "counties"), "county"), BTreeSet::from(["allegheny-pa", "cook-il"]));

    let digest = || stdout(highwater(&data, NOWHERE, &["digest", "parcels", "--history"]));
    let before = digest();
    assert!(run(highwater(&data, NOWHERE, &["replay", "parcels"])).status.success());
    assert_eq!(digest(), before);
}
