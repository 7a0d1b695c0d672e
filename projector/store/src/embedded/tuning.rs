//! Options of the embedded store, and the layout of keyspaces by the purpose of their table.

use std::path::PathBuf;
use std::sync::Arc;

use disk_files::space::SpaceWatch;
use fjall::config::{BlockSizePolicy, CompressionPolicy};
use fjall::{CompressionType, KeyspaceCreateOptions, KvSeparationOptions};
use schemas::tables::Table;

const MIB: u64 = 1024 * 1024;

/// Sizes of the embedded store. All are soft limits.
#[derive(Clone, Debug)]
pub struct Options {
    /// The cache for blocks read from files, shared by all tables.
    pub cache_bytes: u64,
    /// The size of the journal above which tables are flushed. It bounds the time to open after a crash. At least 64 MiB.
    pub max_journaling_bytes: u64,
    /// The memory that one table uses before its rows are written to a file. At least 1 MiB.
    pub write_buffer_bytes: u64,
    /// The memory that all tables together use before the largest is flushed early. At least `write_buffer_bytes`.
    pub write_buffer_total_bytes: u64,
    /// How many files of tables are kept open; at least 10.
    pub files_open_max: usize,
    /// The directory of the stored values, which follow from no log; `None`: `values` in the store's directory.
    pub values_dir: Option<PathBuf>,
    /// Whether a view that the store did not know is complete without having been filled: true if the log is empty, or if nobody fills views from a
    /// log. Otherwise [`live`](crate::ViewStore::live) does not return it before [`finish_rebuild`](crate::View::finish_rebuild).
    pub new_views_are_complete: bool,
    /// The views that are served only after somebody has applied what the log had when the store was opened, and called
    /// [`finish_rebuild`](crate::View::finish_rebuild): after damage to the journal the store may be behind what was served before.
    pub caught_up_first: Vec<&'static str>,
    /// Measures the free space of the disk. While it is full, commits fail, and counters are counted in memory.
    pub space: Option<Arc<SpaceWatch>>,
}

impl Default for Options {
    fn default() -> Self {
        Self {
            cache_bytes: 32 * MIB,
            max_journaling_bytes: 128 * MIB,
            write_buffer_bytes: 12 * MIB,
            write_buffer_total_bytes: 48 * MIB,
            files_open_max: 384,
            values_dir: None,
            new_views_are_complete: true,
            caught_up_first: Vec::new(),
            space: None,
        }
    }
}

impl Options {
    /// Returns these options with values that the engine would refuse raised to its minimum.
    pub(super) fn clamped(self) -> Self {
        let write_buffer_bytes = self.write_buffer_bytes.max(MIB);
        Self {
            cache_bytes: self.cache_bytes.max(MIB),
            max_journaling_bytes: self.max_journaling_bytes.max(64 * MIB),
            write_buffer_bytes,
            write_buffer_total_bytes: self.write_buffer_total_bytes.max(write_buffer_bytes),
            files_open_max: self.files_open_max.max(10),
            ..self
        }
    }

    /// Returns the layout of a table's keyspace. Bloom filters are the engine's default.
    pub(super) fn layout(&self, table: &Table) -> KeyspaceCreateOptions {
        let options = KeyspaceCreateOptions::default().max_memtable_size(self.write_buffer_bytes);
        if is_feed(table) {
            // Blocks of about 35 KB are stored outside the tree, so that compactions do not copy them, and uncompressed, so that a page
            // costs one read. The last block is rewritten often: blob files are rewritten when a third of one is stale.
            let blobs = KvSeparationOptions::default().compression(CompressionType::None).separation_threshold(4 * 1024);
            return options
                .data_block_compression_policy(CompressionPolicy::all(CompressionType::None))
                .with_kv_separation(Some(blobs.file_target_size(64 * MIB).staleness_threshold(0.33)));
        }
        // A table whose whole key is its partition key is only read by points: small blocks. Others are scanned.
        let scanned = table.partition_columns < table.key.len();
        options
            .data_block_size_policy(BlockSizePolicy::all(if scanned { 16 * 1024 } else { 4 * 1024 }))
            .data_block_compression_policy(CompressionPolicy::new([CompressionType::None, CompressionType::Lz4]))
    }

    /// Returns the layout of the store's own small keyspaces.
    pub(super) fn own_layout() -> KeyspaceCreateOptions {
        KeyspaceCreateOptions::default().max_memtable_size(MIB)
    }
}

/// Whether a table contains packed blocks of changes.
fn is_feed(table: &Table) -> bool {
    table.name.starts_with("feed") || table.name.ends_with("feed")
}
