//! Parses a signed payment: an EIP-3009 authorization in an x402 payload. It is compared with our terms, and its signer is recovered here before the
//! facilitator is asked.

use k256::ecdsa::{RecoveryId, Signature, VerifyingKey};
use serde::Deserialize;
use serde_json::Value;
use sha3::{Digest, Keccak256};

use super::terms::{Offer, PaymentTerms, SCHEME, Version};

/// The largest payload, in bytes.
pub const PAYLOAD_BYTES_MAX: usize = 16 * 1024;

/// An address on the chain.
pub type Address = [u8; 20];

/// Why a payment is invalid. The text is shown to the buyer.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum InvalidPayment {
    /// The payload cannot be parsed.
    #[error("the payment cannot be parsed: {0}")]
    Unreadable(String),
    /// A field differs from the terms.
    #[error("{field} differs from the payment terms")]
    Differs {
        /// The field.
        field: &'static str,
    },
    /// The authorization is not valid yet.
    #[error("the authorization is not valid now: validAfter")]
    NotYet,
    /// The authorization is not valid any more, or for too long.
    #[error("the authorization is not valid now: validBefore, which must be later than now, by {ahead_max_s} seconds at most")]
    ValidBefore {
        /// See [`PaymentTerms::ahead_max_s`].
        ahead_max_s: u64,
    },
    /// The payment names another resource.
    #[error("resource.url differs from the payment terms, which name {wanted}")]
    OtherResource {
        /// The URL in the terms.
        wanted: String,
    },
    /// The signature has a form that is not taken.
    #[error(
        "the signature is not accepted: it must be `0x` and the 65 bytes (r, s, v) by which the payer's own key signed. Signatures of contracts (ERC-1271, ERC-6492) and those of 64 bytes are not accepted"
    )]
    SignatureForm,
    /// The signature is not that of the payer.
    #[error("the signature is not by the payer")]
    NotSigned,
}

/// A payment that matches the terms and is signed by its payer. Only the chain knows whether the payer has the money.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Signed {
    /// The x402 version of the payload.
    pub version: Version,
    /// The payer.
    pub from: Address,
    /// The nonce. The chain accepts it once per payer.
    pub nonce: [u8; 32],
    /// The expiry: seconds since 1970.
    pub valid_before: u64,
    /// The payload, forwarded unchanged.
    pub payload: Value,
}

#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
struct Payload {
    x402_version: u64,
    #[serde(default)]
    scheme: Option<String>,
    #[serde(default)]
    network: Option<String>,
    #[serde(default)]
    accepted: Option<Accepted>,
    #[serde(default)]
    resource: Option<Resource>,
    payload: Exact,
}

#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
struct Accepted {
    scheme: String,
    network: String,
    amount: String,
    asset: String,
    pay_to: String,
}

#[derive(Deserialize)]
struct Resource {
    url: String,
}

#[derive(Deserialize)]
struct Exact {
    signature: String,
    authorization: Authorization,
}

#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
struct Authorization {
    from: String,
    to: String,
    value: String,
    valid_after: String,
    valid_before: String,
    nonce: String,
}

/// The fields that are texts.
const TEXTS: [&str; 7] = [
    "/payload/signature",
    "/payload/authorization/from",
    "/payload/authorization/to",
    "/payload/authorization/value",
    "/payload/authorization/validAfter",
    "/payload/authorization/validBefore",
    "/payload/authorization/nonce",
];

