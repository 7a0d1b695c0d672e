//! Receipts over documents that other services make (`operation::document_receipt`). Each service has one chain, to which no caller can append.

use async_trait::async_trait;
use operation::context::Context;
use operation::document_receipt::{DocumentReceipts, Documented, SERVICE_AGENT_PREFIX, ShownReceipt};
use operation::problem::Problem;
use proofs::evidence::receipt_outputs;
use proofs::hash::{Hash32, hex};
use proofs::receipt::commitment;
use schemas::error_code::ErrorCode;
use schemas::views::receipts::{IssueRequest, ReceiptCommand, TABLES};
use serde_json::Value;

use super::issue::check_signs;
use crate::{Receipts, SOURCE};
use access::append::{CommandPolicy, append_command};

/// Issues the receipts of documents.
pub struct Issuer;

#[async_trait]
impl DocumentReceipts for Issuer {
    async fn issue(&self, ctx: &Context, document: &Documented) -> Result<ShownReceipt, Problem> {
        let (subject, request) = request_of(document, base_url(ctx)?)?;
        let receipts = Receipts::now(ctx).await?;
        if receipts.outcome(&subject).await?.is_none() {
            check_signs(ctx, &receipts).await?;
            append_command(ctx, TABLES.view, &subject, CommandPolicy::OncePerSubject, &ReceiptCommand::Issue(request)).await?;
        }
        let receipt = Receipts::now(ctx).await?.receipt_of(&subject).await?.map_err(|refused| {
            tracing::error!(service = %document.service, %refused, "a service cannot append to its own chain of receipts");
            Problem::new(ErrorCode::Internal, "the receipt cannot be issued")
        })?;
        Ok(receipt.into())
    }

    async fn check(&self, ctx: &Context) -> Result<(), Problem> {
        base_url(ctx)?;
        check_signs(ctx, &Receipts::now(ctx).await?).await
    }
}

/// The issuer that receipts name.
///
/// # Errors
/// `parameter-invalid` if this service is not enabled.
fn base_url(ctx: &Context) -> Result<&str, Problem> {
    let own = ctx.settings.services.get(SOURCE.service).filter(|own| own.enabled).map(|own| own.base_url.as_str());
    let words = "receipt: this server issues no receipts (the service `receipts` is not enabled); ask without it";
    own.ok_or_else(|| Problem::parameter("receipt", words))
}

/// The request for the receipt of a document, and the subject of its command. The subject follows from the hash, so that a document gets one receipt.
fn request_of(document: &Documented, issuer: &str) -> Result<(String, IssueRequest), Problem> {
    let Documented { service, action, inputs, hash } = document;
    let hashed = |value: &Value| {
        commitment(value).map_err(|error| {
            tracing::error!(%error, %service, "a document has no canonical form");
            Problem::new(ErrorCode::Internal, "the document cannot be hashed")
        })
    };
    let request = IssueRequest {
        action: action.clone(),
        agent_id: format!("{SERVICE_AGENT_PREFIX}{service}"),
        inputs_hash: hashed(inputs)?,
        outputs_hash: hashed(&receipt_outputs(hash))?,
        metadata_hash: None,
        issuer: issuer.to_owned(),
        // The id of no account and of no payer, so that the chain belongs to nobody else.
        caller: format!("service:{service}"),
    };
    let subject = Hash32::of_parts(&[b"document", service.as_bytes(), action.as_bytes(), request.inputs_hash.as_bytes(), hash.as_bytes()]);
    Ok((format!("doc_{}", hex(&subject.0[..16])), request))
}

#[cfg(test)]
mod tests {
    use proofs::evidence::receipt_commits_to;
    use schemas::views::receipts::is_caller;
    use serde_json::json;

    use super::super::chain::check_agent;
    use super::*;

    /// Proves that the same document has the same request, that another hash has another one, that the request commits to the hash without showing it,
    /// and that its chain can belong to no caller.
    #[test]
    fn requests_follow_from_the_hash() {
        let request_for = |hash: &str| {
            let inputs = json!({ "asOf": "2026-11-20T00:00:00Z" });
            let document = Documented { service: "exclusions".into(), action: "entity_watch".into(), inputs, hash: hash.into() };
            request_of(&document, "http://x").unwrap()
        };
        let (subject, request) = request_for("sha256:aa");
        assert_eq!(request_for("sha256:aa"), (subject.clone(), request.clone()));
        assert_ne!(request_for("sha256:ab").0, subject);
        assert_eq!((request.agent_id.as_str(), request.caller.as_str()), ("highwater:exclusions", "service:exclusions"));
        assert!(!is_caller(&request.caller));
        let receipt = json!({ "body": { "outputs_hash": request.outputs_hash } });
        assert_eq!(["sha256:aa", "sha256:ab"].map(|hash| receipt_commits_to(&receipt, hash)), [true, false]);
        assert_eq!(check_agent(&request.agent_id).unwrap_err().parameter, "agent_id");
        assert!(check_agent("my-highwater:agent").is_ok());
    }
}
