//! Signatures of Standard Webhooks, version `v1`: HMAC-SHA-256 over `id.timestamp.body`, in base64.

use std::fmt;

use base64::Engine;
use base64::engine::general_purpose::STANDARD;
use hmac::{Hmac, KeyInit, Mac};
use sha2::Sha256;

/// What a secret begins with.
const PREFIX: &str = "whsec_";
/// Bytes of a secret, at least and at most.
const BYTES: std::ops::RangeInclusive<usize> = 24..=64;

/// What a target's messages are signed with. Not printable.
#[derive(Clone, PartialEq, Eq)]
pub struct SigningSecret(Vec<u8>);

impl fmt::Debug for SigningSecret {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("SigningSecret(…)")
    }
}

impl SigningSecret {
    /// A new one.
    #[must_use]
    pub fn random() -> Self {
        Self::of(rand::random())
    }

    /// One of these bytes.
    #[must_use]
    pub fn of(bytes: [u8; 32]) -> Self {
        Self(bytes.to_vec())
    }

    /// Reads one that a caller brings.
    ///
    /// # Errors
    /// Words for the caller, which repeat nothing of it.
    pub fn parse(text: &str) -> Result<Self, &'static str> {
        let bytes = text.strip_prefix(PREFIX).ok_or("does not begin with whsec_")?;
        let bytes = STANDARD.decode(bytes).map_err(|_| "is no base64 after whsec_")?;
        if bytes.len() < *BYTES.start() {
            return Err("is too short: 24 to 64 bytes are wanted");
        }
        if bytes.len() > *BYTES.end() {
            return Err("is too long: 24 to 64 bytes are wanted");
        }
        Ok(Self(bytes))
    }

    /// Its text, for the caller who made the target, once.
    #[must_use]
    pub fn reveal(&self) -> String {
        format!("{PREFIX}{}", STANDARD.encode(&self.0))
    }

    /// The signature of a message at a time (seconds since 1970), `v1,…`.
    #[must_use]
    pub fn sign(&self, id: &str, at_s: i64, body: &[u8]) -> String {
        // Keys of any length are taken.
        let Ok(mut mac) = Hmac::<Sha256>::new_from_slice(&self.0) else { return String::new() };
        mac.update(format!("{id}.{at_s}.").as_bytes());
        mac.update(body);
        format!("v1,{}", STANDARD.encode(mac.finalize().into_bytes()))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Proves the signature of the example that the standard's own libraries test, and which secrets are taken.
    #[test]
    fn signatures_and_secrets() {
        let secret = SigningSecret::parse("whsec_MfKQ9r8GKYqrTwjUPD8ILPZIo2LaLaSw").unwrap();
        let signature = secret.sign("msg_p5jXN8AQM9LWM0D4loKWxJek", 1_614_265_330, br#"{"test": 2432232314}"#);
        assert_eq!(signature, "v1,g0hM9SsE+OTPJTGt/tmIKtSyZlE3uFJELVlNIOLJ1OE=");
        let random = SigningSecret::random();
        assert_eq!(SigningSecret::parse(&random.reveal()), Ok(random.clone()));
        assert_eq!(format!("{random:?}"), "SigningSecret(…)");
        let of = |bytes: usize| format!("{PREFIX}{}", STANDARD.encode(vec![7; bytes]));
        for (text, words) in [("secret", "begin"), ("whsec_%", "base64"), (of(23).as_str(), "short"), (of(65).as_str(), "long")] {
            assert!(SigningSecret::parse(text).unwrap_err().contains(words), "{text}");
        }
        assert!(SigningSecret::parse(&of(24)).is_ok() && SigningSecret::parse(&of(64)).is_ok());
    }
}