/// Parses a payload and compares it with an offer, at a time (seconds since 1970).
///
/// # Errors
/// The first thing that is wrong with the payload.
pub fn read(terms: &PaymentTerms, offer: &Offer, payload: Value, now_s: u64) -> Result<Signed, InvalidPayment> {
    // A list could be read as the fields of an object in their order.
    for path in ["", "/accepted", "/resource", "/payload", "/payload/authorization"] {
        if payload.pointer(path).is_some_and(Value::is_array) {
            let field = if path.is_empty() { "the payment".to_owned() } else { path.trim_start_matches('/').replace('/', ".") };
            return Err(InvalidPayment::Unreadable(format!("{field} is a list")));
        }
    }
    // Some clients write the numbers of the authorization as numbers. The facilitator gets the payload as it is, and takes texts alone.
    for path in TEXTS {
        if payload.pointer(path).is_some_and(|value| !value.is_string()) {
            return Err(InvalidPayment::Unreadable(format!("{} is not a text", path.trim_start_matches('/').replace('/', "."))));
        }
    }
    let read: Payload = Payload::deserialize(&payload).map_err(|error| InvalidPayment::Unreadable(error.to_string()))?;
    let version = match read.x402_version {
        1 => Version::V1,
        2 => Version::V2,
        _ => return Err(InvalidPayment::Differs { field: "x402Version" }),
    };
    let must = |holds: bool, field: &'static str| if holds { Ok(()) } else { Err(InvalidPayment::Differs { field }) };
    let same = |a: &str, b: &str| a.eq_ignore_ascii_case(b);
    let amount = offer.micros.to_string();
    match (version, &read.accepted) {
        (Version::V1, _) => {
            must(read.scheme.as_deref() == Some(SCHEME), "scheme")?;
            must(read.network.as_deref() == Some(terms.network.name), "network")?;
        }
        (Version::V2, Some(accepted)) => {
            must(accepted.scheme == SCHEME, "accepted.scheme")?;
            must(accepted.network == terms.network.caip, "accepted.network")?;
            must(accepted.amount == amount, "accepted.amount")?;
            must(same(&accepted.asset, &terms.asset), "accepted.asset")?;
            must(same(&accepted.pay_to, &terms.pay_to), "accepted.payTo")?;
        }
        (Version::V2, None) => return Err(InvalidPayment::Differs { field: "accepted" }),
    }
    if read.resource.as_ref().is_some_and(|resource| resource.url != offer.resource) {
        return Err(InvalidPayment::OtherResource { wanted: offer.resource.clone() });
    }
    let Exact { signature, authorization } = read.payload;
    must(same(&authorization.to, &terms.pay_to), "authorization.to")?;
    must(authorization.value == amount, "authorization.value")?;
    let unreadable = |field: &str| InvalidPayment::Unreadable(format!("authorization.{field}"));
    let (from, to) = (hex_bytes::<20>(&authorization.from), hex_bytes::<20>(&authorization.to));
    let (from, to) = (from.ok_or_else(|| unreadable("from"))?, to.ok_or_else(|| unreadable("to"))?);
    let nonce = hex_bytes::<32>(&authorization.nonce).ok_or_else(|| unreadable("nonce"))?;
    let valid_after: u64 = authorization.valid_after.parse().map_err(|_| unreadable("validAfter"))?;
    let valid_before: u64 = authorization.valid_before.parse().map_err(|_| unreadable("validBefore"))?;
    if valid_after > now_s {
        return Err(InvalidPayment::NotYet);
    }
    let ahead_max_s = terms.ahead_max_s();
    if valid_before <= now_s || valid_before > now_s.saturating_add(ahead_max_s) {
        return Err(InvalidPayment::ValidBefore { ahead_max_s });
    }
    let asset = hex_bytes::<20>(&terms.asset).ok_or(InvalidPayment::Differs { field: "asset" })?;
    let message = Message { from, to, value: offer.micros, valid_after, valid_before, nonce };
    let digest = digest(terms, &asset, &message);
    let signature = hex_bytes::<65>(&signature).ok_or(InvalidPayment::SignatureForm)?;
    if signer(&digest, signature) != Some(from) {
        return Err(InvalidPayment::NotSigned);
    }
    Ok(Signed { version, from, nonce, valid_before, payload })
}

/// A transfer authorization (EIP-3009).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Message {
    /// The payer.
    pub from: Address,
    /// The payee.
    pub to: Address,
    /// The amount in the smallest unit of the token.
    pub value: u64,
    /// Valid after this time: seconds since 1970.
    pub valid_after: u64,
    /// Valid before this time: seconds since 1970.
    pub valid_before: u64,
    /// The nonce.
    pub nonce: [u8; 32],
}

/// The digest that is signed (EIP-712): the token's domain, and the transfer authorization (EIP-3009).
#[must_use]
pub fn digest(terms: &PaymentTerms, asset: &Address, message: &Message) -> [u8; 32] {
    let (name, version) = terms.network.token;
    let domain = keccak(&[
        &keccak(&[b"EIP712Domain(string name,string version,uint256 chainId,address verifyingContract)"]),
        &keccak(&[name.as_bytes()]),
        &keccak(&[version.as_bytes()]),
        &number(terms.network.chain_id),
        &word(asset),
    ]);
    let kind: &[u8] =
        b"TransferWithAuthorization(address from,address to,uint256 value,uint256 validAfter,uint256 validBefore,bytes32 nonce)";
    let transfer = keccak(&[
        &keccak(&[kind]),
        &word(&message.from),
        &word(&message.to),
        &number(message.value),
        &number(message.valid_after),
        &number(message.valid_before),
        &message.nonce,
    ]);
    keccak(&[&[0x19, 0x01], &domain, &transfer])
}

/// Recovers the signer of a digest.
fn signer(digest: &[u8; 32], signature: [u8; 65]) -> Option<Address> {
    let (rs, v) = signature.split_at(64);
    // 27 or 28; some clients write 0 or 1.
    let v = *v.first()?;
    let recovery = RecoveryId::from_byte(v.checked_sub(27).unwrap_or(v))?;
    let key = VerifyingKey::recover_from_prehash(digest, &Signature::from_slice(rs).ok()?, recovery).ok()?;
    Some(address(&key))
}

