//! Receipts over documents that services sell. The service that issues receipts is set as a part of the context, so that the services do not depend on
//! each other.

use async_trait::async_trait;
use proofs::receipt::Receipt;
use schemars::JsonSchema;
use schemas::error_code::ErrorCode;
use serde::{Deserialize, Serialize};
use serde_json::{Value, json};

use crate::context::{Context, Part};
use crate::problem::Problem;

/// The field of an answer that is sold with a receipt: the document of which the receipt is issued once the payment is settled. No caller sees it.
pub const PENDING_RECEIPT: &str = "pendingReceipt";
/// The field of the receipt in such an answer.
const RECEIPT: &str = "receipt";
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
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Documented {
    /// The service. Its receipts are in the chain of the agent `highwater:` and the name of the service.
    pub service: String,
    /// The action that made the document.
    pub action: String,
    /// What the document was made of. It is hashed and not stored.
    pub inputs: Value,
    /// The hash that the document states. The receipt commits to `proofs::evidence::receipt_outputs` of it, so receipts do not show it.
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

    /// Checks that receipts are issued at present, and issues none.
    ///
    /// # Errors
    /// As those of [`Self::issue`].
    async fn check(&self, ctx: &Context) -> Result<(), Problem>;
}

/// The service that issues receipts over documents; `None` if no service does.
#[derive(Default)]
pub struct ReceiptIssuer(pub Option<&'static dyn DocumentReceipts>);

impl Part for ReceiptIssuer {}

/// The service that issues receipts.
///
/// # Errors
/// `parameter-invalid` if no service does.
fn issuer(ctx: &Context) -> Result<&'static dyn DocumentReceipts, Problem> {
    ReceiptIssuer::of(ctx).0.ok_or_else(|| Problem::parameter(RECEIPT, "receipt: this server issues no receipts; ask without it"))
}

/// Issues the receipt of a document that the caller gets with this answer.
///
/// # Errors
/// As those of [`DocumentReceipts::issue`].
pub async fn issue(ctx: &Context, document: &Documented) -> Result<ShownReceipt, Problem> {
    issuer(ctx)?.issue(ctx, document).await
}

/// Checks that receipts are issued at present. A sold answer is recorded before its payment is settled, so it names the document
/// ([`PENDING_RECEIPT`]), and [`complete`] issues the receipt when the payment is settled.
///
/// # Errors
/// As those of [`DocumentReceipts::check`].
pub async fn check(ctx: &Context) -> Result<(), Problem> {
    issuer(ctx)?.check(ctx).await
}

/// Completes the recorded answer of a settled payment: if it names a document, the receipt of the document is issued and added. If receipts are issued no
/// more, the answer says so in its note.
///
/// # Errors
/// `unavailable` while no receipt is issued: the same payment gets the answer later.
pub async fn complete(ctx: &Context, answer: String) -> Result<String, Problem> {
    let Some((mut answer, document)) = pending(&answer)? else { return Ok(answer) };
    match issue(ctx, &document).await {
        Ok(receipt) => answer[RECEIPT] = json!(receipt),
        Err(problem) if problem.code.may_retry() => {
            let detail = format!(
                "the payment is settled, and the receipt of its document is not issued yet ({}); send the same payment again, do not sign another one",
                problem.detail
            );
            return Err(Problem { detail, ..problem });
        }
        Err(problem) => {
            tracing::error!(service = %document.service, error = %problem.detail, "the receipt of a sold document cannot be issued");
            let earlier = answer["note"].as_str().map(|note| format!("{note}; ")).unwrap_or_default();
            answer["note"] = json!(format!("{earlier}the receipt cannot be issued: {}", problem.detail));
        }
    }
    Ok(answer.to_string())
}

/// An answer without the document that it names, and the document; `None` if it names none.
fn pending(answer: &str) -> Result<Option<(Value, Documented)>, Problem> {
    if !answer.contains(PENDING_RECEIPT) {
        return Ok(None);
    }
    let unreadable = |error: serde_json::Error| {
        tracing::error!(%error, "a recorded answer cannot be read");
        Problem::new(ErrorCode::Internal, "the recorded answer cannot be read")
    };
    let mut value: Value = serde_json::from_str(answer).map_err(unreadable)?;
    let Some(document) = value.as_object_mut().and_then(|fields| fields.remove(PENDING_RECEIPT)) else { return Ok(None) };
    Ok(Some((value, serde_json::from_value(document).map_err(unreadable)?)))
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Proves that the document that a recorded answer names is read and taken out, and that an answer whose texts only mention the field remains as it is.
    #[test]
    fn answers_name_the_documents_of_their_receipts() {
        let document = Documented {
            service: "exclusions".into(),
            action: "entity_watch".into(),
            inputs: json!({ "asOf": "x" }),
            hash: "sha256:aa".into(),
        };
        let answer = json!({ "signal": "NO_SIGNAL", "dollars": 17_408_127.92, PENDING_RECEIPT: document });
        let (shown, found) = pending(&answer.to_string()).unwrap().unwrap();
        assert_eq!((shown.to_string().as_str(), found), (r#"{"dollars":17408127.92,"signal":"NO_SIGNAL"}"#, document));
        for none in [json!({ "name": PENDING_RECEIPT }), json!({ "parts": [{ PENDING_RECEIPT: 1 }] }), json!([PENDING_RECEIPT]), json!({})]
        {
            assert!(pending(&none.to_string()).unwrap().is_none(), "{none}");
        }
        assert!(pending(&json!({ PENDING_RECEIPT: 1 }).to_string()).is_err());
    }
}
