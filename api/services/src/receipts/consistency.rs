//! `GET /v1/consistency`: that a tree over receipts holds an earlier one.

use async_trait::async_trait;
use schemas::hash::Hash32;
use schemas::tree::Question;
use schemas::views::receipts::SignedCheckpoint;

use super::{Receipts, SOURCE};
use crate::common::consistency;
use crate::common::prover::Prover;
use operation::Operation;
use operation::problem::Problem;

/// The operation.
#[must_use]
pub fn operation() -> Operation {
    consistency::operation(
        SOURCE.service,
        "Proves that the tree over receipts holds an earlier one.",
        "Keep a checkpoint (`/checkpoint`): with the proof from its size to a later one's you know that nothing below it was changed or taken \
            out. The tree itself is served as tiles, `/tile/…` (C2SP tlog-tiles).",
        |ctx| async move { Receipts::now(&ctx).await },
    )
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
