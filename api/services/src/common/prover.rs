//! Trees that prove what they hold.

use async_trait::async_trait;
use operation::problem::Problem;
use schemas::hash::Hash32;
use schemas::views::receipts::SignedCheckpoint;

/// A tree that proves that it holds an earlier one.
#[async_trait]
pub(crate) trait Prover: Send + Sync {
    /// The consistency proof from `old` leaves to `size`; `None` if the tree has not that many.
    async fn consistency(&self, size: u64, old: u64) -> Result<Option<Vec<Hash32>>, Problem>;

    /// The newest signed checkpoint, once there is one.
    async fn sealed(&self) -> Result<Option<SignedCheckpoint>, Problem>;
}
