//! Checks of rebuilds, swaps, and waiting for commits.

use std::future::Future;
use std::pin::pin;
use std::task::{Context, Poll, Waker};

use schemas::key;
use schemas::position::{LogOffset, Seq};
use schemas::tables::{Table, TableKind, ValueKind, ViewDef, int, text};

use super::{Failure, at_seq, fresh, promise, put};
use crate::store::{Awaited, Checkpoint, Error, Range, ViewStore};

static TABLE: Table = Table {
    name: "contract_generations",
    key: &[text("part"), int("num")],
    partition_columns: 1,
    kind: TableKind::Current,
    value: ValueKind::Text,
};
static SWAPPED: ViewDef = ViewDef { name: "contract_swapped", tables: &[&TABLE], hides: &[] };
static WAITED_TABLE: Table = Table {
    name: "contract_waits",
    key: &[text("part"), int("num")],
    partition_columns: 1,
    kind: TableKind::Current,
    value: ValueKind::Text,
};
static WAITED: ViewDef = ViewDef { name: "contract_waited", tables: &[&WAITED_TABLE], hides: &[] };

fn all_rows() -> Range {
    Range { prefix: key!["p"], after: None, from: None, limit: 1_000, reverse: false }
}

/// A rebuild is invisible until the swap. Then `live` returns it, and a reader of the old generation finishes on the old rows.
///
/// # Errors
/// The violated guarantee.
pub async fn swap_under_readers(store: &dyn ViewStore) -> Result<(), Failure> {
    let old = fresh(store, &SWAPPED).await?;
    old.commit((0..10).map(|num| put(&TABLE, key!["p", num], "old")).collect(), &at_seq(10)).await?;
    let rebuilt = store.begin_rebuild(&SWAPPED).await?;
    promise!(rebuilt.generation() != old.generation(), "a rebuild has a generation of its own");
    promise!(rebuilt.checkpoint().await? == Checkpoint::default(), "a rebuild starts at the default checkpoint");
    promise!(rebuilt.range(&TABLE, all_rows()).await?.is_empty(), "a rebuild is empty at first");
    rebuilt.commit((0..4).map(|num| put(&TABLE, key!["p", num], "new")).collect(), &at_seq(12)).await?;
    old.commit(vec![put(&TABLE, key!["p", 10], "old")], &at_seq(11)).await?;
    let live = store.live(&SWAPPED).await?;
    promise!(live.generation() == old.generation(), "the old generation is live until the swap");
    promise!(live.range(&TABLE, all_rows()).await?.len() == 11, "the live generation accepts commits during a rebuild");
    drop(live);
    store.swap(&rebuilt).await?;
    store.swap(&rebuilt).await?;
    let live = store.live(&SWAPPED).await?;
    promise!(live.generation() == rebuilt.generation(), "the rebuilt generation is live after the swap");
    promise!(live.checkpoint().await? == at_seq(12), "the swap brings the rebuilt checkpoint");
    let rows = live.range(&TABLE, all_rows()).await?;
    promise!(rows.len() == 4 && rows.iter().all(|(_, value)| &value[..] == b"new"), "the swap shows only the rebuilt rows");
    let rows = old.range(&TABLE, all_rows()).await?;
    promise!(rows.len() == 11 && rows.iter().all(|(_, value)| &value[..] == b"old"), "a reader of the old generation finishes on it");
    let late = old.commit(vec![put(&TABLE, key!["p", 99], "late")], &at_seq(13)).await;
    promise!(matches!(late, Err(Error::Gone { .. })), "a replaced generation accepts no commits");
    promise!(matches!(store.swap(&old).await, Err(Error::Gone { .. })), "a replaced generation cannot come back");
    drop(old);
    live.commit(vec![put(&TABLE, key!["p", 4], "new")], &at_seq(13)).await?;
    promise!(live.range(&TABLE, all_rows()).await?.len() == 5, "the live generation continues after the old one is dropped");
    Ok(())
}

/// An abandoned rebuild is dropped by the next one: its holder gets `Gone`, and the new one is empty at first.
///
/// # Errors
/// The violated guarantee.
pub async fn leftover_rebuild(store: &dyn ViewStore) -> Result<(), Failure> {
    let live = fresh(store, &SWAPPED).await?;
    live.commit(vec![put(&TABLE, key!["p", 1], "live")], &at_seq(1)).await?;
    let left = store.begin_rebuild(&SWAPPED).await?;
    left.commit(vec![put(&TABLE, key!["p", 2], "left")], &at_seq(2)).await?;
    let next = store.begin_rebuild(&SWAPPED).await?;
    promise!(next.generation() != left.generation(), "a generation's number is not assigned twice");
    promise!(next.range(&TABLE, all_rows()).await?.is_empty(), "a rebuild after an abandoned one is empty");
    promise!(matches!(left.get(&TABLE, &key!["p", 2]).await, Err(Error::Gone { .. })), "reading a dropped generation returns Gone");
    promise!(matches!(left.range(&TABLE, all_rows()).await, Err(Error::Gone { .. })), "a range of a dropped generation returns Gone");
    promise!(matches!(left.commit(Vec::new(), &at_seq(3)).await, Err(Error::Gone { .. })), "a dropped generation accepts no commits");
    promise!(matches!(store.swap(&left).await, Err(Error::Gone { .. })), "a dropped generation cannot be swapped in");
    promise!(live.get(&TABLE, &key!["p", 1]).await?.is_some(), "the live generation is untouched");
    Ok(())
}

