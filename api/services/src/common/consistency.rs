//! `GET /v1/consistency`: that a tree holds an earlier one. Receipts and the changes of the other services have it in the same form.

use operation::context::Part;
use operation::signing_state::SigningState;
use std::sync::Arc;

use schemars::JsonSchema;
use schemas::error_code::ErrorCode;
use schemas::hash::Hash32;
use serde::{Deserialize, Serialize};
use serde_json::json;

use super::prover::Prover;
use super::witness::with_cosignatures;
use operation::context::Context;
use operation::problem::Problem;
use operation::{Answer, Call, Definition, Method, Operation, Price};

/// Arguments of `prove_consistency`.
#[derive(Clone, Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct Arguments {
    /// Leaves of the earlier tree: the size in a checkpoint that you kept.
    #[schemars(range(min = 1))]
    pub from: u64,
    /// Leaves of the later tree; by default those of the newest checkpoint.
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
    /// The newest checkpoint, signed.
    pub checkpoint: String,
    /// The proof, 64 hex digits each (RFC 6962).
    pub proof: Vec<String>,
}

/// The operation over the tree of a service. `open` finds the tree as it is at a call.
pub(crate) fn operation<T, O, F>(service: &'static str, summary: &'static str, description: &'static str, open: O) -> Operation
where
    T: Prover,
    O: Fn(Arc<Context>) -> F + Copy + Send + Sync + 'static,
    F: Future<Output = Result<T, Problem>> + Send + 'static,
{
    let words = Definition {
        name: "prove_consistency",
        method: Method::Get,
        path: "/v1/consistency",
        summary,
        description,
        price: Price::Free,
        tool: false,
        counted: true,
        list: "",
        errors: &[ErrorCode::NotFound],
        example: json!({ "from": 1 }),
        aliases: &[],
    };
    Operation::define::<Arguments, Consistent, _, _>(words, move |call: Call, arguments| async move {
        SigningState::of(&call.context).check_checkpoint(service)?;
        answer(&call.context, service, &open(Arc::clone(&call.context)).await?, arguments).await
    })
}

async fn answer(ctx: &Context, service: &'static str, tree: &dyn Prover, arguments: Arguments) -> Result<Answer, Problem> {
    let none = || Problem::new(ErrorCode::NotFound, "there is no checkpoint yet: nothing was signed");
    let sealed = tree.sealed().await?.ok_or_else(none)?;
    let size = u64::try_from(sealed.size).unwrap_or(0);
    let (old, new) = (arguments.from, arguments.to.unwrap_or(size));
    if new > size {
        return Err(Problem::parameter("to", format!("to: {new} is above {size}, the size of the newest checkpoint")));
    }
    if old > new {
        return Err(Problem::parameter("from", format!("from: {old} is above {new}")));
    }
    let proof = tree.consistency(new, old).await?.ok_or_else(|| {
        tracing::error!("a signed tree lacks a hash");
        Problem::new(ErrorCode::Internal, "a stored row cannot be read")
    })?;
    let checkpoint = with_cosignatures(ctx, service, sealed.note).await?;
    Answer::json(&Consistent { from: old, to: new, checkpoint, proof: proof.iter().map(Hash32::to_string).collect() })
}
