//! Seals the tree over receipts: what was read back is signed, and named by a command, so that every node serves the same checkpoint.

use std::sync::Arc;
use std::time::Duration;

use schemas::receipt::SigningKeys;
use schemas::tree::{Checkpoint, Question};
use schemas::views::receipts::{CHECKPOINT, ReceiptCommand, TABLES};
use view_store::lease::Lease;

use super::Receipts;
use crate::access::append::{Once, command};
use crate::context::{Context, store_problem};
use crate::problem::Problem;

/// Between two looks: a receipt is in a checkpoint within a second.
const EVERY: Duration = Duration::from_millis(400);

/// Seals the tree whenever it has grown, until the server stops. One process at a time does, of those that have the key; two do no harm.
pub async fn run(ctx: Arc<Context>, keys: Arc<SigningKeys>, holder: String) {
    let mut lease = Lease::new(&ctx.store, "receipts/seal".to_owned(), &holder);
    let mut is_warned = false;
    loop {
        let turn = async {
            let Some(grown) = Grown::find(&ctx).await? else { return Ok(true) };
            if !keys.public().contains(&grown.public_key) {
                lease.release().await;
                return Ok(false);
            }
            if lease.renew().await.map_err(store_problem)? {
                grown.seal(&ctx, &keys).await?;
            }
            Ok::<_, Problem>(true)
        };
        tokio::select! {
            sealed = turn => match sealed {
                Ok(has_key) => {
                    if !has_key && !is_warned {
                        tracing::warn!("the key of receipts is not on this node: another one must sign the tree over them");
                    }
                    is_warned = !has_key;
                }
                Err(problem) => tracing::warn!(reason = problem.detail, "the tree over receipts could not be sealed"),
            },
            () = ctx.stopped() => break,
        }
        tokio::select! {
            () = tokio::time::sleep(EVERY) => {}
            () = ctx.stopped() => break,
        }
    }
    lease.release().await;
}

/// A tree that is larger than the last one sealed.
struct Grown {
    checkpoint: Checkpoint,
    public_key: String,
}

impl Grown {
    async fn find(ctx: &Context) -> Result<Option<Self>, Problem> {
        let receipts = Receipts::now(ctx).await?;
        let size = receipts.leaves().await?;
        let sealed = receipts.sealed().await?.map_or(0, |sealed| u64::try_from(sealed.size).unwrap_or(0));
        let key = receipts.signing().await?.keys.pop();
        let (Some(key), true) = (key, size > sealed) else { return Ok(None) };
        let Some(root) = receipts.tree(Question::Root { size }).await?.and_then(|root| root.first().copied()) else { return Ok(None) };
        let Some(origin) = receipts.origin().await? else { return Ok(None) };
        Ok(Some(Self { checkpoint: Checkpoint { origin, size, root }, public_key: key.public_key_hex }))
    }

    /// Signs it, and names it by a command.
    async fn seal(self, ctx: &Context, keys: &SigningKeys) -> Result<(), Problem> {
        let Self { checkpoint, public_key } = self;
        let Some(note) = checkpoint.sign(keys, &public_key) else { return Ok(()) };
        let size = i64::try_from(checkpoint.size).unwrap_or(i64::MAX);
        let named = ReceiptCommand { verb: CHECKPOINT.to_owned(), size, note, public_key, ..ReceiptCommand::default() };
        command(ctx, TABLES.view, CHECKPOINT, Once::No, &named).await
    }
}
