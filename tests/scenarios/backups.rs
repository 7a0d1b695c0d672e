//! `highwater backup` and `restore`: next to a server that many callers write to, interrupted, damaged, and into another directory.

use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicBool, Ordering};

use serde_json::{Value, json};

use crate::commands::NOWHERE;
use crate::process::{Server, highwater, stderr_of_failure, stdout, wait_for};

/// How many callers write at the same time.
const CALLERS: usize = 64;

fn issue(server: &Server, key: &str, agent: usize) -> u16 {
    let body = json!({ "action": "pay", "agent_id": format!("a{agent}"), "inputs": {}, "outputs": {} }).to_string();
    server.send("POST", "/receipts/v1/issue", key, &body).status
}

/// The segments of a backup.
fn segments(dir: &Path) -> Vec<PathBuf> {
    let (mut found, mut directories) = (Vec::new(), vec![dir.join("log")]);
    while let Some(dir) = directories.pop() {
        for entry in std::fs::read_dir(dir).unwrap() {
            let path = entry.unwrap().path();
            if path.is_dir() { directories.push(path) } else { found.push(path) }
        }
    }
    found
}

/// The end offset of a topic of one partition in a backup.
fn end_of(backup: &Path, topic: &str) -> u64 {
    let manifest = std::fs::read_to_string(backup.join("manifest")).unwrap();
    let manifest: Value = serde_json::from_str(manifest.split_once('\n').unwrap().1).unwrap();
    manifest["ends"][topic][0].as_u64().unwrap()
}

/// Proves that a backup that is written while 64 callers write is restored elsewhere with the same digests and cursors, that keys are valid there, and
/// that a damaged file is named by `--check` and by the restore, which leaves a directory that nothing else uses and that a repeated restore completes.
#[test]
fn backup_under_load_is_restored_elsewhere() {
    let dir = tempfile::tempdir().unwrap();
    let at = |name: &str| dir.path().join(name);
    let (data, backup, restored) = (at("data"), at("backup"), at("restored"));
    let text = |path: &Path| path.to_str().unwrap().to_owned();
    let command = |data: &Path, arguments: &[&str]| highwater(data, NOWHERE, arguments);
    let key = stdout(command(&data, &["keys", "mint", "--tier", "fleet_plus"])).trim().to_owned();
    let server = Server::ready(command(&data, &["serve"]));
    wait_for("a receipt", || (issue(&server, &key, 0) == 201).then_some(()));
    let cursor = server.json("/receipts/v1/changes?start=earliest&limit=1", &key)["cursor"].as_str().unwrap().to_owned();
    let is_stopped = AtomicBool::new(false);
    std::thread::scope(|scope| {
        for agent in 0..CALLERS {
            let (server, key, is_stopped) = (&server, &key, &is_stopped);
            scope.spawn(move || {
                while !is_stopped.load(Ordering::Relaxed) {
                    issue(server, key, agent);
                }
            });
        }
        for _ in 0..3 {
            let printed = stdout(command(&data, &["backup", &text(&backup)]));
            assert!(printed.contains("file\tmaster.key") && printed.contains("left out\tsigner's memory"), "{printed}");
        }
        is_stopped.store(true, Ordering::Relaxed);
    });
    stdout(command(&data, &["restore", &text(&backup), "--check"]));
    assert!(
        stderr_of_failure(command(&backup, &["suppressions"])).contains("is a backup"),
        "a command that is given the backup must say so"
    );

    // A damaged file is named, and the restore continues when the file is repaired.
    let receipts = segments(&backup).into_iter().find(|path| path.to_str().unwrap().contains("changes.receipts")).unwrap();
    let bytes = std::fs::read(&receipts).unwrap();
    let mut flipped = bytes.clone();
    flipped[bytes.len() / 2] ^= 1;
    std::fs::write(&receipts, flipped).unwrap();
    for arguments in [vec!["restore", "--check"], vec!["restore"]] {
        let refused = stderr_of_failure(command(&restored, &[&arguments[..], &[&text(&backup)]].concat()));
        assert!(refused.contains(&text(&receipts)) && refused.contains("differs from its checksum"), "{refused}");
    }
    let refused = stderr_of_failure(command(&restored, &["serve"]));
    assert!(refused.contains("a restore into") && refused.contains("unfinished"), "{refused}");
    std::fs::write(&receipts, bytes).unwrap();
    let printed = stdout(command(&restored, &["restore", &text(&backup)]));
    assert!(printed.contains("restored"), "{printed}");
    let refused = stderr_of_failure(command(&restored, &["restore", &text(&backup)]));
    assert!(refused.contains("is not empty") && refused.contains("Move the old one aside"), "{refused}");

    // Every change of the backup is one that the original has as well.
    let end = end_of(&backup, "changes.receipts");
    let newest = (end - 1).to_string();
    // More was signed after the backup, so that the copy signs only after the operator's word.
    stdout(command(&restored, &["receipt-keys", "restore", "--reason", "the original keeps its own data"]));
    let copy = Server::ready(command(&restored, &["serve"]));
    let changes = |server: &Server| -> Value { server.json(&format!("/receipts/v1/changes?cursor={cursor}&limit=100"), &key) };
    let (original, found) = (changes(&server), changes(&copy));
    // Facts that the backup holds undecided are decided by the copy itself, in an order of its own.
    let backed_up = |change: &&Value| change["seq"].as_u64().unwrap() < end;
    let found: Vec<&Value> = found["changes"].as_array().unwrap().iter().take_while(backed_up).collect();
    assert!(!found.is_empty());
    let original: Vec<&Value> = original["changes"].as_array().unwrap().iter().take(found.len()).collect();
    assert_eq!(found, original);
    for view in ["receipts", "accounts"] {
        let arguments: &[&str] = if view == "receipts" { &["digest", view, "--at", &newest] } else { &["digest", view] };
        assert_eq!(stdout(command(&data, arguments)), stdout(command(&restored, arguments)), "{view}");
    }
}
