//! Checks of commits, point reads, ranges and keys.

use std::cmp::Ordering;

use bytes::Bytes;
use schemas::key;
use schemas::position::{LogOffset, Seq};
use schemas::tables::{Column, Datum, Key, Order, Table, TableKind, ValueKind, ViewDef, int_desc, text};

use super::{Failure, Random, at_seq, delete, fresh, promise, put};
use crate::store::{Checkpoint, Error, Range, Span, View, ViewStore};

static POINTS: Table =
    Table { name: "contract_points", key: &[text("id")], partition_columns: 1, kind: TableKind::Current, value: ValueKind::Text };
static LISTS: Table = Table {
    name: "contract_lists",
    key: &[text("part"), int_desc("num"), text("name")],
    partition_columns: 1,
    kind: TableKind::Derived,
    value: ValueKind::Text,
};
static ROWS: ViewDef = ViewDef { name: "contract_rows", tables: &[&POINTS, &LISTS], hides: &[] };

/// A commit shows all its rows and its checkpoint; of several writes to one row the last one counts; an invalid key changes nothing.
///
/// # Errors
/// The violated guarantee.
pub async fn commit_and_checkpoint(store: &dyn ViewStore) -> Result<(), Failure> {
    let view = fresh(store, &ROWS).await?;
    promise!(view.checkpoint().await? == Checkpoint::default(), "the checkpoint is the default before the first commit");
    let mut first = at_seq(1);
    first.positions.insert("topic/0".to_owned(), LogOffset(u64::from(u32::MAX) + 7));
    first.records = Some(u64::from(u32::MAX) + 8);
    let writes = vec![
        put(&POINTS, key!["a"], "one"),
        put(&LISTS, key!["p", 1, "x"], "two"),
        put(&POINTS, key!["b"], "three"),
        delete(&POINTS, key!["b"]),
        put(&POINTS, key!["c"], "four"),
        put(&POINTS, key!["c"], "five"),
    ];
    view.commit(writes.clone(), &first).await?;
    promise!(view.checkpoint().await? == first, "the checkpoint reads back as committed");
    promise!(view.get(&POINTS, &key!["a"]).await?.as_deref() == Some(b"one"), "the row of the first table exists");
    promise!(view.get(&LISTS, &key!["p", 1, "x"]).await?.as_deref() == Some(b"two"), "the row of the second table exists");
    promise!(view.get(&POINTS, &key!["b"]).await?.is_none(), "a row written and then deleted in one commit does not exist");
    promise!(view.get(&POINTS, &key!["c"]).await?.as_deref() == Some(b"five"), "the last write to a row in a commit counts");
    view.commit(writes, &first).await?;
    promise!(view.get(&POINTS, &key!["b"]).await?.is_none(), "the same commit again changes nothing");
    let second = Checkpoint { seq: Seq(2), records: None, ..first.clone() };
    view.commit(Vec::new(), &second).await?;
    promise!(view.checkpoint().await? == second, "a commit without rows raises the checkpoint");
    let late = vec![put(&POINTS, key!["a"], "late")];
    promise!(matches!(view.commit(late.clone(), &first).await, Err(Error::Behind { .. })), "a lower seq is refused");
    promise!(matches!(view.commit(late, &at_seq(3)).await, Err(Error::Behind { .. })), "a lower position is refused");
    promise!(view.get(&POINTS, &key!["a"]).await?.as_deref() == Some(b"one"), "an overtaken writer writes no row");
    let wrong = vec![put(&POINTS, key!["d"], "x"), put(&LISTS, key!["p", "text for int", "x"], "x")];
    let third = Checkpoint { seq: Seq(3), ..first };
    promise!(view.commit(wrong, &third).await.is_err(), "a key of the wrong type is refused");
    promise!(view.get(&POINTS, &key!["d"]).await?.is_none(), "a refused commit writes no row");
    promise!(view.checkpoint().await? == second, "a refused commit leaves the checkpoint");
    let live = store.live(&ROWS).await?;
    promise!(std::sync::Arc::ptr_eq(&live, &view), "the live generation is the same object while it is live");
    Ok(())
}

