//! `POST /v1/issue`: issues a signed receipt of an agent's action.

use operation::context::Part;
use operation::signing_state::SigningState;
use proofs::hash::{Hash32, hex};
use proofs::receipt::{TYPE, VERSION, commitment};
use schemars::JsonSchema;
use schemas::error_code::ErrorCode;
use schemas::topics::PAYMENTS;
use schemas::views::accounts::Tier;
use schemas::views::receipts::{IssueRequest, ReceiptCommand, RequestOutcome, TABLES};
use serde::{Deserialize, Serialize};
use serde_json::{Map, Value, json};

use super::chain::{check_agent, check_name, forbidden};
use super::tree::Inclusion;
use crate::Receipts;
use access::append::{CommandPolicy, append_command, wait_until_projected};
use operation::context::Context;
use operation::document_receipt::ShownReceipt;
use operation::problem::Problem;
use operation::{Answer, Body, Call, Definition, Method, Operation, Price, Stage};

/// Arguments of `issue_receipt`.
#[derive(Clone, Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct Arguments {
    /// The name of the action, for example `send_invoice`.
    #[schemars(length(min = 1, max = 200))]
    pub action: String,
    /// Your name for the agent. Its receipts form one chain, which belongs to the caller of its first receipt.
    #[schemars(length(min = 1, max = 200))]
    pub agent_id: String,
    /// The inputs of the action, any JSON object. They are hashed and not stored.
    pub inputs: Map<String, Value>,
    /// The outputs of the action, any JSON object. They are hashed and not stored.
    pub outputs: Map<String, Value>,
    /// Further data about the action, any JSON object. It is hashed and not stored.
    pub metadata: Option<Map<String, Value>>,
}

/// An issued receipt.
#[derive(Clone, Debug, Serialize, JsonSchema)]
pub struct Issued {
    /// The receipt.
    pub receipt: ShownReceipt,
    /// The proof that the receipt is in the signed tree. Only the answer to a repeated request with an `Idempotency-Key` and a key of a paid tier has
    /// it, once the next checkpoint is published, within a second. Otherwise null; `/v1/verify/{id}` gives the proof.
    pub inclusion: Option<Inclusion>,
}

/// The operation.
#[must_use]
pub fn operation() -> Operation {
    let words = Definition {
        name: "issue_receipt",
        method: Method::Post,
        path: "/v1/issue",
        summary: "Issues a signed receipt of an action, at the end of the agent's chain.",
        when: "Use it after an action whose record must be provable later.",
        description: "`inputs_hash` is `sha256:` and the SHA-256 of the inputs in canonical form (RFC 8785), `outputs_hash` that of the outputs, and \
            `metadata_hash` that of the metadata, if there is any. A field given twice, or a number that a double does not hold (beyond 2^53 - 1), is \
            refused: send such a number as a text. Keep inputs, outputs and metadata yourself: they are not stored. With an \
            `Idempotency-Key` a repeated request gets the same receipt again; for another request the key is refused. The chain of an `agent_id` \
            belongs to the first caller who is issued a receipt of it: the account of the key, or the address that pays. Other callers get 403 \
            `chain-forbidden`, before anything is charged, unless the owner has named them (`POST /v1/chains/{agent_id}/writers`). `issuedTo` in \
            the body is the caller that the receipt was issued to.",
        price: Price::PerCall { micros: 10_000, free_from: Tier::Pro },
        errors: &[ErrorCode::ChainForbidden, ErrorCode::IdempotencyMismatch],
        example: json!({
            "action": "send_invoice",
            "agent_id": "billing-agent-1",
            "inputs": { "customer": "c_17", "amount": 120.5 },
            "outputs": { "invoice": "inv_9" }
        }),
        ..Definition::read()
    };
    Operation::define::<Arguments, Issued, _, _>(words, answer)
}

