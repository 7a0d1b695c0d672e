//! Signed notes (C2SP signed-note), the verifier keys of their signers, and the cosignatures of witnesses (C2SP tlog-cosignature).
//!
//! A note is a text, an empty line, and one line for each signature. A checkpoint is a note whose text is an origin, a size and a root hash.

use std::fmt;

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use ed25519_dalek::{Signature, Signer as _, SigningKey, VerifyingKey};
use sha2::{Digest, Sha256};

use proofs::hash::Hash32;
use proofs::tree::Checkpoint;

/// The most signature lines that a note may have.
pub const SIGNATURES_MAX: usize = 100;
/// The start of each signature line: an em dash and a space.
const LINE_START: &str = "\u{2014} ";
/// The length of the key id that precedes a signature, in bytes.
const ID_BYTES: usize = 4;
/// The length of the time in a cosignature, in bytes.
const TIME_BYTES: usize = 8;

/// The kind of text that a key signs.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum KeyType {
    /// The text of a note (type 0x01).
    Ed25519,
    /// The text of a checkpoint together with the time, as witnesses sign it (type 0x04, `cosignature/v1`).
    Cosignature,
}

impl KeyType {
    /// Returns the byte that encodes the type in keys and key ids.
    #[must_use]
    pub fn byte(self) -> u8 {
        match self {
            Self::Ed25519 => 0x01,
            Self::Cosignature => 0x04,
        }
    }
}

/// Why a text is not a valid verifier key.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub enum KeyError {
    /// The text does not have the form NAME+ID+KEY.
    #[error("it is not NAME+ID+KEY, a name without spaces, 8 lower-case hex digits and base64")]
    Form,
    /// The type of the key is not the expected one.
    #[error("its type is {found:#04x}, not {wanted:#04x}")]
    Type {
        /// The type in the key.
        found: u8,
        /// The expected type.
        wanted: u8,
    },
    /// The key is not a valid Ed25519 public key.
    #[error("it holds no public key of Ed25519")]
    Key,
    /// The id does not match the name and the key.
    #[error("its id is not that of its name and key: a part of it was changed")]
    Id,
}

/// A public key with the name of its signer: a `vkey`, `NAME+ID+KEY`.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct VerifierKey {
    name: String,
    id: [u8; ID_BYTES],
    key_type: KeyType,
    key: VerifyingKey,
}

impl VerifierKey {
    /// Parses a key of the expected type.
    ///
    /// # Errors
    /// Why the text is not a valid key of this type.
    pub fn parse(text: &str, wanted: KeyType) -> Result<Self, KeyError> {
        let mut parts = text.splitn(3, '+');
        let (Some(name), Some(id), Some(key)) = (parts.next(), parts.next(), parts.next()) else { return Err(KeyError::Form) };
        let bytes = STANDARD.decode(key).map_err(|_| KeyError::Form)?;
        let (found, key) = bytes.split_first().ok_or(KeyError::Form)?;
        if *found != wanted.byte() {
            return Err(KeyError::Type { found: *found, wanted: wanted.byte() });
        }
        let this = Self::new(name, wanted, key.try_into().map_err(|_| KeyError::Key)?)?;
        if proofs::hash::hex(&this.id) == id { Ok(this) } else { Err(KeyError::Id) }
    }

    /// Creates a verifier key from a name, a type and a public key.
    ///
    /// # Errors
    /// If the name is not allowed in a signature line, or the bytes are not a valid key.
    pub fn new(name: &str, key_type: KeyType, key: &[u8; 32]) -> Result<Self, KeyError> {
        if !is_key_name(name) {
            return Err(KeyError::Form);
        }
        let verifying = VerifyingKey::from_bytes(key).map_err(|_| KeyError::Key)?;
        Ok(Self { name: name.to_owned(), id: key_id(name, key_type, key), key_type, key: verifying })
    }

    /// Returns the name of the signer.
    #[must_use]
    pub fn name(&self) -> &str {
        &self.name
    }

    /// Verifies a signature over a text and returns its time in seconds since 1970, 0 for a signature without a time; `None` if it does not
    /// verify.
    fn verify(&self, text: &str, signature: &[u8]) -> Option<u64> {
        let (time_s, message, signature) = match self.key_type {
            KeyType::Ed25519 => (0, text.to_owned(), signature),
            KeyType::Cosignature => {
                let (time, signature) = signature.split_first_chunk::<TIME_BYTES>()?;
                let time_s = u64::from_be_bytes(*time);
                (time_s, cosigned_message(text, time_s), signature)
            }
        };
        // The time of a cosignature is a POSIX time, below 2^63 and never zero.
        let has_time = self.key_type == KeyType::Ed25519 || (1..=i64::MAX.unsigned_abs()).contains(&time_s);
        let signature = Signature::from_slice(signature).ok().filter(|_| has_time)?;
        self.key.verify_strict(message.as_bytes(), &signature).is_ok().then_some(time_s)
    }
}

