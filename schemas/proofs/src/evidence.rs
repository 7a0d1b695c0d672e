//! Evidence documents: objects that anyone can verify without contacting the server, by the hash of their canonical form (RFC 8785).
//!
//! A document is not stored. Its permalink names its key, the time of the answer and the beginning of its hash; the server builds it again from the
//! history of its records and compares the hash. Two forms are known: an **artifact**, an object with its own hash, and a **source**, an object
//! (`verifyBody`) with the texts of a public source next to its hash.

use std::fmt::Write;

use serde::Serialize;
use serde::ser::Error as _;
use serde_json::{Map, Value};

use crate::receipt::commitment;

/// The field with the hash of an artifact.
pub const ARTIFACT_HASH: &str = "artifactHash";
/// The field with the permalink of an artifact.
pub const PERMALINK: &str = "permalink";
/// The field with the receipt for an artifact.
pub const RECEIPT: &str = "receipt";
/// The fields of an artifact that are not hashed: they depend on its hash. An answer with an artifact has no further field of its own, so its note is next to
/// it and not in it.
pub const NOT_HASHED: [&str; 3] = [ARTIFACT_HASH, PERMALINK, RECEIPT];
/// The field with the hash of a source.
pub const SOURCE_HASH: &str = "verifyHash";
/// The field with the hashed object of a source.
pub const SOURCE_BODY: &str = "verifyBody";
/// How many hex digits of the hash a permalink has.
pub const PREFIX_DIGITS: usize = 16;

/// Returns the hash of a value: `sha256:` and the SHA-256 of its canonical form (RFC 8785), as hex digits.
///
/// # Errors
/// When the value has no canonical form: it contains a number that is not finite.
pub fn hash<T: Serialize>(value: &T) -> serde_json::Result<String> {
    commitment(value)
}

/// An artifact with its hash.
#[derive(Clone, Debug, PartialEq)]
pub struct Artifact {
    body: Map<String, Value>,
    hash: String,
}

impl Artifact {
    /// Makes an artifact of an object. Fields that are not hashed are left out.
    ///
    /// # Errors
    /// When the value is no object, or has no canonical form.
    pub fn new<T: Serialize>(body: &T) -> serde_json::Result<Self> {
        let Value::Object(mut body) = serde_json::to_value(body)? else {
            return Err(serde_json::Error::custom("an artifact is an object"));
        };
        body.retain(|name, _| !NOT_HASHED.contains(&name.as_str()));
        let hash = hash(&body)?;
        Ok(Self { body, hash })
    }

    /// The hash: `sha256:` and 64 hex digits.
    #[must_use]
    pub fn hash(&self) -> &str {
        &self.hash
    }

    /// The beginning of the hash, as permalinks have it.
    #[must_use]
    pub fn prefix(&self) -> HashPrefix {
        HashPrefix(prefix_of(&self.hash).to_owned())
    }

    /// The permalink: the route (`/v1/artifact`), the key in it, the time of the answer (RFC 3339) and the beginning of the hash.
    #[must_use]
    pub fn permalink(&self, route: &str, key: &str, as_of: &str) -> String {
        format!("{route}/{}?asOf={}&hash={}", encoded(key), encoded(as_of), prefix_of(&self.hash))
    }

    /// The document as answers have it: the object with its hash and permalink.
    #[must_use]
    pub fn document(&self, permalink: &str) -> Value {
        let mut document = self.body.clone();
        document.insert(ARTIFACT_HASH.to_owned(), self.hash.clone().into());
        document.insert(PERMALINK.to_owned(), permalink.into());
        Value::Object(document)
    }
}

/// The beginning of a hash in a permalink: 16 hex digits in lower case.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct HashPrefix(String);

impl HashPrefix {
    /// Reads the beginning of a hash. `None` if it is anything but 16 hex digits in lower case.
    #[must_use]
    pub fn read(text: &str) -> Option<Self> {
        let is_hex = |byte| matches!(byte, b'0'..=b'9' | b'a'..=b'f');
        (text.len() == PREFIX_DIGITS && text.bytes().all(is_hex)).then(|| Self(text.to_owned()))
    }
}

fn prefix_of(hash: &str) -> &str {
    hash.strip_prefix("sha256:").and_then(|digits| digits.get(..PREFIX_DIGITS)).unwrap_or_default()
}

/// Percent-encodes all but unreserved characters and the colon, which is allowed in paths and queries.
fn encoded(text: &str) -> String {
    let mut out = String::with_capacity(text.len());
    for byte in text.bytes() {
        if byte.is_ascii_alphanumeric() || b"-._~:".contains(&byte) {
            out.push(char::from(byte));
        } else {
            // Writing to a string does not fail.
            let _ = write!(out, "%{byte:02X}");
        }
    }
    out
}

/// The outputs to which the receipt for a document commits: its hash. Receipts are public and show only the commitment, so that a receipt does not give
/// away the permalink.
#[must_use]
pub fn receipt_outputs(hash: &str) -> Value {
    let mut outputs = Map::new();
    outputs.insert(ARTIFACT_HASH.to_owned(), hash.into());
    Value::Object(outputs)
}

/// Whether a receipt commits to the hash of a document.
#[must_use]
pub fn receipt_commits_to(receipt: &Value, hash: &str) -> bool {
    let committed = receipt.pointer("/body/outputs_hash").and_then(Value::as_str);
    committed.is_some() && commitment(&receipt_outputs(hash)).ok().as_deref() == committed
}

/// The result of verifying a document.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Verified {
    /// The hash that the document states.
    pub stated: String,
    /// Whether it is the hash of what the document contains.
    pub is_valid: bool,
}

