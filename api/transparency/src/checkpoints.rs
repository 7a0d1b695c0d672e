//! Signed checkpoints over the changes of each service (C2SP tlog-checkpoint, tlog-tiles). Leaf `i` is the hash of the change with seq `i + 1`, which
//! the next change names as `prevHash`, so every consumer of the topic can compute it. One process at a time reads the log and extends the trees in
//! batches. The receipts have a separate tree.

use std::collections::{BTreeMap, HashMap};
use std::sync::Arc;

use bytes::Bytes;
use event_log::Stored;
use futures_util::future::select_all;
use proofs::hash::Hash32;
use proofs::tree::{self, Checkpoint, Edge, Question, TilePlace, parse_tile_path};
use schemas::avro;
use schemas::change::ChainLink;
use schemas::error_code::ErrorCode;
use schemas::key;
use schemas::position::{LogOffset, Seq};
use schemas::reason::reason;
use schemas::tables::Write;
use schemas::views::receipts::{SignedCheckpoint, TABLES as RECEIPTS};
use serde::Serialize;
use tokio::time::Instant;
use view_store::lease::Lease;
use view_store::{Checkpoint as ViewCheckpoint, View};

use crate::change_tree::{ChangeTree, Tree, damaged, tile_key};
use crate::consistency;
use crate::prover::CheckpointSigner;
use crate::trees::{ENTRIES_LEVEL, SIGNED_CHECKPOINTS, SIZES, TILES, TreeSize, VIEW};
use crate::witness::CheckpointFile;
use feed::Source;
use operation::context::{Context, store_problem};
use operation::metrics::{self, RoundTask};
use operation::problem::Problem;
use operation::{File, Operation};

/// The lease of the process that extends and signs the trees.
pub const SEAL_LEASE: &str = "trees/seal";
/// How many changes are read and committed at once.
const BATCH_CHANGES: usize = 2_000;
/// How many bytes of changes are read at once.
const BATCH_BYTES: usize = 8 << 20;
/// Bytes of the hashes in a full tile.
const TILE_BYTES: usize = 256 * 32;

