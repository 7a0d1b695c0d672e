//! Receipts: chains without forks or gaps under concurrent requests and kills, verified by the service, by the command line and by
//! independent tools.

use std::collections::{BTreeMap, BTreeSet};
use std::net::SocketAddr;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::sync::Mutex;
use std::thread;

use proofs::hash::Hash32;
use proofs::tree::{Checkpoint, is_consistent, leaf};
use serde_json::{Value, json};
use tempfile::TempDir;

use crate::cluster::Cluster;
use crate::commands::NOWHERE;
use crate::process::{Answer, Server, get, highwater, run, send, stderr_of_failure, stdout, try_send, wait_for};
use crate::random::{Random, number, seed};

/// Concurrent callers.
const CALLERS: u64 = 8;
/// Receipts of each caller.
const RECEIPTS_PER_CALLER: u64 = 40;
const AGENTS: u64 = 5;

fn body(agent: &str, number: u64) -> Value {
    json!({
        "action": "send_invoice",
        "agent_id": agent,
        "inputs": { "customer": "c_17", "number": number },
        "outputs": { "invoice": format!("secret-output-{number}") },
    })
}

/// Asks for a receipt until there is one, because the server may be killed meanwhile. A request is idempotent.
fn issue(address: &Mutex<SocketAddr>, key: &str, agent: &str, number: u64) -> Value {
    let (repeat, text) = (format!("{agent}-{number}"), body(agent, number).to_string());
    wait_for("a receipt", || {
        let address = *address.lock().unwrap();
        let asked = try_send(address, "POST", "/receipts/v1/issue", &[("x-api-key", key), ("idempotency-key", &repeat)], &text);
        let answer = asked.filter(|answer| answer.status != 503)?;
        assert_eq!(answer.status, 201, "{}", String::from_utf8_lossy(&answer.body));
        serde_json::from_slice::<Value>(&answer.body).ok().map(|mut issued| issued["receipt"].take())
    })
}

fn chain(server: &Server, key: &str, agent: &str) -> Vec<Value> {
    let (mut all, mut before) = (Vec::new(), String::new());
    loop {
        let mut page = server.json(&format!("/receipts/v1/list?agent_id={agent}&limit=7{before}"), key);
        all.append(page["receipts"].take().as_array_mut().unwrap());
        match page["next"].as_i64() {
            Some(next) => before = format!("&before={next}"),
            None => return all,
        }
    }
}

fn write(dir: &Path, name: &str, value: &Value) -> String {
    let path = dir.join(name);
    std::fs::write(&path, value.to_string()).unwrap();
    path.to_str().unwrap().to_owned()
}

/// Returns a command of a server of receipts.
fn command(data: &Path, arguments: &[&str]) -> Command {
    let mut command = highwater(data, NOWHERE, arguments);
    // Waiting for a checkpoint takes more calls than the daily limit of callers without a key.
    command.env("HIGHWATER_TIERS__FREE__CALLS_PER_DAY", "1000000");
    command
}

/// A server that issued three receipts to the agent `a`.
struct IssuedReceipts {
    server: Server,
    key: String,
    pubkey: String,
    receipts: Vec<Value>,
    data: PathBuf,
    /// Dropped last, after the server has ended.
    dir: TempDir,
}

impl IssuedReceipts {
    fn open() -> Self {
        let dir = tempfile::tempdir().unwrap();
        let data = dir.path().join("data");
        let key = stdout(command(&data, &["keys", "mint", "--tier", "pro"])).trim().to_owned();
        let server = Server::ready(command(&data, &["serve"]));
        let address = Mutex::new(server.address);
        let receipts = (1..=3).map(|number| issue(&address, &key, "a", number)).collect();
        let pubkey = server.json("/receipts/pubkey", "")["publicKeyHex"].as_str().unwrap().to_owned();
        Self { server, key, pubkey, receipts, data, dir }
    }

