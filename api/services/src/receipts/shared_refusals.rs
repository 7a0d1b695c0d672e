//! What the nodes that share a store tell each other of refused signatures: only those that decide compare the log with the signer's memory, but
//! every node that answers requests has to show a refusal, and must not give out a checkpoint that its tree does not stand for.
//!
//! What decides receipts says whether receipts are signed, and what grows the trees over changes says which of them are not. Each is one process at a
//! time, by lease; the others read what it said.

use operation::context::Part;
use operation::signing_state::SigningState;
use std::sync::Arc;
use std::time::Duration;

use schemas::error_code::ErrorCode;
use schemas::receipt::Refusal;
use serde::Serialize;
use serde::de::DeserializeOwned;

use crate::common::checkpoints::SEAL_LEASE;
use operation::context::{Context, store_problem};
use operation::problem::Problem;
use operation::signing_state::RefusedTrees;

/// Between two exchanges: how late a node shows a refusal.
const EXCHANGE_INTERVAL: Duration = Duration::from_secs(2);
/// Where the process that decides receipts says why none is signed.
const RECEIPTS: &str = "signing-refusal/receipts";
/// Where the process that grows the trees says which are not signed.
const TREES: &str = "signing-refusal/trees";

/// A process that takes part.
#[derive(Clone, Debug)]
pub struct Participant {
    /// What its leases are held by.
    pub holder: String,
    /// The lease of the decider of receipts.
    pub decider_lease: String,
    /// Whether it compares the log with the memory itself; one that does not believes what is said.
    pub is_signer: bool,
}

impl Participant {
    /// Exchanges again and again, until the server stops.
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

    /// Says what this process refuses, if it is the one to say it, and takes in what the others do.
    ///
    /// # Errors
    /// When the store fails.
    pub async fn exchange(&self, ctx: &Context) -> Result<(), Problem> {
        if self.is_signer {
            if self.holds(ctx, &self.decider_lease).await? {
                publish(ctx, RECEIPTS, &SigningState::of(ctx).refusal()).await?;
            }
        } else {
            let refusal: Option<Refusal> = said(ctx, RECEIPTS).await?;
            SigningState::of(ctx).keys().set_refusal(refusal);
        }
        if self.is_signer && self.holds(ctx, SEAL_LEASE).await? {
            publish(ctx, TREES, &SigningState::of(ctx).refused_trees()).await?;
        } else {
            let trees: RefusedTrees = said(ctx, TREES).await?;
            SigningState::of(ctx).set_refused_trees(trees);
        }
        Ok(())
    }

    async fn holds(&self, ctx: &Context, lease: &str) -> Result<bool, Problem> {
        let holder = ctx.store.coordination().holder(lease).await.map_err(store_problem)?;
        Ok(holder.as_deref() == Some(&self.holder))
    }
}

/// What was said last; the default if nothing was.
async fn said<T: DeserializeOwned + Default>(ctx: &Context, name: &str) -> Result<T, Problem> {
    let Some(text) = ctx.store.coordination().value(name).await.map_err(store_problem)? else { return Ok(T::default()) };
    serde_json::from_str(&text).map_err(|error| {
        tracing::error!(%error, name, "what a signer said cannot be read");
        Problem::new(ErrorCode::Internal, "a stored row cannot be read")
    })
}

/// Says it, unless that was said last.
async fn publish<T: Serialize + DeserializeOwned + Default + PartialEq>(ctx: &Context, name: &str, value: &T) -> Result<(), Problem> {
    if said::<T>(ctx, name).await.is_ok_and(|said| said == *value) {
        return Ok(());
    }
    let text = serde_json::to_string(value).map_err(|error| Problem::new(ErrorCode::Internal, error.to_string()))?;
    ctx.store.coordination().store(name, &text).await.map_err(store_problem)
}
