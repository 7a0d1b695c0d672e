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
use serde_json::{Map, Value};
use transparency::note::{KeyType, Signed, SignedNote, VerifierKey};

use crate::output::Output;

/// The largest file that is read, in bytes.
const BYTES_MAX: u64 = 64 << 20;
/// How many hex digits a public key has.
const PUBKEY_DIGITS: usize = 64;

/// Verifies a receipt, all receipts of a list and their chain, or documents that state their hash (an artifact of `exclusions`, a record of `catalysts`, or
/// an answer with a record or a list of records). Prints one line for each.
///
/// # Errors
/// A given key is no public key, the file cannot be read, it holds nothing that can be verified, or what it holds is not valid.
pub(crate) fn verify(file: &Path, pubkeys: &[String], output: &dyn Output) -> Result<(), Box<dyn StdError>> {
    check_pubkeys(pubkeys)?;
    let document = read(file)?;
    if evidence::verify(&document).is_some() {
        return verify_documents(&[&document], pubkeys, output);
    }
    let shown = file.display();
    let receipt = document.get("receipt").filter(|receipt| receipt.is_object());
    let receipts: Vec<&Value> = match (document.get("receipts").and_then(Value::as_array), receipt) {
        (Some(listed), _) if listed.is_empty() => return Err(format!("{shown}: the list `receipts` is empty").into()),
        (Some(listed), _) => listed.iter().collect(),
        (None, Some(receipt)) => vec![receipt],
        (None, None) => {
            let documents = documents_in(&document);
            if !documents.is_empty() {
                return verify_documents(&documents, pubkeys, output);
            }
            let receipt = record_of(&document);
            if !is_receipt(receipt) {
                return Err(
                    format!("{shown} holds no receipt, no artifact and no record that states its hash: nothing was verified").into()
                );
            }
            vec![receipt]
        }
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

/// The documents that state their hash in an answer: its `record`, or the items of its lists. Items without a hash next to others with one are among them,
/// so that they are not taken for verified. Empty if there is no hash.
fn documents_in(answer: &Value) -> Vec<&Value> {
    let record = record_of(answer);
    if evidence::verify(record).is_some() {
        return vec![record];
    }
    let fields = answer.as_object().into_iter().flat_map(Map::values);
    let lists = fields.chain([answer]).filter_map(Value::as_array).map(|list| list.iter().map(record_of).collect::<Vec<&Value>>());
    lists.filter(|list| list.iter().any(|document| evidence::verify(document).is_some())).flatten().collect()
}

/// The record in an answer, a version or a change; the value itself if it has none.
fn record_of(value: &Value) -> &Value {
    value.get("record").filter(|record| record.is_object()).unwrap_or(value)
}

/// Whether a value has the form of a receipt, valid or not.
fn is_receipt(value: &Value) -> bool {
    value.get("body").is_some() && (value.get("contentHash").is_some() || value.get("signature").is_some())
}

/// Verifies documents that state their hash. Prints one line for each check.
///
/// # Errors
/// Keys are given for a document that nobody signed, or a check fails.
fn verify_documents(documents: &[&Value], pubkeys: &[String], output: &dyn Output) -> Result<(), Box<dyn StdError>> {
    let (mut tally, mut has_valid) = (Tally::default(), false);
    for document in documents {
        if let Some(found) = evidence::verify(document) {
            has_valid |= found.is_valid;
            verify_document(document, &found, pubkeys, &mut tally, output)?;
        } else {
            tally.add(false);
            let id = document.get("id").and_then(Value::as_str).unwrap_or("a record without id").escape_debug();
            output.line(format!("{id}: NOT VALID: it states no hash").as_bytes());
        }
    }
    if has_valid {
        output.note("the hash shows that nothing was changed since it was made, not by whom: compare it with the permalink or the source");
    }
    tally.result()
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
    match SignedNote::parse(note).map_or(Signed::Absent, |note| note.signed_by(witness)) {
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
mod tests;
