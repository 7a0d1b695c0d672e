//! What only the embedded store guarantees: files, crashes, deletion of old generations.

use std::path::Path;

use bytes::Bytes;
use fjall::AbstractTree as _;
use schemas::key;
use schemas::position::Seq;
use schemas::tables::{Key, Table, TableKind, ValueKind, Write, int, text};

use super::*;
use crate::contract;
use crate::store::Checkpoint;

static ROWS: Table =
    Table { name: "rows", key: &[text("part"), int("num")], partition_columns: 1, kind: TableKind::Current, value: ValueKind::Text };
static BLOCKS: Table =
    Table { name: "blocks_feed", key: &[int("block")], partition_columns: 1, kind: TableKind::Derived, value: ValueKind::Bytes };
static DEF: ViewDef = ViewDef { name: "tested", tables: &[&ROWS, &BLOCKS], hides: &[] };

fn open(dir: &Path) -> Arc<EmbeddedStore> {
    EmbeddedStore::open(dir, Options::default()).unwrap()
}

fn row(num: i64) -> Write {
    Write::put(&ROWS, key!["p", num], Bytes::from(num.to_string()))
}

fn block(num: i64) -> Write {
    Write::put(&BLOCKS, key![num], Bytes::from(vec![b'x'; 60_000]))
}

fn at_seq(seq: u64) -> Checkpoint {
    Checkpoint { seq: Seq(seq), ..Checkpoint::default() }
}

fn all_rows() -> crate::store::Range {
    crate::store::Range { prefix: Key::new(), after: None, from: None, limit: 10_000, reverse: false }
}

/// Returns the names of the keyspaces of views.
fn generations(store: &EmbeddedStore) -> Vec<String> {
    let mut names: Vec<String> = store.shared.core().unwrap().db.list_keyspace_names().iter().map(ToString::to_string).collect();
    names.retain(|name| name.contains('.'));
    names.sort();
    names
}

fn copy_dir(from: &Path, to: &Path) {
    std::fs::create_dir_all(to).unwrap();
    for entry in std::fs::read_dir(from).unwrap() {
        let entry = entry.unwrap();
        let target = to.join(entry.file_name());
        if entry.file_type().unwrap().is_dir() {
            copy_dir(&entry.path(), &target);
        } else {
            std::fs::copy(entry.path(), target).unwrap();
        }
    }
}

/// Proves that the embedded store fulfils the contract, also when it is run again on the data that it left.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn fulfils_the_contract() {
    let dir = tempfile::tempdir().unwrap();
    for _ in 0..2 {
        let store: Arc<dyn ViewStore> = open(dir.path());
        contract::all(&store).await.unwrap();
        store.close().await.unwrap();
    }
}

/// Proves that an acknowledged commit is in the files, as a kill of the process would find them.
#[tokio::test]
async fn commits_survive_a_kill() {
    let dir = tempfile::tempdir().unwrap();
    let store = open(&dir.path().join("a"));
    let view = store.live(&DEF).await.unwrap();
    for num in 0..50 {
        view.commit(vec![row(num), block(num % 3)], &at_seq(u64::try_from(num).unwrap() + 1)).await.unwrap();
    }
    assert!(store.coordination().lease("l", "me", std::time::Duration::from_secs(3_600)).await.unwrap());
    assert_eq!(store.coordination().add_to_counter("c", 3, 5, 0, 9_000).await.unwrap(), 3);
    copy_dir(&dir.path().join("a"), &dir.path().join("b"));
    let killed = open(&dir.path().join("b"));
    let view = killed.live(&DEF).await.unwrap();
    assert_eq!(view.checkpoint().await.unwrap(), at_seq(50));
    assert_eq!(view.range(&ROWS, all_rows()).await.unwrap().len(), 50);
    assert_eq!(view.get(&BLOCKS, &key![2]).await.unwrap().unwrap().len(), 60_000);
    assert!(killed.coordination().lease("l", "you", std::time::Duration::from_secs(9)).await.unwrap(), "leases end with the process");
    assert_eq!(killed.coordination().add_to_counter("c", 3, 5, 0, 9_000).await.unwrap(), 2);
}

