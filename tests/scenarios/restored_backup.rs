//! Restored backups and copies of a data directory do not sign a second history: the signer's memory outside the directory records what was
//! signed.

use std::path::Path;
use std::process::Command;

use proofs::tree::Checkpoint;
use serde_json::{Value, json};

use crate::commands::NOWHERE;
use crate::process::{Server, copy_dir, highwater, run, status_output, stderr_of_failure, stdout, wait_for, with_short_rounds};

fn issue(server: &Server, key: &str, number: u64) -> (u16, Value) {
    let body = json!({ "action": "pay", "agent_id": "a", "inputs": { "number": number }, "outputs": {} }).to_string();
    let answer = server.send("POST", "/receipts/v1/issue", key, &body);
    (answer.status, serde_json::from_slice(&answer.body).unwrap())
}

fn issued(server: &Server, key: &str, number: u64) -> Value {
    wait_for("a receipt", || Some(issue(server, key, number)).filter(|(status, _)| *status == 201)).1["receipt"].take()
}

/// Returns the newest checkpoint that a server publishes.
fn checkpoint(server: &Server, pubkey: &str) -> Option<Checkpoint> {
    let (status, note) = server.get("/receipts/checkpoint", "")?;
    (status == 200).then(|| Checkpoint::read(&String::from_utf8(note).unwrap(), [pubkey]))?
}

fn checkpoint_of(server: &Server, pubkey: &str, size: u64) -> Checkpoint {
    wait_for("a checkpoint", || checkpoint(server, pubkey).filter(|checkpoint| checkpoint.size == size))
}

fn pubkeys(server: &Server) -> Vec<Value> {
    server.json("/receipts/pubkey", "")["keys"].as_array().unwrap().clone()
}

fn text(value: &Value) -> String {
    value.as_str().unwrap().to_owned()
}

/// Proves that a restored backup whose original signed more since then signs no receipt and no checkpoint, and says why; that after a
/// declared restore it signs with another key, whose reason is listed; and that the original then signs nothing when it is started again.
#[test]
fn restored_backup_does_not_sign_until_declared() {
    let dir = tempfile::tempdir().unwrap();
    let (data, backup) = (dir.path().join("data"), dir.path().join("backup"));
    let command = |data: &Path, arguments: &[&str]| with_short_rounds(highwater(data, NOWHERE, arguments));
    let key = stdout(command(&data, &["keys", "mint", "--tier", "pro"])).trim().to_owned();
    let server = Server::ready(command(&data, &["serve"]));
    for number in 1..=2 {
        issued(&server, &key, number);
    }
    let first = text(&pubkeys(&server)[0]["publicKeyHex"]);
    checkpoint_of(&server, &first, 2);
    assert!(server.terminate().success());
    copy_dir(&data, &backup);

    // The original continues.
    let server = Server::ready(command(&data, &["serve"]));
    let third = issued(&server, &key, 3);
    let original = checkpoint_of(&server, &first, 3);
    drop(server);

    // The backup would issue another third receipt and sign another tree of three.
    let restored = Server::ready(command(&backup, &["serve"]));
    let status = || status_output(command(&backup, &["status"]));
    let refused = wait_for("the refusal", || Some(status()).filter(|status| status.contains("older than what was signed")));
    assert!(refused.contains("receipt-keys restore"), "{refused}");
    let (status_code, problem) = issue(&restored, &key, 4);
    assert_eq!(status_code, 503, "{problem}");
    assert!(text(&problem["detail"]).contains("no receipt is signed"));
    assert!(stderr_of_failure(command(&backup, &["receipt-keys", "use", &first])).contains("a new key would not help"));
    let metrics = restored.metrics().unwrap();
    assert!(metrics.contains("api_checkpoint_signing_refused 1"));
    assert_eq!(restored.get("/receipts/checkpoint", "").unwrap().0, 503, "a tree that contradicts a signed one must not be published");
    assert_eq!(restored.get("/receipts/v1/consistency?from=1", "").unwrap().0, 503);
    let (ready, notices) = restored.get("/readyz", "").unwrap();
    assert_eq!(
        (ready, String::from_utf8(notices).unwrap().lines().count()),
        (200, 2),
        "reads must work, with a note that nothing is signed"
    );
    assert_eq!(restored.json("/receipts/v1/list?agent_id=a", "")["receipts"].as_array().unwrap().len(), 2);
    // A command without a running server does not sign either.
    drop(restored);
    assert!(status().contains("older than what was signed"));

    // The operator declares the restore while the server runs.
    let restored = Server::ready(command(&backup, &["serve"]));
    assert!(stderr_of_failure(command(&backup, &["receipt-keys", "restore", "--reason", " "])).contains("--reason"));
    let second = stdout(command(&backup, &["receipt-keys", "restore", "--reason", "disk lost, backup of noon"])).trim().to_owned();
    assert_ne!(second, first);
    let again = issued(&restored, &key, 4);
    assert_eq!((&again["body"]["seq"], text(&again["signature"]["publicKeyHex"])), (&json!(3), second.clone()));
    assert_ne!(again["id"], third["id"]);
    let newest = checkpoint_of(&restored, &second, 3);
    assert_ne!(newest.root, original.root);
    let keys = pubkeys(&restored);
    assert_eq!((&keys[0]["reason"], &keys[1]["reason"]), (&json!(""), &json!("disk lost, backup of noon")));
    assert!(stdout(command(&backup, &["receipt-keys", "list"])).contains("after a declared restore: disk lost, backup of noon"));
    assert!(stderr_of_failure(command(&backup, &["receipt-keys", "use", &first])).contains("before a declared restore"));
    assert!(!status().contains("refused"));
    assert!(restored.terminate().success());
    let restored = Server::ready(command(&backup, &["serve"]));
    assert_eq!(issued(&restored, &key, 5)["signature"]["publicKeyHex"], json!(second));
    drop(restored);

    // Only one of the two histories is continued.
    let server = Server::ready(command(&data, &["serve"]));
    let status = || status_output(command(&data, &["status"]));
    wait_for("the refusal of the original", || status().contains(&format!("the key {second} signs in place of this log's")).then_some(()));
    assert_eq!(issue(&server, &key, 6).0, 503);
}

