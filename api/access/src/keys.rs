//! API keys: their format, hashes and ids.
//!
//! A key is `hw_live_`, 30 random base62 characters, and 6 characters of checksum (CRC-32 of the 30). The checksum detects typing errors and other
//! strings before anything is looked up. Keys are never stored.

use operation::redaction::PREFIX;
use operation::secrets::Secrets;
use proofs::hash::{Hash32, hex};

const BODY_LEN: usize = 30;
const CHECK_LEN: usize = 6;
/// How many characters of a key are shown in lists of keys.
const END_LEN: usize = 4;
const ALPHABET: &[u8; 62] = b"0123456789ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz";

/// A well-formed key. Hidden in `Debug` output.
#[derive(Clone, PartialEq, Eq)]
pub struct Key(String);

impl std::fmt::Debug for Key {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str("Key(…)")
    }
}

impl Key {
    /// Creates a random key.
    #[must_use]
    pub fn random() -> Self {
        Self::from_bytes(rand::random::<[u8; 64]>)
    }

    fn from_bytes(mut more: impl FnMut() -> [u8; 64]) -> Self {
        let mut body = String::with_capacity(BODY_LEN);
        while body.len() < BODY_LEN {
            // Bytes from 248 on would make the first letters of the alphabet more frequent.
            let letters = more().into_iter().filter(|byte| *byte < 248).map(|byte| char::from(ALPHABET[usize::from(byte % 62)]));
            body.extend(letters.take(BODY_LEN - body.len()));
        }
        let check = checksum(&body);
        Self(format!("{PREFIX}{body}{check}"))
    }

    /// Parses a key; `None` if its format or its checksum is wrong.
    #[must_use]
    pub fn parse(text: &str) -> Option<Self> {
        let rest = text.strip_prefix(PREFIX)?;
        if rest.len() != BODY_LEN + CHECK_LEN || !rest.bytes().all(|byte| byte.is_ascii_alphanumeric()) {
            return None;
        }
        let (body, check) = rest.split_at(BODY_LEN);
        (checksum(body) == check).then(|| Self(text.to_owned()))
    }

    /// The text of the key, to be shown once.
    #[must_use]
    pub fn reveal(&self) -> &str {
        &self.0
    }

    /// The last characters of the key, by which its owner recognizes it. They are of the checksum, so they tell less of the key than their length.
    #[must_use]
    pub fn end(&self) -> &str {
        &self.0[self.0.len() - END_LEN..]
    }

    /// The keyed hash that the key is stored under.
    #[must_use]
    pub fn hash(&self, secrets: &Secrets) -> Hash32 {
        Hash32(secrets.lookup(&self.0))
    }
}

/// The id of a key: `key_` and 24 hex digits of its hash, or of the hash of an idempotent request to mint it.
#[must_use]
pub fn key_id(hash: &Hash32) -> String {
    format!("key_{}", hex(&hash.0[..12]))
}

/// The id of a new account: `acct_` and 24 random hex digits.
#[must_use]
pub fn account_id() -> String {
    format!("acct_{}", hex(&rand::random::<[u8; 12]>()))
}

fn checksum(body: &str) -> String {
    let mut rest = crc32fast::hash(body.as_bytes()) as usize;
    let mut out = [b'0'; CHECK_LEN];
    for digit in out.iter_mut().rev() {
        *digit = ALPHABET[rest % 62];
        rest /= 62;
    }
    out.into_iter().map(char::from).collect()
}

/// Normalizes an e-mail address to lower case. Only the hash of the address is stored.
///
/// # Errors
/// The reason why it is invalid, for the caller.
pub fn checked_email(text: &str) -> Result<String, &'static str> {
    let email = text.trim();
    if email.is_empty() {
        return Err("an e-mail address is required");
    }
    if email.len() > 254 {
        return Err("the address is longer than 254 bytes");
    }
    if email.chars().any(|c| c.is_control() || c.is_whitespace()) {
        return Err("the address contains white space or control characters");
    }
    match email.split_once('@') {
        Some((local, domain)) if !local.is_empty() && !domain.is_empty() && !domain.contains('@') => Ok(email.to_lowercase()),
        _ => Err("the address must have one @ with text on both sides"),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Proves the format of keys, and that any single changed, missing or added character is refused before a look-up.
    #[test]
    fn form_and_checksum() {
        let key = Key::random();
        let text = key.reveal();
        assert_eq!(text.len(), 44);
        assert_eq!(Key::parse(text), Some(key.clone()));
        for at in 0..text.len() {
            let mut bytes = text.as_bytes().to_vec();
            bytes[at] = if bytes[at] == b'x' { b'y' } else { b'x' };
            assert_eq!(Key::parse(std::str::from_utf8(&bytes).unwrap()), None, "{at}");
        }
        for wrong in ["", "hw_live_", &text[..43], &format!("{text}0"), &text.replace("live", "test"), &"é".repeat(22)] {
            assert_eq!(Key::parse(wrong), None, "{wrong}");
        }
        assert!(!format!("{key:?}").contains(&text[8..20]));
    }

    /// Proves that checksums are base62 of CRC-32, zero-padded (the CRC-32 of "123456789" is published as cbf43926, of nothing it is 0).
    #[test]
    fn checksum_is_crc32_in_base62() {
        let mut value = 0_u64;
        for digit in checksum("123456789").bytes() {
            value = value * 62 + ALPHABET.iter().position(|letter| *letter == digit).unwrap() as u64;
        }
        assert_eq!(value, 0xcbf4_3926);
        assert_eq!(checksum("").as_str(), "000000");
    }

    /// Proves which e-mail addresses are accepted.
    #[test]
    fn addresses() {
        assert_eq!(checked_email(" Ann@Example.org "), Ok("ann@example.org".to_owned()));
        for wrong in ["", "ann", "@", "a@", "@b", "a@b@c", "a b@c", "a@b\u{7}", &format!("{}@b", "a".repeat(253))] {
            assert!(checked_email(wrong).is_err(), "{wrong}");
        }
    }
}
