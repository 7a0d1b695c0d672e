//! Shares refused signatures between the nodes of a store. Only the nodes that decide compare the log with the signer's memory, but every node that
//! answers requests has to show a refusal, and must not give out a checkpoint that the tree does not back.
//!
//! The process that decides receipts publishes whether receipts are signed, and the process that extends the trees over changes publishes which are not
//! signed. Each is one process at a time, by lease; the others read what it published.

use operation::context::Part;
use operation::signing_state::SigningState;
use std::sync::Arc;
use std::time::Duration;

use proofs::receipt::Refusal;
use schemas::error_code::ErrorCode;
use serde::Serialize;
use serde::de::DeserializeOwned;

use operation::context::{Context, store_problem};
use operation::problem::Problem;
use operation::signing_state::RefusedTrees;
use transparency::checkpoints::SEAL_LEASE;

/// The pause between two exchanges, which is how late a node shows a refusal.
const EXCHANGE_INTERVAL: Duration = Duration::from_secs(2);
/// The value in which the process that decides receipts publishes why none is signed.
const RECEIPTS: &str = "signing-refusal/receipts";
/// The value in which the process that extends the trees publishes which are not signed.
const TREES: &str = "signing-refusal/trees";

/// A process that shares refusals.
#[derive(Clone, Debug)]
pub struct Participant {
    /// The holder of its leases.
    pub holder: String,
    /// The lease of the process that decides receipts.
    pub decider_lease: String,
    /// Whether the process compares the log with the memory itself. Otherwise it relies on what others publish.
    pub is_signer: bool,
}

impl Participant {
    /// Exchanges refusals repeatedly until the server stops.
    pub async fn run(self, ctx: Arc<Context>) {
        let exchanging = async {
            loop {
                if let Err(problem) = self.exchange(&ctx).await {
                    tracing::warn!(reason = problem.detail, "it is not known what other nodes refuse to sign, will retry");
                }
                tokio::time::sleep(EXCHANGE_INTERVAL).await;
            }
        };
        tokio::select! {
            () = exchanging => {}
            () = ctx.stopped() => {}
        }
    }

    /// Publishes the refusals of this process if it holds the lease, and otherwise reads those of others.
    ///
    /// # Errors
    /// When the store fails.
    pub async fn exchange(&self, ctx: &Context) -> Result<(), Problem> {
        if self.is_signer {
            if self.holds(ctx, &self.decider_lease).await? {
                publish(ctx, RECEIPTS, &SigningState::of(ctx).refusal()).await?;
            }
        } else {
            let refusal: Option<Refusal> = published(ctx, RECEIPTS).await?;
            SigningState::of(ctx).keys().set_refusal(refusal);
        }
        if self.is_signer && self.holds(ctx, SEAL_LEASE).await? {
            publish(ctx, TREES, &SigningState::of(ctx).refused_trees()).await?;
        } else {
            let trees: RefusedTrees = published(ctx, TREES).await?;
            SigningState::of(ctx).set_refused_trees(trees);
        }
        Ok(())
    }

    async fn holds(&self, ctx: &Context, lease: &str) -> Result<bool, Problem> {
        let holder = ctx.store.coordination().holder(lease).await.map_err(store_problem)?;
        Ok(holder.as_deref() == Some(&self.holder))
    }
}

/// The last published value; the default if there is none.
async fn published<T: DeserializeOwned + Default>(ctx: &Context, name: &str) -> Result<T, Problem> {
    let Some(text) = ctx.store.coordination().value(name).await.map_err(store_problem)? else { return Ok(T::default()) };
    serde_json::from_str(&text).map_err(|error| {
        tracing::error!(%error, name, "a published refusal cannot be read");
        Problem::new(ErrorCode::Internal, "a stored row cannot be read")
    })
}

/// Publishes a value unless it is the last published one.
async fn publish<T: Serialize + DeserializeOwned + Default + PartialEq>(ctx: &Context, name: &str, value: &T) -> Result<(), Problem> {
    if published::<T>(ctx, name).await.is_ok_and(|last| last == *value) {
        return Ok(());
    }
    let text = serde_json::to_string(value).map_err(|error| Problem::new(ErrorCode::Internal, error.to_string()))?;
    ctx.store.coordination().store(name, &text).await.map_err(store_problem)
}
