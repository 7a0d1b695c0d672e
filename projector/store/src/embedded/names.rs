//! The names of keyspaces and of rows in `meta`.

use crate::store::Error;

/// The keyspace of the store's own rows.
pub(super) const META: &str = "meta";
/// The keyspace of counters.
pub(super) const COORDINATION: &str = "coordination";
/// The key in `meta` of the number of the last batch.
pub(super) const NUMBER: &str = "commit";
/// Returns the key of a generation's checkpoint in `meta`.
pub(super) fn checkpoint_key(view: &str, generation: u64) -> String {
    format!("checkpoint/{view}/{generation}")
}

/// Returns the key of a generation's positions in `meta`.
pub(super) fn positions_key(view: &str, generation: u64) -> String {
    format!("positions/{view}/{generation}")
}

/// Returns the key in `meta` that says that a generation has everything that the log has.
pub(super) fn complete_key(view: &str, generation: u64) -> String {
    format!("complete/{view}/{generation}")
}

/// Splits the key of a generation's row in `meta` into view and generation; `None` for other rows.
pub(super) fn split_generation_key(key: &str) -> Option<(&str, u64)> {
    let (view, generation) = ["checkpoint/", "positions/", "complete/"].iter().find_map(|kind| key.strip_prefix(kind))?.rsplit_once('/')?;
    Some((view, generation.parse().ok()?))
}

/// Returns the name of the keyspace for one table of one generation.
pub(super) fn keyspace_name(view: &str, generation: u64, table: &str) -> Result<String, Error> {
    const NAME_BYTES_MAX: usize = 255;
    let name = format!("{view}.g{generation}.{table}");
    if name.len() > NAME_BYTES_MAX || view.contains('/') || table.contains('.') {
        return Err(Error::Unavailable {
            what: format!("{name} cannot name a table: at most {NAME_BYTES_MAX} bytes, no slash in the view, no dot in the table"),
            source: None,
        });
    }
    Ok(name)
}

/// Splits the name of a keyspace into view and generation; `None` for the store's own keyspaces.
pub(super) fn split_name(name: &str) -> Option<(&str, u64)> {
    let (rest, _table) = name.rsplit_once('.')?;
    let (view, generation) = rest.rsplit_once(".g")?;
    Some((view, generation.parse().ok()?))
}