impl fmt::Display for VerifierKey {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let key = [[self.key_type.byte()].as_slice(), self.key.as_bytes()].concat();
        write!(f, "{}+{}+{}", self.name, proofs::hash::hex(&self.id), STANDARD.encode(key))
    }
}

/// Whether a text is allowed as the name of a key.
fn is_key_name(name: &str) -> bool {
    !name.is_empty() && !name.chars().any(|char| char.is_whitespace() || char.is_control() || char == '+')
}

/// Computes the id of a key.
fn key_id(name: &str, key_type: KeyType, key: &[u8; 32]) -> [u8; ID_BYTES] {
    let mut hasher = Sha256::new();
    for part in [name.as_bytes(), b"\n", &[key_type.byte()], key] {
        hasher.update(part);
    }
    let hash: [u8; 32] = hasher.finalize().into();
    [hash[0], hash[1], hash[2], hash[3]]
}

/// Returns the message that a witness signs.
fn cosigned_message(text: &str, time_s: u64) -> String {
    format!("cosignature/v1\ntime {time_s}\n{text}")
}

/// A signature line.
#[derive(Clone, Debug, PartialEq, Eq)]
struct SignatureLine<'a> {
    /// The line as received, without its newline.
    line: &'a str,
    name: &'a str,
    id: [u8; ID_BYTES],
    signature: Vec<u8>,
}

impl<'a> SignatureLine<'a> {
    fn parse(line: &'a str) -> Option<Self> {
        let (name, signature) = line.strip_prefix(LINE_START)?.split_once(' ')?;
        let bytes = STANDARD.decode(signature).ok()?;
        let (id, signature) = bytes.split_first_chunk::<ID_BYTES>()?;
        (is_key_name(name) && !signature.is_empty()).then(|| Self { line, name, id: *id, signature: signature.to_vec() })
    }
}

/// The signature of one key on a note.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Signed<'a> {
    /// The note has no signature of the key.
    Absent,
    /// The note has a signature with this name and key id that does not verify.
    Invalid,
    /// The note has a valid signature of the key.
    Valid {
        /// The line, without its newline.
        line: &'a str,
        /// The time of a cosignature, seconds since 1970; 0 for other signatures.
        time_s: u64,
    },
}

/// A signed note, parsed and not yet verified.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct SignedNote<'a> {
    text: &'a str,
    signatures: Vec<SignatureLine<'a>>,
}

impl<'a> SignedNote<'a> {
    /// Parses a note; `None` if the text does not have the form of a note.
    #[must_use]
    pub fn parse(note: &'a str) -> Option<Self> {
        let is_plain = !note.chars().any(|char| char < ' ' && char != '\n');
        let at = note.rfind("\n\n").filter(|_| is_plain)?;
        let (text, signatures) = (note.get(..=at)?, note.get(at + 2..)?);
        Self::of_lines(text, signatures).filter(|read| !read.signatures.is_empty())
    }

    /// Combines a text with separately received signature lines; `None` if the lines cannot be parsed.
    #[must_use]
    pub fn of_lines(text: &'a str, lines: &'a str) -> Option<Self> {
        if !lines.is_empty() && !lines.ends_with('\n') || lines.split_terminator('\n').nth(SIGNATURES_MAX).is_some() {
            return None;
        }
        let signatures = lines.split_terminator('\n').map(SignatureLine::parse).collect::<Option<_>>()?;
        Some(Self { text, signatures })
    }

    /// Returns the signed text, with its last newline.
    #[must_use]
    pub fn text(&self) -> &'a str {
        self.text
    }

    /// Returns the signature of a key. Only the first signature of the key is verified, so that a note costs one verification for each key.
    #[must_use]
    pub fn signed_by(&self, key: &VerifierKey) -> Signed<'a> {
        let own = self.signatures.iter().find(|signature| signature.name == key.name && signature.id == key.id);
        match own.map(|own| (own.line, key.verify(self.text, &own.signature))) {
            None => Signed::Absent,
            Some((_, None)) => Signed::Invalid,
            Some((line, Some(time_s))) => Signed::Valid { line, time_s },
        }
    }

    /// Parses the text as a checkpoint; `None` if it is not one. Extension lines are dropped.
    #[must_use]
    pub fn checkpoint(&self) -> Option<Checkpoint> {
        let mut lines = self.text.strip_suffix('\n')?.split('\n');
        let (origin, size, root) = (lines.next()?, lines.next()?, lines.next()?);
        let root: [u8; 32] = STANDARD.decode(root).ok()?.try_into().ok()?;
        let is_whole = !origin.is_empty() && lines.all(|line| !line.is_empty());
        is_whole.then_some(Checkpoint { origin: origin.to_owned(), size: decimal(size)?, root: Hash32(root) })
    }
}

