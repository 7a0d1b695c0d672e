//! `highwater verify`: verifies receipts and documents that state their hash, and that one checkpoint continues another, offline.

use std::error::Error as StdError;
use std::io::Read;
use std::path::Path;

use proofs::evidence::{self, Verified};
use proofs::hash::Hash32;
use proofs::i_json::{self, Rule, Violation};
use proofs::receipt::{Checks, Receipt, check};
use proofs::tree::{self, Checkpoint};
use schemas::clock::rfc3339;
use serde_json::Value;
use transparency::note::{KeyType, Note, Signed, VerifierKey};

use crate::output::Output;

/// The largest file that is read, in bytes.
const BYTES_MAX: u64 = 64 << 20;
/// How many hex digits a public key has.
const PUBKEY_DIGITS: usize = 64;

/// Verifies a receipt, all receipts of a list and their chain, or a document that states its hash (an artifact of `exclusions`, a record of `catalysts`).
/// Prints one line for each.
///
/// # Errors
/// A given key is no public key, the file cannot be read, or what it holds is not valid.
pub(crate) fn verify(file: &Path, pubkeys: &[String], output: &dyn Output) -> Result<(), Box<dyn StdError>> {
    check_pubkeys(pubkeys)?;
    let document = read(file)?;
    if let Some(found) = evidence::verify(&document) {
        let mut tally = Tally::default();
        verify_document(&document, &found, pubkeys, &mut tally, output)?;
        return tally.result();
    }
    let receipts: Vec<&Value> = match (document.get("receipts").and_then(Value::as_array), document.get("receipt")) {
        (Some(listed), _) if listed.is_empty() => return Err(format!("{}: the list `receipts` is empty", file.display()).into()),
        (Some(listed), _) => listed.iter().collect(),
        (None, Some(receipt)) => vec![receipt],
        (None, None) => vec![&document],
    };
    let signer = signer_note(pubkeys);
    let mut tally = Tally::default();
    for receipt in &receipts {
        let faults = faults(receipt, pubkeys);
        // Whoever wrote the file chose these texts, so they are escaped: they must not control a terminal.
        let id = receipt.get("id").and_then(Value::as_str).unwrap_or("a receipt without id").escape_debug();
        tally.add(faults.is_empty());
        if faults.is_empty() {
            let issued_to = receipt.pointer("/body/issuedTo").and_then(Value::as_str).map(str::escape_debug);
            let owner = issued_to.map(|owner| format!(", issued to {owner}")).unwrap_or_default();
            output.line(format!("{id}: valid{owner}{signer}").as_bytes());
        } else {
            output.line(format!("{id}: NOT VALID: {}", faults.join("; ")).as_bytes());
        }
    }
    if let Some(inclusion) = document.get("inclusion").filter(|inclusion| !inclusion.is_null()) {
        let holds = receipts.first().is_some_and(|receipt| is_included(receipt, inclusion, pubkeys));
        tally.add(holds);
        output.line(if holds {
            b"tree: included"
        } else {
            b"tree: NOT VALID: the proof does not show the receipt in a tree that a trusted key signed"
        });
    }
    // Lists are ordered from the newest to the oldest receipt.
    for pair in receipts.windows(2) {
        let [after, before] = pair else { continue };
        let fault = chain_fault(before, after);
        tally.add(fault.is_none());
        if let Some(fault) = fault {
            output.line(format!("chain: NOT VALID: {fault}").as_bytes());
        }
    }
    if pubkeys.is_empty() && tally.failed == 0 {
        output.note("compare publicKeyHex with the issuer's /pubkey, or give it as --pubkey");
    }
    tally.result()
}

/// How many checks were made, and how many of them failed.
#[derive(Debug, Default)]
struct Tally {
    checks: usize,
    failed: usize,
}

impl Tally {
    fn add(&mut self, holds: bool) {
        self.checks += 1;
        self.failed += usize::from(!holds);
    }

    /// Fails if a check failed.
    fn result(&self) -> Result<(), Box<dyn StdError>> {
        if self.failed == 0 { Ok(()) } else { Err(format!("{} of {} checks failed", self.failed, self.checks).into()) }
    }
}

/// Refuses a key that no signature can have. Otherwise each receipt would be said to have another one.
fn check_pubkeys(pubkeys: &[String]) -> Result<(), String> {
    let wrong = pubkeys.iter().find(|key| key.len() != PUBKEY_DIGITS || !key.bytes().all(|byte| byte.is_ascii_hexdigit()));
    wrong.map_or(Ok(()), |key| Err(format!("--pubkey: \"{}\" is not a public key of {PUBKEY_DIGITS} hex digits", key.escape_debug())))
}

