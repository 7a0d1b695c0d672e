//! The interface of a view store, and what each call guarantees.
//!
//! - A **view** is a set of tables ([`schemas::tables::ViewDef`]) that is written, rebuilt and swapped together. It exists in
//!   generations, one of which is live. A rebuild fills another one and swaps it in; readers that hold the old one finish on it.
//! - A **commit** is atomic with its checkpoint on the embedded store. On CQL the checkpoint is written after the rows, and
//!   rows are idempotent. A reader may thus see rows of changes above the checkpoint, but never misses one below it.
//! - Rows that must be read at a position carry their seq and history (see `schemas::views`), so that a read at a seq is a
//!   snapshot on either backend, whatever is written meanwhile.
//! - View rows need no sync: what a crash loses is applied again from the log, from the checkpoint that survived with the rows.
//! - **Coordination rows** (leases, counters, values) belong to no view, no digest and no rebuild.

use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::Duration;

use async_trait::async_trait;
use bytes::Bytes;
use schemas::position::{LogOffset, Seq};
use schemas::tables::{Key, Table, ViewDef, Write};
use serde::{Deserialize, Serialize};

/// How long a lease lasts by default. It is renewed three times in that period.
pub const DEFAULT_LEASE_LENGTH: Duration = Duration::from_secs(15);

/// How often it is checked whether views are served.
const SERVED_POLL_INTERVAL: Duration = Duration::from_millis(20);

/// The position up to which a view has been written. Stored with the rows that it covers.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct Checkpoint {
    /// Seq of the last applied change; 0 before the first.
    pub seq: Seq,
    /// Hash of that change in hex, which the next change's `prevHash` must equal; 64 zeros before the first.
    pub hash: String,
    /// Offset in the change topic after the last applied change.
    pub offset: LogOffset,
    /// Recorded time of that change: milliseconds since 1970.
    pub recorded_at_ms: i64,
    /// The next input offset of each partition: `topic/partition` to offset.
    pub positions: BTreeMap<String, LogOffset>,
    /// The number of current records after that change. `None` if a version that did not count them applied some of the changes. Read it with
    /// [`Self::current_records`], which knows that there are none before the first change.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub records: Option<u64>,
}

/// A partition of an input topic, and an offset that its position is to reach.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Awaited {
    /// The partition, as the positions of a checkpoint name it: `topic/partition`.
    pub partition: String,
    /// The least next offset.
    pub next: LogOffset,
}

/// Rows of one table under a key prefix.
#[derive(Clone, Debug)]
pub struct Range {
    /// The leading key columns that all rows share. On CQL it must contain the partition columns.
    pub prefix: Key,
    /// Start after this complete key (exclusive), in the direction of reading. `None`: start at the first row of the prefix.
    pub after: Option<Key>,
    /// Start at this key or the first one after it (inclusive); used if `after` is `None`. May be a longer prefix.
    pub from: Option<Key>,
    /// The most rows to return.
    pub limit: usize,
    /// Read against the order of the table.
    pub reverse: bool,
}

/// A section of a table in key order. Either end may be a prefix of a key.
#[derive(Clone, Debug, Default)]
pub struct Span {
    /// The first key (inclusive), or its prefix; `None`: the first key of the table.
    pub from: Option<Key>,
    /// The end (exclusive: keys with this prefix are not included); `None`: the end of the table.
    pub to: Option<Key>,
}

/// Reads a section of a table page by page.
#[async_trait]
pub trait Scan: Send {
    /// Returns the next rows, at least one and at most `rows_max`; none at the end.
    async fn next(&mut self, rows_max: usize) -> Result<Vec<(Key, Bytes)>, Error>;
}

/// Why a call failed.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum Error {
    /// The generation was dropped after a swap; open the live one.
    #[error("generation {generation} of view {view} is gone")]
    Gone {
        /// The name of the view.
        view: String,
        /// The number of the generation.
        generation: u64,
    },
    /// The checkpoint of the commit is behind the stored one: another writer has advanced the view. Nothing was written.
    #[error("another writer has advanced view {view}")]
    Behind {
        /// The name of the view.
        view: String,
    },
    /// The view does not have everything that the log has, because it is rebuilt; it will be served when it has.
    #[error("view {view} is being completed from the log: {reason}")]
    Rebuilding {
        /// The name of the view.
        view: String,
        /// Why it must be rebuilt.
        reason: String,
    },
    /// Stored bytes differ from what was written.
    #[error("the store is damaged in {table}: {reason}")]
    Damaged {
        /// The name of the table.
        table: String,
        /// What is damaged.
        reason: String,
    },
    /// The store cannot be opened or used; the reason names the file or the server.
    #[error("{what}")]
    Unavailable {
        /// What was attempted, and on which file or server.
        what: String,
        /// The cause.
        #[source]
        source: Option<Box<dyn std::error::Error + Send + Sync>>,
    },
}

