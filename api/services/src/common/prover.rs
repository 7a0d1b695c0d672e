//! The signed trees of this log, and what they prove about themselves.

use async_trait::async_trait;
use operation::context::Context;
use operation::problem::Problem;
use schemas::hash::Hash32;
use schemas::views::receipts::SignedCheckpoint;

/// A tree of this log whose checkpoints are signed.
#[async_trait]
pub trait SignedTree: Send + Sync {
    /// The service that serves the tree.
    fn service(&self) -> &'static str;

    /// Opens the tree in its current state.
    ///
    /// # Errors
    /// `unavailable` when the view does not answer.
    async fn open(&self, ctx: &Context) -> Result<Box<dyn Prover>, Problem>;
}

/// A tree that proves that it holds an earlier one.
#[async_trait]
pub trait Prover: Send + Sync {
    /// The consistency proof from `old` leaves to `size`; `None` if a hash is missing.
    ///
    /// # Errors
    /// When the store fails.
    async fn consistency(&self, size: u64, old: u64) -> Result<Option<Vec<Hash32>>, Problem>;

    /// The newest signed checkpoint; `None` before the first.
    ///
    /// # Errors
    /// When the store fails.
    async fn sealed(&self) -> Result<Option<SignedCheckpoint>, Problem>;
}
