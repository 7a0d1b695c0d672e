//! Two of our servers, a log and its witness: checkpoints get cosignatures, and a rewritten history gets none.

use std::path::Path;
use std::process::Command;

use proofs::hash::Hash32;
use serde_json::{Value, json};
use transparency::note::{KeyType, Signed, SignedNote, VerifierKey};

use crate::commands::NOWHERE;
use crate::engine::{SimulatedUpstreams, fixed_clock};
use crate::process::{Server, highwater, run, status_output, stdout, wait_for, with_short_rounds};

/// A witness whose address stays the same after a restart.
struct FixedWitness {
    address: String,
    vkey: String,
}

/// Returns a command of a log whose origins stay the same after a restart, with the given witness.
fn log(data: &Path, base_url: &str, witness: Option<&FixedWitness>, arguments: &[&str]) -> Command {
    let mut command = with_short_rounds(highwater(data, base_url, arguments));
    for service in ["RECEIPTS", "RECALLS"] {
        command.env(format!("HIGHWATER_SERVICES__{service}__BASE_URL"), format!("https://log.example/{}", service.to_lowercase()));
    }
    if let Some(FixedWitness { address, vkey }) = witness {
        command.env("HIGHWATER_CHECKPOINTS__WITNESSES", format!("[{{ vkey = \"{vkey}\", url = \"http://{address}/witness\" }}]"));
    }
    command
}

fn text(server: &Server, path: &str) -> Option<String> {
    let (status, body) = server.get(path, "")?;
    (status == 200).then(|| String::from_utf8(body).unwrap())
}

fn issue(server: &Server, key: &str, number: u64) {
    let body = json!({ "action": "pay", "agent_id": "a", "inputs": { "number": number }, "outputs": {} }).to_string();
    wait_for("a receipt", || (server.send("POST", "/receipts/v1/issue", key, &body).status == 201).then_some(()));
}

/// Waits for a checkpoint of a service with at least this many leaves that is, or is not, cosigned; returns its text.
fn checkpoint(server: &Server, service: &str, size: u64, witness: &VerifierKey, is_cosigned: bool) -> String {
    wait_for("a checkpoint", || {
        let note = text(server, &format!("/{service}/checkpoint"))?;
        let read = SignedNote::parse(&note)?;
        let fits = match read.signed_by(witness) {
            Signed::Valid { .. } => is_cosigned,
            Signed::Absent => !is_cosigned,
            Signed::Invalid => panic!("a cosignature over another text: {note}"),
        };
        (fits && read.checkpoint()?.size >= size).then(|| note.clone())
    })
}

/// For how many seconds the cosignatures of receipts have been behind; `None` if the metrics do not say so.
fn behind(server: &Server) -> Option<u64> {
    let metrics = server.metrics().unwrap();
    let name = "api_checkpoint_witness_behind_seconds{service=\"receipts\",witness=\"witness.example/w1\"} ";
    metrics.lines().find_map(|line| line.strip_prefix(name)?.parse::<u64>().ok())
}

/// Writes a file, and returns its path.
fn keep(dir: &Path, name: &str, contents: &str) -> String {
    let file = dir.join(name);
    std::fs::write(&file, contents).unwrap();
    file.to_str().unwrap().to_owned()
}

