//! What a view store is, and what each call promises.
//!
//! - A **view** is a set of tables ([`schemas::tables::ViewDef`]) that is written, rebuilt and swapped as one. It exists in
//!   generations; one is live. A rebuild fills another beside it and swaps: readers that hold the old one finish on it.
//! - A **commit** is atomic with its checkpoint on the embedded store. On CQL the checkpoint is written after the rows, and
//!   rows are idempotent; so a reader may see rows of changes above the checkpoint, never miss one below it.
//! - Rows that must be read at a position carry their seq and history (see `schemas::views`), so that a read at a seq is a
//!   snapshot on either backend, whatever is written meanwhile.
//! - View rows need no sync: what a crash loses, the log gives again from the checkpoint that survived with the rows.
//! - **Coordination rows** (leases, counters) are apart: in no view, no digest, no rebuild.

use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::Duration;

use async_trait::async_trait;
use bytes::Bytes;
use schemas::tables::{Key, Table, ViewDef, Write};
use serde::{Deserialize, Serialize};

/// How far a view has come. Stored with the rows it covers.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct Checkpoint {
    /// The last change applied (0 before the first).
    pub seq: u64,
    /// That change's hash in hex, which the next one's `prevHash` must be (64 zeros before the first).
    pub hash: String,
    /// Offset, in the change topic, after the last change applied.
    pub offset: u64,
    /// That change's recorded time: milliseconds since 1970.
    pub recorded_at_ms: i64,
    /// The next input offset of each partition read: `topic/partition` to offset.
    pub positions: BTreeMap<String, u64>,
}

/// Rows of one table under a key prefix.
#[derive(Clone, Debug)]
pub struct Range {
    /// The leading key columns that all rows share. On CQL it must hold the partition columns.
    pub prefix: Key,
    /// Start after this whole key (exclusive), in the direction of reading. `None`: from the prefix's first row.
    pub after: Option<Key>,
    /// Start at this key or the first one beyond it (inclusive); used when `after` is `None`. May be a longer prefix.
    pub from: Option<Key>,
    /// At most this many rows.
    pub limit: usize,
    /// Against the table's order.
    pub reverse: bool,
}

/// A stretch of a table in key order. Either end may be the beginning of a key.
#[derive(Clone, Debug, Default)]
pub struct Span {
    /// The first key (inclusive), or what it begins with; `None`: the table's first.
    pub from: Option<Key>,
    /// Where it ends (exclusive: nothing that begins with it is inside); `None`: with the table.
    pub to: Option<Key>,
}

/// A stretch of a table, read a page at a time.
#[async_trait]
pub trait Scan: Send {
    /// The next rows, at most `rows_max` and at least one; none when all were given.
    async fn next(&mut self, rows_max: usize) -> Result<Vec<(Key, Bytes)>, Error>;
}

/// Why a call failed.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum Error {
    /// The generation was dropped after a swap; open the live one again.
    #[error("generation {generation} of view {view} is gone")]
    Gone {
        /// The view.
        view: String,
        /// The generation.
        generation: u64,
    },
    /// The commit's checkpoint lies behind the stored one: another writer came further. Nothing was written.
    #[error("another writer of view {view} came further")]
    Behind {
        /// The view.
        view: String,
    },
    /// Stored bytes are not what was written.
    #[error("the store is damaged in {table}: {reason}")]
    Damaged {
        /// The table.
        table: String,
        /// In which way.
        reason: String,
    },
    /// The store cannot be opened or used; the reason names the file or the server.
    #[error("{what}")]
    Unavailable {
        /// What was tried, and on what.
        what: String,
        /// Why it failed.
        #[source]
        source: Option<Box<dyn std::error::Error + Send + Sync>>,
    },
}

