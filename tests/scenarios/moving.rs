//! Moving topics between the two backends by the binary itself: the same digests, bytes and cursors at the other end.

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

use crate::cluster::Cluster;
use crate::engine::{Played, upstream_names};
use crate::process::{Server, highwater, refusal, run, stdout, wait_for};
use crate::reader::Reader;
use crate::rivals::{copy, whole};

const FIXED: &str = "2026-11-20T12:00:00Z";

/// A command on an embedded pair that shares the cluster's master key.
fn embedded(cluster: &Cluster, node: &str, base_url: &str, arguments: &[&str]) -> Command {
    let mut command = highwater(&cluster.data(node), base_url, arguments);
    command.env("HIGHWATER_MASTER_KEY_FILE", cluster.data("master.key")).env("HIGHWATER_CLOCK__FIXED", FIXED);
    command
}

/// Runs all upstreams.
fn ingest(command: impl Fn(&[&str]) -> Command) {
    for upstream in upstream_names() {
        stdout(command(&["ingest", upstream, "--once"]));
    }
}

/// The digests of all views, of what stands and of all that ever stood.
pub(crate) fn digests(command: impl Fn(&[&str]) -> Command) -> [String; 4] {
    [&["digest", "recalls"][..], &["digest", "recalls", "--history"], &["digest", "accounts"], &["digest", "accounts", "--history"]]
        .map(|arguments| stdout(command(arguments)))
}

/// What a reader gets: lists, and the whole feed page by page.
pub(crate) fn answers(server: &Server, key: &str) -> Vec<Vec<u8>> {
    let mut out = Vec::new();
    let mut ask = |path: &str| {
        let (status, body) = server.get(path, key).unwrap();
        assert_eq!(status, 200, "{path}: {}", String::from_utf8_lossy(&body));
        out.push(body.clone());
        serde_json::from_slice::<serde_json::Value>(&body).unwrap()
    };
    for path in ["/recalls/api/recalls?limit=300", "/recalls/api/recalls?category=food&limit=7", "/recalls/api/recalls?agency=USDA"] {
        ask(path);
    }
    let mut page = ask("/recalls/v1/changes?start=earliest&limit=100");
    while page["hasMore"] == true {
        page = ask(&format!("/recalls/v1/changes?limit=100&cursor={}", page["cursor"].as_str().unwrap()));
    }
    out
}

/// Adds what a log may hold and nobody goes by: facts and changes a second time, and what is none.
async fn spoil(dir: &std::path::Path) {
    let log = EmbeddedLog::open(&dir.join("log"), Options::default()).unwrap();
    for partition in 0..RECALLS.partitions {
        let some = log.read(&RECALLS, partition, LogOffset(2), 5, 1 << 20).await.unwrap();
        copy(&*log, &RECALLS, partition, &some).await;
    }
    let changes = whole(&*log, &CHANGES_RECALLS, 0).await;
    copy(&*log, &CHANGES_RECALLS, 0, &changes[changes.len() - 3..]).await;
    let junk = Record { key: Bytes::from_static(b"k"), value: Bytes::from_static(b"{}"), at_ms: 5, ..Record::default() };
    let places = [&RECALLS, &ACCOUNTS, &CHANGES_RECALLS, &REJECTED];
    log.append(places.map(|topic| Append { topic, partition: 0, record: junk.clone() }).to_vec()).await.unwrap();
    log.close().await.unwrap();
}

