//! Receipts: how they are hashed, signed and checked. Their stored rows are in `schemas::views::receipts`.
//!
//! Anyone who has a receipt can check it with SHA-256, Ed25519 and RFC 8785 alone: `contentHash` is the SHA-256 of the canonical body, `id`
//! contains its first 16 bytes, and the signature covers its 32 bytes.

use std::collections::HashMap;
use std::fmt;
use std::sync::{PoisonError, RwLock};

use ed25519_dalek::{Signature as Ed25519Signature, Signer as _, SigningKey, VerifyingKey};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::hash::{Hash32, hex};

/// The value of `type` in every body.
pub const TYPE: &str = "agent-action-receipt";
/// The value of `version` in new bodies.
pub const VERSION: i64 = 1;
/// The only signature algorithm.
pub const ALGORITHM: &str = "Ed25519";
const HASH_PREFIX: &str = "sha256:";
const ID_PREFIX: &str = "rcpt_";
/// The number of hex digits of the content hash in an id.
const ID_DIGITS: usize = 32;

/// What a receipt certifies. Fields are in the order of the specification; the canonical form sorts them by name.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(default)]
pub struct Body {
    /// `agent-action-receipt`.
    #[serde(rename = "type")]
    pub kind: String,
    /// 1.
    pub version: i64,
    /// Name of the action, as the caller gave it.
    pub action: String,
    /// The agent to whose chain the receipt belongs.
    pub agent_id: String,
    /// Commitment to the inputs: `sha256:` and the hash of their canonical form.
    pub inputs_hash: String,
    /// Commitment to the outputs: `sha256:` and the hash of their canonical form.
    pub outputs_hash: String,
    /// When the receipt was requested, RFC 3339 in UTC.
    #[serde(rename = "issuedAt")]
    #[schemars(with = "crate::json_type::Time")]
    pub issued_at: String,
    /// Position in the agent's chain: 1, 2, 3 …
    pub seq: i64,
    /// `contentHash` of the agent's previous receipt; zeros for the first.
    #[serde(rename = "prevHash")]
    pub prev_hash: String,
    /// Base address of the service that issued the receipt.
    pub issuer: String,
    /// The caller to whom the receipt was issued: the id of an account (`acct_…`), or the address of a payer (`0x…`, lower case). Absent in
    /// receipts that are older than this field.
    #[serde(rename = "issuedTo", skip_serializing_if = "Option::is_none")]
    #[schemars(with = "String")]
    pub issued_to: Option<String>,
    /// Commitment to the metadata: `sha256:` and the hash of its canonical form. Absent if the request had no metadata, and in receipts that are
    /// older than this field: their `inputs_hash` covers `{"inputs": …, "metadata": …}`.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schemars(with = "String")]
    pub metadata_hash: Option<String>,
}

/// The signature of a receipt, and the key that verifies it.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase", default)]
pub struct Signature {
    /// `Ed25519`.
    pub algorithm: String,
    /// The signature over the 32 bytes of the content hash: 128 hex digits.
    pub value: String,
    /// The key that verifies it: 64 hex digits.
    pub public_key_hex: String,
}

/// A receipt.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase", default)]
#[schemars(rename = "RecordedReceipt")]
pub struct Receipt {
    /// `rcpt_` and the first 32 hex digits of the content hash.
    pub id: String,
    /// What the receipt certifies.
    pub body: Body,
    /// `sha256:` and the hash of the canonical body.
    pub content_hash: String,
    /// The signature over the content hash.
    pub signature: Signature,
}

/// A signed receipt with its canonical form (RFC 8785).
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct SignedReceipt {
    /// The receipt.
    pub receipt: Receipt,
    /// The canonical form: the bytes of the receipt's leaf in the tree.
    pub canonical: Vec<u8>,
}

/// Formats a hash as receipts contain it: `sha256:` and 64 hex digits.
#[must_use]
pub fn hash_text(hash: &Hash32) -> String {
    format!("{HASH_PREFIX}{hash}")
}

/// Returns the commitment to a JSON value: the hash of its canonical form (RFC 8785).
///
/// # Errors
/// When the value has no canonical form: it contains a number that is not finite.
pub fn commitment<T: Serialize>(value: &T) -> Result<String, serde_json::Error> {
    serde_json_canonicalizer::to_vec(value).map(|bytes| hash_text(&Hash32::of(&bytes)))
}

/// Returns the id of the receipt with a content hash.
#[must_use]
pub fn id_of(hash: &Hash32) -> String {
    let mut id = format!("{ID_PREFIX}{hash}");
    id.truncate(ID_PREFIX.len() + ID_DIGITS);
    id
}

