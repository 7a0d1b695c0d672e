//! Seals the tree over receipts: what was read back is signed, and named by a command, so that every node serves the same checkpoint.

use std::sync::Arc;
use std::time::Duration;

use schemas::receipt::SigningKeys;
use schemas::tree::{Checkpoint, Question};
use schemas::views::receipts::{CHECKPOINT, ReceiptCommand, TABLES};
use view_store::lease::Lease;

use super::{Receipts, SOURCE};
use crate::access::append::{Once, command};
use crate::context::{Context, store_problem};
use crate::problem::Problem;

/// Between two looks: a receipt is in a checkpoint within a second.
const EVERY: Duration = Duration::from_millis(400);

/// Seals the tree whenever it has grown, until the server stops. One process at a time does; two do no harm.
pub async fn run(ctx: Arc<Context>, keys: Arc<SigningKeys>, holder: String) {
    let mut lease = Lease::new(&ctx.store, "receipts/seal".to_owned(), &holder);
    loop {
        let turn = async { if lease.renew().await.map_err(store_problem)? { seal(&ctx, &keys).await } else { Ok(()) } };
        tokio::select! {
            sealed = turn => {
                if let Err(problem) = sealed {
                    tracing::warn!(reason = problem.detail, "the tree over receipts could not be sealed");
                }
            }
            () = ctx.stopped() => break,
        }
        tokio::select! {
            () = tokio::time::sleep(EVERY) => {}
            () = ctx.stopped() => break,
        }
    }
    lease.release().await;
}

async fn seal(ctx: &Context, keys: &SigningKeys) -> Result<(), Problem> {
    let receipts = Receipts::now(ctx).await?;
    let size = receipts.leaves().await?;
    let sealed = receipts.sealed().await?.map_or(0, |sealed| u64::try_from(sealed.size).unwrap_or(0));
    if size <= sealed {
        return Ok(());
    }
    let Some(root) = receipts.tree(Question::Root { size }).await?.and_then(|root| root.first().copied()) else { return Ok(()) };
    let signing = receipts.signing().await?;
    let Some(key) = signing.keys.last() else { return Ok(()) };
    let base_url = ctx.settings.services.get(SOURCE.service).map(|own| own.base_url.as_str()).unwrap_or_default();
    let origin = base_url.split_once("://").map_or(base_url, |(_, place)| place).to_owned();
    let Some(note) = (Checkpoint { origin, size, root }).sign(keys, &key.public_key_hex) else {
        // Another node has the key.
        return Ok(());
    };
    let named = ReceiptCommand {
        verb: CHECKPOINT.to_owned(),
        size: i64::try_from(size).unwrap_or(i64::MAX),
        note,
        public_key: key.public_key_hex.clone(),
        ..ReceiptCommand::default()
    };
    command(ctx, TABLES.view, CHECKPOINT, Once::No, &named).await
}
