//! Damages the files of the store. Each damage must end in the same rows, or in a view that is not served until it was filled again, or in an error that
//! names the directory; never in other or fewer rows.

use std::path::PathBuf;
use std::time::Duration;

use rand::rngs::StdRng;
use rand::{RngExt as _, SeedableRng as _};

use super::*;

static OTHER_ROWS: Table =
    Table { name: "other_rows", key: &[text("part"), int("num")], partition_columns: 1, kind: TableKind::Current, value: ValueKind::Text };
static OTHER: ViewDef = ViewDef { name: "other", tables: &[&OTHER_ROWS], hides: &[] };

/// The last commit of [`make`].
const LAST: u64 = 40;
/// How many damages a run tries, and from which seed. By default few, which are always the same; with [`DRAW`] more, which are new in each run.
const ROUNDS: &str = "DAMAGE_ROUNDS";
const SEED: &str = "DAMAGE_SEED";
/// The variable with which `ops/test --all` and `ops/test --long` let every test draw a new seed.
const DRAW: &str = "HIGHWATER_DRAW";

/// Far longer than a store takes to open and heal, also on a busy machine.
const HANG_TIMEOUT: Duration = Duration::from_secs(300);

/// The writes of a commit. Some rows are written once, one is written by every commit.
fn writes(def: &'static ViewDef, seq: u64) -> Vec<Write> {
    let table = def.tables[0];
    let num = i64::try_from(seq).unwrap();
    let mut writes = vec![
        Write::put(table, key!["p", num], Bytes::from(format!("row {num}"))),
        Write::put(table, key!["last", 0], Bytes::from(num.to_string())),
    ];
    if def.tables.len() > 1 {
        writes.push(Write::put(&BLOCKS, key![num % 4], Bytes::from(vec![u8::try_from(seq).unwrap(); 5_000])));
    }
    writes
}

async fn fill(view: &dyn View, from: u64) {
    for seq in from..=LAST {
        view.commit(writes(view.def(), seq), &at_seq(seq)).await.unwrap();
    }
}

/// Creates a store whose first half is in tables and whose second half is in the journal, as a kill leaves it.
async fn make(dir: &Path) {
    for (from, to) in [(1, LAST / 2), (LAST / 2 + 1, LAST)] {
        let store = open(dir);
        for def in [&DEF, &OTHER] {
            let view = store.live(def).await.unwrap();
            for seq in from..=to {
                view.commit(writes(def, seq), &at_seq(seq)).await.unwrap();
            }
        }
        if to < LAST {
            store.close().await.unwrap();
        }
    }
    // Opening cuts the journal to its content, so that it can be copied quickly.
    drop(open(dir));
}