    /// Issues one again, or another one under its idempotency key.
    fn issue_again(&self, number: u64) -> Answer {
        let headers = [("x-api-key", self.key.as_str()), ("idempotency-key", "a-2")];
        send(self.server.address, "POST", "/receipts/v1/issue", &headers, &body("a", number).to_string())
    }

    /// The receipts, each with the proof that it is a leaf of the signed tree.
    fn included(&self) -> Vec<Value> {
        let proof = |receipt: &Value| {
            let path = format!("/receipts/v1/verify/{}", receipt["id"].as_str().unwrap());
            let has_all =
                |verified: &Value| verified["inclusion"]["checkpoint"].as_str().is_some_and(|text| text.lines().nth(1) == Some("3"));
            wait_for("a checkpoint of all three", || Some(self.server.json(&path, "")).filter(has_all))
        };
        self.receipts.iter().map(proof).collect()
    }
}

/// Proves that a request gets one receipt, which can be found, listed and verified.
#[test]
fn receipts_are_issued_and_verified() {
    let issued = IssuedReceipts::open();
    let IssuedReceipts { server, key, receipts, .. } = &issued;
    assert_eq!(issue(&Mutex::new(server.address), key, "a", 2), receipts[1], "the same request gets the same receipt");
    assert_eq!(issued.issue_again(9).status, 409);
    assert_eq!(server.send("POST", "/receipts/v1/issue", "", &body("a", 1).to_string()).status, 402, "issuing must not be free");
    for (turn, receipt) in receipts.iter().enumerate() {
        assert_eq!(receipt["body"]["seq"], turn as u64 + 1);
        let id = receipt["id"].as_str().unwrap();
        let verified = server.json(&format!("/receipts/v1/verify/{id}"), "");
        assert_eq!((&verified["valid"], &verified["receipt"], &verified["position"]["length"]), (&json!(true), receipt, &json!(3)));
    }
    assert_eq!(chain(server, key, "a"), receipts.iter().rev().cloned().collect::<Vec<_>>());
    assert_eq!(server.get("/receipts/v1/verify/rcpt_00000000000000000000000000000000", "").unwrap().0, 404);
}

/// Proves that each receipt is a leaf of the signed tree, according to the answer and according to tiles and proofs, and that a page shows it.
#[test]
fn receipts_are_leaves_of_the_signed_tree() {
    let issued = IssuedReceipts::open();
    let (server, included) = (&issued.server, issued.included());
    let repeated: Value = serde_json::from_slice(&issued.issue_again(2).body).unwrap();
    assert_eq!(repeated["inclusion"], included[1]["inclusion"], "a repeated request must get the proof");
    let checkpoint = String::from_utf8(server.get("/receipts/checkpoint", "").unwrap().1).unwrap();
    let read = Checkpoint::read(&checkpoint, [issued.pubkey.as_str()]).unwrap();
    assert_eq!((read.size, &read.origin), (3, &format!("{}/receipts", server.address)));
    let (status, tile) = server.get("/receipts/tile/0/000.p/3", "").unwrap();
    assert_eq!((status, tile.len()), (200, 96));
    let (status, entries) = server.get("/receipts/tile/entries/000.p/3", "").unwrap();
    assert_eq!(
        (status, Hash32::from_hex(&proofs::hash::hex(&tile[..32]))),
        (200, Some(leaf(&entries[2..2 + usize::from(u16::from_be_bytes([entries[0], entries[1]]))])))
    );
    for missing in [
        "/receipts/tile/0/000",
        "/receipts/tile/0/000.p/4",
        "/receipts/tile/1/000.p/1",
        "/receipts/tile/7/x281/x474/x976/x710/656.p/1",
        "/receipts/verify/rcpt_0",
    ] {
        assert_eq!(server.get(missing, "").unwrap().0, 404, "{missing}");
    }
    let consistent = server.json("/receipts/v1/consistency?from=1", "");
    assert_eq!((&consistent["to"], consistent["proof"].as_array().unwrap().len()), (&json!(3), 2));
    assert_eq!(server.get("/receipts/v1/consistency?from=4", "").unwrap().0, 400);
    let page = send(server.address, "GET", &format!("/receipts/verify/{}", issued.receipts[0]["id"].as_str().unwrap()), &[], "");
    assert!(
        page.status == 200
            && page.header("content-type").starts_with("text/html")
            && page.header("content-security-policy").contains("script-src 'self'")
    );
    assert_eq!(server.get("/receipts/verify.js", "").unwrap().0, 200);
}