/// Rows read one by one and together, including missing rows, duplicates, large values and empty ones.
///
/// # Errors
/// The violated guarantee.
pub async fn points(store: &dyn ViewStore) -> Result<(), Failure> {
    let view = fresh(store, &ROWS).await?;
    let large = "x".repeat(100_000);
    let many: Vec<_> = (0..500_i64).map(|num| put(&POINTS, key![format!("id{num}")], &num.to_string())).collect();
    view.commit(many, &at_seq(1)).await?;
    view.commit(vec![put(&POINTS, key!["large"], &large), put(&POINTS, key!["empty"], "")], &at_seq(2)).await?;
    promise!(view.get(&POINTS, &key!["large"]).await?.as_deref() == Some(large.as_bytes()), "a value of 100 kB reads back");
    promise!(view.get(&POINTS, &key!["empty"]).await? == Some(Bytes::new()), "an empty value is a row, not a missing one");
    promise!(view.get(&POINTS, &key!["none"]).await?.is_none(), "a missing row is none");
    let keys = [key!["id7"], key!["none"], key!["id499"], key!["id7"]];
    let found: Vec<_> = view.get_many(&POINTS, &keys).await?;
    let expected = [Some(Bytes::from_static(b"7")), None, Some(Bytes::from_static(b"499")), Some(Bytes::from_static(b"7"))];
    promise!(found == expected, "get_many answers in the order of the keys, with missing rows and duplicates: {found:?}");
    let all: Vec<Key> = (0..500_i64).map(|num| key![format!("id{num}")]).collect();
    promise!(view.get_many(&POINTS, &all).await?.iter().all(Option::is_some), "get_many answers 500 keys");
    promise!(view.get_many(&POINTS, &[]).await?.is_empty(), "get_many of no keys is empty");
    Ok(())
}

/// A deleted row is missing from point reads and ranges, and may be written again.
///
/// # Errors
/// The violated guarantee.
pub async fn deletes(store: &dyn ViewStore) -> Result<(), Failure> {
    let view = fresh(store, &ROWS).await?;
    let row = |num: i64| key!["p", num, "n"];
    view.commit((0..5).map(|num| put(&LISTS, row(num), "v")).collect(), &at_seq(1)).await?;
    view.commit(vec![delete(&LISTS, row(2)).at(2), delete(&LISTS, row(9)).at(2)], &at_seq(2)).await?;
    promise!(view.get(&LISTS, &row(2)).await?.is_none(), "a deleted row is gone");
    let left: Vec<Key> = page(view.as_ref(), &LISTS, range(key!["p"], 10)).await?;
    promise!(left == [row(4), row(3), row(1), row(0)], "a deleted row is in no range: {left:?}");
    view.commit(vec![put(&LISTS, row(2), "again").at(3)], &at_seq(3)).await?;
    promise!(view.get(&LISTS, &row(2)).await?.as_deref() == Some(b"again"), "a deleted row may be written again");
    Ok(())
}

/// Ranges agree with a model: any prefix, direction, start and limit, with mixed column orders, negative numbers and unusual texts; and a
/// scan pages through the whole table in key order.
///
/// # Errors
/// The violated guarantee.
pub async fn ranges(store: &dyn ViewStore) -> Result<(), Failure> {
    const TEXTS: [&str; 7] = ["", "\0", "\0a", "a", "a\0", "ab", "é\u{10FFFF}"];
    const INTS: [i64; 7] = [i64::MIN, -256, -1, 0, 1, 255, i64::MAX];
    const PARTS: [&str; 4] = ["p", "p\0", "pp", "q"];
    let view = fresh(store, &ROWS).await?;
    let mut random = Random::new(11);
    let mut key = || key![PARTS[random.below(4)], INTS[random.below(7)], TEXTS[random.below(7)]];
    let mut model: Vec<Key> = (0..120).map(|_| key()).collect();
    model.sort_by(|left, right| by_columns(LISTS.key, left, right));
    model.dedup();
    view.commit(model.iter().map(|key| put(&LISTS, key.clone(), &format!("{key:?}"))).collect(), &at_seq(1)).await?;
    let mut random = Random::new(12);
    for _ in 0..1_500 {
        let mut key = || key![PARTS[random.below(4)], INTS[random.below(7)], TEXTS[random.below(7)]];
        let (whole, start) = (key(), key());
        let prefix = whole[..=random.below(3)].to_vec();
        let mut start: Key = prefix.iter().cloned().chain(start.into_iter().skip(prefix.len())).collect();
        let (mut after, mut from) = (None, None);
        match random.below(3) {
            0 => after = Some(start),
            1 => {
                start.truncate(prefix.len() + random.below(2));
                from = Some(start);
            }
            _ => {}
        }
        let requested = Range { prefix, after, from, limit: random.below(12), reverse: random.below(2) == 1 };
        let found = view.range(&LISTS, requested.clone()).await?;
        promise!(found.iter().all(|(key, value)| *value == format!("{key:?}").as_bytes()), "each key comes with its own value");
        let found: Vec<Key> = found.into_iter().map(|(key, _)| key).collect();
        let expected = expected(&model, &requested);
        promise!(found == expected, "{requested:?} returns {expected:?}, not {found:?}");
    }
    promise!(scanned(view.as_ref(), Span::default()).await? == model, "a scan in pages gives the whole table in key order");
    for _ in 0..20 {
        let mut end = || {
            let mut key = key![PARTS[random.below(4)], INTS[random.below(7)], TEXTS[random.below(7)]];
            key.truncate(1 + random.below(3));
            (random.below(4) > 0).then_some(key)
        };
        let span = Span { from: end(), to: end() };
        let inside = |key: &&Key| {
            span.from.as_ref().is_none_or(|from| by_columns(LISTS.key, key, from) != Ordering::Less)
                && span.to.as_ref().is_none_or(|to| by_columns(LISTS.key, key, to) == Ordering::Less)
        };
        let expected: Vec<Key> = model.iter().filter(inside).cloned().collect();
        let found = scanned(view.as_ref(), span.clone()).await?;
        promise!(found == expected, "a scan of {span:?} returns {expected:?}, not {found:?}");
    }
    Ok(())
}

