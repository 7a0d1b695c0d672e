//! How the keyword index follows the feed.

use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::Duration;

use feed::follower::{Label, Structure, panicked};
use operation::problem::Problem;
use schemas::position::Seq;
use schemas::views::recalls::Recall;
use serde::Deserialize;
use tantivy::TantivyError;
use view_store::View;

use super::broken;
use super::index::Index;
use super::words::Document;

/// How many documents wait for a commit at most.
const PENDING_MAX: usize = 5_000;

/// A change in the feed.
#[derive(Deserialize)]
struct Element {
    record: Recall,
}

impl Structure for Index {
    /// The directory of the index; without one it is in memory.
    type Origin = Option<PathBuf>;
    type Change = Arc<Document>;

    const NAME: &'static str = "the keyword index";
    const BYTES_MAX: usize = 256 << 20;
    const REMAINS: bool = true;
    const SAVE_AFTER: Duration = Duration::from_secs(1);

    async fn begin(dir: Option<PathBuf>, _: Arc<dyn View>, _: Seq) -> Result<(Self, Label), Problem> {
        let opened = tokio::task::spawn_blocking(move || open(dir.as_deref())).await;
        opened.map_err(|error| panicked::<Self>(&error))?.map_err(|error| broken(&error))
    }

    fn read(seq: Seq, element: &[u8]) -> Result<Option<Arc<Document>>, serde_json::Error> {
        let Element { record } = serde_json::from_slice(element)?;
        Ok(record.is_listed().then(|| Arc::new(Document::new(seq, &record))))
    }

    fn add(&mut self, documents: Vec<Arc<Document>>, last: Label, _: bool) -> Result<(), Problem> {
        self.add_all(documents).map_err(|error| broken(&error))?;
        // While the index is built for the first time, nothing else commits them.
        if self.snapshot.pending.len() >= PENDING_MAX { self.save(last) } else { Ok(()) }
    }

    fn bytes(&self) -> usize {
        self.bytes
    }

    fn clear(&mut self) -> Result<(), Problem> {
        self.delete_all().map_err(|error| broken(&error))
    }

    fn save(&mut self, last: Label) -> Result<(), Problem> {
        self.commit(last).map_err(|error| broken(&error))
    }
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
