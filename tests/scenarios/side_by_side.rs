//! All services on one listener: what every one of them has in common, and what the specification names of each.

use std::collections::{BTreeMap, BTreeSet};

use operation::Service;
use serde_json::{Value, json};

use crate::commands::NOWHERE;
use crate::demo_history;
use crate::process::{Answer, Server, highwater, send, stdout};

/// What the specification names of each service: its routes, and its tools.
const SPECIFIED: [(&str, &[&str], &[&str]); 14] = [
    ("aviation", &["/v1/match", "/v1/assess", "/v1/audit.csv"], &["match_ads", "recurring_due", "assess_fleet"]),
    (
        "awards",
        &["/v1/whats_changed_since", "/v1/delta_digest", "/v1/competitor_watch", "/v1/search_awards"],
        &["whats_changed_since", "delta_digest", "competitor_watch", "search_awards"],
    ),
    ("cadence", &["/niches", "/v1/board", "/v1/predict", "/health"], &["list_niches", "cadence_board", "predict_restock"]),
    (
        "catalysts",
        &["/v1/upcoming", "/v1/company", "/v1/drug", "/x402/pay"],
        &["upcoming_catalysts", "catalyst_for_company", "catalyst_for_drug"],
    ),
    ("coverage", &["/sample", "/v1/feed", "/v1/pulse", "/v1/sources", "/health"], &["coverage_pulse"]),
    (
        "exclusions",
        &["/v1/entity_watch", "/sample", "/v1/scan", "/v1/recompete_flip", "/v1/contradiction"],
        &["govcon_entity_watch", "exclusion_check", "recompete_flip", "contradiction_check"],
    ),
    (
        "filings",
        &["/v1/whats_new_since", "/v1/filing_digest", "/v1/company_watch", "/v1/insider_activity", "/v1/search_filings"],
        &["whats_new_since", "filing_digest", "company_watch", "insider_activity", "search_filings"],
    ),
    ("labs", &["/sample", "/v1/leads", "/categories", "/health"], &["list_categories", "newly_funded_labs", "lab_lead_feed"]),
    ("names", &["/api/check"], &["check_name", "watch_portfolio"]),
    (
        "parcels",
        &["/api/leads", "/api/parcel", "/api/delta", "/x402/pay"],
        &[
            "overassessment_leads",
            "construction_window_leads",
            "stalled_surety",
            "exemption_flags",
            "lien_bundle_report",
            "parcel_overassessment",
            "county_coverage",
        ],
    ),
    ("phrases", &["/v1/rising", "/v1/velocity", "/v1/radar", "/health"], &["rising_phrases", "phrase_velocity", "phrase_radar"]),
    ("recalls", &["/api/recalls", "/api/keys", "/api/webhook"], &[]),
    ("receipts", &["/v1/issue", "/v1/verify/{receipt_id}", "/v1/list", "/pubkey"], &["issue_receipt", "verify_receipt", "list_receipts"]),
    (
        "research",
        &["/v1/new_funding", "/v1/whats_changed_since", "/v1/delta_digest", "/v1/entity_watch", "/v1/search_records"],
        &["new_funding", "whats_changed_since", "delta_digest", "entity_watch", "search_records"],
    ),
];

/// Tools whose price the specification states, in millionths of a US dollar.
const PRICES: [(&str, &str, u64); 6] = [
    ("catalysts", "upcoming_catalysts", 20_000),
    ("exclusions", "govcon_entity_watch", 100_000),
    ("names", "watch_portfolio", 5_000_000),
    ("parcels", "lien_bundle_report", 500_000),
    ("parcels", "overassessment_leads", 200_000),
    ("receipts", "issue_receipt", 10_000),
];

fn json_of(answer: &Answer) -> Value {
    serde_json::from_slice(&answer.body).unwrap_or_default()
}

fn text_of(answer: &Answer) -> String {
    String::from_utf8_lossy(&answer.body).into_owned()
}

