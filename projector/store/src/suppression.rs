//! The view store as readers get it: rows and changes without the fields that operators suppressed.
//!
//! The context of the API holds this store and no other, so every list, record, history, feed, search, webhook and export reads through it. A
//! view whose records hide nothing, and every view while no key is suppressed, is passed on as it is.

use std::sync::{Arc, PoisonError, RwLock};
use std::time::{Duration, Instant};

use async_trait::async_trait;
use bytes::Bytes;
use schemas::key;
use schemas::position::Seq;
use schemas::suppressed_keys::SuppressedKeys;
use schemas::suppression::{KINDS, KeyKind, SUPPRESSIONS_MAX, SuppressionRow};
use schemas::tables::{Datum, Key, Table, TableKind, ValueKind, ViewDef, Write};
use schemas::views::accounts::{SUPPRESSIONS, VIEW as ACCOUNTS};
use tokio::sync::Mutex;

use crate::feed::{FEED_KEY, FeedBlock};
use crate::store::{Awaited, Checkpoint, Coordination, Error, Range, Scan, Span, View, ViewStore};

/// After how long a process notices a key that another process suppressed.
pub const SUPPRESSION_CHECK_INTERVAL: Duration = Duration::from_secs(2);
/// How many rows of suppressed keys are read at once.
const PAGE_ROWS: usize = 1_000;

/// A view store that hides suppressed fields.
pub struct SuppressingStore {
    inner: Arc<dyn ViewStore>,
    known: RwLock<Option<KnownKeys>>,
    /// Held while the keys are read, so that they are read only once.
    loading: Mutex<()>,
}

/// The suppressed keys as of a position of the accounts view.
#[derive(Clone)]
struct KnownKeys {
    keys: Arc<SuppressedKeys>,
    generation: u64,
    seq: Seq,
    checked: Instant,
}

impl SuppressingStore {
    /// Wraps a store.
    #[must_use]
    pub fn new(inner: Arc<dyn ViewStore>) -> Self {
        Self { inner, known: RwLock::default(), loading: Mutex::default() }
    }

    fn known(&self) -> Option<KnownKeys> {
        self.known.read().unwrap_or_else(PoisonError::into_inner).clone()
    }

    /// The suppressed keys. Those of this process are up to date; those of other processes are at most
    /// [`SUPPRESSION_CHECK_INTERVAL`] old.
    async fn keys(&self) -> Result<Arc<SuppressedKeys>, Error> {
        let is_recent = |known: &KnownKeys| self.inner.is_shared() && known.checked.elapsed() < SUPPRESSION_CHECK_INTERVAL;
        if let Some(known) = self.known().filter(is_recent) {
            return Ok(known.keys);
        }
        let checked = Instant::now();
        let view = self.inner.live(&ACCOUNTS).await?;
        let (generation, seq) = (view.generation(), view.checkpoint().await?.seq);
        let is_current = |known: &KnownKeys| known.generation == generation && known.seq >= seq;
        if let Some(known) = self.known().filter(is_current) {
            let keys = Arc::clone(&known.keys);
            if self.inner.is_shared() {
                *self.known.write().unwrap_or_else(PoisonError::into_inner) = Some(KnownKeys { checked, ..known });
            }
            return Ok(keys);
        }
        let _loading = self.loading.lock().await;
        if let Some(known) = self.known().filter(is_current) {
            return Ok(known.keys);
        }
        let keys = suppressed(&*view).await?.into_iter().map(|(kind, stored, row)| (kind, compared_key(kind, stored, &row)));
        let keys = Arc::new(SuppressedKeys::new(keys));
        *self.known.write().unwrap_or_else(PoisonError::into_inner) = Some(KnownKeys { keys: Arc::clone(&keys), generation, seq, checked });
        Ok(keys)
    }
}

/// The key of a row in the form in which this version compares keys of its kind: an older version may have stored it in another form. Without the key as it was
/// given, it is the stored one.
fn compared_key(kind: &KeyKind, stored: String, row: &SuppressionRow) -> String {
    kind.normalize(&row.key).unwrap_or(stored)
}

