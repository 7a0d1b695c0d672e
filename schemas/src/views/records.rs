//! What the views of services of plain records have in common: a record an id, terms by which its changes are found, and rows that
//! decisions remember. Such a service's tables are made by [`record_tables!`](crate::record_tables).

use serde::de::DeserializeOwned;
use serde::{Deserialize, Serialize};

use crate::change::Change;
use crate::tables::{Table, ViewDef};

/// Changes whose terms lie in one partition: a term that every change has fills no partition beyond that.
pub const TERM_BUCKET: i64 = 1 << 18;
/// Partitions over which the names of one dimension are spread.
pub const NAME_SHARDS: i64 = 16;
/// The longest value of a term, in characters.
const VALUE_CHARS_MAX: usize = 200;

/// A record that readers see.
pub trait Record: Serialize + DeserializeOwned + Clone + PartialEq + Send + Sync + 'static {
    /// The dimensions of its terms in which readers look for a part of a value, not for all of it.
    const SEARCHED: &'static [&'static str] = &[];

    /// Its identity within the service.
    fn id(&self) -> &str;

    /// Whether it stands at its upstream: a record that is gone is in no digest of current ones.
    fn is_listed(&self) -> bool {
        true
    }

    /// The terms by which readers find its changes.
    fn terms(&self) -> Vec<Term> {
        Vec::new()
    }
}

/// One thing that can be said of a record, by which its changes are found: `naics/541512`.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Term {
    /// What is said: `naics`.
    pub dimension: &'static str,
    /// The value, in lower case.
    pub value: String,
}

impl Term {
    /// A term; `None` for a value that says nothing.
    #[must_use]
    pub fn new(dimension: &'static str, value: &str) -> Option<Self> {
        let value = normal(value);
        (!value.is_empty()).then_some(Self { dimension, value })
    }

    /// The term as the tables have it.
    #[must_use]
    pub fn text(&self) -> String {
        format!("{}/{}", self.dimension, self.value)
    }

    /// The partition of its name.
    #[must_use]
    pub fn shard(&self) -> i64 {
        let hash = self.value.bytes().fold(0_i64, |hash, byte| (hash * 31 + i64::from(byte)) & 0xffff);
        hash % NAME_SHARDS
    }
}

/// How values of terms are compared: lower case, white space collapsed, cut where they are endless.
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

/// What a service remembers for later decisions: rows of its table of sources.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub struct Note {
    /// Rows as they stand after the change.
    pub rows: Vec<NoteRow>,
}

/// One row that decisions remember.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub struct NoteRow {
    /// Its key.
    pub key: String,
    /// JSON; empty for a row that is gone.
    pub value: String,
}

/// A change of such a service.
pub type RecordChange<R> = Change<R, Note>;

/// A stored row: the record and the change that wrote it.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Row<R> {
    /// Seq of the change that wrote it.
    pub seq: i64,
    /// The record.
    pub record: R,
}

/// The tables of such a service.
#[derive(Clone, Copy, Debug)]
pub struct RecordTables {
    /// Records as they stand: (id) to [`Row`] as JSON.
    pub records: &'static Table,
    /// Records as they stood, by the seq from which they did: (id, seq descending) to [`Row`] as JSON.
    pub history: &'static Table,
    /// Changes by term: (term, bucket, seq) to nothing. `bucket` is the seq divided by `term_bucket`.
    pub terms: &'static Table,
    /// Changes whose terms lie in one partition, as [`TERM_BUCKET`].
    pub term_bucket: i64,
    /// All values of the terms of a searched dimension: (dimension, shard, value) to nothing.
    pub names: &'static Table,
    /// What decisions remember: (key) to JSON.
    pub sources: &'static Table,
    /// Packed pages of changes: (block) to a block, see `view_store::feed`.
    pub feed: &'static Table,
    /// Upstreams' completeness: (upstream, seq descending) to [`crate::change::Through`] as JSON.
    pub through: &'static Table,
    /// Inputs that could not be decided: (key of fact, offset) to where and why, as JSON.
    pub parked: &'static Table,
    /// The view of them.
    pub view: &'static ViewDef,
}

/// Makes `TABLES` and `VIEW` of a service of plain records.
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

    /// Proves that values are compared without regard to case and spaces, and that none is endless.
    #[test]
    fn values() {
        assert_eq!(normal("  ACME \n Corp "), "acme corp");
        assert_eq!(Term::new("org", " "), None);
        assert_eq!(Term::new("org", "Ünï").unwrap().text(), "org/ünï");
        assert_eq!(normal(&"é".repeat(300)).chars().count(), VALUE_CHARS_MAX);
        assert!((0..NAME_SHARDS).contains(&Term::new("org", "acme").unwrap().shard()));
    }
}