/// Proves that topics copied from an embedded pair to a cluster, in an import that was killed once, and from there to a fresh embedded pair
/// give the same digests and the same bytes of every answer; that keys work and cursors go on at each; and that none of the three is
/// served, or written over, half.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn topics_move_to_a_cluster_and_back() {
    let played = Played::start(31, 300, Clock::Fixed(FIXED.parse().unwrap())).await;
    let Some(cluster) = Cluster::new("moving topics", &played.base_url, FIXED) else { return };
    let one = |arguments: &[&str]| embedded(&cluster, "one", &played.base_url, arguments);
    ingest(one);
    let key = stdout(one(&["keys", "mint", "--tier", "pro"])).trim().to_owned();
    played.sim.advance(60);
    ingest(one);
    spoil(&cluster.data("one")).await;
    let server = Server::ready(one(&["serve"]));
    let wanted = answers(&server, &key);
    let mut reader = Reader::default();
    assert_eq!(reader.step(&server, &key), Some(true), "there is more than one page");
    assert_eq!(server.terminate().code(), Some(0));
    // Among what stands is when the key was used.
    let expected = digests(one);

    let file = cluster.data("all.avro");
    let path = file.to_str().unwrap();
    stdout(one(&["export", "all", "--format", "records", "--output", path]));
    assert_eq!(fs::metadata(&file).unwrap().permissions().mode() & 0o777, 0o600);
    let words = refusal(one(&["export", "all", "--format", "records", "--output", path]));
    assert!(words.contains("cannot be made"), "{words}");

    // Killed in the middle: nobody goes by the half, and the rest follows.
    let import = |from: &str| cluster.command("m", &["import", from]);
    let bytes = fs::read(&file).unwrap();
    let mut killed = import("-").stdin(Stdio::piped()).spawn().unwrap();
    killed.stdin.as_mut().unwrap().write_all(&bytes[..bytes.len() - 1]).unwrap();
    let log = cluster.log().await;
    log.wait_past(&CHANGES_RECALLS, 0, LogOffset(0)).await.unwrap();
    killed.kill().unwrap();
    killed.wait().unwrap();
    log.close().await.unwrap();
    let words = refusal(cluster.command("p1", &["serve", "--role", "project"]));
    assert!(words.contains("are being imported into this one"), "{words}");
    wait_for("the leases of a dead import", || {
        let output = run(import(path));
        let words = String::from_utf8_lossy(&output.stderr).into_owned();
        assert!(output.status.success() || words.contains("lease"), "{words}");
        output.status.success().then_some(())
    });

    let mut servers = cluster.start(&[("p1", "project"), ("a1", "api")]);
    let (api, project) = (servers.pop().unwrap(), servers.pop().unwrap());
    assert_eq!(digests(|arguments| cluster.command("p1", arguments)), expected);
    assert!(answers(&api, &key) == wanted, "the cluster answers otherwise");
    assert_eq!(api.get("/recalls/v1/changes", "hw_live_000000000000000000000000000000000000").unwrap().0, 401);
    reader.read_on(&api, &key);
    let words = refusal(cluster.command("m", &["import", path]));
    assert!(words.contains("lease") && words.contains("is held"), "{words}");
    let before = reader.read.len();
    played.sim.advance(40);
    ingest(|arguments| cluster.command("i1", arguments));
    reader.read_on(&api, &key);
    assert!(reader.read.len() > before, "the cluster goes on");

    // And back.
    let (expected, wanted) = (digests(|arguments| cluster.command("p1", arguments)), answers(&api, &key));
    let mut reader = Reader::default();
    assert_eq!(reader.step(&api, &key), Some(true));
    for server in [api, project] {
        assert_eq!(server.terminate().code(), Some(0));
    }
    let back = cluster.data("back.avro");
    stdout(cluster.command("p1", &["export", "all", "--format", "records", "--output", back.to_str().unwrap()]));
    let two = |arguments: &[&str]| embedded(&cluster, "two", &played.base_url, arguments);
    stdout(two(&["import", back.to_str().unwrap()]));
    assert_eq!(digests(two), expected);
    let server = Server::ready(two(&["serve"]));
    assert!(answers(&server, &key) == wanted, "the embedded pair answers otherwise");
    reader.read_on(&server, &key);
    let words = refusal(two(&["import", back.to_str().unwrap()]));
    assert!(words.contains("in use by another process"), "{words}");
    assert_eq!(server.terminate().code(), Some(0));
    // The first file is the beginning of what grew from it: it changes nothing.
    stdout(two(&["import", path]));
    assert_eq!(digests(two), expected);
}

/// Proves that facts alone, copied and decided anew, give the same current records; and that nothing is copied over another log.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn facts_move_alone() {
    let dir = tempfile::tempdir().unwrap();
    let clock = Clock::Fixed(FIXED.parse().unwrap());
    let (played, other) = (Played::start(32, 200, clock).await, Played::start(33, 200, clock).await);
    let on = |node: &'static str, base_url: &str| {
        let (data, base_url) = (dir.path().join(node), base_url.to_owned());
        move |arguments: &[&str]| {
            let mut command = highwater(&data, &base_url, arguments);
            command.env("HIGHWATER_CLOCK__FIXED", FIXED).env("HIGHWATER_MASTER_KEY_FILE", data.with_file_name("master.key"));
            command
        }
    };
    let (one, two, three) = (on("one", &played.base_url), on("two", &played.base_url), on("three", &other.base_url));
    ingest(&one);
    played.sim.advance(40);
    ingest(&one);
    spoil(&dir.path().join("one")).await;
    let file = dir.path().join("facts.avro");
    let piped = run(one(&["export", "recalls", "--format", "records"]));
    assert!(piped.status.success());
    fs::write(&file, &piped.stdout).unwrap();
    let path = file.to_str().unwrap();
    stdout(two(&["import", path]));
    assert_eq!(stdout(two(&["digest", "recalls"])), stdout(one(&["digest", "recalls"])));

    ingest(&three);
    let before = digests(&three);
    let words = refusal(three(&["import", path]));
    assert!(words.contains("the log has another record at recalls/0 offset"), "{words}");
    assert_eq!(digests(&three), before);
    for (arguments, words) in [
        (&["import", "nothing.avro"][..], "nothing.avro is not an archive of records"),
        (&["export", "all"], "unknown topic \"all\""),
        (&["export", "imports", "--format", "records"], "unknown topic \"imports\""),
        (&["export", "all", "--format", "records", "--all"], "--all is for listings"),
    ] {
        let refused = refusal(three(arguments));
        assert!(refused.contains(words), "{arguments:?}: {refused}");
    }
}