/// Returns all suppressed keys of a generation of the accounts view in the normalized form in which they are stored, with their kinds and rows.
///
/// # Errors
/// When rows cannot be read.
pub async fn suppressed(accounts: &dyn View) -> Result<Vec<(&'static KeyKind, String, SuppressionRow)>, Error> {
    let mut out = Vec::new();
    for kind in KINDS {
        let mut range = Range { prefix: key![kind.name], after: None, from: None, limit: PAGE_ROWS, reverse: false };
        loop {
            let rows = accounts.range(&SUPPRESSIONS, range.clone()).await?;
            let is_last = rows.len() < PAGE_ROWS;
            range.after = rows.last().map(|(key, _)| key.clone());
            for (key, value) in rows {
                let row = serde_json::from_slice(&value).map_err(|error| damaged(&SUPPRESSIONS, &error))?;
                if let Some(Datum::Text(subject)) = key.into_iter().nth(1) {
                    out.push((kind, subject, row));
                }
            }
            if out.len() > 2 * SUPPRESSIONS_MAX {
                let reason = format!("more than {SUPPRESSIONS_MAX} keys are suppressed");
                return Err(Error::Damaged { table: SUPPRESSIONS.name.to_owned(), reason });
            }
            if is_last {
                break;
            }
        }
    }
    Ok(out)
}

#[async_trait]
impl ViewStore for SuppressingStore {
    fn is_shared(&self) -> bool {
        self.inner.is_shared()
    }

    fn lease_length(&self) -> Duration {
        self.inner.lease_length()
    }

    async fn live(&self, def: &'static ViewDef) -> Result<Arc<dyn View>, Error> {
        let view = self.inner.live(def).await?;
        if def.hides.is_empty() {
            return Ok(view);
        }
        let keys = self.keys().await?;
        Ok(if keys.concern(def) { Arc::new(SuppressedView { inner: view, keys }) } else { view })
    }

    async fn live_to_project(&self, def: &'static ViewDef) -> Result<Arc<dyn View>, Error> {
        self.inner.live_to_project(def).await
    }

    fn replaces_damaged_views(&self) -> bool {
        self.inner.replaces_damaged_views()
    }

    fn rebuilding(&self) -> Vec<(&'static str, String)> {
        self.inner.rebuilding()
    }

    fn unserved(&self) -> Vec<&'static str> {
        self.inner.unserved()
    }

    async fn begin_rebuild(&self, def: &'static ViewDef) -> Result<Arc<dyn View>, Error> {
        self.inner.begin_rebuild(def).await
    }

    async fn swap(&self, rebuilt: &Arc<dyn View>) -> Result<(), Error> {
        self.inner.swap(rebuilt).await
    }

    async fn discard(&self, rebuilt: &Arc<dyn View>) -> Result<(), Error> {
        self.inner.discard(rebuilt).await
    }

    fn coordination(&self) -> &dyn Coordination {
        self.inner.coordination()
    }

    async fn ready(&self) -> Result<(), Error> {
        self.inner.ready().await
    }

    async fn now_ms(&self) -> Result<Option<i64>, Error> {
        self.inner.now_ms().await
    }

    async fn close(&self) -> Result<(), Error> {
        self.inner.close().await
    }
}

/// A view whose records hide fields because of some suppressed keys. Nothing can be written to it.
struct SuppressedView {
    inner: Arc<dyn View>,
    keys: Arc<SuppressedKeys>,
}

impl SuppressedView {
    /// What readers see of the value of a row.
    fn shown(&self, table: &'static Table, value: Bytes) -> Result<Bytes, Error> {
        shown(&self.keys, self.inner.def(), table, value)
    }
}

/// What readers see of the value of a row.
fn shown(keys: &SuppressedKeys, def: &'static ViewDef, table: &'static Table, value: Bytes) -> Result<Bytes, Error> {
    let hide = |json: &[u8]| keys.hide(def, json).map_err(|error| damaged(table, &error));
    if table.kind != TableKind::Derived {
        return Ok(hide(&value)?.map_or(value, Bytes::from));
    }
    if table.key == FEED_KEY && table.value == ValueKind::Bytes {
        return Ok(FeedBlock::decode(value.clone())?.rewritten(hide)?.unwrap_or(value));
    }
    Ok(value)
}

fn damaged(table: &Table, error: &serde_json::Error) -> Error {
    Error::Damaged { table: table.name.to_owned(), reason: error.to_string() }
}

