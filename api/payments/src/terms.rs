//! The payment terms of a priced operation, in the formats of x402 versions 1 and 2.

use std::ops::RangeInclusive;

use operation::context::Settings;
use schemars::JsonSchema;
use schemas::views::accounts::Tier;
use serde::Serialize;
use serde_json::{Value, json};

/// The only supported scheme: the exact amount, by EIP-3009.
pub const SCHEME: &str = "exact";
/// The signatures that are taken, for `extra` in the terms: a client that signs otherwise learns it before it signs.
const SIGNATURES: &str = "0x and the 65 bytes by which the payer's own key signed; not ERC-1271, ERC-6492 or 64 bytes";
/// How long an authorization is valid by default, in seconds: a settlement takes some blocks.
pub const VALIDITY_DEFAULT_S: u64 = 180;
/// The validities that can be configured, in seconds.
pub const VALIDITY_S: RangeInclusive<u64> = 60..=7 * 86_400;
/// An authorization may always be valid for this time, in seconds, whatever the terms ask for.
const AHEAD_S: u64 = 3_600;
/// How much longer than asked for an authorization may be valid, in seconds: clocks of buyers are wrong.
const CLOCK_SLACK_S: u64 = 600;

/// A network that payments are made on.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Network {
    /// The name in x402 version 1.
    pub name: &'static str,
    /// The name in x402 version 2 (CAIP-2).
    pub caip: &'static str,
    /// The chain id, part of the signed data.
    pub chain_id: u64,
    /// Name and version of USDC on the network, part of the signed data.
    pub token: (&'static str, &'static str),
    /// The address of USDC on the network.
    pub usdc: &'static str,
    /// The time between two blocks, in seconds.
    pub block_s: u64,
}

/// THE LIST of networks.
pub const NETWORKS: [Network; 2] = [
    Network {
        name: "base",
        caip: "eip155:8453",
        chain_id: 8_453,
        token: ("USD Coin", "2"),
        usdc: "0x833589fCD6eDb6E08f4c7C32D4f71b54bdA02913",
        block_s: 2,
    },
    Network {
        name: "base-sepolia",
        caip: "eip155:84532",
        chain_id: 84_532,
        token: ("USDC", "2"),
        usdc: "0x036CbD53842c5426634e7929541eC2318f3dCF7e",
        block_s: 2,
    },
];

/// The part of the payment terms that all operations share, from `[payments]`.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct PaymentTerms {
    /// The network.
    pub network: Network,
    /// Address of the token contract.
    pub asset: String,
    /// Address of the payee.
    pub pay_to: String,
    /// The x402 versions that are offered: those that the facilitator settles.
    pub versions: Vec<Version>,
    /// How long the terms ask an authorization to be valid, in seconds. Clients sign for this time.
    pub validity_s: u64,
}

/// The offer of one answer.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Offer {
    /// The resource that is sold: a URL, or `mcp://…` for an MCP tool.
    pub resource: String,
    /// A description in one sentence.
    pub description: String,
    /// The price in millionths of a US dollar, the smallest unit of USDC.
    pub micros: u64,
}

/// The versions of the x402 protocol.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, JsonSchema)]
pub enum Version {
    /// The payment terms are in the body, the payment is in `X-PAYMENT`.
    V1,
    /// The payment terms are in `PAYMENT-REQUIRED`, the payment is in `PAYMENT-SIGNATURE`.
    V2,
}

impl Network {
    /// The name of the network in a version.
    #[must_use]
    pub fn name_in(&self, version: Version) -> &'static str {
        match version {
            Version::V1 => self.name,
            Version::V2 => self.caip,
        }
    }
}

impl Version {
    /// THE LIST of versions.
    pub const ALL: [Self; 2] = [Self::V1, Self::V2];

    /// The version number in documents.
    #[must_use]
    pub fn number(self) -> u64 {
        match self {
            Self::V1 => 1,
            Self::V2 => 2,
        }
    }
}

impl PaymentTerms {
    /// The longest time that an authorization may still be valid, in seconds. An unsettled payment is followed up for that long, and searched for on the
    /// chain, whose nodes return logs of a few thousand blocks per request.
    #[must_use]
    pub fn ahead_max_s(&self) -> u64 {
        AHEAD_S.max(self.validity_s.saturating_add(CLOCK_SLACK_S))
    }

    /// The payment requirements of an offer.
    #[must_use]
    pub fn requirements(&self, version: Version, offer: &Offer) -> Value {
        let (amount, (name, token_version)) = (offer.micros.to_string(), self.network.token);
        let extra = json!({ "name": name, "version": token_version, "signatures": SIGNATURES });
        match version {
            Version::V1 => json!({
                "scheme": SCHEME,
                "network": self.network.name_in(version),
                "maxAmountRequired": amount,
                "resource": offer.resource,
                "description": offer.description,
                "mimeType": "application/json",
                "payTo": self.pay_to,
                "maxTimeoutSeconds": self.validity_s,
                "asset": self.asset,
                "extra": extra,
            }),
            Version::V2 => json!({
                "scheme": SCHEME,
                "network": self.network.name_in(version),
                "amount": amount,
                "asset": self.asset,
                "payTo": self.pay_to,
                "maxTimeoutSeconds": self.validity_s,
                "extra": extra,
            }),
        }
    }

    /// The payment requirements of an offer, as a list; empty if the facilitator does not settle the version.
    #[must_use]
    pub fn accepts(&self, version: Version, offer: &Offer) -> Vec<Value> {
        self.versions.contains(&version).then(|| self.requirements(version, offer)).into_iter().collect()
    }

    /// The payment-required response: the requirements, and why the call was not answered.
    #[must_use]
    pub fn challenge(&self, version: Version, offer: &Offer, error: &str) -> Value {
        let accepts = self.accepts(version, offer);
        match version {
            Version::V1 => json!({ "x402Version": 1, "error": error, "accepts": accepts }),
            Version::V2 => json!({
                "x402Version": 2,
                "error": error,
                "resource": { "url": offer.resource, "description": offer.description, "mimeType": "application/json" },
                "accepts": accepts,
            }),
        }
    }
}

/// What a call of a sold operation must have, in a sentence. Keys of a tier from `free_from` on do not pay.
pub(crate) fn requirement(operation: &str, free_from: Tier, settings: &Settings) -> String {
    let (tier, origin) = (free_from.as_str(), settings.origin_of_keys(free_from));
    format!("{operation} requires a payment per call, or a key of tier {tier} or above; {origin}")
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeMap;

    use operation::tiers::{Limits, Tiers};

    use super::*;

    /// Proves that a requirement says where a key of its own tier is from: free keys are not from the operator.
    #[test]
    fn requirements_name_the_origin_of_their_tier() {
        let settings = Settings::new(BTreeMap::new(), Tiers::new(|_| Limits::new(1, 0, 1, 0, 0)));
        for (free_from, named, origin) in [(Tier::Free, "tier free", "`POST …/api/keys`"), (Tier::Fleet, "tier fleet", "the operator")] {
            let requirement = requirement("scan", free_from, &settings);
            assert!(
                requirement.starts_with("scan requires") && requirement.contains(named) && requirement.contains(origin),
                "{requirement}"
            );
        }
    }
}