async fn answer(call: Call, arguments: Arguments) -> Result<Answer, Problem> {
    let ctx = &call.context;
    let Arguments { action, agent_id, inputs, outputs, metadata } = arguments;
    check_name("action", &action)?;
    check_agent(&agent_id)?;
    let (inputs_hash, outputs_hash) = (hashed("inputs", &inputs)?, hashed("outputs", &outputs)?);
    let (metadata_hash, old_inputs_hash) = match metadata {
        None => (None, String::new()),
        Some(metadata) => (Some(hashed("metadata", &metadata)?), hashed("inputs", &json!({ "inputs": inputs, "metadata": metadata }))?),
    };
    let issuer = ctx.settings.services.get(crate::SOURCE.service).map(|own| own.base_url.clone()).unwrap_or_default();
    let caller = match &call.stage {
        Stage::Order { payer, .. } => payer.clone(),
        _ => call.caller.account.clone(),
    };
    let issue = IssueRequest { action, agent_id, inputs_hash, outputs_hash, metadata_hash, issuer, caller };
    let request = match &call.stage {
        Stage::Preview => return Answer::json(&previewed(&issue)),
        Stage::Order { payment, .. } => {
            let receipts = Receipts::now(ctx).await?;
            // Checked before any money moves.
            check_signs(ctx, &receipts).await?;
            // If this payment was decided already, a later stage answers it, even if the payer may no longer append.
            if receipts.outcome(payment).await?.is_none() {
                receipts.check_may_append(&issue.agent_id, &issue.caller).await?;
            }
            let effect = serde_json::to_string(&ReceiptCommand::Issue(issue))
                .map_err(|_| Problem::new(ErrorCode::Internal, "the receipt cannot be ordered"))?;
            return Ok(Answer { body: Body::Effect(effect), ..Answer::json(&Value::Null)? });
        }
        Stage::Claimed(payment) => {
            wait_until_projected(ctx, TABLES.view, &PAYMENTS).await?;
            return match Receipts::now(ctx).await?.outcome(payment).await? {
                Some(RequestOutcome::Reserved { .. } | RequestOutcome::Issued(_)) => Answer::json(&Value::Null),
                Some(RequestOutcome::Refused { refused }) => Err(forbidden(&issue.agent_id, refused)),
                // An earlier version, without owners, claimed it. It may be settled already, so it is not refused: the payment continues, or the chain has it.
                None => Answer::json(&Value::Null),
            };
        }
        // The settled payment decided it.
        Stage::Paid(payment) => {
            wait_until_projected(ctx, TABLES.view, &PAYMENTS).await?;
            payment.clone()
        }
        Stage::Whole => {
            let (chance, once) = match &call.idempotency_key {
                // The account is part of the hash, so that two accounts with the same text do not see each other's receipt.
                Some(text) => {
                    (Hash32::of_parts(&[b"issue", call.caller.account.as_bytes(), text.as_bytes()]).0, CommandPolicy::OncePerSubject)
                }
                None => (rand::random(), CommandPolicy::NewSubject),
            };
            let request = format!("req_{}", hex(&chance[..16]));
            if issue.caller.is_empty() {
                return Err(Problem::new(ErrorCode::KeyInvalid, "a receipt is issued to the account of a key, and this call has none"));
            }
            let receipts = Receipts::now(ctx).await?;
            // A repeated request gets its receipt again, even if the caller may no longer append.
            if once == CommandPolicy::NewSubject || receipts.outcome(&request).await?.is_none() {
                check_signs(ctx, &receipts).await?;
                receipts.check_may_append(&issue.agent_id, &issue.caller).await?;
            }
            append_command(ctx, TABLES.view, &request, once, &ReceiptCommand::Issue(issue.clone())).await?;
            request
        }
    };
    let receipts = Receipts::now(ctx).await?;
    let receipt = receipts.receipt_of(&request).await?.map_err(|refused| {
        if let Stage::Paid(payment) = &call.stage {
            tracing::warn!(payment, "a payment was settled by somebody else than this server, and its receipt is refused");
        }
        forbidden(&issue.agent_id, refused)
    })?;
    let body = &receipt.body;
    let asked = [&issue.action, &issue.agent_id, &issue.outputs_hash];
    let commitment = (body.inputs_hash.as_str(), body.metadata_hash.as_deref());
    // The second is how earlier versions committed to inputs with metadata.
    let is_committed = [(issue.inputs_hash.as_str(), issue.metadata_hash.as_deref()), (&old_inputs_hash, None)].contains(&commitment);
    if asked != [&body.action, &body.agent_id, &body.outputs_hash] || !is_committed {
        return Err(Problem::new(ErrorCode::IdempotencyMismatch, "this Idempotency-Key was used for another receipt; take a new one"));
    }
    // A paid answer is the same each time, and a new receipt is in no published checkpoint yet: `/v1/verify/{id}` gives the proof.
    let inclusion = match call.stage {
        Stage::Whole if call.idempotency_key.is_some() && SigningState::of(ctx).check_checkpoint(crate::SOURCE.service).is_ok() => {
            receipts.inclusion(&receipt.id).await?
        }
        _ => None,
    };
    Ok(Answer { status: 201, ..Answer::json(&Issued { receipt: receipt.into(), inclusion })? })
}

/// Fails while this process refuses to sign, and before the first key is recorded: a request that came before the key would block the log. The log and
/// `highwater status` show the operator the full reason.
pub(crate) async fn check_signs(ctx: &Context, receipts: &Receipts) -> Result<(), Problem> {
    let refused = |detail: &str, after_s| Err(Problem::new(ErrorCode::Unavailable, detail).retry_after(after_s));
    if SigningState::of(ctx).refusal().is_some() {
        return refused(
            "no receipt is signed at present: this server's log does not continue, or is not yet compared with, what was signed before",
            5,
        );
    }
    if receipts.signing().await?.keys.is_empty() {
        return refused("no receipt is signed yet: the first key is being recorded", 1);
    }
    Ok(())
}

/// The preview of a receipt before it is paid for: unsigned, and without a position in the chain.
fn previewed(issue: &IssueRequest) -> Value {
    let IssueRequest { action, agent_id, inputs_hash, outputs_hash, metadata_hash, issuer, caller: _ } = issue;
    let mut body = json!({
        "type": TYPE, "version": VERSION, "action": action, "agent_id": agent_id, "inputs_hash": inputs_hash, "outputs_hash": outputs_hash,
        "issuer": issuer,
    });
    if let Some(metadata_hash) = metadata_hash {
        body["metadata_hash"] = metadata_hash.as_str().into();
    }
    json!({ "body": body })
}

fn hashed<T: Serialize>(name: &str, value: &T) -> Result<String, Problem> {
    commitment(value).map_err(|_| Problem::parameter(name, format!("{name}: has no canonical form")))
}
