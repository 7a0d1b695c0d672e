//! The cadence service: what its board and predictions show of simulated stores, and which restocks it finds.

mod model;

use std::collections::{BTreeMap, BTreeSet};
use std::path::Path;
use std::process::Command;
use std::sync::Arc;

use access::suppression;
use cadence::record::{Item, Restock, millis};
use jiff::tz::TimeZone;
use jiff::{SignedDuration, Timestamp};
use projector::rebuild::Progress;
use schemas::clock::{Clock, SimulatedClock};
use schemas::error_code::ErrorCode;
use schemas::facts::FactData;
use schemas::facts::stock::{StockFact, kind};
use schemas::views::accounts::Tier;
use serde_json::{Value, json};
use simulator::{STORES, StoreFault};

use self::model::{Availability, Model};
use crate::api::LocalApi;
use crate::child::Child;
use crate::commands::NOWHERE;
use crate::demo_history;
use crate::engine::{NOW, SimulatedUpstreams, fixed_clock, moving_clock};
use crate::process::{Server, fix_clock, highwater, run, stdout, wait_for, with_services};
use crate::random::{Random, seed};

/// The niche of weekly drops, and the one of restocks at random.
const WEEKLY: &str = "sneakers";
const IRREGULAR: &str = "collectibles";

/// All changes of the service, oldest first.
fn all_changes(server: &Server, key: &str) -> Vec<Value> {
    let (mut all, mut path) = (Vec::new(), "/cadence/v1/changes?limit=200&start=earliest".to_owned());
    loop {
        let page = server.json(&path, key);
        all.extend(page["changes"].as_array().unwrap().iter().cloned());
        if page["hasMore"] != true {
            return all;
        }
        path = format!("/cadence/v1/changes?limit=200&cursor={}", page["cursor"].as_str().unwrap());
    }
}

/// All items on the board of a niche. Each page is a call that reads the niche, so most callers read it as one page.
fn board(server: &Server, niche: &str, more: &str, key: &str) -> Vec<Value> {
    let (mut all, mut after) = (Vec::new(), String::new());
    loop {
        let page = server.json(&format!("/cadence/v1/board?niche={niche}{more}{after}"), key);
        all.extend(page["items"].as_array().unwrap().iter().cloned());
        match page["next"].as_str() {
            Some(next) => after = format!("&after={next}"),
            None => return all,
        }
    }
}

/// The rank of a board item, as the contract states the order.
fn rank(item: &Value) -> (i64, i64, String) {
    let hundredths = |value: &Value| value.as_f64().map(|value| (value * 100.0).round() as i64);
    let per_month = hundredths(&item["perMonth"]).unwrap();
    (-per_month, hundredths(&item["medianGapDays"]).unwrap_or(i64::MAX), item["id"].as_str().unwrap().to_owned())
}

/// Predicts for an item; `None` if the query for its title finds another one.
fn predict(server: &Server, item: &Value, more: &str, key: &str) -> Option<Value> {
    let text = |name: &str| item[name].as_str().unwrap();
    let query: String = text("item").bytes().map(|byte| format!("%{byte:02x}")).collect();
    let path = format!("/cadence/v1/predict?niche={}&query={query}&store={}{more}", text("niche"), text("store"));
    let answer = server.json(&path, key);
    (answer["item"]["id"] == item["id"]).then_some(answer)
}

/// Proves on the demo's 120 days what the service promises: its niches, the order of the board, paid predictions with their fields, unpaid ones
/// with a preview that has no window, labels that fit the niches, windows of 30 days ago that hold what followed, each restock once in the
/// feed, a calibration report, and a digest that a rebuild reproduces.
#[test]
fn the_demo_shows_what_is_promised() {
    let dir = tempfile::tempdir().unwrap();
    let data = demo_history::copy_to(dir.path());
    let server = Server::ready(demo_history::still_with(&data, &["cadence"]));
    let key = stdout(highwater(&data, NOWHERE, &["keys", "mint", "--tier", "pro"])).trim().to_owned();

    niches_have_labels(&server);
    bad_input_names_its_parameter(&server, &key);
    let weekly = the_board_is_in_order(&server, &key);
    unpaid_predictions_have_no_window(&server);
    paid_predictions_are_whole(&server, &key, &weekly);
    labels_fit_the_niches(&server, &key);
    let changes = each_restock_is_in_the_feed_once(&server, &key);
    windows_hold_what_followed(&server, &key, &changes);
    the_calibration_report_fits_predictions(&server, &key);
    other_forms_show_the_same(&server);
    a_rebuild_gives_the_same_digest(&data);
    assert_eq!(server.terminate().code(), Some(0));
}

