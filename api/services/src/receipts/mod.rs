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
pub mod seal;
pub mod shared_refusals;
pub mod signer;
mod tree;
pub mod verify;

use operation::signing_state::SigningState;
use std::sync::Arc;

use schemars::JsonSchema;
use schemas::key;
use schemas::receipt::Receipt;
use schemas::topics::CHANGES_RECEIPTS;
use schemas::views::receipts::{SigningHistory, TABLES, source};
use schemas::views::records::Row;
use serde::Serialize;
use serde::de::DeserializeOwned;
use view_store::View;

use crate::common::{health, keys};
use crate::registration::{Registration, Task, TaskRole};
use feed::Source;
use operation::File;
use operation::context::{Context, Part, store_problem, stored};
use operation::problem::Problem;

/// Where the service's changes are.
pub const SOURCE: Source = Source {
    service: "receipts",
    view: TABLES.view,
    feed: TABLES.feed,
    through: TABLES.through,
    topic: &CHANGES_RECEIPTS,
    facts: &[],
    sample_days: None,
};

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

/// What stands beside the operations: the page of a receipt, the checkpoint, the tiles.
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

/// A receipt as it is shown.
#[derive(Clone, Debug, Serialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct Shown {
    #[serde(flatten)]
    receipt: Receipt,
    /// A page that checks it, for people.
    verify_url: String,
}

impl From<Receipt> for Shown {
    fn from(receipt: Receipt) -> Self {
        let verify_url = format!("{}/verify/{}", receipt.body.issuer, receipt.id);
        Self { receipt, verify_url }
    }
}

/// The receipts as they stand.
pub(crate) struct Receipts {
    view: Arc<dyn View>,
}

impl Receipts {
    pub(crate) async fn now(ctx: &Context) -> Result<Self, Problem> {
        Ok(Self { view: ctx.live(TABLES.view).await? })
    }

    /// The receipt of an id.
    pub(crate) async fn get(&self, id: &str) -> Result<Option<Receipt>, Problem> {
        let row = self.view.get(TABLES.records, &key![id]).await.map_err(store_problem)?;
        row.map(|bytes| stored::<Row<Receipt>>(TABLES.records, &bytes).map(|row| row.record)).transpose()
    }

    /// The receipts of some ids, in their order; those that are not there are left out.
    pub(crate) async fn get_many(&self, ids: &[String]) -> Result<Vec<Receipt>, Problem> {
        let keys: Vec<_> = ids.iter().map(|id| key![id.as_str()]).collect();
        let rows = self.view.get_many(TABLES.records, &keys).await.map_err(store_problem)?;
        rows.into_iter().flatten().map(|bytes| stored::<Row<Receipt>>(TABLES.records, &bytes).map(|row| row.record)).collect()
    }

    /// What decisions remember under some keys, in their order.
    pub(crate) async fn remembered<T: DeserializeOwned>(&self, sources: &[String]) -> Result<Vec<Option<T>>, Problem> {
        let keys: Vec<_> = sources.iter().map(|source| key![source.as_str()]).collect();
        let rows = self.view.get_many(TABLES.sources, &keys).await.map_err(store_problem)?;
        rows.into_iter().map(|row| row.map(|bytes| stored(TABLES.sources, &bytes)).transpose()).collect()
    }

    /// What decisions remember under one key.
    pub(crate) async fn one<T: DeserializeOwned>(&self, source: String) -> Result<Option<T>, Problem> {
        Ok(self.remembered(&[source]).await?.pop().flatten())
    }

    /// The keys that sign.
    pub(crate) async fn signing(&self) -> Result<SigningHistory, Problem> {
        Ok(self.one(source::SIGNING.to_owned()).await?.unwrap_or_default())
    }
}
