//! Signed checkpoints of every service's changes (C2SP tlog-checkpoint, tlog-tiles): leaf `i` is the hash of the change with seq `i + 1`, the one
//! that the change after it names as `prevHash`, so that whoever consumes the topic can compute each. The trees grow behind the log, in batches,
//! one process at a time; the receipts have a tree of their own.

use std::collections::{BTreeMap, HashMap};
use std::sync::Arc;
use std::time::Duration;

use async_trait::async_trait;
use bytes::Bytes;
use futures_util::future::select_all;
use schemars::JsonSchema;
use schemas::avro;
use schemas::error_code::ErrorCode;
use schemas::hash::Hash32;
use schemas::key;
use schemas::position::LogOffset;
use schemas::reason::reason;
use schemas::tables::{Key, Table, Write};
use schemas::tree::{self, Checkpoint, Edge, Question, TilePlace, parse_tile_path, tile_holding};
use schemas::views::receipts::SignedCheckpoint;
use schemas::views::trees::{ENTRIES_LEVEL, SIGNED_CHECKPOINTS, SIZES, TILES, TreeSize, VIEW};
use serde::de::DeserializeOwned;
use serde::{Deserialize, Serialize};
use serde_json::json;
use tokio::time::Instant;
use view_store::lease::{LEASE, Lease};
use view_store::{Checkpoint as ViewCheckpoint, View};

use crate::context::{Context, store_problem, stored};
use crate::feed::Source;
use crate::operation::{Answer, Call, File, Method, Operation, Price, Words};
use crate::problem::Problem;
use crate::services::receipts::Receipts;
use crate::services::receipts::signer::{Prover, Signer};

/// The shortest time between two checkpoints of a tree.
const SIGN_INTERVAL: Duration = Duration::from_secs(1);
/// Changes read and committed at once.
const BATCH_CHANGES: usize = 2_000;
/// Bytes of changes read at once.
const BATCH_BYTES: usize = 8 << 20;
/// Bytes of the hashes in a full tile.
const TILE_BYTES: usize = 256 * 32;

/// What a change says of its place in the chain.
#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
struct Link {
    seq: i64,
    prev_hash: Hash32,
}

/// The tree over the changes of a service, as it is stored.
struct Tree {
    view: Arc<dyn View>,
    service: &'static str,
}

impl Tree {
    async fn now(ctx: &Context, service: &'static str) -> Result<Self, Problem> {
        Ok(Self { view: ctx.live(&VIEW).await?, service })
    }

    async fn row<T: DeserializeOwned>(&self, table: &'static Table) -> Result<Option<T>, Problem> {
        let row = self.view.get(table, &key![self.service]).await.map_err(store_problem)?;
        row.map(|bytes| stored(table, &bytes)).transpose()
    }

    /// The newest signed checkpoint.
    async fn sealed(&self) -> Result<Option<SignedCheckpoint>, Problem> {
        self.row(&SIGNED_CHECKPOINTS).await
    }

    /// Tiles by their level (that of the leaves is [`ENTRIES_LEVEL`]) and number, in that order.
    async fn tiles(&self, places: &[(i64, u64)]) -> Result<Vec<Option<Bytes>>, Problem> {
        let keys: Vec<Key> = places.iter().map(|(level, number)| tile_key(self.service, *level, *number)).collect();
        self.view.get_many(&TILES, &keys).await.map_err(store_problem)
    }

