//! `highwater verify`: checks receipts, and whether one checkpoint continues another, offline.

use std::error::Error as StdError;
use std::io::Read;
use std::path::Path;

use schemas::clock::rfc3339;
use schemas::hash::Hash32;
use schemas::note::{KeyType, Note, Signed, VerifierKey};
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

/// Checks whether a checkpoint continues an older one of the same tree, and whether some witnesses cosigned it. Prints a line for each.
pub(crate) fn verify_continues(
    old: &Path,
    new: &Path,
    proof: Option<&Path>,
    pubkeys: &[String],
    witnesses: &[String],
    output: &dyn Output,
) -> Result<(), Box<dyn StdError>> {
    let witnesses = witnesses.iter().map(|vkey| {
        VerifierKey::parse(vkey, KeyType::Cosignature).map_err(|error| format!("--witness \"{}\": {error}", vkey.escape_debug()))
    });
    let witnesses: Vec<VerifierKey> = witnesses.collect::<Result<_, _>>()?;
    let keys: Vec<String> = pubkeys.iter().map(|key| key.to_lowercase()).collect();
    let note = |file: &Path| Ok::<_, Box<dyn StdError>>(String::from_utf8(read_bytes(file)?).unwrap_or_default());
    let checkpoint = |note: &str, file: &Path| {
        let unsigned = || format!("{} is no checkpoint that a key given as --pubkey signed", file.display());
        Checkpoint::read(note, keys.iter().map(String::as_str)).ok_or_else(unsigned)
    };
    let (old_note, new_note) = (note(old)?, note(new)?);
    let (old, new) = (checkpoint(&old_note, old)?, checkpoint(&new_note, new)?);
    let fault = match proof {
        Some(proof) => fault_between(&old, &new, Some(&read(proof)?)),
        None => fault_between(&old, &new, None),
    };
    match &fault {
        None => output.line(format!("continues: the tree of {} leaves holds the one of {} unchanged", new.size, old.size).as_bytes()),
        Some(fault) => output.line(format!("NOT VALID: {fault}").as_bytes()),
    }
    let mut lacking = 0;
    for witness in &witnesses {
        let fault = cosigned_at(&new_note, witness);
        lacking += usize::from(fault.is_err());
        let name = witness.name().escape_debug();
        output.line(
            match fault {
                Ok(time) => format!("cosigned: by {name} at {time}"),
                Err(fault) => format!("NOT VALID: {name} {fault}"),
            }
            .as_bytes(),
        );
    }
    match (fault, lacking) {
        (Some(_), _) => Err("the new checkpoint is not shown to continue the old one".into()),
        (None, 0) => Ok(()),
        (None, lacking) => Err(format!("{lacking} of {} witnesses did not cosign the new checkpoint", witnesses.len()).into()),
    }
}

/// When a witness cosigned a checkpoint, or why that is not shown.
fn cosigned_at(note: &str, witness: &VerifierKey) -> Result<String, &'static str> {
    match Note::parse(note).map_or(Signed::Absent, |note| note.signed_by(witness)) {
        Signed::Valid { time_s, .. } => Ok(rfc3339(i64::try_from(time_s.saturating_mul(1_000)).unwrap_or(i64::MAX))),
        Signed::Invalid => Err("did not make the cosignature that names it"),
        Signed::Absent => Err("did not cosign the new checkpoint"),
    }
}

