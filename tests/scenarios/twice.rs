//! Delivery twice: everything that a log holds is appended to it a second time, and nobody who reads it can tell.

use std::path::Path;
use std::process::Command;

use event_log::EventLog;
use event_log::embedded::{EmbeddedLog, Options};
use schemas::clock::Clock;
use schemas::topics::{self, IMPORTS};

use crate::cluster::Cluster;
use crate::engine::{Played, upstream_names};
use crate::moving::{answers, digests};
use crate::process::{Server, highwater, stdout};
use crate::reader::Reader;
use crate::rivals::{copy, whole};

const FIXED: &str = "2026-11-20T12:00:00Z";

/// Appends all records of all topics a second time; answers how many those are.
async fn append_all_again(log: &dyn EventLog) -> usize {
    let mut records = 0;
    for topic in topics::ALL.iter().filter(|topic| **topic != IMPORTS) {
        for partition in 0..topic.partitions {
            let held = whole(log, topic, partition).await;
            copy(log, topic, partition, &held).await;
            records += held.len();
        }
    }
    records
}

fn ingest(command: impl Fn(&[&str]) -> Command) {
    for upstream in upstream_names() {
        stdout(command(&["ingest", upstream, "--once"]));
    }
}

/// Proves that a broker that delivers every record of every topic twice changes no digest and no answer, under a projector that was running
/// and one that begins anew, and that the feed goes on with each change once.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn twice_on_a_broker() {
    let played = Played::start(41, 300, Clock::Fixed(FIXED.parse().unwrap())).await;
    let Some(cluster) = Cluster::new("delivery twice", &played.base_url, FIXED) else { return };
    let mut servers = cluster.start(&[("p1", "project"), ("a1", "api")]);
    let (api, project) = (servers.pop().unwrap(), servers.pop().unwrap());
    let command = |arguments: &[&str]| cluster.command("i1", arguments);
    ingest(command);
    let key = stdout(command(&["keys", "mint", "--tier", "pro"])).trim().to_owned();
    played.sim.advance(40);
    ingest(command);
    let wanted = answers(&api, &key);
    let mut reader = Reader::default();
    reader.read_on(&api, &key);
    // Among what stands is when the key was used, which is recorded now and then and when a server ends.
    assert_eq!(api.terminate().code(), Some(0));
    let expected = digests(command);
    let api = cluster.start(&[("a1", "api")]).pop().unwrap();

    let log = cluster.log().await;
    assert!(append_all_again(&*log).await > 600);
    log.close().await.unwrap();
    assert_eq!(digests(command), expected);
    assert!(answers(&api, &key) == wanted, "the answers changed");
    // Rows made anew of the topics as they are now.
    stdout(command(&["replay", "all"]));
    assert_eq!(digests(command), expected);
    assert_eq!(project.terminate().code(), Some(0));
    let project = cluster.start(&[("p2", "project")]).pop().unwrap();
    // A consumer of another language sees each change once, and nothing more when all of it is appended once again.
    let script = Path::new(env!("CARGO_MANIFEST_DIR")).join("ops/checks/topics");
    let mut check = Command::new(script);
    check.args([cluster.kafka(), &format!("http://{}", api.address), "changes.recalls", &cluster.prefix()]);
    let checked = check.output().unwrap();
    assert!(checked.status.success(), "{}", String::from_utf8_lossy(&checked.stderr));
    // Where Python's packages are missing the script says so and ends.
    if let Ok(seen) = String::from_utf8(checked.stdout).unwrap().trim().parse::<usize>() {
        assert_eq!(seen, stdout(command(&["export", "changes.recalls", "--all"])).lines().count());
    }
    let before = reader.read.len();
    played.sim.advance(40);
    ingest(command);
    reader.read_on(&api, &key);
    assert!(reader.read.len() > before, "the feed goes on");
    let seqs: Vec<u64> = reader.read.iter().map(|change| change["seq"].as_u64().unwrap()).collect();
    assert!(seqs.windows(2).all(|pair| pair[0] < pair[1]), "each change once, in order");
    for server in [api, project] {
        assert_eq!(server.terminate().code(), Some(0));
    }
}

/// Proves the same of the embedded pair, also when all rows are made anew from a log that has everything twice.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn twice_on_the_embedded_pair() {
    let dir = tempfile::tempdir().unwrap();
    let data = dir.path().join("data");
    let played = Played::start(42, 300, Clock::Fixed(FIXED.parse().unwrap())).await;
    let command = |arguments: &[&str]| {
        let mut command = highwater(&data, &played.base_url, arguments);
        command.env("HIGHWATER_CLOCK__FIXED", FIXED);
        command
    };
    ingest(command);
    let key = stdout(command(&["keys", "mint", "--tier", "pro"])).trim().to_owned();
    played.sim.advance(40);
    ingest(command);
    let server = Server::ready(command(&["serve"]));
    let wanted = answers(&server, &key);
    assert_eq!(server.terminate().code(), Some(0));
    // Among what stands is when the key was used.
    let expected = digests(command);

    let log = EmbeddedLog::open(&data.join("log"), Options::default()).unwrap();
    assert!(append_all_again(&*log).await > 600);
    log.close().await.unwrap();
    drop(log);
    assert_eq!(digests(command), expected);
    std::fs::remove_dir_all(data.join("views")).unwrap();
    assert_eq!(digests(command), expected);
    let server = Server::ready(command(&["serve"]));
    assert!(answers(&server, &key) == wanted, "the answers changed");
    assert_eq!(server.terminate().code(), Some(0));
}