/// Proves that the offline check accepts a receipt and its proof, names what was changed in a forged one, and names a receipt missing from a chain.
#[test]
fn forged_receipts_are_refused_offline() {
    let issued = IssuedReceipts::open();
    let (included, listed) = (issued.included(), chain(&issued.server, &issued.key, "a"));
    let IssuedReceipts { server, pubkey, receipts, data, dir, .. } = issued;
    drop(server);
    let proved = write(dir.path(), "proved.json", &included[0]);
    assert!(stdout(command(&data, &["verify", &proved, "--pubkey", &pubkey])).contains("tree: included"));
    let mut moved = included[0].clone();
    moved["inclusion"]["leafIndex"] = json!(1);
    let output = run(command(&data, &["verify", &write(dir.path(), "moved.json", &moved)]));
    assert!(output.status.code() == Some(1) && String::from_utf8_lossy(&output.stdout).contains("tree: NOT VALID"));
    let good = write(dir.path(), "good.json", &receipts[1]);
    assert!(stdout(command(&data, &["verify", &good, "--pubkey", &pubkey])).contains("valid"));
    assert!(
        stdout(command(&data, &["verify", &write(dir.path(), "list.json", &json!({ "receipts": listed }))])).contains("signer not checked")
    );
    for (pointer, value, named) in
        [("/body/action", json!("pay"), "hash:"), ("/id", json!("rcpt_0"), "id:"), ("/signature/value", json!("00"), "signature:")]
    {
        let mut bad = receipts[1].clone();
        *bad.pointer_mut(pointer).unwrap() = value;
        let output = run(command(&data, &["verify", &write(dir.path(), "bad.json", &bad)]));
        let output_text = String::from_utf8_lossy(&output.stdout).into_owned();
        assert!(output.status.code() == Some(1) && output_text.contains(named), "{pointer}: {output_text}");
    }
    let holed = json!({ "receipts": [listed[0], listed[2]] });
    let output = run(command(&data, &["verify", &write(dir.path(), "holed.json", &holed)]));
    assert!(String::from_utf8_lossy(&output.stdout).contains("receipts are missing"));
    let wrong = run(command(&data, &["verify", &good, "--pubkey", &"0".repeat(64)]));
    assert!(String::from_utf8_lossy(&wrong.stdout).contains("key:"));
    assert!(stderr_of_failure(command(&data, &["verify", dir.path().join("nothing").to_str().unwrap()])).contains("cannot be read"));
}

