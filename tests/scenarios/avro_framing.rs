//! Values framed for a schema registry: records stay the same, and consumers with the registry's tools can read the topics.

use std::path::Path;
use std::process::Command;

use event_log::EventLog;
use schemas::clock::Clock;
use schemas::position::LogOffset;
use schemas::topics::CHANGES_RECALLS;

use crate::child::run_check;
use crate::cluster::{CLUSTERED, Cluster};
use crate::engine::{SimulatedUpstreams, ingest_of};
use crate::migration::{COMPARED, digests, digests_of_server};
use crate::process::{Server, fix_clock, highwater, stderr_of_failure, stdout, with_services};

const FIXED: &str = "2026-11-20T12:00:00Z";

/// Proves that the same records have the same digests in either framing and in a log with both, that consumers with registry tools see each
/// change once although the log holds duplicates, and that contradictory settings are refused with a reason.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn framing_does_not_change_records() {
    let simulated = SimulatedUpstreams::start(51, 200, Clock::Fixed(FIXED.parse().unwrap())).await;
    let Some(cluster) = Cluster::new("framing by a registry", &simulated.base_url, FIXED) else { return };
    let Some(registry) = engines::or_skip(engines::registry(), "framing by a registry") else { return };
    let one = |arguments: &[&str]| {
        let mut command = highwater(&cluster.data("one"), &simulated.base_url, arguments);
        fix_clock(with_services(&mut command, CLUSTERED), FIXED).env("HIGHWATER_MASTER_KEY_FILE", cluster.data("master.key"));
        command
    };
    let at = |framing: &'static str, registry: &str| {
        let registry = registry.to_owned();
        let cluster = &cluster;
        move |arguments: &[&str]| {
            let mut command = cluster.command("n", arguments);
            command.env("HIGHWATER_AVRO__FRAMING", framing).env("HIGHWATER_AVRO__REGISTRY_URL", &registry);
            command
        }
    };
    let (confluent, single) = (at("confluent", &registry), at("single-object", &registry));
    stdout(one(&ingest_of(COMPARED)));
    let (expected, file) = (digests_of_server(one), cluster.data("all.avro"));
    stdout(one(&["export", "all", "--format", "records", "--output", file.to_str().unwrap()]));
    stdout(confluent(&["import", file.to_str().unwrap()]));
    assert_eq!(digests_of_server(&confluent), expected);
    let log = cluster.log().await;
    let first_bytes = async |from: u64| {
        let read = log.read(&CHANGES_RECALLS, 0, LogOffset(from), 100_000, 64 << 20).await.unwrap();
        read.iter().map(|stored| stored.record.value[0]).collect::<Vec<_>>()
    };
    let LogOffset(end) = log.end(&CHANGES_RECALLS, 0).await.unwrap();
    assert!(first_bytes(0).await.iter().all(|first| *first == 0));

    // Both framings in one topic.
    simulated.sim.advance(40);
    let server = Server::ready(single(&["serve"]));
    stdout(single(&ingest_of(COMPARED)));
    assert!(first_bytes(end).await.iter().all(|first| *first == 0xc3));
    let expected = digests(&single);
    assert_eq!(server.terminate().code(), Some(0));
    log.close().await.unwrap();

    let server = Server::ready(confluent(&["serve"]));
    stdout(confluent(&["replay", "all"]));
    assert_eq!(digests(&confluent), expected);
    let document = server.json("/asyncapi.json", "");
    assert_eq!(document["components"]["messages"]["changes.recalls"]["x-avro-framing"], "confluent");
    let script = Path::new(env!("CARGO_MANIFEST_DIR")).join("ops/checks/topics");
    let mut check = Command::new(script);
    check.args([cluster.kafka(), &format!("http://{}", server.address), "changes.recalls", &cluster.prefix(), &registry]);
    let output = run_check(check);
    // The script says when Python packages are missing, and ends.
    if let Ok(seen) = output.trim().parse::<usize>() {
        assert_eq!(seen, stdout(confluent(&["export", "changes.recalls", "--all"])).lines().count());
    }
    assert_eq!(server.terminate().code(), Some(0));

    for (command, message) in [
        (at("confluent", "")(&["serve", "--role", "api"]), "needs the registry"),
        (at("confluent", "http://127.0.0.1:9")(&["serve", "--role", "api"]), "does not answer"),
        (at("avro", "")(&["serve", "--role", "api"]), "`single-object` or `confluent`"),
        (
            {
                let mut command = one(&["status"]);
                command.env("HIGHWATER_AVRO__FRAMING", "confluent");
                command
            },
            "needs log = \"kafka://host:9092",
        ),
    ] {
        let refused = stderr_of_failure(command);
        assert!(refused.contains(message), "{refused}");
    }
}
