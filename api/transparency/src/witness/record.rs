//! The record of what this witness cosigned: the newest checkpoint of each log. It is stored outside the data directory like the signer's memory, or
//! in a store that several processes share.
//!
//! Promise: when [`WitnessRecord::replace`] returns true, the checkpoint is stored durably. If two checkpoints replace the same older one, only one
//! succeeds.

use std::path::PathBuf;

use crate::note::SignedNote;
use proofs::hash::Hash32;
use proofs::tree::Checkpoint;
use serde::{Deserialize, Serialize};

use crate::memory::{self, blocking, read, replace_file};
use operation::context::{Context, store_problem};
use operation::problem::Problem;
use schemas::error_code::ErrorCode;
use schemas::reason::reason;

/// The place of the record.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum RecordPlace {
    /// Files in a directory outside the data directory, one for each log.
    Directory(PathBuf),
    /// Rows of the view store, changed by compare-and-set.
    Store,
}

/// The newest checkpoint of a log that was cosigned.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub(super) struct Cosigned {
    /// The origin line of the log.
    pub(super) origin: String,
    /// The checkpoint with the log's signatures that were verified and our cosignature.
    pub(super) note: String,
}

/// The record of one log.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(super) struct ReadRecord {
    /// The newest checkpoint that was cosigned; `None` if none was.
    pub(super) cosigned: Option<Cosigned>,
    /// The text of the record, for the comparison when it is replaced.
    text: Option<String>,
}

impl ReadRecord {
    /// The newest checkpoint that was cosigned; `None` if none was, or if it cannot be read.
    pub(super) fn checkpoint(&self) -> Option<Checkpoint> {
        SignedNote::parse(&self.cosigned.as_ref()?.note)?.checkpoint()
    }
}

/// The record of one witness key.
#[derive(Clone, Debug)]
pub(super) struct WitnessRecord {
    place: RecordPlace,
    /// Identifies the records of this key.
    key: String,
}

/// The name of a log in places where its origin is not valid, such as a path.
pub(super) fn origin_hash(origin: &str) -> String {
    Hash32::of(origin.as_bytes()).to_string()
}

impl WitnessRecord {
    /// The record of a witness key, as hex digits.
    pub(super) fn new(place: RecordPlace, key: String) -> Self {
        Self { place, key }
    }

    /// The directory of the files.
    fn directory(&self, path: &std::path::Path) -> PathBuf {
        path.join("witness").join(&self.key)
    }

    /// The row of a log: its record, or, with [`RecordPlace::Directory`], a note that there is a file.
    fn row(&self, log: &str) -> String {
        format!("witness/{}/{log}", self.key)
    }

    /// Reads the record of the log whose origin has this hash.
    ///
    /// # Errors
    /// When the record cannot be read, is damaged, or is missing although there was one.
    pub(super) async fn find(&self, ctx: &Context, log: &str) -> Result<ReadRecord, Problem> {
        let row = ctx.store.coordination().value(&self.row(log)).await.map_err(store_problem)?;
        let text = match &self.place {
            RecordPlace::Store => row,
            RecordPlace::Directory(path) => {
                let path = self.directory(path).join(format!("{log}.json"));
                let shown = path.display().to_string();
                let text = blocking(move || read(&path)).await.map_err(|error| unusable(&error))?;
                if text.is_none() && row.is_some() {
                    // The file is named to the operator only.
                    tracing::error!(
                        file = shown,
                        "the record of what this witness cosigned is missing; restore it, or use another witness key"
                    );
                    return Err(Problem::new(ErrorCode::Unavailable, "the record of what this witness cosigned is missing"));
                }
                text
            }
        };
        let damaged = |error: serde_json::Error| {
            tracing::error!(%error, log, "the record of what this witness cosigned is damaged");
            Problem::new(ErrorCode::Internal, "the record of what this witness cosigned is damaged")
        };
        let cosigned = text.as_deref().map(serde_json::from_str).transpose().map_err(damaged)?;
        Ok(ReadRecord { cosigned, text })
    }

    /// Replaces the record that was found by a checkpoint, durably; returns false if another process replaced it meanwhile.
    ///
    /// # Errors
    /// When the record cannot be written.
    pub(super) async fn replace(&self, ctx: &Context, found: &ReadRecord, next: &Cosigned) -> Result<bool, Problem> {
        let log = origin_hash(&next.origin);
        let text = serde_json::to_string(next).map_err(|error| Problem::new(ErrorCode::Internal, error.to_string()))?;
        let rows = ctx.store.coordination();
        match &self.place {
            RecordPlace::Store => rows.compare_and_store(&self.row(&log), found.text.as_deref(), &text).await.map_err(store_problem),
            RecordPlace::Directory(path) => {
                let (dir, name, current) = (self.directory(path), log.clone(), found.text.clone());
                let is_replaced = blocking(move || replace_file(&dir, &name, current.as_deref(), &text)).await;
                let is_replaced = is_replaced.map_err(|error| unusable(&error))?;
                if is_replaced {
                    // From now on a missing record is an error.
                    rows.store_if_absent(&self.row(&log), "recorded").await.map_err(store_problem)?;
                }
                Ok(is_replaced)
            }
        }
    }
}

fn unusable(error: &memory::Error) -> Problem {
    tracing::error!(error = reason(error), "the record of what this witness cosigned cannot be used");
    Problem::new(ErrorCode::Unavailable, "the record of what this witness cosigned cannot be used now").retry_after(1)
}