/// The prices of all tools that an x402 document sells, by service and tool.
fn prices_of(document: &Value, services: &[Service]) -> BTreeMap<(String, String), u64> {
    let mut prices = BTreeMap::new();
    for item in document["items"].as_array().unwrap().iter().filter(|item| item["type"] == "mcp") {
        let (url, tool) = (item["call"]["url"].as_str().unwrap(), item["call"]["tool"].as_str().unwrap());
        let service = services.iter().find(|service| url.ends_with(&format!("/{}/mcp", service.name))).unwrap();
        let offer = item["accepts"].get(0).or_else(|| item["acceptsV1"].get(0)).unwrap();
        let amount = offer["amount"].as_str().or_else(|| offer["maxAmountRequired"].as_str()).unwrap();
        prices.insert((service.name.to_owned(), tool.to_owned()), amount.parse().unwrap());
    }
    prices
}

/// Proves that all services stand side by side: one index page and one root discovery name each, and each has its own health, documents, tools, feed and
/// keys, refuses a wrong cursor and a time in the future, and has the routes, tools and prices of the specification.
#[test]
fn services_have_one_contract() {
    let dir = tempfile::tempdir().unwrap();
    let data = demo_history::copy_to(dir.path());
    let mut command = highwater(&data, NOWHERE, demo_history::STILL);
    command.env("HIGHWATER_TIERS__FREE__CALLS_PER_DAY", "1000000000");
    let server = Server::ready(command);
    let key = stdout(highwater(&data, NOWHERE, &["keys", "mint", "--tier", "fleet_plus"])).trim().to_owned();
    let services = services::all();
    let names: BTreeSet<&str> = services.iter().map(|service| service.name).collect();
    assert_eq!(names, SPECIFIED.iter().map(|(name, ..)| *name).collect::<BTreeSet<_>>());

    let index = text_of(&send(server.address, "GET", "/", &[("accept", "text/html")], ""));
    let list = text_of(&send(server.address, "GET", "/llms.txt", &[], ""));
    let discovery = server.json("/.well-known/x402", "");
    let listed: BTreeSet<&str> = discovery["services"].as_array().unwrap().iter().filter_map(|service| service["name"].as_str()).collect();
    assert_eq!(listed, names);
    let sold = prices_of(&discovery, &services);
    for (service, tool, micros) in PRICES {
        assert_eq!(sold.get(&(service.to_owned(), tool.to_owned())), Some(&micros), "{service} {tool}");
    }
    for service in &services {
        let name = service.name;
        assert!(index.contains(&format!("/explore/{name}")), "the index page does not lead to {name}");
        assert!(list.contains(&format!("/{name}/llms.txt")), "{list}");
        check_documents(&server, service);
        check_feed(&server, name, &key);
        let own = prices_of(&server.json(&format!("/{name}/.well-known/x402"), ""), &services);
        let of_service: BTreeMap<_, _> =
            sold.iter().filter(|((of, _), _)| of == name).map(|(sold, micros)| (sold.clone(), *micros)).collect();
        assert_eq!(own, of_service, "{name}");
        let minted = server.send("POST", &format!("/{name}/api/keys"), "", &json!({ "email": format!("{name}@example.com") }).to_string());
        assert_eq!((minted.status, json_of(&minted)["api_key"].is_string()), (201, true), "{name}: {}", text_of(&minted));
    }
}

/// Proves that a rebuild gives the same digest, with the history, of the services whose own scenarios rebuild nothing.
#[test]
fn a_rebuild_gives_the_same_digests() {
    const REBUILT: &[&str] = &["aviation", "names", "phrases"];
    let dir = tempfile::tempdir().unwrap();
    let data = demo_history::copy_to(dir.path());
    let server = Server::ready(demo_history::still_with(&data, REBUILT));
    for &name in REBUILT {
        let digest = || stdout(highwater(&data, NOWHERE, &["digest", name, "--history"]));
        let before = digest();
        stdout(highwater(&data, NOWHERE, &["replay", name]));
        assert_eq!(digest(), before, "{name}");
    }
    assert_eq!(server.terminate().code(), Some(0));
}

