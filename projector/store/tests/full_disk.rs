//! The embedded view store on a disk that fills up: commits pause and continue without a restart, reads are answered, and counters count meanwhile.

#![expect(clippy::unwrap_used, reason = "a test helper that fails is a test that fails")]

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use bytes::Bytes;
use disk_files::space::{Limits, SpaceWatch};
use engines::SmallDisk;
use schemas::key;
use schemas::position::Seq;
use schemas::tables::{Table, TableKind, ValueKind, ViewDef, Write, int, text};
use view_store::embedded::{EmbeddedStore, Options};
use view_store::{Checkpoint, Error, ViewStore};

static ROWS: Table =
    Table { name: "rows", key: &[text("part"), int("num")], partition_columns: 1, kind: TableKind::Current, value: ValueKind::Bytes };
static OTHER: Table = Table { name: "other", key: &[int("num")], partition_columns: 1, kind: TableKind::Current, value: ValueKind::Bytes };
static DEF: ViewDef = ViewDef { name: "tested", tables: &[&ROWS, &OTHER], hides: &[] };

const MIB: u64 = 1024 * 1024;
const LIMITS: Limits = Limits { reserve_bytes: 4 * MIB, low_bytes: 8 * MIB };
const PATIENCE: Duration = Duration::from_secs(300);
const POLL_INTERVAL: Duration = Duration::from_millis(50);
const COUNTED_MAX: i64 = 5;
const EXPIRES_MS: i64 = 1_000_000;

/// Returns a small disk, whether its free space is measured right, and a store on it.
fn on_small_disk(test: &str) -> Option<(SmallDisk, Arc<AtomicBool>, Arc<EmbeddedStore>)> {
    let disk = engines::or_skip(SmallDisk::mount(32), test)?;
    let is_honest = Arc::new(AtomicBool::new(true));
    let space = Some(Arc::new(SpaceWatch::measured(disk.path(), LIMITS, SmallDisk::measuring(&is_honest))));
    let store = EmbeddedStore::open(&disk.path().join("views"), Options { space, ..Options::default() }).unwrap();
    Some((disk, is_honest, store))
}

fn row(number: i64) -> Vec<Write> {
    vec![Write::put(&ROWS, key!["p", number], Bytes::from(vec![b'x'; 65_536]))]
}

fn at_seq(seq: i64) -> Checkpoint {
    Checkpoint { seq: Seq(seq.try_into().unwrap()), ..Checkpoint::default() }
}

async fn wait_until_ready(store: &EmbeddedStore) {
    let ready = async {
        while store.ready().await.is_err() {
            tokio::time::sleep(POLL_INTERVAL).await;
        }
    };
    tokio::time::timeout(PATIENCE, ready).await.expect("the store is not ready again");
}

/// Proves on a small file system that a commit which meets a full disk is the only one that fails, that rows are read and callers counted while the disk is
/// full, that holders of a view learn that it is gone, and that the store accepts rows again in the same process, with every row and count.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn commits_that_meet_a_full_disk() {
    let Some((disk, is_honest, store)) = on_small_disk("the view store on a small file system") else { return };
    let count = || store.coordination().add_to_counter("calls", 1, COUNTED_MAX, 1, EXPIRES_MS);
    assert_eq!(count().await.unwrap(), 1);
    let mut committed = 0;
    for round in 0..2 {
        let view = store.live(&DEF).await.unwrap();
        assert_eq!(view.checkpoint().await.unwrap(), at_seq(committed), "round {round}");
        view.commit(row(committed + 1), &at_seq(committed + 1)).await.unwrap();
        committed += 1;
        is_honest.store(false, Ordering::Relaxed);
        disk.fill().unwrap();
        while view.commit(row(committed + 1), &at_seq(committed + 1)).await.is_ok() {
            committed += 1;
        }
        is_honest.store(true, Ordering::Relaxed);
        store.ready().await.unwrap_err();
        assert_eq!(view.get(&ROWS, &key!["p", committed]).await.unwrap().unwrap().len(), 65_536);
        assert_eq!(view.checkpoint().await.unwrap(), at_seq(committed));
        assert_eq!(count().await.unwrap(), 1, "callers are counted while the disk is full");
        disk.free().unwrap();
        wait_until_ready(&store).await;
        assert!(matches!(view.checkpoint().await.unwrap_err(), Error::Gone { .. }), "the store was opened again");
        let view = store.live(&DEF).await.unwrap();
        let found = view.checkpoint().await.unwrap();
        // The commit that failed may be there, as a whole.
        assert!(found == at_seq(committed) || found == at_seq(committed + 1), "round {round}: {found:?}");
        committed = i64::try_from(found.seq.0).unwrap();
        for number in 1..=committed {
            assert!(view.get(&ROWS, &key!["p", number]).await.unwrap().is_some(), "round {round}: row {number} of {committed}");
        }
    }
    assert_eq!(count().await.unwrap(), 1);
    store.close().await.unwrap();
    drop(store);
    let store = EmbeddedStore::open(&disk.path().join("views"), Options::default()).unwrap();
    assert_eq!(store.live(&DEF).await.unwrap().checkpoint().await.unwrap(), at_seq(committed));
    let rest = store.coordination().add_to_counter("calls", COUNTED_MAX, COUNTED_MAX, 1, EXPIRES_MS).await.unwrap();
    assert_eq!(rest, COUNTED_MAX - 4, "one call before, one in each round, one after");
}

/// Proves on a small file system that a commit whose table cannot be created, because the disk is full, fails as a whole and succeeds when there is space.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn tables_that_begin_on_a_full_disk() {
    let Some((disk, is_honest, store)) = on_small_disk("a new table on a small file system") else { return };
    let view = store.live(&DEF).await.unwrap();
    view.commit(row(1), &at_seq(1)).await.unwrap();
    let both = || [row(2), vec![Write::put(&OTHER, key![2], Bytes::from_static(b"x"))]].concat();
    is_honest.store(false, Ordering::Relaxed);
    disk.fill().unwrap();
    view.commit(both(), &at_seq(2)).await.unwrap_err();
    is_honest.store(true, Ordering::Relaxed);
    assert_eq!(view.checkpoint().await.unwrap(), at_seq(1));
    disk.free().unwrap();
    wait_until_ready(&store).await;
    let view = store.live(&DEF).await.unwrap();
    assert_eq!((view.checkpoint().await.unwrap(), view.get(&ROWS, &key!["p", 2]).await.unwrap()), (at_seq(1), None));
    view.commit(both(), &at_seq(2)).await.unwrap();
    store.close().await.unwrap();
    drop((view, store));
    let store = EmbeddedStore::open(&disk.path().join("views"), Options::default()).unwrap();
    let view = store.live(&DEF).await.unwrap();
    assert_eq!(view.checkpoint().await.unwrap(), at_seq(2));
    assert!(view.get(&OTHER, &key![2]).await.unwrap().is_some() && view.get(&ROWS, &key!["p", 2]).await.unwrap().is_some());
}