#[async_trait]
impl View for SuppressedView {
    fn def(&self) -> &'static ViewDef {
        self.inner.def()
    }

    fn generation(&self) -> u64 {
        self.inner.generation()
    }

    fn rendition(&self) -> u64 {
        self.keys.version()
    }

    fn suppressed_keys(&self) -> usize {
        self.keys.count(self.inner.def())
    }

    fn hide(&self, row: &[u8]) -> Result<Option<Bytes>, Error> {
        let hidden = self.keys.hide(self.inner.def(), row);
        let unreadable = |error: serde_json::Error| Error::Damaged { table: self.inner.def().name.to_owned(), reason: error.to_string() };
        Ok(hidden.map_err(unreadable)?.map(Bytes::from))
    }

    async fn checkpoint(&self) -> Result<Checkpoint, Error> {
        self.inner.checkpoint().await
    }

    async fn commit(&self, _: Vec<Write>, _: &Checkpoint) -> Result<(), Error> {
        Err(Error::Unavailable { what: "rows cannot be written through the store of readers".to_owned(), source: None })
    }

    async fn get(&self, table: &'static Table, key: &Key) -> Result<Option<Bytes>, Error> {
        self.inner.get(table, key).await?.map(|value| self.shown(table, value)).transpose()
    }

    async fn get_many(&self, table: &'static Table, keys: &[Key]) -> Result<Vec<Option<Bytes>>, Error> {
        let rows = self.inner.get_many(table, keys).await?;
        rows.into_iter().map(|row| row.map(|value| self.shown(table, value)).transpose()).collect()
    }

    async fn range(&self, table: &'static Table, range: Range) -> Result<Vec<(Key, Bytes)>, Error> {
        let rows = self.inner.range(table, range).await?;
        rows.into_iter().map(|(key, value)| Ok((key, self.shown(table, value)?))).collect()
    }

    fn scan(&self, table: &'static Table, span: Span) -> Box<dyn Scan> {
        let (keys, def) = (Arc::clone(&self.keys), self.inner.def());
        Box::new(SuppressedScan { inner: self.inner.scan(table, span), keys, def, table })
    }

    async fn wait_past(&self, seen: &Checkpoint) -> Result<Checkpoint, Error> {
        self.inner.wait_past(seen).await
    }

    async fn wait_for_any(&self, awaited: &[Awaited]) -> Result<(), Error> {
        self.inner.wait_for_any(awaited).await
    }

    fn report_damage(&self, reason: &str) {
        self.inner.report_damage(reason);
    }

    fn wake(&self) {
        self.inner.wake();
    }
}

/// A scan of a [`SuppressedView`].
struct SuppressedScan {
    inner: Box<dyn Scan>,
    keys: Arc<SuppressedKeys>,
    def: &'static ViewDef,
    table: &'static Table,
}

#[async_trait]
impl Scan for SuppressedScan {
    async fn next(&mut self, rows_max: usize) -> Result<Vec<(Key, Bytes)>, Error> {
        let rows = self.inner.next(rows_max).await?;
        rows.into_iter().map(|(key, value)| Ok((key, shown(&self.keys, self.def, self.table, value)?))).collect()
    }
}

#[cfg(test)]
mod tests {
    use std::path::{Path, PathBuf};
    use std::sync::Arc;

    use schemas::suppression::{Hides, PERSON};
    use schemas::tables::{int_desc, text};
    use schemas::views::accounts::BY_HASH;

    use super::*;
    use crate::EmbeddedStore;
    use crate::embedded::Options;
    use crate::feed::{FeedCache, FeedReader, FeedTail};

    const RECORDS: Table =
        Table { name: "tested", key: &[text("id")], partition_columns: 1, kind: TableKind::Current, value: ValueKind::Text };
    const HISTORY: Table = Table {
        name: "tested_history",
        key: &[text("id"), int_desc("seq")],
        partition_columns: 1,
        kind: TableKind::History,
        value: ValueKind::Text,
    };
    const FEED: Table =
        Table { name: "tested_feed", key: FEED_KEY, partition_columns: 1, kind: TableKind::Derived, value: ValueKind::Bytes };
    static DEF: ViewDef = ViewDef {
        name: "tested",
        tables: &[&RECORDS, &HISTORY, &FEED],
        hides: &[Hides { kind: &PERSON, field: "owner", hidden: &["owner"] }],
    };

