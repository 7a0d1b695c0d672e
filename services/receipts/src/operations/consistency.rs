//! `GET /v1/consistency`: proves that the tree over receipts holds an earlier one.

use async_trait::async_trait;
use proofs::hash::Hash32;
use proofs::tree::Question;
use schemas::views::receipts::SignedCheckpoint;

use crate::{Receipts, SOURCE};
use operation::Operation;
use operation::context::Context;
use operation::problem::Problem;
use transparency::consistency;
use transparency::prover::{Prover, SignedTree};

/// The operation.
#[must_use]
pub fn operation() -> Operation {
    consistency::operation(
        ReceiptTree,
        "Proves that the tree over receipts holds an earlier one.",
        "Keep a checkpoint (`/checkpoint`): with the proof from its size to a later one's you know that nothing below it was changed or taken \
            out. The tree itself is served as tiles, `/tile/…` (C2SP tlog-tiles).",
    )
}

/// The tree over receipts.
pub(crate) struct ReceiptTree;

#[async_trait]
impl SignedTree for ReceiptTree {
    fn service(&self) -> &'static str {
        SOURCE.service
    }

    async fn open(&self, ctx: &Context) -> Result<Box<dyn Prover>, Problem> {
        Ok(Box::new(Receipts::now(ctx).await?))
    }
}

#[async_trait]
impl Prover for Receipts {
    async fn consistency(&self, size: u64, old: u64) -> Result<Option<Vec<Hash32>>, Problem> {
        self.tree(Question::Consistency { size, old }).await
    }

    async fn sealed(&self) -> Result<Option<SignedCheckpoint>, Problem> {
        Receipts::sealed(self).await
    }
}
