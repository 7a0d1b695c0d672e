//! `GET /v1/verify/{receipt_id}`: whether this issuer issued a receipt, and whether it is at its position in the agent's chain.

use operation::context::Part;
use operation::signing_state::SigningState;
use proofs::hash::Hash32;
use proofs::receipt::{Receipt, check, hash_text, is_id};
use schemars::JsonSchema;
use schemas::error_code::ErrorCode;
use schemas::views::receipts::state_key;
use serde::{Deserialize, Serialize};
use serde_json::{Map, Value, json};

use super::tree::Inclusion;
use crate::{Receipts, SOURCE};
use operation::document_receipt::ShownReceipt;
use operation::problem::Problem;
use operation::{Answer, Call, Definition, Operation};
use transparency::witness::with_cosignatures;

/// Arguments of `verify_receipt`.
#[derive(Clone, Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct Arguments {
    /// The receipt's id: `rcpt_` and 32 hex digits.
    pub receipt_id: Option<String>,
    /// A complete receipt instead of an id (over MCP).
    pub receipt: Option<Map<String, Value>>,
}

/// The result of the checks.
#[derive(Clone, Debug, Serialize, JsonSchema)]
pub struct Verified {
    /// Whether all checks pass.
    pub valid: bool,
    /// The result of each check.
    pub checks: Checks,
    /// The receipt as it was issued; null if this issuer did not issue it.
    pub receipt: Option<ShownReceipt>,
    /// The position of the receipt; null if this issuer did not issue it.
    pub position: Option<Position>,
    /// The owner of the receipt's chain: an account (`acct_…`) or a payer's address (`0x…`). Empty if this issuer did not issue the receipt, or if
    /// the owner is not known. The receipt's own `issuedTo` is signed, and may name another caller that the owner allowed to append.
    pub owner: String,
    /// The proof that the receipt is in the signed tree; null until the next checkpoint is published, within a second, and while checkpoints are
    /// withheld.
    pub inclusion: Option<Inclusion>,
}

/// The checks of a receipt.
#[derive(Clone, Copy, Debug, Default, Serialize, JsonSchema)]
pub struct Checks {
    /// `contentHash` is the hash of the canonical body.
    pub hash: bool,
    /// `id` follows from the content hash.
    pub id: bool,
    /// The signature verifies over the content hash with a key of this issuer.
    pub signature: bool,
    /// The receipt is in the agent's chain at its `seq`, directly after the receipt that `prevHash` names.
    pub chain: bool,
}

/// The position of a receipt.
#[derive(Clone, Copy, Debug, Serialize, JsonSchema)]
pub struct Position {
    /// The position in the agent's chain, from 1.
    pub seq: i64,
    /// The number of receipts in the chain.
    pub length: i64,
}

/// The operation.
#[must_use]
pub fn operation() -> Operation {
    let words = Definition {
        name: "verify_receipt",
        path: "/v1/verify/{receipt_id}",
        summary: "Checks a receipt: hash, id, signature, and its position in the agent's chain.",
        when: "Use it before you rely on a receipt.",
        description: "Over MCP a complete receipt may be given instead of its id; if it was changed, the answer names the checks that fail. You can run the \
            same checks offline with `highwater verify`, or with any SHA-256 and Ed25519.",
        errors: &[ErrorCode::NotFound],
        example: json!({ "receipt_id": "rcpt_00000000000000000000000000000000" }),
        ..Definition::read()
    };
    Operation::define::<Arguments, Verified, _, _>(words, answer)
}

async fn answer(call: Call, arguments: Arguments) -> Result<Answer, Problem> {
    let receipts = Receipts::now(&call.context).await?;
    let (given, id) = match (arguments.receipt_id, arguments.receipt) {
        (Some(id), None) => (None, id),
        (None, Some(receipt)) => {
            let id = receipt.get("id").and_then(Value::as_str).unwrap_or_default().to_owned();
            (Some(Value::Object(receipt)), id)
        }
        _ => return Err(Problem::parameter("receipt_id", "receipt_id: give either an id or a whole receipt")),
    };
    let stored = if is_id(&id) { receipts.get(&id).await? } else { None };
    let Some(whole) = given.or_else(|| stored.as_ref().and_then(|receipt| serde_json::to_value(receipt).ok())) else {
        let detail = if is_id(&id) { "no receipt has this id" } else { "receipt_id: is not rcpt_ and 32 lower-case hex digits" };
        let code = if is_id(&id) { ErrorCode::NotFound } else { ErrorCode::ParameterInvalid };
        return Err(Problem::new(code, detail).about("receipt_id"));
    };
    let own = check(&whole);
    let signing = receipts.signing().await?;
    let key = whole.pointer("/signature/publicKeyHex").and_then(Value::as_str).unwrap_or_default();
    let checks = Checks {
        hash: own.hash,
        id: own.id,
        signature: own.signature && signing.keys.iter().any(|known| known.public_key_hex == key),
        chain: match &stored {
            Some(receipt) => receipts.is_chained(receipt).await?,
            None => false,
        },
    };
    let (position, owner) = match &stored {
        Some(receipt) => {
            let chain = receipts.chain(&receipt.body.agent_id).await?;
            (Some(Position { seq: receipt.body.seq, length: chain.length }), chain.owner())
        }
        None => (None, String::new()),
    };
    let mut inclusion = match &stored {
        Some(receipt) if SigningState::of(&call.context).check_checkpoint(SOURCE.service).is_ok() => {
            receipts.inclusion(&receipt.id).await?
        }
        _ => None,
    };
    if let Some(inclusion) = &mut inclusion {
        inclusion.checkpoint = with_cosignatures(&call.context, SOURCE.service, std::mem::take(&mut inclusion.checkpoint)).await?;
    }
    let Checks { hash, id, signature, chain } = checks;
    Answer::json(&Verified {
        valid: hash && id && signature && chain,
        checks,
        receipt: stored.map(ShownReceipt::from),
        position,
        owner,
        inclusion,
    })
}

impl Receipts {
    /// Whether a stored receipt is at its position, directly after the one that it names.
    async fn is_chained(&self, receipt: &Receipt) -> Result<bool, Problem> {
        let body = &receipt.body;
        let at = |seq| state_key::position(&body.agent_id, seq);
        let standing: Vec<Option<String>> = self.remembered(&[at(body.seq), at(body.seq - 1)]).await?;
        let [own, before] = standing.as_slice() else { return Ok(false) };
        if own.as_ref() != Some(&receipt.id) {
            return Ok(false);
        }
        let before = match before {
            Some(id) => self.get(id).await?.map(|before| before.content_hash),
            None => (body.seq == 1).then(|| hash_text(&Hash32::ZERO)),
        };
        Ok(before.as_ref() == Some(&body.prev_hash))
    }
}
