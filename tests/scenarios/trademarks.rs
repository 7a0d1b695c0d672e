//! The trademark register: days in their order, files with a bad first day, a first load that is killed, and what a day changes in the check of a name.

use std::collections::BTreeMap;
use std::sync::Arc;

use fold::records::Rules;
use jiff::ToSpan;
use jiff::civil::date;
use names::operations::register::Register;
use names::rules::NamesRules;
use operation::context::Part;
use schemas::clock::{Clock, SimulatedClock};
use schemas::views::accounts::Tier;
use serde_json::{Value, json};

use crate::api::HttpApi;
use crate::child::{Child, within};
use crate::commands::NOWHERE;
use crate::concurrent_processes::start_holding_proxy;
use crate::engine::{Engine, NOW, SimulatedUpstreams, assert_chained, fixed_clock, noon};
use crate::process::{Server, fix_clock, highwater, run, send, stdout, wait_for};

const UPSTREAM: &str = "uspto_trademarks";
const DAILY: &str = "uspto_trademarks.daily";

/// The newest observed record of each serial number.
fn current(facts: &[Value]) -> BTreeMap<&str, &Value> {
    let observed = facts.iter().filter(|fact| fact["kind"] == "observed");
    observed.map(|fact| (fact["key"].as_str().unwrap(), &fact["data"])).collect()
}

/// Proves that each day is read once and in its order; that a missing day, and a file that is an HTML page, declares entities or is cut off, hold up
/// the later days and the day of completeness, with the reason, until they are as they should be; and that all facts chain.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn days_are_read_in_order() {
    let dir = tempfile::tempdir().unwrap();
    let simulated = SimulatedUpstreams::start(8, 60, fixed_clock()).await;
    let first = date(2026, 11, 20);
    let day = |offset: i64| first.saturating_add(offset.days());
    let (mut throughs, mut reasons) = (Vec::new(), Vec::new());
    for offset in 0..=15 {
        simulated.sim.set_today(day(offset));
        let engine = Engine::open(dir.path(), Clock::Fixed(noon(day(offset)))).await;
        for outcome in engine.run(UPSTREAM, &simulated.settings()).await {
            let outcome = outcome.unwrap();
            assert_eq!(outcome.run.rejected, 0, "{outcome:?}");
            if outcome.stream == DAILY {
                throughs.push((outcome.run.through_date.parse::<jiff::civil::Date>().unwrap() - first).get_days());
                reasons.push(outcome.run.reason);
            } else {
                assert_eq!(outcome.run.seen > 0, offset == 0, "the yearly set is read once: {outcome:?}");
            }
        }
        engine.close().await;
    }
    // On day 7 the HTML page of day 6 is refused, and so on.
    assert_eq!(throughs, [-1, 0, 1, 1, 1, 4, 5, 5, 7, 8, 8, 10, 11, 11, 13, 14]);
    for (offset, reason) in [
        (4, "apc261122.zip is not listed; later days wait for it"),
        (7, "apc261126.zip could not be read (an answer of another type: a file that begins with \"<!DOCTYPE"),
        (10, "the document type declares entities"),
        (13, "not a whole zip archive: it does not end with its directory); attempt 1, requested again after 2026-12-03T13:00:00Z"),
    ] {
        assert!(reasons[offset].contains(reason), "{offset}: {}", reasons[offset]);
    }
    assert!(reasons[8].is_empty() && reasons[14].is_empty(), "{reasons:?}");
    let engine = Engine::open(dir.path(), fixed_clock()).await;
    let facts = engine.export("marks", false).await;
    engine.close().await;
    assert_chained(&facts);
    let current = current(&facts);
    let fact_of = |serial: u64| current[format!("uspto_trademarks/{serial}").as_str()];
    assert_eq!(
        (&fact_of(97_000_102)["statusCode"], &fact_of(97_000_102)["mark"]),
        (&"616".into(), &"MORVANDA".into()),
        "dead, then revived"
    );
    assert_eq!(fact_of(97_000_103)["owners"], serde_json::json!(["KESTROLIN HOLDINGS PLC"]));
    assert_eq!(fact_of(97_000_103)["rawDates"][0]["text"], "20051");
    assert_eq!((&fact_of(97_000_107)["sparse"], &fact_of(97_000_107)["statusCode"]), (&true.into(), &"700".into()));
    assert_eq!(fact_of(97_000_108)["classes"].as_array().unwrap().len(), 1, "a class was dropped");
    assert_eq!(fact_of(97_000_111)["statusCode"], "700", "the later of two records in a file");
    assert!(fact_of(97_000_109)["registration"] == "" && fact_of(98_900_101)["mark"] == "VELTRAXEN");
}

