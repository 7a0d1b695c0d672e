//! Receipts over documents that services sell. The service that issues receipts is set as a part of the context, so that the services do not depend on
//! each other.

use async_trait::async_trait;
use schemars::JsonSchema;
use schemas::receipt::Receipt;
use serde::Serialize;
use serde_json::Value;

use crate::context::{Context, Part};
use crate::problem::Problem;

/// How the agent ids of the chains begin to which services append. No caller can append to such a chain.
pub const SERVICE_AGENT_PREFIX: &str = "highwater:";

/// A receipt in answers.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
#[schemars(rename = "Receipt")]
pub struct ShownReceipt {
    #[serde(flatten)]
    receipt: Receipt,
    /// The URL of a page for people that checks the receipt.
    verify_url: String,
}

impl From<Receipt> for ShownReceipt {
    fn from(receipt: Receipt) -> Self {
        let verify_url = format!("{}/verify/{}", receipt.body.issuer, receipt.id);
        Self { receipt, verify_url }
    }
}

/// A document that a service made, and that gets a receipt.
#[derive(Clone, Debug, PartialEq)]
pub struct Documented {
    /// The service. Its receipts are in the chain of the agent `highwater:` and the name of the service.
    pub service: &'static str,
    /// The action that made the document.
    pub action: &'static str,
    /// What the document was made of. It is hashed and not stored.
    pub inputs: Value,
    /// The hash that the document states. The receipt commits to `schemas::evidence::receipt_outputs` of it, so receipts do not show it.
    pub hash: String,
}

/// Issues receipts over documents.
#[async_trait]
pub trait DocumentReceipts: Send + Sync {
    /// Issues the receipt of a document. The same document gets the same receipt each time.
    ///
    /// # Errors
    /// `parameter-invalid` if no receipts are issued on this server; `unavailable` while none is signed.
    async fn issue(&self, ctx: &Context, document: &Documented) -> Result<ShownReceipt, Problem>;
}

/// The service that issues receipts over documents; `None` if no service does.
#[derive(Default)]
pub struct ReceiptIssuer(pub Option<&'static dyn DocumentReceipts>);

impl Part for ReceiptIssuer {}
