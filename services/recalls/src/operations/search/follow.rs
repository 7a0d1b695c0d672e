//! Keeps the keyword index up to date with the feed.

use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::{Duration, Instant};

use feed::generations::Follower;
use schemas::position::Seq;
use schemas::views::recalls::{FEED, Recall, VIEW};
use serde::Deserialize;
use tantivy::TantivyError;
use view_store::feed::FeedReader;
use view_store::{View, ViewStore};

use super::index::{Index, Label};
use super::words::Document;
use super::{IndexSnapshot, Search};

/// The longest time that documents wait for a commit.
const COMMIT_AFTER: Duration = Duration::from_secs(1);
/// How many documents wait for a commit at most.
const PENDING_MAX: usize = 5_000;
/// The pause after a failure.
const RETRY_AFTER: Duration = Duration::from_secs(1);

/// Why reading the feed stopped for now.
#[derive(Debug, thiserror::Error)]
enum Error {
    #[error("the view cannot be read")]
    View(#[from] view_store::Error),
    #[error("the index cannot be used")]
    Index(#[from] TantivyError),
    #[error("change {0} in the feed cannot be read")]
    Element(Seq, #[source] serde_json::Error),
    #[error("the indexing thread ended")]
    Thread(#[from] tokio::task::JoinError),
}

/// A change in the feed.
#[derive(Deserialize)]
struct Element {
    record: Recall,
}

/// The index that is being built, with its position.
struct Build {
    index: Index,
    /// The last change in the index, and when it was recorded.
    at: Label,
    pending: usize,
    committed: Instant,
}

impl Search {
    /// Keeps the index up to date with the recalls view until the future is dropped. Failures are logged and retried.
    pub async fn follow(self: Arc<Self>, store: Arc<dyn ViewStore>, dir: Option<PathBuf>) {
        loop {
            let Err(error) = self.run(store.as_ref(), dir.clone()).await;
            self.show(None, Seq(0));
            report(&error);
            tokio::time::sleep(RETRY_AFTER).await;
        }
    }

    async fn run(&self, store: &dyn ViewStore, dir: Option<PathBuf>) -> Result<std::convert::Infallible, Error> {
        let (index, at) = tokio::task::spawn_blocking(move || open(dir.as_deref())).await??;
        let mut build = Build { index, at, pending: 0, committed: Instant::now() };
        let mut follower = Follower::new(store, &VIEW, &FEED);
        loop {
            let opened = follower.open().await?;
            if opened.is_new {
                let is_same = is_same_log(&follower, &opened.view, build.at).await?;
                if !is_same {
                    tracing::info!("the keyword index is of another log and is built again");
                    build = blocking(build, |build| build.index.clear()).await?;
                    build.at = Label::default();
                    build.pending = 0;
                }
                if opened.is_first || !is_same {
                    self.show_committed(&build);
                }
            }
            let checkpoint = opened.view.checkpoint().await?;
            if build.at.seq < checkpoint.seq {
                build = self.read_block(&follower.reader(&opened.view), build, checkpoint.seq).await?;
            }
            let is_behind = build.at.seq < checkpoint.seq;
            if build.pending >= PENDING_MAX || (build.pending > 0 && build.committed.elapsed() >= COMMIT_AFTER) {
                let at = build.at;
                build = blocking(build, move |build| build.index.commit(at.seq, at.recorded_at)).await?;
                build.pending = 0;
                build.committed = Instant::now();
                self.show_committed(&build);
            }
            if !is_behind {
                let until_commit = if build.pending > 0 { COMMIT_AFTER.saturating_sub(build.committed.elapsed()) } else { Duration::MAX };
                opened.wait_past(&checkpoint, until_commit).await?;
            }
        }
    }

    /// Adds the rest of the block that holds the next change, up to `last`.
    async fn read_block(&self, reader: &FeedReader, mut build: Build, last: Seq) -> Result<Build, Error> {
        let block = reader.block(build.at.seq.next()).await?;
        let mut documents = Vec::new();
        for seq in build.at.seq.next().up_to(block.last_seq().min(last)) {
            if let Some(element) = block.element(seq) {
                let element: Element = serde_json::from_slice(&element).map_err(|error| Error::Element(seq, error))?;
                if element.record.is_listed() {
                    documents.push(Arc::new(Document::new(seq, &element.record)));
                }
            }
            build.at.seq = seq;
            build.at.recorded_at = block.recorded_at_seq(seq).unwrap_or(build.at.recorded_at);
        }
        let added = documents.clone();
        build = blocking(build, move |build| added.iter().try_for_each(|document| build.index.add(document))).await?;
        build.pending += documents.len();
        self.show_more(documents, build.at.seq);
        Ok(build)
    }

    fn show_committed(&self, build: &Build) {
        let (searcher, fields) = build.index.searcher();
        self.show(Some(IndexSnapshot { searcher, fields, pending: Arc::default() }), build.at.seq);
        self.committed.send_replace(build.at.seq);
    }
}

fn report(error: &Error) {
    let cause: Option<&dyn std::error::Error> = std::error::Error::source(error);
    tracing::warn!(%error, cause, "the keyword index stopped and is opened again");
}

/// Runs blocking work on a thread that may block.
async fn blocking<F>(mut build: Build, work: F) -> Result<Build, Error>
where
    F: FnOnce(&mut Build) -> Result<(), TantivyError> + Send + 'static,
{
    let done = tokio::task::spawn_blocking(move || work(&mut build).map(|()| build));
    Ok(done.await??)
}

/// Opens the index. If it cannot be opened, it is deleted and created again; if that fails as well, it is held in memory.
fn open(dir: Option<&Path>) -> Result<(Index, Label), TantivyError> {
    let Some(dir) = dir else { return Index::open(None) };
    Index::open(Some(dir)).or_else(|error| {
        tracing::warn!(%error, "the keyword index on disk cannot be used and is built again");
        if matches!(error, TantivyError::LockFailure(..)) {
            return Index::open(None);
        }
        std::fs::remove_dir_all(dir)?;
        Index::open(Some(dir)).or_else(|error| {
            tracing::warn!(%error, "the keyword index cannot be kept on disk and is kept in memory");
            Index::open(None)
        })
    })
}

/// Whether the view has the same last change as the index, at the same seq.
async fn is_same_log(follower: &Follower<'_>, view: &Arc<dyn View>, at: Label) -> Result<bool, view_store::Error> {
    if at.seq == Seq(0) {
        return Ok(true);
    }
    let block = follower.block(view, at.seq).await?;
    Ok(block.is_some_and(|block| block.recorded_at_seq(at.seq) == Some(at.recorded_at)))
}