/// Proves that the next commit releases the memory of flushed rows, without waiting until another table is full.
#[tokio::test]
async fn flushed_memory_is_released() {
    const MIB: u64 = 1024 * 1024;
    let dir = tempfile::tempdir().unwrap();
    let options = Options { write_buffer_bytes: MIB, write_buffer_total_bytes: 2 * MIB, ..Options::default() };
    let store = EmbeddedStore::open(dir.path(), options).unwrap();
    let view = store.live(&DEF).await.unwrap();
    for num in 0..20 {
        view.commit(vec![block(num)], &at_seq(1)).await.unwrap();
    }
    let core = store.shared.core().unwrap();
    let blocks = core.db.keyspace("tested.g1.blocks_feed", Default::default).unwrap();
    let flushed = async {
        while core.db.write_buffer_size() > MIB {
            tokio::task::yield_now().await;
        }
    };
    tokio::time::timeout(std::time::Duration::from_secs(300), flushed).await.expect("the blocks are not flushed");
    view.commit(vec![row(1)], &at_seq(1)).await.unwrap();
    let memory = blocks.tree.get_version_history_lock().memtable_size_sum();
    assert!(memory < MIB, "{memory} bytes are held, of which at most two blocks are unflushed");
}

/// Proves that a table has files only from its first row on, also after the store was opened again, and that a table without files is empty.
#[tokio::test]
async fn tables_are_created_with_their_first_row() {
    let dir = tempfile::tempdir().unwrap();
    let store = open(dir.path());
    let view = store.live(&DEF).await.unwrap();
    view.commit(vec![Write::delete(&BLOCKS, key![1])], &at_seq(1)).await.unwrap();
    assert_eq!(generations(&store), Vec::<String>::new());
    view.commit(vec![row(1), Write::delete(&BLOCKS, key![1])], &at_seq(2)).await.unwrap();
    drop((view, store));
    let store = open(dir.path());
    assert_eq!(generations(&store), ["tested.g1.rows"]);
    let view = store.live(&DEF).await.unwrap();
    assert_eq!(view.checkpoint().await.unwrap(), at_seq(2));
    assert_eq!(view.range(&ROWS, all_rows()).await.unwrap().len(), 1);
    assert_eq!(view.get(&BLOCKS, &key![1]).await.unwrap(), None);
    assert_eq!(view.range(&BLOCKS, all_rows()).await.unwrap(), []);
    view.commit(vec![block(1)], &at_seq(3)).await.unwrap();
    assert_eq!(generations(&store), ["tested.g1.blocks_feed", "tested.g1.rows"]);
    assert!(view.get(&BLOCKS, &key![1]).await.unwrap().is_some());
}

/// Proves that a kill between the creation of a table and its first row, before or after the manifest names it, is no damage.
#[tokio::test]
async fn creation_of_a_table_cut_short() {
    for is_in_manifest in [false, true] {
        let dir = tempfile::tempdir().unwrap();
        let store = open(&dir.path().join("a"));
        store.live(&DEF).await.unwrap().commit(vec![row(1)], &at_seq(1)).await.unwrap();
        let core = store.shared.core().unwrap();
        if is_in_manifest {
            core.create_tables(&[("tested.g1.blocks_feed", &BLOCKS)]).unwrap();
        } else {
            core.db.keyspace("tested.g1.blocks_feed", Default::default).unwrap();
        }
        copy_dir(&dir.path().join("a"), &dir.path().join("b"));
        let killed = open(&dir.path().join("b"));
        let view = killed.live(&DEF).await.unwrap();
        assert_eq!((view.generation(), view.checkpoint().await.unwrap()), (1, at_seq(1)));
        view.commit(vec![block(1)], &at_seq(2)).await.unwrap();
        drop((view, killed));
        let killed = open(&dir.path().join("b"));
        assert_eq!(killed.live(&DEF).await.unwrap().range(&BLOCKS, all_rows()).await.unwrap().len(), 1);
    }
}