/// The niches with their labels.
fn niches_have_labels(server: &Server) {
    let niches = server.json("/cadence/niches", "");
    let listed: Vec<_> = niches["niches"].as_array().unwrap().iter().map(|niche| (&niche["key"], &niche["label"])).collect();
    let expected = simulator::NICHES.map(|(key, label)| (json!(key), json!(label)));
    assert_eq!(listed, expected.iter().map(|(key, label)| (key, label)).collect::<Vec<_>>());
    assert!(
        niches["niches"].as_array().unwrap().iter().all(|niche| niche["stores"] == 2 && niche["ranked"].as_u64() > Some(10)),
        "{niches}"
    );
}

/// Bad input names its parameter, and a misspelt niche the right one.
fn bad_input_names_its_parameter(server: &Server, key: &str) {
    for (path, parameter) in [
        ("/v1/board", "niche"),
        ("/v1/board?niche=sneaker", "niche"),
        ("/v1/board?niche=sneakers&limit=0", "limit"),
        ("/v1/board?niche=sneakers&after=x", "after"),
        ("/v1/board?niche=sneakers&asOf=2999-01-01", "asOf"),
        ("/v1/predict?niche=sneakers", "query"),
        ("/v1/predict?niche=sneakers&query=", "query"),
        ("/v1/predict?item=a.example%2F1&query=runner", "item"),
        ("/v1/predict?niche=sneakers&query=runner&store=a.example", "store"),
        ("/stores?niche=sneaker", "niche"),
        ("/v1/predict?niche=sneakers&query=%21%3F", "query"),
        ("/v1/predict?niche=sneakers&query=runner&variant=XXXL", "variant"),
    ] {
        let answer = server.send("GET", &format!("/cadence{path}"), key, "");
        let problem: Value = serde_json::from_slice(&answer.body).unwrap();
        assert_eq!((answer.status, problem["parameter"].as_str()), (400, Some(parameter)), "{path}: {problem}");
    }
    let problem = server.send("GET", "/cadence/v1/board?niche=sneaker", "", "").body;
    assert!(String::from_utf8(problem).unwrap().contains("did you mean \\\"sneakers\\\"?"));
    assert_eq!(server.send("GET", "/cadence/v1/predict?niche=sneakers&query=zzz", key, "").status, 404);
    // So do what is saved and followed: it would never match. Keys are found in any case.
    for (method, path, body) in [
        ("POST", "/v1/watchlist", r#"{"niche":"sneaker","query":"runner"}"#),
        ("POST", "/v1/filters", r#"{"name":"mine","filter":{"niche":"sneaker"}}"#),
        ("GET", "/v1/whats_changed_since?niche=sneaker", ""),
    ] {
        let answer = server.send(method, &format!("/cadence{path}"), key, body);
        let problem = String::from_utf8(answer.body).unwrap();
        assert!(answer.status == 400 && problem.contains("did you mean \\\"sneakers\\\"?"), "{path}: {problem}");
        let answer =
            server.send(method, &format!("/cadence{}", path.replace("sneaker", "SNEAKERS")), key, &body.replace("sneaker", "SNEAKERS"));
        assert!(answer.status < 300, "{path}: {}", String::from_utf8_lossy(&answer.body));
    }
    assert_eq!(server.json("/cadence/v1/board?niche=Sneakers", key)["niche"], "sneakers");
}

/// The board of the weekly niche, in its order, whatever the size of a page. Returns its items.
fn the_board_is_in_order(server: &Server, key: &str) -> Vec<Value> {
    let weekly = board(server, WEEKLY, "&limit=7", key);
    assert!(weekly.len() > 20 && weekly.windows(2).all(|pair| rank(&pair[0]) < rank(&pair[1])), "{weekly:?}");
    let restocked: Vec<&Value> = weekly.iter().filter(|item| item["restocks"].as_u64() > Some(3)).collect();
    assert!(restocked.len() > 15, "{weekly:?}");
    for item in &restocked {
        assert!((6.5..=7.5).contains(&item["medianGapDays"].as_f64().unwrap()), "{item}");
    }
    let whole = server.json(&format!("/cadence/v1/board?niche={WEEKLY}&limit=200"), key);
    assert_eq!(whole["items"].as_array().unwrap(), &weekly);
    assert_eq!(server.json(&format!("/cadence/v1/board?niche={WEEKLY}&limit=200"), "")["count"], 25);
    weekly
}

/// Without a paid key a prediction is a preview, which has no window.
fn unpaid_predictions_have_no_window(server: &Server) {
    let unpaid = server.send("GET", "/cadence/v1/predict?niche=sneakers&query=runner", "", "");
    let body: Value = serde_json::from_slice(&unpaid.body).unwrap();
    let preview = &body["preview"];
    assert_eq!(unpaid.status, 402, "{body}");
    let fields: BTreeSet<&str> = preview.as_object().unwrap().keys().map(String::as_str).filter(|name| *name != "note").collect();
    assert_eq!(fields, BTreeSet::from(["item", "store", "confidence", "eventsObserved", "historyDays", "tracker"]), "{preview}");
    let tool = json!({ "jsonrpc": "2.0", "id": 1, "method": "tools/call", "params": {
        "name": "predict_restock", "arguments": { "niche": WEEKLY, "query": "runner" } } });
    let headers = [("accept", "application/json, text/event-stream")];
    let called = crate::process::send(server.address, "POST", "/cadence/mcp", &headers, &tool.to_string());
    let text = String::from_utf8(called.body).unwrap();
    assert!(text.contains("accepts") && text.contains("preview") && !text.contains("\"window\""), "{text}");
}

/// Paid predictions have their fields, find every item by its id, and say of a new item that its history is too short.
fn paid_predictions_are_whole(server: &Server, key: &str, weekly: &[Value]) {
    let example = weekly.iter().find(|item| item["restocks"].as_u64() > Some(3)).unwrap();
    let prediction =
        predict(server, example, "", key).unwrap_or_else(|| server.json("/cadence/v1/predict?niche=sneakers&query=runner", key));
    for field in [
        "item",
        "window",
        "centre",
        "probability",
        "confidence",
        "overdue",
        "eventsObserved",
        "historyDays",
        "medianGapDays",
        "cv",
        "pollGapHours",
        "hitRate",
        "method",
        "reasons",
        "tracker",
        "alternatives",
        "calibration",
        "disclaimer",
    ] {
        assert!(prediction.get(field).is_some(), "{field}: {prediction}");
    }
    assert!(prediction["window"]["from"].as_str() < prediction["window"]["to"].as_str(), "{prediction}");
    assert_eq!(
        (&prediction["probability"], &prediction["method"], &prediction["pollGapHours"]),
        (&json!(0.8), &json!("log-t/1"), &json!(24))
    );

    // By its id, each item is found, also where the title of another begins with its title.
    for item in weekly {
        // A host name has no case.
        let id = item["id"].as_str().unwrap().to_uppercase().replace('/', "%2F");
        let found = server.json(&format!("/cadence/v1/predict?item={id}"), key);
        assert_eq!((&found["item"]["id"], &found["item"]["item"], &found["alternatives"]), (&item["id"], &item["item"], &json!([])));
    }
    assert_eq!(server.send("GET", "/cadence/v1/predict?item=a.example%2F1", key, "").status, 404);

    // A new item has a tracker and no window.
    let new = server.json("/cadence/v1/predict?niche=sneakers&query=preview", key);
    assert_eq!(
        (&new["confidence"], &new["window"], &new["centre"], &new["probability"]),
        (&json!("INSUFFICIENT"), &json!(null), &json!(null), &json!(null))
    );
    assert!(new["tracker"]["inStock"].is_boolean() && new["tracker"]["restocks90d"] == 0, "{new}");
}

/// Labels fit the niches.
fn labels_fit_the_niches(server: &Server, key: &str) {
    let has_high = |niche: &str| {
        let mut predictions = board(server, niche, "&limit=200", key).into_iter().filter_map(|item| predict(server, &item, "", key));
        predictions.any(|prediction| prediction["confidence"].as_str().unwrap() == "HIGH")
    };
    assert!(has_high(WEEKLY));
    assert!(!has_high(IRREGULAR));
}

/// Each restock is in the feed once. Returns all changes.
fn each_restock_is_in_the_feed_once(server: &Server, key: &str) -> Vec<Value> {
    let changes = all_changes(server, key);
    let restocks: Vec<(String, String)> = changes
        .iter()
        .filter(|change| !change["restock"].is_null())
        .map(|change| (change["record"]["id"].to_string(), change["restock"]["before"].to_string()))
        .collect();
    assert!(restocks.len() > 500 && restocks.iter().collect::<BTreeSet<_>>().len() == restocks.len(), "{}", restocks.len());
    changes
}

/// Windows of 30 days ago hold the restock that followed, as often as they say.
#[expect(clippy::print_stdout, reason = "the output of a failed test says what was measured")]
fn windows_hold_what_followed(server: &Server, key: &str, changes: &[Value]) {
    let items: BTreeMap<String, Item> = changes
        .iter()
        .map(|change| serde_json::from_value::<Item>(change["record"].clone()).unwrap())
        .map(|item| (item.id.clone(), item))
        .collect();
    let now = moving_clock().now();
    let day = (now - SignedDuration::from_hours(30 * 24)).to_zoned(TimeZone::UTC).date();
    let then_ms = millis(&format!("{day}T23:59:59.999Z"));
    let (mut held, mut all) = (0.0, 0.0);
    for niche in simulator::NICHES.map(|niche| niche.0) {
        for item in board(server, niche, &format!("&limit=200&asOf={day}"), key) {
            let Some(prediction) =
                predict(server, &item, &format!("&asOf={day}"), key).filter(|prediction| !prediction["window"].is_null())
            else {
                continue;
            };
            let (from, to) = (millis(prediction["window"]["from"].as_str().unwrap()), millis(prediction["window"]["to"].as_str().unwrap()));
            let next = items[item["id"].as_str().unwrap()].events().into_iter().find(|at| *at > then_ms);
            if next.is_none() && to >= now.as_millisecond() {
                continue;
            }
            all += 1.0;
            held += f64::from(u8::from(next.is_some_and(|next| (from..=to).contains(&next))));
        }
    }
    let (share, error) = (held / all, (0.8_f64 * 0.2 / all).sqrt());
    println!("asOf 30 days ago: {held} of {all} windows held the next restock: {share:.3}");
    assert!(all > 40.0 && (0.75 - 3.0 * error..=0.85 + 3.0 * error).contains(&share), "{share} of {all}");
}

/// The calibration report, and that predictions show the same.
#[expect(clippy::print_stdout, reason = "the output of a failed test says what was measured")]
fn the_calibration_report_fits_predictions(server: &Server, key: &str) {
    let report = server.json("/cadence/v1/calibration", "");
    for niche in report["niches"].as_array().unwrap() {
        println!("{niche}");
        let key_of = niche["niche"].as_str().unwrap();
        let item = &board(server, key_of, "&limit=200", key)[0];
        let fit =
            server.json(&format!("/cadence/v1/predict?item={}", item["id"].as_str().unwrap().replace('/', "%2F")), key)["calibration"]
                .take();
        for field in ["niche", "forecasts", "coverage", "from", "to"] {
            assert_eq!(fit[field], niche[field], "predictions and the report show the same: {fit}, {niche}");
        }
        for scores in niche["labels"].as_array().unwrap().iter().chain([niche]) {
            assert!(["forecasts", "coverage", "pinball", "naivePinball"].iter().all(|field| scores[field].is_number()), "{niche}");
        }
    }
}

/// Other forms of the same: NDJSON, health, stores.
fn other_forms_show_the_same(server: &Server) {
    let lines =
        crate::process::send(server.address, "GET", "/cadence/v1/board?niche=sneakers&limit=5", &[("accept", "application/x-ndjson")], "");
    assert_eq!(lines.body.split(|byte| *byte == b'\n').filter(|line| !line.is_empty()).count(), 5);
    let health = server.json("/cadence/health", "");
    assert_eq!((&health["status"], &health["stores"]), (&json!("ok"), &json!(6)));
    let stores = server.json("/cadence/stores", "");
    let polls: u64 = stores["stores"].as_array().unwrap().iter().map(|store| store["polls"].as_u64().unwrap()).sum();
    assert_eq!((stores["count"].as_u64(), Some(polls)), (Some(6), health["polls"].as_u64()), "{stores}");
    let last = stores["stores"].as_array().unwrap().iter().filter_map(|store| store["lastPoll"].as_str()).max();
    assert_eq!(last, health["lastPoll"].as_str(), "{stores}");
    assert!(
        health["polls"].as_u64() > Some(600) && health["restocks"].as_u64() > Some(500) && health["observations"].as_u64() > Some(20_000),
        "{health}"
    );
}

/// A rebuild gives the same digest, and the same rules decide the same.
fn a_rebuild_gives_the_same_digest(data: &Path) {
    let digest = || stdout(highwater(data, NOWHERE, &["digest", "cadence", "--history"]));
    let before = digest();
    assert!(run(highwater(data, NOWHERE, &["replay", "cadence"])).status.success());
    assert_eq!(digest(), before);
    // The same rules decide the same.
    let redecided = String::from_utf8(run(highwater(data, NOWHERE, &["redecide", "cadence"])).stderr).unwrap();
    assert!(redecided.contains(": 0 changes appended"), "{redecided}");
    assert_eq!(digest(), before);
}

/// What a store shows: availability by product and variant.
fn shown(simulated: &SimulatedUpstreams, host: &str) -> Availability {
    let mut shown = BTreeMap::new();
    for page in 1.. {
        let answer = simulated.sim.store_answer(host, "/products.json", &format!("limit=250&page={page}")).unwrap();
        let list: Value = serde_json::from_slice(&answer.body).unwrap();
        let products = list["products"].as_array().unwrap();
        if products.is_empty() {
            return shown;
        }
        for product in products {
            for variant in product["variants"].as_array().unwrap() {
                shown.insert((product["id"].to_string(), variant["id"].to_string()), variant["available"] == true);
            }
        }
    }
    unreachable!("pages end")
}

/// Proves that the service finds exactly the restocks of the stores, with the polls around them: none for failed polls, first appearances,
/// launches, renames, removals and returns, and trickles marked; and that failing stores are counted while the others are polled.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn only_true_restocks_are_found() {
    let dir = tempfile::tempdir().unwrap();
    let first: Timestamp = "2026-07-01T22:00:00Z".parse().unwrap();
    let clock = SimulatedClock::new(first, Clock::Fixed(first));
    let simulated = SimulatedUpstreams::start(5, 20, Clock::Simulated(clock)).await;
    let api = LocalApi::open_with(dir.path(), Clock::Simulated(clock), &["cadence"]).await;
    let stop = crate::concurrent_processes::run_heads_only(&api.engine).await;
    let settings = simulated.settings();
    let mut models: BTreeMap<&str, Model> = STORES.iter().map(|(host, _)| (*host, Model::default())).collect();
    let faults = [
        StoreFault::Outdated,
        StoreFault::Status(403),
        StoreFault::Status(429),
        StoreFault::Status(430),
        StoreFault::Password,
        StoreFault::Empty,
        StoreFault::Truncated,
        StoreFault::CentPrices,
        StoreFault::Disallowed,
    ];
    for day in 0..75_i64 {
        let now = first + SignedDuration::from_hours(24 * day);
        clock.move_to(now);
        for (at, (host, _)) in STORES.iter().enumerate() {
            // Each store has its bad days, a fault on each; an outdated list is still a poll.
            let fault = usize::try_from(day - 10 - at as i64).ok().and_then(|at| faults.get(at)).copied();
            simulated.sim.set_store_fault(host, None);
            let model = models.get_mut(host).unwrap();
            match fault {
                None => model.poll(now.as_millisecond(), shown(&simulated, host)),
                // What is older than known says nothing new.
                Some(StoreFault::Outdated) => model.poll(now.as_millisecond(), model.polls.last().unwrap().1.clone()),
                Some(_) => {}
            }
            simulated.sim.set_store_fault(host, fault);
        }
        for outcome in api.engine.run("shopify", &settings).await {
            outcome.unwrap();
        }
        api.decide().await;
        let health = api.ask("cadence", "health", &json!({}), Tier::Anonymous).await.unwrap();
        let failing = STORES.iter().enumerate().filter(|(at, _)| (1..9).contains(&(day - 10 - *at as i64))).count();
        assert_eq!((&health["storesFailing"], &health["stores"]), (&json!(failing), &json!(6)), "day {day}: {health}");
    }
    let found = records(&api).await;
    let (mut restocks, mut trickles) = (0, 0);
    for (host, model) in &models {
        for (product, expected) in model.restocks() {
            let item = &found[&format!("{host}/{product}")];
            let times_of = |restock: &Restock| (millis(&restock.after), millis(&restock.before), restock.variants, restock.trickle);
            assert_eq!(item.restocks.iter().map(times_of).collect::<Vec<_>>(), expected, "{}", item.id);
            restocks += expected.len();
            trickles += expected.iter().filter(|restock| restock.3).count();
        }
    }
    let without = found.values().filter(|item| !models[item.store.as_str()].restocks().contains_key(item.id.rsplit('/').next().unwrap()));
    assert!(without.clone().count() >= 6 && without.clone().all(|item| item.restocks.is_empty()));
    assert!(restocks > 300 && trickles > 20, "{restocks} restocks, {trickles} trickles");
    assert!(found.values().any(|item| !item.launched.is_empty()) && found.values().any(|item| item.withdrawn));
    stop.send_replace(true);
    api.close().await;
}

/// The current records, by id.
async fn records(api: &LocalApi) -> BTreeMap<String, Item> {
    let view = api.engine.store.live(cadence::record::TABLES.view).await.unwrap();
    let (mut out, mut scan) = (BTreeMap::new(), view.scan(cadence::record::TABLES.records, view_store::store::Span::default()));
    loop {
        let rows = scan.next(1_000).await.unwrap();
        if rows.is_empty() {
            return out;
        }
        for (_, value) in rows {
            let row: schemas::views::records::Row<Item> = serde_json::from_slice(&value).unwrap();
            out.insert(row.record.id.clone(), row.record);
        }
    }
}

/// Proves that the items of a suppressed shop are on no board and in no prediction, which say so; that their records and changes show neither
/// title nor variants; and that everything is back when the suppression is taken back.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn suppressed_shops_are_hidden() {
    let dir = tempfile::tempdir().unwrap();
    let first: Timestamp = "2026-07-01T22:00:00Z".parse().unwrap();
    let clock = SimulatedClock::new(first, Clock::Fixed(first));
    let simulated = SimulatedUpstreams::start(5, 20, Clock::Simulated(clock)).await;
    STORES.iter().for_each(|(host, _)| simulated.sim.set_store_fault(host, None));
    let mut api = LocalApi::open_with(dir.path(), Clock::Simulated(clock), &["cadence"]).await;
    let stop = crate::concurrent_processes::run_heads_only(&api.engine).await;
    for day in [0, 7, 15] {
        clock.move_to(first + SignedDuration::from_hours(24 * day));
        for outcome in api.engine.run("shopify", &simulated.settings()).await {
            outcome.unwrap();
        }
        api.decide().await;
    }
    stop.send_replace(true);
    let projector = Arc::clone(&api.engine.projector);
    api.engine.start(projector, "projector");

    let (host, niche) = STORES[1];
    let board = async || api.ask("cadence", "cadence_board", &json!({ "niche": niche, "limit": 200 }), Tier::Pro).await.unwrap();
    let of_host = |board: &Value| board["items"].as_array().unwrap().iter().filter(|item| item["store"] == host).count();
    let query = json!({ "niche": niche, "query": "harbor", "store": host });
    let predict = async || api.ask("cadence", "predict_restock", &query, Tier::Pro).await;
    let changes = async || {
        let all = json!({ "start": "earliest", "store": host, "limit": 200 });
        api.ask("cadence", "whats_changed_since", &all, Tier::Pro).await.unwrap()["changes"].take()
    };
    let before = (board().await, changes().await, predict().await.unwrap());
    assert!(of_host(&before.0) > 3 && of_host(&before.0) < before.0["items"].as_array().unwrap().len(), "{}", before.0);
    let (id, title) = (before.2["item"]["id"].as_str().unwrap(), before.2["item"]["item"].as_str().unwrap());

    suppression::suppress(&api.context, "shop", "Harbor-Kicks.example", "on request").await.unwrap();
    let hidden = board().await;
    assert!(
        of_host(&hidden) == 0 && hidden["note"].as_str().unwrap().contains("items that are hidden on request and left out: "),
        "{hidden}"
    );
    assert_eq!(hidden["count"].as_u64().unwrap() as usize + of_host(&before.0), before.0["count"].as_u64().unwrap() as usize);
    // As for a shop that nobody knows.
    assert_eq!(predict().await.unwrap_err().code, ErrorCode::ParameterInvalid);
    let by_id = api.ask("cadence", "predict_restock", &json!({ "item": id }), Tier::Pro).await;
    assert_eq!(by_id.unwrap_err().code, ErrorCode::NotFound);
    let stores = api.ask("cadence", "list_stores", &json!({}), Tier::Anonymous).await.unwrap();
    let note = stores["note"].as_str().unwrap();
    assert!(stores["count"] == STORES.len() - 1 && note.contains("left out: 1") && !stores.to_string().contains(host), "{stores}");
    let record = api.ask("cadence", "record", &json!({ "id": id }), Tier::Pro).await.unwrap()["record"].take();
    for shown in changes().await.as_array().unwrap().iter().chain([&record]) {
        let fields = (&shown["suppressed"], &shown["item"], &shown["url"], &shown["variants"]);
        assert_eq!(fields, (&json!(true), &json!(""), &json!(""), &json!([])), "{shown}");
        assert!(!shown.to_string().contains(title), "{shown}");
    }
    let progress: Progress = Arc::new(|_, _| ());
    let digest = async || api.engine.projector.service("cadence").unwrap().digest(true, None).await.unwrap();
    let digest_before = digest().await;
    api.engine.projector.service("cadence").unwrap().replay(&progress).await.unwrap();
    assert_eq!((digest().await, of_host(&board().await)), (digest_before, 0));

    suppression::unsuppress(&api.context, "shop", host, "withdrawn by the shop").await.unwrap();
    assert_eq!((board().await, changes().await, predict().await.unwrap()), before);
    api.close().await;
}

