//! Keeps the index of names up to date with the feed, and its snapshot with the index.

use std::fs::File;
use std::io::{BufReader, BufWriter, ErrorKind, Write};
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::{Duration, Instant};

use crate::record::{LIVE, TABLES, Trademark};
use feed::generations::Follower;
use marks::index::{Change, ComparedMark, Index};
use operation::context::Part;
use operation::metrics;
use proofs::hash::Hash32;
use schemas::position::Seq;
use serde::Deserialize;
use view_store::feed::{FeedBlock, FeedReader, block_of};
use view_store::{View, ViewStore};

use super::Register;
use crate::operations::similar::classes_of;
use reads::registration::TaskContext;

/// The most changes that are added to the index at once.
const BATCH_CHANGES_MAX: u64 = 500_000;
/// How many blocks of the feed are read together.
const BLOCKS_A_READ: u64 = 64;
/// The pause after a failure.
const RETRY_AFTER: Duration = Duration::from_secs(1);
/// The longest time that changes wait for a snapshot.
const SNAPSHOT_AFTER: Duration = Duration::from_secs(600);
/// The share of all changes, as its inverse, that do not wait.
const SNAPSHOT_SHARE: u64 = 50;
/// The fewest changes that do not wait.
const SNAPSHOT_CHANGES_MIN: u64 = 5_000;
/// The largest index that is written when the server stops. A larger one follows the feed from its last snapshot.
const STOP_SNAPSHOT_BYTES_MAX: usize = 256 << 20;
/// The name of the snapshot in the directory of caches.
const FILE: &str = "names.index";

