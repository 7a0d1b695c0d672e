//! The stored tree over the changes of a service: leaves, tiles, the newest signed checkpoint.

use std::collections::HashMap;
use std::sync::Arc;

use async_trait::async_trait;
use bytes::Bytes;
use operation::context::{Context, store_problem, stored};
use operation::problem::Problem;
use proofs::hash::Hash32;
use proofs::tree::{self, Question, TilePlace, tile_holding};
use schemas::error_code::ErrorCode;
use schemas::key;
use schemas::tables::{Key, Table};
use schemas::views::receipts::SignedCheckpoint;
use serde::de::DeserializeOwned;
use view_store::View;

use super::prover::{Prover, SignedTree};
use super::trees::{SIGNED_CHECKPOINTS, TILES, VIEW};

/// The stored tree over the changes of a service.
pub(crate) struct Tree {
    pub(super) view: Arc<dyn View>,
    pub(super) service: &'static str,
}

impl Tree {
    pub(crate) async fn now(ctx: &Context, service: &'static str) -> Result<Self, Problem> {
        Ok(Self { view: ctx.live(&VIEW).await?, service })
    }

    pub(super) async fn row<T: DeserializeOwned>(&self, table: &'static Table) -> Result<Option<T>, Problem> {
        let row = self.view.get(table, &key![self.service]).await.map_err(store_problem)?;
        row.map(|bytes| stored(table, &bytes)).transpose()
    }

    /// The newest signed checkpoint.
    pub(crate) async fn sealed(&self) -> Result<Option<SignedCheckpoint>, Problem> {
        self.row(&SIGNED_CHECKPOINTS).await
    }

    /// The tiles at some places, in their order. A place is the level, which is [`ENTRIES_LEVEL`] for the leaves, and the number within it.
    pub(super) async fn tiles(&self, places: &[(i64, u64)]) -> Result<Vec<Option<Bytes>>, Problem> {
        let keys: Vec<Key> = places.iter().map(|(level, number)| tile_key(self.service, *level, *number)).collect();
        self.view.get_many(&TILES, &keys).await.map_err(store_problem)
    }

    /// Answers a question about the tree; `None` if a hash is missing.
    pub(super) async fn ask(&self, question: Question) -> Result<Option<Vec<Hash32>>, Problem> {
        let places = question.places();
        let mut tiles: Vec<TilePlace> = places.iter().map(|place| tile_holding(*place)).collect();
        tiles.sort_unstable();
        tiles.dedup();
        let wanted: Vec<(i64, u64)> = tiles.iter().map(|(level, number)| (i64::from(*level), *number)).collect();
        let rows: HashMap<TilePlace, Option<Bytes>> = tiles.into_iter().zip(self.tiles(&wanted).await?).collect();
        let hash = |place: &u64| {
            let tile = tile_holding(*place);
            Some((*place, tree::hash_in_tile(tile, rows.get(&tile)?.as_ref()?, *place)?))
        };
        let hashes: HashMap<u64, Hash32> = places.iter().filter_map(hash).collect();
        Ok(question.answer(&hashes))
    }
}

/// The tree over the changes of a service, by the name of the service.
pub struct ChangeTree(pub &'static str);

#[async_trait]
impl SignedTree for ChangeTree {
    fn service(&self) -> &'static str {
        self.0
    }

    async fn open(&self, ctx: &Context) -> Result<Box<dyn Prover>, Problem> {
        Ok(Box::new(Tree::now(ctx, self.0).await?))
    }
}

#[async_trait]
impl Prover for Tree {
    async fn consistency(&self, size: u64, old: u64) -> Result<Option<Vec<Hash32>>, Problem> {
        self.ask(Question::Consistency { size, old }).await
    }

    async fn sealed(&self) -> Result<Option<SignedCheckpoint>, Problem> {
        Tree::sealed(self).await
    }
}

pub(super) fn tile_key(service: &str, level: i64, number: u64) -> Key {
    key![service, level, i64::try_from(number).unwrap_or(i64::MAX)]
}

pub(super) fn damaged() -> Problem {
    Problem::new(ErrorCode::Internal, "the tree over changes lacks a hash")
}
