//! Damages the files of the data directory at random places while the process is down: each damage ends in the same answers, in views that are rebuilt
//! while requests get 503, or in a refused start that names the file and what to do. Never in other answers, and never in a second receipt at a position.
//!
//! `DAMAGE_ROUNDS=500 cargo test --test scenarios damaged_views` runs 500 rounds; `DAMAGE_SEED` repeats the random choices of an earlier run.

use std::collections::BTreeMap;
use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;

use schemas::views::receipts::TABLES as RECEIPTS;
use serde_json::{Value, json};

use crate::engine::{NOW, SimulatedUpstreams, fixed_clock};
use crate::process::{Server, ask, copy_dir, fix_clock, highwater, run, send, stderr_of_failure, stdout, wait_for};
use crate::random::{self, Random};

/// What is asked before and after each damage. The answers do not change under a fixed clock.
const QUESTIONS: [&str; 4] =
    ["/recalls/api/recalls?limit=50", "/recalls/v1/changes?start=earliest&limit=100", "/receipts/v1/list?agent_id=a", "/receipts/pubkey"];

fn files(dir: &Path) -> Vec<PathBuf> {
    let mut found = Vec::new();
    for entry in fs::read_dir(dir).unwrap() {
        let entry = entry.unwrap();
        if entry.file_type().unwrap().is_dir() { found.extend(files(&entry.path())) } else { found.push(entry.path()) }
    }
    found.sort();
    found
}

/// Issues a receipt for agent `a`; the answer's receipt, or the status if there is none.
fn issue(server: &Server, key: &str, number: u64) -> Result<Value, u16> {
    let body = json!({ "action": "pay", "agent_id": "a", "inputs": { "number": number }, "outputs": {} }).to_string();
    // A request that is repeated after a 503 is the same request.
    let headers = [("x-api-key", key), ("idempotency-key", &format!("request-{number}"))];
    let answer = send(server.address, "POST", "/receipts/v1/issue", &headers, &body);
    if answer.status != 201 {
        return Err(answer.status);
    }
    Ok(serde_json::from_slice::<Value>(&answer.body).unwrap()["receipt"].take())
}

/// A data directory with recalls and receipts, as `kill -9` left it.
struct Prepared {
    simulated: SimulatedUpstreams,
    dir: tempfile::TempDir,
    key: String,
    answers: Vec<Vec<u8>>,
    receipts: u64,
}

impl Prepared {
    async fn new() -> Self {
        let dir = tempfile::tempdir().unwrap();
        let simulated = SimulatedUpstreams::start(41, 200, fixed_clock()).await;
        let mut this = Self { simulated, dir, key: String::new(), answers: Vec::new(), receipts: 3 };
        let data = this.dir.path().join("data");
        stdout(this.command(&data, &["ingest", "fsis", "cpsc"]));
        this.key = stdout(this.command(&data, &["keys", "mint", "--tier", "fleet_plus"])).trim().to_owned();
        let server = Server::ready(this.command(&data, &["serve"]));
        for number in 1..=this.receipts {
            assert_eq!(wait_for("a receipt", || issue(&server, &this.key, number).ok())["body"]["seq"], number);
        }
        // It is in the signer's memory before it is served.
        wait_for("a signed tree", || server.get("/receipts/checkpoint", "").filter(|(status, _)| *status == 200));
        this.answers = QUESTIONS.iter().map(|question| server.get(question, &this.key).unwrap().1).collect();
        server.kill();
        this
    }

    fn command(&self, data: &Path, arguments: &[&str]) -> Command {
        let mut command = highwater(data, &self.simulated.base_url, arguments);
        fix_clock(&mut command, NOW);
        command
    }

    /// Starts a server on a damaged copy and returns how it ended. Panics if an answer is wrong.
    fn check(&self, data: &Path, what: &str) -> &'static str {
        // Each copy has the memory of the original signer: it signs the same chain on.
        let memory = data.with_file_name("signer-memory");
        let kept = data.with_file_name("signer-memory-kept");
        copy_dir(&memory, &kept);
        let ended = self.ask_all(data, what);
        fs::remove_dir_all(&memory).unwrap();
        fs::rename(&kept, &memory).unwrap();
        ended
    }

    fn ask_all(&self, data: &Path, what: &str) -> &'static str {
        let server = match Server::try_start(self.command(data, &["serve"]), |line| assert!(!line.contains("panicked"), "{line}")) {
            Ok(server) => server,
            Err(message) => {
                assert!(message.contains(&data.display().to_string()) || message.contains("the log is damaged at"), "{what}: {message}");
                return "refused";
            }
        };
        let mut is_rebuilt = false;
        wait_for("readiness", || {
            let is_ready = server.get("/readyz", "")?.0 == 200;
            for (question, expected) in QUESTIONS.iter().zip(&self.answers) {
                let answer = ask(server.address, question, &self.key)?;
                if answer.status == 503 {
                    assert_ne!(answer.header("retry-after"), "", "{what}: {question}");
                    is_rebuilt = true;
                    continue;
                }
                let body = String::from_utf8_lossy(&answer.body).into_owned();
                assert_eq!((answer.status, &answer.body), (200, expected), "{what}: {question}: {body}");
            }
            is_ready.then_some(())
        });
        let next = wait_for("the next receipt", || match issue(&server, &self.key, self.receipts + 1) {
            Ok(receipt) => Some(receipt),
            Err(status) => {
                assert_eq!(status, 503, "{what}");
                None
            }
        });
        assert_eq!(next["body"]["seq"], self.receipts + 1, "{what}");
        server.kill();
        if is_rebuilt { "healed" } else { "same" }
    }
}