/// Proves that a signer whose memory is missing refuses to sign, even if the views are missing too and were rebuilt from the log, because
/// the log names the memory; and that a declared restore starts a new memory.
#[test]
fn missing_signer_memory_is_not_treated_as_new() {
    let dir = tempfile::tempdir().unwrap();
    let (data, memory) = (dir.path().join("data"), dir.path().join("signer-memory"));
    let command = |arguments: &[&str]| with_short_rounds(highwater(&data, NOWHERE, arguments));
    let key = stdout(command(&["keys", "mint", "--tier", "pro"])).trim().to_owned();
    let server = Server::ready(command(&["serve"]));
    issued(&server, &key, 1);
    let pubkey = text(&pubkeys(&server)[0]["publicKeyHex"]);
    checkpoint_of(&server, &pubkey, 1);
    assert!(server.terminate().success());

    // Without the memory it is unknown whether more was signed.
    std::fs::remove_dir_all(&memory).unwrap();
    std::fs::remove_dir_all(data.join("views")).unwrap();
    let server = Server::ready(command(&["serve"]));
    wait_for("the refusal", || status_output(command(&["status"])).contains("is missing, but was written before").then_some(()));
    assert_eq!(issue(&server, &key, 2).0, 503);
    assert_eq!(checkpoint(&server, &pubkey).unwrap().size, 1, "a tree that nothing contradicts must be published");
    let next = stdout(command(&["receipt-keys", "restore", "--reason", "the memory was lost"])).trim().to_owned();
    assert_eq!(issued(&server, &key, 2)["signature"]["publicKeyHex"], json!(next));
    checkpoint_of(&server, &next, 2);
    assert!(server.terminate().success());
    let server = Server::ready(command(&["serve"]));
    issued(&server, &key, 3);
    checkpoint_of(&server, &next, 3);
}

/// Proves that of two servers that run on copies of one data directory, the second signs no receipt after the first has signed a checkpoint
/// with a receipt that the second lacks, although nothing was refused when it started.
#[test]
fn running_copy_signs_no_conflicting_receipts() {
    let dir = tempfile::tempdir().unwrap();
    let (data, copied) = (dir.path().join("data"), dir.path().join("copy"));
    let command = |data: &Path, arguments: &[&str]| with_short_rounds(highwater(data, NOWHERE, arguments));
    let key = stdout(command(&data, &["keys", "mint", "--tier", "pro"])).trim().to_owned();
    let server = Server::ready(command(&data, &["serve"]));
    issued(&server, &key, 1);
    let pubkey = text(&pubkeys(&server)[0]["publicKeyHex"]);
    checkpoint_of(&server, &pubkey, 1);
    assert!(server.terminate().success());
    copy_dir(&data, &copied);

    // A request that is never projected waits for as long as a write may take.
    let mut serve_copy = command(&copied, &["serve"]);
    serve_copy.env("HIGHWATER_CALL_TIMES__COMMAND_S", "3");
    let (first, second) = (Server::ready(command(&data, &["serve"])), Server::ready(serve_copy));
    wait_for("the comparison", || (!status_output(command(&copied, &["status"])).contains("refused")).then_some(()));
    issued(&first, &key, 2);
    checkpoint_of(&first, &pubkey, 2);
    assert_eq!(issue(&second, &key, 3).0, 503, "a request that waited must be refused too");
    wait_for("the reason", || status_output(command(&copied, &["status"])).contains("older than what was signed").then_some(()));
    assert_eq!(second.json("/receipts/v1/list?agent_id=a", "")["receipts"].as_array().unwrap().len(), 1);
    assert_eq!(issued(&first, &key, 3)["body"]["seq"], json!(3));
}

