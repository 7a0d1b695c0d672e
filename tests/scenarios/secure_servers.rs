//! Kafka and CQL servers with TLS and authentication: right and wrong credentials, authorities and protocols; and a broker that lowers its
//! size limit.

use std::path::Path;
use std::process::Command;
use std::time::{Duration, Instant};

use engines::own::Own;

use crate::cluster::Cluster;
use crate::engine::{RECALL_UPSTREAMS, SimulatedUpstreams, moving_clock};
use crate::process::{is_timed, stderr_of_failure, stdout};

/// A password that no error may show.
const WRONG: &str = "not-the-password";

/// A setting of a section and its value.
type Setting<'a> = (&'a str, &'a str);

/// Sets the settings of one section as environment variables.
fn set(command: &mut Command, section: &str, settings: &[Setting<'_>]) {
    for (key, value) in settings {
        command.env(format!("HIGHWATER_{section}__{}", key.to_uppercase()), value);
    }
}

/// Runs `serve`, which must fail quickly with one line that contains all these words and no secret.
fn refused(mut command: Command, words: &[&str]) {
    let started = Instant::now();
    command.env("HIGHWATER_LOGGING__LEVEL", "off");
    let message = stderr_of_failure(command);
    assert!(!is_timed() || started.elapsed() < Duration::from_secs(30), "{:?}: {message}", started.elapsed());
    assert_eq!(message.lines().count(), 1, "{message}");
    for word in words {
        assert!(message.contains(word), "\"{word}\" is not in: {message}");
    }
    assert!(!message.contains(WRONG) && !message.contains("tester-secret"), "{message}");
}

/// Proves that TLS and passwords of both servers work with every protocol and mechanism that the settings name, and that wrong and missing
/// credentials, a wrong authority and a wrong protocol are each refused in one line that names the setting and the address and contains no
/// secret.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn tls_and_credentials_are_verified() {
    let simulated = SimulatedUpstreams::start(31, 60, moving_clock()).await;
    let dir = tempfile::tempdir().unwrap();
    let Some(servers) = engines::or_skip(Own::start_secure(dir.path()), "credentials and certificates") else { return };
    let (ours, other) = (servers.authority(true), servers.authority(false));
    let text = |path: &Path| path.to_str().unwrap().to_owned();
    let (ours, other) = (text(&ours), text(&other));
    let cluster = Cluster::on_servers(servers.kafka(), servers.cql(), &simulated.base_url, "");
    let node = |protocol: &str, kafka: &[(&str, &str)], cql: &[(&str, &str)], arguments: &[&str]| {
        let mut command = cluster.command("node", arguments);
        command.env("HIGHWATER_LOG", format!("kafka://{}", servers.kafka_by(protocol)));
        set(&mut command, "KAFKA", &[("security_protocol", protocol)]);
        set(&mut command, "KAFKA", kafka);
        set(&mut command, "SCYLLA", cql);
        command
    };
    let plain = [("sasl_mechanism", "PLAIN"), ("username", "tester"), ("password", "tester-secret")];
    let scram = [("sasl_mechanism", "SCRAM-SHA-256"), plain[1], plain[2]];
    let (trusting, known) = ([("ca_file", &ours[..])], [("username", "cassandra"), ("password", "cassandra")]);
    let both = [known[0], known[1], trusting[0]];

    // Each upstream with another mechanism, all on one log and store.
    let ways: [(&str, Vec<Setting<'_>>, &[Setting<'_>]); 4] = [
        ("sasl_ssl", [&scram[..], &trusting].concat(), &both),
        ("sasl_plaintext", plain.to_vec(), &known),
        ("ssl", trusting.to_vec(), &both),
        ("sasl_ssl", [&plain[..], &trusting].concat(), &known),
    ];
    assert_eq!(RECALL_UPSTREAMS.len(), ways.len());
    for (name, (protocol, kafka, cql)) in RECALL_UPSTREAMS.iter().copied().zip(&ways) {
        stdout(node(protocol, kafka, cql, &["ingest", name, "--once"]));
    }
    let digest = |protocol: &str, kafka: &[(&str, &str)], cql: &[(&str, &str)]| stdout(node(protocol, kafka, cql, &["digest", "recalls"]));
    assert_eq!(digest("plaintext", &[], &known), digest("sasl_ssl", &ways[0].1, &both), "the digests differ");

    let wrong = ("password", WRONG);
    for (protocol, kafka, words) in [
        ("sasl_plaintext", vec![plain[0], plain[1], wrong], "[kafka] username, password"),
        ("sasl_plaintext", vec![scram[0], scram[1], wrong], "[kafka] username, password"),
        ("sasl_ssl", vec![scram[0], ("username", "nobody"), wrong, trusting[0]], "[kafka] username, password"),
        ("ssl", vec![("ca_file", &other[..])], "[kafka] ca_file"),
        ("ssl", vec![("ca_file", "/no/such/file")], "ca_file"),
    ] {
        let address = format!("log = \"kafka://{}\"", servers.kafka_by(protocol));
        refused(node(protocol, &kafka, &known, &["serve"]), &[&address, words]);
    }
    // The right port with the wrong protocol.
    let mut clear = node("sasl_ssl", &[], &known, &["serve"]);
    set(&mut clear, "KAFKA", &[("security_protocol", "plaintext")]);
    refused(clear, &["[kafka] security_protocol"]);

    let address = format!("store = \"scylla://{}\"", servers.cql());
    for (cql, words) in [
        (vec![known[0], wrong], "refuses the user name or the password ([scylla] username, password)"),
        (vec![], "requires a user name and a password ([scylla] username, password)"),
        (vec![known[0], known[1], ("ca_file", &other[..])], "[scylla] ca_file"),
        (vec![known[0], known[1], ("ca_file", "/no/such/file")], "[scylla] ca_file"),
    ] {
        let mut command = node("plaintext", &[], &cql, &["serve"]);
        command.env("HIGHWATER_LOG", "embedded");
        refused(command, &[&address, words]);
    }
}