/// A rebuild that is discarded is dropped, once and for all; the live generation and later rebuilds are not.
///
/// # Errors
/// The violated guarantee.
pub async fn discarded_rebuild(store: &dyn ViewStore) -> Result<(), Failure> {
    let live = fresh(store, &SWAPPED).await?;
    live.commit(vec![put(&TABLE, key!["p", 1], "live")], &at_seq(1)).await?;
    let compared = store.begin_rebuild(&SWAPPED).await?;
    compared.commit(vec![put(&TABLE, key!["p", 1], "compared")], &at_seq(1)).await?;
    store.discard(&compared).await?;
    promise!(matches!(compared.get(&TABLE, &key!["p", 1]).await, Err(Error::Gone { .. })), "reading a discarded generation returns Gone");
    promise!(matches!(store.swap(&compared).await, Err(Error::Gone { .. })), "a discarded generation cannot be swapped in");
    let next = store.begin_rebuild(&SWAPPED).await?;
    promise!(next.generation() != compared.generation(), "the number of a discarded generation is not assigned again");
    store.discard(&compared).await?;
    store.discard(&live).await?;
    promise!(next.range(&TABLE, all_rows()).await?.is_empty(), "a later rebuild is not discarded with an earlier one");
    promise!(live.get(&TABLE, &key!["p", 1]).await?.is_some(), "the live generation is not discarded");
    Ok(())
}

/// A wait returns at once if the view has advanced, when a commit follows, and with `Gone` if none can follow; cancelling a wait loses
/// nothing. A wait for some positions ends with a commit that reaches one of them, and with no other.
///
/// # Errors
/// The violated guarantee.
pub async fn wait_past(store: &dyn ViewStore) -> Result<(), Failure> {
    let view = fresh(store, &WAITED).await?;
    let nothing = Checkpoint::default();
    {
        // A commit between the first check and the next run of the waiter must not be missed.
        let mut wait = pin!(view.wait_past(&nothing));
        let mut context = Context::from_waker(Waker::noop());
        promise!(wait.as_mut().poll(&mut context).is_pending(), "a wait continues without progress");
        view.commit(Vec::new(), &at_seq(1)).await?;
        promise!(wait.await? == at_seq(1), "a commit wakes the wait with its checkpoint");
    }
    promise!(view.wait_past(&nothing).await? == at_seq(1), "a wait returns at once after earlier progress");
    {
        let seen = at_seq(1);
        let mut dropped = pin!(view.wait_past(&seen));
        let mut context = Context::from_waker(Waker::noop());
        promise!(matches!(dropped.as_mut().poll(&mut context), Poll::Pending), "the same seq is no progress");
    }
    let mut moved = at_seq(1);
    moved.positions.insert("topic/3".to_owned(), LogOffset(5));
    let at_one = at_seq(1);
    let (woken, committed) = tokio::join!(view.wait_past(&at_one), view.commit(Vec::new(), &moved));
    committed?;
    promise!(woken? == moved, "a position alone is progress");
    let awaited = [("topic/3", 7), ("topic/5", 1)].map(|(name, next)| Awaited { partition: name.to_owned(), next: LogOffset(next) });
    let others = async {
        let mut last = Checkpoint { seq: Seq(2), ..moved };
        for (partition, next) in [("topic/3", 6), ("topic/4", 9), ("topic/5", 1)] {
            last.positions.insert(partition.to_owned(), LogOffset(next));
            view.commit(Vec::new(), &last).await?;
        }
        Ok::<_, Error>(last)
    };
    let (woken, last) = tokio::join!(view.wait_for_any(&awaited), others);
    woken?;
    let last = last?;
    promise!(view.checkpoint().await? == last, "only the commit that reaches a position ends the wait for it");
    view.wait_for_any(&awaited).await?;
    let rebuilt = store.begin_rebuild(&WAITED).await?;
    let (woken, of_position, swapped) = tokio::join!(view.wait_past(&last), view.wait_for_any(&awaited[..1]), store.swap(&rebuilt));
    swapped?;
    promise!(matches!(woken, Err(Error::Gone { .. })), "a swap wakes waiters on the old generation with Gone");
    promise!(matches!(of_position, Err(Error::Gone { .. })), "so it does those who wait for a position");
    Ok(())
}
