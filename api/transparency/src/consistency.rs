//! `GET /v1/consistency`: proves that a tree holds an earlier one, for the tree over receipts and for the trees over changes.

use operation::context::Part;
use operation::signing_state::SigningState;
use std::sync::Arc;

use proofs::hash::Hash32;
use schemars::JsonSchema;
use schemas::error_code::ErrorCode;
use serde::{Deserialize, Serialize};
use serde_json::json;

use super::prover::SignedTree;
use super::witness::with_cosignatures;
use operation::problem::Problem;
use operation::{Answer, Call, Definition, Operation, Surface};

/// Arguments of `prove_consistency`.
#[derive(Clone, Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct Arguments {
    /// The number of leaves of the earlier tree, which is the size in a checkpoint that you saved.
    #[schemars(range(min = 1))]
    pub from: u64,
    /// The number of leaves of the later tree; by default that of the newest checkpoint.
    #[schemars(range(min = 1))]
    pub to: Option<u64>,
}

/// The consistency proof between two trees.
#[derive(Clone, Debug, Serialize, JsonSchema)]
pub struct Consistent {
    /// The number of leaves of the earlier tree.
    pub from: u64,
    /// The number of leaves of the later tree.
    pub to: u64,
    /// The newest signed checkpoint.
    pub checkpoint: String,
    /// The hashes of the proof, 64 hex digits each (RFC 6962).
    pub proof: Vec<String>,
}

/// The operation over a signed tree.
pub fn operation(tree: impl SignedTree + 'static, summary: &'static str, description: &'static str) -> Operation {
    let tree: Arc<dyn SignedTree> = Arc::new(tree);
    let words = Definition {
        name: "prove_consistency",
        path: "/v1/consistency",
        summary,
        description,
        surface: Surface::Route,
        errors: &[ErrorCode::NotFound],
        example: json!({ "from": 1 }),
        ..Definition::read()
    };
    Operation::define::<Arguments, Consistent, _, _>(words, move |call, arguments| answer(call, Arc::clone(&tree), arguments))
}

async fn answer(call: Call, tree: Arc<dyn SignedTree>, arguments: Arguments) -> Result<Answer, Problem> {
    let (ctx, service) = (&call.context, tree.service());
    SigningState::of(ctx).check_checkpoint(service)?;
    let tree = tree.open(ctx).await?;
    let none = || Problem::new(ErrorCode::NotFound, "there is no checkpoint yet: nothing was signed");
    let sealed = tree.sealed().await?.ok_or_else(none)?;
    let size = sealed.size;
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