fn files(dir: &Path) -> Vec<PathBuf> {
    let mut found = Vec::new();
    for entry in std::fs::read_dir(dir).unwrap() {
        let entry = entry.unwrap();
        if entry.file_type().unwrap().is_dir() { found.extend(files(&entry.path())) } else { found.push(entry.path()) }
    }
    found.sort();
    found
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
enum Ended {
    Same,
    Healed,
    Refused,
}

/// Checks the rows of a view: all up to its checkpoint must be there, later ones may be.
async fn check_rows(view: &dyn View, what: &str) -> Result<Seq, Error> {
    let seq = view.checkpoint().await?.seq;
    let rows = view.range(view.def().tables[0], all_rows()).await?;
    let last = view.get(view.def().tables[0], &key!["last", 0]).await?;
    let last: u64 = last.map_or(0, |last| std::str::from_utf8(&last).unwrap().parse().unwrap());
    assert!(last >= seq.0, "{what}: the checkpoint is {seq}, but the last row is {last}");
    assert!(rows.len() as u64 > last || last == 0, "{what}: {} rows, but the last one is {last}", rows.len());
    for (key, value) in rows.iter().filter(|(key, _)| key[0] == key!["p"][0]) {
        let schemas::tables::Datum::Int(num) = key[1] else { panic!("{what}: {key:?}") };
        assert_eq!(value, &format!("row {num}"), "{what}");
    }
    if view.def().tables.len() > 1 {
        for num in 0..4 {
            let block = view.get(&BLOCKS, &key![num]).await?;
            let written = (1..=last).rev().find(|seq| i64::try_from(seq % 4).unwrap() == num);
            let expected = written.map(|seq| vec![u8::try_from(seq).unwrap(); 5_000]);
            assert_eq!(block.map(|block| block.to_vec()), expected, "{what}: block {num}");
        }
    }
    Ok(seq)
}

/// Opens a damaged store, fills views that must be filled again, as a projector does, and returns how it ended.
async fn open_and_heal(dir: &Path, what: &str) -> Ended {
    let store = match EmbeddedStore::open(dir, Options::default()) {
        Ok(store) => store,
        Err(error) => {
            assert!(matches!(error, Error::Unavailable { .. }) && error.to_string().contains(&*dir.to_string_lossy()), "{what}: {error}");
            return Ended::Refused;
        }
    };
    let mut ended = Ended::Same;
    for def in [&DEF, &OTHER] {
        // Damage that is found by reading replaces the generation, so that it is read once more.
        for _ in 0..3 {
            let read = match store.live(def).await {
                Ok(view) => check_rows(&*view, what).await,
                Err(error) => Err(error),
            };
            let from = match read {
                Ok(seq) if seq == Seq(LAST) => break,
                Ok(seq) => seq.0,
                Err(Error::Rebuilding { .. } | Error::Gone { .. }) => 0,
                Err(error) => panic!("{what}: {error}"),
            };
            ended = Ended::Healed;
            let replaced = async {
                loop {
                    // The damaged generation is replaced in the background.
                    let view = store.live_to_project(def).await.unwrap();
                    if let Ok(checkpoint) = view.checkpoint().await {
                        assert!(checkpoint.seq.0 <= from || from == 0, "{what}");
                        return (view, checkpoint.seq.0);
                    }
                    tokio::task::yield_now().await;
                }
            };
            let (view, from) = tokio::time::timeout(HANG_TIMEOUT, replaced)
                .await
                .unwrap_or_else(|_| panic!("{what}: the damaged generation is not replaced"));
            fill(&*view, from + 1).await;
            view.finish_rebuild().await.unwrap();
        }
        let view = store.live(def).await.unwrap_or_else(|error| panic!("{what}: {error}"));
        assert_eq!(check_rows(&*view, what).await.unwrap(), Seq(LAST), "{what}");
    }
    store.close().await.unwrap_or_else(|error| panic!("{what}: {error}"));
    drop(store);
    // What was healed stays healed.
    let store = EmbeddedStore::open(dir, Options::default()).unwrap();
    for def in [&DEF, &OTHER] {
        let view = store.live(def).await.unwrap_or_else(|error| panic!("{what}, opened again: {error}"));
        assert_eq!(check_rows(&*view, what).await.unwrap(), Seq(LAST), "{what}, opened again");
    }
    ended
}

/// Damages a copy of a store and returns how it ended.
async fn damage_copy(whole: &Path, name: &Path, what: &str, damage: impl FnOnce(&Path)) -> Ended {
    let dir = tempfile::tempdir().unwrap();
    copy_dir(whole, dir.path());
    damage(&dir.path().join(name));
    let ended = tokio::time::timeout(HANG_TIMEOUT, open_and_heal(dir.path(), what)).await;
    ended.unwrap_or_else(|_| panic!("{what}: hangs"))
}

/// Proves that deleted, cut, overwritten and changed files of every kind lead to the true rows, at once or after the view was filled again.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn damaged_files_heal() {
    let dir = tempfile::tempdir().unwrap();
    make(dir.path()).await;
    let (mut ends, mut turns) = (std::collections::BTreeMap::new(), std::collections::BTreeMap::new());
    for file in files(dir.path()) {
        let name = file.strip_prefix(dir.path()).unwrap().to_owned();
        let bytes = std::fs::read(&file).unwrap();
        let cut = |path: &Path| std::fs::write(path, &bytes[..bytes.len() / 2]).unwrap();
        let flip = |path: &Path| std::fs::write(path, bytes.iter().map(|byte| byte ^ 0x55).collect::<Vec<_>>()).unwrap();
        let delete = |path: &Path| std::fs::remove_file(path).unwrap();
        // Files of keyspaces are of the same kinds in every keyspace: each is damaged in one way, in turn. Other files are damaged in all ways.
        let all = [("deleted", &delete as &dyn Fn(&Path)), ("cut", &cut), ("flipped", &flip)];
        let is_of_keyspace = name.components().any(|part| part.as_os_str() == "keyspaces");
        let turn: &mut usize = turns.entry(name.to_string_lossy().replace(|letter: char| letter.is_ascii_digit(), "")).or_default();
        let tried: Vec<_> = if is_of_keyspace { vec![all[*turn % 3]] } else { all.to_vec() };
        *turn += 1;
        for (kind, damage) in tried {
            let what = format!("{} {kind}", name.display());
            *ends.entry(damage_copy(dir.path(), &name, &what, damage).await).or_insert(0) += 1;
        }
    }
    assert!(ends[&Ended::Healed] > 8, "{ends:?}");
}

