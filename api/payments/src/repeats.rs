//! Who gets the answer of a payment again.
//!
//! A payment is public once it is settled: anybody can read its authorization on the chain and send it with the same request. So a claim is bound to the
//! buyer, who is known by the network address of the first call. From another address the buyer needs the token that came with the first answer. Neither
//! addresses nor tokens are stored: the claim has a keyed hash.

use std::net::IpAddr;

use access::quota::address_subject;
use base64::Engine as _;
use base64::engine::general_purpose::URL_SAFE_NO_PAD;
use operation::secrets::Secrets;
use proofs::hash::Hash32;

/// The header that has the token, in the first answer and in a repeated call.
pub const HEADER: &str = "Payment-Repeat-Token";
/// The `_meta` field that has the token over MCP, in the result of the first call and in a repeated one.
pub const META: &str = "highwater/payment-repeat-token";
/// The beginning of a token.
const PREFIX: &str = "pr_";
/// How many bytes each half of a token has: the buyer, and the proof that the token is ours.
const HALF_BYTES: usize = 16;

/// The buyer of an answer, as a keyed hash of a network address: an IPv4 address or an IPv6 /64.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Buyer([u8; HALF_BYTES]);

impl Buyer {
    /// The buyer at an address.
    pub(crate) fn at(secrets: &Secrets, address: IpAddr) -> Self {
        Self(half(secrets.repeat(&[b"payment-buyer", address_subject(address).as_bytes()])))
    }

    /// The buyer that the token of a payment names; `None` if it is not a token of this payment.
    pub(crate) fn of_token(secrets: &Secrets, payment: &str, token: &str) -> Option<Self> {
        let bytes = URL_SAFE_NO_PAD.decode(token.strip_prefix(PREFIX)?).ok()?;
        let (buyer, proof) = bytes.split_at_checked(HALF_BYTES)?;
        let buyer = Self(buyer.try_into().ok()?);
        // Compared as hashes, so that the time tells nothing about the proof.
        (Hash32::of(proof) == Hash32::of(&buyer.proof(secrets, payment))).then_some(buyer)
    }

    /// The token with which this buyer gets the answer of a payment again from any address.
    pub(crate) fn token(&self, secrets: &Secrets, payment: &str) -> String {
        format!("{PREFIX}{}", URL_SAFE_NO_PAD.encode([self.0, self.proof(secrets, payment)].concat()))
    }

    /// The hash of a request by this buyer. A request by somebody else has another hash.
    pub(crate) fn bind(&self, request: &Hash32) -> Hash32 {
        Hash32::of_parts(&[&request.0, &self.0])
    }

    fn proof(&self, secrets: &Secrets, payment: &str) -> [u8; HALF_BYTES] {
        half(secrets.repeat(&[b"payment-repeat", payment.as_bytes(), &self.0]))
    }
}

fn half(bytes: [u8; 32]) -> [u8; HALF_BYTES] {
    let mut half = [0; HALF_BYTES];
    half.copy_from_slice(&bytes[..HALF_BYTES]);
    half
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Proves that a buyer is known by its address and by the token of the payment alone, and that neither shows the address.
    #[test]
    fn buyers() {
        let [secrets, others] = [[1; 32], [2; 32]].map(|master| Secrets::from_master(&master).unwrap());
        let at = |address: &str| Buyer::at(&secrets, address.parse().unwrap());
        let (own, request) = (at("192.0.2.7"), Hash32::of(b"request"));
        assert_eq!((own, at("2001:db8::1")), (at("::ffff:192.0.2.7"), at("2001:db8::2")));
        assert_ne!(own.bind(&request), at("192.0.2.8").bind(&request));
        assert_ne!(own.bind(&request), request);
        let token = own.token(&secrets, "pay_1");
        assert_eq!(Buyer::of_token(&secrets, "pay_1", &token), Some(own));
        let of_others = Buyer::at(&others, "192.0.2.7".parse().unwrap()).token(&others, "pay_1");
        for wrong in ["", PREFIX, &token[1..], &token[..token.len() - 1], &format!("{token}A"), &of_others] {
            assert_eq!(Buyer::of_token(&secrets, "pay_1", wrong), None, "{wrong}");
        }
        assert_eq!(Buyer::of_token(&secrets, "pay_2", &token), None, "a token of another payment");
    }
}