/// Proves that a log's checkpoints of receipts and of changes are cosigned by a configured witness, that checkpoints are served without a
/// cosignature while the witness is unavailable and with it later, that `highwater verify --witness` requires the cosignature, and that a
/// history that was rewritten under the same key gets none.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn rewritten_history_is_not_cosigned() {
    let dir = tempfile::tempdir().unwrap();
    let directory = |name: &str| {
        let directory = dir.path().join(name);
        std::fs::create_dir(&directory).unwrap();
        directory.join("data")
    };
    let (data, forked, witness_data) = (directory("log"), directory("fork"), directory("witness"));
    let simulated = SimulatedUpstreams::start(7, 300, fixed_clock()).await;
    let base_url = simulated.base_url.as_str();

    // The witness needs the origins and keys of the log.
    let key = stdout(log(&data, base_url, None, &["keys", "mint", "--tier", "pro"])).trim().to_owned();
    let server = Server::ready(log(&data, base_url, None, &["serve"]));
    issue(&server, &key, 1);
    issue(&server, &key, 2);
    stdout(log(&data, base_url, None, &["ingest", "cpsc", "--once"]));
    let logs = ["receipts", "recalls"].map(|service| {
        let vkey = wait_for("the log's key", || text(&server, &format!("/{service}/vkey")));
        assert!(vkey.starts_with(&format!("log.example/{service}+")), "{vkey}");
        format!("{{ origin = \"log.example/{service}\", vkey = \"{}\" }}", vkey.trim())
    });
    assert!(text(&server, "/receipts/checkpoint/cosigned").is_none(), "no witness is configured yet");
    assert!(server.terminate().success());
    // The witness must have the same address after a restart. No other process binds this one meanwhile: it is of this process only.
    let [.., a, b] = std::process::id().to_be_bytes();
    let address = format!("127.78.{a}.{b}:8443");
    let witness = || {
        let mut command = highwater(&witness_data, NOWHERE, &["serve"]);
        command.env("HIGHWATER_LISTEN", &address).env("HIGHWATER_CHECKPOINTS__WITNESS_NAME", "witness.example/w1");
        command.env("HIGHWATER_CHECKPOINTS__WITNESS_FOR", format!("[{}]", logs.join(", ")));
        Server::ready(command)
    };
    let witnessing = witness();
    let fixed = FixedWitness { address: address.clone(), vkey: text(&witnessing, "/witness/vkey").unwrap().trim().to_owned() };
    let vkey = VerifierKey::parse(&fixed.vkey, KeyType::Cosignature).unwrap();

    // The first checkpoint is cosigned, and so is one that continues it.
    let server = Server::ready(log(&data, base_url, Some(&fixed), &["serve"]));
    let status = |data: &Path| status_output(log(data, base_url, Some(&fixed), &["status"]));
    let first = checkpoint(&server, "receipts", 2, &vkey, true);
    checkpoint(&server, "recalls", 20, &vkey, true);
    issue(&server, &key, 3);
    let second = checkpoint(&server, "receipts", 3, &vkey, true);
    assert_eq!(text(&server, "/receipts/checkpoint/cosigned").as_ref(), Some(&second));
    let proof = server.json("/receipts/v1/consistency?from=2&to=3", "");
    assert_eq!(proof["checkpoint"], json!(second), "every answer must show the cosigned checkpoint");
    assert!(status(&data).contains("witness witness.example/w1\tof receipts\tcheckpoint 3\tcosigned 3 at "));
    wait_for("the gauge", || behind(&server).filter(|seconds| *seconds == 0));

    let pubkey = server.json("/receipts/pubkey", "")["publicKeyHex"].as_str().unwrap().to_owned();
    let verify = |old: &str, new: &str, proof: &Value, witnesses: &[&str]| {
        let (old, new, proof) = (keep(dir.path(), "old", old), keep(dir.path(), "new", new), keep(dir.path(), "proof", &proof.to_string()));
        let mut arguments = vec!["verify", "--old", &old, "--new", &new, "--proof", &proof, "--pubkey", &pubkey];
        witnesses.iter().for_each(|witness| arguments.extend(["--witness", witness]));
        let output = run(log(&data, base_url, None, &arguments));
        (output.status.code(), [output.stdout, output.stderr].map(|bytes| String::from_utf8(bytes).unwrap()).concat())
    };
    let (code, message) = verify(&first, &second, &proof, &[&fixed.vkey]);
    assert!(code == Some(0) && message.contains("continues: ") && message.contains("cosigned: by witness.example/w1 at 20"), "{message}");
    assert_eq!(verify(&first, &second, &proof, &[]).0, Some(0), "cosignatures must not disturb the verification");
    let other = transparency::note::Cosigner::new("witness.example/w2", &[3; 32]).unwrap().verifier().to_string();
    let (code, message) = verify(&first, &second, &proof, &[&fixed.vkey, &other]);
    assert!(code == Some(1) && message.contains("NOT VALID: witness.example/w2 did not cosign"), "{message}");
    assert!(message.contains("1 of 2 witnesses did not cosign"), "{message}");
    let (code, message) = verify(&first, &second, &proof, &["witness.example/w2"]);
    assert!(code == Some(1) && message.contains("--witness \"witness.example/w2\""), "{message}");

    // While the witness is unavailable, nothing waits for it. Afterwards it cosigns again.
    assert!(witnessing.terminate().success());
    issue(&server, &key, 4);
    let alone = checkpoint(&server, "receipts", 4, &vkey, false);
    assert_eq!(text(&server, "/receipts/checkpoint/cosigned").as_ref(), Some(&second));
    wait_for("the gauge of a witness that is away", || behind(&server).filter(|seconds| *seconds > 0));
    let reason = wait_for("the reason", || status(&data).lines().find(|line| line.contains("\tbehind: ")).map(str::to_owned));
    assert!(reason.contains("of receipts\tcheckpoint 4\tcosigned 3 at "), "{reason}");
    let witnessing = witness();
    let third = checkpoint(&server, "receipts", 4, &vkey, true);
    assert!(third.starts_with(&alone));
    wait_for("the gauge", || behind(&server).filter(|seconds| *seconds == 0));
    drop(server);

    // Another history under the same key, larger than the first.
    std::fs::create_dir_all(forked.join("receipt-keys")).unwrap();
    std::fs::copy(data.join("receipt-keys/first.key"), forked.join("receipt-keys/first.key")).unwrap();
    let key = stdout(log(&forked, NOWHERE, None, &["keys", "mint", "--tier", "pro"])).trim().to_owned();
    let server = Server::ready(log(&forked, NOWHERE, Some(&fixed), &["serve"]));
    (11..16).for_each(|number| issue(&server, &key, number));
    let rewritten = checkpoint(&server, "receipts", 5, &vkey, false);
    wait_for("the refusal", || status(&forked).contains("\tbehind: it answered 422").then_some(()));
    assert_eq!(checkpoint(&server, "receipts", 5, &vkey, false), rewritten);
    let proof = server.json("/receipts/v1/consistency?from=4&to=5", "");
    let (code, message) = verify(&third, &rewritten, &proof, &[&fixed.vkey]);
    assert!(code == Some(1) && message.contains("NOT VALID: the proof does not lead"), "{message}");
    assert!(message.contains("NOT VALID: witness.example/w1 did not cosign"), "{message}");
    let shown = text(&witnessing, &format!("/witness/{}/checkpoint", Hash32::of(b"log.example/receipts"))).unwrap();
    assert_eq!(shown, third, "the witness's state must not change");
}
