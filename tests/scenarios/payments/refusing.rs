//! A facilitator that finds every payment invalid, as one would find payments of an empty account.

use std::net::SocketAddr;
use std::process::Command;

use serde_json::json;
use warp::Filter as _;

use super::PAY_TO;
use crate::loopback::Loopback;

/// The facilitator; it runs until it is dropped.
pub(crate) struct Refusing(Loopback);

impl Refusing {
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

    /// Has a command sell what it sells through this facilitator.
    pub(crate) fn sell(&self, command: &mut Command) {
        let address: SocketAddr = self.0.address;
        command.env("HIGHWATER_PAYMENTS__PAY_TO", PAY_TO).env("HIGHWATER_PAYMENTS__FACILITATOR_URL", format!("http://{address}"));
    }
}
