//! Provenance receipts: signed records of an agent's actions, chained for each agent. Inputs and outputs are hashed here and dropped: they are
//! neither stored nor logged.

pub mod operations;
pub mod rules;

use crate::operations::{add_writer, consistency, issue, list, page, pubkey, remove_writer, seal, verify};
use crate::rules::ReceiptsRules;
use std::sync::Arc;

use feed::{RecordFeed, changes, stream};
use operation::context::Context;
use operation::problem::Problem;
use operation::{File, RecordPage};
use proofs::receipt::Receipt;

pub(crate) use crate::operations::rows::Receipts;
pub use crate::operations::rows::SOURCE;
use reads::numbers::ids_without_read;
use reads::registration::{Registration, Task, TaskRole};
use reads::{health, keys, records};

impl RecordFeed for ReceiptsRules {
    /// Listing is free, so everybody sees all receipts.
    const SAMPLE_DAYS: Option<i64> = None;
}

/// How pages show the records.
const PAGE: RecordPage = RecordPage {
    title: &["body.action", "id"],
    detail: &[("agent ", "body.agentId")],
    columns: &["body.agentId", "body.seq", "body.issuedAt", "body.issuer"],
    facet: "body.action",
    ..RecordPage::EMPTY
};

/// The service. Its tree of checkpoints is over the receipts themselves, not over its changes.
#[must_use]
pub fn service() -> Registration {
    Registration::new(
        SOURCE.service,
        "Provenance receipts",
        "Signed, hash-chained receipts of the actions of software agents. An agent's receipts are numbered without gaps, and each names the hash \
            of the previous one. A receipt is checked offline with SHA-256, Ed25519 and canonical JSON (RFC 8785). Inputs and outputs are hashed on \
            arrival and never stored. A chain belongs to the caller of its first receipt; nobody else can append to it unless the owner allows it. \
            Verifying and listing are free.",
    )
    .with_page(PAGE)
    .with(vec![
        issue::operation(),
        verify::operation(),
        list::operation(),
        add_writer::operation(),
        remove_writer::operation(),
        consistency::operation(),
        pubkey::operation(),
    ])
    .with(keys::operations())
    .with(records::operations::<Receipt>(SOURCE, |_, _, text| ids_without_read(vec![text.trim().to_lowercase()])))
    .with(vec![
        changes::operation::<Receipt>(SOURCE, changes::example()),
        stream::operation::<Receipt>(SOURCE),
        health::operation::<health::NoFields>(SOURCE),
    ])
    .with_tree(consistency::ReceiptTree)
    .with_files(Arc::new(|ctx, path| Box::pin(file(ctx, path))))
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
    let receipts = Receipts::now(&ctx).await?;
    match page::file(&receipts, &path).await? {
        Some(page) => Ok(Some(page)),
        None => receipts.tree_file(&ctx, &path).await,
    }
}