/// Derives the address of a public key.
#[must_use]
pub fn address(key: &VerifyingKey) -> Address {
    let point = key.to_sec1_point(false);
    let hash = keccak(&[point.as_bytes().get(1..).unwrap_or_default()]);
    let mut address = [0; 20];
    address.copy_from_slice(&hash[12..]);
    address
}

pub(super) fn keccak(parts: &[&[u8]]) -> [u8; 32] {
    let mut hasher = Keccak256::new();
    for part in parts {
        hasher.update(part);
    }
    hasher.finalize().into()
}

/// Encodes an address as a 32-byte word, right-aligned.
fn word(address: &Address) -> [u8; 32] {
    let mut word = [0; 32];
    word[12..].copy_from_slice(address);
    word
}

fn number(number: u64) -> [u8; 32] {
    let mut word = [0; 32];
    word[24..].copy_from_slice(&number.to_be_bytes());
    word
}

/// Parses an address: `0x` and 40 hex digits.
#[must_use]
pub fn address_of(text: &str) -> Option<Address> {
    hex_bytes(text)
}

/// Encodes bytes as `0x` and hex digits.
#[must_use]
pub fn hex_text(bytes: &[u8]) -> String {
    format!("0x{}", proofs::hash::hex(bytes))
}

/// Parses `0x` and hex digits of either case.
fn hex_bytes<const N: usize>(text: &str) -> Option<[u8; N]> {
    let digits = text.strip_prefix("0x").filter(|digits| digits.len() == 2 * N && digits.is_ascii())?;
    let mut out = [0; N];
    for (byte, pair) in out.iter_mut().zip(digits.as_bytes().chunks_exact(2)) {
        let digit = |at: usize| pair.get(at).and_then(|digit| char::from(*digit).to_digit(16));
        *byte = u8::try_from(digit(0)? * 16 + digit(1)?).ok()?;
    }
    Some(out)
}

#[cfg(test)]
mod tests {
    use k256::ecdsa::SigningKey;
    use serde_json::json;

    use super::*;
    use crate::terms::{NETWORKS, VALIDITY_DEFAULT_S};

    const PAY_TO: &str = "0x00000000000000000000000000000000000000AA";
    const NOW_S: u64 = 1_795_000_000;

    fn terms() -> PaymentTerms {
        PaymentTerms {
            network: NETWORKS[0],
            asset: NETWORKS[0].usdc.to_owned(),
            pay_to: PAY_TO.to_owned(),
            versions: Version::ALL.to_vec(),
            validity_s: VALIDITY_DEFAULT_S,
        }
    }

    fn offer() -> Offer {
        Offer { resource: "https://x.example/a".to_owned(), description: "An answer.".to_owned(), micros: 10_000 }
    }

    /// A payload as a client creates it.
    fn paid(version: Version) -> Value {
        paid_for(version, 60)
    }

    /// The same, valid for some seconds.
    fn paid_for(version: Version, seconds: u64) -> Value {
        let key = SigningKey::from_slice(&[7; 32]).unwrap();
        let from = address(key.verifying_key());
        let (to, valid_before) = (hex_bytes(PAY_TO).unwrap(), NOW_S + seconds);
        let message = Message { from, to, value: 10_000, valid_after: 0, valid_before, nonce: [9; 32] };
        let digest = digest(&terms(), &hex_bytes(NETWORKS[0].usdc).unwrap(), &message);
        let (signature, recovery) = key.sign_prehash_recoverable(&digest);
        let mut bytes = signature.to_bytes().to_vec();
        bytes.push(27 + recovery.to_byte());
        let exact = json!({
            "signature": hex_text(&bytes),
            "authorization": {
                "from": hex_text(&from), "to": PAY_TO, "value": "10000", "validAfter": "0",
                "validBefore": valid_before.to_string(), "nonce": hex_text(&[9; 32]),
            },
        });
        match version {
            Version::V1 => json!({ "x402Version": 1, "scheme": "exact", "network": "base", "payload": exact }),
            Version::V2 => json!({
                "x402Version": 2, "payload": exact, "resource": { "url": "https://x.example/a" },
                "accepted": terms().requirements(Version::V2, &offer()),
            }),
        }
    }