/// Returns the keys of a section of the lists, read a few at a time.
async fn scanned(view: &dyn View, span: Span) -> Result<Vec<Key>, Failure> {
    let (mut scan, mut keys) = (view.scan(&LISTS, span), Vec::new());
    loop {
        let rows = scan.next(7).await?;
        promise!(rows.len() <= 7, "a page of a scan has no more rows than requested");
        promise!(rows.iter().all(|(key, value)| *value == format!("{key:?}").as_bytes()), "a scan gives each key with its own value");
        if rows.is_empty() {
            return Ok(keys);
        }
        keys.extend(rows.into_iter().map(|(key, _)| key));
    }
}

/// Texts with NUL and beyond ASCII are valid keys, also in a table with one column.
///
/// # Errors
/// The violated guarantee.
pub async fn wide_keys(store: &dyn ViewStore) -> Result<(), Failure> {
    let view = fresh(store, &ROWS).await?;
    let names = ["a", "a\0", "a\0\u{1}", "a\u{1}", "ä", "日本語", "\u{10FFFF}", "a b/c.d"];
    view.commit(names.iter().map(|name| put(&POINTS, key![*name], name)).collect(), &at_seq(1)).await?;
    for name in names {
        let found = view.get(&POINTS, &key![name]).await?;
        promise!(found.as_deref() == Some(name.as_bytes()), "the key {name:?} finds its own row, not {found:?}");
    }
    promise!(view.get(&POINTS, &key!["a\0\0"]).await?.is_none(), "a key that was not written finds none");
    Ok(())
}

fn range(prefix: Key, limit: usize) -> Range {
    Range { prefix, after: None, from: None, limit, reverse: false }
}

async fn page(view: &dyn View, table: &'static Table, range: Range) -> Result<Vec<Key>, Failure> {
    Ok(view.range(table, range).await?.into_iter().map(|(key, _)| key).collect())
}

/// Returns the rows of a sorted model that a range covers.
fn expected(model: &[Key], range: &Range) -> Vec<Key> {
    let in_direction = |key: &Key, start: &Key| {
        let order = by_columns(LISTS.key, key, start);
        if range.reverse { order.reverse() } else { order }
    };
    let inside = model.iter().filter(|key| {
        let begun = match (&range.after, &range.from) {
            (Some(after), _) => in_direction(key, after) == Ordering::Greater,
            (None, Some(from)) => in_direction(key, from) != Ordering::Less,
            (None, None) => true,
        };
        begun && key.starts_with(&range.prefix)
    });
    let mut rows: Vec<Key> = inside.cloned().collect();
    if range.reverse {
        rows.reverse();
    }
    rows.truncate(range.limit);
    rows
}

/// Compares keys, or a key with a prefix (equal if it has the prefix), in the order of the table.
fn by_columns(columns: &[Column], left: &[Datum], right: &[Datum]) -> Ordering {
    let orders = columns.iter().zip(left.iter().zip(right)).map(|(column, (left, right))| match column.order {
        Order::Asc => left.cmp(right),
        Order::Desc => right.cmp(left),
    });
    orders.fold(Ordering::Equal, Ordering::then)
}