/// Whether a text has the form of a receipt id.
#[must_use]
pub fn is_id(text: &str) -> bool {
    let digits = text.strip_prefix(ID_PREFIX).unwrap_or_default();
    digits.len() == ID_DIGITS && digits.bytes().all(|byte| matches!(byte, b'0'..=b'9' | b'a'..=b'f'))
}

/// Why a process does not sign at present.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub enum Refusal {
    /// It is unknown whether the log extends what was signed. Requests wait until the reason no longer applies.
    Wait(String),
    /// The log contradicts what was signed. Requests wait, and the checkpoint of the log is not served.
    Conflict(String),
    /// A restore was declared. Requests from before the restore are parked, because the key that would sign them is retired.
    Park(String),
}

impl Refusal {
    /// Returns the reason, and what an operator can do about it.
    #[must_use]
    pub fn reason(&self) -> &str {
        match self {
            Self::Wait(reason) | Self::Conflict(reason) | Self::Park(reason) => reason,
        }
    }
}

/// The keys that a process signs with, by public key in hex. Secret keys are never shown. Keys can be added while the process runs.
#[derive(Default)]
pub struct SigningKeys {
    keys: RwLock<HashMap<String, SigningKey>>,
    /// Why signing is refused; `None` while it is allowed.
    refusal: RwLock<Option<Refusal>>,
}

impl SigningKeys {
    /// Adds a key by its secret seed and returns its public key in hex.
    pub fn add(&self, seed: &[u8; 32]) -> String {
        let key = SigningKey::from_bytes(seed);
        let public = hex(key.verifying_key().as_bytes());
        self.keys.write().unwrap_or_else(PoisonError::into_inner).insert(public.clone(), key);
        public
    }

    /// Returns the public keys of all held keys, in hex.
    #[must_use]
    pub fn public(&self) -> Vec<String> {
        self.keys.read().unwrap_or_else(PoisonError::into_inner).keys().cloned().collect()
    }

    /// Allows signing (`None`), or refuses it. Returns the previous state.
    pub fn set_refusal(&self, refusal: Option<Refusal>) -> Option<Refusal> {
        std::mem::replace(&mut *self.refusal.write().unwrap_or_else(PoisonError::into_inner), refusal)
    }

    /// Returns why signing is refused; `None` while it is allowed.
    #[must_use]
    pub fn refusal(&self) -> Option<Refusal> {
        self.refusal.read().unwrap_or_else(PoisonError::into_inner).clone()
    }

    /// Signs bytes; `None` if the key is not held, or while signing is refused.
    #[must_use]
    pub fn sign_bytes(&self, public_key_hex: &str, bytes: &[u8]) -> Option<[u8; 64]> {
        let refusal = self.refusal.read().unwrap_or_else(PoisonError::into_inner);
        if refusal.is_some() {
            return None;
        }
        let keys = self.keys.read().unwrap_or_else(PoisonError::into_inner);
        keys.get(public_key_hex).map(|key| key.sign(bytes).to_bytes())
    }

    /// Signs a body; `None` if the key is not held, while signing is refused, or if the body has no canonical form.
    #[must_use]
    pub fn sign(&self, public_key_hex: &str, body: Body) -> Option<SignedReceipt> {
        let canonical_body = serde_json_canonicalizer::to_vec(&body).ok()?;
        let hash = Hash32::of(&canonical_body);
        let signature = Signature {
            algorithm: ALGORITHM.to_owned(),
            value: hex(&self.sign_bytes(public_key_hex, &hash.0)?),
            public_key_hex: public_key_hex.to_owned(),
        };
        let receipt = Receipt { id: id_of(&hash), body, content_hash: hash_text(&hash), signature };
        let canonical = canonical_around(&canonical_body, &receipt);
        Some(SignedReceipt { receipt, canonical })
    }
}

/// Returns the canonical form of a receipt, given that of its body. The other fields are hex digits and constants, which need no escaping.
fn canonical_around(body: &[u8], receipt: &Receipt) -> Vec<u8> {
    let Receipt { id, content_hash, signature: Signature { algorithm, value, public_key_hex }, .. } = receipt;
    let behind = format!(
        r#","contentHash":"{content_hash}","id":"{id}","signature":{{"algorithm":"{algorithm}","publicKeyHex":"{public_key_hex}","value":"{value}"}}}}"#
    );
    [br#"{"body":"#.as_slice(), body, behind.as_bytes()].concat()
}

impl fmt::Debug for SigningKeys {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_set().entries(self.public()).finish()
    }
}

