//! Signs checkpoints of the tree over receipts. The signer remembers a checkpoint before it is signed, and a command records it, so that every node
//! serves the same checkpoint.

use reads::registration::TaskContext;
use std::sync::Arc;
use std::time::Duration;

use proofs::tree::Checkpoint;
use schemas::views::receipts::{CHECKPOINT, ReceiptCommand, SignedCheckpoint, TABLES};
use tokio::time::Instant;
use view_store::lease::Lease;
use view_store::{Checkpoint as ViewCheckpoint, View};

use super::signer::TREE;
use crate::Receipts;
use access::append::{CommandPolicy, append_command};
use operation::context::{Context, store_problem};
use operation::problem::Problem;
use transparency::prover::CheckpointSigner;

/// The pause between two checks for new receipts: a receipt is in a checkpoint within a second.
const EVERY: Duration = Duration::from_millis(400);
/// The longest pause until the next check while no receipts come.
const LOOKED_ANYWAY: Duration = Duration::from_secs(10);

/// The result of a check.
enum Looked {
    /// The last signed checkpoint covers all receipts of the view at this position.
    UpToDate(Arc<dyn View>, ViewCheckpoint),
    /// The tree had grown; it was signed here, or another process signs it.
    Unsigned,
    /// The tree had grown, and the key that signs it is not on this node.
    NoKey,
    /// The tree had grown, and the signer refuses to sign and logs the reason.
    Refused,
}

/// Signs the tree whenever it has grown, until the server stops. One process with the key does this at a time; two at once do no harm.
pub async fn run(given: Arc<TaskContext>) {
    let TaskContext { context: ctx, signer, holder } = &*given;
    let mut lease = Lease::new(&ctx.store, "receipts/seal".to_owned(), holder);
    let mut is_warned = false;
    let sealing = async {
        loop {
            // After a start, and after damage, the view is first completed from the log.
            ctx.store.served(&[TABLES.view.name]).await;
            let looked_at = Instant::now();
            match look(ctx, &**signer, &mut lease).await {
                Ok(Looked::UpToDate(view, at)) => {
                    // Nothing to do until receipts come. If the view is gone, the next check opens another.
                    let _ = tokio::time::timeout(LOOKED_ANYWAY, view.wait_past(&at)).await;
                    is_warned = false;
                }
                Ok(Looked::Unsigned | Looked::Refused) => is_warned = false,
                Ok(Looked::NoKey) => {
                    if !std::mem::replace(&mut is_warned, true) {
                        tracing::warn!("the key of receipts is not on this node: another one must sign the tree over them");
                    }
                }
                Err(problem) => tracing::warn!(reason = problem.detail, "the tree over receipts could not be sealed"),
            }
            tokio::time::sleep_until(looked_at + EVERY).await;
        }
    };
    tokio::select! {
        () = sealing => {}
        () = ctx.stopped() => {}
    }
    lease.release().await;
}

async fn look(ctx: &Context, signer: &dyn CheckpointSigner, lease: &mut Lease) -> Result<Looked, Problem> {
    let view = ctx.live(TABLES.view).await?;
    let at = view.checkpoint().await.map_err(store_problem)?;
    let Some(grown) = UnsignedTree::find(ctx).await? else { return Ok(Looked::UpToDate(view, at)) };
    if !signer.state().keys().public().contains(&grown.public_key) {
        lease.release().await;
        return Ok(Looked::NoKey);
    }
    if !signer.may_sign(&grown.public_key) {
        lease.release().await;
        return Ok(Looked::Refused);
    }
    if lease.renew().await.map_err(store_problem)? {
        grown.seal(ctx, signer).await?;
    }
    Ok(Looked::Unsigned)
}

/// A tree that is larger than the last signed checkpoint.
struct UnsignedTree {
    checkpoint: Checkpoint,
    public_key: String,
}

impl UnsignedTree {
    async fn find(ctx: &Context) -> Result<Option<Self>, Problem> {
        let receipts = Receipts::now(ctx).await?;
        let size = receipts.leaves().await?;
        let sealed = receipts.sealed().await?.map_or(0, |sealed| sealed.size);
        let key = receipts.signing().await?.keys.pop();
        let (Some(key), true) = (key, size > sealed) else { return Ok(None) };
        let newest = receipts.newest().await?;
        Ok(newest.map(|checkpoint| Self { checkpoint, public_key: key.public_key_hex }))
    }

    /// Has the signer remember the checkpoint, signs it, and records it with a command. Does nothing if the signer refuses.
    async fn seal(self, ctx: &Context, signer: &dyn CheckpointSigner) -> Result<(), Problem> {
        let Self { checkpoint, public_key } = self;
        let receipts = Receipts::now(ctx).await?;
        if !signer.remember(TREE, &public_key, &checkpoint, &receipts).await? {
            return Ok(());
        }
        let Some(note) = checkpoint.sign(signer.state().keys(), &public_key) else { return Ok(()) };
        let named = ReceiptCommand::Checkpoint(SignedCheckpoint { size: checkpoint.size, note, public_key_hex: public_key });
        append_command(ctx, TABLES.view, CHECKPOINT, CommandPolicy::Always, &named).await
    }
}
