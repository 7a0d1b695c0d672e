//! The signed trees of this log, what they prove about themselves, and who signs their checkpoints.

use std::sync::Arc;

use async_trait::async_trait;
use operation::context::Context;
use operation::problem::Problem;
use operation::signing_state::SigningState;
use proofs::hash::Hash32;
use proofs::tree::Checkpoint;
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

/// Decides whether this process may sign a checkpoint. It remembers each checkpoint before it is signed.
#[async_trait]
pub trait CheckpointSigner: Send + Sync {
    /// The keys, and the refusals.
    fn state(&self) -> Arc<SigningState>;

    /// The public key, in hex, that signs while the log names none.
    fn first_key(&self) -> &str;

    /// The public key, in hex, that the log names as the one that signs; empty while it names none.
    ///
    /// # Errors
    /// When the store fails.
    async fn present(&self) -> Result<String, Problem>;

    /// Whether the key may sign: the log was compared with what the key signed, continues it, and names the key's memory.
    fn may_sign(&self, key: &str) -> bool;

    /// Remembers a checkpoint of a service's tree before it is signed. Returns false if it must not be signed.
    ///
    /// # Errors
    /// When the memory or the store fails.
    async fn remember(&self, service: &str, key: &str, checkpoint: &Checkpoint, tree: &dyn Prover) -> Result<bool, Problem>;
}