/// Why a checkpoint is not shown to continue an older one; `None` if it is. The proof is as `/v1/consistency` answers it.
fn fault_between(old: &Checkpoint, new: &Checkpoint, proof: Option<&Value>) -> Option<String> {
    if old.origin != new.origin {
        return Some(format!("they are of different trees, {} and {}", old.origin, new.origin));
    }
    if new.size < old.size {
        return Some(format!("the new tree has {} leaves and the old one {}: leaves were taken away", new.size, old.size));
    }
    if new.size == old.size {
        return (new.root != old.root)
            .then(|| format!("both trees have {} leaves, and different roots: there are two histories", new.size));
    }
    // Every tree holds the empty one.
    if old.size == 0 {
        return None;
    }
    let Some(proof) = proof else {
        return Some(format!("a proof is needed (--proof): the answer of /v1/consistency?from={}&to={}", old.size, new.size));
    };
    let size = |name: &str| proof.get(name).and_then(Value::as_u64);
    if (size("from"), size("to")) != (Some(old.size), Some(new.size)) {
        return Some(format!("the proof is not from {} to {} leaves", old.size, new.size));
    }
    let hashes = proof.get("proof").and_then(Value::as_array).map(Vec::as_slice).unwrap_or_default();
    let hashes: Option<Vec<Hash32>> = hashes.iter().map(|hash| Hash32::from_hex(hash.as_str()?)).collect();
    let is_shown = hashes.is_some_and(|hashes| tree::is_consistent(&hashes, new, old));
    (!is_shown).then(|| "the proof does not lead from the old root to the new one".to_owned())
}

fn read(file: &Path) -> Result<Value, Box<dyn StdError>> {
    let bytes = read_bytes(file)?;
    serde_json::from_slice(&bytes).map_err(|error| format!("{} is no JSON: {error}", file.display()).into())
}

/// What a file holds; `-` is standard input.
fn read_bytes(file: &Path) -> Result<Vec<u8>, Box<dyn StdError>> {
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
    Ok(bytes)
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

#[cfg(test)]
mod tests {
    use std::collections::HashMap;

    use schemas::tree::Question;
    use serde_json::json;

    use super::*;

    /// A tree of some leaves; from `forked` on they are others.
    fn grown(size: u64, forked: u64) -> HashMap<u64, Hash32> {
        let mut stored = HashMap::new();
        for n in 0..size {
            let siblings: Vec<Hash32> = tree::siblings(n).map(|place| stored[&place]).collect();
            stored.extend(tree::new_hashes(n, tree::leaf(&[u8::from(n >= forked), u8::try_from(n).unwrap()]), &siblings));
        }
        stored
    }

    fn at(stored: &HashMap<u64, Hash32>, size: u64) -> Checkpoint {
        Checkpoint { origin: "x.example/receipts".to_owned(), size, root: Question::Root { size }.answer(stored).unwrap()[0] }
    }

    fn proof(stored: &HashMap<u64, Hash32>, from: u64, to: u64) -> Value {
        let hashes = Question::Consistency { size: to, old: from }.answer(stored).unwrap();
        json!({ "from": from, "to": to, "proof": hashes.iter().map(Hash32::to_string).collect::<Vec<_>>() })
    }

    /// Proves that a checkpoint continues an older one by its own proof alone, and that a fork, a smaller tree, another tree, and a proof that is
    /// missing, of other sizes or damaged are each told.
    #[test]
    fn one_checkpoint_and_another() {
        let (tree, fork) = (grown(20, 99), grown(20, 5));
        let fault = |old: &Checkpoint, new: &Checkpoint, proof: Option<&Value>| fault_between(old, new, proof).unwrap_or_default();
        for (old, new) in [(1, 20), (7, 8), (8, 20), (19, 20)] {
            assert_eq!(fault(&at(&tree, old), &at(&tree, new), Some(&proof(&tree, old, new))), "");
        }
        let (old, new) = (at(&tree, 7), at(&tree, 20));
        assert_eq!(fault(&old, &old, None), "", "the same one");
        assert!(fault(&old, &new, None).contains("a proof is needed"));
        assert!(fault(&old, &new, Some(&proof(&tree, 8, 20))).contains("not from 7 to 20"));
        assert!(fault(&new, &old, None).contains("taken away"));
        assert!(fault(&old, &at(&fork, 7), None).contains("two histories"));
        assert!(fault(&old, &at(&fork, 20), Some(&proof(&fork, 7, 20))).contains("does not lead"));
        let mut damaged = proof(&tree, 7, 20);
        damaged["proof"][0] = json!("zz");
        assert!(fault(&old, &new, Some(&damaged)).contains("does not lead"));
        let other = Checkpoint { origin: "y.example/receipts".to_owned(), ..new };
        assert!(fault(&old, &other, None).contains("different trees"));
    }
}
