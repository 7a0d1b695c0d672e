//! The terms of a priced operation, as version 1 and version 2 of x402 state them.

use schemars::JsonSchema;
use serde::Serialize;
use serde_json::{Value, json};

/// The only scheme: the exact amount, by EIP-3009.
pub const SCHEME: &str = "exact";
/// How long a signed authorization holds at least, in seconds: a settlement takes some blocks.
pub const TIME_MAX_S: u64 = 180;

/// A network that payments may be on.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Network {
    /// Its name in version 1.
    pub name: &'static str,
    /// Its name in version 2 (CAIP-2).
    pub caip: &'static str,
    /// The chain's number, part of what is signed.
    pub chain_id: u64,
    /// Name and version of USDC there, part of what is signed.
    pub token: (&'static str, &'static str),
    /// USDC's address there.
    pub usdc: &'static str,
    /// Seconds from block to block.
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

/// Where money goes, `[payments]`.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Till {
    /// The network.
    pub network: Network,
    /// Address of the token.
    pub asset: String,
    /// Address that is paid.
    pub pay_to: String,
    /// The versions that terms are stated in: those that the facilitator settles.
    pub versions: Vec<Version>,
}

/// What one answer is sold for.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Offer {
    /// What is sold: a URL, of a tool over MCP `mcp://…`.
    pub resource: String,
    /// One sentence on it.
    pub description: String,
    /// Millionths of a dollar, USDC's smallest units.
    pub micros: u64,
}

/// The two versions of the protocol.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, JsonSchema)]
pub enum Version {
    /// The challenge is the body, the payment comes in `X-PAYMENT`.
    V1,
    /// The challenge is in `PAYMENT-REQUIRED`, the payment comes in `PAYMENT-SIGNATURE`.
    V2,
}

impl Network {
    /// Its name in a version.
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

    /// Its number in documents.
    #[must_use]
    pub fn number(self) -> u64 {
        match self {
            Self::V1 => 1,
            Self::V2 => 2,
        }
    }
}

impl Till {
    /// The requirements of an offer, as a facilitator is told them.
    #[must_use]
    pub fn requirements(&self, version: Version, offer: &Offer) -> Value {
        let (amount, (name, token_version)) = (offer.micros.to_string(), self.network.token);
        let extra = json!({ "name": name, "version": token_version });
        match version {
            Version::V1 => json!({
                "scheme": SCHEME,
                "network": self.network.name_in(version),
                "maxAmountRequired": amount,
                "resource": offer.resource,
                "description": offer.description,
                "mimeType": "application/json",
                "payTo": self.pay_to,
                "maxTimeoutSeconds": TIME_MAX_S,
                "asset": self.asset,
                "extra": extra,
            }),
            Version::V2 => json!({
                "scheme": SCHEME,
                "network": self.network.name_in(version),
                "amount": amount,
                "asset": self.asset,
                "payTo": self.pay_to,
                "maxTimeoutSeconds": TIME_MAX_S,
                "extra": extra,
            }),
        }
    }

    /// The terms of an offer as a version states them; none if nobody settles that.
    #[must_use]
    pub fn accepts(&self, version: Version, offer: &Offer) -> Vec<Value> {
        self.versions.contains(&version).then(|| self.requirements(version, offer)).into_iter().collect()
    }

    /// The challenge: what to pay, and why the call was not answered.
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
