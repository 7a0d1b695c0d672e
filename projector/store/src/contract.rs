//! The contract of view stores, as checks that run against any implementation.
//!
//! Each check creates its own views, empty at the start, so that checks run in any order, repeatedly, and on a store that keeps its data. A
//! check returns [`Failure::Broken`] with the violated guarantee. A backend calls [`all`] from its own tests.

mod coordination;
mod generations;
mod rows;

use std::sync::Arc;

use bytes::Bytes;
use rand::rngs::StdRng;
use rand::{RngExt as _, SeedableRng as _};
use schemas::position::{LogOffset, Seq};
use schemas::tables::{Key, Table, ViewDef, Write};

pub use self::coordination::{counters, leases, values};
pub use self::generations::{discarded_rebuild, leftover_rebuild, swap_under_readers, wait_past};
pub use self::rows::{commit_and_checkpoint, deletes, points, ranges, wide_keys};
use crate::store::{Checkpoint, Error, View, ViewStore};

/// Why a check failed.
#[derive(Debug, thiserror::Error)]
pub enum Failure {
    /// The store violated a guarantee.
    #[error("the store breaks its contract: {0}")]
    Broken(String),
    /// A call failed unexpectedly.
    #[error("a call failed unexpectedly")]
    Call(#[from] Error),
}

/// Runs every check.
///
/// # Errors
/// The failure of the first check that does not pass.
pub async fn all(store: &Arc<dyn ViewStore>) -> Result<(), Failure> {
    let by_ref = store.as_ref();
    commit_and_checkpoint(by_ref).await?;
    points(by_ref).await?;
    deletes(by_ref).await?;
    ranges(by_ref).await?;
    wide_keys(by_ref).await?;
    swap_under_readers(by_ref).await?;
    leftover_rebuild(by_ref).await?;
    discarded_rebuild(by_ref).await?;
    wait_past(by_ref).await?;
    leases(by_ref).await?;
    counters(store).await?;
    values(&**store).await
}

/// Fails the check unless the condition holds; the text states the guarantee.
macro_rules! promise {
    ($holds:expr, $($words:tt)+) => {
        if !$holds {
            return Err($crate::contract::Failure::Broken(format!($($words)+)));
        }
    };
}
use promise;

/// Returns an empty live generation of a view, whatever earlier runs left.
async fn fresh(store: &dyn ViewStore, def: &'static ViewDef) -> Result<Arc<dyn View>, Error> {
    let view = store.begin_rebuild(def).await?;
    store.swap(&view).await?;
    store.live(def).await
}

fn put(table: &'static Table, key: Key, value: &str) -> Write {
    Write::put(table, key, Bytes::copy_from_slice(value.as_bytes()))
}

fn delete(table: &'static Table, key: Key) -> Write {
    Write::delete(table, key)
}

fn at_seq(seq: u64) -> Checkpoint {
    Checkpoint { seq: Seq(seq), hash: format!("{seq:064x}"), offset: LogOffset(seq), recorded_at_ms: 1_000, ..Checkpoint::default() }
}

/// Generates random numbers from a seed: the same sequence in every run.
pub(crate) struct Random(StdRng);

impl Random {
    pub(crate) fn new(seed: u64) -> Self {
        Self(StdRng::seed_from_u64(seed))
    }

    #[cfg(test)]
    pub(crate) fn next(&mut self) -> u64 {
        rand::Rng::next_u64(&mut self.0)
    }

    /// Returns a number below `bound`, which must not be 0.
    pub(crate) fn below(&mut self, bound: usize) -> usize {
        self.0.random_range(..bound)
    }
}