/// Proves that a dead mark that revives counts from the day on which its record is read: the feed has the change, and the answer as of the day before is the
/// one that was given then. That day waits for one that is missing, until which answers are complete up to the day before the missing one.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_revived_mark_counts_from_its_day() {
    let dir = tempfile::tempdir().unwrap();
    let simulated = SimulatedUpstreams::start(8, 60, fixed_clock()).await;
    let days = [date(2026, 11, 24), date(2026, 11, 25)];
    let clock = SimulatedClock::new(noon(days[0]), Clock::Fixed(noon(days[0])));
    let engine = Engine::open_with(dir.path(), Clock::Simulated(clock), &["names"]).await;
    let api = HttpApi::with_services(|| vec![names::service().service], &engine, Clock::Simulated(clock), None);
    let indexing = tokio::spawn(Register::of(&api.context).follow(Arc::clone(&engine.store), None));
    let key = api.key(Tier::Pro).await;
    let ask = |path: &str| -> (u16, Value) {
        let answer = tokio::task::block_in_place(|| send(api.address, "GET", path, &[("x-api-key", key.as_str())], ""));
        (answer.status, serde_json::from_slice(&answer.body).unwrap())
    };
    // While the index is behind, an answer is 503 or has a note.
    let check = |as_of: &str| -> Value {
        let path = format!("/names/api/check?name=Morvanda&class=30{as_of}");
        let is_behind = |answer: &Value| answer["note"].as_str().is_some_and(|note| note.contains("are not compared yet"));
        let is_complete = |(status, answer): &(u16, Value)| *status == 200 && !is_behind(answer);
        tokio::task::block_in_place(|| wait_for("a check over all changes", || Some(ask(&path)).filter(is_complete))).1
    };
    let mut answers = Vec::new();
    for day in days {
        simulated.sim.set_today(day);
        clock.move_to(noon(day));
        for outcome in engine.run(UPSTREAM, &simulated.settings()).await {
            outcome.unwrap();
        }
        engine.wait_for_view(NamesRules::TABLES.view, NamesRules::INPUTS).await;
        answers.push(check(""));
    }
    let shown: Vec<(&Value, &Value)> =
        answers.iter().map(|answer| (&answer["counts"]["exact"], &answer["corpus"]["throughDate"])).collect();
    assert_eq!(shown, [(&json!(0), &json!("2026-11-21")), (&json!(1), &json!("2026-11-24"))]);
    assert_eq!(answers[1]["verdict"], "LIKELY_TAKEN");
    assert_eq!(check("&asOf=2026-11-24"), answers[0]);
    let (status, page) = ask("/names/v1/changes?start=2026-11-25&limit=200");
    assert_eq!(status, 200, "{page}");
    let changes = page["changes"].as_array().unwrap().iter();
    let revived: Vec<&Value> = changes.filter(|change| change["record"]["mark"] == "MORVANDA").collect();
    assert_eq!(revived.len(), 1, "{revived:?}");
    assert_eq!((&revived[0]["event"], &revived[0]["statusBefore"]), (&json!("modified"), &json!("dead")));
    assert_eq!((&revived[0]["record"]["status"], &revived[0]["record"]["statusCode"]), (&json!("live"), &json!("616")));
    indexing.abort();
    api.stop().await;
    engine.close().await;
}