/// Proves that inputs and outputs are not stored, that chains continue after a rebuild and a restart, and that receipts of an earlier key stay valid.
#[test]
fn receipts_survive_a_restart_and_a_change_of_keys() {
    let IssuedReceipts { server, key, pubkey, receipts, data, dir } = IssuedReceipts::open();
    drop(server);
    // The hashed texts are not stored anywhere.
    for topic in ["receipts", "changes.receipts"] {
        assert!(!stdout(command(&data, &["export", topic])).contains("secret-output"));
    }
    let digest = stdout(command(&data, &["digest", "receipts", "--history"]));
    stdout(command(&data, &["replay", "receipts"]));
    assert_eq!(stdout(command(&data, &["digest", "receipts", "--history"])), digest);
    let server = Server::ready(command(&data, &["serve"]));
    let fourth = issue(&Mutex::new(server.address), &key, "a", 4);
    assert_eq!((&fourth["body"]["seq"], &fourth["body"]["prevHash"]), (&json!(4), &receipts[2]["contentHash"]));

    // After a change of keys while the server runs, receipts signed by the first key stay valid.
    let next = stdout(command(&data, &["receipt-keys", "new"])).trim().to_owned();
    assert!(stderr_of_failure(command(&data, &["receipt-keys", "use", &"0".repeat(64)])).contains("no file"));
    stdout(command(&data, &["receipt-keys", "use", &next]));
    let fifth = issue(&Mutex::new(server.address), &key, "a", 5);
    assert_eq!((&fifth["signature"]["publicKeyHex"], &fourth["signature"]["publicKeyHex"]), (&json!(next), &json!(pubkey)));
    for receipt in [&fourth, &fifth] {
        assert_eq!(server.json(&format!("/receipts/v1/verify/{}", receipt["id"].as_str().unwrap()), "")["valid"], true);
    }
    // The new key signs the tree: whoever trusts both keys gets a proof for receipts that the old key signed.
    let path = format!("/receipts/v1/verify/{}", fourth["id"].as_str().unwrap());
    let proved =
        wait_for("a checkpoint of the new key", || Some(server.json(&path, "")).filter(|proof| proof["inclusion"]["publicKeyHex"] == next));
    let proved = write(dir.path(), "proved.json", &proved);
    assert!(stdout(command(&data, &["verify", &proved, "--pubkey", &pubkey, "--pubkey", &next])).contains("tree: included"));
    assert!(String::from_utf8_lossy(&run(command(&data, &["verify", &proved, "--pubkey", &pubkey])).stdout).contains("tree: NOT VALID"));
    let listed = stdout(command(&data, &["receipt-keys", "list"]));
    assert!(listed.lines().count() == 2 && listed.lines().next().unwrap().starts_with(&pubkey));
}

/// Proves that under concurrent requests and repeated kills each request gets one receipt, every chain is numbered without a gap, and each
/// issued receipt is in its chain.
#[test]
fn chains_survive_kills() {
    let dir = tempfile::tempdir().unwrap();
    let data = dir.path().join("data");
    let command = |arguments: &[&str]| highwater(&data, NOWHERE, arguments);
    let key = stdout(command(&["keys", "mint", "--tier", "fleet_plus"])).trim().to_owned();
    let seed = seed("RECEIPTS_SEED", 1);
    let server = Server::ready(command(&["serve"]));
    let (address, issued_receipts) = (Mutex::new(server.address), Mutex::new(BTreeMap::<String, Vec<Value>>::new()));
    let server = thread::scope(|scope| {
        let mut server = server;
        for caller in 0..CALLERS {
            let (address, issued_receipts, key) = (&address, &issued_receipts, &key);
            scope.spawn(move || {
                let mut random = Random(seed.wrapping_add(caller));
                for number in 0..RECEIPTS_PER_CALLER {
                    let agent = format!("agent-{}", random.below(AGENTS));
                    let receipt = issue(address, key, &agent, caller * RECEIPTS_PER_CALLER + number);
                    issued_receipts.lock().unwrap().entry(agent).or_default().push(receipt);
                }
            });
        }
        let mut random = Random(seed);
        let count = || issued_receipts.lock().unwrap().values().map(Vec::len).sum::<usize>() as u64;
        for kill in 1..=3_u64 {
            let at = kill * CALLERS * RECEIPTS_PER_CALLER / 4 + random.below(20);
            wait_for("some receipts", || (count() >= at).then_some(()));
            server.kill();
            server = Server::start(command(&["serve"]));
            *address.lock().unwrap() = server.address;
        }
        server
    });
    for (agent, mut issued_receipts) in issued_receipts.into_inner().unwrap() {
        issued_receipts.sort_by_key(|receipt| receipt["body"]["seq"].as_u64());
        let listed = chain(&server, &key, &agent);
        assert_eq!(listed.iter().rev().cloned().collect::<Vec<_>>(), issued_receipts, "{agent}: the issued receipts are not the chain");
        let file = write(dir.path(), "list.json", &json!({ "receipts": listed }));
        assert!(!stdout(command(&["verify", &file])).contains("NOT VALID"));
    }
}