/// The results of checking a receipt.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Checks {
    /// Whether `contentHash` is the hash of the canonical body.
    pub hash: bool,
    /// Whether `id` matches the content hash.
    pub id: bool,
    /// Whether the signature over the content hash verifies with the key in the receipt.
    pub signature: bool,
}

impl Checks {
    /// Whether all checks passed.
    #[must_use]
    pub fn all(self) -> bool {
        self.hash && self.id && self.signature
    }
}

/// Checks a receipt, given as JSON. The body is hashed as given, with all its fields. Malformed parts fail their check; nothing panics.
#[must_use]
pub fn check(receipt: &serde_json::Value) -> Checks {
    let text = |pointer: &str| receipt.pointer(pointer).and_then(serde_json::Value::as_str).unwrap_or_default();
    let body = receipt.get("body").filter(|body| body.is_object());
    let hash = body.and_then(|body| serde_json_canonicalizer::to_vec(body).ok()).map(|bytes| Hash32::of(&bytes));
    let Some(hash) = hash else { return Checks { hash: false, id: false, signature: false } };
    let key = bytes_of::<32>(text("/signature/publicKeyHex")).and_then(|key| VerifyingKey::from_bytes(&key).ok());
    let signature = bytes_of::<64>(text("/signature/value")).map(|value| Ed25519Signature::from_bytes(&value));
    let is_signed = text("/signature/algorithm") == ALGORITHM
        && key.zip(signature).is_some_and(|(key, signature)| key.verify_strict(&hash.0, &signature).is_ok());
    Checks { hash: text("/contentHash") == hash_text(&hash), id: text("/id") == id_of(&hash), signature: is_signed }
}

/// Reads lower-case hex digits; `None` for anything else.
pub(crate) fn bytes_of<const N: usize>(text: &str) -> Option<[u8; N]> {
    if text.len() != 2 * N {
        return None;
    }
    let digit = |byte: u8| match byte {
        b'0'..=b'9' => Some(byte - b'0'),
        b'a'..=b'f' => Some(byte - b'a' + 10),
        _ => None,
    };
    let mut out = [0; N];
    for (byte, pair) in out.iter_mut().zip(text.as_bytes().chunks_exact(2)) {
        *byte = digit(*pair.first()?)? << 4 | digit(*pair.last()?)?;
    }
    Some(out)
}

#[cfg(test)]
mod tests {
    use serde_json::{Value, json};

    use super::*;

    fn body(seq: i64) -> Body {
        Body {
            kind: TYPE.to_owned(),
            version: VERSION,
            action: "send \"mail\"\n".to_owned(),
            agent_id: "agent-ü".to_owned(),
            inputs_hash: commitment(&json!({"b": 1, "a": [1.5, null]})).unwrap(),
            outputs_hash: commitment(&json!({})).unwrap(),
            issued_at: "2026-11-22T00:00:00.000Z".to_owned(),
            seq,
            prev_hash: hash_text(&Hash32::ZERO),
            issuer: "https://receipts.example".to_owned(),
            issued_to: Some("acct_0123456789abcdef01234567".to_owned()),
            metadata_hash: None,
        }
    }

    /// Proves that a signed receipt passes all checks, that the same body and key give the same bytes, that the canonical form equals the
    /// library's, and that each modified part fails its own check.
    #[test]
    fn each_check_detects_its_modification() {
        let keys = SigningKeys::default();
        let public = keys.add(&[7; 32]);
        let SignedReceipt { receipt, canonical } = keys.sign(&public, body(1)).unwrap();
        assert_eq!(keys.sign(&public, body(1)).unwrap(), SignedReceipt { receipt: receipt.clone(), canonical: canonical.clone() });
        assert_eq!(crate::tree::entry(&receipt), Some(canonical));
        assert!(is_id(&receipt.id) && !is_id("rcpt_xyz") && keys.sign("00", body(1)).is_none());
        let good = serde_json::to_value(&receipt).unwrap();
        let checked = |pointer: &str, value: Value| {
            let mut bad = good.clone();
            *bad.pointer_mut(pointer).unwrap() = value;
            let Checks { hash, id, signature } = check(&bad);
            (hash, id, signature)
        };
        assert!(check(&good).all());
        assert_eq!(checked("/body/seq", json!(2)), (false, false, false));
        assert_eq!(checked("/id", json!("rcpt_")), (true, false, true));
        assert_eq!(checked("/contentHash", json!(hash_text(&Hash32::ZERO))), (false, true, true));
        assert_eq!(checked("/signature/value", json!("00")), (true, true, false));
        let other = keys.add(&[8; 32]);
        assert_eq!(checked("/signature/publicKeyHex", json!(other)), (true, true, false));
        assert_eq!(check(&json!([])), Checks { hash: false, id: false, signature: false });
        assert!(!format!("{keys:?}").contains(&hex(&[7; 32])));
    }

