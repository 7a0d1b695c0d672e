//! Migration of topics between the two backends by the binary: digests, bytes and cursors are the same afterwards.

use std::fs;
use std::io::Write;
use std::os::unix::fs::PermissionsExt;
use std::process::{Command, Stdio};

use bytes::Bytes;
use event_log::embedded::{EmbeddedLog, Options};
use event_log::{Append, EventLog, Record};
use schemas::clock::Clock;
use schemas::position::LogOffset;
use schemas::topics::{ACCOUNTS, CHANGES_RECALLS, RECALLS, REJECTED};

use crate::child::{Child, within};
use crate::cluster::{CLUSTERED, Cluster};
use crate::concurrent_processes::{copy, read_partition};
use crate::engine::{RECALL_UPSTREAMS, SimulatedUpstreams, ingest_of};
use crate::process::{Server, fix_clock, highwater, run, stderr_of_failure, stdout, wait_for, with_services};
use crate::reader::Reader;

const FIXED: &str = "2026-11-20T12:00:00Z";

/// Returns a command on an embedded log and store that shares the cluster's master key.
fn embedded(cluster: &Cluster, node: &str, base_url: &str, arguments: &[&str]) -> Command {
    let mut command = highwater(&cluster.data(node), base_url, arguments);
    fix_clock(with_services(&mut command, CLUSTERED), FIXED).env("HIGHWATER_MASTER_KEY_FILE", cluster.data("master.key"));
    command
}

/// Syncs some upstreams.
fn ingest(command: impl Fn(&[&str]) -> Command, upstreams: &[&str]) {
    stdout(command(&ingest_of(upstreams)));
}

/// Returns the digests of views with their histories: of all rows as stored, from which the digest of the current records follows. Each is a process, which opens
/// everything unless a server runs on the same data.
pub(crate) fn digests(command: impl Fn(&[&str]) -> Command) -> Vec<String> {
    ["recalls", "accounts", "labs", "catalysts"].map(|view| stdout(command(&["digest", view, "--history"]))).into()
}

/// Returns the digests as [`digests`] does, from a server that runs for them only.
pub(crate) fn digests_of_server(command: impl Fn(&[&str]) -> Command) -> Vec<String> {
    let server = Server::ready(command(&["serve"]));
    let found = digests(command);
    assert_eq!(server.terminate().code(), Some(0));
    found
}

/// The upstreams of the services whose digests and lists are compared.
pub(crate) const COMPARED: &[&str] = &["clinical_trials", "cpsc", "edgar", "federal_register", "fsis", "nhtsa", "nih_reporter", "openfda"];

/// The lists of services that are read, with every filter that has lists of its own.
pub(crate) const LISTS: &[&str] = &[
    "/recalls/api/recalls?limit=300",
    "/recalls/api/recalls?category=food&limit=7",
    "/recalls/api/recalls?agency=USDA",
    "/labs/sample",
    "/labs/categories",
    "/labs/v1/leads?days=365&limit=200",
    "/labs/v1/leads?days=365&limit=3&category=Microscopy%20and%20imaging",
    "/labs/v1/leads?days=365&limit=3&state=OH",
    "/labs/v1/leads?days=365&limit=200&category=Animal%20research&state=CA&min_amount=100000",
    "/catalysts/v1/upcoming?days=730&limit=200",
    "/catalysts/v1/upcoming?days=730&limit=3&kind=pdufa",
    "/catalysts/v1/upcoming?days=730&limit=200&phase=PHASE3&kind=readout",
    "/catalysts/v1/company?ticker=CLDB&days=730&limit=200",
    "/catalysts/v1/drug?name=rowanl&days=730",
    "/cadence/niches",
];

/// Returns what a reader with a paid key gets: lists, and whole feeds page by page.
pub(crate) fn answers(server: &Server, key: &str) -> Vec<Vec<u8>> {
    let mut out = Vec::new();
    let mut ask = |path: &str| {
        let (status, body) = server.get(path, key).unwrap();
        assert_eq!(status, 200, "{path}: {}", String::from_utf8_lossy(&body));
        out.push(body.clone());
        serde_json::from_slice::<serde_json::Value>(&body).unwrap()
    };
    for path in LISTS {
        ask(path);
    }
    for service in ["recalls", "labs", "catalysts"] {
        let mut page = ask(&format!("/{service}/v1/changes?start=earliest&limit=100"));
        while page["hasMore"] == true {
            page = ask(&format!("/{service}/v1/changes?limit=100&cursor={}", page["cursor"].as_str().unwrap()));
        }
    }
    out
}

