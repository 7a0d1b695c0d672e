//! The settlement of a payment, as it is reported to the buyer with the answer.

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use operation::context::Context;
use schemas::views::payments::Payment;
use serde_json::{Value, json};

use super::repeats::Buyer;
use super::terms::{NETWORKS, Version};

/// The settlement of a payment, as reported to the buyer.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Settlement {
    transaction: String,
    network: String,
    payer: String,
    repeat_token: String,
}

impl Settlement {
    /// The settlement of a payment of a buyer.
    pub(crate) fn new(ctx: &Context, payment: &Payment, buyer: Buyer) -> Self {
        let Payment { id, transaction, network, payer, .. } = payment.clone();
        Self { transaction, network, payer, repeat_token: buyer.token(&ctx.secrets, &id) }
    }

    /// The token with which the buyer gets the same answer again, from any address.
    #[must_use]
    pub fn repeat_token(&self) -> &str {
        &self.repeat_token
    }

    /// The settlement in the format of a version.
    pub fn document(&self, version: Version) -> Value {
        let own = NETWORKS.iter().find(|network| network.caip == self.network);
        let network = own.map_or(self.network.as_str(), |network| network.name_in(version));
        json!({ "success": true, "transaction": self.transaction, "network": network, "payer": self.payer })
    }

    /// The headers of a paid answer.
    pub fn headers(&self) -> [(&'static str, String); 3] {
        let document = |version| STANDARD.encode(self.document(version).to_string());
        [
            ("x-payment-response", document(Version::V1)),
            ("payment-response", document(Version::V2)),
            ("payment-repeat-token", self.repeat_token.clone()),
        ]
    }
}