/// Checks health, documents and tools of a service.
fn check_documents(server: &Server, service: &Service) {
    let name = service.name;
    let (_, routes, tools) = SPECIFIED.iter().find(|(of, ..)| *of == name).unwrap();
    let health = server.json(&format!("/{name}/health"), "");
    assert_eq!((&health["status"], &health["service"]), (&json!("ok"), &json!(name)));
    for field in ["lastSnapshot", "throughDate", "historyFrom"] {
        assert!(health[field].is_string(), "{name}: {health}");
    }
    let openapi = server.json(&format!("/{name}/openapi.json"), "");
    assert_eq!(openapi["openapi"], "3.1.0", "{name}");
    for operation in service.operations.iter().filter(|operation| operation.has_route()) {
        let method = operation.method.as_str().to_lowercase();
        assert!(openapi["paths"][operation.path][&method].is_object(), "{name}: {method} {} is not in OpenAPI", operation.path);
    }
    for route in *routes {
        assert!(openapi["paths"][route].is_object(), "{name}: {route} is not in OpenAPI");
    }
    for document in ["docs", "llms.txt"] {
        let (status, body) = server.get(&format!("/{name}/{document}"), "").unwrap();
        assert!(status == 200 && !body.is_empty(), "{name}/{document}: {status}");
    }
    let call = json!({ "jsonrpc": "2.0", "id": 1, "method": "tools/list" });
    let answer = server.send("POST", &format!("/{name}/mcp"), "", &call.to_string());
    let shown = json_of(&answer);
    let shown: BTreeSet<&str> = shown["result"]["tools"].as_array().unwrap().iter().filter_map(|tool| tool["name"].as_str()).collect();
    let missing: Vec<&&str> = tools.iter().filter(|tool| !shown.contains(**tool)).collect();
    assert!(missing.is_empty(), "{name} lacks the tools {missing:?} among {shown:?}");
}

/// The first changes of a feed, read in pages of so many.
fn first_changes(server: &Server, path: &str, key: &str, limit: usize, wanted: usize) -> Vec<Value> {
    let (mut changes, mut from) = (Vec::new(), "start=earliest".to_owned());
    loop {
        let page = server.json(&format!("{path}?limit={limit}&{from}"), key);
        changes.extend(page["changes"].as_array().unwrap().iter().cloned());
        if changes.len() >= wanted || page["hasMore"] == false {
            changes.truncate(wanted);
            return changes;
        }
        from = format!("cursor={}", page["cursor"].as_str().unwrap());
    }
}

/// Checks the feed of a service: pages join without a gap, lines are the same changes, and wrong cursors, times and parameters are refused.
fn check_feed(server: &Server, name: &str, key: &str) {
    let path = format!("/{name}/v1/changes");
    let changes = first_changes(server, &path, key, 200, 4);
    assert!(!changes.is_empty(), "{name} has no change");
    assert_eq!(first_changes(server, &path, key, 1, changes.len()), changes, "{name}");
    let asked = format!("{path}?start=earliest&limit=200");
    let lines = send(server.address, "GET", &asked, &[("x-api-key", key), ("accept", "application/x-ndjson")], "");
    assert!(lines.status == 200 && lines.header("content-type").starts_with("application/x-ndjson"), "{name}: {}", lines.head());
    let of_page = server.json(&asked, key)["changes"].as_array().unwrap().clone();
    let of_lines: Vec<Value> = text_of(&lines).lines().map(|line| serde_json::from_str(line).unwrap()).collect();
    assert_eq!(of_lines.get(..of_page.len()), Some(&*of_page), "{name}");
    for (path, code, parameter) in [
        (format!("{path}?cursor=none"), "cursor-invalid", "cursor"),
        (format!("/{name}/health?asOf=2999-01-01"), "as-of-invalid", "asOf"),
        (format!("{path}?no_such=1"), "parameter-invalid", "no_such"),
    ] {
        let refused = send(server.address, "GET", &path, &[("x-api-key", key)], "");
        let problem = json_of(&refused);
        assert_eq!((refused.status, &problem["code"], &problem["parameter"]), (400, &json!(code), &json!(parameter)), "{path}: {problem}");
        assert_eq!(refused.header("content-type"), "application/problem+json", "{path}");
    }
}
