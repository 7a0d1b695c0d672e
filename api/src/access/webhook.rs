//! The URL that an account wants something delivered to: personal, and often a secret by itself.
//!
//! Promises: it is checked for its form before anything else is done with it; it is in no log, error or `Debug` output; what is kept is
//! sealed under a key that follows from the master key and the account, bound to the one thing that it belongs to. Sealed form, in base64url
//! without padding: version u8, a nonce of 12 bytes by chance, the URL under ChaCha20-Poly1305, whose tag of 16 bytes ends it. What a name
//! stands for is not looked up here: whoever connects must look, at the time.

use std::net::{IpAddr, Ipv4Addr, Ipv6Addr};

use base64::Engine;
use base64::engine::general_purpose::URL_SAFE_NO_PAD;
use ring::aead::{Aad, CHACHA20_POLY1305, LessSafeKey, NONCE_LEN, Nonce, UnboundKey};
use schemas::error_code::ErrorCode;
use url::{Host, Url};

use super::secrets::Secrets;
use crate::problem::Problem;

/// The longest URL, in characters.
pub const URL_CHARS_MAX: usize = 2_000;
/// How it is sealed today.
const VERSION: u8 = 1;
/// Generation of the keys that URLs are sealed with.
const GENERATION: u32 = 1;

/// A URL that was checked.
#[derive(Clone, PartialEq, Eq)]
pub struct Webhook(Url);

impl std::fmt::Debug for Webhook {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str("Webhook(…)")
    }
}

impl Webhook {
    /// Reads a URL; `private_targets` lets plain http and this machine's own networks pass.
    ///
    /// # Errors
    /// Words for the caller, which repeat nothing of it.
    pub fn checked(text: &str, private_targets: bool) -> Result<Self, &'static str> {
        if text.chars().count() > URL_CHARS_MAX {
            return Err("is longer than 2000 characters");
        }
        // The parser would drop these where they are.
        if text.chars().any(|c| c.is_control() || c.is_whitespace()) {
            return Err("holds white space or control characters");
        }
        let url = Url::parse(text).map_err(|_| "is no URL")?;
        match url.scheme() {
            "https" => {}
            "http" if private_targets => {}
            "http" => return Err("must be https"),
            _ => return Err("is not https"),
        }
        if !url.username().is_empty() || url.password().is_some() {
            return Err("holds a user name or password: put a secret into the path or the query");
        }
        if url.fragment().is_some() {
            return Err("holds a fragment, which is never sent");
        }
        let is_public = match url.host() {
            None => return Err("names no host"),
            Some(Host::Domain(name)) => is_public_name(name),
            Some(Host::Ipv4(address)) => is_public(IpAddr::V4(address)),
            Some(Host::Ipv6(address)) => is_public(IpAddr::V6(address)),
        };
        if !is_public && !private_targets {
            return Err("names a host that is not on the public internet");
        }
        Ok(Self(url))
    }

    /// The host it names: all of it that is shown.
    #[must_use]
    pub fn host(&self) -> &str {
        self.0.host_str().unwrap_or_default()
    }

    /// The URL, for whoever delivers to it.
    #[must_use]
    pub fn reveal(&self) -> &str {
        self.0.as_str()
    }

    /// The URL sealed for one thing of an account.
    ///
    /// # Errors
    /// `internal`, which does not happen: a URL is short.
    pub(crate) fn sealed(&self, secrets: &Secrets, account: &str, id: &str) -> Result<String, Problem> {
        let nonce: [u8; NONCE_LEN] = rand::random();
        let mut text = self.0.as_str().as_bytes().to_vec();
        let key = key(secrets, account).ok_or_else(unsealable)?;
        key.seal_in_place_append_tag(Nonce::assume_unique_for_key(nonce), bound_to(account, id), &mut text).map_err(|_| unsealable())?;
        Ok(URL_SAFE_NO_PAD.encode([&[VERSION][..], &nonce, &text].concat()))
    }

    /// What was sealed for that thing of that account; `None` for anything else, or under another master key.
    pub(crate) fn open(secrets: &Secrets, account: &str, id: &str, sealed: &str) -> Option<Self> {
        let bytes = URL_SAFE_NO_PAD.decode(sealed).ok()?;
        let (version, rest) = bytes.split_first()?;
        let (nonce, text) = rest.split_first_chunk::<NONCE_LEN>()?;
        if *version != VERSION {
            return None;
        }
        let mut text = text.to_vec();
        let text = key(secrets, account)?.open_in_place(Nonce::assume_unique_for_key(*nonce), bound_to(account, id), &mut text).ok()?;
        Url::parse(std::str::from_utf8(text).ok()?).ok().map(Self)
    }
}

fn key(secrets: &Secrets, account: &str) -> Option<LessSafeKey> {
    let bytes = secrets.derive(&format!("webhook-url/{account}"), GENERATION);
    UnboundKey::new(&CHACHA20_POLY1305, &bytes).ok().map(LessSafeKey::new)
}

/// What is authenticated beside the URL: it opens nowhere else.
fn bound_to(account: &str, id: &str) -> Aad<Vec<u8>> {
    Aad::from(format!("{VERSION}/{account}/{id}").into_bytes())
}

fn unsealable() -> Problem {
    tracing::error!("a webhook's address could not be sealed");
    Problem::new(ErrorCode::Internal, "the webhook could not be kept")
}