/// Parses a number in the format of notes: decimal, without leading zeros or a sign, below 2^63.
#[must_use]
pub fn decimal(text: &str) -> Option<u64> {
    text.parse::<u64>().ok().filter(|number| *number <= i64::MAX.unsigned_abs() && number.to_string() == text)
}

/// The secret key of a witness, which signs checkpoints together with the time.
pub struct Cosigner {
    key: SigningKey,
    verifier: VerifierKey,
}

impl Cosigner {
    /// Creates a cosigner from its name and secret seed.
    ///
    /// # Errors
    /// If the name is not allowed in a signature line.
    pub fn new(name: &str, seed: &[u8; 32]) -> Result<Self, KeyError> {
        let key = SigningKey::from_bytes(seed);
        let verifier = VerifierKey::new(name, KeyType::Cosignature, key.verifying_key().as_bytes())?;
        Ok(Self { key, verifier })
    }

    /// Returns the public key.
    #[must_use]
    pub fn verifier(&self) -> &VerifierKey {
        &self.verifier
    }

    /// Signs the text of a checkpoint at a time (seconds since 1970) and returns the signature line without a newline.
    #[must_use]
    pub fn cosign(&self, text: &str, time_s: u64) -> String {
        let signature = self.key.sign(cosigned_message(text, time_s).as_bytes()).to_bytes();
        let bytes = [self.verifier.id.as_slice(), &time_s.to_be_bytes(), &signature].concat();
        format!("{LINE_START}{} {}", self.verifier.name, STANDARD.encode(bytes))
    }
}

impl fmt::Debug for Cosigner {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_tuple("Cosigner").field(&self.verifier.to_string()).finish()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Keys, a checkpoint with an extension line and its signatures, computed with Python's `cryptography`.
    const LOG: &str = "log.example/recalls+db223629+AYqI4910CfGV/VLbLTy6XXLKZwm/HZQSG/N0iAG0D29c";
    const WITNESS: &str = "witness.example/w1+df1c0a35+BIE5dw6ofRdfVqNUZsNMfszLjYqRtO43ol32D1uPybOU";
    const TEXT: &str = "log.example/recalls\n1\nDSfif3gnzNdFGZ6Os6avNo4QZK9Crp+DdA6YEh4rwCU=\nan extension\n";
    const LOG_LINE: &str =
        "\u{2014} log.example/recalls 2yI2KTsVIDsfNSFeek4xFDc4uM4H4CsFHu/oEKdcEtWFIX+eN9RhMDTW1bQdCb7Ufi1m6OhfbVXNPTNlSOU6SOhGEQQ=";
    const WITNESS_LINE: &str = "\u{2014} witness.example/w1 \
        3xwKNQAAAABkGFDLe4XV/USmPipOLDWXJVMj2o/hPeKcwEpx7A3geBL9swUHhL7ORkFiWgZIXUkwbYAf6TU0CTePS1AFYFlwPg1PDQ==";
    const TIME_S: u64 = 1_679_315_147;

    fn log() -> VerifierKey {
        VerifierKey::parse(LOG, KeyType::Ed25519).unwrap()
    }

    fn witness() -> VerifierKey {
        VerifierKey::parse(WITNESS, KeyType::Cosignature).unwrap()
    }

    /// Proves that keys, signatures and cosignatures of another implementation are parsed and verified, and that this one creates the same bytes.
    #[test]
    fn vectors_of_other_implementations_verify() {
        assert_eq!((log().to_string(), witness().to_string()), (LOG.to_owned(), WITNESS.to_owned()));
        let cosigner = Cosigner::new("witness.example/w1", &[2; 32]).unwrap();
        assert_eq!(*cosigner.verifier(), witness());
        assert_eq!(cosigner.cosign(TEXT, TIME_S), WITNESS_LINE);
        let note = format!("{TEXT}\n{LOG_LINE}\n{WITNESS_LINE}\n");
        let note = SignedNote::parse(&note).unwrap();
        assert_eq!(note.text(), TEXT);
        assert_eq!(note.signed_by(&log()), Signed::Valid { line: LOG_LINE, time_s: 0 });
        assert_eq!(note.signed_by(&witness()), Signed::Valid { line: WITNESS_LINE, time_s: TIME_S });
        let checkpoint = note.checkpoint().unwrap();
        assert_eq!((checkpoint.origin.as_str(), checkpoint.size), ("log.example/recalls", 1));
    }