/// Proves for random damages of every kind of file, most of them of the views, that nothing false is answered and no chain forks.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn random_damages_answer_nothing_false() {
    let (rounds, seed) = (random::number("DAMAGE_ROUNDS").unwrap_or(6), random::seed("DAMAGE_SEED", 1));
    println!("DAMAGE_ROUNDS={rounds}");
    let mut random = Random(seed);
    let prepared = Prepared::new().await;
    let data = prepared.dir.path().join("data");
    let files_in = |part: &str| files(&data.join(part));
    let (views, log) = (files_in("views"), files_in("log"));
    let is_aimed = |path: &&PathBuf| {
        path.extension().is_some_and(|extension| extension == "jnl") || path.ends_with("current") || path.ends_with("manifest")
    };
    let aimed: Vec<&PathBuf> = views.iter().chain(&log).filter(is_aimed).collect();
    let mut ends: BTreeMap<&str, u64> = BTreeMap::new();
    for round in 0..rounds {
        let pick = |count: usize, random: &mut Random| usize::try_from(random.below(count as u64)).unwrap();
        let file = match random.below(10) {
            0..4 => aimed[pick(aimed.len(), &mut random)],
            4..8 => &views[pick(views.len(), &mut random)],
            _ => &log[pick(log.len(), &mut random)],
        };
        let copied = prepared.dir.path().join("damaged");
        copy_dir(&data, &copied);
        let name = file.strip_prefix(&data).unwrap();
        let target = copied.join(name);
        let length = fs::metadata(&target).unwrap().len();
        // Journals are allocated with space to grow, which is zeros; damage there is noticed like any other, but is not what this is for.
        let used = fs::read(&target).unwrap().iter().rposition(|byte| *byte != 0).map_or(0, |last| last as u64 + 1);
        let at = random.below(used.max(1));
        let kind = random.below(4);
        match kind {
            0 => fs::remove_file(&target).unwrap(),
            1 => fs::File::options().write(true).open(&target).unwrap().set_len(at).unwrap(),
            _ if length == 0 => {}
            _ => {
                let mut bytes = fs::read(&target).unwrap();
                bytes[usize::try_from(at).unwrap()] ^= 1 << random.below(8);
                fs::write(&target, bytes).unwrap();
            }
        }
        let what = format!("DAMAGE_SEED={seed}, round {round}: {} at {at}, kind {kind}", name.display());
        *ends.entry(prepared.check(&copied, &what)).or_default() += 1;
        fs::remove_dir_all(&copied).unwrap();
    }
    println!("{rounds} steps ended as {ends:?}");
}

/// Proves that a flipped bit in the sequence number of the last batch in the journal of the views, which the storage library does not notice, does not make
/// a decider sign on an older row.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn older_rows_are_not_signed_on() {
    let prepared = Prepared::new().await;
    let data = prepared.dir.path().join("data");
    let journal = data.join("views/store/0.jnl");
    let mut bytes = fs::read(&journal).unwrap();
    let is_start = |at: &usize| {
        bytes[*at] == 1 && bytes[at + 3..at + 5] == [0; 2] && bytes[at + 9..at + 13] == [0; 4] && bytes[at + 13] == 2 && bytes[at + 1] > 0
    };
    let last = (0..bytes.len() - 14).rev().find(is_start).unwrap();
    // A sequence number of half the size is older than those of all other batches since the start.
    let number = u32::from_le_bytes(bytes[last + 5..last + 9].try_into().unwrap());
    bytes[last + 5..last + 9].copy_from_slice(&(number / 2).to_le_bytes());
    fs::write(&journal, bytes).unwrap();
    // A view as small as this may be rebuilt before the first request, so that both ends are right.
    prepared.check(&data, "the last sequence number");
}

