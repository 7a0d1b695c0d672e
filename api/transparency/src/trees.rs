//! The Merkle trees over the services' changes: leaf `i` is the hash of the change with seq `i + 1`. They are stored as tiles and derived
//! from the change topics.

use schemas::position::LogOffset;
use schemas::tables::{Table, TableKind, ValueKind, ViewDef, int, text};
use serde::{Deserialize, Serialize};

/// The pseudo-level of the leaves: the hashes of the changes, 32 bytes each.
pub const ENTRIES_LEVEL: i64 = -1;

/// Tiles of the trees: (service, level, tile) to at most 256 hashes of 32 bytes. A full tile never changes.
pub const TILES: Table = Table {
    name: "tree_tiles",
    key: &[text("service"), int("level"), int("tile")],
    partition_columns: 3,
    kind: TableKind::Derived,
    value: ValueKind::Bytes,
};
/// The size of each tree: (service) to [`TreeSize`] as JSON.
pub const SIZES: Table =
    Table { name: "tree_sizes", key: &[text("service")], partition_columns: 1, kind: TableKind::Derived, value: ValueKind::Text };
/// The newest signed checkpoint of each tree: (service) to [`schemas::views::receipts::SignedCheckpoint`] as JSON.
pub const SIGNED_CHECKPOINTS: Table =
    Table { name: "tree_sealed", key: &[text("service")], partition_columns: 1, kind: TableKind::Derived, value: ValueKind::Text };

/// The view of the trees. It is derived from changes; one commit covers many.
pub const VIEW: ViewDef = ViewDef { name: "trees", tables: &[&TILES, &SIZES, &SIGNED_CHECKPOINTS], hides: &[] };

/// The size of a tree, and the position up to which it was derived.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub struct TreeSize {
    /// The number of leaves, which is the seq of the last change.
    pub size: u64,
    /// The hash of the last change, 64 hex digits; empty if there is none.
    pub hash: String,
    /// The offset after that change in the change topic.
    pub next: LogOffset,
}
