//! Provenance receipts: what an agent did, signed, each behind the one before in the agent's chain. Inputs and outputs are hashed here and
//! dropped: they are neither stored nor logged.

pub mod add_writer;
pub mod chain;
pub mod consistency;
pub mod issue;
pub mod list;
pub mod memory;
mod page;
pub mod pubkey;
pub mod remove_writer;
mod rows;
pub mod seal;
pub mod shared_refusals;
pub mod signer;
mod tree;
pub mod verify;

use std::sync::Arc;

use operation::File;
use operation::context::{Context, Part};
use operation::problem::Problem;
use operation::signing_state::SigningState;

pub(crate) use self::rows::Receipts;
pub use self::rows::{SOURCE, Shown};
use crate::common::{health, keys};
use crate::registration::{Registration, Task, TaskRole};

/// The service. Its tree of checkpoints is over the receipts themselves, not over its changes.
#[must_use]
pub fn service() -> Registration {
    Registration::new(
        "receipts",
        "Provenance receipts",
        "Signed, hash-chained receipts of what software agents did. Each agent's receipts count up without a gap, each naming the hash of \
            the one before; a receipt is checked offline with SHA-256, Ed25519 and canonical JSON (RFC 8785). Inputs and outputs are hashed on \
            arrival and never kept. A chain belongs to the first caller it is issued to; nobody else can append to it unless the owner allows it. \
            Verifying and listing are free.",
    )
    .with(vec![
            issue::operation(),
            verify::operation(),
            list::operation(),
            add_writer::operation(),
            remove_writer::operation(),
            consistency::operation(),
            pubkey::operation(),
            keys::operation(),
            health::operation(SOURCE),
        ])
    .with_files(|ctx, path| Box::pin(file(ctx, path)))
    .with_tasks(&[
        Task { role: TaskRole::Project, run: |given| Box::pin(seal::run(given)) },
        Task { role: TaskRole::Project, run: |given| Box::pin(pubkey::keep_first_named(given)) },
    ])
}

/// The files next to the operations: the page of a receipt, the checkpoint, the tiles.
async fn file(ctx: Arc<Context>, path: String) -> Result<Option<File>, Problem> {
    if !["checkpoint", "vkey", "tile/", "verify/", "verify.js"].iter().any(|own| path.starts_with(own)) {
        return Ok(None);
    }
    if path.starts_with("checkpoint") {
        SigningState::of(&ctx).check_checkpoint(SOURCE.service)?;
    }
    let receipts = Receipts::now(&ctx).await?;
    match page::file(&receipts, &path).await? {
        Some(page) => Ok(Some(page)),
        None => receipts.tree_file(&ctx, &path).await,
    }
}