/// What the line of a valid receipt says of its signer. Without a key that the caller trusts, the signature shows only that the receipt has not changed since
/// somebody signed it.
fn signer_note(pubkeys: &[String]) -> &'static str {
    if pubkeys.is_empty() { ", signer not checked" } else { "" }
}

/// Says whether a document has the hash that it states and, if it has a receipt, whether the receipt is valid and commits to the hash.
///
/// # Errors
/// Keys are given for a document that nobody signed.
fn verify_document(
    document: &Value,
    found: &Verified,
    pubkeys: &[String],
    tally: &mut Tally,
    output: &dyn Output,
) -> Result<(), Box<dyn StdError>> {
    if !found.is_valid && document.get("note").is_some() {
        output
            .note("older versions put a note into answers, which is not hashed: remove the field `note` from the file and verify it again");
    }
    let Some(receipt) = document.get(evidence::RECEIPT).filter(|receipt| !receipt.is_null()) else {
        return verify_hash(found, pubkeys, tally, output);
    };
    verify_hash(found, &[], tally, output)?;
    let id = receipt.get("id").and_then(Value::as_str).unwrap_or("a receipt without id").escape_debug();
    let mut faults = faults(receipt, pubkeys);
    if !evidence::receipt_commits_to(receipt, &found.stated) {
        faults.push("outputs: outputs_hash does not commit to the hash of the document");
    }
    tally.add(faults.is_empty());
    if faults.is_empty() {
        output.line(format!("{id}: valid, over the hash of the document{}", signer_note(pubkeys)).as_bytes());
        if pubkeys.is_empty() {
            output.note("compare publicKeyHex with the issuer's /pubkey, or give it as --pubkey");
        }
    } else {
        output.line(format!("{id}: NOT VALID: {}", faults.join("; ")).as_bytes());
    }
    Ok(())
}

/// Says whether a document has the hash that it states.
///
/// # Errors
/// Keys are given.
fn verify_hash(found: &Verified, pubkeys: &[String], tally: &mut Tally, output: &dyn Output) -> Result<(), Box<dyn StdError>> {
    if !pubkeys.is_empty() {
        return Err("--pubkey: the document states a hash, which nobody signed".into());
    }
    // Whoever wrote the document chose this text, so it is escaped: it must not control a terminal.
    let stated = found.stated.escape_debug();
    tally.add(found.is_valid);
    if found.is_valid {
        output.line(format!("{stated}: valid").as_bytes());
        output.note("the hash shows that nothing was changed since it was made, not by whom: compare it with the permalink or the source");
    } else {
        output.line(format!("{stated}: NOT VALID: it is not the hash of what the document contains").as_bytes());
    }
    Ok(())
}

/// Verifies that a checkpoint continues an older one of the same tree, and that some witnesses cosigned it. Prints one line for each check.
///
/// # Errors
/// A given key is no public key, a file cannot be read, or a check fails.
pub(crate) fn verify_checkpoints(
    old: &Path,
    new: &Path,
    proof: Option<&Path>,
    pubkeys: &[String],
    witnesses: &[String],
    output: &dyn Output,
) -> Result<(), Box<dyn StdError>> {
    check_pubkeys(pubkeys)?;
    let witnesses = witnesses.iter().map(|vkey| {
        VerifierKey::parse(vkey, KeyType::Cosignature).map_err(|error| format!("--witness \"{}\": {error}", vkey.escape_debug()))
    });
    let witnesses: Vec<VerifierKey> = witnesses.collect::<Result<_, _>>()?;
    let keys: Vec<String> = pubkeys.iter().map(|key| key.to_lowercase()).collect();
    // A signed text has the line ends of Unix.
    let note = |file: &Path| Ok::<_, Box<dyn StdError>>(read_text(file)?.replace("\r\n", "\n"));
    let checkpoint = |note: &str, file: &Path| {
        let unsigned = || format!("{} is not a checkpoint signed by a key given as --pubkey", file.display());
        Checkpoint::read(note, keys.iter().map(String::as_str)).ok_or_else(unsigned)
    };
    let (old_note, new_note) = (note(old)?, note(new)?);
    let (old, new) = (checkpoint(&old_note, old)?, checkpoint(&new_note, new)?);
    let fault = match proof {
        Some(proof) => fault_between(&old, &new, Some(&read(proof)?)),
        None => fault_between(&old, &new, None),
    };
    match &fault {
        None => {
            output.line(format!("continues: the tree of {} leaves contains the tree of {} leaves unchanged", new.size, old.size).as_bytes())
        }
        Some(fault) => output.line(format!("NOT VALID: {fault}").as_bytes()),
    }
    let mut missing = 0;
    for witness in &witnesses {
        let fault = cosigned_at(&new_note, witness);
        missing += usize::from(fault.is_err());
        let name = witness.name().escape_debug();
        output.line(
            match fault {
                Ok(time) => format!("cosigned: by {name} at {time}"),
                Err(fault) => format!("NOT VALID: {name} {fault}"),
            }
            .as_bytes(),
        );
    }
    match (fault, missing) {
        (Some(_), _) => Err("the new checkpoint could not be verified to continue the old one".into()),
        (None, 0) => Ok(()),
        (None, missing) => Err(format!("{missing} of {} witnesses did not cosign the new checkpoint", witnesses.len()).into()),
    }
}

