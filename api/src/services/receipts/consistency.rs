//! `GET /v1/consistency`: that a tree over receipts holds an earlier one.

use schemars::JsonSchema;
use schemas::error_code::ErrorCode;
use schemas::hash::Hash32;
use schemas::tree::Question;
use serde::{Deserialize, Serialize};
use serde_json::json;

use super::{Receipts, SOURCE};
use crate::operation::{Answer, Call, Method, Operation, Price, Words};
use crate::problem::Problem;
use crate::services::common::witness::with_cosignatures;

/// Arguments of `prove_consistency`.
#[derive(Clone, Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct Arguments {
    /// Leaves of the earlier tree: the size in a checkpoint that you kept.
    #[schemars(range(min = 1))]
    pub from: u64,
    /// Leaves of the later tree; by default those of the last checkpoint.
    #[schemars(range(min = 1))]
    pub to: Option<u64>,
}

/// The proof.
#[derive(Clone, Debug, Serialize, JsonSchema)]
pub struct Consistent {
    /// Leaves of the earlier tree.
    pub from: u64,
    /// Leaves of the later tree.
    pub to: u64,
    /// The last checkpoint, signed.
    pub checkpoint: String,
    /// The proof, 64 hex digits each (RFC 6962).
    pub proof: Vec<String>,
}

/// The operation.
#[must_use]
pub fn operation() -> Operation {
    let words = Words {
        name: "prove_consistency",
        method: Method::Get,
        path: "/v1/consistency",
        summary: "Proves that the tree over receipts holds an earlier one.",
        description: "Keep a checkpoint (`/checkpoint`): with the proof from its size to a later one's you know that nothing below it was changed or taken \
            out. The tree itself is served as tiles, `/tile/…` (C2SP tlog-tiles).",
        price: Price::Free,
        tool: false,
        counted: true,
        list: "",
        errors: &[ErrorCode::NotFound],
        example: json!({ "from": 1 }),
        aliases: &[],
    };
    Operation::define::<Arguments, Consistent, _, _>(words, answer)
}

async fn answer(call: Call, arguments: Arguments) -> Result<Answer, Problem> {
    let receipts = Receipts::now(&call.context).await?;
    let sealed =
        receipts.sealed().await?.ok_or_else(|| Problem::new(ErrorCode::NotFound, "there is no checkpoint yet: no receipt was issued"))?;
    let size = u64::try_from(sealed.size).unwrap_or(0);
    let (old, new) = (arguments.from, arguments.to.unwrap_or(size));
    if new > size {
        return Err(Problem::parameter("to", format!("to: {new} is above {size}, the size of the last checkpoint")));
    }
    if old > new {
        return Err(Problem::parameter("from", format!("from: {old} is above {new}")));
    }
    let question = Question::Consistency { size: new, old };
    let proof = receipts.tree(question).await?.ok_or_else(|| Problem::new(ErrorCode::Internal, "a stored row cannot be read"))?;
    let checkpoint = with_cosignatures(&call.context, SOURCE.service, sealed.note).await?;
    Answer::json(&Consistent { from: old, to: new, checkpoint, proof: proof.iter().map(Hash32::to_string).collect() })
}
