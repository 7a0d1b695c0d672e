//! `highwater verify`: checks receipts offline.

use std::error::Error as StdError;
use std::io::Read;
use std::path::Path;

use schemas::hash::Hash32;
use schemas::receipt::{Checks, Receipt, check};
use schemas::tree::{self, Checkpoint};
use serde_json::Value;

use crate::output::Output;

/// The largest file taken.
const BYTES_MAX: u64 = 64 << 20;

/// Checks a receipt, or each of those in a list and that they follow one another. Prints a line a receipt.
pub(crate) fn verify(file: &Path, pubkeys: &[String], output: &dyn Output) -> Result<(), Box<dyn StdError>> {
    let document = read(file)?;
    let receipts: Vec<&Value> = match (document.get("receipts").and_then(Value::as_array), document.get("receipt")) {
        (Some(listed), _) => listed.iter().collect(),
        (None, Some(receipt)) => vec![receipt],
        (None, None) => vec![&document],
    };
    let mut failed = 0;
    for receipt in &receipts {
        let faults = faults(receipt, pubkeys);
        let id = receipt.get("id").and_then(Value::as_str).unwrap_or("a receipt without id");
        if faults.is_empty() {
            // Text of the signer's choice: escaped, so that it cannot steer a terminal.
            let issued_to = receipt.pointer("/body/issuedTo").and_then(Value::as_str).map(str::escape_debug);
            output.line(issued_to.map_or_else(|| format!("{id}: valid"), |owner| format!("{id}: valid, issued to {owner}")).as_bytes());
        } else {
            failed += 1;
            output.line(format!("{id}: NOT VALID: {}", faults.join("; ")).as_bytes());
        }
    }
    if let Some(inclusion) = document.get("inclusion").filter(|inclusion| !inclusion.is_null()) {
        let holds = receipts.first().is_some_and(|receipt| is_included(receipt, inclusion, pubkeys));
        failed += usize::from(!holds);
        output.line(if holds {
            b"tree: included"
        } else {
            b"tree: NOT VALID: the proof does not show the receipt in a tree that a trusted key signed"
        });
    }
    // A list is newest first.
    for pair in receipts.windows(2) {
        if let [after, before] = pair
            && let Some(fault) = break_between(before, after)
        {
            failed += 1;
            output.line(format!("chain: NOT VALID: {fault}").as_bytes());
        }
    }
    if pubkeys.is_empty() && failed == 0 {
        output.note("compare publicKeyHex with the issuer's /pubkey, or give it as --pubkey");
    }
    if failed > 0 || receipts.is_empty() { Err(format!("{failed} of {} checks failed", receipts.len()).into()) } else { Ok(()) }
}

fn read(file: &Path) -> Result<Value, Box<dyn StdError>> {
    let shown = file.display();
    let mut bytes = Vec::new();
    let taken = if file == Path::new("-") {
        std::io::stdin().lock().take(BYTES_MAX + 1).read_to_end(&mut bytes)
    } else {
        std::fs::File::open(file).and_then(|file| file.take(BYTES_MAX + 1).read_to_end(&mut bytes))
    };
    taken.map_err(|error| format!("{shown} cannot be read: {error}"))?;
    if bytes.len() as u64 > BYTES_MAX {
        return Err(format!("{shown} is larger than {BYTES_MAX} bytes").into());
    }
    serde_json::from_slice(&bytes).map_err(|error| format!("{shown} is no JSON: {error}").into())
}

/// What is wrong with a receipt.
fn faults(receipt: &Value, pubkeys: &[String]) -> Vec<&'static str> {
    let Checks { hash, id, signature } = check(receipt);
    let key = receipt.pointer("/signature/publicKeyHex").and_then(Value::as_str).unwrap_or_default();
    let is_theirs = is_one_of(pubkeys, key);
    let all = [
        (hash, "hash: contentHash is not the hash of the body"),
        (id, "id: it is not that of the body"),
        (signature, "signature: it does not verify over the body with publicKeyHex"),
        (is_theirs, "key: publicKeyHex is not one given"),
    ];
    all.into_iter().filter(|(holds, _)| !holds).map(|(_, fault)| fault).collect()
}

/// Whether a key is one of those that are trusted; all are where none are given.
fn is_one_of(pubkeys: &[String], key: &str) -> bool {
    pubkeys.is_empty() || pubkeys.iter().any(|pubkey| pubkey.eq_ignore_ascii_case(key))
}

/// Whether a proof shows a receipt in a tree that a trusted key signed.
fn is_included(receipt: &Value, inclusion: &Value, pubkeys: &[String]) -> bool {
    let text = |name: &str| inclusion.get(name).and_then(Value::as_str).unwrap_or_default();
    let key = text("publicKeyHex");
    let proof = inclusion.get("proof").and_then(Value::as_array).map(Vec::as_slice).unwrap_or_default();
    let proof: Option<Vec<Hash32>> = proof.iter().map(|hash| Hash32::from_hex(hash.as_str()?)).collect();
    let entry = serde_json::from_value::<Receipt>(receipt.clone()).ok().and_then(|receipt| tree::entry(&receipt));
    let checkpoint = Checkpoint::read(text("checkpoint"), [key]).filter(|_| is_one_of(pubkeys, key));
    let index = inclusion.get("leafIndex").and_then(Value::as_u64);
    match (proof, entry, checkpoint, index) {
        (Some(proof), Some(entry), Some(checkpoint), Some(index)) => tree::is_included(&proof, &checkpoint, index, tree::leaf(&entry)),
        _ => false,
    }
}

/// What is wrong between two receipts that should follow one another.
fn break_between(before: &Value, after: &Value) -> Option<String> {
    let text = |receipt: &Value, pointer: &str| receipt.pointer(pointer).and_then(Value::as_str).unwrap_or_default().to_owned();
    let seq = |receipt: &Value| receipt.pointer("/body/seq").and_then(Value::as_i64).unwrap_or_default();
    let (first, second) = (text(before, "/id"), text(after, "/id"));
    if text(before, "/body/agent_id") != text(after, "/body/agent_id") {
        return Some(format!("{first} and {second} are of different agents"));
    }
    let (at, next) = (seq(before), seq(after));
    if next != at.saturating_add(1) {
        return Some(format!("between {first} at {at} and {second} at {next} receipts are missing"));
    }
    (text(after, "/body/prevHash") != text(before, "/contentHash"))
        .then(|| format!("{second} does not follow {first}: prevHash is another"))
}