/// When a witness cosigned a checkpoint, or why that cannot be verified.
fn cosigned_at(note: &str, witness: &VerifierKey) -> Result<String, &'static str> {
    match Note::parse(note).map_or(Signed::Absent, |note| note.signed_by(witness)) {
        Signed::Valid { time_s, .. } => Ok(rfc3339(i64::try_from(time_s.saturating_mul(1_000)).unwrap_or(i64::MAX))),
        Signed::Invalid => Err("did not make the cosignature in its name"),
        Signed::Absent => Err("did not cosign the new checkpoint"),
    }
}

/// Why a checkpoint cannot be verified to continue an older one; `None` if it does. The proof is an answer of `/v1/consistency`.
fn fault_between(old: &Checkpoint, new: &Checkpoint, proof: Option<&Value>) -> Option<String> {
    if old.origin != new.origin {
        return Some(format!("the checkpoints are of different trees, {} and {}", old.origin.escape_debug(), new.origin.escape_debug()));
    }
    if new.size < old.size {
        return Some(format!("the new tree has {} leaves and the old one {}: leaves were removed", new.size, old.size));
    }
    if new.size == old.size {
        return (new.root != old.root).then(|| format!("both trees have {} leaves but different roots: there are two histories", new.size));
    }
    // Every tree contains the empty tree.
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
    let text = read_text(file)?;
    let document = serde_json::from_str(&text).map_err(|error| format!("{} is not JSON: {error}", file.display()))?;
    // Another program may read the first of two fields with one name, which was not verified then.
    i_json::read(text.as_bytes(), |_, rule| rule == Rule::FieldTwice)
        .map_err(|Violation { path, rule }| format!("{}: {}: {rule}", file.display(), path.join(".").escape_debug()))?;
    Ok(document)
}

/// Reads a file as a text.
fn read_text(file: &Path) -> Result<String, Box<dyn StdError>> {
    decoded(read_bytes(file)?).ok_or_else(|| format!("{} is neither UTF-8 nor UTF-16 with a byte order mark", file.display()).into())
}

/// Decodes a text in UTF-8, with a byte order mark or without, or in UTF-16 with one, as shells of Windows write files.
fn decoded(bytes: Vec<u8>) -> Option<String> {
    let wide = |bytes: &[u8], unit: fn([u8; 2]) -> u16| {
        let (units, rest) = bytes.as_chunks::<2>();
        rest.is_empty().then(|| String::from_utf16(&units.iter().map(|pair| unit(*pair)).collect::<Vec<_>>()).ok()).flatten()
    };
    match bytes.as_slice() {
        [0xff, 0xfe, text @ ..] => wide(text, u16::from_le_bytes),
        [0xfe, 0xff, text @ ..] => wide(text, u16::from_be_bytes),
        [0xef, 0xbb, 0xbf, text @ ..] => String::from_utf8(text.to_vec()).ok(),
        _ => String::from_utf8(bytes).ok(),
    }
}

/// Reads a file; `-` is standard input.
fn read_bytes(file: &Path) -> Result<Vec<u8>, Box<dyn StdError>> {
    let shown = file.display();
    let mut bytes = Vec::new();
    let result = if file == Path::new("-") {
        std::io::stdin().lock().take(BYTES_MAX + 1).read_to_end(&mut bytes)
    } else {
        std::fs::File::open(file).and_then(|file| file.take(BYTES_MAX + 1).read_to_end(&mut bytes))
    };
    result.map_err(|error| format!("{shown} cannot be read: {error}"))?;
    if bytes.len() as u64 > BYTES_MAX {
        return Err(format!("{shown} is larger than {BYTES_MAX} bytes").into());
    }
    Ok(bytes)
}