/// Verifies a document of either form. `None` if it states no hash.
#[must_use]
pub fn verify(document: &Value) -> Option<Verified> {
    let fields = document.as_object()?;
    if let Some(stated) = fields.get(ARTIFACT_HASH).and_then(Value::as_str) {
        let is_valid = Artifact::new(fields).is_ok_and(|artifact| artifact.hash == stated);
        return Some(Verified { stated: stated.to_owned(), is_valid });
    }
    let stated = fields.get(SOURCE_HASH)?.as_str()?;
    let is_valid = fields.get(SOURCE_BODY).is_some_and(|body| body.is_object() && hash(body).is_ok_and(|hash| hash == stated));
    Some(Verified { stated: stated.to_owned(), is_valid })
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    /// The artifact of which the contract of the exclusions service states the hash.
    fn example() -> Value {
        json!({
            "asOf": "2026-11-20T00:00:00Z",
            "disclaimer": "D",
            "entity": {"cage": "", "name": "ACME LLC", "uei": "ABCDEF123456"},
            "exclusion": {
                "activeDate": "2026-10-01",
                "excludingAgency": "EPA",
                "exclusionType": "Ineligible (Proceedings Completed)",
                "sourceUrl": "https://sam.gov/search/?index=ex&q=ABCDEF123456",
            },
            "federalAwards": [],
            "signal": "EXCLUDED_WHILE_ACTIVE",
            "statement": "S",
            "summary": {"activeAwardsNow": 0, "totalActiveDollarsAtRisk": 0},
        })
    }
    const HASH: &str = "sha256:0d7121ce17bf7bfe674dd9bece80e0c7a53b864a9bc87f771d13cd7b55b3b18d";

    /// Proves the hash that the contract states, and that it does not depend on the order of fields or on fields that are not hashed.
    #[test]
    fn the_hash_of_the_contract() {
        let artifact = Artifact::new(&example()).unwrap();
        assert_eq!(artifact.hash(), HASH);
        let mut backwards = Map::new();
        backwards.extend(example().as_object().unwrap().iter().rev().map(|(name, value)| (name.clone(), value.clone())));
        backwards.insert(RECEIPT.to_owned(), json!({"id": "x"}));
        backwards.insert(ARTIFACT_HASH.to_owned(), json!("another"));
        assert_eq!(Artifact::new(&backwards).unwrap(), artifact);
        backwards.insert("note".to_owned(), json!("about the answer"));
        assert_ne!(Artifact::new(&backwards).unwrap(), artifact, "only three fields are not hashed");
        assert!(Artifact::new(&json!([1])).is_err() && Artifact::new(&json!("text")).is_err());
    }

    /// Proves that a document verifies as it was given, and not if any value in it differs.
    #[test]
    fn documents_verify() {
        let artifact = Artifact::new(&example()).unwrap();
        let link = artifact.permalink("/v1/artifact", "ABCDEF123456", "2026-11-20T00:00:00Z");
        assert_eq!(link, "/v1/artifact/ABCDEF123456?asOf=2026-11-20T00:00:00Z&hash=0d7121ce17bf7bfe");
        let document = artifact.document(&link);
        assert_eq!(document[PERMALINK], json!(link));
        assert_eq!(verify(&document), Some(Verified { stated: HASH.to_owned(), is_valid: true }));
        for (pointer, value) in [("/signal", json!("X")), ("/summary/activeAwardsNow", json!(1)), ("/artifactHash", json!("sha256:00"))] {
            let mut changed = document.clone();
            *changed.pointer_mut(pointer).unwrap() = value;
            assert!(!verify(&changed).unwrap().is_valid, "{pointer}");
        }
        let mut added = document;
        added["more"] = json!(true);
        assert!(!verify(&added).unwrap().is_valid);
    }

    /// Proves that a source verifies by the hash of its object, and that other values state no hash.
    #[test]
    fn sources_verify() {
        let body = json!({"source": "sec.gov", "text": "ß"});
        let is_valid =
            |hash: &str, body: &Value| verify(&json!({"id": "x", SOURCE_HASH: hash, SOURCE_BODY: body})).map(|found| found.is_valid);
        let right = hash(&body).unwrap();
        assert_eq!(is_valid(&right, &body), Some(true));
        assert_eq!(is_valid(&right, &json!({"source": "sec.gov", "text": "ss"})), Some(false));
        assert_eq!(is_valid(&hash(&json!("text")).unwrap(), &json!("text")), Some(false), "the body is an object");
        assert_eq!(verify(&json!({SOURCE_HASH: right})).map(|found| found.is_valid), Some(false));
        for none in [json!({}), json!([]), json!({SOURCE_HASH: 1}), json!(null)] {
            assert_eq!(verify(&none), None, "{none}");
        }
    }

    /// Proves that only the beginning of a hash is read from a permalink, and that keys are encoded.
    #[test]
    fn permalinks() {
        let artifact = Artifact::new(&example()).unwrap();
        assert_eq!(HashPrefix::read("0d7121ce17bf7bfe"), Some(artifact.prefix()));
        assert_ne!(HashPrefix::read("0d7121ce17bf7bff"), Some(artifact.prefix()));
        for text in ["", "0d7121ce17bf7bf", "0d7121ce17bf7bfe0", "0D7121CE17BF7BFE", "0d7121ce17bf7bfg", "éééééééé", HASH] {
            assert_eq!(HashPrefix::read(text), None, "{text}");
        }
        assert!(artifact.permalink("/v1/artifact", "a/b?c=é", "x y").starts_with("/v1/artifact/a%2Fb%3Fc%3D%C3%A9?asOf=x%20y&hash="));
    }
}