/// Configures a command for the simulated stores.
pub(crate) fn with_stores(mut command: Command) -> Command {
    let niches: Vec<String> = simulator::NICHES.iter().map(|(key, label)| format!("{{ key = \"{key}\", label = \"{label}\" }}")).collect();
    let stores: Vec<String> = STORES.iter().map(|(host, niche)| format!("{{ host = \"{host}\", niche = \"{niche}\" }}")).collect();
    command.env("HIGHWATER_UPSTREAMS__SHOPIFY__NICHES", format!("[{}]", niches.join(",")));
    command.env("HIGHWATER_UPSTREAMS__SHOPIFY__STORES", format!("[{}]", stores.join(",")));
    command
}

/// Proves that kills (`kill -9`) while stores are polled lose and double nothing: after the run that continues, every store was polled
/// completely, every variant has one fact, and every item is new once. A poll that ended just before a kill may be made again, which changes
/// no item. A run before a store is due says why it reads nothing.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn kills_lose_and_double_nothing() {
    let seed = seed("KILL_SEED", 1);
    let mut random = Random(seed);
    for _ in 0..2 {
        let dir = tempfile::tempdir().unwrap();
        let data = dir.path().join("data");
        let simulated = SimulatedUpstreams::start(seed % 1_000, 20, fixed_clock()).await;
        STORES.iter().for_each(|(host, _)| simulated.sim.set_store_fault(host, None));
        let command = || {
            let mut command = with_stores(highwater(&data, &simulated.base_url, &["ingest", "shopify", "--once"]));
            // The stock of the simulated stores does not change during the test.
            fix_clock(with_services(&mut command, &["cadence"]), NOW);
            command
        };
        let export = |topic: &str| {
            let mut command = highwater(&data, &simulated.base_url, &["export", topic]);
            with_services(&mut command, &["cadence"]);
            stdout(command)
        };
        let mut slow = simulator::Faults::default();
        slow.set("slow", 1.0).unwrap();
        slow.set("slow_ms", 100.0).unwrap();
        simulated.sim.replace_faults(slow);
        for _ in 0..3 {
            let before = simulated.sim.stats().requests;
            let mut child = Child::start(command());
            let answers = 1 + random.below(12);
            wait_for("some answers", || (simulated.sim.stats().requests >= before + answers || child.has_ended()).then_some(()));
            child.kill();
        }
        simulated.sim.replace_faults(simulator::Faults::default());
        assert!(run(command()).status.success());
        let lines = export("stock");
        let facts: Vec<Value> = lines.lines().map(|line| serde_json::from_str(line).unwrap()).collect();
        crate::engine::assert_chained(&facts);
        let polls: Vec<&Value> = facts.iter().map(|fact| &fact["data"]).filter(|data| data["kind"] == "poll").collect();
        let hosts: BTreeSet<&str> = polls.iter().map(|poll| poll["host"].as_str().unwrap()).collect();
        assert!(
            hosts.len() == STORES.len() && polls.len() <= STORES.len() + 3 && polls.iter().all(|poll| poll["complete"] == true),
            "{polls:?}"
        );
        let variants: Availability = STORES.iter().flat_map(|(host, _)| shown(&simulated, host)).collect();
        assert_eq!(facts.len() - polls.len(), variants.len());
        let products: BTreeSet<&String> = variants.keys().map(|(product, _)| product).collect();
        let lines = export("changes.cadence");
        let changes: Vec<Value> = lines.lines().map(|line| serde_json::from_str(line).unwrap()).collect();
        let new: BTreeSet<String> =
            changes.iter().filter(|change| change["event"] == "new").map(|change| change["record"]["id"].to_string()).collect();
        assert_eq!((changes.len(), new.len()), (products.len(), products.len()));
        let again = run(command());
        let printed = String::from_utf8_lossy(&again.stderr);
        assert!(again.status.success() && printed.contains("no store is due"), "{printed}");
    }
}

