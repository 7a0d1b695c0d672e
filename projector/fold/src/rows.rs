//! The rows that a decision sees: those of the store, with the writes of the preceding decisions of the same batch.

use std::collections::{HashMap, HashSet};
use std::sync::Arc;

use bytes::Bytes;
use futures_util::future::try_join_all;
use proofs::receipt::SigningKeys;
use schemas::tables::{Key, Table, Write};
use serde::de::DeserializeOwned;
use view_store::View;

use crate::undecided::Undecided;

/// Rows by table and key; `None` for a row that does not exist.
type FetchedRows = HashMap<&'static str, HashMap<Key, Option<Bytes>>>;

/// A cache of rows for decisions. A missing row is recorded and fetched before the decision is repeated, so that `decide` remains pure and
/// a batch needs few round trips.
#[derive(Default)]
pub struct Rows {
    known: FetchedRows,
    /// The rows of the previous batch, which is being committed.
    committing: FetchedRows,
    missing: Vec<(&'static Table, Key)>,
    keys: Arc<SigningKeys>,
}

impl Rows {
    /// Creates an empty cache with the keys that decisions may sign with. A signature depends on nothing but key and text.
    #[must_use]
    pub fn signing(keys: Arc<SigningKeys>) -> Self {
        Self { keys, ..Self::default() }
    }

    /// Returns the keys that decisions may sign with.
    #[must_use]
    pub fn keys(&self) -> &SigningKeys {
        &self.keys
    }

    /// Returns a row.
    ///
    /// # Errors
    /// [`Undecided::Miss`] if the row has not been fetched.
    pub fn get(&mut self, table: &'static Table, key: &Key) -> Result<Option<Bytes>, Undecided> {
        match self.known(table, key) {
            Some(row) => Ok(row.clone()),
            None => {
                self.missing.push((table, key.clone()));
                Err(Undecided::Miss)
            }
        }
    }

    fn known(&self, table: &'static Table, key: &Key) -> Option<&Option<Bytes>> {
        [&self.known, &self.committing].into_iter().find_map(|known| known.get(table.name)?.get(key))
    }

    /// Returns a row decoded from JSON.
    ///
    /// # Errors
    /// [`Undecided::Miss`] if the row has not been fetched; [`Undecided::Poison`] if it cannot be decoded.
    pub fn get_json<T: DeserializeOwned>(&mut self, table: &'static Table, key: &Key) -> Result<Option<T>, Undecided> {
        self.get(table, key)?
            .map(|row| serde_json::from_slice(&row).map_err(|error| Undecided::Poison(format!("row of {}: {error}", table.name))))
            .transpose()
    }

    /// Stores a write of a decision to a table that decisions read.
    pub fn write(&mut self, write: Write) {
        self.known.entry(write.table.name).or_default().insert(write.key, write.value);
    }

    /// Fetches rows that will be needed and are not in the cache. Returns the first of them that `is_wrong` refuses; none are cached then.
    ///
    /// # Errors
    /// When the store fails.
    pub async fn fetch(
        &mut self,
        view: &dyn View,
        wanted: impl IntoIterator<Item = (&'static Table, Key)>,
        is_wrong: impl Fn(&'static Table, &Key, Option<&Bytes>) -> bool,
    ) -> Result<Option<(&'static Table, Key)>, view_store::Error> {
        let mut by_table: HashMap<&'static str, (&'static Table, HashSet<Key>)> = HashMap::new();
        for (table, key) in wanted {
            if self.known(table, &key).is_none() {
                by_table.entry(table.name).or_insert_with(|| (table, HashSet::new())).1.insert(key);
            }
        }
        let fetched = by_table.into_values().map(async |(table, keys)| {
            let keys: Vec<Key> = keys.into_iter().collect();
            let rows = view.get_many(table, &keys).await?;
            Ok::<_, view_store::Error>((table, keys, rows))
        });
        let fetched = try_join_all(fetched).await?;
        for (table, keys, rows) in &fetched {
            if let Some((key, _)) = keys.iter().zip(rows).find(|(key, row)| is_wrong(table, key, row.as_ref())) {
                return Ok(Some((table, key.clone())));
            }
        }
        for (table, keys, rows) in fetched {
            self.known.entry(table.name).or_default().extend(keys.into_iter().zip(rows));
        }
        Ok(None)
    }

    /// Returns the rows that decisions found missing, and forgets them.
    pub fn take_missing(&mut self) -> Vec<(&'static Table, Key)> {
        std::mem::take(&mut self.missing)
    }

    /// Marks the cached rows as being committed. Those of the previous commit are in the store and are dropped.
    pub fn committing(&mut self) {
        self.committing = std::mem::take(&mut self.known);
    }

    /// Drops all rows: the store has them now.
    pub fn clear(&mut self) {
        self.known.clear();
        self.committing.clear();
        self.missing.clear();
    }
}