/// Proves that a power cut that loses the first generation of a view, which is not synced, is no damage: its rows are lost with it, also those in files,
/// and the view accepts them again.
#[tokio::test]
async fn first_generation_lost_in_a_power_cut() {
    for is_flushed in [false, true] {
        let dir = tempfile::tempdir().unwrap();
        let [before, after, cut] = ["before", "after", "cut"].map(|name| dir.path().join(name));
        let store = open(&after);
        copy_dir(&after, &before);
        let view = store.live(&DEF).await.unwrap();
        view.commit(vec![row(1), block(1)], &at_seq(1)).await.unwrap();
        if is_flushed {
            let table = store.shared.core().unwrap().open_existing_table("tested.g1.rows", &ROWS).unwrap().unwrap();
            table.rotate_memtable_and_wait().unwrap();
        }
        copy_dir(&after, &cut);
        // What is synced remains: the journal as it was, and the files and the names of the tables.
        let mut journals = 0;
        for entry in std::fs::read_dir(opening::store_dir(&before)).unwrap() {
            let path = entry.unwrap().path();
            if path.extension().is_some_and(|extension| extension == "jnl") {
                std::fs::copy(&path, opening::store_dir(&cut).join(path.file_name().unwrap())).unwrap();
                journals += 1;
            }
        }
        assert_eq!(journals, 1);
        let store = open(&cut);
        assert_eq!(generations(&store), Vec::<String>::new(), "the tables are deleted");
        let view = store.live(&DEF).await.unwrap();
        assert_eq!((view.generation(), view.checkpoint().await.unwrap()), (1, Checkpoint::default()));
        assert_eq!(view.range(&ROWS, all_rows()).await.unwrap(), []);
        view.commit(vec![row(1), block(1)], &at_seq(1)).await.unwrap();
        assert_eq!(view.range(&ROWS, all_rows()).await.unwrap().len(), 1);
    }
}

/// Proves that rows exist after dropping the store without closing it, and after closing it while views are still held.
#[tokio::test]
async fn reopening_keeps_commits() {
    let dir = tempfile::tempdir().unwrap();
    let store = open(dir.path());
    store.live(&DEF).await.unwrap().commit(vec![row(1)], &at_seq(1)).await.unwrap();
    drop(store);
    let store = open(dir.path());
    let view_before = store.live(&DEF).await.unwrap();
    assert_eq!(view_before.checkpoint().await.unwrap(), at_seq(1));
    view_before.commit(vec![row(2)], &at_seq(2)).await.unwrap();
    store.close().await.unwrap();
    store.close().await.unwrap();
    assert!(matches!(view_before.get(&ROWS, &key!["p", 1]).await, Err(Error::Unavailable { .. })));
    assert!(matches!(view_before.wait_past(&at_seq(2)).await, Err(Error::Unavailable { .. })));
    assert!(matches!(store.live(&DEF).await, Err(Error::Unavailable { .. })));
    assert!(matches!(store.coordination().add_to_counter("c", 1, 1, 0, 1).await, Err(Error::Unavailable { .. })));
    let again = open(dir.path());
    let view = again.live(&DEF).await.unwrap();
    assert_eq!(view.range(&ROWS, all_rows()).await.unwrap().len(), 2);
    assert_eq!(view.generation(), view_before.generation());
}

/// Proves that a replaced generation is deleted with its checkpoint when its last reader drops it, and not before.
#[tokio::test]
async fn old_generations_are_deleted() {
    let dir = tempfile::tempdir().unwrap();
    let store = open(dir.path());
    let old = store.live(&DEF).await.unwrap();
    old.commit(vec![row(1)], &at_seq(1)).await.unwrap();
    let rebuilt = store.begin_rebuild(&DEF).await.unwrap();
    store.swap(&rebuilt).await.unwrap();
    rebuilt.commit(vec![block(1)], &at_seq(1)).await.unwrap();
    assert_eq!(generations(&store), ["tested.g1.rows", "tested.g2.blocks_feed"]);
    assert!(old.get(&ROWS, &key!["p", 1]).await.unwrap().is_some());
    drop(old);
    assert_eq!(generations(&store), ["tested.g2.blocks_feed"]);
    assert_eq!(store.shared.core().unwrap().checkpoint("tested", 1).unwrap(), Checkpoint::default());
}

/// Proves that a generation that was made to compare with the live one is deleted when it is discarded, so that the next opening has nothing to delete, and
/// that a live one is not.
#[tokio::test]
async fn discarded_generations_are_deleted() {
    let dir = tempfile::tempdir().unwrap();
    let store = open(dir.path());
    let live = store.live(&DEF).await.unwrap();
    live.commit(vec![row(1)], &at_seq(1)).await.unwrap();
    let compared = store.begin_rebuild(&DEF).await.unwrap();
    compared.commit(vec![row(1)], &at_seq(1)).await.unwrap();
    assert_eq!(generations(&store), ["tested.g1.rows", "tested.g2.rows"]);
    store.discard(&compared).await.unwrap();
    store.discard(&live).await.unwrap();
    assert_eq!(generations(&store), ["tested.g1.rows"]);
    assert!(matches!(compared.get(&ROWS, &key!["p", 1]).await, Err(Error::Gone { .. })));
    assert!(live.get(&ROWS, &key!["p", 1]).await.unwrap().is_some());
    assert!(store.begin_rebuild(&DEF).await.unwrap().generation() > compared.generation());
}

