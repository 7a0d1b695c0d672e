//! One value for all calls, of the latest position that they ask for.

use std::sync::{Mutex, PoisonError};

use schemas::position::Seq;

use crate::position::Position;

/// A position without its view. Answers at equal positions are made of the same rows.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct PositionKey {
    /// The generation of the view.
    pub generation: u64,
    /// What is hidden in the view.
    pub rendition: u64,
    /// The last change that an answer covers.
    pub seq: Seq,
}

impl Position {
    /// What a value that is made at this position is remembered by.
    #[must_use]
    pub fn key(&self) -> PositionKey {
        PositionKey { generation: self.view.generation(), rendition: self.view.rendition(), seq: self.seq }
    }

    /// Whether the position is the last one of its view. Values of earlier positions should not replace that of [`LatestAt`], which most calls ask for.
    #[must_use]
    pub fn is_latest(&self) -> bool {
        self.seq == self.last
    }
}

/// A value with its key, mostly a [`PositionKey`]. A value of another key replaces it.
#[derive(Debug)]
pub struct LatestAt<K, T>(Mutex<Option<(K, T)>>);

impl<K, T> Default for LatestAt<K, T> {
    fn default() -> Self {
        Self(Mutex::new(None))
    }
}

impl<K: PartialEq, T> LatestAt<K, T> {
    /// What `read` makes of the value; `None` if there is no value of this key.
    pub fn read<O>(&self, key: &K, read: impl FnOnce(&T) -> O) -> Option<O> {
        let latest = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        latest.as_ref().filter(|(known, _)| known == key).map(|(_, value)| read(value))
    }

    /// Replaces the value.
    pub fn set(&self, key: K, value: T) {
        *self.0.lock().unwrap_or_else(PoisonError::into_inner) = Some((key, value));
    }

    /// Changes the value of a key, or the default value if there is none of this key.
    pub fn update(&self, key: K, change: impl FnOnce(&mut T))
    where
        T: Default,
    {
        let mut latest = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        let mut value = latest.take().filter(|(known, _)| *known == key).map_or_else(T::default, |(_, value)| value);
        change(&mut value);
        *latest = Some((key, value));
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Proves that a value is read by its own key alone, that a change of the same key continues it, and that another key begins with the default value.
    #[test]
    fn values_by_key() {
        let latest: LatestAt<PositionKey, Vec<u8>> = LatestAt::default();
        let at = |generation: u64, rendition: u64, seq: u64| PositionKey { generation, rendition, seq: Seq(seq) };
        let read = |key: PositionKey| latest.read(&key, Vec::clone);
        assert_eq!(read(at(1, 0, 5)), None);
        latest.set(at(1, 0, 5), vec![1]);
        latest.update(at(1, 0, 5), |value| value.push(2));
        assert_eq!(read(at(1, 0, 5)), Some(vec![1, 2]));
        for other in [at(2, 0, 5), at(1, 1, 5), at(1, 0, 6)] {
            assert_eq!(read(other), None, "{other:?}");
        }
        latest.update(at(1, 0, 6), |value| value.push(3));
        assert_eq!((read(at(1, 0, 5)), read(at(1, 0, 6))), (None, Some(vec![3])));
    }
}
