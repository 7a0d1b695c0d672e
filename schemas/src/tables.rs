//! Tables as both view stores make them: named, typed key columns and one value.
//!
//! On CQL a table is a real table; embedded, its key columns are encoded so that byte order is column order.

use bytes::Bytes;

/// The type of a key column.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ColumnType {
    /// UTF-8 text.
    Text,
    /// A signed 64-bit integer.
    Int,
}

/// Which way rows of a column run within a partition.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Order {
    /// Smallest first.
    Asc,
    /// Largest first.
    Desc,
}

/// One key column.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Column {
    /// Its name in CQL.
    pub name: &'static str,
    /// Its type.
    pub ty: ColumnType,
    /// Its order (clustering columns; partition columns are ascending).
    pub order: Order,
}

/// What a table's rows are, which says what digests and rebuilds do with them.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum TableKind {
    /// The rows as they stand now. In the digest.
    Current,
    /// Rows as they stood before, by the seq from which they did. In the digest with `--history`.
    History,
    /// Derived from the others, or of the engine alone: indexes, decision state, packed pages. In no digest.
    Derived,
}

/// What a table's values are, which says how CQL shows them.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ValueKind {
    /// UTF-8 text, JSON as a rule: a person can read it.
    Text,
    /// Any bytes, none too.
    Bytes,
}

/// One table of a view.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Table {
    /// Its name, unique in the store.
    pub name: &'static str,
    /// Its key columns, partition columns first.
    pub key: &'static [Column],
    /// How many of the key columns are the CQL partition key (at least 1).
    pub partition_columns: usize,
    /// What its rows are.
    pub kind: TableKind,
    /// What its values are.
    pub value: ValueKind,
}

/// One key value.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Datum {
    /// For a `Text` column.
    Text(String),
    /// For an `Int` column.
    Int(i64),
}

impl From<&str> for Datum {
    fn from(text: &str) -> Self {
        Self::Text(text.to_owned())
    }
}
impl From<String> for Datum {
    fn from(text: String) -> Self {
        Self::Text(text)
    }
}
impl From<i64> for Datum {
    fn from(int: i64) -> Self {
        Self::Int(int)
    }
}

/// A row's key, or the beginning of one (a prefix of its columns).
pub type Key = Vec<Datum>;

/// Builds a [`Key`] from values that convert into [`Datum`].
#[macro_export]
macro_rules! key {
    ($($part:expr),* $(,)?) => { vec![$($crate::tables::Datum::from($part)),*] };
}

/// One write to a view: put a row, or (value `None`) delete it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Write {
    /// The table.
    pub table: &'static Table,
    /// The whole key.
    pub key: Key,
    /// The row's value; `None` deletes the row.
    pub value: Option<Bytes>,
    /// What orders writes to this row: the seq of the change, or the offset after the fact, that it follows from; a later one wins,
    /// whoever writes it and when. A store that has one writer at a time need not look at it.
    pub at: i64,
}

impl Write {
    /// Puts a row.
    #[must_use]
    pub fn put(table: &'static Table, key: Key, value: Bytes) -> Self {
        Self { table, key, value: Some(value), at: 0 }
    }

    /// Deletes a row.
    #[must_use]
    pub fn delete(table: &'static Table, key: Key) -> Self {
        Self { table, key, value: None, at: 0 }
    }

    /// The same write with its place among the writes to its row.
    #[must_use]
    pub fn at(mut self, at: i64) -> Self {
        self.at = at;
        self
    }
}

/// A view: the tables that one service (or the engine) keeps, rebuilt and swapped as one.
#[derive(Clone, Copy, Debug)]
pub struct ViewDef {
    /// Its name: the service's.
    pub name: &'static str,
    /// Its tables.
    pub tables: &'static [&'static Table],
}

/// A text column, ascending.
#[must_use]
pub const fn text(name: &'static str) -> Column {
    Column { name, ty: ColumnType::Text, order: Order::Asc }
}
/// An integer column, ascending.
#[must_use]
pub const fn int(name: &'static str) -> Column {
    Column { name, ty: ColumnType::Int, order: Order::Asc }
}
/// An integer column, descending.
#[must_use]
pub const fn int_desc(name: &'static str) -> Column {
    Column { name, ty: ColumnType::Int, order: Order::Desc }
}