    /// Proves that a valid payment of either version is accepted as its payer's, and that each modified field is named.
    #[test]
    fn the_wrong_field_is_named() {
        for version in [Version::V1, Version::V2] {
            let signed = read(&terms(), &offer(), paid(version), NOW_S).unwrap();
            assert_eq!((signed.version, signed.nonce, signed.valid_before), (version, [9; 32], NOW_S + 60));
        }
        let wrong = |pointer: &str, value: Value| {
            let mut payload = paid(Version::V2);
            *payload.pointer_mut(pointer).unwrap() = value;
            read(&terms(), &offer(), payload, NOW_S).unwrap_err().to_string()
        };
        for (pointer, value, named) in [
            ("/x402Version", json!(3), "x402Version"),
            ("/accepted/amount", json!("1"), "accepted.amount"),
            ("/accepted/payTo", json!("0x00"), "accepted.payTo"),
            ("/accepted/asset", json!("0x00"), "accepted.asset"),
            ("/accepted/network", json!("eip155:1"), "accepted.network"),
            ("/resource/url", json!("https://x.example/b"), "resource.url differs from the payment terms, which name https://x.example/a"),
            ("/resource", json!(["https://x.example/a"]), "resource is a list"),
            ("/payload/authorization", json!([PAY_TO]), "payload.authorization is a list"),
            ("/payload/signature", json!(format!("0x{}", "ab".repeat(64))), "65 bytes"),
            ("/payload/signature", json!("ab".repeat(65)), "65 bytes"),
            ("/payload/signature", json!(format!("0x{}{}", "ab".repeat(200), "6492".repeat(16))), "ERC-6492"),
            ("/payload/authorization/value", json!("1"), "authorization.value"),
            ("/payload/authorization/to", json!("0x00"), "authorization.to"),
            ("/payload/authorization/nonce", json!(hex_text(&[8; 32])), "signature"),
            ("/payload/authorization/from", json!(PAY_TO), "signature"),
            ("/payload/authorization/validBefore", json!(NOW_S.to_string()), "validBefore"),
            ("/payload/authorization/validBefore", json!((NOW_S + 7 * 86_400).to_string()), "by 3600 seconds at most"),
            ("/payload/authorization/validAfter", json!((NOW_S + 1).to_string()), "validAfter"),
            ("/payload/signature", json!("0x"), "signature"),
            ("/payload", json!([]), "cannot be parsed"),
            ("/payload/authorization/value", json!(10_000), "payload.authorization.value is not a text"),
            ("/payload/authorization/validAfter", json!(0), "payload.authorization.validAfter is not a text"),
            ("/payload/authorization/validBefore", json!(NOW_S + 60), "payload.authorization.validBefore is not a text"),
            ("/payload/signature", Value::Null, "payload.signature is not a text"),
        ] {
            let said = wrong(pointer, value);
            assert!(said.contains(named), "{pointer}: {said}");
        }
    }

    /// Proves that an authorization is taken for as long as the terms ask for and somewhat longer, at least an hour, and that a refusal names the bound: some
    /// facilitators settle only what is valid for days.
    #[test]
    fn validity_follows_the_terms() {
        for (validity_s, ahead_max_s) in [(60, 3_600), (180, 3_600), (3_000, 3_600), (3_001, 3_601), (86_400, 87_000), (604_800, 605_400)] {
            let terms = PaymentTerms { validity_s, ..terms() };
            for version in Version::ALL {
                assert_eq!(terms.requirements(version, &offer())["maxTimeoutSeconds"], validity_s);
                for seconds in [1, validity_s, ahead_max_s] {
                    assert!(read(&terms, &offer(), paid_for(version, seconds), NOW_S).is_ok(), "{seconds} of {validity_s}");
                }
                for seconds in [0, ahead_max_s + 1] {
                    let refused = read(&terms, &offer(), paid_for(version, seconds), NOW_S).unwrap_err();
                    assert_eq!(refused, InvalidPayment::ValidBefore { ahead_max_s });
                    assert!(refused.to_string().ends_with(&format!("by {ahead_max_s} seconds at most")), "{refused}");
                }
            }
        }
    }

    /// Proves that the terms of both versions say which signatures are taken, next to the domain that is signed.
    #[test]
    fn terms_say_what_is_taken() {
        for version in Version::ALL {
            let extra = terms().requirements(version, &offer())["extra"].clone();
            assert_eq!((&extra["name"], &extra["version"]), (&json!(NETWORKS[0].token.0), &json!(NETWORKS[0].token.1)));
            let signatures = extra["signatures"].as_str().unwrap();
            assert!(["65 bytes", "ERC-1271", "ERC-6492"].iter().all(|form| signatures.contains(form)), "{signatures}");
        }
    }

    /// Proves that the address of a key is computed as everywhere, with a known pair, and that the signer of EIP-3009 typed data is recovered.
    #[test]
    fn addresses() {
        let mut one = [0; 32];
        one[31] = 1;
        let key = SigningKey::from_slice(&one).unwrap();
        assert_eq!(hex_text(&address(key.verifying_key())), "0x7e5f4552091a69125d5dfcb7b8c2659029395bdf");
    }
}