fn unreadable(error: &(dyn std::error::Error + 'static)) -> Problem {
    Problem::new(ErrorCode::Unavailable, reason(error))
}

/// The file at a path of a service's tree, such as `checkpoint` or a tile; `None` if there is none.
///
/// # Errors
/// When the store fails.
pub async fn file(ctx: Arc<Context>, source: Source, path: String) -> Result<Option<File>, Problem> {
    let served = CheckpointFile::of(&path);
    if served.is_none() && !path.starts_with("tile/") {
        return Ok(None);
    }
    let tree = Tree::now(&ctx, source.service).await?;
    if let Some(served) = served {
        return served.file(&ctx, source.service, tree.sealed().await?).await;
    }
    let Some(sealed) = tree.sealed().await? else { return Ok(None) };
    let Some((tile, is_entries)) = parse_tile_path(&path) else { return Ok(None) };
    // The hashes of a level exist only if all leaves below them do.
    let below = (u128::from(tile.level_index()) * 256 + u128::from(tile.width())) << (8 * u32::from(tile.level()));
    if below > u128::from(sealed.size) {
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
    Ok(Some(File { bytes, content_type: "application/octet-stream", is_immutable: true, policy: "" }))
}

/// The operation for one service.
#[must_use]
pub fn operation(source: Source) -> Operation {
    consistency::operation(
        ChangeTree(source.service),
        "Proves that the tree over this service's changes holds an earlier one.",
        "Save a checkpoint (`/checkpoint`). The proof from its size to that of a later checkpoint shows that no change before it was altered or \
            removed (`highwater verify --old --new --proof`). Leaf `i` of the tree is the hash of the change with seq `i + 1`, as the next change \
            names it in `prevHash`; the tree is served as tiles, `/tile/…` (C2SP tlog-tiles).",
    )
}

/// A tree that this process extends.
struct Growing {
    leaves: Leaves,
    /// The size of the newest signed checkpoint.
    sealed: u64,
}

/// The state of a tree that further leaves are appended to.
#[derive(Clone)]
struct Leaves {
    grown: TreeSize,
    edge: Edge,
    /// The leaves of the last tile, while it is not full.
    entries: Vec<u8>,
}

impl Leaves {
    /// Appends the changes of a batch that continue the chain, in order. Returns the rows to write; none if no change continues the chain. It
    /// decodes and hashes the whole batch, so it must run on a thread that may block.
    fn take_in(&mut self, source: &Source, batch: &[Stored]) -> Result<Vec<Write>, Problem> {
        let (before, mut full, mut entries) = (self.grown.size, HashMap::new(), Vec::new());
        for Stored { offset, record } in batch {
            self.grown.next = offset.next();
            let link: ChainLink = match avro::decode(source.topic.name, &record.value) {
                Ok(link) => link,
                // A change of a newer version. If it were skipped, the changes after it would not continue the chain.
                Err(error @ avro::Error::UnknownFingerprint(_)) if record.headers.is_event() => return Err(unreadable(&error)),
                Err(_) => continue,
            };
            if !link.extends(Seq(self.grown.size), Hash32::from_hex(&self.grown.hash).unwrap_or(Hash32::ZERO)) {
                continue;
            }
            let hash = avro::datum_hash(source.topic.name, &record.value).map_err(|error| unreadable(&error))?;
            self.edge.push(tree::leaf(&hash.0), &mut full);
            self.entries.extend_from_slice(&hash.0);
            if self.entries.len() == TILE_BYTES {
                entries.push((self.grown.size / 256, std::mem::take(&mut self.entries)));
            }
            self.grown.size += 1;
            self.grown.hash = hash.to_string();
        }
        if self.grown.size == before {
            return Ok(Vec::new());
        }
        self.writes(source.service, full, entries)
    }

    /// The rows of a batch: the tiles first, then the size, which relies on them.
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
}

impl Growing {
    async fn read(view: &Arc<dyn View>, service: &'static str) -> Result<Self, Problem> {
        let tree = Tree { view: Arc::clone(view), service };
        let grown: TreeSize = tree.row(&SIZES).await?.unwrap_or_default();
        let sealed = tree.sealed().await?.map_or(0, |sealed| sealed.size);
        let places: Vec<TilePlace> = Edge::partial(grown.size).map(|(place, _)| place).collect();
        let mut wanted: Vec<(i64, u64)> = places.iter().map(|(level, number)| (i64::from(*level), *number)).collect();
        wanted.push((ENTRIES_LEVEL, grown.size / 256));
        let mut rows = tree.tiles(&wanted).await?;
        let entries = rows.pop().flatten().unwrap_or_default();
        let tiles = places.into_iter().zip(rows).filter_map(|(place, row)| Some((place, row?.to_vec()))).collect();
        let edge = Edge::read(grown.size, &tiles).ok_or_else(damaged)?;
        let width = usize::try_from(grown.size % 256).unwrap_or_default() * 32;
        let entries = entries.get(..width).ok_or_else(damaged)?.to_vec();
        Ok(Self { leaves: Leaves { grown, edge, entries }, sealed })
    }

    /// Appends the new changes of the topic and commits each batch. Batches are hashed on a separate thread. The lease is renewed between batches;
    /// returns false if another process holds it now.
    async fn grow(
        &mut self,
        ctx: &Context,
        source: &Source,
        view: &Arc<dyn View>,
        at: &mut ViewCheckpoint,
        lease: &mut Lease,
    ) -> Result<bool, Problem> {
        loop {
            if !lease.renew().await.map_err(store_problem)? {
                return Ok(false);
            }
            let from = self.leaves.grown.next;
            let batch = ctx.log.read(source.topic, 0, from, BATCH_CHANGES, BATCH_BYTES).await.map_err(|error| unreadable(&error))?;
            if batch.is_empty() {
                return Ok(true);
            }
            let (mut leaves, source) = (self.leaves.clone(), *source);
            let topic = source.topic;
            let hashing = tokio::task::spawn_blocking(move || leaves.take_in(&source, &batch).map(|writes| (leaves, writes)));
            let (leaves, writes) = hashing.await.map_err(|error| Problem::new(ErrorCode::Internal, reason(&error)))??;
            at.raise_position(topic, 0, leaves.grown.next);
            if !writes.is_empty() {
                view.commit(writes, at).await.map_err(store_problem)?;
            }
            self.leaves = leaves;
        }
    }

    /// Signs the tree if it has more leaves than the newest checkpoint.
    async fn seal(
        &mut self,
        ctx: &Context,
        signer: &dyn CheckpointSigner,
        source: &Source,
        view: &Arc<dyn View>,
        at: &ViewCheckpoint,
    ) -> Result<(), Problem> {
        let size = self.leaves.grown.size;
        if size <= self.sealed {
            return Ok(());
        }
        if !is_key_known(ctx) {
            return Ok(());
        }
        let key = signer.present().await?;
        if key.is_empty() {
            return Ok(());
        }
        let Some(url) = ctx.settings.services.get(source.service).map(|own| own.base_url.as_str()) else { return Ok(()) };
        if !signer.state().keys().public().contains(&key) || !signer.may_sign(&key) {
            return Ok(());
        }
        let tree = Tree { view: Arc::clone(view), service: source.service };
        let root = tree.ask(Question::Root { size }).await?.and_then(|root| root.first().copied()).ok_or_else(damaged)?;
        let origin = url.split_once("://").map_or(url, |(_, place)| place).to_owned();
        let checkpoint = Checkpoint { origin, size, root };
        if !signer.remember(source.service, &key, &checkpoint, &tree).await? {
            return Ok(());
        }
        let Some(note) = checkpoint.sign(signer.state().keys(), &key) else { return Ok(()) };
        let stamp = i64::try_from(size).unwrap_or(i64::MAX);
        let sealed = json_of(&SignedCheckpoint { size, note, public_key_hex: key })?;
        tree.view.commit(vec![Write::put(&SIGNED_CHECKPOINTS, key![source.service], sealed).at(stamp)], at).await.map_err(store_problem)?;
        self.sealed = size;
        Ok(())
    }
}

/// Whether the view that names the signing key is served. After a start, and after damage, it is first completed from the log, which trees need not wait
/// for.
fn is_key_known(ctx: &Context) -> bool {
    !ctx.store.unserved().contains(&RECEIPTS.view.name)
}

fn json_of<T: Serialize>(value: &T) -> Result<Bytes, Problem> {
    serde_json::to_vec(value).map(Bytes::from).map_err(|error| Problem::new(ErrorCode::Internal, error.to_string()))
}

/// Extends the trees with the changes of the log and signs each at most once in a round of the settings, until the server stops. One process at a time
/// does this.
pub async fn run(ctx: &Context, signer: &dyn CheckpointSigner, holder: &str, sources: Vec<Source>) {
    let mut lease = Lease::new(&ctx.store, SEAL_LEASE.to_owned(), holder);
    let growing = async {
        let (mut trees, mut generation) = (BTreeMap::new(), None);
        let view_of_key = [RECEIPTS.view.name];
        loop {
            let began = Instant::now();
            let was_key_known = is_key_known(ctx);
            let ended = round(ctx, signer, &mut lease, &sources, &mut trees, &mut generation).await;
            metrics::count_round(RoundTask::Checkpoints);
            match ended {
                Ok(true) => {
                    let waits = sources.iter().map(|source| {
                        let next = trees.get(source.service).map_or(LogOffset(0), |tree: &Growing| tree.leaves.grown.next);
                        Box::pin(ctx.log.wait_past(source.topic, 0, next))
                    });
                    tokio::select! {
                        // The lease is renewed long before it ends, even if there are no changes.
                        _ = tokio::time::timeout(lease.renewal_interval(), select_all(waits)) => {}
                        // Trees that waited for the key are signed now.
                        () = ctx.store.served(&view_of_key), if !was_key_known => {}
                    }
                }
                // Another process extends the trees, so the state here becomes outdated.
                Ok(false) => trees.clear(),
                Err(problem) => {
                    trees.clear();
                    tracing::warn!(reason = problem.detail, "extending the trees over changes failed, will retry");
                }
            }
            // The lease is renewed meanwhile, because a round can be longer than the lease.
            let _ = tokio::time::timeout_at(began + ctx.settings.rounds.checkpoints, lease.lost()).await;
        }
    };
    tokio::select! {
        () = growing => {}
        () = ctx.stopped() => {}
    }
    lease.release().await;
}

/// Extends and signs each tree once; returns false if another process does.
async fn round(
    ctx: &Context,
    signer: &dyn CheckpointSigner,
    lease: &mut Lease,
    sources: &[Source],
    trees: &mut BTreeMap<&'static str, Growing>,
    generation: &mut Option<u64>,
) -> Result<bool, Problem> {
    if !lease.renew().await.map_err(store_problem)? {
        return Ok(false);
    }
    let view = ctx.store.live_to_project(&VIEW).await.map_err(store_problem)?;
    if generation.replace(view.generation()) != Some(view.generation()) {
        // The trees of another generation say nothing about this one.
        trees.clear();
    }
    let mut at = view.checkpoint().await.map_err(store_problem)?;
    let (mut failed, mut grown_trees) = (None, 0);
    for source in sources {
        let known = trees.remove(source.service);
        let grown = async {
            let mut tree = match known {
                Some(tree) => tree,
                None => Growing::read(&view, source.service).await?,
            };
            if !tree.grow(ctx, source, &view, &mut at, lease).await? {
                return Ok(None);
            }
            grown_trees += 1;
            tree.seal(ctx, signer, source, &view, &at).await?;
            Ok::<_, Problem>(Some(tree))
        };
        match grown.await {
            Ok(Some(tree)) => drop(trees.insert(source.service, tree)),
            Ok(None) => return Ok(false),
            // A tree that fails does not stop the others.
            Err(problem) => failed = Some(problem),
        }
    }
    // Also if signing fails: the trees are those of the log then, with older signatures.
    if grown_trees == sources.len() {
        view.finish_rebuild().await.map_err(store_problem)?;
    }
    failed.map_or(Ok(true), Err)
}
