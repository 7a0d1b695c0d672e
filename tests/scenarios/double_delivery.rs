//! Duplicate delivery: every record of a log is appended to it a second time, and no reader notices.

use std::path::Path;
use std::process::Command;

use event_log::EventLog;
use event_log::embedded::{EmbeddedLog, Options};
use schemas::clock::Clock;
use schemas::topics::{self, IMPORTS};

use crate::child::run_check;
use crate::cluster::{CLUSTERED, Cluster};
use crate::concurrent_processes::{copy, read_partition};
use crate::engine::{SimulatedUpstreams, ingest_of};
use crate::migration::{COMPARED, answers, digests, digests_of_server};
use crate::process::{Server, fix_clock, highwater, stdout, with_services};
use crate::reader::Reader;

const FIXED: &str = "2026-11-20T12:00:00Z";

/// Appends all records of all topics a second time; returns their number.
async fn append_all_again(log: &dyn EventLog) -> usize {
    let mut records = 0;
    for topic in topics::ALL.iter().filter(|topic| **topic != IMPORTS) {
        for partition in 0..topic.partitions {
            let held = read_partition(log, topic, partition).await;
            copy(log, topic, partition, &held).await;
            records += held.len();
        }
    }
    records
}

fn ingest(command: impl Fn(&[&str]) -> Command) {
    stdout(command(&ingest_of(COMPARED)));
}

/// Proves that a broker that delivers every record of every topic twice changes no digest and no answer, with a running projector and with
/// a new one, and that new changes appear once in the feed.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn duplicates_on_kafka_change_nothing() {
    let simulated = SimulatedUpstreams::start(41, 300, Clock::Fixed(FIXED.parse().unwrap())).await;
    let Some(cluster) = Cluster::new("delivery twice", &simulated.base_url, FIXED) else { return };
    let mut servers = cluster.start(&[("p1", "project"), ("a1", "api")]);
    let (api, project) = (servers.pop().unwrap(), servers.pop().unwrap());
    // Commands run in the projector: a process of its own opens everything for each of them.
    let command = |arguments: &[&str]| cluster.command("p1", arguments);
    ingest(command);
    let key = stdout(command(&["keys", "mint", "--tier", "pro"])).trim().to_owned();
    simulated.sim.advance(40);
    ingest(command);
    let wanted = answers(&api, &key);
    let mut reader = Reader::default();
    reader.read_on(&api, &key);
    // The state includes when the key was used, which is recorded at intervals and when a server stops.
    assert_eq!(api.terminate().code(), Some(0));
    let expected = digests(command);
    let api = cluster.start(&[("a1", "api")]).pop().unwrap();

    let log = cluster.log().await;
    assert!(append_all_again(&*log).await > 250);
    log.close().await.unwrap();
    assert_eq!(digests(command), expected);
    assert!(answers(&api, &key) == wanted, "the answers changed");
    // A rebuild from the topics with their duplicates.
    stdout(command(&["replay", "all"]));
    assert_eq!(digests(command), expected);
    assert_eq!(project.terminate().code(), Some(0));
    let project = cluster.start(&[("p1", "project")]).pop().unwrap();
    // A consumer in another language sees each change once, and nothing more when everything is appended a third time.
    let script = Path::new(env!("CARGO_MANIFEST_DIR")).join("ops/checks/topics");
    let mut check = Command::new(script);
    check.args([cluster.kafka(), &format!("http://{}", api.address), "changes.recalls", &cluster.prefix()]);
    let output = run_check(check);
    // The script says when Python packages are missing, and ends.
    if let Ok(seen) = output.trim().parse::<usize>() {
        assert_eq!(seen, stdout(command(&["export", "changes.recalls", "--all"])).lines().count());
    }
    let before = reader.read.len();
    simulated.sim.advance(40);
    ingest(command);
    reader.read_on(&api, &key);
    assert!(reader.read.len() > before, "the feed has no new changes");
    let seqs: Vec<u64> = reader.read.iter().map(|change| change["seq"].as_u64().unwrap()).collect();
    assert!(seqs.windows(2).all(|pair| pair[0] < pair[1]), "changes must be unique and in order");
    for server in [api, project] {
        assert_eq!(server.terminate().code(), Some(0));
    }
}

/// Proves that duplicates in the embedded log change no answer, also after a rebuild of all rows.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn duplicates_on_the_embedded_log_change_nothing() {
    let dir = tempfile::tempdir().unwrap();
    let data = dir.path().join("data");
    let simulated = SimulatedUpstreams::start(42, 120, Clock::Fixed(FIXED.parse().unwrap())).await;
    let command = |arguments: &[&str]| {
        let mut command = highwater(&data, &simulated.base_url, arguments);
        fix_clock(with_services(&mut command, CLUSTERED), FIXED);
        command
    };
    // Commands run in the server: a process of its own opens everything for each of them.
    let server = Server::ready(command(&["serve"]));
    ingest(command);
    let key = stdout(command(&["keys", "mint", "--tier", "pro"])).trim().to_owned();
    simulated.sim.advance(40);
    ingest(command);
    let wanted = answers(&server, &key);
    // The state includes when the key was used, which is recorded when the server stops.
    assert_eq!(server.terminate().code(), Some(0));
    let expected = digests_of_server(command);

    let log = EmbeddedLog::open(&data.join("log"), Options::default()).unwrap();
    assert!(append_all_again(&*log).await > 250);
    log.close().await.unwrap();
    drop(log);
    assert_eq!(digests_of_server(command), expected);
    std::fs::remove_dir_all(data.join("views")).unwrap();
    let server = Server::ready(command(&["serve"]));
    assert_eq!(digests(command), expected);
    assert!(answers(&server, &key) == wanted, "the answers changed");
    assert_eq!(server.terminate().code(), Some(0));
}