/// The checks that a receipt fails.
fn faults(receipt: &Value, pubkeys: &[String]) -> Vec<&'static str> {
    let Checks { hash, id, signature } = check(receipt);
    let key = receipt.pointer("/signature/publicKeyHex").and_then(Value::as_str).unwrap_or_default();
    let is_trusted = is_one_of(pubkeys, key);
    let all = [
        (hash, "hash: contentHash is not the hash of the body"),
        (id, "id: it does not match the body"),
        (signature, "signature: it does not verify over the body with publicKeyHex"),
        (is_trusted, "key: publicKeyHex is not one of the given keys"),
    ];
    all.into_iter().filter(|(holds, _)| !holds).map(|(_, fault)| fault).collect()
}

/// Whether a key is trusted: it is one of the given keys, or none are given.
fn is_one_of(pubkeys: &[String], key: &str) -> bool {
    pubkeys.is_empty() || pubkeys.iter().any(|pubkey| pubkey.eq_ignore_ascii_case(key))
}

/// Whether a proof shows that a receipt is in a tree that a trusted key signed.
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

/// Why two receipts are not consecutive receipts of one chain; `None` if they are.
fn chain_fault(before: &Value, after: &Value) -> Option<String> {
    let text = |receipt: &Value, pointer: &str| receipt.pointer(pointer).and_then(Value::as_str).unwrap_or_default().to_owned();
    // The texts of a file that are printed must not control a terminal.
    let shown = |receipt: &Value| text(receipt, "/id").escape_debug().to_string();
    let seq = |receipt: &Value| receipt.pointer("/body/seq").and_then(Value::as_i64).unwrap_or_default();
    let (first, second) = (shown(before), shown(after));
    if text(before, "/body/agent_id") != text(after, "/body/agent_id") {
        return Some(format!("{first} and {second} are of different agents"));
    }
    let (at, next) = (seq(before), seq(after));
    if next != at.saturating_add(1) {
        return Some(format!("receipts are missing between {first} (seq {at}) and {second} (seq {next})"));
    }
    (text(after, "/body/prevHash") != text(before, "/contentHash"))
        .then(|| format!("{second} does not follow {first}: its prevHash is a different hash"))
}

#[cfg(test)]
mod tests {
    use std::collections::HashMap;

    use proofs::receipt::{Body, SigningKeys, commitment};
    use proofs::tree::Question;
    use serde_json::json;

    use super::*;

    /// What is printed.
    #[derive(Default)]
    struct Printed(std::sync::Mutex<Vec<String>>);

    impl Output for Printed {
        fn line(&self, line: &[u8]) {
            self.0.lock().unwrap().push(String::from_utf8(line.to_vec()).unwrap());
        }
        fn bytes(&self, _: &[u8]) {}
        fn note(&self, _: &str) {}
        fn progress(&self, _: &str, _: u64, _: u64) {}
    }

    /// Proves that a document with its hash is verified by its contents, that one that was changed is refused, and that keys are not ignored.
    #[test]
    fn documents_with_a_hash() {
        let of = |document: &Value, pubkeys: &[String]| {
            let (printed, mut tally) = (Printed::default(), Tally::default());
            let result = verify_hash(&evidence::verify(document).unwrap(), pubkeys, &mut tally, &printed).and_then(|()| tally.result());
            (result.map_err(|error| error.to_string()), printed.0.into_inner().unwrap().join("|"))
        };
        let document = evidence::Artifact::new(&json!({ "signal": "NO_SIGNAL", "entity": { "name": "ACME" } })).unwrap().document("/x");
        let hash = document["artifactHash"].as_str().unwrap().to_owned();
        assert_eq!(of(&document, &[]), (Ok(()), format!("{hash}: valid")));
        let mut changed = document.clone();
        changed["entity"]["name"] = json!("ACNE");
        let (result, printed) = of(&changed, &[]);
        assert!(result.is_err() && printed.contains("NOT VALID"), "{printed}");
        assert!(of(&document, &["00".to_owned()]).0.unwrap_err().starts_with("--pubkey"));
        changed["artifactHash"] = json!("\u{1b}[2J");
        assert!(!of(&changed, &[]).1.contains('\u{1b}'));
    }

