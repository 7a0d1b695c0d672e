//! A facilitator that reports every payment as invalid, as for payers without money.

use std::net::SocketAddr;
use std::process::Command;

use serde_json::json;
use warp::Filter as _;

use super::PAY_TO;
use crate::loopback::Loopback;

/// The facilitator; it runs until it is dropped.
pub(crate) struct RefusingFacilitator(Loopback);

impl RefusingFacilitator {
    pub(crate) fn open() -> Self {
        let supported = warp::path!("supported").map(|| {
            let kind = |(version, network): (u64, &str)| json!({ "x402Version": version, "scheme": "exact", "network": network });
            let kinds = [(1, "base"), (2, "eip155:8453")].map(kind);
            warp::reply::json(&json!({ "kinds": kinds, "extensions": [], "signers": {} }))
        });
        let verify = warp::path!("verify")
            .map(|| warp::reply::json(&json!({ "isValid": false, "invalidReason": "insufficient_funds", "payer": "" })));
        let settle = warp::path!("settle").map(|| {
            warp::reply::json(&json!({ "success": false, "errorReason": "insufficient_funds", "transaction": "", "network": "base" }))
        });
        Self(Loopback::open(supported.or(verify).or(settle)))
    }

    /// Makes a command use this facilitator.
    pub(crate) fn configure(&self, command: &mut Command) {
        let address: SocketAddr = self.0.address;
        command.env("HIGHWATER_PAYMENTS__PAY_TO", PAY_TO).env("HIGHWATER_PAYMENTS__FACILITATOR_URL", format!("http://{address}"));
    }
}