    /// What the tree answers; `None` where it has nothing of the kind.
    async fn ask(&self, question: Question) -> Result<Option<Vec<Hash32>>, Problem> {
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

#[async_trait]
impl Prover for Tree {
    async fn consistency(&self, size: u64, old: u64) -> Result<Option<Vec<Hash32>>, Problem> {
        self.ask(Question::Consistency { size, old }).await
    }
}

fn tile_key(service: &str, level: i64, number: u64) -> Key {
    key![service, level, i64::try_from(number).unwrap_or(i64::MAX)]
}

fn damaged() -> Problem {
    Problem::new(ErrorCode::Internal, "the tree over changes lacks a hash")
}

/// What is served at a path of a service's tree: `checkpoint`, and the tiles; `None` for what is not there.
///
/// # Errors
/// When the store fails.
pub async fn file(ctx: Arc<Context>, source: Source, path: String) -> Result<Option<File>, Problem> {
    if path != "checkpoint" && !path.starts_with("tile/") {
        return Ok(None);
    }
    let tree = Tree::now(&ctx, source.service).await?;
    let Some(sealed) = tree.sealed().await? else { return Ok(None) };
    if path == "checkpoint" {
        return Ok(Some(File { bytes: sealed.note.into(), content_type: "text/plain; charset=utf-8", lasts: false, policy: "" }));
    }
    let Some((tile, is_entries)) = parse_tile_path(&path) else { return Ok(None) };
    // Hashes of a level exist once all leaves below them do.
    let below = (u128::from(tile.level_index()) * 256 + u128::from(tile.width())) << (8 * u32::from(tile.level()));
    if below > u128::try_from(sealed.size).unwrap_or(0) {
        return Ok(None);
    }
    let level = if is_entries { ENTRIES_LEVEL } else { i64::from(tile.level()) };
    let row = tree.tiles(&[(level, tile.level_index())]).await?.pop().flatten();
    let bytes = usize::try_from(tile.width()).unwrap_or(usize::MAX).saturating_mul(32);
    let hashes = row.filter(|hashes| hashes.len() >= bytes).map(|hashes| hashes.slice(..bytes)).ok_or_else(damaged)?;
    let bytes = if is_entries {
        hashes.chunks(32).flat_map(|hash| [0, 32].into_iter().chain(hash.iter().copied())).collect::<Vec<u8>>().into()
    } else {
        hashes
    };
    Ok(Some(File { bytes, content_type: "application/octet-stream", lasts: true, policy: "" }))
}

/// Arguments of `prove_consistency`.
#[derive(Clone, Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct Arguments {
    /// Changes in the earlier tree: the size in a checkpoint that you kept.
    #[schemars(range(min = 1))]
    pub from: u64,
    /// Changes in the later tree; by default those in the newest checkpoint.
    #[schemars(range(min = 1))]
    pub to: Option<u64>,
}

/// The proof.
#[derive(Clone, Debug, Serialize, JsonSchema)]
pub struct Consistent {
    /// Changes in the earlier tree.
    pub from: u64,
    /// Changes in the later tree.
    pub to: u64,
    /// The newest checkpoint, signed.
    pub checkpoint: String,
    /// The proof, 64 hex digits each (RFC 6962).
    pub proof: Vec<String>,
}

/// The operation for one service.
#[must_use]
pub fn operation(source: Source) -> Operation {
    let words = Words {
        name: "prove_consistency",
        method: Method::Get,
        path: "/v1/consistency",
        summary: "Proves that the tree over this service's changes holds an earlier one.",
        description: "Keep a checkpoint (`/checkpoint`): with the proof from its size to a later one's you know that no change below it was altered or \
            taken out (`highwater verify --old --new --proof`). Leaf `i` of the tree is the hash of the change with seq `i + 1`, as the next change \
            names it in `prevHash`; the tree is served as tiles, `/tile/…` (C2SP tlog-tiles).",
        price: Price::Free,
        tool: false,
        counted: true,
        list: "",
        errors: &[ErrorCode::NotFound],
        example: json!({ "from": 1 }),
        aliases: &[],
    };
    Operation::define::<Arguments, Consistent, _, _>(words, move |call, arguments| answer(source, call, arguments))
}

async fn answer(source: Source, call: Call, arguments: Arguments) -> Result<Answer, Problem> {
    let tree = Tree::now(&call.context, source.service).await?;
    let none = || Problem::new(ErrorCode::NotFound, "there is no checkpoint yet: no change was signed");
    let sealed = tree.sealed().await?.ok_or_else(none)?;
    let size = u64::try_from(sealed.size).unwrap_or(0);
    let (old, new) = (arguments.from, arguments.to.unwrap_or(size));
    if new > size {
        return Err(Problem::parameter("to", format!("to: {new} is above {size}, the size of the newest checkpoint")));
    }
    if old > new {
        return Err(Problem::parameter("from", format!("from: {old} is above {new}")));
    }
    let proof = tree.ask(Question::Consistency { size: new, old }).await?.ok_or_else(damaged)?;
    Answer::json(&Consistent { from: old, to: new, checkpoint: sealed.note, proof: proof.iter().map(Hash32::to_string).collect() })
}

/// A tree that grows here.
struct Growing {
    grown: TreeSize,
    edge: Edge,
    /// The leaves of the last tile, while it is not full.
    entries: Vec<u8>,
    /// The size of the newest signed checkpoint.
    sealed: u64,
}

impl Growing {
    async fn read(ctx: &Context, service: &'static str) -> Result<Self, Problem> {
        let tree = Tree::now(ctx, service).await?;
        let grown: TreeSize = tree.row(&SIZES).await?.unwrap_or_default();
        let sealed = tree.sealed().await?.map_or(0, |sealed| u64::try_from(sealed.size).unwrap_or(0));
        let places: Vec<TilePlace> = Edge::partial(grown.size).map(|(place, _)| place).collect();
        let mut wanted: Vec<(i64, u64)> = places.iter().map(|(level, number)| (i64::from(*level), *number)).collect();
        wanted.push((ENTRIES_LEVEL, grown.size / 256));
        let mut rows = tree.tiles(&wanted).await?;
        let entries = rows.pop().flatten().unwrap_or_default();
        let tiles = places.into_iter().zip(rows).filter_map(|(place, row)| Some((place, row?.to_vec()))).collect();
        let edge = Edge::read(grown.size, &tiles).ok_or_else(damaged)?;
        let width = usize::try_from(grown.size % 256).unwrap_or_default() * 32;
        let entries = entries.get(..width).ok_or_else(damaged)?.to_vec();
        Ok(Self { grown, edge, entries, sealed })
    }