/// Proves that the service finds in a public history of a store's stock exactly the restocks that a simple count finds.
/// `ops/checks/cadence-yardstick HISTORY.git` prepares the history, which is not part of this project. Without it there is nothing to compare, which is no
/// failure of a machine: CI leaves this scenario out.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_public_history_gives_its_restocks() {
    let (Some(polls), Ok(expected)) = (std::env::var_os("HIGHWATER_STOCK_POLLS"), std::env::var("HIGHWATER_STOCK_EXPECTED")) else {
        engines::report_not_run("restocks of a public history", "ops/checks/cadence-yardstick prepares the history");
        return;
    };
    let (dir, clock) = (tempfile::tempdir().unwrap(), fixed_clock());
    let api = LocalApi::open_with(dir.path(), clock, &["cadence"]).await;
    let stop = crate::concurrent_processes::run_heads_only(&api.engine).await;
    let (mut writer, mut ids) = (crate::api::Writer::default(), BTreeMap::<String, usize>::new());
    let mut id = move |text: &str| {
        let next = ids.len() + 1;
        ids.entry(text.to_owned()).or_insert(next).to_string()
    };
    let mut heads: BTreeMap<String, bool> = BTreeMap::new();
    for line in std::fs::read_to_string(polls).unwrap().lines() {
        let poll: Value = serde_json::from_str(line).unwrap();
        let at_ms = poll["at"].as_i64().unwrap() * 1_000;
        let mut facts = Vec::new();
        for (url, state) in poll["products"].as_object().unwrap() {
            for (list, available) in [(&state[0], true), (&state[1], false)] {
                for size in list.as_array().unwrap() {
                    let size = size.as_str().unwrap();
                    let variant = id(&format!("{url} {size}"));
                    let key = format!("shopify/store.example/v/{variant}");
                    if heads.insert(key.clone(), available) == Some(available) {
                        continue;
                    }
                    let fact = StockFact {
                        kind: kind::VARIANT.into(),
                        host: "store.example".into(),
                        product_id: id(url),
                        variant_id: variant,
                        title: url.rsplit('/').next().unwrap().into(),
                        variant_title: size.into(),
                        available,
                        ..StockFact::default()
                    };
                    facts.push(writer.observe(&key, &FactData::Stock(Box::new(fact)), at_ms));
                }
            }
        }
        let fact = StockFact {
            kind: kind::POLL.into(),
            host: "store.example".into(),
            niche: "apparel".into(),
            at: schemas::clock::rfc3339(at_ms),
            interval_s: 86_400,
            complete: true,
            ..StockFact::default()
        };
        facts.push(writer.observe("shopify/store.example/poll", &FactData::Stock(Box::new(fact)), at_ms));
        api.append(facts).await;
        api.decide().await;
    }
    let found = records(&api).await;
    let of_variants: Vec<usize> = found.values().flat_map(|item| &item.variants).map(|variant| variant.restocks.len()).collect();
    let found = json!({
        "variants": of_variants.len(),
        "restocked": of_variants.iter().filter(|restocks| **restocks > 0).count(),
        "restocks": of_variants.iter().sum::<usize>(),
        "most": of_variants.iter().max(),
    });
    println!("history: found {found}");
    assert_eq!(found, serde_json::from_str::<Value>(&expected).unwrap());
    stop.send_replace(true);
    api.close().await;
}
