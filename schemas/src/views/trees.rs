//! The trees over the services' changes: leaf `i` is the hash of the change with seq `i + 1`. Kept as tiles, and grown from the change topics.

use serde::{Deserialize, Serialize};

use crate::tables::{Table, TableKind, ValueKind, ViewDef, int, text};

/// The level at which the leaves themselves are: the hashes of the changes, 32 bytes each.
pub const ENTRIES_LEVEL: i64 = -1;

/// Hashes of the trees: (service, level, tile) to at most 256 hashes of 32 bytes. A full tile never changes.
pub const TILES: Table = Table {
    name: "tree_tiles",
    key: &[text("service"), int("level"), int("tile")],
    partition_columns: 3,
    kind: TableKind::Derived,
    value: ValueKind::Bytes,
};
/// How far each tree has grown: (service) to [`Grown`] as JSON.
pub const SIZES: Table =
    Table { name: "tree_sizes", key: &[text("service")], partition_columns: 1, kind: TableKind::Derived, value: ValueKind::Text };
/// The newest signed checkpoint of each tree: (service) to [`super::receipts::Sealed`] as JSON.
pub const SEALED: Table =
    Table { name: "tree_sealed", key: &[text("service")], partition_columns: 1, kind: TableKind::Derived, value: ValueKind::Text };

/// The view of the trees: filled from changes, one commit for many.
pub const VIEW: ViewDef = ViewDef { name: "trees", tables: &[&TILES, &SIZES, &SEALED] };

/// How far a tree has grown.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub struct Grown {
    /// Leaves, which is the seq of the last change.
    pub size: u64,
    /// The hash of the last change, 64 hex digits; empty for none.
    pub hash: String,
    /// The offset after it in the change topic.
    pub next: u64,
}
