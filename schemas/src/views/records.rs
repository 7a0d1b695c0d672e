//! Shared definitions for services with one kind of record: the record trait, terms that index its changes, and rows of decision state.
//! [`record_tables!`](crate::record_tables) defines the tables of such a service.

use serde::de::DeserializeOwned;
use serde::{Deserialize, Serialize};

use crate::change::Change;
use crate::details::ChangeRecord;
use crate::position::Seq;
use crate::tables::{Table, ViewDef};

/// The number of consecutive changes whose terms share a partition. It bounds the partition of a term that every change has.
pub const TERM_BUCKET: i64 = 1 << 18;
/// The number of partitions over which the names of one dimension are spread.
pub const NAME_SHARDS: i64 = 16;
/// The longest value of a term, in characters. Longer values are truncated.
const VALUE_CHARS_MAX: usize = 200;

/// A record that readers see.
pub trait Record: ChangeRecord + Serialize + DeserializeOwned + Clone + PartialEq + Send + Sync + 'static {
    /// The term dimensions in which readers search for a part of a value, not for the whole value.
    const SEARCHED: &'static [&'static str] = &[];

    /// Returns the identity of the record within the service.
    fn id(&self) -> &str;

    /// Whether the record is still at its upstream. The digest of current records leaves out the others.
    fn is_listed(&self) -> bool {
        true
    }

    /// Returns the terms that index the changes of the record.
    fn terms(&self) -> Vec<Term> {
        Vec::new()
    }
}

/// A term that indexes the changes of a record: `naics/541512`.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Term {
    /// The dimension of the term: `naics`.
    pub dimension: &'static str,
    /// The value of the term, in the form that [`normal`] returns.
    pub value: String,
}

impl Term {
    /// Creates a term; `None` if the value is empty.
    #[must_use]
    pub fn new(dimension: &'static str, value: &str) -> Option<Self> {
        let value = normal(value);
        (!value.is_empty()).then_some(Self { dimension, value })
    }

    /// Formats the term as the tables contain it.
    #[must_use]
    pub fn text(&self) -> String {
        format!("{}/{}", self.dimension, self.value)
    }

    /// Returns the shard that holds the value's name.
    #[must_use]
    pub fn shard(&self) -> i64 {
        let hash = self.value.bytes().fold(0_i64, |hash, byte| (hash * 31 + i64::from(byte)) & 0xffff);
        hash % NAME_SHARDS
    }
}

/// Normalizes a value for comparison: lower case, white space collapsed, truncated to the longest length.
#[must_use]
pub fn normal(value: &str) -> String {
    let mut out = String::with_capacity(value.len());
    for word in value.split_whitespace() {
        if !out.is_empty() {
            out.push(' ');
        }
        out.extend(word.chars().flat_map(char::to_lowercase));
    }
    if let Some((end, _)) = out.char_indices().nth(VALUE_CHARS_MAX) {
        out.truncate(end);
    }
    out
}

/// Decision state: rows of the service's `sources` table that later decisions need.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub struct Note {
    /// Rows with their contents after the change.
    pub rows: Vec<NoteRow>,
}

/// One row of decision state.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub struct NoteRow {
    /// Key of the row.
    pub key: String,
    /// Value of the row as JSON; empty if the row was deleted.
    pub value: String,
}

/// A change of a service with one kind of record.
pub type RecordChange<R> = Change<R, Note>;

/// A stored row: the record and the seq of the change that wrote it.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Row<R> {
    /// Seq of the change that wrote it.
    pub seq: Seq,
    /// The record.
    pub record: R,
}