/// Proves that a generation that the store forgot, because it was opened again, is not taken for the later one that has its number.
#[tokio::test]
async fn forgotten_generations_discard_no_later_one() {
    let dir = tempfile::tempdir().unwrap();
    let store = open(dir.path());
    store.live(&DEF).await.unwrap().commit(vec![row(1)], &at_seq(1)).await.unwrap();
    let forgotten = store.begin_rebuild(&DEF).await.unwrap();
    store.run(|shared| shared.close_and_open()).await.unwrap();
    let later = store.begin_rebuild(&DEF).await.unwrap();
    later.commit(vec![row(1)], &at_seq(1)).await.unwrap();
    assert_eq!(later.generation(), forgotten.generation());
    store.discard(&forgotten).await.unwrap();
    assert!(later.get(&ROWS, &key!["p", 1]).await.unwrap().is_some());
    store.discard(&later).await.unwrap();
    assert_eq!(generations(&store), ["tested.g1.rows"]);
}

/// Proves that opening deletes an unfinished rebuild and not the live generation, and that a swap survives a kill.
#[tokio::test]
async fn opening_deletes_leftovers() {
    let dir = tempfile::tempdir().unwrap();
    let store = open(&dir.path().join("a"));
    let held = store.live(&DEF).await.unwrap();
    let second = store.begin_rebuild(&DEF).await.unwrap();
    second.commit(vec![row(2)], &at_seq(2)).await.unwrap();
    store.swap(&second).await.unwrap();
    held.commit(vec![row(1)], &at_seq(1)).await.unwrap_err();
    for (deleted, copy, writes) in [(3, "b", vec![]), (4, "c", vec![row(3), block(3)])] {
        let tables = writes.len();
        let unfinished = store.begin_rebuild(&DEF).await.unwrap();
        assert_eq!(unfinished.generation(), deleted);
        unfinished.commit(writes, &at_seq(3)).await.unwrap();
        assert_eq!(generations(&store).len(), 1 + tables);
        copy_dir(&dir.path().join("a"), &dir.path().join(copy));
        let killed = open(&dir.path().join(copy));
        assert_eq!(generations(&killed), ["tested.g2.rows"]);
        let live = killed.live(&DEF).await.unwrap();
        assert_eq!((live.generation(), live.checkpoint().await.unwrap()), (2, at_seq(2)));
        // The next rebuild has the number of the one that was deleted, and nothing of it.
        let mut rebuilt = killed.begin_rebuild(&DEF).await.unwrap();
        while rebuilt.generation() < deleted {
            rebuilt = killed.begin_rebuild(&DEF).await.unwrap();
        }
        assert_eq!((rebuilt.generation(), rebuilt.checkpoint().await.unwrap()), (deleted, Checkpoint::default()));
    }
    drop(held);
}

/// Proves that a directory that cannot be opened gives an error with its name, and that a newer version's directory is refused with both formats.
#[tokio::test]
async fn unusable_directories_are_named() {
    let dir = tempfile::tempdir().unwrap();
    let file = dir.path().join("file");
    std::fs::write(&file, "x").unwrap();
    let error = EmbeddedStore::open(&file, Options::default()).err().unwrap();
    assert!(matches!(error, Error::Unavailable { .. }) && error.to_string().contains("file"), "{error}");

    let good = dir.path().join("good");
    let store = open(&good);
    let error = EmbeddedStore::open(&good, Options::default()).err().unwrap();
    assert!(error.to_string().contains("another process") && error.to_string().contains("good"), "{error}");
    store.close().await.unwrap();
    drop(store);
    manifest::Manifest { format: manifest::FORMAT + 1, ..manifest::Manifest::default() }.write(&good).unwrap();
    let error = EmbeddedStore::open(&good, Options::default()).err().unwrap().to_string();
    assert!(error.contains("good has format 3, but this version of the program writes format 2"), "{error}");
}

#[path = "damage_tests.rs"]
mod damage;
