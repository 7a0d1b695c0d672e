//! Encodes key columns as bytes whose order is the order of the columns.
//!
//! - Text: its bytes, each 0x00 written as 0x00 0xFF, then the end marker 0x00 0x01. The marker is smaller than any byte that can
//!   follow, so that a text sorts before every longer one, and no encoded column is a prefix of another.
//! - Int: eight bytes, big endian, sign bit flipped.
//! - Descending columns: the same bytes, inverted.
//!
//! A prefix of columns is therefore encoded as a prefix of bytes, which exactly the rows with these columns share.

use schemas::tables::{Column, ColumnType, Datum, Key, Order, Table};

use crate::store::Error;

/// The longest encoded key. The engine supports keys of up to 65,535 bytes; one near that is a mistake.
const KEY_BYTES_MAX: usize = 60_000;
/// The capacity that is reserved for a column.
const COLUMN_BYTES_USUAL: usize = 16;
const SIGN: u64 = 1 << 63;

/// Encodes a complete key.
///
/// # Errors
/// When the key does not fit the table, or is longer than a store accepts.
pub fn encode_whole(table: &Table, key: &[Datum]) -> Result<Vec<u8>, Error> {
    let mut out = Vec::with_capacity(key.len() * COLUMN_BYTES_USUAL);
    append_whole(table, key, &mut out)?;
    Ok(out)
}

/// Encodes a complete key and appends it.
pub(crate) fn append_whole(table: &Table, key: &[Datum], out: &mut Vec<u8>) -> Result<(), Error> {
    if key.len() != table.key.len() {
        return Err(bad_key(table, format!("{} columns given, {} expected", key.len(), table.key.len())));
    }
    append(table, key, out)
}

/// Encodes the leading columns of a key; without columns the result is empty.
///
/// # Errors
/// When the columns do not fit the table, or are longer than a store accepts.
pub fn encode_prefix(table: &Table, key: &[Datum]) -> Result<Vec<u8>, Error> {
    if key.len() > table.key.len() {
        return Err(bad_key(table, format!("{} columns given, the table has {}", key.len(), table.key.len())));
    }
    let mut out = Vec::with_capacity(key.len() * COLUMN_BYTES_USUAL);
    append(table, key, &mut out)?;
    Ok(out)
}

fn append(table: &Table, key: &[Datum], out: &mut Vec<u8>) -> Result<(), Error> {
    let begin = out.len();
    for (column, datum) in table.key.iter().zip(key) {
        let start = out.len();
        match (column.ty, datum) {
            (ColumnType::Text, Datum::Text(text)) => {
                for (i, piece) in text.as_bytes().split(|byte| *byte == 0).enumerate() {
                    if i > 0 {
                        out.extend_from_slice(&[0, 0xFF]);
                    }
                    out.extend_from_slice(piece);
                }
                out.extend_from_slice(&[0, 1]);
            }
            (ColumnType::Int, Datum::Int(int)) => out.extend_from_slice(&(int.cast_unsigned() ^ SIGN).to_be_bytes()),
            _ => return Err(bad_key(table, format!("column {} has another type than the value given", column.name))),
        }
        if column.order == Order::Desc {
            for byte in &mut out[start..] {
                *byte = !*byte;
            }
        }
    }
    let length = out.len() - begin;
    if length > KEY_BYTES_MAX {
        return Err(bad_key(table, format!("{length} bytes long, {KEY_BYTES_MAX} at most")));
    }
    Ok(())
}

/// Decodes a complete key.
///
/// # Errors
/// [`Error::Damaged`] if the bytes are not a key of the table.
pub fn decode(table: &Table, bytes: &[u8]) -> Result<Key, Error> {
    let damaged = || Error::Damaged { table: table.name.to_owned(), reason: "a key cannot be decoded".to_owned() };
    let mut rest = bytes;
    let mut key = Key::with_capacity(table.key.len());
    for column in table.key {
        let (datum, used) = decode_column(column, rest).ok_or_else(damaged)?;
        key.push(datum);
        rest = &rest[used..];
    }
    if rest.is_empty() { Ok(key) } else { Err(damaged()) }
}

/// Decodes one column and returns its encoded length.
fn decode_column(column: &Column, bytes: &[u8]) -> Option<(Datum, usize)> {
    let invert = if column.order == Order::Desc { 0xFF } else { 0 };
    match column.ty {
        ColumnType::Int => {
            let raw: [u8; 8] = bytes.get(..8)?.try_into().ok()?;
            let value = u64::from_be_bytes(raw.map(|byte| byte ^ invert)) ^ SIGN;
            Some((Datum::Int(value.cast_signed()), 8))
        }
        ColumnType::Text => {
            let mut text = Vec::with_capacity(bytes.len());
            let mut at = 0;
            loop {
                let byte = bytes.get(at)? ^ invert;
                at += 1;
                if byte != 0 {
                    text.push(byte);
                    continue;
                }
                let mark = bytes.get(at)? ^ invert;
                at += 1;
                match mark {
                    0xFF => text.push(0),
                    1 => return Some((Datum::Text(String::from_utf8(text).ok()?), at)),
                    _ => return None,
                }
            }
        }
    }
}