/// Why following the feed stopped for now.
#[derive(Debug, thiserror::Error)]
enum Error {
    #[error("the view cannot be read")]
    View(#[from] view_store::Error),
    #[error("change {0} in the feed cannot be read")]
    Element(Seq, #[source] serde_json::Error),
    #[error("the feed has more changes than the index of names can hold")]
    TooLong,
    #[error("the indexing thread ended")]
    Thread(#[from] tokio::task::JoinError),
}

/// A change in the feed.
#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
struct Element {
    event: String,
    #[serde(default)]
    status_before: Option<String>,
    record: Trademark,
}

/// Keeps the index up to date with the feed until the server stops.
pub async fn keep_index(given: Arc<TaskContext>) {
    let ctx = &given.context;
    let (register, dir) = (Register::of(ctx), ctx.settings.cache_dir.clone());
    tokio::select! {
        () = Arc::clone(&register).follow(Arc::clone(&ctx.store), dir.clone()) => {}
        () = ctx.stopped() => {}
    }
    if let Some(dir) = dir.filter(|_| register.index().is_some_and(|index| index.bytes() <= STOP_SNAPSHOT_BYTES_MAX)) {
        register.save_snapshot(dir).await;
    }
}

impl Register {
    /// Keeps the index up to date with the view until the future is dropped. Failures are logged and retried.
    pub async fn follow(self: Arc<Self>, store: Arc<dyn ViewStore>, dir: Option<PathBuf>) {
        let mut index = match dir.clone() {
            Some(dir) => tokio::task::spawn_blocking(move || load(&dir)).await.unwrap_or_default(),
            None => Index::default(),
        };
        loop {
            let Err(error) = self.run(store.as_ref(), dir.as_deref(), &mut index).await;
            report(&error);
            tokio::time::sleep(RETRY_AFTER).await;
        }
    }

    /// Writes the snapshot of the index that checks read, if there is one. A failure is logged.
    pub async fn save_snapshot(&self, dir: PathBuf) {
        if let Some(index) = self.index() {
            save(index, dir).await;
        }
    }

    async fn run(&self, store: &dyn ViewStore, dir: Option<&Path>, index: &mut Index) -> Result<std::convert::Infallible, Error> {
        let mut follower = Follower::new(store, TABLES.view, TABLES.feed);
        let (mut saved, mut saved_at, mut recorded_at_ms) = (u64::from(index.seq()), Instant::now(), 0);
        loop {
            let opened = follower.open().await?;
            if opened.is_new {
                match recorded_at(&follower, &opened.view, index).await? {
                    Some(at_ms) => recorded_at_ms = at_ms,
                    None => {
                        tracing::info!("the index of names is of another log and is built again");
                        *index = Index::default();
                        (saved, recorded_at_ms) = (0, 0);
                        self.show(None);
                    }
                }
            }
            let checkpoint = opened.view.checkpoint().await?;
            if u64::from(index.seq()) < checkpoint.seq.0 {
                (*index, recorded_at_ms) = read_batch(&follower.reader(&opened.view), index.clone(), checkpoint.seq).await?;
            }
            let is_behind = u64::from(index.seq()) < checkpoint.seq.0;
            // While the first changes are read, the index has only a part of the register.
            if !is_behind || self.index().is_some() {
                let shown = Arc::new(index.clone());
                let built = Arc::clone(&shown);
                // Once for all that was read, and before a check asks.
                tokio::task::spawn_blocking(move || built.store_keys()).await?;
                self.show(Some(shown));
            }
            metrics::set_name_index(index.versions(), index.bytes(), index.seq(), recorded_at_ms);
            let unsaved = u64::from(index.seq()) - saved.min(u64::from(index.seq()));
            let is_due = unsaved > SNAPSHOT_CHANGES_MIN.max(saved / SNAPSHOT_SHARE) || saved_at.elapsed() >= SNAPSHOT_AFTER;
            if let Some(dir) = dir.filter(|_| unsaved > 0 && is_due && !is_behind) {
                save(Arc::new(index.clone()), dir.to_owned()).await;
                (saved, saved_at) = (u64::from(index.seq()), Instant::now());
            }
            if !is_behind {
                let until_snapshot = if unsaved > 0 { SNAPSHOT_AFTER.saturating_sub(saved_at.elapsed()) } else { Duration::MAX };
                opened.wait_past(&checkpoint, until_snapshot).await?;
            }
        }
    }
}

/// Returns the index after the next changes of the feed, up to `last`, without their keys, and when the last of them was recorded, in milliseconds since 1970.
async fn read_batch(reader: &FeedReader, index: Index, last: Seq) -> Result<(Index, i64), Error> {
    let first = Seq(u64::from(index.seq()) + 1);
    let last = last.min(Seq(u64::from(index.seq()) + BATCH_CHANGES_MAX));
    let (mut changes, mut origin, mut recorded_at_ms) = (Vec::new(), index.origin(), 0);
    let (mut number, end) = (block_of(first), block_of(last));
    while number <= end {
        let numbers: Vec<u64> = (number..=end.min(number + BLOCKS_A_READ - 1)).collect();
        number += BLOCKS_A_READ;
        let blocks = reader.blocks(&numbers).await?;
        (changes, origin, recorded_at_ms) = tokio::task::spawn_blocking(move || {
            for block in &blocks {
                for seq in first.max(block.first_seq()).up_to(block.last_seq().min(last)) {
                    changes.extend(change(block, seq)?);
                    if seq == last {
                        origin = origin_of(block, seq);
                        recorded_at_ms = block.recorded_at_seq(seq).unwrap_or_default();
                    }
                }
            }
            Ok::<_, Error>((changes, origin, recorded_at_ms))
        })
        .await??;
    }
    let seq = u32::try_from(last.0).map_err(|_| Error::TooLong)?;
    let index = tokio::task::spawn_blocking(move || index.extend(changes, seq, origin)).await?;
    Ok((index, recorded_at_ms))
}

/// Reads a change of a mark; `None` for a change that feeds leave out.
fn change(block: &FeedBlock, seq: Seq) -> Result<Option<Change>, Error> {
    let Some(element) = block.element(seq) else { return Ok(None) };
    let Element { event, status_before, record } = serde_json::from_slice(&element).map_err(|error| Error::Element(seq, error))?;
    // The register's serial numbers have eight digits.
    let Some(serial) = record.serial.parse().ok().filter(|_| record.serial.len() == 8) else {
        tracing::warn!(serial = record.serial, "a mark has no serial number of eight digits and is not compared");
        return Ok(None);
    };
    let is_new = event == "new";
    let was_live = !is_new && status_before.as_ref().map_or(record.is_live(), |status| status == LIVE);
    let after = record.counts().then(|| ComparedMark {
        classes: classes_of(&record),
        is_live: record.is_live(),
        text: record.mark,
        pseudo_marks: record.pseudo_marks,
    });
    let seq = u32::try_from(seq.0).map_err(|_| Error::TooLong)?;
    Ok(Some(Change { seq, serial, is_new, was_live, after }))
}

/// A number by which a log is recognised: from a change and the time when it was recorded.
fn origin_of(block: &FeedBlock, seq: Seq) -> u64 {
    let mut bytes = block.recorded_at_seq(seq).unwrap_or_default().to_be_bytes().to_vec();
    bytes.extend_from_slice(&block.element(seq).unwrap_or_default());
    Hash32::of(&bytes).0.first_chunk::<8>().map_or(0, |bytes| u64::from_be_bytes(*bytes))
}

/// When the last change of the index was recorded, in milliseconds since 1970; `None` if the view does not have the same change there: it is of
/// another log.
async fn recorded_at(follower: &Follower<'_>, view: &Arc<dyn View>, index: &Index) -> Result<Option<i64>, view_store::Error> {
    let seq = Seq(u64::from(index.seq()));
    if seq == Seq(0) {
        return Ok(Some(0));
    }
    let Some(block) = follower.block(view, seq).await? else { return Ok(None) };
    Ok((origin_of(&block, seq) == index.origin()).then(|| block.recorded_at_seq(seq).unwrap_or_default()))
}

fn report(error: &Error) {
    let cause: Option<&dyn std::error::Error> = std::error::Error::source(error);
    tracing::warn!(%error, cause, "the index of names stopped and follows the feed again");
}

/// Reads the snapshot; an empty index if there is none that can be used.
fn load(dir: &Path) -> Index {
    let started = Instant::now();
    let read = File::open(dir.join(FILE)).and_then(|file| Index::read(&mut BufReader::with_capacity(1 << 20, file)));
    match read {
        Ok(index) => {
            let elapsed_ms = u64::try_from(started.elapsed().as_millis()).unwrap_or(u64::MAX);
            tracing::info!(seq = index.seq(), versions = index.versions(), elapsed_ms, "the index of names was read from its snapshot");
            index
        }
        Err(error) => {
            if error.kind() != ErrorKind::NotFound {
                tracing::warn!(%error, "the snapshot of the index of names cannot be used and is built again");
            }
            Index::default()
        }
    }
}

/// Writes the snapshot. A failure is logged: the next start builds the index.
async fn save(index: Arc<Index>, dir: PathBuf) {
    let written = tokio::task::spawn_blocking(move || write(&index, &dir)).await;
    if let Err(error) = written.unwrap_or_else(|error| Err(std::io::Error::other(error))) {
        tracing::warn!(%error, "the snapshot of the index of names cannot be written");
    }
}

fn write(index: &Index, dir: &Path) -> std::io::Result<()> {
    std::fs::create_dir_all(dir)?;
    let new = dir.join(format!("{FILE}.new"));
    let mut file = BufWriter::with_capacity(1 << 20, File::create(&new)?);
    index.write(&mut file)?;
    file.flush()?;
    file.get_ref().sync_all()?;
    std::fs::rename(&new, dir.join(FILE))
}

#[cfg(test)]
mod tests;