/// Proves that a signer's memory that does not respond blocks only signatures, and that the reason names the memory.
#[test]
fn unresponsive_signer_memory_blocks_only_signatures() {
    let dir = tempfile::tempdir().unwrap();
    let (data, memory) = (dir.path().join("data"), dir.path().join("signer-memory"));
    let command = |arguments: &[&str]| with_short_rounds(highwater(&data, NOWHERE, arguments));
    let key = stdout(command(&["keys", "mint", "--tier", "pro"])).trim().to_owned();
    let server = Server::ready(command(&["serve"]));
    issued(&server, &key, 1);
    let path = memory.join(format!("{}.json", text(&pubkeys(&server)[0]["publicKeyHex"])));
    wait_for("the memory", || path.exists().then_some(()));
    assert!(server.terminate().success());
    // Opening a pipe that has no writer blocks for ever.
    std::fs::remove_file(&path).unwrap();
    assert!(Command::new("mkfifo").arg(&path).status().unwrap().success());

    let server = Server::ready(command(&["serve"]));
    stdout(command(&["keys", "mint", "--tier", "pro"]));
    assert_eq!(issue(&server, &key, 2).0, 503);
    let late = format!("the signer's memory {} did not answer within", path.display());
    wait_for("the reason", || status_output(command(&["status"])).contains(&late).then_some(()));
}

/// Proves that a memory inside the data directory is refused, also as the default, with the setting's name and an example.
#[test]
fn signer_memory_inside_the_data_directory_is_refused() {
    let dir = tempfile::tempdir().unwrap();
    let data = dir.path().join("data");
    let (mut named, mut by_default) = (highwater(&data, NOWHERE, &["status"]), highwater(&data, NOWHERE, &["status"]));
    named.env("HIGHWATER_CHECKPOINTS__MEMORY", data.join("memory"));
    by_default.env_remove("HIGHWATER_CHECKPOINTS__MEMORY").env_remove("XDG_STATE_HOME").env("HOME", &data);
    for wrong in [named, by_default] {
        let message = String::from_utf8(run(wrong).stderr).unwrap();
        for words in ["checkpoints.memory", "must be outside", "/var/lib/highwater-signer"] {
            assert!(message.contains(words), "{words}: {message}");
        }
    }
}

/// Proves that a stored checkpoint, a later one and the proof between them show offline that the second continues the first, also across a
/// rotation of keys; and that this is not shown in the wrong order, without a proof, or under another key.
#[test]
fn verify_shows_that_a_checkpoint_continues_another() {
    let dir = tempfile::tempdir().unwrap();
    let data = dir.path().join("data");
    let command = |arguments: &[&str]| with_short_rounds(highwater(&data, NOWHERE, arguments));
    let key = stdout(command(&["keys", "mint", "--tier", "pro"])).trim().to_owned();
    let server = Server::ready(command(&["serve"]));
    let keep = |name: &str, path: &str| {
        let file = dir.path().join(name);
        std::fs::write(&file, server.get(path, "").unwrap().1).unwrap();
        file.to_str().unwrap().to_owned()
    };
    issued(&server, &key, 1);
    let first = text(&pubkeys(&server)[0]["publicKeyHex"]);
    checkpoint_of(&server, &first, 1);
    let old = keep("old", "/receipts/checkpoint");
    let second = stdout(command(&["receipt-keys", "new"])).trim().to_owned();
    stdout(command(&["receipt-keys", "use", &second]));
    issued(&server, &key, 2);
    issued(&server, &key, 3);
    checkpoint_of(&server, &second, 3);
    let (new, proof) = (keep("new", "/receipts/checkpoint"), keep("proof.json", "/receipts/v1/consistency?from=1&to=3"));
    let verify = |old: &str, new: &str, more: &[&str]| {
        let mut arguments = vec!["verify", "--old", old, "--new", new, "--pubkey", first.as_str()];
        arguments.extend(more);
        let output = run(command(&arguments));
        (output.status.code(), [output.stdout, output.stderr].map(|bytes| String::from_utf8(bytes).unwrap()).concat())
    };
    let shown = verify(&old, &new, &["--pubkey", &second, "--proof", &proof]);
    assert!(shown.0 == Some(0) && shown.1.contains("continues: the tree of 3 leaves"), "{shown:?}");
    for (shown, why) in [
        (verify(&old, &new, &["--pubkey", &second]), "a proof is needed"),
        (verify(&new, &old, &["--pubkey", &second, "--proof", &proof]), "removed"),
        (verify(&old, &new, &["--proof", &proof]), "is not a checkpoint signed by a key given"),
    ] {
        assert!(shown.0 == Some(1) && shown.1.contains(why), "{why}: {shown:?}");
    }
}