/// Proves on a real broker and a real CQL node that receipts of many agents, requested at two nodes while any process is killed, form
/// chains without forks, gaps or duplicates, are each issued once and verified; and that the final tree contains every checkpoint that was
/// read meanwhile. `RECEIPTS=100000 RECEIPT_AGENTS=1000 RECEIPT_CALLERS=64` runs the long form.
#[test]
fn chains_survive_kills_of_any_process() {
    let (total, agents) = (number("RECEIPTS").unwrap_or(160), number("RECEIPT_AGENTS").unwrap_or(9));
    let callers = number("RECEIPT_CALLERS").unwrap_or(CALLERS);
    let Some(cluster) = Cluster::new("receipts over two nodes", NOWHERE, "") else { return };
    let seed = seed("RECEIPTS_SEED", 1);
    let start = |(node, role): (&str, &str)| Server::start(cluster.command(node, &["serve", "--role", role]));
    let names = [("a", "api"), ("b", "api"), ("p", "project")];
    let mut nodes = Vec::from(names.map(start));
    wait_for("readiness", || (nodes[0].get("/readyz", "")?.0 == 200).then_some(()));
    let key = stdout(cluster.command("a", &["keys", "mint", "--tier", "fleet_plus"])).trim().to_owned();
    let pubkey = wait_for("a key that signs", || {
        let (status, body) = nodes[0].get("/receipts/pubkey", "")?;
        (status == 200).then(|| serde_json::from_slice::<Value>(&body).unwrap()["publicKeyHex"].as_str().unwrap().to_owned())
    });
    let addresses = [Mutex::new(nodes[0].address), Mutex::new(nodes[1].address)];
    let (issued_receipts, mut checkpoints) = (Mutex::new(BTreeMap::<String, Vec<Value>>::new()), Vec::new());
    let at = |node: usize| *addresses[node].lock().unwrap();
    let read = |node: usize| {
        let note = get(at(node), "/receipts/checkpoint", "").filter(|(status, _)| *status == 200)?.1;
        Some(Checkpoint::read(&String::from_utf8(note).unwrap(), [pubkey.as_str()]).expect("a checkpoint that the key signed"))
    };
    thread::scope(|scope| {
        for caller in 0..callers {
            let (address, issued_receipts, key) = (&addresses[usize::from(caller % 2 == 1)], &issued_receipts, &key);
            scope.spawn(move || {
                let mut random = Random(seed.wrapping_add(caller));
                for number in (caller..total).step_by(usize::try_from(callers).unwrap()) {
                    let agent = format!("agent-{}", random.below(agents));
                    let receipt = issue(address, key, &agent, number);
                    issued_receipts.lock().unwrap().entry(agent).or_default().push(receipt);
                }
            });
        }
        let mut random = Random(seed);
        let count = || issued_receipts.lock().unwrap().values().map(Vec::len).sum::<usize>() as u64;
        let kills = (total / 40).min(60);
        for kill in 1..=kills {
            wait_for("some receipts", || (count() >= kill * total / (kills + 1)).then_some(()));
            checkpoints.extend(read(usize::from(kill % 2 == 1)));
            let victim = usize::try_from(random.below(3)).unwrap();
            nodes.remove(victim).kill();
            nodes.insert(victim, start(names[victim]));
            if victim < 2 {
                *addresses[victim].lock().unwrap() = nodes[victim].address;
            }
        }
    });
    assert!(!checkpoints.is_empty());
    let last = wait_for("the last checkpoint", || read(0).filter(|checkpoint| checkpoint.size == total));
    let ids: BTreeSet<String> =
        issued_receipts.lock().unwrap().values().flatten().map(|receipt| receipt["id"].as_str().unwrap().to_owned()).collect();
    assert_eq!(ids.len() as u64, total, "the issued receipts are not the leaves of the tree");
    for (agent, mut issued_receipts) in issued_receipts.into_inner().unwrap() {
        issued_receipts.sort_by_key(|receipt| receipt["body"]["seq"].as_u64());
        let listed = chain(&nodes[0], &key, &agent);
        assert_eq!(listed.iter().rev().cloned().collect::<Vec<_>>(), issued_receipts, "{agent}: the issued receipts are not the chain");
        let file = write(&cluster.data("a"), "list.json", &json!({ "receipts": listed }));
        assert!(!stdout(cluster.command("a", &["verify", &file, "--pubkey", &pubkey])).contains("NOT VALID"));
    }
    for old in checkpoints.iter().filter(|old| old.size < last.size) {
        let answer = nodes[1].json(&format!("/receipts/v1/consistency?from={}&to={}", old.size, last.size), &key);
        let proof: Vec<Hash32> =
            answer["proof"].as_array().unwrap().iter().map(|hash| Hash32::from_hex(hash.as_str().unwrap()).unwrap()).collect();
        assert!(is_consistent(&proof, &last, old), "the tree of {} leaves is not in that of {}", old.size, last.size);
    }
}