    /// Proves that the receipt of a document is verified with it: it must commit to the hash of the document and be signed by a trusted key.
    #[test]
    fn documents_with_a_receipt() {
        let (keys, artifact) = (SigningKeys::default(), evidence::Artifact::new(&json!({ "signal": "NO_SIGNAL" })).unwrap());
        let public = keys.add(&[7; 32]);
        let signed = |hash: &str| {
            let outputs_hash = commitment(&evidence::receipt_outputs(hash)).unwrap();
            keys.sign(&public, Body { outputs_hash, ..Body::default() }).unwrap().receipt
        };
        let of = |receipt: &Receipt, pubkeys: &[&str]| {
            let mut document = artifact.document("/x");
            document["receipt"] = json!(receipt);
            let (file, printed) = (tempfile::NamedTempFile::new().unwrap(), Printed::default());
            std::fs::write(file.path(), document.to_string()).unwrap();
            let pubkeys: Vec<String> = pubkeys.iter().map(|key| (*key).to_owned()).collect();
            let result = verify(file.path(), &pubkeys, &printed);
            (result.is_ok(), printed.0.into_inner().unwrap().join("|"))
        };
        let good = signed(artifact.hash());
        assert_eq!(of(&good, &[&public]), (true, format!("{}: valid|{}: valid, over the hash of the document", artifact.hash(), good.id)));
        let unchecked = format!("{}: valid|{}: valid, over the hash of the document, signer not checked", artifact.hash(), good.id);
        assert_eq!(of(&good, &[]), (true, unchecked));
        let forged = Receipt { body: Body { seq: 9, ..good.body.clone() }, ..good.clone() };
        let other = "0".repeat(PUBKEY_DIGITS);
        for (receipt, pubkeys, fault) in [
            (&good, vec![other.as_str()], "key: "),
            (&signed("sha256:00"), vec![public.as_str()], "outputs: "),
            (&forged, vec![], "hash: "),
        ] {
            let (is_valid, printed) = of(receipt, &pubkeys);
            assert!(!is_valid && printed.contains(&format!("NOT VALID: {fault}")), "{printed}");
        }
    }

    /// Proves that what is no public key is refused before a file is read, with the name of the argument, and that a key may have capital letters.
    #[test]
    fn wrong_keys_are_refused() {
        let missing = Path::new("no-such-file.json");
        let right = "aB".repeat(32);
        for wrong in ["", "abc", &"0".repeat(63), &"g".repeat(64), &"\u{fc}".repeat(32), "\u{1b}[2J"] {
            let keys = [right.clone(), wrong.to_owned()];
            let refusals =
                [verify(missing, &keys, &Printed::default()), verify_checkpoints(missing, missing, None, &keys, &[], &Printed::default())];
            for refusal in refusals {
                let reason = refusal.unwrap_err().to_string();
                assert!(reason.starts_with("--pubkey: ") && !reason.chars().any(char::is_control), "{reason:?}");
            }
        }
        let reason = verify(missing, &[right], &Printed::default()).unwrap_err().to_string();
        assert!(reason.contains("cannot be read"), "{reason}");
    }

    /// Verifies a file with a document, and returns why that failed.
    fn reason_of(document: &Value) -> String {
        let file = tempfile::NamedTempFile::new().unwrap();
        std::fs::write(file.path(), document.to_string()).unwrap();
        verify(file.path(), &[], &Printed::default()).map_err(|error| error.to_string()).err().unwrap_or_default()
    }

    /// Proves that the number of failed checks is one of all that were made: of receipts, their chain, their place in a tree, and documents. An empty list
    /// has none.
    #[test]
    fn all_checks_are_counted() {
        let receipt = |seq: i64| json!({ "id": "x", "body": { "seq": seq, "agent_id": "a" }, "contentHash": "x" });
        let artifact = evidence::Artifact::new(&json!({ "signal": "NO_SIGNAL" })).unwrap();
        let mut document = artifact.document("/x");
        document["receipt"] = receipt(1);
        assert_eq!(reason_of(&document), "1 of 2 checks failed");
        document["signal"] = json!("EXCLUDED");
        assert_eq!(reason_of(&document), "2 of 2 checks failed");
        document["receipt"] = Value::Null;
        assert_eq!(reason_of(&document), "1 of 1 checks failed");
        assert_eq!(reason_of(&receipt(1)), "1 of 1 checks failed");
        assert_eq!(reason_of(&json!({ "receipt": receipt(1), "inclusion": { "checkpoint": "x" } })), "2 of 2 checks failed");
        assert_eq!(reason_of(&json!({ "receipts": [receipt(5), receipt(3), receipt(1)] })), "5 of 5 checks failed");
        assert!(reason_of(&json!({ "receipts": [] })).ends_with("the list `receipts` is empty"));
    }

