//! Signatures of Standard Webhooks, version `v1`: HMAC-SHA-256 over `id.timestamp.body`, in base64.

use std::fmt;

use base64::Engine;
use base64::engine::general_purpose::STANDARD;
use hmac::{Hmac, KeyInit, Mac};
use sha2::Sha256;

/// The prefix of a secret.
const PREFIX: &str = "whsec_";
/// The fewest and the most bytes of a secret.
const BYTES: std::ops::RangeInclusive<usize> = 24..=64;

/// A secret that signs the messages to a webhook. Hidden in `Debug` output.
#[derive(Clone, PartialEq, Eq)]
pub struct SigningSecret(Vec<u8>);

impl fmt::Debug for SigningSecret {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("SigningSecret(…)")
    }
}

impl SigningSecret {
    /// Creates a random secret.
    #[must_use]
    pub fn random() -> Self {
        Self::of(rand::random())
    }

    /// Creates a secret from bytes.
    #[must_use]
    pub fn of(bytes: [u8; 32]) -> Self {
        Self(bytes.to_vec())
    }

    /// Parses a secret from a request.
    ///
    /// # Errors
    /// The reason, for the caller. It quotes nothing of the secret.
    pub fn parse(text: &str) -> Result<Self, &'static str> {
        let bytes = text.strip_prefix(PREFIX).ok_or("does not begin with whsec_")?;
        let bytes = STANDARD.decode(bytes).map_err(|_| "is not base64 after whsec_")?;
        if bytes.len() < *BYTES.start() {
            return Err("is too short: it must have 24 to 64 bytes");
        }
        if bytes.len() > *BYTES.end() {
            return Err("is too long: it must have 24 to 64 bytes");
        }
        Ok(Self(bytes))
    }

    /// The text of the secret, to be shown once to the caller who created the webhook.
    #[must_use]
    pub fn reveal(&self) -> String {
        format!("{PREFIX}{}", STANDARD.encode(&self.0))
    }

    /// Signs a message at a time (seconds since 1970): `v1,…`.
    #[must_use]
    pub fn sign(&self, id: &str, at_s: i64, body: &[u8]) -> String {
        // HMAC accepts keys of any length.
        let Ok(mut mac) = Hmac::<Sha256>::new_from_slice(&self.0) else { return String::new() };
        mac.update(format!("{id}.{at_s}.").as_bytes());
        mac.update(body);
        format!("v1,{}", STANDARD.encode(mac.finalize().into_bytes()))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Proves the signature of the example in the standard's own libraries, and which secrets are accepted.
    #[test]
    fn signatures_and_secrets() {
        let secret = SigningSecret::parse("whsec_MfKQ9r8GKYqrTwjUPD8ILPZIo2LaLaSw").unwrap();
        let signature = secret.sign("msg_p5jXN8AQM9LWM0D4loKWxJek", 1_614_265_330, br#"{"test": 2432232314}"#);
        assert_eq!(signature, "v1,g0hM9SsE+OTPJTGt/tmIKtSyZlE3uFJELVlNIOLJ1OE=");
        let random = SigningSecret::random();
        assert_eq!(SigningSecret::parse(&random.reveal()), Ok(random.clone()));
        assert_eq!(format!("{random:?}"), "SigningSecret(…)");
        let secret_of = |bytes: usize| format!("{PREFIX}{}", STANDARD.encode(vec![7; bytes]));
        for (text, words) in
            [("secret", "begin"), ("whsec_%", "base64"), (secret_of(23).as_str(), "short"), (secret_of(65).as_str(), "long")]
        {
            assert!(SigningSecret::parse(text).unwrap_err().contains(words), "{text}");
        }
        assert!(SigningSecret::parse(&secret_of(24)).is_ok() && SigningSecret::parse(&secret_of(64)).is_ok());
    }
}