/// Proves that only a paid artifact has a receipt; that the receipt commits to the hash of the artifact; that the command line and the Python example accept
/// both offline and refuse a changed artifact and another key; and that nobody else can append to the chain of a service.
#[test]
fn receipts_over_artifacts() {
    let dir = tempfile::tempdir().unwrap();
    let data = dir.path().join("data");
    let command = |arguments: &[&str]| highwater(&data, NOWHERE, arguments);
    let key = stdout(command(&["keys", "mint", "--tier", "pro"])).trim().to_owned();
    let server = Server::ready(command(&["serve"]));
    let path = "/exclusions/v1/entity_watch?uei=ABCDEF123456&receipt=true";
    assert_eq!(server.get(path, "").unwrap().0, 402, "an artifact must not be free");
    assert_eq!(server.json("/receipts/v1/list?agent_id=highwater:exclusions", "")["receipts"], json!([]));

    // Without a signing key, which the server records after its start, there is no receipt yet.
    let answer = wait_for("an artifact with a receipt", || server.get(path, &key).filter(|(status, _)| *status != 503));
    assert_eq!(answer.0, 200, "{}", String::from_utf8_lossy(&answer.1));
    let artifact: Value = serde_json::from_slice(&answer.1).unwrap();
    let receipt = &artifact["receipt"];
    assert_eq!((&receipt["body"]["action"], &receipt["body"]["agent_id"]), (&json!("entity_watch"), &json!("highwater:exclusions")));
    let verified = server.json(&format!("/receipts/v1/verify/{}", receipt["id"].as_str().unwrap()), "");
    assert_eq!(verified["valid"], true, "{verified}");
    let hash = artifact["artifactHash"].as_str().unwrap();
    assert!(!verified.to_string().contains(&hash[7..23]), "a public receipt shows the hash that opens the permalink");
    let taken = json!({ "action": "a", "agent_id": "highwater:exclusions", "inputs": {}, "outputs": {} }).to_string();
    assert_eq!(server.send("POST", "/receipts/v1/issue", &key, &taken).status, 400);

    let pubkey = server.json("/receipts/pubkey", "")["publicKeyHex"].as_str().unwrap().to_owned();
    let mut changed = artifact.clone();
    changed["statement"] = json!("none");
    let other_key = "0".repeat(64);
    for (document, key, is_valid) in [(&artifact, &pubkey, true), (&changed, &pubkey, false), (&artifact, &other_key, false)] {
        let file = write(dir.path(), "artifact.json", document);
        let output = run(command(&["verify", &file, "--pubkey", key]));
        assert_eq!(output.status.success(), is_valid, "{}", String::from_utf8_lossy(&output.stdout));
        let mut python = std::process::Command::new("python3");
        python.arg(Path::new(env!("CARGO_MANIFEST_DIR")).join("ops/examples/verify_artifact.py")).arg(key);
        python.stdin(std::fs::File::open(&file).unwrap()).stdout(std::process::Stdio::piped()).stderr(std::process::Stdio::piped());
        let output = run(python);
        assert_eq!(output.status.success(), is_valid, "{}", String::from_utf8_lossy(&output.stdout));
    }
}
