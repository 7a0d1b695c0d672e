//! Signed checkpoints of the changes of every service: the signed tree is the one that a consumer of the topic computes.

use std::path::Path;
use std::process::Command;

use proofs::hash::Hash32;
use proofs::tree::{Checkpoint, is_consistent, leaf};
use serde_json::Value;

use crate::engine::{NOW, SimulatedUpstreams, fixed_clock};
use crate::process::{Server, fix_clock, highwater, status_output, stdout, wait_for, with_short_rounds};

/// Returns a command with the clock of the simulated upstreams.
fn command(data: &Path, simulated: &SimulatedUpstreams, arguments: &[&str]) -> Command {
    let mut command = with_short_rounds(highwater(data, &simulated.base_url, arguments));
    fix_clock(&mut command, NOW);
    command
}

fn checkpoint(server: &Server, service: &str, pubkey: &str) -> Option<Checkpoint> {
    let (status, note) = server.get(&format!("/{service}/checkpoint"), "")?;
    (status == 200).then(|| Checkpoint::read(&String::from_utf8(note).unwrap(), [pubkey]))?
}

/// Proves that the tree over a service's changes is signed with the key of the receipts, that its leaves are the hashes that chain the
/// exported changes, that tiles are served, that a proof shows that a later checkpoint continues an earlier one, and that the tree is
/// continued after a restart.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn changes_of_a_service_are_signed() {
    let dir = tempfile::tempdir().unwrap();
    let data = dir.path().join("data");
    let simulated = SimulatedUpstreams::start(7, 300, fixed_clock()).await;
    let command = |arguments: &[&str]| command(&data, &simulated, arguments);
    let server = Server::ready(command(&["serve"]));
    stdout(command(&["ingest", "cpsc", "--once"]));
    let pubkey = server.json("/receipts/pubkey", "")["publicKeyHex"].as_str().unwrap().to_owned();
    let changes = |server: &Server| server.json("/recalls/health", "")["changes"].as_u64().unwrap();
    let signed = |server: &Server| {
        let all = changes(server);
        wait_for("a checkpoint of all changes", || checkpoint(server, "recalls", &pubkey).filter(|checkpoint| checkpoint.size == all))
    };
    let first = signed(&server);
    assert!(first.size > 20 && first.origin.ends_with("/recalls"), "{first:?}");

    // Each leaf is the hash that the next change carries.
    let exported = stdout(command(&["export", "changes.recalls", "--all"]));
    let lines: Vec<Value> = exported.lines().map(|line| serde_json::from_str(line).unwrap()).collect();
    let (width, next) = (first.size.min(255), "prevHash");
    let path = |kind: &str| format!("/recalls/tile/{kind}/000.p/{width}");
    let (entries, hashes) = (server.get(&path("entries"), "").unwrap(), server.get(&path("0"), "").unwrap());
    assert_eq!((entries.0, hashes.0), (200, 200));
    let leaves = entries.1.chunks(34).zip(hashes.1.chunks(32)).zip(lines.iter().skip(1));
    for ((entry, hash), after) in leaves {
        assert_eq!(entry[..2], [0, 32]);
        assert_eq!(after[next].as_str().unwrap(), proofs::hash::hex(&entry[2..]));
        assert_eq!(leaf(&entry[2..]).0, hash);
    }
    assert_eq!(server.get("/filings/checkpoint", "").unwrap().0, 404, "a service without changes has no checkpoint");
    assert!(server.terminate().success());

    let server = Server::ready(command(&["serve"]));
    simulated.sim.advance(40);
    stdout(command(&["ingest", "cpsc", "--once"]));
    let later = signed(&server);
    assert!(later.size > first.size, "{later:?}");
    let answer = server.json(&format!("/recalls/v1/consistency?from={}&to={}", first.size, later.size), "");
    let proof: Vec<Hash32> =
        answer["proof"].as_array().unwrap().iter().map(|hash| Hash32::from_hex(hash.as_str().unwrap()).unwrap()).collect();
    // After the restart the listener has another port, and the origin names the port.
    let first = Checkpoint { origin: later.origin.clone(), ..first };
    assert!(is_consistent(&proof, &later, &first));
}

/// Proves that a copy of a data directory whose key was rotated does not sign a second history of a service's changes: its tree is compared
/// with what the previous key signed. Its checkpoint is withheld and the reason is shown; receipts and other services are still signed.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn rotated_key_signs_no_second_history() {
    let dir = tempfile::tempdir().unwrap();
    let (data, copied) = (dir.path().join("data"), dir.path().join("copy"));
    let simulated = SimulatedUpstreams::start(7, 300, fixed_clock()).await;
    let command = |data: &Path, arguments: &[&str]| command(data, &simulated, arguments);
    let signed = |server: &Server, pubkey: &str| {
        let all = server.json("/recalls/health", "")["changes"].as_u64().unwrap();
        wait_for("a checkpoint of all changes", || checkpoint(server, "recalls", pubkey).filter(|checkpoint| checkpoint.size == all))
    };
    let server = Server::ready(command(&data, &["serve"]));
    stdout(command(&data, &["ingest", "cpsc", "--once"]));
    let first = server.json("/receipts/pubkey", "")["publicKeyHex"].as_str().unwrap().to_owned();
    signed(&server, &first);
    assert!(server.terminate().success());
    assert!(Command::new("cp").arg("-a").arg(&data).arg(&copied).status().unwrap().success());
    simulated.sim.advance(40);
    let server = Server::ready(command(&data, &["serve"]));
    stdout(command(&data, &["ingest", "cpsc", "--once"]));
    signed(&server, &first);
    assert!(server.terminate().success());

    let server = Server::ready(command(&copied, &["serve"]));
    let second = stdout(command(&copied, &["receipt-keys", "new"])).trim().to_owned();
    stdout(command(&copied, &["receipt-keys", "use", &second]));
    simulated.sim.advance(40);
    stdout(command(&copied, &["ingest", "cpsc", "--once"]));
    let status = || status_output(command(&copied, &["status"]));
    wait_for("the refusal", || status().contains("signing of checkpoints of recalls\trefused").then_some(()));
    assert_eq!(server.get("/recalls/checkpoint", "").unwrap().0, 503);
    let notices = String::from_utf8(server.get("/readyz", "").unwrap().1).unwrap();
    assert!(notices.contains("checkpoints of recalls are not signed"), "{notices}");
    assert!(!status().contains("signing of receipts"));
}