/// Proves that an older row of an agent's chain, with a right checksum, is noticed by comparison with the log: the next receipt extends the last one, not
/// the one that the row names.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn older_rows_contradict_the_log() {
    let prepared = Prepared::new().await;
    let data = prepared.dir.path().join("data");
    let listed: Value = serde_json::from_slice(&prepared.answers[2]).unwrap();
    let second = listed["receipts"].as_array().unwrap().iter().find(|receipt| receipt["body"]["seq"] == 2).unwrap();
    let older = json!({ "seq": 2, "hash": second["contentHash"], "issuedAt": second["body"]["issuedAt"] }).to_string();
    let engine = crate::engine::Engine::open_without_projector(&data, fixed_clock()).await;
    let view = engine.store.live(RECEIPTS.view).await.unwrap();
    let checkpoint = view.checkpoint().await.unwrap();
    let row = schemas::tables::Write::put(RECEIPTS.state, schemas::key!["agent/a"], bytes::Bytes::from(older));
    view.commit(vec![row], &checkpoint).await.unwrap();
    drop(view);
    engine.close().await;
    let server = Server::ready(prepared.command(&data, &["serve"]));
    let next = wait_for("the next receipt", || issue(&server, &prepared.key, prepared.receipts + 1).ok());
    let last = listed["receipts"].as_array().unwrap().iter().find(|receipt| receipt["body"]["seq"] == prepared.receipts).unwrap();
    assert_eq!((&next["body"]["seq"], &next["body"]["prevHash"]), (&json!(prepared.receipts + 1), &last["contentHash"]), "{next}");
    server.kill();
}

/// Proves that `fsck` finds nothing in a whole directory, names a row that differs from the log, repairs its view, and names a signed tree that the log
/// does not make.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn fsck_finds_and_repairs() {
    let prepared = Prepared::new().await;
    let data = prepared.dir.path().join("data");
    let whole = stdout(prepared.command(&data, &["fsck"]));
    for line in ["receipts\tsigned 3\twrong 0", "tree receipts\tsigned", "view recalls\tapplied", "view engine\tapplied"] {
        assert!(whole.contains(line), "{whole}");
    }
    assert!(!whole.contains("not equal") && !whole.contains("FAULT"), "{whole}");
    let manifest = fs::read_to_string(data.join("views/manifest")).unwrap();
    assert!(manifest.contains("recalls.g1.") && !manifest.contains(".g2."), "the views that were compared are deleted: {manifest}");
    // A row that no change wrote, with a right checksum: only a comparison with the log shows it.
    let engine = crate::engine::Engine::open_without_projector(&data, fixed_clock()).await;
    let view = engine.store.live(&schemas::views::recalls::VIEW).await.unwrap();
    let checkpoint = view.checkpoint().await.unwrap();
    let key = schemas::key!["FSIS:forged"];
    let forged = schemas::tables::Write::put(&schemas::views::recalls::RECALLS, key, bytes::Bytes::from_static(b"{}"));
    view.commit(vec![forged], &checkpoint).await.unwrap();
    drop(view);
    engine.close().await;
    let faults = String::from_utf8(run(prepared.command(&data, &["fsck"])).stdout).unwrap();
    assert!(faults.contains("view recalls\t") && faults.contains("does not follow from the log"), "{faults}");
    assert!(stdout(prepared.command(&data, &["fsck", "--repair"])).contains("repaired"));
    assert!(!stdout(prepared.command(&data, &["fsck"])).contains("FAULT"));
    assert_eq!(prepared.check(&data, "a repaired view"), "same");
    for entry in fs::read_dir(data.with_file_name("signer-memory")).unwrap() {
        let path = entry.unwrap().path();
        let Some(mut memory) = fs::read(&path).ok().and_then(|text| serde_json::from_slice::<Value>(&text).ok()) else { continue };
        memory["trees"]["receipts"]["root"] = "00".repeat(32).into();
        fs::write(&path, memory.to_string()).unwrap();
    }
    let faults = String::from_utf8(run(prepared.command(&data, &["fsck"])).stdout).unwrap();
    assert!(faults.contains("not equal to the log") && faults.contains("FAULT\ttree receipts: the key"), "{faults}");
}

/// Proves that keys that are not those of the directory are refused at start, with the file, and that nothing else is changed by that.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn changed_keys_are_refused() {
    let prepared = Prepared::new().await;
    let data = prepared.dir.path().join("data");
    for (file, is_deleted) in [("master.key", false), ("receipt-keys/first.key", false), ("receipt-keys/first.key", true)] {
        let path = data.join(file);
        let original = fs::read(&path).unwrap();
        if is_deleted {
            fs::remove_file(&path).unwrap();
        } else {
            fs::write(&path, format!("{}\n", "5a".repeat(32))).unwrap();
        }
        let message = stderr_of_failure(prepared.command(&data, &["serve"]));
        assert!(message.contains(&path.display().to_string()) && message.contains("restore the file from the backup"), "{message}");
        if is_deleted {
            assert!(!path.exists(), "no new key must be made");
            fs::write(&path, &original).unwrap();
            Command::new("chmod").arg("600").arg(&path).status().unwrap();
        } else {
            fs::write(&path, &original).unwrap();
        }
    }
    assert_eq!(prepared.check(&data, "the original keys"), "same");
}