fn is_public_name(name: &str) -> bool {
    let name = name.trim_end_matches('.');
    let last = name.rsplit('.').next().unwrap_or_default();
    name.contains('.') && !["localhost", "local", "internal", "home", "lan"].iter().any(|own| last.eq_ignore_ascii_case(own))
}

/// Whether an address is one of the public internet.
fn is_public(address: IpAddr) -> bool {
    match address {
        IpAddr::V4(address) => is_public_v4(address),
        IpAddr::V6(address) => {
            let [first, second, ..] = address.segments();
            let embedded = |at: usize| {
                let octets = address.octets();
                octets.get(at..at + 4).and_then(|four| <[u8; 4]>::try_from(four).ok()).map(Ipv4Addr::from)
            };
            match (first, second) {
                // 6to4 and NAT64 lead to an address of the old kind.
                (0x2002, _) => embedded(2).is_some_and(is_public_v4),
                (0x64, 0xff9b) => embedded(12).is_some_and(is_public_v4),
                // Documentation and Teredo.
                (0x2001, 0xdb8 | 0) => false,
                // All that is given to the public begins with 001.
                _ => first & 0xe000 == 0x2000 && address != Ipv6Addr::UNSPECIFIED,
            }
        }
    }
}

fn is_public_v4(address: Ipv4Addr) -> bool {
    let [a, b, c, _] = address.octets();
    let shared = a == 100 && (64..128).contains(&b);
    let assigned = (a, b, c) == (192, 0, 0) || (a == 198 && (b & 0xfe) == 18);
    !(a == 0
        || a >= 224
        || shared
        || assigned
        || address.is_private()
        || address.is_loopback()
        || address.is_link_local()
        || address.is_documentation())
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Proves which URLs are taken, by default and where private targets are, and that none shows itself.
    #[test]
    fn forms() {
        let long = format!("https://example.org/{}", "a".repeat(URL_CHARS_MAX));
        let public = ["https://example.org/hook?token=secret", "https://example.org:8443/", "https://8.8.8.8/x", "https://[2606:4700::1]/"];
        let private = [
            "http://example.org/secret",
            "http://127.0.0.1:9/secret",
            "https://localhost/secret",
            "https://intranet/secret",
            "https://a.internal./secret",
            "https://10.0.0.1/secret",
            "https://100.64.0.1/secret",
            "https://169.254.169.254/secret",
            "https://0x7f000001/secret",
            "https://[::1]/secret",
            "https://[::ffff:10.0.0.1]/secret",
            "https://[fd00::1]/secret",
            "https://[fe80::1]/secret",
            "https://[64:ff9b::a00:1]/secret",
        ];
        let never = [
            "",
            "secret",
            "ftp://example.org/secret",
            "https:///",
            "https://secret@example.org/",
            "https://a:secret@example.org/",
            "https://example.org/#secret",
            "https://example.org/a secret",
            " https://example.org/secret",
            "https://example.org/\tsecret",
            &long,
        ];
        for url in public {
            assert!(Webhook::checked(url, false).is_ok() && Webhook::checked(url, true).is_ok(), "{url}");
        }
        for url in private {
            assert!(Webhook::checked(url, false).is_err() && Webhook::checked(url, true).is_ok(), "{url}");
        }
        for url in never {
            for private_targets in [false, true] {
                assert!(Webhook::checked(url, private_targets).is_err(), "{url}");
            }
        }
        assert_eq!(format!("{:?}", Webhook::checked(public[0], false).unwrap()), "Webhook(…)");
    }

    /// Proves that a sealed URL opens for its account and its watch, under its master key and unchanged, and nowhere else; that two seals
    /// differ, and that the URL is in none.
    #[test]
    fn sealed() {
        let secrets = Secrets::from_master(&[7; 32]).unwrap();
        let webhook = Webhook::checked("https://example.org/hook?token=secret", false).unwrap();
        let sealed = webhook.sealed(&secrets, "a", "w").unwrap();
        assert_ne!(sealed, webhook.sealed(&secrets, "a", "w").unwrap());
        let opened = Webhook::open(&secrets, "a", "w", &sealed).unwrap();
        assert_eq!((opened.reveal(), opened.host()), (webhook.reveal(), "example.org"));
        let bytes = URL_SAFE_NO_PAD.decode(&sealed).unwrap();
        assert!(!String::from_utf8_lossy(&bytes).contains("secret") && bytes.len() > webhook.reveal().len());
        for (account, id) in [("b", "w"), ("a", "v"), ("a/w", ""), ("", "a/w")] {
            assert_eq!(Webhook::open(&secrets, account, id, &sealed), None, "{account} {id}");
        }
        assert_eq!(Webhook::open(&Secrets::from_master(&[8; 32]).unwrap(), "a", "w", &sealed), None);
        for at in 0..bytes.len() {
            let mut changed = bytes.clone();
            changed[at] ^= 1;
            assert_eq!(Webhook::open(&secrets, "a", "w", &URL_SAFE_NO_PAD.encode(&changed)), None, "byte {at}");
            assert_eq!(Webhook::open(&secrets, "a", "w", &URL_SAFE_NO_PAD.encode(&bytes[..at])), None, "{at} bytes");
        }
    }
}