    /// Proves that what a hostile file says of itself does not control a terminal, valid or not.
    #[test]
    fn hostile_texts() {
        let receipt = |id: &str, seq: i64| json!({ "id": id, "body": { "seq": seq, "agent_id": "a", "issuedTo": id }, "contentHash": id });
        let hostile = "\u{1b}[2J\u{7}\r: valid";
        let list = json!({ "receipts": [receipt(hostile, 5), receipt(hostile, 3), receipt("x", 3)] });
        for document in [receipt(hostile, 1), list, json!({ "receipt": receipt(hostile, 1), "inclusion": { "checkpoint": hostile } })] {
            let file = tempfile::NamedTempFile::new().unwrap();
            std::fs::write(file.path(), document.to_string()).unwrap();
            let printed = Printed::default();
            assert!(verify(file.path(), &[], &printed).is_err());
            let printed = printed.0.into_inner().unwrap().join("|");
            assert!(printed.contains("NOT VALID") && !printed.chars().any(char::is_control), "{printed:?}");
        }
    }

    /// Proves that texts are read in the encodings in which programs save them, and that any other one is none.
    #[test]
    fn encodings() {
        let text = "{\"a\": \"\u{fc}\u{1f600}\"}\r\n";
        let wide = |unit: fn(u16) -> [u8; 2]| format!("\u{feff}{text}").encode_utf16().flat_map(unit).collect::<Vec<u8>>();
        for bytes in [text.as_bytes().to_vec(), format!("\u{feff}{text}").into_bytes(), wide(u16::to_le_bytes), wide(u16::to_be_bytes)] {
            assert_eq!(decoded(bytes.clone()).as_deref(), Some(text), "{bytes:?}");
        }
        let unmarked = wide(u16::to_le_bytes)[2..].to_vec();
        assert!(decoded(unmarked).is_none_or(|read| read != text));
        for bytes in [
            vec![0xff, 0xfe, 0x41],
            vec![0xff, 0xfe, 0x00, 0xd8],
            vec![0xfe, 0xff, 0xdc, 0x00],
            vec![0xff, 0x41],
            vec![0xef, 0xbb, 0xbf, 0xff],
        ] {
            assert_eq!(decoded(bytes.clone()), None, "{bytes:?}");
        }
        assert_eq!(decoded(Vec::new()).as_deref(), Some(""));
    }

    /// A tree with some leaves; the leaves from `forked` on differ from those of other trees.
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

    /// Proves that a checkpoint is verified with its own proof only, and that a fork, a smaller tree, another tree, and a proof that is missing, damaged
    /// or of other sizes are each reported.
    #[test]
    fn a_checkpoint_continues_an_older_one() {
        let (tree, fork) = (grown(20, 99), grown(20, 5));
        let fault = |old: &Checkpoint, new: &Checkpoint, proof: Option<&Value>| fault_between(old, new, proof).unwrap_or_default();
        for (old, new) in [(1, 20), (7, 8), (8, 20), (19, 20)] {
            assert_eq!(fault(&at(&tree, old), &at(&tree, new), Some(&proof(&tree, old, new))), "");
        }
        let (old, new) = (at(&tree, 7), at(&tree, 20));
        assert_eq!(fault(&old, &old, None), "", "the same one");
        assert!(fault(&old, &new, None).contains("a proof is needed"));
        assert!(fault(&old, &new, Some(&proof(&tree, 8, 20))).contains("not from 7 to 20"));
        assert!(fault(&new, &old, None).contains("removed"));
        assert!(fault(&old, &at(&fork, 7), None).contains("two histories"));
        assert!(fault(&old, &at(&fork, 20), Some(&proof(&fork, 7, 20))).contains("does not lead"));
        let mut damaged = proof(&tree, 7, 20);
        damaged["proof"][0] = json!("zz");
        assert!(fault(&old, &new, Some(&damaged)).contains("does not lead"));
        let other = Checkpoint { origin: "y.example/receipts".to_owned(), ..new };
        assert!(fault(&old, &other, None).contains("different trees"));
    }
}
