//! Rebuild, swap, and waiting for progress.

use std::future::Future;
use std::pin::pin;
use std::task::{Context, Poll, Waker};

use schemas::key;
use schemas::tables::{Table, TableKind, ValueKind, ViewDef, int, text};

use super::{Failure, at_seq, fresh, promise, put};
use crate::store::{Checkpoint, Error, Range, ViewStore};

static TABLE: Table = Table {
    name: "contract_generations",
    key: &[text("part"), int("num")],
    partition_columns: 1,
    kind: TableKind::Current,
    value: ValueKind::Text,
};
static SWAPPED: ViewDef = ViewDef { name: "contract_swapped", tables: &[&TABLE] };
static WAITED_TABLE: Table = Table {
    name: "contract_waits",
    key: &[text("part"), int("num")],
    partition_columns: 1,
    kind: TableKind::Current,
    value: ValueKind::Text,
};
static WAITED: ViewDef = ViewDef { name: "contract_waited", tables: &[&WAITED_TABLE] };

fn all_rows() -> Range {
    Range { prefix: key!["p"], after: None, from: None, limit: 1_000, reverse: false }
}

/// A rebuild is apart until the swap; then `live` answers it, and a reader of the old generation finishes on the old rows.
///
/// # Errors
/// What was promised and not kept.
pub async fn swap_under_readers(store: &dyn ViewStore) -> Result<(), Failure> {
    let old = fresh(store, &SWAPPED).await?;
    old.commit((0..10).map(|num| put(&TABLE, key!["p", num], "old")).collect(), &at_seq(10)).await?;
    let rebuilt = store.begin_rebuild(&SWAPPED).await?;
    promise!(rebuilt.generation() != old.generation(), "a rebuild has a generation of its own");
    promise!(rebuilt.checkpoint().await? == Checkpoint::default(), "a rebuild begins at the default checkpoint");
    promise!(rebuilt.range(&TABLE, all_rows()).await?.is_empty(), "a rebuild begins empty");
    rebuilt.commit((0..4).map(|num| put(&TABLE, key!["p", num], "new")).collect(), &at_seq(12)).await?;
    old.commit(vec![put(&TABLE, key!["p", 10], "old")], &at_seq(11)).await?;
    let live = store.live(&SWAPPED).await?;
    promise!(live.generation() == old.generation(), "the old generation is live until the swap");
    promise!(live.range(&TABLE, all_rows()).await?.len() == 11, "the live generation takes commits beside a rebuild");
    drop(live);
    store.swap(&rebuilt).await?;
    store.swap(&rebuilt).await?;
    let live = store.live(&SWAPPED).await?;
    promise!(live.generation() == rebuilt.generation(), "the rebuilt generation is live after the swap");
    promise!(live.checkpoint().await? == at_seq(12), "the swap brings the rebuilt checkpoint");
    let rows = live.range(&TABLE, all_rows()).await?;
    promise!(rows.len() == 4 && rows.iter().all(|(_, value)| &value[..] == b"new"), "the swap brings the rebuilt rows alone");
    let rows = old.range(&TABLE, all_rows()).await?;
    promise!(rows.len() == 11 && rows.iter().all(|(_, value)| &value[..] == b"old"), "a reader of the old generation finishes on it");
    let late = old.commit(vec![put(&TABLE, key!["p", 99], "late")], &at_seq(13)).await;
    promise!(matches!(late, Err(Error::Gone { .. })), "a replaced generation takes no commits");
    promise!(matches!(store.swap(&old).await, Err(Error::Gone { .. })), "a replaced generation cannot come back");
    drop(old);
    live.commit(vec![put(&TABLE, key!["p", 4], "new")], &at_seq(13)).await?;
    promise!(live.range(&TABLE, all_rows()).await?.len() == 5, "the live generation goes on after the old one is dropped");
    Ok(())
}

/// A rebuild that was left is dropped by the next one: its holder reads `Gone`, and the new one begins empty.
///
/// # Errors
/// What was promised and not kept.
pub async fn leftover_rebuild(store: &dyn ViewStore) -> Result<(), Failure> {
    let live = fresh(store, &SWAPPED).await?;
    live.commit(vec![put(&TABLE, key!["p", 1], "live")], &at_seq(1)).await?;
    let left = store.begin_rebuild(&SWAPPED).await?;
    left.commit(vec![put(&TABLE, key!["p", 2], "left")], &at_seq(2)).await?;
    let next = store.begin_rebuild(&SWAPPED).await?;
    promise!(next.generation() != left.generation(), "a generation's number is not given twice");
    promise!(next.range(&TABLE, all_rows()).await?.is_empty(), "a rebuild begins empty after one that was left");
    promise!(matches!(left.get(&TABLE, &key!["p", 2]).await, Err(Error::Gone { .. })), "reading a dropped generation answers Gone");
    promise!(matches!(left.range(&TABLE, all_rows()).await, Err(Error::Gone { .. })), "a range of a dropped generation answers Gone");
    promise!(matches!(left.commit(Vec::new(), &at_seq(3)).await, Err(Error::Gone { .. })), "a dropped generation takes no commits");
    promise!(matches!(store.swap(&left).await, Err(Error::Gone { .. })), "a dropped generation cannot be swapped in");
    promise!(live.get(&TABLE, &key!["p", 1]).await?.is_some(), "the live generation is untouched");
    Ok(())
}

/// Waiting answers at once when progress was made before, when a commit follows, and with `Gone` when none can; a wait that is
/// dropped loses nothing.
///
/// # Errors
/// What was promised and not kept.
pub async fn wait_past(store: &dyn ViewStore) -> Result<(), Failure> {
    let view = fresh(store, &WAITED).await?;
    let nothing = Checkpoint::default();
    {
        // A commit after the first look and before the waiter runs again must not be missed.
        let mut wait = pin!(view.wait_past(&nothing));
        let mut context = Context::from_waker(Waker::noop());
        promise!(wait.as_mut().poll(&mut context).is_pending(), "without progress a wait waits");
        view.commit(Vec::new(), &at_seq(1)).await?;
        promise!(wait.await? == at_seq(1), "a commit wakes the wait with its checkpoint");
    }
    promise!(view.wait_past(&nothing).await? == at_seq(1), "progress made before the call answers at once");
    {
        let seen = at_seq(1);
        let mut dropped = pin!(view.wait_past(&seen));
        let mut context = Context::from_waker(Waker::noop());
        promise!(matches!(dropped.as_mut().poll(&mut context), Poll::Pending), "the same seq is no progress");
    }
    let mut moved = at_seq(1);
    moved.positions.insert("topic/3".to_owned(), 5);
    let at_one = at_seq(1);
    let (woken, committed) = tokio::join!(view.wait_past(&at_one), view.commit(Vec::new(), &moved));
    committed?;
    promise!(woken? == moved, "a position alone is progress");
    let last = Checkpoint { seq: 2, ..moved };
    view.commit(Vec::new(), &last).await?;
    let rebuilt = store.begin_rebuild(&WAITED).await?;
    let (woken, swapped) = tokio::join!(view.wait_past(&last), store.swap(&rebuilt));
    swapped?;
    promise!(matches!(woken, Err(Error::Gone { .. })), "a swap wakes those that wait on the old generation with Gone");
    Ok(())
}