/// Proves that a process that is killed while it downloads the second part of the yearly set does not read the first part again, and ends with the
/// same marks as one that was never killed.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_killed_first_load_continues() {
    let dir = tempfile::tempdir().unwrap();
    let simulated = SimulatedUpstreams::start(8, 60, fixed_clock()).await;
    let on = |node: &str, base_url: &str, arguments: &[&str]| {
        let mut command = highwater(&dir.path().join(node), base_url, arguments);
        fix_clock(&mut command, NOW);
        command
    };
    let second = "/simulated-signed-files/TRTYRAP/apc18840407-20251231-02";
    let (address, held, _release) = start_holding_proxy(&simulated.base_url, second, 0).await;
    let server = Server::start(on("killed", &address, &["serve"]));
    let mut command = Child::start(on("killed", NOWHERE, &["ingest", UPSTREAM, "--once"]));
    within("the request for the second part", held).await.unwrap();
    tokio::task::block_in_place(|| {
        server.kill();
        assert!(!command.wait().success());
    });
    let exported = |node: &str| -> Vec<Value> {
        let text = stdout(on(node, NOWHERE, &["export", "marks", "--all"]));
        text.lines().map(|line| serde_json::from_str(line).unwrap()).collect()
    };
    for node in ["killed", "never killed"] {
        stdout(on(node, &simulated.base_url, &["ingest", UPSTREAM, "--once"]));
    }
    let (killed, whole) = (exported("killed"), exported("never killed"));
    let begun: Vec<&Value> =
        killed.iter().filter(|fact| fact["kind"] == "run_started" && fact["key"] == "@run/uspto_trademarks.annual").collect();
    assert_eq!(begun.len(), 2);
    let cursor = begun[1]["run"]["cursor"].as_str().unwrap();
    assert!(cursor.contains("\"done\":[1]") && cursor.contains("-02.zip"), "{cursor}");
    assert!(current(&whole).len() > 500);
    assert_eq!(current(&killed), current(&whole));
    let status = stdout(on("never killed", NOWHERE, &["status"]));
    assert!(status.starts_with("summary ok\t"), "{status}");
    assert!(!dir.path().join("never killed/downloads").join(UPSTREAM).exists(), "files are deleted after the run");
}

/// Proves that without a key nothing is read, and that the command and the status name the missing setting.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn without_a_key_the_status_says_so() {
    let dir = tempfile::tempdir().unwrap();
    let simulated = SimulatedUpstreams::start(8, 60, fixed_clock()).await;
    let on = |arguments: &[&str]| {
        let mut command = highwater(&dir.path().join("data"), &simulated.base_url, arguments);
        fix_clock(&mut command, NOW).env("HIGHWATER_UPSTREAMS__USPTO_TRADEMARKS__ENABLED", "true");
        command.env_remove("HIGHWATER_UPSTREAMS__USPTO_TRADEMARKS__API_KEY");
        command
    };
    tokio::task::block_in_place(|| {
        let ingest = run(on(&["ingest", UPSTREAM, "--once"]));
        assert!(!ingest.status.success() && String::from_utf8_lossy(&ingest.stderr).contains("api_key"), "{ingest:?}");
        let status = run(on(&["status"]));
        let text = String::from_utf8_lossy(&status.stdout);
        assert!(!status.status.success() && text.contains("field api_key: the upstream requires a key, and none is set"), "{text}");
    });
    assert_eq!(simulated.sim.stats().requests, 0);
}

/// Proves that every download of a file is counted before it is made, that a file whose downloads of the year are used up is not requested, with the
/// reason, and that the others are read.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn downloads_of_a_file_are_limited() {
    let dir = tempfile::tempdir().unwrap();
    let simulated = SimulatedUpstreams::start(8, 60, fixed_clock()).await;
    let engine = Engine::open(dir.path(), fixed_clock()).await;
    let counter = |file: &str| format!("downloads/{UPSTREAM}/{file}/2026");
    let now_ms = noon(date(2026, 11, 20)).as_millisecond();
    let coordination = engine.store.coordination();
    let spent = counter("apc18840407-20251231-02.zip");
    assert_eq!(coordination.add_to_counter(&spent, 10, 10, now_ms, now_ms + 86_400_000).await.unwrap(), 10);
    let outcomes: Vec<ingest::Outcome> =
        engine.run(UPSTREAM, &simulated.settings()).await.into_iter().map(|outcome| outcome.unwrap()).collect();
    let expected = "apc18840407-20251231-02.zip could not be read (it was requested 10 times this year, which is the limit); attempt 1";
    assert!(outcomes[0].run.reason.starts_with(expected), "{}", outcomes[0].run.reason);
    assert!(outcomes[0].run.seen > 60 && outcomes[1].run.reason.is_empty(), "{outcomes:?}");
    let used = counter("apc261119.zip");
    let left = coordination.add_to_counter(&used, 10, 10, now_ms, now_ms + 86_400_000).await.unwrap();
    assert_eq!(left, 9, "the download was counted");
    engine.close().await;
}
