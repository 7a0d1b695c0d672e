//! Which files are verified, what is printed of them, and what is refused.

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
    let printed_by = |document: &Value, pubkeys: &[String]| {
        let (printed, mut tally) = (Printed::default(), Tally::default());
        let result = verify_hash(&evidence::verify(document).unwrap(), pubkeys, &mut tally, &printed).and_then(|()| tally.result());
        (result.map_err(|error| error.to_string()), printed.0.into_inner().unwrap().join("|"))
    };
    let document = evidence::Artifact::new(&json!({ "signal": "NO_SIGNAL", "entity": { "name": "ACME" } })).unwrap().document("/x");
    let hash = document["artifactHash"].as_str().unwrap().to_owned();
    assert_eq!(printed_by(&document, &[]), (Ok(()), format!("{hash}: valid")));
    let mut changed = document.clone();
    changed["entity"]["name"] = json!("ACNE");
    let (result, printed) = printed_by(&changed, &[]);
    assert!(result.is_err() && printed.contains("NOT VALID"), "{printed}");
    assert!(printed_by(&document, &["00".to_owned()]).0.unwrap_err().starts_with("--pubkey"));
    changed["artifactHash"] = json!("\u{1b}[2J");
    assert!(!printed_by(&changed, &[]).1.contains('\u{1b}'));
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
    let checked = |receipt: &Receipt, pubkeys: &[&str]| {
        let mut document = artifact.document("/x");
        document["receipt"] = json!(receipt);
        let (file, printed) = (tempfile::NamedTempFile::new().unwrap(), Printed::default());
        std::fs::write(file.path(), document.to_string()).unwrap();
        let pubkeys: Vec<String> = pubkeys.iter().map(|key| (*key).to_owned()).collect();
        let result = verify(file.path(), &pubkeys, &printed);
        (result.is_ok(), printed.0.into_inner().unwrap().join("|"))
    };
    let good = signed(artifact.hash());
    assert_eq!(checked(&good, &[&public]), (true, format!("{}: valid|{}: valid, over the hash of the document", artifact.hash(), good.id)));
    let unchecked = format!("{}: valid|{}: valid, over the hash of the document, signer not checked", artifact.hash(), good.id);
    assert_eq!(checked(&good, &[]), (true, unchecked));
    let forged = Receipt { body: Body { seq: 9, ..good.body.clone() }, ..good.clone() };
    let other = "0".repeat(PUBKEY_DIGITS);
    for (receipt, pubkeys, fault) in
        [(&good, vec![other.as_str()], "key: "), (&signed("sha256:00"), vec![public.as_str()], "outputs: "), (&forged, vec![], "hash: ")]
    {
        let (is_valid, printed) = checked(receipt, &pubkeys);
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

/// Proves that the records in an answer are verified, by id or in a list, that a record without a hash in a list is a failed check, and that of a file
/// with nothing to verify nothing is said to be invalid.
#[test]
fn records_in_answers() {
    let printed_for = |document: &Value| {
        let (file, printed) = (tempfile::NamedTempFile::new().unwrap(), Printed::default());
        std::fs::write(file.path(), document.to_string()).unwrap();
        let reason = verify(file.path(), &[], &printed).err().map(|error| error.to_string()).unwrap_or_default();
        (reason, printed.0.into_inner().unwrap().join("|"))
    };
    let record = |text: &str| {
        let body = json!({ "text": text });
        json!({ "id": text, "verifyHash": evidence::hash(&body).unwrap(), "verifyBody": body })
    };
    let (one, two) = (record("one"), record("two"));
    let line = |record: &Value| format!("{}: valid", record["verifyHash"].as_str().unwrap());
    let both = format!("{}|{}", line(&one), line(&two));
    assert_eq!(printed_for(&json!({ "id": "one", "record": one, "seq": 3 })), (String::new(), line(&one)));
    for list in [
        json!({ "catalysts": [one, two], "notes": ["x"], "count": 2 }),
        json!({ "versions": [{ "seq": 1, "record": one }, { "seq": 2, "record": two }] }),
        json!([one, two]),
    ] {
        assert_eq!(printed_for(&list), (String::new(), both.clone()), "{list}");
    }
    let mut changed = two.clone();
    changed["verifyBody"]["text"] = json!("three");
    let (reason, printed) = printed_for(&json!({ "catalysts": [one, changed, { "id": "bare" }] }));
    assert!(reason == "2 of 3 checks failed" && printed.ends_with("|bare: NOT VALID: it states no hash"), "{reason}: {printed}");
    let proof = json!({ "from": 1, "to": 2, "proof": ["00"] });
    for nothing in [json!({}), json!([]), proof, json!({ "catalysts": [] }), json!({ "body": {} }), json!({ "receipt": null })] {
        let (reason, printed) = printed_for(&nothing);
        assert!(reason.contains("holds no receipt") && printed.is_empty(), "{nothing}: {reason} {printed}");
    }
}

/// Proves that what a hostile file says of itself does not control a terminal, valid or not, in a line or in the reason why it cannot be read.
#[test]
fn hostile_texts() {
    let hostile = "\u{1b}[2J\u{7}\u{9b}31m\u{202e}\r: valid";
    let printed_for = |text: &str| {
        let (file, printed) = (tempfile::NamedTempFile::new().unwrap(), Printed::default());
        std::fs::write(file.path(), text).unwrap();
        let reason = verify(file.path(), &[], &printed).err().map(|error| error.to_string()).unwrap_or_default();
        let printed = printed.0.into_inner().unwrap().join("|");
        let is_unsafe = |c: char| c.is_control() || c == '\u{202e}';
        assert!(!printed.contains(is_unsafe) && !reason.contains(is_unsafe), "{printed:?} {reason:?}");
        (printed, reason)
    };
    let keys = SigningKeys::default();
    let public = keys.add(&[7; 32]);
    let body = Body { agent_id: hostile.into(), action: hostile.into(), issued_to: Some(hostile.into()), ..Body::default() };
    let signed = keys.sign(&public, body).unwrap().receipt;
    let (printed, reason) = printed_for(&json!(signed).to_string());
    assert!(
        printed.contains(": valid, issued to ") && printed.ends_with(", signer not checked") && reason.is_empty(),
        "{printed}: {reason}"
    );

    let receipt = |id: &str, seq: i64| json!({ "id": id, "body": { "seq": seq, "agent_id": id, "issuedTo": id }, "contentHash": id });
    let mut artifact = evidence::Artifact::new(&json!({ "signal": "NO_SIGNAL" })).unwrap().document("/x");
    artifact["receipt"] = receipt(hostile, 1);
    let record = json!({ "verifyHash": evidence::hash(&json!({ "text": "a" })).unwrap(), "verifyBody": { "text": "a" } });
    for document in [
        receipt(hostile, 1),
        json!({ "receipts": [receipt(hostile, 5), receipt(hostile, 3), receipt("x", 3)] }),
        json!({ "receipt": receipt(hostile, 1), "inclusion": { "checkpoint": hostile, "publicKeyHex": hostile } }),
        json!({ "verifyHash": hostile, "verifyBody": { "text": hostile } }),
        json!([record, { "id": hostile }]),
        artifact,
    ] {
        let (printed, reason) = printed_for(&document.to_string());
        assert!(printed.contains("NOT VALID") && reason.contains("failed"), "{printed}: {reason}");
    }
    let twice = format!("{{{0}: 1, {0}: 2}}", json!(hostile));
    for text in [twice.as_str(), hostile, "{\u{1b}", &json!({ hostile: 1 }).to_string()] {
        let (printed, reason) = printed_for(text);
        assert!(printed.is_empty() && !reason.is_empty(), "{printed}");
    }
    let tree = |origin: &str| Checkpoint { origin: origin.to_owned(), ..at(&grown(1, 9), 1) };
    let fault = fault_between(&tree(hostile), &tree("x.example/receipts"), None).unwrap();
    assert!(fault.contains("different trees") && !fault.chars().any(char::is_control), "{fault:?}");
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
    for bytes in
        [vec![0xff, 0xfe, 0x41], vec![0xff, 0xfe, 0x00, 0xd8], vec![0xfe, 0xff, 0xdc, 0x00], vec![0xff, 0x41], vec![0xef, 0xbb, 0xbf, 0xff]]
    {
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
