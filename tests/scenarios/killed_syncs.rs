//! Kills (`kill -9`) of the process while it syncs the upstreams of the services labs and catalysts: afterwards the records are those of a
//! process that was never killed. A process that is stopped ends its sync in order.

use std::sync::{Arc, Mutex};

use schemas::clock::Clock;
use serde_json::Value;

use crate::child::{Child, within};
use crate::commands::NOWHERE;
use crate::concurrent_processes::start_holding_proxy;
use crate::engine::{NOW, SimulatedUpstreams, assert_shown_once};
use crate::process::{Server, fix_clock, highwater, stdout, wait_for, with_services};

/// The services, with the upstreams that they are decided from.
const SERVICES: [(&str, &[&str]); 2] = [("labs", &["nih_reporter"]), ("catalysts", &["clinical_trials", "edgar", "federal_register"])];

/// A kill: the upstream that is synced, the path whose answers are counted, how many of them pass before one is held, and what the process
/// does when it is killed.
type Kill = (&'static str, &'static str, u32, Doing);

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Doing {
    /// It waits for an answer.
    Waiting,
    /// It waits for an answer, and has decided facts of this service from the answers before.
    Decided(&'static str),
    /// It has just got an answer, and appends and decides it.
    Appending,
}

const KILLS: &[Kill] = &[
    ("nih_reporter", "/v2/projects/search", 0, Doing::Waiting),
    ("nih_reporter", "/v2/projects/search", 8, Doing::Appending),
    ("nih_reporter", "/v2/projects/search", 8, Doing::Decided("labs")),
    ("clinical_trials", "/api/v2/studies", 3, Doing::Appending),
    ("clinical_trials", "/api/v2/studies", 8, Doing::Decided("catalysts")),
    ("edgar", "/LATEST/search-index", 5, Doing::Waiting),
    ("edgar", "/Archives/edgar/data/96000", 3, Doing::Appending),
    ("federal_register", "/api/v1/documents", 1, Doing::Appending),
];

/// Proves that a process that is killed while it waits for a page, appends a page and decides its facts, of every upstream of the two
/// services, loses and duplicates nothing: when the syncs are repeated, both services have the digest of a process that was never killed,
/// and their changes show each state once.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn killed_syncs_end_in_the_same_records() {
    let dir = tempfile::tempdir().unwrap();
    let simulated = SimulatedUpstreams::start(61, 60, Clock::Fixed(NOW.parse().unwrap())).await;
    let on = |node: &str, base_url: &str, arguments: &[&str]| {
        let mut command = highwater(&dir.path().join(node), base_url, arguments);
        fix_clock(with_services(&mut command, &SERVICES.map(|(service, _)| service)), NOW);
        command
    };
    for (upstream, path, pass, doing) in KILLS {
        let (address, held, release) = start_holding_proxy(&simulated.base_url, path, *pass).await;
        let server = Server::start(on("killed", &address, &["serve"]));
        let mut command = Child::start(on("killed", NOWHERE, &["ingest", upstream, "--once"]));
        within(&format!("request {pass} of {upstream} for {path}"), held).await.unwrap();
        tokio::task::block_in_place(|| {
            if let Doing::Decided(service) = doing {
                wait_for("a decided fact", || {
                    let (_, health) = server.get(&format!("/{service}/health"), "")?;
                    let changes = serde_json::from_slice::<Value>(&health).ok()?["changes"].as_u64()?;
                    (changes > 0).then_some(())
                });
            }
            if *doing == Doing::Appending {
                release.send(()).unwrap();
            }
            server.kill();
            assert!(!command.wait().success() || *doing == Doing::Appending, "{upstream}: a killed sync must not succeed");
        });
    }
    for (service, upstreams) in SERVICES {
        for upstream in upstreams {
            for node in ["killed", "never killed"] {
                stdout(on(node, &simulated.base_url, &["ingest", upstream, "--once"]));
            }
        }
        let digest = |node: &str| stdout(on(node, NOWHERE, &["digest", service]));
        assert_eq!(digest("killed"), digest("never killed"), "{service}");
        for node in ["killed", "never killed"] {
            let exported = stdout(on(node, NOWHERE, &["export", &format!("changes.{service}")]));
            let changes: Vec<Value> = exported.lines().map(|line| serde_json::from_str(line).unwrap()).collect();
            assert!(changes.len() > 20, "{service} of {node}: {}", changes.len());
            assert_shown_once(&changes);
        }
    }
    assert!(stdout(on("killed", NOWHERE, &["status"])).starts_with("summary ok\t"));
}

/// Proves that a process that is stopped while it waits for an upstream says that its sync stopped, and calls it no failure.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_stopped_sync_is_no_failure() {
    let dir = tempfile::tempdir().unwrap();
    let simulated = SimulatedUpstreams::start(62, 60, Clock::Fixed(NOW.parse().unwrap())).await;
    let (address, held, _release) = start_holding_proxy(&simulated.base_url, "/RestWebServices/Recall", 0).await;
    let mut command = highwater(&dir.path().join("data"), &address, &["serve"]);
    fix_clock(with_services(&mut command, &["recalls"]), NOW).env("HIGHWATER_UPSTREAMS__CPSC__SCHEDULE", "* * * * * *");
    let logged: Arc<Mutex<Vec<String>>> = Arc::default();
    let heard = Arc::clone(&logged);
    let server = Server::try_start(command, move |line| heard.lock().unwrap().push(line.to_owned())).unwrap();
    within("a request of a sync", held).await.unwrap();
    assert_eq!(tokio::task::block_in_place(|| server.terminate()).code(), Some(0));
    let logged = logged.lock().unwrap();
    let lines = logged.iter().filter_map(|line| serde_json::from_str::<Value>(line).ok());
    let texts = |line: Value| [&line["level"], &line["fields"]["message"]].map(|text| text.as_str().unwrap_or_default().to_owned());
    let of_sync: Vec<[String; 2]> = lines.map(texts).filter(|[_, message]| message.contains("sync")).collect();
    assert_eq!(of_sync, [["INFO", "sync stopped with the process"]]);
}