/// Returns the first bytes after everything with the prefix; `None` if nothing can follow.
pub(crate) fn end_of(prefix: &[u8]) -> Option<Vec<u8>> {
    let last = prefix.iter().rposition(|byte| *byte != 0xFF)?;
    let mut end = prefix[..=last].to_vec();
    end[last] += 1;
    Some(end)
}

/// Creates the error for a key that does not fit its table, which is a mistake of the caller.
#[must_use]
pub fn bad_key(table: &Table, why: String) -> Error {
    Error::Unavailable { what: format!("a key of table {} is invalid: {why}", table.name), source: None }
}

#[cfg(test)]
mod tests {
    use std::cmp::Ordering;

    use schemas::key;
    use schemas::tables::{TableKind, ValueKind, int, int_desc, text};

    use super::*;
    use crate::contract::Random;

    const TEXT_DESC: Column = Column { name: "name", ty: ColumnType::Text, order: Order::Desc };
    static MIXED: Table = Table {
        name: "mixed",
        key: &[text("a"), int_desc("b"), TEXT_DESC, int("d"), text("e")],
        partition_columns: 1,
        kind: TableKind::Derived,
        value: ValueKind::Text,
    };

    fn random_key(random: &mut Random) -> Key {
        const PIECES: [&str; 8] = ["\0", "\u{1}", "a", "b", "é", "\u{10FFFF}", "\u{7F}", "\0\u{1}"];
        let mut text = || {
            let len = random.below(4);
            let picked: String = (0..len).map(|_| PIECES[random.below(8)]).collect();
            Datum::Text(picked)
        };
        let (a, c, e) = (text(), text(), text());
        let mut int = || match random.below(5) {
            0 => Datum::Int(i64::MIN),
            1 => Datum::Int(i64::MAX),
            2 => Datum::Int(random.next().cast_signed()),
            _ => Datum::Int(i64::try_from(random.below(5)).unwrap() - 2),
        };
        vec![a, int(), c, int(), e]
    }

    /// Compares keys column by column, in the order of the table.
    fn by_columns(left: &Key, right: &Key) -> Ordering {
        MIXED
            .key
            .iter()
            .zip(left.iter().zip(right))
            .map(|(column, (l, r))| if column.order == Order::Desc { r.cmp(l) } else { l.cmp(r) })
            .find(|order| order.is_ne())
            .unwrap_or(Ordering::Equal)
    }

    /// Proves that byte order is column order, that keys decode to what was encoded, and that a prefix covers exactly the rows that share
    /// it.
    #[test]
    fn byte_order_is_column_order() {
        let mut random = Random::new(7);
        for _ in 0..20_000 {
            let (left, right) = (random_key(&mut random), random_key(&mut random));
            let (l, r) = (encode_whole(&MIXED, &left).unwrap(), encode_whole(&MIXED, &right).unwrap());
            assert_eq!(l.cmp(&r), by_columns(&left, &right), "{left:?} {right:?}");
            assert_eq!(decode(&MIXED, &l).unwrap(), left);
            let columns = random.below(6);
            let prefix = encode_prefix(&MIXED, &left[..columns]).unwrap();
            let inside = r >= prefix && end_of(&prefix).is_none_or(|end| r < end);
            assert_eq!(inside, right[..columns] == left[..columns], "{left:?} {right:?} {columns}");
        }
    }

    /// Proves that keys of the wrong shape and malformed bytes are refused without a panic.
    #[test]
    fn wrong_keys_are_refused() {
        let whole = |key: Key| encode_whole(&MIXED, &key);
        let prefix = |key: Key| encode_prefix(&MIXED, &key);
        assert!(whole(key!["a"]).is_err());
        assert!(prefix(key![1]).is_err());
        assert!(prefix(key!["a", 1, "b", 2, "c", 3]).is_err());
        assert!(prefix(key!["x".repeat(70_000)]).is_err());
        let good = whole(key!["a\0b", -1, "c", 2, "d"]).unwrap();
        for cut in 0..good.len() {
            assert!(decode(&MIXED, &good[..cut]).is_err());
        }
        let mut longer = good;
        longer.push(0);
        assert!(decode(&MIXED, &longer).is_err());
        assert_eq!(end_of(&[1, 0xFF]), Some(vec![2]));
        assert_eq!(end_of(&[0xFF, 0xFF]), None);
    }
}