    /// Proves that a signature is valid only for its own name, key, type and text, that a cosignature without a time or over another time does not
    /// verify, and that of two signatures of one key the first is used.
    #[test]
    fn other_signatures_do_not_count() {
        let other = Cosigner::new("witness.example/w2", &[2; 32]).unwrap();
        let signed = |text: &str, lines: &[&str], key: &VerifierKey| {
            let lines: String = lines.iter().map(|line| format!("{line}\n")).collect();
            match SignedNote::of_lines(text, &lines).unwrap().signed_by(key) {
                Signed::Absent => "absent",
                Signed::Invalid => "invalid",
                Signed::Valid { .. } => "valid",
            }
        };
        assert_eq!(signed(TEXT, &[WITNESS_LINE], &witness()), "valid");
        assert_eq!(signed(TEXT, &[WITNESS_LINE], other.verifier()), "absent");
        assert_eq!(signed(TEXT, &[LOG_LINE], &witness()), "absent");
        assert_eq!(signed(&TEXT.replace("\n1\n", "\n2\n"), &[WITNESS_LINE], &witness()), "invalid");
        // Without a time, at another time, and truncated.
        let own = Cosigner::new("witness.example/w1", &[2; 32]).unwrap();
        assert_eq!(signed(TEXT, &[&own.cosign(TEXT, 0)], &witness()), "invalid");
        assert_eq!(signed(TEXT, &[&own.cosign(TEXT, u64::MAX)], &witness()), "invalid");
        let (head, bytes) = WITNESS_LINE.rsplit_once(' ').unwrap();
        let mut bytes = STANDARD.decode(bytes).unwrap();
        bytes[11] ^= 1;
        let later = format!("{head} {}", STANDARD.encode(&bytes));
        assert_eq!(signed(TEXT, &[&later], &witness()), "invalid");
        assert_eq!(signed(TEXT, &[&format!("{head} {}", STANDARD.encode(&bytes[..8]))], &witness()), "invalid");
        assert_eq!(signed(TEXT, &[&later, WITNESS_LINE], &witness()), "invalid");
        assert_eq!(signed(TEXT, &[WITNESS_LINE, &later], &witness()), "valid");
    }

    /// Proves that a key of another type, a key with a changed part, and a text that is not a key are refused with the reason.
    #[test]
    fn malformed_keys_are_refused() {
        let refused = |text: &str| VerifierKey::parse(text, KeyType::Cosignature).unwrap_err();
        assert_eq!(refused(LOG), KeyError::Type { found: 1, wanted: 4 });
        assert_eq!(refused(&WITNESS.replace("w1", "w2")), KeyError::Id);
        assert_eq!(refused(&WITNESS.replace("df1c", "DF1C")), KeyError::Id);
        assert_eq!(refused("w+00000000+BA=="), KeyError::Key);
        for text in ["", "w", "w+1", "w+00000000+%", "w+00000000+", &format!(" {WITNESS}"), &WITNESS.replace("/w1", "")[15..]] {
            assert_eq!(refused(text), KeyError::Form, "{text:?}");
        }
        for name in ["", "a b", "a+b", "a\u{a0}b", "a\nb"] {
            assert_eq!(Cosigner::new(name, &[2; 32]).unwrap_err(), KeyError::Form, "{name:?}");
        }
        assert!(!format!("{:?}", Cosigner::new("w", &[2; 32]).unwrap()).contains(&proofs::hash::hex(&[2; 32])));
    }

    /// Proves that a text without the form of a note, or of a checkpoint, is not parsed.
    #[test]
    fn malformed_notes_are_refused() {
        let note = format!("{TEXT}\n{LOG_LINE}\n");
        assert!(SignedNote::parse(&note).is_some());
        let many = |lines: usize| format!("{TEXT}\n{}", format!("{LOG_LINE}\n").repeat(lines));
        assert!(SignedNote::parse(&many(SIGNATURES_MAX)).is_some());
        for bad in [
            String::new(),
            TEXT.to_owned(),
            format!("{TEXT}\n"),
            note.trim_end().to_owned(),
            note.replace('\u{2014}', "-"),
            note.replace("log.example/recalls 2", "2"),
            note.replace("EQQ=", "EQQ"),
            note.replace("an ext", "an\text"),
            note.replace("\n1\n", "\r\n1\n"),
            many(SIGNATURES_MAX + 1),
        ] {
            assert_eq!(SignedNote::parse(&bad), None, "{bad:?}");
        }
        let checkpoint = |text: &str| SignedNote::of_lines(text, "").unwrap().checkpoint();
        assert!(checkpoint(TEXT).is_some());
        for (from, to) in [
            ("\n1\n", "\n01\n"),
            ("\n1\n", "\n+1\n"),
            ("\n1\n", "\n9223372036854775808\n"),
            ("\n1\n", "\n\n"),
            ("log.example/recalls", ""),
            ("DSfi", ""),
            ("an extension\n", "an extension"),
            ("an extension\n", "\n"),
            ("CU=\n", "CV=\n"),
        ] {
            assert_eq!(checkpoint(&TEXT.replacen(from, to, 1)), None, "{from:?} to {to:?}");
        }
    }
}