/// Appends records that a log may contain and that readers must ignore: duplicate facts and changes, and malformed records.
async fn spoil(dir: &std::path::Path) {
    let log = EmbeddedLog::open(&dir.join("log"), Options::default()).unwrap();
    for partition in 0..RECALLS.partitions {
        let some = log.read(&RECALLS, partition, LogOffset(2), 5, 1 << 20).await.unwrap();
        copy(&*log, &RECALLS, partition, &some).await;
    }
    let changes = read_partition(&*log, &CHANGES_RECALLS, 0).await;
    copy(&*log, &CHANGES_RECALLS, 0, &changes[changes.len() - 3..]).await;
    let junk = Record { key: Bytes::from_static(b"k"), value: Bytes::from_static(b"{}"), at_ms: 5, ..Record::default() };
    let places = [&RECALLS, &ACCOUNTS, &CHANGES_RECALLS, &REJECTED];
    log.append(places.map(|topic| Append { topic, partition: 0, record: junk.clone() }).to_vec()).await.unwrap();
    log.close().await.unwrap();
}

/// Proves that topics that are copied from an embedded log to a cluster (by an import that is killed once) and from there to a new embedded
/// log give the same digests and the same answers, byte for byte; that keys and cursors stay valid at each; and that an incomplete copy is
/// neither served nor overwritten.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn topics_move_to_a_cluster_and_back() {
    let simulated = SimulatedUpstreams::start(31, 300, Clock::Fixed(FIXED.parse().unwrap())).await;
    let Some(cluster) = Cluster::new("moving topics", &simulated.base_url, FIXED) else { return };
    let one = |arguments: &[&str]| embedded(&cluster, "one", &simulated.base_url, arguments);
    ingest(one, COMPARED);
    let key = stdout(one(&["keys", "mint", "--tier", "pro"])).trim().to_owned();
    simulated.sim.advance(60);
    ingest(one, COMPARED);
    spoil(&cluster.data("one")).await;
    let server = Server::ready(one(&["serve"]));
    let wanted = answers(&server, &key);
    let mut reader = Reader::default();
    assert_eq!(reader.step(&server, &key), Some(true), "there is only one page");
    assert_eq!(server.terminate().code(), Some(0));
    // The state includes when the key was used.
    let expected = digests_of_server(one);

    let file = cluster.data("all.avro");
    let path = file.to_str().unwrap();
    stdout(one(&["export", "all", "--format", "records", "--output", path]));
    assert_eq!(fs::metadata(&file).unwrap().permissions().mode() & 0o777, 0o600);
    let message = stderr_of_failure(one(&["export", "all", "--format", "records", "--output", path]));
    assert!(message.contains("cannot be created"), "{message}");

    // After a kill in the middle the incomplete copy is refused, and a second import completes it.
    let import = |from: &str| cluster.command("m", &["import", from]);
    let bytes = fs::read(&file).unwrap();
    let mut reading = import("-");
    reading.stdin(Stdio::piped());
    let mut killed = Child::start(reading);
    let mut stdin = killed.stdin();
    stdin.write_all(&bytes[..bytes.len() - 1]).unwrap();
    let log = cluster.log().await;
    within("the import of a change", log.wait_past(&CHANGES_RECALLS, 0, LogOffset(0))).await.unwrap();
    killed.kill();
    log.close().await.unwrap();
    let message = stderr_of_failure(cluster.command("p1", &["serve", "--role", "project"]));
    assert!(message.contains("is unfinished"), "{message}");
    wait_for("the leases of a dead import", || {
        let output = run(import(path));
        let message = String::from_utf8_lossy(&output.stderr).into_owned();
        assert!(output.status.success() || message.contains("lease"), "{message}");
        output.status.success().then_some(())
    });

    let mut servers = cluster.start(&[("p1", "project"), ("a1", "api")]);
    let (api, project) = (servers.pop().unwrap(), servers.pop().unwrap());
    assert_eq!(digests(|arguments| cluster.command("p1", arguments)), expected);
    assert!(answers(&api, &key) == wanted, "the cluster has other answers");
    assert_eq!(api.get("/recalls/v1/changes", "hw_live_000000000000000000000000000000000000").unwrap().0, 401);
    reader.read_on(&api, &key);
    let message = stderr_of_failure(cluster.command("m", &["import", path]));
    assert!(message.contains("holds the lease"), "{message}");
    let before = reader.read.len();
    simulated.sim.advance(40);
    ingest(|arguments| cluster.command("p1", arguments), COMPARED);
    reader.read_on(&api, &key);
    assert!(reader.read.len() > before, "the cluster adds no changes");

    // Back to an embedded log.
    let (expected, wanted) = (digests(|arguments| cluster.command("p1", arguments)), answers(&api, &key));
    let mut reader = Reader::default();
    assert_eq!(reader.step(&api, &key), Some(true));
    for server in [api, project] {
        assert_eq!(server.terminate().code(), Some(0));
    }
    let back = cluster.data("back.avro");
    stdout(cluster.command("p1", &["export", "all", "--format", "records", "--output", back.to_str().unwrap()]));
    let two = |arguments: &[&str]| embedded(&cluster, "two", &simulated.base_url, arguments);
    stdout(two(&["import", back.to_str().unwrap()]));
    let server = Server::ready(two(&["serve"]));
    assert_eq!(digests(two), expected);
    assert!(answers(&server, &key) == wanted, "the embedded pair has other answers");
    reader.read_on(&server, &key);
    let message = stderr_of_failure(two(&["import", back.to_str().unwrap()]));
    assert!(message.contains("in use by another process"), "{message}");
    assert_eq!(server.terminate().code(), Some(0));
    // The first file has the first records of the log that has grown since: importing it changes nothing.
    stdout(two(&["import", path]));
    assert_eq!(digests_of_server(two), expected);
}