    /// Proves that every byte of a receipt's text matters: after a change of any one byte the receipt fails a check, is no longer JSON, or
    /// means the same.
    #[test]
    fn every_byte_of_a_receipt_matters() {
        let keys = SigningKeys::default();
        let public = keys.add(&[9; 32]);
        let text = serde_json::to_string(&keys.sign(&public, body(3)).unwrap().receipt).unwrap();
        let good: Value = serde_json::from_str(&text).unwrap();
        for at in 0..text.len() {
            let mut bytes = text.clone().into_bytes();
            bytes[at] ^= 1;
            let Ok(changed) = serde_json::from_slice::<Value>(&bytes) else { continue };
            assert!(changed == good || !check(&changed).all(), "byte {at}");
        }
    }

    /// Proves that a change of any byte of a receipt's body fails the check of the hash. `FLIPPED_RECEIPTS=1000` repeats it for more
    /// receipts.
    #[test]
    fn every_byte_of_a_body_is_hashed() {
        let receipts: i64 = std::env::var("FLIPPED_RECEIPTS").map_or(3, |text| text.parse().unwrap());
        let keys = SigningKeys::default();
        let public = keys.add(&[9; 32]);
        for seq in 1..=receipts {
            let receipt = keys.sign(&public, body(seq)).unwrap().receipt;
            let (text, mut value) = (serde_json::to_string(&receipt.body).unwrap(), serde_json::to_value(&receipt).unwrap());
            for at in 0..text.len() {
                let mut bytes = text.clone().into_bytes();
                bytes[at] ^= 1;
                let Ok(changed) = serde_json::from_slice::<Value>(&bytes) else { continue };
                value["body"] = changed;
                assert!(!check(&value).hash, "receipt {seq}, byte {at}");
            }
        }
    }

    /// Proves that the canonical form is that of RFC 8785 (values from its examples): names sorted by UTF-16, numbers formatted as in
    /// ECMAScript.
    #[test]
    fn canonical_form_is_that_of_rfc_8785() {
        let canonical = |text: &str| {
            let value: Value = serde_json::from_str(text).unwrap();
            String::from_utf8(serde_json_canonicalizer::to_vec(&value).unwrap()).unwrap()
        };
        let numbers = "{\"numbers\": [333333333.33333329, 1E30, 4.50, 2e-3, 0.000000000000000000000000001]}";
        assert_eq!(canonical(numbers), "{\"numbers\":[333333333.3333333,1e+30,4.5,0.002,1e-27]}");
        assert_eq!(
            canonical("{\"\u{20ac}\": 1, \"\\r\": 2, \"\u{1f600}\": 3, \"\u{fb33}\": 4}"),
            "{\"\\r\":2,\"\u{20ac}\":1,\"\u{1f600}\":3,\"\u{fb33}\":4}"
        );
    }

    /// Proves that a receipt from before `issuedTo` existed reads, verifies and serializes to the same bytes, also as a leaf of the tree;
    /// and that `issuedTo` is covered by the signature where present.
    #[test]
    fn receipts_without_issued_to_are_unchanged() {
        let old: Value = serde_json::from_str(include_str!("../tests/fixtures/receipt_without_issued_to.json")).unwrap();
        assert!(check(&old).all());
        let read: Receipt = serde_json::from_value(old.clone()).unwrap();
        assert_eq!((&read.body.issued_to, serde_json::to_value(&read).unwrap()), (&None, old.clone()));
        assert_eq!(crate::tree::entry(&read), serde_json_canonicalizer::to_vec(&old).ok());
        let mut claimed = old;
        claimed["body"]["issuedTo"] = json!("acct_0123456789abcdef01234567");
        assert!(!check(&claimed).all(), "issuedTo cannot be added later");
        let keys = SigningKeys::default();
        let public = keys.add(&[7; 32]);
        let mut new = serde_json::to_value(keys.sign(&public, body(1)).unwrap().receipt).unwrap();
        assert_eq!(new["body"]["issuedTo"], "acct_0123456789abcdef01234567");
        new["body"].as_object_mut().unwrap().remove("issuedTo");
        assert!(!check(&new).all());
    }
}
