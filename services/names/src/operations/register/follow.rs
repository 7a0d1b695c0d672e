//! How the index of names follows the feed, and how its snapshot is read and written.

use std::fs::File;
use std::io::{BufReader, BufWriter, ErrorKind, Write};
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::{Duration, Instant};

use crate::record::{LIVE, Trademark};
use feed::follower::{Label, Structure, panicked};
use marks::index::{Change, ComparedMark, Index};
use operation::metrics;
use operation::problem::Problem;
use schemas::error_code::ErrorCode;
use schemas::position::Seq;
use serde::Deserialize;
use view_store::View;

use crate::operations::similar::classes_of;

/// The share of all changes, as its inverse, that do not wait for a snapshot.
const SNAPSHOT_SHARE: u64 = 50;
/// The fewest changes that do not wait for a snapshot.
const SNAPSHOT_CHANGES_MIN: u64 = 5_000;
/// The name of the snapshot in the directory of caches.
const FILE: &str = "names.index";

/// A change in the feed.
#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
struct Element {
    event: String,
    #[serde(default)]
    status_before: Option<String>,
    record: Trademark,
}

/// The index with the directory of its snapshot.
#[derive(Clone)]
pub(super) struct SavedIndex {
    pub(super) index: Arc<Index>,
    dir: Option<PathBuf>,
}

impl Structure for SavedIndex {
    /// The directory of the snapshot, if there is one.
    type Origin = Option<PathBuf>;
    type Change = Change;

    const NAME: &'static str = "the index of names";
    const BYTES_MAX: usize = 8 << 30;
    const BATCH_CHANGES_MAX: u64 = 500_000;
    const REMAINS: bool = true;
    const SAVE_AFTER: Duration = Duration::from_secs(600);

    async fn begin(dir: Option<PathBuf>, _: Arc<dyn View>, _: Seq) -> Result<(Self, Label), Problem> {
        let read = tokio::task::spawn_blocking(move || Self { index: Arc::new(dir.as_deref().map(load).unwrap_or_default()), dir });
        let this = read.await.map_err(|error| panicked::<Self>(&error))?;
        let last = Label { seq: Seq(u64::from(this.index.seq())), origin: this.index.origin(), ..Label::default() };
        Ok((this, last))
    }

    fn read(seq: Seq, element: &[u8]) -> Result<Option<Change>, serde_json::Error> {
        let Element { event, status_before, record } = serde_json::from_slice(element)?;
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
        Ok(Some(Change { seq: position_of(seq), serial, is_new, was_live, after }))
    }

    fn add(&mut self, changes: Vec<Change>, last: Label, is_last: bool) -> Result<(), Problem> {
        if last.seq > Seq(u64::from(u32::MAX)) {
            return Err(Problem::new(ErrorCode::Internal, "the feed has more changes than the index of names can hold"));
        }
        let index = self.index.extend(changes, position_of(last.seq), last.origin);
        if is_last {
            // Once for all that was read, and before a check asks.
            index.store_keys();
        }
        metrics::set_name_index(index.versions(), index.bytes(), index.seq(), last.recorded_at_ms);
        self.index = Arc::new(index);
        Ok(())
    }

    fn bytes(&self) -> usize {
        self.index.bytes()
    }

    fn clear(&mut self) -> Result<(), Problem> {
        self.index = Arc::default();
        Ok(())
    }

    fn unsaved_max(saved: Seq) -> u64 {
        SNAPSHOT_CHANGES_MIN.max(saved.0 / SNAPSHOT_SHARE)
    }

    fn save(&mut self, _: Label) -> Result<(), Problem> {
        if let Some(dir) = &self.dir {
            save(&self.index, dir);
        }
        Ok(())
    }
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
pub(super) fn save(index: &Index, dir: &Path) {
    if let Err(error) = write(index, dir) {
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

/// A position as the index has it. The index refuses to follow a log with more changes.
pub(crate) fn position_of(seq: Seq) -> u32 {
    u32::try_from(seq.0).unwrap_or(u32::MAX)
}

#[cfg(test)]
mod tests;