/// Proves for random damages, most of them of the journal, that they lead to the true rows, at once or after the view was filled again.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn random_damages_heal() {
    let number = |name: &str| std::env::var(name).ok().map(|text| text.parse::<u64>().unwrap());
    let is_drawn = std::env::var(DRAW).is_ok_and(|draw| draw == "1");
    let rounds = number(ROUNDS).unwrap_or(if is_drawn { 40 } else { 16 });
    let seed = number(SEED).unwrap_or_else(|| if is_drawn { rand::rng().random() } else { 1 });
    println!("{ROUNDS}={rounds} {SEED}={seed}");
    let dir = tempfile::tempdir().unwrap();
    make(dir.path()).await;
    let files = files(dir.path());
    let journals: Vec<_> = files.iter().filter(|file| file.extension().is_some_and(|extension| extension == "jnl")).collect();
    let mut random = StdRng::seed_from_u64(seed);
    let mut ends = std::collections::BTreeMap::new();
    for round in 0..rounds {
        let file = if random.random_bool(0.5) {
            journals[random.random_range(0..journals.len())]
        } else {
            &files[random.random_range(0..files.len())]
        };
        let name = file.strip_prefix(dir.path()).unwrap().to_owned();
        let mut bytes = std::fs::read(file).unwrap();
        if bytes.is_empty() {
            continue;
        }
        let at = random.random_range(0..bytes.len());
        let kind = random.random_range(0..4);
        match kind {
            0 => bytes.truncate(at),
            1 => bytes[at..].iter_mut().take(random.random_range(1..200)).for_each(|byte| *byte = 0),
            _ => bytes[at] ^= 1 << random.random_range(0..8),
        }
        let what = format!("{SEED}={seed}, round {round}: {} at {at}, kind {kind}", name.display());
        *ends.entry(damage_copy(dir.path(), &name, &what, |path| std::fs::write(path, bytes).unwrap()).await).or_insert(0) += 1;
    }
    println!("{rounds} steps ended as {ends:?}");
}

/// Proves that a changed sequence number of any batch in the journal, which no checksum of the engine covers, never hides newer rows behind older ones.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn changed_sequence_numbers_heal() {
    let dir = tempfile::tempdir().unwrap();
    make(dir.path()).await;
    let name = Path::new("store/0.jnl");
    let bytes = std::fs::read(dir.path().join(name)).unwrap();
    // The start of a batch: the tag, a number of items below 256, and a sequence number below 65,536.
    let is_start = |at: &usize| bytes[*at] == 1 && bytes[at + 2..at + 5] == [0; 3] && bytes[at + 7..at + 13] == [0; 6] && bytes[at + 1] > 0;
    let starts: Vec<usize> = (0..bytes.len() - 14).filter(is_start).filter(|at| bytes[at + 13] == 2).collect();
    assert!(starts.len() > 40, "{} batches", starts.len());
    let last = *starts.last().unwrap();
    let mut healed = 0;
    for (at, bit) in [(last, 0), (last, 1), (last, 3), (starts[starts.len() / 2], 0), (starts[starts.len() - 2], 4)] {
        let mut damaged = bytes.clone();
        damaged[at + 5] ^= 1 << bit;
        let what = format!("bit {bit} of the sequence number at {at}");
        let ended = damage_copy(dir.path(), name, &what, |path| std::fs::write(path, damaged).unwrap()).await;
        healed += usize::from(ended == Ended::Healed);
    }
    assert!(healed >= 3, "{healed} of 5 were noticed");
}

