//! Table definitions for both view stores: named, typed key columns and one value.
//!
//! On CQL, a table is a real table. In the embedded store, key columns are encoded so that byte order is column order.

use bytes::Bytes;

use crate::position::{LogOffset, Seq};
use crate::suppression::Hides;

/// The type of a key column.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ColumnType {
    /// UTF-8 text.
    Text,
    /// A signed 64-bit integer.
    Int,
}

/// The order of rows by a column within a partition.
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
    /// The name of the column in CQL.
    pub name: &'static str,
    /// The type of the column.
    pub ty: ColumnType,
    /// The order of rows by this column (clustering columns; partition columns are ascending).
    pub order: Order,
}

/// What the rows of a table are. Digests and rebuilds depend on it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum TableKind {
    /// Current rows. The digest covers them.
    Current,
    /// Earlier versions of rows, by the seq that wrote them. The digest covers them with `--history`.
    History,
    /// Rows derived from other tables, or internal to the engine: indexes, decision state, packed feed pages. No digest covers them.
    Derived,
}

/// What the values of a table are. It determines how CQL shows them.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ValueKind {
    /// UTF-8 text, usually JSON: a person can read it.
    Text,
    /// Arbitrary bytes; may be empty.
    Bytes,
}

/// One table of a view.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Table {
    /// The name of the table, unique in the store.
    pub name: &'static str,
    /// The key columns, partition columns first.
    pub key: &'static [Column],
    /// How many key columns form the CQL partition key (at least 1).
    pub partition_columns: usize,
    /// What the rows are.
    pub kind: TableKind,
    /// What the values are.
    pub value: ValueKind,
}

/// One value of a key.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Datum {
    /// The value of a `Text` column.
    Text(String),
    /// The value of an `Int` column.
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
impl From<Seq> for Datum {
    fn from(seq: Seq) -> Self {
        Self::Int(seq.stored())
    }
}
impl From<LogOffset> for Datum {
    fn from(offset: LogOffset) -> Self {
        Self::Int(offset.stored())
    }
}

/// The key of a row, or a prefix of its columns.
pub type Key = Vec<Datum>;

/// Builds a [`Key`] from values that convert into [`Datum`].
#[macro_export]
macro_rules! key {
    ($($part:expr),* $(,)?) => { vec![$($crate::tables::Datum::from($part)),*] };
}

/// One write to a view: put a row, or (value `None`) delete it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Write {
    /// The table that is written.
    pub table: &'static Table,
    /// The complete key.
    pub key: Key,
    /// The new value of the row; `None` deletes the row.
    pub value: Option<Bytes>,
    /// The position that orders writes to this row: the seq of the change, or the offset after the fact, that caused the write. The write
    /// with the higher position wins, whichever process writes it and when. A store with a single writer may ignore it.
    pub at: i64,
}

impl Write {
    /// Creates a write that puts a row.
    #[must_use]
    pub fn put(table: &'static Table, key: Key, value: Bytes) -> Self {
        Self { table, key, value: Some(value), at: 0 }
    }

    /// Creates a write that deletes a row.
    #[must_use]
    pub fn delete(table: &'static Table, key: Key) -> Self {
        Self { table, key, value: None, at: 0 }
    }

    /// Sets the position that orders this write among the writes to its row.
    #[must_use]
    pub fn at(mut self, at: i64) -> Self {
        self.at = at;
        self
    }
}

/// A view: the tables of one service (or of the engine), which are rebuilt and swapped together.
#[derive(Clone, Copy, Debug)]
pub struct ViewDef {
    /// The name of the view: that of its service.
    pub name: &'static str,
    /// The tables of the view.
    pub tables: &'static [&'static Table],
    /// What readers no longer see of its records when a key is suppressed. A view whose records name no person and nobody's property has
    /// none.
    pub hides: &'static [Hides],
}

/// Creates a text column, ascending.
#[must_use]
pub const fn text(name: &'static str) -> Column {
    Column { name, ty: ColumnType::Text, order: Order::Asc }
}
/// Creates an integer column, ascending.
#[must_use]
pub const fn int(name: &'static str) -> Column {
    Column { name, ty: ColumnType::Int, order: Order::Asc }
}
/// Creates an integer column, descending.
#[must_use]
pub const fn int_desc(name: &'static str) -> Column {
    Column { name, ty: ColumnType::Int, order: Order::Desc }
}