/// One generation of one view.
#[async_trait]
pub trait View: Send + Sync + 'static {
    /// Returns the definition of the view.
    fn def(&self) -> &'static ViewDef;
    /// Returns the number of this generation.
    fn generation(&self) -> u64;
    /// Returns which fields of records are hidden, as a number that differs between different sets of suppressed keys; 0 if nothing is hidden. What
    /// is cached by generation and holds records is cached by this number, too.
    fn rendition(&self) -> u64 {
        0
    }
    /// Returns how many suppressed keys can hide fields of records of this view.
    fn suppressed_keys(&self) -> usize {
        0
    }
    /// Returns what readers see of a record that comes from elsewhere, as a JSON object with the member `record`; `None` if they see all of it.
    /// The rows of this view are shown that way already.
    ///
    /// # Errors
    /// When the text is not such an object.
    fn hide(&self, _row: &[u8]) -> Result<Option<Bytes>, Error> {
        Ok(None)
    }
    /// Returns the checkpoint stored with the rows; the default before the first commit.
    async fn checkpoint(&self) -> Result<Checkpoint, Error>;
    /// Writes rows and the checkpoint as a unit. A checkpoint never goes back: a delayed writer gets [`Error::Behind`], and its rows are
    /// not written.
    ///
    /// Of several writes to a row, the last one counts. Where rows and checkpoint are not atomic (CQL), readers may see rows before the
    /// checkpoint, and a crash may leave them without it. All rows of a table are written before any of the next: history first, so that a
    /// reader who finds a row too new finds the previous version, then tables in the order of their first write.
    async fn commit(&self, writes: Vec<Write>, checkpoint: &Checkpoint) -> Result<(), Error>;
    /// Returns a row.
    async fn get(&self, table: &'static Table, key: &Key) -> Result<Option<Bytes>, Error>;
    /// Returns several rows of one table, in the order of the keys.
    async fn get_many(&self, table: &'static Table, keys: &[Key]) -> Result<Vec<Option<Bytes>>, Error>;
    /// Returns a page of rows, in key order or against it.
    async fn range(&self, table: &'static Table, range: Range) -> Result<Vec<(Key, Bytes)>, Error>;
    /// Reads a table, or a section of it, in key order, for digests and exports. Concurrent writes may or may not be included. On CQL it
    /// reads and sorts all partitions; do not use it to answer requests.
    fn scan(&self, table: &'static Table, span: Span) -> Box<dyn Scan>;
    /// Waits until a commit has raised the checkpoint's seq or any position since `seen`, and returns the checkpoint. Cancel-safe. On a
    /// generation that was replaced by a swap it returns [`Error::Gone`] instead of waiting forever.
    ///
    /// A commit of another process is noticed within milliseconds after a wait started or [`Self::wake`] was called, otherwise within a
    /// second. If this process has just committed, it takes up to two seconds; the same holds for swaps of other processes.
    async fn wait_past(&self, seen: &Checkpoint) -> Result<Checkpoint, Error>;
    /// Waits until one of the positions is reached, as [`Self::wait_past`] does: for the many waiters that most commits of a view do not concern.
    async fn wait_for_any(&self, awaited: &[Awaited]) -> Result<(), Error> {
        let mut checkpoint = self.checkpoint().await?;
        while !checkpoint.has_reached_any(awaited) {
            checkpoint = self.wait_past(&checkpoint).await?;
        }
        Ok(())
    }
    /// Reports that rows are missing or differ from what was written, which the store itself could not see. A store that can rebuild the view does.
    fn report_damage(&self, _reason: &str) {}
    /// Waits until this generation accepts no more commits because another one replaced it. Never returns on a store that does not notice it. Cancel-safe.
    async fn replaced(&self) {
        std::future::pending().await
    }
    /// Records that this generation has everything that the log had when the caller filled it. If it is live, [`ViewStore::live`] returns it from now on.
    async fn finish_rebuild(&self) -> Result<(), Error> {
        Ok(())
    }
    /// Returns the generation that is live now, if this view follows the live one; `None` if it is one generation. A writer must not commit to
    /// another generation than the one whose checkpoint it has read.
    async fn pinned(&self) -> Result<Option<Arc<dyn View>>, Error> {
        Ok(None)
    }
    /// Announces that another process may be about to commit. If there are waiters, the checkpoint is polled frequently from now on.
    fn wake(&self) {}
}

/// All views, and the coordination rows.
#[async_trait]
pub trait ViewStore: Send + Sync + 'static {
    /// Whether other processes may commit to the views.
    fn is_shared(&self) -> bool {
        false
    }
    /// Returns how long a [lease](crate::lease::Lease) lasts, and therefore after how long the work of a process that crashed is taken over.
    fn lease_length(&self) -> Duration {
        DEFAULT_LEASE_LENGTH
    }
    /// Returns the live generation of a view; creates generation 1 if there is none. While it is rebuilt because it was damaged, or was never filled,
    /// it fails with [`Error::Rebuilding`].
    async fn live(&self, def: &'static ViewDef) -> Result<Arc<dyn View>, Error>;
    /// Returns the live generation of a view for those who fill it, also while it is rebuilt.
    async fn live_to_project(&self, def: &'static ViewDef) -> Result<Arc<dyn View>, Error> {
        self.live(def).await
    }
    /// Whether the store replaces a view in which damage is found or reported by an empty one, which is then rebuilt.
    fn replaces_damaged_views(&self) -> bool {
        false
    }
    /// Returns the views that are rebuilt because they were damaged or never filled, with the reasons.
    fn rebuilding(&self) -> Vec<(&'static str, String)> {
        Vec::new()
    }
    /// Returns the views that [`Self::live`] does not return now: those that are rebuilt, and those that have not caught up since the start.
    fn unserved(&self) -> Vec<&'static str> {
        Vec::new()
    }
    /// Creates a new, empty generation next to the live one. One that a crash left is dropped first.
    async fn begin_rebuild(&self, def: &'static ViewDef) -> Result<Arc<dyn View>, Error>;
    /// Makes a rebuilt generation the live one, durably. From now on `live` returns it; older ones are dropped once unused.
    async fn swap(&self, rebuilt: &Arc<dyn View>) -> Result<(), Error>;
    /// Drops a generation of [`Self::begin_rebuild`] that is not made the live one. Of any other generation, and a second time, it does nothing.
    async fn discard(&self, rebuilt: &Arc<dyn View>) -> Result<(), Error>;
    /// Waits until [`Self::live`] returns these views. Cancel-safe.
    async fn served(&self, views: &[&str]) {
        while self.unserved().iter().any(|view| views.contains(view)) {
            tokio::time::sleep(SERVED_POLL_INTERVAL).await;
        }
    }
    /// Returns the coordination rows.
    fn coordination(&self) -> &dyn Coordination;
    /// Checks whether the store answers now. May be called every second.
    async fn ready(&self) -> Result<(), Error> {
        Ok(())
    }
    /// Returns the store's time in milliseconds since 1970; `None` if it uses this machine's clock.
    async fn now_ms(&self) -> Result<Option<i64>, Error> {
        Ok(None)
    }
    /// Flushes and closes the store. Further calls have no effect.
    async fn close(&self) -> Result<(), Error>;
}

/// Leases, counters and values. Linearizable. Counters survive a kill of the process, and leases do if other processes share the store.
/// Losing all of them loses no fact and grants nothing.
#[async_trait]
pub trait Coordination: Send + Sync {
    /// Acquires or renews the lease `name` for `holder`. It expires by the store's own clock, `ttl` from now or up to two seconds later.
    /// Returns false if another process holds it.
    async fn lease(&self, name: &str, holder: &str, ttl: Duration) -> Result<bool, Error>;
    /// Returns the holder of the lease `name`, if there is one.
    async fn holder(&self, name: &str) -> Result<Option<String>, Error>;
    /// Releases the lease, if `holder` holds it.
    async fn release(&self, name: &str, holder: &str) -> Result<(), Error>;
    /// Adds `amount` (negative to give back) to the counter `name`, but not beyond `max`. Returns how much was added: all, what fits, or 0.
    /// The counter is deleted after `expires_ms`.
    async fn add_to_counter(&self, name: &str, amount: i64, max: i64, now_ms: i64, expires_ms: i64) -> Result<i64, Error>;
    /// Returns the value stored under `name`.
    async fn value(&self, name: &str) -> Result<Option<String>, Error>;
    /// Stores a value under `name`, durably, unless there is one. Returns the stored value.
    async fn store_if_absent(&self, name: &str, value: &str) -> Result<String, Error>;
    /// Stores a value under `name`, durably. The previous value is no longer returned.
    async fn store(&self, name: &str, value: &str) -> Result<(), Error>;
    /// Stores `value` under `name`, durably, only if the stored value is `current` (`None`: no value). Returns whether `value` is stored
    /// now. Of several callers with the same `current` and different values, one succeeds.
    async fn compare_and_store(&self, name: &str, current: Option<&str>, value: &str) -> Result<bool, Error>;
    /// Returns all stored values with their names, in no particular order.
    async fn values(&self) -> Result<Vec<(String, String)>, Error>;
}