/// Proves that facts that are copied without the changes are decided to the same current records, and that an import into another log is
/// refused.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn facts_migrate_without_changes() {
    let dir = tempfile::tempdir().unwrap();
    let clock = Clock::Fixed(FIXED.parse().unwrap());
    let (simulated, other) = (SimulatedUpstreams::start(32, 200, clock).await, SimulatedUpstreams::start(33, 200, clock).await);
    let on = |node: &'static str, base_url: &str| {
        let (data, base_url) = (dir.path().join(node), base_url.to_owned());
        move |arguments: &[&str]| {
            let mut command = highwater(&data, &base_url, arguments);
            fix_clock(with_services(&mut command, CLUSTERED), FIXED).env("HIGHWATER_MASTER_KEY_FILE", data.with_file_name("master.key"));
            command
        }
    };
    let (one, two, three) = (on("one", &simulated.base_url), on("two", &simulated.base_url), on("three", &other.base_url));
    ingest(&one, RECALL_UPSTREAMS);
    simulated.sim.advance(40);
    ingest(&one, RECALL_UPSTREAMS);
    spoil(&dir.path().join("one")).await;
    let file = dir.path().join("facts.avro");
    let piped = run(one(&["export", "recalls", "--format", "records"]));
    assert!(piped.status.success());
    fs::write(&file, &piped.stdout).unwrap();
    let path = file.to_str().unwrap();
    stdout(two(&["import", path]));
    assert_eq!(stdout(two(&["digest", "recalls"])), stdout(one(&["digest", "recalls"])));

    ingest(&three, RECALL_UPSTREAMS);
    let before = digests_of_server(&three);
    let message = stderr_of_failure(three(&["import", path]));
    assert!(message.contains("the log has another record at recalls/0 offset"), "{message}");
    assert_eq!(digests_of_server(&three), before);
    for (arguments, message) in [
        (&["import", "nothing.avro"][..], "nothing.avro is not an archive of records"),
        (&["export", "all"], "unknown topic \"all\""),
        (&["export", "imports", "--format", "records"], "unknown topic \"imports\""),
        (&["export", "all", "--format", "records", "--all"], "--all cannot be used with --format records"),
    ] {
        let refused = stderr_of_failure(three(arguments));
        assert!(refused.contains(message), "{arguments:?}: {refused}");
    }
}