/// The tables of a service with one kind of record.
#[derive(Clone, Copy, Debug)]
pub struct RecordTables {
    /// Current records: (id) to [`Row`] as JSON.
    pub records: &'static Table,
    /// Earlier versions of records, by the seq that wrote them: (id, seq descending) to [`Row`] as JSON.
    pub history: &'static Table,
    /// Index of changes by term: (term, bucket, seq) to nothing. `bucket` is the seq divided by `term_bucket`.
    pub terms: &'static Table,
    /// The number of consecutive changes whose terms share a partition, see [`TERM_BUCKET`].
    pub term_bucket: i64,
    /// All values of the terms of searched dimensions: (dimension, shard, value) to nothing.
    pub names: &'static Table,
    /// Decision state: (key) to JSON.
    pub sources: &'static Table,
    /// Packed pages of changes: (block) to a block, see `view_store::feed`.
    pub feed: &'static Table,
    /// Completeness of upstreams: (upstream, seq descending) to [`crate::change::Through`] as JSON.
    pub through: &'static Table,
    /// Parked inputs: (key of fact, offset) to position and reason, as JSON.
    pub parked: &'static Table,
    /// The view with all these tables.
    pub view: &'static ViewDef,
}

/// Defines `TABLES` of a service with one kind of record.
#[macro_export]
macro_rules! record_tables {
    ($service:literal) => {
        /// The service's tables.
        pub const TABLES: $crate::views::records::RecordTables = {
            use $crate::tables::{Column, Table, TableKind, ValueKind, int, int_desc, text};
            const fn table(
                name: &'static str,
                key: &'static [Column],
                partition_columns: usize,
                kind: TableKind,
                value: ValueKind,
            ) -> Table {
                Table { name, key, partition_columns, kind, value }
            }
            const RECORDS: Table = table($service, &[text("id")], 1, TableKind::Current, ValueKind::Text);
            const HISTORY: Table =
                table(concat!($service, "_history"), &[text("id"), int_desc("seq")], 1, TableKind::History, ValueKind::Text);
            const TERMS: Table =
                table(concat!($service, "_terms"), &[text("term"), int("bucket"), int("seq")], 2, TableKind::Derived, ValueKind::Bytes);
            const NAMES: Table = table(
                concat!($service, "_names"),
                &[text("dimension"), int("shard"), text("name")],
                2,
                TableKind::Derived,
                ValueKind::Bytes,
            );
            const SOURCES: Table = table(concat!($service, "_sources"), &[text("key")], 1, TableKind::Derived, ValueKind::Text);
            const FEED: Table = table(concat!($service, "_feed"), &[int("block")], 1, TableKind::Derived, ValueKind::Bytes);
            const THROUGH: Table =
                table(concat!($service, "_through"), &[text("upstream"), int_desc("seq")], 1, TableKind::Derived, ValueKind::Text);
            const PARKED: Table =
                table(concat!($service, "_parked"), &[text("key"), int("offset")], 1, TableKind::Derived, ValueKind::Text);
            const VIEW: $crate::tables::ViewDef = $crate::tables::ViewDef {
                name: $service,
                tables: &[&RECORDS, &HISTORY, &TERMS, &NAMES, &SOURCES, &FEED, &THROUGH, &PARKED],
            };
            $crate::views::records::RecordTables {
                records: &RECORDS,
                history: &HISTORY,
                terms: &TERMS,
                term_bucket: $crate::views::records::TERM_BUCKET,
                names: &NAMES,
                sources: &SOURCES,
                feed: &FEED,
                through: &THROUGH,
                parked: &PARKED,
                view: &VIEW,
            }
        };
    };
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Proves that values are normalized regardless of case and spaces, and that long ones are truncated.
    #[test]
    fn values_are_normalized() {
        assert_eq!(normal("  ACME \n Corp "), "acme corp");
        assert_eq!(Term::new("org", " "), None);
        assert_eq!(Term::new("org", "Ünï").unwrap().text(), "org/ünï");
        assert_eq!(normal(&"é".repeat(300)).chars().count(), VALUE_CHARS_MAX);
        assert!((0..NAME_SHARDS).contains(&Term::new("org", "acme").unwrap().shard()));
    }
}
