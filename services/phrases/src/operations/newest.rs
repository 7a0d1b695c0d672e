//! Values that a process keeps by what they were made of.

use std::sync::{Mutex, PoisonError};

/// The values that were put last, at most `MAX`, by their keys. `MAX` is not 0.
pub(crate) struct Newest<K, V, const MAX: usize>(Mutex<Vec<(K, V)>>);

impl<K, V, const MAX: usize> Default for Newest<K, V, MAX> {
    fn default() -> Self {
        Self(Mutex::default())
    }
}

impl<K: PartialEq, V: Clone, const MAX: usize> Newest<K, V, MAX> {
    /// The value of a key.
    pub(crate) fn get(&self, key: &K) -> Option<V> {
        let all = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        all.iter().find(|(known, _)| known == key).map(|(_, value)| value.clone())
    }

    /// Puts a value, which replaces that of its key, or else the oldest one if there are too many.
    pub(crate) fn put(&self, key: K, value: V) {
        let mut all = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        all.retain(|(known, _)| *known != key);
        all.truncate(MAX - 1);
        all.insert(0, (key, value));
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Proves that a value is read by its key, that a key has its last value, and that the oldest value makes room for one too many.
    #[test]
    fn the_oldest_makes_room() {
        let newest: Newest<u8, &str, 2> = Newest::default();
        assert_eq!(newest.get(&1), None);
        newest.put(1, "a");
        newest.put(2, "b");
        newest.put(1, "c");
        assert_eq!([1, 2].map(|key| newest.get(&key)), [Some("c"), Some("b")]);
        newest.put(3, "d");
        assert_eq!([1, 2, 3].map(|key| newest.get(&key)), [Some("c"), None, Some("d")]);
    }
}