/// Proves that damage of one view leaves the others served, and that the view is not served before it was filled.
#[tokio::test]
async fn other_views_are_served() {
    let dir = tempfile::tempdir().unwrap();
    make(dir.path()).await;
    let manifest::ManifestState::Manifest(manifest) = manifest::read(dir.path()).unwrap() else { panic!() };
    std::fs::remove_file(dir.path().join(format!("store/keyspaces/{}/current", manifest.keyspaces["tested.g1.rows"]))).unwrap();
    let store = open(dir.path());
    assert_eq!(check_rows(&*store.live(&OTHER).await.unwrap(), "the other view").await.unwrap(), Seq(LAST));
    let error = store.live(&DEF).await.err().unwrap();
    assert!(matches!(&error, Error::Rebuilding { view, reason } if view == "tested" && reason.contains("current is missing")), "{error}");
    assert_eq!(store.rebuilding().len(), 1);
    let view = store.live_to_project(&DEF).await.unwrap();
    assert_eq!((view.generation(), view.checkpoint().await.unwrap()), (2, Checkpoint::default()));
    fill(&*view, 1).await;
    assert!(store.live(&DEF).await.is_err());
    // A kill does not make an unfinished view complete.
    drop((view, store));
    let store = open(dir.path());
    assert!(store.live(&DEF).await.is_err());
    store.live_to_project(&DEF).await.unwrap().finish_rebuild().await.unwrap();
    assert_eq!(check_rows(&*store.live(&DEF).await.unwrap(), "filled").await.unwrap(), Seq(LAST));
    assert_eq!(store.rebuilding(), []);
}

/// Proves that damage that is found by a read ends reading of the generation at once, and that waiting readers are woken.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn damage_found_by_a_read() {
    let dir = tempfile::tempdir().unwrap();
    let store = open(dir.path());
    let view = store.live(&DEF).await.unwrap();
    view.commit(writes(&DEF, 1), &at_seq(1)).await.unwrap();
    // A row of another key, as a misplaced block would show it.
    let core = store.shared.core().unwrap();
    let rows = core.db.keyspace("tested.g1.rows", Default::default).unwrap();
    let stored = rows.get(crate::key::encode_whole(&ROWS, &["p".into(), 1.into()]).unwrap()).unwrap().unwrap();
    rows.insert(crate::key::encode_whole(&ROWS, &["p".into(), 2.into()]).unwrap(), stored).unwrap();
    drop((rows, core));
    let waiting = tokio::spawn({
        let view = Arc::clone(&view);
        async move { view.wait_past(&at_seq(1)).await }
    });
    let error = view.get(&ROWS, &key!["p", 2]).await.err().unwrap();
    assert!(matches!(&error, Error::Rebuilding { reason, .. } if reason.contains("differs from its checksum")), "{error}");
    assert!(matches!(view.get(&ROWS, &key!["p", 1]).await, Err(Error::Rebuilding { .. } | Error::Gone { .. })));
    let woken = tokio::time::timeout(HANG_TIMEOUT, waiting).await.expect("a waiting reader is woken");
    assert!(matches!(woken.unwrap(), Err(Error::Gone { .. })));
    assert!(matches!(store.live(&DEF).await, Err(Error::Rebuilding { .. })));
    let next = store.live_to_project(&DEF).await.unwrap();
    assert_eq!((next.generation(), next.checkpoint().await.unwrap()), (2, Checkpoint::default()));
}

/// Proves that a store of format 1 is converted: its values remain, and its views are filled again before they are served.
#[tokio::test]
async fn older_stores_are_converted() {
    let dir = tempfile::tempdir().unwrap();
    {
        let db = fjall::Database::builder(dir.path()).open().unwrap();
        let coordination = db.keyspace("coordination", Default::default).unwrap();
        coordination.insert("kwebhooks/acct_1", "secret").unwrap();
        coordination.insert("cquota", "12345678").unwrap();
        db.keyspace("tested.g1.rows", Default::default).unwrap().insert("x", "y").unwrap();
        db.keyspace("meta", Default::default).unwrap().insert("format", "1").unwrap();
    }
    for _ in 0..2 {
        let store = open(dir.path());
        let error = store.live(&DEF).await.err().unwrap();
        assert!(error.to_string().contains("an earlier version of this program wrote it"), "{error}");
        assert_eq!(store.coordination().values().await.unwrap(), [("webhooks/acct_1".to_owned(), "secret".to_owned())]);
    }
    assert!(!dir.path().join("keyspaces").exists());
    // An older version of this program refuses the directory.
    assert!(fjall::Database::builder(dir.path()).open().is_err());
}
