//! The tree over receipts that readers get: the last checkpoint, proofs, tiles.

use std::collections::HashMap;

use proofs::hash::Hash32;
use proofs::tree::{Checkpoint, Question, entry, leaves_of, parse_tile_path};
use schemars::JsonSchema;
use schemas::error_code::ErrorCode;
use schemas::views::receipts::{SignedCheckpoint, state_key};
use serde::Serialize;

use crate::{Receipts, SOURCE};
use operation::File;
use operation::context::Context;
use operation::problem::Problem;
use transparency::witness::CheckpointFile;

/// The proof that a receipt is in a signed tree.
#[derive(Clone, Debug, Serialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct Inclusion {
    /// The index of the leaf, from 0.
    pub leaf_index: u64,
    /// The signed checkpoint: origin, size, root, signature (C2SP tlog-checkpoint).
    pub checkpoint: String,
    /// The key that signed the checkpoint, 64 hex digits; compare it with `/pubkey`.
    pub public_key_hex: String,
    /// The audit path, 64 hex digits each (RFC 6962). The leaf is the receipt's canonical form, of `id`, `body`, `contentHash` and `signature`.
    pub proof: Vec<String>,
}

impl Receipts {
    /// The last checkpoint; `None` before the first.
    pub(crate) async fn sealed(&self) -> Result<Option<SignedCheckpoint>, Problem> {
        self.one(state_key::CHECKPOINT.to_owned()).await
    }

    /// The permanent name of the tree: the address in its first receipt, without the scheme.
    pub(crate) async fn origin(&self) -> Result<Option<String>, Problem> {
        let first: Option<String> = self.one(state_key::entry(0)).await?;
        let receipt = match first {
            Some(id) => self.get(&id).await?,
            None => None,
        };
        let without_scheme = |url: &str| url.split_once("://").map_or(url, |(_, place)| place).to_owned();
        Ok(receipt.map(|receipt| without_scheme(&receipt.body.issuer)))
    }

    /// The number of leaves of the tree.
    pub(crate) async fn leaves(&self) -> Result<u64, Problem> {
        Ok(self.one(state_key::TREE.to_owned()).await?.unwrap_or(0))
    }

    /// The current tree, unsigned. The empty tree has no origin and a root of zeros. `None` if a hash is missing.
    pub(crate) async fn newest(&self) -> Result<Option<Checkpoint>, Problem> {
        let size = self.leaves().await?;
        if size == 0 {
            return Ok(Some(Checkpoint { origin: String::new(), size, root: Hash32::ZERO }));
        }
        let root = self.tree(Question::Root { size }).await?.and_then(|root| root.first().copied());
        Ok(root.zip(self.origin().await?).map(|(root, origin)| Checkpoint { origin, size, root }))
    }

    /// Answers a question about the tree; `None` if a hash is missing.
    pub(crate) async fn tree(&self, question: Question) -> Result<Option<Vec<Hash32>>, Problem> {
        let places = question.places();
        let keys: Vec<String> = places.iter().map(|place| state_key::hash(*place)).collect();
        let found: Vec<Option<String>> = self.remembered(&keys).await?;
        let read = |(place, hash): (u64, Option<String>)| Some((place, Hash32::from_hex(&hash?)?));
        let hashes: HashMap<u64, Hash32> = places.into_iter().zip(found).filter_map(read).collect();
        Ok(question.answer(&hashes))
    }

    /// The proof that a receipt is in the last checkpoint; `None` while it is not.
    pub(crate) async fn inclusion(&self, id: &str) -> Result<Option<Inclusion>, Problem> {
        let (Some(index), Some(sealed)) = (self.one::<u64>(state_key::leaf(id)).await?, self.sealed().await?) else { return Ok(None) };
        let size = sealed.size;
        if index >= size {
            return Ok(None);
        }
        let proof = self.tree(Question::Inclusion { size, index }).await?.ok_or_else(damaged)?;
        Ok(Some(Inclusion {
            leaf_index: index,
            checkpoint: sealed.note,
            public_key_hex: sealed.public_key_hex,
            proof: proof.iter().map(Hash32::to_string).collect(),
        }))
    }

    /// The file at a path of the tree; `None` if there is none. Partial tiles of earlier sizes are served as well.
    pub(crate) async fn tree_file(&self, ctx: &Context, path: &str) -> Result<Option<File>, Problem> {
        if let Some(served) = CheckpointFile::of(path) {
            return served.file(ctx, SOURCE.service, self.sealed().await?).await;
        }
        let Some((tile, is_entries)) = parse_tile_path(path) else { return Ok(None) };
        let sealed = self.sealed().await?.map_or(0, |sealed| sealed.size);
        let file = |bytes: Vec<u8>| File { bytes: bytes.into(), content_type: "application/octet-stream", is_immutable: true, policy: "" };
        if !is_entries {
            // The hashes of a level exist only if all leaves below them do.
            let below = (u128::from(tile.level_index()) * 256 + u128::from(tile.width())) << (8 * u32::from(tile.level()));
            if below > u128::from(sealed) {
                return Ok(None);
            }
            let hashes = self.tree(Question::Tile(tile)).await?.ok_or_else(damaged)?;
            return Ok(Some(file(hashes.iter().flat_map(|hash| hash.0).collect())));
        }
        let leaves = leaves_of(&tile);
        if leaves.end > sealed {
            return Ok(None);
        }
        let keys: Vec<String> = leaves.clone().map(state_key::entry).collect();
        let ids: Vec<String> = self.remembered(&keys).await?.into_iter().flatten().collect();
        let receipts = self.get_many(&ids).await?;
        let mut bundle = Vec::new();
        for receipt in &receipts {
            let entry = entry(receipt).ok_or_else(damaged)?;
            let length = u16::try_from(entry.len()).map_err(|_| damaged())?;
            bundle.extend_from_slice(&length.to_be_bytes());
            bundle.extend_from_slice(&entry);
        }
        if receipts.len() as u64 != leaves.end - leaves.start {
            return Err(damaged());
        }
        Ok(Some(file(bundle)))
    }
}

fn damaged() -> Problem {
    tracing::error!("the tree over receipts lacks a hash or a leaf");
    Problem::new(ErrorCode::Internal, "a stored row cannot be read")
}