/// One generation of one view.
#[async_trait]
pub trait View: Send + Sync + 'static {
    /// The view's definition.
    fn def(&self) -> &'static ViewDef;
    /// This generation's number.
    fn generation(&self) -> u64;
    /// The checkpoint stored with the rows; the default before the first commit.
    async fn checkpoint(&self) -> Result<Checkpoint, Error>;
    /// Writes rows and the checkpoint, as one. A checkpoint never goes back: a writer that was overtaken while it slept
    /// gets [`Error::Behind`], and its rows are not written.
    ///
    /// Of several writes to a row the last one counts. Where rows and checkpoint are not one (CQL), readers may see rows before the
    /// checkpoint, and a crash may leave them without it; but all rows of a table are there before any of the next one is: history
    /// first, so that who finds a row too new finds the one before it, then tables in the order of their first write.
    async fn commit(&self, writes: Vec<Write>, checkpoint: &Checkpoint) -> Result<(), Error>;
    /// One row.
    async fn get(&self, table: &'static Table, key: &Key) -> Result<Option<Bytes>, Error>;
    /// Several rows of one table, in the order of the keys.
    async fn get_many(&self, table: &'static Table, keys: &[Key]) -> Result<Vec<Option<Bytes>>, Error>;
    /// A page of rows, in key order (or against it).
    async fn range(&self, table: &'static Table, range: Range) -> Result<Vec<(Key, Bytes)>, Error>;
    /// Reads a table, or a stretch of it, in key order: what digests and exports page through. What is written meanwhile may be in it
    /// or not. On CQL it reads every partition and sorts, so it is not for answering requests.
    fn scan(&self, table: &'static Table, span: Span) -> Box<dyn Scan>;
    /// Waits until a commit has raised the checkpoint's seq, or any position, since `seen`; answers the checkpoint then. Cancel-safe.
    /// On a generation that a swap replaced it answers [`Error::Gone`] instead of waiting for what cannot come.
    ///
    /// Another process's commit is known within milliseconds soon after a wait began or [`Self::stir`] was called, otherwise within a second;
    /// within some two, like another process's swap, where this one had just committed itself.
    async fn wait_past(&self, seen: &Checkpoint) -> Result<Checkpoint, Error>;
    /// Says that another process may be about to commit: if anybody waits, it is looked for often from now on.
    fn wake(&self) {}
}

/// All views, and the coordination rows beside them.
#[async_trait]
pub trait ViewStore: Send + Sync + 'static {
    /// Whether other processes may commit to its views.
    fn is_shared(&self) -> bool {
        false
    }
    /// The live generation of a view, made (as generation 1) if there is none.
    async fn live(&self, def: &'static ViewDef) -> Result<Arc<dyn View>, Error>;
    /// A new, empty generation beside the live one. One left over by a crash is dropped first.
    async fn begin_rebuild(&self, def: &'static ViewDef) -> Result<Arc<dyn View>, Error>;
    /// Makes a rebuilt generation the live one, durably; `live` answers it from now on, and older ones are dropped once unused.
    async fn swap(&self, rebuilt: &Arc<dyn View>) -> Result<(), Error>;
    /// The coordination rows.
    fn coordination(&self) -> &dyn Coordination;
    /// Whether the store answers now; why not, if it does not. May be asked every second.
    async fn ready(&self) -> Result<(), Error> {
        Ok(())
    }
    /// What time it is for the store, in milliseconds since 1970; `None` where that is this machine's clock.
    async fn now_ms(&self) -> Result<Option<i64>, Error> {
        Ok(None)
    }
    /// Flushes and closes. Calling it again does nothing.
    async fn close(&self) -> Result<(), Error>;
}

/// Leases and counters. Linearizable; counters survive a kill of the process, leases where other processes share the store; losing them
/// all loses no fact and grants nothing.
#[async_trait]
pub trait Coordination: Send + Sync {
    /// Takes or renews the lease `name` for `holder`; it ends by the store's own clock, `ttl` from now or up to two seconds later. False:
    /// another holds it.
    async fn lease(&self, name: &str, holder: &str, ttl: Duration) -> Result<bool, Error>;
    /// Who holds the lease `name`, if anybody does.
    async fn holder(&self, name: &str) -> Result<Option<String>, Error>;
    /// Gives the lease back, if `holder` holds it.
    async fn release(&self, name: &str, holder: &str) -> Result<(), Error>;
    /// Adds `amount` (negative gives back) to the counter `name` unless the sum would pass `max`; answers how much was
    /// added (all, or what fits, or 0). The counter is forgotten after `expires_ms`.
    async fn take(&self, name: &str, amount: i64, max: i64, now_ms: i64, expires_ms: i64) -> Result<i64, Error>;
    /// The value kept under `name`.
    async fn kept(&self, name: &str) -> Result<Option<String>, Error>;
    /// Keeps a value under `name`, durably, unless one is kept there already; answers the one that is.
    async fn keep(&self, name: &str, value: &str) -> Result<String, Error>;
    /// Puts a value in the place of whatever is kept under `name`, durably. What was there is in no answer any more.
    async fn replace(&self, name: &str, value: &str) -> Result<(), Error>;
    /// Keeps `value` under `name`, durably, only if what is kept there is `current` (`None`: nothing). Answers whether `value` is kept now.
    /// Of several callers with the same `current` and different values one is answered true.
    async fn replace_if(&self, name: &str, current: Option<&str>, value: &str) -> Result<bool, Error>;
    /// All that is kept, in no order.
    async fn all_kept(&self) -> Result<Vec<(String, String)>, Error>;
}
