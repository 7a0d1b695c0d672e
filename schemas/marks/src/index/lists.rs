//! Exact lists: the rows that are stored under a key, and no others. A row of a list need not be compared to know that it has the key.

use super::numbers::{read_number, write_number};

/// Rows by key.
#[derive(Debug, Default, PartialEq, Eq)]
pub(super) struct Lists {
    /// The keys, ascending.
    pub(super) keys: Vec<u64>,
    /// Where the list of each key ends.
    pub(super) ends: Vec<u32>,
    /// All lists: each row as the distance from the row before.
    pub(super) bytes: Vec<u8>,
}

impl Lists {
    /// Stores rows under their keys.
    pub(super) fn build(mut entries: Vec<(u64, u32)>) -> Self {
        entries.sort_unstable();
        entries.dedup();
        let mut out = Self::default();
        for of_key in entries.chunk_by(|one, next| one.0 == next.0) {
            let mut before = 0;
            for (_, row) in of_key {
                write_number(&mut out.bytes, row - before);
                before = *row;
            }
            out.keys.extend(of_key.first().map(|(key, _)| *key));
            out.ends.push(out.bytes.len() as u32);
        }
        out.keys.shrink_to_fit();
        out.ends.shrink_to_fit();
        out.bytes.shrink_to_fit();
        out
    }

    /// Whether each key has a list, and the keys are in order: what a snapshot must have.
    pub(super) fn is_sound(&self) -> bool {
        self.keys.len() == self.ends.len() && self.keys.is_sorted()
    }

    /// Adds the rows that are stored under a key to a list.
    pub(super) fn add(&self, key: u64, out: &mut Vec<u32>) {
        let Ok(at) = self.keys.binary_search(&key) else { return };
        let start = at.checked_sub(1).and_then(|before| self.ends.get(before)).map_or(0, |end| *end as usize);
        let end = self.ends.get(at).map_or(0, |end| *end as usize);
        let mut bytes = self.bytes.get(start..end).unwrap_or_default().iter();
        let mut row = 0_u32;
        while let Some(delta) = read_number(&mut bytes) {
            row = row.wrapping_add(delta);
            out.push(row);
        }
    }

    pub(super) fn size(&self) -> usize {
        self.keys.capacity() * 8 + self.ends.capacity() * 4 + self.bytes.capacity()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Proves that a key has the rows that were stored under it, each once and in order, and that another key has none.
    #[test]
    fn lists_are_exact() {
        let lists = Lists::build(vec![(7, 300), (9, 1), (7, 2), (7, 300), (9, 2_000_000)]);
        assert!(lists.is_sound() && lists.size() > 0);
        for (key, expected) in [(7, &[2, 300][..]), (9, &[1, 2_000_000][..]), (8, &[][..])] {
            let mut rows = Vec::new();
            lists.add(key, &mut rows);
            assert_eq!(rows, expected, "{key}");
        }
        assert!(!Lists { ends: Vec::new(), ..lists }.is_sound());
    }
}
