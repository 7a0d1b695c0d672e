//! One hash over the logical rows of a view, by which two stores, or one store before and after a rebuild, are compared.
//!
//! Promises: the hash depends on table names, keys and values alone, not on how a store encodes them; each part is hashed
//! with its length, so no two lists of rows collide. Memory is bounded by one page of rows.

use bytes::Bytes;
use schemas::hash::Hash32;
use schemas::tables::{Datum, Key, Table, TableKind};
use sha2::{Digest, Sha256};

use crate::store::{Error, Span, View};

/// Rows read at a time.
const PAGE_ROWS: usize = 1_000;

/// SHA-256 over (table name, key, value) of every row of the tables of these kinds, in table-name order, then key order.
///
/// `edit` sees every row and answers the value to hash, or `None` to leave the row out: callers strip what may differ between
/// equal views, such as log positions. Rows written meanwhile may or may not be in it: digest a view that rests.
///
/// # Errors
/// Whatever reading the rows fails with.
pub async fn digest<F>(view: &dyn View, kinds: &[TableKind], mut edit: F) -> Result<Hash32, Error>
where
    F: FnMut(&Table, &Key, Bytes) -> Option<Bytes> + Send,
{
    let mut tables: Vec<&'static Table> = view.def().tables.iter().copied().filter(|table| kinds.contains(&table.kind)).collect();
    tables.sort_by_key(|table| table.name);
    let mut hasher = Sha256::new();
    for table in tables {
        hasher.update(b"T");
        part(&mut hasher, table.name.as_bytes());
        let mut scan = view.scan(table, Span::default());
        loop {
            let rows = scan.next(PAGE_ROWS).await?;
            if rows.is_empty() {
                break;
            }
            for (key, value) in rows {
                let Some(value) = edit(table, &key, value) else { continue };
                hasher.update(b"R");
                for datum in &key {
                    match datum {
                        Datum::Text(text) => {
                            hasher.update(b"t");
                            part(&mut hasher, text.as_bytes());
                        }
                        Datum::Int(int) => {
                            hasher.update(b"i");
                            hasher.update(int.to_be_bytes());
                        }
                    }
                }
                hasher.update(b"v");
                part(&mut hasher, &value);
            }
        }
    }
    Ok(Hash32(hasher.finalize().into()))
}

/// Hashes bytes preceded by their length.
fn part(hasher: &mut Sha256, bytes: &[u8]) {
    hasher.update((bytes.len() as u64).to_be_bytes());
    hasher.update(bytes);
}

#[cfg(test)]
mod tests {
    use schemas::key;
    use schemas::tables::{ValueKind, ViewDef, Write, int, text};

    use super::*;
    use crate::embedded::{EmbeddedStore, Options};
    use crate::store::{Checkpoint, ViewStore};

    static ROWS: Table = Table {
        name: "digest_rows",
        key: &[text("part"), int("num")],
        partition_columns: 1,
        kind: TableKind::Current,
        value: ValueKind::Text,
    };
    static OLD: Table = Table {
        name: "digest_old",
        key: &[text("part"), int("num")],
        partition_columns: 1,
        kind: TableKind::History,
        value: ValueKind::Text,
    };
    static DEF: ViewDef = ViewDef { name: "digest", tables: &[&ROWS, &OLD] };

    fn row(table: &'static Table, num: i64, value: &str) -> Write {
        Write::put(table, key!["p", num], Bytes::copy_from_slice(value.as_bytes()))
    }

    /// Proves that the digest sees every row over several pages, only of the kinds asked, after editing, and not the order of writing.
    #[tokio::test]
    async fn sees_rows_not_their_history() {
        let dir = tempfile::tempdir().unwrap();
        let store = EmbeddedStore::open(dir.path(), Options::default()).unwrap();
        let keep = |_: &Table, _: &Key, value: Bytes| Some(value);
        let current = [TableKind::Current];
        let view = store.live(&DEF).await.unwrap();
        let rows: Vec<Write> = (0..2_500).map(|num| row(&ROWS, num, "same")).collect();
        view.commit(rows.clone(), &Checkpoint::default()).await.unwrap();
        let first = digest(view.as_ref(), &current, keep).await.unwrap();

        let rebuilt = store.begin_rebuild(&DEF).await.unwrap();
        rebuilt.commit(rows.into_iter().rev().collect(), &Checkpoint { seq: 9, ..Checkpoint::default() }).await.unwrap();
        assert_eq!(digest(rebuilt.as_ref(), &current, keep).await.unwrap(), first);

        rebuilt.commit(vec![row(&OLD, 1, "x")], &Checkpoint { seq: 10, ..Checkpoint::default() }).await.unwrap();
        assert_eq!(digest(rebuilt.as_ref(), &current, keep).await.unwrap(), first);
        assert_ne!(digest(rebuilt.as_ref(), &[TableKind::Current, TableKind::History], keep).await.unwrap(), first);

        rebuilt.commit(vec![row(&ROWS, 2_400, "other")], &Checkpoint { seq: 11, ..Checkpoint::default() }).await.unwrap();
        assert_ne!(digest(rebuilt.as_ref(), &current, keep).await.unwrap(), first);
        let strip = |_: &Table, _: &Key, _: Bytes| Some(Bytes::from_static(b"same"));
        assert_eq!(digest(rebuilt.as_ref(), &current, strip).await.unwrap(), first);
        let mut seen = 0;
        digest(rebuilt.as_ref(), &current, |_, _, _| {
            seen += 1;
            None
        })
        .await
        .unwrap();
        assert_eq!(seen, 2_500);
    }
}