    fn row(n: usize) -> Bytes {
        let owner = if n.is_multiple_of(3) { "Ann Oak" } else { "Bo Elm" };
        Bytes::from(format!(r#"{{"seq":{n},"record":{{"id":"{n}","owner":"{owner}"}}}}"#))
    }

    /// Suppresses a key, or takes it back, as the projector would.
    async fn suppress(store: &EmbeddedStore, seq: u64, key: &str, is_suppressed: bool) {
        let accounts = store.live(&ACCOUNTS).await.unwrap();
        let key = key![PERSON.name, PERSON.normalize(key).unwrap().as_str()];
        let value = Bytes::from(serde_json::to_vec(&SuppressionRow::default()).unwrap());
        let write = if is_suppressed { Write::put(&SUPPRESSIONS, key, value) } else { Write::delete(&SUPPRESSIONS, key) };
        accounts.commit(vec![write], &Checkpoint { seq: Seq(seq), ..Checkpoint::default() }).await.unwrap();
    }

    /// Everything that readers can read, as text.
    async fn everything(store: &SuppressingStore, cache: &Arc<FeedCache>) -> String {
        let view = store.live(&DEF).await.unwrap();
        let mut out = Vec::new();
        for table in [&RECORDS, &HISTORY] {
            let mut scan = view.scan(table, Span::default());
            for (key, value) in scan.next(1_000).await.unwrap() {
                assert_eq!(view.get(table, &key).await.unwrap().as_ref(), Some(&value));
                assert_eq!(view.get_many(table, std::slice::from_ref(&key)).await.unwrap(), [Some(value.clone())]);
                let range = Range { prefix: key[..1].to_vec(), after: None, from: None, limit: 10, reverse: false };
                assert_eq!(view.range(table, range).await.unwrap().first().map(|(_, value)| value), Some(&value));
                out.push(value);
            }
        }
        let reader = FeedReader::new(view, &FEED, Arc::clone(cache));
        let page = reader.page(Seq(0), Seq(120), 200).await.unwrap();
        assert_eq!((page.shown, page.to), (120, Seq(120)));
        out.extend(page.parts);
        String::from_utf8(out.concat()).unwrap()
    }

    /// Proves that a suppressed name is in no row, version, scan or page of the feed, cached or not, that all other bytes stay, and that the name
    /// is back when the suppression is taken back; and that the store itself still has it.
    #[tokio::test]
    async fn suppressed_names_are_in_nothing_that_is_read() {
        let dir = tempfile::tempdir().unwrap();
        let inner = EmbeddedStore::open(dir.path(), Options::default()).unwrap();
        let (stored, mut tail, mut writes) = (inner.live(&DEF).await.unwrap(), FeedTail::empty(), Vec::new());
        for n in 1..=120 {
            let (seq, id) = (Seq(n), n.to_string());
            let row = row(usize::try_from(n).unwrap());
            tail.push(seq, 1_000 + seq.stored(), Some(&row)).unwrap();
            writes.push(Write::put(&RECORDS, key![id.as_str()], row.clone()));
            writes.push(Write::put(&HISTORY, key![id.as_str(), seq], row));
        }
        writes.extend(tail.take_writes(&FEED));
        stored.commit(writes, &Checkpoint { seq: Seq(120), ..Checkpoint::default() }).await.unwrap();
        let (store, cache) = (SuppressingStore::new(inner.clone()), Arc::new(FeedCache::default()));

        let before = everything(&store, &cache).await;
        assert_eq!((before.matches("Ann Oak").count(), before.matches("Bo Elm").count()), (120, 240));
        let view = store.live(&DEF).await.unwrap();
        assert_eq!((view.rendition(), view.suppressed_keys()), (0, 0));

        suppress(&inner, 1, "OAK, ANN", true).await;
        let hidden = everything(&store, &cache).await;
        assert_eq!(hidden, before.replace(r#""owner":"Ann Oak""#, r#""owner":"","suppressed":true"#));
        assert_eq!(everything(&store, &cache).await, hidden, "from the cache");
        let view = store.live(&DEF).await.unwrap();
        assert!(view.rendition() != 0 && view.suppressed_keys() == 1);
        assert!(view.hide(&row(3)).unwrap().is_some() && view.hide(&row(4)).unwrap().is_none());
        assert!(view.commit(Vec::new(), &Checkpoint::default()).await.is_err());
        assert_eq!(stored.get(&RECORDS, &key!["3"]).await.unwrap(), Some(row(3)));

        suppress(&inner, 2, "Bo Elm", true).await;
        let both = everything(&store, &cache).await;
        assert!(!both.contains("Ann") && !both.contains("Elm"));
        for (seq, key) in [(3, "bo elm"), (4, "ann oak")] {
            suppress(&inner, seq, key, false).await;
        }
        assert_eq!(everything(&store, &cache).await, before);
    }

    /// Proves that a key that an older version stored in another form hides what the key as it was given names.
    #[tokio::test]
    async fn keys_in_an_older_form_hide() {
        let dir = tempfile::tempdir().unwrap();
        let inner = EmbeddedStore::open(dir.path(), Options::default()).unwrap();
        let accounts = inner.live(&ACCOUNTS).await.unwrap();
        let given = SuppressionRow { key: "OAK, ANN".to_owned(), ..SuppressionRow::default() };
        let value = Bytes::from(serde_json::to_vec(&given).unwrap());
        let write = Write::put(&SUPPRESSIONS, key![PERSON.name, "an older form"], value);
        accounts.commit(vec![write], &Checkpoint { seq: Seq(1), ..Checkpoint::default() }).await.unwrap();
        let view = SuppressingStore::new(inner.clone()).live(&DEF).await.unwrap();
        assert!(view.hide(&row(3)).unwrap().is_some() && view.hide(&row(4)).unwrap().is_none());
        assert_eq!(view.suppressed_keys(), 1);
    }

    /// All files below a directory.
    fn files(dir: &Path) -> Vec<PathBuf> {
        let entries = std::fs::read_dir(dir).unwrap().map(|entry| entry.unwrap().path());
        entries.flat_map(|path| if path.is_dir() { files(&path) } else { vec![path] }).collect()
    }

    /// Proves for each file without which the engine takes a table for a new one that its deletion neither shows a suppressed name nor loses a key of an
    /// account: the view that lacks it is not served, and neither are those that hide fields, until it was filled from the log again.
    #[tokio::test]
    async fn deleted_files_show_no_suppressed_name() {
        const FILE: &str = "current";
        let dir = tempfile::tempdir().unwrap();
        let whole = dir.path().join("whole");
        let inner = EmbeddedStore::open(&whole, Options::default()).unwrap();
        let view = inner.live(&DEF).await.unwrap();
        view.commit(vec![Write::put(&RECORDS, key!["3"], row(3))], &Checkpoint { seq: Seq(1), ..Checkpoint::default() }).await.unwrap();
        suppress(&inner, 1, "Ann Oak", true).await;
        let accounts = inner.live(&ACCOUNTS).await.unwrap();
        let found = Write::put(&BY_HASH, key!["hash"], Bytes::from_static(b"{}"));
        accounts.commit(vec![found], &Checkpoint { seq: Seq(2), ..Checkpoint::default() }).await.unwrap();
        drop((view, accounts));
        inner.close().await.unwrap();
        drop(inner);

        let (mut tried, mut unserved) = (0, 0);
        for file in files(&whole).into_iter().filter(|file| file.ends_with(FILE)) {
            let damaged = dir.path().join("damaged");
            for from in files(&whole) {
                let to = damaged.join(from.strip_prefix(&whole).unwrap());
                std::fs::create_dir_all(to.parent().unwrap()).unwrap();
                std::fs::copy(&from, &to).unwrap();
            }
            std::fs::remove_file(damaged.join(file.strip_prefix(&whole).unwrap())).unwrap();
            let inner = EmbeddedStore::open(&damaged, Options::default()).unwrap();
            let store = SuppressingStore::new(inner.clone());
            let read_row = async |def: &'static ViewDef, table: &'static Table, key: &Key| store.live(def).await?.get(table, key).await;
            for (def, table, key) in [(&DEF, &RECORDS, key!["3"]), (&ACCOUNTS, &BY_HASH, key!["hash"])] {
                match read_row(def, table, &key).await {
                    Ok(row) => {
                        let row = row.unwrap_or_else(|| panic!("{}: a row of {} is missing", file.display(), table.name));
                        assert!(!String::from_utf8_lossy(&row).contains("Ann Oak"), "{}", file.display());
                    }
                    Err(Error::Rebuilding { .. }) => unserved += 1,
                    Err(error) => panic!("{}: {error}", file.display()),
                }
            }
            tried += 1;
            drop(store);
            inner.close().await.unwrap();
            drop(inner);
            std::fs::remove_dir_all(&damaged).unwrap();
        }
        assert!(tried >= 4 && unserved >= 4, "{tried} {unserved}");
    }
}