    /// Takes in what the change topic has more; commits each batch.
    async fn grow(&mut self, ctx: &Context, source: &Source, view: &Arc<dyn View>, at: &mut ViewCheckpoint) -> Result<(), Problem> {
        let unreadable = |error: &(dyn std::error::Error + 'static)| Problem::new(ErrorCode::Unavailable, reason(error));
        loop {
            let read = ctx.log.read(source.topic, 0, LogOffset(self.grown.next), BATCH_CHANGES, BATCH_BYTES).await;
            let batch = read.map_err(|error| unreadable(&error))?;
            let Some(last) = batch.last() else { return Ok(()) };
            let (before, mut full, mut entries) = (self.grown.size, HashMap::new(), Vec::new());
            for record in &batch {
                let value = &record.record.value;
                let link: Link = match avro::decode(source.topic.name, value) {
                    Ok(link) => link,
                    // A newer version's: passed over here, the changes after it would not chain.
                    Err(error @ avro::Error::UnknownFingerprint(_)) if record.record.headers.is_event() => return Err(unreadable(&error)),
                    Err(_) => continue,
                };
                let is_next = u64::try_from(link.seq).is_ok_and(|seq| seq == self.grown.size + 1);
                if !is_next || link.prev_hash != Hash32::from_hex(&self.grown.hash).unwrap_or(Hash32::ZERO) {
                    continue;
                }
                let hash = avro::datum_hash(source.topic.name, value).map_err(|error| unreadable(&error))?;
                self.edge.push(tree::leaf(&hash.0), &mut full);
                self.entries.extend_from_slice(&hash.0);
                if self.entries.len() == TILE_BYTES {
                    entries.push((self.grown.size / 256, std::mem::take(&mut self.entries)));
                }
                self.grown.size += 1;
                self.grown.hash = hash.to_string();
            }
            self.grown.next = last.offset.0 + 1;
            at.raise_position(source.topic, 0, LogOffset(self.grown.next));
            if self.grown.size > before {
                let writes = self.writes(source.service, full, entries)?;
                view.commit(writes, at).await.map_err(store_problem)?;
            }
        }
    }

    /// The rows of a batch: tiles first, then the size that rests on them.
    fn writes(&self, service: &str, full: HashMap<TilePlace, Vec<u8>>, entries: Vec<(u64, Vec<u8>)>) -> Result<Vec<Write>, Problem> {
        let size = i64::try_from(self.grown.size).unwrap_or(i64::MAX);
        let tile =
            |level: i64, number: u64, hashes: Vec<u8>| Write::put(&TILES, tile_key(service, level, number), Bytes::from(hashes)).at(size);
        let mut writes: Vec<Write> = full.into_iter().map(|((level, number), hashes)| tile(i64::from(level), number, hashes)).collect();
        writes.extend(self.edge.tiles().map(|((level, number), hashes)| tile(i64::from(level), number, hashes.to_vec())));
        writes.extend(entries.into_iter().map(|(number, hashes)| tile(ENTRIES_LEVEL, number, hashes)));
        if !self.entries.is_empty() {
            writes.push(tile(ENTRIES_LEVEL, self.grown.size / 256, self.entries.clone()));
        }
        writes.push(Write::put(&SIZES, key![service], json_of(&self.grown)?).at(size));
        Ok(writes)
    }

    /// Signs the tree if it has grown since the newest checkpoint.
    async fn seal(&mut self, ctx: &Context, signer: &Signer, source: &Source, at: &ViewCheckpoint) -> Result<(), Problem> {
        let size = self.grown.size;
        if size <= self.sealed {
            return Ok(());
        }
        let Some(key) = Receipts::now(ctx).await?.signing().await?.keys.pop().map(|key| key.public_key_hex) else { return Ok(()) };
        let Some(url) = ctx.settings.services.get(source.service).map(|own| own.base_url.as_str()) else { return Ok(()) };
        if !signer.keys().public().contains(&key) || !signer.may_sign(ctx, &key).await? {
            return Ok(());
        }
        let tree = Tree::now(ctx, source.service).await?;
        let root = tree.ask(Question::Root { size }).await?.and_then(|root| root.first().copied()).ok_or_else(damaged)?;
        let origin = url.split_once("://").map_or(url, |(_, place)| place).to_owned();
        let checkpoint = Checkpoint { origin, size, root };
        if !signer.remember(ctx, source.service, &key, &checkpoint, &tree).await? {
            return Ok(());
        }
        let Some(note) = checkpoint.sign(signer.keys(), &key) else { return Ok(()) };
        let stamp = i64::try_from(size).unwrap_or(i64::MAX);
        let sealed = json_of(&SignedCheckpoint { size: stamp, note, public_key_hex: key })?;
        tree.view.commit(vec![Write::put(&SIGNED_CHECKPOINTS, key![source.service], sealed).at(stamp)], at).await.map_err(store_problem)?;
        self.sealed = size;
        Ok(())
    }
}

fn json_of<T: Serialize>(value: &T) -> Result<Bytes, Problem> {
    serde_json::to_vec(value).map(Bytes::from).map_err(|error| Problem::new(ErrorCode::Internal, error.to_string()))
}

/// Grows the trees behind the log and signs them, at most once in [`SIGN_INTERVAL`] each, until the server stops. One process at a time does.
pub async fn run(ctx: Arc<Context>, signer: Arc<Signer>, holder: String, sources: Vec<Source>) {
    let mut lease = Lease::new(&ctx.store, "trees/seal".to_owned(), &holder);
    let growing = async {
        let mut trees = BTreeMap::new();
        loop {
            let began = Instant::now();
            match round(&ctx, &signer, &mut lease, &sources, &mut trees).await {
                Ok(true) => {
                    let waits = sources.iter().map(|source| {
                        let next = trees.get(source.service).map_or(0, |tree: &Growing| tree.grown.next);
                        Box::pin(ctx.log.wait_past(source.topic, 0, LogOffset(next)))
                    });
                    // The lease is renewed well before it ends, also when nothing happens.
                    let _ = tokio::time::timeout(LEASE / 3, select_all(waits)).await;
                }
                // Another process grows them: what is known of them here is old soon.
                Ok(false) => trees.clear(),
                Err(problem) => {
                    trees.clear();
                    tracing::warn!(reason = problem.detail, "the trees over changes do not grow, will retry");
                }
            }
            tokio::time::sleep_until(began + SIGN_INTERVAL).await;
        }
    };
    tokio::select! {
        () = growing => {}
        () = ctx.stopped() => {}
    }
    lease.release().await;
}

/// Grows and signs each tree once; false if another process does.
async fn round(
    ctx: &Context,
    signer: &Signer,
    lease: &mut Lease,
    sources: &[Source],
    trees: &mut BTreeMap<&'static str, Growing>,
) -> Result<bool, Problem> {
    if !lease.renew().await.map_err(store_problem)? {
        return Ok(false);
    }
    let view = ctx.live(&VIEW).await?;
    let mut at = view.checkpoint().await.map_err(store_problem)?;
    let mut failed = None;
    for source in sources {
        let known = trees.remove(source.service);
        let grown = async {
            let mut tree = match known {
                Some(tree) => tree,
                None => Growing::read(ctx, source.service).await?,
            };
            tree.grow(ctx, source, &view, &mut at).await?;
            tree.seal(ctx, signer, source, &at).await?;
            Ok::<_, Problem>(tree)
        };
        match grown.await {
            Ok(tree) => drop(trees.insert(source.service, tree)),
            // One tree that fails does not keep the others from growing.
            Err(problem) => failed = Some(problem),
        }
    }
    failed.map_or(Ok(true), Err)
}
